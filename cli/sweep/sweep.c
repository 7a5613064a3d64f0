#include "cli/sweep/sweep.h"

#include "base/interrupt.h"
#include "base/pool.h"
#include "cli/sweep/predictor.h"
#include "cli/sweep/remote.h"
#include "predict/progress.h"
#include "sim/scheduler/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Predicts a point in a worker process. The answer is the point's status as a digit, and then its row. */
static void predict_point(void *context, uint64_t job, struct text *answer)
{
    text_putc(answer, '-');
    enum sweep_status outcome = sweep_predict_point(context, (size_t)job, answer);
    answer->data[0] = (char)('0' + outcome);
}

/* The points that are left, in the order of the grid. Points whose process died are appended. */
struct point_queue {
    size_t *point;
    size_t point_count, next;
    bool *died_once_by_point; /* [points of the grid] the process of the point has died once */
};

static void queue_make(struct point_queue *queue, const struct sweep_journal *journal,
                       const struct sweep_options *options)
{
    size_t points = journal->grid->point_count;
    queue->point = heap_alloc(2 * points + 1, sizeof *queue->point);
    queue->died_once_by_point = heap_zalloc(points, sizeof *queue->died_once_by_point);
    queue->point_count = queue->next = 0;
    for (size_t i = 0; i < points; i++)
        if (!journal->is_complete && journal->row[i].text == NULL &&
            (options->parts == 0 || i % options->parts == options->part_number - 1))
            queue->point[queue->point_count++] = i;
}

struct sweep_run {
    const struct sweep_grid *grid;
    struct sweep_journal *journal;
    struct pool pool;
    struct point_queue queue;
    struct sweep_remote remote;
    struct progress progress;
    size_t done_points, count_of_status[SWEEP_STATUS_COUNT];
};

static void show_progress(struct sweep_run *run)
{
    char note[96] = "";
    size_t other = run->done_points; /* the rows of an earlier run, which have no status here */
    for (int i = 0; i < SWEEP_STATUS_COUNT; i++)
        other -= run->count_of_status[i];
    size_t unfit = run->done_points - other - run->count_of_status[SWEEP_FITS] -
                   run->count_of_status[SWEEP_MAY_FIT];
    if (unfit > 0)
        snprintf(note, sizeof note, "%zu infeasible", unfit);
    progress_update(&run->progress, run->done_points, note);
}

/* Returns whether the next point can be given to a worker. A point whose process died is tried again when no other
 * point runs, since the memory that others used may have been the cause. */
static bool may_start_next_point(const struct sweep_run *run)
{
    const struct point_queue *queue = &run->queue;
    if (queue->next == queue->point_count || run->pool.busy_workers == run->pool.worker_count)
        return false;
    if (queue->died_once_by_point[queue->point[queue->next]])
        return run->pool.busy_workers == 0;
    return true;
}

static enum status handle_worker_death(struct sweep_run *run, size_t point, const char *why,
                                       struct diag *diag)
{
    if (!run->queue.died_once_by_point[point]) {
        run->queue.died_once_by_point[point] = true;
        run->queue.point[run->queue.point_count++] = point;
        return STATUS_OK;
    }
    struct text row = {0};
    sweep_put_failed_row(&row, &run->grid->axes, point, why);
    run->done_points++;
    run->count_of_status[SWEEP_FAILED]++;
    enum status status = sweep_journal_add(run->journal, point, &row, true, diag);
    text_release(&row);
    return status;
}

static enum status handle_pool_event(struct sweep_run *run, const struct pool_event *event,
                                     struct diag *diag)
{
    size_t point = (size_t)event->job;
    if (event->kind == POOL_NO_EVENT)
        return STATUS_OK;
    if (event->kind == POOL_DEATH)
        return handle_worker_death(run, point, event->answer->data, diag);
    int outcome = event->answer->data[0] - '0';
    struct text row = {.data = event->answer->data + 1, .size = event->answer->size - 1};
    run->done_points++;
    run->count_of_status[outcome]++;
    return sweep_journal_add(run->journal, point, &row, outcome == SWEEP_FAILED, diag);
}

/* Stores the rows that other nodes have sent, and sends them points. A point whose process died is tried again on this
 * node. */
static enum status exchange_with_remote(struct sweep_run *run, struct diag *diag)
{
    struct sweep_remote_row row = {0};
    enum status status = STATUS_OK;
    while (status == STATUS_OK && sweep_remote_receive_row(&run->remote, &row)) {
        run->done_points++;
        run->count_of_status[row.outcome]++;
        status =
            sweep_journal_add(run->journal, row.point, &row.row, row.outcome == SWEEP_FAILED, diag);
    }
    while (run->queue.next < run->queue.point_count &&
           !run->queue.died_once_by_point[run->queue.point[run->queue.next]] &&
           sweep_remote_has_waiting_rank(&run->remote))
        sweep_remote_send_point(&run->remote, run->queue.point[run->queue.next++]);
    text_release(&row.row);
    return status;
}

static enum status run_local_points(struct sweep_run *run, struct diag *diag)
{
    enum status status = STATUS_OK;
    /* with other nodes the wait is short, since their messages have to be looked for */
    int wait_ms = run->remote.launcher->process_count > 1 ? 2 : 1000;
    while (status == STATUS_OK && interrupt_caught_signal_number() == 0 &&
           (run->queue.next < run->queue.point_count || run->pool.busy_workers > 0 ||
            run->remote.outstanding_point_count > 0)) {
        struct pool_event event;
        if (run->remote.launcher->process_count > 1)
            status = exchange_with_remote(run, diag);
        while (status == STATUS_OK && may_start_next_point(run))
            status = pool_submit_job(&run->pool, run->queue.point[run->queue.next++], diag);
        if (status == STATUS_OK)
            status = pool_wait(&run->pool, wait_ms, &event, diag);
        if (status == STATUS_OK && interrupt_caught_signal_number() == 0)
            status = handle_pool_event(run, &event, diag);
        show_progress(run);
    }
    return status;
}

enum status sweep_run(const struct sweep_grid *grid, const struct sweep_options *options,
                      struct sweep_journal *journal, struct launcher *launcher, struct diag *diag)
{
    struct sweep_predictor predictor = {.grid = grid};
    struct sweep_run run = {.grid = grid,
                            .journal = journal,
                            .done_points = journal->known_row_count,
                            .remote.launcher = launcher};
    struct interrupt interrupt;
    queue_make(&run.queue, journal, options);
    size_t jobs = options->worker_count > 0 ? options->worker_count : pool_count_usable_cores();
    if (jobs > run.queue.point_count)
        jobs = run.queue.point_count;
    interrupt_catch(&interrupt);
    enum status status = engine_load(diag);
    if (status == STATUS_OK)
        status = pool_start(&run.pool, jobs, predict_point, &predictor, diag);
    if (status == STATUS_OK)
        status = launcher_start_mpi(launcher, diag);
    progress_begin(&run.progress, journal->known_row_count + run.queue.point_count,
                   journal->known_row_count);
    if (status == STATUS_OK)
        status = run_local_points(&run, diag);
    progress_end();
    if (status == STATUS_OK && interrupt_caught_signal_number() == 0)
        sweep_remote_finish_mpi(&run.remote);
    pool_release(&run.pool);
    interrupt_release(&interrupt);
    if (status == STATUS_OK && interrupt_caught_signal_number() != 0) {
        if (journal->sweep_path != NULL)
            status = diag_error(diag, (struct loc){.name = "sweep"}, STATUS_SYSTEM,
                                "ended by %s: %zu of %zu rows are kept in %s, and the same command "
                                "continues",
                                interrupt_describe_signal(), journal->known_row_count,
                                grid->point_count, journal->journal_path.data);
        else
            status = diag_error(diag, (struct loc){.name = "sweep"}, STATUS_SYSTEM,
                                "ended by %s; with -o, rows would have been kept",
                                interrupt_describe_signal());
    }
    sweep_remote_release(&run.remote);
    free(run.queue.point);
    free(run.queue.died_once_by_point);
    sweep_predictor_release(&predictor);
    return status;
}

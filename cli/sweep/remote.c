#include "cli/sweep/remote.h"

#include "base/pool.h"
#include "sim/scheduler/engine.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum message_tag { TAG_WANT = 1, TAG_POINT, TAG_ROW, TAG_STOP };

/* For how long a rank waits for its workers before it looks for messages again. */
enum { LOOK_EVERY_MS = 2 };

/* ---- rank 0 ---- */

void sweep_remote_release(struct sweep_remote *remote)
{
    free(remote->waiting_ranks);
    *remote = (struct sweep_remote){0};
}

static void add_waiting_rank(struct sweep_remote *remote, int rank)
{
    if (remote->waiting_count == remote->waiting_capacity) {
        remote->waiting_capacity =
            heap_next_capacity(remote->waiting_capacity, remote->waiting_count + 1);
        remote->waiting_ranks = heap_realloc(remote->waiting_ranks, remote->waiting_capacity,
                                             sizeof *remote->waiting_ranks);
    }
    remote->waiting_ranks[remote->waiting_count++] = rank;
}

bool sweep_remote_has_waiting_rank(struct sweep_remote *remote)
{
    return remote->waiting_count > 0;
}

void sweep_remote_send_point(struct sweep_remote *remote, size_t point)
{
    uint64_t message = point;
    int rank = remote->waiting_ranks[0]; /* the rank that has waited longest */
    memmove(remote->waiting_ranks, remote->waiting_ranks + 1,
            --remote->waiting_count * sizeof *remote->waiting_ranks);
    remote->launcher->calls->send(rank, TAG_POINT, &message, sizeof message);
    remote->outstanding_point_count++;
}

/* A message with a row: this head, and then the text of the row. */
struct row_message_head {
    uint64_t point, outcome;
};

bool sweep_remote_receive_row(struct sweep_remote *remote, struct sweep_remote_row *row)
{
    const struct launcher_mpi_functions *calls = remote->launcher->calls;
    int from, tag;
    size_t size;
    while (remote->launcher->process_count > 1 && calls->probe(&from, &tag, &size)) {
        char *message = heap_alloc(size + 1, 1);
        struct row_message_head head;
        calls->receive(from, tag, message, size);
        bool is_row = tag == TAG_ROW && size >= sizeof head;
        if (is_row) {
            memcpy(&head, message, sizeof head);
            row->point = (size_t)head.point;
            row->outcome = (enum sweep_status)head.outcome;
            row->row.size = 0;
            text_append(&row->row, message + sizeof head, size - sizeof head);
            remote->outstanding_point_count--;
        } else {
            add_waiting_rank(remote, from);
        }
        free(message);
        if (is_row)
            return true;
    }
    return false;
}

void sweep_remote_finish_mpi(struct sweep_remote *remote)
{
    if (remote->launcher->process_count == 1)
        return;
    for (int rank = 1; rank < remote->launcher->process_count; rank++)
        remote->launcher->calls->send(rank, TAG_STOP, NULL, 0);
    /* another rank may be sending a request; receiving it lets that rank go on */
    struct sweep_remote_row row = {0};
    while (sweep_remote_receive_row(remote, &row))
        ;
    text_release(&row.row);
    remote->launcher->calls->finish();
}

/* ---- the other ranks ---- */

struct remote_worker {
    const struct sweep_grid *grid;
    const struct launcher_mpi_functions *calls;
    struct pool pool;
    /* [queued_point_count] points that no worker has: rank 0 sent them, or their process died */
    uint64_t *point_queue;
    size_t queued_point_count;
    size_t unanswered_point_requests; /* requests for a point that rank 0 has not answered yet */
    /* points are requested only while fewer than this many are queued or requested */
    size_t queued_point_count_max;
    /* [points] whether the process of the point has died once; if it dies again, the point fails */
    bool *died_once_by_point;
    bool was_told_to_stop;
};

static void predict_point(void *context, uint64_t job, struct text *answer)
{
    text_putc(answer, '-');
    enum sweep_status outcome = sweep_predict_point(context, (size_t)job, answer);
    answer->data[0] = (char)('0' + outcome);
}

static void receive_points_or_stop_message(struct remote_worker *s)
{
    int from, tag;
    size_t size;
    while (s->calls->probe(&from, &tag, &size)) {
        uint64_t point = 0;
        s->calls->receive(from, tag, &point, size < sizeof point ? size : sizeof point);
        if (tag == TAG_STOP) {
            s->was_told_to_stop = true;
        } else {
            s->point_queue[s->queued_point_count++] = point;
            s->unanswered_point_requests--;
        }
    }
}

static void send_row(struct remote_worker *s, uint64_t point, uint64_t outcome, const char *text,
                     size_t size)
{
    struct row_message_head head = {point, outcome};
    struct text message = {0};
    text_append(&message, (const char *)&head, sizeof head);
    text_append(&message, text, size);
    s->calls->send(0, TAG_ROW, message.data, message.size);
    text_release(&message);
}

static void handle_pool_event(struct remote_worker *s, const struct pool_event *event)
{
    if (event->kind == POOL_ANSWER) {
        send_row(s, event->job, (uint64_t)(event->answer->data[0] - '0'), event->answer->data + 1,
                 event->answer->size - 1);
    } else if (event->kind == POOL_DEATH && !s->died_once_by_point[event->job]) {
        s->died_once_by_point[event->job] = true;
        s->point_queue[s->queued_point_count++] = event->job;
    } else if (event->kind == POOL_DEATH) {
        struct text row = {0};
        sweep_put_failed_row(&row, &s->grid->axes, (size_t)event->job, event->answer->data);
        send_row(s, event->job, SWEEP_FAILED, row.data, row.size);
        text_release(&row);
    }
}

enum status sweep_predict_points_for_rank_0(const struct sweep_grid *grid, size_t jobs,
                                            struct launcher *launcher, struct diag *diag)
{
    struct sweep_predictor predictor = {.grid = grid};
    struct remote_worker s = {.grid = grid,
                              .calls = launcher->calls,
                              .died_once_by_point =
                                  heap_zalloc(grid->point_count, sizeof *s.died_once_by_point)};
    size_t workers = jobs > 0 ? jobs : pool_count_usable_cores();
    s.queued_point_count_max = 2 * workers;
    s.point_queue = heap_alloc(s.queued_point_count_max + workers + 1, sizeof *s.point_queue);
    enum status status = engine_load(diag);
    if (status == STATUS_OK)
        status = pool_start(&s.pool, workers, predict_point, &predictor, diag);
    if (status == STATUS_OK)
        status = launcher_start_mpi(launcher, diag);
    while (status == STATUS_OK && (!s.was_told_to_stop || s.pool.busy_workers > 0)) {
        struct pool_event event;
        while (!s.was_told_to_stop &&
               s.queued_point_count + s.unanswered_point_requests < s.queued_point_count_max) {
            s.calls->send(0, TAG_WANT, NULL, 0);
            s.unanswered_point_requests++;
        }
        receive_points_or_stop_message(&s);
        while (status == STATUS_OK && s.queued_point_count > 0 &&
               s.pool.busy_workers < s.pool.worker_count) {
            status = pool_submit_job(&s.pool, s.point_queue[0], diag);
            memmove(s.point_queue, s.point_queue + 1,
                    --s.queued_point_count * sizeof *s.point_queue);
        }
        if (status == STATUS_OK)
            status = pool_wait(&s.pool, LOOK_EVERY_MS, &event, diag);
        if (status == STATUS_OK)
            handle_pool_event(&s, &event);
    }
    if (status == STATUS_OK)
        launcher->calls->finish();
    pool_release(&s.pool);
    free(s.point_queue);
    free(s.died_once_by_point);
    sweep_predictor_release(&predictor);
    return status;
}

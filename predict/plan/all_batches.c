#include "predict/plan/all_batches.h"

#include "base/digest.h"
#include "predict/progress.h"
#include "predict/workers.h"

#include <stdlib.h>
#include <string.h>

/* A row that is compared, and its steps on the batches of its packed set. */
struct compared_row {
    struct outcome *row;
    size_t predicted_batch_count; /* the first batches of the set, on which it is compared */
    double *step_s;               /* [batches of the packed set], heap; 0: not predicted yet */
};

struct row_batch_job {
    const struct compared_row *compared_row;
    size_t batch;
};

struct batch_comparison {
    struct setup *setup;
    const struct kept_jobs *kept_jobs;
    struct compared_row compared_row[COMPARED_ROWS];
    size_t compared_row_count;
    struct row_batch_job *job;
    size_t job_count;
};

static void predict_row_on_batch(void *context, size_t job, void *result)
{
    struct batch_comparison *c = context;
    const struct outcome *row = c->job[job].compared_row->row;
    struct setup *setup = c->setup; /* this process' own */
    struct request request = row->request;
    struct documents documents;
    struct arena arena = {0};
    const struct prediction_question question = {
        .setup = setup, .request = &request, .wants_step_time_only = true};
    struct prediction p = {0};
    double *step_s = result;
    packed_batch_fill_documents(&row->packed_set->batch[c->job[job].batch], request.seq, &documents,
                                &arena);
    request.documents = &documents;
    if (setup->cluster.gpus == request.ranks ||
        cluster_resize(&setup->cluster, &setup->arena, 0, request.ranks, NULL) == STATUS_OK)
        if (prediction_make(&p, &question, NULL) == STATUS_OK)
            *step_s = p.sim.step_s;
    prediction_release(&p);
    arena_release(&arena);
}

/* Returns, in the arena, a digest for each job, under which its step time is kept. All digests are 0 if no results are
 * kept. */
static uint64_t *job_digests(const struct batch_comparison *c, struct arena *arena)
{
    uint64_t *key = arena_array(arena, c->job_count + 1, sizeof *key);
    for (size_t i = 0; i < c->job_count && c->kept_jobs->answer_file != NULL; i++) {
        const struct outcome *row = c->job[i].compared_row->row;
        struct request request = row->request;
        struct documents documents;
        packed_batch_fill_documents(&row->packed_set->batch[c->job[i].batch], request.seq,
                                    &documents, arena);
        request.documents = &documents;
        key[i] = outcome_request_digest(c->setup, &request, request.ranks);
    }
    return key;
}

/* Predicts each compared row on its first predicted_batch_count batches, except those on which it was predicted
 * before. */
static enum status predict_missing_steps(struct batch_comparison *c, struct diag *diag)
{
    size_t most = 0;
    c->job_count = 0;
    for (size_t i = 0; i < c->compared_row_count; i++)
        most += c->compared_row[i].predicted_batch_count;
    c->job = heap_alloc(most + 1, sizeof *c->job);
    for (size_t i = 0; i < c->compared_row_count; i++)
        for (size_t b = 0; b < c->compared_row[i].predicted_batch_count; b++)
            if (!(c->compared_row[i].step_s[b] > 0))
                c->job[c->job_count++] = (struct row_batch_job){&c->compared_row[i], b};
    double *step_s = heap_zalloc(c->job_count + 1, sizeof *step_s);
    struct arena arena = {0};
    struct progress progress;
    progress_begin(&progress, c->job_count, 0);
    enum status status =
        kept_jobs_run(c->kept_jobs, job_digests(c, &arena), c->job_count, sizeof *step_s,
                      predict_row_on_batch, c, step_s, &progress, diag);
    progress_end();
    arena_release(&arena);
    for (size_t i = 0; i < c->job_count && status == STATUS_OK; i++)
        c->job[i].compared_row->step_s[c->job[i].batch] = step_s[i];
    free(step_s);
    free(c->job);
    return status;
}

/* Returns a compared row's tokens/s/GPU: the mean tokens of its batches over the median of their steps. */
static double median_tokens_per_s_gpu(const struct compared_row *c)
{
    double median_s = step_spread_of(c->step_s, c->predicted_batch_count).median_s;
    return packed_set_mean_tokens(c->row->packed_set, c->predicted_batch_count) / median_s /
           (double)c->row->request.ranks;
}

/* Returns the fastest of those compared rows that were predicted on the most batches. */
static const struct compared_row *fastest_row(const struct batch_comparison *c)
{
    const struct compared_row *first = &c->compared_row[0];
    for (size_t i = 1; i < c->compared_row_count; i++)
        if (c->compared_row[i].predicted_batch_count > first->predicted_batch_count ||
            (c->compared_row[i].predicted_batch_count == first->predicted_batch_count &&
             median_tokens_per_s_gpu(&c->compared_row[i]) > median_tokens_per_s_gpu(first)))
            first = &c->compared_row[i];
    return first;
}

static double tokens_per_s_gpu_in_batch(const struct compared_row *c, size_t batch)
{
    return packed_set_batch_tokens(c->row->packed_set, batch) / c->step_s[batch] /
           (double)c->row->request.ranks;
}

/* Returns on how many of the batches on which two rows were both predicted the first row, c, is faster. */
static size_t count_won_batches(const struct compared_row *c, const struct compared_row *other)
{
    size_t won = 0, count = c->predicted_batch_count < other->predicted_batch_count
                                ? c->predicted_batch_count
                                : other->predicted_batch_count;
    for (size_t b = 0; b < count; b++)
        won += tokens_per_s_gpu_in_batch(c, b) > tokens_per_s_gpu_in_batch(other, b);
    return won;
}

/* Begins the comparison with the rows that are within OTHER_BATCHES_RATE_MARGIN_SHARE of the best one, at most
 * COMPARED_ROWS, on their first COMPARED_FIRST batches. The steps of their typical batches are known from the
 * search. */
static void begin_comparison(struct batch_comparison *c, struct best *best)
{
    double least = best->row[0].rate_bound / (1 + OTHER_BATCHES_RATE_MARGIN_SHARE);
    for (size_t i = 0; i < best->row_count && c->compared_row_count < COMPARED_ROWS; i++) {
        struct outcome *row = &best->row[i];
        if (row->kind != OUTCOME_SIMULATED || row->rate_bound < least)
            break;
        size_t all = row->packed_set->batch_count;
        struct compared_row *next = &c->compared_row[c->compared_row_count++];
        next->row = row;
        next->predicted_batch_count = all < COMPARED_FIRST ? all : COMPARED_FIRST;
        next->step_s = heap_zalloc(all, sizeof *next->step_s);
        next->step_s[row->packed_set->typical_batch] = row->step_s;
    }
}

/* Extends the comparison to all batches for the fastest row, and for each row that is faster than it on some batch. */
static void extend_to_all_batches(struct batch_comparison *c)
{
    const struct compared_row *first = fastest_row(c);
    bool is_row_kept[COMPARED_ROWS];
    for (size_t i = 0; i < c->compared_row_count; i++)
        is_row_kept[i] =
            &c->compared_row[i] == first || count_won_batches(&c->compared_row[i], first) > 0;
    for (size_t i = 0; i < c->compared_row_count; i++)
        if (is_row_kept[i])
            c->compared_row[i].predicted_batch_count =
                c->compared_row[i].row->packed_set->batch_count;
}

/* Makes rate_bound of all rows comparable. The best row, `first`, gets its rate on all batches. A compared row gets
 * that rate, times the ratio of its own rate to the best row's, both on the batches on which it was predicted. Every
 * other row keeps its ratio to the best row, which is that of their typical batches. */
static void make_rate_bounds_comparable(struct batch_comparison *c, struct best *best,
                                        const struct compared_row *first)
{
    double all = median_tokens_per_s_gpu(first), typical = first->row->rate_bound;
    for (size_t i = 0; i < best->row_count; i++)
        best->row[i].rate_bound *= all / typical;
    for (size_t i = 0; i < c->compared_row_count; i++) {
        struct compared_row same = *first, *own = &c->compared_row[i];
        same.predicted_batch_count = own->predicted_batch_count;
        own->row->rate_bound = all * median_tokens_per_s_gpu(own) / median_tokens_per_s_gpu(&same);
    }
}

/* True if every step that was asked for was predicted: none was interrupted or refused. */
static bool all_steps_are_predicted(const struct batch_comparison *c)
{
    for (size_t i = 0; i < c->compared_row_count; i++)
        for (size_t b = 0; b < c->compared_row[i].predicted_batch_count; b++)
            if (!(c->compared_row[i].step_s[b] > 0))
                return false;
    return true;
}

/* ---- the causes of a row's step time ---- */

struct time_causes_search {
    struct setup *setup;
    struct outcome **row;
};

static void find_time_causes_of_row(void *context, size_t job, void *result)
{
    const struct time_causes_search *e = context;
    const struct packed_set *packed_set = e->row[job]->packed_set;
    struct setup *setup = e->setup; /* this process' own */
    struct outcome *out = result;
    const struct prediction_question question = {
        .setup = setup, .request = &out->request, .skips_offsets = true};
    struct prediction p = {0};
    *out = *e->row[job];
    setup->padding_tokens = packed_set->batch[packed_set->typical_batch].padding_tokens;
    if (setup->cluster.gpus == out->request.ranks ||
        cluster_resize(&setup->cluster, &setup->arena, 0, out->request.ranks, NULL) == STATUS_OK)
        if (prediction_make(&p, &question, NULL) == STATUS_OK)
            outcome_fill_times(out, &p);
    prediction_release(&p);
}

static uint64_t time_causes_digest(const struct setup *setup, const struct outcome *row)
{
    /* this text makes the key of a step's causes differ from the key of the step's time */
    static const char causes[] = "causes";
    return digest_add(outcome_request_digest(setup, &row->request, row->request.ranks), causes,
                      sizeof causes);
}

/* Simulates the typical step of the first COMPARED_ROWS rows, and of the best row of each strategy, and stores the
 * causes of its time (cause_s, has_final_causes) in the row. */
static enum status find_time_causes_of_rows(struct best *best, struct setup *setup,
                                            struct diag *diag)
{
    struct time_causes_search e = {setup,
                                   heap_alloc(best->row_count + 1, sizeof(struct outcome *))};
    bool seen[UINT8_MAX + 1] = {false};
    size_t count = 0;
    for (size_t i = 0; i < best->row_count && best->row[i].kind == OUTCOME_SIMULATED; i++) {
        struct outcome *row = &best->row[i];
        if (i < COMPARED_ROWS || !seen[row->strategy])
            e.row[count++] = row;
        seen[row->strategy] = true;
    }
    struct outcome *out = heap_zalloc(count + 1, sizeof *out);
    uint64_t *key = heap_zalloc(count + 1, sizeof *key);
    for (size_t i = 0; i < count && best->limits.kept_jobs.answer_file != NULL; i++)
        key[i] = time_causes_digest(setup, e.row[i]);
    struct progress progress;
    progress_begin(&progress, count, 0);
    enum status status = kept_jobs_run(&best->limits.kept_jobs, key, count, sizeof *out,
                                       find_time_causes_of_row, &e, out, &progress, diag);
    progress_end();
    free(key);
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        if (out[i].has_final_causes) { /* the rest of the row is of all batches */
            memcpy(e.row[i]->cause_s, out[i].cause_s, sizeof out[i].cause_s);
            e.row[i]->has_final_causes = true;
        }
    free(out);
    free((void *)e.row);
    return status;
}

/* ---- the whole comparison ---- */

enum status all_batches_compare_and_rank(struct best *best, struct setup *setup, struct diag *diag)
{
    struct batch_comparison c = {.setup = setup, .kept_jobs = &best->limits.kept_jobs};
    begin_comparison(&c, best);
    enum status status = predict_missing_steps(&c, diag);
    bool is_complete = status == STATUS_OK && all_steps_are_predicted(&c);
    if (is_complete) {
        extend_to_all_batches(&c);
        status = predict_missing_steps(&c, diag);
        is_complete = status == STATUS_OK && all_steps_are_predicted(&c);
    }
    const struct compared_row *first = is_complete ? fastest_row(&c) : NULL;
    if (is_complete)
        make_rate_bounds_comparable(&c, best, first);
    for (size_t i = 0; i < c.compared_row_count && is_complete; i++) {
        struct outcome *row = c.compared_row[i].row;
        row->won_batch_count = count_won_batches(&c.compared_row[i], first);
        row->spread =
            step_spread_of(c.compared_row[i].step_s, c.compared_row[i].predicted_batch_count);
    }
    for (size_t i = 0; i < c.compared_row_count; i++)
        free(c.compared_row[i].step_s);
    if (is_complete)
        best_sort_rows(best);
    return status == STATUS_OK ? find_time_causes_of_rows(best, setup, diag) : status;
}

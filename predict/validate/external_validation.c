#include "predict/validate/external_validation.h"

#include "predict/workers.h"
#include "schedule/choices/strategies.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void external_validation_release(struct external_validation *v)
{
    arena_release(&v->arena);
    free(v->answer);
    *v = (struct external_validation){0};
}

bool external_row_is_of_gpu(const struct external_run *row, const char *name)
{
    const char *gpu = row->cells[EXTERNAL_GPU];
    size_t size = strlen(name);
    return strcmp(gpu, name) == 0 || (strcspn(gpu, "-_") == size && strncmp(gpu, name, size) == 0);
}

const char *external_compared_memory_name(enum external_memory_kind kind)
{
    static const char *const compared[MEMORY_KIND_COUNT] = {
        [MEMORY_KIND_ALLOCATED] = "peak of tensors",
        [MEMORY_KIND_RESERVED] = "reserved by the allocator",
        [MEMORY_KIND_UNNAMED] = "reserved",
    };
    return compared[kind];
}

/* ---- one published run ---- */

static enum status predict_row(struct external_answer *answer, const struct external_run *row,
                               run_setup_function *load, struct diag *diag)
{
    struct setup setup = {0};
    struct prediction p = {0};
    const struct prediction_question question = {.setup = &setup};
    enum mfu_convention unused;
    enum status status = load(&setup, &unused, row->cells[EXTERNAL_ARGS], row->place.name, diag);
    if (status == STATUS_OK)
        status = prediction_memory(&p, &question, NULL, diag);
    if (status == STATUS_OK)
        status = validation_check_columns(row, &p, diag);
    if (status == STATUS_OK && p.choices.scope != SCOPE_WHOLE_STEP)
        status = diag_error(
            diag, (struct loc){0}, STATUS_BAD_INPUT,
            "the options in column args include --scope %s, but a whole step was measured",
            scope_names[p.choices.scope]);
    if (status == STATUS_OK)
        status = prediction_time(&p, diag);
    if (status == STATUS_OK) {
        answer->similarity = similarity_of(p.setup, &p.choices, p.profile);
        answer->step_s = p.sim.step_s;
        answer->peak_bytes = (double)prediction_device_memory_peak(&p)->bytes;
        answer->reserved = p.reserved;
        answer->verdict = p.verdict;
        answer->node_count = setup.cluster.nodes;
    }
    prediction_release(&p);
    setup_release(&setup);
    return status;
}

static void answer_job(void *context, size_t job, void *result)
{
    const struct external_validation *v = context;
    const struct external_run *row = &v->runs->rows[v->first_row_of_each_answer[job]];
    struct external_answer *answer = result;
    struct diag diag = {0};
    answer->has_succeeded = predict_row(answer, row, v->setup_loader, &diag) == STATUS_OK;
    if (!answer->has_succeeded)
        validation_put_error(answer->error, sizeof answer->error, &diag);
    diag_release(&diag);
}

/* ---- rows ---- */

/* Returns whether one prediction serves both rows. */
static bool same_prediction(const struct external_run *a, const struct external_run *b)
{
    return strcmp(a->cells[EXTERNAL_ARGS], b->cells[EXTERNAL_ARGS]) == 0 && a->gpus == b->gpus &&
           a->seq_len == b->seq_len && a->global_batch == b->global_batch &&
           strcmp(a->place.name, b->place.name) == 0;
}

static void assign_answers_to_rows(struct external_validation *v)
{
    size_t count = v->runs->row_count, *first = arena_array(&v->arena, count + 1, sizeof *first);
    v->answer_index_of_each_row =
        arena_array(&v->arena, count + 1, sizeof *v->answer_index_of_each_row);
    for (size_t i = 0; i < count; i++) {
        size_t of = 0;
        while (of < v->answer_count &&
               !same_prediction(&v->runs->rows[i], &v->runs->rows[first[of]]))
            of++;
        if (of == v->answer_count)
            first[v->answer_count++] = i;
        v->answer_index_of_each_row[i] = of;
    }
    v->first_row_of_each_answer = first;
}

/* Returns the predicted figure with which the second metric of a row is compared; NAN: there is none. */
static double predicted_bytes_to_compare(enum external_second_metric metric,
                                         const struct external_answer *answer)
{
    switch (external_metric_memory_kind(metric)) {
    case MEMORY_KIND_ALLOCATED:
        return answer->peak_bytes + (double)answer->reserved.bytes[RESERVED_BUCKETS];
    case MEMORY_KIND_RESERVED:
        return (double)reserved_allocator_bytes(&answer->reserved);
    case MEMORY_KIND_UNNAMED:
        return (double)answer->reserved.total_bytes;
    default:
        return NAN;
    }
}

static struct external_prediction judge_row(const struct external_run *row,
                                            const struct external_answer *answer)
{
    struct external_prediction result = external_make_unknown_prediction();
    result.status_reason = answer->error;
    if (!answer->has_succeeded)
        return result;
    result.outcome = answer->verdict.fits ? OUTCOME_OK : OUTCOME_WRONG;
    result.status_reason = answer->verdict.fits ? NULL : "it ran, and is predicted not to fit";
    result.step_s = answer->step_s;
    result.relative_error = row->step_s / answer->step_s - 1;
    result.peak_bytes = answer->peak_bytes;
    result.reserved_bytes = (double)answer->reserved.total_bytes;
    result.predicted_memory_bytes = predicted_bytes_to_compare(row->second_metric, answer);
    result.memory_error = result.predicted_memory_bytes / row->second_value - 1;
    return result;
}

enum status external_validation_run(struct external_validation *v, const struct external_runs *runs,
                                    run_setup_function *load, struct diag *diag)
{
    *v = (struct external_validation){.runs = runs, .setup_loader = load};
    v->result = arena_array(&v->arena, runs->row_count + 1, sizeof *v->result);
    assign_answers_to_rows(v);
    v->answer = heap_zalloc(v->answer_count + 1, sizeof *v->answer);
    enum status status =
        workers_run(v->answer_count, sizeof *v->answer, answer_job, v, v->answer, NULL, diag);
    for (size_t i = 0; status == STATUS_OK && i < runs->row_count; i++)
        v->result[i] = judge_row(&runs->rows[i], &v->answer[v->answer_index_of_each_row[i]]);
    return status;
}

double external_row_time_error_if_counted(const struct external_validation *v, size_t row)
{
    return v->runs->rows[row].is_counted ? v->result[row].relative_error : (double)NAN;
}

double external_row_memory_error_if_counted(const struct external_validation *v, size_t row)
{
    return external_metric_memory_kind(v->runs->rows[row].second_metric) == MEMORY_KIND_UNNAMED
               ? (double)NAN
               : v->result[row].memory_error;
}

double external_row_large_reserved_error(const struct external_validation *v, size_t row)
{
    const struct external_run *run = &v->runs->rows[row];
    const struct external_answer *answer = &v->answer[v->answer_index_of_each_row[row]];
    const bool is_large =
        external_metric_memory_kind(run->second_metric) == MEMORY_KIND_RESERVED &&
        run->second_value >= LARGE_RESERVED_SHARE * (double)answer->reserved.available_bytes;
    return is_large ? v->result[row].memory_error : (double)NAN;
}

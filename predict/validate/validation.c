#include "predict/validate/validation.h"

#include "predict/plan/longest.h"
#include "predict/validate/subsequence_row.h"
#include "predict/workers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number of tokens up to which search_longest() doubles the published length. */
#define LONGEST_LENGTH_TOKENS ((int64_t)1 << 26)

void validation_release(struct validation *v)
{
    arena_release(&v->arena);
    free(v->answer);
    *v = (struct validation){0};
}

/* ---- one published run ---- */

/* Searches for the longest length that fits. Since papers double lengths, it tries the published length, its halves
 * down to VALIDATION_SHORTEST_TOKENS and, if `above`, its doubles up to LONGEST_LENGTH_TOKENS. */
static void search_longest(const struct setup *setup, bool above, struct validated_run *answer,
                           struct diag *diag)
{
    int64_t seq = setup->request.seq;
    struct length_ladder ladder = {.first_length_or_step_tokens = seq, .do_lengths_double = true};
    struct longest longest;
    while (ladder.first_length_or_step_tokens / 2 >= VALIDATION_SHORTEST_TOKENS)
        ladder.first_length_or_step_tokens /= 2;
    while (ladder_tokens_of_rung(&ladder, ladder.length_count) <=
               (above ? LONGEST_LENGTH_TOKENS : seq) ||
           ladder.length_count == 0)
        ladder.length_count++;
    if (longest_find(&longest, setup, &setup->request, &ladder, seq, NULL, diag) != STATUS_OK)
        return;
    answer->longest_tokens = longest.tokens;
    answer->verdict = longest.tokens > 0 ? longest.verdict : longest.verdict_of_shortest_unfit;
    answer->verdict_on_next_length_or_against = longest.verdict_of_shortest_unfit;
    answer->reserved = longest.reserved;
}

enum status validation_check_columns(const struct external_run *row, const struct prediction *p,
                                     struct diag *diag)
{
    const struct {
        enum external_column column;
        int64_t stated, asked;
    } same[] = {{EXTERNAL_GPUS, row->gpus, p->choices.ranks},
                {EXTERNAL_SEQ_LEN, row->seq_len, p->choices.seq},
                {EXTERNAL_GLOBAL_BATCH, row->global_batch, prediction_sequences(p)}};
    for (size_t i = 0; i < ARRAY_LEN(same); i++)
        if (same[i].stated > 0 && same[i].stated != same[i].asked)
            return diag_error(diag, (struct loc){0}, STATUS_BAD_INPUT,
                              "the options in column args make %lld, but column %s says %lld",
                              (long long)same[i].asked, external_column_name(same[i].column),
                              (long long)same[i].stated);
    return STATUS_OK;
}

static enum status predict_run(const struct setup *setup, const struct external_run *row,
                               enum mfu_convention convention, bool wants_time,
                               struct validated_run *answer, struct diag *diag)
{
    struct prediction p = {0};
    const struct prediction_question question = {.setup = setup};
    enum status status = prediction_memory(&p, &question, NULL, diag);
    if (status == STATUS_OK)
        status = validation_check_columns(row, &p, diag);
    if (status == STATUS_OK && wants_time)
        status = prediction_time(&p, diag);
    if (status == STATUS_OK) {
        answer->verdict = p.verdict;
        answer->reserved = p.reserved;
    }
    if (status == STATUS_OK && wants_time) {
        double peak = setup->cluster.device.peak_bf16_flop_per_s;
        answer->similarity = similarity_of(p.setup, &p.choices, p.profile);
        answer->step_s = p.sim.step_s;
        answer->has_baseline = baseline_covers_choices(&p.choices);
        if (answer->has_baseline)
            answer->baseline = baseline_of(&p.choices, &setup->cluster);
        if (p.choices.scope != SCOPE_WHOLE_STEP)
            answer->operator_times = operator_times_of(&p);
        answer->tokens_per_s_gpu = p.tokens_per_s_gpu;
        answer->mfu = prediction_mfu(&p, convention);
        answer->counts_recompute =
            mfu_table[convention].counts_recompute && !prediction_recomputes(&p);
        answer->mfu_other_factor =
            mfu_fraction(convention, &setup->model, p.choices.seq, prediction_sequences(&p),
                         !prediction_recomputes(&p), p.sim.step_s, p.choices.ranks, peak);
    }
    prediction_release(&p);
    return status;
}

void validation_put_error(char *error, size_t room, const struct diag *diag)
{
    static const char word[] = "error: ";
    const char *text = diag->text != NULL ? diag->text : "failed";
    size_t size = strcspn(text, "\n");
    const char *at = strstr(text, word);
    size_t before = at != NULL && at < text + size ? (size_t)(at - text) : size;
    const char *rest = before < size ? at + sizeof word - 1 : "";
    snprintf(error, room, "%.*s%.*s", (int)before, text, (int)strcspn(rest, "\n"), rest);
}

static void apply_perturbations(struct setup *setup, const void *context)
{
    const struct validation *v = context;
    for (size_t i = 0; i < v->perturbation_count; i++)
        perturbation_apply(setup, v->perturbation[i]);
}

/* Loads the setup that a column of the row describes, and makes the validation's changes of its machine. */
static enum status load_run_setup(const struct validation *v, const struct external_run *row,
                                  enum external_column column, struct setup *setup,
                                  enum mfu_convention *convention, struct diag *diag)
{
    const struct setup_machine_change perturbations = {apply_perturbations, v};
    enum status status =
        v->setup_loader(setup, convention, row->cells[column], row->place.name, diag);
    if (status == STATUS_OK)
        setup_apply_machine_change(setup, &perturbations);
    return status;
}

/* Predicts the run that the column `against` describes. Stores its verdict in
 * answer->verdict_on_next_length_or_against, and in answer->speedup the rate of the row's own run, divided by the rate
 * of that run. */
static enum status find_speedup(const struct validation *v, const struct external_run *row,
                                struct validated_run *answer, struct diag *diag)
{
    struct setup setup = {0};
    struct validated_run other = {0};
    enum mfu_convention convention;
    enum status status = load_run_setup(v, row, EXTERNAL_AGAINST, &setup, &convention, diag);
    if (status == STATUS_OK)
        status = predict_run(&setup, row, convention, true, &other, diag);
    answer->verdict_on_next_length_or_against = other.verdict;
    answer->speedup = answer->tokens_per_s_gpu / other.tokens_per_s_gpu;
    setup_release(&setup);
    return status;
}

/* Returns whether the longest length is searched by doubling and halving the length in the row's args. */
static bool searches_by_doubling(const struct external_run *row)
{
    size_t size;
    return row->metric == METRIC_MAX_SEQ_LEN &&
           external_value_of_group_key(row, VALIDATION_LENGTHS_KEY, &size) == NULL;
}

/* Predicts the memory of all layouts of the row's group. Stores the length, the verdict and the memory of the longest
 * layout that fits, and in answer->verdict_on_next_length_or_against the verdict on the shortest one that does not fit.
 * */
static enum status search_longest_among_layouts(const struct validation *v,
                                                const struct external_run *row,
                                                struct validated_run *answer, struct diag *diag)
{
    int64_t beyond = INT64_MAX;
    for (size_t i = 0; i < v->rows->row_count; i++) {
        const struct external_run *layout = &v->rows->rows[i];
        struct setup setup = {0};
        struct validated_run there = {0};
        enum mfu_convention convention;
        if (layout->metric != METRIC_LAYOUT ||
            !external_are_in_same_group(row, layout, VALIDATION_LENGTHS_KEY))
            continue;
        enum status status = load_run_setup(v, layout, EXTERNAL_ARGS, &setup, &convention, diag);
        if (status == STATUS_OK)
            status = predict_run(&setup, layout, convention, false, &there, diag);
        setup_release(&setup);
        if (status != STATUS_OK)
            return status;
        if (there.verdict.fits && layout->seq_len > answer->longest_tokens) {
            answer->longest_tokens = layout->seq_len;
            answer->verdict = there.verdict;
            answer->reserved = there.reserved;
        } else if (!there.verdict.fits && layout->seq_len < beyond) {
            beyond = layout->seq_len;
            answer->verdict_on_next_length_or_against = there.verdict;
        }
    }
    return STATUS_OK;
}

void validation_predict(const struct validation *v, size_t job, struct validated_run *answer)
{
    const struct external_run *row = &v->rows->rows[v->first_row_of_each_run[job]];
    struct setup setup = {0};
    struct diag diag = {0};
    enum mfu_convention convention;
    enum status status = load_run_setup(v, row, EXTERNAL_ARGS, &setup, &convention, &diag);
    if (status == STATUS_OK && subsequence_predicts_metric(row->metric)) {
        answer->verdict.fits = true; /* nothing reads it */
        status = subsequence_predict_row_figure(&answer->activation_bytes_or_copy_s, &setup,
                                                row->metric, &diag);
    } else if (status == STATUS_OK && searches_by_doubling(row)) {
        search_longest(&setup, !row->is_lower_bound, answer, &diag);
    } else if (status == STATUS_OK && row->metric == METRIC_MAX_SEQ_LEN) {
        status = search_longest_among_layouts(v, row, answer, &diag);
    } else if (status == STATUS_OK) {
        status = predict_run(&setup, row, convention, v->does_run_need_times[job], answer, &diag);
        if (status == STATUS_OK && row->metric == METRIC_SPEEDUP)
            status = find_speedup(v, row, answer, &diag);
    }
    answer->has_succeeded = status == STATUS_OK && diag.error_count == 0;
    if (!answer->has_succeeded)
        validation_put_error(answer->error, sizeof answer->error, &diag);
    diag_release(&diag);
    setup_release(&setup);
}

static void answer_job(void *context, size_t job, void *result)
{
    validation_predict(context, job, result);
}

/* ---- runs and rows ---- */

static bool metric_needs_time(const struct external_run *row)
{
    static const bool wants_time[METRIC_COUNT] = {
        [METRIC_TGS] = true,
        [METRIC_MFU] = true,
        [METRIC_STEP_MS] = true,
        [METRIC_ATTENTION_MS] = true,
        [METRIC_SEQALLTOALL_MS] = true,
        [METRIC_COMM_OVER_COMPUTE] = true,
        [METRIC_ROTATION_US] = true,
        [METRIC_SPEEDUP] = true,
    };
    return wants_time[row->metric];
}

bool validation_are_rows_of_one_run(const struct external_run *a, const struct external_run *b)
{
    static const enum external_column columns[] = {
        EXTERNAL_SOURCE, EXTERNAL_PLACE, EXTERNAL_FRAMEWORK, EXTERNAL_MODEL, EXTERNAL_ARGS};
    for (size_t i = 0; i < ARRAY_LEN(columns); i++)
        if (strcmp(a->cells[columns[i]], b->cells[columns[i]]) != 0)
            return false;
    return true;
}

/* Returns whether a metric needs more than one prediction of the step, or another kind of prediction. */
static bool needs_prediction_of_its_own(enum measurement_metric metric)
{
    return metric == METRIC_MAX_SEQ_LEN || metric == METRIC_SPEEDUP ||
           subsequence_predicts_metric(metric);
}

/* Returns whether one prediction serves both rows. */
static bool same_prediction(const struct external_run *a, const struct external_run *b)
{
    /* a metric that needs a prediction of its own shares it only with rows of the same metric */
    const bool is_of_step =
        !needs_prediction_of_its_own(a->metric) && !needs_prediction_of_its_own(b->metric);
    return strcmp(a->cells[EXTERNAL_ARGS], b->cells[EXTERNAL_ARGS]) == 0 &&
           strcmp(a->cells[EXTERNAL_AGAINST], b->cells[EXTERNAL_AGAINST]) == 0 &&
           a->gpus == b->gpus && a->seq_len == b->seq_len &&
           strcmp(a->place.name, b->place.name) == 0 && a->is_lower_bound == b->is_lower_bound &&
           (is_of_step || a->metric == b->metric);
}

void validation_plan_runs(struct validation *v, const struct external_runs *rows)
{
    *v = (struct validation){.rows = rows,
                             .setup_loader = v->setup_loader,
                             .perturbation = v->perturbation,
                             .perturbation_count = v->perturbation_count};
    size_t count = rows->row_count, *first = arena_array(&v->arena, count + 1, sizeof *first);
    v->row = arena_array(&v->arena, count + 1, sizeof *v->row);
    v->does_run_need_times = arena_array(&v->arena, count + 1, sizeof *v->does_run_need_times);
    for (size_t i = 0; i < count; i++) {
        const struct external_run *row = &v->rows->rows[i];
        size_t run = 0;
        v->row[i].run_index = SIZE_MAX;
        if (row->metric == METRIC_LAYOUT)
            continue;
        while (run < v->run_count && !same_prediction(row, &v->rows->rows[first[run]]))
            run++;
        if (run == v->run_count) {
            first[v->run_count++] = i;
        }
        v->does_run_need_times[run] |= metric_needs_time(row);
        v->row[i].run_index = run;
    }
    v->first_row_of_each_run = first;
    v->answer = heap_zalloc(v->run_count + 1, sizeof *v->answer);
}

double validation_relative_error(const struct external_run *row, double predicted)
{
    return row->metric == METRIC_STEP_MS ? row->value / predicted - 1 : predicted / row->value - 1;
}

static void judge_value(struct validation *v, size_t i, double predicted)
{
    const struct external_run *row = &v->rows->rows[i];
    struct validated_row *out = &v->row[i];
    out->result.predicted = predicted / row->si_factor;
    if (row->value == 0) {
        out->result.outcome = OUTCOME_PUBLISHED_ZERO;
        return;
    }
    out->result.relative_error = validation_relative_error(row, out->result.predicted);
    out->result.outcome = OUTCOME_OK;
    out->counts_in_means = row->is_counted;
    if (!out->counts_in_means)
        out->remark = row->cells[EXTERNAL_COUNTS];
}

/* Judges an MFU. If the source counts recomputed flops but the run recomputes nothing, the MFU counts three forwards
 * (factor 3), and a note gives the MFU and its error with four forwards (factor 4), too. */
static void judge_mfu(struct validation *v, size_t i, const struct validated_run *answer)
{
    struct validated_row *out = &v->row[i];
    judge_value(v, i, answer->mfu);
    if (out->result.outcome == OUTCOME_OK && answer->counts_recompute)
        out->remark = arena_printf(&v->arena, "factor 3; factor 4 gives %.4g, %+.1f %%%s",
                                   answer->mfu_other_factor,
                                   100 * (answer->mfu_other_factor / v->rows->rows[i].value - 1),
                                   out->counts_in_means ? "" : "; neither is counted");
}

static void judge_length(struct validation *v, size_t i, const struct validated_run *answer)
{
    const struct external_run *row = &v->rows->rows[i];
    struct validated_row *out = &v->row[i];
    double longest = (double)answer->longest_tokens;
    bool right = !row->is_number       ? answer->longest_tokens == 0
                 : row->is_lower_bound ? longest >= row->value
                                       : longest == row->value;
    out->result.outcome = right ? OUTCOME_RIGHT : OUTCOME_WRONG;
    if (answer->longest_tokens > 0)
        out->result.predicted = longest;
    else
        out->result.predicted_text = measurement_word_instead_of_number(METRIC_MAX_SEQ_LEN);
}

static void judge_verdict(struct validation *v, size_t i, const struct validated_run *answer)
{
    struct validated_row *out = &v->row[i];
    out->result.predicted_text =
        answer->verdict.fits ? "fits" : measurement_word_instead_of_number(METRIC_VERDICT);
    out->result.outcome = answer->verdict.fits ? OUTCOME_WRONG : OUTCOME_RIGHT;
}

static void judge_row(struct validation *v, size_t i)
{
    const struct external_run *row = &v->rows->rows[i];
    struct validated_row *out = &v->row[i];
    out->result = external_make_unknown_prediction();
    if (out->run_index == SIZE_MAX) {
        out->result.outcome = OUTCOME_NOT_COMPARABLE;
        return;
    }
    const struct validated_run *answer = &v->answer[out->run_index];
    if (!answer->has_succeeded) {
        out->result.status_reason = answer->error;
        return;
    }
    switch (row->metric) {
    case METRIC_TGS:
        judge_value(v, i, answer->tokens_per_s_gpu);
        break;
    case METRIC_MFU:
        judge_mfu(v, i, answer);
        break;
    case METRIC_STEP_MS:
        judge_value(v, i, answer->step_s);
        break;
    case METRIC_ATTENTION_MS:
        judge_value(v, i, answer->operator_times.elapsed_s);
        break;
    case METRIC_SEQALLTOALL_MS:
        judge_value(v, i, answer->operator_times.all_to_all_and_its_kernels_s);
        break;
    case METRIC_COMM_OVER_COMPUTE:
        judge_value(v, i, answer->operator_times.ring_s / answer->operator_times.compute_s);
        break;
    case METRIC_ROTATION_US:
        judge_value(v, i, answer->operator_times.mean_rotation_message_s);
        break;
    case METRIC_PEAK_HBM:
        judge_value(v, i, (double)answer->reserved.total_bytes);
        break;
    case METRIC_RESERVED_MEMORY:
        judge_value(v, i, (double)reserved_allocator_bytes(&answer->reserved));
        break;
    case METRIC_MAX_SEQ_LEN:
        judge_length(v, i, answer);
        break;
    case METRIC_SPEEDUP:
        judge_value(v, i, answer->speedup);
        break;
    case METRIC_ACTIVATION_MEMORY:
    case METRIC_FIRST_SUBSEQUENCE_ACTIVATION:
    case METRIC_LAST_SUBSEQUENCE_ACTIVATION:
    case METRIC_FIRST_OFFLOAD_MS:
    case METRIC_LAST_OFFLOAD_MS:
        judge_value(v, i, answer->activation_bytes_or_copy_s);
        break;
    case METRIC_VERDICT:
        judge_verdict(v, i, answer);
        break;
    case METRIC_LAYOUT:
    case METRIC_TOKENS_PER_S:
    case METRIC_SEQUENCES_PER_S:
    case METRIC_TFLOPS:
    case METRIC_COUNT:
        out->result.status_reason =
            "this metric is compared only of a training step: give measured_step_s";
        break;
    }
}

void validation_judge(struct validation *v)
{
    for (size_t i = 0; i < v->rows->row_count; i++)
        judge_row(v, i);
}

enum status validation_run(struct validation *v, const struct external_runs *rows,
                           struct diag *diag)
{
    validation_plan_runs(v, rows);
    struct progress progress;
    progress_begin(&progress, v->run_count, 0);
    enum status status =
        workers_run(v->run_count, sizeof *v->answer, answer_job, v, v->answer, &progress, diag);
    progress_end();
    if (status == STATUS_OK)
        validation_judge(v);
    return status;
}

bool validation_are_rows_of_one_table(const struct validation *v, size_t a, size_t b)
{
    const struct external_run *one = &v->rows->rows[a], *other = &v->rows->rows[b];
    return strcmp(one->cells[EXTERNAL_SOURCE], other->cells[EXTERNAL_SOURCE]) == 0 &&
           strcmp(one->cells[EXTERNAL_PLACE], other->cells[EXTERNAL_PLACE]) == 0 &&
           one->metric == other->metric;
}

struct error_means validation_table_means(const struct validation *v, size_t i, bool *done)
{
    struct error_means means = {0};
    for (size_t k = i; k < v->rows->row_count; k++)
        if (v->row[k].counts_in_means && validation_are_rows_of_one_table(v, i, k)) {
            done[k] = true;
            error_means_add(&means, v->row[k].result.relative_error);
        }
    return means;
}

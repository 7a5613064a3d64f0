#include "predict/validate/validation.h"

#include "predict/plan/longest.h"
#include "predict/workers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longest lengths are searched among the printed length times powers of two, from MEASURED_SHORTEST to this. */
#define LONGEST ((int64_t)1 << 26)

void validation_release(struct validation *v)
{
    arena_release(&v->arena);
    free(v->answer);
    *v = (struct validation){0};
}

/* ---- one run ---- */

/* Searches for the longest length that fits. Papers double lengths, so the ladder has the printed length, its halves
 * down to MEASURED_SHORTEST and, if `above`, its doubles up to LONGEST. */
static void search(const struct setup *setup, bool above, struct run_answer *answer,
                   struct diag *diag)
{
    int64_t seq = setup->request.seq;
    struct ladder ladder = {.first = seq, .doubles = true};
    struct longest longest;
    while (ladder.first / 2 >= MEASURED_SHORTEST)
        ladder.first /= 2;
    while (ladder_length(&ladder, ladder.rungs) <= (above ? LONGEST : seq) || ladder.rungs == 0)
        ladder.rungs++;
    if (longest_find(&longest, setup, &setup->request, &ladder, seq, NULL, diag) != STATUS_OK)
        return;
    answer->longest = longest.tokens;
    answer->verdict = longest.tokens > 0 ? longest.at : longest.beyond;
    answer->beyond = longest.beyond;
    answer->reserved = longest.reserved;
}

static void predict(const struct setup *setup, const struct measurement *row, bool timed,
                    struct run_answer *answer, struct diag *diag)
{
    struct prediction p = {0};
    enum status status = prediction_memory(&p, setup, &setup->request, NULL, diag);
    if (status == STATUS_OK && timed)
        status = prediction_time(&p, false, diag);
    if (status == STATUS_OK) {
        answer->verdict = p.verdict;
        answer->reserved = p.reserved;
    }
    if (status == STATUS_OK && timed) {
        enum mfu_convention convention =
            measured_defaults(row->text[MEASUREMENT_SOURCE])->convention;
        double peak = setup->cluster.device.peak_flop_per_s;
        answer->like = similarity_of(&p);
        answer->step_s = p.sim.step_s;
        answer->has_baseline = baseline_knows(&p.choices);
        if (answer->has_baseline)
            answer->baseline = baseline_of(&p.choices, &setup->cluster);
        if (p.choices.scope != SCOPE_STEP)
            answer->operator= operator_times_of(&p);
        answer->tokens_per_s_gpu = p.tokens_per_s_gpu;
        answer->mfu = prediction_mfu(&p, convention);
        answer->mfu_other =
            mfu_fraction(convention, &setup->model, p.choices.seq, prediction_sequences(&p),
                         !prediction_recomputes(&p), p.sim.step_s, p.choices.ranks, peak);
    }
    prediction_release(&p);
}

static void put_error(struct run_answer *answer, const struct diag *diag)
{
    size_t size = 0;
    const char *text = diag_first(diag, &size);
    snprintf(answer->error, sizeof answer->error, "%.*s", (int)size,
             text != NULL ? text : "failed");
}

static void apply_perturbations(struct setup *setup, const void *context)
{
    const struct validation *v = context;
    for (size_t i = 0; i < v->perturbations; i++)
        perturbation_apply(setup, v->perturbation[i]);
}

void validation_predict(const struct validation *v, size_t job, struct run_answer *answer)
{
    const struct measurement *row = &v->rows->row[v->first_row[job]];
    struct setup setup = {0};
    struct diag diag = {0};
    const struct setup_change perturbations = {apply_perturbations, v};
    if (sppo_row(row)) {
        sppo_predict(&answer->sppo, row, &perturbations, &diag);
        answer->longest = answer->sppo.longest_scored;
        answer->verdict = answer->sppo.verdict;
        answer->beyond = answer->sppo.beyond;
    } else if (subsequence_row(row)) {
        subsequence_predict(&answer->subsequence, row, &perturbations, &diag);
        answer->verdict.fits = true; /* not used */
    } else if (measured_setup(&setup, row, &diag) == STATUS_OK) {
        setup_apply(&setup, &perturbations);
        if (v->search[job])
            search(&setup, !measured_lower_bound(row), answer, &diag);
        else
            predict(&setup, row, v->timed[job], answer, &diag);
    }
    answer->ok = diag.errors == 0;
    if (!answer->ok)
        put_error(answer, &diag);
    diag_release(&diag);
    setup_release(&setup);
}

static void run_one(void *context, size_t job, void *result)
{
    validation_predict(context, job, result);
}

/* ---- rows ---- */

static bool needs_time(const struct measurement *row)
{
    static const bool timed[METRIC_COUNT] = {
        [METRIC_TGS] = true,
        [METRIC_MFU] = true,
        [METRIC_STEP_MS] = true,
        [METRIC_ATTENTION_MS] = true,
        [METRIC_SEQALLTOALL_MS] = true,
        [METRIC_COMM_OVER_COMPUTE] = true,
        [METRIC_ROTATION_US] = true,
    };
    return timed[row->metric];
}

/* True if two rows share a prediction. A row of an exchange shares it only with rows of the same exchange, since a
 * schedule of its own times it. */
static bool same_prediction(const struct measurement *a, const struct measurement *b)
{
    return (a->metric == METRIC_SEQALLTOALL_MS) == (b->metric == METRIC_SEQALLTOALL_MS) &&
           measured_same_run(a, b);
}

void validation_plan(struct validation *v, const struct measurements *rows)
{
    *v = (struct validation){
        .rows = rows, .perturbation = v->perturbation, .perturbations = v->perturbations};
    size_t count = rows->count, *first = arena_array(&v->arena, count + 1, sizeof *first);
    v->row = arena_array(&v->arena, count + 1, sizeof *v->row);
    v->search = arena_array(&v->arena, count + 1, sizeof *v->search);
    v->timed = arena_array(&v->arena, count + 1, sizeof *v->timed);
    for (size_t i = 0; i < count; i++) {
        const struct measurement *row = &v->rows->row[i];
        struct text why = {0};
        v->row[i].run = SIZE_MAX;
        if (!measured_supported(row, &why)) {
            v->row[i].why = arena_text(&v->arena, why.data, why.size);
            text_release(&why);
            continue;
        }
        bool is_search = row->metric == METRIC_MAX_SEQ_LEN;
        size_t run = 0;
        while (run < v->run_count &&
               (v->search[run] != is_search || !same_prediction(row, &v->rows->row[first[run]])))
            run++;
        if (run == v->run_count) {
            first[v->run_count++] = i;
            v->search[run] = is_search;
        }
        v->timed[run] |= needs_time(row);
        v->row[i].run = run;
    }
    v->first_row = first;
    v->answer = heap_zalloc(v->run_count + 1, sizeof *v->answer);
}

/* True if another row that counts has the same cell's tokens per second, which are preferred over its MFU. */
static bool has_tgs(const struct validation *v, size_t i)
{
    for (size_t k = 0; k < v->rows->count; k++)
        if (v->rows->row[k].metric == METRIC_TGS && v->row[k].run == v->row[i].run &&
            v->rows->row[k].value != 0)
            return true;
    return false;
}

static void judge_value(struct validation *v, size_t i, double predicted)
{
    const struct measurement *row = &v->rows->row[i];
    struct validated *out = &v->row[i];
    out->result.predicted = predicted / row->scale;
    if (!row->is_number) {
        out->result.outcome = OUTCOME_ERROR;
        out->result.why = "the value is no number";
        return;
    }
    if (row->value == 0) {
        out->result.outcome = OUTCOME_ZERO;
        return;
    }
    out->result.relative_error = out->result.predicted / row->value - 1;
    out->result.outcome = OUTCOME_OK;
    out->counted = !measured_inferred_from(row);
    if (!out->counted)
        out->other = "a number of its cluster was inferred from this run";
}

static void judge_mfu(struct validation *v, size_t i, const struct run_answer *answer)
{
    const struct measurement *row = &v->rows->row[i];
    struct validated *out = &v->row[i];
    judge_value(v, i, answer->mfu);
    if (out->result.outcome != OUTCOME_OK)
        return;
    const struct source_defaults *d = measured_defaults(row->text[MEASUREMENT_SOURCE]);
    const char *checkpoint = measurement_option(row, "checkpoint");
    bool recomputes = checkpoint != NULL ? strcmp(checkpoint, "none") != 0
                                         : d->activations != CHOICE_ACTIVATIONS_KEEP;
    if (mfu_table[d->convention].counts_recompute && !recomputes) {
        out->counted = false;
        out->other =
            arena_printf(&v->arena, "factor 3; factor 4 gives %.4g, %+.1f %%; neither is counted",
                         answer->mfu_other, 100 * (answer->mfu_other / row->value - 1));
    } else if (has_tgs(v, i)) {
        out->counted = false;
        out->other = "the same run as its tgs: counted there";
    }
}

/* Judges a step time. Its error is of speed, as that of tokens per second, which is the same measurement. */
static void judge_step(struct validation *v, size_t i, const struct run_answer *answer)
{
    struct validated *out = &v->row[i];
    judge_value(v, i, answer->step_s);
    if (out->result.outcome != OUTCOME_OK)
        return;
    out->result.relative_error = 1 / (1 + out->result.relative_error) - 1;
    if (has_tgs(v, i)) {
        out->counted = false;
        out->other = "the same run as its tgs: counted there";
    }
}

/* Judges a speed-up, and notes the other reading of the baseline beside the scored one. */
static void judge_speedup(struct validation *v, size_t i, const struct run_answer *answer)
{
    const struct measurement *row = &v->rows->row[i];
    const char *baseline = measurement_option(row, "baseline");
    bool megatron = baseline != NULL && strcmp(baseline, "megatron-sp") == 0;
    double other = answer->sppo.speedup_other;
    double multiplexed = answer->sppo.speedup_shared;
    const char *shared = "";
    judge_value(v, i, answer->sppo.speedup);
    if (!isnan(multiplexed) && row->value != 0)
        shared = arena_printf(&v->arena, "; multiplexed %.4g, %+.1f %%", multiplexed,
                              100 * (multiplexed / row->value - 1));
    if (!isnan(other) && row->value != 0)
        v->row[i].other =
            arena_printf(&v->arena, "baseline %s %.4g, %+.1f %%%s",
                         megatron ? "on the same subsequences; on whole sequences"
                                  : "in FPDT's chunks; Ulysses with checkpoints on the host",
                         other, 100 * (other / row->value - 1), shared);
    const struct sppo_layout *layout = sppo_layout_find(row->text[MEASUREMENT_MODEL]);
    if (megatron && layout != NULL && layout->unexplained && v->row[i].counted) {
        v->row[i].counted = false;
        v->row[i].other = arena_printf(&v->arena, "unexplained, in no mean; %s",
                                       v->row[i].other != NULL ? v->row[i].other : "");
    }
}

/* Judges a subsequence by the balance with full attention, as the figure's sizes suggest; notes the other balance. */
static void judge_subsequence(struct validation *v, size_t i, const struct run_answer *answer)
{
    const struct measurement *row = &v->rows->row[i];
    double halved = subsequence_value(&answer->subsequence, row->metric, true) / row->scale;
    judge_value(v, i, subsequence_value(&answer->subsequence, row->metric, false));
    if (row->metric != METRIC_ACTIVATION_MEMORY && row->value != 0)
        v->row[i].other =
            arena_printf(&v->arena, "balanced by full attention; halved gives %.4g, %+.1f %%",
                         halved, 100 * (halved / row->value - 1));
}

static void judge_length(struct validation *v, size_t i, const struct run_answer *answer)
{
    const struct measurement *row = &v->rows->row[i];
    struct validated *out = &v->row[i];
    double longest = (double)answer->longest;
    bool right = !row->is_number             ? answer->longest == 0
                 : measured_lower_bound(row) ? longest >= row->value
                                             : longest == row->value;
    out->result.outcome = right ? OUTCOME_RIGHT : OUTCOME_WRONG;
    const struct sppo_answer *sppo = &answer->sppo;
    if (sppo->other_as[0] != '\0' && sppo->scored_as[0] != '\0')
        out->other =
            arena_printf(&v->arena, "%lld K %s, %lld K %s", (long long)sppo->longest / 1024,
                         sppo->scored_as, (long long)sppo->longest_other / 1024, sppo->other_as);
    else if (sppo->other_as[0] != '\0')
        out->other = arena_printf(&v->arena, "%lld K %s", (long long)sppo->longest_other / 1024,
                                  sppo->other_as);
    if (answer->longest > 0)
        out->result.predicted = longest;
    else
        out->result.predicted_text = "model does not fit";
}

static void judge_verdict(struct validation *v, size_t i, const struct run_answer *answer)
{
    struct validated *out = &v->row[i];
    bool oom = strcmp(v->rows->row[i].text[MEASUREMENT_VALUE], "OOM") == 0;
    if (!oom && strcmp(v->rows->row[i].text[MEASUREMENT_VALUE], "fits") != 0) {
        out->result.outcome = OUTCOME_ERROR;
        out->result.why = "the verdict is neither OOM nor fits";
        return;
    }
    out->result.predicted_text = answer->verdict.fits ? "fits" : "OOM";
    out->result.outcome = answer->verdict.fits != oom ? OUTCOME_RIGHT : OUTCOME_WRONG;
}

static void judge(struct validation *v, size_t i)
{
    const struct measurement *row = &v->rows->row[i];
    struct validated *out = &v->row[i];
    out->result.predicted = out->result.relative_error = NAN;
    if (out->run == SIZE_MAX) {
        out->result.outcome = OUTCOME_UNSUPPORTED;
        return;
    }
    const struct run_answer *answer = &v->answer[out->run];
    if (!answer->ok) {
        out->result.outcome = OUTCOME_ERROR;
        out->result.why = answer->error;
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
        judge_step(v, i, answer);
        break;
    case METRIC_ATTENTION_MS:
        judge_value(v, i, answer->operator.elapsed_s);
        break;
    case METRIC_SEQALLTOALL_MS:
        judge_value(v, i, answer->operator.exchange_s);
        break;
    case METRIC_COMM_OVER_COMPUTE:
        judge_value(v, i, answer->operator.ring_s / answer->operator.compute_s);
        break;
    case METRIC_ROTATION_US:
        judge_value(v, i, answer->operator.rotation_s);
        break;
    case METRIC_PEAK_HBM:
        judge_value(v, i,
                    measured_defaults(v->rows->row[i].text[MEASUREMENT_SOURCE])->allocator_only
                        ? (double)reserved_by_allocator(&answer->reserved)
                        : (double)answer->reserved.total);
        break;
    case METRIC_MAX_SEQ_LEN:
        judge_length(v, i, answer);
        break;
    case METRIC_SPEEDUP:
        judge_speedup(v, i, answer);
        break;
    case METRIC_ACTIVATION_MEMORY:
    case METRIC_FIRST_SUBSEQUENCE_ACTIVATION:
    case METRIC_LAST_SUBSEQUENCE_ACTIVATION:
    case METRIC_FIRST_OFFLOAD_MS:
    case METRIC_LAST_OFFLOAD_MS:
        judge_subsequence(v, i, answer);
        break;
    default:
        judge_verdict(v, i, answer);
        break;
    }
}

void validation_judge(struct validation *v)
{
    for (size_t i = 0; i < v->rows->count; i++)
        judge(v, i);
}

enum status validation_run(struct validation *v, const struct measurements *rows, struct diag *diag)
{
    validation_plan(v, rows);
    struct progress progress;
    progress_begin(&progress, v->run_count, 0);
    enum status status =
        workers_run(v->run_count, sizeof *v->answer, run_one, v, v->answer, &progress, diag);
    progress_end();
    if (status == STATUS_OK)
        validation_judge(v);
    return status;
}

bool validation_same_table(const struct validation *v, size_t a, size_t b)
{
    const struct measurement *one = &v->rows->row[a], *other = &v->rows->row[b];
    return strcmp(one->text[MEASUREMENT_SOURCE], other->text[MEASUREMENT_SOURCE]) == 0 &&
           strcmp(one->text[MEASUREMENT_TABLE], other->text[MEASUREMENT_TABLE]) == 0 &&
           one->metric == other->metric;
}

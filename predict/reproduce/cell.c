#include "predict/reproduce/cell.h"

#include "predict/documents/batches.h"
#include "predict/documents/packed_sets.h"
#include "predict/longhaul.h"
#include "predict/operator_times.h"
#include "predict/plan/longest.h"
#include "predict/reproduce/block_tensors.h"
#include "schedule/config/resolve_config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The longest length, in tokens, that a search tries. FPDT's Table 1 has none that is longer. */
#define LONGEST_LENGTH_TOKENS ((int64_t)1 << 23)

#define GIB 1073741824.0

const char *const cell_question_names[CELL_QUESTION_COUNT] = {"memory", "time", "longest"};

static const struct {
    const char *name;
    enum cell_question question;
    bool needs_fit;
} measures[MEASURE_COUNT] = {
#define MEASURE(symbol, name, question, needs_fit) {name, CELL_##question, needs_fit},
    CELL_MEASURES(MEASURE)
#undef MEASURE
};

bool measure_find(const char *name, enum measure *measure)
{
    for (int i = 0; i < MEASURE_COUNT; i++)
        if (strcmp(measures[i].name, name) == 0) {
            *measure = (enum measure)i;
            return true;
        }
    return false;
}

enum cell_question measure_needed_question(enum measure measure)
{
    return measures[measure].question;
}

bool measure_needs_fit(enum measure measure)
{
    return measures[measure].needs_fit;
}

void measure_put_names(struct text *out)
{
    for (int i = 0; i < MEASURE_COUNT; i++)
        text_printf(out, "%s%s", i > 0 ? ", " : "", measures[i].name);
}

void cell_set_error(struct cell_answer *answer, const struct diag *diag)
{
    size_t size = 0;
    const char *text = diag_first_message(diag, &size);
    answer->has_succeeded = false;
    snprintf(answer->error, sizeof answer->error, "%.*s", (int)size, text != NULL ? text : "");
}

/* ---- measures ---- */

static void store_memory_measures(struct cell_answer *answer, const struct verdict *verdict,
                                  uint64_t tensors_bytes)
{
    struct text lacks = {0};
    answer->fits = verdict->fits;
    answer->value[MEASURE_FITS] = verdict->fits;
    answer->value[MEASURE_DEVICE_GIB] = (double)verdict->needed_bytes[LIMIT_DEVICE] / GIB;
    answer->value[MEASURE_HOST_GIB] = (double)verdict->needed_bytes[LIMIT_HOST] / GIB;
    answer->value[MEASURE_TENSORS_GIB] = (double)tensors_bytes / GIB;
    if (!verdict->fits) {
        text_printf(&lacks, "%s ", prediction_limit_name(verdict->limiting_memory));
        verdict_print(&lacks, verdict, verdict->limiting_memory);
        snprintf(answer->missing_memory_name, sizeof answer->missing_memory_name, "%s", lacks.data);
    }
    text_release(&lacks);
}

static void store_block_measures(struct cell_answer *answer, const struct ir *ir)
{
    struct block_tensor_to_input_ratios forward, backward;
    block_tensors_find(&forward, &backward, ir);
    answer->value[MEASURE_HIDDEN] = forward.hidden;
    answer->value[MEASURE_QKV] = forward.qkv;
    answer->value[MEASURE_EXCHANGE] = forward.exchange;
    answer->value[MEASURE_ATTENTION] = forward.attention;
    answer->value[MEASURE_FFN] = forward.ffn;
    answer->value[MEASURE_HIDDEN_BACKWARD] = backward.hidden;
    answer->value[MEASURE_QKV_BACKWARD] = backward.qkv;
    answer->value[MEASURE_ATTENTION_BACKWARD] = backward.attention;
    answer->value[MEASURE_FFN_BACKWARD] = backward.ffn;
}

static void store_step_measures(struct cell_answer *answer, const struct prediction *p)
{
    static const enum cause bubble[] = {CAUSE_PIPELINE_FILL, CAUSE_PIPELINE_DRAIN,
                                        CAUSE_PIPELINE_IMBALANCE};
    static const enum cause exposed[] = {CAUSE_ALL_TO_ALL, CAUSE_RING, CAUSE_WEIGHT_COLLECTIVES,
                                         CAUSE_OTHER_COLLECTIVES};
    struct prediction_result r;
    double bubble_s = 0, exposed_s = 0;
    prediction_fill_result(&r, p);
    for (size_t i = 0; i < ARRAY_LEN(bubble); i++)
        bubble_s += r.cause_s[bubble[i]];
    for (size_t i = 0; i < ARRAY_LEN(exposed); i++)
        exposed_s += r.cause_s[exposed[i]];
    double *value = answer->value;
    value[MEASURE_STEP_S] = r.step_s;
    value[MEASURE_TOKENS] = r.tokens_per_s_gpu;
    value[MEASURE_MFU] = r.mfu[MFU_LONGHAUL];
    value[MEASURE_MFU_LOONGTRAIN] = r.mfu[MFU_LOONGTRAIN];
    value[MEASURE_MFU_TORCHTITAN] = r.mfu[MFU_TORCHTITAN];
    value[MEASURE_MFU_FPDT] = r.mfu[MFU_FPDT];
    value[MEASURE_BILLION_HOURS] = 1e9 / (r.tokens_per_s_gpu * prediction_gpus(p)) / 3600;
    value[MEASURE_BUBBLE_S] = bubble_s;
    value[MEASURE_BUBBLE_SHARE] = bubble_s / r.step_s;
    value[MEASURE_EXPOSED_SHARE] = exposed_s / r.step_s;
}

static void store_part_measures(struct cell_answer *answer, const struct prediction *p)
{
    struct operator_times t = operator_times_of(p);
    double *value = answer->value;
    value[MEASURE_ELAPSED_MS] = 1e3 * t.elapsed_s;
    value[MEASURE_EXCHANGE_MS] = 1e3 * t.all_to_all_and_its_kernels_s;
    value[MEASURE_COMPUTE_MS] = 1e3 * t.compute_s;
    value[MEASURE_RING_MS] = 1e3 * t.ring_s;
    value[MEASURE_RING_OVER_COMPUTE] = t.ring_s / t.compute_s;
    value[MEASURE_EXCHANGE_OVER_COMPUTE] = t.all_to_all_and_its_kernels_s / t.compute_s;
    value[MEASURE_FETCH_PAIR_MS] = 1e3 * t.fetch_keys_and_values_s;
    value[MEASURE_FETCH_SET_MS] = 1e3 * t.fetch_all_inputs_s;
}

/* ---- packed documents ---- */

/* Packs the documents that the setup asks for, and gives *request those of the first step. */
static enum status pack_documents_of_cell(const struct packed_set **packed_set,
                                          struct packed_sets *packed_sets, struct documents *first,
                                          struct request *request, struct diag *diag)
{
    struct choices choices;
    enum status status = resolve_choices(&choices, request, NULL, diag);
    if (status == STATUS_OK)
        status = packed_sets_find_or_pack(packed_set, packed_sets, request, &choices, diag);
    if (status == STATUS_OK) {
        packed_batch_fill_documents(&(*packed_set)->batch[0],
                                    (*packed_set)->packing_options.sequence_tokens, first,
                                    &packed_sets->arena);
        request->documents = first;
    }
    return status;
}

/* Takes every four successive packed steps as the micro-batches of a larger step. Returns the slowest of the four
 * divided by their mean, averaged over the larger steps; NAN: there are fewer than four steps. */
static double slowest_to_mean_of_4(const double *step_s, size_t count)
{
    double sum = 0;
    size_t groups_of_4 = count / 4;
    for (size_t i = 0; i < groups_of_4; i++) {
        const double *s = step_s + 4 * i;
        sum += 4 * fmax(fmax(s[0], s[1]), fmax(s[2], s[3])) / (s[0] + s[1] + s[2] + s[3]);
    }
    return groups_of_4 > 0 ? sum / (double)groups_of_4 : NAN;
}

/* Replaces the time of the first packed step by the mean over all packed steps and, if whole steps are predicted, its
 * rate by the rate of all of them together. Its other measures stay. Sets MEASURE_SLOWEST_OF_4. */
static enum status store_batch_measures(struct cell_answer *answer, const struct prediction *p,
                                        const struct packed_set *packed_set, struct diag *diag)
{
    struct batch_times times = {0};
    enum status status =
        batch_times_make(&times, p, packed_set->batch, packed_set->batch_count, diag);
    double all_s = 0;
    for (size_t i = 0; i < packed_set->batch_count && status == STATUS_OK; i++)
        all_s += times.step_s[i];
    if (status == STATUS_OK && p->choices.scope == SCOPE_WHOLE_STEP) {
        answer->value[MEASURE_STEP_S] = all_s / (double)packed_set->batch_count;
        answer->value[MEASURE_TOKENS] = times.tokens_per_s / prediction_gpus(p);
    } else if (status == STATUS_OK) {
        answer->value[MEASURE_ELAPSED_MS] = 1e3 * all_s / (double)packed_set->batch_count;
    }
    if (status == STATUS_OK)
        answer->value[MEASURE_SLOWEST_OF_4] = slowest_to_mean_of_4(times.step_s, times.batch_count);
    batch_times_release(&times);
    return status;
}

/* ---- questions ---- */

static enum status answer_step_of_cell(struct cell_answer *answer, const struct setup *setup,
                                       bool timed, bool unfit_too, struct diag *diag)
{
    struct prediction p = {0};
    struct packed_sets packed_sets = {0};
    const struct packed_set *packed_set = NULL;
    struct documents first;
    struct request request = setup->request;
    const struct prediction_question question = {.setup = setup, .request = &request};
    enum status status = STATUS_OK;
    if (setup->sampled_packing != NULL) {
        packed_sets.request = *setup->sampled_packing;
        status = pack_documents_of_cell(&packed_set, &packed_sets, &first, &request, diag);
    }
    if (status == STATUS_OK)
        status = prediction_memory(&p, &question, NULL, diag);
    if (status == STATUS_OK)
        store_memory_measures(answer, &p.verdict, p.ir.planned_bytes[MEMORY_HBM]);
    if (status == STATUS_OK && p.choices.scope == SCOPE_ONE_LAYER)
        store_block_measures(answer, &p.ir);
    if (status == STATUS_OK && timed && (p.verdict.fits || unfit_too)) {
        status = prediction_time(&p, diag);
        if (status == STATUS_OK && p.choices.scope == SCOPE_WHOLE_STEP)
            store_step_measures(answer, &p);
        else if (status == STATUS_OK)
            store_part_measures(answer, &p);
        if (status == STATUS_OK && packed_set != NULL)
            status = store_batch_measures(answer, &p, packed_set, diag);
    }
    prediction_release(&p);
    packed_sets_release(&packed_sets);
    return status;
}

static enum status answer_longest_length_of_cell(struct cell_answer *answer,
                                                 const struct setup *setup, struct diag *diag)
{
    struct length_ladder ladder = {.first_length_or_step_tokens = setup->request.seq,
                                   .length_count = 1,
                                   .do_lengths_double = true};
    struct longest longest;
    while (ladder_tokens_of_rung(&ladder, ladder.length_count) <= LONGEST_LENGTH_TOKENS)
        ladder.length_count++;
    enum status status = longest_find(&longest, setup, &setup->request, &ladder, 0, NULL, diag);
    if (status != STATUS_OK)
        return status;
    store_memory_measures(
        answer, longest.tokens > 0 ? &longest.verdict : &longest.verdict_of_shortest_unfit, 0);
    answer->value[MEASURE_TENSORS_GIB] = NAN;
    answer->value[MEASURE_LONGEST] = (double)longest.tokens;
    return STATUS_OK;
}

void cell_predict(struct cell_answer *answer, const struct setup *setup,
                  enum cell_question question, bool unfit_too)
{
    struct diag diag = {0};
    for (int i = 0; i < MEASURE_COUNT; i++)
        answer->value[i] = NAN;
    answer->has_succeeded =
        (question == CELL_LONGEST ? answer_longest_length_of_cell(answer, setup, &diag)
                                  : answer_step_of_cell(answer, setup, question == CELL_TIME,
                                                        unfit_too, &diag)) == STATUS_OK;
    if (!answer->has_succeeded)
        cell_set_error(answer, &diag);
    diag_release(&diag);
}

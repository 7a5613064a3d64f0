#include "predict/validate/sppo_row.h"

#include "predict/validate/measured_row.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The system that a row measured, by its column `system`. */
enum party { PARTY_SPPO, PARTY_MEGATRON, PARTY_DEEPSPEED, PARTY_COUNT };

static enum party party_of_name(const char *name)
{
    static const struct {
        const char *name;
        enum party party;
    } names[] = {{"sppo", PARTY_SPPO},
                 {"megatron-sp", PARTY_MEGATRON},
                 {"ulysses", PARTY_DEEPSPEED},
                 {"fpdt", PARTY_DEEPSPEED},
                 {"deepspeed", PARTY_DEEPSPEED}};
    for (size_t i = 0; name != NULL && i < ARRAY_LEN(names); i++)
        if (strcmp(names[i].name, name) == 0)
            return names[i].party;
    return PARTY_COUNT;
}

static enum party party_of(const struct measurement *row)
{
    return party_of_name(row->text[MEASUREMENT_SYSTEM]);
}

/* Returns the baseline of a row's speed-up. PARTY_SPPO: SPPO's own run that sends nothing to the host. */
static enum party baseline_of_row(const struct measurement *row)
{
    const char *name = measurement_option(row, "baseline");
    if (name != NULL && strcmp(name, "offload:none") == 0)
        return PARTY_SPPO;
    enum party party = party_of_name(name);
    return party == PARTY_SPPO ? PARTY_COUNT : party;
}

static const struct sppo_layout *layout_of(const struct measurement *row)
{
    return sppo_layout_find(row->text[MEASUREMENT_MODEL]);
}

static int offload_of(const char *name)
{
    for (int i = 0; name != NULL && i <= SPPO_ADAPTIVE; i++) /* those that rows name */
        if (strcmp(name, sppo_system_names[i]) == 0)
            return i;
    return -1;
}

/* Returns the SPPO system to which a row belongs; -1: an unknown one. Stages share subsequences only with adaptive
 * offload. That is the default of a row that names no offload, but a speed-up must name one. */
static int system_of(const struct measurement *row)
{
    const char *multiplex = measurement_option(row, "multiplex");
    const char *named = measurement_option(row, "offload");
    int offload =
        named == NULL && row->metric != METRIC_SPEEDUP ? SPPO_ADAPTIVE : offload_of(named);
    if (multiplex == NULL || strcmp(multiplex, "0") == 0)
        return offload;
    return strcmp(multiplex, "1") == 0 && offload == SPPO_ADAPTIVE ? SPPO_MULTIPLEXED : -1;
}

static bool of_sppo(const struct measurement *row)
{
    return strcmp(row->text[MEASUREMENT_SOURCE], "SPPO") == 0;
}

bool sppo_row(const struct measurement *row)
{
    return of_sppo(row) && (row->metric == METRIC_SPEEDUP || row->metric == METRIC_MAX_SEQ_LEN);
}

bool sppo_step_row(const struct measurement *row)
{
    static const bool of_step[METRIC_COUNT] = {
        [METRIC_TGS] = true,      [METRIC_MFU] = true,     [METRIC_STEP_MS] = true,
        [METRIC_PEAK_HBM] = true, [METRIC_VERDICT] = true,
    };
    return of_sppo(row) && of_step[row->metric];
}

/* Returns the number that a row gives in place of Table 4's; 0: the row has none; -1: it is not a valid number. */
static int64_t stated(const struct measurement *row, const char *key)
{
    const char *value = measurement_option(row, key);
    int64_t number;
    if (value == NULL)
        return 0;
    return parse_i64(value, strlen(value), &number) && number > 0 ? number : -1;
}

/* Returns the configuration of a row. length: number of a length of the layout; -1: the row's own. */
static struct sppo_cell cell_of(const struct measurement *row, int length)
{
    const struct sppo_layout *layout = layout_of(row);
    int64_t tp = stated(row, "tp"), pp = stated(row, "pp"), pieces = stated(row, "subsequences");
    int found = length < 0 ? sppo_length_find(layout, row->seq_len) : length;
    struct sppo_cell cell = {layout, row->seq_len, 0, layout->tp, layout->pp};
    if (found >= 0)
        cell = sppo_cell_make(layout, found);
    cell.tp = tp > 0 ? tp : cell.tp;
    cell.pp = pp > 0 ? pp : cell.pp;
    cell.pieces = pieces > 0 ? pieces : cell.pieces;
    return cell;
}

bool sppo_supported(const struct measurement *row, struct text *why)
{
    static const char *const known[] = {"offload", "multiplex", "baseline",    "impl",
                                        "tp",      "pp",        "subsequences"};
    static const char *const numbers[] = {"tp", "pp", "subsequences"};
    static const char *const impls[PARTY_COUNT] = {"megatron", "megatron", "deepspeed"};
    const char *impl = measurement_option(row, "impl");
    const struct measurement_option *other =
        measurement_unknown_option(row, known, ARRAY_LEN(known));
    const struct sppo_layout *layout = layout_of(row);
    enum party party = party_of(row);
    bool speedup = row->metric == METRIC_SPEEDUP, longest = row->metric == METRIC_MAX_SEQ_LEN;
    bool deepspeed =
        party == PARTY_DEEPSPEED || (speedup && baseline_of_row(row) == PARTY_DEEPSPEED);
    if (other != NULL)
        text_printf(why, "option %s", other->key);
    else if (party == PARTY_COUNT || (speedup && party != PARTY_SPPO))
        text_printf(why, "system %s", row->text[MEASUREMENT_SYSTEM]);
    else if (impl != NULL && strcmp(impl, impls[party]) != 0)
        text_printf(why, "impl=%s", impl);
    else if (layout == NULL || row->gpus != cell_of(row, 0).tp * cell_of(row, 0).pp)
        text_puts(why, "a model and GPUs that SPPO's Table 4 does not have");
    else if (deepspeed && layout->ulysses == 0)
        text_puts(why, "DeepSpeed, over whose ranks this model's heads do not divide");
    else if (!longest && (row->seq_len <= 0 || cell_of(row, -1).pieces == 0))
        text_puts(why, "a length that SPPO's Table 4 does not have");
    else if (party == PARTY_SPPO && system_of(row) < 0)
        text_puts(why, "no offload, or multiplex beside another than adaptive");
    else if (speedup && baseline_of_row(row) == PARTY_COUNT)
        text_puts(why, "no baseline that is known");
    for (size_t i = 0; i < ARRAY_LEN(numbers) && why->size == 0; i++)
        if (stated(row, numbers[i]) < 0)
            text_printf(why, "%s=%s", numbers[i], measurement_option(row, numbers[i]));
    return why->size == 0;
}

/* ---- one run ---- */

static enum status predict(struct setup *setup, const struct sppo_run *run, bool timed,
                           struct sppo_time *time, struct diag *diag)
{
    struct prediction p = {0};
    enum status status = sppo_run_open(setup, run, diag);
    if (status == STATUS_OK)
        status = prediction_memory(&p, setup, &setup->request, NULL, diag);
    if (status == STATUS_OK && timed)
        status = prediction_time(&p, false, diag);
    *time = (struct sppo_time){p.sim.step_s, p.tokens_per_s_gpu, p.verdict, p.choices.shared};
    prediction_release(&p);
    return status;
}

/* Returns the run that a row of one length is about. */
static struct sppo_run run_of(const struct measurement *row)
{
    struct sppo_cell cell = cell_of(row, -1);
    switch (party_of(row)) {
    case PARTY_MEGATRON:
        return sppo_run_megatron(&cell, false);
    case PARTY_DEEPSPEED:
        return sppo_run_deepspeed(&cell, true);
    default:
        return sppo_run_make(&cell, (enum sppo_system)system_of(row));
    }
}

enum status sppo_setup(struct setup *setup, const struct measurement *row, struct diag *diag)
{
    struct sppo_run run = run_of(row);
    enum status status = setup_load_model(setup, row->text[MEASUREMENT_MODEL], NULL, NULL, diag);
    if (status == STATUS_OK)
        status = setup_load_cluster(setup, row->text[MEASUREMENT_CLUSTER], 0, row->gpus, diag);
    return status == STATUS_OK ? sppo_run_open(setup, &run, diag) : status;
}

/* Predicts run `other` and sets *times to own (tokens/s/GPU) over its rate. */
static enum status faster(double *times, struct verdict *verdict, double own, struct setup *setup,
                          const struct sppo_run *other, struct diag *diag)
{
    struct sppo_time time;
    enum status status = predict(setup, other, true, &time, diag);
    *verdict = time.verdict;
    if (status == STATUS_OK)
        *times = own / time.tokens_per_s_gpu;
    return status;
}

static enum status speedup(struct sppo_answer *answer, struct setup *setup,
                           const struct measurement *row, struct diag *diag)
{
    struct sppo_cell cell = cell_of(row, -1);
    struct sppo_run own = run_of(row), other, second = {0};
    switch (baseline_of_row(row)) {
    case PARTY_MEGATRON:
        other = second = sppo_run_megatron(&cell, true);
        second.pieces = 1;
        break;
    case PARTY_DEEPSPEED:
        other = sppo_run_deepspeed(&cell, true);
        second = sppo_run_deepspeed(&cell, false);
        break;
    default:
        other = sppo_run_make(&cell, SPPO_NONE);
    }
    struct sppo_time of_own, of_shared;
    struct verdict beyond_second; /* that of `other` is the answer's */
    answer->speedup_other = answer->speedup_shared = NAN;
    enum status status = predict(setup, &own, true, &of_own, diag);
    answer->verdict = of_own.verdict;
    if (status == STATUS_OK)
        status =
            faster(&answer->speedup, &answer->beyond, of_own.tokens_per_s_gpu, setup, &other, diag);
    if (status == STATUS_OK && own.system == SPPO_ADAPTIVE) {
        struct sppo_run shared = sppo_run_make(&cell, SPPO_MULTIPLEXED);
        status = predict(setup, &shared, true, &of_shared, diag);
        answer->speedup_shared =
            answer->speedup * of_shared.tokens_per_s_gpu / of_own.tokens_per_s_gpu;
    }
    if (status == STATUS_OK && second.strategy != NULL)
        status = faster(&answer->speedup_other, &beyond_second, of_own.tokens_per_s_gpu, setup,
                        &second, diag);
    return status;
}

/* ---- longest lengths ---- */

/* Returns the run of the reading that is scored, or of the other one, which is only printed. */
static struct sppo_run reading(const struct measurement *row, int length, bool other)
{
    struct sppo_cell cell = cell_of(row, length);
    switch (party_of(row)) {
    case PARTY_MEGATRON:
        return sppo_run_megatron(&cell, other);
    case PARTY_DEEPSPEED:
        return sppo_run_deepspeed(&cell, !other);
    default:
        return sppo_run_make(&cell, other ? SPPO_MULTIPLEXED : SPPO_ADAPTIVE);
    }
}

/* Finds the longest of the table's lengths up to which all fit. */
static enum status longest(struct sppo_answer *answer, int64_t *tokens, struct setup *setup,
                           const struct measurement *row, bool other, struct diag *diag)
{
    *tokens = 0;
    for (int i = 0; i < SPPO_LENGTHS; i++) {
        struct sppo_run run = reading(row, i, other);
        struct sppo_time time;
        enum status status = predict(setup, &run, false, &time, diag);
        if (status != STATUS_OK)
            return status;
        if (!other)
            *(time.verdict.fits ? &answer->verdict : &answer->beyond) = time.verdict;
        if (!time.verdict.fits)
            return STATUS_OK;
        *tokens = run.tokens;
    }
    return STATUS_OK;
}

/* Names the readings. Where Megatron's tuned layout is the same as the untuned one there is only one. */
static void name_readings(struct sppo_answer *answer, const struct measurement *row)
{
    const struct sppo_layout *layout = layout_of(row);
    const char *scored = "", *other = "multiplexed";
    char tuned[sizeof answer->other_as];
    if (party_of(row) == PARTY_DEEPSPEED) {
        scored = "in chunks as FPDT's";
        other = "with checkpoints on the host alone";
    } else if (party_of(row) == PARTY_MEGATRON) {
        bool same = layout->tuned_tp == layout->tp && layout->tuned_pp == layout->pp;
        snprintf(tuned, sizeof tuned, "tuned (tp %lld, pp %lld)", (long long)layout->tuned_tp,
                 (long long)layout->tuned_pp);
        scored = "by its stages";
        other = same ? "" : layout->tuned_pp == 1 ? "on tensor ranks alone" : tuned;
    }
    snprintf(answer->scored_as, sizeof answer->scored_as, "%s", scored);
    snprintf(answer->other_as, sizeof answer->other_as, "%s", other);
}

static enum status longest_of_both(struct sppo_answer *answer, struct setup *setup,
                                   const struct measurement *row, struct diag *diag)
{
    name_readings(answer, row);
    enum status status = longest(answer, &answer->longest, setup, row, false, diag);
    if (status == STATUS_OK && answer->other_as[0] != '\0')
        status = longest(answer, &answer->longest_other, setup, row, true, diag);
    answer->longest_scored = answer->longest;
    if (party_of(row) == PARTY_MEGATRON && answer->longest_other > answer->longest)
        answer->longest_scored = answer->longest_other;
    return status;
}

enum status sppo_predict(struct sppo_answer *answer, const struct measurement *row,
                         const struct setup_change *change, struct diag *diag)
{
    struct setup setup = {0};
    enum status status = setup_load_model(&setup, row->text[MEASUREMENT_MODEL], NULL, NULL, diag);
    if (status == STATUS_OK)
        status = setup_load_cluster(&setup, row->text[MEASUREMENT_CLUSTER], 0, row->gpus, diag);
    if (status == STATUS_OK)
        setup_apply(&setup, change);
    if (status == STATUS_OK && row->metric == METRIC_SPEEDUP)
        status = speedup(answer, &setup, row, diag);
    else if (status == STATUS_OK)
        status = longest_of_both(answer, &setup, row, diag);
    setup_release(&setup);
    return status;
}

bool sppo_cell(struct sppo_cell *cell, size_t i)
{
    if (i >= sppo_layout_count * SPPO_LENGTHS)
        return false;
    *cell = sppo_cell_make(&sppo_layouts[i / SPPO_LENGTHS], (int)(i % SPPO_LENGTHS));
    return true;
}

enum status sppo_time(struct sppo_time *time, const struct sppo_cell *cell, enum sppo_system system,
                      struct diag *diag)
{
    struct sppo_run run = sppo_run_make(cell, system);
    struct setup setup = {0};
    enum status status = setup_load_model(&setup, cell->layout->model, NULL, NULL, diag);
    if (status == STATUS_OK)
        status = setup_load_cluster(&setup, "sppo-a100", 0, cell->tp * cell->pp, diag);
    if (status == STATUS_OK)
        status = predict(&setup, &run, true, time, diag);
    setup_release(&setup);
    return status;
}

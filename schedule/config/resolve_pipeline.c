#include "schedule/config/resolve_degrees.h"
#include "schedule/pipeline/multiplex.h"
#include "schedule/pipeline/pipeline.h"

static enum status check_chunks_have_layers(const struct choices *c, struct diag *diag)
{
    uint32_t chunks = pipeline_chunk_count(c);
    if ((int64_t)chunks <= c->model->layers)
        return STATUS_OK;
    int64_t chunks_fit = c->pipeline == CHOICE_PIPELINE_INTERLEAVED ? c->model->layers / c->pp : 0,
            stages_fit = c->model->layers / c->virtual_stages;
    while (stages_fit > 1 && c->ranks % stages_fit != 0)
        stages_fit--;
    stages_fit = stages_fit > 1 ? stages_fit : 1;
    const char *option = chunks_fit > 1 ? "--virtual-stages" : "--pp";
    return resolve_refuse(diag, option,
                          "%lld layers do not fill %u chunks (pp %u x %u virtual stages); %s "
                          "%lld%s would do",
                          (long long)c->model->layers, chunks, c->pp, c->virtual_stages, option,
                          (long long)(chunks_fit > 1 ? chunks_fit : stages_fit),
                          chunks_fit > 1 ? " or less" : "");
}

static enum status resolve_pipeline_choice(struct choices *c, const struct request *r,
                                           struct diag *diag)
{
    bool pieces = r->subsequences > 1, chunks = r->virtual_stages > 1;
    c->pipeline = (uint8_t)r->pipeline;
    if (c->pp == 1 && c->pipeline == CHOICE_PIPELINE_NONE)
        return STATUS_OK;
    if (c->pp == 1)
        return resolve_refuse(diag, "--pipeline", "%s has one stage; --pp 2 or more would do",
                              pipeline_of_choices(c)->name);
    if (c->pipeline == CHOICE_PIPELINE_NONE)
        c->pipeline = chunks   ? CHOICE_PIPELINE_INTERLEAVED
                      : pieces ? CHOICE_PIPELINE_SEQ1F1B
                               : CHOICE_PIPELINE_1F1B;
    return STATUS_OK;
}

static enum status resolve_virtual_stages(struct choices *c, const struct request *r,
                                          struct diag *diag)
{
    const struct pipeline *row = pipeline_of_choices(c);
    int64_t asked = r->virtual_stages > 0       ? r->virtual_stages
                    : row->chunks_per_stage > 0 ? row->chunks_per_stage
                                                : 2;
    if (asked > 255 || (row->chunks_per_stage > 0 && asked != row->chunks_per_stage))
        return resolve_refuse(diag, "--virtual-stages", "is %lld with --pipeline %s; %s would do",
                              (long long)asked, row->name,
                              row->chunks_per_stage == 1   ? "1, or --pipeline interleaved,"
                              : row->chunks_per_stage == 2 ? "2"
                                                           : "1 to 255");
    c->virtual_stages = (uint32_t)asked;
    return check_chunks_have_layers(c, diag);
}

/* Takes the given lengths of subsequences. Checks that each divides evenly over the ranks of a stage, and that they add
 * up to the sequence. */
static enum status resolve_subsequence_lengths(struct choices *c, const int64_t *lengths,
                                               int64_t ranks, struct diag *diag)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < c->subsequences; i++) {
        if (lengths[i] < 1 || lengths[i] % ranks != 0)
            return resolve_refuse(
                diag, "--subsequences",
                "subsequence %u has %lld tokens, and must have a multiple of %lld", i,
                (long long)lengths[i], (long long)ranks);
        sum += lengths[i];
    }
    if (sum != c->seq)
        return resolve_refuse(
            diag, "--subsequences",
            "the %u subsequences have %lld tokens in all, but the sequence has %lld",
            c->subsequences, (long long)sum, (long long)c->seq);
    c->subsequence_tokens = lengths;
    return STATUS_OK;
}

static enum status resolve_subsequences(struct choices *c, const struct request *r,
                                        struct diag *diag)
{
    int64_t pieces = r->subsequences > 0 ? r->subsequences : 1;
    int64_t unit = (int64_t)c->cp * c->hp * c->tp;
    c->subsequences = 1;
    if (pieces == 1)
        return STATUS_OK;
    if (!pipeline_of_choices(c)->has_subsequences)
        return resolve_refuse(diag, "--pipeline",
                              "%s passes whole sequences through the pipeline; the same order over "
                              "subsequences is --pipeline %s",
                              pipeline_of_choices(c)->name,
                              c->pipeline == CHOICE_PIPELINE_GPIPE ? "terapipe" : "seq1f1b");
    if (c->cp > 1)
        return resolve_refuse(diag, "--cp",
                              "subsequences are not combined with a ring: for each subsequence the "
                              "keys of all earlier ones would go round its %u context ranks again; "
                              "choose --cp 1, and --hp or --tp for the ranks that share a sequence",
                              c->cp);
    if (pieces * c->accumulation > PIPELINE_UNITS_MAX)
        return resolve_refuse(diag, "--subsequences",
                              "%lld subsequences of %u micro-batches are more than %d units; fewer "
                              "would do",
                              (long long)pieces, c->accumulation, PIPELINE_UNITS_MAX);
    c->length_rule = (uint8_t)r->length_rule;
    if (r->subsequence_tokens != NULL) {
        c->subsequences = (uint32_t)pieces;
        return resolve_subsequence_lengths(c, r->subsequence_tokens, unit, diag);
    }
    c->must_compute_subsequence_tokens = r->length_rule > 0;
    if (!c->must_compute_subsequence_tokens && c->seq % (pieces * unit) != 0) {
        int64_t above = (c->seq / (pieces * unit) + 1) * pieces * unit;
        return resolve_refuse(diag, "--subsequences",
                              "%lld tokens do not divide into %lld subsequences over %lld ranks; "
                              "%lld tokens would do",
                              (long long)c->seq, (long long)pieces, (long long)unit,
                              (long long)above);
    }
    c->subsequences = (uint32_t)pieces;
    return STATUS_OK;
}

/* Checks, for interleaved pipelines, that the number of units is a multiple of the number of stages: they take groups
 * of as many units as stages through the chunks together. */
static enum status check_units_divide_over_stages(const struct choices *c, struct diag *diag)
{
    uint32_t units = pipeline_unit_count(c), each = c->subsequences, batches = 1;
    if (pipeline_of_choices(c)->chunks_per_stage != 0 || units % c->pp == 0)
        return STATUS_OK;
    while (batches * each % c->pp != 0)
        batches++;
    struct text would = {0};
    int64_t sequences = (int64_t)c->dp * c->micro_batch * batches;
    text_printf(&would, "--batch %lld",
                (long long)((c->global_batch + sequences - 1) / sequences * sequences));
    if (each > 1)
        text_printf(&would, ", or --subsequences %u,", (each + c->pp - 1) / c->pp * c->pp);
    return resolve_refuse_value_with_hint(
        diag, "--batch", &would, "--pipeline interleaved takes %u %s at a time, and a step has %u",
        c->pp, each > 1 ? "units, subsequences of micro-batches," : "micro-batches", units);
}

/* Sets the numbers of subsequences that stages share. If they are 0, the pipeline becomes CHOICE_PIPELINE_SEQ1F1B.
 * Refuses choices with which stages cannot share subsequences. */
static enum status resolve_shared_subsequence_counts(struct choices *c, const struct request *r,
                                                     struct diag *diag)
{
    struct text needs = {0};
    uint32_t most = c->pp - 1;
    c->shared_units =
        r->shared_units != NULL
            ? *r->shared_units
            : (struct shared_units){SHARED_UNITS_UP_TO_IDLE_STAGES, SHARED_UNITS_UP_TO_IDLE_STAGES};
    c->shared_units.first = c->shared_units.first < most ? c->shared_units.first : most;
    c->shared_units.last = c->shared_units.last < most ? c->shared_units.last : most;
    if (c->shared_units.first + c->shared_units.last == 0) {
        c->pipeline = CHOICE_PIPELINE_SEQ1F1B;
        return STATUS_OK;
    }
    multiplex_append_unmet_conditions(
        &needs, c, !c->must_compute_subsequence_tokens && !r->must_compute_shared_units);
    if (needs.size == 0)
        return STATUS_OK;
    resolve_refuse(diag, "--pipeline", "msp takes %s", needs.data);
    text_release(&needs);
    return STATUS_BAD_INPUT;
}

enum status pipeline_resolve(struct choices *c, const struct request *r, struct diag *diag)
{
    if (resolve_pipeline_choice(c, r, diag) != STATUS_OK ||
        resolve_virtual_stages(c, r, diag) != STATUS_OK ||
        resolve_subsequences(c, r, diag) != STATUS_OK ||
        check_units_divide_over_stages(c, diag) != STATUS_OK)
        return STATUS_BAD_INPUT;
    return pipeline_of_choices(c)->is_multiplexed ? resolve_shared_subsequence_counts(c, r, diag)
                                                  : STATUS_OK;
}

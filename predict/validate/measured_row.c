#include "predict/validate/measured_row.h"

#include "predict/validate/sppo_row.h"
#include "predict/validate/subsequence_row.h"
#include "schedule/choices/strategies.h"

#include <stdlib.h>
#include <string.h>

/* traces/published/README.md, "Defaults by source" and "Models". */
/* clang-format off */
static const struct source_defaults defaults[] = {
    {"LoongTrain",    NULL,         MFU_LOONGTRAIN, DTYPE_BF16, CHOICE_ACTIVATIONS_FULL, -1,                         8, false, NULL,        false, false,
     "bf16, full checkpoints, one sequence a step, fa2; the loss in 8 pieces (the paper: chunked, or small "
     "enough not to matter)"},
    {"FPDT",          NULL,         MFU_FPDT,       DTYPE_F16,  CHOICE_ACTIVATIONS_KEEP, CHOICE_WEIGHTS_REPLICATED,  1, false, "vocab=50257", false, false,
     "fp16, no checkpoints and replicated weights where unsaid, one sequence a step, fa2, loss whole, optimizer "
     "on the GPU, vocabulary 50257 for llama"},
    {"torchtitan-cp", "torchtitan", MFU_TORCHTITAN, DTYPE_BF16, CHOICE_ACTIVATIONS_FULL, CHOICE_WEIGHTS_ZERO3,       1, true,  NULL,        true,  true,
     "bf16, full checkpoints, weights sharded over all ranks, loss whole, torch.compile"},
    {"SPPO",          NULL,         MFU_LONGHAUL,   -1,         -1,                      -1,                         0, false, NULL,        false, false,
     "tensor ranks, stages and subsequences of its Table 4, adaptive offload; Megatron recomputes on the same subsequences; "
     "DeepSpeed: Ulysses, ZeRO-3 and FPDT's chunks on the host"},
    {NULL,            NULL,         MFU_LONGHAUL,   -1,         -1,                      -1,                         0, false, NULL,        false, false,
     "what the strategy leaves open"},
};
/* clang-format on */

/* Options that a supported row may have; the others, and other values, are not known yet. */
static const char *const known[] = {
    "dhp", "dcp",        "placement", "checkpoint", "zero", "impl",  "ulysses",  "tp",
    "pp",  "inner_ring", "scope",     "rotate",     "fpdt", "chunk", "sparsity", "dropout"};

const struct source_defaults *measured_defaults(const char *source)
{
    size_t i = 0;
    while (defaults[i].source != NULL && strcmp(defaults[i].source, source) != 0)
        i++;
    return &defaults[i];
}

static bool no(struct text *why, const char *format, const char *value)
{
    text_printf(why, format, value);
    return false;
}

/* Names of option values and the choices they are. */
struct named {
    const char *name;
    int value;
};

static const struct named checkpoints[] = {
    {"none", CHOICE_ACTIVATIONS_KEEP},
    {"full", CHOICE_ACTIVATIONS_FULL},
    {"selective++", CHOICE_ACTIVATIONS_SELECTIVE},
    {"offload", CHOICE_ACTIVATIONS_OFFLOAD},
    {"selective++offload", CHOICE_ACTIVATIONS_SELECTIVE_OFFLOAD},
};
static const struct named zeros[] = {
    {"0", CHOICE_WEIGHTS_REPLICATED},
    {"1", CHOICE_WEIGHTS_ZERO1},
    {"2", CHOICE_WEIGHTS_ZERO2},
    {"3", CHOICE_WEIGHTS_ZERO3},
    /* "partial" prefetches one block with ZeRO-3, so that two blocks are gathered at a time. The source does not say
     * over which ranks the weights are sharded: here over all, dp x sp. */
    {"partial", CHOICE_WEIGHTS_ZERO3},
};
static const struct named placements[] = {
    {"HF", PLACEMENT_HEAD_FIRST},
    {"CF", PLACEMENT_CONTEXT_FIRST},
};
static const struct named rotations[] = {
    {"all-to-all", ROTATE_ALL_TO_ALL},
    {"all-gather", ROTATE_ALL_GATHER},
};
static const struct named dropouts[] = {
    {"on", DROPOUT_ON},
    {"off", DROPOUT_OFF},
};
static const struct named scopes[] = {
    {"layer", SCOPE_LAYER},
    {"attention", SCOPE_ATTENTION},
    {"attention:fwd", SCOPE_ATTENTION_FORWARD},
    {"attention:bwd", SCOPE_ATTENTION_BACKWARD},
};
/* systems and the strategies that they are */
static const struct named systems[] = {
    {"ulysses", CHOICE_ATTENTION_ULYSSES},
    {"ring", CHOICE_ATTENTION_RING},
    {"2d", CHOICE_ATTENTION_2D},
    {"megatron-sp", CHOICE_ATTENTION_LOCAL}, /* inside tensor ranks */
    {"fpdt", CHOICE_ATTENTION_FPDT},
};

/* Returns the value of a row's option; `otherwise` when the row has none; -2 when it is not in the table. */
static int named_option(const struct measurement *row, const char *key, const struct named *table,
                        size_t count, int otherwise)
{
    const char *value = measurement_option(row, key);
    if (value == NULL)
        return otherwise;
    for (size_t i = 0; i < count; i++)
        if (strcmp(table[i].name, value) == 0)
            return table[i].value;
    return -2;
}

/* Returns the value of a degree; `otherwise` when the row has none; -1 when it is no positive number. */
static int64_t degree(const struct measurement *row, const char *key, int64_t otherwise)
{
    const char *value = measurement_option(row, key);
    int64_t number;
    if (value == NULL)
        return otherwise;
    return parse_i64(value, strlen(value), &number) && number > 0 ? number : -1;
}

/* Returns the sparsity of a row; -1 when it is no number. */
static double sparsity_of(const struct measurement *row)
{
    const char *value = measurement_option(row, "sparsity");
    double share;
    return parse_double(value, strlen(value), &share) ? share : -1;
}

static bool profile_known(const char *name)
{
    size_t count;
    const struct profile *table = compose_profiles(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(table[i].name, name) == 0)
            return true;
    return false;
}

static bool metric_supported(const struct measurement *row, int scope, struct text *why)
{
    switch (row->metric) {
    case METRIC_ATTENTION_MS:
    case METRIC_SEQALLTOALL_MS:
    case METRIC_COMM_OVER_COMPUTE:
    case METRIC_ROTATION_US:
        return scope != SCOPE_STEP ||
               no(why, "metric %s of a whole step", row->text[MEASUREMENT_METRIC]);
    case METRIC_TGS:
    case METRIC_MFU:
    case METRIC_STEP_MS:
    case METRIC_PEAK_HBM:
    case METRIC_MAX_SEQ_LEN:
    case METRIC_VERDICT:
        return scope == SCOPE_STEP || no(why, "metric %s of a part", row->text[MEASUREMENT_METRIC]);
    default:
        return no(why, "metric %s", row->text[MEASUREMENT_METRIC]);
    }
}

/* Returns the part of the model that a row is about; one step of a ring is a part of the operator. */
static int scope_of(const struct measurement *row)
{
    if (row->metric == METRIC_SEQALLTOALL_MS)
        return SCOPE_EXCHANGE;
    return named_option(row, "scope", scopes, ARRAY_LEN(scopes),
                        row->metric == METRIC_ROTATION_US ? SCOPE_ATTENTION_FORWARD : SCOPE_STEP);
}

/* Returns the attention of a row's system; -1: not known. */
static int system_of(const struct measurement *row)
{
    for (size_t i = 0; i < ARRAY_LEN(systems); i++)
        if (strcmp(systems[i].name, row->text[MEASUREMENT_SYSTEM]) == 0)
            return systems[i].value;
    return -1;
}

/* Returns the row's length; a longest length without one is searched for from the printed value. */
static int64_t measured_seq(const struct measurement *row)
{
    if (row->seq_len > 0 || row->metric != METRIC_MAX_SEQ_LEN)
        return row->seq_len;
    return row->is_number && row->value < 0x1p40 ? (int64_t)row->value : MEASURED_SHORTEST;
}

bool measured_supported(const struct measurement *row, struct text *why)
{
    if (sppo_row(row) || sppo_step_row(row))
        return sppo_supported(row, why);
    if (subsequence_row(row))
        return subsequence_supported(row, why);
    if (system_of(row) < 0)
        return no(why, "system %s", row->text[MEASUREMENT_SYSTEM]);
    int scope = scope_of(row);
    if (scope == -2)
        return no(why, "scope %s", measurement_option(row, "scope"));
    const struct measurement_option *other =
        measurement_unknown_option(row, known, ARRAY_LEN(known));
    if (other != NULL)
        return no(why, "option %s", other->key);
    static const char *const of_chunks[] = {"fpdt", "chunk", "sparsity"};
    for (size_t i = 0; i < ARRAY_LEN(of_chunks); i++)
        if (system_of(row) != CHOICE_ATTENTION_FPDT &&
            measurement_option(row, of_chunks[i]) != NULL)
            return no(why, "option %s", of_chunks[i]);
    static const char *const ones[] = {"tp", "pp"};
    for (size_t i = 0; i < ARRAY_LEN(ones); i++)
        if (degree(row, ones[i], 1) != 1 && !(i == 0 && system_of(row) == CHOICE_ATTENTION_LOCAL))
            return no(why, "option %s above 1", ones[i]);
    if (named_option(row, "checkpoint", checkpoints, ARRAY_LEN(checkpoints), 0) == -2)
        return no(why, "checkpoint=%s", measurement_option(row, "checkpoint"));
    if (named_option(row, "zero", zeros, ARRAY_LEN(zeros), 0) == -2)
        return no(why, "zero=%s", measurement_option(row, "zero"));
    if (named_option(row, "placement", placements, ARRAY_LEN(placements), 0) == -2)
        return no(why, "placement=%s", measurement_option(row, "placement"));
    if (named_option(row, "rotate", rotations, ARRAY_LEN(rotations), 0) == -2)
        return no(why, "rotate=%s", measurement_option(row, "rotate"));
    if (named_option(row, "dropout", dropouts, ARRAY_LEN(dropouts), 0) == -2)
        return no(why, "dropout=%s", measurement_option(row, "dropout"));
    const char *impl = measurement_option(row, "impl");
    if (impl != NULL && !profile_known(impl))
        return no(why, "impl=%s", impl);
    if (measurement_option(row, "sparsity") != NULL &&
        (!(sparsity_of(row) >= 0 && sparsity_of(row) < 1) ||
         (sparsity_of(row) > 0 && degree(row, "chunk", 0) <= 0)))
        return no(why, "sparsity=%s", measurement_option(row, "sparsity"));
    if (row->gpus <= 0 || measured_seq(row) <= 0)
        return no(why, "no %s", row->gpus <= 0 ? "gpus" : "seq_len");
    return metric_supported(row, scope, why);
}

enum status measured_setup(struct setup *setup, const struct measurement *row, struct diag *diag)
{
    if (sppo_step_row(row))
        return sppo_setup(setup, row, diag);
    const struct source_defaults *d = measured_defaults(row->text[MEASUREMENT_SOURCE]);
    const char *model = row->text[MEASUREMENT_MODEL];
    const char *fields = strncmp(model, "llama", 5) == 0 ? d->llama_fields : NULL;
    enum status status = setup_load_model(setup, model, NULL, fields, diag);
    if (status == STATUS_OK)
        status = setup_load_cluster(setup, row->text[MEASUREMENT_CLUSTER], 0, row->gpus, diag);
    if (status != STATUS_OK)
        return status;
    setup_open_request(setup);
    struct request *r = &setup->request;
    r->strategy = row->text[MEASUREMENT_SYSTEM];
    r->profile = "published";
    r->impl = measurement_option(row, "impl");
    int system = system_of(row);
    if (system == CHOICE_ATTENTION_ULYSSES)
        r->hp = degree(row, "dhp", degree(row, "ulysses", row->gpus));
    else if (system == CHOICE_ATTENTION_LOCAL)
        r->tp = degree(row, "tp", row->gpus);
    else if (system == CHOICE_ATTENTION_FPDT)
        r->hp = degree(row, "fpdt", row->gpus);
    else if (system == CHOICE_ATTENTION_RING)
        r->cp = degree(row, "dcp", row->gpus);
    else {
        r->hp = degree(row, "dhp", 0);
        r->cp = degree(row, "dcp", 0);
    }
    r->placement = named_option(row, "placement", placements, ARRAY_LEN(placements), 0);
    r->rotate = named_option(row, "rotate", rotations, ARRAY_LEN(rotations), ROTATE_PROFILE);
    r->dropout = named_option(row, "dropout", dropouts, ARRAY_LEN(dropouts), DROPOUT_MODEL);
    r->window = degree(row, "inner_ring", 1);
    r->scope = scope_of(row);
    r->seq = measured_seq(row);
    r->activations =
        named_option(row, "checkpoint", checkpoints, ARRAY_LEN(checkpoints), d->activations);
    r->weights = named_option(row, "zero", zeros, ARRAY_LEN(zeros), d->weights);
    r->dtype = d->dtype;
    r->loss_chunks = system == CHOICE_ATTENTION_FPDT ? 0 : d->loss_chunks;
    r->chunk = degree(row, "chunk", 0);
    r->compile = d->compile;
    if (measurement_option(row, "sparsity") != NULL && sparsity_of(row) > 0)
        setup_sparsity(setup, r->chunk, sparsity_of(row));
    return STATUS_OK;
}

bool measured_same_run(const struct measurement *a, const struct measurement *b)
{
    static const enum measurement_column columns[] = {
        MEASUREMENT_SOURCE,  MEASUREMENT_TABLE, MEASUREMENT_SYSTEM,  MEASUREMENT_MODEL,
        MEASUREMENT_CLUSTER, MEASUREMENT_GPUS,  MEASUREMENT_SEQ_LEN, MEASUREMENT_OPTIONS};
    for (size_t i = 0; i < ARRAY_LEN(columns); i++)
        if (strcmp(a->text[columns[i]], b->text[columns[i]]) != 0)
            return false;
    return scope_of(a) == scope_of(b);
}

bool measured_inferred_from(const struct measurement *row)
{
    return strstr(row->text[MEASUREMENT_NOTE], "inferred from this run") != NULL;
}

bool measured_lower_bound(const struct measurement *row)
{
    return strstr(row->text[MEASUREMENT_NOTE], "lower bound") != NULL;
}

#include "predict/validate/measured_row.h"

#include "predict/validate/sppo_run.h"

#include "schedule/choices/strategies.h"
#include "tests/check.h"

#include <string.h>

/* Returns one measured row of source FPDT with these values in the columns system to options. */
static struct measurements load(const char *system, const char *model, const char *cluster,
                                const char *sizes, const char *options)
{
    static struct text text; /* rows point into it until the case ends */
    struct measurements rows = {0};
    struct diag diag = {0};
    text.size = 0;
    text_puts(&text,
              "source,table,system,model,cluster,gpus,seq_len,options,metric,value,unit,note\n");
    text_printf(&text, "FPDT,3,%s,%s,%s,%s,%s,mfu,0.5,fraction,\n", system, model, cluster, sizes,
                options);
    CHECK_INT("parsed", measurements_parse(&rows, "t.csv", text.data, text.size, &diag), STATUS_OK);
    CHECK_INT("rows", (int64_t)rows.count, 1);
    diag_release(&diag);
    return rows;
}

static const struct {
    const char *system, *options, *why; /* why: the reason of a refusal; NULL: supported */
} support[] = {
    {"ulysses", "zero=3;checkpoint=offload;impl=deepspeed", NULL},
    {"ulysses", "", NULL},
    {"2d", "dhp=8;dcp=1;placement=HF", NULL},
    {"2d", "dhp=4;dcp=2;placement=CF;inner_ring=2", NULL},
    {"2d", "dhp=4", NULL},
    {"ring", "dcp=8", NULL},
    {"ring", "dcp=8;rotate=by-hand", "rotate=by-hand"},
    {"2d", "placement=XY", "placement=XY"},
    {"fpdt", "chunk=65536;fpdt=8;sparsity=0.0", NULL},
    {"fpdt", "sparsity=0.5", "sparsity=0.5"},
    {"fpdt", "chunk=65536;sparsity=0.5", NULL},
    {"fpdt", "chunk=65536;sparsity=1", "sparsity=1"},
    {"sppo", "", "system sppo"},
    {"ulysses", "scope=attention", "metric mfu of a part"},
    {"ulysses", "scope=block", "scope block"},
    {"ulysses", "chunk=65536", "option chunk"},
    {"ulysses", "tp=2", "option tp above 1"},
    {"megatron-sp", "tp=8;impl=deepspeed", NULL},
    {"megatron-sp", "tp=4;pp=2", "option pp above 1"},
    {"ulysses", "checkpoint=selective++;zero=partial", NULL},
    {"ulysses", "checkpoint=some", "checkpoint=some"},
    {"ulysses", "zero=4", "zero=4"},
    {"ulysses", "impl=somebody", "impl=somebody"},
};

static void what_is_not_known_is_told(void)
{
    for (size_t i = 0; i < ARRAY_LEN(support); i++) {
        struct measurements rows =
            load(support[i].system, "llama3-8b", "fpdt-a100-80g", "8,65536", support[i].options);
        struct text why = {0};
        bool supported = measured_supported(&rows.row[0], &why);
        CHECK_INT(support[i].options, supported, support[i].why == NULL);
        if (support[i].why != NULL)
            CHECK_TEXT(support[i].options, why.data, support[i].why);
        text_release(&why);
        measurements_release(&rows);
    }
}

static void a_row_takes_the_defaults_of_its_source(void)
{
    struct measurements rows =
        load("ulysses", "llama3-8b", "fpdt-a100-80g", "8,65536", "ulysses=8");
    struct setup setup = {0};
    struct diag diag = {0};
    CHECK_INT("setup", measured_setup(&setup, &rows.row[0], &diag), STATUS_OK);
    CHECK_INT("vocabulary", setup.model.vocab, 50257);
    CHECK_INT("weights", setup.request.weights, CHOICE_WEIGHTS_REPLICATED);
    CHECK_INT("activations", setup.request.activations, CHOICE_ACTIVATIONS_KEEP);
    CHECK_INT("dtype", setup.request.dtype, DTYPE_F16);
    CHECK_INT("loss", setup.request.loss_chunks, 1);
    CHECK_INT("hp", setup.request.hp, 8);
    CHECK_INT("nodes", setup.cluster.nodes, 2);
    diag_release(&diag);
    setup_release(&setup);
    measurements_release(&rows);
}

static void options_of_a_row_come_before_defaults(void)
{
    struct measurements rows = load("2d", "gpt-6.7b", "loongtrain-a100", "32,131072",
                                    "dhp=32;dcp=1;zero=1;checkpoint=offload");
    struct setup setup = {0};
    struct diag diag = {0};
    CHECK_INT("setup", measured_setup(&setup, &rows.row[0], &diag), STATUS_OK);
    CHECK_INT("vocabulary", setup.model.vocab, 50257);
    CHECK_INT("weights", setup.request.weights, CHOICE_WEIGHTS_ZERO1);
    CHECK_INT("activations", setup.request.activations, CHOICE_ACTIVATIONS_OFFLOAD);
    CHECK_TEXT("strategy", setup.request.strategy, "2d"); /* whose default profile is internevo */
    CHECK_INT("hp", setup.request.hp, 32);
    diag_release(&diag);
    setup_release(&setup);
    measurements_release(&rows);
}

/* True if a row has the measured time of a step, or of a part of one, under the strategy. 2D attention with one head
 * rank counts as a ring. A speed-up counts only if some reading of its baseline explains it. */
static bool compares(const struct measurement *row, const char *strategy)
{
    const char *system = row->text[MEASUREMENT_SYSTEM], *heads = measurement_option(row, "dhp");
    bool timed = row->metric == METRIC_TGS || row->metric == METRIC_MFU ||
                 row->metric == METRIC_STEP_MS || row->metric == METRIC_ATTENTION_MS ||
                 row->metric == METRIC_SPEEDUP;
    const struct sppo_layout *layout = sppo_layout_find(row->text[MEASUREMENT_MODEL]);
    if (row->metric == METRIC_SPEEDUP && layout != NULL && layout->unexplained)
        return false;
    if (strcmp(system, "2d") == 0 && strcmp(strategy, "ring") == 0)
        return timed && heads != NULL && strcmp(heads, "1") == 0;
    return timed && strcmp(system, strategy) == 0;
}

static void a_strategy_was_compared_on_as_many_ranks_as_it_says(void)
{
    size_t count;
    const struct strategy *strategies = compose_strategies(&count);
    struct measurements rows = {0};
    struct diag diag = {0};
    CHECK_INT("loaded",
              measurements_load(&rows, check_path("../traces/published/measurements.csv"), &diag),
              STATUS_OK);
    for (size_t i = 0; i < count; i++) {
        int64_t most = 0;
        for (size_t k = 0; k < rows.count; k++)
            if (compares(&rows.row[k], strategies[i].name) && rows.row[k].gpus > most)
                most = rows.row[k].gpus;
        CHECK_INT(strategies[i].name, strategies[i].compared_ranks, most);
    }
    diag_release(&diag);
    measurements_release(&rows);
}

static const struct check_case cases[] = {
    {"a strategy was compared on as many ranks as it says",
     a_strategy_was_compared_on_as_many_ranks_as_it_says},
    {"what is not known is told", what_is_not_known_is_told},
    {"a row takes the defaults of its source", a_row_takes_the_defaults_of_its_source},
    {"options of a row come before defaults", options_of_a_row_come_before_defaults},
};
CHECK_MAIN("measured_row", cases)

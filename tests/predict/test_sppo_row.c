#include "predict/validate/sppo_row.h"

#include "predict/validate/measured_row.h"
#include "tests/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct asked {
    const char *system, *model, *sizes, *options, *metric;
    const char *why; /* the reason of a refusal; NULL: supported */
};

static struct measurements load(const struct asked *asked)
{
    static struct text text; /* rows point into it until the case ends */
    struct measurements rows = {0};
    struct diag diag = {0};
    const char *unit = strcmp(asked->metric, "tgs") == 0           ? "tokens/s/gpu"
                       : strcmp(asked->metric, "max_seq_len") == 0 ? "tokens"
                                                                   : "ratio";
    text.size = 0;
    text_puts(&text,
              "source,table,system,model,cluster,gpus,seq_len,options,metric,value,unit,note\n");
    text_printf(&text, "SPPO,10,%s,%s,sppo-a100,%s,%s,%s,524288,%s,\n", asked->system, asked->model,
                asked->sizes, asked->options, asked->metric, unit);
    CHECK_INT("parsed", measurements_parse(&rows, "t.csv", text.data, text.size, &diag), STATUS_OK);
    CHECK_INT("rows", (int64_t)rows.count, 1);
    diag_release(&diag);
    return rows;
}

static const struct asked support[] = {
    {"sppo", "gpt-7b", "32,524288", "offload=adaptive;baseline=megatron-sp", "speedup", NULL},
    {"sppo", "gpt-7b", "32,524288", "offload=adaptive;baseline=ulysses", "speedup", NULL},
    {"sppo", "gpt-65b", "128,524288", "offload=adaptive;baseline=fpdt", "speedup", NULL},
    {"sppo", "gpt-13b", "64,524288", "offload=adaptive;baseline=ulysses", "speedup",
     "DeepSpeed, over whose ranks this model's heads do not divide"},
    {"sppo", "gpt-7b", "32,524288", "offload=adaptive;baseline=sppo", "speedup",
     "no baseline that is known"},
    {"sppo", "gpt-7b", "32,524288", "baseline=ulysses", "speedup",
     "no offload, or multiplex beside another than adaptive"},
    {"megatron-sp", "gpt-7b", "32,524288", "offload=full;baseline=offload:none", "speedup",
     "system megatron-sp"},
    {"sppo", "gpt-7b", "32,524288", "", "tgs", NULL},
    {"sppo", "gpt-7b", "32,524288", "impl=megatron;offload=none", "tgs", NULL},
    {"sppo", "gpt-7b", "32,524288", "impl=deepspeed", "tgs", "impl=deepspeed"},
    {"sppo", "gpt-7b", "32,131072", "", "tgs", "a length that SPPO's Table 4 does not have"},
    {"sppo", "gpt-7b", "32,131072", "subsequences=16", "tgs", NULL},
    {"sppo", "gpt-7b", "32,524288", "tp=4;pp=8", "tgs", NULL},
    {"sppo", "gpt-7b", "32,524288", "tp=4", "tgs",
     "a model and GPUs that SPPO's Table 4 does not have"},
    {"sppo", "gpt-7b", "32,524288", "subsequences=x", "tgs", "subsequences=x"},
    {"ulysses", "gpt-7b", "32,524288", "", "tgs", NULL},
    {"ring", "gpt-7b", "32,524288", "", "tgs", "system ring"},
    {"ulysses", "gpt-7b", "32,", "", "max_seq_len", NULL},
    {"ulysses", "gpt-13b", "64,", "", "max_seq_len",
     "DeepSpeed, over whose ranks this model's heads do not divide"},
    {"megatron-sp", "gpt-13b", "64,", "", "max_seq_len", NULL},
};

static void what_is_not_known_is_told(void)
{
    for (size_t i = 0; i < ARRAY_LEN(support); i++) {
        struct measurements rows = load(&support[i]);
        struct text why = {0};
        char label[160];
        snprintf(label, sizeof label, "%s %s %s", support[i].system, support[i].metric,
                 support[i].options);
        CHECK_INT(label, measured_supported(&rows.row[0], &why), support[i].why == NULL);
        CHECK_TEXT(label, why.data ? why.data : "", support[i].why ? support[i].why : "");
        text_release(&why);
        measurements_release(&rows);
    }
}

static const struct {
    struct asked asked;
    const char *strategy;
    int64_t tp, pp, hp, pieces;
} steps[] = {
    {{"sppo", "gpt-7b", "32,524288", "offload=none", "tgs", NULL}, "sppo", 8, 4, 0, 32},
    {{"sppo", "gpt-7b", "32,131072", "subsequences=16;offload=none;tp=4;pp=8", "tgs", NULL},
     "sppo",
     4,
     8,
     0,
     16},
    {{"megatron-sp", "gpt-13b", "64,655360", "", "tgs", NULL}, "megatron-sp", 8, 8, 0, 48},
    {{"ulysses", "gpt-65b", "128,524288", "", "tgs", NULL}, "fpdt", 1, 1, 64, 1},
};

static void a_step_has_the_degrees_of_table_4_or_its_own(void)
{
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct measurements rows = load(&steps[i].asked);
        struct setup setup = {0};
        struct diag diag = {0};
        const char *label = steps[i].asked.options;
        CHECK_INT(label, measured_setup(&setup, &rows.row[0], &diag), STATUS_OK);
        CHECK_TEXT(label, setup.request.strategy, steps[i].strategy);
        CHECK_INT("tp", setup.request.tp, steps[i].tp);
        CHECK_INT("pp", setup.request.pp, steps[i].pp);
        CHECK_INT("hp", setup.request.hp, steps[i].hp);
        CHECK_INT("subsequences", setup.request.subsequences, steps[i].pieces);
        CHECK_INT("seq", setup.request.seq, rows.row[0].seq_len);
        CHECK_INT("ranks", setup.request.ranks, rows.row[0].gpus);
        diag_release(&diag);
        setup_release(&setup);
        measurements_release(&rows);
    }
}

static void megatron_was_tuned_to_other_stages(void)
{
    static const struct {
        const char *model;
        int64_t tp, pp, pieces; /* at the shortest length */
    } tuned[] = {{"gpt-7b", 32, 1, 1}, {"gpt-13b", 8, 8, 32}, {"gpt-65b", 64, 2, 32}};
    for (size_t i = 0; i < ARRAY_LEN(tuned); i++) {
        struct sppo_cell cell = sppo_cell_make(sppo_layout_find(tuned[i].model), 0);
        struct sppo_run run = sppo_run_megatron(&cell, true);
        CHECK_INT(tuned[i].model, run.tp, tuned[i].tp);
        CHECK_INT(tuned[i].model, run.pp, tuned[i].pp);
        CHECK_INT(tuned[i].model, run.pieces, tuned[i].pieces);
    }
    CHECK("another model", sppo_layout_find("gpt-30b") == NULL);
}

/* The baseline of 7B has 32 tensor ranks and one stage, where both readings leave a sequence in one piece. */
static void a_speedup_divides_by_megatron_as_it_was_tuned(void)
{
    static const struct asked asked = {
        "sppo", "gpt-7b", "32,524288", "offload=adaptive;baseline=megatron-sp", "speedup", NULL};
    struct measurements rows = load(&asked);
    struct sppo_answer answer = {0};
    struct diag diag = {0};
    struct sppo_cell cell = sppo_cell_make(sppo_layout_find("gpt-7b"), 0);
    struct sppo_run tuned = sppo_run_megatron(&cell, true);
    struct sppo_time own = {0};
    struct setup setup = {0};
    struct prediction p = {0};
    CHECK_INT("speed-up", sppo_predict(&answer, &rows.row[0], NULL, &diag), STATUS_OK);
    CHECK_INT("own", sppo_time(&own, &cell, SPPO_ADAPTIVE, &diag), STATUS_OK);
    CHECK_INT("model", setup_load_model(&setup, "gpt-7b", NULL, NULL, &diag), STATUS_OK);
    CHECK_INT("cluster", setup_load_cluster(&setup, "sppo-a100", 0, 32, &diag), STATUS_OK);
    CHECK_INT("run", sppo_run_open(&setup, &tuned, &diag), STATUS_OK);
    CHECK_INT("memory", prediction_memory(&p, &setup, &setup.request, NULL, &diag), STATUS_OK);
    CHECK_INT("time", prediction_time(&p, false, &diag), STATUS_OK);
    CHECK_INT("tensor ranks", p.choices.tp, 32);
    CHECK_CLOSE("speed-up", answer.speedup, own.tokens_per_s_gpu / p.tokens_per_s_gpu, 1e-9);
    CHECK_CLOSE("whole sequences are the same run", answer.speedup_other, answer.speedup, 1e-9);
    prediction_release(&p);
    setup_release(&setup);
    measurements_release(&rows);
    diag_release(&diag);
}

static void deepspeed_is_no_megatron(void)
{
    static const struct asked longest = {"ulysses", "gpt-7b", "32,", "", "max_seq_len", NULL};
    static const struct asked faster = {
        "sppo", "gpt-7b", "32,524288", "offload=adaptive;baseline=ulysses", "speedup", NULL};
    struct measurements rows = load(&longest);
    struct sppo_answer answer = {0};
    struct diag diag = {0};
    CHECK_INT("longest", sppo_predict(&answer, &rows.row[0], NULL, &diag), STATUS_OK);
    CHECK_TEXT("as", answer.scored_as, "in chunks as FPDT's");
    CHECK_TEXT("or", answer.other_as, "with checkpoints on the host alone");
    CHECK_INT("scored", answer.longest_scored, answer.longest);
    CHECK("a tenth of what stages hold", answer.verdict.needed[LIMIT_DEVICE] < (uint64_t)16 << 30);
    measurements_release(&rows);
    rows = load(&faster);
    CHECK_INT("speed-up", sppo_predict(&answer, &rows.row[0], NULL, &diag), STATUS_OK);
    CHECK("recomputing takes longer", answer.speedup > 1.2 && answer.speedup < 4.0 / 3 * 1.2);
    CHECK("in chunks or not", fabs(answer.speedup_other / answer.speedup - 1) < 0.05);
    CHECK("multiplexed", answer.speedup_shared > answer.speedup);
    measurements_release(&rows);
    diag_release(&diag);
}

static const struct check_case cases[] = {
    {"what is not known is told", what_is_not_known_is_told},
    {"a step has the degrees of Table 4, or its own", a_step_has_the_degrees_of_table_4_or_its_own},
    {"Megatron was tuned to other stages", megatron_was_tuned_to_other_stages},
    {"a speed-up divides by Megatron as it was tuned",
     a_speedup_divides_by_megatron_as_it_was_tuned},
    {"DeepSpeed is no Megatron", deepspeed_is_no_megatron},
};
CHECK_MAIN("sppo_row", cases)

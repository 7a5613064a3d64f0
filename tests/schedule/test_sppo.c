/* tests/schedule/test_sppo.c: the degrees that strategy sppo chooses when they are left open. */
#include "schedule/config/resolve_config.h"
#include "schedule/config/sppo.h"
#include "tests/check.h"

#include <string.h>

static const struct transformer model = {.name = "7b",
                                         .layers = 32,
                                         .hidden = 4096,
                                         .heads = 32,
                                         .kv_heads = 32,
                                         .head_dim = 128,
                                         .ffn = 16384,
                                         .vocab = 50257,
                                         .norm_eps = 1e-5};

static const struct {
    const char *label;
    int64_t ranks, seq, tp, pp, dp, subsequences; /* as requested */
    int pipeline, partition;
    uint32_t tp_is, pp_is, dp_is, subsequences_is;
} rows[] = {
    /* label, ranks, seq, tp, pp, dp, subsequences, pipeline, partition, tp_is, pp_is, dp_is, subsequences_is */
    {"a node of tensor ranks, a stage each", 32, 524288, 0, 0, 0, 0, 0, 1, 8, 4, 1, 64},
    {"65B's GPUs", 128, 1048576, 16, 0, 0, 0, 0, 1, 16, 8, 1, 128},
    {"within a node", 4, 131072, 0, 0, 0, 0, 0, 1, 4, 1, 1, 16},
    {"stages are given", 32, 131072, 0, 16, 0, 0, 0, 1, 2, 16, 1, 16},
    {"at least one for each stage", 128, 131072, 2, 32, 0, 0, 0, 1, 2, 32, 2, 32},
    {"dp is given", 32, 524288, 0, 0, 2, 0, 0, 1, 8, 2, 2, 64},
    {"no more stages than layers", 512, 1048576, 8, 0, 0, 0, 0, 1, 8, 32, 2, 128},
    {"equal lengths divide", 32, 600 * 1024, 0, 0, 0, 0, 0, 0, 8, 4, 1, 75},
    {"equal lengths that 8K does not divide", 32, 8 * 9973 * 10, 0, 0, 0, 0, 0, 0, 8, 4, 1, 10},
    {"asked for", 32, 524288, 0, 0, 0, 32, 0, 1, 8, 4, 1, 32},
    {"whole sequences", 32, 524288, 0, 4, 0, 0, CHOICE_PIPELINE_1F1B, 1, 8, 4, 1, 1},
    {"asked for whole", 32, 524288, 0, 0, 0, 1, 0, 1, 8, 1, 4, 1},
    {"too short", 32, 8192, 0, 0, 0, 0, 0, 1, 8, 1, 4, 1},
};

/* Returns a request of sppo on nodes of 8 GPUs that leaves the other choices open. */
static struct request sppo_request_with_open_choices(int64_t ranks, int64_t seq,
                                                     int64_t subsequences)
{
    return (struct request){.model = &model,
                            .strategy = "sppo",
                            .ranks = ranks,
                            .seq = seq,
                            .subsequences = subsequences,
                            .length_rule = 1,
                            .weights = -1,
                            .activations = -1,
                            .optimizer = -1,
                            .attention_impl = -1,
                            .dtype = -1,
                            .sm = 80,
                            .gpus_per_node = 8};
}

static void degrees_follow_the_rule(void)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request request =
            sppo_request_with_open_choices(rows[i].ranks, rows[i].seq, rows[i].subsequences);
        request.tp = rows[i].tp;
        request.pp = rows[i].pp;
        request.dp = rows[i].dp;
        request.pipeline = rows[i].pipeline;
        request.length_rule = rows[i].partition;
        struct choices c;
        struct diag diag = {0};
        CHECK_INT(rows[i].label, resolve_choices(&c, &request, NULL, &diag), STATUS_OK);
        CHECK_TEXT(rows[i].label, diag.text != NULL ? diag.text : "", "");
        CHECK_INT(rows[i].label, c.tp, rows[i].tp_is);
        CHECK_INT(rows[i].label, c.pp, rows[i].pp_is);
        CHECK_INT(rows[i].label, c.dp, rows[i].dp_is);
        CHECK_INT(rows[i].label, c.subsequences, rows[i].subsequences_is);
        diag_release(&diag);
    }
}

/* Notes tell which degrees were filled in, and when nothing is offloaded. */
static void notes_tell_filled_in_degrees(void)
{
    static const struct {
        const char *label;
        int64_t seq, subsequences;
        const char *says;
    } notes[] = {
        {"filled", 524288, 0, "64 subsequences of 8192 tokens"},
        {"one unit", 524288, 1, "no activations are offloaded to the host"},
        {"short", 4096, 0, "no activations are offloaded to the host"},
    };
    for (size_t i = 0; i < ARRAY_LEN(notes); i++) {
        struct request request =
            sppo_request_with_open_choices(32, notes[i].seq, notes[i].subsequences);
        struct choices c;
        struct diag diag = {0}, note = {0};
        CHECK_INT(notes[i].label, resolve_choices(&c, &request, &note, &diag), STATUS_OK);
        CHECK(notes[i].label, note.text != NULL && strstr(note.text, notes[i].says) != NULL);
        diag_release(&diag);
        diag_release(&note);
    }
}

static const struct check_case cases[] = {
    {"degrees follow the rule", degrees_follow_the_rule},
    {"notes say what a user should know", notes_tell_filled_in_degrees},
};
CHECK_MAIN("sppo", cases)

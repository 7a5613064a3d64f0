/* tests/models/test_mfu.c: each convention of counting flops gives the MFU that its source prints. */
#include "models/mfu.h"

#include "tests/check.h"

static struct transformer load_model(const char *name)
{
    struct arena arena = {0};
    struct transformer t;
    CHECK_INT(name, transformer_load(&t, &arena, name, NULL, NULL), STATUS_OK);
    arena_release(&arena);
    t.name = t.source = t.note = NULL;
    return t;
}

/* MFUs that a source printed, computed again from its own throughput in tokens per second and rank. */
static const struct {
    const char *label, *model;
    enum mfu_convention convention;
    int64_t seq_len;
    double tokens_per_s, peak, printed, tolerance;
} cells[] = {
    /* label, model, convention, seq_len, tokens_per_s, peak, printed, tolerance */
    {"LoongTrain 128K", "internlm-7b-mha", MFU_LOONGTRAIN, 131072, 629.9, 312e12, 0.305, 0.0005},
    {"LoongTrain 1M", "internlm-7b-mha", MFU_LOONGTRAIN, 1048576, 194.0, 312e12, 0.543, 0.0005},
    {"the same, GQA", "internlm-7b-gqa", MFU_LOONGTRAIN, 1048576, 194.0, 312e12, 0.543, 0.0005},
    {"torchtitan, best", "llama3-8b", MFU_TORCHTITAN, 262144, 781, 989e12, 0.3612, 0.00005},
    {"torchtitan", "llama3-8b", MFU_TORCHTITAN, 262144, 706, 989e12, 0.3265, 0.00005},
};

static void published_mfu_is_reproduced(void)
{
    for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
        const struct transformer t = load_model(cells[i].model);
        const double step_s = (double)cells[i].seq_len / (64 * cells[i].tokens_per_s);
        const double got = mfu_fraction(cells[i].convention, &t, cells[i].seq_len, 1, true, step_s,
                                        64, cells[i].peak);
        CHECK_CLOSE(cells[i].label, got, cells[i].printed, cells[i].tolerance / cells[i].printed);
    }
}

static void loongtrain_mfu_is_its_formula(void)
{
    const struct transformer t = load_model("internlm-7b-gqa");
    const double h = 4096, s = 262144,
                 per_token = 3 * 32 * (29 * h * h + 2 * s * h) + 6 * h * 50257;
    CHECK_CLOSE("256K", mfu_model_flops(MFU_LOONGTRAIN, &t, 262144, 1, false), per_token * s,
                1e-14);
}

/* A model whose flops can be computed by hand: L 2, h 4, q 4, kv 2, f 6 gated, V 10, s 8. Weights of a layer: q
 * 16, k 8, v 8, o 16, FFN 72, in all 120; head 40. */
static const struct transformer small = {
    .layers = 2,
    .hidden = 4,
    .heads = 2,
    .kv_heads = 1,
    .head_dim = 2,
    .ffn = 6,
    .vocab = 10,
    .rope_theta = 1e4,
    .norm_eps = 1e-5,
};

static const struct {
    const char *label;
    enum mfu_convention convention;
    bool recomputes;
    double flops; /* of one sequence */
} hand_worked[] = {
    /* 6 (2 x 120 + 40) x 8 tokens; attention 3 x 2 layers x 4 x 32 pairs x 4 columns */
    {"longhaul", MFU_LONGHAUL, true, 6 * 280 * 8 + 3 * 2 * 4 * 32 * 4},
    {"megatron", MFU_MEGATRON, true, 6 * 280 * 8 + 3 * 2 * 4 * 64 * 4},
    /* a layer has 8 x 16 + 144 flops a token in the forward, whatever the number of K/V heads */
    {"loongtrain", MFU_LOONGTRAIN, true, 3 * (2 * (128 + 144) + 80) * 8 + 3072},
    /* norms count: 6 (240 + 2 x 8 + 4 + 40) */
    {"torchtitan", MFU_TORCHTITAN, true, 6 * 300 * 8 + 12 * 2 * 4 * 64},
    /* with 2 query heads for a K/V head, K and V count as 2 // 2 = 1 matrix: 2 x 3 x 16 + 144 */
    {"deepspeed", MFU_DEEPSPEED, false, 3 * (2 * (96 + 144) + 80) * 8 + 6144},
    {"deepspeed, recompute", MFU_DEEPSPEED, true, 4 * (2 * (96 + 144) + 80) * 8 + 4 * 2048},
    {"fpdt", MFU_FPDT, false, 3 * (2 * (96 + 144) + 80) * 8 + 3072},
    {"fpdt, recompute", MFU_FPDT, true, 4 * (2 * (96 + 144) + 80) * 8 + 4 * 1024},
};

static void mfu_conventions_by_hand(void)
{
    for (size_t i = 0; i < ARRAY_LEN(hand_worked); i++) {
        CHECK_CLOSE(
            hand_worked[i].label,
            mfu_model_flops(hand_worked[i].convention, &small, 8, 1, hand_worked[i].recomputes),
            hand_worked[i].flops, 1e-15);
        CHECK_CLOSE(
            hand_worked[i].label,
            mfu_model_flops(hand_worked[i].convention, &small, 8, 3, hand_worked[i].recomputes),
            3 * hand_worked[i].flops, 1e-15);
    }
}

static void gated_activations_add_a_matrix(void)
{
    static const enum activation gates[] = {ACTIVATION_GEGLU, ACTIVATION_SWIGLU_CLAMPED},
                                 plain[] = {ACTIVATION_GELU, ACTIVATION_RELU2};
    struct transformer t = small;
    for (size_t i = 0; i < ARRAY_LEN(gates); i++)
        for (int c = 0; c < MFU_CONVENTION_COUNT; c++) {
            t.activation = gates[i];
            CHECK_CLOSE(mfu_names[c], mfu_model_flops((enum mfu_convention)c, &t, 8, 1, false),
                        mfu_model_flops((enum mfu_convention)c, &small, 8, 1, false), 1e-15);
            /* a matrix less: 6 flops a weight, 2 layers, 4 x 6 weights, 8 tokens */
            t.activation = plain[i];
            CHECK_CLOSE(mfu_names[c], mfu_model_flops((enum mfu_convention)c, &t, 8, 1, false),
                        mfu_model_flops((enum mfu_convention)c, &small, 8, 1, false) -
                            6 * 2 * 4 * 6 * 8,
                        1e-15);
        }
}

static void four_groups_count_no_keys_in_deepspeed(void)
{
    struct transformer t = small;
    t.heads = 4;
    t.head_dim = 1;
    CHECK_CLOSE("2 // 4", mfu_model_flops(MFU_DEEPSPEED, &t, 8, 1, false),
                3 * (2 * (64 + 144) + 80) * 8 + 6144, 1e-15);
}

/* Chunks of 4 tokens, of which later chunks see 2 each. 8 + 8 pairs lie within chunks and 4 x 2 between them: 24
 * pairs instead of 32. */
static void sparse_attention_counts_what_is_computed(void)
{
    struct transformer t = small;
    t.attention_chunk = 4;
    t.attention_kept = 2;
    CHECK_CLOSE("fpdt", mfu_model_flops(MFU_FPDT, &t, 8, 1, true),
                4 * (2 * (96 + 144) + 80) * 8 + 4 * 768, 1e-15);
    CHECK_CLOSE("torchtitan", mfu_model_flops(MFU_TORCHTITAN, &t, 8, 1, true),
                6 * 300 * 8 + 12 * 2 * 4 * 48, 1e-15);
    CHECK_CLOSE("longhaul", mfu_model_flops(MFU_LONGHAUL, &t, 8, 1, true),
                6 * 280 * 8 + 3 * 2 * 4 * 24 * 4, 1e-15);
}

static void every_convention_has_a_whole_row(void)
{
    for (int i = 0; i < MFU_CONVENTION_COUNT; i++) {
        enum mfu_convention found = MFU_CONVENTION_COUNT;
        CHECK("name", mfu_find(mfu_names[i], &found));
        CHECK_INT(mfu_names[i], (int64_t)found, i);
        CHECK(mfu_names[i], mfu_table[i].formula != NULL && mfu_table[i].source != NULL);
        CHECK(mfu_names[i], mfu_model_flops((enum mfu_convention)i, &small, 8, 1, false) > 0);
    }
    enum mfu_convention none;
    CHECK("unknown", !mfu_find("palm", &none));
}

static void mfu_peak_is_of_all_devices(void)
{
    for (int i = 0; i < MFU_CONVENTION_COUNT; i++) {
        const enum mfu_convention c = (enum mfu_convention)i;
        CHECK_CLOSE(mfu_names[i], mfu_fraction(c, &small, 8, 1, false, 2, 4, 1000),
                    mfu_model_flops(c, &small, 8, 1, false) / 8000, 1e-15);
    }
}

static const struct check_case cases[] = {
    {"published cells come out", published_mfu_is_reproduced},
    {"loongtrain is its formula", loongtrain_mfu_is_its_formula},
    {"conventions are hand-worked", mfu_conventions_by_hand},
    {"every gate is a matrix", gated_activations_add_a_matrix},
    {"four groups count no keys in deepspeed", four_groups_count_no_keys_in_deepspeed},
    {"sparse attention counts what is computed", sparse_attention_counts_what_is_computed},
    {"every convention has a whole row", every_convention_has_a_whole_row},
    {"the peak is the device's", mfu_peak_is_of_all_devices},
};

CHECK_MAIN("mfu", cases)

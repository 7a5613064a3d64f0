#include "models/mfu.h"

#include <assert.h>
#include <string.h>

/* clang-format off */
const char *const mfu_names[MFU_CONVENTION_COUNT] = {
    [MFU_LONGHAUL] = "longhaul", [MFU_LOONGTRAIN] = "loongtrain", [MFU_TORCHTITAN] = "torchtitan",
    [MFU_FPDT] = "fpdt",         [MFU_DEEPSPEED] = "deepspeed",   [MFU_MEGATRON] = "megatron",
};

/* The columns are: halves_attention_pairs, counts_recompute, formula, source. */
const struct mfu_row mfu_table[MFU_CONVENTION_COUNT] = {
    [MFU_LONGHAUL] = {true, false,
        "3 (L (4hq + 4h kv + 2mhf + 2sq) + 2hV)",
        "this project: six flops per weight that multiplies (the head, not the embedding), "
        "attention as PaLM appendix B counts it but halved"},
    [MFU_LOONGTRAIN] = {true, false,
        "3L (8h^2 + 2mhf + 2sh) + 6hV; with f = 3.5h, m = 3: 3L (29h^2 + 2sh) + 6hV",
        "fitted to LoongTrain tables 2, 3 and 6, 246 of 254 cells within rounding; no discount for "
        "grouped heads"},
    [MFU_TORCHTITAN] = {false, false,
        "6 (N - N_embedding) + 12Lqs",
        "torchtitan metrics; reproduces its context-parallel table to 0.5 %"},
    [MFU_FPDT] = {true, true,
        "(3, or 4 with recomputation) x (L (2 (2 + 2//g) h^2 + 2mhf + 2sq) + 2hV)",
        "inferred: Megatron-DeepSpeed's calculator with the attention halved, as FPDT's appendix "
        "says; factor 4 because 3 would need more than an A100 attention kernel does"},
    [MFU_DEEPSPEED] = {false, true,
        "(3, or 4 with recomputation) x (L (2 (2 + 2//g) h^2 + 2mhf + 4sq) + 2hV)",
        "Megatron-DeepSpeed throughput_calculator; 2//g is a whole number, so K and V count "
        "nothing from g = 3 on"},
    [MFU_MEGATRON] = {false, false,
        "3 (L (4hq + 4h kv + 2mhf + 4sq) + 2hV)",
        "Megatron-LM up to core 0.7, vocabulary not padded; later versions halve the attention"},
};
/* clang-format on */

bool mfu_find(const char *name, enum mfu_convention *convention)
{
    for (int i = 0; i < MFU_CONVENTION_COUNT; i++) {
        if (strcmp(mfu_names[i], name) == 0) {
            *convention = (enum mfu_convention)i;
            return true;
        }
    }
    return false;
}

/* Returns the forward flops of one token, in all layers and the head, without the attention core. Whole
 * numbers are exact as doubles here, since sums of weights are below 10^15. */
typedef double linear_function(const struct transformer *t);

static double linear_flops_per_token_exact(const struct transformer *t)
{
    return 2 * (double)transformer_active_matrix_parameters(t) +
           (double)transformer_head_flops_per_token(t);
}

/* Returns the forward flops of one token in a layer's feed-forward part; if only some layers have experts, the mean
 * over the layers. */
static double ffn_flops(const struct transformer *t)
{
    const double matrices = transformer_has_gate(t) ? 3 : 2;
    const double share = (double)transformer_count_expert_layers(t) / (double)t->layers;
    const double expert_columns_per_token =
        (double)(t->experts_per_token * t->expert_ffn + t->shared_ffn);
    return 2 * matrices * (double)t->hidden *
           ((1 - share) * (double)t->ffn + share * expert_columns_per_token);
}

static double linear_flops_loongtrain(const struct transformer *t)
{
    const double h = (double)t->hidden;
    return (double)t->layers * (8 * h * h + ffn_flops(t)) +
           (double)transformer_head_flops_per_token(t);
}

/* Returns 2 (N - N_embedding), where N is the number of parameters: torchtitan counts three times as many flops per
 * token in a step. As there, a tied head does not count, since it is part of the embedding, and of the routed experts
 * only those that a token passes count. */
static double linear_flops_torchtitan(const struct transformer *t)
{
    return 2 * (double)(transformer_active_parameters(t) - transformer_embedding_parameters(t));
}

static double linear_flops_deepspeed(const struct transformer *t)
{
    const double h = (double)t->hidden;
    /* rounded down to 2, 1 or 0, as in Megatron-DeepSpeed's code */
    const int64_t kv_matrices = 2 / (t->heads / t->kv_heads);
    return (double)t->layers * (2 * (double)(2 + kv_matrices) * h * h + ffn_flops(t)) +
           (double)transformer_head_flops_per_token(t);
}

static linear_function *const linear[MFU_CONVENTION_COUNT] = {
    [MFU_LONGHAUL] = linear_flops_per_token_exact, [MFU_LOONGTRAIN] = linear_flops_loongtrain,
    [MFU_TORCHTITAN] = linear_flops_torchtitan,    [MFU_FPDT] = linear_flops_deepspeed,
    [MFU_DEEPSPEED] = linear_flops_deepspeed,      [MFU_MEGATRON] = linear_flops_per_token_exact,
};

double mfu_model_flops(enum mfu_convention convention, const struct transformer *t, int64_t seq_len,
                       int64_t sequences, bool recomputes)
{
    /* the share of causal pairs that windows or block-sparse attention leave visible; exactly 1 without them */
    const double seen = transformer_visible_attention_flops(t, seq_len) /
                        transformer_layer_attention_flops(t, seq_len, true);
    return mfu_model_flops_of_visible_share(convention, t, seq_len, sequences, recomputes, seen);
}

double mfu_model_flops_of_visible_share(enum mfu_convention convention, const struct transformer *t,
                                        int64_t seq_len, int64_t sequences, bool recomputes,
                                        double seen)
{
    assert((unsigned)convention < MFU_CONVENTION_COUNT);
    const struct mfu_row *row = &mfu_table[convention];
    const double forwards = row->counts_recompute && recomputes ? 4 : 3;
    double attention =
        transformer_layer_attention_flops(t, seq_len, row->halves_attention_pairs) * seen;
    /* LoongTrain counts 2sh flops per token in its attention, even if all heads together are wider or narrower than
     * h */
    if (convention == MFU_LOONGTRAIN)
        attention *=
            2 * (double)t->hidden / (double)(transformer_q_columns(t) + transformer_o_columns(t));
    /* 3 products with each weight in a step: forward, gradient of the input, gradient of the weight; frozen weights
     * lack the last. A fourth, if recomputation counts: the second forward */
    const double products = forwards - 3 + transformer_step_products_per_weight(t);
    const double adapters = 2 * (double)transformer_adapter_parameters(t);
    const double sequence =
        (products * linear[convention](t) + forwards * adapters) * (double)seq_len +
        forwards * (double)t->layers * attention;
    return (double)sequences * sequence;
}

double mfu_fraction(enum mfu_convention convention, const struct transformer *t, int64_t seq_len,
                    int64_t sequences, bool recomputes, double step_s, int64_t devices,
                    double peak_flops_per_s)
{
    assert((unsigned)convention < MFU_CONVENTION_COUNT);
    assert(peak_flops_per_s > 0 && step_s > 0 && devices > 0);
    return mfu_model_flops(convention, t, seq_len, sequences, recomputes) /
           (step_s * (double)devices * peak_flops_per_s);
}

void mfu_explain_fractions_above_one(struct text *out, const double fraction[MFU_CONVENTION_COUNT])
{
    int above = 0;
    for (int i = 0; i < MFU_CONVENTION_COUNT; i++)
        if (!mfu_table[i].halves_attention_pairs && fraction[i] > 1)
            text_printf(out, "%s%s", above++ > 0 ? " and " : "", mfu_names[i]);
    if (above > 0)
        text_printf(out, " count%s attention that the mask leaves out: above 100 %% is no fault",
                    above == 1 ? "s" : "");
}

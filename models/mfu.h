/* models/mfu.h: how sources count the model flops of a training step, as one table.
 *
 * Model flops utilisation is (model flops of a step) / (step seconds x ranks x peak flop/s). Sources differ in every
 * term of the numerator, so that the same run is 58 % in one paper and 44 % in another: an MFU has a meaning only
 * together with the name of its convention. All divide by the dense bf16 peak of the device that ran (LoongTrain and
 * FPDT 312 TFLOP/s, torchtitan 989). Each row says what supports its formula; tests/models/test_mfu.c computes values
 * that sources print.
 *
 * Symbols: L layers, h hidden, q = heads x head_dim, kv = kv_heads x head_dim, f ffn, V vocab, s tokens of a
 * sequence, g = heads / kv_heads, m matrices of the FFN (3 with a gate, else 2). A step has as many flops as three
 * forwards, since a backward has as many as two. The products with frozen weights (beside adapters) have two in all. */
#ifndef MODELS_MFU_H
#define MODELS_MFU_H

#include "base/text.h"
#include "models/transformer.h"

enum mfu_convention {
    /* ours: every product that the model needs, and the pairs of attention that its mask leaves */
    MFU_LONGHAUL,
    MFU_LOONGTRAIN,
    MFU_TORCHTITAN,
    MFU_FPDT,
    MFU_DEEPSPEED,
    MFU_MEGATRON,
    MFU_CONVENTION_COUNT
};

extern const char *const mfu_names[MFU_CONVENTION_COUNT];

struct mfu_row {
    bool halves_attention_pairs; /* s^2 / 2 pairs instead of s^2 */
    bool counts_recompute;       /* four forwards instead of three where the run recomputes */
    const char *formula;         /* flops of one token in a step, as text */
    const char *source;
};

extern const struct mfu_row mfu_table[MFU_CONVENTION_COUNT];

/* Sets *convention to the one with that name; returns false if there is none. */
bool mfu_find(const char *name, enum mfu_convention *convention);

/* Returns the flops of a whole step of `sequences` sequences of seq_len tokens each, over all
 * ranks. If the model has windows or block-sparse attention, each convention counts only the share
 * of its pairs that is visible: with all pairs, FPDT's Table 4 would contradict its times.
 * recomputes: the run computes the forward again in the backward. */
double mfu_model_flops(enum mfu_convention convention, const struct transformer *t, int64_t seq_len,
                       int64_t sequences, bool recomputes);

/* Does what mfu_model_flops() does, with the share of causal pairs that is visible as an argument: `seen` also depends
 * on packed documents. */
double mfu_model_flops_of_visible_share(enum mfu_convention convention, const struct transformer *t,
                                        int64_t seq_len, int64_t sequences, bool recomputes,
                                        double seen);

/* Returns MFU as a fraction: mfu_model_flops() over the flops that `devices` devices can do in step_s seconds at their
 * peak. */
double mfu_fraction(enum mfu_convention convention, const struct transformer *t, int64_t seq_len,
                    int64_t sequences, bool recomputes, double step_s, int64_t devices,
                    double peak_flops_per_s);

/* Appends an explanation if the MFU is above 1 in a convention that counts the pairs that the mask hides; else appends
 * nothing. fraction[]: the MFU in each convention; 0: the convention is not shown. */
void mfu_explain_fractions_above_one(struct text *out, const double fraction[MFU_CONVENTION_COUNT]);

#endif

/* predict/validate/baseline.h: the time of a step in closed form, as LoongTrain (arXiv 2406.18485, section 4.5) gives
 * it: the simulation should predict better than this.
 *
 *   T      = T_exchange + (cp / w) T_window
 *   T_window = (w - 1) max(T_tile, T_inner) + max(T_tile, T_outer)
 *
 * T is the time of attention in one layer. cp is the number of ranks of the ring, and w the number of ranks of an inner
 * ring. T_exchange is the time of the all-to-alls, T_tile that of one tile of attention, and T_inner and T_outer those
 * of a message with keys and values inside an inner ring and between inner rings. T_window is the time of w tiles, in
 * which keys and values go once around an inner ring and then on to the next. With cp = 1, T = T_exchange + T_tile.
 * Tiles run at one share of the device's peak, and messages at nominal rates. The formula applies to the forward, and
 * to the backward with 2.5 times the flops, twice the bytes of the ring and the same all-to-alls. Matrix products run
 * at the same share. Latencies, the host, memory-bound work and moving weights are left out.
 *
 * The folder predict/validate/ predicts training steps and figures that others measured, and takes the
 * differences. */
#ifndef PREDICT_VALIDATE_BASELINE_H
#define PREDICT_VALIDATE_BASELINE_H

#include "models/cluster.h"
#include "schedule/choices/choices.h"

/* The terms of the closed form, for one rank. */
struct baseline {
    /* flops of one tile of attention, and of all products of a forward */
    double tile_flops, linear_flops;
    double message_bytes, inner_bytes_per_s, outer_bytes_per_s;
    double forward_all_to_alls_s; /* seconds of the all-to-alls of a forward */
    double cp, window, layers, peak_flop_per_s;
    /* how often a step computes the forward, recomputation included: forwards_per_step for products,
     * core_forwards_per_step for attention's core */
    double forwards_per_step, core_forwards_per_step;
    double sequences_of_context_group; /* sequences that a context-parallel group has in a step */
    /* the attention operator is predicted, not the step (--scope) */
    bool predicts_attention_operator_only;
};

/* Returns whether the closed form covers these choices: rings, head parallelism or both, for the step, the attention
 * operator or its exchanges, without a pipeline, tensor parallelism and latent attention. */
bool baseline_covers_choices(const struct choices *choices);
struct baseline baseline_of(const struct choices *choices, const struct cluster *cluster);

/* Returns the seconds of the step, or of the operator. share: the share of the peak at which products run. */
double baseline_step_s(const struct baseline *baseline, double share);

/* Returns the seconds of the operator's all-to-alls in forward and backward. */
double baseline_exchange_s(const struct baseline *baseline);

#endif

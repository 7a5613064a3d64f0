/* predict/validate/baseline.h: the time of a step in closed form, as LoongTrain (arXiv 2406.18485, section 4.5) gives
 * it: the simulation should predict better than this.
 *
 *   T      = T_exchange + (cp / w) T_window
 *   T_window = (w - 1) max(T_tile, T_inner) + max(T_tile, T_outer)
 *
 * Here cp are the ranks of the ring, and w those of an inner ring; T_exchange is the time of the all-to-alls. With
 * cp = 1, T = T_exchange + T_tile. Tiles run at one share of the device's peak, and messages at nominal rates. The
 * formula applies to the forward, and to the backward with 2.5 times the flops, twice the bytes of the ring and the
 * same all-to-alls. Matrix products run at the same share. Latencies, the host, memory-bound work and moving weights
 * are left out.
 *
 * The folder predict/validate/ predicts training steps and figures that others measured, and takes the
 * differences. */
#ifndef PREDICT_VALIDATE_BASELINE_H
#define PREDICT_VALIDATE_BASELINE_H

#include "models/cluster.h"
#include "schedule/choices/choices.h"

/* Plain numbers, of one rank. */
struct baseline {
    double tile_flops, linear_flops; /* one tile; all products of a forward */
    double message_bytes, inner_bytes_per_s, outer_bytes_per_s;
    double exchange_s; /* a forward's all-to-alls */
    double cp, window, layers, peak_flop_per_s;
    double forwards, core_forwards; /* of a step: linear, and attention's core */
    double sequences;               /* of a rank group in a step */
    bool operator_only;
};

/* True if the closed form covers these choices: rings, head parallelism or both, without a pipeline. */
bool baseline_knows(const struct choices *choices);
struct baseline baseline_of(const struct choices *choices, const struct cluster *cluster);

/* Returns the seconds of the step, or of the operator, with products at that share of the peak. */
double baseline_s(const struct baseline *baseline, double share);

/* Returns the seconds of the operator's all-to-alls, forward and backward. */
double baseline_exchange_s(const struct baseline *baseline);

#endif

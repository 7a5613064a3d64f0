/* predict/bounds.h: lower bounds of a configuration in closed form: seconds of a step, bytes of a GPU and bytes of host
 * memory. docs/planning.md derives them; tests/cli/test_space.c compares them with simulations. */
#ifndef PREDICT_BOUNDS_H
#define PREDICT_BOUNDS_H

#include "predict/setup/setup.h"

/* Returns a lower bound of the step in seconds. In a plain pipeline (pipeline_is_plain()), it is the computation of the
 * last stage at the highest rates, plus the time of the stages before it for the forward of the first unit and the
 * backward of the last unit. Otherwise it is the computation of all ranks, divided by their number. Products count at
 * the rate of 32- or 16-bit operands, so products in 8 or 4 bits may beat the bound. The lengths of subsequences in
 * `choices` must be set. */
double bound_step_s(const struct setup *setup, const struct choices *choices);

/* The seconds of one layer, forward and backward of one micro-batch, on the ranks of one sequence. kernels_s: a rank's
 * kernels if nothing is recomputed. issue_s: the time for which a rank's host issues all ops. step_s: the time from the
 * start to the end, in which host and device work at the same time. */
struct layer_lower_bound {
    double kernels_s, issue_s, step_s;
};

/* Does what bound_step_s() does, with the time of a layer (predict/plan/layer_time.h) in place of the least that its
 * flops take. All layers must be alike. The head counts only if the host issues a layer in less than half of the
 * layer's time; otherwise its kernels may run while layers are issued. */
double bound_step_from_layer_s(const struct setup *setup, const struct choices *choices,
                               const struct layer_lower_bound *layer);

/* bound_state_bytes() returns the bytes of a GPU's part of the parameters (0 if these are in host memory), and of its
 * process's context. bound_optimizer_bytes() returns those of its part of the optimizer's states; 0 if these are on the
 * host, or if only adapters are trained, for which no bound is known. */
double bound_state_bytes(const struct setup *setup, const struct choices *choices);
double bound_optimizer_bytes(const struct choices *choices);

/* Returns the bytes of activations that must be on a GPU at once. Without stages and subsequences, these are the inputs
 * of all layers that are not offloaded (`offload`, host_layers); 0 with activations `ratio`. With subsequences in a
 * plain pipeline (pipeline_is_plain()) or without stages, they are the keys and values of a whole sequence; with
 * activations `keep` and `ratio` also all other saved activations that are not offloaded (schedule/pipeline/ratios.h).
 * Returns 0 for other pipelines, for which no bound is known. */
double bound_saved_device_bytes(const struct choices *choices);

/* Returns the bytes of activations that must be in host memory at once for one GPU. Without stages and subsequences,
 * these are the inputs of all layers but the last, if they are offloaded. With subsequences in a plain pipeline or
 * without stages, and activations `ratio`, they are the offloaded parts of all subsequences but the last
 * (schedule/pipeline/ratios.h). Returns 0 otherwise. */
double bound_saved_host_bytes(const struct choices *choices);

#endif

/* predict/plan/layer_time.h: how long one layer of a layout takes, simulated once for all configurations that share it.
 *
 * A layer's forward and backward depend on the degrees within a sequence, the attention and what is recomputed, but
 * neither on how weights are shared nor on the number of stages, micro-batches and data-parallel ranks. So a step of
 * layers only (SCOPE_ALL_LAYERS) is built with 2 and with 3 layers on the ranks of one sequence. The difference is the
 * time of the third layer, without what the beginning and the end of a step add. A step of the whole configuration
 * takes at least the time of all its layers (predict/bounds.h), since exchanges of weights only add to it. */
#ifndef PREDICT_PLAN_LAYER_TIME_H
#define PREDICT_PLAN_LAYER_TIME_H

#include "predict/bounds.h"
#include "predict/setup/setup.h"

#include <stdbool.h>

/* The choices on which a layer's time depends. Members without an effect are 0, but for ring_window, so that equal
 * layers mostly have equal bytes. */
struct layer_key {
    const struct profile *profile;
    const char *core_plan; /* equal plans of a search have equal pointers */
    int64_t micro_batch, chunk;
    uint32_t cp, hp, tp, ring_window, ring_ranks_per_node, subsequences, ffn_chunks;
    int length_rule;
    uint8_t strategy, attention, placement, ring_layout, rotation, mla_exchange, activations,
        attention_impl, dtype;
};

/* Sets *key to the choices that determine a layer's time. Activations that are offloaded by ratio count as kept. With
 * `least`, any activations do: a layer takes least time if it recomputes nothing and copies nothing to the host.
 * Returns false if one layer's time does not represent all: if layers or sequences differ, if there are expert ranks,
 * or if only a part of the model is predicted. */
bool layer_key_make(struct layer_key *key, const struct choices *choices,
                    const struct request *request, bool least);
bool layer_keys_equal(const struct layer_key *a, const struct layer_key *b);

/* Returns a request for steps of layers only, on the ranks of one sequence, from which a layer's time follows. */
struct request layer_request_of_one_layer(const struct request *request,
                                          const struct layer_key *key);

/* layer_kernel_sums() returns the time of all kernels of one layer, and the time that the host takes to issue them,
 * without a simulation; step_s of its result is the longer of the two. layer_simulated_s() returns the simulated
 * seconds of a layer. What cannot be found is 0. The request must have the key's choices, and the setup's cluster at
 * least as many GPUs as the key has ranks. */
struct layer_lower_bound layer_kernel_sums(const struct setup *setup, const struct request *request,
                                           const struct layer_key *key);
double layer_simulated_s(const struct setup *setup, const struct request *request,
                         const struct layer_key *key);

#endif

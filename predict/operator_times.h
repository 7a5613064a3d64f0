/* predict/operator_times.h: the simulated times of a part of the model, for example of one layer or its attention
 * operator (--scope). */
#ifndef PREDICT_OPERATOR_TIMES_H
#define PREDICT_OPERATOR_TIMES_H

#include "predict/prediction.h"

struct operator_times {
    /* seconds of the part over all ranks, from the end of the ops that make its inputs (with SCOPE_ONE_LAYER from the
     * start of its first op) to the end of its last op. With SCOPE_ALL_LAYERS and SCOPE_ALL_LAYERS_FORWARD it is the
     * whole simulated step, with SCOPE_ATTENTION_EXCHANGES all_to_all_and_its_kernels_s, with
     * SCOPE_CHUNK_FETCHES_FROM_HOST the sum of both fetches */
    double elapsed_s;
    /* ---- times on rank 0, apart from communication_s ---- */
    /* seconds in which all-to-alls, or the kernels around them (kernels_around_all_to_alls_s), run; 0: the part has no
     * all-to-all. With SCOPE_ATTENTION_EXCHANGES: the host's synchronisations cut the step into pieces, and it is the
     * sum of the pieces in which one of these runs */
    double all_to_all_and_its_kernels_s;
    bool has_all_to_all;
    /* sum of the kernels around all-to-alls: packs, unpacks, and those that copy or sum heads (HEAD_EXPAND,
     * HEAD_REDUCE) */
    double kernels_around_all_to_alls_s;
    double compute_s; /* sum of all other kernels */
    /* sum of the messages with keys, values and their gradients, on the stream that has the most of them */
    double ring_s;
    /* mean seconds of one message in the forward that passes on keys and values */
    double mean_rotation_message_s;
    /* with SCOPE_CHUNK_FETCHES_FROM_HOST: the seconds in which the inputs of one tile are fetched.
     * fetch_keys_and_values_s: keys and values in the forward; fetch_all_inputs_s: all inputs in the backward */
    double fetch_keys_and_values_s, fetch_all_inputs_s;
    /* elapsed_s if kernels took no time; 0 if there is no communication. operator_times_find_communication() sets it */
    double communication_s;
};

/* Returns the times of a prediction that was simulated for a part of the model (--scope). */
struct operator_times operator_times_of(const struct prediction *prediction);

/* Returns the sum of rank 0's kernels. If there are all-to-alls, the kernels around them (kernels_around_all_to_alls_s)
 * are left out. */
static inline double operator_times_kernel_s(const struct operator_times *times)
{
    return times->compute_s + (times->has_all_to_all ? 0 : times->kernels_around_all_to_alls_s);
}

/* Sets communication_s. For this it simulates the prediction once more, without kernels; with
 * SCOPE_CHUNK_FETCHES_FROM_HOST, or if the part does not communicate, it need not. */
enum status operator_times_find_communication(struct operator_times *times,
                                              const struct prediction *prediction,
                                              struct diag *diag);

#endif

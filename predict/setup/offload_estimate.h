/* predict/setup/offload_estimate.h: how many bytes can be copied to the host while a subsequence is computed, from
 * which offload ratios follow (schedule/pipeline/ratios.h). */
#ifndef PREDICT_SETUP_OFFLOAD_ESTIMATE_H
#define PREDICT_SETUP_OFFLOAD_ESTIMATE_H

#include "predict/setup/setup.h"

/* Returns the bytes/s at which a GPU makes large pinned copies to the host when all GPUs of its node copy at once. */
double offload_copy_bytes_per_s(const struct cluster *cluster);

/* Sets the request's offload_hidden_bytes_by_subsequence: for each subsequence, the bytes that can be copied to the
 * host while it runs forward. They are the time of its kernels on the first stage, times offload_copy_bytes_per_s().
 * Sets offload_hidden_bytes to their mean. The request must have the lengths of its subsequences. degrees: the choices
 * to which the request was resolved, for its degrees of parallelism and its pipeline; they may lack these lengths. The
 * costs of *setup must have the attention kernels. *bytes is the array, which the caller frees, also on failure. */
enum status offload_find_hidden_bytes(double **bytes, struct request *request,
                                      const struct choices *degrees, const struct setup *setup,
                                      struct diag *diag);

#endif

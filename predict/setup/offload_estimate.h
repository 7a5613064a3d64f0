/* predict/setup/offload_estimate.h: the bytes that a subsequence's computation hides, from which offload ratios
 * follow (schedule/pipeline/ratios.h). */
#ifndef PREDICT_SETUP_OFFLOAD_ESTIMATE_H
#define PREDICT_SETUP_OFFLOAD_ESTIMATE_H

#include "predict/setup/setup.h"

/* Returns the bytes/s of a GPU's large pinned copies to the host when all GPUs of its node copy at once. */
double offload_bytes_per_s(const struct cluster *cluster);

/* Sets the request's offload_hidden_of: bytes that go to the host while a unit of each subsequence runs
 * forward, the time of its kernels on the first stage at the rate that a GPU's pinned copies reach when all
 * of its node copy at once; and offload_hidden, their mean. The request has its lengths. *bytes is for
 * the caller to free, also on failure. */
enum status offload_hidden_bytes(double **bytes, struct request *request, const struct setup *setup,
                                 struct diag *diag);

#endif

/* cli/offload_estimate.h: what ratios of activations are made of (schedule/pipeline/ratios.h). */
#ifndef CLI_OFFLOAD_ESTIMATE_H
#define CLI_OFFLOAD_ESTIMATE_H

#include "cli/setup.h"

/* The rate of a GPU's large pinned copies to the host when all of its node copy at once. */
double offload_bytes_per_s(const struct cluster *cluster);

/* Bytes that go to the host while one unit runs forward: the time of its kernels, on average over the
 * units of the first stage, at the rate that a GPU's pinned copies reach when all of its node copy at
 * once. The request has its lengths. */
enum status offload_hidden_bytes(double *bytes, const struct setup *setup,
                                 const struct request *request, struct diag *diag);

#endif

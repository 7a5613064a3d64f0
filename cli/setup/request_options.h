/* cli/setup/request_options.h: prints a request as the options that make it. */
#ifndef CLI_SETUP_REQUEST_OPTIONS_H
#define CLI_SETUP_REQUEST_OPTIONS_H

#include "base/text.h"
#include "schedule/choices/choices.h"

#include <stdbool.h>

/* Appends "--strategy 2d --cp 8 --hp 8 ...": the options that reproduce the request, without those of the model, the
 * cluster, the length and the batch. Options with their default value are left out. */
void request_put_options(struct text *out, const struct request *request);

/* request_partition_name() names how subsequences are cut; the other function appends the share of saved activations
 * that is offloaded: "adaptive", "full" or a number. For requests that offload activations by ratio. */
const char *request_partition_name(const struct request *request);
void request_put_offload_ratio(struct text *out, bool adaptive, double ratio);

#endif

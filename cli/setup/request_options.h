/* cli/setup/request_options.h: the options that make a request. */
#ifndef CLI_SETUP_REQUEST_OPTIONS_H
#define CLI_SETUP_REQUEST_OPTIONS_H

#include "base/text.h"
#include "schedule/choices/choices.h"

#include <stdbool.h>

/* Appends "--strategy 2d --cp 8 --hp 8 ...": all options that make the request again, beside those of the
 * model and the cluster, the length and the batch; what is the default is left out. */
void request_put_options(struct text *out, const struct request *request);

/* How subsequences are cut, and how much of what they keep leaves: "adaptive", "full" or a share. Of a
 * request whose activations leave by ratio. */
const char *request_partition_name(const struct request *request);
void request_put_offload_ratio(struct text *out, bool adaptive, double ratio);

#endif

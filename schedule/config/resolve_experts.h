/* schedule/config/resolve_experts.h: the part of resolve_choices() that spreads experts over ranks. */
#ifndef SCHEDULE_CONFIG_RESOLVE_EXPERTS_H
#define SCHEDULE_CONFIG_RESOLVE_EXPERTS_H

#include "base/diag.h"
#include "schedule/choices/choices.h"

/* Fills and checks the degree of expert parallelism. The other degrees and the shard of weights must be resolved
 * already. */
enum status resolve_experts(struct choices *c, const struct request *r, struct diag *diag);
/* Fails if experts that are spread over ranks would not get equally many rows of each rank in every piece. */
enum status resolve_expert_rows(const struct choices *c, struct diag *diag);

#endif

/* schedule/config/resolve_experts.h: the part of resolve_choices() that spreads experts over ranks. */
#ifndef SCHEDULE_CONFIG_RESOLVE_EXPERTS_H
#define SCHEDULE_CONFIG_RESOLVE_EXPERTS_H

#include "base/diag.h"
#include "schedule/choices/choices.h"

/* Fills and checks the degree of expert parallelism. The other degrees and the shard of weights must be resolved
 * already. */
enum status resolve_experts(struct choices *c, const struct request *r, struct diag *diag);
/* Fills choices.routing_has_remainders: whether experts that are spread over ranks cannot get equally many rows of each
 * rank in every piece. The lengths of subsequences and pieces of rows must be resolved already. */
void resolve_expert_rows(struct choices *c);

#endif

/* schedule/config/resolve_experts.h: the part of resolve_choices() that spreads experts over ranks. */
#ifndef SCHEDULE_CONFIG_RESOLVE_EXPERTS_H
#define SCHEDULE_CONFIG_RESOLVE_EXPERTS_H

#include "base/diag.h"
#include "schedule/choices/choices.h"

/* Sets the choices of experts, first of all the degree of expert parallelism, and checks them. The other degrees and
 * the shard of weights must be resolved already. */
enum status resolve_experts(struct choices *c, const struct request *r, struct diag *diag);
/* Sets choices.lists_copies_of_even_routing. The lengths of subsequences and the pieces of the feed-forward part must
 * be resolved already. */
void resolve_listing_of_expert_copies(struct choices *c);

#endif

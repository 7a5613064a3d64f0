/* sim/traffic/prune.h: omits links that can never limit a flow, so that the engine does not see them.
 *
 * If every flow that may cross link A also crosses link B, and B is no wider than A, then A carries at most what B
 * carries: A is never full before B is, and max-min sharing is the same without A. A ring over 16 ports that nothing
 * else uses becomes one link; a cap wider than the port after it is dropped. Times stay exact, and SimGrid's work per
 * flow shrinks with its path. */
#ifndef SIM_PRUNE_H
#define SIM_PRUNE_H

#include "sim/platform/platform.h"

/* The links that are kept: flow f of the table crosses link[link_begin[f]..link_begin[f+1]), at least one link. */
struct pruned {
    uint32_t *link_begin; /* [flow count + 1] */
    uint32_t *link;
};

void prune_make(struct pruned *pruned, const struct platform *platform,
                const struct flow_table *flows);
void prune_release(struct pruned *pruned);

#endif

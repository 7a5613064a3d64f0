/* sim/traffic/fold.h: rank folding: of ranks that do the same at the same times, one is simulated.
 *
 * Ranks, channels, flows and links form a graph: a rank takes part in channels, a channel starts flows, a flow
 * crosses links. Colour refinement finds the coarsest equitable partition of that graph that distinguishes roles,
 * guards, durations, sizes, latencies and capacities: nodes of one class have, for every class, equally many
 * neighbours in it.
 *
 * Why that is exact. Claim: at any time, nodes of one class are in the same state (ranks: the same ops issued,
 * started and ended; channels: the same events open; flows: the same bytes left). It holds at the start. While
 * nothing begins or ends, the flows that run are a union of classes. Progressive filling raises all rates together
 * and freezes the flows of the links that fill up. Links of one class carry equally many flows of every class, so
 * they fill up together and the flows of a class freeze together: their rates are equal. So they end together, an
 * event ends on all channels of a class together, and all ranks of a class see the same happen at the same time: the
 * claim holds afterwards, too.
 *
 * So one rank of each class is executed, and its events represent those of all channels of their class. Of the flows,
 * only a few are needed (fold_flows.h). docs/simulation.md, "Rank folding", has the details. */
#ifndef SIM_FOLD_H
#define SIM_FOLD_H

#include "sim/traffic/prune.h"
#include "sim/traffic/traffic.h"

struct fold {
    bool is_exact; /* every rank is a class of its own, and the engine moves all flows */
    uint32_t class_count;
    uint32_t *class_of_rank;        /* [rank_count] classes are numbered by their lowest rank */
    uint32_t *lowest_rank_by_class; /* [class_count] the lowest rank */
    /* [class_count + 1] In an array with an element for each op of each class, the ops of class c begin at this
     * index. */
    size_t *first_op_row_by_class;

    uint32_t channel_class_count;
    uint32_t *class_by_channel;        /* [channel_count] */
    uint32_t *lowest_channel_by_class; /* [channel_class_count] the lowest channel */

    /* The flows to start for an event on a channel of a class are flow[flow_begin_by_transfer[t] ..
     * flow_begin_by_transfer[t + 1]), where t is the transfer of the class's lowest channel. The range is empty for
     * transfers of other channels. */
    uint32_t *flow_begin_by_transfer; /* [transfer_count + 1] */
    uint32_t *flow;

    /* The network in which flows run. Flow f crosses link[link_begin[f]..link_begin[f + 1]), an empty range if it is
     * not simulated. bytes_per_s: the bandwidth of each link. */
    double *bytes_per_s;  /* [link_count of the platform] */
    uint32_t *link_begin; /* [flow count + 1] */
    uint32_t *link;
};

/* Fills *fold with the classes of ranks and channels, and with the flows to start for them. exact: every rank is a
 * class of its own, and all flows are started. */
void fold_make(struct fold *fold, const struct traffic *traffic, const struct pruned *pruned,
               bool exact);
/* Returns the transfer that represents `transfer` in the simulation: the same variant, on the lowest channel of the
 * class of its channel. */
static inline uint32_t fold_representative_transfer(const struct fold *fold,
                                                    const struct traffic *traffic,
                                                    uint32_t transfer)
{
    uint32_t channel = traffic->transfer[transfer].channel;
    uint32_t lowest = fold->lowest_channel_by_class[fold->class_by_channel[channel]];
    return traffic->channel[lowest].first_transfer_of_channel + transfer -
           traffic->channel[channel].first_transfer_of_channel;
}

void fold_release(struct fold *fold);

#endif

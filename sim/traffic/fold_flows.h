/* sim/traffic/fold_flows.h: chooses the few flows that are simulated in place of all flows.
 *
 * There are two exact reductions, given an equitable partition of flows and links (fold.h).
 *
 * Components. Flows that share no link, directly or through others, are independent max-min problems. Of the components
 * of the flow-link graph, enough are kept that each class of flows has a member in one; the members elsewhere end at
 * the same dates.
 *
 * Quotient. Inside a component, let n(L, F) be the number of flows of class F on a link of class L. The rates x(F) are
 * equal within a class, so a link allows sum over F of n(L, F) x(F) <= width. Where n(L, F) = s(L) k(F), this is sum of
 * k(F) x(F) <= width / s(L). So the component is replaced by a network with one link of that width for each class L,
 * and with k(F) flows of each class F. It has the same max-min rates: a link is the bottleneck of a class if it is full
 * and no class on it is faster, and the bottlenecks of both networks are links of the same classes. Components in which
 * n does not factor are simulated flow by flow. */
#ifndef SIM_FOLD_FLOWS_H
#define SIM_FOLD_FLOWS_H

#include "sim/traffic/fold.h"

struct flow_and_link_classes {
    uint32_t flow_classes, link_classes;
    uint32_t *class_of_flow, *class_of_link;
};

/* Fills the flows and the network of *fold, whose channel classes must be known. network: the classes of flows and
 * links, by which only the few flows that represent all are kept; NULL: all flows are kept. */
void fold_flows(struct fold *fold, const struct traffic *traffic, const struct pruned *pruned,
                const struct flow_and_link_classes *network);

#endif

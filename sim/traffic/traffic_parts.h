/* sim/traffic/traffic_parts.h: the parts of traffic_make(), in their order. */
#ifndef SIM_TRAFFIC_PARTS_H
#define SIM_TRAFFIC_PARTS_H

#include "sim/traffic/traffic.h"

/* Fills the arrays of ops, and the comm classes with their ops and variants (traffic_classes.c). */
void traffic_add_comm_classes(struct traffic *traffic);

/* Fails unless roles that share an instance of a group issue the same collectives on it (traffic_check.c). */
enum status traffic_check_groups(const struct traffic *traffic, const char *name,
                                 struct diag *diag);

/* Fills channels, participants, and the arrays that give each rank's channels (traffic_channels.c). Fails if a rank
 * runs a send or a receive and its group has no member at the op's distance. */
enum status traffic_add_channels(struct traffic *traffic, const char *name, struct diag *diag);

/* Fills transfers and flows (traffic_transfers.c). */
void traffic_add_transfers(struct traffic *traffic);

static inline const char *traffic_work_kind_name(const struct ir *ir, uint32_t op)
{
    return work_kind_info(ir->op.kind[op])->name;
}

#endif

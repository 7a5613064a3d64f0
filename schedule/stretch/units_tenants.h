/* schedule/stretch/units_tenants.h: the tenants of a role whose micro-batches were left out. */
#ifndef SCHEDULE_STRETCH_UNITS_TENANTS_H
#define SCHEDULE_STRETCH_UNITS_TENANTS_H

#include "schedule/passes/tenants.h"
#include "schedule/stretch/units.h"

/* Where the tenants of steady periods are among all. */
struct units_tenancy {
    uint32_t low; /* the first period in which ends go on as from the copied one to the next */
    uint32_t first, count; /* row of the first one's; of each */
    uint32_t
        reach; /* periods: nobody stays for longer, but for those that stay until all are over */
};

/* Fills *out with the tenants of the list with so many copies of the period, from those of the list without.
 * Rows of buffers are those of that list too. False: nobody can tell when they end. */
bool units_tenants(struct tenants *out, const struct tenants *in, const struct units *u,
                   uint32_t copies, struct units_tenancy *of);

#endif

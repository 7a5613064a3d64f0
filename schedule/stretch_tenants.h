/* schedule/stretch_tenants.h: the tenants of a stretched role's arena, without asking its clocks. */
#ifndef SCHEDULE_STRETCH_TENANTS_H
#define SCHEDULE_STRETCH_TENANTS_H

#include "schedule/stretch.h"
#include "schedule/tenants.h"

/* Fills *out with the tenants of the long list, from those of the short one. False: nobody can tell
 * when they end. `live` is not looked for. */
bool stretch_tenants(struct tenants *out, const struct tenants *in, const struct stretch *s);

#endif

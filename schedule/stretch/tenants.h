/* schedule/stretch/tenants.h: the tenants of a stretched role's arena, without asking its clocks. */
#ifndef SCHEDULE_STRETCH_TENANTS_H
#define SCHEDULE_STRETCH_TENANTS_H

#include "schedule/passes/tenants.h"
#include "schedule/stretch/stretch.h"

/* Fills *out with the tenants of the long list, from those of the short one. False: nobody can tell
 * when they end. `live` is not looked for. */
bool stretch_tenants(struct tenants *out, const struct tenants *in, const struct stretch *s);

/* An end in the long list, of a tenant that is born in a block or a copy of it. like: the end of the
 * tenant in the neighbouring block's place; NULL: there is none. False: nobody can tell. */
bool stretch_end(const struct stretch *s, struct stretch_from from, uint32_t end,
                 const uint32_t *like, uint32_t *to);

#endif

/* schedule/config/resolve_config.h: a request becomes choices, or a message that says what would do. */
#ifndef SCHEDULE_CONFIG_RESOLVE_CONFIG_H
#define SCHEDULE_CONFIG_RESOLVE_CONFIG_H

#include "base/diag.h"
#include "schedule/choices/choices.h"

/* Fills every open field of the request, and checks sizes and whether the choices may be combined. Messages say which
 * values would do. note (may be NULL) receives what a user should know about the values that were filled in. */
enum status resolve_choices(struct choices *choices, const struct request *request,
                            struct diag *note, struct diag *diag);

#endif

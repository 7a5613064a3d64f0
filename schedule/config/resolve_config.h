/* schedule/config/resolve_config.h: a request becomes choices, or a message that says what would do. */
#ifndef SCHEDULE_CONFIG_RESOLVE_CONFIG_H
#define SCHEDULE_CONFIG_RESOLVE_CONFIG_H

#include "base/diag.h"
#include "schedule/choices/choices.h"

/* Fills every open field, checks sizes and the table of legal products. Messages say which
 * values would do. note (may be NULL) receives what was filled in that a user should know. */
enum status compose_resolve(struct choices *choices, const struct request *request,
                            struct diag *note, struct diag *diag);

#endif

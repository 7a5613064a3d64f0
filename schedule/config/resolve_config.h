/* schedule/config/resolve_config.h: turns a request into choices, or reports which values are possible instead. */
#ifndef SCHEDULE_CONFIG_RESOLVE_CONFIG_H
#define SCHEDULE_CONFIG_RESOLVE_CONFIG_H

#include "base/diag.h"
#include "schedule/choices/choices.h"

/* Sets every member of *choices: as the request asks, or with a default. Fails if a size is not possible or the choices
 * cannot be combined; the message says which values are possible. note: receives what a user should know about the
 * defaults; NULL: no notes are made. */
enum status resolve_choices(struct choices *choices, const struct request *request,
                            struct diag *note, struct diag *diag);

#endif

/* schedule/config/resolve_pipeline.h: the part of a request that makes a pipeline. */
#ifndef SCHEDULE_CONFIG_RESOLVE_PIPELINE_H
#define SCHEDULE_CONFIG_RESOLVE_PIPELINE_H

#include "base/diag.h"
#include "schedule/choices/choices.h"

enum status pipeline_resolve(struct choices *choices, const struct request *request,
                             struct diag *diag);

#endif

#include "predict/setup/resolved.h"

#include <stdlib.h>
#include <string.h>

enum status setup_fill(struct setup *setup, struct diag *diag)
{
    struct resolved filled;
    if (!resolved_needs_costs(&setup->request))
        return STATUS_OK;
    enum status status = resolved_make(&filled, setup, &setup->request, NULL, diag);
    if (status == STATUS_OK) {
        setup->request = filled.request;
        if (filled.shared.count > 0) {
            setup->shared = *filled.request.shared;
            setup->request.shared = &setup->shared;
        }
        if (filled.lengths != NULL) {
            size_t count = (size_t)filled.request.subsequences;
            int64_t *length = arena_array(&setup->arena, count, sizeof *length);
            memcpy(length, filled.lengths, count * sizeof *length);
            setup->request.lengths = length;
        }
        if (filled.hidden != NULL) {
            free(setup->hidden);
            setup->hidden = filled.hidden;
            filled.hidden = NULL;
        }
    }
    resolved_release(&filled);
    return status;
}

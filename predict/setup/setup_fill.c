#include "predict/setup/resolved.h"

#include <stdlib.h>
#include <string.h>

enum status setup_fill_open_fields(struct setup *setup, struct diag *diag)
{
    struct resolved filled;
    if (!resolved_needs_costs(&setup->request))
        return STATUS_OK;
    enum status status = resolved_make(&filled, setup, &setup->request, NULL, diag);
    if (status == STATUS_OK) {
        setup->request = filled.request;
        if (filled.shared_units_ranking.count > 0) {
            setup->shared_units = *filled.request.shared_units;
            setup->request.shared_units = &setup->shared_units;
        }
        if (filled.subsequence_tokens != NULL) {
            size_t count = (size_t)filled.request.subsequences;
            int64_t *length = arena_array(&setup->arena, count, sizeof *length);
            memcpy(length, filled.subsequence_tokens, count * sizeof *length);
            setup->request.subsequence_tokens = length;
        }
        if (filled.offload_hidden_bytes != NULL) {
            free(setup->offload_hidden_bytes);
            setup->offload_hidden_bytes = filled.offload_hidden_bytes;
            filled.offload_hidden_bytes = NULL;
        }
    }
    resolved_release(&filled);
    return status;
}

#include "predict/setup/resolved.h"

#include <stdlib.h>
#include <string.h>

enum status setup_fill_open_fields(struct setup *setup, struct diag *diag)
{
    struct resolved resolved_request;
    if (!resolved_needs_costs(&setup->request))
        return STATUS_OK;
    enum status status = resolved_make(&resolved_request, setup, &setup->request, NULL, diag);
    if (status == STATUS_OK) {
        setup->request = resolved_request.request;
        if (resolved_request.shared_units_worth_trying.count > 0) {
            setup->shared_units = *resolved_request.request.shared_units;
            setup->request.shared_units = &setup->shared_units;
        }
        if (resolved_request.subsequence_tokens != NULL) {
            size_t count = (size_t)resolved_request.request.subsequences;
            int64_t *length = arena_array(&setup->arena, count, sizeof *length);
            memcpy(length, resolved_request.subsequence_tokens, count * sizeof *length);
            setup->request.subsequence_tokens = length;
        }
        if (resolved_request.offload_hidden_bytes != NULL) {
            free(setup->offload_hidden_bytes);
            setup->offload_hidden_bytes = resolved_request.offload_hidden_bytes;
            resolved_request.offload_hidden_bytes = NULL;
        }
    }
    resolved_release(&resolved_request);
    return status;
}

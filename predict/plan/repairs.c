#include "predict/plan/repairs.h"

#include "schedule/config/resolve_config.h"

/* The repairs, in the order in which they are tried. The row {0, 0, false, false} changes nothing. */
static const struct repair {
    int64_t loss_chunks, ffn_chunks; /* 0: as many as the configuration has */
    /* the repair makes the pieces of the loss fewer, and is skipped unless the configuration has more, as with FPDT */
    bool makes_loss_pieces_fewer;
    bool host_optimizer; /* the optimizer moves to the host */
} table[] = {
    /* loss, ffn, makes_loss_pieces_fewer, host */
    {8, 0, true, false},   {0, 0, false, false}, {8, 0, false, false}, {8, 8, false, false},
    {64, 8, false, false}, {8, 0, true, true},   {0, 0, false, true},  {8, 0, false, true},
    {8, 8, false, true},   {64, 8, false, true},
};

struct repairs repairs_make(const struct request *given, const struct space_open *open,
                            const struct request *asked)
{
    struct repairs r = {.given_request = given, .open = open, .unrepaired_request = *asked};
    struct choices c;
    if (resolve_choices(&c, asked, NULL, NULL) == STATUS_OK) {
        r.loss_chunks = c.loss_chunks;
        r.ffn_chunks = c.ffn_chunks;
    }
    return r;
}

/* Sets *request to the configuration with a repair. Options that the user gave stay. Pieces become more, never fewer,
 * unless the repair has makes_loss_pieces_fewer. Returns false if the user's options do not allow the repair, if the
 * framework to which the search is restricted cannot express it, or if it has makes_loss_pieces_fewer and the
 * configuration has no more pieces than the repair. */
static bool apply_repair(struct request *request, const struct repairs *r,
                         const struct repair *repair)
{
    if (repair->host_optimizer && r->given_request->optimizer >= 0)
        return false;
    if (repair->makes_loss_pieces_fewer &&
        (r->given_request->loss_chunks > 0 || r->loss_chunks <= repair->loss_chunks))
        return false;
    *request = r->unrepaired_request;
    if (r->given_request->loss_chunks <= 0 &&
        (repair->makes_loss_pieces_fewer || r->loss_chunks < repair->loss_chunks))
        request->loss_chunks = repair->loss_chunks;
    if (r->given_request->ffn_chunks <= 0 && r->ffn_chunks < repair->ffn_chunks)
        request->ffn_chunks = repair->ffn_chunks;
    if (repair->host_optimizer)
        request->optimizer = CHOICE_OPTIMIZER_HOST;
    return r->open->only_framework == NULL || space_allows_request(r->open, request);
}

bool repairs_apply_next(struct request *request, struct repairs *r)
{
    while (r->next_row < ARRAY_LEN(table)) {
        if (!apply_repair(request, r, &table[r->next_row++]))
            continue;
        bool same = r->has_tried_any_repair &&
                    request->loss_chunks == r->last_repaired_request.loss_chunks &&
                    request->ffn_chunks == r->last_repaired_request.ffn_chunks &&
                    request->optimizer == r->last_repaired_request.optimizer;
        r->has_tried_any_repair = true;
        r->last_repaired_request = *request;
        if (!same)
            return true;
    }
    return false;
}

bool repairs_apply_last(struct request *request, const struct repairs *r)
{
    for (size_t i = ARRAY_LEN(table); i-- > 0;)
        if (apply_repair(request, r, &table[i]))
            return true;
    return false;
}

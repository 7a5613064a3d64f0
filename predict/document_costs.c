#include "predict/document_costs.h"

#include "schedule/ir/visible.h"

#include <stdlib.h>

/* Returns the first rank of each place, on the heap. */
static uint32_t *rank_of_places(const struct ir *ir)
{
    uint32_t places = ir_places(ir), *rank = heap_alloc(places, sizeof *rank);
    for (uint32_t r = mesh_ranks(&ir->mesh); r-- > 0;)
        rank[ir_place_of(ir, r)] = r;
    return rank;
}

double **document_costs(const struct ir *ir, const struct device_cost *cost,
                        const struct document_costs_options *options)
{
    struct visible_pieces pieces = {0};
    double **seconds = NULL;
    uint32_t *rank = NULL, places = 0;
    for (uint32_t s = 0; s < ir->shape_count; s++) {
        const struct work *work = &ir->shape[s];
        if (!work_has_documents(work))
            continue;
        if (seconds == NULL) {
            seconds = heap_zalloc(ir->shape_count, sizeof *seconds);
            rank = rank_of_places(ir);
            places = ir_places(ir);
        }
        seconds[s] = heap_alloc(places, sizeof **seconds);
        for (uint32_t p = 0; p < places; p++) {
            if (cost->ideal) { /* of the cluster's peak, which may not be the cost file's */
                seconds[s][p] = ir_op_flops(ir, work, rank[p]) / options->peak_flop_per_s;
                continue;
            }
            visible_pieces(ir, work, rank[p], &pieces);
            seconds[s][p] = options->slowdown *
                            cost_pieces_s(cost, options->impl, work, pieces.piece, pieces.count);
        }
    }
    free(rank);
    visible_release(&pieces);
    return seconds;
}

void document_costs_free(double **seconds, uint32_t shapes)
{
    for (uint32_t s = 0; seconds != NULL && s < shapes; s++)
        free(seconds[s]);
    free((void *)seconds);
}

double document_seen_flops(const struct documents *d, const struct transformer *model, int64_t seq)
{
    double whole = transformer_seen_flops(model, seq), seen = 0;
    if (d == NULL || d->sequences == 0)
        return whole;
    double *of_list = heap_zalloc(d->list_count + 1u, sizeof *of_list);
    for (uint32_t l = 0; l < d->list_count; l++)
        for (uint32_t i = 0; i < d->list[l].count; i++)
            of_list[l] +=
                transformer_seen_flops(model, d->list[l].end[i] - document_begin(&d->list[l], i));
    for (uint32_t s = 0; s < d->sequences; s++)
        seen += d->list_of[s] == DOCUMENTS_NONE ? whole : of_list[d->list_of[s]];
    free(of_list);
    return seen / d->sequences;
}

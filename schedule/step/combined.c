#include "schedule/step/combined.h"

#include <assert.h>

static void add_begin_of_combined_part(struct emit *e, uint32_t place)
{
    struct emit_combined_fwd_bwd *c = &e->combined_fwd_bwd;
    c->begin =
        heap_grow(c->begin, &c->part_begin_capacity, c->part_begin_count + 1u, sizeof *c->begin);
    c->begin[c->part_begin_count++] = (struct listed_part_begin){e->ir->op.count, place};
}

void combined_begin_forward(struct emit *e)
{
    struct emit_combined_fwd_bwd *c = &e->combined_fwd_bwd;
    assert(!c->is_emitting_both && "passes are listed together by two");
    c->is_emitting_both = true;
    c->part_begin_count = 0;
    c->last_compute_of_previous_pass = e->last_compute;
    add_begin_of_combined_part(e, 0);
}

/* Sets e->last_compute back to the compute op before the forward, so that ops of the backward do not wait for the
 * forward's ops. */
void combined_begin_backward(struct emit *e)
{
    struct emit_combined_fwd_bwd *c = &e->combined_fwd_bwd;
    const op_id before = c->last_compute_of_previous_pass, awaited = e->awaited_by_next_compute;
    c->last_compute_of_previous_pass = e->last_compute;
    c->awaited_when_forward_ended = awaited;
    e->last_compute = before;
    e->awaited_by_next_compute.i = IR_NONE;
    c->backward_begin = c->part_begin_count;
    add_begin_of_combined_part(e, 0);
}

void combined_begin_part(struct emit *e, enum combined_part part)
{
    const struct emit_combined_fwd_bwd *c = &e->combined_fwd_bwd;
    const uint32_t place =
        1 + c->layer_index_in_emission_order * COMBINED_PARTS_OF_LAYER + (uint32_t)part;
    if (!c->is_emitting_both)
        return;
    assert(place >= c->begin[c->part_begin_count - 1].place && "parts are in order");
    add_begin_of_combined_part(e, place);
}

/* Adds the ops of part `at` to the list of ranges: from its first op to the first op of the next part or, for the last
 * part, to op number `ops`. Adds nothing for a part without ops. */
static void add_op_range_of_combined_part(struct emit_combined_fwd_bwd *c, uint32_t at,
                                          uint32_t ops)
{
    const uint32_t end = at + 1 < c->part_begin_count ? c->begin[at + 1].first_op : ops;
    if (end == c->begin[at].first_op)
        return;
    c->listed_op_ranges = heap_grow(c->listed_op_ranges, &c->listed_op_range_capacity,
                                    c->listed_op_range_count + 1u, sizeof *c->listed_op_ranges);
    c->listed_op_ranges[c->listed_op_range_count++] =
        (struct listed_op_range){c->begin[at].first_op, end, c->begin[0].first_op};
}

void combined_end(struct emit *e)
{
    struct emit_combined_fwd_bwd *c = &e->combined_fwd_bwd;
    const uint32_t ops = e->ir->op.count;
    uint32_t forward = 0, backward = c->backward_begin;
    if (e->awaited_by_next_compute.i == IR_NONE)
        e->awaited_by_next_compute = c->awaited_when_forward_ended;
    /* if the forward has more layers than the backward, its last op is listed last on the compute stream */
    if (c->begin[c->backward_begin - 1].place > c->begin[c->part_begin_count - 1].place)
        e->last_compute = c->last_compute_of_previous_pass;
    while (forward < c->backward_begin || backward < c->part_begin_count) {
        const bool takes_forward =
            forward < c->backward_begin && (backward == c->part_begin_count ||
                                            c->begin[forward].place <= c->begin[backward].place);
        add_op_range_of_combined_part(c, takes_forward ? forward++ : backward++, ops);
    }
    c->is_emitting_both = false;
}

void combined_reorder_list_by_parts(struct emit *e, struct op_list *list)
{
    struct emit_combined_fwd_bwd *c = &e->combined_fwd_bwd;
    /* So far the list has the ops in the order of their ids. The ops of a forward and its backward have consecutive
     * ids, so the ranges of both fill the same positions in another order. */
    for (uint32_t i = 0, at = 0; i < c->listed_op_range_count; i++) {
        if (at < c->listed_op_ranges[i].first_position)
            at = c->listed_op_ranges[i].first_position;
        for (uint32_t op = c->listed_op_ranges[i].begin; op < c->listed_op_ranges[i].end; op++)
            list->op[at++] = op;
    }
    c->listed_op_range_count = 0;
}

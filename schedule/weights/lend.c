/* Weights of a stage on the stages that share its subsequences (schedule/pipeline/multiplex.h), where each
 * holds its own layers alone. A shared unit's stages use a bundle at the same place of the same program,
 * so before each use its owner broadcasts it, ahead of the computation as sharded parameters are gathered
 * (schedule/weights/shard.c). What they make of its gradient is kept until the last of a chunk's first, or
 * last, shared units, and then summed over them; the owner adds the sum to its own gradient, the others
 * forget it. (Summed for each unit it would be as many times the traffic as there are such units: for 65B on
 * 8 stages of 16 ranks more than their computation takes.)
 *
 * All sums of a group stand in one order on all of its stages, and those of different groups in the order
 * of tasks that all stages keep (multiplex_order()), so that no cycle of stages waits for itself. */
#include "schedule/pipeline/multiplex.h"
#include "schedule/weights/weights.h"

#include <stdio.h>

struct lend_task lend_task_of(const struct emit *e, uint32_t op)
{
    const struct op_table *table = &e->ir->op;
    const struct choices *c = e->choices;
    uint32_t chunk = 0, last = pipeline_chunks(c) - 1;
    if (table->layer[op] != IR_NONE16)
        while (table->layer[op] >= pipeline_layers(c, chunk).end)
            chunk++;
    else if (table->region[op] != REGION_EMBEDDING)
        chunk = last;
    return (struct lend_task){chunk, table->micro[op], table->phase[op] == PHASE_FORWARD};
}

static struct share share_of(const struct emit *e, struct lend_task task)
{
    return multiplex_share(e->choices, task.chunk, task.unit % e->choices->subsequences);
}

bool lend_is_shared(const struct emit *e, struct lend_task task)
{
    return share_of(e, task).count > 1;
}

void lend_begin(struct emit *e)
{
    struct op_tags before = e->tags;
    e->tags = (struct op_tags){PHASE_BACKWARD, REGION_WEIGHTS, IR_NONE16,
                               IR_NONE16,      IR_NONE16,      IR_NONE16};
    for (uint32_t b = 0; b < e->bundle_count; b++) {
        if (e->bundle[b].borrowed)
            continue;
        struct view all = view_all(e, e->bundle[b].grad);
        struct work work = {.kind = WORK_FILL, .elements = {(int64_t)all.count, 0}};
        emit_op(e, e->compute, &work, NULL, 0, &all, 1);
    }
    for (uint32_t p = 0; p < part_count(e); p++)
        e->touched_of[p] = UINT32_MAX;
    e->tags = before;
    e->lent_count = 0;
}

static void add_lent(struct emit *e, uint32_t bundle, uint16_t group, uint32_t *touched)
{
    if (e->lent_count == e->lent_capacity) {
        e->lent_capacity = (uint32_t)heap_next_capacity(e->lent_capacity, e->lent_count + 1);
        e->lent = heap_realloc(e->lent, e->lent_capacity, sizeof *e->lent);
    }
    buffer_id buffer = emit_buffer(e, "lent_grad", CATEGORY_GRADIENT, e->grad_dtype,
                                   (int64_t)e->bundle[bundle].used, 0);
    e->lent[e->lent_count++] =
        (struct lent){buffer, touched, bundle, e->shared.chunk, group, e->shared.owns};
}

void lend_end(struct emit *e)
{
    e->touched = e->touched_of;
    for (uint32_t b = 0; b < e->bundle_count; b++)
        e->bundle[b].grad = e->grad_buffer[b];
}

/* The gradients of units that the same stages shared before; false: there were none. */
static bool take_up(struct emit *e, uint16_t group)
{
    bool found = false;
    for (uint32_t i = 0; i < e->lent_count; i++) {
        const struct lent *lent = &e->lent[i];
        if (lent->group != group || lent->chunk != e->shared.chunk)
            continue;
        e->bundle[lent->bundle].grad = lent->buffer;
        e->touched = lent->touched;
        found = true;
    }
    return found;
}

void weights_of_unit(struct emit *e)
{
    lend_end(e);
    if (e->shared.count == 1)
        return;
    uint16_t group = multiplex_group(e, "sums", (struct share){e->shared.first, e->shared.count});
    if (!take_up(e, group)) {
        uint32_t *touched = arena_array(&e->arena, part_count(e), sizeof *touched);
        for (uint32_t b = 0; b < e->bundle_count; b++)
            add_lent(e, b, group, touched);
        take_up(e, group);
    }
}

buffer_id lend_params(struct emit *e, struct lend_task task, uint32_t bundle, op_id *op)
{
    const struct bundle_state *state = &e->bundle[bundle];
    struct share share = share_of(e, task);
    bool owns = e->stage == task.chunk;
    buffer_id to = emit_buffer(e, "borrowed", CATEGORY_PARAMETER, e->choices->dtype,
                               (int64_t)state->elements, 0);
    struct view from = view_all(e, state->param), all = view_all(e, to);
    struct work work = {.kind = WORK_BROADCAST};
    work.broadcast.group = multiplex_group(e, "weights", share);
    work.broadcast.bytes = (int64_t)ir_buffer_bytes(e->ir, to);
    work.broadcast.root = task.chunk - share.first;
    *op = emit_op(e, e->gather, &work, &from, owns, &all, 1);
    return to;
}

op_id lend_sum(struct emit *e, const struct lent *lent)
{
    struct view all = view_all(e, lent->buffer);
    struct work work = {.kind = WORK_ALL_REDUCE};
    work.all_reduce.group = lent->group;
    work.all_reduce.bytes = (int64_t)ir_buffer_bytes(e->ir, lent->buffer);
    return emit_op(e, e->reduce, &work, &all, 1, &all, 1);
}

op_id lend_add(struct emit *e, const struct lent *lent)
{
    struct view part = view_all(e, lent->buffer);
    struct view own = {e->grad_buffer[lent->bundle], 0, part.count};
    struct work work = {.kind = WORK_ADD, .elements = {(int64_t)part.count, 0}};
    return emit_op(e, e->compute, &work, (struct view[]){part, own}, 2, &own, 1);
}

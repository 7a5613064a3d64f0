#include "schedule/weights/lend.h"

#include "schedule/emit/process_groups.h"
#include "schedule/pipeline/multiplex.h"

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

static struct shared shared_of(const struct emit *e, struct lend_task task)
{
    struct share share =
        multiplex_share(e->choices, task.chunk, task.unit % e->choices->subsequences);
    return (struct shared){.first = share.first,
                           .count = share.count,
                           .index = e->stage - share.first,
                           .chunk = task.chunk,
                           .owns = e->stage == task.chunk};
}

bool lend_is_shared(const struct emit *e, struct lend_task task)
{
    return shared_of(e, task).count > 1;
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
    e->lent_count = e->lent_part_count = 0;
}

static void add_lent(struct emit *e, uint32_t bundle, uint16_t group, uint32_t *touched)
{
    if (e->lent_count == e->lent_capacity) {
        e->lent_capacity = (uint32_t)heap_next_capacity(e->lent_capacity, e->lent_count + 1);
        e->lent = heap_realloc(e->lent, e->lent_capacity, sizeof *e->lent);
    }
    uint64_t elements =
        pipeline_shards_weights(e->choices) ? e->bundle[bundle].elements : e->bundle[bundle].used;
    buffer_id buffer =
        emit_buffer(e, "lent_grad", CATEGORY_GRADIENT, e->grad_dtype, (int64_t)elements, 0);
    e->lent[e->lent_count++] = (struct lent){.buffer = buffer,
                                             .touched = touched,
                                             .bundle = bundle,
                                             .group = group,
                                             .shared = e->shared,
                                             .sum = {IR_NONE}};
}

void lend_end(struct emit *e)
{
    e->touched = e->touched_of;
    for (uint32_t b = 0; b < e->bundle_count; b++)
        e->bundle[b].grad = e->grad_buffer[b];
}

/* Gradients from row `begin` on that the same stages share; false: there are none. */
static bool take_up(struct emit *e, uint32_t begin, uint16_t group)
{
    bool found = false;
    for (uint32_t i = begin; i < e->lent_count; i++) {
        const struct lent *lent = &e->lent[i];
        if (lent->group != group || lent->shared.chunk != e->shared.chunk)
            continue;
        e->bundle[lent->bundle].grad = lent->buffer;
        e->touched = lent->touched;
        found = true;
    }
    return found;
}

/* Parts are summed unit by unit, so each has gradients of its own. */
void weights_of_unit(struct emit *e)
{
    lend_end(e);
    if (e->shared.count == 1)
        return;
    uint32_t begin = pipeline_shards_weights(e->choices) ? e->lent_count : 0;
    uint16_t group = multiplex_group(e, "sums", (struct share){e->shared.first, e->shared.count});
    if (!take_up(e, begin, group)) {
        uint32_t *touched = arena_array(&e->arena, part_count(e), sizeof *touched);
        for (uint32_t b = 0; b < e->bundle_count; b++)
            if (e->bundle[b].chunk == e->shared.chunk || e->bundle[b].at_both_ends)
                add_lent(e, b, group, touched);
        take_up(e, begin, group);
    }
}

static op_id broadcast(struct emit *e, const struct shared *shared, uint32_t bundle, buffer_id to)
{
    struct view from = view_all(e, e->bundle[bundle].param), all = view_all(e, to);
    struct work work = {.kind = WORK_BROADCAST};
    work.broadcast.group =
        multiplex_group(e, "weights", (struct share){shared->first, shared->count});
    work.broadcast.bytes = (int64_t)ir_buffer_bytes(e->ir, to);
    work.broadcast.root = shared->chunk - shared->first;
    return emit_op(e, e->gather, &work, &from, shared->owns, &all, 1);
}

buffer_id lend_params(struct emit *e, struct lend_task task, uint32_t bundle, op_id *op,
                      op_id *kept)
{
    struct shared shared = shared_of(e, task);
    buffer_id to = emit_buffer(e, "borrowed", CATEGORY_PARAMETER, e->choices->dtype,
                               (int64_t)e->bundle[bundle].elements, 0);
    struct lent_part *part =
        pipeline_shards_weights(e->choices) ? lend_part(e, bundle, &shared) : NULL;
    kept->i = IR_NONE;
    if (part != NULL && part->known) {
        *op = lend_gather_parts(e, part, to);
        return to;
    }
    *op = broadcast(e, &shared, bundle, to);
    if (part != NULL)
        *kept = lend_keep_part(e, part, to);
    return to;
}

op_id lend_sum(struct emit *e, struct lent *lent)
{
    if (pipeline_shards_weights(e->choices))
        return lend_sum_parts(e, lent);
    const struct shared *shared = &lent->shared;
    struct view all = view_all(e, lent->buffer);
    struct work work = {.kind = WORK_REDUCE};
    work.broadcast.group = lent->group;
    work.broadcast.bytes = (int64_t)ir_buffer_bytes(e->ir, lent->buffer);
    work.broadcast.root = shared->chunk - shared->first;
    lent->sum.i = shared->owns ? lent->buffer.i : IR_NONE;
    return emit_op(e, e->reduce, &work, &all, 1, &all, shared->owns);
}

/* y += x, element by element. */
static op_id add(struct emit *e, struct view x, struct view y)
{
    struct work work = {.kind = WORK_ADD, .elements = {(int64_t)y.count, 0}};
    return emit_op(e, e->compute, &work, (struct view[]){x, y}, 2, &y, 1);
}

op_id lend_add(struct emit *e, const struct lent *lent)
{
    struct view sum = view_all(e, lent->sum);
    if (pipeline_shards_weights(e->choices))
        return add(e, sum, lend_part_of_gradient(e, lend_part(e, lent->bundle, &lent->shared)));
    return add(e, sum, (struct view){e->grad_buffer[lent->bundle], 0, sum.count});
}

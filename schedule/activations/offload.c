/* Moves activations to the host: tensors of a layer are copied to the host in its forward, and copied back before its
 * backward reads them. In between, the device does not hold them. There are two choices of tensors.
 *
 * Checkpoints on the host: the tensor is the input of a layer, from which the recomputation starts. It is copied before
 * the layer's forward. In the blocking form (DeepSpeed's cpu_checkpointing until August 2026) memory is pageable and
 * the host thread waits for each copy: in the forward before it issues the layer, in the backward before it issues the
 * recomputation. Such a copy is made on the current stream, so it starts after the work issued there before it.
 *
 * In the asynchronous form memory is pinned, copies have streams of their own, and the next layer's input is fetched
 * while this layer's backward runs. A layer's forward then starts only after the copy of the layer before the previous
 * one has ended; otherwise no computation would ever be ordered after the copy, and the bytes could not be reused.
 *
 * Selective Checkpoint++ with its outputs on the host (InternEvo, attn_offload.py): the tensors are the outputs of a
 * layer's attention core. They are copied to pinned memory after the layer's forward, and copied back while the layer
 * after it runs its backward. The device has room for the outputs of two layers. In the forward, a core writes its
 * outputs only after those of the layer two before it are on the host; in the backward, a layer's outputs are copied
 * back only after the backward of the layer two after it has ended. */
#include "schedule/activations/passes.h"
#include "schedule/choices/profile.h"
#include "schedule/emit/op_list.h"
#include "schedule/pipeline/pipeline.h"

#include <stdlib.h>

struct offloaded_tensor { /* a tensor of a (unit, layer) that is copied to the host */
    buffer_id buffer, host_buffer, loaded_buffer;
};

struct segment {          /* the forward of one (unit, layer) */
    uint32_t item, items; /* rows of `item` */
    /* position in the list of the op that waits for earlier copies: the forward's first op or, if items are the outputs
     * of attention's core, the first op that writes one of them; IR_NONE: none */
    uint32_t begin;
    uint32_t end;               /* position of the forward's last op */
    op_id last_copy_op_to_host; /* the last copy to the host; IR_NONE: none yet */
    bool is_loaded;
};

struct offload_pass {
    struct emit *e;
    struct ir *ir;
    struct op_list new_list; /* the list that replaces the old one */
    uint32_t layer_count;
    /* true: items are inputs of layers; false: outputs of attention's core */
    bool offloads_layer_inputs;
    bool host_waits_for_each_copy; /* the host waits for each copy */
    struct segment *segment;
    struct offloaded_tensor *offloaded_tensors;
    uint32_t item_count;
    uint32_t *item_of_buffer_plus_1; /* 1 + row of `item` */
    /* the last copies to the host of the last two segments that were stored, the earlier one first; IR_NONE: none */
    op_id last_store_ops[2];
};

/* Adds a buffer as an item of a segment. The forwards of segments follow each other in the list, so the items of each
 * segment are consecutive. */
static void add_offloaded_tensor(struct offload_pass *o, struct segment *segment, uint32_t buffer)
{
    if (segment->items++ == 0)
        segment->item = o->item_count;
    o->offloaded_tensors[o->item_count++] =
        (struct offloaded_tensor){{buffer}, {IR_NONE}, {IR_NONE}};
    o->item_of_buffer_plus_1[buffer] = o->item_count;
}

/* Sets the items of each segment, and where the segment begins and ends. With offloads_layer_inputs, a layer's item is
 * its input: the first activation that the layer reads and did not make itself. Otherwise its items are the buffers of
 * `kept` that it writes. */
static void find_offloaded_tensors(struct offload_pass *o, const struct op_list *list,
                                   const bool *kept)
{
    const struct ir *ir = o->ir;
    uint32_t *maker = heap_zalloc(ir->buffer.count, sizeof *maker); /* 1 + the segment */
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t op = list->op[i], reads = ir->op.read_count[op];
        if (ir->op.layer[op] == IR_NONE16 || ir->op.phase[op] != PHASE_FORWARD)
            continue;
        uint32_t which = segment_of_op(ir, o->layer_count, op);
        struct segment *segment = &o->segment[which];
        if (o->offloads_layer_inputs && segment->begin == IR_NONE)
            segment->begin = i;
        segment->end = i;
        for (uint32_t k = 0; o->offloads_layer_inputs && segment->items == 0 && k < reads; k++) {
            uint32_t buffer = ir_touched_buffer(ir, op, k);
            if (ir->buffer.category[buffer] == CATEGORY_ACTIVATION && maker[buffer] != which + 1)
                add_offloaded_tensor(o, segment, buffer);
        }
        for (uint32_t k = reads; k < reads + ir->op.write_count[op]; k++) {
            uint32_t buffer = ir_touched_buffer(ir, op, k);
            maker[buffer] = which + 1;
            if (!kept[buffer] || o->item_of_buffer_plus_1[buffer] > 0)
                continue;
            if (segment->begin == IR_NONE)
                segment->begin = i;
            add_offloaded_tensor(o, segment, buffer);
        }
    }
    free(maker);
}

/* Emits a copy of an item of a segment to or from the host, and returns the op. The copy starts after the end of op
 * `after` (IR_NONE: as soon as its data exist); if copies are blocking, it starts after all compute that is listed
 * before it instead. */
static op_id emit_copy_of_offloaded_tensor(struct offload_pass *o, enum work_kind kind,
                                           buffer_id from, buffer_id to, uint32_t segment,
                                           op_id after)
{
    struct emit *e = o->e;
    e->op_tags = (struct op_tags){kind == WORK_D2H ? PHASE_FORWARD : PHASE_RECOMPUTE,
                                  REGION_OFFLOAD,
                                  (uint16_t)(segment % o->layer_count),
                                  IR_NONE16,
                                  IR_NONE16,
                                  (uint16_t)(segment / o->layer_count)};
    op_id op = emit_host_device_copy(e, kind, o->host_waits_for_each_copy, view_whole(e, from),
                                     view_whole(e, to));
    if (o->host_waits_for_each_copy)
        after = op_list_last_on_stream(&o->new_list, o->new_list.count, o->ir, e->stream.compute);
    if (after.i != IR_NONE)
        emit_add_dependency(e, op, after);
    op_list_push(&o->new_list, op);
    return op;
}

static void emit_copies_to_host_of_segment(struct offload_pass *o, uint32_t which)
{
    struct segment *segment = &o->segment[which];
    for (uint32_t i = segment->item; i < segment->item + segment->items; i++) {
        struct offloaded_tensor *item = &o->offloaded_tensors[i];
        item->host_buffer = ir_add_buffer_like(o->ir, item->buffer);
        o->ir->buffer.memory[item->host_buffer.i] =
            o->host_waits_for_each_copy ? MEMORY_PAGEABLE : MEMORY_PINNED;
        segment->last_copy_op_to_host = emit_copy_of_offloaded_tensor(
            o, WORK_D2H, item->buffer, item->host_buffer, which, (op_id){IR_NONE});
    }
    o->last_store_ops[0] = o->last_store_ops[1];
    o->last_store_ops[1] = segment->last_copy_op_to_host;
}

/* Emits the copies of a segment's items back to the device, after the end of op `after` (IR_NONE: as soon as the items
 * are on the host). Does nothing if they have been emitted, or if no item was copied to the host. */
static void load_segment(struct offload_pass *o, uint32_t which, op_id after)
{
    struct segment *segment = &o->segment[which];
    if (segment->is_loaded || segment->last_copy_op_to_host.i == IR_NONE)
        return;
    segment->is_loaded = true;
    for (uint32_t i = segment->item; i < segment->item + segment->items; i++) {
        struct offloaded_tensor *item = &o->offloaded_tensors[i];
        item->loaded_buffer = ir_add_buffer_like(o->ir, item->buffer);
        emit_copy_of_offloaded_tensor(o, WORK_H2D, item->host_buffer, item->loaded_buffer, which,
                                      after);
    }
}

static void redirect_reads_to_loaded_buffers(struct offload_pass *o, uint32_t op)
{
    for (uint32_t k = 0; k < o->ir->op.read_count[op]; k++) {
        uint32_t row = o->item_of_buffer_plus_1[ir_touched_buffer(o->ir, op, k)];
        if (row > 0 && o->offloaded_tensors[row - 1].loaded_buffer.i != IR_NONE)
            ir_redirect_operand(o->ir, op, k, o->offloaded_tensors[row - 1].loaded_buffer);
    }
}

static void rewrite_list(struct offload_pass *o, const struct op_list *in)
{
    const struct ir *ir = o->ir;
    op_id last = {IR_NONE}; /* the last op of the previous layer in the order of the backward */
    uint32_t current = IR_NONE;
    for (uint32_t i = 0; i < in->count; i++) {
        op_id op = {in->op[i]};
        if (ir->op.layer[op.i] == IR_NONE16) {
            op_list_push(&o->new_list, op);
            continue;
        }
        uint32_t which = segment_of_op(ir, o->layer_count, op.i);
        struct segment *segment = &o->segment[which];
        bool forward = ir->op.phase[op.i] == PHASE_FORWARD;
        if (forward && i == segment->begin) {
            if (!o->host_waits_for_each_copy && o->last_store_ops[0].i != IR_NONE)
                emit_add_dependency(o->e, op, o->last_store_ops[0]);
            if (o->offloads_layer_inputs)
                emit_copies_to_host_of_segment(o, which);
        }
        if (!forward && which != current) {
            if (current != IR_NONE && current / o->layer_count == which / o->layer_count)
                last = (op_id){in->op[i - 1]};
            current = which;
            load_segment(o, which, (op_id){IR_NONE});
            if (!o->host_waits_for_each_copy &&
                which % o->layer_count > 0) /* fetch one layer ahead, in the same unit */
                load_segment(o, which - 1, last);
        }
        if (!forward)
            redirect_reads_to_loaded_buffers(o, op.i);
        op_list_push(&o->new_list, op);
        if (forward && !o->offloads_layer_inputs && i == segment->end && segment->items > 0)
            emit_copies_to_host_of_segment(o, which);
    }
}

void pass_offload_checkpoints(struct emit *e, struct op_list *list)
{
    bool inputs = e->choices->activations == CHOICE_ACTIVATIONS_OFFLOAD;
    uint32_t layers = (uint32_t)e->choices->model->layers, buffers = e->ir->buffer.count,
             segments = layers * pipeline_unit_count(e->choices);
    struct offload_pass o = {
        .e = e,
        .ir = e->ir,
        .layer_count = layers,
        .offloads_layer_inputs = inputs,
        .host_waits_for_each_copy = inputs && e->choices->profile->checkpoint_offload_is_blocking,
        .segment = heap_zalloc(segments, sizeof *o.segment),
        .offloaded_tensors = heap_alloc(buffers, sizeof *o.offloaded_tensors),
        .item_of_buffer_plus_1 = heap_zalloc(buffers, sizeof *o.item_of_buffer_plus_1),
        .last_store_ops = {{IR_NONE}, {IR_NONE}},
    };
    bool *kept = heap_zalloc(buffers, sizeof *kept);
    for (uint32_t i = 0; !inputs && i < e->kept_buffers.count; i++)
        kept[e->kept_buffers.buffer[i].i] = true;
    for (uint32_t i = 0; i < segments; i++)
        o.segment[i].begin = o.segment[i].last_copy_op_to_host.i = IR_NONE;
    find_offloaded_tensors(&o, list, kept);
    rewrite_list(&o, list);
    free(kept);
    free(o.segment);
    free(o.offloaded_tensors);
    free(o.item_of_buffer_plus_1);
    op_list_release(list);
    *list = o.new_list;
}

/* Drops the results of modules of a layer where activations are otherwise kept (Megatron-LM's --recompute-modules;
 * core_attn is the work of pass_recompute()). The ops that made them are repeated in the backward, on buffers of their
 * own.
 *
 * Emission says which buffers a module drops (emit_record_recomputed_buffer()). An op is repeated if all that it writes
 * is dropped, and the backward or another repeated op reads some of it. It is repeated just before the first op of the
 * backward that needs it.
 *
 * Two modules, mlp and moe, are repeated before the layer's backward begins, since Megatron-LM computes each of them
 * again as a whole (tensor_parallel.checkpoint()); see emit_record_recomputed_module(). Their ops that write a buffer
 * of several layers, such as the one into which tensor ranks gather, are repeated as well. Of the other modules
 * (layernorm, moe_act, mla_up_proj: tensor_parallel.random.CheckpointWithoutOutput) only what is read is made again. A
 * profile that recomputes whole layers repeats all ops of mlp, moe and shared_experts, also those whose results nothing
 * reads.
 *
 * The 8-bit copy of a dropped input is dropped with it (Megatron-LM's set_save_original_input()). */
#include "schedule/activations/passes.h"
#include "schedule/choices/profile.h"
#include "schedule/emit/op_list.h"
#include "schedule/pipeline/pipeline.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct layer_op_positions_of_unit {     /* a layer of one unit: positions in the list */
    uint32_t begin, end;                /* of its forward */
    uint32_t last_backward_op_position; /* the last op of its backward */
    bool backward_has_begun;            /* its backward has begun in the new list */
};

struct discard_pass {
    struct emit *e;
    struct ir *ir;
    struct op_list new_list;
    uint32_t layer_count;
    struct layer_op_positions_of_unit *layer_op_positions_by_unit; /* unit * layer_count + layer */
    uint8_t *module; /* per buffer: 1 + enum recompute_module; 0: it is kept */
    /* per op: 1 + enum recompute_module if it is an op of mlp or moe; else 0 */
    uint8_t *recomputed_module_of_op_plus_1;
    /* per buffer: it is persistent, or ops of the forward of a layer and unit write it, and other ops as well */
    bool *buffer_cannot_be_dropped;
    /* per buffer: the one that replaces it in the backward; IR_NONE: none yet */
    uint32_t *repeated_buffer;
    /* per buffer: the number of the last search (repeat_needed_ops()) that needs it; 0: no search has needed it */
    uint32_t *last_search_that_needs_buffer;
    uint32_t search_count;
    uint32_t *repetition_of_op; /* per op of the forward; IR_NONE: none */
};

static bool is_in_backward(const struct ir *ir, uint32_t op)
{
    const uint8_t phase = ir->op.phase[op];
    return ir->op.layer[op] != IR_NONE16 &&
           (phase == PHASE_BACKWARD || phase == PHASE_WEIGHT_GRADIENT || phase == PHASE_RECOMPUTE);
}

/* Returns the module to which an op of a forward belongs, as 1 + enum recompute_module. 0: it belongs to none, because
 * a buffer that it writes is kept, or because it writes nothing. */
static uint8_t dropped_module_of_op_plus_1(const struct discard_pass *d, uint32_t op)
{
    const uint32_t reads = d->ir->op.read_count[op], operands = reads + d->ir->op.write_count[op];
    uint8_t module = 0;
    for (uint32_t k = reads; k < operands; k++) {
        const uint32_t buffer = ir_touched_buffer(d->ir, op, k);
        const uint8_t of = d->buffer_cannot_be_dropped[buffer]
                               ? d->recomputed_module_of_op_plus_1[op]
                               : d->module[buffer];
        if (of == 0)
            return 0;
        module = of;
    }
    return module;
}

/* Sets the module of each buffer that is dropped: the buffers that emission names and their 8-bit copies, but no
 * caches, because other units read those. Sets recomputed_module_of_op_plus_1 for the ops of mlp and moe. */
static void mark_dropped_buffers(struct discard_pass *d, const struct op_list *list)
{
    const struct emit *e = d->e;
    const struct ir *ir = d->ir;
    for (uint32_t i = 0; i < e->recomputed_buffer_count; i++)
        d->module[e->recomputed_buffers[i].buffer.i] =
            (uint8_t)(1 + e->recomputed_buffers[i].module);
    for (uint32_t i = 0; i < e->buffers_never_recomputed.count; i++)
        d->module[e->buffers_never_recomputed.buffer[i].i] = 0;
    for (uint32_t i = 0; i < e->recomputed_module_count; i++)
        memset(d->recomputed_module_of_op_plus_1 + e->recomputed_module_ops[i].begin,
               1 + e->recomputed_module_ops[i].module,
               e->recomputed_module_ops[i].end - e->recomputed_module_ops[i].begin);
    for (uint32_t i = 0; i < list->count; i++) {
        const uint32_t op = list->op[i], reads = ir->op.read_count[op];
        if (ir->op.kind[op] != WORK_QUANTISE || ir->op.phase[op] != PHASE_FORWARD)
            continue;
        const uint8_t module = d->module[ir_touched_buffer(ir, op, 0)];
        for (uint32_t k = reads; module != 0 && k < reads + ir->op.write_count[op]; k++)
            d->module[ir_touched_buffer(ir, op, k)] = module;
    }
}

/* Sets buffer_cannot_be_dropped of the written buffers that are persistent, or that ops of the forward of a layer and
 * unit write, and other ops as well. Such buffers are not dropped; a repeated op writes the same buffer again. */
static void find_buffers_that_cannot_be_dropped(struct discard_pass *d, const struct op_list *list)
{
    const struct ir *ir = d->ir;
    uint32_t *writer = ir_new_empty_ids(ir->buffer.count);
    for (uint32_t i = 0; i < list->count; i++) {
        const uint32_t op = list->op[i], reads = ir->op.read_count[op];
        const bool forward = ir->op.layer[op] != IR_NONE16 && ir->op.phase[op] == PHASE_FORWARD;
        const uint32_t by = forward ? segment_of_op(ir, d->layer_count, op) : UINT32_MAX - 1;
        for (uint32_t k = reads; k < reads + ir->op.write_count[op]; k++) {
            const uint32_t buffer = ir_touched_buffer(ir, op, k);
            d->buffer_cannot_be_dropped[buffer] |=
                (writer[buffer] != IR_NONE && writer[buffer] != by) ||
                (ir->buffer.flags[buffer] & BUFFER_PERSISTENT);
            writer[buffer] = by;
        }
    }
    for (uint32_t b = 0; b < ir->buffer.count; b++)
        if (d->buffer_cannot_be_dropped[b])
            d->module[b] = 0;
    free(writer);
}

static void find_layers_of_units(struct discard_pass *d, const struct op_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const uint32_t op = list->op[i];
        if (is_in_backward(d->ir, op))
            d->layer_op_positions_by_unit[segment_of_op(d->ir, d->layer_count, op)]
                .last_backward_op_position = i;
        if (d->ir->op.layer[op] == IR_NONE16 || d->ir->op.phase[op] != PHASE_FORWARD)
            continue;
        struct layer_op_positions_of_unit *part =
            &d->layer_op_positions_by_unit[segment_of_op(d->ir, d->layer_count, op)];
        if (part->begin == part->end)
            part->begin = i;
        part->end = i + 1;
    }
}

static void repeat_op(struct discard_pass *d, uint32_t op)
{
    struct ir *ir = d->ir;
    buffer_id of[16];
    const uint32_t reads = ir->op.read_count[op], operands = reads + ir->op.write_count[op];
    assert(operands <= ARRAY_LEN(of));
    for (uint32_t k = 0; k < operands; k++) {
        const uint32_t buffer = ir_touched_buffer(ir, op, k);
        if (k >= reads && d->repeated_buffer[buffer] == IR_NONE &&
            !d->buffer_cannot_be_dropped[buffer])
            d->repeated_buffer[buffer] = ir_add_buffer_like(ir, (buffer_id){buffer}).i;
    }
    for (uint32_t k = 0; k < operands; k++) {
        const uint32_t buffer = ir_touched_buffer(ir, op, k), again = d->repeated_buffer[buffer];
        of[k].i = again != IR_NONE ? again : buffer;
    }
    op_list_push(&d->new_list, pass_repeat_op(ir, op, of, d->repetition_of_op));
}

/* True if the op belongs to the forward of d->layer_op_positions_by_unit[which], a layer of one unit, and has not been
 * repeated. */
static bool is_unrepeated_op_of_forward(const struct discard_pass *d, uint32_t op, uint32_t which)
{
    return d->ir->op.layer[op] != IR_NONE16 && d->ir->op.phase[op] == PHASE_FORWARD &&
           segment_of_op(d->ir, d->layer_count, op) == which && d->repetition_of_op[op] == IR_NONE;
}

static bool module_is_mlp_or_moe(uint8_t module)
{
    return module == 1 + RECOMPUTE_MLP || module == 1 + RECOMPUTE_MOE;
}

/* Repeats the ops of a layer's forward that make the buffers needed in this search (last_search_that_needs_buffer is
 * search_count), and the ops that make the dropped or shared buffers which these read. module: the module of the needed
 * buffers. All its ops are repeated if it is mlp, moe or shared_experts and the profile recomputes whole layers. An op
 * that writes nothing (a wait of the host) is repeated if the op after it is. */
static void repeat_needed_ops(struct discard_pass *d, const struct op_list *in, uint32_t which,
                              uint8_t module)
{
    const struct ir *ir = d->ir;
    const struct layer_op_positions_of_unit part = d->layer_op_positions_by_unit[which];
    const bool whole = (module_is_mlp_or_moe(module) || module == 1 + RECOMPUTE_SHARED_EXPERTS) &&
                       d->e->choices->profile->recomputes_whole_layer;
    const uint32_t search = d->search_count;
    uint8_t *repeats = heap_zalloc(part.end - part.begin, 1);
    bool after = false;
    for (uint32_t i = part.end; i-- > part.begin;) {
        const uint32_t op = in->op[i], reads = ir->op.read_count[op],
                       operands = reads + ir->op.write_count[op];
        if (!is_unrepeated_op_of_forward(d, op, which))
            continue;
        const uint8_t of = dropped_module_of_op_plus_1(d, op);
        bool needed = operands == reads ? after : whole && of == module;
        for (uint32_t k = reads; of != 0 && k < operands; k++)
            needed =
                needed || d->last_search_that_needs_buffer[ir_touched_buffer(ir, op, k)] == search;
        after = needed;
        repeats[i - part.begin] = needed;
        for (uint32_t k = 0; needed && k < reads; k++) {
            const uint32_t read = ir_touched_buffer(ir, op, k);
            if (d->module[read] != 0 || d->buffer_cannot_be_dropped[read])
                d->last_search_that_needs_buffer[read] = search;
        }
    }
    for (uint32_t i = part.begin; i < part.end; i++)
        if (repeats[i - part.begin])
            repeat_op(d, in->op[i]);
    free(repeats);
}

/* Repeats mlp or moe before the first op of a layer's backward (position `begin` of the list), if the backward reads
 * what the module dropped. */
static void repeat_dropped_mlp_or_moe(struct discard_pass *d, const struct op_list *in,
                                      uint32_t begin)
{
    const struct ir *ir = d->ir;
    const uint32_t which = segment_of_op(ir, d->layer_count, in->op[begin]);
    uint8_t module = 0;
    d->search_count++;
    for (uint32_t i = begin; i <= d->layer_op_positions_by_unit[which].last_backward_op_position;
         i++) {
        const uint32_t op = in->op[i];
        if (!is_in_backward(ir, op) || segment_of_op(ir, d->layer_count, op) != which)
            continue;
        for (uint32_t k = 0; k < ir->op.read_count[op]; k++) {
            const uint32_t buffer = ir_touched_buffer(ir, op, k);
            if (!module_is_mlp_or_moe(d->module[buffer]))
                continue;
            module = d->module[buffer];
            d->last_search_that_needs_buffer[buffer] = d->search_count;
        }
    }
    if (module != 0)
        repeat_needed_ops(d, in, which, module);
}

/* Makes an op of a layer's backward, at position `at` of the list, read the repeated buffers in place of dropped ones.
 * Repeats the ops that make them if this op is the first that reads them. Before the first op of the backward it
 * repeats mlp or moe (repeat_dropped_mlp_or_moe()). */
static void rewrite_operands_of_backward_op(struct discard_pass *d, const struct op_list *in,
                                            uint32_t at)
{
    struct ir *ir = d->ir;
    const uint32_t op = in->op[at], which = segment_of_op(ir, d->layer_count, op);
    if (!d->layer_op_positions_by_unit[which].backward_has_begun) {
        d->layer_op_positions_by_unit[which].backward_has_begun = true;
        repeat_dropped_mlp_or_moe(d, in, at);
    }
    for (uint32_t k = 0; k < ir->op.read_count[op]; k++) {
        const uint32_t buffer = ir_touched_buffer(ir, op, k);
        if (d->module[buffer] == 0)
            continue;
        if (d->repeated_buffer[buffer] == IR_NONE) {
            d->last_search_that_needs_buffer[buffer] = ++d->search_count;
            repeat_needed_ops(d, in, which, d->module[buffer]);
        }
        if (d->repeated_buffer[buffer] != IR_NONE)
            ir_redirect_operand(ir, op, k, (buffer_id){d->repeated_buffer[buffer]});
    }
}

/* For each lifetime extension of the forward (e->extension) whose buffer and op are repeated, adds one of the repeated
 * buffer until the repeated op. */
static void repeat_lifetime_extensions(struct discard_pass *d)
{
    const uint32_t count = d->e->extension_count;
    for (uint32_t i = 0; i < count; i++) {
        const struct lifetime_extension hold = d->e->extension[i];
        const uint32_t buffer = d->repeated_buffer[hold.buffer.i],
                       until = d->repetition_of_op[hold.kept_until_op.i];
        if (buffer != IR_NONE && until != IR_NONE)
            emit_extend_lifetime(d->e, (buffer_id){buffer}, (op_id){until});
    }
}

void pass_discard(struct emit *e, struct op_list *list)
{
    struct ir *ir = e->ir;
    const uint32_t layers = (uint32_t)e->choices->model->layers;
    struct discard_pass d = {
        .e = e,
        .ir = ir,
        .layer_count = layers,
        .layer_op_positions_by_unit = heap_zalloc(layers * pipeline_unit_count(e->choices),
                                                  sizeof *d.layer_op_positions_by_unit),
        .module = heap_zalloc(ir->buffer.count, 1),
        .recomputed_module_of_op_plus_1 = heap_zalloc(ir->op.count, 1),
        .buffer_cannot_be_dropped =
            heap_zalloc(ir->buffer.count, sizeof *d.buffer_cannot_be_dropped),
        .repeated_buffer = ir_new_empty_ids(ir->buffer.count),
        .last_search_that_needs_buffer =
            heap_zalloc(ir->buffer.count, sizeof *d.last_search_that_needs_buffer),
        .repetition_of_op = ir_new_empty_ids(ir->op.count),
    };
    /* The arrays above have rows for the buffers and ops that exist now. Those that the pass adds are never looked
     * up. */
    mark_dropped_buffers(&d, list);
    find_buffers_that_cannot_be_dropped(&d, list);
    find_layers_of_units(&d, list);
    for (uint32_t i = 0; i < list->count; i++) {
        const uint32_t op = list->op[i];
        if (is_in_backward(ir, op))
            rewrite_operands_of_backward_op(&d, list, i);
        op_list_push(&d.new_list, (op_id){op});
    }
    repeat_lifetime_extensions(&d);
    free(d.layer_op_positions_by_unit);
    free(d.module);
    free(d.recomputed_module_of_op_plus_1);
    free(d.buffer_cannot_be_dropped);
    free(d.repeated_buffer);
    free(d.last_search_that_needs_buffer);
    free(d.repetition_of_op);
    op_list_release(list);
    *list = d.new_list;
}

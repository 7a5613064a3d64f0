/* Keeps activations of the first layers on the host: what the forward of each of the first `host_layers` layers saves
 * for its backward is copied to pinned memory, and copied back before its backward, while other layers compute
 * (Megatron-LM's --cpu-offloading-num-layers: TransformerEngine, pytorch/cpu_offload.py, DefaultOffloadSynchronizer).
 *
 * With L layers, n of them on the host: layer i's tensors are copied as soon as its forward has made them, and the
 * forward of layer L - n + i waits until they are on the host. So the device holds what L - n layers save, and at most
 * one layer more. The copies back of layer i begin with the backward of layer L - 1 - n + i, and an op of the backward
 * waits for the copies that it reads. Tensors of fewer than 256 Ki elements, weights, and tensors that no layer made
 * (the first layer's input) stay on the device.
 *
 * A tensor belongs to the layer whose backward reads it first. So the sum that a layer passes on belongs to the next
 * layer, whose norm saves it. */
#include "schedule/activations/classes.h"
#include "schedule/activations/passes.h"
#include "schedule/pipeline/pipeline.h"

#include <stdlib.h>

enum { LEAST_ELEMENTS = 256 * 1024 }; /* OffloadableLayerState._check_if_offload() */

struct host_tensor { /* a tensor that goes to the host */
    buffer_id buffer, host_buffer, loaded_buffer;
    uint32_t segment;
};

struct unit_layer_on_host {          /* one layer of one unit */
    uint32_t first_item, item_count; /* rows of tensors_on_host */
    /* positions in the list: `begin`, of the forward's first op; `end`, of its last op; IR_NONE: there is no
     * forward */
    uint32_t begin, end;
    op_id last_copy_op_to_host; /* the last copy to the host; IR_NONE: none yet */
    bool is_loaded;
};

struct host_layers {
    struct emit *e;
    struct ir *ir;
    struct op_list new_list; /* the list that replaces the old one */
    uint32_t layer_count, host_layer_count;
    struct unit_layer_on_host *layers_on_host_by_unit;
    struct host_tensor *tensors_on_host;
    uint32_t host_tensor_count;
    uint32_t *host_tensor_of_buffer_plus_1; /* 1 + row of tensors_on_host; 0: it stays */
};

static int compare_host_tensors_by_segment(const void *a, const void *b)
{
    const struct host_tensor *x = a, *y = b;
    if (x->segment != y->segment)
        return x->segment < y->segment ? -1 : 1;
    return x->buffer.i < y->buffer.i ? -1 : x->buffer.i > y->buffer.i;
}

/* Finds the first and the last op of each layer's forward, and the tensors that go to the host: the activations of at
 * least LEAST_ELEMENTS elements that the backward of one of the first host_layer_count layers reads first. */
static void find_tensors_to_copy_to_host(struct host_layers *h, const struct op_list *list)
{
    const struct ir *ir = h->ir;
    uint8_t *class = heap_zalloc((size_t)ir->buffer.count + 1, 1);
    activations_classify(ir, list->op, list->count, class);
    for (uint32_t i = 0; i < list->count; i++) {
        const uint32_t op = list->op[i];
        if (ir->op.layer[op] == IR_NONE16)
            continue;
        const uint32_t which = segment_of_op(ir, h->layer_count, op);
        if (ir->op.phase[op] == PHASE_FORWARD) {
            if (h->layers_on_host_by_unit[which].begin == IR_NONE)
                h->layers_on_host_by_unit[which].begin = i;
            h->layers_on_host_by_unit[which].end = i;
            continue;
        }
        for (uint32_t k = 0; k < ir->op.read_count[op]; k++) {
            const uint32_t b = ir_touched_buffer(ir, op, k);
            if (class[b] != ACTIVATION_FOR_OWN_BACKWARD)
                continue;
            class[b] = ACTIVATION_NONE; /* the first reader decides */
            if (which % h->layer_count < h->host_layer_count &&
                ir->buffer.category[b] == CATEGORY_ACTIVATION &&
                ir_whole_view(ir, (buffer_id){b}).count >= LEAST_ELEMENTS)
                h->tensors_on_host[h->host_tensor_count++] =
                    (struct host_tensor){{b}, {IR_NONE}, {IR_NONE}, which};
        }
    }
    free(class);
    qsort(h->tensors_on_host, h->host_tensor_count, sizeof *h->tensors_on_host,
          compare_host_tensors_by_segment);
    for (uint32_t i = 0; i < h->host_tensor_count; i++) {
        struct unit_layer_on_host *segment =
            &h->layers_on_host_by_unit[h->tensors_on_host[i].segment];
        if (segment->item_count++ == 0)
            segment->first_item = i;
        h->host_tensor_of_buffer_plus_1[h->tensors_on_host[i].buffer.i] = i + 1;
    }
}

static op_id emit_tensor_copy(struct host_layers *h, enum work_kind kind, buffer_id from,
                              buffer_id to, uint32_t segment)
{
    h->e->op_tags = (struct op_tags){kind == WORK_D2H ? PHASE_FORWARD : PHASE_BACKWARD,
                                     REGION_OFFLOAD,
                                     (uint16_t)(segment % h->layer_count),
                                     IR_NONE16,
                                     IR_NONE16,
                                     (uint16_t)(segment / h->layer_count)};
    op_id op =
        emit_host_device_copy(h->e, kind, false, view_whole(h->e, from), view_whole(h->e, to));
    op_list_push(&h->new_list, op);
    return op;
}

static void emit_segment_copies_to_host(struct host_layers *h, uint32_t which)
{
    struct unit_layer_on_host *segment = &h->layers_on_host_by_unit[which];
    for (uint32_t i = segment->first_item; i < segment->first_item + segment->item_count; i++) {
        struct host_tensor *item = &h->tensors_on_host[i];
        item->host_buffer = ir_add_buffer_like(h->ir, item->buffer);
        h->ir->buffer.memory[item->host_buffer.i] = MEMORY_PINNED;
        segment->last_copy_op_to_host =
            emit_tensor_copy(h, WORK_D2H, item->buffer, item->host_buffer, which);
    }
}

/* Emits the copies of a segment's tensors back to the device, which start after all compute that is listed so far; does
 * nothing if they have been emitted. */
static void load_segment(struct host_layers *h, uint32_t which)
{
    struct unit_layer_on_host *segment = &h->layers_on_host_by_unit[which];
    if (segment->is_loaded)
        return;
    segment->is_loaded = true;
    const op_id after =
        op_list_last_on_stream(&h->new_list, h->new_list.count, h->ir, h->e->stream.compute);
    for (uint32_t i = segment->first_item; i < segment->first_item + segment->item_count; i++) {
        struct host_tensor *item = &h->tensors_on_host[i];
        item->loaded_buffer = ir_add_buffer_like(h->ir, item->buffer);
        op_id op = emit_tensor_copy(h, WORK_H2D, item->host_buffer, item->loaded_buffer, which);
        if (after.i != IR_NONE)
            emit_add_dependency(h->e, op, after);
    }
}

/* Returns the segment of the layer `layers` layers before `which`, in the same unit, if that layer's tensors go to the
 * host. IR_NONE: they stay, or there is no such layer. */
static uint32_t host_segment_of_earlier_layer(const struct host_layers *h, uint32_t which,
                                              uint32_t layers)
{
    const uint32_t layer = which % h->layer_count;
    return layer >= layers && layer - layers < h->host_layer_count ? which - layers : IR_NONE;
}

static void rewrite_list(struct host_layers *h, const struct op_list *in)
{
    const struct ir *ir = h->ir;
    const uint32_t stay = h->layer_count - h->host_layer_count;
    for (uint32_t i = 0; i < in->count; i++) {
        const op_id op = {in->op[i]};
        if (ir->op.layer[op.i] == IR_NONE16) {
            op_list_push(&h->new_list, op);
            continue;
        }
        const uint32_t which = segment_of_op(ir, h->layer_count, op.i);
        const struct unit_layer_on_host *segment = &h->layers_on_host_by_unit[which];
        const bool forward = ir->op.phase[op.i] == PHASE_FORWARD;
        if (forward && i == segment->begin) {
            const uint32_t earlier = host_segment_of_earlier_layer(h, which, stay);
            if (earlier != IR_NONE &&
                h->layers_on_host_by_unit[earlier].last_copy_op_to_host.i != IR_NONE)
                emit_add_dependency(h->e, op,
                                    h->layers_on_host_by_unit[earlier].last_copy_op_to_host);
        }
        if (!forward) {
            const uint32_t next =
                stay > 1 ? host_segment_of_earlier_layer(h, which, stay - 1) : IR_NONE;
            if (next != IR_NONE)
                load_segment(h, next);
            if (which % h->layer_count < h->host_layer_count)
                load_segment(h, which);
            for (uint32_t k = 0; k < ir->op.read_count[op.i]; k++) {
                const uint32_t row =
                    h->host_tensor_of_buffer_plus_1[ir_touched_buffer(ir, op.i, k)];
                if (row > 0)
                    ir_redirect_operand(h->ir, op.i, k, h->tensors_on_host[row - 1].loaded_buffer);
            }
        }
        op_list_push(&h->new_list, op);
        if (forward && i == segment->end)
            emit_segment_copies_to_host(h, which);
    }
}

void pass_offload_first_layers(struct emit *e, struct op_list *list)
{
    const uint32_t layers = (uint32_t)e->choices->model->layers, buffers = e->ir->buffer.count,
                   segments = layers * pipeline_unit_count(e->choices);
    struct host_layers h = {
        .e = e,
        .ir = e->ir,
        .layer_count = layers,
        .host_layer_count = e->choices->host_layers,
        .layers_on_host_by_unit = heap_zalloc(segments, sizeof *h.layers_on_host_by_unit),
        .tensors_on_host = heap_alloc((size_t)buffers + 1, sizeof *h.tensors_on_host),
        .host_tensor_of_buffer_plus_1 =
            heap_zalloc((size_t)buffers + 1, sizeof *h.host_tensor_of_buffer_plus_1),
    };
    for (uint32_t i = 0; i < segments; i++)
        h.layers_on_host_by_unit[i].begin = h.layers_on_host_by_unit[i].end =
            h.layers_on_host_by_unit[i].last_copy_op_to_host.i = IR_NONE;
    find_tensors_to_copy_to_host(&h, list);
    rewrite_list(&h, list);
    free(h.layers_on_host_by_unit);
    free(h.tensors_on_host);
    free(h.host_tensor_of_buffer_plus_1);
    op_list_release(list);
    *list = h.new_list;
}

/* Selective Checkpoint++ with its outputs on the host (InternEvo, attn_offload.py): the outputs of a layer's
 * attention core are copied to pinned memory after the layer's forward, and copied back one layer before they are
 * read again. The device has room for the outputs of two layers: in the forward, a core writes its outputs only after
 * the copy to the host of the layer two before it has ended; in the backward, a layer's outputs come back only after
 * the layer two after it is done. */
#include "schedule/emit/op_list.h"

#include "schedule/activations/passes.h"
#include "schedule/pipeline/pipeline.h"

#include <stdlib.h>
#include <string.h>

struct item { /* a buffer that the core of a (unit, layer) made */
    buffer_id buffer, host, back;
};

struct segment {          /* of one (unit, layer) */
    uint32_t item, items; /* rows of `item` */
    uint32_t end;         /* position of the last op of its forward */
    op_id store;          /* the last copy to the host; IR_NONE: none yet */
    bool loaded;
};

struct offload {
    struct emit *e;
    struct ir *ir;
    uint32_t layers;
    struct segment *segment;
    struct item *item;
    uint32_t item_count;
    uint32_t *of_buffer; /* 1 + row of `item` */
};

static uint32_t segment_of(const struct offload *o, uint32_t op)
{
    return (uint32_t)o->ir->op.micro[op] * o->layers + o->ir->op.layer[op];
}

/* Lists the items in the order of forwards, so that those of a segment are consecutive. */
static void find_items(struct offload *o, const struct op_list *list, const uint8_t *kept)
{
    const struct ir *ir = o->ir;
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t op = list->op[i], reads = ir->op.reads[op];
        if (ir->op.layer[op] == IR_NONE16 || ir->op.phase[op] != PHASE_FORWARD)
            continue;
        struct segment *segment = &o->segment[segment_of(o, op)];
        segment->end = i;
        for (uint32_t k = reads; k < reads + ir->op.writes[op]; k++) {
            uint32_t buffer = op_list_operand(ir, op, k);
            if (!kept[buffer] || o->of_buffer[buffer] > 0)
                continue;
            if (segment->items++ == 0)
                segment->item = o->item_count;
            o->item[o->item_count++] = (struct item){{buffer}, {IR_NONE}, {IR_NONE}};
            o->of_buffer[buffer] = o->item_count;
        }
    }
}

static op_id copy(struct offload *o, enum work_kind kind, buffer_id from, buffer_id to,
                  uint32_t segment, enum phase phase, struct op_list *out)
{
    struct emit *e = o->e;
    struct work work = {.kind = (uint8_t)kind, .copy = {(int64_t)ir_buffer_bytes(o->ir, from), 0}};
    e->tags = (struct op_tags){(uint8_t)phase, REGION_OFFLOAD, (uint16_t)(segment % o->layers),
                               IR_NONE16,      IR_NONE16,      (uint16_t)(segment / o->layers)};
    op_id op =
        emit_op(e, kind == WORK_D2H ? e->stream.d2h : e->stream.h2d, &work,
                (struct view[]){ir_whole(o->ir, from)}, 1, (struct view[]){ir_whole(o->ir, to)}, 1);
    op_list_push(out, op);
    return op;
}

static void store(struct offload *o, uint32_t which, struct op_list *out)
{
    struct segment *segment = &o->segment[which];
    for (uint32_t i = segment->item; i < segment->item + segment->items; i++) {
        struct item *item = &o->item[i];
        item->host = ir_add_buffer_like(o->ir, item->buffer);
        o->ir->buffer.memory[item->host.i] = MEMORY_PINNED;
        segment->store = copy(o, WORK_D2H, item->buffer, item->host, which, PHASE_FORWARD, out);
    }
}

/* Copies an item back to the device, not before the op `after` has ended; IR_NONE: at once. */
static void load(struct offload *o, uint32_t which, op_id after, struct op_list *out)
{
    struct segment *segment = &o->segment[which];
    if (segment->loaded || segment->store.i == IR_NONE)
        return;
    segment->loaded = true;
    for (uint32_t i = segment->item; i < segment->item + segment->items; i++) {
        struct item *item = &o->item[i];
        item->back = ir_add_buffer_like(o->ir, item->buffer);
        op_id op = copy(o, WORK_H2D, item->host, item->back, which, PHASE_RECOMPUTE, out);
        if (after.i != IR_NONE)
            emit_add_dependency(o->e, op, after);
    }
}

static void redirect(struct offload *o, uint32_t op)
{
    for (uint32_t k = 0; k < o->ir->op.reads[op]; k++) {
        uint32_t row = o->of_buffer[op_list_operand(o->ir, op, k)];
        if (row > 0 && o->item[row - 1].back.i != IR_NONE)
            op_list_redirect(o->ir, op, k, o->item[row - 1].back);
    }
}

/* True if the op is the first to write an item of its segment. */
static bool begins(const struct offload *o, uint32_t op, const struct segment *segment)
{
    uint32_t reads = o->ir->op.reads[op];
    for (uint32_t k = reads; k < reads + o->ir->op.writes[op]; k++)
        if (segment->items > 0 && op_list_operand(o->ir, op, k) == o->item[segment->item].buffer.i)
            return true;
    return false;
}

static void rewrite(struct offload *o, const struct op_list *in, struct op_list *out)
{
    const struct ir *ir = o->ir;
    op_id stored[2] = {{IR_NONE}, {IR_NONE}}; /* of the last two layers */
    op_id last = {IR_NONE};                   /* op of the layer before, in the backward's order */
    uint32_t current = IR_NONE, begun = IR_NONE;
    for (uint32_t i = 0; i < in->count; i++) {
        uint32_t op = in->op[i],
                 which = ir->op.layer[op] == IR_NONE16 ? IR_NONE : segment_of(o, op);
        bool forward = ir->op.phase[op] == PHASE_FORWARD;
        if (which == IR_NONE) {
            op_list_push(out, (op_id){op});
            continue;
        }
        struct segment *segment = &o->segment[which];
        if (forward && which != begun && begins(o, op, segment)) {
            begun = which;
            if (stored[0].i != IR_NONE)
                emit_add_dependency(o->e, (op_id){op}, stored[0]);
        }
        if (!forward && which != current) {
            if (current != IR_NONE && current / o->layers == which / o->layers)
                last = (op_id){in->op[i - 1]};
            current = which;
            load(o, which, (op_id){IR_NONE}, out);
            if (which % o->layers > 0)
                load(o, which - 1, last, out);
        }
        if (!forward)
            redirect(o, op);
        op_list_push(out, (op_id){op});
        if (forward && segment->end == i && segment->items > 0) {
            store(o, which, out);
            stored[0] = stored[1];
            stored[1] = segment->store;
        }
    }
}

void pass_offload_kept(struct emit *e, struct op_list *list)
{
    struct ir *ir = e->ir;
    uint32_t layers = (uint32_t)e->choices->model->layers,
             segments = layers * pipeline_units(e->choices), buffers = ir->buffer.count;
    struct offload o = {
        .e = e,
        .ir = ir,
        .layers = layers,
        .segment = heap_zalloc(segments, sizeof *o.segment),
        .item = heap_alloc((size_t)e->kept.count + 1, sizeof *o.item),
    };
    uint8_t *kept = heap_zalloc(buffers, 1);
    for (uint32_t i = 0; i < e->kept.count; i++)
        kept[e->kept.buffer[i].i] = 1;
    for (uint32_t i = 0; i < segments; i++)
        o.segment[i].store.i = IR_NONE;
    o.of_buffer = heap_zalloc(buffers, sizeof *o.of_buffer);
    find_items(&o, list, kept);
    struct op_list out = {0};
    rewrite(&o, list, &out);
    free(kept);
    free(o.segment);
    free(o.item);
    free(o.of_buffer);
    op_list_release(list);
    *list = out;
}

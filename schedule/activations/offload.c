/* Checkpoints on the host: the input of a layer, from which the recomputation starts, is copied to the host before
 * the layer's forward and copied back before it is read again. In between, the device does not hold it.
 *
 * In the blocking form (DeepSpeed's cpu_checkpointing until August 2026) memory is pageable and the host thread waits
 * for each copy: in the forward before it issues the layer, in the backward before it issues the recomputation. Such
 * a copy is made on the current stream, so it starts after the work issued there before it.
 *
 * In the asynchronous form memory is pinned, copies have streams of their own, and the next layer's input is fetched
 * while this layer's backward runs. A layer's forward then starts only after the copy of the layer before the
 * previous one has ended; otherwise no computation would ever be ordered after the copy, and the bytes could not be
 * reused. */
#include "schedule/activations/passes.h"
#include "schedule/choices/profile.h"
#include "schedule/emit/op_list.h"
#include "schedule/pipeline/pipeline.h"

#include <stdlib.h>
#include <string.h>

struct fetch {   /* of one (unit, layer) */
    op_id store; /* the copy to the host; IR_NONE: none yet */
    buffer_id host, back;
    buffer_id input;
};

struct offload {
    struct emit *e;
    struct ir *ir;
    uint32_t layers;
    bool blocking;
    struct fetch *fetch;
    op_id stored[2];          /* copies to the host of the last two layers; IR_NONE: none yet */
    uint32_t *writer_segment; /* per buffer: 1 + the segment whose forward writes it; 0: none */
};

static uint32_t segment_of(const struct offload *o, uint32_t op)
{
    return (uint32_t)o->ir->op.micro[op] * o->layers + o->ir->op.layer[op];
}

/* Finds the input of each layer: the activation that its forward reads and did not make itself. */
static void find_inputs(struct offload *o, const struct op_list *list)
{
    struct ir *ir = o->ir;
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t op = list->op[i];
        if (ir->op.layer[op] == IR_NONE16 || ir->op.phase[op] != PHASE_FORWARD)
            continue;
        struct fetch *fetch = &o->fetch[segment_of(o, op)];
        for (uint32_t k = 0; fetch->input.i == IR_NONE && k < ir->op.reads[op]; k++) {
            uint32_t buffer = op_list_operand(ir, op, k);
            if (ir->buffer.category[buffer] == CATEGORY_ACTIVATION &&
                o->writer_segment[buffer] != segment_of(o, op) + 1)
                fetch->input.i = buffer;
        }
        for (uint32_t k = ir->op.reads[op]; k < ir->op.reads[op] + (uint32_t)ir->op.writes[op]; k++)
            o->writer_segment[op_list_operand(ir, op, k)] = segment_of(o, op) + 1;
    }
}

/* Returns the last op listed so far that computes; IR_NONE: there is none. */
static op_id last_compute(const struct offload *o, const struct op_list *out)
{
    uint32_t i = out->count;
    while (i > 0 && o->ir->op.stream[out->op[i - 1]] != o->e->stream.compute)
        i--;
    return (op_id){i > 0 ? out->op[i - 1] : IR_NONE};
}

static op_id copy(struct offload *o, enum work_kind kind, buffer_id from, buffer_id to,
                  uint32_t like, enum phase phase, struct op_list *out)
{
    struct ir *ir = o->ir;
    struct emit *e = o->e;
    struct work work = {.kind = (uint8_t)kind,
                        .copy = {(int64_t)ir_buffer_bytes(ir, from), o->blocking}};
    e->tags = (struct op_tags){(uint8_t)phase, REGION_OFFLOAD, ir->op.layer[like],
                               IR_NONE16,      IR_NONE16,      ir->op.micro[like]};
    op_id op =
        emit_op(e, kind == WORK_D2H ? e->stream.d2h : e->stream.h2d, &work,
                (struct view[]){ir_whole(ir, from)}, 1, (struct view[]){ir_whole(ir, to)}, 1);
    op_id last = o->blocking ? last_compute(o, out) : (op_id){IR_NONE};
    if (last.i != IR_NONE)
        emit_add_dependency(e, op, last);
    op_list_push(out, op);
    return op;
}

/* Copies the layer's input to the host before op, the layer's first. */
static void store(struct offload *o, uint32_t op, struct op_list *out)
{
    struct fetch *fetch = &o->fetch[segment_of(o, op)];
    fetch->host = ir_add_buffer_like(o->ir, fetch->input);
    o->ir->buffer.memory[fetch->host.i] = o->blocking ? MEMORY_PAGEABLE : MEMORY_PINNED;
    fetch->store = copy(o, WORK_D2H, fetch->input, fetch->host, op, PHASE_FORWARD, out);
    if (!o->blocking && o->stored[0].i != IR_NONE)
        emit_add_dependency(o->e, (op_id){op}, o->stored[0]);
    o->stored[0] = o->stored[1];
    o->stored[1] = fetch->store;
}

static op_id load(struct offload *o, uint32_t segment, uint32_t like, struct op_list *out)
{
    struct fetch *fetch = &o->fetch[segment];
    fetch->back = ir_add_buffer_like(o->ir, fetch->input);
    op_id op = copy(o, WORK_H2D, fetch->host, fetch->back, like, PHASE_RECOMPUTE, out);
    o->ir->op.layer[op.i] = (uint16_t)(segment % o->layers);
    return op;
}

/* True if the layer before is of the same chunk, and its input is still on the host. */
static bool is_ahead(const struct offload *o, uint32_t segment)
{
    return segment % o->layers > 0 && o->fetch[segment - 1].store.i != IR_NONE &&
           o->fetch[segment - 1].back.i == IR_NONE;
}

static void redirect(struct offload *o, uint32_t op, const struct fetch *fetch)
{
    for (uint32_t k = 0; k < o->ir->op.reads[op]; k++)
        if (op_list_operand(o->ir, op, k) == fetch->input.i)
            op_list_redirect(o->ir, op, k, fetch->back);
}

static void push_all(struct op_list *out, const uint32_t *op, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        op_list_push(out, (op_id){op[i]});
}

void pass_offload(struct emit *e, struct op_list *list)
{
    struct ir *ir = e->ir;
    uint32_t layers = (uint32_t)e->choices->model->layers,
             segments = layers * pipeline_units(e->choices);
    struct offload o = {
        .e = e,
        .ir = ir,
        .layers = layers,
        .blocking = e->choices->profile->offload_blocking,
        .stored = {{IR_NONE}, {IR_NONE}},
        .fetch = heap_alloc(segments, sizeof *o.fetch),
        .writer_segment = heap_zalloc(ir->buffer.count, sizeof *o.writer_segment),
    };
    memset(o.fetch, 0xff, segments * sizeof *o.fetch); /* IR_NONE everywhere */
    find_inputs(&o, list);

    struct op_list out = {0};
    op_id last = {IR_NONE}; /* last op of the layer before, in the backward's order */
    uint32_t current = IR_NONE;
    for (uint32_t i = 0, ops; i < list->count; i += ops) {
        uint32_t op = list->op[i];
        ops = op_list_isomorphic_run(ir, list->op + i, list->count - i);
        if (ir->op.layer[op] == IR_NONE16) {
            push_all(&out, list->op + i, ops);
            continue;
        }
        uint32_t segment = segment_of(&o, op);
        struct fetch *fetch = &o.fetch[segment];
        if (ir->op.phase[op] == PHASE_FORWARD) {
            if (fetch->store.i == IR_NONE)
                store(&o, op, &out);
            push_all(&out, list->op + i, ops);
            continue;
        }
        if (segment != current) {
            if (current != IR_NONE && current / layers == segment / layers)
                last = (op_id){list->op[i - 1]};
            current = segment;
            if (fetch->back.i == IR_NONE)
                load(&o, segment, op, &out);
            /* one layer ahead; not before the layer after this one has given its copy back */
            if (!o.blocking && is_ahead(&o, segment)) {
                op_id ahead = load(&o, segment - 1, op, &out);
                if (last.i != IR_NONE)
                    emit_add_dependency(e, ahead, last);
            }
        }
        for (uint32_t k = i; k < i + ops; k++)
            redirect(&o, list->op[k], fetch);
        push_all(&out, list->op + i, ops);
    }
    free(o.fetch);
    free(o.writer_segment);
    op_list_release(list);
    *list = out;
}

/* Activation checkpointing (Chen et al., arXiv 1604.06174) as a rewriting of the op list: the forward ops of a layer
 * are repeated before its backward, on buffers of their own, and the backward reads those. The buffers of the first
 * forward then have no late reader and are freed early.
 *
 * Selective Checkpoint++ (LoongTrain, section 4.2): the outputs of attention's core are saved, and ops that lead to
 * nothing else (its tiles, the ring and its merges) are not repeated.
 *
 * torchtitan's options (torchtitan/distributed/activation_checkpoint.py): with `op`, the results of every second
 * product are saved too, and only ops that a backward needs are repeated; with a number N, of which only 2 is modelled,
 * every N-th layer is checkpointed, and the other layers save everything.
 *
 * Megatron-LM's selective recomputation (Korthikanti et al., arXiv 2205.05198, section 5; megatron/core/
 * transformer/attention.py, _checkpointed_attention_forward()) is the opposite of Selective Checkpoint++: only the
 * core is repeated, for its own backward, and everything else is saved, also the core's output, which the weight
 * gradient of the output projection reads. */
#include "schedule/activations/passes.h"
#include "schedule/choices/profile.h"
#include "schedule/emit/op_list.h"
#include "schedule/pipeline/pipeline.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct segment { /* a layer's forward of one unit: positions in the list */
    uint32_t begin, end;
    uint32_t last; /* of its backward's ops */
};

/* The origin of a buffer of attention's forward, the last of these that applies. */
enum origin { FROM_HERE, FROM_RANKS, FROM_CORE };

struct recompute {
    struct emit *e;
    struct ir *ir;
    uint32_t layers;
    struct segment *segment; /* unit * layers + layer */
    uint32_t *buffer;        /* the repeated forward's buffer for the first one's; IR_NONE */
    uint32_t *op;            /* the same for ops, to carry their waits over */
    uint8_t *kept;           /* per buffer: it stays from the first forward */
    uint8_t *cache;          /* per buffer: several units write it, and it stays */
    uint8_t *origin;         /* per buffer of attention's forward: enum origin */
    uint8_t *repeated;       /* per segment: its forward has been repeated */
    uint32_t
        *needed; /* per buffer: 1 + the last segment whose backward, or a needed op, reads it */
    uint32_t *
        remains; /* per buffer: 1 + the last segment of which an op that writes it is not repeated */
};

static uint32_t segment_of(const struct recompute *r, uint32_t op)
{
    return (uint32_t)r->ir->op.micro[op] * r->layers + r->ir->op.layer[op];
}

static bool in_layer(const struct ir *ir, uint32_t op, enum phase phase)
{
    return ir->op.layer[op] != IR_NONE16 && ir->op.phase[op] == phase;
}

/* True if the op is of a layer's backward, in which a piece may compute something again. */
static bool in_backward(const struct ir *ir, uint32_t op)
{
    return in_layer(ir, op, PHASE_BACKWARD) || in_layer(ir, op, PHASE_RECOMPUTE);
}

/* True if torchtitan's checkpointing of every second layer leaves the layer out: it counts layers from 1. */
static bool keeps_layer(const struct recompute *r, uint32_t layer)
{
    return r->e->choices->activations == CHOICE_ACTIVATIONS_SELECTIVE_LAYER && layer % 2 == 0;
}

static bool repeats_core(const struct recompute *r)
{
    return r->e->choices->activations == CHOICE_ACTIVATIONS_SELECTIVE_CORE;
}

/* Sets the origin of the buffers of attention's forward, for Megatron's selective recomputation (core_attention,
 * cp_comm_type). There the core includes the exchange of queries, keys and values: buffers received from other ranks,
 * and those made from them before the core (FROM_RANKS), are computed again. Those made from the core's result
 * (FROM_CORE) are not. */
static void find_arrivals(struct recompute *r)
{
    const struct ir *ir = r->ir;
    for (uint32_t op = 0; repeats_core(r) && op < ir->op.count; op++) {
        uint32_t kind = ir->op.kind[op], reads = ir->op.reads[op];
        uint8_t origin = kind == WORK_SHIFT || kind == WORK_ALL_TO_ALL || kind == WORK_ALL_GATHER
                             ? FROM_RANKS
                             : FROM_HERE;
        if (ir->op.region[op] != REGION_ATTENTION || ir->op.phase[op] != PHASE_FORWARD)
            continue;
        for (uint32_t k = 0; k < reads; k++) {
            uint32_t buffer = op_list_operand(ir, op, k);
            uint8_t own = r->kept[buffer] ? FROM_CORE : r->origin[buffer];
            origin = own > origin ? own : origin;
        }
        for (uint32_t k = reads; k < reads + ir->op.writes[op]; k++) {
            uint8_t *known = &r->origin[op_list_operand(ir, op, k)];
            *known = origin > *known ? origin : *known;
        }
    }
}

static void find_segments(struct recompute *r, const struct op_list *list)
{
    for (uint32_t i = 0, ops; i < list->count; i += ops) {
        uint32_t op = list->op[i];
        ops = op_list_isomorphic_run(r->ir, list->op + i, list->count - i);
        if (in_backward(r->ir, op))
            r->segment[segment_of(r, op)].last = i + ops - 1;
        if (!in_layer(r->ir, op, PHASE_FORWARD))
            continue;
        struct segment *segment = &r->segment[segment_of(r, op)];
        if (segment->begin == segment->end)
            segment->begin = i;
        segment->end = i + ops;
    }
}

/* True if everything that an op of the forward writes is saved, or is read only by ops of which the same is true. Only
 * ops of attention can be such ops; with SELECTIVE_OP, any op. An op that writes nothing (a wait of the host) gets the
 * answer of the op after it, `after`. The caller walks the segment backwards, and has marked in `needed` the buffers
 * that the backward and the other ops after this one read. */
static bool leads_to_kept(const struct recompute *r, uint32_t op, uint32_t which, bool after)
{
    uint32_t reads = r->ir->op.reads[op], operands = reads + r->ir->op.writes[op];
    bool core = r->ir->op.region[op] == REGION_ATTENTION ||
                r->e->choices->activations == CHOICE_ACTIVATIONS_SELECTIVE_OP;
    for (uint32_t k = reads; core && k < operands; k++) {
        uint32_t buffer = op_list_operand(r->ir, op, k);
        core = r->kept[buffer] || r->needed[buffer] != which + 1;
    }
    return operands > reads ? core : after;
}

/* True if the op only writes what stays for later units. */
static bool fills_cache(const struct recompute *r, uint32_t op)
{
    uint32_t reads = r->ir->op.reads[op], operands = reads + r->ir->op.writes[op];
    bool only = operands > reads;
    for (uint32_t k = reads; only && k < operands; k++)
        only = r->cache[op_list_operand(r->ir, op, k)];
    return only;
}

/* Marks in `keep` the forward ops of a layer that are repeated. It walks the forward backwards: an op is repeated if
 * the backward, or a repeated op, reads what it writes; with the switch recompute_whole, every op is. Ops that only
 * fill a cache for later units, and ops that lead only to saved tensors, are not repeated. Megatron's selective
 * recomputation does the opposite: it repeats the ops that lead only to saved tensors, and no others. */
static void find_needed(struct recompute *r, const struct op_list *list, uint32_t which,
                        uint8_t *keep)
{
    struct segment segment = r->segment[which];
    bool whole = r->e->choices->profile->recompute_whole, core = false;
    for (uint32_t i = segment.end; i-- > segment.begin;) {
        uint32_t op = list->op[i];
        if (fills_cache(r, op))
            continue;
        if (r->kept != NULL && (core = leads_to_kept(r, op, which, core))) {
            keep[i - segment.begin] = repeats_core(r);
            continue;
        }
        uint32_t reads = r->ir->op.reads[op], operands = reads + r->ir->op.writes[op];
        bool needed = whole;
        for (uint32_t k = reads; k < operands; k++)
            needed = needed || r->needed[op_list_operand(r->ir, op, k)] == which + 1;
        keep[i - segment.begin] = needed && !repeats_core(r);
        for (uint32_t k = 0; needed && k < reads; k++)
            r->needed[op_list_operand(r->ir, op, k)] = which + 1;
    }
}

/* Unmarks, for Megatron's selective recomputation, ops whose buffer would be repeated only in part. Several ops may
 * fill one buffer (keys by one, values by another). If one of them is not repeated, none is, and readers use the
 * buffer of the first forward. */
static void drop_parts(struct recompute *r, const struct op_list *list, uint32_t which,
                       uint8_t *keep)
{
    struct segment segment = r->segment[which];
    for (bool more = repeats_core(r); more;) {
        more = false;
        for (uint32_t i = segment.begin; i < segment.end; i++) {
            uint32_t op = list->op[i], reads = r->ir->op.reads[op];
            uint8_t *kept = &keep[i - segment.begin];
            for (uint32_t k = reads; k < reads + r->ir->op.writes[op]; k++) {
                uint32_t *remains = &r->remains[op_list_operand(r->ir, op, k)];
                if (*kept && *remains == which + 1)
                    *kept = 0;
                if (*kept || *remains == which + 1)
                    continue;
                *remains = which + 1;
                more = true;
            }
        }
    }
}

static void repeat_op(struct recompute *r, uint32_t op, struct op_list *out)
{
    struct ir *ir = r->ir;
    buffer_id of[16];
    op_id wait[8];
    uint32_t reads = ir->op.reads[op], operands = reads + ir->op.writes[op], waits = 0;
    assert(operands <= ARRAY_LEN(of));
    for (uint32_t k = reads; k < operands; k++) {
        uint32_t buffer = op_list_operand(ir, op, k);
        bool shared = r->cache[buffer] || (ir->buffer.flags[buffer] & BUFFER_PERSISTENT);
        if (r->buffer[buffer] == IR_NONE && !shared) /* of a cache, the same values again */
            r->buffer[buffer] = ir_add_buffer_like(ir, (buffer_id){buffer}).i;
    }
    for (uint32_t k = 0; k < operands; k++) {
        uint32_t buffer = op_list_operand(ir, op, k), again = r->buffer[buffer];
        of[k].i = again != IR_NONE ? again : buffer;
    }
    for (uint32_t k = 0; k < ir->op.wait_count[op] && waits < ARRAY_LEN(wait); k++) {
        uint32_t target = r->op[ir->wait[ir->op.wait_begin[op] + k].i];
        if (target != IR_NONE)
            wait[waits++] = (op_id){target};
    }
    op_id copy = ir_add_op_like(ir, op, PHASE_RECOMPUTE, of, wait, (uint16_t)waits);
    r->op[op] = copy.i;
    op_list_push(out, copy);
}

/* Inserts the repetition of a layer's forward before the first op of its backward, at position `begin` of the list.
 * Gradients of weights may be computed later than the rest of the backward; they read the buffers of the same
 * repetition. */
static void repeat_forward(struct recompute *r, const struct op_list *in, uint32_t begin,
                           struct op_list *out)
{
    struct ir *ir = r->ir;
    uint32_t which = segment_of(r, in->op[begin]);
    struct segment segment = r->segment[which];
    uint8_t *keep = heap_zalloc(segment.end - segment.begin, 1);
    for (uint32_t i = begin; i <= segment.last; i++) {
        bool own = in_backward(ir, in->op[i]) && segment_of(r, in->op[i]) == which;
        for (uint32_t k = 0; own && k < ir->op.reads[in->op[i]]; k++) {
            uint32_t buffer = op_list_operand(ir, in->op[i], k);
            if (r->origin[buffer] != FROM_RANKS || r->kept[buffer])
                r->needed[buffer] = which + 1;
        }
    }
    find_needed(r, in, which, keep);
    drop_parts(r, in, which, keep);
    for (uint32_t i = segment.begin; i < segment.end; i++)
        if (keep[i - segment.begin])
            repeat_op(r, in->op[i], out);
    free(keep);
    r->repeated[which] = 1;
}

/* Rewrites the backward ops of one layer, which are consecutive: [begin, end) of the list. */
static void rewrite_backward(struct recompute *r, const struct op_list *in, uint32_t begin,
                             uint32_t end, struct op_list *out)
{
    struct ir *ir = r->ir;
    if (!r->repeated[segment_of(r, in->op[begin])])
        repeat_forward(r, in, begin, out);
    for (uint32_t i = begin; i < end; i++) {
        uint32_t op = in->op[i];
        bool redirects = !repeats_core(r) || ir->op.region[op] == REGION_ATTENTION;
        for (uint32_t k = 0; redirects && k < ir->op.reads[op]; k++) {
            uint32_t again = r->buffer[op_list_operand(ir, op, k)];
            if (again != IR_NONE)
                op_list_redirect(ir, op, k, (buffer_id){again});
        }
    }
    op_list_push_all(out, in->op + begin, end - begin);
}

/* Extends lifetimes in the repeated forward as the implementation does in the first one. */
static void repeat_holds(struct recompute *r)
{
    uint32_t count = r->e->extension_count;
    for (uint32_t i = 0; i < count; i++) {
        struct lifetime_extension hold = r->e->extension[i];
        uint32_t buffer = r->buffer[hold.buffer.i], until = r->op[hold.until.i];
        if (buffer != IR_NONE && until != IR_NONE)
            emit_extend_lifetime(r->e, (buffer_id){buffer}, (op_id){until});
    }
}

static void recompute_release(struct recompute *r)
{
    free(r->segment);
    free(r->buffer);
    free(r->op);
    free(r->needed);
    free(r->kept);
    free(r->repeated);
    free(r->remains);
    free(r->cache);
    free(r->origin);
}

void pass_recompute(struct emit *e, struct op_list *list)
{
    struct ir *ir = e->ir;
    uint32_t layers = (uint32_t)e->choices->model->layers,
             segments = layers * pipeline_units(e->choices);
    struct recompute r = {
        .e = e,
        .ir = ir,
        .layers = layers,
        .segment = heap_zalloc(segments, sizeof *r.segment),
        .buffer = heap_alloc(ir->buffer.count, sizeof *r.buffer),
        .op = heap_alloc(ir->op.count, sizeof *r.op),
        .needed = heap_zalloc(ir->buffer.count, sizeof *r.needed),
        .remains = heap_zalloc(ir->buffer.count, sizeof *r.remains),
        .repeated = heap_zalloc(segments, 1),
        .cache = heap_zalloc(ir->buffer.count, 1),
        .origin = heap_zalloc(ir->buffer.count, 1),
    };
    for (uint32_t i = 0; i < e->caches.count; i++)
        r.cache[e->caches.buffer[i].i] = 1;
    bool selective = e->choices->activations == CHOICE_ACTIVATIONS_SELECTIVE ||
                     e->choices->activations == CHOICE_ACTIVATIONS_SELECTIVE_OP ||
                     e->choices->activations == CHOICE_ACTIVATIONS_SELECTIVE_OFFLOAD ||
                     repeats_core(&r);
    for (uint32_t i = 0; selective && i < e->kept.count; i++) {
        if (r.kept == NULL)
            r.kept = heap_zalloc(ir->buffer.count, sizeof *r.kept);
        r.kept[e->kept.buffer[i].i] = 1;
    }
    /* buffers and ops made here are never looked up: only rows of the first forward are */
    memset(r.buffer, 0xff, ir->buffer.count * sizeof *r.buffer);
    memset(r.op, 0xff, ir->op.count * sizeof *r.op);
    find_segments(&r, list);
    find_arrivals(&r);

    struct op_list out = {0};
    for (uint32_t i = 0, end; i < list->count; i = end) {
        uint32_t op = list->op[i];
        end = i + op_list_isomorphic_run(ir, list->op + i, list->count - i);
        if (!in_backward(ir, op) || keeps_layer(&r, ir->op.layer[op])) {
            op_list_push_all(&out, list->op + i, end - i);
            continue;
        }
        while (end < list->count && in_backward(ir, list->op[end]) &&
               segment_of(&r, list->op[end]) == segment_of(&r, op))
            end += op_list_isomorphic_run(ir, list->op + end, list->count - end);
        rewrite_backward(&r, list, i, end, &out);
    }
    repeat_holds(&r);
    recompute_release(&r);
    op_list_release(list);
    *list = out;
}

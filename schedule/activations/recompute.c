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
 * Megatron-LM's selective recomputation (Korthikanti et al., arXiv 2205.05198, section 5;
 * megatron/core/transformer/attention.py, _checkpointed_attention_forward()) is the opposite of Selective Checkpoint++.
 * Only the core is repeated, for its own backward. Everything else is saved, also the core's output, which the weight
 * gradient of the output projection reads. Megatron-LM's other modules are in schedule/activations/discard.c. */
#include "schedule/activations/passes.h"
#include "schedule/choices/profile.h"
#include "schedule/emit/op_list.h"
#include "schedule/pipeline/pipeline.h"

#include <assert.h>
#include <stdlib.h>

struct segment { /* a layer's forward of one unit: positions in the list */
    uint32_t begin, end;
    uint32_t last_op_of_backward; /* the last op of its backward */
    bool has_repeated_forward;    /* its forward has been repeated */
};

/* The origin of a buffer in attention's forward. FROM_HERE: it is made from the rank's own tensors. FROM_RANKS: it is
 * received from other ranks, or made from such buffers. FROM_CORE: it is made from the result of attention's core. If
 * several values apply, it is the last of them. */
enum origin { FROM_HERE, FROM_RANKS, FROM_CORE };

struct buffer_in_recomputation { /* what is known of a buffer */
    /* the buffer that repeated ops write in place of this one; IR_NONE: none */
    uint32_t repeated_buffer;
    /* 1 + the last segment whose backward, or whose repeated op, reads it; 0: none */
    uint32_t last_needing_segment_plus_1;
    /* 1 + the last segment in which an op that writes the buffer is not repeated; 0: none */
    uint32_t last_unrepeated_segment_plus_1;
    bool keeps_buffer_of_first_forward; /* the buffer of the first forward is kept */
    /* it is in e->buffers_never_recomputed: several units read it, so it is not made again */
    bool is_cache_read_by_several_units;
    uint8_t origin; /* enum origin, of attention's forward */
};

struct recompute {
    struct emit *e;
    struct ir *ir;
    struct op_list new_list; /* the list that replaces the old one */
    uint32_t layer_count;
    struct segment *segment;              /* unit * layer_count + layer */
    struct buffer_in_recomputation *mark; /* per buffer of the first forward */
    /* per op of the first forward: the op that repeats it; IR_NONE: none does */
    uint32_t *repetition_of_op;
    bool keeps_some_buffers; /* some buffers are kept */
};

static bool is_in_layer_and_phase(const struct ir *ir, uint32_t op, enum phase phase)
{
    return ir->op.layer[op] != IR_NONE16 && ir->op.phase[op] == phase;
}

/* True if the op belongs to the forward of segment `which`. Other ops may stand between those of a forward. */
static bool is_in_forward_of_segment(const struct recompute *r, uint32_t op, uint32_t which)
{
    return is_in_layer_and_phase(r->ir, op, PHASE_FORWARD) &&
           segment_of_op(r->ir, r->layer_count, op) == which;
}

/* True if the op belongs to a layer's backward: it makes gradients, or makes a piece of the layer again for them. */
static bool is_in_layer_backward(const struct ir *ir, uint32_t op)
{
    return is_in_layer_and_phase(ir, op, PHASE_BACKWARD) ||
           is_in_layer_and_phase(ir, op, PHASE_WEIGHT_GRADIENT) ||
           is_in_layer_and_phase(ir, op, PHASE_RECOMPUTE);
}

/* True if `layer` saves all its activations under torchtitan's checkpointing of every second layer. torchtitan counts
 * layers from 1 and checkpoints the even ones, so the layers that save everything are those with even numbers here. */
static bool layer_saves_all_activations(const struct recompute *r, uint32_t layer)
{
    return r->e->choices->activations == CHOICE_ACTIVATIONS_SELECTIVE_LAYER && layer % 2 == 0;
}

static bool recomputes_attention_core(const struct recompute *r)
{
    return r->e->choices->activations == CHOICE_ACTIVATIONS_SELECTIVE_CORE;
}

/* Sets the origin of the buffers of attention's forward, for Megatron's selective recomputation (core_attention,
 * cp_comm_type). There the core includes the exchange of queries, keys and values. So buffers that are received from
 * other ranks, or made from such before the core (FROM_RANKS), are made again. Those that are made from the core's
 * result (FROM_CORE) are not. */
static void find_attention_origin_of_buffers(struct recompute *r)
{
    const struct ir *ir = r->ir;
    for (uint32_t op = 0; recomputes_attention_core(r) && op < ir->op.count; op++) {
        uint32_t kind = ir->op.kind[op], reads = ir->op.read_count[op];
        uint8_t origin = kind == WORK_SHIFT || kind == WORK_EXCHANGE || kind == WORK_ALL_TO_ALL ||
                                 kind == WORK_ALL_GATHER
                             ? FROM_RANKS
                             : FROM_HERE;
        if (ir->op.region[op] != REGION_ATTENTION || ir->op.phase[op] != PHASE_FORWARD)
            continue;
        for (uint32_t k = 0; k < reads; k++) {
            uint32_t buffer = ir_touched_buffer(ir, op, k);
            uint8_t own =
                r->mark[buffer].keeps_buffer_of_first_forward ? FROM_CORE : r->mark[buffer].origin;
            origin = own > origin ? own : origin;
        }
        for (uint32_t k = reads; k < reads + ir->op.write_count[op]; k++) {
            uint8_t *known = &r->mark[ir_touched_buffer(ir, op, k)].origin;
            *known = origin > *known ? origin : *known;
        }
    }
}

static void find_segments(struct recompute *r, const struct op_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t op = list->op[i];
        if (is_in_layer_backward(r->ir, op))
            r->segment[segment_of_op(r->ir, r->layer_count, op)].last_op_of_backward = i;
        if (!is_in_layer_and_phase(r->ir, op, PHASE_FORWARD))
            continue;
        struct segment *segment = &r->segment[segment_of_op(r->ir, r->layer_count, op)];
        if (segment->begin == segment->end)
            segment->begin = i;
        segment->end = i + 1;
    }
}

/* Returns whether a forward op leads only to saved tensors: each buffer that it writes is saved, or is read only by ops
 * that lead only to saved tensors. Outside attention it is false, except with CHOICE_ACTIVATIONS_SELECTIVE_OP. For an
 * op that writes nothing (a wait of the host) it is `after`, the answer for the next op. The caller walks the segment
 * backwards, and has set last_needing_segment_plus_1 of the buffers that the backward and later repeated ops read. */
static bool op_feeds_only_saved_buffers(const struct recompute *r, uint32_t op, uint32_t which,
                                        bool after)
{
    uint32_t reads = r->ir->op.read_count[op], operands = reads + r->ir->op.write_count[op];
    bool core = r->ir->op.region[op] == REGION_ATTENTION ||
                r->e->choices->activations == CHOICE_ACTIVATIONS_SELECTIVE_OP;
    for (uint32_t k = reads; core && k < operands; k++) {
        const struct buffer_in_recomputation *mark = &r->mark[ir_touched_buffer(r->ir, op, k)];
        core =
            mark->keeps_buffer_of_first_forward || mark->last_needing_segment_plus_1 != which + 1;
    }
    return operands > reads ? core : after;
}

/* True if the op writes only caches, which stay for later units. */
static bool writes_only_caches(const struct recompute *r, uint32_t op)
{
    uint32_t reads = r->ir->op.read_count[op], operands = reads + r->ir->op.write_count[op];
    bool all_are_caches = operands > reads;
    for (uint32_t k = reads; all_are_caches && k < operands; k++)
        all_are_caches = r->mark[ir_touched_buffer(r->ir, op, k)].is_cache_read_by_several_units;
    return all_are_caches;
}

/* Sets repeats[] of the ops of a layer's forward that are to be repeated. Ops that only fill a cache for later units
 * are not. Of the others, an op is repeated if the backward or a repeated op reads what it writes; with the switch
 * recomputes_whole_layer, every op is. Selective checkpointing leaves out the ops that lead only to saved tensors.
 * Megatron's selective recomputation does the opposite: it repeats exactly the ops that lead only to saved tensors. */
static void mark_repeated_ops(struct recompute *r, const struct op_list *list, uint32_t which,
                              uint8_t *repeats)
{
    struct segment segment = r->segment[which];
    bool whole = r->e->choices->profile->recomputes_whole_layer, core = false;
    for (uint32_t i = segment.end; i-- > segment.begin;) {
        uint32_t op = list->op[i];
        if (!is_in_forward_of_segment(r, op, which) || writes_only_caches(r, op))
            continue;
        if (r->keeps_some_buffers && (core = op_feeds_only_saved_buffers(r, op, which, core))) {
            repeats[i - segment.begin] = recomputes_attention_core(r);
            continue;
        }
        uint32_t reads = r->ir->op.read_count[op], operands = reads + r->ir->op.write_count[op];
        bool needed = whole;
        for (uint32_t k = reads; k < operands; k++)
            needed =
                needed ||
                r->mark[ir_touched_buffer(r->ir, op, k)].last_needing_segment_plus_1 == which + 1;
        repeats[i - segment.begin] = needed && !recomputes_attention_core(r);
        for (uint32_t k = 0; needed && k < reads; k++)
            r->mark[ir_touched_buffer(r->ir, op, k)].last_needing_segment_plus_1 = which + 1;
    }
}

/* Unmarks, for Megatron's selective recomputation, ops whose buffer would be repeated only in part. Several ops may
 * fill one buffer (one the keys, another the values). If one of them is not repeated, none is, and readers use the
 * buffer of the first forward. */
static void unmark_ops_of_partly_remade_buffers(struct recompute *r, const struct op_list *list,
                                                uint32_t which, uint8_t *repeats)
{
    struct segment segment = r->segment[which];
    for (bool more = recomputes_attention_core(r); more;) {
        more = false;
        for (uint32_t i = segment.begin; i < segment.end; i++) {
            uint32_t op = list->op[i], reads = r->ir->op.read_count[op];
            uint8_t *repeated = &repeats[i - segment.begin];
            if (!is_in_forward_of_segment(r, op, which))
                continue;
            for (uint32_t k = reads; k < reads + r->ir->op.write_count[op]; k++) {
                uint32_t *remains =
                    &r->mark[ir_touched_buffer(r->ir, op, k)].last_unrepeated_segment_plus_1;
                if (*repeated && *remains == which + 1)
                    *repeated = 0;
                if (*repeated || *remains == which + 1)
                    continue;
                *remains = which + 1;
                more = true;
            }
        }
    }
}

op_id pass_repeat_op(struct ir *ir, uint32_t op, const buffer_id *of, uint32_t *repetition_of_op)
{
    op_id *wait = heap_alloc((size_t)ir->op.wait_count[op] + 1, sizeof *wait);
    uint16_t wait_count = 0;
    for (uint32_t k = 0; k < ir->op.wait_count[op]; k++) {
        const uint32_t target = repetition_of_op[ir->wait[ir->op.wait_begin[op] + k].i];
        if (target != IR_NONE)
            wait[wait_count++] = (op_id){target};
    }
    const op_id copy = ir_add_op_like(ir, op, PHASE_RECOMPUTE, of, wait, wait_count);
    repetition_of_op[op] = copy.i;
    free(wait);
    return copy;
}

static void repeat_op(struct recompute *r, uint32_t op)
{
    struct ir *ir = r->ir;
    buffer_id of[16];
    uint32_t reads = ir->op.read_count[op], operands = reads + ir->op.write_count[op];
    assert(operands <= ARRAY_LEN(of));
    for (uint32_t k = reads; k < operands; k++) {
        uint32_t buffer = ir_touched_buffer(ir, op, k);
        struct buffer_in_recomputation *mark = &r->mark[buffer];
        bool shared =
            mark->is_cache_read_by_several_units || (ir->buffer.flags[buffer] & BUFFER_PERSISTENT);
        /* a cache or a persistent buffer gets no second buffer, since the repetition writes the same values */
        if (mark->repeated_buffer == IR_NONE && !shared)
            mark->repeated_buffer = ir_add_buffer_like(ir, (buffer_id){buffer}).i;
    }
    for (uint32_t k = 0; k < operands; k++) {
        uint32_t buffer = ir_touched_buffer(ir, op, k), again = r->mark[buffer].repeated_buffer;
        of[k].i = again != IR_NONE ? again : buffer;
    }
    op_list_push(&r->new_list, pass_repeat_op(ir, op, of, r->repetition_of_op));
}

/* Inserts the repetition of a layer's forward before the first op of its backward, at position `begin` of the list.
 * Gradients of weights that are computed later than the rest of the backward read the same repeated buffers. */
static void repeat_forward(struct recompute *r, const struct op_list *in, uint32_t begin)
{
    struct ir *ir = r->ir;
    uint32_t which = segment_of_op(r->ir, r->layer_count, in->op[begin]);
    struct segment segment = r->segment[which];
    uint8_t *repeats = heap_zalloc(segment.end - segment.begin, 1);
    for (uint32_t i = begin; i <= segment.last_op_of_backward; i++) {
        bool own = is_in_layer_backward(ir, in->op[i]) &&
                   segment_of_op(r->ir, r->layer_count, in->op[i]) == which;
        for (uint32_t k = 0; own && k < ir->op.read_count[in->op[i]]; k++) {
            struct buffer_in_recomputation *mark = &r->mark[ir_touched_buffer(ir, in->op[i], k)];
            if (mark->origin != FROM_RANKS || mark->keeps_buffer_of_first_forward)
                mark->last_needing_segment_plus_1 = which + 1;
        }
    }
    mark_repeated_ops(r, in, which, repeats);
    unmark_ops_of_partly_remade_buffers(r, in, which, repeats);
    for (uint32_t i = segment.begin; i < segment.end; i++)
        if (repeats[i - segment.begin])
            repeat_op(r, in->op[i]);
    free(repeats);
    r->segment[which].has_repeated_forward = true;
}

/* Makes an op of a layer's backward, at position `at` of the list, read the repeated buffers; with Megatron's selective
 * recomputation only if the op belongs to attention. Repeats the layer's forward if the op is the first of the
 * backward. */
static void rewrite_backward(struct recompute *r, const struct op_list *in, uint32_t at)
{
    struct ir *ir = r->ir;
    uint32_t op = in->op[at];
    if (!r->segment[segment_of_op(r->ir, r->layer_count, op)].has_repeated_forward)
        repeat_forward(r, in, at);
    if (recomputes_attention_core(r) && ir->op.region[op] != REGION_ATTENTION)
        return;
    for (uint32_t k = 0; k < ir->op.read_count[op]; k++) {
        uint32_t again = r->mark[ir_touched_buffer(ir, op, k)].repeated_buffer;
        if (again != IR_NONE)
            ir_redirect_operand(ir, op, k, (buffer_id){again});
    }
}

/* For each lifetime extension of the first forward (e->extension) whose buffer and op are repeated, adds one of the
 * repeated buffer until the repeated op. */
static void repeat_lifetime_extensions(struct recompute *r)
{
    uint32_t count = r->e->extension_count;
    for (uint32_t i = 0; i < count; i++) {
        struct lifetime_extension hold = r->e->extension[i];
        uint32_t buffer = r->mark[hold.buffer.i].repeated_buffer,
                 until = r->repetition_of_op[hold.kept_until_op.i];
        if (buffer != IR_NONE && until != IR_NONE)
            emit_extend_lifetime(r->e, (buffer_id){buffer}, (op_id){until});
    }
}

void pass_recompute(struct emit *e, struct op_list *list)
{
    struct ir *ir = e->ir;
    uint32_t layers = (uint32_t)e->choices->model->layers;
    struct recompute r = {
        .e = e,
        .ir = ir,
        .layer_count = layers,
        .segment = heap_zalloc(layers * pipeline_unit_count(e->choices), sizeof *r.segment),
        .mark = heap_zalloc(ir->buffer.count, sizeof *r.mark),
        .repetition_of_op = ir_new_empty_ids(ir->op.count),
    };
    bool keeps = e->choices->activations == CHOICE_ACTIVATIONS_SELECTIVE ||
                 e->choices->activations == CHOICE_ACTIVATIONS_SELECTIVE_OP ||
                 e->choices->activations == CHOICE_ACTIVATIONS_SELECTIVE_OFFLOAD ||
                 recomputes_attention_core(&r);
    r.keeps_some_buffers = keeps && e->kept_buffers.count > 0;
    /* The arrays above have rows for the buffers and ops that exist now. Those that the pass adds are never looked
     * up. */
    for (uint32_t i = 0; i < ir->buffer.count; i++)
        r.mark[i].repeated_buffer = IR_NONE;
    for (uint32_t i = 0; i < e->buffers_never_recomputed.count; i++)
        r.mark[e->buffers_never_recomputed.buffer[i].i].is_cache_read_by_several_units = true;
    for (uint32_t i = 0; keeps && i < e->kept_buffers.count; i++)
        r.mark[e->kept_buffers.buffer[i].i].keeps_buffer_of_first_forward = true;
    find_segments(&r, list);
    find_attention_origin_of_buffers(&r);

    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t op = list->op[i];
        if (is_in_layer_backward(ir, op) && !layer_saves_all_activations(&r, ir->op.layer[op]))
            rewrite_backward(&r, list, i);
        op_list_push(&r.new_list, (op_id){op});
    }
    repeat_lifetime_extensions(&r);
    free(r.segment);
    free(r.mark);
    free(r.repetition_of_op);
    op_list_release(list);
    *list = r.new_list;
}

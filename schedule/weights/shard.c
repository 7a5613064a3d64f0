/* ZeRO (Rajbhandari et al., arXiv 1910.02054), HSDP and plain data parallelism as a rewriting:
 * sharded parameters are gathered before each run of ops that reads them, gradients are reduced
 * after the last op that adds to them, and the optimizer follows. Weight gradients are partial
 * over data, context and head ranks alike, so all of them share the reduction.
 *
 * At most `prefetch` + 1 gathered bundles and two unreduced gradient buffers are alive: a gather
 * waits for the end of the run whose memory it may take, and the first op that writes a gradient
 * buffer waits for the reduction of the one before the last. The part of a gradient that a later
 * micro-batch reduced is added to the kept part there, where computation waits for the reduction
 * anyway: after the reduction itself it would stop computation until that has ended. */
#include "schedule/pipeline/pipeline.h"
#include "schedule/weights/lend.h"
#include "schedule/weights/weights.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct run { /* consecutive uses of one bundle's parameters: positions in the list */
    uint32_t bundle, begin, end;
    struct lend_task task; /* where stages lend weights: one task's uses */
    uint32_t
        behind_core; /* the op behind the core of attention of a forward; begin: there is none */
    uint32_t keeps;  /* the earlier run whose gathered copy is still there, or IR_NONE */
    buffer_id gathered;
};

struct gradient { /* of one bundle, in one micro-batch or (persistent) in all */
    uint32_t bundle, first, last;
    bool is_last;  /* of its bundle's gradients to be reduced */
    bool adds;     /* others of its bundle have been reduced before */
    uint32_t lent; /* row of e->lent, or IR_NONE */
};

struct shard {
    struct emit *e;
    struct ir *ir;
    bool gathers, lends;
    struct run *run;
    uint32_t run_count, run_capacity;
    uint32_t next_gather;      /* the first run that has not been gathered for */
    struct gradient *gradient; /* in the order of their first writes */
    uint32_t gradient_count, gradient_capacity;
    uint32_t buffers;   /* those behind are neither parameters nor gradients */
    uint32_t *of_param; /* buffer -> bundle, or IR_NONE */
    uint32_t *of_grad;  /* buffer -> row of gradient, or IR_NONE */
    uint32_t *bundle_of_grad;
    uint32_t *lent_of_grad; /* buffer -> row of e->lent, or IR_NONE; NULL: stages lend no weights */
    uint8_t *marked;        /* per position: something is to be done there; of most nothing is */
    uint32_t owed[2];       /* rows of e->lent that have been summed last; IR_NONE: none */
    op_id *reduced;         /* per gradient: its reduction */
    buffer_id *to_add;      /* per gradient: this rank's part of its sum, until it has been cast or
                               added to the kept part; IR_NONE: nothing is to be done */
    uint32_t next_add;      /* gradients before it are added */
    uint32_t *reduced_of, *left; /* per bundle: gradients that are reduced, and still to be */
    op_id final;                 /* the last op so far that made a gradient final */
};

static bool continues(const struct shard *s, uint32_t bundle, struct lend_task task)
{
    if (s->run_count == 0)
        return false;
    const struct run *run = &s->run[s->run_count - 1];
    return run->bundle == bundle && run->task.chunk == task.chunk && run->task.unit == task.unit &&
           run->task.forward == task.forward;
}

static void note_read(struct shard *s, uint32_t bundle, uint32_t i, uint32_t op)
{
    struct lend_task task = {0, 0, false};
    if (s->lends && !lend_is_shared(s->e, task = lend_task_of(s->e, op)))
        return;
    if (continues(s, bundle, task)) {
        s->run[s->run_count - 1].end = i + 1;
        return;
    }
    if (s->run_count == s->run_capacity) {
        s->run_capacity = (uint32_t)heap_next_capacity(s->run_capacity, (size_t)s->run_count + 1);
        s->run = heap_realloc(s->run, s->run_capacity, sizeof *s->run);
    }
    s->run[s->run_count++] = (struct run){bundle, i, i + 1, task, i, IR_NONE, {IR_NONE}};
}

static void note_write(struct shard *s, uint32_t buffer, uint32_t bundle, uint32_t i)
{
    uint32_t row = s->of_grad[buffer];
    if (row == IR_NONE) {
        if (s->gradient_count == s->gradient_capacity) {
            s->gradient_capacity =
                (uint32_t)heap_next_capacity(s->gradient_capacity, (size_t)s->gradient_count + 1);
            s->gradient = heap_realloc(s->gradient, s->gradient_capacity, sizeof *s->gradient);
        }
        row = s->of_grad[buffer] = s->gradient_count++;
        uint32_t lent = s->lends ? s->lent_of_grad[buffer] : IR_NONE;
        s->gradient[row] = (struct gradient){bundle, i, i, false, false, lent};
        s->left[bundle] += lent == IR_NONE;
    }
    s->gradient[row].last = i;
}

/* The backward of a micro-batch has ended: frameworks wait there for its reductions (FSDP's
 * _post_backward_final_callback(), DeepSpeed's reduction epilogue), and what they reduced is free. */
static bool ends_backward(const struct shard *s, const struct program *program, uint32_t i)
{
    return s->e->choices->profile->waits_for_reductions && s->e->choices->pp == 1 && i > 0 &&
           s->ir->op.phase[program->op[i]] == PHASE_FORWARD &&
           s->ir->op.phase[program->op[i - 1]] == PHASE_BACKWARD;
}

static void survey(struct shard *s, const struct program *program)
{
    struct ir *ir = s->ir;
    for (uint32_t i = 0; i < program->count; i++) {
        uint32_t op = program->op[i];
        const uint32_t *operand = ir_operands(ir, op);
        const uint32_t *write = operand + ir->op.reads[op], *end = write + ir->op.writes[op];
        for (; operand < write; operand++) {
            uint32_t buffer = ir_buffer_of(ir, *operand);
            uint32_t bundle = buffer < s->buffers ? s->of_param[buffer] : IR_NONE;
            if (bundle == IR_NONE)
                continue;
            note_read(s, bundle, i, op);
            s->marked[i] = 1;
        }
        for (; operand < end; operand++) {
            uint32_t buffer = ir_buffer_of(ir, *operand);
            if (buffer < s->buffers && s->bundle_of_grad[buffer] != IR_NONE)
                note_write(s, buffer, s->bundle_of_grad[buffer], i);
        }
    }
    for (uint32_t i = 0; i < program->count; i++)
        if (ends_backward(s, program, i))
            s->marked[i] = 1;
    for (uint32_t row = 0; row < s->gradient_count; row++)
        s->marked[s->gradient[row].first] = s->marked[s->gradient[row].last] = 1;
}

static void set_tags(struct shard *s, const struct ir *ir, uint32_t like, enum phase phase,
                     enum region region)
{
    s->e->tags = (struct op_tags){(uint8_t)phase, (uint8_t)region, ir->op.layer[like],
                                  IR_NONE16,      IR_NONE16,       ir->op.micro[like]};
}

/* A bundle that is read again before `reuse_elements` of other bundles have been read is kept
 * (DeepSpeed's stage3_max_reuse_distance): the last layers and the head, from forward to
 * backward. */
static void find_kept(struct shard *s)
{
    const struct emit *e = s->e;
    uint64_t reach = (uint64_t)e->choices->profile->reuse_elements, read = 0;
    uint32_t *last = heap_alloc(e->bundle_count, sizeof *last); /* run of each bundle */
    uint64_t *then = heap_alloc(e->bundle_count, sizeof *then); /* elements read up to its end */
    memset(last, 0xff, e->bundle_count * sizeof *last);
    for (uint32_t r = 0; r < s->run_count; r++) {
        uint32_t b = s->run[r].bundle;
        if (last[b] != IR_NONE && read - then[b] <= reach)
            s->run[r].keeps = last[b];
        read += e->bundle[b].elements;
        last[b] = r;
        then[b] = read;
    }
    free(last);
    free(then);
}

static op_id cast(struct shard *s, buffer_id from, buffer_id to, struct program *out)
{
    struct view read = ir_whole(s->ir, from), write = ir_whole(s->ir, to);
    struct work work = {.kind = WORK_CAST, .elements = {(int64_t)read.count}};
    op_id op = emit_op(s->e, s->e->compute, &work, &read, 1, &write, 1);
    program_push(out, op);
    return op;
}

/* Gathers the parameters of a run, unless an earlier run's are kept; it may take the memory of the run
 * `prefetch` + 1 before it. */
static void gather(struct shard *s, uint32_t r, const struct program *in, struct program *out)
{
    struct emit *e = s->e;
    struct run *run = &s->run[r];
    if (run->keeps != IR_NONE) {
        run->gathered = s->run[run->keeps].gathered;
        return;
    }
    uint32_t first = in->op[run->begin], behind = e->choices->profile->prefetch + 1;
    buffer_id part = e->bundle[run->bundle].param_shard;
    set_tags(s, s->ir, first, s->ir->op.phase[first], REGION_WEIGHTS);
    if (s->lends) {
        op_id lent, kept;
        run->gathered = lend_params(e, run->task, run->bundle, &lent, &kept);
        if (run->task.chunk == e->stage)
            run->gathered.i = IR_NONE; /* it reads its own */
        if (r >= behind)
            emit_hold_back(e, lent, (op_id){in->op[s->run[r - behind].end - 1]});
        program_push(out, lent);
        if (kept.i != IR_NONE)
            program_push(out, kept);
        return;
    }
    run->gathered = ir_add_buffer_like(s->ir, e->bundle[run->bundle].param);
    if (s->ir->buffer.dtype[part.i] != e->choices->dtype) {
        buffer_id in_compute_dtype = weights_shard_buffer(
            e, run->bundle, "cast", CATEGORY_COMMUNICATION, e->choices->dtype, MEMORY_HBM);
        cast(s, part, in_compute_dtype, out);
        part = in_compute_dtype;
    }
    op_id op =
        weights_collective(e, e->gather, WORK_ALL_GATHER, e->shard_group, part, run->gathered);
    if (r >= behind)
        emit_hold_back(e, op, (op_id){in->op[s->run[r - behind].end - 1]});
    program_push(out, op);
}

/* Gathers what has not been, up to run `last`. */
static void gather_to(struct shard *s, uint32_t last, const struct program *in, struct program *out)
{
    for (; s->next_gather <= last && s->next_gather < s->run_count; s->next_gather++)
        gather(s, s->next_gather, in, out);
}

/* Before the op at position i of run r. */
static void gather_before(struct shard *s, uint32_t r, uint32_t i, const struct program *in,
                          struct program *out)
{
    const struct profile *profile = s->e->choices->profile;
    if (s->run[r].begin == i)
        gather_to(s, profile->gathers_behind_core ? r : r + profile->prefetch, in, out);
    if (s->run[r].behind_core == i)
        gather_to(s, r + profile->prefetch, in, out);
}

/* Where each run's core of attention ends, in the forward or when that is made again. */
static void find_cores(struct shard *s, const struct program *program)
{
    const struct ir *ir = s->ir;
    for (uint32_t r = 0; r < s->run_count; r++) {
        for (uint32_t i = s->run[r].begin; i + 1 < s->run[r].end; i++) {
            uint32_t op = program->op[i];
            if (ir->op.region[op] == REGION_ATTENTION && ir->op.phase[op] != PHASE_BACKWARD)
                s->run[r].behind_core = i + 1;
        }
        s->marked[s->run[r].behind_core] = 1;
    }
}

/* What a framework does on its thread between the backward and the optimizer, once a step: the norm of
 * all gradients is read there, so the device has ended, and everybody has come. */
static void between_backward_and_update(struct shard *s, struct program *out)
{
    struct emit *e = s->e;
    struct work sync = {.kind = WORK_HOST_SYNC};
    if (e->choices->profile->host_per_step_s <= 0 || e->choices->ranks == 1 ||
        s->final.i == IR_NONE)
        return;
    e->tags = (struct op_tags){PHASE_OPTIMIZER, REGION_OPTIMIZER, IR_NONE16,
                               IR_NONE16,       IR_NONE16,        IR_NONE16};
    struct work all = {.kind = WORK_BARRIER, .barrier = {ir_add_group(s->ir, "world", NULL, 0)}};
    /* on the stream of the last reduction: what is before it there has ended then */
    program_push(out, emit_op(e, s->ir->op.stream[s->final.i], &sync, NULL, 0, NULL, 0));
    program_push(out, emit_op(e, e->compute, &all, NULL, 0, NULL, 0));
}

static buffer_id whole_grad(const struct shard *s, uint32_t op, uint32_t row)
{
    for (uint32_t k = s->ir->op.reads[op];; k++) {
        uint32_t buffer = program_operand(s->ir, op, k);
        if (buffer < s->buffers && s->of_grad[buffer] == row)
            return (buffer_id){buffer};
    }
}

/* What is only of one micro-batch, or of one shared unit, is cut into parts when it is summed. */
static bool scatters_each(const struct shard *s, uint32_t row)
{
    const struct choices *c = s->e->choices;
    return s->gradient[row].lent != IR_NONE
               ? pipeline_shards_weights(c)
               : weights_reduce_each_micro_batch(c) && s->e->shard_size > 1;
}

/* A buffer for it is there when the sum of the one before the last has been made. */
static bool waits_for_sums(const struct shard *s, uint32_t row)
{
    return s->gradient[row].lent != IR_NONE ? pipeline_shards_weights(s->e->choices)
                                            : weights_reduce_each_micro_batch(s->e->choices);
}

/* The padding of such a buffer is written by nobody else. */
static void fill_padding(struct shard *s, uint32_t row, uint32_t op, struct program *out)
{
    const struct bundle_state *bundle = &s->e->bundle[s->gradient[row].bundle];
    if (!scatters_each(s, row) || bundle->elements == bundle->used)
        return;
    set_tags(s, s->ir, op, PHASE_BACKWARD, REGION_WEIGHTS);
    struct work work = {.kind = WORK_FILL,
                        .elements = {(int64_t)(bundle->elements - bundle->used)}};
    struct view padding = {whole_grad(s, op, row), bundle->used, bundle->elements - bundle->used};
    program_push(out, emit_op(s->e, s->e->compute, &work, NULL, 0, &padding, 1));
}

/* The sum over the tensor ranks of `count` elements of a gradient from `begin` on. */
static void sum_over_tensor_ranks(struct shard *s, uint32_t row, uint16_t group, buffer_id grad,
                                  uint64_t begin, uint64_t count, struct program *out)
{
    struct emit *e = s->e;
    struct view part = {grad, begin, count};
    struct work work = {.kind = WORK_ALL_REDUCE};
    if (count == 0 || group == IR_NONE16)
        return;
    work.all_reduce.group = group;
    work.all_reduce.bytes = (int64_t)(count * dtype_bytes(e->grad_dtype));
    s->reduced[row] = emit_op(e, e->reduce, &work, &part, 1, &part, 1);
    program_push(out, s->reduced[row]);
}

/* What tensor ranks hold whole has gradients of each rank's own tokens (norms, biases behind a
 * scatter), of its own heads (norms of heads), or of the queries of its own key and value heads where
 * these are copied. */
static void reduce_tensor(struct shard *s, uint32_t row, buffer_id grad, struct program *out)
{
    const struct emit *e = s->e;
    static const enum weight projections[] = {WEIGHT_QKV, WEIGHT_QKV_BIAS};
    uint32_t layers = (uint32_t)e->whole->layers, parts = part_count(e);
    for (uint32_t p = 0; p < parts; p++) {
        const struct part *part = &e->part[p];
        if (part->bundle != s->gradient[row].bundle)
            continue;
        for (size_t i = 0; p < layers && i < ARRAY_LEN(projections); i++) {
            const struct weight_slot *slot = &e->slot[projections[i]];
            int64_t q = transformer_q_width(e->choices->model);
            if (slot->rows > 0)
                sum_over_tensor_ranks(s, row, e->tensor.copy_group, grad,
                                      part->base + slot->offset + (uint64_t)(q * slot->cols),
                                      (uint64_t)((slot->rows - q) * slot->cols), out);
        }
        sum_over_tensor_ranks(s, row, e->tensor.group, grad, part->base + part->whole_begin,
                              part->whole_count, out);
    }
}

/* The sum of a bundle's last gradient over the ranks that hold equal shards. */
static void sum_over_replicas(struct shard *s, uint32_t row, buffer_id part, struct program *out)
{
    struct emit *e = s->e;
    if (e->replica_size == 1 || !s->gradient[row].is_last)
        return;
    s->reduced[row] =
        weights_collective(e, e->reduce, WORK_ALL_REDUCE, e->replica_group, part, part);
    s->final = s->reduced[row];
    program_push(out, s->final);
}

/* Looks through a whole gradient for what is no number. */
static void look_through(struct shard *s, buffer_id grad, struct program *out)
{
    struct emit *e = s->e;
    buffer_id squares = emit_buffer(e, "squares", CATEGORY_WORKSPACE, DTYPE_F32, 1, 0);
    struct view all = ir_whole(s->ir, grad), sum = ir_whole(s->ir, squares);
    struct work work = {.kind = WORK_SQUARE_SUM, .square_sum = {(int64_t)all.count, false, 0}};
    program_push(out, emit_op(e, e->compute, &work, &all, 1, &sum, 1));
}

/* PyTorch's FSDP1 concatenates the gradients of a unit's parameters in 16 bits (4 bytes an element),
 * casts them to fp32 (6) and divides these in place (8), where here products write fp32 at once (2
 * less): as many bytes as a copy in fp32 and back. Its stream of its own computes on the
 * multiprocessors of the backward, so the passes stand between the backward's ops. */
static void flatten(struct shard *s, buffer_id grad, struct program *out)
{
    buffer_id flat = emit_buffer(s->e, "flat", CATEGORY_GRADIENT, s->e->grad_dtype,
                                 (int64_t)ir_buffer_elements(s->ir, grad), 0);
    cast(s, grad, flat, out);
    cast(s, flat, grad, out);
}

/* Whether gradients are reduced in fp32 although they are kept in 16 bits. DeepSpeed does so where ranks
 * share a sequence (runtime/engine.py: communication_data_type = seq_parallel_communication_data_type). */
static bool reduces_wide(const struct emit *e)
{
    const struct choices *c = e->choices;
    return c->profile->reduces_f32 && c->cp * c->hp > 1 && e->grad_dtype != DTYPE_F32;
}

static buffer_id widen(struct shard *s, buffer_id grad, struct program *out)
{
    buffer_id wide = emit_buffer(s->e, "wide", CATEGORY_GRADIENT, DTYPE_F32,
                                 (int64_t)ir_buffer_elements(s->ir, grad), 0);
    cast(s, grad, wide, out);
    return wide;
}

/* InternLM flattens a bucket of whole gradients, divides the flat tensor, sums it on all ranks and copies the
 * parts back. Here the copies come before the sum, and the division in place is one more copy there. Returns
 * the flat tensor. */
static buffer_id flatten_bucket(struct shard *s, buffer_id grad, struct program *out)
{
    struct emit *e = s->e;
    struct view all = ir_whole(s->ir, grad);
    buffer_id flat =
        emit_buffer(e, "flat", CATEGORY_GRADIENT, e->grad_dtype, (int64_t)all.count, 0);
    struct view copy = view_all(e, flat);
    struct work work = {.kind = WORK_CAST, .elements = {(int64_t)all.count, 0}};
    for (uint8_t i = 0; i + 1 < e->choices->profile->bucket_passes; i++)
        program_push(out, emit_op(e, e->compute, &work, &all, 1, &copy, 1));
    program_push(out, emit_op(e, e->compute, &work, &copy, 1, &all, 1));
    return flat;
}

/* Reduces a gradient whose last part has been added to it. */
static void reduce(struct shard *s, uint32_t row, uint32_t op, struct program *out)
{
    struct emit *e = s->e;
    struct gradient *gradient = &s->gradient[row];
    struct bundle_state *bundle = &e->bundle[gradient->bundle];
    buffer_id grad = whole_grad(s, op, row), part = grad;
    bool wide = reduces_wide(e);
    gradient->adds = s->reduced_of[gradient->bundle]++ > 0;
    gradient->is_last = --s->left[gradient->bundle] == 0;
    set_tags(s, s->ir, op, PHASE_BACKWARD, REGION_WEIGHTS);
    s->reduced[row].i = IR_NONE;
    if (weights_pass_over_gradients(e->choices))
        look_through(s, grad, out);
    if (e->choices->profile->flattens_gradients && e->shard_size > 1 &&
        weights_reduce_each_micro_batch(e->choices))
        flatten(s, grad, out);
    buffer_id flat = {IR_NONE};
    bool once = !weights_reduce_each_micro_batch(e->choices);
    if (e->choices->profile->bucket_passes > 0 && once && e->shard_size * e->replica_size > 1)
        flat = flatten_bucket(s, grad, out);
    reduce_tensor(s, row, grad, out);
    if (e->shard_size > 1) {
        part = bundle->grad_shard;
        buffer_id target = part, whole = wide ? widen(s, grad, out) : grad;
        if (wide || gradient->adds)
            target = s->to_add[row] =
                weights_shard_buffer(e, gradient->bundle, "reduced", CATEGORY_GRADIENT,
                                     wide ? DTYPE_F32 : (enum dtype)e->grad_dtype, MEMORY_HBM);
        s->reduced[row] =
            weights_collective(e, e->reduce, WORK_REDUCE_SCATTER, e->shard_group, whole, target);
        program_push(out, s->reduced[row]);
        if (e->choices->profile->all_reduces &&
            flat.i != IR_NONE) { /* the second half of a ring's */
            s->reduced[row] =
                weights_collective(e, e->reduce, WORK_ALL_GATHER, e->shard_group, target, flat);
            program_push(out, s->reduced[row]);
        }
    }
    if (s->to_add[row].i == IR_NONE)
        sum_over_replicas(s, row, part, out);
}

/* The reduced part of a gradient in the dtype in which gradients are kept: in the kept part itself, where
 * nothing else has been reduced. */
static buffer_id narrow(struct shard *s, uint32_t row, buffer_id kept, struct program *out)
{
    struct emit *e = s->e;
    const struct gradient *gradient = &s->gradient[row];
    buffer_id part = s->to_add[row], to = kept;
    if (s->ir->buffer.dtype[part.i] == e->grad_dtype)
        return part;
    if (gradient->adds)
        to = weights_shard_buffer(e, gradient->bundle, "narrowed", CATEGORY_GRADIENT, e->grad_dtype,
                                  MEMORY_HBM);
    s->final = cast(s, part, to, out);
    return to;
}

/* Casts and adds the reduced parts of gradients before row `end` whose last part has been added before
 * position i. That of a tied embedding comes first and ends last, and holds up no other. */
static void add_reduced(struct shard *s, uint32_t end, uint32_t i, struct program *out)
{
    struct emit *e = s->e;
    while (s->next_add < end && s->to_add[s->next_add].i == IR_NONE &&
           (e->shard_size == 1 || s->reduced[s->next_add].i != IR_NONE))
        s->next_add++;
    for (uint32_t row = s->next_add; row < end; row++) {
        if (s->to_add[row].i == IR_NONE || s->gradient[row].last >= i)
            continue;
        buffer_id kept = e->bundle[s->gradient[row].bundle].grad_shard;
        set_tags(s, s->ir, s->reduced[row].i, PHASE_BACKWARD, REGION_WEIGHTS);
        buffer_id part = narrow(s, row, kept, out);
        if (part.i != kept.i) {
            struct view read[2] = {ir_whole(s->ir, part), ir_whole(s->ir, kept)};
            struct work work = {.kind = WORK_ADD, .elements = {(int64_t)read[1].count}};
            s->final = emit_op(e, e->compute, &work, read, 2, &read[1], 1);
            program_push(out, s->final);
        }
        s->to_add[row].i = IR_NONE;
        sum_over_replicas(s, row, kept, out);
    }
}

/* What the first and the last stage have of a tied embedding is one gradient. Only when all else is
 * reduced, since the two are done with theirs at very different times. */
static void reduce_ends(struct shard *s, struct program *out)
{
    struct emit *e = s->e;
    for (uint32_t b = 0; b < e->bundle_count; b++) {
        struct bundle_state *bundle = &e->bundle[b];
        if (!bundle->at_both_ends || bundle->borrowed)
            continue;
        add_reduced(s, s->gradient_count, IR_NONE, out);
        buffer_id grad = bundle->grad_shard.i != IR_NONE ? bundle->grad_shard : bundle->grad;
        e->tags = (struct op_tags){PHASE_BACKWARD, REGION_WEIGHTS, IR_NONE16,
                                   IR_NONE16,      IR_NONE16,      IR_NONE16};
        s->final = weights_collective(e, e->reduce, WORK_ALL_REDUCE, e->ends_group, grad, grad);
        program_push(out, s->final);
    }
}

/* What has been summed is added to the stage's own gradient, once computation need not wait for it. */
static void settle(struct shard *s, uint32_t k, struct program *out)
{
    if (s->owed[k] == IR_NONE)
        return;
    const struct lent *lent = &s->e->lent[s->owed[k]];
    if (lent->sum.i != IR_NONE)
        program_push(out, lend_add(s->e, lent));
    s->owed[k] = IR_NONE;
}

/* A shared unit's gradient is there: it is summed over the unit's stages. */
static void give_back(struct shard *s, uint32_t row, uint32_t op, struct program *out)
{
    set_tags(s, s->ir, op, PHASE_BACKWARD, REGION_WEIGHTS);
    settle(s, 0, out);
    s->owed[0] = s->owed[1];
    s->owed[1] = s->gradient[row].lent;
    s->reduced[row] = lend_sum(s->e, &s->e->lent[s->owed[1]]);
    program_push(out, s->reduced[row]);
}

/* The last op that adds to the stage's own gradient by itself; IR_NONE: there is none. */
static op_id last_alone(const struct shard *s, const struct program *program)
{
    uint32_t last = 0;
    for (uint32_t row = 0; row < s->gradient_count; row++)
        if (s->gradient[row].lent == IR_NONE && s->gradient[row].last > last)
            last = s->gradient[row].last;
    return (op_id){last > 0 ? program->op[last] : IR_NONE};
}

/* Gradients of shared units that the op at position i was the last to add to. */
static void give_back_finished(struct shard *s, uint32_t i, uint32_t op, struct program *out)
{
    uint32_t reads = s->ir->op.reads[op], operands = reads + s->ir->op.writes[op];
    for (uint32_t k = reads; k < operands; k++) {
        uint32_t buffer = program_operand(s->ir, op, k);
        uint32_t row = buffer < s->buffers ? s->of_grad[buffer] : IR_NONE;
        if (row != IR_NONE && s->gradient[row].lent != IR_NONE && s->gradient[row].last == i) {
            give_back(s, row, op, out);
            return; /* an op adds to one bundle */
        }
    }
}

/* Reduces what the op at position i was the last to add to; it may write several parts of it. */
static void reduce_finished(struct shard *s, uint32_t i, uint32_t op, struct program *out)
{
    const struct ir *ir = s->ir;
    uint32_t reads = ir->op.reads[op], operands = reads + ir->op.writes[op], done = IR_NONE;
    for (uint32_t k = reads; k < operands; k++) {
        uint32_t buffer = program_operand(ir, op, k);
        uint32_t row = buffer < s->buffers ? s->of_grad[buffer] : IR_NONE;
        if (row == IR_NONE || row == done || s->gradient[row].last != i)
            continue;
        reduce(s, row, op, out);
        s->final.i = out->op[out->count - 1];
        done = row;
    }
}

/* Where stages share subsequences they use weights in different orders, and add to gradients until the
 * end, so all reduce and update in that of the bundles. */
static bool in_order_of_bundles(const struct shard *s)
{
    return pipeline_of(s->e->choices)->multiplexed;
}

/* The last op of the compute stream among the first `count`. */
static op_id last_computed(const struct shard *s, const struct program *out, uint32_t count)
{
    while (count > 0 && s->ir->op.stream[out->op[count - 1]] != s->e->compute)
        count--;
    return (op_id){count > 0 ? out->op[count - 1] : IR_NONE};
}

/* Whether no reduction starts before all of the backward has ended. */
static bool reduces_at_end(const struct shard *s)
{
    const struct choices *c = s->e->choices;
    return in_order_of_bundles(s) ||
           (c->profile->reduce_at_end && !weights_reduce_each_micro_batch(c) && !s->lends);
}

static void reduce_in_order(struct shard *s, const struct program *program, struct program *out)
{
    uint32_t begin = out->count;
    for (uint32_t b = 0; b < s->e->bundle_count; b++)
        for (uint32_t row = 0; row < s->gradient_count; row++)
            if (s->gradient[row].bundle == b && s->gradient[row].lent == IR_NONE) {
                reduce(s, row, program->op[s->gradient[row].last], out);
                s->final.i = out->op[out->count - 1];
            }
    if (!in_order_of_bundles(s) && begin > 0 && out->count > begin)
        emit_hold_back(s->e, (op_id){out->op[begin]}, last_computed(s, out, begin));
}

static uint32_t *none_filled(uint32_t count)
{
    uint32_t *array = heap_alloc(count, sizeof *array);
    memset(array, 0xff, count * sizeof *array);
    return array;
}

static void redirect(struct shard *s, uint32_t op, const struct run *run)
{
    uint32_t param = s->e->bundle[run->bundle].param.i;
    for (uint32_t k = 0; k < s->ir->op.reads[op]; k++)
        if (program_operand(s->ir, op, k) == param)
            program_redirect(s->ir, op, k, run->gathered);
}

/* The gradients that are kept, in the order in which they become final: a bundle's last one, those of a
 * tied embedding at both ends after all others. Returns how many. */
static uint32_t final_rows(const struct shard *s, uint32_t *final)
{
    uint32_t count = 0;
    for (int at_both_ends = 0; at_both_ends < 2; at_both_ends++)
        for (uint32_t row = 0; row < s->gradient_count; row++)
            if (s->gradient[row].is_last &&
                s->e->bundle[s->gradient[row].bundle].at_both_ends == at_both_ends)
                final[count++] = row;
    return count;
}

/* Clips and updates. Where nothing needs all gradients, a bundle is updated while others are being
 * reduced. */
static void finish_step(struct shard *s, struct program *out)
{
    struct emit *e = s->e;
    bool in_order = in_order_of_bundles(s), clips = weights_clip_gradients(e->choices);
    uint32_t *bundle = heap_alloc(e->bundle_count + 1, sizeof *bundle), count = 0;
    uint32_t *row = heap_alloc(e->bundle_count + 1, sizeof *row);
    uint32_t reduced = out->count, rows = in_order ? 0 : final_rows(s, row);
    for (uint32_t b = 0; in_order && b < e->bundle_count; b++)
        if (!e->bundle[b].borrowed)
            bundle[count++] = b;
    for (uint32_t i = 0; i < rows; i++)
        bundle[count++] = s->gradient[row[i]].bundle;
    for (uint32_t i = 0; i < rows && !clips; i++) {
        add_reduced(s, row[i] + 1, IR_NONE, out);
        weights_update(e, &bundle[i], 1, out);
    }
    if (in_order || clips)
        weights_update(e, bundle, count, out);
    /* the first of them is the first of its stream, so that all the others follow */
    if (clips && out->count > reduced)
        emit_hold_back(e, (op_id){out->op[reduced]}, s->final);
    free(row);
    free(bundle);
}

/* How many buffers there are up to the last one that is a parameter or a gradient. */
static uint32_t buffers_of_weights(const struct emit *e)
{
    uint32_t count = 0;
    for (uint32_t b = 0; b < e->bundle_count; b++)
        if (e->bundle[b].param.i != IR_NONE && e->bundle[b].param.i >= count)
            count = e->bundle[b].param.i + 1;
    for (uint32_t i = 0; i < e->grad_buffer_count; i++)
        if (e->grad_buffer[i].i != IR_NONE && e->grad_buffer[i].i >= count)
            count = e->grad_buffer[i].i + 1;
    for (uint32_t i = 0; i < e->lent_count; i++)
        if (e->lent[i].buffer.i >= count)
            count = e->lent[i].buffer.i + 1;
    return count;
}

void pass_weights(struct emit *e, struct program *program)
{
    struct ir *ir = e->ir;
    struct shard s = {
        .e = e,
        .ir = ir,
        .gathers = weights_sharded_params(e->choices) && e->shard_size > 1,
        .lends = pipeline_lends_weights(e->choices),
        .owed = {IR_NONE, IR_NONE},
    };
    if (s.lends)
        lend_end(e);
    s.buffers = buffers_of_weights(e);
    s.of_param = none_filled(s.buffers);
    s.of_grad = none_filled(s.buffers);
    s.bundle_of_grad = none_filled(s.buffers);
    for (uint32_t b = 0; (s.gathers || s.lends) && b < e->bundle_count; b++)
        s.of_param[e->bundle[b].param.i] = b;
    for (uint32_t i = 0; i < e->grad_buffer_count; i++)
        if (e->grad_buffer[i].i != IR_NONE)
            s.bundle_of_grad[e->grad_buffer[i].i] = i % e->bundle_count;
    if (s.lends)
        s.lent_of_grad = none_filled(s.buffers);
    for (uint32_t i = 0; i < e->lent_count; i++) {
        s.bundle_of_grad[e->lent[i].buffer.i] = e->lent[i].bundle;
        s.lent_of_grad[e->lent[i].buffer.i] = i;
    }
    s.marked = heap_zalloc(program->count, sizeof *s.marked);
    s.left = heap_zalloc(e->bundle_count, sizeof *s.left);
    s.reduced_of = heap_zalloc(e->bundle_count, sizeof *s.reduced_of);
    survey(&s, program);
    find_cores(&s, program);
    if (e->choices->profile->reuse_elements > 0 && !s.lends)
        find_kept(&s);
    s.reduced = heap_alloc(s.gradient_count, sizeof *s.reduced);
    memset(s.reduced, 0xff, s.gradient_count * sizeof *s.reduced); /* IR_NONE */
    s.to_add = heap_alloc(s.gradient_count, sizeof *s.to_add);
    memset(s.to_add, 0xff, s.gradient_count * sizeof *s.to_add);

    struct program out = {0};
    uint32_t r = 0, next = 0; /* the run and the gradient to come */
    uint32_t listed = program->count;
    for (uint32_t i = 0; i < listed; i++) {
        uint32_t unmarked = i;
        while (i < listed && !s.marked[i])
            i++;
        program_push_all(&out, program->op + unmarked, i - unmarked);
        if (i == listed)
            break;
        uint32_t op = program->op[i];
        while (r < s.run_count && s.run[r].end <= i)
            r++;
        if (r < s.run_count && s.run[r].begin <= i)
            gather_before(&s, r, i, program, &out);
        if (r < s.run_count && s.run[r].begin <= i && s.run[r].gathered.i != IR_NONE)
            redirect(&s, op, &s.run[r]);
        if (ends_backward(&s, program, i))
            add_reduced(&s, s.gradient_count, i, &out);
        for (; next < s.gradient_count && s.gradient[next].first == i; next++) {
            if (next >= 2)
                add_reduced(&s, next - 1, i, &out);
            fill_padding(&s, next, op, &out);
            if (next >= 2 && s.gradient[next - 2].last < i && s.reduced[next - 2].i != IR_NONE &&
                waits_for_sums(&s, next))
                emit_hold_back(e, (op_id){op}, s.reduced[next - 2]);
        }
        program_push(&out, (op_id){op});
        if (!reduces_at_end(&s))
            reduce_finished(&s, i, op, &out);
        if (s.lends)
            give_back_finished(&s, i, op, &out);
    }
    for (uint32_t k = 0; k < 2; k++)
        settle(&s, k, &out);
    if (pipeline_shards_weights(e->choices))
        lend_return(e, last_alone(&s, program), &out);
    if (reduces_at_end(&s))
        reduce_in_order(&s, program, &out);
    reduce_ends(&s, &out);
    if (weights_clip_gradients(e->choices) || e->choices->profile->host_per_step_s > 0 ||
        e->choices->scope != SCOPE_STEP)
        add_reduced(&s, s.gradient_count, IR_NONE, &out);
    between_backward_and_update(&s, &out);
    if (e->choices->scope == SCOPE_STEP)
        finish_step(&s, &out);
    free(s.run);
    free(s.gradient);
    free(s.of_param);
    free(s.of_grad);
    free(s.bundle_of_grad);
    free(s.lent_of_grad);
    free(s.left);
    free(s.reduced_of);
    free(s.reduced);
    free(s.to_add);
    free(s.marked);
    program_release(program);
    *program = out;
}

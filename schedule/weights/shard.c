/* ZeRO (Rajbhandari et al., arXiv 1910.02054), HSDP and plain data parallelism as a rewriting of the list: sharded
 * parameters are gathered before each run of ops that reads them, gradients are reduced after the last op that adds
 * to them, and the optimizer follows. Weight gradients are partial over data, context and head ranks alike, so one
 * reduction covers all of these.
 *
 * At most `prefetch` + 1 gathered bundles and two unreduced gradient buffers are live: a gather waits for the end of
 * the run whose memory it may take, and the first op that writes a gradient buffer waits for the reduction before the
 * previous one. In a later micro-batch, the reduced part of a gradient is added to the kept part at that point, where
 * computation waits for the reduction anyway; directly after the reduction, the addition would stall computation
 * until the reduction has ended. */
#include "schedule/weights/shard.h"
#include "schedule/choices/profile.h"
#include "schedule/config/derived.h"
#include "schedule/pipeline/pipeline.h"
#include "schedule/weights/bundles.h"
#include "schedule/weights/weights.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Returns `count` elements of ids, all of them IR_NONE. */
static void *none_filled(uint32_t count, size_t size)
{
    return memset(heap_alloc(count, size), 0xff, count * size);
}

static bool continues(const struct shard *s, uint32_t bundle, struct remote_task task)
{
    if (s->run_count == 0)
        return false;
    const struct use_run *run = &s->run[s->run_count - 1];
    return run->bundle == bundle && run->task.chunk == task.chunk && run->task.unit == task.unit &&
           run->task.forward == task.forward;
}

static void note_read(struct shard *s, uint32_t bundle, uint32_t i, uint32_t op)
{
    struct remote_task task = {0, 0, false};
    if (s->remote_weights && !remote_is_shared(s->e, task = remote_task_of(s->e, op)))
        return;
    if (continues(s, bundle, task)) {
        s->run[s->run_count - 1].end = i + 1;
        return;
    }
    s->run = heap_grow(s->run, &s->run_capacity, s->run_count + 1u, sizeof *s->run);
    s->run[s->run_count++] =
        (struct use_run){bundle, i, i + 1, task, i, IR_NONE, {IR_NONE}, {IR_NONE}};
}

static void note_write(struct shard *s, uint32_t buffer, uint32_t bundle, uint32_t i)
{
    uint32_t row = s->of_grad[buffer];
    if (row == IR_NONE) {
        s->gradient = heap_grow(s->gradient, &s->gradient_capacity, s->gradient_count + 1u,
                                sizeof *s->gradient);
        row = s->of_grad[buffer] = s->gradient_count++;
        uint32_t remote = s->remote_weights ? s->remote_grad_of[buffer] : IR_NONE;
        s->gradient[row] = (struct gradient){bundle, i, i, false, false, remote};
        s->left[bundle] += remote == IR_NONE;
    }
    s->gradient[row].last = i;
}

/* True if the backward of a micro-batch has ended at position i. Frameworks wait there for its reductions (FSDP's
 * _post_backward_final_callback(), DeepSpeed's reduction epilogue), so the unreduced gradients are free. */
static bool ends_backward(const struct shard *s, const struct op_list *list, uint32_t i)
{
    return s->e->choices->profile->waits_for_reductions && s->e->choices->pp == 1 && i > 0 &&
           s->ir->op.phase[list->op[i]] == PHASE_FORWARD &&
           s->ir->op.phase[list->op[i - 1]] == PHASE_BACKWARD;
}

static void find_uses(struct shard *s, const struct op_list *list)
{
    struct ir *ir = s->ir;
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t op = list->op[i];
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
    for (uint32_t i = 0; i < list->count; i++)
        if (ends_backward(s, list, i))
            s->marked[i] = 1;
    for (uint32_t row = 0; row < s->gradient_count; row++)
        s->marked[s->gradient[row].first] = s->marked[s->gradient[row].last] = 1;
    for (uint32_t row = 0; row < s->gradient_count && s->e->choices->profile->collectives_hold;
         row++)
        if (s->gradient[row].last + 1 < list->count)
            s->marked[s->gradient[row].last + 1] = 1; /* the op that waits for the reduction */
}

void shard_set_tags(struct shard *s, const struct ir *ir, uint32_t like, enum phase phase,
                    enum region region)
{
    s->e->tags = (struct op_tags){(uint8_t)phase, (uint8_t)region, ir->op.layer[like],
                                  IR_NONE16,      IR_NONE16,       ir->op.micro[like]};
}

/* True if two runs use the bundle of embedding and head in one micro-batch: FSDP's root stays gathered in between. */
static bool shares_root(const struct shard *s, const struct op_list *list, uint32_t before,
                        uint32_t r)
{
    const struct use_run *a = &s->run[before], *b = &s->run[r];
    return weights_root_unit(s->e->choices) &&
           b->bundle == s->e->weights.part[part_embedding(s->e)].bundle &&
           s->ir->op.micro[list->op[a->begin]] == s->ir->op.micro[list->op[b->begin]];
}

/* Finds the runs that use the gathered copy of an earlier run: a bundle stays gathered if it is read again before
 * `reuse_elements` elements of other bundles have been read (DeepSpeed's stage3_max_reuse_distance). This concerns
 * the last layers and the head, between forward and backward. FSDP's root stays gathered for a micro-batch. */
static void find_kept(struct shard *s, const struct op_list *list)
{
    const struct emit *e = s->e;
    uint64_t reach = (uint64_t)e->choices->profile->reuse_elements, read = 0;
    uint32_t *last = none_filled(e->weights.bundle_count, sizeof *last); /* run of each bundle */
    uint64_t *then =
        heap_alloc(e->weights.bundle_count, sizeof *then); /* elements read up to its end */
    for (uint32_t r = 0; r < s->run_count; r++) {
        uint32_t b = s->run[r].bundle;
        if (last[b] != IR_NONE &&
            ((reach > 0 && read - then[b] <= reach) || shares_root(s, list, last[b], r)))
            s->run[r].keeps = last[b];
        read += e->weights.bundle[b].elements;
        last[b] = r;
        then[b] = read;
    }
    free(last);
    free(then);
}

op_id shard_cast(struct shard *s, buffer_id from, buffer_id to, struct op_list *out)
{
    struct view read = ir_whole(s->ir, from), write = ir_whole(s->ir, to);
    struct work work = {.kind = WORK_CAST, .elements = {(int64_t)read.count}};
    op_id op = emit_op(s->e, s->e->stream.compute, &work, &read, 1, &write, 1);
    op_list_push(out, op);
    return op;
}

/* Gathers the parameters of a run, unless those of an earlier run are still gathered; the gather may reuse the
 * memory of the run `prefetch` + 1 before it. With the profile's switch collectives_hold it waits for the op before the
 * run. */
static void gather(struct shard *s, uint32_t r, const struct op_list *in, struct op_list *out)
{
    struct emit *e = s->e;
    struct use_run *run = &s->run[r];
    if (run->keeps != IR_NONE) {
        run->gathered = s->run[run->keeps].gathered;
        return;
    }
    uint32_t first = in->op[run->begin], behind = e->choices->profile->prefetch + 1;
    buffer_id part = e->weights.bundle[run->bundle].param_shard;
    shard_set_tags(s, s->ir, first, s->ir->op.phase[first], REGION_WEIGHTS);
    if (s->remote_weights) {
        op_id remote_grad, kept;
        run->gathered = remote_params(e, run->task, run->bundle, &remote_grad, &kept);
        if (run->task.chunk == e->stage)
            run->gathered.i = IR_NONE; /* it reads its own */
        if (r >= behind)
            emit_add_dependency(e, remote_grad, (op_id){in->op[s->run[r - behind].end - 1]});
        op_list_push(out, remote_grad);
        if (kept.i != IR_NONE)
            op_list_push(out, kept);
        return;
    }
    run->gathered = ir_add_buffer_like(s->ir, e->weights.bundle[run->bundle].param);
    if (s->ir->buffer.dtype[part.i] != e->choices->dtype) {
        buffer_id in_compute_dtype = weights_shard_buffer(
            e, run->bundle, "cast", CATEGORY_COMMUNICATION, e->choices->dtype, MEMORY_HBM);
        shard_cast(s, part, in_compute_dtype, out);
        part = in_compute_dtype;
    }
    buffer_id to = run->gathered;
    if (e->choices->profile->gather_copies)
        to = run->flat = ir_add_buffer_like(s->ir, run->gathered);
    op_id op = weights_collective(e, e->stream.gather, WORK_ALL_GATHER, e->group.shard, part, to);
    if (e->choices->profile->collectives_hold && run->begin > 0)
        emit_add_dependency(e, op, (op_id){in->op[run->begin - 1]});
    else if (r >= behind)
        emit_add_dependency(e, op, (op_id){in->op[s->run[r - behind].end - 1]});
    op_list_push(out, op);
}

/* Copies the parameters of a run out of the buffer that they were gathered into. In the forward that buffer lives until
 * the next run's copy, so that the copy and the next gather may overlap (FSDPParamGroup.wait_for_unshard()). */
static void copy_out(struct shard *s, uint32_t r, uint32_t i, const struct op_list *in,
                     struct op_list *out)
{
    struct use_run *run = &s->run[r];
    if (run->flat.i == IR_NONE || run->begin != i)
        return;
    enum phase phase = (enum phase)s->ir->op.phase[in->op[i]];
    struct view from = ir_whole(s->ir, run->flat), to = ir_whole(s->ir, run->gathered);
    struct work work = {.kind = WORK_PACK, .pack = {(int64_t)from.count, 1, {1, 0, 0}}};
    shard_set_tags(s, s->ir, in->op[i], phase, REGION_WEIGHTS);
    op_id op = emit_op(s->e, s->e->stream.compute, &work, &from, 1, &to, 1);
    op_list_push(out, op);
    if (phase == PHASE_FORWARD && s->held.i != IR_NONE)
        emit_extend_lifetime(s->e, s->held, op);
    s->held = phase == PHASE_FORWARD ? run->flat : (buffer_id){IR_NONE};
}

/* Gathers for all runs up to `last` for which that has not been done. */
static void gather_to(struct shard *s, uint32_t last, const struct op_list *in, struct op_list *out)
{
    for (; s->next_gather <= last && s->next_gather < s->run_count; s->next_gather++)
        gather(s, s->next_gather, in, out);
}

/* Gathers what is due before the op at position i of run r. */
static void gather_before(struct shard *s, uint32_t r, uint32_t i, const struct op_list *in,
                          struct op_list *out)
{
    const struct profile *profile = s->e->choices->profile;
    if (s->run[r].begin == i)
        gather_to(s, profile->gathers_after_core ? r : r + profile->prefetch, in, out);
    if (s->run[r].after_core == i)
        gather_to(s, r + profile->prefetch, in, out);
}

/* Finds where each run's core of attention ends, in the forward or in its recomputation. */
static void find_cores(struct shard *s, const struct op_list *list)
{
    const struct ir *ir = s->ir;
    for (uint32_t r = 0; r < s->run_count; r++) {
        for (uint32_t i = s->run[r].begin; i + 1 < s->run[r].end; i++) {
            uint32_t op = list->op[i];
            if (ir->op.region[op] == REGION_ATTENTION && ir->op.phase[op] != PHASE_BACKWARD)
                s->run[r].after_core = i + 1;
        }
        s->marked[s->run[r].after_core] = 1;
    }
}

static void redirect(struct shard *s, uint32_t op, const struct use_run *run)
{
    uint32_t param = s->e->weights.bundle[run->bundle].param.i;
    for (uint32_t k = 0; k < s->ir->op.reads[op]; k++)
        if (ir_touched(s->ir, op, k) == param)
            op_list_redirect(s->ir, op, k, run->gathered);
}

/* Fills final with the last gradient row of each bundle, in the order in which the rows become final: that of a tied
 * embedding, which two stages hold, comes after all others. Returns their number. */
static uint32_t final_rows(const struct shard *s, uint32_t *final)
{
    uint32_t count = 0;
    for (int at_both_ends = 0; at_both_ends < 2; at_both_ends++)
        for (uint32_t row = 0; row < s->gradient_count; row++)
            if (s->gradient[row].is_last &&
                s->e->weights.bundle[s->gradient[row].bundle].at_both_ends == at_both_ends)
                final[count++] = row;
    return count;
}

/* Emits the clipping of gradients and the updates of parameters. If no op needs the gradients of all bundles, a
 * bundle is updated while others are being reduced. */
static void finish_step(struct shard *s, struct op_list *out)
{
    struct emit *e = s->e;
    bool in_order = shard_in_order(s), clips = weights_clip_gradients(e->choices);
    uint32_t *bundle = heap_alloc(e->weights.bundle_count + 1, sizeof *bundle), count = 0;
    uint32_t *row = heap_alloc(e->weights.bundle_count + 1, sizeof *row);
    uint32_t reduced = out->count, rows = in_order ? 0 : final_rows(s, row);
    for (uint32_t b = 0; in_order && b < e->weights.bundle_count; b++)
        if (!e->weights.bundle[b].borrowed)
            bundle[count++] = b;
    for (uint32_t i = 0; i < rows; i++)
        bundle[count++] = s->gradient[row[i]].bundle;
    for (uint32_t i = 0; i < rows && !clips; i++) {
        shard_add_reduced(s, row[i] + 1, IR_NONE, out);
        weights_update(e, &bundle[i], 1, out);
    }
    if (in_order || clips)
        weights_update(e, bundle, count, out);
    /* the first of them is the first of its stream, so that all the others follow */
    if (clips && out->count > reduced)
        emit_add_dependency(e, (op_id){out->op[reduced]}, s->final);
    free(row);
    free(bundle);
}

/* Returns the number of buffers up to the last one that is a parameter or a gradient. */
static uint32_t buffers_of_weights(const struct emit *e)
{
    uint32_t count = 0;
    for (uint32_t b = 0; b < e->weights.bundle_count; b++)
        if (e->weights.bundle[b].param.i != IR_NONE && e->weights.bundle[b].param.i >= count)
            count = e->weights.bundle[b].param.i + 1;
    for (uint32_t i = 0; i < e->weights.grad_buffer_count; i++)
        if (e->weights.grad_buffer[i].i != IR_NONE && e->weights.grad_buffer[i].i >= count)
            count = e->weights.grad_buffer[i].i + 1;
    for (uint32_t i = 0; i < e->weights.remote_grad_count; i++)
        if (e->weights.remote_grad[i].buffer.i >= count)
            count = e->weights.remote_grad[i].buffer.i + 1;
    return count;
}

/* Notes which bundle each buffer belongs to. */
static void note_buffers(struct shard *s)
{
    const struct emit *e = s->e;
    s->buffers = buffers_of_weights(e);
    s->of_param = none_filled(s->buffers, sizeof(uint32_t));
    s->of_grad = none_filled(s->buffers, sizeof(uint32_t));
    s->bundle_of_grad = none_filled(s->buffers, sizeof(uint32_t));
    for (uint32_t b = 0; (s->gathers || s->remote_weights) && b < e->weights.bundle_count; b++)
        s->of_param[e->weights.bundle[b].param.i] = b;
    for (uint32_t i = 0; i < e->weights.grad_buffer_count; i++)
        if (e->weights.grad_buffer[i].i != IR_NONE)
            s->bundle_of_grad[e->weights.grad_buffer[i].i] = i % e->weights.bundle_count;
    if (s->remote_weights)
        s->remote_grad_of = none_filled(s->buffers, sizeof(uint32_t));
    for (uint32_t i = 0; i < e->weights.remote_grad_count; i++) {
        s->bundle_of_grad[e->weights.remote_grad[i].buffer.i] = e->weights.remote_grad[i].bundle;
        s->remote_grad_of[e->weights.remote_grad[i].buffer.i] = i;
    }
}

static void shard_init(struct shard *s, struct emit *e, const struct op_list *list)
{
    *s = (struct shard){
        .e = e,
        .ir = e->ir,
        .gathers = weights_sharded_params(e->choices) && e->group.shard_size > 1,
        .remote_weights = pipeline_has_remote_weights(e->choices),
        .owed = {IR_NONE, IR_NONE},
        .held = {IR_NONE},
    };
    if (s->remote_weights)
        remote_end(e);
    note_buffers(s);
    s->marked = heap_zalloc(list->count, sizeof *s->marked);
    s->left = heap_zalloc(e->weights.bundle_count, sizeof *s->left);
    s->reduced_of = heap_zalloc(e->weights.bundle_count, sizeof *s->reduced_of);
    find_uses(s, list);
    find_cores(s, list);
    bool keeps = e->choices->profile->reuse_elements > 0 || weights_root_unit(e->choices);
    if (keeps && !s->remote_weights)
        find_kept(s, list);
    s->reduced = none_filled(s->gradient_count, sizeof *s->reduced);
    s->to_add = none_filled(s->gradient_count, sizeof *s->to_add);
}

static void shard_release(struct shard *s)
{
    free(s->run);
    free(s->gradient);
    free(s->of_param);
    free(s->of_grad);
    free(s->bundle_of_grad);
    free(s->remote_grad_of);
    free(s->left);
    free(s->reduced_of);
    free(s->reduced);
    free(s->to_add);
    free(s->marked);
}

/* Begins the gradients, from *next on, that the op at position i is the first to write: adds the reduced parts of the
 * gradients before the previous one to the kept parts, fills padding, and adds waits for reductions. */
static void begin_gradients(struct shard *s, uint32_t i, uint32_t op, uint32_t *next,
                            struct op_list *out)
{
    for (; *next < s->gradient_count && s->gradient[*next].first == i; ++*next) {
        uint32_t row = *next;
        if (row >= 2)
            shard_add_reduced(s, row - 1, i, out);
        shard_fill_padding(s, row, op, out);
        if (row >= 2 && s->gradient[row - 2].last < i && s->reduced[row - 2].i != IR_NONE &&
            shard_waits_for_sums(s, row))
            emit_add_dependency(s->e, (op_id){op}, s->reduced[row - 2]);
    }
}

/* Writes the list with gathers before, and reductions after, the ops that ask for them. */
static void rewrite(struct shard *s, const struct op_list *list, struct op_list *out)
{
    uint32_t r = 0, next = 0; /* the run and the gradient to come */
    uint32_t listed = list->count;
    op_id held = {IR_NONE}; /* a reduction that the next op waits for */
    for (uint32_t i = 0; i < listed; i++) {
        uint32_t op = list->op[i];
        if (!s->marked[i]) {
            op_list_push(out, (op_id){op});
            continue;
        }
        while (r < s->run_count && s->run[r].end <= i)
            r++;
        if (r < s->run_count && s->run[r].begin <= i)
            gather_before(s, r, i, list, out);
        if (r < s->run_count)
            copy_out(s, r, i, list, out);
        if (r < s->run_count && s->run[r].begin <= i && s->run[r].gathered.i != IR_NONE)
            redirect(s, op, &s->run[r]);
        if (ends_backward(s, list, i))
            shard_add_reduced(s, s->gradient_count, i, out);
        begin_gradients(s, i, op, &next, out);
        if (held.i != IR_NONE)
            emit_add_dependency(s->e, (op_id){op}, held);
        held.i = IR_NONE;
        op_list_push(out, (op_id){op});
        uint32_t before = out->count;
        if (!shard_reduces_at_end(s))
            shard_reduce_finished(s, i, op, out);
        if (s->e->choices->profile->collectives_hold && out->count > before)
            held = s->final;
        if (s->remote_weights)
            shard_give_back(s, i, op, out);
    }
}

void pass_weights(struct emit *e, struct op_list *list)
{
    struct shard s;
    struct op_list out = {0};
    shard_init(&s, e, list);
    rewrite(&s, list, &out);
    for (uint32_t k = 0; k < 2; k++)
        shard_finalize(&s, k, &out);
    if (pipeline_shards_weights(e->choices))
        remote_return(e, shard_last_alone(&s, list), &out);
    if (shard_reduces_at_end(&s))
        shard_reduce_in_order(&s, list, &out);
    shard_reduce_ends(&s, &out);
    if (weights_clip_gradients(e->choices) || e->choices->profile->host_per_step_s > 0 ||
        e->choices->scope != SCOPE_STEP)
        shard_add_reduced(&s, s.gradient_count, IR_NONE, &out);
    shard_end_backward(&s, &out);
    if (e->choices->scope == SCOPE_STEP)
        finish_step(&s, &out);
    shard_release(&s);
    op_list_release(list);
    *list = out;
}

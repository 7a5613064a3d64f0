/* Offloads activations by ratio (SPPO, arXiv 2503.10377, sections 5 and 6). Of the tensors that a unit's forward saves
 * for its backward only, the largest are copied to pinned memory while the next unit runs, and copied back one unit
 * before their backward. If the ratio takes only a part of a tensor, the tensor is split: its tail moves to a buffer of
 * its own.
 *
 * In the list, the copies of unit k - 1 to the host stand before the forward of unit k, and its copies back before the
 * backward of unit k. So at most two units have tensors on the device that wait for a copy: the forward of unit k + 1
 * starts when unit k - 1 is on the host, which also bounds the memory. A copy back starts after all compute that is
 * listed before it.
 *
 * With the profile's switch offload_waits_per_unit, copies to the host start when the unit's forward has ended, and a
 * backward waits for all that was fetched for it, as in the two streams of SPPO's prototype. Without the switch, a copy
 * to the host waits only for the ops that make its data, and an op of the backward only for the copies that it reads.
 *
 * A unit whose backward follows its forward at once keeps everything on the device. */
#include "schedule/activations/classes.h"
#include "schedule/activations/passes.h"
#include "schedule/choices/profile.h"
#include "schedule/emit/op_list.h"
#include "schedule/pipeline/multiplex.h"
#include "schedule/pipeline/ratios.h"

#include <stdlib.h>

/* The consecutive ops of one unit in one chunk of layers, of its forward or of its backward. */
struct unit_ops_of_chunk {
    uint32_t begin, end;   /* positions in the list */
    uint32_t first, count; /* rows of `offloaded` */
    /* for a backward: row of its forward in `run`; else IR_NONE */
    uint32_t forward_run_of_backward;
    uint16_t unit;
    uint32_t chunk; /* chunk of layers */
    bool forward,
        has_backward_run;       /* has_backward_run: a backward has this forward as its partner */
    bool is_loaded;             /* of a backward: its tensors are on their way to the device */
    op_id last_offload_copy_op; /* the last copy of its stores or loads; IR_NONE: none yet */
};

/* A buffer of which the first host_element_count elements are on the host between forward and backward; the rest is in
 * `device_tail`. */
struct offloaded_buffer {
    buffer_id buffer;
    struct view host_view, device_tail; /* device_tail: empty if the whole buffer is offloaded */
    struct view loaded_view;            /* what the backward reads in place of the buffer */
    int64_t host_element_count;
};

struct offload_by_ratio {
    struct emit *e;
    struct ir *ir;
    struct op_list new_list; /* the list that replaces the old one */
    struct unit_ops_of_chunk *run;
    uint32_t run_count;
    struct offloaded_buffer *offloaded;
    uint32_t offloaded_count;
    uint32_t *offloaded_of_buffer; /* row of `offloaded`; IR_NONE: none */
    uint32_t *chunk_of_layer;      /* per layer */
    op_id last_compute_op;
    /* the last copy to the host of the run that was stored last; IR_NONE: none has been stored */
    op_id last_store;
    /* an op for which the next op on the compute stream waits; IR_NONE: none */
    op_id op_that_next_compute_op_awaits;
};

/* ---- the runs of a list ---- */

static void append_run_of_unit_ops(struct offload_by_ratio *r, const struct op_list *in,
                                   uint32_t begin, uint32_t end)
{
    const struct ir *ir = r->ir;
    uint32_t op = in->op[begin];
    struct unit_ops_of_chunk run = {.begin = begin,
                                    .end = end,
                                    .forward_run_of_backward = IR_NONE,
                                    .unit = ir->op.micro[op],
                                    .chunk = r->chunk_of_layer[ir->op.layer[op]],
                                    .forward = ir->op.phase[op] == PHASE_FORWARD,
                                    .last_offload_copy_op = {IR_NONE}};
    for (uint32_t i = 0; i < r->run_count && !run.forward; i++) {
        struct unit_ops_of_chunk *other = &r->run[i];
        if (other->forward && !other->has_backward_run && other->unit == run.unit &&
            other->chunk == run.chunk) {
            run.forward_run_of_backward = i;
            other->has_backward_run = true;
        }
    }
    r->run[r->run_count++] = run;
}

static bool ops_are_of_same_unit_and_chunk(const struct offload_by_ratio *r, uint32_t a, uint32_t b)
{
    const struct op_table *op = &r->ir->op;
    return op->layer[b] != IR_NONE16 && op->micro[a] == op->micro[b] &&
           r->chunk_of_layer[op->layer[a]] == r->chunk_of_layer[op->layer[b]] &&
           (op->phase[a] == PHASE_FORWARD) == (op->phase[b] == PHASE_FORWARD);
}

static void find_forward_and_backward_runs(struct offload_by_ratio *r, const struct op_list *in)
{
    const struct choices *c = r->e->choices;
    r->chunk_of_layer = heap_zalloc((size_t)c->model->layers + 1, sizeof *r->chunk_of_layer);
    for (uint32_t chunk = 0; chunk < pipeline_chunk_count(c); chunk++) {
        struct layer_range layers = pipeline_layers_of_chunk(c, chunk);
        for (uint32_t l = layers.first; l < layers.end; l++)
            r->chunk_of_layer[l] = chunk;
    }
    for (uint32_t i = 0; i < in->count;) {
        uint32_t begin = i, op = in->op[i++];
        if (r->ir->op.layer[op] == IR_NONE16)
            continue;
        while (i < in->count && ops_are_of_same_unit_and_chunk(r, op, in->op[i]))
            i++;
        append_run_of_unit_ops(r, in, begin, i);
    }
}

/* ---- the buffers that are offloaded ---- */

/* A buffer that may be offloaded. */
struct offload_candidate {
    uint32_t buffer;
    uint64_t bytes;
};

static int compare_candidates_by_bytes(const void *a, const void *b)
{
    const struct offload_candidate *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->buffer < y->buffer ? -1 : x->buffer > y->buffer;
}

/* Fills out[] with the buffers of a run that may be offloaded, the largest first, and returns their number. Sets the
 * class of each to ACTIVATION_NONE, so that it is listed once. */
static uint32_t list_offload_candidates(const struct offload_by_ratio *r, const struct op_list *in,
                                        const struct unit_ops_of_chunk *run, uint8_t *class,
                                        struct offload_candidate *out)
{
    const struct ir *ir = r->ir;
    uint64_t least = (uint64_t)r->e->choices->profile->offload_multiple_of_bytes;
    uint32_t count = 0;
    for (uint32_t i = run->begin; i < run->end; i++) {
        uint32_t op = in->op[i], reads = ir->op.read_count[op];
        for (uint32_t k = reads; k < reads + (uint32_t)ir->op.write_count[op]; k++) {
            uint32_t b = ir_touched_buffer(ir, op, k);
            uint64_t bytes = ir_buffer_bytes(ir, (buffer_id){b});
            if (class[b] != ACTIVATION_FOR_OWN_BACKWARD || bytes < least)
                continue;
            class[b] = ACTIVATION_NONE; /* so that the buffer becomes a candidate only once */
            out[count++] = (struct offload_candidate){b, bytes};
        }
    }
    qsort(out, count, sizeof *out, compare_candidates_by_bytes);
    return count;
}

/* Returns the number of bytes that can be copied to the host while the next forward run after run i computes. If there
 * is none, it returns the number for a run that takes as long as run i. If choices.offload_hidden_bytes_by_subsequence
 * is NULL, all runs have the same number. */
static double bytes_copyable_during_next_run(const struct offload_by_ratio *r, uint32_t i)
{
    const struct choices *c = r->e->choices;
    uint32_t next = i + 1;
    if (c->offload_hidden_bytes_by_subsequence == NULL)
        return c->offload_hidden_bytes;
    while (next < r->run_count && !r->run[next].forward)
        next++;
    const struct unit_ops_of_chunk *run = &r->run[next < r->run_count ? next : i];
    uint32_t part = run->unit % c->subsequences;
    return c->offload_hidden_bytes_by_subsequence[part] /
           multiplex_stages_sharing_subsequence(c, run->chunk, part).count;
}

/* Returns how many of a run's candidates' bytes, `all`, are offloaded: what the next run hides if offload_hidden_bytes
 * is set, else the share offload_ratio; rounded up to a multiple of the profile's offload_multiple_of_bytes, but at
 * most `all`. */
static uint64_t bytes_to_offload(const struct offload_by_ratio *r, uint32_t run, uint64_t all)
{
    const struct choices *c = r->e->choices;
    double ratio = c->offload_ratio;
    if (c->offload_hidden_bytes > 0)
        ratio = ratio_of_hidden_bytes((double)all, bytes_copyable_during_next_run(r, run));
    uint64_t grain = (uint64_t)c->profile->offload_multiple_of_bytes;
    uint64_t bytes = (uint64_t)(ratio * (double)all);
    if (grain > 1)
        bytes = (bytes + grain - 1) / grain * grain;
    return bytes < all ? bytes : all;
}

/* Sets the class of tensors that one chunk of layers passes unchanged to another chunk on the same stage, so that they
 * are not offloaded: the other chunk's backward reads them first. */
static void keep_tensors_passed_to_other_chunks(const struct offload_by_ratio *r,
                                                const struct op_list *in, uint8_t *class)
{
    const struct ir *ir = r->ir;
    uint32_t *maker = ir_new_empty_ids(ir->buffer.count);
    for (uint32_t i = 0; i < in->count; i++) {
        uint32_t op = in->op[i], reads = ir->op.read_count[op];
        if (ir->op.layer[op] == IR_NONE16)
            continue;
        uint32_t chunk = r->chunk_of_layer[ir->op.layer[op]];
        for (uint32_t k = 0; k < reads + (uint32_t)ir->op.write_count[op]; k++) {
            uint32_t b = ir_touched_buffer(ir, op, k);
            if (k >= reads && maker[b] == IR_NONE)
                maker[b] = chunk;
            if (k < reads && maker[b] != IR_NONE && maker[b] != chunk)
                class[b] = ACTIVATION_SHARED_BY_UNITS;
        }
    }
    free(maker);
}

static void choose_buffers_to_offload(struct offload_by_ratio *r, const struct op_list *in)
{
    struct ir *ir = r->ir;
    uint8_t *class = heap_zalloc((size_t)ir->buffer.count + 1, 1);
    struct offload_candidate *list = heap_alloc((size_t)ir->buffer.count + 1, sizeof *list);
    activations_classify(ir, in->op, in->count, class);
    /* The caches of keys and values are not offloaded, since units share them. activations_classify() does not see that
     * on a stage that helps with a single subsequence, where only one unit reads or writes them. */
    for (uint32_t i = 0; i < r->e->buffers_never_recomputed.count; i++)
        class[r->e->buffers_never_recomputed.buffer[i].i] = ACTIVATION_SHARED_BY_UNITS;
    keep_tensors_passed_to_other_chunks(r, in, class);
    r->offloaded = heap_alloc((size_t)ir->buffer.count + 1, sizeof *r->offloaded);
    for (uint32_t i = 0; i + 1 < r->run_count; i++) {
        struct unit_ops_of_chunk *run = &r->run[i];
        run->first = r->offloaded_count;
        if (!run->forward || r->run[i + 1].forward_run_of_backward == i)
            continue;
        uint32_t count = list_offload_candidates(r, in, run, class, list);
        uint64_t all = 0, left;
        for (uint32_t k = 0; k < count; k++)
            all += list[k].bytes;
        left = bytes_to_offload(r, i, all);
        for (uint32_t k = 0; k < count && left > 0; k++) {
            uint64_t bytes = list[k].bytes < left ? list[k].bytes : left;
            uint64_t each = dtype_bytes((enum dtype)ir->buffer.dtype[list[k].buffer]);
            left -= bytes;
            if (bytes < each)
                continue;
            r->offloaded_of_buffer[list[k].buffer] = r->offloaded_count;
            r->offloaded[r->offloaded_count++] = (struct offloaded_buffer){
                .buffer = {list[k].buffer}, .host_element_count = (int64_t)(bytes / each)};
        }
        run->count = r->offloaded_count - run->first;
    }
    free(class);
    free(list);
}

/* ---- copies to the host and back ---- */

static op_id emit_copy_of_offloaded_part(struct offload_by_ratio *r, enum work_kind kind,
                                         struct view from, struct view to)
{
    op_id op = emit_host_device_copy(r->e, kind, false, from, to);
    op_list_push(&r->new_list, op);
    return op;
}

/* Emits a copy of `from`, the part of a buffer that stays on the device, to `to`; does nothing if that part is
 * empty. */
static void emit_copy_of_part_kept_on_device(struct offload_by_ratio *r, struct view from,
                                             struct view to)
{
    if (to.count == 0)
        return;
    emit_pack_or_unpack(r->e, WORK_PACK, from, to, (int64_t)to.count, 1, 1);
    r->last_compute_op = r->e->last_compute;
    op_list_push(&r->new_list, r->last_compute_op);
}

static void set_op_labels_for_run(struct offload_by_ratio *r, const struct unit_ops_of_chunk *run,
                                  enum phase phase)
{
    r->e->op_tags = (struct op_tags){(uint8_t)phase, REGION_OFFLOAD, IR_NONE16,
                                     IR_NONE16,      IR_NONE16,      run->unit};
}

static void store_tensors_of_run(struct offload_by_ratio *r, struct unit_ops_of_chunk *run)
{
    op_id ended = r->last_compute_op;
    set_op_labels_for_run(r, run, PHASE_FORWARD);
    for (uint32_t i = run->first; i < run->first + run->count; i++) {
        struct offloaded_buffer *m = &r->offloaded[i];
        struct view whole = ir_whole_view(r->ir, m->buffer);
        int64_t rest = (int64_t)whole.count - m->host_element_count;
        m->host_view =
            emit_tensor_like(r->e, whole, m->host_element_count, "on_host", MEMORY_PINNED);
        if (rest > 0)
            m->device_tail = emit_tensor_like(r->e, whole, rest, "tail", MEMORY_HBM);
        emit_copy_of_part_kept_on_device(r, view_slice(whole, m->host_element_count, rest),
                                         m->device_tail);
        run->last_offload_copy_op = emit_copy_of_offloaded_part(
            r, WORK_D2H, view_slice(whole, 0, m->host_element_count), m->host_view);
        if (r->e->choices->profile->offload_waits_per_unit && ended.i != IR_NONE)
            emit_add_dependency(r->e, run->last_offload_copy_op, ended);
    }
    r->last_store = run->last_offload_copy_op;
}

/* Emits the copies back to the device of the tensors that a backward run reads; they start after all compute that is
 * listed so far. */
static void emit_copies_back_for_backward_run(struct offload_by_ratio *r,
                                              struct unit_ops_of_chunk *run)
{
    const struct unit_ops_of_chunk *forward = &r->run[run->forward_run_of_backward];
    op_id ended = r->last_compute_op;
    set_op_labels_for_run(r, run, PHASE_BACKWARD);
    for (uint32_t i = forward->first; i < forward->first + forward->count; i++) {
        struct offloaded_buffer *m = &r->offloaded[i];
        int64_t all = (int64_t)ir_buffer_elements(r->ir, m->buffer);
        m->loaded_view = emit_tensor_like(r->e, m->host_view, all, "back", MEMORY_HBM);
        run->last_offload_copy_op = emit_copy_of_offloaded_part(
            r, WORK_H2D, m->host_view, view_slice(m->loaded_view, 0, m->host_element_count));
        if (ended.i != IR_NONE)
            emit_add_dependency(r->e, run->last_offload_copy_op, ended);
        emit_copy_of_part_kept_on_device(
            r, m->device_tail,
            view_slice(m->loaded_view, m->host_element_count, all - m->host_element_count));
    }
    run->is_loaded = true;
}

/* Finds the next backward run after run i whose copies back have not been emitted. Returns it if its tensors have been
 * stored on the host, else NULL; NULL also if there is no such run. */
static struct unit_ops_of_chunk *next_backward_to_load(struct offload_by_ratio *r, uint32_t i)
{
    while (++i < r->run_count)
        if (r->run[i].forward_run_of_backward != IR_NONE && !r->run[i].is_loaded)
            return r->run[r->run[i].forward_run_of_backward].last_offload_copy_op.i != IR_NONE
                       ? &r->run[i]
                       : NULL;
    return NULL;
}

static void emit_copies_before_run(struct offload_by_ratio *r, uint32_t i)
{
    struct unit_ops_of_chunk *run = &r->run[i], *before = i > 0 ? &r->run[i - 1] : NULL, *ahead;
    /* A forward starts only when the tensors of all earlier runs are on the host, except those of the run just before
     * it: their copies are emitted below. */
    r->op_that_next_compute_op_awaits = run->forward ? r->last_store : (op_id){IR_NONE};
    if (before && before->forward && before->count > 0)
        store_tensors_of_run(r, before);
    if (run->forward_run_of_backward == IR_NONE)
        return;
    if (!run->is_loaded)
        emit_copies_back_for_backward_run(r, run);
    if (r->e->choices->profile->offload_waits_per_unit)
        r->op_that_next_compute_op_awaits = run->last_offload_copy_op;
    if ((ahead = next_backward_to_load(r, i)) != NULL)
        emit_copies_back_for_backward_run(r, ahead);
}

static void append_op_to_new_list(struct offload_by_ratio *r, uint32_t op, bool backward)
{
    struct ir *ir = r->ir;
    bool computes = ir->op.stream[op] == r->e->stream.compute;
    for (uint32_t k = 0; backward && k < ir->op.read_count[op]; k++) {
        uint32_t row = r->offloaded_of_buffer[ir_touched_buffer(ir, op, k)];
        if (row != IR_NONE)
            ir_redirect_operand(ir, op, k, r->offloaded[row].loaded_view.buffer);
    }
    if (computes && r->op_that_next_compute_op_awaits.i != IR_NONE) {
        emit_add_dependency(r->e, (op_id){op}, r->op_that_next_compute_op_awaits);
        r->op_that_next_compute_op_awaits.i = IR_NONE;
    }
    if (computes)
        r->last_compute_op.i = op;
    op_list_push(&r->new_list, (op_id){op});
}

void pass_offload_ratio(struct emit *e, struct op_list *list)
{
    struct ir *ir = e->ir;
    /* the number of buffers before this pass; the arrays have no rows for those that it adds, which are never looked
     * up */
    uint32_t buffers = ir->buffer.count;
    struct offload_by_ratio r = {.e = e,
                                 .ir = ir,
                                 .run = heap_alloc((size_t)list->count + 1, sizeof *r.run),
                                 .offloaded_of_buffer = ir_new_empty_ids(buffers),
                                 .last_compute_op = {IR_NONE},
                                 .last_store = {IR_NONE},
                                 .op_that_next_compute_op_awaits = {IR_NONE}};
    find_forward_and_backward_runs(&r, list);
    choose_buffers_to_offload(&r, list);
    uint32_t next = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        while (next < r.run_count && r.run[next].end <= i)
            next++;
        bool inside = next < r.run_count && r.run[next].begin <= i;
        if (inside && r.run[next].begin == i)
            emit_copies_before_run(&r, next);
        append_op_to_new_list(&r, list->op[i], inside && !r.run[next].forward);
    }
    free(r.run);
    free(r.offloaded);
    free(r.offloaded_of_buffer);
    free(r.chunk_of_layer);
    op_list_release(list);
    *list = r.new_list;
}

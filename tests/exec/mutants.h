/* tests/exec/mutants.h: makes schedules with one fault each, drawn from seeds: faults that a mistaken generator
 * or a mistaken edit would make.
 *
 * A mutant is a finished schedule of compose with one change. A fault of order or memory (a dropped wait, an
 * early free, moved bytes) stays as it is: the file is wrong. A fault of meaning (a shifted view, a wrong mask,
 * an op left out) comes in two forms: as it is, or with waits, lifetimes and arena derived anew from the
 * changed ops, as if the emission had been wrong and the later passes right. Many faults of the second form
 * can be revealed only by the numeric check. Included by test files only. */
#ifndef TESTS_EXEC_MUTANTS_H
#define TESTS_EXEC_MUTANTS_H

#include "tests/exec/mutant_write.h"

/* Makes one change, which it describes in mutant->what: in the tables of mutant->ir, or as a new list of ops,
 * mutant->list. Returns false when the schedule has no place for it; the schedule may be changed then, too. */
typedef bool mutation(struct mutant *mutant);

static inline uint32_t draw_below(struct mutant *m, uint32_t count)
{
    return (uint32_t)check_random_i64(m->random, 0, (int64_t)count - 1);
}

typedef bool op_test(const struct ir *ir, uint32_t op);

/* Returns a random op that passes the test, or IR_NONE. */
static inline uint32_t draw_op_passing(struct mutant *m, op_test *test)
{
    uint32_t begin = draw_below(m, m->ir->op.count);
    for (uint32_t i = 0; i < m->ir->op.count; i++) {
        uint32_t op = (begin + i) % m->ir->op.count;
        if (test(m->ir, op))
            return op;
    }
    return IR_NONE;
}

static inline const char *work_kind_name_of_op(const struct ir *ir, uint32_t op)
{
    return work_kind_info(ir->op.kind[op])->name;
}

/* Gives an op a copy of its shape that no other op uses, and returns it to be changed. */
static inline struct work *give_own_shape(struct ir *ir, uint32_t op)
{
    ir->shape = heap_realloc(ir->shape, ir->shape_count + 1, sizeof *ir->shape);
    ir->shape[ir->shape_count] = *ir_work(ir, op);
    ir->shape_capacity = ir->shape_count + 1;
    ir->op.shape[op] = ir->shape_count++;
    return &ir->shape[ir->op.shape[op]];
}

/* ---- faults of order and memory ---- */

static inline bool has_waits(const struct ir *ir, uint32_t op)
{
    return ir->op.wait_count[op] > 0;
}

/* Removes one wait of an op. */
static inline bool remove_wait(struct mutant *m)
{
    uint32_t op = draw_op_passing(m, has_waits);
    if (op == IR_NONE)
        return false;
    op_id *wait = &m->ir->wait[m->ir->op.wait_begin[op]];
    uint32_t k = draw_below(m, m->ir->op.wait_count[op]);
    snprintf(m->what, sizeof m->what, "op %u (%s) without its wait for %u", op,
             work_kind_name_of_op(m->ir, op), wait[k].i);
    wait[k] = wait[--m->ir->op.wait_count[op]];
    return true;
}

/* Replaces a wait of an op by a wait for an earlier op. */
static inline bool wait_for_earlier_op(struct mutant *m)
{
    uint32_t op = draw_op_passing(m, has_waits);
    if (op == IR_NONE)
        return false;
    op_id *wait = &m->ir->wait[m->ir->op.wait_begin[op] + draw_below(m, m->ir->op.wait_count[op])];
    if (wait->i == 0)
        return false;
    uint32_t other = draw_below(m, wait->i);
    snprintf(m->what, sizeof m->what, "op %u (%s) waits for %u instead of %u", op,
             work_kind_name_of_op(m->ir, op), other, wait->i);
    wait->i = other;
    return true;
}

/* Frees a buffer too early: replaces one op of its free set by an op up to eight places before it. */
static inline bool free_too_early(struct mutant *m)
{
    struct ir *ir = m->ir;
    uint32_t b = draw_below(m, ir->buffer.count);
    if (ir->buffer.free_count[b] == 0)
        return false;
    op_id *op = ir_free_set(ir, b) + draw_below(m, ir->buffer.free_count[b]);
    if (op->i == 0)
        return false;
    uint32_t earlier = op->i - 1 - draw_below(m, op->i < 8 ? op->i : 8);
    snprintf(m->what, sizeof m->what, "buffer %u free after op %u instead of %u", b, earlier,
             op->i);
    op->i = earlier;
    return true;
}

/* Moves a buffer to the offset of another one of the same memory, if it fits there. */
static inline bool overlap_another_buffer(struct mutant *m)
{
    struct ir *ir = m->ir;
    uint32_t b = draw_below(m, ir->buffer.count), other = draw_below(m, ir->buffer.count);
    uint64_t to = ir->buffer.offset[other];
    if (b == other || to == ir->buffer.offset[b] || to == UINT64_MAX ||
        ir->buffer.offset[b] == UINT64_MAX || ir->buffer.memory[b] != ir->buffer.memory[other] ||
        ir->buffer.role[b] != ir->buffer.role[other] ||
        to + ir_buffer_bytes(ir, (buffer_id){b}) > ir->planned_bytes[ir->buffer.memory[b]])
        return false;
    snprintf(m->what, sizeof m->what, "buffer %u at the offset of buffer %u", b, other);
    ir->buffer.offset[b] = to;
    return true;
}

static inline bool is_sync(const struct ir *ir, uint32_t op)
{
    return work_kind_info(ir->op.kind[op])->stream == STREAM_SYNC;
}

static inline bool is_not_sync(const struct ir *ir, uint32_t op)
{
    return !is_sync(ir, op);
}

/* Makes mutant->list of all ops, in their order. */
static inline void list_all_ops(struct mutant *m)
{
    m->count = m->ir->op.count;
    m->list = heap_alloc(m->count + 1, sizeof *m->list);
    for (uint32_t i = 0; i < m->count; i++)
        m->list[i] = i;
}

/* Makes mutant->list of all ops but one. */
static inline void list_all_but_one_op(struct mutant *m, uint32_t op)
{
    list_all_ops(m);
    memmove(&m->list[op], &m->list[op + 1], (m->count - op - 1) * sizeof *m->list);
    m->count--;
    snprintf(m->what, sizeof m->what, "op %u (%s, %s) left out", op,
             work_kind_name_of_op(m->ir, op), phase_names[m->ir->op.phase[op]]);
}

static inline bool skip_sync(struct mutant *m)
{
    uint32_t op = draw_op_passing(m, is_sync);
    if (op != IR_NONE)
        list_all_but_one_op(m, op);
    return op != IR_NONE;
}

/* ---- faults of meaning ---- */

static inline bool skip_op(struct mutant *m)
{
    list_all_but_one_op(m, draw_op_passing(m, is_not_sync));
    return true;
}

static inline bool is_reduction(const struct ir *ir, uint32_t op)
{
    return ir->op.kind[op] == WORK_REDUCE_SCATTER || ir->op.kind[op] == WORK_ALL_REDUCE ||
           ir->op.kind[op] == WORK_REDUCE;
}

static inline bool skip_reduction(struct mutant *m)
{
    uint32_t op = draw_op_passing(m, is_reduction);
    if (op != IR_NONE)
        list_all_but_one_op(m, op);
    return op != IR_NONE;
}

static inline bool repeat_op(struct mutant *m)
{
    uint32_t op = draw_op_passing(m, is_not_sync);
    list_all_ops(m);
    memmove(&m->list[op + 1], &m->list[op], (m->count - op) * sizeof *m->list);
    m->count++;
    snprintf(m->what, sizeof m->what, "op %u (%s, %s) twice", op, work_kind_name_of_op(m->ir, op),
             phase_names[m->ir->op.phase[op]]);
    return true;
}

/* Moves an op up to six places towards the front of the list. */
static inline bool move_op_earlier(struct mutant *m)
{
    uint32_t op = draw_op_passing(m, is_not_sync);
    if (op == 0)
        return false;
    uint32_t to = op - 1 - draw_below(m, op < 6 ? op : 6);
    if (ir_role_of_op(m->ir, op) != ir_role_of_op(m->ir, to))
        return false;
    list_all_ops(m);
    memmove(&m->list[to + 1], &m->list[to], (op - to) * sizeof *m->list);
    m->list[to] = op;
    snprintf(m->what, sizeof m->what, "op %u (%s, %s) before op %u", op,
             work_kind_name_of_op(m->ir, op), phase_names[m->ir->op.phase[op]], to);
    return true;
}

static inline bool has_operands(const struct ir *ir, uint32_t op)
{
    return ir->op.read_count[op] + ir->op.write_count[op] > 0;
}

/* Makes operand k of an op refer to `view`. */
static inline void set_operand(struct ir *ir, uint32_t op, uint32_t k, struct view view)
{
    struct ir_range range = {
        view.buffer, ir_add_element_extent(ir, (struct ir_element_extent){view.begin, view.count})};
    ir->operand[ir->op.operand_begin[op] + k] = ir_add_range(ir, range) | IR_OPERAND_IS_RANGE_ROW;
}

/* Moves the element range of an operand within its buffer. */
static inline bool shift_view(struct mutant *m)
{
    struct ir *ir = m->ir;
    uint32_t op = draw_op_passing(m, has_operands);
    uint32_t k = draw_below(m, ir->op.read_count[op] + ir->op.write_count[op]);
    struct view view = ir_view_of_operand(ir, ir->operand[ir->op.operand_begin[op] + k]);
    uint64_t elements = ir_buffer_elements(ir, view.buffer), room = elements - view.count;
    if (room == 0)
        return false;
    uint64_t to = (uint64_t)check_random_i64(m->random, 0, (int64_t)room);
    if (to == view.begin)
        return false;
    snprintf(m->what, sizeof m->what, "op %u (%s): operand %u at %" PRIu64 " instead of %" PRIu64,
             op, work_kind_name_of_op(ir, op), k, to, view.begin);
    view.begin = to;
    set_operand(ir, op, k, view);
    return true;
}

/* Replaces the buffer of an operand with another one of the same memory, dtype and number of elements. */
static inline bool replace_buffer(struct mutant *m)
{
    struct ir *ir = m->ir;
    uint32_t op = draw_op_passing(m, has_operands);
    uint32_t k = draw_below(m, ir->op.read_count[op] + ir->op.write_count[op]);
    struct view view = ir_view_of_operand(ir, ir->operand[ir->op.operand_begin[op] + k]);
    uint32_t b = view.buffer.i, begin = draw_below(m, ir->buffer.count);
    for (uint32_t i = 0; i < ir->buffer.count; i++) {
        uint32_t other = (begin + i) % ir->buffer.count;
        if (other == b || ir->buffer.dtype[other] != ir->buffer.dtype[b] ||
            ir->buffer.memory[other] != ir->buffer.memory[b] ||
            ir_buffer_elements(ir, (buffer_id){other}) != ir_buffer_elements(ir, view.buffer))
            continue;
        snprintf(m->what, sizeof m->what, "op %u (%s): operand %u is buffer %u instead of %u", op,
                 work_kind_name_of_op(ir, op), k, other, b);
        view.buffer.i = other;
        set_operand(ir, op, k, view);
        return true;
    }
    return false;
}

static inline bool is_attention(const struct ir *ir, uint32_t op)
{
    return ir->op.kind[op] == WORK_ATTENTION || ir->op.kind[op] == WORK_ATTENTION_BACKWARD;
}

/* Gives an attention the other mask, or a causal one that is off by a token. */
static inline bool change_attention_mask(struct mutant *m)
{
    uint32_t op = draw_op_passing(m, is_attention);
    struct work *work = give_own_shape(m->ir, op);
    int64_t by = check_random_i64(m->random, 0, 2);
    if (by == 2 || work->attention.mask == MASK_FULL)
        work->attention.mask = work->attention.mask == MASK_FULL ? MASK_CAUSAL : MASK_FULL;
    else
        work->attention.offset += by == 0 ? -1 : 1;
    snprintf(m->what, sizeof m->what, "op %u (%s): mask %" PRId64 " offset %" PRId64, op,
             work_kind_name_of_op(m->ir, op), work->attention.mask, work->attention.offset);
    return true;
}

static inline bool is_communication(const struct ir *ir, uint32_t op)
{
    return work_kind_info(ir->op.kind[op])->stream == STREAM_COMM;
}

/* Gives a message or a collective another group. */
static inline bool change_communication_group(struct mutant *m)
{
    uint32_t op = draw_op_passing(m, is_communication);
    if (op == IR_NONE || m->ir->group_count < 2)
        return false;
    struct work *work = give_own_shape(m->ir, op);
    int64_t old = work->p[0];
    work->p[0] = (old + 1 + draw_below(m, m->ir->group_count - 1)) % m->ir->group_count;
    snprintf(m->what, sizeof m->what, "op %u (%s): group %" PRId64 " instead of %" PRId64, op,
             work_kind_name_of_op(m->ir, op), work->p[0], old);
    return true;
}

static inline bool has_peer(const struct ir *ir, uint32_t op)
{
    return ir->op.kind[op] == WORK_SHIFT || ir->op.kind[op] == WORK_SEND ||
           ir->op.kind[op] == WORK_RECV;
}

/* Makes a message go the other way, or one member farther. */
static inline bool change_message_peer(struct mutant *m)
{
    uint32_t op = draw_op_passing(m, has_peer);
    if (op == IR_NONE)
        return false;
    struct work *work = give_own_shape(m->ir, op);
    int64_t old = work->p2p.by;
    work->p2p.by = draw_below(m, 2) == 0 ? -old : old + 1;
    snprintf(m->what, sizeof m->what, "op %u (%s): by %" PRId64 " instead of %" PRId64, op,
             work_kind_name_of_op(m->ir, op), work->p2p.by, old);
    return true;
}

static inline bool is_all_reduce(const struct ir *ir, uint32_t op)
{
    return ir->op.kind[op] == WORK_ALL_REDUCE;
}

/* Makes an all-reduce take the maximum in place of the sum, or the sum in place of the maximum. */
static inline bool change_all_reduce_operator(struct mutant *m)
{
    uint32_t op = draw_op_passing(m, is_all_reduce);
    if (op == IR_NONE)
        return false;
    give_own_shape(m->ir, op)->all_reduce.op ^= 1;
    snprintf(m->what, sizeof m->what, "op %u (%s): the other reduction", op,
             work_kind_name_of_op(m->ir, op));
    return true;
}

static inline bool shape_can_be_made_wrong(const struct ir *ir, uint32_t op)
{
    int kind = ir->op.kind[op];
    return kind == WORK_ROPE || kind == WORK_ROPE_BACKWARD || kind == WORK_GELU_BACKWARD ||
           kind == WORK_SWIGLU_BACKWARD || kind == WORK_CROSS_ENTROPY ||
           kind == WORK_CROSS_ENTROPY_BACKWARD || kind == WORK_HEAD_EXPAND ||
           kind == WORK_HEAD_REDUCE || kind == WORK_MATMUL;
}

/* Changes the shape of an op as a likely mix-up would: two swapped sizes, a count off by one, another matmul
 * form. */
static inline bool make_shape_of_an_op_wrong(struct mutant *m)
{
    uint32_t op = draw_op_passing(m, shape_can_be_made_wrong);
    struct work *work = give_own_shape(m->ir, op);
    snprintf(m->what, sizeof m->what, "op %u (%s): wrong shape", op,
             work_kind_name_of_op(m->ir, op));
    switch (work->kind) {
    case WORK_ROPE:
    case WORK_ROPE_BACKWARD: { /* swaps the number of heads and the columns of a head */
        int64_t heads = work->rope.heads;
        work->rope.heads = work->rope.dim;
        work->rope.dim = heads;
        return heads != work->rope.heads && heads % 2 == 0;
    }
    case WORK_CROSS_ENTROPY:
    case WORK_CROSS_ENTROPY_BACKWARD:
        work->cross_entropy.count += 1; /* as if the last position, which has no label, counted */
        return true;
    case WORK_HEAD_EXPAND:
    case WORK_HEAD_REDUCE: {
        int64_t heads = work->heads.heads;
        work->heads.heads = work->heads.dim;
        work->heads.dim = heads;
        return heads != work->heads.heads;
    }
    case WORK_MATMUL:
        work->matmul.form = (work->matmul.form + 1) % MATMUL_FORM_COUNT;
        return work->matmul.m == work->matmul.k || work->matmul.n == work->matmul.k;
    default:
        return false;
    }
}

/* ---- scalars, types, labels, and what the head of a schedule says ---- */

/* Returns a random op that has parameters, or IR_NONE: first a kind is drawn among those that the schedule has,
 * then an op of that kind. */
static inline uint32_t draw_op_with_parameters(struct mutant *m)
{
    uint32_t kinds = draw_below(m, WORK_KIND_COUNT), begin = draw_below(m, m->ir->op.count);
    for (uint32_t k = 0; k < WORK_KIND_COUNT; k++) {
        uint8_t kind = (uint8_t)((kinds + k) % WORK_KIND_COUNT);
        for (uint32_t i = 0; i < m->ir->op.count && work_kind_info(kind)->param_count > 0; i++) {
            uint32_t op = (begin + i) % m->ir->op.count;
            if (m->ir->op.kind[op] == kind)
                return op;
        }
    }
    return IR_NONE;
}

/* Returns another value that the text form allows for the parameter, or `old` when the draw finds none. */
static inline int64_t other_parameter_value(struct mutant *m, const struct work_param *p,
                                            int64_t old)
{
    uint32_t groups = m->ir->group_count + p->optional;
    if (p->is_value_group_id)
        return groups == 0 ? old : draw_below(m, groups);
    if (p->value_names)
        return draw_below(m, p->value_count);
    const int64_t values[] = {old + 1, old * 2, old - 1, old / 2, 1, 0, -old};
    int64_t value = values[draw_below(m, ARRAY_LEN(values))];
    int64_t least = p->is_signed ? INT64_MIN : p->optional ? 0 : 1;
    return value < least ? old : value;
}

/* Changes a parameter of an op. everywhere: of all ops of its kind that have the same value there; returns false if
 * that is only one op. */
static inline bool change_op_parameter(struct mutant *m, bool everywhere)
{
    struct ir *ir = m->ir;
    uint32_t op = draw_op_with_parameters(m), changed = 0;
    uint8_t kind = ir->op.kind[op];
    uint32_t i = draw_below(m, work_kind_info(kind)->param_count);
    const struct work_param *p = &work_kind_info(kind)->param[i];
    int64_t old = ir_work(ir, op)->p[i], value = other_parameter_value(m, p, old);
    if (value == old)
        return false;
    for (uint32_t o = 0; o < ir->op.count; o++)
        if (o == op || (everywhere && ir->op.kind[o] == kind && ir_work(ir, o)->p[i] == old)) {
            give_own_shape(ir, o)->p[i] = value;
            changed++;
        }
    snprintf(m->what, sizeof m->what, "op %u (%s): %s %" PRId64 " instead of %" PRId64 ", %u ops",
             op, work_kind_name_of_op(ir, op), p->name, value, old, changed);
    return !everywhere || changed > 1;
}

static inline bool change_parameter_of_one_op(struct mutant *m)
{
    return change_op_parameter(m, false);
}

static inline bool change_parameter_of_all_ops(struct mutant *m)
{
    return change_op_parameter(m, true);
}

/* Scales all gradients, and in half of the draws the loss, by one factor, as if they were summed over a step instead of
 * averaged. */
static inline bool scale_gradients(struct mutant *m)
{
    struct ir *ir = m->ir;
    int64_t by = ir->global_batch > 1 ? ir->global_batch : 2;
    bool up = draw_below(m, 2) == 0, forward = draw_below(m, 2) == 0;
    uint32_t changed = 0;
    for (uint32_t op = 0; op < ir->op.count; op++) {
        int kind = ir->op.kind[op];
        if (kind == WORK_CROSS_ENTROPY_BACKWARD || kind == WORK_CROSS_ENTROPY_PARTIAL_BACKWARD ||
            (forward && (kind == WORK_CROSS_ENTROPY || kind == WORK_CROSS_ENTROPY_FINISH))) {
            int64_t *count = &give_own_shape(ir, op)->cross_entropy.count; /* in all four kinds */
            *count = up ? *count * by : *count / by;
            if (*count == 0)
                return false;
            changed++;
        }
    }
    snprintf(m->what, sizeof m->what, "count of %u ops of the loss %s %" PRId64 " times", changed,
             up ? "up" : "down", by);
    return changed > 0;
}

/* Changes the dtype of a buffer or, in a quarter of the draws, of the schedule. */
static inline bool change_dtype(struct mutant *m)
{
    struct ir *ir = m->ir;
    uint32_t b = draw_below(m, ir->buffer.count);
    bool head = draw_below(m, 4) == 0;
    uint8_t *dtype = head ? &ir->dtype : &ir->buffer.dtype[b], old = *dtype;
    *dtype = (uint8_t)draw_below(m, head ? DTYPE_I32 : DTYPE_COUNT); /* others cannot be read */
    if (head)
        snprintf(m->what, sizeof m->what, "dtype=%s of the schedule, not %s", dtype_name(*dtype),
                 dtype_name(old));
    else
        snprintf(m->what, sizeof m->what, "buffer %u of %s, not %s", b, dtype_name(*dtype),
                 dtype_name(old));
    list_all_ops(m); /* ops are written anew, which derives their dtypes from the buffers */
    return *dtype != old;
}

/* Changes the phase, region, layer, chunk, step or micro-batch of an op. */
static inline bool change_op_phase_layer_or_step(struct mutant *m)
{
    struct op_table *t = &m->ir->op;
    uint32_t op = draw_below(m, t->count), which = draw_below(m, 6);
    uint16_t *number[] = {&t->layer[op], &t->chunk[op], &t->step[op], &t->micro[op]};
    snprintf(m->what, sizeof m->what, "op %u (%s): label %u", op, work_kind_name_of_op(m->ir, op),
             which);
    if (which == 0)
        t->phase[op] = (uint8_t)((t->phase[op] + 1) % PHASE_COUNT);
    else if (which == 1)
        t->region[op] = (uint8_t)((t->region[op] + 1) % REGION_COUNT);
    else
        *number[which - 2] = *number[which - 2] == IR_NONE16 ? 0 : *number[which - 2] + 1;
    return true;
}

/* Changes a binding: a buffer is bound to another kind, bundle, shard group or partial sum. */
static inline bool change_binding(struct mutant *m)
{
    struct ir *ir = m->ir;
    uint32_t begin = draw_below(m, ir->buffer.count), b = begin, i = 0;
    while (i < ir->buffer.count && ir->buffer.binding[b] == IR_NONE16)
        b = (begin + ++i) % ir->buffer.count;
    struct binding binding = ir->binding[ir->buffer.binding[b]], old = binding;
    bool tensors = binding.bundle != IR_NONE16;
    uint16_t group = (uint16_t)draw_below(m, ir->group_count + 1);
    group = group == ir->group_count ? IR_NONE16 : group;
    switch (draw_below(m, 4)) {
    case 0:
        binding.kind = (uint8_t)(tensors ? BINDING_PARAM + draw_below(m, 5)
                                         : BINDING_TOKENS + draw_below(m, 3));
        break;
    case 1:
        if (tensors)
            binding.bundle = (uint16_t)draw_below(m, ir->bundle_count);
        break;
    case 2:
        *(tensors ? &binding.shard_group : &binding.gathered_group) = group;
        break;
    default:
        if (ir->mesh.axis_count > 0)
            binding.partial_axes ^= 1u << draw_below(m, ir->mesh.axis_count);
    }
    ir->buffer.binding[b] = ir_add_binding(ir, binding);
    snprintf(m->what, sizeof m->what,
             "buffer %u is bound to %s %u shard %u partial %u, not %s %u %u %u", b,
             binding_names[binding.kind], binding.bundle, binding.shard_group, binding.partial_axes,
             binding_names[old.kind], old.bundle, old.shard_group, old.partial_axes);
    return memcmp(&binding, &old, sizeof old) != 0;
}

/* Changes one number or the layout kind of the line 'tokens', so that the head describes another step than the
 * ops compute. */
static inline bool change_tokens_line(struct mutant *m)
{
    struct ir *ir = m->ir;
    struct token_layout *layout = &ir->layout;
    int64_t *sizes[] = {&ir->global_batch, &ir->micro_batch, &layout->sequence_tokens};
    uint32_t *counts[] = {&layout->cp, &layout->hp, &layout->chunk_count};
    uint32_t which = draw_below(m, 7);
    bool up = draw_below(m, 2) == 0;
    snprintf(m->what, sizeof m->what, "number %u of the line 'tokens' %s", which,
             up ? "doubled" : "halved");
    if (which < 3) {
        int64_t old = *sizes[which];
        *sizes[which] = up ? 2 * old : old / 2;
        return *sizes[which] > 0;
    }
    if (which < 6) {
        uint32_t old = *counts[which - 3];
        if (layout->tokens_by_chunk != NULL || old == 0)
            return false;
        *counts[which - 3] = up ? 2 * old : old / 2;
        return *counts[which - 3] > 0;
    }
    layout->kind =
        (uint8_t)((layout->kind + 1 + draw_below(m, LAYOUT_KIND_COUNT - 1)) % LAYOUT_KIND_COUNT);
    snprintf(m->what, sizeof m->what, "layout %s", layout_names[layout->kind]);
    /* with LAYOUT_DEALT no sequence has owners: the schedule can be verified, but not run */
    return layout->kind != LAYOUT_DEALT;
}

/* ---- the table ---- */

static const struct {
    const char *name;
    mutation *make;
    /* a fault of meaning (top of this file), in half of whose mutants waits, lifetimes and arena are derived anew;
     * false: a fault of order or memory */
    bool changes_meaning;
} mutations[] = {
    {"dropped wait", remove_wait, false},
    {"earlier wait", wait_for_earlier_op, false},
    {"early free", free_too_early, false},
    {"moved offset", overlap_another_buffer, false},
    {"skipped sync", skip_sync, false},
    {"skipped op", skip_op, true},
    {"skipped reduction", skip_reduction, true},
    {"repeated op", repeat_op, true},
    {"wrong order", move_op_earlier, true},
    {"shifted view", shift_view, true},
    {"wrong buffer", replace_buffer, true},
    {"wrong mask", change_attention_mask, true},
    {"wrong group", change_communication_group, true},
    {"wrong peer", change_message_peer, true},
    {"wrong reduction", change_all_reduce_operator, true},
    {"wrong shape", make_shape_of_an_op_wrong, true},
    {"wrong scalar", change_parameter_of_one_op, true},
    {"wrong scalars", change_parameter_of_all_ops, true},
    {"wrong scale", scale_gradients, true},
    {"wrong type", change_dtype, true},
    {"wrong label", change_op_phase_layer_or_step, true},
    {"wrong binding", change_binding, true},
    {"wrong head", change_tokens_line, true},
};
enum { MUTATIONS = ARRAY_LEN(mutations) };

#endif

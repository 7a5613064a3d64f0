#include "schedule/reserved/replay.h"

#include "base/arena.h"
#include "schedule/analysis/find_repeats.h"
#include "schedule/analysis/liveness.h"
#include "schedule/ir/id_map.h"

#include <stdlib.h>
#include <string.h>

/* The buffers of a role in the order of their first ops. */
struct buffers_by_first_op {
    const struct ir *ir;
    const struct role *role;
    uint32_t buffer_begin, buffer_end; /* the role's buffers lie in this range */
    /* [buffer - buffer_begin] the first op that touches the buffer; IR_NONE: none */
    uint32_t *first_op_of_buffer;
    /* the buffers that are not persistent, in the order of their first ops, and these ops */
    uint32_t *buffer, *op;
    uint32_t count;
};

static void find_buffer_range_of_role(struct buffers_by_first_op *c)
{
    const struct buffer_table *table = &c->ir->buffer;
    uint16_t role = (uint16_t)(c->role - c->ir->role);
    c->buffer_end = table->count;
    while (c->buffer_begin < c->buffer_end && table->role[c->buffer_begin] != role)
        c->buffer_begin++;
    while (c->buffer_end > c->buffer_begin && table->role[c->buffer_end - 1] != role)
        c->buffer_end--;
}

static void sort_by_first_op(struct buffers_by_first_op *c)
{
    const struct ir *ir = c->ir;
    size_t buffers = (size_t)(c->buffer_end - c->buffer_begin) + 1;
    c->first_op_of_buffer = heap_alloc(buffers, sizeof *c->first_op_of_buffer);
    c->buffer = heap_alloc(buffers, sizeof *c->buffer);
    c->op = heap_alloc(buffers, sizeof *c->op);
    memset(c->first_op_of_buffer, 0xff, buffers * sizeof *c->first_op_of_buffer);
    for (uint32_t op = c->role->op_begin; op < c->role->op_begin + c->role->op_count; op++) {
        uint32_t operands = (uint32_t)ir->op.read_count[op] + ir->op.write_count[op];
        for (uint32_t k = 0; k < operands; k++) {
            uint32_t buffer = ir_touched_buffer(ir, op, k), at = buffer - c->buffer_begin;
            if (at >= c->buffer_end - c->buffer_begin || c->first_op_of_buffer[at] != IR_NONE)
                continue;
            c->first_op_of_buffer[at] = op;
            if (liveness_is_persistent(ir, buffer))
                continue;
            c->buffer[c->count] = buffer;
            c->op[c->count++] = op;
        }
    }
}

/* Returns the op after whose issue a buffer is freed. first: the op with which it is allocated. */
static uint32_t last_op_that_holds_buffer(const struct buffers_by_first_op *c, uint32_t buffer,
                                          uint32_t first)
{
    const op_id *set = ir_free_set(c->ir, buffer);
    uint32_t last = first;
    for (uint32_t k = 0; k < c->ir->buffer.free_count[buffer]; k++)
        if (set[k].i > last && set[k].i - c->role->op_begin < c->role->op_count)
            last = set[k].i;
    return last;
}

/* True if the buffer holds a moment of AdamW or, in a recorded step, any state of an optimizer. */
static bool is_optimizer_moment(const struct ir *ir, uint32_t b)
{
    const uint16_t binding = ir->buffer.binding[b];
    return ir->buffer.category[b] == CATEGORY_OPTIMIZER &&
           (binding == IR_NONE16 || ir->binding[binding].kind != BINDING_MASTER);
}

/* Returns the first op that uses a moment; IR_NONE if none does. */
static uint32_t first_op_of_moments(const struct buffers_by_first_op *c)
{
    uint32_t first = IR_NONE;
    for (uint32_t b = c->buffer_begin; b < c->buffer_end; b++)
        if (is_optimizer_moment(c->ir, b) && liveness_is_persistent(c->ir, b) &&
            c->first_op_of_buffer[b - c->buffer_begin] < first)
            first = c->first_op_of_buffer[b - c->buffer_begin];
    return first;
}

/* Adds the persistent buffers that some op uses, either the moments or all others, as live from op `first` on. Where
 * the short list leaves out copies of a buffer's layer, the buffers of these copies are added too, layer by layer. */
static void add_persistent_buffers(struct replayed_buffer_lifetimes *r,
                                   const struct buffers_by_first_op *c, bool moments,
                                   uint32_t first)
{
    for (uint32_t b = c->buffer_begin, end; b < c->buffer_end; b = end) {
        uint32_t times = repeats_count_buffer_instances(c->ir, b);
        end = b + 1;
        while (times > 1 && end < c->buffer_end && repeats_count_buffer_instances(c->ir, end) > 1)
            end++;
        for (uint32_t copy = 0; copy < times; copy++)
            for (uint32_t i = b; i < end; i++)
                if (c->first_op_of_buffer[i - c->buffer_begin] != IR_NONE &&
                    liveness_is_separate_persistent(c->ir, i) &&
                    is_optimizer_moment(c->ir, i) == moments)
                    r->row[r->row_count++] = (struct replay_stay){i, first, IR_NONE, false, 0};
    }
}

/* Returns an array with an element for each buffer of the role, from c->buffer_begin on: its bundle, if each tensor of
 * the bundle is allocated by itself; IR_NONE16 if the buffer is one block. */
static uint16_t *bundle_by_buffer_if_split(const struct buffers_by_first_op *c)
{
    const struct ir *ir = c->ir;
    uint16_t *bundle = heap_alloc((size_t)(c->buffer_end - c->buffer_begin) + 1, sizeof *bundle);
    for (uint32_t b = c->buffer_begin; b < c->buffer_end; b++) {
        const uint16_t row = ir->buffer.binding[b];
        const struct binding *binding = row == IR_NONE16 ? NULL : &ir->binding[row];
        const bool part =
            binding != NULL && binding->kind == BINDING_GRAD && binding->shard_group != IR_NONE16;
        bundle[b - c->buffer_begin] = binding == NULL || part ? IR_NONE16 : binding->bundle;
    }
    for (uint32_t op = c->role->op_begin; op < c->role->op_begin + c->role->op_count; op++) {
        if (ir->op.kind[op] != WORK_CAST || ir->op.region[op] != REGION_WEIGHT_COLLECTIVES)
            continue;
        const uint32_t from = ir_touched_buffer(ir, op, 0), to = ir_touched_buffer(ir, op, 1);
        const uint16_t row = ir->buffer.binding[from];
        if (row != IR_NONE16 && ir->binding[row].kind == BINDING_PARAM &&
            ir->binding[row].shard_group == IR_NONE16)
            bundle[to - c->buffer_begin] = ir->binding[row].bundle;
    }
    return bundle;
}

/* Replaces the row of each buffer that bundle_by_buffer_if_split() finds in device memory by one row for each tensor of
 * its bundle. If the buffer is a rank's part of a bundle, each tensor takes the same share of it as of the whole
 * bundle. */
static void divide_rows_by_tensor(struct replayed_buffer_lifetimes *r,
                                  const struct buffers_by_first_op *c)
{
    const struct ir *ir = c->ir;
    uint16_t *apart = bundle_by_buffer_if_split(c);
    size_t count = 0, room = 0;
    struct replay_stay *row = NULL;
    for (uint32_t i = 0; i < r->row_count; i++) {
        const uint16_t b = apart[r->row[i].buffer - c->buffer_begin];
        const uint32_t tensors = b == IR_NONE16 ? 0 : ir->bundle[b].tensor_count;
        row = heap_grow(row, &room, count + tensors + 1, sizeof *row);
        if (tensors == 0 || ir->buffer.memory[r->row[i].buffer] != MEMORY_HBM) {
            row[count++] = r->row[i];
            continue;
        }
        const struct tensor *tensor = &ir->tensor[ir->bundle[b].tensor_begin];
        double all = 0;
        for (uint32_t t = 0; t < tensors; t++)
            all += (double)tensor[t].rows * (double)tensor[t].cols;
        uint64_t left = r->row[i].bytes;
        for (uint32_t t = 0; t < tensors && left > 0; t++) {
            const double share = (double)tensor[t].rows * (double)tensor[t].cols / all;
            uint64_t bytes = (uint64_t)(share * (double)r->row[i].bytes);
            if (t + 1 == tensors || bytes > left)
                bytes = left;
            left -= bytes;
            row[count] = r->row[i];
            row[count].bytes = bytes;
            count += bytes > 0;
        }
    }
    free(apart);
    free(r->row);
    r->row = row;
    r->row_count = (uint32_t)count;
}

void replay_list_buffers_of_role(struct replayed_buffer_lifetimes *r, const struct ir *ir,
                                 const struct role *role, struct replay_options how)
{
    struct buffers_by_first_op c = {.ir = ir, .role = role};
    const struct repeats *repeats = &ir->repeats;
    uint32_t rows, begin = repeats_op_id_in_whole_list(repeats, role->op_begin);
    find_buffer_range_of_role(&c);
    sort_by_first_op(&c);
    struct whole_list_row *row = repeats_expand_rows_to_whole_list(
        repeats, (uint32_t)(role - ir->role), c.op, c.count, &rows);
    *r = (struct replayed_buffer_lifetimes){
        .ir = ir,
        .role = (uint32_t)(role - ir->role),
        .first_op = begin,
        .op_count = repeats_whole_op_count(repeats, (uint32_t)(role - ir->role), role->op_count)};
    size_t held = 0;
    for (uint32_t b = c.buffer_begin; b < c.buffer_end; b++)
        held += liveness_is_separate_persistent(ir, b) ? repeats_count_buffer_instances(ir, b) : 0;
    r->row = heap_alloc(held + rows + 1, sizeof *r->row);
    uint32_t moments = how.moments_allocated_in_step ? first_op_of_moments(&c) : IR_NONE;
    const uint32_t late =
        moments == IR_NONE ? 0 : repeats_op_id_in_whole_list(repeats, moments) - begin;
    add_persistent_buffers(r, &c, false, 0);
    if (moments == IR_NONE)
        add_persistent_buffers(r, &c, true, 0);
    for (uint32_t i = 0; i < rows; i++) {
        if (moments != IR_NONE && row[i].copy == 0 && c.op[row[i].row] >= moments) {
            add_persistent_buffers(r, &c, true, late);
            moments = IR_NONE;
        }
        /* From the third copy on, first_op and last_op are extrapolated from the rows of the two copies before, since
         * the distance in ops between copies stays the same. */
        if (row[i].copy > 2) {
            const struct replay_stay *b = &r->row[r->row_count - row[i].rows_since_previous_copy],
                                     *a = b - row[i].rows_since_previous_copy;
            r->row[r->row_count++] =
                (struct replay_stay){b->buffer, 2 * b->first_op - a->first_op,
                                     2 * b->last_op - a->last_op, b->is_gathered, 0};
            continue;
        }
        uint32_t first = c.op[row[i].row], buffer = c.buffer[row[i].row];
        uint32_t last = last_op_that_holds_buffer(&c, buffer, first);
        bool gathers = ir->op.kind[first] == WORK_ALL_GATHER &&
                       ir->op.region[first] == REGION_WEIGHT_COLLECTIVES;
        r->row[r->row_count++] = (struct replay_stay){
            buffer, repeats_whole_list_op_id_of_ref(repeats, first, row[i].copy, first) - begin,
            repeats_whole_list_op_id_of_ref(repeats, first, row[i].copy, last) - begin, gathers, 0};
    }
    if (moments != IR_NONE)
        add_persistent_buffers(r, &c, true, late);
    for (uint32_t i = 0; i < r->row_count; i++)
        r->row[i].bytes = ir_buffer_bytes(ir, (buffer_id){r->row[i].buffer});
    if (how.allocates_each_tensor_alone)
        divide_rows_by_tensor(r, &c);
    free(row);
    free(c.first_op_of_buffer);
    free(c.buffer);
    free(c.op);
}

void replay_release(struct replayed_buffer_lifetimes *r)
{
    free(r->row);
    *r = (struct replayed_buffer_lifetimes){0};
}

/* The copies that the short list leaves out of a run of iterations, in ops counted as in struct replay. first_op: the
 * first op of the first copy. end_op: the op after all iterations of the run. */
struct left_out_iteration_copies {
    uint32_t first_op, ops_per_copy, count, end_op;
};

enum { STATES = 16 }; /* repetitions with a period of fewer copies than this are found */

/* The state of a pass over the ops. Rows whose memory is freed after the same op form a list: freed_buffers[op] is 1 +
 * its first row, and next_freed[row] is 1 + the row that follows; 0 ends the list. block[row] is the allocator's block
 * of a row; its owner is 1 + the row. */
struct replay_pass {
    const struct replayed_buffer_lifetimes *r;
    struct caching_allocator *a;
    bool allocates_gathers_in_own_pool;
    uint32_t *freed_buffers, *next_freed, *block;
    /* number of the run of the short list whose copies come next */
    uint32_t next_run_with_left_out_copies;
    struct left_out_iteration_copies copies;
    /* the op with which the next copy begins; IR_NONE: there is none */
    uint32_t first_op_of_next_left_out_copy;
    /* hashes of the allocator's state (hash_of_allocator_state_at()) before the last STATES copies of this run: before
     * copy n at n modulo STATES */
    uint64_t state_hashes_before_copies[STATES];
};

/* ---- iterations that repeat ---- */

/* Returns the op after which a block is freed; IR_NONE: it stays. */
static uint32_t last_op_of_block(const struct replay_pass *pass, const struct caching_block *b)
{
    return b->owner > 0 ? pass->r->row[b->owner - 1].last_op : IR_NONE;
}

/* Returns a hash of everything that decides what the allocator does from op `op` on: its blocks, and the ops after
 * which those in use are freed. These ops are counted from `op` if they are before `end`. */
static uint64_t hash_of_allocator_state_at(const struct replay_pass *pass, uint32_t op,
                                           uint32_t end)
{
    const struct caching_allocator *a = pass->a;
    uint64_t state = hash_word(a->reserved_bytes, a->used_bytes);
    for (int pool = 0; pool < CACHING_POOL_COUNT; pool++) {
        state = hash_word(state, a->next_address_by_pool[pool]);
        state = hash_word(state, a->end_block_by_pool_plus_1[pool] > 0
                                     ? a->block[a->end_block_by_pool_plus_1[pool] - 1].address
                                     : 1);
    }
    for (uint32_t i = 0; i < a->count; i++) {
        const struct caching_block *b = &a->block[i];
        uint32_t last = b->is_used ? last_op_of_block(pass, b) : 0;
        uint64_t flags = b->is_used | (uint64_t)(b->block_before != IR_NONE) << 1 |
                         (uint64_t)(b->block_after != IR_NONE) << 2 | (uint64_t)(last < end) << 3 |
                         (uint64_t)b->pool << 4;
        uint64_t goes = b->is_used && last < end ? last - op : last;
        if (b->size > 0) /* the order of the blocks' rows must not matter */
            state += hash_word(hash_word(hash_word(goes << 8 | flags, b->address), b->size), 1);
    }
    return state;
}

/* Delays by `ops` ops the freeing of each block that is to be freed at op `op` or later, but before op `end`. The first
 * pass empties the lists of the ops from which blocks move, and the second adds the blocks to other lists, which may be
 * among those emptied. */
static void delay_frees_of_range(struct replay_pass *pass, uint32_t op, uint32_t end, uint32_t ops)
{
    for (int moves = 0; moves < 2; moves++)
        for (uint32_t i = 0; i < pass->a->count; i++) {
            const struct caching_block *b = &pass->a->block[i];
            uint32_t last = b->is_used ? last_op_of_block(pass, b) : IR_NONE;
            if (last < op || last >= end)
                continue;
            if (moves == 0) {
                pass->freed_buffers[last] = 0;
                continue;
            }
            pass->next_freed[b->owner - 1] = pass->freed_buffers[last + ops];
            pass->freed_buffers[last + ops] = b->owner;
        }
}

/* Prepares the pass for the copies of the role's next run, the first one whose number is at least `run`. There may be
 * none. */
static void set_next_run_with_left_out_copies(struct replay_pass *pass, uint32_t run)
{
    const struct repeats *repeats = &pass->r->ir->repeats;
    while (run < repeats->run_count && repeats->run[run].role != pass->r->role)
        run++;
    pass->next_run_with_left_out_copies = run;
    pass->first_op_of_next_left_out_copy = IR_NONE;
    if (run == repeats->run_count)
        return;
    const struct repeat_run *at = &repeats->run[run];
    uint32_t begin = at->first_op + at->ops_left_out_before - pass->r->first_op;
    pass->copies = (struct left_out_iteration_copies){
        begin + at->gap_before_iteration * at->ops_per_iteration, at->ops_per_iteration,
        repeats->copies_per_gap,
        begin + (at->iteration_count + repeats->copies_per_gap) * at->ops_per_iteration};
    pass->first_op_of_next_left_out_copy = pass->copies.first_op;
}

/* Skips copies of an iteration in which the allocator would only repeat what it did. It is called before each copy and
 * after the last. Each copy allocates and frees the same buffers as the one before it, ops_per_copy ops later. So if
 * the allocator's state is that of `period` copies ago, it comes back every `period` copies until the last. It cannot
 * come back if each copy leaves a buffer that is freed only after the run. Returns the op to go on with: the one after
 * the skipped copies; `op` if none are skipped. */
static uint32_t skip_repeated_iteration_copies(struct replay_pass *pass, uint32_t op)
{
    const struct left_out_iteration_copies *run = &pass->copies;
    uint32_t number = (op - run->first_op) / run->ops_per_copy, left = run->count - number;
    uint64_t state = hash_of_allocator_state_at(pass, op, run->end_op);
    for (uint32_t period = 1; period < STATES && period <= number; period++) {
        uint32_t ops = left / period * period * run->ops_per_copy;
        if (pass->state_hashes_before_copies[(number - period) % STATES] != state)
            continue;
        delay_frees_of_range(pass, op, run->end_op, ops);
        set_next_run_with_left_out_copies(pass, pass->next_run_with_left_out_copies + 1);
        return op + ops;
    }
    pass->state_hashes_before_copies[number % STATES] = state;
    pass->first_op_of_next_left_out_copy = op + run->ops_per_copy;
    if (left == 0)
        set_next_run_with_left_out_copies(pass, pass->next_run_with_left_out_copies + 1);
    return op;
}

/* ---- the replay of a step ---- */

static void replay_step(struct replay_pass *pass, enum memory memory, bool first_step)
{
    const struct replayed_buffer_lifetimes *r = pass->r;
    set_next_run_with_left_out_copies(pass, 0);
    memset(pass->freed_buffers, 0, ((size_t)r->op_count + 1) * sizeof *pass->freed_buffers);
    for (uint32_t i = 0, op = 0; i < r->row_count || op < r->op_count;) {
        const struct replay_stay *row = &r->row[i];
        if (op == pass->first_op_of_next_left_out_copy) {
            op = skip_repeated_iteration_copies(pass, op);
            while (i < r->row_count && r->row[i].first_op < op)
                i++;
            continue;
        }
        if (op < (i < r->row_count ? row->first_op : r->op_count)) {
            for (uint32_t k = pass->freed_buffers[op]; k != 0; k = pass->next_freed[k - 1])
                caching_free(pass->a, pass->block[k - 1]);
            op++;
            continue;
        }
        i++;
        if (r->ir->buffer.memory[row->buffer] != memory || (row->last_op == IR_NONE && !first_step))
            continue;
        bool apart = pass->allocates_gathers_in_own_pool && row->is_gathered;
        pass->block[i - 1] =
            caching_alloc_on_stream(pass->a, apart ? CACHING_GATHER : CACHING_COMPUTE, row->bytes);
        pass->a->block[pass->block[i - 1]].owner = i;
        if (row->last_op == IR_NONE)
            continue;
        pass->next_freed[i - 1] = pass->freed_buffers[row->last_op];
        pass->freed_buffers[row->last_op] = i;
    }
}

void replay_steps_in_allocator(const struct replayed_buffer_lifetimes *r, enum memory memory,
                               bool allocates_gathers_in_own_pool, struct caching_allocator *a)
{
    struct replay_pass pass = {
        .r = r,
        .a = a,
        .allocates_gathers_in_own_pool = allocates_gathers_in_own_pool,
        .freed_buffers = heap_alloc((size_t)r->op_count + 1, sizeof *pass.freed_buffers),
        .next_freed = heap_alloc((size_t)r->row_count + 1, sizeof *pass.next_freed),
        .block = heap_alloc((size_t)r->row_count + 1, sizeof *pass.block)};
    for (int step = 0; step < REPLAY_STEPS && !a->has_exceeded_limit; step++)
        replay_step(&pass, memory, step == 0);
    free(pass.freed_buffers);
    free(pass.next_freed);
    free(pass.block);
}

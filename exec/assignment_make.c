/* Makes an assignment: checks the schedule, and finds each rank's role, groups, guards and rows. */
#include "exec/assignment.h"

#include "exec/operands.h"
#include "models/states.h"

#include "schedule/ir/visible.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { OFFSET_ALIGNMENT = 16 };

bool assignment_is_collective(enum work_kind kind)
{
    return kind >= WORK_ALL_TO_ALL && kind <= WORK_SHIFT;
}

static enum status fill_rank_tables(struct assignment *assignment, const char *name,
                                    struct diag *diag)
{
    const struct ir *ir = assignment->ir;
    size_t ranks = assignment->ranks;
    assignment->role_of_rank =
        arena_array(&assignment->arena, ranks, sizeof *assignment->role_of_rank);
    assignment->passes_by_rank_and_guard = arena_array(
        &assignment->arena, ranks * ir->guard_count, sizeof *assignment->passes_by_rank_and_guard);
    assignment->instance_by_rank_and_group =
        arena_array(&assignment->arena, ranks * ir->group_count,
                    sizeof *assignment->instance_by_rank_and_group);
    assignment->index_in_group_by_rank = arena_array(&assignment->arena, ranks * ir->group_count,
                                                     sizeof *assignment->index_in_group_by_rank);
    assignment->member_count_by_group =
        arena_array(&assignment->arena, ir->group_count, sizeof *assignment->member_count_by_group);
    assignment->instance_count_by_group = arena_array(&assignment->arena, ir->group_count,
                                                      sizeof *assignment->instance_count_by_group);
    for (uint32_t g = 0; g < ir->group_count; g++) {
        assignment->member_count_by_group[g] = group_rank_count(&ir->mesh, &ir->group[g]);
        assignment->instance_count_by_group[g] = group_instance_count(&ir->mesh, &ir->group[g]);
    }
    for (uint32_t rank = 0; rank < assignment->ranks; rank++) {
        uint32_t roles = 0;
        for (uint32_t r = 0; r < ir->role_count; r++)
            if (role_has_rank(&ir->mesh, &ir->role[r], rank)) {
                assignment->role_of_rank[rank] = (uint16_t)r;
                roles++;
            }
        if (roles != 1)
            return diag_error(diag, (struct loc){name, 0, 0}, STATUS_BAD_INPUT,
                              "rank %" PRIu32 " is in %" PRIu32 " roles; every rank runs one", rank,
                              roles);
        for (uint32_t g = 0; g < ir->guard_count; g++)
            assignment->passes_by_rank_and_guard[(size_t)rank * ir->guard_count + g] =
                guard_passes(&ir->mesh, ir->group, &ir->guard[g], rank);
        for (uint32_t g = 0; g < ir->group_count; g++) {
            size_t at = (size_t)rank * ir->group_count + g;
            if (!group_find_member(&ir->mesh, &ir->group[g], rank,
                                   &assignment->instance_by_rank_and_group[at],
                                   &assignment->index_in_group_by_rank[at]))
                assignment->instance_by_rank_and_group[at] = IR_NONE;
        }
    }
    return STATUS_OK;
}

static enum status check_buffers(const struct ir *ir, const char *name, struct diag *diag)
{
    const struct loc at = {name, 0, 0};
    for (uint32_t b = 0; b < ir->buffer.count; b++) {
        uint64_t offset = ir->buffer.offset[b];
        uint64_t room = ir->planned_bytes[ir->buffer.memory[b]];
        char buffer[64];
        /* the buffer has no planned offset; check_views() refuses ops that use such a buffer */
        if (offset == UINT64_MAX)
            continue;
        ir_buffer_name(ir, (buffer_id){b}, buffer, sizeof buffer);
        if (offset % OFFSET_ALIGNMENT != 0)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "buffer %s lies at byte %" PRIu64 " of its arena; a multiple of %d "
                              "would do",
                              buffer, offset, OFFSET_ALIGNMENT);
        if (offset > room || ir_buffer_bytes(ir, (buffer_id){b}) > room - offset)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "buffer %s, %" PRIu64 " bytes at byte %" PRIu64
                              ", ends after its arena of %" PRIu64 " bytes",
                              buffer, ir_buffer_bytes(ir, (buffer_id){b}), offset, room);
    }
    return STATUS_OK;
}

/* True if AdamW may keep the masters of parameters in this buffer: the buffer is bound to masters, or to a rank's part
 * of sharded parameters. */
static bool is_master_weight_buffer(const struct ir *ir, uint32_t buffer)
{
    const uint16_t binding = ir->buffer.binding[buffer];
    if (binding == IR_NONE16)
        return false;
    const struct binding *of = &ir->binding[binding];
    return of->kind == BINDING_MASTER ||
           (of->kind == BINDING_PARAM && of->shard_group != IR_NONE16);
}

static enum status check_views(const struct ir *ir, uint32_t op, const char *name,
                               struct diag *diag)
{
    uint32_t reads = ir->op.read_count[op], operands = reads + ir->op.write_count[op];
    if (ir->op.kind[op] == WORK_OPAQUE)
        return diag_error(diag, (struct loc){name, 0, 0}, STATUS_BAD_INPUT,
                          "op %" PRIu32 " is opaque: operators of recorded programs are simulated "
                          "and never executed; longhaul predict takes this file",
                          op);
    if (ir->op.kind[op] == WORK_QUANTISE &&
        is_master_weight_buffer(ir, ir_touched_buffer(ir, op, 0)))
        return diag_error(diag, (struct loc){name, 0, 0}, STATUS_BAD_INPUT,
                          "op %" PRIu32 " quantises masters of the optimizer: quantised weights "
                          "(--primary-weights quantised) are predicted and never executed; run "
                          "takes --primary-weights 16bit",
                          op);
    for (uint32_t k = 0; k < operands; k++) {
        struct view view = k < reads ? ir_read_view(ir, op, k) : ir_write_view(ir, op, k - reads);
        char buffer[64];
        ir_buffer_name(ir, view.buffer, buffer, sizeof buffer);
        if (ir->buffer.offset[view.buffer.i] == UINT64_MAX)
            return diag_error(diag, (struct loc){name, 0, 0}, STATUS_BAD_INPUT,
                              "op %" PRIu32 " uses buffer %s, which has no place in an arena; "
                              "plan the arenas first",
                              op, buffer);
        uint64_t elements = ir_buffer_elements(ir, view.buffer);
        if (view.count == 0)
            return diag_error(diag, (struct loc){name, 0, 0}, STATUS_BAD_INPUT,
                              "op %" PRIu32 " names 0 elements of buffer %s as an operand; it must "
                              "name at least 1",
                              op, buffer);
        if (view.begin > elements || view.count > elements - view.begin)
            return diag_error(diag, (struct loc){name, 0, 0}, STATUS_BAD_INPUT,
                              "op %" PRIu32 " uses %" PRIu64 " elements from element %" PRIu64
                              " on of buffer %s, which has %" PRIu64,
                              op, view.count, view.begin, buffer, elements);
    }
    return STATUS_OK;
}

static enum status check_waits(const struct ir *ir, const struct role *role, uint32_t op,
                               const char *name, struct diag *diag)
{
    for (uint32_t k = 0; k < ir->op.wait_count[op]; k++) {
        uint32_t wait = ir->wait[ir->op.wait_begin[op] + k].i;
        if (wait < role->op_begin || wait - role->op_begin >= role->op_count)
            return diag_error(diag, (struct loc){name, 0, 0}, STATUS_BAD_INPUT,
                              "op %" PRIu32 " waits for op %" PRIu32
                              ", which role %s does not have",
                              op, wait, role->name);
    }
    return STATUS_OK;
}

static enum status check_group_members(const struct assignment *assignment, const struct role *role,
                                       uint32_t op, uint32_t group, const char *name,
                                       struct diag *diag)
{
    const struct ir *ir = assignment->ir;
    const struct loc at = {name, 0, 0};
    const struct work *work = ir_work(ir, op);
    if (group >= ir->group_count)
        return diag_error(diag, at, STATUS_BAD_INPUT, "op %" PRIu32 " names no group", op);
    bool rooted =
        work->kind == WORK_REDUCE || work->kind == WORK_BROADCAST || work->kind == WORK_SCATTER;
    if (rooted && work->broadcast.root >= assignment->member_count_by_group[group])
        return diag_error(
            diag, at, STATUS_BAD_INPUT,
            "op %" PRIu32 " has root=%" PRId64 ", but group %s has only %" PRIu32 " members", op,
            work->broadcast.root, ir->group[group].name, assignment->member_count_by_group[group]);
    for (uint32_t rank = 0; rank < assignment->ranks; rank++)
        if (&ir->role[assignment->role_of_rank[rank]] == role &&
            assignment_op_works_on_rank(assignment, rank, op) &&
            assignment_group_instance(assignment, rank, group) == IR_NONE)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "op %" PRIu32 " is in group %s, in which rank %" PRIu32 " is not", op,
                              ir->group[group].name, rank);
    return STATUS_OK;
}

/* Numbers the collectives and the barriers of each group in the list of one role, and checks the role's ops. */
static enum status number_collectives_and_check_ops(struct assignment *assignment,
                                                    const struct role *role, const char *name,
                                                    struct diag *diag)
{
    const struct ir *ir = assignment->ir;
    uint32_t *calls = heap_zalloc(2 * (size_t)ir->group_count + 1, sizeof *calls);
    uint32_t *barriers = calls + ir->group_count;
    enum status status = STATUS_OK;
    for (uint32_t k = 0; k < role->op_count && status == STATUS_OK; k++) {
        uint32_t op = role->op_begin + k, members = 0;
        const struct work *work = ir_work(ir, op);
        int64_t group = work_comm_group(work);
        if (group >= 0) {
            status = check_group_members(assignment, role, op, (uint32_t)group, name, diag);
            if (status != STATUS_OK)
                break;
            members = assignment->member_count_by_group[group];
            if (assignment_is_collective(work->kind))
                assignment->collective_number_by_op[op] = calls[group]++;
            else if (work->kind == WORK_BARRIER)
                assignment->collective_number_by_op[op] = barriers[group]++;
        }
        if (work->kind == WORK_ADAMW && states_have_8bit_moments((enum states)work->adamw.states)) {
            status = diag_error(diag, (struct loc){name, 0, 0}, STATUS_BAD_INPUT,
                                "op %" PRIu32 " (adamw) keeps its moments in 8 bits, which no "
                                "backend computes; a schedule of --states fp32 or bf16 would do",
                                op);
            break;
        }
        int64_t part = work_sharding_group(work);
        if (part >= 0)
            status = check_group_members(assignment, role, op, (uint32_t)part, name, diag);
        const bool sinks = work->kind == WORK_SINK || work->kind == WORK_SINK_BACKWARD;
        if (status == STATUS_OK && sinks &&
            work->sink.sinks / (part >= 0 ? assignment->member_count_by_group[part] : 1) !=
                work->sink.heads)
            status = diag_error(diag, (struct loc){name, 0, 0}, STATUS_BAD_INPUT,
                                "op %" PRIu32 " (%s) cannot be executed: its heads are not the "
                                "rank's share of the sinks; longhaul check says more",
                                op, work_kind_info((enum work_kind)work->kind)->name);
        if (status == STATUS_OK)
            status = check_views(ir, op, name, diag);
        if (status == STATUS_OK)
            status = check_waits(ir, role, op, name, diag);
        if (status == STATUS_OK)
            status = operands_check(ir, op, members, name, diag);
    }
    for (uint32_t g = 0; g < ir->group_count; g++) {
        assignment->max_collectives_of_role_by_group[g] =
            calls[g] > assignment->max_collectives_of_role_by_group[g]
                ? calls[g]
                : assignment->max_collectives_of_role_by_group[g];
        assignment->max_barriers_of_role_by_group[g] =
            barriers[g] > assignment->max_barriers_of_role_by_group[g]
                ? barriers[g]
                : assignment->max_barriers_of_role_by_group[g];
    }
    free(calls);
    return status;
}

/* Sets reads_softmax_by_op of each CROSS_ENTROPY_BACKWARD whose first operand is the buffer in which some CROSS_ENTROPY
 * stores its softmax. The dtype would not suffice, since logits may be fp32 as a softmax is. */
static void find_softmax_readers(struct assignment *assignment)
{
    const struct ir *ir = assignment->ir;
    bool *is_softmax = heap_zalloc((size_t)ir->buffer.count + 1, sizeof *is_softmax);
    assignment->reads_softmax_by_op =
        arena_array(&assignment->arena, ir->op.count, sizeof *assignment->reads_softmax_by_op);
    for (uint32_t op = 0; op < ir->op.count; op++)
        if (ir->op.kind[op] == WORK_CROSS_ENTROPY && ir->op.write_count[op] > 2) {
            uint32_t buffer = ir_write_view(ir, op, 2).buffer.i;
            is_softmax[buffer] = ir->buffer.dtype[buffer] != DTYPE_U8;
        }
    for (uint32_t op = 0; op < ir->op.count; op++)
        if (ir->op.kind[op] == WORK_CROSS_ENTROPY_BACKWARD)
            assignment->reads_softmax_by_op[op] = is_softmax[ir_read_view(ir, op, 0).buffer.i];
    free(is_softmax);
}

/* Finds the elements that each rank's SQUARE_SUM adds. If its operand is a whole buffer that is bound to tensors, it
 * adds the elements of the tensors but not the padding, and each run of elements has the number of ranks that hold it,
 * so that the sum over ranks counts an element once. Otherwise it adds all elements of the operand. */
static void find_square_sum_runs(struct assignment *assignment)
{
    const struct ir *ir = assignment->ir;
    uint32_t rows = 0;
    assignment->square_sum_runs_index_by_op = arena_array(
        &assignment->arena, ir->op.count, sizeof *assignment->square_sum_runs_index_by_op);
    for (uint32_t op = 0; op < ir->op.count; op++)
        assignment->square_sum_runs_index_by_op[op] =
            ir->op.kind[op] == WORK_SQUARE_SUM ? rows++ : IR_NONE;
    assignment->square_sum_runs = arena_array(&assignment->arena, (size_t)rows * assignment->ranks,
                                              sizeof *assignment->square_sum_runs);
    for (uint32_t op = 0; op < ir->op.count && rows > 0; op++) {
        if (assignment->square_sum_runs_index_by_op[op] == IR_NONE)
            continue;
        struct view view = ir_read_view(ir, op, 0);
        int64_t over = ir_work(ir, op)->square_sum.over;
        uint16_t group = over > 0 ? (uint16_t)(over - 1) : IR_NONE16;
        bool whole = view.begin == 0 && view.count == ir_buffer_elements(ir, view.buffer);
        for (uint32_t rank = 0; rank < assignment->ranks; rank++) {
            struct assignment_square_sum_runs *to =
                &assignment->square_sum_runs[(size_t)assignment->square_sum_runs_index_by_op[op] *
                                                 assignment->ranks +
                                             rank];
            if (assignment->role_of_rank[rank] != ir->buffer.role[view.buffer.i])
                continue;
            to->run_count =
                whole ? bindings_list_copied_runs(ir, rank, view.buffer.i, group, NULL) : 1;
            to->runs = arena_array(&assignment->arena, (size_t)to->run_count + 1, sizeof *to->runs);
            to->runs[0] = (struct copied_run){0, view.count, 1};
            if (whole)
                bindings_list_copied_runs(ir, rank, view.buffer.i, group, to->runs);
        }
    }
}

/* ---- attention over documents, and the rows that context ranks exchange for it ---- */

static enum status list_attention_pieces(struct assignment *assignment, const char *name,
                                         struct diag *diag)
{
    const struct ir *ir = assignment->ir;
    struct visible_pieces pieces = {0};
    uint32_t rows = 0;
    assignment->attention_pieces_index_by_shape = arena_array(
        &assignment->arena, ir->shape_count, sizeof *assignment->attention_pieces_index_by_shape);
    for (uint32_t s = 0; s < ir->shape_count; s++)
        assignment->attention_pieces_index_by_shape[s] =
            work_pairs_depend_on_rank(&ir->shape[s]) ? rows++ : IR_NONE;
    assignment->attention_pieces = arena_array(&assignment->arena, (size_t)rows * assignment->ranks,
                                               sizeof *assignment->attention_pieces);
    for (uint32_t s = 0; s < ir->shape_count; s++) {
        if (assignment->attention_pieces_index_by_shape[s] == IR_NONE)
            continue;
        if (visible_why_schedule_unfit(ir) != NULL ||
            visible_why_work_unfit(ir, &ir->shape[s]) != NULL) {
            visible_release(&pieces);
            return diag_error(
                diag, (struct loc){name, 0, 0}, STATUS_BAD_INPUT,
                "an attention over documents does not fit the sequences of the schedule; "
                "longhaul check says which");
        }
        for (uint32_t rank = 0; rank < assignment->ranks; rank++) {
            struct assignment_attention_pieces *to =
                &assignment
                     ->attention_pieces[(size_t)assignment->attention_pieces_index_by_shape[s] *
                                            assignment->ranks +
                                        rank];
            visible_find_pieces(ir, &ir->shape[s], rank, &pieces);
            to->piece_count = pieces.count;
            to->pieces = arena_array(&assignment->arena, pieces.count + 1u, sizeof *to->pieces);
            if (pieces.count > 0)
                memcpy(to->pieces, pieces.piece, pieces.count * sizeof *to->pieces);
        }
    }
    visible_release(&pieces);
    return STATUS_OK;
}

/* Lists the rows that each rank moves in every shape that moves rows between context ranks (schedule/ir/row_use.h). */
static enum status list_exchanged_rows(struct assignment *assignment, const char *name,
                                       struct diag *diag)
{
    const struct ir *ir = assignment->ir;
    struct row_use use;
    uint32_t count = 0;
    assignment->exchanged_rows_index_by_shape = arena_array(
        &assignment->arena, ir->shape_count, sizeof *assignment->exchanged_rows_index_by_shape);
    for (uint32_t s = 0; s < ir->shape_count; s++)
        assignment->exchanged_rows_index_by_shape[s] =
            row_use_if_work_moves_rows(&ir->shape[s], &use) ? count++ : IR_NONE;
    assignment->exchanged_rows = arena_array(&assignment->arena, (size_t)count * assignment->ranks,
                                             sizeof *assignment->exchanged_rows);
    for (uint32_t s = 0; s < ir->shape_count; s++) {
        if (!row_use_if_work_moves_rows(&ir->shape[s], &use))
            continue;
        if (visible_why_schedule_unfit(ir) != NULL ||
            visible_why_work_unfit(ir, &ir->shape[s]) != NULL)
            return diag_error(diag, (struct loc){name, 0, 0}, STATUS_BAD_INPUT,
                              "an op moves rows that ranks need, and does not fit the sequences of "
                              "the schedule; longhaul check says which");
        for (uint32_t rank = 0; rank < assignment->ranks; rank++) {
            struct assignment_exchanged_rows *rows =
                &assignment->exchanged_rows[(size_t)assignment->exchanged_rows_index_by_shape[s] *
                                                assignment->ranks +
                                            rank];
            rows->peer_count = ir->layout.cp;
            row_use_list_sent_and_received(ir, &use, rank, &rows->sent, &rows->received,
                                           &rows->held);
        }
        assignment->exchanged_rows_shape_count = assignment->exchanged_rows_index_by_shape[s] + 1;
    }
    return STATUS_OK;
}

/* ---- rows of experts ---- */

/* Returns a copy of the shape with `rows` as its number of rows, for the kinds that it lists; other kinds are copied as
 * they are. The shape itself has at least as many rows as the rank with the most. */
static struct work work_with_row_count(const struct work *shape, int64_t rows)
{
    struct work work = *shape;
    if (work.kind == WORK_MATMUL && work.matmul.form == MATMUL_TN)
        work.matmul.k = rows;
    else if (work.kind == WORK_MATMUL)
        work.matmul.m = rows;
    else if (work.kind == WORK_COLUMN_SUM)
        work.column_sum.rows = rows;
    else if (work.kind == WORK_QUANTISE)
        work.quantise.rows = rows;
    else if (work.kind == WORK_SWIGLU || work.kind == WORK_SWIGLU_BACKWARD)
        work.activation.rows = rows;
    else if (work.kind == WORK_PACK || work.kind == WORK_UNPACK)
        work.pack.rows = rows;
    return work;
}

int64_t assignment_group_rows_end(const struct routed_rows *routed, int64_t total, int64_t groups,
                                  int64_t g, int64_t first)
{
    return routed != NULL
               ? first + routed->ranks * routed->rows_per_rank_by_expert[routed->first_expert + g]
               : work_row_group_first_row(total, groups, g + 1);
}

int64_t assignment_rows_per_rank_of_member(const struct routed_rows *routed, uint32_t member)
{
    const uint32_t own = routed->experts / routed->ranks;
    int64_t rows = 0;
    for (uint32_t e = 0; e < own; e++)
        rows += routed->rows_per_rank_by_expert[member * own + e];
    return rows;
}

/* The distribution of one rank's copies of tokens over experts, if routing is not even. It is the same on every
 * rank. */
struct token_copies_by_expert {
    const struct routing *routing;
    int64_t tokens; /* the tokens of a rank */
    /* [experts] the number of copies that the rank sends to the expert; the first slot of these copies; and the number
     * of rows that the expert computes for the rank: fewer than the copies if it drops some, more if it pads */
    int64_t *expert_copies, *first_slot, *computed_rows;
    uint32_t ranks;
};

/* True if the expert keeps the copy with this index, from 0, among those that a rank sends to it; false if it drops the
 * copy. */
static bool expert_keeps_copy(const struct token_copies_by_expert *copies_by_expert,
                              uint32_t expert, int64_t index)
{
    return routing_keeps_copy(copies_by_expert->routing, copies_by_expert->tokens,
                              copies_by_expert->expert_copies[expert],
                              copies_by_expert->first_slot[expert], index);
}

static struct token_copies_by_expert find_token_copies_by_expert(struct arena *arena,
                                                                 const struct routing *routing,
                                                                 const struct work *shape,
                                                                 uint32_t ranks)
{
    struct token_copies_by_expert copies_by_expert = {
        routing, work_routed_copies_per_rank(shape) / routing->copies_per_token, NULL, NULL, NULL,
        ranks};
    const uint32_t list = (uint32_t)work_routing_list_index(shape);
    copies_by_expert.expert_copies =
        arena_array(arena, routing->expert_count, sizeof *copies_by_expert.expert_copies);
    copies_by_expert.first_slot =
        arena_array(arena, routing->expert_count, sizeof *copies_by_expert.first_slot);
    copies_by_expert.computed_rows =
        arena_array(arena, routing->expert_count, sizeof *copies_by_expert.computed_rows);
    routing_deal_copies(routing, list, copies_by_expert.tokens, copies_by_expert.expert_copies,
                        copies_by_expert.first_slot);
    routing_rows_of_experts(routing, list, copies_by_expert.tokens, copies_by_expert.computed_rows);
    return copies_by_expert;
}

/* Returns an array with the expert of each slot (a copy of a token). */
static int32_t *experts_of_slots(struct arena *arena,
                                 const struct token_copies_by_expert *copies_by_expert)
{
    int32_t *expert_of_slot = arena_array(
        arena, (size_t)(copies_by_expert->tokens * copies_by_expert->routing->copies_per_token),
        sizeof *expert_of_slot);
    for (uint32_t e = 0; e < copies_by_expert->routing->expert_count; e++)
        for (int64_t i = 0; i < copies_by_expert->expert_copies[e]; i++)
            expert_of_slot[copies_by_expert->first_slot[e] + i] = (int32_t)e;
    return expert_of_slot;
}

/* Numbers the tokens of a rank that have an expert on member k, from 0 on. Sets position[t] to the number of token t,
 * or to -1 if the token has no expert there. Returns how many tokens have one. */
static int64_t index_tokens_of_member(const struct token_copies_by_expert *copies_by_expert,
                                      uint32_t k, int64_t *position)
{
    const uint32_t own = copies_by_expert->routing->expert_count / copies_by_expert->ranks;
    int64_t tokens = 0;
    for (int64_t t = 0; t < copies_by_expert->tokens; t++)
        position[t] = -1;
    for (uint32_t e = k * own; e < (k + 1) * own; e++)
        for (int64_t i = 0; i < copies_by_expert->expert_copies[e]; i++)
            position[(copies_by_expert->first_slot[e] + i) % copies_by_expert->tokens] = 0;
    for (int64_t t = 0; t < copies_by_expert->tokens; t++)
        position[t] = position[t] < 0 ? -1 : tokens++;
    return tokens;
}

/* Lists the tokens that a rank sends to each member of the group of experts: those that have an expert there, each
 * once. */
static void list_tokens_by_member(struct arena *arena,
                                  const struct token_copies_by_expert *copies_by_expert,
                                  struct routed_rows *to)
{
    int64_t *first = arena_array(arena, copies_by_expert->ranks + 1u, sizeof *first), count = 0;
    int64_t *token = arena_array(
        arena, (size_t)(copies_by_expert->tokens * copies_by_expert->ranks), sizeof *token);
    int64_t *position = heap_alloc((size_t)copies_by_expert->tokens, sizeof *position);
    for (uint32_t k = 0; k < copies_by_expert->ranks; k++) {
        index_tokens_of_member(copies_by_expert, k, position);
        for (int64_t t = 0; t < copies_by_expert->tokens; t++)
            if (position[t] >= 0)
                token[count++] = t;
        first[k + 1] = count;
    }
    free(position);
    to->sent_token = token;
    to->first_sent_token = first;
}

/* Fills the lists source_row and source_copy, and the sizes of to->work, for a permutation. The rows of experts are
 * sorted by expert, then by the rank that sent them, then by slot. A PERMUTE_OWN reads the rank's own tokens and makes
 * rows for all experts; PERMUTE_GATHERED and PERMUTE_ARRIVED read the tokens of all ranks and make rows for the rank's
 * own experts. */
static void list_sources_of_routed_rows(struct arena *arena,
                                        const struct token_copies_by_expert *copies_by_expert,
                                        enum permute_source of, struct routed_rows *to)
{
    const bool own = of == PERMUTE_OWN;
    const uint32_t experts = copies_by_expert->routing->expert_count / copies_by_expert->ranks,
                   ranks = own ? 1 : copies_by_expert->ranks;
    const uint32_t first = own ? 0 : to->first_expert,
                   end = own ? copies_by_expert->routing->expert_count : first + experts;
    int64_t *position = heap_alloc((size_t)copies_by_expert->tokens, sizeof *position),
            size = copies_by_expert->tokens, i = 0;
    for (int64_t t = 0; t < copies_by_expert->tokens; t++)
        position[t] = t;
    if (of == PERMUTE_ARRIVED)
        size = index_tokens_of_member(copies_by_expert, to->first_expert / experts, position);
    to->row_count = 0;
    for (uint32_t e = first; e < end; e++)
        to->row_count += ranks * copies_by_expert->computed_rows[e];
    int64_t *row = arena_array(arena, (size_t)to->row_count + 1, sizeof *row);
    int64_t *copy = arena_array(arena, (size_t)to->row_count + 1, sizeof *copy);
    for (uint32_t e = first; e < end; e++)
        for (uint32_t r = 0; r < ranks; r++) {
            const int64_t last = i + copies_by_expert->computed_rows[e];
            for (int64_t k = 0; k < copies_by_expert->expert_copies[e]; k++)
                if (expert_keeps_copy(copies_by_expert, e, k)) {
                    const int64_t slot = copies_by_expert->first_slot[e] + k;
                    row[i] = r * size + position[slot % copies_by_expert->tokens];
                    copy[i++] = slot / copies_by_expert->tokens;
                }
            for (; i < last; i++)
                row[i] = -1;
        }
    free(position);
    to->source_row = row;
    to->source_copy = copy;
    to->work_of_rank.permute.to = to->row_count;
    if (of == PERMUTE_ARRIVED)
        to->work_of_rank.permute.rows = size * ranks;
}

static enum status find_routed_rows(struct assignment *assignment, const char *name,
                                    struct diag *diag)
{
    const struct ir *ir = assignment->ir;
    struct arena *arena = &assignment->arena;
    /* the group over which experts are divided; IR_NONE: every rank has all experts */
    const uint32_t group = ir_find_by_name(ir, IR_GROUP, "ep", 2),
                   ranks = group == IR_NONE ? 1 : assignment->member_count_by_group[group];
    uint32_t rows = 0;
    assignment->routed_rows_index_by_shape =
        arena_array(arena, ir->shape_count, sizeof *assignment->routed_rows_index_by_shape);
    for (uint32_t s = 0; s < ir->shape_count; s++)
        assignment->routed_rows_index_by_shape[s] =
            work_routing_list_index(&ir->shape[s]) >= 0 ? rows++ : IR_NONE;
    assignment->routed_rows =
        arena_array(arena, (size_t)rows * assignment->ranks, sizeof *assignment->routed_rows);
    for (uint32_t s = 0; s < ir->shape_count; s++) {
        const struct work *shape = &ir->shape[s];
        if (assignment->routed_rows_index_by_shape[s] == IR_NONE)
            continue;
        if (routing_why_work_unfit(&ir->routing, shape, group, ranks) != NULL)
            return diag_error(diag, (struct loc){name, 0, 0}, STATUS_BAD_INPUT,
                              "work on the rows of experts does not fit the routing of the "
                              "schedule; longhaul check says which");
        const struct token_copies_by_expert copies_by_expert =
            find_token_copies_by_expert(arena, &ir->routing, shape, ranks);
        const bool permutes = work_is_permutation(shape);
        const bool own = permutes && shape->permute.of == PERMUTE_OWN;
        struct routed_rows any = {.work_of_rank = *shape,
                                  .rows_per_rank_by_expert = copies_by_expert.computed_rows,
                                  .experts = ir->routing.expert_count,
                                  .ranks = ranks};
        if (shape->kind == WORK_ROUTE || shape->kind == WORK_ROUTE_BACKWARD)
            any.expert_of_slot = experts_of_slots(arena, &copies_by_expert);
        if (shape->kind == WORK_ALL_TO_ALL && shape->all_to_all.once > 0)
            list_tokens_by_member(arena, &copies_by_expert, &any);
        if (own) /* the list is the same on all ranks */
            list_sources_of_routed_rows(arena, &copies_by_expert, PERMUTE_OWN, &any);
        for (uint32_t rank = 0; rank < assignment->ranks; rank++) {
            struct routed_rows *to =
                &assignment->routed_rows[(size_t)assignment->routed_rows_index_by_shape[s] *
                                             assignment->ranks +
                                         rank];
            const uint32_t index =
                group == IR_NONE
                    ? 0
                    : assignment->index_in_group_by_rank[(size_t)rank * ir->group_count + group];
            *to = any;
            to->first_expert = index * (ir->routing.expert_count / ranks);
            if (own)
                continue;
            to->row_count =
                ranks * (any.sent_token != NULL
                             ? any.first_sent_token[index + 1] - any.first_sent_token[index]
                             : assignment_rows_per_rank_of_member(to, index));
            to->work_of_rank = work_with_row_count(shape, to->row_count);
            if (permutes)
                list_sources_of_routed_rows(arena, &copies_by_expert,
                                            (enum permute_source)shape->permute.of, to);
        }
    }
    return STATUS_OK;
}

/* ---- the whole assignment, and lists of a rank's ops ---- */

enum status assignment_init(struct assignment *assignment, const struct ir *ir, const char *name,
                            struct diag *diag)
{
    *assignment = (struct assignment){.ir = ir, .ranks = mesh_rank_count(&ir->mesh)};
    if (assignment->ranks > ASSIGNMENT_RANKS_MAX)
        return diag_error(diag, (struct loc){name, 0, 0}, STATUS_BAD_INPUT,
                          "the schedule has %" PRIu32
                          " ranks, which run as threads of one process; at most %d can be run",
                          assignment->ranks, ASSIGNMENT_RANKS_MAX);
    if (ir->op.count == 0)
        return diag_error(diag, (struct loc){name, 0, 0}, STATUS_BAD_INPUT,
                          "the schedule has no ops: there is nothing to run");
    enum status status = fill_rank_tables(assignment, name, diag);
    if (status == STATUS_OK)
        status = check_buffers(ir, name, diag);
    assignment->collective_number_by_op =
        arena_array(&assignment->arena, ir->op.count, sizeof *assignment->collective_number_by_op);
    assignment->max_collectives_of_role_by_group = arena_array(
        &assignment->arena, ir->group_count, sizeof *assignment->max_collectives_of_role_by_group);
    assignment->max_barriers_of_role_by_group = arena_array(
        &assignment->arena, ir->group_count, sizeof *assignment->max_barriers_of_role_by_group);
    for (uint32_t r = 0; r < ir->role_count; r++)
        assignment->max_op_count_of_role = ir->role[r].op_count > assignment->max_op_count_of_role
                                               ? ir->role[r].op_count
                                               : assignment->max_op_count_of_role;
    for (uint32_t r = 0; r < ir->role_count && status == STATUS_OK; r++)
        status = number_collectives_and_check_ops(assignment, &ir->role[r], name, diag);
    if (status == STATUS_OK)
        status = assignment_match_messages(assignment, name, diag);
    if (status == STATUS_OK) {
        find_softmax_readers(assignment);
        find_square_sum_runs(assignment);
        status = list_attention_pieces(assignment, name, diag);
        if (status == STATUS_OK)
            status = find_routed_rows(assignment, name, diag);
    }
    if (status == STATUS_OK)
        status = list_exchanged_rows(assignment, name, diag);
    return status;
}

void assignment_list_ops_by_stream(const struct assignment *assignment, uint32_t rank,
                                   struct assignment_stream_ops *list, uint32_t **place)
{
    const struct ir *ir = assignment->ir;
    uint32_t first = assignment_first_op(assignment, rank),
             count = assignment_op_count(assignment, rank), synced = 0;
    *place = heap_alloc((size_t)count + 1, sizeof **place);
    for (uint32_t k = 0; k < count; k++) {
        bool sync = work_kind_info(ir->op.kind[first + k])->stream == STREAM_SYNC;
        (*place)[k] = sync ? synced++ : list[ir->op.stream[first + k]].op_count++;
    }
    for (uint32_t s = 0; s < ir->stream_count; s++)
        list[s].ops = heap_alloc((size_t)list[s].op_count + 1, sizeof *list[s].ops);
    for (uint32_t k = 0; k < count; k++)
        if (work_kind_info(ir->op.kind[first + k])->stream != STREAM_SYNC)
            list[ir->op.stream[first + k]].ops[(*place)[k]] = first + k;
}

void assignment_release(struct assignment *assignment)
{
    for (size_t i = 0; i < (size_t)assignment->exchanged_rows_shape_count * assignment->ranks;
         i++) {
        needed_rows_release(&assignment->exchanged_rows[i].sent);
        needed_rows_release(&assignment->exchanged_rows[i].received);
        free(assignment->exchanged_rows[i].held.packed_row);
        free(assignment->exchanged_rows[i].held.own_row);
    }
    arena_release(&assignment->arena);
    *assignment = (struct assignment){0};
}

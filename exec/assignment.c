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

static enum status place_ranks(struct assignment *assignment, const char *name, struct diag *diag)
{
    const struct ir *ir = assignment->ir;
    size_t ranks = assignment->ranks;
    assignment->role = arena_array(&assignment->arena, ranks, sizeof *assignment->role);
    assignment->passes =
        arena_array(&assignment->arena, ranks * ir->guard_count, sizeof *assignment->passes);
    assignment->instance =
        arena_array(&assignment->arena, ranks * ir->group_count, sizeof *assignment->instance);
    assignment->index =
        arena_array(&assignment->arena, ranks * ir->group_count, sizeof *assignment->index);
    assignment->size = arena_array(&assignment->arena, ir->group_count, sizeof *assignment->size);
    assignment->instances =
        arena_array(&assignment->arena, ir->group_count, sizeof *assignment->instances);
    for (uint32_t g = 0; g < ir->group_count; g++) {
        assignment->size[g] = group_size(&ir->mesh, &ir->group[g]);
        assignment->instances[g] = group_instances(&ir->mesh, &ir->group[g]);
    }
    for (uint32_t rank = 0; rank < assignment->ranks; rank++) {
        uint32_t roles = 0;
        for (uint32_t r = 0; r < ir->role_count; r++)
            if (role_has(&ir->mesh, &ir->role[r], rank)) {
                assignment->role[rank] = (uint16_t)r;
                roles++;
            }
        if (roles != 1)
            return diag_error(diag, (struct loc){name, 0, 0}, STATUS_BAD_INPUT,
                              "rank %" PRIu32 " is in %" PRIu32 " roles; every rank runs one", rank,
                              roles);
        for (uint32_t g = 0; g < ir->guard_count; g++)
            assignment->passes[(size_t)rank * ir->guard_count + g] =
                guard_passes(&ir->mesh, ir->group, &ir->guard[g], rank);
        for (uint32_t g = 0; g < ir->group_count; g++) {
            size_t at = (size_t)rank * ir->group_count + g;
            if (!group_locate(&ir->mesh, &ir->group[g], rank, &assignment->instance[at],
                              &assignment->index[at]))
                assignment->instance[at] = IR_NONE;
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
        if (offset == UINT64_MAX) /* not planned: wrong only if an op names it */
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

static enum status check_views(const struct ir *ir, uint32_t op, const char *name,
                               struct diag *diag)
{
    uint32_t reads = ir->op.read_count[op], operands = reads + ir->op.write_count[op];
    if (ir->op.kind[op] == WORK_OPAQUE)
        return diag_error(diag, (struct loc){name, 0, 0}, STATUS_BAD_INPUT,
                          "op %" PRIu32 " is opaque: operators of recorded programs are simulated "
                          "and never executed; longhaul predict takes this file",
                          op);
    for (uint32_t k = 0; k < operands; k++) {
        struct view view = k < reads ? ir_read(ir, op, k) : ir_write(ir, op, k - reads);
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

static enum status check_members(const struct assignment *assignment, const struct role *role,
                                 uint32_t op, uint32_t group, const char *name, struct diag *diag)
{
    const struct ir *ir = assignment->ir;
    const struct loc at = {name, 0, 0};
    const struct work *work = ir_work(ir, op);
    if (group >= ir->group_count)
        return diag_error(diag, at, STATUS_BAD_INPUT, "op %" PRIu32 " names no group", op);
    bool rooted =
        work->kind == WORK_REDUCE || work->kind == WORK_BROADCAST || work->kind == WORK_SCATTER;
    if (rooted && work->broadcast.root >= assignment->size[group])
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "op %" PRIu32 " has root=%" PRId64 ", but group %s has only %" PRIu32
                          " members",
                          op, work->broadcast.root, ir->group[group].name, assignment->size[group]);
    for (uint32_t rank = 0; rank < assignment->ranks; rank++)
        if (&ir->role[assignment->role[rank]] == role && assignment_works(assignment, rank, op) &&
            assignment_instance(assignment, rank, group) == IR_NONE)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "op %" PRIu32 " is in group %s, in which rank %" PRIu32 " is not", op,
                              ir->group[group].name, rank);
    return STATUS_OK;
}

/* Numbers the calls of one role and checks its ops. */
static enum status place_role(struct assignment *assignment, const struct role *role,
                              const char *name, struct diag *diag)
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
            status = check_members(assignment, role, op, (uint32_t)group, name, diag);
            if (status != STATUS_OK)
                break;
            members = assignment->size[group];
            if (assignment_is_collective(work->kind))
                assignment->call[op] = calls[group]++;
            else if (work->kind == WORK_BARRIER)
                assignment->call[op] = barriers[group]++;
        }
        if (work->kind == WORK_ADAMW && states_have_8bit_moments((enum states)work->adamw.states)) {
            status = diag_error(diag, (struct loc){name, 0, 0}, STATUS_BAD_INPUT,
                                "op %" PRIu32 " (adamw) keeps its moments in 8 bits, which no "
                                "backend computes; a schedule of --states fp32 or bf16 would do",
                                op);
            break;
        }
        int64_t part = work_part_group(work);
        if (part >= 0)
            status = check_members(assignment, role, op, (uint32_t)part, name, diag);
        const bool sinks = work->kind == WORK_SINK || work->kind == WORK_SINK_BACKWARD;
        if (status == STATUS_OK && sinks &&
            work->sink.sinks / (part >= 0 ? assignment->size[part] : 1) != work->sink.heads)
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
        assignment->calls[g] = calls[g] > assignment->calls[g] ? calls[g] : assignment->calls[g];
        assignment->barriers[g] =
            barriers[g] > assignment->barriers[g] ? barriers[g] : assignment->barriers[g];
    }
    free(calls);
    return status;
}

/* Finds the buffers that hold a softmax: a buffer that some CROSS_ENTROPY writes as its softmax is read back as one.
 * Its dtype does not distinguish it from fp32 logits. */
static void find_softmax(struct assignment *assignment)
{
    const struct ir *ir = assignment->ir;
    bool *is_softmax = heap_zalloc((size_t)ir->buffer.count + 1, sizeof *is_softmax);
    assignment->softmax =
        arena_array(&assignment->arena, ir->op.count, sizeof *assignment->softmax);
    for (uint32_t op = 0; op < ir->op.count; op++)
        if (ir->op.kind[op] == WORK_CROSS_ENTROPY && ir->op.write_count[op] > 2) {
            uint32_t buffer = ir_write(ir, op, 2).buffer.i;
            is_softmax[buffer] = ir->buffer.dtype[buffer] != DTYPE_U8;
        }
    for (uint32_t op = 0; op < ir->op.count; op++)
        if (ir->op.kind[op] == WORK_CROSS_ENTROPY_BACKWARD)
            assignment->softmax[op] = is_softmax[ir_read(ir, op, 0).buffer.i];
    free(is_softmax);
}

/* Finds the elements that each rank's SQUARE_SUM adds: of a whole buffer that is bound to tensors those of the tensors,
 * each weighted so that elements which several ranks hold count once; of any other operand all. */
static void find_shares(struct assignment *assignment)
{
    const struct ir *ir = assignment->ir;
    uint32_t rows = 0;
    assignment->share_row =
        arena_array(&assignment->arena, ir->op.count, sizeof *assignment->share_row);
    for (uint32_t op = 0; op < ir->op.count; op++)
        assignment->share_row[op] = ir->op.kind[op] == WORK_SQUARE_SUM ? rows++ : IR_NONE;
    assignment->shares = arena_array(&assignment->arena, (size_t)rows * assignment->ranks,
                                     sizeof *assignment->shares);
    for (uint32_t op = 0; op < ir->op.count && rows > 0; op++) {
        if (assignment->share_row[op] == IR_NONE)
            continue;
        struct view view = ir_read(ir, op, 0);
        int64_t over = ir_work(ir, op)->square_sum.over;
        uint16_t group = over > 0 ? (uint16_t)(over - 1) : IR_NONE16;
        bool whole = view.begin == 0 && view.count == ir_buffer_elements(ir, view.buffer);
        for (uint32_t rank = 0; rank < assignment->ranks; rank++) {
            struct assignment_shares *to =
                &assignment->shares[(size_t)assignment->share_row[op] * assignment->ranks + rank];
            if (assignment->role[rank] != ir->buffer.role[view.buffer.i])
                continue;
            to->count = whole ? bindings_shares(ir, rank, view.buffer.i, group, NULL) : 1;
            to->share = arena_array(&assignment->arena, (size_t)to->count + 1, sizeof *to->share);
            to->share[0] = (struct copied_run){0, view.count, 1};
            if (whole)
                bindings_shares(ir, rank, view.buffer.i, group, to->share);
        }
    }
}

/* ---- documents ---- */

static enum status find_pieces(struct assignment *assignment, const char *name, struct diag *diag)
{
    const struct ir *ir = assignment->ir;
    struct visible_pieces pieces = {0};
    uint32_t rows = 0;
    assignment->pieces_row =
        arena_array(&assignment->arena, ir->shape_count, sizeof *assignment->pieces_row);
    for (uint32_t s = 0; s < ir->shape_count; s++)
        assignment->pieces_row[s] = work_has_documents(&ir->shape[s]) ? rows++ : IR_NONE;
    assignment->pieces = arena_array(&assignment->arena, (size_t)rows * assignment->ranks,
                                     sizeof *assignment->pieces);
    for (uint32_t s = 0; s < ir->shape_count; s++) {
        if (assignment->pieces_row[s] == IR_NONE)
            continue;
        if (visible_why_unfit(ir) != NULL || visible_why_unfit_work(ir, &ir->shape[s]) != NULL)
            return diag_error(
                diag, (struct loc){name, 0, 0}, STATUS_BAD_INPUT,
                "an attention over documents does not fit the sequences of the schedule; "
                "longhaul check says which");
        for (uint32_t rank = 0; rank < assignment->ranks; rank++) {
            struct assignment_pieces *to =
                &assignment->pieces[(size_t)assignment->pieces_row[s] * assignment->ranks + rank];
            visible_pieces(ir, &ir->shape[s], rank, &pieces);
            to->count = pieces.count;
            to->piece = arena_array(&assignment->arena, pieces.count + 1u, sizeof *to->piece);
            if (pieces.count > 0)
                memcpy(to->piece, pieces.piece, pieces.count * sizeof *to->piece);
        }
    }
    visible_release(&pieces);
    return STATUS_OK;
}

/* Lists the rows that ranks need of each other, for every shape that moves such rows. */
static enum status find_rows(struct assignment *assignment, const char *name, struct diag *diag)
{
    const struct ir *ir = assignment->ir;
    struct row_use use;
    uint32_t count = 0;
    assignment->rows_row =
        arena_array(&assignment->arena, ir->shape_count, sizeof *assignment->rows_row);
    for (uint32_t s = 0; s < ir->shape_count; s++)
        assignment->rows_row[s] = row_use_find(&ir->shape[s], &use) ? count++ : IR_NONE;
    assignment->rows = arena_array(&assignment->arena, (size_t)count * assignment->ranks,
                                   sizeof *assignment->rows);
    for (uint32_t s = 0; s < ir->shape_count; s++) {
        if (!row_use_find(&ir->shape[s], &use))
            continue;
        if (visible_why_unfit(ir) != NULL || visible_why_unfit_work(ir, &ir->shape[s]) != NULL)
            return diag_error(diag, (struct loc){name, 0, 0}, STATUS_BAD_INPUT,
                              "an op moves rows that ranks need, and does not fit the sequences of "
                              "the schedule; longhaul check says which");
        for (uint32_t rank = 0; rank < assignment->ranks; rank++) {
            struct assignment_rows *rows =
                &assignment->rows[(size_t)assignment->rows_row[s] * assignment->ranks + rank];
            rows->peers = ir->layout.cp;
            row_use_list(ir, &use, rank, &rows->sent, &rows->received, &rows->held);
            assignment->rows_count = (assignment->rows_row[s] + 1) * assignment->ranks;
        }
    }
    return STATUS_OK;
}

/* ---- rows of experts ---- */

/* Returns the work of a shape with `rows` real rows. */
static struct work real_work(const struct work *shape, int64_t rows)
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

int64_t assignment_group_end(const struct dealt_rows *dealt, int64_t total, int64_t groups,
                             int64_t g, int64_t first)
{
    return dealt != NULL ? first + dealt->ranks * dealt->count[dealt->first + g]
                         : work_row_group_begin(total, groups, g + 1);
}

int64_t assignment_dealt(const struct dealt_rows *dealt, uint32_t member)
{
    const uint32_t own = dealt->experts / dealt->ranks;
    int64_t copies = 0;
    for (uint32_t e = 0; e < own; e++)
        copies += dealt->count[member * own + e];
    return copies;
}

/* The copies that each rank deals to experts by a list of shares. */
struct deal_of {
    const struct routing *routing;
    int64_t rows; /* the tokens of a rank */
    /* [experts] of one rank: the copies for an expert, the first of their slots, and the rows that the expert computes,
     * which are fewer with dropped copies, and more with padding */
    int64_t *dealt, *first, *count;
    uint32_t ranks;
};

/* True unless the expert drops this one of its copies of a rank. */
static bool keeps_copy(const struct deal_of *deal, uint32_t expert, int64_t index)
{
    return routing_keeps(deal->routing, deal->rows, deal->dealt[expert], deal->first[expert],
                         index);
}

static struct deal_of deal_of(struct arena *arena, const struct routing *routing,
                              const struct work *shape, uint32_t ranks)
{
    struct deal_of deal = {routing, work_dealt_copies(shape) / routing->copies, NULL, NULL, NULL,
                           ranks};
    const uint32_t list = (uint32_t)work_route_list(shape);
    deal.dealt = arena_array(arena, routing->experts, sizeof *deal.dealt);
    deal.first = arena_array(arena, routing->experts, sizeof *deal.first);
    deal.count = arena_array(arena, routing->experts, sizeof *deal.count);
    routing_deal(routing, list, deal.rows, deal.dealt, deal.first);
    routing_counts(routing, list, deal.rows, deal.count);
    return deal;
}

/* Returns the expert of each slot. */
static int32_t *experts_of_slots(struct arena *arena, const struct deal_of *deal)
{
    int32_t *expert =
        arena_array(arena, (size_t)(deal->rows * deal->routing->copies), sizeof *expert);
    for (uint32_t e = 0; e < deal->routing->experts; e++)
        for (int64_t i = 0; i < deal->dealt[e]; i++)
            expert[deal->first[e] + i] = (int32_t)e;
    return expert;
}

/* Numbers those tokens of a rank that have an expert on member k: fills position[rows] with the numbers, -1 for other
 * tokens, and returns how many there are. */
static int64_t find_places(const struct deal_of *deal, uint32_t k, int64_t *position)
{
    const uint32_t own = deal->routing->experts / deal->ranks;
    int64_t tokens = 0;
    for (int64_t t = 0; t < deal->rows; t++)
        position[t] = -1;
    for (uint32_t e = k * own; e < (k + 1) * own; e++)
        for (int64_t i = 0; i < deal->dealt[e]; i++)
            position[(deal->first[e] + i) % deal->rows] = 0;
    for (int64_t t = 0; t < deal->rows; t++)
        position[t] = position[t] < 0 ? -1 : tokens++;
    return tokens;
}

/* Lists the tokens of a rank that go to each member. */
static void list_tokens(struct arena *arena, const struct deal_of *deal, struct dealt_rows *to)
{
    int64_t *first = arena_array(arena, deal->ranks + 1u, sizeof *first), count = 0;
    int64_t *token = arena_array(arena, (size_t)(deal->rows * deal->ranks), sizeof *token);
    int64_t *position = heap_alloc((size_t)deal->rows, sizeof *position);
    for (uint32_t k = 0; k < deal->ranks; k++) {
        find_places(deal, k, position);
        for (int64_t t = 0; t < deal->rows; t++)
            if (position[t] >= 0)
                token[count++] = t;
        first[k + 1] = count;
    }
    free(position);
    to->token = token;
    to->first_token = first;
}

/* Lists the row that is copied to each row of the experts. Rows of experts are in the order of experts, then of the
 * ranks that dealt them, then of slots. PERMUTE_OWN copies a rank's own tokens to the rows of all experts. */
static void list_copies(struct arena *arena, const struct deal_of *deal, enum permute_source of,
                        struct dealt_rows *to)
{
    const bool own = of == PERMUTE_OWN;
    const uint32_t experts = deal->routing->experts / deal->ranks, ranks = own ? 1 : deal->ranks;
    const uint32_t first = own ? 0 : to->first,
                   end = own ? deal->routing->experts : first + experts;
    int64_t *position = heap_alloc((size_t)deal->rows, sizeof *position), size = deal->rows, i = 0;
    for (int64_t t = 0; t < deal->rows; t++)
        position[t] = t;
    if (of == PERMUTE_ARRIVED)
        size = find_places(deal, to->first / experts, position);
    to->rows = 0;
    for (uint32_t e = first; e < end; e++)
        to->rows += ranks * deal->count[e];
    int64_t *row = arena_array(arena, (size_t)to->rows + 1, sizeof *row);
    int64_t *copy = arena_array(arena, (size_t)to->rows + 1, sizeof *copy);
    for (uint32_t e = first; e < end; e++)
        for (uint32_t r = 0; r < ranks; r++) {
            const int64_t last = i + deal->count[e];
            for (int64_t k = 0; k < deal->dealt[e]; k++)
                if (keeps_copy(deal, e, k)) {
                    const int64_t slot = deal->first[e] + k;
                    row[i] = r * size + position[slot % deal->rows];
                    copy[i++] = slot / deal->rows;
                }
            for (; i < last; i++)
                row[i] = -1;
        }
    free(position);
    to->row = row;
    to->copy = copy;
    to->work.permute.to = to->rows;
    if (of == PERMUTE_ARRIVED)
        to->work.permute.rows = size * ranks;
}

static enum status find_dealt(struct assignment *assignment, const char *name, struct diag *diag)
{
    const struct ir *ir = assignment->ir;
    struct arena *arena = &assignment->arena;
    /* the ranks that have different experts; none: every rank has all */
    const uint32_t group = ir_find(ir, IR_GROUP, "ep", 2),
                   ranks = group == IR_NONE ? 1 : assignment->size[group];
    uint32_t rows = 0;
    assignment->dealt_row = arena_array(arena, ir->shape_count, sizeof *assignment->dealt_row);
    for (uint32_t s = 0; s < ir->shape_count; s++)
        assignment->dealt_row[s] = work_route_list(&ir->shape[s]) >= 0 ? rows++ : IR_NONE;
    assignment->dealt =
        arena_array(arena, (size_t)rows * assignment->ranks, sizeof *assignment->dealt);
    for (uint32_t s = 0; s < ir->shape_count; s++) {
        const struct work *shape = &ir->shape[s];
        if (assignment->dealt_row[s] == IR_NONE)
            continue;
        if (routing_unfit(&ir->routing, shape, group, ranks) != NULL)
            return diag_error(diag, (struct loc){name, 0, 0}, STATUS_BAD_INPUT,
                              "work on the rows of experts does not fit the routing of the "
                              "schedule; longhaul check says which");
        const struct deal_of deal = deal_of(arena, &ir->routing, shape, ranks);
        const bool permutes = work_permutes(shape);
        const bool own = permutes && shape->permute.of == PERMUTE_OWN;
        struct dealt_rows any = {
            .work = *shape, .count = deal.count, .experts = ir->routing.experts, .ranks = ranks};
        if (shape->kind == WORK_ROUTE || shape->kind == WORK_ROUTE_BACKWARD)
            any.expert = experts_of_slots(arena, &deal);
        if (shape->kind == WORK_ALL_TO_ALL && shape->all_to_all.once > 0)
            list_tokens(arena, &deal, &any);
        if (own) /* the list is the same on all ranks */
            list_copies(arena, &deal, PERMUTE_OWN, &any);
        for (uint32_t rank = 0; rank < assignment->ranks; rank++) {
            struct dealt_rows *to =
                &assignment->dealt[(size_t)assignment->dealt_row[s] * assignment->ranks + rank];
            const uint32_t index =
                group == IR_NONE ? 0 : assignment->index[(size_t)rank * ir->group_count + group];
            *to = any;
            to->first = index * (ir->routing.experts / ranks);
            if (own)
                continue;
            to->rows =
                ranks * (any.token != NULL ? any.first_token[index + 1] - any.first_token[index]
                                           : assignment_dealt(to, index));
            to->work = real_work(shape, to->rows);
            if (permutes)
                list_copies(arena, &deal, (enum permute_source)shape->permute.of, to);
        }
    }
    return STATUS_OK;
}

enum status assignment_init(struct assignment *assignment, const struct ir *ir, const char *name,
                            struct diag *diag)
{
    *assignment = (struct assignment){.ir = ir, .ranks = mesh_ranks(&ir->mesh)};
    if (assignment->ranks > ASSIGNMENT_RANKS_MAX)
        return diag_error(diag, (struct loc){name, 0, 0}, STATUS_BAD_INPUT,
                          "the schedule has %" PRIu32
                          " ranks, which run as threads of one process; at most %d can be run",
                          assignment->ranks, ASSIGNMENT_RANKS_MAX);
    if (ir->op.count == 0)
        return diag_error(diag, (struct loc){name, 0, 0}, STATUS_BAD_INPUT,
                          "the schedule has no ops: there is nothing to run");
    enum status status = place_ranks(assignment, name, diag);
    if (status == STATUS_OK)
        status = check_buffers(ir, name, diag);
    assignment->call = arena_array(&assignment->arena, ir->op.count, sizeof *assignment->call);
    assignment->calls = arena_array(&assignment->arena, ir->group_count, sizeof *assignment->calls);
    assignment->barriers =
        arena_array(&assignment->arena, ir->group_count, sizeof *assignment->barriers);
    for (uint32_t r = 0; r < ir->role_count; r++)
        assignment->op_stride = ir->role[r].op_count > assignment->op_stride
                                    ? ir->role[r].op_count
                                    : assignment->op_stride;
    for (uint32_t r = 0; r < ir->role_count && status == STATUS_OK; r++)
        status = place_role(assignment, &ir->role[r], name, diag);
    if (status == STATUS_OK)
        status = assignment_match_messages(assignment, name, diag);
    if (status == STATUS_OK) {
        find_softmax(assignment);
        find_shares(assignment);
        status = find_pieces(assignment, name, diag);
        if (status == STATUS_OK)
            status = find_dealt(assignment, name, diag);
    }
    if (status == STATUS_OK)
        status = find_rows(assignment, name, diag);
    return status;
}

void assignment_list_streams(const struct assignment *assignment, uint32_t rank,
                             struct assignment_stream *list, uint32_t **place)
{
    const struct ir *ir = assignment->ir;
    uint32_t first = assignment_first(assignment, rank), count = assignment_ops(assignment, rank),
             synced = 0;
    *place = heap_alloc((size_t)count + 1, sizeof **place);
    for (uint32_t k = 0; k < count; k++) {
        bool sync = work_kind_info(ir->op.kind[first + k])->stream == STREAM_SYNC;
        (*place)[k] = sync ? synced++ : list[ir->op.stream[first + k]].op_count++;
    }
    for (uint32_t s = 0; s < ir->stream_count; s++)
        list[s].op = heap_alloc((size_t)list[s].op_count + 1, sizeof *list[s].op);
    for (uint32_t k = 0; k < count; k++)
        if (work_kind_info(ir->op.kind[first + k])->stream != STREAM_SYNC)
            list[ir->op.stream[first + k]].op[(*place)[k]] = first + k;
}

void assignment_release(struct assignment *assignment)
{
    for (uint32_t i = 0; i < assignment->rows_count; i++) {
        needed_rows_release(&assignment->rows[i].sent);
        needed_rows_release(&assignment->rows[i].received);
        free(assignment->rows[i].held.packed_row);
        free(assignment->rows[i].held.own_row);
    }
    arena_release(&assignment->arena);
    *assignment = (struct assignment){0};
}

#include "schedule/ir/row_use.h"

#include <stdlib.h>
#include <string.h>

/* ---- ranks ---- */

uint32_t ir_mask_of_axes_named(const struct ir *ir, const char *name)
{
    uint32_t axes = 0;
    size_t size = strlen(name);
    for (uint32_t a = 0; a < ir->mesh.axis_count; a++) {
        const char *axis = ir->mesh.axis[a].name;
        if (strncmp(axis, name, size) == 0 && (axis[size] == '\0' || axis[size] == '_'))
            axes |= 1u << a;
    }
    return axes;
}

uint32_t ir_rank_index_along_axes(const struct ir *ir, uint32_t rank, uint32_t axes, uint32_t *size)
{
    uint32_t index = 0, coordinate[MESH_AXES_MAX];
    mesh_coordinates(&ir->mesh, rank, coordinate);
    *size = 1;
    for (uint32_t a = 0; a < ir->mesh.axis_count; a++)
        if (axes >> a & 1) {
            index = index * ir->mesh.axis[a].size + coordinate[a];
            *size *= ir->mesh.axis[a].size;
        }
    return index;
}

uint32_t ir_context_index(const struct ir *ir, uint32_t rank)
{
    uint32_t group = ir_find_by_name(ir, IR_GROUP, "cp", 2);
    uint32_t instance, index, size, axes = ir_mask_of_axes_named(ir, "cp");
    if (group != IR_NONE && group_axis_mask(&ir->group[group]) == axes &&
        group_find_member(&ir->mesh, &ir->group[group], rank, &instance, &index))
        return index;
    return ir_rank_index_along_axes(ir, rank, axes, &size);
}

static uint32_t data_parallel_index(const struct ir *ir, uint32_t rank, uint32_t *size)
{
    return ir_rank_index_along_axes(ir, rank, ir_mask_of_axes_named(ir, "dp"), size);
}

uint32_t ir_place_of_rank(const struct ir *ir, uint32_t rank)
{
    uint32_t replicas;
    uint32_t replica = data_parallel_index(ir, rank, &replicas);
    return replica * ir->layout.cp + ir_context_index(ir, rank);
}

uint32_t ir_replica_count(const struct ir *ir)
{
    uint32_t replicas;
    data_parallel_index(ir, 0, &replicas);
    return replicas;
}

uint32_t ir_place_count(const struct ir *ir)
{
    return ir_replica_count(ir) * ir->layout.cp;
}

/* Returns the number, in the batch, of the n-th sequence of a data-parallel index. */
static uint32_t batch_sequence_of_replica(const struct ir *ir, uint32_t replica, int64_t n)
{
    return (uint32_t)(replica * (ir->global_batch / ir_replica_count(ir)) + n);
}

uint32_t ir_batch_sequence_of_rank(const struct ir *ir, uint32_t rank, int64_t n)
{
    uint32_t replicas;
    return batch_sequence_of_replica(ir, data_parallel_index(ir, rank, &replicas), n);
}

const struct document_list *ir_replica_documents(const struct ir *ir, uint32_t replica, int64_t n,
                                                 struct document_list *whole)
{
    const struct document_list *list =
        documents_of_sequence(&ir->documents, batch_sequence_of_replica(ir, replica, n));
    *whole =
        (struct document_list){.document_count = 1, .document_end = &ir->layout.sequence_tokens};
    return list != NULL ? list : whole;
}

const struct document_list *ir_documents_of_rank(const struct ir *ir, uint32_t rank, int64_t n,
                                                 struct document_list *whole)
{
    uint32_t replicas;
    return ir_replica_documents(ir, data_parallel_index(ir, rank, &replicas), n, whole);
}

/* ---- the rows that an op uses ---- */

bool row_use_if_work_moves_rows(const struct work *work, struct row_use *use)
{
    bool backward = false;
    *use = (struct row_use){.what = PLAN_QUERIES};
    switch ((enum work_kind)work->kind) {
    case WORK_EXCHANGE:
        *use =
            (struct row_use){work->exchange.sequence, work->exchange.window, work->exchange.round,
                             PLAN_FORWARD, (enum plan_keys_or_queries)work->exchange.what};
        backward = work->exchange.backward;
        break;
    case WORK_TAKE_ROWS:
        *use = (struct row_use){work->take_rows.sequence, work->take_rows.window,
                                work->take_rows.round, PLAN_FORWARD,
                                (enum plan_keys_or_queries)work->take_rows.what};
        backward = work->take_rows.backward;
        break;
    case WORK_ADD_ROWS:
        *use =
            (struct row_use){work->add_rows.sequence, work->add_rows.window, work->add_rows.round,
                             PLAN_FORWARD, (enum plan_keys_or_queries)work->add_rows.what};
        backward = work->add_rows.backward;
        break;
    case WORK_MERGE_ROWS:
        use->sequence = work->merge_rows.sequence;
        use->window = work->merge_rows.window;
        use->round = work->merge_rows.round;
        break;
    default:
        return false;
    }
    use->pass = backward ? PLAN_BACKWARD : PLAN_FORWARD;
    return true;
}

static int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

struct max_rows_of_any_rank_in_round row_use_max_rows_of_any_rank(const struct ir *ir,
                                                                  const struct row_use *use)
{
    struct max_rows_of_any_rank_in_round max_rows = {0};
    for (uint32_t r = 0; r < ir_replica_count(ir); r++) {
        struct document_list whole;
        struct max_rows_of_any_rank_in_round own = {0};
        const struct document_list *list = ir_replica_documents(ir, r, use->sequence, &whole);
        if (use->round == 0) {
            struct needed_max_rows needed = needed_max_rows(&ir->layout, list, use->window);
            own = (struct max_rows_of_any_rank_in_round){needed.received_rows, needed.sent_rows,
                                                         needed.received_rows};
        } else if (list->tiles != NULL)
            own = tile_plan_max_rows_of_any_rank(list->tiles, use->pass, (uint32_t)use->round - 1,
                                                 use->what);
        max_rows.packed_rows = max_i64(max_rows.packed_rows, own.packed_rows);
        max_rows.sent_rows = max_i64(max_rows.sent_rows, own.sent_rows);
        max_rows.received_rows = max_i64(max_rows.received_rows, own.received_rows);
    }
    return max_rows;
}

uint32_t row_use_round_count(const struct ir *ir, int64_t n, enum plan_pass pass)
{
    uint32_t rounds = 0;
    for (uint32_t r = 0; r < ir_replica_count(ir); r++) {
        struct document_list whole;
        const struct document_list *list = ir_replica_documents(ir, r, n, &whole);
        if (list->tiles != NULL && list->tiles->round_count[pass] > rounds)
            rounds = list->tiles->round_count[pass];
    }
    return rounds;
}

const struct plan_round_data_of_rank *
row_use_plan_part(const struct row_use *use, const struct document_list *list, uint32_t context)
{
    if (list->tiles == NULL || use->round > list->tiles->round_count[use->pass])
        return NULL;
    return tile_plan_part(list->tiles, use->pass, (uint32_t)use->round - 1, context);
}

bool row_use_has_own_rows_only(const struct ir *ir, const struct row_use *use)
{
    bool own = use->round > 0;
    for (uint32_t r = 0; own && r < ir_replica_count(ir); r++) {
        struct document_list whole;
        const struct document_list *list = ir_replica_documents(ir, r, use->sequence, &whole);
        for (uint32_t c = 0; own && c < ir->layout.cp; c++) {
            const struct plan_round_data_of_rank *part = row_use_plan_part(use, list, c);
            own = part != NULL &&
                  part->of[use->what].rows == ir->layout.sequence_tokens / ir->layout.cp;
            for (uint32_t i = 0; own && i < part->of[use->what].run_count; i++) {
                const struct plan_run *run = &part->of[use->what].run[i];
                own = run->owner == c && run->packed_row == run->owner_row;
            }
        }
    }
    return own;
}

void row_use_rows_of_all_pairs(const struct ir *ir, const struct row_use *use, uint32_t rank,
                               int64_t *rows)
{
    struct document_list whole;
    const struct document_list *list = ir_documents_of_rank(ir, rank, use->sequence, &whole);
    const size_t cp = ir->layout.cp;
    if (use->round == 0) {
        needed_rows_of_all_pairs(rows, &ir->layout, list, use->window);
        return;
    }
    memset(rows, 0, cp * cp * sizeof *rows);
    for (uint32_t to = 0; to < cp; to++) {
        const struct plan_round_data_of_rank *part = row_use_plan_part(use, list, to);
        for (uint32_t i = 0; part != NULL && i < part->of[use->what].run_count; i++) {
            const struct plan_run *run = &part->of[use->what].run[i];
            rows[to * cp + run->owner] += run->owner == to ? 0 : run->row_count;
        }
    }
}

/* Appends to rows->row the packed rows of a part that rank `owner` owns: for each its number among the owner's rows or,
 * with `places`, its packed row. Adds their number to *count. */
static void list_packed_rows_of_owner(struct needed_rows *rows,
                                      const struct plan_round_data_of_rank *part,
                                      enum plan_keys_or_queries what, uint32_t owner, bool places,
                                      int64_t *count)
{
    for (uint32_t i = 0; part != NULL && i < part->of[what].run_count; i++) {
        const struct plan_run *run = &part->of[what].run[i];
        if (run->owner != owner)
            continue;
        rows->row = heap_realloc(rows->row, (size_t)(*count + run->row_count), sizeof *rows->row);
        for (int64_t k = 0; k < run->row_count; k++)
            rows->row[(*count)++] = (places ? run->packed_row : run->owner_row) + k;
    }
}

void row_use_list_sent_and_received(const struct ir *ir, const struct row_use *use, uint32_t rank,
                                    struct needed_rows *sent, struct needed_rows *received,
                                    struct own_packed_rows *held)
{
    struct document_list whole;
    const struct document_list *list = ir_documents_of_rank(ir, rank, use->sequence, &whole);
    const uint32_t context = ir_context_index(ir, rank), cp = ir->layout.cp;
    *held = (struct own_packed_rows){0};
    if (use->round == 0) {
        needed_list_sent(sent, &ir->layout, list, context, use->window);
        needed_list_received(received, &ir->layout, list, context, use->window);
        return;
    }
    const struct plan_round_data_of_rank *own = row_use_plan_part(use, list, context);
    struct needed_rows packed = {0}, rows = {0};
    *sent =
        (struct needed_rows){heap_zalloc(cp + (size_t)1, sizeof *sent->first_row_by_peer), NULL};
    *received = (struct needed_rows){
        heap_zalloc(cp + (size_t)1, sizeof *received->first_row_by_peer), NULL};
    for (uint32_t peer = 0; peer < cp; peer++) {
        int64_t out = sent->first_row_by_peer[peer], in = received->first_row_by_peer[peer];
        if (peer != context) {
            list_packed_rows_of_owner(sent, row_use_plan_part(use, list, peer), use->what, context,
                                      false, &out);
            list_packed_rows_of_owner(received, own, use->what, peer, true, &in);
        }
        sent->first_row_by_peer[peer + 1] = out;
        received->first_row_by_peer[peer + 1] = in;
    }
    int64_t count = 0;
    list_packed_rows_of_owner(&packed, own, use->what, context, true, &held->row_count);
    list_packed_rows_of_owner(&rows, own, use->what, context, false, &count);
    held->packed_row = packed.row;
    held->own_row = rows.row;
}

/* True if each instance has all context ranks, and its member k is context rank k. */
static bool is_context_group(const struct ir *ir, const struct group *group)
{
    uint32_t instance, index;
    if (group_rank_count(&ir->mesh, group) != ir->layout.cp)
        return false;
    for (uint32_t rank = 0; rank < mesh_rank_count(&ir->mesh); rank++)
        if (group_find_member(&ir->mesh, group, rank, &instance, &index) &&
            index != ir_context_index(ir, rank))
            return false;
    return true;
}

const char *row_use_why_round_is_missing(const struct ir *ir, const struct row_use *use)
{
    if (use->round == 0)
        return NULL;
    if (use->round > row_use_round_count(ir, use->sequence, use->pass))
        return "its round is beyond those of the tiles of its sequence";
    for (uint32_t r = 0; r < ir_replica_count(ir); r++) {
        struct document_list whole;
        const struct document_list *list = ir_replica_documents(ir, r, use->sequence, &whole);
        if (list->tiles == NULL)
            return "its sequence has no tiles on some data-parallel rank";
        if (list->tiles->window > 0 && (use->window == 0 || use->window > list->tiles->window))
            return "its window is wider than the one that the tiles are for";
    }
    return NULL;
}

const char *row_use_why_unfit(const struct ir *ir, const struct work *work,
                              const struct row_use *use)
{
    const char *why = row_use_why_round_is_missing(ir, use);
    if (why != NULL)
        return why;
    const struct max_rows_of_any_rank_in_round room = row_use_max_rows_of_any_rank(ir, use);
    const int64_t own = ir->layout.sequence_tokens / ir->layout.cp;
    int64_t read = 0, written = own, reads = 0, writes = 0;
    switch ((enum work_kind)work->kind) {
    case WORK_EXCHANGE:
        if (!is_context_group(ir, &ir->group[work->exchange.group]))
            return "its group is not that of the context ranks, in their order";
        read = work->exchange.back ? room.received_rows : room.sent_rows;
        written = work->exchange.back ? room.sent_rows : room.received_rows;
        reads = work->exchange.rows;
        writes = work->exchange.to;
        break;
    case WORK_TAKE_ROWS: {
        const enum take_rows_order how = (enum take_rows_order)work->take_rows.take;
        if ((how == TAKE_ARRIVED_ROWS_TO_POSITIONS && use->round > 0) ||
            (how == TAKE_ROWS_TO_ROUND_ORDER && use->round == 0))
            return "take=place is of needed rows, and take=gather of the tiles of a round";
        if (how == TAKE_ROWS_TO_ROUND_ORDER && work->take_rows.arrived < room.received_rows)
            return "its buffers have no room for the rows that ranks need";
        read = how == TAKE_OWN_ROWS_TO_SEND || how == TAKE_ROWS_TO_ROUND_ORDER ? own
               : how == TAKE_ARRIVED_ROWS_TO_POSITIONS                         ? room.received_rows
                                                                               : room.packed_rows;
        written = how == TAKE_OWN_ROWS_TO_SEND          ? room.sent_rows
                  : how == TAKE_RESULTS_TO_SENDER_ORDER ? room.received_rows
                                                        : room.packed_rows;
        reads = work->take_rows.rows;
        writes = work->take_rows.to;
        break;
    }
    default: {
        const bool merges = work->kind == WORK_MERGE_ROWS;
        const bool held = merges ? work->merge_rows.held : work->add_rows.held;
        if (use->round == 0 && (merges || held))
            return "it names no round of tiles, whose rows it merges or adds";
        read = held ? room.packed_rows : room.sent_rows;
        reads = merges ? work->merge_rows.rows : work->add_rows.rows;
        writes = merges ? work->merge_rows.to : work->add_rows.to;
    }
    }
    return reads < read || writes < written
               ? "its buffers have no room for the rows that ranks need"
               : NULL;
}

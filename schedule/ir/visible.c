#include "schedule/ir/visible.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- ranks ---- */

uint32_t ir_axes_named(const struct ir *ir, const char *name)
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

uint32_t ir_index_along(const struct ir *ir, uint32_t rank, uint32_t axes, uint32_t *size)
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

uint32_t ir_context_of(const struct ir *ir, uint32_t rank)
{
    uint32_t group = ir_find(ir, IR_GROUP, "cp", 2);
    uint32_t instance, index, size, axes = ir_axes_named(ir, "cp");
    if (group != IR_NONE && group_axis_mask(&ir->group[group]) == axes &&
        group_locate(&ir->mesh, &ir->group[group], rank, &instance, &index))
        return index;
    return ir_index_along(ir, rank, axes, &size);
}

static uint32_t replica_of(const struct ir *ir, uint32_t rank, uint32_t *size)
{
    return ir_index_along(ir, rank, ir_axes_named(ir, "dp"), size);
}

uint32_t ir_place_of(const struct ir *ir, uint32_t rank)
{
    uint32_t replicas;
    uint32_t replica = replica_of(ir, rank, &replicas);
    return replica * ir->layout.cp + ir_context_of(ir, rank);
}

uint32_t ir_places(const struct ir *ir)
{
    uint32_t replicas;
    replica_of(ir, 0, &replicas);
    return replicas * ir->layout.cp;
}

uint32_t ir_sequence_of(const struct ir *ir, uint32_t rank, int64_t n)
{
    uint32_t replicas;
    uint32_t replica = replica_of(ir, rank, &replicas);
    return (uint32_t)(replica * (ir->global_batch / replicas) + n);
}

/* Returns the rank that is `away` places before this one in the ring of the named group; the rank itself if there is
 * no such group. */
static uint32_t rank_before(const struct ir *ir, const char *name, uint32_t rank, int64_t away)
{
    uint32_t row = ir_find(ir, IR_GROUP, name, strlen(name));
    uint32_t instance, index;
    if (row == IR_NONE || away == 0 ||
        !group_locate(&ir->mesh, &ir->group[row], rank, &instance, &index))
        return rank;
    uint32_t size = group_size(&ir->mesh, &ir->group[row]);
    uint32_t before = (index + size - (uint32_t)(away % size)) % size;
    return group_member(&ir->mesh, &ir->group[row], instance, before);
}

/* Returns the name of the ring; if there are two, that of the inner one. */
static const char *ring_name(const struct ir *ir)
{
    return ir_find(ir, IR_GROUP, "cp_in", 5) != IR_NONE ? "cp_in" : "cp";
}

/* Returns the context rank whose keys the op reads. */
static uint32_t origin_of(const struct ir *ir, const struct work *work, uint32_t rank)
{
    uint32_t from = rank_before(ir, ring_name(ir), rank, work->attention.away);
    return ir_context_of(ir, rank_before(ir, "cp_out", from, work->attention.away_out));
}

/* ---- which schedules and ops fit ---- */

const char *visible_unfit(const struct ir *ir)
{
    uint32_t contexts, replicas;
    if (ir->layout.tokens == 0)
        return "needs a token layout";
    ir_index_along(ir, 0, ir_axes_named(ir, "cp"), &contexts);
    if (contexts != ir->layout.cp)
        return "needs as many ranks along cp in the mesh as in the token layout";
    replica_of(ir, 0, &replicas);
    if (ir->global_batch < replicas || ir->global_batch % replicas != 0)
        return "needs a batch that divides over the ranks along dp";
    if (ir->layout.kind == LAYOUT_RANK_ORDINAL && ir->layout.cp > 1)
        return "is not defined for layout rank_ordinal over several context ranks";
    for (uint32_t l = 0; l < ir->documents.list_count; l++)
        if (!layout_cuts(&ir->layout, &ir->documents.list[l]))
            return "needs documents that cut into the slices of layout zigzag_documents";
    for (uint32_t s = 0; ir->layout.kind == LAYOUT_DEALT && s < ir->global_batch; s++)
        if (!layout_is_dealt(&ir->layout, documents_of(&ir->documents, s)))
            return "needs the owners of the tokens of every sequence, equally many of each rank, "
                   "as "
                   "layout dealt has them";
    return NULL;
}

bool work_needs(const struct work *work, int64_t *sequence, int64_t *window)
{
    switch ((enum work_kind)work->kind) {
    case WORK_EXCHANGE:
        *sequence = work->exchange.sequence;
        *window = work->exchange.window;
        return true;
    case WORK_TAKE_ROWS:
        *sequence = work->take_rows.sequence;
        *window = work->take_rows.window;
        return true;
    case WORK_ADD_ROWS:
        *sequence = work->add_rows.sequence;
        *window = work->add_rows.window;
        return true;
    default:
        return false;
    }
}

const struct document_list *ir_documents_of(const struct ir *ir, uint32_t rank, int64_t n,
                                            struct document_list *whole)
{
    const struct document_list *list = documents_of(&ir->documents, ir_sequence_of(ir, rank, n));
    *whole = (struct document_list){1, &ir->layout.tokens, NULL};
    return list != NULL ? list : whole;
}

struct needed_most visible_most_needed(const struct ir *ir, int64_t sequence, int64_t window)
{
    struct needed_most most = {0};
    uint32_t replicas, ranks = mesh_ranks(&ir->mesh), axes = ir_axes_named(ir, "dp");
    bool *seen;
    ir_index_along(ir, 0, axes, &replicas);
    seen = heap_zalloc(replicas, sizeof *seen);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        struct document_list whole;
        uint32_t replica = ir_index_along(ir, rank, axes, &replicas);
        if (seen[replica])
            continue;
        seen[replica] = true;
        struct needed_most own =
            needed_most(&ir->layout, ir_documents_of(ir, rank, sequence, &whole), window);
        most.sent = own.sent > most.sent ? own.sent : most.sent;
        most.needed = own.needed > most.needed ? own.needed : most.needed;
    }
    free(seen);
    return most;
}

/* True if member k of each instance is context rank k. */
static bool is_context_group(const struct ir *ir, const struct group *group)
{
    uint32_t instance, index;
    if (group_size(&ir->mesh, group) != ir->layout.cp)
        return false;
    for (uint32_t rank = 0; rank < mesh_ranks(&ir->mesh); rank++)
        if (group_locate(&ir->mesh, group, rank, &instance, &index) &&
            index != ir_context_of(ir, rank))
            return false;
    return true;
}

/* Returns why an op has no room for the rows that ranks need of each other; NULL: it has. */
static const char *needed_unfit(const struct ir *ir, const struct work *work, int64_t sequence,
                                int64_t window)
{
    int64_t own = ir->layout.tokens / ir->layout.cp, read = 0, written = 0;
    struct needed_most most = visible_most_needed(ir, sequence, window);
    switch ((enum work_kind)work->kind) {
    case WORK_EXCHANGE:
        if (!is_context_group(ir, &ir->group[work->exchange.group]))
            return "its group is not that of the context ranks, in their order";
        read = work->exchange.back ? most.needed : most.sent;
        written = work->exchange.back ? most.sent : most.needed;
        return work->exchange.rows < read || work->exchange.to < written
                   ? "its buffers have no room for the rows that ranks need"
                   : NULL;
    case WORK_TAKE_ROWS:
        read = work->take_rows.take == TAKE_SEND ? own : most.needed;
        written = work->take_rows.take == TAKE_SEND ? most.sent : most.needed;
        return work->take_rows.rows < read || work->take_rows.to < written
                   ? "its buffers have no room for the rows that ranks need"
                   : NULL;
    case WORK_ADD_ROWS:
        return work->add_rows.rows < most.sent || work->add_rows.to < own
                   ? "its buffers have no room for the rows that ranks need"
                   : NULL;
    default:
        return work->attention.kv < most.needed ? "it has fewer keys than its ranks need" : NULL;
    }
}

/* Returns the number of ranks of a ring; 1 if there is no such ring. */
static int64_t ring_size(const struct ir *ir, const char *name)
{
    uint32_t group = ir_find(ir, IR_GROUP, name, strlen(name));
    return group != IR_NONE ? group_size(&ir->mesh, &ir->group[group]) : 1;
}

const char *visible_unfit_work(const struct ir *ir, const struct work *work)
{
    int64_t own = ir->layout.tokens / ir->layout.cp;
    uint32_t replicas;
    int64_t sequence = work->attention.sequence, window = work->attention.window;
    bool needs = work_needs(work, &sequence, &window);
    replica_of(ir, 0, &replicas);
    if (sequence >= ir->global_batch / replicas)
        return "its sequence is beyond those that a rank has";
    if (needs)
        return needed_unfit(ir, work, sequence, window);
    if (work->attention.q > own || work->attention.q_first > own - work->attention.q)
        return "its queries end behind the tokens that a context rank has of a sequence";
    if (work->attention.offset != 0)
        return "an offset, which this mask does not read";
    if (work->attention.mask == MASK_PLAN)
        return work->attention.kv_first || work->attention.away || work->attention.away_out
                   ? "it names keys of one rank, and mask=plan reads those that ranks need"
                   : needed_unfit(ir, work, sequence, window);
    if (work->attention.kv > own || work->attention.kv_first > own - work->attention.kv)
        return "its keys end behind the tokens that a context rank has of a sequence";
    if (work->attention.away >= ring_size(ir, ring_name(ir)) ||
        work->attention.away_out >= ring_size(ir, "cp_out"))
        return "its keys are of a rank further away than the ring is long";
    return NULL;
}

/* ---- rows ---- */

/* The keys [begin, end) that a query row sees. */
struct key_range {
    int64_t begin, end;
};

/* Consecutive rows whose ranges of keys begin, and end, either all at the same key or each one key after that of the
 * previous row. */
struct key_stretch {
    int64_t row, rows;
    struct key_range first, last;
};

/* What is needed to find the keys that a query sees: the layout, the documents and the window. */
struct sight {
    const struct token_layout *layout;
    const struct document_list *list;
    uint32_t q_context, kv_context;
    int64_t kv_first, kv, window;
    const struct needed *needed; /* mask PLAN: the keys; NULL: they are of kv_context */
    int64_t begin;               /* first position of the document */
    int64_t first_row;           /* first row of the op's queries */
    struct key_stretch open;     /* rows that are not yet in a piece; rows = 0: none */
    struct visible_pieces *out;
};

/* Returns the number of key rows with a position below this one, among those that the op reads. */
static int64_t keys_below(const struct sight *s, int64_t position)
{
    int64_t rows =
        s->needed != NULL
            ? needed_below(s->needed, position)
            : layout_rows_below(s->layout, s->list, s->kv_context, position) - s->kv_first;
    return rows < 0 ? 0 : rows > s->kv ? s->kv : rows;
}

static struct key_range range_of(const struct sight *s, int64_t row)
{
    int64_t position = layout_gathered_in(s->layout, s->list, s->q_context, row);
    int64_t from = s->begin;
    if (s->window > 0 && position - s->window + 1 > from)
        from = position - s->window + 1;
    return (struct key_range){keys_below(s, from), keys_below(s, position + 1)};
}

static bool is_even(int64_t first, int64_t last, int64_t rows)
{
    return last == first || last - first == rows - 1;
}

/* True if a bound of the ranges changes evenly over two groups of `rows` rows together, as it does within each. */
static bool goes_on(int64_t a_first, int64_t a_last, int64_t b_first, int64_t b_last, int64_t rows)
{
    int64_t step = b_first - a_last;
    return (step == 0 || step == 1) && is_even(a_first, b_last, rows);
}

/* Appends the keys that a stretch of rows sees as a piece. */
static void add_piece(struct visible_pieces *out, int64_t first_row, const struct key_stretch *s)
{
    bool end_moves = s->last.end > s->first.end, begin_moves = s->last.begin > s->first.begin;
    if (s->last.end <= s->first.begin ||
        (end_moves && begin_moves && s->first.end <= s->first.begin))
        return; /* no row sees any key */
    struct attention_piece piece = {.row = s->row - first_row,
                                    .key = s->first.begin,
                                    .q = s->rows,
                                    .kv = s->last.end - s->first.begin};
    piece.offset = end_moves ? s->first.end - s->first.begin - 1 : piece.kv - 1;
    piece.window = begin_moves ? piece.offset + 1 : 0;
    out->piece = heap_grow(out->piece, &out->capacity, out->count + (size_t)1, sizeof *out->piece);
    out->piece[out->count++] = piece;
}

static void collect(struct sight *s, struct key_stretch next)
{
    struct key_stretch *open = &s->open;
    int64_t rows = open->rows + next.rows;
    if (open->rows > 0 &&
        goes_on(open->first.begin, open->last.begin, next.first.begin, next.last.begin, rows) &&
        goes_on(open->first.end, open->last.end, next.first.end, next.last.end, rows)) {
        open->rows = rows;
        open->last = next.last;
        return;
    }
    if (open->rows > 0)
        add_piece(s->out, s->first_row, open);
    *open = next;
}

/* Collects the pieces of rows row .. row + rows - 1. The positions of the rows have one stride, so the bounds of the
 * keys that they see move by at most one key from row to row. If the bounds move evenly from the first row to the last,
 * those of the rows in between follow; otherwise each half is collected by itself. */
static void collect_rows(struct sight *s, int64_t row, int64_t rows)
{
    struct key_stretch next = {row, rows, range_of(s, row), range_of(s, row + rows - 1)};
    if (is_even(next.first.begin, next.last.begin, rows) &&
        is_even(next.first.end, next.last.end, rows)) {
        collect(s, next);
        return;
    }
    collect_rows(s, row, rows / 2);
    collect_rows(s, row + rows / 2, rows - rows / 2);
}

/* Collects the rows [from, to) of the op's queries, which lie in one document. */
static void collect_document(struct sight *s, int64_t from, int64_t to)
{
    while (from < to) {
        int64_t run = layout_run_end(s->layout, s->list, s->q_context, from);
        /* between two neighbours of a stripe lie needed keys of all other ranks */
        if (s->needed != NULL && s->layout->kind == LAYOUT_STRIPED)
            run = from + 1;
        if (run > to)
            run = to;
        collect_rows(s, from, run - from);
        from = run;
    }
    if (s->open.rows > 0)
        add_piece(s->out, s->first_row, &s->open);
    s->open.rows = 0;
}

/* Fills the pieces. list: the documents of the sequence; NULL: it is one document. */
static void fill_pieces(const struct ir *ir, const struct work *work, uint32_t rank,
                        const struct document_list *list, struct visible_pieces *pieces)
{
    const struct document_list whole = {1, &ir->layout.tokens, NULL};
    assert(work_has_documents(work));
    struct sight s = {.layout = &ir->layout,
                      .q_context = ir_context_of(ir, rank),
                      .kv_context = origin_of(ir, work, rank),
                      .kv_first = work->attention.kv_first,
                      .kv = work->attention.kv,
                      .window = work->attention.window,
                      .list = list != NULL ? list : &whole,
                      .first_row = work->attention.q_first,
                      .out = pieces};
    struct needed needed = {0};
    if (work->attention.mask == MASK_PLAN) {
        needed_find(&needed, s.layout, s.list, s.q_context, s.window);
        s.needed = &needed;
    }
    pieces->count = 0;
    int64_t row = s.first_row, end = row + work->attention.q;
    while (row < end) {
        uint32_t document =
            document_at(s.list, layout_gathered_in(s.layout, s.list, s.q_context, row));
        int64_t next = layout_rows_below(s.layout, s.list, s.q_context, s.list->end[document]);
        s.begin = document_begin(s.list, document);
        if (next > end)
            next = end;
        collect_document(&s, row, next);
        row = next;
    }
    needed_release(&needed);
}

void visible_pieces(const struct ir *ir, const struct work *work, uint32_t rank,
                    struct visible_pieces *pieces)
{
    uint32_t sequence = ir_sequence_of(ir, rank, work->attention.sequence);
    fill_pieces(ir, work, rank, documents_of(&ir->documents, sequence), pieces);
}

void visible_pieces_whole(const struct ir *ir, const struct work *work, uint32_t rank,
                          struct visible_pieces *pieces)
{
    fill_pieces(ir, work, rank, NULL, pieces);
}

void visible_release(struct visible_pieces *pieces)
{
    free(pieces->piece);
    *pieces = (struct visible_pieces){0};
}

/* ---- the fullest rank ---- */

/* Returns the sum of the positions' distances from the begin of their document, plus 1, but at most `window`, over
 * `rows` positions that begin at `first` and are `stride` apart. */
static double seen_by_rows(int64_t first, int64_t stride, int64_t rows, int64_t window)
{
    int64_t ascending = rows; /* rows that do not see a whole window */
    if (window > 0 && first + (rows - 1) * stride > window)
        ascending = first >= window ? 0 : (window - first + stride - 1) / stride;
    double n = (double)ascending;
    return n * (double)first + (double)stride * n * (n - 1) / 2 +
           (double)(rows - ascending) * (double)window;
}

/* Returns how many pairs the queries of a context rank see of all keys of a sequence. */
static double seen_pairs(const struct token_layout *layout, const struct document_list *list,
                         uint32_t context, int64_t window)
{
    int64_t row = 0, own = layout->tokens / layout->cp;
    double pairs = 0;
    while (row < own) {
        int64_t position = layout_gathered_in(layout, list, context, row);
        uint32_t document = document_at(list, position);
        int64_t end = layout_rows_below(layout, list, context, list->end[document]);
        int64_t run = layout_run_end(layout, list, context, row);
        if (run < end)
            end = run;
        pairs += seen_by_rows(position - document_begin(list, document) + 1,
                              layout->kind == LAYOUT_STRIPED ? layout->cp : 1, end - row, window);
        row = end;
    }
    return pairs;
}

/* Adds to the places the pairs of a shape that runs `times` times; its keys are those of all ranks. */
static void add_pairs(double *pairs, const struct ir *ir, const struct work *work, double times)
{
    const struct document_list whole = {1, &ir->layout.tokens, NULL};
    uint32_t replicas;
    ir_index_along(ir, 0, ir_axes_named(ir, "dp"), &replicas);
    for (uint32_t r = 0; r < replicas; r++) {
        const struct document_list *list =
            documents_of(&ir->documents,
                         (uint32_t)(r * (ir->global_batch / replicas) + work->attention.sequence));
        for (uint32_t c = 0; c < ir->layout.cp; c++)
            pairs[r * ir->layout.cp + c] +=
                times *
                seen_pairs(&ir->layout, list != NULL ? list : &whole, c, work->attention.window);
    }
}

struct visible_fullest visible_find_fullest(const struct ir *ir)
{
    uint32_t places = ir_places(ir), most = 0;
    double *pairs = heap_zalloc(places, sizeof *pairs), sum = 0;
    double *times = heap_zalloc(ir->shape_count + 1u, sizeof *times);
    struct visible_fullest fullest = {0, 1};
    /* Each run of an attention operator has one tile of a rank's own keys. */
    for (uint32_t op = 0; op < ir->op.count; op++) {
        const struct work *work = ir_work(ir, op);
        if (work_has_documents(work) && work->attention.mask != MASK_PLAN &&
            work->attention.away == 0 && work->attention.away_out == 0)
            times[ir->op.shape[op]] += repeats_times(&ir->repeats, op);
    }
    for (uint32_t s = 0; s < ir->shape_count; s++)
        if (times[s] > 0)
            add_pairs(pairs, ir, &ir->shape[s], times[s]);
    for (uint32_t p = 0; p < places; p++) {
        sum += pairs[p];
        most = pairs[p] > pairs[most] ? p : most;
    }
    if (sum > 0)
        fullest.over_mean = pairs[most] * places / sum;
    while (ir_place_of(ir, fullest.rank) != most)
        fullest.rank++;
    free(times);
    free(pairs);
    return fullest;
}

/* ---- flops ---- */

double ir_op_flops(const struct ir *ir, const struct work *work, uint32_t rank)
{
    struct visible_pieces pieces = {0};
    double pairs = 0;
    if (!work_has_documents(work))
        return work_flops(work) * work_used(work);
    visible_pieces(ir, work, rank, &pieces);
    for (uint32_t i = 0; i < pieces.count; i++)
        pairs += attention_piece_pairs(&pieces.piece[i]);
    visible_release(&pieces);
    return work_attention_flops(work, pairs);
}

double *ir_flops(const struct ir *ir, uint32_t rank)
{
    double *flops = heap_alloc(ir->shape_count + 1u, sizeof *flops);
    for (uint32_t i = 0; i < ir->shape_count; i++)
        flops[i] = ir_op_flops(ir, &ir->shape[i], rank);
    return flops;
}

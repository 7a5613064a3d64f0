#include "schedule/ir/visible.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Returns the rank that is `away` ranks before this one in the ring of the named group; `rank` itself if there is no
 * such group or the rank is not in it. */
static uint32_t ring_rank_before(const struct ir *ir, const char *name, uint32_t rank, int64_t away)
{
    uint32_t row = ir_find_by_name(ir, IR_GROUP, name, strlen(name));
    uint32_t instance, index;
    if (row == IR_NONE || away == 0 ||
        !group_find_member(&ir->mesh, &ir->group[row], rank, &instance, &index))
        return rank;
    uint32_t size = group_rank_count(&ir->mesh, &ir->group[row]);
    uint32_t before = (index + size - (uint32_t)(away % size)) % size;
    return group_global_rank_of_member(&ir->mesh, &ir->group[row], instance, before);
}

/* Returns the name of the ring's group; of the inner ring, if there are two. */
static const char *ring_group_name(const struct ir *ir)
{
    return ir_find_by_name(ir, IR_GROUP, "cp_in", 5) != IR_NONE ? "cp_in" : "cp";
}

/* Returns the context rank whose keys the op reads. */
static uint32_t context_of_keys(const struct ir *ir, const struct work *work, uint32_t rank)
{
    uint32_t from = ring_rank_before(ir, ring_group_name(ir), rank, work->attention.away);
    return ir_context_index(ir, ring_rank_before(ir, "cp_out", from, work->attention.away_out));
}

/* ---- whether schedules and ops may have such masks ---- */

const char *visible_why_schedule_unfit(const struct ir *ir)
{
    const uint32_t replicas = ir_replica_count(ir);
    uint32_t contexts;
    if (ir->layout.sequence_tokens == 0)
        return "needs a token layout";
    ir_rank_index_along_axes(ir, 0, ir_mask_of_axes_named(ir, "cp"), &contexts);
    if (contexts != ir->layout.cp)
        return "needs as many ranks along cp in the mesh as in the token layout";
    if (ir->global_batch < replicas || ir->global_batch % replicas != 0)
        return "needs a batch that divides over the ranks along dp";
    if (ir->layout.kind == LAYOUT_FPDT_RANK_ORDINAL && ir->layout.cp > 1)
        return "is not defined for layout rank_ordinal over several context ranks";
    for (uint32_t l = 0; l < ir->documents.list_count; l++)
        if (!layout_can_cut_documents(&ir->layout, &ir->documents.list[l]))
            return "needs documents that cut into the slices of layout zigzag_documents";
    for (uint32_t s = 0; ir->layout.kind == LAYOUT_DEALT && s < ir->global_batch; s++)
        if (!layout_deal_is_even(&ir->layout, documents_of_sequence(&ir->documents, s)))
            return "needs the owners of the tokens of every sequence, equally many of each rank, "
                   "as layout dealt has them";
    return NULL;
}

/* Returns the rows that an attention with mask PLAN reads. */
static struct row_use row_use_of_plan_attention(const struct work *work,
                                                enum plan_keys_or_queries what)
{
    return (struct row_use){work->attention.sequence, work->attention.window, work->attention.round,
                            work->kind == WORK_ATTENTION ? PLAN_FORWARD : PLAN_BACKWARD, what};
}

/* Returns why the parameters of an attention with mask PLAN do not fit the schedule, as visible_why_work_unfit() does;
 * NULL: they fit. */
static const char *why_plan_mask_unfit(const struct ir *ir, const struct work *work)
{
    const struct row_use keys = row_use_of_plan_attention(work, PLAN_KEYS),
                         queries = row_use_of_plan_attention(work, PLAN_QUERIES);
    const char *why = row_use_why_round_is_missing(ir, &keys);
    if (work->attention.kv_first || work->attention.away || work->attention.away_out)
        return "it names keys of one rank, and mask=plan reads those that ranks need";
    if (why != NULL)
        return why;
    if (work->attention.kv < row_use_max_rows_of_any_rank(ir, &keys).packed_rows)
        return "it has fewer keys than its ranks need";
    return work->attention.round > 0 &&
                   work->attention.q < row_use_max_rows_of_any_rank(ir, &queries).packed_rows
               ? "it has fewer queries than the tiles of its ranks"
               : NULL;
}

/* Returns the number of ranks of a ring; 1 if there is no such ring. */
static int64_t ring_rank_count(const struct ir *ir, const char *name)
{
    uint32_t group = ir_find_by_name(ir, IR_GROUP, name, strlen(name));
    return group != IR_NONE ? group_rank_count(&ir->mesh, &ir->group[group]) : 1;
}

const char *visible_why_work_unfit(const struct ir *ir, const struct work *work)
{
    int64_t own = ir->layout.sequence_tokens / ir->layout.cp;
    struct row_use use;
    const bool needs = row_use_if_work_moves_rows(work, &use);
    if ((needs ? use.sequence : work->attention.sequence) >=
        ir->global_batch / ir_replica_count(ir))
        return "its sequence is beyond those that a rank has";
    if (needs)
        return row_use_why_unfit(ir, work, &use);
    if (work->attention.offset != 0)
        return "an offset, which this mask does not read";
    if (work->attention.mask == MASK_PLAN && work->attention.round > 0)
        return work->attention.q_first
                   ? "it names a first query, and its queries are those of tiles"
                   : why_plan_mask_unfit(ir, work);
    if (work->attention.round > 0 || work->attention.delta)
        return "it has a round or delta, which are of the tiles of a plan (mask=plan)";
    if (work->attention.q > own || work->attention.q_first > own - work->attention.q)
        return "its queries end behind the tokens that a context rank has of a sequence";
    if (work->attention.mask == MASK_PLAN)
        return why_plan_mask_unfit(ir, work);
    if (work->attention.kv > own || work->attention.kv_first > own - work->attention.kv)
        return "its keys end behind the tokens that a context rank has of a sequence";
    if (work->attention.away >= ring_rank_count(ir, ring_group_name(ir)) ||
        work->attention.away_out >= ring_rank_count(ir, "cp_out"))
        return "its keys are of a rank further away than the ring is long";
    return NULL;
}

/* ---- which keys the rows of an op see ---- */

/* The keys [begin, end) that a query row sees. */
struct key_range {
    int64_t begin, end;
};

/* Consecutive rows of queries, with the ranges of keys that the first and the last of the rows see. From each row to
 * the next, the begin of the range either stays the same in the whole run, or moves by one in the whole run; so does
 * the end. */
struct query_row_run {
    int64_t row, rows;
    struct key_range first, last;
};

/* The data from which the keys that a query sees are found: the layout, the documents and the window; and the pieces
 * that are being made. */
struct key_visibility_search {
    const struct token_layout *layout;
    const struct document_list *list;
    uint32_t q_context, kv_context;
    int64_t kv_first, kv, window;
    /* mask PLAN without a round: the keys; else NULL */
    const struct needed_tokens *needed_key_tokens;
    /* mask PLAN with a round: what the rank reads in the round, and the strip of queries that is being collected; else
     * NULL */
    const struct plan_round_data_of_rank *plan_round_data_of_rank;
    const struct plan_query_strip *strip;
    /* the first position that the rows being collected may see, if no window hides it: that of their document, of their
     * chunk of tokens in it or, for a strip, of the strip's keys */
    int64_t first_seen_position;
    int64_t first_row;                /* first row of the op's queries */
    struct query_row_run pending_run; /* rows that are not yet in a piece; rows = 0: none */
    struct visible_pieces *out;
};

/* Returns the end of the tokens that the query at `position` may see, and sets *begin to their begin: they are the
 * tokens of its document or, if attention is in chunks of tokens (chunk > 0), those of them that lie in its chunk. */
static int64_t end_of_visible_tokens(const struct document_list *list, int64_t chunk,
                                     int64_t position, int64_t *begin)
{
    const uint32_t document = document_index_at_position(list, position);
    const int64_t from = chunk > 0 ? position / chunk * chunk : 0,
                  end = list->document_end[document];
    *begin = document_begin(list, document);
    *begin = from > *begin ? from : *begin;
    return chunk > 0 && from + chunk < end ? from + chunk : end;
}

static int64_t attention_chunk_tokens_of_work(const struct work *work)
{
    return work->attention.mask == MASK_CHUNKS ? work->attention.window : 0;
}

static int64_t sliding_window_tokens_of_work(const struct work *work)
{
    return work->attention.mask == MASK_CHUNKS ? 0 : work->attention.window;
}

/* Returns the number of the op's key rows whose position is below this one. */
static int64_t key_rows_below_position(const struct key_visibility_search *s, int64_t position)
{
    int64_t rows =
        s->plan_round_data_of_rank != NULL
            ? tile_plan_key_count_below(s->plan_round_data_of_rank, position)
        : s->needed_key_tokens != NULL
            ? needed_rows_below(s->needed_key_tokens, position)
            : layout_rows_below(s->layout, s->list, s->kv_context, position) - s->kv_first;
    return rows < 0 ? 0 : rows > s->kv ? s->kv : rows;
}

static struct key_range visible_keys_of(const struct key_visibility_search *s, int64_t row)
{
    int64_t position = s->strip != NULL
                           ? s->strip->first_query + (row - s->strip->packed_row)
                           : layout_position_of_gathered_row(s->layout, s->list, s->q_context, row);
    int64_t from = s->first_seen_position, to = position + 1;
    if (s->window > 0 && position - s->window + 1 > from)
        from = position - s->window + 1;
    if (s->strip != NULL && s->strip->key_end < to)
        to = s->strip->key_end;
    struct key_range range = {key_rows_below_position(s, from), key_rows_below_position(s, to)};
    if (range.end < range.begin) /* all keys of the strip lie before the window */
        range.begin = range.end;
    return range;
}

/* True if a bound of the visible keys, whose values in the first and the last row of a run are `first` and `last`,
 * moves evenly in the run: it stays the same, or grows by one from row to row. It never falls, and never grows by more
 * than one from row to row, so these two values decide. */
static bool key_bound_moves_evenly_in_run(int64_t first, int64_t last, int64_t rows)
{
    return last == first || last - first == rows - 1;
}

/* A bound goes from a_first to a_last in one run and from b_first to b_last in the next, and moves evenly in each
 * (key_bound_moves_evenly_in_run()). True if it also moves evenly over both runs together, which have `rows` rows. */
static bool key_bound_moves_evenly_over_runs(int64_t a_first, int64_t a_last, int64_t b_first,
                                             int64_t b_last, int64_t rows)
{
    int64_t step = b_first - a_last;
    return (step == 0 || step == 1) && key_bound_moves_evenly_in_run(a_first, b_last, rows);
}

/* Appends a piece of attention: the rows of *s with the keys that they see. Appends nothing if no row sees a key. The
 * piece counts its queries from row first_row on. */
static void add_visible_piece(struct visible_pieces *out, int64_t first_row,
                              const struct query_row_run *s)
{
    bool end_moves = s->last.end > s->first.end, begin_moves = s->last.begin > s->first.begin;
    if (s->last.end <= s->first.begin ||
        (end_moves && begin_moves && s->first.end <= s->first.begin))
        return; /* no row sees any key */
    struct attention_piece piece = {.first_query = s->row - first_row,
                                    .first_key = s->first.begin,
                                    .query_count = s->rows,
                                    .key_count = s->last.end - s->first.begin};
    piece.offset = end_moves ? s->first.end - s->first.begin - 1 : piece.key_count - 1;
    piece.window = begin_moves ? piece.offset + 1 : 0;
    out->piece = heap_grow(out->piece, &out->capacity, out->count + (size_t)1, sizeof *out->piece);
    out->piece[out->count++] = piece;
}

static void add_query_row_run(struct key_visibility_search *s, struct query_row_run next)
{
    struct query_row_run *open = &s->pending_run;
    int64_t rows = open->rows + next.rows;
    if (open->rows > 0 &&
        key_bound_moves_evenly_over_runs(open->first.begin, open->last.begin, next.first.begin,
                                         next.last.begin, rows) &&
        key_bound_moves_evenly_over_runs(open->first.end, open->last.end, next.first.end,
                                         next.last.end, rows)) {
        open->rows = rows;
        open->last = next.last;
        return;
    }
    if (open->rows > 0)
        add_visible_piece(s->out, s->first_row, open);
    *open = next;
}

/* Collects the pieces of rows row .. row + rows - 1, whose positions are equally spaced. From row to row, the first and
 * the last key that is seen move by at most one. If both move evenly from the first row to the last, the rows between
 * need not be looked at; otherwise the function calls itself for each half. */
static void collect_pieces_of_query_rows(struct key_visibility_search *s, int64_t row, int64_t rows)
{
    struct query_row_run next = {row, rows, visible_keys_of(s, row),
                                 visible_keys_of(s, row + rows - 1)};
    if (key_bound_moves_evenly_in_run(next.first.begin, next.last.begin, rows) &&
        key_bound_moves_evenly_in_run(next.first.end, next.last.end, rows)) {
        add_query_row_run(s, next);
        return;
    }
    collect_pieces_of_query_rows(s, row, rows / 2);
    collect_pieces_of_query_rows(s, row + rows / 2, rows - rows / 2);
}

/* Collects the rows [from, to) of the op's queries, which lie in one document and, if attention is in chunks of tokens,
 * in one chunk. */
static void collect_pieces_of_one_document(struct key_visibility_search *s, int64_t from,
                                           int64_t to)
{
    while (from < to) {
        int64_t run = layout_run_end_row(s->layout, s->list, s->q_context, from);
        /* Between two rows of a stripe lie needed keys of all other ranks, so the last key may move by more than one:
         * each row is a run. */
        if (s->needed_key_tokens != NULL && s->layout->kind == LAYOUT_STRIPED)
            run = from + 1;
        if (run > to)
            run = to;
        collect_pieces_of_query_rows(s, from, run - from);
        from = run;
    }
    if (s->pending_run.rows > 0)
        add_visible_piece(s->out, s->first_row, &s->pending_run);
    s->pending_run.rows = 0;
}

/* Collects the pieces of all tiles of a rank in a round. */
static void collect_pieces_of_tiles(struct key_visibility_search *s,
                                    const struct plan_round_data_of_rank *part)
{
    s->plan_round_data_of_rank = part;
    for (uint32_t i = 0; part != NULL && i < part->strip_count; i++) {
        s->strip = &part->strip[i];
        s->first_seen_position = s->strip->key_begin;
        collect_pieces_of_query_rows(s, s->strip->packed_row, s->strip->query_count);
        if (s->pending_run.rows > 0)
            add_visible_piece(s->out, 0, &s->pending_run);
        s->pending_run.rows = 0;
    }
}

/* Fills *pieces with what the rank sees in the work. list: the documents of the sequence; NULL: it is one document. */
static void fill_visible_pieces(const struct ir *ir, const struct work *work, uint32_t rank,
                                const struct document_list *list, struct visible_pieces *pieces)
{
    const struct document_list whole = {.document_count = 1,
                                        .document_end = &ir->layout.sequence_tokens};
    assert(work_pairs_depend_on_rank(work));
    struct key_visibility_search s = {.layout = &ir->layout,
                                      .q_context = ir_context_index(ir, rank),
                                      .kv_context = context_of_keys(ir, work, rank),
                                      .kv_first = work->attention.kv_first,
                                      .kv = work->attention.kv,
                                      .window = sliding_window_tokens_of_work(work),
                                      .list = list != NULL ? list : &whole,
                                      .first_row = work->attention.q_first,
                                      .out = pieces};
    struct needed_tokens needed = {0};
    pieces->count = 0;
    if (work->attention.mask == MASK_PLAN && work->attention.round > 0) {
        const struct row_use use = row_use_of_plan_attention(work, PLAN_KEYS);
        collect_pieces_of_tiles(&s, row_use_plan_part(&use, s.list, s.q_context));
        return;
    }
    if (work->attention.mask == MASK_PLAN) {
        needed_find_tokens(&needed, s.layout, s.list, s.q_context, s.window);
        s.needed_key_tokens = &needed;
    }
    int64_t row = s.first_row, end = row + work->attention.q;
    while (row < end) {
        const int64_t together = end_of_visible_tokens(
            s.list, attention_chunk_tokens_of_work(work),
            layout_position_of_gathered_row(s.layout, s.list, s.q_context, row),
            &s.first_seen_position);
        int64_t next = layout_rows_below(s.layout, s.list, s.q_context, together);
        if (next > end)
            next = end;
        collect_pieces_of_one_document(&s, row, next);
        row = next;
    }
    needed_release(&needed);
}

void visible_find_pieces(const struct ir *ir, const struct work *work, uint32_t rank,
                         struct visible_pieces *pieces)
{
    uint32_t sequence = ir_batch_sequence_of_rank(ir, rank, work->attention.sequence);
    fill_visible_pieces(ir, work, rank, documents_of_sequence(&ir->documents, sequence), pieces);
}

void visible_find_pieces_as_one_document(const struct ir *ir, const struct work *work,
                                         uint32_t rank, struct visible_pieces *pieces)
{
    fill_visible_pieces(ir, work, rank, NULL, pieces);
}

void visible_release(struct visible_pieces *pieces)
{
    free(pieces->piece);
    *pieces = (struct visible_pieces){0};
}

/* ---- the place with the most visible pairs ---- */

/* Returns the visible pairs of `rows` queries: the first of them sees `first` keys and each further one `stride` more
 * than the one before it, but none sees more than `window` keys. window 0: there is no such limit. */
static double visible_pairs_of_query_rows(int64_t first, int64_t stride, int64_t rows,
                                          int64_t window)
{
    int64_t ascending = rows; /* rows that do not see a whole window */
    if (window > 0 && first + (rows - 1) * stride > window)
        ascending = first >= window ? 0 : (window - first + stride - 1) / stride;
    double n = (double)ascending;
    return n * (double)first + (double)stride * n * (n - 1) / 2 +
           (double)(rows - ascending) * (double)window;
}

/* Returns the number of visible pairs of a context rank's own queries and all keys of a sequence. window, chunk: 0:
 * none. */
static double visible_pairs_of_context(const struct token_layout *layout,
                                       const struct document_list *list, uint32_t context,
                                       int64_t window, int64_t chunk)
{
    int64_t row = 0, own = layout->sequence_tokens / layout->cp;
    double pairs = 0;
    while (row < own) {
        int64_t position = layout_position_of_gathered_row(layout, list, context, row);
        int64_t begin;
        const int64_t together = end_of_visible_tokens(list, chunk, position, &begin);
        int64_t end = layout_rows_below(layout, list, context, together);
        int64_t run = layout_run_end_row(layout, list, context, row);
        if (run < end)
            end = run;
        pairs += visible_pairs_of_query_rows(position - begin + 1,
                                             layout->kind == LAYOUT_STRIPED ? layout->cp : 1,
                                             end - row, window);
        row = end;
    }
    return pairs;
}

/* Returns the visible pairs of the tiles that a context rank computes in the round of a shape. */
static double visible_pairs_of_round(const struct ir *ir, const struct work *work,
                                     const struct document_list *list, uint32_t context)
{
    const struct row_use use = row_use_of_plan_attention(work, PLAN_KEYS);
    struct visible_pieces pieces = {0};
    struct key_visibility_search s = {.layout = &ir->layout,
                                      .list = list,
                                      .kv = INT64_MAX,
                                      .window = work->attention.window,
                                      .out = &pieces};
    double pairs = 0;
    collect_pieces_of_tiles(&s, row_use_plan_part(&use, list, context));
    for (uint32_t i = 0; i < pieces.count; i++)
        pairs += attention_piece_pairs(&pieces.piece[i]);
    visible_release(&pieces);
    return pairs;
}

/* Adds to pairs[] of each place the visible pairs of a shape that runs `times` times: those of its rank's own queries
 * with the keys of all ranks or, if the shape has a round, those of the tiles that the rank computes in it. */
static void add_visible_pairs_by_place(double *pairs, const struct ir *ir, const struct work *work,
                                       double times)
{
    for (uint32_t r = 0; r < ir_replica_count(ir); r++) {
        struct document_list whole;
        const struct document_list *of =
            ir_replica_documents(ir, r, work->attention.sequence, &whole);
        for (uint32_t c = 0; c < ir->layout.cp; c++) {
            pairs[r * ir->layout.cp + c] +=
                times * (work->attention.round > 0
                             ? visible_pairs_of_round(ir, work, of, c)
                             : visible_pairs_of_context(&ir->layout, of, c,
                                                        sliding_window_tokens_of_work(work),
                                                        attention_chunk_tokens_of_work(work)));
        }
    }
}

struct visible_fullest_place visible_find_fullest_place(const struct ir *ir)
{
    uint32_t places = ir_place_count(ir), most = 0;
    double *pairs = heap_zalloc(places, sizeof *pairs), sum = 0;
    double *times = heap_zalloc(ir->shape_count + 1u, sizeof *times);
    struct visible_fullest_place fullest = {0, 1};
    /* Each time that an attention operator runs counts once. Where ranks get keys of other ranks, in a ring or with
     * needed rows (mask PLAN without a round), only the op on a rank's own keys counts, since
     * add_visible_pairs_by_place() takes the keys of all ranks for it. With a core plan the ops of all rounds count. */
    for (uint32_t op = 0; op < ir->op.count; op++) {
        const struct work *work = ir_work(ir, op);
        if (work_pairs_depend_on_rank(work) &&
            (work->attention.mask != MASK_PLAN || work->attention.round > 0) &&
            work->attention.away == 0 && work->attention.away_out == 0)
            times[ir->op.shape[op]] += repeats_occurrence_count(&ir->repeats, op);
    }
    for (uint32_t s = 0; s < ir->shape_count; s++)
        if (times[s] > 0)
            add_visible_pairs_by_place(pairs, ir, &ir->shape[s], times[s]);
    for (uint32_t p = 0; p < places; p++) {
        sum += pairs[p];
        most = pairs[p] > pairs[most] ? p : most;
    }
    if (sum > 0)
        fullest.pairs_over_mean = pairs[most] * places / sum;
    while (ir_place_of_rank(ir, fullest.rank) != most)
        fullest.rank++;
    free(times);
    free(pairs);
    return fullest;
}

/* ---- the flops of ops on a rank ---- */

double ir_work_flops_on_rank(const struct ir *ir, const struct work *work, uint32_t rank)
{
    struct visible_pieces pieces = {0};
    double pairs = 0;
    if (!work_pairs_depend_on_rank(work))
        return work_flops(work) * work_used_row_share(work);
    visible_find_pieces(ir, work, rank, &pieces);
    for (uint32_t i = 0; i < pieces.count; i++)
        pairs += attention_piece_pairs(&pieces.piece[i]);
    visible_release(&pieces);
    return work_attention_flops(work, pairs);
}

double *ir_flops_by_shape_on_rank(const struct ir *ir, uint32_t rank)
{
    double *flops = heap_alloc(ir->shape_count + 1u, sizeof *flops);
    for (uint32_t i = 0; i < ir->shape_count; i++)
        flops[i] = ir_work_flops_on_rank(ir, &ir->shape[i], rank);
    return flops;
}

#include "schedule/ir/layout.h"

#include <assert.h>
#include <inttypes.h>

/* In every layout but LAYOUT_FPDT_RANK_ORDINAL the head ranks of a context rank divide its list of tokens, which is in
 * gathered order, into equal contiguous parts. In LAYOUT_FPDT_RANK_ORDINAL they divide each chunk in this way, so that
 * the head group can gather chunk by chunk. */

const char *const layout_names[LAYOUT_KIND_COUNT] = {
    [LAYOUT_CONTIGUOUS] = "contiguous", [LAYOUT_FPDT_RANK_ORDINAL] = "rank_ordinal",
    [LAYOUT_STRIPED] = "striped",       [LAYOUT_ZIGZAG] = "zigzag",
    [LAYOUT_ZIGZAG_2D] = "zigzag_2d",   [LAYOUT_ZIGZAG_DOCUMENTS] = "zigzag_documents",
    [LAYOUT_DEALT] = "dealt",
};

/* Returns the number of which the tokens of a sequence must be a multiple. */
static uint64_t sequence_token_multiple(const struct token_layout *layout)
{
    uint64_t ranks = (uint64_t)layout->cp * layout->hp;
    switch ((enum layout_kind)layout->kind) {
    case LAYOUT_FPDT_RANK_ORDINAL:
        return layout->chunk_tokens > 0 || layout->tokens_by_chunk != NULL
                   ? ranks
                   : ranks * layout->chunk_count;
    /* A context rank has two equal slices of the sequence, or of each document. So its number of tokens is a multiple
     * of 2, and it is a multiple of hp because its head ranks divide it evenly. */
    case LAYOUT_ZIGZAG:
    case LAYOUT_ZIGZAG_DOCUMENTS:
        return layout->hp % 2 ? 2 * ranks : ranks;
    case LAYOUT_ZIGZAG_2D:
        return 2 * ranks;
    default:
        return ranks;
    }
}

/* Checks that chunk_tokens, which is not 0, is a multiple of hp, and that the tokens of a context rank make chunk_count
 * chunks of chunk_tokens tokens, of which the last may have fewer. */
static enum status check_chunk_tokens(const struct token_layout *layout, struct loc at,
                                      struct diag *diag)
{
    int64_t own = layout->sequence_tokens / layout->cp;
    if (layout->chunk_tokens % layout->hp != 0)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "chunks of %" PRId64 " tokens do not divide over %" PRIu32 " head ranks",
                          layout->chunk_tokens, layout->hp);
    if ((own + layout->chunk_tokens - 1) / layout->chunk_tokens == layout->chunk_count)
        return STATUS_OK;
    return diag_error(diag, at, STATUS_BAD_INPUT,
                      "%" PRId64 " tokens in chunks of %" PRId64 " make %" PRId64
                      " chunks, not %" PRIu32,
                      own, layout->chunk_tokens,
                      (own + layout->chunk_tokens - 1) / layout->chunk_tokens, layout->chunk_count);
}

/* Checks that each of tokens_by_chunk[] divides evenly over all ranks, and that they add up to the sequence. */
static enum status check_lengths(const struct token_layout *layout, struct loc at,
                                 struct diag *diag)
{
    int64_t ranks = (int64_t)layout->cp * layout->hp, sum = 0;
    for (uint32_t i = 0; i < layout->chunk_count; i++) {
        if (layout->tokens_by_chunk[i] < 1 || layout->tokens_by_chunk[i] % ranks != 0)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "a chunk of %" PRId64 " tokens does not divide over %" PRId64
                              " ranks",
                              layout->tokens_by_chunk[i], ranks);
        if (layout->tokens_by_chunk[i] > layout->sequence_tokens - sum)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "the chunks have more tokens than the sequence, which has %" PRId64,
                              layout->sequence_tokens);
        sum += layout->tokens_by_chunk[i];
    }
    if (sum == layout->sequence_tokens)
        return STATUS_OK;
    return diag_error(diag, at, STATUS_BAD_INPUT,
                      "the chunks have %" PRId64 " tokens, the sequence %" PRId64, sum,
                      layout->sequence_tokens);
}

/* Returns the number of tokens, over all ranks, of the chunk in which position p of a rank lies, if each of `ranks`
 * ranks has an equal part of every chunk. Sets *before to the number of tokens of all chunks before it. */
static int64_t tokens_of_chunk_with_position(const struct token_layout *layout, int64_t ranks,
                                             int64_t p, int64_t *before)
{
    *before = 0;
    if (layout->tokens_by_chunk == NULL) {
        int64_t size = layout->chunk_tokens > 0 ? layout->chunk_tokens * layout->cp
                                                : layout->sequence_tokens / layout->chunk_count,
                rest;
        *before = p * ranks / size * size;
        rest = layout->sequence_tokens - *before;
        return rest < size ? rest : size;
    }
    for (uint32_t i = 0; i + 1 < layout->chunk_count; i++) {
        if (p * ranks < *before + layout->tokens_by_chunk[i])
            return layout->tokens_by_chunk[i];
        *before += layout->tokens_by_chunk[i];
    }
    return layout->tokens_by_chunk[layout->chunk_count - 1];
}

enum status layout_check(const struct token_layout *layout, struct loc at, struct diag *diag)
{
    assert(layout->kind < LAYOUT_KIND_COUNT);
    const char *name = layout_names[layout->kind];
    if (layout->cp < 1 || layout->hp < 1 || layout->chunk_count < 1)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "a token layout needs at least one context rank, head rank and chunk");
    bool chunked =
        layout->chunk_count > 1 || layout->chunk_tokens != 0 || layout->tokens_by_chunk != NULL;
    if (chunked && layout->kind != LAYOUT_FPDT_RANK_ORDINAL)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "layout %s has no chunks: only rank_ordinal does", name);
    if (layout->kind == LAYOUT_ZIGZAG_2D && layout->hp > 1 && layout->hp % 2)
        return diag_error(
            diag, at, STATUS_BAD_INPUT,
            "layout zigzag_2d needs an even number of head ranks (or one), not %" PRIu32
            ": %" PRIu32 " or %" PRIu32 " would do",
            layout->hp, layout->hp - 1, layout->hp + 1);
    uint64_t ranks = (uint64_t)layout->cp * layout->hp;
    if (ranks > UINT32_MAX || ranks * layout->chunk_count > UINT32_MAX)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "the token layout has more than %" PRIu32 " pieces", UINT32_MAX);
    if (layout->sequence_tokens < 1)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "the sequence has %" PRId64 " tokens; it needs at least 1",
                          layout->sequence_tokens);
    if (layout->tokens_by_chunk != NULL)
        return check_lengths(layout, at, diag);
    int64_t step = (int64_t)sequence_token_multiple(layout);
    int64_t rest = layout->sequence_tokens % step;
    if (rest == 0)
        return layout->chunk_tokens > 0 ? check_chunk_tokens(layout, at, diag) : STATUS_OK;
    int64_t below = layout->sequence_tokens - rest;
    if (below == 0 || below > INT64_MAX - step)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "a sequence of %" PRId64 " tokens does not divide over layout %s, which "
                          "needs a multiple of %" PRId64 ": %" PRId64 " would do",
                          layout->sequence_tokens, name, step, below ? below : step);
    return diag_error(diag, at, STATUS_BAD_INPUT,
                      "a sequence of %" PRId64 " tokens does not divide over layout %s, which "
                      "needs a multiple of %" PRId64 ": %" PRId64 " or %" PRId64 " would do",
                      layout->sequence_tokens, name, step, below, below + step);
}

/* A document as layout ZIGZAG_DOCUMENTS cuts it: into 2 cp slices of equally many tokens. Each context rank has two of
 * them. */
struct document_slices_of_zigzag {
    /* begin: first position of the document; slice: number of tokens of each slice */
    int64_t begin, slice;
    int64_t row; /* the document's first row on each context rank */
};

/* Returns the slices of the document that has this position of the sequence. On every context rank gathered row p lies
 * in the document that has position p cp, since each rank has 1 / cp of every document. */
static struct document_slices_of_zigzag slices_of_document_at(const struct token_layout *layout,
                                                              const struct document_list *documents,
                                                              int64_t position)
{
    assert(documents != NULL);
    uint32_t i = document_index_at_position(documents, position);
    int64_t begin = document_begin(documents, i), cp = layout->cp;
    return (struct document_slices_of_zigzag){
        begin, (documents->document_end[i] - begin) / (2 * cp), begin / cp};
}

/* Returns the position of the p-th token of slices c and 2 cp - 1 - c together, if slice 0 begins at position 0. */
static int64_t position_in_slices(int64_t cp, int64_t c, int64_t slice, int64_t p)
{
    return p < slice ? c * slice + p : (2 * cp - 1 - c) * slice + p - slice;
}

int64_t layout_position_of_gathered_row(const struct token_layout *layout,
                                        const struct document_list *documents, uint32_t c,
                                        int64_t p)
{
    int64_t cp = layout->cp, own = layout->sequence_tokens / cp;
    assert(c < layout->cp && p >= 0 && p < own);
    switch ((enum layout_kind)layout->kind) {
    case LAYOUT_CONTIGUOUS:
        return c * own + p;
    case LAYOUT_FPDT_RANK_ORDINAL: { /* the c-th part of every chunk */
        int64_t before, length = tokens_of_chunk_with_position(layout, cp, p, &before);
        return before + c * (length / cp) + p - before / cp;
    }
    case LAYOUT_STRIPED:
        return p * cp + c;
    case LAYOUT_ZIGZAG:
    case LAYOUT_ZIGZAG_2D:
        return position_in_slices(cp, c, own / 2, p);
    case LAYOUT_DEALT: {
        const struct token_run *run = deal_run_of_row(documents->deal, c, p);
        return run->first_position + p - run->first_row;
    }
    default: {
        assert(layout->kind == LAYOUT_ZIGZAG_DOCUMENTS);
        struct document_slices_of_zigzag d = slices_of_document_at(layout, documents, p * cp);
        return d.begin + position_in_slices(cp, c, d.slice, p - d.row);
    }
    }
}

bool layout_can_cut_documents(const struct token_layout *layout,
                              const struct document_list *documents)
{
    for (uint32_t i = 0; layout->kind == LAYOUT_ZIGZAG_DOCUMENTS && i < documents->document_count;
         i++)
        if (documents->document_end[i] % (2 * (int64_t)layout->cp) != 0)
            return false;
    return true;
}

bool layout_deal_is_even(const struct token_layout *layout, const struct document_list *documents)
{
    if (layout->kind != LAYOUT_DEALT)
        return true;
    const struct token_deal *deal = documents != NULL ? documents->deal : NULL;
    return deal != NULL && deal->rank_count == layout->cp && deal_is_even(deal) &&
           deal_rows_of_rank(deal, 0) == layout->sequence_tokens / layout->cp;
}

static int64_t clamp_from_zero_to(int64_t value, int64_t most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

/* Slice 0 begins at position 0, and each slice has `slice` tokens. Returns how many positions of slices c and 2 cp - 1
 * - c are below `position`. */
static int64_t positions_in_slices_below(const struct token_layout *layout, uint32_t c,
                                         int64_t slice, int64_t position)
{
    int64_t cp = layout->cp;
    return clamp_from_zero_to(position - c * slice, slice) +
           clamp_from_zero_to(position - (2 * cp - 1 - c) * slice, slice);
}

int64_t layout_rows_below(const struct token_layout *layout, const struct document_list *documents,
                          uint32_t c, int64_t position)
{
    int64_t cp = layout->cp, own = layout->sequence_tokens / cp;
    if (position <= 0 || position >= layout->sequence_tokens)
        return position <= 0 ? 0 : own;
    switch ((enum layout_kind)layout->kind) {
    case LAYOUT_STRIPED:
        return position <= c ? 0 : (position - c + cp - 1) / cp;
    case LAYOUT_ZIGZAG:
    case LAYOUT_ZIGZAG_2D:
        return positions_in_slices_below(layout, c, own / 2, position);
    case LAYOUT_ZIGZAG_DOCUMENTS: {
        struct document_slices_of_zigzag d = slices_of_document_at(layout, documents, position);
        return d.row + positions_in_slices_below(layout, c, d.slice, position - d.begin);
    }
    case LAYOUT_DEALT:
        return deal_rows_below(documents->deal, c, position);
    default:
        assert(layout->kind == LAYOUT_CONTIGUOUS || cp == 1);
        return clamp_from_zero_to(position - c * own, own);
    }
}

int64_t layout_run_end_row(const struct token_layout *layout, const struct document_list *documents,
                           uint32_t c, int64_t row)
{
    int64_t own = layout->sequence_tokens / layout->cp;
    switch ((enum layout_kind)layout->kind) {
    case LAYOUT_ZIGZAG:
    case LAYOUT_ZIGZAG_2D:
        return row < own / 2 ? own / 2 : own;
    case LAYOUT_ZIGZAG_DOCUMENTS: {
        struct document_slices_of_zigzag d =
            slices_of_document_at(layout, documents, row * layout->cp);
        return d.row + (row < d.row + d.slice ? d.slice : 2 * d.slice);
    }
    case LAYOUT_DEALT: {
        const struct token_run *run = deal_run_of_row(documents->deal, c, row);
        return run->first_row + run->row_count;
    }
    default:
        return own;
    }
}

int64_t layout_position_of_own_row(const struct token_layout *layout,
                                   const struct document_list *documents, uint32_t c, uint32_t h,
                                   int64_t p)
{
    int64_t cp = layout->cp, ranks = cp * layout->hp, before;
    int64_t length = tokens_of_chunk_with_position(layout, ranks, p, &before);
    assert(h < layout->hp && p >= 0 && p < layout->sequence_tokens / ranks);
    return layout_position_of_gathered_row(layout, documents, c,
                                           before / cp + h * (length / ranks) + p - before / ranks);
}

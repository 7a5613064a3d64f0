/* schedule/ir/layout.h: which tokens of a sequence a rank owns.
 *
 * A layout divides a sequence of `tokens` tokens over the ranks of the context axes (cp) and head axes (hp). It says
 * which tokens a context rank owns, and in which order (the gathered order, in which its head group holds them after an
 * all-to-all); its head ranks own equal contiguous parts of these (in RANK_ORDINAL, of each chunk), tokens / (cp hp)
 * each. Sources: DeepSpeed-Ulysses; FPDT section 4 (rank-ordinal); striped attention; zigzag as in
 * ring-flash-attention and, cut over head ranks, USP; LoongTrain section 4 (2D zigzag). */
#ifndef SCHEDULE_LAYOUT_H
#define SCHEDULE_LAYOUT_H

#include "base/diag.h"
#include "schedule/ir/documents.h"

#include <stdbool.h>
#include <stdint.h>

enum layout_kind {
    LAYOUT_CONTIGUOUS, /* rank r = c hp + h owns tokens [r n, (r + 1) n), n = tokens / (cp hp) */
    /* FPDT with u chunks over all P ranks: the sequence is cut into u P pieces, and piece i P + r is rank r's part of
     * chunk i. Gathered tokens are in the order of the chunks, which with cp = 1 is the order of the sequence. */
    LAYOUT_FPDT_RANK_ORDINAL,
    LAYOUT_STRIPED, /* token i is on context rank i mod cp */
    LAYOUT_ZIGZAG,  /* context rank c owns slices c and 2 cp - 1 - c of 2 cp, in this order */
    /* The tokens of ZIGZAG, cut over head ranks as LoongTrain does: hp is 1 or even, and tokens is a multiple of 2 cp
     * hp; with even hp each rank owns two adjacent slices of 2 cp hp. Other hp are refused. */
    LAYOUT_ZIGZAG_2D,
    /* Context rank c owns slices c and 2 cp - 1 - c of the 2 cp slices of each document, in the order of the sequence
     * (Megatron-LM with packed sequences; TransformerEngine's thd format) */
    LAYOUT_ZIGZAG_DOCUMENTS,
    /* A context rank owns the runs of tokens that the deal of the sequence gives it (schedule/ir/deal.h), in the order
     * of the sequence; each rank has the same number of tokens */
    LAYOUT_DEALT,
    LAYOUT_KIND_COUNT
};

struct token_layout {
    uint8_t kind;            /* enum layout_kind */
    uint32_t cp, hp;         /* ranks of the context and of the head axes */
    uint32_t chunk_count;    /* u of RANK_ORDINAL, else 1 */
    int64_t sequence_tokens; /* tokens of one sequence */
    /* tokens of each chunk on a context rank, of which the last chunk may have fewer; 0: tokens_by_chunk has them, or
     * all chunks are equal */
    int64_t chunk_tokens;
    /* tokens of each chunk over all ranks; NULL: they follow from chunk_tokens. The memory belongs to the owner, an
     * ir's arena */
    const int64_t *tokens_by_chunk;
};

extern const char *const layout_names[LAYOUT_KIND_COUNT];

/* Checks that the sizes are divisible as the layout requires. If the sequence's length is not divisible, the message
 * names lengths that are. */
enum status layout_check(const struct token_layout *layout, struct loc at, struct diag *diag);

/* Returns the global position of local position p on the rank with context index c and head index h. documents: the
 * documents of the sequence, which only ZIGZAG_DOCUMENTS and DEALT need. */
int64_t layout_position_of_own_row(const struct token_layout *layout,
                                   const struct document_list *documents, uint32_t c, uint32_t h,
                                   int64_t p);
/* Returns the global position of the p-th token that rank c owns, in gathered order. Rank c owns tokens / cp
 * positions. */
int64_t layout_position_of_gathered_row(const struct token_layout *layout,
                                        const struct document_list *documents, uint32_t c,
                                        int64_t p);

/* True if the layout can cut each of the documents: ZIGZAG_DOCUMENTS needs multiples of 2 cp tokens. */
bool layout_can_cut_documents(const struct token_layout *layout,
                              const struct document_list *documents);
/* True if the layout is not DEALT, or the list deals tokens / cp tokens to each of cp ranks. documents may be NULL. */
bool layout_deal_is_even(const struct token_layout *layout, const struct document_list *documents);

/* Both functions need a layout whose gathered positions ascend: any but LAYOUT_FPDT_RANK_ORDINAL with cp > 1.
 * layout_rows_below() returns how many tokens of context rank c come before a global position. For
 * layout_run_end_row(), a run is gathered rows of rank c that follow each other at equally spaced positions, cp apart
 * in LAYOUT_STRIPED and 1 apart in other layouts; it returns the end of the run that has `row`. */
int64_t layout_rows_below(const struct token_layout *layout, const struct document_list *documents,
                          uint32_t c, int64_t position);
int64_t layout_run_end_row(const struct token_layout *layout, const struct document_list *documents,
                           uint32_t c, int64_t row);

#endif

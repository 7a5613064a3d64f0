/* schedule/ir/documents.h: the documents in the packed sequences of a step.
 *
 * A packed sequence consists of documents one after the other, and a token attends only to its own document.
 * Sequences are numbered over the whole batch of a step: data-parallel rank d of D has the numbers d n ... (d + 1) n
 * - 1, n = batch / D. If micro-batches have M sequences, its micro-batch m has those from d n + m M on. Sequences with
 * the same documents, deal and tiles share one list, so that equal micro-batches are known to be equal.
 *
 * In layout DEALT a list also says which context rank owns which tokens (schedule/ir/deal.h), and may say which rank
 * computes which tile of attention (schedule/ir/tile_plan.h).
 *
 * A caller who asks for a schedule makes one of these (documents_init(), then documents_set_lengths() for each
 * sequence) and passes it as `documents` of struct request; step_build() copies it into the schedule. All memory comes
 * from the arena that is passed. */
#ifndef SCHEDULE_DOCUMENTS_H
#define SCHEDULE_DOCUMENTS_H

#include "base/arena.h"
#include "schedule/ir/deal.h"
#include "schedule/ir/tile_plan.h"

#include <stdbool.h>
#include <stdint.h>

/* The documents of a sequence. document_end: the end position of each, ascending; the last one is the end of the
 * sequence. deal: the owners of the tokens; NULL: they follow from the layout. tiles: which rank computes which tiles;
 * NULL: each rank computes the queries that it owns. */
struct document_list {
    uint32_t document_count;
    const int64_t *document_end;
    const struct token_deal *deal;
    const struct tile_plan *tiles;
};

#define DOCUMENTS_NO_LIST UINT32_MAX /* in list_of_sequence: no list was set */

struct documents {
    uint32_t list_count, list_capacity;
    struct document_list *list; /* no two are equal */
    /* number of sequences of the step; 0: every sequence is one document */
    uint32_t sequence_count;
    uint32_t *list_of_sequence; /* [sequence_count] row of `list`; DOCUMENTS_NO_LIST: not set */
};

/* Starts documents for a batch of `sequences` sequences, none of which is set yet. */
void documents_init(struct documents *documents, struct arena *arena, uint32_t sequences);

/* Sets the documents of a sequence from their lengths. The tokens are not dealt, and there are no tiles. */
void documents_set_lengths(struct documents *documents, struct arena *arena, uint32_t sequence,
                           const int64_t *length, uint32_t count);

/* Sets the documents, the deal and the tiles of a sequence. If no equal list is stored yet, the list is stored with a
 * copy of its ends; it goes on to point to the caller's deal and tiles. */
void documents_set_list(struct documents *documents, struct arena *arena, uint32_t sequence,
                        struct document_list list);

/* Makes *to a copy of *from in the arena. Its lists point to the same deals and tiles. */
void documents_copy(struct documents *to, struct arena *arena, const struct documents *from);

/* Returns the list of a sequence. NULL: it is not set, or sequence_count is 0, so that every sequence is one
 * document. */
const struct document_list *documents_of_sequence(const struct documents *documents,
                                                  uint32_t sequence);

/* True if every sequence is set and is a single document. */
bool documents_are_single(const struct documents *documents);

/* True if some list deals the tokens of its sequence. */
bool documents_have_token_deal(const struct documents *documents);
/* True if some list says which rank computes which tile. */
bool documents_have_tile_plan(const struct documents *documents);

/* True if sequence number `sequence` of each of `ranks` data-parallel ranks is a single document, or is not set.
 * Sequences are counted on each rank from 0. */
bool documents_sequence_is_single(const struct documents *documents, uint32_t sequence,
                                  uint32_t ranks);

/* True if all of `ranks` data-parallel ranks have the same lists: documents, deals and tiles. */
bool documents_equal_on_ranks(const struct documents *documents, uint32_t ranks);

/* Returns the lowest number n of a sequence, counted on each rank, that has the same list as sequence `sequence` on
 * each of `ranks` ranks. Ops carry n as their sequence number, so that they are equal in equal micro-batches. */
uint32_t documents_first_equal_sequence(const struct documents *documents, uint32_t sequence,
                                        uint32_t ranks);

/* document_index_at_position() returns the number of the document that has the position; document_begin() returns the
 * first position of a document. */
uint32_t document_index_at_position(const struct document_list *list, int64_t position);
static inline int64_t document_begin(const struct document_list *list, uint32_t document)
{
    return document > 0 ? list->document_end[document - 1] : 0;
}

#endif

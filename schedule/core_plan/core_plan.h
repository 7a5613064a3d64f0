/* schedule/core_plan/core_plan.h: core plans as text: which rank owns which tokens, and computes which tiles of
 * attention.
 *
 *     core plan 1 ranks=2                               # window=TOKENS: a query sees at most that many keys
 *     sequence,what,begin,rows,key,keys,rank,round
 *     0,document,0,8,,,,                                # tokens 0..7 are a document; without such rows there is one
 *     0,own,0,8,,,0,                                    # rank 0 owns tokens 0..7
 *     0,tile,0,7,0,8,0,0                                # rank 0 computes queries 0..6 by keys 0..7 in round 0
 *
 * Rows may come in any order, but the documents of a sequence follow each other. Without tiles each rank computes the
 * queries that it owns. Rows `btile` are the tiles of the backward; without such rows the backward has the tiles of the
 * forward. A tile may hold pairs that the mask hides. Keys and queries that the rank of a tile does not own travel to
 * it before the tile's round, and the results of such queries travel back. The words route=direct and keep=kv are
 * accepted in the first line and change nothing. docs/core-plans.md describes all of it.
 *
 * The folder schedule/core_plan/ divides the attention of a sequence among context ranks: rules and plans as text. */
#ifndef SCHEDULE_CORE_PLAN_CORE_PLAN_H
#define SCHEDULE_CORE_PLAN_CORE_PLAN_H

#include "base/diag.h"
#include "base/text.h"
#include "schedule/ir/documents.h"

#include <stddef.h>
#include <stdint.h>

#define CORE_PLAN_TOKENS_MAX (INT64_C(1) << 40)

/* A range of tokens that one rank owns: the first token, and the number of tokens. */
struct core_token_run {
    int64_t begin, rows;
    uint32_t owner;
};

struct core_sequence {
    /* the length of the sequence: the end of the last document, or, if it has no rows `document`, the end of the last
     * token that has an owner */
    int64_t tokens;
    int64_t *document_end; /* [documents] the end of each document */
    uint32_t document_count;
    struct core_token_run *run;
    size_t run_count;
    struct core_tile *tile; /* of both passes */
    size_t tile_count;
    size_t end_capacity, run_capacity, tile_capacity;
};

/* A core plan. All-zero: it has no sequences. */
struct core_plan {
    uint32_t rank_count;
    int64_t window_tokens; /* 0: none */
    struct core_sequence *sequence;
    size_t sequence_count, capacity;
};

/* Reads a plan into *plan, which must be all-zero. Fails with a message at the first line that cannot be read, or if
 * there are no rows. It does not check whether the rows fit together; core_plan_check() does
 * (schedule/core_plan/coverage.h). name: the text's name in messages. */
enum status core_plan_parse(struct core_plan *plan, const char *name, const char *data, size_t size,
                            struct diag *diag);
void core_plan_print(struct text *out, const struct core_plan *plan);
void core_plan_release(struct core_plan *plan);

/* True if a text begins with "core plan 1". */
bool core_plan_is_text_of_plan(const char *data, size_t size);

/* Appends a sequence with the document ends, the owners and the tiles of `documents`, which must have a deal. Sets the
 * plan's rank_count to that of the deal. */
void core_plan_add_sequence(struct core_plan *plan, const struct document_list *documents);

/* Returns the documents of a sequence, without deal and tiles. The result points to the sequence's array of ends. */
struct document_list core_plan_document_list(const struct core_sequence *sequence);

/* Makes the documents, owners and tiles of all sequences, in the arena. core_plan_check() must have accepted the plan.
 * If no sequence has tiles, none get any. Otherwise a sequence without tiles gets those by which each rank computes its
 * own queries, in round 0. */
struct documents *core_plan_make_documents(const struct core_plan *plan, struct arena *arena);

#endif

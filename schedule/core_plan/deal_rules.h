/* schedule/core_plan/deal_rules.h: named rules of core plans, and how they deal the tokens of a sequence to context
 * ranks.
 *
 * Every rule gives each of R ranks S / R of the S tokens. Sources: ring attention (contiguous), striped attention,
 * ring-flash-attention (zigzag); WLB-LLM, arXiv 2503.17924, section 5 (per-document); MagiAttention's default dispatch
 * (chunks). */
#ifndef SCHEDULE_CORE_PLAN_DEAL_RULES_H
#define SCHEDULE_CORE_PLAN_DEAL_RULES_H

#include "base/diag.h"
#include "schedule/ir/documents.h"

enum deal_rule {
    DEAL_CONTIGUOUS, /* rank r has tokens r S/R ... (r + 1) S/R - 1 */
    DEAL_STRIPED,    /* token i is on rank i mod R */
    DEAL_ZIGZAG,     /* rank r has slices r and 2 R - 1 - r of 2 R */
    /* Rank r of R has slices r and 2 R - 1 - r of the 2 R equal slices of each document. The tokens of each document
     * that are left over, fewer than 2 R, are dealt for all documents together, in their order, rank 0's part first. A
     * rank that has such a token needs all keys of its document; in this way few ranks do. */
    DEAL_PER_DOCUMENT,
    /* The sequence is cut into chunks of equal length. The chunk whose queries see the most keys is dealt first. Each
     * goes to the rank with the fewest visible pairs so far among those that have room for a chunk. */
    DEAL_CHUNKS_TO_LEAST_LOADED,
    /* Documents are dealt one by one, the longest first. A document of n tokens is cut into 2 d slices, which are dealt
     * as in a zigzag to a set of d ranks. d is the least of 1, 2, 4, ..., R with n <= d S / R, where S is the length of
     * the sequence, or the next of these numbers for which some set of d ranks has room; the set with the fewest
     * visible pairs is taken. If no set has room, the document goes to the ranks with the most room. */
    DEAL_DOCUMENTS_BY_DEGREE,
    /* The rules from here on also say which rank computes which tile (schedule/core_plan/tile_rules.h). Those up to
     * DEAL_BURST deal tokens as DEAL_ZIGZAG does, and work in R steps, DEAL_ALL_GATHER_OF_KEYS in two. Their comments
     * say what rank r computes in step s. */
    DEAL_ZIGZAG_RING, /* its own queries by the keys of rank r - s */
    /* its own queries, first by the keys of all ranks of its inner ring, which has `parameter` ranks, then by those of
     * the inner ring before, and so on */
    DEAL_DOUBLE_RING,
    DEAL_ALL_GATHER_OF_KEYS, /* its own queries: in step 0 by its own keys, in step 1 by all others */
    DEAL_RING_OF_QUERIES,    /* the queries of rank r + s by its own keys */
    DEAL_BURST, /* the forward is that of DEAL_ZIGZAG_RING, the backward that of DEAL_RING_OF_QUERIES */
    /* Tokens are dealt as by DEAL_CONTIGUOUS, and each rank computes its own queries. Then slices of queries move, one
     * by one, to the rank with the fewest visible pairs, until no rank exceeds the mean by more than 2 %, no slice is
     * fit to move, or 16 slices for each rank have moved. A slice is the first or the last queries of a document on a
     * heavily loaded rank; the one that costs the fewest bytes for a pair is taken. It has at least `parameter` tokens
     * (a quarter of a rank's tokens if that is less), or is all that the rank has of the document. */
    DEAL_MOVE_QUERIES,
    /* Tokens are dealt as by DEAL_CHUNKS_TO_LEAST_LOADED. Then queries move as by DEAL_MOVE_QUERIES, in slices of at
     * least `parameter` tokens, until no rank exceeds the mean by more than 20 %. */
    DEAL_CHUNKS_THEN_MOVE_QUERIES,
    DEAL_RULE_COUNT
};
extern const char *const deal_rule_names[DEAL_RULE_COUNT];

/* A rule and its parameter: the number of tokens of a chunk or slice, or the number of ranks of an inner ring. */
struct deal_choice {
    enum deal_rule rule;
    int64_t parameter; /* 0: the rule has none */
};

/* Reads "NAME" or "NAME:NUMBER" ("chunks" is "chunks:2048"). */
enum status deal_choice_parse(struct deal_choice *choice, const char *text, struct diag *diag);
/* True if the rule says which rank computes each tile, and thus which rows are sent. */
bool deal_choice_has_tiles(const struct deal_choice *choice);
/* Returns the number of tokens that a sequence on `ranks` ranks must be a multiple of. */
int64_t deal_choice_token_unit(const struct deal_choice *choice, uint32_t ranks);

/* The windows of a model's layers. windowed_layer_share: the share of the layers in which a query sees at most `window`
 * keys; in the others it sees all. All-zero: no layer has a window. */
struct attention_windows_of_layers {
    int64_t window;
    double windowed_layer_share;
};

/* Returns the visible pairs of the queries [begin, end), on average over layers. */
double deal_count_pairs_seen_by_queries(const struct document_list *documents,
                                        struct attention_windows_of_layers windows, int64_t begin,
                                        int64_t end);

/* Deals a sequence with these documents. Its length must be a multiple of deal_choice_token_unit(). The rules that
 * count visible pairs count their mean over layers. The result is in the arena. */
struct token_deal *deal_by_rule(struct arena *arena, const struct deal_choice *choice,
                                uint32_t ranks, const struct document_list *documents,
                                struct attention_windows_of_layers windows);

#endif

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
    /* Rank r of R has slices r and 2 R - 1 - r of the 2 R slices of each document. The last tokens of documents, fewer
     * than 2 R of each, are dealt together in their order, to rank 0 first: a rank that has such a token needs all keys
     * of its document, and so few ranks do. */
    DEAL_PER_DOCUMENT,
    /* The sequence is cut into chunks of equal length. The chunk whose queries see the most keys is dealt first. Each
     * goes to the rank with the fewest visible pairs so far among those that have room for a chunk. */
    DEAL_CHUNKS,
    /* Documents are dealt one by one, the longest first. A document of n tokens is cut into 2 d slices, which are dealt
     * as in a zigzag to the least loaded set of d ranks that have room. d is the least of 1, 2, 4, ..., R with n <= d S
     * / R, where S is the length of the sequence; if no such set has room, d is the next of these; if none has, the
     * document goes to the ranks that have room. */
    DEAL_DEGREE,
    /* The rules from here on have tiles, too (schedule/core_plan/tile_rules.h). The first ones deal tokens as
     * DEAL_ZIGZAG does. In step s of a ring, rank r computes its own queries by the keys of rank r - s. */
    DEAL_ZIGZAG_RING,
    DEAL_DOUBLE_RING, /* in rings of `parameter` ranks, and then by the keys of the next such ring */
    DEAL_GATHER,      /* its queries by its own keys, and then by all others at once */
    DEAL_TOKEN_RING,  /* the queries of rank r + s by its own keys */
    DEAL_BURST, /* the forward is that of DEAL_ZIGZAG_RING, the backward that of DEAL_TOKEN_RING */
    /* Tokens are dealt as by DEAL_CONTIGUOUS. Then the rank with the fewest visible pairs takes queries from the most
     * loaded ranks, whichever cost the fewest bytes for a pair: the first or last queries of a document there, in
     * slices of at least `parameter` tokens, or of a quarter of a rank's tokens if that is fewer. */
    DEAL_MOVE,
    /* Dealt as DEAL_CHUNKS does; then queries move as by DEAL_MOVE, but only from ranks with much more than the
     * mean. */
    DEAL_BLOCKS,
    DEAL_RULE_COUNT
};
extern const char *const deal_rule_names[DEAL_RULE_COUNT];

/* A rule and its parameter: the tokens of a chunk or slice, or the ranks of a ring. */
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

/* The windows of a model's layers: in the share windowed_layer_share of them, a query sees at most `window` keys.
 * All-zero: no layer has a window. */
struct deal_windows {
    int64_t window;
    double windowed_layer_share;
};

/* Returns the visible pairs of the queries [begin, end), on average over layers. */
double deal_visible_pairs(const struct document_list *documents, struct deal_windows windows,
                          int64_t begin, int64_t end);

/* Deals a sequence with these documents, whose length must be a multiple of deal_choice_token_unit(). The visible pairs
 * that DEAL_CHUNKS counts are the mean over layers. */
struct token_deal *deal_by_rule(struct arena *arena, const struct deal_choice *choice,
                                uint32_t ranks, const struct document_list *documents,
                                struct deal_windows windows);

#endif

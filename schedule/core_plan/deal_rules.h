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
    /* Rank r has slices r and 2 R - 1 - r of each document. The last tokens of documents, fewer than 2 R of each, are
     * dealt in their order, the first of them to rank 0: a rank that has one needs all keys of the document, so few
     * have. */
    DEAL_PER_DOCUMENT,
    /* The sequence is cut into chunks of equal length. The chunk whose queries see the most keys goes first, each to
     * the rank with the fewest visible pairs among those that have room for a chunk. */
    DEAL_CHUNKS,
    /* A document of n tokens, the longest one first, goes in 2 d slices to the least loaded d ranks that have room, as
     * in zigzag. d is 1, 2, 4, ... or R, the least with n <= d S / R; if none have room, it is the next of these; at
     * last the document goes to whoever has room. */
    DEAL_DEGREE,
    /* These have tiles, too (schedule/core_plan/tile_rules.h). The first ones deal as DEAL_ZIGZAG does. In step s of a
     * ring rank r computes its queries by the keys of rank r - s. */
    DEAL_ZIGZAG_RING,
    DEAL_DOUBLE_RING, /* in rings of `parameter` ranks, and then by the keys of the next such ring */
    DEAL_GATHER,      /* its queries by its own keys, and then by all others at once */
    DEAL_TOKEN_RING,  /* the queries of rank r + s by its own keys */
    DEAL_BURST, /* the forward is that of DEAL_ZIGZAG_RING, the backward that of DEAL_TOKEN_RING */
    /* Dealt as DEAL_CONTIGUOUS does. The rank with the fewest pairs takes queries of the most loaded ranks, the first
     * or last ones of a document there, whatever takes the fewest bytes for a pair, in slices of at least `parameter`
     * tokens, or a quarter of a rank's tokens if that is fewer. */
    DEAL_MOVE,
    /* Dealt as DEAL_CHUNKS does; then queries move as by DEAL_MOVE, but only from ranks with much more than the
     * mean. */
    DEAL_BLOCKS,
    DEAL_RULE_COUNT
};
extern const char *const deal_rule_names[DEAL_RULE_COUNT];

/* A rule and its parameter: tokens of a chunk or slice, or ranks of a ring. */
struct deal_choice {
    enum deal_rule rule;
    int64_t parameter; /* 0: the rule has none */
};

/* Reads "NAME" or "NAME:NUMBER" ("chunks" is "chunks:2048"). */
enum status deal_choice_parse(struct deal_choice *choice, const char *text, struct diag *diag);
/* True if the rule says who computes which tile, and so what travels. */
bool deal_choice_has_tiles(const struct deal_choice *choice);
/* Returns the number of tokens that a sequence on `ranks` ranks must be a multiple of. */
int64_t deal_choice_token_unit(const struct deal_choice *choice, uint32_t ranks);

/* The windows of a model's layers: a share of them sees at most `window` keys; all-zero: no layer has a window. */
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

/* schedule/layout.h: which tokens of a sequence a rank owns.
 *
 * A layout cuts a sequence of `tokens` over the ranks of the context axes (cp) and head
 * axes (hp): the local position p of a rank is one global position. DeepSpeed-Ulysses, FPDT section 4
 * (rank-ordinal), LoongTrain section 4 (zigzag pairs). All layouts give each rank tokens / (cp * hp) positions. */
#ifndef SCHEDULE_LAYOUT_H
#define SCHEDULE_LAYOUT_H

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum layout_kind {
    LAYOUT_CONTIGUOUS,   /* rank r of P owns [r n, (r+1) n) */
    LAYOUT_RANK_ORDINAL, /* FPDT: piece i P + r of u P pieces is the rank's i-th chunk */
    LAYOUT_STRIPED,      /* token i is on rank i mod P */
    LAYOUT_ZIGZAG,       /* slices r and 2P-1-r of 2P */
    LAYOUT_ZIGZAG_2D,    /* LoongTrain: two adjacent slices that the head group gathers to a zigzag pair */
    LAYOUT_KIND_COUNT
};

struct token_layout {
    uint8_t kind;    /* enum layout_kind */
    uint32_t cp, hp; /* ranks of the context and of the head axes */
    uint32_t chunks; /* u of RANK_ORDINAL, else 1 */
    int64_t tokens;  /* of one sequence */
};

const char *layout_name(enum layout_kind kind);
bool layout_find(const char *name, size_t size, enum layout_kind *kind);

/* Whether the sizes divide as the layout needs; the message names lengths that would. */
enum status layout_check(const struct token_layout *layout, struct loc at, struct diag *diag);

/* The global position of local position p on the rank with context index c and head index h. */
int64_t layout_global(const struct token_layout *layout, uint32_t c, uint32_t h, int64_t p);

/* The same after the head group has gathered its tokens: rank c owns tokens / cp
 * positions, and position p of them is this global position. */
int64_t layout_gathered(const struct token_layout *layout, uint32_t c, int64_t p);

#endif

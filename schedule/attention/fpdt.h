/* schedule/attention/fpdt.h: attention chunk by chunk with what other chunks read on the host (FPDT,
 * Yao et al., arXiv 2408.16978; DeepSpeed, sequence/fpdt_layer.py).
 *
 * A sequence is cut into u chunks; a rank holds a piece of each (LAYOUT_RANK_ORDINAL), so that the
 * all-to-all of a chunk gives its tokens in order. Queries of chunk i meet the keys of chunks 0..i,
 * tile by tile into running sums; keys and values of a chunk are fetched while the tile before
 * runs, and one pair more is all that is ever there. Backward, the gradients of chunk i's keys and
 * values are summed over the queries of chunks i..u-1, whose own gradients are partial until their
 * diagonal tile is done (or the other way round).
 *
 * Letters: c tokens of a chunk on a rank, C = c P over the head group; u chunks. */
#ifndef SCHEDULE_ATTENTION_FPDT_H
#define SCHEDULE_ATTENTION_FPDT_H

#include "schedule/attention/exchange.h"
#include "schedule/emit/op_list.h"

#include <stddef.h>

/* The queries of a chunk and what their gradients take, on the device or on the host. */
struct fpdt_queries {
    struct view q, o, lse;
};

struct fpdt_pair {
    struct view k, v;
};

/* What is kept of a chunk for later chunks and for the backward. */
struct fpdt_chunk {
    struct attention_saved part; /* on the device; its q, k, v, o, lse when nothing is offloaded */
    struct view norm;            /* in pinned memory from here on; empty: stayed */
    struct fpdt_queries queries;
    struct fpdt_pair pair;
    struct fpdt_queries early_queries; /* fetched for the backward already, by the forward */
    struct fpdt_pair early_pair;
};

/* The chunks of one sequence in one layer. */
struct fpdt {
    struct emit *e;
    uint32_t layer;
    int64_t sequence; /* of the micro-batch */
    int64_t u;
    struct fpdt_chunk *chunk;
    bool offload;
    uint8_t load, store, aside; /* streams; aside: of copies that nothing waits for soon */
    int64_t q_width, kv_width;  /* columns of one head rank's q, and of its k */
    int64_t heads, kv_heads;    /* of one head rank */
    int64_t ranks;              /* of the head group */
};

struct fpdt fpdt_of(struct emit *e, uint32_t layer, int64_t sequence);

/* Chunk i: its exchange, whose n and s are c and C, and where its rows begin among the rank's. */
struct exchange fpdt_exchange(const struct fpdt *f, int64_t i, int64_t *begin);
int64_t fpdt_tokens(const struct fpdt *f, int64_t i); /* C */

/* Keys of chunk k that the queries of chunk q see: all of its own, of another what is kept of it. */
int64_t fpdt_keys(const struct fpdt *f, int64_t q, int64_t k);
struct fpdt_pair fpdt_pair_part(const struct fpdt *f, struct fpdt_pair pair, int64_t q, int64_t k);

/* Whether a query of chunk q may see a key of chunk k, which is not behind it: where the layer has a window, chunks
 * beyond it are neither fetched nor multiplied. What documents hide is not left out. The first chunk that q sees. */
bool fpdt_sees(const struct fpdt *f, int64_t q, int64_t k);
int64_t fpdt_first_seen(const struct fpdt *f, int64_t q);

/* The tile of chunk q's queries by chunk k's keys. */
struct work fpdt_tile(const struct fpdt *f, enum work_kind kind, int64_t q, int64_t k);

/* A rank's own rows of x on the host, in a new buffer, and back on the device, in another; no earlier
 * than the end of `after`. */
struct view fpdt_store(const struct fpdt *f, uint8_t stream, struct view x, const char *stem);
struct view fpdt_fetch(const struct fpdt *f, uint8_t stream, op_id after, struct view host,
                       const char *stem);

/* The same of what tiles read of chunk i, which one rank may keep and fetch for all (FETCH_ONE; see
 * fpdt_host.c). *host, which is empty before the first time, is chunk i's in an array of structs of
 * `stride` bytes. fpdt_keep_zeros: fp32 zeros, `cols` of each
 * token, written by the host. */
void fpdt_keep(const struct fpdt *f, uint8_t stream, int64_t i, struct view x, const char *stem,
               struct view *host, size_t stride);
void fpdt_keep_zeros(const struct fpdt *f, int64_t i, int64_t cols, const char *stem,
                     struct view *host, size_t stride);
struct view fpdt_bring(const struct fpdt *f, uint8_t stream, op_id after, int64_t i,
                       struct view host, const char *stem);
/* What the queries of chunk q see of chunk k. */
struct fpdt_pair fpdt_bring_pair(const struct fpdt *f, op_id after, int64_t q, int64_t k);

/* Zeros; x in another dtype, itself when it has that one; sum += part in place on as many of its
 * first elements, or without a sum a new one in fp32. */
struct view fpdt_zeros(const struct fpdt *f, const char *stem, enum dtype dtype,
                       enum category category, int64_t count);
struct view fpdt_cast(const struct fpdt *f, struct view x, enum dtype dtype, const char *stem);
struct view fpdt_sum(const struct fpdt *f, struct view sum, struct view part, const char *stem);

/* Where the implementation has them: the host waits for all that was issued on a stream; for a tile
 * and the copies beside it; behind an all-to-all, for all ranks. */
void fpdt_sync_stream(const struct fpdt *f, uint8_t stream);
void fpdt_sync_tile(const struct fpdt *f);
void fpdt_sync_ranks(const struct fpdt *f);

/* qkv[rows, W] of some rows of x[rows, h], and dx with the gradients of wqkv back. */
struct view fpdt_project(const struct fpdt *f, struct view x, int64_t rows);
void fpdt_project_backward(const struct fpdt *f, struct view dqkv, struct view x, struct view dx,
                           int64_t rows);

/* The gradients of chunk i's q, k and v back over the ranks and through the projection, into dx, or
 * with no projection (the operator alone) into dqkv. */
struct fpdt_target {
    buffer_id dx, dqkv; /* IR_NONE: none */
};
void fpdt_finish_chunk(const struct fpdt *f, int64_t i, struct qkv grads, struct view norm,
                       struct fpdt_target to);

/* Chunks wait for what goes to the host (schedule/attention/fpdt_host.c): what two of them keep there, and
 * two of what one rank gathers for all, are on the device at once. */
void pass_keep(struct emit *e, struct op_list *list);

#endif

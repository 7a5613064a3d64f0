/* schedule/attention/fpdt.h: attention chunk by chunk, with the keys and values of other chunks on the host (FPDT, Yao
 * et al., arXiv 2408.16978; DeepSpeed, sequence/fpdt_layer.py).
 *
 * A sequence is cut into u chunks. A rank holds a piece of each chunk (LAYOUT_FPDT_RANK_ORDINAL), so that the
 * all-to-all of a chunk gives its tokens in order. The queries of chunk i attend to the keys of chunks f..i, tile by
 * tile, into running sums; f is 0, or later if a window leaves out the first chunks. Keys and values of a chunk are
 * fetched while the previous tile runs, so the device never holds more than two fetched chunks of them. With latent
 * attention and MLA_EXCHANGE_LATENT, a rank stores the latents of its own tokens instead; they are fetched, gathered
 * from the head group and expanded for each tile.
 *
 * In the backward, the gradients of the keys and values of chunk i are summed over the queries of the chunks that
 * attend to them, and the gradients of its queries over the keys of chunks f..i. An outer loop goes over the chunks of
 * keys, or over those of queries (enum chunk_order). The sums of its current chunk stay on the device; the other sums
 * are stored on the host and fetched again. With KV_OFFLOAD_OFF everything stays on the device.
 *
 * Letters: c tokens of a chunk on a rank, C = c P over the head group of P ranks; u chunks. */
#ifndef SCHEDULE_ATTENTION_FPDT_H
#define SCHEDULE_ATTENTION_FPDT_H

#include "schedule/attention/exchange.h"
#include "schedule/emit/op_list.h"

#include <stddef.h>

/* The queries of a chunk with their outputs and log-sum-exps, which the backward reads; on the device or on the
 * host. */
struct fpdt_queries {
    struct view q, o, lse;
};

struct fpdt_keys_values {
    struct view k, v;
    /* k holds latents and v the key columns that heads share (enum mla_exchange), of all tokens of the chunk */
    bool is_latent;
};

/* The data of a chunk that later chunks and the backward need. */
struct fpdt_chunk {
    /* the tensors that stay on the device; its q, k, v, o and lse are kept only if nothing is offloaded */
    struct attention_saved attention_saved_on_device;
    struct view normed_input_on_host; /* in pinned memory; empty: it is on the device */
    struct fpdt_queries queries;      /* views that fpdt_store_tensor() has set */
    /* views that fpdt_store_tensor() has set; with fpdt.stores_latents they hold the latents and the shared columns of
     * this rank's own tokens */
    struct fpdt_keys_values keys_values;
    /* the tensors that the forward has already fetched for the backward; empty: none */
    struct fpdt_queries prefetched_queries;
    struct fpdt_keys_values prefetched_keys_values;
};

/* The chunks of one sequence in one layer. */
struct fpdt {
    struct emit *e;
    uint32_t layer;
    int64_t sequence; /* index of the sequence in the micro-batch */
    int64_t chunk_count;
    struct fpdt_chunk *chunk;
    bool offloads;       /* the tensors of chunks that tiles read are stored on the host */
    bool stores_latents; /* latents are stored on the host, not keys and values */
    uint8_t load_stream, store_stream,
        side_stream;           /* streams; side_stream: for copies that nothing waits for soon */
    int64_t q_width, kv_width; /* columns of one head rank's q, and of its k */
    int64_t v_width, o_width;  /* columns of one head rank's v, and of its result */
    int64_t heads, kv_heads;   /* heads of one head rank */
    int64_t head_ranks;        /* size of the head group */
};

struct fpdt fpdt_of_sequence(struct emit *e, uint32_t layer, int64_t sequence);

/* Returns the exchange of chunk i: its rank_tokens are c, its group_tokens C. */
struct head_exchange fpdt_chunk_exchange(const struct fpdt *f, int64_t i);
/* Returns C, the tokens of chunk i on the head group. */
int64_t fpdt_chunk_tokens(const struct fpdt *f, int64_t i);

/* fpdt_visible_keys() returns the number of keys of chunk k that the queries of chunk q attend to: all if q = k or
 * attention is not block-sparse, else the number that block-sparse attention keeps. fpdt_visible_part_of_keys() returns
 * the part of `pair` that these keys and their values are: its first rows. `pair` holds all keys and values of chunk k,
 * or only these. */
int64_t fpdt_visible_keys(const struct fpdt *f, int64_t q, int64_t k);
struct fpdt_keys_values
fpdt_visible_part_of_keys(const struct fpdt *f, struct fpdt_keys_values pair, int64_t q, int64_t k);

/* fpdt_chunk_sees_keys_of_chunk() is true if a query of chunk q may attend to a key of chunk k <= q. It is false if the
 * layer's window, a sliding one or one of chunks of tokens, leaves out chunk k, which is then neither fetched nor
 * multiplied, but true if only documents hide it. fpdt_first_visible_chunk() returns the first chunk that q attends
 * to. */
bool fpdt_chunk_sees_keys_of_chunk(const struct fpdt *f, int64_t q, int64_t k);
int64_t fpdt_first_visible_chunk(const struct fpdt *f, int64_t q);

/* Returns the work of the tile of chunk q's queries by chunk k's keys. */
struct work fpdt_tile_work(const struct fpdt *f, enum work_kind kind, int64_t q, int64_t k);

/* fpdt_copy_to_host() copies x, this rank's own rows, to a new buffer on the host, and returns the copy.
 * fpdt_copy_from_host() copies such a buffer to a new one on the device; the copy starts no earlier than op `after`
 * ends. */
struct view fpdt_copy_to_host(const struct fpdt *f, uint8_t stream, struct view x,
                              const char *stem);
struct view fpdt_copy_from_host(const struct fpdt *f, uint8_t stream, op_id after, struct view host,
                                const char *stem);

/* fpdt_store_tensor() copies x, a tensor of chunk i that tiles read, to the host and sets *host to the copy;
 * fpdt_fetch_tensor() returns a copy of it on the device. If chunks are not offloaded, *host becomes x itself, and
 * nothing is copied. With FETCH_ONE one rank copies for all ranks (fpdt_host.c). fpdt_store_zeros() stores fp32 zeros,
 * `cols` per token, which the host writes.
 *
 * *host is empty before the first call for the chunk. It is a member of element i of an array of structs, one for each
 * chunk, of `stride` bytes each: with FETCH_ONE the functions also read this member of other elements. */
void fpdt_store_tensor(const struct fpdt *f, uint8_t stream, int64_t i, struct view x,
                       const char *stem, struct view *host, size_t stride);
void fpdt_store_zeros(const struct fpdt *f, int64_t i, int64_t cols, const char *stem,
                      struct view *host, size_t stride);
struct view fpdt_fetch_tensor(const struct fpdt *f, uint8_t stream, op_id after, int64_t i,
                              struct view host, const char *stem);
/* Fetches the keys and values of chunk k: those that the queries of chunk q see or, if one rank stores for all ranks,
 * the whole chunk. If chunks are stored as latents, it fetches all latents of this rank's own tokens and gathers those
 * of the head group. */
struct fpdt_keys_values fpdt_fetch_keys_values(const struct fpdt *f, op_id after, int64_t q,
                                               int64_t k);

/* If `pair` holds latents, makes of them the keys and values of chunk k that the queries of chunk q see, and returns
 * these. It also records the latents in the chunk's attention_saved_on_device, for the gradient of the up-projection.
 * Else it returns `pair`. */
struct fpdt_keys_values fpdt_expand_latents(const struct fpdt *f, int64_t q, int64_t k,
                                            struct fpdt_keys_values pair);

/* fpdt_cast() returns x in another dtype, or x itself if it has that dtype. fpdt_add_to_sum() adds `part` to the first
 * elements of `sum` in place and returns `sum`; if `sum` is empty, it returns `part` in fp32. */
struct view fpdt_cast(const struct fpdt *f, struct view x, enum dtype dtype, const char *stem);
struct view fpdt_add_to_sum(const struct fpdt *f, struct view sum, struct view part,
                            const char *stem);

/* Emit waits of the host if chunks are offloaded and the profile's switch host_waits_after_each_chunk_tile is set; else
 * nothing. fpdt_emit_host_wait_for_stream(): the host waits for everything issued on a stream.
 * fpdt_emit_host_wait_for_tile(): it waits for a tile and the copies from the host that run during it.
 * fpdt_sync_ranks(), which follows an all-to-all: it waits for the all-to-all and for computation, and then, by a
 * BARRIER, for all ranks. */
void fpdt_emit_host_wait_for_stream(const struct fpdt *f, uint8_t stream);
void fpdt_emit_host_wait_for_tile(const struct fpdt *f);
void fpdt_sync_ranks(const struct fpdt *f);

/* The buffer to which the backward writes: dx, or, for the operator without a projection, dqkv. The other one is
 * IR_NONE. */
struct fpdt_gradient_target {
    buffer_id dx, dqkv;
};
/* Passes the gradients of chunk i's q, k and v back through the all-to-alls and, if there is one, the projection, and
 * writes the chunk's rows of `to`. */
void fpdt_finish_chunk_backward(const struct fpdt *f, int64_t i, struct qkv grads, struct view norm,
                                struct fpdt_gradient_target to);

/* Adds waits for copies to the host (schedule/attention/fpdt_host.c), so that the device holds the stored tensors of at
 * most two chunks at once; these are not added if the host waits after every tile (the profile's switch
 * host_waits_after_each_chunk_tile). Where one rank gathers the data of all ranks to store it, at most two of the
 * buffers into which it gathers are in use. */
void pass_add_waits_for_chunk_stores(struct emit *e, struct op_list *list);

#endif

/* schedule/attention/ring.h: the core of attention over a ring of context ranks, or over two rings.
 *
 * Every rank keeps its queries and passes keys and values on. With Double-Ring (LoongTrain, arXiv 2406.18485, section
 * 4.3) the context ranks are divided into windows: blocks go round an inner ring within the window, and meanwhile an
 * outer ring brings the block with which the next window begins. A window of one rank, or of all, is the plain ring.
 * Which part of a block one step multiplies depends on the layout of tokens and on whether the block comes from a rank
 * before or after this one: guards on the ring's index distinguish the two cases, so every rank has the same list of
 * ops.
 *
 * A rank holds two blocks of each ring at most, the one in use and the one that arrives: a shift starts after the tile
 * that read the previous block. This is how ring-flash-attention and InternEvo behave: a message is posted when the
 * previous work has been launched, and waits for that work. With --rotate all-gather, and in ring_retained.c, a rank
 * holds the blocks of all ranks instead; in ring_needed.c and ring_planned.c ranks send rows, not blocks. */
#ifndef SCHEDULE_ATTENTION_RING_H
#define SCHEDULE_ATTENTION_RING_H

#include "schedule/attention/project.h"

struct ring_attention_sizes {
    int64_t rank_tokens;       /* c: tokens of a context rank */
    int64_t heads, kv_heads;   /* heads of one head rank */
    int64_t q_width, kv_width; /* columns of q, and of k */
    int64_t v_width, o_width;  /* columns of v, and of the result */
    uint32_t layer;            /* the layer decides whether there is a window */
    /* index of the sequence in the micro-batch, which decides whether there are documents */
    int64_t sequence;
};

/* A tile that ranks multiply in a step: query_count queries, from first_query on, by the first key_count keys of the
 * block. */
struct ring_tile {
    int64_t first_query, query_count, key_count;
    uint8_t mask; /* enum mask */
    int64_t offset;
    uint16_t guard; /* IR_NONE16: all ranks */
    /* The parameters of attention (struct work) with these names. Tiles with mask DOCUMENTS or CHUNKS have them; such
     * masks serve windows without documents, too, since the rows of a rank are not consecutive in the sequence. */
    int64_t window, sequence, away, away_out;
};

/* ring_new_blocks() returns a new tensor with room for `blocks` blocks, each the keys and values of a rank or their
 * gradients. ring_split_kv_block() returns the keys and the values of a block, in which v follows k; its q is empty. */
struct view ring_new_blocks(struct emit *e, const struct ring_attention_sizes *shape,
                            const char *stem, int64_t blocks);
struct qkv ring_split_kv_block(const struct ring_attention_sizes *shape, struct view block);
/* Returns the elements of a block. */
int64_t ring_block_elements(const struct ring_attention_sizes *shape);

/* Returns the number of steps, one for each context rank. In step s a rank computes on the block of the rank that is s
 * / N windows and s % N ranks before it, where N is the size of the inner ring. */
uint32_t ring_step_count(const struct emit *e);
/* Fills tile[] with the tiles of a step and returns their number; 0 if the layer's window hides all keys from all
 * ranks, in layouts other than core plans and zigzag of several documents, which keep their tile. A rank passes the
 * guard of at most one of them. */
uint32_t ring_list_tiles_of_step(struct emit *e, const struct ring_attention_sizes *shape,
                                 uint32_t step, struct ring_tile tile[2]);

/* Returns the step that follows `step`; ring_step_count() after the last one. With one ring, steps are skipped in which
 * no rank has a tile, since the layer's window hides all keys from all ranks. With two rings no step is skipped. */
uint32_t ring_next_step_with_tiles(struct emit *e, const struct ring_attention_sizes *shape,
                                   uint32_t step);

/* Emits the shift of x to the rank `by` places further in a ring, and returns the new buffer with what arrives from the
 * rank `by` places back. The message starts after all compute ops emitted so far. */
struct view ring_send_and_receive(struct emit *e, const struct ring *ring, uint32_t by,
                                  uint8_t stream, struct view x, const char *stem);

/* The blocks of keys and values that a rank has at one time. */
struct ring_blocks {
    struct view current_block;        /* the block of the present step; v lies after k */
    struct view next_block_in_window; /* the block of the next step of this window */
    /* the block with which the next window of ranks starts; before the first step, the rank's own block */
    struct view next_window_first_block;
    /* --rotate all-gather: the blocks of all ranks, nearest first */
    struct view gathered_blocks_of_all_ranks;
};

/* Begins a step: sets blocks->current_block to the block of this step, and emits what moves blocks for later steps.
 * Each step but the last of a window sends its block over the inner ring; the first step of each window but the last
 * also sends it over the outer ring, for the next window. With --rotate all-gather, the first step gathers the blocks
 * of all ranks, and nothing is sent later. */
void ring_emit_messages_of_step(struct emit *e, const struct ring_attention_sizes *shape,
                                uint32_t step, struct ring_blocks *blocks);

/* Returns the work of a tile. */
struct work ring_tile_work(const struct emit *e, enum work_kind kind,
                           const struct ring_attention_sizes *shape, const struct ring_tile *tile);

/* Emits the tile of q by the block of keys and values kv, which writes the tile's rows of o and lse. Returns the op. */
op_id ring_tile_forward(struct emit *e, const struct ring_attention_sizes *shape,
                        const struct ring_tile *tile, struct view q, struct view kv, struct view o,
                        struct view lse);
/* Merges a tile's o and lse, which are its rows of `block` and of block_lse, into the tile's rows of `sum` and of
 * `lse`. */
void ring_merge_tile(struct emit *e, const struct ring_attention_sizes *shape,
                     const struct ring_tile *tile, struct view sum, struct view lse,
                     struct view block, struct view block_lse);
/* Gradients of a rank's queries, and of a block of keys and values; dv lies after dk. */
struct ring_gradients {
    struct view dq, dkv;
};
/* Emits the backward of the tiles of a step, and adds the gradients to those views of `sums` that are not empty.
 * Returns the step's own gradients; empty views if it has no tiles. into: the view to which dkv is written; empty: a
 * new buffer. */
struct ring_gradients ring_step_backward(struct emit *e, const struct ring_attention_sizes *shape,
                                         uint32_t step, const struct attention_saved *saved,
                                         struct view kv, struct view d_o, struct view into,
                                         struct ring_gradients sums);

/* Emits the ring forward: makes o[tokens, heads, head_dim] and saved->lse from saved->qkv, in whose buffer v follows k.
 * Keeps o in saved, too. */
void ring_forward(struct emit *e, const struct ring_attention_sizes *shape,
                  struct attention_saved *saved, struct view o);
/* Returns dq, dk, dv of this rank's own rows, made from d_o. */
struct qkv ring_backward(struct emit *e, const struct ring_attention_sizes *shape,
                         const struct attention_saved *saved, struct view d_o);
/* Emit the ring forward and backward as TransformerEngine does them (schedule/attention/ring_retained.c). */
void ring_retained_forward(struct emit *e, const struct ring_attention_sizes *shape,
                           struct attention_saved *saved, struct view o);
struct qkv ring_retained_backward(struct emit *e, const struct ring_attention_sizes *shape,
                                  const struct attention_saved *saved, struct view d_o);

/* ring_own_keys_values() returns a rank's own keys and values as one view, in which v follows k; both must have the
 * same width. ring_qkv_from_q_and_kv() returns q with the two equal halves of such a view, which may have any number
 * of rows; it serves gradients, too. */
struct view ring_own_keys_values(const struct attention_saved *saved);
struct qkv ring_qkv_from_q_and_kv(struct view q, struct view kv);

/* Emit attention in which ranks send each other only the rows that they need (schedule/attention/ring_needed.c). */
void ring_needed_rows_forward(struct emit *e, const struct ring_attention_sizes *shape,
                              struct attention_saved *saved, struct view o);
struct qkv ring_needed_rows_backward(struct emit *e, const struct ring_attention_sizes *shape,
                                     const struct attention_saved *saved, struct view d_o);

/* Emit attention by a core plan, which says which rank computes which tiles (schedule/attention/ring_planned.c). */
void ring_planned_forward(struct emit *e, const struct ring_attention_sizes *shape,
                          struct attention_saved *saved, struct view o);
struct qkv ring_planned_backward(struct emit *e, const struct ring_attention_sizes *shape,
                                 const struct attention_saved *saved, struct view d_o);

#endif

/* schedule/attention/project.h: ops of the attention operator that several choices share: projections, rotation, norms
 * of heads, tiles of the core.
 *
 * P is the number of head ranks. The heads of a rank are heads / P query heads, and kv_heads_in_core() / P key and
 * value heads, some of which may be copies. */
#ifndef SCHEDULE_ATTENTION_PROJECT_H
#define SCHEDULE_ATTENTION_PROJECT_H

#include "schedule/emit/emit.h"

/* The functions below that have a parameter `to` write their result to that view; if it is view_none(), they write to a
 * new buffer. */

/* Returns the number of columns of the projection qkv, called W below. If head ranks send latents, these are the
 * columns of q, of a latent, and of the key columns that heads share. */
int64_t qkv_column_count(const struct emit *e);
/* Returns the values of a layer's weight; an empty view if the model has no such weight. */
struct view optional_weight_view(const struct emit *e, uint32_t part, enum weight weight);
/* Returns qkv[rows, W] = x[rows, hidden] wqkv^T, plus the bias and the adapters of q, k and v if the model has them.
 * *adapters is set to what the adapters' backward reads. With tensor parallelism x has been gathered, and `rows` is the
 * number of rows of all tensor ranks. */
struct view project_qkv(struct emit *e, uint32_t layer, struct view x, int64_t rows,
                        struct adapters_saved *adapters);
/* True if the layer computes q, k and v by a product each, because selective checkpointing keeps q and v but computes k
 * again. False with latent attention, which has other products, and with products in fewer than 16 bits. */
bool project_has_separate_q_k_v(const struct emit *e);
/* Emits the three products of a layer for which project_has_separate_q_k_v() is true, and returns q, k and v of x[rows,
 * hidden], which has the rows of all sequences. */
struct qkv project_q_k_and_v_separately(struct emit *e, uint32_t layer, struct view x,
                                        int64_t rows);
/* Writes dx = dqkv wqkv, and emits the gradients of wqkv, of its bias and of the adapters of q, k and v. With tensor
 * parallelism x and dx are this rank's own rows, and `rows` is the number of rows of all tensor ranks. */
void project_qkv_backward(struct emit *e, uint32_t layer, struct view dqkv, struct view x,
                          struct view dx, int64_t rows, const struct adapters_saved *adapters);

/* Returns the number of key and value heads that take part in the all-to-all over `ranks` head ranks, some of which may
 * be copies (LoongTrain, section 4.1: "KV replication"). With KV_COPIED_TO_QUERY_HEADS it is the number of query heads;
 * else the model's own number if `ranks` divides it, else `ranks`. */
int64_t kv_heads_in_core(const struct choices *choices, uint32_t ranks);

/* Returns x[rows, heads, head_dim] rotated by positions[rows] (RoPE) or, with `backward`, rotated back. */
struct view rotate_heads(struct emit *e, struct view x, struct view positions, int64_t rows,
                         int64_t heads, bool backward, struct view to);

/* Emit one tile of the core. attention_tile() computes o and lse from q, k and v; attention_tile_backward() computes
 * dq, dk and dv, and gives the kernel a buffer for its workspace if it has one. The sizes and the mask in `work` say
 * which tile it is. */
op_id attention_tile(struct emit *e, struct work work, const struct qkv *in, struct view o,
                     struct view lse);
void attention_tile_backward(struct emit *e, struct work work, const struct qkv *in, struct view o,
                             struct view lse, struct view d_o, const struct qkv *grads);
/* Returns the work of attention of `tokens` queries to `tokens` keys with a causal mask and without a window. kind:
 * ATTENTION or ATTENTION_BACKWARD. */
struct work attention_causal_work(const struct emit *e, enum work_kind kind, int64_t tokens,
                                  int64_t heads, int64_t kv_heads);
/* The masks that hide pairs of a query and a key in a sequence, in addition to causality. window: the layer's sliding
 * window; 0: it has none, or one that reaches all of `tokens` (sequence_mask_of()). has_documents: the sequence has
 * several documents on some rank. sequence: the number that ops carry for the sequence; sequences with the same
 * documents on all ranks carry that of the first of them (struct sequence_document_facts). */
struct sequence_mask {
    int64_t window, sequence;
    bool has_documents;
    /* the window is the size of chunks of tokens; a query sees the keys of its own chunk */
    bool has_chunked_window;
};
struct sequence_mask sequence_mask_of(const struct emit *e, uint32_t layer, int64_t sequence,
                                      int64_t tokens);

/* Returns the work `causal` with two changes: the window of the model's layer, unless the last query's window reaches
 * all keys; and the documents of sequence number `sequence` of the micro-batch, if it has several. first: the position
 * of the first query in the sequence; the queries must be at consecutive positions. */
struct work attention_masked_work(const struct emit *e, uint32_t layer, int64_t sequence,
                                  struct work causal, int64_t first);

/* Returns the bytes of a layer's attention that implementations keep although no op of the schedule reads them
 * (schedule/choices/kept.def), for `tokens` tokens and `heads` query heads. */
int64_t attention_extra_kept_bytes(const struct emit *e, int64_t tokens, int64_t heads);
/* Sets saved->o to o[tokens, heads, head_dim], which the core is to write, and saved->lse to a new tensor for the
 * log-sum-exps, whose buffer also has room for the bytes of attention_extra_kept_bytes(), unless only the core's
 * results are kept. Selective checkpointing keeps both. */
void attention_save_output_and_make_lse(struct emit *e, struct attention_saved *saved,
                                        struct view o, int64_t tokens, int64_t heads);
/* Attention sinks (gpt-oss): each head has a trained score, without a key, in the sum of its softmax. attention_sinks()
 * rescales saved->o[rows, heads, vdim] and saved->lse in place; call it after the last merge, when they cover all keys.
 * The backward of tiles reads the rescaled o and lse, and is otherwise the same as without sinks.
 * attention_sinks_backward() emits the gradient of the sinks, which is 0 for the heads of other ranks. Without sinks
 * both emit nothing; if sinks are frozen, there is no gradient. */
void attention_sinks(struct emit *e, uint32_t layer, const struct attention_saved *saved,
                     int64_t rows, int64_t heads);
void attention_sinks_backward(struct emit *e, uint32_t layer, struct view o, struct view lse,
                              struct view d_o, int64_t rows, int64_t heads);
/* Returns new tensors for the gradients of q[rows, width], k[kv_rows, kv_width] and v[kv_rows, v_width]. */
struct qkv new_qkv_gradients(struct emit *e, int64_t rows, int64_t width, int64_t kv_rows,
                             int64_t kv_width, int64_t v_width);

/* Replaces q and k by their norms, of each head (Qwen3) or of all heads of a token together (qk_norm_wide), and keeps
 * in *saved what the backward reads. */
void head_norms(struct emit *e, uint32_t layer, struct qkv *parts, struct attention_saved *saved,
                int64_t rows);
void head_norms_backward(struct emit *e, uint32_t layer, struct qkv *grads,
                         const struct attention_saved *saved, int64_t rows);

/* Copies the column blocks of qkv[rows, W] to separate tensors, each cut into `parts` along its columns: [parts, rows,
 * width / parts]. Returns the tensors: those of `to`, and new ones where `to` is empty. */
struct qkv split_qkv(struct emit *e, struct view qkv, int64_t rows, int64_t parts, struct qkv to);
/* Does the inverse of split_qkv(): writes qkv[rows, W] from `parts`, which were cut into `pieces` along their
 * columns. */
void join_qkv(struct emit *e, const struct qkv *parts, struct view qkv, int64_t rows,
              int64_t pieces);

#endif

/* schedule/attention/attention.h: the functions of the attention choices.
 *
 * The folder schedule/attention/ emits the attention operator of a layer, with one or several files for each way to
 * share a sequence among ranks. */
#ifndef SCHEDULE_ATTENTION_ATTENTION_H
#define SCHEDULE_ATTENTION_ATTENTION_H

#include "schedule/emit/emit.h"

/* Emits the attention of one sequence of a micro-batch, without the projections. A forward reads qkv[tokens, projection
 * columns] in `from` (only q if k and v have products of their own, layer_saved.projected) and writes
 * out[tokens, heads * head_dim] in `to`; a backward reads d_out in `from` and writes dqkv in `to`. */
typedef void attention_operator(struct emit *e, uint32_t layer, int64_t sequence, struct view from,
                                struct view to);

/* The functions of an attention choice. `forward` computes the output[tokens, heads * head_dim], before wo, from the
 * normed input[tokens, hidden]; `backward` computes the gradient of the normed input from that of the output. The
 * operator functions cover only the part between the projected qkv[tokens, projection columns] and the output. */
struct attention_emitter {
    void (*forward)(struct emit *e, uint32_t layer, buffer_id x, buffer_id out);
    void (*backward)(struct emit *e, uint32_t layer, buffer_id d_out, buffer_id dx);
    attention_operator *operator_forward, *operator_backward;
};
extern const struct attention_emitter attention_emitters[CHOICE_ATTENTION_COUNT];

/* Run the attention operator of the schedule's choice, or with subsequences prefix_forward() and prefix_backward(), on
 * all sequences of the micro-batch. qkv and dqkv are as in attention_operator. */
void operator_forward(struct emit *e, uint32_t layer, buffer_id qkv, buffer_id out);
void operator_backward(struct emit *e, uint32_t layer, buffer_id d_out, buffer_id dqkv);
/* projected_forward() projects all rows of x to qkv and then runs operator_forward(). projected_backward() is its
 * backward; it writes dx and emits the gradients of the projection's weights. */
void projected_forward(struct emit *e, uint32_t layer, buffer_id x, buffer_id out);
void projected_backward(struct emit *e, uint32_t layer, buffer_id d_out, buffer_id dx);

/* Emit Ulysses. With one head rank that is attention on the rank's own tokens, and nothing is sent. */
attention_operator ulysses_forward, ulysses_backward;
/* Emit Ulysses in stages. In a stage each rank has one query head; a stage projects its own heads (UPipe). */
void upipe_forward(struct emit *e, uint32_t layer, buffer_id x, buffer_id out);
void upipe_backward(struct emit *e, uint32_t layer, buffer_id d_out, buffer_id dx);
/* The elements that the caches of keys and of values have for each token. */
struct kv_widths {
    int64_t k_width, v_width;
};
/* Returns row `row` of e->prefix, which holds the caches of keys and values of one sequence in one layer. The first
 * call for a row makes the caches. Sets *width. */
struct prefix *prefix_open_kv_caches(struct emit *e, uint32_t row, struct kv_widths *width);
/* Emit attention over subsequences. The queries of a subsequence attend to its own keys and to those of all earlier
 * subsequences. */
attention_operator prefix_forward, prefix_backward;
/* Emit 2D attention: head ranks exchange tokens for heads, and ranks that have the same heads form a ring of context
 * ranks. */
attention_operator two_d_forward, two_d_backward;
/* Emit FPDT, which computes attention chunk by chunk of the sequence. fpdt_forward() and fpdt_backward() also project
 * each chunk; the operator functions do not. */
void fpdt_forward(struct emit *e, uint32_t layer, buffer_id x, buffer_id out);
void fpdt_backward(struct emit *e, uint32_t layer, buffer_id d_out, buffer_id dx);
attention_operator fpdt_operator_forward, fpdt_operator_backward;

/* Stores the tensors of a chunk on the host, and emits the copies back without tiles: those of the keys and values that
 * a forward tile reads, and those of the tensors that a backward tile reads. A wait of the host comes before and after
 * each of the two. */
void fpdt_emit_only_fetches(struct emit *e);

/* Emits the exchanges of the attention operator without its core: first those of q, k and v, then that of the output,
 * then the backward of both, in the reverse order. With one head rank, those of the output are left out. A wait of the
 * host comes before and after each step. */
void exchange_emit_only_all_to_alls(struct emit *e, buffer_id qkv, buffer_id out, buffer_id d_out,
                                    buffer_id dqkv);

#endif

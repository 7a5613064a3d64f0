/* A schedule of the attention operator's all-to-alls and their layout passes without the core, to time them by
 * themselves (schedule/step/attention_operator.c). In the forward and in the backward, the three of q, k and v stand
 * between two waits of the host, and so does that of the output. Fills write what the core would have written. With one
 * head rank nothing is sent, and the ops of the output are left out. */
#include "schedule/attention/attention.h"
#include "schedule/attention/exchange.h"

static void emit_host_wait_for_compute(struct emit *e)
{
    e->op_tags.region = REGION_NONE;
    emit_host_wait(e, e->stream.compute);
    e->op_tags.region = REGION_ATTENTION;
}

/* Makes a new tensor and fills it with zeros. The fill replaces the op that makes the tensor in a whole schedule. */
static struct view new_tensor_of_zeros(struct emit *e, const char *stem, int64_t rows, int64_t cols)
{
    e->op_tags.region = REGION_NONE;
    return emit_zeros(e, emit_compute_tensor(e, stem, CATEGORY_ACTIVATION, rows, cols));
}

void exchange_emit_only_all_to_alls(struct emit *e, buffer_id qkv, buffer_id out, buffer_id d_out,
                                    buffer_id dqkv)
{
    struct head_exchange z = exchange_of_layer(e, 0);
    struct attention_saved *saved = &e->layer_saved[0].attention[0];
    int64_t q = z.q_width / z.head_ranks, k = z.kv_width / z.head_ranks,
            v = z.v_width / z.head_ranks;
    emit_host_wait_for_compute(e);
    exchange_qkv(e, 0, &z, view_rows(qkv, 0, z.rank_tokens, z.projection_width), (struct qkv){0},
                 saved);
    if (z.head_ranks > 1) {
        struct view o = new_tensor_of_zeros(e, "o", z.group_tokens, z.o_width / z.head_ranks);
        emit_host_wait_for_compute(e);
        exchange_attention_output(e, &z, o, view_rows(out, 0, z.rank_tokens, z.o_width));
        emit_host_wait_for_compute(e);
        e->op_tags.phase = PHASE_BACKWARD;
        exchange_attention_output_backward(e, &z, view_rows(d_out, 0, z.rank_tokens, z.o_width));
    }
    e->op_tags.phase = PHASE_BACKWARD;
    struct qkv grads = {new_tensor_of_zeros(e, "dq", z.group_tokens, q),
                        new_tensor_of_zeros(e, "dk", z.group_tokens, k),
                        new_tensor_of_zeros(e, "dv", z.group_tokens, v)};
    emit_host_wait_for_compute(e);
    exchange_qkv_backward(e, 0, &z, grads, view_rows(dqkv, 0, z.rank_tokens, z.projection_width),
                          saved);
    emit_host_wait_for_compute(e);
}

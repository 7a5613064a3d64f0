/* Chooses the functions that emit attention, projects to q, k and v, and runs the functions on the sequences of a
 * micro-batch. */
#include "schedule/attention/attention.h"

#include "schedule/attention/latent.h"
#include "schedule/attention/project.h"

const struct attention_emitter attention_emitters[CHOICE_ATTENTION_COUNT] = {
#define ATTENTION(symbol, name, around, inner, cp, hp, simpler_at_one)                             \
    {around##_forward, around##_backward, inner##_forward, inner##_backward},
#include "schedule/choices/attention_choices.def"
#undef ATTENTION
};

/* Runs an operator on each sequence of the micro-batch: `pieces` if sequences are cut into subsequences, which also
 * attend to the earlier subsequences; else `whole`. The operator reads the sequence's rows of `from` and writes those
 * of `to`. */
static void run_operator_on_each_sequence(struct emit *e, uint32_t layer, attention_operator *whole,
                                          attention_operator *pieces, struct view from,
                                          struct view to)
{
    int64_t n = e->unit.tokens, rows = e->unit.rows;
    int64_t read = (int64_t)from.count / rows, written = (int64_t)to.count / rows;
    for (int64_t i = 0; i < e->choices->micro_batch; i++)
        (e->choices->subsequences > 1 ? pieces : whole)(e, layer, i,
                                                        view_rows(from.buffer, i * n, n, read),
                                                        view_rows(to.buffer, i * n, n, written));
}

void operator_forward(struct emit *e, uint32_t layer, buffer_id qkv, buffer_id out)
{
    run_operator_on_each_sequence(e, layer,
                                  attention_emitters[e->choices->attention].operator_forward,
                                  prefix_forward, view_whole(e, qkv), view_whole(e, out));
}

void operator_backward(struct emit *e, uint32_t layer, buffer_id d_out, buffer_id dqkv)
{
    run_operator_on_each_sequence(e, layer,
                                  attention_emitters[e->choices->attention].operator_backward,
                                  prefix_backward, view_whole(e, d_out), view_whole(e, dqkv));
}

void projected_forward(struct emit *e, uint32_t layer, buffer_id x, buffer_id out)
{
    int64_t rows = e->unit.rows;
    /* x may be the buffer into which all units are gathered, which is longer than this unit */
    struct view normed = view_rows(x, 0, rows, e->choices->model->hidden);
    buffer_id qkv;
    struct qkv *const apart = &e->layer_saved[layer].projected_q_k_v;
    *apart = (struct qkv){0};
    if (project_has_separate_q_k_v(e)) {
        *apart = project_q_k_and_v_separately(e, layer, normed, rows);
        emit_record_kept_product_result(e, apart->q.buffer);
        emit_record_kept_product_result(e, apart->v.buffer);
        qkv = apart->q.buffer; /* exchange_qkv() finds the other two */
    } else if (e->choices->model->kv_latent > 0) {
        qkv = latent_project(e, layer, view_whole(e, x), rows, view_none(),
                             &e->layer_saved[layer].attention->latent)
                  .buffer;
    } else {
        qkv =
            project_qkv(e, layer, normed, rows, &e->layer_saved[layer].attention->adapters).buffer;
        emit_record_kept_product_result(e, qkv);
    }
    e->op_tags.region = REGION_ATTENTION;
    operator_forward(e, layer, qkv, out);
}

void projected_backward(struct emit *e, uint32_t layer, buffer_id d_out, buffer_id dx)
{
    e->op_tags.region = REGION_ATTENTION;
    buffer_id dqkv = emit_activation_buffer(e, "dqkv", e->unit.rows, qkv_column_count(e));
    operator_backward(e, layer, d_out, dqkv);
    const struct view x = view_whole(e, e->layer_saved[layer].norm1);
    if (e->choices->model->kv_latent > 0)
        latent_project_backward(e, layer, view_whole(e, dqkv), x, view_whole(e, dx), e->unit.rows,
                                view_none(), &e->layer_saved[layer].attention->latent);
    else
        project_qkv_backward(e, layer, view_whole(e, dqkv), x, view_whole(e, dx), e->unit.rows,
                             &e->layer_saved[layer].attention->adapters);
}

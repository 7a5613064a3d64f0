/* Functions that both orders of FPDT's backward call for a chunk and a tile. */
#include "schedule/attention/fpdt_gradients.h"

#include "schedule/attention/latent.h"
#include "schedule/choices/profile.h"

struct view fpdt_exchange_d_o(const struct fpdt_gradients *g, int64_t q)
{
    struct head_exchange z = fpdt_chunk_exchange(g->fpdt, q);
    return exchange_attention_output_backward(
        g->fpdt->e, &z, view_rows(g->d_out, z.first_row, z.rank_tokens, z.o_width));
}

struct fpdt_keys_values fpdt_keys_values_for_backward(const struct fpdt *f, int64_t q, int64_t k,
                                                      op_id after)
{
    struct fpdt_chunk *chunk = &f->chunk[k];
    struct fpdt_keys_values early = chunk->prefetched_keys_values;
    chunk->prefetched_keys_values = (struct fpdt_keys_values){0};
    if (early.k.count > 0)
        return early;
    return fpdt_fetch_keys_values(f, after, q, k);
}

struct fpdt_queries fpdt_queries_for_backward(const struct fpdt *f, int64_t q, op_id after)
{
    struct fpdt_chunk *chunk = &f->chunk[q];
    struct fpdt_queries early = chunk->prefetched_queries;
    chunk->prefetched_queries = (struct fpdt_queries){0};
    if (early.q.count > 0)
        return early;
    return (struct fpdt_queries){
        fpdt_fetch_tensor(f, f->load_stream, after, q, chunk->queries.q, "q"),
        fpdt_fetch_tensor(f, f->load_stream, after, q, chunk->queries.o, "o"),
        fpdt_fetch_tensor(f, f->load_stream, after, q, chunk->queries.lse, "lse")};
}

struct qkv fpdt_tile_backward(const struct fpdt *f, int64_t q, int64_t k,
                              const struct query_chunk_tensors *set,
                              const struct fpdt_keys_values *pair)
{
    struct emit *e = f->e;
    struct work work = fpdt_tile_work(f, WORK_ATTENTION_BACKWARD, q, k);
    const int64_t rows = work.attention.q * f->q_width, keys = work.attention.kv;
    struct fpdt_keys_values seen = fpdt_visible_part_of_keys(f, *pair, q, k);
    struct qkv in = {set->queries.q, seen.k, seen.v};
    if (q == k)
        attention_sinks_backward(e, f->layer, set->queries.o, set->queries.lse, set->d_o,
                                 work.attention.q, f->heads);
    struct qkv grads = {emit_compute_tensor(e, "dq_block", CATEGORY_ACTIVATION, rows, 0),
                        emit_compute_tensor(e, "dk_block", CATEGORY_KV, keys * f->kv_width, 0),
                        emit_compute_tensor(e, "dv_block", CATEGORY_KV, keys * f->v_width, 0)};
    /* DeepSpeed's code, which a profile with this switch models, makes the gradients with torch.zeros() */
    if (e->choices->profile->chunk_refetches_queries) {
        emit_zeros(e, grads.q);
        emit_zeros(e, grads.k);
        emit_zeros(e, grads.v);
    }
    attention_tile_backward(e, work, &in, set->queries.o, set->queries.lse, set->d_o, &grads);
    return grads;
}

void fpdt_finish_chunk_backward(const struct fpdt *f, int64_t i, struct qkv grads, struct view norm,
                                struct fpdt_gradient_target to)
{
    struct emit *e = f->e;
    enum dtype dtype = (enum dtype)e->choices->dtype;
    int64_t h = e->choices->model->hidden;
    struct head_exchange z = fpdt_chunk_exchange(f, i);
    e->op_tags.chunk = (uint16_t)i;
    grads.q = fpdt_cast(f, grads.q, dtype, "dq");
    grads.k = fpdt_cast(f, grads.k, dtype, "dk");
    grads.v = fpdt_cast(f, grads.v, dtype, "dv");
    struct view dqkv = to.dqkv.i != IR_NONE
                           ? view_rows(to.dqkv, z.first_row, z.rank_tokens, z.projection_width)
                           : emit_compute_tensor(e, "dqkv", CATEGORY_ACTIVATION, z.rank_tokens,
                                                 z.projection_width);
    exchange_qkv_backward(e, f->layer, &z, grads, dqkv, &f->chunk[i].attention_saved_on_device);
    fpdt_emit_host_wait_for_stream(f, f->side_stream);
    fpdt_sync_ranks(f);
    if (to.dx.i == IR_NONE)
        return;
    if (norm.count == 0)
        norm = view_rows(e->layer_saved[f->layer].norm1, z.first_row, z.rank_tokens, h);
    const struct view dx = view_rows(to.dx, z.first_row, z.rank_tokens, h);
    if (e->choices->model->kv_latent > 0)
        latent_project_backward(e, f->layer, dqkv, norm, dx, z.rank_tokens, z.rank_positions,
                                &f->chunk[i].attention_saved_on_device.latent);
    else
        project_qkv_backward(e, f->layer, dqkv, norm, dx, z.rank_tokens,
                             &f->chunk[i].attention_saved_on_device.adapters);
    e->op_tags.region = REGION_ATTENTION;
}

struct view fpdt_fetch_normed_input(const struct fpdt *f, int64_t i, struct fpdt_gradient_target to)
{
    if (to.dx.i == IR_NONE || f->chunk[i].normed_input_on_host.count == 0)
        return view_none();
    return fpdt_copy_from_host(f, f->side_stream, f->e->last_compute,
                               f->chunk[i].normed_input_on_host, "norm");
}

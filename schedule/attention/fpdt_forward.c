/* FPDT's forward. For each chunk it emits the projection (unless only the attention operator is predicted), the
 * all-to-alls, the tiles by the keys of the chunks so far that the chunk attends to (fpdt_first_visible_chunk()), whose
 * keys and values, if they are on the host, are fetched one tile ahead, and the all-to-all of the output. */
#include "schedule/attention/attention.h"
#include "schedule/attention/fpdt.h"
#include "schedule/attention/latent.h"
#include "schedule/choices/profile.h"

#include <stddef.h>
#include <string.h>

/* During the forward's last tile, fetches the tensors with which the backward begins. */
static void fetch_first_tensors_of_backward(const struct fpdt *f)
{
    struct fpdt_chunk *first = &f->chunk[0];
    op_id after = f->e->last_compute;
    first->prefetched_queries.q =
        fpdt_fetch_tensor(f, f->load_stream, after, 0, first->queries.q, "q");
    first->prefetched_keys_values = fpdt_fetch_keys_values(f, after, 0, 0);
    first->prefetched_queries.o =
        fpdt_fetch_tensor(f, f->load_stream, after, 0, first->queries.o, "o");
    first->prefetched_queries.lse =
        fpdt_fetch_tensor(f, f->load_stream, after, 0, first->queries.lse, "lse");
}

static struct fpdt_keys_values keys_values_on_device(const struct fpdt *f, int64_t k)
{
    return (struct fpdt_keys_values){f->chunk[k].attention_saved_on_device.qkv.k,
                                     f->chunk[k].attention_saved_on_device.qkv.v, false};
}

/* Emits the tile of chunk i's queries by chunk j's keys, merges it into `sum`, and returns `sum`. If j is `first`, the
 * chunk of the first tile, there is no sum yet. Then it returns a new sum in fp32, which is this tile's output; or, if
 * chunk i has only this tile or the compute dtype is fp32, it writes that output to o and returns o. */
static struct view emit_and_merge_tile(const struct fpdt *f, int64_t i, int64_t j, int64_t first,
                                       const struct qkv *in, struct view sum, struct view o)
{
    struct emit *e = f->e;
    struct view lse = f->chunk[i].attention_saved_on_device.lse;
    int64_t rows = fpdt_chunk_tokens(f, i);
    struct work work = fpdt_tile_work(f, WORK_ATTENTION, i, j);
    if (i == first || (j == first && e->choices->dtype == DTYPE_F32)) {
        attention_tile(e, work, in, o, lse);
        return o;
    }
    struct view block = emit_compute_tensor(e, "o_block", CATEGORY_ACTIVATION, rows, f->o_width);
    if (j == first) {
        attention_tile(e, work, in, block, lse);
        return fpdt_cast(f, block, DTYPE_F32, "o_sum");
    }
    struct view block_lse =
        emit_tensor(e, "lse_block", CATEGORY_ACTIVATION, DTYPE_F32, rows, f->heads);
    struct work merge = {.kind = WORK_MERGE,
                         .merge = {rows, f->heads, transformer_v_head_dim(e->choices->model)}};
    attention_tile(e, work, in, block, block_lse);
    emit_op(e, e->stream.compute, &merge, (struct view[]){sum, lse, block, block_lse}, 4,
            (struct view[]){sum, lse}, 2);
    return sum;
}

/* Emits the tiles of chunk i. *ahead holds keys and values that were fetched early: on entry those for the first of
 * these tiles, on return those for the first tile of the next chunk. It is empty if that tile reads the keys of its own
 * chunk or of the chunk before it, which are still on the device. */
static void emit_tiles(const struct fpdt *f, int64_t i, struct view o,
                       struct fpdt_keys_values *ahead)
{
    struct emit *e = f->e;
    int64_t first = fpdt_first_visible_chunk(f, i),
            then = i + 1 < f->chunk_count ? fpdt_first_visible_chunk(f, i + 1) : i;
    struct fpdt_keys_values pair = *ahead;
    struct view sum = view_none();
    bool early = e->choices->profile->chunk_refetches_queries;
    if (pair.k.count == 0)
        pair = keys_values_on_device(f, first);
    for (int64_t j = first; j <= i; j++) {
        struct fpdt_keys_values next = {0};
        e->op_tags.step = (uint16_t)j;
        *ahead = (struct fpdt_keys_values){0};
        if (j + 1 < i)
            next = fpdt_fetch_keys_values(f, e->last_compute, i, j + 1);
        else if (j < i)
            next = keys_values_on_device(f, j + 1);
        else if (then < i)
            *ahead = fpdt_fetch_keys_values(f, e->last_compute, i + 1, then);
        else if (f->offloads && i + 1 == f->chunk_count && early)
            fetch_first_tensors_of_backward(f);
        pair = fpdt_visible_part_of_keys(f, fpdt_expand_latents(f, i, j, pair), i, j);
        struct qkv in = {f->chunk[i].attention_saved_on_device.qkv.q, pair.k, pair.v};
        sum = emit_and_merge_tile(f, i, j, first, &in, sum, o);
        fpdt_emit_host_wait_for_tile(f);
        pair = next;
    }
    e->op_tags.step = IR_NONE16;
    if (sum.buffer.i != o.buffer.i)
        emit_cast(e, sum, o);
}

/* Emits the forward of chunk i, and writes its output to `out`. x: the normed input of all chunks if `projects`, else
 * qkv. ahead: as in emit_tiles(). */
static void chunk_forward(const struct fpdt *f, int64_t i, buffer_id x, bool projects,
                          struct view out, struct fpdt_keys_values *ahead)
{
    struct emit *e = f->e;
    const struct profile *profile = e->choices->profile;
    struct fpdt_chunk *chunk = &f->chunk[i];
    struct head_exchange z = fpdt_chunk_exchange(f, i);
    struct view qkv = view_rows(x, z.first_row, z.rank_tokens, z.projection_width);
    if (projects) {
        struct view rows = view_rows(x, z.first_row, z.rank_tokens, e->choices->model->hidden);
        qkv = e->choices->model->kv_latent > 0
                  ? latent_project(e, f->layer, rows, z.rank_tokens, z.rank_positions,
                                   &chunk->attention_saved_on_device.latent)
                  : project_qkv(e, f->layer, rows, z.rank_tokens,
                                &chunk->attention_saved_on_device.adapters);
        e->op_tags.region = REGION_ATTENTION;
        if (f->offloads && profile->chunk_offloads_norm)
            chunk->normed_input_on_host = fpdt_copy_to_host(f, f->side_stream, rows, "norm_host");
    }
    e->op_tags.region = REGION_ATTENTION;
    struct qkv in =
        exchange_qkv(e, f->layer, &z, qkv, (struct qkv){0}, &chunk->attention_saved_on_device);
    chunk->attention_saved_on_device.qkv = in;
    fpdt_sync_ranks(f);
    fpdt_store_tensor(f, f->store_stream, i, in.q, "q_host", &chunk->queries.q, sizeof *chunk);
    if (f->stores_latents)
        in = latent_qkv_views(e, &z, qkv);
    fpdt_store_tensor(f, f->store_stream, i, in.k, f->stores_latents ? "latents_host" : "k_host",
                      &chunk->keys_values.k, sizeof *chunk);
    fpdt_store_tensor(f, f->store_stream, i, in.v, f->stores_latents ? "shared_host" : "v_host",
                      &chunk->keys_values.v, sizeof *chunk);
    struct view o = exchange_view_for_core_output(e, &z, out);
    attention_save_output_and_make_lse(e, &chunk->attention_saved_on_device, o, z.group_tokens,
                                       f->heads);
    emit_tiles(f, i, o, ahead);
    attention_sinks(e, f->layer, &chunk->attention_saved_on_device, z.group_tokens, f->heads);
    exchange_attention_output(e, &z, o, out);
    fpdt_store_tensor(f, f->side_stream, i, o, "o_host", &chunk->queries.o, sizeof *chunk);
    fpdt_store_tensor(f, f->side_stream, i, chunk->attention_saved_on_device.lse, "lse_host",
                      &chunk->queries.lse, sizeof *chunk);
}

/* Copies the chunks' outputs, part[chunk_count], into one tensor. */
static void concatenate_outputs(const struct fpdt *f, const struct view *part, buffer_id out)
{
    struct emit *e = f->e;
    for (int64_t i = 0; i < f->chunk_count; i++) {
        struct head_exchange z = fpdt_chunk_exchange(f, i);
        struct view rows = view_rows(out, z.first_row, z.rank_tokens, z.o_width);
        emit_pack_or_unpack(e, WORK_PACK, part[i], rows, z.rank_tokens, 1, z.o_width);
    }
}

static void fpdt_forward_of_sequence(struct emit *e, uint32_t layer, int64_t sequence, buffer_id x,
                                     bool projects, buffer_id out)
{
    bool cat = e->choices->profile->chunk_outputs_concatenated && e->choices->chunk_count > 1;
    struct fpdt f = fpdt_of_sequence(e, layer, sequence);
    struct fpdt_keys_values ahead = {0};
    struct view *part = arena_array(&e->arena, (size_t)f.chunk_count, sizeof *part);
    /* e->layer_saved still has the chunks of the previous micro-batch, whose buffers on the host are not used again */
    memset(f.chunk, 0, (size_t)f.chunk_count * sizeof *f.chunk);
    for (int64_t i = 0; i < f.chunk_count; i++) {
        struct head_exchange z = fpdt_chunk_exchange(&f, i);
        e->op_tags.chunk = (uint16_t)i;
        part[i] = view_rows(out, z.first_row, z.rank_tokens, z.o_width);
        if (cat)
            part[i] =
                emit_compute_tensor(e, "o_rows", CATEGORY_ACTIVATION, z.rank_tokens, z.o_width);
        chunk_forward(&f, i, x, projects, part[i], &ahead);
    }
    e->op_tags.chunk = IR_NONE16;
    if (cat)
        concatenate_outputs(&f, part, out);
}

void fpdt_forward(struct emit *e, uint32_t layer, buffer_id x, buffer_id out)
{
    for (int64_t s = 0; s < e->choices->micro_batch; s++)
        fpdt_forward_of_sequence(e, layer, s, x, true, out);
}

void fpdt_operator_forward(struct emit *e, uint32_t layer, int64_t sequence, struct view qkv,
                           struct view out)
{
    fpdt_forward_of_sequence(e, layer, sequence, qkv.buffer, false, out.buffer);
}

/* Sizes and positions of FPDT's chunks, the keys that they see, the work of their tiles, sums of gradients, and waits
 * of the host. */
#include "schedule/attention/fpdt.h"

#include "schedule/attention/latent.h"
#include "schedule/choices/profile.h"
#include "schedule/config/derived.h"

struct fpdt fpdt_of_sequence(struct emit *e, uint32_t layer, int64_t sequence)
{
    struct head_exchange z = exchange_of_layer(e, layer);
    struct fpdt f = {
        .e = e,
        .layer = layer,
        .sequence = sequence,
        .chunk_count = (int64_t)e->choices->chunk_count,
        .chunk = e->layer_saved[layer].attention[sequence].chunk,
        .offloads = fpdt_offloads(e->choices),
        .stores_latents = fpdt_offloads(e->choices) && z.sends_latents,
        .load_stream = e->stream.h2d,
        .store_stream = e->stream.d2h,
        .side_stream = e->stream.d2h,
        .q_width = z.q_width / z.head_ranks,
        .kv_width = z.kv_width / z.head_ranks,
        .v_width = z.v_width / z.head_ranks,
        .o_width = z.o_width / z.head_ranks,
        .heads = z.heads / z.head_ranks,
        .kv_heads = z.core_kv_heads / z.head_ranks,
        .head_ranks = z.head_ranks,
    };
    if (f.offloads && e->choices->profile->chunk_copies_share_stream) {
        f.load_stream = f.store_stream = e->stream.offload;
        f.side_stream = e->stream.side_stream;
    }
    return f;
}

/* Returns the number of this rank's own tokens in the chunks before chunk i. */
static int64_t own_token_count_before_chunk(const struct fpdt *f, int64_t i)
{
    return i * (f->e->choices->chunk_tokens / f->e->choices->hp);
}

/* Returns the number of this rank's own tokens in chunk i; the last chunk may be shorter. */
static int64_t own_tokens_of_chunk(const struct fpdt *f, int64_t i)
{
    int64_t size = own_token_count_before_chunk(f, 1),
            left = f->e->unit.tokens - own_token_count_before_chunk(f, i);
    return left < size ? left : size;
}

struct head_exchange fpdt_chunk_exchange(const struct fpdt *f, int64_t i)
{
    struct head_exchange z = exchange_of_layer(f->e, f->layer);
    int64_t first = own_token_count_before_chunk(f, i);
    z.rank_tokens = own_tokens_of_chunk(f, i);
    z.group_tokens = z.rank_tokens * z.head_ranks;
    z.rank_positions = view_slice(z.rank_positions, first, z.rank_tokens);
    z.group_positions = view_slice(z.group_positions, first * z.head_ranks, z.group_tokens);
    z.first_row = f->sequence * f->e->unit.tokens + first;
    return z;
}

int64_t fpdt_chunk_tokens(const struct fpdt *f, int64_t i)
{
    return own_tokens_of_chunk(f, i) * f->head_ranks;
}

/* Returns the position in the sequence at which chunk i begins. */
static int64_t chunk_begin_position(const struct fpdt *f, int64_t i)
{
    return own_token_count_before_chunk(f, i) * f->head_ranks;
}

struct work fpdt_tile_work(const struct fpdt *f, enum work_kind kind, int64_t q, int64_t k)
{
    struct work work = attention_causal_work(f->e, kind, fpdt_chunk_tokens(f, q), f->heads,
                                             f->kv_heads),
                masked;
    int64_t first = chunk_begin_position(f, q);
    work.attention.kv = fpdt_visible_keys(f, q, k);
    masked = work;
    masked.attention.offset = first - chunk_begin_position(f, k);
    masked = attention_masked_work(f->e, f->layer, f->sequence, masked, first);
    if (masked.attention.mask != MASK_CAUSAL)
        return masked;
    work.attention.mask = q == k ? MASK_CAUSAL : MASK_FULL;
    return work;
}

bool fpdt_chunk_sees_keys_of_chunk(const struct fpdt *f, int64_t q, int64_t k)
{
    int64_t window = transformer_layer_window(f->e->choices->model, f->layer);
    int64_t last = chunk_begin_position(f, k) + fpdt_chunk_tokens(f, k) - 1;
    if (window > 0 && f->e->choices->model->window_chunks)
        return last >= chunk_begin_position(f, q) / window * window;
    return window == 0 || last > chunk_begin_position(f, q) - window;
}

int64_t fpdt_first_visible_chunk(const struct fpdt *f, int64_t q)
{
    int64_t k = q;
    while (k > 0 && fpdt_chunk_sees_keys_of_chunk(f, q, k - 1))
        k--;
    return k;
}

int64_t fpdt_visible_keys(const struct fpdt *f, int64_t q, int64_t k)
{
    int64_t kept = f->e->choices->model->attention_kept;
    return q == k || kept == 0 ? fpdt_chunk_tokens(f, k) : kept;
}

struct fpdt_keys_values
fpdt_visible_part_of_keys(const struct fpdt *f, struct fpdt_keys_values pair, int64_t q, int64_t k)
{
    const int64_t keys = fpdt_visible_keys(f, q, k);
    return (struct fpdt_keys_values){view_slice(pair.k, 0, keys * f->kv_width),
                                     view_slice(pair.v, 0, keys * f->v_width), false};
}

struct fpdt_keys_values fpdt_expand_latents(const struct fpdt *f, int64_t q, int64_t k,
                                            struct fpdt_keys_values pair)
{
    struct emit *e = f->e;
    const struct transformer *m = e->choices->model;
    const int64_t keys = fpdt_visible_keys(f, q, k);
    if (!pair.is_latent)
        return pair;
    const struct fpdt_keys_values made = {
        emit_compute_tensor(e, "k", CATEGORY_KV, keys, f->kv_width),
        emit_compute_tensor(e, "v", CATEGORY_KV, keys, f->v_width), false};
    f->chunk[k].attention_saved_on_device.latents = pair.k;
    latent_expand(e, f->layer, view_slice(pair.k, 0, keys * m->kv_latent),
                  view_slice(pair.v, 0, keys * m->rope_dim), made.k, made.v);
    return made;
}

/* ---- sums ---- */

struct view fpdt_cast(const struct fpdt *f, struct view x, enum dtype dtype, const char *stem)
{
    return emit_in_dtype(f->e, x, dtype, stem,
                         (enum category)f->e->ir->buffer.category[x.buffer.i]);
}

struct view fpdt_add_to_sum(const struct fpdt *f, struct view sum, struct view part,
                            const char *stem)
{
    if (sum.count == 0)
        return fpdt_cast(f, part, DTYPE_F32, stem);
    struct view head = view_slice(sum, 0, (int64_t)part.count);
    emit_add(f->e, head, part, head);
    return sum;
}

/* ---- waits of the host ---- */

void fpdt_emit_host_wait_for_stream(const struct fpdt *f, uint8_t stream)
{
    if (f->offloads && f->e->choices->profile->host_waits_after_each_chunk_tile)
        emit_host_wait(f->e, stream);
}

void fpdt_emit_host_wait_for_tile(const struct fpdt *f)
{
    fpdt_emit_host_wait_for_stream(f, f->e->stream.compute);
    fpdt_emit_host_wait_for_stream(f, f->load_stream);
    if (fpdt_one_rank_fetches_for_all(f->e->choices))
        fpdt_emit_host_wait_for_stream(f, f->e->stream.chunk_collective_stream);
}

void fpdt_sync_ranks(const struct fpdt *f)
{
    struct emit *e = f->e;
    struct work work = {.kind = WORK_BARRIER, .barrier = {e->group.all_ranks}};
    fpdt_emit_host_wait_for_stream(f, e->stream.comm);
    fpdt_emit_host_wait_for_stream(f, e->stream.compute);
    if (f->offloads && e->choices->profile->host_waits_after_each_chunk_tile &&
        e->group.all_ranks != IR_NONE16)
        emit_op(e, e->stream.compute, &work, NULL, 0, NULL, 0);
}

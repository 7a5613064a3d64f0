/* Chunks of a sequence, their tiles, and their copies to the host and back. */
#include "schedule/attention/fpdt.h"

#include "schedule/attention/latent.h"
#include "schedule/choices/profile.h"
#include "schedule/config/derived.h"

struct fpdt fpdt_of(struct emit *e, uint32_t layer, int64_t sequence)
{
    struct head_exchange z = exchange_of(e, layer);
    struct fpdt f = {
        .e = e,
        .layer = layer,
        .sequence = sequence,
        .u = (int64_t)e->choices->chunks,
        .chunk = e->saved[layer].attention[sequence].chunk,
        .offload = fpdt_offloads(e->choices),
        .latents = fpdt_offloads(e->choices) && z.sends_latents,
        .load_stream = e->stream.h2d,
        .store_stream = e->stream.d2h,
        .side_stream = e->stream.d2h,
        .q_width = z.q_width / z.ranks,
        .kv_width = z.kv_width / z.ranks,
        .v_width = z.v_width / z.ranks,
        .o_width = z.o_width / z.ranks,
        .heads = z.heads / z.ranks,
        .kv_heads = z.kv_sent / z.ranks,
        .ranks = z.ranks,
    };
    if (f.offload && e->choices->profile->chunk_fifo) {
        f.load_stream = f.store_stream = e->stream.offload;
        f.side_stream = e->stream.side_stream;
    }
    return f;
}

/* Returns the number of this rank's own tokens in the chunks before chunk i. */
static int64_t first_token(const struct fpdt *f, int64_t i)
{
    return i * (f->e->choices->chunk / f->e->choices->hp);
}

/* Returns the number of this rank's own tokens in chunk i; the last chunk may be shorter. */
static int64_t own_tokens(const struct fpdt *f, int64_t i)
{
    int64_t size = first_token(f, 1), left = f->e->unit.n - first_token(f, i);
    return left < size ? left : size;
}

struct head_exchange fpdt_exchange(const struct fpdt *f, int64_t i)
{
    struct head_exchange z = exchange_of(f->e, f->layer);
    int64_t first = first_token(f, i);
    z.n = own_tokens(f, i);
    z.s = z.n * z.ranks;
    z.positions = view_part(z.positions, first, z.n);
    z.positions_all = view_part(z.positions_all, first * z.ranks, z.s);
    z.begin = f->sequence * f->e->unit.n + first;
    return z;
}

int64_t fpdt_tokens(const struct fpdt *f, int64_t i)
{
    return own_tokens(f, i) * f->ranks;
}

/* Returns the position in the sequence at which chunk i begins. */
static int64_t position_of(const struct fpdt *f, int64_t i)
{
    return first_token(f, i) * f->ranks;
}

struct work fpdt_tile(const struct fpdt *f, enum work_kind kind, int64_t q, int64_t k)
{
    struct work work = attention_work(f->e, kind, fpdt_tokens(f, q), f->heads, f->kv_heads), masked;
    int64_t first = position_of(f, q);
    work.attention.kv = fpdt_keys(f, q, k);
    masked = work;
    masked.attention.offset = first - position_of(f, k);
    masked = attention_masked(f->e, f->layer, f->sequence, masked, first);
    if (masked.attention.mask != MASK_CAUSAL)
        return masked;
    work.attention.mask = q == k ? MASK_CAUSAL : MASK_FULL;
    return work;
}

bool fpdt_sees(const struct fpdt *f, int64_t q, int64_t k)
{
    int64_t window = transformer_layer_window(f->e->choices->model, f->layer);
    int64_t last = position_of(f, k) + fpdt_tokens(f, k) - 1;
    if (window > 0 && f->e->choices->model->window_chunks)
        return last >= position_of(f, q) / window * window;
    return window == 0 || last > position_of(f, q) - window;
}

int64_t fpdt_first_seen(const struct fpdt *f, int64_t q)
{
    int64_t k = q;
    while (k > 0 && fpdt_sees(f, q, k - 1))
        k--;
    return k;
}

int64_t fpdt_keys(const struct fpdt *f, int64_t q, int64_t k)
{
    int64_t kept = f->e->choices->model->attention_kept;
    return q == k || kept == 0 ? fpdt_tokens(f, k) : kept;
}

struct fpdt_pair fpdt_pair_part(const struct fpdt *f, struct fpdt_pair pair, int64_t q, int64_t k)
{
    const int64_t keys = fpdt_keys(f, q, k);
    return (struct fpdt_pair){view_part(pair.k, 0, keys * f->kv_width),
                              view_part(pair.v, 0, keys * f->v_width), false};
}

struct fpdt_pair fpdt_expand(const struct fpdt *f, int64_t q, int64_t k, struct fpdt_pair pair)
{
    struct emit *e = f->e;
    const struct transformer *m = e->choices->model;
    const int64_t keys = fpdt_keys(f, q, k);
    if (!pair.latents)
        return pair;
    const struct fpdt_pair made = {emit_computed(e, "k", CATEGORY_KV, keys, f->kv_width),
                                   emit_computed(e, "v", CATEGORY_KV, keys, f->v_width), false};
    f->chunk[k].part.latents = pair.k;
    latent_expand(e, f->layer, view_part(pair.k, 0, keys * m->kv_latent),
                  view_part(pair.v, 0, keys * m->rope_dim), made.k, made.v);
    return made;
}

/* ---- sums ---- */

struct view fpdt_cast(const struct fpdt *f, struct view x, enum dtype dtype, const char *stem)
{
    return emit_as(f->e, x, dtype, stem, (enum category)f->e->ir->buffer.category[x.buffer.i]);
}

struct view fpdt_sum(const struct fpdt *f, struct view sum, struct view part, const char *stem)
{
    if (sum.count == 0)
        return fpdt_cast(f, part, DTYPE_F32, stem);
    struct view head = view_part(sum, 0, (int64_t)part.count);
    emit_add(f->e, head, part, head);
    return sum;
}

/* ---- waits of the host ---- */

void fpdt_sync_stream(const struct fpdt *f, uint8_t stream)
{
    if (f->offload && f->e->choices->profile->chunk_sync)
        emit_wait(f->e, stream);
}

void fpdt_sync_tile(const struct fpdt *f)
{
    fpdt_sync_stream(f, f->e->stream.compute);
    fpdt_sync_stream(f, f->load_stream);
    if (fpdt_fetches_by_one(f->e->choices))
        fpdt_sync_stream(f, f->e->stream.fetch);
}

void fpdt_sync_ranks(const struct fpdt *f)
{
    struct emit *e = f->e;
    struct work work = {.kind = WORK_BARRIER, .barrier = {e->group.all}};
    fpdt_sync_stream(f, e->stream.comm);
    fpdt_sync_stream(f, e->stream.compute);
    if (f->offload && e->choices->profile->chunk_sync && e->group.all != IR_NONE16)
        emit_op(e, e->stream.compute, &work, NULL, 0, NULL, 0);
}

/* Chunks of a sequence, their tiles, and how they go to the host and come back. */
#include "schedule/attention/fpdt.h"

#include "schedule/attention/attention.h"
#include "schedule/choices/profile.h"
#include "schedule/config/derived.h"

struct fpdt fpdt_of(struct emit *e, uint32_t layer, int64_t sequence)
{
    struct exchange z = exchange_of(e);
    struct fpdt f = {
        .e = e,
        .layer = layer,
        .sequence = sequence,
        .u = (int64_t)e->choices->chunks,
        .chunk = e->saved[layer].attention[sequence].chunk,
        .offload = fpdt_offloads(e->choices),
        .load = e->stream.h2d,
        .store = e->stream.d2h,
        .aside = e->stream.d2h,
        .q_width = z.q_width / z.ranks,
        .kv_width = z.kv_width / z.ranks,
        .heads = z.heads / z.ranks,
        .kv_heads = z.kv_sent / z.ranks,
        .ranks = z.ranks,
    };
    if (f.offload && e->choices->profile->chunk_fifo) {
        f.load = f.store = e->stream.offload;
        f.aside = e->stream.aside;
    }
    return f;
}

/* Returns the number of this rank's own tokens in chunk i; the last chunk may be shorter. *first: the number of its
 * tokens in the chunks before. */
static int64_t own_tokens(const struct fpdt *f, int64_t i, int64_t *first)
{
    const struct emit *e = f->e;
    int64_t size = e->choices->chunk / e->choices->hp;
    *first = i * size;
    return e->unit.n - *first < size ? e->unit.n - *first : size;
}

struct exchange fpdt_exchange(const struct fpdt *f, int64_t i, int64_t *begin)
{
    struct exchange z = exchange_of(f->e);
    int64_t first;
    z.n = own_tokens(f, i, &first);
    z.s = z.n * z.ranks;
    z.positions = view_part(z.positions, first, z.n);
    z.positions_all = view_part(z.positions_all, first * z.ranks, z.s);
    *begin = f->sequence * f->e->unit.n + first;
    return z;
}

int64_t fpdt_tokens(const struct fpdt *f, int64_t i)
{
    int64_t first;
    return own_tokens(f, i, &first) * f->ranks;
}

/* Returns the position in the sequence at which chunk i begins. */
static int64_t position_of(const struct fpdt *f, int64_t i)
{
    int64_t first;
    own_tokens(f, i, &first);
    return first * f->ranks;
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
    int64_t window = transformer_window(f->e->choices->model, f->layer);
    int64_t last = position_of(f, k) + fpdt_tokens(f, k) - 1;
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
    int64_t count = fpdt_keys(f, q, k) * f->kv_width;
    return (struct fpdt_pair){view_part(pair.k, 0, count), view_part(pair.v, 0, count)};
}

/* ---- the projection ---- */

struct view fpdt_project(const struct fpdt *f, struct view x, int64_t rows)
{
    struct emit *e = f->e;
    int64_t width = exchange_of(e).width;
    struct view bias = view_none(), qkv = view_all(e, emit_activation(e, "qkv", rows, width));
    if (has_weight(e, WEIGHT_QKV_BIAS))
        bias = weight_view(e, f->layer, WEIGHT_QKV_BIAS);
    e->tags.region = REGION_LINEAR;
    emit_matmul(e, MATMUL_NT, x, weight_view(e, f->layer, WEIGHT_QKV), bias, qkv, rows, width,
                e->choices->model->hidden);
    e->tags.region = REGION_ATTENTION;
    return qkv;
}

void fpdt_project_backward(const struct fpdt *f, struct view dqkv, struct view x, struct view dx,
                           int64_t rows)
{
    struct emit *e = f->e;
    int64_t width = exchange_of(e).width, h = e->choices->model->hidden;
    e->tags.region = REGION_LINEAR;
    emit_matmul(e, MATMUL_NN, dqkv, weight_view(e, f->layer, WEIGHT_QKV), view_none(), dx, rows, h,
                width);
    emit_weight_grad(e, f->layer, WEIGHT_QKV, dqkv, x, width, h, rows);
    emit_bias_grad(e, f->layer, WEIGHT_QKV_BIAS, dqkv, rows, width);
    e->tags.region = REGION_ATTENTION;
}

/* ---- sums ---- */

struct view fpdt_zeros(const struct fpdt *f, const char *stem, enum dtype dtype,
                       enum category category, int64_t count)
{
    struct emit *e = f->e;
    struct view y = view_all(e, emit_buffer(e, stem, category, dtype, count, 0));
    struct work work = {.kind = WORK_FILL, .elements = {count}};
    emit_op(e, e->stream.compute, &work, NULL, 0, &y, 1);
    return y;
}

struct view fpdt_cast(const struct fpdt *f, struct view x, enum dtype dtype, const char *stem)
{
    struct emit *e = f->e;
    if (e->ir->buffer.dtype[x.buffer.i] == dtype)
        return x;
    enum category category = (enum category)e->ir->buffer.category[x.buffer.i];
    struct work work = {.kind = WORK_CAST, .elements = {(int64_t)x.count}};
    struct view y = view_all(e, emit_buffer(e, stem, category, dtype, (int64_t)x.count, 0));
    emit_op(e, e->stream.compute, &work, &x, 1, &y, 1);
    return y;
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
    struct work work = {.kind = WORK_HOST_SYNC};
    if (f->offload && f->e->choices->profile->chunk_sync)
        emit_op(f->e, stream, &work, NULL, 0, NULL, 0);
}

void fpdt_sync_tile(const struct fpdt *f)
{
    fpdt_sync_stream(f, f->e->stream.compute);
    fpdt_sync_stream(f, f->load);
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

/* Attention over subsequences (TeraPipe, arXiv 2102.07988; Seq1F1B, arXiv 2406.03488): the queries of
 * subsequence i, s_i tokens, see the keys and values of the P_i tokens up to its end, bottom-right
 * causal. These grow in a buffer of the whole sequence, to which each subsequence adds its own
 * (Seq1F1B's torch.cat copies all of them for each subsequence instead: a profile's switch).
 *
 * Backward goes from the last subsequence to the first: each makes gradients for all P_i keys, on top of
 * those that came from later queries; its own s_i then are complete. Sums in the compute dtype shrink
 * with the prefix; in fp32 they stay where they are. */
#include "schedule/attention/attention.h"
#include "schedule/attention/exchange.h"
#include "schedule/pipeline/pipeline.h"

/* Tokens of a sequence, seen by the core, up to the beginning and the end of the unit. */
struct reach {
    int64_t begin, end;
};

static struct reach reach_of(const struct emit *e)
{
    return (struct reach){pipeline_prefix(e->choices, e->subsequence),
                          pipeline_prefix(e->choices, e->subsequence + 1)};
}

static struct view new_cache(struct emit *e, const char *stem, int64_t width)
{
    buffer_id buffer = emit_buffer(e, stem, CATEGORY_KV, e->choices->dtype, e->choices->seq, width);
    emit_cache(e, buffer);
    return view_all(e, buffer);
}

/* A copy of what there is so far. */
static struct view copied(struct emit *e, struct view x, const char *stem, int64_t rows,
                          int64_t width)
{
    struct work work = {.kind = WORK_PACK, .pack = {rows, 1, {width, 0, 0}}};
    struct view y = view_all(e, emit_buffer(e, stem, CATEGORY_KV, e->choices->dtype, rows, width));
    emit_op(e, e->compute, &work, &x, 1, &y, 1);
    return y;
}

static struct work tile_work(const struct emit *e, const struct exchange *z, enum work_kind kind,
                             struct reach reach)
{
    struct work work = attention_work(e, kind, z->s, z->heads / z->ranks, z->kv_sent / z->ranks);
    work.attention.kv = reach.end;
    work.attention.offset = reach.begin;
    return work;
}

void prefix_forward(struct emit *e, uint32_t layer, buffer_id qkv, buffer_id out)
{
    struct exchange z = exchange_of(e);
    struct reach reach = reach_of(e);
    struct prefix *prefix = &e->prefix[layer];
    struct attention_saved *saved = &e->saved[layer].attention[0];
    int64_t width = z.kv_width / z.ranks, own = z.s * width, before = reach.begin * width;
    if (e->subsequence == 0)
        *prefix = (struct prefix){.k = new_cache(e, "k_cache", width),
                                  .v = new_cache(e, "v_cache", width),
                                  .dk = view_none(),
                                  .dv = view_none()};
    struct qkv to = {view_none(), view_part(prefix->k, before, own),
                     view_part(prefix->v, before, own)};
    struct qkv in = exchange_in_to(e, layer, &z, view_all(e, qkv), to, saved);
    in.k = view_part(prefix->k, 0, before + own);
    in.v = view_part(prefix->v, 0, before + own);
    if (e->choices->profile->prefix_copied && before > 0) {
        in.k = copied(e, in.k, "k_prefix", reach.end, width);
        in.v = copied(e, in.v, "v_prefix", reach.end, width);
    }
    saved->q = in.q;
    saved->o = view_all(e, out);
    if (z.ranks > 1)
        saved->o = view_all(e, emit_activation(e, "o", z.s, z.q_width / z.ranks));
    saved->lse = emit_buffer(e, "lse", CATEGORY_ACTIVATION, DTYPE_F32, z.s, z.heads / z.ranks);
    emit_kept(e, saved->o.buffer);
    emit_kept(e, saved->lse);
    attention_tile(e, tile_work(e, &z, WORK_ATTENTION, reach), &in, saved->o,
                   view_all(e, saved->lse));
    if (z.ranks > 1)
        exchange_out(e, &z, saved->o, view_all(e, out));
}

/* The sum of a tile's gradient and of what later queries gave to the same keys. */
static struct view summed(struct emit *e, struct view tile, struct view later)
{
    bool wide = e->choices->profile->prefix_grad_f32 && e->choices->dtype != DTYPE_F32;
    if (wide && later.count == 0) {
        struct view sum =
            view_all(e, emit_buffer(e, "dkv_sum", CATEGORY_KV, DTYPE_F32, (int64_t)tile.count, 0));
        struct work work = {.kind = WORK_CAST, .elements = {(int64_t)tile.count, 0}};
        emit_op(e, e->compute, &work, &tile, 1, &sum, 1);
        return sum;
    }
    if (later.count == 0)
        return tile;
    later = view_part(later, 0, (int64_t)tile.count);
    struct view sum = wide ? later : tile, part = wide ? tile : later;
    emit_add(e, sum, part, sum);
    return sum;
}

/* The last `own` elements, which no earlier query adds to, in the compute dtype. */
static struct view complete(struct emit *e, struct view sum, int64_t own)
{
    struct view part = view_part(sum, (int64_t)sum.count - own, own);
    if (e->ir->buffer.dtype[sum.buffer.i] == e->choices->dtype)
        return part;
    struct view y = view_all(e, emit_buffer(e, "dkv", CATEGORY_KV, e->choices->dtype, own, 0));
    struct work work = {.kind = WORK_CAST, .elements = {own, 0}};
    emit_op(e, e->compute, &work, &part, 1, &y, 1);
    return y;
}

void prefix_backward(struct emit *e, uint32_t layer, buffer_id d_out, buffer_id dqkv)
{
    struct exchange z = exchange_of(e);
    struct reach reach = reach_of(e);
    struct prefix *prefix = &e->prefix[layer];
    const struct attention_saved *saved = &e->saved[layer].attention[0];
    enum dtype dtype = (enum dtype)e->choices->dtype;
    int64_t width = z.kv_width / z.ranks, seen = reach.end * width;
    struct view d_o = exchange_out_backward(e, &z, view_all(e, d_out));
    struct qkv in = {saved->q, view_part(prefix->k, 0, seen), view_part(prefix->v, 0, seen)};
    struct qkv grads = {
        .q = view_all(e, emit_activation(e, "dq", z.s, z.q_width / z.ranks)),
        .k = view_all(e, emit_buffer(e, "dk", CATEGORY_KV, dtype, reach.end, width)),
        .v = view_all(e, emit_buffer(e, "dv", CATEGORY_KV, dtype, reach.end, width)),
    };
    attention_tile_backward(e, tile_work(e, &z, WORK_ATTENTION_BACKWARD, reach), &in, saved->o,
                            view_all(e, saved->lse), d_o, &grads);
    prefix->dk = summed(e, grads.k, prefix->dk);
    prefix->dv = summed(e, grads.v, prefix->dv);
    grads.k = complete(e, prefix->dk, z.s * width);
    grads.v = complete(e, prefix->dv, z.s * width);
    exchange_in_backward(e, layer, &z, grads, view_all(e, dqkv), saved);
}

#include "schedule/attention/exchange.h"
#include "schedule/attention/latent.h"
#include "schedule/choices/profile.h"
#include "schedule/config/derived.h"

struct head_exchange exchange_of(const struct emit *e, uint32_t layer)
{
    const struct choices *c = e->choices;
    const struct transformer *m = c->model;
    const bool latent = m->kv_latent > 0; /* then the projection has rotated q and k */
    bool rotary = transformer_layer_rotates(m, layer) && !latent;
    struct head_exchange z = {
        .n = e->unit.n,
        .s = e->unit.n * (int64_t)c->hp,
        .dim = m->head_dim,
        .ranks = c->hp,
        .heads = m->heads,
        .kv_heads = m->kv_heads,
        .kv_sent = kv_heads_sent(c, c->hp),
        .q_width = transformer_q_width(m),
        .o_width = transformer_o_width(m),
        .width = qkv_width(e),
        .rope_before = rotary && !c->profile->rope_after,
        .rope_after = rotary && c->profile->rope_after,
        .latent = latent,
        .sends_latents = derived_sends_latents(c),
        .positions = emit_positions(e),
        .positions_all = emit_positions_gathered(e),
    };
    z.kv_width = z.kv_sent * z.dim;
    z.v_width = z.kv_sent * transformer_v_head_dim(m);
    z.norms = transformer_layer_norms_heads(m, layer);
    z.is_split = latent || z.norms || z.kv_sent != z.kv_heads;
    return z;
}

/* ---- layouts ---- */

/* Copies x[rows, cols] `count` times in a row, the last time into `to` when that is a view, and returns the last
 * copy; x itself if count is 0. The copies stand for layout passes of an implementation, which cost time; our layout
 * does not change. */
static struct view add_copies(struct emit *e, struct view x, int count, const char *stem,
                              enum category category, int64_t rows, int64_t cols, struct view to)
{
    for (; count > 0; count--) {
        bool last = count == 1 && to.count > 0;
        x = emit_pack(e, WORK_PACK, x, last ? to : emit_computed(e, stem, category, rows, cols),
                      rows, 1, cols);
    }
    return x;
}

/* Returns x itself, or, if `to` is a different view, copies x into it and returns it. */
static struct view settle(struct emit *e, struct view x, struct view to, int64_t rows, int64_t cols)
{
    if (to.count == 0 || (x.buffer.i == to.buffer.i && x.begin == to.begin))
        return x;
    return add_copies(e, x, 1, "", CATEGORY_KV, rows, cols, to);
}

struct view pack_one(struct emit *e, struct view x, int64_t rows, int64_t parts, int64_t width)
{
    struct view y = emit_computed(e, "send", CATEGORY_COMMUNICATION, parts * rows, width);
    return emit_pack(e, WORK_PACK, x, y, rows, parts, width);
}

/* ---- all-to-alls ---- */

/* Sends x[P * n, w] over the head group and returns what is received, of the same shape, after `after` copies; the last
 * of these tensors has the stem and the category, or lies in `to`. */
static struct view all_to_all(struct emit *e, const struct head_exchange *z, struct view x,
                              const char *stem, enum category category, int64_t width, bool sync,
                              int after, struct view to)
{
    struct view none = view_none();
    struct view send = add_copies(e, x, e->choices->profile->copies_before - 1, "send",
                                  CATEGORY_COMMUNICATION, z->s, width, none);
    struct work work = {.kind = WORK_ALL_TO_ALL,
                        .collective = {e->group.hp, bytes_of(e, send), ALGORITHM_AUTO, 0}};
    struct view recv = after > 0 ? none : to;
    if (recv.count == 0)
        recv = emit_computed(e, after > 0 ? "recv" : stem,
                             after > 0 ? CATEGORY_COMMUNICATION : category, z->s, width);
    op_id op = emit_op(e, e->stream.comm, &work, &send, 1, &recv, 1);
    if (sync)
        e->sync = op;
    return add_copies(e, recv, after, stem, category, z->s, width, to);
}

/* Scatters heads: packed[P, n, w] becomes [s, w]. */
struct view scatter_heads(struct emit *e, const struct head_exchange *z, struct view packed,
                          const char *stem, enum category category, int64_t width, bool sync,
                          struct view to)
{
    int after = e->choices->profile->copies_after;
    return all_to_all(e, z, packed, stem, category, width, sync, after, to);
}

/* Gathers heads: x[s, w] becomes [P, n, w], which the caller has to unpack. */
struct view gather_heads(struct emit *e, const struct head_exchange *z, struct view x,
                         int64_t width, bool sync)
{
    int after = e->choices->profile->copies_after - 1;
    if (z->ranks == 1)
        return x;
    return all_to_all(e, z, x, "recv", CATEGORY_COMMUNICATION, width, sync, after, view_none());
}

/* ---- q, k and v ---- */

static struct view change_heads(struct emit *e, enum work_kind kind, struct view x,
                                const struct head_exchange *z, struct view to)
{
    int64_t factor = z->kv_sent / z->kv_heads;
    int64_t heads = kind == WORK_HEAD_EXPAND ? z->kv_sent : z->kv_heads;
    struct work work = {.kind = (uint8_t)kind, .heads = {z->n, z->kv_heads, z->dim, factor}};
    struct view y = to;
    if (to.count == 0)
        y = emit_computed(e, kind == WORK_HEAD_EXPAND ? "expanded" : "reduced", CATEGORY_KV, z->n,
                          heads * z->dim);
    emit_op(e, e->stream.compute, &work, &x, 1, &y, 1);
    return y;
}

/* Rotates the heads of q and k, which stay at their columns of x[n, W], into y, and returns y. */
static struct view rotate_joined(struct emit *e, const struct head_exchange *z, enum work_kind kind,
                                 struct view x, struct view y)
{
    struct work work = {.kind = (uint8_t)kind,
                        .rope = {z->n, z->heads + z->kv_heads, z->dim, z->width}};
    emit_op(e, e->stream.compute, &work, (struct view[]){x, z->positions}, 2, &y, 1);
    return y;
}

struct qkv latent_parts(const struct emit *e, const struct head_exchange *z, struct view qkv)
{
    const struct transformer *m = e->choices->model;
    const int64_t q = z->n * z->q_width, k = z->n * (z->sends_latents ? m->kv_latent : z->kv_width);
    return (struct qkv){
        view_part(qkv, 0, q), view_part(qkv, q, k),
        view_part(qkv, q + k, z->n * (z->sends_latents ? m->rope_dim : z->v_width))};
}

struct view gather_rows(struct emit *e, struct view x, const char *stem)
{
    const int64_t ranks = (int64_t)e->choices->hp;
    const struct work work = {.kind = WORK_ALL_GATHER,
                              .collective = {e->group.hp, bytes_of(e, x), ALGORITHM_AUTO, 0}};
    if (ranks == 1)
        return x;
    struct view y = emit_computed(e, stem, CATEGORY_KV, ranks * (int64_t)x.count, 0);
    const op_id op = emit_op(e, e->stream.comm, &work, &x, 1, &y, 1);
    if (e->choices->profile->sync_forward)
        e->sync = op;
    return y;
}

/* Writes to y this rank's rows of the sum over the head group of x, of which the rank has the part of its heads. */
static void scatter_rows(struct emit *e, struct view x, struct view y)
{
    const struct work work = {.kind = WORK_REDUCE_SCATTER,
                              .collective = {e->group.hp, bytes_of(e, x), ALGORITHM_AUTO, 0}};
    if (e->choices->hp == 1)
        return;
    const op_id op = emit_op(e, e->stream.comm, &work, &x, 1, &y, 1);
    if (e->choices->profile->sync_backward)
        e->sync = op;
}

/* Gathers the latents and shared columns of all tokens, into *saved, and makes k and v of this rank's heads. */
static void exchange_latents(struct emit *e, uint32_t layer, const struct head_exchange *z,
                             struct qkv *parts, struct qkv to, struct attention_saved *saved)
{
    saved->latents = gather_rows(e, parts->k, "latents_all");
    const struct view shared = gather_rows(e, parts->v, "shared_all");
    parts->k = to.k.count > 0
                   ? to.k
                   : emit_computed(e, "k_all", CATEGORY_KV, z->s, z->kv_width / z->ranks);
    parts->v =
        to.v.count > 0 ? to.v : emit_computed(e, "v_all", CATEGORY_KV, z->s, z->v_width / z->ranks);
    latent_expand(e, layer, saved->latents, shared, parts->k, parts->v);
}

/* Writes the parts of the latents and of the shared columns of dqkv: sums over the heads of all ranks. */
static void exchange_latents_backward(struct emit *e, uint32_t layer, const struct head_exchange *z,
                                      const struct qkv *grads, struct view dqkv,
                                      const struct attention_saved *saved)
{
    const struct transformer *m = e->choices->model;
    const struct qkv to = latent_parts(e, z, dqkv);
    struct view d_latents = to.k, d_shared = to.v;
    if (z->ranks > 1) {
        d_latents = emit_computed(e, "d_latents_all", CATEGORY_COMMUNICATION, z->s, m->kv_latent);
        d_shared = emit_computed(e, "d_shared_all", CATEGORY_COMMUNICATION, z->s, m->rope_dim);
    }
    latent_expand_backward(e, layer, saved->latents, grads->k, grads->v, d_latents, d_shared);
    scatter_rows(e, d_latents, to.k);
    scatter_rows(e, d_shared, to.v);
}

/* Returns q, k and v of qkv[n, W], each packed as [P, n, w]. With P = 1 they may lie in `to`. */
static struct qkv pack_parts(struct emit *e, uint32_t layer, const struct head_exchange *z,
                             struct view qkv, struct qkv to, struct attention_saved *saved)
{
    struct view none = view_none(), positions = z->positions;
    if (!z->is_split) {
        if (z->rope_before) {
            struct view rotated = emit_computed(e, "rotated", CATEGORY_ACTIVATION, z->n, z->width);
            qkv = rotate_joined(e, z, WORK_ROPE, qkv, rotated);
        }
        return split_qkv(e, qkv, z->n, z->ranks, to);
    }
    bool expands = z->kv_sent != z->kv_heads;
    struct qkv parts =
        z->latent ? latent_parts(e, z, qkv)
                  : split_qkv(e, qkv, z->n, 1, (struct qkv){none, none, expands ? none : to.v});
    if (z->norms)
        head_norms(e, layer, &parts, saved, z->n);
    if (z->rope_before) {
        parts.q = rotate(e, parts.q, positions, z->n, z->heads, false, none);
        parts.k = rotate(e, parts.k, positions, z->n, z->kv_heads, false, expands ? none : to.k);
    }
    if (expands) {
        parts.k = change_heads(e, WORK_HEAD_EXPAND, parts.k, z, to.k);
        parts.v = change_heads(e, WORK_HEAD_EXPAND, parts.v, z, to.v);
    }
    if (z->ranks == 1)
        return parts;
    parts.q = pack_one(e, parts.q, z->n, z->ranks, z->q_width / z->ranks);
    parts.k = pack_one(e, parts.k, z->n, z->ranks, z->kv_width / z->ranks);
    parts.v = pack_one(e, parts.v, z->n, z->ranks, z->v_width / z->ranks);
    return parts;
}

struct qkv exchange_in(struct emit *e, uint32_t layer, const struct head_exchange *z,
                       struct view qkv, struct qkv to, struct attention_saved *saved)
{
    bool sync = e->choices->profile->sync_forward;
    int64_t q = z->q_width / z->ranks, width = z->kv_width / z->ranks;
    const int64_t v_width = z->v_width / z->ranks;
    struct view none = view_none();
    struct qkv early = {none, z->rope_after ? none : to.k, to.v}, parts;
    if (z->sends_latents) {
        parts = latent_parts(e, z, qkv);
        if (z->ranks > 1)
            parts.q = scatter_heads(e, z, pack_one(e, parts.q, z->n, z->ranks, q), "q_all",
                                    CATEGORY_ACTIVATION, q, sync, none);
        exchange_latents(e, layer, z, &parts, to, saved);
    } else if (z->ranks > 1) {
        struct qkv packed = pack_parts(e, layer, z, qkv, (struct qkv){0}, saved);
        parts.q = scatter_heads(e, z, packed.q, "q_all", CATEGORY_ACTIVATION, q, sync, none);
        parts.k = scatter_heads(e, z, packed.k, "k_all", CATEGORY_KV, width, sync, early.k);
        parts.v = scatter_heads(e, z, packed.v, "v_all", CATEGORY_KV, v_width, sync, early.v);
    } else {
        parts = pack_parts(e, layer, z, qkv, early, saved);
    }
    if (z->rope_after) {
        struct view positions = z->positions_all;
        parts.q = rotate(e, parts.q, positions, z->s, z->heads / z->ranks, false, none);
        parts.k = rotate(e, parts.k, positions, z->s, z->kv_sent / z->ranks, false, to.k);
    }
    parts.k = settle(e, parts.k, to.k, z->s, width);
    parts.v = settle(e, parts.v, to.v, z->s, v_width);
    return parts;
}

struct view exchange_output(struct emit *e, const struct head_exchange *z, struct view out)
{
    if (z->ranks == 1)
        return out;
    return emit_computed(e, "o", CATEGORY_ACTIVATION, z->s, z->o_width / z->ranks);
}

void exchange_out(struct emit *e, const struct head_exchange *z, struct view o, struct view out)
{
    int64_t width = z->o_width / z->ranks;
    if (z->ranks == 1)
        return;
    struct view recv = gather_heads(e, z, o, width, e->choices->profile->sync_forward);
    emit_pack(e, WORK_UNPACK, recv, out, z->n, z->ranks, width);
}

/* ---- gradients ---- */

struct view exchange_out_backward(struct emit *e, const struct head_exchange *z, struct view d_out)
{
    int64_t width = z->o_width / z->ranks;
    if (z->ranks == 1)
        return d_out;
    struct view packed = pack_one(e, d_out, z->n, z->ranks, width);
    return scatter_heads(e, z, packed, "d_o", CATEGORY_ACTIVATION, width,
                         e->choices->profile->sync_backward, view_none());
}

/* Returns the gradient of q, k or v on this rank's rows, [n, P * width]. With `reduce`, the gradients of the copies of
 * a head are summed. */
static struct view unpack_part(struct emit *e, const struct head_exchange *z, struct view recv,
                               int64_t width, bool reduce)
{
    struct view y = recv;
    if (z->ranks > 1)
        y = emit_pack(e, WORK_UNPACK, recv,
                      emit_computed(e, "d_part", CATEGORY_ACTIVATION, z->n, z->ranks * width), z->n,
                      z->ranks, width);
    return reduce ? change_heads(e, WORK_HEAD_REDUCE, y, z, view_none()) : y;
}

struct qkv exchange_gradients(struct emit *e, const struct head_exchange *z, struct view dqkv)
{
    if (z->latent && z->ranks == 1 && !z->sends_latents)
        return latent_parts(e, z, dqkv);
    return new_gradients(e, z->s, z->q_width / z->ranks, z->s, z->kv_width / z->ranks,
                         z->v_width / z->ranks);
}

/* Writes the received gradients of q, k and v to their parts of dqkv. */
static void unpack_latent(struct emit *e, const struct head_exchange *z, const struct qkv *recv,
                          struct view dqkv)
{
    const struct qkv to = latent_parts(e, z, dqkv);
    const struct view from[3] = {recv->q, recv->k, recv->v}, into[3] = {to.q, to.k, to.v};
    for (int i = 0; i < 3; i++)
        if (z->ranks > 1)
            emit_pack(e, WORK_UNPACK, from[i], into[i], z->n, z->ranks,
                      (int64_t)into[i].count / z->n / z->ranks);
        else
            settle(e, from[i], into[i], z->n, (int64_t)into[i].count / z->n);
}

/* Writes dqkv[n, W] from the received gradients of q, k and v. */
static void unpack_parts(struct emit *e, uint32_t layer, const struct head_exchange *z,
                         const struct qkv *recv, struct view dqkv,
                         const struct attention_saved *saved)
{
    struct view none = view_none(), positions = z->positions;
    if (z->latent) {
        unpack_latent(e, z, recv, dqkv);
        return;
    }
    if (!z->is_split) {
        struct view joined = dqkv;
        if (z->rope_before)
            joined = emit_computed(e, "d_rotated", CATEGORY_ACTIVATION, z->n, z->width);
        join_qkv(e, recv, joined, z->n, z->ranks);
        if (z->rope_before)
            rotate_joined(e, z, WORK_ROPE_BACKWARD, joined, dqkv);
        return;
    }
    bool reduce = z->kv_sent != z->kv_heads;
    struct qkv parts = {
        .q = unpack_part(e, z, recv->q, z->q_width / z->ranks, false),
        .k = unpack_part(e, z, recv->k, z->kv_width / z->ranks, reduce),
        .v = unpack_part(e, z, recv->v, z->v_width / z->ranks, reduce),
    };
    if (z->rope_before) {
        parts.q = rotate(e, parts.q, positions, z->n, z->heads, true, none);
        parts.k = rotate(e, parts.k, positions, z->n, z->kv_heads, true, none);
    }
    if (z->norms)
        head_norms_backward(e, layer, &parts, saved, z->n);
    join_qkv(e, &parts, dqkv, z->n, 1);
}

void exchange_in_backward(struct emit *e, uint32_t layer, const struct head_exchange *z,
                          struct qkv grads, struct view dqkv, const struct attention_saved *saved)
{
    bool sync = e->choices->profile->sync_backward;
    int64_t q = z->q_width / z->ranks, kv = z->kv_width / z->ranks;
    if (z->rope_after) {
        struct view none = view_none(), positions = z->positions_all;
        grads.q = rotate(e, grads.q, positions, z->s, z->heads / z->ranks, true, none);
        grads.k = rotate(e, grads.k, positions, z->s, z->kv_sent / z->ranks, true, none);
    }
    struct qkv recv;
    recv.q = gather_heads(e, z, grads.q, q, sync);
    if (z->sends_latents) {
        emit_pack(e, WORK_UNPACK, recv.q, latent_parts(e, z, dqkv).q, z->n, z->ranks, q);
        exchange_latents_backward(e, layer, z, &grads, dqkv, saved);
        return;
    }
    recv.k = gather_heads(e, z, grads.k, kv, sync);
    recv.v = gather_heads(e, z, grads.v, z->v_width / z->ranks, sync);
    unpack_parts(e, layer, z, &recv, dqkv, saved);
}

void core_sync(struct emit *e)
{
    if (e->choices->profile->core_sync)
        emit_wait(e, e->stream.compute);
}

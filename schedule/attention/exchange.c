#include "schedule/attention/exchange.h"
#include "schedule/attention/latent.h"
#include "schedule/choices/profile.h"
#include "schedule/config/derived.h"

struct head_exchange exchange_of_layer(const struct emit *e, uint32_t layer)
{
    const struct choices *c = e->choices;
    const struct transformer *m = c->model;
    const bool latent = m->kv_latent > 0; /* then the projection has rotated q and k */
    bool rotary = transformer_layer_rotates(m, layer) && !latent;
    struct head_exchange z = {
        .rank_tokens = e->unit.tokens,
        .group_tokens = e->unit.tokens * (int64_t)c->hp,
        .head_dim = m->head_dim,
        .head_ranks = c->hp,
        .heads = m->heads,
        .kv_heads = m->kv_heads,
        .core_kv_heads = kv_heads_in_core(c, c->hp),
        .q_width = transformer_q_columns(m),
        .o_width = transformer_o_columns(m),
        .projection_width = qkv_column_count(e),
        .rope_before_exchange = rotary && !c->profile->rope_after_exchange,
        .rope_after_exchange = rotary && c->profile->rope_after_exchange,
        .is_latent = latent,
        .sends_latents = derived_sends_latents(c),
        .rank_positions = view_of_unit_positions(e),
        .group_positions = view_of_head_group_positions(e),
    };
    z.kv_width = z.core_kv_heads * z.head_dim;
    z.v_width = z.core_kv_heads * transformer_v_head_dim(m);
    z.norms_heads_of_q_and_k = transformer_layer_has_qk_norm(m, layer);
    z.splits_qkv_before_pack = latent || z.norms_heads_of_q_and_k || z.core_kv_heads != z.kv_heads;
    return z;
}

/* ---- copies for layout ---- */

/* Emits a chain of `count` copies that begins with x[rows, cols], and returns the last copy, or x itself if count is 0.
 * If `to` is not empty, the last copy is written to it. The copies cost the time of an implementation's layout passes;
 * the order of the elements stays the same. */
static struct view add_layout_copies(struct emit *e, struct view x, int count, const char *stem,
                                     enum category category, int64_t rows, int64_t cols,
                                     struct view to)
{
    for (; count > 0; count--) {
        bool last = count == 1 && to.count > 0;
        x = emit_pack_or_unpack(e, WORK_PACK, x,
                                last ? to : emit_compute_tensor(e, stem, category, rows, cols),
                                rows, 1, cols);
    }
    return x;
}

/* Returns x itself if `to` is empty or begins where x does; else copies x into `to` and returns that. */
static struct view copy_unless_already_there(struct emit *e, struct view x, struct view to,
                                             int64_t rows, int64_t cols)
{
    if (to.count == 0 || (x.buffer.i == to.buffer.i && x.begin == to.begin))
        return x;
    return add_layout_copies(e, x, 1, "", CATEGORY_KV, rows, cols, to);
}

struct view pack_tensor(struct emit *e, struct view x, int64_t rows, int64_t parts, int64_t width)
{
    struct view y = emit_compute_tensor(e, "send", CATEGORY_COMMUNICATION, parts * rows, width);
    return emit_pack_or_unpack(e, WORK_PACK, x, y, rows, parts, width);
}

/* ---- all-to-alls ---- */

/* Emits copies of x[head_ranks, rank_tokens, width], one fewer than the profile's copies_before; the all-to-all of the
 * last one over the head group; and then a chain of `after` copies of what is received. Returns the end of the chain:
 * it lies in `to`, or, if `to` is empty, in a new tensor with this stem and category. sync: the next compute op waits
 * for the all-to-all. */
static struct view all_to_all(struct emit *e, const struct head_exchange *z, struct view x,
                              const char *stem, enum category category, int64_t width, bool sync,
                              int after, struct view to)
{
    struct view none = view_none();
    struct view send = add_layout_copies(e, x, e->choices->profile->copies_before - 1, "send",
                                         CATEGORY_COMMUNICATION, z->group_tokens, width, none);
    struct work work = {.kind = WORK_ALL_TO_ALL,
                        .collective = {e->group.hp, bytes_of_view(e, send), ALGORITHM_AUTO, 0}};
    struct view recv = after > 0 ? none : to;
    if (recv.count == 0)
        recv = emit_compute_tensor(e, after > 0 ? "recv" : stem,
                                   after > 0 ? CATEGORY_COMMUNICATION : category, z->group_tokens,
                                   width);
    op_id op = emit_op(e, e->stream.comm, &work, &send, 1, &recv, 1);
    if (sync)
        e->awaited_by_next_compute = op;
    return add_layout_copies(e, recv, after, stem, category, z->group_tokens, width, to);
}

struct view exchange_tokens_to_heads(struct emit *e, const struct head_exchange *z,
                                     struct view packed, const char *stem, enum category category,
                                     int64_t width, bool sync, struct view to)
{
    int after = e->choices->profile->copies_after;
    return all_to_all(e, z, packed, stem, category, width, sync, after, to);
}

struct view exchange_heads_to_tokens(struct emit *e, const struct head_exchange *z, struct view x,
                                     int64_t width, bool sync)
{
    int after = e->choices->profile->copies_after - 1;
    if (z->head_ranks == 1)
        return x;
    return all_to_all(e, z, x, "recv", CATEGORY_COMMUNICATION, width, sync, after, view_none());
}

/* ---- the forward: q, k and v, and the output ---- */

static struct view emit_head_expand_or_reduce(struct emit *e, enum work_kind kind, struct view x,
                                              const struct head_exchange *z, struct view to)
{
    int64_t factor = z->core_kv_heads / z->kv_heads;
    int64_t heads = kind == WORK_HEAD_EXPAND ? z->core_kv_heads : z->kv_heads;
    struct work work = {.kind = (uint8_t)kind,
                        .heads = {z->rank_tokens, z->kv_heads, z->head_dim, factor}};
    struct view y = to;
    if (to.count == 0)
        y = emit_compute_tensor(e, kind == WORK_HEAD_EXPAND ? "expanded" : "reduced", CATEGORY_KV,
                                z->rank_tokens, heads * z->head_dim);
    emit_op(e, e->stream.compute, &work, &x, 1, &y, 1);
    return y;
}

/* Rotates the heads of q and k (`kind` is WORK_ROPE or its backward) and writes them to y at the same columns as in
 * x[rank_tokens, projection_width]; the columns of v are copied. Returns y. */
static struct view rotate_q_and_k(struct emit *e, const struct head_exchange *z,
                                  enum work_kind kind, struct view x, struct view y)
{
    struct work work = {
        .kind = (uint8_t)kind,
        .rope = {z->rank_tokens, z->heads + z->kv_heads, z->head_dim, z->projection_width}};
    emit_op(e, e->stream.compute, &work, (struct view[]){x, z->rank_positions}, 2, &y, 1);
    return y;
}

struct qkv latent_qkv_views(const struct emit *e, const struct head_exchange *z, struct view qkv)
{
    const struct transformer *m = e->choices->model;
    const int64_t q = z->rank_tokens * z->q_width,
                  k = z->rank_tokens * (z->sends_latents ? m->kv_latent : z->kv_width);
    return (struct qkv){
        view_slice(qkv, 0, q), view_slice(qkv, q, k),
        view_slice(qkv, q + k, z->rank_tokens * (z->sends_latents ? m->rope_dim : z->v_width))};
}

struct view gather_rows_over_hp(struct emit *e, struct view x, const char *stem)
{
    const int64_t ranks = (int64_t)e->choices->hp;
    const struct work work = {.kind = WORK_ALL_GATHER,
                              .collective = {e->group.hp, bytes_of_view(e, x), ALGORITHM_AUTO, 0}};
    if (ranks == 1)
        return x;
    struct view y = emit_compute_tensor(e, stem, CATEGORY_KV, ranks * (int64_t)x.count, 0);
    const op_id op = emit_op(e, e->stream.comm, &work, &x, 1, &y, 1);
    if (e->choices->profile->forward_exchange_blocks_compute)
        e->awaited_by_next_compute = op;
    return y;
}

/* Emits the reduce-scatter over the head group: y gets this rank's rows of the sum of all ranks' x. Emits nothing with
 * one head rank. */
static void reduce_scatter_rows_over_hp(struct emit *e, struct view x, struct view y)
{
    const struct work work = {.kind = WORK_REDUCE_SCATTER,
                              .collective = {e->group.hp, bytes_of_view(e, x), ALGORITHM_AUTO, 0}};
    if (e->choices->hp == 1)
        return;
    const op_id op = emit_op(e, e->stream.comm, &work, &x, 1, &y, 1);
    if (e->choices->profile->backward_exchange_blocks_compute)
        e->awaited_by_next_compute = op;
}

/* Gathers the latents, parts->k, and the shared columns, parts->v, of all tokens of the head group. Then replaces
 * parts->k and parts->v by the keys and values of this rank's heads, made from what was gathered; they are written to
 * `to` or, where that is empty, to new tensors. saved->latents becomes the gathered latents. */
static void exchange_latents(struct emit *e, uint32_t layer, const struct head_exchange *z,
                             struct qkv *parts, struct qkv to, struct attention_saved *saved)
{
    saved->latents = gather_rows_over_hp(e, parts->k, "latents_all");
    const struct view shared = gather_rows_over_hp(e, parts->v, "shared_all");
    parts->k = to.k.count > 0 ? to.k
                              : emit_compute_tensor(e, "k_all", CATEGORY_KV, z->group_tokens,
                                                    z->kv_width / z->head_ranks);
    parts->v = to.v.count > 0 ? to.v
                              : emit_compute_tensor(e, "v_all", CATEGORY_KV, z->group_tokens,
                                                    z->v_width / z->head_ranks);
    latent_expand(e, layer, saved->latents, shared, parts->k, parts->v);
}

/* Writes the gradients of this rank's own latents and shared columns to their parts of dqkv. Each is summed over the
 * heads of all head ranks. */
static void exchange_latents_backward(struct emit *e, uint32_t layer, const struct head_exchange *z,
                                      const struct qkv *grads, struct view dqkv,
                                      const struct attention_saved *saved)
{
    const struct transformer *m = e->choices->model;
    const struct qkv to = latent_qkv_views(e, z, dqkv);
    struct view d_latents = to.k, d_shared = to.v;
    if (z->head_ranks > 1) {
        d_latents = emit_compute_tensor(e, "d_latents_all", CATEGORY_COMMUNICATION, z->group_tokens,
                                        m->kv_latent);
        d_shared = emit_compute_tensor(e, "d_shared_all", CATEGORY_COMMUNICATION, z->group_tokens,
                                       m->rope_dim);
    }
    latent_expand_backward(e, layer, saved->latents, grads->k, grads->v, d_latents, d_shared);
    reduce_scatter_rows_over_hp(e, d_latents, to.k);
    reduce_scatter_rows_over_hp(e, d_shared, to.v);
}

/* Returns those rows of `all` that belong to the sequence whose queries are q. `all` holds the keys or the values, of
 * `width` columns, of all sequences; rows: the number of tokens of a sequence. */
static struct view kv_view_of_query_sequence(struct view q, int64_t q_width, struct view all,
                                             int64_t width, int64_t rows)
{
    return view_rows(all.buffer, (int64_t)q.begin / q_width, rows, width);
}

/* Splits qkv[rank_tokens, projection_width] into q, k and v. If the layer has computed them by a product each
 * (project_has_separate_q_k_v()), qkv holds q only, and k and v are taken from e->layer_saved. Applies the norms and
 * the rotation that come before the exchange, and packs each part as [head_ranks, rank_tokens, columns of a head rank].
 * With one head rank nothing is packed, and the op that makes k or v last writes it to `to` where that is not empty; if
 * that op cannot, exchange_qkv() copies the result. */
static struct qkv pack_qkv(struct emit *e, uint32_t layer, const struct head_exchange *z,
                           struct view qkv, struct qkv to, struct attention_saved *saved)
{
    struct view none = view_none(), positions = z->rank_positions;
    const struct qkv *apart = &e->layer_saved[layer].projected_q_k_v;
    if (!z->splits_qkv_before_pack && apart->q.count == 0) {
        if (z->rope_before_exchange) {
            struct view rotated = emit_compute_tensor(e, "rotated", CATEGORY_ACTIVATION,
                                                      z->rank_tokens, z->projection_width);
            qkv = rotate_q_and_k(e, z, WORK_ROPE, qkv, rotated);
        }
        return split_qkv(e, qkv, z->rank_tokens, z->head_ranks, to);
    }
    bool expands = z->core_kv_heads != z->kv_heads;
    struct qkv parts;
    if (z->is_latent)
        parts = latent_qkv_views(e, z, qkv);
    else if (apart->q.count > 0)
        parts = (struct qkv){
            qkv,
            kv_view_of_query_sequence(qkv, z->q_width, apart->k,
                                      transformer_kv_columns(e->choices->model), z->rank_tokens),
            kv_view_of_query_sequence(qkv, z->q_width, apart->v,
                                      transformer_v_columns(e->choices->model), z->rank_tokens)};
    else
        parts =
            split_qkv(e, qkv, z->rank_tokens, 1, (struct qkv){none, none, expands ? none : to.v});
    if (z->norms_heads_of_q_and_k)
        head_norms(e, layer, &parts, saved, z->rank_tokens);
    if (z->rope_before_exchange) {
        parts.q = rotate_heads(e, parts.q, positions, z->rank_tokens, z->heads, false, none);
        parts.k = rotate_heads(e, parts.k, positions, z->rank_tokens, z->kv_heads, false,
                               expands ? none : to.k);
    }
    if (expands) {
        parts.k = emit_head_expand_or_reduce(e, WORK_HEAD_EXPAND, parts.k, z, to.k);
        parts.v = emit_head_expand_or_reduce(e, WORK_HEAD_EXPAND, parts.v, z, to.v);
    }
    if (z->head_ranks == 1)
        return parts;
    parts.q = pack_tensor(e, parts.q, z->rank_tokens, z->head_ranks, z->q_width / z->head_ranks);
    parts.k = pack_tensor(e, parts.k, z->rank_tokens, z->head_ranks, z->kv_width / z->head_ranks);
    parts.v = pack_tensor(e, parts.v, z->rank_tokens, z->head_ranks, z->v_width / z->head_ranks);
    return parts;
}

struct qkv exchange_qkv(struct emit *e, uint32_t layer, const struct head_exchange *z,
                        struct view qkv, struct qkv to, struct attention_saved *saved)
{
    bool sync = e->choices->profile->forward_exchange_blocks_compute;
    int64_t q = z->q_width / z->head_ranks, width = z->kv_width / z->head_ranks;
    const int64_t v_width = z->v_width / z->head_ranks;
    struct view none = view_none();
    struct qkv early = {none, z->rope_after_exchange ? none : to.k, to.v}, parts;
    if (z->sends_latents) {
        parts = latent_qkv_views(e, z, qkv);
        if (z->head_ranks > 1)
            parts.q = exchange_tokens_to_heads(
                e, z, pack_tensor(e, parts.q, z->rank_tokens, z->head_ranks, q), "q_all",
                CATEGORY_ACTIVATION, q, sync, none);
        exchange_latents(e, layer, z, &parts, to, saved);
    } else if (z->head_ranks > 1) {
        struct qkv packed = pack_qkv(e, layer, z, qkv, (struct qkv){0}, saved);
        parts.q =
            exchange_tokens_to_heads(e, z, packed.q, "q_all", CATEGORY_ACTIVATION, q, sync, none);
        parts.k =
            exchange_tokens_to_heads(e, z, packed.k, "k_all", CATEGORY_KV, width, sync, early.k);
        parts.v =
            exchange_tokens_to_heads(e, z, packed.v, "v_all", CATEGORY_KV, v_width, sync, early.v);
    } else {
        parts = pack_qkv(e, layer, z, qkv, early, saved);
    }
    if (z->rope_after_exchange) {
        struct view positions = z->group_positions;
        parts.q = rotate_heads(e, parts.q, positions, z->group_tokens, z->heads / z->head_ranks,
                               false, none);
        parts.k = rotate_heads(e, parts.k, positions, z->group_tokens,
                               z->core_kv_heads / z->head_ranks, false, to.k);
    }
    parts.k = copy_unless_already_there(e, parts.k, to.k, z->group_tokens, width);
    parts.v = copy_unless_already_there(e, parts.v, to.v, z->group_tokens, v_width);
    return parts;
}

struct view exchange_view_for_core_output(struct emit *e, const struct head_exchange *z,
                                          struct view out)
{
    if (z->head_ranks == 1)
        return out;
    return emit_compute_tensor(e, "o", CATEGORY_ACTIVATION, z->group_tokens,
                               z->o_width / z->head_ranks);
}

void exchange_attention_output(struct emit *e, const struct head_exchange *z, struct view o,
                               struct view out)
{
    int64_t width = z->o_width / z->head_ranks;
    if (z->head_ranks == 1)
        return;
    struct view recv = exchange_heads_to_tokens(
        e, z, o, width, e->choices->profile->forward_exchange_blocks_compute);
    emit_pack_or_unpack(e, WORK_UNPACK, recv, out, z->rank_tokens, z->head_ranks, width);
}

/* ---- the backward of the exchanges, and the wait around the core ---- */

struct view exchange_attention_output_backward(struct emit *e, const struct head_exchange *z,
                                               struct view d_out)
{
    int64_t width = z->o_width / z->head_ranks;
    if (z->head_ranks == 1)
        return d_out;
    struct view packed = pack_tensor(e, d_out, z->rank_tokens, z->head_ranks, width);
    return exchange_tokens_to_heads(e, z, packed, "d_o", CATEGORY_ACTIVATION, width,
                                    e->choices->profile->backward_exchange_blocks_compute,
                                    view_none());
}

/* Returns the gradient of q, k or v in this rank's rows, [rank_tokens, head_ranks * width], from what was received.
 * With `reduce`, whose part is k or v, heads had been copied before they were sent, and the gradients of the copies of
 * a head are summed. */
static struct view unpack_received_head_gradient(struct emit *e, const struct head_exchange *z,
                                                 struct view recv, int64_t width, bool reduce)
{
    struct view y = recv;
    if (z->head_ranks > 1)
        y = emit_pack_or_unpack(e, WORK_UNPACK, recv,
                                emit_compute_tensor(e, "d_part", CATEGORY_ACTIVATION,
                                                    z->rank_tokens, z->head_ranks * width),
                                z->rank_tokens, z->head_ranks, width);
    return reduce ? emit_head_expand_or_reduce(e, WORK_HEAD_REDUCE, y, z, view_none()) : y;
}

struct qkv exchange_views_for_core_grads(struct emit *e, const struct head_exchange *z,
                                         struct view dqkv)
{
    if (z->is_latent && z->head_ranks == 1 && !z->sends_latents)
        return latent_qkv_views(e, z, dqkv);
    return new_qkv_gradients(e, z->group_tokens, z->q_width / z->head_ranks, z->group_tokens,
                             z->kv_width / z->head_ranks, z->v_width / z->head_ranks);
}

/* Writes the received gradients of q, k and v to the three parts of a sequence of dqkv (latent_qkv_views()), unpacked
 * if there are several head ranks. */
static void unpack_latent_gradients(struct emit *e, const struct head_exchange *z,
                                    const struct qkv *recv, struct view dqkv)
{
    const struct qkv to = latent_qkv_views(e, z, dqkv);
    const struct view from[3] = {recv->q, recv->k, recv->v}, into[3] = {to.q, to.k, to.v};
    for (int i = 0; i < 3; i++)
        if (z->head_ranks > 1)
            emit_pack_or_unpack(e, WORK_UNPACK, from[i], into[i], z->rank_tokens, z->head_ranks,
                                (int64_t)into[i].count / z->rank_tokens / z->head_ranks);
        else
            copy_unless_already_there(e, from[i], into[i], z->rank_tokens,
                                      (int64_t)into[i].count / z->rank_tokens);
}

/* Writes dqkv[rank_tokens, projection_width] from the received gradients of q, k and v. */
static void unpack_qkv_gradients(struct emit *e, uint32_t layer, const struct head_exchange *z,
                                 const struct qkv *recv, struct view dqkv,
                                 const struct attention_saved *saved)
{
    struct view none = view_none(), positions = z->rank_positions;
    if (z->is_latent) {
        unpack_latent_gradients(e, z, recv, dqkv);
        return;
    }
    if (!z->splits_qkv_before_pack) {
        struct view joined = dqkv;
        if (z->rope_before_exchange)
            joined = emit_compute_tensor(e, "d_rotated", CATEGORY_ACTIVATION, z->rank_tokens,
                                         z->projection_width);
        join_qkv(e, recv, joined, z->rank_tokens, z->head_ranks);
        if (z->rope_before_exchange)
            rotate_q_and_k(e, z, WORK_ROPE_BACKWARD, joined, dqkv);
        return;
    }
    bool reduce = z->core_kv_heads != z->kv_heads;
    struct qkv parts = {
        .q = unpack_received_head_gradient(e, z, recv->q, z->q_width / z->head_ranks, false),
        .k = unpack_received_head_gradient(e, z, recv->k, z->kv_width / z->head_ranks, reduce),
        .v = unpack_received_head_gradient(e, z, recv->v, z->v_width / z->head_ranks, reduce),
    };
    if (z->rope_before_exchange) {
        parts.q = rotate_heads(e, parts.q, positions, z->rank_tokens, z->heads, true, none);
        parts.k = rotate_heads(e, parts.k, positions, z->rank_tokens, z->kv_heads, true, none);
    }
    if (z->norms_heads_of_q_and_k)
        head_norms_backward(e, layer, &parts, saved, z->rank_tokens);
    join_qkv(e, &parts, dqkv, z->rank_tokens, 1);
}

void exchange_qkv_backward(struct emit *e, uint32_t layer, const struct head_exchange *z,
                           struct qkv grads, struct view dqkv, const struct attention_saved *saved)
{
    bool sync = e->choices->profile->backward_exchange_blocks_compute;
    int64_t q = z->q_width / z->head_ranks, kv = z->kv_width / z->head_ranks;
    if (z->rope_after_exchange) {
        struct view none = view_none(), positions = z->group_positions;
        grads.q = rotate_heads(e, grads.q, positions, z->group_tokens, z->heads / z->head_ranks,
                               true, none);
        grads.k = rotate_heads(e, grads.k, positions, z->group_tokens,
                               z->core_kv_heads / z->head_ranks, true, none);
    }
    struct qkv recv;
    recv.q = exchange_heads_to_tokens(e, z, grads.q, q, sync);
    if (z->sends_latents) {
        emit_pack_or_unpack(e, WORK_UNPACK, recv.q, latent_qkv_views(e, z, dqkv).q, z->rank_tokens,
                            z->head_ranks, q);
        exchange_latents_backward(e, layer, z, &grads, dqkv, saved);
        return;
    }
    recv.k = exchange_heads_to_tokens(e, z, grads.k, kv, sync);
    recv.v = exchange_heads_to_tokens(e, z, grads.v, z->v_width / z->head_ranks, sync);
    unpack_qkv_gradients(e, layer, z, &recv, dqkv, saved);
}

void core_emit_host_wait(struct emit *e)
{
    if (e->choices->profile->host_waits_around_core)
        emit_host_wait(e, e->stream.compute);
}

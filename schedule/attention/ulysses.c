/* DeepSpeed-Ulysses (Jacobs et al., arXiv 2309.14509): every rank holds a slice of the tokens and
 * all heads; all-to-alls turn that into all tokens and a slice of the heads around the core.
 *
 * A scatter of heads sends [P, n, w], w = heads / P * head_dim, and receives [P, n, w] from ranks
 * in order, which is [s, w] in the order of the gathered tokens. A gather of heads is the inverse.
 * Profiles differ in the layout passes around an all-to-all, in where positions are rotated, in
 * how many copies of key and value heads are sent, and in what waits for what. */
#include "schedule/attention/attention.h"
#include "schedule/attention/project.h"

#include <assert.h>

struct shape {
    int64_t n, s, dim;                /* local and all tokens of a sequence */
    int64_t ranks;                    /* P */
    int64_t heads, kv_heads, kv_sent; /* of the model; kv heads that take part in the all-to-all */
    int64_t q_width, kv_width;        /* columns of q, and of k as sent, on all ranks together */
    int64_t width;                    /* columns of the projection */
    bool rope_before, rope_after;
    bool apart; /* q, k and v are taken apart before they are packed */
};

static struct shape shape_of(const struct emit *e)
{
    const struct choices *c = e->choices;
    const struct transformer *m = c->model;
    bool rotary = m->positions == POSITIONS_ROPE;
    struct shape shape = {
        .n = e->n,
        .s = e->n * (int64_t)c->hp,
        .dim = m->head_dim,
        .ranks = c->hp,
        .heads = m->heads,
        .kv_heads = m->kv_heads,
        .kv_sent = kv_heads_sent(c, c->hp),
        .q_width = transformer_q_width(m),
        .width = transformer_q_width(m) + 2 * transformer_kv_width(m),
        .rope_before = rotary && !c->profile->rope_after,
        .rope_after = rotary && c->profile->rope_after,
    };
    shape.kv_width = shape.kv_sent * shape.dim;
    shape.apart = m->qk_norm || shape.kv_sent != shape.kv_heads;
    return shape;
}

/* x[rows, cols] through `count` plain copies (layout passes that change nothing here but take time). */
static struct view copies(struct emit *e, struct view x, int count, const char *stem,
                          enum category category, int64_t rows, int64_t cols)
{
    for (; count > 0; count--) {
        struct work work = {
            .kind = WORK_PACK, .pack = {rows, 1, {cols, 0, 0}}
        };
        struct view y = view_all(e, emit_buffer(e, stem, category, e->choices->dtype, rows, cols));
        emit_op(e, e->compute, &work, &x, 1, &y, 1);
        x = y;
    }
    return x;
}

static struct view pack_one(struct emit *e, struct view x, int64_t rows, int64_t parts,
                            int64_t width)
{
    struct work work = {
        .kind = WORK_PACK, .pack = {rows, parts, {width, 0, 0}}
    };
    struct view y = view_all(
        e, emit_buffer(e, "send", CATEGORY_COMMUNICATION, e->choices->dtype, parts * rows, width));
    emit_op(e, e->compute, &work, &x, 1, &y, 1);
    return y;
}

static void unpack_one(struct emit *e, struct view x, struct view y, int64_t rows, int64_t parts,
                       int64_t width)
{
    struct work work = {
        .kind = WORK_UNPACK, .pack = {rows, parts, {width, 0, 0}}
    };
    emit_op(e, e->compute, &work, &x, 1, &y, 1);
}

/* recv[P * n, w] from send of the same shape, over the head group. */
static struct view all_to_all(struct emit *e, struct view send, const char *stem,
                              enum category category, int64_t rows, int64_t width, bool sync)
{
    int64_t bytes = rows * width * (int64_t)dtype_bytes(e->choices->dtype);
    struct work work = {
        .kind = WORK_ALL_TO_ALL, .collective = {e->hp_group, bytes, ALGORITHM_AUTO, 0}
    };
    struct view recv = view_all(e, emit_buffer(e, stem, category, e->choices->dtype, rows, width));
    op_id op = emit_op(e, e->comm, &work, &send, 1, &recv, 1);
    if (sync)
        e->sync = op;
    return recv;
}

/* Heads are scattered: packed[P, n, w] becomes [s, w]. */
static buffer_id scatter_heads(struct emit *e, const struct shape *z, struct view packed,
                               const char *stem, enum category category, int64_t width, bool sync)
{
    const struct profile *profile = e->choices->profile;
    bool copied = profile->copies_after > 0;
    struct view send =
        copies(e, packed, profile->copies_before - 1, "send", CATEGORY_COMMUNICATION, z->s, width);
    struct view recv = all_to_all(e, send, copied ? "recv" : stem,
                                  copied ? CATEGORY_COMMUNICATION : category, z->s, width, sync);
    return copies(e, recv, profile->copies_after, stem, category, z->s, width).buffer;
}

/* Heads are gathered: x[s, w] becomes [P, n, w], still to be unpacked. */
static struct view gather_heads(struct emit *e, const struct shape *z, struct view x, int64_t width,
                                bool sync)
{
    const struct profile *profile = e->choices->profile;
    enum category category = CATEGORY_COMMUNICATION;
    struct view send = copies(e, x, profile->copies_before - 1, "send", category, z->s, width);
    struct view recv = all_to_all(e, send, "recv", category, z->s, width, sync);
    return copies(e, recv, profile->copies_after - 1, "recv", category, z->s, width);
}

static buffer_id change_heads(struct emit *e, enum work_kind kind, buffer_id x,
                              const struct shape *z)
{
    int64_t factor = z->kv_sent / z->kv_heads;
    int64_t heads = kind == WORK_HEAD_EXPAND ? z->kv_sent : z->kv_heads;
    struct work work = {
        .kind = (uint8_t)kind, .heads = {z->n, z->kv_heads, z->dim, factor}
    };
    buffer_id y = emit_buffer(e, kind == WORK_HEAD_EXPAND ? "expanded" : "reduced", CATEGORY_KV,
                              e->choices->dtype, z->n, heads * z->dim);
    emit_op(e, e->compute, &work, (struct view[]){view_all(e, x)}, 1,
            (struct view[]){view_all(e, y)}, 1);
    return y;
}

/* q and k and v of qkv[n, W], each packed as [P, n, w]. */
static struct qkv pack_parts(struct emit *e, uint32_t layer, const struct shape *z, struct view qkv,
                             struct attention_saved *saved)
{
    struct view positions = view_all(e, e->positions);
    if (!z->apart) {
        if (z->rope_before) {
            struct view rotated = view_all(e, emit_activation(e, "rotated", z->n, z->width));
            struct work work = {
                .kind = WORK_ROPE, .rope = {z->n, z->heads + z->kv_heads, z->dim, z->width}
            };
            emit_op(e, e->compute, &work, (struct view[]){qkv, positions}, 2, &rotated, 1);
            qkv = rotated;
        }
        return split_qkv(e, qkv, z->n, z->ranks);
    }
    struct qkv parts = split_qkv(e, qkv, z->n, 1);
    if (has_head_norms(e))
        head_norms(e, layer, &parts, saved, z->n);
    if (z->rope_before) {
        parts.q = rotate(e, view_all(e, parts.q), positions, z->n, z->heads, false);
        parts.k = rotate(e, view_all(e, parts.k), positions, z->n, z->kv_heads, false);
    }
    if (z->kv_sent != z->kv_heads) {
        parts.k = change_heads(e, WORK_HEAD_EXPAND, parts.k, z);
        parts.v = change_heads(e, WORK_HEAD_EXPAND, parts.v, z);
    }
    parts.q = pack_one(e, view_all(e, parts.q), z->n, z->ranks, z->q_width / z->ranks).buffer;
    parts.k = pack_one(e, view_all(e, parts.k), z->n, z->ranks, z->kv_width / z->ranks).buffer;
    parts.v = pack_one(e, view_all(e, parts.v), z->n, z->ranks, z->kv_width / z->ranks).buffer;
    return parts;
}

static void sequence_forward(struct emit *e, uint32_t layer, const struct shape *z, struct view qkv,
                             struct view out, struct attention_saved *saved)
{
    bool sync = e->choices->profile->sync_forward;
    int64_t q = z->q_width / z->ranks, kv = z->kv_width / z->ranks;
    struct qkv packed = pack_parts(e, layer, z, qkv, saved);
    saved->q = scatter_heads(e, z, view_all(e, packed.q), "q_all", CATEGORY_ACTIVATION, q, sync);
    saved->k = scatter_heads(e, z, view_all(e, packed.k), "k_all", CATEGORY_KV, kv, sync);
    saved->v = scatter_heads(e, z, view_all(e, packed.v), "v_all", CATEGORY_KV, kv, sync);
    if (z->rope_after) {
        struct view positions = view_all(e, e->positions_gathered);
        saved->q = rotate(e, view_all(e, saved->q), positions, z->s, z->heads / z->ranks, false);
        saved->k = rotate(e, view_all(e, saved->k), positions, z->s, z->kv_sent / z->ranks, false);
    }
    struct view o = view_all(e, emit_activation(e, "o", z->s, q));
    attention_core(e, saved, o, z->s, z->heads / z->ranks, z->kv_sent / z->ranks);
    unpack_one(e, gather_heads(e, z, o, q, sync), out, z->n, z->ranks, q);
}

/* The gradient of one of q, k, v back on its own rows: [n, P * width], copies of heads summed. */
static buffer_id unpack_part(struct emit *e, const struct shape *z, struct view recv, int64_t width,
                             bool reduce)
{
    buffer_id y = emit_activation(e, "d_part", z->n, z->ranks * width);
    unpack_one(e, recv, view_all(e, y), z->n, z->ranks, width);
    return reduce ? change_heads(e, WORK_HEAD_REDUCE, y, z) : y;
}

/* dqkv[n, W] from the received gradients of q, k and v. */
static void unpack_parts(struct emit *e, uint32_t layer, const struct shape *z,
                         const struct view recv[3], struct view dqkv,
                         const struct attention_saved *saved)
{
    struct view positions = view_all(e, e->positions);
    if (!z->apart) {
        struct qkv parts = {recv[0].buffer, recv[1].buffer, recv[2].buffer};
        struct view joined = dqkv;
        if (z->rope_before)
            joined = view_all(e, emit_activation(e, "d_rotated", z->n, z->width));
        join_qkv(e, &parts, joined, z->n, z->ranks);
        if (z->rope_before) {
            struct work work = {
                .kind = WORK_ROPE_BACKWARD,
                .rope = {z->n, z->heads + z->kv_heads, z->dim, z->width}
            };
            emit_op(e, e->compute, &work, (struct view[]){joined, positions}, 2, &dqkv, 1);
        }
        return;
    }
    bool reduce = z->kv_sent != z->kv_heads;
    struct qkv parts = {
        .q = unpack_part(e, z, recv[0], z->q_width / z->ranks, false),
        .k = unpack_part(e, z, recv[1], z->kv_width / z->ranks, reduce),
        .v = unpack_part(e, z, recv[2], z->kv_width / z->ranks, reduce),
    };
    if (z->rope_before) {
        parts.q = rotate(e, view_all(e, parts.q), positions, z->n, z->heads, true);
        parts.k = rotate(e, view_all(e, parts.k), positions, z->n, z->kv_heads, true);
    }
    if (has_head_norms(e))
        head_norms_backward(e, layer, &parts, saved, z->n);
    join_qkv(e, &parts, dqkv, z->n, 1);
}

static void sequence_backward(struct emit *e, uint32_t layer, const struct shape *z,
                              struct view d_out, struct view dqkv,
                              const struct attention_saved *saved)
{
    bool sync = e->choices->profile->sync_backward;
    int64_t q = z->q_width / z->ranks, kv = z->kv_width / z->ranks;
    struct view packed = pack_one(e, d_out, z->n, z->ranks, q);
    buffer_id d_o = scatter_heads(e, z, packed, "d_o", CATEGORY_ACTIVATION, q, sync);
    struct qkv grads = attention_core_backward(e, saved, view_all(e, d_o), z->s,
                                               z->heads / z->ranks, z->kv_sent / z->ranks);
    if (z->rope_after) {
        struct view positions = view_all(e, e->positions_gathered);
        grads.q = rotate(e, view_all(e, grads.q), positions, z->s, z->heads / z->ranks, true);
        grads.k = rotate(e, view_all(e, grads.k), positions, z->s, z->kv_sent / z->ranks, true);
    }
    struct view recv[3] = {
        gather_heads(e, z, view_all(e, grads.q), q, sync),
        gather_heads(e, z, view_all(e, grads.k), kv, sync),
        gather_heads(e, z, view_all(e, grads.v), kv, sync),
    };
    unpack_parts(e, layer, z, recv, dqkv, saved);
}

void ulysses_attention_forward(struct emit *e, uint32_t layer, buffer_id x, buffer_id out)
{
    struct shape z = shape_of(e);
    buffer_id qkv = project_qkv(e, layer, x);
    e->tags.region = REGION_ATTENTION;
    for (int64_t i = 0; i < e->choices->micro_batch; i++)
        sequence_forward(e, layer, &z, view_rows(qkv, i * z.n, z.n, z.width),
                         view_rows(out, i * z.n, z.n, z.q_width), &e->saved[layer].attention[i]);
}

void ulysses_attention_backward(struct emit *e, uint32_t layer, buffer_id d_out, buffer_id dx)
{
    struct shape z = shape_of(e);
    e->tags.region = REGION_ATTENTION;
    buffer_id dqkv = emit_activation(e, "dqkv", e->rows, z.width);
    for (int64_t i = 0; i < e->choices->micro_batch; i++)
        sequence_backward(e, layer, &z, view_rows(d_out, i * z.n, z.n, z.q_width),
                          view_rows(dqkv, i * z.n, z.n, z.width), &e->saved[layer].attention[i]);
    project_qkv_backward(e, layer, dqkv, e->saved[layer].norm1, dx);
}

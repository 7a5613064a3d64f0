/* The ring backward. Keys and values go round again, followed by their gradients: each rank adds its part to a
 * gradient that passes, and the last hop brings the gradient to the rank of its keys. dq is summed in fp32.
 *
 * dk and dv are one tensor, as k and v are. With the profile's switch ring_grad_f32 they are summed in fp32. Otherwise,
 * as in InternEvo's code, they are summed in fp32 within the first window and in the compute dtype from the first outer
 * hop on; a plain ring has outer hops only, so it sums in the compute dtype. If
 * the forward gathered keys and values, the backward gathers them again; their gradients either go round as well
 * (PyTorch), or are reduce-scattered (TransformerEngine's all-gather, Llama 3). */
#include "schedule/attention/ring.h"
#include "schedule/choices/profile.h"

struct sums {
    struct view dq;  /* fp32 */
    struct view dkv; /* of the block in hand, as its ranks so far have summed it */
    struct view all; /* reduce-scattered: of all blocks, nearest first, this rank's part */
};

static struct view new_tensor(struct emit *e, const char *stem, enum category category,
                              int64_t rows, int64_t cols)
{
    return view_all(e, emit_buffer(e, stem, category, e->choices->dtype, rows, cols));
}

/* Emits sum += part, in place. */
static void add_to(struct emit *e, struct view sum, struct view part)
{
    emit_add(e, sum, part, sum);
}

struct qkv ring_tile_backward(struct emit *e, const struct ring_shape *z,
                              const struct ring_tile *tile, const struct attention_saved *saved,
                              struct view kv, struct view d_o, struct view dq, struct view dkv)
{
    int64_t q_begin = tile->begin * z->q_width, q_count = tile->rows * z->q_width;
    int64_t v_begin = z->rows * z->kv_width, kv_count = tile->keys * z->kv_width;
    struct work work = ring_tile_work(e, WORK_ATTENTION_BACKWARD, z, tile);
    struct qkv in = {view_part(saved->q, q_begin, q_count), view_part(kv, 0, kv_count),
                     view_part(kv, v_begin, kv_count)};
    struct qkv grads = {view_part(dq, q_begin, q_count), view_part(dkv, 0, kv_count),
                        view_part(dkv, v_begin, kv_count)};
    attention_tile_backward(
        e, work, &in, view_part(saved->o, q_begin, q_count),
        view_part(view_all(e, saved->lse), tile->begin * z->heads, tile->rows * z->heads),
        view_part(d_o, q_begin, q_count), &grads);
    return grads;
}

/* Adds dq of a step, in place among all rows, to the sum; the first one is the sum. */
static void add_dq(struct emit *e, const struct ring_shape *z, const struct ring_tile *tile,
                   struct view dq, struct sums *sums, bool first)
{
    int64_t begin = tile->begin * z->q_width, count = tile->rows * z->q_width;
    if (!first)
        add_to(e, view_part(sums->dq, begin, count), view_part(dq, begin, count));
}

static void step_backward(struct emit *e, const struct ring_shape *z, uint32_t outer,
                          uint32_t inner, const struct attention_saved *saved, struct view kv,
                          struct view d_o, struct sums *sums)
{
    struct ring_tile tile[2];
    uint32_t tiles = ring_tiles(e, z, outer, inner, tile);
    if (tiles == 0)
        return;
    int64_t v_begin = z->rows * z->kv_width;
    bool first = outer + inner == 0, reduced = sums->all.count > 0;
    struct view dq = new_tensor(e, "dq_block", CATEGORY_ACTIVATION, z->rows, z->q_width);
    struct view dkv = reduced ? view_part(sums->all, outer * 2 * v_begin, 2 * v_begin)
                              : new_tensor(e, "dkv_block", CATEGORY_KV, 2 * z->rows, z->kv_width);
    struct qkv grads[2];
    for (uint32_t i = 0; i < tiles; i++) {
        e->guard = tile[i].guard;
        grads[i] = ring_tile_backward(e, z, &tile[i], saved, kv, d_o, dq, dkv);
        add_dq(e, z, &tile[i], dq, sums, first);
    }
    /* after all tiles: an op that a guard leaves out still waits for the block's dkv */
    for (uint32_t i = 0; i < tiles && !first && !reduced; i++) {
        e->guard = tile[i].guard;
        add_to(e, view_part(sums->dkv, 0, (int64_t)grads[i].k.count), grads[i].k);
        add_to(e, view_part(sums->dkv, v_begin, (int64_t)grads[i].v.count), grads[i].v);
    }
    e->guard = IR_NONE16;
    if (!first)
        return;
    bool wide = e->choices->profile->ring_grad_f32 || e->group.inner.size > 1;
    sums->dq = ring_cast(e, dq, DTYPE_F32, "dq_sum");
    if (!reduced)
        sums->dkv = ring_cast(e, dkv, wide ? DTYPE_F32 : (enum dtype)e->choices->dtype, "dkv_sum");
}

/* Returns a buffer of zeros for this rank's contributions to the gradients of the gathered keys and values of all
 * ranks; they stay zero where its queries attend to nothing. */
static struct view all_gradients(struct emit *e, const struct ring_shape *z)
{
    struct view all =
        new_tensor(e, "dkv_all", CATEGORY_KV, e->group.outer.size * 2 * z->rows, z->kv_width);
    struct work fill = {.kind = WORK_FILL, .elements = {(int64_t)all.count}};
    emit_op(e, e->stream.compute, &fill, NULL, 0, &all, 1);
    return all;
}

static struct view reduce_gradients(struct emit *e, const struct ring_shape *z, struct view all)
{
    int64_t bytes = (int64_t)(all.count * dtype_bytes(e->choices->dtype));
    struct work work = {.kind = WORK_REDUCE_SCATTER,
                        .collective = {e->group.outer.group, bytes, ALGORITHM_AUTO, 0, 1}};
    struct view own = new_tensor(e, "dkv", CATEGORY_KV, 2 * z->rows, z->kv_width);
    emit_op(e, e->group.outer.dkv, &work, &all, 1, &own, 1);
    return own;
}

struct qkv ring_backward(struct emit *e, const struct ring_shape *z,
                         const struct attention_saved *saved, struct view d_o)
{
    const struct choices *c = e->choices;
    enum dtype dtype = (enum dtype)c->dtype;
    struct sums sums = {view_none(), view_none(), view_none()};
    struct ring_blocks blocks = {.first = saved->k};
    blocks.first.count *= 2; /* v lies after k */
    bool reduced = c->rotation == ROTATE_ALL_GATHER && !c->profile->gathered_shift;
    if (reduced)
        sums.all = all_gradients(e, z);

    for (uint32_t outer = 0, next_outer; outer < e->group.outer.size; outer = next_outer) {
        next_outer = ring_next_outer(e, z, outer);
        for (uint32_t inner = 0, next; inner < e->group.inner.size; inner = next) {
            next = ring_next_inner(e, z, inner);
            ring_step(e, z, outer, inner, &blocks);
            step_backward(e, z, outer, inner, saved, blocks.kv, d_o, &sums);
            if (e->group.inner.size > 1)
                sums.dkv = ring_pass(e, &e->group.inner, next - inner, e->group.inner.dkv, sums.dkv,
                                     "dkv");
        }
        if (reduced)
            continue;
        if (!c->profile->ring_grad_f32)
            sums.dkv = ring_cast(e, sums.dkv, dtype, "dkv_sum");
        if (e->group.outer.size > 1)
            sums.dkv = ring_pass(e, &e->group.outer, next_outer - outer, e->group.outer.dkv,
                                 sums.dkv, "dkv");
    }
    if (reduced)
        sums.dkv = reduce_gradients(e, z, sums.all);
    e->tags.step = IR_NONE16;
    struct view dq = ring_cast(e, sums.dq, dtype, "dq");
    struct view dkv = ring_cast(e, sums.dkv, dtype, "dkv");
    int64_t half = z->rows * z->kv_width;
    return (struct qkv){dq, view_part(dkv, 0, half), view_part(dkv, half, half)};
}

/* The core of attention in 8 bits (--attention-products fp8), as TransformerEngine's fp8_dpa has it
 * (pytorch/attention/dot_product_attention: FusedAttnFunc in backends.py, combine_and_quantize() in utils.py).
 *
 * With one scale for a whole tensor, q, k and v are copied one after another and cast together, with one scale for all
 * three. The forward and the backward read these three copies: q | k | v.
 *
 * In MXFP8 each of the three is cast along columns and along rows in one pass, which makes a copy and a transposed
 * copy. The forward reads q, k and the transposed copy of v; the backward reads q, k, v and the transposed copies of q
 * and k. The copies lie in one buffer, and their scales in another, in an order in which each pass reads its scales as
 * one run:
 *
 *     v transposed | q | k | v | q transposed | k transposed
 *     forward: the first three; backward: all but the first
 *
 * All copies are kept for the backward; the 16-bit q, k and v are not. The output, and the gradients of q, k and v, are
 * in 16 bits. That is what TransformerEngine does in MXFP8 and with a scale found from the tensor itself; with scales
 * of earlier steps (fp8-delayed) it writes them in 8 bits and casts them back, which is not modelled. */
#include "schedule/attention/narrow_core.h"

#include "schedule/choices/products.h"

#include <assert.h>

/* The sizes of an operand of the core: its rows and columns, and the numbers of scales of its copy and of its
 * transposed copy (turned_scales). */
struct core_operand_shape {
    int64_t rows, cols, scales, turned_scales;
};

static struct core_operand_shape core_operand_shape_of(const struct emit *e, int64_t rows,
                                                       int64_t cols)
{
    const enum scaling scaling = (enum scaling)products_recipe(e->choices)->scaling;
    return (struct core_operand_shape){rows, cols, scaling_scale_count(scaling, rows, cols),
                                       scaling_scale_count(scaling, cols, rows)};
}

static int64_t elements(const struct core_operand_shape *x)
{
    return x->rows * x->cols;
}

/* The operands q, k and v of a core. */
struct core_operand_shapes {
    struct core_operand_shape q, k, v;
};

static struct core_operand_shapes core_operand_shapes_of_work(const struct emit *e,
                                                              const struct work *work)
{
    return (struct core_operand_shapes){
        core_operand_shape_of(e, work->attention.q, work->attention.heads * work->attention.dim),
        core_operand_shape_of(e, work->attention.kv,
                              work->attention.kv_heads * work->attention.dim),
        core_operand_shape_of(e, work->attention.kv,
                              work->attention.kv_heads * work_attention_vdim(work)),
    };
}

static bool core_is_mxfp8(const struct emit *e)
{
    return products_recipe(e->choices)->scaling == SCALING_MX;
}

/* Emits one pass that casts x. In MXFP8 write has four views: copy, scales, transposed copy, scales; else two. */
static void emit_cast_to_narrow_copies(struct emit *e, struct view x,
                                       const struct core_operand_shape *size,
                                       const struct view *write)
{
    const struct products_recipe *recipe = products_recipe(e->choices);
    const struct work work = {.kind = WORK_QUANTISE,
                              .quantise = {.rows = size->rows,
                                           .cols = size->cols,
                                           .scaling = recipe->scaling,
                                           .both = core_is_mxfp8(e),
                                           .amax = recipe->has_amax_pass}};
    emit_op(e, e->stream.compute, &work, &x, 1, write, core_is_mxfp8(e) ? 4 : 2);
}

static struct view new_buffer_of_narrow_copies(struct emit *e, const char *stem, enum dtype dtype,
                                               int64_t count)
{
    return emit_tensor(e, stem, CATEGORY_ACTIVATION, dtype, count, 0);
}

static struct view new_scales(struct emit *e, int64_t count)
{
    const enum scaling scaling = (enum scaling)products_recipe(e->choices)->scaling;
    return new_buffer_of_narrow_copies(e, "scales", scaling_scale_dtype(scaling), count);
}

/* The copies of q, k and v, as views of their buffers. Transposed copies are called turned; turned_qk: those of q and
 * k. Without MXFP8 there are none, and turned_v is the copy v. forward_scales, backward_scales: the scales that each
 * pass reads. */
struct core_narrow_copies {
    struct view q, k, v, turned_v, turned_qk;
    struct view forward_scales, backward_scales;
};

static struct core_narrow_copies views_of_core_narrow_copies(const struct emit *e,
                                                             const struct core_operand_shapes *x,
                                                             const struct attention_saved *saved)
{
    const int64_t q = elements(&x->q), k = elements(&x->k), v = elements(&x->v);
    const struct view data = saved->narrow, scales = saved->narrow_scales;
    if (!core_is_mxfp8(e)) {
        const struct view of_v = view_slice(data, q + k, v);
        return (struct core_narrow_copies){.q = view_slice(data, 0, q),
                                           .k = view_slice(data, q, k),
                                           .v = of_v,
                                           .turned_v = of_v,
                                           .forward_scales = scales,
                                           .backward_scales = scales};
    }
    const int64_t of_turned_v = x->v.turned_scales, of_q = x->q.scales, of_k = x->k.scales,
                  others = of_q + of_k + x->v.scales + x->q.turned_scales + x->k.turned_scales;
    return (struct core_narrow_copies){.q = view_slice(data, v, q),
                                       .k = view_slice(data, v + q, k),
                                       .v = view_slice(data, v + q + k, v),
                                       .turned_v = view_slice(data, 0, v),
                                       .turned_qk = view_slice(data, 2 * v + q + k, q + k),
                                       .forward_scales =
                                           view_slice(scales, 0, of_turned_v + of_q + of_k),
                                       .backward_scales = view_slice(scales, of_turned_v, others)};
}

/* Casts q, k and v to MXFP8, each in a pass that makes both copies. */
static void cast_qkv_to_mxfp8(struct emit *e, const struct core_operand_shapes *x,
                              struct attention_saved *saved)
{
    const int64_t q = elements(&x->q), k = elements(&x->k), v = elements(&x->v);
    saved->narrow = new_buffer_of_narrow_copies(e, "qkv_narrow", DTYPE_E4M3, 2 * (q + k + v));
    saved->narrow_scales =
        new_scales(e, x->q.scales + x->k.scales + x->v.scales + x->q.turned_scales +
                          x->k.turned_scales + x->v.turned_scales);
    const struct core_narrow_copies to = views_of_core_narrow_copies(e, x, saved);
    const struct view scales = to.backward_scales, turned_v_scales = to.forward_scales;
    const int64_t of_q = x->q.scales, of_k = x->k.scales, of_v = x->v.scales,
                  of_turned_q = x->q.turned_scales;
    emit_cast_to_narrow_copies(
        e, saved->qkv.q, &x->q,
        (struct view[]){to.q, view_slice(scales, 0, of_q), view_slice(to.turned_qk, 0, q),
                        view_slice(scales, of_q + of_k + of_v, of_turned_q)});
    emit_cast_to_narrow_copies(
        e, saved->qkv.k, &x->k,
        (struct view[]){to.k, view_slice(scales, of_q, of_k), view_slice(to.turned_qk, q, k),
                        view_slice(scales, of_q + of_k + of_v + of_turned_q, x->k.turned_scales)});
    emit_cast_to_narrow_copies(e, saved->qkv.v, &x->v,
                               (struct view[]){to.v, view_slice(scales, of_q + of_k, of_v),
                                               to.turned_v,
                                               view_slice(turned_v_scales, 0, x->v.turned_scales)});
}

/* Copies q, k and v one after another (torch.cat), and casts them with one scale. */
static void cast_qkv_with_one_scale(struct emit *e, const struct core_operand_shapes *x,
                                    struct attention_saved *saved)
{
    const int64_t q = elements(&x->q), k = elements(&x->k), v = elements(&x->v);
    const int64_t rows = x->q.rows, all = q + k + v;
    assert(all % rows == 0 && x->k.rows == rows && x->v.rows == rows);
    const struct core_operand_shape together = {rows, all / rows, 1, 1};
    struct view joined =
        emit_compute_tensor(e, "qkv_joined", CATEGORY_ACTIVATION, rows, all / rows);
    const struct work join = {.kind = WORK_UNPACK, .pack = {1, 1, {q, k, v}}};
    emit_op(e, e->stream.compute, &join, (struct view[]){saved->qkv.q, saved->qkv.k, saved->qkv.v},
            3, &joined, 1);
    saved->narrow = new_buffer_of_narrow_copies(e, "qkv_narrow", DTYPE_E4M3, all);
    saved->narrow_scales = new_scales(e, 1);
    emit_cast_to_narrow_copies(e, joined, &together,
                               (struct view[]){saved->narrow, saved->narrow_scales});
}

void narrow_core_forward(struct emit *e, struct work work, struct attention_saved *saved,
                         struct view o)
{
    const struct core_operand_shapes x = core_operand_shapes_of_work(e, &work);
    (core_is_mxfp8(e) ? cast_qkv_to_mxfp8 : cast_qkv_with_one_scale)(e, &x, saved);
    const struct core_narrow_copies copies = views_of_core_narrow_copies(e, &x, saved);
    work.attention.scaling = products_recipe(e->choices)->scaling;
    emit_op(e, e->stream.tile, &work,
            (struct view[]){copies.q, copies.k, copies.turned_v, copies.forward_scales}, 4,
            (struct view[]){o, saved->lse}, 2);
}

void narrow_core_backward(struct emit *e, struct work work, const struct attention_saved *saved,
                          struct view d_o, const struct qkv *grads)
{
    const struct core_operand_shapes x = core_operand_shapes_of_work(e, &work);
    const struct core_narrow_copies copies = views_of_core_narrow_copies(e, &x, saved);
    const struct core_operand_shape size = core_operand_shape_of(
        e, work.attention.q, work.attention.heads * work_attention_vdim(&work));
    const enum dtype dtype = (enum dtype)products_recipe(e->choices)->gradient_dtype;
    const int64_t turned_scales = core_is_mxfp8(e) ? size.turned_scales : 0;
    struct view narrow = new_buffer_of_narrow_copies(e, "d_o_narrow", dtype, elements(&size)),
                turned = {0}, scales = new_scales(e, size.scales + turned_scales);
    if (core_is_mxfp8(e))
        turned = new_buffer_of_narrow_copies(e, "d_o_turned", dtype, elements(&size));
    emit_cast_to_narrow_copies(e, d_o, &size,
                               (struct view[]){narrow, view_slice(scales, 0, size.scales), turned,
                                               view_slice(scales, size.scales, turned_scales)});
    work.attention.scaling = products_recipe(e->choices)->scaling;
    struct view write[4] = {grads->q, grads->k, grads->v};
    const int64_t workspace =
        work_workspace_bytes(products_core_impl(e->choices), e->choices->sm, &work);
    if (workspace > 0)
        write[3] = emit_tensor(e, "workspace", CATEGORY_WORKSPACE, DTYPE_U8, workspace, 0);
    emit_op(e, e->stream.compute, &work,
            (struct view[]){copies.q, copies.k, copies.v, saved->o, saved->lse, narrow,
                            copies.backward_scales, scales, copies.turned_qk, turned, d_o},
            core_is_mxfp8(e) ? 11 : 8, write, workspace > 0 ? 4 : 3);
}

/* The 16-bit copies of fp32 parameters that torch.autocast makes for products.
 *
 * A product casts the weight that it reads (aten/src/ATen/autocast_mode.cpp, cached_cast()). Autocast's cache holds the
 * copy until the outermost region of autocast ends; that is after the loss, because Trainer's and torchtitan's models
 * compute the loss inside it. Autograd holds the copy until the product's backward. Checkpointing saves nothing of a
 * layer, so the copies of a recomputed layer are freed when the region ends. The layer's second forward enters autocast
 * anew and makes other copies, which live until the layer's backward has read them. Each micro-batch is a region of its
 * own. The embedding's look-up reads the fp32 parameters. tests/scripts/autocast_copies.py shows all this with PyTorch
 * on a processor.
 *
 * Here a bundle is cast as a whole, before the first op of a forward, or of a recomputed layer, that reads it. */
#include "schedule/weights/bundles.h"
#include "schedule/weights/weights.h"

#include <stdlib.h>
#include <string.h>

/* The copies of a bundle's parameters that autocast makes in one micro-batch; IR_NONE: not made yet. */
struct weight_copies {
    bool is_read_by_recompute; /* an op that computes a layer again reads the bundle */
    buffer_id forward_copy, backward_copy;
};

struct autocast {
    struct emit *e;
    struct op_list new_list;
    uint32_t *bundle_of;   /* [buffer] the bundle whose parameters ops name by it; IR_NONE: none */
    uint32_t buffer_count; /* length of bundle_of; later buffers have no bundle */
    struct weight_copies *copies; /* [bundle][micro-batch] */
    /* [micro-batch] the last op of the micro-batch's region of autocast; IR_NONE: none */
    uint32_t *last_op_of_autocast_region;
    uint32_t micro_batch_count;
};

static uint32_t micro_batch_of_op(const struct autocast *a, uint32_t op)
{
    const uint32_t micro = a->e->ir->op.micro[op];
    return micro < a->micro_batch_count ? micro : 0;
}

static uint32_t bundle_of_operand(const struct autocast *a, uint32_t op, uint32_t k)
{
    const uint32_t buffer = ir_touched_buffer(a->e->ir, op, k);
    return buffer < a->buffer_count ? a->bundle_of[buffer] : IR_NONE;
}

static struct weight_copies *weight_copies_of(const struct autocast *a, uint32_t bundle,
                                              uint32_t op)
{
    return &a->copies[bundle * a->micro_batch_count + micro_batch_of_op(a, op)];
}

/* True if the op runs under torch.autocast: it belongs to the forward, or to a loss in pieces whose forward computes
 * the gradients as well (any but LOSS_CUT_CROSS_ENTROPY). */
static bool runs_under_autocast(const struct autocast *a, uint32_t op)
{
    const struct choices *c = a->e->choices;
    const struct ir *ir = a->e->ir;
    const bool pieces =
        c->loss_chunks > 1 && c->loss != LOSS_CUT_CROSS_ENTROPY && ir->op.region[op] == REGION_LOSS;
    return pieces || ir->op.phase[op] == PHASE_FORWARD;
}

static void find_autocast_regions(struct autocast *a, const struct op_list *list)
{
    const struct ir *ir = a->e->ir;
    for (uint32_t i = 0; i < list->count; i++) {
        const uint32_t op = list->op[i];
        if (runs_under_autocast(a, op))
            a->last_op_of_autocast_region[micro_batch_of_op(a, op)] = op;
        for (uint32_t k = 0; k < ir->op.read_count[op]; k++) {
            const uint32_t bundle = bundle_of_operand(a, op, k);
            if (bundle != IR_NONE && ir->op.phase[op] == PHASE_RECOMPUTE)
                weight_copies_of(a, bundle, op)->is_read_by_recompute = true;
        }
    }
}

/* Emits the cast of a bundle's parameters before op `op`, and returns the copy. */
static buffer_id emit_bundle_cast(struct autocast *a, uint32_t bundle, uint32_t op)
{
    struct emit *e = a->e;
    const struct weight_bundle_state *b = &e->weights.bundle[bundle];
    const buffer_id copy = ir_add_buffer_like(e->ir, b->param);
    weights_set_op_labels(e, (enum phase)e->ir->op.phase[op], REGION_WEIGHT_COLLECTIVES, op);
    emit_cast(e, view_whole(e, b->param_shard), view_whole(e, copy));
    op_list_push(&a->new_list, e->last_compute);
    return copy;
}

/* Makes an op read the 16-bit copies of parameters; the embedding's look-up reads the fp32 parameters instead. Emits
 * the casts that make copies which do not exist yet, before the op. */
static void redirect_operands(struct autocast *a, uint32_t op)
{
    struct ir *ir = a->e->ir;
    for (uint32_t k = 0; k < ir->op.read_count[op]; k++) {
        const uint32_t bundle = bundle_of_operand(a, op, k);
        if (bundle == IR_NONE)
            continue;
        if (ir->op.kind[op] == WORK_EMBEDDING) {
            ir_redirect_operand(ir, op, k, a->e->weights.bundle[bundle].param_shard);
            continue;
        }
        struct weight_copies *copies = weight_copies_of(a, bundle, op);
        const bool again = copies->is_read_by_recompute && !runs_under_autocast(a, op);
        buffer_id *copy = again ? &copies->backward_copy : &copies->forward_copy;
        if (copy->i == IR_NONE) {
            *copy = emit_bundle_cast(a, bundle, op);
            const uint32_t end = a->last_op_of_autocast_region[micro_batch_of_op(a, op)];
            if (!again && end != IR_NONE)
                emit_extend_lifetime(a->e, *copy, (op_id){end});
        }
        ir_redirect_operand(ir, op, k, *copy);
    }
}

void pass_autocast(struct emit *e, struct op_list *list)
{
    if (!e->weights.uses_autocast)
        return;
    const struct op_tags before = e->op_tags;
    struct autocast a = {
        .e = e, .buffer_count = e->ir->buffer.count, .micro_batch_count = e->choices->accumulation};
    const size_t copies = (size_t)e->weights.bundle_count * a.micro_batch_count;
    a.bundle_of = heap_alloc(a.buffer_count, sizeof *a.bundle_of);
    memset(a.bundle_of, 0xff, a.buffer_count * sizeof *a.bundle_of);
    a.last_op_of_autocast_region =
        heap_alloc(a.micro_batch_count, sizeof *a.last_op_of_autocast_region);
    memset(a.last_op_of_autocast_region, 0xff,
           a.micro_batch_count * sizeof *a.last_op_of_autocast_region);
    a.copies = heap_alloc(copies, sizeof *a.copies);
    for (size_t i = 0; i < copies; i++)
        a.copies[i] = (struct weight_copies){false, {IR_NONE}, {IR_NONE}};
    for (uint32_t b = 0; b < e->weights.bundle_count; b++)
        a.bundle_of[e->weights.bundle[b].param.i] = b;
    find_autocast_regions(&a, list);
    for (uint32_t i = 0; i < list->count; i++) {
        redirect_operands(&a, list->op[i]);
        op_list_push(&a.new_list, (op_id){list->op[i]});
    }
    free(a.bundle_of);
    free(a.last_op_of_autocast_region);
    free(a.copies);
    op_list_release(list);
    *list = a.new_list;
    e->op_tags = before;
}

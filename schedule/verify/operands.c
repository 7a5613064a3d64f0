/* The rule operand-size: how many operands each kind has, and of which sizes (models/work_operands.h), checked per
 * shape and then per op. */
#include "schedule/verify/rules.h"

#include "models/frozen_storage.h"

#include <inttypes.h>
#include <stdlib.h>

static uint32_t comm_group_rank_count(const struct ir *ir, const struct work *work)
{
    int64_t group = work_comm_group(work);
    return group >= 0 ? group_rank_count(&ir->mesh, &ir->group[group]) : 1;
}

/* Returns the fault of a collective that distributes equal pieces of its bytes; NULL if it has none. */
static const char *fault_of_equal_pieces(struct verifier *v, const struct work *work,
                                         uint32_t members)
{
    int64_t bytes = work_payload_bytes(work);
    if (bytes % ((int64_t)members * (int64_t)dtype_bytes(work->in)) == 0)
        return NULL;
    return arena_printf(&v->arena,
                        "bytes=%" PRId64 " do not cut into %" PRIu32 " equal pieces of %s", bytes,
                        members, dtype_name(work->in));
}

/* Returns the fault of an operator of a recorded program that costs what a product or attention does; NULL if it has
 * none. Both need m, n and k, and attention needs heads too. */
static const char *fault_of_recorded_operator(struct verifier *v, const struct work *work)
{
    const struct work as = work_cost_equivalent(work);
    const bool attention = as.kind == WORK_ATTENTION || as.kind == WORK_ATTENTION_BACKWARD;
    if (as.kind == WORK_OPAQUE)
        return NULL;
    if (work->opaque.m < 1 || work->opaque.n < 1 || work->opaque.k < 1)
        return attention ? "attention needs m, n and k: queries, keys and the width of a head"
                         : "a product needs m, n and k";
    if (as.kind == WORK_MATMUL)
        return work->opaque.scaling != SCALING_NONE && work->opaque.groups > 1
                   ? "a product in groups has no scales"
                   : NULL;
    if (work->opaque.kv_heads < 1 || work->opaque.heads < 1 ||
        work->opaque.heads % work->opaque.kv_heads != 0)
        return arena_printf(&v->arena, "heads=%" PRId64 " is not a multiple of kv_heads=%" PRId64,
                            work->opaque.heads, work->opaque.kv_heads);
    return NULL;
}

/* Returns the fault of a product that takes one of `groups` matrices, the rank's own in the group `part`; NULL: there
 * is none. */
static const char *fault_of_product_part(struct verifier *v, const struct work *work)
{
    const int64_t part = work_sharding_group(work);
    if (part < 0)
        return NULL;
    const uint32_t ranks = group_rank_count(&v->ir->mesh, &v->ir->group[part]);
    if (work_weight_matrix_count(work) != (int64_t)ranks)
        return arena_printf(&v->arena,
                            "groups=%" PRId64
                            " is not the number of ranks in part=%s, which is %" PRIu32,
                            work->matmul.groups, v->ir->group[part].name, ranks);
    if (work->matmul.route > 0 || work->matmul.epilogue == EPILOGUE_BIAS)
        return "a product by the rank's own matrix (part) has no routing and adds no bias";
    if (work->matmul.scaling != SCALING_NONE)
        return "a product by the rank's own matrix (part) has no scales";
    return NULL;
}

/* Returns the fault of work on attention sinks; NULL if it has none. There must be a sink for each head of all ranks in
 * the group `part` or, without that group, of one rank. */
static const char *fault_of_sinks(struct verifier *v, const struct work *work)
{
    const int64_t part = work_sharding_group(work);
    const int64_t ranks =
        part < 0 ? 1 : (int64_t)group_rank_count(&v->ir->mesh, &v->ir->group[part]);
    if (work->sink.heads * ranks == work->sink.sinks)
        return NULL;
    return arena_printf(&v->arena,
                        "sinks=%" PRId64 " is not heads=%" PRId64 " times the %" PRId64
                        " ranks that share the heads",
                        work->sink.sinks, work->sink.heads, ranks);
}

static const char *fault_of_work_shape(struct verifier *v, const struct work *work)
{
    const struct ir *ir = v->ir;
    const struct work_kind_info *info = work_kind_info(work->kind);
    for (uint32_t i = 0; i < info->param_count; i++) {
        const struct work_param *p = &info->param[i];
        if (p->is_value_group_id || p->is_signed)
            continue;
        bool may_be_zero = p->optional || p->value_names;
        if (work->p[i] < (may_be_zero ? 0 : 1) || (p->value_names && work->p[i] >= p->value_count))
            return arena_printf(&v->arena, "%s=%" PRId64 " cannot be", p->name, work->p[i]);
    }
    uint32_t members = comm_group_rank_count(ir, work);
    switch ((enum work_kind)work->kind) {
    case WORK_MATMUL:
        if (work->matmul.turned &&
            (work->matmul.form != MATMUL_TN || work_row_group_count(work) == 1 ||
             work->matmul.scaling == SCALING_NONE))
            return "turned=1 is of a product with form=tn in groups with scales";
        if (work->matmul.scaling > SCALING_TENSOR && work->matmul.form != MATMUL_NT &&
            !work->matmul.turned)
            return "scales along k need form=nt, in which both operands hold k innermost";
        if (work->matmul.form == MATMUL_TN && work->matmul.groups > 1 &&
            work->matmul.epilogue == EPILOGUE_BIAS)
            return "a gradient in groups (form=tn) adds no bias";
        return fault_of_product_part(v, work);
    case WORK_QUANTISE:
        if (work_row_group_count(work) > 1 && (work->quantise.finds || work->quantise.given))
            return "finds=1 and given=1 are of one largest element, and each group has its own";
        if (work->quantise.scaling == SCALING_NONE)
            return "scaling=none leaves numbers as they are";
        if (work->quantise.turned && work->quantise.both)
            return "turned=1 says which of both copies is made";
        if (work->quantise.down && work->quantise.scaling != SCALING_MX)
            return "down=1 rounds exponents, which only scaling=mx has";
        if ((work->quantise.finds || work->quantise.given) &&
            work->quantise.scaling != SCALING_TENSOR)
            return "finds=1 and given=1 are of one largest element, which needs scaling=tensor";
        if (work->quantise.finds && (work->quantise.turned || work->quantise.both))
            return "finds=1 makes no copy that could be transposed";
        if (work->quantise.given && (work->quantise.finds || work->quantise.both))
            return "given=1 makes one copy by the largest element that another op has found";
        return NULL;
    case WORK_DEQUANTISE:
        return work->dequantise.storage == FROZEN_STORAGE_16BIT
                   ? "storage=16bit has neither codes nor scales"
                   : NULL;
    case WORK_ATTENTION:
    case WORK_ATTENTION_BACKWARD:
        if (work->attention.heads % work->attention.kv_heads != 0)
            return arena_printf(&v->arena,
                                "heads=%" PRId64 " is not a multiple of kv_heads=%" PRId64,
                                work->attention.heads, work->attention.kv_heads);
        if ((work->attention.mask == MASK_WINDOW || work->attention.mask == MASK_CHUNKS) &&
            work->attention.window == 0)
            return "mask=window and mask=chunks need a window";
        if (work->attention.mask < MASK_WINDOW && work->attention.window > 0)
            return "mask=full and mask=causal have no window";
        if (work->attention.scaling != SCALING_NONE && work->attention.scaling != SCALING_TENSOR &&
            work->attention.scaling != SCALING_MX)
            return "attention multiplies in 8 bits with scaling=tensor or scaling=mx";
        if (work->attention.scaling != SCALING_NONE && work->attention.mask > MASK_WINDOW)
            return "attention in 8 bits has no kernels for documents, chunks or tiles of a plan";
        if (work->attention.scaling != SCALING_NONE && work->kind == WORK_ATTENTION_BACKWARD &&
            work->attention.delta)
            return "attention in 8 bits reads O and makes the sums of its rows (delta=1) itself";
        if (work->attention.scaling == SCALING_MX &&
            (work->attention.dim % 32 != 0 || work_attention_vdim(work) % 32 != 0))
            return "with scaling=mx 32 columns of a head share a scale: dim and vdim must be "
                   "multiples of 32";
        return NULL;
    case WORK_RMSNORM_BACKWARD:
        return work->rmsnorm_backward.bare && work->rmsnorm_backward.accumulate
                   ? "a norm without a weight (bare=1) has no gradient to which accumulate=1 could "
                     "add"
                   : NULL;
    case WORK_SINK:
    case WORK_SINK_BACKWARD:
        return fault_of_sinks(v, work);
    case WORK_OPAQUE:
        return fault_of_recorded_operator(v, work);
    case WORK_ROPE:
    case WORK_ROPE_BACKWARD:
        if (work->rope.rotated > work->rope.dim || work->rope.rotated % 2 != 0)
            return arena_printf(&v->arena, "rotated=%" PRId64 " is odd or above dim=%" PRId64,
                                work->rope.rotated, work->rope.dim);
        if (work->rope.rotated == 0 && work->rope.dim % 2 != 0)
            return arena_printf(&v->arena, "dim=%" PRId64 " is odd", work->rope.dim);
        if (work->rope.stride != 0 && work->rope.stride / work->rope.heads < work->rope.dim)
            return "stride is less than heads*dim";
        return NULL;
    case WORK_ALL_TO_ALL:
    case WORK_REDUCE_SCATTER:
        return fault_of_equal_pieces(v, work, members);
    case WORK_REDUCE:
    case WORK_BROADCAST:
    case WORK_SCATTER:
        if (work->broadcast.root >= members)
            return arena_printf(&v->arena, "root=%" PRId64 " is not in a group of %" PRIu32,
                                work->broadcast.root, members);
        return work->kind == WORK_SCATTER ? fault_of_equal_pieces(v, work, members) : NULL;
    default:
        return NULL;
    }
}

static uint32_t required_operand_count(const struct work_operand *operand, uint32_t count)
{
    while (count > 0 && operand[count - 1].optional)
        count--;
    return count;
}

static void fill_operand_needs_of_work(struct verifier *v, const struct work *work,
                                       struct operand_needs *needs)
{
    needs->fault = fault_of_work_shape(v, work);
    uint32_t members = needs->fault ? 1 : comm_group_rank_count(v->ir, work);
    needs->read_count = work_operands(work, WORK_READS, members, needs->read);
    needs->write_count = work_operands(work, WORK_WRITES, members, needs->write);
    needs->read_count_least = required_operand_count(needs->read, needs->read_count);
    needs->write_count_least = required_operand_count(needs->write, needs->write_count);
}

struct operand_needs *find_operand_needs_of_all_shapes(struct verifier *v)
{
    struct operand_needs *all = heap_zalloc(v->ir->shape_count, sizeof *all);
    for (uint32_t s = 0; s < v->ir->shape_count; s++)
        fill_operand_needs_of_work(v, &v->ir->shape[s], &all[s]);
    return all;
}

static const char *operand_need_text(struct verifier *v, const struct work_operand *need)
{
    if (!need->count_is_bytes)
        return arena_text(&v->arena, need->formula, need->formula_text_size);
    char how = need->formula_text_size == 2 ? need->formula[1] : '=';
    return how == '*' ? "bytes * members" : how == '/' ? "bytes / members" : "bytes";
}

static void check_operand(struct verifier *v, uint32_t op, const char *what, uint32_t k,
                          struct view view, const struct work_operand *need)
{
    const struct ir *ir = v->ir;
    enum dtype dtype = ir->buffer.dtype[view.buffer.i];
    uint64_t have = need->count_is_bytes ? view.count * dtype_bytes(dtype) : view.count;
    if (!need->is_only_usual_count && have != need->count) {
        verify_fail(v, "%s %s %s, %" PRIu64 " %s: %s %" PRIu32 " must have %s = %" PRIu64,
                    op_text(v, op), what[0] == 'r' ? "reads" : "writes", view_text(v, view), have,
                    need->count_is_bytes ? "bytes" : "elements", what, k + 1,
                    operand_need_text(v, need), need->count);
    }
}

static void check_operand_count(struct verifier *v, uint32_t op, const char *what, uint32_t have,
                                uint32_t least, uint32_t most)
{
    const char *range = least == most ? "" : arena_printf(&v->arena, "%" PRIu32 " to ", least);
    verify_fail(v, "%s %s %" PRIu32 " operands: with these parameters it must be %s%" PRIu32,
                op_text(v, op), what, have, range, most);
}

void check_operands(struct verifier *v)
{
    const struct ir *ir = v->ir;
    struct operand_needs *all = find_operand_needs_of_all_shapes(v);
    for (uint32_t op = 0; op < ir->op.count; op++) {
        const struct operand_needs *n = &all[ir->op.shape[op]];
        uint32_t reads = ir->op.read_count[op], writes = ir->op.write_count[op];
        if (n->fault) {
            verify_fail(v, "%s: %s", op_text(v, op), n->fault);
            continue;
        }
        if (reads < n->read_count_least || reads > n->read_count)
            check_operand_count(v, op, "reads", reads, n->read_count_least, n->read_count);
        if (writes < n->write_count_least || writes > n->write_count)
            check_operand_count(v, op, "writes", writes, n->write_count_least, n->write_count);
        for (uint32_t k = 0; k < reads && k < n->read_count; k++)
            check_operand(v, op, "read", k, ir_read_view(ir, op, k), &n->read[k]);
        for (uint32_t k = 0; k < writes && k < n->write_count; k++) {
            const struct view view = ir_write_view(ir, op, k);
            const enum dtype dtype = ir->buffer.dtype[view.buffer.i];
            check_operand(v, op, "write", k, view,
                          work_operand_at(n->write, n->write_count, k, dtype));
        }
    }
    free(all);
    verify_set_what_was_checked_text(v, "%" PRIu32 " ops of %" PRIu32 " shapes", ir->op.count,
                                     ir->shape_count);
}

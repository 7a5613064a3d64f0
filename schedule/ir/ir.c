#include "schedule/ir/ir.h"

#include "models/frozen_storage.h"

#include <assert.h>
#include <string.h>

/* ---- names of enumerators, and which names are valid ---- */

const char *const memory_names[MEMORY_COUNT] = {"hbm", "pinned", "pageable"};

const char *const category_names[CATEGORY_COUNT] = {
    [CATEGORY_PARAMETER] = "parameter",
    [CATEGORY_GRADIENT] = "gradient",
    [CATEGORY_OPTIMIZER] = "optimizer",
    [CATEGORY_ACTIVATION] = "activation",
    [CATEGORY_KV] = "kv",
    [CATEGORY_WORKSPACE] = "workspace",
    [CATEGORY_COMMUNICATION] = "communication",
    [CATEGORY_LOGITS] = "logits",
    [CATEGORY_INPUT] = "input",
};

const char *const category_labels[CATEGORY_COUNT] = {
    [CATEGORY_PARAMETER] = "parameters",
    [CATEGORY_GRADIENT] = "gradients",
    [CATEGORY_OPTIMIZER] = "optimizer states",
    [CATEGORY_ACTIVATION] = "activations",
    [CATEGORY_KV] = "keys and values",
    [CATEGORY_WORKSPACE] = "workspaces of kernels",
    [CATEGORY_COMMUNICATION] = "communication buffers",
    [CATEGORY_LOGITS] = "logits",
    [CATEGORY_INPUT] = "tokens and labels",
};

const char *const phase_names[PHASE_COUNT] = {"forward", "recompute", "backward", "weight_gradient",
                                              "optimizer"};

const char *const region_names[REGION_COUNT] = {
    [REGION_NONE] = "none",
    [REGION_EMBEDDING] = "embedding",
    [REGION_NORM] = "norm",
    [REGION_LINEAR] = "linear",
    [REGION_ATTENTION] = "attention",
    [REGION_LOSS] = "loss",
    [REGION_WEIGHT_COLLECTIVES] = "weights",
    [REGION_OFFLOAD] = "offload",
    [REGION_OPTIMIZER] = "optimizer",
};

const char *const binding_names[BINDING_KIND_COUNT] = {
    [BINDING_NONE] = "none",           [BINDING_PARAM] = "param",     [BINDING_GRAD] = "grad",
    [BINDING_MASTER] = "master",       [BINDING_MOMENT1] = "moment1", [BINDING_MOMENT2] = "moment2",
    [BINDING_SCALES] = "scales",       [BINDING_TOKENS] = "tokens",   [BINDING_LABELS] = "labels",
    [BINDING_POSITIONS] = "positions", [BINDING_LOSS] = "loss",
};

const char *const guard_signs[GUARD_COMPARISON_COUNT] = {"<", ">=", "=="};

bool ir_is_valid_name(const char *name, size_t size)
{
    if (size == 0)
        return false;
    for (size_t i = 0; i < size; i++) {
        char c = name[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        /* digits and the characters - . / : which follow each other in ASCII */
        bool other = c >= '-' && c <= ':';
        if (!letter && !(i > 0 && other))
            return false;
    }
    return true;
}

/* ---- shapes of buffers and views ---- */

uint64_t ir_stored_weight_bytes(const struct ir *ir, const struct binding *binding,
                                uint64_t elements)
{
    const struct bundle *bundle = &ir->bundle[binding->bundle];
    const enum frozen_storage storage = (enum frozen_storage)bundle->storage;
    uint64_t bytes = 0;
    if (binding->kind != BINDING_SCALES)
        return frozen_storage_code_bytes(storage, elements);
    for (uint32_t t = 0; t < bundle->tensor_count; t++) {
        const struct tensor *tensor = &ir->tensor[bundle->tensor_begin + t];
        bytes += frozen_storage_scale_bytes(storage, tensor->rows, tensor->cols);
    }
    return bytes;
}

bool dims_elements(const struct dims *dims, uint64_t *elements)
{
    if (dims->count < 1 || dims->count > 4)
        return false;
    int64_t product = 1;
    for (uint32_t i = 0; i < dims->count; i++) {
        if (dims->size[i] < 1 || dims->size[i] > IR_ELEMENTS_MAX / product)
            return false;
        product *= dims->size[i];
    }
    *elements = (uint64_t)product;
    return true;
}

uint64_t ir_buffer_bytes(const struct ir *ir, buffer_id buffer)
{
    return ir_buffer_elements(ir, buffer) * dtype_bytes((enum dtype)ir->buffer.dtype[buffer.i]);
}

struct view ir_whole_view(const struct ir *ir, buffer_id buffer)
{
    return (struct view){buffer, 0, ir_buffer_elements(ir, buffer)};
}

struct view ir_view_of_operand(const struct ir *ir, uint32_t operand)
{
    if (operand & IR_OPERAND_IS_RANGE_ROW)
        return ir_range_view(ir, operand & ~IR_OPERAND_IS_RANGE_ROW);
    return ir_whole_view(ir, (buffer_id){operand});
}

/* ---- ops, and arrays of ids ---- */

uint32_t ir_role_of_op(const struct ir *ir, uint32_t op)
{
    assert(op < ir->op.count);
    uint32_t r = 0;
    while (r < ir->role_count && op - ir->role[r].op_begin >= ir->role[r].op_count)
        r++;
    assert(r < ir->role_count); /* an op outside all roles would be a fault of ours */
    return r;
}

uint32_t *ir_new_empty_ids(size_t count)
{
    uint32_t *ids = heap_alloc(count, sizeof *ids);
    memset(ids, 0xff, count * sizeof *ids);
    return ids;
}

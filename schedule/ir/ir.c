#include "schedule/ir/ir.h"

#include "schedule/ir/ir_index.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- names ---- */

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

const char *const phase_names[PHASE_COUNT] = {"forward", "recompute", "backward", "optimizer"};

const char *const region_names[REGION_COUNT] = {
    [REGION_NONE] = "none",           [REGION_EMBEDDING] = "embedding",
    [REGION_NORM] = "norm",           [REGION_LINEAR] = "linear",
    [REGION_ATTENTION] = "attention", [REGION_LOSS] = "loss",
    [REGION_WEIGHTS] = "weights",     [REGION_OFFLOAD] = "offload",
    [REGION_OPTIMIZER] = "optimizer",
};

const char *const binding_names[BINDING_KIND_COUNT] = {
    [BINDING_NONE] = "none",     [BINDING_PARAM] = "param",     [BINDING_GRAD] = "grad",
    [BINDING_MASTER] = "master", [BINDING_MOMENT1] = "moment1", [BINDING_MOMENT2] = "moment2",
    [BINDING_TOKENS] = "tokens", [BINDING_LABELS] = "labels",   [BINDING_POSITIONS] = "positions",
    [BINDING_LOSS] = "loss",
};

const char *const guard_signs[GUARD_TEST_COUNT] = {"<", ">=", "=="};

bool ir_name_ok(const char *name, size_t size)
{
    if (size == 0)
        return false;
    for (size_t i = 0; i < size; i++) {
        char c = name[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        bool other = c >= '-' && c <= ':'; /* in ASCII, with '.', '/' and digits between them */
        if (!letter && !(i > 0 && other))
            return false;
    }
    return true;
}

/* ---- shapes of buffers and views ---- */

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

struct view ir_whole(const struct ir *ir, buffer_id buffer)
{
    return (struct view){buffer, 0, ir_buffer_elements(ir, buffer)};
}

struct view ir_view(const struct ir *ir, uint32_t operand)
{
    if (operand & IR_RANGE)
        return ir_range_view(ir, operand & ~IR_RANGE);
    return ir_whole(ir, (buffer_id){operand});
}

/* ---- ops ---- */

uint32_t ir_role_of(const struct ir *ir, uint32_t op)
{
    assert(op < ir->op.count);
    uint32_t r = 0;
    while (r < ir->role_count && op - ir->role[r].op_begin >= ir->role[r].op_count)
        r++;
    assert(r < ir->role_count); /* every op has a role */
    return r;
}

/* ---- finding rows by name ---- */

size_t ir_split_name(const char *name, size_t size, uint32_t *number)
{
    uint64_t value = 0, place = 1;
    size_t stem = size;
    *number = IR_NONE;
    for (size_t i = size; i > 0 && name[i - 1] >= '0' && name[i - 1] <= '9'; i--) {
        value += place * (uint64_t)(name[i - 1] - '0');
        place *= 10;
        if (value >= IR_NONE || size - i >= 10)
            break;
        if (name[i - 1] == '0' && i != size) /* a leading zero: it may yet be an inner one */
            continue;
        *number = (uint32_t)value;
        stem = i - 1;
    }
    return stem;
}

const char *ir_name_of(const struct ir *ir, enum ir_table table, uint32_t row)
{
    switch (table) {
    case IR_GROUP:
        return ir->group[row].name;
    case IR_ROLE:
        return ir->role[row].name;
    case IR_STREAM:
        return ir->stream[row].name;
    case IR_TENSOR:
        return ir->tensor[row].name;
    case IR_BUNDLE:
        return ir->bundle[row].name;
    default:
        return ir->word[row];
    }
}

uint32_t ir_find(const struct ir *ir, enum ir_table table, const char *name, size_t size)
{
    if (!ir->index)
        return IR_NONE;
    const struct id_map *map = &ir->index->name[table];
    for (struct id_probe p = id_map_start(map, hash_text(name, size)); id_map_next(map, &p);) {
        const char *found = ir_name_of(ir, table, p.row);
        if (strlen(found) == size && memcmp(found, name, size) == 0)
            return p.row;
    }
    return IR_NONE;
}

static uint64_t buffer_hash(uint32_t stem, uint32_t number)
{
    return hash_word(0, (uint64_t)stem << 32 | number);
}

buffer_id ir_find_buffer(const struct ir *ir, const char *name, size_t size)
{
    uint32_t number;
    size_t stem_size = ir_split_name(name, size, &number);
    uint32_t stem = ir_find(ir, IR_WORD, name, stem_size);
    if (stem == IR_NONE)
        return (buffer_id){IR_NONE};
    struct ir_index *index = ir->index;
    for (; index->named < ir->buffer.count; index->named++) {
        uint32_t b = index->named;
        id_map_add(&index->buffer, buffer_hash(ir->buffer.stem[b], ir->buffer.number[b]), b);
    }
    struct id_probe p = id_map_start(&index->buffer, buffer_hash(stem, number));
    while (id_map_next(&index->buffer, &p))
        if (ir->buffer.stem[p.row] == stem && ir->buffer.number[p.row] == number)
            return (buffer_id){p.row};
    return (buffer_id){IR_NONE};
}

size_t ir_buffer_name(const struct ir *ir, buffer_id buffer, char *text, size_t size)
{
    uint32_t number = ir->buffer.number[buffer.i];
    const char *stem = ir->word[ir->buffer.stem[buffer.i]];
    if (number == IR_NONE)
        return (size_t)snprintf(text, size, "%s", stem);
    return (size_t)snprintf(text, size, "%s%" PRIu32, stem, number);
}

uint32_t *ir_no_ids(size_t count)
{
    uint32_t *ids = heap_alloc(count, sizeof *ids);
    memset(ids, 0xff, count * sizeof *ids);
    return ids;
}

/* Statements about data: tensor, bundle, buffer. */
#include "schedule/ir/ir_parse.h"

#include "models/frozen_storage.h"

#include <inttypes.h>
#include <string.h>

/* Returns a NUL-terminated copy that lives as long as the parser. */
static const char *copy_word_to_arena(struct parser *p, struct word word)
{
    return arena_text(&p->scratch, word.at, word.size);
}

static bool refuse_unknown_row_name(struct parser *p, const char *what, struct word word)
{
    return parse_error(p, word.at, "there is no %s '%s' above this line", what,
                       copy_word_to_arena(p, word));
}

bool parse_tensor(struct parser *p)
{
    enum { ROWS, COLS, FROM, PADDED, COUNT };
    static const char *const keys[COUNT] = {"cut_rows", "cut_cols", "from", "padded"};
    struct word name = parse_next_word(p), shape, value[COUNT];
    struct dims dims = {0};
    if (!parse_check_is_name(p, "tensor", false, &name) ||
        !parse_required_word(p, &shape, "a shape [ROWS,COLS]") || !parse_dims(p, shape, &dims))
        return false;
    if (dims.count != 2)
        return parse_error(p, shape.at, "a tensor has two sizes: a vector is [N,1]");
    if (ir_find_by_name(p->ir, IR_TENSOR, name.at, name.size) != IR_NONE)
        return parse_error(p, name.at, "a second tensor named '%s'", copy_word_to_arena(p, name));
    if (!parse_attributes(p, "tensor", keys, COUNT, 0, value))
        return false;
    struct tensor tensor = {
        .name = copy_word_to_arena(p, name), .rows = dims.size[0], .cols = dims.size[1]};
    for (int i = ROWS; i <= COLS; i++)
        if (value[i].at && !parse_axis_mask(p, value[i], &tensor.axes_that_cut_rows_and_columns[i]))
            return false;
    if (value[FROM].at &&
        !parse_number(p, value[FROM], "from", 0, IR_ELEMENTS_MAX, &tensor.first_row))
        return false;
    if (value[PADDED].at && !parse_number(p, value[PADDED], "padded", tensor.rows, IR_ELEMENTS_MAX,
                                          &tensor.padded_rows))
        return false;
    ir_add_tensor(p->ir, tensor);
    return true;
}

bool parse_bundle(struct parser *p)
{
    enum { FIRST, TENSORS, ELEMENTS, STORAGE, COUNT };
    static const char *const keys[COUNT] = {"first", "count", "elements", "storage"};
    uint8_t storage = FROZEN_STORAGE_16BIT;
    struct word name = parse_next_word(p), value[COUNT];
    if (!parse_check_is_name(p, "bundle", false, &name) ||
        !parse_attributes(p, "bundle", keys, COUNT, (1u << STORAGE) - 1, value))
        return false;
    if (ir_find_by_name(p->ir, IR_BUNDLE, name.at, name.size) != IR_NONE)
        return parse_error(p, name.at, "a second bundle named '%s'", copy_word_to_arena(p, name));
    if (p->ir->bundle_count == IR_NONE16 - 1)
        return parse_error(p, name.at, "more than %d bundles", IR_NONE16 - 1);
    uint32_t first = ir_find_by_name(p->ir, IR_TENSOR, value[FIRST].at, value[FIRST].size);
    if (first == IR_NONE)
        return refuse_unknown_row_name(p, "tensor", value[FIRST]);
    int64_t count, elements;
    if (!parse_number(p, value[TENSORS], "count", 1, p->ir->tensor_count - first, &count) ||
        !parse_number(p, value[ELEMENTS], "elements", 1, IR_ELEMENTS_MAX, &elements))
        return false;
    if (value[STORAGE].at &&
        !parse_name_in_table(p, value[STORAGE], "storage", frozen_storage_names,
                             FROZEN_STORAGE_COUNT, &storage))
        return false;
    ir_add_bundle(p->ir, (struct bundle){.name = copy_word_to_arena(p, name),
                                         .tensor_begin = first,
                                         .tensor_count = (uint32_t)count,
                                         .elements = (uint64_t)elements,
                                         .storage = storage});
    return true;
}

/* The attributes of a buffer. */
enum {
    BUFFER_KEY_ROLE,
    BUFFER_KEY_LAYER,
    BUFFER_KEY_BINDING,
    BUFFER_KEY_BUNDLE,
    BUFFER_KEY_SHARD,
    BUFFER_KEY_GATHERED,
    BUFFER_KEY_PARTIAL,
    BUFFER_KEY_PERSISTENT,
    BUFFER_KEY_PART,
    BUFFER_KEY_AT,
    BUFFER_KEY_FREE,
    BUFFER_KEY_COUNT
};
static const char *const buffer_keys[BUFFER_KEY_COUNT] = {
    "role",    "layer",       "bind",  "bundle", "shard", "gathered",
    "partial", "persistent!", "part!", "at",     "free",
};

static bool binding_has_bundle(enum binding_kind kind)
{
    return kind >= BINDING_PARAM && kind <= BINDING_SCALES;
}

static bool binding_has_tokens(enum binding_kind kind)
{
    return kind >= BINDING_TOKENS && kind <= BINDING_POSITIONS;
}

static bool parse_binding(struct parser *p, const struct word *value, uint16_t *id)
{
    struct binding binding = {
        .bundle = IR_NONE16, .shard_group = IR_NONE16, .gathered_group = IR_NONE16};
    if (!value[BUFFER_KEY_BINDING].at) {
        for (int i = BUFFER_KEY_BUNDLE; i <= BUFFER_KEY_PARTIAL; i++)
            if (value[i].at)
                return parse_error(p, value[i].at, "%s is of a binding: give bind=KIND too",
                                   buffer_keys[i]);
        return true;
    }
    if (!parse_name_in_table(p, value[BUFFER_KEY_BINDING], "binding", binding_names + BINDING_PARAM,
                             BINDING_KIND_COUNT - BINDING_PARAM, &binding.kind))
        return false;
    enum binding_kind kind = (enum binding_kind)(binding.kind += BINDING_PARAM);
    if (binding_has_bundle(kind) != !!value[BUFFER_KEY_BUNDLE].at)
        return parse_error(p, value[BUFFER_KEY_BINDING].at,
                           binding_has_bundle(kind) ? "a buffer bound to %s needs bundle="
                                                    : "a buffer bound to %s has no bundle",
                           binding_names[kind]);
    if (value[BUFFER_KEY_SHARD].at && !binding_has_bundle(kind))
        return parse_error(p, value[BUFFER_KEY_SHARD].at, "only buffers of a bundle have a shard");
    if (value[BUFFER_KEY_GATHERED].at && !binding_has_tokens(kind))
        return parse_error(p, value[BUFFER_KEY_GATHERED].at,
                           "only tokens, labels and positions can be gathered");
    if (value[BUFFER_KEY_BUNDLE].at) {
        uint32_t bundle = ir_find_by_name(p->ir, IR_BUNDLE, value[BUFFER_KEY_BUNDLE].at,
                                          value[BUFFER_KEY_BUNDLE].size);
        if (bundle == IR_NONE)
            return refuse_unknown_row_name(p, "bundle", value[BUFFER_KEY_BUNDLE]);
        binding.bundle = (uint16_t)bundle;
    }
    if (value[BUFFER_KEY_SHARD].at &&
        !parse_row_name(p, IR_GROUP, value[BUFFER_KEY_SHARD], "group", &binding.shard_group))
        return false;
    if (value[BUFFER_KEY_GATHERED].at &&
        !parse_row_name(p, IR_GROUP, value[BUFFER_KEY_GATHERED], "group", &binding.gathered_group))
        return false;
    if (value[BUFFER_KEY_PARTIAL].at &&
        !parse_axis_mask(p, value[BUFFER_KEY_PARTIAL], &binding.partial_axes))
        return false;
    if (p->ir->binding_count == IR_NONE16 - 1)
        return parse_error(p, value[BUFFER_KEY_BINDING].at, "more than %d different bindings",
                           IR_NONE16 - 1);
    *id = ir_add_binding(p->ir, binding);
    return true;
}

static bool parse_buffer_role(struct parser *p, struct word word, const char *name, uint16_t *role)
{
    if (!word.at && p->ir->role_count > 1)
        return parse_error(p, name, "where there are several roles, a buffer needs role=");
    if (!word.at)
        return true;
    uint32_t found = ir_find_by_name(p->ir, IR_ROLE, word.at, word.size);
    if (found == IR_NONE)
        return refuse_unknown_row_name(p, "role", word);
    *role = (uint16_t)found;
    return true;
}

/* Parses a free set. Its op ids are checked when all ops are known. */
static bool parse_free(struct parser *p, struct word word, buffer_id buffer)
{
    if (!parse_op_list(p, word, "free"))
        return false;
    struct ir *ir = p->ir;
    if ((uint64_t)ir->free_op_count + p->list_count >= IR_NONE)
        return parse_error(p, word.at, "more than %" PRIu32 " ops in all free sets", IR_NONE - 1);
    uint32_t largest = 0;
    for (size_t i = 0; i < p->list_count; i++)
        largest = p->op_list[i].i > largest ? p->op_list[i].i : largest;
    if (largest >= ir->op.count) {
        p->pending =
            heap_grow(p->pending, &p->pending_capacity, p->pending_count + 1, sizeof *p->pending);
        p->pending[p->pending_count++] = (struct pending_free_op){
            p->cursor.line, (uint32_t)(word.at - p->cursor.line_first_char) + 1, largest};
    }
    ir_set_free_set(ir, buffer, p->op_list, (uint16_t)p->list_count);
    return true;
}

/* Parses a word that must be in a table of names. what: "a " and the name of the table. */
static bool parse_required_name_in_table(struct parser *p, const char *what,
                                         const char *const *names, size_t count, uint8_t *found)
{
    struct word word;
    return parse_required_word(p, &word, what) &&
           parse_name_in_table(p, word, what + strlen("a "), names, count, found);
}

/* Parses "NAME MEMORY DTYPE [SIZE,...] CATEGORY", which every buffer has after the word "buffer". */
static bool parse_buffer_columns(struct parser *p, struct word *name, struct buffer_desc *desc)
{
    const char *dtypes[DTYPE_COUNT];
    struct word word;
    *name = parse_next_word(p);
    if (!parse_check_is_name(p, "buffer", false, name))
        return false;
    for (size_t i = 0; i < CLAUSE_COUNT; i++)
        if (word_is(*name, clause_names[i]))
            return parse_error(p, name->at, "'%s' cannot name a buffer: ops have that word",
                               clause_names[i]);
    if (ir_find_buffer(p->ir, name->at, name->size).i != IR_NONE)
        return parse_error(p, name->at, "a second buffer named '%s'", copy_word_to_arena(p, *name));
    if (p->ir->buffer.count >= IR_OPERAND_IS_RANGE_ROW - 1)
        return parse_error(p, name->at, "more than %" PRIu32 " buffers",
                           IR_OPERAND_IS_RANGE_ROW - 1);

    for (int i = 0; i < DTYPE_COUNT; i++)
        dtypes[i] = dtype_name((enum dtype)i);
    return parse_required_name_in_table(p, "a memory", memory_names, MEMORY_COUNT, &desc->memory) &&
           parse_required_name_in_table(p, "a dtype", dtypes, DTYPE_COUNT, &desc->dtype) &&
           parse_required_word(p, &word, "a shape") && parse_dims(p, word, &desc->dims) &&
           parse_required_name_in_table(p, "a category", category_names, CATEGORY_COUNT,
                                        &desc->category);
}

bool parse_buffer(struct parser *p)
{
    struct buffer_desc desc = {.binding = IR_NONE16};
    struct word name, value[BUFFER_KEY_COUNT];
    int64_t layer = IR_NONE16, offset = -1;
    if (!parse_buffer_columns(p, &name, &desc) ||
        !parse_attributes(p, "buffer", buffer_keys, BUFFER_KEY_COUNT, 0, value) ||
        !parse_buffer_role(p, value[BUFFER_KEY_ROLE], name.at, &desc.role) ||
        !parse_binding(p, value, &desc.binding))
        return false;
    if (value[BUFFER_KEY_LAYER].at &&
        !parse_number(p, value[BUFFER_KEY_LAYER], "layer", 0, IR_NONE16 - 1, &layer))
        return false;
    if (value[BUFFER_KEY_AT].at &&
        !parse_number(p, value[BUFFER_KEY_AT], "at", 0, INT64_MAX, &offset))
        return false;
    desc.layer = (uint16_t)layer;
    if (value[BUFFER_KEY_PERSISTENT].at)
        desc.flags |= BUFFER_PERSISTENT;
    if (value[BUFFER_KEY_PART].at)
        desc.flags |= BUFFER_PART;
    buffer_id buffer = ir_add_named_buffer(p->ir, name.at, name.size, &desc);
    /* a gradient that is freed does not exist before its first writer, so it is not persistent */
    if (value[BUFFER_KEY_FREE].at && !value[BUFFER_KEY_PERSISTENT].at &&
        desc.binding != IR_NONE16 && p->ir->binding[desc.binding].kind == BINDING_GRAD)
        p->ir->buffer.flags[buffer.i] &= (uint8_t)~BUFFER_PERSISTENT;
    if (offset >= 0)
        p->ir->buffer.offset[buffer.i] = (uint64_t)offset;
    return value[BUFFER_KEY_FREE].at ? parse_free(p, value[BUFFER_KEY_FREE], buffer) : true;
}

/* Adds rows to an ir, and sets the free sets of buffers and the work of ops. Equal rows are stored once, except ops,
 * buffers and some ranges. */
#include "schedule/ir/ir_columns.h"
#include "schedule/ir/ir_index.h"

#include <assert.h>
#include <string.h>

/* ---- tables with few rows ---- */

/* Enters the name of a new row into the index of its table. */
static void index_name_of_new_row(struct ir *ir, enum ir_table_with_names table, const char *name,
                                  uint32_t row)
{
    size_t size = strlen(name);
    assert(ir_is_valid_name(name, size));
    id_map_add(&ir_index(ir)->name[table], hash_text(name, size), row);
}

/* Copies a name to `target`, a member of the row, and enters it into the index as index_name_of_new_row() does. */
static void copy_name(struct ir *ir, enum ir_table_with_names table, char target[MESH_NAME_MAX],
                      const char *name, uint32_t row)
{
    assert(strlen(name) < MESH_NAME_MAX);
    strcpy(target, name);
    index_name_of_new_row(ir, table, name, row);
}

/* Copies `count` axis sets from `axes` to `target`. Explicit coordinates are copied into the arena. */
static void copy_axes(struct ir *ir, struct axis_coordinate_set *target,
                      const struct axis_coordinate_set *axes, uint32_t count)
{
    assert(count <= MESH_AXES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        assert(axes[i].axis < ir->mesh.axis_count);
        target[i] = axes[i];
        if (axes[i].count == 0) {
            target[i].coordinates = NULL;
            continue;
        }
        uint32_t *set = arena_array(&ir->arena, axes[i].count, sizeof *set);
        memcpy(set, axes[i].coordinates, axes[i].count * sizeof *set);
        target[i].coordinates = set;
    }
}

static bool axes_are_equal(const struct axis_coordinate_set *a, uint32_t a_count,
                           const struct axis_coordinate_set *b, uint32_t b_count)
{
    if (a_count != b_count)
        return false;
    for (uint32_t i = 0; i < a_count; i++)
        if (a[i].axis != b[i].axis || a[i].count != b[i].count ||
            (a[i].count && memcmp(a[i].coordinates, b[i].coordinates,
                                  a[i].count * sizeof *a[i].coordinates) != 0))
            return false;
    return true;
}

uint16_t ir_add_group(struct ir *ir, const char *name, const struct axis_coordinate_set *axes,
                      uint32_t count)
{
    uint32_t found = ir_find_by_name(ir, IR_GROUP, name, strlen(name));
    if (found != IR_NONE) {
        assert(axes_are_equal(ir->group[found].axis, ir->group[found].axis_count, axes, count));
        return (uint16_t)found;
    }
    assert(ir->group_count < ROWS_WITH_16_BIT_IDS_MAX);
    RESERVE(ir, group, 1);
    struct group *group = &ir->group[ir->group_count];
    *group = (struct group){.axis_count = count};
    copy_name(ir, IR_GROUP, group->name, name, ir->group_count);
    copy_axes(ir, group->axis, axes, count);
    return (uint16_t)ir->group_count++;
}

uint16_t ir_add_role(struct ir *ir, const char *name, const struct axis_coordinate_set *axes,
                     uint32_t count)
{
    uint32_t found = ir_find_by_name(ir, IR_ROLE, name, strlen(name));
    if (found != IR_NONE) {
        assert(axes_are_equal(ir->role[found].axis, ir->role[found].axis_count, axes, count));
        return (uint16_t)found;
    }
    assert(ir->role_count < ROWS_WITH_16_BIT_IDS_MAX);
    RESERVE(ir, role, 1);
    struct role *role = &ir->role[ir->role_count];
    *role = (struct role){.axis_count = count, .op_begin = ir->op.count};
    copy_name(ir, IR_ROLE, role->name, name, ir->role_count);
    copy_axes(ir, role->axis, axes, count);
    ir->index->role_that_gets_new_ops = ir->role_count;
    return (uint16_t)ir->role_count++;
}

uint8_t ir_add_stream(struct ir *ir, const char *name, enum stream_class stream_class)
{
    /* ops of SYNC kinds run on the issuing thread, not on a stream */
    assert(stream_class < STREAM_SYNC);
    uint32_t found = ir_find_by_name(ir, IR_STREAM, name, strlen(name));
    if (found != IR_NONE) {
        assert(ir->stream[found].stream_class == stream_class);
        return (uint8_t)found;
    }
    assert(ir->stream_count < IR_STREAMS_MAX);
    RESERVE(ir, stream, 1);
    struct stream *stream = &ir->stream[ir->stream_count];
    *stream = (struct stream){.stream_class = (uint8_t)stream_class};
    copy_name(ir, IR_STREAM, stream->name, name, ir->stream_count);
    return (uint8_t)ir->stream_count++;
}

uint16_t ir_add_guard(struct ir *ir, struct guard guard)
{
    assert(guard.group < ir->group_count && guard.comparison_kind < GUARD_COMPARISON_COUNT);
    for (uint32_t i = 0; i < ir->guard_count; i++) {
        const struct guard *row = &ir->guard[i];
        if (row->group == guard.group && row->comparison_kind == guard.comparison_kind &&
            row->value == guard.value)
            return (uint16_t)i;
    }
    assert(ir->guard_count < ROWS_WITH_16_BIT_IDS_MAX);
    RESERVE(ir, guard, 1);
    ir->guard[ir->guard_count] = guard;
    return (uint16_t)ir->guard_count++;
}

uint32_t ir_add_tensor(struct ir *ir, struct tensor tensor)
{
    size_t size = strlen(tensor.name);
    uint32_t found = ir_find_by_name(ir, IR_TENSOR, tensor.name, size);
    if (found != IR_NONE) {
        const struct tensor *row = &ir->tensor[found];
        assert(row->rows == tensor.rows && row->cols == tensor.cols &&
               row->first_row == tensor.first_row && row->padded_rows == tensor.padded_rows &&
               row->axes_that_cut_rows_and_columns[0] == tensor.axes_that_cut_rows_and_columns[0] &&
               row->axes_that_cut_rows_and_columns[1] == tensor.axes_that_cut_rows_and_columns[1]);
        return found;
    }
    assert(tensor.rows >= 1 && tensor.cols >= 1);
    RESERVE(ir, tensor, 1);
    tensor.name = arena_text(&ir->arena, tensor.name, size);
    index_name_of_new_row(ir, IR_TENSOR, tensor.name, ir->tensor_count);
    ir->tensor[ir->tensor_count] = tensor;
    return ir->tensor_count++;
}

uint16_t ir_add_bundle(struct ir *ir, struct bundle bundle)
{
    size_t size = strlen(bundle.name);
    uint32_t found = ir_find_by_name(ir, IR_BUNDLE, bundle.name, size);
    if (found != IR_NONE) {
        const struct bundle *row = &ir->bundle[found];
        assert(row->tensor_begin == bundle.tensor_begin &&
               row->tensor_count == bundle.tensor_count && row->elements == bundle.elements);
        return (uint16_t)found;
    }
    assert(bundle.tensor_count >= 1);
    assert((uint64_t)bundle.tensor_begin + bundle.tensor_count <= ir->tensor_count);
    assert(ir->bundle_count < ROWS_WITH_16_BIT_IDS_MAX);
    RESERVE(ir, bundle, 1);
    bundle.name = arena_text(&ir->arena, bundle.name, size);
    index_name_of_new_row(ir, IR_BUNDLE, bundle.name, ir->bundle_count);
    ir->bundle[ir->bundle_count] = bundle;
    return (uint16_t)ir->bundle_count++;
}

uint16_t ir_add_binding(struct ir *ir, struct binding binding)
{
    assert(binding.kind != BINDING_NONE && binding.kind < BINDING_KIND_COUNT);
    for (uint32_t i = 0; i < ir->binding_count; i++) {
        const struct binding *row = &ir->binding[i];
        if (row->kind == binding.kind && row->bundle == binding.bundle &&
            row->shard_group == binding.shard_group &&
            row->gathered_group == binding.gathered_group &&
            row->partial_axes == binding.partial_axes)
            return (uint16_t)i;
    }
    assert(ir->binding_count < ROWS_WITH_16_BIT_IDS_MAX);
    RESERVE(ir, binding, 1);
    ir->binding[ir->binding_count] = binding;
    return (uint16_t)ir->binding_count++;
}

/* ---- buffers ---- */

/* Returns the row of a word, which is added if it is not there. */
static uint32_t intern_word(struct ir *ir, const char *text, size_t size)
{
    uint32_t found = ir_find_by_name(ir, IR_WORD, text, size);
    if (found != IR_NONE)
        return found;
    struct ir_index *index = ir_index(ir);
    RESERVE(ir, word, 1);
    index->next_buffer_number_by_stem =
        heap_realloc(index->next_buffer_number_by_stem, ir->word_capacity,
                     sizeof *index->next_buffer_number_by_stem);
    index->next_buffer_number_by_stem[ir->word_count] = 0;
    ir->word[ir->word_count] = arena_text(&ir->arena, text, size);
    index_name_of_new_row(ir, IR_WORD, ir->word[ir->word_count], ir->word_count);
    return ir->word_count++;
}

static uint32_t intern_dims(struct ir *ir, const struct dims *dims)
{
    struct id_map *map = &ir_index(ir)->dims;
    size_t bytes = dims->count * sizeof *dims->size;
    uint64_t hash = hash_text((const char *)dims->size, bytes);
    for (struct id_probe p = id_map_begin_probe(map, hash); id_map_next_row_with_hash(map, &p);)
        if (ir->dims[p.row].count == dims->count &&
            memcmp(ir->dims[p.row].size, dims->size, bytes) == 0)
            return p.row;
    struct dims row = *dims;
    bool fits = dims_elements(dims, &row.elements);
    assert(fits);
    RESERVE(ir, dims, 1);
    id_map_add(map, hash, ir->dims_count);
    ir->dims[ir->dims_count] = row;
    return ir->dims_count++;
}

/* Adds a buffer whose name is the word in row `stem` of ir.word and then `number`. The name in desc is not used. */
static buffer_id add_buffer(struct ir *ir, uint32_t stem, uint32_t number,
                            const struct buffer_desc *desc)
{
    struct buffer_table *t = &ir->buffer;
    assert(desc->memory < MEMORY_COUNT && desc->dtype < DTYPE_COUNT);
    assert(desc->category < CATEGORY_COUNT);
    assert(desc->binding == IR_NONE16 || desc->binding < ir->binding_count);
    assert(t->count < IR_OPERAND_IS_RANGE_ROW);
    ir_grow_buffers(t, 1);
    uint32_t row = t->count++;
    t->memory[row] = desc->memory;
    t->dtype[row] = desc->dtype;
    t->category[row] = desc->category;
    t->flags[row] = desc->flags;
    if (desc->binding != IR_NONE16)
        t->flags[row] |= BUFFER_PERSISTENT;
    t->role[row] = desc->role;
    t->layer[row] = desc->layer;
    t->binding[row] = desc->binding;
    t->dims[row] = intern_dims(ir, &desc->dims);
    t->stem[row] = stem;
    t->number[row] = number;
    if (number != IR_NONE && number >= ir->index->next_buffer_number_by_stem[stem])
        ir->index->next_buffer_number_by_stem[stem] = number + 1;
    t->free_op[row].i = 0;
    t->free_count[row] = 0;
    t->offset[row] = UINT64_MAX;
    return (buffer_id){row};
}

buffer_id ir_add_buffer(struct ir *ir, const struct buffer_desc *desc)
{
    size_t size = strlen(desc->stem);
    /* Otherwise "kv1" with number 2 and "kv" with number 12 would both be named "kv12". */
    assert(size > 0 && (desc->stem[size - 1] < '0' || desc->stem[size - 1] > '9'));
    uint32_t stem = intern_word(ir, desc->stem, size);
    uint32_t number =
        desc->number == IR_NONE ? ir->index->next_buffer_number_by_stem[stem] : desc->number;
    assert(number < IR_NONE - 1);
    return add_buffer(ir, stem, number, desc);
}

buffer_id ir_add_named_buffer(struct ir *ir, const char *name, size_t size,
                              const struct buffer_desc *desc)
{
    uint32_t number;
    size_t stem_size = ir_split_name(name, size, &number);
    return add_buffer(ir, intern_word(ir, name, stem_size), number, desc);
}

void ir_open_free_set(struct ir *ir, uint32_t buffer, uint16_t count)
{
    ir->buffer.free_count[buffer] = count;
    ir->buffer.free_op[buffer].i = ir->free_op_count;
    if (count <= 1)
        return;
    RESERVE(ir, free_op, count);
    ir->free_op_count += count;
}

void ir_set_free_set(struct ir *ir, buffer_id buffer, const op_id *ops, uint16_t count)
{
    ir_open_free_set(ir, buffer.i, count);
    if (count > 0)
        memcpy(ir_free_set(ir, buffer.i), ops, count * sizeof *ops);
}

/* ---- ops ---- */

/* Returns the dtype of the buffer of view k, or of the last view if there are no more than k. */
static uint8_t dtype_of_view_or_last(const struct ir *ir, const struct view *view, uint32_t count,
                                     uint32_t k)
{
    return ir->buffer.dtype[view[k < count ? k : count - 1].buffer.i];
}

/* True if the shapes are equal. It compares word by word: the parameters were stored just now, one by one, and wider
 * loads would stall on these stores. */
static bool shapes_are_equal(const struct work *a, const struct work *b, uint32_t params)
{
    if (a->kind != b->kind || a->in != b->in || a->out != b->out || a->reads != b->reads ||
        a->writes != b->writes)
        return false;
    for (uint32_t i = 0; i < params; i++)
        if (a->p[i] != b->p[i])
            return false;
    return true;
}

/* Returns the row of a shape, which is added if it is new. Two ops have one shape if they have the same kind of work,
 * dtypes, numbers of reads and writes, and values of the parameters that the kind uses. */
static uint32_t intern_work(struct ir *ir, struct work key, uint32_t params)
{
    struct id_map *map = &ir_index(ir)->shape;
    uint64_t hash = hash_text((const char *)key.p, params * sizeof *key.p);
    hash = hash_word(hash, (uint64_t)key.kind | (uint64_t)key.in << 8 | (uint64_t)key.out << 16 |
                               (uint64_t)key.reads << 24 | (uint64_t)key.writes << 32);
    for (struct id_probe at = id_map_begin_probe(map, hash); id_map_next_row_with_hash(map, &at);)
        if (shapes_are_equal(&ir->shape[at.row], &key, params))
            return at.row;
    memset(key.p + params, 0, sizeof key.p - params * sizeof *key.p);
    RESERVE(ir, shape, 1);
    id_map_add(map, hash, ir->shape_count);
    ir->shape[ir->shape_count] = key;
    return ir->shape_count++;
}

static uint32_t intern_shape(struct ir *ir, const struct op_desc *desc,
                             const struct work_kind_info *info)
{
    struct work key = desc->work;
    key.in = key.out = 0;
    key.reads = desc->read_count;
    key.writes = desc->write_count;
    if (desc->read_count)
        key.in = key.out =
            dtype_of_view_or_last(ir, desc->read, desc->read_count, info->in_operand);
    if (desc->write_count)
        key.out = dtype_of_view_or_last(ir, desc->write, desc->write_count, info->out_operand);
    if (!desc->read_count)
        key.in = key.out;
    return intern_work(ir, key, info->param_count);
}

void ir_set_work(struct ir *ir, uint32_t op, const struct work *work)
{
    struct work key = *work;
    const struct work *old = ir_work(ir, op);
    assert(work->kind == old->kind);
    key.in = old->in;
    key.out = old->out;
    key.reads = old->reads;
    key.writes = old->writes;
    ir->op.shape[op] = intern_work(ir, key, work_kind_info(work->kind)->param_count);
}

uint32_t ir_add_element_extent(struct ir *ir, struct ir_element_extent extent)
{
    struct id_map *map = &ir_index(ir)->extent;
    uint64_t hash = hash_word(hash_word(0, extent.begin), extent.count);
    for (struct id_probe p = id_map_begin_probe(map, hash); id_map_next_row_with_hash(map, &p);)
        if (ir->extent[p.row].begin == extent.begin && ir->extent[p.row].count == extent.count)
            return p.row;
    RESERVE(ir, extent, 1);
    id_map_add(map, hash, ir->extent_count);
    ir->extent[ir->extent_count] = extent;
    return ir->extent_count++;
}

uint32_t ir_add_range(struct ir *ir, struct ir_range range)
{
    assert(ir->range_count < IR_OPERAND_IS_RANGE_ROW - 1);
    RESERVE(ir, range, 1);
    ir->range[ir->range_count] = range;
    return ir->range_count++;
}

/* Returns the row of a range, which is added unless it is among recent ones. Equal ranges follow each other closely
 * (what is written is soon read), so a small table of recent rows finds most of them. */
static uint32_t intern_range(struct ir *ir, struct ir_range range)
{
    uint64_t hash = hash_word(0, (uint64_t)range.buffer.i << 32 | range.extent_row);
    uint32_t *recent =
        &ir_index(ir)->recent_ranges_by_hash[hash_fold_to_32_bits(hash) % IR_RECENT_RANGES];
    if (*recent < ir->range_count && ir->range[*recent].buffer.i == range.buffer.i &&
        ir->range[*recent].extent_row == range.extent_row)
        return *recent;
    return *recent = ir_add_range(ir, range);
}

static inline uint32_t intern_view_as_operand(struct ir *ir, const struct view *view)
{
    assert(view->buffer.i < ir->buffer.count);
    uint64_t elements = ir_buffer_elements(ir, view->buffer);
    if (view->begin == 0 && view->count == elements)
        return view->buffer.i;
    assert(view->count >= 1 && view->begin < elements && view->count <= elements - view->begin);
    uint32_t extent =
        ir_add_element_extent(ir, (struct ir_element_extent){view->begin, view->count});
    return IR_OPERAND_IS_RANGE_ROW | intern_range(ir, (struct ir_range){view->buffer, extent});
}

op_id ir_add_op(struct ir *ir, const struct op_desc *desc)
{
    struct op_table *t = &ir->op;
    uint8_t kind = desc->work.kind;
    assert(kind < WORK_KIND_COUNT && desc->stream < ir->stream_count);
    const struct work_kind_info *info = work_kind_info((enum work_kind)kind);
    assert(desc->read_count >= info->reads_min && desc->read_count <= info->reads_max);
    assert(desc->write_count >= info->writes_min && desc->write_count <= info->writes_max);
    assert(desc->guard == IR_NONE16 || desc->guard < ir->guard_count);
    if (ir->role_count == 0)
        ir_add_role(ir, "all", NULL, 0);
    ir_grow_ops(t, 1);
    uint32_t operands = (uint32_t)desc->read_count + desc->write_count;
    RESERVE(ir, operand, operands);
    RESERVE(ir, wait, desc->wait_count);

    uint32_t row = t->count++;
    t->kind[row] = kind;
    t->stream[row] = desc->stream;
    t->phase[row] = desc->tags.phase;
    t->region[row] = desc->tags.region;
    t->read_count[row] = desc->read_count;
    t->write_count[row] = desc->write_count;
    t->layer[row] = desc->tags.layer;
    t->chunk[row] = desc->tags.chunk;
    t->step[row] = desc->tags.step;
    t->micro[row] = desc->tags.micro_batch;
    t->guard[row] = desc->guard;
    t->shape[row] = intern_shape(ir, desc, info);
    t->operand_begin[row] = ir->operand_count;
    for (uint32_t i = 0; i < desc->read_count; i++)
        ir->operand[ir->operand_count++] = intern_view_as_operand(ir, &desc->read[i]);
    for (uint32_t i = 0; i < desc->write_count; i++)
        ir->operand[ir->operand_count++] = intern_view_as_operand(ir, &desc->write[i]);
    t->wait_begin[row] = ir->wait_count;
    t->wait_count[row] = desc->wait_count;
    for (uint32_t i = 0; i < desc->wait_count; i++)
        ir->wait[ir->wait_count++] = desc->wait[i];
    ir->role[ir->index->role_that_gets_new_ops].op_count++;
    return (op_id){row};
}

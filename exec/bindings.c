#include "exec/bindings.h"

#include "exec/number.h"
#include "models/frozen_storage.h"
#include "models/states.h"
#include "schedule/ir/visible.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* ---- the place of a rank in the mesh ---- */

struct mesh_axis_coordinates {
    uint32_t coordinate_by_axis[MESH_AXES_MAX];
};

static struct mesh_axis_coordinates mesh_coordinates_of_rank(const struct ir *ir, uint32_t rank)
{
    struct mesh_axis_coordinates place = {{0}};
    mesh_coordinates(&ir->mesh, rank, place.coordinate_by_axis);
    return place;
}

/* Returns the index of a place among the places that differ from it only along the axes of a mask, where the first axis
 * changes slowest. Sets *size to the number of these places, its own included. */
static uint32_t mesh_index_along_axes(const struct ir *ir,
                                      const struct mesh_axis_coordinates *place, uint32_t axes,
                                      uint32_t *size)
{
    uint32_t index = 0;
    *size = 1;
    for (uint32_t a = 0; a < ir->mesh.axis_count; a++)
        if (axes >> a & 1) {
            index = index * ir->mesh.axis[a].size + place->coordinate_by_axis[a];
            *size *= ir->mesh.axis[a].size;
        }
    return index;
}

static uint32_t mesh_axes_of_group(const struct ir *ir, uint16_t group)
{
    uint32_t axes = 0;
    for (uint32_t i = 0; group != IR_NONE16 && i < ir->group[group].axis_count; i++)
        axes |= 1u << ir->group[group].axis[i].axis;
    return axes;
}

/* True unless the role has a rank whose coordinate along one of `axes` is smaller than this rank's, and whose other
 * coordinates are the same. */
static bool is_first_of_equal_ranks(const struct ir *ir, uint32_t rank, uint32_t role,
                                    uint32_t axes)
{
    struct mesh_axis_coordinates place = mesh_coordinates_of_rank(ir, rank), first = place;
    for (uint32_t a = 0; a < ir->mesh.axis_count; a++)
        for (uint32_t c = 0; (axes >> a & 1) && c < place.coordinate_by_axis[a]; c++) {
            first.coordinate_by_axis[a] = c;
            if (role_has_rank(&ir->mesh, &ir->role[role],
                              mesh_rank_at(&ir->mesh, first.coordinate_by_axis)))
                return false;
            first.coordinate_by_axis[a] = place.coordinate_by_axis[a];
        }
    return true;
}

/* ---- elements of tensors in buffers ---- */

/* The part of one tensor that a rank holds: its first row and column, and its size. */
struct tensor_slice {
    int64_t first_row, first_col; /* where it begins */
    int64_t rows, cols;
    int64_t allocated_rows; /* rows for which a part has memory; the last parts may hold fewer */
};

static struct tensor_slice slice_held_by_rank(const struct ir *ir, const struct tensor *tensor,
                                              const struct mesh_axis_coordinates *place)
{
    uint32_t parts[2], index[2];
    for (int d = 0; d < 2; d++)
        index[d] =
            mesh_index_along_axes(ir, place, tensor->axes_that_cut_rows_and_columns[d], &parts[d]);
    int64_t rows = tensor->padded_rows > tensor->rows ? tensor->padded_rows : tensor->rows;
    struct tensor_slice slice = {.allocated_rows = (rows + parts[0] - 1) / parts[0],
                                 .cols = tensor->cols / parts[1]};
    slice.first_row = slice.allocated_rows * index[0];
    slice.first_col = slice.cols * index[1];
    int64_t left = tensor->rows - slice.first_row;
    slice.rows = left < 0 ? 0 : left < slice.allocated_rows ? left : slice.allocated_rows;
    return slice;
}

/* A run of elements that are contiguous in a buffer and in a tensor. */
struct element_run {
    uint32_t tensor;
    uint64_t tensor_offset, buffer_offset, element_count;
};

typedef void element_run_function(void *context, const struct element_run *run);

/* Calls use() once for each run of consecutive tensor elements that a bound buffer holds on its rank. Padding is in no
 * run. */
static void for_each_run(const struct exec_buffer *buffer, element_run_function *use, void *context)
{
    const struct ir *ir = buffer->ir;
    const struct bundle *bundle = &ir->bundle[buffer->buffer_binding->bundle];
    struct mesh_axis_coordinates place = mesh_coordinates_of_rank(ir, buffer->rank);
    /* elements of the bundle: the buffer holds those from `begin` to `end`, and tensor t begins at `at` */
    uint64_t begin = 0, end = bundle->elements, at = 0;
    if (buffer->buffer_binding->shard_group != IR_NONE16) {
        uint32_t instance, index;
        if (!group_find_member(&ir->mesh, &ir->group[buffer->buffer_binding->shard_group],
                               buffer->rank, &instance, &index))
            return;
        begin = buffer->element_count * index;
        end = begin + buffer->element_count;
    }
    for (uint32_t t = bundle->tensor_begin; t < bundle->tensor_begin + bundle->tensor_count; t++) {
        const struct tensor *tensor = &ir->tensor[t];
        struct tensor_slice slice = slice_held_by_rank(ir, tensor, &place);
        bool whole_rows = slice.cols == tensor->cols;
        uint64_t size = (uint64_t)(slice.rows * slice.cols);
        uint64_t run = whole_rows ? size : (uint64_t)slice.cols;
        uint64_t from = begin > at ? begin - at : 0, to = end < at + size ? end - at : size;
        for (uint64_t e = from; end > at && e < to;) {
            uint64_t row = e / (uint64_t)slice.cols, col = e % (uint64_t)slice.cols;
            uint64_t left = run - e % run, count = left < to - e ? left : to - e;
            struct element_run part = {
                .tensor = t,
                .tensor_offset = ((uint64_t)slice.first_row + row) * (uint64_t)tensor->cols +
                                 (uint64_t)slice.first_col + col,
                .buffer_offset = at + e - begin,
                .element_count = count,
            };
            use(context, &part);
            e += count;
        }
        at += (uint64_t)(slice.allocated_rows * slice.cols);
    }
}

/* Joins runs that have equal lengths and equal distances in their tensor, one after another, to a block. A run that
 * does not fit ends the block, which use_block() then gets, and begins the next one. */
struct run_joiner {
    bindings_block_function *use_block;
    void *context;
    struct bindings_block block; /* rows 0: no block has begun */
};

static void join_run(void *context, const struct element_run *s)
{
    struct run_joiner *j = context;
    struct bindings_block *b = &j->block;
    uint64_t step = s->tensor_offset - b->tensor_offset;
    bool next = b->rows > 0 && s->tensor == b->tensor && s->element_count == b->cols &&
                s->buffer_offset == b->buffer_offset + b->rows * b->cols &&
                (b->rows == 1 || step == b->rows * b->row_stride);
    if (next && b->rows == 1)
        b->row_stride = step;
    if (next) {
        b->rows++;
        return;
    }
    if (b->rows > 0)
        j->use_block(j->context, b);
    *b = (struct bindings_block){s->tensor, s->tensor_offset, s->buffer_offset,
                                 1,         s->element_count, 0};
}

void bindings_for_each_block(const struct exec_buffer *buffer, bindings_block_function *use,
                             void *context)
{
    struct run_joiner joining = {.use_block = use, .context = context};
    for_each_run(buffer, join_run, &joining);
    if (joining.block.rows > 0)
        use(context, &joining.block);
}

struct copied_run_collector {
    const struct ir *ir;
    /* the group's axes along which a bundle is not sharded and the ranks of a role are not fixed. Ranks along such an
     * axis hold the same elements of a tensor, unless the tensor is cut over the axis. */
    uint32_t replicating_axes;
    struct copied_run *runs;
    uint32_t run_count;
    struct copied_run last_run;
};

static void add_copied_run(void *context, const struct element_run *run)
{
    struct copied_run_collector *s = context;
    const struct tensor *tensor = &s->ir->tensor[run->tensor];
    uint32_t same = s->replicating_axes & ~(tensor->axes_that_cut_rows_and_columns[0] |
                                            tensor->axes_that_cut_rows_and_columns[1]),
             copies = 1;
    for (uint32_t a = 0; a < s->ir->mesh.axis_count; a++)
        copies *= same >> a & 1 ? s->ir->mesh.axis[a].size : 1;
    bool goes_on = s->run_count > 0 && s->last_run.copies == copies &&
                   s->last_run.begin + s->last_run.element_count == run->buffer_offset;
    if (goes_on)
        s->last_run.element_count += run->element_count;
    else
        s->last_run = (struct copied_run){run->buffer_offset, run->element_count, copies};
    s->run_count += !goes_on;
    if (s->runs != NULL)
        s->runs[s->run_count - 1] = s->last_run;
}

/* Returns the axes along which all ranks of a role have the same coordinate. */
static uint32_t mesh_axes_fixed_in_role(const struct ir *ir, uint32_t role)
{
    uint32_t axes = 0;
    for (uint32_t i = 0; i < ir->role[role].axis_count; i++)
        axes |= 1u << ir->role[role].axis[i].axis;
    return axes;
}

uint32_t bindings_list_copied_runs(const struct ir *ir, uint32_t rank, uint32_t buffer,
                                   uint16_t group, struct copied_run *share)
{
    uint16_t row = ir->buffer.binding[buffer];
    const struct binding *binding = row != IR_NONE16 ? &ir->binding[row] : NULL;
    const struct exec_buffer bound = {.ir = ir,
                                      .buffer_binding = binding,
                                      .rank = rank,
                                      .buffer = buffer,
                                      .element_count = ir_buffer_elements(ir, (buffer_id){buffer})};
    struct copied_run_collector s = {.ir = ir, .runs = share};
    if (binding == NULL || binding->bundle == IR_NONE16) {
        if (share != NULL)
            *share = (struct copied_run){0, bound.element_count, 1};
        return 1;
    }
    s.replicating_axes = mesh_axes_of_group(ir, group) &
                         ~mesh_axes_of_group(ir, binding->shard_group) &
                         ~mesh_axes_fixed_in_role(ir, ir->buffer.role[buffer]);
    for_each_run(&bound, add_copied_run, &s);
    return s.run_count;
}

struct tensor_transfer {
    struct bindings *b;
    const struct exec_buffer *buffer;
    const double *const *sources;
    double *const *destinations;
    uint32_t partial_axes; /* axes over which the binding is partial */
};

static void fill_run(void *context, const struct element_run *s)
{
    const struct tensor_transfer *t = context;
    for (uint64_t i = 0; i < s->element_count; i++)
        number_write_element(t->buffer->data, t->buffer->dtype, s->buffer_offset + i,
                             t->sources[s->tensor][s->tensor_offset + i]);
}

/* Adds a run of elements from a rank's buffer to the collected tensor. Where several ranks hold the same elements,
 * those of the first rank are stored, and elements of other ranks that differ from them are counted. Where the ranks'
 * elements are parts of a sum, they are added, each part once. */
static void collect_run(void *context, const struct element_run *s)
{
    struct tensor_transfer *t = context;
    const struct ir *ir = t->b->ir;
    const struct tensor *tensor = &ir->tensor[s->tensor];
    uint32_t cut =
        tensor->axes_that_cut_rows_and_columns[0] | tensor->axes_that_cut_rows_and_columns[1];
    uint32_t partial = t->partial_axes & ~cut;
    bool first = is_first_of_equal_ranks(
        ir, t->buffer->rank, ir->buffer.role[t->buffer->buffer],
        ~(partial | cut | mesh_axes_of_group(ir, t->buffer->buffer_binding->shard_group)));
    double *to = t->destinations[s->tensor] + s->tensor_offset;
    for (uint64_t i = 0; i < s->element_count; i++) {
        double value = number_read_element(t->buffer->data, t->buffer->dtype, s->buffer_offset + i);
        if (partial != 0)
            to[i] += first ? value : 0;
        else if (!first)
            t->b->differing_replica_elements +=
                to[i] != value && (to[i] == to[i] || value == value);
        else
            to[i] = value;
    }
}

static enum status fill_tensors(struct bindings *b, const struct exec_buffer *buffer)
{
    struct tensor_transfer transfer = {.b = b, .buffer = buffer};
    switch ((enum binding_kind)buffer->buffer_binding->kind) {
    case BINDING_PARAM:
    case BINDING_MASTER:
        transfer.sources = b->params;
        break;
    case BINDING_MOMENT1:
        transfer.sources = b->moment1;
        break;
    case BINDING_MOMENT2:
        transfer.sources = b->moment2;
        break;
    default:
        break;
    }
    if (transfer.sources != NULL)
        for_each_run(buffer, fill_run, &transfer);
    return STATUS_OK;
}

/* ---- tokens in buffers ---- */

/* Returns the mesh axes over which the layout cuts a context rank's tokens: those named `hp`, and those named `tp` too
 * if both together have as many ranks as layout.hp. */
static uint32_t mesh_axes_that_split_tokens(const struct ir *ir)
{
    const struct mesh_axis_coordinates origin = {{0}};
    uint32_t heads = ir_mask_of_axes_named(ir, "hp"),
             both = heads | ir_mask_of_axes_named(ir, "tp"), size;
    mesh_index_along_axes(ir, &origin, both, &size);
    return size == ir->layout.hp ? both : heads;
}

/* True if two masks of axes span the same ranks; axes of one rank make no difference. */
static bool axes_span_same_ranks(const struct ir *ir, uint32_t axes, uint32_t others)
{
    for (uint32_t a = 0; a < ir->mesh.axis_count; a++)
        if (ir->mesh.axis[a].size > 1 && (axes >> a & 1) != (others >> a & 1))
            return false;
    return true;
}

/* Returns the position in the sequence of the token with index p among a rank's own tokens. */
static int64_t position_of_own_token(const struct ir *ir, uint32_t rank,
                                     const struct document_list *documents, int64_t p)
{
    struct mesh_axis_coordinates place = mesh_coordinates_of_rank(ir, rank);
    uint32_t size, c = ir_context_index(ir, rank);
    uint32_t h = mesh_index_along_axes(ir, &place, mesh_axes_that_split_tokens(ir), &size);
    return layout_position_of_own_row(&ir->layout, documents, c, h, p);
}

static int64_t own_token_count(const struct ir *ir)
{
    return ir->layout.sequence_tokens / ((int64_t)ir->layout.cp * ir->layout.hp);
}

/* Returns how many tokens of one sequence a buffer with this binding holds. */
static int64_t bound_token_count(const struct ir *ir, const struct binding *binding)
{
    int64_t own = own_token_count(ir);
    return binding->gathered_group == IR_NONE16
               ? own
               : own * group_rank_count(&ir->mesh, &ir->group[binding->gathered_group]);
}

/* Returns the position in the sequence of the token with index p in a buffer. The buffer holds the rank's own tokens
 * or, if its binding is gathered, those of all members of the group. */
static int64_t sequence_position_of_buffer_token(const struct exec_buffer *buffer,
                                                 const struct document_list *documents, int64_t p)
{
    const struct ir *ir = buffer->ir;
    uint16_t group = buffer->buffer_binding->gathered_group;
    uint32_t instance, index;
    if (group == IR_NONE16)
        return position_of_own_token(ir, buffer->rank, documents, p);
    if (axes_span_same_ranks(ir, mesh_axes_of_group(ir, group), mesh_axes_that_split_tokens(ir)))
        return layout_position_of_gathered_row(&ir->layout, documents,
                                               ir_context_index(ir, buffer->rank), p);
    if (!group_find_member(&ir->mesh, &ir->group[group], buffer->rank, &instance, &index))
        return 0;
    int64_t own = own_token_count(ir);
    uint32_t member =
        group_global_rank_of_member(&ir->mesh, &ir->group[group], instance, (uint32_t)(p / own));
    return position_of_own_token(ir, member, documents, p % own);
}

static int32_t token_value(const struct bindings *b, enum binding_kind kind, int64_t sequence,
                           int64_t position)
{
    int64_t tokens = b->ir->layout.sequence_tokens;
    const int32_t *row = b->tokens + sequence * tokens;
    if (kind == BINDING_POSITIONS)
        return (int32_t)position;
    if (kind == BINDING_TOKENS)
        return row[position];
    if (b->labels != NULL)
        return b->labels[sequence * tokens + position];
    return position + 1 < tokens ? row[position + 1] : -1;
}

static enum status fill_tokens(const struct bindings *b, const struct exec_buffer *buffer,
                               struct diag *diag)
{
    const struct ir *ir = b->ir;
    struct mesh_axis_coordinates place = mesh_coordinates_of_rank(ir, buffer->rank);
    uint32_t size, d = mesh_index_along_axes(ir, &place, ir_mask_of_axes_named(ir, "dp"), &size);
    int64_t of_one = bound_token_count(ir, buffer->buffer_binding);
    int64_t sequences = (int64_t)buffer->element_count / of_one;
    if (buffer->dtype != DTYPE_I32)
        return diag_error(diag, (struct loc){0}, STATUS_BAD_INPUT,
                          "%s are bound to a buffer of type %s, and must be in i32",
                          binding_names[buffer->buffer_binding->kind], dtype_name(buffer->dtype));
    if (buffer->buffer_binding->kind != BINDING_POSITIONS && (d + 1) * sequences > ir->global_batch)
        return diag_error(diag, (struct loc){0}, STATUS_BAD_INPUT,
                          "rank %" PRIu32 " holds sequences %" PRId64 " to %" PRId64
                          " of a batch of %" PRId64,
                          buffer->rank, d * sequences, (d + 1) * sequences - 1, ir->global_batch);
    int32_t *data = buffer->data;
    const struct document_list whole = {.document_count = 1,
                                        .document_end = &ir->layout.sequence_tokens};
    for (int64_t e = 0; e < (int64_t)buffer->element_count; e++) {
        int64_t sequence = d * sequences + e / of_one;
        const struct document_list *documents =
            documents_of_sequence(&ir->documents, (uint32_t)sequence);
        if (documents == NULL)
            documents = &whole;
        data[e] = token_value(b, buffer->buffer_binding->kind, sequence,
                              sequence_position_of_buffer_token(buffer, documents, e % of_one));
    }
    return STATUS_OK;
}

/* ---- functions for struct exec_io, and the check of bindings ---- */

static bool holds_tensors(enum binding_kind kind)
{
    return kind >= BINDING_PARAM && kind <= BINDING_MOMENT2;
}

static bool holds_tokens(enum binding_kind kind)
{
    return kind == BINDING_TOKENS || kind == BINDING_LABELS || kind == BINDING_POSITIONS;
}

enum status bindings_fill_buffer(void *user, const struct exec_buffer *buffer, struct diag *diag)
{
    struct bindings *b = user;
    if (stored_tensors_is_source_of_buffer(buffer))
        stored_tensors_fill(b->stored, buffer);
    else if (holds_tensors(buffer->buffer_binding->kind))
        return fill_tensors(b, buffer);
    if (holds_tokens(buffer->buffer_binding->kind))
        return fill_tokens(b, buffer, diag);
    return STATUS_OK;
}

static void zero_collected_tensors(struct bindings *b)
{
    b->loss = 0;
    for (int kind = 0; kind < BINDING_KIND_COUNT; kind++)
        for (uint32_t t = 0; b->collected[kind] != NULL && t < b->ir->tensor_count; t++)
            memset(b->collected[kind][t], 0,
                   (size_t)(b->ir->tensor[t].rows * b->ir->tensor[t].cols) * sizeof(double));
}

/* Returns the axes over which the elements of a binding are parts of a sum, without axes of one rank. */
static uint32_t partial_axes(const struct ir *ir, const struct binding *binding)
{
    uint32_t axes = 0;
    for (uint32_t a = 0; a < ir->mesh.axis_count; a++)
        if ((binding->partial_axes >> a & 1) && ir->mesh.axis[a].size > 1)
            axes |= 1u << a;
    return axes;
}

static int axis_count(uint32_t axes)
{
    int count = 0;
    for (; axes != 0; axes &= axes - 1)
        count++;
    return count;
}

/* True if the results of this binding are collected. A schedule may bind a gradient both before and after its
 * reduction: only the binding that is partial over the fewest axes is collected. If several are partial over equally
 * few, it is the first of them. */
static bool is_collected_binding(const struct ir *ir, const struct binding *binding)
{
    int partial = axis_count(partial_axes(ir, binding));
    for (uint32_t i = 0; i < ir->binding_count; i++) {
        const struct binding *other = &ir->binding[i];
        int others = axis_count(partial_axes(ir, other));
        if (other != binding && other->kind == binding->kind && other->bundle == binding->bundle &&
            (others < partial || (others == partial && other < binding)))
            return false;
    }
    return true;
}

static void collect_tensors(struct bindings *b, const struct exec_buffer *buffer)
{
    const struct ir *ir = b->ir;
    const struct binding *binding = buffer->buffer_binding;
    struct tensor_transfer transfer = {.b = b,
                                       .buffer = buffer,
                                       .destinations = b->collected[binding->kind],
                                       .partial_axes = partial_axes(ir, binding)};
    if (transfer.destinations != NULL && is_collected_binding(ir, binding))
        for_each_run(buffer, collect_run, &transfer);
}

enum status bindings_collect_buffer(void *user, const struct exec_buffer *buffer, struct diag *diag)
{
    struct bindings *b = user;
    (void)diag;
    if (b->last_collected_step_plus_1 != buffer->step + 1) {
        zero_collected_tensors(b);
        b->last_collected_step_plus_1 = buffer->step + 1;
    }
    if (stored_tensors_is_source_of_buffer(buffer))
        return STATUS_OK; /* no op writes codes and scales */
    if (holds_tensors(buffer->buffer_binding->kind)) {
        collect_tensors(b, buffer);
    } else if (buffer->buffer_binding->kind == BINDING_LOSS &&
               is_first_of_equal_ranks(b->ir, buffer->rank, b->ir->buffer.role[buffer->buffer],
                                       ~buffer->buffer_binding->partial_axes)) {
        b->loss += number_read_element(buffer->data, buffer->dtype, 0);
    }
    return STATUS_OK;
}

enum status bindings_check(const struct bindings *b, const char *name, struct diag *diag)
{
    const struct ir *ir = b->ir;
    const struct loc at = {name, 0, 0};
    struct mesh_axis_coordinates origin = mesh_coordinates_of_rank(ir, 0);
    for (uint32_t t = 0; t < ir->tensor_count; t++)
        for (int d = 0; d < 2; d++) {
            uint32_t parts;
            int64_t size = d == 0 ? ir->tensor[t].rows : ir->tensor[t].cols;
            mesh_index_along_axes(ir, &origin, ir->tensor[t].axes_that_cut_rows_and_columns[d],
                                  &parts);
            if (d == 1 && size % parts != 0)
                return diag_error(diag, at, STATUS_BAD_INPUT,
                                  "dimension %d of tensor %s, %" PRId64 ", is cut over %" PRIu32
                                  " ranks, which do not divide it",
                                  d, ir->tensor[t].name, size, parts);
        }
    for (uint32_t i = 0; i < ir->buffer.count; i++) {
        if (ir->buffer.binding[i] == IR_NONE16)
            continue;
        const struct binding *binding = &ir->binding[ir->buffer.binding[i]];
        uint64_t elements = ir_buffer_elements(ir, (buffer_id){i}), want = elements;
        char buffer[64];
        ir_buffer_name(ir, (buffer_id){i}, buffer, sizeof buffer);
        if (holds_tensors(binding->kind) || binding->kind == BINDING_SCALES) {
            uint32_t parts = binding->shard_group == IR_NONE16
                                 ? 1
                                 : group_rank_count(&ir->mesh, &ir->group[binding->shard_group]);
            want = ir->bundle[binding->bundle].elements / parts;
            if (ir->bundle[binding->bundle].storage != FROZEN_STORAGE_16BIT)
                want = ir_stored_weight_bytes(ir, binding, want);
            else if (ir->buffer.dtype[i] == DTYPE_U8) /* a moment with its scales */
                want = states_moment_elements(STATES_8BIT, want);
        } else if (holds_tokens(binding->kind)) {
            int64_t of_one = bound_token_count(ir, binding);
            want = elements - elements % (uint64_t)(of_one > 0 ? of_one : 1);
            if (want == 0)
                want = (uint64_t)of_one;
        }
        if (want != elements)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "buffer %s has %" PRIu64
                              " elements; what is bound to it has %" PRIu64,
                              buffer, elements, want);
    }
    return STATUS_OK;
}

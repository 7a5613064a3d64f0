#include "base/file_set.h"
#include "models/frozen_storage.h"
#include "schedule/ir/ir_text.h"
#include "schedule/ir/loops_roll.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void print_key_value(struct text *out, const char *key, uint64_t value)
{
    text_puts(out, key);
    assert(value <= INT64_MAX);
    text_put_i64(out, (int64_t)value);
}

static void print_key_and_name(struct text *out, const char *key, const char *name)
{
    text_puts(out, key);
    text_puts(out, name);
}

/* Appends a label, such as a layer; nothing for IR_NONE16. */
static void print_label(struct text *out, const char *key, uint16_t value)
{
    if (value != IR_NONE16)
        print_key_value(out, key, value);
}

/* Appends the line of a group or a role. */
static void print_group_or_role(struct text *out, const struct mesh *mesh, const char *key,
                                const char *name, const struct axis_coordinate_set *set,
                                uint32_t count)
{
    print_key_and_name(out, key, name);
    for (uint32_t i = 0; i < count; i++) {
        print_key_and_name(out, i == 0 ? " axes=" : ",", mesh->axis[set[i].axis].name);
        for (uint32_t k = 0; k < set[i].count; k++)
            print_key_value(out, k == 0 ? ":" : "+", set[i].coordinates[k]);
    }
    text_putc(out, '\n');
}

/* Appends the axes of a bit mask, in mesh order; appends nothing if the mask is empty. */
static void print_axis_mask(struct text *out, const char *key, const struct mesh *mesh,
                            uint32_t mask)
{
    for (uint32_t a = 0; a < mesh->axis_count; a++)
        if (mask >> a & 1) {
            print_key_and_name(out, key, mesh->axis[a].name);
            key = ",";
        }
}

static void print_buffer_name(struct text *out, const struct ir *ir, uint32_t buffer)
{
    text_puts(out, ir->word[ir->buffer.stem[buffer]]);
    if (ir->buffer.number[buffer] != IR_NONE)
        text_put_i64(out, ir->buffer.number[buffer]);
}

static void print_token_layout_line(struct text *out, const struct ir *ir)
{
    const struct token_layout *layout = &ir->layout;
    if (layout->sequence_tokens == 0 && ir->global_batch == 0 && ir->micro_batch == 0 &&
        ir->dtype == 0)
        return;
    text_puts(out, "tokens");
    if (layout->sequence_tokens) {
        print_key_and_name(out, " layout=", layout_names[layout->kind]);
        print_key_value(out, " cp=", layout->cp);
        print_key_value(out, " hp=", layout->hp);
        print_key_value(out, " chunks=", layout->chunk_count);
        if (layout->chunk_tokens > 0)
            print_key_value(out, " chunk=", (uint64_t)layout->chunk_tokens);
        for (uint32_t i = 0; layout->tokens_by_chunk != NULL && i < layout->chunk_count; i++)
            print_key_value(out, i == 0 ? " lengths=" : ",", (uint64_t)layout->tokens_by_chunk[i]);
        print_key_value(out, " seq=", (uint64_t)layout->sequence_tokens);
    }
    if (ir->global_batch)
        print_key_value(out, " batch=", (uint64_t)ir->global_batch);
    if (ir->micro_batch)
        print_key_value(out, " micro_batch=", (uint64_t)ir->micro_batch);
    print_key_and_name(out, " dtype=", dtype_name((enum dtype)ir->dtype));
    text_putc(out, '\n');
}

static void print_deal(struct text *out, const struct token_deal *deal)
{
    uint32_t count;
    struct token_share *share = deal_shares_of_runs(deal, &count);
    for (uint32_t i = 0; i < count; i++)
        print_key_value(out, i == 0 ? " rows=" : ",", (uint64_t)share[i].row_count);
    for (uint32_t i = 0; i < count; i++)
        print_key_value(out, i == 0 ? " owners=" : ",", share[i].owner);
    free(share);
}

static void print_plan_tiles(struct text *out, const char *key, const struct tile_plan *plan,
                             bool backward)
{
    const char *before = key;
    for (uint32_t i = 0; i < plan->tile_count; i++) {
        const struct core_tile *t = &plan->tile[i];
        const int64_t number[] = {t->first_query, t->query_count, t->first_key,
                                  t->key_count,   t->rank,        t->round};
        for (size_t k = 0; k < ARRAY_LEN(number) && t->is_backward_tile == backward; k++) {
            print_key_value(out, before, (uint64_t)number[k]);
            before = ",";
        }
    }
}

/* Appends one line for each list of documents; if all sequences have the same list, the line names no sequences. */
static void print_documents(struct text *out, const struct ir *ir)
{
    const struct documents *d = &ir->documents;
    for (uint32_t l = 0; l < d->list_count; l++) {
        uint32_t users = 0;
        text_puts(out, "documents");
        for (uint32_t s = 0; s < d->sequence_count; s++)
            users += d->list_of_sequence[s] == l;
        for (uint32_t s = 0, n = 0; s < d->sequence_count && users < d->sequence_count; s++)
            if (d->list_of_sequence[s] == l)
                print_key_value(out, n++ == 0 ? " of=" : ",", s);
        for (uint32_t i = 0; i < d->list[l].document_count; i++)
            print_key_value(
                out, i == 0 ? " lengths=" : ",",
                (uint64_t)(d->list[l].document_end[i] - document_begin(&d->list[l], i)));
        if (d->list[l].deal != NULL)
            print_deal(out, d->list[l].deal);
        if (d->list[l].tiles != NULL) {
            print_plan_tiles(out, " tiles=", d->list[l].tiles, false);
            print_plan_tiles(out, " backward_tiles=", d->list[l].tiles, true);
            if (d->list[l].tiles->window > 0)
                print_key_value(out, " window=", (uint64_t)d->list[l].tiles->window);
        }
        text_putc(out, '\n');
    }
}

/* Appends one line for each list of shares. If there is only one list, its line does not name layers. */
static void print_routing(struct text *out, const struct ir *ir)
{
    const struct routing *r = &ir->routing;
    for (uint32_t list = 0; list < r->list_count; list++) {
        uint32_t n = 0;
        text_puts(out, "routing");
        print_key_value(out, " experts=", r->expert_count);
        print_key_value(out, " copies=", r->copies_per_token);
        print_key_value(out, " layers=", r->layer_count);
        for (uint32_t l = 0; l < r->layer_count && r->list_count > 1; l++)
            if (r->share_list_by_layer[l] == list)
                print_key_value(out, n++ == 0 ? " of=" : ",", l);
        if (r->capacity.capacity_factor_millionths > 0)
            print_key_value(out, " capacity=", (uint64_t)r->capacity.capacity_factor_millionths);
        text_puts(out, r->capacity.pads ? " pad=1" : "");
        text_puts(out, r->capacity.drop_policy == TOKEN_DROP_POSITION ? " positions=1" : "");
        text_puts(out, r->deals_experts_in_shuffled_order ? " spread=1" : "");
        for (uint32_t e = 0; e < r->expert_count; e++)
            print_key_value(out, e == 0 ? " shares=" : ",",
                            (uint64_t)r->expert_shares_by_list[list][e]);
        text_putc(out, '\n');
    }
}

static void print_arena(struct text *out, const struct ir *ir)
{
    const char *before = "arena ";
    for (int m = 0; m < MEMORY_COUNT; m++)
        if (ir->planned_bytes[m]) {
            print_key_and_name(out, before, memory_names[m]);
            print_key_value(out, "=", ir->planned_bytes[m]);
            before = " ";
        }
    text_puts(out, *before == ' ' ? "\n" : "");
}

/* True if there is no role, or only the role "all" that ir_add_op() adds if there is none. */
static bool has_default_role(const struct ir *ir)
{
    return ir->role_count == 0 || (ir->role_count == 1 && ir->role[0].axis_count == 0 &&
                                   strcmp(ir->role[0].name, "all") == 0);
}

static void print_head_lines(struct text *out, const struct ir *ir, int version)
{
    text_printf(out, "longhaul schedule %d\n", version);
    for (uint32_t a = 0; a < ir->mesh.axis_count; a++) {
        text_puts(out, a == 0 ? "mesh " : " ");
        text_puts(out, ir->mesh.axis[a].name);
        print_key_value(out, "=", ir->mesh.axis[a].size);
    }
    if (ir->mesh.axis_count > 0)
        text_putc(out, '\n');
    print_token_layout_line(out, ir);
    print_documents(out, ir);
    print_routing(out, ir);
    if (version == IR_TEXT_FLAT)
        print_arena(out, ir);
    for (uint32_t i = 0; i < ir->group_count; i++)
        print_group_or_role(out, &ir->mesh, "group ", ir->group[i].name, ir->group[i].axis,
                            ir->group[i].axis_count);
    for (uint32_t i = 0; i < ir->role_count && !has_default_role(ir); i++)
        print_group_or_role(out, &ir->mesh, "role ", ir->role[i].name, ir->role[i].axis,
                            ir->role[i].axis_count);
    for (uint32_t i = 0; i < ir->stream_count; i++) {
        print_key_and_name(out, "stream ", ir->stream[i].name);
        print_key_and_name(out, " ",
                           stream_class_name((enum stream_class)ir->stream[i].stream_class));
        text_putc(out, '\n');
    }
}

static void print_tensors_and_bundles(struct text *out, const struct ir *ir)
{
    for (uint32_t i = 0; i < ir->tensor_count; i++) {
        const struct tensor *tensor = &ir->tensor[i];
        print_key_and_name(out, "tensor ", tensor->name);
        print_key_value(out, " [", (uint64_t)tensor->rows);
        print_key_value(out, ",", (uint64_t)tensor->cols);
        text_putc(out, ']');
        print_axis_mask(out, " cut_rows=", &ir->mesh, tensor->axes_that_cut_rows_and_columns[0]);
        print_axis_mask(out, " cut_cols=", &ir->mesh, tensor->axes_that_cut_rows_and_columns[1]);
        if (tensor->first_row > 0)
            print_key_value(out, " from=", (uint64_t)tensor->first_row);
        if (tensor->padded_rows > 0)
            print_key_value(out, " padded=", (uint64_t)tensor->padded_rows);
        text_putc(out, '\n');
    }
    for (uint32_t i = 0; i < ir->bundle_count; i++) {
        const struct bundle *bundle = &ir->bundle[i];
        print_key_and_name(out, "bundle ", bundle->name);
        print_key_and_name(out, " first=", ir->tensor[bundle->tensor_begin].name);
        print_key_value(out, " count=", bundle->tensor_count);
        print_key_value(out, " elements=", bundle->elements);
        if (bundle->storage != FROZEN_STORAGE_16BIT)
            print_key_and_name(out, " storage=", frozen_storage_names[bundle->storage]);
        text_putc(out, '\n');
    }
}

static void print_binding(struct text *out, const struct ir *ir, const struct binding *binding)
{
    print_key_and_name(out, " bind=", binding_names[binding->kind]);
    if (binding->bundle != IR_NONE16)
        print_key_and_name(out, " bundle=", ir->bundle[binding->bundle].name);
    if (binding->shard_group != IR_NONE16)
        print_key_and_name(out, " shard=", ir->group[binding->shard_group].name);
    if (binding->gathered_group != IR_NONE16)
        print_key_and_name(out, " gathered=", ir->group[binding->gathered_group].name);
    print_axis_mask(out, " partial=", &ir->mesh, binding->partial_axes);
}

static void print_buffer_row(struct text *out, const struct ir *ir, uint32_t b, bool roles,
                             bool offsets)
{
    const struct buffer_table *t = &ir->buffer;
    const struct dims *dims = &ir->dims[t->dims[b]];
    text_puts(out, "buffer ");
    print_buffer_name(out, ir, b);
    print_key_and_name(out, " ", memory_names[t->memory[b]]);
    print_key_and_name(out, " ", dtype_name((enum dtype)t->dtype[b]));
    for (uint32_t i = 0; i < dims->count; i++)
        print_key_value(out, i == 0 ? " [" : ",", (uint64_t)dims->size[i]);
    print_key_and_name(out, "] ", category_names[t->category[b]]);
    if (roles)
        print_key_and_name(out, " role=", ir->role[t->role[b]].name);
    print_label(out, " layer=", t->layer[b]);
    if (t->binding[b] != IR_NONE16)
        print_binding(out, ir, &ir->binding[t->binding[b]]);
    /* bound buffers are persistent unless they are freed */
    if ((t->flags[b] & BUFFER_PERSISTENT) && (t->binding[b] == IR_NONE16 || t->free_count[b] > 0))
        text_puts(out, " persistent");
    if (t->flags[b] & BUFFER_PART)
        text_puts(out, " part");
    if (offsets && t->offset[b] != UINT64_MAX)
        print_key_value(out, " at=", t->offset[b]);
    for (uint32_t i = 0; i < t->free_count[b]; i++)
        print_key_value(out, i == 0 ? " free=" : ",", ir_free_set(ir, b)[i].i);
    text_putc(out, '\n');
}

static void print_params(struct text *out, const struct ir *ir, const struct work *work)
{
    const struct work_kind_info *info = work_kind_info((enum work_kind)work->kind);
    for (uint32_t i = 0; i < info->param_count; i++) {
        const struct work_param *param = &info->param[i];
        if (param->optional && work->p[i] == 0)
            continue;
        print_key_and_name(out, " ", param->name);
        text_putc(out, '=');
        if (param->is_value_group_id)
            text_puts(out, ir->group[work->p[i] - param->optional].name);
        else if (param->value_names)
            text_puts(out, param->value_names[work->p[i]]);
        else
            text_put_i64(out, work->p[i]);
    }
}

/* Appends `what` and the operands in rows begin .. begin + count - 1 of ir->operand; nothing if count is 0, where
 * ir->operand may be NULL. */
static void print_operands(struct text *out, const struct ir *ir, const char *what, uint32_t begin,
                           uint32_t count)
{
    if (count > 0)
        text_puts(out, what);
    for (uint32_t i = begin; i < begin + count; i++) {
        text_putc(out, ' ');
        struct view view = ir_view_of_operand(ir, ir->operand[i]);
        print_buffer_name(out, ir, view.buffer.i);
        if (!(ir->operand[i] & IR_OPERAND_IS_RANGE_ROW))
            continue;
        print_key_value(out, "[", view.begin);
        print_key_value(out, ":", view.begin + view.count);
        text_putc(out, ']');
    }
}

/* Appends an op as its line without the '\n'. */
static void print_op(struct text *out, const struct ir *ir, uint32_t op)
{
    const struct op_table *t = &ir->op;
    assert(op < t->count);
    print_key_value(out, "op ", op);
    print_key_and_name(out, " ", work_kind_info((enum work_kind)t->kind[op])->name);
    print_key_and_name(out, " ", ir->stream[t->stream[op]].name);
    print_params(out, ir, ir_work(ir, op));
    if (t->guard[op] != IR_NONE16) {
        const struct guard *guard = &ir->guard[t->guard[op]];
        print_key_and_name(out, " guard ", ir->group[guard->group].name);
        print_key_value(out, guard_signs[guard->comparison_kind], guard->value);
    }
    for (uint32_t i = 0; i < t->wait_count[op]; i++)
        print_key_value(out, i == 0 ? " waits " : ",", ir->wait[t->wait_begin[op] + i].i);
    uint32_t operand = t->operand_begin[op];
    print_operands(out, ir, " reads", operand, t->read_count[op]);
    print_operands(out, ir, " writes", operand + t->read_count[op], t->write_count[op]);
    if (t->phase[op] != PHASE_FORWARD)
        print_key_and_name(out, " phase=", phase_names[t->phase[op]]);
    if (t->region[op] != REGION_NONE)
        print_key_and_name(out, " region=", region_names[t->region[op]]);
    print_label(out, " layer=", t->layer[op]);
    print_label(out, " chunk=", t->chunk[op]);
    print_label(out, " step=", t->step[op]);
    print_label(out, " micro=", t->micro[op]);
}

/* Moves the lines in *out to *loops, where loops_roll() can roll them. Without *loops, writes *out to its file once it
 * is long. are_ops: the lines are those of ops. */
static void roll_or_write_lines(struct text *out, struct loops *loops, bool are_ops)
{
    if (!loops) {
        text_flush_to_file_if_long(out);
        return;
    }
    for (size_t begin = 0; begin < out->size;) {
        const char *line = out->data + begin;
        size_t size = (size_t)((char *)memchr(line, '\n', out->size - begin) - line);
        loops_add_line(loops, line, size, are_ops);
        begin += size + 1;
    }
    out->size = 0;
}

/* Appends the rows after the head, with their offsets. If loops is not NULL, adds them to *loops instead, without
 * offsets, and rolls them. */
static void print_rows_after_head(struct text *out, const struct ir *ir, struct loops *loops)
{
    bool roles = !has_default_role(ir);
    print_tensors_and_bundles(out, ir);
    roll_or_write_lines(out, loops, false);
    if (loops)
        loops_roll(loops, 0);
    uint64_t from = loops ? loops->count : 0;
    for (uint32_t b = 0; b < ir->buffer.count; b++) {
        print_buffer_row(out, ir, b, roles, !loops);
        roll_or_write_lines(out, loops, false);
    }
    if (loops)
        loops_roll(loops, from);
    for (uint32_t r = 0; r < ir->role_count; r++) {
        const struct role *role = &ir->role[r];
        if (roles && role->op_count > 0) {
            print_key_and_name(out, "ops ", role->name);
            text_putc(out, '\n');
            roll_or_write_lines(out, loops, false);
        }
        from = loops ? loops->count : 0;
        for (uint32_t op = role->op_begin; op - role->op_begin < role->op_count; op++) {
            print_op(out, ir, op);
            text_putc(out, '\n');
            roll_or_write_lines(out, loops, true);
        }
        if (loops)
            loops_roll(loops, from);
    }
}

void ir_print(struct text *out, const struct ir *ir)
{
    print_head_lines(out, ir, IR_TEXT_FLAT);
    print_rows_after_head(out, ir, NULL);
}

void ir_print_loops(struct text *out, const struct ir *ir)
{
    struct loops loops = {0};
    struct text rows = {0};
    print_head_lines(out, ir, IR_TEXT_LOOPS);
    print_rows_after_head(&rows, ir, &loops);
    loops_print(out, &loops);
    text_release(&rows);
    loops_release(&loops);
}

enum status ir_save(const struct ir *ir, const char *path, int version, struct diag *diag)
{
    struct file_set files = {0};
    struct text out;
    enum status status = file_set_begin(&files, diag);
    if (status == STATUS_OK)
        status = file_set_open_file(&files, path, &out, diag);
    if (status == STATUS_OK) {
        if (version == IR_TEXT_FLAT)
            ir_print(&out, ir);
        else
            ir_print_loops(&out, ir);
        status = file_set_close_file(&files, &out, diag);
    }
    if (status == STATUS_OK)
        status = file_set_end(&files, diag);
    file_set_release(&files);
    return status;
}

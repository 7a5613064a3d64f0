#include "cli/measure/operator_report.h"

#include "base/json_write.h"
#include "base/path.h"
#include "cli/common/output.h"
#include "cli/common/screen.h"
#include "cli/folder/stored.h"
#include "traces/kernel_times.h"
#include "traces/step_recording.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The width of the labels of the lines above the tables. */
enum { LABEL = 11 };

void compared_operators_release(struct compared_operators *o)
{
    free(o->row);
    arena_release(&o->arena);
    *o = (struct compared_operators){0};
}

/* ---- reading ---- */

/* A predicted operator, as prediction.json has it. */
struct predicted_operator {
    struct operator_key key;
    int64_t rank, calls;
    double seconds;
};

static enum status read_predicted_operator_from_json(struct compared_operators *o,
                                                     struct json_node node,
                                                     struct predicted_operator *row,
                                                     struct diag *diag)
{
    const char *op, *inputs, *dtype;
    enum status status = json_get_i64(node, "rank", 0, UINT32_MAX, &row->rank, diag);
    if (status == STATUS_OK)
        status = json_get_i64(node, "calls", 1, INT64_MAX, &row->calls, diag);
    if (status == STATUS_OK)
        status = json_get_double(node, "seconds", 0, HUGE_VAL, &row->seconds, diag);
    if (status == STATUS_OK)
        status = json_get_string(node, "operator", &op, diag);
    if (status != STATUS_OK)
        return status;
    row->key.op = arena_text(&o->arena, op, strlen(op));
    status = json_get_string(node, "inputs", &inputs, diag);
    if (status != STATUS_OK)
        return status;
    row->key.inputs = arena_text(&o->arena, inputs, strlen(inputs));
    status = json_get_string(node, "dtype", &dtype, diag);
    if (status == STATUS_OK)
        row->key.dtype = (uint8_t)step_dtype_of(dtype);
    return status;
}

/* Reads the operators of rank `rank` into row[] or, if the prediction lacks that rank, those of its first rank. Sets
 * *count to their number. row[] has room for all elements of the list. */
static enum status read_predicted_operators_from_json(struct compared_operators *o,
                                                      struct json_node list, uint32_t rank,
                                                      struct predicted_operator *row, size_t *count,
                                                      struct diag *diag)
{
    enum status status = STATUS_OK;
    const size_t all = json_element_count(list);
    int64_t taken = -1;
    for (size_t i = 0; i < all && status == STATUS_OK; i++) {
        status = read_predicted_operator_from_json(o, json_element_at(list, i), &row[i], diag);
        if (i == 0 || row[i].rank == rank)
            taken = row[i].rank;
    }
    *count = 0;
    for (size_t i = 0; i < all && status == STATUS_OK; i++)
        if (row[i].rank == taken)
            row[(*count)++] = row[i];
    return status;
}

/* ---- matching ---- */

static double absolute_difference_s(const struct compared_operator *row)
{
    return fabs(row->predicted_s - row->measured_s);
}

static int larger_difference_first(const void *left, const void *right)
{
    const struct compared_operator *a = left, *b = right;
    const bool is_a_matched = a->predicted_calls > 0 && a->measured_calls > 0,
               is_b_matched = b->predicted_calls > 0 && b->measured_calls > 0;
    if (is_a_matched != is_b_matched)
        return is_a_matched ? -1 : 1;
    if (absolute_difference_s(a) != absolute_difference_s(b))
        return absolute_difference_s(a) > absolute_difference_s(b) ? -1 : 1;
    const int order = strcmp(a->op, b->op);
    return order != 0 ? order : strcmp(a->inputs, b->inputs);
}

static void match_operators(struct compared_operators *o,
                            const struct predicted_operator *predicted, size_t count,
                            const struct kernel_times *times)
{
    const double steps = (double)times->step_count;
    /* [measured rows] 1 + the row of `o` for the operator of the measured row; 0: it has none yet */
    size_t *row_of = heap_zalloc(times->row_count + 1, sizeof *row_of);
    o->row = heap_zalloc(count + times->row_count + 1, sizeof *o->row);
    for (size_t i = 0; i < count; i++) {
        const struct operator_kernel_time *time = kernel_times_find(times, &predicted[i].key);
        size_t at = time != NULL ? row_of[time - times->rows] : 0;
        if (at == 0) {
            at = ++o->count;
            o->row[at - 1].op = predicted[i].key.op;
            o->row[at - 1].inputs = predicted[i].key.inputs;
        }
        struct compared_operator *row = &o->row[at - 1];
        row->predicted_calls += (double)predicted[i].calls;
        row->predicted_s += predicted[i].seconds;
        if (time != NULL)
            row_of[time - times->rows] = at;
    }
    for (size_t i = 0; i < times->row_count; i++) {
        const struct operator_kernel_time *time = &times->rows[i];
        const size_t at = row_of[i] > 0 ? row_of[i] : ++o->count;
        struct compared_operator *row = &o->row[at - 1];
        if (row_of[i] == 0) {
            row->op = arena_text(&o->arena, time->key.op, strlen(time->key.op));
            row->inputs = arena_text(&o->arena, time->key.inputs, strlen(time->key.inputs));
        }
        row->measured_calls = (double)time->call_count / steps;
        row->measured_s = time->total_s / steps;
    }
    free(row_of);
    o->kernels_of_unknown_operator_s = times->seconds_of_unassigned_kernels / steps;
    o->measured_s = o->kernels_of_unknown_operator_s;
    for (size_t i = 0; i < o->count; i++) {
        const struct compared_operator *row = &o->row[i];
        const bool pair = row->predicted_calls > 0 && row->measured_calls > 0;
        o->matched_count += pair;
        o->predicted_s += row->predicted_s;
        o->measured_s += row->measured_s;
        o->predicted_matched_s += pair ? row->predicted_s : 0;
        o->measured_matched_s += pair ? row->measured_s : 0;
    }
    qsort(o->row, o->count, sizeof *o->row, larger_difference_first);
}

static enum status compare_with_recording(struct compared_operators *o, struct json_node list,
                                          const char *measured, const struct text *text,
                                          uint32_t rank, struct diag *diag)
{
    struct predicted_operator *row = heap_zalloc(json_element_count(list) + 1, sizeof *row);
    struct kernel_times times = {0};
    size_t count = 0;
    enum status status = read_predicted_operators_from_json(o, list, rank, row, &count, diag);
    const char **name = heap_alloc(count + 1, sizeof *name);
    for (size_t i = 0; i < count; i++)
        name[i] = row[i].key.op;
    if (status == STATUS_OK)
        status = kernel_times_read(&times, measured, text->data, text->size, name, count, diag);
    if (status == STATUS_OK)
        match_operators(o, row, count, &times);
    kernel_times_release(&times);
    free((void *)name);
    free(row);
    return status;
}

enum status compared_operators_make(struct compared_operators *o, bool *found,
                                    const char *predicted, const char *measured,
                                    const struct text *text, uint32_t rank, struct diag *diag)
{
    struct stored_prediction stored = {0};
    struct text path = {0};
    enum status status = STATUS_OK;
    text_printf(&path, "%s/prediction.json", predicted);
    *found = false;
    if (path_exists(path.data)) {
        status = stored_prediction_load(&stored, predicted, diag);
        struct json_node list =
            status == STATUS_OK
                ? json_find_member(json_find_member(json_root(&stored.json), "recording"),
                                   "operators")
                : (struct json_node){0};
        *found = status == STATUS_OK && json_is_array(list);
        if (*found)
            status = compare_with_recording(o, list, measured, text, rank, diag);
    }
    stored_prediction_release(&stored);
    text_release(&path);
    return status;
}

/* ---- printing ---- */

/* A column has: key, label, label in a page, kind, width in text, description (cli/common/rows.h). */
/* clang-format off */
static const struct column matched_columns[] = {
    {"operator", "operator", NULL, COLUMN_PLAIN_TEXT, -30, "As the recorded step names it."},
    {"inputs", "inputs", NULL, COLUMN_PLAIN_TEXT, -32, "The shapes of its inputs that have one."},
    {"predicted_calls", "calls", "predicted calls", COLUMN_NUMBER, 6, "In a step."},
    {"measured_calls", "meas.", "measured calls", COLUMN_NUMBER, 6, "In a step, the mean of the recorded ones."},
    {"predicted_s", "predicted ms", NULL, COLUMN_SECONDS, 12, "Of all calls in a step."},
    {"measured_s", "measured ms", NULL, COLUMN_SECONDS, 12, "Of all calls in a step, the mean of the recorded ones."},
    {"error", "error", "error %", COLUMN_SIGNED_PERCENT, 9, "predicted / measured - 1."},
};
static const struct column unmatched_columns[] = {
    {"operator", "on one side only", NULL, COLUMN_PLAIN_TEXT, -30, "As the recorded step, or the profiler names it."},
    {"inputs", "inputs", NULL, COLUMN_PLAIN_TEXT, -32, "The shapes of its inputs that have one."},
    {"side", "side", NULL, COLUMN_PLAIN_TEXT, -9, "predicted or measured."},
    {"calls", "calls", NULL, COLUMN_NUMBER, 6, "In a step."},
    {"seconds", "ms", NULL, COLUMN_SECONDS, 12, "Of all calls in a step."},
};
/* clang-format on */

const struct row_table operator_tables[OPERATOR_TABLE_COUNT] = {
    [OPERATORS_MATCHED] = {"compare_operator", matched_columns, ARRAY_LEN(matched_columns)},
    [OPERATORS_UNMATCHED] = {"compare_operator_unmatched", unmatched_columns,
                             ARRAY_LEN(unmatched_columns)},
};

double compared_operators_matched_share(const struct compared_operators *o)
{
    const double predicted = o->predicted_s > 0 ? o->predicted_matched_s / o->predicted_s : 0,
                 measured = o->measured_s > 0 ? o->measured_matched_s / o->measured_s : 0;
    return fmin(predicted, measured);
}

/* The letters of shapes for which a line has room. */
enum { INPUTS_SHOWN = 32 };

/* Puts the shapes of inputs: JSON has all. People see at most INPUTS_SHOWN letters, of which the last three are "..."
 * if shapes are left out. */
static void put_inputs(struct rows *rows, const char *inputs)
{
    struct text first = {0};
    if (rows->json != NULL || strlen(inputs) <= INPUTS_SHOWN) {
        rows_put_text(rows, inputs);
        return;
    }
    text_printf(&first, "%.*s...", INPUTS_SHOWN - 3, inputs);
    rows_put_text(rows, first.data);
    text_release(&first);
}

static void put_matched_operators(struct rows *rows, const struct compared_operators *o,
                                  size_t most)
{
    rows_begin(rows, "operators", NULL, &operator_tables[OPERATORS_MATCHED]);
    for (size_t i = 0; i < o->matched_count && i < most; i++) {
        const struct compared_operator *row = &o->row[i];
        rows_put_text(rows, row->op);
        put_inputs(rows, row->inputs);
        rows_put_number(rows, row->predicted_calls);
        rows_put_number(rows, row->measured_calls);
        rows_put_number(rows, row->predicted_s);
        rows_put_number(rows, row->measured_s);
        rows_put_number(rows, comparison_signed_relative_error(row->predicted_s, row->measured_s));
    }
    rows_end(rows);
}

static void put_unmatched_operators(struct rows *rows, const struct compared_operators *o,
                                    size_t most)
{
    rows_begin(rows, "unmatched", NULL, &operator_tables[OPERATORS_UNMATCHED]);
    for (size_t i = o->matched_count; i < o->count && i - o->matched_count < most; i++) {
        const struct compared_operator *row = &o->row[i];
        const bool predicted = row->predicted_calls > 0;
        rows_put_text(rows, row->op);
        put_inputs(rows, row->inputs);
        rows_put_text(rows, predicted ? "predicted" : "measured");
        rows_put_number(rows, predicted ? row->predicted_calls : row->measured_calls);
        rows_put_number(rows, predicted ? row->predicted_s : row->measured_s);
    }
    rows_end(rows);
}

static void put_left_out_count(struct text *out, size_t rows, size_t shown)
{
    if (rows > shown)
        text_printf(out, "and %zu more, which --all prints\n", rows - shown);
}

void operator_report_print(struct text *out, const struct compare_report *report,
                           const struct compared_operators *o)
{
    const struct comparison *c = report->comparison;
    const size_t most = report->shows_all ? SIZE_MAX : report->listed_ops_max;
    const size_t unmatched = o->count - o->matched_count;
    static const char *const verdicts[] = {[VERDICT_WITHIN] = "the step is within the tolerance",
                                           [VERDICT_BEYOND] = "the step is beyond the tolerance",
                                           [VERDICT_NONE] = "none: too little was matched"};
    struct text lines = {0};
    struct rows rows = {.out = out};
    if (report->tolerance > 0)
        text_printf(&lines, "verdict    %s\n", verdicts[report->verdict]);
    text_printf(&lines, "step       predicted %.3f ms, measured %.3f ms, error %+.1f %%",
                1e3 * c->predicted.step_s, 1e3 * c->measured.step_s,
                100 * comparison_signed_relative_error(c->predicted.step_s, c->measured.step_s));
    if (c->measured_steps > 1)
        text_printf(&lines, "; median of %zu steps, %.3f to %.3f ms", c->measured_steps,
                    1e3 * c->shortest_step_s, 1e3 * c->longest_step_s);
    text_printf(&lines, "\npredicted  %s\nmeasured   %s\n", report->predicted_path,
                report->measured_path);
    text_printf(&lines,
                "kernels    predicted %.3f ms, measured %.3f ms a step; %zu operators by shapes "
                "have a partner: %.1f %% of the predicted time, %.1f %% of the measured\n",
                1e3 * o->predicted_s, 1e3 * o->measured_s, o->matched_count,
                o->predicted_s > 0 ? 100 * o->predicted_matched_s / o->predicted_s : 0,
                o->measured_s > 0 ? 100 * o->measured_matched_s / o->measured_s : 0);
    if (o->kernels_of_unknown_operator_s > 0)
        text_printf(&lines, "unknown    %.3f ms of kernels that no recorded operator launched\n",
                    1e3 * o->kernels_of_unknown_operator_s);
    screen_wrap_labelled(out, lines.data, LABEL, report->wrap_width);
    text_release(&lines);
    if (o->matched_count > 0 && most > 0) {
        text_putc(out, '\n');
        put_matched_operators(&rows, o, most);
        put_left_out_count(out, o->matched_count, most);
    }
    if (unmatched > 0 && most > 0) {
        text_putc(out, '\n');
        put_unmatched_operators(&rows, o, most);
        put_left_out_count(out, unmatched, most);
    }
}

void operator_report_print_json(struct text *out, const struct compare_report *report,
                                const struct compared_operators *o)
{
    const struct comparison *c = report->comparison;
    struct json_out json = {.out = out};
    struct rows rows = {.json = &json};
    command_begin_json(&json, "compare_operators");
    json_put_text(&json, "predicted", report->predicted_path);
    json_put_text(&json, "measured", report->measured_path);
    json_put_count(&json, "steps", c->measured_steps);
    json_put_number(&json, "predicted_step_s", c->predicted.step_s);
    json_put_number(&json, "measured_step_s", c->measured.step_s);
    json_put_number(&json, "step_error",
                    comparison_signed_relative_error(c->predicted.step_s, c->measured.step_s));
    json_put_number(&json, "predicted_kernels_s", o->predicted_s);
    json_put_number(&json, "measured_kernels_s", o->measured_s);
    json_put_number(&json, "unknown_kernels_s", o->kernels_of_unknown_operator_s);
    json_put_number(&json, "match_rate", compared_operators_matched_share(o));
    put_matched_operators(&rows, o, SIZE_MAX);
    put_unmatched_operators(&rows, o, SIZE_MAX);
    json_end_object(&json);
    text_putc(out, '\n');
}

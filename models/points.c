#include "models/points.h"

#include "base/utf8.h"
#include "traces/records.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum points_column {
    COLUMN_POINT_ROLE,
    COLUMN_KIND,
    COLUMN_PARAMS,
    COLUMN_IN_DTYPE,
    COLUMN_OUT_DTYPE,
    COLUMN_READ_OPERANDS,
    COLUMN_WRITE_OPERANDS,
    COLUMN_IMPL,
    COLUMN_MEDIAN,
    COLUMN_P10,
    COLUMN_P90,
    COLUMN_REPEATS,
    COLUMN_COUNT
};

static const char *const column_names[COLUMN_COUNT] = {
    "measured", "kind", "params",   "in",    "out",   "reads",
    "writes",   "impl", "median_s", "p10_s", "p90_s", "repeats",
};

static const char *const role_names[POINT_ROLE_COUNT] = {
#define POINT_ROLE_ROW(symbol, name, meaning) name,
    POINT_ROLES(POINT_ROLE_ROW)
#undef POINT_ROLE_ROW
};

/* A file may not give a time of this many seconds or more: no op takes as long, and sums of shorter times stay
 * finite. */
static const double LONGEST_S = 1e9;

bool point_is_of_op_running_alone(const struct point *point)
{
    return point->role == POINT_WORK || point->role == POINT_STEP;
}

const char *point_role_name(enum point_role role)
{
    assert(role < POINT_ROLE_COUNT);
    return role_names[role];
}

void points_release(struct points *points)
{
    arena_release(&points->arena);
    free(points->header_line);
    free(points->row);
    *points = (struct points){0};
}

void points_add_header_line(struct points *points, struct loc at, const char *key,
                            const char *value)
{
    if (points->header_count == points->header_capacity) {
        points->header_capacity =
            heap_next_capacity(points->header_capacity, points->header_count + 1);
        points->header_line =
            heap_realloc(points->header_line, points->header_capacity, sizeof *points->header_line);
    }
    points->header_line[points->header_count++] =
        (struct points_header_line){at, arena_text(&points->arena, key, strlen(key)),
                                    arena_text(&points->arena, value, strlen(value))};
}

void points_add(struct points *points, const struct point *point)
{
    if (points->count == points->capacity) {
        points->capacity = heap_next_capacity(points->capacity, points->count + 1);
        points->row = heap_realloc(points->row, points->capacity, sizeof *points->row);
    }
    points->row[points->count++] = *point;
}

const char *points_header_value(const struct points *points, const char *key)
{
    for (size_t i = 0; i < points->header_count; i++)
        if (strcmp(points->header_line[i].key, key) == 0)
            return points->header_line[i].value;
    return NULL;
}

/* ---- reading ---- */

struct reader {
    struct points *points;
    const char *name; /* in the arena */
    size_t first_header_line_index;
    bool has_column_names;
    uint16_t nodes;
    bool loopback;
};

static enum status read_comment(void *context, struct loc at, const char *text, size_t size,
                                struct diag *diag)
{
    struct reader *reader = context;
    at.name = reader->name;
    while (size > 0 && (*text == ' ' || *text == '\t')) {
        text++;
        size--;
    }
    if (size == 0)
        return STATUS_OK;
    if (reader->has_column_names)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "a header line (# key=value) must stand above the column names");
    const char *equals = memchr(text, '=', size);
    if (equals == NULL || equals == text)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "this header line has no key before an '=': expected '# key=value'");
    struct points *points = reader->points;
    const char *key = arena_text(&points->arena, text, (size_t)(equals - text));
    const char *value = arena_text(&points->arena, equals + 1, size - (size_t)(equals - text) - 1);
    if (!utf8_is_valid(key) || !utf8_is_valid(value))
        return diag_error(
            diag, at, STATUS_BAD_INPUT,
            "this header line is not UTF-8, but it is copied into the device file, which must be");
    for (size_t i = reader->first_header_line_index; i < points->header_count; i++)
        if (strcmp(points->header_line[i].key, key) == 0)
            return diag_error(diag, at, STATUS_BAD_INPUT, "header key '%s' stands twice", key);
    int64_t nodes;
    if (strcmp(key, "nodes") == 0) {
        if (!parse_i64(value, strlen(value), &nodes) || nodes < 1 || nodes > UINT16_MAX)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "nodes=%s: expected a number from 1 to "
                              "%d",
                              value, UINT16_MAX);
        reader->nodes = (uint16_t)nodes;
    } else if (strcmp(key, "loopback") == 0) {
        reader->loopback = true;
    }
    points_add_header_line(points, at, key, value);
    return STATUS_OK;
}

static enum status field_error(const struct record *record, enum points_column column,
                               struct diag *diag, const char *wanted)
{
    return records_report_field(record, column_names[column], diag, "'%s' is not %s",
                                record->fields[column], wanted);
}

static enum status report_bad_point_role(const struct record *record, struct diag *diag)
{
    struct text roles = {0};
    for (int i = 0; i < POINT_ROLE_COUNT; i++)
        text_printf(&roles, "%s%s",
                    i == 0                     ? ""
                    : i + 1 < POINT_ROLE_COUNT ? ", "
                                               : " or ",
                    role_names[i]);
    enum status status = field_error(record, COLUMN_POINT_ROLE, diag, roles.data);
    text_release(&roles);
    return status;
}

static bool parse_param_value(const struct work_param *param, const char *text, size_t size,
                              int64_t *value)
{
    for (uint8_t i = 0; i < param->value_count; i++)
        if (strlen(param->value_names[i]) == size &&
            memcmp(param->value_names[i], text, size) == 0) {
            *value = i;
            return true;
        }
    if (param->value_names || !parse_i64(text, size, value))
        return false;
    int64_t least = param->is_signed ? INT64_MIN : param->optional ? 0 : 1;
    return *value >= least && *value <= INT64_MAX / 2;
}

/* Reads parameters such as "m=512 n=64". Each required one must be given, and none twice. */
static enum status read_params(const struct record *record, struct work *work, struct diag *diag)
{
    const struct work_kind_info *info = work_kind_info((enum work_kind)work->kind);
    const char *column = column_names[COLUMN_PARAMS];
    bool given[WORK_PARAMS_MAX] = {false};
    for (const char *at = record->fields[COLUMN_PARAMS]; *(at += strspn(at, " "));) {
        size_t size = strcspn(at, " "), i = 0;
        const char *equals = memchr(at, '=', size);
        size_t name_size = equals ? (size_t)(equals - at) : size;
        while (i < info->param_count && (strlen(info->param[i].name) != name_size ||
                                         memcmp(info->param[i].name, at, name_size) != 0))
            i++;
        if (!equals || i == info->param_count)
            return records_report_field(record, column, diag, "'%.*s' is no parameter of %s",
                                        (int)(size < 60 ? size : 60), at, info->name);
        if (given[i])
            return records_report_field(record, column, diag, "%s stands twice",
                                        info->param[i].name);
        given[i] = true;
        if (!parse_param_value(&info->param[i], equals + 1, size - name_size - 1, &work->p[i]))
            return records_report_field(record, column, diag, "'%.*s' is no value of %s",
                                        (int)(size < 60 ? size : 60), at, info->param[i].name);
        at += size;
    }
    for (size_t i = 0; i < info->param_count; i++)
        if (!given[i] && !info->param[i].optional)
            return records_report_field(record, column, diag, "%s has no %s", info->name,
                                        info->param[i].name);
    return STATUS_OK;
}

/* Fails unless the number of K/V heads of an attention divides its number of heads: formulas rely on it. */
static enum status check_kv_heads_divide_heads(const struct record *record, const struct work *work,
                                               struct diag *diag)
{
    bool attention = work->kind == WORK_ATTENTION || work->kind == WORK_ATTENTION_BACKWARD;
    if (attention && work->attention.heads % work->attention.kv_heads != 0)
        return records_report_field(
            record, column_names[COLUMN_PARAMS], diag, "%lld heads cannot share %lld kv_heads",
            (long long)work->attention.heads, (long long)work->attention.kv_heads);
    return STATUS_OK;
}

static enum status read_dtypes(const struct record *record, struct work *work, struct diag *diag)
{
    enum dtype in = DTYPE_F32, out = DTYPE_F32;
    bool has_in = record->field_sizes[COLUMN_IN_DTYPE] > 0,
         has_out = record->field_sizes[COLUMN_OUT_DTYPE] > 0;
    if (has_in &&
        !dtype_find(record->fields[COLUMN_IN_DTYPE], record->field_sizes[COLUMN_IN_DTYPE], &in))
        return field_error(record, COLUMN_IN_DTYPE, diag, "a dtype");
    if (has_out &&
        !dtype_find(record->fields[COLUMN_OUT_DTYPE], record->field_sizes[COLUMN_OUT_DTYPE], &out))
        return field_error(record, COLUMN_OUT_DTYPE, diag, "a dtype");
    work->in = (uint8_t)(has_in ? in : out);
    work->out = (uint8_t)(has_out ? out : in);
    return STATUS_OK;
}

static enum status read_operands(const struct record *record, struct work *work, struct diag *diag)
{
    const struct work_kind_info *info = work_kind_info((enum work_kind)work->kind);
    int64_t reads, writes;
    if (!parse_i64(record->fields[COLUMN_READ_OPERANDS], record->field_sizes[COLUMN_READ_OPERANDS],
                   &reads) ||
        reads < info->reads_min || reads > info->reads_max)
        return field_error(record, COLUMN_READ_OPERANDS, diag, "a number of reads of this kind");
    if (!parse_i64(record->fields[COLUMN_WRITE_OPERANDS],
                   record->field_sizes[COLUMN_WRITE_OPERANDS], &writes) ||
        writes < info->writes_min || writes > info->writes_max)
        return field_error(record, COLUMN_WRITE_OPERANDS, diag, "a number of writes of this kind");
    work->reads = (uint8_t)reads;
    work->writes = (uint8_t)writes;
    return STATUS_OK;
}

static enum status read_times(const struct record *record, struct point *point, struct diag *diag)
{
    const struct {
        enum points_column column;
        double *value;
    } times[] = {
        {COLUMN_MEDIAN, &point->median_s},
        {COLUMN_P10, &point->p10_s},
        {COLUMN_P90, &point->p90_s},
    };
    for (size_t i = 0; i < ARRAY_LEN(times); i++)
        if (!parse_double(record->fields[times[i].column], record->field_sizes[times[i].column],
                          times[i].value) ||
            !(*times[i].value > 0 && *times[i].value < LONGEST_S))
            return field_error(record, times[i].column, diag, "a time in seconds, above 0");
    if (point->p10_s > point->median_s || point->median_s > point->p90_s)
        return records_report_field(record, column_names[COLUMN_MEDIAN], diag,
                                    "%s does not lie between p10_s and p90_s",
                                    record->fields[COLUMN_MEDIAN]);
    if (!parse_i64(record->fields[COLUMN_REPEATS], record->field_sizes[COLUMN_REPEATS],
                   &point->repeats) ||
        point->repeats < 1)
        return field_error(record, COLUMN_REPEATS, diag, "a number of repeats, at least 1");
    return STATUS_OK;
}

static enum status read_impl(const struct record *record, struct point *point, struct diag *diag)
{
    bool attention = point->work.kind == WORK_ATTENTION ||
                     point->work.kind == WORK_ATTENTION_BACKWARD || point->work.kind == WORK_MERGE;
    enum attention_impl impl = ATTENTION_IMPL_COUNT;
    if (attention) {
        if (!attention_impl_find(record->fields[COLUMN_IMPL], record->field_sizes[COLUMN_IMPL],
                                 &impl))
            return field_error(record, COLUMN_IMPL, diag, "an implementation of attention");
    } else if (record->field_sizes[COLUMN_IMPL] > 0) {
        return records_report_field(record, column_names[COLUMN_IMPL], diag,
                                    "only attention and merges have implementations");
    }
    point->attention_impl = (uint8_t)impl;
    return STATUS_OK;
}

static enum status read_row(void *context, const struct record *borrowed, struct diag *diag)
{
    struct reader *reader = context;
    struct record record = *borrowed;
    record.place.name = reader->name;
    if (!reader->has_column_names) {
        reader->has_column_names = true;
        return records_check_columns(&record, column_names, COLUMN_COUNT, 0, diag);
    }
    if (record.field_count != COLUMN_COUNT)
        return diag_error(diag, record.place, STATUS_BAD_INPUT, "%zu fields; there are %d columns",
                          record.field_count, COLUMN_COUNT);
    struct point point = {.at = record.place,
                          .role = POINT_ROLE_COUNT,
                          .nodes = reader->nodes,
                          .loopback = reader->loopback};
    for (int i = 0; i < POINT_ROLE_COUNT; i++)
        if (strcmp(record.fields[COLUMN_POINT_ROLE], role_names[i]) == 0)
            point.role = (uint8_t)i;
    if (point.role == POINT_ROLE_COUNT)
        return report_bad_point_role(&record, diag);
    enum work_kind kind;
    if (!work_kind_find(record.fields[COLUMN_KIND], record.field_sizes[COLUMN_KIND], &kind))
        return field_error(&record, COLUMN_KIND, diag, "a kind of work");
    point.work.kind = (uint8_t)kind;
    enum status status = read_params(&record, &point.work, diag);
    if (status == STATUS_OK)
        status = check_kv_heads_divide_heads(&record, &point.work, diag);
    if (status == STATUS_OK)
        status = read_dtypes(&record, &point.work, diag);
    if (status == STATUS_OK)
        status = read_operands(&record, &point.work, diag);
    if (status == STATUS_OK)
        status = read_impl(&record, &point, diag);
    if (status == STATUS_OK)
        status = read_times(&record, &point, diag);
    if (status == STATUS_OK)
        points_add(reader->points, &point);
    return status;
}

enum status points_parse(struct points *points, const char *name, const char *data, size_t size,
                         struct diag *diag)
{
    struct reader reader = {.points = points,
                            .name = arena_text(&points->arena, name, strlen(name)),
                            .first_header_line_index = points->header_count,
                            .nodes = 1};
    const struct record_handler handler = {&reader, read_row, read_comment};
    enum status status = records_parse(name, data, size, &handler, diag);
    if (status == STATUS_OK && !reader.has_column_names)
        status = diag_error(diag, (struct loc){.name = reader.name}, STATUS_BAD_INPUT,
                            "has no line of column names, which starts with '%s,%s,%s,...'",
                            column_names[0], column_names[1], column_names[2]);
    return status;
}

enum status points_load(struct points *points, const char *path, struct diag *diag)
{
    struct text text = {0};
    enum status status = text_read(&text, path, diag);
    if (status == STATUS_OK)
        status = points_parse(points, path, text.data ? text.data : "", text.size, diag);
    text_release(&text);
    return status;
}

/* ---- printing ---- */

void points_print_params(const struct work *work, struct text *out)
{
    const struct work_kind_info *info = work_kind_info((enum work_kind)work->kind);
    const char *separator = "";
    for (size_t i = 0; i < info->param_count; i++) {
        const struct work_param *param = &info->param[i];
        if (param->optional && work->p[i] == 0)
            continue;
        text_printf(out, "%s%s=", separator, param->name);
        if (param->value_names)
            text_puts(out, param->value_names[work->p[i]]);
        else
            text_put_i64(out, work->p[i]);
        separator = " ";
    }
}

static void print_row(const struct point *point, struct text *out)
{
    const struct work_kind_info *info = work_kind_info((enum work_kind)point->work.kind);
    bool has_dtype = info->reads_max + info->writes_max > 0;
    const struct work *work = &point->work;
    text_printf(out, "%s,%s,", role_names[point->role], info->name);
    points_print_params(work, out);
    text_printf(out, ",%s,%s,", has_dtype ? dtype_name((enum dtype)work->in) : "",
                has_dtype ? dtype_name((enum dtype)work->out) : "");
    text_printf(out, "%d,%d,%s", work->reads ? work->reads : info->reads_min,
                work->writes ? work->writes : info->writes_min,
                point->attention_impl < POINT_NO_IMPL
                    ? attention_impl_name((enum attention_impl)point->attention_impl)
                    : "");
    const double times[] = {point->median_s, point->p10_s, point->p90_s};
    for (size_t i = 0; i < ARRAY_LEN(times); i++)
        text_printf(out, ",%.6g", times[i]); /* six digits, since no clock is more precise */
    text_putc(out, ',');
    text_put_i64(out, point->repeats);
    text_putc(out, '\n');
}

void points_print(const struct points *points, struct text *out)
{
    for (size_t i = 0; i < points->header_count; i++)
        text_printf(out, "# %s=%s\n", points->header_line[i].key, points->header_line[i].value);
    for (int i = 0; i < COLUMN_COUNT; i++)
        text_printf(out, "%s%s", i > 0 ? "," : "", column_names[i]);
    text_putc(out, '\n');
    for (size_t i = 0; i < points->count; i++)
        print_row(&points->row[i], out);
}

#include "traces/csv.h"

#include "traces/records.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum column_type { COLUMN_U32, COLUMN_I32, COLUMN_LABEL, COLUMN_TIME, COLUMN_AMOUNT };

enum { COLUMN_LIMIT = 16 };

/* The columns of one of the two tables of a trace, ops or memory, and the functions that access the table. */
struct trace_table_description {
    const char *const *names;
    const enum column_type *types;
    /* optional_count: how many of the last columns a file may lack. They have type I32, and are -1 if the file lacks
     * them. */
    size_t column_count, optional_count;
    /* the columns of a row's start and of its end, which must not be before the start; 0, 0: there are none */
    size_t start_column, end_column;
    size_t (*add)(struct trace *trace);              /* appends a row and returns its index */
    size_t (*count_rows)(const struct trace *trace); /* returns the number of rows */
    /* Sets column[] to the trace's arrays, in the order of the columns. Call it again after a row was added: the arrays
     * may have moved. */
    void (*arrays)(const struct trace *trace, void *column[]);
};

#define NAME(name, type) #name,
#define COLUMN_TYPE(name, type) COLUMN_##type,
#define COLUMN_INDEX(name, type) OP_##name,
enum { TRACE_OP_COLUMNS(COLUMN_INDEX) OP_COLUMN_COUNT };
static const char *const op_names[] = {TRACE_OP_COLUMNS(NAME)};
static const enum column_type op_types[] = {TRACE_OP_COLUMNS(COLUMN_TYPE)};
static const char *const memory_names[] = {TRACE_MEMORY_COLUMNS(NAME)};
static const enum column_type memory_types[] = {TRACE_MEMORY_COLUMNS(COLUMN_TYPE)};
#undef NAME
#undef COLUMN_TYPE
#undef COLUMN_INDEX

static size_t trace_op_row_count(const struct trace *trace)
{
    return trace->ops.count;
}

static size_t trace_memory_row_count(const struct trace *trace)
{
    return trace->memory.count;
}

static void list_op_column_arrays(const struct trace *trace, void *column[])
{
    size_t i = 0;
#define COLUMN_ARRAY(name, type) column[i++] = trace->ops.name;
    TRACE_OP_COLUMNS(COLUMN_ARRAY)
#undef COLUMN_ARRAY
}

static void list_memory_column_arrays(const struct trace *trace, void *column[])
{
    size_t i = 0;
#define COLUMN_ARRAY(name, type) column[i++] = trace->memory.name;
    TRACE_MEMORY_COLUMNS(COLUMN_ARRAY)
#undef COLUMN_ARRAY
}

static const struct trace_table_description op_table = {
    .names = op_names,
    .types = op_types,
    .column_count = ARRAY_LEN(op_names),
    .optional_count = TRACE_OP_COLUMNS_OPTIONAL,
    .start_column = OP_start_s,
    .end_column = OP_end_s,
    .add = trace_add_op,
    .count_rows = trace_op_row_count,
    .arrays = list_op_column_arrays,
};
static const struct trace_table_description memory_table = {
    .names = memory_names,
    .types = memory_types,
    .column_count = ARRAY_LEN(memory_names),
    .add = trace_add_memory,
    .count_rows = trace_memory_row_count,
    .arrays = list_memory_column_arrays,
};

/* ---- printing ---- */

static void append_header(const struct trace *trace, struct text *out)
{
    for (size_t i = 0; i < trace->header_count; i++) {
        text_puts(out, "# ");
        text_puts(out, trace->header_keys[i].key);
        text_putc(out, '=');
        for (const char *c = trace->header_keys[i].value; *c; c++) {
            if (*c == '\n')
                text_puts(out, "\\n");
            else if (*c == '\r')
                text_puts(out, "\\r");
            else if (*c == '\\')
                text_puts(out, "\\\\");
            else
                text_putc(out, *c);
        }
        text_putc(out, '\n');
    }
}

/* The last time that was printed, and its digits. Converting a double takes most of the time of a row, and a row often
 * starts at the time at which the row before it ended; then these digits are printed again. */
struct last_printed_time {
    double value;
    size_t digit_count; /* 0: no number has been printed yet */
    char digits[32];
};

static void append_time(struct text *out, struct last_printed_time *last, double value)
{
    if (last->digit_count == 0 || memcmp(&last->value, &value, sizeof value) != 0) {
        size_t from = out->size;
        text_put_double(out, value);
        last->value = value;
        last->digit_count = out->size - from;
        assert(last->digit_count <= sizeof last->digits);
        memcpy(last->digits, out->data + from, last->digit_count);
        return;
    }
    text_append(out, last->digits, last->digit_count);
}

/* Returns an array of all labels, quoted as the file has them. The caller releases each text and frees the array. */
static struct text *quote_labels(const struct trace *trace)
{
    struct text *quoted = heap_zalloc(trace->label_count + 1, sizeof *quoted);
    for (size_t i = 0; i < trace->label_count; i++)
        records_append_field(&quoted[i], trace->labels[i]);
    return quoted;
}

static void print_table(const struct trace *trace, const struct trace_table_description *table,
                        struct text *out)
{
    void *column[COLUMN_LIMIT];
    assert(table->column_count <= COLUMN_LIMIT);
    table->arrays(trace, column);
    struct text *label = quote_labels(trace);
    struct last_printed_time last = {0};

    append_header(trace, out);
    for (size_t c = 0; c < table->column_count; c++) {
        text_puts(out, table->names[c]);
        text_putc(out, c + 1 < table->column_count ? ',' : '\n');
    }
    size_t rows = table->count_rows(trace);
    for (size_t row = 0; row < rows; row++) {
        text_flush_to_file_if_long(out);
        for (size_t c = 0; c < table->column_count; c++) {
            switch (table->types[c]) {
            case COLUMN_U32:
                text_put_i64(out, ((const uint32_t *)column[c])[row]);
                break;
            case COLUMN_I32:
                text_put_i64(out, ((const int32_t *)column[c])[row]);
                break;
            case COLUMN_LABEL: {
                size_t id = ((const uint16_t *)column[c])[row];
                assert(id < trace->label_count);
                text_append(out, label[id].data, label[id].size);
                break;
            }
            case COLUMN_TIME:
            case COLUMN_AMOUNT: {
                double value = ((const double *)column[c])[row];
                assert(fabs(value) <= TRACE_MAGNITUDE_MAX);
                if (table->types[c] == COLUMN_TIME)
                    append_time(out, &last, value);
                else
                    text_put_double(out, value);
                break;
            }
            }
            text_putc(out, c + 1 < table->column_count ? ',' : '\n');
        }
    }
    for (size_t i = 0; i < trace->label_count; i++)
        text_release(&label[i]);
    free(label);
}

void trace_print_ops(const struct trace *trace, struct text *out)
{
    print_table(trace, &op_table, out);
}

void trace_print_memory(const struct trace *trace, struct text *out)
{
    print_table(trace, &memory_table, out);
}

/* ---- reading ---- */

struct reader {
    struct trace *trace;
    const struct trace_table_description *table;
    bool has_read_header; /* the line of column names has been read; rows follow */
    size_t column_count;  /* number of columns in the file */
    /* for each column, its label in the row before: it is often the same, and then need not be looked up */
    uint16_t last_label_by_column[COLUMN_LIMIT];
};

static enum status read_comment(void *context, struct loc at, const char *text, size_t size,
                                struct diag *diag)
{
    struct reader *reader = context;
    if (reader->has_read_header)
        return diag_error(
            diag, at, STATUS_BAD_INPUT,
            "this comment stands among the rows; comments must stand before the column names");
    if (size > 0 && *text == ' ') {
        text++;
        size--;
    }
    const char *equals = size > 0 ? memchr(text, '=', size) : NULL;
    if (!equals || !trace_is_key(text, (size_t)(equals - text)) || memchr(text, '\r', size))
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "expected '# key=value', the key in printable ASCII");
    enum status status = STATUS_OK;
    struct text key = {0}, value = {0};
    text_append(&key, text, (size_t)(equals - text));
    text_puts(&value, "");
    for (const char *c = equals + 1, *end = text + size; c < end; c++) {
        if (*c != '\\') {
            text_putc(&value, *c);
            continue;
        }
        c++;
        if (c == end || (*c != 'n' && *c != 'r' && *c != '\\')) {
            status =
                diag_error(diag, at, STATUS_BAD_INPUT,
                           "%s: a '\\' that is none of \"\\\\\", \"\\n\" and \"\\r\"", key.data);
            goto out;
        }
        text_putc(&value, *c == 'n' ? '\n' : *c == 'r' ? '\r' : '\\');
    }
    const char *old = trace_get_key(reader->trace, key.data);
    if (old && strcmp(old, value.data) != 0)
        status = diag_error(
            diag, at, STATUS_BAD_INPUT,
            "%s is '%s' here and was '%s' before: a trace must not hold rows of two runs", key.data,
            value.data, old);
    else if (!old)
        trace_set_key(reader->trace, key.data, value.data);
out:
    text_release(&key);
    text_release(&value);
    return status;
}

static enum status read_label(struct reader *reader, const struct record *record, size_t c,
                              uint16_t *label, struct diag *diag)
{
    struct trace *trace = reader->trace;
    const char *last = trace->labels[reader->last_label_by_column[c]];
    if (strcmp(last, record->fields[c]) != 0 &&
        !trace_find_or_add_label(trace, record->fields[c], record->field_sizes[c],
                                 &reader->last_label_by_column[c]))
        return records_report_field(record, reader->table->names[c], diag,
                                    "more than %d different texts", TRACE_LABEL_LIMIT);
    *label = reader->last_label_by_column[c];
    return STATUS_OK;
}

/* Reads the number in column c of a row: into *whole if the column has whole numbers, else into *real. */
static enum status read_number(const struct record *record, size_t c,
                               const struct trace_table_description *table, int64_t *whole,
                               double *real, struct diag *diag)
{
    static const struct {
        int64_t low, high;
        const char *expected;
    } ranges[] = {
        [COLUMN_U32] = {0, UINT32_MAX, "a whole number from 0 to 4294967295"},
        [COLUMN_I32] = {-1, INT32_MAX, "a whole number from -1 to 2147483647"},
        [COLUMN_TIME] = {0, 0, "a number of at most 1e100"},
        [COLUMN_AMOUNT] = {0, 0, "a number from 0 to 1e100"},
    };
    enum column_type type = table->types[c];
    const char *field = record->fields[c];
    bool is_valid;
    if (type == COLUMN_U32 || type == COLUMN_I32)
        is_valid = parse_i64(field, record->field_sizes[c], whole) && *whole >= ranges[type].low &&
                   *whole <= ranges[type].high;
    else
        is_valid = parse_double(field, record->field_sizes[c], real) &&
                   fabs(*real) <= TRACE_MAGNITUDE_MAX && (type == COLUMN_TIME || *real >= 0);
    if (is_valid)
        return STATUS_OK;
    return records_report_field(record, table->names[c], diag, "expected %s, not '%s'",
                                ranges[type].expected, field);
}

static enum status read_row(struct reader *reader, const struct record *record, struct diag *diag)
{
    const struct trace_table_description *table = reader->table;
    union {
        int64_t whole;
        double real;
        uint16_t label;
    } value[COLUMN_LIMIT] = {0};
    if (record->field_count != reader->column_count)
        return diag_error(diag, record->place, STATUS_BAD_INPUT,
                          "%zu fields, expected %zu as in the line of column names",
                          record->field_count, reader->column_count);
    for (size_t c = reader->column_count; c < table->column_count; c++)
        value[c].whole = -1;
    for (size_t c = 0; c < reader->column_count; c++) {
        enum status status =
            table->types[c] == COLUMN_LABEL
                ? read_label(reader, record, c, &value[c].label, diag)
                : read_number(record, c, table, &value[c].whole, &value[c].real, diag);
        if (status != STATUS_OK)
            return status;
    }
    if (table->end_column > 0 && value[table->end_column].real < value[table->start_column].real)
        return records_report_field(record, table->names[table->end_column], diag,
                                    "%s is before %s, %s", record->fields[table->end_column],
                                    table->names[table->start_column],
                                    record->fields[table->start_column]);

    size_t row = table->add(reader->trace);
    void *column[COLUMN_LIMIT];
    table->arrays(reader->trace, column);
    for (size_t c = 0; c < table->column_count; c++)
        switch (table->types[c]) {
        case COLUMN_U32:
            ((uint32_t *)column[c])[row] = (uint32_t)value[c].whole;
            break;
        case COLUMN_I32:
            ((int32_t *)column[c])[row] = (int32_t)value[c].whole;
            break;
        case COLUMN_LABEL:
            ((uint16_t *)column[c])[row] = value[c].label;
            break;
        case COLUMN_TIME:
        case COLUMN_AMOUNT:
            ((double *)column[c])[row] = value[c].real;
            break;
        }
    return STATUS_OK;
}

static enum status read_record(void *context, const struct record *record, struct diag *diag)
{
    struct reader *reader = context;
    if (reader->has_read_header)
        return read_row(reader, record, diag);
    reader->has_read_header = true;
    reader->column_count = record->field_count;
    return records_check_columns(record, reader->table->names, reader->table->column_count,
                                 reader->table->optional_count, diag);
}

static enum status parse_table(struct trace *trace, const struct trace_table_description *table,
                               const char *name, const char *data, size_t size, struct diag *diag)
{
    assert(table->column_count <= COLUMN_LIMIT);
    /* label 0 must be the empty text, since reader.last_label_by_column[] begins with it */
    trace_intern_label(trace, "");
    struct reader reader = {.trace = trace, .table = table};
    struct record_handler handler = {&reader, read_record, read_comment};
    enum status status = records_parse(name, data, size, &handler, diag);
    if (status != STATUS_OK)
        return status;
    struct loc at = {.name = name};
    if (!reader.has_read_header)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "no line of column names: expected '%s,%s,...'", table->names[0],
                          table->names[1]);
    if (data[size - 1] != '\n')
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "the last row has no line end: the file was cut off");
    return STATUS_OK;
}

enum status trace_parse_ops(struct trace *trace, const char *name, const char *data, size_t size,
                            struct diag *diag)
{
    return parse_table(trace, &op_table, name, data, size, diag);
}

enum status trace_parse_memory(struct trace *trace, const char *name, const char *data, size_t size,
                               struct diag *diag)
{
    return parse_table(trace, &memory_table, name, data, size, diag);
}

/* ---- files ---- */

static enum status load_table(struct trace *trace, const struct trace_table_description *table,
                              const char *path, struct diag *diag)
{
    struct text text = {0};
    enum status status = text_read(&text, path, diag);
    if (status == STATUS_OK)
        status = parse_table(trace, table, path, text.data, text.size, diag);
    text_release(&text);
    return status;
}

enum status trace_load_ops(struct trace *trace, const char *path, struct diag *diag)
{
    return load_table(trace, &op_table, path, diag);
}

enum status trace_load_memory(struct trace *trace, const char *path, struct diag *diag)
{
    return load_table(trace, &memory_table, path, diag);
}

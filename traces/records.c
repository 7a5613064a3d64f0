#include "traces/records.h"

#include "base/arena.h"
#include "base/c_locale.h"

#include <assert.h>
#include <csv.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* libcsv is given at most this many bytes at once; the limits are checked after each piece. */
enum { PIECE = 1 << 16 };

struct reader {
    struct csv_parser csv;
    const struct record_handler *handler;
    struct diag *diag;
    struct record record;
    struct text row_text; /* the fields read so far, each ending in NUL */
    /* offsets of the fields in row_text, whose data moves when it grows */
    size_t field_offsets[RECORD_FIELD_LIMIT];
    enum status status; /* the first fault */
    /* the last line end ended a row: it was not part of a quoted field */
    bool row_has_ended;
};

static void *realloc_array_for_csv(void *old, size_t size)
{
    return heap_realloc(old, size, 1);
}

static void store_field(void *data, size_t size, void *context)
{
    struct reader *reader = context;
    struct record *record = &reader->record;
    if (reader->status != STATUS_OK)
        return;
    if (record->field_count == RECORD_FIELD_LIMIT ||
        reader->row_text.size + size > RECORD_BYTE_LIMIT) {
        reader->status =
            diag_error(reader->diag, record->place, STATUS_BAD_INPUT,
                       "this row has more than %d fields or %d bytes (is a closing quote missing?)",
                       RECORD_FIELD_LIMIT, RECORD_BYTE_LIMIT);
        return;
    }
    reader->field_offsets[record->field_count] = reader->row_text.size;
    record->field_sizes[record->field_count++] = size;
    if (size > 0)
        text_append(&reader->row_text, data, size);
    text_putc(&reader->row_text, '\0');
}

/* Passes a row to the caller's function. libcsv calls this at the end of each row. It also calls it at the end of each
 * blank line, since CSV_REPALL_NL is set. */
static void pass_row_to_handler(int terminator, void *context)
{
    struct reader *reader = context;
    struct record *record = &reader->record;
    reader->row_has_ended = terminator == '\n';
    if (reader->status == STATUS_OK && record->field_count > 0) {
        for (size_t i = 0; i < record->field_count; i++)
            record->fields[i] = reader->row_text.data + reader->field_offsets[i];
        reader->status = reader->handler->row(reader->handler->context, record, reader->diag);
    }
    record->field_count = 0;
    reader->row_text.size = 0;
}

/* Passes one line, with its line end, to libcsv. */
static enum status feed_line_to_csv_parser(struct reader *reader, const char *line, size_t size,
                                           uint32_t number)
{
    for (size_t done = 0; done < size && reader->status == STATUS_OK;) {
        size_t piece = size - done < PIECE ? size - done : PIECE;
        size_t taken =
            csv_parse(&reader->csv, line + done, piece, store_field, pass_row_to_handler, reader);
        if (reader->status != STATUS_OK)
            break;
        if (taken < piece) {
            struct loc at = {reader->record.place.name, number, (uint32_t)(done + taken + 1)};
            return diag_error(reader->diag, at, STATUS_BAD_INPUT,
                              "a quote stands inside a field: a field must be quoted as a whole, "
                              "with the quotes in it doubled");
        }
        done += piece;
        if (csv_get_buffer_size(&reader->csv) > RECORD_BYTE_LIMIT + 2 * PIECE)
            return diag_error(
                reader->diag, reader->record.place, STATUS_BAD_INPUT,
                "this row has a field of more than %d bytes (is a closing quote missing?)",
                RECORD_BYTE_LIMIT);
    }
    return reader->status;
}

static enum status read_lines(struct reader *reader, const char *data, size_t size)
{
    uint32_t number = 1;
    for (const char *at = data, *end = data + size, *next; at < end; at = next, number++) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        next = line_end ? line_end + 1 : end;
        if (reader->row_has_ended) {
            reader->record.place.line = number;
            if (*at == '#' && reader->handler->comment) {
                size_t length = (size_t)((line_end ? line_end : end) - at);
                if (length > 1 && at[length - 1] == '\r')
                    length--;
                reader->status =
                    reader->handler->comment(reader->handler->context, reader->record.place, at + 1,
                                             length - 1, reader->diag);
                if (reader->status != STATUS_OK)
                    return reader->status;
                continue;
            }
        }
        reader->row_has_ended = false;
        enum status status = feed_line_to_csv_parser(reader, at, (size_t)(next - at), number);
        if (status != STATUS_OK)
            return status;
    }
    if (csv_fini(&reader->csv, store_field, pass_row_to_handler, reader) != 0)
        return diag_error(reader->diag, reader->record.place, STATUS_BAD_INPUT,
                          "a quoted field of this row is not closed");
    return reader->status;
}

static enum status reject_nul(const char *name, const char *data, size_t size, struct diag *diag)
{
    const char *nul = size > 0 ? memchr(data, '\0', size) : NULL;
    if (!nul)
        return STATUS_OK;
    struct loc at = {name, 1, 1};
    for (const char *c = data; c < nul; c++) {
        at.column++;
        if (*c == '\n') {
            at.line++;
            at.column = 1;
        }
    }
    return diag_error(diag, at, STATUS_BAD_INPUT, "a NUL byte: this is not a CSV file");
}

enum status records_parse(const char *name, const char *data, size_t size,
                          const struct record_handler *handler, struct diag *diag)
{
    if (!data)
        data = ""; /* an empty text has no data */
    enum status status = reject_nul(name, data, size, diag);
    if (status != STATUS_OK)
        return status;
    if (size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0) {
        data += 3;
        size -= 3;
    }
    struct reader reader = {.handler = handler, .diag = diag, .row_has_ended = true};
    reader.record.place = (struct loc){name, 1, 0};
    int failed = csv_init(&reader.csv, CSV_STRICT | CSV_STRICT_FINI | CSV_REPALL_NL);
    assert(failed == 0);
    (void)failed;
    csv_set_realloc_func(&reader.csv, realloc_array_for_csv);
    csv_set_blk_size(&reader.csv, 4096);
    status = read_lines(&reader, data, size);
    csv_free(&reader.csv);
    text_release(&reader.row_text);
    return status;
}

void records_append_field(struct text *out, const char *field)
{
    size_t size = strlen(field);
    bool needs_no_quotes =
        strpbrk(field, ",\"\r\n") == NULL && field[0] != ' ' && field[0] != '\t' && field[0] != '#';
    if (needs_no_quotes && (size == 0 || (field[size - 1] != ' ' && field[size - 1] != '\t'))) {
        text_append(out, field, size);
        return;
    }
    size_t quoted_size = csv_write(NULL, 0, field, size);
    char *quoted = heap_alloc(quoted_size, 1);
    csv_write(quoted, quoted_size, field, size);
    text_append(out, quoted, quoted_size);
    free(quoted);
}

void records_append_fields(struct text *out, const char *const *field, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            text_putc(out, ',');
        records_append_field(out, field[i]);
    }
}

enum status records_check_columns(const struct record *record, const char *const *names,
                                  size_t count, size_t optional, struct diag *diag)
{
    for (size_t i = 0; i < count && i < record->field_count; i++)
        if (strcmp(record->fields[i], names[i]) != 0)
            return diag_error(diag, record->place, STATUS_BAD_INPUT,
                              "column %zu is '%s', expected '%s'", i + 1, record->fields[i],
                              names[i]);
    if (record->field_count > count)
        return diag_error(diag, record->place, STATUS_BAD_INPUT,
                          "unknown column '%s' after the last one, '%s'", record->fields[count],
                          names[count - 1]);
    if (record->field_count < count && record->field_count != count - optional)
        return diag_error(diag, record->place, STATUS_BAD_INPUT, "the column '%s' is missing",
                          names[record->field_count]);
    return STATUS_OK;
}

enum status records_report_field(const struct record *record, const char *column, struct diag *diag,
                                 const char *format, ...)
{
    char message[512]; /* a field can be a megabyte long; the start of it is enough */
    va_list args;
    va_start(args, format);
    c_vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return diag_error(diag, record->place, STATUS_BAD_INPUT, "column '%s': %s", column, message);
}

/* ---- tables ---- */

struct table_reader {
    const struct record_columns *columns;
    /* number of fields in the line of column names; 0: that line has not been read yet */
    size_t header_field_count;
    size_t column_of_field[RECORD_FIELD_LIMIT]; /* for each field of a row, its column */
    enum status (*row)(void *context, const struct record *record, struct diag *diag);
    void *context;
};

/* Reads the line of column names: sets column_of_field[]. Fails if a name is unknown or stands twice, or if a column
 * with is_needed_by_column is missing. */
static enum status read_header(struct table_reader *reader, const struct record *record,
                               struct diag *diag)
{
    const struct record_columns *columns = reader->columns;
    for (size_t i = 0; i < record->field_count; i++) {
        size_t c = 0;
        while (c < columns->column_count && strcmp(columns->names[c], record->fields[i]) != 0)
            c++;
        if (c == columns->column_count) {
            const char *meant =
                diag_nearest(record->fields[i], columns->names, columns->column_count);
            return diag_error(diag, record->place, STATUS_BAD_INPUT,
                              "column %zu: there is no column '%.100s'%s%s%s", i + 1,
                              record->fields[i], meant != NULL ? "; did you mean '" : "",
                              meant != NULL ? meant : "", meant != NULL ? "'?" : "");
        }
        for (size_t k = 0; k < i; k++)
            if (reader->column_of_field[k] == c)
                return diag_error(diag, record->place, STATUS_BAD_INPUT,
                                  "the column '%s' is given twice", columns->names[c]);
        reader->column_of_field[i] = c;
    }
    for (size_t c = 0; columns->is_needed_by_column != NULL && c < columns->column_count; c++) {
        bool has = !columns->is_needed_by_column[c];
        for (size_t i = 0; i < record->field_count; i++)
            has |= reader->column_of_field[i] == c;
        if (!has)
            return diag_error(diag, record->place, STATUS_BAD_INPUT, "the column '%s' is missing",
                              columns->names[c]);
    }
    return STATUS_OK;
}

/* Passes a row to the caller, with its fields in the order of the table's columns. */
static enum status reorder_row(struct table_reader *reader, const struct record *record,
                               struct diag *diag)
{
    struct record record_in_order = {.place = record->place,
                                     .field_count = reader->columns->column_count};
    for (size_t c = 0; c < record_in_order.field_count; c++)
        record_in_order.fields[c] = "";
    for (size_t i = 0; i < record->field_count; i++) {
        record_in_order.fields[reader->column_of_field[i]] = record->fields[i];
        record_in_order.field_sizes[reader->column_of_field[i]] = record->field_sizes[i];
    }
    return reader->row(reader->context, &record_in_order, diag);
}

static enum status read_table_row(void *context, const struct record *record, struct diag *diag)
{
    struct table_reader *reader = context;
    const struct record_columns *columns = reader->columns;
    if (reader->header_field_count == 0) {
        reader->header_field_count = record->field_count;
        return columns->has_any_order
                   ? read_header(reader, record, diag)
                   : records_check_columns(record, columns->names, columns->column_count,
                                           columns->result_count, diag);
    }
    if (record->field_count != reader->header_field_count)
        return diag_error(diag, record->place, STATUS_BAD_INPUT,
                          "%zu fields, expected %zu as in the line of column names",
                          record->field_count, reader->header_field_count);
    return columns->has_any_order ? reorder_row(reader, record, diag)
                                  : reader->row(reader->context, record, diag);
}

enum status records_parse_table(const char *name, const char *data, size_t size,
                                const struct record_columns *columns,
                                enum status (*row)(void *context, const struct record *record,
                                                   struct diag *diag),
                                void *context, struct diag *diag)
{
    struct table_reader reader = {.columns = columns, .row = row, .context = context};
    struct record_handler handler = {.context = &reader, .row = read_table_row};
    enum status status = records_parse(name, data, size, &handler, diag);
    if (status == STATUS_OK && reader.header_field_count == 0)
        status = diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                            "the file is empty: expected the column names '%s,%s,%s,...'",
                            columns->names[0], columns->names[1], columns->names[2]);
    return status;
}

enum status records_read_count_field(const struct record *record,
                                     const struct record_columns *columns, size_t column,
                                     bool optional, int64_t *value, struct diag *diag)
{
    *value = 0;
    if (optional && record->field_sizes[column] == 0)
        return STATUS_OK;
    if (parse_i64(record->fields[column], record->field_sizes[column], value) && *value >= 1)
        return STATUS_OK;
    return records_report_expected(record, columns, column,
                                   optional ? "a whole number of at least 1, or nothing"
                                            : "a whole number of at least 1",
                                   diag);
}

enum status records_report_expected(const struct record *record,
                                    const struct record_columns *columns, size_t column,
                                    const char *expected, struct diag *diag)
{
    return records_report_field(record, columns->names[column], diag, "expected %s, not '%s'",
                                expected, record->fields[column]);
}

/* traces/records.h: reads and writes rows of CSV through libcsv.
 *
 * The reader hands over one row at a time with the line it starts on. Fields are separated by
 * commas and may be quoted; a quoted field may hold separators, quotes (doubled) and line ends.
 * Rows end in LF, CRLF or CR, of which a CR alone is not counted as a line in messages. The last
 * row may lack its end. Blank lines and a leading byte order mark are skipped; blanks around an unquoted field are
 * dropped. Anything else is an error with its place: NUL bytes, stray or missing quotes, rows of
 * more than 1 MiB or 256 fields. */
#ifndef TRACES_RECORDS_H
#define TRACES_RECORDS_H

#include "base/diag.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RECORD_FIELD_LIMIT = 256, RECORD_BYTE_LIMIT = 1 << 20 };

/* One row. Each field ends in NUL and holds no other NUL; fields are valid until the callback returns. */
struct record {
    struct loc place; /* the line on which the row starts */
    size_t field_count;
    const char *fields[RECORD_FIELD_LIMIT];
    size_t field_sizes[RECORD_FIELD_LIMIT];
};

/* Functions that the reader calls. A status other than STATUS_OK ends the reading and is returned. */
struct record_handler {
    void *context;
    enum status (*row)(void *context, const struct record *record, struct diag *diag);
    /* Receives a line that starts with '#', without the '#' and the line end; NULL: such lines are rows. */
    enum status (*comment)(void *context, struct loc at, const char *text, size_t size,
                           struct diag *diag);
};

/* Reads data[0..size) to its end or to the first fault. */
enum status records_parse(const char *name, const char *data, size_t size,
                          const struct record_handler *handler, struct diag *diag);

/* Appends a field, quoted where the reader would otherwise take it for something else. */
void records_append_field(struct text *out, const char *field);

/* Appends a line of fields with commas between them. */
void records_append_fields(struct text *out, const char *const *field, size_t count);

/* Fails unless the fields of a row are the names of the columns, in order. The last `optional` columns may be missing,
 * but only all of them. The message names the first column that is wrong. */
enum status records_check_columns(const struct record *record, const char *const *names,
                                  size_t count, size_t optional, struct diag *diag);

/* The columns of a table, in order. The last result_count columns are those that a comparison appends; a reader
 * drops them. */
struct record_columns {
    const char *const *names;
    size_t column_count, result_count;
    bool has_any_order; /* a file may have the columns in any order, and may lack some */
    /* for tables with has_any_order: whether a file must have the column; NULL: it may lack all */
    const bool *is_needed_by_column;
};

/* Reads a table. Its first row must name the columns, with or without the columns of results. Every other row must
 * have as many fields as the first, and is passed to row(): with has_any_order, its fields are in the order of the
 * table's columns, and those of columns that the file lacks are empty. */
enum status records_parse_table(const char *name, const char *data, size_t size,
                                const struct record_columns *columns,
                                enum status (*row)(void *context, const struct record *record,
                                                   struct diag *diag),
                                void *context, struct diag *diag);

/* Reads field `column` of a row: a whole number of at least 1. Where it is optional, an empty field is 0. */
enum status records_read_count_field(const struct record *record,
                                     const struct record_columns *columns, size_t column,
                                     bool optional, int64_t *value, struct diag *diag);

/* Reports "column 'x': expected a number, not 'y'", where `expected` is "a number". */
enum status records_report_expected(const struct record *record,
                                    const struct record_columns *columns, size_t column,
                                    const char *expected, struct diag *diag);

/* Reports "FILE:LINE: error: column 'x': ..." at the row, and returns STATUS_BAD_INPUT. */
enum status records_report_field(const struct record *record, const char *column, struct diag *diag,
                                 const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif

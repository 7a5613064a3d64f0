/* traces/csv.h: traces as CSV files, one for the op rows and one for the memory rows.
 *
 * A file is the header as comments, "# key=value", then the line of column names (those of
 * TRACE_OP_COLUMNS or TRACE_MEMORY_COLUMNS), then the rows. In a header value '\' is written "\\",
 * and a line end "\n" or "\r". Numbers are the shortest decimals that read back as the same
 * double, so reading a printed file and printing it again gives the same bytes. layer, chunk, step and micro are -1
 * if the op has none.
 *
 * The reader is strict: columns are exactly these and in order (the last, micro, may be missing), a
 * numeric field is a number within the range of its column, no op ends before it starts, and the
 * last row ends in a line end (a file without one was cut off). Rows may come in any order. Both files of
 * one run are read into one trace. It is an error if a header key has another value than in the
 * trace, since the file is then of another run. */
#ifndef TRACES_CSV_H
#define TRACES_CSV_H

#include "base/diag.h"
#include "base/text.h"
#include "traces/trace.h"

#include <stddef.h>

void trace_print_ops(const struct trace *trace, struct text *out);
void trace_print_memory(const struct trace *trace, struct text *out);

/* Adds the rows of data[0..size) to the trace; name stands for the text in messages. On failure
 * the trace holds the rows before the fault. */
enum status trace_parse_ops(struct trace *trace, const char *name, const char *data, size_t size,
                            struct diag *diag);
enum status trace_parse_memory(struct trace *trace, const char *name, const char *data, size_t size,
                               struct diag *diag);

enum status trace_load_ops(struct trace *trace, const char *path, struct diag *diag);
enum status trace_load_memory(struct trace *trace, const char *path, struct diag *diag);

#endif

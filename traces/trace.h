/* traces/trace.h: what happened or would happen, as one table of timed rows.
 *
 * A row is one op instance on one rank. Rows carry labels and ids and no pointers into
 * a schedule, so a trace file can be read without its schedule. A second table holds
 * memory over time, one row per change. The header says what made the trace. */
#ifndef TRACES_TRACE_H
#define TRACES_TRACE_H

#include "base/arena.h"
#include "base/diag.h"

#include <stddef.h>
#include <stdint.h>

struct trace_key {
    const char *key, *value; /* "made_by", "command", "model", "simgrid", ... in order of addition */
};

/* Struct of arrays, count rows each. Text columns are indexes into the label table. */
struct trace_ops {
    size_t count, capacity;
    uint32_t *rank;
    uint32_t *op;      /* id of the op in the schedule's role */
    uint16_t *stream, *kind, *phase, *region; /* labels */
    int32_t *layer, *chunk, *step;            /* -1: none */
    double *start_s, *end_s;
    double *bytes, *flops; /* payload or memory bytes; hardware flops */
};

struct trace_memory {
    size_t count, capacity;
    double *time_s;
    uint32_t *rank;
    uint16_t *memory, *category; /* labels: "hbm", "pinned"; "parameter", "activation", ... */
    double *bytes;               /* live bytes of that (rank, memory, category) from this time on */
};

struct trace {
    struct arena arena; /* label texts and header */
    struct trace_key *header;
    size_t header_count, header_capacity;
    const char **label;
    size_t label_count, label_capacity;
    struct trace_ops ops;
    struct trace_memory memory;
};

void trace_release(struct trace *trace);
/* The id of a label, added when new. At most 65536 labels. */
uint16_t trace_label(struct trace *trace, const char *text);
void trace_set(struct trace *trace, const char *key, const char *value);
/* Value of a header key or NULL. */
const char *trace_get(const struct trace *trace, const char *key);

/* Appends an all-zero row and returns its index; the caller fills the columns. */
size_t trace_add_op(struct trace *trace);
size_t trace_add_memory(struct trace *trace);

#endif

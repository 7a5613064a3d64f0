/* traces/trace.h: a measured or predicted run as a table of timed rows.
 *
 * A row is one op instance on one rank. Rows carry labels and ids and no pointers into
 * a schedule, so a trace file can be read without its schedule. A second table holds
 * memory over time, one row per change. The header says which program and configuration made the trace. */
#ifndef TRACES_TRACE_H
#define TRACES_TRACE_H

#include "base/arena.h"
#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_key {
    const char *key; /* "made_by", "command", "model", "simgrid", ... */
    const char *value;
};

/* Struct of arrays, count rows each. Text columns are indexes into the label table. */
struct trace_ops {
    size_t count, capacity;
    uint32_t *rank;
    /* number of the op in the schedule; in a recording, a running number */
    uint32_t *op;
    uint16_t *stream, *kind, *phase, *region; /* labels */
    int32_t *layer, *chunk, *step;            /* -1: none */
    double *start_s, *end_s;
    double *bytes; /* of a message or copy; else bytes of memory that are read and written */
    double *flops;
    /* the number of the micro-batch times how many subsequences it has, plus the number of the subsequence, both
     * numbers from 0; -1: not known, or the op has none */
    int32_t *micro;
};

struct trace_memory {
    size_t count, capacity;
    double *time_s;
    uint32_t *rank;
    uint16_t *memory, *category; /* labels: "hbm", "pinned"; "parameter", "activation", ... */
    double *bytes;               /* live bytes of that (rank, memory, category) from this time on */
};

struct trace {
    struct arena arena; /* holds the texts of labels and of the header */
    struct trace_key *header_keys;
    size_t header_count, header_capacity;
    const char **labels; /* labels[0], once there is a row or a label, is the empty text */
    size_t label_count, label_capacity;
    uint32_t *label_id_of_slot; /* hash table over labels[]: 0: free; else 1 + id */
    size_t label_slot_count;
    struct trace_ops ops;
    struct trace_memory memory;
};

enum { TRACE_LABEL_LIMIT = 65536 };
#define TRACE_MAGNITUDE_MAX 1e100

/* X(member, type): the columns of both tables, in the order of their files. Types: U32, a whole number from 0 on; I32,
 * a whole number from -1 on; LABEL, any text; TIME, a number from -TRACE_MAGNITUDE_MAX to TRACE_MAGNITUDE_MAX; AMOUNT,
 * one from 0 to TRACE_MAGNITUDE_MAX. The limit keeps sums over all rows finite. */
#define TRACE_OP_COLUMNS(X)                                                                        \
    X(rank, U32)                                                                                   \
    X(stream, LABEL)                                                                               \
    X(op, U32)                                                                                     \
    X(kind, LABEL)                                                                                 \
    X(phase, LABEL)                                                                                \
    X(region, LABEL)                                                                               \
    X(layer, I32)                                                                                  \
    X(chunk, I32)                                                                                  \
    X(step, I32)                                                                                   \
    X(start_s, TIME)                                                                               \
    X(end_s, TIME)                                                                                 \
    X(bytes, AMOUNT)                                                                               \
    X(flops, AMOUNT)                                                                               \
    X(micro, I32)
/* The number of an op's last columns that a file may lack, since earlier versions of the program did not write them. */
enum { TRACE_OP_COLUMNS_OPTIONAL = 1 };

#define TRACE_MEMORY_COLUMNS(X)                                                                    \
    X(time_s, TIME)                                                                                \
    X(rank, U32)                                                                                   \
    X(memory, LABEL)                                                                               \
    X(category, LABEL)                                                                             \
    X(bytes, AMOUNT)

void trace_release(struct trace *trace);
/* Returns the id of a label, which is added if it is new. A trace has at most TRACE_LABEL_LIMIT labels. The empty
 * text has id 0. */
uint16_t trace_intern_label(struct trace *trace, const char *text);
/* Sets *label to the id of the label text[0..size), which need not end in NUL and is added if it is new. Returns false
 * if the table is full. */
bool trace_find_or_add_label(struct trace *trace, const char *text, size_t size, uint16_t *label);
/* Sets a header key. A key is printable ASCII, not empty and without '='; a value is any text. */
void trace_set_key(struct trace *trace, const char *key, const char *value);
/* True if key[0..size) may be a header key. */
bool trace_is_key(const char *key, size_t size);
/* Returns the value of a header key; NULL: the header lacks it. */
const char *trace_get_key(const struct trace *trace, const char *key);

/* Appends an all-zero row and returns its index; the caller fills the columns. */
size_t trace_add_op(struct trace *trace);
size_t trace_add_memory(struct trace *trace);

#endif

/* traces/stats.h: statistics of a trace per rank: busy streams, exposed work, peak memory.
 *
 * A stream is busy while any of its ops runs; ops that overlap on one stream count once. A
 * stream's role follows from its name: the role's name ("compute", "comm", "h2d", "d2h", "offload",
 * "host"), by itself or followed by '.' or a digit ("comm.cp", "compute2"). Waits of the host (kinds host_sync and
 * barrier) are rows of the stream that is waited for, and do not make it busy.
 *
 * Memory rows are changes: bytes are live from the time of the row until the next row of the same
 * rank, memory and category; before its first row a category holds nothing. Rows with the same time
 * take effect in the order of the table, and each counts for the peaks. */
#ifndef TRACES_STATS_H
#define TRACES_STATS_H

#include "base/arena.h"
#include "traces/trace.h"

#include <stddef.h>
#include <stdint.h>

enum stream_role {
    ROLE_COMPUTE,
    ROLE_COMM,
    ROLE_H2D,
    ROLE_D2H,
    ROLE_OFFLOAD, /* copies in both directions, one after the other */
    ROLE_HOST,
    ROLE_OTHER, /* any other name */
    ROLE_COUNT
};

struct stats_stream {
    uint32_t rank;
    uint16_t stream; /* label */
    enum stream_role role;
    size_t op_count;
    double start_s, end_s; /* start of the stream's first op, end of its last */
    double busy_s;
    double bytes, flops; /* sums over its ops */
};

struct stats_rank {
    uint32_t rank;
    size_t first_stream, stream_count; /* the rank's rows of trace_stats.streams[] */
    double start_s, end_s;             /* over all streams; the span is end_s - start_s */
    double busy_s[ROLE_COUNT];         /* seconds in which any stream of the role is busy */
    /* seconds in which the role is busy and no compute stream is; of ROLE_COMPUTE: 0 */
    double exposed_s[ROLE_COUNT];
    double idle_s; /* seconds of the span in which no stream is busy */
};

struct stats_category {
    uint16_t category;    /* label */
    double peak_bytes;    /* the most bytes of the category */
    double peak_time_s;   /* when the peak was first reached */
    double bytes_at_peak; /* the category's bytes at the first peak of the memory as a whole */
    double bytes_at_end;  /* the category's bytes at the end of the trace */
};

struct stats_memory {
    uint32_t rank;
    uint16_t memory;                       /* label */
    size_t first_category, category_count; /* the memory's rows of trace_stats.categories[] */
    double peak_bytes, peak_time_s;        /* sum over categories; first time it was reached */
    double bytes_at_end;
};

/* Streams stand in order of rank, then label; memories and categories likewise. */
struct trace_stats {
    struct arena arena;
    struct stats_rank *ranks;
    size_t rank_count; /* the number of ranks that have ops */
    struct stats_stream *streams;
    size_t stream_count;
    struct stats_memory *memories;
    size_t memory_count;
    struct stats_category *categories;
    size_t category_count;
    double start_s, end_s; /* over all ranks; 0 and 0 without ops */
};

/* Computes the statistics of a trace. *stats holds no pointers into the trace. The time is linear
 * in the rows if those of each stream and memory are in order of time, and if there are few
 * labels. */
void trace_stats_compute(struct trace_stats *stats, const struct trace *trace);
void trace_stats_release(struct trace_stats *stats);

enum stream_role stream_role_of(const char *name);
const char *stream_role_name(enum stream_role role);

/* Returns the share of the rank's communication that overlaps with compute: 1 - exposed / busy, and 1 for a rank that
 * never communicates. */
double stats_overlapped_comm_share(const struct stats_rank *rank);

/* Return the entry of a rank, or of a rank's memory; NULL: there is none. */
const struct stats_rank *stats_find_rank(const struct trace_stats *stats, uint32_t rank);
const struct stats_memory *stats_find_memory(const struct trace_stats *stats, uint32_t rank,
                                             uint16_t memory);

#endif

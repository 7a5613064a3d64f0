/* traces/row_matches.h: assigns the time of recorded steps to the rows of a prediction.
 *
 * A recording of another program is aligned with the prediction as in compare_with_profiler_trace()
 * (traces/align.h). There are two sorts of matches. One is a block of the alignment: predicted rows
 * of products, attention, messages or copies, and the recorded time for them. The other is all
 * other rows between two blocks, before the first or after the last: the predicted ones, and the
 * total time of the recorded ones; rows of the optimizer there are a match of their own if both
 * sides have some.
 *
 * Recorded rows without a match are strays. So are recorded rows between blocks whose class does
 * not follow from their name. */
#ifndef TRACES_ROW_MATCHES_H
#define TRACES_ROW_MATCHES_H

#include "base/diag.h"
#include "traces/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One match: predicted rows, and the recorded time for them. */
struct predicted_rows_match {
    uint32_t step;                  /* row of row_matches.recorded_steps */
    bool is_of_rows_between_blocks; /* the match is of rows between blocks */
    /* the predicted rows: row_matches.rows[row_begin .. row_begin + row_count) */
    uint32_t row_begin, row_count;
    uint32_t measured_rows;
    double measured_s;
};

struct step_of_recording {
    int32_t number;
    double span_s; /* from the start of its first row to the end of its last */
    double idle_s; /* part of span_s in which no row runs */
};

/* Recorded rows of one name that the prediction lacks, over all steps. */
struct stray_rows {
    const char *name; /* a label of the recording */
    size_t row_count;
    double seconds;
};

/* All-zero is empty. Borrows the traces. */
struct row_matches {
    struct predicted_rows_match *matches;
    size_t match_count, capacity;
    uint32_t *rows; /* rows of the prediction */
    size_t row_count, row_capacity;
    struct step_of_recording *recorded_steps;
    size_t step_count;
    struct stray_rows *strays; /* the longest strays first */
    size_t stray_count;
    bool *is_stray_by_row; /* [rows of the recording] */
    uint32_t rank, predicted_rank;
};

/* Aligns every step of a recording of one rank with the prediction. name: the name of the recording in messages. */
enum status row_matches_find(struct row_matches *matches, const struct trace *predicted,
                             const struct trace *measured, const char *name, struct diag *diag);
void row_matches_release(struct row_matches *matches);

#endif

/* traces/row_matches.h: which rows of a prediction a recorded step's time belongs to.
 *
 * A recording of another program is aligned with the prediction as compare_foreign() does it (traces/align.h). A
 * match is a block of that alignment (products, attention, messages, copies: some predicted rows and the time that
 * the recording takes for them), or what stands between two blocks: all predicted rows there of no item's class
 * against the time of all recorded ones, optimizers apart. Time without a predicted row is a stray. */
#ifndef TRACES_ROW_MATCHES_H
#define TRACES_ROW_MATCHES_H

#include "base/diag.h"
#include "traces/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct row_match {
    uint32_t step;                 /* row of row_matches.step */
    bool between;                  /* what stands between blocks */
    uint32_t row_begin, row_count; /* of row_matches.row */
    uint32_t measured_rows;
    double measured_s;
};

struct recorded_step {
    int32_t number;
    double span_s; /* from its first row to its last */
    double idle_s; /* of the span: no row runs */
};

/* Recorded work that the prediction does not have, over all steps. */
struct stray {
    const char *name; /* the trace's */
    size_t rows;
    double seconds;
};

/* All-zero is empty. Borrows the traces. */
struct row_matches {
    struct row_match *match;
    size_t count, capacity;
    uint32_t *row; /* of the prediction */
    size_t row_count, row_capacity;
    struct recorded_step *step;
    size_t steps;
    struct stray *stray; /* the longest first */
    size_t strays;
    bool *is_stray; /* per row of the recording */
    uint32_t rank, predicted_rank;
};

/* Aligns every step of a recording of one rank. name is the recording's, for messages. */
enum status row_matches_make(struct row_matches *matches, const struct trace *predicted,
                             const struct trace *measured, const char *name, struct diag *diag);
void row_matches_release(struct row_matches *matches);

#endif

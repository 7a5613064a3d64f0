/* traces/foreign.h: the two sides of an alignment without op ids: a predicted trace and a recording of another
 * program, with a kernel class for every label, and their steps as sequences. Private to traces/compare_foreign.c and
 * traces/row_matches.c. */
#ifndef TRACES_FOREIGN_H
#define TRACES_FOREIGN_H

#include "base/diag.h"
#include "traces/align.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Borrows both traces. */
struct predicted_trace_and_recording {
    const struct trace *predicted, *measured;
    /* [labels of the trace] the class of the rows with that label: as kind in the prediction, as region in the
     * recording */
    enum kernel_class *predicted_class, *measured_class;
    /* one side has no norm kernels, so norms count as element-wise work */
    bool counts_norms_as_elementwise;
    uint32_t recorded_rank;  /* rank of the recording */
    uint32_t predicted_rank; /* the rank of the prediction that is compared with it */
};

/* A row of a trace, in an array that is ordered by step, then by start. */
struct row_with_times {
    int32_t step;
    uint32_t row;
    double start_s;
};

/* One step of one side as a sequence per lane. */
struct step_item_sequences_by_lane {
    struct align_sequence lanes[LANE_COUNT];
    size_t classified_row_count; /* rows that have a class */
    double busy_s;               /* sum of their durations */
    /* start of the first row and end of the last, rows of CLASS_NO_WORK included */
    double start_s, end_s;
};

/* Classifies both sides and finds the predicted rank that corresponds to the recorded one. name: the name of the
 * recording in messages. It is an error if a trace has no rows, or if the prediction has several ranks and lacks the
 * recorded one; a single predicted rank represents all. */
enum status foreign_sides_init(struct predicted_trace_and_recording *foreign,
                               const struct trace *predicted, const struct trace *measured,
                               const char *name, struct diag *diag);
void foreign_sides_release(struct predicted_trace_and_recording *foreign);

/* Returns the rows of a rank, ordered by start and, with by_step, first by step; without by_step all rows count as
 * one step. The caller frees the array. */
struct row_with_times *foreign_list_rows_by_start(const struct trace *trace, uint32_t rank,
                                                  bool by_step, size_t *count);

/* Returns the class of a row of the recording (is_measured) or of the prediction; CLASS_ELEMENTWISE for a norm if
 * counts_norms_as_elementwise. */
enum kernel_class foreign_class_of_row(const struct predicted_trace_and_recording *foreign,
                                       bool is_measured, uint32_t row);

/* Fills *step with row[0..count), the rows of one step of the recording (is_measured) or of the prediction; rows of
 * CLASS_NO_WORK are in no lane. Release *step. */
void foreign_step_items_init(const struct predicted_trace_and_recording *foreign, bool is_measured,
                             const struct row_with_times *row, size_t count,
                             struct step_item_sequences_by_lane *step);
void foreign_step_items_release(struct step_item_sequences_by_lane *step);

/* Refuses a step with more items than can be aligned. */
enum status foreign_check_item_count(const struct step_item_sequences_by_lane *step,
                                     const char *name, struct diag *diag);

#endif

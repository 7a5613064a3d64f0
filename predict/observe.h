/* predict/observe.h: derives measured points of a schedule's work from recorded steps of the program that it
 * describes.
 *
 * The caller predicts the configuration that was recorded, with every rank simulated, and adds the recordings one by
 * one: recordings of the PyTorch profiler, one file per rank, or folders of `run -o`. A recorded step gives seconds to
 * ops of the schedule: a trace of ours names its ops; any other is aligned with the prediction (traces/row_matches.h),
 * and time that several ops share is divided among them in proportion to their predicted times. The time between two
 * aligned blocks (products, attention, messages, copies) is a gap. It belongs to the memory-bound ops in it, which are
 * of several kinds. One factor per kind is fitted to the predicted times so that they sum up to the measured gaps
 * (multiplicative updates, Lucy, Astronomical Journal 79 (1974)); then the time of each gap is divided among its ops in
 * proportion to the corrected times.
 *
 * A collective, or a message, takes the least of the times that its ranks measured: that of the rank that arrives
 * last.
 *
 * The time between rows is the time to start ops. In a recording on CPUs it is the operators' dispatch: the time
 * of a step in which no row runs, shared equally by all kernels. On a GPU it is the median gap between a kernel and the
 * one before it on its stream, of kernels that were launched before that one ended. In a trace of ours, and in a
 * recording that does not say when kernels were launched, it is the median gap between consecutive rows of a stream. On
 * a GPU and in a trace of ours, gaps of 50 us and more do not count. */
#ifndef PREDICT_OBSERVE_H
#define PREDICT_OBSERVE_H

#include "models/points.h"
#include "predict/prediction.h"
#include "traces/kineto_issue.h"
#include "traces/row_matches.h"
#include "traces/trace.h"

#include <stdbool.h>
#include <stddef.h>

/* The measured seconds of one op of the schedule in one recorded step. */
struct observation {
    uint32_t shape_index; /* index in the schedule's shapes */
    uint32_t op;
    uint32_t rank;
    uint32_t step_number; /* steps are numbered through all recordings of a rank */
    double seconds;
};

/* All observations. All-zero is empty. */
struct observation_set {
    struct observation *row;
    size_t observation_count, capacity;
    /* number of recordings that were added, and of the steps in all of them */
    size_t recording_count, step_count;
    /* [step_count] the step's seconds: as a trace of ours states them, else from the first row to the last */
    double *step_span_s;
    double *s_to_start_op_of_each_step; /* [step_count] the time to start an op (see above) */
    size_t step_capacity;
    /* seconds of all rows over all steps, and of those rows that belong to no op */
    double all_rows_s, unmatched_rows_s;
    /* for recordings of other programs: the predicted seconds, over all steps, of all ops, and of those ops for which a
     * row was found */
    double predicted_ops_s, matched_ops_s;
    struct text longest_unmatched_rows; /* the longest rows that belong to no op, as text */
    bool is_recorded_on_cpu;            /* a recording of another program was made on processors */
};

void observed_release(struct observation_set *observed);

/* Adds a recording, of another program (`foreign`) or of longhaul. issue: the times at which a recording of the PyTorch
 * profiler has ops issued; all-zero for other recordings. name: the name of the recording, for messages. */
enum status observed_add_recording(struct observation_set *observed,
                                   const struct prediction *prediction, const struct trace *trace,
                                   bool foreign, const struct kineto_host_calls *issue,
                                   const char *name, struct diag *diag);

/* Appends a point for each measured shape of the schedule, and one for the start of an op. Synchronisations, sends and
 * receives get none. A point whose 10th percentile would be 0 s is left out. name: the name of the points in messages.
 * Lists in *notes the kinds of work that get no points because the profile runs them as chains of kernels. */
void append_points_of_observed_steps(const struct observation_set *observed,
                                     const struct prediction *prediction, const char *name,
                                     struct points *points, struct text *notes);

/* The median, the lowest and the highest span of the recorded steps; all 0 if no step was recorded. */
struct observed_step_time_spread {
    double median_s, low_s, high_s;
};
struct observed_step_time_spread observed_step_spread(const struct observation_set *observed);

#endif

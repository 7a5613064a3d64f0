/* cli/measure/operator_report.h: compares the prediction of a recorded step with a recording of the PyTorch profiler,
 * operator by operator. */
#ifndef CLI_MEASURE_OPERATOR_REPORT_H
#define CLI_MEASURE_OPERATOR_REPORT_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/text.h"
#include "cli/common/rows.h"
#include "cli/measure/compare_report.h"

#include <stdbool.h>
#include <stddef.h>

/* An operator that the prediction, the recording or both have. */
struct compared_operator {
    /* name and input shapes of the operator; in the arena */
    const char *op, *inputs;
    /* number of calls in a step; 0: only the other side has the operator */
    double predicted_calls, measured_calls;
    double predicted_s, measured_s; /* seconds of all calls in a step */
};

/* All-zero is empty. Operators on both sides come first, those with the largest differences before others; then those
 * on one side, the longest first. */
struct compared_operators {
    struct arena arena;
    struct compared_operator *row;
    size_t count, matched_count;
    double predicted_s, measured_s; /* seconds of all kernels of a step */
    /* seconds of the kernels whose operator is on both sides */
    double predicted_matched_s, measured_matched_s;
    /* seconds of measured kernels whose operator is not known; a part of measured_s */
    double kernels_of_unknown_operator_s;
};

/* Reads the operators of a folder of `predict -o`, those of rank `rank` or, if the folder lacks it, of its first rank,
 * and compares them with those of a recording of the PyTorch profiler: `measured` is its name, and *text its contents.
 * Sets *found to whether the prediction is that of a recorded step; if not, nothing is compared. Release *operators in
 * either case. */
enum status compared_operators_make(struct compared_operators *operators, bool *found,
                                    const char *predicted, const char *measured,
                                    const struct text *text, uint32_t rank, struct diag *diag);
void compared_operators_release(struct compared_operators *operators);
/* Returns the share of kernel time whose operators are on both sides: that of the prediction or that of the
 * measurement, whichever is smaller. */
double compared_operators_matched_share(const struct compared_operators *operators);

/* Print the times of the steps, the operators with the largest differences, and the operators that only one side
 * has. */
void operator_report_print(struct text *out, const struct compare_report *report,
                           const struct compared_operators *operators);
void operator_report_print_json(struct text *out, const struct compare_report *report,
                                const struct compared_operators *operators);

/* The tables. */
enum { OPERATORS_MATCHED, OPERATORS_UNMATCHED, OPERATOR_TABLE_COUNT };
extern const struct row_table operator_tables[OPERATOR_TABLE_COUNT];

#endif

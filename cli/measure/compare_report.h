/* cli/measure/compare_report.h: a comparison as tables for people, or as JSON.
 *
 * The folder cli/measure/ holds what `run`, `bench`, `calibrate` and `compare` share and print. */
#ifndef CLI_MEASURE_COMPARE_REPORT_H
#define CLI_MEASURE_COMPARE_REPORT_H

#include "base/text.h"
#include "cli/common/rows.h"
#include "traces/compare.h"

#include <stdbool.h>
#include <stddef.h>

struct compare_report {
    const struct comparison *comparison;
    const char *predicted, *measured;                 /* paths */
    const char *predicted_by, *measured_by;           /* the programs that wrote them, or NULL */
    const char *predicted_kernels, *measured_kernels; /* kernels of attention, or NULL */
    int by;           /* enum compare_by: which groups are shown; -1: all */
    size_t top;       /* number of ops listed */
    bool all;         /* every table and row, not one screen */
    size_t width;     /* columns at which the lines above the tables are wrapped; 0: they are not */
    double tolerance; /* 0: none was asked for */
    enum compare_verdict verdict;
};

void compare_report_print(struct text *out, const struct compare_report *report);
void compare_report_print_json(struct text *out, const struct compare_report *report);

/* The tables; those of enum compare_by come first. */
enum {
    COMPARE_OPS = BY_COUNT,
    COMPARE_CYCLES,
    COMPARE_EXPOSED,
    COMPARE_MEMORY,
    COMPARE_TABLE_COUNT
};
extern const struct row_table compare_tables[COMPARE_TABLE_COUNT];

/* Puts at most `most` rows of a table of groups, those with the largest difference first, and returns how many are
 * left out. */
size_t compare_report_put_groups(struct rows *rows, const struct comparison *comparison,
                                 enum compare_by by, size_t most);

/* Puts cycles of the kinds that compute, if the headers of both traces say at which clock they ran. */
void compare_report_put_cycles(struct rows *rows, const struct comparison *comparison);

/* Puts the ops that carry most of the error. */
void compare_report_put_ops(struct rows *rows, const struct comparison *comparison, size_t top);

/* Puts the planned arenas, and the peaks, each if there are any. */
void compare_report_put_memory(struct rows *rows, const struct comparison *comparison);

#endif

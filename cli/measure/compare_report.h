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
    const char *predicted_path, *measured_path; /* paths of the files */
    /* the programs that wrote the two traces; NULL: not known */
    const char *predicted_program, *measured_program;
    const char *predicted_kernels, *measured_kernels; /* kernels of attention; NULL: not known */
    /* the text of `joined_ops` in the header of the measured trace: how many ops of which sorts the call of the op
     * before them computed ("gelu 32 of 32, column_sum 0 of 64, ..."); NULL: the header has none */
    const char *work_fused_into_op_before;
    int shown_group_table; /* enum compare_grouping: only this table of groups is shown; -1: not given */
    size_t listed_ops_max; /* how many ops are listed */
    bool shows_all; /* all groups, arenas, peaks and operators are printed, not only one screen */
    /* columns at which the lines above the tables are wrapped; 0: they are not wrapped */
    size_t wrap_width;
    double tolerance; /* the tolerance of the verdict; 0: none was asked for */
    enum compare_verdict verdict;
};

void compare_report_print(struct text *out, const struct compare_report *report);
void compare_report_print_json(struct text *out, const struct compare_report *report);

/* The indices of the tables. Those of groups, enum compare_grouping, come first. */
enum {
    COMPARE_TABLE_OPS = BY_COUNT,
    COMPARE_TABLE_CLOCK_CYCLES,
    COMPARE_TABLE_EXPOSED_TIMES,
    COMPARE_TABLE_MEMORY,
    COMPARE_TABLE_COUNT
};
extern const struct row_table compare_tables[COMPARE_TABLE_COUNT];

/* Puts the rows of a table of groups, those with the most measured time first, at most `most` of them. Returns how many
 * rows are left out. */
size_t compare_report_put_groups(struct rows *rows, const struct comparison *comparison,
                                 enum compare_grouping by, size_t most);

/* Puts the cycles of the kinds of work that compute and whose clock the headers of both traces
 * give. If there are none, JSON has an empty table, and the other outputs have none. */
void compare_report_put_clock_cycles(struct rows *rows, const struct comparison *comparison);

/* Puts the ops that cause most of the error, at most `top` of them. */
void compare_report_put_ops(struct rows *rows, const struct comparison *comparison, size_t top);

/* Puts the arenas and the peaks, if there are any. */
void compare_report_put_memory(struct rows *rows, const struct comparison *comparison);

#endif

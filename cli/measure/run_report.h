/* cli/measure/run_report.h: what `longhaul run` prints. */
#ifndef CLI_MEASURE_RUN_REPORT_H
#define CLI_MEASURE_RUN_REPORT_H

#include "base/diag.h"
#include "base/json_write.h"
#include "base/text.h"
#include "cli/common/rows.h"
#include "exec/exec.h"
#include "exec/reference_check.h"
#include "schedule/ir/ir.h"

#include <stdint.h>

/* Fills column[] for the table of `run --check`: a column for the name of a tensor, and one for its error in each
 * part that is checked (enum reference_check_part). Returns the table, which is valid as long as column[] is. width:
 * the width of the first column in text. */
enum { RUN_CHECK_COLUMNS = 1 + REFERENCE_CHECK_PART_COUNT };
struct row_table run_check_table(struct column column[RUN_CHECK_COLUMNS], int width);

/* Puts a row for every tensor with its largest errors. */
void run_report_put_tensors(struct rows *rows, const struct reference_check *check);

/* Appends a table of the errors of all tensors, the loss and the gradient norm beside those of the
 * reference, and the verdict. */
void run_report_put_check(struct text *out, const struct reference_check *check);

/* The losses of all steps of a training. */
struct loss_curve {
    const double *loss, *reference; /* [step_count]; reference NULL: there is none */
    uint32_t step_count;
    double tolerance; /* the largest relative difference from the reference that is accepted */
};

/* Returns the largest relative difference between a loss and its reference; infinite if a loss is not a number. */
double run_loss_curve_worst_error(const struct loss_curve *curve);

/* Appends a line for each step: its loss and, if there is a reference, the relative difference from
 * it. With a reference, a last line has the verdict. */
void run_report_put_loss_curve(struct text *out, const struct loss_curve *curve);

/* Appends what ran, and the time and memory of a step. what: a description of the run, "longhaul-3m, ulysses". */
void run_report_put_step_times(struct text *out, const char *what, const char *backend,
                               const struct ir *ir, const struct exec_result *result);

/* These write members of a JSON object. run_json_put_check(): the result of --check. run_json_put_loss_curve(): the
 * losses of all steps. run_json_put_step_times(): what ran, with its times and memory. */
void run_json_put_check(struct json_out *json, const struct reference_check *check);
void run_json_put_loss_curve(struct json_out *json, const struct loss_curve *curve);
void run_json_put_step_times(struct json_out *json, const char *what, const char *backend,
                             const struct ir *ir, const struct exec_result *result);

#endif

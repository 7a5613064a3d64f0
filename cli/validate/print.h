/* cli/validate/print.h: prints a validation as text and as JSON. */
#ifndef CLI_VALIDATE_PRINT_H
#define CLI_VALIDATE_PRINT_H

#include "base/text.h"
#include "cli/common/rows.h"
#include "predict/validate/external_validation.h"
#include "predict/validate/validation.h"

/* The tables that are printed as text and as JSON: means of errors. */
enum validate_table_id { VALIDATE_FIGURE_MEANS, VALIDATE_STEP_MEANS, VALIDATE_TABLE_COUNT };
/* The rows of `validate --json` for figures and for training steps, and the rows of its CSV file (-o). Each begins
 * with the columns of the file that was read. */
enum validate_row_table_id { VALIDATE_FIGURE, VALIDATE_STEP, VALIDATE_CSV, VALIDATE_ROW_COUNT };
extern const struct row_table validate_tables[VALIDATE_TABLE_COUNT];
extern const struct row_table validate_rows[VALIDATE_ROW_COUNT];

/* Appends a line for each row that is predicted wrong or could not be predicted (for every row if `all`). Then appends
 * the mean errors by table and metric, whether the best choices were predicted (validation_print_choices()), how many
 * verdicts are right, and the number of rows by outcome. */
void validation_print(struct text *out, const struct validation *validation, bool all);

/* Appends a line that begins with `label`: the memory that decides a verdict and, unless `reserved` is NULL, what it
 * consists of. */
void validation_put_memory_arithmetic(struct text *out, const struct verdict *verdict,
                                      const struct reserved *reserved, const char *label);

/* Appends the rows of both kinds of file as JSON: their columns, their predictions, and how these compare. */
void validation_print_json(struct text *out, const struct validation *validation,
                           const struct external_validation *external);
/* Appends the mean errors of each table and metric of figures as the member "figure_means". */
void validation_put_means(struct json_out *json, const struct validation *validation);
/* Appends, for each table, in how many groups of runs that differ in only one choice (the split, the placement, the
 * window, the rotation) the run that was predicted to be the fastest was the fastest. validation_print() calls it. */
void validation_print_choices(struct text *out, const struct validation *validation);

/* Appends the errors of LoongTrain's closed form for each table, beside those of the simulation for the same rows. */
void validation_print_baseline_errors(struct text *out, const struct validation *validation);

/* Appends by how much the mean error of each table changes with each number of the machine. For each number, all rows
 * are predicted twice more. */
enum status validation_print_sensitivity(struct text *out, const struct validation *validation,
                                         struct diag *diag);

/* Appends the errors of each table of LoongTrain if the numbers that were fitted to these tables are fitted only to the
 * other tables. Returns STATUS_BAD_INPUT if fewer than two tables have rows that count. */
enum status validation_print_leave_one_out(struct text *out, const struct validation *validation,
                                           struct diag *diag);

/* Appends a line for each row that is predicted wrong or could not be predicted (for every row if `all`). Then appends
 * for each set of rows the errors by source, device, framework and scale, those of memory, and the number of rows by
 * outcome. */
void external_validation_print(struct text *out, const struct external_validation *validation,
                               bool all);
/* Appends the mean errors of training steps as the member "step_means". */
void external_validation_put_means(struct json_out *json,
                                   const struct external_validation *validation);

#endif

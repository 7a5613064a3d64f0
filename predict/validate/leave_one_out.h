/* predict/validate/leave_one_out.h: the error of each LoongTrain table when the fitted numbers are fitted only to the
 * other tables. */
#ifndef PREDICT_VALIDATE_LEAVE_ONE_OUT_H
#define PREDICT_VALIDATE_LEAVE_ONE_OUT_H

#include "predict/validate/validation.h"

#include <stdbool.h>
#include <stddef.h>

enum { LEAVE_ONE_OUT_NUMBERS = 10, LEAVE_ONE_OUT_TABLES = 16 };

struct leave_one_out {
    run_setup_function *setup_loader;  /* loads a setup, as in struct validation */
    struct external_runs counted_rows; /* the rows of the source that count */
    /* [table_count] the index of the first row of each table */
    size_t first_row_of_table[LEAVE_ONE_OUT_TABLES], table_count;
    bool *does_fit_use_row;                   /* [rows] the fit uses the row */
    double *relative_error_as_shipped_by_row; /* [rows] relative errors with the shipped numbers */
    /* [tables + 1][rows] relative errors: in element t, after a fit to all tables but t; in the last one, after a fit
     * to all */
    double *errors_after_refits;
    /* [tables + 1] the logarithms of the fitted factors on the shipped numbers */
    double log_factor[LEAVE_ONE_OUT_TABLES + 1][LEAVE_ONE_OUT_NUMBERS];
};

/* Fits to all tables but one, for each table in turn, and to all tables, and fills *result. Returns STATUS_BAD_INPUT if
 * fewer than two or more than LEAVE_ONE_OUT_TABLES tables have rows that count. Release *result in either case. */
enum status leave_one_out_make(struct leave_one_out *result, const struct validation *validation,
                               struct diag *diag);
void leave_one_out_release(struct leave_one_out *result);

/* True if a row belongs to a table. */
bool leave_one_out_table_has_row(const struct leave_one_out *result, size_t table, size_t row);

/* Returns the name of a fitted number. */
const char *leave_one_out_number_name(size_t i);

#endif

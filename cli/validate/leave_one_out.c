/* cli/validate/leave_one_out.c: prints the errors of each table when the fitted numbers are fitted to the other
 * tables. */
#include "predict/validate/leave_one_out.h"
#include "cli/validate/print.h"
#include "predict/validate/error_means.h"

#include <math.h>
#include <string.h>

static const char *table_name_of_row(const struct leave_one_out *r, size_t row)
{
    return r->counted_rows.rows[row].cells[EXTERNAL_PLACE];
}

/* Appends the mean and the worst of error[] over those rows of r->counted_rows that are used and have the table and
 * the metric of row `row`. Returns the number of these rows. error[i] is the error of row i of r->counted_rows. */
static size_t put_mean_and_worst_error(struct text *out, const struct leave_one_out *r, size_t row,
                                       const double *error)
{
    struct error_means means = {0};
    for (size_t i = 0; i < r->counted_rows.row_count; i++) {
        if (!r->does_fit_use_row[i] ||
            r->counted_rows.rows[i].metric != r->counted_rows.rows[row].metric ||
            strcmp(table_name_of_row(r, i), table_name_of_row(r, row)) != 0)
            continue;
        error_means_add(&means, error[i]);
    }
    text_printf(out, "  %5.1f %+6.1f", 100 * error_means_mean_absolute(&means),
                100 * means.worst_error);
    return means.count;
}

static bool is_first_of_table_and_metric(const struct leave_one_out *r, size_t row)
{
    for (size_t i = 0; i < row; i++)
        if (r->does_fit_use_row[i] &&
            r->counted_rows.rows[i].metric == r->counted_rows.rows[row].metric &&
            strcmp(table_name_of_row(r, i), table_name_of_row(r, row)) == 0)
            return false;
    return r->does_fit_use_row[row];
}

static void put_errors_and_factors_of_refits(struct text *out, const struct leave_one_out *r)
{
    size_t count = r->counted_rows.row_count;
    text_puts(out, "leave one out: mean of absolute errors and worst, % (as shipped; the numbers "
                   "fitted to all tables; to the others)\n");
    for (size_t i = 0; i < count; i++) {
        if (!is_first_of_table_and_metric(r, i))
            continue;
        size_t table = 0;
        while (!leave_one_out_table_has_row(r, table, i))
            table++;
        text_printf(out, "  %-7s %-17s", table_name_of_row(r, i),
                    r->counted_rows.rows[i].cells[EXTERNAL_METRIC]);
        size_t rows = put_mean_and_worst_error(out, r, i, r->relative_error_as_shipped_by_row);
        put_mean_and_worst_error(out, r, i, r->errors_after_refits + r->table_count * count);
        put_mean_and_worst_error(out, r, i, r->errors_after_refits + table * count);
        text_printf(out, "  of %zu\n", rows);
    }
    text_puts(out, "fitted numbers, as factors of what is shipped\n  without                  ");
    for (size_t t = 0; t <= r->table_count; t++)
        text_printf(out, "  %6s",
                    t < r->table_count ? table_name_of_row(r, r->first_row_of_table[t]) : "none");
    text_putc(out, '\n');
    for (size_t k = 0; k < LEAVE_ONE_OUT_NUMBERS; k++) {
        text_printf(out, "  %-25s", leave_one_out_number_name(k));
        for (size_t t = 0; t <= r->table_count; t++)
            text_printf(out, "  %6.3f", exp(r->log_factor[t][k]));
        text_putc(out, '\n');
    }
}

enum status validation_print_leave_one_out(struct text *out, const struct validation *v,
                                           struct diag *diag)
{
    struct leave_one_out r;
    enum status status = leave_one_out_make(&r, v, diag);
    if (status == STATUS_OK)
        put_errors_and_factors_of_refits(out, &r);
    leave_one_out_release(&r);
    return status;
}

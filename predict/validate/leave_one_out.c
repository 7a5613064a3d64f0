/* predict/validate/leave_one_out.c: computes the errors of each table when the fitted numbers are fitted to the other
 * tables. The fit minimises squares over the logarithms of the numbers by Gauss-Newton, starting at the shipped values.
 * It takes two steps, both with the Jacobian at the start (finite differences); before the second step, the rows are
 * predicted anew. A table does not determine every number, so a prior holds each number near its shipped value; the
 * table below has the deviation of the prior. A number that the other tables do not determine keeps its shipped value,
 * which rests on the left-out table as well. */
#include "predict/validate/leave_one_out.h"

#include <gsl/gsl_multifit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The fitted numbers, each with the relative deviation by which the prior lets it move. The deviations were chosen
 * without looking at the tables: small if data sheets or message formats limit the number, large if NCCL or a framework
 * chooses it. docs/accuracy.md has the sources of the numbers themselves. The eleventh fitted number, the profile's
 * host_per_tensor_list_exchange_s, does not belong to a machine and keeps its value. */
static const struct fitted_number {
    const char *number, *what;
    double deviation;
} fitted[] = {
    {"device.message_sms", "message_sms", 0.5},
    {"fabric.peer_bandwidth", "peer_bandwidth", 0.2},
    {"fabric.all_to_all_peer_bandwidth", "all_to_all_peer_bandwidth", 0.15},
    {"fabric.all_to_all_channels", "all_to_all_channels", 0.1},
    {"fabric.peer_latency", "fabric.peer_latency", 0.4},
    {"nic.peer_latency", "nic.peer_latency", 0.5},
    {"nic.peer_bandwidth", "nic.peer_bandwidth", 0.03},
    {"nic.efficiency", "nic.efficiency", 0.02},
    {"attention.fa2.forward.rates", "fa2.forward", 0.03},
    {"attention.fa2.backward.rates", "fa2.backward", 0.03},
};
enum { FITTED = LEAVE_ONE_OUT_NUMBERS, STEPS = 2 };
_Static_assert(ARRAY_LEN(fitted) == FITTED, "LEAVE_ONE_OUT_NUMBERS");

static const char source[] = "LoongTrain";
/* The step of the finite differences, in the logarithm of a number. */
static const double difference_step = 0.05;
/* relative error that is expected of an operator's time */
static const double row_deviation = 0.025;
/* relative error that is expected of an exchange between synchronisations */
static const double exchange_deviation = 0.0625;

const char *leave_one_out_number_name(size_t i)
{
    return fitted[i].what;
}

static const char *table_name_of_row(const struct leave_one_out *r, size_t row)
{
    return r->counted_rows.rows[row].cells[EXTERNAL_PLACE];
}

bool leave_one_out_table_has_row(const struct leave_one_out *r, size_t table, size_t row)
{
    return table < r->table_count &&
           strcmp(table_name_of_row(r, row), table_name_of_row(r, r->first_row_of_table[table])) ==
               0;
}

/* Predicts all rows on a machine with number i multiplied by exp(x[i]), and sets their relative errors; NAN for a row
 * that cannot be predicted. */
static enum status predict_errors_at(const struct leave_one_out *r, const double *x, double *error,
                                     struct diag *diag)
{
    struct perturbation perturbation[FITTED];
    for (size_t i = 0; i < FITTED; i++)
        perturbation[i] = (struct perturbation){
            .perturbed_number_index = perturbation_index_of_number_named(fitted[i].number),
            .factor = exp(x[i])};
    struct validation v = {.setup_loader = r->setup_loader,
                           .perturbation = perturbation,
                           .perturbation_count = FITTED};
    enum status status = validation_run(&v, &r->counted_rows, diag);
    for (size_t i = 0; i < r->counted_rows.row_count && status == STATUS_OK; i++)
        error[i] = v.row[i].counts_in_means ? v.row[i].result.relative_error : NAN;
    validation_release(&v);
    return status;
}

static double expected_error_deviation_of_row(const struct leave_one_out *r, size_t row)
{
    return r->counted_rows.rows[row].metric == METRIC_SEQALLTOALL_MS ? exchange_deviation
                                                                     : row_deviation;
}

/* Returns whether a step of the fit uses a row: it has a finite derivative (does_fit_use_row[]), is not of the table
 * that is left out, and was predicted with a finite error at the present numbers. */
static bool is_row_fitted(const struct leave_one_out *r, size_t row, size_t without,
                          const double *error)
{
    return r->does_fit_use_row[row] && !leave_one_out_table_has_row(r, without, row) &&
           isfinite(log1p(error[row]));
}

/* Moves x by one Gauss-Newton step, which minimises the weighted squares of the errors outside the left-out table and
 * of the distances from the prior. */
static void take_gauss_newton_step(const struct leave_one_out *r, const double *jacobian,
                                   size_t without, const double *error, double *x)
{
    size_t count = FITTED, line = 0;
    for (size_t i = 0; i < r->counted_rows.row_count; i++)
        count += is_row_fitted(r, i, without, error);
    gsl_matrix *a = gsl_matrix_calloc(count, FITTED),
               *covariance = gsl_matrix_alloc(FITTED, FITTED);
    gsl_vector *b = gsl_vector_alloc(count), *move = gsl_vector_alloc(FITTED);
    gsl_multifit_linear_workspace *work = gsl_multifit_linear_alloc(count, FITTED);
    for (size_t i = 0; i < r->counted_rows.row_count; i++) {
        if (!is_row_fitted(r, i, without, error))
            continue;
        for (size_t k = 0; k < FITTED; k++)
            gsl_matrix_set(a, line, k,
                           jacobian[i * FITTED + k] / expected_error_deviation_of_row(r, i));
        gsl_vector_set(b, line++, -log1p(error[i]) / expected_error_deviation_of_row(r, i));
    }
    for (size_t k = 0; k < FITTED; k++, line++) {
        gsl_matrix_set(a, line, k, 1 / fitted[k].deviation);
        gsl_vector_set(b, line, -x[k] / fitted[k].deviation);
    }
    double squares;
    gsl_multifit_linear(a, b, move, covariance, &squares, work);
    for (size_t k = 0; k < FITTED; k++)
        x[k] += gsl_vector_get(move, k);
    gsl_multifit_linear_free(work);
    gsl_vector_free(move);
    gsl_vector_free(b);
    gsl_matrix_free(covariance);
    gsl_matrix_free(a);
}

/* Fits to all tables but `without` (r->table_count: to all of them), and predicts all rows with the fitted numbers. */
static enum status refit_without_table(const struct leave_one_out *r, const double *jacobian,
                                       size_t without, double *x, double *error, struct diag *diag)
{
    enum status status = STATUS_OK;
    memset(x, 0, FITTED * sizeof *x);
    memcpy(error, r->relative_error_as_shipped_by_row, r->counted_rows.row_count * sizeof *error);
    for (int i = 0; i < STEPS && status == STATUS_OK; i++) {
        take_gauss_newton_step(r, jacobian, without, error, x);
        status = predict_errors_at(r, x, error, diag);
    }
    return status;
}

static enum status find_jacobian(struct leave_one_out *r, double *jacobian, double *error,
                                 struct diag *diag)
{
    for (size_t k = 0; k < FITTED; k++) {
        double x[FITTED] = {0};
        x[k] = difference_step;
        enum status status = predict_errors_at(r, x, error, diag);
        if (status != STATUS_OK)
            return status;
        for (size_t i = 0; i < r->counted_rows.row_count; i++) {
            jacobian[i * FITTED + k] =
                (log1p(error[i]) - log1p(r->relative_error_as_shipped_by_row[i])) / difference_step;
            r->does_fit_use_row[i] = r->does_fit_use_row[i] && isfinite(jacobian[i * FITTED + k]);
        }
    }
    return STATUS_OK;
}

/* Copies those rows of the source that count to r->counted_rows, and finds the table of each. */
static enum status copy_counted_rows(struct leave_one_out *r, const struct validation *v,
                                     struct diag *diag)
{
    for (size_t i = 0; i < v->rows->row_count; i++) {
        const struct external_run *row = &v->rows->rows[i];
        size_t at = r->counted_rows.row_count, t = 0;
        if (!v->row[i].counts_in_means || strcmp(row->cells[EXTERNAL_SOURCE], source) != 0)
            continue;
        r->counted_rows.rows[r->counted_rows.row_count++] = *row;
        r->relative_error_as_shipped_by_row[at] = v->row[i].result.relative_error;
        r->does_fit_use_row[at] =
            r->relative_error_as_shipped_by_row[at] > -1; /* log(1 + error) must exist */
        while (t < r->table_count && !leave_one_out_table_has_row(r, t, at))
            t++;
        if (t < r->table_count || !r->does_fit_use_row[at])
            continue;
        if (r->table_count == LEAVE_ONE_OUT_TABLES)
            return diag_error(
                diag, (struct loc){.name = "--leave-one-out"}, STATUS_BAD_INPUT,
                "the rows come from more than %d tables, the most that can be left out in turn",
                (int)LEAVE_ONE_OUT_TABLES);
        r->first_row_of_table[r->table_count++] = at;
    }
    if (r->table_count < 2)
        return diag_error(diag, (struct loc){.name = "--leave-one-out"}, STATUS_BAD_INPUT,
                          "needs rows from at least two tables of %s, but the rows come from %zu; "
                          "leave --table out",
                          source, r->table_count);
    return STATUS_OK;
}

enum status leave_one_out_make(struct leave_one_out *r, const struct validation *v,
                               struct diag *diag)
{
    size_t all = v->rows->row_count + 1;
    /* a row for each row of r->counted_rows, a column for each fitted number */
    double *jacobian = heap_zalloc(all * FITTED, sizeof *jacobian);
    *r = (struct leave_one_out){.setup_loader = v->setup_loader, .counted_rows = *v->rows};
    r->counted_rows.row_count = 0;
    r->counted_rows.rows = heap_zalloc(all, sizeof *r->counted_rows.rows);
    r->does_fit_use_row = heap_zalloc(all, sizeof *r->does_fit_use_row);
    r->relative_error_as_shipped_by_row =
        heap_zalloc(all, sizeof *r->relative_error_as_shipped_by_row);
    r->errors_after_refits =
        heap_zalloc(all * (LEAVE_ONE_OUT_TABLES + 1), sizeof *r->errors_after_refits);
    enum status status = copy_counted_rows(r, v, diag);
    if (status == STATUS_OK)
        status = find_jacobian(r, jacobian, r->errors_after_refits, diag);
    for (size_t t = 0; t <= r->table_count && status == STATUS_OK; t++)
        status = refit_without_table(r, jacobian, t, r->log_factor[t],
                                     r->errors_after_refits + t * r->counted_rows.row_count, diag);
    free(jacobian);
    return status;
}

void leave_one_out_release(struct leave_one_out *r)
{
    free(r->does_fit_use_row);
    free(r->counted_rows.rows);
    free(r->errors_after_refits);
    free(r->relative_error_as_shipped_by_row);
    *r = (struct leave_one_out){0};
}

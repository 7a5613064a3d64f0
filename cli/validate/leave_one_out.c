/* The errors of each table when the fitted numbers are fitted to the other tables.
 *
 * Gauss-Newton from the shipped values in the logarithms of the numbers: two steps by the Jacobian
 * there (finite differences), the second with residuals simulated anew. A table does not tell every
 * number, so each is held near its shipped value by what else is known of it; a number that the
 * others do not tell thus keeps what the table that is left out told. */
#include "cli/validate/print.h"

#include <gsl/gsl_multifit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A number, or two that stand for one mechanism, and the relative deviation it is held within. The
 * deviations are judgements of what is known of it without the tables: a share of what data sheets
 * and formats of messages bound is held tightly, what NCCL chooses or a framework takes loosely.
 * docs/accuracy.md has the sources of the numbers themselves. The eleventh fitted number, the profile's
 * host_per_list_s, is no number of a machine and keeps its value. */
static const struct fitted {
    const char *number[2], *what;
    double deviation;
} fitted[] = {
    {{"device.message_sms", "device.collective_sms"}, "message_sms", 0.5},
    {{"fabric.peer_bandwidth"}, "peer_bandwidth", 0.2},
    {{"fabric.all_to_all_peer_bandwidth"}, "all_to_all_peer_bandwidth", 0.15},
    {{"fabric.all_to_all_channels"}, "all_to_all_channels", 0.1},
    {{"fabric.peer_latency"}, "fabric.peer_latency", 0.4},
    {{"nic.peer_latency"}, "nic.peer_latency", 0.5},
    {{"nic.peer_bandwidth"}, "nic.peer_bandwidth", 0.03},
    {{"nic.efficiency"}, "nic.efficiency", 0.02},
    {{"attention.fa2.forward.rates"}, "fa2.forward", 0.03},
    {{"attention.fa2.backward.rates"}, "fa2.backward", 0.03},
};
enum { FITTED = ARRAY_LEN(fitted), STEPS = 2, TABLES_MAX = 16 };

static const char source[] = "LoongTrain";
static const double difference = 0.05; /* of the Jacobian: the logarithm that a number moves by */
static const double row_deviation = 0.025;       /* of an operator's time */
static const double exchange_deviation = 0.0625; /* of an exchange between synchronisations */

/* The tables are known by their first rows. Rows are those of the source. */
struct refit {
    struct measurements rows;
    size_t table[TABLES_MAX], tables;
    bool *used;       /* rows that count */
    double *jacobian; /* rows x FITTED */
};

static const char *table_of(const struct refit *r, size_t row)
{
    return r->rows.row[row].text[MEASUREMENT_TABLE];
}

static bool in_table(const struct refit *r, size_t row, size_t table)
{
    return table < r->tables && strcmp(table_of(r, row), table_of(r, r->table[table])) == 0;
}

/* Relative errors of all rows with the numbers times exp(x). A row that cannot be predicted has
 * NAN. */
static enum status errors_at(const struct refit *r, const double *x, double *error,
                             struct diag *diag)
{
    struct tweak tweak[2 * FITTED];
    size_t tweaks = 0;
    for (size_t i = 0; i < FITTED; i++)
        for (size_t k = 0; k < 2 && fitted[i].number[k] != NULL; k++)
            tweak[tweaks++] =
                (struct tweak){.number = tweak_number(fitted[i].number[k]), .factor = exp(x[i])};
    struct validation v = {.tweak = tweak, .tweaks = tweaks};
    enum status status = validation_run(&v, &r->rows, diag);
    for (size_t i = 0; i < r->rows.count && status == STATUS_OK; i++)
        error[i] = v.row[i].counted ? v.row[i].result.relative_error : NAN;
    validation_release(&v);
    return status;
}

static double deviation_of(const struct refit *r, size_t row)
{
    return r->rows.row[row].metric == METRIC_SEQALLTOALL_MS ? exchange_deviation : row_deviation;
}

/* Whether a step takes a row: it counts, is of no table that is left out, and was predicted. */
static bool is_fitted(const struct refit *r, size_t row, size_t without, const double *error)
{
    return r->used[row] && !in_table(r, row, without) && isfinite(log1p(error[row]));
}

/* One step to the least squares of the rows that count outside a table. */
static void step_from(const struct refit *r, size_t without, const double *error, double *x)
{
    size_t count = FITTED, line = 0;
    for (size_t i = 0; i < r->rows.count; i++)
        count += is_fitted(r, i, without, error);
    gsl_matrix *a = gsl_matrix_calloc(count, FITTED),
               *covariance = gsl_matrix_alloc(FITTED, FITTED);
    gsl_vector *b = gsl_vector_alloc(count), *move = gsl_vector_alloc(FITTED);
    gsl_multifit_linear_workspace *work = gsl_multifit_linear_alloc(count, FITTED);
    for (size_t i = 0; i < r->rows.count; i++) {
        if (!is_fitted(r, i, without, error))
            continue;
        for (size_t k = 0; k < FITTED; k++)
            gsl_matrix_set(a, line, k, r->jacobian[i * FITTED + k] / deviation_of(r, i));
        gsl_vector_set(b, line++, -log1p(error[i]) / deviation_of(r, i));
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

/* Fits without a table (r->tables: with all), and predicts all rows with what came out. */
static enum status refit(const struct refit *r, size_t without, const double *shipped, double *x,
                         double *error, struct diag *diag)
{
    enum status status = STATUS_OK;
    memset(x, 0, FITTED * sizeof *x);
    memcpy(error, shipped, r->rows.count * sizeof *error);
    for (int i = 0; i < STEPS && status == STATUS_OK; i++) {
        step_from(r, without, error, x);
        status = errors_at(r, x, error, diag);
    }
    return status;
}

static enum status find_jacobian(struct refit *r, const double *shipped, double *error,
                                 struct diag *diag)
{
    for (size_t k = 0; k < FITTED; k++) {
        double x[FITTED] = {0};
        x[k] = difference;
        enum status status = errors_at(r, x, error, diag);
        if (status != STATUS_OK)
            return status;
        for (size_t i = 0; i < r->rows.count; i++) {
            r->jacobian[i * FITTED + k] = (log1p(error[i]) - log1p(shipped[i])) / difference;
            r->used[i] = r->used[i] && isfinite(r->jacobian[i * FITTED + k]);
        }
    }
    return STATUS_OK;
}

/* Mean and worst of the rows of the table and metric of one row. */
static size_t put_errors(struct text *out, const struct refit *r, size_t row, const double *error)
{
    double sum = 0, worst = 0;
    size_t count = 0;
    for (size_t i = 0; i < r->rows.count; i++) {
        if (!r->used[i] || r->rows.row[i].metric != r->rows.row[row].metric ||
            strcmp(table_of(r, i), table_of(r, row)) != 0)
            continue;
        count++;
        sum += fabs(error[i]);
        if (fabs(error[i]) > fabs(worst))
            worst = error[i];
    }
    text_printf(out, "  %5.1f %+6.1f", 100 * sum / (double)count, 100 * worst);
    return count;
}

static bool first_of_metric(const struct refit *r, size_t row)
{
    for (size_t i = 0; i < row; i++)
        if (r->used[i] && r->rows.row[i].metric == r->rows.row[row].metric &&
            strcmp(table_of(r, i), table_of(r, row)) == 0)
            return false;
    return r->used[row];
}

/* error and x: of each table left out, then of none. */
static void put_report(struct text *out, const struct refit *r, const double *shipped,
                       const double *error, double (*x)[FITTED])
{
    size_t count = r->rows.count;
    text_puts(out, "leave one out: mean of absolute errors and worst, % (as shipped; the numbers "
                   "fitted to all tables; to the others)\n");
    for (size_t i = 0; i < count; i++) {
        if (!first_of_metric(r, i))
            continue;
        size_t table = 0;
        while (!in_table(r, i, table))
            table++;
        text_printf(out, "  %-7s %-17s", table_of(r, i), r->rows.row[i].text[MEASUREMENT_METRIC]);
        size_t rows = put_errors(out, r, i, shipped);
        put_errors(out, r, i, error + r->tables * count);
        put_errors(out, r, i, error + table * count);
        text_printf(out, "  of %zu\n", rows);
    }
    text_puts(out, "fitted numbers, as factors of what is shipped\n  without                  ");
    for (size_t t = 0; t <= r->tables; t++)
        text_printf(out, "  %6s", t < r->tables ? table_of(r, r->table[t]) : "none");
    text_putc(out, '\n');
    for (size_t k = 0; k < FITTED; k++) {
        text_printf(out, "  %-25s", fitted[k].what);
        for (size_t t = 0; t <= r->tables; t++)
            text_printf(out, "  %6.3f", exp(x[t][k]));
        text_putc(out, '\n');
    }
}

/* The rows of the source, and those of them that count. */
static enum status choose(struct refit *r, const struct validation *v, double *shipped,
                          struct diag *diag)
{
    for (size_t i = 0; i < v->rows->count; i++) {
        const struct measurement *row = &v->rows->row[i];
        size_t at = r->rows.count, t = 0;
        if (!v->row[i].counted || strcmp(row->text[MEASUREMENT_SOURCE], source) != 0)
            continue;
        r->rows.row[r->rows.count++] = *row;
        shipped[at] = v->row[i].result.relative_error;
        r->used[at] = shipped[at] > -1; /* a number to fit to */
        while (t < r->tables && !in_table(r, at, t))
            t++;
        if (t < r->tables || !r->used[at])
            continue;
        if (r->tables == TABLES_MAX)
            return diag_error(diag, (struct loc){.name = "--leave-one-out"}, STATUS_BAD_INPUT,
                              "at most %d tables", (int)TABLES_MAX);
        r->table[r->tables++] = at;
    }
    if (r->tables < 2)
        return diag_error(
            diag, (struct loc){.name = "--leave-one-out"}, STATUS_BAD_INPUT,
            "needs rows of two tables of %s or more, there are %zu; leave --table out", source,
            r->tables);
    return STATUS_OK;
}

enum status validation_print_leave_one_out(struct text *out, const struct validation *v,
                                           struct diag *diag)
{
    size_t all = v->rows->count + 1;
    struct refit r = {.rows = *v->rows};
    double x[TABLES_MAX + 1][FITTED];
    double *shipped = heap_zalloc(all, sizeof *shipped);
    double *error = heap_zalloc(all * (TABLES_MAX + 1), sizeof *error);
    r.rows.count = 0;
    r.rows.row = heap_zalloc(all, sizeof *r.rows.row);
    r.used = heap_zalloc(all, sizeof *r.used);
    r.jacobian = heap_zalloc(all * FITTED, sizeof *r.jacobian);
    enum status status = choose(&r, v, shipped, diag);
    if (status == STATUS_OK)
        status = find_jacobian(&r, shipped, error, diag);
    for (size_t t = 0; t <= r.tables && status == STATUS_OK; t++)
        status = refit(&r, t, shipped, x[t], error + t * r.rows.count, diag);
    if (status == STATUS_OK)
        put_report(out, &r, shipped, error, x);
    free(r.jacobian);
    free(r.used);
    free(r.rows.row);
    free(error);
    free(shipped);
    return status;
}

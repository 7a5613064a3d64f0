/* cli/validate/baseline_row.c: prints the errors of a closed form for the rows of a validation, beside those of the
 * simulation. The closed form computes at a share of the GPU's peak; the share with the smallest errors is taken. */
#include "cli/validate/print.h"
#include "predict/validate/error_means.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sets *error to the relative error (validation_relative_error()) of the closed form for row i, whose figure is a rate,
 * an MFU or seconds. The seconds of a step or of attention are baseline_step_s() at a share of the peak; those of an
 * exchange are baseline_exchange_s(). Returns false if the row does not count, or if the closed form does not apply to
 * it. */
static bool closed_form_error(const struct validation *v, size_t i, double share, double *error)
{
    const struct validated_row *row = &v->row[i];
    const struct external_run *published = &v->rows->rows[i];
    if (!row->counts_in_means || row->run_index == SIZE_MAX ||
        !v->answer[row->run_index].has_baseline)
        return false;
    const struct validated_run *answer = &v->answer[row->run_index];
    double figure;
    switch (published->metric) {
    case METRIC_TGS:
    case METRIC_MFU: /* both figures are proportional to 1 / step */
        figure = row->result.predicted * answer->step_s / baseline_step_s(&answer->baseline, share);
        break;
    case METRIC_STEP_MS:
    case METRIC_ATTENTION_MS:
        figure = baseline_step_s(&answer->baseline, share) / published->si_factor;
        break;
    case METRIC_SEQALLTOALL_MS:
        figure = baseline_exchange_s(&answer->baseline) / published->si_factor;
        break;
    default:
        return false;
    }
    *error = validation_relative_error(published, figure);
    return true;
}

/* The errors of the closed form and of the simulation for the same rows. */
struct error_sums {
    struct error_means closed_form, simulated;
};

static struct error_sums sum_errors_of_table(const struct validation *v, size_t table, double share)
{
    struct error_sums sum = {0};
    for (size_t i = 0; i < v->rows->row_count; i++) {
        double error;
        bool wanted = table == SIZE_MAX || validation_are_rows_of_one_table(v, table, i);
        if (!wanted || !closed_form_error(v, i, share, &error))
            continue;
        error_means_add(&sum.closed_form, error);
        error_means_add(&sum.simulated, v->row[i].result.relative_error);
    }
    return sum;
}

void validation_print_baseline_errors(struct text *out, const struct validation *v)
{
    double share = 0, least = INFINITY;
    for (int step = 40; step < 200; step++) { /* shares from 20 % to 99.5 % */
        double s = step / 200.0;
        struct error_sums sum = sum_errors_of_table(v, SIZE_MAX, s);
        if (sum.closed_form.count > 0 && sum.closed_form.absolute_sum < least) {
            least = sum.closed_form.absolute_sum;
            share = s;
        }
    }
    if (share == 0) {
        text_puts(out, "baseline: the closed form applies to no row\n");
        return;
    }
    text_printf(
        out,
        "baseline: LoongTrain's closed form with all products at %.1f %% of the peak, which "
        "suits these rows best\n",
        100 * share);
    bool *done = heap_zalloc(v->rows->row_count + 1, sizeof *done);
    for (size_t i = 0; i < v->rows->row_count; i++) {
        double error;
        if (done[i] || !closed_form_error(v, i, share, &error))
            continue;
        for (size_t k = i; k < v->rows->row_count; k++)
            done[k] |= validation_are_rows_of_one_table(v, i, k);
        struct error_sums sum = sum_errors_of_table(v, i, share);
        const struct external_run *row = &v->rows->rows[i];
        text_printf(out, "  %s %s %s: %.1f %%, %+.1f %%, of %zu; simulated %.1f %%\n",
                    row->cells[EXTERNAL_SOURCE], row->cells[EXTERNAL_PLACE],
                    row->cells[EXTERNAL_METRIC], 100 * error_means_mean_absolute(&sum.closed_form),
                    100 * sum.closed_form.worst_error, sum.closed_form.count,
                    100 * error_means_mean_absolute(&sum.simulated));
    }
    free(done);
}

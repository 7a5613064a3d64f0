#include "cli/measure/run_report.h"

#include "base/units.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- the check ---- */

struct row_table run_check_table(struct column column[RUN_CHECK_COLUMNS], int width)
{
    column[0] =
        (struct column){"name", "worst error of", NULL, COLUMN_PLAIN_TEXT, -width, "The tensor."};
    for (int part = 0; part < REFERENCE_CHECK_PART_COUNT; part++)
        column[1 + part] = (struct column){
            .key = reference_check_part_names[part],
            .label = reference_check_part_names[part],
            .kind = COLUMN_SMALL_NUMBER,
            .text_width = 10,
            .description = "Largest error beside the reference; null: the schedule has none.",
        };
    return (struct row_table){"run_check_tensor", column, RUN_CHECK_COLUMNS};
}

void run_report_put_tensors(struct rows *rows, const struct reference_check *a)
{
    struct column column[RUN_CHECK_COLUMNS];
    int width = 24;
    for (uint32_t i = 0; i < a->row_count; i++)
        if ((int)strlen(a->rows[i].tensor) > width)
            width = (int)strlen(a->rows[i].tensor);
    const struct row_table table = run_check_table(column, width);
    rows_begin(rows, "tensors", NULL, &table);
    for (uint32_t i = 0; i < a->row_count; i++) {
        rows_put_text(rows, a->rows[i].tensor);
        for (int part = 0; part < REFERENCE_CHECK_PART_COUNT; part++)
            rows_put_number(rows, reference_check_max_row_difference(
                                      &a->rows[i], (enum reference_check_part)part));
    }
    rows_end(rows);
}

void run_report_put_check(struct text *out, const struct reference_check *a)
{
    struct rows rows = {.out = out};
    run_report_put_tensors(&rows, a);
    /* the step whose loss has the larger error */
    int step = a->loss_error[1].difference > a->loss_error[0].difference;
    text_printf(out, "loss %.7g, reference %.7g, off by %.1e\n", a->loss[step], a->reference_loss,
                a->loss_error[step].difference);
    text_printf(out, "norm %.7g, reference %.7g, off by %.1e", a->gradient_norm,
                a->reference_gradient_norm, a->norm_error.difference);
    if (a->clips)
        text_printf(out, "; a second step clips it to %g", reference_check_adamw.max_norm);
    text_putc(out, '\n');
    text_printf(out,
                "%s: %" PRIu32 " tensors beside the reference, tolerance %.0e of the largest "
                "element%s\n",
                reference_check_verdict_names[a->verdict], a->row_count, a->rule.tolerance,
                a->agrees && a->has_rounding_error ? ", or 4 times what rounding alone moves it by"
                                                   : "");
}

/* ---- training ---- */

double run_loss_curve_worst_error(const struct loss_curve *curve)
{
    double worst = 0;
    for (uint32_t i = 0; i < curve->step_count; i++) {
        double off = fabs(curve->loss[i] - curve->reference[i]) / fabs(curve->reference[i]);
        worst = off > worst ? off : isnan(off) ? (double)INFINITY : worst;
    }
    return worst;
}

void run_report_put_loss_curve(struct text *out, const struct loss_curve *curve)
{
    const double *reference = curve->reference;
    text_puts(out, reference != NULL ? "step      loss  reference  off by\n" : "step      loss\n");
    for (uint32_t i = 0; i < curve->step_count; i++) {
        text_printf(out, "%4" PRIu32 "  %8.5f", i + 1, curve->loss[i]);
        if (reference != NULL)
            text_printf(out, "   %8.5f  %.0e", reference[i],
                        fabs(curve->loss[i] - reference[i]) / fabs(reference[i]));
        text_putc(out, '\n');
    }
    if (reference == NULL)
        return;
    double worst = run_loss_curve_worst_error(curve);
    text_printf(out, "%s: the loss lies within %.1e of the reference's, tolerance %.0e\n",
                worst <= curve->tolerance ? "right" : "wrong", worst, curve->tolerance);
}

/* ---- the run ---- */

static void put_memory(struct text *out, const struct exec_result *result)
{
    const char *before = "";
    for (int m = 0; m < MEMORY_COUNT; m++) {
        if (result->planned_bytes[m] == 0)
            continue;
        text_printf(out, "%s%s arena ", before, memory_names[m]);
        units_put(out, UNIT_BYTES, (double)result->planned_bytes[m]);
        if (result->trace.memory.count > 0) {
            text_puts(out, ", peak ");
            units_put(out, UNIT_BYTES, (double)result->peak_bytes[m]);
        }
        before = "; ";
    }
}

void run_report_put_step_times(struct text *out, const char *what, const char *backend,
                               const struct ir *ir, const struct exec_result *result)
{
    double fastest = result->median_s, slowest = result->median_s;
    double tokens = (double)ir->global_batch * (double)ir->layout.sequence_tokens;
    for (uint32_t i = 0; i < result->steps; i++) {
        fastest = fmin(fastest, result->step_s[i]);
        slowest = fmax(slowest, result->step_s[i]);
    }
    text_printf(out, "ran      %s; %" PRIu32 " rank%s on %s, ", what, result->ranks,
                result->ranks == 1 ? "" : "s", backend);
    units_put_tokens(out, ir->layout.sequence_tokens);
    text_printf(out, " tokens, batch %" PRId64 ", %s\n", ir->global_batch,
                dtype_name((enum dtype)ir->dtype));
    text_puts(out, "step     ");
    units_put(out, UNIT_SECONDS, result->median_s);
    if (result->steps > 1) {
        text_printf(out, ", median of %" PRIu32 " (", result->steps);
        units_put(out, UNIT_SECONDS, fastest);
        text_puts(out, " to ");
        units_put(out, UNIT_SECONDS, slowest);
        text_puts(out, ")");
    }
    double rate = tokens / result->median_s;
    text_printf(out, "; %.*f tokens/s\n", rate < 100 ? 2 : 0, rate);
    if (result->clock_mhz > 0) {
        text_printf(out,
                    "clock    %.0f MHz in the mean of the measured steps, after %" PRIu32
                    " step%s of warm-up\n",
                    result->clock_mhz, result->warmup_steps, result->warmup_steps == 1 ? "" : "s");
    }
    text_puts(out, "memory   per rank: ");
    put_memory(out, result);
    text_putc(out, '\n');
}

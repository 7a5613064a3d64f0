#include "cli/validate/open_table.h"

#include "base/c_locale.h"
#include "models/interval.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_same_traits(const struct residual *a, const struct residual *b)
{
    return strcmp(a->source, b->source) == 0 && strcmp(a->device, b->device) == 0 &&
           strcmp(a->framework, b->framework) == 0 &&
           a->spans_several_nodes == b->spans_several_nodes;
}

static void add_run(struct accuracy_table_row *row, const struct residual *run,
                    const struct evidence *evidence)
{
    double value = run->log_ratio[RESIDUAL_TIME], error = expm1(value);
    const struct interval interval = interval_of_run(evidence, RESIDUAL_TIME, run, run->laboratory);
    error_means_add(&row->errors, error);
    row->runs_with_interval += interval_is_known(&interval);
    row->inside_count += value >= interval.low && value <= interval.high;
}

size_t open_table_make_accuracy_rows(struct accuracy_table_row *rows, const struct residuals *runs,
                                     const struct evidence *evidence)
{
    size_t count = 0;
    for (size_t i = 0; i < runs->row_count; i++) {
        const struct residual *run = &runs->rows[i];
        size_t k = 0;
        if (isnan(run->log_ratio[RESIDUAL_TIME]))
            continue;
        while (k < count && !has_same_traits(rows[k].first_residual, run))
            k++;
        if (k == count)
            rows[count++] = (struct accuracy_table_row){.first_residual = run};
        add_run(&rows[k], run, evidence);
    }
    return count;
}

static void put_row(struct text *out, const struct accuracy_table_row *row, bool markdown)
{
    char held[16] = "-";
    const char *scale = row->first_residual->spans_several_nodes ? "several nodes" : "one node";
    if (row->runs_with_interval > 0)
        c_snprintf(held, sizeof held, "%.0f %%",
                   100 * (double)row->inside_count / (double)row->runs_with_interval);
    text_printf(out,
                markdown ? "| %s | %s | %s | %s | %zu | %.1f %% | %+.1f %% | %+.1f %% | %s |\n"
                         : "  %-16s %-6s %-12s %-13s %5zu %6.1f %% %+7.1f %% %+6.1f %% %7s\n",
                row->first_residual->source, row->first_residual->device,
                row->first_residual->framework, scale, row->errors.count,
                100 * error_means_mean_absolute(&row->errors), 100 * row->errors.worst_error,
                100 * error_means_mean_signed(&row->errors), held);
}

void open_table_print_accuracy(struct text *out, const struct residuals *runs,
                               const struct evidence *evidence, bool markdown)
{
    struct accuracy_table_row *rows = heap_zalloc(runs->row_count + 1, sizeof *rows);
    size_t count = open_table_make_accuracy_rows(rows, runs, evidence);
    if (count > 0 && markdown)
        text_puts(out, "| source | device | profile | scale | runs | mean | worst | bias | "
                       "inside 90 % |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    else if (count > 0)
        text_printf(out,
                    "\nwhole steps by source, device, profile and scale; errors are measured / "
                    "predicted seconds - 1\n  %-16s %-6s %-12s %-13s %5s %8s %9s %8s %7s\n",
                    "source", "device", "profile", "scale", "runs", "mean", "worst", "bias",
                    "in 90 %");
    for (size_t k = 0; k < count; k++)
        put_row(out, &rows[k], markdown);
    free(rows);
}

/* cli/validate/sensitivity.c: prints by how much the mean error of each table changes with each number of the
 * machine. */
#include "cli/validate/print.h"
#include "predict/validate/table_moves.h"

#include <math.h>

/* A number of the machine has a row of its own only if it changes some mean by at least this. */
static const double shown = 0.0005;

static bool is_any_table_growth_shown(const struct table_error_growth_by_number *m)
{
    bool any = false;
    for (size_t t = 0; t < m->table_count; t++)
        any |= fabs(m->mean_error_growth_by_table[0][t]) >= shown ||
               fabs(m->mean_error_growth_by_table[1][t]) >= shown;
    return any;
}

static void put_sensitivity_header(struct text *out, const struct validation *v,
                                   const struct table_error_growth_by_number *m)
{
    text_puts(
        out, "sensitivity: points of a table's mean error when a number falls and rises by 10 %\n");
    for (size_t t = 0; t < m->table_count; t++) {
        const char *const *text = v->rows->rows[m->first_row_of_table[t]].cells;
        text_printf(out, "  (%zu) %s %s %s\n", t + 1, text[EXTERNAL_SOURCE], text[EXTERNAL_PLACE],
                    text[EXTERNAL_METRIC]);
    }
    text_printf(out, "  %-34s", "");
    for (size_t t = 0; t < m->table_count; t++)
        text_printf(out, "  %12zu ", t + 1);
    text_putc(out, '\n');
}

enum status validation_print_sensitivity(struct text *out, const struct validation *v,
                                         struct diag *diag)
{
    struct table_error_growth_by_number m;
    struct text still = {0}, name = {0};
    enum status status = STATUS_OK;
    table_moves_init(&m, v);
    put_sensitivity_header(out, v, &m);
    for (size_t i = 0; i < perturbation_count() && status == STATUS_OK; i++) {
        name.size = 0;
        if (!perturbation_put_name(&name, i))
            continue;
        status = table_moves_find_growth(&m, v, i, diag);
        if (status != STATUS_OK || !is_any_table_growth_shown(&m)) {
            text_printf(&still, " %s", name.data);
            continue;
        }
        text_printf(out, "  %-34s", name.data);
        for (size_t t = 0; t < m.table_count; t++)
            text_printf(out, "  %+6.2f %+6.2f", 100 * m.mean_error_growth_by_table[0][t],
                        100 * m.mean_error_growth_by_table[1][t]);
        text_putc(out, '\n');
    }
    text_printf(out, "  no table moves by %g points with:%s\n", 100 * shown,
                still.size > 0 ? still.data : " none");
    text_release(&still);
    text_release(&name);
    table_moves_release(&m);
    return status;
}

/* How the mean error of each table moves when one number of the machine does. */
#include "cli/validate/print.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double step = 0.1, shown = 0.0005; /* a mean that moves by less is not shown */

/* The mean error of the table and metric of row i. */
static double mean_of(const struct validation *v, size_t i)
{
    double sum = 0;
    size_t count = 0;
    for (size_t k = 0; k < v->rows->count; k++)
        if (v->row[k].counted && validation_same_table(v, i, k)) {
            sum += fabs(v->row[k].result.relative_error);
            count++;
        }
    return count > 0 ? sum / (double)count : 0;
}

/* The tables, known by their first rows that count, and how each moves when a number falls [0] and rises [1]. */
struct moves {
    size_t *first, tables;
    double *by[2];
};

static void moves_init(struct moves *m, const struct validation *v)
{
    *m = (struct moves){.first = heap_alloc(v->rows->count + 1, sizeof *m->first)};
    for (size_t i = 0; i < v->rows->count; i++) {
        bool seen = !v->row[i].counted;
        for (size_t t = 0; t < m->tables; t++)
            seen |= validation_same_table(v, m->first[t], i);
        if (!seen)
            m->first[m->tables++] = i;
    }
    for (int up = 0; up < 2; up++)
        m->by[up] = heap_zalloc(m->tables + 1, sizeof *m->by[up]);
}

static void moves_release(struct moves *m)
{
    free(m->first);
    free(m->by[0]);
    free(m->by[1]);
}

/* Predicts all rows with a number lowered and raised; *any: a table moves. */
static enum status move(struct moves *m, const struct validation *v, size_t number, bool *any,
                        struct diag *diag)
{
    *any = false;
    for (int up = 0; up < 2; up++) {
        struct tweak tweak = {number, up ? 1 + step : 1 - step};
        struct validation other = {.tweak = &tweak, .tweaks = 1};
        enum status status = validation_run(&other, v->rows, diag);
        for (size_t t = 0; t < m->tables && status == STATUS_OK; t++) {
            m->by[up][t] = mean_of(&other, m->first[t]) - mean_of(v, m->first[t]);
            *any |= fabs(m->by[up][t]) >= shown;
        }
        validation_release(&other);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static void put_head(struct text *out, const struct validation *v, const struct moves *m)
{
    text_puts(
        out, "sensitivity: points of a table's mean error when a number falls and rises by 10 %\n");
    for (size_t t = 0; t < m->tables; t++) {
        const char *const *text = v->rows->row[m->first[t]].text;
        text_printf(out, "  (%zu) %s %s %s\n", t + 1, text[MEASUREMENT_SOURCE],
                    text[MEASUREMENT_TABLE], text[MEASUREMENT_METRIC]);
    }
    text_printf(out, "  %-34s", "");
    for (size_t t = 0; t < m->tables; t++)
        text_printf(out, "  %12zu ", t + 1);
    text_putc(out, '\n');
}

enum status validation_print_sensitivity(struct text *out, const struct validation *v,
                                         struct diag *diag)
{
    struct moves m;
    struct text still = {0}, name = {0};
    enum status status = STATUS_OK;
    moves_init(&m, v);
    put_head(out, v, &m);
    for (size_t i = 0; i < tweak_count() && status == STATUS_OK; i++) {
        bool any = false;
        name.size = 0;
        if (!tweak_put_name(&name, i))
            continue;
        status = move(&m, v, i, &any, diag);
        if (!any) {
            text_printf(&still, " %s", name.data);
            continue;
        }
        text_printf(out, "  %-34s", name.data);
        for (size_t t = 0; t < m.tables; t++)
            text_printf(out, "  %+6.2f %+6.2f", 100 * m.by[0][t], 100 * m.by[1][t]);
        text_putc(out, '\n');
    }
    text_printf(out, "  no table moves by %g points with:%s\n", 100 * shown,
                still.size > 0 ? still.data : " none");
    text_release(&still);
    text_release(&name);
    moves_release(&m);
    return status;
}

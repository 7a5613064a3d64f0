/* How the mean error of each table moves when one number of the machine does. */
#include "cli/validation.h"
#include "models/cluster_fields.h"
#include "models/cost_parts.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double step = 0.1, shown = 0.0005; /* a mean that moves by less is not shown */

/* Numbers of a cluster, then of a device's costs, then of each direction of attention by fa2. */
enum { RATE, RAMP, ATTENTION_NUMBERS };

static size_t number_count(void)
{
    return CLUSTER_FIELD_COUNT + cost_param_count + ATTENTION_PASS_COUNT * ATTENTION_NUMBERS;
}

static double *cluster_number(struct cluster *cluster, const struct cluster_field *field)
{
    bool real = field->type == FIELD_BYTES_PER_S || field->type == FIELD_SECONDS ||
                field->type == FIELD_NUMBER;
    return real ? (double *)((char *)cluster + field->offset) : NULL;
}

static bool put_name(struct text *name, size_t i)
{
    static const char *const numbers[ATTENTION_NUMBERS] = {"rates", "ramp_s"};
    if (i < CLUSTER_FIELD_COUNT) {
        struct cluster none = {0};
        text_puts(name, cluster_fields[i].path);
        return cluster_number(&none, &cluster_fields[i]) != NULL;
    }
    i -= CLUSTER_FIELD_COUNT;
    if (i < cost_param_count) {
        text_printf(name, "%s.%s", cost_params[i].family, cost_params[i].field);
        return true;
    }
    i -= cost_param_count;
    text_printf(name, "attention.fa2.%s.%s", cost_pass_names[i / ATTENTION_NUMBERS],
                numbers[i % ATTENTION_NUMBERS]);
    return true;
}

size_t validation_number(const char *name)
{
    struct text text = {0};
    size_t i = 0;
    for (; i < number_count(); i++) {
        text.size = 0;
        if (put_name(&text, i) && strcmp(text.data, name) == 0)
            break;
    }
    text_release(&text);
    assert(i < number_count());
    return i;
}

void validation_tweak(struct setup *setup, struct validation_tweak tweak)
{
    size_t i = tweak.number;
    if (tweak.factor == 0)
        return;
    if (i < CLUSTER_FIELD_COUNT) {
        double *number = cluster_number(&setup->cluster, &cluster_fields[i]);
        if (number != NULL)
            *number *= tweak.factor;
        return;
    }
    i -= CLUSTER_FIELD_COUNT;
    if (i < cost_param_count) {
        *(double *)((char *)&setup->cost + cost_params[i].offset) *= tweak.factor;
        return;
    }
    i -= cost_param_count;
    struct cost_attention *a = &setup->cost.attention[ATTENTION_FA2][i / ATTENTION_NUMBERS];
    if (i % ATTENTION_NUMBERS == RAMP)
        a->ramp_s *= tweak.factor;
    for (size_t d = 0; i % ATTENTION_NUMBERS == RATE && d < a->dims; d++)
        a->flop_per_s[d] *= tweak.factor;
}

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

/* Appends a line where a table moves; the tables are those of first[0..tables). */
static enum status put_number(struct text *out, const struct validation *v, size_t number,
                              const char *name, const size_t *first, size_t tables, bool *moves,
                              struct diag *diag)
{
    double moved[2][64];
    *moves = false;
    for (int up = 0; up < 2; up++) {
        struct validation_tweak tweak = {number, up ? 1 + step : 1 - step};
        struct validation other = {.tweak = &tweak, .tweaks = 1};
        enum status status = validation_run(&other, v->rows, diag);
        for (size_t t = 0; t < tables && status == STATUS_OK; t++) {
            moved[up][t] = mean_of(&other, first[t]) - mean_of(v, first[t]);
            *moves |= fabs(moved[up][t]) >= shown;
        }
        validation_release(&other);
        if (status != STATUS_OK)
            return status;
    }
    if (!*moves)
        return STATUS_OK;
    text_printf(out, "  %-30s", name);
    for (size_t t = 0; t < tables; t++)
        text_printf(out, "  %+5.2f %+5.2f", 100 * moved[0][t], 100 * moved[1][t]);
    text_putc(out, '\n');
    return STATUS_OK;
}

enum status validation_print_sensitivity(struct text *out, const struct validation *v,
                                         struct diag *diag)
{
    size_t first[64], tables = 0;
    for (size_t i = 0; i < v->rows->count && tables < ARRAY_LEN(first); i++) {
        bool seen = !v->row[i].counted;
        for (size_t t = 0; t < tables; t++)
            seen |= validation_same_table(v, first[t], i);
        if (!seen)
            first[tables++] = i;
    }
    text_puts(
        out, "sensitivity: points of a table's mean error when a number falls and rises by 10 %\n");
    text_printf(out, "  %-30s", "");
    for (size_t t = 0; t < tables; t++)
        text_printf(out, "  %s %s", v->rows->row[first[t]].text[MEASUREMENT_TABLE],
                    v->rows->row[first[t]].text[MEASUREMENT_METRIC]);
    text_putc(out, '\n');
    struct text still = {0}, name = {0};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < number_count() && status == STATUS_OK; i++) {
        bool moves = false;
        name.size = 0;
        if (!put_name(&name, i))
            continue;
        status = put_number(out, v, i, name.data, first, tables, &moves, diag);
        if (!moves)
            text_printf(&still, " %s", name.data);
    }
    text_printf(out, "  no table moves by %g points with:%s\n", 100 * shown,
                still.size > 0 ? still.data : " none");
    text_release(&still);
    text_release(&name);
    return status;
}

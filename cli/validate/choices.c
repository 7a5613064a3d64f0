/* Runs that differ in one choice only: is the one predicted to be best the one that was best? */
#include "cli/validate/print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct choice {
    const char *name;
    const char *key[2]; /* options that make it; NULL: fewer */
} choices[] = {
    {"split", {"dhp", "dcp"}},
    {"placement", {"placement", NULL}},
    {"window", {"inner_ring", NULL}},
    {"rotation", {"rotate", NULL}},
};

static bool is_of(const struct choice *choice, const char *key)
{
    return (choice->key[0] != NULL && strcmp(key, choice->key[0]) == 0) ||
           (choice->key[1] != NULL && strcmp(key, choice->key[1]) == 0);
}

/* True if every option of a that the choice does not make is one of b too. */
static bool options_within(const struct measurement *a, const struct measurement *b,
                           const struct choice *choice)
{
    for (size_t i = 0; i < a->option_count; i++) {
        if (is_of(choice, a->option[i].key))
            continue;
        const char *value = measurement_option(b, a->option[i].key);
        if (value == NULL || strcmp(value, a->option[i].value) != 0)
            return false;
    }
    return true;
}

static bool same_but(const struct measurement *a, const struct measurement *b,
                     const struct choice *choice)
{
    static const enum measurement_column columns[] = {
        MEASUREMENT_SOURCE,  MEASUREMENT_TABLE, MEASUREMENT_SYSTEM,  MEASUREMENT_MODEL,
        MEASUREMENT_CLUSTER, MEASUREMENT_GPUS,  MEASUREMENT_SEQ_LEN, MEASUREMENT_METRIC};
    for (size_t i = 0; i < ARRAY_LEN(columns); i++)
        if (strcmp(a->text[columns[i]], b->text[columns[i]]) != 0)
            return false;
    return options_within(a, b, choice) && options_within(b, a, choice);
}

/* Returns 1 if more of a metric is better, -1 if less is, 0 if the metric decides nothing. */
static int better(enum measurement_metric metric)
{
    switch (metric) {
    case METRIC_TGS:
        return 1;
    case METRIC_STEP_MS:
    case METRIC_ATTENTION_MS:
        return -1;
    default:
        return 0;
    }
}

struct tally {
    size_t groups, same, close; /* of these, within 2 % of the best */
    double worst; /* the largest fraction by which a choice predicted to be best is slower */
};

/* Tallies the group of rows from i on that differ from row i only in the choice, and marks them as done. */
static void count_group(const struct validation *v, const struct choice *choice, size_t i,
                        bool *done, struct tally *tally)
{
    const struct measurement *row = v->rows->row;
    size_t members = 0, best = i, ours = i;
    int sign = better(row[i].metric);
    for (size_t k = i; k < v->rows->count; k++) {
        if (done[k] || v->row[k].result.outcome != OUTCOME_OK ||
            !same_but(&row[i], &row[k], choice))
            continue;
        done[k] = true;
        members++;
        if (sign * (row[k].value - row[best].value) > 0)
            best = k;
        if (sign * (v->row[k].result.predicted - v->row[ours].result.predicted) > 0)
            ours = k;
    }
    if (members < 2)
        return;
    double loss = fabs(row[ours].value / row[best].value - 1);
    tally->groups++;
    tally->same += loss == 0;
    tally->close += loss <= 0.02;
    tally->worst = loss > tally->worst ? loss : tally->worst;
}

void validation_print_choices(struct text *out, const struct validation *v)
{
    bool headed = false;
    for (size_t c = 0; c < ARRAY_LEN(choices); c++) {
        bool *done = heap_zalloc(v->rows->count + 1, sizeof *done);
        for (size_t i = 0; i < v->rows->count; i++) {
            const struct measurement *row = &v->rows->row[i];
            struct tally tally = {0};
            for (size_t k = i; k < v->rows->count; k++)
                if (!done[k] && v->row[k].result.outcome == OUTCOME_OK &&
                    better(v->rows->row[k].metric) != 0 && validation_same_table(v, i, k))
                    count_group(v, &choices[c], k, done, &tally);
            if (tally.groups == 0)
                continue;
            if (!headed)
                text_puts(out,
                          "choices: is what is predicted best what was best, or within 2 %?\n");
            headed = true;
            text_printf(out, "  %s %s %s, %s: %zu of %zu the same, %zu within 2 %%",
                        row->text[MEASUREMENT_SOURCE], row->text[MEASUREMENT_TABLE],
                        row->text[MEASUREMENT_METRIC], choices[c].name, tally.same, tally.groups,
                        tally.close);
            if (tally.worst > 0)
                text_printf(out, "; the worst loses %.1f %%", 100 * tally.worst);
            text_putc(out, '\n');
        }
        free(done);
    }
}

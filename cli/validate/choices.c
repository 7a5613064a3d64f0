/* cli/validate/choices.c: prints in how many groups of runs that differ in only one choice the run that is predicted to
 * be best was the best. */
#include "cli/validate/print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The choices that a group of rows may differ in, as the column `group` names them. */
static const char *const choices[] = {"split", "placement", "window", "rotation"};

/* Returns 1 if a larger value of the metric is better, -1 if a smaller one is, and 0 for metrics by
 * which choices are not compared. */
static int sign_of_better_value(enum measurement_metric metric)
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

struct choice_prediction_tally {
    /* best_predicted_groups: groups whose best choice is predicted; nearly_best_groups: groups in which the predicted
     * choice is within 2 % of the best */
    size_t group_count, best_predicted_groups, nearly_best_groups;
    /* the largest share by which a choice that is predicted to be best is slower than the best */
    double worst_loss_of_predicted_best;
};

/* Adds the group of row i to *tally: the predicted rows from i on that have the metric of row i and differ from it only
 * in the choice. Marks them as done. A row that is alone in its group is not counted. */
static void add_choice_group_to_tally(const struct validation *v, const char *choice, size_t i,
                                      bool *done, struct choice_prediction_tally *tally)
{
    const struct external_run *row = v->rows->rows;
    size_t members = 0, best = i, ours = i;
    int sign = sign_of_better_value(row[i].metric);
    for (size_t k = i; k < v->rows->row_count; k++) {
        if (done[k] || v->row[k].result.outcome != OUTCOME_OK || row[k].metric != row[i].metric ||
            !external_are_in_same_group(&row[i], &row[k], choice))
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
    tally->group_count++;
    tally->best_predicted_groups += loss == 0;
    tally->nearly_best_groups += loss <= 0.02;
    tally->worst_loss_of_predicted_best =
        loss > tally->worst_loss_of_predicted_best ? loss : tally->worst_loss_of_predicted_best;
}

void validation_print_choices(struct text *out, const struct validation *v)
{
    bool is_heading_printed = false;
    for (size_t c = 0; c < ARRAY_LEN(choices); c++) {
        bool *done = heap_zalloc(v->rows->row_count + 1, sizeof *done);
        for (size_t i = 0; i < v->rows->row_count; i++) {
            const struct external_run *row = &v->rows->rows[i];
            struct choice_prediction_tally tally = {0};
            for (size_t k = i; k < v->rows->row_count; k++)
                if (!done[k] && v->row[k].result.outcome == OUTCOME_OK &&
                    sign_of_better_value(v->rows->rows[k].metric) != 0 &&
                    validation_are_rows_of_one_table(v, i, k))
                    add_choice_group_to_tally(v, choices[c], k, done, &tally);
            if (tally.group_count == 0)
                continue;
            if (!is_heading_printed)
                text_puts(out,
                          "choices: is what is predicted best what was best, or within 2 %?\n");
            is_heading_printed = true;
            text_printf(out, "  %s %s %s, %s: %zu of %zu the same, %zu within 2 %%",
                        row->cells[EXTERNAL_SOURCE], row->cells[EXTERNAL_PLACE],
                        row->cells[EXTERNAL_METRIC], choices[c], tally.best_predicted_groups,
                        tally.group_count, tally.nearly_best_groups);
            if (tally.worst_loss_of_predicted_best > 0)
                text_printf(out, "; the worst loses %.1f %%",
                            100 * tally.worst_loss_of_predicted_best);
            text_putc(out, '\n');
        }
        free(done);
    }
}

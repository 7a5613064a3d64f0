#include "predict/validate/table_moves.h"

#include <math.h>
#include <stdlib.h>

/* Returns the mean absolute error over the rows that count and have the table and metric of row i; 0 if there are
 * none. */
static double mean_absolute_error(const struct validation *v, size_t i)
{
    double sum = 0;
    size_t count = 0;
    for (size_t k = 0; k < v->rows->row_count; k++)
        if (v->row[k].counts_in_means && validation_are_rows_of_one_table(v, i, k)) {
            sum += fabs(v->row[k].result.relative_error);
            count++;
        }
    return count > 0 ? sum / (double)count : 0;
}

void table_moves_init(struct table_error_growth_by_number *m, const struct validation *v)
{
    *m = (struct table_error_growth_by_number){
        .first_row_of_table = heap_alloc(v->rows->row_count + 1, sizeof *m->first_row_of_table)};
    for (size_t i = 0; i < v->rows->row_count; i++) {
        bool seen = !v->row[i].counts_in_means;
        for (size_t t = 0; t < m->table_count; t++)
            seen |= validation_are_rows_of_one_table(v, m->first_row_of_table[t], i);
        if (!seen)
            m->first_row_of_table[m->table_count++] = i;
    }
    for (int up = 0; up < 2; up++)
        m->mean_error_growth_by_table[up] =
            heap_zalloc(m->table_count + 1, sizeof *m->mean_error_growth_by_table[up]);
}

void table_moves_release(struct table_error_growth_by_number *m)
{
    free(m->first_row_of_table);
    free(m->mean_error_growth_by_table[0]);
    free(m->mean_error_growth_by_table[1]);
}

enum status table_moves_find_growth(struct table_error_growth_by_number *m,
                                    const struct validation *v, size_t number, struct diag *diag)
{
    for (int up = 0; up < 2; up++) {
        struct perturbation perturbation = {number, up ? 1 + TABLE_MOVES_NUMBER_CHANGE
                                                       : 1 - TABLE_MOVES_NUMBER_CHANGE};
        struct validation other = {.setup_loader = v->setup_loader,
                                   .perturbation = &perturbation,
                                   .perturbation_count = 1};
        enum status status = validation_run(&other, v->rows, diag);
        for (size_t t = 0; t < m->table_count && status == STATUS_OK; t++)
            m->mean_error_growth_by_table[up][t] =
                mean_absolute_error(&other, m->first_row_of_table[t]) -
                mean_absolute_error(v, m->first_row_of_table[t]);
        validation_release(&other);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

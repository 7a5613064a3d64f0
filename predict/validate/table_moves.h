/* predict/validate/table_moves.h: the change of each table's mean error when one number of the machine
 * changes. */
#ifndef PREDICT_VALIDATE_TABLE_MOVES_H
#define PREDICT_VALIDATE_TABLE_MOVES_H

#include "predict/validate/validation.h"

/* A number is multiplied by 1 - TABLE_MOVES_NUMBER_CHANGE and by 1 + TABLE_MOVES_NUMBER_CHANGE. */
#define TABLE_MOVES_NUMBER_CHANGE 0.1

/* The effect of one number of the machine on the errors of tables. A table is a source, a place in it and a metric;
 * first_row_of_table has its first row that counts in means. mean_error_growth_by_table[0],
 * mean_error_growth_by_table[1]: by how much the mean absolute error of each table grows if the number is lowered, and
 * if it is raised; below 0: it shrinks. */
struct table_error_growth_by_number {
    size_t *first_row_of_table, table_count;
    double *mean_error_growth_by_table[2];
};

void table_moves_init(struct table_error_growth_by_number *moves,
                      const struct validation *validation);
void table_moves_release(struct table_error_growth_by_number *moves);

/* Predicts all rows with a number lowered and with it raised (predict/validate/perturbation.h), and fills
 * mean_error_growth_by_table. */
enum status table_moves_find_growth(struct table_error_growth_by_number *moves,
                                    const struct validation *validation, size_t number,
                                    struct diag *diag);

#endif

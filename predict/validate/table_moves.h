/* predict/validate/table_moves.h: the change of each table's mean error when one number of the machine changes. */
#ifndef PREDICT_VALIDATE_TABLE_MOVES_H
#define PREDICT_VALIDATE_TABLE_MOVES_H

#include "predict/validate/validation.h"

/* The share by which a number falls and rises. */
#define TABLE_MOVES_STEP 0.1

/* The tables, one for each source, table and metric, each given by its first row that counts; and by how much the mean
 * absolute error of each grows when a number is lowered [0] and raised [1]. */
struct table_moves {
    size_t *first, tables;
    double *by[2];
};

void table_moves_init(struct table_moves *moves, const struct validation *validation);
void table_moves_release(struct table_moves *moves);

/* Predicts all rows with a number lowered and raised (predict/validate/perturbation.h), and fills `by`. */
enum status table_moves_find(struct table_moves *moves, const struct validation *validation,
                             size_t number, struct diag *diag);

#endif

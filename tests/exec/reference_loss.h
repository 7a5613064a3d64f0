/* tests/exec/reference_loss.h: the loss and the gradients of a batch by the reference, with a failed check if it
 * refuses the batch, and the norm of a difference. Included by test files only. */
#ifndef TESTS_EXEC_REFERENCE_LOSS_H
#define TESTS_EXEC_REFERENCE_LOSS_H

#include "exec/reference.h"
#include "tests/check.h"

#include <math.h>
#include <stdio.h>

static inline double loss_of(struct reference *r, const struct reference_batch *b)
{
    double loss = NAN;
    struct diag diag = {0};
    if (!CHECK_INT("loss", reference_loss(r, b, &loss, &diag), STATUS_OK))
        printf("\n    %s", diag.text);
    diag_release(&diag);
    return loss;
}

static inline double loss_and_gradients_of(struct reference *r, const struct reference_batch *b)
{
    double loss = NAN;
    struct diag diag = {0};
    if (!CHECK_INT("gradients", reference_gradients(r, b, &loss, &diag), STATUS_OK))
        printf("\n    %s", diag.text);
    diag_release(&diag);
    return loss;
}

/* Returns the norm of a - b; b NULL: of a. */
static inline double norm_of_difference(const double *a, const double *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (a[i] - (b != NULL ? b[i] : 0)) * (a[i] - (b != NULL ? b[i] : 0));
    return sqrt(sum);
}

#endif

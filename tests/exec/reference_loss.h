/* tests/exec/reference_loss.h: the loss and the gradients of a batch by the reference, with a failed check if it
 * refuses the batch. Included by test files only. */
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

static inline double gradients_of(struct reference *r, const struct reference_batch *b)
{
    double loss = NAN;
    struct diag diag = {0};
    if (!CHECK_INT("gradients", reference_gradients(r, b, &loss, &diag), STATUS_OK))
        printf("\n    %s", diag.text);
    diag_release(&diag);
    return loss;
}

#endif

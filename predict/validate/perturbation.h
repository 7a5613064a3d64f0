/* predict/validate/perturbation.h: multiplies one number of a machine by a factor.
 *
 * A number is chosen by its index: first come the fields of a cluster, then the numbers of a device's costs, then the
 * rates and the ramp of fa2 attention, forward and backward. */
#ifndef PREDICT_VALIDATE_PERTURBATION_H
#define PREDICT_VALIDATE_PERTURBATION_H

#include "base/text.h"
#include "predict/setup/setup.h"

#include <stdbool.h>
#include <stddef.h>

struct perturbation {
    size_t perturbed_number_index;
    double factor; /* 0: the number is not changed */
};

size_t perturbation_count(void); /* Returns how many numbers there are. */

/* Appends the name of a number. Returns false if a factor cannot change this number. */
bool perturbation_put_name(struct text *name, size_t number);

/* Returns the index of the number that has the name. There must be one. */
size_t perturbation_index_of_number_named(const char *name);

void perturbation_apply(struct setup *setup, struct perturbation perturbation);

#endif

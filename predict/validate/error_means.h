/* predict/validate/error_means.h: what tables of accuracy say of several errors. */
#ifndef PREDICT_VALIDATE_ERROR_MEANS_H
#define PREDICT_VALIDATE_ERROR_MEANS_H

#include <stddef.h>

/* Errors are fractions. All-zero is empty. */
struct error_means {
    size_t count;
    double absolute, sum; /* of absolute values, and of the errors */
    double worst;         /* the error that is farthest from 0, the first of them; 0: none */
};

void error_means_add(struct error_means *means, double error);
double error_means_absolute(const struct error_means *means); /* the mean of absolute values */
double error_means_mean(const struct error_means *means);

#endif

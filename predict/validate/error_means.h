/* predict/validate/error_means.h: sums up errors for the tables of accuracy. */
#ifndef PREDICT_VALIDATE_ERROR_MEANS_H
#define PREDICT_VALIDATE_ERROR_MEANS_H

#include <stddef.h>

/* The number, the sums and the worst of errors. An error is a fraction: 0.1 is 10 %. All-zero is empty. */
struct error_means {
    size_t count;
    /* absolute_sum: the sum of the errors' absolute values; sum: that of the errors with their signs */
    double absolute_sum, sum;
    /* the error farthest from 0, the first of several; 0: there are no errors */
    double worst_error;
};

void error_means_add(struct error_means *means, double error);
double error_means_mean_absolute(const struct error_means *means); /* the mean of absolute values */
double error_means_mean_signed(const struct error_means *means);

#endif

#include "predict/validate/error_means.h"

#include <math.h>

void error_means_add(struct error_means *means, double error)
{
    means->count++;
    means->absolute_sum += fabs(error);
    means->sum += error;
    if (fabs(error) > fabs(means->worst_error))
        means->worst_error = error;
}

double error_means_mean_absolute(const struct error_means *means)
{
    return means->absolute_sum / (double)means->count;
}

double error_means_mean_signed(const struct error_means *means)
{
    return means->sum / (double)means->count;
}

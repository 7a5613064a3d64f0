#include "schedule/pipeline/ratios.h"

double ratio_hidden(double bytes, double hidden)
{
    return bytes <= hidden ? 1 : hidden / bytes;
}

void ratios_adaptive(double *alpha, const double *bytes, uint32_t units, const double *hidden)
{
    for (uint32_t i = 0; i < units; i++)
        alpha[i] = i + 1 < units ? ratio_hidden(bytes[i], hidden[i + 1]) : 0;
}

double ratios_kept(const double *alpha, const double *bytes, uint32_t i)
{
    double kept = bytes[i];
    for (uint32_t j = 0; j < i; j++)
        kept += (1 - alpha[j]) * bytes[j];
    return kept;
}

double ratios_live(const double *alpha, const double *bytes, uint32_t i)
{
    return ratios_kept(alpha, bytes, i) + (i > 0 ? alpha[i - 1] * bytes[i - 1] : 0);
}

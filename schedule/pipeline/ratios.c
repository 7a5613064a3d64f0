#include "schedule/pipeline/ratios.h"

double ratio_hidden(double bytes, double hidden)
{
    return bytes <= hidden ? 1 : hidden / bytes;
}

/* The power limit, and the share by which it slows work in a step (docs/costs.md, "What the power limit leaves"). */
#include "models/cost_parts.h"

#include <math.h>

double cost_power_limited_rate_share(const struct device_cost *cost, double watts)
{
    double limit = cost->device_power, memory = cost->device_memory_power, relief = 0;
    if (limit <= 0 || watts <= 0)
        return 1;
    if (memory > 0 && memory < limit)
        relief = (limit - memory) * cost->memory_s_per_tensor_s;
    return fmin(1, (relief + sqrt(relief * relief + 4 * watts * limit)) / (2 * watts));
}

double cost_sustained_s(const struct device_cost *cost, const struct cost_tensor_work *busy,
                        double burst_s)
{
    double seconds = fmax(busy->seconds, burst_s - busy->other_kernels_s);
    if (seconds <= 0)
        return busy->other_kernels_s; /* a mask may leave no pairs to compute */
    return busy->other_kernels_s +
           seconds / cost_power_limited_rate_share(cost, busy->watts * busy->seconds / seconds);
}

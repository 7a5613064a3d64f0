/* Decides whether the time of a work is extrapolated, and says why. */
#include "models/cost_parts.h"

const char *const cost_size_names[COST_SIZE_COUNT] = {
    [COST_SIZE_M] = "m",     [COST_SIZE_N] = "n",         [COST_SIZE_K] = "k",
    [COST_SIZE_Q] = "q",     [COST_SIZE_KV] = "kv",       [COST_SIZE_Q_TIMES_HEADS] = "q_heads",
    [COST_SIZE_DIM] = "dim", [COST_SIZE_BYTES] = "bytes",
};

void cost_get_sizes_of_work(const struct device_cost *cost, enum attention_impl impl,
                            const struct work *work, double sizes[COST_SIZE_COUNT])
{
    const struct work as = work_cost_equivalent(work);
    if (as.kind != work->kind) {
        cost_get_sizes_of_work(cost, work_attention_impl(work, impl), &as, sizes);
        return;
    }
    switch ((enum work_kind)work->kind) {
    case WORK_MATMUL:
        sizes[COST_SIZE_M] = (double)work->matmul.m;
        sizes[COST_SIZE_N] = (double)work->matmul.n;
        sizes[COST_SIZE_K] = (double)work->matmul.k;
        break;
    case WORK_ATTENTION:
    case WORK_ATTENTION_BACKWARD:
        sizes[COST_SIZE_Q] = (double)work->attention.q;
        sizes[COST_SIZE_KV] = (double)work->attention.kv;
        sizes[COST_SIZE_Q_TIMES_HEADS] = (double)work->attention.q * (double)work->attention.heads;
        sizes[COST_SIZE_DIM] = (double)work->attention.dim;
        break;
    default:
        sizes[COST_SIZE_BYTES] = cost_memory_traffic_bytes(cost, impl, work);
        break;
    }
}

const struct cost_calibrated_range *cost_calibration_of_work(const struct device_cost *cost,
                                                             enum attention_impl impl,
                                                             const struct work *work)
{
    const struct work as = work_cost_equivalent(work);
    impl = work_attention_impl(work, impl);
    switch ((enum work_kind)as.kind) {
    case WORK_MATMUL:
        return &cost->calibration[COST_MATMUL];
    case WORK_ATTENTION:
        return &cost->attention[impl][ATTENTION_FORWARD_PASS].calibration;
    case WORK_ATTENTION_BACKWARD:
        return &cost->attention[impl][ATTENTION_BACKWARD_PASS].calibration;
    default:
        return cost_bandwidth_share(cost, work) > 0 ||
                       (cost->is_ideal && work_memory_bytes(work) > 0)
                   ? &cost->calibration[COST_MEMORY]
                   : NULL;
    }
}

/* Appends why a size is outside the calibrated ones: "matmul k = 64 is under the calibrated 512..32768". Sizes are
 * printed as whole numbers: 1048576, not 1.04858e+06. */
static void explain_out_of_range(struct text *reason, const struct work *work, enum cost_size size,
                                 double value, double low, double high)
{
    if (!reason)
        return;
    text_printf(reason, "%s %s = %.0f is %s the calibrated %.0f..%.0f",
                work_kind_info((enum work_kind)work->kind)->name, cost_size_names[size], value,
                value < low ? "under" : "over", low, high);
}

bool cost_is_extrapolated(const struct device_cost *cost, enum attention_impl impl,
                          const struct work *work, struct text *reason)
{
    const struct cost_calibrated_range *calibration = cost_calibration_of_work(cost, impl, work);
    /* ideal costs are exact by definition, work without a calibration takes no time, and a recorded operator with `ps`
     * takes its measured time */
    if (cost->is_ideal || !calibration || (work->kind == WORK_OPAQUE && work->opaque.ps > 0))
        return false;
    if (!calibration->is_calibrated) {
        if (reason)
            text_printf(reason, "%s on %s is an estimate: %s",
                        work_kind_info((enum work_kind)work->kind)->name, cost->name,
                        calibration->source);
        return true;
    }
    double sizes[COST_SIZE_COUNT] = {0};
    cost_get_sizes_of_work(cost, impl, work, sizes);
    for (int i = 0; i < COST_SIZE_COUNT; i++) {
        double low = calibration->smallest_size[i], high = calibration->largest_size[i];
        if (high == 0 || (sizes[i] >= low && sizes[i] <= high))
            continue;
        explain_out_of_range(reason, work, (enum cost_size)i, sizes[i], low, high);
        return true;
    }
    return false;
}

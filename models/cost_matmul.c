/* Matrix products: tiles, waves, depth, and memory (docs/costs.md, "Matrix products"). */
#include "models/cost_parts.h"

#include <math.h>

/* The most parts into which a library cuts the sum over k; each part has tiles of its own. */
enum { SPLIT_MAX = 32 };

/* Returns the flop/s of products whose operands have 8 or 4 bits and scales of this kind; 0: the device has none. */
static double scaled_product_flop_per_s(const struct device_cost *cost, enum scaling scaling)
{
    switch (scaling) {
    case SCALING_TENSOR:
        return cost->matmul_tensor8_flop_per_s;
    case SCALING_ROW:
        return cost->matmul_row8_flop_per_s;
    case SCALING_VECTOR:
    case SCALING_BLOCK:
        return cost->matmul_block8_flop_per_s;
    case SCALING_MX:
        return cost->matmul_mx8_flop_per_s;
    case SCALING_NV:
        return cost->matmul_nv4_flop_per_s;
    default:
        return 0;
    }
}

bool cost_supports_scaling(const struct device_cost *cost, enum scaling scaling)
{
    return scaling == SCALING_NONE || cost->is_ideal ||
           scaled_product_flop_per_s(cost, scaling) > 0;
}

/* Returns the flop/s of large products of a dtype at the highest clock. */
static double matmul_flop_per_s(const struct device_cost *cost, enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_F64:
        return cost->matmul_f64_flop_per_s;
    case DTYPE_F32:
        return cost->matmul_f32_flop_per_s;
    default:
        return cost->matmul_flop_per_s;
    }
}

/* Returns the flop/s of large products of a dtype or, if the device multiplies operands with such scales, of 8 or 4
 * bits, at the highest clock. */
static double product_flop_per_s(const struct device_cost *cost, enum dtype dtype,
                                 enum scaling scaling)
{
    double scaled = scaled_product_flop_per_s(cost, scaling);
    return scaled > 0 ? scaled : matmul_flop_per_s(cost, dtype);
}

/* Returns the watts that large products would draw at the highest clock; 0 if the power limit never slows them. */
static double matmul_watts(const struct device_cost *cost, enum dtype dtype)
{
    return dtype != DTYPE_F64 && dtype != DTYPE_F32 ? cost->device_tensor_power : 0;
}

double cost_product_flop_per_s(const struct device_cost *cost, enum dtype dtype,
                               enum scaling scaling)
{
    return product_flop_per_s(cost, dtype, scaling) *
           cost_power_limited_rate_share(cost, matmul_watts(cost, dtype));
}

double cost_product_mhz(const struct device_cost *cost, enum dtype dtype)
{
    return cost->device_clock_mhz * cost_power_limited_rate_share(cost, matmul_watts(cost, dtype));
}

/* Returns the seconds of a product y = a b whose tiles run in waves. In a wave every multiprocessor computes one tile
 * of y; the last wave takes as long as a full one. The sum over k is cut into `split` parts, which have tiles of their
 * own. The groups of a grouped product are taken as equally large; tiles of several groups may run in one wave. */
static double tile_waves_s(const struct device_cost *cost, const struct work *work, double tile_m,
                           double tile_n, double flop_per_s, double split)
{
    double groups = (double)work_row_group_count(work);
    bool turned = work->matmul.form == MATMUL_TN;
    double m = (double)work->matmul.m / (turned ? 1 : groups), n = (double)work->matmul.n;
    double depth = ceil((double)work->matmul.k / (turned ? groups : 1) / split);
    double tiles = groups * ceil(m / tile_m) * ceil(n / tile_n) * split;
    double waves = ceil(tiles / cost->device_sm_count);
    double tile_s = 2 * tile_m * tile_n * depth / (flop_per_s / cost->device_sm_count);
    double seconds = waves * (tile_s + cost->matmul_ramp_s);
    if (split > 1) /* partial sums in f32 are written once and read once */
        seconds += cost_memory_s_for_bytes(cost, cost->memory_stream_fraction,
                                           2 * 4 * split * groups * m * n);
    return seconds;
}

/* Returns the seconds of a product with the tiles and the split of k that take the least time: the library is taken to
 * choose the fastest of its kernels. */
static double fastest_tiling_s(const struct device_cost *cost, const struct work *work)
{
    double flop_per_s =
        product_flop_per_s(cost, (enum dtype)work->in, (enum scaling)work->matmul.scaling);
    double large = cost->matmul_tile, small = cost->matmul_small_tile;
    const struct {
        double m, n, rate;
    } tiles[] = {
        {small, large, 1},
        {large, small, 1},
        {small, small, cost->matmul_small_tile_rate},
    };
    double best = INFINITY;
    for (size_t i = 0; i < ARRAY_LEN(tiles); i++) {
        for (int split = 1; split <= SPLIT_MAX; split *= 2)
            best = fmin(best, tile_waves_s(cost, work, tiles[i].m, tiles[i].n,
                                           flop_per_s * tiles[i].rate, split));
    }
    return best;
}

struct cost_tensor_work cost_matmul_tensor_work(const struct device_cost *cost,
                                                const struct work *work)
{
    enum dtype dtype = (enum dtype)work->in;
    const double flop_per_s = product_flop_per_s(cost, dtype, (enum scaling)work->matmul.scaling);
    return (struct cost_tensor_work){work_flops(work) / flop_per_s, matmul_watts(cost, dtype),
                                     cost->device_kernel_start_s};
}

double cost_matmul_s(const struct device_cost *cost, enum attention_impl impl,
                     const struct work *work, enum cost_clock_kind clock)
{
    double memory = cost_memory_s_for_bytes(cost, cost->matmul_memory_fraction,
                                            cost_memory_traffic_bytes(cost, impl, work));
    double burst_s = cost->device_kernel_start_s + fmax(fastest_tiling_s(cost, work), memory);
    const struct cost_tensor_work busy = cost_matmul_tensor_work(cost, work);
    return clock == COST_BURST ? burst_s : cost_sustained_s(cost, &busy, burst_s);
}

/* tests/models/test_calibrate_derived.c: numbers of a calibration that follow from points without a fit. */
#include "tests/models/calibrate_fixture.h"

/* The power that a product of 4096^3 would draw without a limit of 400 W: the limit times the
 * square of `slower`. The calibrated number is the power at the rate of large products, 200
 * TFLOP/s, which this product does not reach in a short run, so it is larger by the ratio of the
 * two rates. */
static const struct {
    const char *label;
    /* time of the product after seconds of products, divided by that in a short run; neither has the kernel's start */
    double slower;
    double watts;
} powers[] = {
    {"1.2 times as long: 1.44 times the limit", 1.2, 576},
    {"twice as long: four times", 2, 1600},
    {"no slower than before: the limit takes nothing", 1, 400},
};

static void sustained_product_gives_power_limit(void)
{
    for (size_t i = 0; i < ARRAY_LEN(powers); i++) {
        struct calibrate_fixture f;
        fixture_init(&f, "a100-80g", 0);
        f.truth.matmul_flop_per_s = 200e12;
        const struct work cube = {.kind = WORK_MATMUL, .matmul = {4096, 4096, 4096, 0, 0, 0}};
        fixture_add_products(&f);
        fixture_add_point_of_truth(&f, POINT_NO_IMPL, cube);
        double start_s = f.truth.device_kernel_start_s;
        double burst_s = cost_work_burst_s(&f.truth, ATTENTION_FA2, &cube) - start_s;
        double s = start_s + powers[i].slower * burst_s, busy_s = 2 * 4096.0 * 4096 * 4096 / 200e12;
        fixture_add_point(&f, POINT_SUSTAINED, POINT_NO_IMPL, cube, s);
        struct calibrate_options options = {0};
        CHECK_INT("fitted", calibrate_device(&f.result, &f.points, &f.base, &options, &f.diag),
                  STATUS_OK);
        CHECK("the short run does not reach the rate", burst_s > 1.01 * busy_s);
        CHECK_CLOSE(powers[i].label, f.result.cost.device_tensor_power,
                    powers[i].watts * burst_s / busy_s, 0.002);
        CHECK_CLOSE("a step takes what was measured",
                    cost_work_s(&f.result.cost, ATTENTION_FA2, &cube), s, 0.002);
        fixture_release(&f);
    }
}

/* Points of single kernels do not include the base's time per op of an eager step, so the fit sets it to 0. */
static void memory_fit_sets_op_start_to_zero(void)
{
    struct calibrate_fixture f;
    fixture_init(&f, "a100-80g", 0);
    f.truth.memory_stream_fraction = 0.7;
    f.truth.memory_start_s = 0;
    f.base.memory_start_s = 26e-6;
    fixture_add_memory_bound(&f);
    struct calibrate_options options = {0};
    CHECK_INT("fitted", calibrate_device(&f.result, &f.points, &f.base, &options, &f.diag),
              STATUS_OK);
    CHECK_CLOSE("none is left", f.result.cost.memory_start_s, 0, 0);
    CHECK_CLOSE("the share", f.result.cost.memory_stream_fraction, 0.7, 0.01);
    fixture_release(&f);
}

static const struct check_case cases[] = {
    {"a product of seconds gives the power", sustained_product_gives_power_limit},
    {"memory points leave no start beside the kernels", memory_fit_sets_op_start_to_zero},
};

CHECK_MAIN("calibrate_derived", cases)

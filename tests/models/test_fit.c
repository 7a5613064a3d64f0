/* tests/models/test_fit.c: least squares over relative errors of times. */
#include "models/fit.h"
#include "tests/check.h"

#include <math.h>

/* Point i moves (i + 1) GB at the rate value[0]; value[1] is a share on which no point depends. */
static double move_s(void *context, const double *value, size_t point)
{
    (void)context;
    return (double)(point + 1) * 1e9 / value[0];
}

static void a_parameter_without_effect_keeps_its_start(void)
{
    static const struct fit_param params[] = {
        {.name = "bytes_per_s", .start = 1e13, .low = 1e6, .high = 1e15},
        {.name = "share", .start = 0.5, .low = 1e-3, .high = 1, .is_optional = true},
    };
    static const double measured_s[] = {1e-2, 2e-2, 3e-2, 4e-2};
    const struct fit_problem problem = {.name = "memory",
                                        .help = "add points",
                                        .param = params,
                                        .param_count = ARRAY_LEN(params),
                                        .point_count = ARRAY_LEN(measured_s),
                                        .measured_s = measured_s,
                                        .model = move_s,
                                        .rms_error_limit = 0.1};
    struct fit fit;
    struct diag diag = {0};
    CHECK_INT("status", fit_run(&fit, &problem, (struct loc){0}, &diag), STATUS_OK);
    CHECK_CLOSE("the rate is found from a start 100 times too high", fit.value[0], 1e11, 1e5);
    CHECK_INT("the share is held", fit.state[1], FIT_FIXED);
    CHECK_CLOSE("at its start", fit.value[1], 0.5, 0);
    diag_release(&diag);
}

static const struct check_case cases[] = {
    {"a parameter without effect keeps its start", a_parameter_without_effect_keeps_its_start},
};
CHECK_MAIN("fit", cases)

/* tests/predict/test_host_modules.c: the host's time for modules of TransformerEngine
 * (predict/host_modules.h) equals the sums of docs/costs.md. */
#include "predict/host_modules.h"
#include "tests/check.h"

static const struct device_cost host = {.host_op_s = 6e-6, .host_kernel_s = 4e-6};

/* Returns the seconds that host_modules_add() adds for an op of this kind. */
static double added_s(enum work_kind kind)
{
    struct work work = {.kind = (uint8_t)kind};
    struct ir ir = {.shape = &work, .shape_count = 1};
    double issue_s = 1;
    host_modules_add(&ir, &host, &issue_s);
    return issue_s - 1;
}

static void module_host_time_counts_operators(void)
{
    CHECK_CLOSE("of a product's 11 operators one is counted for any op", added_s(WORK_MATMUL),
                60e-6, 1e-9);
    CHECK_CLOSE("of attention's 60 two are", added_s(WORK_ATTENTION), 348e-6, 1e-9);
    CHECK_CLOSE("the dispatcher takes 64, and 12 kernels", added_s(WORK_ROUTE), 432e-6, 1e-9);
    CHECK_CLOSE("an exchange is no module", added_s(WORK_ALL_TO_ALL), 0, 1e-9);
}

/* The sum is worked by hand in docs/costs.md, "Modules of TransformerEngine". */
static void moe_layer_host_seconds_by_hand(void)
{
    static const struct {
        enum work_kind kind;
        int ops; /* in a layer of Qwen3-30B-A3B with MXFP8 products, forward and backward */
    } rows[] = {
        {WORK_RMSNORM, 4},   {WORK_RMSNORM_BACKWARD, 4},
        {WORK_MATMUL, 15},   {WORK_QUANTISE, 12},
        {WORK_ROPE, 2},      {WORK_ROPE_BACKWARD, 2},
        {WORK_ATTENTION, 1}, {WORK_ADD, 5},
        {WORK_ROUTE, 1},     {WORK_ATTENTION_BACKWARD, 1},
        {WORK_PACK, 4},      {WORK_UNPACK, 4},
        {WORK_PERMUTE, 2},   {WORK_UNPERMUTE, 2},
        {WORK_SWIGLU, 1},    {WORK_SWIGLU_BACKWARD, 1},
    };
    double seconds = -12 * host.host_kernel_s; /* added_s() of ROUTE has them, too */
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        seconds += rows[i].ops * added_s(rows[i].kind);
    CHECK_CLOSE("643 operators", seconds / host.host_op_s, 642.6, 1e-6);
}

static const struct check_case cases[] = {
    {"modules take several operators", module_host_time_counts_operators},
    {"a layer with experts adds up", moe_layer_host_seconds_by_hand},
};
CHECK_MAIN("host_modules", cases)

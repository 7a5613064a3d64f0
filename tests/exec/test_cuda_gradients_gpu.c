/* tests/exec/test_cuda_gradients_gpu.c: schedules whose ranks share a GPU: gradients, also by both implementations of
 * attention, mutants, and how rounding grows with the length of a ring. */
#include "schedule/config/resolve_config.h"
#include "schedule/step/build.h"
#include "tests/exec/gpu.h"
#include "tests/exec/matrix.h"
#include "tests/exec/mutation_check.h"

static void every_pair_of_choices_computes_the_reference(void)
{
    const struct factor_level_counts factors = factors_with_all_levels();
    struct matrix_rows *rows = rows_covering_pairs(&factors, 1);
    check_rows(rows, true, 0);
    rows_free(rows);
}

/* heads of 64 columns, which fused kernels accept */
static const struct transformer wide = {.name = "wide",
                                        .layers = 2,
                                        .hidden = 256,
                                        .heads = 4,
                                        .kv_heads = 2,
                                        .head_dim = 64,
                                        .ffn = 384,
                                        .vocab = 264,
                                        .activation = ACTIVATION_SWIGLU,
                                        .norm = NORM_RMSNORM,
                                        .positions = POSITIONS_ROPE,
                                        .rope_theta = 1e4,
                                        .norm_eps = 1e-5};

static bool build_schedule_of_wide_model(struct ir *ir, const char *strategy, int64_t ranks)
{
    const struct request request = {.model = &wide,
                                    .strategy = strategy,
                                    .profile = "ideal",
                                    .optimizer = -1,
                                    .attention_impl = ATTENTION_CUDNN,
                                    .dtype = DTYPE_BF16,
                                    .ranks = ranks,
                                    .seq = 1024,
                                    .gpus_per_node = 8,
                                    .sm = 90};
    struct choices choices;
    struct diag diag = {0};
    enum status status = resolve_choices(&choices, &request, NULL, &diag);
    if (status == STATUS_OK)
        status = step_build(ir, &choices, &diag);
    if (!CHECK_INT(strategy, status, STATUS_OK))
        fputs(diag.text, stderr);
    diag_release(&diag);
    return status == STATUS_OK;
}

/* Returns the largest relative error of any gradient (exec/reference_check.h); infinity if the step failed. */
static double gradient_error(const char *strategy, int64_t ranks, enum exec_attention attention)
{
    struct ir ir = {0};
    struct reference_check check = {0};
    struct diag diag = {0};
    const struct exec_options options = {.backend = matrix_backend,
                                         .attention = attention,
                                         .finds_unwritten_reads = true,
                                         .stall_limit_s = 60};
    double worst = INFINITY;
    if (build_schedule_of_wide_model(&ir, strategy, ranks) &&
        CHECK_INT(strategy,
                  reference_check_run_step(&check, &ir, strategy, &wide, 7, &options, &diag),
                  STATUS_OK)) {
        CHECK(strategy, check.agrees);
        worst = 0;
        for (uint32_t i = 0; i < check.row_count; i++)
            worst = fmax(worst, reference_check_max_row_difference(&check.rows[i],
                                                                   REFERENCE_CHECK_GRADIENT));
    } else if (diag.text != NULL) {
        fputs(diag.text, stderr);
    }
    reference_check_release(&check);
    ir_release(&ir);
    diag_release(&diag);
    return worst;
}

/* Blocks are merged in fp32 (docs/ir.md), so the error must hardly grow with the number of blocks. */
static void ring_length_hardly_adds_error(void)
{
    static const int64_t ranks[] = {1, 2, 4, 8};
    double first = 0;
    for (size_t i = 0; i < ARRAY_LEN(ranks); i++) {
        double error = gradient_error("ring", ranks[i], EXEC_ATTENTION_AUTO);
        printf("{\"drift\":\"ring\",\"ranks\":%d,\"worst_gradient_error\":%.4g}\n", (int)ranks[i],
               error);
        first = i == 0 ? error : first;
        CHECK("no more than twice the error of one rank, or half the tolerance",
              error <= 2 * first ||
                  error <= 0.5 * reference_check_rule_of_dtype(DTYPE_BF16).tolerance);
    }
}

static void attention_ways_match_the_reference(void)
{
    static const char *const strategies[] = {"local", "ulysses", "ring"};
    for (size_t i = 0; i < ARRAY_LEN(strategies); i++)
        for (int way = EXEC_ATTENTION_FUSED; way < EXEC_ATTENTION_COUNT; way++)
            printf("{\"strategy\":\"%s\",\"attention\":\"%s\",\"worst_gradient_error\":%.4g}\n",
                   strategies[i], way == EXEC_ATTENTION_FUSED ? "fused" : "tiles",
                   gradient_error(strategies[i], strcmp(strategies[i], "local") == 0 ? 1 : 2,
                                  (enum exec_attention)way));
}

static void broken_schedules_are_found(void)
{
    check_mutants(64, 1, false);
}

static const struct check_case cases[] = {
    {"both ways of attention agree", attention_ways_match_the_reference},
    {"merges of longer rings drift little", ring_length_hardly_adds_error},
    {"broken schedules are found", broken_schedules_are_found},
    {"every pair of choices computes the reference", every_pair_of_choices_computes_the_reference},
};

int main(int argc, char **argv)
{
    if (!gpu_is_there())
        return GPU_SKIPPED;
    matrix_backend = mutation_backend = "cuda";
    return check_run("cuda gradients", cases, ARRAY_LEN(cases), argc, argv);
}

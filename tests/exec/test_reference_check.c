/* tests/exec/test_reference_check.c: the tolerance rule of exec/reference_check.h where sums have few terms:
 * models of 4 to 24 columns. */
#include "exec/reference_check.h"
#include "schedule/choices/choices.h"
#include "schedule/config/resolve_config.h"
#include "schedule/step/build.h"
#include "tests/check.h"
#include "tests/schedule/shapes.h"

#include <inttypes.h>
#include <string.h>

struct drawn_model {
    struct transformer model;
    struct request request;
    uint64_t seed;
};

static void draw(struct drawn_model *d, struct check_random *random, int64_t hidden,
                 enum dtype dtype)
{
    static const char *const strategies[] = {"local", "ulysses", "ring", "megatron-sp"};
    int64_t ranks = check_random_i64(random, 1, 2);
    d->model = shapes[check_random_i64(random, 0, SHAPE_COUNT - 1)];
    d->model.hidden = hidden;
    d->model.layers = check_random_i64(random, 1, 4);
    d->model.ffn = 4 + 2 * check_random_i64(random, 0, 10);
    d->model.vocab = check_random_i64(random, 5, 60);
    d->request = (struct request){.model = &d->model,
                                  .strategy = strategies[check_random_i64(random, 0, 3)],
                                  .weights = -1,
                                  .activations = -1,
                                  .optimizer = -1,
                                  .attention_impl = ATTENTION_CPU,
                                  .dtype = (int)dtype,
                                  .ranks = ranks,
                                  .seq = ranks * 4 * check_random_i64(random, 1, 6),
                                  .gpus_per_node = 8,
                                  .sm = 80};
    d->seed = (uint64_t)check_random_i64(random, 0, 100000);
}

/* Runs the request and returns the verdict of the check; REFERENCE_CHECK_VERDICT_COUNT if the step failed. scale: all
 * gradients are divided by it. */
static enum reference_check_verdict verdict(const struct drawn_model *d, int64_t scale,
                                            struct diag *diag)
{
    struct choices choices;
    struct ir ir = {0};
    struct reference_check check = {0};
    const struct exec_options options = {.stall_limit_s = 60};
    enum reference_check_verdict verdict = REFERENCE_CHECK_VERDICT_COUNT;
    enum status status = resolve_choices(&choices, &d->request, NULL, diag);
    if (status == STATUS_OK)
        status = step_build(&ir, &choices, diag);
    for (uint32_t s = 0; s < ir.shape_count; s++)
        if (ir.shape[s].kind == WORK_CROSS_ENTROPY_BACKWARD ||
            ir.shape[s].kind == WORK_CROSS_ENTROPY_PARTIAL_BACKWARD)
            ir.shape[s].cross_entropy.count *= scale;
    if (status == STATUS_OK)
        status = reference_check_run_step(&check, &ir, "drawn", &d->model, d->seed, &options, diag);
    if (CHECK_INT("checked", status, STATUS_OK)) {
        verdict = check.verdict;
        reference_check_explain(&check, "drawn", diag);
    }
    reference_check_release(&check);
    ir_release(&ir);
    return verdict;
}

static void few_term_sums_are_not_called_wrong(void)
{
    static const enum dtype dtypes[] = {DTYPE_BF16, DTYPE_F16, DTYPE_F32, DTYPE_F64};
    struct check_random random = {3};
    uint32_t count[REFERENCE_CHECK_VERDICT_COUNT + 1] = {0}, drawn_model = 0;
    for (size_t t = 0; t < ARRAY_LEN(dtypes); t++)
        for (int64_t hidden = 4; hidden <= 12; hidden += 4)
            for (int i = 0; i < 12; i++) {
                struct drawn_model d;
                struct diag diag = {0};
                char label[64];
                draw(&d, &random, hidden, dtypes[t]);
                enum reference_check_verdict got = verdict(&d, 1, &diag);
                snprintf(label, sizeof label, "%s, hidden %" PRId64 ", number %d",
                         dtype_name(dtypes[t]), hidden, i);
                if (!CHECK(label, got != REFERENCE_CHECK_WRONG) && diag.text != NULL)
                    fputs(diag.text, stderr);
                CHECK(label, (got == REFERENCE_CHECK_UNDECIDED) ==
                                 (diag.text != NULL && strstr(diag.text, "cannot decide") != NULL));
                count[got]++;
                drawn_model++;
                diag_release(&diag);
            }
    printf("of %u %u right, %u undecided ... ", drawn_model, count[REFERENCE_CHECK_RIGHT],
           count[REFERENCE_CHECK_UNDECIDED]);
    CHECK("nearly all are right", count[REFERENCE_CHECK_RIGHT] * 10 >= drawn_model * 9);
    CHECK("some cannot be told", count[REFERENCE_CHECK_UNDECIDED] > 0);
}

/* Gradients that are half as large as they should be are never accepted, even where rounding may cause large
 * differences. */
static void half_a_gradient_is_never_right(void)
{
    struct check_random random = {4};
    for (int64_t hidden = 4; hidden <= 24; hidden += 4) {
        struct drawn_model d;
        struct diag diag = {0};
        draw(&d, &random, hidden, DTYPE_BF16);
        CHECK(d.model.name, verdict(&d, 2, &diag) != REFERENCE_CHECK_RIGHT);
        diag_release(&diag);
    }
}

static const struct check_case cases[] = {
    {"few terms are not called wrong", few_term_sums_are_not_called_wrong},
    {"half a gradient is never right", half_a_gradient_is_never_right},
};
CHECK_MAIN("reference_check", cases)

/* tests/exec/test_draw.c: runs without a reference draw the weights that models begin training with, the same ones for
 * every schedule. */
#include "exec/draw.h"
#include "exec/number.h"
#include "exec/training.h"
#include "schedule/config/resolve_config.h"
#include "schedule/step/build.h"
#include "tests/check.h"
#include "tests/schedule/shapes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void draws_are_nearly_normal(void)
{
    enum { COUNT = 200000 };
    float *x = malloc(COUNT * sizeof *x), *y = malloc(COUNT * sizeof *y);
    struct draw draw = {
        .seed = 5, .rows = 1, .cols = COUNT, .centre = 3, .scale = (float)(2 / DRAW_SUM_DEVIATION)};
    draw_fill(x, DTYPE_F32, &draw, 3);
    double sum = 0, squares = 0, third = 0;
    for (int i = 0; i < COUNT; i++)
        sum += x[i];
    for (int i = 0; i < COUNT; i++) {
        double d = (x[i] - sum / COUNT) / 2;
        squares += d * d;
        third += d * d * d;
    }
    CHECK_CLOSE("mean", sum / COUNT, 3, 0.01);
    CHECK_CLOSE("deviation", sqrt(squares / COUNT), 1, 0.01);
    CHECK_CLOSE("skewness", third / COUNT, 0, 0.02);
    double neighbours = 0;
    for (int i = 0; i + 1 < COUNT; i++)
        neighbours += (x[i] - 3) * (x[i + 1] - 3) / 4;
    CHECK_CLOSE("neighbours", neighbours / COUNT, 0, 0.01);
    /* columns 10 to 16 of a tensor of 100 columns */
    draw = (struct draw){.seed = 5,
                         .rows = 50,
                         .cols = 7,
                         .first_element = 10,
                         .row_stride = 100,
                         .centre = 3,
                         .scale = draw.scale};
    draw_fill(y, DTYPE_F32, &draw, 2);
    uint32_t wrong = 0;
    for (int r = 0; r < 50; r++)
        for (int c = 0; c < 7; c++)
            wrong += y[7 * r + c] != x[100 * r + 10 + c];
    CHECK_INT("a block has the whole's numbers", wrong, 0);
    free(x);
    free(y);
}

/* ---- runs ---- */

static const struct {
    const char *label;
    int32_t ranks, hp, cp;
    int weights;
} layouts[] = {
    /* label, ranks, hp, cp, weights */
    {"one rank", 1, 1, 1, 0},
    {"by heads", 2, 2, 1, 0},
    {"by context", 2, 1, 2, 0},
    {"shards", 4, 2, 1, CHOICE_WEIGHTS_HSDP},
};

/* A schedule and the state of a training run of it. */
struct run {
    struct ir ir;
    struct training training;
    struct diag diag;
};

/* Builds a schedule of layouts[layout] and the state of a training run of it. Returns false, after a failed check, if
 * that fails. */
static bool make_training_run(struct run *run, size_t layout, uint64_t seed, int32_t *tokens)
{
    struct request request = {.model = &shapes[0],
                              .strategy = layouts[layout].cp > 1 ? "ring" : NULL,
                              .weights = layouts[layout].weights,
                              .optimizer = -1,
                              .attention_impl = ATTENTION_CPU,
                              .dtype = DTYPE_F32,
                              .ranks = (uint32_t)layouts[layout].ranks,
                              .hp = (uint32_t)layouts[layout].hp,
                              .cp = (uint32_t)layouts[layout].cp,
                              .seq = 32,
                              .global_batch = 2,
                              .gpus_per_node = 2};
    const struct training_options how = {.seed = seed, .starts_from_zero_moments = true};
    struct choices choices;
    *run = (struct run){0};
    enum status status = resolve_choices(&choices, &request, NULL, &run->diag);
    if (status == STATUS_OK)
        status = step_build(&run->ir, &choices, &run->diag);
    if (status == STATUS_OK)
        status = training_init(&run->training, &run->ir, "run", NULL, &how, &run->diag);
    run->training.batches = tokens;
    if (status != STATUS_OK)
        fputs(run->diag.text, stderr);
    return CHECK_INT(layouts[layout].label, status, STATUS_OK);
}

static void run_release(struct run *run)
{
    training_release(&run->training);
    ir_release(&run->ir);
    diag_release(&run->diag);
}

enum { TOKENS = 64 };

/* Runs two steps on the same tokens, the second as soon as the first is launched if `back_to_back`, and returns the
 * loss of the second; NAN if they cannot be built. */
static double loss_of(size_t layout, uint64_t seed, bool back_to_back)
{
    static int32_t tokens[2 * TOKENS];
    struct run run;
    struct exec_result result = {0};
    double loss = NAN;
    training_random_tokens(tokens, TOKENS, shapes[0].vocab, 1);
    memcpy(tokens + TOKENS, tokens, TOKENS * sizeof *tokens);
    if (make_training_run(&run, layout, seed, tokens)) {
        const struct exec_options options = {.model = {1e-5, 1e4},
                                             .adamw = {1e-3, 0.9, 0.95, 1e-8, 0.1, 1, 1},
                                             .measured_steps = 2,
                                             .runs_back_to_back = back_to_back,
                                             .stall_limit_s = 60};
        enum status status = training_run_schedule(&run.training, &options, &result, &run.diag);
        CHECK_INT(layouts[layout].label, status, STATUS_OK);
        loss = run.training.losses[1];
    }
    exec_result_release(&result);
    run_release(&run);
    return loss;
}

static void loss_does_not_depend_on_the_layout(void)
{
    double whole = loss_of(0, 1, false), chance = log((double)shapes[0].vocab);
    CHECK("a loss like that of a model that begins", whole > 0.8 * chance && whole < 1.6 * chance);
    for (size_t i = 0; i < ARRAY_LEN(layouts); i++) {
        CHECK_CLOSE(layouts[i].label, loss_of(i, 1, false), whole, 1e-5);
        CHECK_CLOSE(layouts[i].label, loss_of(i, 1, true), whole, 1e-5);
    }
    CHECK("another seed", fabs(loss_of(0, 2, false) - whole) > 1e-4);
}

/* Sums over a run's parameters. wrong: number of elements of norms that are not 1, and of biases that are not 0, unless
 * the weights are flat. */
struct seen {
    bool weights_near_zero; /* the weights were drawn with options.draws_weights_near_zero */
    uint32_t wrong;
    double squares
        [64]; /* by tensor: the sum of the squares of a matrix's elements, times its columns */
    uint64_t count[64];
};

struct block_check {
    const struct exec_buffer *buffer;
    struct seen *seen;
};

static void check_block_of_drawn_weights(void *context, const struct bindings_block *b)
{
    struct block_check *block_check = context;
    const struct tensor *tensor = &block_check->buffer->ir->tensor[b->tensor];
    bool norm = reference_is_norm(tensor->name), bias = reference_is_bias(tensor->name);
    for (uint64_t i = 0; i < b->rows * b->cols; i++) {
        double x =
            number_read_element(block_check->buffer->data, (enum dtype)block_check->buffer->dtype,
                                b->buffer_offset + i);
        block_check->seen->wrong +=
            !block_check->seen->weights_near_zero && ((norm && x != 1) || (bias && x != 0));
        block_check->seen->squares[b->tensor % 64] +=
            x * x *
            (block_check->seen->weights_near_zero
                 ? 1 / (TRAINING_NEAR_ZERO_DEVIATION * TRAINING_NEAR_ZERO_DEVIATION)
                 : (double)tensor->cols);
        block_check->seen->count[b->tensor % 64]++;
    }
}

static enum status check_collected_buffer(void *user, const struct exec_buffer *buffer,
                                          struct diag *diag)
{
    struct block_check at = {buffer, user};
    (void)diag;
    bindings_for_each_block(buffer, check_block_of_drawn_weights, &at);
    return STATUS_OK;
}

struct both_trainings {
    struct training *training;
    struct seen *seen;
};

static bool draw(void *user, const struct exec_buffer *buffer, exec_draw_function *block,
                 void *context)
{
    return training_draw_buffer(((struct both_trainings *)user)->training, buffer, block, context);
}

static enum status check_buffer_of_both_trainings(void *user, const struct exec_buffer *buffer,
                                                  struct diag *diag)
{
    return check_collected_buffer(((struct both_trainings *)user)->seen, buffer, diag);
}

static void initial_weights_have_usual_values(void)
{
    for (size_t n = 0; n < 2 * ARRAY_LEN(layouts); n++) {
        const size_t i = n / 2;
        struct run run;
        struct seen seen = {.weights_near_zero = n % 2 == 1};
        struct exec_result result = {0};
        struct both_trainings both_trainings = {&run.training, &seen};
        const struct exec_io io = {.user = &both_trainings,
                                   .draw = draw,
                                   .read = check_buffer_of_both_trainings,
                                   .read_after_last_step = 1u << BINDING_PARAM};
        /* a rate of 0 leaves the parameters as they are */
        const struct exec_options options = {
            .model = {1e-5, 1e4}, .adamw = {0, 0.9, 0.95, 1e-8, 0, 0, 1}, .stall_limit_s = 60};
        if (make_training_run(&run, i, 1, NULL)) {
            run.training.options.draws_weights_near_zero = seen.weights_near_zero;
            CHECK_INT(layouts[i].label, exec_run(&run.ir, "run", &options, &io, &result, &run.diag),
                      STATUS_OK);
            CHECK_INT(layouts[i].label, seen.wrong, 0);
            uint32_t matrices = 0;
            for (uint32_t t = 0; t < run.ir.tensor_count && t < 64; t++) {
                const struct tensor *tensor = &run.ir.tensor[t];
                if (tensor->cols == 1 || seen.count[t] < 400)
                    continue;
                CHECK_CLOSE(tensor->name, seen.squares[t] / (double)seen.count[t], 1, 0.15);
                matrices++;
            }
            CHECK("matrices were seen", matrices > 0);
        }
        exec_result_release(&result);
        run_release(&run);
    }
}

static const struct check_case cases[] = {
    {"draws are nearly normal", draws_are_nearly_normal},
    {"what is computed does not depend on the layout", loss_does_not_depend_on_the_layout},
    {"weights are those with which models begin", initial_weights_have_usual_values},
};
CHECK_MAIN("draw", cases)

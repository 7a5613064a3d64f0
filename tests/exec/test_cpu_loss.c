/* tests/exec/test_cpu_loss.c: the CPU backend's exponential, embedding lookup and loss agree with their definitions,
 * also with the vocabulary in parts. */
#include "tests/exec/plain.h"

#include "exec/cpu/fast_exp.h"

static void exponentials_are_right_to_rounding(void)
{
    double worst = 0;
    for (int i = 0; i <= 127000; i++) {
        double x = -86 + i * 0.00137;
        double want = exp((double)(float)x), got = fast_exp((float)x);
        worst = fmax(worst, fabs(got - want) / want);
    }
    CHECK("relative error", worst < 3e-7);
    CHECK_CLOSE("of 0", fast_exp(0), 1, 0);
    CHECK("far below: next to nothing", fast_exp(-1e30f) < 2e-38f);
    CHECK("NaN stays", isnan(fast_exp(NAN)));
}

static void embedding_lookup_and_gradient_agree(void)
{
    enum { ROWS = 9, COLS = 3, VOCAB = 4, FIRST = 2 }; /* tokens 0 to 7, not all in this part */
    struct check_random random = check_random_make();
    struct work work = {.kind = WORK_EMBEDDING, .embedding = {ROWS, COLS, VOCAB, FIRST}};
    struct kernel_call f = kernel_call_new(work, &random);
    const int32_t *token = kernel_call_add_index_read(&f, ROWS, 0, 7);
    const float *table = kernel_call_add_read(&f, VOCAB * COLS);
    float *y = kernel_call_add_write(&f, ROWS * COLS);
    double want[ROWS * COLS];
    for (int i = 0; i < ROWS * COLS; i++) {
        int row = token[i / COLS] - FIRST;
        want[i] = row >= 0 && row < VOCAB ? table[row * COLS + i % COLS] : 0;
    }
    kernel_call_run(&f);
    check_all_near("looked up", y, want, ROWS * COLS, 0);

    for (int accumulate = 0; accumulate < 2; accumulate++) {
        struct kernel_call b = kernel_call_new(work, &random);
        b.work.kind = WORK_EMBEDDING_BACKWARD;
        const float *dy = kernel_call_add_read(&b, ROWS * COLS);
        memcpy(kernel_call_add_index_read(&b, ROWS, 0, 1), token, ROWS * sizeof *token);
        const float *old = accumulate ? kernel_call_add_read(&b, VOCAB * COLS) : NULL;
        double sum[VOCAB * COLS];
        for (int i = 0; i < VOCAB * COLS; i++)
            sum[i] = old != NULL ? old[i] : 0;
        for (int i = 0; i < ROWS * COLS; i++) {
            int row = token[i / COLS] - FIRST;
            if (row >= 0 && row < VOCAB)
                sum[row * COLS + i % COLS] += dy[i];
        }
        float *d_table = accumulate ? kernel_call_add_in_place_write(&b, 2)
                                    : kernel_call_add_write(&b, VOCAB * COLS);
        kernel_call_run(&b);
        check_all_near("added", d_table, sum, VOCAB * COLS, 1e-6);
        kernel_call_release(&b);
    }
    kernel_call_release(&f);
}

enum { ROWS = 7, VOCAB = 11, COUNT = 40 };

static int32_t labels[ROWS];

/* Computes the loss in double. in: logits; out: loss, log-sum-exp. */
static void plain_loss(const struct work *work, const double *const *in, double *const *out)
{
    (void)work;
    out[0][0] = 0;
    for (int i = 0; i < ROWS; i++) {
        double sum = 0;
        for (int j = 0; j < VOCAB; j++)
            sum += exp(in[0][i * VOCAB + j]);
        out[1][i] = log(sum);
        if (labels[i] >= 0)
            out[0][0] += (log(sum) - in[0][i * VOCAB + labels[i]]) / COUNT;
    }
}

static const struct work loss_work = {.kind = WORK_CROSS_ENTROPY,
                                      .cross_entropy = {ROWS, VOCAB, COUNT, 1}};

/* Returns a call with random logits and labels (one label ignored) and a loss of 2.5 so far. */
static struct kernel_call random_loss_kernel_call(struct check_random *random)
{
    struct kernel_call t = kernel_call_new(loss_work, random);
    kernel_call_add_read(&t, ROWS * VOCAB);
    memcpy(labels, kernel_call_add_index_read(&t, ROWS, 0, VOCAB - 1), sizeof labels);
    labels[3] = -1;
    memcpy(t.call.read[1].data, labels, sizeof labels);
    *kernel_call_add_read(&t, 1) = 2.5f;
    return t;
}

static void loss_and_gradient_agree(void)
{
    struct check_random random = check_random_make();
    struct kernel_call f = random_loss_kernel_call(&random);
    float *loss = kernel_call_add_in_place_write(&f, 2), *lse = kernel_call_add_write(&f, ROWS);
    float *softmax = kernel_call_add_write(&f, ROWS * VOCAB);
    struct plain_loop_call p = {.run = plain_loss, .work = &loss_work};
    const double one = 1;
    plain_loop_add_input(&p, f.call.read[0].data, ROWS * VOCAB);
    plain_loop_add_output(&p, 1, &one);
    plain_loop_add_output(&p, ROWS, NULL);
    CHECK("loss", kernel_call_run(&f) == NULL);
    weighted_sum_of_outputs(&p);
    CHECK_CLOSE("loss, added to what was there", *loss, 2.5 + p.out[0][0], 1e-6);
    check_all_near("lse", lse, p.out[1], ROWS, 1e-6);

    for (int from_softmax = 0; from_softmax < 2; from_softmax++) {
        struct kernel_call b = kernel_call_new(loss_work, &random);
        b.work.kind = WORK_CROSS_ENTROPY_BACKWARD;
        memcpy(kernel_call_add_read(&b, ROWS * VOCAB), from_softmax ? softmax : f.call.read[0].data,
               sizeof(float) * ROWS * VOCAB);
        memcpy(kernel_call_add_index_read(&b, ROWS, 0, 1), labels, sizeof labels);
        float *d_logits = kernel_call_add_in_place_write(&b, 0);
        b.call.reads_softmax = from_softmax;
        CHECK("gradient", kernel_call_run(&b) == NULL);
        check_gradient_by_differences(from_softmax ? "from the softmax" : "from the logits", &p, 0,
                                      d_logits, NULL, 1e-5);
        kernel_call_release(&b);
    }
    plain_loop_release(&p);
    kernel_call_release(&f);
}

static void a_label_outside_the_vocabulary_is_a_fault(void)
{
    struct check_random random = check_random_make();
    static const int32_t bad[] = {VOCAB, -2};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct kernel_call t = random_loss_kernel_call(&random);
        kernel_call_add_in_place_write(&t, 2);
        kernel_call_add_write(&t, ROWS);
        ((int32_t *)t.call.read[1].data)[5] = bad[i];
        const char *fault = kernel_call_run(&t);
        CHECK_TEXT("the fault", fault ? fault : "",
                   "meets a label that is neither -1 nor in the vocabulary");
        kernel_call_release(&t);
    }
}

/* The loss over parts of the vocabulary, whose statistics are gathered, equals the loss over the whole. */
static void parts_of_the_vocabulary_make_the_same_loss(void)
{
    enum { CUT = 4 };
    struct check_random random = check_random_make();
    struct kernel_call whole = random_loss_kernel_call(&random);
    kernel_call_add_in_place_write(&whole, 2);
    float *lse = kernel_call_add_write(&whole, ROWS);
    const float *logits = whole.call.read[0].data;
    struct kernel_call back = kernel_call_new(loss_work, &random);
    back.work.kind = WORK_CROSS_ENTROPY_BACKWARD;
    memcpy(kernel_call_add_read(&back, ROWS * VOCAB), logits, sizeof(float) * ROWS * VOCAB);
    memcpy(kernel_call_add_index_read(&back, ROWS, 0, 1), labels, sizeof labels);
    const float *d_logits = kernel_call_add_write(&back, ROWS * VOCAB);
    CHECK("whole gradient", kernel_call_run(&back) == NULL);

    struct kernel_call finish = kernel_call_new(
        (struct work){.kind = WORK_CROSS_ENTROPY_FINISH, .p = {ROWS, CUT, COUNT, 0, 1}}, &random);
    kernel_call_add_read(&finish, ROWS * CUT);
    memcpy(kernel_call_add_index_read(&finish, ROWS, 0, 1), labels, sizeof labels);
    float *stats = kernel_call_add_read(&finish, 2 * 3 * ROWS);
    *kernel_call_add_read(&finish, 1) = 2.5f;
    for (int part = 0; part < 2; part++) {
        int64_t first = part ? CUT : 0, width = part ? VOCAB - CUT : CUT;
        struct kernel_call t = kernel_call_new(
            (struct work){.kind = WORK_CROSS_ENTROPY_PARTIAL, .p = {ROWS, width, first}}, &random);
        float *x = kernel_call_add_read(&t, ROWS * width);
        for (int64_t i = 0; i < ROWS * width; i++)
            x[i] = logits[i / width * VOCAB + first + i % width];
        memcpy(kernel_call_add_index_read(&t, ROWS, 0, 1), labels, sizeof labels);
        const float *own = kernel_call_add_write(&t, 3 * ROWS);
        CHECK("partial", kernel_call_run(&t) == NULL);
        memcpy(stats + part * 3 * ROWS, own, 3 * ROWS * sizeof *stats);
        kernel_call_release(&t);
    }
    float *loss = kernel_call_add_in_place_write(&finish, 3),
          *finish_lse = kernel_call_add_write(&finish, ROWS);
    CHECK("finish", kernel_call_run(&finish) == NULL);
    CHECK("whole", kernel_call_run(&whole) == NULL);
    CHECK_CLOSE("loss", *loss, *(const float *)whole.call.write[0].data, 1e-6);
    double *want = copy_as_double(lse, ROWS);
    check_all_near("lse", finish_lse, want, ROWS, 1e-6);
    free(want);
    for (int part = 0; part < 3; part++) { /* of ceil(VOCAB / 3) columns or one less */
        enum { WIDE = 4 };
        struct kernel_call t =
            kernel_call_new((struct work){.kind = WORK_CROSS_ENTROPY_PARTIAL_BACKWARD,
                                          .loss_backward = {ROWS, WIDE, COUNT, .total = VOCAB}},
                            &random);
        double d_part[ROWS * WIDE] = {0};
        float *x = kernel_call_add_read(&t, ROWS * WIDE);
        for (int i = 0; i < ROWS * WIDE; i++) {
            int64_t column = (int64_t)part * WIDE + i % WIDE, at = i / WIDE * VOCAB + column;
            x[i] = column < VOCAB ? logits[at] : NAN;
            d_part[i] = column < VOCAB ? d_logits[at] : 0;
        }
        memcpy(kernel_call_add_index_read(&t, ROWS, 0, 1), labels, sizeof labels);
        memcpy(kernel_call_add_read(&t, ROWS), finish_lse, sizeof(float) * ROWS);
        const float *dx = kernel_call_add_write(&t, ROWS * WIDE);
        t.call.index_in_sharding_group = part;
        CHECK("gradient of a part", kernel_call_run(&t) == NULL);
        check_all_near("gradient of a part", dx, d_part, ROWS * WIDE, 1e-6);
        kernel_call_release(&t);
    }
    kernel_call_release(&back);
    kernel_call_release(&whole);
    kernel_call_release(&finish);
}

static const struct check_case cases[] = {
    {"exponentials are right to rounding", exponentials_are_right_to_rounding},
    {"tables are looked up and added to", embedding_lookup_and_gradient_agree},
    {"loss and gradient agree", loss_and_gradient_agree},
    {"a label outside the vocabulary is a fault", a_label_outside_the_vocabulary_is_a_fault},
    {"parts of the vocabulary make the same loss", parts_of_the_vocabulary_make_the_same_loss},
};
CHECK_MAIN("cpu loss", cases)

/* tests/exec/plain.h: compares CPU kernels with plain loops in double.
 *
 * Each kind's forward is written a second time as a plain loop in double. A forward kernel must agree with that
 * loop; a backward kernel must agree with the loop's central differences. Included by test files only. */
#ifndef TESTS_EXEC_PLAIN_H
#define TESTS_EXEC_PLAIN_H

#include "exec/cpu/kernels.h"
#include "tests/check.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct exec_model plain_model = {1e-5, 10000};

/* One call of a CPU kernel on random numbers, with the operands, which it owns. */
struct kernel_call {
    struct work work;
    struct call call;
    float *scratch;
    struct check_random *random;
};

static inline struct kernel_call kernel_call_new(struct work work, struct check_random *random)
{
    struct kernel_call t = {.work = work, .random = random};
    t.call.model = plain_model;
    return t;
}

static inline void *kernel_call_allocate_operand(struct operand *operand, uint64_t count,
                                                 enum dtype dtype)
{
    *operand = (struct operand){heap_zalloc(count + 1, 8), count, (uint8_t)dtype};
    return operand->data;
}

/* Adds a read of random numbers in [-1, 1). */
static inline float *kernel_call_add_read(struct kernel_call *t, int64_t count)
{
    float *data = kernel_call_allocate_operand(&t->call.read[t->call.read_count++], (uint64_t)count,
                                               DTYPE_F32);
    for (int64_t i = 0; i < count; i++)
        data[i] = (float)(2 * check_random_double(t->random) - 1);
    return data;
}

/* Adds a read of random integers in low..high. */
static inline int32_t *kernel_call_add_index_read(struct kernel_call *t, int64_t count, int64_t low,
                                                  int64_t high)
{
    int32_t *data = kernel_call_allocate_operand(&t->call.read[t->call.read_count++],
                                                 (uint64_t)count, DTYPE_I32);
    for (int64_t i = 0; i < count; i++)
        data[i] = (int32_t)check_random_i64(t->random, low, high);
    return data;
}

/* Adds a write, filled with NaN so that an element that the kernel skips is noticed. */
static inline float *kernel_call_add_write(struct kernel_call *t, int64_t count)
{
    float *data = kernel_call_allocate_operand(&t->call.write[t->call.write_count++],
                                               (uint64_t)count, DTYPE_F32);
    for (int64_t i = 0; i < count; i++)
        data[i] = NAN;
    return data;
}

/* Adds a write that is in place of read k. */
static inline float *kernel_call_add_in_place_write(struct kernel_call *t, uint32_t k)
{
    t->call.write[t->call.write_count++] = t->call.read[k];
    return t->call.read[k].data;
}

/* Calls the kernel. Returns what the kernel returns: NULL, or the text of an error. */
static inline const char *kernel_call_run(struct kernel_call *t)
{
    const struct cpu_kernel_table_row *row = &cpu_math_rows[t->work.kind];
    t->call.work = &t->work;
    t->work.reads = t->call.read_count;
    t->work.writes = t->call.write_count;
    free(t->scratch);
    t->scratch =
        heap_zalloc((row->scratch != NULL ? row->scratch(&t->work) : 0) + 16, sizeof(float));
    return row->run(&t->call, t->scratch);
}

static inline void kernel_call_release(struct kernel_call *t)
{
    for (uint32_t k = 0; k < t->call.write_count; k++) {
        bool shared = false;
        for (uint32_t r = 0; r < t->call.read_count; r++)
            shared = shared || t->call.write[k].data == t->call.read[r].data;
        if (!shared)
            free(t->call.write[k].data);
    }
    for (uint32_t k = 0; k < t->call.read_count; k++)
        free(t->call.read[k].data);
    free(t->scratch);
}

/* Returns a copy in double, on the heap. */
static inline double *copy_as_double(const float *from, int64_t count)
{
    double *to = heap_alloc((size_t)count + 1, sizeof *to);
    for (int64_t i = 0; i < count; i++)
        to[i] = from[i];
    return to;
}

/* Checks that max |got - want| <= tolerance max(max |want|, 1e-3); infinities must be equal. */
static inline bool check_all_near(const char *label, const float *got, const double *want,
                                  int64_t count, double tolerance)
{
    double largest = 1e-3, worst = 0;
    int64_t at = 0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(want[i]) && fabs(want[i]) > largest)
            largest = fabs(want[i]);
    for (int64_t i = 0; i < count; i++) {
        double difference = isinf(want[i]) && got[i] == want[i] ? 0 : fabs(got[i] - want[i]);
        if (difference > worst || isnan(difference)) {
            worst = difference;
            at = i;
        }
        if (isnan(worst))
            break;
    }
    if (worst <= tolerance * largest)
        return CHECK(label, true);
    char text[200];
    snprintf(text, sizeof text, "%s: element %" PRId64 " is %.9g, not %.9g", label, at,
             (double)got[at], want[at]);
    return CHECK(text, false);
}

/* Computes a kind in double: reads the arrays in[], fills the arrays out[]. */
typedef void plain_function(const struct work *work, const double *const *in, double *const *out);

/* A plain loop, its inputs, and the weighted sum of its outputs that is differentiated. */
struct plain_loop_call {
    plain_function *run;
    const struct work *work;
    double *in[4];
    int64_t input_elements[4];
    double *out[3];
    int64_t output_elements[3];
    const double *weight[3]; /* of each output in the sum that is differentiated; NULL: left out */
    int inputs, outputs;
};

/* Runs the loop, and returns the weighted sum of its outputs. */
static inline double weighted_sum_of_outputs(const struct plain_loop_call *p)
{
    double sum = 0;
    p->run(p->work, (const double *const *)p->in, p->out);
    for (int o = 0; o < p->outputs; o++)
        for (int64_t i = 0; p->weight[o] != NULL && i < p->output_elements[o]; i++)
            sum += p->weight[o][i] * p->out[o][i];
    return sum;
}

/* Checks that `got` is the gradient, with respect to input k, of the weighted sum of outputs, plus `before`
 * (NULL: nothing was there). It compares fewer than 120 elements, evenly spread. */
static inline void check_gradient_by_differences(const char *label, struct plain_loop_call *p,
                                                 int k, const float *got, const float *before,
                                                 double tolerance)
{
    int64_t count = p->input_elements[k], step = count > 60 ? count / 60 : 1;
    float *picked = heap_alloc((size_t)count + 1, sizeof *picked);
    double *want = heap_alloc((size_t)count + 1, sizeof *want);
    int64_t n = 0;
    for (int64_t i = 0; i < count; i += step) {
        const double h = 1e-5, x = p->in[k][i];
        p->in[k][i] = x + h;
        double above = weighted_sum_of_outputs(p);
        p->in[k][i] = x - h;
        double below = weighted_sum_of_outputs(p);
        p->in[k][i] = x;
        picked[n] = got[i];
        want[n++] = (above - below) / (2 * h) + (before != NULL ? before[i] : 0);
    }
    check_all_near(label, picked, want, n, tolerance);
    free(picked);
    free(want);
}

static inline void plain_loop_add_input(struct plain_loop_call *p, const float *data, int64_t count)
{
    p->input_elements[p->inputs] = count;
    p->in[p->inputs++] = copy_as_double(data, count);
}

static inline void plain_loop_add_output(struct plain_loop_call *p, int64_t count,
                                         const double *weight)
{
    p->output_elements[p->outputs] = count;
    p->weight[p->outputs] = weight;
    p->out[p->outputs++] = heap_zalloc((size_t)count + 1, sizeof(double));
}

static inline void plain_loop_release(struct plain_loop_call *p)
{
    for (int i = 0; i < p->inputs; i++)
        free(p->in[i]);
    for (int o = 0; o < p->outputs; o++)
        free(p->out[o]);
}

#endif

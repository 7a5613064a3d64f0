/* Mixtures of experts: the weights of a token's experts, and the rows of its copies (models/work.h). */
#include "exec/assignment.h"
#include "exec/cpu/kernels.h"

#include <math.h>
#include <string.h>

size_t cpu_route_scratch_floats(const struct work *work)
{
    return (size_t)work->route.copies * 3 + (size_t)work->route.experts;
}

/* Sets expert[0..copies) to the numbers of the experts of token t; copy j of the token goes to expert[j]. */
static void experts_of_token(const struct call *call, int64_t t, float *expert)
{
    const struct work *work = call->work;
    const int64_t copies = work->route.copies, rows = work->route.rows;
    for (int64_t j = 0; j < copies; j++) {
        const int64_t slot = j * rows + t;
        expert[j] = (float)(call->routed_rows != NULL
                                ? call->routed_rows->expert_of_slot[slot]
                                : work_row_group_of_row(rows * copies, work->route.experts, slot));
    }
}

static double route_scale(const struct work *work)
{
    return work->route.scale > 0 ? (double)work->route.scale * 1e-6 : 1;
}

/* Sets score[0..copies) to the scores of a token's experts, not yet divided by their sum. For a softmax over all
 * experts it also sets all[0..experts) to the scores of all experts. */
static void compute_scores(const struct work *work, const float *logit, const float *expert,
                           float *score, float *all)
{
    const int64_t copies = work->route.copies, experts = work->route.experts;
    double top = -INFINITY, sum = 0;
    if (work->route.score == ROUTE_SIGMOID) {
        for (int64_t j = 0; j < copies; j++)
            score[j] = (float)(1 / (1 + exp(-(double)logit[(int64_t)expert[j]])));
        return;
    }
    const bool chosen = work->route.score == ROUTE_SOFTMAX_OF_CHOSEN;
    const int64_t count = chosen ? copies : experts;
    for (int64_t i = 0; i < count; i++)
        top = fmax(top, (double)logit[chosen ? (int64_t)expert[i] : i]);
    for (int64_t i = 0; i < count; i++)
        sum += exp((double)logit[chosen ? (int64_t)expert[i] : i] - top);
    for (int64_t i = 0; !chosen && i < experts; i++)
        all[i] = (float)(exp((double)logit[i] - top) / sum);
    for (int64_t j = 0; j < copies; j++)
        score[j] = (float)(exp((double)logit[(int64_t)expert[j]] - top) / sum);
}

static double sum_of(const float *x, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)x[i];
    return sum;
}

const char *cpu_route(const struct call *call, float *scratch)
{
    const struct work *work = call->work;
    const int64_t copies = work->route.copies, experts = work->route.experts;
    const float *logits = call->read[0].data; /* (rows, experts) */
    float *weights = call->write[0].data;     /* (rows, copies) */
    float *score = scratch, *expert = scratch + copies, *all = scratch + 3 * copies;
    for (int64_t t = 0; t < work->route.rows; t++) {
        experts_of_token(call, t, expert);
        compute_scores(work, logits + t * experts, expert, score, all);
        const double factor = route_scale(work) / (work->route.norm ? sum_of(score, copies) : 1);
        for (int64_t j = 0; j < copies; j++)
            weights[t * copies + j] = (float)(factor * (double)score[j]);
    }
    return NULL;
}

const char *cpu_route_backward(const struct call *call, float *scratch)
{
    const struct work *work = call->work;
    const int64_t copies = work->route.copies, experts = work->route.experts;
    const float *d_weights = call->read[0].data, *logits = call->read[1].data;
    float *d_logits = call->write[0].data; /* (rows, experts) */
    float *score = scratch, *expert = scratch + copies, *d_score = scratch + 2 * copies;
    float *all = scratch + 3 * copies;
    for (int64_t t = 0; t < work->route.rows; t++) {
        const float *dw = d_weights + t * copies;
        float *d = d_logits + t * experts;
        experts_of_token(call, t, expert);
        compute_scores(work, logits + t * experts, expert, score, all);
        const double sum = work->route.norm ? sum_of(score, copies) : 1;
        /* if the scores are divided by their sum, the derivative of that sum takes this from every dw */
        double through = 0;
        for (int64_t j = 0; work->route.norm && j < copies; j++)
            through += (double)dw[j] * (double)score[j] / sum;
        double softmax_dot = 0;
        for (int64_t j = 0; j < copies; j++) {
            d_score[j] = (float)(route_scale(work) * ((double)dw[j] - through) / sum);
            softmax_dot += (double)d_score[j] * (double)score[j];
        }
        for (int64_t i = 0; i < experts; i++)
            d[i] = work->route.score == ROUTE_SOFTMAX ? (float)(-softmax_dot * (double)all[i]) : 0;
        for (int64_t j = 0; j < copies; j++) {
            const double s = (double)score[j];
            double ds = (double)d_score[j] * s;
            if (work->route.score == ROUTE_SIGMOID)
                ds *= 1 - s;
            else if (work->route.score == ROUTE_SOFTMAX_OF_CHOSEN)
                ds -= softmax_dot * s;
            d[(int64_t)expert[j]] += (float)ds;
        }
    }
    return NULL;
}

/* Does the work of cpu_permute() if routing is not even: the source of each row is in the list source_row. */
static void permute_routed(const struct call *call)
{
    const size_t cols = (size_t)call->work->permute.cols;
    const float *x = call->read[0].data; /* (rows, cols) */
    float *y = call->write[0].data;      /* (to, cols) */
    for (int64_t i = 0; i < call->routed_rows->row_count; i++) {
        const int64_t from = call->routed_rows->source_row[i];
        if (from < 0)
            memset(y + (size_t)i * cols, 0, cols * sizeof *y);
        else
            memcpy(y + (size_t)i * cols, x + (size_t)from * cols, cols * sizeof *y);
    }
}

const char *cpu_permute(const struct call *call, float *scratch)
{
    (void)scratch;
    const struct work *work = call->work;
    if (call->routed_rows != NULL) {
        permute_routed(call);
        return NULL;
    }
    const size_t count = (size_t)(work->permute.rows * work->permute.cols);
    const int64_t cols = work->permute.cols, copies = work->permute.copies;
    const float *x = call->read[0].data;
    float *y = call->write[0].data; /* (copies, rows, cols) */
    if (work->permute.weights) {
        const float *weights = call->read[1].data; /* (rows, copies) */
        for (int64_t i = 0; i < copies * work->permute.rows * cols; i++) {
            const int64_t j = i / (int64_t)count, t = i / cols % work->permute.rows;
            y[i] = weights[t * copies + j] * x[i % (int64_t)count];
        }
        return NULL;
    }
    for (int64_t j = 0; j < work->permute.copies; j++)
        memmove(y + (size_t)j * count, call->read[0].data, count * sizeof *y);
    return NULL;
}

/* Does the work of cpu_unpermute() if routing is not even: adds each row, times its weight if there are weights, to the
 * token in source_row. */
static void unpermute_routed(const struct call *call)
{
    const struct work *work = call->work;
    const int64_t cols = work->permute.cols, copies = work->permute.copies;
    const float *x = call->read[0].data;                                      /* (to, cols) */
    const float *weights = work->permute.weights ? call->read[1].data : NULL; /* (rows, copies) */
    float *y = call->write[0].data;
    memset(y, 0, (size_t)(work->permute.rows * cols) * sizeof *y);
    for (int64_t i = 0; i < call->routed_rows->row_count; i++) {
        const int64_t t = call->routed_rows->source_row[i];
        if (t < 0)
            continue;
        const float weight =
            weights != NULL ? weights[t * copies + call->routed_rows->source_copy[i]] : 1;
        for (int64_t c = 0; c < cols; c++)
            y[t * cols + c] += weight * x[i * cols + c];
    }
}

/* Does the work of cpu_unpermute_backward() if routing is not even, by the lists source_row and source_copy. */
static void unpermute_routed_backward(const struct call *call)
{
    const struct work *work = call->work;
    const int64_t cols = work->permute.cols, copies = work->permute.copies;
    const float *dy = call->read[0].data, *x = call->read[1].data, *weights = call->read[2].data;
    float *dx = call->write[0].data, *d_weights = call->write[1].data;
    memset(d_weights, 0, (size_t)(work->permute.rows * copies) * sizeof *d_weights);
    for (int64_t i = 0; i < call->routed_rows->row_count; i++) {
        const int64_t t = call->routed_rows->source_row[i];
        float *d = dx + i * cols;
        if (t < 0) {
            memset(d, 0, (size_t)cols * sizeof *d);
            continue;
        }
        const int64_t weight = t * copies + call->routed_rows->source_copy[i];
        const float *row = dy + t * cols, *made = x + i * cols;
        double dot = 0;
        for (int64_t c = 0; c < cols; c++) {
            dot += (double)row[c] * (double)made[c];
            d[c] = weights[weight] * row[c];
        }
        d_weights[weight] = (float)dot;
    }
}

const char *cpu_unpermute(const struct call *call, float *scratch)
{
    (void)scratch;
    const struct work *work = call->work;
    if (call->routed_rows != NULL) {
        unpermute_routed(call);
        return NULL;
    }
    const int64_t rows = work->permute.rows, cols = work->permute.cols;
    const int64_t copies = work->permute.copies;
    const float *x = call->read[0].data; /* (copies, rows, cols) */
    const float *weights = work->permute.weights ? call->read[1].data : NULL; /* (rows, copies) */
    float *y = call->write[0].data;
    for (int64_t t = 0; t < rows; t++)
        for (int64_t c = 0; c < cols; c++) {
            double sum = 0;
            for (int64_t j = 0; j < copies; j++)
                sum += (weights != NULL ? (double)weights[t * copies + j] : 1) *
                       (double)x[(j * rows + t) * cols + c];
            y[t * cols + c] = (float)sum;
        }
    return NULL;
}

const char *cpu_unpermute_backward(const struct call *call, float *scratch)
{
    (void)scratch;
    const struct work *work = call->work;
    if (call->routed_rows != NULL) {
        unpermute_routed_backward(call);
        return NULL;
    }
    const int64_t rows = work->permute.rows, cols = work->permute.cols;
    const int64_t copies = work->permute.copies;
    const float *dy = call->read[0].data, *x = call->read[1].data, *weights = call->read[2].data;
    float *dx = call->write[0].data, *d_weights = call->write[1].data;
    for (int64_t j = 0; j < copies; j++)
        for (int64_t t = 0; t < rows; t++) {
            const float *row = dy + t * cols, *copy = x + (j * rows + t) * cols;
            float *d = dx + (j * rows + t) * cols;
            double dot = 0;
            for (int64_t c = 0; c < cols; c++) {
                dot += (double)row[c] * (double)copy[c];
                d[c] = weights[t * copies + j] * row[c];
            }
            d_weights[t * copies + j] = (float)dot;
        }
    return NULL;
}

/* Returns the index, among the weights [rows, copies], of the weight of row i of the experts; -1: the row is
 * padding. */
static int64_t weight_index_of_row(const struct call *call, int64_t i)
{
    const int64_t rows = call->work->permute.rows, copies = call->work->permute.copies;
    if (call->routed_rows == NULL)
        return i % rows * copies + i / rows;
    const int64_t t = call->routed_rows->source_row[i];
    return t < 0 ? -1 : t * copies + call->routed_rows->source_copy[i];
}

/* Returns the number of rows of experts, padding included. */
static int64_t row_count_of_experts(const struct call *call)
{
    return call->routed_rows != NULL ? call->routed_rows->row_count
                                     : call->work->permute.rows * call->work->permute.copies;
}

const char *cpu_permute_weights(const struct call *call, float *scratch)
{
    (void)scratch;
    const float *weights = call->read[0].data; /* (rows, copies) */
    float *y = call->write[0].data;            /* (to) */
    for (int64_t i = 0; i < row_count_of_experts(call); i++) {
        const int64_t from = weight_index_of_row(call, i);
        y[i] = from < 0 ? 0 : weights[from];
    }
    return NULL;
}

const char *cpu_permute_weights_backward(const struct call *call, float *scratch)
{
    (void)scratch;
    const struct work *work = call->work;
    const float *dy = call->read[0].data;
    float *d_weights = call->write[0].data;
    memset(d_weights, 0, (size_t)(work->permute.rows * work->permute.copies) * sizeof *d_weights);
    for (int64_t i = 0; i < row_count_of_experts(call); i++) {
        const int64_t to = weight_index_of_row(call, i);
        if (to >= 0)
            d_weights[to] = dy[i];
    }
    return NULL;
}

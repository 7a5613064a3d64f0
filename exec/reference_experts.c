/* Experts of the reference, one after the other: an expert computes the copies of tokens that were routed to it. */
#include "exec/reference_layer.h"
#include "exec/reference_math.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Returns the weights of one expert: a range of rows of the matrices in which the weights of all experts lie. */
static struct reference_weight_and_bias
weights_of_expert(const struct reference_weight_and_bias *all, size_t experts, int32_t expert)
{
    struct reference_weight_and_bias one = *all;
    one.outputs = all->outputs / experts;
    one.weight += (size_t)expert * one.outputs * one.inputs;
    one.dweight += (size_t)expert * one.outputs * one.inputs;
    if (all->bias != NULL) {
        one.bias += (size_t)expert * one.outputs;
        one.dbias += (size_t)expert * one.outputs;
    }
    return one;
}

/* A linear layer of all experts, each of which has its own weights. inputs: (copies of all tokens, weights->inputs). */
struct experts_linear_layer {
    const struct transformer *transformer;
    const struct reference_weight_and_bias *weights;
    const int32_t *expert_of_copy; /* (s, copies) */
    size_t token_count;
    const double *inputs;
};

/* Returns the inputs of one expert's copies, (*count, inputs). row[i] becomes the index of the i-th of these copies
 * among all copies. They are in the order in which a rank has them: the first copies of all tokens, then the second
 * ones, and so on (exec/cpu/experts.c). */
static double *gather_rows_of_expert(struct arena *arena, const struct experts_linear_layer *v,
                                     int32_t expert, size_t *row, size_t *count)
{
    const size_t copies = v->transformer->experts_per_token, k = v->weights->inputs;
    *count = 0;
    for (size_t j = 0; j < copies; j++)
        for (size_t i = 0; i < v->token_count; i++)
            if (v->expert_of_copy[i * copies + j] == expert)
                row[(*count)++] = i * copies + j;
    double *x = reference_zeros(arena, *count, k);
    for (size_t i = 0; i < *count; i++)
        memcpy(&x[i * k], &v->inputs[row[i] * k], k * sizeof *x);
    return x;
}

/* Sets y, (copies of all tokens, outputs), to the products of each copy's inputs with the weights of its expert. */
static void experts_linear(const struct experts_linear_layer *v, double *y)
{
    size_t *row = heap_alloc(v->token_count * v->transformer->experts_per_token, sizeof *row),
           count;
    for (size_t e = 0; e < (size_t)v->transformer->experts; e++) {
        struct arena arena = {0};
        const struct reference_weight_and_bias p =
            weights_of_expert(v->weights, v->transformer->experts, (int32_t)e);
        const double *x = gather_rows_of_expert(&arena, v, (int32_t)e, row, &count);
        const double *part = reference_linear(&arena, &p, x, count);
        for (size_t i = 0; i < count; i++)
            memcpy(&y[row[i] * p.outputs], &part[i * p.outputs], p.outputs * sizeof *y);
        arena_release(&arena);
    }
    free(row);
}

/* Sets dx, (copies of all tokens, inputs), from dy, and adds the gradients of the weights. */
static void experts_linear_backward(const struct experts_linear_layer *v, double *dx,
                                    const double *dy)
{
    size_t *row = heap_alloc(v->token_count * v->transformer->experts_per_token, sizeof *row),
           count;
    for (size_t e = 0; e < (size_t)v->transformer->experts; e++) {
        struct arena arena = {0};
        const struct reference_weight_and_bias p =
            weights_of_expert(v->weights, v->transformer->experts, (int32_t)e);
        const double *x = gather_rows_of_expert(&arena, v, (int32_t)e, row, &count);
        double *of_y = reference_zeros(&arena, count, p.outputs),
               *of_x = reference_zeros(&arena, count, p.inputs);
        for (size_t i = 0; i < count; i++)
            memcpy(&of_y[i * p.outputs], &dy[row[i] * p.outputs], p.outputs * sizeof *dy);
        reference_linear_backward(&p, of_x, of_y, x, count);
        for (size_t i = 0; i < count; i++)
            memcpy(&dx[row[i] * p.inputs], &of_x[i * p.inputs], p.inputs * sizeof *dx);
        arena_release(&arena);
    }
    free(row);
}

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

/* Sets *score to the score of expert[j] before it is divided by the sum, and returns its derivative by logit[e]. */
static double d_score_d_logit(const struct transformer *t, const double *logit,
                              const int32_t *expert, size_t j, size_t e, double *score)
{
    const size_t own = (size_t)expert[j];
    if (t->router == ROUTER_SIGMOID) {
        *score = logistic(logit[own]);
        return e == own ? *score * (1 - *score) : 0;
    }
    double sum = 0, other = 0;
    for (size_t i = 0; i < (size_t)t->experts; i++) {
        bool counts = t->router == ROUTER_SOFTMAX;
        for (size_t k = 0; k < (size_t)t->experts_per_token; k++)
            counts = counts || (size_t)expert[k] == i;
        sum += counts ? exp(logit[i] - logit[own]) : 0;
        other += counts && i == e ? exp(logit[i] - logit[own]) : 0;
    }
    *score = 1 / sum;
    return *score * ((e == own) - other / sum);
}

static double route_scale(const struct transformer *t)
{
    return t->router_scale > 0 ? t->router_scale : 1;
}

static double *route_weights(struct arena *arena, const struct transformer *t, const double *logits,
                             const int32_t *expert, size_t s)
{
    const size_t copies = t->experts_per_token, experts = t->experts;
    double *weights = reference_zeros(arena, s, copies);
    for (size_t i = 0; i < s; i++) {
        double sum = 0;
        for (size_t j = 0; j < copies; j++) {
            d_score_d_logit(t, &logits[i * experts], &expert[i * copies], j, 0,
                            &weights[i * copies + j]);
            sum += weights[i * copies + j];
        }
        for (size_t j = 0; j < copies; j++)
            weights[i * copies + j] *= route_scale(t) / (t->router_norm ? sum : 1);
    }
    return weights;
}

/* Adds the gradients of the logits to d_logits, from the derivative of every score by every logit. */
static void route_backward(const struct transformer *t, double *d_logits, const double *d_weights,
                           const double *logits, const int32_t *expert, size_t s)
{
    const size_t copies = t->experts_per_token, experts = t->experts;
    for (size_t i = 0; i < s; i++)
        for (size_t e = 0; e < experts; e++) {
            double sum = 0, dsum = 0, score, d = 0, through = 0;
            for (size_t j = 0; j < copies; j++) {
                dsum += d_score_d_logit(t, &logits[i * experts], &expert[i * copies], j, e, &score);
                sum += score;
            }
            for (size_t j = 0; j < copies; j++) {
                const double slope =
                    d_score_d_logit(t, &logits[i * experts], &expert[i * copies], j, e, &score);
                const double dw = route_scale(t) * d_weights[i * copies + j];
                d += dw * slope / (t->router_norm ? sum : 1);
                through += t->router_norm ? dw * score * dsum / (sum * sum) : 0;
            }
            d_logits[i * experts + e] += d - through;
        }
}

/* The value that is multiplied by the router's weight of a copy: the input of its expert, the result of the expert's
 * activation, or the output of the expert. */
enum router_weighted_value { WEIGHTED_INPUT, WEIGHTED_ACTIVATION, WEIGHTED_OUTPUT };

static enum router_weighted_value
router_weighted_value_of(const struct transformer *t,
                         const struct reference_pass_sequence *sequence)
{
    return t->router_on_input                       ? WEIGHTED_INPUT
           : sequence->router_weights_at_activation ? WEIGHTED_ACTIVATION
                                                    : WEIGHTED_OUTPUT;
}

/* Multiplies each row of x, (copies of all tokens, cols), by the weight of its copy. */
static void scale_rows_by_copy_weights(double *x, const double *weights, size_t rows, size_t cols)
{
    for (size_t i = 0; i < rows * cols; i++)
        x[i] *= weights[i / cols];
}

/* Adds to dweights[i], the gradient of the weight of row i, the dot product of the rows i of dy and y, (rows, cols). */
static void add_route_weight_gradients(double *dweights, const double *dy, const double *y,
                                       size_t rows, size_t cols)
{
    for (size_t i = 0; i < rows * cols; i++)
        dweights[i / cols] += dy[i] * y[i];
}

/* Returns the expert that the router chose for each copy. For a copy that the expert drops, expert[i] is -1 - that
 * expert. */
static int32_t *chosen_experts(struct arena *arena, const int32_t *expert, size_t all)
{
    int32_t *chosen = arena_array(arena, all, sizeof *chosen);
    for (size_t i = 0; i < all; i++)
        chosen[i] = expert[i] < 0 ? -1 - expert[i] : expert[i];
    return chosen;
}

double *reference_experts_forward(struct arena *arena, struct reference_rounding_state *to,
                                  const struct transformer *t,
                                  const struct reference_layer_parameters *p,
                                  struct reference_saved_expert_values *v, const double *x,
                                  const struct reference_pass_sequence *sequence,
                                  const int32_t *expert)
{
    const size_t s = sequence->tokens, h = t->hidden, f = t->expert_ffn;
    const size_t copies = t->experts_per_token, all = s * copies;
    const int32_t *chosen = chosen_experts(arena, expert, all);
    const enum router_weighted_value weighted = router_weighted_value_of(t, sequence);
    v->logits = reference_linear(arena, &p->router, x, s);
    v->weights = route_weights(arena, t, v->logits, chosen, s);
    v->up_output = reference_zeros(arena, all, 2 * f);
    v->output = reference_zeros(arena, all, h);
    v->input = reference_zeros(arena, all, h);
    for (size_t i = 0; i < all * h; i++)
        v->input[i] = x[i / h / copies * h + i % h];
    if (weighted == WEIGHTED_INPUT) {
        scale_rows_by_copy_weights(v->input, v->weights, all, h);
        reference_perturb_like_rounding(to, v->input, all * h);
    }
    experts_linear(&(struct experts_linear_layer){t, &p->experts_up, chosen, s, v->input},
                   v->up_output);
    reference_perturb_like_rounding(to, v->up_output, all * 2 * f);
    v->activated = reference_activation(arena, t->activation, v->up_output, all, f);
    if (weighted == WEIGHTED_ACTIVATION)
        scale_rows_by_copy_weights(v->activated, v->weights, all, f);
    reference_perturb_like_rounding(to, v->activated, all * f);
    experts_linear(&(struct experts_linear_layer){t, &p->experts_down, chosen, s, v->activated},
                   v->output);
    reference_perturb_like_rounding(to, v->output, all * h);
    double *y = reference_zeros(arena, s, h);
    for (size_t i = 0; i < all; i++)
        for (size_t c = 0; c < h && expert[i] >= 0; c++)
            y[i / copies * h + c] +=
                (weighted == WEIGHTED_OUTPUT ? v->weights[i] : 1) * v->output[i * h + c];
    reference_perturb_like_rounding(to, y, s * h);
    if (t->shared_ffn == 0)
        return y;
    const size_t shared = t->shared_ffn;
    v->shared_up_output = reference_perturb_like_rounding(
        to, reference_linear(arena, &p->shared_up, x, s), s * 2 * shared);
    v->shared_activated = reference_perturb_like_rounding(
        to, reference_activation(arena, t->activation, v->shared_up_output, s, shared), s * shared);
    const double *add = reference_perturb_like_rounding(
        to, reference_linear(arena, &p->shared_down, v->shared_activated, s), s * h);
    return reference_perturb_like_rounding(to, reference_sum_of_two_arrays(arena, y, add, s * h),
                                           s * h);
}

double *reference_experts_backward(struct arena *arena, struct reference_rounding_state *to,
                                   const struct transformer *t,
                                   const struct reference_layer_parameters *p,
                                   const struct reference_saved_expert_values *v, const double *x,
                                   const double *dy, const struct reference_pass_sequence *sequence,
                                   const int32_t *expert)
{
    const size_t s = sequence->tokens, h = t->hidden, f = t->expert_ffn;
    const size_t copies = t->experts_per_token, all = s * copies;
    const int32_t *chosen = chosen_experts(arena, expert, all);
    const enum router_weighted_value weighted = router_weighted_value_of(t, sequence);
    double *doutput = reference_zeros(arena, all, h), *dweights = reference_zeros(arena, s, copies);
    for (size_t i = 0; i < all; i++)
        for (size_t c = 0; c < h && expert[i] >= 0; c++)
            doutput[i * h + c] = dy[i / copies * h + c];
    if (weighted == WEIGHTED_OUTPUT) {
        add_route_weight_gradients(dweights, doutput, v->output, all, h);
        scale_rows_by_copy_weights(doutput, v->weights, all, h);
    }
    reference_perturb_like_rounding(to, doutput, all * h);
    double *dacted = reference_zeros(arena, all, f), *draised = reference_zeros(arena, all, 2 * f);
    double *dinput = reference_zeros(arena, all, h);
    experts_linear_backward(
        &(struct experts_linear_layer){t, &p->experts_down, chosen, s, v->activated}, dacted,
        doutput);
    reference_perturb_like_rounding(to, dacted, all * f);
    if (weighted == WEIGHTED_ACTIVATION) {
        const double *plain = reference_activation(arena, t->activation, v->up_output, all, f);
        add_route_weight_gradients(dweights, dacted, plain, all, f);
        scale_rows_by_copy_weights(dacted, v->weights, all, f);
    }
    reference_activation_backward(t->activation, draised, dacted, v->up_output, all, f);
    reference_perturb_like_rounding(to, draised, all * 2 * f);
    experts_linear_backward(&(struct experts_linear_layer){t, &p->experts_up, chosen, s, v->input},
                            dinput, draised);
    reference_perturb_like_rounding(to, dinput, all * h);
    double *dx = reference_zeros(arena, s, h), *dlogits = reference_zeros(arena, s, t->experts);
    for (size_t i = 0; i < all; i++)
        for (size_t c = 0; c < h; c++) {
            const double weight = weighted == WEIGHTED_INPUT ? v->weights[i] : 1;
            dx[i / copies * h + c] += weight * dinput[i * h + c];
            if (weighted == WEIGHTED_INPUT)
                dweights[i] += x[i / copies * h + c] * dinput[i * h + c];
        }
    route_backward(t, dlogits, dweights, v->logits, chosen, s);
    reference_perturb_like_rounding(to, dlogits, s * (size_t)t->experts);
    reference_linear_backward(&p->router, dx, dlogits, x, s);
    if (t->shared_ffn > 0) {
        const size_t shared = t->shared_ffn;
        double *d_act = reference_zeros(arena, s, shared),
               *d_up = reference_zeros(arena, s, 2 * shared);
        reference_linear_backward(&p->shared_down, d_act, dy, v->shared_activated, s);
        reference_perturb_like_rounding(to, d_act, s * shared);
        reference_activation_backward(t->activation, d_up, d_act, v->shared_up_output, s, shared);
        reference_perturb_like_rounding(to, d_up, s * 2 * shared);
        reference_linear_backward(&p->shared_up, dx, d_up, x, s);
    }
    return reference_perturb_like_rounding(to, dx, s * h);
}

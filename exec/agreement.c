#include "exec/agreement.h"

#include "base/arena.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char *const agreement_part_names[AGREEMENT_PART_COUNT] = {"gradient", "parameter", "master",
                                                                "moment1", "moment2"};

static const enum binding_kind binding_of[AGREEMENT_PART_COUNT] = {
    [AGREEMENT_GRADIENT] = BINDING_GRAD,   [AGREEMENT_PARAMETER] = BINDING_PARAM,
    [AGREEMENT_MASTER] = BINDING_MASTER,   [AGREEMENT_MOMENT1] = BINDING_MOMENT1,
    [AGREEMENT_MOMENT2] = BINDING_MOMENT2,
};

const struct exec_adamw agreement_adamw = {
    .lr = 1e-2, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .max_norm = 0.5};

struct agreement_rule agreement_rule(enum dtype dtype)
{
    static const struct agreement_rule rules[DTYPE_COUNT] = {
        [DTYPE_F32] = {1e-4, 1e-3, 1e-5, 1e-4},
        [DTYPE_BF16] = {5e-2, 5e-2, 5e-3, 5e-2},
        [DTYPE_F16] = {1e-2, 1e-2, 1e-3, 1e-2},
    };
    return rules[dtype].tolerance > 0 ? rules[dtype] : rules[DTYPE_F32];
}

double agreement_tolerance(const struct agreement_rule *rule, enum agreement_part part)
{
    return part == AGREEMENT_MOMENT2 ? 2 * rule->tolerance : rule->tolerance;
}

/* ---- comparison ---- */

static const double *wanted(const struct reference_tensor *tensor, enum agreement_part part)
{
    switch (part) {
    case AGREEMENT_GRADIENT:
        return tensor->grad;
    case AGREEMENT_MOMENT1:
        return tensor->m;
    case AGREEMENT_MOMENT2:
        return tensor->v;
    default:
        return tensor->param;
    }
}

static double largest(const double *values, size_t count)
{
    double most = 0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, fabs(values[i]));
    return most;
}

static double furthest(const double *got, const double *want, size_t count)
{
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        double off = fabs(got[i] - want[i]);
        most = off > most ? off : isnan(off) ? (double)INFINITY : most;
    }
    return most;
}

/* The Euclidean norm of the tensors that were collected. */
static double norm_of(const struct training *t)
{
    double squares = 0;
    for (uint32_t i = 0; i < t->ir->tensor_count; i++) {
        const double *got = t->got[BINDING_GRAD][i];
        for (int64_t k = 0; k < t->ir->tensor[i].rows * t->ir->tensor[i].cols; k++)
            squares += got[k] * got[k];
    }
    return sqrt(squares);
}

static double relative(double got, double want)
{
    double off = fabs(got - want) / fabs(want);
    return isnan(off) ? got == want ? 0 : (double)INFINITY : off;
}

static void compare_part(struct agreement *a, const struct training *t, enum agreement_step step,
                         enum agreement_part part)
{
    const struct reference *r = t->reference;
    double *const *got = t->got[binding_of[part]];
    struct agreement_found *found = &a->found[step][part];
    double overall = 0;
    for (size_t n = 0; n < r->count; n++)
        overall = fmax(overall, largest(wanted(&r->tensors[n], part), r->tensors[n].count));
    for (uint32_t i = 0; i < a->row_count && got != NULL; i++) {
        struct agreement_row *row = &a->row[i];
        const struct tensor *tensor = &t->ir->tensor[i];
        const double *want =
            wanted(training_tensor(t, row->tensor), part) + tensor->first * tensor->cols;
        size_t count = (size_t)(tensor->rows * tensor->cols);
        double unit = fmax(largest(want, count), a->rule.floor * overall);
        double off = furthest(got[i], want, count), error = off > 0 ? off / unit : 0;
        row->error[part] = fmax(row->error[part], error); /* of NAN and a number: the number */
        if (found->worst == IR_NONE || error > found->error) {
            found->worst = i;
            found->error = error;
        }
        found->wrong += !(error <= agreement_tolerance(&a->rule, part));
    }
    a->agrees = a->agrees && found->wrong == 0;
}

static void compare(struct agreement *a, const struct training *t, enum agreement_step step)
{
    double loss_error = relative(t->loss[0], a->reference_loss);
    if (step == AGREEMENT_UNLIMITED || loss_error > a->loss_error) {
        a->loss = t->loss[0];
        a->loss_error = loss_error;
    }
    if (step == AGREEMENT_UNLIMITED) {
        a->norm = norm_of(t);
        a->reference_norm = reference_gradient_norm(t->reference);
        a->norm_error = relative(a->norm, a->reference_norm);
    }
    a->replicas_differ += t->bindings.replicas_differ;
    a->agrees = a->agrees && a->loss_error <= a->rule.loss && a->norm_error <= a->rule.norm &&
                a->replicas_differ == 0;
    for (int part = 0; part < AGREEMENT_PART_COUNT; part++)
        compare_part(a, t, step, (enum agreement_part)part);
}

static void start(struct agreement *a, const struct ir *ir)
{
    a->agrees = true;
    a->rule = agreement_rule((enum dtype)ir->dtype);
    a->clips = training_clips(ir);
    a->row_count = ir->tensor_count;
    a->row = heap_zalloc(a->row_count + 1, sizeof *a->row);
    for (int part = 0; part < AGREEMENT_PART_COUNT; part++) {
        for (uint32_t i = 0; i < a->row_count; i++) {
            a->row[i].tensor = ir->tensor[i].name;
            a->row[i].error[part] = (double)NAN;
        }
        for (int step = 0; step < AGREEMENT_STEP_COUNT; step++)
            a->found[step][part].worst = IR_NONE;
    }
}

/* ---- the calls ---- */

/* A schedule that binds nothing to look at would agree with anything. */
static enum status check_bound(const struct ir *ir, const char *name, struct diag *diag)
{
    static const enum binding_kind needed[] = {BINDING_TOKENS, BINDING_LABELS, BINDING_LOSS,
                                               BINDING_PARAM, BINDING_GRAD};
    for (size_t i = 0; i < ARRAY_LEN(needed); i++)
        if (!training_binds(ir, needed[i]))
            return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                              "no buffer is bound to '%s', which a check of a training step needs",
                              binding_name(needed[i]));
    return STATUS_OK;
}

enum status agreement_check_tokens(struct agreement *a, const struct ir *ir, const char *name,
                                   const struct transformer *model, const int32_t *tokens,
                                   uint64_t seed, const struct exec_options *options,
                                   struct diag *diag)
{
    const struct training_options how = {.seed = seed, .reference = true, .collect = true};
    struct exec_options run = *options;
    struct exec_result clipped = {0};
    struct training training = {0};
    run.warmup = 0;
    run.steps = 1;
    run.model = (struct exec_model){model->norm_eps, model->rope_theta};
    run.adamw = agreement_adamw;
    run.adamw.max_norm = 0;
    enum status status = check_bound(ir, name, diag);
    if (status == STATUS_OK)
        status = training_init(&training, ir, name, model, &how, diag);
    if (status == STATUS_OK) {
        training.tokens = tokens;
        status = training_run(&training, &run, &a->result, diag);
    }
    if (status == STATUS_OK)
        status = training_reference(&training, &run.adamw, 1, &a->reference_loss, diag);
    if (status == STATUS_OK) {
        start(a, ir);
        compare(a, &training, AGREEMENT_UNLIMITED);
    }
    if (status == STATUS_OK && a->clips) {
        run.adamw.max_norm = agreement_adamw.max_norm;
        status = training_run(&training, &run, &clipped, diag);
    }
    if (status == STATUS_OK && a->clips) {
        training_reference_update(&training, &run.adamw);
        compare(a, &training, AGREEMENT_CLIPPED);
    }
    exec_result_release(&clipped);
    training_release(&training);
    return status;
}

enum status agreement_check(struct agreement *a, const struct ir *ir, const char *name,
                            const struct transformer *model, uint64_t seed,
                            const struct exec_options *options, struct diag *diag)
{
    size_t count = (size_t)ir->global_batch * (size_t)ir->layout.tokens;
    int32_t *tokens = heap_alloc(count, sizeof *tokens);
    training_random_tokens(tokens, count, model->vocab, seed);
    enum status status = agreement_check_tokens(a, ir, name, model, tokens, seed, options, diag);
    free(tokens);
    return status;
}

void agreement_release(struct agreement *a)
{
    free(a->row);
    exec_result_release(&a->result);
    *a = (struct agreement){0};
}

static void explain_part(const struct agreement *a, struct loc at, enum agreement_step step,
                         enum agreement_part part, struct diag *diag)
{
    const struct agreement_found *found = &a->found[step][part];
    char when[64] = "";
    if (found->wrong == 0)
        return;
    if (step == AGREEMENT_CLIPPED)
        snprintf(when, sizeof when, "in the step that clips to a norm of %g, ",
                 agreement_adamw.max_norm);
    diag_error(diag, at, STATUS_NO,
               "%s%ss of %" PRIu32 " tensors do not agree; the worst, %s, is off by %.2g of its "
               "largest element (tolerance %.2g)",
               when, agreement_part_names[part], found->wrong, a->row[found->worst].tensor,
               found->error, agreement_tolerance(&a->rule, part));
}

enum status agreement_explain(const struct agreement *a, const char *name, struct diag *diag)
{
    const struct loc at = {.name = name};
    if (a->agrees)
        return STATUS_OK;
    if (!(a->loss_error <= a->rule.loss))
        diag_error(diag, at, STATUS_NO, "the loss is %.9g and the reference's is %.9g: off by %.2g",
                   a->loss, a->reference_loss, a->loss_error);
    if (a->replicas_differ > 0)
        diag_error(diag, at, STATUS_NO,
                   "%" PRIu64 " elements differ between ranks that hold the same",
                   a->replicas_differ);
    if (!(a->norm_error <= a->rule.norm))
        diag_error(diag, at, STATUS_NO,
                   "the norm of the gradients is %.9g and the reference's is %.9g: off by %.2g",
                   a->norm, a->reference_norm, a->norm_error);
    for (int step = 0; step < AGREEMENT_STEP_COUNT; step++)
        for (int part = 0; part < AGREEMENT_PART_COUNT; part++)
            explain_part(a, at, (enum agreement_step)step, (enum agreement_part)part, diag);
    return STATUS_NO;
}

#include "exec/agreement.h"

#include "base/arena.h"

#include <inttypes.h>
#include <math.h>
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
        [DTYPE_F32] = {1e-4, 1e-3, 1e-5},
        [DTYPE_BF16] = {5e-2, 5e-2, 5e-3},
        [DTYPE_F16] = {1e-2, 1e-2, 1e-3},
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

static void compare_part(struct agreement *a, const struct training *t, enum agreement_part part)
{
    const struct reference *r = t->reference;
    double *const *got = t->got[binding_of[part]];
    double overall = 0;
    for (size_t n = 0; n < r->count; n++)
        overall = fmax(overall, largest(wanted(&r->tensors[n], part), r->tensors[n].count));
    a->worst[part] = IR_NONE;
    for (uint32_t i = 0; i < a->row_count; i++) {
        struct agreement_row *row = &a->row[i];
        row->error[part] = (double)NAN;
        if (got == NULL)
            continue;
        const struct tensor *tensor = &t->ir->tensor[i];
        const double *want =
            wanted(training_tensor(t, row->tensor), part) + tensor->first * tensor->cols;
        size_t count = (size_t)(tensor->rows * tensor->cols);
        double unit = fmax(largest(want, count), a->rule.floor * overall);
        double off = furthest(got[i], want, count);
        row->error[part] = off > 0 ? off / unit : 0;
        if (a->worst[part] == IR_NONE || row->error[part] > a->row[a->worst[part]].error[part])
            a->worst[part] = i;
        a->agrees = a->agrees && row->error[part] <= agreement_tolerance(&a->rule, part);
    }
}

static void compare(struct agreement *a, const struct training *t)
{
    a->rule = agreement_rule((enum dtype)t->ir->dtype);
    a->loss = t->loss[0];
    a->loss_error = fabs(a->loss - a->reference_loss) / fabs(a->reference_loss);
    a->replicas_differ = t->bindings.replicas_differ;
    a->agrees = a->loss_error <= a->rule.loss && a->replicas_differ == 0;
    a->row_count = t->ir->tensor_count;
    a->row = heap_zalloc(a->row_count + 1, sizeof *a->row);
    for (uint32_t i = 0; i < a->row_count; i++)
        a->row[i].tensor = t->ir->tensor[i].name;
    for (int part = 0; part < AGREEMENT_PART_COUNT; part++)
        compare_part(a, t, (enum agreement_part)part);
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
    struct training training = {0};
    run.warmup = 0;
    run.steps = 1;
    run.model = (struct exec_model){model->norm_eps, model->rope_theta};
    run.adamw = agreement_adamw;
    enum status status = check_bound(ir, name, diag);
    if (status == STATUS_OK)
        status = training_init(&training, ir, name, model, &how, diag);
    if (status == STATUS_OK) {
        training.tokens = tokens;
        status = training_run(&training, &run, &a->result, diag);
    }
    if (status == STATUS_OK)
        status = training_reference(&training, &agreement_adamw, 1, &a->reference_loss, diag);
    if (status == STATUS_OK)
        compare(a, &training);
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
    for (int part = 0; part < AGREEMENT_PART_COUNT; part++) {
        uint32_t wrong = 0;
        double tolerance = agreement_tolerance(&a->rule, (enum agreement_part)part);
        for (uint32_t i = 0; i < a->row_count; i++)
            wrong += a->row[i].error[part] > tolerance;
        if (wrong > 0)
            diag_error(diag, at, STATUS_NO,
                       "%ss of %" PRIu32 " tensors do not agree; the worst, %s, is off by %.2g of "
                       "its largest element (tolerance %.2g)",
                       agreement_part_names[part], wrong, a->row[a->worst[part]].tensor,
                       a->row[a->worst[part]].error[part], tolerance);
    }
    return STATUS_NO;
}

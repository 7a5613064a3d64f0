#include "exec/reference_check.h"

#include "base/arena.h"
#include "base/c_locale.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char *const reference_check_part_names[REFERENCE_CHECK_PART_COUNT] = {
    "gradient", "parameter", "master", "moment1", "moment2"};

const char *const reference_check_verdict_names[REFERENCE_CHECK_VERDICT_COUNT] = {"right", "wrong",
                                                                                  "undecided"};

static const enum binding_kind binding_of_part[REFERENCE_CHECK_PART_COUNT] = {
    [REFERENCE_CHECK_GRADIENT] = BINDING_GRAD,   [REFERENCE_CHECK_PARAMETER] = BINDING_PARAM,
    [REFERENCE_CHECK_MASTER] = BINDING_MASTER,   [REFERENCE_CHECK_MOMENT1] = BINDING_MOMENT1,
    [REFERENCE_CHECK_MOMENT2] = BINDING_MOMENT2,
};

const struct exec_adamw reference_check_adamw = {
    .lr = 1e-2, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .max_norm = 0.5};

struct reference_check_rule reference_check_rule_of_dtype(enum dtype dtype)
{
    static const struct reference_check_rule rules[DTYPE_COUNT] = {
        [DTYPE_F32] = {1e-4, 1e-3, 1e-5, 1e-4},
        [DTYPE_BF16] = {5e-2, 5e-2, 5e-3, 1e-2},
        [DTYPE_F16] = {1e-2, 1e-2, 1e-3, 2e-3},
    };
    return rules[dtype].tolerance > 0 ? rules[dtype] : rules[DTYPE_F32];
}

double reference_check_tolerance(const struct reference_check_rule *rule,
                                 enum reference_check_part part)
{
    return part == REFERENCE_CHECK_MOMENT2 ? 2 * rule->tolerance : rule->tolerance;
}

/* ---- comparison with the reference ---- */

static const double *expected_values(const struct reference_tensor *tensor,
                                     enum reference_check_part part)
{
    switch (part) {
    case REFERENCE_CHECK_GRADIENT:
        return tensor->grad;
    case REFERENCE_CHECK_MOMENT1:
        return tensor->m;
    case REFERENCE_CHECK_MOMENT2:
        return tensor->v;
    default:
        return tensor->param;
    }
}

static double largest_magnitude(const double *values, size_t count)
{
    double most = 0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, fabs(values[i]));
    return most;
}

static double largest_difference(const double *got, const double *want, size_t count)
{
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        double off = fabs(got[i] - want[i]);
        most = off > most ? off : isnan(off) ? (double)INFINITY : most;
    }
    return most;
}

/* Returns the Euclidean norm of all gradients that were collected from the schedule. */
static double norm_of_collected_gradients(const struct training *t)
{
    double squares = 0;
    for (uint32_t i = 0; i < t->ir->tensor_count; i++) {
        const double *got = t->collected[BINDING_GRAD][i];
        for (int64_t k = 0; k < t->ir->tensor[i].rows * t->ir->tensor[i].cols; k++)
            squares += got[k] * got[k];
    }
    return sqrt(squares);
}

/* Returns the Euclidean norm of the difference between the gradients of two references. */
static double gradient_distance(const struct reference *a, const struct reference *b)
{
    double squares = 0;
    for (size_t n = 0; n < a->tensor_count; n++)
        for (size_t i = 0; i < a->tensors[n].count; i++)
            squares += pow(a->tensors[n].grad[i] - b->tensors[n].grad[i], 2);
    return sqrt(squares);
}

static double relative_error(double got, double want)
{
    double off = fabs(got - want) / fabs(want);
    return isnan(off) ? got == want ? 0 : (double)INFINITY : off;
}

double reference_check_max_row_difference(const struct reference_check_row *row,
                                          enum reference_check_part part)
{
    return fmax(row->error[REFERENCE_CHECK_STEP_NOT_CLIPPED][part].difference,
                row->error[REFERENCE_CHECK_STEP_CLIPPED][part].difference);
}

/* True if the schedule binds no separate master of the tensor. If the tensor is trained, AdamW then updates the
 * parameters themselves. */
static bool has_no_master(const struct ir *ir, uint32_t tensor)
{
    for (uint32_t i = 0; i < ir->binding_count; i++) {
        const struct binding *binding = &ir->binding[i];
        if (binding->kind != BINDING_MASTER)
            continue;
        const struct bundle *bundle = &ir->bundle[binding->bundle];
        if (tensor >= bundle->tensor_begin && tensor - bundle->tensor_begin < bundle->tensor_count)
            return false;
    }
    return true;
}

/* Compares a part of every tensor with the reference. If moved is NULL, it compares what was collected from the
 * schedule, and sets `difference`. Else it compares `moved`, a reference whose results were rounded at random, and
 * raises `max_shift_by_rounding` to this distance. It leaves out what the schedule does not compute: stored weights,
 * masters that it lacks, and masters and moments of tensors that are not trained. */
static void compare_part_of_all_tensors(struct reference_check *a, const struct training *t,
                                        enum reference_check_step_kind step,
                                        enum reference_check_part part,
                                        const struct reference *moved)
{
    const struct reference *r = t->reference;
    double *const *got = t->collected[binding_of_part[part]];
    double overall = 0;
    for (size_t n = 0; n < r->tensor_count; n++)
        overall = fmax(
            overall, largest_magnitude(expected_values(&r->tensors[n], part), r->tensors[n].count));
    for (uint32_t i = 0; i < a->row_count && got != NULL; i++) {
        struct reference_check_error *error = &a->rows[i].error[step][part];
        const struct tensor *tensor = &t->ir->tensor[i];
        if (t->stored != NULL && t->stored[i].codes != NULL && part == REFERENCE_CHECK_PARAMETER)
            continue; /* no op writes stored weights */
        const bool trained = transformer_is_tensor_trained(&r->transformer, tensor->name);
        if (part == REFERENCE_CHECK_MASTER && has_no_master(t->ir, i))
            continue;
        if (!trained && part != REFERENCE_CHECK_PARAMETER && part != REFERENCE_CHECK_GRADIENT)
            continue;
        int64_t first = tensor->first_row * tensor->cols;
        const double *want = expected_values(training_find_tensor(r, tensor->name), part) + first;
        size_t count = (size_t)(tensor->rows * tensor->cols);
        double unit = fmax(largest_magnitude(want, count), a->rule.least_scale_share * overall);
        const double *other =
            moved != NULL ? expected_values(training_find_tensor(moved, tensor->name), part) + first
                          : got[i];
        double off = largest_difference(other, want, count), in_units = off > 0 ? off / unit : 0;
        if (moved != NULL)
            error->max_shift_by_rounding = fmax(error->max_shift_by_rounding, in_units);
        else
            error->difference = in_units;
    }
}

static void compare_step(struct reference_check *a, const struct training *t,
                         enum reference_check_step_kind step)
{
    a->loss[step] = t->losses[0];
    a->loss_error[step].difference = relative_error(t->losses[0], a->reference_loss);
    if (step == REFERENCE_CHECK_STEP_NOT_CLIPPED) {
        a->gradient_norm = norm_of_collected_gradients(t);
        a->reference_gradient_norm = reference_gradient_norm(t->reference);
        a->norm_error.difference = relative_error(a->gradient_norm, a->reference_gradient_norm);
    }
    a->differing_replica_elements += t->bindings.differing_replica_elements;
    for (int part = 0; part < REFERENCE_CHECK_PART_COUNT; part++)
        compare_part_of_all_tensors(a, t, step, (enum reference_check_part)part, NULL);
}

/* ---- verdicts on differences ---- */

static enum reference_check_verdict verdict_of_error(struct reference_check_error error,
                                                     double tolerance)
{
    if (isnan(error.difference) ||
        error.difference <=
            fmax(tolerance, fmin(REFERENCE_CHECK_MOVES * error.max_shift_by_rounding,
                                 REFERENCE_CHECK_TOLERANCE_MAX)))
        return REFERENCE_CHECK_RIGHT;
    return error.difference <= REFERENCE_CHECK_MOVES * error.max_shift_by_rounding
               ? REFERENCE_CHECK_UNDECIDED
               : REFERENCE_CHECK_WRONG;
}

typedef void error_visit(void *user, struct reference_check_error error, double tolerance);

/* Calls visit() for each error of a step: the loss's, the norm's (only without a limit), and those of each tensor's
 * parts. */
static void visit_errors_of_step(const struct reference_check *a,
                                 enum reference_check_step_kind step, error_visit *visit,
                                 void *user)
{
    visit(user, a->loss_error[step], a->rule.loss_tolerance);
    if (step == REFERENCE_CHECK_STEP_NOT_CLIPPED)
        visit(user, a->norm_error, a->rule.norm_tolerance);
    for (uint32_t i = 0; i < a->row_count; i++)
        for (int part = 0; part < REFERENCE_CHECK_PART_COUNT; part++)
            visit(user, a->rows[i].error[step][part],
                  reference_check_tolerance(&a->rule, (enum reference_check_part)part));
}

static void raise_worst_verdict(void *user, struct reference_check_error error, double tolerance)
{
    enum reference_check_verdict *worst = user, one = verdict_of_error(error, tolerance);
    if (one == REFERENCE_CHECK_WRONG ||
        (one == REFERENCE_CHECK_UNDECIDED && *worst == REFERENCE_CHECK_RIGHT))
        *worst = one;
}

static enum reference_check_verdict step_verdict(const struct reference_check *a,
                                                 enum reference_check_step_kind step)
{
    enum reference_check_verdict verdict = REFERENCE_CHECK_RIGHT;
    visit_errors_of_step(a, step, raise_worst_verdict, &verdict);
    return verdict;
}

/* Sets *user, a bool, to true if further roundings are unlikely to explain the error: it exceeds the tolerance, and is
 * more than 20 times the largest shift that rounding has caused so far. It is called after three roundings or more,
 * since the chance that a normal variable is 20 times as large as three others is 10^-4. */
static void set_if_rounding_cannot_explain(void *user, struct reference_check_error error,
                                           double tolerance)
{
    bool *far = user;
    *far |= error.difference > tolerance && error.difference > 20 * error.max_shift_by_rounding;
}

/* Repeats the reference's step with results rounded at random, and notes how far this moves each result. It stops when
 * the shifts explain all errors of the step, when they are unlikely to explain one, or after
 * REFERENCE_CHECK_ROUNDINGS. */
static enum status measure_rounding(struct reference_check *a, struct training *t,
                                    const struct exec_adamw *adamw,
                                    enum reference_check_step_kind step, struct diag *diag)
{
    struct reference *moved = reference_new(&t->reference->transformer);
    moved->eight_bit_products = t->reference->eight_bit_products;
    enum status status = STATUS_OK;
    bool far = false;
    a->has_rounding_error = true;
    for (uint64_t k = 1; k <= REFERENCE_CHECK_ROUNDINGS && status == STATUS_OK && !far &&
                         step_verdict(a, step) != REFERENCE_CHECK_RIGHT;
         k++) {
        double loss;
        status = training_run_rounded_reference(t, moved, adamw, k, &loss, diag);
        if (status != STATUS_OK)
            break;
        struct reference_check_error *error = &a->loss_error[step];
        error->max_shift_by_rounding =
            fmax(error->max_shift_by_rounding, relative_error(loss, a->reference_loss));
        if (step == REFERENCE_CHECK_STEP_NOT_CLIPPED)
            a->norm_error.max_shift_by_rounding =
                fmax(a->norm_error.max_shift_by_rounding,
                     gradient_distance(moved, t->reference) / a->reference_gradient_norm);
        for (int part = 0; part < REFERENCE_CHECK_PART_COUNT; part++)
            compare_part_of_all_tensors(a, t, step, (enum reference_check_part)part, moved);
        if (k >= 3)
            visit_errors_of_step(a, step, set_if_rounding_cannot_explain, &far);
    }
    reference_free(moved);
    return status;
}

static enum status compare_and_judge_step(struct reference_check *a, struct training *t,
                                          const struct exec_adamw *adamw,
                                          enum reference_check_step_kind step, struct diag *diag)
{
    enum status status = STATUS_OK;
    compare_step(a, t, step);
    if (step_verdict(a, step) != REFERENCE_CHECK_RIGHT)
        status = measure_rounding(a, t, adamw, step, diag);
    enum reference_check_verdict verdict = step_verdict(a, step);
    /* if rounding may shift the norm of all gradients by too much, no single gradient can be judged either */
    if (verdict == REFERENCE_CHECK_WRONG &&
        REFERENCE_CHECK_MOVES * a->norm_error.max_shift_by_rounding > REFERENCE_CHECK_TOLERANCE_MAX)
        verdict = REFERENCE_CHECK_UNDECIDED;
    if (a->differing_replica_elements > 0)
        verdict = REFERENCE_CHECK_WRONG;
    if (verdict == REFERENCE_CHECK_WRONG || a->verdict == REFERENCE_CHECK_RIGHT)
        a->verdict = verdict;
    a->agrees = a->verdict == REFERENCE_CHECK_RIGHT;
    return status;
}

static void init_check(struct reference_check *a, const struct ir *ir)
{
    a->dtype = (uint8_t)training_coarsest_result_dtype(ir);
    a->rule = reference_check_rule_of_dtype((enum dtype)a->dtype);
    struct reference_eight_bit_products products;
    if (training_find_eight_bit_products(ir, &products) == TRAINING_EIGHT_BIT_OTHER_OPERANDS) {
        /* The tolerance for products that round other operands than the reference does. One rounding of normal numbers
         * has a relative rms error of 2.65 % in e4m3 and 5.3 % in e5m2. A product of two rounded operands has the root
         * of the sum of their squares. D products one after another, 8 for each layer, have sqrt(D) times that. The
         * tolerance is twice the result. */
        const double of_weights = 0.0265,
                     of_gradients = products.gradient_dtype == DTYPE_E5M2 ? 0.053 : 0.0265;
        const double bound = 2 * hypot(of_weights, of_gradients) *
                             sqrt(8 * (double)(products.layer_end - products.first_layer));
        a->rule = (struct reference_check_rule){bound, a->rule.least_scale_share, bound, bound};
    }
    a->clips = training_clips_gradients(ir);
    a->row_count = ir->tensor_count;
    a->rows = heap_zalloc(a->row_count + 1, sizeof *a->rows);
    a->loss_error[REFERENCE_CHECK_STEP_CLIPPED].difference = (double)NAN;
    for (uint32_t i = 0; i < a->row_count; i++) {
        a->rows[i].tensor = ir->tensor[i].name;
        for (int step = 0; step < REFERENCE_CHECK_STEP_COUNT; step++)
            for (int part = 0; part < REFERENCE_CHECK_PART_COUNT; part++)
                a->rows[i].error[step][part].difference = (double)NAN;
    }
}

/* ---- functions of exec/reference_check.h ---- */

/* Fails if the schedule lacks a binding without which it cannot be compared: tokens, labels, loss, parameters or
 * gradients. */
static enum status check_required_bindings(const struct ir *ir, const char *name, struct diag *diag)
{
    static const enum binding_kind needed[] = {BINDING_TOKENS, BINDING_LABELS, BINDING_LOSS,
                                               BINDING_PARAM, BINDING_GRAD};
    for (size_t i = 0; i < ARRAY_LEN(needed); i++)
        if (!training_has_binding(ir, needed[i]))
            return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                              "no buffer is bound to '%s', which a check of a training step needs",
                              binding_names[needed[i]]);
    return STATUS_OK;
}

enum status reference_check_step_on_tokens(struct reference_check *a, const struct ir *ir,
                                           const char *name, const struct transformer *model,
                                           const int32_t *tokens, uint64_t seed,
                                           const struct exec_options *options, struct diag *diag)
{
    const struct training_options how = {
        .seed = seed, .makes_reference = true, .collects_tensors = true};
    struct exec_options run = *options;
    struct exec_result clipped = {0};
    struct training training = {0};
    run.warmup_steps = 0;
    run.measured_steps = 1;
    run.model = (struct exec_model){model->norm_eps, model->rope_theta};
    run.adamw = reference_check_adamw;
    run.adamw.max_norm = 0;
    enum status status = check_required_bindings(ir, name, diag);
    if (status == STATUS_OK)
        status = training_init(&training, ir, name, model, &how, diag);
    if (status == STATUS_OK) {
        training.batches = tokens;
        status = training_run_schedule(&training, &run, &a->result, diag);
    }
    if (status == STATUS_OK)
        status = training_run_reference(&training, &run.adamw, 1, &a->reference_loss, diag);
    if (status == STATUS_OK) {
        init_check(a, ir);
        status = compare_and_judge_step(a, &training, &run.adamw, REFERENCE_CHECK_STEP_NOT_CLIPPED,
                                        diag);
    }
    if (status == STATUS_OK && a->clips) {
        run.adamw.max_norm = reference_check_adamw.max_norm;
        run.notes = NULL; /* the first step has printed them */
        status = training_run_schedule(&training, &run, &clipped, diag);
    }
    if (status == STATUS_OK && a->clips) {
        training_repeat_reference_update(&training, &run.adamw);
        status =
            compare_and_judge_step(a, &training, &run.adamw, REFERENCE_CHECK_STEP_CLIPPED, diag);
    }
    exec_result_release(&clipped);
    training_release(&training);
    return status;
}

enum status reference_check_run_step(struct reference_check *a, const struct ir *ir,
                                     const char *name, const struct transformer *model,
                                     uint64_t seed, const struct exec_options *options,
                                     struct diag *diag)
{
    size_t count = (size_t)ir->global_batch * (size_t)ir->layout.sequence_tokens;
    int32_t *tokens = heap_alloc(count, sizeof *tokens);
    training_random_tokens(tokens, count, model->vocab, seed);
    enum status status =
        reference_check_step_on_tokens(a, ir, name, model, tokens, seed, options, diag);
    free(tokens);
    return status;
}

void reference_check_release(struct reference_check *a)
{
    free(a->rows);
    exec_result_release(&a->result);
    *a = (struct reference_check){0};
}

/* The tensors that do not agree with the reference in one part of one step. */
struct disagreement {
    uint32_t tensor_count, worst_row; /* the number of tensors, and the row of the worst one */
    bool is_verdict_undecided;        /* the verdict on the worst one is "undecided" */
};

static struct disagreement find_disagreement(const struct reference_check *a,
                                             enum reference_check_step_kind step,
                                             enum reference_check_part part)
{
    struct disagreement found = {0};
    for (uint32_t i = 0; i < a->row_count; i++) {
        struct reference_check_error error = a->rows[i].error[step][part];
        enum reference_check_verdict verdict =
            verdict_of_error(error, reference_check_tolerance(&a->rule, part));
        if (verdict == REFERENCE_CHECK_RIGHT)
            continue;
        bool undecided = verdict == REFERENCE_CHECK_UNDECIDED;
        bool worse = error.difference > a->rows[found.worst_row].error[step][part].difference;
        if (found.tensor_count++ == 0 || (found.is_verdict_undecided && !undecided) ||
            (found.is_verdict_undecided == undecided && worse)) {
            found.worst_row = i;
            found.is_verdict_undecided = undecided;
        }
    }
    return found;
}

/* Writes "; rounding to bf16 alone moves it by 0.3" to text, or "" if that has not been measured, and returns text. */
static const char *rounding_words(const struct reference_check *a,
                                  struct reference_check_error error, char text[static 96])
{
    text[0] = '\0';
    if (error.max_shift_by_rounding > 0)
        c_snprintf(text, 96, "; rounding to %s alone moves it by %.2g",
                   dtype_name((enum dtype)a->dtype), error.max_shift_by_rounding);
    return text;
}

static void explain_part(const struct reference_check *a, struct loc at,
                         enum reference_check_step_kind step, enum reference_check_part part,
                         struct diag *diag)
{
    struct disagreement found = find_disagreement(a, step, part);
    struct reference_check_error error = a->rows[found.worst_row].error[step][part];
    char when[64] = "", rounding[96];
    if (found.tensor_count == 0)
        return;
    if (step == REFERENCE_CHECK_STEP_CLIPPED)
        c_snprintf(when, sizeof when, "in the step that clips to a norm of %g, ",
                   reference_check_adamw.max_norm);
    diag_error(diag, at, STATUS_NO,
               "%s%ss of %" PRIu32 " tensors do not agree; the worst, %s, is off by %.2g of its "
               "largest element (tolerance %.2g%s)",
               when, reference_check_part_names[part], found.tensor_count,
               a->rows[found.worst_row].tensor, error.difference,
               reference_check_tolerance(&a->rule, part), rounding_words(a, error, rounding));
}

enum status reference_check_explain(const struct reference_check *a, const char *name,
                                    struct diag *diag)
{
    const struct loc at = {.name = name};
    char rounding[96];
    if (a->agrees)
        return STATUS_OK;
    for (int step = 0; step < REFERENCE_CHECK_STEP_COUNT; step++)
        if (verdict_of_error(a->loss_error[step], a->rule.loss_tolerance) != REFERENCE_CHECK_RIGHT)
            diag_error(diag, at, STATUS_NO,
                       "the loss is %.9g and the reference's is %.9g: off by %.2g (tolerance "
                       "%.2g%s)",
                       a->loss[step], a->reference_loss, a->loss_error[step].difference,
                       a->rule.loss_tolerance, rounding_words(a, a->loss_error[step], rounding));
    if (a->differing_replica_elements > 0)
        diag_error(diag, at, STATUS_NO,
                   "%" PRIu64 " elements differ between ranks that hold the same elements",
                   a->differing_replica_elements);
    if (verdict_of_error(a->norm_error, a->rule.norm_tolerance) != REFERENCE_CHECK_RIGHT)
        diag_error(diag, at, STATUS_NO,
                   "the norm of the gradients is %.9g and the reference's is %.9g: off by %.2g "
                   "(tolerance %.2g%s)",
                   a->gradient_norm, a->reference_gradient_norm, a->norm_error.difference,
                   a->rule.norm_tolerance, rounding_words(a, a->norm_error, rounding));
    for (int step = 0; step < REFERENCE_CHECK_STEP_COUNT; step++)
        for (int part = 0; part < REFERENCE_CHECK_PART_COUNT; part++)
            explain_part(a, at, (enum reference_check_step_kind)step,
                         (enum reference_check_part)part, diag);
    if (a->verdict == REFERENCE_CHECK_UNDECIDED)
        diag_error(diag, at, STATUS_NO,
                   "rounding to %s may explain all of these differences, so the check cannot "
                   "decide; a "
                   "type of more digits (--dtype f32) or a wider model would do",
                   dtype_name((enum dtype)a->dtype));
    return STATUS_NO;
}

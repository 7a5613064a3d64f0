/* exec/reference_check.h: checks that a schedule computes what the model computes.
 *
 * It compares one training step of a schedule on a backend with the same step of the reference (unsharded,
 * in double, without the schedule): the loss, every gradient and the norm of all of them, every
 * parameter after AdamW, and the masters and moments where the schedule binds them. Weights,
 * moments and tokens are seeded. The check uses only the schedule's bindings and token layout, so every
 * schedule of the model that binds tokens, labels, loss, parameters and gradients can be checked.
 *
 * A schedule that clips its gradients takes the step twice. With a limit that always clips, every
 * common factor of the gradients cancels, so the first step has no limit; the second has the limit
 * of reference_check_adamw, and shows that the schedule clips by the right norm.
 *
 * A tensor agrees when
 *
 *     max |got - reference| <= max(tolerance max(max |reference|, floor x largest of all tensors),
 *                                  4 max |rounded reference - reference|)
 *
 * and replicas of it hold the same bits. The loss and the norm agree in the same way.
 *
 * The first term is enough for all but tiny or deep models. A result that passes through D stored
 * results, one after the other, each of which moves it by up to u = 2^-digits of its size, is off
 * by about 0.4 u sqrt(D) of its size, and so is a sum of such terms of either sign, whatever their
 * number: the error and the sum both grow with the root of it. D is some 24 a layer (12 forward,
 * 12 backward), so bf16 (u = 2^-8) is off by 0.01 in two layers and by 0.03 in twelve. The worst
 * element is compared with the largest one; of many elements both are the same multiple of a
 * typical one. Tolerance is 5e-2 in bf16, 1e-2 in f16; in f32 1e-4, where sums are rounded as
 * well. Second moments, which are made of squares, have twice the tolerance: (g + d)^2 - g^2 is
 * 2 g d. The floor is for gradients that are 0 in exact numbers (a bias of keys without RoPE) and
 * keep the rounding of what cancels.
 *
 * A schedule whose products have 8-bit operands is compared with a reference that rounds the same operands, if a rank
 * rounds whole sequences (training_find_eight_bit_products()); else with the plain one, and the tolerance is that of
 * their roundings.
 *
 * The derivation fails where terms are few: the largest of 8 elements may be much smaller than the
 * terms that it is summed from, and a norm over 8 columns that are nearly equal divides the rounding
 * error by a very small number. How much depends on every number of the model, so it is measured: the
 * reference takes the step again with every result rounded at random to the digits of the coarsest dtype in which the
 * schedule stores results (exec/reference.h), up to REFERENCE_CHECK_ROUNDINGS times, and the second term is
 * REFERENCE_CHECK_MOVES times the most that this moved the tensor (for the norm: the norm of how far all gradients
 * moved). It is measured only where the first term is exceeded, and never allows more than
 * REFERENCE_CHECK_TOLERANCE_MAX of the largest element. A larger difference that rounding may explain is "undecided",
 * since a tolerance so wide would pass any schedule. A verdict "wrong" becomes "undecided" too if REFERENCE_CHECK_MOVES
 * times the move of the norm exceeds REFERENCE_CHECK_TOLERANCE_MAX. If replicas differ, the verdict is always
 * "wrong". */
#ifndef EXEC_REFERENCE_CHECK_H
#define EXEC_REFERENCE_CHECK_H

#include "base/diag.h"
#include "exec/exec.h"
#include "exec/training.h"
#include "models/transformer.h"
#include "schedule/ir/ir.h"

#include <stdbool.h>
#include <stdint.h>

enum reference_check_part {
    REFERENCE_CHECK_GRADIENT,
    REFERENCE_CHECK_PARAMETER,
    REFERENCE_CHECK_MASTER,
    REFERENCE_CHECK_MOMENT1,
    REFERENCE_CHECK_MOMENT2,
    REFERENCE_CHECK_PART_COUNT
};
extern const char *const reference_check_part_names[REFERENCE_CHECK_PART_COUNT];

/* The limits of the differences between results and the reference (see the formula above). */
struct reference_check_rule {
    double tolerance; /* for tensors: as a share of the largest element */
    /* the floor: the least "largest element", as a share of the largest one of all tensors */
    double least_scale_share;
    double loss_tolerance, norm_tolerance; /* relative */
};
/* Returns the rule for a schedule that stores results in dtype (training_coarsest_result_dtype()). */
struct reference_check_rule reference_check_rule_of_dtype(enum dtype dtype);
/* The reference's step is repeated with rounded results at most REFERENCE_CHECK_ROUNDINGS times. An error is explained
 * by rounding if it is at most REFERENCE_CHECK_MOVES times the largest shift that rounding caused, and at most
 * REFERENCE_CHECK_TOLERANCE_MAX of the largest element. */
enum { REFERENCE_CHECK_ROUNDINGS = 8, REFERENCE_CHECK_MOVES = 4 };
#define REFERENCE_CHECK_TOLERANCE_MAX 0.25
/* Returns the tolerance for a part of a tensor: that of the rule, and twice that for second moments. */
double reference_check_tolerance(const struct reference_check_rule *rule,
                                 enum reference_check_part part);

/* The AdamW constants of the checked steps. max_norm is used only in the step with a limit. */
extern const struct exec_adamw reference_check_adamw;

/* The steps that are compared: one without a limit on the norm of the gradients and, if the schedule clips, one with
 * it. */
enum reference_check_step_kind {
    REFERENCE_CHECK_STEP_NOT_CLIPPED,
    REFERENCE_CHECK_STEP_CLIPPED,
    REFERENCE_CHECK_STEP_COUNT
};

/* A difference from the reference, and how far rounding moves the reference. Both have the same unit: for the loss and
 * the norm, the reference's value; for tensors, the largest element (see the rule's floor). */
struct reference_check_error {
    /* infinite: a result was not a number; NAN: there is nothing to compare, since the schedule binds no such tensor */
    double difference;
    /* the most by which rounding moved the reference; 0: not measured */
    double max_shift_by_rounding;
};

struct reference_check_row {
    const char *tensor; /* the name that the ir has */
    struct reference_check_error error[REFERENCE_CHECK_STEP_COUNT][REFERENCE_CHECK_PART_COUNT];
};
/* Returns the larger of the differences that a part has in the two steps. */
double reference_check_max_row_difference(const struct reference_check_row *row,
                                          enum reference_check_part part);

enum reference_check_verdict {
    REFERENCE_CHECK_RIGHT,
    REFERENCE_CHECK_WRONG,
    REFERENCE_CHECK_UNDECIDED, /* rounding may explain all differences, but moves results too far to tell */
    REFERENCE_CHECK_VERDICT_COUNT
};
extern const char *const reference_check_verdict_names[REFERENCE_CHECK_VERDICT_COUNT];

/* A check of one schedule and its results; all-zero is empty. */
struct reference_check {
    bool agrees; /* the verdict is REFERENCE_CHECK_RIGHT */
    enum reference_check_verdict verdict;
    uint8_t dtype; /* enum dtype: the coarsest in which the schedule stores results */
    struct reference_check_rule rule;
    bool clips;              /* the schedule clips gradients, so there was a second step */
    bool has_rounding_error; /* the effect of rounding on the reference was measured */
    double loss[REFERENCE_CHECK_STEP_COUNT], reference_loss;
    double gradient_norm, reference_gradient_norm; /* of all gradients, without a limit */
    struct reference_check_error loss_error[REFERENCE_CHECK_STEP_COUNT], norm_error; /* relative */
    uint64_t differing_replica_elements;
    struct reference_check_row *rows; /* (ir.tensor_count) */
    uint32_t row_count;
    struct exec_result result; /* of the first step */
};

/* Checks one training step with seeded tokens. warmup_steps, measured_steps, model and adamw of `options` are not read:
 * one step is run, with the constants of `model` and reference_check_adamw. Returns STATUS_OK if the schedule and the
 * reference computed the step, and a second one if the schedule clips gradients; check->agrees then says whether they
 * agree. Returns STATUS_NO if the run failed (exec/exec.h), and other statuses if the input or the machine does not
 * allow the run. *check must be empty; release it in any case. */
enum status reference_check_run_step(struct reference_check *check, const struct ir *ir,
                                     const char *name, const struct transformer *model,
                                     uint64_t seed, const struct exec_options *options,
                                     struct diag *diag);

/* Does what reference_check_run_step() does, on the caller's tokens: (ir.global_batch, ir.layout.sequence_tokens), each
 * below the size of the vocabulary. */
enum status reference_check_step_on_tokens(struct reference_check *check, const struct ir *ir,
                                           const char *name, const struct transformer *model,
                                           const int32_t *tokens, uint64_t seed,
                                           const struct exec_options *options, struct diag *diag);
void reference_check_release(struct reference_check *check);

/* Adds a message for each disagreement: of the loss, of replicas, of the norm, and of each part with its worst tensor.
 * Adds one more if the verdict is "undecided". Returns STATUS_NO, or STATUS_OK if everything agrees. */
enum status reference_check_explain(const struct reference_check *check, const char *name,
                                    struct diag *diag);

#endif

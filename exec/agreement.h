/* exec/agreement.h: does a schedule compute what the model computes?
 *
 * One training step of a schedule on a backend, beside the same step of the reference (unsharded,
 * in double, without the schedule): the loss, every gradient and the norm of all of them, every
 * parameter after AdamW, and the masters and moments where the schedule binds them. Weights,
 * moments and tokens are seeded. Nothing is known of the schedule but its bindings and its token
 * layout, so whatever can be bound can be checked.
 *
 * A schedule that clips its gradients takes the step twice. With a limit that always clips, every
 * common factor of the gradients cancels, so the first step has no limit; the second has the limit
 * of agreement_adamw, and shows that the schedule clips by the right norm.
 *
 * A tensor agrees when
 *
 *     max |got - reference| <= tolerance max(max |reference|, floor x largest of all tensors)
 *
 * and replicas of it hold the same bits. In f32 tolerance is 1e-4 and floor 1e-3; second moments,
 * which are made of squares, have twice the tolerance: (g + d)^2 - g^2 is 2 g d.
 * In bf16 and f16 every op rounds what it writes; their tolerances are wider, and so is
 * the floor, since a gradient that is 0 in exact numbers (a bias of keys without RoPE) keeps the
 * rounding of what cancels. docs/running.md has what was measured. */
#ifndef EXEC_AGREEMENT_H
#define EXEC_AGREEMENT_H

#include "base/diag.h"
#include "exec/exec.h"
#include "exec/training.h"
#include "models/transformer.h"
#include "schedule/ir/ir.h"

#include <stdbool.h>
#include <stdint.h>

enum agreement_part {
    AGREEMENT_GRADIENT,
    AGREEMENT_PARAMETER,
    AGREEMENT_MASTER,
    AGREEMENT_MOMENT1,
    AGREEMENT_MOMENT2,
    AGREEMENT_PART_COUNT
};
extern const char *const agreement_part_names[AGREEMENT_PART_COUNT];

struct agreement_rule {
    double tolerance, floor;
    double loss, norm; /* relative */
};
/* Of a schedule that computes in dtype. */
struct agreement_rule agreement_rule(enum dtype dtype);
/* The rule's tolerance of a part. */
double agreement_tolerance(const struct agreement_rule *rule, enum agreement_part part);

/* The AdamW of the steps that are checked; its max_norm is that of the clipped one. */
extern const struct exec_adamw agreement_adamw;

/* The steps that are compared. */
enum agreement_step { AGREEMENT_UNLIMITED, AGREEMENT_CLIPPED, AGREEMENT_STEP_COUNT };

struct agreement_row {
    const char *tensor; /* the ir's */
    /* What stands on the left of the rule over what tolerance is multiplied with on its right, in
     * the step where that is more; NAN: the schedule binds no such thing; infinite: not a number
     * came. */
    double error[AGREEMENT_PART_COUNT];
};

/* What came out of one step, part by part. */
struct agreement_found {
    uint32_t wrong; /* tensors that do not agree */
    uint32_t worst; /* row; IR_NONE: nothing is bound */
    double error;   /* of that row */
};

/* All-zero is empty. */
struct agreement {
    bool agrees;
    struct agreement_rule rule;
    bool clips; /* the schedule does, so there was a second step */
    double loss, reference_loss,
        loss_error; /* of the step that is further off; the last: relative */
    double norm, reference_norm,
        norm_error;            /* of all gradients, without a limit; the last: relative */
    uint64_t replicas_differ;  /* elements */
    struct agreement_row *row; /* (ir.tensor_count) */
    uint32_t row_count;
    struct agreement_found found[AGREEMENT_STEP_COUNT][AGREEMENT_PART_COUNT];
    struct exec_result result; /* of the first step */
};

/* Checks one training step. options: warmup and steps are taken as 0 and 1, model and adamw as those of the
 * model and agreement_adamw. STATUS_OK: both have been computed, and agreement->agrees says how
 * that went; STATUS_NO: the run itself failed (exec/exec.h). *agreement must be empty; release it
 * in either case. */
enum status agreement_check(struct agreement *agreement, const struct ir *ir, const char *name,
                            const struct transformer *model, uint64_t seed,
                            const struct exec_options *options, struct diag *diag);

/* The same with tokens of the caller's: (ir.global_batch, ir.layout.tokens) below the vocabulary. */
enum status agreement_check_tokens(struct agreement *agreement, const struct ir *ir,
                                   const char *name, const struct transformer *model,
                                   const int32_t *tokens, uint64_t seed,
                                   const struct exec_options *options, struct diag *diag);
void agreement_release(struct agreement *agreement);

/* Adds one message per way in which it does not agree, the worst tensor of each part; returns
 * STATUS_NO, or STATUS_OK when it agrees. */
enum status agreement_explain(const struct agreement *agreement, const char *name,
                              struct diag *diag);

#endif

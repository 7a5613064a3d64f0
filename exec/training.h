/* exec/training.h: training steps of a schedule, from seeded weights and given tokens.
 *
 * It joins a schedule, a model and a backend. The starting weights are those of the reference (exec/reference.h),
 * rounded to the schedule's dtype. Buffers are filled and collected through bindings (exec/bindings.h), and every step
 * reads its own batch of tokens. The reference can take the same steps from the same start, unsharded and in double.
 * Without a reference, weights are drawn in the backend's memory. */
#ifndef EXEC_TRAINING_H
#define EXEC_TRAINING_H

#include "base/diag.h"
#include "exec/bindings.h"
#include "exec/exec.h"
#include "exec/reference.h"
#include "models/transformer.h"
#include "schedule/ir/ir.h"

#include <stdbool.h>
#include <stdint.h>

/* Unless options.starts_from_zero_moments is set, training with a reference starts as if it had run before. Its first
 * step has number TRAINING_STEP. First moments are at most TRAINING_MOMENT_SCALE / 2 in size, and second moments 0.25
 * to 1.25 times the square of TRAINING_MOMENT_SCALE. So AdamW does not divide by rounding noise where a gradient is 0
 * (a bias of keys without RoPE), and a check notices a moment in the wrong place. */
#define TRAINING_MOMENT_SCALE 1e-2
enum { TRAINING_STEP = 3 };

/* With options.draws_weights_near_zero, the standard deviation of all weights, those of norms included, about the mean
 * 0. Numbers that are uniform from -0.05 to 0.05 have it. Scores of attention are then nearly 0, and operands draw less
 * power than a model's. */
#define TRAINING_NEAR_ZERO_DEVIATION 0.0289

struct training_options {
    uint64_t seed; /* of the weights */
    /* draws weights that make attention nearly uniform (TRAINING_NEAR_ZERO_DEVIATION); only without a reference */
    bool draws_weights_near_zero;
    bool starts_from_zero_moments; /* start from moments 0 */
    bool makes_reference;          /* make a reference, with whose steps a run can be compared */
    /* keep the tensors after the last step in training.collected; needs makes_reference */
    bool collects_tensors;
};

/* Training of one schedule; all-zero is empty. Borrows ir, name, model and batches. */
struct training {
    const struct ir *ir;
    const char *name; /* of the schedule, for messages */
    struct training_options options;
    struct reference *reference; /* NULL: not made */
    struct bindings bindings;
    struct stored_tensor *stored;     /* of the ir's tensors; NULL: none is stored */
    const double **initial_values[3]; /* parameters and moments, (tensors) */
    /* [BINDING_KIND_COUNT] for each kind of binding an array by tensor: the (rows, cols) elements of each tensor after
     * the last step. NULL: no buffer has a binding of the kind, or options.collects_tensors is not set */
    double **collected[BINDING_KIND_COUNT];
    const int32_t *batches; /* token ids: (steps, ir.global_batch, ir.layout.sequence_tokens) */
    double *losses;         /* (steps) of the last run, warm-up included */
};

/* The relation between the 8-bit products of a schedule and those of the reference, which rounds operands of one whole
 * sequence. NONE: the schedule has no 8-bit products. SAME: it rounds the same operands. DIFFERENT: it rounds operands
 * of a part of a sequence or of several sequences, so that other numbers share a scale. */
enum training_eight_bit_vs_reference {
    TRAINING_EIGHT_BIT_NO_PRODUCTS,
    TRAINING_EIGHT_BIT_SAME_OPERANDS,
    TRAINING_EIGHT_BIT_OTHER_OPERANDS
};
/* Sets *products to the dtypes, scales and layers of the schedule's 8-bit products, and returns how they compare with
 * those of the reference. */
enum training_eight_bit_vs_reference
training_find_eight_bit_products(const struct ir *ir,
                                 struct reference_eight_bit_products *products);

/* Checks the schedule's bindings. With options.makes_reference it also makes a reference of the model, and checks that
 * the schedule has the reference's tensors. The message of a failure names what does not fit. model may be NULL without
 * options.makes_reference. Release *training also after a failure. */
enum status training_init(struct training *training, const struct ir *ir, const char *name,
                          const struct transformer *model, const struct training_options *options,
                          struct diag *diag);
void training_release(struct training *training);

/* Returns the reference's tensor of that name. A schedule's tensor may be a block of its rows: then the name ends with
 * ':' and the block's name. NULL: there is no such tensor. */
struct reference_tensor *training_find_tensor(const struct reference *reference, const char *name);

/* Runs warmup_steps + measured_steps steps (exec/exec.h; measured_steps 0 counts as 1) from the seeded start. Step i
 * reads batch i of training->batches, and its loss is kept. With runs_back_to_back every step reads batch 0, and only
 * the last loss is kept. Without a reference, weights are drawn in the backend's memory from the seed of struct
 * training_options: norms are 1, biases 0, and matrices normal with deviation cols^-0.5, unless draws_weights_near_zero
 * is set. */
enum status training_run_schedule(struct training *training, const struct exec_options *options,
                                  struct exec_result *result, struct diag *diag);

/* A function `draw` of a struct exec_io whose `user` is a struct training. Without a reference it draws weights, leaves
 * moments 0, and returns true; it returns false for other buffers, for stored weights, and always with a reference. */
bool training_draw_buffer(void *user, const struct exec_buffer *buffer, exec_draw_function *block,
                          void *context);

/* Runs `steps` steps of the reference from the same start as training_run_schedule(), each with
 * training_update_reference(), and writes their losses to loss[steps]. The reference's tensors keep the result. */
enum status training_run_reference(struct training *training, const struct exec_adamw *adamw,
                                   uint32_t steps, double *loss, struct diag *diag);

/* Sets the parameters and moments of the reference back to the start, and updates them by AdamW with other constants
 * (training_update_reference()). It uses the gradients that training_run_reference() left after a single step, which
 * must not have been clipped. */
void training_repeat_reference_update(struct training *training, const struct exec_adamw *adamw);

/* Returns the dtype with the fewest digits among those in which ops of the schedule store results. */
enum dtype training_coarsest_result_dtype(const struct ir *ir);

/* Runs a single step of `reference`, another one of the same model, from the same start. Its results are rounded at
 * random to the digits of training_coarsest_result_dtype() (struct reference_rounding). seed: that of the rounding. */
enum status training_run_rounded_reference(const struct training *training,
                                           struct reference *reference,
                                           const struct exec_adamw *adamw, uint64_t seed,
                                           double *loss, struct diag *diag);

/* True if the schedule clips gradients by their norm. */
bool training_clips_gradients(const struct ir *ir);

/* Updates the reference from its gradients as the schedule does: clips them, if the schedule clips; applies AdamW; and
 * rounds parameters and moments to bf16, if the schedule's moments are bf16. Afterwards the gradients are what the
 * schedule leaves in its buffers: clipped if it has CLIP ops, else as they were before. */
void training_update_reference(struct reference *reference, const struct ir *ir,
                               const struct exec_adamw *adamw, int64_t step);

/* Returns the number of rows of the embedding table that stand for tokens, without rows for padding if the schedule's
 * loss states the number of tokens; 0 if no op looks up tokens. */
int64_t training_vocab_rows(const struct ir *ir);

/* True if any buffer is bound to something of that kind. */
bool training_has_binding(const struct ir *ir, enum binding_kind kind);

/* Fills tokens[0..count) with random tokens below vocab, which follow from the seed. */
void training_random_tokens(int32_t *tokens, size_t count, int64_t vocab, uint64_t seed);

/* Returns the bytes of heap memory that the tensors of the reference and the collected results take, besides what the
 * run itself takes; 0 if model is NULL. A caller checks with it whether the machine has enough memory. */
double training_heap_bytes(const struct transformer *model, const struct training_options *options);

#endif

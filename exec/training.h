/* exec/training.h: training steps of a schedule, from seeded weights and given tokens.
 *
 * It joins a schedule, a model and a backend: starting weights are the reference's
 * (exec/reference.h) rounded to the schedule's dtype, buffers are filled and collected through
 * bindings (exec/bindings.h), and every step takes its own batch of tokens. The same steps can be
 * taken by the reference, unsharded and in double, from the same start. */
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

/* Unless options.zero_moments is set, training with a reference starts as if it had run before: its first step has
 * number TRAINING_STEP, first moments are about TRAINING_MOMENT, and second moments about its square. So AdamW does not
 * divide by rounding noise where a gradient is 0 (a bias of keys without RoPE), and a moment in the wrong place is
 * noticed. */
#define TRAINING_MOMENT 1e-2
enum { TRAINING_STEP = 3 };

/* The standard deviation of all weights about 0, norms' too, with options.flat_weights: that of numbers uniform
 * within 0.05. Scores of attention are then nearly 0, and operands draw less power than a model's. */
#define TRAINING_FLAT 0.0289

struct training_options {
    uint64_t seed; /* of the weights */
    /* weights that make attention uniform (TRAINING_FLAT); only without a reference */
    bool flat_weights;
    bool zero_moments;   /* start from moments 0 */
    bool with_reference; /* make a reference in double, with whose steps a run can be compared */
    /* keep the tensors after the last step, in `collected`; needs with_reference */
    bool collects_tensors;
};

/* All-zero is empty. Borrows ir, name, model and batches. */
struct training {
    const struct ir *ir;
    const char *name; /* of the schedule, for messages */
    struct training_options options;
    struct reference *reference; /* NULL: without */
    struct bindings bindings;
    struct stored_tensor *stored;     /* of the ir's tensors; NULL: none is stored */
    const double **initial_values[3]; /* parameters and moments, (tensors) */
    /* the tensors after the last step: for each kind of binding, (tensors) pointers to (rows, cols) elements; NULL
     * where nothing is bound */
    double **collected[BINDING_KIND_COUNT];
    const int32_t *batches; /* token ids: (steps, ir.global_batch, ir.layout.sequence_tokens) */
    double *losses;         /* (steps) of the last run, warm-up included */
};

/* The 8-bit products of a schedule, compared with those of the reference, whose operands are tensors of one whole
 * sequence. NONE: the schedule does not multiply in 8 bits. SAME: it rounds the same operands as the reference.
 * DIFFERENT: its operands are of a part of a sequence or of several sequences, so that other numbers share a scale. */
enum training_products {
    TRAINING_PRODUCTS_NONE,
    TRAINING_PRODUCTS_SAME,
    TRAINING_PRODUCTS_DIFFERENT
};
/* Sets *products to the dtypes, scales and layers of the schedule's 8-bit products, and returns how they compare with
 * those of the reference. */
enum training_products training_find_products(const struct ir *ir,
                                              struct reference_eight_bit_products *products);

/* Checks the schedule's bindings. With options.with_reference it also makes a reference of the model and checks that
 * its tensors are those of the schedule. The message of a failure names what does not fit. model may be NULL without
 * options.with_reference. */
enum status training_init(struct training *training, const struct ir *ir, const char *name,
                          const struct transformer *model, const struct training_options *options,
                          struct diag *diag);
void training_release(struct training *training);

/* Returns the reference's tensor with the name of a schedule's tensor; if that is a block of rows, the tensor that
 * contains it; NULL if there is none. */
struct reference_tensor *training_find_tensor(const struct reference *reference, const char *name);

/* Runs warmup_steps + measured_steps steps (exec/exec.h; measured_steps 0 counts as 1) from the seeded start. Step i
 * reads batch i of training->batches, and its loss is kept. With back_to_back every step reads batch 0, and only the
 * last loss is kept. Without a reference, training->options.seed draws the weights in the backend's memory as models
 * begin with: norms 1, biases 0, matrices normal with deviation cols^-0.5. */
enum status training_run(struct training *training, const struct exec_options *options,
                         struct exec_result *result, struct diag *diag);

/* A function for a struct exec_io whose `user` is a struct training: without a reference it draws weights and leaves
 * moments 0. */
bool training_draw_buffer(void *user, const struct exec_buffer *buffer, exec_draw_function *block,
                          void *context);

/* Runs `steps` steps of the reference from the same start, each updated by training_update_reference(), and writes
 * their losses to loss[steps]. The reference's tensors keep the result. */
enum status training_run_reference(struct training *training, const struct exec_adamw *adamw,
                                   uint32_t steps, double *loss, struct diag *diag);

/* Repeats the update of a single step (training_update_reference()) from the same start with other constants. It reads
 * the gradients that training_run_reference() left, which must not have been clipped. */
void training_reference_update(struct training *training, const struct exec_adamw *adamw);

/* Returns the dtype with the fewest digits in which ops of the schedule store results. */
enum dtype training_storage_dtype(const struct ir *ir);

/* Runs a single step of another reference of the same model from the same start, with its results rounded to
 * training_storage_dtype() (exec/reference.h). seed: draws the rounding. */
enum status training_run_rounded_reference(const struct training *training,
                                           struct reference *reference,
                                           const struct exec_adamw *adamw, uint64_t seed,
                                           double *loss, struct diag *diag);

/* True if the schedule clips gradients by their norm. */
bool training_clips_gradients(const struct ir *ir);

/* Updates the reference from its gradients as the schedule does: clips them, if the schedule clips; applies AdamW; and
 * rounds parameters and moments to bf16, if the schedule's moments are bf16. Afterwards the gradients are as the
 * schedule leaves them: scaled, if it has CLIP ops. */
void training_update_reference(struct reference *reference, const struct ir *ir,
                               const struct exec_adamw *adamw, int64_t step);

/* Returns the number of rows of the embedding table in which the schedule looks up tokens; 0 if there is no look-up. */
int64_t training_vocab_rows(const struct ir *ir);

/* True if any buffer is bound to that kind. */
bool training_has_binding(const struct ir *ir, enum binding_kind kind);

/* Fills tokens[0..count) with seeded ones below vocab. */
void training_random_tokens(int32_t *tokens, size_t count, int64_t vocab, uint64_t seed);

/* Returns the bytes of heap memory that the reference's tensors and the collected results take besides the run, from
 * which a caller sees whether the machine has enough memory. */
double training_heap_bytes(const struct transformer *model, const struct training_options *options);

#endif

/* exec/reference.h: the plain, unsharded transformer with which every result is compared.
 *
 * It computes one training step in double precision, straight from the definition of the model: forward, mean
 * cross-entropy, full backward, AdamW. It knows no schedule, no chunk and no stage, so agreement with an executor means
 * something. It is checked by finite differences (tests/exec/test_reference.c) and against PyTorch and Hugging Face's
 * models (test_reference_recorded.c). One thread does the work, and nothing is random unless a caller sets `rounding`,
 * which follows from a seed: same input, same bits.
 *
 * Every member of struct transformer has the meaning that models/transformer.h gives it. Beyond that:
 *   norms      eps is added to the variance (LayerNorm) or mean square (RMSNorm) under the root
 *   RoPE       turns columns j and j + head_dim/2 of a head by position rope_theta^(-2j/head_dim);
 *              with latent attention, only the last rope_dim columns, with rope_dim for head_dim;
 *              positions count from 0 in every sequence
 *   attention  causal, scale 1/sqrt(head_dim); query head i reads K/V head i / (heads / kv_heads)
 *   loss       sum over counted tokens / their number in the whole batch
 * Attention takes time O(seq_len^2) and memory O(seq_len). A batch needs the memory of one of its sequences: the input
 * of every layer, and all values of one layer, which are computed again in the backward. */
#ifndef EXEC_REFERENCE_H
#define EXEC_REFERENCE_H

#include "base/diag.h"
#include "models/transformer.h"
#include "schedule/ir/documents.h"
#include "schedule/ir/layout.h"
#include "schedule/ir/routing.h"

#include <stddef.h>
#include <stdint.h>

/* A parameter, the gradient of the last batch, and what AdamW keeps: each is (rows, cols), row after row. The reference
 * owns the memory; callers may read and write the elements. */
struct reference_tensor {
    const char *name;   /* "embedding.weight", "layers.3.wqkv.weight", "norm.weight" */
    int64_t rows, cols; /* a vector has cols = 1 */
    size_t count;       /* rows * cols */
    double *param, *grad;
    double *m, *v; /* AdamW's running means of the gradient and its square; 0 at first */
};

/* Emulates storage with fewer digits than double has: every result that is stored between two pieces of work moves by a
 * random amount of up to half the distance between storable numbers, as rounding to nearest could move it. The amounts
 * are uniform and drawn from the seed. significand_bits 0: nothing moves. */
struct reference_rounding {
    int significand_bits; /* binary digits of the significand */
    int min_exponent;     /* numbers below 2^min_exponent are spaced as those just above it */
    uint64_t seed;
};

/* The rounding of operands to 8 bits in the linear layers of transformer layers first_layer to layer_end - 1: the
 * dtypes of the operands, and which numbers share a scale (schedule/choices/products.def). Each operand is that of one
 * whole sequence. A product has its operand rounded along the axis over which it sums. layer_end 0: no layer multiplies
 * in 8 bits. */
struct reference_eight_bit_products {
    uint8_t input_dtype, weight_dtype, gradient_dtype; /* enum dtype */
    uint8_t scaling, weight_scaling;                   /* enum scaling */
    int64_t first_layer, layer_end;
};

struct reference {
    struct transformer transformer;
    /* callers may set the next three members; at first all are 0 */
    struct reference_eight_bit_products eight_bit_products;
    struct reference_rounding rounding;
    /* the results of the experts' activation are multiplied by the router's weights of the copies; false: the outputs
     * of experts are multiplied. It changes which numbers 8-bit products round. With transformer.router_on_input it is
     * not read. */
    bool router_weights_at_activation;
    size_t tensor_count; /* tensors, in the order of transformer_list_*_tensors() */
    struct reference_tensor *tensors;
    struct reference_memory *memory;
};

/* Makes a reference of a model. t must have passed transformer_check(). It is copied without its texts (name, source,
 * note), which are not used. Parameters, gradients and moments are 0. */
struct reference *reference_new(const struct transformer *t);
void reference_free(struct reference *reference); /* NULL is harmless */

/* Returns a tensor by name; NULL if the model lacks it, as it lacks "head.weight" if the head is tied to the
 * embedding. */
struct reference_tensor *reference_find_tensor(const struct reference *reference, const char *name);

/* reference_is_bias() tells by a tensor's name whether it is a bias, and reference_is_norm() whether it is the weights
 * of a norm. */
bool reference_is_bias(const char *name);
bool reference_is_norm(const char *name);

/* Fills the parameters from a seed, and sets the moments to 0. Every value is exact in fp32, so executors in fp32 start
 * from the same values. A tensor's values do not depend on other tensors.
 *
 * Element i of a tensor is (float)(centre + width (2 u - 1)), where u is (output number i of splitmix64 from the state
 * seed + fnv1a64(name)) >> 11, times 2^-53. Weights of norms have centre 1, all others 0. Matrices have width sqrt(3 /
 * cols), for variance 1 / cols. Norms and biases have width 0.1, so that leaving one out shows in the results. */
void reference_init_weights(struct reference *reference, uint64_t seed);

/* Which tokens a rank routes to experts together; even routing depends on it (models/work.h). They are those of its
 * tokens, by the layout, that belong to micro_batch sequences or, with routes_by_subsequence, to one subsequence of
 * each. Their rows are cut into `routed_piece_count` pieces, each of which is routed by itself. */
struct reference_routing {
    const struct token_layout *layout;
    int64_t micro_batch;
    uint32_t routed_piece_count;
    bool routes_by_subsequence;
    /* how copies of tokens are dealt to experts; NULL: evenly */
    const struct routing *uneven_expert_routing;
};

struct reference_batch {
    const int32_t *tokens; /* (sequences, seq_len) */
    /* (sequences, seq_len) the token to predict at each position; -1: the position does not count. NULL: the label of a
     * position is the next token, and the last position of a sequence does not count */
    const int32_t *labels;
    int64_t sequences, seq_len;
    /* the documents of packed sequences: a token sees only tokens of its own document; NULL: each sequence is one
     * document */
    const struct documents *documents;
    /* how tokens are grouped for a model with experts; NULL: every sequence is routed by itself, in one piece */
    const struct reference_routing *routing;
};

/* Computes *loss of the batch; gradients stay as they are. Returns STATUS_BAD_INPUT, after a message, if a token or
 * label is outside the vocabulary, if a sequence has more tokens than learned positions, or if no label counts. */
enum status reference_loss(struct reference *reference, const struct reference_batch *batch,
                           double *loss, struct diag *diag);

/* Computes *loss, and sets `grad` of every tensor to its gradient, or to 0 if the tensor is not trained. It fails as
 * reference_loss() does. */
enum status reference_gradients(struct reference *reference, const struct reference_batch *batch,
                                double *loss, struct diag *diag);

/* Returns the Euclidean norm of all gradients together. */
double reference_gradient_norm(const struct reference *reference);

/* Returns the factor by which torch.nn.utils.clip_grad_norm_ multiplies gradients: max_norm / (norm + 1e-6), at most 1.
 * If max_norm is 0, it is 1. reference_scale_gradients() multiplies all gradients by a factor. */
double reference_clip_factor(const struct reference *reference, double max_norm);
void reference_scale_gradients(struct reference *reference, double factor);

struct reference_adamw {
    double lr, beta1, beta2, eps, weight_decay;
};

/* Updates every tensor that is trained (transformer_is_tensor_trained()) by AdamW (Loshchilov and Hutter 2019,
 * algorithm 2) as torch.optim.AdamW has it:
 *   p -= lr weight_decay p
 *   m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2
 *   p -= lr / (1 - beta1^step) m / (sqrt(v / (1 - beta2^step)) + eps)
 * step counts from 1. */
void reference_adamw_step(struct reference *reference, const struct reference_adamw *adamw,
                          int64_t step);

#endif

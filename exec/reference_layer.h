/* exec/reference_layer.h: the parts of a layer of the reference, forward and backward: experts
 * (exec/reference_experts.c), the projections to q, k and v (exec/reference_queries.c), and the arrays that
 * both use (exec/reference_storage.c). exec/reference_pass.c makes layers of them.
 *
 * s is the number of tokens of a sequence. Arrays come from the arena that is passed. Private to the files of
 * exec/reference*.c. */
#ifndef EXEC_REFERENCE_LAYER_H
#define EXEC_REFERENCE_LAYER_H

#include "exec/reference.h"
#include "exec/reference_math.h"

/* The widths of a layer, in columns: of its input (hidden), of q, k and v, of attention's output (o), and of the
 * feed-forward part; and the shape of its attention. */
struct reference_layer_widths {
    size_t hidden, q, k, v, o, ffn;
    bool applies_rope, norms_heads_of_q_and_k; /* the layer applies RoPE, or qk_norm, to q and k */
    struct reference_attention_shape attention_shape;
};

/* The parameters of a layer and their gradients. The pointers of a parameter that the model lacks are NULL. */
struct reference_layer_parameters {
    struct reference_weight_and_bias norm1, qkv, q_norm, k_norm, o, norm1_after, norm2, up, down,
        norm2_after;
    struct reference_weight_and_bias q_down, q_down_norm, q_up, q_direct, kv_down, kv_down_norm,
        kv_up;
    const struct reference_tensor *sinks; /* the sinks of attention; NULL: the model has none */
    struct reference_weight_and_bias router, experts_up, experts_down, shared_up, shared_down;
};

/* Values of a layer's experts that the backward needs. A token has `copies` copies, one for each of its experts. */
struct reference_saved_expert_values {
    double *logits, *weights;      /* the router's: (s, experts), (s, copies) */
    double *input, *output;        /* of each copy's expert: (s, copies, hidden) */
    double *up_output, *activated; /* (s, copies, 2 expert_ffn), (s, copies, expert_ffn) */
    double *shared_up_output, *shared_activated; /* (s, 2 shared_ffn), (s, shared_ffn) */
};

/* Values of a layer's forward that its backward needs. */
struct reference_saved_activations {
    double *input, *normed1;        /* (s, hidden): the layer's input and its norm */
    double *q_plain, *k_plain;      /* before qk_norm, (s, heads, dim), (s, kv_heads, dim) */
    double *q, *k, *v;              /* as attention reads them */
    double *attention_output, *lse; /* (s, heads, vdim), (s, heads) */
    /* for latent attention: the narrow vectors and their norms, (s, q_latent) and (s, kv_latent) */
    double *q_latent, *q_normed, *kv_latent, *kv_normed;
    /* (s, hidden) the result of the attention branch and of the feed-forward branch, before the norm with which the
     * branch of some models ends */
    double *attention_branch, *ffn_branch;
    double *after_attention, *normed2;      /* (s, hidden): after attention's residual */
    double *up_output, *activated, *output; /* (s, ffn or 2 ffn), (s, ffn), (s, hidden) */
    struct reference_saved_expert_values experts;
};

/* How far results move at random when they are stored, as rounding could move them, and the state of the random numbers
 * that this uses. */
struct reference_rounding_state {
    struct reference_rounding rounding;
    uint64_t random_state;
};

/* The properties of a sequence that a layer needs. */
struct reference_pass_sequence {
    size_t tokens;
    /* the first token of each token's document (struct reference_attention_shape) */
    const int64_t *document_begin;
    /* [layers] the experts of each token, (tokens, experts_per_token); NULL: the layer has none */
    const int32_t *const *experts_of_layer;
    bool router_weights_at_activation; /* router_weights_at_activation of struct reference */
};

/* Returns an array of zeros, (rows, cols). */
double *reference_zeros(struct arena *arena, size_t rows, size_t cols);

/* Returns a + b. */
double *reference_sum_of_two_arrays(struct arena *arena, const double *a, const double *b,
                                    size_t count);

/* Moves each element of x other than 0 by a random amount, at most as far as rounding to fewer digits would (struct
 * reference_rounding), and returns x. Moves none if significand_bits is 0. */
double *reference_perturb_like_rounding(struct reference_rounding_state *storage, double *x,
                                        size_t count);

/* Returns the output of the experts for x, (s, hidden), and fills *v with the values that the backward needs. expert:
 * (s, experts_per_token), the expert of each copy of a token; -1 - the expert if it drops the copy. */
double *reference_experts_forward(struct arena *arena, struct reference_rounding_state *to,
                                  const struct transformer *t,
                                  const struct reference_layer_parameters *p,
                                  struct reference_saved_expert_values *v, const double *x,
                                  const struct reference_pass_sequence *sequence,
                                  const int32_t *expert);

/* Returns the gradient of x from dy, the gradient of the output, and adds the gradients of the parameters. */
double *reference_experts_backward(struct arena *arena, struct reference_rounding_state *to,
                                   const struct transformer *t,
                                   const struct reference_layer_parameters *p,
                                   const struct reference_saved_expert_values *v, const double *x,
                                   const double *dy, const struct reference_pass_sequence *sequence,
                                   const int32_t *expert);

/* Sets q, k and v of *l from l->normed1, by one projection and, where the layer has them, qk_norm and RoPE. */
void reference_projected_qkv_forward(struct arena *arena, struct reference_rounding_state *to,
                                     const struct transformer *t,
                                     const struct reference_layer_parameters *p,
                                     const struct reference_layer_widths *n,
                                     struct reference_saved_activations *l, size_t s);

/* Adds to dx, and to the parameters' gradients, the gradients that follow from dq, dk and dv. dq and dk are
 * overwritten. */
void reference_projected_qkv_backward(struct arena *arena, struct reference_rounding_state *to,
                                      const struct transformer *t,
                                      const struct reference_layer_parameters *p,
                                      const struct reference_layer_widths *n,
                                      const struct reference_saved_activations *l, double *dx,
                                      double *dq, double *dk, const double *dv, size_t s);

/* Sets q, k and v of *l by latent attention (DeepSeek-V2, arXiv 2405.04434, equations 9 to 19 of section 2.1): q from a
 * narrow normed vector, or from l->normed1 itself; k and v from another narrow vector, and from rotated key columns
 * that all heads share. */
void reference_latent_qkv_forward(struct arena *arena, struct reference_rounding_state *to,
                                  const struct transformer *t,
                                  const struct reference_layer_parameters *p,
                                  struct reference_saved_activations *l, size_t s);

/* Adds to dx, and to the parameters' gradients, the gradients that follow from dq, dk and dv. dq is overwritten. */
void reference_latent_qkv_backward(struct arena *arena, struct reference_rounding_state *to,
                                   const struct transformer *t,
                                   const struct reference_layer_parameters *p,
                                   const struct reference_saved_activations *l, double *dx,
                                   double *dq, const double *dk, const double *dv, size_t s);

#endif

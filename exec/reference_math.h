/* exec/reference_math.h: the layers of a transformer, each forward and backward, in double.
 *
 * Private to the files of exec/reference*.c. Matrices are row-major. A forward returns arrays in the arena that it is
 * given; a backward adds to the gradients that it is given, so the caller zeroes them. A gradient (of the loss) is
 * named d plus the array's name. */
#ifndef EXEC_REFERENCE_MATH_H
#define EXEC_REFERENCE_MATH_H

#include "base/arena.h"
#include "exec/reference.h"
#include "models/scaling.h"
#include "models/transformer.h"

#include <stddef.h>

/* An adapter adds b a x to the outputs first .. first + outputs - 1 of a linear layer; a is (rank, inputs) and b
 * (outputs, rank). */
struct reference_adapter {
    const double *a, *b;
    double *da, *db;
    size_t rank, first, outputs;
};

enum { REFERENCE_ADAPTERS = 3 }; /* the most that a layer's product has */

/* The parameters of a linear layer or a norm, and their gradients. bias and dbias are NULL if there is no bias. */
struct reference_weight_and_bias {
    const double *weight, *bias;
    double *dweight, *dbias;
    size_t outputs, inputs; /* the weight is (outputs, inputs); a norm's is (outputs) */
    /* how the operands of a linear layer are rounded; NULL: they are not */
    const struct reference_eight_bit_products *eight_bit_products;
    /* the adapters that the layer has, followed by elements whose `a` is NULL */
    struct reference_adapter adapter[REFERENCE_ADAPTERS];
};

/* Returns, on the heap, the numbers that an 8-bit copy of x, (rows, cols), stands for. turned: the copy is made of the
 * transpose of x, whose blocks share other scales; the result has the shape of x in either case. */
double *reference_round_to_narrow(const double *x, size_t rows, size_t cols, enum dtype dtype,
                                  enum scaling scaling, bool turned);

/* reference_linear() returns y = x W^T + b, plus what adapters add, where x is (rows, inputs) and y (rows, outputs).
 * reference_linear_backward() adds the gradients of x and of the parameters. */
double *reference_linear(struct arena *arena, const struct reference_weight_and_bias *p,
                         const double *x, size_t rows);
void reference_linear_backward(const struct reference_weight_and_bias *p, double *dx,
                               const double *dy, const double *x, size_t rows);

/* reference_norm() returns y = (x - mean) / sqrt(variance + eps) * weight + bias for each row of x, (rows, outputs). An
 * RMSNorm has 0 in place of the mean. If weight and dweight are NULL, the weight is 1. reference_norm_backward() adds
 * the gradients of x and of the parameters. */
double *reference_norm(struct arena *arena, const struct reference_weight_and_bias *p,
                       enum norm norm, double eps, const double *x, size_t rows);
void reference_norm_backward(const struct reference_weight_and_bias *p, enum norm norm, double eps,
                             double *dx, const double *dy, const double *x, size_t rows);

/* Applies RoPE with base `theta` to the last `rotated` columns of every head of x, (rows, heads, dim), in place. Row i
 * has position i. sign: 1, or -1 for the inverse rotation, which turns a gradient back. */
void reference_rope(double *x, double theta, double sign, size_t rows, size_t heads, size_t dim,
                    size_t rotated);

/* The shape of an attention: its heads, and which keys a query sees among those up to its own. */
struct reference_attention_shape {
    size_t rows, heads, kv_heads, dim;
    /* block-sparse attention, as in struct transformer (attention_chunk, attention_kept); chunk_tokens 0: dense */
    size_t chunk_tokens, kept_tokens;
    /* (rows) the first token of each row's document; a row sees no token before it. NULL: 0 for all rows */
    const int64_t *document_begin;
    size_t window; /* the most keys that a query sees, its own included; 0: all up to its own */
    size_t vdim;   /* columns of a head of v and o; 0: dim */
    /* (heads) the score of each head's sink, which belongs to no key, and its gradient; NULL: there are no sinks */
    const double *sinks;
    double *d_sinks;
    /* window is the length of chunks into which the sequence is cut, and a query sees only keys of its own chunk */
    bool window_is_chunk;
};

/* reference_attention() computes causal attention of one sequence and returns o, (rows, heads, vdim). q is (rows,
 * heads, dim), k (rows, kv_heads, dim) and v (rows, kv_heads, vdim). *lse, (rows, heads), becomes the natural logarithm
 * of the sum of the exponentials of the scores, sinks included. reference_attention_backward() adds the gradients of q,
 * k, v and sinks. */
double *reference_attention(struct arena *arena, const struct reference_attention_shape *shape,
                            const double *q, const double *k, const double *v, double **lse);
void reference_attention_backward(const struct reference_attention_shape *shape, double *dq,
                                  double *dk, double *dv, const double *dout, const double *q,
                                  const double *k, const double *v, const double *o,
                                  const double *lse);

/* reference_activation() returns y, (rows, cols). x is (rows, 2 cols), gate and then up, if the activation has a gate;
 * else it is (rows, cols). reference_activation_backward() adds the gradient of x. */
double *reference_activation(struct arena *arena, enum activation activation, const double *x,
                             size_t rows, size_t cols);
void reference_activation_backward(enum activation activation, double *dx, const double *dy,
                                   const double *x, size_t rows, size_t cols);

/* Returns the sum over rows of -log softmax(logits)[label], without rows of label -1. Overwrites the logits, (rows,
 * vocab), with the gradient of `scale` times that sum, which is 0 in rows of label -1. */
double reference_cross_entropy(double *logits, const int32_t *labels, double scale, size_t rows,
                               size_t vocab);

#endif

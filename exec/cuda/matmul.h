/* exec/cuda/matmul.h: matrix products with cuBLASLt, planned before the step.
 *
 * cuBLASLt's matrices are column-major and ours row-major: our y (m, n) is its (n, m). So it gets our b as its A and
 * our a as its B, and no matrix is transposed. Its biases and epilogues, which are defined for columns, apply to our
 * rows. Products accumulate in fp32, also where the library splits them; fp32 operands are multiplied in fp32, not in
 * TF32. A plan holds for given sizes, forms, types and alignments; ops in which these are equal share a plan. */
#ifndef EXEC_CUDA_MATMUL_H
#define EXEC_CUDA_MATMUL_H

#include "base/diag.h"
#include "exec/cuda/library.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes of a stream's workspace for the library, as many as NVIDIA recommends for Hopper. */
enum { PRODUCT_WORKSPACE = 32 << 20 };

/* The computation that one call of the library does together with a product (exec/cuda/epilogues.h). `beside` is its
 * second result. */
enum product_epilogue {
    PRODUCT_NO_EPILOGUE,
    PRODUCT_GELU, /* y is the product's GELU, in the tanh form; the product itself goes to `beside` */
    PRODUCT_COLUMN_SUM, /* for form tn: the sums over the rows of a, (m), go to `beside` */
    PRODUCT_EPILOGUE_COUNT
};

/* The shape of a product y = alpha op(a) op(b) [+ bias] [+ y], where op(a) is (m, k) and op(b) (k, n). Strides are
 * elements from one row to the next. */
struct product_shape {
    int64_t m, n, k;
    int64_t a_stride, b_stride, y_stride;
    uint8_t form;                                     /* enum matmul_form */
    uint8_t a_type, y_type;                           /* enum dtype */
    uint8_t accumulates, has_bias;                    /* true or false; a bias has y's type */
    uint8_t a_align_log2, b_align_log2, y_align_log2; /* log2 of bytes, at most 8 */
    uint8_t has_scales; /* a and b are of 8-bit types and have scales (product_set_scales()) */
    uint8_t b_type;     /* enum dtype, if has_scales; else not read: b has a's type */
    uint8_t epilogue;   /* enum product_epilogue */
    uint8_t scaling;    /* enum scaling, if has_scales: one scale, or blocks of 128 */
    uint8_t unused[4];  /* 0, since shapes are compared byte by byte */
};

struct product; /* a plan */
struct products;

struct products *products_new(const struct cublaslt *cublaslt, struct diag *diag);
void products_free(struct products *products);

/* Returns the plan of a shape; NULL, after a message unless diag is NULL, if the library has no algorithm for it. Only
 * one thread may call it at a time. */
const struct product *products_plan(struct products *products, const struct product_shape *shape,
                                    struct diag *diag);

/* Returns why the library cannot multiply factors with a scale for each block of 128, in words that follow "for which";
 * NULL: it can. */
const char *products_why_no_block_scales(const struct products *products);

/* Sets the addresses of the fp32 scales of a and b, one each or, for blocks, in the order of cuda_lay_out_scales(), for
 * the next runs of a plan with scales. Until the calling thread has called product_run(), no other thread may set the
 * plan's scales. Returns a cublasStatus_t. */
int product_set_scales(const struct products *products, const struct product *product,
                       const void *a, const void *b);

/* Enqueues the product. c: the matrix that is added if the product accumulates, usually y. beside: the address of an
 * epilogue's second result, a multiple of 16, in y's type; for GELU it has y's shape and row stride. Several threads
 * may call this; but for a plan with a bias, scales or an epilogue only one at a time may (ranks launch with a lock
 * held). Returns a cublasStatus_t. */
int product_run(const struct products *products, const struct product *product, float alpha,
                const void *a, const void *b, const void *bias, const void *c, void *y,
                void *beside, void *workspace, cudaStream_t stream);

/* Returns log2 of the largest power of two, at most 256, that divides an address. */
uint8_t product_address_alignment_log2(const void *address);
const char *product_error_text(const struct products *products, int status);

#endif

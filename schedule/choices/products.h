/* schedule/choices/products.h: the recipes of 8- and 4-bit products (--products), of which
 * schedule/choices/products.def has the table. */
#ifndef SCHEDULE_CHOICES_PRODUCTS_H
#define SCHEDULE_CHOICES_PRODUCTS_H

#include "models/work.h"

#include <stdbool.h>
#include <stdint.h>

struct choices;

enum products_choice {
#define PRODUCTS(symbol, name, inputs, weights, gradients, scaling, of_weights, amax)              \
    PRODUCTS_##symbol,
#include "schedule/choices/products.def"
#undef PRODUCTS
    PRODUCTS_COUNT
};
extern const char *const products_names[PRODUCTS_COUNT];

struct products_recipe {
    uint8_t input_dtype, weight_dtype, gradient_dtype; /* enum dtype, for each kind of operand */
    /* enum scaling: `scaling` of inputs and of gradients, weight_scaling of weights */
    uint8_t scaling, weight_scaling;
    bool has_amax_pass; /* a pass finds the largest element before numbers are rounded */
};

/* Returns the recipe of the choices. With products in bf16 its scalings are SCALING_NONE. */
const struct products_recipe *products_recipe(const struct choices *choices);

/* Returns whether the linear layers of a transformer layer multiply in 8 or 4 bits. With --bf16-layers N, those of the
 * first N and the last N layers do not. */
bool products_layer_is_narrow(const struct choices *choices, int64_t layer);

/* Returns whether sharded weights are gathered as quantised copies. They are with --primary-weights quantised, for
 * recipes whose weights have a scale of the whole tensor (fp8-tensor, fp8-delayed, nvfp4). */
bool products_gather_quantised(const struct choices *choices);

/* Returns whether tensors that are quantised also have a transposed copy, in as many bits. Call it only with products
 * in 8 or 4 bits. Scales of rows and blocks lie along the axis that a product sums over, so a product over the other
 * axis needs other scales. Compute capabilities 8.9 and 9.0 multiply 8-bit operands only if that axis is innermost in
 * both (cuBLAS documentation, cublasLtMatmul(), "FP8 kernels"). */
bool products_need_transposed_copies(const struct choices *choices);

/* Returns whether the core of attention of a layer multiplies in 8 bits (--attention-products). */
bool products_core_is_narrow(const struct choices *choices, int64_t layer);

/* Returns the attention kernels of the layers that multiply in 8 or 4 bits: kernels that multiply in 8 bits with
 * --attention-products fp8, else those of all layers. */
enum attention_impl products_core_impl(const struct choices *choices);

#endif

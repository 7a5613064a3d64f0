/* schedule/choices/products.h: recipes of 8- and 4-bit products (--products): schedule/choices/products.def. */
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
    uint8_t inputs, weights, gradients; /* enum dtype of operands */
    uint8_t scaling, of_weights;        /* enum scaling of inputs and gradients, and of weights */
    bool amax;
};

/* Returns the recipe of a configuration. With bf16 its scalings are SCALING_NONE. */
const struct products_recipe *products_recipe(const struct choices *choices);

/* True if the linear layers of a transformer layer multiply in 8 or 4 bits: with --bf16-layers N not in the first N and
 * the last N of the model's layers. */
bool products_narrow_in(const struct choices *choices, int64_t layer);

/* True if a tensor's transposed 8-bit copy is stored beside it: scales of rows and blocks lie along the axis that a product
 * sums over, and compute capability 8.9 and 9.0 multiply 8-bit operands only if both hold that axis innermost (cuBLAS
 * documentation, cublasLtMatmul(), "FP8 kernels"). */
bool products_turned_copies(const struct choices *choices);

#endif

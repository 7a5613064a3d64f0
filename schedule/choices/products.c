#include "schedule/choices/products.h"

#include "schedule/choices/choices.h"

const char *const products_names[PRODUCTS_COUNT] = {
#define PRODUCTS(symbol, name, inputs, weights, gradients, scaling, of_weights, amax) name,
#include "schedule/choices/products.def"
#undef PRODUCTS
};

static const struct products_recipe recipes[PRODUCTS_COUNT] = {
#define PRODUCTS(symbol, name, inputs, weights, gradients, scaling, of_weights, amax)              \
    {DTYPE_##inputs,    DTYPE_##weights,      DTYPE_##gradients,                                   \
     SCALING_##scaling, SCALING_##of_weights, amax},
#include "schedule/choices/products.def"
#undef PRODUCTS
};

const struct products_recipe *products_recipe(const struct choices *choices)
{
    return &recipes[choices->products];
}

bool products_layer_is_narrow(const struct choices *choices, int64_t layer)
{
    const int64_t edge = choices->bf16_layers;
    return choices->products != PRODUCTS_BF16 && layer >= edge &&
           layer < choices->model->layers - edge;
}

bool products_gather_quantised(const struct choices *choices)
{
    const enum scaling scaling = (enum scaling)products_recipe(choices)->weight_scaling;
    return choices->primary_weights == PRIMARY_WEIGHTS_QUANTISED &&
           (scaling == SCALING_TENSOR || scaling == SCALING_NV);
}

bool products_need_transposed_copies(const struct choices *choices)
{
    return products_recipe(choices)->scaling != SCALING_TENSOR ||
           (choices->sm >= 89 && choices->sm < 100);
}

bool products_core_is_narrow(const struct choices *choices, int64_t layer)
{
    return choices->attention_products == ATTENTION_PRODUCTS_FP8 &&
           products_layer_is_narrow(choices, layer);
}

enum attention_impl products_core_impl(const struct choices *choices)
{
    if (choices->attention_products != ATTENTION_PRODUCTS_FP8)
        return (enum attention_impl)choices->attention_impl;
    return products_recipe(choices)->scaling == SCALING_MX ? ATTENTION_CUDNN_MXFP8
                                                           : ATTENTION_CUDNN_FP8;
}

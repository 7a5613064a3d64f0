#include "schedule/choices/kept.h"

#include "schedule/choices/chains.h"
#include "schedule/choices/profile.h"

static const struct kept_bytes_row rows[] = {
#define KEPT(code, kernels, ...) {CODE_##code, KERNELS_##kernels, __VA_ARGS__},
#include "schedule/choices/kept.def"
#undef KEPT
};

/* Returns the framework's code of a layer that the choices run, whether or not the chosen kernels replace its
 * operators. torchtitan has one code for all families of models, Transformers has several. */
static enum layer_code framework_layer_code_of_choices(const struct choices *c)
{
    struct choices eager = *c;
    if (eager.kernels != KERNELS_EAGER)
        eager.kernels = KERNELS_PROFILE;
    switch (chains_framework_of_choices(c->profile, &eager)) {
    case CHAINS_TORCHTITAN:
        return CODE_TITAN;
    case CHAINS_NANOTRON:
        return CODE_NANOTRON;
    case CHAINS_HF:
    case CHAINS_HF_AUTOCAST:
        return !transformer_has_gate(c->model)     ? CODE_GPT2
               : c->model->norm_place == NORM_BOTH ? CODE_GEMMA
                                                   : CODE_LLAMA;
    default:
        return CODE_FUSED;
    }
}

bool kept_layer_runs_under_autocast(const struct choices *c)
{
    if (c->model->adapter_rank > 0) /* frozen weights are loaded in 16 bits */
        return false;
    const bool sharded =
        (c->weights == CHOICE_WEIGHTS_ZERO3 || c->weights == CHOICE_WEIGHTS_HSDP) &&
        c->ranks > c->tp * c->pp;
    return c->profile->chains == CHAINS_HF_AUTOCAST ||
           (c->profile->chains == CHAINS_TORCHTITAN && !sharded);
}

/* True if the layer's code computes q, k and v by one product, and gate and up by another. */
static bool has_joint_qkv_and_gate_up(const struct choices *c)
{
    return c->model->fused_products && framework_layer_code_of_choices(c) == CODE_LLAMA;
}

struct products_with_kept_results kept_products_of(const struct choices *c)
{
    const struct transformer *m = c->model;
    const bool joint = has_joint_qkv_and_gate_up(c), gated = transformer_has_gate(m);
    struct products_with_kept_results kept_products = {0};
    /* The products that the layer's code may call, in order: the results of each, whether it has a bias, and whether
     * this layer calls it. */
    const struct {
        bool *result[3], biased, called;
    } calls[] = {
        {{&kept_products.q, &kept_products.k, &kept_products.v}, m->bias_qkv, joint},
        {{&kept_products.q}, m->bias_qkv, !joint},
        {{&kept_products.k}, m->bias_qkv, !joint},
        {{&kept_products.v}, m->bias_qkv, !joint},
        {{&kept_products.o}, m->bias_o, true},
        {{&kept_products.gate, &kept_products.up}, m->bias_ffn, joint && gated},
        {{&kept_products.gate}, m->bias_ffn, !joint && gated},
        {{&kept_products.up}, m->bias_ffn, !joint || !gated},
        {{&kept_products.down}, m->bias_ffn, true},
    };
    bool last = false; /* whether the last product without a bias is kept */
    if (c->activations != CHOICE_ACTIVATIONS_SELECTIVE_OP)
        return kept_products;
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        if (!calls[i].called)
            continue;
        if (!calls[i].biased)
            last = !last;
        for (size_t k = 0; k < ARRAY_LEN(calls[i].result) && calls[i].result[k] != NULL; k++)
            *calls[i].result[k] = calls[i].biased || last;
    }
    return kept_products;
}

bool kept_keeps_core_only(const struct choices *c)
{
    return c->activations == CHOICE_ACTIVATIONS_SELECTIVE ||
           c->activations == CHOICE_ACTIVATIONS_SELECTIVE_OP;
}

/* Changes a row for norms whose weights are frozen. Their normalised tensor is not kept, since only the gradient of the
 * weight reads it. Of each norm's bytes at most 2 are left: an fp32 copy has 2 bytes more than the 16 bits that the
 * schedule's norm reads. The norm's backward cannot free the normalised tensor then, so d_norm and d_narrow grow by its
 * bytes. */
static void drop_kept_bytes_of_frozen_norms(struct kept_bytes_row *kept)
{
    uint8_t *const of_norms[] = {&kept->first, &kept->second, &kept->after, &kept->heads};
    if (kept->first > 2 && kept->d_norm > 0) {
        kept->d_norm = (uint8_t)(kept->d_norm + kept->first - 2);
        kept->d_narrow = (uint8_t)(kept->d_narrow + kept->first - 2);
    }
    for (size_t i = 0; i < ARRAY_LEN(of_norms); i++)
        if (*of_norms[i] > 2)
            *of_norms[i] = 2;
}

/* Changes a row of Llama's layer to what Phi-3's layer in transformers keeps. joint_q, joint_kv: v is a view of the
 * joint product of q, k and v, so the whole product stays. again: with eager kernels, torch.cat() of the rotated and
 * the other columns orders q by heads; attention's result has the same order, so the output projection reads a copy.
 * inputs1, inputs2: a joint product casts its input once. */
static void add_bytes_of_fused_products(struct kept_bytes_row *kept, uint8_t kernels)
{
    kept->joint_q = kept->joint_kv = 2;
    kept->again = kernels == KERNELS_EAGER ? 2 : 0;
    kept->inputs1 = kept->inputs2 = 0;
}

struct kept_bytes_row kept_bytes_of(const struct choices *c)
{
    const bool autocast = kept_layer_runs_under_autocast(c);
    const uint8_t kernels = c->kernels == KERNELS_PROFILE ? (uint8_t)KERNELS_EAGER : c->kernels;
    const enum layer_code code = framework_layer_code_of_choices(c);
    struct kept_bytes_row kept = {.code = CODE_FUSED};
    /* All columns stay 0 in fp32, since the rows are for 16 bits. They also stay 0 with --activations ratio and
     * --host-layers: these may copy any tensor to the host, and an op must have written what they copy. (--activations
     * offload copies only the layer's input.) */
    if (c->dtype == DTYPE_F32 || c->activations == CHOICE_ACTIVATIONS_RATIO || c->host_layers > 0)
        return kept;
    /* If kept.def has no row for the layer, it keeps only what the schedule's ops read, and all columns stay 0. */
    kept.code = (uint8_t)code;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].code == code && rows[i].kernels == kernels && rows[i].autocast == autocast)
            kept = rows[i];
    if (c->model->adapter_rank > 0)
        drop_kept_bytes_of_frozen_norms(&kept);
    if (has_joint_qkv_and_gate_up(c))
        add_bytes_of_fused_products(&kept, kernels);
    if (kept.code == CODE_NANOTRON && c->model->kv_heads < c->model->heads)
        kept.joint_kv = 0;
    if (kept.code == CODE_NANOTRON && c->micro_batch == 1)
        kept.again = 0;
    /* These three columns are bytes in the buffer of attention's statistics. Other attention choices and copies to the
     * host use that buffer as a whole, so there the columns are 0, and such bytes are not counted. */
    if (c->attention != CHOICE_ATTENTION_LOCAL || c->activations == CHOICE_ACTIVATIONS_OFFLOAD ||
        c->activations == CHOICE_ACTIVATIONS_SELECTIVE_OFFLOAD)
        kept.joint_q = kept.joint_kv = kept.again = 0;
    if (c->activations == CHOICE_ACTIVATIONS_OFFLOAD)
        kept.input = 0;
    return kept;
}

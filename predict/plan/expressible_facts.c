/* Facts about choices on which settings of frameworks, and rows of predict/plan/gaps.h, depend. */
#include "predict/plan/gaps.h"

const char *const framework_names[FRAMEWORK_COUNT] = {"torchtitan", "megatron",      "deepspeed",
                                                      "axolotl",    "llama-factory", "trl"};

uint32_t expressible_weight_sharing_ranks(const struct choices *c)
{
    return c->dp * c->cp * c->hp;
}

bool expressible_choices_recompute(const struct choices *c)
{
    return c->activations != CHOICE_ACTIVATIONS_KEEP && c->activations != CHOICE_ACTIVATIONS_RATIO;
}

bool gaps_has_ring(const struct choices *c)
{
    return c->cp > 1;
}

bool gaps_has_head_ranks(const struct choices *c)
{
    return c->hp > 1;
}

bool gaps_has_fpdt_chunks(const struct choices *c)
{
    return c->attention == CHOICE_ATTENTION_FPDT;
}

bool expressible_hsdp_cuts_sequence_ranks(const struct choices *c)
{
    return c->weights == CHOICE_WEIGHTS_HSDP && c->shard % (c->cp * c->hp) != 0;
}

bool gaps_has_zero2(const struct choices *c)
{
    return c->weights == CHOICE_WEIGHTS_ZERO2;
}

bool gaps_has_host_optimizer(const struct choices *c)
{
    return c->optimizer == CHOICE_OPTIMIZER_HOST;
}

bool gaps_has_bf16_states(const struct choices *c)
{
    return states_are_bf16((enum states)c->states);
}

bool expressible_is_ddp(const struct choices *c)
{
    return c->weights == CHOICE_WEIGHTS_REPLICATED && !gaps_has_host_optimizer(c) &&
           c->ranks == c->dp; /* no ranks share a sequence or layers */
}

bool expressible_needs_deepspeed(const struct choices *c)
{
    return c->weights == CHOICE_WEIGHTS_ZERO1 || gaps_has_zero2(c) || gaps_has_host_optimizer(c);
}

bool gaps_has_tensor_ranks(const struct choices *c)
{
    return c->tp > 1;
}

bool gaps_has_bf16_parameters(const struct choices *c)
{
    return expressible_is_ddp(c) && c->dtype == DTYPE_BF16;
}

const char *expressible_default_profile(enum framework framework, const struct strategy *strategy)
{
    switch (framework) {
    case FRAMEWORK_TORCHTITAN:
        return "torchtitan";
    case FRAMEWORK_MEGATRON:
        return strategy->attention == CHOICE_ATTENTION_LOCAL ? "megatron" : "megatron-te";
    case FRAMEWORK_DEEPSPEED:
        return "deepspeed";
    default:
        return "hf";
    }
}

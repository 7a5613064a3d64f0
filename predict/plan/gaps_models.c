/* Properties of models that frameworks have no settings for, and choices about experts, latent attention and recomputed
 * modules. */
#include "predict/plan/gaps.h"
#include "schedule/choices/strategies.h"

#include "schedule/config/derived.h"

static bool has_biases_unlike_megatron(const struct choices *c)
{
    const struct transformer *m = c->model;
    return m->bias_o != m->bias_ffn || (m->bias_o && !m->bias_qkv);
}

static bool has_qk_norms(const struct choices *c)
{
    return c->model->qk_norm;
}

static bool has_biases_in_some_only(const struct choices *c)
{
    const struct transformer *m = c->model;
    return m->bias_qkv != m->bias_o || m->bias_o != m->bias_ffn;
}

static bool has_attention_windows(const struct choices *c)
{
    return c->model->attention_window > 0;
}

static bool has_experts(const struct choices *c)
{
    return c->model->experts > 0;
}

static bool has_latent_attention(const struct choices *c)
{
    return c->model->kv_latent > 0;
}

static bool recomputes_modules(const struct choices *c)
{
    return (c->recompute_modules & ~(1u << RECOMPUTE_CORE_ATTN)) != 0;
}

static bool drops_expert_copies(const struct choices *c)
{
    return c->expert_capacity.capacity_factor_millionths > 0;
}

static bool dispatches_by_allgather(const struct choices *c)
{
    return c->dispatcher == DISPATCHER_ALLGATHER;
}

static bool sends_token_once_to_each_node(const struct choices *c)
{
    return dispatcher_facts[c->dispatcher].sends_once;
}

static bool overlaps_micro_batches(const struct choices *c)
{
    return c->expert_overlap != EXPERT_OVERLAP_NONE;
}

/* True if shared experts are computed at another time than the profile's code computes them. */
static bool moves_shared_experts(const struct choices *c)
{
    const uint8_t own = c->profile->shared_experts != SHARED_EXPERTS_PROFILE
                            ? c->profile->shared_experts
                            : SHARED_EXPERTS_DURING_COMBINE;
    return c->model->shared_ffn > 0 && c->shared_experts != own;
}

/* True if a layer differs from those of Llama and GPT: in the places of its norms, in norms of q and k over all heads
 * or without weights, in its activation, its attention sinks, windows that are chunks, or layers that do not rotate. No
 * row of torchtitan uses this, since it knows models by flavors. */
static bool has_layer_unlike_llama_and_gpt(const struct choices *c)
{
    const struct transformer *m = c->model;
    return m->norm_place != NORM_BEFORE || m->qk_norm_wide || m->activation == ACTIVATION_GEGLU ||
           m->activation == ACTIVATION_RELU2 || m->activation == ACTIVATION_SWIGLU_CLAMPED ||
           m->attention_sinks || m->window_chunks || m->unrotated_every > 0 || m->qk_norm_bare;
}

static bool has_adapters(const struct choices *c)
{
    return c->model->adapter_rank > 0;
}

/* True if attention over a ring sees a window of keys. TransformerEngine refuses that if keys go round the ring in
 * messages; the other rotations count here, too. */
static bool has_windowed_ring(const struct choices *c)
{
    return has_attention_windows(c) && c->cp > 1;
}

static bool has_windows_from_later_layer(const struct choices *c)
{
    return has_attention_windows(c) && c->model->window_from_layer > 0;
}

/* The columns are the members of struct expression_gap. A description says what frameworks lack, and after ":" or ";"
 * what they have, or what the written settings mean, instead. */
/* clang-format off */
static const struct expression_gap rows[] = {
    {IN_MEGATRON | IN_DEEPSPEED, has_experts, "experts: those of one layer are written as a dense feed-forward part"},
    {IN_MEGATRON | IN_DEEPSPEED, has_latent_attention, "latent attention: grouped queries are written"},
    {IN_TORCHTITAN | IN_DEEPSPEED | IN_TRAINER_FAMILY, recomputes_modules, "modules of a layer that drop what they made, and make it again (--recompute-modules, --up-projection recompute)"},
    {IN_TORCHTITAN | IN_MEGATRON | IN_DEEPSPEED | IN_TRAINER_FAMILY, derived_sends_latents, "head ranks that send latents (--mla-exchange latent)"},
    {IN_TORCHTITAN | IN_TRAINER_FAMILY, drops_expert_copies, "experts that drop copies of tokens (--expert-capacity)"},
    {IN_TORCHTITAN | IN_TRAINER_FAMILY, dispatches_by_allgather, "a gather of all tokens for experts (--dispatcher allgather)"},
    {IN_TRAINER_FAMILY, sends_token_once_to_each_node, "tokens that are sent to a rank once (--dispatcher deepep and hybridep)"},
    {IN_TORCHTITAN | IN_TRAINER_FAMILY, overlaps_micro_batches, "exchanges of experts beside another micro-batch (--expert-overlap)"},
    {IN_TORCHTITAN | IN_TRAINER_FAMILY, moves_shared_experts, "another time for shared experts than the framework's (--shared-experts)"},
    {ALL, has_adapters, "adapters beside frozen weights (--adapter)"},
    {IN_MEGATRON, has_biases_unlike_megatron,     "biases are everywhere, with the queries' projection alone, or nowhere"},
    {IN_DEEPSPEED,    has_biases_in_some_only, "biases are everywhere or nowhere"},
    {IN_MEGATRON | IN_DEEPSPEED, has_layer_unlike_llama_and_gpt, "norms at the ends of branches or over all heads, GEGLU, squared ReLU, a clamped SwiGLU, sinks of attention, chunks, layers that do not rotate"},
    {IN_DEEPSPEED,    has_qk_norms,     "norms of query and key heads"},
    {IN_DEEPSPEED,    has_attention_windows, "attention that sees a window of keys"},
    {IN_MEGATRON, has_windowed_ring,  "a ring whose attention sees a window of keys"},
    {IN_MEGATRON, has_windows_from_later_layer,   "windows that begin at a later layer than the first"},
};
/* clang-format on */

const struct expression_gaps gaps_of_models = {rows, ARRAY_LEN(rows)};

/* Choices that frameworks cannot express: how weights, gradients and states are shared, their dtypes,
 * and dropout. */
#include "predict/plan/gaps.h"
#include "schedule/config/derived.h"

static bool has_replicated_states(const struct choices *c)
{
    return expressible_weight_sharing_ranks(c) > 1 &&
           (c->weights == CHOICE_WEIGHTS_REPLICATED || c->weights == CHOICE_WEIGHTS_ZERO1);
}

static bool has_hsdp_over_part(const struct choices *c)
{
    return c->weights == CHOICE_WEIGHTS_HSDP && c->shard < expressible_weight_sharing_ranks(c);
}

/* True for ZeRO-2 and above in a pipeline, which DeepSpeed (deepspeed/runtime/pipe/engine.py) and Megatron-FSDP
 * (NVIDIA/Megatron-LM issue 1455) refuse. */
static bool has_sharded_pipeline(const struct choices *c)
{
    return c->pp > 1 && c->weights >= CHOICE_WEIGHTS_ZERO2;
}

static bool has_8bit_states(const struct choices *c)
{
    return states_have_8bit_moments((enum states)c->states);
}

static bool has_8bit_states_without_copy(const struct choices *c)
{
    return c->states == STATES_8BIT_BF16;
}

static bool has_dropout(const struct choices *c)
{
    return c->attention_dropout;
}

static bool has_f16(const struct choices *c)
{
    return c->dtype == DTYPE_F16;
}

/* True if FSDP shards no weights: no other rank has the same weights, or HSDP shards over one rank and FSDP can do
 * that. FSDP casts only parameters that it shards, so these would stay fp32. */
static bool has_unsharded_weights(const struct choices *c)
{
    bool is_hsdp_over_one_rank = c->weights == CHOICE_WEIGHTS_HSDP && c->shard == 1;
    return expressible_weight_sharing_ranks(c) == 1 ||
           (is_hsdp_over_one_rank && !expressible_hsdp_cuts_sequence_ranks(c));
}

static bool has_unsharded_bf16_weights(const struct choices *c)
{
    return c->dtype == DTYPE_BF16 && !gaps_has_bf16_states(c) && has_unsharded_weights(c);
}

static bool has_unsharded_weights_with_tp_or_pp(const struct choices *c)
{
    return expressible_weight_sharing_ranks(c) > 1 && has_unsharded_weights(c) &&
           (c->tp > 1 || c->pp > 1);
}

/* True if gradients have another dtype than they have by the profile (--gradients). */
static bool has_chosen_gradient_dtype(const struct choices *c)
{
    struct choices own = *c;
    own.gradients = GRADIENTS_PROFILE;
    return weights_grad_dtype(c) != weights_grad_dtype(&own);
}

static bool has_f16_gradients(const struct choices *c)
{
    return c->gradients == GRADIENTS_16BIT && c->dtype == DTYPE_F16;
}

/* True if ranks share the gradients (ZeRO-2 and above) of more than one micro-batch, and reduce them at other times
 * than `usual`. */
static bool has_grad_sync_other_than(const struct choices *c, uint8_t usual)
{
    return c->accumulation > 1 && expressible_weight_sharing_ranks(c) > 1 &&
           c->weights >= CHOICE_WEIGHTS_ZERO2 && c->grad_sync != usual;
}

static bool has_chosen_grad_sync(const struct choices *c)
{
    const struct profile *p = c->profile;
    bool last =
        p->accumulates_unsharded_gradients || (c->pp > 1 && p->stages_reduce_gradients_at_step_end);
    return has_grad_sync_other_than(c, last ? GRAD_SYNC_LAST : GRAD_SYNC_EACH);
}

/* True if gradients are reduced at other times than by Trainer. With DeepSpeed it reduces them in each micro-batch,
 * with FSDP when the profile does. */
static bool has_grad_sync_unlike_trainer(const struct choices *c)
{
    return expressible_needs_deepspeed(c) ? has_grad_sync_other_than(c, GRAD_SYNC_EACH)
                                          : has_chosen_grad_sync(c);
}

static bool keeps_gathered_weights(const struct choices *c)
{
    return expressible_weight_sharing_ranks(c) > 1 && c->weights >= CHOICE_WEIGHTS_ZERO3 &&
           c->reshard == RESHARD_NEVER;
}

static bool frees_root_weights(const struct choices *c)
{
    return expressible_weight_sharing_ranks(c) > 1 && c->weights >= CHOICE_WEIGHTS_ZERO3 &&
           c->reshard == RESHARD_ROOT;
}

/* True if the weights of embedding, norm and head, which are FSDP's root module, stay gathered after the forward while
 * those of layers are freed. Accelerate frees both, since it gives the root the setting of the layers. */
static bool keeps_root_weights(const struct choices *c)
{
    return expressible_weight_sharing_ranks(c) > 1 && c->weights >= CHOICE_WEIGHTS_ZERO3 &&
           !expressible_needs_deepspeed(c) && c->profile->frees_root_unit_after_forward &&
           c->reshard == RESHARD_ALWAYS;
}

static bool keeps_gathered_weights_by_zero(const struct choices *c)
{
    return keeps_gathered_weights(c) && expressible_needs_deepspeed(c);
}

static bool has_uncut_vocabulary(const struct choices *c)
{
    return c->tp > 1 && c->vocabulary != VOCABULARY_CUT;
}

/* True if tensor ranks share the vocabulary otherwise than in Transformers. There they gather logits if the head has
 * weights of its own and the vocabulary divides evenly over them; else each keeps its part. */
static bool has_vocabulary_unlike_transformers(const struct choices *c)
{
    bool gathers = !c->model->tied_head && c->model->vocab % c->tp == 0;
    return c->tp > 1 && c->vocabulary != (gathers ? VOCABULARY_GATHERED : VOCABULARY_CUT);
}

static bool has_fused_loss_over_tp(const struct choices *c)
{
    return c->tp > 1 && c->loss == LOSS_FUSED;
}

static bool replicates_weights_outside_ddp(const struct choices *c)
{
    return c->weights == CHOICE_WEIGHTS_REPLICATED && !expressible_is_ddp(c);
}

static bool has_zero_with_ring_or_tp(const struct choices *c)
{
    return expressible_needs_deepspeed(c) && (gaps_has_ring(c) || gaps_has_tensor_ranks(c));
}

static bool has_zero1(const struct choices *c)
{
    return c->weights == CHOICE_WEIGHTS_ZERO1;
}

static bool has_hsdp_within_sequence(const struct choices *c)
{
    return c->weights == CHOICE_WEIGHTS_HSDP && c->shard == c->cp * c->hp &&
           expressible_weight_sharing_ranks(c) > c->shard;
}

static bool has_host_optimizer_without_zero2(const struct choices *c)
{
    return gaps_has_host_optimizer(c) && !gaps_has_zero2(c);
}

static bool has_host_optimizer_without_zero(const struct choices *c)
{
    return gaps_has_host_optimizer(c) &&
           (c->weights == CHOICE_WEIGHTS_REPLICATED || c->weights == CHOICE_WEIGHTS_HSDP);
}

static bool has_8bit_on_host(const struct choices *c)
{
    return has_8bit_states(c) && gaps_has_host_optimizer(c);
}

static bool has_states_unlike_axolotl(const struct choices *c)
{
    return (gaps_has_bf16_states(c) && !gaps_has_bf16_parameters(c)) ||
           (!gaps_has_bf16_states(c) && gaps_has_bf16_parameters(c));
}

static bool has_bf16_states_in_shards(const struct choices *c)
{
    return gaps_has_bf16_states(c) && !gaps_has_bf16_parameters(c);
}

static bool has_bf16_states_unlike_factory(const struct choices *c)
{
    return gaps_has_bf16_states(c) && (c->dtype != DTYPE_BF16 || expressible_needs_deepspeed(c));
}

static bool has_dropout_unlike_model(const struct choices *c)
{
    return c->attention_dropout != (c->model->attention_dropout > 0);
}

/* The columns are the members of struct expression_gap. A description says what frameworks lack, and after ":" or ";"
 * what they have, or what the written settings mean, instead. */
/* clang-format off */
static const struct expression_gap rows[] = {
    {IN_TORCHTITAN,    has_replicated_states,        "optimizer states sharded alone: FSDP shards all, DDP nothing; FSDP is set"},
    {IN_TORCHTITAN,    gaps_has_zero2,                    "gradients sharded and parameters kept: reshard_after_forward = \"never\" comes near"},
    {IN_TORCHTITAN | IN_MEGATRON | IN_DEEPSPEED, has_chosen_grad_sync, "gradients of micro-batches that are reduced at other times (--grad-sync)"},
    {IN_TRAINER_FAMILY,  has_grad_sync_unlike_trainer,       "gradients of micro-batches that are reduced at other times: in each by DeepSpeed (ZeRO-2, AdamW on the host), after the last by FSDP"},
    {IN_MEGATRON | IN_DEEPSPEED, keeps_gathered_weights,     "gathered parameters that stay until the backward (--reshard never)"},
    {IN_TORCHTITAN | IN_MEGATRON | IN_DEEPSPEED, frees_root_weights,   "embedding, norm and head that are freed after the forward (--reshard root)"},
    {IN_TRAINER_FAMILY,  keeps_root_weights,                "embedding, norm and head that stay while layers are freed (--reshard always): Accelerate frees both"},
    {IN_TRAINER_FAMILY,  keeps_gathered_weights_by_zero,     "gathered parameters that stay until the backward (--reshard never) by DeepSpeed"},
    {IN_TORCHTITAN | IN_MEGATRON | IN_DEEPSPEED, has_uncut_vocabulary, "logits that tensor ranks gather (--vocabulary): they keep their parts"},
    {IN_TRAINER_FAMILY,  has_vocabulary_unlike_transformers,             "logits that tensor ranks keep in parts: a head that divides gathers them (--vocabulary gathered)"},
    {IN_TRAINER_FAMILY,  has_fused_loss_over_tp,      "a fused loss of tensor ranks"},
    {IN_TRAINER_FAMILY,  replicates_weights_outside_ddp,      "copies of whole weights beside ranks that share a sequence or layers, or with an optimizer on the host"},
    {IN_LLAMA_FACTORY,  has_zero1,                    "optimizer states sharded alone: its files of DeepSpeed have stages 0, 2 and 3"},
    {IN_TRAINER_FAMILY,  has_zero_with_ring_or_tp,              "DeepSpeed (ZeRO-1, or AdamW on the host) beside a ring or tensor ranks"},
    {IN_TRAINER_FAMILY,  has_hsdp_within_sequence,            "copies of weights that no ranks share, beside FSDP: Accelerate refuses dp_shard_size 1"},
    {IN_TORCHTITAN | IN_TRAINER_FAMILY, expressible_hsdp_cuts_sequence_ranks, "shards within fewer ranks than share a sequence: FSDP shards over all of these; shards over all ranks are set"},
    {IN_LLAMA_FACTORY,  has_hsdp_over_part,                     "shards within fewer ranks: FSDP shards over all"},
    {IN_DEEPSPEED,    has_hsdp_over_part,                     "shards within fewer ranks (MiCS), which is set: DeepSpeed refuses it from 0.19.7 on"},
    {IN_MEGATRON, has_sharded_pipeline,         "gradients or parameters sharded in a pipeline: they are set, and Megatron-FSDP has no stages"},
    {IN_DEEPSPEED,    has_sharded_pipeline,         "ZeRO-2 and ZeRO-3 in a pipeline: they are set, and DeepSpeed refuses them"},
    {IN_TORCHTITAN | IN_DEEPSPEED | IN_TRAINER_FAMILY, has_chosen_gradient_dtype, "other numbers of gradients than the framework's own (--gradients)"},
    {IN_MEGATRON, has_f16_gradients,         "gradients in fp16 (--gradients): its own are fp32, and its flag is for bf16"},
    {IN_TORCHTITAN,    has_dropout,                  "dropout of attention scores (--dropout on): it has none"},
    {IN_TORCHTITAN,    gaps_has_host_optimizer,           "optimizer states alone on the host: offload takes parameters and gradients along"},
    {IN_AXOLOTL,  gaps_has_host_optimizer,           "AdamW on the host alone: its file of DeepSpeed that says so sends parameters along"},
    {IN_LLAMA_FACTORY,  has_host_optimizer_without_zero2,           "AdamW on the host but with ZeRO-2: its file of stage 3 sends parameters along"},
    {TRL,      has_host_optimizer_without_zero,        "AdamW on the host without ZeRO-1, 2 or 3"},
    {IN_TRAINER_FAMILY,  has_8bit_on_host,             "moments in 8 bits on the host"},
    {IN_AXOLOTL,  has_states_unlike_axolotl,     "states of this type: they are bf16 or 8bit-bf16 under DDP, where models are read in bf16, and fp32 or 8bit elsewhere"},
    {TRL,      has_bf16_states_in_shards,    "bf16 states (--states bf16) but under DDP: FSDP and DeepSpeed make parameters fp32"},
    {IN_LLAMA_FACTORY,  has_bf16_states_unlike_factory,      "bf16 states (--states bf16) without pure_bf16, or with DeepSpeed"},
    {IN_LLAMA_FACTORY,  has_8bit_states_without_copy,             "moments in 8 bits of bf16 parameters (--states 8bit-bf16): of fp32 ones"},
    {IN_TRAINER_FAMILY,  has_dropout_unlike_model,            "dropout of attention scores other than the model's own (--dropout)"},
    {IN_MEGATRON | IN_DEEPSPEED, gaps_has_bf16_states,      "bf16 states without an fp32 copy of the parameters (--states bf16): fp32 states are set"},
    {IN_TORCHTITAN | IN_MEGATRON | IN_DEEPSPEED, has_8bit_states,              "moments in 8 bits (--states 8bit): they stay in fp32"},
    {IN_TORCHTITAN,    has_f16,                      "fp16: parameters are bfloat16 or float32; bfloat16 is set"},
    {IN_TORCHTITAN,    has_unsharded_bf16_weights,               "bfloat16 where weights are not sharded: FSDP alone casts parameters, which stay float32"},
    {IN_TORCHTITAN,    has_unsharded_weights_with_tp_or_pp,            "copies of whole weights (DDP) beside tensor ranks or stages: they are set, and torchtitan refuses them"},
};
/* clang-format on */

const struct expression_gaps gaps_of_weights = {rows, ARRAY_LEN(rows)};

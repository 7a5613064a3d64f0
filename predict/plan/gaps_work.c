/* Choices that frameworks cannot express: what is kept for the backward, which kernels run, and with which
 * profile. */
#include "predict/plan/gaps.h"

#include "schedule/choices/products.h"
#include "schedule/choices/profile.h"
#include "schedule/config/resolve_degrees.h"

#include <string.h>

static bool has_8_or_4_bit_products(const struct choices *c)
{
    return c->products != PRODUCTS_BF16;
}

static bool has_zero1_over_part(const struct choices *c)
{
    return c->weights == CHOICE_WEIGHTS_ZERO1 && c->shard < expressible_weight_sharing_ranks(c);
}

static bool has_selective_recomputation(const struct choices *c)
{
    return c->activations == CHOICE_ACTIVATIONS_SELECTIVE ||
           c->activations == CHOICE_ACTIVATIONS_SELECTIVE_OFFLOAD;
}

static bool recomputes_alternate_ops_or_layers(const struct choices *c)
{
    return c->activations == CHOICE_ACTIVATIONS_SELECTIVE_OP ||
           c->activations == CHOICE_ACTIVATIONS_SELECTIVE_LAYER;
}

static bool recomputes_attention_core_only(const struct choices *c)
{
    return c->activations == CHOICE_ACTIVATIONS_SELECTIVE_CORE;
}

static bool offloads_activations(const struct choices *c)
{
    return c->activations == CHOICE_ACTIVATIONS_OFFLOAD ||
           c->activations == CHOICE_ACTIVATIONS_SELECTIVE_OFFLOAD;
}

static bool offloads_by_ratio(const struct choices *c)
{
    return c->activations == CHOICE_ACTIVATIONS_RATIO && c->subsequences * c->accumulation > 1;
}

static bool has_loss_chunks(const struct choices *c)
{
    return c->loss_chunks > 1;
}

static bool has_ffn_chunks(const struct choices *c)
{
    return c->ffn_chunks > 1;
}

static bool has_liger_kernels(const struct choices *c)
{
    return c->kernels == KERNELS_LIGER;
}

static bool has_chosen_kernels(const struct choices *c)
{
    return c->kernels != KERNELS_PROFILE;
}

static bool has_chosen_loss(const struct choices *c)
{
    return c->loss != c->profile->loss && c->loss != LOSS_PARALLEL;
}

static bool has_loss_unlike_megatron(const struct choices *c)
{
    return c->loss != LOSS_MEGATRON && c->loss != LOSS_TE;
}

static bool has_loss_unlike_titan(const struct choices *c)
{
    return has_chosen_loss(c) && c->loss != LOSS_COMPILED;
}

/* True if the loss has another number of pieces than in DeepSpeed's code: with FPDT the code chooses the number of
 * pieces of the loss and of the feed-forward part; without FPDT neither is in pieces. */
static bool has_loss_chunks_unlike_code(const struct choices *c)
{
    return gaps_has_fpdt_chunks(c)
               ? c->loss_chunks != resolve_default_fpdt_piece_counts(c).loss_pieces
               : has_loss_chunks(c);
}

static bool has_ffn_chunks_unlike_code(const struct choices *c)
{
    return gaps_has_fpdt_chunks(c)
               ? c->ffn_chunks != resolve_default_fpdt_piece_counts(c).ffn_pieces
               : has_ffn_chunks(c);
}

static bool has_attention_other_than_fa2(const struct choices *c)
{
    return c->dtype != DTYPE_F32 && c->attention_impl != ATTENTION_FA2;
}

/* True if the profile has this name, or is `ideal`, which passes for every framework's. */
static bool has_profile_or_ideal(const struct choices *c, const char *name)
{
    return c->profile->is_ideal || strcmp(c->profile->name, name) == 0;
}

static bool has_profile_other_than_torchtitan(const struct choices *c)
{
    return !has_profile_or_ideal(c, "torchtitan");
}

/* True if the profile is none of megatron, megatron-te and `ideal`. With a ring or head ranks, which TransformerEngine
 * provides, megatron does not count as Megatron's. */
static bool has_profile_other_than_megatron(const struct choices *c)
{
    bool shared = gaps_has_ring(c) || gaps_has_head_ranks(c);
    return !has_profile_or_ideal(c, "megatron-te") &&
           (shared || !has_profile_or_ideal(c, "megatron"));
}

static bool has_profile_other_than_deepspeed(const struct choices *c)
{
    return !has_profile_or_ideal(c, "deepspeed");
}

static bool has_chosen_tensor_plan(const struct choices *c)
{
    return gaps_has_tensor_ranks(c) && c->profile->tensor_plan != c->tensor_plan &&
           !(c->profile->tensor_plan == TENSOR_PLAN_PROFILE &&
             c->tensor_plan == TENSOR_PLAN_MEGATRON);
}

/* True if the tensor plan is not the profile's own. The async plan is torchtitan's, too, if layers are compiled. */
static bool has_tensor_plan_unlike_titan(const struct choices *c)
{
    return has_chosen_tensor_plan(c) &&
           !(c->tensor_plan == TENSOR_PLAN_ASYNC && c->kernels == KERNELS_COMPILED);
}

/* True if tensor ranks share tokens, too. In the tensor plans of Transformers every tensor rank has all tokens. */
static bool tensor_ranks_divide_tokens(const struct choices *c)
{
    return gaps_has_tensor_ranks(c) && c->tensor_plan != TENSOR_PLAN_REPLICATED;
}

static bool has_eager_kernels(const struct choices *c)
{
    return c->kernels == KERNELS_EAGER;
}

static bool has_liger_kernels_or_loss_only(const struct choices *c)
{
    return (c->kernels == KERNELS_LIGER) != (c->loss == LOSS_FUSED);
}

static bool has_compiled_kernels_or_loss_only(const struct choices *c)
{
    return (c->kernels == KERNELS_COMPILED) != (c->loss == LOSS_COMPILED);
}

static bool has_loss_unlike_trainer(const struct choices *c)
{
    return has_loss_unlike_titan(c) && c->loss != LOSS_FUSED;
}

/* True if the loss has another number of pieces than under Trainer: Liger's loss chooses its number itself, any other
 * loss is in one piece. */
static bool has_loss_pieces_unlike_trainer(const struct choices *c)
{
    return c->loss == LOSS_FUSED ? c->loss_chunks != resolve_liger_loss_piece_count(c)
                                 : has_loss_chunks(c);
}

static bool has_chosen_loss_and_pieces(const struct choices *c)
{
    return has_loss_pieces_unlike_trainer(c) && has_chosen_loss(c);
}

static bool has_attention_unlike_trainer(const struct choices *c)
{
    uint8_t usual =
        c->sm >= 90 ? c->profile->attention_impl_since_hopper : c->profile->attention_impl;
    return c->dtype != DTYPE_F32 && c->attention_impl != ATTENTION_FA2 &&
           c->attention_impl != ATTENTION_FA3 && c->attention_impl != usual;
}

/* True if the profile is not the one that models Trainer: hf-ddp, which has autocast, under DDP in mixed precision,
 * else hf. narrow: parameters are bf16 themselves, so that there is no autocast. */
static bool has_profile_other_than_trainer(const struct choices *c, bool narrow)
{
    bool autocast = expressible_is_ddp(c) && c->dtype != DTYPE_F32 && !narrow;
    return !has_profile_or_ideal(c, autocast ? "hf-ddp" : "hf");
}

static bool has_profile_other_than_axolotl(const struct choices *c)
{
    return has_profile_other_than_trainer(c, gaps_has_bf16_parameters(c));
}

static bool has_profile_other_than_trl(const struct choices *c)
{
    return has_profile_other_than_trainer(c,
                                          gaps_has_bf16_parameters(c) && gaps_has_bf16_states(c));
}

/* The columns are the members of struct expression_gap. A description says what frameworks lack, and after ":" or ";"
 * what they have, or what the written settings mean, instead. */
/* clang-format off */
static const struct expression_gap rows[] = {
    {IN_TORCHTITAN,    has_selective_recomputation,                "selective checkpoints that keep attention's output: mode = \"selective\" with option \"op\" keeps products too"},
    {IN_MEGATRON, has_selective_recomputation,                "selective checkpoints that keep attention's output: selective recomputation of core_attn does the opposite; full is set"},
    {IN_DEEPSPEED | IN_TRAINER_FAMILY, has_selective_recomputation,                "checkpoints that keep attention's output"},
    {ALL,      has_8_or_4_bit_products,          "products in 8 or 4 bits (--products): those of --dtype are set"},
    {ALL,      has_zero1_over_part,         "optimizer states over some of the ranks: all share them"},
    {IN_TORCHTITAN | IN_DEEPSPEED | IN_TRAINER_FAMILY, recomputes_attention_core_only,          "recomputation of attention's core alone: full is set"},
    {IN_MEGATRON | IN_DEEPSPEED | IN_TRAINER_FAMILY, recomputes_alternate_ops_or_layers,     "checkpoints of every second product or layer: full is set"},
    {IN_TORCHTITAN | IN_MEGATRON, offloads_activations,          "layer inputs on the host"},
    {ALL,      offloads_by_ratio,                    "part of the activations on the host (SPPO): all of them stay"},
    {IN_TORCHTITAN,    has_liger_kernels,             "Liger-Kernel's layers"},
    {IN_TRAINER_FAMILY,  has_eager_kernels,            "operators of PyTorch one after the other by choice (--kernels eager): they are, without a setting"},
    {IN_LLAMA_FACTORY | TRL, has_liger_kernels_or_loss_only,       "Liger-Kernel's layers without its loss, or its loss without them"},
    {IN_TRAINER_FAMILY,  has_compiled_kernels_or_loss_only,         "compiled layers without a compiled loss, or the loss without them"},
    {IN_TRAINER_FAMILY,  has_loss_unlike_trainer,       "the loss by other kernels than its own, compiled ones or Liger's (--loss)"},
    {IN_LLAMA_FACTORY | TRL, has_loss_pieces_unlike_trainer, "the loss in pieces"},
    {IN_AXOLOTL,  has_chosen_loss_and_pieces,     "a loss in pieces other than its own"},
    {IN_TORCHTITAN,    has_tensor_plan_unlike_titan,         "tensor ranks that share inputs by another plan than its own, or async without --compile (--tensor-plan)"},
    {IN_MEGATRON | IN_DEEPSPEED, has_chosen_tensor_plan, "tensor ranks that share inputs by another plan than its own (--tensor-plan)"},
    {IN_TRAINER_FAMILY,  tensor_ranks_divide_tokens,           "tensor ranks that share tokens too: it needs --tensor-plan replicated"},
    {IN_MEGATRON | IN_DEEPSPEED, has_chosen_kernels,   "layers by other kernels than its own (--kernels)"},
    {IN_TORCHTITAN,    has_loss_unlike_titan,         "the loss by other kernels than its own or compiled ones (--loss)"},
    {IN_DEEPSPEED,    has_chosen_loss,                  "the loss by other kernels than its own (--loss)"},
    {IN_MEGATRON, has_loss_unlike_megatron,      "the loss by other kernels than its own or TransformerEngine's (--loss)"},
    {IN_TORCHTITAN | IN_MEGATRON, has_loss_chunks,      "the loss in pieces"},
    {IN_DEEPSPEED,    has_loss_chunks_unlike_code,        "the loss in pieces, but for those of FPDT's chunks"},
    {IN_TORCHTITAN | IN_MEGATRON | IN_LLAMA_FACTORY | TRL, has_ffn_chunks,       "the feed-forward part in pieces"},
    {IN_DEEPSPEED,    has_ffn_chunks_unlike_code,         "the feed-forward part in pieces, but for those of FPDT's chunks"},
    {IN_TORCHTITAN | IN_DEEPSPEED, has_attention_other_than_fa2,       "attention by other kernels than FlashAttention-2"},
    {IN_TRAINER_FAMILY,  has_attention_unlike_trainer,              "attention by other kernels than sdpa's or FlashAttention"},
    {IN_AXOLOTL,  has_profile_other_than_axolotl,               "what is predicted is another implementation; its own is --profile hf, but under DDP in fp16 hf-ddp"},
    {IN_LLAMA_FACTORY | TRL, has_profile_other_than_trl,              "what is predicted is another implementation; its own is --profile hf, or hf-ddp under DDP"},
    {IN_TORCHTITAN,    has_profile_other_than_torchtitan,            "what is predicted is another implementation; its own is --profile torchtitan"},
    {IN_MEGATRON, has_profile_other_than_megatron,              "what is predicted is another implementation; its own is --profile megatron, with context ranks megatron-te"},
    {IN_DEEPSPEED,    has_profile_other_than_deepspeed,             "what is predicted is another implementation; its own is --profile deepspeed"},
};
/* clang-format on */

const struct expression_gaps gaps_of_work = {rows, ARRAY_LEN(rows)};

#include "predict/plan/expressible.h"

#include "schedule/choices/products.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/strategies.h"
#include "schedule/config/resolve_degrees.h"
#include "schedule/pipeline/pipeline.h"

#include <string.h>

const char *const framework_names[FRAMEWORK_COUNT] = {"torchtitan", "megatron",      "deepspeed",
                                                      "axolotl",    "llama-factory", "trl"};

uint32_t expressible_sharing(const struct choices *c)
{
    return c->dp * c->cp * c->hp;
}

bool expressible_recomputes(const struct choices *c)
{
    return c->activations != CHOICE_ACTIVATIONS_KEEP && c->activations != CHOICE_ACTIVATIONS_RATIO;
}

/* ---- the sequence ---- */

static bool has_ring(const struct choices *c)
{
    return c->cp > 1;
}

static bool has_heads(const struct choices *c)
{
    return c->hp > 1;
}

static bool has_messages(const struct choices *c)
{
    return has_ring(c) && c->rotation == ROTATE_P2P;
}

/* Whether the keys go around the ring in a way that Megatron lacks, or has only without head ranks. */
static bool has_other_rotation(const struct choices *c)
{
    return has_ring(c) &&
           (c->rotation == ROTATE_ALL_TO_ALL || (c->rotation == ROTATE_ALL_GATHER && has_heads(c)));
}

static bool has_windows(const struct choices *c)
{
    return has_ring(c) && c->window > 1;
}

static bool has_other_layout(const struct choices *c)
{
    return has_ring(c) && c->ring_layout != RING_ZIGZAG;
}

static bool has_context_first(const struct choices *c)
{
    return has_ring(c) && has_heads(c) && c->placement == PLACEMENT_CONTEXT_FIRST;
}

static bool has_heads_in_parts(const struct choices *c)
{
    return has_heads(c) && (c->tp > 1 || c->pp > 1);
}

/* TransformerEngine's a2a requires that the key and value heads of a tensor rank divide over the head ranks. */
static bool has_copied_heads(const struct choices *c)
{
    return has_heads(c) && c->model->kv_heads % ((int64_t)c->tp * c->hp) != 0;
}

static bool has_copied_tensor_heads(const struct choices *c)
{
    return c->model->kv_heads % c->tp != 0;
}

static bool has_fused_merges(const struct choices *c)
{
    return has_ring(c) && c->kernels == KERNELS_COMPILED;
}

static bool has_chunks(const struct choices *c)
{
    return c->attention == CHOICE_ATTENTION_FPDT;
}

static bool has_head_stages(const struct choices *c)
{
    return c->attention == CHOICE_ATTENTION_UPIPE;
}

static bool has_other_chunk_order(const struct choices *c)
{
    return has_chunks(c) && c->chunks > 1 && c->chunk_order != ORDER_KV_OUTER;
}

static bool has_one_fetch(const struct choices *c)
{
    return has_chunks(c) && c->chunks > 1 && c->fetch != FETCH_EACH;
}

static bool has_sparse_attention(const struct choices *c)
{
    return c->model->attention_chunk > 0;
}

/* ---- pipelines ---- */

static bool has_gpipe(const struct choices *c)
{
    return c->pipeline == CHOICE_PIPELINE_GPIPE;
}

static bool has_interleaved(const struct choices *c)
{
    return c->pipeline == CHOICE_PIPELINE_INTERLEAVED;
}

static bool has_zb_1p(const struct choices *c)
{
    return c->pipeline == CHOICE_PIPELINE_ZB_1P;
}

static bool has_zero_bubble(const struct choices *c)
{
    return has_zb_1p(c) || c->pipeline == CHOICE_PIPELINE_ZB_V;
}

static bool has_compiled_zero_bubble(const struct choices *c)
{
    return has_zero_bubble(c) && c->kernels == KERNELS_COMPILED;
}

static bool has_subsequences(const struct choices *c)
{
    return c->subsequences > 1;
}

static bool has_uneven_stages(const struct choices *c)
{
    return c->pp > 1 && c->model->layers % pipeline_chunks(c) != 0;
}

/* On one node all orders of ranks are equivalent. */
static bool has_near_stages(const struct choices *c)
{
    return c->pp > 1 && c->dp > 1 && c->stage_placement == STAGES_INNER &&
           (int64_t)c->ranks > c->gpus_per_node;
}

/* Of torchtitan's models only those of Qwen3 have norms of heads. */
static bool has_stages_of_qwen3(const struct choices *c)
{
    return c->pp > 1 && c->model->qk_norm;
}

/* ---- weights and precision ---- */

static bool has_replicated_states(const struct choices *c)
{
    return expressible_sharing(c) > 1 &&
           (c->weights == CHOICE_WEIGHTS_REPLICATED || c->weights == CHOICE_WEIGHTS_ZERO1);
}

static bool has_zero2(const struct choices *c)
{
    return c->weights == CHOICE_WEIGHTS_ZERO2;
}

bool expressible_has_small_shards(const struct choices *c)
{
    return c->weights == CHOICE_WEIGHTS_HSDP && c->shard % (c->cp * c->hp) != 0;
}

static bool has_mics(const struct choices *c)
{
    return c->weights == CHOICE_WEIGHTS_HSDP && c->shard < expressible_sharing(c);
}

/* ZeRO-2 and above: deepspeed/runtime/pipe/engine.py; NVIDIA/Megatron-LM issue 1455. */
static bool has_sharded_pipeline(const struct choices *c)
{
    return c->pp > 1 && c->weights >= CHOICE_WEIGHTS_ZERO2;
}

static bool has_host_optimizer(const struct choices *c)
{
    return c->optimizer == CHOICE_OPTIMIZER_HOST;
}

static bool has_narrow_products(const struct choices *c)
{
    return c->products != PRODUCTS_BF16;
}

static bool has_bf16_states(const struct choices *c)
{
    return c->states == STATES_BF16;
}

static bool has_8bit_states(const struct choices *c)
{
    return c->states == STATES_8BIT;
}

static bool has_dropout(const struct choices *c)
{
    return c->attention_dropout;
}

static bool has_f16(const struct choices *c)
{
    return c->dtype == DTYPE_F16;
}

/* True if every rank of a stage holds all weights of its tensor share: there is no other rank to shard over, or HSDP
 * shards over one rank and FSDP can express that. FSDP casts only parameters that it shards, so these would stay
 * float32. */
static bool has_whole_weights(const struct choices *c)
{
    bool alone = c->weights == CHOICE_WEIGHTS_HSDP && c->shard == 1;
    return expressible_sharing(c) == 1 || (alone && !expressible_has_small_shards(c));
}

static bool has_whole_bf16(const struct choices *c)
{
    return c->dtype == DTYPE_BF16 && c->states != STATES_BF16 && has_whole_weights(c);
}

static bool has_copies_beside(const struct choices *c)
{
    return expressible_sharing(c) > 1 && has_whole_weights(c) && (c->tp > 1 || c->pp > 1);
}

static bool has_states_in_groups(const struct choices *c)
{
    return c->weights == CHOICE_WEIGHTS_ZERO1 && c->shard < expressible_sharing(c);
}

/* ---- activations and pieces ---- */

static bool has_selective(const struct choices *c)
{
    return c->activations == CHOICE_ACTIVATIONS_SELECTIVE ||
           c->activations == CHOICE_ACTIVATIONS_SELECTIVE_OFFLOAD;
}

static bool has_every_second(const struct choices *c)
{
    return c->activations == CHOICE_ACTIVATIONS_SELECTIVE_OP ||
           c->activations == CHOICE_ACTIVATIONS_SELECTIVE_LAYER;
}

static bool has_core_alone(const struct choices *c)
{
    return c->activations == CHOICE_ACTIVATIONS_SELECTIVE_CORE;
}

static bool has_offload(const struct choices *c)
{
    return c->activations == CHOICE_ACTIVATIONS_OFFLOAD ||
           c->activations == CHOICE_ACTIVATIONS_SELECTIVE_OFFLOAD;
}

static bool has_ratio(const struct choices *c)
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

static bool has_fused_layers(const struct choices *c)
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

static bool has_other_megatron_loss(const struct choices *c)
{
    return c->loss != LOSS_MEGATRON && c->loss != LOSS_TE;
}

static bool has_other_titan_loss(const struct choices *c)
{
    return has_chosen_loss(c) && c->loss != LOSS_COMPILED;
}

/* With FPDT, its code decides how many pieces the loss and the feed-forward part have. */
static bool has_other_loss_chunks(const struct choices *c)
{
    return has_chunks(c) ? c->loss_chunks != resolve_usual_pieces(c).loss : has_loss_chunks(c);
}

static bool has_other_ffn_chunks(const struct choices *c)
{
    return has_chunks(c) ? c->ffn_chunks != resolve_usual_pieces(c).ffn : has_ffn_chunks(c);
}

/* ---- implementations ---- */

static bool has_other_kernels(const struct choices *c)
{
    return c->dtype != DTYPE_F32 && c->attention_impl != ATTENTION_FA2;
}

static bool has_profile(const struct choices *c, const char *name)
{
    return c->profile->ideal || strcmp(c->profile->name, name) == 0;
}

static bool is_not_torchtitan(const struct choices *c)
{
    return !has_profile(c, "torchtitan");
}

/* The rings and exchanges of Megatron-LM are TransformerEngine's. */
static bool is_not_megatron(const struct choices *c)
{
    bool shared = has_ring(c) || has_heads(c);
    return !has_profile(c, "megatron-te") && (shared || !has_profile(c, "megatron"));
}

static bool is_not_deepspeed(const struct choices *c)
{
    return !has_profile(c, "deepspeed");
}

/* ---- models ---- */

static bool has_odd_biases(const struct choices *c)
{
    const struct transformer *m = c->model;
    return m->bias_o != m->bias_ffn || (m->bias_o && !m->bias_qkv);
}

static bool has_head_norms(const struct choices *c)
{
    return c->model->qk_norm;
}

static bool has_qkv_bias_alone(const struct choices *c)
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

/* Branches that are not Llama's or GPT's; torchtitan's models are known by flavors. */
static bool has_other_branches(const struct choices *c)
{
    const struct transformer *m = c->model;
    return m->norm_place != NORM_BEFORE || m->qk_norm_wide || m->activation == ACTIVATION_GEGLU ||
           m->activation == ACTIVATION_RELU2;
}

/* TransformerEngine refuses a window of keys where messages go from rank to rank. */
static bool has_windowed_ring(const struct choices *c)
{
    return has_attention_windows(c) && c->cp > 1;
}

static bool has_late_windows(const struct choices *c)
{
    return has_attention_windows(c) && c->model->window_from_layer > 0;
}

/* ---- Trainer's family: Axolotl, LLaMA-Factory, TRL ---- */

bool expressible_is_ddp(const struct choices *c)
{
    return c->weights == CHOICE_WEIGHTS_REPLICATED && !has_host_optimizer(c) &&
           c->ranks == c->dp; /* no ranks share a sequence or layers */
}

bool expressible_needs_zero(const struct choices *c)
{
    return c->weights == CHOICE_WEIGHTS_ZERO1 || has_zero2(c) || has_host_optimizer(c);
}

/* True if gradients of more than one micro-batch are reduced at other times than `usual`. */
static bool has_sync_but(const struct choices *c, uint8_t usual)
{
    return c->accumulation > 1 && expressible_sharing(c) > 1 &&
           c->weights >= CHOICE_WEIGHTS_ZERO2 && c->grad_sync != usual;
}

static bool has_other_sync(const struct choices *c)
{
    const struct profile *p = c->profile;
    bool last = p->accumulates_whole || (c->pp > 1 && p->stages_accumulate);
    return has_sync_but(c, last ? GRAD_SYNC_LAST : GRAD_SYNC_EACH);
}

/* DeepSpeed reduces in each micro-batch, FSDP under Trainer as the profile has it. */
static bool has_other_trainer_sync(const struct choices *c)
{
    return expressible_needs_zero(c) ? has_sync_but(c, GRAD_SYNC_EACH) : has_other_sync(c);
}

static bool has_kept_weights(const struct choices *c)
{
    return expressible_sharing(c) > 1 && c->weights >= CHOICE_WEIGHTS_ZERO3 &&
           c->reshard == RESHARD_NEVER;
}

static bool has_kept_weights_by_zero(const struct choices *c)
{
    return has_kept_weights(c) && expressible_needs_zero(c);
}

static bool has_whole_logits(const struct choices *c)
{
    return c->tp > 1 && c->vocabulary != VOCABULARY_CUT;
}

/* Transformers gathers logits where the head is of its own and divides. */
static bool has_other_logits(const struct choices *c)
{
    bool gathers = !c->model->tied_head && c->model->vocab % c->tp == 0;
    return c->tp > 1 && c->vocabulary != (gathers ? VOCABULARY_GATHERED : VOCABULARY_CUT);
}

static bool has_fused_loss_in_parts(const struct choices *c)
{
    return c->tp > 1 && c->loss == LOSS_FUSED;
}

static bool has_stages(const struct choices *c)
{
    return c->pp > 1;
}

static bool has_tensor_ranks(const struct choices *c)
{
    return c->tp > 1;
}

static bool has_expert_ranks(const struct choices *c)
{
    return c->ep > 1;
}

static bool has_all_to_alls(const struct choices *c)
{
    return has_ring(c) && c->rotation == ROTATE_ALL_TO_ALL;
}

static bool has_other_slices(const struct choices *c)
{
    return has_ring(c) && c->ring_layout != RING_CONTIGUOUS;
}

static bool has_whole_copies_beside(const struct choices *c)
{
    return c->weights == CHOICE_WEIGHTS_REPLICATED && !expressible_is_ddp(c);
}

static bool has_zero_beside(const struct choices *c)
{
    return expressible_needs_zero(c) && (has_ring(c) || has_tensor_ranks(c));
}

static bool has_zero1(const struct choices *c)
{
    return c->weights == CHOICE_WEIGHTS_ZERO1;
}

static bool has_single_copies(const struct choices *c)
{
    return c->weights == CHOICE_WEIGHTS_HSDP && c->shard == c->cp * c->hp &&
           expressible_sharing(c) > c->shard;
}

static bool has_host_but_zero2(const struct choices *c)
{
    return has_host_optimizer(c) && !has_zero2(c);
}

static bool has_host_without_zero(const struct choices *c)
{
    return has_host_optimizer(c) &&
           (c->weights == CHOICE_WEIGHTS_REPLICATED || c->weights == CHOICE_WEIGHTS_HSDP);
}

static bool has_8bit_on_host(const struct choices *c)
{
    return has_8bit_states(c) && has_host_optimizer(c);
}

/* True if parameters stay in bf16 without FSDP and DeepSpeed; Axolotl reads all models in the type it computes in. */
static bool has_narrow_copies(const struct choices *c)
{
    return expressible_is_ddp(c) && c->dtype == DTYPE_BF16;
}

static bool has_other_axolotl_states(const struct choices *c)
{
    return (has_bf16_states(c) && !has_narrow_copies(c)) ||
           (c->states == STATES_FP32 && has_narrow_copies(c));
}

static bool has_bf16_states_in_shards(const struct choices *c)
{
    return has_bf16_states(c) && !has_narrow_copies(c);
}

static bool has_bf16_states_by_zero(const struct choices *c)
{
    return has_bf16_states(c) && (c->dtype != DTYPE_BF16 || expressible_needs_zero(c));
}

static bool has_other_dropout(const struct choices *c)
{
    return c->attention_dropout != (c->model->attention_dropout > 0);
}

static bool has_other_plan(const struct choices *c)
{
    return has_tensor_ranks(c) && c->profile->tensor_plan != c->tensor_plan &&
           !(c->profile->tensor_plan == TENSOR_PLAN_PROFILE &&
             c->tensor_plan == TENSOR_PLAN_MEGATRON);
}

/* The plans of models of Transformers: all tokens on every tensor rank. */
static bool has_divided_tokens(const struct choices *c)
{
    return has_tensor_ranks(c) && c->tensor_plan != TENSOR_PLAN_REPLICATED;
}

static bool has_eager_kernels(const struct choices *c)
{
    return c->kernels == KERNELS_EAGER;
}

static bool has_liger_in_part(const struct choices *c)
{
    return (c->kernels == KERNELS_LIGER) != (c->loss == LOSS_FUSED);
}

static bool has_compiled_in_part(const struct choices *c)
{
    return (c->kernels == KERNELS_COMPILED) != (c->loss == LOSS_COMPILED);
}

static bool has_other_trainer_loss(const struct choices *c)
{
    return has_other_titan_loss(c) && c->loss != LOSS_FUSED;
}

/* Liger's loss chooses its pieces itself. */
static bool has_other_trainer_pieces(const struct choices *c)
{
    return c->loss == LOSS_FUSED ? c->loss_chunks != resolve_liger_pieces(c) : has_loss_chunks(c);
}

static bool has_pieces_of_other_loss(const struct choices *c)
{
    return has_other_trainer_pieces(c) && has_chosen_loss(c);
}

static bool has_other_flash(const struct choices *c)
{
    uint8_t usual = c->sm >= 90 ? c->profile->attention_impl_90 : c->profile->attention_impl;
    return c->dtype != DTYPE_F32 && c->attention_impl != ATTENTION_FA2 &&
           c->attention_impl != ATTENTION_FA3 && c->attention_impl != usual;
}

static bool has_ring_without_flash(const struct choices *c)
{
    return has_ring(c) && c->attention_impl != ATTENTION_FA2 && c->attention_impl != ATTENTION_FA3;
}

static bool has_ring_with_flash(const struct choices *c)
{
    uint8_t usual = c->sm >= 90 ? c->profile->attention_impl_90 : c->profile->attention_impl;
    return has_ring(c) && c->attention_impl != usual;
}

/* Under DDP in mixed precision Trainer runs under autocast, unless the parameters are bf16 themselves. */
static bool is_not_trainer(const struct choices *c, bool narrow)
{
    bool autocast = expressible_is_ddp(c) && c->dtype != DTYPE_F32 && !narrow;
    return !has_profile(c, autocast ? "hf-ddp" : "hf");
}

static bool is_not_axolotl(const struct choices *c)
{
    return is_not_trainer(c, has_narrow_copies(c));
}

static bool is_not_trl(const struct choices *c)
{
    return is_not_trainer(c, has_narrow_copies(c) && has_bf16_states(c));
}

/* ---- the table ---- */

enum {
    TITAN = 1 << FRAMEWORK_TORCHTITAN,
    MEGATRON = 1 << FRAMEWORK_MEGATRON,
    SPEED = 1 << FRAMEWORK_DEEPSPEED,
    AXOLOTL = 1 << FRAMEWORK_AXOLOTL,
    FACTORY = 1 << FRAMEWORK_LLAMA_FACTORY,
    TRL = 1 << FRAMEWORK_TRL,
    TRAINER = AXOLOTL | FACTORY | TRL,
    ALL = TITAN | MEGATRON | SPEED | TRAINER
};

/* Choices for which a framework has no setting, or only one that means something else. */
/* clang-format off */
static const struct gap {
    unsigned frameworks;
    bool (*is_chosen)(const struct choices *c);
    const char *what;
} gaps[] = {
    {TITAN | AXOLOTL, has_heads,            "head ranks (Ulysses): context parallelism is a ring"},
    {TITAN | TRL, has_messages,                 "keys and values as messages round the ring: an all-gather, or all-to-alls, which are set"},
    {MEGATRON, has_other_rotation,           "keys and values by all-to-alls, or gathered beside head ranks: messages are set"},
    {SPEED,    has_ring,                     "rings: sequences are cut by heads alone (Ulysses), and set so"},
    {FACTORY,  has_heads,                    "head ranks (Ulysses): it has none"},
    {TRL,      has_heads,                    "head ranks (Ulysses): `accelerate launch` has no argument for them, only its configuration file"},
    {SPEED,    has_heads_in_parts,           "head ranks beside tensor ranks or stages: they are set, and Megatron-DeepSpeed refuses them"},
    {MEGATRON | SPEED | TRAINER, has_expert_ranks, "experts spread over ranks (--ep)"},
    {AXOLOTL,  has_all_to_alls,              "keys and values by all-to-alls: ring_attn_func has an all-gather and messages"},
    {FACTORY,  has_ring,                     "rings: it has none"},
    {FACTORY,  has_tensor_ranks,             "tensor ranks: it has none"},
    {TITAN | MEGATRON | TRL | AXOLOTL, has_windows,          "windows of a double ring"},
    {AXOLOTL,  has_other_slices,             "tokens in other slices than contiguous ones"},
    {AXOLOTL,  has_ring_without_flash,       "a ring without FlashAttention: it needs --attention fa2 or fa3"},
    {TRL,      has_ring_with_flash,          "a ring by other attention than PyTorch's sdpa"},
    {TITAN | MEGATRON | TRL, has_other_layout,     "tokens in other slices than a zigzag's, which both have"},
    {MEGATRON, has_context_first,            "context-first placement: head ranks are neighbours"},
    {MEGATRON, has_copied_heads,             "head ranks over which key and value heads do not divide"},
    {ALL,      has_copied_tensor_heads,      "tensor ranks over which key and value heads do not divide"},
    {MEGATRON, has_fused_merges,             "merges of a ring as one kernel (--compile)"},
    {ALL,      has_sparse_attention,         "attention that leaves keys of other chunks out (--sparsity)"},
    {TITAN | MEGATRON | TRAINER, has_chunks,           "chunks of the sequence (FPDT)"},
    {ALL,      has_head_stages,              "Ulysses in stages of heads (UPipe): all heads are exchanged at once"},
    {SPEED,    has_other_chunk_order,        "a backward of chunks with queries outside: keys are"},
    {SPEED,    has_one_fetch,                "chunks that one rank fetches for all: each fetches its own part"},
    {TRAINER,  has_stages,                   "pipeline stages: Trainer has none"},
    {MEGATRON | SPEED, has_gpipe,            "all forwards before all backwards (GPipe); 1F1B is set"},
    {SPEED,    has_interleaved,              "several parts of the layers a stage; one is set"},
    {MEGATRON | SPEED, has_zero_bubble,      "zero-bubble pipelines; 1F1B is set"},
    {TITAN,    has_zb_1p,                    "zero bubble with one part of the layers a stage: InterleavedZeroBubble is set, and takes two or more"},
    {TITAN,    has_compiled_zero_bubble,     "zero bubble of compiled layers: both are set, and PyTorch refuses them"},
    {ALL,      has_subsequences,             "subsequences of a pipeline (SPPO, Seq1F1B): sequences are whole"},
    {MEGATRON | SPEED, has_uneven_stages,    "stages of which some have a layer more than others"},
    {TITAN,    has_stages_of_qwen3,          "stages of a Qwen3: torchtitan 0.2 has none (pipelining_fn), and refuses the degree that is set"},
    {TITAN | SPEED, has_near_stages,         "stages nearer to each other than ranks with other sequences: they are the outermost ranks"},
    {TITAN,    has_replicated_states,        "optimizer states sharded alone: FSDP shards all, DDP nothing; FSDP is set"},
    {TITAN,    has_zero2,                    "gradients sharded and parameters kept: reshard_after_forward = \"never\" comes near"},
    {TITAN | MEGATRON | SPEED, has_other_sync, "gradients of micro-batches that are reduced at other times (--grad-sync)"},
    {TRAINER,  has_other_trainer_sync,       "gradients of micro-batches that are reduced at other times: in each by DeepSpeed (ZeRO-2, AdamW on the host), after the last by FSDP"},
    {MEGATRON | SPEED, has_kept_weights,     "gathered parameters that stay until the backward (--reshard never)"},
    {TRAINER,  has_kept_weights_by_zero,     "gathered parameters that stay until the backward (--reshard never) by DeepSpeed"},
    {TITAN | MEGATRON | SPEED, has_whole_logits, "logits that tensor ranks gather (--vocabulary): they keep their parts"},
    {TRAINER,  has_other_logits,             "logits that tensor ranks keep in parts: a head that divides gathers them (--vocabulary gathered)"},
    {TRAINER,  has_fused_loss_in_parts,      "a fused loss of tensor ranks"},
    {TRAINER,  has_whole_copies_beside,      "copies of whole weights beside ranks that share a sequence or layers, or with an optimizer on the host"},
    {FACTORY,  has_zero1,                    "optimizer states sharded alone: its files of DeepSpeed have stages 0, 2 and 3"},
    {TRAINER,  has_zero_beside,              "DeepSpeed (ZeRO-1, or AdamW on the host) beside a ring or tensor ranks"},
    {TRAINER,  has_single_copies,            "copies of weights that no ranks share, beside FSDP: Accelerate refuses dp_shard_size 1"},
    {TITAN | TRAINER, expressible_has_small_shards, "shards within fewer ranks than share a sequence: FSDP shards over all of these; shards over all ranks are set"},
    {FACTORY,  has_mics,                     "shards within fewer ranks: FSDP shards over all"},
    {SPEED,    has_mics,                     "shards within fewer ranks (MiCS), which is set: DeepSpeed refuses it from 0.19.7 on"},
    {MEGATRON, has_sharded_pipeline,         "gradients or parameters sharded in a pipeline: they are set, and Megatron-FSDP has no stages"},
    {SPEED,    has_sharded_pipeline,         "ZeRO-2 and ZeRO-3 in a pipeline: they are set, and DeepSpeed refuses them"},
    {TITAN,    has_dropout,                  "dropout of attention scores (--dropout on): it has none"},
    {TITAN,    has_host_optimizer,           "optimizer states alone on the host: offload takes parameters and gradients along"},
    {AXOLOTL,  has_host_optimizer,           "AdamW on the host alone: its file of DeepSpeed that says so sends parameters along"},
    {FACTORY,  has_host_but_zero2,           "AdamW on the host but with ZeRO-2: its file of stage 3 sends parameters along"},
    {TRL,      has_host_without_zero,        "AdamW on the host without ZeRO-1, 2 or 3"},
    {TRAINER,  has_8bit_on_host,             "moments in 8 bits on the host"},
    {AXOLOTL,  has_other_axolotl_states,     "states of this type: they are bf16 under DDP, where models are read in bf16, and fp32 or 8 bits elsewhere"},
    {TRL,      has_bf16_states_in_shards,    "bf16 states (--states bf16) but under DDP: FSDP and DeepSpeed make parameters fp32"},
    {FACTORY,  has_bf16_states_by_zero,      "bf16 states (--states bf16) without pure_bf16, or with DeepSpeed"},
    {TRAINER,  has_other_dropout,            "dropout of attention scores other than the model's own (--dropout)"},
    {MEGATRON | SPEED, has_bf16_states,      "bf16 states without an fp32 copy of the parameters (--states bf16): fp32 states are set"},
    {TITAN | MEGATRON | SPEED, has_8bit_states,              "moments in 8 bits (--states 8bit): they stay in fp32"},
    {TITAN,    has_f16,                      "fp16: parameters are bfloat16 or float32; bfloat16 is set"},
    {TITAN,    has_whole_bf16,               "bfloat16 where weights are not sharded: FSDP alone casts parameters, which stay float32"},
    {TITAN,    has_copies_beside,            "copies of whole weights (DDP) beside tensor ranks or stages: they are set, and torchtitan refuses them"},
    {TITAN,    has_selective,                "selective checkpoints that keep attention's output: mode = \"selective\" with option \"op\" keeps products too"},
    {MEGATRON, has_selective,                "selective checkpoints that keep attention's output: selective recomputation of core_attn does the opposite; full is set"},
    {SPEED | TRAINER, has_selective,                "checkpoints that keep attention's output"},
    {ALL,      has_narrow_products,          "products in 8 or 4 bits (--products): those of --dtype are set"},
    {ALL,      has_states_in_groups,         "optimizer states over some of the ranks: all share them"},
    {TITAN | SPEED | TRAINER, has_core_alone,          "recomputation of attention's core alone: full is set"},
    {MEGATRON | SPEED | TRAINER, has_every_second,     "checkpoints of every second product or layer: full is set"},
    {TITAN | MEGATRON, has_offload,          "layer inputs on the host"},
    {ALL,      has_ratio,                    "part of the activations on the host (SPPO): all of them stay"},
    {TITAN,    has_fused_layers,             "Liger-Kernel's layers"},
    {TRAINER,  has_eager_kernels,            "operators of PyTorch one after the other by choice (--kernels eager): they are, without a setting"},
    {FACTORY | TRL, has_liger_in_part,       "Liger-Kernel's layers without its loss, or its loss without them"},
    {TRAINER,  has_compiled_in_part,         "compiled layers without a compiled loss, or the loss without them"},
    {TRAINER,  has_other_trainer_loss,       "the loss by other kernels than its own, compiled ones or Liger's (--loss)"},
    {FACTORY | TRL, has_other_trainer_pieces, "the loss in pieces"},
    {AXOLOTL,  has_pieces_of_other_loss,     "a loss in pieces other than its own"},
    {TITAN | MEGATRON | SPEED, has_other_plan, "tensor ranks that share inputs by another plan than its own (--tensor-plan)"},
    {TRAINER,  has_divided_tokens,           "tensor ranks that share tokens too: it needs --tensor-plan replicated"},
    {MEGATRON | SPEED, has_chosen_kernels,   "layers by other kernels than its own (--kernels)"},
    {TITAN,    has_other_titan_loss,         "the loss by other kernels than its own or compiled ones (--loss)"},
    {SPEED,    has_chosen_loss,                  "the loss by other kernels than its own (--loss)"},
    {MEGATRON, has_other_megatron_loss,      "the loss by other kernels than its own or TransformerEngine's (--loss)"},
    {TITAN | MEGATRON, has_loss_chunks,      "the loss in pieces"},
    {SPEED,    has_other_loss_chunks,        "the loss in pieces, but for those of FPDT's chunks"},
    {TITAN | MEGATRON | FACTORY | TRL, has_ffn_chunks,       "the feed-forward part in pieces"},
    {SPEED,    has_other_ffn_chunks,         "the feed-forward part in pieces, but for those of FPDT's chunks"},
    {TITAN | SPEED, has_other_kernels,       "attention by other kernels than FlashAttention-2"},
    {TRAINER,  has_other_flash,              "attention by other kernels than sdpa's or FlashAttention"},
    {AXOLOTL,  is_not_axolotl,               "what is predicted is another implementation; its own is --profile hf, but under DDP in fp16 hf-ddp"},
    {FACTORY | TRL, is_not_trl,              "what is predicted is another implementation; its own is --profile hf, or hf-ddp under DDP"},
    {TITAN,    is_not_torchtitan,            "what is predicted is another implementation; its own is --profile torchtitan"},
    {MEGATRON, is_not_megatron,              "what is predicted is another implementation; its own is --profile megatron, with context ranks megatron-te"},
    {SPEED,    is_not_deepspeed,             "what is predicted is another implementation; its own is --profile deepspeed"},
};

/* Properties of models for which a framework has no setting. */
static const struct gap models[] = {
    {MEGATRON | SPEED, has_experts, "experts: those of one layer are written as a dense feed-forward part"},
    {MEGATRON, has_odd_biases,     "biases are everywhere, with the queries' projection alone, or nowhere"},
    {SPEED,    has_qkv_bias_alone, "biases are everywhere or nowhere"},
    {MEGATRON | SPEED, has_other_branches, "norms at the ends of branches or over all heads, GEGLU, squared ReLU"},
    {SPEED,    has_head_norms,     "norms of query and key heads"},
    {SPEED,    has_attention_windows, "attention that sees a window of keys"},
    {MEGATRON, has_windowed_ring,  "a ring whose attention sees a window of keys"},
    {MEGATRON, has_late_windows,   "windows that begin at a later layer than the first"},
};
/* clang-format on */

static void put_rows(struct text *out, enum framework framework, const struct choices *c,
                     const struct gap *row, size_t count, const char *head)
{
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        if ((row[i].frameworks >> framework & 1u) == 0 || !row[i].is_chosen(c))
            continue;
        text_printf(out, "%s#   %s\n", any ? "" : head, row[i].what);
        any = true;
    }
}

bool expressible(enum framework framework, const struct choices *c)
{
    for (size_t i = 0; i < ARRAY_LEN(gaps); i++)
        if ((gaps[i].frameworks >> framework & 1u) != 0 && gaps[i].is_chosen(c))
            return false;
    return true;
}

enum status expressible_check(enum framework framework, const struct choices *c, struct diag *diag)
{
    struct text list = {0};
    for (size_t i = 0; i < ARRAY_LEN(gaps); i++)
        if ((gaps[i].frameworks >> framework & 1u) != 0 && gaps[i].is_chosen(c))
            text_printf(&list, "%s%s", list.size > 0 ? "; " : "", gaps[i].what);
    enum status status = STATUS_OK;
    if (list.size > 0)
        status = diag_error(diag, (struct loc){.name = "--emit"}, STATUS_BAD_INPUT,
                            "%s has no settings for this configuration: %s",
                            framework_names[framework], list.data);
    text_release(&list);
    return status;
}

void expressible_put_gaps(struct text *out, enum framework framework, const struct choices *c)
{
    put_rows(out, framework, c, gaps, ARRAY_LEN(gaps),
             "# not expressed, so that the prediction is of something else:\n");
    put_rows(out, framework, c, models, ARRAY_LEN(models),
             "# no settings make this model; those below are of what comes nearest:\n");
}

const char *expressible_profile(enum framework framework, const struct strategy *strategy)
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

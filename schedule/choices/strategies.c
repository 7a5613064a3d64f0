/* The registries of strategies and profiles, the names of choices, and the properties of dispatchers. docs/strategies/
 * gives the sources of the values. */
#include "schedule/choices/strategies.h"
#include "schedule/choices/choices.h"
#include "schedule/choices/profile.h"

const char *const attention_names[CHOICE_ATTENTION_COUNT] = {
#define ATTENTION(symbol, name, around, inner, cp, hp, simpler_at_one) name,
#include "schedule/choices/attention_choices.def"
#undef ATTENTION
};
#define NAMES(choice, count, ...) const char *const choice##_names[count] = {__VA_ARGS__};
#include "schedule/choices/names.def"
#undef NAMES
const struct attention_axes attention_axes[CHOICE_ATTENTION_COUNT] = {
#define ATTENTION(symbol, name, around, inner, cp, hp, simpler_at_one) {cp, hp, simpler_at_one},
#include "schedule/choices/attention_choices.def"
#undef ATTENTION
};
const struct dispatcher_facts dispatcher_facts[DISPATCHER_COUNT] = {
    [DISPATCHER_DEEPEP] = {.sends_once = true, .exchange_sms = 20},
    [DISPATCHER_HYBRIDEP] = {.sends_once = true, .bounds_rows = true, .exchange_sms = 16},
};

bool dispatcher_needs_counts(const struct choices *c)
{
    return !c->expert_capacity.pads &&
           !(c->cuda_graphs == CUDA_GRAPHS_STEP && dispatcher_facts[c->dispatcher].bounds_rows);
}

/* The strategies. Members that a row leaves out are 0. */
/* clang-format off */
static const struct strategy strategies[] = {
    {.name = "ulysses", .summary = "trade sequence shards for head shards around attention (DeepSpeed-Ulysses)",
     .attention = CHOICE_ATTENTION_ULYSSES, .weights = CHOICE_WEIGHTS_ZERO3,
     .activations = CHOICE_ACTIVATIONS_FULL, .profile = "deepspeed", .max_compared_ranks = 32},
    {.name = "ring", .summary = "pass key and value blocks round the ranks of a sequence (Ring Attention, zigzag)",
     .attention = CHOICE_ATTENTION_RING, .weights = CHOICE_WEIGHTS_ZERO3,
     .activations = CHOICE_ACTIVATIONS_FULL, .profile = "internevo", .max_compared_ranks = 64},
    {.name = "2d", .summary = "Ulysses inside groups of ranks, a ring or a double ring between them (LoongTrain)",
     .attention = CHOICE_ATTENTION_2D, .weights = CHOICE_WEIGHTS_ZERO3,
     .activations = CHOICE_ACTIVATIONS_FULL, .profile = "internevo", .max_compared_ranks = 64},
    {.name = "fpdt", .summary = "Ulysses chunk by chunk, the other chunks' keys and values on the host (FPDT, Ulysses-Offload)",
     .attention = CHOICE_ATTENTION_FPDT, .weights = CHOICE_WEIGHTS_ZERO3,
     .activations = CHOICE_ACTIVATIONS_OFFLOAD, .profile = "deepspeed", .max_compared_ranks = 8},
    {.name = "upipe", .summary = "Ulysses in stages of one query head a rank, so that q, k and v exist for one stage (Untied Ulysses)",
     .attention = CHOICE_ATTENTION_UPIPE, .weights = CHOICE_WEIGHTS_ZERO3,
     .activations = CHOICE_ACTIVATIONS_FULL, .profile = "torchtitan"},
    {.name = "megatron-sp", .summary = "heads, feed-forward width and vocabulary over ranks, tokens between (Megatron)",
     .attention = CHOICE_ATTENTION_LOCAL, .weights = CHOICE_WEIGHTS_ZERO1, .fills_tp = true,
     .activations = CHOICE_ACTIVATIONS_FULL, .profile = "megatron", .max_compared_ranks = 16},
    {.name = "sppo", .summary = "megatron-sp on subsequences in a pipeline, activations to the host by ratio (SPPO)",
     .attention = CHOICE_ATTENTION_LOCAL, .weights = CHOICE_WEIGHTS_ZERO1, .fills_tp = true,
     .fills_subsequences = true, .activations = CHOICE_ACTIVATIONS_RATIO, .profile = "megatron",
     .max_compared_ranks = 64},
    {.name = "local", .summary = "whole sequences on every rank: data parallelism alone",
     .attention = CHOICE_ATTENTION_LOCAL, .weights = CHOICE_WEIGHTS_ZERO3,
     .activations = CHOICE_ACTIVATIONS_FULL, .profile = "deepspeed"},
};

/* The switches that profiles neutral, fsdp-gloo and ideal share. Profile neutral leaves all others but prefetch_layers
 * off: each stands for a copy, wait, pass or buffer that only some frameworks have. docs/strategies/profiles.md,
 * "Profile neutral", has the reason for every value. */
#define NEUTRAL_SWITCHES                                                                                              \
     .attention_impl = ATTENTION_FA2, .attention_impl_since_hopper = ATTENTION_CUDNN, /* the fastest in each device's file */ \
     .kv_replication = KV_COPIED_TO_HEAD_RANKS,                                                                       \
     .copies_before = 1,                /* one kernel packs q, k and v; what arrives is in token order */             \
     .rotation = ROTATE_P2P,            /* two blocks are in memory, and tiles hide the messages */                   \
     .ring_sums_kv_gradients_in_fp32 = true, .prefix_sums_kv_gradients_in_fp32 = true, /* fp32, as the other sums */  \
     .vocabulary_rows_multiple = 64,    /* 128 bytes on each tensor rank, with which tensor cores run at full rate */ \
     .grad_dtype = DTYPE_F32,           /* accumulated and reduced in fp32: Megatron-LM's and torchtitan's default */ \
     .sharded_params_f32 = true,        /* as FSDP2: no bf16 copy beside the optimizer's shard */                     \
     .reduces_gradients_in_place = true, /* ZeRO-1: a rank's part lies in its gradients, as Megatron-LM has it */     \
     .most_elements_of_gradient_bucket = 40000000, /* DistributedDataParallelConfig.bucket_size */                    \
     .param_reuse_distance_elements = 1, /* the head, which is read next, stays gathered, as in torchtitan */         \
     .activation_weights_copies = true, /* then the backward needs nothing that experts write */                      \
     .clipping = CLIPPING_IN_OPTIMIZER_STEP, /* one pass for the norm; AdamW scales what it reads */                  \
     .loss = LOSS_TE,                   /* one kernel, which writes the gradient over the logits */                   \
     .merges_partial_outputs_in_one_kernel = true /* as ring-flash-attention under torch.jit, TransformerEngine */

/* The switches that the profiles of PyTorch's own parallelism share. */
#define PYTORCH_SWITCHES                                                                                              \
     .copies_before = 1, .copies_after = 1,                                                                           \
     .rotation = ROTATE_ALL_GATHER,     /* rotate_method of _context_parallel */                                      \
     .moments_allocated_in_step = true, /* torch.optim.AdamW: _init_group() in step() */                              \
     .ring_messages_share_stream = true, /* one process group, one NCCL stream */                                     \
     .ring_packs_messages = true,       /* torch.cat of keys and values, and of their gradients */                    \
     .shifts_gathered_kv_gradients = true, /* gradients always go round by all_to_all */                              \
     .ring_sums_kv_gradients_in_fp32 = true, /* convert_to_f32 */                                                     \
     .tensor_plan = TENSOR_PLAN_GATHER_PER_MODULE, /* parallelize_module() with PrepareModuleInput, as torchtitan */             \
     .backward_quantises_again = true,  /* torchao/float8/float8_linear.py: save_for_backward(input_hp, ...) */       \
     .prefetch_layers = 1,              /* FSDP1: BACKWARD_POST is issued after a unit's backward, by a host that runs ahead */ \
     .host_dtensor_product_s = 250e-6,  /* DTensor's dispatch and redistribution; docs/costs.md, "The host" */        \
     .compute_waits_for_reductions = true /* FSDP1: _post_backward_final_callback() */

/* The profiles. Switches that a row leaves out are off. A comment after a value says where the value comes from: mostly
 * a file, function or setting of the framework, or another profile. */
static const struct profile profiles[] = {
    {.name = "deepspeed", .summary = "Megatron-DeepSpeed 0.14 with Ulysses and ZeRO",
     .attention_impl = ATTENTION_FA2, .attention_impl_since_hopper = ATTENTION_FA2,
     .kv_replication = KV_COPIED_TO_QUERY_HEADS, /* the plain Ulysses path has no grouped queries */
     .copies_before = 2, .copies_after = 2,
     .rope_after_exchange = true, .forward_exchange_blocks_compute = true, .backward_exchange_blocks_compute = true,
     .rotation = ROTATE_P2P,
     .ring_sums_kv_gradients_in_fp32 = true, /* it has no ring: as ring-flash-attention */
     .tensor_comm_after_compute = true, .tensor_gathers_share_buffer = true, /* as Megatron-LM, of which this code is a copy */
     .vocabulary_rows_multiple = 128,   /* as Megatron-LM */
     .prefix_keys_copied = true,        /* assumed as in Seq1F1B (torch.cat): the framework has no subsequences */
     .recomputes_whole_layer = true,
     .loss = LOSS_BY_FP32_SOFTMAX,      /* sequence-parallel cross entropy: 14 bytes per logit */
     .grad_dtype = DTYPE_BF16,
     .reduces_f32 = true,               /* seq_parallel_communication_data_type is fp32 by default: engine.py */
     .checkpoint_offload_is_blocking = true,          /* .to('cpu'), pageable */
     .most_elements_of_gradient_bucket = 500000000, /* reduce_bucket_size */
     .keeps_gradient_bucket = true,     /* contiguous_gradients of stage 3 */
     .keeps_rotary_tables = true,       /* rotary_pos_embedding.py: cos_cached, sin_cached */
     .param_reuse_distance_elements = 1000000000, /* stage3_max_reuse_distance */
     .allocates_gathers_in_own_pool = true, /* partitioned_param_coordinator.py: __allgather_stream */
     .prefetch_layers = 0,              /* inferred from FPDT's steps on two nodes; docs/accuracy.md */
     .compute_waits_for_reductions = true,
     .chunk_copies_share_stream = true, /* fpdt_layer.py: streams `offload` and `general_offload` */
     .host_waits_after_each_chunk_tile = true, .chunk_refetches_queries = true, .chunk_offloads_norm = true, .chunk_outputs_concatenated = true,
     .loss_recomputes_logits = true,    /* FPDT_LogitsLoss keeps only its input */
     .loss_offloads_input = true,       /* lm_output.to('cpu'), and .to(device) piece by piece */
     .chunk_ffn_is_eager = true,        /* FPDT_FFN: bias_gelu and its backward, written in PyTorch */
     .fpdt_sums_weight_gradients_in_fp32 = true, /* grad_w1.add_(torch.matmul(...)) into fp32 zeros */
     .clipping = CLIPPING_BY_SEPARATE_PASS, /* step(): scaled_global_norm(), and unscale_and_clip_grads() multiplies always */
     .host_waits_for_gradient_norm = true, /* total_norm.item() */
     .host_grads_f32 = true,            /* stage3.py: _offload_grad_partition_at_boundary(): grad_buffer.float() */
     .host_bytes_per_param_around_adamw = 8 + 4, /* unscale_and_clip_grads(): mul_() moves 8 bytes; the cast to 16 bits reads 4 again */
     .casts_host_params_to_pageable_memory = true, /* _reassign_or_swap_out_partitioned_parameters(): copy_() of another type; Copy.cu */
     .host_per_checkpoint_copy_s = 44e-3}, /* a new pageable tensor, and the code around the copy; docs/accuracy.md */
    {.name = "megatron", .summary = "Megatron-LM core 0.7 with TransformerEngine 1.6",
     .attention_impl = ATTENTION_FA2, .attention_impl_since_hopper = ATTENTION_CUDNN,
     .kv_replication = KV_COPIED_TO_HEAD_RANKS,
     .copies_before = 1, .copies_after = 1,
     .rotation = ROTATE_P2P,            /* as TransformerEngine's ring, megatron-te */
     .ring_sums_kv_gradients_in_fp32 = true,
     .tensor_comm_after_compute = true, /* CUDA_DEVICE_MAX_CONNECTIONS=1: launched in the order of the code */
     .tensor_gathers_share_buffer = true, /* get_global_memory_buffer(): "mpu" */
     .vocabulary_rows_multiple = 128,   /* make_vocab_size_divisible_by, times tensor ranks */
     .pipeline_messages_sync = true,    /* batch_isend_irecv, wait, torch.cuda.synchronize(): batch_p2p_comm, batch_p2p_sync */
     .host_waits_for_expert_counts = true, /* MoEAlltoAllTokenDispatcher, dropless: cuda_sync_point "before_ep_alltoall" */
     .router_by_operators = true,       /* moe_router_fusion is off by default; docs/costs.md */
     .makes_product_call_per_expert = true, /* TransformerEngine, multi_stream_cublas_gemm() */
     .shared_experts = SHARED_EXPERTS_BEFORE_ROUTED, /* moe_layer.py: shared_experts_compute() precedes the dispatch */
     .prefix_keys_copied = true,        /* Seq1F1B, a fork of it: torch.cat */
     .offload_waits_per_unit = true,    /* streams "offload" and "onload" of Seq1F1B's branch flexPP */
     .offload_multiple_of_bytes = 1048576, /* of the same branch */
     .recomputes_whole_layer = true,    /* tensor_parallel.checkpoint() runs the layer again */
     .loss = LOSS_MEGATRON,             /* vocab_parallel_cross_entropy(logits.float()) */
     .grad_dtype = DTYPE_F32,           /* accumulate_allreduce_grads_in_fp32 */
     .placeholder_gradients = true,     /* TransformerEngine, module/base.py: get_dummy_wgrad() */
     .most_elements_of_gradient_bucket = 40000000, /* DistributedDataParallelConfig.bucket_size */
     .zeroes_and_nan_checks_gradients = true, /* zero_grad_buffer(); start_grad_sync(): check_for_nan_in_grad */
     .reduces_after_backward = true,    /* overlap_grad_reduce is off by default: finalize_model_grads() */
     .reduces_gradients_in_place = true, /* start_grad_sync(): local_data_view, a slice of the bucket */
     .prefetch_layers = 1,
     .compute_waits_for_reductions = true,
     .moments_allocated_in_step = true, /* FusedAdam of apex and TransformerEngine: step() makes missing states */
     .clipping = CLIPPING_IN_OPTIMIZER_STEP, /* get_grad_norm_fp32(): multi_tensor_l2norm; multi_tensor_scale only above clip_grad */
     .host_waits_for_gradient_norm = true}, /* total_norm.item() */
    {.name = "internevo", .summary = "InternEvo (LoongTrain): 2D attention and its corners",
     .attention_impl = ATTENTION_FA2, .attention_impl_since_hopper = ATTENTION_FA2,
     .kv_replication = KV_COPIED_TO_HEAD_RANKS,
     .copies_before = 1, .copies_after = 1,
     .rotation = ROTATE_P2P,
     .interleaves_ring_windows = true,
     .tensor_comm_after_compute = true,
     .host_waits_around_core = true,    /* torch.cuda.synchronize() before and after the local attention */
     .host_per_tensor_list_exchange_s = 100e-6, /* all_to_all over lists, batch_isend_irecv; docs/accuracy.md */
     .prefix_keys_copied = true,        /* assumed as in Seq1F1B (torch.cat): the framework has no subsequences */
     .recomputes_whole_layer = true,
     .loss = LOSS_TE,                   /* a fused kernel in place */
     .grad_dtype = DTYPE_BF16,
     .most_elements_of_gradient_bucket = 268435456, /* reduce_bucket_size of 512 MiB of bf16 */
     .prefetch_layers = 1,
     .compute_waits_for_reductions = true,
     .prefetches_weights_after_core = true,        /* _pre_forward_hook_for_out_proj */
     .host_before_optimizer_s = 0.3,    /* norms, loss scale, metrics; docs/accuracy.md */
     .moments_allocated_in_step = true, /* torch.optim.AdamW */
     .clipping = CLIPPING_BY_SEPARATE_PASS, /* compute_norm(), and _unscale_and_clip_grads() multiplies always */
     .host_waits_for_gradient_norm = true,
     .chains = CHAINS_INTERNEVO},       /* norm(x.float()) */
    {.name = "internlm", .summary = "InternLM's training code of 2023, of which InternEvo was made",
     .attention_impl = ATTENTION_FA2, .attention_impl_since_hopper = ATTENTION_FA2,
     .kv_replication = KV_COPIED_TO_HEAD_RANKS, /* it has no grouped queries and no ring: as internevo */
     .copies_before = 1, .copies_after = 1,
     .rotation = ROTATE_P2P,
     .tensor_comm_after_compute = true,
     .prefix_keys_copied = true,
     .recomputes_whole_layer = true,
     .loss = LOSS_TE,                   /* a fused kernel in place */
     .grad_dtype = DTYPE_BF16,
     .most_elements_of_gradient_bucket = 536870912, /* reduce_bucket_size, which is compared with param.numel() */
     .copy_passes_over_bucket = 3,      /* bucket.flatten(), div_(world_size), unflatten_and_copy() */
     .buckets_all_reduced = true,       /* reduce_rank=None: dist.all_reduce() */
     .prefetch_layers = 1,
     .compute_waits_for_reductions = true,
     .host_before_optimizer_s = 0.3,    /* as internevo */
     .moments_allocated_in_step = true, /* torch.optim.AdamW */
     .clipping = CLIPPING_BY_SEPARATE_PASS, /* compute_norm(), and _unscale_and_clip_grads() multiplies always */
     .host_waits_for_gradient_norm = true,
     .chains = CHAINS_INTERNLM},        /* norm(x.float()), torch.optim.AdamW of torch 1.13.1 */
    {.name = "torchtitan", .summary = "torchtitan with PyTorch's context parallelism, January 2025",
     .attention_impl = ATTENTION_FA2, .attention_impl_since_hopper = ATTENTION_FA2,
     .kv_replication = KV_COPIED_TO_QUERY_HEADS, /* its Llama calls repeat_kv before the attention call */
     PYTORCH_SWITCHES,
     .loss = LOSS_EAGER,                /* cross_entropy(pred.float()); train.py: "del pred" before the backward */
     .expandable_segments = true,       /* run_llama_train.sh: PYTORCH_CUDA_ALLOC_CONF */
     .grad_dtype = DTYPE_F32,           /* mixed_precision_reduce */
     .reduces_bf16_states_in_grad_dtype = true, /* its default is float32, whatever training.dtype is */
     .allocates_each_tensor_alone = true, /* nn.Parameter, .grad and torch.optim.AdamW's state of each weight */
     .frees_gradients_between_steps = true, /* zero_grad(), whose set_to_none is true by default */
     .sharded_params_f32 = true,        /* fully_shard with mixed_precision_param = bfloat16 */
     .gathers_to_flat_buffer = true, .allocates_gathers_in_own_pool = true, /* _fsdp_collectives.py: foreach_all_gather(), _copy_out() */
     .host_waits_for_expert_counts = true, /* expert_parallel.py: splits of all_to_all_single to the CPU, tolist() */
     .has_fsdp_root_unit = true,        /* fully_shard(model): tok_embeddings, norm and output; _lazy_init() keeps the root after the forward */
     .stages_reduce_gradients_at_step_end = true, /* torch.distributed.pipelining: backward_maybe_with_nosync() */
     .stages_keep_gathered_parameters = true, /* fsdp_reshard_after_forward = "default": not with pipelines (parallelize.py, apply_fsdp()) */
     .clipping = CLIPPING_BY_SEPARATE_PASS, /* clip_grad_norm_: _foreach_norm, _foreach_mul_ by the clamped factor, no wait */
     .chains = CHAINS_TORCHTITAN},      /* eager code: RMSNorm, apply_rotary_emb, FeedForward */
    {.name = "fsdp1", .summary = "PyTorch's FullyShardedDataParallel as Composer and llm-foundry run it",
     .attention_impl = ATTENTION_FA2, .attention_impl_since_hopper = ATTENTION_FA2,
     .kv_replication = KV_COPIED_TO_QUERY_HEADS,
     PYTORCH_SWITCHES,                           /* it has no ring: as torchtitan */
     .recomputes_whole_layer = true,    /* checkpoint_wrapper of PyTorch 1.13: the whole block */
     .loss = LOSS_COMPILED,             /* mpt_causal_lm: loss_fn is fused_crossentropy unless a file says otherwise */
     .grad_dtype = DTYPE_F32,           /* mixed_precision DEFAULT: reduce_dtype float32 */
     .frees_gradients_between_steps = true, /* zero_grad(), whose set_to_none is true by default */
     .sharded_params_f32 = true,        /* param_dtype is bfloat16: cast before they are gathered */
     .flattens_gradients = true,        /* SplitBackward, _runtime_utils.py: _post_backward_hook() */
     .allocates_gathers_in_own_pool = true, /* _unshard(): unshard_stream */
     .has_fsdp_root_unit = true,        /* _is_root: _root_pre_forward() gathers it, and no forward reshards it */
     .clipping = CLIPPING_BY_SEPARATE_PASS, /* clip_grad_norm_() */
     .host_waits_for_gradient_norm = true}, /* total_norm is all-reduced, and read for the log */
    {.name = "hf", .summary = "Hugging Face's Trainer and TRL: Accelerate with PyTorch's FSDP2 and context parallelism",
     .attention_impl = ATTENTION_FA2,   /* sdpa: the flash kernel */
     .attention_impl_since_hopper = ATTENTION_CUDNN, /* sdpa: sdp_utils.cpp, check_prefer_cudnn_attention() */
     .kv_replication = KV_COPIED_TO_HEAD_RANKS, /* use_gqa_in_sdpa(): enable_gqa where there is no mask */
     PYTORCH_SWITCHES,                           /* as torchtitan; cp_comm_strategy's default is the all-gather */
     .loss = LOSS_EAGER,                /* ForCausalLMLoss: cross_entropy(logits.float()); compute_loss() drops the outputs */
     .grad_dtype = DTYPE_BF16,          /* MixedPrecisionPolicy of bf16: reduce_dtype too */
     .allocates_each_tensor_alone = true, /* nn.Parameter, .grad and torch.optim.AdamW's state of each weight */
     .frees_gradients_between_steps = true, /* zero_grad(), whose set_to_none is true by default */
     .sharded_params_f32 = true,        /* fsdp2_prepare_model() upcasts to fp32 */
     .gathers_to_flat_buffer = true, .allocates_gathers_in_own_pool = true, /* FSDP2, as torchtitan */
     .has_fsdp_root_unit = true,        /* fully_shard of decoder layers, then of the model */
     .frees_root_unit_after_forward = true, /* fsdp2_prepare_model(): fully_shard(model, reshard_after_forward=...) */
     .loss_in_root_unit = true,         /* LlamaForCausalLM.forward(): loss_function(logits, labels) */
     .accumulates_unsharded_gradients = true, /* trainer.py: accelerator.no_sync() in all micro-batches but the last */
     .clipping = CLIPPING_BY_SEPARATE_PASS, /* clip_grad_norm_() */
     .host_waits_for_gradient_norm = true, /* grad_norm is logged */
     .compiled_layers_give_sdpa_a_mask = true, /* masking_utils.py, _ignore_causal_mask_sdpa(): false in torch.compile */
     .chains = CHAINS_HF},              /* LlamaRMSNorm, apply_rotary_pos_emb, LlamaMLP */
    {.name = "hf-ddp", .summary = "Hugging Face's Trainer without FSDP: one GPU or DDP, fp32 parameters under autocast",
     .attention_impl = ATTENTION_FA2,   /* as hf */
     .attention_impl_since_hopper = ATTENTION_CUDNN,
     .kv_replication = KV_COPIED_TO_HEAD_RANKS,
     PYTORCH_SWITCHES,                           /* it has no ring: as hf */
     .loss = LOSS_EAGER,                /* as hf */
     .grad_dtype = DTYPE_F32,           /* .grad has the parameters' type, and DDP reduces it */
     .allocates_each_tensor_alone = true, /* nn.Parameter, .grad and torch.optim.AdamW's state of each weight */
     .frees_gradients_between_steps = true, /* zero_grad(), whose set_to_none is true by default */
     .sharded_params_f32 = true,        /* bf16=True: torch.autocast() over fp32 parameters */
     .most_elements_of_gradient_bucket = 6553600, /* bucket_cap_mb of DistributedDataParallel: 25 MiB */
     .clipping = CLIPPING_BY_SEPARATE_PASS, /* clip_grad_norm_() */
     .host_waits_for_gradient_norm = true, /* grad_norm is logged */
     .compiled_layers_give_sdpa_a_mask = true, /* as hf */
     .chains = CHAINS_HF_AUTOCAST},
    {.name = "megatron-te", .summary = "Megatron-LM with TransformerEngine's context parallelism",
     .attention_impl = ATTENTION_FA2, .attention_impl_since_hopper = ATTENTION_CUDNN,
     .kv_replication = KV_COPIED_TO_HEAD_RANKS,
     .copies_before = 1, .copies_after = 1,
     .rotation = ROTATE_P2P,            /* cp_comm_type's default */
     .ring_keeps_blocks = true,         /* AttnFuncWithCPAndKVP2P */
     .first_tile_waits_for_gather = true, /* cp_comm_type=all_gather: keys and values before any tile */
     .pipeline_messages_sync = true,    /* as megatron */
     .host_waits_for_expert_counts = true, /* as megatron */
     .activation_weights_copies = true, /* Megatron-Core from 0.13 on: experts.py, weighted_bias_swiglu_impl() */
     .router_by_operators = true,       /* moe_router_fusion is off by default; docs/costs.md */
     .makes_product_call_per_expert = true, /* TransformerEngine, multi_stream_cublas_gemm() */
     .expert_bias_by_operators = true,  /* experts.py, TEGroupedMLP._apply_bias(): fc2 has skip_bias_add */
     .clamps_run_as_operators = true,   /* fused_bias_geglu.py, weighted_bias_quick_geglu_impl(): clamp, cat, and torch.tensor(linear_offset) */
     .scaled_rope_runs_as_operators = true, /* rope_utils.py, apply_rotary_pos_emb(): mscale is not supported by TransformerEngine's kernel */
     .core_takes_sinks = true,          /* TransformerEngine from 2.8 on: softmax_type is an operand of cuDNN's graph */
     .shared_experts = SHARED_EXPERTS_BEFORE_ROUTED, /* as megatron */
     .vocabulary_rows_multiple = 128,   /* make_vocab_size_divisible_by */
     .recomputes_whole_layer = true,
     .fuses_norms_into_products = true, /* gpt_layer_specs.py: TELayerNormColumnParallelLinear, IdentityOp for the norm */
     .loss = LOSS_TE,                   /* a fused kernel in place */
     .grad_dtype = DTYPE_F32,           /* main_grad */
     .placeholder_gradients = true,     /* as megatron */
     .most_elements_of_gradient_bucket = 40000000, /* bucket_size of its data parallelism */
     .reduces_gradients_in_place = true, /* start_grad_sync(): local_data_view, a slice of the bucket */
     .prefetch_layers = 1,
     .compute_waits_for_reductions = true,
     .host_runs_te_modules = true,      /* docs/costs.md, "Modules of TransformerEngine" */
     .moments_allocated_in_step = true, /* as megatron */
     .clipping = CLIPPING_IN_OPTIMIZER_STEP, /* as megatron */
     .host_waits_for_gradient_norm = true},
    {.name = "nanotron-2024", .summary = "nanotron of July 2024",
     .attention_impl = ATTENTION_FA2, .attention_impl_since_hopper = ATTENTION_FA2, /* flash_attn_varlen_func() */
     .kv_replication = KV_COPIED_TO_HEAD_RANKS, /* heads of k and v are a multiple of tensor ranks */
     .copies_before = 1, .copies_after = 1, /* it has no all-to-all: as megatron */
     .rotation = ROTATE_P2P, .ring_sums_kv_gradients_in_fp32 = true, /* it has no ring: as megatron */
     .tensor_comm_after_compute = true, /* collectives that are waited for at once */
     .keeps_gathered_product_input = true, /* column_linear(): differentiable_all_gather(), then F.linear() */
     .vocabulary_rows_multiple = 1,     /* make_vocab_size_divisible_by */
     .pipeline_messages_sync = true,    /* p2p.py: shapes go ahead, and the host waits for them */
     .host_waits_for_expert_counts = true, /* it has no experts of this kind: as megatron */
     .prefix_keys_copied = true,        /* assumed as in Seq1F1B (torch.cat): the framework has no subsequences */
     .recomputes_whole_layer = true,    /* CheckpointFunction runs the layer again */
     .loss = LOSS_MEGATRON,             /* _ShardedCrossEntropy of fp32 logits, a copy of Megatron-LM's */
     .loss_copies_logits = true,        /* sharded_logits - logits_max */
     .grad_dtype = DTYPE_F32,           /* accumulate_grad_in_fp32 */
     .adds_grads_after_backward = true, /* FP32GradientAccumulator.backward() */
     .most_elements_of_gradient_bucket = INT64_MAX, /* sync_gradients_across_dp(): one call for all */
     .reduces_after_backward = true, .reduces_gradients_in_place = true, /* reduce_scatter_coalesced() into flat_grad_buffer */
     .prefetch_layers = 1, .compute_waits_for_reductions = true, /* it shards no parameters: as megatron */
     .moments_allocated_in_step = true, /* torch.optim.AdamW */
     .clipping = CLIPPING_BY_SEPARATE_PASS, /* clip_grad_norm(): _foreach_norm(), and _foreach_mul_() always */
     .chains = CHAINS_NANOTRON},        /* eager GLUActivation and loss; norms and rotations of flash-attn */
    {.name = "neutral", .summary = "one well-made implementation of every strategy: the device's best kernels, overlap, no dropout",
     NEUTRAL_SWITCHES, .prefetch_layers = 1},  /* host costs are the device file's, as for a plain PyTorch program */
    {.name = "fsdp-gloo", .summary = "neutral under PyTorch's FSDP over gloo on processors: collectives hold the thread that computes",
     NEUTRAL_SWITCHES,
     .gathers_to_flat_buffer = true,    /* foreach_all_gather_copy_out() */
     .has_fsdp_root_unit = true,        /* fully_shard(model), tests/scripts/record_steps.py */
     .prefetch_layers = 0,              /* foreach_all_gather() with async_op=False: the thread waits, also when it prefetches */
     .weight_collectives_block_issue = true}, /* foreach_reduce(): dist.reduce_scatter_tensor() waits as well */
    {.name = PROFILE_IDEAL, .summary = "neutral without host and framework time: what the method itself takes",
     NEUTRAL_SWITCHES, .prefetch_layers = 1, .is_ideal = true},
};
/* clang-format on */

const struct strategy *strategies_list(size_t *count)
{
    *count = ARRAY_LEN(strategies);
    return strategies;
}

const struct profile *profiles_list(size_t *count)
{
    *count = ARRAY_LEN(profiles);
    return profiles;
}

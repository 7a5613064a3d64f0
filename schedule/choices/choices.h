/* schedule/choices/choices.h: the choices that make a training step's schedule, and what a user asks for.
 *
 * A schedule is the product of choices (attention, weights, pipeline, activations, optimizer, batch), each with an enum
 * or a number below. `struct request` is what the user gave, with fields left open; `struct choices` has every field
 * filled (schedule/config/resolve_config.h).
 *
 * The folder schedule/choices/ lists the choices from which a schedule is made, with the strategies and profiles that
 * combine them. */
#ifndef SCHEDULE_CHOICES_CHOICES_H
#define SCHEDULE_CHOICES_CHOICES_H

#include "base/diag.h"
#include "models/frozen_storage.h"
#include "models/states.h"
#include "models/transformer.h"
#include "models/work.h"
#include "schedule/ir/ir.h"

#include <stdbool.h>
#include <stdint.h>

enum attention_choice {
#define ATTENTION(symbol, name, around, inner, cp, hp, simpler_at_one) CHOICE_ATTENTION_##symbol,
#include "schedule/choices/attention_choices.def"
#undef ATTENTION
    CHOICE_ATTENTION_COUNT
};

/* For each attention choice, the axes of the mesh along which the ranks of a sequence share it. simpler_at_one: if
 * there is only one rank along one of these axes, resolve_choices() takes the choice that has only the other axis or,
 * if there is none, local attention. */
struct attention_axes {
    bool cp, hp, simpler_at_one;
};
extern const struct attention_axes attention_axes[CHOICE_ATTENTION_COUNT];

/* The ranks of a sequence that are neighbours in the order of ranks. HEAD_FIRST: its head ranks. CONTEXT_FIRST: its
 * context ranks. */
enum placement { PLACEMENT_HEAD_FIRST, PLACEMENT_CONTEXT_FIRST, PLACEMENT_COUNT };

/* The parts of sharded parameters that each rank has on the device before the first step. SHARDED: only its own part.
 * WHOLE: all parts, of which it keeps only its own for the step. */
enum parameter_parts_loaded_at_start { LOADING_SHARDED, LOADING_WHOLE, LOADING_COUNT };

/* How the layers of the model are divided among the chunks of a pipeline. BY_COST: by what layers and head compute. The
 * others: by number, where the ends of the model (embedding, head) that the value names count as one layer each. */
enum stage_layers {
    STAGE_LAYERS_EVEN, /* no end counts */
    STAGE_LAYERS_AND_EMBEDDING,
    STAGE_LAYERS_AND_HEAD,
    STAGE_LAYERS_AND_BOTH_ENDS,
    STAGE_LAYERS_BY_COST, /* as nanotron does */
    STAGE_LAYERS_COUNT
};

/* The place of a pipeline's stages on the mesh. OUTER: outermost, so that all ranks of a stage are neighbours, as in
 * frameworks. INNER: inside dp, so that the stages of a sequence are neighbours. */
enum stage_placement { STAGES_OUTER, STAGES_INNER, STAGE_PLACEMENT_COUNT };

/* The ranks of a ring that form a window (Double-Ring). CONTIGUOUS: consecutive ranks. INTERLEAVED: consecutive ranks
 * of an order in which a node's even ranks come before its odd ranks, so that messages that leave the node are spread
 * over its NICs. */
enum double_ring_window_order {
    WINDOWS_PROFILE,
    WINDOWS_CONTIGUOUS,
    WINDOWS_INTERLEAVED,
    WINDOWS_COUNT
};

/* The tokens of a sequence that each rank of a ring holds. */
enum ring_layout {
    RING_ZIGZAG,
    RING_CONTIGUOUS,
    RING_STRIPED,
    RING_ZIGZAG_DOCUMENTS, /* zigzag of each document of a packed sequence */
    RING_LAYOUT_COUNT,
    RING_BY_CORE_PLAN = RING_LAYOUT_COUNT /* as --core-plan deals them; no value of --layout */
};

/* The communication that brings the keys and values of all ranks of a ring to each rank. */
enum ring_rotation {
    ROTATE_PROFILE,
    ROTATE_P2P, /* messages to the next rank, step by step */
    /* As P2P, but by an all-to-all in which only one peer gets data. It starts only when the last rank is ready. */
    ROTATE_ALL_TO_ALL,
    ROTATE_ALL_GATHER, /* one all-gather, which runs during the first tile or before it */
    /* One exchange brings each rank only the rows that it needs (schedule/ir/needed.h), while it computes the tile of
     * its own keys. */
    ROTATE_NEEDED_ROWS,
    ROTATION_COUNT,
    ROTATE_BY_CORE_PLAN = ROTATION_COUNT /* as the tiles of --core-plan say; no value of --rotate */
};

/* The outer loop of the backward of a sequence in chunks (FPDT). KV_OUTER: over chunks of keys and values, whose
 * gradients then stay on the device until they are complete. QUERY_OUTER: over chunks of queries. */
enum chunk_order { ORDER_KV_OUTER, ORDER_QUERY_OUTER, ORDER_COUNT };

/* The memory for the tensors of a chunk that other chunks read later. ON: the host's. OFF: the device's. */
enum kv_offload { KV_OFFLOAD_ON, KV_OFFLOAD_OFF, KV_OFFLOAD_COUNT };

/* The rank that copies the tensors of a chunk to the host and back. EACH: every rank copies its own part. ONE: head
 * rank number (chunk modulo number of head ranks) copies the parts of all head ranks, and scatters what it copies
 * back. */
enum chunk_fetch { FETCH_EACH, FETCH_ONE, FETCH_COUNT };

/* The division of tokens among tensor ranks outside the products, and the way in which products get their input.
 *
 * PROFILE            as the profile's code does
 * MEGATRON           Tokens are cut. One gather serves all products that read it, and the backward gathers it again.
 * GATHER_PER_MODULE  PyTorch's DTensor with PrepareModuleInput. Tokens are cut, one gather serves a module's products,
 *                    and the gathered input is kept for the backward. A gather or a reduction on another dimension than
 *                    the first copies its tensor (torch/distributed/tensor/_collective_utils.py,
 *                    torch/distributed/_functional_collectives.py: torch.cat).
 * GATHER_PER_LINEAR  As GATHER_PER_MODULE, but each ColwiseParallel product redistributes its own input, and reduces
 *                    its own input gradient.
 * ASYNC              As GATHER_PER_MODULE under torch.compile with async TP (torch/distributed/_symmetric_memory): a
 *                    product runs in pieces of rows, each after its own part of the gather, and its results are reduced
 *                    piece by piece, without the copies.
 * REPLICATED         Every tensor rank has all tokens. Results are all-reduced, and so is each product's input
 *                    gradient. */
enum tensor_plan {
    TENSOR_PLAN_PROFILE,
    TENSOR_PLAN_MEGATRON,
    TENSOR_PLAN_GATHER_PER_MODULE,
    TENSOR_PLAN_GATHER_PER_LINEAR,
    TENSOR_PLAN_ASYNC,
    TENSOR_PLAN_REPLICATED,
    TENSOR_PLAN_COUNT
};

/* The parts of embedding and head that tensor ranks hold.
 *
 * CUT       A part of the rows of both. The loss is computed over the parts (Megatron; torchtitan's loss parallel).
 * GATHERED  The whole embedding and a part of the head. The logits are gathered before the loss: ColwiseParallel with
 *           output_layouts=Replicate(), as transformers' "colwise_rep".
 * WHOLE     The whole embedding and the whole head. Each tensor rank computes all logits. */
enum vocabulary_choice { VOCABULARY_CUT, VOCABULARY_GATHERED, VOCABULARY_WHOLE, VOCABULARY_COUNT };

enum weights_choice {
    CHOICE_WEIGHTS_REPLICATED, /* gradients all-reduced */
    CHOICE_WEIGHTS_ZERO1,      /* optimizer states sharded */
    CHOICE_WEIGHTS_ZERO2,      /* optimizer states and gradients sharded */
    CHOICE_WEIGHTS_ZERO3,      /* optimizer states, gradients and parameters sharded */
    /* like ZeRO-3 within groups of `shard` ranks, replicated across these groups */
    CHOICE_WEIGHTS_HSDP,
    CHOICE_WEIGHTS_COUNT
};

/* The dtype in which whole weight gradients are summed over micro-batches and reduced over ranks. PROFILE: that of the
 * profile's code. 16BIT: the 16-bit dtype in which the step computes. */
enum gradients_dtype_choice { GRADIENTS_PROFILE, GRADIENTS_FP32, GRADIENTS_16BIT, GRADIENTS_COUNT };

/* The time at which ranks that share the optimizer's states but not the parameters (ZeRO-1, ZeRO-2) gather the updated
 * parameters. END: at the end of the step. OVERLAP: at the beginning of the next step, where layers whose parameters
 * have been gathered compute while others are gathered. */
enum param_gather { PARAM_GATHER_END, PARAM_GATHER_OVERLAP, PARAM_GATHER_COUNT };

/* The form in which the weights of linear layers that multiply in 8 or 4 bits are kept. 16BIT: 16-bit parameters, which
 * each step quantises. QUANTISED: only the quantised copies (TransformerEngine's primary weights in FP8, Megatron-LM's
 * --fp8-param-gather). */
enum primary_weights { PRIMARY_WEIGHTS_16BIT, PRIMARY_WEIGHTS_QUANTISED, PRIMARY_WEIGHTS_COUNT };

/* The precision in which the core of attention multiplies. FP8: 8 bits, with the scales of --products, in the layers
 * that multiply in 8 bits (TransformerEngine's fp8_dpa, Megatron-LM's --fp8-dot-product-attention). */
enum attention_products {
    ATTENTION_PRODUCTS_BF16,
    ATTENTION_PRODUCTS_FP8,
    ATTENTION_PRODUCTS_COUNT
};

/* The micro-batches in which sharded gradients are reduced. PROFILE: as the profile's code does. EACH: all. LAST: only
 * the last one; until then whole gradients accumulate on every rank (set_requires_gradient_sync(False), no_sync()). */
enum grad_sync { GRAD_SYNC_PROFILE, GRAD_SYNC_EACH, GRAD_SYNC_LAST, GRAD_SYNC_COUNT };

/* The sharded parameters that are freed after their layer's forward and gathered again for its backward (fully_shard(),
 * reshard_after_forward). PROFILE: as the profile's code does. NEVER: none. ALWAYS: all but those of the root module,
 * which has embedding, final norm and head. ROOT: those of the root module, too. PyTorch 2.8 and later free the root
 * module's parameters if its fully_shard() gets reshard_after_forward=True, and keep them if it gets no value. */
enum reshard { RESHARD_PROFILE, RESHARD_ALWAYS, RESHARD_NEVER, RESHARD_ROOT, RESHARD_COUNT };

/* The memory that holds the shards of parameters between gathers. DEVICE: the device's. HOST: pinned host memory, where
 * AdamW updates them; each gather first copies the rank's part to the device (FSDP2's CPUOffloadPolicy, ZeRO-3's
 * offload_param). */
enum parameters_memory { PARAMETERS_DEVICE, PARAMETERS_HOST, PARAMETERS_COUNT };

enum pipeline_choice {
    CHOICE_PIPELINE_NONE,
    CHOICE_PIPELINE_GPIPE,
    CHOICE_PIPELINE_1F1B,
    CHOICE_PIPELINE_INTERLEAVED, /* 1F1B over several chunks of layers a stage */
    CHOICE_PIPELINE_ZB_1P,       /* 1F1B with gradients of weights split off: ZB-H1 */
    /* 1F1B with gradients of weights split off; a stage has two chunks, one on the way down the stages and one on the
     * way back up */
    CHOICE_PIPELINE_ZB_V,
    CHOICE_PIPELINE_TERAPIPE, /* GPipe with subsequences as units */
    CHOICE_PIPELINE_SEQ1F1B,  /* 1F1B over subsequences */
    CHOICE_PIPELINE_MSP,      /* TeraPipe with multiplexed sequence partitioning (SPPO) */
    CHOICE_PIPELINE_COUNT
};

/* The way in which stages that share subsequences (CHOICE_PIPELINE_MSP) get each other's weights, and return the
 * gradients of these weights. */
enum msp_weights {
    /* the stage that owns a layer sends its weights at each use, and gets the sum of their gradients */
    MSP_WEIGHTS_BROADCAST,
    MSP_WEIGHTS_REPLICATE, /* all stages hold all weights, and reduce all gradients at the end */
    MSP_WEIGHTS_SHARD,     /* each stage that shares holds a part of parameters and of gradients */
    MSP_WEIGHTS_COUNT
};

/* The numbers of subsequences that stages share under CHOICE_PIPELINE_MSP. first: how many at the front of a sequence,
 * while the pipeline fills. last: how many at its end, while it drains. SHARED_UNITS_UP_TO_IDLE_STAGES: as many as the
 * pipeline has idle stages for. */
struct shared_units {
    uint32_t first, last;
};
#define SHARED_UNITS_UP_TO_IDLE_STAGES UINT32_MAX

enum activations_choice {
    CHOICE_ACTIVATIONS_KEEP,      /* everything the backward reads stays */
    CHOICE_ACTIVATIONS_SELECTIVE, /* layer inputs and what attention's core made stay */
    CHOICE_ACTIVATIONS_FULL,      /* layer inputs stay, the rest is recomputed */
    CHOICE_ACTIVATIONS_OFFLOAD,   /* layer inputs go to the host, the rest is recomputed */
    /* like SELECTIVE, but the results of attention's core go to the host */
    CHOICE_ACTIVATIONS_SELECTIVE_OFFLOAD,
    /* like SELECTIVE, but the results of some products are kept, too (kept_products_of()) */
    CHOICE_ACTIVATIONS_SELECTIVE_OP,
    CHOICE_ACTIVATIONS_SELECTIVE_LAYER, /* every second layer as FULL, the others as KEEP */
    /* all stays, except that attention's core is computed again */
    CHOICE_ACTIVATIONS_SELECTIVE_CORE,
    CHOICE_ACTIVATIONS_RATIO, /* part of what the backward reads goes to the host, none recomputed */
    CHOICE_ACTIVATIONS_COUNT
};

/* The q, k and v that latent attention expands, as the backward reads them. KEEP: those of the forward, if all
 * activations are kept. RECOMPUTE: they are made again from the narrow vectors (Megatron-LM's --recompute-modules
 * mla_up_proj). */
enum mla_up_projection { UP_PROJECTION_KEEP, UP_PROJECTION_RECOMPUTE, UP_PROJECTION_COUNT };

/* Modules of a layer that drop what they made and make it again for the backward, where activations are otherwise kept
 * (Megatron-LM's --recompute-modules).
 *
 * LAYERNORM       the norms before attention and before the feed-forward part
 * MOE_ACT         the activation of experts
 * MLP             a whole feed-forward part without experts
 * MOE             a whole feed-forward part with experts, its exchanges too
 * SHARED_EXPERTS  the experts that every token passes
 * MLA_UP_PROJ     the up-projections of latent attention
 * CORE_ATTN       attention's core, as with CHOICE_ACTIVATIONS_SELECTIVE_CORE */
enum recompute_module {
    RECOMPUTE_LAYERNORM,
    RECOMPUTE_MOE_ACT,
    RECOMPUTE_MLP,
    RECOMPUTE_MOE,
    RECOMPUTE_SHARED_EXPERTS,
    RECOMPUTE_MLA_UP_PROJ,
    RECOMPUTE_CORE_ATTN,
    RECOMPUTE_MODULE_COUNT
};

/* The exchange of tokens between ranks with different experts. ALLTOALL: each copy of a token is a row, which is sent
 * to the rank of its expert. ALLGATHER: each rank gets the tokens of all ranks, and partial sums are reduced. DEEPEP,
 * HYBRIDEP: a token is one row for each rank that has some of its experts; it is sent once to each node, where a rank
 * with the same index on the node forwards it. Partial sums are returned the same way. */
enum dispatcher {
    DISPATCHER_ALLTOALL,
    DISPATCHER_ALLGATHER,
    DISPATCHER_DEEPEP,
    DISPATCHER_HYBRIDEP,
    DISPATCHER_COUNT
};
/* The time at which shared experts are computed. PROFILE: that of the profile's code. BEFORE: before the routed ones;
 * no exchange runs meanwhile. COMBINE: while results return. BOTH: the first product while tokens are sent, and the
 * second while results return; in the backward the other way round. */
enum shared_experts {
    SHARED_EXPERTS_PROFILE,
    SHARED_EXPERTS_BEFORE_ROUTED,
    SHARED_EXPERTS_DURING_COMBINE,
    SHARED_EXPERTS_DURING_BOTH_EXCHANGES,
    SHARED_EXPERTS_COUNT
};
/* The computation that runs beside the exchanges of tokens between ranks with different experts. MICRO_BATCH: a forward
 * of one micro-batch and a backward of another run together, layer by layer. The exchanges of one run beside the
 * computation of the other. DELAYED_WGRAD: as MICRO_BATCH, and a layer's backward computes the gradients of weights
 * after those of inputs: the experts' beside the exchange that follows, the others at the end of the layer. */
enum expert_overlap {
    EXPERT_OVERLAP_NONE,
    EXPERT_OVERLAP_MICRO_BATCH,
    EXPERT_OVERLAP_DELAYED_WGRAD,
    EXPERT_OVERLAP_COUNT
};
/* The work that the host launches as one CUDA graph. NONE: none. ROUTER: the router and its counts. LAYER: the router
 * and its counts, and the attention and dense feed-forward part of a layer. STEP: all micro-batches of a step. */
enum cuda_graphs {
    CUDA_GRAPHS_NONE,
    CUDA_GRAPHS_ROUTER,
    CUDA_GRAPHS_LAYER,
    CUDA_GRAPHS_STEP,
    CUDA_GRAPHS_COUNT
};
/* The form in which head ranks send the keys and values of latent attention. EXPANDED: the keys and values of all
 * heads. LATENT: the normed latents, from which each rank makes the keys and values of its own heads. */
enum mla_exchange { MLA_EXCHANGE_EXPANDED, MLA_EXCHANGE_LATENT, MLA_EXCHANGE_COUNT };

/* The dropout of attention's scores. MODEL: as the model has it. OFF, ON: as the user asks. */
enum attention_dropout_choice { DROPOUT_MODEL, DROPOUT_OFF, DROPOUT_ON, DROPOUT_COUNT };

enum optimizer_choice { CHOICE_OPTIMIZER_DEVICE, CHOICE_OPTIMIZER_HOST, CHOICE_OPTIMIZER_COUNT };

/* The part of a step that is scheduled. STEP: the training step of the whole model. LAYER: forward, recomputation and
 * backward of one layer, with the gathers and reductions of its weights, without an optimizer. ATTENTION*: only the
 * layer's attention operator, from the projected queries, keys and values to the output and back, without positional
 * encodings and head norms. */
enum scope {
    SCOPE_WHOLE_STEP,
    SCOPE_ONE_LAYER,
    SCOPE_ATTENTION_OPERATOR,
    SCOPE_ATTENTION_OPERATOR_FORWARD,
    /* the backward of the operator; the forward that it needs is scheduled too, but its time is not counted */
    SCOPE_ATTENTION_OPERATOR_BACKWARD,
    SCOPE_ATTENTION_EXCHANGES, /* the operator's exchanges of tokens for heads, each call by itself */
    SCOPE_CHUNK_FETCHES_FROM_HOST, /* what a tile of each direction fetches from the host, by itself */
    SCOPE_ALL_LAYERS, /* the step without embedding, head, loss, reductions and optimizer */
    SCOPE_ALL_LAYERS_FORWARD,
    SCOPE_COUNT
};

/* The kernels that run the work of a layer, except its matrix products and attention. */
enum kernels_choice {
    KERNELS_PROFILE, /* as the profile's code does */
    KERNELS_COMPILED, /* torch.compile: a chain or a merge is one kernel, and the first tile of a ring waits for
                         gathered blocks */
    KERNELS_EAGER, /* an operator of PyTorch after the other */
    KERNELS_LIGER, /* Liger-Kernel's norms, rotations and activations: one kernel each */
    KERNELS_COUNT
};

/* The implementation that computes the loss of a piece of rows from its logits. The two numbers of each value are the
 * bytes per logit that exist at once, in the forward and in the backward, the head's 16-bit logits included.
 * LOSS_PROFILE and LOSS_CHUNKED have none. docs/strategies/activations.md has the sources. */
enum loss_choice {
    LOSS_PROFILE,  /* as the profile's code does; not in struct choices */
    LOSS_EAGER,    /* 8, 12: PyTorch's cross_entropy of fp32 logits */
    LOSS_HF,       /* 10, 14: the same, and the caller holds the 16-bit logits */
    LOSS_COMPILED, /* 2, 4: one kernel; the gradient has a buffer of its own */
    LOSS_CHUNKED,  /* the profile's, in pieces; not in struct choices */
    LOSS_FUSED,    /* 2, 2 in pieces of few rows: Liger's fused linear cross entropy */
    LOSS_PARALLEL, /* 14, 16 a logit of the rank: torchtitan's loss over a divided vocabulary */
    LOSS_TE,       /* 2, 2: the gradient is written over the logits */
    LOSS_MEGATRON, /* 6, 6: the gradient is written over fp32 logits */
    LOSS_BY_FP32_SOFTMAX, /* 14, 14: fp32 logits, softmax and its logarithm, as Megatron-DeepSpeed */
    LOSS_OF_16BIT_LOGITS, /* 4, 8: PyTorch's cross_entropy of 16-bit logits, which the caller holds */
    LOSS_CUT_CROSS_ENTROPY, /* 2, 2 in pieces of few rows, whose logits the backward makes again: cut cross entropy */
    LOSS_COUNT
};

struct profile; /* schedule/choices/profile.h */

/* The members that struct request and struct choices both have, which resolve_choices() copies. Each has a row
 * COPIED(member), with the enum of its values. */
#define COPIED_CHOICES(COPIED)                                                                     \
    COPIED(scope)              /* enum scope */                                                    \
    COPIED(up_projection)      /* enum mla_up_projection */                                        \
    COPIED(mla_exchange)       /* enum mla_exchange */                                             \
    COPIED(states)             /* enum states */                                                   \
    COPIED(kernels)            /* enum kernels_choice */                                           \
    COPIED(products)           /* enum products_choice */                                          \
    COPIED(primary_weights)    /* enum primary_weights */                                          \
    COPIED(attention_products) /* enum attention_products */                                       \
    COPIED(cuda_graphs)        /* enum cuda_graphs */                                              \
    COPIED(vocabulary)         /* enum vocabulary_choice */                                        \
    COPIED(gradients)          /* enum gradients_dtype_choice */                                   \
    COPIED(param_gather)       /* enum param_gather */                                             \
    COPIED(parameters)         /* enum parameters_memory */                                        \
    COPIED(loading)            /* enum parameter_parts_loaded_at_start */                          \
    COPIED(placement)          /* enum placement */                                                \
    COPIED(stage_placement)    /* enum stage_placement */                                          \
    COPIED(stage_layers)       /* enum stage_layers */                                             \
    COPIED(helpers)            /* enum msp_weights */                                              \
    COPIED(kv_offload)         /* enum kv_offload */                                               \
    COPIED(chunk_order)        /* enum chunk_order */                                              \
    COPIED(chunk_fetch)        /* enum chunk_fetch */

struct choices {
#define COPIED(member) uint8_t member;
    COPIED_CHOICES(COPIED)
#undef COPIED

    /* ---- what is trained, by which choices and whose code ---- */
    const struct transformer *model;
    const struct profile *profile;
    uint8_t strategy;    /* row of strategies_list() */
    uint8_t attention;   /* enum attention_choice */
    uint8_t weights;     /* enum weights_choice */
    uint8_t pipeline;    /* enum pipeline_choice */
    uint8_t activations; /* enum activations_choice */
    /* the modules that are recomputed: bits 1 << enum recompute_module */
    uint8_t recompute_modules;
    uint8_t optimizer;      /* enum optimizer_choice */
    bool attention_dropout; /* attention drops scores */
    uint8_t attention_impl; /* enum attention_impl */
    /* attention gets the causal mask as a tensor, so its kernel also computes the pairs that the mask hides */
    bool core_gets_causal_mask_tensor;
    uint8_t loss; /* enum loss_choice */
    /* the number of layers at each end of the model that multiply in the dtype of compute, whatever `products` is */
    uint32_t bf16_layers;
    /* enum frozen_storage: the form of the frozen weights, if adapters are trained */
    uint8_t frozen_weights;
    /* the number of first layers whose saved activations are on the host until their backward */
    uint32_t host_layers;
    uint8_t dtype; /* enum dtype of compute: bf16, f16 or f32 */
    int sm;        /* compute capability of the device times ten, for kernel workspaces */

    /* ---- degrees of parallelism, and how ranks share work and weights ---- */
    uint32_t ranks;        /* all ranks: dp * pp * cp * hp * tp */
    int64_t gpus_per_node; /* of the cluster; 0: not known */
    uint32_t dp, pp, cp, hp;
    /* number of neighbouring ranks of a stage that have different experts, tensor ranks included; 1: each rank has all
     * experts */
    uint32_t ep;
    struct expert_capacity expert_capacity; /* of an expert for a rank's tokens */
    uint8_t dispatcher;                     /* enum dispatcher */
    uint8_t expert_overlap;                 /* enum expert_overlap; NONE if ep is 1 */
    uint8_t shared_experts;                 /* enum shared_experts, not SHARED_EXPERTS_PROFILE */
    uint32_t tp; /* ranks that share heads, feed-forward width and vocabulary */
    /* tensor ranks that cut the tokens outside the products: tp, or 1 */
    uint32_t sequence_parallel_ranks;
    uint8_t tensor_plan; /* enum tensor_plan, not TENSOR_PLAN_PROFILE */
    uint8_t grad_sync;   /* enum grad_sync, not GRAD_SYNC_PROFILE */
    uint8_t reshard;     /* enum reshard, not RESHARD_PROFILE */
    /* number of ranks that share one copy of a stage's weights: dp x cp x hp, times pp with MSP_WEIGHTS_REPLICATE, or
     * fewer with HSDP. With ZeRO-1 and ZeRO-2 it is the number of ranks that share one copy of the optimizer states */
    uint32_t shard;

    /* ---- rings ---- */
    uint8_t ring_layout; /* enum ring_layout */
    /* the text of --core-plan: the rule by which tokens are dealt (schedule/core_plan/deal_rules.h), or the file of a
     * plan whose deal `documents` has; NULL: ring_layout is not RING_BY_CORE_PLAN */
    const char *core_plan;
    uint8_t rotation; /* enum ring_rotation, not ROTATE_PROFILE */
    /* number of context ranks in an inner ring (Double-Ring); 1 or cp: there is one ring */
    uint32_t ring_window;
    /* number of context ranks on a node, if windows are interleaved; else 0 */
    uint32_t ring_ranks_per_node;

    /* ---- pipelines ---- */
    uint32_t virtual_stages; /* chunks of layers on each stage of the pipeline */
    uint32_t subsequences;   /* pieces of every sequence that go through the layers in turn */
    /* tokens of each subsequence; NULL: all are equal. The caller's memory. */
    const int64_t *subsequence_tokens;
    uint8_t length_rule; /* the request's rule for unequal lengths; 0: equal lengths */
    /* subsequence_tokens is still to be computed by length_rule, by the caller; step_build() refuses such choices */
    bool must_compute_subsequence_tokens;
    struct shared_units shared_units;

    /* ---- the batch, the pieces of its tokens, and offloading by ratio ---- */
    int64_t seq; /* tokens of one sequence */
    /* global_batch: sequences of a step, on all ranks. micro_batch: sequences of a micro-batch, for each data-parallel
     * index */
    int64_t global_batch, micro_batch;
    uint32_t accumulation; /* micro-batches per step = global_batch / (dp * micro_batch) */
    /* the documents of all sequences of the batch; NULL: each sequence is one document. The caller's memory. */
    const struct documents *documents;
    /* the routing of copies to experts (schedule/ir/routing.h); NULL: each expert gets equally many. The caller's
     * memory. */
    const struct routing *routing;
    /* True if routing is even, but the schedule still lists the numbers of copies of experts. It does so if experts
     * have a capacity, if the exchange is not one all-to-all, or if experts are spread over ranks and a rank's copies
     * do not divide evenly over them, or might not, since the lengths of subsequences are not known yet. */
    bool lists_copies_of_even_routing;
    /* number of pieces into which a rank's tokens are cut, in the loss and in the feed-forward part */
    uint32_t loss_chunks, ffn_chunks;

    /* For CHOICE_ACTIVATIONS_RATIO. offload_ratio: the share of a unit's activations that is offloaded, above 0.
     * offload_hidden_bytes: if it is above 0, the number of bytes that are offloaded instead, at most all
     * (schedule/pipeline/ratios.h). */
    double offload_ratio, offload_hidden_bytes;
    /* offload_hidden_bytes of each subsequence; NULL: all have the same number. The caller's memory. */
    const double *offload_hidden_bytes_by_subsequence;

    /* ---- chunks of the sequence (fpdt) ---- */
    int64_t chunk_tokens; /* tokens of a chunk, over all ranks of the sequence; 0: no chunks */
    uint32_t chunk_count; /* chunks of a sequence, of which the last may be shorter; 1: no chunks */
};

/* The settings that the user asks for. A member that the user leaves open is NULL if it is a pointer, and 0 if it is a
 * number or an enum; five enums are -1 then: weights, activations, optimizer, attention_impl and dtype. For the other
 * enums 0 is the first value: the default or, if its name ends in _PROFILE, what the profile's code does. */
struct request {
#define COPIED(member) int member;
    COPIED_CHOICES(COPIED)
#undef COPIED

    const struct transformer *model; /* never NULL */
    const char *strategy, *profile;  /* names; NULL: ulysses, published */
    /* the name of the profile that is taken if `profile` is "published"; NULL: the strategy's own */
    const char *impl;

    int weights;        /* enum weights_choice; -1: the strategy's */
    int activations;    /* enum activations_choice; -1: the strategy's */
    int optimizer;      /* enum optimizer_choice; -1: on the device */
    int attention_impl; /* enum attention_impl; -1: see choices_attention_impl_of_request() */
    int dtype;          /* enum dtype; -1: bf16 */

    int dropout; /* enum dropout */
    int loss;    /* enum loss_choice */
    int64_t bf16_layers;
    int frozen_weights; /* enum frozen_storage */
    int64_t host_layers;
    int tensor_plan;       /* enum tensor_plan */
    int grad_sync;         /* enum grad_sync */
    int reshard;           /* enum reshard */
    int recompute_modules; /* bits 1 << enum recompute_module */
    struct expert_capacity expert_capacity;
    int dispatcher;     /* enum dispatcher */
    int expert_overlap; /* enum expert_overlap */
    int shared_experts; /* enum shared_experts */

    int64_t ranks;
    int64_t dp, pp, cp, hp, tp, ep, shard;

    int64_t ring_window;   /* context ranks of an inner ring */
    int windows;           /* enum double_ring_window_order */
    int rotation;          /* enum ring_rotation */
    int ring_layout;       /* enum ring_layout */
    const char *core_plan; /* the text of --core-plan, a rule or a file; NULL: see ring_layout */

    int pipeline; /* enum pipeline_choice; CHOICE_PIPELINE_NONE: resolve_choices() chooses */
    int64_t virtual_stages, subsequences;
    /* tokens of each subsequence; NULL: length_rule decides. The caller's memory. */
    const int64_t *subsequence_tokens;
    /* The rule by which the caller computes subsequence_tokens before it builds the schedule, if they are NULL here;
     * resolve_choices() does not need them. 0: lengths are equal. */
    int length_rule;
    /* NULL: SHARED_UNITS_UP_TO_IDLE_STAGES of both. The caller's memory. */
    const struct shared_units *shared_units;
    /* the caller computes shared_units from costs before building */
    bool must_compute_shared_units;

    int64_t seq, global_batch, micro_batch;
    /* The documents of the global_batch sequences of the batch (schedule/ir/documents.h); NULL: each sequence is one
     * document. The caller's memory, to which struct choices points too. */
    const struct documents *documents;
    /* The routing of copies to experts; NULL, or one of 0 experts: each expert gets equally many. The caller's memory,
     * to which struct choices points too. */
    const struct routing *routing;
    int64_t loss_chunks, ffn_chunks;

    double offload_ratio; /* 0: all activations are offloaded */
    /* the number of bytes that one unit's computation hides, which are offloaded (schedule/pipeline/ratios.h); 0:
     * offload_ratio decides */
    double offload_hidden_bytes;
    /* offload_hidden_bytes of each subsequence; NULL: all have the same number. The caller's memory. */
    const double *offload_hidden_bytes_by_subsequence;
    /* the caller computes offload_hidden_bytes from costs before building */
    bool must_compute_offload_hidden_bytes;

    int64_t chunk_tokens; /* tokens of a chunk (fpdt) */

    /* ---- the cluster and its devices ---- */
    int sm; /* compute capability times ten; 0: not known */
    int64_t gpus_per_node;
    /* 1 + enum attention_impl of the only implementation for which the device has costs; 0: it has costs of several or
     * of none. Used only if attention_impl is open. */
    int sole_costed_attention_impl_plus_one;
};

/* Returns the attention kernels of a request: those that it asks for. If it leaves them open, returns the
 * implementation of which the device has costs, if it has costs of one only; else `otherwise`. */
static inline enum attention_impl choices_attention_impl_of_request(const struct request *r,
                                                                    enum attention_impl otherwise)
{
    return r->attention_impl >= 0 ? (enum attention_impl)r->attention_impl
           : r->sole_costed_attention_impl_plus_one > 0
               ? (enum attention_impl)(r->sole_costed_attention_impl_plus_one - 1)
               : otherwise;
}

/* Returns whether clamps and second biases of experts are part of their products' kernels, where a profile otherwise
 * has operators for both. A graph of the whole step cannot have those operators: the host waits for the device in each.
 * So it has the fused experts of TransformerEngine (docs/costs.md, "CUDA graphs"). */
static inline bool choices_fuse_expert_bias_and_clamp(const struct choices *c)
{
    return c->cuda_graphs == CUDA_GRAPHS_STEP;
}

#endif

/* schedule/choices/profile.h: the differences between implementations of the same schedule.
 *
 * A profile is a row of switches, each read by the emitter or the pass that it concerns. The rows are in
 * schedule/choices/strategies.c; docs/strategies/profiles.md has the source of every value. */
#ifndef SCHEDULE_CHOICES_PROFILE_H
#define SCHEDULE_CHOICES_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

/* The number of heads to which key and value heads are copied before the all-to-all. */
enum kv_replication {
    KV_TO_RANKS, /* to as many as there are head ranks, if there are fewer */
    KV_TO_HEADS, /* always to as many as there are query heads */
    KV_REPLICATION_COUNT
};

/* The handling of gradients between the last reduction and AdamW. */
enum clipping {
    CLIPPING_NONE,
    CLIPPING_IN_STEP,  /* the norm of all gradients is taken, and AdamW scales what it reads */
    CLIPPING_IN_PLACE, /* the norm is taken, and a separate pass scales gradients */
};

/* Names the framework whose code decides which work runs as a chain of kernels, and how many bytes the chain moves
 * (schedule/choices/chains.c). */
enum chains {
    CHAINS_FUSED,
    CHAINS_TORCHTITAN,
    CHAINS_INTERNEVO,
    CHAINS_INTERNLM,
    CHAINS_HF,
    CHAINS_HF_AUTOCAST,
    CHAINS_NANOTRON,
    CHAINS_COUNT
};

#define PROFILE_IDEAL "ideal" /* the name of the row that has `is_ideal` set */

/* The switches in which implementations of a schedule differ. The comment of a bool holds if it is true. */
struct profile {
    /* ---- the framework ---- */
    const char *name, *summary;
    /* the method without a framework: issuing work takes the host no time, and an allocator reserves no more than
     * tensors need */
    bool is_ideal;
    uint8_t tensor_plan; /* enum tensor_plan; 0: as Megatron */
    /* enum chains: whose norms, rotations and activations are not one kernel each */
    uint8_t chains;
    /* compiled layers pass a mask to SDPA in place of is_causal, so that its kernels compute masked pairs, too */
    bool compiled_layers_pass_mask;
    /* seconds of the framework between backward and optimizer, on every rank */
    double host_per_step_s;
    /* the host's time for a product, over that for torch.nn.Linear, because the framework has a module of its own; 0
     * stands for 1 */
    double host_product_factor;
    /* seconds that the host takes in addition for each product of tensor ranks, since its operands are DTensors; not in
     * compiled layers */
    double host_dtensor_product_s;

    /* ---- attention's core and its all-to-alls ---- */
    uint8_t attention_impl;    /* enum attention_impl on GPUs of the A100's class */
    uint8_t attention_impl_90; /* enum attention_impl on Hopper GPUs and later ones */
    /* attention kernels read sinks as an operand; false: a pass after them rescales the result */
    bool core_takes_sinks;
    uint8_t kv_replication; /* enum kv_replication */
    /* number of layout passes over a tensor before, and after, its all-to-all */
    uint8_t copies_before, copies_after;
    bool rope_after_exchange;     /* positions are rotated after the all-to-all, for all tokens */
    bool forward_exchange_blocks; /* forward all-to-alls: the compute stream waits for each one */
    bool backward_exchange_blocks;
    /* in the forward, the host waits for the device before and after attention's core */
    bool host_waits_around_core;
    bool fused_merge; /* partial outputs of rings and chunks are merged by one kernel */
    /* RoPE whose cosines and sines have a factor (struct transformer, rope_scaled) is not one kernel but operators */
    bool scaled_rope_by_operators;
    /* every rank keeps a table of cosines and sines for the whole sequence */
    bool keeps_rotary_tables;

    /* ---- rings: messages of keys and values ---- */
    uint8_t rotation; /* enum rotation */
    /* the ring keeps all blocks, as TransformerEngine's (schedule/attention/ring_retained.c) */
    bool ring_keeps_blocks;
    bool ring_one_stream; /* all of a ring's messages go through one communicator, in turn */
    /* keys and values are copied into a message before they are sent round the ring */
    bool ring_packs_messages;
    bool ring_grad_f32; /* gradients of keys and values are summed in fp32 all around the ring */
    /* the first tile, too, waits for the gathered keys and values */
    bool first_tile_waits_for_gather;
    /* gradients of gathered keys and values are passed round the ring; false: they are reduce-scattered */
    bool gathered_kv_gradients_shift;
    /* windows are interleaved with context-first placement, if a node holds two windows or more */
    bool interleaves_windows;
    /* seconds that the framework adds to an exchange or a shift because it passes lists of tensors, which become an
     * all-to-all with one tensor per rank; 0: it passes no lists */
    double host_per_tensor_list_s;

    /* ---- chunks of a sequence, and pieces of the feed-forward part ---- */
    /* with chunks of a sequence: copies in both directions share one stream, except copies whose end is not awaited
     * soon, which have another; false: each direction has a stream */
    bool chunk_copies_share_stream;
    /* with chunks of a sequence: the host waits after every tile, and at a barrier after all-to-alls */
    bool chunk_tile_sync;
    /* with chunks of a sequence: all tensors of a query chunk are fetched again before each of its tiles, and the
     * gradient of its queries is copied to the host after each tile */
    bool chunk_refetches_queries;
    bool chunk_offloads_norm; /* the normed input of a chunk is offloaded too */
    /* the outputs of chunks are collected in a list, and then copied into one tensor */
    bool chunk_outputs_concatenated;
    /* activation functions in the feed-forward part of fpdt are chains of kernels */
    bool chunk_ffn_is_eager;
    bool chunk_grad_f32; /* fpdt sums the weight gradients of pieces in an fp32 buffer of its own */

    /* ---- subsequences and pipelines ---- */
    /* in a plain pipeline the host waits for every message before it posts the receive of the next action */
    bool pipeline_messages_sync;
    /* for each subsequence, the keys and values of the earlier ones are copied */
    bool prefix_keys_copied;
    /* gradients of the keys and values of earlier subsequences are summed in fp32 */
    bool prefix_grad_f32;
    /* stages reduce sharded gradients only once all backwards of a step have ended, and keep parameters gathered after
     * a backward until the next forward has read them: torch/distributed/pipelining/stage.py, perform_reduce_grad() and
     * backward_maybe_with_nosync() */
    bool stages_reduce_at_end;
    /* stages also keep parameters gathered after a forward, so each is gathered once a step */
    bool stages_keep_gathered;

    /* ---- tensor ranks ---- */
    /* a collective of tensor ranks starts only after all compute that was issued before it */
    bool tensor_comm_after_compute;
    /* products keep their gathered input for the backward, which gathers it no more */
    bool keeps_gathered_input;
    /* all gathers of tensor ranks write the same buffer, which is kept during the whole step */
    bool tensor_gathers_share_buffer;
    /* the number of vocabulary rows on a tensor rank is rounded up to a multiple of this; 0 stands for 1 */
    int64_t vocabulary_row_unit;

    /* ---- experts ---- */
    /* the host waits for the numbers of rows that each expert gets before it launches more */
    bool host_waits_for_expert_counts;
    /* the router's scores, weights and counts are operators of their own */
    bool router_by_operators;
    /* the activation of experts multiplies its results by the weights of copies, so that nothing keeps what experts
     * write; false: the sum of a token's results multiplies them */
    bool activation_weights_copies;
    bool call_per_expert; /* a grouped product is one call of cuBLAS for each expert */
    /* An expert's second bias is not part of its product: separate operators add it, expert by expert, times the
     * weights of copies in fp32 (docs/costs.md, "Biases of experts"). The gradient of the first bias is part of a
     * product. */
    bool expert_bias_by_operators;
    /* The limits of a clamped activation are operators of their own, forward and backward, for which the host waits for
     * the device (docs/costs.md, "Clamps and YaRN"). */
    bool clamps_by_operators;
    uint8_t shared_experts; /* enum shared_experts; SHARED_EXPERTS_PROFILE: while results return */

    /* ---- the loss ---- */
    uint8_t loss; /* enum loss_choice */
    /* fp32 logits less their maximum are a tensor of their own, into which the softmax is written; the logits stay
     * until the forward ends */
    bool loss_copies_logits;
    /* the backward of each piece of the loss computes the piece's logits again */
    bool loss_recomputes_logits;
    /* with the loss in pieces, its input goes to the host and back by blocking copies of pageable memory */
    bool loss_offloads_input;

    /* ---- what is recomputed, quantised or copied to the host ---- */
    /* recomputation repeats the whole layer, also ops whose result no backward op reads */
    bool recomputes_whole_layer;
    /* the norm before a product is part of the product's operator, so --recompute-modules layernorm leaves it: before
     * grouped-query attention and before dense feed-forward parts */
    bool norms_are_in_products;
    /* with --products: the backward quantises the input of a product again, and does not read the copy of the
     * forward */
    bool backward_quantises_again;
    bool offload_blocking; /* checkpoints go to the host by blocking copies into pageable memory */
    /* with --activations ratio: in each unit, copies and computation wait for each other */
    bool offload_waits_per_unit;
    /* with --activations ratio: tensors of fewer bytes stay on the device, and offloaded bytes are rounded up to a
     * multiple of this */
    int64_t offload_grain_bytes;
    /* seconds that the framework takes on the host after each blocking copy of a checkpoint to the host or back */
    double host_per_checkpoint_s;

    /* ---- parameters: their dtype, and how shards are gathered ---- */
    /* sharded parameters are the optimizer's own fp32 ones, and are cast before they are gathered */
    bool sharded_params_f32;
    /* parameters, moments and gradients are a tensor each, which the allocator sees by themselves */
    bool tensors_allocated_singly;
    /* FSDP: embedding, final norm and head are one unit, gathered once in a micro-batch for forward and backward, and
     * reduced after both have their gradients */
    bool has_root_unit;
    /* if --reshard is not given: FSDP frees the root unit (embedding, norm, head) after the forward, and gathers it
     * again */
    bool frees_root_unit;
    /* the loss is part of the root unit's forward, so the backward begins with the root's gather */
    bool loss_in_root_unit;
    /* FSDP2: parameters are gathered into one flat buffer and then copied to a tensor each */
    bool gathers_to_flat_buffer;
    /* The buffer that an all-gather of parameters writes is allocated on a stream of its own, and so in a memory pool
     * of its own. */
    bool gathers_in_own_pool;
    /* a layer's gathers start after its attention's core; false: when the layer begins */
    bool gathers_after_core;
    /* gathered parameters are kept if they are read again within this many elements of parameters */
    int64_t reuse_within_elements;
    /* number of layers whose sharded parameters are gathered ahead of their use */
    uint32_t prefetch_layers;
    /* if no layers are prefetched: the thread that issues computation also starts each gather and each reduction of
     * weights, and waits for it */
    bool collectives_block_issue;

    /* ---- gradients: their dtype, when they exist, and how they are reduced ---- */
    uint8_t grad_dtype; /* enum dtype of accumulated weight gradients */
    /* products write gradients of weights in the compute dtype; when a micro-batch's backward has ended, they are added
     * to those of grad_dtype, one after the other */
    bool adds_grads_after_backward;
    /* FSDP: whole gradients of sharded parameters accumulate and are reduced in grad_dtype with --states bf16, too; a
     * rank's part of the sum is cast to bf16 (reduce_dtype) */
    bool reduces_grad_dtype_always;
    /* if ranks share a sequence: gradients are cast to fp32 before they are reduced to shards, and the sums are cast
     * back */
    bool reduces_f32;
    /* zero_grad(set_to_none=True): a gradient is allocated when the backward reaches its weight, and the step begins
     * without any */
    bool grads_to_none;
    /* The backward of a linear layer adds to the gradient itself, and returns to autograd a 16-bit tensor of the
     * weight's shape that is never written; one such tensor for each shape is kept throughout. */
    bool placeholder_gradients;
    /* whole gradients are zeroed before the step, and checked before they are reduced, each in a pass of its own */
    bool grad_zero_and_check_passes;
    /* in each micro-batch, whole gradients are copied to a flat tensor and divided before they are reduced, in two
     * passes over memory */
    bool flattens_gradients;
    /* gradients are reduced in buckets of whole layers, of at most this many elements, or of one layer if it has
     * more */
    int64_t bucket_elements;
    /* number of passes over a bucket of 16-bit or 32-bit gradients that is reduced once a step: the copy into a flat
     * tensor, the division of that tensor (taken as a copy), and the copy back; 0: no bucket is copied */
    uint8_t bucket_passes;
    bool keeps_bucket; /* with sharded parameters, a bucket is allocated once and kept */
    /* buckets that are reduced once a step are all-reduced, even if each rank updates only a part of the parameters */
    bool buckets_all_reduced;
    /* a rank's part of the sum of a whole gradient is written into that gradient */
    bool reduces_in_place;
    /* gradients that are reduced once a step are reduced after the whole backward */
    bool reduces_after_backward;
    /* sharded gradients accumulate whole until the last micro-batch, even without pipeline stages */
    bool grads_accumulate_whole;
    /* computation waits for the reductions at the end of each micro-batch's backward */
    bool waits_for_reductions;

    /* ---- the optimizer, and the allocator ---- */
    uint8_t clipping;   /* enum clipping; where there is any, AdamW waits for the last reduction */
    bool clipping_sync; /* the host waits for the norm of gradients before it continues */
    /* the optimizer's first step allocates its moments, in memory that activations have left */
    bool moments_allocated_in_step;
    /* with the optimizer on the host: gradients are cast to fp32 on the device, before they are copied to the host */
    bool host_grads_f32;
    /* with the optimizer on the host: new parameters are cast into pageable memory, and a blocking copy takes them to
     * the device before the next part is updated */
    bool host_params_pageable;
    /* with the optimizer on the host: bytes of host memory that separate passes before and after AdamW read and write
     * for each parameter */
    uint8_t host_pass_bytes;
    /* PyTorch's allocator has the setting expandable_segments:True (schedule/reserved/caching_allocator.h) */
    bool expandable_segments;
};

#endif

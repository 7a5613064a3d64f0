/* schedule/choices/profile.h: the differences between implementations of the same schedule.
 *
 * A profile is a row of switches, each read by the code that it concerns. The rows are in
 * schedule/choices/strategies.c; docs/strategies/profiles.md has the sources of the values. */
#ifndef SCHEDULE_CHOICES_PROFILE_H
#define SCHEDULE_CHOICES_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

/* The number of heads to which the key and value heads are copied before the all-to-all. */
enum kv_replication {
    KV_COPIED_TO_HEAD_RANKS,  /* to as many as there are head ranks, if there are fewer */
    KV_COPIED_TO_QUERY_HEADS, /* always to as many as there are query heads */
    KV_REPLICATION_COUNT
};

/* The clipping of gradients, between the last reduction and AdamW. */
enum clipping {
    CLIPPING_NONE,
    CLIPPING_IN_OPTIMIZER_STEP, /* the norm of all gradients is taken, and AdamW scales what it reads */
    CLIPPING_BY_SEPARATE_PASS, /* the norm is taken, and a separate pass scales gradients */
};

/* The framework whose code decides which work is a chain of kernels, and how many bytes the chain moves
 * (schedule/choices/chains.c). FUSED: each such work is one kernel. */
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

/* The switches by which implementations of a schedule differ. The comment of a bool says what holds if it is true. */
struct profile {
    /* ---- the framework ---- */
    const char *name, *summary;
    /* the row is the method without a framework: issuing work takes the host no time, and an allocator reserves no more
     * than tensors need */
    bool is_ideal;
    uint8_t tensor_plan; /* enum tensor_plan; 0: as Megatron */
    /* enum chains: the framework that runs norms, rotations and activations as chains of kernels */
    uint8_t chains;
    /* compiled layers pass a mask to SDPA in place of is_causal, so its kernels also compute the pairs that the mask
     * hides */
    bool compiled_layers_give_sdpa_a_mask;
    /* seconds that the framework's host thread takes between backward and optimizer, on every rank if there are
     * several; 0: none */
    double host_before_optimizer_s;
    /* layers are modules of TransformerEngine in Megatron-Core; the host's time for each is several times that for one
     * operator of PyTorch (predict/host_modules.c) */
    bool host_runs_te_modules;
    /* additional seconds of the host for each product of tensor ranks, whose operands are DTensors; none in compiled
     * layers */
    double host_dtensor_product_s;

    /* ---- attention's core, its all-to-alls and its positional encodings ---- */
    uint8_t attention_impl;              /* enum attention_impl on GPUs before Hopper */
    uint8_t attention_impl_since_hopper; /* enum attention_impl on Hopper GPUs and later ones */
    /* attention kernels read sinks as an operand; false: a pass after them rescales the result */
    bool core_takes_sinks;
    uint8_t kv_replication; /* enum kv_replication */
    /* number of passes that change a tensor's layout before its all-to-all, and after it */
    uint8_t copies_before, copies_after;
    bool rope_after_exchange; /* positions are rotated after the all-to-all, for all tokens */
    /* forward all-to-alls: the compute stream waits for each one */
    bool forward_exchange_blocks_compute;
    bool backward_exchange_blocks_compute;
    /* in the forward, the host waits for the device before and after attention's core */
    bool host_waits_around_core;
    /* partial outputs of rings and chunks are merged by one kernel */
    bool merges_partial_outputs_in_one_kernel;
    /* RoPE whose cosines and sines are multiplied by a factor (struct transformer, rope_scaled) runs as operators, not
     * as one kernel */
    bool scaled_rope_runs_as_operators;
    /* every rank keeps a table of cosines and one of sines for the whole sequence */
    bool keeps_rotary_tables;

    /* ---- rings: messages of keys and values ---- */
    uint8_t rotation; /* enum ring_rotation */
    /* the ring keeps the blocks of all ranks, as TransformerEngine's does (schedule/attention/ring_retained.c) */
    bool ring_keeps_blocks;
    /* all of a ring's messages go through one communicator, in turn */
    bool ring_messages_share_stream;
    /* keys and values are copied into one message before they are sent round the ring */
    bool ring_packs_messages;
    /* gradients of keys and values are summed in fp32 all around the ring */
    bool ring_sums_kv_gradients_in_fp32;
    /* with an all-gather of keys and values, the first tile waits for it, too */
    bool first_tile_waits_for_gather;
    /* gradients of gathered keys and values are passed round the ring; false: they are reduce-scattered */
    bool shifts_gathered_kv_gradients;
    /* with context-first placement, the windows of a ring are interleaved (WINDOWS_INTERLEAVED) if the ranks of nodes
     * divide into such windows */
    bool interleaves_ring_windows;
    /* seconds that the framework adds to an exchange or a shift that it makes as an all-to-all of a list with one
     * tensor per rank; 0: it passes no lists */
    double host_per_tensor_list_exchange_s;

    /* ---- chunks of a sequence, and pieces of the feed-forward part ---- */
    /* with chunks of a sequence: copies in both directions share one stream, except those that nothing waits for soon,
     * which have another; false: each direction has a stream */
    bool chunk_copies_share_stream;
    /* with chunks of a sequence: the host waits after every tile, and at a barrier after all-to-alls */
    bool host_waits_after_each_chunk_tile;
    /* with chunks of a sequence: all tensors of a query chunk are fetched again before each of its tiles, and the
     * gradient of its queries is copied to the host after each tile */
    bool chunk_refetches_queries;
    bool chunk_offloads_norm; /* the normed input of a chunk is offloaded too */
    /* the outputs of chunks are collected in a list, and then copied into one tensor */
    bool chunk_outputs_concatenated;
    /* the activation function in the feed-forward part of fpdt is a chain of kernels */
    bool chunk_ffn_is_eager;
    /* fpdt sums the weight gradients of pieces in an fp32 buffer of its own */
    bool fpdt_sums_weight_gradients_in_fp32;

    /* ---- subsequences and pipelines ---- */
    /* in a plain pipeline (pipeline_is_plain()), the host waits for every message before it posts the receive of the
     * next action */
    bool pipeline_messages_sync;
    /* the forward of each subsequence but the first copies the keys and values of the earlier ones and its own into new
     * tensors, as by torch.cat */
    bool prefix_keys_copied;
    /* gradients of the keys and values of earlier subsequences are summed in fp32 */
    bool prefix_sums_kv_gradients_in_fp32;
    /* Stages reduce sharded gradients only once all backwards of a step have ended. They keep parameters that were
     * gathered for a backward until the next forward has read them (torch/distributed/pipelining/stage.py,
     * perform_reduce_grad() and backward_maybe_with_nosync()). */
    bool stages_reduce_gradients_at_step_end;
    /* stages also keep the parameters that were gathered for a forward, so each is gathered once a step */
    bool stages_keep_gathered_parameters;

    /* ---- tensor ranks ---- */
    /* a collective of tensor ranks starts only after all compute that was issued before it */
    bool tensor_comm_after_compute;
    /* products keep their gathered input for the backward, which does not gather it again */
    bool keeps_gathered_product_input;
    /* gathers of inputs of products write one buffer, which is kept during the whole step, unless they are in 8 bits */
    bool tensor_gathers_share_buffer;
    /* the number of vocabulary rows on a tensor rank is rounded up to a multiple of this; 0 stands for 1 */
    int64_t vocabulary_rows_multiple;

    /* ---- experts ---- */
    /* the host waits for the numbers of rows that the experts get, before it launches their products */
    bool host_waits_for_expert_counts;
    /* the router's scores, weights and counts are made by operators, not by one kernel */
    bool router_by_operators;
    /* The activation of experts multiplies its results by the weights of copies, so the backward needs nothing that
     * experts write; false: the sum of a token's results multiplies them. */
    bool activation_weights_copies;
    /* a grouped product is one call of cuBLAS for each expert */
    bool makes_product_call_per_expert;
    /* An expert's second bias is not part of its product: operators add it, expert by expert, times the weights of
     * copies in fp32 (docs/costs.md, "Biases of experts"). The gradient of the first bias is computed as part of a
     * product. */
    bool expert_bias_by_operators;
    /* The limits of a clamped activation are operators, forward and backward, before which the host waits for the
     * device (docs/costs.md, "Clamps and YaRN"). */
    bool clamps_run_as_operators;
    uint8_t shared_experts; /* enum shared_experts; SHARED_EXPERTS_PROFILE: while results return */

    /* ---- the loss ---- */
    uint8_t loss; /* enum loss_choice */
    /* the fp32 logits less their maximum are a tensor of their own, over which the softmax is written; the logits stay
     * in memory until the forward ends */
    bool loss_copies_logits;
    /* with fpdt: the backward of each piece of the loss computes the piece's logits again */
    bool loss_recomputes_logits;
    /* with fpdt: the input of the loss goes to the host, and back piece by piece, by blocking copies of pageable
     * memory */
    bool loss_offloads_input;

    /* ---- what is recomputed, quantised or copied to the host ---- */
    /* recomputation repeats the whole layer, also ops whose result no backward op reads */
    bool recomputes_whole_layer;
    /* The norm before a product is part of the product's operator in two places: before attention without latents and
     * before a dense feed-forward part. There --recompute-modules layernorm drops nothing. */
    bool fuses_norms_into_products;
    /* with --products: the backward quantises the input of a product again, and does not read the copy that the forward
     * made */
    bool backward_quantises_again;
    /* checkpoints go to the host by blocking copies into pageable memory */
    bool checkpoint_offload_is_blocking;
    /* with --activations ratio: a unit's copies to the host wait until its forward has ended, and its backward waits
     * for all of its copies back; false: each op waits only for the data that it reads */
    bool offload_waits_per_unit;
    /* with --activations ratio: tensors of fewer bytes than this stay on the device, and the number of offloaded bytes
     * is rounded up to a multiple of it */
    int64_t offload_multiple_of_bytes;
    /* seconds that the framework takes on the host after each blocking copy of a checkpoint to the host or back */
    double host_per_checkpoint_copy_s;

    /* ---- parameters: their dtype, and how shards are gathered ---- */
    /* sharded parameters are the fp32 ones that the optimizer updates; they are cast before they are gathered */
    bool sharded_params_f32;
    /* each parameter, moment and gradient is a tensor of its own, which the allocator places by itself */
    bool allocates_each_tensor_alone;
    /* FSDP without pipeline stages: embedding, final norm and head are one unit, the root. It is gathered once in a
     * micro-batch, for forward and backward, and reduced after all of its gradients are complete. */
    bool has_fsdp_root_unit;
    /* if --reshard is not given: FSDP frees the root unit after the forward, and gathers it again for the backward */
    bool frees_root_unit_after_forward;
    /* the loss is part of the root unit's forward, so the backward begins with the root's gather */
    bool loss_in_root_unit;
    /* FSDP2: parameters are gathered into one flat buffer and then copied to a tensor each */
    bool gathers_to_flat_buffer;
    /* The buffer that an all-gather of parameters writes is allocated on another stream than computation's, and so in
     * another memory pool. */
    bool allocates_gathers_in_own_pool;
    /* the gathers for the next layers start after a layer's attention core; false: when the layer begins */
    bool prefetches_weights_after_core;
    /* gathered parameters are kept if they are read again before this many elements of other parameters have been read;
     * 0: no */
    int64_t param_reuse_distance_elements;
    /* number of layers whose sharded parameters are gathered ahead of their use */
    uint32_t prefetch_layers;
    /* set only where prefetch_layers is 0: the thread that issues computation also starts each gather and each
     * reduction of weights, and waits until it ends */
    bool weight_collectives_block_issue;

    /* ---- gradients: their dtype, when they exist, and how they are reduced ---- */
    uint8_t grad_dtype; /* enum dtype of accumulated weight gradients */
    /* products write gradients of weights in the compute dtype; when a micro-batch's backward has ended, they are added
     * to the gradients in grad_dtype, one after the other */
    bool adds_grads_after_backward;
    /* FSDP: whole gradients of sharded parameters accumulate and are reduced in grad_dtype even with --states bf16;
     * then a rank's part of the sum is cast to bf16 (reduce_dtype) */
    bool reduces_bf16_states_in_grad_dtype;
    /* if ranks share a sequence: gradients are cast to fp32 before they are reduced to shards, and the sums are cast
     * back */
    bool reduces_f32;
    /* zero_grad(set_to_none=True): a gradient is allocated when the backward reaches its weight, and the step begins
     * without any */
    bool frees_gradients_between_steps;
    /* The backward of a linear layer adds to the gradient itself. It returns to autograd a 16-bit tensor of the
     * weight's shape, which is never written; one such tensor of each shape is kept throughout the step. */
    bool placeholder_gradients;
    /* whole gradients that are reduced once a step are zeroed before an op of the step writes them, and checked for NaN
     * before they are reduced, each in a pass of its own */
    bool zeroes_and_nan_checks_gradients;
    /* whole gradients that are reduced in each micro-batch are first copied to a flat tensor and divided, in two passes
     * over memory */
    bool flattens_gradients;
    /* gradients are reduced in buckets of whole layers: one layer with sharded parameters, else as many layers as have
     * at most this many elements together, but at least one */
    int64_t most_elements_of_gradient_bucket;
    /* number of passes over a bucket of gradients that is reduced once a step: the copy into a flat tensor, the
     * division of that tensor (taken as a copy), and the copy back; 0: no bucket is copied */
    uint8_t copy_passes_over_bucket;
    bool keeps_gradient_bucket; /* with sharded parameters, a bucket is allocated once and kept */
    /* buckets that are reduced once a step are all-reduced, even if each rank updates only a part of the parameters */
    bool buckets_all_reduced;
    /* a rank's part of the sum of a whole gradient is written over that gradient, not to a buffer of its own */
    bool reduces_gradients_in_place;
    /* gradients that are reduced once a step are reduced only after the whole backward */
    bool reduces_after_backward;
    /* sharded gradients accumulate whole until the last micro-batch, even without pipeline stages */
    bool accumulates_unsharded_gradients;
    /* without pipeline stages: at the end of each micro-batch's backward, computation waits for the reductions */
    bool compute_waits_for_reductions;

    /* ---- the optimizer, and the allocator ---- */
    uint8_t clipping; /* enum clipping; where there is any, AdamW waits for the last reduction */
    /* the host waits for the norm of gradients before it continues */
    bool host_waits_for_gradient_norm;
    /* the optimizer's first step allocates its moments, in memory that activations have freed */
    bool moments_allocated_in_step;
    /* with the optimizer on the host: gradients are cast to fp32 on the device, before they are copied to the host */
    bool host_grads_f32;
    /* with the optimizer on the host: new parameters are cast into pageable memory, and a blocking copy brings them to
     * the device before the next part is updated */
    bool casts_host_params_to_pageable_memory;
    /* with the optimizer on the host: the bytes of host memory per parameter that passes before and after AdamW read
     * and write */
    uint8_t host_bytes_per_param_around_adamw;
    /* PyTorch's allocator has the setting expandable_segments:True (schedule/reserved/caching_allocator.h) */
    bool expandable_segments;
};

#endif

/* schedule/choices/profile.h: the differences between implementations of the same schedule.
 *
 * A profile is a row of switches, each read by the emitter or the pass that it concerns. The rows are in
 * schedule/choices/strategies.c; docs/strategies/profiles.md has the source of every value. */
#ifndef SCHEDULE_CHOICES_PROFILE_H
#define SCHEDULE_CHOICES_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

/* Where key and value heads are copied when they do not divide over the head ranks. */
enum kv_replication {
    KV_TO_RANKS, /* to as many heads as there are ranks, before the all-to-all */
    KV_TO_HEADS, /* to as many heads as queries have, before the all-to-all, always */
    KV_REPLICATION_COUNT
};

/* The handling of gradients between the last reduction and AdamW. */
enum clipping {
    CLIPPING_NONE,
    CLIPPING_IN_STEP,  /* the norm of all gradients is taken, and AdamW scales what it reads */
    CLIPPING_IN_PLACE, /* the norm is taken, and a pass of its own scales gradients */
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
    CHAINS_COUNT
};

/* The switches in which implementations of a schedule differ. docs/strategies/profiles.md has the source of every value. */
struct profile {
    const char *name, *summary;
    uint8_t attention_impl;    /* enum attention_impl on A100-class devices */
    uint8_t attention_impl_90; /* and on Hopper and later */
    uint8_t kv_replication;    /* enum kv_replication */
    uint8_t copies_before,
        copies_after;  /* layout passes over a tensor before and after its all-to-all */
    bool rope_after;   /* rotate after the all-to-all, on all positions */
    bool sync_forward; /* forward all-to-alls: the compute stream waits for each one */
    bool sync_backward;
    uint8_t rotation;     /* enum rotation */
    bool ring_retains;    /* TransformerEngine's ring: attention/ring_retained.c */
    bool ring_one_stream; /* all of a ring's messages go through one communicator, in turn */
    bool params_f32; /* sharded parameters are fp32, the optimizer's own, and cast to be gathered */
    bool ring_packs; /* what goes round is copied into a message of its own first */
    bool gathers_first; /* the first tile too waits for gathered keys and values */
    /* gradients of gathered keys and values go round the ring; else they are reduce-scattered */
    bool gathered_shift;
    bool core_sync; /* forward: the host waits for the device before and after attention's core */
    /* seconds that the framework adds to an exchange or a shift because it passes lists of tensors, which become an
     * all-to-all with one tensor per rank; 0: it passes no lists */
    double host_per_list_s;
    bool ring_grad_f32; /* gradients of keys and values go round in fp32 throughout */
    /* in a plain pipeline the host waits for every message, and posts the receive of the next action only then */
    bool messages_sync;
    bool prefix_copied;       /* keys and values of earlier subsequences are copied for each one */
    bool prefix_grad_f32;     /* gradients of such keys and values are summed in fp32 */
    bool interleaves_windows; /* context-first, where a node holds two windows or more */
    uint8_t tensor_plan;      /* enum tensor_plan; 0: as Megatron */
    bool tensor_after;        /* a collective of tensor ranks starts after all compute before it */
    bool tensor_buffer;       /* what tensor ranks gather goes to one buffer, kept throughout */
    /* the number of vocabulary rows on a tensor rank is padded to a multiple of it; 0: no padding */
    int64_t vocabulary_unit;
    bool recompute_whole; /* recompute the whole layer, also what no backward op reads */
    uint8_t loss;         /* enum loss_choice */
    bool
        expandable_segments; /* the setting of PyTorch's allocator: schedule/reserved/caching_allocator.h */
    uint8_t grad_dtype; /* enum dtype of accumulated weight gradients */
    /* zero_grad(set_to_none=True): a gradient is allocated when the backward reaches its weight, and the step begins
     * without any */
    bool grads_to_none;
    /* FSDP: embedding, final norm and head are one unit, gathered once in a micro-batch for forward and backward, and
     * reduced after both have their gradients */
    bool root_unit;
    /* FSDP2: parameters are gathered into one flat buffer and copied out of it, to a tensor each, when they are
     * needed */
    bool gather_copies;
    /* The buffer that an all-gather of parameters writes is allocated on a stream, so in a pool, of its own. */
    bool gathers_apart;
    /* where ranks share a sequence, gradients are cast to fp32 before they are reduced to shards, and the sums are
     * cast back */
    bool reduces_f32;
    bool offload_blocking; /* checkpoints to the host by blocking pageable copies */
    bool offload_waits;    /* ratios: copies and computation wait for each other unit by unit */
    int64_t offload_grain; /* ratios: tensors below it stay, and bytes are rounded up to it */
    bool rotary_tables;    /* angles, cosine and sine of the whole sequence stay on every rank */
    bool holds_bucket;     /* with sharded parameters, a bucket is allocated once and kept */
    int64_t
        bucket_elements; /* gradients are reduced in buckets of whole layers, at most this many elements or one layer */
    /* whole gradients are zeroed before the step, and checked before they are reduced, each in a pass of its own */
    bool grad_passes;
    /* in each micro-batch, whole gradients are copied into a flat tensor and divided before they are reduced: two
     * passes over memory */
    bool flattens_gradients;
    /* number of passes over a bucket of 16-bit or 32-bit gradients that is reduced once a step: the copy into a flat
     * tensor, the division of that tensor (taken as a copy), and the copy back; 0: no bucket is copied */
    uint8_t bucket_passes;
    /* such buckets are summed whole on all ranks, even if a rank updates only a part */
    bool all_reduces;
    bool reduces_in_place;  /* a rank's part of a whole gradient's sum lies within that gradient */
    bool reduce_at_end;     /* gradients that are reduced once a step wait for the whole backward */
    int64_t reuse_elements; /* gathered parameters stay when read again within this many elements */
    uint32_t prefetch;      /* layers gathered ahead of use (sharded parameters) */
    bool collectives_hold;  /* without prefetch: the thread that issues computation also starts each
                             gather and each reduction of weights, and waits for it */
    bool waits_for_reductions; /* computation, at the end of each micro-batch's backward */
    bool gathers_after_core; /* gathers start after attention's core; else when the layer begins */
    /* chunks of a sequence: copies in both directions share one stream, and copies whose end is not awaited soon have
     * another; else there is one stream per direction */
    bool chunk_fifo;
    bool chunk_sync; /* the host waits after every tile, and at a barrier after all-to-alls */
    /* all tensors of a query chunk are fetched again before each of its tiles, and the gradient of its queries is
     * copied to the host after each tile */
    bool chunk_reload;
    bool chunk_norm; /* the normed input of a chunk goes to the host too */
    bool chunk_cat;  /* outputs of the chunks are gathered in a list, then copied into one tensor */
    bool loss_again; /* the backward of pieces of the loss computes their logits again */
    bool
        loss_host; /* the input of pieces of the loss goes to the host and back by blocking pageable copies */
    bool chunk_eager;    /* activations of fpdt's feed-forward part are chains of kernels */
    bool chunk_grad_f32; /* fpdt sums weight gradients of pieces in fp32, beside the gradient */
    uint8_t clipping;    /* enum clipping; where there is any, AdamW waits for the last reduction */
    bool clipping_sync;  /* the host waits for the norm of gradients before it continues */
    uint8_t chains;      /* enum chains: norms, rotations, activations that are not one kernel */
    bool fused_merge;    /* partial outputs of rings and chunks are merged by one kernel */
    bool hostless;       /* the host takes no time to issue work */
    /* with the optimizer on the host: gradients are cast to fp32 on the device, before they are copied to the host */
    bool host_grads_f32;
    /* with the optimizer on the host: new parameters are cast into pageable memory, and a blocking copy takes them to the
     * device before the next part is updated */
    bool host_params_pageable;
    /* bytes of host memory that passes of their own around AdamW on the host read and write per parameter */
    uint8_t host_pass_bytes;
    double host_per_step_s; /* framework time of every rank between backward and optimizer */
    /* seconds that the framework takes on the host after each blocking copy of a checkpoint to the host or back */
    double host_per_checkpoint_s;
};

#endif

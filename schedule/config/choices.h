/* schedule/config/choices.h: the choices of a training step, and the schedule they make.
 *
 * A schedule is the product of five choices (attention, linear weights, pipeline,
 * activations, batch), each a small registry. A strategy is a named combination with
 * defaults; a profile sets the switches that tell implementations apart. One table
 * says which products are legal and why the others are not.
 *
 * compose_resolve() fills what the user left open and says what it did;
 * compose_build() emits the layers, rewrites them (recomputation, weight sharding,
 * offload) and finishes the schedule (waits, lifetimes, arena). */
#ifndef SCHEDULE_CONFIG_CHOICES_H
#define SCHEDULE_CONFIG_CHOICES_H

#include "base/diag.h"
#include "models/states.h"
#include "models/transformer.h"
#include "models/work.h"
#include "schedule/ir/ir.h"

#include <stdbool.h>
#include <stdint.h>

enum attention_choice {
#define ATTENTION(symbol, name, around, inner, cp, hp, corner) CHOICE_ATTENTION_##symbol,
#include "schedule/config/attention_choices.def"
#undef ATTENTION
    CHOICE_ATTENTION_COUNT
};

/* By which axes the ranks of a sequence share it, by choice; corner: a degree of 1 leaves a simpler choice. */
struct attention_axes {
    bool cp, hp, corner;
};
extern const struct attention_axes attention_axes[CHOICE_ATTENTION_COUNT];

/* Which of the two are neighbours in the order of ranks. */
enum placement { PLACEMENT_HEAD_FIRST, PLACEMENT_CONTEXT_FIRST, PLACEMENT_COUNT };

/* Where the stages of a pipeline lie: outermost, so that all ranks of a stage are neighbours, as frameworks
 * have them; or inside dp, so that the stages of a sequence are. */
enum stage_placement { STAGES_OUTER, STAGES_INNER, STAGE_PLACEMENT_COUNT };

/* Which ranks of a ring are a window: neighbours, or the even ones of a node and then its odd ones,
 * so that those that leave it do so by different NICs. */
enum windows { WINDOWS_PROFILE, WINDOWS_CONTIGUOUS, WINDOWS_INTERLEAVED, WINDOWS_COUNT };

/* Which tokens a rank of a ring holds. */
enum ring_layout { RING_ZIGZAG, RING_CONTIGUOUS, RING_STRIPED, RING_LAYOUT_COUNT };

/* How the keys and values of all ranks of a ring come to each of them. */
enum rotation {
    ROTATE_PROFILE,
    ROTATE_P2P,        /* a message to the next rank in every step */
    ROTATE_ALL_TO_ALL, /* the same as an all-to-all with one peer: a step starts with the last rank */
    ROTATE_ALL_GATHER, /* all at once, behind the first tile */
    ROTATION_COUNT
};

/* What the backward of a chunked sequence loops over outside: chunks of keys and values, whose
 * gradients then stay, or of queries. */
enum chunk_order { ORDER_KV_OUTER, ORDER_QUERY_OUTER, ORDER_COUNT };

/* Whether what other chunks will read of a chunk waits on the host. */
enum kv_offload { KV_OFFLOAD_ON, KV_OFFLOAD_OFF, KV_OFFLOAD_COUNT };

/* Which rank brings keys and values back from the host for a tile: every rank its own part, or one rank the parts of all,
 * which it scatters; for a chunk that rank is the chunk's number modulo the head ranks. */
enum chunk_fetch { FETCH_EACH, FETCH_ONE, FETCH_COUNT };

enum weights_choice {
    CHOICE_WEIGHTS_REPLICATED, /* gradients all-reduced */
    CHOICE_WEIGHTS_ZERO1,      /* optimizer states sharded */
    CHOICE_WEIGHTS_ZERO2,      /* and gradients */
    CHOICE_WEIGHTS_ZERO3,      /* and parameters */
    CHOICE_WEIGHTS_HSDP,       /* as ZeRO-3 within `shard` ranks, replicated across */
    CHOICE_WEIGHTS_COUNT
};

enum pipeline_choice {
    CHOICE_PIPELINE_NONE,
    CHOICE_PIPELINE_GPIPE,
    CHOICE_PIPELINE_1F1B,
    CHOICE_PIPELINE_INTERLEAVED, /* 1F1B over several chunks of layers a stage */
    CHOICE_PIPELINE_ZB_1P,       /* 1F1B with gradients of weights split off: ZB-H1 */
    CHOICE_PIPELINE_ZB_V,        /* the same, down the stages and back up */
    CHOICE_PIPELINE_TERAPIPE,    /* GPipe over subsequences */
    CHOICE_PIPELINE_SEQ1F1B,     /* 1F1B over subsequences */
    CHOICE_PIPELINE_MSP,         /* TeraPipe with multiplexed sequence partitioning (SPPO) */
    CHOICE_PIPELINE_COUNT
};

/* How stages that share subsequences (CHOICE_PIPELINE_MSP) come by each other's weights, and what becomes
 * of the gradients that they make for them. */
enum helper_weights {
    HELPERS_BROADCAST, /* layer by layer from their owner, to which gradients are summed the same way */
    HELPERS_REPLICATE, /* all stages hold all weights, and reduce all gradients at the end */
    HELPERS_SHARD,     /* each of those that share holds a part, of parameters and of gradients */
    HELPERS_COUNT
};

/* Subsequences that such stages share, as far as the pipeline's phases have them: so many of the first, while
 * it fills, and of the last, while it drains. SHARED_ALL: as many as the phases have. */
struct shared_units {
    uint32_t first, last;
};
#define SHARED_ALL UINT32_MAX

enum activations_choice {
    CHOICE_ACTIVATIONS_KEEP,              /* everything the backward reads stays */
    CHOICE_ACTIVATIONS_SELECTIVE,         /* layer inputs and what attention's core made stay */
    CHOICE_ACTIVATIONS_FULL,              /* layer inputs stay, the rest is recomputed */
    CHOICE_ACTIVATIONS_OFFLOAD,           /* layer inputs go to the host, the rest is recomputed */
    CHOICE_ACTIVATIONS_SELECTIVE_OFFLOAD, /* as selective; what the core made goes to the host */
    CHOICE_ACTIVATIONS_SELECTIVE_OP,      /* as selective, and every second product stays */
    CHOICE_ACTIVATIONS_SELECTIVE_LAYER,   /* every second layer as full, the others as keep */
    CHOICE_ACTIVATIONS_SELECTIVE_CORE,    /* all stays but what only attention's core needs */
    CHOICE_ACTIVATIONS_RATIO, /* part of what the backward reads goes to the host, none recomputed */
    CHOICE_ACTIVATIONS_COUNT
};

/* Whether attention drops scores: as the profile has it, or as asked. */
enum dropout { DROPOUT_PROFILE, DROPOUT_OFF, DROPOUT_ON, DROPOUT_COUNT };

/* Time of attention kernels with dropout relative to those without: a random number per score, and no mask
 * that is kept. Inferred; docs/accuracy.md. */
#define COMPOSE_DROPOUT_SLOWDOWN 1.15

enum optimizer_choice { CHOICE_OPTIMIZER_DEVICE, CHOICE_OPTIMIZER_HOST, CHOICE_OPTIMIZER_COUNT };

/* Where key and value heads are copied when they do not divide over the head ranks. */
enum kv_replication {
    KV_TO_RANKS, /* to as many heads as there are ranks, before the all-to-all */
    KV_TO_HEADS, /* to as many heads as queries have, before the all-to-all, always */
    KV_REPLICATION_COUNT
};

/* What is scheduled: the training step of the whole model; one layer, forward, recomputed and
 * backward, with its weights' gathers and reductions and no optimizer; or its attention operator
 * alone, from the projected queries, keys and values to the output and back, without positions and
 * head norms. */
enum scope {
    SCOPE_STEP,
    SCOPE_LAYER,
    SCOPE_ATTENTION,
    SCOPE_ATTENTION_FORWARD,
    SCOPE_ATTENTION_BACKWARD, /* with the forward it needs, which is no part of it */
    SCOPE_EXCHANGE, /* the operator's exchanges of tokens for heads, each call by itself */
    SCOPE_FETCH,    /* what a tile of each direction fetches from the host, by itself */
    SCOPE_LAYERS,   /* the step without embedding, head, loss, reductions and optimizer */
    SCOPE_LAYERS_FORWARD,
    SCOPE_COUNT
};

/* What becomes of gradients between the last reduction and AdamW. */
enum clipping {
    CLIPPING_NONE,
    CLIPPING_IN_STEP,  /* the norm of all is taken, and AdamW scales what it reads */
    CLIPPING_IN_PLACE, /* and they are scaled by a pass of their own */
};

/* Whose code says which work runs as a chain of kernels, and what the chain moves:
 * schedule/config/chains.c. */
enum chains {
    CHAINS_FUSED,
    CHAINS_TORCHTITAN,
    CHAINS_INTERNEVO,
    CHAINS_INTERNLM,
    CHAINS_HF,
    CHAINS_COUNT
};

/* What tells one implementation of the same schedule from another. docs/strategies.md has
 * the source of every cell. */
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
    bool gathers_first;  /* the first tile too waits for gathered keys and values */
    bool gathered_shift; /* gradients of gathered keys and values go round; else they are
                            reduce-scattered */
    bool core_sync; /* forward: the host waits for the device before and after attention's core */
    double host_per_list_s; /* framework time of an exchange or a shift that takes lists of tensors,
                               which an all-to-all then does, one for each rank; 0: none does */
    bool ring_grad_f32;     /* gradients of keys and values go round in fp32 throughout */
    bool
        messages_sync; /* stages of a plain pipeline: the host waits for every message, and posts the
                           next action's receive only then */
    bool prefix_copied;       /* keys and values of earlier subsequences are copied for each one */
    bool prefix_grad_f32;     /* their gradients are summed in fp32 */
    bool interleaves_windows; /* context-first, where a node holds two windows or more */
    bool tensor_after;        /* a collective of tensor ranks starts after all compute before it */
    bool tensor_buffer;       /* what they gather goes to one buffer that is kept throughout */
    int64_t vocabulary_unit;  /* their parts of the vocabulary are multiples of it, with rows that
                                 stand for no token; 0: 1 */
    bool recompute_whole;     /* recompute the whole layer, also what no backward op reads */
    bool loss_f32;            /* fp32 logits, softmax and its logarithm are materialised */
    bool loss_apart;    /* where they are not: the gradient of the logits has a buffer of its own */
    uint8_t grad_dtype; /* enum dtype of accumulated weight gradients */
    bool reduces_f32;   /* where ranks share a sequence, gradients are cast to fp32 to be reduced to
                           shards, and their sums are cast back */
    bool offload_blocking; /* checkpoints to the host by blocking pageable copies */
    bool offload_waits;    /* ratios: copies and computation wait for each other unit by unit */
    int64_t offload_grain; /* ratios: tensors below it stay, and bytes are rounded up to it */
    bool rotary_tables;    /* angles, cosine and sine of the whole sequence stay on every rank */
    bool holds_bucket;     /* with sharded parameters, a bucket is allocated once and kept */
    int64_t
        bucket_elements; /* gradients reduced in buckets of at least this many elements; 0: a layer */
    bool grad_passes;    /* whole gradients are zeroed before the step, and looked through before
                               they are reduced, each in a pass of its own */
    bool flattens_gradients; /* whole gradients that are reduced each micro-batch are copied into a
                                flat tensor and divided first: two passes */
    uint8_t
        bucket_passes; /* copies of 16-bit or 32-bit gradients that are reduced once a step, made
                                of each bucket first: into a flat tensor, of that, and back; 0: none */
    bool all_reduces;  /* these, when a rank updates only a part, are summed on all ranks */
    bool reduces_in_place;  /* a rank's part of a whole gradient's sum lies within that gradient */
    bool reduce_at_end;     /* gradients that are reduced once a step wait for the whole backward */
    int64_t reuse_elements; /* gathered parameters stay when read again within this many elements */
    uint32_t prefetch;      /* layers gathered ahead of use (sharded parameters) */
    bool waits_for_reductions; /* computation, at the end of each micro-batch's backward */
    bool gathers_behind_core; /* these, when attention's core is over; else when the layer begins */
    bool chunk_fifo; /* chunks of a sequence: copies of both directions share one stream, those that
                         nothing waits for soon another; else one stream per direction */
    bool chunk_sync; /* the host waits behind every tile, and at a barrier behind all-to-alls */
    bool chunk_reload; /* all of a query chunk comes back before each of its tiles, and the gradient
                          of the queries goes to the host behind each */
    bool chunk_norm;   /* the normed input of a chunk goes to the host too */
    bool chunk_cat;  /* outputs of the chunks are gathered in a list, then copied into one tensor */
    bool loss_again; /* the backward of pieces of the loss computes their logits again */
    bool
        loss_host; /* and their input goes to the host and comes back by blocking pageable copies */
    bool chunk_eager;    /* activations of fpdt's feed-forward part are chains of kernels */
    bool chunk_grad_f32; /* fpdt sums weight gradients of pieces in fp32, beside the gradient */
    uint8_t clipping;    /* enum clipping; where there is any, AdamW waits for the last reduction */
    bool clipping_sync;  /* the host reads the norm before it goes on */
    uint8_t chains;      /* enum chains: norms, rotations, activations that are not one kernel */
    bool fused_merge;    /* partial outputs of rings and chunks are merged by one kernel */
    bool attention_dropout; /* attention drops scores, but in FPDT's kernels */
    double host_factor;     /* host issue time relative to plain eager launches */
    double host_per_step_s; /* framework time of every rank between backward and optimizer */
    double
        host_per_checkpoint_s; /* framework time on the host after each blocking copy of a checkpoint,
                                  to the host or back */
};

struct choices {
    const struct transformer *model;
    const struct profile *profile;
    uint8_t strategy; /* row of compose_strategies() */
    uint8_t scope;    /* enum scope */
    uint8_t attention, weights, pipeline, activations, optimizer;
    uint8_t states; /* enum states */
    bool attention_dropout;
    uint8_t attention_impl;
    int sm;        /* compute capability of the device times ten, for kernel workspaces */
    uint8_t dtype; /* enum dtype of compute: bf16, f16 or f32 */

    uint32_t ranks;        /* all ranks: dp * pp * cp * hp * tp */
    int64_t gpus_per_node; /* of the cluster; 0: not known */
    uint32_t dp, pp, cp, hp;
    uint32_t tp;             /* ranks that share heads, feed-forward width and vocabulary */
    uint32_t virtual_stages; /* chunks of layers on each stage of the pipeline */
    uint32_t subsequences;   /* pieces of every sequence that go through the layers in turn */
    const int64_t *lengths;  /* their tokens; NULL: equal pieces. Memory of the caller. */
    bool uneven;             /* lengths are yet to be made: not to be built */
    uint8_t helpers;         /* enum helper_weights */
    struct shared_units shared;
    uint8_t placement;       /* enum placement */
    uint8_t stage_placement; /* enum stage_placement */
    uint8_t ring_layout;     /* enum ring_layout */
    uint8_t rotation;        /* enum rotation, not ROTATE_PROFILE */
    uint32_t interleaved;    /* the context ranks of a node, when windows are interleaved; else 0 */
    uint32_t window;         /* context ranks of an inner ring (Double-Ring); 1: one ring of all */
    uint32_t shard; /* ranks of a stage that share one copy of its weights; all of dp x cp x hp,
                       or fewer (HSDP; of ZeRO-1, that share one copy of its states) */
    int64_t seq;    /* tokens of one sequence */
    int64_t global_batch, micro_batch; /* sequences per step; per rank group and micro-batch */
    uint32_t accumulation; /* micro-batches per step = global_batch / (dp * micro_batch) */
    uint32_t loss_chunks, ffn_chunks; /* pieces of the local tokens */
    /* CHOICE_ACTIVATIONS_RATIO: the part of a unit's activations that leaves, above 0; or, where
       offload_hidden is above 0, as much as these bytes are of them (schedule/pipeline/ratios.h) */
    double offload_ratio, offload_hidden;
    const double *offload_hidden_of; /* the same of each subsequence's computation; NULL: alike.
                                        Memory of the caller. */
    int64_t chunk;   /* tokens of a chunk of the sequence, over all its ranks (fpdt); else 0 */
    uint32_t chunks; /* of a sequence: the last one may be shorter; else 1 */
    uint8_t kv_offload, chunk_order,
        fetch; /* enum kv_offload, enum chunk_order, enum chunk_fetch */
    /* torch.compile: chains and merges are one kernel each, the first tile waits for gathered
       blocks */
    bool compile;
};

/* What the user asked for: 0 or a negative number leaves a field open. */
struct request {
    const struct transformer *model;
    const char *strategy, *profile; /* NULL: ulysses, published */
    const char *impl; /* what `published` stands for; NULL: the strategy's own default */
    int weights, activations, optimizer, attention_impl, dtype; /* -1: the strategy's default */
    int states;                                                 /* enum states */
    int dropout;                                                /* enum dropout */
    int64_t ranks;
    int64_t dp, cp, hp, tp, shard;
    int64_t pp, virtual_stages, subsequences;
    const int64_t *lengths; /* tokens of each subsequence; NULL: see partition. Borrowed. */
    /* Where lengths are not given: 0: equal ones. Above: a rule of the caller's, who makes them
       before he builds; the request resolves without them. */
    int partition;
    int pipeline;                      /* enum pipeline_choice; 0: left open */
    int helpers;                       /* enum helper_weights */
    const struct shared_units *shared; /* NULL: all. Borrowed. */
    bool shared_open;                  /* the caller makes `shared` of costs before he builds */
    int placement, ring_layout;        /* enum placement, enum ring_layout */
    int stage_placement;               /* enum stage_placement */
    int64_t window;
    int windows; /* enum windows */
    int rotate;  /* enum rotation */
    bool compile;
    int scope; /* enum scope */
    int64_t seq, global_batch, micro_batch;
    int64_t loss_chunks, ffn_chunks;
    double offload_ratio;  /* 0: open: all of it */
    double offload_hidden; /* bytes to the host that a unit's computation hides; 0: one ratio */
    const double *offload_hidden_of; /* the same of each subsequence's; NULL: alike. Borrowed. */
    bool offload_adaptive;           /* the caller makes offload_hidden of costs before he builds */
    int64_t chunk;
    int kv_offload, chunk_order, fetch;
    int sm; /* compute capability of the cluster's device times ten; 0: not known */
    int64_t gpus_per_node;
};

/* Rows for `list` and for option values; names[i] of a choice is its text name. */
struct strategy {
    const char *name, *summary;
    uint8_t attention, weights, pipeline, activations;
    const char *profile;    /* what `published` stands for */
    bool tensor;            /* tp, when open, is as many ranks of a node as fit */
    bool subsequences;      /* and so are pp and subsequences: schedule/pipeline/sppo.h */
    int64_t compared_ranks; /* the most on which a step of it was compared with a measured one
                               (traces/published/measurements.csv); 0: on none */
};
const struct strategy *compose_strategies(size_t *count);
const struct profile *compose_profiles(size_t *count);
/* Whether there is such a strategy and such a profile; NULL is not asked about. */
enum status compose_check_names(const char *strategy, const char *profile, struct diag *diag);
/* Text names of the values of each choice, as many as its enum counts. */
/* clang-format off */
extern const char *const weights_names[], *const activations_names[], *const optimizer_names[], *const dropout_names[],
    *const attention_names[], *const pipeline_names[], *const placement_names[],
    *const stage_placement_names[], *const ring_layout_names[], *const windows_names[],
    *const rotation_names[], *const helper_names[], *const scope_names[],
    *const kv_offload_names[], *const chunk_order_names[], *const fetch_names[];
/* clang-format on */

/* Fills every open field, checks sizes and the table of legal products. Messages say which
 * values would do. note (may be NULL) receives what was filled in that a user should know. */
enum status compose_resolve(struct choices *choices, const struct request *request,
                            struct diag *note, struct diag *diag);

/* Bytes of the gradient bucket that the profile's framework holds throughout the step beside the
 * schedule's buffers; 0 when it holds none. */
int64_t compose_bucket_bytes(const struct choices *choices);
/* The same of rotary tables, a block each: angles in fp32 where they are kept, cosine, sine. */
enum { COMPOSE_TABLES = 3 };
void compose_tables(const struct choices *choices, uint64_t block[COMPOSE_TABLES]);

/* Time of attention kernels relative to the plain kernel. */
double compose_attention_slowdown(const struct choices *choices);

/* The shares of the flops of matrix products in layers, and in the head, that tensor ranks compute although the
 * model does not need them: all that hold the same key and value heads project them, and padding rows of the
 * vocabulary stand for no token. */
void compose_products_again(const struct choices *choices, double *layers, double *head);

/* Builds the finished schedule: waits, free sets and arena offsets are in place. ir must be
 * empty. Too large a schedule (ids are 32 bits) is an error. */
enum status compose_build(struct ir *ir, const struct choices *choices, struct diag *diag);

#endif

/* schedule/emit/emit.h: the functions that the emission of every strategy shares.
 *
 * Emission writes the training step of one role as ops in list order, as if every weight were whole and every
 * activation saved. Passes then rewrite the list (schedule/emit/op_list.h): they gather weights, drop activations and
 * compute them again. The only waits that emission gives to ops are those that an implementation has beyond its data
 * dependencies; data dependencies across streams are inferred at the end (schedule/step/finalize.c).
 *
 * Shapes: N local rows of a micro-batch (micro_batch * n), n local tokens of a sequence, h hidden, W = (heads + 2
 * kv_heads) head_dim. Activations are row-major [rows, columns].
 *
 * The folder schedule/emit/ holds the functions with which every part of a step writes its ops, buffers and groups. */
#ifndef SCHEDULE_EMIT_EMIT_H
#define SCHEDULE_EMIT_EMIT_H

#include "schedule/choices/choices.h"
#include "schedule/choices/kept.h"
#include "schedule/ir/ir.h"
#include "schedule/ir/tile_plan.h"

#include <stdbool.h>
#include <stdint.h>

/* The weights of a layer, the embedding and the head, by their purpose. */
enum weight {
#define WEIGHT(symbol, name) WEIGHT_##symbol,
#include "schedule/emit/weights.def"
#undef WEIGHT
    WEIGHT_COUNT
};
_Static_assert(WEIGHT_COUNT <= 64, "struct emit_weights has a mask of weights");

/* Returns whether every expert has a part of the weight. */
static inline bool weight_is_of_experts(enum weight weight)
{
    return weight == WEIGHT_EXPERTS_UP || weight == WEIGHT_EXPERTS_UP_BIAS ||
           weight == WEIGHT_EXPERTS_DOWN || weight == WEIGHT_EXPERTS_DOWN_BIAS;
}

/* Returns whether the weight is of an adapter. */
static inline bool weight_is_of_adapter(enum weight weight)
{
    return weight >= WEIGHT_ADAPTER_Q_A && weight <= WEIGHT_ADAPTER_DOWN_B;
}

/* The parts of the model that own tensors: layers 0..L-1 (L: the number of layers), then those of enum
 * embedding_or_head_part: embedding, head, and learned positions. A stage has the parts of its layers; the first and
 * the last stage also have end parts. */
struct model_part {
    uint32_t bundle;        /* IR_NONE: this stage does not have the part */
    uint64_t first_element; /* first element of the part in its bundle */
    /* the bundle of the part's experts, if they are spread over ranks; IR_NONE: they are in `bundle` */
    uint32_t experts_bundle;
    /* the first element of the part's experts in that bundle */
    uint64_t first_expert_element_in_bundle;
    /* adapters_bundle: the bundle of the part's adapters; IR_NONE: the part has none. first_adapter_element_in_bundle:
     * their first element in it */
    uint32_t adapters_bundle;
    uint64_t first_adapter_element_in_bundle;
    /* stored_bundle: the bundle of the part's stored weights (--frozen-weights); IR_NONE: the part has none.
     * first_stored_element_in_bundle: their first element in it */
    uint32_t stored_bundle;
    uint64_t first_stored_element_in_bundle;
    /* The elements of the part whose gradients must be summed over tensor ranks, counted from `first_element`: every
     * tensor rank holds these tensors whole, but its gradient covers only its own tokens or heads. All other tensors of
     * the part come before them: those that tensor ranks divide, and those whose gradient is complete on every rank
     * (tensor_is_complete()). */
    uint64_t whole_begin, whole_count;
    uint32_t tp_replicated_tensor_count; /* number of these tensors */
};

enum embedding_or_head_part { PART_EMBEDDING, PART_HEAD, PART_POSITIONS, END_PARTS };

/* The offset and shape of one kind of weight in all parts of one sort: those with experts, or those without. rows is 0
 * if parts of that sort lack the weight. */
struct weight_offset_and_shape {
    uint64_t offset; /* elements from the first one of the part */
    int64_t rows, cols;
};

/* The two groups of ranks that share bundles. A group of one rank is IR_NONE16. */
struct weight_ranks {
    /* shard: the ranks that together hold one copy of the weights, or with ZeRO-1 and ZeRO-2 of the optimizer states;
     * replica: the ranks that hold the same shard of it */
    uint16_t shard_group, replica_group;
    uint32_t shard_size, replica_size;
    /* mask of the mesh axes over which weight gradients are partial sums; tensor ranks' axes are not among them */
    uint32_t partial_axes;
};

/* One bundle of weights (schedule/weights/bundles.h) and its buffers. */
struct weight_bundle_state {
    uint16_t ir_bundle_row; /* row of ir.bundle */
    /* the bundle has nothing but the experts of layers, which are spread over ranks */
    bool has_spread_experts;
    bool has_adapters; /* it has the adapters of layers, and nothing else */
    /* the bundle of most weights of the same layers, which was laid out before this one; the bundle itself if it is
     * that one */
    uint32_t main_bundle_of_same_layers;
    /* enum frozen_storage; if it is not FROZEN_STORAGE_16BIT, the bundle has stored weights and nothing else */
    uint8_t storage;
    bool is_frozen;                   /* it has neither gradients nor states */
    const struct weight_ranks *ranks; /* the ranks that share it */
    bool is_on_first_and_last_stage;  /* the first and the last stage have it: a tied embedding */
    bool has_states_elsewhere;        /* only other stages have its states */
    /* the chunk of the pipeline to which the bundle belongs; 0 for a tied embedding */
    uint32_t chunk;
    uint64_t elements;          /* number of elements, padding included */
    uint64_t unpadded_elements; /* number of elements without padding */
    buffer_id param;            /* the parameters that forward and backward ops read */
    buffer_id grad;        /* the gradient that the backward ops of the current micro-batch write */
    buffer_id param_shard; /* this rank's shard, if parameters are sharded */
    buffer_id grad_shard;  /* this rank's shard of the reduced gradient, if one is kept */
    /* If every tensor rank computes the gradient of all rows of the embedding: the rows that other ranks own
     * (schedule/step/embedding_head.c). Empty: it computes only its own rows. */
    struct view gradient_rows_of_other_ranks;
    buffer_id master, moment1, moment2;
    buffer_id scales; /* of stored weights: whole on every rank */
    /* the linear layers have only quantised weights (--primary-weights) */
    bool has_only_quantised_weights;
    /* the quantised weights of the whole bundle and their scales, in the order of the ranks' parts; IR_NONE: each
     * weight is quantised when the first product reads it */
    buffer_id narrow, narrow_scales;
    /* For sharded parameters that are gathered in 8 bits. amax_of_bundle: the largest element of the whole
     * bundle, found once a step; empty: ranks do not agree on it. own_part_in_8_bits: this rank's part in 8 bits;
     * IR_NONE: it is quantised anew before each gather. */
    struct view amax_of_bundle;
    buffer_id own_part_in_8_bits;
};

/* q, k and v of one sequence as separate tensors [rows, heads, head_dim]. */
struct qkv {
    struct view q, k, v;
};

/* The tensors of latent attention's projections that their backward reads (schedule/attention/latent.h). q, kv: the
 * narrow results of this rank's rows, followed by their norms and the statistics of these. *_gathered: the norms of all
 * tensor ranks' rows, which the wide products read. */
struct latent_saved {
    struct view q, q_norm, q_stats, q_norm_gathered;
    struct view kv, kv_norm, kv_stats, kv_norm_gathered;
};

/* The most linear layers that one product of the schedule stands for: q, k and v. */
enum { ADAPTERS_OF_PRODUCT = 3 };

/* The tensors that the backward of a product's adapters reads, one for each of its linear layers. x: the adapter's own
 * copy of the input; empty: it reads the layer's input. narrow: x times the adapter's first matrix, [rows, rank]. */
struct adapters_saved {
    struct view x[ADAPTERS_OF_PRODUCT], narrow[ADAPTERS_OF_PRODUCT];
};

/* The tensors of attention that are kept for the backward of one sequence of a micro-batch. */
struct attention_saved {
    struct qkv qkv;
    struct view o, lse;
    /* the 8-bit copies of q, k and v, and their scales (narrow_core.h); empty: none */
    struct view narrow, narrow_scales;
    struct fpdt_chunk *chunk; /* the chunks of FPDT, each with its own attention_saved */
    /* q and k before the norms of their heads; empty: the model has no such norms */
    struct view q_before_norm, k_before_norm;
    struct view q_rstd, k_rstd;
    /* With FPDT, which projects chunk by chunk, each chunk has its own `latent` and `adapters`. Else they are those of
     * the whole unit, and only the unit's first sequence has them. */
    struct latent_saved latent;
    struct adapters_saved adapters; /* of the same chunk or unit as `latent` */
    /* the normed latents of all tokens of the head group, if head ranks send latents (MLA_EXCHANGE_LATENT) */
    struct view latents;
};

/* The keys, values and their gradients of one sequence in one layer, which all subsequences share. k and v have room
 * for the whole sequence. */
struct prefix {
    struct view k, v;
    struct view dk, dv; /* gradients of as many keys as the last backward had */
    /* the gradients of k and v from the last subsequences, which stages share; at the owner of the layer, their sums
     * over these stages (stage_return_kv()). empty: no stages share last subsequences, or their units are not done
     * yet */
    struct view given_dk, given_dv;
};

/* The most parts into which the rows of a feed-forward product are divided. */
enum { FFN_PARTS = 2 };

/* The buffers of one chunk of rows that the backward of the experts reads. */
struct expert_saved {
    buffer_id logits, weights;      /* [rows, experts], [rows, copies], f32 */
    buffer_id permuted, up, act, y; /* [rows, *]: what experts read, compute and write */
    /* [copies rows] f32: the weight of each row that experts read; set only if the activation multiplies its results by
     * it */
    buffer_id router_weight_by_row;
    buffer_id shared_up, shared_act;
};

/* The buffers that a layer's forward keeps for its backward. */
struct layer_saved {
    /* the result of the feed-forward part; the backward reads it only if a norm comes after it */
    buffer_id ffn_out;
    buffer_id x, norm1;
    /* the results of the three products of q, k and v, [N, width] each; empty: q, k and v are one product */
    struct qkv projected_q_k_v;
    struct attention_saved *attention; /* one for each sequence of the micro-batch */
    buffer_id attention_out;           /* [N, columns of attention's result] */
    /* the result of the output projection; the backward reads it only if a norm comes after it */
    buffer_id output_projection_result;
    buffer_id x2, norm2;
    /* the normed inputs, gathered from all tensor ranks. norm2_all has a view for each chunk of rows. */
    struct view norm1_all, *norm2_all;
    struct view norm1_stats, norm2_stats, norm1_after_stats, norm2_after_stats;
    /* [chunks of rows] the results of the first product, in one part or in FFN_PARTS: [rows of the part, 2 ffn or
     * ffn] */
    buffer_id (*up)[FFN_PARTS];
    buffer_id *act; /* [chunks of rows] each [rows, ffn] */
    struct adapters_saved o_adapters;
    struct adapters_saved *up_adapters, *down_adapters; /* [chunks of rows] each */
    struct expert_saved *experts; /* [chunks of rows] NULL: the layer has no experts */
};

/* A buffer whose bytes stay in use until an op has ended, because an implementation keeps it longer than its last
 * reader needs: for example, a Python variable still names it. */
struct lifetime_extension {
    buffer_id buffer;
    op_id kept_until_op;
};

/* A list of buffers that recomputation does not make again. */
struct saved_buffers {
    buffer_id *buffer;
    uint32_t count;
    size_t capacity;
};

/* A buffer that a module of a layer drops after the forward; the backward makes it again
 * (emit_record_recomputed_buffer()). */
struct recomputed_buffer {
    buffer_id buffer;
    uint8_t module; /* enum recompute_module */
};

/* The ops of a module that is computed again as a whole: those with ids from `begin` to `end` - 1. */
struct recomputed_module_ops {
    uint32_t begin, end;
    uint8_t module; /* enum recompute_module */
};

/* A wait of one op for another op, whose results it need not read. Implementations have such waits, for example to
 * limit the memory in use. */
struct added_dependency {
    op_id waiting_op, awaited_op;
};

/* A ring of context ranks. With two rings the inner one joins the ranks of a window, and the outer one the windows. */
struct ring {
    uint16_t group; /* IR_NONE16: the ring has one rank */
    uint32_t size;
    /* streams of keys and values, and of their gradients; both are the same with the profile's switch
     * ring_messages_share_stream. Each stream has a communicator of its own. */
    uint8_t kv_stream, dkv_stream;
};

/* A gradient that is recorded and computed later (schedule/emit/gradients.c). m > 0: the product dy^T x of a weight,
 * [m, n], summed over k rows. m = 0: the column sums of dy[k, n], the gradient of a bias; x is empty. */
struct deferred_gradient {
    struct deferred_gradient *next;
    uint32_t part;
    enum weight weight;
    struct view dy, x;
    int64_t m, n, k;
    int64_t route, dealt, kept; /* as of struct expert_rows */
    /* only this head rank's rows of the weight: emit_grad_of_own_head_rows() */
    bool covers_own_heads_only;
    struct op_tags op_tags;
};
/* A product that has been computed in a buffer of its own, and that emit_add_late_products_to_grads() will add to the
 * gradient `to`, or cast into it if `accumulate` is false (profile switch adds_grads_after_backward). */
struct late_gradient_product {
    struct late_gradient_product *next;
    struct view product, to;
    bool accumulate;
    struct op_tags op_tags;
};
struct deferred_gradient_list {
    struct deferred_gradient *first, **end; /* end: NULL while the list is empty */
};

/* The tensor ranks, which share the layers by heads, feed-forward width and vocabulary. */
struct tensor_ranks {
    uint16_t group; /* IR_NONE16: there is one tensor rank */
    uint32_t size;
    uint32_t axes; /* bit mask of mesh axes */
    /* group_of_kv_head_copies: the ranks that hold the same key and value heads, which lie along the axes
     * kv_head_copy_axes; IR_NONE16: no two ranks do */
    uint16_t group_of_kv_head_copies;
    uint32_t kv_head_copy_axes;
    uint8_t tensor_comm_stream; /* the stream of the collectives of tensor ranks */
    /* the buffer that gathers of inputs write, if the implementation keeps one (profile switch
     * tensor_gathers_share_buffer); IR_NONE: each gather has a buffer of its own */
    buffer_id shared_gather_buffer;
};

/* The stages that share the unit. Each computes a piece of it; the keys and values of every piece go to all of them. */
struct stages_sharing_pipeline_unit {
    uint32_t first_stage, count; /* count 1: nothing is shared */
    uint32_t index;              /* the number of this stage among them, from 0 */
    uint16_t group;
    uint32_t chunk;
    bool this_stage_owns_layers; /* this stage owns the layers */
};

/* The gradient that this stage computes for one bundle of a chunk in units that stages share. The stages sum their
 * gradients (schedule/weights/remote_weights.h). With MSP_WEIGHTS_SHARD there is one for each unit, else one for all
 * units that the same stages share. */
struct remote_grad {
    buffer_id buffer;
    /* as emit_weights.written; all remote gradients of the same units have one array */
    uint64_t *written;
    uint32_t bundle;
    uint16_t group; /* the unit's stages */
    struct stages_sharing_pipeline_unit sharing_stages;
    /* the sum over the stages, until this stage has added it to its own gradient; IR_NONE: there is nothing to add */
    buffer_id gradient_sum_to_add;
};

/* This stage's part of a bundle that several stages hold in parts, because they share units of its chunk
 * (MSP_WEIGHTS_SHARD). */
struct stage_bundle_part {
    uint32_t bundle;
    struct stages_sharing_pipeline_unit sharing_stages;
    bool parameters_have_arrived; /* its parameters have arrived in this step */
    buffer_id param, grad;        /* IR_NONE: not made yet, or the stage owns the whole bundle */
    op_id last_gradient_sum_op;   /* the last sum of a unit's gradients; IR_NONE: none yet */
};

/* The documents of a sequence. first_sequence_with_same_documents: the lowest number of a sequence that has the same
 * documents as this one on every rank (documents_first_equal_sequence()). has_several_documents: the sequence has more
 * than one document on some rank. */
struct sequence_document_facts {
    uint32_t first_sequence_with_same_documents;
    bool has_several_documents;
};

/* Streams of the role that is emitted. */
struct emit_streams {
    /* second_compute: another compute stream, for rings whose tiles alternate between two streams */
    uint8_t compute, second_compute;
    uint8_t tile;                       /* the stream on which the current tile of attention runs */
    uint8_t comm;                       /* collectives of the head group */
    uint8_t weight_gather, grad_reduce; /* gathers of weights; reductions of gradients */
    /* the exchanges of tokens between ranks that have different experts */
    uint8_t expert_exchange_stream;
    uint8_t h2d, d2h; /* copies between device and host */
    uint8_t host;     /* work of the host's processors */
    /* FPDT's copies in both directions if they share one stream, and those whose end is not awaited soon */
    uint8_t offload, side_stream;
    /* collectives by which one rank stores or fetches a chunk for its head group */
    uint8_t chunk_collective_stream;
    uint8_t comm_stream_of_sharing_stages; /* collectives of stages that share a unit */
};

/* Process groups, and masks of mesh axes. IR_NONE16: the group has one rank, or does not exist. */
struct emit_groups {
    uint16_t hp; /* ranks that share a sequence by heads */
    /* the rings of the context ranks; the ranks of a sequence are inner_ring.size * outer_ring.size * hp */
    struct ring inner_ring, outer_ring;
    /* [2 * steps] for each tile of a step of a ring, whether it has a visible key, as schedule/attention/ring.c has
     * found; NULL: not looked for yet */
    uint8_t *ring_tile_visibility;
    uint16_t all_ranks; /* every rank of a stage, for FPDT's barriers */
    uint16_t ep;        /* ranks that have different experts */
    /* experts: the groups of bundles of experts that are spread over ranks; dense: those of all other bundles */
    struct weight_ranks dense, experts;
    uint16_t pp;                             /* the ranks that differ only in their stage */
    uint16_t group_of_first_and_last_stages; /* such ranks of the first and of the last stage */
    uint16_t group_for_gradient_norm;        /* ranks that together have every gradient */
    /* the ranks whose tokens attention's core sees: view_of_head_group_positions() */
    uint16_t group_seen_by_attention_core;
    uint32_t axes_with_partial_loss; /* axes over which the loss is partial */
};

/* The unit that is emitted: a micro-batch, or a subsequence of one. */
struct emit_unit {
    int64_t tokens; /* local tokens of one sequence, of all tensor ranks together */
    int64_t rows;   /* micro_batch * tokens */
    /* tokens and rows of one tensor rank, for ops that each tensor rank does on its own rows */
    int64_t own_tokens, own_rows;
    /* index of the unit's first token among the rank's tokens of a sequence */
    int64_t first_token;
    int64_t first_row; /* index of the unit's first row among the rank's rows of a step */
    uint32_t subsequence;
    /* index of the unit's first sequence among the rank's sequences of a step */
    int64_t first_sequence;
    /* the sequence, counted from `first_sequence`, whose positions view_of_unit_positions() returns; callers set it. It
     * does not matter unless documents determine how each sequence is cut. */
    int64_t positions_sequence_index;
    int64_t kv_cache_capacity_tokens; /* tokens for which a cache of the unit's chunk has room */
    struct stages_sharing_pipeline_unit stages;
};

/* Weights and their gradients. */
struct emit_weights {
    /* slot[0]: the slots of parts without experts; slot[1]: those of parts with experts */
    struct weight_offset_and_shape slot[2][WEIGHT_COUNT];
    /* the parts of the layers, then those of enum embedding_or_head_part */
    struct model_part *part;
    struct weight_bundle_state *bundle;
    uint32_t bundle_count;
    uint8_t grad_dtype;      /* enum dtype of whole weight gradients */
    uint8_t grad_part_dtype; /* enum dtype of the part of the summed gradients that a rank keeps */
    /* autocast casts fp32 parameters for products; `param_shard` of a bundle then holds its whole parameters */
    bool uses_autocast;
    /* The buffers of whole gradients. Element i is the gradient of bundle i % bundle_count, in micro-batch i /
     * bundle_count if each micro-batch has gradients of its own. IR_NONE: the buffer is not made yet. */
    buffer_id *grad_buffer;
    uint32_t grad_buffer_count; /* bundle_count, or micro-batches * bundle_count */
    /* [parts] a bit mask of the weights whose gradients some op has written, in the current micro-batch or unit */
    uint64_t *written;
    /* [micro-batches][parts] the masks of all micro-batches; one row if all micro-batches add to the same gradients */
    uint64_t *written_weight_masks_by_micro_batch;
    struct remote_grad *remote_grad; /* gradients of units that stages share */
    uint32_t remote_grad_count;
    size_t remote_grad_capacity;
    struct stage_bundle_part *stage_bundle_part;
    uint32_t stage_bundle_part_count;
    size_t stage_bundle_part_capacity;
    /* the list to which gradients of weights and biases are added, to be computed later; NULL: they are computed at
     * once */
    struct deferred_gradient_list *deferred;
    struct late_gradient_product *late, **late_end; /* late_end: NULL while the list is empty */
    /* [weights] the fp32 buffer to which products add between emit_fp32_sum_begin() and emit_fp32_sum_end(); empty:
     * products write the gradient itself */
    struct view fp32_sum_by_weight[WEIGHT_COUNT];
};

/* The 8- and 4-bit copies of tensors that products read (schedule/emit/narrow.c). */
struct emit_narrow {
    struct narrow_copies_of_tensor *copies; /* row 0 is not used, since 0 stands for none */
    uint32_t count;
    size_t capacity;
    uint32_t *first_narrow_copy_of_buffer; /* [buffer_capacity] the buffer's first row; 0: none */
    uint32_t buffer_capacity; /* buffers for which there is room; later ones have no copies */
    /* the buffer of the last gather over tensor ranks, those of DTensor aside */
    buffer_id last_gathered_buffer;
    buffer_id last_norm_result; /* the result of the last norm */
    /* callers set these while they emit the products of a router, which stay in 16 bits, or of experts */
    bool is_router, is_experts;
};

/* A part of a layer's forward or backward, while both are listed together (schedule/step/combined.h). first_op: the
 * first op of the part. place: the part's position in the order of all parts of the forward and the backward. */
struct listed_part_begin {
    uint32_t first_op, place;
};

/* The ops begin .. end - 1, which are listed one after another. first_position: the position in the list at which the
 * ops of this forward and backward begin. */
struct listed_op_range {
    uint32_t begin, end, first_position;
};

/* A forward and a backward whose ops are listed together (schedule/step/combined.h). */
struct emit_combined_fwd_bwd {
    bool is_emitting_both;
    /* the number of the layer that is emitted, counted in the order of its forward or backward from 0 */
    uint32_t layer_index_in_emission_order;
    struct listed_part_begin *begin; /* the begins of the forward's parts, then of the backward's */
    uint32_t part_begin_count, backward_begin;
    size_t part_begin_capacity;
    /* While the forward is emitted, the last compute op before it; while the backward is emitted, the last compute op
     * of the forward. When the backward begins, emit.last_compute becomes the op before the forward again, so that the
     * backward does not wait for the forward. */
    op_id last_compute_of_previous_pass;
    /* while the backward is emitted, the value that emit.awaited_by_next_compute had when the forward ended */
    op_id awaited_when_forward_ended;
    /* the ranges of all pairs of a forward and a backward so far, in list order */
    struct listed_op_range *listed_op_ranges;
    uint32_t listed_op_range_count;
    size_t listed_op_range_capacity;
};

/* A result of row_use_max_rows_of_any_rank(): for sequence number `sequence` of a rank, under a window of `window`
 * tokens (0: none). */
struct row_capacity_cache_entry {
    int64_t sequence, window;
    struct max_rows_of_any_rank_in_round capacity;
};

/* The state of emission. */
struct emit {
    struct ir *ir;
    const struct choices *choices;          /* their model is the share of one tensor rank */
    unsigned mask_of_memories_with_offsets; /* bit m: buffers of memory m get offsets */
    const struct transformer *whole_model;  /* the whole model */
    struct repeats repeats; /* the iterations that the list leaves out; all-zero: none */
    struct arena arena;
    /* the bytes that layers keep besides what the schedule's ops read */
    struct kept_bytes_row kept_extra_bytes;

    uint16_t role;  /* the role that is emitted: stage `stage` of the pipeline, or all ranks */
    uint32_t stage; /* 0 without a pipeline */
    struct emit_streams stream;
    struct emit_groups group;
    struct tensor_ranks tensor;
    struct emit_unit unit;
    struct emit_weights weights;
    struct emit_narrow narrow;
    struct emit_combined_fwd_bwd combined_fwd_bwd;
    /* [sequences of a rank]; NULL: each sequence is one document */
    const struct sequence_document_facts *sequence_document_facts;
    /* [row_capacity_cache_count] the answers of row_use_max_rows_of_any_rank() so far, kept since several layers ask
     * for the same one */
    struct row_capacity_cache_entry *row_capacity_cache;
    uint32_t row_capacity_cache_count;
    size_t row_capacity_cache_allocated;

    buffer_id tokens, tokens_own, labels, positions, positions_gathered, positions_own, loss;
    bool loss_is_written;
    /* the log-sum-exp of each row of logits in the last piece of the loss */
    struct view loss_lse_of_last_piece;

    struct op_tags op_tags; /* given to every op that is emitted */
    uint16_t guard;         /* given to every op that is emitted; IR_NONE16: none */
    /* the last compute op before the backward of attention's output projection, after which FPDT's first fetches
     * start */
    op_id last_compute_before_wo_backward;
    op_id last_compute;              /* the last op on the compute stream; IR_NONE: none yet */
    op_id awaited_by_next_compute;   /* an op for which the next compute op waits; IR_NONE: none */
    struct layer_saved *layer_saved; /* one for each layer, of the current unit */
    /* [layers * sequences of a micro-batch]; NULL: there are no subsequences */
    struct prefix *prefix;
    /* The buffers that recomputation does not make again because several units read them: the keys and values in
     * `prefix`, and the 8- or 4-bit copies of weights with their scales. */
    struct saved_buffers buffers_never_recomputed;

    /* the buffers whose contents selective checkpointing saves */
    struct saved_buffers kept_buffers;
    struct recomputed_buffer *recomputed_buffers;
    uint32_t recomputed_buffer_count;
    size_t recomputed_buffer_capacity;
    struct recomputed_module_ops *recomputed_module_ops;
    uint32_t recomputed_module_count;
    size_t recomputed_module_capacity;
    struct lifetime_extension *extension;
    uint32_t extension_count;
    size_t extension_capacity;
    struct added_dependency *added_dependencies;
    uint32_t added_dependency_count;
    size_t added_dependency_capacity;
};

/* Makes the host wait until all that was issued on a stream so far has ended. */
void emit_host_wait(struct emit *e, uint8_t stream);

/* --- buffers and views --- */
buffer_id emit_buffer(struct emit *e, const char *stem, enum category category, enum dtype dtype,
                      int64_t d0, int64_t d1); /* d1 = 0: one dimension */
/* Returns a new activation [rows, cols] in the compute dtype. */
buffer_id emit_activation_buffer(struct emit *e, const char *stem, int64_t rows, int64_t cols);
struct view view_whole(const struct emit *e, buffer_id buffer);
/* Returns a view of a whole new buffer of shape [d0, d1], or [d0] if d1 is 0. */
struct view emit_tensor(struct emit *e, const char *stem, enum category category, enum dtype dtype,
                        int64_t d0, int64_t d1);
/* Does what emit_tensor() does, in the compute dtype. */
struct view emit_compute_tensor(struct emit *e, const char *stem, enum category category,
                                int64_t d0, int64_t d1);
/* Returns a view of a whole new buffer in the given memory. It has `count` elements, in one dimension, of the category
 * and dtype of x. */
struct view emit_tensor_like(struct emit *e, struct view x, int64_t count, const char *stem,
                             enum memory memory);
/* Returns a new buffer of `count` elements that exists during the whole step and is bound to data. */
buffer_id emit_bound_buffer(struct emit *e, const char *stem, struct binding binding,
                            enum category category, enum dtype dtype, int64_t count);
enum dtype dtype_of_view(const struct emit *e, struct view x);
int64_t bytes_of_view(const struct emit *e, struct view x);
/* Returns the empty view, which means that there is no such operand. */
static inline struct view view_none(void)
{
    return (struct view){{IR_NONE}, 0, 0};
}
/* Returns `count` elements of a view from element `begin` on. */
struct view view_slice(struct view view, int64_t begin, int64_t count);
/* Returns `rows` rows of a [*, cols] buffer from row `begin` on. */
struct view view_rows(buffer_id buffer, int64_t begin, int64_t rows, int64_t cols);

/* --- weights and their gradients --- */
/* Returns the number of an end part among the parts of the model, of which the layers come first. For END_PARTS it is
 * the number of all parts. */
uint32_t part_index_of_embedding_or_head(const struct emit *e, enum embedding_or_head_part part);
bool has_weight(const struct emit *e, enum weight weight);
/* Returns the offset and the size of a weight in its part; its rows are 0 if the part lacks it. */
const struct weight_offset_and_shape *weight_offset_and_shape_of(const struct emit *e,
                                                                 uint32_t part, enum weight weight);
struct view weight_view(const struct emit *e, uint32_t part, enum weight weight);
/* True if ranks share a bundle that is trained, and each updates its own part of it. */
bool weight_bundle_update_is_sharded(const struct emit *e, uint32_t bundle);
/* True if the weight is of a linear layer of the model, and stored in 4 or 8 bits. */
bool weight_is_stored(const struct emit *e, enum weight weight);
/* True if the step does not train the weight, since the model has adapters. */
bool weight_is_frozen(const struct emit *e, enum weight weight);
/* Returns the gradient of a weight. Sets *accumulate if some op has written it, so that the next op must add to it.
 * From now on the gradient counts as written. If the framework zeroes gradients in passes of their own
 * (weights_have_zeroing_and_nan_checks()), emits that pass before the first write to the bundle's gradient. */
struct view grad_view(struct emit *e, uint32_t part, enum weight weight, bool *accumulate);

/* ---- ops: each gets the labels e->op_tags and the guard e->guard ---- */
op_id emit_op(struct emit *e, uint8_t stream, const struct work *work, const struct view *read,
              uint32_t reads, const struct view *write, uint32_t writes);

/* Does what emit_op() does, but the op starts no earlier than the end of `after` (IR_NONE: no such op). */
op_id emit_op_after(struct emit *e, op_id after, uint8_t stream, const struct work *work,
                    const struct view *read, uint32_t reads, const struct view *write,
                    uint32_t writes);

/* Zeroes x and returns it. */
struct view emit_zeros(struct emit *e, struct view x);
/* Copies x to y: from the device to the host (D2H), or from the host to the device (H2D). blocking: the host issues
 * nothing more until the copy has ended. */
op_id emit_host_device_copy(struct emit *e, enum work_kind kind, bool blocking, struct view x,
                            struct view y);
/* Casts x into y, element by element, and returns y. */
struct view emit_cast(struct emit *e, struct view x, struct view y);
/* Returns x if it has that dtype. Else emits a cast of x to a new buffer of one dimension, and returns that buffer. */
struct view emit_in_dtype(struct emit *e, struct view x, enum dtype dtype, const char *stem,
                          enum category category);
/* Emits a PACK or an UNPACK, and returns y. A PACK writes x[rows, parts * width] to y as [parts, rows, width]; an
 * UNPACK does the inverse. With parts = 1 either is a copy. */
struct view emit_pack_or_unpack(struct emit *e, enum work_kind kind, struct view x, struct view y,
                                int64_t rows, int64_t parts, int64_t width);
/* Sends x to the rank of the stage `by` stages after this one (negative: before it) that has the same other
 * coordinates, or receives x from it. */
op_id emit_message(struct emit *e, enum work_kind kind, uint8_t stream, int64_t by, struct view x,
                   int64_t channel);

/* Emits y[m,n] = op(a) op(b) + bias. `form` says which of a and b are transposed; an empty `bias` is left out. */
void emit_matmul(struct emit *e, enum matmul_form form, struct view a, struct view b,
                 struct view bias, struct view y, int64_t m, int64_t n, int64_t k);
/* The rows that a rank's experts read. capacity_rows: the rows of their buffers. If routing is not even, route, dealt
 * and kept are parameters of work on these rows, from which the rows in use follow (models/work.h). If it is even, all
 * rows are in use, and these three are 0. */
struct expert_rows {
    int64_t capacity_rows, route, dealt, kept;
};
/* Does what emit_matmul() does for the experts of a rank: the rows of each expert are multiplied by its own matrix, and
 * its own row of the bias is added. */
void emit_grouped_matmul(struct emit *e, enum matmul_form form, struct view a, struct view b,
                         struct view bias, struct view y, struct expert_rows rows, int64_t n,
                         int64_t k);
/* Returns the function that the model's activation applies, a value of enum activation_function. */
int64_t activation_function_to_emit(const struct emit *e);
/* Emits dw[m,n] = dy^T x over the rows of each expert, into the gradient of experts' weights; if some op has written
 * that gradient, dw is added to it. */
void emit_expert_grad(struct emit *e, uint32_t part, enum weight weight, struct view dy,
                      struct view x, int64_t m, int64_t n, struct expert_rows rows);
/* Emits dw[m,n] = dy^T x, summed over k rows, into the gradient of a weight; if some op has written that gradient, dw
 * is added to it. This and the other functions that emit a gradient defer it if e->weights.deferred is set, and do
 * nothing if the weight is not trained. */
void emit_weight_grad(struct emit *e, uint32_t part, enum weight weight, struct view dy,
                      struct view x, int64_t m, int64_t n, int64_t k);
/* A weight has hp equal parts of rows, one for the heads of each head rank. emit_matmul_with_own_head_rows() emits
 * y[m,n] = op(a) op(b), where b is the weight, with this head rank's rows of it. emit_grad_of_own_head_rows() emits the
 * gradient of these m rows; the other rows of the gradient stay as they are, or become 0 if no op has written the
 * gradient. */
void emit_matmul_with_own_head_rows(struct emit *e, enum matmul_form form, struct view a,
                                    struct view b, struct view y, int64_t m, int64_t n, int64_t k);
void emit_grad_of_own_head_rows(struct emit *e, uint32_t part, enum weight weight, struct view dy,
                                struct view x, int64_t m, int64_t n, int64_t k);
/* Emits db[cols] = the column sums of dy[rows, cols], into the gradient of a bias; if some op has written that
 * gradient, db is added to it. Does nothing if the model has no such bias, or does not train it. */
void emit_bias_grad(struct emit *e, uint32_t part, enum weight bias, struct view dy, int64_t rows,
                    int64_t cols);
/* Does what emit_bias_grad() does for the bias of each expert, db[experts, cols]: sums the expert's rows of dy. */
void emit_expert_bias_grad(struct emit *e, uint32_t part, enum weight bias, struct view dy,
                           struct expert_rows rows, int64_t cols);
/* With FPDT and the profile's switch fpdt_sums_weight_gradients_in_fp32, the products between emit_fp32_sum_begin() and
 * emit_fp32_sum_end() add to an fp32 buffer, and emit_fp32_sum_end() writes the sum to the weight's gradient, or adds
 * it. Otherwise, and if gradients are deferred or the weight is not trained, both do nothing. */
void emit_fp32_sum_begin(struct emit *e, uint32_t part, enum weight weight);
void emit_fp32_sum_end(struct emit *e, uint32_t part, enum weight weight);
/* Emits the gradients in the list, and empties it. */
void emit_deferred_gradients(struct emit *e, struct deferred_gradient_list *deferred_gradient_list);
/* With --expert-overlap delayed-wgrad: emits the gradients that have been deferred so far; later ones are deferred
 * again. Does nothing without that option, since pipelines that split backwards compute the deferred gradients in
 * actions of their own. */
void emit_gradients_delayed_for_overlap(struct emit *e);
/* Adds to the gradients of weights the late products (struct late_gradient_product) of all calls of emit_weight_grad()
 * since the last call. Does nothing if there are none. */
void emit_add_late_products_to_grads(struct emit *e);
void emit_add(struct emit *e, struct view a, struct view b, struct view y);
/* Emits y = a + b + bias on every row; an empty `bias` is left out. */
void emit_add_bias(struct emit *e, struct view a, struct view b, struct view bias, struct view y);
/* Emit the norm that the model has, or its backward. The norms of q, of k and of latents are RMSNorms in every model. A
 * model may have a norm without a weight. */
void emit_norm(struct emit *e, uint32_t part, enum weight weight, struct view x, struct view y,
               struct view stats, int64_t rows, int64_t cols);
void emit_norm_backward(struct emit *e, uint32_t part, enum weight weight, struct view dy,
                        struct view x, struct view stats, struct view dx, int64_t rows,
                        int64_t cols);
/* Makes the buffer of the statistics that emit_norm() writes: rstd [rows], or mean and rstd [rows, 2]. It has room for
 * `beside` more bytes, which an implementation keeps for the norm's backward (schedule/choices/kept.h). */
struct view emit_new_norm_stats_tensor(struct emit *e, enum weight weight, int64_t rows,
                                       int64_t beside);
/* Returns a new tensor of the residual stream, [rows, hidden], in the compute dtype. If the framework keeps the stream
 * in fp32, the buffer has room for that, and the tensor is its first part. */
struct view emit_new_residual_stream_tensor(struct emit *e);
/* Returns the tensor of the residual stream that is in buffer x, without the room that
 * emit_new_residual_stream_tensor() adds. */
struct view view_of_residual(const struct emit *e, buffer_id x);

/* Products in 8 or 4 bits (schedule/emit/narrow.c).
 *
 * emit_narrow_operands(): if the product is one of a linear layer that multiplies in 8 or 4 bits, replaces read[0] and
 * read[1] by their copies, and appends the scales of both after the `reads` operands, for which read[] must have room.
 * Returns the number of operands. emit_narrow_forget_copies(): forgets the copies of a buffer, since an op writes it.
 * emit_narrow_forget_all_copies(): forgets all copies, before another role is emitted.
 *
 * emit_narrow_gathers_in_8_bits(): true if tensor ranks gather the operands of such products in 8 bits, with one scale
 * that all ranks share (TransformerEngine, distributed.py, _all_gather_fp8(); torchao, float8_tensor_parallel.py,
 * "all-gather in float8"). emit_narrow_copy_of_own_rows(): returns the 8-bit copy of this rank's rows of an input or of
 * a gradient. The ranks of the group first agree, on the stream, on the largest element of all their rows, from which
 * the scale follows. emit_narrow_set_gathered_copy(): records that `data`, which was gathered from the copies of
 * `part`, is the copy of the tensor y with the rows of all ranks. No op writes y itself.
 *
 * emit_narrow_rescales_result(): true if products of the backward write a result that a pass of its own multiplies by
 * the scales of rows. torchao does so, with the kernel for one scale (torchao/float8/float8_ops.py,
 * addmm_float8_unwrapped(), post_inverse_scale): the kernel for rows is slow without fast accumulation, which gradients
 * do not use (torchao/float8/config.py, gemm_config_grad_input). In the schedule the product applies the scales, and a
 * cast takes the time of the pass. */
uint32_t emit_narrow_operands(struct emit *e, struct work *work, struct view *read, uint32_t reads);
void emit_narrow_forget_copies(struct emit *e, buffer_id buffer);
bool emit_narrow_gathers_in_8_bits(const struct emit *e);
bool emit_narrow_rescales_result(const struct emit *e);
struct view emit_narrow_copy_of_own_rows(struct emit *e, bool gradient, struct view x, int64_t cols,
                                         uint8_t stream, uint16_t group);
void emit_narrow_set_gathered_copy(struct emit *e, struct view part, struct view y,
                                   struct view data);
void emit_narrow_forget_all_copies(struct emit *e);
void emit_narrow_release(struct emit *e);

/* --- lifetimes, waits, and what recomputation makes again --- */
/* emit_extend_lifetime() keeps the bytes of a buffer in use until op `until` has ended. emit_add_dependency() makes
 * `op` wait for op `until`. */
void emit_extend_lifetime(struct emit *e, buffer_id buffer, op_id until);
void emit_add_dependency(struct emit *e, op_id op, op_id until);
/* Adds a buffer to a list, such as e->kept_buffers or e->buffers_never_recomputed. */
void saved_buffers_add(struct saved_buffers *saved, buffer_id buffer);
/* With CHOICE_ACTIVATIONS_SELECTIVE_OP, adds the result of a matrix product to e->kept_buffers. The caller decides
 * which products these are (kept_products_of()). Does nothing with other choices. */
void emit_record_kept_product_result(struct emit *e, buffer_id buffer);

/* Records that a module drops a buffer, if --recompute-modules names the module and this is the forward of a layer. */
void emit_record_recomputed_buffer(struct emit *e, enum recompute_module module, buffer_id buffer);
/* The numbers of buffers and ops that have been made so far. */
struct emitted_counts {
    uint32_t buffers, ops;
};
struct emitted_counts emit_counts_so_far(const struct emit *e);
/* Records that a module which is computed again as a whole drops all buffers that were made since `before`, and
 * `result`. Does so only where emit_record_recomputed_buffer() would. */
void emit_record_recomputed_module(struct emit *e, enum recompute_module module,
                                   struct emitted_counts before, buffer_id result);

/* --- positions of tokens --- */
/* Return the positions of the unit's tokens in one sequence. view_of_unit_positions(): of the tokens of this rank and
 * its tensor ranks. view_of_head_group_positions(): of the tokens of its head group. If documents determine how a
 * sequence is cut, it is sequence number e->unit.positions_sequence_index of the micro-batch; else all sequences have
 * the same positions. */
struct view view_of_unit_positions(const struct emit *e);
struct view view_of_head_group_positions(const struct emit *e);
/* Returns the positions of this tensor rank's own tokens, for ops that each tensor rank does on its own rows. */
struct view view_of_tensor_rank_positions(const struct emit *e);

#endif

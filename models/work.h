/* models/work.h: the vocabulary of work: kinds, their parameters, flops and bytes.
 *
 * A cost formula, an op of a schedule and a kernel are all keyed by the kind of
 * work. The kinds and the names of their parameters stand once, in
 * models/work_kinds.def; what each kind computes, operand by operand, stands in
 * docs/ir.md. A struct work is a kind with its sizes and has no time. */
#ifndef MODELS_WORK_H
#define MODELS_WORK_H

#include "models/dtype.h"
#include "models/scaling.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum work_kind {
#define WORK(symbol, name, stream, rmin, rmax, wmin, wmax, params) WORK_##symbol,
#include "models/work_kinds.def"
#undef WORK
    WORK_KIND_COUNT
};

/* The class of stream on which a kind runs. ADAMW and FILL may also run on a HOST stream (of the host's processor), and
 * a copy on the stream of the other direction. SYNC kinds are executed by the issuing thread. */
enum stream_class {
    STREAM_COMPUTE,
    STREAM_COMM,
    STREAM_H2D,
    STREAM_D2H,
    STREAM_HOST,
    STREAM_SYNC,
    STREAM_CLASS_COUNT
};

/* The form of op(a) op(b) in a row-major product y[m,n]. NT: a[m,k] b[n,k], for y = x w^T (forward). NN: a[m,k] b[k,n],
 * for dx = dy w. TN: a[k,m] b[k,n], for dw = dy^T x. */
enum matmul_form { MATMUL_NT, MATMUL_NN, MATMUL_TN, MATMUL_FORM_COUNT };
enum matmul_epilogue { EPILOGUE_NONE, EPILOGUE_BIAS, EPILOGUE_COUNT };
/* The keys j that query i sees. FULL: all. CAUSAL: j <= i + offset. WINDOW: of these, those with j > i + offset -
 * window. DOCUMENTS: the positions of both in a packed sequence decide, which the schedule knows
 * (schedule/ir/visible.h). CHUNKS: as DOCUMENTS, but only keys of the query's own chunk; a sequence is cut into chunks
 * of `window` positions. PLAN: as DOCUMENTS, where the keys are rows of other ranks that some query of this rank sees
 * (schedule/ir/needed.h), or, with a round, queries and keys are those of the rank's tiles
 * (schedule/ir/tile_plan.h). */
enum mask {
    MASK_FULL,
    MASK_CAUSAL,
    MASK_WINDOW,
    MASK_DOCUMENTS,
    MASK_PLAN,
    MASK_CHUNKS,
    MASK_COUNT
};
/* The order in which TAKE_ROWS copies rows. SEND: the rank's own rows, in the order in which it sends them. PLACE:
 * arrived rows, from the order of their senders to that of their positions. RETURN: from the order of positions back to
 * that of the senders. GATHER: the rank's own rows and arrived ones, to the packed order of a round. */
enum take_order { TAKE_SEND, TAKE_PLACE, TAKE_RETURN, TAKE_GATHER, TAKE_COUNT };
/* The function that an activation applies to its input, or to its gate if it has one. OF_KIND: silu for swiglu,
 * gelu's tanh form for gelu. GELU: gelu's tanh form, also for a gate (GEGLU). RELU2: max(x, 0)^2. CLAMPED, only for
 * swiglu: (up + 1) gate sigmoid(1.702 gate), where gate is at most 7 and up from -7 to 7 (gpt-oss, torch/model.py,
 * swiglu()). */
enum activation_function {
    FUNCTION_OF_KIND,
    FUNCTION_GELU,
    FUNCTION_RELU2,
    FUNCTION_CLAMPED,
    FUNCTION_COUNT
};
/* The function by which a router makes scores from logits; its values are those of enum router
 * (models/transformer.h). */
enum route_score { ROUTE_SOFTMAX, ROUTE_SOFTMAX_OF_CHOSEN, ROUTE_SIGMOID, ROUTE_SCORE_COUNT };
/* The cost of an operator of a recorded program. NOTHING takes no time. A product, a gradient of weights in groups
 * (form TN), attention and its backward cost as much as those kinds of work. Each other cost is that of the bytes of
 * memory-bound kernels, in a class of docs/costs.md, "Bytes". */
enum opaque_cost {
    OPAQUE_NOTHING,
    OPAQUE_MATMUL,
    OPAQUE_MATMUL_TN,
    OPAQUE_ATTENTION,
    OPAQUE_ATTENTION_BACKWARD,
    OPAQUE_STREAM,
    OPAQUE_REDUCE,
    OPAQUE_PERMUTE,
    OPAQUE_GATHER,
    OPAQUE_SCATTER,
    OPAQUE_COUNT
};
/* The tokens that PERMUTE copies into the order of experts. OWN: the rank's own. GATHERED: those of all members, in the
 * order of ranks. ARRIVED: those that were sent here because some of their experts are this rank's, in the order of the
 * ranks that sent them. */
enum permute_source { PERMUTE_OWN, PERMUTE_GATHERED, PERMUTE_ARRIVED, PERMUTE_SOURCE_COUNT };
enum reduce_op { REDUCE_SUM, REDUCE_MAX, REDUCE_COUNT };
/* The algorithm by which a collective moves its data; AUTO: as the platform's model of the library chooses. */
enum algorithm {
    ALGORITHM_AUTO,
    ALGORITHM_RING,
    ALGORITHM_TREE,
    ALGORITHM_DIRECT,
    ALGORITHM_COUNT
};

/* The implementations of attention: they have cost parameters and scratch memory of their own. */
enum attention_impl {
    ATTENTION_FA2,
    ATTENTION_FA3,
    ATTENTION_CUDNN,
    ATTENTION_CPU,
    ATTENTION_TRITON, /* FlashAttention's algorithm of 2022 in Triton */
    ATTENTION_FA1,    /* FlashAttention's own kernels of it: flash-attn before 2.0 */
    /* cuDNN's kernels that multiply in 8 bits: with a scale for a tensor, and in MXFP8 */
    ATTENTION_CUDNN_FP8,
    ATTENTION_CUDNN_MXFP8,
    ATTENTION_IMPL_COUNT
};

#define WORK_PARAMS_MAX 17

struct work {
    uint8_t kind; /* enum work_kind */
    /* enum dtype of the read operand that work_kind_info.in_operand selects: the first one, except the block of MERGE,
     * the copies of UNPERMUTE_BACKWARD, the table of EMBEDDING and the second term of ADD. Equals `out` when nothing is
     * read. */
    uint8_t in;
    /* enum dtype of the first write; for ADAMW, of the last (its copy of the parameters, if it writes one). Equals `in`
     * if nothing is written. */
    uint8_t out;
    /* number of operands that are read and written; 0 (in a work made by hand): as few as the kind allows */
    uint8_t reads, writes;
    union {
        int64_t p[WORK_PARAMS_MAX]; /* in the order of work_kinds.def; unused ones are 0 */
        struct {
            /* groups: the number of products, of which each multiplies the rows of one group (work_row_group_begin());
             * with `part`, the number of matrices; 0 or 1: one */
            int64_t m, n, k, form, epilogue, accumulate, groups, scaling; /* enum scaling */
            int64_t route, dealt;
            /* 1 + the group of ranks whose members have parts of a weight (work_part_group()): the rank multiplies by
             * one of the `groups` matrices, the one with its index in that group; 0: by all */
            int64_t part;
            /* with form=tn, groups and a scaling: both operands are transposed copies, a matrix for each group */
            int64_t turned;
            int64_t kept; /* with a route: the copies of `dealt` that no expert drops; 0: all */
        } matmul;
        struct {
            int64_t rows, cols, scaling; /* enum scaling */
            /* turned: the copy is transposed; both: a second copy is made, which is transposed */
            int64_t turned, both;
            int64_t amax; /* a pass of its own finds the largest element first */
            int64_t down; /* the exponents of E8M0 scales are rounded down */
            /* with one scale for the whole tensor. finds: the op only finds the largest magnitude; given: the op reads
             * one that was found */
            int64_t finds, given;
            /* groups of rows, as of a product (work_row_group_begin()), of which each is quantised by itself */
            int64_t groups, route, dealt;
        } quantise;
        struct {
            int64_t rows, cols, storage; /* enum frozen_storage */
        } dequantise;
        struct {
            int64_t q, kv, heads, kv_heads, dim, mask, offset, window;
            /* For the masks DOCUMENTS, CHUNKS and PLAN. sequence: the number of the rank's sequence, from 0. q_first,
             * kv_first: the first row of q, and of k and v, among the rows of the sequence that a context rank holds.
             * away, away_out: k and v come from the rank this many ranks before this one, in the ring of cp (or cp_in)
             * and in that of cp_out. */
            int64_t sequence, q_first, kv_first, away, away_out;
            int64_t vdim;  /* the columns of a head of v and of the result; 0: dim */
            int64_t round; /* for mask PLAN: 1 + the round of a plan of tiles; 0: needed rows */
            /* enum scaling. TENSOR and MX: it multiplies in 8 bits; NONE: in 16 or 32 */
            int64_t scaling;
            int64_t delta; /* of attention_backward: row sums of dO o O are read in place of O */
        } attention;       /* and attention_backward */
        struct {
            int64_t rows, heads, dim;
        } merge; /* and row_dot */
        struct {
            /* sinks: the size of the vector of sinks, one for each head of all ranks. part: 1 + the group whose ranks
             * share the heads: a rank has `heads` of them, from `heads` times its index on; 0: it has all */
            int64_t rows, heads, dim, sinks, part;
            int64_t accumulate; /* of sink_backward */
        } sink;                 /* and sink_backward */
        struct {
            int64_t rows, cols;
            int64_t accumulate; /* of the backward */
        } rows;                 /* what all norms and their backward have */
        struct {
            int64_t rows, cols, bare; /* bare: it has no weight */
        } rmsnorm;
        struct {
            int64_t rows, cols, accumulate, bare; /* bare: no weight, so nothing to accumulate */
        } rmsnorm_backward;
        struct {
            int64_t rows, cols, accumulate, groups, route, dealt;
        } column_sum;
        struct {
            int64_t rows, cols, touches, function; /* enum activation_function */
            int64_t route, dealt;                  /* of swiglu and its backward */
            int64_t weights; /* of the same: results are multiplied by a weight for each row */
        } activation;        /* swiglu, gelu, and their backward */
        struct {
            int64_t rows, heads, dim, stride;
            /* the number of columns of a head, the last ones, that are rotated; 0: all are */
            int64_t rotated;
        } rope;
        struct {
            int64_t rows, heads, plain, rotated, vdim;
        } latent_keys; /* and latent_keys_backward */
        struct {
            int64_t rows, experts, copies, score, norm, scale; /* scale: in millionths; 0: 1 */
            int64_t route;
        } route; /* and route_backward */
        struct {
            int64_t rows, cols, copies;
            /* with a route: the tokens of `of` (enum permute_source) are copied to `to` rows in the order of experts */
            int64_t route, dealt, to, of;
            int64_t weights; /* of permute and unpermute: copies are multiplied by their weights */
        } permute; /* unpermute, unpermute_backward; permute_weights and its backward, whose cols is 1 */
        struct {
            int64_t rows, cols, vocab, first, part;
            /* of embedding_backward: the rows of the whole table; the rank makes the gradient of all of them before it
             * keeps the `vocab` rows of its own part. 0: it makes only these */
            int64_t total;
        } embedding; /* and embedding_backward */
        struct {
            int64_t rows, vocab, count, accumulate;
        } cross_entropy;
        struct {
            /* total: the number of columns of the whole vocabulary that stand for tokens; the loss leaves out the
             * columns after them, which are padding. 0: there is no padding */
            int64_t rows, vocab, first, total, part;
        } loss_partial; /* cross_entropy_partial */
        struct {
            int64_t rows, vocab, count, first, total, part; /* total: as of loss_partial */
        } loss_backward;                                    /* cross_entropy_partial_backward */
        struct {
            int64_t count, cols;
        } elements; /* add, cast, fill, clip; cols: of add */
        struct {
            int64_t count, states; /* enum states (models/states.h) */
        } adamw;
        struct {
            int64_t count, accumulate, over;
        } square_sum; /* over: id + 1 of a group whose members' results are added; 0: none */
        struct pack_size {
            int64_t rows, parts, w[3], route, dealt;
        } pack; /* and unpack */
        struct {
            int64_t rows, heads, dim, copies;
        } heads; /* head_expand, head_reduce */
        struct {
            int64_t as; /* enum opaque_cost */
            /* for a product: m, n, k; for attention: queries, keys, and the width of a head */
            int64_t m, n, k, heads, kv_heads, groups, causal;
            int64_t kernels;          /* enum attention_impl, of attention */
            int64_t scaling;          /* enum scaling, of a product */
            int64_t dtype, out_dtype; /* enum dtype of what is read and written */
            int64_t bytes;            /* read and written, of work that memory limits */
            /* number of elements that a kernel accesses one by one, at the device's memory_element_rate, if this takes
             * longer than its bytes do */
            int64_t slow;
            int64_t ps; /* measured picoseconds, which replace all costs; 0: none */
        } opaque;
        struct {
            /* round: 1 + the round of a plan of tiles; 0: needed rows. backward: the round is one of the backward.
             * what: enum plan_operand. arrived: the rows of the second operand of TAKE_GATHER; 0: there is no such
             * operand */
            int64_t rows, to, parts, width, take, sequence, window, round, backward, what, arrived;
        } take_rows;
        struct {
            /* held: x has the rows that the rank owns itself, in packed order; else x has the rows that came back */
            int64_t rows, to, parts, width, sequence, window, round, backward, what, held;
        } add_rows;
        struct {
            /* first: there is no earlier sum to merge into. held: as in add_rows */
            int64_t rows, to, heads, dim, sequence, window, round, first, held;
        } merge_rows;
        struct {
            int64_t group, rows, to, parts, width, back, sequence, window, round, backward, what;
        } exchange;
        struct {
            int64_t group, bytes, algorithm, channels, relative;
        } collective; /* all_to_all, all_gather, reduce_scatter; relative: not of all_to_all */
        struct {
            /* With `route`, rows of tokens travel to their experts or back. cols: the elements of a row. ahead (to
             * experts): the elements that the rank sends, each row to the rank of its expert; the receive buffer has
             * room for `bytes`. back: the elements that the rank receives; the send buffer has room for `bytes`. The
             * other one of ahead and back is 0 */
            int64_t group, bytes, algorithm, channels, route, cols, ahead, back;
            /* dealt: the copies that a rank deals, if not all of them are sent; 0: all are. once: the number of copies
             * of a token, of which only one travels to each rank, and to each node, that has some of the token's
             * experts; on the way back results are summed before they travel; 0: each copy travels by itself. experts:
             * the number of experts. even: all experts are equally likely, and the expected number of rows travels; 0:
             * as many rows travel as the fullest rank has room for */
            int64_t dealt, once, experts, even;
        } all_to_all;
        struct {
            int64_t group, bytes, op, algorithm, channels;
        } all_reduce;
        struct {
            int64_t group, bytes, root, algorithm, channels;
        } broadcast; /* reduce; and scatter, which has neither of the last two */
        struct {
            int64_t group, by, bytes, channel, together;
        } p2p; /* shift (channel = channels), send, recv; together: of shift */
        struct {
            int64_t bytes, blocking;
        } copy; /* h2d, d2h */
        struct {
            int64_t group;
        } barrier;
    };
};

/* One parameter of a kind, as the text form of a schedule has it. */
struct work_param {
    char name[16];
    bool optional;  /* 0 when absent, and not printed when 0 */
    bool is_signed; /* the value may be negative */
    bool is_group;  /* the value is a group id, printed by its name; id + 1 when optional */
    const char *const *value_names; /* names of an enum's values, or NULL for an integer */
    uint8_t value_count;
};

struct work_kind_info {
    const char *name;
    enum stream_class stream;
    uint8_t reads_min, reads_max, writes_min, writes_max;
    /* index of the read and of the write operand whose dtypes are work.in and work.out; an index past
     * the last operand means the last */
    uint8_t in_operand, out_operand;
    uint8_t param_count;
    struct work_param param[WORK_PARAMS_MAX];
};

/* Returns the row of a kind, from a table that is made once from work_kinds.def. */
const struct work_kind_info *work_kind_info(enum work_kind kind);
bool work_kind_find(const char *name, size_t size, enum work_kind *kind);

/* True if a kind may work in place: write number `write` may be the same elements as read number `read`. */
bool work_may_be_in_place(enum work_kind kind, uint32_t read, uint32_t write);

/* True if ops of a kind may be on a stream of that class. SYNC kinds may name any stream: they wait for it. */
bool work_may_run_on(enum work_kind kind, enum stream_class stream);

const char *stream_class_name(enum stream_class stream);
bool stream_class_find(const char *name, size_t size, enum stream_class *stream);

/* Returns the columns of a head of v, and of the result of attention. */
int64_t work_attention_vdim(const struct work *work);
/* Returns the flops of attention for each pair and head: 2 products of dim columns or of vdim, and in the backward 3 of
 * dim and 2 of vdim. */
double work_attention_pair_flops(const struct work *work);

/* Even routing deals `copies` slots for each of `rows` tokens to experts: slot j * rows + t is copy j of token t.
 * Consecutive slots go to the experts in their order, equally many to each; if they do not divide evenly, the first
 * experts get one more. A grouped product multiplies the rows of each expert by a matrix of its own.
 *
 * work_row_group_begin() returns the first of `total` rows that is in group g of `groups` >= 1; for g = groups, it
 * returns the end. work_row_group_of() returns the group of a row. work_row_groups() returns the number of groups of a
 * product, a column_sum or a quantise, which is at least 1. */
int64_t work_row_group_begin(int64_t total, int64_t groups, int64_t g);
int64_t work_row_group_of(int64_t total, int64_t groups, int64_t row);
int64_t work_row_groups(const struct work *work);
/* Returns the number of matrices in the weight of a product, or in its gradient: one for each group, or one for each
 * rank that has a part; of a quantise, the number of its groups; at least 1. */
int64_t work_weight_matrices(const struct work *work);

/* Returns how the scales of an operand are laid out. QUANTISE: those of its copy (which 0) or of its second copy (which
 * 1). MATMUL: those of a (which 0) or of b (which 1). */
struct scaling_layout work_scale_layout(const struct work *work, int which);

/* Returns the work whose costs an opaque op has: a product or attention of the same sizes, or the work itself if it is
 * of another kind or only moves bytes. */
struct work work_priced_as(const struct work *work);
/* Returns the kernels of an attention: those that an opaque op was recorded with, those of cuDNN that multiply in 8 bits
 * if the work has scales, else impl. */
enum attention_impl work_attention_impl(const struct work *work, enum attention_impl impl);
/* If routing is not even, work on the rows of experts has two parameters: `route`, 1 + the number of a list of shares
 * (schedule/ir/routing.h), and `dealt`, the copies that each rank deals; from these follow the real rows of a rank. The
 * work's sizes are those of the fullest rank, for which buffers have room.
 *
 * work_route_list() returns the number of the list; -1: routing is even, or the kind has no such parameter.
 * work_dealt_copies() returns the copies that a rank deals. work_used_row_share() returns the share of a product's rows
 * that are copies of tokens, as a mean over ranks; work_flops() is multiplied by it. */
int64_t work_route_list(const struct work *work);
int64_t work_dealt_copies(const struct work *work);
/* True if the kind copies rows to the order of experts, or back from it. */
bool work_permutes(const struct work *work);
double work_used_row_share(const struct work *work);

/* Returns by which factor the peak of data sheets for a product's operands exceeds that for bf16: 2 for 8 bits, 4 for 4
 * bits, else 1. */
double work_peak_over_bf16(const struct work *work);

/* Returns the group of a communication op, or -1 for other kinds. */
int64_t work_comm_group(const struct work *work);
/* Returns the group over which the vocabulary, the matrices of a product, or the heads of sinks are cut, if the work
 * computes one part of them (parameter `part`); else -1. A rank's part of the vocabulary begins at row first + vocab *
 * index, and its part of sinks at heads * index, where index is the rank's index in that group. */
int64_t work_part_group(const struct work *work);
/* Returns the payload in bytes of a communication or copy op (the rank's send buffer, with its own part); 0 for other
 * kinds. */
int64_t work_payload_bytes(const struct work *work);

/* A rectangle of the scores of an attention op. The query of row first_query + i (i < query_count) sees the key of row
 * first_key + j (j < key_count) if j <= i + offset and, with a window above 0, j > i + offset - window. A kernel for
 * packed documents computes one such piece or a few for each document. */
struct attention_piece {
    int64_t first_query, first_key, query_count, key_count, offset, window;
};
double attention_piece_pairs(const struct attention_piece *piece);

/* Returns the number of (query, key) pairs that the mask lets through, exactly. The mask must be FULL, CAUSAL or
 * WINDOW. It is a double because products of it exceed 2^63 for long sequences. docs/costs.md, "Attention". */
double work_attention_pairs(const struct work *work);
/* Returns the flops of an attention that computes `pairs` pairs. */
double work_attention_flops(const struct work *work, double pairs);

/* Returns the floating-point operations of the matrix products in a work; a multiply-add is 2. MATMUL: 2 m n k.
 * ATTENTION: 2 (dim + vdim) for each visible pair and head; its backward: 2 (3 dim + 2 vdim). Every other kind has 0,
 * as in all published conventions: its time is that of its bytes, and its flops are below 1 % of a layer's. Do not call
 * it for attention with mask DOCUMENTS, CHUNKS or PLAN, whose pairs depend on the rank: ir_work_flops_on_rank()
 * (schedule/ir/visible.h) counts them. */
double work_flops(const struct work *work);
/* Returns the bytes read from and written to device memory (host memory for an op on the host) if each operand is read
 * or written once; in an activation with `touches`, that many times in total. An embedding reads only the rows of its
 * tokens. Its backward first clears the whole table, unless it adds to an earlier gradient; with `total`, a table of
 * that many rows, to which it adds before it keeps its own rows. SYNC kinds, communication and copies count 0; for the
 * latter two, work_payload_bytes() has the bytes. */
double work_memory_bytes(const struct work *work);

const char *attention_impl_name(enum attention_impl impl);
bool attention_impl_find(const char *name, size_t size, enum attention_impl *impl);

/* Returns the bytes of scratch memory that a kernel needs besides its operands. It is 0 except for ATTENTION_BACKWARD,
 * which needs the fp32 accumulator of dq, and delta; and, with fewer kv_heads than heads, dk and dv of every query head
 * in 16 bits. This holds for FlashAttention-2 and for cuDNN 9.19's plans; other GPU kernels are assumed to need the
 * same, and the CPU needs none. cuDNN below sm 90 keeps a second accumulator. sm: ten times the compute capability (80,
 * 90). */
int64_t work_workspace_bytes(enum attention_impl impl, int sm, const struct work *work);

#endif

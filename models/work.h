/* models/work.h: the kinds of work, their parameters, flops and bytes.
 *
 * Each op of a schedule, each cost formula and each kernel of the executor belongs to a kind of
 * work. models/work_kinds.def has the kinds and the names of their parameters. docs/ir.md says
 * what each kind computes, with the meaning of every parameter and operand. A struct work is a
 * kind with its sizes; it has no time. */
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

/* The class of stream on which a kind runs. ADAMW and FILL may also run on a HOST stream (of the
 * host's processor), and a copy also on the stream of the other direction. Kinds of STREAM_SYNC
 * run on no stream: the issuing thread executes them. */
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
/* The keys j that query i sees. With DOCUMENTS, CHUNKS and PLAN the positions of query and key in a packed sequence
 * decide, which depend on the rank; the schedule knows them (schedule/ir/visible.h). */
enum mask {
    MASK_FULL,   /* all */
    MASK_CAUSAL, /* those with j <= i + offset */
    MASK_WINDOW, /* those with j <= i + offset and j > i + offset - window */
    /* the keys of the query's document up to its own and, with `window`, only the last `window` of them */
    MASK_DOCUMENTS,
    /* as DOCUMENTS. The keys of the op are the rows of other ranks that its queries need (schedule/ir/needed.h); with
     * `round`, its queries and keys are those of the rank's tiles in that round (schedule/ir/tile_plan.h). */
    MASK_PLAN,
    /* the keys of the query's document and chunk up to its own; a sequence is cut into chunks of `window` */
    MASK_CHUNKS,
    MASK_COUNT
};
/* The rows that TAKE_ROWS copies, and their order: those that ranks send each other for attention with MASK_PLAN. */
enum take_rows_order {
    TAKE_OWN_ROWS_TO_SEND, /* the rank's own rows that others need, in the order in which it sends them */
    TAKE_ARRIVED_ROWS_TO_POSITIONS, /* the rows that arrived: from the order by sender to the order of positions */
    /* the results for these rows: from the order of positions back to the order by sender */
    TAKE_RESULTS_TO_SENDER_ORDER,
    /* own rows and rows that arrived: into the packed order of a round (schedule/ir/tile_plan.h) */
    TAKE_ROWS_TO_ROUND_ORDER,
    TAKE_COUNT
};
/* The function that an activation applies to its input, or to its gate if it has one. OF_KIND: silu for swiglu,
 * gelu's tanh form for gelu. GELU: gelu's tanh form, also for a gate (GEGLU). RELU2: max(x, 0)^2. CLAMPED, only for
 * swiglu: (up + 1) gate sigmoid(1.702 gate), where gate is at most 7 and up from -7 to 7 (gpt-oss, torch/model.py,
 * swiglu()). */
enum activation_function {
    ACTIVATION_FUNCTION_OF_KIND,
    FUNCTION_GELU,
    FUNCTION_RELU2,
    FUNCTION_CLAMPED,
    FUNCTION_COUNT
};
/* The function by which a router makes scores from logits; its values are those of enum router
 * (models/transformer.h). */
enum route_score { ROUTE_SOFTMAX, ROUTE_SOFTMAX_OF_CHOSEN, ROUTE_SIGMOID, ROUTE_SCORE_COUNT };
/* The cost formula that gives the time of an operator of a recorded program. */
enum opaque_cost_formula {
    OPAQUE_TAKES_NO_TIME, /* it takes no time */
    OPAQUE_MATMUL,        /* that of WORK_MATMUL */
    OPAQUE_MATMUL_TN,     /* that of WORK_MATMUL of form TN: gradients of the weights of groups */
    OPAQUE_ATTENTION,     /* that of WORK_ATTENTION */
    OPAQUE_ATTENTION_BACKWARD, /* that of WORK_ATTENTION_BACKWARD */
    /* OPAQUE_STREAM and those after it: that of memory-bound work. Each is a class of kinds (docs/costs.md, "Bytes"),
     * and the operator's bytes move at the share of the memory bandwidth that kinds of the class reach. */
    OPAQUE_STREAM,
    OPAQUE_REDUCE,
    OPAQUE_PERMUTE,
    OPAQUE_GATHER,
    OPAQUE_SCATTER,
    OPAQUE_COUNT
};
/* The tokens whose rows PERMUTE copies into the order of experts. OWN: those of the rank. GATHERED: those of all
 * members of its group, in the order of ranks. ARRIVED: those that an all-to-all with `once` brought to the rank,
 * because some of their experts are on it, in the order of the ranks that sent them. */
enum permute_source { PERMUTE_OWN, PERMUTE_GATHERED, PERMUTE_ARRIVED, PERMUTE_SOURCE_COUNT };
enum reduce_op { REDUCE_SUM, REDUCE_MAX, REDUCE_COUNT };
/* The algorithm by which a collective moves its data. AUTO: the model of the platform's library chooses it
 * (sim/platform/). */
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
    ATTENTION_TRITON,    /* the algorithm of FlashAttention 1 (2022), written in Triton */
    ATTENTION_FA1,       /* the same algorithm in CUDA: flash-attn before 2.0 */
    ATTENTION_CUDNN_FP8, /* cuDNN's kernels that multiply in 8 bits, with a scale for each tensor */
    ATTENTION_CUDNN_MXFP8, /* those in MXFP8 */
    ATTENTION_IMPL_COUNT
};

#define WORK_PARAMS_MAX 17

struct work {
    uint8_t kind; /* enum work_kind */
    /* enum dtype of one read, whose index is work_kind_info.in_operand: the first read, except the block of MERGE, the
     * copies of UNPERMUTE_BACKWARD, the table of EMBEDDING and the second term of ADD. Equals `out` if nothing is
     * read. */
    uint8_t in;
    /* enum dtype of the first write; for ADAMW that of the last write, the copy of the parameters if there is one.
     * Equals `in` if nothing is written. */
    uint8_t out;
    /* numbers of operands that are read and that are written; 0, in a struct that no op has: as few as the kind
     * allows */
    uint8_t reads, writes;
    union {
        int64_t p[WORK_PARAMS_MAX]; /* in the order of work_kinds.def; unused ones are 0 */
        struct {
            /* form: enum matmul_form. epilogue: enum matmul_epilogue. accumulate: the product is added to y. groups:
             * the number of products, each of the rows of one group (work_row_group_first_row()) and a matrix of its
             * own; with `part`, the number of matrices; 0 or 1: one. scaling: enum scaling */
            int64_t m, n, k, form, epilogue, accumulate, groups, scaling;
            int64_t route, dealt; /* here and below: see work_routing_list_index() */
            /* 1 + a group of ranks: the rank multiplies by one of the `groups` matrices, the one with its index in that
             * group (work_sharding_group()); 0: by all of them */
            int64_t part;
            /* with form=tn, groups and a scaling: both operands are transposed copies, with a matrix for each group */
            int64_t turned;
            int64_t kept; /* with a route: how many of the `dealt` copies no expert drops; 0: all */
        } matmul;
        struct {
            int64_t rows, cols, scaling; /* enum scaling */
            int64_t turned;              /* the copy is transposed */
            int64_t both;                /* a second copy is made, which is transposed */
            int64_t amax;                /* a pass before finds the largest magnitude */
            int64_t down;                /* the exponents of E8M0 scales are rounded down */
            /* for SCALING_TENSOR. finds: the op only finds the largest magnitude. given: it reads one that was found */
            int64_t finds, given;
            /* groups: each group of rows (work_row_group_first_row()) is quantised by itself; 0 or 1: there is one */
            int64_t groups, route, dealt;
        } quantise;
        struct {
            int64_t rows, cols, storage; /* enum frozen_storage */
        } dequantise;
        struct {
            int64_t q, kv, heads, kv_heads, dim, mask, offset, window;
            /* For the masks DOCUMENTS, CHUNKS and PLAN: which tokens the rows are (docs/ir.md, "Documents"). sequence:
             * the number of the sequence among those of the rank, from 0. q_first: the first query among the rows of
             * the sequence that this rank holds. kv_first: the first key among those that another context rank holds,
             * the one `away` ranks before this one in the ring of cp or cp_in, and `away_out` before in that of
             * cp_out. */
            int64_t sequence, q_first, kv_first, away, away_out;
            int64_t vdim; /* the columns of a head of v and of the result; 0: dim */
            /* for mask PLAN: 1 + the round of a plan of tiles; 0: keys are needed rows */
            int64_t round;
            /* enum scaling. TENSOR, MX: products are in 8 bits; NONE: in the dtype of q */
            int64_t scaling;
            int64_t delta; /* of attention_backward: row sums of dO o O are read in place of O */
        } attention;       /* and attention_backward */
        struct {
            int64_t rows, heads, dim;
        } merge; /* and row_dot */
        struct {
            /* heads: those of the rank. sinks: the number of heads of the model, each of which has a sink. part: 1 +
             * the group of ranks that share the heads: the rank's first head is `heads` times its index in the group;
             * 0: the rank has all heads */
            int64_t rows, heads, dim, sinks, part;
            int64_t accumulate; /* of sink_backward: it adds to an earlier gradient */
        } sink;                 /* and sink_backward */
        struct {
            int64_t rows, cols;
            int64_t accumulate; /* of the backward */
        } rows;                 /* the first parameters of all norms and of their backward */
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
            /* touches: how many times kernels read or write an element in all; 0: each operand once. function: enum
             * activation_function */
            int64_t rows, cols, touches, function;
            int64_t route, dealt; /* of swiglu and its backward */
            /* of swiglu and its backward: row r of the result is multiplied by weight r */
            int64_t weights;
        } activation; /* swiglu, gelu, and their backward */
        struct {
            int64_t rows, heads, dim;
            /* columns of a row: those after heads * dim are copied; 0: heads * dim */
            int64_t stride;
            int64_t rotated; /* only this many last columns of each head are rotated; 0: all */
        } rope;              /* and rope_backward */
        struct {
            /* plain, rotated: columns of a head of k without and with rotation; vdim: columns of a head of v */
            int64_t rows, heads, plain, rotated, vdim;
        } latent_keys; /* and latent_keys_backward */
        struct {
            /* copies: experts of a token. score: enum route_score. norm: the weights of a token's experts are divided
             * by their sum. scale: their factor in millionths; 0: 1 */
            int64_t rows, experts, copies, score, norm, scale;
            int64_t route;
        } route; /* and route_backward */
        struct {
            int64_t rows, cols, copies;
            /* With a route there are `to` rows of experts, copies of the rows of tokens that `of` selects (enum
             * permute_source). Without one, `to` is 0, and there are rows * copies. */
            int64_t route, dealt, to, of;
            int64_t weights; /* of permute and unpermute: copies are multiplied by their weights */
        } permute; /* unpermute, unpermute_backward; permute_weights and its backward, whose cols is 1 */
        struct {
            /* vocab: rows of the rank's table. part: see work_sharding_group() */
            int64_t rows, cols, vocab, first, part;
            /* of embedding_backward: the rows of the whole table. The rank makes the gradient of the whole table, and
             * then keeps the `vocab` rows of its own part. 0: it makes only those. */
            int64_t total;
        } embedding; /* and embedding_backward */
        struct {
            int64_t rows, vocab, count, accumulate;
        } cross_entropy;
        struct {
            /* vocab: columns of the rank's logits. total: the number of columns of the whole vocabulary that stand for
             * tokens. Columns after them are padding, which the loss leaves out. 0: there is no padding */
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
            int64_t rows, parts;
            /* columns of the tensors beside each other in a row; 0: there are fewer */
            int64_t w[3];
            int64_t route, dealt;
        } pack; /* and unpack */
        struct {
            int64_t rows, heads, dim, copies;
        } heads; /* head_expand, head_reduce */
        struct {
            int64_t as; /* enum opaque_cost_formula */
            /* m, n, k: of a product; of an attention they are its queries, its keys and the width of a head */
            int64_t m, n, k, heads, kv_heads, groups, causal;
            int64_t kernels;          /* of attention: enum attention_impl */
            int64_t scaling;          /* of a product: enum scaling */
            int64_t dtype, out_dtype; /* enum dtype of the operands read, and of those written */
            int64_t bytes;            /* of memory-bound work: bytes read and written */
            /* number of elements that the kernel accesses one by one. It takes at least as long as they take at the
             * device's memory_element_rate. */
            int64_t slow;
            int64_t ps; /* measured picoseconds, which replace all costs; 0: none */
        } opaque;
        struct {
            /* rows, to: rows of x and of y. parts: how many tensors of that many rows lie one after the other. width:
             * elements of a row. take: enum take_rows_order. round: 1 + the round of a plan of tiles; 0: rows are
             * needed rows (schedule/ir/needed.h). backward: the round is one of the backward. what: enum
             * plan_keys_or_queries. arrived: of TAKE_ROWS_TO_ROUND_ORDER, the rows of its second read, which arrived
             * from other ranks; 0: it has one read */
            int64_t rows, to, parts, width, take, sequence, window, round, backward, what, arrived;
        } take_rows;
        struct {
            /* held 1: x has results for rows that the rank owns, in packed order; 0: for rows that came back from other
             * ranks. The others are as in take_rows */
            int64_t rows, to, parts, width, sequence, window, round, backward, what, held;
        } add_rows;
        struct {
            /* first: there is no earlier result to merge into. held: as in add_rows */
            int64_t rows, to, heads, dim, sequence, window, round, first, held;
        } merge_rows;
        struct {
            /* back: rows return to the ranks that sent them. The others are as in take_rows */
            int64_t group, rows, to, parts, width, back, sequence, window, round, backward, what;
        } exchange;
        struct {
            int64_t group, bytes, algorithm, channels, relative;
        } collective; /* all_to_all, all_gather, reduce_scatter; relative: not of all_to_all */
        struct {
            /* With `route`, rows of tokens travel to their experts or back; one of ahead and back is 0. cols: elements
             * of a row */
            int64_t group, bytes, algorithm, channels, route, cols;
            /* to experts: elements that the rank sends; the receive buffer has `bytes` */
            int64_t ahead;
            /* from experts: elements that the rank receives; the send buffer has `bytes` */
            int64_t back;
            /* the copies that a rank deals, if some of them are not sent; 0: all are sent */
            int64_t dealt;
            /* The number of copies of a token. A token's row travels only once to each rank, and to each node, that has
             * some of its experts; on the way back results are summed before they travel. 0: each copy travels by
             * itself */
            int64_t once;
            int64_t experts; /* with `once`: the number of experts */
            /* with `once`: all experts are equally likely, and the expected number of rows travels; 0: as many rows
             * travel as the fullest rank has room for */
            int64_t even;
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
    bool optional;          /* 0 when absent, and not printed when 0 */
    bool is_signed;         /* the value may be negative */
    bool is_value_group_id; /* the value is a group id, printed by its name; id + 1 when optional */
    const char *const *value_names; /* names of an enum's values, or NULL for an integer */
    uint8_t value_count;
};

struct work_kind_info {
    const char *name;
    enum stream_class stream;
    uint8_t reads_min, reads_max, writes_min, writes_max;
    /* work.in is the dtype of the read with index in_operand, work.out that of the write with index out_operand; of the
     * last operand if the op has fewer */
    uint8_t in_operand, out_operand;
    uint8_t param_count;
    struct work_param param[WORK_PARAMS_MAX];
};

/* Returns the row of a kind, from a table that is made once from work_kinds.def. */
const struct work_kind_info *work_kind_info(enum work_kind kind);
bool work_kind_find(const char *name, size_t size, enum work_kind *kind);

/* True if a kind may work in place: write number `write` may be the same elements as read number `read`. */
bool work_may_be_in_place(enum work_kind kind, uint32_t read, uint32_t write);

/* True if ops of a kind may be on a stream of that class. Kinds of STREAM_SYNC may name any stream: they wait for
 * it. */
bool work_may_run_on(enum work_kind kind, enum stream_class stream);

const char *stream_class_name(enum stream_class stream);
bool stream_class_find(const char *name, size_t size, enum stream_class *stream);

/* Returns the columns of a head of v, which are also those of a head of the result. */
int64_t work_attention_vdim(const struct work *work);
/* Returns the flops of attention for one pair of a query and a key in one head. The forward has 2 products: one over
 * dim columns, one over vdim. The backward has 5: three over dim, two over vdim. */
double work_attention_pair_flops(const struct work *work);

/* Even routing deals `copies` slots for each of `rows` tokens to experts: slot j * rows + t is copy j of token t.
 * Consecutive slots go to the experts in their order, equally many to each; if they do not divide evenly, the first
 * experts get one more. A grouped product multiplies the rows of each expert by a matrix of its own.
 *
 * work_row_group_first_row() returns the first of `total` rows that is in group g of `groups` >= 1; for g = groups, it
 * returns the end. work_row_group_of_row() returns the group of a row. work_row_group_count() returns the number of
 * groups of a product, a column_sum or a quantise, which is at least 1. */
int64_t work_row_group_first_row(int64_t total, int64_t groups, int64_t g);
int64_t work_row_group_of_row(int64_t total, int64_t groups, int64_t row);
int64_t work_row_group_count(const struct work *work);
/* Returns the number of matrices in the weight of a product, or in the weight's gradient: with `part` these are the
 * matrices of all ranks of the group, not only the one by which the rank multiplies. For a quantise it returns the
 * number of groups. The result is at least 1. */
int64_t work_weight_matrix_count(const struct work *work);

/* Returns the layout of the scales of one operand. QUANTISE: of its copy (which 0) or of its second, transposed copy
 * (which 1). MATMUL: of a (which 0) or of b (which 1). */
struct scaling_layout work_scale_layout(const struct work *work, int which);

/* Returns the product or attention whose costs an opaque op has. Returns the work itself if the opaque op is
 * memory-bound or takes no time, and if the work is not opaque. */
struct work work_cost_equivalent(const struct work *work);
/* Returns the implementation by which a work is done: for an opaque op, the one that was recorded; for an attention
 * with scales, cuDNN's kernels that multiply in 8 bits; else impl. */
enum attention_impl work_attention_impl(const struct work *work, enum attention_impl impl);
/* If routing is not even, work on the rows of experts has two parameters. `route` is 1 + the number
 * of a list of shares (schedule/ir/routing.h); `dealt` is the number of copies that each rank deals
 * to experts. The real number of rows of a rank follows from these two. The work's sizes are those
 * of the fullest rank, and buffers have room for it.
 *
 * work_routing_list_index() returns the number of the list; -1: routing is even, or the kind has no such
 * parameter. work_routed_copies_per_rank() returns the copies that a rank deals; 0: the work does not say.
 * work_used_row_share() returns which share of a product's rows are copies of tokens, as a mean
 * over ranks; callers who want the flops of these rows multiply work_flops() by it. */
int64_t work_routing_list_index(const struct work *work);
int64_t work_routed_copies_per_rank(const struct work *work);
double work_used_row_share(const struct work *work);
/* True for PERMUTE, UNPERMUTE, PERMUTE_WEIGHTS and their backward: the kind copies rows, or weights of rows, to the
 * order of experts or back from it. */
bool work_is_permutation(const struct work *work);

/* Returns the peak flop/s of data sheets for the operands of a product or an attention, over the peak for bf16: 2 for 8
 * bits, 4 for 4 bits, else 1. */
double work_peak_rate_over_bf16_peak(const struct work *work);

/* Returns the group of a communication op, or -1 for other kinds. */
int64_t work_comm_group(const struct work *work);
/* Returns the group of ranks of which each computes one part of a vocabulary, of the matrices of a product, or of the
 * heads of sinks (parameter `part`); -1: the rank computes all, or the kind has no such parameter. Let i be the rank's
 * index in that group: its part of the vocabulary begins at row first + vocab * i, its part of the sinks at heads * i,
 * and its matrix is number i. */
int64_t work_sharding_group(const struct work *work);
/* Returns the payload in bytes of a communication or a copy; 0 for other kinds. It is the size of
 * the rank's send buffer, with the part that it keeps itself; for RECV, and for an all-to-all that
 * sends rows to experts, it is the size of the receive buffer. */
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
 * ATTENTION and its backward: work_attention_pair_flops() for each visible pair and head. OPAQUE: as
 * work_cost_equivalent(). Every other kind has 0, as in all published conventions: its time is that of its bytes, and
 * its flops are below 1 % of a layer's. Do not call it for attention with mask DOCUMENTS, CHUNKS or PLAN: their pairs
 * depend on the rank, and ir_work_flops_on_rank() (schedule/ir/visible.h) counts them. */
double work_flops(const struct work *work);
/* Returns the bytes read from and written to device memory (host memory for an op on the host).
 * Each operand counts once, except:
 *   - An activation with `touches` accesses each element that many times.
 *   - An embedding reads only the rows of its tokens. Its backward clears the table of gradients
 *     first, unless it adds to an earlier gradient; with `total`, it always clears a table of that
 *     many rows. A permute reads only the rows that have a copy.
 *   - TAKE_ROWS, ADD_ROWS and MERGE_ROWS access only the rows that they take, add or merge.
 *   - CROSS_ENTROPY_FINISH reads statistics of the logits, and not the logits.
 *   - A quantise makes a further pass over x with `amax`, and one for a transposed copy with a scale
 *     for each row. With `finds` it makes only the pass of `amax`, if it has that.
 *   - An opaque op has the bytes that were recorded.
 *   - Kinds of STREAM_SYNC, communication and copies have 0 bytes; work_payload_bytes() has those of the latter
 *     two. */
double work_memory_bytes(const struct work *work);

extern const char *const attention_impl_names[ATTENTION_IMPL_COUNT];
const char *attention_impl_name(enum attention_impl impl);
bool attention_impl_find(const char *name, size_t size, enum attention_impl *impl);

/* Returns the bytes of scratch memory that a kernel needs besides its operands. It is 0 except for ATTENTION_BACKWARD,
 * which needs the fp32 accumulator of dq, and delta; and, with fewer kv_heads than heads, dk and dv of every query head
 * in 16 bits. This holds for FlashAttention-2 and for cuDNN 9.19's plans; other GPU kernels are assumed to need the
 * same, and the CPU needs none. cuDNN below sm 90 keeps a second accumulator. sm: ten times the compute capability (80,
 * 90). */
int64_t work_workspace_bytes(enum attention_impl impl, int sm, const struct work *work);

#endif

/* schedule/ir/ir.h: a schedule as flat tables: one row per op, buffer, group, binding.
 *
 * An op is a piece of work placed on a stream. A schedule holds work (shapes) and
 * order, not time: the simulator predicts times, the executor measures them. Only an
 * op of kind `opaque`, from a recorded step, carries its measured time.
 *
 * Every rank of a role runs the role's list of ops. List order is the order in which
 * the host issues them; an op starts after its issue, after the op before it on its
 * stream, and after the ops it waits for. HOST_SYNC waits on the host for everything
 * issued before on its `stream`; BARRIER waits for all ranks of a group; a copy with
 * blocking=1 holds the host until it ends. docs/ir.md is the specification.
 *
 * Columns are heap arrays that grow (a schedule has millions of ops, and a column that
 * grows in an arena would leave its old copies behind); names, sets and other small
 * things live in the ir's own arena. Rows are named by ids that stay valid while the
 * tables grow; a pointer into a table does not.
 *
 * The folder schedule/ir/ holds the tables of a schedule, their text form, the device mesh and the layout of tokens
 * over ranks. */
#ifndef SCHEDULE_IR_H
#define SCHEDULE_IR_H

#include "base/arena.h"
#include "base/diag.h"
#include "models/work.h"
#include "schedule/ir/documents.h"
#include "schedule/ir/layout.h"
#include "schedule/ir/mesh.h"
#include "schedule/ir/repeats.h"
#include "schedule/ir/routing.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IR_NONE UINT32_MAX /* no id */
#define IR_NONE16 UINT16_MAX
/* The most streams of a schedule. A pipeline whose schedule has two streams for each stage may have only as many stages
 * as this allows (schedule/pipeline/multiplex.c). */
#define IR_STREAMS_MAX 192
/* the most elements of one buffer: at up to 8 bytes each, their bytes fit in 63 bits */
#define IR_ELEMENTS_MAX (INT64_MAX / 8)

typedef struct op_id {
    uint32_t i;
} op_id;
typedef struct buffer_id {
    uint32_t i;
} buffer_id;

enum memory { MEMORY_HBM, MEMORY_PINNED, MEMORY_PAGEABLE, MEMORY_COUNT };

enum category {
    CATEGORY_PARAMETER,
    CATEGORY_GRADIENT,
    CATEGORY_OPTIMIZER,
    CATEGORY_ACTIVATION,
    CATEGORY_KV,
    CATEGORY_WORKSPACE,
    CATEGORY_COMMUNICATION,
    CATEGORY_LOGITS,
    CATEGORY_INPUT,
    CATEGORY_COUNT
};

enum phase {
    PHASE_FORWARD,
    PHASE_RECOMPUTE,
    PHASE_BACKWARD,
    PHASE_WEIGHT_GRADIENT, /* gradients of weights that a backward leaves for later */
    PHASE_OPTIMIZER,
    PHASE_COUNT
};

/* The part of the model to which an op belongs. Passes over a list select ops by it. */
enum region {
    REGION_NONE,
    REGION_EMBEDDING,
    REGION_NORM,
    REGION_LINEAR,
    REGION_ATTENTION, /* exchanges, rotations and the core, between the projections */
    REGION_LOSS,
    REGION_WEIGHT_COLLECTIVES, /* gathers and reductions of parameters and gradients, with casts and copies */
    REGION_OFFLOAD,
    REGION_OPTIMIZER,
    REGION_COUNT
};

/* Labels of an op; IR_NONE16 where one does not apply. */
struct op_tags {
    uint8_t phase, region;
    uint16_t layer, chunk, step, micro_batch;
};

/* An element range of a buffer. */
struct view {
    buffer_id buffer;
    uint64_t begin, count;
};

/* A range of elements without its buffer. It is stored separately, since many buffers share few ranges. */
struct ir_element_extent {
    uint64_t begin, count;
};
struct ir_range {
    buffer_id buffer;
    uint32_t extent_row; /* row of ir.extent */
};

struct stream {
    char name[MESH_NAME_MAX]; /* "compute", "comm.hp", "h2d", "d2h", "host" */
    uint8_t stream_class;     /* enum stream_class */
};

/* One tensor of the model with its global shape, or one block of its rows if blocks are cut separately (q, k and v of
 * wqkv). axes_that_cut_rows_and_columns[k]: the mesh axes over which dimension k is cut. Columns are cut into equal
 * parts. Rows are cut into parts of ceil(rows / parts) rows; the last part may have fewer rows, but takes as many bytes
 * as the others. padded_rows: the number of rows that are cut in place of `rows`; those beyond `rows` are padding, not
 * part of the model. */
struct tensor {
    const char *name; /* "layers.3.wqkv.weight"; of a block "layers.3.wqkv.weight:k" */
    int64_t rows, cols;
    uint32_t axes_that_cut_rows_and_columns[2]; /* bit masks of mesh axes; 0: whole */
    int64_t first_row;                          /* first row of the block in the model's tensor */
    int64_t padded_rows;                        /* 0: no padding */
};

/* Consecutive tensors in one buffer, of which each rank holds its own slices; there may be padding at the end. */
struct bundle {
    const char *name;
    uint32_t tensor_begin, tensor_count; /* consecutive rows of the tensor table */
    /* the elements that one rank holds if the bundle is not sharded, padding included */
    uint64_t elements;
    /* enum frozen_storage. 16bit: the tensors are stored as their elements. With any other value they are stored as
     * codes and scales, which no op writes. */
    uint8_t storage;
};

enum binding_kind {
    BINDING_NONE,
    BINDING_PARAM,
    BINDING_GRAD,
    /* the parameters that AdamW updates, if they are not those of BINDING_PARAM: a copy in fp32 or, if AdamW reads them
     * in the dtype of compute, this rank's part of them or their copy on the host */
    BINDING_MASTER,
    BINDING_MOMENT1,   /* m of Adam, the first moment */
    BINDING_MOMENT2,   /* v of Adam, the second moment */
    BINDING_SCALES,    /* the scales of a bundle's stored weights, tensor after tensor, u8 */
    BINDING_TOKENS,    /* input, i32 */
    BINDING_LABELS,    /* input, i32; already shifted; -1: ignored */
    BINDING_POSITIONS, /* input, i32 */
    BINDING_LOSS,      /* output, f32 [1] */
    BINDING_KIND_COUNT
};

/* The meaning of a buffer outside the schedule. Bound buffers are persistent (except gradients that are made during the
 * backward), initialised before op 0, and exempt from the rules leak and read-before-write (gradients are zero before
 * op 0). */
struct binding {
    uint8_t kind;    /* enum binding_kind */
    uint16_t bundle; /* the bundle, for PARAM to SCALES; else IR_NONE16 */
    /* The group over whose members the elements of the bundle are divided into equal parts, whatever tensors they are
     * of: member k has part k. IR_NONE16: the buffer has all elements. */
    uint16_t shard_group;
    /* TOKENS, LABELS, POSITIONS: the group whose members' tokens this buffer holds, one sequence after another, each in
     * gathered order; IR_NONE16: the rank's own tokens. */
    uint16_t gathered_group;
    /* Bit mask of mesh axes: the values are the sum of the contents of all ranks along these axes. If such an axis cuts
     * a tensor, this does not hold for that tensor: each rank has its own slice. */
    uint32_t partial_axes;
};

/* A table of columns that grows: `count` rows are in use, and there is room for `capacity`. */
struct buffer_table {
    uint32_t count, capacity;
    uint8_t *memory, *dtype, *category;
    uint8_t *flags; /* bit mask of BUFFER_* */
    uint16_t *role;
    uint16_t *layer;   /* the layer that reports name; IR_NONE16: none */
    uint16_t *binding; /* IR_NONE16: none */
    uint32_t *dims;    /* row of ir.dims */
    /* row of ir.word, and a decimal number: the name is this text followed by the number, or, with number IR_NONE, only
     * the text */
    uint32_t *stem, *number;
    /* The free set (ir_free_set()) has free_count ops. If there is one, free_op is that op. If there are several, it is
     * the row of ir.free_op[] at which they begin. */
    op_id *free_op;
    uint16_t *free_count;
    uint64_t *offset; /* bytes from the start of its memory's arena; UINT64_MAX: not planned */
};

struct dims { /* a tensor shape, outermost first */
    uint8_t count;
    int64_t size[4];
    uint64_t elements; /* only in rows of ir.dims: the product of the sizes */
};

/* Sets *elements to the product of the sizes. Returns false if there are not 1 to 4 sizes, if one is below 1, or if the
 * product exceeds IR_ELEMENTS_MAX. */
bool dims_elements(const struct dims *dims, uint64_t *elements);

struct op_table {
    uint32_t count, capacity;
    uint8_t *kind;   /* enum work_kind, which is also in the shape */
    uint8_t *stream; /* row of ir.stream; for HOST_SYNC the stream it waits for */
    uint8_t *phase, *region;
    uint8_t *read_count, *write_count; /* numbers of operands that are read and written */
    uint16_t *layer, *chunk, *step, *micro;
    uint16_t *guard; /* IR_NONE16: none */
    uint16_t *wait_count;
    uint32_t *shape; /* row of ir.shape */
    /* where its operands begin in ir.operand[], reads first, then writes */
    uint32_t *operand_begin;
    uint32_t *wait_begin; /* where its waits begin in ir.wait[] */
};

struct ir {
    struct arena arena;

    struct mesh mesh;
    struct token_layout layout;
    struct documents documents; /* the documents of packed sequences; they are in `arena` */
    struct routing routing;     /* the copies that experts get; in `arena` */
    int64_t global_batch;       /* sequences per step, over all ranks */
    int64_t micro_batch;        /* sequences per rank and micro-batch */
    uint8_t dtype;              /* enum dtype of compute */

    struct group *group;
    uint32_t group_count, group_capacity;
    struct guard *guard;
    uint32_t guard_count, guard_capacity;
    struct role *role; /* if there are ops, there is at least one role */
    uint32_t role_count, role_capacity;
    struct stream *stream;
    uint32_t stream_count, stream_capacity;
    struct tensor *tensor;
    uint32_t tensor_count, tensor_capacity;
    struct bundle *bundle;
    uint32_t bundle_count, bundle_capacity;
    struct binding *binding;
    uint32_t binding_count, binding_capacity;

    struct work *shape; /* interned */
    uint32_t shape_count, shape_capacity;
    struct dims *dims; /* interned */
    uint32_t dims_count, dims_capacity;
    struct ir_element_extent *extent; /* interned */
    uint32_t extent_count, extent_capacity;
    const char **word; /* interned texts (name stems) */
    uint32_t word_count, word_capacity;

    struct ir_index *index; /* hash tables for interning; owned */

    /* The members from here on describe the list of ops. When schedule/step/finalize.c writes ops in their final order,
     * it writes these members anew, and moves the members above to the new ir, where only the roles' ranges of ops
     * change. */
    struct buffer_table buffer;
    struct op_table op;
    struct ir_range *range; /* operands that are not whole buffers */
    uint32_t range_count, range_capacity;
    uint32_t *operand; /* a buffer id, or IR_OPERAND_IS_RANGE_ROW | row of range */
    uint32_t operand_count, operand_capacity;
    op_id *wait;
    uint32_t wait_count, wait_capacity;
    op_id *free_op; /* the free sets that have several ops */
    uint32_t free_op_count, free_op_capacity;

    /* for each memory, the planned bytes of the largest arena of any role; 0: not planned */
    uint64_t planned_bytes[MEMORY_COUNT];

    struct repeats repeats; /* what a short list leaves out; all-zero: the list is whole */
};

#define IR_OPERAND_IS_RANGE_ROW 0x80000000u

/* ---- flags of buffers; release; valid names ---- */
/* The buffer exists during the whole step. Bound buffers do, except gradients that are made during the backward. */
#define BUFFER_PERSISTENT 1u
/* A persistent buffer that the modelled implementation holds as part of another buffer. It has bytes in the arena,
 * but none in the predicted memory of the implementation. */
#define BUFFER_PART 2u

void ir_release(struct ir *ir); /* all-zero is a valid empty ir */

/* True if a text may name something: a letter or '_', then letters, digits and any of "_.-/:". */
bool ir_is_valid_name(const char *name, size_t size);

/* ---- Tables with few rows. Each function adds a row unless there is an equal one, and returns its id. Names and sets
 * are copied. The mesh must be set first; two different rows of a table must not have the same name. ---- */
uint16_t ir_add_group(struct ir *ir, const char *name, const struct axis_coordinate_set *axes,
                      uint32_t count);
uint16_t ir_add_guard(struct ir *ir, struct guard guard);
uint16_t ir_add_role(struct ir *ir, const char *name, const struct axis_coordinate_set *axes,
                     uint32_t count);
uint8_t ir_add_stream(struct ir *ir, const char *name, enum stream_class stream_class);
uint32_t ir_add_tensor(struct ir *ir, struct tensor tensor);
uint16_t ir_add_bundle(struct ir *ir, struct bundle bundle);
uint16_t ir_add_binding(struct ir *ir, struct binding binding);

/* The tables in which ir_find_by_name() finds rows; ir_find_buffer() finds buffers. */
enum ir_table_with_names {
    IR_GROUP,
    IR_ROLE,
    IR_STREAM,
    IR_TENSOR,
    IR_BUNDLE,
    IR_WORD,
    IR_TABLE_COUNT
};
const char *ir_name_of(const struct ir *ir, enum ir_table_with_names table, uint32_t row);
/* Returns the row of the table with that name; IR_NONE if there is none. */
uint32_t ir_find_by_name(const struct ir *ir, enum ir_table_with_names table, const char *name,
                         size_t size);

/* ---- tables with many rows ---- */
struct buffer_desc {
    const char *stem; /* a name that does not end in a digit */
    /* IR_NONE: one more than the highest number of this stem so far, or 0 for the first */
    uint32_t number;
    uint8_t memory, dtype, category, flags;
    uint16_t role, layer, binding;
    struct dims dims;
};
/* Adds a buffer; with a binding it becomes persistent. Names must differ, which only the parser checks. */
buffer_id ir_add_buffer(struct ir *ir, const struct buffer_desc *desc);
/* Adds a buffer that is equal to `buffer` except that its name has the next number of the stem and that it has no
 * binding, free set and offset. */
buffer_id ir_add_buffer_like(struct ir *ir, buffer_id buffer);
/* Does what ir_add_buffer() does, with the given name ("kv0", "loss"); the stem and number of desc are not used. */
buffer_id ir_add_named_buffer(struct ir *ir, const char *name, size_t size,
                              const struct buffer_desc *desc);
/* Returns the buffer with that name ("kv0"), or IR_NONE. The first look-up after buffers were added changes a table
 * inside `ir`, so two threads must not look up at once. */
buffer_id ir_find_buffer(const struct ir *ir, const char *name, size_t size);
/* Writes a buffer's name to text[size], cut if it is longer; returns the length of the whole name. */
size_t ir_buffer_name(const struct ir *ir, buffer_id buffer, char *text, size_t size);

struct op_desc {
    struct work work; /* in and out are set by ir_add_op() from the operands */
    uint8_t stream;
    uint8_t read_count, write_count;
    uint16_t guard; /* IR_NONE16: none */
    uint16_t wait_count;
    struct op_tags tags;
    const struct view *read, *write;
    const op_id *wait;
};
/* Adds an op to the role that was added last or, while a text is parsed, to the role of its last `ops` line; first adds
 * a role "all" of all ranks if there is none. The caller ensures that the kind allows the numbers of operands, that
 * views lie within their buffers, and that labels without a value are IR_NONE16. Waits are not checked here; the
 * verifier checks them. */
op_id ir_add_op(struct ir *ir, const struct op_desc *desc);
/* Adds an op that is equal to `op` except for its phase, its waits and the buffers of its operands. buffer[]: one for
 * each operand, reads first, of the same size and dtype as the old one. */
op_id ir_add_op_like(struct ir *ir, uint32_t op, uint8_t phase, const buffer_id *buffer,
                     const op_id *wait, uint16_t wait_count);
/* Gives an op other parameters; the kind, operands and dtypes stay. */
void ir_set_work(struct ir *ir, uint32_t op, const struct work *work);
/* Makes operand k of the op (reads first, then writes) name another buffer, with the same range. */
void ir_redirect_operand(struct ir *ir, uint32_t op, uint32_t k, buffer_id buffer);

/* Sets the free set of a buffer: the ops that must have completed before its memory is free. It replaces an earlier
 * set; if that had several ops, its entries stay in ir.free_op without use. */
void ir_set_free_set(struct ir *ir, buffer_id buffer, const op_id *ops, uint16_t count);
/* Does what ir_set_free_set() does, with ops that the caller writes to ir_free_set() afterwards. */
void ir_open_free_set(struct ir *ir, uint32_t buffer, uint16_t count);

/* ir_add_element_extent() returns the row of an extent in ir.extent, and adds the extent if it is new. ir_add_range()
 * always adds a row to ir.range, and returns it. Both are for passes that write operands themselves. */
uint32_t ir_add_element_extent(struct ir *ir, struct ir_element_extent extent);
uint32_t ir_add_range(struct ir *ir, struct ir_range range);

/* Returns the free set of a buffer, ir.buffer.free_count[] ops; valid until rows are added. */
static inline op_id *ir_free_set(const struct ir *ir, uint32_t buffer)
{
    op_id *own = &ir->buffer.free_op[buffer];
    return ir->buffer.free_count[buffer] <= 1 ? own : ir->free_op + own->i;
}

/* Makes room for these numbers of further rows of each table. It is for passes that write columns themselves. */
void ir_reserve(struct ir *ir, uint64_t ops, uint64_t buffers, uint64_t operands, uint64_t waits);

/* Adds a copy of row `from` of `in` to `out`, which must have room for it, and returns the row of the copy. The copy
 * has no free set, no offset and no number yet; the caller sets the number. */
uint32_t ir_copy_buffer(struct buffer_table *out, const struct buffer_table *in, uint32_t from);
/* Copies `rows` rows of `in`, from row `from` on, to row `to` of `out` and those after it, for which `out` must have
 * room. The counts of both tables do not change. */
void ir_copy_ops(struct op_table *out, uint32_t to, const struct op_table *in, uint32_t from,
                 uint32_t rows);

/* Returns an array of ids on the heap, all IR_NONE. */
uint32_t *ir_new_empty_ids(size_t count);

/* ---- reading, and the names of enumerators ---- */
struct view ir_view_of_operand(const struct ir *ir, uint32_t operand);
static inline const struct work *ir_work(const struct ir *ir, uint32_t op)
{
    return &ir->shape[ir->op.shape[op]];
}
static inline uint32_t ir_operand_count(const struct ir *ir, uint32_t op)
{
    return (uint32_t)ir->op.read_count[op] + ir->op.write_count[op];
}
/* Returns the operands of an op: its reads, then its writes. While no op has operands, the table is NULL, to which C
 * allows no addition; the result then is the address of another object. */
static inline uint32_t *ir_operands(const struct ir *ir, uint32_t op)
{
    static uint32_t none;
    return ir->operand == NULL ? &none : ir->operand + ir->op.operand_begin[op];
}
static inline op_id *ir_waits(const struct ir *ir, uint32_t op)
{
    static op_id none;
    return ir->wait == NULL ? &none : ir->wait + ir->op.wait_begin[op];
}
static inline struct view ir_read_view(const struct ir *ir, uint32_t op, uint32_t k)
{
    return ir_view_of_operand(ir, ir->operand[ir->op.operand_begin[op] + k]);
}
static inline struct view ir_write_view(const struct ir *ir, uint32_t op, uint32_t k)
{
    return ir_view_of_operand(ir,
                              ir->operand[ir->op.operand_begin[op] + ir->op.read_count[op] + k]);
}
/* ir_buffer_of_operand() returns the buffer of an operand, ir_touched_buffer() that of operand k of an op, reads first.
 * They are faster than ir_view_of_operand(), since they do not look up the range. */
static inline uint32_t ir_buffer_of_operand(const struct ir *ir, uint32_t operand)
{
    return operand & IR_OPERAND_IS_RANGE_ROW
               ? ir->range[operand & ~IR_OPERAND_IS_RANGE_ROW].buffer.i
               : operand;
}
static inline uint32_t ir_touched_buffer(const struct ir *ir, uint32_t op, uint32_t k)
{
    return ir_buffer_of_operand(ir, ir->operand[ir->op.operand_begin[op] + k]);
}
static inline struct view ir_range_view(const struct ir *ir, uint32_t row)
{
    const struct ir_range *range = &ir->range[row];
    const struct ir_element_extent *extent = &ir->extent[range->extent_row];
    return (struct view){range->buffer, extent->begin, extent->count};
}
/* Returns the bytes of a buffer that is bound to a bundle whose storage is not 16bit: the bytes of the codes of
 * `elements` elements or, with BINDING_SCALES, of the scales of the whole bundle. */
uint64_t ir_stored_weight_bytes(const struct ir *ir, const struct binding *binding,
                                uint64_t elements);
/* Returns a view of a whole buffer. */
struct view ir_whole_view(const struct ir *ir, buffer_id buffer);
static inline uint64_t ir_buffer_elements(const struct ir *ir, buffer_id buffer)
{
    return ir->dims[ir->buffer.dims[buffer.i]].elements;
}
uint64_t ir_buffer_bytes(const struct ir *ir, buffer_id buffer);
/* Returns the role to which an op belongs. */
uint32_t ir_role_of_op(const struct ir *ir, uint32_t op);

/* True if the host issues nothing more until the op ends (HOST_SYNC, BARRIER, blocking copies). */
static inline bool ir_blocks_host(const struct ir *ir, uint32_t op)
{
    uint8_t kind = ir->op.kind[op];
    if (kind == WORK_H2D || kind == WORK_D2H)
        return ir_work(ir, op)->copy.blocking != 0;
    return kind == WORK_HOST_SYNC || kind == WORK_BARRIER;
}

extern const char *const memory_names[MEMORY_COUNT];
extern const char *const category_names[CATEGORY_COUNT];
/* The names of categories that people are shown: "activations". */
extern const char *const category_labels[CATEGORY_COUNT];
extern const char *const phase_names[PHASE_COUNT];
extern const char *const region_names[REGION_COUNT];
extern const char *const binding_names[BINDING_KIND_COUNT];
extern const char *const guard_signs[GUARD_COMPARISON_COUNT];

#endif

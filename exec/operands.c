#include "exec/operands.h"

#include "exec/backend.h"

#include <inttypes.h>
#include <stdio.h>

enum want_type { WANT_FLOAT, WANT_INDEX, WANT_ANY };

enum { ANY_COUNT = 0 };

/* What an op's operands must be; counts in double-checked 64 bits. */
struct wants {
    uint32_t reads, writes;
    struct want {
        uint64_t count; /* ANY_COUNT: not checked */
        enum want_type type;
    } read[CALL_OPERANDS_MAX], write[CALL_OPERANDS_MAX];
    bool overflow;
};

/* A product of sizes; sizes beyond what a buffer may hold fit no operand. */
static uint64_t product(struct wants *w, int64_t a, int64_t b, int64_t c)
{
    uint64_t n;
    if (a < 0 || b < 0 || c < 0 || __builtin_mul_overflow((uint64_t)a, (uint64_t)b, &n) ||
        __builtin_mul_overflow(n, (uint64_t)c, &n) || n > IR_ELEMENTS_MAX || n == 0) {
        w->overflow = true;
        return 1;
    }
    return n;
}

static void want_read(struct wants *w, uint64_t count, enum want_type type)
{
    w->read[w->reads++] = (struct want){count, type};
}

static void want_write(struct wants *w, uint64_t count, enum want_type type)
{
    w->write[w->writes++] = (struct want){count, type};
}

/* Float operands of n elements each. */
static void want_floats(struct wants *w, int reads, int writes, uint64_t count)
{
    for (int i = 0; i < reads; i++)
        want_read(w, count, WANT_FLOAT);
    for (int i = 0; i < writes; i++)
        want_write(w, count, WANT_FLOAT);
}

static void want_matmul(struct wants *w, const struct work *work)
{
    int64_t m = work->matmul.m, n = work->matmul.n, k = work->matmul.k;
    w->overflow |= m > INT32_MAX || n > INT32_MAX || k > INT32_MAX; /* what BLAS counts with */
    want_floats(w, 1, 0, product(w, m, k, 1));
    want_floats(w, 1, 0, product(w, n, k, 1));
    if (work->matmul.epilogue == EPILOGUE_BIAS)
        want_floats(w, 1, 0, product(w, n, 1, 1));
    want_floats(w, work->matmul.accumulate ? 1 : 0, 1, product(w, m, n, 1));
}

static void want_attention(struct wants *w, const struct work *work, uint32_t writes)
{
    int64_t heads = work->attention.heads, kv_heads = work->attention.kv_heads;
    uint64_t q = product(w, work->attention.q, heads, work->attention.dim);
    uint64_t kv = product(w, work->attention.kv, kv_heads, work->attention.dim);
    uint64_t lse = product(w, work->attention.q, heads, 1);
    w->overflow |= heads % (kv_heads > 0 ? kv_heads : 1) != 0 ||
                   work->attention.q > INT32_MAX / 2 || work->attention.kv > INT32_MAX / 2 ||
                   heads * work->attention.dim > INT32_MAX;
    want_floats(w, 1, 0, q);
    want_floats(w, 2, 0, kv);
    if (work->kind == WORK_ATTENTION) {
        want_floats(w, 0, 1, q);
        want_floats(w, 0, 1, lse);
        return;
    }
    want_floats(w, 1, 0, q);
    want_floats(w, 1, 0, lse);
    want_floats(w, 1, 1, q);
    want_floats(w, 0, 2, kv);
    if (writes > 3)
        want_write(w, ANY_COUNT, WANT_ANY); /* workspace */
}

static void want_norm(struct wants *w, const struct work *work)
{
    uint64_t all = product(w, work->rows.rows, work->rows.cols, 1);
    uint64_t cols = product(w, work->rows.cols, 1, 1);
    bool layer = work->kind == WORK_LAYERNORM || work->kind == WORK_LAYERNORM_BACKWARD;
    int vectors = layer ? 2 : 1;
    uint64_t stats = product(w, work->rows.rows, vectors, 1);
    if (work->kind == WORK_RMSNORM || work->kind == WORK_LAYERNORM) {
        want_floats(w, 1, 1, all);
        want_floats(w, vectors, 0, cols);
        want_floats(w, 0, 1, stats);
        return;
    }
    want_floats(w, 2, 1, all);
    want_floats(w, 1, 0, cols);
    want_floats(w, 1, 0, stats);
    want_floats(w, work->rows.accumulate ? vectors : 0, vectors, cols);
}

static void want_loss(struct wants *w, const struct work *work, uint32_t reads, uint32_t writes,
                      const uint8_t *write_dtype)
{
    int64_t rows = work->cross_entropy.rows;
    uint64_t logits = product(w, rows, work->cross_entropy.vocab, 1);
    want_floats(w, 1, 0, logits);
    want_read(w, (uint64_t)rows, WANT_INDEX);
    switch ((enum work_kind)work->kind) {
    case WORK_CROSS_ENTROPY:
        want_floats(w, work->cross_entropy.accumulate ? 1 : 0, 1, 1);
        want_floats(w, 0, 1, (uint64_t)rows);
        if (writes > 2 && write_dtype[2] != DTYPE_U8)
            want_floats(w, 0, 1, logits);
        while (w->writes < writes && w->writes < 4)
            want_write(w, ANY_COUNT, WANT_ANY); /* workspace */
        break;
    case WORK_CROSS_ENTROPY_BACKWARD:
        want_floats(w, 0, 1, logits);
        break;
    case WORK_CROSS_ENTROPY_PARTIAL:
        want_floats(w, 0, 1, product(w, rows, 3, 1));
        break;
    case WORK_CROSS_ENTROPY_PARTIAL_BACKWARD:
        want_floats(w, 1, 0, (uint64_t)rows);
        want_floats(w, 0, 1, logits);
        break;
    default: /* FINISH: statistics of any number of parts */
        want_read(w, ANY_COUNT, WANT_FLOAT);
        want_floats(w, work->p[4] ? 1 : 0, 1, 1);
        want_floats(w, 0, 1, (uint64_t)rows);
    }
    (void)reads;
}

static void want_pack(struct wants *w, const struct work *work)
{
    int64_t rows = work->pack.rows, parts = work->pack.parts;
    uint64_t all = product(w, rows, parts, work->pack.w[0] + work->pack.w[1] + work->pack.w[2]);
    bool pack = work->kind == WORK_PACK;
    if (pack)
        want_read(w, all, WANT_ANY);
    else
        want_write(w, all, WANT_ANY);
    for (int i = 0; i < 3; i++) {
        if (work->pack.w[i] == 0)
            continue;
        uint64_t part = product(w, rows, parts, work->pack.w[i]);
        if (pack)
            want_write(w, part, WANT_ANY);
        else
            want_read(w, part, WANT_ANY);
    }
}

/* Communication: `first` is the count of the read (of the write, where nothing is read). */
static void want_communication(struct wants *w, const struct work *work, uint64_t first,
                               uint32_t members, uint32_t reads, uint32_t writes)
{
    bool sums = work->kind == WORK_REDUCE_SCATTER || work->kind == WORK_ALL_REDUCE ||
                work->kind == WORK_REDUCE;
    enum want_type type = sums ? WANT_FLOAT : WANT_ANY;
    uint64_t other = first;
    if (work->kind == WORK_ALL_GATHER)
        other = product(w, (int64_t)first, members, 1);
    bool scatters = work->kind == WORK_REDUCE_SCATTER || work->kind == WORK_SCATTER;
    if (work->kind == WORK_ALL_TO_ALL || scatters)
        w->overflow |= first % members != 0;
    if (scatters)
        other = first / members;
    for (uint32_t i = 0; i < reads; i++)
        want_read(w, first, type);
    for (uint32_t i = 0; i < writes; i++)
        want_write(w, other, type);
}

static void wants_of(struct wants *w, const struct work *work, uint64_t first, uint32_t members,
                     uint32_t reads, uint32_t writes, const uint8_t *write_dtype)
{
    int64_t rows = work->p[0], cols = work->p[1];
    switch ((enum work_kind)work->kind) {
    case WORK_MATMUL:
        want_matmul(w, work);
        break;
    case WORK_ATTENTION:
    case WORK_ATTENTION_BACKWARD:
        want_attention(w, work, writes);
        break;
    case WORK_MERGE:
        for (int i = 0; i < 2; i++) {
            want_floats(w, 1, i == 0, product(w, rows, cols, work->merge.dim));
            want_floats(w, 1, i == 0, product(w, rows, cols, 1));
        }
        break;
    case WORK_RMSNORM:
    case WORK_LAYERNORM:
    case WORK_RMSNORM_BACKWARD:
    case WORK_LAYERNORM_BACKWARD:
        want_norm(w, work);
        break;
    case WORK_ROPE:
    case WORK_ROPE_BACKWARD: {
        int64_t turned = (int64_t)product(w, work->rope.heads, work->rope.dim, 1);
        int64_t stride = work->rope.stride ? work->rope.stride : turned;
        w->overflow |= stride < turned || work->rope.dim % 2 != 0;
        want_floats(w, 1, 1, product(w, rows, stride, 1));
        want_read(w, (uint64_t)rows, WANT_INDEX);
        break;
    }
    case WORK_SWIGLU:
        want_floats(w, 1, 0, product(w, rows, cols, 2));
        want_floats(w, 0, 1, product(w, rows, cols, 1));
        break;
    case WORK_SWIGLU_BACKWARD:
        want_floats(w, 1, 0, product(w, rows, cols, 1));
        want_floats(w, 1, 1, product(w, rows, cols, 2));
        break;
    case WORK_GELU:
        want_floats(w, 1, 1, product(w, rows, cols, 1));
        break;
    case WORK_GELU_BACKWARD:
        want_floats(w, 2, 1, product(w, rows, cols, 1));
        break;
    case WORK_EMBEDDING:
        want_read(w, (uint64_t)rows, WANT_INDEX);
        want_floats(w, 1, 0, product(w, work->embedding.vocab, cols, 1));
        want_floats(w, 0, 1, product(w, rows, cols, 1));
        break;
    case WORK_EMBEDDING_BACKWARD:
        want_floats(w, 1, 0, product(w, rows, cols, 1));
        want_read(w, (uint64_t)rows, WANT_INDEX);
        want_floats(w, reads > 2 ? 1 : 0, 1, product(w, work->embedding.vocab, cols, 1));
        break;
    case WORK_CROSS_ENTROPY:
    case WORK_CROSS_ENTROPY_BACKWARD:
    case WORK_CROSS_ENTROPY_PARTIAL:
    case WORK_CROSS_ENTROPY_FINISH:
    case WORK_CROSS_ENTROPY_PARTIAL_BACKWARD:
        want_loss(w, work, reads, writes, write_dtype);
        break;
    case WORK_ADD:
        want_floats(w, 2, 1, product(w, rows, 1, 1));
        want_floats(w, cols > 0 ? 1 : 0, 0, product(w, cols > 0 ? cols : 1, 1, 1));
        w->overflow |= cols > 0 && rows % cols != 0;
        break;
    case WORK_CAST:
        want_floats(w, 1, 1, product(w, rows, 1, 1));
        break;
    case WORK_FILL:
        want_write(w, product(w, rows, 1, 1), WANT_ANY);
        break;
    case WORK_PACK:
    case WORK_UNPACK:
        want_pack(w, work);
        break;
    case WORK_HEAD_EXPAND:
    case WORK_HEAD_REDUCE: {
        uint64_t one = product(w, rows, work->heads.heads, work->heads.dim);
        uint64_t copies = product(w, (int64_t)one, work->heads.copies, 1);
        bool expand = work->kind == WORK_HEAD_EXPAND;
        want_floats(w, 1, 0, expand ? one : copies);
        want_floats(w, 0, 1, expand ? copies : one);
        break;
    }
    case WORK_COLUMN_SUM:
        want_floats(w, 1, 0, product(w, rows, cols, 1));
        want_floats(w, work->rows.accumulate ? 1 : 0, 1, product(w, cols, 1, 1));
        break;
    case WORK_ADAMW:
        want_floats(w, 4, (int)(writes > 3 ? 4 : 3), product(w, rows, 1, 1));
        want_floats(w, reads > 4 ? 1 : 0, 0, 1);
        break;
    case WORK_SQUARE_SUM:
        want_floats(w, 1, 0, product(w, rows, 1, 1));
        want_floats(w, work->square_sum.accumulate ? 1 : 0, 1, 1);
        break;
    case WORK_CLIP:
        want_floats(w, 1, 1, product(w, rows, 1, 1));
        want_floats(w, 1, 0, 1);
        break;
    case WORK_ALL_TO_ALL:
    case WORK_ALL_GATHER:
    case WORK_REDUCE_SCATTER:
    case WORK_ALL_REDUCE:
    case WORK_REDUCE:
    case WORK_BROADCAST:
    case WORK_SCATTER:
    case WORK_SHIFT:
    case WORK_SEND:
    case WORK_RECV:
    case WORK_H2D:
    case WORK_D2H:
        want_communication(w, work, first, members, reads, writes);
        break;
    case WORK_HOST_SYNC:
    case WORK_BARRIER:
    case WORK_KIND_COUNT:
        break;
    }
}

/* Kinds that copy elements as they are. */
static bool moves_bytes(enum work_kind kind)
{
    return kind == WORK_PACK || kind == WORK_UNPACK ||
           (kind >= WORK_ALL_TO_ALL && kind <= WORK_D2H);
}

static bool fits(struct want want, uint64_t count, enum dtype dtype)
{
    bool index = dtype == DTYPE_I32, floating = !index && dtype != DTYPE_U8;
    return (want.count == ANY_COUNT || want.count == count) &&
           (want.type == WANT_ANY || (want.type == WANT_INDEX ? index : floating));
}

static enum status wrong(const struct ir *ir, uint32_t op, const char *name, struct diag *diag,
                         const char *side, uint32_t k, struct want want, struct view view)
{
    static const char *const types[] = {"a floating-point type", "i32", "any type"};
    char buffer[64];
    ir_buffer_name(ir, view.buffer, buffer, sizeof buffer);
    return diag_error(diag, (struct loc){name, 0, 0}, STATUS_BAD_INPUT,
                      "op %" PRIu32 " (%s): %s %" PRIu32 " is %" PRIu64
                      " elements of %s in %s; its shape wants %" PRIu64 " of %s",
                      op, work_kind_info(ir->op.kind[op])->name, side, k, view.count,
                      dtype_name(ir->buffer.dtype[view.buffer.i]), buffer, want.count,
                      types[want.type]);
}

enum status operands_check(const struct ir *ir, uint32_t op, uint32_t members, const char *name,
                           struct diag *diag)
{
    const struct work *work = ir_work(ir, op);
    const struct loc at = {name, 0, 0};
    uint32_t reads = ir->op.reads[op], writes = ir->op.writes[op];
    if (reads > CALL_OPERANDS_MAX || writes > CALL_OPERANDS_MAX)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "op %" PRIu32 " (%s) has %" PRIu32 " reads and %" PRIu32
                          " writes; at most %d of each would do",
                          op, work_kind_info(work->kind)->name, reads, writes, CALL_OPERANDS_MAX);
    struct view view[2 * CALL_OPERANDS_MAX];
    uint8_t write_dtype[CALL_OPERANDS_MAX];
    for (uint32_t k = 0; k < reads; k++)
        view[k] = ir_read(ir, op, k);
    for (uint32_t k = 0; k < writes; k++) {
        view[reads + k] = ir_write(ir, op, k);
        write_dtype[k] = ir->buffer.dtype[view[reads + k].buffer.i];
    }
    struct wants w = {0};
    wants_of(&w, work, reads + writes > 0 ? view[0].count : 0, members ? members : 1, reads, writes,
             write_dtype);
    if (w.overflow)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "op %" PRIu32 " (%s) has a shape that does not fit its kind", op,
                          work_kind_info(work->kind)->name);
    if (w.reads != reads || w.writes != writes)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "op %" PRIu32 " (%s) has %" PRIu32 " reads and %" PRIu32
                          " writes; its shape wants %" PRIu32 " and %" PRIu32,
                          op, work_kind_info(work->kind)->name, reads, writes, w.reads, w.writes);
    if (moves_bytes(work->kind))
        for (uint32_t k = 1; k < reads + writes; k++)
            if (ir->buffer.dtype[view[k].buffer.i] != ir->buffer.dtype[view[0].buffer.i])
                return diag_error(diag, at, STATUS_BAD_INPUT,
                                  "op %" PRIu32 " (%s) moves %s into %s; a cast would convert it",
                                  op, work_kind_info(work->kind)->name,
                                  dtype_name(ir->buffer.dtype[view[0].buffer.i]),
                                  dtype_name(ir->buffer.dtype[view[k].buffer.i]));
    for (uint32_t k = 0; k < reads + writes; k++) {
        bool is_read = k < reads;
        struct want want = is_read ? w.read[k] : w.write[k - reads];
        if (!fits(want, view[k].count, ir->buffer.dtype[view[k].buffer.i]))
            return wrong(ir, op, name, diag, is_read ? "read" : "write", is_read ? k : k - reads,
                         want, view[k]);
    }
    return STATUS_OK;
}

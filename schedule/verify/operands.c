/* operand-size: what each kind asks of its operands, as a table.
 *
 * A row lists the reads and then the writes of a kind, one word each: a product of the kind's
 * parameters and numbers that is the operand's element count; ":f32", ":i32" or ":u8" when the dtype
 * is fixed; "?p" when the operand is there only if parameter p is not 0, "?!p" if it is 0; "?" at the
 * end of a list when it may be left out. "any" asks nothing. Communication and copies give
 * bytes instead: "@" is the op's bytes, "@*" times the size of its group, "@/" divided by it. */
#include "schedule/verify/rules.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *reads, *writes;
} asks[WORK_KIND_COUNT] = {
    [WORK_MATMUL] = {"m*k k*n n?epilogue m*n?accumulate", "m*n"},
    [WORK_ATTENTION] = {"q*heads*dim kv*kv_heads*dim kv*kv_heads*dim", "q*heads*dim q*heads:f32"},
    [WORK_ATTENTION_BACKWARD] =
        {"q*heads*dim kv*kv_heads*dim kv*kv_heads*dim q*heads*dim q*heads:f32 q*heads*dim",
         "q*heads*dim kv*kv_heads*dim kv*kv_heads*dim any:u8?"},
    [WORK_MERGE] = {"rows*heads*dim:f32 rows*heads:f32 rows*heads*dim rows*heads:f32",
                    "rows*heads*dim:f32 rows*heads:f32"},
    [WORK_RMSNORM] = {"rows*cols cols", "rows*cols rows:f32"},
    [WORK_RMSNORM_BACKWARD] = {"rows*cols rows*cols cols rows:f32 cols?accumulate",
                               "rows*cols cols"},
    [WORK_LAYERNORM] = {"rows*cols cols cols", "rows*cols rows*2:f32"},
    [WORK_LAYERNORM_BACKWARD] =
        {"rows*cols rows*cols cols rows*2:f32 cols?accumulate cols?accumulate",
         "rows*cols cols cols"},
    [WORK_ROPE] = {"rows*stride?stride rows*heads*dim?!stride rows:i32",
                   "rows*stride?stride rows*heads*dim?!stride"},
    [WORK_ROPE_BACKWARD] = {"rows*stride?stride rows*heads*dim?!stride rows:i32",
                            "rows*stride?stride rows*heads*dim?!stride"},
    [WORK_SWIGLU] = {"rows*cols*2", "rows*cols"},
    [WORK_SWIGLU_BACKWARD] = {"rows*cols rows*cols*2", "rows*cols*2"},
    [WORK_GELU] = {"rows*cols", "rows*cols"},
    [WORK_GELU_BACKWARD] = {"rows*cols rows*cols", "rows*cols"},
    [WORK_EMBEDDING] = {"rows:i32 vocab*cols", "rows*cols"},
    [WORK_EMBEDDING_BACKWARD] = {"rows*cols rows:i32 vocab*cols?", "vocab*cols"},
    [WORK_CROSS_ENTROPY] = {"rows*vocab rows:i32 1:f32?accumulate",
                            "1:f32 rows:f32 rows*vocab:f32? any:u8?"},
    [WORK_CROSS_ENTROPY_BACKWARD] = {"rows*vocab rows:i32", "rows*vocab"},
    [WORK_CROSS_ENTROPY_PARTIAL] = {"rows*vocab rows:i32", "rows*3:f32"},
    [WORK_CROSS_ENTROPY_FINISH] = {"rows*vocab rows:i32 any:f32 1:f32?accumulate",
                                   "1:f32 rows:f32"},
    [WORK_CROSS_ENTROPY_PARTIAL_BACKWARD] = {"rows*vocab rows:i32 rows:f32", "rows*vocab"},
    [WORK_ADD] = {"count count cols?cols", "count"},
    [WORK_CAST] = {"count", "count"},
    [WORK_FILL] = {"", "count"},
    [WORK_PACK] = {"rows*parts*w012", "rows*parts*w0 rows*parts*w1?w1 rows*parts*w2?w2"},
    [WORK_UNPACK] = {"rows*parts*w0 rows*parts*w1?w1 rows*parts*w2?w2", "rows*parts*w012"},
    [WORK_HEAD_EXPAND] = {"rows*heads*dim", "rows*heads*dim*copies"},
    [WORK_HEAD_REDUCE] = {"rows*heads*dim*copies", "rows*heads*dim"},
    [WORK_COLUMN_SUM] = {"rows*cols cols?accumulate", "cols"},
    [WORK_ADAMW] = {"count count:f32 count:f32 count:f32 1:f32?",
                    "count:f32 count:f32 count:f32 count?"},
    [WORK_SQUARE_SUM] = {"count 1:f32?accumulate", "1:f32"},
    [WORK_CLIP] = {"count 1:f32", "count"},
    [WORK_ALL_TO_ALL] = {"@", "@"},
    [WORK_ALL_GATHER] = {"@", "@*"},
    [WORK_REDUCE_SCATTER] = {"@", "@/"},
    [WORK_ALL_REDUCE] = {"@", "@"},
    [WORK_REDUCE] = {"@", "@?"},
    [WORK_BROADCAST] = {"@?", "@"},
    [WORK_SCATTER] = {"@", "@/"},
    [WORK_SHIFT] = {"@", "@"},
    [WORK_SEND] = {"@", ""},
    [WORK_RECV] = {"", "@"},
    [WORK_H2D] = {"@", "@"},
    [WORK_D2H] = {"@", "@"},
    [WORK_HOST_SYNC] = {"", ""},
    [WORK_BARRIER] = {"", ""},
};

enum { OPERANDS_MAX = 16 };

/* What one shape asks of one operand. */
struct need {
    const char *word;  /* in the table, for messages */
    uint32_t size;     /* of its product in the table */
    uint64_t elements; /* or bytes */
    bool any, in_bytes;
    uint8_t dtype; /* DTYPE_COUNT: free */
};

struct needs {
    const char *fault; /* what is wrong with the shape itself, or NULL */
    struct need need[OPERANDS_MAX];
    uint8_t reads, reads_least, writes, writes_least;
};

/* Parameters of a kind by name; w012 is the sum of w0, w1 and w2. */
static bool parameter(const struct work *work, const char *name, size_t size, int64_t *value)
{
    const struct work_kind_info *info = work_kind_info(work->kind);
    if (size == 4 && memcmp(name, "w012", 4) == 0) {
        int64_t sum = 0;
        for (int i = 0; i < 3; i++)
            sum = work->pack.w[i] > IR_ELEMENTS_MAX - sum ? IR_ELEMENTS_MAX : sum + work->pack.w[i];
        *value = sum;
        return true;
    }
    for (uint32_t i = 0; i < info->param_count; i++)
        if (strlen(info->param[i].name) == size && memcmp(info->param[i].name, name, size) == 0) {
            *value = work->p[i];
            return true;
        }
    return false;
}

static int64_t parameter_of(const struct work *work, const char *name, size_t size)
{
    int64_t value = 0;
    if (name[0] >= '0' && name[0] <= '9')
        return name[0] - '0';
    bool found = parameter(work, name, size, &value);
    assert(found); /* the table names only parameters there are */
    return value;
}

/* Sizes multiply up to IR_ELEMENTS_MAX, which no operand exceeds; more stays more. */
static uint64_t times(uint64_t a, int64_t b)
{
    const uint64_t too_many = (uint64_t)IR_ELEMENTS_MAX + 1;
    return b > 0 && a > too_many / (uint64_t)b ? too_many : a * (uint64_t)b;
}

static uint64_t product(const struct work *work, const char *word, size_t size)
{
    uint64_t value = 1;
    for (size_t at = 0; at < size;) {
        size_t end = at;
        while (end < size && word[end] != '*')
            end++;
        value = times(value, parameter_of(work, word + at, end - at));
        at = end + 1;
    }
    return value;
}

/* One word of the table; false when the operand is not there for this shape. */
static bool read_word(const struct ir *ir, const struct work *work, const char *word, size_t size,
                      struct need *need, bool *optional)
{
    size_t end = strcspn(word, ":? ");
    end = end < size ? end : size;
    *need = (struct need){.word = word, .size = (uint32_t)end, .dtype = DTYPE_COUNT};
    const char *condition = memchr(word, '?', size);
    *optional = condition && condition + 1 == word + size;
    if (condition && !*optional) {
        bool negated = condition[1] == '!';
        const char *name = condition + 1 + negated;
        bool is_set = parameter_of(work, name, (size_t)(word + size - name)) != 0;
        if (is_set == negated)
            return false;
    }
    const char *colon = memchr(word, ':', size);
    if (colon)
        need->dtype = colon[1] == 'i' ? DTYPE_I32 : colon[1] == 'u' ? DTYPE_U8 : DTYPE_F32;
    if (word[0] == '@') {
        need->in_bytes = true;
        need->elements = (uint64_t)work_payload_bytes(work);
        if (end == 2) {
            uint32_t members = group_size(&ir->mesh, &ir->group[work_group(work)]);
            need->elements =
                word[1] == '*' ? times(need->elements, members) : need->elements / members;
        }
        return true;
    }
    need->any = end == 3 && memcmp(word, "any", 3) == 0;
    if (!need->any)
        need->elements = product(work, word, end);
    return true;
}

/* A collective that hands out pieces of its bytes. */
static const char *fault_of_pieces(struct verifier *v, const struct work *work, uint32_t members)
{
    int64_t bytes = work_payload_bytes(work);
    if (bytes % ((int64_t)members * (int64_t)dtype_bytes(work->in)) == 0)
        return NULL;
    return arena_printf(&v->arena,
                        "bytes=%" PRId64 " do not cut into %" PRIu32 " equal pieces of %s", bytes,
                        members, dtype_name(work->in));
}

static const char *fault_of_shape(struct verifier *v, const struct work *work)
{
    const struct ir *ir = v->ir;
    const struct work_kind_info *info = work_kind_info(work->kind);
    for (uint32_t i = 0; i < info->param_count; i++) {
        const struct work_param *p = &info->param[i];
        if (p->is_group || p->is_signed)
            continue;
        bool may_be_zero = p->optional || p->values;
        if (work->p[i] < (may_be_zero ? 0 : 1) || (p->values && work->p[i] >= p->value_count))
            return arena_printf(&v->arena, "%s=%" PRId64 " cannot be", p->name, work->p[i]);
    }
    int64_t group = work_group(work);
    uint32_t members = group >= 0 ? group_size(&ir->mesh, &ir->group[group]) : 1;
    switch ((enum work_kind)work->kind) {
    case WORK_ATTENTION:
    case WORK_ATTENTION_BACKWARD:
        if (work->attention.heads % work->attention.kv_heads != 0)
            return arena_printf(&v->arena,
                                "heads=%" PRId64 " is not a multiple of kv_heads=%" PRId64,
                                work->attention.heads, work->attention.kv_heads);
        if ((work->attention.mask == MASK_WINDOW) != (work->attention.window > 0))
            return "a window belongs to mask=window, and to no other";
        return NULL;
    case WORK_ROPE:
    case WORK_ROPE_BACKWARD:
        if (work->rope.dim % 2 != 0)
            return arena_printf(&v->arena, "dim=%" PRId64 " is odd", work->rope.dim);
        if (work->rope.stride != 0 &&
            (uint64_t)work->rope.stride < times((uint64_t)work->rope.heads, work->rope.dim))
            return "stride is less than heads*dim";
        return NULL;
    case WORK_ALL_TO_ALL:
    case WORK_REDUCE_SCATTER:
        return fault_of_pieces(v, work, members);
    case WORK_REDUCE:
    case WORK_BROADCAST:
    case WORK_SCATTER:
        if (work->broadcast.root >= members)
            return arena_printf(&v->arena, "root=%" PRId64 " is not in a group of %" PRIu32,
                                work->broadcast.root, members);
        return work->kind == WORK_SCATTER ? fault_of_pieces(v, work, members) : NULL;
    default:
        return NULL;
    }
}

static void read_list(const struct ir *ir, const struct work *work, const char *list,
                      struct need *need, uint8_t *count, uint8_t *least)
{
    while (*list) {
        size_t size = strcspn(list, " ");
        bool optional;
        assert(*count < OPERANDS_MAX / 2);
        if (read_word(ir, work, list, size, &need[*count], &optional)) {
            ++*count;
            *least = (uint8_t)(*least + !optional);
        }
        list += size;
        list += strspn(list, " ");
    }
}

static void needs_of(struct verifier *v, const struct work *work, struct needs *needs)
{
    *needs = (struct needs){.fault = fault_of_shape(v, work)};
    if (needs->fault)
        return;
    read_list(v->ir, work, asks[work->kind].reads, needs->need, &needs->reads, &needs->reads_least);
    read_list(v->ir, work, asks[work->kind].writes, needs->need + OPERANDS_MAX / 2, &needs->writes,
              &needs->writes_least);
}

static const char *need_text(struct verifier *v, const struct need *need)
{
    if (!need->in_bytes)
        return arena_text(&v->arena, need->word, need->size);
    char how = need->size == 2 ? need->word[1] : '=';
    return how == '*' ? "bytes * members" : how == '/' ? "bytes / members" : "bytes";
}

static void check_operand(struct verifier *v, uint32_t op, const char *what, uint32_t k,
                          struct view view, const struct need *need)
{
    const struct ir *ir = v->ir;
    enum dtype dtype = ir->buffer.dtype[view.buffer.i];
    uint64_t have = need->in_bytes ? times(view.count, (int64_t)dtype_bytes(dtype)) : view.count;
    if (!need->any && have != need->elements) {
        verify_fail(v, "%s %s %s, %" PRIu64 " %s: %s %" PRIu32 " must have %s = %" PRIu64,
                    op_text(v, op), what[0] == 'r' ? "reads" : "writes", view_text(v, view), have,
                    need->in_bytes ? "bytes" : "elements", what, k + 1, need_text(v, need),
                    need->elements);
    }
    if (need->dtype != DTYPE_COUNT && dtype != need->dtype)
        verify_fail(v, "%s has %s %" PRIu32 ", %s, in %s: it must be %s", op_text(v, op), what,
                    k + 1, view_text(v, view), dtype_name(dtype), dtype_name(need->dtype));
}

static void check_count(struct verifier *v, uint32_t op, const char *what, uint32_t have,
                        uint32_t least, uint32_t most)
{
    if (least == most)
        verify_fail(v, "%s %s %" PRIu32 " operands: with these parameters it must be %" PRIu32,
                    op_text(v, op), what, have, most);
    else
        verify_fail(v,
                    "%s %s %" PRIu32 " operands: with these parameters it must be %" PRIu32
                    " to %" PRIu32,
                    op_text(v, op), what, have, least, most);
}

/* Data that moves keeps its dtype. */
static void check_moved(struct verifier *v, uint32_t op)
{
    const struct ir *ir = v->ir;
    if (ir->op.reads[op] == 0 || ir->op.writes[op] == 0)
        return;
    struct view in = ir_read(ir, op, 0), out = ir_write(ir, op, 0);
    enum dtype from = ir->buffer.dtype[in.buffer.i], to = ir->buffer.dtype[out.buffer.i];
    if (from != to)
        verify_fail(v, "%s moves %s in %s to %s in %s", op_text(v, op), view_text(v, in),
                    dtype_name(from), view_text(v, out), dtype_name(to));
}

void check_operands(struct verifier *v)
{
    const struct ir *ir = v->ir;
    for (int kind = 0; kind < WORK_KIND_COUNT; kind++)
        assert(asks[kind].reads && asks[kind].writes);
    struct needs *all = heap_alloc(ir->shape_count, sizeof *all);
    for (uint32_t s = 0; s < ir->shape_count; s++)
        needs_of(v, &ir->shape[s], &all[s]);
    for (uint32_t op = 0; op < ir->op.count; op++) {
        const struct needs *n = &all[ir->op.shape[op]];
        uint32_t reads = ir->op.reads[op], writes = ir->op.writes[op];
        if (n->fault) {
            verify_fail(v, "%s: %s", op_text(v, op), n->fault);
            continue;
        }
        if (reads < n->reads_least || reads > n->reads)
            check_count(v, op, "reads", reads, n->reads_least, n->reads);
        if (writes < n->writes_least || writes > n->writes)
            check_count(v, op, "writes", writes, n->writes_least, n->writes);
        for (uint32_t k = 0; k < reads && k < n->reads; k++)
            check_operand(v, op, "read", k, ir_read(ir, op, k), &n->need[k]);
        for (uint32_t k = 0; k < writes && k < n->writes; k++)
            check_operand(v, op, "write", k, ir_write(ir, op, k), &n->need[OPERANDS_MAX / 2 + k]);
        if (n->reads > 0 && n->need[0].in_bytes)
            check_moved(v, op);
    }
    free(all);
    verify_checked(v, "%" PRIu32 " ops of %" PRIu32 " shapes", ir->op.count, ir->shape_count);
}

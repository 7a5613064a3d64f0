/* The rules `placement` (where ops run and which memories they touch) and `binding` (what bound buffers hold). */
#include "models/frozen_storage.h"
#include "models/states.h"
#include "schedule/verify/rules.h"

#include <inttypes.h>

/* ---- placement ---- */

enum place { PLACE_DEVICE, PLACE_HOST, PLACE_COUNT };

static const char *const place_words[PLACE_COUNT] = {"device memory", "host memory"};

static enum place place_of_memory(enum memory memory)
{
    return memory == MEMORY_HBM ? PLACE_DEVICE : PLACE_HOST;
}

static void check_op_placement(struct verifier *v, uint32_t role, uint32_t op)
{
    const struct ir *ir = v->ir;
    enum work_kind kind = ir->op.kind[op];
    enum stream_class class = ir->stream[ir->op.stream[op]].stream_class;
    if (!work_may_run_on(kind, class))
        verify_fail(v, "%s runs on a stream of class %s, but this kind of op belongs on class %s",
                    op_text(v, op), stream_class_name(class),
                    stream_class_name(work_kind_info(kind)->stream));
    enum place from = class == STREAM_HOST || kind == WORK_H2D ? PLACE_HOST : PLACE_DEVICE;
    enum place to = class == STREAM_HOST || kind == WORK_D2H ? PLACE_HOST : PLACE_DEVICE;
    uint32_t reads = ir->op.read_count[op];
    for (uint32_t k = 0; k < ir_operand_count(ir, op); k++) {
        struct view view = ir_read_view(ir, op, k); /* operand k: reads come before writes */
        uint32_t buffer = view.buffer.i;
        enum place wanted = k < reads ? from : to;
        const char *verb = k < reads ? "reads" : "writes";
        if (place_of_memory(ir->buffer.memory[buffer]) != wanted)
            verify_fail(v, "%s %s %s in %s; it needs %s there", op_text(v, op), verb,
                        view_text(v, view), memory_names[ir->buffer.memory[buffer]],
                        place_words[wanted]);
        if (ir->buffer.role[buffer] != role)
            verify_fail(v, "%s of role %s %s %s of role %s", op_text(v, op), ir->role[role].name,
                        verb, view_text(v, view), ir->role[ir->buffer.role[buffer]].name);
    }
}

/* Checks that every rank has exactly one role. */
static void check_roles(struct verifier *v)
{
    const struct ir *ir = v->ir;
    const struct rank_sets *ranks = verifier_rank_sets(v);
    /* a schedule without ops has no roles yet */
    uint32_t count = ir->role_count == 0 ? 0 : mesh_rank_count(&ir->mesh);
    for (uint32_t rank = 0; rank < count; rank++) {
        if (ranks->role[rank] == IR_NONE16) {
            verify_fail(v, "%s is in no role", rank_text(v, rank));
            continue;
        }
        for (uint32_t role = ranks->role[rank] + 1u; role < ir->role_count; role++)
            if (ranks->ranks_of_role[(size_t)role * ranks->words_per_set + rank / 64] >> rank % 64 &
                1)
                verify_fail(v, "%s is in role %s and in role %s", rank_text(v, rank),
                            ir->role[ranks->role[rank]].name, ir->role[role].name);
    }
}

void check_placement(struct verifier *v)
{
    const struct ir *ir = v->ir;
    check_roles(v);
    for (uint32_t role = 0; role < ir->role_count; role++)
        for (uint32_t op = ir->role[role].op_begin; role_has_op(&ir->role[role], op); op++)
            check_op_placement(v, role, op);
    verify_set_what_was_checked_text(v, "%" PRIu32 " ops, %" PRIu32 " ranks", ir->op.count,
                                     mesh_rank_count(&ir->mesh));
}

/* ---- binding ---- */

#define IN(dtype) (1u << (dtype))

/* The requirements of each kind of binding on its buffer. The parameter `states` of AdamW decides which of the allowed
 * dtypes its operands have (rule operand-type). */
static const struct {
    bool has_bundle, per_token, may_be_partial;
    unsigned dtypes;   /* bit mask of the allowed dtypes; 0: any */
    uint64_t elements; /* the required number; 0: it follows from the bundle or the layout */
} bindings[BINDING_KIND_COUNT] = {
    [BINDING_PARAM] = {true, false, false, 0, 0},
    [BINDING_GRAD] = {true, false, true, 0, 0},
    [BINDING_MASTER] = {true, false, false, IN(DTYPE_F32) | IN(DTYPE_BF16), 0},
    [BINDING_MOMENT1] = {true, false, false, IN(DTYPE_F32) | IN(DTYPE_BF16) | IN(DTYPE_U8), 0},
    [BINDING_MOMENT2] = {true, false, false, IN(DTYPE_F32) | IN(DTYPE_BF16) | IN(DTYPE_U8), 0},
    [BINDING_SCALES] = {true, false, false, IN(DTYPE_U8), 0},
    [BINDING_TOKENS] = {false, true, false, IN(DTYPE_I32), 0},
    [BINDING_LABELS] = {false, true, false, IN(DTYPE_I32), 0},
    [BINDING_POSITIONS] = {false, true, false, IN(DTYPE_I32), 0},
    [BINDING_LOSS] = {false, false, true, IN(DTYPE_F32), 1},
};

/* Returns dtypes as a text, for example "bf16 or f32". */
static const char *dtypes_text(struct verifier *v, unsigned dtypes)
{
    const char *text = "";
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        if (dtypes >> dtype & 1u)
            text = arena_printf(&v->arena, "%s%s%s", text, *text ? " or " : "",
                                dtype_name((enum dtype)dtype));
    return text;
}

static const char *name_of_binding(struct verifier *v, const struct binding *b)
{
    const char *kind = binding_names[b->kind];
    if (b->bundle < v->ir->bundle_count)
        return arena_printf(&v->arena, "%s %s", kind, v->ir->bundle[b->bundle].name);
    return kind;
}

/* Returns the number of ranks over which a binding divides or gathers a buffer's content: the members of `group`, or 1
 * if it is IR_NONE16. Returns 0, after a message, if there is no such group. */
static uint32_t binding_rank_count(struct verifier *v, uint32_t buffer, const struct binding *b,
                                   uint16_t group)
{
    if (group == IR_NONE16)
        return 1;
    if (group < v->ir->group_count)
        return group_rank_count(&v->ir->mesh, &v->ir->group[group]);
    verify_fail(v, "%s, bound to %s, names a group that is not there", buffer_text(v, buffer),
                name_of_binding(v, b));
    return 0;
}

/* Returns the number of elements that a rank's buffer needs if it is bound to `parameters` parameters of a bundle. A
 * moment in 8 bits has room for its scales, too. If the bundle is not stored in 16 bits, the elements are bytes. */
static uint64_t elements_needed_by_binding(const struct ir *ir, uint32_t buffer,
                                           const struct binding *b, uint64_t parameters)
{
    if (ir->bundle[b->bundle].storage != FROZEN_STORAGE_16BIT)
        return ir_stored_weight_bytes(ir, b, parameters);
    bool moment = b->kind == BINDING_MOMENT1 || b->kind == BINDING_MOMENT2;
    bool scaled = moment && ir->buffer.dtype[buffer] == DTYPE_U8;
    return scaled ? states_moment_elements(STATES_8BIT, parameters) : parameters;
}

static void check_binding_to_bundle(struct verifier *v, uint32_t buffer, const struct binding *b)
{
    const struct ir *ir = v->ir;
    uint64_t whole = ir->bundle[b->bundle].elements;
    uint64_t have = ir_buffer_elements(ir, (buffer_id){buffer});
    uint32_t members = binding_rank_count(v, buffer, b, b->shard_group);
    if (members == 0)
        return;
    if (whole % members != 0)
        verify_fail(v,
                    "%s is bound to %s, whose %" PRIu64 " elements cannot be cut into %" PRIu32
                    " equal parts",
                    buffer_text(v, buffer), name_of_binding(v, b), whole, members);
    else if (have != elements_needed_by_binding(ir, buffer, b, whole / members))
        verify_fail(
            v, "%s has %" PRIu64 " elements and is bound to %s, of which a rank holds %" PRIu64,
            buffer_text(v, buffer), have, name_of_binding(v, b),
            elements_needed_by_binding(ir, buffer, b, whole / members));
}

static void check_tokens(struct verifier *v, uint32_t buffer, const struct binding *b)
{
    const struct ir *ir = v->ir;
    uint64_t ranks = (uint64_t)ir->layout.cp * ir->layout.hp;
    uint64_t have = ir_buffer_elements(ir, (buffer_id){buffer});
    uint32_t members = binding_rank_count(v, buffer, b, b->gathered_group);
    if (members == 0 || ranks == 0 || ir->layout.sequence_tokens <= 0)
        return;
    uint64_t own = (uint64_t)ir->layout.sequence_tokens / ranks;
    if (have % (own * members) != 0)
        verify_fail(v,
                    "%s has %" PRIu64
                    " elements and is bound to %s: it needs a multiple of %" PRIu64
                    ", the tokens of one sequence that it holds",
                    buffer_text(v, buffer), have, name_of_binding(v, b), own * members);
}

static void check_binding(struct verifier *v, uint32_t buffer, const struct binding *b)
{
    const struct ir *ir = v->ir;
    const char *what = NULL;
    enum dtype dtype = ir->buffer.dtype[buffer];
    if (b->kind == BINDING_NONE || b->kind >= BINDING_KIND_COUNT)
        what = "means nothing";
    else if (bindings[b->kind].has_bundle != (b->bundle < ir->bundle_count))
        what = bindings[b->kind].has_bundle ? "needs a bundle" : "has a bundle and needs none";
    else if (!bindings[b->kind].has_bundle && b->shard_group != IR_NONE16)
        what = "is cut flat, and only bundles are";
    else if (!bindings[b->kind].per_token && b->gathered_group != IR_NONE16)
        what = "is gathered, and only tokens are";
    else if (b->partial_axes != 0 && !bindings[b->kind].may_be_partial)
        what = "is a partial sum, and only gradients and the loss can be";
    else if (b->partial_axes >> ir->mesh.axis_count != 0)
        what = "is partial over an axis that is not in the mesh";
    else if (bindings[b->kind].dtypes != 0 && (bindings[b->kind].dtypes & IN(dtype)) == 0)
        what = arena_printf(&v->arena, "is in %s and must be in %s", dtype_name(dtype),
                            dtypes_text(v, bindings[b->kind].dtypes));
    else if (bindings[b->kind].elements != 0 &&
             ir_buffer_elements(ir, (buffer_id){buffer}) != bindings[b->kind].elements)
        what =
            arena_printf(&v->arena, "must have %" PRIu64 " elements", bindings[b->kind].elements);
    if (what)
        verify_fail(v, "%s, bound to %s, %s", buffer_text(v, buffer),
                    b->kind < BINDING_KIND_COUNT ? name_of_binding(v, b) : "nothing", what);
    else if (bindings[b->kind].has_bundle)
        check_binding_to_bundle(v, buffer, b);
    else if (bindings[b->kind].per_token)
        check_tokens(v, buffer, b);
}

/* Returns the number of elements of a rank's slice of a tensor; 0 if a fault was reported. */
static uint64_t elements_of_rank_slice(struct verifier *v, const struct tensor *t)
{
    const struct ir *ir = v->ir;
    uint64_t elements = 1;
    for (int d = 0; d < 2; d++) {
        int64_t rows = t->padded_rows > t->rows ? t->padded_rows : t->rows;
        int64_t size = d == 0 ? rows : t->cols, parts = 1;
        for (uint32_t axis = 0; axis < 32; axis++) {
            if (!(t->axes_that_cut_rows_and_columns[d] >> axis & 1))
                continue;
            if (axis >= ir->mesh.axis_count) {
                verify_fail(v, "tensor %s is cut over an axis that is not in the mesh", t->name);
                return 0;
            }
            parts *= ir->mesh.axis[axis].size;
        }
        if (d == 1 && size % parts != 0) {
            verify_fail(v,
                        "the %" PRId64 " columns of tensor %s cannot be cut into %" PRId64
                        " equal parts",
                        size, t->name, parts);
            return 0;
        }
        elements *= (uint64_t)((size + parts - 1) / parts);
    }
    return elements;
}

static void check_bundle(struct verifier *v, const struct bundle *bundle)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < bundle->tensor_count; i++) {
        uint64_t elements = elements_of_rank_slice(v, &v->ir->tensor[bundle->tensor_begin + i]);
        if (elements == 0)
            return;
        sum += elements;
    }
    if (sum > bundle->elements)
        verify_fail(v, "bundle %s has %" PRIu64 " elements, and its tensors take %" PRIu64,
                    bundle->name, bundle->elements, sum);
}

void check_bindings(struct verifier *v)
{
    const struct ir *ir = v->ir;
    uint32_t bound = 0;
    for (uint32_t i = 0; i < ir->bundle_count; i++)
        check_bundle(v, &ir->bundle[i]);
    for (uint32_t b = 0; b < ir->buffer.count; b++)
        if (ir->buffer.binding[b] != IR_NONE16) {
            bound++;
            check_binding(v, b, &ir->binding[ir->buffer.binding[b]]);
        }
    verify_set_what_was_checked_text(v, "%" PRIu32 " bound buffers, %" PRIu32 " bundles", bound,
                                     ir->bundle_count);
}

#include "schedule/attention/ring.h"
#include "schedule/choices/profile.h"

/* Tiles of a block from a rank before this one (in the order of the tokens' first slices) and of
 * one from behind it, in halves of c: queries from, queries, keys. Queries 0: nothing is visible. */
static const struct rule {
    int8_t begin, rows, keys;
    uint8_t mask;
    int8_t offset;
} rules[RING_LAYOUT_COUNT][2] = {
    /* a rank has slices r and 2 cp - 1 - r: before it, the first of the two is visible to both of
       ours; behind it, both to our second */
    [RING_ZIGZAG] = {{0, 2, 1, MASK_FULL, 0}, {1, 1, 2, MASK_FULL, 0}},
    [RING_CONTIGUOUS] = {{0, 2, 2, MASK_FULL, 0}, {0, 0, 0, MASK_FULL, 0}},
    /* token i cp + r is the i-th of rank r */
    [RING_STRIPED] = {{0, 2, 2, MASK_CAUSAL, 0}, {0, 2, 2, MASK_CAUSAL, -1}},
};

uint32_t ring_tiles(struct emit *e, int64_t rows, uint32_t outer, uint32_t inner,
                    struct ring_tile tile[2])
{
    uint32_t away = outer > 0 ? outer : inner, count = 0;
    uint16_t group = outer > 0 ? e->outer.group : e->inner.group;
    if (away == 0) {
        tile[0] = (struct ring_tile){0, rows, rows, MASK_CAUSAL, 0, IR_NONE16};
        return 1;
    }
    for (int behind = 0; behind < 2; behind++) {
        const struct rule *rule = &rules[e->choices->ring_layout][behind];
        struct guard guard = {group, (uint8_t)(behind ? GUARD_LT : GUARD_GE), away};
        if (rule->rows > 0)
            tile[count++] = (struct ring_tile){rule->begin * rows / 2, rule->rows * rows / 2,
                                               rule->keys * rows / 2,  rule->mask,
                                               rule->offset,           ir_add_guard(e->ir, guard)};
    }
    return count;
}

static enum dtype dtype_of(const struct emit *e, struct view x)
{
    return (enum dtype)e->ir->buffer.dtype[x.buffer.i];
}

/* x in a message of its own, where the implementation copies it there. */
static struct view packed(struct emit *e, struct view x)
{
    if (!e->choices->profile->ring_packs)
        return x;
    struct work work = {.kind = WORK_PACK, .pack = {(int64_t)x.count, 1, {1, 0, 0}}};
    struct view y = view_all(
        e, emit_buffer(e, "message", CATEGORY_COMMUNICATION, dtype_of(e, x), (int64_t)x.count, 0));
    emit_op(e, e->compute, &work, &x, 1, &y, 1);
    return y;
}

static int64_t bytes_of(const struct emit *e, struct view x)
{
    return (int64_t)(x.count * dtype_bytes(dtype_of(e, x)));
}

struct view ring_pass(struct emit *e, const struct ring *ring, uint8_t stream, struct view x,
                      const char *stem)
{
    struct view message = packed(e, x);
    bool together = e->choices->rotation != ROTATE_P2P;
    struct work work = {.kind = WORK_SHIFT, .p2p = {ring->group, 1, bytes_of(e, x), 0, together}};
    struct view y =
        view_all(e, emit_buffer(e, stem, CATEGORY_KV, dtype_of(e, x), (int64_t)x.count, 0));
    emit_op_after(e, e->last_compute, stream, &work, &message, 1, &y, 1);
    return y;
}

/* The blocks of all ranks, that of the rank k places before this one at place k. */
static struct view gather(struct emit *e, struct view kv, struct view message)
{
    struct work work = {.kind = WORK_ALL_GATHER,
                        .collective = {e->outer.group, bytes_of(e, kv), ALGORITHM_AUTO, 0, 1}};
    struct view all = view_all(e, emit_buffer(e, "kv_all", CATEGORY_KV, dtype_of(e, kv),
                                              e->outer.size, (int64_t)kv.count));
    op_id op = emit_op_after(e, e->last_compute, e->outer.kv, &work, &message, 1, &all, 1);
    if (e->choices->profile->gathers_first || e->choices->compile)
        e->sync = op;
    return all;
}

void ring_step(struct emit *e, uint32_t outer, uint32_t inner, struct ring_blocks *b)
{
    e->tags.step = (uint16_t)(outer * e->inner.size + inner);
    b->kv = inner == 0 ? b->first : b->next;
    if (e->choices->rotation == ROTATE_ALL_GATHER) {
        /* packed in every step, as PyTorch does, though only the first is sent */
        int64_t next = outer + 1, count = (int64_t)b->kv.count;
        if (next < e->outer.size) {
            struct view message = packed(e, b->kv);
            if (outer == 0)
                b->gathered = gather(e, b->kv, message);
            b->first = view_part(b->gathered, next * count, count);
        }
    } else {
        if (inner == 0 && outer + 1 < e->outer.size)
            b->first = ring_pass(e, &e->outer, e->outer.kv, b->kv, "kv");
        if (inner + 1 < e->inner.size)
            b->next = ring_pass(e, &e->inner, e->inner.kv, b->kv, "kv");
    }
}

struct view ring_cast(struct emit *e, struct view x, enum dtype dtype, const char *stem)
{
    if (dtype_of(e, x) == dtype)
        return x;
    struct work work = {.kind = WORK_CAST, .elements = {(int64_t)x.count}};
    struct view y =
        view_all(e, emit_buffer(e, stem, CATEGORY_ACTIVATION, dtype, (int64_t)x.count, 0));
    emit_op(e, e->compute, &work, &x, 1, &y, 1);
    return y;
}

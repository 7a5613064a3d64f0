/* Emits the copies of chunks to the host and back, and limits how many are under way.
 *
 * Either every rank copies its own data, or one rank copies for all (FPDT, section 4: one GPU fetches and scatters over
 * NVLink). In the second form the parts of chunk i of all P ranks are gathered on rank i mod P. That rank copies them
 * to its host memory; when a tile reads them, it copies them back and scatters them. Copies are then P times as large,
 * and each takes only one rank's PCIe lanes; since ranks take turns, each still holds the same number of bytes on its
 * host. P consecutive chunks share one buffer of the schedule, in which each rank holds the chunk that it stores. */
#include "schedule/attention/fpdt.h"

#include "schedule/choices/profile.h"
#include "schedule/config/derived.h"
#include "schedule/emit/op_list.h"

/* Emits one op of a chunk's way to the host or back: a copy, a fill, a gather or a scatter. Only ranks that pass the
 * guard run it. */
static void emit_host_traffic_op(const struct fpdt *f, uint16_t guard, op_id after, uint8_t stream,
                                 struct work work, struct view from, struct view to)
{
    struct emit *e = f->e;
    uint8_t region = e->op_tags.region;
    uint16_t outer = e->guard;
    e->op_tags.region = REGION_OFFLOAD;
    e->guard = guard;
    emit_op_after(e, after, stream, &work, &from, from.count > 0, &to, 1);
    e->guard = outer;
    e->op_tags.region = region;
}

static void emit_guarded_copy(const struct fpdt *f, enum work_kind kind, uint16_t guard,
                              op_id after, uint8_t stream, struct view from, struct view to)
{
    struct work work = {.kind = (uint8_t)kind, .copy = {bytes_of_view(f->e, from), 0}};
    emit_host_traffic_op(f, guard, after, stream, work, from, to);
}

struct view fpdt_copy_to_host(const struct fpdt *f, uint8_t stream, struct view x, const char *stem)
{
    struct view y = emit_tensor_like(f->e, x, (int64_t)x.count, stem, MEMORY_PINNED);
    emit_guarded_copy(f, WORK_D2H, IR_NONE16, (op_id){IR_NONE}, stream, x, y);
    return y;
}

struct view fpdt_copy_from_host(const struct fpdt *f, uint8_t stream, op_id after, struct view host,
                                const char *stem)
{
    struct view y = emit_tensor_like(f->e, host, (int64_t)host.count, stem, MEMORY_HBM);
    emit_guarded_copy(f, WORK_H2D, IR_NONE16, after, stream, host, y);
    return y;
}

/* ---- storing and fetching, by every rank or by one rank for its head group ---- */

static bool one_rank_stores_for_all(const struct fpdt *f)
{
    return fpdt_one_rank_fetches_for_all(f->e->choices);
}

/* Returns the number of ranks whose data are in one buffer on the host. */
static int64_t ranks_per_host_buffer(const struct fpdt *f)
{
    return one_rank_stores_for_all(f) ? (int64_t)f->e->choices->hp : 1;
}

/* storing_head_rank_of_chunk() returns the rank of the head group that stores chunk i; guard_of_storing_rank() returns
 * a guard that only this rank passes, or IR_NONE16 if every rank stores its own part. */
static int64_t storing_head_rank_of_chunk(const struct fpdt *f, int64_t i)
{
    return i % ranks_per_host_buffer(f);
}

static uint16_t guard_of_storing_rank(const struct fpdt *f, int64_t i)
{
    struct guard guard = {f->e->group.hp, GUARD_EQ, (uint32_t)storing_head_rank_of_chunk(f, i)};
    return one_rank_stores_for_all(f) ? ir_add_guard(f->e->ir, guard) : IR_NONE16;
}

/* A tensor of a chunk that a rank stores. */
struct stored_chunk_tensor {
    enum category category;
    enum dtype dtype;
    int64_t rows, cols; /* cols = 0: the tensor has one dimension */
};

/* Returns *host, chunk i's view on the host, and sets it if it is empty. If one rank stores for all, hp consecutive
 * chunks have one buffer, with room for all ranks' rows of chunk 0, which is the largest; otherwise each chunk gets a
 * buffer of its own size. */
static struct view host_view_of_chunk(const struct fpdt *f, int64_t i,
                                      struct stored_chunk_tensor part, const char *stem,
                                      struct view *host, size_t stride)
{
    struct emit *e = f->e;
    int64_t ranks = ranks_per_host_buffer(f), first = i - storing_head_rank_of_chunk(f, i);
    uint64_t count = (uint64_t)(part.rows * (part.cols > 0 ? part.cols : 1) * ranks);
    if (host->count > 0)
        return *host;
    for (int64_t j = first; j < first + ranks && j < f->chunk_count; j++) {
        const char *other = (const char *)host + (j - i) * (int64_t)stride;
        const struct view *view = (const struct view *)(const void *)other;
        if (view->count > 0)
            return *host = (struct view){view->buffer, 0, count};
    }
    int64_t rows = one_rank_stores_for_all(f)
                       ? part.rows * fpdt_chunk_tokens(f, 0) / fpdt_chunk_tokens(f, i) * ranks
                       : part.rows;
    buffer_id buffer = emit_buffer(e, stem, part.category, part.dtype, rows, part.cols);
    e->ir->buffer.memory[buffer.i] = MEMORY_PINNED;
    return *host = (struct view){buffer, 0, count};
}

void fpdt_store_tensor(const struct fpdt *f, uint8_t stream, int64_t i, struct view x,
                       const char *stem, struct view *host, size_t stride)
{
    struct emit *e = f->e;
    struct stored_chunk_tensor part = {(enum category)e->ir->buffer.category[x.buffer.i],
                                       dtype_of_view(e, x), (int64_t)x.count, 0};
    if (!f->offloads) {
        *host = x;
        return;
    }
    struct view to = host_view_of_chunk(f, i, part, stem, host, stride);
    if (one_rank_stores_for_all(f)) {
        struct work work = {.kind = WORK_ALL_GATHER,
                            .collective = {e->group.hp, bytes_of_view(f->e, x)}};
        struct view all = emit_tensor_like(e, x, (int64_t)to.count, stem, MEMORY_HBM);
        emit_host_traffic_op(f, IR_NONE16, (op_id){IR_NONE}, e->stream.chunk_collective_stream,
                             work, x, all);
        x = all;
    }
    emit_guarded_copy(f, WORK_D2H, guard_of_storing_rank(f, i), (op_id){IR_NONE}, stream, x, to);
}

void fpdt_store_zeros(const struct fpdt *f, int64_t i, int64_t cols, const char *stem,
                      struct view *host, size_t stride)
{
    struct stored_chunk_tensor part = {CATEGORY_ACTIVATION, DTYPE_F32, fpdt_chunk_tokens(f, i),
                                       cols};
    struct view to = host_view_of_chunk(f, i, part, stem, host, stride);
    struct work work = {.kind = WORK_FILL, .elements = {(int64_t)to.count}};
    emit_host_traffic_op(f, guard_of_storing_rank(f, i), (op_id){IR_NONE}, f->e->stream.host, work,
                         view_none(), to);
}

struct view fpdt_fetch_tensor(const struct fpdt *f, uint8_t stream, op_id after, int64_t i,
                              struct view host, const char *stem)
{
    struct emit *e = f->e;
    if (!f->offloads)
        return host;
    if (!one_rank_stores_for_all(f))
        return fpdt_copy_from_host(f, stream, after, host, stem);
    struct view all = emit_tensor_like(e, host, (int64_t)host.count, stem, MEMORY_HBM);
    struct view own =
        emit_tensor_like(e, host, (int64_t)host.count / ranks_per_host_buffer(f), stem, MEMORY_HBM);
    struct work work = {
        .kind = WORK_SCATTER,
        .broadcast = {e->group.hp, bytes_of_view(f->e, all), storing_head_rank_of_chunk(f, i)}};
    emit_guarded_copy(f, WORK_H2D, guard_of_storing_rank(f, i), after, stream, host, all);
    emit_host_traffic_op(f, IR_NONE16, (op_id){IR_NONE}, e->stream.chunk_collective_stream, work,
                         all, own);
    return own;
}

struct fpdt_keys_values fpdt_fetch_keys_values(const struct fpdt *f, op_id after, int64_t q,
                                               int64_t k)
{
    struct fpdt_keys_values host = f->chunk[k].keys_values;
    if (f->stores_latents)
        return (struct fpdt_keys_values){
            gather_rows_over_hp(f->e,
                                fpdt_fetch_tensor(f, f->load_stream, after, k, host.k, "latents"),
                                "latents_all"),
            gather_rows_over_hp(f->e,
                                fpdt_fetch_tensor(f, f->load_stream, after, k, host.v, "shared"),
                                "shared_all"),
            true};
    if (!one_rank_stores_for_all(f))
        host = fpdt_visible_part_of_keys(f, host, q, k);
    return (struct fpdt_keys_values){fpdt_fetch_tensor(f, f->load_stream, after, k, host.k, "k"),
                                     fpdt_fetch_tensor(f, f->load_stream, after, k, host.v, "v"),
                                     false};
}

/* Makes each gather of data for the host wait until what was gathered two gathers earlier is on the host, so that two
 * gather buffers are enough. */
static void limit_gather_buffers_to_two(struct emit *e, const struct op_list *list)
{
    const struct ir *ir = e->ir;
    op_id copied[2] = {{IR_NONE}, {IR_NONE}}; /* the last two copies to the host of gathered data */
    uint32_t gathered = IR_NONE;              /* the buffer that was gathered last */
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t op = list->op[i];
        if (ir->op.kind[op] == WORK_ALL_GATHER && ir->op.region[op] == REGION_OFFLOAD) {
            if (copied[0].i != IR_NONE)
                emit_add_dependency(e, (op_id){op}, copied[0]);
            gathered = ir_touched_buffer(ir, op, 1);
        } else if (ir->op.kind[op] == WORK_D2H && ir_touched_buffer(ir, op, 0) == gathered) {
            copied[0] = copied[1];
            copied[1].i = op;
        }
    }
}

/* True if the op is a copy to the host in the forward of a chunk, or in the recomputation of that forward. */
static bool is_chunk_copy_to_host(const struct ir *ir, uint32_t op)
{
    return ir->op.kind[op] == WORK_D2H && ir->op.region[op] == REGION_OFFLOAD &&
           ir->op.chunk[op] != IR_NONE16 && ir->op.phase[op] != PHASE_BACKWARD;
}

/* Makes the first compute op after a chunk's first copy to the host wait for all copies of the chunk two before it. The
 * fetches of keys and values usually imply this wait already; they do not if a sequence has only two chunks. */
static void limit_chunks_being_stored(struct emit *e, const struct op_list *list)
{
    const struct ir *ir = e->ir;
    /* the last copy to the host of each of the last two chunks */
    op_id stored[2] = {{IR_NONE}, {IR_NONE}}, until = {IR_NONE};
    uint32_t chunk = IR_NONE;
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t op = list->op[i];
        /* consecutive chunks have different numbers */
        if (is_chunk_copy_to_host(ir, op) && ir->op.chunk[op] != chunk) {
            chunk = ir->op.chunk[op];
            until = stored[0];
            stored[0] = stored[1];
        }
        if (is_chunk_copy_to_host(ir, op))
            stored[1].i = op;
        if (until.i == IR_NONE || ir->op.stream[op] != e->stream.compute)
            continue;
        emit_add_dependency(e, (op_id){op}, until);
        until.i = IR_NONE;
    }
}

void pass_add_waits_for_chunk_stores(struct emit *e, struct op_list *list)
{
    if (fpdt_one_rank_fetches_for_all(e->choices))
        limit_gather_buffers_to_two(e, list);
    if (fpdt_offloads(e->choices) && !e->choices->profile->host_waits_after_each_chunk_tile)
        limit_chunks_being_stored(e, list);
}

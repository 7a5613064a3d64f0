#include "sim/plan/plan.h"
#include "sim/plan/plan_channels.h"

#include "base/arena.h"
#include "sim/even.h"
#include "sim/plan/replicas.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void sim_plan_release(struct plan *plan)
{
    free(plan->rank);
    free(plan->role_of_rank);
    free(plan->passes);
    platform_release(&plan->platform);
    flow_table_release(&plan->flows);
    for (uint32_t l = 0; l < plan->line_count; l++) {
        free(plan->line[l].op_count);
        free(plan->line[l].op_begin);
    }
    free(plan->line);
    free(plan->line_op);
    free(plan->variant);
    free(plan->channel);
    free(plan->participant);
    free(plan->transfer);
    free(plan->endpoint);
    free(plan->receive);
    free(plan->op_class);
    free(plan->op_line);
    free(plan->op_variant);
    free(plan->op_ordinal);
    free(plan->duration_s);
    free(plan->host_s);
    *plan = (struct plan){0};
}

/* Counters of the scheduler are 16 bits wide, and their upper half has a meaning of its own. */
enum { WAITS_MAX = 32000 };

/* ---- ranks ---- */

static void place_ranks(struct plan *plan, const uint8_t *even)
{
    const struct ir *ir = plan->ir;
    plan->rank = heap_alloc(plan->rank_count, sizeof *plan->rank);
    plan->role_of_rank = heap_alloc(plan->rank_count, sizeof *plan->role_of_rank);
    plan->passes = heap_alloc((size_t)plan->rank_count * ir->guard_count + 1, 1);
    for (uint32_t r = 0; r < plan->rank_count; r++) {
        uint32_t rank = replicas_rank(&ir->mesh, &plan->mesh, r);
        plan->rank[r] = rank;
        plan->role_of_rank[r] = IR_NONE;
        for (uint32_t k = 0; k < ir->role_count; k++)
            if (role_has(&ir->mesh, &ir->role[k], rank)) {
                plan->role_of_rank[r] = k;
                break;
            }
        for (uint32_t g = 0; g < ir->guard_count; g++)
            plan->passes[(size_t)r * ir->guard_count + g] = even_passes(ir, even, g, rank);
    }
}

/* ---- lines ---- */

/* While ops are read, the variants of a line stand in a list of its own. */
struct variant_list {
    uint32_t *shape;
    uint32_t count, capacity;
};

struct reader {
    struct plan *plan;
    struct variant_list *variants; /* [line_capacity] */
    struct variant_list p2p;       /* sizes are common to all sends and receives */
    struct last_of_shape *last;
    bool shared_processors; /* the role has several compute streams */
};

/* What the last op of a shape was. The next one is the same on its stream, from or to such memory. */
struct last_of_shape {
    uint16_t line, variant; /* IR_NONE16: there was none that has a line */
    uint8_t op_class, stream;
    bool pageable, known; /* known: in this role */
};

static uint16_t find_line(struct reader *reader, const struct line *key)
{
    struct plan *plan = reader->plan;
    for (uint32_t l = 0; l < plan->line_count; l++) {
        const struct line *line = &plan->line[l];
        if (line->kind == key->kind && line->work == key->work && line->pageable == key->pageable &&
            line->group == key->group && line->by == key->by && line->number == key->number)
            return (uint16_t)l;
    }
    assert(plan->line_count < IR_NONE16);
    if (plan->line_count == plan->line_capacity) {
        plan->line_capacity =
            (uint32_t)heap_next_capacity(plan->line_capacity, plan->line_count + 1);
        plan->line = heap_realloc(plan->line, plan->line_capacity, sizeof *plan->line);
        reader->variants =
            heap_realloc(reader->variants, plan->line_capacity, sizeof *reader->variants);
    }
    struct line *line = &plan->line[plan->line_count];
    *line = *key;
    line->op_count = heap_zalloc(plan->ir->role_count, sizeof *line->op_count);
    line->op_begin = heap_zalloc(plan->ir->role_count, sizeof *line->op_begin);
    reader->variants[plan->line_count] = (struct variant_list){0};
    return (uint16_t)plan->line_count++;
}

/* A copy from or to pageable memory? */
static bool is_pageable(const struct ir *ir, uint32_t op)
{
    uint8_t kind = ir->op.kind[op];
    if (kind != WORK_H2D && kind != WORK_D2H)
        return false;
    uint32_t host = ir_touched(ir, op, kind == WORK_H2D ? 0 : ir->op.reads[op]);
    return ir->buffer.memory[host] == MEMORY_PAGEABLE;
}

/* Distances round a ring are equal modulo its size. */
static int64_t shift_distance(const struct plan *plan, const struct work *work)
{
    const struct ir *ir = plan->ir;
    int64_t size = group_size(&ir->mesh, &ir->group[work->p2p.group]);
    return (work->p2p.by % size + size) % size;
}

bool plan_computes(const struct work *work)
{
    return work->kind == WORK_MATMUL || work->kind == WORK_ATTENTION ||
           work->kind == WORK_ATTENTION_BACKWARD;
}

/* Kernels that multiprocessors limit take longer beside messages, where they have any of them. */
static bool is_slowed(const struct plan *plan, const struct work *work)
{
    const struct device *device = &plan->cluster->device;
    return plan_computes(work) && device->sm_count > 0 &&
           (device->message_sms > 0 || device->collective_sms > 0);
}

static enum op_class classify(const struct reader *reader, uint32_t op, struct line *key)
{
    const struct plan *plan = reader->plan;
    const struct ir *ir = plan->ir;
    const struct work *work = ir_work(ir, op);
    *key = (struct line){.group = IR_NONE16};
    if (work_group(work) >= 0)
        key->group = (uint16_t)work_group(work);
    switch (work->kind) {
    case WORK_HOST_SYNC:
        return OP_NOTHING;
    case WORK_SHIFT:
        if (work->p2p.together)
            return OP_EVENT; /* LINE_COLLECTIVE */
        key->kind = LINE_SHIFT;
        key->by = shift_distance(plan, work);
        return OP_EVENT;
    case WORK_SEND:
    case WORK_RECV:
        key->kind = LINE_P2P;
        key->work = work->kind;
        key->by = work->p2p.by;
        key->number = work->p2p.channel;
        return OP_EVENT;
    case WORK_H2D:
    case WORK_D2H:
        key->kind = LINE_COPY;
        key->work = work->kind;
        key->pageable = is_pageable(ir, op);
        return OP_EVENT;
    case WORK_BARRIER:
        key->work = WORK_BARRIER; /* apart from the group's communicator */
        return OP_EVENT;
    default:
        break;
    }
    if (key->group != IR_NONE16)
        return OP_EVENT; /* LINE_COLLECTIVE */
    if (ir->stream[ir->op.stream[op]].stream_class == STREAM_HOST) {
        uint32_t shape = ir->op.shape[op];
        key->kind = LINE_HOST_WORK;
        return plan->costs->host_bytes && plan->costs->host_bytes[shape] > 0 &&
                       plan->host_s[shape] > 0
                   ? OP_EVENT
                   : OP_HOST;
    }
    key->kind = LINE_KERNEL;
    if (plan->duration_s[ir->op.shape[op]] <= 0)
        return OP_FIXED;
    if (reader->shared_processors)
        return OP_EVENT;
    return is_slowed(plan, work) ? OP_SLOWED : OP_FIXED;
}

double plan_sm_share(const struct plan *plan, const struct line *line)
{
    const struct device *device = &plan->cluster->device;
    const struct work *work = &plan->ir->shape[plan->variant[line->variant_begin]];
    double sms = 0;
    if (line->kind == LINE_SHIFT) /* the kernel of a shift both sends and receives */
        sms = device->message_sms / 2;
    else if (line->kind == LINE_P2P || work->kind == WORK_SHIFT)
        sms = device->message_sms;
    else if (line->kind == LINE_COLLECTIVE && line->work != WORK_BARRIER)
        sms = device->collective_sms;
    return device->sm_count > 0 ? sms / (double)device->sm_count : 0;
}

static int64_t shape_bytes(const struct plan *plan, uint32_t shape)
{
    return work_payload_bytes(&plan->ir->shape[shape]);
}

/* Only the root of a broadcast reads, and only the root of a reduction writes; both kinds of op are sides of one
 * collective. */
static bool are_sides_of_one(const struct plan *plan, uint32_t a, uint32_t b)
{
    const struct work *x = &plan->ir->shape[a], *y = &plan->ir->shape[b];
    return (x->kind == WORK_BROADCAST || x->kind == WORK_REDUCE) && x->kind == y->kind &&
           x->in == y->in && x->out == y->out && memcmp(x->p, y->p, sizeof x->p) == 0;
}

static uint16_t find_variant(struct reader *reader, uint16_t line, uint32_t shape)
{
    struct plan *plan = reader->plan;
    bool p2p = plan->line[line].kind == LINE_P2P;
    struct variant_list *list = p2p ? &reader->p2p : &reader->variants[line];
    for (uint32_t v = 0; v < list->count; v++)
        if (list->shape[v] == shape ||
            (p2p && shape_bytes(plan, list->shape[v]) == shape_bytes(plan, shape)) ||
            are_sides_of_one(plan, list->shape[v], shape))
            return (uint16_t)v;
    assert(list->count < IR_NONE16);
    if (list->count == list->capacity) {
        list->capacity = (uint32_t)heap_next_capacity(list->capacity, list->count + 1);
        list->shape = heap_realloc(list->shape, list->capacity, sizeof *list->shape);
    }
    list->shape[list->count] = shape;
    return (uint16_t)list->count++;
}

static void read_op(struct reader *reader, uint32_t role, uint32_t op)
{
    struct plan *plan = reader->plan;
    uint32_t shape = plan->ir->op.shape[op];
    struct last_of_shape *last = &reader->last[shape];
    uint8_t stream = plan->ir->op.stream[op];
    bool pageable = is_pageable(plan->ir, op);
    if (!last->known || last->stream != stream || last->pageable != pageable) {
        struct line key;
        last->op_class = (uint8_t)classify(reader, op, &key);
        last->stream = stream;
        last->pageable = pageable;
        last->known = true;
        uint16_t line = last->op_class == OP_EVENT ? find_line(reader, &key) : IR_NONE16;
        if (line != IR_NONE16 && last->line != line)
            last->variant = find_variant(reader, line, shape);
        last->line = line;
    }
    plan->op_class[op] = last->op_class;
    plan->op_line[op] = last->line;
    if (last->op_class != OP_EVENT)
        return;
    plan->op_variant[op] = last->variant;
    plan->op_ordinal[op] = plan->line[last->line].op_count[role]++;
}

static bool shares_processors(const struct ir *ir, const struct role *role)
{
    int first = -1;
    for (uint32_t i = 0; i < role->op_count; i++) {
        uint8_t stream = ir->op.stream[role->op_begin + i];
        if (stream == first || ir->stream[stream].stream_class != STREAM_COMPUTE ||
            work_kind_info(ir->op.kind[role->op_begin + i])->stream == STREAM_SYNC)
            continue;
        if (first >= 0)
            return true;
        first = stream;
    }
    return false;
}

/* Lays the variants of all lines behind each other. */
static void gather_variants(struct reader *reader)
{
    struct plan *plan = reader->plan;
    uint32_t total = reader->p2p.count;
    for (uint32_t l = 0; l < plan->line_count; l++)
        total += reader->variants[l].count;
    plan->variant = heap_alloc(total + 1, sizeof *plan->variant);
    for (uint32_t v = 0; v < reader->p2p.count; v++)
        plan->variant[plan->variant_count++] = reader->p2p.shape[v];
    for (uint32_t l = 0; l < plan->line_count; l++) {
        struct line *line = &plan->line[l];
        const struct variant_list *list =
            line->kind == LINE_P2P ? &reader->p2p : &reader->variants[l];
        line->variants = list->count;
        line->variant_begin = line->kind == LINE_P2P ? 0 : plan->variant_count;
        for (uint32_t v = 0; line->kind != LINE_P2P && v < list->count; v++)
            plan->variant[plan->variant_count++] = list->shape[v];
    }
}

static void gather_line_ops(struct plan *plan)
{
    const struct ir *ir = plan->ir;
    uint32_t total = 0;
    for (uint32_t l = 0; l < plan->line_count; l++)
        for (uint32_t r = 0; r < ir->role_count; r++) {
            plan->line[l].op_begin[r] = total;
            total += plan->line[l].op_count[r];
        }
    plan->line_op = heap_alloc(total + 1, sizeof *plan->line_op);
    for (uint32_t r = 0; r < ir->role_count; r++)
        for (uint32_t i = 0; i < ir->role[r].op_count; i++) {
            uint32_t op = ir->role[r].op_begin + i;
            if (plan->op_line[op] != IR_NONE16)
                plan->line_op[plan->line[plan->op_line[op]].op_begin[r] + plan->op_ordinal[op]] =
                    op;
        }
}

static void read_ops(struct plan *plan)
{
    const struct ir *ir = plan->ir;
    plan->op_class = heap_alloc(ir->op.count + 1, sizeof *plan->op_class);
    plan->op_line = heap_alloc(ir->op.count + 1, sizeof *plan->op_line);
    plan->op_variant = heap_alloc(ir->op.count + 1, sizeof *plan->op_variant);
    plan->op_ordinal = heap_alloc(ir->op.count + 1, sizeof *plan->op_ordinal);
    struct reader reader = {.plan = plan};
    reader.last = heap_alloc(ir->shape_count + 1, sizeof *reader.last);
    for (uint32_t i = 0; i < ir->shape_count; i++)
        reader.last[i].line = IR_NONE16;
    for (uint32_t r = 0; r < ir->role_count; r++) {
        reader.shared_processors =
            shares_processors(ir, &ir->role[r]) || plan->cluster->fabric.kind == FABRIC_LOOPBACK;
        for (uint32_t i = 0; i < ir->shape_count; i++)
            reader.last[i].known = false;
        for (uint32_t i = 0; i < ir->role[r].op_count; i++)
            read_op(&reader, r, ir->role[r].op_begin + i);
    }
    gather_variants(&reader);
    gather_line_ops(plan);
    for (uint32_t l = 0; l < plan->line_count; l++)
        free(reader.variants[l].shape);
    free(reader.variants);
    free(reader.p2p.shape);
    free(reader.last);
}

static void read_costs(struct plan *plan)
{
    uint32_t count = plan->ir->shape_count;
    plan->duration_s = heap_zalloc(count + 1, sizeof *plan->duration_s);
    plan->host_s = heap_zalloc(count + 1, sizeof *plan->host_s);
    const struct sim_costs *costs = plan->costs;
    const double *host = costs->host_work_s ? costs->host_work_s : costs->work_s;
    for (uint32_t s = 0; s < count; s++) {
        assert(costs->work_s[s] >= 0 && host[s] >= 0);
        plan->duration_s[s] = costs->work_s[s];
        plan->host_s[s] = host[s];
    }
}

/* The scheduler relies on waits that point back; the verifier explains them better. */
static enum status check_waits(const struct plan *plan, const char *name, struct diag *diag)
{
    const struct ir *ir = plan->ir;
    for (uint32_t r = 0; r < ir->role_count; r++)
        for (uint32_t i = 0; i < ir->role[r].op_count; i++) {
            uint32_t op = ir->role[r].op_begin + i, waits = ir->op.wait_count[op];
            if (waits > WAITS_MAX)
                return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                                  "op %u waits for %u ops; the most is %d", op, waits, WAITS_MAX);
            for (uint32_t w = 0; w < waits; w++) {
                uint32_t other = ir->wait[ir->op.wait_begin[op] + w].i;
                if (other >= op || other < ir->role[r].op_begin)
                    return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                                      "op %u waits for op %u, which is not an earlier op of its "
                                      "role",
                                      op, other);
            }
        }
    return STATUS_OK;
}

enum status plan_make(struct plan *plan, const struct ir *ir, const struct cluster *cluster,
                      const struct sim_costs *costs, const uint8_t *even, bool whole,
                      const char *name, struct diag *diag)
{
    uint32_t ranks = mesh_ranks(&ir->mesh);
    *plan = (struct plan){.ir = ir, .cluster = cluster, .costs = costs, .mesh = ir->mesh};
    platform_init(&plan->platform, cluster);
    if (ranks > cluster->gpus)
        return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                          "the mesh has %u ranks, and cluster %s has %lld GPUs", ranks,
                          cluster->name, (long long)cluster->gpus);
    enum status status = check_waits(plan, name, diag);
    if (status != STATUS_OK)
        return status;
    if (!whole)
        plan->mesh = replicas_mesh(ir, cluster);
    plan->rank_count = mesh_ranks(&plan->mesh);
    place_ranks(plan, even);
    read_costs(plan);
    read_ops(plan);
    status = plan_check_groups(plan, name, diag);
    if (status == STATUS_OK)
        status = plan_add_channels(plan, name, diag);
    return status;
}

/* Finds the class of each op, and makes the comm classes of ops that need other ranks, or links. */
#include "sim/traffic/traffic_parts.h"

#include "base/arena.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The comm class and variant of the last op with a given shape. The next op of that shape has the same if its stream
 * and its memory are the same. */
struct last_class_of_shape {
    uint16_t comm_class, variant; /* IR_NONE16: the shape's last op had no comm class */
    uint8_t op_duration_rule, stream;
    bool is_pageable, is_known; /* is_known: this role has had an op of the shape */
};

struct op_class_reader {
    struct traffic *traffic;
    struct last_class_of_shape *last_class_of_shape; /* [shape_count] */
    bool has_several_compute_streams;                /* the role has several compute streams */
};

static uint16_t find_or_add_comm_class(struct traffic *traffic, const struct comm_class *key)
{
    for (uint32_t l = 0; l < traffic->comm_class_count; l++) {
        const struct comm_class *comm = &traffic->comm[l];
        if (comm->kind == key->kind && comm->work_kind == key->work_kind &&
            comm->is_pageable == key->is_pageable && comm->group == key->group &&
            comm->distance == key->distance && comm->channel_number == key->channel_number)
            return (uint16_t)l;
    }
    assert(traffic->comm_class_count < IR_NONE16);
    traffic->comm = heap_grow(traffic->comm, &traffic->comm_capacity,
                              traffic->comm_class_count + 1u, sizeof *traffic->comm);
    struct comm_class *comm = &traffic->comm[traffic->comm_class_count];
    *comm = *key;
    comm->op_count = arena_array(&traffic->arena, traffic->ir->role_count, sizeof *comm->op_count);
    comm->op_begin_by_role =
        arena_array(&traffic->arena, traffic->ir->role_count, sizeof *comm->op_begin_by_role);
    return (uint16_t)traffic->comm_class_count++;
}

/* True if the op copies from or to pageable memory. */
static bool is_pageable(const struct ir *ir, uint32_t op)
{
    uint8_t kind = ir->op.kind[op];
    if (kind != WORK_H2D && kind != WORK_D2H)
        return false;
    uint32_t host = ir_touched_buffer(ir, op, kind == WORK_H2D ? 0 : ir->op.read_count[op]);
    return ir->buffer.memory[host] == MEMORY_PAGEABLE;
}

/* Returns the distance of a shift, modulo the size of the ring. */
static int64_t shift_distance(const struct traffic *traffic, const struct work *work)
{
    const struct ir *ir = traffic->ir;
    int64_t size = group_rank_count(&ir->mesh, &ir->group[work->p2p.group]);
    return (work->p2p.by % size + size) % size;
}

bool traffic_is_compute_bound(const struct work *work)
{
    const struct work as = work_cost_equivalent(work);
    return as.kind == WORK_MATMUL || as.kind == WORK_ATTENTION ||
           as.kind == WORK_ATTENTION_BACKWARD;
}

/* True if the op is a kernel that takes longer while messages run on its rank, because they occupy
 * multiprocessors and move bytes through the device's memory. False if the cluster has no number of
 * multiprocessors for the device, or none for its messages and its collectives. */
static bool is_slowed_by_messages(const struct op_class_reader *reader, uint32_t op)
{
    const struct device *device = &reader->traffic->cluster->device;
    const struct ir *ir = reader->traffic->ir;
    return ir->stream[ir->op.stream[op]].stream_class == STREAM_COMPUTE && device->sm_count > 0 &&
           (device->message_sms > 0 || device->collective_sms > 0);
}

static enum op_duration_rule find_duration_rule_and_comm_key(const struct op_class_reader *reader,
                                                             uint32_t op, struct comm_class *key)
{
    const struct traffic *traffic = reader->traffic;
    const struct ir *ir = traffic->ir;
    const struct work *work = ir_work(ir, op);
    *key = (struct comm_class){.group = IR_NONE16};
    if (work_comm_group(work) >= 0)
        key->group = (uint16_t)work_comm_group(work);
    switch (work->kind) {
    case WORK_HOST_SYNC:
        return OP_HOST_SYNC;
    case WORK_SHIFT:
        if (work->p2p.together)
            return OP_EVENT; /* the kind stays COMM_COLLECTIVE */
        key->kind = COMM_SHIFT;
        key->distance = shift_distance(traffic, work);
        return OP_EVENT;
    case WORK_SEND:
    case WORK_RECV:
        key->kind = COMM_P2P;
        key->work_kind = work->kind;
        key->distance = work->p2p.by;
        key->channel_number = work->p2p.channel;
        return OP_EVENT;
    case WORK_H2D:
    case WORK_D2H:
        key->kind = COMM_COPY;
        key->work_kind = work->kind;
        key->is_pageable = is_pageable(ir, op);
        return OP_EVENT;
    case WORK_BARRIER:
        /* the barriers of a group are in a comm class of their own, apart from its collectives */
        key->work_kind = WORK_BARRIER;
        return OP_EVENT;
    default:
        break;
    }
    if (key->group != IR_NONE16)
        return OP_EVENT; /* the kind stays COMM_COLLECTIVE */
    if (ir->stream[ir->op.stream[op]].stream_class == STREAM_HOST) {
        uint32_t shape = ir->op.shape[op];
        key->kind = COMM_HOST_WORK;
        return traffic->costs->host_memory_bytes_by_shape &&
                       traffic->costs->host_memory_bytes_by_shape[shape] > 0 &&
                       traffic->host_duration_s[shape] > 0
                   ? OP_EVENT
                   : OP_HOST_WORK;
    }
    key->kind = COMM_CONCURRENT_KERNEL;
    if (traffic->duration_s[ir->op.shape[op]] <= 0)
        return OP_OF_FIXED_DURATION;
    if (reader->has_several_compute_streams)
        return OP_EVENT;
    return is_slowed_by_messages(reader, op) ? OP_SLOWED_BY_MESSAGES : OP_OF_FIXED_DURATION;
}

static int64_t payload_bytes_of_shape(const struct traffic *traffic, uint32_t shape)
{
    return work_payload_bytes(&traffic->ir->shape[shape]);
}

/* True if two ops may be sides of one collective although their shapes differ: only the root of a broadcast reads,
 * and only the root of a reduction writes. */
static bool may_be_sides_of_one_collective(const struct traffic *traffic, uint32_t a, uint32_t b)
{
    const struct work *x = &traffic->ir->shape[a], *y = &traffic->ir->shape[b];
    return (x->kind == WORK_BROADCAST || x->kind == WORK_REDUCE) && x->kind == y->kind &&
           x->in == y->in && x->out == y->out && memcmp(x->p, y->p, sizeof x->p) == 0;
}

static uint16_t find_or_add_variant(struct traffic *traffic, uint16_t l, uint32_t shape)
{
    bool p2p = traffic->comm[l].kind == COMM_P2P;
    struct comm_class *comm = p2p ? &traffic->shared_variants_of_p2p_classes : &traffic->comm[l];
    for (uint32_t v = 0; v < comm->distinct_shape_count; v++)
        if (comm->distinct_shapes[v] == shape ||
            (p2p && payload_bytes_of_shape(traffic, comm->distinct_shapes[v]) ==
                        payload_bytes_of_shape(traffic, shape)) ||
            may_be_sides_of_one_collective(traffic, comm->distinct_shapes[v], shape))
            return (uint16_t)v;
    assert(comm->distinct_shape_count < IR_NONE16);
    comm->distinct_shapes =
        heap_grow(comm->distinct_shapes, &comm->distinct_shape_capacity,
                  comm->distinct_shape_count + 1u, sizeof *comm->distinct_shapes);
    comm->distinct_shapes[comm->distinct_shape_count] = shape;
    return (uint16_t)comm->distinct_shape_count++;
}

static void assign_comm_class(struct op_class_reader *reader, uint32_t role, uint32_t op)
{
    struct traffic *traffic = reader->traffic;
    uint32_t shape = traffic->ir->op.shape[op];
    struct last_class_of_shape *last = &reader->last_class_of_shape[shape];
    uint8_t stream = traffic->ir->op.stream[op];
    bool pageable = is_pageable(traffic->ir, op);
    if (!last->is_known || last->stream != stream || last->is_pageable != pageable) {
        struct comm_class key;
        last->op_duration_rule = (uint8_t)find_duration_rule_and_comm_key(reader, op, &key);
        last->stream = stream;
        last->is_pageable = pageable;
        last->is_known = true;
        uint16_t comm =
            last->op_duration_rule == OP_EVENT ? find_or_add_comm_class(traffic, &key) : IR_NONE16;
        if (comm != IR_NONE16 && last->comm_class != comm)
            last->variant = find_or_add_variant(traffic, comm, shape);
        last->comm_class = comm;
    }
    traffic->op_duration_rule[op] = last->op_duration_rule;
    traffic->comm_class_by_op[op] = last->comm_class;
    if (last->op_duration_rule != OP_EVENT)
        return;
    traffic->comm_variant_by_op[op] = last->variant;
    traffic->number_in_comm_class_by_op[op] = traffic->comm[last->comm_class].op_count[role]++;
}

static bool has_several_compute_streams(const struct ir *ir, const struct role *role)
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

static void list_ops_by_comm_class(struct traffic *traffic)
{
    const struct ir *ir = traffic->ir;
    uint32_t total = 0;
    for (uint32_t l = 0; l < traffic->comm_class_count; l++)
        for (uint32_t r = 0; r < ir->role_count; r++) {
            traffic->comm[l].op_begin_by_role[r] = total;
            total += traffic->comm[l].op_count[r];
        }
    traffic->ops_by_comm_class =
        arena_array(&traffic->arena, total, sizeof *traffic->ops_by_comm_class);
    for (uint32_t r = 0; r < ir->role_count; r++)
        for (uint32_t i = 0; i < ir->role[r].op_count; i++) {
            uint32_t op = ir->role[r].op_begin + i;
            if (traffic->comm_class_by_op[op] != IR_NONE16)
                traffic->ops_by_comm_class[traffic->comm[traffic->comm_class_by_op[op]]
                                               .op_begin_by_role[r] +
                                           traffic->number_in_comm_class_by_op[op]] = op;
        }
}

void traffic_add_comm_classes(struct traffic *traffic)
{
    const struct ir *ir = traffic->ir;
    traffic->op_duration_rule =
        arena_array(&traffic->arena, ir->op.count, sizeof *traffic->op_duration_rule);
    traffic->comm_class_by_op =
        arena_array(&traffic->arena, ir->op.count, sizeof *traffic->comm_class_by_op);
    traffic->comm_variant_by_op =
        arena_array(&traffic->arena, ir->op.count, sizeof *traffic->comm_variant_by_op);
    traffic->number_in_comm_class_by_op =
        arena_array(&traffic->arena, ir->op.count, sizeof *traffic->number_in_comm_class_by_op);
    struct op_class_reader reader = {.traffic = traffic};
    reader.last_class_of_shape =
        heap_alloc(ir->shape_count + 1, sizeof *reader.last_class_of_shape);
    for (uint32_t i = 0; i < ir->shape_count; i++)
        reader.last_class_of_shape[i].comm_class = IR_NONE16;
    for (uint32_t r = 0; r < ir->role_count; r++) {
        reader.has_several_compute_streams = has_several_compute_streams(ir, &ir->role[r]) ||
                                             traffic->cluster->fabric.kind == FABRIC_LOOPBACK;
        for (uint32_t i = 0; i < ir->shape_count; i++)
            reader.last_class_of_shape[i].is_known = false;
        for (uint32_t i = 0; i < ir->role[r].op_count; i++)
            assign_comm_class(&reader, r, ir->role[r].op_begin + i);
    }
    free(reader.last_class_of_shape);
    for (uint32_t l = 0; l < traffic->comm_class_count; l++)
        if (traffic->comm[l].kind == COMM_P2P) {
            traffic->comm[l].distinct_shapes =
                traffic->shared_variants_of_p2p_classes.distinct_shapes;
            traffic->comm[l].distinct_shape_count =
                traffic->shared_variants_of_p2p_classes.distinct_shape_count;
        }
    list_ops_by_comm_class(traffic);
}

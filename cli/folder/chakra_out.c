#include "cli/folder/chakra_out.h"

#include "models/work.h"
#include "schedule/ir/mesh.h"
#include "schedule/ir/visible.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Protocol Buffers ---- */

enum wire_type { WIRE_VARINT = 0, WIRE_BYTES = 2 };

static void put_varint(struct text *out, uint64_t value)
{
    while (value >= 0x80) {
        text_putc(out, (char)(value | 0x80));
        value >>= 7;
    }
    text_putc(out, (char)value);
}

static void put_number(struct text *out, unsigned field, uint64_t value)
{
    put_varint(out, field << 3 | WIRE_VARINT);
    put_varint(out, value);
}

static void put_bytes(struct text *out, unsigned field, const char *data, size_t size)
{
    put_varint(out, field << 3 | WIRE_BYTES);
    put_varint(out, size);
    text_append(out, data == NULL ? "" : data, size);
}

static void put_text(struct text *out, unsigned field, const char *text)
{
    put_bytes(out, field, text, strlen(text));
}

/* Appends the size of a message and the message itself. A file is a sequence of these. */
static void put_length_delimited_message(struct text *out, const struct text *message)
{
    put_varint(out, message->size);
    text_append(out, message->data, message->size);
}

/* ---- et_def.proto ---- */

enum { METADATA_VERSION = 1, METADATA_ATTR = 2 };
enum {
    NODE_FIELD_ID = 1,
    NODE_FIELD_NAME = 2,
    NODE_FIELD_TYPE = 3,
    NODE_FIELD_CTRL_DEPS = 4,
    NODE_FIELD_DATA_DEPS = 5,
    NODE_FIELD_START_MICROS = 6,
    NODE_FIELD_DURATION_MICROS = 7,
    NODE_FIELD_ATTR = 10,
};
enum { ATTR_NAME = 1, ATTR_INT64 = 9, ATTR_UINT64 = 13, ATTR_BOOL = 27, ATTR_STRING = 29 };
enum node_type {
    TYPE_MEM_LOAD = 2,
    TYPE_MEM_STORE = 3,
    TYPE_COMP = 4,
    TYPE_COMM_SEND = 5,
    TYPE_COMM_RECV = 6,
    TYPE_COMM_COLL = 7,
};
enum chakra_collective {
    COLLECTIVE_ALL_REDUCE = 0,
    COLLECTIVE_REDUCE = 1,
    COLLECTIVE_ALL_GATHER = 2,
    COLLECTIVE_SCATTER = 4,
    COLLECTIVE_BROADCAST = 5,
    COLLECTIVE_ALL_TO_ALL = 6,
    COLLECTIVE_REDUCE_SCATTER = 7,
    COLLECTIVE_BARRIER = 9,
    COLLECTIVE_NONE = -1,
};

static void put_attr(struct text *out, const char *name, unsigned type, uint64_t value)
{
    struct text attr = {0};
    put_text(&attr, ATTR_NAME, name);
    put_number(&attr, type, value);
    put_bytes(out, NODE_FIELD_ATTR, attr.data, attr.size);
    text_release(&attr);
}

static void put_text_attr(struct text *out, unsigned field, const char *name, const char *value)
{
    struct text attr = {0};
    put_text(&attr, ATTR_NAME, name);
    put_text(&attr, ATTR_STRING, value);
    put_bytes(out, field, attr.data, attr.size);
    text_release(&attr);
}

/* ---- nodes ---- */

/* The node type of each kind of work. A kind that is not listed is a computation. */
static const struct {
    uint8_t type;
    int8_t collective; /* for TYPE_COMM_COLL: the value of the enum of collectives of Chakra */
} nodes[WORK_KIND_COUNT] = {
    [WORK_H2D] = {TYPE_MEM_LOAD, COLLECTIVE_NONE},
    [WORK_D2H] = {TYPE_MEM_STORE, COLLECTIVE_NONE},
    /* the receiving half of a shift is a node of its own */
    [WORK_SHIFT] = {TYPE_COMM_SEND, COLLECTIVE_NONE},
    [WORK_SEND] = {TYPE_COMM_SEND, COLLECTIVE_NONE},
    [WORK_RECV] = {TYPE_COMM_RECV, COLLECTIVE_NONE},
    [WORK_ALL_REDUCE] = {TYPE_COMM_COLL, COLLECTIVE_ALL_REDUCE},
    [WORK_REDUCE] = {TYPE_COMM_COLL, COLLECTIVE_REDUCE},
    [WORK_ALL_GATHER] = {TYPE_COMM_COLL, COLLECTIVE_ALL_GATHER},
    [WORK_SCATTER] = {TYPE_COMM_COLL, COLLECTIVE_SCATTER},
    [WORK_BROADCAST] = {TYPE_COMM_COLL, COLLECTIVE_BROADCAST},
    [WORK_ALL_TO_ALL] = {TYPE_COMM_COLL, COLLECTIVE_ALL_TO_ALL},
    [WORK_REDUCE_SCATTER] = {TYPE_COMM_COLL, COLLECTIVE_REDUCE_SCATTER},
    [WORK_BARRIER] = {TYPE_COMM_COLL, COLLECTIVE_BARRIER},
};

static enum node_type node_type_of(enum work_kind kind)
{
    return nodes[kind].type == 0 ? TYPE_COMP : (enum node_type)nodes[kind].type;
}

static enum chakra_collective collective_of(enum work_kind kind)
{
    return nodes[kind].type == TYPE_COMM_COLL ? (enum chakra_collective)nodes[kind].collective
                                              : COLLECTIVE_NONE;
}

struct chakra_writer {
    const struct prediction *p;
    const struct sim_class *rank_class;
    uint32_t rank;
    /* [streams] the op of each stream that was written last; IR_NONE: none */
    uint32_t *last_op_of_each_stream;
};

/* Returns the id of a node. Each op has two ids; the second is for the receiving half of a shift. */
static uint64_t node_id_of(uint32_t op, bool receives)
{
    return 2 * (uint64_t)op + (receives ? 2 : 1);
}

/* Appends a dependency on an op, which is a dependency on each of its nodes. */
static void put_dependency(struct text *out, unsigned field, const struct ir *ir, uint32_t op)
{
    put_number(out, field, node_id_of(op, false));
    if (ir->op.kind[op] == WORK_SHIFT)
        put_number(out, field, node_id_of(op, true));
}

/* Returns the rank that is `by` ranks after this one in its instance of the group, taken as a ring; UINT32_MAX if this
 * rank is not in the group. */
static uint32_t rank_shifted_in_group(const struct chakra_writer *w, const struct work *work,
                                      int64_t by)
{
    const struct ir *ir = &w->p->ir;
    const struct group *group = &ir->group[work->p2p.group];
    uint32_t instance, index, size = group_rank_count(&ir->mesh, group);
    if (!group_find_member(&ir->mesh, group, w->rank, &instance, &index))
        return UINT32_MAX;
    int64_t to = ((int64_t)index + by) % (int64_t)size;
    return group_global_rank_of_member(&ir->mesh, group, instance,
                                       (uint32_t)(to < 0 ? to + size : to));
}

static void put_attrs_of_communication(struct text *node, const struct chakra_writer *w,
                                       enum work_kind kind, const struct work *work, bool receives)
{
    const struct ir *ir = &w->p->ir;
    put_text_attr(node, NODE_FIELD_ATTR, "pg_name", ir->group[work->p[0]].name);
    put_attr(node, "comm_size", ATTR_INT64, (uint64_t)work_payload_bytes(work));
    if (collective_of(kind) != COLLECTIVE_NONE) {
        put_attr(node, "comm_type", ATTR_INT64, (uint64_t)collective_of(kind));
        return;
    }
    /* a shift sends to the rank that is `by` ranks after this one, and receives from the rank that is `by` ranks
     * before it */
    int64_t by = kind == WORK_SHIFT && receives ? -work->p2p.by : work->p2p.by;
    uint32_t peer = rank_shifted_in_group(w, work, by);
    put_attr(node, "comm_src", ATTR_INT64, receives ? peer : w->rank);
    put_attr(node, "comm_dst", ATTR_INT64, receives ? w->rank : peer);
    put_attr(node, "comm_tag", ATTR_INT64, (uint64_t)work->p2p.channel);
}

static void put_node(struct text *out, struct text *node, const struct chakra_writer *w,
                     uint32_t op, bool second)
{
    const struct ir *ir = &w->p->ir;
    const struct work *work = ir_work(ir, op);
    enum work_kind kind = (enum work_kind)ir->op.kind[op];
    bool receives = second || kind == WORK_RECV;
    size_t row = w->rank_class->first_row + (op - w->rank_class->op_begin);
    double start_s = w->p->sim.start_s[row], end_s = w->p->sim.end_s[row];
    char name[96];
    snprintf(name, sizeof name, "%s.%s%s", phase_names[ir->op.phase[op]],
             work_kind_info(kind)->name, second ? ".receive" : "");
    node->size = 0;
    put_number(node, NODE_FIELD_ID, node_id_of(op, second));
    put_text(node, NODE_FIELD_NAME, name);
    put_number(node, NODE_FIELD_TYPE, second ? TYPE_COMM_RECV : node_type_of(kind));
    if (w->last_op_of_each_stream[ir->op.stream[op]] != IR_NONE)
        put_dependency(node, NODE_FIELD_CTRL_DEPS, ir,
                       w->last_op_of_each_stream[ir->op.stream[op]]);
    for (uint32_t i = 0; i < ir->op.wait_count[op]; i++) {
        uint32_t wait = ir->wait[ir->op.wait_begin[op] + i].i;
        if (sim_rank_runs_op(ir, &w->p->sim, w->rank, wait))
            put_dependency(node, NODE_FIELD_DATA_DEPS, ir, wait);
    }
    put_number(node, NODE_FIELD_START_MICROS, (uint64_t)(1e6 * start_s));
    put_number(node, NODE_FIELD_DURATION_MICROS, (uint64_t)(1e6 * (end_s - start_s)));
    put_attr(node, "is_cpu_op", ATTR_BOOL,
             ir->stream[ir->op.stream[op]].stream_class == STREAM_HOST);
    put_text_attr(node, NODE_FIELD_ATTR, "stream", ir->stream[ir->op.stream[op]].name);
    enum node_type type = node_type_of(kind);
    if (type == TYPE_COMP) {
        put_attr(node, "num_ops", ATTR_INT64, (uint64_t)ir_work_flops_on_rank(ir, work, w->rank));
        put_attr(node, "tensor_size", ATTR_UINT64, (uint64_t)work_memory_bytes(work));
    } else if (type == TYPE_MEM_LOAD || type == TYPE_MEM_STORE) {
        put_attr(node, "tensor_size", ATTR_UINT64, (uint64_t)work_payload_bytes(work));
    } else {
        put_attrs_of_communication(node, w, kind, work, receives);
    }
    put_length_delimited_message(out, node);
}

void chakra_print(struct text *out, const struct prediction *p, uint32_t rank)
{
    const struct ir *ir = &p->ir;
    const struct sim_class *class = &p->sim.classes[p->sim.class_of_rank[rank]];
    struct chakra_writer w = {.p = p, .rank_class = class, .rank = rank};
    struct text message = {0};
    put_text(&message, METADATA_VERSION, "0.0.4");
    put_text_attr(&message, METADATA_ATTR, "made_by", "longhaul " LONGHAUL_VERSION);
    put_length_delimited_message(out, &message);
    w.last_op_of_each_stream = heap_alloc(ir->stream_count + 1u, sizeof *w.last_op_of_each_stream);
    memset(w.last_op_of_each_stream, 0xff,
           (ir->stream_count + 1u) * sizeof *w.last_op_of_each_stream);
    for (uint32_t op = class->op_begin; op < class->op_begin + class->op_count; op++) {
        if (!sim_rank_runs_op(ir, &p->sim, rank, op))
            continue;
        put_node(out, &message, &w, op, false);
        if (ir->op.kind[op] == WORK_SHIFT)
            put_node(out, &message, &w, op, true);
        w.last_op_of_each_stream[ir->op.stream[op]] = op;
    }
    free(w.last_op_of_each_stream);
    text_release(&message);
}

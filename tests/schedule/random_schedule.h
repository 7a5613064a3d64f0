/* tests/schedule/random_schedule.h: makes small random schedules, and computes which ops happen before which by a
 * slow, simple method.
 *
 * The schedules keep to the rules of docs/ir.md on order and on operands' memories, but their waits are random and
 * may be too few: the schedules test order and lifetimes, which must be right whatever the waits are. */
#ifndef TESTS_SCHEDULE_RANDOM_SCHEDULE_H
#define TESTS_SCHEDULE_RANDOM_SCHEDULE_H

#include "schedule/ir/ir.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

enum { RANDOM_STREAMS = 5 };

/* The numbers of ops and buffers of a role, and the shares of what occurs in it. */
struct random_sizes {
    int64_t ops, buffers;
    int64_t next_wait_percent;    /* the chance that an op has one more wait, up to 3 */
    int64_t host_sync_op_percent; /* ops that are HOST_SYNC or BARRIER */
    int64_t range_percent;        /* operands that are ranges of a buffer, not the whole of it */
    int64_t guard_percent;        /* ops with a guard */
    int64_t prefilled_buffer_percent; /* buffers that ops fill before all other ops */
};

/* Adds a mesh of three ranks and their group, which guards test. Called before any role is added. */
static inline void add_mesh_of_three_ranks(struct ir *ir)
{
    ir->mesh = (struct mesh){.axis_count = 1, .axis = {{"cp", 3}}};
    ir_add_group(ir, "cp", &(struct axis_coordinate_set){.axis = 0}, 1);
}

/* Returns a random operand in a memory, among the sizes.buffers buffers from `first` on. */
static inline struct view random_operand(struct ir *ir, struct check_random *random,
                                         buffer_id first, struct random_sizes sizes,
                                         enum memory memory)
{
    for (;;) {
        buffer_id b = {first.i + (uint32_t)check_random_i64(random, 0, sizes.buffers - 1)};
        if (ir->buffer.memory[b.i] != memory)
            continue;
        struct view view = ir_whole_view(ir, b);
        if (check_random_i64(random, 0, 99) < sizes.range_percent) {
            int64_t end = check_random_i64(random, 1, (int64_t)view.count);
            view.begin = (uint64_t)check_random_i64(random, 0, end - 1);
            view.count = (uint64_t)end - view.begin;
        }
        return view;
    }
}

/* Adds a role of random ops to *ir. The first two buffers of a role are in hbm and pinned. */
static inline void add_random_role(struct ir *ir, struct check_random *random,
                                   struct random_sizes sizes)
{
    uint8_t stream[RANDOM_STREAMS] = {
        ir_add_stream(ir, "compute", STREAM_COMPUTE), ir_add_stream(ir, "side", STREAM_COMPUTE),
        ir_add_stream(ir, "h2d", STREAM_H2D), ir_add_stream(ir, "d2h", STREAM_D2H),
        ir_add_stream(ir, "host", STREAM_HOST)};
    uint16_t role = (uint16_t)(ir->role_count - 1);
    buffer_id first = {ir->buffer.count};
    for (int64_t i = 0; i < sizes.buffers; i++) {
        bool pinned = i == 1 || (i > 1 && check_random_i64(random, 0, 3) == 0);
        struct buffer_desc desc = {.stem = "x",
                                   .number = IR_NONE,
                                   .memory = pinned ? MEMORY_PINNED : MEMORY_HBM,
                                   .dtype = DTYPE_F32,
                                   .category = CATEGORY_ACTIVATION,
                                   .role = role,
                                   .layer = IR_NONE16,
                                   .binding = IR_NONE16};
        if (i > 1 && check_random_i64(random, 0, 9) == 0)
            desc.flags = BUFFER_PERSISTENT;
        desc.dims.count = 1;
        desc.dims.size[0] = check_random_i64(random, 1, 2000);
        ir_add_buffer(ir, &desc);
    }
    uint32_t begin = ir->op.count;
    for (uint32_t i = 0; i < (uint32_t)sizes.buffers; i++) {
        struct view whole = ir_whole_view(ir, (buffer_id){first.i + i});
        struct op_desc fill = {.work = {.kind = WORK_FILL}, .write_count = 1, .write = &whole};
        fill.stream = stream[ir->buffer.memory[first.i + i] == MEMORY_HBM ? 0 : 4];
        fill.guard = IR_NONE16;
        if (check_random_i64(random, 0, 99) < sizes.prefilled_buffer_percent)
            ir_add_op(ir, &fill);
    }
    for (int64_t i = ir->op.count - begin, end = i + sizes.ops; i < end; i++) {
        struct op_desc op = {.guard = IR_NONE16};
        op.tags = (struct op_tags){
            .layer = IR_NONE16, .chunk = IR_NONE16, .step = IR_NONE16, .micro_batch = IR_NONE16};
        /* the stream, in the order of stream[]: it decides the kind of op and the memories of its operands */
        int64_t pick = check_random_i64(random, 0, RANDOM_STREAMS - 1);
        struct view read[2], write[1];
        op_id wait[3];
        op.stream = stream[pick];
        op.read = read;
        op.write = write;
        op.wait = wait;
        if (check_random_i64(random, 0, 99) < sizes.host_sync_op_percent) {
            op.work.kind = check_random_i64(random, 0, 3) == 0 ? WORK_BARRIER : WORK_HOST_SYNC;
        } else {
            enum memory from = pick == 2 || pick == 4 ? MEMORY_PINNED : MEMORY_HBM;
            enum memory to = pick == 3 || pick == 4 ? MEMORY_PINNED : MEMORY_HBM;
            op.work.kind = pick == 2 ? WORK_H2D : pick == 3 ? WORK_D2H : WORK_ADD;
            op.read_count = pick == 2 || pick == 3 ? 1 : 2;
            op.write_count = 1;
            for (uint8_t k = 0; k < op.read_count; k++)
                read[k] = random_operand(ir, random, first, sizes, from);
            write[0] = random_operand(ir, random, first, sizes, to);
            if (op.read_count == 1 && check_random_i64(random, 0, 9) == 0)
                op.work.copy.blocking = 1;
        }
        if (op.write_count > 0 && check_random_i64(random, 0, 99) < sizes.guard_percent)
            op.guard =
                ir_add_guard(ir, (struct guard){.group = 0,
                                                .comparison_kind = (uint8_t)check_random_i64(
                                                    random, 0, GUARD_COMPARISON_COUNT - 1),
                                                .value = (uint32_t)check_random_i64(random, 0, 3)});
        while (op.wait_count < 3 && i > 0 &&
               check_random_i64(random, 0, 99) < sizes.next_wait_percent)
            wait[op.wait_count++] =
                (op_id){begin + (uint32_t)check_random_i64(random, i > 20 ? i - 20 : 0, i - 1)};
        ir_add_op(ir, &op);
    }
}

/* Returns a table in which before[a * ops + b] is true if op a has ended when op b starts, by the transitive
 * closure of the rules. Ops count from the role's first. The caller frees the table. */
static inline bool *order_by_closure(const struct ir *ir, uint32_t role)
{
    uint32_t begin = ir->role[role].op_begin, n = ir->role[role].op_count;
    bool *before = heap_zalloc((size_t)n * n, sizeof *before);
    for (uint32_t b = 0; b < n; b++) {
        uint32_t op = begin + b;
        bool barrier = ir->op.kind[op] == WORK_BARRIER;
        for (uint32_t a = 0; a < b; a++) {
            uint32_t other = begin + a;
            bool other_is_host =
                ir->op.kind[other] == WORK_HOST_SYNC || ir->op.kind[other] == WORK_BARRIER;
            /* a HOST_SYNC waits for its stream as a later op of the stream would */
            bool edge = ir_blocks_host(ir, other) ||
                        (!other_is_host && !barrier && ir->op.stream[other] == ir->op.stream[op]);
            for (uint32_t k = 0; k < ir->op.wait_count[op]; k++)
                edge |= ir->wait[ir->op.wait_begin[op] + k].i == other;
            if (!edge)
                continue;
            before[(size_t)a * n + b] = true;
            for (uint32_t c = 0; c < a; c++)
                before[(size_t)c * n + b] |= before[(size_t)c * n + a];
        }
    }
    return before;
}

#endif

#include "exec/poison.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* POISON: the two bytes with which memory is filled. They are a signalling NaN in bf16, a NaN in fp16 and, twice in a
 * row, a signalling NaN in fp32. GRANULE: the bytes for which the shadow array has one element. */
enum { POISON = 0x7fa5, GRANULE = 2 };

struct poison {
    uint32_t ranks;
    /* (ranks, MEMORY_COUNT) arrays with an element for each granule: 1 + the buffer that was last written there; 0:
     * nothing was written there */
    uint32_t **buffer_plus_1_by_granule;
};

static uint32_t *buffer_plus_1_by_granule_of_memory(const struct poison *poison, uint32_t rank,
                                                    enum memory memory)
{
    return poison->buffer_plus_1_by_granule[(size_t)rank * MEMORY_COUNT + memory];
}

static uint64_t granule_count(uint64_t bytes)
{
    return (bytes + GRANULE - 1) / GRANULE;
}

struct poison *poison_new(const struct exec_run *run)
{
    struct poison *poison = heap_zalloc(1, sizeof *poison);
    poison->ranks = run->assignment.ranks;
    poison->buffer_plus_1_by_granule =
        heap_zalloc((size_t)poison->ranks * MEMORY_COUNT, sizeof *poison->buffer_plus_1_by_granule);
    for (uint32_t i = 0; i < poison->ranks * MEMORY_COUNT; i++)
        poison->buffer_plus_1_by_granule[i] = heap_zalloc(
            granule_count(run->ir->planned_bytes[i % MEMORY_COUNT]) + 1, sizeof(uint32_t));
    return poison;
}

void poison_free(struct poison *poison)
{
    if (poison == NULL)
        return;
    for (uint32_t i = 0; i < poison->ranks * MEMORY_COUNT; i++)
        free(poison->buffer_plus_1_by_granule[i]);
    free(poison->buffer_plus_1_by_granule);
    free(poison);
}

static void fill_poison(void *data, uint64_t bytes)
{
    const uint16_t pattern = POISON;
    for (uint64_t i = 0; i + GRANULE <= bytes; i += GRANULE)
        memcpy((char *)data + i, &pattern, GRANULE);
}

static void record_writer_of_range(const struct exec_run *run, uint32_t rank, uint32_t buffer,
                                   uint64_t begin_byte, uint64_t bytes)
{
    const struct buffer_table *table = &run->ir->buffer;
    uint32_t *owner = buffer_plus_1_by_granule_of_memory(run->poison, rank, table->memory[buffer]);
    uint64_t first = (table->offset[buffer] + begin_byte) / GRANULE;
    for (uint64_t i = 0; i < granule_count(bytes); i++)
        owner[first + i] = buffer + 1;
}

void poison_begin_step(struct exec_run *run)
{
    const struct ir *ir = run->ir;
    for (uint32_t rank = 0; rank < run->assignment.ranks; rank++) {
        for (int m = 0; m < MEMORY_COUNT; m++)
            memset(buffer_plus_1_by_granule_of_memory(run->poison, rank, m), 0,
                   granule_count(ir->planned_bytes[m]) * sizeof(uint32_t));
        for (uint32_t b = 0; b < ir->buffer.count; b++)
            if (ir->buffer.binding[b] != IR_NONE16 && ir->buffer.offset[b] != UINT64_MAX &&
                (ir->buffer.role[b] == assignment_role_of(&run->assignment, rank)))
                record_writer_of_range(run, rank, b, 0, ir_buffer_bytes(ir, (buffer_id){b}));
        for (int m = 0; m < MEMORY_COUNT; m++) {
            const uint32_t *owner = buffer_plus_1_by_granule_of_memory(run->poison, rank, m);
            char *base = run->backend->memory(run, rank, m);
            for (uint64_t i = 0; i < ir->planned_bytes[m] / GRANULE; i++)
                if (owner[i] == 0)
                    fill_poison(base + i * GRANULE, GRANULE);
        }
    }
}

static void describe_buffer(const struct ir *ir, uint32_t buffer, char *text, size_t size)
{
    ir_buffer_name(ir, (buffer_id){buffer}, text, size);
}

static bool check_read_was_written(struct exec_run *run, const struct call *call, struct view view)
{
    const struct buffer_table *table = &run->ir->buffer;
    uint32_t buffer = view.buffer.i;
    uint64_t size = dtype_bytes(table->dtype[buffer]);
    const uint32_t *owner =
        buffer_plus_1_by_granule_of_memory(run->poison, call->rank, table->memory[buffer]);
    uint64_t first = (table->offset[buffer] + view.begin * size) / GRANULE;
    uint64_t count = granule_count(view.count * size), other_owners = 0;
    /* compiled to vector code, unlike a loop that ends early */
    for (uint64_t i = 0; i < count; i++)
        other_owners += owner[first + i] != buffer + 1;
    for (uint64_t i = 0; i < count && other_owners > 0; i++) {
        uint32_t found = owner[first + i];
        if (found == buffer + 1)
            continue;
        char name[64], other[64] = "";
        describe_buffer(run->ir, buffer, name, sizeof name);
        if (found > 0)
            describe_buffer(run->ir, found - 1, other, sizeof other);
        run_record_failure(run, call->rank, call->op,
                           "reads element %" PRIu64 " of buffer %s, %s%s%s",
                           view.begin + i * GRANULE / size, name,
                           found == 0 ? "which nothing has written" : "over which buffer ", other,
                           found == 0 ? "" : " has been written since");
        return false;
    }
    return true;
}

static bool rank_is_root(const struct exec_run *run, const struct call *call)
{
    return assignment_group_index(&run->assignment, call->rank,
                                  (uint32_t)call->work->broadcast.group) ==
           (uint32_t)call->work->broadcast.root;
}

/* True if an op reads its operands on this rank: only the root reads in a broadcast or scatter. */
static bool reads_operands(const struct exec_run *run, const struct call *call)
{
    bool by_root = call->work->kind == WORK_BROADCAST || call->work->kind == WORK_SCATTER;
    return !by_root || rank_is_root(run, call);
}

/* True if an op writes its operands on this rank: only the root writes in a reduce. */
static bool writes_operands(const struct exec_run *run, const struct call *call)
{
    return call->work->kind != WORK_REDUCE || rank_is_root(run, call);
}

static bool views_overlap(struct view a, struct view b)
{
    return a.buffer.i == b.buffer.i && a.begin < b.begin + b.count && b.begin < a.begin + a.count;
}

/* True if the op must write every element of the operand: none of its reads overlaps the operand. Workspaces (dtype u8)
 * are exempt, since a kernel need not use them. */
static bool op_must_overwrite(const struct exec_run *run, const struct call *call,
                              struct view write)
{
    if (run->ir->buffer.dtype[write.buffer.i] == DTYPE_U8)
        return false;
    for (uint32_t k = 0; k < call->read_count; k++)
        if (views_overlap(ir_read_view(run->ir, call->op, k), write))
            return false;
    return true;
}

bool poison_check_reads(struct exec_run *run, const struct call *call)
{
    if (reads_operands(run, call))
        for (uint32_t k = 0; k < call->read_count; k++)
            if (!check_read_was_written(run, call, ir_read_view(run->ir, call->op, k)))
                return false;
    for (uint32_t k = 0; k < call->write_count && writes_operands(run, call); k++)
        if (op_must_overwrite(run, call, ir_write_view(run->ir, call->op, k)))
            fill_poison(call->write[k].data,
                        call->write[k].element_count * dtype_bytes(call->write[k].dtype));
    return true;
}

/* Returns the index of the first element that is still poison; element_count if none is. */
static uint64_t first_poisoned_element(const struct operand *operand)
{
    uint64_t size = dtype_bytes(operand->dtype), i = 0;
    const uint16_t pattern = POISON;
    for (const char *at = operand->data; i < operand->element_count; i++, at += size) {
        uint64_t k = 0;
        while (k < size && memcmp(at + k, &pattern, GRANULE) == 0)
            k += GRANULE;
        if (k >= size)
            break;
    }
    return i;
}

bool poison_check_and_record_writes(struct exec_run *run, const struct call *call)
{
    for (uint32_t k = 0; k < call->write_count && writes_operands(run, call); k++) {
        struct view view = ir_write_view(run->ir, call->op, k);
        uint64_t size = dtype_bytes(run->ir->buffer.dtype[view.buffer.i]);
        if (op_must_overwrite(run, call, view)) {
            uint64_t left = first_poisoned_element(&call->write[k]);
            if (left < call->write[k].element_count) {
                char name[64];
                describe_buffer(run->ir, view.buffer.i, name, sizeof name);
                run_record_failure(run, call->rank, call->op,
                                   "leaves element %" PRIu64
                                   " of buffer %s unwritten, which the op must write",
                                   view.begin + left, name);
                return false;
            }
        }
        record_writer_of_range(run, call->rank, view.buffer.i, view.begin * size,
                               view.count * size);
    }
    return true;
}

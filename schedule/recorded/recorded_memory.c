/* Makes buffers of the storages of a recording. A storage is written first by the op of the event that names it first,
 * or by an op without cost before that op. It is free when the host has issued the last op before the event that frees
 * it. The replay of the allocator goes by the order of issue, so it allocates and frees as the program did. */
#include "schedule/recorded/recorded_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct first_event_of_storage {
    int64_t first_event;
    uint32_t storage;
};

static int compare_storages_by_first_event(const void *a, const void *b)
{
    const struct first_event_of_storage *x = a, *y = b;
    if (x->first_event != y->first_event)
        return (x->first_event > y->first_event) - (x->first_event < y->first_event);
    return (x->storage > y->storage) - (x->storage < y->storage);
}

void recorded_make_storage_tables(struct recorded_schedule_builder *m)
{
    const uint32_t count = m->recording->storage_count;
    struct first_event_of_storage *start = heap_alloc((size_t)count + 1, sizeof *start);
    m->buffer = heap_alloc((size_t)count + 1, sizeof *m->buffer);
    m->first_writing_op_of_storage = ir_new_empty_ids((size_t)count + 1);
    m->last_op_of_storage = ir_new_empty_ids((size_t)count + 1);
    m->storages_by_first_event = heap_alloc((size_t)count + 1, sizeof *m->storages_by_first_event);
    m->ops_before = heap_zalloc((size_t)m->recording->event_count + 1, sizeof *m->ops_before);
    for (uint32_t i = 0; i < count; i++) {
        m->buffer[i] = (buffer_id){IR_NONE};
        start[i] = (struct first_event_of_storage){m->recording->storage[i].first_event, i};
    }
    qsort(start, count, sizeof *start, compare_storages_by_first_event);
    for (uint32_t i = 0; i < count; i++)
        m->storages_by_first_event[i] = start[i].storage;
    free(start);
}

void recorded_release_storage_tables(struct recorded_schedule_builder *m)
{
    free(m->buffer);
    free(m->first_writing_op_of_storage);
    free(m->last_op_of_storage);
    free(m->storages_by_first_event);
    free(m->ops_before);
}

/* ---- buffers ---- */

static const struct {
    const char *role, *stem;
    enum category category;
} roles[] = {
    {"param", "parameter", CATEGORY_PARAMETER}, {"buffer", "buffer", CATEGORY_PARAMETER},
    {"grad", "gradient", CATEGORY_GRADIENT},    {"optimizer", "state", CATEGORY_OPTIMIZER},
    {"given", "given", CATEGORY_INPUT},         {"unsharded", "gathered", CATEGORY_PARAMETER},
    {"", "tensor", CATEGORY_ACTIVATION},
};

static buffer_id add_buffer(struct recorded_schedule_builder *m, uint32_t storage, uint32_t event)
{
    const struct step_storage *s = &m->recording->storage[storage];
    const size_t word = strcspn(s->role, " ");
    const char *name = s->role[word] == ' ' ? s->role + word + 1 : "";
    const bool stays = s->first_event < 0 && s->last_event < 0;
    size_t i = 0;
    while (i + 1 < ARRAY_LEN(roles) &&
           (strlen(roles[i].role) != word || memcmp(roles[i].role, s->role, word) != 0))
        i++;
    struct buffer_desc desc = {
        .stem = roles[i].stem,
        .number = IR_NONE,
        .memory = MEMORY_HBM,
        .dtype = DTYPE_U8,
        .category = (uint8_t)roles[i].category,
        .flags = stays ? BUFFER_PERSISTENT : 0,
        .role = m->role,
        .layer = s->first_event < 0 ? IR_NONE16 : recorded_layer_of_event(m, event),
        .binding = IR_NONE16,
        .dims = {1, {(int64_t)s->bytes}, 0},
    };
    const size_t size = strlen(name);
    if (size > 0 && ir_is_valid_name(name, size) && ir_find_buffer(m->ir, name, size).i == IR_NONE)
        return ir_add_named_buffer(m->ir, name, size, &desc);
    return ir_add_buffer(m->ir, &desc);
}

struct view recorded_make_transfer_buffer(struct recorded_schedule_builder *m,
                                          const struct recorded_transfer_buffer *transfer_buffer)
{
    char name[64];
    struct buffer_desc desc = {
        .memory = transfer_buffer->memory,
        .dtype = transfer_buffer->dtype,
        .category = transfer_buffer->category,
        .flags = BUFFER_PERSISTENT | BUFFER_PART,
        .role = m->role,
        .layer = IR_NONE16,
        .binding = IR_NONE16,
        .dims = {1,
                 {(int64_t)(transfer_buffer->bytes /
                            dtype_bytes((enum dtype)transfer_buffer->dtype))},
                 0},
    };
    snprintf(name, sizeof name, "%s.%u.%s.%llu.%u.", transfer_buffer->stem, transfer_buffer->stream,
             dtype_name((enum dtype)transfer_buffer->dtype),
             (unsigned long long)transfer_buffer->bytes, m->role);
    buffer_id buffer = ir_find_buffer(m->ir, name, strlen(name));
    if (buffer.i == IR_NONE)
        buffer = ir_add_named_buffer(m->ir, name, strlen(name), &desc);
    return ir_whole_view(m->ir, buffer);
}

/* ---- first writes and free sets ---- */

void recorded_set_first_writing_op(struct recorded_schedule_builder *m,
                                   const struct recorded_first_written_storages *first_writes,
                                   uint32_t op)
{
    for (uint8_t i = 0; i < first_writes->count; i++)
        m->first_writing_op_of_storage[first_writes->storage[i]] = op;
}

/* Adds an op without cost that writes the storages of the list first, and empties the list. */
static void add_op_that_first_writes(struct recorded_schedule_builder *m,
                                     struct recorded_first_written_storages *first_writes)
{
    if (first_writes->count > 0)
        recorded_set_first_writing_op(m, first_writes,
                                      recorded_add_first_writing_op(m, first_writes));
    first_writes->count = 0;
}

void recorded_make_buffers_up_to_event(struct recorded_schedule_builder *m, uint32_t number,
                                       struct recorded_first_written_storages *with_op,
                                       uint8_t room)
{
    struct recorded_first_written_storages before = {.count = 0};
    with_op->count = 0;
    for (; m->written_storage_count < m->recording->storage_count; m->written_storage_count++) {
        const uint32_t storage = m->storages_by_first_event[m->written_storage_count];
        const struct step_storage *s = &m->recording->storage[storage];
        if (s->first_event > (int64_t)number)
            break;
        if (s->bytes == 0)
            continue;
        const bool gone = s->last_event >= 0 && s->last_event <= (int64_t)number;
        struct recorded_first_written_storages *to =
            s->first_event >= 0 && !gone && with_op->count < room ? with_op : &before;
        m->buffer[storage] = add_buffer(m, storage, number);
        to->storage[to->count] = storage;
        to->view[to->count++] = ir_whole_view(m->ir, m->buffer[storage]);
        if (before.count == RECORDED_WRITES_MAX)
            add_op_that_first_writes(m, &before);
    }
    add_op_that_first_writes(m, &before);
}

static void set_last_op_of_storages(struct recorded_schedule_builder *m, uint32_t begin,
                                    uint32_t count, uint32_t op)
{
    for (uint32_t i = begin; i < begin + count; i++)
        if (m->recording->tensor[i].storage >= 0)
            m->last_op_of_storage[m->recording->tensor[i].storage] = op;
}

void recorded_set_last_op_of_storages(struct recorded_schedule_builder *m, uint32_t number,
                                      uint32_t op)
{
    const struct step_event *event = &m->recording->event[number];
    set_last_op_of_storages(m, event->in_begin, event->in_count, op);
    set_last_op_of_storages(m, event->out_begin, event->out_count, op);
}

void recorded_set_free_sets(struct recorded_schedule_builder *m)
{
    for (uint32_t i = 0; i < m->recording->storage_count; i++) {
        const struct step_storage *s = &m->recording->storage[i];
        if (m->buffer[i].i == IR_NONE || (s->first_event < 0 && s->last_event < 0))
            continue;
        const uint32_t ops = s->last_event < 0 ? m->ir->op.count : m->ops_before[s->last_event];
        uint32_t last = ops > 0 ? ops - 1 : 0;
        if (last < m->first_writing_op_of_storage[i])
            last = m->first_writing_op_of_storage[i];
        op_id free_after[3] = {{m->first_writing_op_of_storage[i]}};
        uint16_t count = 1;
        if (m->last_op_of_storage[i] != IR_NONE &&
            m->last_op_of_storage[i] > m->first_writing_op_of_storage[i] &&
            m->last_op_of_storage[i] < last)
            free_after[count++] = (op_id){m->last_op_of_storage[i]};
        if (last > m->first_writing_op_of_storage[i])
            free_after[count++] = (op_id){last};
        ir_set_free_set(m->ir, m->buffer[i], free_after, count);
    }
}

#include "traces/trace.h"

#include "base/digest.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void trace_release(struct trace *trace)
{
#define FREE_TRACE_COLUMN(name, type) free(trace->ops.name);
    TRACE_OP_COLUMNS(FREE_TRACE_COLUMN)
#undef FREE_TRACE_COLUMN
#define FREE_TRACE_COLUMN(name, type) free(trace->memory.name);
    TRACE_MEMORY_COLUMNS(FREE_TRACE_COLUMN)
#undef FREE_TRACE_COLUMN
    free(trace->header_keys);
    free(trace->labels);
    free(trace->label_id_of_slot);
    arena_release(&trace->arena);
    *trace = (struct trace){0};
}

/* Returns the slot of the label, or the free slot where it would go. */
static size_t find_label_slot(const struct trace *trace, const char *text, size_t size)
{
    size_t slot =
        (size_t)digest_add(DIGEST_OF_NO_BYTES, text, size) & (trace->label_slot_count - 1);
    while (trace->label_id_of_slot[slot] != 0) {
        const char *label = trace->labels[trace->label_id_of_slot[slot] - 1];
        if (strncmp(label, text, size) == 0 && label[size] == '\0')
            break;
        slot = (slot + 1) & (trace->label_slot_count - 1);
    }
    return slot;
}

static void grow_slots(struct trace *trace)
{
    free(trace->label_id_of_slot);
    trace->label_slot_count = trace->label_slot_count ? 2 * trace->label_slot_count : 64;
    trace->label_id_of_slot = heap_zalloc(trace->label_slot_count, sizeof *trace->label_id_of_slot);
    for (size_t i = 0; i < trace->label_count; i++) {
        const char *label = trace->labels[i];
        trace->label_id_of_slot[find_label_slot(trace, label, strlen(label))] = (uint32_t)i + 1;
    }
}

static void add_label(struct trace *trace, size_t slot, const char *text, size_t size)
{
    if (trace->label_count == trace->label_capacity) {
        trace->label_capacity = heap_next_capacity(trace->label_capacity, trace->label_count + 1);
        trace->labels = heap_realloc(trace->labels, trace->label_capacity, sizeof *trace->labels);
    }
    trace->labels[trace->label_count++] = arena_text(&trace->arena, text, size);
    trace->label_id_of_slot[slot] = (uint32_t)trace->label_count;
}

/* Adds the empty text as label 0, so that the text columns of an all-zero row are empty. */
static void add_empty_label(struct trace *trace)
{
    if (trace->label_count == 0) {
        grow_slots(trace);
        add_label(trace, find_label_slot(trace, "", 0), "", 0);
    }
}

bool trace_find_or_add_label(struct trace *trace, const char *text, size_t size, uint16_t *label)
{
    add_empty_label(trace);
    size_t slot = find_label_slot(trace, text, size);
    if (trace->label_id_of_slot[slot] == 0) {
        if (trace->label_count == TRACE_LABEL_LIMIT)
            return false;
        if (2 * trace->label_count >= trace->label_slot_count) {
            grow_slots(trace);
            slot = find_label_slot(trace, text, size);
        }
        add_label(trace, slot, text, size);
    }
    *label = (uint16_t)(trace->label_id_of_slot[slot] - 1);
    return true;
}

uint16_t trace_intern_label(struct trace *trace, const char *text)
{
    uint16_t label = 0;
    bool found = trace_find_or_add_label(trace, text, strlen(text), &label);
    assert(found && "more labels than a trace can hold");
    (void)found;
    return label;
}

static struct trace_key *find_key(const struct trace *trace, const char *key)
{
    for (size_t i = 0; i < trace->header_count; i++)
        if (strcmp(trace->header_keys[i].key, key) == 0)
            return &trace->header_keys[i];
    return NULL;
}

bool trace_is_key(const char *key, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (key[i] < ' ' || key[i] > '~' || key[i] == '=')
            return false;
    return size > 0;
}

void trace_set_key(struct trace *trace, const char *key, const char *value)
{
    assert(trace_is_key(key, strlen(key)));
    const char *kept = arena_text(&trace->arena, value, strlen(value));
    struct trace_key *old = find_key(trace, key);
    if (old) {
        old->value = kept;
        return;
    }
    if (trace->header_count == trace->header_capacity) {
        trace->header_capacity =
            heap_next_capacity(trace->header_capacity, trace->header_count + 1);
        trace->header_keys =
            heap_realloc(trace->header_keys, trace->header_capacity, sizeof *trace->header_keys);
    }
    trace->header_keys[trace->header_count++] =
        (struct trace_key){arena_text(&trace->arena, key, strlen(key)), kept};
}

const char *trace_get_key(const struct trace *trace, const char *key)
{
    const struct trace_key *found = find_key(trace, key);
    return found ? found->value : NULL;
}

size_t trace_add_op(struct trace *trace)
{
    add_empty_label(trace);
    struct trace_ops *ops = &trace->ops;
    if (ops->count == ops->capacity) {
        ops->capacity = heap_next_capacity(ops->capacity, ops->count + 1);
#define GROW_COLUMN(name, type)                                                                    \
    ops->name = heap_realloc(ops->name, ops->capacity, sizeof *ops->name);
        TRACE_OP_COLUMNS(GROW_COLUMN)
#undef GROW_COLUMN
    }
#define CLEAR_NEW_TRACE_COLUMN(name, type) ops->name[ops->count] = 0;
    TRACE_OP_COLUMNS(CLEAR_NEW_TRACE_COLUMN)
#undef CLEAR_NEW_TRACE_COLUMN
    return ops->count++;
}

size_t trace_add_memory(struct trace *trace)
{
    add_empty_label(trace);
    struct trace_memory *memory = &trace->memory;
    if (memory->count == memory->capacity) {
        memory->capacity = heap_next_capacity(memory->capacity, memory->count + 1);
#define GROW_COLUMN(name, type)                                                                    \
    memory->name = heap_realloc(memory->name, memory->capacity, sizeof *memory->name);
        TRACE_MEMORY_COLUMNS(GROW_COLUMN)
#undef GROW_COLUMN
    }
#define CLEAR_NEW_TRACE_COLUMN(name, type) memory->name[memory->count] = 0;
    TRACE_MEMORY_COLUMNS(CLEAR_NEW_TRACE_COLUMN)
#undef CLEAR_NEW_TRACE_COLUMN
    return memory->count++;
}

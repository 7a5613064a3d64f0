#include "traces/trace.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void trace_release(struct trace *trace)
{
#define RELEASE(name, type) free(trace->ops.name);
    TRACE_OP_COLUMNS(RELEASE)
#undef RELEASE
#define RELEASE(name, type) free(trace->memory.name);
    TRACE_MEMORY_COLUMNS(RELEASE)
#undef RELEASE
    free(trace->header);
    free(trace->label);
    free(trace->label_slot);
    arena_release(&trace->arena);
    *trace = (struct trace){0};
}

/* Returns the 32-bit FNV-1a hash of a text. */
static uint32_t hash(const char *text, size_t size)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < size; i++)
        h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h;
}

/* Returns the slot of the label, or the free slot where it would go. */
static size_t find_slot(const struct trace *trace, const char *text, size_t size)
{
    size_t slot = hash(text, size) & (trace->label_slots - 1);
    while (trace->label_slot[slot] != 0) {
        const char *label = trace->label[trace->label_slot[slot] - 1];
        if (strncmp(label, text, size) == 0 && label[size] == '\0')
            break;
        slot = (slot + 1) & (trace->label_slots - 1);
    }
    return slot;
}

static void grow_slots(struct trace *trace)
{
    free(trace->label_slot);
    trace->label_slots = trace->label_slots ? 2 * trace->label_slots : 64;
    trace->label_slot = heap_zalloc(trace->label_slots, sizeof *trace->label_slot);
    for (size_t i = 0; i < trace->label_count; i++) {
        const char *label = trace->label[i];
        trace->label_slot[find_slot(trace, label, strlen(label))] = (uint32_t)i + 1;
    }
}

static void add_label(struct trace *trace, size_t slot, const char *text, size_t size)
{
    if (trace->label_count == trace->label_capacity) {
        trace->label_capacity = heap_next_capacity(trace->label_capacity, trace->label_count + 1);
        trace->label = heap_realloc(trace->label, trace->label_capacity, sizeof *trace->label);
    }
    trace->label[trace->label_count++] = arena_text(&trace->arena, text, size);
    trace->label_slot[slot] = (uint32_t)trace->label_count;
}

/* Makes the empty text label 0, which the text columns of an all-zero row name. */
static void need_empty_label(struct trace *trace)
{
    if (trace->label_count == 0) {
        grow_slots(trace);
        add_label(trace, find_slot(trace, "", 0), "", 0);
    }
}

bool trace_try_label(struct trace *trace, const char *text, size_t size, uint16_t *label)
{
    need_empty_label(trace);
    size_t slot = find_slot(trace, text, size);
    if (trace->label_slot[slot] == 0) {
        if (trace->label_count == TRACE_LABEL_LIMIT)
            return false;
        if (2 * trace->label_count >= trace->label_slots) {
            grow_slots(trace);
            slot = find_slot(trace, text, size);
        }
        add_label(trace, slot, text, size);
    }
    *label = (uint16_t)(trace->label_slot[slot] - 1);
    return true;
}

uint16_t trace_label(struct trace *trace, const char *text)
{
    uint16_t label = 0;
    bool found = trace_try_label(trace, text, strlen(text), &label);
    assert(found && "more labels than a trace can hold");
    (void)found;
    return label;
}

static struct trace_key *find_key(const struct trace *trace, const char *key)
{
    for (size_t i = 0; i < trace->header_count; i++)
        if (strcmp(trace->header[i].key, key) == 0)
            return &trace->header[i];
    return NULL;
}

bool trace_is_key(const char *key, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (key[i] < ' ' || key[i] > '~' || key[i] == '=')
            return false;
    return size > 0;
}

void trace_set(struct trace *trace, const char *key, const char *value)
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
        trace->header = heap_realloc(trace->header, trace->header_capacity, sizeof *trace->header);
    }
    trace->header[trace->header_count++] =
        (struct trace_key){arena_text(&trace->arena, key, strlen(key)), kept};
}

const char *trace_get(const struct trace *trace, const char *key)
{
    const struct trace_key *found = find_key(trace, key);
    return found ? found->value : NULL;
}

size_t trace_add_op(struct trace *trace)
{
    need_empty_label(trace);
    struct trace_ops *ops = &trace->ops;
    if (ops->count == ops->capacity) {
        ops->capacity = heap_next_capacity(ops->capacity, ops->count + 1);
#define GROW(name, type) ops->name = heap_realloc(ops->name, ops->capacity, sizeof *ops->name);
        TRACE_OP_COLUMNS(GROW)
#undef GROW
    }
#define CLEAR(name, type) ops->name[ops->count] = 0;
    TRACE_OP_COLUMNS(CLEAR)
#undef CLEAR
    return ops->count++;
}

size_t trace_add_memory(struct trace *trace)
{
    need_empty_label(trace);
    struct trace_memory *memory = &trace->memory;
    if (memory->count == memory->capacity) {
        memory->capacity = heap_next_capacity(memory->capacity, memory->count + 1);
#define GROW(name, type)                                                                           \
    memory->name = heap_realloc(memory->name, memory->capacity, sizeof *memory->name);
        TRACE_MEMORY_COLUMNS(GROW)
#undef GROW
    }
#define CLEAR(name, type) memory->name[memory->count] = 0;
    TRACE_MEMORY_COLUMNS(CLEAR)
#undef CLEAR
    return memory->count++;
}

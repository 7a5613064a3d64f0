#include "cli/folder/snapshot_out.h"

#include "sim/memory/memory.h"
#include "traces/pickle.h"

#include <stdbool.h>
#include <stdlib.h>

/* The address at which the memory of the device begins in the snapshot. It could be any number but 0. */
#define DEVICE_MEMORY_ADDRESS INT64_C(0x7f0000000000)

static void put_pickled_key_and_int(struct text *out, const char *key, int64_t value)
{
    pickle_put_text(out, key);
    pickle_put_int(out, value);
}

static void put_pickled_key_and_text(struct text *out, const char *key, const char *value)
{
    pickle_put_text(out, key);
    pickle_put_text(out, value);
}

/* Appends the frames of a buffer: [{"name": ..., "filename": category, "line": layer}]. */
static void put_frames(struct text *out, const struct ir *ir, uint32_t buffer)
{
    char name[128];
    uint16_t layer = ir->buffer.layer[buffer];
    ir_buffer_name(ir, (buffer_id){buffer}, name, sizeof name);
    pickle_put_text(out, "frames");
    pickle_begin_list(out);
    pickle_begin_dict(out);
    put_pickled_key_and_text(out, "name", name);
    put_pickled_key_and_text(out, "filename", category_names[ir->buffer.category[buffer]]);
    put_pickled_key_and_int(out, "line", layer == IR_NONE16 ? 0 : layer);
    pickle_end_dict(out);
    pickle_end_list(out);
}

static void put_event(struct text *out, const struct ir *ir, const char *action,
                      const struct memory_event *event)
{
    pickle_begin_dict(out);
    put_pickled_key_and_text(out, "action", action);
    put_pickled_key_and_int(out, "addr",
                            DEVICE_MEMORY_ADDRESS + (int64_t)ir->buffer.offset[event->buffer]);
    put_pickled_key_and_int(out, "size",
                            event->added_bytes < 0 ? -event->added_bytes : event->added_bytes);
    put_pickled_key_and_int(out, "stream", 0);
    put_pickled_key_and_int(out, "time_us", (int64_t)(1e6 * event->time_s));
    put_frames(out, ir, event->buffer);
    pickle_end_dict(out);
}

static void put_allocation_history(struct text *out, const struct ir *ir,
                                   const struct memory_event *event, size_t count, uint64_t arena)
{
    pickle_begin_list(out);
    pickle_begin_dict(out);
    put_pickled_key_and_text(out, "action", "segment_alloc");
    put_pickled_key_and_int(out, "addr", DEVICE_MEMORY_ADDRESS);
    put_pickled_key_and_int(out, "size", (int64_t)arena);
    put_pickled_key_and_int(out, "stream", 0);
    put_pickled_key_and_int(out, "time_us", 0);
    pickle_put_text(out, "frames");
    pickle_begin_list(out);
    pickle_end_list(out);
    pickle_end_dict(out);
    for (size_t i = 0; i < count; i++)
        if (ir->buffer.memory[event[i].buffer] != MEMORY_HBM) {
            continue;
        } else if (event[i].added_bytes > 0) {
            put_event(out, ir, "alloc", &event[i]);
        } else {
            put_event(out, ir, "free_requested", &event[i]);
            put_event(out, ir, "free_completed", &event[i]);
        }
    pickle_end_list(out);
}

struct live_block {
    uint64_t offset, bytes;
    uint32_t buffer;
};

static int compare_live_blocks(const void *left, const void *right)
{
    const struct live_block *a = left, *b = right;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* Returns the number of events up to the moment at which most memory is used. The snapshot shows that moment. Readers
 * walk back through the history from the state of the segments, so the history must end at that moment, too. */
static size_t count_events_to_peak(const struct ir *ir, const struct memory_event *event,
                                   size_t count)
{
    int64_t bytes = 0, most = -1;
    size_t event_count_to_peak = 0;
    for (size_t i = 0; i < count; i++) {
        if (ir->buffer.memory[event[i].buffer] != MEMORY_HBM)
            continue;
        bytes += event[i].added_bytes;
        if (bytes > most) {
            most = bytes;
            event_count_to_peak = i + 1;
        }
    }
    return event_count_to_peak;
}

/* Sets *live to the buffers in device memory that are live after the first `count` events, sorted
 * by offset, and returns their number. The caller frees the array. */
static size_t find_live_blocks(const struct ir *ir, const struct memory_event *event, size_t count,
                               struct live_block **live)
{
    size_t live_count = 0;
    bool *there = heap_zalloc(ir->buffer.count + 1u, sizeof *there);
    for (size_t i = 0; i < count; i++)
        there[event[i].buffer] = event[i].added_bytes > 0;
    *live = heap_alloc(ir->buffer.count + 1u, sizeof **live);
    for (uint32_t b = 0; b < ir->buffer.count; b++)
        if (there[b] && ir->buffer.memory[b] == MEMORY_HBM)
            (*live)[live_count++] =
                (struct live_block){.offset = ir->buffer.offset[b],
                                    .bytes = ir_buffer_bytes(ir, (buffer_id){b}),
                                    .buffer = b};
    free(there);
    if (live_count > 0)
        qsort(*live, live_count, sizeof **live, compare_live_blocks);
    return live_count;
}

static void put_block(struct text *out, const struct ir *ir, uint64_t offset, uint64_t bytes,
                      uint32_t buffer)
{
    pickle_begin_dict(out);
    put_pickled_key_and_int(out, "address", DEVICE_MEMORY_ADDRESS + (int64_t)offset);
    put_pickled_key_and_int(out, "size", (int64_t)bytes);
    put_pickled_key_and_int(out, "requested_size", buffer == IR_NONE ? 0 : (int64_t)bytes);
    put_pickled_key_and_text(out, "state", buffer == IR_NONE ? "inactive" : "active_allocated");
    if (buffer != IR_NONE) {
        put_frames(out, ir, buffer);
    } else {
        pickle_put_text(out, "frames");
        pickle_begin_list(out);
        pickle_end_list(out);
    }
    pickle_end_dict(out);
}

/* Appends the arena as a segment. Its blocks are the live buffers and the gaps between them. */
static void put_segment(struct text *out, const struct ir *ir, const struct live_block *live,
                        size_t count, uint64_t arena)
{
    uint64_t at = 0, active = 0;
    for (size_t i = 0; i < count; i++)
        active += live[i].bytes;
    pickle_begin_dict(out);
    put_pickled_key_and_int(out, "device", 0);
    put_pickled_key_and_int(out, "address", DEVICE_MEMORY_ADDRESS);
    put_pickled_key_and_int(out, "total_size", (int64_t)arena);
    put_pickled_key_and_int(out, "allocated_size", (int64_t)active);
    put_pickled_key_and_int(out, "active_size", (int64_t)active);
    put_pickled_key_and_int(out, "requested_size", (int64_t)active);
    put_pickled_key_and_int(out, "stream", 0);
    put_pickled_key_and_text(out, "segment_type", "large");
    pickle_put_text(out, "is_expandable");
    pickle_put_bool(out, false);
    pickle_put_text(out, "frames");
    pickle_begin_list(out);
    pickle_end_list(out);
    pickle_put_text(out, "blocks");
    pickle_begin_list(out);
    for (size_t i = 0; i < count; i++) {
        if (live[i].offset > at)
            put_block(out, ir, at, live[i].offset - at, IR_NONE);
        put_block(out, ir, live[i].offset, live[i].bytes, live[i].buffer);
        at = live[i].offset + live[i].bytes;
    }
    if (at < arena)
        put_block(out, ir, at, arena - at, IR_NONE);
    pickle_end_list(out);
    pickle_end_dict(out);
}

void snapshot_print_pickle(struct text *out, const struct prediction *p, uint32_t rank)
{
    const struct ir *ir = &p->ir;
    uint64_t arena = ir->planned_bytes[MEMORY_HBM];
    struct memory_event *event;
    struct live_block *live;
    size_t all = memory_list_events(ir, &p->sim, rank, &event),
           count = count_events_to_peak(ir, event, all);
    size_t live_count = find_live_blocks(ir, event, count, &live);
    pickle_begin(out);
    pickle_begin_dict(out);
    pickle_put_text(out, "segments");
    pickle_begin_list(out);
    put_segment(out, ir, live, live_count, arena);
    pickle_end_list(out);
    pickle_put_text(out, "device_traces");
    pickle_begin_list(out);
    put_allocation_history(out, ir, event, count, arena);
    pickle_end_list(out);
    pickle_put_text(out, "allocator_settings");
    pickle_begin_dict(out);
    put_pickled_key_and_text(out, "made_by", "longhaul " LONGHAUL_VERSION " predict");
    pickle_end_dict(out);
    pickle_end_dict(out);
    pickle_end(out);
    free(live);
    free(event);
}

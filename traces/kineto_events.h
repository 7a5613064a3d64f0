/* traces/kineto_events.h: the events of a file of the PyTorch profiler as a table, from which other files make
 * traces, kernel times or issue costs. */
#ifndef TRACES_KINETO_EVENTS_H
#define TRACES_KINETO_EVENTS_H

#include "base/arena.h"
#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The types of events. A call is one into the runtime or driver of the GPU: a launch, a copy, a wait. If two events
 * have equal times, the one with the later type encloses the other. */
enum kineto_event_type { KINETO_CALL, KINETO_OPERATOR, KINETO_ANNOTATION, KINETO_KERNEL };

struct kineto_event {
    uint8_t type;            /* enum kineto_event_type */
    uint32_t name, lane;     /* rows of name[], lane[] */
    double start_us, end_us; /* since the first event */
    uint64_t external_id;    /* "External id", from 1; 0: none */
    /* a number that a call shares with the kernel or copy that it started, from 1; 0: none */
    uint64_t correlation;
    double flops, bytes; /* flops of an operator, bytes of a copy or message; 0: not recorded */
    /* for an operator, if events->reads_operator_inputs: the row of name[] with the shapes of its inputs,
     * "[1024,640][640,256]" (scalars are left out, and a list of tensors gives several shapes); UINT32_MAX: they
     * were not recorded */
    uint32_t input_shapes;
    /* enum step_dtype of its first input that has a shape; STEP_DTYPE_OTHER: unknown */
    uint8_t dtype;
    bool has_missing_shapes; /* an input is a list of tensors whose shapes the profiler left out */
};

/* The first GPU of the machine that was recorded, from the member "deviceProperties". */
struct kineto_device {
    char name[64];          /* "NVIDIA H200"; cut if it is longer; "": not recorded */
    double multiprocessors; /* 0: not recorded */
    double memory_bytes;    /* as the driver reports it; 0: not recorded */
};

/* All-zero is empty. Events are ordered by lane, then by start, then by descending end, so that
 * an event comes after the one that encloses it. */
struct kineto_events {
    bool reads_operator_inputs; /* set by the caller: operators' inputs are read, too */
    struct arena arena;
    struct kineto_event *events;
    size_t event_count, capacity;
    const char **name;
    size_t name_count;
    const char **lane; /* "cpu.1", "gpu0.7" */
    size_t lane_count;
    size_t read_event_count; /* number of events of any type, including those that are not kept */
    bool has_kernels;
    struct kineto_device device;
    /* from the member "distributedInfo"; rank_count 0: it was not recorded */
    uint32_t rank, rank_count;
};

enum status kineto_events_read(struct kineto_events *events, const char *name, const char *data,
                               size_t size, struct diag *diag);
void kineto_events_release(struct kineto_events *events);

#endif

/* schedule/reserved/reserved.h: the device memory that a published framework would reserve for a schedule.
 *
 * The arena is what the schedule needs; a framework reserves more: the process' CUDA context, buffers of every NCCL
 * communicator, workspaces of libraries, and the memory that its caching allocator keeps beyond live tensors. The
 * constants stand in one table with their sources (reserved_constants()); `longhaul list reserved` prints them.
 *
 * The allocator is replayed over the ops in list order: a tensor takes memory when the host issues the first op that
 * touches it and gives it back when the host has issued the last op of its free set, as in a framework that frees by
 * reference counting.
 *
 * The folder schedule/reserved/ models the device memory that a training framework reserves beyond what its tensors
 * take. */
#ifndef SCHEDULE_RESERVED_H
#define SCHEDULE_RESERVED_H

#include "base/text.h"
#include "models/cluster.h"
#include "schedule/choices/choices.h"
#include "schedule/ir/ir.h"
#include "schedule/reserved/replay.h"
#include "schedule/step/build.h"

#include <stdbool.h>
#include <stdint.h>

enum reserved_part {
    RESERVED_CONTEXT, /* the process' CUDA context and loaded libraries: device.cuda_context_bytes */
    RESERVED_NCCL,    /* buffers of communicators, outside the allocator */
    RESERVED_WORKSPACES, /* workspaces of cuBLAS, inside the allocator */
    RESERVED_BUCKETS, /* gradient buckets and placeholders that a framework holds throughout, inside the allocator */
    RESERVED_POSITION_TABLES, /* tables of positions that a framework holds throughout */
    RESERVED_TENSORS,         /* the most bytes of tensors that lived at once, each rounded up */
    /* the peak of the bytes that the allocator reserved, less the peak of the bytes in use */
    RESERVED_CACHE,
    RESERVED_PART_COUNT
};

/* The margin, as a share of the available memory, within which the verdict "fits" or "does not fit" is called too
 * close. We chose it: the error of verdicts has not been measured. */
#define RESERVED_VERDICT_MARGIN_SHARE 0.03

struct reserved {
    uint64_t bytes[RESERVED_PART_COUNT];
    uint64_t total_bytes; /* bytes of all parts */
    /* device memory except what the driver keeps; UINT64_MAX: infinite */
    uint64_t available_bytes;
    /* no segment exceeded the available memory; the allocator gives free segments back to the device before one
     * would */
    bool fits;
    /* it fits, but would not fit on a device with RESERVED_VERDICT_MARGIN_SHARE less memory */
    bool is_tight;
    uint32_t communicator_count;
    /* pinned host memory of a rank: PyTorch rounds a pinned block up to a power of two, and keeps freed blocks for
     * later ones of the same size */
    uint64_t pinned_bytes;
};

/* The settings of a framework's allocator, and the memory that the framework keeps in it besides the schedule's
 * tensors: that of step_bucket_bytes() and step_set_rotary_table_bytes(). All members are zero for a schedule that no
 * framework runs. */
struct reserved_options {
    bool has_expandable_segments; /* expandable_segments:True */
    /* gathered parameters are allocated on a stream of their own */
    bool allocates_gathers_in_own_pool;
    struct replay_options replay;
    /* The bytes of an element of the parameters, if every rank has all of them whole before the first step; nothing of
     * them then stays in the allocator. 0: no rank has them whole. */
    uint32_t bytes_per_whole_parameter;
    uint64_t bucket_bytes;
    uint64_t table_bytes[STEP_ROTARY_TABLES]; /* bytes; each table has a block of its own */
};

/* Computes the reserved memory of the role that needs most; `fits`, `is_tight` and `pinned_bytes` consider all roles.
 * The mesh must have no more ranks than the cluster. sm: ten times the device's compute capability (90 for 9.0). */
void reserved_compute(struct reserved *reserved, const struct ir *ir, const struct cluster *cluster,
                      int sm, struct reserved_options held);

/* Returns the bytes that the allocator holds at most, which PyTorch's memory_stats() has as "reserved_bytes.all.peak":
 * all parts but the context and NCCL's buffers. */
uint64_t reserved_allocator_bytes(const struct reserved *reserved);

/* Return the name of a part in CSV and JSON ("nccl"), and what people are shown for it ("NCCL buffers"). */
const char *reserved_part_name(enum reserved_part part);
const char *reserved_part_label(enum reserved_part part);

struct reserved_constant {
    const char *name, *value, *source;
};
const struct reserved_constant *reserved_constants(size_t *count);

#endif

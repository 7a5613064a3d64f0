/* traces/torch_snapshot.h: reads memory snapshots of PyTorch (torch.cuda.memory._dump_snapshot()).
 *
 * A snapshot is a pickle of the caching allocator's segments with their blocks, and of its last
 * events: allocations, failed ones too, and frees. docs/why.md says what is read. */
#ifndef TRACES_TORCH_SNAPSHOT_H
#define TRACES_TORCH_SNAPSHOT_H

#include "base/arena.h"
#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A place in the code, "modeling.py:120 forward", and the blocks in use that it allocated. */
struct snapshot_site {
    const char *name;
    uint64_t bytes;
    size_t block_count;
};

/* The memory of one device at the time of the last failed allocation in the history, or at the time
 * of the snapshot if there is none. The segments that are counted, and searched for free ranges,
 * are those of the snapshot in either case. */
struct torch_snapshot {
    struct arena arena;
    int64_t device;              /* of all devices the one whose segments have most bytes */
    uint64_t reserved_bytes;     /* bytes of all segments, which the process took from the device */
    uint64_t active_bytes;       /* bytes of the blocks in use, rounded up by the allocator */
    uint64_t requested_bytes;    /* bytes requested for the blocks in use */
    uint64_t largest_free_bytes; /* the largest free range within a segment */
    size_t segment_count, active_block_count; /* active: in use */
    bool has_failed_allocation;               /* the history has a failed allocation */
    uint64_t failed_bytes;                    /* bytes that the last failed allocation requested */
    uint64_t device_free_bytes;               /* bytes that the device had free at the failure */
    struct snapshot_site *site;               /* largest first */
    size_t site_count;
};

/* Reads a snapshot. name stands for the data in messages. *snapshot must be all-zero; release it in either case. */
enum status torch_snapshot_parse(struct torch_snapshot *snapshot, const char *name,
                                 const char *data, size_t size, struct diag *diag);
void torch_snapshot_release(struct torch_snapshot *snapshot);

#endif

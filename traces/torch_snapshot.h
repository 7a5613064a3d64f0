/* traces/torch_snapshot.h: memory snapshots of PyTorch (torch.cuda.memory._dump_snapshot()).
 *
 * A snapshot is a pickle of the caching allocator's segments with their blocks, and of the last
 * allocations and frees, among them the one that failed. docs/why.md says what is read. */
#ifndef TRACES_TORCH_SNAPSHOT_H
#define TRACES_TORCH_SNAPSHOT_H

#include "base/arena.h"
#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where blocks in use were allocated: "modeling.py:120 forward". */
struct snapshot_site {
    const char *name;
    uint64_t bytes;
    size_t blocks;
};

/* Memory of the device that holds most, in bytes: at the last failure, where the history has one. */
struct torch_snapshot {
    struct arena arena;
    int64_t device;
    uint64_t reserved;  /* of all segments, which the process took from the device */
    uint64_t active;    /* of blocks in use, rounded as the allocator does */
    uint64_t requested; /* what was asked for in these */
    uint64_t largest_free;
    size_t segments, blocks;    /* blocks in use */
    bool out_of_memory;         /* an allocation failed */
    uint64_t failed_bytes;      /* what it asked for */
    uint64_t device_free;       /* what the device had left then */
    struct snapshot_site *site; /* largest first */
    size_t sites;
};

/* name stands for the data in messages. *snapshot must be all-zero; release it in either case. */
enum status torch_snapshot_parse(struct torch_snapshot *snapshot, const char *name,
                                 const char *data, size_t size, struct diag *diag);
void torch_snapshot_release(struct torch_snapshot *snapshot);

#endif

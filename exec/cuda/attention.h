/* exec/cuda/attention.h: attention and its gradient on a device, planned before the step.
 *
 * cuDNN's fused kernels where it has them (16-bit types, no window, and a mask whose tile is a
 * square, a rectangle or aligned at its end: attention_cudnn.c), otherwise products by cuBLASLt
 * around kernels of our own (attention_tiles.c), which takes every shape and type and is also what
 * the fused kernels are checked with. */
#ifndef EXEC_CUDA_ATTENTION_H
#define EXEC_CUDA_ATTENTION_H

#include "exec/backend.h"
#include "exec/cuda/compute.h"
#include "exec/cuda/matmul.h"

enum attention_way {
    ATTENTION_WAY_AUTO, /* cuDNN where it can */
    ATTENTION_WAY_CUDNN,
    ATTENTION_WAY_TILES,
    ATTENTION_WAY_COUNT
};
extern const char *const attention_way_names[ATTENTION_WAY_COUNT];

struct attention; /* of one op: sizes, plans */

/* What is common to all of a run. */
struct attention_context {
    struct products *products;
    enum attention_way way;
};

/* The plan of a call (its addresses matter by their alignment alone). NULL and a message when no
 * way can do it. cuDNN's part is not built yet: attention_finish() does that, for many at once. */
struct attention *attention_new(const struct attention_context *context, const struct call *call,
                                struct diag *diag);
void attention_free(struct attention *attention);
size_t attention_scratch(const struct attention *attention);

/* Enqueues; NULL, or the words of whoever refused. */
const char *attention_run(const struct attention *attention, const struct call *call,
                          const struct cuda_place *place);

/* ---- attention_tiles.c ---- */

struct attention_tiles;
struct attention_tiles *attention_tiles_new(struct products *products, const struct call *call,
                                            struct diag *diag);
void attention_tiles_free(struct attention_tiles *tiles);
size_t attention_tiles_scratch(const struct attention_tiles *tiles);
const char *attention_tiles_run(const struct attention_tiles *tiles, const struct call *call,
                                const struct cuda_place *place);

#endif

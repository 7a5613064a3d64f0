/* cli/folder/snapshot_out.h: the memory of a predicted rank as a snapshot of PyTorch's allocator, which
 * pytorch.org/memory_viz shows and traces/torch_snapshot.h reads.
 *
 * The snapshot shows the moment at which the rank uses most memory: the arena is the only segment, buffers are
 * blocks at their planned offsets, and the history is the part of the step before that moment. A block's frames are
 * its buffer's name, category and layer. */
#ifndef CLI_FOLDER_SNAPSHOT_OUT_H
#define CLI_FOLDER_SNAPSHOT_OUT_H

#include "base/text.h"
#include "predict/prediction.h"

#include <stdint.h>

void snapshot_print_pickle(struct text *out, const struct prediction *prediction, uint32_t rank);

#endif

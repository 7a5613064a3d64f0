/* cli/folder/snapshot_out.h: the memory of a predicted rank as a snapshot of PyTorch's allocator, which
 * pytorch.org/memory_viz shows and traces/torch_snapshot.h reads.
 *
 * It is what a dump at the rank's fullest moment would hold: the arena is the one segment, buffers are
 * the blocks at their planned places, and the history is the step so far. A block's frames are its buffer's
 * name, category and layer. */
#ifndef CLI_FOLDER_SNAPSHOT_OUT_H
#define CLI_FOLDER_SNAPSHOT_OUT_H

#include "base/text.h"
#include "predict/prediction.h"

#include <stdint.h>

void snapshot_print(struct text *out, const struct prediction *prediction, uint32_t rank);

#endif

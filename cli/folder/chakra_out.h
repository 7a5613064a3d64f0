/* cli/folder/chakra_out.h: the schedule as Chakra execution traces (mlcommons/chakra, schema
 * et_def.proto), one file per rank, for simulators that read them (ASTRA-sim).
 *
 * There is a node per op that the rank executes. The ops that it waits for are its data dependencies, and the op
 * before it on its stream is its control dependency; a shift is a send and a receive. Durations are the predicted
 * ones.
 *
 * The folder cli/folder/ writes and reads the files that `predict -o` and `run -o` leave. */
#ifndef CLI_FOLDER_CHAKRA_OUT_H
#define CLI_FOLDER_CHAKRA_OUT_H

#include "base/text.h"
#include "predict/prediction.h"

#include <stdint.h>

void chakra_print(struct text *out, const struct prediction *prediction, uint32_t rank);

#endif

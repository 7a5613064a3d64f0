/* cli/folder/stored.h: reads the predictions and traces that predict -o and run -o wrote. */
#ifndef CLI_FOLDER_STORED_H
#define CLI_FOLDER_STORED_H

#include "base/diag.h"
#include "base/json.h"
#include "base/text.h"
#include "sim/waterfall.h"
#include "traces/trace.h"

#include <stdbool.h>

/* A prediction.json that was read. All-zero is empty. */
struct stored_prediction {
    struct text path, text;
    struct json json;
};

/* Reads and parses a prediction.json; `path` is the file or its folder. Refuses a file of another schema version. */
enum status stored_prediction_load(struct stored_prediction *stored, const char *path,
                                   struct diag *diag);
void stored_prediction_release(struct stored_prediction *stored);

/* Fills *waterfall from the prediction. Fails if the prediction is of a part of the model
 * (--scope). */
enum status stored_read_waterfall(struct stored_prediction *stored, struct waterfall *waterfall,
                                  struct diag *diag);

/* Reads the memory of a trace if `memory`, else its ops. path: a folder, whose memory.csv or ops.csv is read; or the
 * file itself, which for ops may be a recording of the PyTorch profiler. */
enum status stored_load_trace(struct trace *trace, const char *path, bool memory,
                              struct diag *diag);

#endif

/* cli/folder/stored.h: predictions and traces that were written by predict -o and run -o, read again. */
#ifndef CLI_FOLDER_STORED_H
#define CLI_FOLDER_STORED_H

#include "base/diag.h"
#include "base/json.h"
#include "base/text.h"
#include "sim/waterfall.h"
#include "traces/trace.h"

#include <stdbool.h>

/* A prediction.json. All-zero is empty. */
struct stored {
    struct text path, text;
    struct json json;
};

/* path: the file, or the folder that holds it. */
enum status stored_load(struct stored *stored, const char *path, struct diag *diag);
void stored_release(struct stored *stored);

enum status stored_waterfall(struct stored *stored, struct waterfall *waterfall, struct diag *diag);

/* Reads ops.csv, or memory.csv, of a folder, or the file that path names. */
enum status stored_trace(struct trace *trace, const char *path, bool memory, struct diag *diag);

#endif

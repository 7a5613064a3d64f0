/* cli/trace_folder.h: the folder that a trace is written into: ops.csv, memory.csv, trace.json and
 * what a command adds. */
#ifndef CLI_TRACE_FOLDER_H
#define CLI_TRACE_FOLDER_H

#include "base/text.h"
#include "traces/trace.h"

/* Whether a folder can be made, or written into if it is there: asked before work that takes long.
 * Nothing is left behind. */
enum status trace_folder_check(const char *folder, struct diag *diag);

/* Writes the trace's three files and `count` more, whose paths are names in the folder, which is made
 * when it is not there. All of them or, with one message, none: the folder never holds files of
 * different runs. */
enum status trace_folder_save(const struct trace *trace, const char *folder,
                              const struct text_file *more, size_t count, struct diag *diag);

#endif

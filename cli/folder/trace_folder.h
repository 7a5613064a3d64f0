/* cli/folder/trace_folder.h: the folder that a trace is written into: ops.csv, memory.csv, trace.json and
 * what a command adds. */
#ifndef CLI_FOLDER_TRACE_FOLDER_H
#define CLI_FOLDER_TRACE_FOLDER_H

#include "base/file_set.h"
#include "traces/trace.h"

/* Whether a folder can be made, or written into if it is there: asked before work that takes long.
 * Nothing is left behind. */
enum status trace_folder_check(const char *folder, struct diag *diag);

/* Adds the trace's three files to those of files->folder, which appear together. */
enum status trace_folder_add(const struct trace *trace, struct file_set *files, struct diag *diag);

/* Notes which files of the folder are of another run: of the kinds that commands write there, and not among
 * those of files. They stay, since who reads the folder may want them. */
void trace_folder_note_others(const struct file_set *files, struct diag *note);

/* Writes a folder of the three alone, and notes what else is there. */
enum status trace_folder_save(const struct trace *trace, const char *folder, struct diag *note,
                              struct diag *diag);

#endif

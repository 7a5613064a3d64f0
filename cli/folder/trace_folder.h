/* cli/folder/trace_folder.h: the folder into which a trace is written: ops.csv, memory.csv, trace.json and the files
 * that a command adds. */
#ifndef CLI_FOLDER_TRACE_FOLDER_H
#define CLI_FOLDER_TRACE_FOLDER_H

#include "base/file_set.h"
#include "traces/trace.h"

#include <stdbool.h>

/* The name of the page that `report` and `plan -o` write to a folder. */
#define TRACE_FOLDER_PAGE "report.html"

/* The name of the output of `plan --json`, in the folder that has the trace of the search's winner. */
#define TRACE_FOLDER_PLAN "plan.json"

/* Checks, before long work, that a folder can be created or, if it exists, written. It leaves nothing on the disk. */
enum status trace_folder_check_can_write(const char *folder, struct diag *diag);

/* Adds the trace's three files to `files`, a set of files that appear in their folder together,
 * when file_set_end() is called. */
enum status trace_folder_add_files(const struct trace *trace, struct file_set *files,
                                   struct diag *diag);

/* Notes the files in the folder that another run left: those that have names which commands write, and that are not in
 * `files`. They are not deleted, since the user may need them. */
void trace_folder_note_stale_files(const struct file_set *files, struct diag *note);

/* Writes a folder with only the trace's three files. Files that another run left there are noted. */
enum status trace_folder_save(const struct trace *trace, const char *folder, struct diag *note,
                              struct diag *diag);

#endif

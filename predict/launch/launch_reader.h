/* predict/launch/launch_reader.h: functions that the sources of launch_read() share. */
#ifndef PREDICT_LAUNCH_LAUNCH_READER_H
#define PREDICT_LAUNCH_LAUNCH_READER_H

#include "predict/launch/launch_parts.h"
#include "predict/launch/shell.h"

/* Reads the here-documents of a script whose command that starts the training has been read. One that is JSON with
 * DeepSpeed's keys is DeepSpeed's configuration, unless the command names another file. A document that is not read
 * becomes a remark. */
enum status launch_read_documents(struct launch *launch, const char *name,
                                  const struct shell_script *script, struct diag *diag);

/* Adds a settings file (.yaml, .yml, .json, .toml) that a command names to the files that are read after the present
 * one. Returns false if the reading did not begin with launch_read(), if the path ends otherwise, if too many files are
 * named, or if there is no such file, neither at that path nor in the folder of the script. */
bool launch_note_named_file(struct launch *launch, const char *path, struct loc at);
/* Does the same for a script that a command starts. */
bool launch_note_named_script(struct launch *launch, const char *path, struct loc at);
/* Adds a remark that a settings file does not exist. Returns false, and adds none, if the path does not end like that
 * of a settings file. */
bool launch_remark_missing_file(struct launch *launch, const char *path, struct loc at);
struct launch_format;
/* Returns the format of the first named file that belongs to a program, not to a launcher or DeepSpeed; NULL if there
 * is none. */
const struct launch_format *launch_format_of_named_files(const struct launch *launch);
/* Does what launch_note_named_file() does for all arguments whose value is the path of a settings file, and removes
 * these arguments from the settings. */
void launch_note_files_of_arguments(struct launch *launch, struct settings *settings);

#endif

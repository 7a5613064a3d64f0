/* predict/launch/launch_reader.h: functions that the sources of launch_read() share. */
#ifndef PREDICT_LAUNCH_LAUNCH_READER_H
#define PREDICT_LAUNCH_LAUNCH_READER_H

#include "predict/launch/launch_parts.h"
#include "predict/launch/shell.h"

/* Reads the here-documents of a script, after its command that starts the training. A document that is JSON with
 * DeepSpeed's keys is the DeepSpeed configuration, unless the command names another file as such or starts Megatron-LM
 * without naming one. Any other document becomes a remark. */
enum status launch_read_here_documents(struct launch *launch, const char *name,
                                       const struct shell_script *script, struct diag *diag);

/* Adds a settings file (.yaml, .yml, .json, .toml) that a command names to the files that are read after the present
 * one, and adds a remark. If the file was added before, only returns true. Returns false, and adds nothing, if the path
 * does not end like that of a settings file, if the file cannot be read, neither at the path nor in the folder of the
 * script, if too many files are named, or if only a text is read (launch_read_text()). */
bool launch_queue_named_file(struct launch *launch, const char *path, struct loc at);
/* Does what launch_queue_named_file() does, for a script that a command starts; its path may end in any way. */
bool launch_queue_named_script(struct launch *launch, const char *path, struct loc at);
/* Adds a remark that a settings file is not here. Returns false, and adds none, if the path does not end like that of a
 * settings file. */
bool launch_remark_missing_file(struct launch *launch, const char *path, struct loc at);
struct launch_format;
/* Returns the format of the first noted settings file that is a program's own, and not Accelerate's or DeepSpeed's.
 * NULL: there is none with a format that is read. */
const struct launch_format *launch_format_of_named_files(const struct launch *launch);
/* Calls launch_queue_named_file() for the values of all arguments that give a settings file, such as --config_file.
 * Removes those arguments whose file was noted from the settings, except those of DeepSpeed. */
void launch_queue_files_of_arguments(struct launch *launch, struct settings *settings);

#endif

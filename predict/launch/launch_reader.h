/* predict/launch/launch_reader.h: functions that the sources of launch_read() share. */
#ifndef PREDICT_LAUNCH_LAUNCH_READER_H
#define PREDICT_LAUNCH_LAUNCH_READER_H

#include "predict/launch/launch_parts.h"
#include "predict/launch/shell.h"

/* Reads the here-documents of a script, after the command that starts the training: JSON with DeepSpeed's keys is its
 * configuration, unless the command names another file. A document that is not read becomes a remark. */
enum status launch_read_documents(struct launch *launch, const char *name,
                                  const struct shell_script *script, struct diag *diag);

#endif

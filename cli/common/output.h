/* cli/common/output.h: what commands print alike: results, the head of JSON, notes, an interrupt's message,
 * versions. */
#ifndef CLI_COMMON_OUTPUT_H
#define CLI_COMMON_OUTPUT_H

#include "base/diag.h"
#include "base/json_write.h"
#include "base/text.h"

/* The version of the JSON that --json prints. It grows when a name changes, disappears or gets another meaning. */
enum { JSON_SCHEMA_VERSION = 4 };

/* Begins the object of a whole answer, and writes its first members: the version and the name of its schema, which is
 * docs/schema/NAME.json. */
void command_begin_json(struct json_out *json, const char *schema);

/* Writes a result to standard output. A full disk or a closed pipe is an error. */
enum status command_print(const struct text *text, struct diag *diag);

/* Prints notes on standard error, for example which values were filled in. */
void command_print_notes(const struct diag *note);

/* Call it last. If a signal arrived (base/interrupt.h) and *diag has a message, prints the message
 * and lets that signal end the program, so that the calling shell sees the cause. */
void command_exit_if_interrupted(const struct diag *diag);

/* Appends the versions of the program, of SimGrid and of GSL, a line each. Loads the module of the
 * simulator, which asks SimGrid for its version. */
enum status command_print_version(struct text *out, struct diag *diag);

/* Appends a line, without its line end, that differs between builds, for files of answers
 * (base/answer_file.h): the versions, and a digest of the files of the program and of the
 * simulator's module. Loads that module. */
enum status command_put_build_id(struct text *out, struct diag *diag);

#endif

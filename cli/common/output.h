/* cli/common/output.h: what every command prints: results, the head of JSON, notes, an interrupt's message, versions. */
#ifndef CLI_COMMON_OUTPUT_H
#define CLI_COMMON_OUTPUT_H

#include "base/diag.h"
#include "base/json_write.h"
#include "base/text.h"

/* The version of what --json prints: raised when a name changes, disappears or gets another meaning. */
enum { JSON_SCHEMA_VERSION = 3 };

/* Begins the object of a whole answer with the name of its schema, docs/schema/NAME.json, and the version. */
void command_begin_json(struct json_out *json, const char *schema);

/* Writes a result to standard output; a full disk or a closed pipe is an error. */
enum status command_print(const struct text *text, struct diag *diag);

/* Prints notes, such as which values were filled in, to standard error. Not called once an error was reported. */
void command_note(const struct diag *note);

/* Must be called last. If a signal arrived (base/interrupt.h) and *diag says so, it prints the message and lets that
 * signal end the program, so that the calling shell sees why the program ended. */
void command_end_if_interrupted(const struct diag *diag);

/* Appends the program's version and those of the libraries it runs with. */
void command_print_version(struct text *out);

#endif

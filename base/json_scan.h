/* base/json_scan.h: JSON text read for its grammar and its lines.
 *
 * json-c builds the values and keeps no positions. This scanner checks the text
 * first, so that every fault has a line, and finds the lines of values again
 * when someone asks for one. Private to base/json.c. */
#ifndef BASE_JSON_SCAN_H
#define BASE_JSON_SCAN_H

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_DEPTH_LIMIT = 64 };

struct json_facts {
    size_t values;
    size_t members; /* of all objects, duplicates included */
    bool comments;
};

/* Checks the grammar of data[0..size): strict JSON, apart from comments. */
enum status json_scan_check(const char *name, const char *data, size_t size,
                            struct json_facts *facts, struct diag *diag);

/* Reports the first key that stands twice in one object. The text must have
 * passed json_scan_check(). STATUS_OK when there is none. */
enum status json_scan_duplicate(const char *name, const char *data, size_t size, struct diag *diag);

/* Writes the line of each value (json_facts says how many there are), in the order in which they begin.
 * The text must have passed json_scan_check(). */
void json_scan_lines(const char *data, size_t size, uint32_t *line);

/* The line of the value at path, or of the deepest value on the way to it that
 * exists. The text must have passed json_scan_check(). */
uint32_t json_scan_line(const char *data, size_t size, const char *path);

/* Overwrites comments with blanks; line ends stay. The text must have passed json_scan_check(). */
void json_scan_blank(char *data, size_t size);

#endif

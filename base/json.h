/* base/json.h: a JSON text as values with typed getters, and messages with the line and path of a fault.
 *
 * A document is strict JSON with comments allowed (base/json_pull.h). A node is one value in it
 * together with its path ("nodes.gpu.memory[0]"), so that a message reads
 * "a100.json:12: error: nodes.gpu.memory: expected a number". A reader that knows
 * all keys of an object calls json_reject_unknown_keys(), which reports the first other one.
 *
 * Strings are UTF-8 and hold no NUL; a configuration has at most 16 MiB, a thousand times its usual size.
 * Functions may be called on a node of the wrong type: getters report it, finders find nothing. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/arena.h"
#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_value;

struct json {
    struct arena arena; /* values and paths */
    const char *name;   /* for messages; borrowed */
    const struct json_value *root;
};

struct json_node {
    struct json *document;
    const struct json_value *value; /* NULL: absent, or null */
    const char *path;
    uint32_t line; /* for an absent value, the line of the deepest value on its path */
};

/* Parses data[0..size), which must outlive *json. Depth is limited to 64, and a
 * duplicate key, a trailing comma or trailing text is an error. */
enum status json_parse(struct json *json, const char *name, const char *data, size_t size,
                       struct diag *diag);
/* Does what json_parse() does, for a text of at most `limit` bytes in place of 16 MiB. Each value takes 40 bytes of
 * memory. */
enum status json_parse_with_byte_limit(struct json *json, size_t limit, const char *name,
                                       const char *data, size_t size, struct diag *diag);
/* Parses each line of data[0..size) that is not blank as a document of its own (JSON Lines), and calls read() with its
 * value, which read() must not keep. Messages name the line. Ends at the first fault of a line or of read(), and
 * returns its status. */
enum status json_read_lines(const char *name, const char *data, size_t size,
                            enum status (*read)(struct json_node value, void *context,
                                                struct diag *diag),
                            void *context, struct diag *diag);
void json_release(struct json *json);
struct json_node json_root(struct json *json);

/* Returns the place of a node, for messages of the caller. */
struct loc json_loc(struct json_node node);
/* Adds "file:line: error: path: ..." and returns STATUS_BAD_INPUT. */
enum status json_error(struct json_node node, struct diag *diag, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns the member `key` of an object. If there is none, or if it is null, the node has `value` NULL. */
struct json_node json_find_member(struct json_node object, const char *key);
/* json_element_at() returns the i-th element of an array; if there is none, or if it is null, the node has `value`
 * NULL. json_element_count() returns the number of elements; 0 for a node that is no array. */
struct json_node json_element_at(struct json_node array, size_t i);
size_t json_element_count(struct json_node array);
/* Returns the i-th member of an object, in file order, and sets *key to its key. json_member_count() returns the number
 * of members; 0 for a node that is no object. */
struct json_node json_member_at(struct json_node object, size_t i, const char **key);
size_t json_member_count(struct json_node object);

bool json_is_object(struct json_node node);
bool json_is_array(struct json_node node);
bool json_is_string(struct json_node node);
bool json_is_number(struct json_node node);

/* Read a required member of an object. A member that is absent, or of the wrong type, or a number outside low to high,
 * is an error. Strings live as long as the document. */
enum status json_get_object(struct json_node object, const char *key, struct json_node *out,
                            struct diag *diag);
enum status json_get_array(struct json_node object, const char *key, struct json_node *out,
                           struct diag *diag);
enum status json_get_string(struct json_node object, const char *key, const char **out,
                            struct diag *diag);
enum status json_get_i64(struct json_node object, const char *key, int64_t low, int64_t high,
                         int64_t *out, struct diag *diag);
enum status json_get_double(struct json_node object, const char *key, double low, double high,
                            double *out, struct diag *diag);
enum status json_get_bool(struct json_node object, const char *key, bool *out, struct diag *diag);

/* Read the node itself as a value of a type. Another type, or a number outside low to high, is an error. */
enum status json_as_bool(struct json_node node, bool *out, struct diag *diag);
enum status json_as_double(struct json_node node, double low, double high, double *out,
                           struct diag *diag);
enum status json_as_i64(struct json_node node, int64_t low, int64_t high, int64_t *out,
                        struct diag *diag);
enum status json_as_string(struct json_node node, const char **out, struct diag *diag);

/* Fails if a node is no object, or has a member whose key is not in known[0..count). The error
 * names the first such member, and suggests a known key if one is near. */
enum status json_reject_unknown_keys(struct json_node object, const char *const *known,
                                     size_t count, struct diag *diag);

#endif

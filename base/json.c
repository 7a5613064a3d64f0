#include "base/json.h"

#include "base/json_scan.h"
#include "base/text.h"

#include <assert.h>
#include <errno.h>
#include <float.h>
#include <json-c/json.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* json-c needs some forty bytes for each of text: 100 MB of it would take gigabytes. */
enum { SIZE_LIMIT = 16 << 20 };

/* Adds value and all that is in it. */
static void count(json_object *value, struct json_facts *facts)
{
    facts->values++;
    if (json_object_is_type(value, json_type_object)) {
        json_object_object_foreach(value, key, member)
        {
            (void)key;
            facts->members++;
            count(member, facts);
        }
    } else if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(value); i++)
            count(json_object_array_get_idx(value, i), facts);
    }
}

/* text has passed the scanner: what json-c refuses, it was refused memory for, or the fault is ours. It may
 * also go on without a value that there was no memory for, which json_parse() looks for.
 * *value may be NULL: the document `null`. */
static void build(const char *text, size_t size, json_object **value)
{
    /* One level more than the scanner lets through: json-c counts scalars too. */
    json_tokener *tokener = heap_check(json_tokener_new_ex(JSON_DEPTH_LIMIT + 2));
    enum json_tokener_error error = json_tokener_continue;
    errno = 0;
    for (size_t at = 0; at < size && error == json_tokener_continue;) {
        size_t left = size - at;
        int chunk = left < INT_MAX / 2 ? (int)left : INT_MAX / 2;
        *value = json_tokener_parse_ex(tokener, text + at, chunk);
        error = json_tokener_get_error(tokener);
        at += (size_t)chunk;
    }
    if (error == json_tokener_continue) { /* a number ends only where something follows it */
        *value = json_tokener_parse_ex(tokener, " ", 1);
        error = json_tokener_get_error(tokener);
    }
    if (errno == ENOMEM && (error != json_tokener_success || *value == NULL))
        heap_out();
    assert(error == json_tokener_success);
    json_tokener_free(tokener);
}

enum status json_parse(struct json *json, const char *name, const char *data, size_t size,
                       struct diag *diag)
{
    if (!data)
        data = ""; /* an empty struct text */
    *json = (struct json){.name = name, .data = data, .size = size};
    if (size > SIZE_LIMIT)
        return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                          "%zu bytes are too many: a configuration has at most %d MiB", size,
                          SIZE_LIMIT >> 20);
    struct json_facts facts;
    enum status status = json_scan_check(name, data, size, &facts, diag);
    if (status != STATUS_OK)
        return status;
    json->value_count = facts.values;
    if (facts.comments) {
        char *copy = heap_alloc(size, 1);
        memcpy(copy, data, size);
        json_scan_blank(copy, size);
        build(copy, size, &json->root);
        free(copy);
    } else {
        build(data, size, &json->root);
    }
    /* json-c keeps the last of two members with one key. Counting finds that
     * there are such, and only then are they looked for. */
    struct json_facts built = {0};
    count(json->root, &built);
    if (built.members != facts.members || built.values != facts.values) {
        status = json_scan_duplicate(name, data, size, diag);
        if (status == STATUS_OK)
            heap_out();
        json_release(json);
    }
    return status;
}

void json_release(struct json *json)
{
    json_object_put(json->root);
    arena_release(&json->arena);
    *json = (struct json){0};
}

struct json_node json_root(struct json *json)
{
    return (struct json_node){.doc = json, .value = json->root, .path = ""};
}

/* ---- lines ---- */

struct json_line {
    const json_object *value;
    uint32_t line;
};

/* Adds value and what is in it. *line is the line of value, and goes on to that of the next. */
static void add_lines(struct json *json, json_object *value, const uint32_t **line)
{
    if (value)
        json->lines[json->line_count++] = (struct json_line){.value = value, .line = **line};
    ++*line;
    if (json_object_is_type(value, json_type_object)) {
        json_object_object_foreach(value, key, member)
        {
            (void)key;
            add_lines(json, member, line);
        }
    } else if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(value); i++)
            add_lines(json, json_object_array_get_idx(value, i), line);
    }
}

static int by_address(const void *left, const void *right)
{
    uintptr_t a = (uintptr_t)((const struct json_line *)left)->value;
    uintptr_t b = (uintptr_t)((const struct json_line *)right)->value;
    return (a > b) - (a < b);
}

/* json-c keeps members in the order of the text, so that the n-th value of the one is that of the other. */
static void make_lines(struct json *json)
{
    uint32_t *line = heap_alloc(json->value_count, sizeof *line);
    json_scan_lines(json->data, json->size, line);
    json->lines = arena_array(&json->arena, json->value_count, sizeof *json->lines);
    const uint32_t *next = line;
    add_lines(json, json->root, &next);
    assert(next == line + json->value_count);
    free(line);
    qsort(json->lines, json->line_count, sizeof *json->lines, by_address);
}

/* A reader asks for the lines of hundreds of values, all of which take one scan. What is not there, or
 * null, has no address and only gets into messages: it is looked for by its path. */
struct loc json_loc(struct json_node node)
{
    struct json *json = node.doc;
    struct loc at = {.name = json->name};
    if (!node.value) {
        at.line = json_scan_line(json->data, json->size, node.path);
        return at;
    }
    if (!json->lines)
        make_lines(json);
    struct json_line wanted = {.value = node.value};
    const struct json_line *found =
        bsearch(&wanted, json->lines, json->line_count, sizeof wanted, by_address);
    assert(found);
    at.line = found->line;
    return at;
}

/* ---- messages ---- */

enum status json_error(struct json_node node, struct diag *diag, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, args);
    assert(size >= 0);
    char *message = heap_alloc((size_t)size + 1, 1);
    vsnprintf(message, (size_t)size + 1, format, again);
    va_end(again);
    va_end(args);
    diag_error(diag, json_loc(node), STATUS_BAD_INPUT, "%s%s%s", node.path,
               node.path[0] ? ": " : "", message);
    free(message);
    return STATUS_BAD_INPUT;
}

static const char *path_of_key(struct json_node object, const char *key)
{
    return arena_printf(&object.doc->arena, "%s%s%s", object.path, object.path[0] ? "." : "", key);
}

struct json_node json_find(struct json_node object, const char *key)
{
    struct json_node node = {.doc = object.doc, .path = path_of_key(object, key)};
    if (json_is_object(object))
        json_object_object_get_ex(object.value, key, &node.value);
    return node;
}

struct json_node json_at(struct json_node array, size_t i)
{
    struct json_node node = {.doc = array.doc};
    node.path = arena_printf(&array.doc->arena, "%s[%zu]", array.path, i);
    if (i < json_count(array))
        node.value = json_object_array_get_idx(array.value, i);
    return node;
}

size_t json_count(struct json_node array)
{
    return json_is_array(array) ? json_object_array_length(array.value) : 0;
}

struct json_node json_member(struct json_node object, size_t i, const char **key)
{
    assert(i < json_members(object));
    struct json *json = object.doc;
    const struct lh_entry *entry = json->walk_entry;
    size_t at = json->walk_i;
    if (json->walk_object != object.value || at > i) {
        entry = lh_table_head(json_object_get_object(object.value));
        at = 0;
    }
    for (; at < i; at++)
        entry = lh_entry_next(entry);
    json->walk_object = object.value;
    json->walk_entry = entry;
    json->walk_i = i;
    *key = lh_entry_k(entry);
    return (struct json_node){
        .doc = json, .value = (json_object *)lh_entry_v(entry), .path = path_of_key(object, *key)};
}

size_t json_members(struct json_node object)
{
    return json_is_object(object) ? (size_t)json_object_object_length(object.value) : 0;
}

bool json_is_object(struct json_node node)
{
    return json_object_is_type(node.value, json_type_object);
}

bool json_is_array(struct json_node node)
{
    return json_object_is_type(node.value, json_type_array);
}

bool json_is_string(struct json_node node)
{
    return json_object_is_type(node.value, json_type_string);
}

bool json_is_number(struct json_node node)
{
    return node.value && (json_object_is_type(node.value, json_type_int) ||
                          json_object_is_type(node.value, json_type_double));
}

/* The value as text, which lives as long as it does. */
static const char *print(struct json_node node, int flags)
{
    const char *text = json_object_to_json_string_ext(node.value, JSON_C_TO_STRING_PLAIN | flags);
    if (!text)
        heap_out();
    return text;
}

/* "found a string", with the value where it is short. */
static enum status mistyped(struct json_node node, const char *wanted, struct diag *diag)
{
    if (!node.value)
        return json_error(node, diag, "missing: expected %s", wanted);
    enum json_type type = json_object_get_type(node.value);
    if (type == json_type_object)
        return json_error(node, diag, "expected %s, found an object", wanted);
    if (type == json_type_array)
        return json_error(node, diag, "expected %s, found an array", wanted);
    const char *text = print(node, JSON_C_TO_STRING_NOSLASHESCAPE);
    return json_error(node, diag, "expected %s, found %.60s", wanted, text);
}

enum status json_get_object(struct json_node object, const char *key, struct json_node *out,
                            struct diag *diag)
{
    *out = json_find(object, key);
    return json_is_object(*out) ? STATUS_OK : mistyped(*out, "an object", diag);
}

enum status json_get_array(struct json_node object, const char *key, struct json_node *out,
                           struct diag *diag)
{
    *out = json_find(object, key);
    return json_is_array(*out) ? STATUS_OK : mistyped(*out, "an array", diag);
}

enum status json_get_string(struct json_node object, const char *key, const char **out,
                            struct diag *diag)
{
    return json_as_string(json_find(object, key), out, diag);
}

enum status json_get_i64(struct json_node object, const char *key, int64_t low, int64_t high,
                         int64_t *out, struct diag *diag)
{
    return json_as_i64(json_find(object, key), low, high, out, diag);
}

enum status json_get_double(struct json_node object, const char *key, double low, double high,
                            double *out, struct diag *diag)
{
    return json_as_double(json_find(object, key), low, high, out, diag);
}

enum status json_get_bool(struct json_node object, const char *key, bool *out, struct diag *diag)
{
    return json_as_bool(json_find(object, key), out, diag);
}

enum status json_as_bool(struct json_node node, bool *out, struct diag *diag)
{
    if (!node.value || !json_object_is_type(node.value, json_type_boolean))
        return mistyped(node, "true or false", diag);
    *out = json_object_get_boolean(node.value);
    return STATUS_OK;
}

enum status json_as_string(struct json_node node, const char **out, struct diag *diag)
{
    if (!json_is_string(node))
        return mistyped(node, "a string", diag);
    *out = json_object_get_string(node.value);
    return STATUS_OK;
}

/* A limit that the type sets anyway is not worth naming. */
static enum status out_of_range(struct json_node node, bool has_low, double low, bool has_high,
                                double high, struct diag *diag)
{
    const char *found = print(node, 0);
    struct text range = {0};
    text_puts(&range, has_low && has_high ? "" : has_low ? "at least " : "at most ");
    if (has_low)
        text_put_double(&range, low);
    if (has_low && has_high)
        text_puts(&range, " to ");
    if (has_high)
        text_put_double(&range, high);
    json_error(node, diag, "%.60s is out of range: expected %s", found, range.data);
    text_release(&range);
    return STATUS_BAD_INPUT;
}

enum status json_as_double(struct json_node node, double low, double high, double *out,
                           struct diag *diag)
{
    if (!json_is_number(node))
        return mistyped(node, "a number", diag);
    double value = json_object_get_double(node.value);
    /* json-c reads an integer beyond int64_t right only as an unsigned one. */
    if (json_object_is_type(node.value, json_type_int) && value >= 0)
        value = (double)json_object_get_uint64(node.value);
    if (!isfinite(value))
        return json_error(node, diag, "this number is too large");
    if (value < low || value > high)
        return out_of_range(node, low > -DBL_MAX, low, high < DBL_MAX, high, diag);
    *out = value;
    return STATUS_OK;
}

enum status json_as_i64(struct json_node node, int64_t low, int64_t high, int64_t *out,
                        struct diag *diag)
{
    if (!json_is_number(node))
        return mistyped(node, "a whole number", diag);
    int64_t value;
    if (json_object_is_type(node.value, json_type_int)) {
        value = json_object_get_int64(node.value);
        if (value > 0 && json_object_get_uint64(node.value) > INT64_MAX)
            return out_of_range(node, low > INT64_MIN, (double)low, true, (double)high, diag);
    } else {
        /* 1e6 and 32.0 are whole as well. */
        double number = json_object_get_double(node.value);
        if (!(fabs(number) <= 0x1p53) || number != floor(number))
            return mistyped(node, "a whole number", diag);
        value = (int64_t)number;
    }
    if (value < low || value > high)
        return out_of_range(node, low > INT64_MIN, (double)low, high < INT64_MAX, (double)high,
                            diag);
    *out = value;
    return STATUS_OK;
}

enum status json_only(struct json_node object, const char *const *known, size_t count,
                      struct diag *diag)
{
    if (!json_is_object(object))
        return mistyped(object, "an object", diag);
    json_object_object_foreach(object.value, key, value)
    {
        size_t i = 0;
        while (i < count && strcmp(known[i], key) != 0)
            i++;
        if (i < count)
            continue;
        struct json_node node = {.doc = object.doc, .value = value};
        node.path = path_of_key(object, key);
        const char *nearest = diag_nearest(key, known, count);
        if (nearest)
            return json_error(node, diag, "unknown key: did you mean '%s'?", nearest);
        return json_error(node, diag, "unknown key");
    }
    return STATUS_OK;
}

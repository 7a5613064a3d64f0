#include "base/json.h"

#include "base/c_locale.h"
#include "base/json_pull.h"
#include "base/text.h"

#include <assert.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The most bytes of a text of json_parse(). A value takes 40 bytes of memory, and two bytes of text can be a value, so
 * 100 MB of text could take gigabytes. */
enum { SIZE_LIMIT = 16 << 20 };

struct json_value {
    const char *key; /* if the value is a member of an object: its key; else NULL */
    union {
        const char *text; /* a scalar's text as it is written; strings without their quotes */
        /* the values in an object or array, in the order of the text */
        const struct json_value *children;
    } content;
    uint32_t size; /* bytes of the text, or number of children */
    uint32_t line, key_line, key_column;
    enum json_token type : 8; /* JSON_OBJECT, _ARRAY, _STRING, _NUMBER or _LITERAL */
};

/* ---- building ---- */

/* The state of building a document. A value stays on the stack until all children of its parent are read. These are
 * then next to each other at the top of the stack, and are moved to the document's arena. */
struct builder {
    struct json *json;
    struct json_pull pull;
    struct json_value *value; /* [count] the stack, on the heap */
    size_t count, capacity;
    struct diag *diag;
};

static const char *unescape(struct json *json, const char *text, size_t size)
{
    char *out = arena_alloc(&json->arena, size + 1);
    json_unescape(text, size, out, size + 1);
    return out;
}

struct json_member_at {
    const struct json_value *value;
};

static int compare_keys(const void *left, const void *right)
{
    const struct json_value *a = ((const struct json_member_at *)left)->value;
    const struct json_value *b = ((const struct json_member_at *)right)->value;
    const int order = strcmp(a->key, b->key);
    return order != 0 ? order : (a > b) - (a < b);
}

/* Reports the first key that stands twice in an object. */
static enum status check_keys_are_unique(const struct builder *b, const struct json_value *object)
{
    const struct json_value *twice = NULL;
    struct json_member_at *member = heap_alloc(object->size, sizeof *member);
    for (size_t i = 0; i < object->size; i++)
        member[i].value = &object->content.children[i];
    qsort(member, object->size, sizeof *member, compare_keys);
    for (size_t i = 1; i < object->size; i++)
        if (strcmp(member[i - 1].value->key, member[i].value->key) == 0 &&
            (!twice || member[i].value < twice))
            twice = member[i].value;
    free(member);
    if (!twice)
        return STATUS_OK;
    const struct loc at = {b->pull.name, twice->key_line, twice->key_column};
    return diag_error(b->diag, at, STATUS_BAD_INPUT, "duplicate key '%s'", twice->key);
}

static enum status build_value(struct builder *b, enum json_token token, struct json_value *value);

static enum status build_children(struct builder *b, struct json_value *parent)
{
    const size_t begin = b->count;
    for (;;) {
        struct json_value value = {0};
        enum json_token token;
        enum status status = json_pull_next(&b->pull, &token, b->diag);
        if (status == STATUS_OK && token == JSON_KEY) {
            value.key = unescape(b->json, b->pull.text, b->pull.size);
            value.key_line = b->pull.token_line;
            value.key_column = b->pull.token_column;
            status = json_pull_next(&b->pull, &token, b->diag);
        }
        if (status == STATUS_OK && (token == JSON_OBJECT_END || token == JSON_ARRAY_END))
            break;
        if (status == STATUS_OK)
            status = build_value(b, token, &value);
        if (status != STATUS_OK)
            return status;
        b->value = heap_grow(b->value, &b->capacity, b->count + 1, sizeof *b->value);
        b->value[b->count++] = value;
    }
    const size_t count = b->count - begin;
    struct json_value *child = arena_array(&b->json->arena, count, sizeof *child);
    if (count > 0)
        memcpy(child, b->value + begin, count * sizeof *child);
    b->count = begin;
    parent->content.children = child;
    parent->size = (uint32_t)count;
    return parent->type == JSON_OBJECT && count > 1 ? check_keys_are_unique(b, parent) : STATUS_OK;
}

static enum status build_value(struct builder *b, enum json_token token, struct json_value *value)
{
    value->type = token;
    value->line = b->pull.token_line;
    if (token == JSON_OBJECT || token == JSON_ARRAY)
        return build_children(b, value);
    value->content.text = b->pull.text;
    value->size = (uint32_t)b->pull.size;
    return STATUS_OK;
}

/* Parses data[0..size), whose first line is line `line` of the text `name`. */
static enum status parse_from_line(struct json *json, const char *name, uint32_t line,
                                   const char *data, size_t size, struct diag *diag)
{
    *json = (struct json){.name = name};
    struct builder b = {.json = json, .diag = diag};
    struct json_value *root = arena_alloc(&json->arena, sizeof *root);
    enum json_token token;
    json_pull_init(&b.pull, JSON_UTF8_WITHOUT_NAN, name, data, size);
    b.pull.line = line;
    enum status status = json_pull_next(&b.pull, &token, diag);
    if (status == STATUS_OK)
        status = build_value(&b, token, root);
    if (status == STATUS_OK)
        status = json_pull_next(&b.pull, &token, diag); /* the end of the text */
    free(b.value);
    json->root = root;
    if (status != STATUS_OK)
        json_release(json);
    return status;
}

enum status json_parse_with_byte_limit(struct json *json, size_t limit, const char *name,
                                       const char *data, size_t size, struct diag *diag)
{
    *json = (struct json){.name = name};
    if (size > limit)
        return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                          "%zu bytes are too many: at most %zu MiB are read", size, limit >> 20);
    return parse_from_line(json, name, 1, data, size, diag);
}

enum status json_parse(struct json *json, const char *name, const char *data, size_t size,
                       struct diag *diag)
{
    *json = (struct json){.name = name};
    if (size > SIZE_LIMIT)
        return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                          "%zu bytes are too many: a configuration has at most %d MiB", size,
                          SIZE_LIMIT >> 20);
    return json_parse_with_byte_limit(json, SIZE_LIMIT, name, data, size, diag);
}

enum status json_read_lines(const char *name, const char *data, size_t size,
                            enum status (*read)(struct json_node value, void *context,
                                                struct diag *diag),
                            void *context, struct diag *diag)
{
    enum status status = STATUS_OK;
    uint32_t line = 1;
    for (size_t at = 0; status == STATUS_OK && at < size; line++) {
        const char *start = data + at, *end = memchr(start, '\n', size - at);
        const size_t length = end == NULL ? size - at : (size_t)(end - start);
        at += length + 1;
        size_t blank_count = 0;
        while (blank_count < length && strchr(" \t\r", start[blank_count]) != NULL)
            blank_count++;
        if (blank_count == length)
            continue;
        struct json json;
        status = parse_from_line(&json, name, line, start, length, diag);
        if (status == STATUS_OK) {
            status = read(json_root(&json), context, diag);
            json_release(&json);
        }
    }
    return status;
}

void json_release(struct json *json)
{
    arena_release(&json->arena);
    *json = (struct json){0};
}

/* ---- nodes ---- */

/* Returns the node of a value. The node of a null has the null's line, but `value` NULL. */
static struct json_node make_node(struct json *doc, const struct json_value *value,
                                  const char *path)
{
    const bool null = value->type == JSON_LITERAL && value->content.text[0] == 'n';
    return (struct json_node){
        .document = doc, .value = null ? NULL : value, .path = path, .line = value->line};
}

struct json_node json_root(struct json *json)
{
    return make_node(json, json->root, "");
}

struct loc json_loc(struct json_node node)
{
    return (struct loc){.name = node.document->name, .line = node.line};
}

static bool has_type(struct json_node node, enum json_token type)
{
    return node.value != NULL && node.value->type == type;
}

static const char *path_of_key(struct json_node object, const char *key)
{
    return arena_printf(&object.document->arena, "%s%s%s", object.path, object.path[0] ? "." : "",
                        key);
}

struct json_node json_find_member(struct json_node object, const char *key)
{
    const char *path = path_of_key(object, key);
    for (size_t i = 0; i < json_member_count(object); i++)
        if (strcmp(object.value->content.children[i].key, key) == 0)
            return make_node(object.document, &object.value->content.children[i], path);
    return (struct json_node){.document = object.document, .path = path, .line = object.line};
}

struct json_node json_element_at(struct json_node array, size_t i)
{
    const char *path = arena_printf(&array.document->arena, "%s[%zu]", array.path, i);
    if (i < json_element_count(array))
        return make_node(array.document, &array.value->content.children[i], path);
    return (struct json_node){.document = array.document, .path = path, .line = array.line};
}

size_t json_element_count(struct json_node array)
{
    return json_is_array(array) ? array.value->size : 0;
}

struct json_node json_member_at(struct json_node object, size_t i, const char **key)
{
    assert(i < json_member_count(object));
    const struct json_value *value = &object.value->content.children[i];
    *key = value->key;
    return make_node(object.document, value, path_of_key(object, value->key));
}

size_t json_member_count(struct json_node object)
{
    return json_is_object(object) ? object.value->size : 0;
}

bool json_is_object(struct json_node node)
{
    return has_type(node, JSON_OBJECT);
}

bool json_is_array(struct json_node node)
{
    return has_type(node, JSON_ARRAY);
}

bool json_is_string(struct json_node node)
{
    return has_type(node, JSON_STRING);
}

bool json_is_number(struct json_node node)
{
    return has_type(node, JSON_NUMBER);
}

/* ---- messages, and getters that report a wrong type ---- */

enum status json_error(struct json_node node, struct diag *diag, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int size = c_vsnprintf(NULL, 0, format, args);
    assert(size >= 0);
    char *message = heap_alloc((size_t)size + 1, 1);
    c_vsnprintf(message, (size_t)size + 1, format, again);
    va_end(again);
    va_end(args);
    diag_error(diag, json_loc(node), STATUS_BAD_INPUT, "%s%s%s", node.path,
               node.path[0] ? ": " : "", message);
    free(message);
    return STATUS_BAD_INPUT;
}

/* Points *text at a scalar as it is written in the document. Returns its length in bytes, but at
 * most 60, for messages. */
static int describe_scalar_as_written(struct json_node node, const char **text)
{
    const uint32_t quote = json_is_string(node) ? 1 : 0, size = node.value->size + 2 * quote;
    *text = node.value->content.text - quote;
    return size < 60 ? (int)size : 60;
}

/* Reports that a node has the wrong type, "expected a number, found "x"", with the value cut to 60 bytes; or that it is
 * missing. */
static enum status report_type_error(struct json_node node, const char *wanted, struct diag *diag)
{
    if (!node.value)
        return json_error(node, diag, "missing: expected %s", wanted);
    if (json_is_object(node))
        return json_error(node, diag, "expected %s, found an object", wanted);
    if (json_is_array(node))
        return json_error(node, diag, "expected %s, found an array", wanted);
    const char *text;
    const int size = describe_scalar_as_written(node, &text);
    return json_error(node, diag, "expected %s, found %.*s", wanted, size, text);
}

enum status json_get_object(struct json_node object, const char *key, struct json_node *out,
                            struct diag *diag)
{
    *out = json_find_member(object, key);
    return json_is_object(*out) ? STATUS_OK : report_type_error(*out, "an object", diag);
}

enum status json_get_array(struct json_node object, const char *key, struct json_node *out,
                           struct diag *diag)
{
    *out = json_find_member(object, key);
    return json_is_array(*out) ? STATUS_OK : report_type_error(*out, "an array", diag);
}

enum status json_get_string(struct json_node object, const char *key, const char **out,
                            struct diag *diag)
{
    return json_as_string(json_find_member(object, key), out, diag);
}

enum status json_get_i64(struct json_node object, const char *key, int64_t low, int64_t high,
                         int64_t *out, struct diag *diag)
{
    return json_as_i64(json_find_member(object, key), low, high, out, diag);
}

enum status json_get_double(struct json_node object, const char *key, double low, double high,
                            double *out, struct diag *diag)
{
    return json_as_double(json_find_member(object, key), low, high, out, diag);
}

enum status json_get_bool(struct json_node object, const char *key, bool *out, struct diag *diag)
{
    return json_as_bool(json_find_member(object, key), out, diag);
}

enum status json_as_bool(struct json_node node, bool *out, struct diag *diag)
{
    if (!has_type(node, JSON_LITERAL)) /* a null has no value */
        return report_type_error(node, "true or false", diag);
    *out = node.value->content.text[0] == 't';
    return STATUS_OK;
}

enum status json_as_string(struct json_node node, const char **out, struct diag *diag)
{
    if (!json_is_string(node))
        return report_type_error(node, "a string", diag);
    *out = unescape(node.document, node.value->content.text, node.value->size);
    return STATUS_OK;
}

/* Reports a number outside its range. The message gives `low` only with has_low, and `high` only with has_high, since a
 * limit that is that of the type tells the user nothing. At least one of the two must be set. */
static enum status report_out_of_range(struct json_node node, bool has_low, double low,
                                       bool has_high, double high, struct diag *diag)
{
    const char *found;
    const int size = describe_scalar_as_written(node, &found);
    struct text range = {0};
    text_puts(&range, has_low && has_high ? "" : has_low ? "at least " : "at most ");
    if (has_low)
        text_put_double(&range, low);
    if (has_low && has_high)
        text_puts(&range, " to ");
    if (has_high)
        text_put_double(&range, high);
    json_error(node, diag, "%.*s is out of range: expected %s", size, found, range.data);
    text_release(&range);
    return STATUS_BAD_INPUT;
}

enum status json_as_double(struct json_node node, double low, double high, double *out,
                           struct diag *diag)
{
    if (!json_is_number(node))
        return report_type_error(node, "a number", diag);
    double value;
    if (!parse_double(node.value->content.text, node.value->size, &value))
        return json_error(node, diag, "this number is too large");
    if (value < low || value > high)
        return report_out_of_range(node, low > -DBL_MAX, low, high < DBL_MAX, high, diag);
    *out = value;
    return STATUS_OK;
}

enum status json_as_i64(struct json_node node, int64_t low, int64_t high, int64_t *out,
                        struct diag *diag)
{
    if (!json_is_number(node))
        return report_type_error(node, "a whole number", diag);
    int64_t value;
    if (!parse_i64(node.value->content.text, node.value->size, &value)) {
        /* numbers written as 1e6 or 32.0 are whole, too */
        double number;
        if (!parse_double(node.value->content.text, node.value->size, &number) ||
            fabs(number) > 0x1p53)
            return report_out_of_range(node, low > INT64_MIN, (double)low, true, (double)high,
                                       diag);
        if (number != floor(number))
            return report_type_error(node, "a whole number", diag);
        value = (int64_t)number;
    }
    if (value < low || value > high)
        return report_out_of_range(node, low > INT64_MIN, (double)low, high < INT64_MAX,
                                   (double)high, diag);
    *out = value;
    return STATUS_OK;
}

enum status json_reject_unknown_keys(struct json_node object, const char *const *known,
                                     size_t count, struct diag *diag)
{
    if (!json_is_object(object))
        return report_type_error(object, "an object", diag);
    for (size_t m = 0; m < json_member_count(object); m++) {
        const char *key;
        struct json_node node = json_member_at(object, m, &key);
        size_t i = 0;
        while (i < count && strcmp(known[i], key) != 0)
            i++;
        if (i < count)
            continue;
        const char *nearest = diag_nearest(key, known, count);
        if (nearest)
            return json_error(node, diag, "unknown key: did you mean '%s'?", nearest);
        return json_error(node, diag, "unknown key");
    }
    return STATUS_OK;
}

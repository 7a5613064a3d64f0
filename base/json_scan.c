#include "base/json_scan.h"

#include "base/arena.h"

#include <assert.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One scan of the text. Every scan walks the same grammar; `want` and `seen`
 * make it also look for a path or for duplicate keys, `lines` note where values begin. */
struct scan {
    const char *name;
    const char *at, *end;
    const char *line_start;
    uint32_t line;
    unsigned depth;
    struct diag *diag;
    struct json_facts facts;

    const char *want; /* the whole path looked for, or NULL */
    size_t found_size;
    uint32_t found_line;

    bool duplicates;
    uint32_t *lines; /* of the values so far, or NULL */
    char *blank;     /* the same text, writable: where comments go away */
    const char *start;
};

static enum status fail(struct scan *scan, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static enum status fail(struct scan *scan, const char *at, const char *format, ...)
{
    struct loc loc = {
        .name = scan->name, .line = scan->line, .column = (uint32_t)(at - scan->line_start) + 1};
    va_list args;
    va_start(args, format);
    diag_verror(scan->diag, loc, STATUS_BAD_INPUT, format, args);
    va_end(args);
    return STATUS_BAD_INPUT;
}

/* "expected X" with what stands there instead. */
static enum status expected(struct scan *scan, const char *what)
{
    if (scan->at == scan->end)
        return fail(scan, scan->at, "expected %s, but the text ends here", what);
    unsigned char c = (unsigned char)*scan->at;
    if (c > 0x20 && c < 0x7f)
        return fail(scan, scan->at, "expected %s, found '%c'", what, c);
    return fail(scan, scan->at, "expected %s, found byte 0x%02x", what, c);
}

static void newline(struct scan *scan)
{
    scan->line++;
    scan->line_start = scan->at + 1;
}

static enum status skip_comment(struct scan *scan)
{
    const char *from = scan->at;
    bool block = scan->at + 1 < scan->end && scan->at[1] == '*';
    if (!block && !(scan->at + 1 < scan->end && scan->at[1] == '/'))
        return fail(scan, scan->at, "a comment starts with // or /*");
    struct scan opening = *scan;
    scan->facts.comments = true;
    scan->at += 2;
    for (;; scan->at++) {
        if (scan->at == scan->end && block)
            return fail(&opening, from, "this comment does not end");
        if (scan->at == scan->end || (!block && *scan->at == '\n'))
            break;
        if (*scan->at == '\n')
            newline(scan);
        if (block && *scan->at == '*' && scan->at + 1 < scan->end && scan->at[1] == '/') {
            scan->at += 2;
            break;
        }
    }
    if (scan->blank) {
        for (const char *c = from; c < scan->at; c++) {
            if (*c != '\n')
                scan->blank[c - scan->start] = ' ';
        }
    }
    return STATUS_OK;
}

static enum status skip_space(struct scan *scan)
{
    for (; scan->at < scan->end; scan->at++) {
        char c = *scan->at;
        if (c == '\n') {
            newline(scan);
        } else if (c == '/') {
            if (skip_comment(scan) != STATUS_OK)
                return STATUS_BAD_INPUT;
            scan->at--;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            break;
        }
    }
    return STATUS_OK;
}

/* The bytes of the UTF-8 character at `at`, or 0 where there is none. */
static size_t utf8_size(const unsigned char *at, size_t left)
{
    /* lead byte, bytes, and the range of the second byte, which excludes
     * overlong forms, surrogates and all beyond U+10FFFF (Unicode, table 3-7) */
    static const struct {
        unsigned char lead_low, lead_high, size, low, high;
    } forms[] = {
        {0x00, 0x7f, 1, 0, 0},       {0xc2, 0xdf, 2, 0x80, 0xbf}, {0xe0, 0xe0, 3, 0xa0, 0xbf},
        {0xe1, 0xec, 3, 0x80, 0xbf}, {0xed, 0xed, 3, 0x80, 0x9f}, {0xee, 0xef, 3, 0x80, 0xbf},
        {0xf0, 0xf0, 4, 0x90, 0xbf}, {0xf1, 0xf3, 4, 0x80, 0xbf}, {0xf4, 0xf4, 4, 0x80, 0x8f},
    };
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        if (at[0] < forms[i].lead_low || at[0] > forms[i].lead_high)
            continue;
        size_t size = forms[i].size;
        if (size > left || (size > 1 && (at[1] < forms[i].low || at[1] > forms[i].high)))
            return 0;
        for (size_t k = 2; k < size; k++) {
            if ((at[k] & 0xc0) != 0x80)
                return 0;
        }
        return size;
    }
    return 0;
}

static enum status scan_escape(struct scan *scan)
{
    const char *from = scan->at;
    size_t left = (size_t)(scan->end - scan->at);
    if (left >= 2 && scan->at[1] != '\0' && strchr("\"\\/bfnrt", scan->at[1])) {
        scan->at += 2;
        return STATUS_OK;
    }
    if (left < 6 || scan->at[1] != 'u')
        return fail(scan, from, "no such escape in a string");
    unsigned code = 0;
    for (size_t i = 2; i < 6; i++) {
        char c = from[i];
        bool letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        if (!letter && !(c >= '0' && c <= '9'))
            return fail(scan, from, "no such escape in a string");
        code |= (unsigned)(c != '0');
    }
    /* The program's strings are C strings: behind a NUL they would be lost in silence. */
    if (code == 0)
        return fail(scan, from, "a string must not hold \\u0000");
    scan->at += 6;
    return STATUS_OK;
}

static enum status scan_string(struct scan *scan)
{
    const char *from = scan->at++;
    while (scan->at < scan->end) {
        unsigned char c = (unsigned char)*scan->at;
        if (c == '"') {
            scan->at++;
            return STATUS_OK;
        }
        if (c < 0x20)
            break;
        if (c == '\\') {
            if (scan_escape(scan) != STATUS_OK)
                return STATUS_BAD_INPUT;
            continue;
        }
        size_t size = utf8_size((const unsigned char *)scan->at, (size_t)(scan->end - scan->at));
        if (size == 0)
            return fail(scan, scan->at, "a string must be UTF-8: byte 0x%02x cannot stand here", c);
        scan->at += size;
    }
    if (scan->at == scan->end || *scan->at == '\n' || *scan->at == '\r')
        return fail(scan, from, "this string does not end on its line");
    return fail(scan, scan->at, "byte 0x%02x must be escaped in a string",
                (unsigned char)*scan->at);
}

static bool take_digits(struct scan *scan)
{
    const char *from = scan->at;
    while (scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9')
        scan->at++;
    return scan->at > from;
}

static bool take(struct scan *scan, char c)
{
    if (scan->at == scan->end || *scan->at != c)
        return false;
    scan->at++;
    return true;
}

/* Whether an integer of json-c holds the digits from..at: -2^63 .. 2^64 - 1. */
static bool fits_integer(const char *from, const char *at)
{
    bool negative = *from == '-';
    const char *limit = negative ? "9223372036854775808" : "18446744073709551615";
    const char *digits = from + negative;
    size_t size = (size_t)(at - digits);
    if (size != strlen(limit))
        return size < strlen(limit);
    return memcmp(digits, limit, size) <= 0;
}

static enum status scan_number(struct scan *scan)
{
    const char *from = scan->at;
    take(scan, '-');
    if (!take(scan, '0') && !take_digits(scan))
        return expected(scan, "a digit");
    if (scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9')
        return fail(scan, from, "a number must not start with 0");
    bool whole = true;
    if (take(scan, '.')) {
        whole = false;
        if (!take_digits(scan))
            return expected(scan, "a digit");
    }
    if (take(scan, 'e') || take(scan, 'E')) {
        whole = false;
        if (!take(scan, '-'))
            take(scan, '+');
        if (!take_digits(scan))
            return expected(scan, "a digit");
    }
    if (whole && !fits_integer(from, scan->at))
        return fail(scan, from, "this integer is beyond 64 bits");
    return STATUS_OK;
}

static enum status scan_word(struct scan *scan)
{
    static const char *const words[] = {"true", "false", "null"};
    const char *from = scan->at;
    while (scan->at < scan->end &&
           ((*scan->at >= 'a' && *scan->at <= 'z') || (*scan->at >= 'A' && *scan->at <= 'Z')))
        scan->at++;
    size_t size = (size_t)(scan->at - from);
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strlen(words[i]) == size && memcmp(words[i], from, size) == 0)
            return STATUS_OK;
    }
    scan->at = from;
    if (size == 0)
        return expected(scan, "a value");
    return fail(scan, from, "'%.*s' is no JSON value", (int)(size < 40 ? size : 40), from);
}

/* How much of the wanted path is used up by `key` behind the first `used` bytes
 * of it; 0 where the key leads elsewhere. literal is the key as it is written,
 * quotes included. */
static size_t match_key(const char *want, size_t used, const char *literal, size_t size)
{
    const char *rest = want + used;
    if (used > 0 && *rest++ != '.')
        return 0;
    const char *key = literal + 1;
    size_t key_size = size - 2;
    json_object *decoded = NULL;
    if (memchr(key, '\\', key_size)) {
        char *copy = heap_zalloc(size + 1, 1);
        memcpy(copy, literal, size);
        decoded = heap_check(json_tokener_parse(copy));
        free(copy);
        key = json_object_get_string(decoded);
        key_size = (size_t)json_object_get_string_len(decoded);
    }
    size_t end = 0;
    if (strncmp(rest, key, key_size) == 0 &&
        (rest[key_size] == '\0' || rest[key_size] == '.' || rest[key_size] == '['))
        end = (size_t)(rest - want) + key_size;
    json_object_put(decoded);
    return end;
}

static size_t match_index(const char *want, size_t used, size_t index)
{
    char text[32];
    int size = snprintf(text, sizeof text, "[%zu]", index);
    return strncmp(want + used, text, (size_t)size) == 0 ? used + (size_t)size : 0;
}

enum { OFF_PATH = -1 };

/* used: how much of the wanted path led here, or OFF_PATH. */
static enum status scan_value(struct scan *scan, ptrdiff_t used);

static enum status scan_array(struct scan *scan, ptrdiff_t used)
{
    for (size_t i = 0;; i++) {
        if (skip_space(scan) != STATUS_OK)
            return STATUS_BAD_INPUT;
        if (i == 0 && take(scan, ']'))
            return STATUS_OK;
        if (i > 0 && scan->at < scan->end && *scan->at == ']')
            return fail(scan, scan->at, "a comma before ']'");
        size_t below = used == OFF_PATH ? 0 : match_index(scan->want, (size_t)used, i);
        if (scan_value(scan, below ? (ptrdiff_t)below : OFF_PATH) != STATUS_OK ||
            skip_space(scan) != STATUS_OK)
            return STATUS_BAD_INPUT;
        if (take(scan, ']'))
            return STATUS_OK;
        if (!take(scan, ','))
            return expected(scan, "',' or ']'");
    }
}

/* Reports the key literal[0..size) when keys has it already, and adds it. */
static enum status check_duplicate(struct scan *scan, json_object *keys, const char *literal,
                                   size_t size)
{
    char *copy = heap_zalloc(size + 1, 1);
    memcpy(copy, literal, size);
    json_object *decoded = heap_check(json_tokener_parse(copy));
    free(copy);
    const char *key = json_object_get_string(decoded);
    enum status status = STATUS_OK;
    if (json_object_object_get_ex(keys, key, NULL))
        status = fail(scan, literal, "duplicate key '%s'", key);
    else if (json_object_object_add(keys, key, NULL) != 0)
        heap_out();
    json_object_put(decoded);
    return status;
}

static enum status scan_members(struct scan *scan, ptrdiff_t used, json_object *keys)
{
    for (size_t i = 0;; i++) {
        if (skip_space(scan) != STATUS_OK)
            return STATUS_BAD_INPUT;
        if (i == 0 && take(scan, '}'))
            return STATUS_OK;
        if (i > 0 && scan->at < scan->end && *scan->at == '}')
            return fail(scan, scan->at, "a comma before '}'");
        if (scan->at == scan->end || *scan->at != '"')
            return expected(scan, "a key in double quotes");
        const char *key = scan->at;
        if (scan_string(scan) != STATUS_OK)
            return STATUS_BAD_INPUT;
        size_t key_size = (size_t)(scan->at - key);
        scan->facts.members++;
        if (keys && check_duplicate(scan, keys, key, key_size) != STATUS_OK)
            return STATUS_BAD_INPUT;
        size_t below = used == OFF_PATH ? 0 : match_key(scan->want, (size_t)used, key, key_size);
        if (skip_space(scan) != STATUS_OK)
            return STATUS_BAD_INPUT;
        if (!take(scan, ':'))
            return expected(scan, "':'");
        if (skip_space(scan) != STATUS_OK ||
            scan_value(scan, below ? (ptrdiff_t)below : OFF_PATH) != STATUS_OK ||
            skip_space(scan) != STATUS_OK)
            return STATUS_BAD_INPUT;
        if (take(scan, '}'))
            return STATUS_OK;
        if (!take(scan, ','))
            return expected(scan, "',' or '}'");
    }
}

static enum status scan_object(struct scan *scan, ptrdiff_t used)
{
    json_object *keys = scan->duplicates ? heap_check(json_object_new_object()) : NULL;
    enum status status = scan_members(scan, used, keys);
    json_object_put(keys);
    return status;
}

static enum status scan_value(struct scan *scan, ptrdiff_t used)
{
    if (scan->lines)
        scan->lines[scan->facts.values] = scan->line;
    scan->facts.values++;
    if (used != OFF_PATH && (size_t)used + 1 > scan->found_size) {
        scan->found_size = (size_t)used + 1;
        scan->found_line = scan->line;
    }
    char c = scan->at < scan->end ? *scan->at : '\0';
    if (c == '{' || c == '[') {
        if (scan->depth == JSON_DEPTH_LIMIT)
            return fail(scan, scan->at, "nested deeper than %d levels", JSON_DEPTH_LIMIT);
        scan->depth++;
        scan->at++;
        enum status status = c == '{' ? scan_object(scan, used) : scan_array(scan, used);
        scan->depth--;
        return status;
    }
    if (c == '"')
        return scan_string(scan);
    if (c == '-' || (c >= '0' && c <= '9'))
        return scan_number(scan);
    return scan_word(scan);
}

static enum status scan_document(struct scan *scan)
{
    ptrdiff_t used = scan->want ? 0 : OFF_PATH;
    if (skip_space(scan) != STATUS_OK || scan_value(scan, used) != STATUS_OK ||
        skip_space(scan) != STATUS_OK)
        return STATUS_BAD_INPUT;
    if (scan->at < scan->end)
        return expected(scan, "nothing behind the value");
    return STATUS_OK;
}

static struct scan scan_make(const char *name, const char *data, size_t size, struct diag *diag)
{
    return (struct scan){.name = name,
                         .at = data,
                         .end = data + size,
                         .start = data,
                         .line_start = data,
                         .line = 1,
                         .diag = diag};
}

enum status json_scan_check(const char *name, const char *data, size_t size,
                            struct json_facts *facts, struct diag *diag)
{
    struct scan scan = scan_make(name, data, size, diag);
    enum status status = scan_document(&scan);
    *facts = scan.facts;
    return status;
}

enum status json_scan_duplicate(const char *name, const char *data, size_t size, struct diag *diag)
{
    struct scan scan = scan_make(name, data, size, diag);
    scan.duplicates = true;
    return scan_document(&scan);
}

void json_scan_lines(const char *data, size_t size, uint32_t *line)
{
    struct scan scan = scan_make(NULL, data, size, NULL);
    scan.lines = line;
    enum status status = scan_document(&scan);
    assert(status == STATUS_OK);
}

uint32_t json_scan_line(const char *data, size_t size, const char *path)
{
    struct scan scan = scan_make(NULL, data, size, NULL);
    scan.want = path;
    enum status status = scan_document(&scan);
    assert(status == STATUS_OK);
    return scan.found_line;
}

void json_scan_blank(char *data, size_t size)
{
    struct scan scan = scan_make(NULL, data, size, NULL);
    scan.blank = data;
    enum status status = scan_document(&scan);
    assert(status == STATUS_OK);
}

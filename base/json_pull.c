#include "base/json_pull.h"

#include "base/arena.h"
#include "base/text.h"
#include "base/utf8.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

void json_pull_init(struct json_pull *pull, enum json_dialect dialect, const char *name,
                    const char *data, size_t size)
{
    *pull =
        (struct json_pull){.name = name, .dialect = dialect, .line = 1, .is_at_level_start = true};
    pull->position = pull->line_first_char = size > 0 ? data : "";
    pull->end = pull->position + size;
}

struct loc json_pull_loc(const struct json_pull *pull)
{
    return (struct loc){.name = pull->name, .line = pull->token_line, .column = pull->token_column};
}

/* ---- messages ---- */

static enum status report_fault_at(const struct json_pull *pull, const char *at, struct diag *diag,
                                   const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Reports a fault at the position `at`, which is on the current line. */
static enum status report_fault_at(const struct json_pull *pull, const char *at, struct diag *diag,
                                   const char *format, ...)
{
    struct loc loc = {.name = pull->name,
                      .line = pull->line,
                      .column = (uint32_t)(at - pull->line_first_char) + 1};
    va_list args;
    va_start(args, format);
    diag_verror(diag, loc, STATUS_BAD_INPUT, format, args);
    va_end(args);
    return STATUS_BAD_INPUT;
}

/* Reports "expected WHAT" and the byte that was found in its place, or that the text has ended. */
static enum status report_expected(const struct json_pull *pull, const char *what,
                                   struct diag *diag)
{
    if (pull->position == pull->end)
        return report_fault_at(pull, pull->position, diag, "expected %s, but the text ends here",
                               what);
    unsigned char c = (unsigned char)*pull->position;
    if (c > 0x20 && c < 0x7f)
        return report_fault_at(pull, pull->position, diag, "expected %s, found '%c'", what, c);
    return report_fault_at(pull, pull->position, diag, "expected %s, found byte 0x%02x", what, c);
}

/* ---- characters ---- */

/* Returns the next character, or NUL, with which no token begins, at the end of the text. */
static char peek_char(const struct json_pull *pull)
{
    return pull->position < pull->end ? *pull->position : '\0';
}

static bool accept_char(struct json_pull *pull, char c)
{
    if (pull->position == pull->end || *pull->position != c)
        return false;
    pull->position++;
    return true;
}

static void begin_next_line(struct json_pull *pull)
{
    pull->line++;
    pull->line_first_char = pull->position + 1;
}

static enum status skip_comment(struct json_pull *pull, struct diag *diag)
{
    const struct json_pull opening = *pull;
    pull->position++;
    if (accept_char(pull, '/')) {
        while (pull->position < pull->end && *pull->position != '\n')
            pull->position++;
        return STATUS_OK;
    }
    if (!accept_char(pull, '*'))
        return report_fault_at(&opening, opening.position, diag,
                               "unexpected '/': a comment starts with // or /*");
    for (; pull->end - pull->position >= 2; pull->position++) {
        if (pull->position[0] == '*' && pull->position[1] == '/') {
            pull->position += 2;
            return STATUS_OK;
        }
        if (*pull->position == '\n')
            begin_next_line(pull);
    }
    return report_fault_at(&opening, opening.position, diag, "this comment has no closing */");
}

static enum status skip_space(struct json_pull *pull, struct diag *diag)
{
    while (pull->position < pull->end) {
        char c = *pull->position;
        if (c == '/') {
            if (skip_comment(pull, diag) != STATUS_OK)
                return STATUS_BAD_INPUT;
            continue;
        }
        if (c == '\n')
            begin_next_line(pull);
        else if (c != ' ' && c != '\t' && c != '\r')
            break;
        pull->position++;
    }
    return STATUS_OK;
}

/* ---- scalars ---- */

/* Returns the number that the first four characters of text[0..size) write in hexadecimal digits; -1 if there are no
 * four such digits. */
static int32_t four_hex_digits(const char *text, size_t size)
{
    int32_t code = 0;
    if (size < 4)
        return -1;
    for (size_t i = 0; i < 4; i++) {
        char c = text[i];
        bool digit = c >= '0' && c <= '9', upper = c >= 'A' && c <= 'F';
        if (!digit && !upper && !(c >= 'a' && c <= 'f'))
            return -1;
        code = 16 * code + (digit ? c - '0' : upper ? c - 'A' + 10 : c - 'a' + 10);
    }
    return code;
}

static enum status read_escape(struct json_pull *pull, struct diag *diag)
{
    const char *from = pull->position;
    const size_t left = (size_t)(pull->end - from);
    if (left >= 2 && from[1] != '\0' && strchr("\"\\/bfnrt", from[1])) {
        pull->position += 2;
        return STATUS_OK;
    }
    const int32_t code = left >= 2 && from[1] == 'u' ? four_hex_digits(from + 2, left - 2) : -1;
    if (code < 0)
        return report_fault_at(
            pull, from, diag,
            "unknown escape in a string: \\\" \\\\ \\/ \\b \\f \\n \\r \\t and \\uXXXX are known");
    /* The program's strings are C strings: what follows a NUL would be lost in silence. */
    if (code == 0 && pull->dialect == JSON_UTF8_WITHOUT_NAN)
        return report_fault_at(pull, from, diag, "a string must not hold \\u0000");
    pull->position += 6;
    return STATUS_OK;
}

static enum status read_string(struct json_pull *pull, struct diag *diag)
{
    const char *from = pull->position++;
    pull->text = pull->position;
    while (pull->position < pull->end) {
        const unsigned char c = (unsigned char)*pull->position;
        size_t size = 1;
        if (c == '"') {
            pull->size = (size_t)(pull->position++ - pull->text);
            return STATUS_OK;
        }
        if (c < 0x20)
            break;
        if (c == '\\') {
            pull->has_escapes = true;
            if (read_escape(pull, diag) != STATUS_OK)
                return STATUS_BAD_INPUT;
            continue;
        }
        if (c >= 0x80 && pull->dialect == JSON_UTF8_WITHOUT_NAN)
            size = utf8_char_size(pull->position, (size_t)(pull->end - pull->position));
        if (size == 0)
            return report_fault_at(pull, pull->position, diag,
                                   "a string must be UTF-8: byte 0x%02x cannot stand here", c);
        pull->position += size;
    }
    if (pull->position == pull->end || *pull->position == '\n' || *pull->position == '\r')
        return report_fault_at(pull, from, diag, "this string does not end on its line");
    return report_fault_at(pull, pull->position, diag, "byte 0x%02x must be escaped in a string",
                           (unsigned char)*pull->position);
}

/* Reads true, false, null, or, in a profiler's file, a number that is a word (NaN, Infinity, -Infinity). The token
 * begins at pull->text; the caller has read its '-', if it has one. */
static enum status read_word(struct json_pull *pull, enum json_token *token, struct diag *diag)
{
    static const struct {
        const char *text;
        enum json_dialect dialect;
        enum json_token token;
    } words[] = {
        {"true", JSON_UTF8_WITHOUT_NAN, JSON_LITERAL},
        {"false", JSON_UTF8_WITHOUT_NAN, JSON_LITERAL},
        {"null", JSON_UTF8_WITHOUT_NAN, JSON_LITERAL},
        {"NaN", JSON_PROFILER, JSON_NUMBER},
        {"Infinity", JSON_PROFILER, JSON_NUMBER},
        {"-Infinity", JSON_PROFILER, JSON_NUMBER},
    };
    while ((peek_char(pull) >= 'a' && peek_char(pull) <= 'z') ||
           (peek_char(pull) >= 'A' && peek_char(pull) <= 'Z'))
        pull->position++;
    pull->size = (size_t)(pull->position - pull->text);
    if (pull->size == 0)
        return report_expected(pull, "a value", diag);
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        *token = words[i].token;
        if (words[i].dialect <= pull->dialect && json_pull_text_equals(pull, words[i].text))
            return STATUS_OK;
    }
    return report_fault_at(pull, pull->text, diag, "'%.*s' is no JSON value",
                           (int)(pull->size < 40 ? pull->size : 40), pull->text);
}

static bool skip_digits(struct json_pull *pull)
{
    const char *from = pull->position;
    while (peek_char(pull) >= '0' && peek_char(pull) <= '9')
        pull->position++;
    return pull->position > from;
}

static enum status read_number(struct json_pull *pull, enum json_token *token, struct diag *diag)
{
    *token = JSON_NUMBER;
    accept_char(pull, '-');
    if (pull->dialect == JSON_PROFILER && peek_char(pull) == 'I')
        return read_word(pull, token, diag);
    const bool zero = accept_char(pull, '0');
    if (zero && skip_digits(pull))
        return report_fault_at(pull, pull->text, diag,
                               "a number must not have a digit right after a leading 0");
    if (!zero && !skip_digits(pull))
        return report_expected(pull, "a digit", diag);
    if (accept_char(pull, '.') && !skip_digits(pull))
        return report_expected(pull, "a digit", diag);
    if (accept_char(pull, 'e') || accept_char(pull, 'E')) {
        if (!accept_char(pull, '-'))
            accept_char(pull, '+');
        if (!skip_digits(pull))
            return report_expected(pull, "a digit", diag);
    }
    pull->size = (size_t)(pull->position - pull->text);
    return STATUS_OK;
}

/* ---- tokens ---- */

static enum status open_level(struct json_pull *pull, bool object, struct diag *diag)
{
    if (pull->depth == JSON_DEPTH_LIMIT)
        return report_fault_at(pull, pull->position, diag, "nested deeper than %d levels",
                               JSON_DEPTH_LIMIT);
    pull->is_object_at_level[pull->depth++] = object;
    pull->position++;
    pull->is_at_level_start = true;
    pull->is_value_expected_after_key = false;
    return STATUS_OK;
}

static void close_level(struct json_pull *pull)
{
    pull->depth--;
    pull->position++;
    pull->is_at_level_start = false;
}

static void begin_token(struct json_pull *pull)
{
    pull->token_line = pull->line;
    pull->token_column = (uint32_t)(pull->position - pull->line_first_char) + 1;
    pull->text = pull->position;
    pull->has_escapes = false;
}

static enum status read_value(struct json_pull *pull, enum json_token *token, struct diag *diag)
{
    const char c = peek_char(pull);
    begin_token(pull);
    if (c == '{' || c == '[') {
        *token = c == '{' ? JSON_OBJECT : JSON_ARRAY;
        return open_level(pull, c == '{', diag);
    }
    pull->is_at_level_start = pull->is_value_expected_after_key = false;
    if (c == '"') {
        *token = JSON_STRING;
        return read_string(pull, diag);
    }
    if (c == '-' || (c >= '0' && c <= '9'))
        return read_number(pull, token, diag);
    return read_word(pull, token, diag);
}

static enum status read_key(struct json_pull *pull, enum json_token *token, struct diag *diag)
{
    begin_token(pull);
    if (peek_char(pull) != '"')
        return report_expected(pull, "a key in double quotes", diag);
    if (read_string(pull, diag) != STATUS_OK || skip_space(pull, diag) != STATUS_OK)
        return STATUS_BAD_INPUT;
    if (!accept_char(pull, ':'))
        return report_expected(pull, "':'", diag);
    pull->is_value_expected_after_key = true;
    *token = JSON_KEY;
    return STATUS_OK;
}

enum status json_pull_next(struct json_pull *pull, enum json_token *token, struct diag *diag)
{
    if (skip_space(pull, diag) != STATUS_OK)
        return STATUS_BAD_INPUT;
    if (pull->depth == 0 && !pull->is_at_level_start) {
        begin_token(pull);
        *token = JSON_END;
        return pull->position == pull->end ? STATUS_OK
                                           : report_expected(pull, "nothing after the value", diag);
    }
    if (pull->depth == 0 || pull->is_value_expected_after_key)
        return read_value(pull, token, diag);

    const bool object = pull->is_object_at_level[pull->depth - 1];
    const char close = object ? '}' : ']';
    if (peek_char(pull) == close) {
        begin_token(pull);
        close_level(pull);
        *token = object ? JSON_OBJECT_END : JSON_ARRAY_END;
        return STATUS_OK;
    }
    if (!pull->is_at_level_start) {
        if (!accept_char(pull, ','))
            return report_expected(pull, object ? "',' or '}'" : "',' or ']'", diag);
        if (skip_space(pull, diag) != STATUS_OK)
            return STATUS_BAD_INPUT;
        if (peek_char(pull) == close)
            return report_fault_at(pull, pull->position, diag, "there must be no comma before '%c'",
                                   close);
    }
    return object ? read_key(pull, token, diag) : read_value(pull, token, diag);
}

enum status json_pull_skip(struct json_pull *pull, enum json_token token, struct diag *diag)
{
    if (token != JSON_OBJECT && token != JSON_ARRAY)
        return STATUS_OK;
    assert(pull->depth > 0);
    unsigned outside = pull->depth - 1;
    while (pull->depth > outside) {
        enum status status = json_pull_next(pull, &token, diag);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

/* ---- texts ---- */

bool json_pull_text_equals(const struct json_pull *pull, const char *text)
{
    return strlen(text) == pull->size && memcmp(text, pull->text, pull->size) == 0;
}

bool json_pull_double(const struct json_pull *pull, double *value)
{
    return parse_double(pull->text, pull->size, value);
}

/* Writes the character that the escape at text[0..size) means to `out`, as UTF-8, and returns its number of bytes. Sets
 * *taken to the bytes of the escape. A NUL, or half a surrogate pair, becomes U+FFFD. */
static size_t unescape_one(const char *text, size_t size, char out[4], size_t *taken)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    *taken = 2;
    if (text[1] != 'u') {
        const char *escape = strchr(from, text[1]);
        out[0] = escape != NULL ? to[escape - from] : text[1];
        return 1;
    }
    *taken = 6;
    int32_t code = four_hex_digits(text + 2, 4);
    if (code >= 0xd800 && code < 0xdc00 && size >= 12 && text[6] == '\\' && text[7] == 'u') {
        const int32_t low = four_hex_digits(text + 8, 4);
        if (low >= 0xdc00 && low < 0xe000) {
            *taken = 12;
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        }
    }
    return utf8_encode(code > 0 ? (uint32_t)code : 0xfffd, out); /* a NUL would end the text */
}

size_t json_unescape(const char *text, size_t size, char *out, size_t room)
{
    size_t length = 0;
    assert(room > 0);
    for (size_t i = 0, taken; i < size; i += taken) {
        char one[4] = {text[i]};
        size_t put = taken = 1;
        if (text[i] == '\\')
            put = unescape_one(text + i, size - i, one, &taken);
        if (length + put >= room)
            break;
        memcpy(out + length, one, put);
        length += put;
    }
    out[length] = '\0';
    return length;
}

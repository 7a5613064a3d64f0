#include "traces/json_pull.h"

#include "base/text.h"

#include <assert.h>
#include <math.h>
#include <string.h>

void json_pull_init(struct json_pull *pull, const char *name, const char *data, size_t size)
{
    *pull = (struct json_pull){.name = name, .line = 1, .first = true};
    pull->at = pull->line_start = size > 0 ? data : "";
    pull->end = pull->at + size;
}

struct loc json_pull_loc(const struct json_pull *pull)
{
    return (struct loc){
        .name = pull->name,
        .line = pull->line,
        .column = (uint32_t)(pull->at - pull->line_start) + 1,
    };
}

static enum status expected(const struct json_pull *pull, const char *what, struct diag *diag)
{
    struct loc at = json_pull_loc(pull);
    if (pull->at == pull->end)
        return diag_error(diag, at, STATUS_BAD_INPUT, "expected %s, but the text ends here", what);
    unsigned char c = (unsigned char)*pull->at;
    if (c > 0x20 && c < 0x7f)
        return diag_error(diag, at, STATUS_BAD_INPUT, "expected %s, found '%c'", what, c);
    return diag_error(diag, at, STATUS_BAD_INPUT, "expected %s, found byte 0x%02x", what, c);
}

static void skip_space(struct json_pull *pull)
{
    for (; pull->at < pull->end; pull->at++) {
        char c = *pull->at;
        if (c == '\n') {
            pull->line++;
            pull->line_start = pull->at + 1;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            return;
        }
    }
}

/* Escapes are only checked for what follows the backslash: \u takes four hexadecimal digits. */
static enum status read_string(struct json_pull *pull, struct diag *diag)
{
    struct json_pull opening = *pull;
    pull->text = ++pull->at;
    pull->escaped = false;
    for (; pull->at < pull->end && *pull->at != '"'; pull->at++) {
        if ((unsigned char)*pull->at < 0x20)
            return expected(pull, "'\"' at the end of a text", diag);
        if (*pull->at != '\\')
            continue;
        pull->escaped = true;
        pull->at++;
        if (pull->at == pull->end || strchr("\"\\/bfnrtu", *pull->at) == NULL || *pull->at == '\0')
            return expected(pull, "one of \"\\/bfnrtu behind a '\\'", diag);
        for (int i = 0; *pull->at == 'u' && i < 4; i++)
            if (pull->end - pull->at <= i + 1 || pull->at[i + 1] == '\0' ||
                strchr("0123456789abcdefABCDEF", pull->at[i + 1]) == NULL)
                return expected(pull, "four hexadecimal digits behind '\\u'", diag);
    }
    if (pull->at == pull->end)
        return diag_error(diag, json_pull_loc(&opening), STATUS_BAD_INPUT,
                          "this text does not end");
    pull->size = (size_t)(pull->at - pull->text);
    pull->at++;
    return STATUS_OK;
}

static bool is_word_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' ||
           c == '-' || c == '.' || c == '_';
}

/* A run of letters, digits and signs: a number or one of the words. */
static enum status read_scalar(struct json_pull *pull, enum json_token *token, struct diag *diag)
{
    static const char *const words[] = {"true", "false", "null"};
    static const char *const numbers[] = {"NaN", "Infinity", "-Infinity"};
    struct json_pull start = *pull;
    pull->text = pull->at;
    pull->escaped = false;
    while (pull->at < pull->end && is_word_char(*pull->at))
        pull->at++;
    pull->size = (size_t)(pull->at - pull->text);
    *token = JSON_WORD;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (json_pull_is(pull, words[i]))
            return STATUS_OK;
    *token = JSON_NUMBER;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (json_pull_is(pull, numbers[i]))
            return STATUS_OK;
    double value;
    bool leads =
        pull->size > 0 && (*pull->text == '-' || (*pull->text >= '0' && *pull->text <= '9'));
    if (leads && parse_double(pull->text, pull->size, &value))
        return STATUS_OK;
    return expected(&start, "a value", diag);
}

static enum status open_level(struct json_pull *pull, bool object, struct diag *diag)
{
    if (pull->depth == JSON_PULL_DEPTH)
        return diag_error(diag, json_pull_loc(pull), STATUS_BAD_INPUT,
                          "nested more than %d levels deep", JSON_PULL_DEPTH);
    pull->in_object[pull->depth++] = object;
    pull->at++;
    pull->first = true;
    pull->need_value = false;
    return STATUS_OK;
}

static void close_level(struct json_pull *pull)
{
    pull->depth--;
    pull->at++;
    pull->first = false;
}

static enum status read_value(struct json_pull *pull, enum json_token *token, struct diag *diag)
{
    if (pull->at < pull->end && (*pull->at == '{' || *pull->at == '[')) {
        bool object = *pull->at == '{';
        *token = object ? JSON_OBJECT : JSON_ARRAY;
        return open_level(pull, object, diag);
    }
    pull->first = pull->need_value = false;
    if (pull->at < pull->end && *pull->at == '"') {
        *token = JSON_STRING;
        return read_string(pull, diag);
    }
    return read_scalar(pull, token, diag);
}

enum status json_pull_next(struct json_pull *pull, enum json_token *token, struct diag *diag)
{
    skip_space(pull);
    if (pull->depth == 0 && !pull->first) {
        *token = JSON_END;
        return pull->at == pull->end ? STATUS_OK : expected(pull, "the end of the text", diag);
    }
    if (pull->depth == 0 || pull->need_value)
        return read_value(pull, token, diag);

    bool object = pull->in_object[pull->depth - 1];
    char close = object ? '}' : ']';
    if (pull->at < pull->end && *pull->at == close) {
        close_level(pull);
        *token = object ? JSON_OBJECT_END : JSON_ARRAY_END;
        return STATUS_OK;
    }
    if (!pull->first) {
        if (pull->at == pull->end || *pull->at != ',')
            return expected(pull, object ? "',' or '}'" : "',' or ']'", diag);
        pull->at++;
        skip_space(pull);
    }
    if (!object)
        return read_value(pull, token, diag);
    if (pull->at == pull->end || *pull->at != '"')
        return expected(pull, "a key in quotes", diag);
    enum status status = read_string(pull, diag);
    if (status != STATUS_OK)
        return status;
    skip_space(pull);
    if (pull->at == pull->end || *pull->at != ':')
        return expected(pull, "':' behind a key", diag);
    pull->at++;
    pull->need_value = true;
    *token = JSON_KEY;
    return STATUS_OK;
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

bool json_pull_is(const struct json_pull *pull, const char *text)
{
    return strlen(text) == pull->size && memcmp(text, pull->text, pull->size) == 0;
}

bool json_pull_double(const struct json_pull *pull, double *value)
{
    return parse_double(pull->text, pull->size, value) && isfinite(*value);
}

size_t json_pull_text(const struct json_pull *pull, char *out, size_t size)
{
    static const char from[] = "bfnrtu", to[] = "\b\f\n\r\t?";
    size_t length = 0;
    assert(size > 0);
    for (size_t i = 0; i < pull->size && length + 1 < size; i++) {
        char c = pull->text[i];
        if (c == '\\') {
            c = pull->text[++i];
            const char *escape = strchr(from, c);
            if (c == 'u')
                i += 4;
            if (escape != NULL)
                c = to[escape - from];
        }
        out[length++] = c;
    }
    out[length] = '\0';
    return length;
}

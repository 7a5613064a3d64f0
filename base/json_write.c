#include "base/json_write.h"

#include "base/utf8.h"

#include <math.h>

void json_put_escaped(struct text *out, const char *text)
{
    while (*text != '\0') {
        const size_t size = utf8_char_size(text, SIZE_MAX);
        const unsigned char c = (unsigned char)*text;
        if (size == 0)
            text_puts(out, "\\ufffd");
        else if (c < 0x20 || c == 0x7f)
            text_printf(out, "\\u%04x", c);
        else {
            if (c == '"' || c == '\\')
                text_putc(out, '\\');
            text_append(out, text, size);
        }
        text += size > 0 ? size : 1;
    }
}

static void append_string(struct text *out, const char *string)
{
    text_putc(out, '"');
    json_put_escaped(out, string);
    text_putc(out, '"');
}

static void append_line_break(struct json_out *json)
{
    text_printf(json->out, "\n%*s", 2 * json->depth, "");
}

/* Appends what comes before a value: the separator, the line break and the key. */
static void append_key(struct json_out *json, const char *key)
{
    if (json->has_value)
        text_puts(json->out, json->on_one_line ? ", " : ",");
    if (json->depth > 0 && !json->on_one_line)
        append_line_break(json);
    json->has_value = true;
    if (key == NULL)
        return;
    append_string(json->out, key);
    text_puts(json->out, ": ");
}

static void begin_nested(struct json_out *json, const char *key, char bracket)
{
    append_key(json, key);
    text_putc(json->out, bracket);
    json->depth++;
    json->has_value = false;
}

static void end_nested(struct json_out *json, char bracket)
{
    json->depth--;
    if (!json->on_one_line && (json->has_value || bracket == '}'))
        append_line_break(json);
    text_putc(json->out, bracket);
    json->has_value = true;
}

void json_begin_object(struct json_out *json, const char *key)
{
    begin_nested(json, key, '{');
}

void json_end_object(struct json_out *json)
{
    end_nested(json, '}');
}

void json_begin_array(struct json_out *json, const char *key)
{
    begin_nested(json, key, '[');
}

void json_end_array(struct json_out *json)
{
    end_nested(json, ']');
}

void json_begin_inline_object(struct json_out *json, const char *key)
{
    begin_nested(json, key, '{');
    json->on_one_line = true;
}

void json_end_inline_object(struct json_out *json)
{
    end_nested(json, '}');
    json->on_one_line = false;
}

void json_put_number(struct json_out *json, const char *key, double value)
{
    append_key(json, key);
    if (isfinite(value))
        text_put_double(json->out, value);
    else
        text_puts(json->out, "null");
}

void json_put_rounded(struct json_out *json, const char *key, double value, int digits)
{
    append_key(json, key);
    if (isfinite(value))
        text_printf(json->out, "%.*g", digits, value);
    else
        text_puts(json->out, "null");
}

void json_put_count(struct json_out *json, const char *key, uint64_t value)
{
    append_key(json, key);
    if (value == UINT64_MAX)
        text_puts(json->out, "null");
    else
        text_printf(json->out, "%llu", (unsigned long long)value);
}

void json_put_text(struct json_out *json, const char *key, const char *value)
{
    append_key(json, key);
    if (value == NULL)
        text_puts(json->out, "null");
    else
        append_string(json->out, value);
}

void json_put_bool(struct json_out *json, const char *key, bool value)
{
    append_key(json, key);
    text_puts(json->out, value ? "true" : "false");
}

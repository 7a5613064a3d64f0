#include "cli/common/json_out.h"

#include "base/utf8.h"

#include <math.h>

static void put_string(struct text *out, const char *string)
{
    size_t size;
    text_putc(out, '"');
    for (const char *c = string; *c != '\0'; c += size > 0 ? size : 1) {
        size = utf8_size(c, SIZE_MAX);
        if (*c == '"' || *c == '\\')
            text_printf(out, "\\%c", *c);
        else if (size == 0)
            text_puts(out, "\\ufffd");
        else if ((unsigned char)*c < 0x20)
            text_printf(out, "\\u%04x", (unsigned)*c);
        else
            text_append(out, c, size);
    }
    text_putc(out, '"');
}

static void put_line(struct json_out *json)
{
    text_printf(json->out, "\n%*s", 2 * json->depth, "");
}

/* Appends what comes before a value: the separator, the line break and the key. */
static void put_key(struct json_out *json, const char *key)
{
    if (json->filled)
        text_putc(json->out, ',');
    if (json->depth > 0)
        put_line(json);
    json->filled = true;
    if (key == NULL)
        return;
    put_string(json->out, key);
    text_puts(json->out, ": ");
}

static void begin(struct json_out *json, const char *key, char bracket)
{
    put_key(json, key);
    text_putc(json->out, bracket);
    json->depth++;
    json->filled = false;
}

static void end(struct json_out *json, char bracket)
{
    json->depth--;
    if (json->filled || bracket == '}')
        put_line(json);
    text_putc(json->out, bracket);
    json->filled = true;
}

void json_begin_answer(struct json_out *json, const char *schema)
{
    json_begin_object(json, NULL);
    json_put_text(json, "schema", schema);
    json_put_count(json, "schema_version", JSON_SCHEMA_VERSION);
}

void json_begin_object(struct json_out *json, const char *key)
{
    begin(json, key, '{');
}

void json_end_object(struct json_out *json)
{
    end(json, '}');
}

void json_begin_array(struct json_out *json, const char *key)
{
    begin(json, key, '[');
}

void json_end_array(struct json_out *json)
{
    end(json, ']');
}

void json_put_number(struct json_out *json, const char *key, double value)
{
    put_key(json, key);
    if (isfinite(value))
        text_put_double(json->out, value);
    else
        text_puts(json->out, "null"); /* JSON has no infinity */
}

void json_put_count(struct json_out *json, const char *key, uint64_t value)
{
    put_key(json, key);
    if (value == UINT64_MAX)
        text_puts(json->out, "null");
    else
        text_printf(json->out, "%llu", (unsigned long long)value);
}

void json_put_text(struct json_out *json, const char *key, const char *value)
{
    put_key(json, key);
    if (value == NULL)
        text_puts(json->out, "null");
    else
        put_string(json->out, value);
}

void json_put_bool(struct json_out *json, const char *key, bool value)
{
    put_key(json, key);
    text_puts(json->out, value ? "true" : "false");
}

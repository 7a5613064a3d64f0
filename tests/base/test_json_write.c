/* tests/base/test_json_write.c: JSON is written in the promised lines, and any text in it is read back. */
#include "base/json.h"
#include "base/json_write.h"
#include "base/utf8.h"
#include "tests/check.h"

#include <math.h>
#include <string.h>

static void values_stand_on_lines_of_their_own_and_rows_on_one(void)
{
    struct text out = {0};
    struct json_out json = {.out = &out};
    json_begin_object(&json, NULL);
    json_put_text(&json, "text", "a");
    json_put_text(&json, "none", NULL);
    json_put_number(&json, "third", 1.0 / 3);
    json_put_number(&json, "infinite", INFINITY);
    json_put_rounded(&json, "rounded", 1.0 / 3, 3);
    json_put_rounded(&json, "not a number", NAN, 3);
    json_put_count(&json, "count", UINT64_MAX - 1);
    json_put_count(&json, "no count", UINT64_MAX);
    json_put_bool(&json, "bool", true);
    json_begin_array(&json, "rows");
    for (int i = 0; i < 2; i++) {
        json_begin_inline_object(&json, NULL);
        json_put_bool(&json, "a", false);
        json_begin_array(&json, "b");
        json_put_count(&json, NULL, 1);
        json_put_count(&json, NULL, 2);
        json_end_array(&json);
        json_end_inline_object(&json);
    }
    json_end_array(&json);
    json_begin_array(&json, "no rows");
    json_end_array(&json);
    json_begin_object(&json, "object");
    json_end_object(&json);
    json_end_object(&json);
    CHECK_TEXT("lines", out.data,
               "{\n"
               "  \"text\": \"a\",\n"
               "  \"none\": null,\n"
               "  \"third\": 0.3333333333333333,\n"
               "  \"infinite\": null,\n"
               "  \"rounded\": 0.333,\n"
               "  \"not a number\": null,\n"
               "  \"count\": 18446744073709551614,\n"
               "  \"no count\": null,\n"
               "  \"bool\": true,\n"
               "  \"rows\": [\n"
               "    {\"a\": false, \"b\": [1, 2]},\n"
               "    {\"a\": false, \"b\": [1, 2]}\n"
               "  ],\n"
               "  \"no rows\": [],\n"
               "  \"object\": {\n"
               "  }\n"
               "}");
    CHECK_INT("all are closed", json.depth, 0);
    text_release(&out);
}

static void one_line_json_has_no_line_breaks(void)
{
    struct text out = {0};
    struct json_out json = {.out = &out, .on_one_line = true};
    json_begin_object(&json, NULL);
    json_begin_object(&json, "a");
    json_put_count(&json, "b", 1);
    json_end_object(&json);
    json_put_text(&json, "c", "line\nend");
    json_end_object(&json);
    CHECK_TEXT("one line", out.data, "{\"a\": {\"b\": 1}, \"c\": \"line\\u000aend\"}");
    text_release(&out);
}

/* Random bytes, among them quotes, control characters, and lead bytes without the bytes that should follow. */
static void any_text_is_utf8_and_reads_back(void)
{
    static const char some[] =
        "\"\\\n\x01\x7f/a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xff\xc0\xed\xa0";
    struct check_random random = check_random_make();
    for (int round = 0; round < 2000; round++) {
        char bytes[24];
        const size_t size = (size_t)check_random_i64(&random, 0, sizeof bytes - 1);
        for (size_t i = 0; i < size; i++)
            bytes[i] = some[check_random_i64(&random, 0, sizeof some - 2)];
        bytes[size] = '\0';
        struct text out = {0}, want = {0};
        struct json_out json = {.out = &out};
        json_begin_object(&json, NULL);
        json_put_text(&json, bytes, bytes); /* keys may have any bytes, too */
        json_end_object(&json);
        text_puts(&want, "");
        utf8_append_repaired(&want, bytes);
        struct json read = {0};
        struct diag diag = {0};
        const char *key = NULL, *value = NULL;
        CHECK("UTF-8", utf8_is_valid(out.data));
        CHECK_INT("JSON", json_parse(&read, "t.json", out.data, out.size, &diag), STATUS_OK);
        struct json_node member = json_member_at(json_root(&read), 0, &key);
        CHECK_TEXT("key", key, want.data);
        CHECK_INT("string", json_as_string(member, &value, &diag), STATUS_OK);
        CHECK_TEXT("value", value, want.data);
        json_release(&read);
        diag_release(&diag);
        text_release(&out);
        text_release(&want);
    }
}

static const struct check_case cases[] = {
    {"values stand on lines of their own and rows on one",
     values_stand_on_lines_of_their_own_and_rows_on_one},
    {"a flat answer is one line", one_line_json_has_no_line_breaks},
    {"any text is UTF-8 and reads back", any_text_is_utf8_and_reads_back},
};
CHECK_MAIN("json_write", cases)

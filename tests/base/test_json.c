/* tests/base/test_json.c: JSON text is read as values with their lines; what is no JSON, or has the wrong type, gets
 * one message with its place. */
#include "base/json.h"
#include "base/json_pull.h"
#include "base/text.h"
#include "tests/check.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
    struct json json;
    struct diag diag;
    enum status status;
};

static struct fixture parse_fixture(const char *text, size_t size)
{
    struct fixture f = {0};
    f.status = json_parse(&f.json, "t.json", text, size, &f.diag);
    return f;
}

static void fixture_release(struct fixture *f)
{
    json_release(&f->json);
    diag_release(&f->diag);
}

static const char cluster[] = "// what a person writes\n"
                              "{\n"
                              "  \"name\": \"a100\", /* two\n"
                              "  lines */\n"
                              "  \"nodes\": {\n"
                              "    \"gpu\": {\n"
                              "      \"memory\": [80, \"x\",\n"
                              "        1.5]\n"
                              "    },\n"
                              "    \"count\": 8, \"nvlink\": true, \"none\": null,\n"
                              "    \"big\": 18446744073709551615, \"whole\": 1e6\n"
                              "  }\n"
                              "}\n";

static void json_values_are_read_as_written(void)
{
    struct fixture f = parse_fixture(cluster, strlen(cluster));
    CHECK_TEXT("messages", f.diag.text, "");
    struct json_node root = json_root(&f.json), nodes, gpu, memory;
    const char *name = NULL;
    int64_t whole = 0;
    double number = 0;
    bool truth = false;
    CHECK_INT("string", json_get_string(root, "name", &name, &f.diag), STATUS_OK);
    CHECK_TEXT("string", name, "a100");
    CHECK_INT("object", json_get_object(root, "nodes", &nodes, &f.diag), STATUS_OK);
    CHECK_INT("integer", json_get_i64(nodes, "count", 1, 64, &whole, &f.diag), STATUS_OK);
    CHECK_INT("integer", whole, 8);
    CHECK_INT("1e6", json_get_i64(nodes, "whole", 1, INT64_MAX, &whole, &f.diag), STATUS_OK);
    CHECK_INT("1e6", whole, 1000000);
    CHECK_INT("number", json_get_double(nodes, "big", 0, DBL_MAX, &number, &f.diag), STATUS_OK);
    CHECK_CLOSE("number", number, 0x1p64, 0);
    CHECK_INT("bool", json_get_bool(nodes, "nvlink", &truth, &f.diag), STATUS_OK);
    CHECK("bool", truth);
    json_get_object(nodes, "gpu", &gpu, &f.diag);
    CHECK_INT("array", json_get_array(gpu, "memory", &memory, &f.diag), STATUS_OK);
    CHECK_INT("elements", (int64_t)json_element_count(memory), 3);
    CHECK_INT("element", json_as_double(json_element_at(memory, 2), 0, 2, &number, &f.diag),
              STATUS_OK);
    CHECK_CLOSE("element", number, 1.5, 0);
    CHECK("null is absent", json_find_member(nodes, "none").value == NULL);
    CHECK("behind the end", json_element_at(memory, 3).value == NULL);
    CHECK("not an object",
          json_find_member(memory, "x").value == NULL && json_member_count(memory) == 0);
    CHECK("not an array",
          json_element_at(nodes, 0).value == NULL && json_element_count(nodes) == 0);
    CHECK_TEXT("no messages", f.diag.text, "");
    fixture_release(&f);
}

static void members_come_in_file_order(void)
{
    static const char text[] = "{\"z\": 1, \"a\": 2, \"m\": 3}";
    static const char *const keys[] = {"z", "a", "m"};
    struct fixture f = parse_fixture(text, strlen(text));
    struct json_node root = json_root(&f.json);
    CHECK_INT("members", (int64_t)json_member_count(root), 3);
    static const size_t order[] = {0, 1, 2, 2, 0, 1};
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        const char *key;
        int64_t value = 0;
        struct json_node member = json_member_at(root, order[i], &key);
        CHECK_TEXT("key", key, keys[order[i]]);
        CHECK_TEXT("path", member.path, keys[order[i]]);
        json_as_i64(member, 0, 9, &value, NULL);
        CHECK_INT("value", value, (int64_t)order[i] + 1);
    }
    fixture_release(&f);
}

typedef void (*ask)(struct json_node nodes, struct diag *diag);

static void ask_for_missing_key(struct json_node nodes, struct diag *diag)
{
    bool truth;
    json_get_bool(nodes, "nvswitch", &truth, diag);
}

static void ask_for_null_as_string(struct json_node nodes, struct diag *diag)
{
    const char *string;
    json_get_string(nodes, "none", &string, diag);
}

static void ask_string_as_number(struct json_node nodes, struct diag *diag)
{
    double number;
    struct json_node memory = json_find_member(json_find_member(nodes, "gpu"), "memory");
    json_as_double(json_element_at(memory, 1), 0, 1, &number, diag);
}

static void ask_out_of_range(struct json_node nodes, struct diag *diag)
{
    int64_t whole;
    json_get_i64(nodes, "count", 1, 4, &whole, diag);
}

static void ask_below_minimum(struct json_node nodes, struct diag *diag)
{
    double number;
    json_get_double(nodes, "count", 10, INFINITY, &number, diag);
}

static void ask_beyond_i64(struct json_node nodes, struct diag *diag)
{
    int64_t whole;
    json_get_i64(nodes, "big", 0, 9, &whole, diag);
}

static void ask_fraction_as_integer(struct json_node nodes, struct diag *diag)
{
    int64_t whole;
    struct json_node memory = json_find_member(json_find_member(nodes, "gpu"), "memory");
    json_as_i64(json_element_at(memory, 2), 0, 9, &whole, diag);
}

static void ask_object_as_array(struct json_node nodes, struct diag *diag)
{
    struct json_node out;
    json_get_array(nodes, "gpu", &out, diag);
}

static void ask_unknown_key(struct json_node nodes, struct diag *diag)
{
    static const char *const known[] = {"gpus", "count", "nvlink"};
    json_reject_unknown_keys(nodes, known, ARRAY_LEN(known), diag);
}

static void ask_strange_key(struct json_node nodes, struct diag *diag)
{
    static const char *const known[] = {"gpu", "count"};
    json_reject_unknown_keys(nodes, known, ARRAY_LEN(known), diag);
}

static void ask_with_message_of_caller(struct json_node nodes, struct diag *diag)
{
    json_error(json_find_member(nodes, "count"), diag, "%d does not divide %d", 3, 8);
}

static void a_wrong_value_is_reported_with_line_and_path(void)
{
    static const struct {
        const char *label;
        ask ask;
        const char *want;
    } rows[] = {
        {"missing", ask_for_missing_key,
         "t.json:5: error: nodes.nvswitch: missing: expected true or false\n"},
        {"null", ask_for_null_as_string,
         "t.json:10: error: nodes.none: missing: expected a string\n"},
        {"string", ask_string_as_number,
         "t.json:7: error: nodes.gpu.memory[1]: expected a number, found \"x\"\n"},
        {"range", ask_out_of_range,
         "t.json:10: error: nodes.count: 8 is out of range: expected 1 to 4\n"},
        {"at least", ask_below_minimum,
         "t.json:10: error: nodes.count: 8 is out of range: expected at least 10\n"},
        {"beyond i64", ask_beyond_i64,
         "t.json:11: error: nodes.big: 18446744073709551615 is out of range: expected 0 to 9\n"},
        {"fraction", ask_fraction_as_integer,
         "t.json:8: error: nodes.gpu.memory[2]: expected a whole number, found 1.5\n"},
        {"object", ask_object_as_array,
         "t.json:6: error: nodes.gpu: expected an array, found an object\n"},
        {"unknown key", ask_unknown_key,
         "t.json:6: error: nodes.gpu: unknown key: did you mean 'gpus'?\n"},
        {"strange key", ask_strange_key, "t.json:10: error: nodes.nvlink: unknown key\n"},
        {"own message", ask_with_message_of_caller,
         "t.json:10: error: nodes.count: 3 does not divide 8\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fixture f = parse_fixture(cluster, strlen(cluster));
        rows[i].ask(json_find_member(json_root(&f.json), "nodes"), &f.diag);
        CHECK_TEXT(rows[i].label, f.diag.text, rows[i].want);
        fixture_release(&f);
    }
}

static void what_is_no_json_is_refused_with_its_place(void)
{
#define STRING_AND_LENGTH(string) string, sizeof(string) - 1
    static const struct {
        const char *label, *text;
        size_t size;
        const char *want;
    } rows[] = {
        {"nothing", STRING_AND_LENGTH(""), "1:1: error: expected a value, but the text ends here"},
        {"truncated object", STRING_AND_LENGTH("{\"a\": 1,\n"),
         "2:1: error: expected a key in double quotes, but the text ends here"},
        {"truncated array", STRING_AND_LENGTH("[1"),
         "1:3: error: expected ',' or ']', but the text ends here"},
        {"truncated string", STRING_AND_LENGTH("[\"ab"),
         "1:2: error: this string does not end on its line"},
        {"string over line", STRING_AND_LENGTH("[\"ab\n\"]"),
         "1:2: error: this string does not end on its line"},
        {"duplicate key", STRING_AND_LENGTH("{\"a\":1,\n\"a\":2}"),
         "2:1: error: duplicate key 'a'"},
        {"escaped twin", STRING_AND_LENGTH("[{\"a\":1,\n \"\\u0061\":2}]"),
         "2:2: error: duplicate key 'a'"},
        {"trailing comma", STRING_AND_LENGTH("[1,]"),
         "1:4: error: there must be no comma before ']'"},
        {"trailing comma", STRING_AND_LENGTH("{\"a\":1,}"),
         "1:8: error: there must be no comma before '}'"},
        {"trailing text", STRING_AND_LENGTH("{} {}"),
         "1:4: error: expected nothing after the value, found '{'"},
        {"trailing NUL", STRING_AND_LENGTH("{}\0"),
         "1:3: error: expected nothing after the value, found byte 0x00"},
        {"NaN", STRING_AND_LENGTH("[NaN]"), "1:2: error: 'NaN' is no JSON value"},
        {"Infinity", STRING_AND_LENGTH("[-Infinity]"), "1:3: error: expected a digit, found 'I'"},
        {"True", STRING_AND_LENGTH("True"), "1:1: error: 'True' is no JSON value"},
        {"single quotes", STRING_AND_LENGTH("{'a': 1}"),
         "1:2: error: expected a key in double quotes, found '''"},
        {"bare key", STRING_AND_LENGTH("{a: 1}"),
         "1:2: error: expected a key in double quotes, found 'a'"},
        {"no colon", STRING_AND_LENGTH("{\"a\" 1}"), "1:6: error: expected ':', found '1'"},
        {"no comma", STRING_AND_LENGTH("[1 2]"), "1:4: error: expected ',' or ']', found '2'"},
        {"leading zero", STRING_AND_LENGTH("[01]"),
         "1:2: error: a number must not have a digit right after a leading 0"},
        {"no fraction", STRING_AND_LENGTH("[1.]"), "1:4: error: expected a digit, found ']'"},
        {"no exponent", STRING_AND_LENGTH("[1e]"), "1:4: error: expected a digit, found ']'"},
        {"NUL in a string", STRING_AND_LENGTH("\"a\0b\""),
         "1:3: error: byte 0x00 must be escaped in a string"},
        {"escaped NUL", STRING_AND_LENGTH("\"a\\u0000\""),
         "1:3: error: a string must not hold \\u0000"},
        {"unknown escape", STRING_AND_LENGTH("\"\\x41\""),
         "1:2: error: unknown escape in a string: \\\" \\\\ \\/ \\b \\f \\n \\r \\t and \\uXXXX "
         "are known"},
        {"invalid UTF-8", STRING_AND_LENGTH("\"\xff\""),
         "1:2: error: a string must be UTF-8: byte 0xff cannot stand here"},
        {"overlong UTF-8", STRING_AND_LENGTH("\"\xc0\x80\""),
         "1:2: error: a string must be UTF-8: byte 0xc0 cannot stand here"},
        {"cut UTF-8", STRING_AND_LENGTH("\"\xe2\x82\""),
         "1:2: error: a string must be UTF-8: byte 0xe2 cannot stand here"},
        {"surrogate", STRING_AND_LENGTH("\"\xed\xa0\x80\""),
         "1:2: error: a string must be UTF-8: byte 0xed cannot stand here"},
        {"open comment", STRING_AND_LENGTH("[1\n/* x\n"),
         "2:1: error: this comment has no closing */"},
        {"half a comment", STRING_AND_LENGTH("/"),
         "1:1: error: unexpected '/': a comment starts with // or /*"},
        {"hash comment", STRING_AND_LENGTH("# x\n{}"), "1:1: error: expected a value, found '#'"},
    };
#undef STRING_AND_LENGTH
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fixture f = parse_fixture(rows[i].text, rows[i].size);
        struct text want = {0};
        text_printf(&want, "t.json:%s\n", rows[i].want);
        CHECK_INT(rows[i].label, f.status, STATUS_BAD_INPUT);
        CHECK_TEXT(rows[i].label, f.diag.text, want.data);
        text_release(&want);
        fixture_release(&f);
    }
}

static void nesting_ends_at_64_levels(void)
{
    char text[200] = {0};
    memset(text, '[', 64);
    memset(text + 64, ']', 64);
    struct fixture deepest = parse_fixture(text, 128);
    CHECK_INT("64", deepest.status, STATUS_OK);
    fixture_release(&deepest);
    memset(text, '[', 65);
    memset(text + 65, ']', 65);
    struct fixture deeper = parse_fixture(text, 130);
    CHECK_TEXT("65", deeper.diag.text, "t.json:1:65: error: nested deeper than 64 levels\n");
    fixture_release(&deeper);
}

static void a_text_beyond_16_mib_is_refused_at_once(void)
{
    size_t size = (16u << 20) + 1;
    char *text = heap_alloc(size, 1);
    memset(text, '[', size);
    struct fixture f = parse_fixture(text, size);
    CHECK_TEXT("large", f.diag.text,
               "t.json: error: 16777217 bytes are too many: a configuration has at most 16 MiB\n");
    fixture_release(&f);
    free(text);
}

static void every_prefix_ends_in_one_message(void)
{
    for (size_t size = 0; size < strlen(cluster) - 2; size++) {
        char *part = heap_alloc(size, 1); /* the exact size, for the address sanitizer */
        memcpy(part, cluster, size);
        struct fixture f = parse_fixture(part, size);
        CU_ASSERT(f.status == STATUS_BAD_INPUT && f.diag.error_count == 1);
        fixture_release(&f);
        free(part);
    }
}

static void integers_beyond_64_bits_are_numbers_out_of_range(void)
{
    static const char text[] = "[18446744073709551616, -9223372036854775809, 1e300]";
    struct fixture f = parse_fixture(text, strlen(text));
    struct json_node root = json_root(&f.json);
    double number = 0;
    CHECK_INT("2^64", json_as_double(json_element_at(root, 0), 0, DBL_MAX, &number, &f.diag),
              STATUS_OK);
    CHECK_CLOSE("2^64", number, 0x1p64, 0);
    int64_t whole = 0;
    for (size_t i = 0; i < 3; i++)
        json_as_i64(json_element_at(root, i), INT64_MIN, 9, &whole, &f.diag);
    CHECK_TEXT("as 64 bits", f.diag.text,
               "t.json:1: error: [0]: 18446744073709551616 is out of range: expected at most 9\n"
               "t.json:1: error: [1]: -9223372036854775809 is out of range: expected at most 9\n"
               "t.json:1: error: [2]: 1e300 is out of range: expected at most 9\n");
    fixture_release(&f);
}

static void numbers_beyond_double_are_refused_when_asked_for(void)
{
    struct fixture f = parse_fixture("{\"x\": 1e999}", 12);
    double number;
    int64_t whole;
    CHECK_INT("parsed", f.status, STATUS_OK);
    json_get_double(json_root(&f.json), "x", 0, INFINITY, &number, &f.diag);
    CHECK_TEXT("as double", f.diag.text, "t.json:1: error: x: this number is too large\n");
    diag_clear(&f.diag);
    json_get_i64(json_root(&f.json), "x", 0, 9, &whole, &f.diag);
    CHECK_INT("as integer", (int64_t)f.diag.error_count, 1);
    fixture_release(&f);
}

static void escapes_are_read_as_utf_8(void)
{
    static const struct {
        const char *label, *text, *want;
    } rows[] = {
        {"none", "\"plain \xc3\xa9\"", "plain \xc3\xa9"},
        {"of one letter", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
        {"one byte", "\"\\u0041\\u007F\"", "A\x7f"},
        {"two bytes", "\"\\u00e9\\u07ff\"", "\xc3\xa9\xdf\xbf"},
        {"three bytes", "\"\\u20AC\\uffff\"", "\xe2\x82\xac\xef\xbf\xbf"},
        {"a surrogate pair", "\"\\ud83d\\ude00!\"", "\xf0\x9f\x98\x80!"},
        {"the last character", "\"\\udbff\\udfff\"", "\xf4\x8f\xbf\xbf"},
        {"half a pair at the end", "\"\\ud83d\"", "\xef\xbf\xbd"},
        {"half a pair and another escape", "\"\\ud83d\\u0041\"",
         "\xef\xbf\xbd"
         "A"},
        {"the second half first", "\"\\ude00\\ud83d\"", "\xef\xbf\xbd\xef\xbf\xbd"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fixture f = parse_fixture(rows[i].text, strlen(rows[i].text));
        const char *got = NULL;
        CHECK_INT(rows[i].label, json_as_string(json_root(&f.json), &got, &f.diag), STATUS_OK);
        CHECK_TEXT(rows[i].label, got, rows[i].want);
        fixture_release(&f);
    }
    struct fixture f = parse_fixture("{\"\\u0061b\": 7}", 14);
    int64_t value = 0;
    CHECK_INT("key", json_get_i64(json_root(&f.json), "ab", 0, 9, &value, &f.diag), STATUS_OK);
    CHECK_INT("key", value, 7);
    fixture_release(&f);
}

/* The output has room for six bytes: five and the NUL. No character is cut in two. */
static void a_text_is_cut_where_it_does_not_fit(void)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"abcdef", "abcde"},
        {"abc\\u20ac", "abc"},
        {"ab\\u20acd", "ab\xe2\x82\xac"},
        {"\\u0000", "\xef\xbf\xbd"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char out[6];
        const size_t size = json_unescape(rows[i].text, strlen(rows[i].text), out, sizeof out);
        CHECK_TEXT(rows[i].text, out, rows[i].want);
        CHECK_INT(rows[i].text, (int64_t)size, (int64_t)strlen(rows[i].want));
    }
}

/* Writes the line number of a value and of every value in it, in the order of the text. Null members and
 * elements count as values. */
static void write_line_of_each_value(struct text *out, struct json_node node)
{
    const char *key;
    text_printf(out, "%u ", json_loc(node).line);
    for (size_t i = 0; i < json_member_count(node); i++)
        write_line_of_each_value(out, json_member_at(node, i, &key));
    for (size_t i = 0; i < json_element_count(node); i++)
        write_line_of_each_value(out, json_element_at(node, i));
}

static void every_value_has_its_line(void)
{
    static const struct {
        const char *label, *text, *want;
    } rows[] = {
        {"one value", "1", "1 "},
        {"behind space and comments", "\n// a\n/* b\n */ 1\n", "4 "},
        {"null", "\nnull", "2 "},
        {"LF", "{\n\"a\": 1,\n\"b\":\n2\n}\n", "1 2 4 "},
        {"CRLF", "{\r\n\"a\": 1,\r\n\"b\":\r\n2\r\n}\r\n", "1 2 4 "},
        {"no line end at the end", "{\n\"a\": 1,\n\"b\": 2}", "1 2 3 "},
        {"CR alone is no line end", "[\r1,\n2]", "1 1 2 "},
        {"nested", "{\"a\": {\n\"b\": [1,\n{\"c\": [\n]}, \"x\"],\n\"d\": {}},\n\"e\": true}",
         "1 1 2 2 3 3 4 5 6 "},
        {"null among others", "{\"a\": null,\n\"b\": [null,\n1, null]\n, \"c\": 2}",
         "1 1 2 2 3 3 4 "},
        {"keys that look like paths", "{\"a.b\": 1,\n\"a[0]\": 2,\n\"a\": {\"b\":\n3}}",
         "1 1 2 3 4 "},
        {"an escaped key", "{\"\\u0061\":\n1,\n\"b\": 2}", "1 2 3 "},
        {"a number's own text", "[1.50,\n18446744073709551615,\n-0,\n1e400]", "1 1 2 3 4 "},
        {"line ends in strings are escaped", "[\"a\\nb\",\n\"c\"]", "1 1 2 "},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fixture f = parse_fixture(rows[i].text, strlen(rows[i].text));
        struct text got = {0};
        CHECK_INT(rows[i].label, f.status, STATUS_OK);
        write_line_of_each_value(&got, json_root(&f.json));
        CHECK_TEXT(rows[i].label, got.data, rows[i].want);
        text_release(&got);
        fixture_release(&f);
    }
}

static void missing_json_value_has_parent_line(void)
{
    struct fixture f = parse_fixture(cluster, strlen(cluster));
    struct json_node nodes = json_find_member(json_root(&f.json), "nodes");
    CHECK_INT("a member", json_loc(json_find_member(json_find_member(nodes, "gpu"), "x")).line, 6);
    CHECK_INT("an element", json_loc(json_element_at(json_find_member(nodes, "count"), 3)).line,
              10);
    CHECK_INT("of what is not there",
              json_loc(json_find_member(json_find_member(nodes, "x"), "y")).line, 5);
    CHECK_INT("null", json_loc(json_find_member(nodes, "none")).line, 10);
    fixture_release(&f);
}

/* If each value needed a scan of the text, or each key a search of all keys, this test would take a minute. */
static void long_texts_take_linear_time(void)
{
    enum { VALUES = 50000 };
    struct text text = {0};
    text_puts(&text, "[");
    for (int i = 0; i < VALUES; i++)
        text_printf(&text, "%s{\"value\": %d}", i ? ",\n" : "", i);
    text_puts(&text, ",\n{");
    for (int i = 0; i < VALUES; i++)
        text_printf(&text, "%s\"key %d\": 0", i ? ", " : "", i);
    text_puts(&text, "}]");
    struct fixture f = parse_fixture(text.data, text.size);
    struct json_node root = json_root(&f.json);
    size_t wrong = 0;
    for (size_t i = 0; i < VALUES; i++)
        wrong += json_loc(json_find_member(json_element_at(root, i), "value")).line != i + 1;
    CHECK_INT("values", (int64_t)json_element_count(root), VALUES + 1);
    CHECK_INT("keys", (int64_t)json_member_count(json_element_at(root, VALUES)), VALUES);
    CHECK_INT("wrong lines", (int64_t)wrong, 0);
    fixture_release(&f);
    text_release(&text);
}

static enum status add_members_and_line(struct json_node value, void *sums, struct diag *diag)
{
    uint64_t *sum = sums;
    (void)diag;
    sum[0] += json_member_count(value);
    sum[1] += json_loc(value).line;
    return STATUS_OK;
}

static void json_lines_are_read_one_by_one(void)
{
    static const struct {
        const char *label, *text, *want;
        uint64_t members, lines;
    } rows[] = {
        {"blank lines", "\n{\"a\": 1}\r\n \t\n{\"a\": 1, \"b\": 2}", "", 3, 2 + 4},
        {"no line", "", "", 0, 0},
        {"two values", "{}\n{} {}\n", "t:2:4: error: expected nothing after the value, found '{'\n",
         0, 1},
        {"a value on two lines", "{}\n\n{\"a\":\n1}",
         "t:3:6: error: expected a value, but the text ends here\n", 0, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct diag diag = {0};
        uint64_t sum[2] = {0};
        const enum status status = json_read_lines("t", rows[i].text, strlen(rows[i].text),
                                                   add_members_and_line, sum, &diag);
        CHECK_INT(rows[i].label, status, rows[i].want[0] == '\0' ? STATUS_OK : STATUS_BAD_INPUT);
        CHECK_INT(rows[i].label, (int64_t)sum[0], (int64_t)rows[i].members);
        CHECK_INT(rows[i].label, (int64_t)sum[1], (int64_t)rows[i].lines);
        CHECK_TEXT(rows[i].label, diag.text != NULL ? diag.text : "", rows[i].want);
        diag_release(&diag);
    }
}

static const struct check_case cases[] = {
    {"lines are read one by one", json_lines_are_read_one_by_one},
    {"values come out as written", json_values_are_read_as_written},
    {"members come in file order", members_come_in_file_order},
    {"a wrong value is reported with line and path", a_wrong_value_is_reported_with_line_and_path},
    {"what is no JSON is refused with its place", what_is_no_json_is_refused_with_its_place},
    {"nesting ends at 64 levels", nesting_ends_at_64_levels},
    {"a text beyond 16 MiB is refused at once", a_text_beyond_16_mib_is_refused_at_once},
    {"every prefix ends in one message", every_prefix_ends_in_one_message},
    {"integers beyond 64 bits are numbers out of range",
     integers_beyond_64_bits_are_numbers_out_of_range},
    {"numbers beyond double are refused when asked for",
     numbers_beyond_double_are_refused_when_asked_for},
    {"escapes are read as UTF-8", escapes_are_read_as_utf_8},
    {"a text is cut where it does not fit", a_text_is_cut_where_it_does_not_fit},
    {"every value has its line", every_value_has_its_line},
    {"what is not there has the line of what leads to it", missing_json_value_has_parent_line},
    {"long texts take linear time", long_texts_take_linear_time},
};
CHECK_MAIN("json", cases)

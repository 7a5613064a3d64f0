/* tests/cli/test_rows.c: a table that is filled once comes out as text, as JSON and in a page; docs/schema/rows.json is
 * made from the columns. */
#include "base/json_write.h"
#include "cli/command.h"
#include "cli/common/rows.h"
#include "cli/measure/compare_report.h"
#include "cli/measure/explain_report.h"
#include "cli/measure/operator_report.h"
#include "cli/measure/points_json.h"
#include "cli/measure/run_report.h"
#include "cli/plan/longest_report.h"
#include "cli/plan/report.h"
#include "cli/report/report.h"
#include "cli/sweep/summary.h"
#include "cli/validate/print.h"
#include "tests/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A column has: key, label, label in a page, kind, width in text, description (cli/common/rows.h). */
/* clang-format off */
static const struct column columns[] = {
    {"kind", "kind", NULL, COLUMN_PLAIN_TEXT, -8, NULL},
    {"count", "n", NULL, COLUMN_COUNT, 3, NULL},
    {"layer", "layer", NULL, COLUMN_INDEX, 5, NULL},
    {"hidden", NULL, NULL, COLUMN_COUNT, 0, NULL},
    {"step_s", "ms", NULL, COLUMN_SECONDS, 8, NULL},
    {"bytes", "bytes", NULL, COLUMN_BYTES, 11, NULL},
    {"all_bytes", "all", NULL, COLUMN_BYTES_WITH_UNIT, 8, NULL},
    {NULL, "GiB", NULL, COLUMN_GIB, 5, NULL},
    {"error", "error", "error %", COLUMN_SIGNED_PERCENT, 8, NULL},
    {NULL, "share", "share %", COLUMN_SHARE, 7, NULL},
    {NULL, "off", NULL, COLUMN_SMALL_NUMBER, 7, NULL},
};
/* clang-format on */
static const struct row_table table = {"table", columns, ARRAY_LEN(columns)};

static void fill_rows(struct rows *rows)
{
    static const struct {
        const char *name;
        double count, layer, hidden, step_s, bytes, error, share;
    } values[] = {{"a<b", 2, 3, 7, 0.0015, 4096, -0.125, 1}, {"", 12, -1, 8, 2, 80e9, NAN, NAN}};
    rows_begin(rows, "rows", NULL, &table);
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        rows_put_text(rows, values[i].name);
        rows_put_number(rows, values[i].count);
        rows_put_number(rows, values[i].layer);
        rows_put_number(rows, values[i].hidden);
        rows_put_number(rows, values[i].step_s);
        rows_put_number(rows, values[i].bytes);
        rows_put_number(rows, values[i].bytes);
        rows_put_number(rows, values[i].bytes);
        rows_put_number(rows, values[i].error);
        rows_put_number(rows, values[i].share);
        rows_put_number(rows, values[i].share / 3e4);
    }
    rows_end(rows);
}

static void a_table_is_text(void)
{
    struct text out = {0};
    struct rows rows = {.out = &out};
    fill_rows(&rows);
    CHECK_TEXT("text", out.data,
               "kind       n layer       ms       bytes      all   GiB    error   share     off\n"
               "a<b        2     3    1.500        4096 4.00 KiB  0.00  -12.5 % 100.0 % 3.3e-05\n"
               "(none)    12     - 2000.000 80000000000 74.5 GiB 74.51        -       -       -\n");
    text_release(&out);
}

static void a_table_is_json(void)
{
    struct text out = {0};
    struct json_out json = {.out = &out};
    struct rows rows = {.json = &json};
    json_begin_object(&json, NULL);
    fill_rows(&rows);
    json_end_object(&json);
    CHECK_TEXT(
        "JSON", out.data,
        "{\n"
        "  \"rows\": [\n"
        "    {\"kind\": \"a<b\", \"count\": 2, \"layer\": 3, \"hidden\": 7, \"step_s\": 0.0015, "
        "\"bytes\": 4096, \"all_bytes\": 4096, \"error\": -0.125},\n"
        "    {\"kind\": \"\", \"count\": 12, \"layer\": -1, \"hidden\": 8, \"step_s\": 2, "
        "\"bytes\": 80000000000, \"all_bytes\": 80000000000, \"error\": null}\n"
        "  ]\n"
        "}");
    text_release(&out);
}

static void a_table_is_html(void)
{
    struct page page = {0};
    struct rows rows = {.page = &page};
    fill_rows(&rows);
    CHECK(
        "heads",
        strstr(
            page.html.data,
            "<th>kind</th><th>n</th><th>layer</th><th>ms</th><th>"
            "bytes</th><th>all</th><th>GiB</th><th>error %</th><th>share %</th><th>off</th></tr>"));
    CHECK("a row",
          strstr(page.html.data,
                 "<tr><td>a&lt;b</td><td class=\"n\">2</td><td class=\"n\">3</td><td class=\"n\">"
                 "1.500</td><td class=\"n\">4096</td><td>4.00 KiB</td><td class=\"n\">0.00</td><td "
                 "class=\"n\">-12.5</td><td class=\"n\">"
                 "100.0</td>"));
    text_release(&page.html);
}

/* Columns of which a row may lack some or not know their values; one holds inner rows, and the last is a text. */
static const struct column inner_columns[] = {{"n", NULL, NULL, COLUMN_COUNT, 0, NULL}};
static const struct row_table inner_table = {"inner", inner_columns, ARRAY_LEN(inner_columns)};
/* clang-format off */
static const struct column open_columns[] = {
    {"more_s", "more ms", NULL, COLUMN_SECONDS_DIFFERENCE, 8, NULL},
    {"share", "share", NULL, COLUMN_WHOLE_PERCENT | COLUMN_OPTIONAL, 6, NULL},
    {"name", "name", NULL, COLUMN_PLAIN_TEXT, -6, NULL},
    {"rank", NULL, NULL, COLUMN_COUNT | COLUMN_NULLABLE, 0, NULL},
    {"right", NULL, NULL, COLUMN_FLAG, 0, NULL},
    {"inner", NULL, NULL, COLUMN_NESTED_ROWS, 0, "inner"},
    {"what", "what", NULL, COLUMN_WRAPPED_TEXT | COLUMN_NULLABLE, 0, NULL},
};
/* clang-format on */
static const struct row_table open_table = {"open", open_columns, ARRAY_LEN(open_columns)};

static void fill_rows_of_open_table(struct rows *rows)
{
    struct rows inner;
    rows_begin(rows, "rows", NULL, &open_table);
    rows_put_number(rows, -1e-8);
    rows_put_number(rows, 0.126);
    rows_put_text(rows, "a");
    rows_put_number(rows, 3);
    rows_put_number(rows, 1);
    rows_begin_nested_rows(&inner, rows, &inner_table);
    rows_put_number(&inner, 5);
    rows_end(&inner);
    rows_put_text(rows, "one two, three four");
    rows_put_number(rows, 0.25);
    rows_skip_column(rows);
    rows_put_text(rows, "b");
    rows_put_number(rows, NAN);
    rows_put_number(rows, 0);
    rows_begin_nested_rows(&inner, rows, &inner_table);
    rows_end(&inner);
    rows_put_text(rows, "");
    rows_end(rows);
}

static void missing_values_are_blank_or_left_out(void)
{
    struct text out = {0}, csv = {0}, json_text = {0};
    struct json_out json = {.out = &json_text};
    struct rows rows = {.out = &out, .screen_width = 38};
    fill_rows_of_open_table(&rows);
    CHECK_TEXT("text", out.data,
               " more ms  share  name   what\n"
               "  +0.000   13 %  a      one two, three\n"
               "                        four\n"
               "+250.000         b\n");
    rows = (struct rows){.csv = &csv};
    fill_rows_of_open_table(&rows);
    CHECK_TEXT("CSV", csv.data,
               "more_s,share,name,rank,right,inner,what\n"
               "-1e-08,0.126,a,3,true,,\"one two, three four\"\n"
               "0.25,,b,,false,,\n");
    rows = (struct rows){.json = &json};
    json_begin_object(&json, NULL);
    fill_rows_of_open_table(&rows);
    json_end_object(&json);
    CHECK("an optional member",
          strstr(json_text.data, "\"more_s\": 0.25,\n      \"name\"") != NULL);
    CHECK("null", strstr(json_text.data, "\"rank\": null,\n      \"right\": false") != NULL);
    CHECK("inner rows", strstr(json_text.data, "\"inner\": [\n        {\"n\": 5}") != NULL);
    text_release(&out);
    text_release(&csv);
    text_release(&json_text);
}

/* A single row with a single row in it. The second row that the test puts lacks the inner one. */
static const struct column one_columns[] = {
    {"n", NULL, NULL, COLUMN_COUNT, 0, NULL},
    {"inner", NULL, NULL, COLUMN_NESTED_ROW | COLUMN_OPTIONAL, 0, "inner"},
};
static const struct row_table one_table = {"one", one_columns, ARRAY_LEN(one_columns)};

static void a_single_row_is_an_object(void)
{
    struct text out = {0};
    struct json_out json = {.out = &out};
    struct rows rows = {.json = &json}, inner;
    json_begin_object(&json, NULL);
    rows_begin_single_row(&rows, "best", &one_table);
    rows_put_number(&rows, 1);
    rows_begin_nested_row(&inner, &rows, &inner_table);
    rows_put_number(&inner, 2);
    rows_end(&inner);
    rows_end(&rows);
    rows_begin_single_row(&rows, "other", &one_table);
    rows_put_number(&rows, 3);
    rows_skip_column(&rows);
    rows_end(&rows);
    rows_begin(&rows, "many", NULL, &inner_table);
    rows_put_number(&rows, 4);
    rows_end(&rows);
    json_end_object(&json);
    CHECK_TEXT("JSON, with many rows after single ones", out.data,
               "{\n"
               "  \"best\": {\n"
               "    \"n\": 1,\n"
               "    \"inner\": {\n"
               "      \"n\": 2\n"
               "    }\n"
               "  },\n"
               "  \"other\": {\n"
               "    \"n\": 3\n"
               "  },\n"
               "  \"many\": [\n"
               "    {\"n\": 4}\n"
               "  ]\n"
               "}");
    text_release(&out);
}

/* Puts the type of a column as JSON Schema has it. */
static void write_schema_type_of_column(struct json_out *json, const struct column *column)
{
    static const char *const types[COLUMN_KIND_COUNT] = {
        [COLUMN_PLAIN_TEXT] = "string",
        [COLUMN_WRAPPED_TEXT] = "string",
        [COLUMN_FLAG] = "boolean",
        [COLUMN_COUNT] = "integer",
        [COLUMN_INDEX] = "integer",
        [COLUMN_BYTES] = "number",
        [COLUMN_SECONDS] = "number",
        [COLUMN_SECONDS_DIFFERENCE] = "number",
        [COLUMN_NUMBER] = "number",
        [COLUMN_SIGNED_PERCENT] = "number",
        [COLUMN_SHARE] = "number",
        [COLUMN_WHOLE_PERCENT] = "number",
        [COLUMN_BYTES_WITH_UNIT] = "integer",
        [COLUMN_GIB] = "integer",
        [COLUMN_SMALL_NUMBER] = "number",
        [COLUMN_NESTED_ROWS] = "array",
        [COLUMN_JSON_OBJECT] = "object",
        [COLUMN_NESTED_ROW] = "object",
    };
    static const bool may_be_unknown[COLUMN_KIND_COUNT] = {
        [COLUMN_SIGNED_PERCENT] = true, [COLUMN_SHARE] = true, [COLUMN_SMALL_NUMBER] = true};
    int kind = column->kind & COLUMN_KIND_MASK;
    if (kind == COLUMN_NUMBER_OR_TEXT) {
        json_begin_array(json, "type");
        json_put_text(json, NULL, "number");
        json_put_text(json, NULL, "string");
        json_put_text(json, NULL, "null");
        json_end_array(json);
        return;
    }
    if (!may_be_unknown[kind] && (column->kind & COLUMN_NULLABLE) == 0) {
        json_put_text(json, "type", types[kind]);
        return;
    }
    json_begin_array(json, "type");
    json_put_text(json, NULL, types[kind]);
    json_put_text(json, NULL, "null");
    json_end_array(json);
}

static void write_schema_of_column(struct json_out *json, const struct column *column)
{
    int kind = column->kind & COLUMN_KIND_MASK;
    json_begin_inline_object(json, column->key);
    if (kind == COLUMN_NESTED_ROW ||
        (column->description != NULL && strstr(column->description, ".json") != NULL)) {
        char ref[96];
        snprintf(ref, sizeof ref, "%s#/$defs/%s",
                 kind == COLUMN_NESTED_ROW ? "" : column->description,
                 kind == COLUMN_NESTED_ROW ? column->description : column->key);
        json_put_text(json, "$ref", ref);
        json_end_inline_object(json);
        return;
    }
    write_schema_type_of_column(json, column);
    if (kind == COLUMN_COUNT || kind == COLUMN_BYTES_WITH_UNIT || kind == COLUMN_GIB)
        json_put_count(json, "minimum", 0);
    if (kind == COLUMN_NESTED_ROWS) {
        char ref[64];
        snprintf(ref, sizeof ref, "#/$defs/%s", column->description);
        json_begin_object(json, "items");
        json_put_text(json, "$ref", ref);
        json_end_object(json);
    } else if (kind == COLUMN_JSON_OBJECT) {
        json_begin_object(json, "additionalProperties");
        json_begin_array(json, "type");
        json_put_text(json, NULL, "number");
        json_put_text(json, NULL, "string");
        json_end_array(json);
        json_end_object(json);
    }
    if (column->description != NULL && kind != COLUMN_NESTED_ROWS)
        json_put_text(json, "description", column->description);
    json_end_inline_object(json);
}

static void write_schema_of_table(struct json_out *json, const struct row_table *of)
{
    json_begin_object(json, of->name);
    json_put_text(json, "type", "object");
    json_begin_object(json, "properties");
    for (size_t i = 0; i < of->column_count; i++)
        if (of->column[i].key != NULL)
            write_schema_of_column(json, &of->column[i]);
    json_end_object(json);
    json_begin_array(json, "required");
    for (size_t i = 0; i < of->column_count; i++)
        if (of->column[i].key != NULL && (of->column[i].kind & COLUMN_OPTIONAL) == 0)
            json_put_text(json, NULL, of->column[i].key);
    json_end_array(json);
    json_put_bool(json, "additionalProperties", false);
    json_end_object(json);
}

static void the_schema_is_made_from_the_columns(void)
{
    struct column columns_of_check_table[RUN_CHECK_COLUMNS];
    struct report_stage_columns columns_of_stage_table;
    const struct row_table check = run_check_table(columns_of_check_table, 24);
    const struct row_table stage = report_make_stage_row_table(&columns_of_stage_table);
    const struct {
        const struct row_table *table;
        size_t count;
    } all[] = {{compare_tables, COMPARE_TABLE_COUNT},
               {operator_tables, OPERATOR_TABLE_COUNT},
               {&check, 1},
               {why_tables, WHY_TABLE_COUNT},
               {explain_tables, EXPLAIN_TABLE_COUNT},
               {list_tables, LIST_TABLE_COUNT},
               {points_tables, POINTS_TABLE_COUNT},
               {report_tables, REPORT_TABLE_COUNT},
               {report_document_tables, REPORT_DOCUMENT_TABLE_COUNT},
               {&stage, 1},
               {plan_tables, PLAN_TABLE_COUNT},
               {&sweep_point_table, 1},
               {&longest_table, 1},
               {validate_tables, VALIDATE_TABLE_COUNT},
               {validate_rows, VALIDATE_ROW_COUNT}};
    struct text out = {0};
    struct json_out json = {.out = &out};
    json_begin_object(&json, NULL);
    json_put_text(&json, "$schema", "https://json-schema.org/draft/2020-12/schema");
    json_put_text(&json, "title",
                  "Rows of tables. The test cli/rows makes this file from their columns: "
                  "UPDATE_GOLDEN=1 ctest --preset release -R cli/rows");
    json_begin_object(&json, "$defs");
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        for (size_t k = 0; k < all[i].count; k++)
            write_schema_of_table(&json, &all[i].table[k]);
    json_end_object(&json);
    json_end_object(&json);
    text_putc(&out, '\n');
    CHECK_GOLDEN("../docs/schema/rows.json", out.data);
    text_release(&out);
}

static const struct check_case cases[] = {
    {"a table is text", a_table_is_text},
    {"a table is JSON", a_table_is_json},
    {"a table is HTML", a_table_is_html},
    {"what a row lacks is blank, empty or left out", missing_values_are_blank_or_left_out},
    {"a single row is an object", a_single_row_is_an_object},
    {"the schema is made from the columns", the_schema_is_made_from_the_columns},
};
CHECK_MAIN("rows", cases)

/* tests/cli/test_rows.c: a table that is filled once comes out as text, as JSON and in a page; docs/schema/rows.json is
 * made from the columns. */
#include "base/json_write.h"
#include "cli/command.h"
#include "cli/common/rows.h"
#include "cli/measure/compare_report.h"
#include "cli/measure/run_report.h"
#include "cli/validate/print.h"
#include "tests/check.h"

#include <math.h>
#include <string.h>

/* clang-format off */
static const struct column columns[] = {
    {"kind", "kind", NULL, COLUMN_NAME, -8, NULL},
    {"count", "n", NULL, COLUMN_COUNT, 3, NULL},
    {"layer", "layer", NULL, COLUMN_INDEX, 5, NULL},
    {"hidden", NULL, NULL, COLUMN_COUNT, 0, NULL},
    {"step_s", "ms", NULL, COLUMN_SECONDS, 8, NULL},
    {"bytes", "bytes", NULL, COLUMN_BYTES, 11, NULL},
    {"all_bytes", "all", NULL, COLUMN_MEMORY, 8, NULL},
    {NULL, "GiB", NULL, COLUMN_GIB, 5, NULL},
    {"error", "error", "error %", COLUMN_ERROR, 8, NULL},
    {NULL, "share", "share %", COLUMN_SHARE, 7, NULL},
    {NULL, "off", NULL, COLUMN_DEVIATION, 7, NULL},
};
/* clang-format on */
static const struct row_table table = {"table", columns, ARRAY_LEN(columns)};

static void fill(struct rows *rows)
{
    static const struct {
        const char *name;
        double count, layer, hidden, step_s, bytes, error, share;
    } values[] = {{"a<b", 2, 3, 7, 0.0015, 4096, -0.125, 1}, {"", 12, -1, 8, 2, 80e9, NAN, NAN}};
    rows_begin(rows, "rows", NULL, &table);
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        rows_name(rows, values[i].name);
        rows_number(rows, values[i].count);
        rows_number(rows, values[i].layer);
        rows_number(rows, values[i].hidden);
        rows_number(rows, values[i].step_s);
        rows_number(rows, values[i].bytes);
        rows_number(rows, values[i].bytes);
        rows_number(rows, values[i].bytes);
        rows_number(rows, values[i].error);
        rows_number(rows, values[i].share);
        rows_number(rows, values[i].share / 3e4);
    }
    rows_end(rows);
}

static void a_table_is_text(void)
{
    struct text out = {0};
    struct rows rows = {.out = &out};
    fill(&rows);
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
    fill(&rows);
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
    fill(&rows);
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

static void put_column(struct json_out *json, const struct column *column)
{
    static const char *const types[COLUMN_KIND_COUNT] = {
        [COLUMN_NAME] = "string",  [COLUMN_COUNT] = "integer",  [COLUMN_INDEX] = "integer",
        [COLUMN_BYTES] = "number", [COLUMN_SECONDS] = "number", [COLUMN_MEMORY] = "integer",
        [COLUMN_GIB] = "integer"};
    json_begin_row(json, column->key);
    if (types[column->kind] != NULL) {
        json_put_text(json, "type", types[column->kind]);
    } else { /* not known of nothing */
        json_begin_array(json, "type");
        json_put_text(json, NULL, "number");
        json_put_text(json, NULL, "null");
        json_end_array(json);
    }
    if (column->kind == COLUMN_COUNT || column->kind == COLUMN_MEMORY || column->kind == COLUMN_GIB)
        json_put_count(json, "minimum", 0);
    if (column->about != NULL)
        json_put_text(json, "description", column->about);
    json_end_row(json);
}

static void put_table(struct json_out *json, const struct row_table *of)
{
    json_begin_object(json, of->name);
    json_put_text(json, "type", "object");
    json_begin_object(json, "properties");
    for (size_t i = 0; i < of->count; i++)
        if (of->column[i].key != NULL)
            put_column(json, &of->column[i]);
    json_end_object(json);
    json_begin_array(json, "required");
    for (size_t i = 0; i < of->count; i++)
        if (of->column[i].key != NULL)
            json_put_text(json, NULL, of->column[i].key);
    json_end_array(json);
    json_put_bool(json, "additionalProperties", false);
    json_end_object(json);
}

static void the_schema_is_made_from_the_columns(void)
{
    struct column of_check[RUN_CHECK_COLUMNS];
    const struct row_table check = run_check_table(of_check, 24);
    const struct {
        const struct row_table *table;
        size_t count;
    } all[] = {{compare_tables, COMPARE_TABLE_COUNT},
               {&check, 1},
               {why_tables, WHY_TABLE_COUNT},
               {validate_tables, VALIDATE_TABLE_COUNT}};
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
            put_table(&json, &all[i].table[k]);
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
    {"the schema is made from the columns", the_schema_is_made_from_the_columns},
};
CHECK_MAIN("rows", cases)

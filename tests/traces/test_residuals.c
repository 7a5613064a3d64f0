/* tests/traces/test_residuals.c: reads and prints the file of residuals. */
#include "traces/residuals.h"

#include "tests/check.h"

#include <math.h>

static const char rows[] = "source,run,device,framework,nodes,time,memory\n"
                           "FPDT,\"3: ulysses, 8\",a100,deepspeed,several,0.0462,\n"
                           "SimuMax,1,b200,megatron,one,,-0.1000\n";

static void rows_are_printed_as_they_were_read(void)
{
    struct residuals residuals = {0};
    struct text out = {0};
    CHECK_INT("parse", residuals_parse(&residuals, "rows", rows, sizeof rows - 1, NULL), STATUS_OK);
    residuals_print(&residuals, &out);
    CHECK_TEXT("printed", out.data, rows);
    if (CHECK_INT("rows", (int64_t)residuals.count, 2)) {
        CHECK_TEXT("run", residuals.row[0].run, "3: ulysses, 8");
        CHECK("several", residuals.row[0].several && !residuals.row[1].several);
        CHECK("none", isnan(residuals.row[0].value[RESIDUAL_MEMORY]));
        CHECK_CLOSE("memory", residuals.row[1].value[RESIDUAL_MEMORY], -0.1, 1e-12);
    }
    text_release(&out);
    residuals_release(&residuals);
}

static void the_reader_names_line_and_column(void)
{
    static const struct {
        const char *row, *message;
    } bad[] = {
        {"A,1,a100,x,two,0,\n",
         "f:2: error: column 'nodes': expected 'one' or 'several', not 'two'\n"},
        {"A,1,a100,x,one,nan,\n",
         "f:2: error: column 'time': expected a number or nothing, not 'nan'\n"},
        {"A,1,,x,one,0,\n", "f:2: error: column 'device': is empty\n"},
        {"A,1,a100\n", "f:2: error: 3 fields, expected 7\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct residuals residuals = {0};
        struct diag diag = {0};
        struct text file = {0};
        text_printf(&file, "source,run,device,framework,nodes,time,memory\n%s", bad[i].row);
        CHECK_INT("status", residuals_parse(&residuals, "f", file.data, file.size, &diag),
                  STATUS_BAD_INPUT);
        CHECK_TEXT("message", diag.text, bad[i].message);
        text_release(&file);
        diag_release(&diag);
        residuals_release(&residuals);
    }
}

static const struct check_case cases[] = {
    {"rows are printed as they were read", rows_are_printed_as_they_were_read},
    {"the reader names line and column", the_reader_names_line_and_column},
};
CHECK_MAIN("residuals", cases)

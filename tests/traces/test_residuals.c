/* tests/traces/test_residuals.c: reads and prints the file of residuals. */
#include "traces/residuals.h"

#include "tests/check.h"

#include <math.h>

#define COLUMNS                                                                                    \
    "source,laboratory,run,set,device,framework,attention,context,activations,optimizer,nodes,tp," \
    "pp,gpus,seq_len,sequences,parameters,layer_s,time,memory,first\n"
#define FEATURE_FIELDS "fa2,ulysses,full,host,"
#define SIZES "1,2,8,131072,4,7000000000,0.0125,"

static const char rows[] = COLUMNS
    "FPDT,Lab,\"3: ulysses, 8\",,a100,deepspeed," FEATURE_FIELDS "several," SIZES "0.0462,,\n"
    "SimuMax,SimuMax,1,later,b200,megatron," FEATURE_FIELDS "one," SIZES ",-0.1000,0.3000\n";

static void rows_are_printed_as_they_were_read(void)
{
    struct residuals residuals = {0};
    struct text out = {0};
    CHECK_INT("parse", residuals_parse(&residuals, "rows", rows, sizeof rows - 1, NULL), STATUS_OK);
    residuals_print(&residuals, &out);
    CHECK_TEXT("printed", out.data, rows);
    if (CHECK_INT("rows", (int64_t)residuals.row_count, 2)) {
        const struct residual *row = residuals.rows;
        CHECK_TEXT("run", row[0].run, "3: ulysses, 8");
        CHECK_TEXT("laboratory", row[0].laboratory, "Lab");
        CHECK_TEXT("context", row[0].context, "ulysses");
        CHECK("several", row[0].spans_several_nodes && !row[1].spans_several_nodes);
        CHECK("host", row[0].host_optimizer);
        CHECK_INT("stages", row[0].pp, 2);
        CHECK_INT("tokens", row[0].seq_len, 131072);
        CHECK_CLOSE("layer", row[0].layer_s, 0.0125, 0);
        CHECK("none", isnan(row[0].log_ratio[RESIDUAL_MEMORY]) &&
                          isnan(row[0].log_ratio_at_first_prediction));
        CHECK_CLOSE("memory", row[1].log_ratio[RESIDUAL_MEMORY], -0.1, 1e-12);
        CHECK_CLOSE("first", row[1].log_ratio_at_first_prediction, 0.3, 1e-12);
    }
    text_release(&out);
    residuals_release(&residuals);
}

/* An error at first sight belongs to the row with its source and its id. */
static void first_prediction_errors_join_by_id(void)
{
    static const char first[] = "id,source,commit,args,first\n1,SimuMax,c,--seq 2K,-0.25\n"
                                "1,Other,c,,0.5\n2,SimuMax,c,,0.5\n";
    struct residuals residuals = {0};
    struct diag diag = {0};
    CHECK_INT("parse", residuals_parse(&residuals, "rows", rows, sizeof rows - 1, NULL), STATUS_OK);
    CHECK_INT(
        "join",
        residuals_parse_first_predictions(&residuals, "first.csv", first, sizeof first - 1, NULL),
        STATUS_OK);
    CHECK("another", isnan(residuals.rows[0].log_ratio_at_first_prediction));
    CHECK_CLOSE("its own", residuals.rows[1].log_ratio_at_first_prediction, -0.25, 0);
    static const char bad[] = "id,source,commit,args,first\n1,A,c,,much\n";
    CHECK_INT("bad", residuals_parse_first_predictions(&residuals, "f", bad, sizeof bad - 1, &diag),
              STATUS_BAD_INPUT);
    CHECK_TEXT("message", diag.text, "f:2: error: column 'first': expected a number, not 'much'\n");
    diag_release(&diag);
    residuals_release(&residuals);
}

static void the_reader_names_line_and_column(void)
{
    static const struct {
        const char *row, *message;
    } bad[] = {
        {"A,A,1,,a100,x," FEATURE_FIELDS "two," SIZES "0,,\n",
         "f:2: error: column 'nodes': expected 'one' or 'several', not 'two'\n"},
        {"A,A,1,,a100,x," FEATURE_FIELDS "one," SIZES "nan,,\n",
         "f:2: error: column 'time': expected a number or nothing, not 'nan'\n"},
        {"A,A,1,,,x," FEATURE_FIELDS "one," SIZES "0,,\n",
         "f:2: error: column 'device': is empty\n"},
        {"A,A,1,,a100,x," FEATURE_FIELDS "one,0,1,8,1,1,1,0.1,0,,\n",
         "f:2: error: column 'tp': expected a whole number of at least 1, not '0'\n"},
        {"A,A,1,,a100,x," FEATURE_FIELDS "one,1,1,8,1,1,1,0,0,,\n",
         "f:2: error: column 'layer_s': expected a number above 0, not '0'\n"},
        {"A,1,a100\n", "f:2: error: 3 fields, expected 21 as in the line of column names\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct residuals residuals = {0};
        struct diag diag = {0};
        struct text file = {0};
        text_printf(&file, COLUMNS "%s", bad[i].row);
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
    {"errors at first sight are joined", first_prediction_errors_join_by_id},
    {"the reader names line and column", the_reader_names_line_and_column},
};
CHECK_MAIN("residuals", cases)

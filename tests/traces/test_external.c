#include "base/text.h"
#include "tests/traces/wrong_text.h"
#include "traces/external.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS                                                                                    \
    "id,source,model,gpu,gpus,seq_len,micro_batch,global_batch,tp,cp,pp,vpp,dp,sharding,"          \
    "recompute,attention,framework,measured_step_s,unit_published,value_published,second_metric,"  \
    "second_value,as_run,args,note"
#define ALL_COLUMNS                                                                                \
    "id,source,laboratory,place,set,model,gpu,gpus,seq_len,micro_batch,global_batch,tp,cp,pp,vpp," \
    "dp,sharding,recompute,attention,framework,measured_step_s,unit_published,value_published,"    \
    "second_metric,second_value,as_run,counts,args,note"
#define FACTS "m,h100_80gb,8,2048,2,16,1,1,1,1,8,fsdp,full,sdpa,\"Frame 1.2, eager\","
#define ROW                                                                                        \
    "a-1,A," FACTS "2.5,tgs,1638.4,memory_allocated_gib,10.50,yes,--model 'a b.json' --seq 2K,"

struct fixture {
    struct external_runs runs;
    struct diag diag;
};

static void fixture_release(struct fixture *f)
{
    external_release(&f->runs);
    diag_release(&f->diag);
}

static enum status parse(struct fixture *f, const char *text)
{
    return external_parse(&f->runs, "e.csv", text, strlen(text), &f->diag);
}

static void a_row_gives_its_values_and_its_texts(void)
{
    struct fixture f = {0};
    CHECK_INT("status",
              parse(&f, COLUMNS "\n" ROW "\r\na-2,A," FACTS "0.5,step_ms,500,,,nearest: x,--seq 2K,"
                                "\"odd, \"\"really\"\"\""),
              STATUS_OK);
    CHECK_TEXT("messages", f.diag.text, "");
    if (CHECK_INT("rows, the last without a line end", (int64_t)f.runs.count, 2)) {
        const struct external_run *row = f.runs.row;
        CHECK_INT("line", row[1].at.line, 3);
        CHECK_INT("gpus", row->gpus, 8);
        CHECK_INT("length", row->seq_len, 2048);
        CHECK_INT("micro-batch", row->micro_batch, 2);
        CHECK_INT("batch", row->global_batch, 16);
        CHECK_CLOSE("seconds", row->step_s, 2.5, 0);
        CHECK_INT("metric", row->second_metric, EXTERNAL_METRIC_ALLOCATED);
        CHECK_CLOSE("bytes", row->second, 10.5 * 1073741824, 0);
        CHECK_INT("no metric", row[1].second_metric, EXTERNAL_NO_METRIC);
        CHECK_TEXT("framework", row->text[EXTERNAL_FRAMEWORK], "Frame 1.2, eager");
        CHECK_TEXT("args as written", row->text[EXTERNAL_ARGS], "--model 'a b.json' --seq 2K");
        CHECK_TEXT("value as written", row->text[EXTERNAL_SECOND_VALUE], "10.50");
        CHECK_TEXT("note", row[1].text[EXTERNAL_NOTE], "odd, \"really\"");
    }
    fixture_release(&f);
}

static void a_column_tells_the_kind_of_file(void)
{
    static const struct {
        const char *text;
        bool external;
    } files[] = {
        {COLUMNS "\n", true},
        {"\xEF\xBB\xBFid,source\n", true},
        {"\n\"id\",x", true},
        {"source,args,id\n", true},
        {"source,table,system\n", false},
        {"idle,source\n", false},
        {"", false},
        {"\"id", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        CHECK_INT(files[i].text, external_recognise(files[i].text, strlen(files[i].text)),
                  files[i].external);
}

static const struct wrong_text wrong[] = {
    {"empty file", "",
     "e.csv: error: the file is empty: expected the column names 'id,source,laboratory,...'\n"},
    {"other columns", "id,source,gpuz\n",
     "e.csv:1: error: column 3: there is no column 'gpuz'; did you mean 'gpu'?\n"},
    {"a column less", "id,source,gpu,args\n", "e.csv:1: error: the column 'gpus' is missing\n"},
    {"a column twice", COLUMNS ",note\n", "e.csv:1: error: the column 'note' is given twice\n"},
    {"short row", COLUMNS "\na-1,A\n",
     "e.csv:2: error: 2 fields, expected 25 as in the line of column names\n"},
    {"no id", COLUMNS "\n,A," FACTS "2.5,tgs,1,,,yes,--seq 2K,\n",
     "e.csv:2: error: column 'id': is empty\n"},
    {"no args", COLUMNS "\na-1,A," FACTS "2.5,tgs,1,,,yes,,\n",
     "e.csv:2: error: column 'args': is empty\n"},
    {"gpus", COLUMNS "\na-1,A,m,h100,none,2048,2,16,,,,,,,,,f,2.5,tgs,1,,,yes,--seq 2K,\n",
     "e.csv:2: error: column 'gpus': expected a whole number of at least 1, not 'none'\n"},
    {"no batch", COLUMNS "\na-1,A,m,h100,8,2048,2,,,,,,,,,,f,2.5,tgs,1,,,yes,--seq 2K,\n",
     "e.csv:2: error: column 'global_batch': expected a whole number of at least 1, not ''\n"},
    {"degree", COLUMNS "\na-1,A,m,h100,8,2048,2,16,,,0,,,,,,f,2.5,tgs,1,,,yes,--seq 2K,\n",
     "e.csv:2: error: column 'pp': expected a whole number of at least 1, or nothing, not '0'\n"},
    {"no time", COLUMNS "\na-1,A," FACTS ",tgs,1,,,yes,--seq 2K,\n",
     "e.csv:2: error: column 'measured_step_s': expected a number above 0, not ''\n"},
    {"no finite time", COLUMNS "\na-1,A," FACTS "1e999,tgs,1,,,yes,--seq 2K,\n",
     "e.csv:2: error: column 'measured_step_s': expected a number above 0, not '1e999'\n"},
    {"unit", COLUMNS "\na-1,A," FACTS "2.5,steps,1,,,yes,--seq 2K,\n",
     "e.csv:2: error: column 'unit_published': expected 'tgs', 'step_ms', 'tokens_per_s', "
     "'sequences_per_s' or 'tflops', not 'steps'\n"},
    {"published", COLUMNS "\na-1,A," FACTS "2.5,tgs,-1,,,yes,--seq 2K,\n",
     "e.csv:2: error: column 'value_published': expected a number above 0, not '-1'\n"},
    {"metric", COLUMNS "\na-1,A," FACTS "2.5,tgs,1,memory,8,yes,--seq 2K,\n",
     "e.csv:2: error: column 'second_metric': expected '', 'mfu', 'tflops', "
     "'memory_allocated_gib', 'memory_gib', 'memory_gb' or 'memory_unstated_gib', not 'memory'\n"},
    {"metric without a value", COLUMNS "\na-1,A," FACTS "2.5,tgs,1,mfu,,yes,--seq 2K,\n",
     "e.csv:2: error: column 'second_value': expected a number above 0, not ''\n"},
    {"value without a metric", COLUMNS "\na-1,A," FACTS "2.5,tgs,1,,8,yes,--seq 2K,\n",
     "e.csv:2: error: column 'second_value': expected nothing, since second_metric is empty, "
     "not '8'\n"},
    {"id twice",
     COLUMNS "\nb,A," FACTS "1,tgs,1,,,yes,--seq 2K,\n" ROW "\nb,A," FACTS
             "1,tgs,1,,,yes,--seq 2K,\n",
     "e.csv:4: error: column 'id': 'b' is also the id of the row in line 2\n"},
    {"open quote", COLUMNS "\na-1,\"A\n",
     "e.csv:2: error: a quoted field of this row is not closed\n"},
};

static enum status parse_and_drop(const char *text, struct diag *diag)
{
    struct external_runs read = {0};
    enum status status = external_parse(&read, "e.csv", text, strlen(text), diag);
    external_release(&read);
    return status;
}

static void the_reader_names_line_and_column(void)
{
    check_wrong_texts(wrong, ARRAY_LEN(wrong), parse_and_drop);
}

static void results_stand_beside_the_rows_as_they_were(void)
{
    static const char output[] =
        ALL_COLUMNS ",predicted_step_s,relative_error,predicted_peak_bytes,"
                    "predicted_reserved_bytes,memory_error,status\n"
                    "a-1,A,,,," FACTS "2.5,tgs,1638.4,memory_allocated_gib,10.50,yes,,"
                    "--model 'a b.json' --seq 2K,,2,0.25,11274289152,12884901888,0,ok\n"
                    "a-2,A,,,," FACTS "2.5,tgs,1638.4,,,yes,,--seq 2K,,,,,,,\"error: x: 1,5\"\n";
    struct fixture f = {0}, again = {0};
    struct text out = {0};
    struct external_result result[] = {
        {OUTCOME_OK, 2, 0.25, 10.5 * 0x1p30, 12 * 0x1p30, NAN, 0, NULL},
        {OUTCOME_ERROR, NAN, NAN, NAN, NAN, NAN, NAN, "x: 1,5"},
    };
    CHECK_INT("parse",
              parse(&f, COLUMNS "\n" ROW "\na-2,A," FACTS "2.5,tgs,1638.4,,,yes,--seq 2K,\n"),
              STATUS_OK);
    external_print(&f.runs, result, &out);
    CHECK_TEXT("printed", out.data, output);
    CHECK_INT("reads back", parse(&again, out.data), STATUS_OK);
    text_release(&out);
    external_print(&again.runs, result, &out);
    CHECK_TEXT("its old results are replaced", out.data, output);
    CHECK_INT("full disk", external_save(&f.runs, result, "/dev/full", &f.diag), STATUS_SYSTEM);
    text_release(&out);
    fixture_release(&f);
    fixture_release(&again);
}

/* Columns are found by their names: these are the last of the file, in another order. */
static void columns_decide_what_counts(void)
{
    struct fixture f = {0};
    CHECK_INT("parse",
              parse(&f,
                    COLUMNS ",counts,set,laboratory\n" ROW ",,,\na-2,A," FACTS
                            "0.5,step_ms,500,,,nearest: x,--seq 2K,inferred from this run,yes,,\n"
                            "a-3,A," FACTS "0.5,step_ms,500,,,,--seq 2K,,it is inferred,later,L"),
              STATUS_OK);
    CHECK_TEXT("messages", f.diag.text, "");
    if (CHECK_INT("rows", (int64_t)f.runs.count, 3)) {
        const struct external_run *row = f.runs.row;
        CHECK("nothing said", row[0].counts);
        CHECK("yes, whatever the note says", row[1].counts);
        CHECK("a reason", !row[2].counts);
        CHECK("as run", external_as_run(&row[0]) && !external_as_run(&row[1]));
        CHECK("the usual set", external_in_set(&row[0], "") && external_in_set(&row[2], "later"));
        CHECK("first of a set", external_is_first_of_set(&f.runs, 0) &&
                                    !external_is_first_of_set(&f.runs, 1) &&
                                    external_is_first_of_set(&f.runs, 2));
        CHECK_TEXT("its own laboratory", external_laboratory(&row[0]), "A");
        CHECK_TEXT("laboratory", external_laboratory(&row[2]), "L");
    }
    fixture_release(&f);
}

/* The printed figure of each published row and its seconds of a step describe the same measurement. */
static void the_published_rows_agree_with_themselves(void)
{
    struct fixture f = {0};
    CHECK_INT("load",
              external_load(&f.runs, check_path("../traces/published/external.csv"), &f.diag),
              STATUS_OK);
    CHECK_TEXT("messages", f.diag.text, "");
    CHECK_INT("rows", (int64_t)f.runs.count, 92);
    for (size_t i = 0; i < f.runs.count; i++) {
        const struct external_run *row = &f.runs.row[i];
        double step_s = row->unit == EXTERNAL_UNIT_STEP_MS
                            ? row->published / 1000
                            : (double)row->seq_len * (double)row->global_batch /
                                  ((double)row->gpus * row->published);
        CHECK_CLOSE(row->text[EXTERNAL_ID], row->step_s, step_s, 1e-3);
    }
    fixture_release(&f);
}

static const struct check_case cases[] = {
    {"a row gives its values and its texts", a_row_gives_its_values_and_its_texts},
    {"a column tells the kind of file", a_column_tells_the_kind_of_file},
    {"the reader names line and column", the_reader_names_line_and_column},
    {"results stand beside the rows as they were", results_stand_beside_the_rows_as_they_were},
    {"columns decide what counts", columns_decide_what_counts},
    {"the published rows agree with themselves", the_published_rows_agree_with_themselves},
};
CHECK_MAIN("external", cases)

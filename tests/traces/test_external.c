/* tests/traces/test_external.c: the table of published figures is read with its units; a fault gets its line and
 * column, and the shipped rows agree with themselves. */
#include "base/text.h"
#include "tests/traces/wrong_text.h"
#include "traces/external.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS                                                                                    \
    "id,source,model,gpu,gpus,seq_len,micro_batch,global_batch,tp,cp,pp,vpp,dp,sharding,"          \
    "recompute,attention,framework,measured_step_s,metric,value,unit,second_metric,second_value,"  \
    "as_run,args,note"
#define EXTERNAL_CSV_COLUMNS                                                                       \
    "id,source,laboratory,place,set,framework,model,gpu,gpus,seq_len,micro_batch,global_batch,"    \
    "tp,cp,pp,vpp,dp,sharding,recompute,attention,metric,value,unit,how,measured_step_s,"          \
    "second_metric,second_value,group,against,as_run,counts,args,note"
#define FACT_FIELDS_OF_RUN "m,h100_80gb,8,2048,2,16,1,1,1,1,8,fsdp,full,sdpa,\"Frame 1.2, eager\","
#define TGS(value) "tgs," value ",tokens/s/gpu,"
#define ROW                                                                                        \
    "a-1,A," FACT_FIELDS_OF_RUN                                                                    \
    "2.5," TGS("1638.4") "memory_allocated_gib,10.50,yes,--model 'a b.json' --seq "                \
                         "2K,"
/* The line of column names of a table of figures. */
#define FIGURE_COLUMN_NAMES                                                                        \
    "id,source,place,framework,gpu,gpus,seq_len,metric,value,unit,group,against,counts,args,"      \
    "note\n"

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

static void external_row_fields_are_read(void)
{
    struct fixture f = {0};
    CHECK_INT("status",
              parse(&f, COLUMNS "\n" ROW "\r\na-2,A," FACT_FIELDS_OF_RUN
                                "0.5,step_ms,500,ms,,,nearest: x,--seq 2K,"
                                "\"odd, \"\"really\"\"\""),
              STATUS_OK);
    CHECK_TEXT("messages", f.diag.text, "");
    if (CHECK_INT("rows, the last without a line end", (int64_t)f.runs.row_count, 2)) {
        const struct external_run *row = f.runs.rows;
        CHECK_INT("line", row[1].place.line, 3);
        CHECK_INT("gpus", row->gpus, 8);
        CHECK_INT("length", row->seq_len, 2048);
        CHECK_INT("micro-batch", row->micro_batch, 2);
        CHECK_INT("batch", row->global_batch, 16);
        CHECK_CLOSE("seconds", row->step_s, 2.5, 0);
        CHECK_INT("metric", row->second_metric, EXTERNAL_METRIC_ALLOCATED);
        CHECK_CLOSE("bytes", row->second_value, 10.5 * 1073741824, 0);
        CHECK_INT("no metric", row[1].second_metric, EXTERNAL_NO_SECOND_METRIC);
        CHECK_TEXT("framework", row->cells[EXTERNAL_FRAMEWORK], "Frame 1.2, eager");
        CHECK_TEXT("args as written", row->cells[EXTERNAL_ARGS], "--model 'a b.json' --seq 2K");
        CHECK_TEXT("value as written", row->cells[EXTERNAL_SECOND_VALUE], "10.50");
        CHECK_TEXT("note", row[1].cells[EXTERNAL_NOTE], "odd, \"really\"");
    }
    fixture_release(&f);
}

static const struct {
    const char *label, *row; /* metric, value, unit */
    enum measurement_metric metric;
    enum measurement_score score;
    bool is_number;
    double value_in_si;
} figures[] = {
    /* label, row, metric, score, is_number, value_in_si */
    {"tokens", "tgs,629.9,tokens/s/gpu", METRIC_TGS, SCORE_RELATIVE, true, 629.9},
    {"microseconds", "rotation_us,470,us", METRIC_ROTATION_US, SCORE_RELATIVE, true, 470e-6},
    {"GiB", "reserved_memory,2,GiB", METRIC_RESERVED_MEMORY, SCORE_RELATIVE, true, 2147483648.0},
    {"a published 0", "mfu,0,fraction", METRIC_MFU, SCORE_RELATIVE, true, 0},
    {"length", "max_seq_len,65536,tokens", METRIC_MAX_SEQ_LEN, SCORE_LENGTH, true, 65536},
    {"none", "max_seq_len,model does not fit,tokens", METRIC_MAX_SEQ_LEN, SCORE_LENGTH, false, 0},
    {"verdict", "verdict,OOM,", METRIC_VERDICT, SCORE_VERDICT, false, 0},
    {"layout", "layout,,", METRIC_LAYOUT, SCORE_NONE, false, 0},
};

static void figures_have_metrics_and_units(void)
{
    for (size_t i = 0; i < ARRAY_LEN(figures); i++) {
        struct fixture f = {0};
        struct text text = {0};
        const char *label = figures[i].label;
        text_printf(&text, FIGURE_COLUMN_NAMES "a,S,1,ring,h100,8,,%s,,,,--seq 2K,\n",
                    figures[i].row);
        CHECK_INT(label, parse(&f, text.data), STATUS_OK);
        CHECK_TEXT(label, f.diag.text, "");
        if (CHECK_INT(label, (int64_t)f.runs.row_count, 1)) {
            const struct external_run *row = f.runs.rows;
            CHECK_INT(label, row->metric, figures[i].metric);
            CHECK_INT(label, measurement_metrics[row->metric].score, figures[i].score);
            CHECK_INT(label, row->is_number, figures[i].is_number);
            CHECK_CLOSE(label, row->value * row->si_factor, figures[i].value_in_si, 1e-15);
            CHECK_CLOSE("no step", row->step_s, 0, 0);
        }
        text_release(&text);
        fixture_release(&f);
    }
}

/* A group is a key with a value. Rows with another value are in another group, and rows without the key in none; a key
 * that only begins with the name ("windows") is another key. */
static void external_rows_group_by_key_value(void)
{
    static const char text[] =
        FIGURE_COLUMN_NAMES "a,S,1,x,g,8,,tgs,1,tokens/s/gpu,split=1;window=2,,,--seq 2K,\n"
                            "b,S,1,x,g,8,,tgs,1,tokens/s/gpu,window=2,,,--seq 2K,\n"
                            "c,S,1,x,g,8,,tgs,1,tokens/s/gpu,split=12;windows=2,,,--seq 2K,\n"
                            "d,S,1,x,g,8,,max_seq_len,1,tokens,,,least,--seq 2K,\n";
    struct fixture f = {0};
    size_t size = 0;
    CHECK_INT("parse", parse(&f, text), STATUS_OK);
    CHECK_TEXT("messages", f.diag.text, "");
    if (CHECK_INT("rows", (int64_t)f.runs.row_count, 4)) {
        const struct external_run *row = f.runs.rows;
        CHECK("window", external_are_in_same_group(&row[0], &row[1], "window"));
        CHECK("split", !external_are_in_same_group(&row[0], &row[2], "split"));
        CHECK("windows", !external_are_in_same_group(&row[0], &row[2], "window"));
        CHECK("none", !external_are_in_same_group(&row[1], &row[1], "split"));
        const char *value = external_value_of_group_key(&row[2], "split", &size);
        CHECK("value", value != NULL && size == 2 && strncmp(value, "12", 2) == 0);
        CHECK("least", row[3].is_lower_bound && row[3].is_counted && !row[0].is_lower_bound);
    }
    fixture_release(&f);
}

static const struct wrong_text wrong[] = {
    {"empty file", "",
     "e.csv: error: the file is empty: expected the column names 'id,source,laboratory,...'\n"},
    {"other columns", "id,source,gpuz\n",
     "e.csv:1: error: column 3: there is no column 'gpuz'; did you mean 'gpu'?\n"},
    {"a column less", "id,source,framework,gpu,args\n",
     "e.csv:1: error: the column 'metric' is missing\n"},
    {"a column twice", COLUMNS ",note\n", "e.csv:1: error: the column 'note' is given twice\n"},
    {"short row", COLUMNS "\na-1,A\n",
     "e.csv:2: error: 2 fields, expected 26 as in the line of column names\n"},
    {"no id", COLUMNS "\n,A," FACT_FIELDS_OF_RUN "2.5," TGS("1") ",,yes,--seq 2K,\n",
     "e.csv:2: error: column 'id': is empty\n"},
    {"no args", COLUMNS "\na-1,A," FACT_FIELDS_OF_RUN "2.5," TGS("1") ",,yes,,\n",
     "e.csv:2: error: column 'args': is empty\n"},
    {"gpus", COLUMNS "\na-1,A,m,h100,none,2048,2,16,,,,,,,,,f,2.5," TGS("1") ",,yes,--seq 2K,\n",
     "e.csv:2: error: column 'gpus': expected a whole number of at least 1, not 'none'\n"},
    {"no batch", COLUMNS "\na-1,A,m,h100,8,2048,2,,,,,,,,,,f,2.5," TGS("1") ",,yes,--seq 2K,\n",
     "e.csv:2: error: column 'global_batch': expected a whole number of at least 1, not ''\n"},
    {"degree", COLUMNS "\na-1,A,m,h100,8,2048,2,16,,,0,,,,,,f,2.5," TGS("1") ",,yes,--seq 2K,\n",
     "e.csv:2: error: column 'pp': expected a whole number of at least 1, or nothing, not '0'\n"},
    {"no finite time", COLUMNS "\na-1,A," FACT_FIELDS_OF_RUN "1e999," TGS("1") ",,yes,--seq 2K,\n",
     "e.csv:2: error: column 'measured_step_s': expected a number above 0, not '1e999'\n"},
    {"metric of a step",
     COLUMNS "\na-1,A," FACT_FIELDS_OF_RUN "2.5,mfu,1,fraction,,,yes,--seq 2K,\n",
     "e.csv:2: error: column 'metric': expected tgs, step_ms, tokens_per_s, sequences_per_s or "
     "tflops, since measured_step_s is given, not 'mfu'\n"},
    {"no metric", COLUMNS "\na-1,A," FACT_FIELDS_OF_RUN "2.5,speed,1,,,,yes,--seq 2K,\n",
     "e.csv:2: error: column 'metric': expected a metric, not 'speed'\n"},
    {"published", COLUMNS "\na-1,A," FACT_FIELDS_OF_RUN "2.5," TGS("0") ",,yes,--seq 2K,\n",
     "e.csv:2: error: column 'value': expected a number above 0, not '0'\n"},
    {"second metric",
     COLUMNS "\na-1,A," FACT_FIELDS_OF_RUN "2.5," TGS("1") "memory,8,yes,--seq 2K,\n",
     "e.csv:2: error: column 'second_metric': expected '', 'mfu', 'tflops', "
     "'memory_allocated_gib', 'memory_gib', 'memory_gb' or 'memory_unstated_gib', not 'memory'\n"},
    {"metric without a value",
     COLUMNS "\na-1,A," FACT_FIELDS_OF_RUN "2.5," TGS("1") "mfu,,yes,--seq 2K,\n",
     "e.csv:2: error: column 'second_value': expected a number above 0, not ''\n"},
    {"value without a metric",
     COLUMNS "\na-1,A," FACT_FIELDS_OF_RUN "2.5," TGS("1") ",8,yes,--seq 2K,\n",
     "e.csv:2: error: column 'second_value': expected nothing, since second_metric is empty, "
     "not '8'\n"},
    {"id twice",
     COLUMNS "\nb,A," FACT_FIELDS_OF_RUN "1," TGS(
         "1") ",,yes,--seq 2K,\n" ROW "\nb,A," FACT_FIELDS_OF_RUN "1," TGS("1") ",,yes,--seq 2K,\n",
     "e.csv:4: error: column 'id': 'b' is also the id of the row in line 2\n"},
    {"open quote", COLUMNS "\na-1,\"A\n",
     "e.csv:2: error: a quoted field of this row is not closed\n"},
    {"a figure's length",
     FIGURE_COLUMN_NAMES "a,S,1,ring,h100,8,99999999999999999999,tgs,1,tokens/s/gpu,,,,--seq 2K,\n",
     "e.csv:2: error: column 'seq_len': expected a whole number of at least 1, or nothing, not "
     "'99999999999999999999'\n"},
    {"value", FIGURE_COLUMN_NAMES "a,S,1,ring,h100,8,,tgs,OOM,tokens/s/gpu,,,,--seq 2K,\n",
     "e.csv:2: error: column 'value': expected a number that is not negative, not 'OOM'\n"},
    {"not finite", FIGURE_COLUMN_NAMES "a,S,1,ring,h100,8,,tgs,1e400,tokens/s/gpu,,,,--seq 2K,\n",
     "e.csv:2: error: column 'value': expected a number that is not negative, not '1e400'\n"},
    {"per cent", FIGURE_COLUMN_NAMES "a,S,1,ring,h100,8,,mfu,47.2,fraction,,,,--seq 2K,\n",
     "e.csv:2: error: column 'value': expected a fraction from 0 to 1, not '47.2'\n"},
    {"verdict", FIGURE_COLUMN_NAMES "a,S,1,ring,h100,8,,verdict,1,,,,,--seq 2K,\n",
     "e.csv:2: error: column 'value': expected 'OOM', not '1'\n"},
    {"longest length", FIGURE_COLUMN_NAMES "a,S,1,ring,h100,8,,max_seq_len,0,tokens,,,,--seq 2K,\n",
     "e.csv:2: error: column 'value': expected a length or 'model does not fit', not '0'\n"},
    {"a layout's value", FIGURE_COLUMN_NAMES "a,S,1,ring,h100,8,,layout,1,,,,,--seq 2K,\n",
     "e.csv:2: error: column 'value': expected nothing, not '1'\n"},
    {"no unit", FIGURE_COLUMN_NAMES "a,S,1,ring,h100,8,,attention_ms,1,,,,,--seq 2K,\n",
     "e.csv:2: error: column 'unit': 'attention_ms' has the unit 's', 'ms', 'us', not ''\n"},
    {"a speed-up of nothing",
     FIGURE_COLUMN_NAMES "a,S,1,ring,h100,8,,speedup,1.2,ratio,,,,--seq 2K,\n",
     "e.csv:2: error: column 'against': is empty, and metric is speedup\n"},
    {"against", FIGURE_COLUMN_NAMES "a,S,1,ring,h100,8,,mfu,0.2,fraction,,--seq 4K,,--seq 2K,\n",
     "e.csv:2: error: column 'against': is for metric speedup only\n"},
    {"least", FIGURE_COLUMN_NAMES "a,S,1,ring,h100,8,,mfu,0.2,fraction,,,least,--seq 2K,\n",
     "e.csv:2: error: column 'counts': 'least' is for max_seq_len only\n"},
};

static enum status parse_and_release_runs(const char *text, struct diag *diag)
{
    struct external_runs read = {0};
    enum status status = external_parse(&read, "e.csv", text, strlen(text), diag);
    external_release(&read);
    return status;
}

static void the_reader_names_line_and_column(void)
{
    check_wrong_texts(wrong, ARRAY_LEN(wrong), parse_and_release_runs);
}

static void results_are_appended_to_input_rows(void)
{
    static const char output[] = EXTERNAL_CSV_COLUMNS
        ",predicted,predicted_step_s,relative_error,predicted_peak_bytes,"
        "predicted_reserved_bytes,memory_kind,memory_error,status\n"
        "a-1,A,,,,\"Frame 1.2, eager\",m,h100_80gb,8,2048,2,16,1,1,1,1,8,fsdp,full,sdpa,"
        "tgs,1638.4,tokens/s/gpu,,2.5,memory_allocated_gib,10.50,,,yes,,--model 'a "
        "b.json' --seq 2K,,,2,0.25,11274289152,12884901888,allocated,0,ok\n"
        "a-2,A,,1,,ring,,h100,8,2048,,,,,,,,,,,verdict,OOM,,,,,,,,,,--seq 2K,,fits,,,,,,,"
        "wrong\n"
        "a-3,A,,1,,ring,,h100,8,2048,,,,,,,,,,,mfu,0.5,fraction,,,,,,,,,--seq 2K,,,,,,,,,"
        "\"error: x: 1,5; y\"\n";
    struct fixture f = {0}, again = {0};
    struct text out = {0};
    struct external_prediction result[3] = {external_make_unknown_prediction(),
                                            external_make_unknown_prediction(),
                                            external_make_unknown_prediction()};
    result[0].outcome = OUTCOME_OK;
    result[0].step_s = 2;
    result[0].relative_error = 0.25;
    result[0].peak_bytes = 10.5 * 0x1p30;
    result[0].reserved_bytes = 12 * 0x1p30;
    result[0].memory_error = 0;
    result[1].outcome = OUTCOME_WRONG;
    result[1].predicted_text = "fits";
    result[2].status_reason = "x: 1,5\ny\n";
    CHECK_INT("parse", parse(&f, COLUMNS "\n" ROW "\n"), STATUS_OK);
    CHECK_INT("figures",
              parse(&f,
                    FIGURE_COLUMN_NAMES "a-2,A,1,ring,h100,8,2048,verdict,OOM,,,,,--seq 2K,\n"
                                        "a-3,A,1,ring,h100,8,2048,mfu,0.5,fraction,,,,--seq 2K,\n"),
              STATUS_OK);
    external_print_columns(&out);
    external_print(&f.runs, result, &out);
    CHECK_TEXT("printed", out.data, output);
    CHECK_INT("reads back", parse(&again, out.data), STATUS_OK);
    text_release(&out);
    external_print_columns(&out);
    external_print(&again.runs, result, &out);
    CHECK_TEXT("its old results are replaced", out.data, output);
    text_release(&out);
    fixture_release(&f);
    fixture_release(&again);
}

static void a_huge_field_is_refused_in_one_short_line(void)
{
    struct fixture f = {0};
    struct text text = {0};
    text_puts(&text, FIGURE_COLUMN_NAMES "a,S,1,ring,h100,");
    for (int i = 0; i < 100000; i++)
        text_puts(&text, "9999999999");
    text_puts(&text, ",,tgs,1,tokens/s/gpu,,,,--seq 2K,\n");
    CHECK_INT("digits", parse(&f, text.data), STATUS_BAD_INPUT);
    CHECK("short", f.diag.size < 700);
    text_release(&text);
    fixture_release(&f);
}

/* Columns are found by their names: these are the last of the file, in another order. */
static void csv_columns_are_found_by_name(void)
{
    struct fixture f = {0};
    CHECK_INT("parse",
              parse(&f, COLUMNS
                    ",counts,set,laboratory\n" ROW ",,,\na-2,A," FACT_FIELDS_OF_RUN
                    "0.5,step_ms,500,ms,,,nearest: x,--seq 2K,inferred from this run,yes,,\n"
                    "a-3,A," FACT_FIELDS_OF_RUN
                    "0.5,step_ms,500,ms,,,,--seq 2K,,it is inferred,later,L"),
              STATUS_OK);
    CHECK_TEXT("messages", f.diag.text, "");
    if (CHECK_INT("rows", (int64_t)f.runs.row_count, 3)) {
        const struct external_run *row = f.runs.rows;
        CHECK("nothing said", row[0].is_counted);
        CHECK("yes, whatever the note says", row[1].is_counted);
        CHECK("a reason", !row[2].is_counted);
        CHECK("as run",
              external_is_run_as_described(&row[0]) && !external_is_run_as_described(&row[1]));
        CHECK("the usual set",
              external_is_in_set(&row[0], "") && external_is_in_set(&row[2], "later"));
        CHECK("first of a set", external_is_first_of_set(&f.runs, 0) &&
                                    !external_is_first_of_set(&f.runs, 1) &&
                                    external_is_first_of_set(&f.runs, 2));
        CHECK_TEXT("its own laboratory", external_laboratory(&row[0]), "A");
        CHECK_TEXT("laboratory", external_laboratory(&row[2]), "L");
    }
    fixture_release(&f);
}

/* Returns the number of lines of a file, the first of which names the columns. */
static int64_t count_lines_of_file(const char *file)
{
    struct text text = {0};
    struct diag diag = {0};
    int64_t lines = 0;
    CHECK_INT(file, text_read(&text, check_path(file), &diag), STATUS_OK);
    for (size_t i = 0; i < text.size; i++)
        lines += text.data[i] == '\n';
    text_release(&text);
    diag_release(&diag);
    return lines;
}

/* The printed figure of each published step, unless it is in TFLOP/s, gives the seconds of the row.
 * Every line but the first is a row. */
static void the_published_rows_agree_with_themselves(void)
{
    static const struct {
        const char *file;
        bool holds_steps; /* all rows are training steps, or none */
    } files[] = {{"../traces/published/measurements.csv", false},
                 {"../traces/published/external.csv", true},
                 {"../traces/published/external-2026-11.csv", true},
                 {"../traces/published/external-fp8.csv", true},
                 {"../traces/published/external-moe.csv", true}};
    struct fixture f = {0};
    for (size_t k = 0; k < ARRAY_LEN(files); k++) {
        size_t before = f.runs.row_count;
        int64_t steps = 0;
        CHECK_INT("load", external_load(&f.runs, check_path(files[k].file), &f.diag), STATUS_OK);
        CHECK_TEXT("messages", f.diag.text, "");
        for (size_t i = before; i < f.runs.row_count; i++) {
            const struct external_run *row = &f.runs.rows[i];
            double value = row->value * row->si_factor, batch = (double)row->global_batch;
            double tokens = (double)row->seq_len * batch;
            steps += row->step_s > 0;
            if (row->step_s > 0 && row->metric != METRIC_TFLOPS)
                CHECK_CLOSE(row->cells[EXTERNAL_ID], row->step_s,
                            row->metric == METRIC_STEP_MS ? value
                            : row->metric == METRIC_TGS   ? tokens / (double)row->gpus / value
                            : row->metric == METRIC_TOKENS_PER_S ? tokens / value
                                                                 : batch / value,
                            3e-3);
        }
        const int64_t rows = count_lines_of_file(files[k].file) - 1;
        CHECK(files[k].file, rows > 0);
        CHECK_INT(files[k].file, (int64_t)(f.runs.row_count - before), rows);
        CHECK_INT(files[k].file, steps, files[k].holds_steps ? rows : 0);
    }
    fixture_release(&f);
}

static const struct check_case cases[] = {
    {"a row gives its values and its texts", external_row_fields_are_read},
    {"figures have metrics and units", figures_have_metrics_and_units},
    {"rows are in groups", external_rows_group_by_key_value},
    {"a huge field is refused in one short line", a_huge_field_is_refused_in_one_short_line},
    {"the reader names line and column", the_reader_names_line_and_column},
    {"results stand beside the rows as they were", results_are_appended_to_input_rows},
    {"columns decide what counts", csv_columns_are_found_by_name},
    {"the published rows agree with themselves", the_published_rows_agree_with_themselves},
};
CHECK_MAIN("external", cases)

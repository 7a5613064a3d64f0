#include "base/text.h"
#include "tests/traces/wrong_text.h"
#include "traces/measurements.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS "source,table,system,model,cluster,gpus,seq_len,options,metric,value,unit,note\n"

struct fixture {
    struct measurements all;
    struct text text;
    struct diag diag;
};

static void fixture_release(struct fixture *f)
{
    measurements_release(&f->all);
    text_release(&f->text);
    diag_release(&f->diag);
}

static enum status parse(struct fixture *f, const char *text)
{
    return measurements_parse(&f->all, "m.csv", text, strlen(text), &f->diag);
}

static void a_row_gives_its_values_and_its_texts(void)
{
    struct fixture f = {0};
    enum status status =
        parse(&f, COLUMNS
              "LoongTrain,2,ulysses,internlm-7b-mha,loongtrain-a100,32,131072,"
              "dhp=32; impl = deepspeed ;zero=1,tgs,629.90,tokens/s/gpu,\"odd, \"\"really\"\"\"\r\n"
              "FPDT,1,any,gpt-2.7b,,,,,rotation_us,215,us,");
    CHECK_INT("status", status, STATUS_OK);
    CHECK_TEXT("messages", f.diag.text, "");
    if (CHECK_INT("rows, the last without a line end", (int64_t)f.all.count, 2)) {
        const struct measurement *row = &f.all.row[0];
        CHECK_INT("gpus", row->gpus, 32);
        CHECK_INT("length", row->seq_len, 131072);
        CHECK_INT("metric", row->metric, METRIC_TGS);
        CHECK("number", row->is_number && row->value == 629.9 && row->scale == 1);
        CHECK_TEXT("value as written", row->text[MEASUREMENT_VALUE], "629.90");
        CHECK_TEXT("note", row->text[MEASUREMENT_NOTE], "odd, \"really\"");
        CHECK_TEXT("option", measurement_option(row, "dhp"), "32");
        CHECK_TEXT("blanks round an option", measurement_option(row, "impl"), "deepspeed");
        CHECK("no such option", measurement_option(row, "dcp") == NULL);
        static const char *const known[] = {"dhp", "zero"};
        const struct measurement_option *other = measurement_unknown_option(row, known, 2);
        CHECK_TEXT("an option not in the list", other ? other->key : NULL, "impl");
        CHECK("the list of none", measurement_unknown_option(row + 1, known, 2) == NULL);
        CHECK_INT("line", row[1].at.line, 3);
        CHECK_INT("no gpus", row[1].gpus, 0);
        CHECK_INT("no length", row[1].seq_len, 0);
        CHECK_CLOSE("215 us in s", row[1].value * row[1].scale, 215e-6, 1e-15);
    }
    fixture_release(&f);
}

static void what_a_value_means_follows_from_its_metric(void)
{
    static const struct {
        const char *label, *row;
        enum measurement_metric metric;
        enum measurement_score score;
        bool is_number;
        double in_si;
    } rows[] = {
        {"HBM", "peak_hbm,64.3,GB", METRIC_PEAK_HBM, SCORE_RELATIVE, true, 64.3e9},
        {"GiB", "activation_memory,2,GiB", METRIC_ACTIVATION_MEMORY, SCORE_RELATIVE, true,
         2147483648.0},
        {"milliseconds", "attention_ms,2681,ms", METRIC_ATTENTION_MS, SCORE_RELATIVE, true, 2.681},
        {"a zero", "seqalltoall_ms,0,ms", METRIC_SEQALLTOALL_MS, SCORE_RELATIVE, true, 0},
        {"length", "max_seq_len,2097152,tokens", METRIC_MAX_SEQ_LEN, SCORE_LENGTH, true, 2097152},
        {"no length", "max_seq_len,model does not fit,tokens", METRIC_MAX_SEQ_LEN, SCORE_LENGTH,
         false, 0},
        {"verdict", "verdict,OOM,", METRIC_VERDICT, SCORE_VERDICT, false, 0},
        {"unknown metric", "joules,12.5,J", METRIC_UNKNOWN, SCORE_RELATIVE, true, 12.5},
        {"unknown, words", "colour,blue,", METRIC_UNKNOWN, SCORE_RELATIVE, false, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fixture f = {0};
        text_printf(&f.text, "%sS,1,ring,m,c,8,1024,,%s,\n", COLUMNS, rows[i].row);
        CHECK_INT(rows[i].label, parse(&f, f.text.data), STATUS_OK);
        CHECK_TEXT(rows[i].label, f.diag.text, "");
        if (CHECK_INT(rows[i].label, (int64_t)f.all.count, 1)) {
            const struct measurement *row = f.all.row;
            CHECK_INT(rows[i].label, row->metric, rows[i].metric);
            CHECK_INT(rows[i].label, measurement_metrics[row->metric].score, rows[i].score);
            CHECK_INT(rows[i].label, row->is_number, rows[i].is_number);
            CHECK_CLOSE(rows[i].label, row->value * row->scale, rows[i].in_si, 1e-15);
        }
        fixture_release(&f);
    }
}

static const struct wrong_text wrong[] = {
    {"empty file", "",
     "m.csv: error: the file is empty: expected the column names 'source,table,system,...'\n"},
    {"other columns", "source,system\n",
     "m.csv:1: error: column 2 is 'system', expected 'table'\n"},
    {"extra column",
     "source,table,system,model,cluster,gpus,seq_len,options,metric,value,unit,note,x\n",
     "m.csv:1: error: column 13 is 'x', expected 'predicted'\n"},
    {"half a result",
     "source,table,system,model,cluster,gpus,seq_len,options,metric,value,unit,note,predicted\n",
     "m.csv:1: error: the column 'relative_error' is missing\n"},
    {"short row", COLUMNS "S,1,ring\n",
     "m.csv:2: error: 3 fields, expected 12 as in the line of column names\n"},
    {"long row", COLUMNS "S,1,ring,m,c,8,1024,,tgs,1,tokens/s/gpu,a,b,c,d\n",
     "m.csv:2: error: 15 fields, expected 12 as in the line of column names\n"},
    {"no system", COLUMNS "S,1,,m,c,8,1024,,tgs,1,tokens/s/gpu,\n",
     "m.csv:2: error: column 'system': is empty\n"},
    {"gpus", COLUMNS "S,1,ring,m,c,0,1024,,tgs,1,tokens/s/gpu,\n",
     "m.csv:2: error: column 'gpus': expected a whole number of at least 1, or nothing, not '0'\n"},
    {"length", COLUMNS "S,1,ring,m,c,8,99999999999999999999,,tgs,1,tokens/s/gpu,\n",
     "m.csv:2: error: column 'seq_len': expected a whole number of at least 1, or nothing, not "
     "'99999999999999999999'\n"},
    {"option", COLUMNS "S,1,ring,m,c,8,1024,dcp=8;rotate,tgs,1,tokens/s/gpu,\n",
     "m.csv:2: error: column 'options': expected key=value pairs separated by ';', not 'rotate'\n"},
    {"option value", COLUMNS "S,1,ring,m,c,8,1024,dcp= ,tgs,1,tokens/s/gpu,\n",
     "m.csv:2: error: column 'options': expected key=value pairs separated by ';', not 'dcp='\n"},
    {"option end", COLUMNS "S,1,ring,m,c,8,1024,dcp=8;,tgs,1,tokens/s/gpu,\n",
     "m.csv:2: error: column 'options': expected key=value pairs separated by ';', not ''\n"},
    {"option twice", COLUMNS "S,1,ring,m,c,8,1024,dcp=8;zero=1;dcp=4,tgs,1,tokens/s/gpu,\n",
     "m.csv:2: error: column 'options': 'dcp' is given twice\n"},
    {"value", COLUMNS "S,1,ring,m,c,8,1024,,tgs,OOM,tokens/s/gpu,\n",
     "m.csv:2: error: column 'value': expected a number that is not negative, not 'OOM'\n"},
    {"not finite", COLUMNS "S,1,ring,m,c,8,1024,,tgs,1e400,tokens/s/gpu,\n",
     "m.csv:2: error: column 'value': expected a number that is not negative, not '1e400'\n"},
    {"per cent", COLUMNS "S,1,ring,m,c,8,1024,,mfu,47.2,fraction,\n",
     "m.csv:2: error: column 'value': expected a fraction from 0 to 1, not '47.2'\n"},
    {"verdict", COLUMNS "S,1,ring,m,c,8,1024,,verdict,1,,\n",
     "m.csv:2: error: column 'value': expected 'OOM', not '1'\n"},
    {"longest length", COLUMNS "S,1,ring,m,c,8,,,max_seq_len,0,tokens,\n",
     "m.csv:2: error: column 'value': expected a length or 'model does not fit', not '0'\n"},
    {"no unit", COLUMNS "S,1,ring,m,c,8,1024,,attention_ms,1,,\n",
     "m.csv:2: error: column 'unit': 'attention_ms' has the unit 's', 'ms', 'us', not ''\n"},
    {"open quote", COLUMNS "S,1,ring,m,c,8,1024,,tgs,1,tokens/s/gpu,\"a\n\n",
     "m.csv:2: error: a quoted field of this row is not closed\n"},
};

static enum status parse_and_drop(const char *text, struct diag *diag)
{
    struct measurements read = {0};
    enum status status = measurements_parse(&read, "m.csv", text, strlen(text), diag);
    measurements_release(&read);
    return status;
}

static void the_reader_names_line_and_column(void)
{
    check_wrong_texts(wrong, ARRAY_LEN(wrong), parse_and_drop);
}

static void a_huge_field_is_refused_in_one_short_line(void)
{
    struct fixture f = {0};
    text_puts(&f.text, COLUMNS "S,1,ring,m,c,");
    for (int i = 0; i < 100000; i++)
        text_puts(&f.text, "9999999999");
    text_puts(&f.text, ",1024,,tgs,1,tokens/s/gpu,\n");
    CHECK_INT("digits", parse(&f, f.text.data), STATUS_BAD_INPUT);
    CHECK("short", f.diag.size < 700);
    fixture_release(&f);

    text_puts(&f.text, COLUMNS "S,1,ring,m,c,8,1024,");
    for (int i = 0; i < 100000; i++)
        text_printf(&f.text, "k%d=1;", i);
    text_puts(&f.text, "k=1,tgs,1,tokens/s/gpu,\n");
    CHECK_INT("options", parse(&f, f.text.data), STATUS_BAD_INPUT);
    CHECK_TEXT("options", f.diag.text, "m.csv:2: error: column 'options': more than 256 options\n");
    fixture_release(&f);
}

static void results_stand_beside_the_rows_as_they_were(void)
{
    struct fixture f = {0}, again = {0};
    struct text out = {0};
    static const char input[] =
        COLUMNS "S,1,ring,m,c,8,1024,dcp=8,tgs,400.0,tokens/s/gpu,\"a, b\"\n"
                "S,1,ring,m,c,8,2048,dcp=8,verdict,OOM,,\n"
                "S,1,ring,m,c,8,2048,new=8,mfu,0,fraction,\n";
    CHECK_INT("parse", parse(&f, input), STATUS_OK);
    struct measurement_result result[] = {
        {.outcome = OUTCOME_OK, .predicted = 420, .relative_error = 0.05},
        {.outcome = OUTCOME_WRONG,
         .predicted = NAN,
         .predicted_text = "fits",
         .relative_error = NAN},
        {.outcome = OUTCOME_ERROR, .predicted = NAN, .relative_error = NAN, .why = "x: 1,5\ny\n"},
    };
    static const char output[] =
        "source,table,system,model,cluster,gpus,seq_len,options,metric,value,unit,note,predicted,"
        "relative_error,status\n"
        "S,1,ring,m,c,8,1024,dcp=8,tgs,400.0,tokens/s/gpu,\"a, b\",420,0.05,ok\n"
        "S,1,ring,m,c,8,2048,dcp=8,verdict,OOM,,,fits,,wrong\n"
        "S,1,ring,m,c,8,2048,new=8,mfu,0,fraction,,,,\"error: x: 1,5; y\"\n";
    measurements_print(&f.all, result, &out);
    CHECK_TEXT("printed", out.data, output);
    CHECK_INT("reads back", parse(&again, out.data), STATUS_OK);
    text_release(&out);
    measurements_print(&again.all, result, &out);
    CHECK_TEXT("its old results are replaced", out.data, output);
    CHECK_INT("full disk", measurements_save(&f.all, result, "/dev/full", &f.diag), STATUS_SYSTEM);
    text_release(&out);
    fixture_release(&f);
    fixture_release(&again);
}

static void the_published_rows_are_read_and_kept_to_the_byte(void)
{
    struct fixture f = {0};
    struct text published = {0};
    const char *path = check_path("../traces/published/measurements.csv");
    CHECK_INT("load", measurements_load(&f.all, path, &f.diag), STATUS_OK);
    CHECK_TEXT("messages", f.diag.text, "");
    CHECK_INT("rows", (int64_t)f.all.count, 391);
    for (size_t i = 0; i < f.all.count; i++) {
        CHECK("the metric is known", f.all.row[i].metric != METRIC_UNKNOWN);
        CHECK("a system", f.all.row[i].text[MEASUREMENT_SYSTEM][0] != '\0');
    }
    CHECK_INT("read", text_read(&published, path, &f.diag), STATUS_OK);
    struct measurement_result *result = heap_zalloc(f.all.count, sizeof *result);
    for (size_t i = 0; i < f.all.count; i++)
        result[i].predicted = result[i].relative_error = NAN;
    measurements_print(&f.all, result, &f.text);
    struct text want = {0};
    for (const char *at = published.data, *end; at && *at; at = end + 1) {
        end = strchr(at, '\n');
        text_append(&want, at, (size_t)(end - at) - (end > at && end[-1] == '\r'));
        text_puts(&want, at == published.data ? ",predicted,relative_error,status\n" : ",,,ok\n");
    }
    CHECK_TEXT("printed", f.text.data, want.data);
    free(result);
    text_release(&want);
    text_release(&published);
    fixture_release(&f);
}

static const struct check_case cases[] = {
    {"a row gives its values and its texts", a_row_gives_its_values_and_its_texts},
    {"what a value means follows from its metric", what_a_value_means_follows_from_its_metric},
    {"the reader names line and column", the_reader_names_line_and_column},
    {"a huge field is refused in one short line", a_huge_field_is_refused_in_one_short_line},
    {"results stand beside the rows as they were", results_stand_beside_the_rows_as_they_were},
    {"the published rows are read and kept to the byte",
     the_published_rows_are_read_and_kept_to_the_byte},
};
CHECK_MAIN("measurements", cases)

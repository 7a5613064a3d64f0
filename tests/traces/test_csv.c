/* tests/traces/test_csv.c: traces as CSV files are read as written; the reader reports a fault with its line, and
 * hostile bytes. */
#include "base/file_set.h"
#include "base/text.h"
#include "tests/check.h"
#include "traces/csv.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define OPS "rank,stream,op,kind,phase,region,layer,chunk,step,start_s,end_s,bytes,flops\n"
#define OPS_CSV_COLUMNS                                                                            \
    "rank,stream,op,kind,phase,region,layer,chunk,step,start_s,end_s,bytes,flops,micro\n"
#define MEMORY_CSV_COLUMNS "time_s,rank,memory,category,bytes\n"
#define ROW "0,compute,7,matmul,forward,linear,3,-1,-1,0.1,0.25,1024,2e+17\n"

struct fixture {
    struct trace trace;
    struct text text;
    struct diag diag;
};

static void fixture_release(struct fixture *f)
{
    trace_release(&f->trace);
    text_release(&f->text);
    diag_release(&f->diag);
}

static void a_file_reads_as_it_is_written(void)
{
    struct fixture f = {0};
    const char *text = "# made_by=longhaul 0.1.0\n# note=a \\\\ and\\ntwo lines\n" OPS ROW
                       "31,comm.hp,8,all_to_all,forward,attention,3,0,2,0.25,1e-300,5,0\n";
    enum status status = trace_parse_ops(&f.trace, "t.csv", text, strlen(text), &f.diag);
    CHECK_INT("a row that ends before it starts", status, STATUS_BAD_INPUT);
    fixture_release(&f);

    text = "# made_by=longhaul 0.1.0\n# note=a \\\\ and\\ntwo lines\n" OPS_CSV_COLUMNS
           "0,compute,7,matmul,forward,linear,3,-1,-1,0.1,0.25,1024,2e+17,-1\n"
           "31,comm.hp,8,all_to_all,forward,attention,3,0,2,0.25,0.30000000000000004,5,0,12\n";
    status = trace_parse_ops(&f.trace, "t.csv", text, strlen(text), &f.diag);
    CHECK_INT("status", status, STATUS_OK);
    CHECK_TEXT("messages", f.diag.text, "");
    CHECK_INT("rows", (int64_t)f.trace.ops.count, 2);
    CHECK_TEXT("a header value", trace_get_key(&f.trace, "note"), "a \\ and\ntwo lines");
    CHECK_INT("rank", f.trace.ops.rank[1], 31);
    CHECK_TEXT("stream", f.trace.labels[f.trace.ops.stream[1]], "comm.hp");
    CHECK_INT("op", f.trace.ops.op[0], 7);
    CHECK_INT("layer", f.trace.ops.layer[0], 3);
    CHECK_INT("no chunk", f.trace.ops.chunk[0], -1);
    CHECK("end", f.trace.ops.end_s[1] == 0.1 + 0.2);
    CHECK("flops", f.trace.ops.flops[0] == 2e17);
    CHECK_INT("no unit", f.trace.ops.micro[0], -1);
    CHECK_INT("a unit", f.trace.ops.micro[1], 12);
    trace_print_ops(&f.trace, &f.text);
    CHECK_TEXT("printed again", f.text.data, text);
    fixture_release(&f);

    text = OPS ROW; /* of a version that did not write the unit */
    status = trace_parse_ops(&f.trace, "t.csv", text, strlen(text), &f.diag);
    CHECK_INT("a file without units", status, STATUS_OK);
    CHECK_INT("its unit", f.trace.ops.micro[0], -1);
    fixture_release(&f);
}

/* Texts that a program could use as a label or header value, and doubles of every size, read back as they were
 * printed. */
static void any_trace_survives_the_round_trip(void)
{
    static const char *const texts[] = {
        "",     "compute", "a,b",      "\"",       " padded ", "#5",  "line\nend", "\r",
        "\r\n", "\t",      "\"q\",\n", "\xc3\xa9", "\\n",      "a=b", ",",         "\x01",
    };
    struct check_random random = check_random_make();
    for (int round = 0; round < 50; round++) {
        struct fixture f = {0}, again = {0};
        char key[16];
        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
            snprintf(key, sizeof key, "key %zu", i);
            trace_set_key(&f.trace, key, texts[i]);
        }
        int64_t rows = check_random_i64(&random, 0, 60);
        for (int64_t i = 0; i < rows; i++) {
            size_t row = trace_add_op(&f.trace);
            struct trace_ops *ops = &f.trace.ops;
            ops->rank[row] = (uint32_t)check_random_u64(&random);
            ops->op[row] = (uint32_t)check_random_u64(&random);
            uint16_t *labels[] = {ops->stream, ops->kind, ops->phase, ops->region};
            for (size_t l = 0; l < ARRAY_LEN(labels); l++) {
                int64_t pick = check_random_i64(&random, 0, ARRAY_LEN(texts) - 1);
                labels[l][row] = trace_intern_label(&f.trace, texts[pick]);
            }
            ops->layer[row] = (int32_t)check_random_i64(&random, -1, INT32_MAX);
            ops->chunk[row] = -1;
            double scale = ldexp(1, (int)check_random_i64(&random, -1074, 300));
            ops->start_s[row] = (check_random_double(&random) - 0.5) * scale;
            ops->end_s[row] = ops->start_s[row] + check_random_double(&random) * scale;
            ops->bytes[row] = check_random_double(&random) * scale;
            row = trace_add_memory(&f.trace);
            f.trace.memory.time_s[row] = ops->end_s[row];
            f.trace.memory.category[row] = ops->kind[row];
            f.trace.memory.bytes[row] = ops->bytes[row];
        }
        struct text memory = {0}, memory_again = {0};
        trace_print_ops(&f.trace, &f.text);
        trace_print_memory(&f.trace, &memory);
        CHECK_INT("ops", trace_parse_ops(&again.trace, "o", f.text.data, f.text.size, &f.diag),
                  STATUS_OK);
        CHECK_INT("memory",
                  trace_parse_memory(&again.trace, "m", memory.data, memory.size, &f.diag),
                  STATUS_OK);
        CHECK_TEXT("messages", f.diag.text, "");
        trace_print_ops(&again.trace, &again.text);
        trace_print_memory(&again.trace, &memory_again);
        CHECK_TEXT("ops", again.text.data, f.text.data);
        CHECK_TEXT("memory", memory_again.data, memory.data);
        if (CHECK_INT("rows", (int64_t)again.trace.ops.count, rows) && rows > 0) {
            const struct trace_ops *a = &f.trace.ops, *b = &again.trace.ops;
            size_t size = (size_t)rows * sizeof(double);
            CHECK("start", memcmp(a->start_s, b->start_s, size) == 0);
            CHECK("end", memcmp(a->end_s, b->end_s, size) == 0);
            CHECK("bytes", memcmp(a->bytes, b->bytes, size) == 0);
            for (size_t i = 0; i < (size_t)rows; i++)
                CHECK_TEXT("kind", again.trace.labels[b->kind[i]], f.trace.labels[a->kind[i]]);
        }
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
            CHECK_TEXT("header", again.trace.header_keys[i].value, texts[i]);
        text_release(&memory);
        text_release(&memory_again);
        fixture_release(&f);
        fixture_release(&again);
    }
}

static const struct {
    const char *label, *text, *message;
} wrong[] = {
    {"empty file", "", "t.csv: error: no line of column names: expected 'rank,stream,...'\n"},
    {"only comments", "# a=b\n\n",
     "t.csv: error: no line of column names: expected 'rank,stream,...'\n"},
    {"other column", "rank,stream,op,knd\n",
     "t.csv:1: error: column 4 is 'knd', expected 'kind'\n"},
    {"column missing", "rank,stream,op\n", "t.csv:1: error: the column 'kind' is missing\n"},
    {"column too many",
     "rank,stream,op,kind,phase,region,layer,chunk,step,start_s,end_s,bytes,flops,micro,x\n",
     "t.csv:1: error: unknown column 'x' after the last one, 'micro'\n"},
    {"memory file", MEMORY_CSV_COLUMNS, "t.csv:1: error: column 1 is 'time_s', expected 'rank'\n"},
    {"row too short", "# a=b\n" OPS ROW "0,compute,7\n",
     "t.csv:4: error: 3 fields, expected 13 as in the line of column names\n"},
    {"cut off", OPS "0,compute,7,matmul,forward,linear,3,-1,-1,0.1,0.25,1024,2",
     "t.csv: error: the last row has no line end: the file was cut off\n"},
    {"bad number", OPS "0,compute,7,matmul,forward,linear,3,-1,-1,0.1s,0.25,1024,2\n",
     "t.csv:2: error: column 'start_s': expected a number of at most 1e100, not '0.1s'\n"},
    {"not finite", OPS "0,compute,7,matmul,forward,linear,3,-1,-1,0,1e999,1024,2\n",
     "t.csv:2: error: column 'end_s': expected a number of at most 1e100, not '1e999'\n"},
    {"NaN", OPS "0,compute,7,matmul,forward,linear,3,-1,-1,nan,1,1024,2\n",
     "t.csv:2: error: column 'start_s': expected a number of at most 1e100, not 'nan'\n"},
    {"negative bytes", OPS "0,compute,7,matmul,forward,linear,3,-1,-1,0,1,-1,2\n",
     "t.csv:2: error: column 'bytes': expected a number from 0 to 1e100, not '-1'\n"},
    {"rank too large", OPS "4294967296,compute,7,matmul,forward,linear,3,-1,-1,0,1,1,2\n",
     "t.csv:2: error: column 'rank': expected a whole number from 0 to 4294967295, not "
     "'4294967296'\n"},
    {"layer below none", OPS "0,compute,7,matmul,forward,linear,-2,-1,-1,0,1,1,2\n",
     "t.csv:2: error: column 'layer': expected a whole number from -1 to 2147483647, not '-2'\n"},
    {"ends early", OPS "0,compute,7,matmul,forward,linear,-1,-1,-1,2,1,1,2\n",
     "t.csv:2: error: column 'end_s': 1 is before start_s, 2\n"},
    {"late comment", OPS "# a=b\n",
     "t.csv:2: error: this comment stands among the rows; comments must stand before the column "
     "names\n"},
    {"free comment", "# hello\n" OPS,
     "t.csv:1: error: expected '# key=value', the key in printable ASCII\n"},
    {"no key", "# =x\n" OPS,
     "t.csv:1: error: expected '# key=value', the key in printable ASCII\n"},
    {"bad escape", "# a=\\t\n" OPS,
     "t.csv:1: error: a: a '\\' that is none of \"\\\\\", \"\\n\" and \"\\r\"\n"},
    {"two values", "# a=1\n# a=2\n" OPS,
     "t.csv:2: error: a is '2' here and was '1' before: a trace must not hold rows of two runs\n"},
    {"open quote", OPS "0,\"compute,7\n1,2\n",
     "t.csv:2: error: a quoted field of this row is not closed\n"},
    {"stray quote", OPS "0,com\"pute,7\n",
     "t.csv:2:6: error: a quote stands inside a field: a field must be quoted as a whole, with the "
     "quotes in it doubled\n"},
};

static void the_reader_says_what_is_wrong_and_where(void)
{
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct fixture f = {0};
        enum status status =
            trace_parse_ops(&f.trace, "t.csv", wrong[i].text, strlen(wrong[i].text), &f.diag);
        CHECK_INT(wrong[i].label, status, STATUS_BAD_INPUT);
        CHECK_TEXT(wrong[i].label, f.diag.text, wrong[i].message);
        fixture_release(&f);
    }
}

static void lines_are_counted_through_quoted_line_ends(void)
{
    struct fixture f = {0};
    const char *text =
        "\xef\xbb\xbf# a=b\r\n" MEMORY_CSV_COLUMNS "0,0,\"h\nb\nm\",kv,1\r\n\n  \n0,0,hbm,kv,x\n";
    trace_parse_memory(&f.trace, "m.csv", text, strlen(text), &f.diag);
    CHECK_TEXT("line", f.diag.text,
               "m.csv:8: error: column 'bytes': expected a number from 0 to 1e100, not 'x'\n");
    CHECK_INT("the rows before stay", (int64_t)f.trace.memory.count, 1);
    CHECK_TEXT("CRLF comment", trace_get_key(&f.trace, "a"), "b");
    fixture_release(&f);
}

static void hostile_bytes_are_refused(void)
{
    struct fixture f = {0};
    static const char nul[] = OPS "0,comp\0ute\n";
    trace_parse_ops(&f.trace, "t.csv", nul, sizeof nul - 1, &f.diag);
    CHECK_TEXT("NUL", f.diag.text, "t.csv:2:7: error: a NUL byte: this is not a CSV file\n");
    fixture_release(&f);

    /* An unclosed quote must not collect the rest of a large file. */
    text_puts(&f.text, OPS "0,\"");
    for (int i = 0; i < 100000; i++)
        text_puts(&f.text, "0123456789012345678901234567890\n");
    trace_parse_ops(&f.trace, "t.csv", f.text.data, f.text.size, &f.diag);
    CHECK_TEXT("huge field", f.diag.text,
               "t.csv:2: error: this row has a field of more than 1048576 bytes (is a closing "
               "quote missing?)\n");
    fixture_release(&f);

    for (int i = 0; i < 300; i++)
        text_puts(&f.text, "a,");
    trace_parse_ops(&f.trace, "t.csv", f.text.data, f.text.size, &f.diag);
    CHECK_TEXT("many fields", f.diag.text,
               "t.csv:1: error: this row has more than 256 fields or 1048576 bytes (is a closing "
               "quote missing?)\n");
    fixture_release(&f);

    text_puts(&f.text, MEMORY_CSV_COLUMNS);
    for (int i = 0; i <= TRACE_LABEL_LIMIT; i++)
        text_printf(&f.text, "0,0,hbm,c%d,1\n", i);
    trace_parse_memory(&f.trace, "m.csv", f.text.data, f.text.size, &f.diag);
    CHECK_TEXT("labels", f.diag.text,
               "m.csv:65536: error: column 'category': more than 65536 different texts\n");
    fixture_release(&f);
}

static void files_of_two_runs_do_not_mix(void)
{
    struct fixture f = {0};
    char ops[256], memory[256];
    snprintf(ops, sizeof ops, "%s/ops.csv", check_temp_dir());
    snprintf(memory, sizeof memory, "%s/memory.csv", check_temp_dir());
    trace_set_key(&f.trace, "seed", "1");
    trace_add_op(&f.trace);
    trace_print_ops(&f.trace, &f.text);
    CHECK_INT("save", file_set_write_single_file(ops, f.text.data, f.text.size, &f.diag),
              STATUS_OK);
    f.text.size = 0;
    trace_set_key(&f.trace, "seed", "2");
    trace_add_memory(&f.trace);
    trace_print_memory(&f.trace, &f.text);
    CHECK_INT("save", file_set_write_single_file(memory, f.text.data, f.text.size, &f.diag),
              STATUS_OK);
    struct fixture g = {0};
    CHECK_INT("load", trace_load_ops(&g.trace, ops, &g.diag), STATUS_OK);
    CHECK_INT("load the other", trace_load_memory(&g.trace, memory, &g.diag), STATUS_BAD_INPUT);
    CHECK("message", g.diag.text && strstr(g.diag.text, "seed is '2' here and was '1' before"));
    fixture_release(&f);
    fixture_release(&g);
}

static const struct check_case cases[] = {
    {"a file reads as it is written", a_file_reads_as_it_is_written},
    {"any trace survives the round trip", any_trace_survives_the_round_trip},
    {"the reader says what is wrong and where", the_reader_says_what_is_wrong_and_where},
    {"lines are counted through quoted line ends", lines_are_counted_through_quoted_line_ends},
    {"hostile bytes are refused", hostile_bytes_are_refused},
    {"files of two runs do not mix", files_of_two_runs_do_not_mix},
};
CHECK_MAIN("csv", cases)

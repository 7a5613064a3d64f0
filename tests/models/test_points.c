/* tests/models/test_points.c: files of measured points print and read back, and faults in them are refused. */
#include "models/points.h"
#include "tests/check.h"

#include <string.h>

#define COLUMNS "measured,kind,params,in,out,reads,writes,impl,median_s,p10_s,p90_s,repeats\n"

static const char good[] =
    "# device=a \"device\", of sorts\n"
    "# nodes=2\n"
    "# attention.cpu.forward.tile=128\n" COLUMNS
    "work,matmul,m=512 n=64 k=128 form=tn,bf16,f32,2,1,,0.001,0.0009,0.0012,50\n"
    "work,attention,q=512 kv=1024 heads=4 kv_heads=2 dim=64 mask=causal "
    "offset=-512,bf16,bf16,3,2,fa2,1e-06,1e-06,1e-06,1\n"
    "work,all_reduce,group=8 bytes=65536 algorithm=ring,f32,f32,1,1,,0.002,0.001,0.003,20\n"
    "issue,host_sync,,,,0,0,,5e-06,4e-06,6e-06,20\n"
    "host,adamw,count=1048576,f32,f32,4,4,,0.01,0.01,0.01,7\n";

static void printed_points_are_read_back(void)
{
    struct points points = {0};
    struct diag diag = {0};
    struct text first = {0};
    CHECK_INT("read", points_parse(&points, "p.csv", good, strlen(good), &diag), STATUS_OK);
    CHECK_TEXT("no message", diag.text ? diag.text : "", "");
    points_print(&points, &first);
    CHECK_TEXT("the same text", first.data, good);
    CHECK_INT("rows", (int64_t)points.count, 5);
    CHECK_INT("nodes", points.row[2].nodes, 2);
    CHECK_INT("members", work_comm_group(&points.row[2].work), 8);
    CHECK_INT("offset", points.row[1].work.attention.offset, -512);
    CHECK_INT("line", points.row[0].at.line, 5);
    CHECK_TEXT("header", points_header_value(&points, "device"), "a \"device\", of sorts");
    CHECK("no such key", points_header_value(&points, "colour") == NULL);
    text_release(&first);
    diag_release(&diag);
    points_release(&points);
}

static const struct {
    const char *label, *text, *message;
} wrong[] = {
    {"no columns", "# a=b\n",
     "p.csv: error: has no line of column names, which starts with 'measured,kind,params,...'\n"},
    {"another column", "measured,sort\n", "p.csv:1: error: column 2 is 'sort', expected 'kind'\n"},
    {"a header below", COLUMNS "# a=b\n",
     "p.csv:2: error: a header line (# key=value) must stand above the column names\n"},
    {"a header without a value", "# a b\n" COLUMNS,
     "p.csv:1: error: this header line has no key before an '=': expected '# key=value'\n"},
    {"a device that is no UTF-8", "# device=GPU \xe9\n" COLUMNS,
     "p.csv:1: error: this header line is not UTF-8, but it is copied into the device file, "
     "which must be\n"},
    {"a date cut within a character", "# x=y\n# date=2025\xc3\n" COLUMNS,
     "p.csv:2: error: this header line is not UTF-8, but it is copied into the device file, "
     "which must be\n"},
    {"a key twice", "# a=b\n# a=c\n" COLUMNS, "p.csv:2: error: header key 'a' stands twice\n"},
    {"nodes in words", "# nodes=many\n" COLUMNS,
     "p.csv:1: error: nodes=many: expected a number from 1 to 65535\n"},
    {"too few fields", COLUMNS "work,add\n", "p.csv:2: error: 2 fields; there are 12 columns\n"},
    {"another role", COLUMNS "play,add,count=1,f32,f32,2,1,,1,1,1,1\n",
     "p.csv:2: error: column 'measured': 'play' is not work, start, issue, host, pageable, "
     "both_ways, beside_copies, robbed, sustained, step or launch\n"},
    {"another kind", COLUMNS "work,ad,count=1,f32,f32,2,1,,1,1,1,1\n",
     "p.csv:2: error: column 'kind': 'ad' is not a kind of work\n"},
    {"another parameter", COLUMNS "work,add,counts=1,f32,f32,2,1,,1,1,1,1\n",
     "p.csv:2: error: column 'params': 'counts=1' is no parameter of add\n"},
    {"a parameter twice", COLUMNS "work,add,count=1 count=2,f32,f32,2,1,,1,1,1,1\n",
     "p.csv:2: error: column 'params': count stands twice\n"},
    {"a parameter short", COLUMNS "work,matmul,m=1 n=2,f32,f32,2,1,,1,1,1,1\n",
     "p.csv:2: error: column 'params': matmul has no k\n"},
    {"a size of 0", COLUMNS "work,add,count=0,f32,f32,2,1,,1,1,1,1\n",
     "p.csv:2: error: column 'params': 'count=0' is no value of count\n"},
    {"heads that do not divide",
     COLUMNS "work,attention,q=1 kv=1 heads=3 kv_heads=2 dim=8 mask=full,f32,f32,3,2,cpu,1,1,1,1\n",
     "p.csv:2: error: column 'params': 3 heads cannot share 2 kv_heads\n"},
    {"no dtype", COLUMNS "work,add,count=1,f31,f32,2,1,,1,1,1,1\n",
     "p.csv:2: error: column 'in': 'f31' is not a dtype\n"},
    {"too many reads", COLUMNS "work,add,count=1,f32,f32,4,1,,1,1,1,1\n",
     "p.csv:2: error: column 'reads': '4' is not a number of reads of this kind\n"},
    {"no implementation",
     COLUMNS "work,attention,q=1 kv=1 heads=2 kv_heads=2 dim=8 mask=full,f32,f32,3,2,,1,1,1,1\n",
     "p.csv:2: error: column 'impl': '' is not an implementation of attention\n"},
    {"an implementation of an add", COLUMNS "work,add,count=1,f32,f32,2,1,cpu,1,1,1,1\n",
     "p.csv:2: error: column 'impl': only attention and merges have implementations\n"},
    {"a time of 0", COLUMNS "work,add,count=1,f32,f32,2,1,,0,0,1,1\n",
     "p.csv:2: error: column 'median_s': '0' is not a time in seconds, above 0\n"},
    {"a median outside", COLUMNS "work,add,count=1,f32,f32,2,1,,3,1,2,1\n",
     "p.csv:2: error: column 'median_s': 3 does not lie between p10_s and p90_s\n"},
    {"no repeats", COLUMNS "work,add,count=1,f32,f32,2,1,,1,1,1,0\n",
     "p.csv:2: error: column 'repeats': '0' is not a number of repeats, at least 1\n"},
};

static void the_reader_says_where_the_text_is_wrong(void)
{
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct points points = {0};
        struct diag diag = {0};
        enum status status =
            points_parse(&points, "p.csv", wrong[i].text, strlen(wrong[i].text), &diag);
        CHECK_INT(wrong[i].label, status, STATUS_BAD_INPUT);
        CHECK_TEXT(wrong[i].label, diag.text, wrong[i].message);
        diag_release(&diag);
        points_release(&points);
    }
}

static const struct check_case cases[] = {
    {"what is printed is read back", printed_points_are_read_back},
    {"the reader says where the text is wrong", the_reader_says_where_the_text_is_wrong},
};
CHECK_MAIN("points", cases)

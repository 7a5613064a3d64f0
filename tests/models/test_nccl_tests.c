/* tests/models/test_nccl_tests.c: reads output of nccl-tests: the collective, the ranks and hosts, the bytes
 * that one rank sends. */
#include "models/nccl_tests.h"

#include "models/calibrate_links.h"
#include "tests/check.h"

#include <string.h>

#define LINES_OF_TWO_RANKS                                                                         \
    "#  Rank  0 Group  0 Pid   100 on     node1 device  0 [0x1b] NVIDIA H100 80GB HBM3\n"          \
    "#  Rank  1 Group  0 Pid   101 on     node1 device  1 [0x43] NVIDIA H100 80GB HBM3\n"
#define COLUMNS                                                                                    \
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     "    \
    "time   "                                                                                      \
    "algbw   busbw #wrong\n"
#define COLLECTIVE_TEST_STARTS_LINE(test) "# Collective test starting: " test "\n"
#define ROW(size)                                                                                  \
    "  " size "   65536     float     sum      -1    100.0    2.62    2.62      0    90.0    "     \
    "2.91    2.91      0\n"

static void recorded_nccl_tests_outputs_are_read(void)
{
    static const struct {
        const char *file, *test;
        int64_t rows, ranks, bytes; /* bytes: of the last row */
        int nodes;
        enum work_kind kind;
        double seconds;
    } files[] = {
        /* file, test, rows, ranks, bytes, nodes, kind, seconds */
        {"data/calibration/all_reduce_8.txt", NULL, 8, 8, 134217728, 1, WORK_ALL_REDUCE, 1281.5e-6},
        {"data/calibration/all_gather_2x4.txt", "all_gather_perf", 5, 8, 16777216 / 8, 2,
         WORK_ALL_GATHER, 711.4e-6},
        {"data/calibration/alltoall_8.txt", NULL, 4, 8, 67108864, 1, WORK_ALL_TO_ALL, 489.8e-6},
    };
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct points points = {0};
        struct diag diag = {0};
        enum status status =
            nccl_tests_load(&points, check_path(files[i].file), files[i].test, 0, &diag);
        CHECK_TEXT(files[i].file, diag.text ? diag.text : "", "");
        CHECK_INT(files[i].file, status, STATUS_OK);
        CHECK_INT(files[i].file, (int64_t)points.count, files[i].rows);
        if (points.count > 0) {
            const struct point *last = &points.row[points.count - 1];
            CHECK_INT(files[i].file, last->work.kind, files[i].kind);
            CHECK_INT("ranks", work_comm_group(&last->work), files[i].ranks);
            CHECK_INT("bytes that one rank sends", work_payload_bytes(&last->work), files[i].bytes);
            CHECK_INT("nodes", last->nodes, files[i].nodes);
            CHECK_CLOSE("the time out of place", last->median_s, files[i].seconds, 1e-9);
        }
        diag_release(&diag);
        points_release(&points);
    }
}

static void the_table_follows_its_latency_and_bandwidth(void)
{
    struct points points = {0};
    struct diag diag = {0};
    struct link_calibration links = {0};
    struct calibrate_options options = {0};
    nccl_tests_load(&points, check_path("data/calibration/all_reduce_8.txt"), NULL, 1 << 20, &diag);
    CHECK_INT("rows of a MiB or more", (int64_t)points.count, 8);
    CHECK_INT("fitted", calibrate_links(&links, &points, &options, &diag), STATUS_OK);
    CHECK_CLOSE("latency", links.link_by_class[CALIBRATE_RING].latency_s, 3e-6, 0.01);
    CHECK_CLOSE("bandwidth", links.link_by_class[CALIBRATE_RING].bytes_per_s, 189.5e9, 0.01);
    link_calibration_release(&links);
    diag_release(&diag);
    points_release(&points);
}

static const struct {
    const char *label, *text, *message;
} wrong[] = {
    {"no name of the test", LINES_OF_TWO_RANKS COLUMNS ROW("262144"),
     "n.txt:4: error: the output does not say which test printed it; write its name before the "
     "file: all_reduce_perf:FILE\n"},
    {"another collective", COLLECTIVE_TEST_STARTS_LINE("gather_perf") LINES_OF_TWO_RANKS COLUMNS,
     "n.txt:1: error: 'gather_perf' tests a collective that no schedule uses\n"},
    {"no columns", COLLECTIVE_TEST_STARTS_LINE("all_reduce_perf") LINES_OF_TWO_RANKS ROW("262144"),
     "n.txt:4: error: this row stands before the line that names the columns\n"},
    {"no ranks", COLLECTIVE_TEST_STARTS_LINE("all_reduce_perf") COLUMNS ROW("262144"),
     "n.txt:3: error: 0 ranks are listed above; a message needs two\n"},
    {"a short row",
     COLLECTIVE_TEST_STARTS_LINE("all_reduce_perf") LINES_OF_TWO_RANKS COLUMNS
     "  1024 256 float sum\n",
     "n.txt:5: error: this row has 4 values, but the line of column names has 13 columns\n"},
    {"a size that no memory has",
     COLLECTIVE_TEST_STARTS_LINE("all_reduce_perf")
         LINES_OF_TWO_RANKS COLUMNS ROW("0777777777777777777"),
     "n.txt:5: error: the size is 777777777777777777 bytes; messages of at most 1125899906842624 "
     "bytes (1 PiB) are read\n"},
    {"a time in words",
     COLLECTIVE_TEST_STARTS_LINE("all_reduce_perf") LINES_OF_TWO_RANKS COLUMNS
     "1024 256 float sum -1 soon 0.0 0.0 0 1.0 0.0 0.0 0\n",
     "n.txt:5: error: 'soon' is no time in us\n"},
    {"a rank without a host",
     COLLECTIVE_TEST_STARTS_LINE("all_reduce_perf") "#  Rank  0 Group  0\n",
     "n.txt:2: error: this line names a rank and not the host on which it ran\n"},
    {"a table without times", "# size count type\n",
     "n.txt:1: error: a table of nccl-tests has the columns size, type and time\n"},
    {"two runs, mixed",
     COLLECTIVE_TEST_STARTS_LINE("all_reduce_perf")
         LINES_OF_TWO_RANKS LINES_OF_TWO_RANKS COLUMNS ROW("262144"),
     "n.txt:4: error: rank 0 is listed where rank 2 would follow: the lines of two runs are mixed "
     "here; write the output of each run to a file of its own\n"},
    {"two runs, the second among rows of the first",
     COLLECTIVE_TEST_STARTS_LINE("all_reduce_perf") LINES_OF_TWO_RANKS COLUMNS ROW("1024")
         LINES_OF_TWO_RANKS ROW("2048") COLUMNS,
     "n.txt:8: error: this row stands before the line that names the columns\n"},
    {"rows of two runs, mixed",
     COLLECTIVE_TEST_STARTS_LINE("all_reduce_perf") LINES_OF_TWO_RANKS COLUMNS ROW("1024")
         ROW("2048") ROW("1024") ROW("4096") ROW("2048"),
     "n.txt:9: error: the sizes of the rows do not ascend: the lines of two runs are mixed here; "
     "write the output of each run to a file of its own\n"},
    {"a rank without a number",
     COLLECTIVE_TEST_STARTS_LINE("all_reduce_perf") "#  Rank  Group  0\n",
     "n.txt:2: error: expected the number of a rank after 'Rank'\n"},
    {"nothing", "", "n.txt: error: holds no row of nccl-tests of at least 0 bytes\n"},
};

static void the_reader_says_where_the_text_is_wrong(void)
{
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct points points = {0};
        struct diag diag = {0};
        enum status status = nccl_tests_parse(&points, "n.txt", wrong[i].text,
                                              strlen(wrong[i].text), NULL, 0, &diag);
        CHECK_INT(wrong[i].label, status, STATUS_BAD_INPUT);
        CHECK_TEXT(wrong[i].label, diag.text, wrong[i].message);
        diag_release(&diag);
        points_release(&points);
    }
}

/* Launchers put a tag before each line; the runs of one file may follow one another, and a run may repeat its sizes. */
static void launcher_tags_of_lines_are_skipped(void)
{
    static const char *const tags[] = {
        "", "\t[1,0]<stdout>:", "[0] ", "0: ", " 12: ", "[1,0]<stderr>:"};
    static const char *const lines[] = {
        COLLECTIVE_TEST_STARTS_LINE("all_reduce_perf"),
        "#  Rank  0 Group  0 Pid   100 on     node1 device  0 [0x1b] NVIDIA H100 80GB HBM3\n",
        "#  Rank  1 Group  0 Pid   101 on     node2 device  1 [0x43] NVIDIA H100 80GB HBM3\n",
        COLUMNS,
        ROW("262144"),
        ROW("524288"),
        ROW("262144"),
        ROW("524288")};
    for (size_t i = 0; i < ARRAY_LEN(tags); i++) {
        struct points points = {0};
        struct diag diag = {0};
        struct text text = {0};
        for (int run = 0; run < 2; run++)
            for (size_t k = 0; k < ARRAY_LEN(lines); k++)
                text_printf(&text, "%s%s", tags[i], lines[k]);
        enum status status =
            nccl_tests_parse(&points, "n.txt", text.data, text.size, NULL, 0, &diag);
        CHECK_INT(tags[i], status, STATUS_OK);
        CHECK_TEXT(tags[i], diag.text, "");
        CHECK_INT(tags[i], (int64_t)points.count, 8);
        CHECK_INT("nodes", points.count > 0 ? points.row[7].nodes : 0, 2);
        text_release(&text);
        diag_release(&diag);
        points_release(&points);
    }
}

static const struct check_case cases[] = {
    {"tags of launchers are skipped", launcher_tags_of_lines_are_skipped},
    {"the recorded forms are read", recorded_nccl_tests_outputs_are_read},
    {"the table follows its latency and bandwidth", the_table_follows_its_latency_and_bandwidth},
    {"the reader says where the text is wrong", the_reader_says_where_the_text_is_wrong},
};
CHECK_MAIN("nccl_tests", cases)

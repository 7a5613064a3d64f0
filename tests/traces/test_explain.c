/* tests/traces/test_explain.c: why a measured step is slower than predicted: each cause, made on purpose, is the one
 * that is named. */
#include "base/text.h"
#include "tests/check.h"
#include "traces/csv.h"
#include "traces/explain.h"
#include "traces/kineto.h"

#include <math.h>
#include <string.h>

#define COLUMNS "rank,stream,op,kind,phase,region,layer,chunk,step,start_s,end_s,bytes,flops\n"

/* Rows of traces, here and below, have the values of COLUMNS. Each of two ranks has products,
 * attention, a message that no kernel hides, and a copy that one does. */
#define TRACE_ROWS_OF_RANK(r)                                                                      \
    r ",compute,0,matmul,forward,linear,0,-1,-1,0,4,0,0\n" r                                       \
      ",h2d,1,h2d,forward,offload,0,-1,-1,0,2,8,0\n" r                                             \
      ",compute,2,attention,forward,attention,0,-1,-1,4,10,0,0\n" r                                \
      ",comm,3,shift,forward,attention,0,-1,-1,10,12,8,0\n" r                                      \
      ",compute,4,matmul,forward,linear,0,-1,-1,12,16,0,0\n"
#define PREDICTED TRACE_ROWS_OF_RANK("0") TRACE_ROWS_OF_RANK("1")

struct fixture {
    struct trace predicted, measured;
    struct explanation explanation;
    struct diag diag;
};

static void fixture_release(struct fixture *f)
{
    explanation_release(&f->explanation);
    trace_release(&f->predicted);
    trace_release(&f->measured);
    diag_release(&f->diag);
}

static void read_rows(struct trace *trace, const char *rows)
{
    struct text text = {0};
    text_printf(&text, "%s%s", COLUMNS, rows);
    CHECK_INT("rows", trace_parse_ops(trace, "rows.csv", text.data, text.size, NULL), STATUS_OK);
    text_release(&text);
}

/* Reads both traces and explains why the measured one is slower. */
static enum status explain(struct fixture *f, const char *predicted, const char *measured)
{
    static const char *const name = "m.csv";
    *f = (struct fixture){0};
    read_rows(&f->predicted, predicted);
    read_rows(&f->measured, measured);
    const struct trace *trace = &f->measured;
    return explain_measured_against_predicted(&f->explanation, &f->predicted, &trace, &name, 1,
                                              false, &f->diag);
}

/* Checks that the causes add up to the difference, and the parts of every rank to its step. */
static void check_sums(const struct explanation *e, double predicted_s, double measured_s)
{
    double sum = 0;
    for (size_t i = 0; i < e->cause_count; i++)
        sum += e->cause[i].seconds;
    CHECK_CLOSE("predicted", e->predicted_s, predicted_s, 1e-12);
    CHECK_CLOSE("measured", e->measured_s, measured_s, 1e-12);
    CHECK_CLOSE("causes", sum, measured_s - predicted_s, 1e-12);
    for (size_t r = 0; r < e->rank_count; r++) {
        double part = 0;
        for (int k = 0; k < EXPLAIN_PART_COUNT; k++)
            part += e->times_of_ranks[r].measured_s[k];
        CHECK_CLOSE("a rank's parts", part, measured_s, 1e-12);
    }
}

/* Checks the largest cause: its name, its rank (-1: none) and its seconds. */
static void check_largest_cause(const struct explanation *e, const char *name, int64_t rank,
                                double seconds)
{
    if (!CHECK("there is a cause", e->cause_count > 0))
        return;
    CHECK_TEXT("cause", e->cause[0].name, name);
    CHECK_INT("rank", e->cause[0].rank, rank);
    CHECK_CLOSE("seconds", e->cause[0].seconds, seconds, 1e-12);
}

static void equal_traces_have_no_cause(void)
{
    struct fixture f;
    CHECK_INT("explain", explain(&f, PREDICTED, PREDICTED), STATUS_OK);
    CHECK_INT("causes", (int64_t)f.explanation.cause_count, 0);
    CHECK_INT("ranks", (int64_t)f.explanation.rank_count, 2);
    check_sums(&f.explanation, 16, 16);
    fixture_release(&f);
}

/* Kernels of rank 1 take 1.5 times as long: rank 0 waits for the message and for the end of the step. */
static void a_late_rank_is_named_by_the_rank_that_waits_least(void)
{
    struct fixture f;
    CHECK_INT("explain",
              explain(&f, PREDICTED,
                      "0,compute,0,matmul,forward,linear,0,-1,-1,0,4,0,0\n"
                      "0,h2d,1,h2d,forward,offload,0,-1,-1,0,2,8,0\n"
                      "0,compute,2,attention,forward,attention,0,-1,-1,4,10,0,0\n"
                      "0,comm,3,shift,forward,attention,0,-1,-1,10,17,8,0\n"
                      "0,compute,4,matmul,forward,linear,0,-1,-1,17,21,0,0\n"
                      "1,compute,0,matmul,forward,linear,0,-1,-1,0,6,0,0\n"
                      "1,h2d,1,h2d,forward,offload,0,-1,-1,0,2,8,0\n"
                      "1,compute,2,attention,forward,attention,0,-1,-1,6,15,0,0\n"
                      "1,comm,3,shift,forward,attention,0,-1,-1,15,17,8,0\n"
                      "1,compute,4,matmul,forward,linear,0,-1,-1,17,23,0,0\n"),
              STATUS_OK);
    check_sums(&f.explanation, 16, 23);
    check_largest_cause(&f.explanation, "late rank", 1, 7);
    CHECK_CLOSE("rank 0 waits", f.explanation.times_of_ranks[0].measured_s[EXPLAIN_WAITS], 7,
                1e-12);
    CHECK_CLOSE("its message moves", f.explanation.times_of_ranks[0].measured_s[EXPLAIN_MESSAGES],
                2, 1e-12);
    fixture_release(&f);
}

#define ROWS_WITH_SLOW_LINK(r)                                                                     \
    r ",compute,0,matmul,forward,linear,0,-1,-1,0,4,0,0\n" r                                       \
      ",h2d,1,h2d,forward,offload,0,-1,-1,0,2,8,0\n" r                                             \
      ",compute,2,attention,forward,attention,0,-1,-1,4,10,0,0\n" r                                \
      ",comm,3,shift,forward,attention,0,-1,-1,10,14,8,0\n" r                                      \
      ",compute,4,matmul,forward,linear,0,-1,-1,14,18,0,0\n"

static void a_message_that_takes_twice_as_long_is_a_slow_link(void)
{
    struct fixture f;
    CHECK_INT("explain", explain(&f, PREDICTED, ROWS_WITH_SLOW_LINK("0") ROWS_WITH_SLOW_LINK("1")),
              STATUS_OK);
    check_sums(&f.explanation, 16, 18);
    check_largest_cause(&f.explanation, "slow link", -1, 2);
    fixture_release(&f);
    CHECK_INT("the other way",
              explain(&f, ROWS_WITH_SLOW_LINK("0") ROWS_WITH_SLOW_LINK("1"), PREDICTED), STATUS_OK);
    check_largest_cause(&f.explanation, "fast link", -1, -2);
    fixture_release(&f);
}

#define ROWS_WITH_EXPOSED_COPY(r)                                                                  \
    r ",h2d,1,h2d,forward,offload,0,-1,-1,0,2,8,0\n" r                                             \
      ",compute,0,matmul,forward,linear,0,-1,-1,2,6,0,0\n" r                                       \
      ",compute,2,attention,forward,attention,0,-1,-1,6,12,0,0\n" r                                \
      ",comm,3,shift,forward,attention,0,-1,-1,12,14,8,0\n" r                                      \
      ",compute,4,matmul,forward,linear,0,-1,-1,14,18,0,0\n"

static void a_copy_kernels_wait_for_is_exposed(void)
{
    struct fixture f;
    CHECK_INT("explain",
              explain(&f, PREDICTED, ROWS_WITH_EXPOSED_COPY("0") ROWS_WITH_EXPOSED_COPY("1")),
              STATUS_OK);
    check_sums(&f.explanation, 16, 18);
    check_largest_cause(&f.explanation, "copy in the open", -1, 2);
    fixture_release(&f);
    CHECK_INT("the other way",
              explain(&f, ROWS_WITH_EXPOSED_COPY("0") ROWS_WITH_EXPOSED_COPY("1"), PREDICTED),
              STATUS_OK);
    check_largest_cause(&f.explanation, "hidden copy", -1, -2);
    fixture_release(&f);
}

/* Products and attention take 1.25 times as long, on both ranks; copies and messages do not. */
#define TRACE_ROWS_AT_LOWER_CLOCK(r)                                                               \
    r ",compute,0,matmul,forward,linear,0,-1,-1,0,5,0,0\n" r                                       \
      ",h2d,1,h2d,forward,offload,0,-1,-1,0,2,8,0\n" r                                             \
      ",compute,2,attention,forward,attention,0,-1,-1,5,12.5,0,0\n" r                              \
      ",comm,3,shift,forward,attention,0,-1,-1,12.5,14.5,8,0\n" r                                  \
      ",compute,4,matmul,forward,linear,0,-1,-1,14.5,19.5,0,0\n"

static void kernels_slower_by_one_share_are_a_clock_that_fell(void)
{
    struct fixture f;
    CHECK_INT("explain",
              explain(&f, PREDICTED, TRACE_ROWS_AT_LOWER_CLOCK("0") TRACE_ROWS_AT_LOWER_CLOCK("1")),
              STATUS_OK);
    check_sums(&f.explanation, 16, 19.5);
    check_largest_cause(&f.explanation, "clock", -1, 3.5);
    fixture_release(&f);
}

/* If kernels of only one kind are slower, that kind is named as the cause. An op that the schedule lacks (op 7 here) is
 * stray work, even if the schedule has other ops of its kind. */
static void slow_kind_and_stray_work_are_named(void)
{
    struct fixture f;
    static const char one[] = "0,compute,0,matmul,forward,linear,0,-1,-1,0,4,0,0\n"
                              "0,compute,2,attention,forward,attention,0,-1,-1,4,10,0,0\n";
    CHECK_INT("attention",
              explain(&f, one,
                      "0,compute,0,matmul,forward,linear,0,-1,-1,0,4,0,0\n"
                      "0,compute,2,attention,forward,attention,0,-1,-1,4,13,0,0\n"),
              STATUS_OK);
    check_sums(&f.explanation, 10, 13);
    check_largest_cause(&f.explanation, "attention", -1, 3);
    fixture_release(&f);
    CHECK_INT("stray",
              explain(&f, one,
                      "0,compute,0,matmul,forward,linear,0,-1,-1,0,4,0,0\n"
                      "0,compute,2,attention,forward,attention,0,-1,-1,4,10,0,0\n"
                      "0,compute,7,matmul,forward,linear,0,-1,-1,10,11,0,0\n"),
              STATUS_OK);
    check_sums(&f.explanation, 10, 11);
    check_largest_cause(&f.explanation, "stray work", -1, 1);
    fixture_release(&f);
}

static void a_rank_that_is_not_predicted_is_refused(void)
{
    struct fixture f;
    CHECK_INT("explain", explain(&f, PREDICTED, ROWS_WITH_SLOW_LINK("2")), STATUS_BAD_INPUT);
    CHECK_TEXT(
        "message", f.diag.text,
        "m.csv: error: rank 2 is not in the prediction, which has only one of all equal ranks; "
        "predict with --exact to have all ranks\n");
    fixture_release(&f);
}

/* Makes a recording of one rank with its own clock: a product, a message and a product. */
static void parse_made_up_recording_of_rank(struct trace *trace, unsigned rank, double origin_us,
                                            double first_us, double message_us)
{
    static const char product[] =
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":1,\"tid\":1,\"ts\":%.0f,"
        "\"dur\":%.0f,\"args\":{\"Input Dims\":[[64,64],[64,64]]}},";
    static const char message[] =
        "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"gloo:all_gather\",\"pid\":1,"
        "\"tid\":2,\"ts\":%.0f,\"dur\":%.0f,\"args\":{\"Input Dims\":[[1024]],"
        "\"Input type\":[\"float\"]}}";
    struct text text = {0};
    text_printf(&text, "{\"distributedInfo\":{\"rank\":%u,\"world_size\":2},\"traceEvents\":[",
                rank);
    text_printf(&text, product, origin_us, first_us);
    text_printf(&text, product, origin_us + first_us + message_us, 100.0);
    text_printf(&text, message, origin_us + first_us, message_us);
    text_puts(&text, "]}");
    CHECK_INT("recording", kineto_parse(trace, "r.json", text.data, text.size, NULL), STATUS_OK);
    text_release(&text);
}

/* Rank 1 reaches the message 60 us after rank 0; the clocks of the recordings do not show it. */
static void clocks_of_recordings_are_shifted_until_messages_end_together(void)
{
    static const char *const names[] = {"r0.json", "r1.json"};
    struct fixture f = {0};
    struct trace other = {0};
    read_rows(&f.predicted, "0,compute,0,matmul,forward,linear,0,-1,-1,0,0.0001,0,524288\n"
                            "0,comm,1,all_gather,forward,weights,0,-1,-1,0.0001,0.00014,4096,0\n"
                            "0,compute,2,matmul,forward,linear,0,-1,-1,0.00014,0.00024,0,524288\n");
    parse_made_up_recording_of_rank(&f.measured, 0, 5e6, 100, 100);
    parse_made_up_recording_of_rank(&other, 1, 7e9, 160, 40);
    const struct trace *const traces[] = {&f.measured, &other};
    CHECK_INT("explain",
              explain_measured_against_predicted(&f.explanation, &f.predicted, traces, names, 2,
                                                 true, &f.diag),
              STATUS_OK);
    const struct explanation *e = &f.explanation;
    if (CHECK("two ranks", e->rank_count == 2)) {
        CHECK_CLOSE("rank 0 waits", e->times_of_ranks[0].measured_s[EXPLAIN_WAITS], 60e-6, 1e-6);
        CHECK_CLOSE("rank 1 does not", e->times_of_ranks[1].measured_s[EXPLAIN_WAITS], 0, 1e-9);
        CHECK_INT("told", (int64_t)e->times_of_ranks[e->least_waiting_rank_index].rank, 1);
        CHECK_TEXT("cause", e->cause[0].name, "late rank");
        CHECK_CLOSE("by", e->cause[0].seconds, 60e-6, 1e-6);
    }
    trace_release(&other);
    fixture_release(&f);
}

static const struct check_case cases[] = {
    {"equal traces have no cause", equal_traces_have_no_cause},
    {"a late rank is named by the rank that waits least",
     a_late_rank_is_named_by_the_rank_that_waits_least},
    {"a message that takes twice as long is a slow link",
     a_message_that_takes_twice_as_long_is_a_slow_link},
    {"a copy that the kernels wait for is in the open", a_copy_kernels_wait_for_is_exposed},
    {"kernels slower by one share are a clock that fell",
     kernels_slower_by_one_share_are_a_clock_that_fell},
    {"one sort is named, and so is stray work", slow_kind_and_stray_work_are_named},
    {"a rank that is not predicted is refused", a_rank_that_is_not_predicted_is_refused},
    {"clocks of recordings are shifted until messages end together",
     clocks_of_recordings_are_shifted_until_messages_end_together},
};
CHECK_MAIN("explain", cases)

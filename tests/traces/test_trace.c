/* tests/traces/test_trace.c: a trace keeps its rows, labels and header while it grows. */
#include "tests/check.h"
#include "traces/trace.h"

#include <stdio.h>
#include <string.h>

static void a_label_keeps_its_id(void)
{
    struct trace trace = {0};
    uint16_t compute = trace_intern_label(&trace, "compute");
    uint16_t comm = trace_intern_label(&trace, "comm.cp");
    CHECK_INT("the empty text", trace_intern_label(&trace, ""), 0);
    CHECK("two texts, two ids", compute != comm && compute != 0);
    CHECK_INT("again", trace_intern_label(&trace, "compute"), compute);
    CHECK_TEXT("text", trace.labels[comm], "comm.cp");
    uint16_t part = 0;
    CHECK("part of a longer text", trace_find_or_add_label(&trace, "compute2", 7, &part));
    CHECK_INT("part of a longer text", part, compute);
    trace_release(&trace);
}

static void labels_fill_up_to_the_limit_and_no_further(void)
{
    struct trace trace = {0};
    char text[16];
    for (int i = 1; i < TRACE_LABEL_LIMIT; i++) {
        snprintf(text, sizeof text, "l%d", i);
        if (trace_intern_label(&trace, text) != i)
            CHECK_INT(text, trace_intern_label(&trace, text), i);
    }
    uint16_t label = 0;
    CHECK("one too many", !trace_find_or_add_label(&trace, "x", 1, &label));
    CHECK("an old one is still found", trace_find_or_add_label(&trace, "l65535", 6, &label));
    CHECK_INT("its id", label, 65535);
    trace_release(&trace);
}

static void the_header_keeps_order_and_the_last_value(void)
{
    struct trace trace = {0};
    CHECK("absent", trace_get_key(&trace, "model") == NULL);
    trace_set_key(&trace, "model", "gpt-7b");
    trace_set_key(&trace, "seed", "1");
    trace_set_key(&trace, "model", "llama3-8b");
    CHECK_INT("keys", (int64_t)trace.header_count, 2);
    CHECK_TEXT("first", trace.header_keys[0].key, "model");
    CHECK_TEXT("value", trace_get_key(&trace, "model"), "llama3-8b");
    trace_release(&trace);
}

static void rows_are_zero_and_stay_when_the_table_grows(void)
{
    struct trace trace = {0};
    for (uint32_t i = 0; i < 1000; i++) {
        size_t row = trace_add_op(&trace);
        CHECK("a new row is zero", trace.ops.end_s[row] == 0 && trace.ops.layer[row] == 0);
        trace.ops.op[row] = i;
        trace.ops.end_s[row] = i;
        trace.ops.layer[row] = -1;
        size_t change = trace_add_memory(&trace);
        trace.memory.bytes[change] = 2.0 * i;
    }
    CHECK_INT("rows", (int64_t)trace.ops.count, 1000);
    CHECK_INT("op", trace.ops.op[517], 517);
    CHECK_CLOSE("bytes", trace.memory.bytes[517], 1034, 0);
    CHECK_TEXT("text of an untouched column", trace.labels[trace.ops.kind[517]], "");
    trace_release(&trace);
    trace_release(&trace); /* the release of an empty trace does nothing */
}

static const struct check_case cases[] = {
    {"a label keeps its id", a_label_keeps_its_id},
    {"labels fill up to the limit and no further", labels_fill_up_to_the_limit_and_no_further},
    {"the header keeps order and the last value", the_header_keeps_order_and_the_last_value},
    {"rows are zero and stay when the table grows", rows_are_zero_and_stay_when_the_table_grows},
};
CHECK_MAIN("trace", cases)

/* tests/traces/test_align.c: the rows of items, also if rows of other items lie between them. */
#include "tests/check.h"
#include "traces/align.h"

struct row_case {
    const char *kind;
    enum kernel_class class;
    double bytes;
};

static void rows_of_an_item_are_its_own(void)
{
    /* The copy out of the first gather (row 3) starts after the call of the second (row 2), and a norm (row 5) after
     * that call and before its message (row 6). */
    static const struct row_case rows[] = {
        {"c10d::_allgather_base_", CLASS_COMMUNICATION, 0},
        {"ncclAllGather", CLASS_COMMUNICATION, 100},
        {"c10d::_allgather_base_", CLASS_COMMUNICATION, 0},
        {"fsdp::split_with_sizes_copy", CLASS_COMMUNICATION, 0},
        {"fsdp::all_gather_copy_in", CLASS_COMMUNICATION, 0},
        {"norm", CLASS_NORM, 0},
        {"ncclAllGather", CLASS_COMMUNICATION, 200},
        {"aten::mm", CLASS_MATMUL, 0},
        {"c10d::allreduce_", CLASS_COMMUNICATION, 0},
        {"aten::mm", CLASS_MATMUL, 0},
    };
    static const struct {
        uint32_t row_count, rows[3];
    } want[] = {{3, {0, 1, 3}}, {3, {2, 4, 6}}, {1, {7}}, {1, {9}}, {1, {8}}};
    struct trace trace = {0};
    struct align_sequence s = {0};
    for (uint32_t i = 0; i < ARRAY_LEN(rows); i++) {
        const size_t row = trace_add_op(&trace);
        trace.ops.kind[row] = trace_intern_label(&trace, rows[i].kind);
        trace.ops.bytes[row] = rows[i].bytes;
        trace.ops.start_s[row] = i;
        trace.ops.end_s[row] = i + 1;
        align_add_row(&s, &trace, i, rows[i].class);
    }
    align_find_periods(&s);
    CHECK_INT("items", (int64_t)s.item_count, ARRAY_LEN(want));
    CHECK_INT("rows", (int64_t)s.row_count, ARRAY_LEN(rows));
    for (size_t i = 0; i < s.item_count && i < ARRAY_LEN(want); i++) {
        CHECK_INT("rows of the item", s.items[i].row_count, want[i].row_count);
        CHECK_CLOSE("seconds", s.items[i].seconds, want[i].row_count, 1e-12);
        for (uint32_t k = 0; k < want[i].row_count; k++)
            CHECK_INT("row", s.rows[s.items[i].rows_begin + k], want[i].rows[k]);
    }
    align_release(&s);
    trace_release(&trace);
}

static const struct check_case cases[] = {
    {"rows of an item are its own, whatever lies between", rows_of_an_item_are_its_own},
};
CHECK_MAIN("align", cases)

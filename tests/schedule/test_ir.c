/* tests/schedule/test_ir.c: the tables of a schedule: rows, names, shapes, views and roles. */
#include "schedule/ir/ir.h"

#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct op_tags no_tags = {PHASE_FORWARD, REGION_NONE, IR_NONE16,
                                       IR_NONE16,     IR_NONE16,   IR_NONE16};

static buffer_id add_buffer(struct ir *ir, const char *stem, enum dtype dtype, int64_t rows,
                            int64_t cols)
{
    const struct buffer_desc desc = {.stem = stem,
                                     .number = IR_NONE,
                                     .dtype = (uint8_t)dtype,
                                     .category = CATEGORY_ACTIVATION,
                                     .layer = IR_NONE16,
                                     .binding = IR_NONE16,
                                     .dims = {.count = 2, .size = {rows, cols}}};
    return ir_add_buffer(ir, &desc);
}

static op_id add_op(struct ir *ir, struct work work, const struct view *read, uint8_t reads,
                    const struct view *write, uint8_t writes)
{
    const struct op_desc desc = {.work = work,
                                 .stream = ir_add_stream(ir, "compute", STREAM_COMPUTE),
                                 .read_count = reads,
                                 .write_count = writes,
                                 .guard = IR_NONE16,
                                 .tags = no_tags,
                                 .read = read,
                                 .write = write};
    return ir_add_op(ir, &desc);
}

static void an_empty_ir_is_all_zero(void)
{
    struct ir ir = {0};
    CHECK_INT("group", ir_find_by_name(&ir, IR_GROUP, "cp", 2), IR_NONE);
    CHECK_INT("buffer", ir_find_buffer(&ir, "kv0", 3).i, IR_NONE);
    ir_release(&ir);
    ir_release(&ir);
}

static void equal_group_rows_are_stored_once(void)
{
    struct ir ir = {.mesh = {2, {{"cp", 4}, {"hp", 2}}}};
    static const uint32_t odd[] = {1, 3};
    uint32_t set[] = {1, 3};
    const struct axis_coordinate_set cp = {0, 0, NULL}, some = {0, 2, odd}, same = {0, 2, set};
    CHECK_INT("group", ir_add_group(&ir, "cp", &cp, 1), 0);
    CHECK_INT("set", ir_add_group(&ir, "odd", &some, 1), 1);
    CHECK_INT("group again", ir_add_group(&ir, "cp", &cp, 1), 0);
    CHECK_INT("set again", ir_add_group(&ir, "odd", &same, 1), 1);
    set[0] = 0;
    CHECK_INT("sets are copied", ir.group[1].axis[0].coordinates[0], 1);
    CHECK_INT("found", ir_find_by_name(&ir, IR_GROUP, "odd", 3), 1);
    CHECK_INT("not a prefix", ir_find_by_name(&ir, IR_GROUP, "odd", 2), IR_NONE);

    CHECK_INT("guard", ir_add_guard(&ir, (struct guard){0, GUARD_GE, 2}), 0);
    CHECK_INT("another", ir_add_guard(&ir, (struct guard){0, GUARD_LT, 2}), 1);
    CHECK_INT("guard again", ir_add_guard(&ir, (struct guard){0, GUARD_GE, 2}), 0);

    CHECK_INT("stream", ir_add_stream(&ir, "comm.hp", STREAM_COMM), 0);
    CHECK_INT("stream again", ir_add_stream(&ir, "comm.hp", STREAM_COMM), 0);

    const struct tensor tensor = {"layers.0.wo.weight", 8, 4, {1, 0}, 0, 0};
    CHECK_INT("tensor", ir_add_tensor(&ir, tensor), 0);
    CHECK_INT("tensor again", ir_add_tensor(&ir, tensor), 0);
    const struct bundle bundle = {"layer0", 0, 1, 32, 0};
    CHECK_INT("bundle", ir_add_bundle(&ir, bundle), 0);
    CHECK_INT("bundle again", ir_add_bundle(&ir, bundle), 0);
    struct binding binding = {BINDING_GRAD, 0, 1, IR_NONE16, 3};
    CHECK_INT("binding", ir_add_binding(&ir, binding), 0);
    CHECK_INT("binding again", ir_add_binding(&ir, binding), 0);
    binding.partial_axes = 1;
    CHECK_INT("other binding", ir_add_binding(&ir, binding), 1);
    ir_release(&ir);
}

static void buffers_are_numbered_by_stem(void)
{
    struct ir ir = {0};
    char name[16];
    buffer_id kv0 = add_buffer(&ir, "kv", DTYPE_BF16, 2, 3);
    buffer_id q0 = add_buffer(&ir, "q", DTYPE_BF16, 2, 3);
    buffer_id kv1 = add_buffer(&ir, "kv", DTYPE_BF16, 2, 3);
    CHECK_INT("length", (int64_t)ir_buffer_name(&ir, kv1, name, sizeof name), 3);
    CHECK_TEXT("kv1", name, "kv1");
    ir_buffer_name(&ir, q0, name, sizeof name);
    CHECK_TEXT("q0", name, "q0");
    ir_buffer_name(&ir, kv1, name, 3);
    CHECK_TEXT("cut", name, "kv");

    CHECK_INT("found", ir_find_buffer(&ir, "kv0", 3).i, kv0.i);
    CHECK_INT("a name that is not there", ir_find_buffer(&ir, "kv2", 3).i, IR_NONE);
    buffer_id kv2 = add_buffer(&ir, "kv", DTYPE_BF16, 2, 3);
    CHECK_INT("added after the look-up", ir_find_buffer(&ir, "kv2", 3).i, kv2.i);

    const struct buffer_desc seven = {.stem = "kv",
                                      .number = 7,
                                      .layer = IR_NONE16,
                                      .binding = IR_NONE16,
                                      .dims = {.count = 1, .size = {1}}};
    ir_add_buffer(&ir, &seven);
    ir_buffer_name(&ir, add_buffer(&ir, "kv", DTYPE_BF16, 2, 3), name, sizeof name);
    CHECK_TEXT("one more than the highest", name, "kv8");
    ir_release(&ir);
}

static const struct {
    const char *name, *stem;
    uint32_t number;
} names[] = {
    {"kv0", "kv", 0},
    {"kv12", "kv", 12},
    {"kv", "kv", IR_NONE},
    {"kv01", "kv0", 1},
    {"kv00", "kv0", 0},
    {"kv0010", "kv00", 10},
    {"kv100", "kv", 100},
    {"x4294967294", "x", 4294967294},
    {"x4294967295", "x4", 294967295},
    {"x99999999999", "x99", 999999999},
    {"layers.3.w", "layers.3.w", IR_NONE},
};

static void leading_zeros_belong_to_the_stem(void)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct ir ir = {0};
        char text[32];
        const struct buffer_desc desc = {
            .layer = IR_NONE16, .binding = IR_NONE16, .dims = {.count = 1, .size = {1}}};
        buffer_id id = ir_add_named_buffer(&ir, names[i].name, strlen(names[i].name), &desc);
        CHECK_TEXT(names[i].name, ir.word[ir.buffer.stem[id.i]], names[i].stem);
        CHECK_INT(names[i].name, ir.buffer.number[id.i], names[i].number);
        ir_buffer_name(&ir, id, text, sizeof text);
        CHECK_TEXT("printed", text, names[i].name);
        CHECK_INT("found", ir_find_buffer(&ir, text, strlen(text)).i, id.i);
        ir_release(&ir);
    }
}

static void shapes_are_interned_without_leftovers(void)
{
    struct ir ir = {0};
    buffer_id x = add_buffer(&ir, "x", DTYPE_BF16, 4, 4), y = add_buffer(&ir, "y", DTYPE_F32, 4, 4);
    const struct view a = ir_whole_view(&ir, x), b = ir_whole_view(&ir, y);
    const struct view ab[2] = {b, a};
    struct work cast = {.kind = WORK_CAST, .elements = {16}};
    add_op(&ir, cast, &a, 1, &b, 1);
    cast.p[5] = 99; /* a cast has no such parameter */
    cast.in = DTYPE_U8;
    add_op(&ir, cast, &a, 1, &b, 1);
    CHECK_INT("one shape", ir.shape_count, 1);
    CHECK_INT("leftover", ir_work(&ir, 1)->p[5], 0);
    CHECK_INT("in", ir_work(&ir, 1)->in, DTYPE_BF16);
    CHECK_INT("out", ir_work(&ir, 1)->out, DTYPE_F32);
    cast.elements.count = 8;
    add_op(&ir, cast, &a, 1, &b, 1);
    add_op(&ir, (struct work){.kind = WORK_CAST, .elements = {16}}, &b, 1, &a, 1);
    CHECK_INT("other sizes and dtypes are others", ir.shape_count, 3);

    add_op(&ir, (struct work){.kind = WORK_ADD, .elements = {16}}, ab, 2, &b, 1);
    CHECK_INT("add: dtype of the second term", ir_work(&ir, 4)->in, DTYPE_BF16);
    CHECK_INT("operand counts", ir_work(&ir, 4)->reads, 2);
    add_op(&ir, (struct work){.kind = WORK_FILL, .elements = {16}}, NULL, 0, &b, 1);
    CHECK_INT("nothing read: as written", ir_work(&ir, 5)->in, DTYPE_F32);
    ir_release(&ir);
}

static void views_are_whole_buffers_or_ranges(void)
{
    struct ir ir = {0};
    buffer_id x = add_buffer(&ir, "x", DTYPE_BF16, 4, 4),
              y = add_buffer(&ir, "y", DTYPE_BF16, 4, 4);
    const struct view whole = {x, 0, 16}, half = {x, 8, 8}, out = {y, 0, 8};
    const struct work cast = {.kind = WORK_CAST, .elements = {8}};
    add_op(&ir, cast, &whole, 1, &out, 1);
    add_op(&ir, cast, &half, 1, &out, 1);
    CHECK_INT("an equal range is not stored twice", ir.range_count, 2);
    CHECK_INT("whole", (int64_t)ir_read_view(&ir, 0, 0).count, 16);
    CHECK_INT("range", (int64_t)ir_read_view(&ir, 1, 0).begin, 8);
    CHECK_INT("written", ir_write_view(&ir, 1, 0).buffer.i, y.i);
    CHECK_INT("elements", (int64_t)ir_buffer_elements(&ir, x), 16);
    CHECK_INT("bytes", (int64_t)ir_buffer_bytes(&ir, x), 32);
    ir_release(&ir);
}

static void ops_go_to_the_last_role(void)
{
    struct ir ir = {.mesh = {1, {{"pp", 2}}}};
    static const uint32_t stage[] = {0, 1};
    const struct axis_coordinate_set first = {0, 1, &stage[0]}, second = {0, 1, &stage[1]};
    const struct work fill = {.kind = WORK_FILL, .elements = {4}};
    const struct view x = ir_whole_view(&ir, add_buffer(&ir, "x", DTYPE_F32, 2, 2));
    ir_add_role(&ir, "first", &first, 1);
    add_op(&ir, fill, NULL, 0, &x, 1);
    add_op(&ir, fill, NULL, 0, &x, 1);
    ir_add_role(&ir, "second", &second, 1);
    add_op(&ir, fill, NULL, 0, &x, 1);
    CHECK_INT("begin", ir.role[1].op_begin, 2);
    CHECK_INT("count", ir.role[1].op_count, 1);
    CHECK_INT("role of op 1", ir_role_of_op(&ir, 1), 0);
    CHECK_INT("role of op 2", ir_role_of_op(&ir, 2), 1);
    ir_release(&ir);
}

static void free_sets_are_lists_of_ops(void)
{
    struct ir ir = {0};
    buffer_id x = add_buffer(&ir, "x", DTYPE_F32, 2, 2);
    const op_id ops[] = {{3}, {5}};
    ir_set_free_set(&ir, x, ops, 2);
    CHECK_INT("count", ir.buffer.free_count[x.i], 2);
    CHECK_INT("second", ir_free_set(&ir, x.i)[1].i, 5);
    ir_set_free_set(&ir, x, ops, 1);
    CHECK_INT("one", ir_free_set(&ir, x.i)->i, 3);
    ir_set_free_set(&ir, x, NULL, 0);
    CHECK_INT("none", ir.buffer.free_count[x.i], 0);
    ir_release(&ir);
}

static void some_work_kinds_block_the_host(void)
{
    struct ir ir = {.mesh = {1, {{"dp", 2}}}};
    const struct axis_coordinate_set dp = {0, 0, NULL};
    buffer_id x = add_buffer(&ir, "x", DTYPE_F32, 2, 2);
    const struct view view = ir_whole_view(&ir, x);
    uint8_t compute = ir_add_stream(&ir, "compute", STREAM_COMPUTE);
    uint8_t copy = ir_add_stream(&ir, "d2h", STREAM_D2H);
    ir_add_group(&ir, "dp", &dp, 1);
    struct op_desc desc = {.stream = compute, .guard = IR_NONE16, .tags = no_tags};
    desc.work = (struct work){.kind = WORK_HOST_SYNC};
    CHECK("host_sync", ir_blocks_host(&ir, ir_add_op(&ir, &desc).i));
    desc.work = (struct work){.kind = WORK_BARRIER};
    CHECK("barrier", ir_blocks_host(&ir, ir_add_op(&ir, &desc).i));
    desc.read = desc.write = &view;
    desc.write_count = 1;
    desc.work = (struct work){.kind = WORK_FILL, .elements = {4}};
    CHECK("fill", !ir_blocks_host(&ir, ir_add_op(&ir, &desc).i));
    desc.read_count = 1;
    desc.stream = copy;
    desc.work = (struct work){.kind = WORK_D2H, .copy = {16, 0}};
    CHECK("copy", !ir_blocks_host(&ir, ir_add_op(&ir, &desc).i));
    desc.work.copy.blocking = 1;
    CHECK("blocking copy", ir_blocks_host(&ir, ir_add_op(&ir, &desc).i));
    ir_release(&ir);
}

static void valid_ir_names_are_told_from_invalid(void)
{
    static const char *const good[] = {"a", "_x", "comm.hp", "layers.3/w-1:2", "KV0"};
    static const char *const bad[] = {"",   "0a",   ".a",  "a b",     "a=b",
                                      "a#", "a[0]", "a,b", "\xc3\xa9"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        CHECK(good[i], ir_is_valid_name(good[i], strlen(good[i])));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(bad[i], !ir_is_valid_name(bad[i], strlen(bad[i])));
    CHECK("a NUL inside", !ir_is_valid_name("a\0b", 3));
}

static void check_names(const char *const *name, int count)
{
    for (int i = 0; i < count; i++) {
        CHECK("a name is a word", name[i] != NULL && ir_is_valid_name(name[i], strlen(name[i])));
        for (int k = 0; k < i; k++)
            CHECK(name[i], strcmp(name[i], name[k]) != 0);
    }
}

static void names_of_a_table_differ(void)
{
    check_names(category_names, CATEGORY_COUNT);
    check_names(region_names, REGION_COUNT);
    check_names(binding_names, BINDING_KIND_COUNT);
    check_names(memory_names, MEMORY_COUNT);
    check_names(phase_names, PHASE_COUNT);
    check_names(layout_names, LAYOUT_KIND_COUNT);
}

static void shapes_that_are_too_large_are_refused(void)
{
    uint64_t elements = 0;
    CHECK("four sizes", dims_elements(&(struct dims){.count = 4, .size = {2, 3, 4, 5}}, &elements));
    CHECK_INT("product", (int64_t)elements, 120);
    CHECK("the most",
          dims_elements(&(struct dims){.count = 1, .size = {IR_ELEMENTS_MAX}}, &elements));
    CHECK("one more",
          !dims_elements(&(struct dims){.count = 1, .size = {IR_ELEMENTS_MAX + 1}}, &elements));
    CHECK("overflow",
          !dims_elements(&(struct dims){.count = 2, .size = {INT64_MAX, INT64_MAX}}, &elements));
    CHECK("empty", !dims_elements(&(struct dims){.count = 2, .size = {4, 0}}, &elements));
    CHECK("none", !dims_elements(&(struct dims){0}, &elements));
}

static const struct check_case cases[] = {
    {"an empty ir is all-zero", an_empty_ir_is_all_zero},
    {"equal rows are one row", equal_group_rows_are_stored_once},
    {"buffers are numbered by stem", buffers_are_numbered_by_stem},
    {"leading zeros belong to the stem", leading_zeros_belong_to_the_stem},
    {"shapes are interned without leftovers", shapes_are_interned_without_leftovers},
    {"views are whole buffers or ranges", views_are_whole_buffers_or_ranges},
    {"ops go to the last role", ops_go_to_the_last_role},
    {"free sets are lists of ops", free_sets_are_lists_of_ops},
    {"some ops hold the host", some_work_kinds_block_the_host},
    {"texts that can name something", valid_ir_names_are_told_from_invalid},
    {"names of a table differ", names_of_a_table_differ},
    {"shapes that are too large are refused", shapes_that_are_too_large_are_refused},
};
CHECK_MAIN("ir", cases)

/* tests/predict/test_axes.c: lists and ranges give the values of axes; a grid has every combination of these values,
 * the first axis changing slowest; one that is too large is refused. */
#include "predict/sweep/axes.h"

#include "base/text.h"
#include "tests/check.h"

#include <string.h>

static const struct {
    const char *label, *given, *values; /* values: joined by blanks */
    enum axis_value_type of;
} lists[] = {
    {"a list of texts", "ulysses,ring", "ulysses ring", AXIS_TYPE_TEXTS},
    {"texts that hold commas", "layers=2;layers=4,vocab=8", "layers=2 layers=4,vocab=8",
     AXIS_TYPE_TEXTS},
    {"a line keeps its commas", "a=1,b=2", "a=1,b=2", AXIS_TYPE_TEXTS_WITH_COMMAS},
    {"dots in texts are no range", "../a,../b", "../a ../b", AXIS_TYPE_TEXTS},
    {"whole numbers, one by one", "1..4", "1 2 3 4", AXIS_TYPE_WHOLE_NUMBERS},
    {"times", "8K..64K:x2", "8K 16K 32K 64K", AXIS_TYPE_TOKEN_COUNTS},
    {"plus", "64K..256K:+64K", "64K 128K 192K 256K", AXIS_TYPE_TOKEN_COUNTS},
    {"the end is a point when a step meets it", "1..6:x2", "1 2 4", AXIS_TYPE_WHOLE_NUMBERS},
    {"numbers meet their end", "0.1..0.3:+0.1", "0.1 0.2 0.30000000000000004", AXIS_TYPE_NUMBERS},
    {"the last unit is that of all", "100,200,400Gb/s", "100Gb/s 200Gb/s 400Gb/s",
     AXIS_TYPE_CLUSTER_NUMBERS},
    {"and of a range", "100..400Gb/s:x2", "100Gb/s 200Gb/s 400Gb/s", AXIS_TYPE_CLUSTER_NUMBERS},
};

static void values_are_those_of_lists_and_ranges(void)
{
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        struct grid_axes axes = {0};
        struct diag diag = {0};
        struct text values = {0};
        CHECK_INT(lists[i].label,
                  grid_axes_add_option(&axes, "key", lists[i].given, lists[i].of, &diag),
                  STATUS_OK);
        for (size_t k = 0; k < axes.axis[0].value_count; k++)
            text_printf(&values, "%s%s", k == 0 ? "" : " ", axes.axis[0].value[k]);
        CHECK_TEXT(lists[i].label, values.data, lists[i].values);
        text_release(&values);
        diag_release(&diag);
        grid_axes_release(&axes);
    }
}

static void the_first_axis_changes_slowest(void)
{
    static const char *const points[][2] = {{"a", "1"}, {"a", "2"}, {"a", "3"},
                                            {"b", "1"}, {"b", "2"}, {"b", "3"}};
    struct grid_axes axes = {0};
    struct diag diag = {0};
    CHECK_INT("empty", (long long)grid_point_count(&axes), 1);
    grid_axes_add_option(&axes, "letter", "a,b", AXIS_TYPE_TEXTS, &diag);
    grid_axes_add_option(&axes, "number", "1..3", AXIS_TYPE_WHOLE_NUMBERS, &diag);
    CHECK_INT("points", (long long)grid_point_count(&axes), 6);
    for (size_t point = 0; point < ARRAY_LEN(points); point++)
        for (size_t axis = 0; axis < 2; axis++)
            CHECK_TEXT("value", grid_value_text(&axes, point, axis), points[point][axis]);
    diag_release(&diag);
    grid_axes_release(&axes);
}

static void a_grid_that_is_too_large_is_refused(void)
{
    struct grid_axes axes = {0};
    struct diag diag = {0};
    CHECK_INT("one", grid_axes_add_option(&axes, "one", "1..10000", AXIS_TYPE_WHOLE_NUMBERS, &diag),
              STATUS_OK);
    CHECK_INT("two", grid_axes_add_option(&axes, "two", "1..1001", AXIS_TYPE_WHOLE_NUMBERS, &diag),
              STATUS_BAD_INPUT);
    CHECK_TEXT("message", diag.text, "--vary: error: the grid has more than 10000000 points\n");
    diag_release(&diag);
    grid_axes_release(&axes);
}

static const struct check_case cases[] = {
    {"values are those of lists and ranges", values_are_those_of_lists_and_ranges},
    {"the first axis changes slowest", the_first_axis_changes_slowest},
    {"a grid that is too large is refused", a_grid_that_is_too_large_is_refused},
};

CHECK_MAIN("axes", cases)

/* tests/models/test_cost_points.c: measured points take precedence over formulas. By the formula, a product
 * with m = n = k = 1000 on one multiprocessor of 1 Gflop/s takes 2 s. */
#include "tests/models/cost_fixture.h"

static const char toy[] = TOY_COST_JSON_BEGIN TOY_DEVICE_JSON("1", "\"0 s\"")
    TOY_MATMUL_JSON("\"1 GFLOP/s\"", "1", "\"0 s\"") TOY_REMAINING_JSON("\"0 B\"");

static double cube_product_s(const struct device_cost *cost)
{
    return seconds(cost, product(1000, 1000, 1000));
}

static void a_measured_shape_takes_what_was_measured(void)
{
    struct cost_fixture f;
    struct work cube = product(1000, 1000, 1000);
    struct cost_point point = {cube, 3, 0, false};
    if (!cost_fixture_parse_device(&f, toy))
        return;
    CHECK_CLOSE("without points", cube_product_s(&f.cost), 2, 1e-12);
    f.cost.points = (struct cost_points){.count = 1, .row = &point};
    CHECK_CLOSE("3 s were measured", cube_product_s(&f.cost), 3, 1e-12);
    CHECK_CLOSE("in a short run too", cost_work_burst_s(&f.cost, ATTENTION_FA2, &cube), 3, 1e-12);
    CHECK_CLOSE("one neighbour is no pattern", seconds(&f.cost, product(1000, 1000, 1001)), 2.002,
                1e-12);
    cube.in = DTYPE_F16;
    cube.out = DTYPE_F16;
    CHECK_CLOSE("f16 is as bf16", seconds(&f.cost, cube), 3, 1e-12);
    cube.out = DTYPE_F32;
    CHECK_CLOSE("a result of more bytes takes what the formula charges for it: nothing",
                seconds(&f.cost, cube), 3, 1e-12);
    /* The limit is 500 W. A product that takes 3 s, where 2 s would do if all multiprocessors were busy, draws 2/3 of
     * 6750 W. This is nine times the limit, so it takes three times as long. */
    f.cost.device_tensor_power = 6750;
    CHECK_CLOSE("the power limit takes its share of a short run", cube_product_s(&f.cost), 9,
                1e-12);
    point.is_at_step_clock = true;
    CHECK_CLOSE("steps have met the limit", cube_product_s(&f.cost), 3, 1e-12);
    cube = product(1000, 1000, 1000);
    CHECK_CLOSE("which itself has met none", cost_work_burst_s(&f.cost, ATTENTION_FA2, &cube), 3,
                1e-12);
    fixture_release(&f);
}

/* Points around the cube. Those of a row are equally far from it, so that they weigh the same. */
static const struct {
    const char *label;
    double point_times_over_formula[4];
    int sides, form; /* sides: factor of one side of the points' shape; form: of the points */
    size_t count;
    double cube_s;
} nearby[] = {
    /* label, ratio, sides, form, count, cube_s */
    {"four points at 1.5 times the formula", {1.5, 1.5, 1.5, 1.5}, 2, MATMUL_NT, 4, 3},
    {"two at 4 times, two at once: geometric mean", {4, 4, 1, 1}, 2, MATMUL_NT, 4, 4},
    {"three are no pattern", {1.5, 1.5, 1.5, 0}, 2, MATMUL_NT, 3, 2},
    {"five times as large is too far", {1.5, 1.5, 1.5, 1.5}, 5, MATMUL_NT, 4, 2},
    {"points of another form are better than none", {1.5, 1.5, 1.5, 1.5}, 2, MATMUL_TN, 4, 3},
    {"nothing is faster than the rate of large products", {.5, .5, .5, .5}, 2, MATMUL_NT, 4, 2},
};

static void shapes_near_measured_ones_are_corrected(void)
{
    for (size_t i = 0; i < ARRAY_LEN(nearby); i++) {
        struct cost_fixture f;
        struct cost_point row[4];
        int64_t s = nearby[i].sides;
        const struct work shapes[] = {product(1000 * s, 1000, 1000), product(1000, 1000 * s, 1000),
                                      product(1000, 1000, 1000 * s), product(1000 / s, 1000, 1000)};
        if (!cost_fixture_parse_device(&f, toy))
            return;
        for (size_t k = 0; k < nearby[i].count; k++) {
            row[k] = (struct cost_point){.work = shapes[k]};
            row[k].work.matmul.form = nearby[i].form;
            row[k].seconds = nearby[i].point_times_over_formula[k] * work_flops(&shapes[k]) / 1e9;
        }
        f.cost.points = (struct cost_points){.count = nearby[i].count, .row = row};
        CHECK_CLOSE(nearby[i].label, cube_product_s(&f.cost), nearby[i].cube_s, 1e-9);
        fixture_release(&f);
    }
}

/* Only the eight nearest of ten points count: eight near ones take twice the formula's time, two farther ones
 * 100 times. */
static void only_eight_nearest_points_count(void)
{
    struct cost_fixture f;
    struct cost_point row[10];
    if (!cost_fixture_parse_device(&f, toy))
        return;
    for (int i = 0; i < 10; i++) {
        bool far = i == 0 || i == 9;
        struct work work = product(1000, 1000, far ? 3000 : 1000 + 10 * i);
        row[i] = (struct cost_point){work, (far ? 100 : 2) * work_flops(&work) / 1e9, 0, false};
    }
    f.cost.points = (struct cost_points){.count = ARRAY_LEN(row), .row = row};
    CHECK_CLOSE("twice the formula", cube_product_s(&f.cost), 4, 1e-9);
    fixture_release(&f);
}

static void attention_has_points_by_implementation_and_mask(void)
{
    struct cost_fixture f;
    struct work tile = attention(WORK_ATTENTION, 1000, 1000, 4, 4, 100, MASK_CAUSAL);
    struct cost_point point = {tile, 7, ATTENTION_FA2, false};
    if (!cost_fixture_parse_device(&f, toy))
        return;
    double formula = seconds(&f.cost, tile);
    f.cost.points = (struct cost_points){.count = 1, .row = &point};
    CHECK("the formula is another time", formula > 0.1 && formula < 6);
    CHECK_CLOSE("measured", seconds(&f.cost, tile), 7, 1e-12);
    struct device_cost bare = f.cost;
    bare.points.count = 0;
    tile.attention.mask = MASK_FULL;
    CHECK_CLOSE("another mask takes what the formula charges for it", seconds(&f.cost, tile),
                7 * seconds(&bare, tile) / formula, 1e-12);
    tile = attention(WORK_ATTENTION_BACKWARD, 1000, 1000, 4, 4, 100, MASK_CAUSAL);
    CHECK("the other direction", seconds(&f.cost, tile) != 7);
    point.impl = ATTENTION_FA3;
    tile = attention(WORK_ATTENTION, 1000, 1000, 4, 4, 100, MASK_CAUSAL);
    CHECK_CLOSE("another implementation", seconds(&f.cost, tile), formula, 1e-12);
    fixture_release(&f);
}

/* Each function changes one attribute of a work. It returns false if the attribute is none of the
 * kind of work; the work is then not to be used. */
static bool toggle_matmul_accumulate(struct work *work)
{
    work->matmul.accumulate = !work->matmul.accumulate;
    return work->kind == WORK_MATMUL;
}

static bool change_matmul_form(struct work *work)
{
    work->matmul.form = (work->matmul.form + 1) % 3;
    return work->kind == WORK_MATMUL;
}

static bool change_result_dtype(struct work *work)
{
    work->out = work->out == DTYPE_F32 ? DTYPE_BF16 : DTYPE_F32;
    return true;
}

static bool set_full_mask(struct work *work)
{
    work->attention.mask = MASK_FULL;
    return work->kind != WORK_MATMUL;
}

static bool window(struct work *work)
{
    work->attention.mask = MASK_WINDOW;
    work->attention.window = work->attention.kv / 4;
    return work->kind != WORK_MATMUL;
}

static bool change_head_dim(struct work *work)
{
    work->attention.dim = 64;
    return work->kind != WORK_MATMUL;
}

static bool change_query_offset(struct work *work)
{
    work->attention.offset = work->attention.q / 2;
    return work->kind != WORK_MATMUL;
}

static bool set_kv_heads_to_query_heads(struct work *work)
{
    work->attention.kv_heads = work->attention.heads;
    return work->kind != WORK_MATMUL;
}

static const struct {
    const char *label;
    bool (*change)(struct work *work);
} attributes[] = {
    {"accumulation", toggle_matmul_accumulate},
    {"form", change_matmul_form},
    {"result", change_result_dtype},
    {"full mask", set_full_mask},
    {"window", window},
    {"head dim", change_head_dim},
    {"offset", change_query_offset},
    {"key heads", set_kv_heads_to_query_heads},
};

static bool has_measured_point_of_work(const struct device_cost *cost, const struct work *work)
{
    for (size_t i = 0; i < cost->points.count; i++)
        if (memcmp(cost->points.row[i].work.p, work->p, sizeof work->p) == 0 &&
            cost->points.row[i].work.kind == work->kind &&
            cost->points.row[i].work.out == work->out)
            return true;
    return false;
}

/* A shape that differs from a measured one in one attribute takes the measured time, times what the
 * formula charges for the attribute. That is checked for each of the 540 points of a B200, at the
 * clock of steps, and each attribute that its kind of work has, unless the changed shape was
 * measured, too. */
static void near_shapes_scale_measured_times(void)
{
    struct cost_fixture f;
    int checked = 0;
    if (!cost_fixture_load_device(&f, "b200"))
        return;
    struct device_cost bare = f.cost;
    bare.points.count = 0;
    for (size_t i = 0; i < f.cost.points.count; i++) {
        for (size_t k = 0; k < ARRAY_LEN(attributes); k++) {
            const struct cost_point *point = &f.cost.points.row[i];
            struct device_cost one = f.cost;
            struct work twin = point->work;
            if (!attributes[k].change(&twin) || has_measured_point_of_work(&f.cost, &twin))
                continue;
            const enum attention_impl impl = (enum attention_impl)point->impl;
            one.points = (struct cost_points){.count = 1, .row = &f.cost.points.row[i]};
            double charged =
                cost_work_s(&bare, impl, &twin) / cost_work_s(&bare, impl, &point->work);
            CHECK_CLOSE(attributes[k].label, cost_work_s(&one, impl, &twin),
                        charged * cost_work_s(&one, impl, &point->work), 0.03);
            /* Among all points others may be as near: the same sides in another form. */
            CHECK_CLOSE("among all points", cost_work_s(&f.cost, impl, &twin),
                        charged * cost_work_s(&f.cost, impl, &point->work), 0.3);
            checked++;
        }
    }
    CHECK("most shapes have twins", checked > 1000);
    fixture_release(&f);
}

/* ---- files ---- */

static void a_preset_has_points_that_its_base_keeps_to_itself(void)
{
    struct cost_fixture f;
    if (cost_fixture_load_device(&f, "b200")) {
        /* b200-points.csv: 4096 x 8192, k = 7168, dx: 481.7 us, at 1000 TFLOP/s */
        struct work dx = product(4096, 8192, 7168);
        dx.matmul.form = MATMUL_NN;
        double dx_s = cost_work_burst_s(&f.cost, ATTENTION_FA2, &dx);
        CHECK_CLOSE("as measured", dx_s, 481.7e-6, 1e-3);
        struct work fast = product(4096, 10240, 8192); /* at 1452 TFLOP/s */
        double fast_s = cost_work_burst_s(&f.cost, ATTENTION_FA2, &fast);
        CHECK_CLOSE("a step is slower", seconds(&f.cost, dx) / dx_s, 1.119, 0.002);
        CHECK_CLOSE("and by more where the short run is faster, sqrt(1.45)",
                    seconds(&f.cost, fast) / fast_s / (seconds(&f.cost, dx) / dx_s), 1.204, 0.01);
        CHECK("and points come with their source", f.cost.points.source != NULL);
    }
    fixture_release(&f);
    if (cost_fixture_load_device(&f, "gb200"))
        CHECK_INT("a device with rates of its own has none", (int64_t)f.cost.points.count, 0);
    fixture_release(&f);
}

static const struct {
    const char *label, *points, *message;
} wrong[] = {
    {"no object", "3", "points: expected {\"file\": \"....csv\", \"source\": \"...\"}"},
    {"no source", "{\"file\": \"a.csv\"}", "source"},
    {"no file there", "{\"file\": \"no-such.csv\", \"source\": \"x\"}",
     "no-such.csv: error: cannot"},
};

static void wrong_points_are_refused(void)
{
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct cost_fixture f = {0};
        struct text text = {0};
        text_printf(&text, "%s \"points\": %s, %s", TOY_COST_JSON_BEGIN, wrong[i].points,
                    toy + sizeof TOY_COST_JSON_BEGIN - 1);
        enum status status =
            cost_parse(&f.cost, &f.arena, "here/toy.json", text.data, text.size, &f.diag);
        CHECK(wrong[i].label, status != STATUS_OK);
        if (!CHECK(wrong[i].label, f.diag.text && strstr(f.diag.text, wrong[i].message)))
            CHECK_TEXT(wrong[i].label, f.diag.text ? f.diag.text : "", wrong[i].message);
        text_release(&text);
        fixture_release(&f);
    }
}

static const struct check_case cases[] = {
    {"a measured shape takes what was measured", a_measured_shape_takes_what_was_measured},
    {"shapes near measured ones are corrected", shapes_near_measured_ones_are_corrected},
    {"the eight nearest count", only_eight_nearest_points_count},
    {"attention has points by implementation and mask",
     attention_has_points_by_implementation_and_mask},
    {"a twin takes what the formula charges", near_shapes_scale_measured_times},
    {"a preset has points that its base keeps to itself",
     a_preset_has_points_that_its_base_keeps_to_itself},
    {"wrong points are refused", wrong_points_are_refused},
};

CHECK_MAIN("cost_points", cases)

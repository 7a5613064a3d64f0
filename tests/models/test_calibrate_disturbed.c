/* tests/models/test_calibrate_disturbed.c: calibration says when other programs disturbed the points. With the option
 * falls_back_if_disturbed it fits their fastest runs instead, or leaves the numbers of the base device. */
#include "tests/models/calibrate_fixture.h"

#include <string.h>

/* Adds points of products and adds that other programs disturbed. A third of the medians are five times the op's time.
 * The 10th percentile is the op's time, but ten times that for every second add. The 90th percentile is
 * `spread` times the 10th. */
static void add_disturbed_points(struct calibrate_fixture *f, double spread)
{
    for (int i = 0; i < 30; i++) {
        int64_t m = 256 << (i % 6), k = 256 << (i * 5 % 7);
        struct work products = {.kind = WORK_MATMUL, .matmul = {m, 2 * m, k, 0, 0, 0}};
        struct work adds = {.kind = WORK_ADD, .elements = {1000 << (i % 12)}};
        fixture_add_point_of_truth(f, POINT_NO_IMPL, products);
        fixture_add_point_of_truth(f, POINT_NO_IMPL, adds);
    }
    for (size_t i = 0; i < f->points.count; i++) {
        struct point *point = &f->points.row[i];
        bool add = point->work.kind == WORK_ADD;
        point->median_s *= i / 2 % 3 == 0 ? 5 : 1;
        point->p10_s *= add && i / 2 % 2 == 0 ? 10 : 1;
        point->p90_s = spread * point->p10_s;
    }
}

static void disturbed_fits_are_reported(void)
{
    static const struct {
        const char *label;
        double spread;
        bool go_on;
        enum status status;
        const char *word; /* a word of the message; NULL: there is no message */
        bool disturbed;   /* both families count as refused due to disturbed points */
    } rows[] = {
        /* label, spread, go_on, status, word, disturbed */
        {"others ran", 4, false, STATUS_NO, "other programs disturbed these points", false},
        {"nobody did", 1.1, false, STATUS_NO, "add products", false},
        {"nobody did, and it is to go on", 1.1, true, STATUS_NO, "add products", false},
        {"others ran, and it goes on", 4, true, STATUS_OK, NULL, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct calibrate_fixture f;
        fixture_init(&f, "a100-80g", 0);
        add_disturbed_points(&f, rows[i].spread);
        struct calibrate_options options = {.falls_back_if_disturbed = rows[i].go_on};
        CHECK_INT(rows[i].label, calibrate_device(&f.result, &f.points, &f.base, &options, &f.diag),
                  rows[i].status);
        CHECK(rows[i].label, rows[i].word ? f.diag.text && strstr(f.diag.text, rows[i].word)
                                          : f.diag.text == NULL);
        CHECK_INT(rows[i].label, (int64_t)f.result.fallback_count, 2);
        for (size_t k = 0; k < f.result.fallback_count; k++)
            CHECK_INT(rows[i].label, f.result.fallback[k].is_due_to_disturbed_points,
                      rows[i].disturbed);
        fixture_release(&f);
    }
}

/* Points of one size cannot separate latency from rate, even on a quiet machine. So the message must ask for other
 * sizes and must not blame other programs, although the 90th percentiles here are four times as long. */
static void missing_sizes_are_not_called_noise(void)
{
    for (int go_on = 0; go_on < 2; go_on++) {
        struct calibrate_fixture f;
        fixture_init(&f, "a100-80g", 0);
        for (int i = 0; i < 8; i++) {
            struct work adds = {.kind = WORK_ADD, .elements = {100000}};
            fixture_add_point_of_truth(&f, POINT_NO_IMPL, adds);
            f.points.row[f.points.count - 1].p90_s *= 4;
        }
        struct calibrate_options options = {.falls_back_if_disturbed = go_on == 1};
        CHECK_INT("refused", calibrate_device(&f.result, &f.points, &f.base, &options, &f.diag),
                  STATUS_NO);
        CHECK("which points would help", f.diag.text && strstr(f.diag.text, "bytes"));
        CHECK("not others", f.diag.text && !strstr(f.diag.text, "other programs"));
        CHECK_INT("it fell", (int64_t)f.result.fallback_count, 1);
        CHECK("and not for others", !f.result.fallback[0].is_due_to_disturbed_points);
        fixture_release(&f);
    }
}

static void jitter_is_not_fitted_to_disturbance(void)
{
    static const struct {
        const char *label;
        double spread;
        bool kept;
    } rows[] = {{"quiet", 1.2, false}, {"disturbed", 4, true}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct calibrate_fixture f;
        fixture_init(&f, "a100-80g", 0);
        for (int k = 0; k < 12; k++) {
            struct work adds = {.kind = WORK_ADD, .elements = {1000 << k}};
            fixture_add_point_of_truth(&f, POINT_NO_IMPL, adds);
            struct point *point = &f.points.row[f.points.count - 1];
            point->repeats = 20;
            point->p90_s = rows[i].spread * point->p10_s;
        }
        struct calibrate_options options = {0};
        CHECK_INT(rows[i].label, calibrate_device(&f.result, &f.points, &f.base, &options, &f.diag),
                  STATUS_OK);
        CHECK_INT(rows[i].label, f.result.cost.device_jitter == f.base.device_jitter, rows[i].kept);
        fixture_release(&f);
    }
}

static void disturbed_fits_use_p10_or_the_base(void)
{
    struct calibrate_fixture f;
    struct text out = {0};
    fixture_init(&f, "a100-80g", 0);
    f.truth.matmul_flop_per_s *= 0.7;
    add_disturbed_points(&f, 4);
    struct calibrate_options options = {.falls_back_if_disturbed = true};
    CHECK_INT("goes on", calibrate_device(&f.result, &f.points, &f.base, &options, &f.diag),
              STATUS_OK);
    CHECK_CLOSE("products by their p10", f.result.cost.matmul_flop_per_s, f.truth.matmul_flop_per_s,
                1e-3);
    CHECK_CLOSE("adds as the base has them", f.result.cost.memory_stream_fraction,
                f.base.memory_stream_fraction, 0);
    CHECK_CLOSE("no jitter of others", f.result.cost.device_jitter, f.base.device_jitter, 0);
    calibration_print_noise(&f.result, "a100-80g", &out);
    CHECK_TEXT(
        "said", out.data,
        "spread     the middle point's p90 is 4.00 times its p10: other programs took the "
        "processors meanwhile (1.2 to 1.3 is usual)\n"
        "fastest    fitted to the p10 of disturbed points: matmul\n"
        "refused    of disturbed points, and left as a100-80g has them: memory\n"
        "unmeasured and left as a100-80g has them: device.kernel_start_s, attention, host, cpu\n");
    text_release(&out);
    fixture_release(&f);
}

static const struct check_case cases[] = {
    {"fits that others disturb are said to be", disturbed_fits_are_reported},
    {"what more points would mend is not put down to others", missing_sizes_are_not_called_noise},
    {"jitter is not taken from what others disturbed", jitter_is_not_fitted_to_disturbance},
    {"what disturbed points refuse falls to p10 or to the base",
     disturbed_fits_use_p10_or_the_base},
};
CHECK_MAIN("calibrate_disturbed", cases)

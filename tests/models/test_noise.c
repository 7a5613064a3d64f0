/* tests/models/test_noise.c: recognizes points that other programs disturbed. */
#include "models/noise.h"

#include "tests/check.h"

/* Adds n points whose p90 is `spread` times their p10. */
static void add_points(struct points *points, size_t n, double spread, int64_t repeats)
{
    for (size_t i = 0; i < n; i++) {
        const struct point point = {.role = POINT_WORK,
                                    .attention_impl = POINT_NO_IMPL,
                                    .work = {.kind = WORK_ADD, .elements = {1000}},
                                    .median_s = 2e-3,
                                    .p10_s = 1e-3,
                                    .p90_s = 1e-3 * spread,
                                    .repeats = repeats};
        points_add(points, &point);
    }
}

static void noise_is_that_of_the_median_point(void)
{
    static const struct {
        const char *label;
        size_t first, second; /* numbers of points with either spread */
        double spread, other;
        int64_t repeats;
        double want;
    } rows[] = {
        /* label, first, second, spread, other, repeats, want */
        {"no points", 0, 0, 0, 0, 10, 0},
        {"one", 1, 0, 1.2, 0, 10, 1.2},
        {"a few far ones do not move it", 9, 4, 1.1, 30, 10, 1.1},
        {"most do", 4, 9, 1.1, 3, 10, 3},
        {"repeated too seldom to say", 9, 0, 7, 0, 4, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct points points = {0};
        add_points(&points, rows[i].first, rows[i].spread, rows[i].repeats);
        add_points(&points, rows[i].second, rows[i].other, rows[i].repeats);
        CHECK_CLOSE(rows[i].label, noise_median_p90_over_p10_of_all(&points), rows[i].want, 1e-12);
        points_release(&points);
    }
}

static void unrepeated_points_say_no_noise(void)
{
    struct points points = {0};
    add_points(&points, 9, 8, 1);
    add_points(&points, 2, 1.3, 20);
    CHECK_CLOSE("the two others", noise_median_p90_over_p10_of_all(&points), 1.3, 1e-12);
    points_release(&points);
}

static void wide_spread_is_blamed_on_others(void)
{
    static const struct {
        const char *label;
        double all, own;
        bool want;
    } rows[] = {
        {"idle", 1.24, 1.27, false},
        {"idle, short times of one family", 1.24, 1.6, false},
        {"all are disturbed, these not", 1.9, 1.24, true},
        {"just not", 1.49, 1.99, false},
        {"all, at the limit", 1.5, 1, true},
        {"these alone", 1.2, 2, true},
        {"unknown", 0, 0, false},
        {"these unknown", 2.4, 0, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK_INT(rows[i].label, noise_shows_disturbance(rows[i].all, rows[i].own), rows[i].want);
}

static const struct check_case cases[] = {
    {"the middle point says how far they spread", noise_is_that_of_the_median_point},
    {"points repeated once do not count", unrepeated_points_say_no_noise},
    {"far spread is others' doing", wide_spread_is_blamed_on_others},
};
CHECK_MAIN("noise", cases)

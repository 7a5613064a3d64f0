/* tests/fuzz/fuzz_points.c: whatever the text, either points are read, which print and read back to the same bytes, or
 * there is exactly one message. A text of at most 256 points is also used to calibrate: every fit ends, with numbers or
 * a refusal. */
#include "models/calibrate.h"
#include "models/calibrate_links.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <string.h>

static void check_round_trip(const struct points *points)
{
    struct points again = {0};
    struct text first = {0}, second = {0};
    points_print(points, &first);
    enum status status = points_parse(&again, "again.csv", first.data, first.size, NULL);
    assert(status == STATUS_OK);
    points_print(&again, &second);
    assert(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
    text_release(&first);
    text_release(&second);
    points_release(&again);
}

static void check_fits(const struct points *points)
{
    struct arena arena = {0};
    struct diag diag = {0};
    struct device_cost base;
    struct calibration device = {0};
    struct link_calibration links = {0};
    struct calibrate_options options = {.rms_error_limit = 10};
    enum status status = cost_load(&base, &arena, "cpu-generic", &diag);
    assert(status == STATUS_OK);
    status = calibrate_device(&device, points, &base, &options, &diag);
    assert((diag.error_count > 0) == (status != STATUS_OK));
    if (status == STATUS_OK || status == STATUS_NO) { /* a refused number keeps the base's value */
        struct text out = {0};
        struct device_cost again;
        calibration_print_device(&device, "fuzz", "cpu-generic", NULL, &out);
        calibration_print_report(&device, &out);
        size_t end = (size_t)(strstr(out.data, "\n}\n") - out.data) + 3;
        status = cost_parse(&again, &arena, "fuzz.json", out.data, end, NULL);
        assert(status == STATUS_OK);
        text_release(&out);
    }
    calibrate_links(&links, points, &options, NULL);
    link_calibration_release(&links);
    calibration_release(&device);
    diag_release(&diag);
    arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct points points = {0};
    struct diag diag = {0};
    enum status status = points_parse(&points, "fuzz.csv", (const char *)data, size, &diag);
    assert(diag.error_count == (status != STATUS_OK));
    check_round_trip(&points);
    if (points.count <= 256)
        check_fits(&points);
    diag_release(&diag);
    points_release(&points);
    return 0;
}

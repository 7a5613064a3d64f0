/* tests/models/test_calibrate_links.c: calibration of links finds the latencies and bandwidths from which
 * points were made; the cluster that it prints reads back. */
#include "models/calibrate_links.h"

#include "tests/models/calibrate_fixture.h"

#include <string.h>

/* Returns a DGX A100 with the calibrated links, printed and read back. */
static struct cluster calibrated_cluster_read_back(struct calibrate_fixture *f,
                                                   const struct link_calibration *links)
{
    struct cluster cluster, again;
    struct text out = {0};
    CHECK_INT("cluster", cluster_load(&cluster, &f->arena, "dgx-a100", &f->diag), STATUS_OK);
    CHECK_INT(
        "printed",
        link_calibration_print_cluster(links, "ours", NULL, "dgx-a100", &cluster, &out, &f->diag),
        STATUS_OK);
    CHECK_INT("read back",
              cluster_parse(&again, &f->arena, "ours.json", out.data, out.size, &f->diag),
              STATUS_OK);
    CHECK_TEXT("no message", f->diag.text ? f->diag.text : "", "");
    text_release(&out);
    return again;
}

static void latency_and_bandwidth_of_links_come_back(void)
{
    struct calibrate_fixture f;
    fixture_init(&f, "a100-80g", 0.02);
    const double latency_s = 4e-6, bytes_per_s = 200e9;
    for (int64_t bytes = 1 << 16; bytes <= 1 << 28; bytes *= 4) {
        double n = 8, b = (double)bytes;
        const struct {
            enum work_kind kind;
            double steps, bytes;
        } rows[] = {
            {WORK_ALL_REDUCE, 14, 2 * 7 / n * b},
            {WORK_ALL_GATHER, 7, 7 * b},
            {WORK_REDUCE_SCATTER, 7, 7 / n * b},
            {WORK_REDUCE, 7, b},
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
            fixture_add_point(&f, POINT_WORK, POINT_NO_IMPL,
                              (struct work){.kind = (uint8_t)rows[i].kind, .p = {8, bytes}},
                              rows[i].steps * latency_s + rows[i].bytes / bytes_per_s);
    }
    struct link_calibration links = {0};
    struct calibrate_options options = {0};
    CHECK_INT("fitted", calibrate_links(&links, &f.points, &options, &f.diag), STATUS_OK);
    CHECK_INT("points", (int64_t)links.link_by_class[CALIBRATE_RING].point_count,
              (int64_t)f.points.count);
    CHECK_CLOSE("latency", links.link_by_class[CALIBRATE_RING].latency_s, latency_s, 0.05);
    CHECK_CLOSE("bandwidth", links.link_by_class[CALIBRATE_RING].bytes_per_s, bytes_per_s, 0.03);

    struct cluster again = calibrated_cluster_read_back(&f, &links);
    CHECK_CLOSE("ring bandwidth", again.fabric.bytes_per_s * again.fabric.ring_efficiency,
                links.link_by_class[CALIBRATE_RING].bytes_per_s, 1e-5);
    CHECK_CLOSE("latency", again.fabric.latency_s, links.link_by_class[CALIBRATE_RING].latency_s,
                1e-5);
    link_calibration_release(&links);
    fixture_release(&f);
}

/* Three of the kinds of links that one GPU can measure are fitted: between ranks that share it, to and from the host
 * at once, and from and to pageable memory. */
static void links_of_one_gpu_come_back(void)
{
    struct calibrate_fixture f;
    fixture_init(&f, "a100-80g", 0.02);
    static const enum work_kind kinds[] = {WORK_ALL_GATHER, WORK_ALL_TO_ALL, WORK_SHIFT};
    for (int64_t bytes = 1 << 16; bytes <= 1 << 28; bytes *= 4) {
        double b = (double)bytes;
        /* between 2 ranks: gather and all-to-all start 2 copies, a shift one; bytes moved are 4 b, 2 b, 2 b */
        const double starts[] = {2, 2, 1}, moved[] = {4 * b, 2 * b, 2 * b};
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
            struct work work = {.kind = (uint8_t)kinds[i], .p = {2, bytes}};
            if (kinds[i] == WORK_SHIFT)
                work = (struct work){.kind = WORK_SHIFT, .p2p = {2, 1, bytes, 0}};
            fixture_add_point(&f, POINT_WORK, POINT_NO_IMPL, work,
                              starts[i] * 5e-6 + moved[i] / 1e12);
            f.points.row[f.points.count - 1].loopback = true;
        }
        for (int out = 0; out < 2; out++) {
            struct work work = {.kind = out ? WORK_D2H : WORK_H2D, .copy = {bytes, 0}};
            fixture_add_point(&f, POINT_BOTH_WAYS, POINT_NO_IMPL, work, 5e-6 + 2 * b / 40e9);
            fixture_add_point(&f, POINT_PAGEABLE, POINT_NO_IMPL, work,
                              5e-6 + b / (out ? 3e9 : 6e9));
        }
    }
    struct link_calibration links = {0};
    struct calibrate_options options = {0};
    CHECK_INT("fitted", calibrate_links(&links, &f.points, &options, &f.diag), STATUS_OK);
    struct cluster again = calibrated_cluster_read_back(&f, &links);
    CHECK_CLOSE("loopback", again.loopback.bytes_per_s, 1e12, 0.05);
    CHECK_CLOSE("its latency", again.loopback.latency_s, 5e-6, 0.1);
    CHECK_CLOSE("both ways", again.pcie.both_ways_total_bytes_per_s, 40e9, 0.05);
    CHECK_CLOSE("to pageable", again.host.d2h_to_pageable_bytes_per_s, 3e9, 0.05);
    CHECK_CLOSE("from pageable", again.host.h2d_from_pageable_bytes_per_s, 6e9, 0.05);
    CHECK("measured", cluster_fact_is_measured(cluster_find_fact(&again, "loopback.bandwidth")));
    CHECK("not measured", !cluster_fact_is_measured(cluster_find_fact(&again, "pcie.h2d")));
    link_calibration_release(&links);
    fixture_release(&f);
}

/* Copies to a device are undisturbed at their fastest; the times of copies from it do not depend on
 * their sizes as those of a link do. */
static void disturbed_link_fits_use_p10_or_base(void)
{
    for (int go_on = 0; go_on < 2; go_on++) {
        struct calibrate_fixture f;
        struct link_calibration links = {0};
        struct text out = {0};
        fixture_init(&f, "a100-80g", 0);
        for (int i = 0; i < 8; i++) {
            struct work to = {.kind = WORK_H2D, .copy = {.bytes = (int64_t)1 << (16 + i)}};
            struct work from = {.kind = WORK_D2H, .copy = {.bytes = (int64_t)1 << (16 + i)}};
            fixture_add_point(&f, POINT_WORK, POINT_NO_IMPL, to,
                              10e-6 + 1e-10 * (double)to.copy.bytes);
            fixture_add_point(&f, POINT_WORK, POINT_NO_IMPL, from, i % 2 == 0 ? 1e-3 : 1e-5);
        }
        for (size_t i = 0; i < f.points.count; i++) {
            f.points.row[i].median_s *= i / 2 % 3 == 0 ? 5 : 1;
            f.points.row[i].p90_s *= 6;
        }
        struct calibrate_options options = {.falls_back_if_disturbed = go_on == 1};
        CHECK_INT("fitted", calibrate_links(&links, &f.points, &options, &f.diag),
                  go_on ? STATUS_OK : STATUS_NO);
        CHECK_INT("messages", (int64_t)f.diag.error_count, go_on ? 0 : 2);
        CHECK("what it is", go_on || strstr(f.diag.text, "other programs disturbed these points"));
        CHECK_INT("fallen", (int64_t)links.fallback_count, 2);
        CHECK_INT("because of others", links.fallback[0].is_due_to_disturbed_points, go_on);
        if (go_on) {
            CHECK_CLOSE("bandwidth by p10", links.link_by_class[CALIBRATE_H2D].bytes_per_s, 1e10,
                        1e-3);
            CHECK_INT("none of the other", (int64_t)links.link_by_class[CALIBRATE_D2H].point_count,
                      0);
            link_calibration_print_report(&links, &out);
            CHECK("said", out.data && strstr(out.data, "cluster has them: d2h\n"));
        }
        text_release(&out);
        link_calibration_release(&links);
        fixture_release(&f);
    }
}

static void links_of_one_size_are_refused(void)
{
    struct calibrate_fixture f;
    fixture_init(&f, "a100-80g", 0);
    for (int i = 0; i < 3; i++) {
        struct work work = {.kind = WORK_H2D, .copy = {1 << 20, 0}};
        fixture_add_point(&f, POINT_WORK, POINT_NO_IMPL, work, 1e-4);
    }
    struct link_calibration links = {0};
    struct calibrate_options options = {0};
    CHECK_INT("refused", calibrate_links(&links, &f.points, &options, &f.diag), STATUS_NO);
    CHECK_TEXT(
        "message", f.diag.text,
        "error: h2d: all points move the same number of bytes; latency and bandwidth need small "
        "messages (64 KB) and large ones (16 MB)\n");
    link_calibration_release(&links);
    fixture_release(&f);
}

static void one_size_is_not_blamed_on_noise(void)
{
    struct calibrate_fixture f;
    fixture_init(&f, "a100-80g", 0);
    for (int i = 0; i < 3; i++) {
        struct work work = {.kind = WORK_H2D, .copy = {1 << 20, 0}};
        fixture_add_point(&f, POINT_WORK, POINT_NO_IMPL, work, 1e-4);
        f.points.row[i].p90_s *= 6;
    }
    struct link_calibration links = {0};
    struct calibrate_options options = {.falls_back_if_disturbed = true};
    CHECK_INT("refused", calibrate_links(&links, &f.points, &options, &f.diag), STATUS_NO);
    CHECK("why", f.diag.text && strstr(f.diag.text, "all points move the same number of bytes"));
    CHECK_INT("it fell", (int64_t)links.fallback_count, 1);
    CHECK("and not for others", !links.fallback[0].is_due_to_disturbed_points);
    link_calibration_release(&links);
    fixture_release(&f);
}

static const struct check_case cases[] = {
    {"latency and bandwidth of links come back", latency_and_bandwidth_of_links_come_back},
    {"links of one GPU come back", links_of_one_gpu_come_back},
    {"links that others disturb fall as fits do", disturbed_link_fits_use_p10_or_base},
    {"links of one size are refused", links_of_one_size_are_refused},
    {"one size is not put down to others", one_size_is_not_blamed_on_noise},
};
CHECK_MAIN("calibrate_links", cases)

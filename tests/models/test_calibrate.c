/* tests/models/test_calibrate.c: calibration finds the numbers from which points were made, refuses numbers
 * that points do not determine, and writes a file that reads as any device file. */
#include "tests/models/calibrate_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_attention(struct calibrate_fixture *f)
{
    for (int64_t q = 1024; q <= 16384; q *= 2)
        for (int dim = 64; dim <= 128; dim *= 2)
            for (int causal = 0; causal < 2; causal++)
                for (int backward = 0; backward < 2; backward++) {
                    struct work work = {
                        .kind = backward ? WORK_ATTENTION_BACKWARD : WORK_ATTENTION,
                        .attention = {q, q, 8, 2, dim, causal ? MASK_CAUSAL : MASK_FULL, 0, 0}};
                    fixture_add_point_of_truth(f, ATTENTION_FA2, work);
                }
}

/* Adds points of the host: the times to issue ops of each class, to update parameters with AdamW,
 * and until a kernel starts. */
static void add_host_points(struct calibrate_fixture *f)
{
    static const enum work_kind kinds[] = {
        WORK_MATMUL,     WORK_ADD, WORK_MERGE,    WORK_RMSNORM_BACKWARD, WORK_ATTENTION_BACKWARD,
        WORK_ALL_REDUCE, WORK_H2D, WORK_HOST_SYNC};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        for (int k = 0; k < 3; k++) {
            struct work work = {.kind = (uint8_t)kinds[i], .p = {1, 64, 1, 1, 1, 0, 0, 0}};
            fixture_add_point(f, POINT_ISSUE, POINT_NO_IMPL, work,
                              cost_host_issue_s(&f->truth, &work));
        }
    for (int64_t count = 1 << 10; count <= 1 << 24; count *= 4) {
        struct work work = {.kind = WORK_ADAMW, .elements = {count}};
        fixture_add_point(f, POINT_HOST, POINT_NO_IMPL, work,
                          cost_host_work_s(&f->truth, 100e9, &work));
    }
    struct work fill = {.kind = WORK_FILL, .elements = {1}};
    for (int k = 0; k < 5; k++)
        fixture_add_point(f, POINT_START, POINT_NO_IMPL, fill, f->truth.device_kernel_start_s);
}

/* Changes the costs to those of another A100 than the preset's. */
static void set_true_device_costs(struct device_cost *truth)
{
    truth->device_kernel_start_s = 5e-6;
    truth->matmul_flop_per_s *= 0.8;
    truth->matmul_ramp_s = 3e-6;
    truth->matmul_memory_fraction = 0.7;
    truth->memory_stream_fraction = 0.75;
    truth->memory_reduce_fraction = 0.6;
    truth->memory_permute_fraction = 0.4;
    truth->memory_gather_fraction = 0.5;
    truth->memory_scatter_fraction = 0.2;
    truth->memory_ramp_bytes = 3e6;
    truth->host_op_s = 9e-6;
    truth->host_kernel_s = 3e-6;
    truth->host_collective_s = 20e-6;
    truth->host_copy_s = 5e-6;
    truth->host_sync_s = 11e-6;
    truth->cpu_stream_fraction = 0.5;
    truth->cpu_start_s = 80e-6;
    for (int pass = 0; pass < ATTENTION_PASS_COUNT; pass++) {
        struct cost_attention *attention = &truth->attention[ATTENTION_FA2][pass];
        attention->ramp_s *= 1.5;
        for (size_t i = 0; i < attention->dim_count; i++)
            attention->flop_per_s[i] *= 0.7;
    }
}

/* A number of a fixture f: its name, its true value, its fitted value. */
#define ROW(family, field)                                                                         \
    {                                                                                              \
#family "." #field, f.truth.family##_##field, f.result.cost.family##_##field               \
    }

static double cost_fact_value(const struct device_cost *cost, const char *name)
{
    for (size_t i = 0; i < cost->facts.count; i++)
        if (strcmp(cost->facts.row[i].name, name) == 0)
            return cost->facts.row[i].value;
    return -1;
}

static void fit_recovers_the_true_costs(void)
{
    static const double noises[] = {0, 0.01, 0.03};
    for (size_t n = 0; n < ARRAY_LEN(noises); n++) {
        struct calibrate_fixture f;
        fixture_init(&f, "a100-80g", noises[n]);
        set_true_device_costs(&f.truth);
        fixture_add_products(&f);
        fixture_add_memory_bound(&f);
        add_attention(&f);
        add_host_points(&f);
        struct calibrate_options options = {.host_memory_bytes_per_s = 100e9};
        enum status status = calibrate_device(&f.result, &f.points, &f.base, &options, &f.diag);
        CHECK_TEXT("no message", f.diag.text ? f.diag.text : "", "");
        if (!CHECK_INT("fitted", status, STATUS_OK)) {
            fixture_release(&f);
            continue;
        }
        const struct {
            const char *name;
            double want, got;
        } rows[] = {
            ROW(device, kernel_start_s),
            ROW(matmul, flop_per_s),
            ROW(matmul, ramp_s),
            ROW(matmul, memory_fraction),
            ROW(memory, stream_fraction),
            ROW(memory, reduce_fraction),
            ROW(memory, permute_fraction),
            ROW(memory, gather_fraction),
            ROW(memory, scatter_fraction),
            ROW(memory, ramp_bytes),
            ROW(host, op_s),
            ROW(host, kernel_s),
            ROW(host, collective_s),
            ROW(host, copy_s),
            ROW(host, sync_s),
            ROW(cpu, stream_fraction),
            ROW(cpu, start_s),
        };
        /* The tolerance is four standard errors, and twice the noise for errors of the numbers that
         * were fitted before. */
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            double error = 0;
            for (size_t k = 0; k < f.result.number_count; k++)
                if (strcmp(f.result.number[k].name, rows[i].name) == 0)
                    error = f.result.number[k].standard_error;
            CHECK_CLOSE(rows[i].name, rows[i].got, rows[i].want,
                        1e-4 + 2 * noises[n] + 4 * error / rows[i].want);
        }
        for (int pass = 0; pass < ATTENTION_PASS_COUNT; pass++)
            for (size_t d = 0; d < f.base.attention[ATTENTION_FA2][pass].dim_count; d++)
                CHECK_CLOSE("attention", f.result.cost.attention[ATTENTION_FA2][pass].flop_per_s[d],
                            f.truth.attention[ATTENTION_FA2][pass].flop_per_s[d],
                            1e-4 + 3 * noises[n]);
        for (size_t i = 0; i < f.result.family_count; i++) {
            const struct calibrate_family *family = &f.result.family[i];
            CHECK(family->name, family->rms_error <= 1e-4 + 1.5 * noises[n]);
            CHECK(family->name, family->leave_one_out_error <= 1e-4 + 2 * noises[n]);
        }
        fixture_release(&f);
    }
}

static void the_file_is_read_back(void)
{
    struct calibrate_fixture f;
    fixture_init(&f, "a100-80g", 0.01);
    set_true_device_costs(&f.truth);
    f.truth.kind_bandwidth_share[WORK_FILL] = 0.1; /* much slower than its class of kinds */
    fixture_add_products(&f);
    fixture_add_memory_bound(&f);
    add_attention(&f);
    add_host_points(&f);
    struct calibrate_options options = {.host_memory_bytes_per_s = 100e9};
    CHECK_INT("fitted", calibrate_device(&f.result, &f.points, &f.base, &options, &f.diag),
              STATUS_OK);
    struct text out = {0};
    calibration_print_device(&f.result, "a \"second\" a100", "a100-80g", "of a test", &out);
    struct device_cost again;
    enum status status = cost_parse(&again, &f.arena, "again.json", out.data, out.size, &f.diag);
    CHECK_TEXT("no message", f.diag.text ? f.diag.text : "", "");
    if (CHECK_INT("read", status, STATUS_OK)) {
        CHECK_TEXT("name", again.name, "a \"second\" a100");
        for (size_t i = 0; i < f.result.number_count; i++)
            CHECK_CLOSE(f.result.number[i].name, cost_fact_value(&again, f.result.number[i].name),
                        f.result.number[i].value, 1e-5);
        CHECK_CLOSE("a share of its own", again.kind_bandwidth_share[WORK_FILL], 0.1, 0.05);
        CHECK("products are calibrated", again.calibration[COST_MATMUL].is_calibrated);
        CHECK_CLOSE("their range", again.calibration[COST_MATMUL].largest_size[COST_SIZE_M], 16384,
                    0);
        struct work work = {.kind = WORK_FILL, .elements = {1 << 22}};
        CHECK_CLOSE("predictions agree", cost_work_s(&again, ATTENTION_FA2, &work),
                    cost_work_s(&f.truth, ATTENTION_FA2, &work), 0.05);
        work = (struct work){.kind = WORK_MATMUL, .matmul = {64, 4096, 4096, 0, 0, 0}};
        CHECK("inside is not extrapolated",
              !cost_is_extrapolated(&again, ATTENTION_FA2, &work, NULL));
        work.matmul.m = 8;
        CHECK("outside is", cost_is_extrapolated(&again, ATTENTION_FA2, &work, NULL));
    }
    text_release(&out);
    fixture_release(&f);
}

/* ---- points that are refused, and other unusual points ---- */

/* Each function adds the points, or the lines of a header, of a row of `refused_fits`. */

static void add_one_product(struct calibrate_fixture *f)
{
    struct work work = {.kind = WORK_MATMUL, .matmul = {4096, 4096, 4096, 0, 0, 0}};
    fixture_add_point_of_truth(f, POINT_NO_IMPL, work);
}

static void add_products_of_one_depth(struct calibrate_fixture *f)
{
    for (int64_t m = 512; m <= 8192; m *= 2) {
        struct work work = {.kind = WORK_MATMUL, .matmul = {m, m / 2, 4096, 0, 0, 0}};
        fixture_add_point_of_truth(f, POINT_NO_IMPL, work);
    }
}

static void add_two_products(struct calibrate_fixture *f)
{
    for (int64_t m = 1024; m <= 2048; m *= 2) {
        struct work work = {.kind = WORK_MATMUL, .in = DTYPE_F32, .matmul = {m, m, m, 0, 0, 0}};
        work.in = m == 1024 ? DTYPE_F32 : DTYPE_BF16;
        fixture_add_point_of_truth(f, POINT_NO_IMPL, work);
    }
}

static void add_ops_of_one_size(struct calibrate_fixture *f)
{
    for (int i = 0; i < 5; i++) {
        struct work work = {.kind = WORK_ADD, .elements = {1 << 20}};
        fixture_add_point_of_truth(f, POINT_NO_IMPL, work);
    }
}

static void add_products_of_erratic_times(struct calibrate_fixture *f)
{
    for (int64_t m = 512; m <= 8192; m *= 2) {
        struct work work = {.kind = WORK_MATMUL, .matmul = {m, 2 * m, m, 0, 0, 0}};
        fixture_add_point(f, POINT_WORK, POINT_NO_IMPL, work, m % 3 == 1 ? 1e-3 : 1e-2);
    }
}

static void add_attention_of_other_device(struct calibrate_fixture *f)
{
    struct work work = {.kind = WORK_ATTENTION,
                        .attention = {1024, 1024, 8, 8, 128, MASK_FULL, 0, 0}};
    fixture_add_point(f, POINT_WORK, ATTENTION_FA3, work, 1e-3);
}

static void add_too_wide_heads(struct calibrate_fixture *f)
{
    struct work work = {.kind = WORK_ATTENTION,
                        .attention = {1024, 1024, 8, 8, 1024, MASK_FULL, 0, 0}};
    fixture_add_point(f, POINT_WORK, ATTENTION_FA2, work, 1e-3);
}

static void add_host_points_without_bandwidth(struct calibrate_fixture *f)
{
    for (int64_t count = 1000; count <= 1000000; count *= 10) {
        struct work work = {.kind = WORK_ADAMW, .elements = {count}};
        fixture_add_point(f, POINT_HOST, POINT_NO_IMPL, work, 1e-9 * (double)count);
    }
}

static void add_barrier_point(struct calibrate_fixture *f)
{
    struct work work = {.kind = WORK_BARRIER};
    fixture_add_point(f, POINT_WORK, POINT_NO_IMPL, work, 1e-3);
}

static void name_two_devices(struct calibrate_fixture *f)
{
    points_add_header_line(&f->points, (struct loc){"a.csv", 1, 0}, "device", "this");
    points_add_header_line(&f->points, (struct loc){"b.csv", 1, 0}, "device", "that");
}

static void add_header_rate_without_unit(struct calibrate_fixture *f)
{
    points_add_header_line(&f->points, (struct loc){"a.csv", 3, 0}, "device.memory_bytes_per_s",
                           "12");
}

static void add_header_sm_count_beyond_range(struct calibrate_fixture *f)
{
    points_add_header_line(&f->points, (struct loc){"a.csv", 4, 0}, "device.sm_count", "99999");
}

static void add_header_tile_beyond_range(struct calibrate_fixture *f)
{
    points_add_header_line(&f->points, (struct loc){"a.csv", 5, 0}, "attention.fa2.forward.tile",
                           "1e9");
}

static void add_header_start_time_beyond_range(struct calibrate_fixture *f)
{
    points_add_header_line(&f->points, (struct loc){"a.csv", 6, 0}, "device.kernel_start_s", "1 s");
}

static const struct {
    const char *label;
    void (*make)(struct calibrate_fixture *f);
    enum status status;
    const char *message; /* the beginning of the message */
} refused_fits[] = {
    {"one point", add_one_product, STATUS_NO,
     "error: matmul: m is 4096 in every point; the time that grows with it and the time that does "
     "not cannot be fitted apart: add products"},
    {"one depth", add_products_of_one_depth, STATUS_NO, "error: matmul: k is 4096 in every point"},
    {"fewer points than parameters", add_two_products, STATUS_NO,
     "error: matmul: 2 points are too few to fit 4 parameters: add products"},
    {"one size", add_ops_of_one_size, STATUS_NO,
     "error: memory: bytes is 6.29146e+06 in every point"},
    {"no pattern", add_products_of_erratic_times, STATUS_NO, "error: matmul: the fit lies "},
    {"no such attention", add_attention_of_other_device, STATUS_BAD_INPUT,
     "error: device a100-80g has no cost of attention 'fa3'"},
    {"too wide heads", add_too_wide_heads, STATUS_BAD_INPUT,
     "error: device a100-80g has no cost of attention 'fa2' with head dim 1024"},
    {"no host bandwidth", add_host_points_without_bandwidth, STATUS_NO,
     "error: cpu: there are points on host streams, but the bandwidth"},
    {"nothing of a device", add_barrier_point, STATUS_NO,
     "error: no point measures work that a device file describes"},
    {"two devices", name_two_devices, STATUS_BAD_INPUT,
     "b.csv:1: error: these points are of device 'that', others of 'this'; a device file describes "
     "one device"},
    {"a wrong statement", add_header_rate_without_unit, STATUS_BAD_INPUT, "a.csv:3: error: "},
    {"too many multiprocessors", add_header_sm_count_beyond_range, STATUS_BAD_INPUT,
     "a.csv:4: error: device.sm_count=99999: expected a number from 1 to 4096\n"},
    {"too large a tile", add_header_tile_beyond_range, STATUS_BAD_INPUT,
     "a.csv:5: error: attention.fa2.forward.tile=1e9: expected a number from 1 to 4096\n"},
    {"too long a start", add_header_start_time_beyond_range, STATUS_BAD_INPUT,
     "a.csv:6: error: device.kernel_start_s=1 s: expected a number from 0 to 0.001, but not 0 (in "
     "SI units)\n"},
};

static void undeterminable_costs_are_refused(void)
{
    for (size_t i = 0; i < ARRAY_LEN(refused_fits); i++) {
        struct calibrate_fixture f;
        fixture_init(&f, "a100-80g", 0);
        refused_fits[i].make(&f);
        struct calibrate_options options = {0};
        CHECK_INT(refused_fits[i].label,
                  calibrate_device(&f.result, &f.points, &f.base, &options, &f.diag),
                  refused_fits[i].status);
        char begin[256];
        snprintf(begin, sizeof begin, "%.*s", (int)strlen(refused_fits[i].message),
                 f.diag.text ? f.diag.text : "");
        CHECK_TEXT(refused_fits[i].label, begin, refused_fits[i].message);
        CHECK_INT(refused_fits[i].label, f.diag.error_count, 1);
        fixture_release(&f);
    }
}

/* Products can be fitted; adds of one size cannot, and one direction of attention has no points. */
static void fittable_costs_survive_refused_ones(void)
{
    struct calibrate_fixture f;
    struct text out = {0};
    struct device_cost again;
    fixture_init(&f, "a100-80g", 0);
    f.truth.matmul_flop_per_s *= 0.7;
    add_ops_of_one_size(&f);
    for (int i = 0; i < 30; i++) {
        int64_t m = 256 << (i % 6), k = 256 << (i * 5 % 7);
        struct work products = {.kind = WORK_MATMUL, .matmul = {m, 2 * m, k, 0, 0, 0}};
        fixture_add_point_of_truth(&f, POINT_NO_IMPL, products);
    }
    for (int64_t q = 1024; q <= 16384; q *= 2) {
        struct work tile = {.kind = WORK_ATTENTION,
                            .attention = {q, q, 8, 8, 128, MASK_FULL, 0, 0}};
        fixture_add_point_of_truth(&f, ATTENTION_FA2, tile);
    }
    struct calibrate_options options = {0};
    CHECK_INT("refused", calibrate_device(&f.result, &f.points, &f.base, &options, &f.diag),
              STATUS_NO);
    CHECK_INT("one message", (int64_t)f.diag.error_count, 1);
    CHECK_CLOSE("products", f.result.cost.matmul_flop_per_s, f.truth.matmul_flop_per_s, 1e-3);
    CHECK_CLOSE("adds as the base has them", f.result.cost.memory_stream_fraction,
                f.base.memory_stream_fraction, 0);
    calibration_print_noise(&f.result, "a100-80g", &out);
    CHECK_TEXT("said", strchr(out.data, '\n') + 1,
               "refused    and left as a100-80g has them: memory\n"
               "unmeasured and left as a100-80g has them: device.kernel_start_s, host, cpu, "
               "attention.fa2.backward\n");
    text_release(&out);
    calibration_print_device(&f.result, "this", "a100-80g", NULL, &out);
    CHECK_INT("the file reads", cost_parse(&again, &f.arena, "f", out.data, out.size, &f.diag),
              STATUS_OK);
    CHECK_CLOSE("with products", again.matmul_flop_per_s, f.truth.matmul_flop_per_s, 1e-3);
    CHECK("calibrated", again.calibration[COST_MATMUL].is_calibrated);
    CHECK_CLOSE("adds judged as in the base", again.calibration[COST_MEMORY].rms_relative_error,
                f.base.calibration[COST_MEMORY].rms_relative_error, 0);
    text_release(&out);
    fixture_release(&f);
}

/* Points with times that no device has are fitted, or refused in part. In both cases the file that
 * is written can be read. */
static void fits_of_absurd_times_stay_readable(void)
{
    struct calibrate_fixture f;
    struct text out = {0};
    struct device_cost again;
    fixture_init(&f, "a100-80g", 0);
    for (int64_t q = 1024; q <= 16384;
         q *= 2) { /* the rate reaches its bound; rates of other dims, scaled alike, exceed it */
        struct work tile = {.kind = WORK_ATTENTION, .attention = {q, q, 8, 8, 64, MASK_FULL, 0, 0}};
        fixture_add_point(&f, POINT_WORK, ATTENTION_FA2, tile, 1e-9);
    }
    for (int64_t count = 1 << 20; count <= 1 << 30; count *= 4) {
        struct work adds = {.kind = WORK_ADD, .elements = {count}};
        fixture_add_point(&f, POINT_WORK, POINT_NO_IMPL, adds, 5e-6 + (double)count * 1e-18);
    }
    for (int i = 0; i < 30; i++) {
        int64_t m = 256 << (i % 6), k = 256 << (i * 5 % 7);
        struct work products = {.kind = WORK_MATMUL, .matmul = {m, 2 * m, k, 0, 0, 0}};
        fixture_add_point_of_truth(&f, POINT_NO_IMPL, products);
        if (i == 0)
            fixture_add_point(&f, POINT_SUSTAINED, POINT_NO_IMPL, products, 1);
    }
    struct calibrate_options options = {.rms_error_limit = 1e9};
    enum status status = calibrate_device(&f.result, &f.points, &f.base, &options, &f.diag);
    CHECK("fitted, or refused in part", status == STATUS_OK || status == STATUS_NO);
    calibration_print_device(&f.result, "this", "a100-80g", NULL, &out);
    diag_clear(&f.diag);
    CHECK_INT("the file reads", cost_parse(&again, &f.arena, "f", out.data, out.size, &f.diag),
              STATUS_OK);
    CHECK_TEXT("no message", f.diag.text ? f.diag.text : "", "");
    CHECK("products are in it", again.matmul_flop_per_s > 0 && f.result.family_count > 0);
    CHECK("not that power",
          f.result.notes.data && strstr(f.result.notes.data, "device.tensor_power"));
    text_release(&out);
    fixture_release(&f);
}

/* A file name may have any bytes; a JSON file must be UTF-8. */
static void file_names_that_are_no_utf8_are_kept(void)
{
    struct calibrate_fixture f;
    struct text out = {0};
    struct device_cost again;
    fixture_init(&f, "a100-80g", 0);
    for (int64_t count = 1 << 16; count <= 1 << 24; count *= 4) {
        struct work adds = {.kind = WORK_ADD, .elements = {count}};
        fixture_add_point_of_truth(&f, POINT_NO_IMPL, adds);
        f.points.row[f.points.count - 1].at.name = "points\xff.csv";
    }
    struct calibrate_options options = {0};
    CHECK_INT("fitted", calibrate_device(&f.result, &f.points, &f.base, &options, &f.diag),
              STATUS_OK);
    calibration_print_device(&f.result, "th\xe9s", "a100-80g", "no\xc0te", &out);
    CHECK_INT("the file reads", cost_parse(&again, &f.arena, "f", out.data, out.size, &f.diag),
              STATUS_OK);
    CHECK_TEXT("named", again.name, "th\xef\xbf\xbds");
    text_release(&out);
    fixture_release(&f);
}

static void inseparable_costs_keep_base_values(void)
{
    struct calibrate_fixture f;
    fixture_init(&f, "a100-80g", 0);
    static const enum work_kind kinds[] = {WORK_MATMUL, WORK_ADD};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) { /* one op and one kernel each */
        struct work work = {.kind = (uint8_t)kinds[i], .p = {1, 1, 1, 0, 0, 0, 0, 0}};
        fixture_add_point(&f, POINT_ISSUE, POINT_NO_IMPL, work, 20e-6);
    }
    struct calibrate_options options = {0};
    CHECK_INT("fitted", calibrate_device(&f.result, &f.points, &f.base, &options, &f.diag),
              STATUS_OK);
    CHECK_CLOSE("what the base has of it stays", f.result.cost.host_kernel_s, f.base.host_kernel_s,
                0);
    CHECK("and that is said", f.result.notes.size > 0);
    fixture_release(&f);
}

/* Points of launches separate the cost of a kernel from that of an op; numbers without a point keep the base's value,
 * and are named. */
static void launch_points_split_kernel_and_op(void)
{
    struct calibrate_fixture f;
    fixture_init(&f, "a100-80g", 0);
    struct work fill = {.kind = WORK_FILL, .elements = {1}};
    for (int step = 0; step < 3; step++) {
        fixture_add_point(&f, POINT_LAUNCH, POINT_NO_IMPL, fill, 4e-6 + 1e-8 * step);
        fixture_add_point(&f, POINT_ISSUE, POINT_NO_IMPL, fill, 13e-6 + 1e-8 * step);
    }
    struct calibrate_options options = {0};
    CHECK_INT("fitted", calibrate_device(&f.result, &f.points, &f.base, &options, &f.diag),
              STATUS_OK);
    CHECK_CLOSE("kernel", f.result.cost.host_kernel_s, 4e-6, 0.01);
    CHECK_CLOSE("op", f.result.cost.host_op_s, 9e-6, 0.01);
    CHECK_TEXT("what is left", f.result.notes.data != NULL ? f.result.notes.data : "",
               "host.collective_s: no point is of a collective; it stays as the base has it\n"
               "host.copy_s: no point is of a copy; it stays as the base has it\n"
               "host.sync_s: no point is of a wait for the device; it stays as the base has it\n");
    fixture_release(&f);
}

/* Products in steps are slowed by the power limit. From their points the fit finds the higher rate
 * of a short run, with which the same steps are predicted. */
static void points_in_steps_give_short_run_rate(void)
{
    struct calibrate_fixture f;
    fixture_init(&f, "h100", 0);
    f.truth.matmul_flop_per_s *= 0.9;
    for (int i = 0; i < 12; i++) {
        int64_t m = 4096 << (i % 3), k = 4096 << (i % 2);
        struct work work = {.kind = WORK_MATMUL,
                            .in = DTYPE_BF16,
                            .out = DTYPE_BF16,
                            .matmul = {m, 2 * m, k, 0, 0, 0}};
        fixture_add_point(&f, POINT_STEP, POINT_NO_IMPL, work,
                          cost_work_s(&f.truth, ATTENTION_FA2, &work));
    }
    struct calibrate_options options = {.fits_rates_only_if_few_sizes = true};
    CHECK_INT("fitted", calibrate_device(&f.result, &f.points, &f.base, &options, &f.diag),
              STATUS_OK);
    for (size_t i = 0; i < f.points.count; i++)
        CHECK_CLOSE("predicted again",
                    cost_work_s(&f.result.cost, ATTENTION_FA2, &f.points.row[i].work),
                    f.points.row[i].median_s, 0.01);
    fixture_release(&f);
}

/* ---- points of a real machine ---- */

static void cpu_example_fit_is_unchanged(void)
{
    struct calibrate_fixture f;
    fixture_init(&f, "cpu-generic", 0);
    struct device_cost wanted;
    CHECK_INT(
        "the file",
        cost_load(&wanted, &f.arena, check_path("data/calibration/cpu-example.json"), &f.diag),
        STATUS_OK);
    CHECK_INT("the points",
              points_load(&f.points, check_path("data/calibration/cpu-example.csv"), &f.diag),
              STATUS_OK);
    struct calibrate_options options = {0};
    CHECK_INT("fitted", calibrate_device(&f.result, &f.points, &f.base, &options, &f.diag),
              STATUS_OK);
    CHECK_TEXT("no message", f.diag.text ? f.diag.text : "", "");
    for (size_t i = 0; i < f.result.number_count; i++) {
        const struct calibrate_number *number = &f.result.number[i];
        double tolerance = 0.001 + 0.1 * number->standard_error / fmax(number->value, 1e-30);
        CHECK_CLOSE(number->name, number->value, cost_fact_value(&wanted, number->name), tolerance);
    }
    static const struct {
        const char *family;
        double rms;
    } limits[] = {
        {"memory", 0.17},
        {"matmul", 0.16},
        {"attention.cpu.forward", 0.09},
        {"attention.cpu.backward", 0.13},
    };
    for (size_t i = 0; i < ARRAY_LEN(limits); i++)
        for (size_t k = 0; k < f.result.family_count; k++)
            if (strcmp(f.result.family[k].name, limits[i].family) == 0)
                CHECK(limits[i].family, f.result.family[k].rms_error < limits[i].rms);
    fixture_release(&f);
}

static const struct check_case cases[] = {
    {"the numbers that made the points come back", fit_recovers_the_true_costs},
    {"the file is read back", the_file_is_read_back},
    {"what points cannot tell is refused", undeterminable_costs_are_refused},
    {"what can be fitted is beside what is refused", fittable_costs_survive_refused_ones},
    {"numbers stay in their range", fits_of_absurd_times_stay_readable},
    {"names that are no UTF-8 are written all the same", file_names_that_are_no_utf8_are_kept},
    {"launches tell a kernel from an op", launch_points_split_kernel_and_op},
    {"points of steps are at the clock of steps", points_in_steps_give_short_run_rate},
    {"a number that two effects share is left alone", inseparable_costs_keep_base_values},
    {"the example is fitted as it was", cpu_example_fit_is_unchanged},
};
CHECK_MAIN("calibrate", cases)

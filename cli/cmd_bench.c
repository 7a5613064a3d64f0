/* longhaul bench: times single pieces of work on a backend, for calibrate or for a cluster file of this machine. */
#include "cli/command.h"

#include "base/c_locale.h"
#include "base/file_set.h"
#include "base/interrupt.h"
#include "base/units.h"
#include "cli/common/output.h"
#include "cli/measure/fitted.h"
#include "cli/measure/points_json.h"
#include "exec/backend.h"
#include "exec/microbench.h"
#include "exec/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RANKS_MAX = 64 };
enum measured_time_statistic { TIME_MEDIAN, TIME_P10 };
static const char *const times[] = {"median", "p10"};

static const struct option rows[] = {
    {.name = "backend",
     .kind = OPTION_TEXT,
     .value_name = "NAME",
     .default_text = "cpu",
     .help = "what is timed: cpu (this processor) or cuda (a GPU)"},
    {.name = "kinds",
     .kind = OPTION_TEXT,
     .value_name = "KIND,...",
     .unset_text = "every kind",
     .help = "measure only these kinds of work; `longhaul list kinds` names all"},
    {.name = "dtype",
     .kind = OPTION_TEXT,
     .value_name = "DTYPE",
     .unset_text = "f32, on cuda bf16",
     .help = "number format of operands that may have any floating-point format"},
    {.name = "quick",
     .kind = OPTION_FLAG,
     .help = "measure only the fewest sizes that calibrate needs, once each"},
    {.name = "within",
     .kind = OPTION_POSITIVE_NUMBER,
     .value_name = "S",
     .unset_text = "no end",
     .help = "stop after S seconds; the points that matter most are measured first, and those that "
             "would not fit in the time are left out"},
    {.name = "ranks",
     .kind = OPTION_INTEGER,
     .low = 1,
     .high = RANKS_MAX,
     .value_name = "N",
     .default_text = "2",
     .help = "how many ranks exchange messages in measurements of links; 1: none are measured"},
    {.name = "copy-bandwidth",
     .kind = OPTION_TEXT,
     .value_name = "RATE",
     .unset_text = "as fast as the machine is",
     .help = "the bandwidth of emulated links between host and device, such as \"8 GB/s\""},
    {.name = "copy-latency",
     .kind = OPTION_TEXT,
     .value_name = "TIME",
     .unset_text = "0 us",
     .help = "the latency of emulated links between host and device, such as \"5 us\""},
    {.name = "message-bandwidth",
     .kind = OPTION_TEXT,
     .value_name = "RATE",
     .unset_text = "as fast as the machine is",
     .help = "the bandwidth of emulated links between ranks, such as \"8 GB/s\""},
    {.name = "message-latency",
     .kind = OPTION_TEXT,
     .value_name = "TIME",
     .unset_text = "0 us",
     .help = "the latency of emulated links between ranks, such as \"5 us\""},
    {.name = "o",
     .kind = OPTION_TEXT,
     .value_name = "FILE.csv",
     .unset_text = "standard output, with --cluster-out nowhere",
     .help = "the file to which the measured points are written"},
    {.name = "json",
     .kind = OPTION_FLAG,
     .help = "print the points as JSON; with -o the file still has CSV rows"},
    {.name = "cluster-out",
     .kind = OPTION_TEXT,
     .value_name = "FILE.json",
     .help = "with --backend cpu: also calibrate, and write this machine as a cluster file, with "
             "the measured links, and its device file beside it (FILE.device.json)"},
    {.name = "times",
     .kind = OPTION_CHOICE,
     .names = times,
     .name_count = ARRAY_LEN(times),
     .default_text = "median",
     .help = "which time of each point --cluster-out fits: the median, or p10 (the 10th "
             "percentile), for a machine on which other programs run"},
    {.name = "despite-noise",
     .kind = OPTION_FLAG,
     .help = "with --cluster-out: if a fit is refused because other programs disturbed its "
             "points, fit their p10; if that is refused too, keep the numbers of the presets"},
};
const struct option_set bench_options = {"what to measure", rows, ARRAY_LEN(rows)};

/* Parses a list of kinds, "matmul,add", and marks them in kinds[]. */
static enum status parse_kind_list(const char *list, bool *kinds, struct diag *diag)
{
    const char *all_kind_names[WORK_KIND_COUNT];
    for (int i = 0; i < WORK_KIND_COUNT; i++)
        all_kind_names[i] = work_kind_info((enum work_kind)i)->name;
    for (const char *at = list; *at;) {
        size_t size = strcspn(at, ",");
        char word[64];
        snprintf(word, sizeof word, "%.*s", (int)(size < 60 ? size : 60), at);
        enum work_kind kind;
        if (!work_kind_find(at, size, &kind)) {
            const char *near = diag_nearest(word, all_kind_names, WORK_KIND_COUNT);
            return diag_error(diag, (struct loc){.name = "--kinds"}, STATUS_BAD_INPUT,
                              "'%s' is no kind of work%s%s%s", word, near ? "; did you mean '" : "",
                              near ? near : "", near ? "'?" : "");
        }
        kinds[kind] = true;
        at += size + (at[size] == ',');
    }
    return STATUS_OK;
}

static enum status read_quantity_option(const struct options *options, const char *name,
                                        enum unit_kind unit, double *value, struct points *points,
                                        struct diag *diag)
{
    const char *text = options_text(options, name);
    const struct option_name_with_dashes option = options_name_with_dashes(name);
    char key[40];
    snprintf(key, sizeof key, "%s", name);
    if (text == NULL)
        return STATUS_OK;
    enum status status =
        units_parse(text, strlen(text), unit, value, (struct loc){.name = option.text}, diag);
    if (status == STATUS_OK && *value < 0)
        return diag_error(diag, (struct loc){.name = option.text}, STATUS_BAD_INPUT,
                          "'%s': expected 0 or more", text);
    if (status == STATUS_OK)
        points_add_header_line(points, (struct loc){0}, key, text);
    return status;
}

static const char *dtype_option(const struct options *options)
{
    const char *given = options_text(options, "dtype");
    const struct backend *backend = backend_find(options_text(options, "backend"));
    return given ? given : backend->kernels_run_on_host ? "f32" : "bf16";
}

static enum status fill_bench_options(const struct options *options,
                                      struct microbench_options *bench, bool *kinds,
                                      struct points *points, struct diag *diag)
{
    const struct {
        const char *name;
        enum unit_kind unit;
        double *value;
    } quantities[] = {
        {"copy-bandwidth", UNIT_BYTES_PER_S, &bench->copy_link.bytes_per_s},
        {"copy-latency", UNIT_SECONDS, &bench->copy_link.latency_s},
        {"message-bandwidth", UNIT_BYTES_PER_S, &bench->message_link.bytes_per_s},
        {"message-latency", UNIT_SECONDS, &bench->message_link.latency_s},
    };
    const char *list = options_text(options, "kinds"), *dtype_text = dtype_option(options);
    enum dtype dtype;
    if (!dtype_find(dtype_text, strlen(dtype_text), &dtype) || !dtype_is_compute_type(dtype))
        return diag_error(diag, (struct loc){.name = "--dtype"}, STATUS_BAD_INPUT,
                          "'%s' is no floating-point type; bf16, f16, f32 and f64 are", dtype_text);
    bench->dtype = (uint8_t)dtype;
    bench->backend = options_text(options, "backend");
    if (is_option_given(options, "quick")) {
        bench->round_s = 0.05;
        bench->most_rounds = 1;
    }
    enum status status = list ? parse_kind_list(list, kinds, diag) : STATUS_OK;
    for (size_t i = 0; i < ARRAY_LEN(quantities) && status == STATUS_OK; i++)
        status = read_quantity_option(options, quantities[i].name, quantities[i].unit,
                                      quantities[i].value, points, diag);
    return status;
}

static void set_points_header(struct points *points, bool quick, const char *dtype)
{
    char date[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &utc));
    points_add_header_line(points, (struct loc){0}, "date", date);
    points_add_header_line(points, (struct loc){0}, "made_by",
                           quick ? "longhaul bench --quick" : "longhaul bench");
    points_add_header_line(points, (struct loc){0}, "version", LONGHAUL_VERSION);
    points_add_header_line(points, (struct loc){0}, "dtype", dtype);
}

/* If the backend is cpu, adds a header line with the bandwidth of the host's memory: the bytes per second that the
 * largest addition moved in its p10 time (the 10th percentile of its times). Adds nothing if no addition was
 * measured. */
static void set_header_of_host_bandwidth(struct points *points, const char *backend)
{
    const struct point *largest = NULL;
    for (size_t i = 0; i < points->count; i++) {
        const struct point *point = &points->row[i];
        if (point->role == POINT_WORK && point->work.kind == WORK_ADD &&
            (largest == NULL || point->work.elements.count > largest->work.elements.count))
            largest = point;
    }
    if (largest == NULL || strcmp(backend, "cpu") != 0)
        return;
    char bandwidth_text[32];
    c_snprintf(bandwidth_text, sizeof bandwidth_text, "%.4g GB/s",
               work_memory_bytes(&largest->work) / largest->p10_s / 1e9);
    points_add_header_line(points, (struct loc){0}, "host_memory_bytes_per_s", bandwidth_text);
}

/* Sets the header line "points" to "N of COUNT": N points are measured, of `count` that are planned. It is called
 * after each point, so that the file of an interrupted run says what it lacks. */
static void set_header_of_point_count(struct points *points, size_t count)
{
    static const char key[] = "points";
    char measured_of_planned_text[64];
    snprintf(measured_of_planned_text, sizeof measured_of_planned_text, "%zu of %zu", points->count,
             count);
    for (size_t i = 0; i < points->header_count; i++)
        if (strcmp(points->header_line[i].key, key) == 0) {
            points->header_line[i].value = arena_text(&points->arena, measured_of_planned_text,
                                                      strlen(measured_of_planned_text));
            return;
        }
    points_add_header_line(points, (struct loc){0}, key, measured_of_planned_text);
}

/* Writes the points that are measured so far to the file. */
static enum status save_points(const struct points *points, const char *path, struct diag *diag)
{
    struct text out = {0};
    points_print(points, &out);
    enum status status = file_set_write_single_file(path, out.data, out.size, diag);
    text_release(&out);
    return status;
}

enum { FAILURES_IN_A_ROW = 8 };

/* Measures the cases and adds their points. After each measured case, saves all points to the file
 * of -o, if it is given. A case that does not fit into the time of --within is left out. So is a
 * case for which microbench_measure_case() returns STATUS_NO; its message goes to standard error, and
 * *failed counts it. After FAILURES_IN_A_ROW of these in a row, returns STATUS_NO. After an
 * interrupt, returns STATUS_OK with the points measured until then. */
static enum status measure_points(struct points *points, const struct microbench_options *bench,
                                  const struct microbench_case *cases, size_t count, size_t *failed,
                                  const struct options *options, struct diag *diag)
{
    const char *path = options_text(options, "o");
    struct microbench_time_budget budget = {.limit_s = options_number(options, "within")};
    size_t left_out = 0, failed_in_a_row = 0;
    double shortest_s = INFINITY;
    struct text name = {0};
    struct interrupt interrupt;
    enum status status = STATUS_OK;
    interrupt_catch(&interrupt);
    for (size_t i = 0; i < count && status == STATUS_OK && interrupt_caught_signal_number() == 0;
         i++) {
        struct point point;
        double guess_s = microbench_estimated_s(&cases[i], bench), begin_s = run_now_s();
        shortest_s = fmin(shortest_s, guess_s);
        if (!microbench_fits_time_budget(&budget, guess_s)) {
            left_out++;
            continue;
        }
        name.size = 0;
        points_print_params(&cases[i].work, &name);
        fprintf(stderr, "%3zu/%zu %s %s\n", i + 1, count,
                work_kind_info((enum work_kind)cases[i].work.kind)->name,
                name.data ? name.data : "");
        status = microbench_measure_case(&cases[i], bench, &point, diag);
        microbench_record_spent_time(&budget, guess_s, run_now_s() - begin_s);
        /* One failed case does not affect the others. But if FAILURES_IN_A_ROW of them fail one after the other, the
         * device does not work any more, and the command ends. */
        if (status == STATUS_NO && ++failed_in_a_row < FAILURES_IN_A_ROW) {
            fputs(diag->text, stderr);
            diag_clear(diag);
            (*failed)++;
            status = STATUS_OK;
            continue;
        }
        if (status != STATUS_OK)
            break;
        failed_in_a_row = 0;
        points_add(points, &point);
        set_header_of_point_count(points, count);
        if (path != NULL)
            status = save_points(points, path, diag);
    }
    if (left_out > 0)
        fprintf(stderr, "--within: %zu of %zu were not measured\n", left_out, count);
    if (left_out > 0 && left_out == count && interrupt_caught_signal_number() == 0)
        status = diag_error(diag, (struct loc){.name = "--within"}, STATUS_BAD_INPUT,
                            "%g s are too short for any of the %zu cases; the shortest is "
                            "estimated to take %.2g s",
                            budget.limit_s, count, shortest_s);
    interrupt_release(&interrupt);
    text_release(&name);
    return status;
}

/* Returns the path to which the rows are written: that of -o, or "-" for standard output. Returns NULL, so that no
 * rows are written, if --json or --cluster-out is given without -o. */
static const char *points_path_option(const struct options *options)
{
    const char *path = options_text(options, "o");
    bool others = is_option_given(options, "json") || is_option_given(options, "cluster-out");
    return path != NULL || others ? path : "-";
}

/* Returns the error of a command that an interrupt ended. If points were measured, the message says how many are
 * written, and where, or that they are lost, if neither rows (points_path_option()) nor JSON are written. */
static enum status report_interrupted_measurement(const struct points *points, size_t count,
                                                  const struct options *options, struct diag *diag)
{
    struct loc at = {.name = "bench"};
    const char *path = points_path_option(options);
    if (points->count == 0)
        return diag_error(diag, at, STATUS_SYSTEM, "ended by %s before anything was measured",
                          interrupt_describe_signal());
    if (path != NULL || is_option_given(options, "json"))
        return diag_error(diag, at, STATUS_SYSTEM, "ended by %s: %zu of %zu points are in %s",
                          interrupt_describe_signal(), points->count, count,
                          path != NULL && strcmp(path, "-") != 0 ? path : "standard output");
    return diag_error(diag, at, STATUS_SYSTEM,
                      "ended by %s: the measured points are lost; with -o, they would be in a file",
                      interrupt_describe_signal());
}

/* Writes the points as rows to the file of points_path_option(), and with --json as JSON to standard output. */
static enum status write_points(const struct points *points, const struct options *options,
                                struct diag *diag)
{
    const char *path = points_path_option(options);
    struct text out = {0};
    enum status status = STATUS_OK;
    points_print(points, &out);
    if (path != NULL)
        status = file_set_write_single_file(path, out.data, out.size, diag);
    text_release(&out);
    if (status == STATUS_OK && is_option_given(options, "json")) {
        points_print_json(points, &out);
        status = command_print(&out, diag);
        text_release(&out);
    }
    return status;
}

/* Fits the points, and writes FILE.json and FILE.device.json, also if some fits were refused
 * (STATUS_NO). The report goes to standard error, like the progress. */
static enum status fit_and_write_cluster_files(struct fitted *fitted, const struct options *options,
                                               struct diag *diag)
{
    const char *path = options_text(options, "cluster-out");
    size_t size = strlen(path), stem = size - strlen(".json");
    struct text device = {0}, report = {0};
    fitted->options.fits_p10_times = options_index_of_choice(options, "times") == TIME_P10;
    fitted->options.falls_back_if_disturbed = is_option_given(options, "despite-noise");
    fitted_drop_small_link_points(fitted, 0);
    enum status status = fitted_fit_points(fitted, NULL, true, path, diag);
    if (status == STATUS_OK || status == STATUS_NO)
        fitted_put_report(fitted, &report);
    if (report.size > 0)
        fwrite(report.data, 1, report.size, stderr);
    text_printf(&device, "%.*s.device.json", (int)stem, path);
    const struct fitted_files files = {
        .device_path = device.data, .cluster_path = path, .base_preset = "cpu-node"};
    if (status == STATUS_OK || status == STATUS_NO) {
        enum status saved = fitted_save(fitted, &files, diag);
        status = saved == STATUS_OK ? status : saved;
    }
    text_release(&device);
    text_release(&report);
    return status;
}

static enum status check_cluster_out(const struct options *options, struct diag *diag)
{
    const char *path = options_text(options, "cluster-out");
    struct loc at = {.name = "--cluster-out"};
    if (path == NULL && is_option_given(options, "despite-noise"))
        return diag_error(diag, (struct loc){.name = "--despite-noise"}, STATUS_BAD_INPUT,
                          "needs --cluster-out: --despite-noise only chooses what the fits do with "
                          "noisy points");
    if (path == NULL)
        return STATUS_OK;
    size_t size = strlen(path);
    if (!backend_find(options_text(options, "backend"))->kernels_run_on_host)
        return diag_error(
            diag, at, STATUS_BAD_INPUT,
            "is for the cpu backend; for a GPU, write the points with -o POINTS.csv, then run "
            "`longhaul calibrate POINTS.csv --base DEVICE --cluster CLUSTER "
            "--cluster-out FILE.json`, where DEVICE is the preset to start from");
    if (size <= strlen(".json") || strcmp(path + size - strlen(".json"), ".json") != 0)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "'%s' does not end in .json, as a cluster's file must", path);
    if (is_option_given(options, "kinds"))
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "needs every kind of work; leave --kinds out");
    return STATUS_OK;
}

enum status cmd_bench(const struct options *options, struct diag *diag)
{
    struct arena arena = {0};
    struct fitted fitted = {0};
    struct points *points = &fitted.points;
    struct microbench_options bench = {0};
    const struct microbench_case *cases;
    bool kinds[WORK_KIND_COUNT] = {false}, quick = is_option_given(options, "quick");
    size_t before = diag->size;
    enum status status = microbench_describe(options_text(options, "backend"), points, diag);
    diag_add_place_to_errors(diag, before, "--backend");
    if (status == STATUS_OK)
        status = fill_bench_options(options, &bench, kinds, points, diag);
    if (status == STATUS_OK)
        status = check_cluster_out(options, diag);
    if (status != STATUS_OK)
        goto out;
    set_points_header(points, quick, dtype_option(options));
    const char *sms = points_header_value(points, "device.sm_count");
    bench.sm_count = sms != NULL ? (uint32_t)strtoul(sms, NULL, 10) : 0;
    bool gpu = !backend_find(bench.backend)->kernels_run_on_host;
    if (gpu)
        points_add_header_line(points, (struct loc){0}, "loopback", "ranks share one GPU");
    size_t count = (gpu ? microbench_list_gpu_cases : microbench_list_cases)(
        &cases, &arena, quick, (uint32_t)options_whole_number(options, "ranks"),
        is_option_given(options, "kinds") ? kinds : NULL);
    if (count == 0) {
        status = diag_error(
            diag, (struct loc){.name = "--kinds"}, STATUS_BAD_INPUT,
            "nothing to measure: none of the kinds of work that --kinds names is timed by itself");
        goto out;
    }
    size_t failed = 0;
    status = measure_points(points, &bench, cases, count, &failed, options, diag);
    if (status != STATUS_OK)
        goto out;
    set_header_of_host_bandwidth(points, bench.backend);
    if (points->count > 0)
        status = write_points(points, options, diag);
    if (status == STATUS_OK && interrupt_caught_signal_number() != 0)
        status = report_interrupted_measurement(points, count, options, diag);
    if (status == STATUS_OK && is_option_given(options, "cluster-out"))
        status = fit_and_write_cluster_files(&fitted, options, diag);
    if (status == STATUS_OK && failed > 0)
        status = diag_error(diag, (struct loc){.name = "bench"}, STATUS_NO,
                            "%zu of %zu points failed, each with the message above, and are left "
                            "out of the results",
                            failed, count);
out:
    fitted_release(&fitted);
    arena_release(&arena);
    command_exit_if_interrupted(diag);
    return status;
}

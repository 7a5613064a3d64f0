/* longhaul calibrate: a device file, and the links of a cluster file, from measured points. */
#include "cli/command.h"

#include "base/utf8.h"
#include "cli/measure/fitted.h"
#include "cli/measure/points_json.h"
#include "models/nccl_tests.h"

#include <string.h>

enum time_choice { TIME_MEDIAN, TIME_P10 };
static const char *const times[] = {"median", "p10"};

static const struct option rows[] = {
    {.name = "name",
     .kind = OPTION_TEXT,
     .value = "NAME",
     .unset = "that of the file, without .json",
     .help = "name of the device that is written"},
    {.name = "base",
     .kind = OPTION_TEXT,
     .value = "DEVICE",
     .unset = "cpu-generic for points of the cpu backend",
     .help = "the preset whose numbers stand where nothing was measured; `longhaul list devices` "
             "names all"},
    {.name = "o", .kind = OPTION_TEXT, .value = "FILE.json", .help = "write the device file there"},
    {.name = "times",
     .kind = OPTION_CHOICE,
     .names = times,
     .name_count = ARRAY_LEN(times),
     .fallback = "median",
     .help = "which time of each point is fitted: the median, or p10 (the fastest tenth) where "
             "other programs disturb the machine"},
    {.name = "despite-noise",
     .kind = OPTION_FLAG,
     .help = "where other programs disturbed the points of a fit that is refused, fit their p10; "
             "where that is refused too, keep the numbers of the base"},
    {.name = "limit",
     .kind = OPTION_NUMBER,
     .value = "PERCENT",
     .fallback = "25",
     .help = "the largest root mean square error (in percent) of a fit that is accepted; fits of "
             "the host's time may have twice as much"},
    {.name = "host-memory-bandwidth",
     .kind = OPTION_TEXT,
     .value = "RATE",
     .unset = "the header of the points",
     .help = "bandwidth of host memory, of which work on host streams has a share: \"200 GB/s\""},
    {.name = "min-bytes",
     .kind = OPTION_COUNT,
     .low = 0,
     .high = INT64_MAX,
     .value = "N",
     .fallback = "0",
     .help = "leave out messages and copies smaller than N bytes"},
    {.name = "cluster",
     .kind = OPTION_TEXT,
     .value = "CLUSTER",
     .help = "the preset of the cluster whose links were measured"},
    {.name = "cluster-out",
     .kind = OPTION_TEXT,
     .value = "FILE.json",
     .help = "write the cluster of --cluster with the measured links and device there"},
    {.name = "json", .kind = OPTION_FLAG, .help = "print the fits as JSON, in SI units"},
};
const struct option_set calibrate_options = {"points and what becomes of them", rows,
                                             ARRAY_LEN(rows)};

/* "FILE", or "all_reduce_perf:FILE". */
static enum status read_file(struct fitted *fitted, const char *argument, int64_t min_bytes,
                             struct diag *diag)
{
    const char *colon = strchr(argument, ':'), *path = argument, *test = NULL;
    size_t size = colon ? (size_t)(colon - argument) : 0;
    if (size > 5 && memcmp(colon - 5, "_perf", 5) == 0) {
        test = arena_text(&fitted->arena, argument, size);
        path = colon + 1;
    }
    struct text text = {0};
    enum status status = text_read(&text, path, diag);
    const char *data = text.data ? text.data : "";
    if (status == STATUS_OK)
        status =
            test || nccl_tests_recognise(data, text.size)
                ? nccl_tests_parse(&fitted->points, path, data, text.size, test, min_bytes, diag)
                : points_parse(&fitted->points, path, data, text.size, diag);
    text_release(&text);
    return status;
}

static enum status read_all(struct fitted *fitted, const struct options *options, struct diag *diag)
{
    const char *rate = options_text(options, "host-memory-bandwidth");
    int64_t min_bytes = options_count(options, "min-bytes");
    enum status status = STATUS_OK;
    fitted->options.limit = options_number(options, "limit") / 100;
    fitted->options.fastest = options_choice(options, "times") == TIME_P10;
    fitted->options.despite_noise = options_given(options, "despite-noise");
    if (rate)
        status = units_parse(rate, strlen(rate), UNIT_BYTES_PER_S,
                             &fitted->options.host_memory_bytes_per_s,
                             (struct loc){.name = "--host-memory-bandwidth"}, diag);
    for (size_t i = 0; i < options->argument_count && status == STATUS_OK; i++)
        status = read_file(fitted, options->argument[i], min_bytes, diag);
    fitted_sort(fitted, min_bytes);
    return status;
}

static enum status check_name(const struct options *options, struct diag *diag)
{
    const char *name = options_text(options, "name");
    if (name == NULL || utf8_is_valid(name))
        return STATUS_OK;
    return diag_error(diag, (struct loc){.name = "--name"}, STATUS_BAD_INPUT,
                      "is no UTF-8, which a device's name in a JSON file has to be");
}

/* A cluster to be written is looked for before anything is fitted. */
static enum status check_cluster(struct fitted *fitted, const struct options *options,
                                 struct diag *diag)
{
    const char *base = options_text(options, "cluster");
    bool out = options_given(options, "cluster-out");
    struct cluster cluster;
    if ((base != NULL) != out)
        return diag_error(diag, (struct loc){.name = base ? "--cluster" : "--cluster-out"},
                          STATUS_BAD_INPUT, "--cluster and --cluster-out go together");
    if (base == NULL)
        return STATUS_OK;
    size_t before = diag->size;
    enum status status = cluster_load(&cluster, &fitted->arena, base, diag);
    diag_place(diag, before, "--cluster");
    return status;
}

static enum status write_files(struct fitted *fitted, const struct options *options,
                               struct diag *diag)
{
    const struct fitted_files files = {
        .device = options_text(options, "o"),
        .name = options_text(options, "name"),
        .cluster = options_text(options, "cluster-out"),
        .base = options_text(options, "cluster"),
    };
    return fitted_save(fitted, &files, diag);
}

enum status cmd_calibrate(const struct options *options, struct diag *diag)
{
    struct fitted fitted = {0};
    struct text report = {0};
    enum status status = check_name(options, diag);
    if (status == STATUS_OK)
        status = check_cluster(&fitted, options, diag);
    if (status == STATUS_OK)
        status = read_all(&fitted, options, diag);
    if (status == STATUS_OK)
        status = fitted_make(&fitted, options_text(options, "base"),
                             options_given(options, "cluster"), options->argument[0], diag);
    if (status == STATUS_OK || status == STATUS_NO) {
        if (options_given(options, "json"))
            calibration_print_json(&fitted.device, &fitted.links,
                                   fitted.refused.size > 0 ? fitted.refused.data : "", &report);
        else
            fitted_report(&fitted, &report);
        enum status printed = command_print(&report, diag);
        enum status written = printed;
        if (written == STATUS_OK)
            written = write_files(&fitted, options, diag);
        status = written == STATUS_OK ? status : written;
    }
    text_release(&report);
    fitted_release(&fitted);
    return status;
}

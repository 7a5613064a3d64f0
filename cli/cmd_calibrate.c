/* longhaul calibrate: a device file, and the links of a cluster file, from measured points. */
#include "cli/command.h"

#include "cli/points_json.h"
#include "models/nccl_tests.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum time_choice { TIME_MEDIAN, TIME_P10 };
static const char *const times[] = {"median", "p10"};

static const struct option rows[] = {
    {.name = "name",
     .kind = OPTION_TEXT,
     .value = "NAME",
     .unset = "that of the file, without .json",
     .help = "what the device is called"},
    {.name = "base",
     .kind = OPTION_TEXT,
     .value = "DEVICE",
     .unset = "cpu-generic for points of the cpu backend",
     .help = "the preset that has what is not measured (longhaul list devices)"},
    {.name = "o", .kind = OPTION_TEXT, .value = "FILE.json", .help = "write the device file"},
    {.name = "times",
     .kind = OPTION_CHOICE,
     .names = times,
     .name_count = ARRAY_LEN(times),
     .fallback = "median",
     .help = "what is fitted: p10 where others disturb the machine"},
    {.name = "limit",
     .kind = OPTION_NUMBER,
     .value = "PERCENT",
     .fallback = "25",
     .help = "the largest root mean square of a fit that is accepted; twice that of the host"},
    {.name = "host-memory-bandwidth",
     .kind = OPTION_TEXT,
     .value = "RATE",
     .unset = "the header of the points",
     .help = "what work on host streams has a share of"},
    {.name = "min-bytes",
     .kind = OPTION_COUNT,
     .low = 0,
     .high = INT64_MAX,
     .value = "N",
     .fallback = "0",
     .help = "leave out smaller messages and copies"},
    {.name = "cluster",
     .kind = OPTION_TEXT,
     .value = "CLUSTER",
     .help = "the preset whose links were measured"},
    {.name = "cluster-out",
     .kind = OPTION_TEXT,
     .value = "FILE.json",
     .help = "write that cluster with the measured links (and device)"},
    {.name = "json", .kind = OPTION_FLAG, .help = "print the fits as JSON, in SI units"},
};
const struct option_set calibrate_options = {"points and what becomes of them", rows,
                                             ARRAY_LEN(rows)};

struct job {
    struct arena arena;
    struct points points;
    struct device_cost base;
    const char *base_name;
    struct calibration device;
    struct link_calibration links;
    bool has_device, has_links;
    struct calibrate_options options;
    struct text refused; /* of links that nobody asked for */
};

/* ---- reading ---- */

/* "FILE", or "all_reduce_perf:FILE". */
static enum status read_file(struct job *job, const char *argument, int64_t min_bytes,
                             struct diag *diag)
{
    const char *colon = strchr(argument, ':'), *path = argument, *test = NULL;
    size_t size = colon ? (size_t)(colon - argument) : 0;
    if (size > 5 && memcmp(colon - 5, "_perf", 5) == 0) {
        test = arena_text(&job->arena, argument, size);
        path = colon + 1;
    }
    struct text text = {0};
    enum status status = text_read(&text, path, diag);
    const char *data = text.data ? text.data : "";
    if (status == STATUS_OK)
        status = test || nccl_tests_recognise(data, text.size)
                     ? nccl_tests_parse(&job->points, path, data, text.size, test, min_bytes, diag)
                     : points_parse(&job->points, path, data, text.size, diag);
    text_release(&text);
    return status;
}

/* Sorts out what the points are of; small messages go. */
static void sort_out(struct job *job, int64_t min_bytes)
{
    size_t kept = 0;
    for (size_t i = 0; i < job->points.count; i++) {
        enum calibrate_link link;
        const struct point *point = &job->points.row[i];
        bool of_link = calibrate_link_find(point, &link);
        if (of_link && work_payload_bytes(&point->work) < min_bytes)
            continue;
        job->has_links |= of_link;
        job->has_device |= !of_link;
        job->points.row[kept++] = *point;
    }
    job->points.count = kept;
}

static enum status read_all(struct job *job, const struct options *options, struct diag *diag)
{
    const char *rate = options_text(options, "host-memory-bandwidth");
    int64_t min_bytes = options_count(options, "min-bytes");
    enum status status = STATUS_OK;
    job->options.limit = options_number(options, "limit") / 100;
    job->options.fastest = options_choice(options, "times") == TIME_P10;
    if (rate)
        status =
            units_parse(rate, strlen(rate), UNIT_BYTES_PER_S, &job->options.host_memory_bytes_per_s,
                        (struct loc){.name = "--host-memory-bandwidth"}, diag);
    for (size_t i = 0; i < options->argument_count && status == STATUS_OK; i++)
        status = read_file(job, options->argument[i], min_bytes, diag);
    sort_out(job, min_bytes);
    return status;
}

static enum status load_base(struct job *job, const struct options *options, struct diag *diag)
{
    const char *backend = points_get(&job->points, "backend");
    job->base_name = options_text(options, "base");
    if (job->base_name == NULL && backend && strcmp(backend, "cpu") == 0)
        job->base_name = "cpu-generic";
    if (job->base_name == NULL)
        return diag_error(diag, (struct loc){.name = "--base"}, STATUS_BAD_INPUT,
                          "name the preset that has what was not measured; `longhaul list devices` "
                          "lists them");
    if (strchr(job->base_name, '.') || strchr(job->base_name, '/'))
        return diag_error(diag, (struct loc){.name = "--base"}, STATUS_BAD_INPUT,
                          "'%s' is no preset; a device file builds on a preset", job->base_name);
    return cost_load(&job->base, &job->arena, job->base_name, diag);
}

/* ---- writing ---- */

/* The file's name without folders and ".json". */
static const char *stem_of(struct arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t size = strlen(name);
    if (size > 5 && strcmp(name + size - 5, ".json") == 0)
        size -= 5;
    return arena_text(arena, name, size);
}

static enum status write_device(struct job *job, const struct options *options, struct diag *diag)
{
    const char *path = options_text(options, "o"), *name = options_text(options, "name");
    const char *device = points_get(&job->points, "device");
    if (path == NULL)
        return STATUS_OK;
    if (!job->has_device)
        return diag_error(diag, (struct loc){.name = "-o"}, STATUS_BAD_INPUT,
                          "no point is of a device; links go into a cluster (--cluster-out)");
    if (name == NULL)
        name = stem_of(&job->arena, path);
    struct text out = {0};
    const char *note = device ? arena_printf(&job->arena, "%s, measured.", device) : NULL;
    calibration_print_device(&job->device, name, job->base_name, note, &out);
    struct device_cost again;
    enum status status = cost_parse(&again, &job->arena, path, out.data, out.size, diag);
    assert(status == STATUS_OK); /* what we write can be read */
    status = text_save(path, out.data, out.size, diag);
    text_release(&out);
    return status;
}

static enum status write_cluster(struct job *job, const struct options *options, struct diag *diag)
{
    const char *base = options_text(options, "cluster"),
               *path = options_text(options, "cluster-out");
    const char *device = options_text(options, "o");
    if (base == NULL && path == NULL)
        return STATUS_OK;
    if (base == NULL || path == NULL)
        return diag_error(diag, (struct loc){.name = base ? "--cluster" : "--cluster-out"},
                          STATUS_BAD_INPUT, "--cluster and --cluster-out go together");
    struct cluster cluster;
    struct text out = {0};
    enum status status = cluster_load(&cluster, &job->arena, base, diag);
    if (status == STATUS_OK)
        status = link_calibration_print_cluster(&job->links, stem_of(&job->arena, path), device,
                                                base, &cluster, &out, diag);
    if (status == STATUS_OK)
        status = cluster_parse(&cluster, &job->arena, path, out.data, out.size, diag);
    if (status == STATUS_OK)
        status = text_save(path, out.data, out.size, diag);
    text_release(&out);
    return status;
}

static enum status fit_all(struct job *job, const struct options *options, struct diag *diag)
{
    enum status device = STATUS_OK, links = STATUS_OK;
    if (!job->has_device && !job->has_links)
        return diag_error(diag, (struct loc){.name = options->argument[0]}, STATUS_NO,
                          "no points are left to fit");
    if (job->has_device) {
        device = load_base(job, options, diag);
        if (device == STATUS_OK)
            device = calibrate_device(&job->device, &job->points, &job->base, &job->options, diag);
    }
    if (!job->has_links || (device != STATUS_OK && device != STATUS_NO))
        return device;
    if (!job->has_device || options_given(options, "cluster")) {
        links = calibrate_links(&job->links, &job->points, &job->options, diag);
        return device == STATUS_OK ? links : device;
    }
    struct diag told = {0}; /* nobody asked for links: what is refused is told, and no more */
    calibrate_links(&job->links, &job->points, &job->options, &told);
    if (told.size > 0)
        text_printf(&job->refused, "links not fitted:\n%s", told.text);
    diag_release(&told);
    return device;
}

static void print_report(const struct job *job, struct text *out)
{
    calibration_print_report(&job->device, out);
    link_calibration_print_report(&job->links, out);
    if (job->refused.size > 0)
        text_append(out, job->refused.data, job->refused.size);
}

enum status cmd_calibrate(const struct options *options, struct diag *diag)
{
    struct job job = {0};
    struct text report = {0};
    enum status status = read_all(&job, options, diag);
    if (status == STATUS_OK)
        status = fit_all(&job, options, diag);
    if (status == STATUS_OK || status == STATUS_NO) {
        if (options_given(options, "json"))
            calibration_print_json(&job.device, &job.links,
                                   job.refused.size > 0 ? job.refused.data : "", &report);
        else
            print_report(&job, &report);
        enum status printed = command_print(&report, diag);
        status = status == STATUS_OK ? printed : status;
    }
    if (status == STATUS_OK)
        status = write_device(&job, options, diag);
    if (status == STATUS_OK)
        status = write_cluster(&job, options, diag);
    text_release(&report);
    text_release(&job.refused);
    calibration_release(&job.device);
    link_calibration_release(&job.links);
    points_release(&job.points);
    arena_release(&job.arena);
    return status;
}

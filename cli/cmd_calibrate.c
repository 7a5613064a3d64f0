/* longhaul calibrate: a device file, and the links of a cluster file, from measured points or recorded steps. */
#include "base/path.h"
#include "cli/command.h"

#include "base/utf8.h"
#include "cli/common/output.h"
#include "cli/measure/compared.h"
#include "cli/measure/fitted.h"
#include "cli/measure/points_json.h"
#include "cli/measure/recorded.h"
#include "cli/setup/options.h"
#include "models/nccl_tests.h"

#include <string.h>

enum fitted_time_statistic { TIME_MEDIAN, TIME_P10 };
static const char *const times[] = {"median", "p10"};

static const struct option rows[] = {
    {.name = "name",
     .kind = OPTION_TEXT,
     .value_name = "NAME",
     .unset_text = "that of the file, without .json",
     .help = "name of the device that is written"},
    {.name = "base",
     .kind = OPTION_TEXT,
     .value_name = "DEVICE",
     .unset_text =
         "cpu-generic for points of the cpu backend, cpu-torch for PyTorch on processors, else "
         "the cluster's device for recorded steps",
     .help = "the preset that gives the numbers that were not measured; `longhaul list devices` "
             "names all"},
    {.name = "o",
     .kind = OPTION_TEXT,
     .value_name = "FILE.json",
     .help = "the device file to write"},
    {.name = "times",
     .kind = OPTION_CHOICE,
     .names = times,
     .name_count = ARRAY_LEN(times),
     .default_text = "median",
     .help = "which time of each point is fitted: the median, or p10 (the 10th percentile), for a "
             "machine on which other programs ran"},
    {.name = "despite-noise",
     .kind = OPTION_FLAG,
     .help = "if a fit is refused because other programs disturbed its points, fit their p10; if "
             "that is refused too, keep the numbers of the base"},
    {.name = "limit",
     .kind = OPTION_POSITIVE_NUMBER,
     .value_name = "PERCENT",
     .default_text = "25",
     .help = "the largest root mean square error (in percent) of a fit that is accepted; fits of "
             "the host's time may have twice as much"},
    {.name = "host-memory-bandwidth",
     .kind = OPTION_TEXT,
     .value_name = "RATE",
     .unset_text = "the header of the points",
     .help = "bandwidth of the host's memory, of which work on host streams reaches a fitted "
             "share: \"200 GB/s\""},
    {.name = "min-bytes",
     .kind = OPTION_INTEGER,
     .low = 0,
     .high = INT64_MAX,
     .value_name = "N",
     .default_text = "0",
     .help = "leave out messages and copies smaller than N bytes"},
    {.name = "cluster-out",
     .kind = OPTION_TEXT,
     .value_name = "FILE.json",
     .help = "the cluster file to write: the cluster of --cluster with the measured links and "
             "device"},
    {.name = "json", .kind = OPTION_FLAG, .help = "print the fits as JSON, in SI units"},
};
const struct option_set calibrate_options = {"points and what becomes of them", rows,
                                             ARRAY_LEN(rows)};

/* The state of one call of the command. */
struct session {
    const struct options *options;
    struct fitted fitted;
    struct recorded_steps recorded;
};

/* Returns the length of the name of a NCCL test before a ':' in "all_reduce_perf:FILE"; 0: the argument has none. */
static size_t nccl_test_name_length(const char *argument)
{
    static const char suffix[] = "_perf";
    const char *colon = strchr(argument, ':');
    const size_t length = colon ? (size_t)(colon - argument) : 0, tail = sizeof suffix - 1;
    return length > tail && memcmp(colon - tail, suffix, tail) == 0 ? length : 0;
}

/* Reads an argument "FILE" or "all_reduce_perf:FILE". FILE is one of: a folder or file of recorded steps, which is
 * noted and read after all points; the output of a NCCL test, whose name is given or is in the file; a file of
 * points. */
static enum status read_argument_file(struct session *s, const char *argument, int64_t min_bytes,
                                      struct diag *diag)
{
    struct fitted *fitted = &s->fitted;
    const char *path = argument, *test = NULL;
    const size_t length = nccl_test_name_length(argument);
    if (length > 0) {
        test = arena_text(&fitted->arena, argument, length);
        path = argument + length + 1;
    }
    if (test == NULL && path_is_folder(path)) {
        recorded_add_path(&s->recorded, path);
        return STATUS_OK;
    }
    struct text text = {0};
    enum status status = text_read(&text, path, diag);
    const char *data = text.data ? text.data : "";
    if (status == STATUS_OK && test == NULL && recording_has_known_format(data, text.size))
        recorded_add_path(&s->recorded, path);
    else if (status == STATUS_OK)
        status =
            test || nccl_tests_recognise(data, text.size)
                ? nccl_tests_parse(&fitted->points, path, data, text.size, test, min_bytes, diag)
                : points_parse(&fitted->points, path, data, text.size, diag);
    text_release(&text);
    return status;
}

/* Refuses options that describe a schedule, except --cluster. It is called if none of the files is
 * a recording, since points have no schedule. */
static enum status refuse_schedule_options(const struct options *options, struct diag *diag)
{
    const struct option_set *const sets[] = {&setup_model_options, &setup_choice_options,
                                             &setup_cluster_options};
    for (size_t i = 0; i < ARRAY_LEN(sets); i++)
        for (size_t k = 0; k < sets[i]->option_count; k++) {
            const char *name = sets[i]->option[k].name;
            if (!is_option_given(options, name) || strcmp(name, "cluster") == 0)
                continue;
            return diag_error(diag, (struct loc){.name = options_name_with_dashes(name).text},
                              STATUS_BAD_INPUT,
                              "is for recordings of steps, whose schedule it describes, and none "
                              "of the given files is a recording");
        }
    return STATUS_OK;
}

static enum status turn_recorded_steps_into_points(struct session *s, struct diag *diag)
{
    struct fitted *fitted = &s->fitted;
    if (s->recorded.path_count == 0)
        return refuse_schedule_options(s->options, diag);
    enum status status = recorded_add_to_points(&s->recorded, s->options, &fitted->points, diag);
    fitted->options.fits_rates_only_if_few_sizes = true;
    fitted->points_source = arena_printf(&fitted->arena, "recorded steps, %s", s->recorded.path[0]);
    return status;
}

static enum status read_all_arguments(struct session *s, struct diag *diag)
{
    struct fitted *fitted = &s->fitted;
    const struct options *options = s->options;
    const char *rate = options_text(options, "host-memory-bandwidth");
    int64_t min_bytes = options_whole_number(options, "min-bytes");
    enum status status = STATUS_OK;
    fitted->options.rms_error_limit = options_number(options, "limit") / 100;
    fitted->options.fits_p10_times = options_index_of_choice(options, "times") == TIME_P10;
    fitted->options.falls_back_if_disturbed = is_option_given(options, "despite-noise");
    if (rate)
        status = units_parse(rate, strlen(rate), UNIT_BYTES_PER_S,
                             &fitted->options.host_memory_bytes_per_s,
                             (struct loc){.name = "--host-memory-bandwidth"}, diag);
    for (size_t i = 0; i < options->argument_count && status == STATUS_OK; i++)
        status = read_argument_file(s, options->positional_arguments[i], min_bytes, diag);
    if (status == STATUS_OK)
        status = turn_recorded_steps_into_points(s, diag);
    fitted_drop_small_link_points(fitted, min_bytes);
    return status;
}

static enum status check_name_option(const struct options *options, struct diag *diag)
{
    const char *name = options_text(options, "name");
    if (name == NULL || utf8_is_valid(name))
        return STATUS_OK;
    return diag_error(diag, (struct loc){.name = "--name"}, STATUS_BAD_INPUT,
                      "is no UTF-8, which a device's name in a JSON file has to be");
}

/* Checks the options that name files to be written. --cluster-out needs --cluster, since the new file builds on that
 * cluster; the cluster must not be a file with numbers after its name. --cluster needs --cluster-out, unless there are
 * recordings, which are predicted on the cluster. -o is refused if all points measure links. */
static enum status check_output_options(const struct session *s, struct diag *diag)
{
    const char *base = options_text(s->options, "cluster");
    const bool out = is_option_given(s->options, "cluster-out");
    const bool has_recordings = s->recorded.path_count > 0;
    if (out && base == NULL)
        return diag_error(diag, (struct loc){.name = "--cluster-out"}, STATUS_BAD_INPUT,
                          "--cluster and --cluster-out go together");
    if (!out && base != NULL && !has_recordings)
        return diag_error(diag, (struct loc){.name = "--cluster"}, STATUS_BAD_INPUT,
                          "--cluster and --cluster-out go together");
    if (is_option_given(s->options, "o") && !s->fitted.has_device && s->fitted.has_links)
        return diag_error(diag, (struct loc){.name = "-o"}, STATUS_BAD_INPUT,
                          "no point measures a device, only links, which belong into a cluster "
                          "file (--cluster-out)");
    if (out && strstr(base, ".json:") != NULL)
        return diag_error(diag, (struct loc){.name = "--cluster"}, STATUS_BAD_INPUT,
                          "'%s' is a file with numbers after it, on which no other file can build; "
                          "write the numbers into the file",
                          base);
    return STATUS_OK;
}

/* If --cluster is given, loads the cluster, and tells the fit of links whether a reduce-scatter moves as many bytes
 * as an all-reduce on it. */
static enum status load_cluster_for_link_fit(struct session *s, struct diag *diag)
{
    struct fitted *fitted = &s->fitted;
    const char *base = options_text(s->options, "cluster");
    struct cluster cluster;
    if (base == NULL)
        return STATUS_OK;
    size_t before = diag->size;
    enum status status = cluster_load(&cluster, &fitted->arena, base, diag);
    diag_add_place_to_errors(diag, before, "--cluster");
    if (status == STATUS_OK)
        fitted->options.reduce_scatter_as_all_reduce = cluster.fabric.reduce_scatter_as_all_reduce;
    return status;
}

static enum status write_fitted_files(struct fitted *fitted, const struct options *options,
                                      struct diag *diag)
{
    const struct fitted_files files = {
        .device_path = options_text(options, "o"),
        .device_name = options_text(options, "name"),
        .cluster_path = options_text(options, "cluster-out"),
        .base_preset = options_text(options, "cluster"),
    };
    return fitted_save(fitted, &files, diag);
}

static void print_report(struct session *s, struct text *out)
{
    struct fitted *fitted = &s->fitted;
    if (is_option_given(s->options, "json")) {
        struct text recorded = {0};
        recorded_put_report(&s->recorded, &recorded);
        calibration_print_json(&fitted->device_fit, &fitted->link_fit,
                               fitted->unrequested_link_refusal_messages.size > 0
                                   ? fitted->unrequested_link_refusal_messages.data
                                   : "",
                               recorded.size > 0 ? recorded.data : "", out);
        text_release(&recorded);
        return;
    }
    recorded_put_report(&s->recorded, out);
    fitted_put_report(fitted, out);
}

/* Prints the fits and writes the files. */
static enum status print_fit_and_write_files(struct session *s, struct diag *diag)
{
    struct text report = {0};
    print_report(s, &report);
    enum status status = command_print(&report, diag);
    if (status == STATUS_OK)
        status = write_fitted_files(&s->fitted, s->options, diag);
    text_release(&report);
    return status;
}

enum status cmd_calibrate(const struct options *options, struct diag *diag)
{
    struct session session = {.options = options};
    enum status status = check_name_option(options, diag);
    if (status == STATUS_OK)
        status = read_all_arguments(&session, diag);
    if (status == STATUS_OK)
        status = check_output_options(&session, diag);
    if (status == STATUS_OK)
        status = load_cluster_for_link_fit(&session, diag);
    const char *base = options_text(options, "base");
    if (base == NULL && session.recorded.path_count > 0)
        base = recorded_device_preset(&session.recorded);
    if (status == STATUS_OK)
        status = fitted_fit_points(&session.fitted, base, is_option_given(options, "cluster-out"),
                                   options->positional_arguments[0], diag);
    if (status == STATUS_OK || status == STATUS_NO) { /* STATUS_NO: a fit was refused */
        enum status written = print_fit_and_write_files(&session, diag);
        status = written == STATUS_OK ? status : written;
    }
    fitted_release(&session.fitted);
    recorded_release(&session.recorded);
    return status;
}

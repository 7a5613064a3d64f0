#include "cli/command.h"
#include "cli/compare_report.h"
#include "traces/compare.h"
#include "traces/csv.h"
#include "traces/kineto.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const by_names[] = {"kind", "stream", "phase", "rank"};

static const struct option compare_rows[] = {
    {.name = "tolerance",
     .kind = OPTION_TEXT,
     .value = "PERCENT",
     .unset = "no verdict",
     .help =
         "the error allowed of the step time and of memory peaks, such as 15%; exit code 1 when "
         "one is beyond it or planned arenas differ"},
    {.name = "by",
     .kind = OPTION_CHOICE,
     .names = by_names,
     .name_count = ARRAY_LEN(by_names),
     .unset = "all four",
     .help = "the one table to print"},
    {.name = "top",
     .kind = OPTION_COUNT,
     .value = "N",
     .fallback = "10",
     .low = 0,
     .high = 1000000,
     .help = "ops to list that carry most of the error"},
    {.name = "json", .kind = OPTION_FLAG, .help = "print JSON, in SI units"},
};
const struct option_set compare_options = {"comparison", compare_rows, ARRAY_LEN(compare_rows)};

/* "15%" is 0.15. A number without '%' could mean either. */
static enum status parse_tolerance(const char *text, double *tolerance, struct diag *diag)
{
    size_t size = strlen(text);
    if (size < 2 || text[size - 1] != '%' || !parse_double(text, size - 1, tolerance) ||
        !(*tolerance > 0) || *tolerance > 1000)
        return diag_error(diag, (struct loc){.name = "--tolerance"}, STATUS_BAD_INPUT,
                          "'%s' is not a percentage above 0 such as 15%%", text);
    *tolerance /= 100;
    return STATUS_OK;
}

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool is_there(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

struct source {
    struct trace trace;
    bool foreign;
};

/* A folder holds ops.csv and, as a rule, memory.csv. */
static enum status load_folder(struct source *source, const char *folder, struct diag *diag)
{
    struct text path = {0};
    text_printf(&path, "%s/ops.csv", folder);
    enum status status = trace_load_ops(&source->trace, path.data, diag);
    path.size = 0;
    text_printf(&path, "%s/memory.csv", folder);
    if (status == STATUS_OK && is_there(path.data))
        status = trace_load_memory(&source->trace, path.data, diag);
    text_release(&path);
    return status;
}

static enum status load(struct source *source, const char *path, struct diag *diag)
{
    if (is_folder(path))
        return load_folder(source, path, diag);
    struct text text = {0};
    enum status status = text_read(&text, path, diag);
    if (status == STATUS_OK) {
        source->foreign = kineto_recognise(text.data, text.size);
        status = source->foreign
                     ? kineto_parse(&source->trace, path, text.data, text.size, diag)
                     : trace_parse_ops(&source->trace, path, text.data, text.size, diag);
    }
    text_release(&text);
    return status;
}

static enum status load_both(struct source *predicted, struct source *measured,
                             const struct options *options, struct diag *diag)
{
    enum status status = load(predicted, options->argument[0], diag);
    if (status == STATUS_OK && predicted->foreign)
        return diag_error(diag, (struct loc){.name = options->argument[0]}, STATUS_BAD_INPUT,
                          "a recording of the PyTorch profiler is a measurement; the prediction, "
                          "written by `longhaul predict -o DIR`, comes first");
    if (status == STATUS_OK)
        status = load(measured, options->argument[1], diag);
    return status;
}

static enum status judge(const struct compare_report *report, struct diag *diag)
{
    const struct comparison *c = report->comparison;
    if (report->tolerance == 0 || report->verdict == VERDICT_WITHIN)
        return STATUS_OK;
    if (report->verdict == VERDICT_BEYOND)
        return STATUS_NO;
    return diag_error(diag, (struct loc){.name = report->measured}, STATUS_BAD_INPUT,
                      "no verdict: %.1f %% of the time was matched, and 90 %% must be; is it the "
                      "same model, sequence and schedule?",
                      100 * c->match_rate);
}

enum status cmd_compare(const struct options *options, struct diag *diag)
{
    struct source predicted = {0}, measured = {0};
    struct comparison comparison = {0};
    struct text out = {0};
    struct compare_report report = {
        .comparison = &comparison,
        .predicted = options->argument[0],
        .measured = options->argument[1],
        .by = options_choice(options, "by"),
        .top = (size_t)options_count(options, "top"),
    };
    enum status status = STATUS_OK;
    if (options_given(options, "tolerance"))
        status = parse_tolerance(options_text(options, "tolerance"), &report.tolerance, diag);
    if (status == STATUS_OK)
        status = load_both(&predicted, &measured, options, diag);
    if (status != STATUS_OK)
        goto out;
    report.predicted_by = trace_get(&predicted.trace, "made_by");
    report.measured_by = trace_get(&measured.trace, "made_by");
    status =
        measured.foreign
            ? compare_foreign(&comparison, &predicted.trace, &measured.trace, report.measured, diag)
            : compare_own(&comparison, &predicted.trace, &measured.trace, report.measured, diag);
    if (status != STATUS_OK)
        goto out;
    report.verdict = compare_judge(&comparison, report.tolerance);
    if (options_given(options, "json"))
        compare_report_print_json(&out, &report);
    else
        compare_report_print(&out, &report);
    status = command_print(&out, diag);
    if (status == STATUS_OK)
        status = judge(&report, diag);
out:
    text_release(&out);
    comparison_release(&comparison);
    trace_release(&predicted.trace);
    trace_release(&measured.trace);
    return status;
}

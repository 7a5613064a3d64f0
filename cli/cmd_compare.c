#include "cli/command.h"
#include "cli/measure/compare_report.h"
#include "cli/measure/compared.h"

#include <string.h>

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
     .help = "print only this table"},
    {.name = "top",
     .kind = OPTION_COUNT,
     .value = "N",
     .fallback = "10",
     .low = 0,
     .high = 1000000,
     .help = "how many of the ops that carry most of the error are listed"},
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
    struct compared compared = {0};
    struct text out = {0};
    struct compare_report report = {
        .comparison = &compared.comparison,
        .predicted = options->argument[0],
        .measured = options->argument[1],
        .by = options_choice(options, "by"),
        .top = (size_t)options_count(options, "top"),
    };
    enum status status = STATUS_OK;
    if (options_given(options, "tolerance"))
        status = parse_tolerance(options_text(options, "tolerance"), &report.tolerance, diag);
    if (status == STATUS_OK)
        status = compared_make(&compared, report.predicted, report.measured, diag);
    if (status != STATUS_OK)
        goto out;
    report.predicted_by = trace_get(&compared.predicted, "made_by");
    report.measured_by = trace_get(&compared.measured, "made_by");
    report.predicted_kernels = trace_get(&compared.predicted, "attention");
    report.measured_kernels = trace_get(&compared.measured, "attention");
    report.verdict = compare_judge(&compared.comparison, report.tolerance);
    if (options_given(options, "json"))
        compare_report_print_json(&out, &report);
    else
        compare_report_print(&out, &report);
    status = command_print(&out, diag);
    if (status == STATUS_OK)
        status = judge(&report, diag);
out:
    text_release(&out);
    compared_release(&compared);
    return status;
}

/* longhaul compare: a prediction beside a measured trace or a recording of the PyTorch profiler. */
#include "cli/command.h"
#include "cli/common/output.h"
#include "cli/common/screen.h"
#include "cli/folder/stored.h"
#include "cli/measure/compare_report.h"
#include "cli/measure/compared.h"
#include "cli/measure/explain_report.h"
#include "cli/measure/operator_report.h"
#include "cli/report/record.h"

#include <string.h>
#include <unistd.h>

static const char *const by_names[] = {"kind", "stream", "phase", "rank"};

static const struct option compare_rows[] = {
    {.name = "tolerance",
     .kind = OPTION_TEXT,
     .value_name = "PERCENT",
     .unset_text = "no verdict",
     .help = "the largest error of the step time and of memory peaks that is accepted, such as "
             "15%; exit "
             "code 1 if an error is larger, or planned arenas differ"},
    {.name = "by",
     .kind = OPTION_CHOICE,
     .names = by_names,
     .name_count = ARRAY_LEN(by_names),
     .unset_text = "all four",
     .help = "print only the table with one row per kind of work, stream, phase or rank"},
    {.name = "top",
     .kind = OPTION_INTEGER,
     .value_name = "N",
     .default_text = "10",
     .low = 0,
     .high = 1000000,
     .help = "how many ops, or operators of a recorded step, are listed; those with the largest "
             "errors come first"},
    {.name = "record",
     .kind = OPTION_TEXT,
     .value_name = "FILE",
     .help = "append the predicted and the measured step to a file that `predict --measured FILE` "
             "reads"},
    {.name = "explain",
     .kind = OPTION_FLAG,
     .help = "print why the measured step is longer or shorter than predicted: the causes, the "
             "largest first, and the extra time of each rank; MEASURED may be recordings of "
             "several ranks, one of each"},
    {.name = "all",
     .kind = OPTION_FLAG,
     .help = "print every table instead of a summary of one screen; --top says how many ops"},
    {.name = "json", .kind = OPTION_FLAG, .help = "print JSON, in SI units"},
};
const struct option_set compare_options = {"comparison", compare_rows, ARRAY_LEN(compare_rows)};

/* Parses a percentage: "15%" gives 0.15. A number without '%' is refused, since it could mean a percentage or a
 * fraction. */
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

static enum status status_of_verdict(const struct compare_report *report, struct diag *diag)
{
    const struct comparison *c = report->comparison;
    if (report->tolerance == 0 || report->verdict == VERDICT_WITHIN)
        return STATUS_OK;
    if (report->verdict == VERDICT_BEYOND)
        return STATUS_NO;
    return diag_error(diag, (struct loc){.name = report->measured_path}, STATUS_BAD_INPUT,
                      "no verdict: %.1f %% of the time was matched, and 90 %% must be; is it the "
                      "same model, sequence and schedule?",
                      100 * c->matched_time_share);
}

/* Appends the predicted and the measured step to the file of --record. Refuses this if less than
 * COMPARE_MATCHED_SHARE_MIN of the time was matched. */
static enum status append_comparison_to_record_file(const struct options *options,
                                                    const struct comparison *c, struct diag *diag)
{
    struct stored_prediction stored = {0};
    if (c->matched_time_share < COMPARE_MATCHED_SHARE_MIN)
        return diag_error(diag, (struct loc){.name = "--record"}, STATUS_BAD_INPUT,
                          "%.1f %% of the time was matched, and %.0f %% must be for the two to be "
                          "the same step",
                          100 * c->matched_time_share, 100 * COMPARE_MATCHED_SHARE_MIN);
    enum status status = stored_prediction_load(&stored, options->positional_arguments[0], diag);
    if (status == STATUS_OK)
        status = record_append_with_measured_step(
            options_text(options, "record"), json_root(&stored.json), c->measured.step_s, diag);
    stored_prediction_release(&stored);
    return status;
}

/* Refuses --explain together with --tolerance, --by, --top or --record, which do not apply to causes; and, without
 * --explain, more than one measurement. */
static enum status check_explain_options(const struct options *options, struct diag *diag)
{
    static const char *const tables[] = {"tolerance", "by", "top", "record"};
    bool explain = is_option_given(options, "explain");
    if (!explain && options->argument_count > 2)
        return diag_error(diag, (struct loc){.name = options->positional_arguments[2]},
                          STATUS_BAD_INPUT,
                          "a prediction is compared with one measurement; --explain takes "
                          "recordings of several ranks");
    for (size_t i = 0; i < ARRAY_LEN(tables) && explain; i++)
        if (is_option_given(options, tables[i]))
            return diag_error(diag, (struct loc){.name = "--explain"}, STATUS_BAD_INPUT,
                              "prints causes and takes no --%s: leave one of the two options out",
                              tables[i]);
    return STATUS_OK;
}

/* Refuses --by for a recorded step: --by groups ops of a schedule, and a recorded step is compared
 * by operator. */
static enum status check_options_with_recordings(const struct options *options, struct diag *diag)
{
    if (is_option_given(options, "by"))
        return diag_error(diag, (struct loc){.name = "--by"}, STATUS_BAD_INPUT,
                          "groups the ops of a schedule; the kernels of a recorded step are "
                          "compared by operator");
    return STATUS_OK;
}

static enum status explain_predicted_vs_measured_time(const struct options *options,
                                                      struct diag *diag)
{
    struct explanation explanation = {0};
    struct text out = {0};
    struct json_out json = {.out = &out};
    enum status status =
        compared_explain(&explanation, options->positional_arguments[0],
                         options->positional_arguments + 1, options->argument_count - 1, diag);
    if (status == STATUS_OK && is_option_given(options, "json"))
        explain_report_print_json(&json, &explanation);
    else if (status == STATUS_OK)
        explain_report_print(&out, &explanation, screen_width(STDOUT_FILENO));
    if (status == STATUS_OK)
        status = command_print(&out, diag);
    text_release(&out);
    explanation_release(&explanation);
    return status;
}

enum status cmd_compare(const struct options *options, struct diag *diag)
{
    enum status checked = check_explain_options(options, diag);
    if (checked != STATUS_OK)
        return checked;
    if (is_option_given(options, "explain"))
        return explain_predicted_vs_measured_time(options, diag);
    struct compared compared = {0};
    struct compared_operators operators = {0};
    bool recorded = false; /* the prediction is that of a recorded step */
    struct text out = {0};
    struct compare_report report = {
        .comparison = &compared.comparison,
        .predicted_path = options->positional_arguments[0],
        .measured_path = options->positional_arguments[1],
        .shown_group_table = options_index_of_choice(options, "by"),
        .listed_ops_max = (size_t)options_whole_number(options, "top"),
        .shows_all = is_option_given(options, "all"),
        .wrap_width = screen_width(STDOUT_FILENO),
    };
    enum status status = STATUS_OK;
    if (is_option_given(options, "tolerance"))
        status = parse_tolerance(options_text(options, "tolerance"), &report.tolerance, diag);
    if (status == STATUS_OK)
        status = compared_make(&compared, report.predicted_path, report.measured_path, diag);
    if (status != STATUS_OK)
        goto out;
    report.predicted_program = trace_get_key(&compared.predicted, "made_by");
    report.measured_program = trace_get_key(&compared.measured, "made_by");
    report.predicted_kernels = trace_get_key(&compared.predicted, "attention");
    report.measured_kernels = trace_get_key(&compared.measured, "attention");
    report.work_fused_into_op_before = trace_get_key(&compared.measured, "joined_ops");
    if (compared.comparison.is_profiler_trace) {
        status = compared_operators_make(&operators, &recorded, report.predicted_path,
                                         report.measured_path, &compared.recording,
                                         compared.measured.ops.rank[0], diag);
        if (status == STATUS_OK && recorded)
            status = check_options_with_recordings(options, diag);
        if (status != STATUS_OK)
            goto out;
    }
    if (recorded)
        compared.comparison.matched_time_share = compared_operators_matched_share(&operators);
    report.verdict = compare_verdict_of(&compared.comparison, report.tolerance);
    if (recorded && is_option_given(options, "json"))
        operator_report_print_json(&out, &report, &operators);
    else if (recorded)
        operator_report_print(&out, &report, &operators);
    else if (is_option_given(options, "json"))
        compare_report_print_json(&out, &report);
    else
        compare_report_print(&out, &report);
    status = command_print(&out, diag);
    if (status == STATUS_OK && is_option_given(options, "record"))
        status = append_comparison_to_record_file(options, &compared.comparison, diag);
    if (status == STATUS_OK)
        status = status_of_verdict(&report, diag);
out:
    text_release(&out);
    compared_release(&compared);
    compared_operators_release(&operators);
    return status;
}

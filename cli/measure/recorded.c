#include "cli/measure/recorded.h"

#include "cli/common/output.h"
#include "cli/measure/compared.h"
#include "cli/setup/read_setup.h"
#include "predict/observe_issue.h"

#include <stdlib.h>

void recorded_release(struct recorded_steps *r)
{
    free((void *)r->path);
    observed_release(&r->observed);
    prediction_release(&r->prediction);
    setup_release(&r->setup);
    text_release(&r->notes_on_work_without_point);
    *r = (struct recorded_steps){0};
}

void recorded_add_path(struct recorded_steps *r, const char *path)
{
    r->path = heap_realloc((void *)r->path, r->path_count + 1, sizeof *r->path);
    r->path[r->path_count++] = path;
}

static enum status add_recording_to_points(struct recorded_steps *r, const char *path,
                                           struct points *points, struct diag *diag)
{
    struct recording recording = {0};
    struct kineto_host_calls issue = {0};
    enum status status = recording_load(&recording, &issue, path, diag);
    if (status == STATUS_OK)
        status = observed_add_recording(&r->observed, &r->prediction, &recording.trace,
                                        recording.is_from_pytorch, &issue, path, diag);
    if (status == STATUS_OK && issue.step_count > 0)
        append_points_of_observed_issue(&issue, recording.trace.ops.rank[0], path, points,
                                        &r->notes_on_work_without_point);
    kineto_host_calls_release(&issue);
    trace_release(&recording.trace);
    return status;
}

/* Prints a note if less than COMPARE_MATCHED_SHARE_MIN of the recorded time belongs to ops of the schedule, or if less
 * than that share of the schedule's time was recorded. The options then probably describe another run. */
static void note_small_matched_time_share(const struct recorded_steps *r)
{
    const struct observation_set *o = &r->observed;
    struct diag note = {0};
    double share = o->all_rows_s > 0 ? 1 - o->unmatched_rows_s / o->all_rows_s : 1;
    double found = o->predicted_ops_s > 0 ? o->matched_ops_s / o->predicted_ops_s : 1;
    if (share >= COMPARE_MATCHED_SHARE_MIN && found >= COMPARE_MATCHED_SHARE_MIN)
        return;
    diag_note(&note, (struct loc){.name = r->path[0]},
              "%.0f %% of the time of what ran has an op of the schedule, and %.0f %% of the time "
              "of the schedule was recorded: check that the options (model, --seq, --batch, "
              "strategy) are those of the run that was recorded",
              100 * share, 100 * found);
    command_print_notes(&note);
    diag_release(&note);
}

enum status recorded_add_to_points(struct recorded_steps *r, const struct options *options,
                                   struct points *points, struct diag *diag)
{
    struct diag note = {0};
    const struct prediction_question question = {.setup = &r->setup, .is_exact = true};
    enum status status = setup_load(&r->setup, options, false, diag);
    if (status == STATUS_OK)
        status = prediction_memory(&r->prediction, &question, &note, diag);
    if (status == STATUS_OK)
        command_print_notes(&note);
    diag_release(&note);
    if (status == STATUS_OK)
        status = prediction_time(&r->prediction, diag);
    for (size_t i = 0; i < r->path_count && status == STATUS_OK; i++)
        status = add_recording_to_points(r, r->path[i], points, diag);
    if (status != STATUS_OK)
        return status;
    note_small_matched_time_share(r);
    if (points_header_value(points, "device") == NULL) {
        struct text device = {0};
        text_printf(&device, "the machine of %s", r->path[0]);
        points_add_header_line(points, (struct loc){.name = r->path[0]}, "device", device.data);
        text_release(&device);
    }
    append_points_of_observed_steps(&r->observed, &r->prediction, r->path[0], points,
                                    &r->notes_on_work_without_point);
    return STATUS_OK;
}

void recorded_put_report(const struct recorded_steps *r, struct text *out)
{
    const struct observation_set *o = &r->observed;
    struct observed_step_time_spread step = observed_step_spread(o);
    if (o->recording_count == 0)
        return;
    text_printf(
        out,
        "recorded   %zu step%s in %zu recording%s: median %.3f ms, %.3f to %.3f ms; %.1f %% "
        "of the time of what ran has an op of the schedule\n",
        o->step_count, o->step_count == 1 ? "" : "s", o->recording_count,
        o->recording_count == 1 ? "" : "s", 1e3 * step.median_s, 1e3 * step.low_s,
        1e3 * step.high_s, o->all_rows_s > 0 ? 100 * (1 - o->unmatched_rows_s / o->all_rows_s) : 0);
    if (o->longest_unmatched_rows.size > 0)
        text_printf(out, "strays     work that the schedule does not have: %s\n",
                    o->longest_unmatched_rows.data);
    if (r->notes_on_work_without_point.size > 0)
        text_append(out, r->notes_on_work_without_point.data, r->notes_on_work_without_point.size);
}

const char *recorded_device_preset(const struct recorded_steps *r)
{
    return r->observed.is_recorded_on_cpu ? "cpu-torch" : r->setup.cost.name;
}

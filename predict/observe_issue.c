#include "predict/observe_issue.h"

#include <string.h>

static void add_point(struct points *points, struct loc at, enum point_role role, struct work work,
                      double seconds)
{
    work.in = work.out = DTYPE_F32;
    if (seconds > 0)
        points_add(points, &(struct point){.at = at,
                                           .role = (uint8_t)role,
                                           .attention_impl = POINT_NO_IMPL,
                                           .nodes = 1,
                                           .work = work,
                                           .median_s = seconds,
                                           .p10_s = seconds,
                                           .p90_s = seconds,
                                           .repeats = 1});
}

static void add_step_points(const struct kineto_host_calls_of_step *step, struct loc at,
                            struct points *points)
{
    static const struct work fill = {.kind = WORK_FILL, .elements = {1}};
    static const struct work of[CALL_COUNT] = {
        [CALL_COLLECTIVE] = {.kind = WORK_BARRIER, .p = {1}},
        [CALL_COPY] = {.kind = WORK_H2D, .copy = {64, 0}},
        [CALL_WAIT] = {.kind = WORK_HOST_SYNC},
    };
    const struct kineto_call_sums *launch = &step->issue_calls_by_kind[CALL_LAUNCH];
    if (launch->call_count > 0 && launch->operator_count > 0) {
        double call_s = launch->total_call_s / (double)launch->call_count;
        double op_s = launch->total_gap_before_calls_s / (double)launch->operator_count;
        add_point(points, at, POINT_LAUNCH, fill, call_s);
        add_point(points, at, POINT_ISSUE, fill, op_s + call_s);
    }
    for (int kind = CALL_COLLECTIVE; kind < CALL_COUNT; kind++) {
        const struct kineto_call_sums *calls = &step->issue_calls_by_kind[kind];
        if (calls->call_count > 0)
            add_point(points, at, POINT_ISSUE, of[kind],
                      (calls->total_call_s + calls->total_gap_before_calls_s) /
                          (double)calls->call_count);
    }
}

static void put_count_per_step(struct text *out, const char *separator, size_t count, size_t steps,
                               const char *one, const char *many)
{
    double each = (double)count / (double)steps;
    text_printf(out, "%s%.*f %s", separator, each >= 10 || each == (double)(size_t)each ? 0 : 1,
                each, each == 1 ? one : many);
}

void append_points_of_observed_issue(const struct kineto_host_calls *issue, uint32_t rank,
                                     const char *name, struct points *points, struct text *notes)
{
    static const char *const one[CALL_COUNT] = {"kernel", "collective", "copy", "wait"};
    static const char *const many[CALL_COUNT] = {"kernels", "collectives", "copies", "waits"};
    struct loc at = {.name = arena_text(&points->arena, name, strlen(name))};
    struct kineto_host_calls_of_step sum;
    memset(&sum, 0, sizeof sum);
    for (size_t i = 0; i < issue->step_count; i++) {
        const struct kineto_host_calls_of_step *step = &issue->steps[i];
        add_step_points(step, at, points);
        for (int kind = 0; kind < CALL_COUNT; kind++) {
            sum.issue_calls_by_kind[kind].call_count += step->issue_calls_by_kind[kind].call_count;
            sum.issue_calls_by_kind[kind].operator_count +=
                step->issue_calls_by_kind[kind].operator_count;
        }
        sum.gpu_waiting_call_count += step->gpu_waiting_call_count;
        sum.pause_count += step->pause_count;
        sum.sum_of_pauses_s += step->sum_of_pauses_s;
        sum.empty_stream_launch_count += step->empty_stream_launch_count;
        sum.total_empty_stream_launch_delay_s += step->total_empty_stream_launch_delay_s;
    }
    text_printf(notes, "host       rank %u, a step: ", rank);
    for (int kind = 0; kind < CALL_COUNT; kind++)
        put_count_per_step(notes, kind == 0 ? "" : ", ", sum.issue_calls_by_kind[kind].call_count,
                           issue->step_count, one[kind], many[kind]);
    put_count_per_step(notes, "; ", sum.issue_calls_by_kind[CALL_LAUNCH].operator_count,
                       issue->step_count, "operator", "operators");
    text_puts(notes, " launched; left out");
    put_count_per_step(notes, " ", sum.gpu_waiting_call_count, issue->step_count, "held call",
                       "held calls");
    put_count_per_step(notes, ", ", sum.pause_count, issue->step_count, "pause", "pauses");
    text_printf(notes, " (%.3f ms)", 1e3 * sum.sum_of_pauses_s / (double)issue->step_count);
    if (issue->graph_launch_count > 0)
        put_count_per_step(notes, ", ", issue->graph_launch_count, issue->step_count, "graph",
                           "graphs");
    if (sum.empty_stream_launch_count > 0)
        text_printf(notes,
                    "; on an empty stream a kernel starts %.1f us after its launch began, which no "
                    "number of a device stands for",
                    1e6 * sum.total_empty_stream_launch_delay_s /
                        (double)sum.empty_stream_launch_count);
    text_putc(notes, '\n');
}

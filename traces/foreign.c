/* Classifies the rows of both traces, and turns their steps into sequences, which traces/align.h aligns. */
#include "traces/foreign.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_timed_rows(const void *left, const void *right)
{
    const struct row_with_times *a = left, *b = right;
    if (a->step != b->step)
        return a->step < b->step ? -1 : 1;
    if (a->start_s != b->start_s)
        return a->start_s < b->start_s ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

struct row_with_times *foreign_list_rows_by_start(const struct trace *trace, uint32_t rank,
                                                  bool by_step, size_t *count)
{
    const struct trace_ops *ops = &trace->ops;
    struct row_with_times *row = heap_alloc(ops->count + 1, sizeof *row);
    *count = 0;
    for (size_t i = 0; i < ops->count; i++)
        if (ops->rank[i] == rank)
            row[(*count)++] =
                (struct row_with_times){by_step ? ops->step[i] : 0, (uint32_t)i, ops->start_s[i]};
    if (*count > 0)
        qsort(row, *count, sizeof *row, compare_timed_rows);
    return row;
}

static enum align_lane align_lane_of_kernel_class(enum kernel_class class)
{
    return class == CLASS_COMMUNICATION ? LANE_COMMUNICATION
           : class == CLASS_COPY        ? LANE_COPY
                                        : LANE_COMPUTE;
}

enum kernel_class foreign_class_of_row(const struct predicted_trace_and_recording *f,
                                       bool is_measured, uint32_t row)
{
    /* A recorded row has its class as its region (traces/kineto.h); the class of a predicted one follows from its
     * kind. */
    enum kernel_class class = is_measured ? f->measured_class[f->measured->ops.region[row]]
                                          : f->predicted_class[f->predicted->ops.kind[row]];
    return class == CLASS_NORM && f->counts_norms_as_elementwise ? CLASS_ELEMENTWISE : class;
}

void foreign_step_items_init(const struct predicted_trace_and_recording *f, bool is_measured,
                             const struct row_with_times *row, size_t count,
                             struct step_item_sequences_by_lane *step)
{
    const struct trace *trace = is_measured ? f->measured : f->predicted;
    *step = (struct step_item_sequences_by_lane){.start_s = INFINITY, .end_s = -INFINITY};
    for (size_t i = 0; i < count; i++) {
        enum kernel_class class = foreign_class_of_row(f, is_measured, row[i].row);
        double end_s = trace->ops.end_s[row[i].row];
        step->start_s = fmin(step->start_s, row[i].start_s);
        step->end_s = fmax(step->end_s, end_s);
        if (class == CLASS_NO_WORK)
            continue;
        step->classified_row_count++;
        step->busy_s += end_s - row[i].start_s;
        align_add_row(&step->lanes[align_lane_of_kernel_class(class)], trace, row[i].row, class);
    }
    for (int lane = 0; lane < LANE_COUNT; lane++)
        align_find_periods(&step->lanes[lane]);
}

void foreign_step_items_release(struct step_item_sequences_by_lane *step)
{
    for (int lane = 0; lane < LANE_COUNT; lane++)
        align_release(&step->lanes[lane]);
}

static bool trace_has_class(const struct trace *trace, const uint16_t *label,
                            const enum kernel_class *class, enum kernel_class wanted)
{
    for (size_t i = 0; i < trace->ops.count; i++)
        if (class[label[i]] == wanted)
            return true;
    return false;
}

static void classify_rows(struct predicted_trace_and_recording *f)
{
    f->predicted_class = heap_alloc(f->predicted->label_count + 1, sizeof *f->predicted_class);
    f->measured_class = heap_alloc(f->measured->label_count + 1, sizeof *f->measured_class);
    for (size_t i = 0; i < f->predicted->label_count; i++)
        f->predicted_class[i] = kernel_class_of_kind(f->predicted->labels[i]);
    for (size_t i = 0; i < f->measured->label_count; i++) {
        f->measured_class[i] = CLASS_OTHER;
        for (int class = 0; class < CLASS_COUNT; class ++)
            if (strcmp(f->measured->labels[i], kernel_class_name((enum kernel_class) class)) == 0)
                f->measured_class[i] = (enum kernel_class) class;
    }
    /* If one program writes norms as element-wise operators, the norms of the other can only match those. */
    f->counts_norms_as_elementwise =
        !trace_has_class(f->predicted, f->predicted->ops.kind, f->predicted_class, CLASS_NORM) ||
        !trace_has_class(f->measured, f->measured->ops.region, f->measured_class, CLASS_NORM);
}

enum status foreign_check_item_count(const struct step_item_sequences_by_lane *step,
                                     const char *name, struct diag *diag)
{
    for (int lane = 0; lane < LANE_COUNT; lane++)
        if (step->lanes[lane].item_count > ALIGN_ITEMS_MAX)
            return diag_error(
                diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                "%zu matrix products, messages and copies lie in one step, more than the %d that "
                "can be aligned; mark the steps with profiler.step() when recording",
                step->lanes[lane].item_count, ALIGN_ITEMS_MAX);
    return STATUS_OK;
}

/* Sets *chosen to the predicted rank with which a recording of `rank` is compared: that rank or, if only one rank was
 * predicted, that one. Fails if several ranks were predicted, but not the recorded one. */
static enum status choose_predicted_rank(const struct trace *predicted, uint32_t rank,
                                         const char *name, uint32_t *chosen, struct diag *diag)
{
    bool single = true, found = false;
    for (size_t i = 0; i < predicted->ops.count; i++) {
        found |= predicted->ops.rank[i] == rank;
        single &= predicted->ops.rank[i] == predicted->ops.rank[0];
    }
    *chosen = found ? rank : predicted->ops.rank[0];
    if (found || single)
        return STATUS_OK;
    return diag_error(
        diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
        "rank %u is not in the prediction, which has only one of all equal ranks; predict "
        "with --exact to have all ranks",
        rank);
}

enum status foreign_sides_init(struct predicted_trace_and_recording *f,
                               const struct trace *predicted, const struct trace *measured,
                               const char *name, struct diag *diag)
{
    *f = (struct predicted_trace_and_recording){.predicted = predicted, .measured = measured};
    if (predicted->ops.count == 0 || measured->ops.count == 0)
        return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                          "nothing to compare: the %s trace has no rows",
                          predicted->ops.count == 0 ? "predicted" : "measured");
    f->recorded_rank = measured->ops.rank[0];
    enum status status =
        choose_predicted_rank(predicted, f->recorded_rank, name, &f->predicted_rank, diag);
    if (status == STATUS_OK)
        classify_rows(f);
    return status;
}

void foreign_sides_release(struct predicted_trace_and_recording *f)
{
    free(f->predicted_class);
    free(f->measured_class);
    *f = (struct predicted_trace_and_recording){0};
}

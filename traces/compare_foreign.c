/* Compares a foreign trace. Every measured step is aligned with the predicted one, lane by lane (traces/align.h): each
 * block is a match, and the rows between two blocks are matched class by class. Equal matches of several steps then
 * become a pair. */
#include "traces/compare.h"
#include "traces/foreign.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A match in one measured step. Matches of two steps are of the same pair if lane, class, phase, first_row and
 * row_count are equal. */
struct row_match_in_step {
    uint32_t lane, first_row, row_count; /* of the predicted rows */
    uint8_t class, phase;
    uint32_t measured_rows;
    double predicted_s, measured_s;
};

struct profiler_trace_comparison {
    struct comparison *comparison;
    struct predicted_trace_and_recording sides;
    struct row_match_in_step *matches;
    size_t match_count, capacity;
};

/* ---- matches ---- */

static void add_match(struct profiler_trace_comparison *f, struct row_match_in_step match)
{
    if (f->match_count == f->capacity) {
        f->capacity = heap_next_capacity(f->capacity, f->match_count + 1);
        f->matches = heap_realloc(f->matches, f->capacity, sizeof *f->matches);
    }
    f->matches[f->match_count++] = match;
}

static void match_rows_of_block(struct profiler_trace_comparison *f, uint32_t lane,
                                const struct align_sequence *p, const struct align_sequence *m,
                                const struct align_matched_items *block)
{
    const struct align_item *first = &p->items[block->a_begin];
    struct row_match_in_step match = {
        .lane = lane, .first_row = first->first_row, .class = first->class, .phase = first->phase};
    for (uint32_t i = block->a_begin; i < block->a_begin + block->a_count; i++) {
        match.row_count += p->items[i].row_count;
        match.predicted_s += p->items[i].seconds;
    }
    for (uint32_t i = block->b_begin; i < block->b_begin + block->b_count; i++) {
        match.measured_rows += m->items[i].row_count;
        match.measured_s += m->items[i].seconds;
    }
    add_match(f, match);
}

/* The rows of one class and phase that lie between two blocks. Arrays have an element for each side: [0] predicted, [1]
 * measured. */
struct class_rows_between_blocks {
    uint32_t first_row; /* the first predicted row */
    uint32_t row_count[2];
    double seconds[2];
};

struct rows_between_blocks {
    struct class_rows_between_blocks by_class[CLASS_COUNT][ALIGN_PHASE_COUNT];
};

static void add_row_between_blocks(struct rows_between_blocks *gap,
                                   const struct align_row_outside_items *row_outside_items,
                                   int side)
{
    struct class_rows_between_blocks *bucket =
        &gap->by_class[row_outside_items->class][row_outside_items->phase];
    if (side == 0 && bucket->row_count[0] == 0)
        bucket->first_row = row_outside_items->row_of_trace;
    bucket->row_count[side]++;
    bucket->seconds[side] += row_outside_items->seconds;
}

static void match_class_rows(struct profiler_trace_comparison *f, uint32_t lane, int class,
                             int phase, const struct class_rows_between_blocks *bucket)
{
    if (bucket->row_count[0] > 0 && bucket->row_count[1] > 0)
        add_match(f,
                  (struct row_match_in_step){lane, bucket->first_row, bucket->row_count[0],
                                             (uint8_t) class, (uint8_t)phase, bucket->row_count[1],
                                             bucket->seconds[0], bucket->seconds[1]});
}

/* Matches the rows between two blocks by class and phase. If rows of a class then remain on both sides, in different
 * phases, they are one more match: for instance a loss whose backward one side calls forward. Rows of CLASS_OTHER,
 * whose class does not follow from their name, are not matched. */
static void match_rows_between_blocks(struct profiler_trace_comparison *f, uint32_t lane,
                                      const struct rows_between_blocks *gap)
{
    for (int class = 0; class < CLASS_COUNT; class ++) {
        struct class_rows_between_blocks rest = {0};
        int rest_phase = ALIGN_PHASE_UNKNOWN;
        for (int phase = 0; phase < ALIGN_PHASE_COUNT && class != CLASS_OTHER; phase++) {
            const struct class_rows_between_blocks *bucket = &gap->by_class[class][phase];
            match_class_rows(f, lane, class, phase, bucket);
            if (bucket->row_count[0] > 0 && bucket->row_count[1] > 0)
                continue;
            if (rest.row_count[0] == 0 && bucket->row_count[0] > 0) {
                rest.first_row = bucket->first_row;
                rest_phase = phase;
            }
            for (int side = 0; side < 2; side++) {
                rest.row_count[side] += bucket->row_count[side];
                rest.seconds[side] += bucket->seconds[side];
            }
        }
        match_class_rows(f, lane, class, rest_phase, &rest);
    }
}

static void match_rows_of_lane(struct profiler_trace_comparison *f, uint32_t lane,
                               const struct align_sequence *p, const struct align_sequence *m)
{
    struct align_matched_items *block;
    size_t count = align_blocks(p, m, &block);
    size_t i = 0, j = 0;
    for (size_t k = 0; k <= count; k++) {
        struct rows_between_blocks gap = {0}; /* the rows before block k */
        for (; i < p->rows_outside_items_count &&
               (k == count || p->rows_outside_items[i].items_before_row <= block[k].a_begin);
             i++)
            add_row_between_blocks(&gap, &p->rows_outside_items[i], 0);
        for (; j < m->rows_outside_items_count &&
               (k == count || m->rows_outside_items[j].items_before_row <= block[k].b_begin);
             j++)
            add_row_between_blocks(&gap, &m->rows_outside_items[j], 1);
        match_rows_between_blocks(f, lane, &gap);
        if (k < count)
            match_rows_of_block(f, lane, p, m, &block[k]);
    }
    free(block);
}

/* ---- medians over steps ---- */

static int compare_matches(const void *left, const void *right)
{
    const struct row_match_in_step *a = left, *b = right;
    if (a->lane != b->lane)
        return a->lane < b->lane ? -1 : 1;
    if (a->first_row != b->first_row)
        return a->first_row < b->first_row ? -1 : 1;
    if (a->row_count != b->row_count)
        return a->row_count < b->row_count ? -1 : 1;
    if (a->class != b->class)
        return a->class < b->class ? -1 : 1;
    if (a->phase != b->phase)
        return a->phase < b->phase ? -1 : 1;
    return a->measured_s < b->measured_s ? -1 : a->measured_s > b->measured_s;
}

static bool is_same_match(const struct row_match_in_step *a, const struct row_match_in_step *b)
{
    return a->lane == b->lane && a->first_row == b->first_row && a->row_count == b->row_count &&
           a->class == b->class && a->phase == b->phase;
}

/* Makes a pair of the matches that are equal in more than half of the steps, with the median of their measured times.
 * The rows of all other matches count as unmatched. */
static void add_pairs(struct profiler_trace_comparison *f, uint32_t rank)
{
    static const char *const phases[ALIGN_PHASE_COUNT] = {"", "forward", "recompute", "backward",
                                                          "optimizer"};
    struct comparison *c = f->comparison;
    const struct trace_ops *ops = &f->sides.predicted->ops;
    double *scratch = heap_alloc(f->match_count + 1, sizeof *scratch);
    double measured_s = 0, predicted_s = 0;
    size_t measured_rows = 0, predicted_rows = 0;
    if (f->match_count > 0)
        qsort(f->matches, f->match_count, sizeof *f->matches, compare_matches);
    for (size_t i = 0, end; i < f->match_count; i = end) {
        for (end = i; end < f->match_count && is_same_match(&f->matches[i], &f->matches[end]);
             end++)
            scratch[end - i] = f->matches[end].measured_s;
        if (2 * (end - i) <= c->measured_steps)
            continue;
        const struct row_match_in_step *match = &f->matches[i + (end - i) / 2];
        struct compare_pair *pair = comparison_add_pair(c);
        *pair = (struct compare_pair){
            .rank = rank,
            .op = ops->op[match->first_row],
            .kind = kernel_class_name((enum kernel_class)match->class),
            .stream = f->sides.predicted->labels[ops->stream[match->first_row]],
            .phase = phases[match->phase],
            .layer = ops->layer[match->first_row],
            .predicted_rows = match->row_count,
            .measured_rows = match->measured_rows,
            .predicted_s = match->predicted_s,
            .measured_s = comparison_sort_and_find_median(scratch, end - i),
        };
        predicted_s += match->predicted_s;
        predicted_rows += match->row_count;
        for (size_t k = i; k < end; k++) {
            measured_s += f->matches[k].measured_s;
            measured_rows += f->matches[k].measured_rows;
        }
    }
    free(scratch);
    /* Pairs from different steps may have predicted rows in common, so the sums over pairs may exceed those over
     * rows. */
    c->predicted.unmatched_s = fmax(0, c->predicted.busy_s - predicted_s);
    c->measured.unmatched_s = fmax(0, c->measured.busy_s - measured_s / (double)c->measured_steps);
    c->predicted.unmatched_rows =
        c->predicted.rows > predicted_rows ? c->predicted.rows - predicted_rows : 0;
    c->measured.unmatched_rows = c->measured.rows - measured_rows;
}

/* ---- all steps ---- */

static enum status align_recorded_steps(struct profiler_trace_comparison *f,
                                        const struct step_item_sequences_by_lane *p,
                                        const struct row_with_times *row, size_t count,
                                        const char *name, struct diag *diag)
{
    struct comparison *c = f->comparison;
    double *spans = heap_alloc(count + 1, sizeof *spans);
    enum status status = STATUS_OK;
    for (size_t i = 0, end; i < count && status == STATUS_OK; i = end) {
        for (end = i; end < count && row[end].step == row[i].step;)
            end++;
        struct step_item_sequences_by_lane m;
        foreign_step_items_init(&f->sides, true, row + i, end - i, &m);
        status = foreign_check_item_count(&m, name, diag);
        for (uint32_t lane = 0; lane < LANE_COUNT && status == STATUS_OK; lane++)
            match_rows_of_lane(f, lane, &p->lanes[lane], &m.lanes[lane]);
        c->measured_period = m.lanes[LANE_COMPUTE].forward_period;
        c->measured.rows += m.classified_row_count;
        c->measured.busy_s += m.busy_s;
        spans[c->measured_steps++] = m.end_s - m.start_s;
        foreign_step_items_release(&m);
    }
    c->measured.busy_s /= (double)c->measured_steps;
    c->measured.step_s = comparison_sort_and_find_median(spans, c->measured_steps);
    c->shortest_step_s = spans[0];
    c->longest_step_s = spans[c->measured_steps - 1];
    free(spans);
    return status;
}

enum status compare_with_profiler_trace(struct comparison *c, const struct trace *predicted,
                                        const struct trace *measured, const char *name,
                                        struct diag *diag)
{
    struct profiler_trace_comparison f = {.comparison = c};
    enum status status = foreign_sides_init(&f.sides, predicted, measured, name, diag);
    if (status != STATUS_OK)
        return status;
    size_t p_count, m_count;
    struct row_with_times *p_row =
        foreign_list_rows_by_start(predicted, f.sides.predicted_rank, false, &p_count);
    struct row_with_times *m_row =
        foreign_list_rows_by_start(measured, f.sides.recorded_rank, true, &m_count);
    struct step_item_sequences_by_lane p;
    foreign_step_items_init(&f.sides, false, p_row, p_count, &p);
    c->is_profiler_trace = true;
    c->compared_rank_count = 1;
    c->predicted.rows = p.classified_row_count;
    c->predicted.busy_s = p.busy_s;
    c->predicted.step_s = comparison_step_s_of_header(predicted, p.end_s - p.start_s);
    c->predicted_period = p.lanes[LANE_COMPUTE].forward_period;
    status = foreign_check_item_count(&p, "the prediction", diag);
    if (status == STATUS_OK)
        status = align_recorded_steps(&f, &p, m_row, m_count, name, diag);
    if (status == STATUS_OK) {
        add_pairs(&f, f.sides.recorded_rank);
        comparison_finish(c, predicted, measured);
    }
    foreign_step_items_release(&p);
    foreign_sides_release(&f.sides);
    free(f.matches);
    free(p_row);
    free(m_row);
    return status;
}

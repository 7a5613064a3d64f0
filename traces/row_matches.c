#include "traces/row_matches.h"

#include "traces/foreign.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The two sorts of rows between blocks: those of the optimizer, and all others. */
enum { BETWEEN_WORK, BETWEEN_OPTIMIZER, BETWEEN_COUNT };

struct row_match_maker {
    struct row_matches *out;
    struct predicted_trace_and_recording sides;
    /* [labels of the recording] seconds of the strays of that name */
    double *stray_seconds_by_label;
    /* [labels of the recording] number of the strays of that name */
    size_t *stray_row_count_by_label;
};

static struct predicted_rows_match *add_match(struct row_matches *m)
{
    if (m->match_count == m->capacity) {
        m->capacity = heap_next_capacity(m->capacity, m->match_count + 1);
        m->matches = heap_realloc(m->matches, m->capacity, sizeof *m->matches);
    }
    struct predicted_rows_match *match = &m->matches[m->match_count++];
    *match = (struct predicted_rows_match){.step = (uint32_t)m->step_count,
                                           .row_begin = (uint32_t)m->row_count};
    return match;
}

static void add_row(struct row_matches *m, struct predicted_rows_match *match, uint32_t row)
{
    if (m->row_count == m->row_capacity) {
        m->row_capacity = heap_next_capacity(m->row_capacity, m->row_count + 1);
        m->rows = heap_realloc(m->rows, m->row_capacity, sizeof *m->rows);
    }
    m->rows[m->row_count++] = row;
    match->row_count++;
}

static void add_stray(struct row_match_maker *maker, uint32_t row)
{
    const struct trace_ops *ops = &maker->sides.measured->ops;
    maker->stray_seconds_by_label[ops->kind[row]] += ops->end_s[row] - ops->start_s[row];
    maker->stray_row_count_by_label[ops->kind[row]]++;
    maker->out->is_stray_by_row[row] = true;
}

static void match_rows_of_block(struct row_match_maker *maker, const struct align_sequence *p,
                                const struct align_sequence *m,
                                const struct align_matched_items *block)
{
    struct predicted_rows_match *match = add_match(maker->out);
    for (uint32_t i = block->a_begin; i < block->a_begin + block->a_count; i++)
        for (uint32_t k = 0; k < p->items[i].row_count; k++)
            add_row(maker->out, match, p->rows[p->items[i].rows_begin + k]);
    for (uint32_t i = block->b_begin; i < block->b_begin + block->b_count; i++) {
        match->measured_rows += m->items[i].row_count;
        match->measured_s += m->items[i].seconds;
    }
}

/* The rows of one side that lie between two blocks. */
struct rows_between_blocks_of_side {
    const struct align_row_outside_items *rows_outside_items;
    size_t rows_outside_items_count;
};

static bool is_row_outside_items_of_sort(const struct align_row_outside_items *row_outside_items,
                                         int sort)
{
    return (row_outside_items->class == CLASS_OPTIMIZER) == (sort == BETWEEN_OPTIMIZER);
}

static size_t count_rows_of_sort(const struct rows_between_blocks_of_side *gap, int sort)
{
    size_t count = 0;
    for (size_t i = 0; i < gap->rows_outside_items_count; i++)
        count += is_row_outside_items_of_sort(&gap->rows_outside_items[i], sort);
    return count;
}

/* Makes a match of rows between two blocks: of the optimizer's rows (sort BETWEEN_OPTIMIZER), of all other rows
 * (BETWEEN_WORK), or, with `both`, of all rows. p, m: the predicted and the measured rows there. Measured rows are
 * strays if there is no such predicted row, or if they are of CLASS_OTHER. */
static void match_outside_rows_of_sort(struct row_match_maker *maker,
                                       const struct rows_between_blocks_of_side *p,
                                       const struct rows_between_blocks_of_side *m, int sort,
                                       bool both)
{
    struct predicted_rows_match *match = NULL;
    for (size_t i = 0; i < p->rows_outside_items_count; i++)
        if (both || is_row_outside_items_of_sort(&p->rows_outside_items[i], sort)) {
            if (match == NULL)
                match = add_match(maker->out);
            match->is_of_rows_between_blocks = true;
            add_row(maker->out, match, p->rows_outside_items[i].row_of_trace);
        }
    for (size_t i = 0; i < m->rows_outside_items_count; i++) {
        if (!both && !is_row_outside_items_of_sort(&m->rows_outside_items[i], sort))
            continue;
        if (match == NULL || m->rows_outside_items[i].class == CLASS_OTHER) {
            add_stray(maker, m->rows_outside_items[i].row_of_trace);
            continue;
        }
        match->measured_rows++;
        match->measured_s += m->rows_outside_items[i].seconds;
    }
}

/* Matches the rows between two blocks: the optimizer's rows apart from the others if both sides have some of them; else
 * all rows as one match. */
static void match_rows_between_blocks(struct row_match_maker *maker,
                                      const struct rows_between_blocks_of_side *p,
                                      const struct rows_between_blocks_of_side *m)
{
    bool apart = count_rows_of_sort(p, BETWEEN_OPTIMIZER) > 0 &&
                 count_rows_of_sort(m, BETWEEN_OPTIMIZER) > 0;
    for (int sort = 0; sort < (apart ? BETWEEN_COUNT : 1); sort++)
        match_outside_rows_of_sort(maker, p, m, sort, !apart);
}

/* Returns the rows of s->rows_outside_items[], from *from on, that lie before item `until`; with `last`, all that are
 * left. Moves *from past them. */
static struct rows_between_blocks_of_side
take_rows_before_next_block(const struct align_sequence *s, size_t *from, bool last, uint32_t until)
{
    struct rows_between_blocks_of_side gap = {s->rows_outside_items + *from, 0};
    while (*from < s->rows_outside_items_count &&
           (last || s->rows_outside_items[*from].items_before_row <= until)) {
        ++*from;
        gap.rows_outside_items_count++;
    }
    return gap;
}

/* Marks the rows of the recorded items `from` to `until` - 1, which are in no block, as strays. */
static void mark_rows_of_items_as_strays(struct row_match_maker *maker,
                                         const struct align_sequence *m, uint32_t from,
                                         uint32_t until)
{
    for (uint32_t i = from; i < until; i++)
        for (uint32_t k = 0; k < m->items[i].row_count; k++)
            add_stray(maker, m->rows[m->items[i].rows_begin + k]);
}

static void match_rows_of_lane(struct row_match_maker *maker, const struct align_sequence *p,
                               const struct align_sequence *m)
{
    struct align_matched_items *block;
    size_t count = align_blocks(p, m, &block), i = 0, j = 0;
    uint32_t done = 0;
    for (size_t k = 0; k <= count; k++) {
        bool last = k == count;
        uint32_t b = last ? (uint32_t)m->item_count : block[k].b_begin;
        struct rows_between_blocks_of_side before_p =
            take_rows_before_next_block(p, &i, last, last ? 0 : block[k].a_begin);
        struct rows_between_blocks_of_side before_m = take_rows_before_next_block(m, &j, last, b);
        match_rows_between_blocks(maker, &before_p, &before_m);
        mark_rows_of_items_as_strays(maker, m, done, b);
        if (last)
            break;
        match_rows_of_block(maker, p, m, &block[k]);
        done = b + block[k].b_count;
    }
    free(block);
}

/* Returns the seconds of a step in which no row runs; row[] is in order of start. */
static double idle_s_of_step(const struct trace *trace, const struct row_with_times *row,
                             size_t count)
{
    double idle_s = 0, until_s = row[0].start_s;
    for (size_t i = 0; i < count; i++) {
        idle_s += fmax(0, row[i].start_s - until_s);
        until_s = fmax(until_s, trace->ops.end_s[row[i].row]);
    }
    return idle_s;
}

static enum status match_rows_of_recorded_steps(struct row_match_maker *maker,
                                                const struct step_item_sequences_by_lane *p,
                                                const struct row_with_times *row, size_t count,
                                                const char *name, struct diag *diag)
{
    struct row_matches *out = maker->out;
    enum status status = STATUS_OK;
    out->recorded_steps = heap_alloc(count + 1, sizeof *out->recorded_steps);
    for (size_t i = 0, end; i < count && status == STATUS_OK; i = end) {
        for (end = i; end < count && row[end].step == row[i].step;)
            end++;
        struct step_item_sequences_by_lane m;
        foreign_step_items_init(&maker->sides, true, row + i, end - i, &m);
        status = foreign_check_item_count(&m, name, diag);
        for (uint32_t lane = 0; lane < LANE_COUNT && status == STATUS_OK; lane++)
            match_rows_of_lane(maker, &p->lanes[lane], &m.lanes[lane]);
        out->recorded_steps[out->step_count++] =
            (struct step_of_recording){row[i].step, m.end_s - m.start_s,
                                       idle_s_of_step(maker->sides.measured, row + i, end - i)};
        foreign_step_items_release(&m);
    }
    return status;
}

static int compare_strays_by_seconds(const void *left, const void *right)
{
    const struct stray_rows *a = left, *b = right;
    if (a->seconds != b->seconds)
        return a->seconds > b->seconds ? -1 : 1;
    return strcmp(a->name, b->name);
}

static void list_strays(struct row_match_maker *maker)
{
    struct row_matches *out = maker->out;
    const struct trace *trace = maker->sides.measured;
    out->strays = heap_alloc(trace->label_count + 1, sizeof *out->strays);
    for (size_t i = 0; i < trace->label_count; i++)
        if (maker->stray_row_count_by_label[i] > 0)
            out->strays[out->stray_count++] =
                (struct stray_rows){trace->labels[i], maker->stray_row_count_by_label[i],
                                    maker->stray_seconds_by_label[i]};
    if (out->stray_count > 0)
        qsort(out->strays, out->stray_count, sizeof *out->strays, compare_strays_by_seconds);
}

enum status row_matches_find(struct row_matches *matches, const struct trace *predicted,
                             const struct trace *measured, const char *name, struct diag *diag)
{
    struct row_match_maker maker = {.out = matches};
    enum status status = foreign_sides_init(&maker.sides, predicted, measured, name, diag);
    if (status != STATUS_OK)
        return status;
    matches->rank = maker.sides.recorded_rank;
    matches->predicted_rank = maker.sides.predicted_rank;
    size_t p_count, m_count;
    struct row_with_times *p_row =
        foreign_list_rows_by_start(predicted, maker.sides.predicted_rank, false, &p_count);
    struct row_with_times *m_row =
        foreign_list_rows_by_start(measured, maker.sides.recorded_rank, true, &m_count);
    struct step_item_sequences_by_lane p;
    maker.stray_seconds_by_label =
        heap_zalloc(measured->label_count + 1, sizeof *maker.stray_seconds_by_label);
    maker.stray_row_count_by_label =
        heap_zalloc(measured->label_count + 1, sizeof *maker.stray_row_count_by_label);
    matches->is_stray_by_row =
        heap_zalloc(measured->ops.count + 1, sizeof *matches->is_stray_by_row);
    foreign_step_items_init(&maker.sides, false, p_row, p_count, &p);
    status = foreign_check_item_count(&p, "the prediction", diag);
    if (status == STATUS_OK)
        status = match_rows_of_recorded_steps(&maker, &p, m_row, m_count, name, diag);
    if (status == STATUS_OK)
        list_strays(&maker);
    foreign_step_items_release(&p);
    foreign_sides_release(&maker.sides);
    free(maker.stray_seconds_by_label);
    free(maker.stray_row_count_by_label);
    free(p_row);
    free(m_row);
    return status;
}

void row_matches_release(struct row_matches *matches)
{
    free(matches->matches);
    free(matches->rows);
    free(matches->recorded_steps);
    free(matches->strays);
    free(matches->is_stray_by_row);
    *matches = (struct row_matches){0};
}

#include "traces/row_matches.h"

#include "traces/foreign.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows between blocks are of two sorts (match_gap()). */
enum { BETWEEN_WORK, BETWEEN_OPTIMIZER, BETWEEN_COUNT };

struct maker {
    struct row_matches *out;
    struct foreign sides;
    double *stray_s; /* seconds of strays by their kind's label in the recording */
    size_t *stray_rows;
};

static struct block_match *add_match(struct row_matches *m)
{
    if (m->count == m->capacity) {
        m->capacity = heap_next_capacity(m->capacity, m->count + 1);
        m->match = heap_realloc(m->match, m->capacity, sizeof *m->match);
    }
    struct block_match *match = &m->match[m->count++];
    *match = (struct block_match){.step = (uint32_t)m->steps, .row_begin = (uint32_t)m->row_count};
    return match;
}

static void add_row(struct row_matches *m, struct block_match *match, uint32_t row)
{
    if (m->row_count == m->row_capacity) {
        m->row_capacity = heap_next_capacity(m->row_capacity, m->row_count + 1);
        m->row = heap_realloc(m->row, m->row_capacity, sizeof *m->row);
    }
    m->row[m->row_count++] = row;
    match->row_count++;
}

static void add_stray(struct maker *maker, uint32_t row)
{
    const struct trace_ops *ops = &maker->sides.measured->ops;
    maker->stray_s[ops->kind[row]] += ops->end_s[row] - ops->start_s[row];
    maker->stray_rows[ops->kind[row]]++;
    maker->out->is_stray[row] = true;
}

static void match_block(struct maker *maker, const struct align_sequence *p,
                        const struct align_sequence *m, const struct align_block *block)
{
    struct block_match *match = add_match(maker->out);
    for (uint32_t i = block->a; i < block->a + block->a_count; i++)
        for (uint32_t k = 0; k < p->item[i].rows; k++)
            add_row(maker->out, match, p->row[p->item[i].place + k]);
    for (uint32_t i = block->b; i < block->b + block->b_count; i++) {
        match->measured_rows += m->item[i].rows;
        match->measured_s += m->item[i].seconds;
    }
}

/* The fillers of one side that stand before a block. */
struct filler_gap {
    const struct align_filler *filler;
    size_t count;
};

static bool is_sort(const struct align_filler *filler, int sort)
{
    return (filler->class == CLASS_OPTIMIZER) == (sort == BETWEEN_OPTIMIZER);
}

static size_t count_sort(const struct filler_gap *gap, int sort)
{
    size_t count = 0;
    for (size_t i = 0; i < gap->count; i++)
        count += is_sort(&gap->filler[i], sort);
    return count;
}

static void match_sort(struct maker *maker, const struct filler_gap *p, const struct filler_gap *m,
                       int sort, bool both)
{
    struct block_match *match = NULL;
    for (size_t i = 0; i < p->count; i++)
        if (both || is_sort(&p->filler[i], sort)) {
            if (match == NULL)
                match = add_match(maker->out);
            match->between_blocks = true;
            add_row(maker->out, match, p->filler[i].row);
        }
    for (size_t i = 0; i < m->count; i++) {
        if (!both && !is_sort(&m->filler[i], sort))
            continue;
        if (match == NULL || m->filler[i].class == CLASS_OTHER) {
            add_stray(maker, m->filler[i].row);
            continue;
        }
        match->measured_rows++;
        match->measured_s += m->filler[i].seconds;
    }
}

/* Matches optimizer rows apart from others if both sides have some; else all rows of the gap are one match. */
static void match_gap(struct maker *maker, const struct filler_gap *p, const struct filler_gap *m)
{
    bool apart = count_sort(p, BETWEEN_OPTIMIZER) > 0 && count_sort(m, BETWEEN_OPTIMIZER) > 0;
    for (int sort = 0; sort < (apart ? BETWEEN_COUNT : 1); sort++)
        match_sort(maker, p, m, sort, !apart);
}

/* Returns the rows between blocks (fillers) that stand before item `until`, or with `last` all that are left, and moves
 * *from past them. */
static struct filler_gap take_gap(const struct align_sequence *s, size_t *from, bool last,
                                  uint32_t until)
{
    struct filler_gap gap = {s->filler + *from, 0};
    while (*from < s->filler_count && (last || s->filler[*from].place <= until)) {
        ++*from;
        gap.count++;
    }
    return gap;
}

/* Adds the items of the recording that are in no block as strays. */
static void skip_items(struct maker *maker, const struct align_sequence *m, uint32_t from,
                       uint32_t until)
{
    for (uint32_t i = from; i < until; i++)
        for (uint32_t k = 0; k < m->item[i].rows; k++)
            add_stray(maker, m->row[m->item[i].place + k]);
}

static void match_lane(struct maker *maker, const struct align_sequence *p,
                       const struct align_sequence *m)
{
    struct align_block *block;
    size_t count = align_blocks(p, m, &block), i = 0, j = 0;
    uint32_t done = 0;
    for (size_t k = 0; k <= count; k++) {
        bool last = k == count;
        uint32_t b = last ? (uint32_t)m->count : block[k].b;
        struct filler_gap before_p = take_gap(p, &i, last, last ? 0 : block[k].a);
        struct filler_gap before_m = take_gap(m, &j, last, b);
        match_gap(maker, &before_p, &before_m);
        skip_items(maker, m, done, b);
        if (last)
            break;
        match_block(maker, p, m, &block[k]);
        done = b + block[k].b_count;
    }
    free(block);
}

/* Returns the time of a step in which no row runs; rows are in order of start. */
static double idle_of(const struct trace *trace, const struct timed_row *row, size_t count)
{
    double idle_s = 0, until_s = row[0].start_s;
    for (size_t i = 0; i < count; i++) {
        idle_s += fmax(0, row[i].start_s - until_s);
        until_s = fmax(until_s, trace->ops.end_s[row[i].row]);
    }
    return idle_s;
}

static enum status match_steps(struct maker *maker, const struct foreign_step *p,
                               const struct timed_row *row, size_t count, const char *name,
                               struct diag *diag)
{
    struct row_matches *out = maker->out;
    enum status status = STATUS_OK;
    out->step = heap_alloc(count + 1, sizeof *out->step);
    for (size_t i = 0, end; i < count && status == STATUS_OK; i = end) {
        for (end = i; end < count && row[end].step == row[i].step;)
            end++;
        struct foreign_step m;
        foreign_make_step(&maker->sides, true, row + i, end - i, &m);
        status = foreign_check_size(&m, name, diag);
        for (uint32_t lane = 0; lane < LANE_COUNT && status == STATUS_OK; lane++)
            match_lane(maker, &p->lane[lane], &m.lane[lane]);
        out->step[out->steps++] = (struct recorded_step){
            row[i].step, m.end_s - m.start_s, idle_of(maker->sides.measured, row + i, end - i)};
        foreign_release_step(&m);
    }
    return status;
}

static int compare_strays(const void *left, const void *right)
{
    const struct stray_rows *a = left, *b = right;
    if (a->seconds != b->seconds)
        return a->seconds > b->seconds ? -1 : 1;
    return strcmp(a->name, b->name);
}

static void list_strays(struct maker *maker)
{
    struct row_matches *out = maker->out;
    const struct trace *trace = maker->sides.measured;
    out->stray = heap_alloc(trace->label_count + 1, sizeof *out->stray);
    for (size_t i = 0; i < trace->label_count; i++)
        if (maker->stray_rows[i] > 0)
            out->stray[out->stray_count++] =
                (struct stray_rows){trace->label[i], maker->stray_rows[i], maker->stray_s[i]};
    if (out->stray_count > 0)
        qsort(out->stray, out->stray_count, sizeof *out->stray, compare_strays);
}

enum status row_matches_make(struct row_matches *matches, const struct trace *predicted,
                             const struct trace *measured, const char *name, struct diag *diag)
{
    struct maker maker = {.out = matches};
    enum status status = foreign_make(&maker.sides, predicted, measured, name, diag);
    if (status != STATUS_OK)
        return status;
    matches->rank = maker.sides.rank;
    matches->predicted_rank = maker.sides.predicted_rank;
    size_t p_count, m_count;
    struct timed_row *p_row =
        foreign_order_rows(predicted, maker.sides.predicted_rank, false, &p_count);
    struct timed_row *m_row = foreign_order_rows(measured, maker.sides.rank, true, &m_count);
    struct foreign_step p;
    maker.stray_s = heap_zalloc(measured->label_count + 1, sizeof *maker.stray_s);
    maker.stray_rows = heap_zalloc(measured->label_count + 1, sizeof *maker.stray_rows);
    matches->is_stray = heap_zalloc(measured->ops.count + 1, sizeof *matches->is_stray);
    foreign_make_step(&maker.sides, false, p_row, p_count, &p);
    status = foreign_check_size(&p, "the prediction", diag);
    if (status == STATUS_OK)
        status = match_steps(&maker, &p, m_row, m_count, name, diag);
    if (status == STATUS_OK)
        list_strays(&maker);
    foreign_release_step(&p);
    foreign_release(&maker.sides);
    free(maker.stray_s);
    free(maker.stray_rows);
    free(p_row);
    free(m_row);
    return status;
}

void row_matches_release(struct row_matches *matches)
{
    free(matches->match);
    free(matches->row);
    free(matches->step);
    free(matches->stray);
    free(matches->is_stray);
    *matches = (struct row_matches){0};
}

/* Compares a foreign trace: every measured step is aligned with the predicted one, lane by lane, and the rows
 * between two matched blocks are compared class by class. */
#include "traces/compare.h"
#include "traces/foreign.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A match in one step, before medians are taken. It is identified by lane, class, phase, and the first row
 * and number of rows on the predicted side: equal values in two steps mean the same pair. */
struct match {
    uint32_t lane, row, rows; /* predicted */
    uint8_t class, phase;
    uint32_t measured_rows;
    double predicted_s, measured_s;
};

struct aligned {
    struct comparison *c;
    struct foreign sides;
    struct match *match;
    size_t count, capacity;
};

/* ---- matches ---- */

static void add_match(struct aligned *f, struct match match)
{
    if (f->count == f->capacity) {
        f->capacity = heap_next_capacity(f->capacity, f->count + 1);
        f->match = heap_realloc(f->match, f->capacity, sizeof *f->match);
    }
    f->match[f->count++] = match;
}

static void match_block(struct aligned *f, uint32_t lane, const struct align_sequence *p,
                        const struct align_sequence *m, const struct align_block *block)
{
    const struct align_item *first = &p->item[block->a];
    struct match match = {
        .lane = lane, .row = first->row, .class = first->class, .phase = first->phase};
    for (uint32_t i = block->a; i < block->a + block->a_count; i++) {
        match.rows += p->item[i].rows;
        match.predicted_s += p->item[i].seconds;
    }
    for (uint32_t i = block->b; i < block->b + block->b_count; i++) {
        match.measured_rows += m->item[i].rows;
        match.measured_s += m->item[i].seconds;
    }
    add_match(f, match);
}

/* The rows of one class and phase between two blocks. */
struct bucket {
    uint32_t row, rows[2];
    double seconds[2]; /* predicted, measured */
};

struct time_gap {
    struct bucket bucket[CLASS_COUNT][ALIGN_PHASE_COUNT];
};

static void fill_gap(struct time_gap *gap, const struct align_filler *filler, int side)
{
    struct bucket *bucket = &gap->bucket[filler->class][filler->phase];
    if (side == 0 && bucket->rows[0] == 0)
        bucket->row = filler->row;
    bucket->rows[side]++;
    bucket->seconds[side] += filler->seconds;
}

static void match_bucket(struct aligned *f, uint32_t lane, int class, int phase,
                         const struct bucket *bucket)
{
    if (bucket->rows[0] > 0 && bucket->rows[1] > 0)
        add_match(f, (struct match){lane, bucket->row, bucket->rows[0], (uint8_t) class,
                                    (uint8_t)phase, bucket->rows[1], bucket->seconds[0],
                                    bucket->seconds[1]});
}

/* Matches the rows between two blocks, phase by phase. Rows of a class that are then left on both sides make one more
 * match, for instance a loss whose backward pass one side calls forward. Rows whose class does not follow from their
 * name are not matched. */
static void match_gap(struct aligned *f, uint32_t lane, const struct time_gap *gap)
{
    for (int class = 0; class < CLASS_COUNT; class ++) {
        struct bucket rest = {0};
        int rest_phase = ALIGN_UNKNOWN;
        for (int phase = 0; phase < ALIGN_PHASE_COUNT && class != CLASS_OTHER; phase++) {
            const struct bucket *bucket = &gap->bucket[class][phase];
            match_bucket(f, lane, class, phase, bucket);
            if (bucket->rows[0] > 0 && bucket->rows[1] > 0)
                continue;
            if (rest.rows[0] == 0 && bucket->rows[0] > 0) {
                rest.row = bucket->row;
                rest_phase = phase;
            }
            for (int side = 0; side < 2; side++) {
                rest.rows[side] += bucket->rows[side];
                rest.seconds[side] += bucket->seconds[side];
            }
        }
        match_bucket(f, lane, class, rest_phase, &rest);
    }
}

static void match_lane(struct aligned *f, uint32_t lane, const struct align_sequence *p,
                       const struct align_sequence *m)
{
    struct align_block *block;
    size_t count = align_blocks(p, m, &block);
    size_t i = 0, j = 0;
    for (size_t k = 0; k <= count; k++) {
        struct time_gap gap = {0}; /* the rows before block k */
        for (; i < p->filler_count && (k == count || p->filler[i].place <= block[k].a); i++)
            fill_gap(&gap, &p->filler[i], 0);
        for (; j < m->filler_count && (k == count || m->filler[j].place <= block[k].b); j++)
            fill_gap(&gap, &m->filler[j], 1);
        match_gap(f, lane, &gap);
        if (k < count)
            match_block(f, lane, p, m, &block[k]);
    }
    free(block);
}

/* ---- medians over steps ---- */

static int compare_matches(const void *left, const void *right)
{
    const struct match *a = left, *b = right;
    if (a->lane != b->lane)
        return a->lane < b->lane ? -1 : 1;
    if (a->row != b->row)
        return a->row < b->row ? -1 : 1;
    if (a->rows != b->rows)
        return a->rows < b->rows ? -1 : 1;
    if (a->class != b->class)
        return a->class < b->class ? -1 : 1;
    if (a->phase != b->phase)
        return a->phase < b->phase ? -1 : 1;
    return a->measured_s < b->measured_s ? -1 : a->measured_s > b->measured_s;
}

static bool same_match(const struct match *a, const struct match *b)
{
    return a->lane == b->lane && a->row == b->row && a->rows == b->rows && a->class == b->class &&
           a->phase == b->phase;
}

/* Makes pairs of the matches. A match that at most half of the steps have is dropped: its rows count as unmatched. */
static void add_pairs(struct aligned *f, uint32_t rank)
{
    static const char *const phases[ALIGN_PHASE_COUNT] = {"", "forward", "recompute", "backward",
                                                          "optimizer"};
    struct comparison *c = f->c;
    const struct trace_ops *ops = &f->sides.predicted->ops;
    double *scratch = heap_alloc(f->count + 1, sizeof *scratch);
    double measured_s = 0, predicted_s = 0;
    size_t measured_rows = 0, predicted_rows = 0;
    if (f->count > 0)
        qsort(f->match, f->count, sizeof *f->match, compare_matches);
    for (size_t i = 0, end; i < f->count; i = end) {
        for (end = i; end < f->count && same_match(&f->match[i], &f->match[end]); end++)
            scratch[end - i] = f->match[end].measured_s;
        if (2 * (end - i) <= c->steps)
            continue;
        const struct match *match = &f->match[i + (end - i) / 2];
        struct compare_pair *pair = comparison_add(c);
        *pair = (struct compare_pair){
            .rank = rank,
            .op = ops->op[match->row],
            .kind = kernel_class_name((enum kernel_class)match->class),
            .stream = f->sides.predicted->label[ops->stream[match->row]],
            .phase = phases[match->phase],
            .layer = ops->layer[match->row],
            .predicted_rows = match->rows,
            .measured_rows = match->measured_rows,
            .predicted_s = match->predicted_s,
            .measured_s = compare_median(scratch, end - i),
        };
        predicted_s += match->predicted_s;
        predicted_rows += match->rows;
        for (size_t k = i; k < end; k++) {
            measured_s += f->match[k].measured_s;
            measured_rows += f->match[k].measured_rows;
        }
    }
    free(scratch);
    /* Pairs that are found in different steps may have rows in common, so their predicted sums may exceed the whole. */
    c->predicted.unmatched_s = fmax(0, c->predicted.busy_s - predicted_s);
    c->measured.unmatched_s = fmax(0, c->measured.busy_s - measured_s / (double)c->steps);
    c->predicted.unmatched_rows =
        c->predicted.rows > predicted_rows ? c->predicted.rows - predicted_rows : 0;
    c->measured.unmatched_rows = c->measured.rows - measured_rows;
}

/* ---- all steps ---- */

static enum status align_steps(struct aligned *f, const struct foreign_step *p,
                               const struct timed_row *row, size_t count, const char *name,
                               struct diag *diag)
{
    struct comparison *c = f->c;
    double *spans = heap_alloc(count + 1, sizeof *spans);
    enum status status = STATUS_OK;
    for (size_t i = 0, end; i < count && status == STATUS_OK; i = end) {
        for (end = i; end < count && row[end].step == row[i].step;)
            end++;
        struct foreign_step m;
        foreign_make_step(&f->sides, true, row + i, end - i, &m);
        status = foreign_check_size(&m, name, diag);
        for (uint32_t lane = 0; lane < LANE_COUNT && status == STATUS_OK; lane++)
            match_lane(f, lane, &p->lane[lane], &m.lane[lane]);
        c->measured_period = m.lane[LANE_COMPUTE].period;
        c->measured.rows += m.rows;
        c->measured.busy_s += m.busy_s;
        spans[c->steps++] = m.end_s - m.start_s;
        foreign_release_step(&m);
    }
    c->measured.busy_s /= (double)c->steps;
    c->measured.step_s = compare_median(spans, c->steps);
    c->step_low_s = spans[0];
    c->step_high_s = spans[c->steps - 1];
    free(spans);
    return status;
}

enum status compare_foreign(struct comparison *c, const struct trace *predicted,
                            const struct trace *measured, const char *name, struct diag *diag)
{
    struct aligned f = {.c = c};
    enum status status = foreign_make(&f.sides, predicted, measured, name, diag);
    if (status != STATUS_OK)
        return status;
    size_t p_count, m_count;
    struct timed_row *p_row =
        foreign_order_rows(predicted, f.sides.predicted_rank, false, &p_count);
    struct timed_row *m_row = foreign_order_rows(measured, f.sides.rank, true, &m_count);
    struct foreign_step p;
    foreign_make_step(&f.sides, false, p_row, p_count, &p);
    c->is_foreign = true;
    c->compared_ranks = 1;
    c->predicted.rows = p.rows;
    c->predicted.busy_s = p.busy_s;
    c->predicted.step_s = compare_step_s(predicted, p.end_s - p.start_s);
    c->predicted_period = p.lane[LANE_COMPUTE].period;
    status = foreign_check_size(&p, "the prediction", diag);
    if (status == STATUS_OK)
        status = align_steps(&f, &p, m_row, m_count, name, diag);
    if (status == STATUS_OK) {
        add_pairs(&f, f.sides.rank);
        comparison_finish(c, predicted, measured);
    }
    foreign_release_step(&p);
    foreign_release(&f.sides);
    free(f.match);
    free(p_row);
    free(m_row);
    return status;
}

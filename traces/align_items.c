/* Makes the items of a sequence from rows, and finds the period in which they repeat. */
#include "traces/align.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static enum align_phase phase_of(const struct trace *trace, uint32_t row)
{
    static const char *const names[ALIGN_PHASE_COUNT] = {
        [ALIGN_UNKNOWN] = "",
        [ALIGN_FORWARD] = "forward",
        [ALIGN_RECOMPUTE] = "recompute",
        [ALIGN_BACKWARD] = "backward",
        [ALIGN_OPTIMIZER] = "optimizer",
    };
    const char *phase = trace->label[trace->ops.phase[row]];
    if (strcmp(phase, "weight_gradient") == 0) /* a recording has this work in its backward */
        return ALIGN_BACKWARD;
    for (int i = 0; i < ALIGN_PHASE_COUNT; i++)
        if (strcmp(names[i], phase) == 0)
            return (enum align_phase)i;
    return ALIGN_UNKNOWN;
}

static struct align_item *add_item(struct align_sequence *s)
{
    if (s->count == s->capacity) {
        s->capacity = heap_next_capacity(s->capacity, s->count + 1);
        s->item = heap_realloc(s->item, s->capacity, sizeof *s->item);
    }
    return &s->item[s->count++];
}

static void add_filler(struct align_sequence *s, struct align_filler filler)
{
    if (s->filler_count == s->filler_capacity) {
        s->filler_capacity = heap_next_capacity(s->filler_capacity, s->filler_count + 1);
        s->filler = heap_realloc(s->filler, s->filler_capacity, sizeof *s->filler);
    }
    s->filler[s->filler_count++] = filler;
}

/* Extends an attention item: rows between its rows (scales, masks, merges) are part of it. */
static void extend_attention(struct align_sequence *s, double seconds)
{
    struct align_item *last = &s->item[s->count - 1];
    last->seconds += seconds;
    last->rows++;
    while (s->filler_count > 0 && s->filler[s->filler_count - 1].place == s->count) {
        last->seconds += s->filler[--s->filler_count].seconds;
        last->rows++;
    }
}

static void note_row(struct align_sequence *s, uint32_t row)
{
    if (s->row_count == s->row_capacity) {
        s->row_capacity = heap_next_capacity(s->row_capacity, s->row_count + 1);
        s->row = heap_realloc(s->row, s->row_capacity, sizeof *s->row);
    }
    s->row[s->row_count++] = row;
}

void align_add_row(struct align_sequence *s, const struct trace *trace, uint32_t row,
                   enum kernel_class class)
{
    const struct trace_ops *ops = &trace->ops;
    double seconds = ops->end_s[row] - ops->start_s[row];
    uint8_t phase = (uint8_t)phase_of(trace, row);
    bool is_item = class == CLASS_MATMUL || class == CLASS_ATTENTION || class == CLASS_COPY ||
                   class == CLASS_COMMUNICATION;
    note_row(s, row);
    if (!is_item) {
        add_filler(s,
                   (struct align_filler){(uint8_t) class, phase, row, (uint32_t)s->count, seconds});
        return;
    }
    /* the row is a part of a message */
    bool part = class == CLASS_COMMUNICATION && ops->bytes[row] == 0;
    if (part && kernel_class_is_before_message(trace->label[ops->kind[row]])) {
        if (s->before++ == 0)
            s->before_place = (uint32_t)s->row_count - 1;
        s->before_s += seconds;
        return;
    }
    struct align_item *last = s->count > 0 ? &s->item[s->count - 1] : NULL;
    if (part && last && last->work_amount > 0) {
        last->seconds += seconds;
        last->rows++;
        return;
    }
    if (class == CLASS_ATTENTION && last && last->class == class && last->phase == phase) {
        extend_attention(s, seconds);
        return;
    }
    /* the amount of attention is unknown: programs count masked pairs differently */
    double amount = class == CLASS_MATMUL      ? ops->flops[row]
                    : class == CLASS_ATTENTION ? 0
                                               : ops->bytes[row];
    struct align_item item = {.class = (uint8_t) class,
                              .phase = phase,
                              .row = row,
                              .rows = 1,
                              .place = (uint32_t)s->row_count - 1,
                              .unit = -1,
                              .seconds = seconds,
                              .work_amount = amount};
    if (class == CLASS_COMMUNICATION && s->before > 0) {
        item.rows += s->before;
        item.place = s->before_place;
        item.seconds += s->before_s;
        s->before = 0;
        s->before_s = 0;
    }
    *add_item(s) = item;
}

static bool same_token(const struct align_item *a, const struct align_item *b)
{
    return a->class == b->class && a->phase == b->phase &&
           fabs(a->work_amount - b->work_amount) <= 0.001 * fmax(a->work_amount, b->work_amount);
}

enum { PERIOD_MAX = 512 };

/* Returns the period of the items and numbers its repeats. The period is the p for which the longest run in which
 * item[i] and item[i + p] agree (class, phase, amount) covers most items, and the shortest of several such p; the
 * pattern must occur at least twice. If there is
 * attention at all, a period must contain it, since every layer does: two equal products in a row are not a layer. */
static struct compare_period find_period(struct align_item *item, size_t count)
{
    size_t best = 0, best_begin = 0, best_covered = 0;
    /* [i] number of attentions before item i */
    uint32_t *attention = heap_alloc(count + 1, sizeof *attention);
    attention[0] = 0;
    for (size_t i = 0; i < count; i++)
        attention[i + 1] = attention[i] + (item[i].class == CLASS_ATTENTION);
    for (size_t p = 1; p <= count / 2 && p <= PERIOD_MAX; p++) {
        size_t run = 0;
        for (size_t i = 0; i + p < count; i++) {
            run = same_token(&item[i], &item[i + p]) ? run + 1 : 0;
            bool attends = attention[count] == 0 || attention[i + p + 1] > attention[i + 1];
            if (run >= p && attends && run + p > best_covered) {
                best = p;
                best_begin = i + 1 - run;
                best_covered = run + p;
            }
        }
    }
    free(attention);
    if (best == 0)
        return (struct compare_period){0};
    for (size_t i = 0; i < best_covered; i++)
        item[best_begin + i].unit = (int32_t)(i / best);
    return (struct compare_period){best, best_covered / best};
}

void align_find_periods(struct align_sequence *s)
{
    if (s->before > 0) { /* no message followed these rows */
        *add_item(s) = (struct align_item){.class = CLASS_COMMUNICATION,
                                           .phase = ALIGN_BACKWARD,
                                           .row = s->row[s->before_place],
                                           .rows = s->before,
                                           .place = s->before_place,
                                           .unit = -1,
                                           .seconds = s->before_s};
        s->before = 0;
    }
    for (size_t begin = 0, end; begin < s->count; begin = end) {
        bool forward = s->item[begin].phase <= ALIGN_FORWARD;
        for (end = begin; end < s->count && (s->item[end].phase <= ALIGN_FORWARD) == forward;)
            end++;
        struct compare_period period = find_period(s->item + begin, end - begin);
        if (forward &&
            period.length * period.repeat_count > s->period.length * s->period.repeat_count)
            s->period = period;
    }
}

void align_release(struct align_sequence *s)
{
    free(s->item);
    free(s->filler);
    free(s->row);
    *s = (struct align_sequence){0};
}

/* Groups the rows of a sequence into items, and finds the period in which items repeat. */
#include "traces/align.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static enum align_phase align_phase_of_row(const struct trace *trace, uint32_t row)
{
    static const char *const names[ALIGN_PHASE_COUNT] = {
        [ALIGN_PHASE_UNKNOWN] = "",
        [ALIGN_PHASE_FORWARD] = "forward",
        [ALIGN_PHASE_RECOMPUTE] = "recompute",
        [ALIGN_PHASE_BACKWARD] = "backward",
        [ALIGN_PHASE_OPTIMIZER] = "optimizer",
    };
    const char *phase = trace->labels[trace->ops.phase[row]];
    if (strcmp(phase, "weight_gradient") == 0) /* a recording has this work in its backward */
        return ALIGN_PHASE_BACKWARD;
    for (int i = 0; i < ALIGN_PHASE_COUNT; i++)
        if (strcmp(names[i], phase) == 0)
            return (enum align_phase)i;
    return ALIGN_PHASE_UNKNOWN;
}

static struct align_item *add_item(struct align_sequence *s)
{
    if (s->item_count == s->item_capacity) {
        s->item_capacity = heap_next_capacity(s->item_capacity, s->item_count + 1);
        s->items = heap_realloc(s->items, s->item_capacity, sizeof *s->items);
    }
    return &s->items[s->item_count++];
}

static void add_row_outside_items(struct align_sequence *s,
                                  struct align_row_outside_items row_outside_items)
{
    if (s->rows_outside_items_count == s->rows_outside_items_capacity) {
        s->rows_outside_items_capacity =
            heap_next_capacity(s->rows_outside_items_capacity, s->rows_outside_items_count + 1);
        s->rows_outside_items = heap_realloc(s->rows_outside_items, s->rows_outside_items_capacity,
                                             sizeof *s->rows_outside_items);
    }
    s->rows_outside_items[s->rows_outside_items_count++] = row_outside_items;
}

/* Adds a row of attention to the last item, which is an attention. Rows after the last row of this item (scales, masks,
 * merges) become part of it, too. */
static void extend_last_attention_item(struct align_sequence *s, double seconds)
{
    struct align_item *last = &s->items[s->item_count - 1];
    last->seconds += seconds;
    last->row_count++;
    while (s->rows_outside_items_count > 0 &&
           s->rows_outside_items[s->rows_outside_items_count - 1].items_before_row ==
               s->item_count) {
        last->seconds += s->rows_outside_items[--s->rows_outside_items_count].seconds;
        last->row_count++;
    }
}

/* Inserts a row of the trace into s->rows[], which has all rows that were added, items or not, before element `at`. */
static void insert_trace_row(struct align_sequence *s, size_t at, uint32_t row)
{
    if (s->row_count == s->row_capacity) {
        s->row_capacity = heap_next_capacity(s->row_capacity, s->row_count + 1);
        s->rows = heap_realloc(s->rows, s->row_capacity, sizeof *s->rows);
    }
    memmove(s->rows + at + 1, s->rows + at, (s->row_count - at) * sizeof *s->rows);
    s->rows[at] = row;
    s->row_count++;
}

/* Inserts a row that is not pending. Pending rows stay the last ones of s->rows[], where the item of their message
 * begins. */
static void insert_row_before_pending(struct align_sequence *s, size_t at, uint32_t row)
{
    insert_trace_row(s, at, row);
    s->pending_begin += s->pending_rows > 0;
}

void align_add_row(struct align_sequence *s, const struct trace *trace, uint32_t row,
                   enum kernel_class class)
{
    const struct trace_ops *ops = &trace->ops;
    double seconds = ops->end_s[row] - ops->start_s[row];
    uint8_t phase = (uint8_t)align_phase_of_row(trace, row);
    bool is_item = class == CLASS_MATMUL || class == CLASS_ATTENTION || class == CLASS_COPY ||
                   class == CLASS_COMMUNICATION;
    const size_t end = s->pending_rows > 0 ? s->pending_begin : s->row_count;
    if (!is_item) {
        insert_row_before_pending(s, end, row);
        add_row_outside_items(s,
                              (struct align_row_outside_items){(uint8_t) class, phase, row,
                                                               (uint32_t)s->item_count, seconds});
        return;
    }
    /* the row moves nothing, so it is only a part of a collective */
    bool part = class == CLASS_COMMUNICATION && ops->bytes[row] == 0;
    if (part && kernel_class_is_message_preparation(trace->labels[ops->kind[row]])) {
        insert_trace_row(s, s->row_count, row);
        if (s->pending_rows++ == 0)
            s->pending_begin = (uint32_t)s->row_count - 1;
        s->pending_rows_s += seconds;
        return;
    }
    struct align_item *last = s->item_count > 0 ? &s->items[s->item_count - 1] : NULL;
    if (part && last && last->flops_or_bytes > 0) {
        insert_row_before_pending(s, last->rows_begin + last->row_count, row);
        last->seconds += seconds;
        last->row_count++;
        return;
    }
    if (class == CLASS_ATTENTION && last && last->class == class && last->phase == phase) {
        insert_row_before_pending(s, end, row);
        extend_last_attention_item(s, seconds);
        return;
    }
    /* the amount of attention counts as unknown: programs count masked pairs differently */
    double amount = class == CLASS_MATMUL      ? ops->flops[row]
                    : class == CLASS_ATTENTION ? 0
                                               : ops->bytes[row];
    struct align_item item = {.class = (uint8_t) class,
                              .phase = phase,
                              .first_row = row,
                              .row_count = 1,
                              .rows_begin = (uint32_t)end,
                              .repeated_layer_number = -1,
                              .seconds = seconds,
                              .flops_or_bytes = amount};
    if (class == CLASS_COMMUNICATION && s->pending_rows > 0) {
        insert_trace_row(s, s->row_count, row);
        item.row_count += s->pending_rows;
        item.seconds += s->pending_rows_s;
        s->pending_rows = 0;
        s->pending_rows_s = 0;
    } else {
        insert_row_before_pending(s, end, row);
    }
    *add_item(s) = item;
}

static bool are_equal_items(const struct align_item *a, const struct align_item *b)
{
    return a->class == b->class && a->phase == b->phase &&
           fabs(a->flops_or_bytes - b->flops_or_bytes) <=
               0.001 * fmax(a->flops_or_bytes, b->flops_or_bytes);
}

enum { PERIOD_MAX = 512 };

/* Numbers the repeats of the items' period in item[], and returns the period and the number of repeats; all-zero if
 * there is none. A period p is judged by its longest run, in which item[i] and item[i + p] agree in class, phase and
 * amount. The run must be at least p long, so that the pattern occurs twice. The p whose run covers the most items
 * is taken, the smallest such p if there are several. If there is any attention, a period must contain one, since
 * every layer does: two equal products in a row are not a layer. */
static struct compare_layer_period find_period(struct align_item *item, size_t count)
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
            run = are_equal_items(&item[i], &item[i + p]) ? run + 1 : 0;
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
        return (struct compare_layer_period){0};
    for (size_t i = 0; i < best_covered; i++)
        item[best_begin + i].repeated_layer_number = (int32_t)(i / best);
    return (struct compare_layer_period){best, best_covered / best};
}

void align_find_periods(struct align_sequence *s)
{
    if (s->pending_rows > 0) { /* no message followed these rows */
        *add_item(s) = (struct align_item){.class = CLASS_COMMUNICATION,
                                           .phase = ALIGN_PHASE_BACKWARD,
                                           .first_row = s->rows[s->pending_begin],
                                           .row_count = s->pending_rows,
                                           .rows_begin = s->pending_begin,
                                           .repeated_layer_number = -1,
                                           .seconds = s->pending_rows_s};
        s->pending_rows = 0;
    }
    for (size_t begin = 0, end; begin < s->item_count; begin = end) {
        bool forward = s->items[begin].phase <= ALIGN_PHASE_FORWARD;
        for (end = begin;
             end < s->item_count && (s->items[end].phase <= ALIGN_PHASE_FORWARD) == forward;)
            end++;
        struct compare_layer_period period = find_period(s->items + begin, end - begin);
        if (forward && period.item_count * period.repeat_count >
                           s->forward_period.item_count * s->forward_period.repeat_count)
            s->forward_period = period;
    }
}

void align_release(struct align_sequence *s)
{
    free(s->items);
    free(s->rows_outside_items);
    free(s->rows);
    *s = (struct align_sequence){0};
}

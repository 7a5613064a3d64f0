#include "traces/explain_tile.h"

#include "base/arena.h"
#include "base/ascending.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void explain_add_row(struct rows_to_explain *rows, const struct explain_row *row)
{
    if (rows->row_count == rows->capacity) {
        rows->capacity = heap_next_capacity(rows->capacity, rows->row_count + 1);
        rows->rows = heap_realloc(rows->rows, rows->capacity, sizeof *rows->rows);
    }
    rows->rows[rows->row_count] = *row;
    rows->rows[rows->row_count++].last_rank_arrival_s = row->start_s;
}

void explain_rows_release(struct rows_to_explain *rows)
{
    free(rows->rows);
    *rows = (struct rows_to_explain){0};
}

static int compare_rows(const void *left, const void *right)
{
    const struct explain_row *a = left, *b = right;
    if (a->step != b->step)
        return a->step < b->step ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->start_s != b->start_s)
        return a->start_s < b->start_s ? -1 : 1;
    return a->end_s < b->end_s ? -1 : a->end_s > b->end_s;
}

static int compare_messages(const void *left, const void *right)
{
    const struct explain_row *a = *(struct explain_row *const *)left;
    const struct explain_row *b = *(struct explain_row *const *)right;
    if (a->step != b->step)
        return a->step < b->step ? -1 : 1;
    if (a->message_number != b->message_number)
        return a->message_number < b->message_number ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static struct explain_row **list_message_rows(struct rows_to_explain *rows, size_t *count)
{
    struct explain_row **list = heap_alloc(rows->row_count + 1, sizeof(struct explain_row *));
    *count = 0;
    for (size_t i = 0; i < rows->row_count; i++)
        if (rows->rows[i].part == EXPLAIN_MESSAGES)
            list[(*count)++] = &rows->rows[i];
    if (*count > 0)
        qsort((void *)list, *count, sizeof(struct explain_row *), compare_messages);
    return list;
}

static bool same_message(const struct explain_row *a, const struct explain_row *b)
{
    return a->step == b->step && a->message_number == b->message_number;
}

/* Returns how many seconds later messages end on a rank than on the rank `first`, by their own clocks: the median over
 * the messages that both have; 0 if there are none. */
static double clock_offset_s(struct explain_row *const *list, size_t count, uint32_t first,
                             uint32_t rank)
{
    double *offset = heap_alloc(count + 1, sizeof *offset);
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; list[i]->rank == first && k < count; k++) {
            if (!same_message(list[i], list[k]))
                break;
            if (list[k]->rank == rank)
                offset[found++] = list[k]->end_s - list[i]->end_s;
        }
    if (found > 0)
        qsort(offset, found, sizeof *offset, ascending_double);
    double middle = found > 0 ? offset[found / 2] : 0;
    free(offset);
    return middle;
}

static void align_clocks_of_ranks(struct rows_to_explain *rows, struct explain_row *const *list,
                                  size_t count)
{
    uint32_t first = UINT32_MAX, last = 0;
    for (size_t i = 0; i < rows->row_count; i++) {
        first = rows->rows[i].rank < first ? rows->rows[i].rank : first;
        last = rows->rows[i].rank > last ? rows->rows[i].rank : last;
    }
    for (uint32_t rank = first; count > 0 && rank < last; rank++) {
        double offset_s = clock_offset_s(list, count, first, rank + 1);
        for (size_t i = 0; i < rows->row_count; i++)
            if (rows->rows[i].rank == rank + 1) {
                rows->rows[i].start_s -= offset_s;
                rows->rows[i].end_s -= offset_s;
            }
    }
}

/* Sets last_rank_arrival_s of each row of a message: the time at which the last rank of the message arrives. A rank
 * that arrives after the row has ended does not count, since the row did not wait for it. */
static void set_last_rank_arrivals(struct explain_row *const *list, size_t count)
{
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && same_message(list[i], list[end]);)
            end++;
        for (size_t k = i; k < end; k++) {
            list[k]->last_rank_arrival_s = list[k]->start_s;
            for (size_t other = i; other < end; other++)
                if (list[other]->start_s < list[k]->end_s)
                    list[k]->last_rank_arrival_s =
                        fmax(list[k]->last_rank_arrival_s, list[other]->start_s);
        }
    }
}

void explain_align_and_sort_rows(struct rows_to_explain *rows, bool together)
{
    size_t count;
    struct explain_row **list = list_message_rows(rows, &count);
    if (together)
        align_clocks_of_ranks(rows, list, count);
    set_last_rank_arrivals(list, count);
    free((void *)list);
    if (rows->row_count > 0)
        qsort(rows->rows, rows->row_count, sizeof *rows->rows, compare_rows);
}

/* ---- the tiles ---- */

/* The start (direction +1) or the end (-1) of a row. */
struct row_start_or_end {
    double time_s;
    int8_t direction;
    uint8_t part;
};

static int compare_row_starts_and_ends(const void *left, const void *right)
{
    const struct row_start_or_end *a = left, *b = right;
    return a->time_s < b->time_s ? -1 : a->time_s > b->time_s;
}

static size_t add_row_start_and_end(struct row_start_or_end *row_start_or_end, double from_s,
                                    double to_s, uint8_t part)
{
    if (!(to_s > from_s))
        return 0;
    row_start_or_end[0] = (struct row_start_or_end){from_s, 1, part};
    row_start_or_end[1] = (struct row_start_or_end){to_s, -1, part};
    return 2;
}

/* Adds the seconds of an interval to part_s[]. active[part]: the number of rows of a part that run in it. If kernels
 * run, each gets an equal share; else messages get all of it; else copies; else waits; else idle time. */
static void add_interval_to_part_seconds(const int64_t *active, double seconds,
                                         double part_s[EXPLAIN_PART_COUNT])
{
    static const enum explain_part order[] = {EXPLAIN_MESSAGES, EXPLAIN_COPIES, EXPLAIN_WAITS};
    int64_t kernels = 0;
    for (int part = 0; part < EXPLAIN_KERNEL_PARTS; part++)
        kernels += active[part];
    for (int part = 0; part < EXPLAIN_KERNEL_PARTS && kernels > 0; part++)
        part_s[part] += seconds * (double)active[part] / (double)kernels;
    if (kernels > 0)
        return;
    for (size_t i = 0; i < ARRAY_LEN(order); i++)
        if (active[order[i]] > 0) {
            part_s[order[i]] += seconds;
            return;
        }
    part_s[EXPLAIN_IDLE] += seconds;
}

void explain_split_interval_by_part(const struct explain_row *row, size_t count, double begin_s,
                                    double end_s, double part_s[EXPLAIN_PART_COUNT])
{
    struct row_start_or_end *row_start_or_end = heap_alloc(4 * count + 1, sizeof *row_start_or_end);
    int64_t active[EXPLAIN_PART_COUNT] = {0};
    size_t edges = 0;
    double at_s = begin_s;
    for (size_t i = 0; i < count; i++) {
        double moves_s =
            row[i].part == EXPLAIN_MESSAGES ? row[i].last_rank_arrival_s : row[i].start_s;
        edges +=
            add_row_start_and_end(row_start_or_end + edges, row[i].start_s, moves_s, EXPLAIN_WAITS);
        edges +=
            add_row_start_and_end(row_start_or_end + edges, moves_s, row[i].end_s, row[i].part);
    }
    if (edges > 0)
        qsort(row_start_or_end, edges, sizeof *row_start_or_end, compare_row_starts_and_ends);
    for (size_t i = 0; i < edges; i++) {
        double to_s = fmin(row_start_or_end[i].time_s, end_s);
        if (to_s > at_s) {
            add_interval_to_part_seconds(active, to_s - at_s, part_s);
            at_s = to_s;
        }
        active[row_start_or_end[i].part] += row_start_or_end[i].direction;
    }
    if (end_s > at_s) /* the rank has ended, and waits for other ranks that have not */
        part_s[EXPLAIN_WAITS] += end_s - at_s;
    free(row_start_or_end);
}

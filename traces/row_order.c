#include "traces/row_order.h"

#include "base/arena.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Sorts the rows by key; rows of equal key keep their order. A radix sort is used because there are many rows, and
 * their keys differ in few bits. */
static void sort_by_key(struct row_order *order)
{
    size_t n = order->row_count;
    uint64_t *key = heap_alloc(n, sizeof *key);
    uint32_t *row = heap_alloc(n, sizeof *row);
    size_t *start = heap_alloc(65536, sizeof *start);
    uint64_t differ = 0;
    for (size_t i = 0; i < n; i++)
        differ |= order->keys[i] ^ order->keys[0];
    for (unsigned shift = 0; shift < 64; shift += 16) {
        if (((differ >> shift) & 0xffff) == 0)
            continue;
        memset(start, 0, 65536 * sizeof *start);
        for (size_t i = 0; i < n; i++)
            start[(order->keys[i] >> shift) & 0xffff]++;
        size_t sum = 0;
        for (size_t d = 0; d < 65536; d++) {
            size_t count = start[d];
            start[d] = sum;
            sum += count;
        }
        for (size_t i = 0; i < n; i++) {
            size_t to = start[(order->keys[i] >> shift) & 0xffff]++;
            key[to] = order->keys[i];
            row[to] = order->rows[i];
        }
        uint64_t *old_key = order->keys;
        uint32_t *old_row = order->rows;
        order->keys = key;
        order->rows = row;
        key = old_key;
        row = old_row;
    }
    free(key);
    free(row);
    free(start);
}

/* A row and its time, by which a group is sorted. */
struct row_time {
    double time_s;
    uint32_t row;
};

static int compare_row_times(const void *a, const void *b)
{
    const struct row_time *x = a, *y = b;
    if (x->time_s != y->time_s)
        return x->time_s < y->time_s ? -1 : 1;
    /* rows of one instant keep the order of the table */
    return x->row < y->row ? -1 : x->row > y->row;
}

static void sort_by_time(uint32_t *row, size_t count, const double *time_s)
{
    size_t i = 1;
    while (i < count && time_s[row[i - 1]] <= time_s[row[i]])
        i++;
    if (i >= count)
        return;
    struct row_time *timed = heap_alloc(count, sizeof *timed);
    for (i = 0; i < count; i++)
        timed[i] = (struct row_time){time_s[row[i]], row[i]};
    qsort(timed, count, sizeof *timed, compare_row_times);
    for (i = 0; i < count; i++)
        row[i] = timed[i].row;
    free(timed);
}

size_t row_order_end_of_equal_keys(const struct row_order *order, size_t begin)
{
    size_t end = begin;
    while (end < order->row_count && order->keys[end] == order->keys[begin])
        end++;
    return end;
}

void row_order_init(struct row_order *order, size_t count, const uint32_t *rank,
                    const uint16_t *label, const double *time_s)
{
    assert(count <= UINT32_MAX);
    order->keys = heap_alloc(count, sizeof *order->keys);
    order->rows = heap_alloc(count, sizeof *order->rows);
    order->row_count = count;
    for (size_t i = 0; i < count; i++) {
        order->keys[i] = (uint64_t)rank[i] << 16 | label[i];
        order->rows[i] = (uint32_t)i;
    }
    if (count > 0)
        sort_by_key(order);
    for (size_t begin = 0, end; begin < count; begin = end) {
        end = row_order_end_of_equal_keys(order, begin);
        sort_by_time(order->rows + begin, end - begin, time_s);
    }
}

void row_order_release(struct row_order *order)
{
    free(order->keys);
    free(order->rows);
    *order = (struct row_order){0};
}

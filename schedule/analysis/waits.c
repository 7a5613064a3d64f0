#include "schedule/analysis/waits.h"

#include <stdlib.h>
#include <string.h>

/* An op reads or writes the elements begin .. end - 1 of a buffer. For the whole buffer, begin is 0, and end is
 * TOUCH_END_OF_WHOLE_BUFFER. */
struct access {
    uint64_t begin, end;
    uint32_t op, next; /* next: another access of the buffer; IR_NONE: none */
    uint8_t stream;
};

/* The accesses of a buffer. For most buffers every access is of the whole buffer, and after the last write only one
 * stream reads: then `last_write` and `last_read` are the ids of the last write and the last read. Otherwise they are
 * the heads of two lists, one of writes and one of reads; the lists are separate because reads do not conflict with
 * each other. */
struct accesses_of_buffer {
    uint32_t last_read, last_write;    /* ids of ops, or heads of lists; IR_NONE: none */
    uint8_t read_stream, write_stream; /* the streams of these ops */
    /* the stream of all accesses in the lists; SEVERAL_STREAMS: several streams */
    uint8_t stream_of_listed_accesses;
    bool has_lists_of_accesses;
};

enum {
    SEVERAL_STREAMS = UINT8_MAX,
    /* drop_superseded_accesses() checks the newest CHECKED_ACCESSES_MAX accesses of a list */
    CHECKED_ACCESSES_MAX = 8
};

struct waits {
    const struct order *order;
    struct accesses_of_buffer *accesses_of_each_buffer; /* [buffers] */
    struct access *access;
    size_t access_capacity;
    uint32_t access_count;
    uint32_t first_spare_access; /* the list of unused accesses */
    uint32_t *added_waits;       /* the ops that were added for the open op, the latest first */
    op_id *needed_waits;         /* those of added_waits that no other implies */
    uint32_t wait_count, wait_capacity;
};

struct waits *waits_new(const struct order *order, uint32_t buffers)
{
    struct waits *w = heap_zalloc(1, sizeof *w);
    w->order = order;
    w->accesses_of_each_buffer = heap_alloc(buffers, sizeof *w->accesses_of_each_buffer);
    for (uint32_t b = 0; b < buffers; b++)
        w->accesses_of_each_buffer[b] =
            (struct accesses_of_buffer){.last_read = IR_NONE, .last_write = IR_NONE};
    w->first_spare_access = IR_NONE;
    return w;
}

void waits_free(struct waits *w)
{
    free(w->accesses_of_each_buffer);
    free(w->access);
    free(w->added_waits);
    free(w->needed_waits);
    free(w);
}

void waits_add_op(struct waits *w, uint32_t op)
{
    uint32_t at = w->wait_count;
    while (at > 0 && w->added_waits[at - 1] < op)
        at--;
    if (at > 0 && w->added_waits[at - 1] == op)
        return;
    if (w->wait_count == w->wait_capacity) {
        w->wait_capacity =
            (uint32_t)heap_next_capacity(w->wait_capacity, (size_t)w->wait_count + 1);
        w->added_waits = heap_realloc(w->added_waits, w->wait_capacity, sizeof *w->added_waits);
        w->needed_waits = heap_realloc(w->needed_waits, w->wait_capacity, sizeof *w->needed_waits);
    }
    memmove(w->added_waits + at + 1, w->added_waits + at,
            (w->wait_count++ - at) * sizeof *w->added_waits);
    w->added_waits[at] = op;
}

static void add_conflicting_accesses(struct waits *w, uint32_t list, const struct touch *touch)
{
    for (uint32_t i = list; i != IR_NONE; i = w->access[i].next) {
        const struct access *a = &w->access[i];
        if (a->begin < touch->end_element && touch->first_element < a->end &&
            !order_open_op_is_after(w->order, a->op))
            waits_add_op(w, a->op);
    }
}

uint32_t waits_add_conflicting_ops(struct waits *w, const struct touch *touch, uint32_t count,
                                   uint8_t stream)
{
    for (const struct touch *end = touch + count; touch < end; touch++) {
        const struct accesses_of_buffer *of = &w->accesses_of_each_buffer[touch->buffer];
        if (of->has_lists_of_accesses) {
            if (of->stream_of_listed_accesses != stream)
                add_conflicting_accesses(w, of->last_write, touch);
            if (of->stream_of_listed_accesses != stream && touch->is_write)
                add_conflicting_accesses(w, of->last_read, touch);
            continue;
        }
        if (of->write_stream != stream && of->last_write != IR_NONE &&
            !order_open_op_is_after(w->order, of->last_write))
            waits_add_op(w, of->last_write);
        if (touch->is_write && of->read_stream != stream && of->last_read != IR_NONE &&
            !order_open_op_is_after(w->order, of->last_read))
            waits_add_op(w, of->last_read);
    }
    return w->wait_count;
}

const op_id *waits_join_and_return_needed(struct waits *w, struct order *order, uint32_t *count)
{
    uint32_t first = w->wait_count;
    /* A wait for a later op may imply one for an earlier op. So waits are added from the latest op to the earliest, the
     * order of added_waits. */
    for (uint32_t i = 0; i < w->wait_count; i++) {
        if (order_open_op_is_after(order, w->added_waits[i]))
            continue;
        order_add_wait(order, w->added_waits[i]);
        w->needed_waits[--first].i = w->added_waits[i];
    }
    *count = w->wait_count - first;
    w->wait_count = 0;
    return *count > 0 ? w->needed_waits + first : NULL;
}

/* Removes from a list the accesses that lie inside the elements of `touch`: those made on `stream` or, if that is
 * SEVERAL_STREAMS, on any stream. Only the newest CHECKED_ACCESSES_MAX accesses are checked, since a buffer may have
 * thousands of pieces. To keep an access that could be removed is harmless: an op that waits for the new access, which
 * is ordered after the old one, needs no wait for the old one. */
static void drop_superseded_accesses(struct waits *w, uint32_t *link, const struct touch *touch,
                                     uint8_t stream)
{
    for (uint32_t look = 0; look < CHECKED_ACCESSES_MAX && *link != IR_NONE; look++) {
        struct access *a = &w->access[*link];
        if (touch->first_element <= a->begin && a->end <= touch->end_element &&
            (stream == SEVERAL_STREAMS || a->stream == stream)) {
            uint32_t gone = *link;
            *link = a->next;
            a->next = w->first_spare_access;
            w->first_spare_access = gone;
        } else {
            link = &a->next;
        }
    }
}

static inline void add_access_to_list(struct waits *w, struct accesses_of_buffer *of,
                                      const struct touch *touch, uint8_t stream, uint32_t op)
{
    bool first = of->last_write == IR_NONE && of->last_read == IR_NONE;
    uint32_t *list = touch->is_write ? &of->last_write : &of->last_read,
             row = w->first_spare_access;
    of->stream_of_listed_accesses =
        first || of->stream_of_listed_accesses == stream ? stream : SEVERAL_STREAMS;
    if (row != IR_NONE) {
        w->first_spare_access = w->access[row].next;
    } else {
        row = w->access_count++;
        w->access = heap_grow(w->access, &w->access_capacity, w->access_count, sizeof *w->access);
    }
    w->access[row] = (struct access){touch->first_element, touch->end_element, op, *list, stream};
    *list = row;
}

/* Replaces the last read and the last write of a buffer by two lists of accesses, one of reads and one of writes. */
static void convert_accesses_to_lists(struct waits *w, struct accesses_of_buffer *of)
{
    struct touch whole = {.end_element = TOUCH_END_OF_WHOLE_BUFFER};
    uint32_t read = of->last_read, write = of->last_write;
    of->has_lists_of_accesses = true;
    of->last_read = of->last_write = IR_NONE;
    if (read != IR_NONE)
        add_access_to_list(w, of, &whole, of->read_stream, read);
    whole.is_write = true;
    if (write != IR_NONE)
        add_access_to_list(w, of, &whole, of->write_stream, write);
}

void waits_record_touches(struct waits *w, const struct touch *touch, uint32_t count,
                          uint8_t stream, uint32_t op)
{
    for (; count > 0; count--, touch++) {
        struct accesses_of_buffer *of = &w->accesses_of_each_buffer[touch->buffer];
        bool whole = touch->end_element == TOUCH_END_OF_WHOLE_BUFFER && touch->first_element == 0;
        if (!of->has_lists_of_accesses && whole && touch->is_write) {
            of->last_write = op;
            of->write_stream = stream;
            of->last_read = IR_NONE;
            continue;
        }
        if (!of->has_lists_of_accesses && whole &&
            (of->last_read == IR_NONE || of->read_stream == stream)) {
            of->last_read = op;
            of->read_stream = stream;
            continue;
        }
        if (!of->has_lists_of_accesses)
            convert_accesses_to_lists(w, of);
        drop_superseded_accesses(w, &of->last_read, touch,
                                 touch->is_write ? SEVERAL_STREAMS : stream);
        if (touch->is_write)
            drop_superseded_accesses(w, &of->last_write, touch, SEVERAL_STREAMS);
        add_access_to_list(w, of, touch, stream, op);
    }
}

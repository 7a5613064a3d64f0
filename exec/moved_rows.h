/* exec/moved_rows.h: lists of the rows that take_rows, add_rows and merge_rows move.
 *
 * Rows that context ranks exchange lie in one of three arrays: a message, sorted by the other rank; the packed rows,
 * which attention reads in the order of their positions; and the rank's own rows. A list has pairs of rows from two of
 * these arrays. A row is copied from one side of its pair to the other, or added or merged from the outer side into the
 * inner one: take_rows copies in both directions, add_rows and merge_rows bring results back to own rows. */
#ifndef EXEC_MOVED_ROWS_H
#define EXEC_MOVED_ROWS_H

#include "exec/assignment.h"
#include "models/work.h"

/* The lists of a rank. A pair has an outer row and an inner row:
 *   list      outer row                                            inner row
 *   SENT      row of the message that the rank sends or gets back  own row
 *   RECEIVED  row of the message that it receives or returns       packed row
 *   HELD      packed row                                           own row */
enum moved_rows_list_kind { MOVED_SENT, MOVED_RECEIVED, MOVED_HELD, MOVED_LIST_COUNT };

struct moved_rows {
    int64_t count;
    const int64_t *outer_row,
        *inner_row; /* [count] the rows of each pair; NULL: that of pair i is i */
};

/* Returns a list of a rank. rows NULL: the work is measured without a schedule, and its list has `room` pairs (i,
 * i). */
static inline struct moved_rows moved_rows_get_list(const struct assignment_exchanged_rows *rows,
                                                    enum moved_rows_list_kind which, int64_t room)
{
    if (rows == NULL)
        return (struct moved_rows){.count = room};
    if (which == MOVED_HELD)
        return (struct moved_rows){rows->held.row_count, rows->held.packed_row, rows->held.own_row};
    const struct needed_rows *list = which == MOVED_SENT ? &rows->sent : &rows->received;
    return (struct moved_rows){list->first_row_by_peer[rows->peer_count], NULL, list->row};
}

/* Returns the list by which work takes, adds or merges rows. A TAKE_ROWS_TO_ROUND_ORDER moves two lists: its caller
 * moves MOVED_RECEIVED first, and then MOVED_HELD, which is returned here. */
static inline enum moved_rows_list_kind moved_list_of_work(const struct work *work)
{
    if (work->kind == WORK_TAKE_ROWS)
        return work->take_rows.take == TAKE_OWN_ROWS_TO_SEND      ? MOVED_SENT
               : work->take_rows.take == TAKE_ROWS_TO_ROUND_ORDER ? MOVED_HELD
                                                                  : MOVED_RECEIVED;
    const bool held =
        work->kind == WORK_ADD_ROWS ? work->add_rows.held != 0 : work->merge_rows.held != 0;
    return held ? MOVED_HELD : MOVED_SENT;
}

/* These functions return the outer row and the inner row of pair i. */
static inline int64_t moved_outer_row(const struct moved_rows *moved, int64_t i)
{
    return moved->outer_row != NULL ? moved->outer_row[i] : i;
}
static inline int64_t moved_inner_row(const struct moved_rows *moved, int64_t i)
{
    return moved->inner_row != NULL ? moved->inner_row[i] : i;
}

#endif

/* exec/moved_rows.h: the rows that take_rows, add_rows and merge_rows move, pair by pair. */
#ifndef EXEC_MOVED_ROWS_H
#define EXEC_MOVED_ROWS_H

#include "exec/assignment.h"
#include "models/work.h"

/* Lists of pairs of rows, between which a row moves. Each pair has a row of the message or of packed order, and a row
 * where the rank keeps it:
 *   SENT      a row of the message that the rank sends or gets back, and one of its own rows
 *   RECEIVED  a row of the message that the rank receives or returns, and its place in packed order
 *   HELD      the place in packed order of a row that the rank owns, and that row of its own */
enum moved_list { MOVED_SENT, MOVED_RECEIVED, MOVED_HELD, MOVED_LIST_COUNT };

struct moved_rows {
    int64_t count;
    const int64_t *outer_row; /* [count] the first row of each pair; NULL: that of pair i is i */
    const int64_t *kept_row;  /* [count] the second row of each pair; NULL: that of pair i is i */
};

/* Returns a list of a rank. rows NULL: the work is measured without a schedule, and moves `room` rows. */
static inline struct moved_rows moved_rows_list(const struct assignment_rows *rows,
                                                enum moved_list which, int64_t room)
{
    if (rows == NULL)
        return (struct moved_rows){.count = room};
    if (which == MOVED_HELD)
        return (struct moved_rows){rows->held.row_count, rows->held.packed_row, rows->held.own_row};
    const struct needed_rows *list = which == MOVED_SENT ? &rows->sent : &rows->received;
    return (struct moved_rows){list->first_row_of_peer[rows->peer_count], NULL, list->row};
}

/* Returns the list of the rows that work takes, adds or merges. Of TAKE_GATHER that is the second list: its caller moves
 * the rows of MOVED_RECEIVED first. */
static inline enum moved_list moved_list_of(const struct work *work)
{
    if (work->kind == WORK_TAKE_ROWS)
        return work->take_rows.take == TAKE_SEND     ? MOVED_SENT
               : work->take_rows.take == TAKE_GATHER ? MOVED_HELD
                                                     : MOVED_RECEIVED;
    const bool held =
        work->kind == WORK_ADD_ROWS ? work->add_rows.held != 0 : work->merge_rows.held != 0;
    return held ? MOVED_HELD : MOVED_SENT;
}

/* Return the first row and the second row of pair i. */
static inline int64_t moved_outer_row(const struct moved_rows *moved, int64_t i)
{
    return moved->outer_row != NULL ? moved->outer_row[i] : i;
}
static inline int64_t moved_kept_row(const struct moved_rows *moved, int64_t i)
{
    return moved->kept_row != NULL ? moved->kept_row[i] : i;
}

#endif

/* exec/cpu/moved_rows.h: the rows that take_rows, add_rows and merge_rows move, pair by pair. */
#ifndef EXEC_CPU_MOVED_ROWS_H
#define EXEC_CPU_MOVED_ROWS_H

#include "exec/assignment.h"
#include "exec/backend.h"

/* SENT: row i of what a rank sends, or gets back, and its own row. RECEIVED: row i of what it receives, or returns, and
 * its place in packed order. HELD: the place in packed order of a row of its own, and its own row. */
enum moved_list { MOVED_SENT, MOVED_RECEIVED, MOVED_HELD };

struct moved_rows {
    int64_t count;
    const int64_t *packed, *own; /* NULL: i */
};

/* room: the number of rows of a call by itself, without a schedule. */
static inline struct moved_rows moved_rows(const struct call *call, enum moved_list which,
                                           int64_t room)
{
    const struct assignment_rows *rows = call->rows;
    if (rows == NULL)
        return (struct moved_rows){.count = room};
    if (which == MOVED_HELD)
        return (struct moved_rows){rows->held.count, rows->held.packed, rows->held.own};
    const struct needed_rows *list = which == MOVED_SENT ? &rows->sent : &rows->received;
    return (struct moved_rows){list->first[rows->peers], NULL, list->row};
}

/* Return the first and the second row of pair i. */
static inline int64_t moved_packed(const struct moved_rows *moved, int64_t i)
{
    return moved->packed != NULL ? moved->packed[i] : i;
}
static inline int64_t moved_own(const struct moved_rows *moved, int64_t i)
{
    return moved->own != NULL ? moved->own[i] : i;
}

#endif

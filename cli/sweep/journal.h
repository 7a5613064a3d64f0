/* cli/sweep/journal.h: the rows of a sweep on disk, so that no end of the program loses one.
 *
 * While a sweep of FILE runs, FILE.part takes each row as one line the moment it is known, whatever
 * the order; every line carries a checksum, so that one that was cut off is seen. When all rows are
 * there, FILE is written in grid order, whole or not at all, and FILE.part goes away. A sweep that
 * does the K-th of N parts writes FILE.part-K-of-N, which the sweep of all reads too.
 *
 * Both kinds of file carry the command and the identity of the grid; rows of another grid are never
 * mixed in. A journal in use is locked against a second process. */
#ifndef CLI_SWEEP_JOURNAL_H
#define CLI_SWEEP_JOURNAL_H

#include "base/diag.h"
#include "base/text.h"
#include "cli/sweep/grid.h"

#include <stdbool.h>
#include <stddef.h>

struct sweep_row {
    char *text;  /* NULL: not known yet */
    bool failed; /* known, and to be tried again by the next run */
};

/* All-zero is closed. */
struct sweep_journal {
    const struct sweep_grid *grid;
    const char *path; /* of the sweep; borrowed */
    struct text part; /* path of the journal */
    struct arena arena;
    struct sweep_row *row; /* grid->points */
    size_t known;          /* rows */
    size_t resumed;        /* of which found on disk */
    bool complete;         /* path has them all: nothing was opened, and nothing is to do */
    int file;
    long long size;  /* of the journal: what lies behind is a line that was cut off */
    double synced_s; /* when it was last put on the disk, not only given to the system */
};

/* Opens or makes the journal of path, and reads every row that there is. Refuses files that are no
 * sweep or another's, and journals in use. part of parts: which points will be added; 0 of 0: all. path
 * NULL: rows are kept in memory only. */
enum status sweep_journal_open(struct sweep_journal *journal, const struct sweep_grid *grid,
                               const char *path, size_t part, size_t parts, struct diag *diag);

/* Keeps a row: in memory, and as a line that the system has taken. On a full disk the journal ends
 * with the row before. */
enum status sweep_journal_add(struct sweep_journal *journal, size_t point, const struct text *row,
                              bool failed, struct diag *diag);

/* Writes the sweep in grid order to path ("-" and NULL: standard output), and removes the journals,
 * unless a row has failed. All rows must be known. */
enum status sweep_journal_finish(struct sweep_journal *journal, struct diag *diag);

void sweep_journal_release(struct sweep_journal *journal);

#endif

/* cli/sweep/journal.h: the rows of a sweep on disk, so that no row is lost however the program ends.
 *
 * While a sweep of FILE runs, each row is appended to FILE.part as one line the moment it is known, in any order;
 * every line carries a checksum, so that a line that was cut off is noticed. When all rows are known, FILE is written
 * in grid order, whole or not at all, and FILE.part is removed. A sweep of the K-th of N parts writes
 * FILE.part-K-of-N, which the sweep of all points reads too.
 *
 * Both kinds of file carry the command and the identity of the grid; rows of another grid are never mixed in. A
 * journal in use is locked against a second process. */
#ifndef CLI_SWEEP_JOURNAL_H
#define CLI_SWEEP_JOURNAL_H

#include "base/diag.h"
#include "base/text.h"
#include "cli/sweep/grid.h"

#include <stdbool.h>
#include <stddef.h>

struct sweep_row {
    char *text;  /* NULL: not known yet */
    bool failed; /* the row is known, and the next run tries the point again */
};

/* All-zero is closed. */
struct sweep_journal {
    const struct sweep_grid *grid;
    const char *path; /* of the sweep; borrowed */
    struct text part; /* path of the journal */
    struct arena arena;
    struct sweep_row *row; /* grid->points */
    size_t known;          /* number of known rows */
    size_t resumed;        /* rows of these that were found on disk */
    bool complete; /* the file at path has all rows: nothing was opened, nothing is left to do */
    int file;
    long long size;  /* bytes of the journal's whole lines; after them is a line that was cut off */
    double synced_s; /* time of the journal's last fsync() */
};

/* Opens or creates the journal of path, and reads the rows that exist. Refuses files that are no sweep or are of
 * another grid, and journals in use. part of parts: which points will be added; 0 of 0: all. path NULL: rows are kept
 * in memory only. */
enum status sweep_journal_open(struct sweep_journal *journal, const struct sweep_grid *grid,
                               const char *path, size_t part, size_t parts, struct diag *diag);

/* Stores a row in memory and appends it to the journal as a line. If the disk is full, the journal file ends with the
 * previous row. */
enum status sweep_journal_add(struct sweep_journal *journal, size_t point, const struct text *row,
                              bool failed, struct diag *diag);

/* Writes the sweep in grid order to path ("-" and NULL: standard output), and removes the journals,
 * unless a row has failed. All rows must be known. */
enum status sweep_journal_finish(struct sweep_journal *journal, struct diag *diag);

void sweep_journal_release(struct sweep_journal *journal);

#endif

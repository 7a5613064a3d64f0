/* cli/sweep/journal.h: the rows of a sweep on disk, so that no row is lost however the program ends.
 *
 * While a sweep of FILE runs, each row is appended to FILE.part as one line the moment it is known, in any order;
 * every line carries a checksum, so that a line that was cut off is noticed. When all rows are known, FILE is written
 * in grid order, whole or not at all, and FILE.part is removed unless a point failed. A sweep of
 * the K-th of N parts writes FILE.part-K-of-N, which the sweep of all points reads too.
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
    char *text; /* NULL: it is not known yet */
    /* the point failed; its row is known, but the next run tries the point again */
    bool has_point_failed;
};

/* All-zero is a closed journal. */
struct sweep_journal {
    const struct sweep_grid *grid;
    const char *sweep_path;   /* path of the finished sweep; borrowed */
    struct text journal_path; /* path of the journal */
    struct arena arena;
    struct sweep_row *row;    /* [grid->point_count] */
    size_t known_row_count;   /* number of known rows */
    size_t resumed_row_count; /* how many of the known rows were on the disk before */
    /* the finished file has all rows, so that no journal was opened and nothing is left to do */
    bool is_complete;
    int journal_file_descriptor;
    /* bytes of the complete lines of the journal; a line that was cut off may follow */
    long long complete_bytes;
    double synced_s; /* when the journal was last flushed to the disk */
};

/* Opens or creates the journal of the sweep at `path`, and reads its rows. Refuses a file that is not a sweep's
 * journal, the journal of another grid, and one that another process uses. part, parts: which part of the points this
 * process will add; 0, 0: all. path NULL: rows are kept only in memory. */
enum status sweep_journal_open(struct sweep_journal *journal, const struct sweep_grid *grid,
                               const char *path, size_t part, size_t parts, struct diag *diag);

/* Stores a row in memory, and appends it to the journal as a line. If the disk is full, the journal ends with the row
 * before. */
enum status sweep_journal_add(struct sweep_journal *journal, size_t point, const struct text *row,
                              bool failed, struct diag *diag);

/* Appends the sweep, a CSV file with its rows in the order of the grid. All rows must be known. */
void sweep_journal_put_csv(const struct sweep_journal *journal, struct text *out);

/* Writes the sweep in the order of the grid to its path ("-" and NULL: standard output), and removes the journals
 * unless a row has failed. All rows must be known. */
enum status sweep_journal_write_sweep_file(struct sweep_journal *journal, struct diag *diag);

void sweep_journal_release(struct sweep_journal *journal);

#endif

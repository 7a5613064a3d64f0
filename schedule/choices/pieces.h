/* schedule/choices/pieces.h: rows cut into pieces. */
#ifndef SCHEDULE_CHOICES_PIECES_H
#define SCHEDULE_CHOICES_PIECES_H

#include <stdint.h>

/* One of the pieces into which rows are cut: its first row, and its number of rows. */
struct piece {
    int64_t begin, rows;
};
/* Returns piece i of `pieces`. The first pieces all have ceil(rows / pieces) rows; the last ones may have fewer, or
 * none. */
static inline struct piece piece_of_rows(int64_t rows, int64_t pieces, int64_t i)
{
    int64_t size = (rows + pieces - 1) / pieces;
    int64_t begin = i * size < rows ? i * size : rows;
    int64_t end = begin + size < rows ? begin + size : rows;
    return (struct piece){begin, end - begin};
}

#endif

/* schedule/pipeline/partition.h: a sequence cut into N subsequences.
 *
 * Lengths are equal, or such that every piece takes equally long: attention looks back at all earlier tokens, so then
 * the first pieces are the longest. With l flops per token in products and attention that grows as m x^2 over a
 * prefix of x tokens, prefixes of i / N of the flops end at (SPPO, arXiv 2503.10377, section 5.1; Seq1F1B, arXiv
 * 2406.03488)
 *
 *     x_i = (-l + sqrt(l^2 + 4 m (i / N) (l S + m S^2))) / (2 m)
 *
 * For equal predicted time there is no closed form: the common time of the pieces, and then each boundary, are found
 * as roots. */
#ifndef SCHEDULE_PIPELINE_PARTITION_H
#define SCHEDULE_PIPELINE_PARTITION_H

#include "base/diag.h"
#include "models/transformer.h"

#include <stdbool.h>
#include <stdint.h>

enum partition_rule { PARTITION_LENGTH, PARTITION_FLOPS, PARTITION_TIME, PARTITION_RULE_COUNT };
extern const char *const partition_names[PARTITION_RULE_COUNT];

struct partition {
    uint8_t rule; /* enum partition_rule */
    int64_t tokens, piece_count;
    int64_t token_unit; /* tokens; every piece is a multiple of it, as the whole sequence must be */
    /* ---- for PARTITION_FLOPS ---- */
    const struct transformer *model;
    /* balances attention as if every token saw all of the sequence: twice the scores */
    bool assumes_full_attention;
    /* For PARTITION_TIME: returns the seconds that the tokens [begin, end) of the sequence take. The result is
     * continuous and grows with `end`. */
    double (*seconds)(const void *context, double begin, double end);
    const void *context;
};

/* Fills length[] with the tokens of each piece in order; their sum is all tokens. Each piece is rounded down to a
 * multiple of token_unit, and the first piece gets the remainder. It is an error if a piece would get fewer than
 * token_unit tokens. */
enum status partition_find_lengths(int64_t *length, const struct partition *partition,
                                   struct diag *diag);

#endif

/* schedule/pipeline/partition.h: a sequence of S tokens cut into N subsequences.
 *
 * Pieces have equal lengths, or lengths such that all take equally long. Attention looks back at all earlier tokens, so
 * in the second case the first pieces are the longest. If products take l flops per token, and attention m x^2 flops
 * over a prefix of x tokens, the prefix with i / N of the flops has (SPPO, arXiv 2503.10377, section 5.1; Seq1F1B,
 * arXiv 2406.03488)
 *
 *     x_i = (-l + sqrt(l^2 + 4 m (i / N) (l S + m S^2))) / (2 m)
 *
 * tokens. For equal predicted time there is no closed form: the common time of the pieces, and then each boundary, are
 * found as roots. */
#ifndef SCHEDULE_PIPELINE_PARTITION_H
#define SCHEDULE_PIPELINE_PARTITION_H

#include "base/diag.h"
#include "models/transformer.h"

#include <stdbool.h>
#include <stdint.h>

enum partition_rule { PARTITION_LENGTH, PARTITION_FLOPS, PARTITION_TIME, PARTITION_RULE_COUNT };
extern const char *const partition_names[PARTITION_RULE_COUNT];

/* The way in which a sequence is cut: into pieces of equal lengths, equal flops or equal times, each a multiple of
 * token_unit tokens. */
struct partition {
    uint8_t rule; /* enum partition_rule */
    int64_t tokens, piece_count;
    int64_t token_unit; /* tokens; every piece, like the whole sequence, is a multiple of it */
    /* ---- members for PARTITION_FLOPS ---- */
    const struct transformer *model;
    /* attention is balanced as if every token saw the whole sequence, which is twice the flops of causal attention */
    bool assumes_full_attention;
    /* For PARTITION_TIME: returns the seconds that the tokens [begin, end) of the sequence take. The result is
     * continuous and grows with `end`. */
    double (*seconds)(const void *context, double begin, double end);
    const void *context;
};

/* Fills length[] with the numbers of tokens of the pieces, in order; they add up to all tokens. Each piece is rounded
 * down to a multiple of token_unit, and the first piece gets the remainder. Fails if a piece would get fewer than
 * token_unit tokens. */
enum status partition_find_lengths(int64_t *length, const struct partition *partition,
                                   struct diag *diag);

#endif

/* sim/plan/periods.h: where the rows of a whole list lie in the short one that was simulated for it.
 *
 * Depth folding cuts a list once or twice (sim/plan/depth.h), and each cut leaves out periods of some runs:
 * gaps in the short list. In its times a gap is no time at all: what was left out would come between
 * two dates. */
#ifndef SIM_PERIODS_H
#define SIM_PERIODS_H

#include "sim/plan/depth.h"

/* Ops that the short list has as they are, in a row. */
struct periods_part {
    uint32_t op, ops; /* of the whole list */
    uint32_t image;   /* of the first, in the short list */
};

struct periods_gap {
    enum depth_level level;
    uint32_t left_out;   /* periods */
    uint32_t before;     /* periods of the run that the short list has in front of the gap */
    uint32_t begin, ops; /* the first op of the first period, of each: in the short list */
    uint32_t whole_begin, whole_ops; /* and in the whole one */
};

/* All-zero is empty. */
struct periods {
    uint32_t ops; /* of the short list */
    struct periods_part *part;
    uint32_t part_count;
    struct periods_gap *gap; /* by the op that follows it; the inner of two first */
    uint32_t gap_count;
};

/* Of cuts from the outside inwards. Returns false, and leaves *periods empty, where periods of one run
 * are not cut alike by the next level. */
bool periods_make(struct periods *periods, const struct depth_cut *cut, int cuts);
void periods_release(struct periods *periods);

/* The periods of the short list round a gap that come one and the same time behind each other on a rank
 * with these times: from *first on to the one behind the gap. False: not even the last two. */
bool periods_steady(const struct periods_gap *gap, const double *start_s, const double *end_s,
                    double same_s, uint32_t *first, double *period_s);

#endif

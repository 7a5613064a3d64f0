/* sim/plan/depth.h: layers, and micro-batches, that do what those before them did are not simulated.
 *
 * Where the list of ops repeats itself (the layers of a forward pass, of a backward pass, the
 * micro-batches of a step), a shorter list with only the first periods and the last is simulated.
 * When in its times each period comes one and the same time behind the one before, on all ranks
 * and streams, and no flow joins them from outside, the periods left out can only do the same
 * once more, and the times of the whole list follow. docs/simulation.md, "Depth folding", proves
 * it; every start of the whole list is then checked against all that it had to wait for. Where
 * any of this does not hold, there is no folding. */
#ifndef SIM_DEPTH_H
#define SIM_DEPTH_H

#include "sim/plan/fold.h"
#include "sim/plan/plan.h"

enum depth_level { DEPTH_MICRO, DEPTH_LAYER, DEPTH_LEVELS }; /* from outside inwards */

/* How many periods of a run to keep: more where a try with fewer failed. Runs with the same ops (the
 * same layers in another micro-batch) share a row. All-zero: the least of all. */
struct depth_patience {
    uint32_t count;
    struct {
        uint64_t run;
        uint32_t tries;
    } row[16];
};

/* Equal periods in a row. The short list has the first of them and the last. */
struct depth_run {
    uint32_t begin, ops;    /* the first op of the first period; of each */
    uint32_t periods, kept; /* in the long list and in the short one */
    uint32_t first_kept;    /* of those kept, the first in the row; the others are its last */
    uint32_t cut_begin;     /* as begin, in the short list */
    uint32_t blocks;        /* layers (micro-batches) of a period */
    uint64_t hash;          /* of a period's ops */
    double period_s;        /* from one to the next; depth_expand() finds it */
};

/* All-zero is empty. */
struct depth_cut {
    const struct ir *whole;
    enum depth_level level;
    struct ir ir; /* the short list: shares all but ops and waits with the long one */
    struct depth_run *run;
    uint32_t run_count;
    uint32_t
        given_up; /* layers (micro-batches) of runs that patience has run out with: they stay whole */
};

/* Cuts the ops of a schedule of one role at a level. Returns false, and leaves *cut empty, when
 * nothing worth its while repeats. */
bool depth_cut(struct depth_cut *cut, const struct ir *whole, enum depth_level level,
               const struct depth_patience *patience);
void depth_cut_release(struct depth_cut *cut);

/* The runs of a schedule of one role that are long enough to leave periods out of, all of which are
 * kept. Heap; *count: how many. */
struct depth_run *depth_find_runs(const struct ir *whole, enum depth_level level, uint32_t *count);

/* Cuts what the runs do not keep: their kept and first_kept are given. Returns false, and leaves *cut
 * empty, when they keep everything. */
bool depth_cut_runs(struct depth_cut *cut, const struct ir *whole, enum depth_level level,
                    const struct depth_run *run, uint32_t count);

/* Of one row per op of each class of ranks in the long list, the rows of those that the short one has,
 * of so many classes. Heap. */
double *depth_keep_rows(const struct depth_cut *cut, const double *row, uint32_t classes);
uint8_t *depth_keep_classes(const struct depth_cut *cut, const uint8_t *op_class);

/* The op of the short list that stands for one of the long list. */
uint32_t depth_image(const struct depth_cut *cut, uint32_t op);

/* For how many each op of the short list stands, when each of the long list stands for times[op]
 * already; NULL: for itself. Heap. */
uint32_t *depth_count_images(const struct depth_cut *cut, const uint32_t *times);

/* Start and end of every op, of one class of ranks after the other (fold's). */
struct depth_times {
    double *start_s, *end_s;
    uint8_t *op_class; /* [ops] enum op_class */
};

/* Fills the times of the long list, and its op_class where that is not NULL, from those of the short
 * one, which plan and fold are of (or of a cut of it). Returns false when they do not follow, and has
 * more patience with the runs at fault. */
bool depth_expand(const struct depth_cut *cut, const struct plan *plan, const struct fold *fold,
                  const struct depth_times *of_short, struct depth_times *of_whole,
                  struct depth_patience *patience);

/* The periods of a run from the last in front of what was left out to the first behind it, as far as one
 * repeat of the whole list goes (ir.repeat): once depth_expand() has told their times. Returns false when
 * these are not two. */
bool depth_steady(const struct depth_cut *cut, const struct depth_run *run,
                  struct sim_steady *steady);

#endif

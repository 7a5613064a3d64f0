/* schedule/pipeline/multiplex.h: multiplexed sequence partitioning (SPPO, arXiv 2503.10377, section 6, in
 * the reading of its table 3): stages that would idle while a pipeline fills or drains take equal
 * pieces of another stage's subsequence.
 *
 * Of N subsequences, stage i of P shares the first P - 1 - i with the stages after it and the last i
 * with those before it. It takes the rest by itself. */
#ifndef SCHEDULE_PIPELINE_MULTIPLEX_H
#define SCHEDULE_PIPELINE_MULTIPLEX_H

#include "base/text.h"
#include "schedule/pipeline/pipeline.h"

/* Neighbouring stages that each take a piece of one subsequence through one chunk, in order: equal ones
 * of whole rows of every tensor rank, the last one shorter where that does not divide. */
struct share {
    uint32_t first, count;
};

/* Returns the stages that share a subsequence in a chunk; with other pipelines the chunk's own stage. */
struct share multiplex_share(const struct choices *choices, uint32_t chunk, uint32_t subsequence);

/* Return where the shared subsequences at the front of a chunk end, and where those at its back begin; 0 and N:
 * none are shared. */
uint32_t multiplex_end_of_first(const struct choices *choices, uint32_t chunk);
uint32_t multiplex_begin_of_last(const struct choices *choices, uint32_t chunk);

/* True if a stage has a part of some subsequence of a chunk. */
bool multiplex_takes_part(const struct choices *choices, uint32_t stage, uint32_t chunk);

/* Adds to out what keeps stages from sharing subsequences, one condition after the other; nothing if they can.
 * lengths: those of the choices are what will be built. */
void multiplex_conditions(struct text *out, const struct choices *choices, bool lengths);

/* A subsequence on its way through a chunk. */
struct task {
    uint32_t chunk, subsequence;
};

/* Fills task, which has room for P N of them, with the order in which all stages together take the tasks of one
 * micro-batch forward; backward is its reverse. Each task takes as long as the flops of its longest piece (where
 * lengths are equal: its part of a unit), and starts as early as it can; of several, the one that most stages
 * share comes first. */
void multiplex_order(const struct choices *choices, struct task *task);

#endif

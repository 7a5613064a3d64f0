/* schedule/pipeline/multiplex.h: multiplexed sequence partitioning (SPPO, arXiv 2503.10377, section 6, as its table 3
 * suggests): stages that would idle while a pipeline fills or drains take equal pieces of another stage's
 * subsequence.
 *
 * Of N subsequences, stage i of P shares the first P - 1 - i with the stages after it and the last i with those
 * before it, or fewer, if choices.shared_units has smaller numbers. It computes the rest by itself. */
#ifndef SCHEDULE_PIPELINE_MULTIPLEX_H
#define SCHEDULE_PIPELINE_MULTIPLEX_H

#include "base/text.h"
#include "schedule/pipeline/pipeline.h"

/* Consecutive stages that share a subsequence in one chunk of layers: each takes one piece of it through the layers.
 * Pieces are equal and have whole rows for every tensor rank; the last one is shorter if the subsequence does not
 * divide evenly. */
struct stage_span {
    uint32_t first_stage, count;
};

/* Returns the stages that share a subsequence in a chunk. In a pipeline whose stages do not share, that is the one
 * stage of the chunk. */
struct stage_span multiplex_stages_of(const struct choices *choices, uint32_t chunk,
                                      uint32_t subsequence);

/* The shared subsequences of a chunk are the first and the last ones. multiplex_front_end() returns the end of the
 * first ones, 0 if there are none; multiplex_back_begin() the begin of the last ones, `subsequences` if there are
 * none. */
uint32_t multiplex_front_end(const struct choices *choices, uint32_t chunk);
uint32_t multiplex_back_begin(const struct choices *choices, uint32_t chunk);

/* True if a stage has a part of some subsequence of a chunk. */
bool multiplex_stage_takes_part(const struct choices *choices, uint32_t stage, uint32_t chunk);

/* Appends the conditions that the choices do not meet and without which stages cannot share subsequences; nothing if
 * they can share. lengths: the lengths in `choices` are final. */
void multiplex_put_conditions(struct text *out, const struct choices *choices, bool lengths);

/* The work of a pipeline on one subsequence in one chunk of layers. */
struct chunk_task {
    uint32_t chunk, subsequence;
};

/* Fills task[pp * subsequences] with the order in which all stages together do the tasks of one micro-batch in the
 * forward; the backward has the reverse order. A task takes as long as the last of the pieces into which its stages cut
 * the subsequence, which sees the most keys: by the piece's flops or, if all subsequences are equally long, 1 / n for n
 * stages. It starts as early as it can. Next comes the task that can start first; of tasks that can start at the same
 * time, the one that most stages share, and then that of the earlier subsequence. */
void multiplex_order(const struct choices *choices, struct chunk_task *task);

#endif

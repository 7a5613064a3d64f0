/* schedule/pipeline/multiplex.h: multiplexed sequence partitioning (SPPO, arXiv 2503.10377, section 6, as its table 3
 * suggests): stages that would idle while a pipeline fills or drains compute equal pieces of another stage's
 * subsequence.
 *
 * Of N subsequences, stage i of P shares the first P - 1 - i with the stages after it and the last i with the stages
 * before it; fewer if choices.shared_units has smaller numbers. It computes the other ones by itself. */
#ifndef SCHEDULE_PIPELINE_MULTIPLEX_H
#define SCHEDULE_PIPELINE_MULTIPLEX_H

#include "base/text.h"
#include "schedule/pipeline/pipeline.h"

/* Consecutive stages that share a subsequence in one chunk of layers: each takes one piece of it through the layers.
 * Pieces are equal and have whole rows for every tensor rank; the last one is shorter if the subsequence does not
 * divide evenly. */
struct stages_sharing_subsequence {
    uint32_t first_stage, count;
};

/* Returns the stages that share a subsequence in a chunk. In a pipeline whose stages do not share, that is the one
 * stage of the chunk. */
struct stages_sharing_subsequence
multiplex_stages_sharing_subsequence(const struct choices *choices, uint32_t chunk,
                                     uint32_t subsequence);

/* The shared subsequences of a chunk are its first ones and its last ones. multiplex_front_subsequence_count() returns
 * the number of the first ones. multiplex_first_of_back_subsequences() returns the first of the last ones; the number
 * of all subsequences if there are none. */
uint32_t multiplex_front_subsequence_count(const struct choices *choices, uint32_t chunk);
uint32_t multiplex_first_of_back_subsequences(const struct choices *choices, uint32_t chunk);

/* True if a stage computes at least a piece of some subsequence in a chunk. */
bool multiplex_stage_takes_part(const struct choices *choices, uint32_t stage, uint32_t chunk);

/* Appends the conditions for sharing subsequences that the choices do not meet; nothing if they meet all. lengths: the
 * lengths in `choices` are final, so conditions on them are checked, too. */
void multiplex_append_unmet_conditions(struct text *out, const struct choices *choices,
                                       bool lengths);

/* The work of a pipeline on one subsequence in one chunk of layers. */
struct chunk_task {
    uint32_t chunk, subsequence;
};

/* Fills task[pp * subsequences] with the order in which all stages together do the tasks of one micro-batch in the
 * forward; the backward has the reverse order. Each task starts as early as it can. Next comes the task that can start
 * first; of tasks that can start at the same time, the one that most stages share, and then that of the earlier
 * subsequence. A task takes as long as the last of the pieces into which its stages cut the subsequence, which sees the
 * most keys: by its flops or, if all subsequences are equally long, 1 / n for n stages. */
void multiplex_put_tasks_in_order(const struct choices *choices, struct chunk_task *task);

#endif

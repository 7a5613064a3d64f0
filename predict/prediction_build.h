/* predict/prediction_build.h: builds the schedule of a prediction, as a short list if one represents the whole list.
 * Only predict/prediction*.c include it. */
#ifndef PREDICT_PREDICTION_BUILD_H
#define PREDICT_PREDICTION_BUILD_H

#include "predict/prediction.h"

/* True if the verdict compares reserved memory, which includes what the framework's allocator caches, with the
 * available memory. If false, it compares the planned arenas. Pageable memory is always judged by its arena. */
bool prediction_is_judged_by_reserved(const struct prediction *p);

/* Builds the schedule of p->choices: the short list with index p->short_list_length_index or, if that one does not
 * represent the whole list, the next longer one that does. Stores its index in p->short_list_length_index. Builds the
 * whole list if no short list represents it, if it is short itself, or if the question asks for it. */
enum status prediction_build(struct prediction *p, struct diag *diag);

/* Replaces the present short list, which does not represent the whole list. If `whole` is set, the whole list replaces
 * it. Else the next longer short list does that represents the whole list, or the whole list if there is none. Releases
 * the result of the simulation. Arenas are planned for the same memories as before. */
enum status prediction_build_longer_list(struct prediction *p, bool whole, struct diag *diag);

/* True if the present list is the one to simulate: the whole list, or a short list in place of a whole list that would
 * take long to simulate. An exact prediction simulates the whole list only. */
bool prediction_simulates_built_list(const struct prediction *p);

#endif

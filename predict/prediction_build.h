/* predict/prediction_build.h: builds the schedule of a prediction: a short list where one represents the whole list.
 * Private to predict/prediction*.c. */
#ifndef PREDICT_PREDICTION_BUILD_H
#define PREDICT_PREDICTION_BUILD_H

#include "predict/prediction.h"

/* Returns whether the verdict compares reserved memory, which includes what the framework's allocator caches, with the
 * memory that there is. Otherwise it compares the planned arenas. Pageable memory is always judged by its arena. */
bool prediction_is_judged_by_reserved(const struct prediction *p);

/* Builds the schedule of p->choices: the short list of index p->short_list_length, a longer one, or the whole list. */
enum status prediction_build(struct prediction *p, struct diag *diag);

/* Builds a longer short list, or the whole list, after a short list that does not represent it. Arenas stay the same. */
enum status prediction_build_longer(struct prediction *p, bool whole, struct diag *diag);

/* True if the list that was built is the one to simulate: it is whole, or the whole one is too long. */
bool prediction_is_simulated_short(const struct prediction *p);

#endif

/* predict/prediction_build.h: builds the schedule of a prediction, as a short list if one represents the whole list.
 * Only predict/prediction*.c include it. */
#ifndef PREDICT_PREDICTION_BUILD_H
#define PREDICT_PREDICTION_BUILD_H

#include "predict/prediction.h"

/* True if the verdict compares reserved memory, which includes what the framework's allocator caches, with the
 * available memory. If false, it compares the planned arenas. Pageable memory is always judged by its arena. */
bool prediction_is_judged_by_reserved(const struct prediction *p);

/* Builds the schedule of p->choices. Of the lengths of short lists, from that with index p->short_list_length on, it
 * takes the first that represents the whole list, and sets p->short_list_length to its index. It builds the whole list
 * if none does, if the whole list is not long, or if the question asks for it. */
enum status prediction_build(struct prediction *p, struct diag *diag);

/* Replaces the list by a longer short list, or by the whole list, because the present short list does not represent the
 * whole one. Arenas are planned for the same memories as before. */
enum status prediction_build_longer(struct prediction *p, bool whole, struct diag *diag);

/* True if the list that was built is the one to simulate: it is the whole list, or the whole list is too long to
 * simulate. */
bool prediction_is_simulated_short(const struct prediction *p);

#endif

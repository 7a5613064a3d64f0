/* predict/alternatives.h: finds options that are worth trying. It predicts requests that differ from a given request in
 * one or a few options.
 *
 * If the given request fits in memory, each option of a short table is tried by itself, and the option with the fastest
 * step that fits is chosen, if it saves more than 0.5 % of the step. If it does not fit, options are added one after
 * the other, at most four, until it fits: in each round the option that lowers the missing memory most. Options that
 * would change nothing are left out. A round predicts only a limited number of options, those with the lowest bounds
 * (predict/bounds.h), so that large schedules do not take long. alternatives_rank_suggestions() tries each option, and
 * each pair of options, for a given size of memory.
 *
 * The folder predict/ is the library that predicts, plans, sweeps and validates training steps: it reads no options and
 * prints nothing. */
#ifndef PREDICT_ALTERNATIVES_H
#define PREDICT_ALTERNATIVES_H

#include "base/diag.h"
#include "predict/prediction.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct alternative {
    char options[160];      /* "--zero 3 --checkpoint offload"; "": no option helps */
    struct verdict verdict; /* of the request with these options (alternatives_find_best()) */
    double step_s;          /* seconds of a step with these options; 0: it was not simulated */
    /* number of trials of options, over all rounds, that were predicted or that their bounds ruled out */
    size_t tried_count;
    /* number of trials that were left out to save time: each takes about as long as the given request */
    size_t skipped_count;
    /* seconds of a step of the given request with the profile `ideal`; 0: not known */
    double ideal_step_s;
};

/* Fills *best with the option that speeds the step up most or, if the request does not fit, with the options that lower
 * its missing memory most, until it fits (see the top of this file). If no option helps, best->options is "", and
 * best->verdict is all-zero for a request that fits, and the given one's for a request that does not. `base` is the
 * prediction of the given request. It must have been simulated, and must not be that of a schedule file. */
enum status alternatives_find_best(struct alternative *best, const struct prediction *base,
                                   struct diag *diag);

/* One option, or two together, with which the memory of a request suffices (alternatives_rank_suggestions()). */
struct suggestion {
    char options[96];
    /* the bytes that the framework's allocator would hold after it gave back its cache */
    uint64_t allocator_bytes;
    /* the probability that allocator_bytes are at most what the allocator may hold */
    double fits_probability;
    double step_s; /* seconds of a step */
};

enum { SUGGESTIONS_MAX = 160 };

/* Returns the bytes that the framework's allocator holds without its cache: tensors, workspaces, buckets and tables. */
uint64_t alternatives_allocator_bytes(const struct prediction *prediction);

/* Finds all suggestions for a request, and sorts them by the seconds of a step, the fastest first. With a suggestion,
 * the allocator of a GPU holds at most most_bytes, as alternatives_allocator_bytes() counts them, and host memory
 * suffices. The options are those that alternatives_find_best() tries, without those that choose attention kernels. If
 * one of two options is a suggestion by itself, both together are one only if their step takes less than 99.5 % of its
 * step. suggestion[] must have room for SUGGESTIONS_MAX. Sets *tried to the number of options and pairs of options that
 * were tried. */
enum status alternatives_rank_suggestions(struct suggestion *suggestion, size_t *count,
                                          size_t *tried, const struct prediction *base,
                                          uint64_t most_bytes, struct diag *diag);

/* Options of the table are numbered from 0. alternatives_option_count() returns how many there are,
 * alternatives_option_text() returns one as text, and alternatives_set_option() sets one in a request. */
enum { ALTERNATIVES_MAX = 20 };
size_t alternatives_option_count(void);
const char *alternatives_option_text(size_t i);
void alternatives_set_option(struct request *request, size_t i);

#endif

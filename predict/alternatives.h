/* predict/alternatives.h: the next option worth trying: requests that differ from a given one in one or a few
 * options, predicted.
 *
 * If a request fits in memory, every option of a short table is tried by itself, and the fastest that fits is named.
 * If it does not fit, up to four options are added one by one, each time the one that lowers the need most, until it
 * fits. To bound the time for large schedules, only as many options are predicted at a time as keep the number of their
 * ops below a limit, but two at least: those with the lowest bounds (predict/bounds.h).
 *
 * The folder predict/ is the library that predicts, plans, sweeps and validates training steps: it reads no options
 * and prints nothing. */
#ifndef PREDICT_ALTERNATIVES_H
#define PREDICT_ALTERNATIVES_H

#include "base/diag.h"
#include "predict/prediction.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct alternative {
    char options[160];      /* "--zero 3 --checkpoint offload"; "": no option helps */
    struct verdict verdict; /* the verdict of the request with these options */
    double step_s;          /* seconds of a step with these options; 0: it was not simulated */
    /* number of options that were predicted, or that their bounds rule out */
    size_t tried_count;
    /* number of options that were not predicted, to save time: each takes as long as the request itself */
    size_t skipped_count;
    /* seconds of a step of the request itself with the profile `ideal`; 0: not known */
    double ideal_step_s;
};

/* Fills *best with the option that helps most, or with the options that together make the request fit (see the top of
 * this file). `base` must have been simulated, and must not come from a schedule's file. */
enum status alternatives_find_best(struct alternative *best, const struct prediction *base,
                                   struct diag *diag);

/* One option, or two together, with which a request fits that does not fit without it. */
struct suggestion {
    char options[96];
    /* the bytes that the framework's allocator would hold after it gave back its cache */
    uint64_t allocator_bytes;
    /* the probability that allocator_bytes are at most what the allocator may hold */
    double fits_probability;
    double step_s;
};

enum { SUGGESTIONS_MAX = 160 };

/* Returns the bytes that the framework's allocator holds without its cache: tensors, workspaces, buckets and tables. */
uint64_t alternatives_allocator_bytes(const struct prediction *prediction);

/* Finds all suggestions, and sorts them by the seconds of a step, the fastest first. They are made of the options that
 * alternatives_find_best() tries, except for attention kernels. With a suggestion, the allocator of a GPU holds at most
 * most_bytes (alternatives_allocator_bytes()), and host memory suffices. Two options together are a suggestion only if
 * they are 0.5 % faster than each of them that suffices by itself. suggestion[] must have room for SUGGESTIONS_MAX.
 * *tried is set to the number of options and of pairs of options that were tried. */
enum status alternatives_rank_suggestions(struct suggestion *suggestion, size_t *count,
                                          size_t *tried, const struct prediction *base,
                                          uint64_t most_bytes, struct diag *diag);

/* The options of the table by number: how many there are, option i as text, and a request with option i set. */
enum { ALTERNATIVES_MAX = 20 };
size_t alternatives_count(void);
const char *alternatives_option(size_t i);
void alternatives_apply(struct request *request, size_t i);

#endif

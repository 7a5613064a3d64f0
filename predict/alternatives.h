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
    char options[160];      /* "--zero 3 --checkpoint offload"; "": none is better */
    struct verdict verdict; /* with these options */
    double step_s;          /* 0: not simulated */
    size_t tried;           /* options that were predicted, or that their bound rules out */
    size_t left_out;        /* options that were not: each takes as long as the request itself */
    double ideal_step_s;    /* the request itself with profile ideal; 0: not known */
};

/* Finds the option of the table that helps most. base was simulated, and is of a request. */
enum status alternatives_find(struct alternative *best, const struct prediction *base,
                              struct diag *diag);

/* Options that would make what failed fit: one, or two together. */
struct suggestion {
    char options[96];
    uint64_t inside_bytes;   /* what the framework's allocator would hold, its cache given back */
    double fits_probability; /* that this is at most what the allocator may hold */
    double step_s;
};

enum { SUGGESTIONS_MAX = 160 };

/* Returns the bytes that the allocator of a prediction holds without its cache: tensors, workspaces, buckets and
 * tables. */
uint64_t alternatives_inside(const struct prediction *prediction);

/* Finds all suggestions by the same short table without attention kernels, fastest first: options with which a GPU's
 * allocator holds at most `most_bytes` (alternatives_inside()), and with which host memory suffices, too. Two options
 * together are a suggestion only if they are faster by 0.5 % than each of them that suffices by itself. suggestion[]
 * has room for SUGGESTIONS_MAX. */
enum status alternatives_rank(struct suggestion *suggestion, size_t *count, size_t *tried,
                              const struct prediction *base, uint64_t most_bytes,
                              struct diag *diag);

/* The options that are tried, by number: their count, one as text, and one put into a request. */
enum { ALTERNATIVES_MAX = 20 };
size_t alternatives_count(void);
const char *alternatives_option(size_t i);
void alternatives_apply(struct request *request, size_t i);

#endif

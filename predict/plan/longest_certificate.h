/* predict/plan/longest_certificate.h: the longest sequence of one configuration that fits. This length and, if it can
 * be built, the next one, which does not fit, are simulated. The certificate also has the longest sequences with one
 * option changed (predict/alternatives.h). */
#ifndef PREDICT_PLAN_LONGEST_CERTIFICATE_H
#define PREDICT_PLAN_LONGEST_CERTIFICATE_H

#include "predict/alternatives.h"
#include "predict/plan/longest.h"

#include <stdbool.h>
#include <stddef.h>

struct longest_length_with_option { /* an option, and the longest sequence with it */
    const char *option;
    int64_t tokens;                   /* 0: refused, or nothing fits */
    int64_t tokens_if_longer_may_fit; /* the same as `tokens` if longer sequences may fit; else 0 */
};

struct longest_certificate {
    /* set by the caller: find only the length, with no simulation and no other options */
    bool wants_length_only;
    struct longest longest;
    /* the longest length that fits with a probability of at least one half, if that is longer than `longest`; else its
     * tokens are 0 */
    struct longest less_probable_longest;
    /* no length fits with the probability that the setup asks for: `longest` fits with at least one half */
    bool is_less_probable;
    struct length_ladder ladder;
    struct request request; /* the setup's request, with all degrees set */
    struct prediction longest_prediction,
        next_prediction; /* simulated; empty where there is none */
    /* the options with which a longer sequence fits, the longest first */
    struct longest_length_with_option longest_length_with_option[ALTERNATIVES_MAX];
    size_t longest_with_option_count;
    /* false: schedules are too large for a search with each option, all lengths fit, or an interrupt came */
    bool has_tried_options;
};

/* Finds the longest sequence that fits with the setup's fits_probability, and simulates it and the next length. Then
 * finds the longest sequence with each other option, unless schedules are too large for that. Returns STATUS_NO if
 * nothing fits. *certificate must be all-zero except `wants_length_only`; release it in either case.
 * setup->fits_probability is changed meanwhile, and restored. After a signal that base/interrupt.h has noted, the
 * certificate holds what was known by then. */
enum status longest_certificate_make(struct longest_certificate *certificate, struct setup *setup,
                                     struct diag *diag);
void longest_certificate_release(struct longest_certificate *certificate);

#endif

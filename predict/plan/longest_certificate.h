/* predict/plan/longest_certificate.h: the longest sequence of one configuration, simulated on both sides of the
 * boundary, and the longest sequence with each other option. */
#ifndef PREDICT_PLAN_LONGEST_CERTIFICATE_H
#define PREDICT_PLAN_LONGEST_CERTIFICATE_H

#include "predict/alternatives.h"
#include "predict/plan/longest.h"

#include <stdbool.h>
#include <stddef.h>

struct option_length { /* an option, and the longest sequence with it */
    const char *option;
    int64_t tokens; /* 0: refused, or nothing fits */
    /* the last length that was tried, if that fits, so that longer ones may fit, too; else 0 */
    int64_t last_tried_tokens;
};

struct longest_certificate {
    /* set by the caller: find only the length, with no simulation and no other options */
    bool length_only;
    struct longest longest;
    /* the longest length that fits with a probability of one half, if that is longer; else its tokens are 0 */
    struct longest less_probable_longest;
    /* nothing fits as surely as the setup asks: `longest` fits in half of the cases */
    bool is_less_probable;
    struct length_ladder ladder;
    struct request request; /* the setup's request, with all degrees set */
    struct prediction longest_prediction,
        next_prediction;                                  /* simulated; empty where there is none */
    struct option_length option_length[ALTERNATIVES_MAX]; /* longest first */
    size_t option_length_count;
    /* false: schedules are too large to search each option, or all lengths fit */
    bool were_options_tried;
};

/* Finds the longest sequence that fits, and simulates it and the next length. Then finds the longest sequence with each
 * other option, unless schedules are too large for that. Returns STATUS_NO if nothing fits. *certificate must be
 * all-zero except `length_only`; release it in either case. A length must fit with the setup's fits_probability, which
 * has its old value afterwards. After a signal that base/interrupt.h has noted, the certificate holds what was known by
 * then. */
enum status longest_certificate_make(struct longest_certificate *certificate, struct setup *setup,
                                     struct diag *diag);
void longest_certificate_release(struct longest_certificate *certificate);

#endif

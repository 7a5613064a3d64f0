/* predict/plan/outcome.h: what a search found out about one configuration.
 *
 * Outcomes cross processes, and are kept on disk (predict/kept_jobs.h), as plain bytes: keys say what they depend on,
 * and their few pointers are replaced by those of the candidate. */
#ifndef PREDICT_PLAN_OUTCOME_H
#define PREDICT_PLAN_OUTCOME_H

#include "predict/documents/batches.h"
#include "predict/intervals.h"
#include "predict/plan/longest.h"
#include "predict/plan/space.h"
#include "predict/prediction.h"

#include <stdbool.h>

enum outcome_kind {
    OUTCOME_NO_ROOM,    /* states and layer inputs need more memory than there is */
    OUTCOME_REFUSED,    /* could not be built */
    OUTCOME_UNFIT,      /* built: does not fit */
    OUTCOME_NOT_BETTER, /* bounded: cannot be better than another, whether or not it fits */
    OUTCOME_SIMULATED,
    OUTCOME_NOT_SEARCHED, /* not searched: an interrupt or the time that was set came before */
    OUTCOME_KIND_COUNT
};

/* The outcome of one candidate. Its only pointers are those of the request, and packed_set
 * (outcome_restore_pointers()). */
struct outcome {
    enum outcome_kind kind;
    /* the request with the changes that made it fit, such as more pieces, or the optimizer on the host */
    struct request request;
    uint8_t strategy;
    struct verdict verdict;
    double missing_bytes; /* UNFIT: bytes by which it does not fit */
    /* tokens/s/GPU: for OUTCOME_SIMULATED the predicted rate, else a rate that the candidate cannot exceed */
    double rate_bound;
    /* the seconds and the number of sequences of the step; with packed documents, of the step of the typical batch */
    double step_s, step_sequences;
    /* the packed batches; NULL: each sequence is one document */
    const struct packed_set *packed_set;
    /* OUTCOME_SIMULATED, with a packed set of documents: the step times of the batches on which this row was predicted.
     * rate_bound is then the mean tokens of a batch over the median step. If the best row was predicted on more
     * batches, it is the best row's rate times this row's rate over the best row's, both on the batches of this row. */
    struct step_spread spread;
    size_t won_batches;          /* in how many of these batches it is faster than the best row */
    struct intervals intervals;  /* of OUTCOME_SIMULATED only */
    double cause_s[CAUSE_COUNT]; /* seconds of the step by cause, the mean over all ranks */
    /* cause_s is final: with a packed set, CAUSE_DOCUMENTS has been separated */
    bool are_causes_final;
    struct prediction_products products; /* of OUTCOME_SIMULATED only */
    /* shares of the step: bubble_share, in which stages idle; exposed_copy_share, in which ranks wait for copies to the
     * host and back */
    double bubble_share, exposed_copy_share;
    /* tokens of a sequence: the longest that fits, or those that were asked for */
    int64_t sequence_tokens;
    struct length_ladder ladder; /* GOAL_LONGEST: lengths that were asked about */
    /* GOAL_LONGEST: longer sequences may fit, since the search stopped at the longest length that it tries or at the
     * length that is to be beaten */
    bool is_open_ended;
};

/* Fills an outcome with the figures of a simulated prediction and makes it OUTCOME_SIMULATED. */
void outcome_fill_times(struct outcome *outcome, const struct prediction *prediction);

/* Returns a digest of a request on `gpus` GPUs of the setup's cluster. Requests that differ in any member, or in what
 * their lists hold, have different digests. Of the model only what --sparsity and --adapter set is in it. */
uint64_t outcome_request_key(const struct setup *setup, const struct request *request,
                             int64_t gpus);

/* Returns a digest of all on which an outcome of the candidate depends, apart from the options and files of the
 * question and the state of the search. */
uint64_t outcome_key(const struct setup *setup, const struct space_open *open,
                     const struct candidate *candidate);

/* Gives an outcome that a process or a file returned the pointers of its candidate: all that a search changes of a
 * request are numbers. */
void outcome_restore_pointers(struct outcome *outcome, const struct candidate *candidate);

#endif

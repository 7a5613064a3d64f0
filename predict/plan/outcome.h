/* predict/plan/outcome.h: what a search found out about one configuration.
 *
 * Child processes return outcomes as plain bytes, which are also kept on disk (predict/kept_jobs.h), under a digest of
 * everything on which they depend. The few pointers of an outcome that was read are replaced by those of its candidate
 * (outcome_restore_pointers()). */
#ifndef PREDICT_PLAN_OUTCOME_H
#define PREDICT_PLAN_OUTCOME_H

#include "predict/documents/batches.h"
#include "predict/intervals.h"
#include "predict/plan/longest.h"
#include "predict/plan/space.h"
#include "predict/prediction.h"

#include <stdbool.h>

enum outcome_kind {
    OUTCOME_OVER_MEMORY_BOUND, /* states and layer inputs need more memory than there is */
    OUTCOME_REFUSED,           /* could not be built */
    OUTCOME_DOES_NOT_FIT,      /* does not fit, by its schedule, by shorter ones or by bounds */
    OUTCOME_BOUND_NOT_BETTER,  /* bounded: cannot be better than another, whether or not it fits */
    OUTCOME_SIMULATED,
    OUTCOME_NOT_SEARCHED, /* not searched: an interrupt or the time that was set came before */
    OUTCOME_KIND_COUNT
};

/* The outcome of one candidate. Its only pointers are those of the request, and packed_set. */
struct outcome {
    enum outcome_kind kind;
    /* the request with the changes that made it fit, such as more pieces, or the optimizer on the host */
    struct request request;
    uint8_t strategy;
    struct verdict verdict;
    /* OUTCOME_OVER_MEMORY_BOUND: by how many bytes even the lower bound exceeds the device's memory.
     * OUTCOME_DOES_NOT_FIT: the bytes that are missing on the device and on the host together, as `verdict` has them */
    double missing_bytes;
    /* tokens/s/GPU: for OUTCOME_SIMULATED the predicted rate, else a rate that the candidate cannot exceed */
    double rate_bound;
    /* the seconds and the number of sequences of the step; with packed documents, of the step of the typical batch */
    double step_s, step_sequences;
    /* the packed batches; NULL: each sequence is one document */
    const struct packed_set *packed_set;
    /* OUTCOME_SIMULATED, with a packed set: the spread of the step times on the batches on which this row was
     * predicted. rate_bound is then the mean tokens of these batches over their median step. Where the best row was
     * predicted on more batches, it is the best row's rate_bound times the ratio of the two rows' rates on the batches
     * of this row */
    struct step_spread spread;
    size_t won_batch_count;      /* in how many of these batches it is faster than the best row */
    struct intervals intervals;  /* of OUTCOME_SIMULATED only */
    double cause_s[CAUSE_COUNT]; /* seconds of the step by cause, the mean over all ranks */
    /* false: cause_s is preliminary: with a packed set, CAUSE_DOCUMENT_IMBALANCE is not separated in it yet */
    bool has_final_causes;
    struct prediction_products products; /* of OUTCOME_SIMULATED only */
    double bubble_share;                 /* the share of the step in which stages idle */
    double exposed_copy_share; /* the share in which ranks wait for copies to the host and back */
    /* tokens of a sequence: the longest that fits, or those that were asked for */
    int64_t sequence_tokens;
    struct length_ladder ladder; /* GOAL_LONGEST: the lengths that could be tried */
    /* GOAL_LONGEST: longer sequences may fit, since `ladder` has no longer ones to try */
    bool is_open_ended;
};

/* Fills an outcome with the figures of a simulated prediction and makes it OUTCOME_SIMULATED. */
void outcome_fill_times(struct outcome *outcome, const struct prediction *prediction);

/* Returns a digest of a request on `gpus` GPUs of the setup's cluster. It covers all members of the request and the
 * contents of its lists, but of its model only the fields that --sparsity and --adapter set. */
uint64_t outcome_request_digest(const struct setup *setup, const struct request *request,
                                int64_t gpus);

/* Returns a digest of a candidate, and of the part of the search's question that concerns it: its request, the
 * probability with which it has to fit, the framework, and padding. The question's other options and files, and the
 * state of the search, are not in it. */
uint64_t outcome_digest(const struct setup *setup, const struct space_open *open,
                        const struct candidate *candidate);

/* Replaces the pointers of an outcome that came from another process, or from a file, by those of its candidate. They
 * are the right ones, since a search changes only numbers of a candidate's request. */
void outcome_restore_pointers(struct outcome *outcome, const struct candidate *candidate);

#endif

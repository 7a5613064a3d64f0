/* predict/reproduce/outcome.h: the outcome of an entry: a state and a sentence.
 *
 * An entry with published numbers is matched if the mean of the absolute errors is at most 5 %, the worst at most 15
 * %, every verdict and longest length is right, and every point could be predicted. Entries without numbers are judged
 * by their claims. */
#ifndef PREDICT_REPRODUCE_OUTCOME_H
#define PREDICT_REPRODUCE_OUTCOME_H

#include "base/text.h"
#include "predict/reproduce/claims.h"

#define OUTCOME_MEAN_TOLERANCE 0.05
#define OUTCOME_WORST_TOLERANCE 0.15

enum outcome_state {
    STATE_MATCHED,
    STATE_NOT_MATCHED,
    STATE_JUDGED_BY_CLAIMS,     /* a chart without numbers, which its claims judge */
    STATE_DRAWN_WITHOUT_CLAIMS, /* timelines and predictions without a claim */
    STATE_FAILED, /* a chart or a drawing, one of whose configurations could not be predicted */
    STATE_NOT_SIMULABLE,
    STATE_NOT_RUN, /* some of its predictions are missing */
    STATE_COUNT
};
extern const char *const outcome_state_names[STATE_COUNT];

struct entry_outcome {
    enum outcome_state state;
    /* numbers of points with published values: those whose errors count in the means, those whose published value is 0,
     * those that cannot be predicted, and those whose prediction failed, which may also be points without a published
     * value */
    size_t counted_points, zero_published_points, unpredictable_points, failed_points;
    /* figures of the errors of the counted points; NAN: there are none */
    double mean_error, worst_error, mean_signed_error;
    size_t verdict_count, right_verdicts;
    /* how many of the counted points have an error within OUTCOME_WORST_TOLERANCE */
    size_t point_count_within_limit;
    size_t claim_count_by_verdict[CLAIM_VERDICT_COUNT];
};

struct entry_outcome outcome_of_entry(const struct reproduction *r, size_t entry);

/* Appends "7 values, mean error 4.0 %, worst -11.4 %; 3 of 4 claims hold". */
void outcome_put_sentence(struct text *out, const struct entry_outcome *outcome);

/* Appends a paragraph on what agrees and what does not: the sentence of outcome_put_sentence(), the point with the
 * largest error, each point whose outcome is wrong, the entry's reason if it is not matched, each claim, and the
 * entry's note. */
void outcome_put_paragraph(struct text *out, const struct reproduction *r, size_t entry);

#endif

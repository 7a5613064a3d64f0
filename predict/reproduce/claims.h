/* predict/reproduce/claims.h: checks whether a paper's claims about its figure hold for the predictions.
 *
 * A ratio compares two selections of points at the same place, at every place where both have a point. A value that is
 * missing because the step does not fit in memory counts as the worst possible. A claim about ratios holds if all of
 * them lie where the paper says, holds by less if they lie within the claim's wider ends, and does not hold otherwise.
 * If points have published values, the paper's own ratios are shown beside the predicted ones. Claims about crossovers,
 * best series and trends get the same verdicts by rules of their own (claims.c). */
#ifndef PREDICT_REPRODUCE_CLAIMS_H
#define PREDICT_REPRODUCE_CLAIMS_H

#include "base/text.h"
#include "predict/reproduce/reproduction.h"

enum claim_verdict {
    CLAIM_HOLDS,
    CLAIM_HOLDS_BY_LESS,
    CLAIM_DOES_NOT_HOLD,
    CLAIM_NOT_KNOWN, /* predictions are missing, or no step that it compares fits */
    CLAIM_VERDICT_COUNT
};
extern const char
    *const claim_verdict_names[CLAIM_VERDICT_COUNT]; /* "holds", "holds by less", ... */

/* Returns the verdict on a claim and appends the numbers that it rests on. */
enum claim_verdict claim_judge(struct text *numbers, const struct reproduction *r, size_t entry,
                               const struct catalogue_claim *claim);

#endif

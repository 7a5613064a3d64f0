/* predict/repeated_steps.h: steps that are predicted again with changes in the request, and the spread of their times.
 */
#ifndef PREDICT_REPEATED_STEPS_H
#define PREDICT_REPEATED_STEPS_H

#include "base/arena.h"
#include "predict/prediction.h"

/* The median of steps, the time that 9 of 10 steps do not exceed (interpolated between steps), and the longest. */
struct step_spread {
    size_t step_count;
    double median_s, percentile_90_s, longest_s;
};

/* Returns the spread of `count` >= 1 step times. */
struct step_spread step_spread_of(const double *step_s, size_t count);

/* The steps to predict. */
struct repeated_steps {
    /* its setup, request and slow rank are those of all steps, but for the changes */
    const struct prediction *first;
    int64_t layer_count; /* number of layers that are simulated; 0: all */
    /* Changes the copy of the request for step i. What the request then points to is allocated from the arena. */
    void (*change_request)(struct request *request, struct arena *arena, const void *context,
                           size_t i);
    const void *context;
    /* for the message about a step that cannot be predicted: the option that asks for the steps, the word for one of
     * them ("batch"), and the number that step 0 has in the message */
    const char *option, *step_name;
    size_t number_of_first_step_in_message;
};

/* The answer of one step. It holds no pointers, because it is passed between processes. */
struct repeated_step_answer {
    enum status status;
    double step_s;
    struct document_lateness_of_ranks lateness;
    char message[400]; /* the first line about a failure */
};

/* Predicts `count` steps in child processes, as many at once as there are cores, and shows the progress. answer: an
 * array of `count` elements, or of one if `count` is 0. Reports the first step that cannot be predicted. */
enum status repeated_steps_predict(const struct repeated_steps *steps, size_t count,
                                   struct repeated_step_answer *answer, struct diag *diag);

#endif

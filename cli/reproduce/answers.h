/* cli/reproduce/answers.h: the answers of predictions on disk (base/answer_file.h), so that a reproduction continues
 * where it stopped, and one figure reuses the predictions of another.
 *
 * The folder cli/reproduce/ runs the predictions of `reproduce` in processes, and makes its pictures and its page. */
#ifndef CLI_REPRODUCE_ANSWERS_H
#define CLI_REPRODUCE_ANSWERS_H

#include "base/answer_file.h"
#include "predict/reproduce/reproduction.h"

#include <stddef.h>

struct answers {
    struct answer_file file;
    size_t resumed_count; /* number of answers of wanted jobs that the file had */
};

/* Opens or creates the file, and gives the answers in it to the reproduction. *answers must be released even after
 * an error. */
enum status answers_open(struct answers *answers, const char *path, struct reproduction *r,
                         struct diag *diag);
/* Appends the answer of a job to the file. */
enum status answers_append_to_file(struct answers *answers, const struct reproduction *r,
                                   size_t job, const void *answer, struct diag *diag);
void answers_release(struct answers *answers);

#endif

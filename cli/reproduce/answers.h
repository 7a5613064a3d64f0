/* cli/reproduce/answers.h: the answers of predictions on disk, so that a reproduction continues where it stopped, and
 * one figure reuses the predictions of another.
 *
 * Each answer is appended to the file as soon as it is known, as one line: a hash of the job's key, a checksum and
 * the bytes. A line that was cut off or damaged is ignored. A file from another build of the program is discarded.
 *
 * The folder cli/reproduce/ runs the predictions of `reproduce` in processes, and makes its pictures and its page. */
#ifndef CLI_REPRODUCE_ANSWERS_H
#define CLI_REPRODUCE_ANSWERS_H

#include "base/diag.h"
#include "base/text.h"
#include "predict/reproduce/reproduction.h"

#include <stddef.h>

struct answers {
    int file;
    struct text path;
    size_t resumed; /* answers of wanted jobs that the file had */
};

/* Opens or creates the file, locks it against a second process, and passes the answers that it holds to the
 * reproduction. */
enum status answers_open(struct answers *answers, const char *path, struct reproduction *r,
                         struct diag *diag);
enum status answers_add(struct answers *answers, const struct reproduction *r, size_t job,
                        const void *answer, struct diag *diag);
void answers_close(struct answers *answers);

#endif

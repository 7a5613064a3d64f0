/* cli/reproduce/answers.h: the answers of predictions on disk, so that a reproduction goes on where it ended, and
 * one figure uses what another has predicted.
 *
 * The file takes each answer as one line the moment it is known: a number of the job's key, a checksum and the
 * bytes. A line that was cut off or damaged is left out. A file of another build of the program is begun anew. */
#ifndef CLI_REPRODUCE_ANSWERS_H
#define CLI_REPRODUCE_ANSWERS_H

#include "base/diag.h"
#include "base/text.h"
#include "predict/reproduce/reproduction.h"

#include <stddef.h>

struct answers {
    int file;
    struct text path;
    size_t resumed; /* answers that were found and are of jobs that are wanted */
};

/* Opens or makes the file, locks it against a second process, and hands the answers that it has to the
 * reproduction. */
enum status answers_open(struct answers *answers, const char *path, struct reproduction *r,
                         struct diag *diag);
enum status answers_add(struct answers *answers, const struct reproduction *r, size_t job,
                        const void *answer, struct diag *diag);
void answers_close(struct answers *answers);

#endif

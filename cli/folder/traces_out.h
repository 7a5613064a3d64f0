/* cli/folder/traces_out.h: the files that `predict -o DIR` writes. */
#ifndef CLI_FOLDER_TRACES_OUT_H
#define CLI_FOLDER_TRACES_OUT_H

#include "base/diag.h"
#include "cli/report/report.h"

#include <stdbool.h>

/* The files that are written only on demand. */
struct traces_emit {
    bool ir;       /* schedule.ir */
    bool snapshot; /* snapshot.pickle of rank 0 */
    bool chakra;   /* chakra.RANK.et of every rank */
    bool page;     /* the caller writes report.html next */
};

/* Writes ops.csv, memory.csv, trace.json, prediction.json and the files in `emit` into a folder, which is created if
 * it does not exist: all of them appear together, or none. The traces hold one rank of each class that was simulated.
 * Notes files in the folder that are left from another run. */
enum status traces_write(const struct report *report, const char *folder, struct traces_emit emit,
                         struct diag *note, struct diag *diag);

#endif

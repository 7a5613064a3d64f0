/* cli/folder/traces_out.h: the files that `predict -o DIR` writes. */
#ifndef CLI_FOLDER_TRACES_OUT_H
#define CLI_FOLDER_TRACES_OUT_H

#include "base/diag.h"
#include "cli/report/report.h"

#include <stdbool.h>

/* Files that are written only on request. */
struct traces_emit {
    bool writes_ir;       /* schedule.ir */
    bool writes_snapshot; /* snapshot.pickle of rank 0 */
    bool writes_chakra;   /* chakra.RANK.et of every rank */
    /* plan.json: the search of which this is the winner; the caller writes its page next, and an old one goes. NULL:
     * there was no search. */
    const struct text *search_json;
};

/* Writes ops.csv, memory.csv, trace.json, prediction.json and the files in `emit` into a folder, which is created if it
 * does not exist. All of them appear together, or none does. The traces have one rank of each class that was simulated.
 * Notes files that another run left in the folder. */
enum status traces_write(const struct report *report, const char *folder, struct traces_emit emit,
                         struct diag *note, struct diag *diag);

#endif

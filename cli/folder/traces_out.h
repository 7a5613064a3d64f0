/* cli/folder/traces_out.h: the files that `predict -o DIR` and, but for the page, `plan -o DIR` write. */
#ifndef CLI_FOLDER_TRACES_OUT_H
#define CLI_FOLDER_TRACES_OUT_H

#include "base/diag.h"
#include "cli/report/report.h"

#include <stdbool.h>

/* Files that are written only on request. */
struct traces_requested_files {
    bool writes_ir;       /* schedule.ir */
    bool writes_snapshot; /* snapshot.pickle of rank 0 */
    bool writes_chakra;   /* chakra.RANK.et of every rank */
    /* the text of plan.json: the search that this prediction won. A page that is already in the folder is then deleted,
     * since the caller writes a new one next. NULL: there was no search. */
    const struct text *search_json;
};

/* Writes ops.csv, memory.csv, trace.json, prediction.json and the files in `emit` to a folder, which is created if it
 * does not exist. Either all of them appear or none does. The traces have one rank of each simulated class. Files that
 * another run left in the folder are noted. */
enum status traces_write(const struct report *report, const char *folder,
                         struct traces_requested_files emit, struct diag *note, struct diag *diag);

#endif

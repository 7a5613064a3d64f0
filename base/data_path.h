/* base/data_path.h: finds the files that ship with the program.
 *
 * Presets, published measurements and plot scripts are data. If the environment
 * variable LONGHAUL_DATA names a folder, only that folder is searched. Otherwise
 * two are, in this order: share/longhaul beside the folder of the running program,
 * so that an installed tree can be moved, and the source tree that the program was
 * built from. */
#ifndef BASE_DATA_PATH_H
#define BASE_DATA_PATH_H

#include "base/diag.h"
#include "base/text.h"

#include <stdbool.h>

/* Sets *out to the path of a shipped file or folder. relative: its path within the data ("models/presets",
 * "traces/published/external.csv"). If there is no such file or folder, an error lists the folders that were
 * searched. */
enum status data_path(struct text *out, const char *relative, struct diag *diag);

/* Appends the folder of the running program, with a '/' at its end. Returns false if the system does not say which
 * folder that is. */
bool program_folder(struct text *out);

#endif

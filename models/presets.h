/* models/presets.h: finds the preset files that are shipped with the program.
 *
 * Presets are JSON files, one folder per kind below models/presets: boards/, clusters/, devices/, transformers/.
 * base/data_path.h says where that folder is searched. */
#ifndef MODELS_PRESETS_H
#define MODELS_PRESETS_H

#include "base/arena.h"
#include "base/diag.h"

#include <stddef.h>

/* Returns the folder of a kind of presets ("clusters"), in arena. It need not exist. */
const char *presets_folder(struct arena *arena, const char *kind);

/* Returns FOLDER/NAME.json, in arena. The file need not exist. */
const char *presets_path(struct arena *arena, const char *kind, const char *name);

/* Lists the names of all presets of a kind (files NAME.json), sorted, in arena. A folder that cannot be read is an
 * error. */
enum status presets_list_names(const char *kind, const char *const **names, size_t *count,
                               struct arena *arena, struct diag *diag);

/* Sets *path to the file of preset `name` of a kind. If there is none, the message is "at: error: no cluster 'dgx-h10'
 * ...; did you mean 'dgx-h100'?", in which `what` is "cluster". */
enum status presets_find_path(const char *kind, const char *what, const char *name, struct loc at,
                              const char **path, struct arena *arena, struct diag *diag);

#endif

/* base/path.h: what lies at a path of the file system. Links are followed. A path that
 * the system cannot examine counts as absent. */
#ifndef BASE_PATH_H
#define BASE_PATH_H

#include <stdbool.h>

bool path_exists(const char *path);
bool path_is_folder(const char *path);
bool path_is_file(const char *path); /* a regular file: no folder, pipe or device */

#endif

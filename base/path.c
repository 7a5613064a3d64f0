#include "base/path.h"

#include <sys/stat.h>

bool path_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

bool path_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool path_is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

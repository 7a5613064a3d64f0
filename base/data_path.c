#include "base/data_path.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* CMake sets both: LONGHAUL_INSTALL_DATA is the path from the program's folder to the installed data
 * ("../share/longhaul"), LONGHAUL_SOURCE_DATA the path of the source tree. */
#if !defined(LONGHAUL_INSTALL_DATA) || !defined(LONGHAUL_SOURCE_DATA)
#error "compile with LONGHAUL_INSTALL_DATA and LONGHAUL_SOURCE_DATA"
#endif

bool program_folder(struct text *out)
{
    char path[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path);
    if (size <= 0 || (size_t)size == sizeof path)
        return false;
    while (path[size - 1] != '/')
        size--;
    text_append(out, path, (size_t)size);
    return true;
}

/* Sets *out to the path folder/relative, and returns whether it exists. Appends the folder to *tried in either case. */
static bool find_in_folder(struct text *out, const char *folder, const char *relative,
                           struct text *tried)
{
    text_printf(tried, "%s%s", tried->size > 0 ? ", " : "", folder);
    out->size = 0;
    text_printf(out, "%s/%s", folder, relative);
    return access(out->data, F_OK) == 0;
}

enum status data_path(struct text *out, const char *relative, struct diag *diag)
{
    assert(relative[0] != '/');
    struct text tried = {0}, installed = {0};
    const char *chosen = getenv("LONGHAUL_DATA");
    bool found;
    if (chosen && chosen[0] != '\0') {
        found = find_in_folder(out, chosen, relative, &tried);
    } else {
        found = false;
        if (program_folder(&installed)) {
            text_puts(&installed, LONGHAUL_INSTALL_DATA);
            found = find_in_folder(out, installed.data, relative, &tried);
        }
        if (!found)
            found = find_in_folder(out, LONGHAUL_SOURCE_DATA, relative, &tried);
    }
    enum status status = STATUS_OK;
    if (!found)
        status = diag_error(diag, (struct loc){.name = relative}, STATUS_SYSTEM,
                            "not found in %s: set LONGHAUL_DATA to the folder that holds it",
                            tried.data);
    text_release(&tried);
    text_release(&installed);
    return status;
}

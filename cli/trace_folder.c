#include "cli/trace_folder.h"

#include "base/arena.h"
#include "traces/csv.h"
#include "traces/perfetto.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status refused(const char *folder, const char *what, struct diag *diag)
{
    return diag_error(diag, (struct loc){.name = folder}, STATUS_SYSTEM, "cannot %s: %s", what,
                      strerror(errno));
}

/* *made: it was not there. */
static enum status make(const char *folder, bool *made, struct diag *diag)
{
    struct stat info;
    *made = mkdir(folder, 0777) == 0;
    if (*made || (errno == EEXIST && stat(folder, &info) == 0 && S_ISDIR(info.st_mode)))
        return STATUS_OK;
    if (errno == EEXIST)
        return diag_error(diag, (struct loc){.name = folder}, STATUS_SYSTEM,
                          "is no folder; a new name, or that of a folder, would do");
    return refused(folder, "make the folder", diag);
}

enum status trace_folder_check(const char *folder, struct diag *diag)
{
    bool made;
    enum status status = make(folder, &made, diag);
    if (status == STATUS_OK && access(folder, W_OK | X_OK) != 0)
        status = refused(folder, "write into the folder", diag);
    if (made)
        rmdir(folder);
    return status;
}

enum status trace_folder_save(const struct trace *trace, const char *folder,
                              const struct text_file *more, size_t count, struct diag *diag)
{
    enum { OURS = 3 };
    static const char *const names[OURS] = {"ops.csv", "memory.csv", "trace.json"};
    struct text content[OURS] = {0};
    struct text *path = heap_zalloc(OURS + count, sizeof *path);
    struct text_file *file = heap_zalloc(OURS + count, sizeof *file);
    bool made = false;
    for (size_t i = 0; i < OURS + count; i++)
        text_printf(&path[i], "%s/%s", folder, i < OURS ? names[i] : more[i - OURS].path);
    trace_print_ops(trace, &content[0]);
    trace_print_memory(trace, &content[1]);
    enum status status = perfetto_print(trace, &content[2], path[2].data, diag);
    for (size_t i = 0; i < OURS + count; i++)
        file[i] = i < OURS
                      ? (struct text_file){path[i].data, content[i].data, content[i].size}
                      : (struct text_file){path[i].data, more[i - OURS].data, more[i - OURS].size};
    if (status == STATUS_OK)
        status = make(folder, &made, diag);
    if (status == STATUS_OK)
        status = text_save_all(file, OURS + count, diag);
    if (status != STATUS_OK && made)
        rmdir(folder);
    for (size_t i = 0; i < OURS + count; i++)
        text_release(&path[i]);
    for (size_t i = 0; i < OURS; i++)
        text_release(&content[i]);
    free(path);
    free(file);
    return status;
}

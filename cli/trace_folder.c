#include "cli/trace_folder.h"

#include "traces/csv.h"
#include "traces/perfetto.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status refused(const char *folder, const char *what, struct diag *diag)
{
    return diag_error(diag, (struct loc){.name = folder}, STATUS_SYSTEM, "cannot %s: %s", what,
                      strerror(errno));
}

enum status trace_folder_check(const char *folder, struct diag *diag)
{
    struct saving saving = {.folder = folder};
    enum status status = saving_begin(&saving, diag);
    if (status == STATUS_OK && saving.fresh && mkdir(folder, 0777) != 0)
        status = refused(folder, "make the folder", diag);
    if (status == STATUS_OK && access(folder, W_OK | X_OK) != 0)
        status = refused(folder, "write into the folder", diag);
    if (status == STATUS_OK && saving.fresh)
        rmdir(folder);
    saving_release(&saving);
    return status;
}

enum status trace_folder_add(const struct trace *trace, struct saving *saving, struct diag *diag)
{
    struct text out = {0}, path = {0};
    trace_print_ops(trace, &out);
    enum status status = saving_add(saving, "ops.csv", out.data, out.size, diag);
    text_release(&out);
    trace_print_memory(trace, &out);
    if (status == STATUS_OK)
        status = saving_add(saving, "memory.csv", out.data, out.size, diag);
    text_release(&out);
    text_printf(&path, "%s/trace.json", saving->folder);
    if (status == STATUS_OK)
        status = perfetto_print(trace, &out, path.data, diag);
    if (status == STATUS_OK)
        status = saving_add(saving, "trace.json", out.data, out.size, diag);
    text_release(&out);
    text_release(&path);
    return status;
}

enum status trace_folder_save(const struct trace *trace, const char *folder, struct diag *diag)
{
    struct saving saving = {.folder = folder};
    enum status status = saving_begin(&saving, diag);
    if (status == STATUS_OK)
        status = trace_folder_add(trace, &saving, diag);
    if (status == STATUS_OK)
        status = saving_end(&saving, diag);
    saving_release(&saving);
    return status;
}

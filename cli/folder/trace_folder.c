#include "cli/folder/trace_folder.h"

#include "traces/csv.h"
#include "traces/perfetto.h"

#include <dirent.h>
#include <string.h>

enum status trace_folder_check_can_write(const char *folder, struct diag *diag)
{
    struct file_set files = {.folder = folder};
    enum status status = file_set_begin(&files, diag);
    if (status == STATUS_OK)
        status = file_set_check_writable(&files, diag);
    file_set_release(&files);
    return status;
}

static enum status add_trace(const struct trace *trace, struct file_set *files, struct diag *diag)
{
    struct text out, path = {0};
    enum status status = file_set_open_file(files, "trace.json", &out, diag);
    if (status != STATUS_OK)
        return status;
    text_printf(&path, "%s/trace.json", files->folder);
    status = perfetto_print(trace, &out, path.data, diag);
    text_release(&path);
    if (status == STATUS_OK)
        return file_set_close_file(files, &out, diag);
    text_release(&out);
    return status;
}

static enum status add_printed_table(const struct trace *trace,
                                     void (*print)(const struct trace *trace, struct text *out),
                                     const char *name, struct file_set *files, struct diag *diag)
{
    struct text out;
    enum status status = file_set_open_file(files, name, &out, diag);
    if (status != STATUS_OK)
        return status;
    print(trace, &out);
    return file_set_close_file(files, &out, diag);
}

enum status trace_folder_add_files(const struct trace *trace, struct file_set *files,
                                   struct diag *diag)
{
    enum status status = add_printed_table(trace, trace_print_ops, "ops.csv", files, diag);
    if (status == STATUS_OK)
        status = add_printed_table(trace, trace_print_memory, "memory.csv", files, diag);
    if (status == STATUS_OK)
        status = add_trace(trace, files, diag);
    return status;
}

/* Returns whether `predict`, `run`, `plan` or `report` writes files of this name into a folder. */
static bool is_output_file_name(const char *name)
{
    static const char *const names[] = {"ops.csv",         "memory.csv",      "trace.json",
                                        "schedule.ir",     "snapshot.pickle", "prediction.json",
                                        TRACE_FOLDER_PAGE, TRACE_FOLDER_PLAN};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    if (strncmp(name, "chakra.", 7) != 0)
        return false;
    size_t digits = strspn(name + 7, "0123456789");
    return digits > 0 && strcmp(name + 7 + digits, ".et") == 0;
}

void trace_folder_note_stale_files(const struct file_set *files, struct diag *note)
{
    DIR *folder = opendir(files->folder);
    struct text first = {0};
    size_t others = 0;
    if (folder == NULL)
        return;
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (!is_output_file_name(entry->d_name) || file_set_has(files, entry->d_name))
            continue;
        if (others++ == 0 || strcmp(entry->d_name, first.data) < 0) {
            first.size = 0;
            text_puts(&first, entry->d_name);
        }
    }
    closedir(folder);
    if (others > 1)
        text_printf(&first, " and %zu more", others - 1);
    if (others > 0)
        diag_note(note, (struct loc){.name = files->folder},
                  "%s %s of another run, and %s beside what this one wrote", first.data,
                  others == 1 ? "is" : "are", others == 1 ? "stays" : "stay");
    text_release(&first);
}

enum status trace_folder_save(const struct trace *trace, const char *folder, struct diag *note,
                              struct diag *diag)
{
    struct file_set files = {.folder = folder};
    enum status status = file_set_begin(&files, diag);
    if (status == STATUS_OK)
        status = trace_folder_add_files(trace, &files, diag);
    if (status == STATUS_OK)
        status = file_set_end(&files, diag);
    if (status == STATUS_OK)
        trace_folder_note_stale_files(&files, note);
    file_set_release(&files);
    return status;
}

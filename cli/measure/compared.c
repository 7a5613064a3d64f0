#include "cli/measure/compared.h"

#include "traces/csv.h"
#include "traces/kineto.h"

#include <stdbool.h>
#include <sys/stat.h>

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool is_there(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

struct source {
    struct trace trace;
    bool foreign;
};

/* A folder holds ops.csv and, as a rule, memory.csv. */
static enum status load_folder(struct source *source, const char *folder, struct diag *diag)
{
    struct text path = {0};
    text_printf(&path, "%s/ops.csv", folder);
    enum status status = trace_load_ops(&source->trace, path.data, diag);
    path.size = 0;
    text_printf(&path, "%s/memory.csv", folder);
    if (status == STATUS_OK && is_there(path.data))
        status = trace_load_memory(&source->trace, path.data, diag);
    text_release(&path);
    return status;
}

static enum status load(struct source *source, const char *path, struct diag *diag)
{
    if (is_folder(path))
        return load_folder(source, path, diag);
    struct text text = {0};
    enum status status = text_read(&text, path, diag);
    if (status == STATUS_OK) {
        source->foreign = kineto_recognise(text.data, text.size);
        status = source->foreign
                     ? kineto_parse(&source->trace, path, text.data, text.size, diag)
                     : trace_parse_ops(&source->trace, path, text.data, text.size, diag);
    }
    text_release(&text);
    return status;
}

enum status compared_make(struct compared *c, const char *predicted, const char *measured,
                          struct diag *diag)
{
    struct source first = {0}, second = {0};
    enum status status = load(&first, predicted, diag);
    if (status == STATUS_OK && first.foreign)
        status = diag_error(diag, (struct loc){.name = predicted}, STATUS_BAD_INPUT,
                            "a recording of the PyTorch profiler is a measurement; the prediction, "
                            "written by `longhaul predict -o DIR`, comes first");
    if (status == STATUS_OK)
        status = load(&second, measured, diag);
    c->predicted = first.trace;
    c->measured = second.trace;
    if (status != STATUS_OK)
        return status;
    return second.foreign
               ? compare_foreign(&c->comparison, &c->predicted, &c->measured, measured, diag)
               : compare_own(&c->comparison, &c->predicted, &c->measured, measured, diag);
}

void compared_release(struct compared *c)
{
    comparison_release(&c->comparison);
    trace_release(&c->predicted);
    trace_release(&c->measured);
    *c = (struct compared){0};
}

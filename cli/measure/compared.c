#include "cli/measure/compared.h"

#include "base/path.h"
#include "traces/csv.h"
#include "traces/kineto.h"

#include <stdlib.h>
#include <string.h>

/* Loads the trace of a folder, which contains ops.csv and usually memory.csv. */
static enum status load_trace_folder(struct recording *recording, const char *folder,
                                     struct diag *diag)
{
    struct text path = {0};
    text_printf(&path, "%s/ops.csv", folder);
    enum status status = trace_load_ops(&recording->trace, path.data, diag);
    path.size = 0;
    text_printf(&path, "%s/memory.csv", folder);
    if (status == STATUS_OK && path_exists(path.data))
        status = trace_load_memory(&recording->trace, path.data, diag);
    text_release(&path);
    return status;
}

bool recording_has_known_format(const char *data, size_t size)
{
    static const char columns[] = "rank,stream,op,kind,";
    if (kineto_recognise(data, size))
        return true;
    while (size > 0 && data[0] == '#') { /* skips the lines of the header */
        const char *end = memchr(data, '\n', size);
        size_t line = end != NULL ? (size_t)(end - data) + 1 : size;
        data += line;
        size -= line;
    }
    return size > sizeof columns && memcmp(data, columns, sizeof columns - 1) == 0;
}

/* Does what recording_load() does. If `path` is a file, leaves its text in *text, which the caller releases. */
static enum status load_recording_text(struct recording *recording, struct kineto_host_calls *issue,
                                       const char *path, struct text *text, struct diag *diag)
{
    if (path_is_folder(path))
        return load_trace_folder(recording, path, diag);
    enum status status = text_read(text, path, diag);
    if (status != STATUS_OK)
        return status;
    recording->is_from_pytorch = kineto_recognise(text->data, text->size);
    return recording->is_from_pytorch
               ? kineto_parse_with_host_calls(&recording->trace, issue, path, text->data,
                                              text->size, diag)
               : trace_parse_ops(&recording->trace, path, text->data, text->size, diag);
}

enum status recording_load(struct recording *recording, struct kineto_host_calls *issue,
                           const char *path, struct diag *diag)
{
    struct text text = {0};
    enum status status = load_recording_text(recording, issue, path, &text, diag);
    text_release(&text);
    return status;
}

static enum status check_is_predicted_trace(const struct recording *first, const char *predicted,
                                            struct diag *diag)
{
    if (!first->is_from_pytorch)
        return STATUS_OK;
    return diag_error(diag, (struct loc){.name = predicted}, STATUS_BAD_INPUT,
                      "a recording of the PyTorch profiler is a measurement; the prediction, "
                      "written by `longhaul predict -o DIR`, comes first");
}

/* Checks, if there are several measurements, that all are recordings of the PyTorch profiler, and of different
 * ranks. */
static enum status check_recordings_of_different_ranks(const struct recording *recording,
                                                       const char *const *path, size_t count,
                                                       struct diag *diag)
{
    for (size_t i = 0; i < count && count > 1; i++) {
        struct loc at = {.name = path[i]};
        if (!recording[i].is_from_pytorch)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "is no recording of the PyTorch profiler; a trace of longhaul "
                              "holds all ranks, so it must be the only one");
        for (size_t k = 0; k < i; k++)
            if (recording[k].trace.ops.rank[0] == recording[i].trace.ops.rank[0])
                return diag_error(diag, at, STATUS_BAD_INPUT,
                                  "is a recording of rank %u, and so "
                                  "is %s: give one per rank",
                                  recording[i].trace.ops.rank[0], path[k]);
    }
    return STATUS_OK;
}

enum status compared_explain(struct explanation *explanation, const char *predicted,
                             const char *const *path, size_t count, struct diag *diag)
{
    struct recording first = {0};
    struct recording *recording = heap_zalloc(count, sizeof *recording);
    const struct trace **trace = heap_zalloc(count, sizeof(const struct trace *));
    enum status status = recording_load(&first, NULL, predicted, diag);
    if (status == STATUS_OK)
        status = check_is_predicted_trace(&first, predicted, diag);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        status = recording_load(&recording[i], NULL, path[i], diag);
        trace[i] = &recording[i].trace;
    }
    if (status == STATUS_OK)
        status = check_recordings_of_different_ranks(recording, path, count, diag);
    if (status == STATUS_OK)
        status = explain_measured_against_predicted(explanation, &first.trace, trace, path, count,
                                                    recording[0].is_from_pytorch, diag);
    for (size_t i = 0; i < count; i++)
        trace_release(&recording[i].trace);
    trace_release(&first.trace);
    free((void *)trace);
    free(recording);
    return status;
}

enum status compared_make(struct compared *c, const char *predicted, const char *measured,
                          struct diag *diag)
{
    struct recording first = {0}, second = {0};
    enum status status = recording_load(&first, NULL, predicted, diag);
    if (status == STATUS_OK)
        status = check_is_predicted_trace(&first, predicted, diag);
    if (status == STATUS_OK)
        status = load_recording_text(&second, NULL, measured, &c->recording, diag);
    if (!second.is_from_pytorch)
        text_release(&c->recording);
    c->predicted = first.trace;
    c->measured = second.trace;
    if (status != STATUS_OK)
        return status;
    return second.is_from_pytorch ? compare_with_profiler_trace(&c->comparison, &c->predicted,
                                                                &c->measured, measured, diag)
                                  : compare_with_longhaul_trace(&c->comparison, &c->predicted,
                                                                &c->measured, measured, diag);
}

void compared_release(struct compared *c)
{
    comparison_release(&c->comparison);
    trace_release(&c->predicted);
    trace_release(&c->measured);
    text_release(&c->recording);
    *c = (struct compared){0};
}

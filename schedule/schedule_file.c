#include "schedule/schedule_file.h"

#include "base/path.h"
#include "schedule/ir/ir_text.h"
#include "schedule/memory_plan/plan_offsets.h"
#include "schedule/recorded/recorded.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool has_offsets(const struct ir *ir)
{
    for (uint32_t b = 0; b < ir->buffer.count; b++)
        if (ir->buffer.offset[b] != UINT64_MAX)
            return true;
    return false;
}

/* Returns whether ops wait only for earlier ops of their role, and buffers are freed only by ops of their role. */
static bool waits_and_frees_are_in_order(const struct ir *ir)
{
    for (uint32_t r = 0; r < ir->role_count; r++)
        for (uint32_t op = ir->role[r].op_begin; role_has_op(&ir->role[r], op); op++)
            for (uint32_t w = 0; w < ir->op.wait_count[op]; w++)
                if (ir_waits(ir, op)[w].i >= op ||
                    !role_has_op(&ir->role[r], ir_waits(ir, op)[w].i))
                    return false;
    for (uint32_t b = 0; b < ir->buffer.count && ir->role_count > 0; b++)
        for (uint32_t k = 0; k < ir->buffer.free_count[b]; k++)
            if (!role_has_op(&ir->role[ir->buffer.role[b]], ir_free_set(ir, b)[k].i))
                return false;
    return true;
}

void schedule_recordings_release(struct schedule_recordings *recorded)
{
    for (uint32_t i = 0; i < recorded->count; i++)
        step_recording_release(&recorded->recording[i]);
    free(recorded->recording);
    free(recorded->event_of_op);
    *recorded = (struct schedule_recordings){0};
}

/* ---- recorded steps and texts ---- */

static enum status add_recording(struct schedule_recordings *recorded, const char *name,
                                 const struct text *text, struct diag *diag)
{
    recorded->recording =
        heap_realloc(recorded->recording, (size_t)recorded->count + 1, sizeof *recorded->recording);
    struct step_recording *recording = &recorded->recording[recorded->count++];
    *recording = (struct step_recording){0};
    return step_recording_parse(recording, name, text->data, text->size, diag);
}

static int compare_recordings_by_rank(const void *a, const void *b)
{
    const struct step_recording *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Makes a schedule of recordings if they were read, and hands them to the caller or releases them. */
static enum status make_schedule_of_recordings(struct ir *ir, struct schedule_recordings *recorded,
                                               struct schedule_recordings *kept, enum status status,
                                               struct diag *diag)
{
    if (recorded->count > 1)
        qsort(recorded->recording, recorded->count, sizeof *recorded->recording,
              compare_recordings_by_rank);
    if (status == STATUS_OK)
        status = recorded_make_schedule(ir, recorded->recording, recorded->count,
                                        &recorded->event_of_op, diag);
    if (kept != NULL)
        *kept = *recorded;
    else
        schedule_recordings_release(recorded);
    return status;
}

enum status schedule_parse(struct ir *ir, const char *name, const struct text *text,
                           struct schedule_recordings *kept, struct diag *diag)
{
    /* a text that begins as JSON is a recording, not a schedule */
    if (text->size > 0 && text->data[0] == '{') {
        struct schedule_recordings recorded = {0};
        enum status status = add_recording(&recorded, name, text, diag);
        return make_schedule_of_recordings(ir, &recorded, kept, status, diag);
    }
    enum status status = ir_parse(ir, name, text->data, text->size, diag);
    if (status == STATUS_OK && ir->op.count > 0 && !has_offsets(ir) &&
        waits_and_frees_are_in_order(ir))
        offsets_plan(ir, NULL);
    return status;
}

/* ---- files ---- */

static enum status load_schedule_or_recording_file(struct ir *ir, const char *path,
                                                   struct schedule_recordings *recorded,
                                                   struct diag *diag)
{
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    struct text text = {0};
    enum status status = text_read(&text, path, diag);
    if (status == STATUS_OK)
        status = schedule_parse(ir, name, &text, recorded, diag);
    text_release(&text);
    return status;
}

static enum status load_recording_of_stage(struct schedule_recordings *recorded, const char *path,
                                           struct diag *diag)
{
    struct text text = {0};
    enum status status = text_read(&text, path, diag);
    if (status == STATUS_OK && !step_recording_recognise(&text))
        status = diag_error(diag, (struct loc){.name = path}, STATUS_BAD_INPUT,
                            "is no recorded step: of several files each has to be the recording of "
                            "one stage of a pipeline");
    if (status == STATUS_OK)
        status = add_recording(recorded, path, &text, diag);
    text_release(&text);
    return status;
}

static bool has_ending(const char *name, const char *end)
{
    const size_t size = strlen(name), wanted = strlen(end);
    return size > wanted && strcmp(name + size - wanted, end) == 0;
}

/* Adds the recordings of a folder, its files *.json and *.json.gz; skips hidden files. It is an error if there is
 * none. */
static enum status add_recordings_of_folder(struct schedule_recordings *recorded,
                                            const char *folder, struct diag *diag)
{
    const uint32_t before = recorded->count;
    enum status status = STATUS_OK;
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return diag_error(diag, (struct loc){.name = folder}, STATUS_SYSTEM, "cannot open: %s",
                          strerror(errno));
    for (struct dirent *entry; status == STATUS_OK && (entry = readdir(dir)) != NULL;) {
        struct text path = {0};
        text_printf(&path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.' &&
            (has_ending(entry->d_name, ".json") || has_ending(entry->d_name, ".json.gz")))
            status = load_recording_of_stage(recorded, path.data, diag);
        text_release(&path);
    }
    closedir(dir);
    if (status == STATUS_OK && recorded->count == before)
        status = diag_error(diag, (struct loc){.name = folder}, STATUS_BAD_INPUT,
                            "holds no recorded step (*.json.gz or *.json)");
    return status;
}

enum status schedule_load(struct ir *ir, const char *const *path, size_t count,
                          struct schedule_recordings *kept, struct diag *diag)
{
    struct schedule_recordings recorded = {0};
    enum status status = STATUS_OK;
    if (count == 1 && !path_is_folder(path[0]))
        return load_schedule_or_recording_file(ir, path[0], kept, diag);
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = path_is_folder(path[i]) ? add_recordings_of_folder(&recorded, path[i], diag)
                                         : load_recording_of_stage(&recorded, path[i], diag);
    return make_schedule_of_recordings(ir, &recorded, kept, status, diag);
}

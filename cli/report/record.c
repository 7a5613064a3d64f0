#include "cli/report/record.h"

#include "predict/longhaul.h"

#include <errno.h>
#include <fcntl.h>
#include <longhaul_commit.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define GIB 1073741824.0

static void put_predicted(struct json_out *json, const struct prediction *p)
{
    struct prediction_result r;
    prediction_read(&r, p);
    json_begin_object(json, "predicted");
    json_put_bool(json, "fits", r.verdict.fits);
    json_put_number(json, "step_s", r.step_s);
    report_json_step_ends(json, &r.intervals, r.step_s);
    json_put_number(json, "tokens_per_s_gpu", r.tokens_per_s_gpu);
    if (p->has_choices)
        json_put_number(json, "mfu_longhaul", r.mfu[MFU_LONGHAUL]);
    json_put_number(json, "reserved_gib", (double)r.reserved_bytes / GIB);
    json_put_number(json, "tensors_gib", (double)r.peak_bytes / GIB);
    json_put_text(json, "device", r.intervals.like.device);
    json_put_text(json, "profile", r.intervals.like.framework);
    json_end_object(json);
}

static void put_measured(struct json_out *json)
{
    json_begin_object(json, "measured");
    json_put_text(json, "step_s", NULL);
    json_put_text(json, "reserved_gib", NULL);
    json_put_text(json, "tensors_gib", NULL);
    json_put_text(json, "note", NULL);
    json_end_object(json);
}

/* The features by which a measured run is compared with others. */
static void put_run(struct json_out *json, const struct prediction *p)
{
    const struct similarity like =
        similarity_of(p->setup, p->has_choices ? &p->choices : NULL, p->profile);
    const struct residual run = similarity_residual(&like);
    json_begin_object(json, "run");
    residual_put_json(json, &run);
    json_end_object(json);
}

static void put_record(struct text *out, const struct report *report)
{
    struct json_out json = {.out = out, .flat = true};
    char made[32] = "";
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc) != NULL)
        strftime(made, sizeof made, "%Y-%m-%dT%H:%M:%SZ", &utc);
    json_begin_object(&json, NULL);
    json_put_text(&json, "made", made);
    json_put_text(&json, "version", LONGHAUL_VERSION);
    json_put_text(&json, "commit", LONGHAUL_COMMIT);
    json_put_text(&json, "command", report->command);
    put_predicted(&json, report->prediction);
    put_measured(&json);
    put_run(&json, report->prediction);
    json_end_object(&json);
    text_putc(out, '\n');
}

/* True if the file's last line has no end: an editor left it so, or a write that was cut off. */
static bool lacks_line_end(const char *path)
{
    char last = '\n';
    int file = open(path, O_RDONLY | O_CLOEXEC);
    off_t size = file >= 0 ? lseek(file, 0, SEEK_END) : -1; /* a pipe has none */
    if (size > 0 && pread(file, &last, 1, size - 1) != 1)
        last = '\n';
    if (file >= 0)
        close(file);
    return last != '\n';
}

/* Appends a line in one write, so that two processes do not mix their lines. */
static enum status append(const char *path, struct text *line, struct diag *diag)
{
    const struct loc at = {.name = path};
    struct stat info;
    if (stat(path, &info) == 0 && S_ISREG(info.st_mode) && lacks_line_end(path)) {
        struct text ended = {0};
        text_putc(&ended, '\n');
        text_append(&ended, line->data, line->size);
        text_release(line);
        *line = ended;
    }
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0)
        return diag_error(diag, at, STATUS_SYSTEM, "cannot open: %s", strerror(errno));
    ssize_t put = write(file, line->data, line->size);
    int error = put < 0 ? errno : 0;
    if (close(file) != 0 && error == 0)
        error = errno;
    if (error == 0 && put == (ssize_t)line->size)
        return STATUS_OK;
    return diag_error(diag, at, STATUS_SYSTEM, "cannot write: %s",
                      error != 0 ? strerror(error) : "the line was cut off");
}

enum status record_append(const char *path, const struct report *report, struct diag *diag)
{
    struct text line = {0};
    put_record(&line, report);
    enum status status = append(path, &line, diag);
    text_release(&line);
    return status;
}

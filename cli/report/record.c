#include "cli/report/record.h"

#include "base/path.h"
#include "predict/longhaul.h"

#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <longhaul_commit.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define GIB 1073741824.0

static void put_predicted(struct json_out *json, const struct prediction *p)
{
    struct prediction_result r;
    prediction_fill_result(&r, p);
    json_begin_object(json, "predicted");
    json_put_bool(json, "fits", r.verdict.fits);
    json_put_number(json, "step_s", r.step_s);
    report_json_step_interval(json, &r.intervals, r.step_s);
    if (!prediction_is_recorded(p))
        json_put_number(json, "tokens_per_s_gpu", r.tokens_per_s_gpu);
    if (p->has_choices)
        json_put_number(json, "mfu_longhaul", r.mfu[MFU_LONGHAUL]);
    json_put_number(json, "reserved_gib", (double)r.reserved_bytes / GIB);
    json_put_number(json, "tensors_gib", (double)r.peak_bytes / GIB);
    json_put_text(json, "device", r.intervals.similarity.device);
    json_put_text(json, "profile", r.intervals.similarity.framework);
    json_end_object(json);
}

/* Writes the member `measured`. step_s: the measured seconds of the step; NAN: it was not measured yet. */
static void put_measured(struct json_out *json, double step_s)
{
    json_begin_object(json, "measured");
    json_put_number(json, "step_s", step_s);
    json_put_text(json, "reserved_gib", NULL);
    json_put_text(json, "tensors_gib", NULL);
    json_put_text(json, "note", NULL);
    json_end_object(json);
}

static void begin_record_json(struct json_out *json, const char *command)
{
    char made[32] = "";
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc) != NULL)
        strftime(made, sizeof made, "%Y-%m-%dT%H:%M:%SZ", &utc);
    json_begin_object(json, NULL);
    json_put_text(json, "made", made);
    json_put_text(json, "version", LONGHAUL_VERSION);
    json_put_text(json, "commit", LONGHAUL_COMMIT);
    json_put_text(json, "command", command);
}

static void put_record(struct text *out, const struct report *report)
{
    struct json_out json = {.out = out, .on_one_line = true};
    begin_record_json(&json, report->command);
    put_predicted(&json, report->prediction);
    put_measured(&json, NAN);
    report_json_run_features(&json, report->prediction);
    json_end_object(&json);
    text_putc(out, '\n');
}

/* True if the file's last line has no end: an editor left it so, or a write that was cut off. */
static bool lacks_line_end(const char *path)
{
    char last = '\n';
    int file = open(path, O_RDONLY | O_CLOEXEC);
    off_t size = file >= 0 ? lseek(file, 0, SEEK_END) : -1; /* -1 for a pipe, which has no size */
    if (size > 0 && pread(file, &last, 1, size - 1) != 1)
        last = '\n';
    if (file >= 0)
        close(file);
    return last != '\n';
}

/* Appends a line in one write, so that two processes do not mix their lines. If the file's last
 * line has no line end, *line gets one at its beginning first. */
static enum status append_line(const char *path, struct text *line, struct diag *diag)
{
    const struct loc at = {.name = path};
    if (path_is_file(path) && lacks_line_end(path)) {
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

enum status record_append_prediction(const char *path, const struct report *report,
                                     struct diag *diag)
{
    struct text line = {0};
    put_record(&line, report);
    enum status status = append_line(path, &line, diag);
    text_release(&line);
    return status;
}

/* Appends the record of a stored prediction whose step was measured. */
static enum status put_record_with_measured_step(struct text *out, struct json_node prediction,
                                                 double measured_s, struct diag *diag)
{
    struct json_out json = {.out = out, .on_one_line = true};
    struct json_node run, made_by;
    struct residual residual = {.log_ratio = {NAN, NAN}, .log_ratio_at_first_prediction = NAN};
    const char *command = "";
    double step_s;
    if (json_find_member(prediction, "run").value == NULL)
        return json_error(prediction, diag,
                          "has no member 'run', which says what the run consists of: only the step "
                          "of a whole model with a framework's profile is recorded");
    enum status status = json_get_object(prediction, "run", &run, diag);
    if (status == STATUS_OK)
        status = residual_read_json(&residual, run, diag);
    if (status == STATUS_OK)
        status = json_get_double(prediction, "step_s", 0, DBL_MAX, &step_s, diag);
    if (status == STATUS_OK)
        status = json_get_object(prediction, "made_by", &made_by, diag);
    if (status == STATUS_OK)
        status = json_get_string(made_by, "command", &command, diag);
    if (status != STATUS_OK)
        return status;
    begin_record_json(&json, command);
    json_begin_object(&json, "predicted");
    json_put_number(&json, "step_s", step_s);
    json_end_object(&json);
    put_measured(&json, measured_s);
    json_begin_object(&json, "run");
    residual_put_json(&json, &residual);
    json_end_object(&json);
    json_end_object(&json);
    text_putc(out, '\n');
    return STATUS_OK;
}

enum status record_append_with_measured_step(const char *path, struct json_node prediction,
                                             double measured_s, struct diag *diag)
{
    struct text line = {0};
    enum status status = put_record_with_measured_step(&line, prediction, measured_s, diag);
    if (status == STATUS_OK)
        status = append_line(path, &line, diag);
    text_release(&line);
    return status;
}

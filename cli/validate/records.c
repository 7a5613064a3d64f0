#include "cli/validate/records.h"

#include "base/json.h"
#include "predict/validate/error_means.h"

#include <float.h>
#include <math.h>
#include <string.h>

struct record_totals {
    size_t recorded_count, inside_count, runs_with_interval;
    struct error_means steps; /* errors of the steps: measured / predicted seconds - 1 */
};

/* Reads a number into *value, which is NAN if the number is null or absent. A number that is not above 0 is an
 * error. */
static enum status read_number(struct json_node object, const char *key, double *value,
                               struct diag *diag)
{
    struct json_node node = json_find_member(object, key);
    *value = NAN;
    if (node.value == NULL)
        return STATUS_OK;
    enum status status = json_as_double(node, 0, DBL_MAX, value, diag);
    if (status == STATUS_OK && !(*value > 0))
        status = json_error(node, diag, "expected a number above 0, or null");
    return status;
}

static void put_error(struct text *out, const char *what, double predicted, double measured,
                      const char *unit)
{
    text_printf(out, "  %s: predicted %.4g %s, measured %.4g: %+.1f %%\n", what, predicted, unit,
                measured, 100 * (measured / predicted - 1));
}

static void put_step(struct text *out, struct record_totals *sums, double step_s, double low_s,
                     double high_s, double measured_s)
{
    error_means_add(&sums->steps, measured_s / step_s - 1);
    put_error(out, "step", step_s, measured_s, "s");
    if (isnan(low_s) || isnan(high_s))
        return;
    bool held = measured_s >= low_s && measured_s <= high_s;
    sums->runs_with_interval++;
    sums->inside_count += held;
    text_printf(out, "  %s the 90 %% interval, %.4g to %.4g s\n", held ? "inside" : "outside",
                low_s, high_s);
}

struct record_printer {
    struct text *out;
    struct record_totals sums;
};

static enum status print_record(struct json_node record, void *record_printer, struct diag *diag)
{
    struct record_printer *printer = record_printer;
    struct text *out = printer->out;
    struct record_totals *sums = &printer->sums;
    static const char *const memories[][2] = {{"reserved_gib", "reserved memory"},
                                              {"tensors_gib", "memory of tensors"}};
    const char *command, *commit, *version, *made;
    struct json_node predicted, measured;
    double step_s, low_s, high_s, measured_s;
    enum status status = json_get_string(record, "command", &command, diag);
    if (status == STATUS_OK)
        status = json_get_string(record, "commit", &commit, diag);
    if (status == STATUS_OK)
        status = json_get_string(record, "version", &version, diag);
    if (status == STATUS_OK)
        status = json_get_string(record, "made", &made, diag);
    if (status == STATUS_OK)
        status = json_get_object(record, "predicted", &predicted, diag);
    if (status == STATUS_OK)
        status = json_get_object(record, "measured", &measured, diag);
    if (status == STATUS_OK)
        status = json_get_double(predicted, "step_s", 0, DBL_MAX, &step_s, diag);
    if (status == STATUS_OK)
        status = read_number(predicted, "step_low_s", &low_s, diag);
    if (status == STATUS_OK)
        status = read_number(predicted, "step_high_s", &high_s, diag);
    if (status == STATUS_OK)
        status = read_number(measured, "step_s", &measured_s, diag);
    if (status != STATUS_OK)
        return status;
    sums->recorded_count++;
    text_printf(out, "%s\n  made %s by longhaul %s, commit %s\n", command, made, version, commit);
    if (isnan(measured_s))
        text_printf(out, "  step: predicted %.4g s, not measured yet\n", step_s);
    else
        put_step(out, sums, step_s, low_s, high_s, measured_s);
    for (size_t i = 0; status == STATUS_OK && i < ARRAY_LEN(memories); i++) {
        double bytes, measured_bytes;
        status = read_number(predicted, memories[i][0], &bytes, diag);
        if (status == STATUS_OK)
            status = read_number(measured, memories[i][0], &measured_bytes, diag);
        if (status == STATUS_OK && !isnan(bytes) && !isnan(measured_bytes))
            put_error(out, memories[i][1], bytes, measured_bytes, "GiB");
    }
    return status;
}

static void put_totals_of_recorded_steps(struct text *out, const struct record_totals *s)
{
    text_printf(out, "%zu recorded, %zu measured", s->recorded_count, s->steps.count);
    if (s->steps.count > 0)
        text_printf(out,
                    "; measured / predicted seconds - 1: mean of absolute values %.1f %%, mean "
                    "%+.1f %%, worst %+.1f %%",
                    100 * error_means_mean_absolute(&s->steps),
                    100 * error_means_mean_signed(&s->steps), 100 * s->steps.worst_error);
    if (s->runs_with_interval > 0)
        text_printf(out, "; %zu of %zu inside their 90 %% intervals", s->inside_count,
                    s->runs_with_interval);
    text_putc(out, '\n');
}

enum status validation_print_record_file(struct text *out, const char *path, struct diag *diag)
{
    struct text file = {0};
    struct record_printer printer = {.out = out};
    enum status status = text_read(&file, path, diag);
    if (status == STATUS_OK)
        status = json_read_lines(path, file.data, file.size, print_record, &printer, diag);
    if (status == STATUS_OK && printer.sums.recorded_count == 0)
        status = diag_error(diag, (struct loc){.name = path}, STATUS_BAD_INPUT,
                            "holds no record: `longhaul predict --record FILE` appends one");
    if (status == STATUS_OK)
        put_totals_of_recorded_steps(out, &printer.sums);
    text_release(&file);
    return status;
}

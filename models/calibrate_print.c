/* Prints the device file that a calibration makes, and the table of its fits. */
#include "base/json_write.h"
#include "models/calibrate_parts.h"
#include "models/noise.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- numbers with units, to six digits ---- */

static const struct {
    enum unit_kind unit;
    /* the unit is used for values of at least this; of several such rows the first counts */
    double least_value_for_unit;
    double scale;
    const char *name;
} prefixes[] = {
    {UNIT_WATTS, 0, 1, "W"},
    {UNIT_FLOP_PER_S, 1e15, 1e15, "PFLOP/s"},
    {UNIT_FLOP_PER_S, 1e12, 1e12, "TFLOP/s"},
    {UNIT_FLOP_PER_S, 1e8, 1e9, "GFLOP/s"},
    {UNIT_FLOP_PER_S, 0, 1, "FLOP/s"},
    {UNIT_BYTES_PER_S, 1e12, 1e12, "TB/s"},
    {UNIT_BYTES_PER_S, 1e8, 1e9, "GB/s"},
    {UNIT_BYTES_PER_S, 0, 1, "B/s"},
    {UNIT_BYTES, 1e9, 1e9, "GB"},
    {UNIT_BYTES, 1e6, 1e6, "MB"},
    {UNIT_BYTES, 1e3, 1e3, "KB"},
    {UNIT_BYTES, 0, 1, "B"},
    {UNIT_SECONDS, 1, 1, "s"},
    {UNIT_SECONDS, 1e-3, 1e-3, "ms"},
    {UNIT_SECONDS, 1e-6, 1e-6, "us"},
    {UNIT_SECONDS, 0, 1e-9, "ns"},
};

void calibrate_append_quantity_to_text(struct text *out, enum unit_kind unit, double value)
{
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
        if (prefixes[i].unit == unit && value >= prefixes[i].least_value_for_unit) {
            text_printf(out, "%.6g %s", value / prefixes[i].scale, prefixes[i].name);
            return;
        }
    text_printf(out, "%.6g", value);
}

void calibrate_write_number_as_json(struct json_out *json, const char *name, enum unit_kind unit,
                                    double value, const char *source, double spread)
{
    struct text text = {0};
    calibrate_append_quantity_to_text(&text, unit, value);
    json_begin_inline_object(json, name);
    if (unit == UNIT_NONE)
        json_put_rounded(json, "value", value, 6);
    else
        json_put_text(json, "value", text.data);
    json_put_text(json, "source", source);
    if (spread > 0)
        json_put_rounded(json, "spread", spread, 3);
    json_end_inline_object(json);
    text_release(&text);
}

/* ---- the file ---- */

enum { DEPTH_MAX = 6 }; /* the most objects that enclose a number */

/* The state of writing numbers as members of nested objects. A number's name is its path: the number named
 * "attention.cpu.forward.rates.64" is the member "64" of four objects in each other. From one number to the next,
 * objects that enclose both stay open. */
struct device_file_writer {
    struct json_out json;
    char open_object[DEPTH_MAX][32]; /* the names of the open objects, the outermost first */
    size_t depth;                    /* number of open objects */
};

static void close_objects_to(struct device_file_writer *w, size_t depth)
{
    for (; w->depth > depth; w->depth--)
        json_end_object(&w->json);
}

/* Closes and opens objects until exactly those of path[0..size) are open: "attention.cpu.forward.rates". */
static void open_objects_of_path(struct device_file_writer *w, const char *path, size_t size)
{
    bool shared = true;
    size_t depth = 0, part;
    for (const char *at = path, *end = path + size; at < end; at += part + 1, depth++) {
        part = strcspn(at, ".");
        if (part > (size_t)(end - at))
            part = (size_t)(end - at);
        shared = shared && depth < w->depth && strlen(w->open_object[depth]) == part &&
                 memcmp(w->open_object[depth], at, part) == 0;
        if (shared)
            continue;
        close_objects_to(w, depth);
        assert(depth < DEPTH_MAX && part < sizeof w->open_object[0]);
        memcpy(w->open_object[depth], at, part);
        w->open_object[depth][part] = '\0';
        json_begin_object(&w->json, w->open_object[depth]);
        w->depth++;
    }
    close_objects_to(w, depth);
}

/* The spread of a number is the larger of two values: its relative standard error, and the
 * leave-one-out error of the family's fit (the fit's root mean square error if no point could be
 * left out). If both are below CALIBRATE_WRITTEN_SPREAD_MIN, as for a number that a single point
 * determined, the spread comes from the repeats of points: p90 - p10 of a normal distribution is
 * 2.56 standard deviations, so it is log(p90 / p10) / 2.56. The result lies between
 * CALIBRATE_WRITTEN_SPREAD_MIN and CALIBRATE_WRITTEN_SPREAD_MAX. */
double calibration_number_spread(const struct calibration *c, const struct calibrate_number *number)
{
    if (number->origin != CALIBRATE_FITTED)
        return 0;
    const struct calibrate_family *family = &c->family[number->family_index];
    double left =
        family->points_left_out_one_by_one > 0 ? family->leave_one_out_error : family->rms_error;
    double own = number->value > 0 ? number->standard_error / number->value : 0;
    double spread = fmax(left, own);
    if (spread < CALIBRATE_WRITTEN_SPREAD_MIN)
        spread = fmax(log(fmax(c->median_p90_over_p10_of_points, 1)) / 2.56,
                      CALIBRATE_WRITTEN_SPREAD_MIN);
    return fmin(spread, CALIBRATE_WRITTEN_SPREAD_MAX);
}

static void write_number(struct device_file_writer *w, const struct calibration *c,
                         const struct calibrate_number *number)
{
    const char *leaf = strrchr(number->name, '.');
    open_objects_of_path(w, number->name, (size_t)(leaf - number->name));
    calibrate_write_number_as_json(&w->json, leaf + 1, number->unit, number->value,
                                   number->source_text, calibration_number_spread(c, number));
}

static void write_calibrated_range_of_family(struct device_file_writer *w,
                                             const struct calibrate_family *family)
{
    const struct cost_calibrated_range *calibration = &family->calibration;
    open_objects_of_path(w, family->name, strlen(family->name));
    json_begin_inline_object(&w->json, "calibrated");
    json_put_rounded(&w->json, "residual", calibration->rms_relative_error, 6);
    json_put_text(&w->json, "source", calibration->source);
    json_begin_object(&w->json, "sizes");
    for (int i = 0; i < COST_SIZE_COUNT; i++) {
        if (calibration->largest_size[i] == 0)
            continue;
        json_begin_array(&w->json, cost_size_names[i]);
        json_put_rounded(&w->json, NULL, calibration->smallest_size[i], 15);
        json_put_rounded(&w->json, NULL, calibration->largest_size[i], 15);
        json_end_array(&w->json);
    }
    json_end_object(&w->json);
    json_end_inline_object(&w->json);
}

/* Writes the numbers whose names begin with the prefix and a '.', and then the calibration of the family of that
 * name. */
static void write_numbers_under(struct device_file_writer *w, const struct calibration *c,
                                const char *prefix)
{
    size_t size = strlen(prefix);
    /* members of an inner object, such as "memory.kinds.gelu", come after all direct members of "memory" */
    for (int deeper = 0; deeper < 2; deeper++)
        for (size_t i = 0; i < c->number_count; i++) {
            const char *name = c->number[i].name;
            if (strncmp(name, prefix, size) == 0 && name[size] == '.' &&
                (strchr(name + size + 1, '.') != NULL) == deeper)
                write_number(w, c, &c->number[i]);
        }
    for (size_t i = 0; i < c->family_count; i++)
        if (strcmp(c->family[i].name, prefix) == 0)
            write_calibrated_range_of_family(w, &c->family[i]);
}

void calibration_print_device(const struct calibration *calibration, const char *name,
                              const char *base, const char *note, struct text *out)
{
    static const char *const prefixes_of_file[] = {"device", "matmul", "memory", "host", "cpu"};
    struct device_file_writer w = {.json = {.out = out}};
    json_begin_object(&w.json, NULL);
    json_put_count(&w.json, "longhaul_device_cost", 1);
    json_put_text(&w.json, "name", name);
    if (note)
        json_put_text(&w.json, "note", note);
    json_put_text(&w.json, "base", base);
    if (calibration->points_file) {
        json_begin_inline_object(&w.json, "points");
        json_put_text(&w.json, "file", calibration->points_file);
        json_put_text(&w.json, "source", calibration->points_source);
        json_end_inline_object(&w.json);
    }
    for (size_t i = 0; i < ARRAY_LEN(prefixes_of_file); i++)
        write_numbers_under(&w, calibration, prefixes_of_file[i]);
    char prefix[64];
    for (int impl = 0; impl < ATTENTION_IMPL_COUNT; impl++)
        for (int pass = 0; pass < ATTENTION_PASS_COUNT; pass++) {
            snprintf(prefix, sizeof prefix, "attention.%s.%s",
                     attention_impl_name((enum attention_impl)impl), cost_pass_names[pass]);
            write_numbers_under(&w, calibration, prefix);
        }
    close_objects_to(&w, 0);
    json_end_object(&w.json);
    text_putc(out, '\n');
}

/* ---- the report ---- */

static void put_percent(struct text *out, double value)
{
    text_printf(out, "%.*f %%", fabs(value) < 0.1 ? 1 : 0, 100 * value);
}

static void report_number(const struct calibration *c, const struct calibrate_number *number,
                          struct text *out)
{
    size_t begin = out->size;
    text_printf(out, "  %-38s ", number->name);
    calibrate_append_quantity_to_text(out, number->unit, number->value);
    if (number->origin == CALIBRATE_FITTED && number->standard_error > 0 && number->value > 0) {
        text_puts(out, " +- ");
        put_percent(out, number->standard_error / number->value);
    } else if (number->origin != CALIBRATE_FITTED) {
        while (out->size < begin + 58)
            text_putc(out, ' ');
        text_printf(out, "  %s", number->source_text);
    } else if (number->is_best_value_at_bound) {
        text_puts(out, " (at its bound)");
    }
    if (number->origin == CALIBRATE_FITTED) {
        text_puts(out, ", spread ");
        put_percent(out, calibration_number_spread(c, number));
    }
    text_putc(out, '\n');
}

void calibration_print_report(const struct calibration *c, struct text *out)
{
    for (size_t i = 0; i < c->family_count; i++) {
        const struct calibrate_family *family = &c->family[i];
        text_printf(out, "%s: %zu point%s, %zu parameter%s; root mean square ", family->name,
                    family->point_count, family->point_count == 1 ? "" : "s",
                    family->parameter_count, family->parameter_count == 1 ? "" : "s");
        put_percent(out, family->rms_error);
        text_puts(out, ", leave-one-out ");
        if (family->points_left_out_one_by_one > 0)
            put_percent(out, family->leave_one_out_error);
        else
            text_puts(out, "unknown");
        text_puts(out, ", worst ");
        put_percent(out, family->worst_error);
        text_printf(out, " (%s", family->worst_point_text);
        if (family->worst_point_loc.name)
            text_printf(out, ", %s:%u", family->worst_point_loc.name, family->worst_point_loc.line);
        text_puts(out, ")\n");
        for (size_t k = 0; k < c->number_count; k++)
            if (c->number[k].family_index == (int)i)
                report_number(c, &c->number[k], out);
    }
    bool head = false;
    for (size_t k = 0; k < c->number_count; k++) {
        if (c->number[k].family_index >= 0)
            continue;
        if (!head)
            text_puts(out, "not fitted:\n");
        head = true;
        report_number(c, &c->number[k], out);
    }
    if (c->notes.size > 0)
        text_append(out, c->notes.data, c->notes.size);
}

void calibrate_append_line_of_fallbacks(const struct calibrate_fallback *fallback, size_t count,
                                        bool has_kept_base_numbers, bool disturbed,
                                        const char *head, struct text *out)
{
    const char *separator = head;
    for (size_t i = 0; i < count; i++)
        if (fallback[i].has_kept_base_numbers == has_kept_base_numbers &&
            fallback[i].is_due_to_disturbed_points == disturbed) {
            text_printf(out, "%s%s", separator, fallback[i].name);
            separator = ", ";
        }
    if (separator != head)
        text_putc(out, '\n');
}

void calibration_print_noise(const struct calibration *c, const char *base, struct text *out)
{
    struct text disturbed = {0}, refused = {0};
    text_printf(out, "spread     the middle point's p90 is %.2f times its p10%s\n",
                c->median_p90_over_p10_of_points,
                noise_shows_disturbance(c->median_p90_over_p10_of_points, 0)
                    ? ": other programs took the processors meanwhile (1.2 to 1.3 is usual)"
                    : "");
    calibrate_append_line_of_fallbacks(c->fallback, c->fallback_count, false, true,
                                       "fastest    fitted to the p10 of disturbed points: ", out);
    text_printf(&disturbed, "refused    of disturbed points, and left as %s has them: ", base);
    calibrate_append_line_of_fallbacks(c->fallback, c->fallback_count, true, true, disturbed.data,
                                       out);
    text_printf(&refused, "refused    and left as %s has them: ", base);
    calibrate_append_line_of_fallbacks(c->fallback, c->fallback_count, true, false, refused.data,
                                       out);
    if (c->unmeasured_family_count > 0)
        text_printf(out, "unmeasured and left as %s has them: ", base);
    for (size_t i = 0; i < c->unmeasured_family_count; i++)
        text_printf(out, "%s%s", c->unmeasured_families[i],
                    i + 1 < c->unmeasured_family_count ? ", " : "\n");
    text_release(&disturbed);
    text_release(&refused);
}

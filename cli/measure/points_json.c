#include "cli/measure/points_json.h"

#include "base/json_write.h"
#include "cli/common/output.h"

/* A column has: key, label, label in a page, kind, width in text, description (cli/common/rows.h). */
/* clang-format off */
static const struct column points_of_bench[] = {
    {"measured", NULL, NULL, COLUMN_PLAIN_TEXT, 0, "What was timed: the work, its issue by the host, the start of a kernel, ..."},
    {"kind", NULL, NULL, COLUMN_PLAIN_TEXT, 0, "A kind of work: longhaul list kinds."},
    {"params", NULL, NULL, COLUMN_JSON_OBJECT, 0, "The parameters of the kind."},
    {"in", NULL, NULL, COLUMN_PLAIN_TEXT | COLUMN_OPTIONAL, 0, "The dtype of the operands that are read."},
    {"out", NULL, NULL, COLUMN_PLAIN_TEXT | COLUMN_OPTIONAL, 0, "The dtype of the operands that are written."},
    {"reads", NULL, NULL, COLUMN_COUNT, 0, NULL},
    {"writes", NULL, NULL, COLUMN_COUNT, 0, NULL},
    {"impl", NULL, NULL, COLUMN_PLAIN_TEXT | COLUMN_OPTIONAL, 0, "The implementation of attention."},
    {"median_s", NULL, NULL, COLUMN_SECONDS, 0, NULL},
    {"p10_s", NULL, NULL, COLUMN_SECONDS, 0, NULL},
    {"p90_s", NULL, NULL, COLUMN_SECONDS, 0, NULL},
    {"repeats", NULL, NULL, COLUMN_COUNT, 0, NULL},
};

static const struct column families[] = {
    {"name", NULL, NULL, COLUMN_PLAIN_TEXT, 0, NULL},
    {"points", NULL, NULL, COLUMN_COUNT, 0, NULL},
    {"parameters", NULL, NULL, COLUMN_COUNT, 0, NULL},
    {"rms", NULL, NULL, COLUMN_SIGNED_PERCENT, 0, "Root mean square of the relative errors."},
    {"leave_one_out", NULL, NULL, COLUMN_SIGNED_PERCENT | COLUMN_OPTIONAL, 0, "The same, with each point predicted from the others."},
    {"worst", NULL, NULL, COLUMN_SIGNED_PERCENT, 0, "The largest relative error."},
    {"worst_point", NULL, NULL, COLUMN_PLAIN_TEXT | COLUMN_NULLABLE, 0, NULL},
    {"numbers", NULL, NULL, COLUMN_NESTED_ROWS, 0, "calibrate_number"},
};

static const struct column numbers[] = {
    {"name", NULL, NULL, COLUMN_PLAIN_TEXT, 0, NULL},
    {"value", NULL, NULL, COLUMN_NUMBER | COLUMN_NULLABLE, 0, NULL},
    {"standard_error", NULL, NULL, COLUMN_NUMBER | COLUMN_NULLABLE | COLUMN_OPTIONAL, 0, NULL},
    {"spread", NULL, NULL, COLUMN_NUMBER | COLUMN_NULLABLE | COLUMN_OPTIONAL, 0, "Relative standard deviation of what the number predicts."},
    {"at_bound", NULL, NULL, COLUMN_FLAG | COLUMN_OPTIONAL, 0, "The fit ended at an end of the number's range."},
    {"origin", NULL, NULL, COLUMN_PLAIN_TEXT, 0, "fitted, stated or derived."},
    {"source", NULL, NULL, COLUMN_PLAIN_TEXT | COLUMN_NULLABLE, 0, NULL},
};

static const struct column links[] = {
    {"name", NULL, NULL, COLUMN_PLAIN_TEXT, 0, NULL},
    {"points", NULL, NULL, COLUMN_COUNT, 0, NULL},
    {"latency_s", NULL, NULL, COLUMN_NUMBER | COLUMN_NULLABLE, 0, NULL},
    {"latency_error_s", NULL, NULL, COLUMN_NUMBER | COLUMN_NULLABLE, 0, NULL},
    {"bytes_per_s", NULL, NULL, COLUMN_NUMBER | COLUMN_NULLABLE, 0, NULL},
    {"bytes_per_s_error", NULL, NULL, COLUMN_NUMBER | COLUMN_NULLABLE, 0, NULL},
    {"rms", NULL, NULL, COLUMN_SIGNED_PERCENT, 0, NULL},
    {"leave_one_out", NULL, NULL, COLUMN_SIGNED_PERCENT, 0, NULL},
    {"worst", NULL, NULL, COLUMN_SIGNED_PERCENT, 0, NULL},
    {"worst_point", NULL, NULL, COLUMN_PLAIN_TEXT | COLUMN_NULLABLE, 0, NULL},
};

static const struct column fallbacks[] = {
    {"name", NULL, NULL, COLUMN_PLAIN_TEXT, 0, NULL},
    {"to", NULL, NULL, COLUMN_PLAIN_TEXT, 0, "base or fastest."},
    {"disturbed", NULL, NULL, COLUMN_FLAG, 0, NULL},
};
/* clang-format on */

const struct row_table points_tables[POINTS_TABLE_COUNT] = {
    [POINTS_TABLE_POINTS] = {"bench_point", points_of_bench, ARRAY_LEN(points_of_bench)},
    [POINTS_TABLE_FAMILIES] = {"calibrate_family", families, ARRAY_LEN(families)},
    [POINTS_TABLE_NUMBERS] = {"calibrate_number", numbers, ARRAY_LEN(numbers)},
    [POINTS_TABLE_LINKS] = {"calibrate_link", links, ARRAY_LEN(links)},
    [POINTS_TABLE_FALLBACKS] = {"calibrate_fallback", fallbacks, ARRAY_LEN(fallbacks)},
};

/* ---- points ---- */

static void put_params(struct rows *rows, const struct work *work)
{
    const struct work_kind_info *info = work_kind_info((enum work_kind)work->kind);
    rows_begin_object(rows);
    for (size_t i = 0; i < info->param_count; i++) {
        const struct work_param *param = &info->param[i];
        if (param->optional && work->p[i] == 0)
            continue;
        if (param->value_names != NULL)
            json_put_text(rows->json, param->name, param->value_names[work->p[i]]);
        else
            json_put_number(rows->json, param->name, (double)work->p[i]);
    }
    rows_end_object(rows);
}

static void put_point(struct rows *rows, const struct point *point)
{
    const struct work *work = &point->work;
    const struct work_kind_info *info = work_kind_info((enum work_kind)work->kind);
    bool typed = info->reads_max + info->writes_max > 0;
    rows_put_text(rows, point_role_name((enum point_role)point->role));
    rows_put_text(rows, info->name);
    put_params(rows, work);
    for (int written = 0; written < 2; written++)
        if (typed)
            rows_put_text(rows, dtype_name((enum dtype)(written ? work->out : work->in)));
        else
            rows_skip_column(rows);
    rows_put_number(rows, work->reads > 0 ? work->reads : info->reads_min);
    rows_put_number(rows, work->writes > 0 ? work->writes : info->writes_min);
    if (point->attention_impl < POINT_NO_IMPL)
        rows_put_text(rows, attention_impl_name((enum attention_impl)point->attention_impl));
    else
        rows_skip_column(rows);
    rows_put_number(rows, point->median_s);
    rows_put_number(rows, point->p10_s);
    rows_put_number(rows, point->p90_s);
    rows_put_number(rows, (double)point->repeats);
}

void points_print_json(const struct points *points, struct text *out)
{
    struct json_out json = {.out = out};
    command_begin_json(&json, "bench");
    json_begin_object(&json, "header");
    for (size_t i = 0; i < points->header_count; i++)
        json_put_text(&json, points->header_line[i].key, points->header_line[i].value);
    json_end_object(&json);
    struct rows rows = {.json = &json};
    rows_begin(&rows, "points", NULL, &points_tables[POINTS_TABLE_POINTS]);
    for (size_t i = 0; i < points->count; i++)
        put_point(&rows, &points->row[i]);
    rows_end(&rows);
    json_end_object(&json);
    text_putc(out, '\n');
}

/* ---- the numbers fitted to the points ---- */

/* Appends the numbers of family number `family`, from 0 (struct calibrate_family). family -1:
 * appends the numbers that belong to no family. */
static void put_numbers_of_fitted_family(struct rows *rows, const struct calibration *c, int family)
{
    static const char *const origins[] = {
        [CALIBRATE_FITTED] = "fitted",
        [CALIBRATE_STATED] = "stated",
        [CALIBRATE_DERIVED] = "derived",
    };
    for (size_t i = 0; i < c->number_count; i++) {
        const struct calibrate_number *number = &c->number[i];
        if (number->family_index >= 0 ? number->family_index != family : family >= 0)
            continue;
        rows_put_text(rows, number->name);
        rows_put_number(rows, number->value);
        if (number->origin == CALIBRATE_FITTED) {
            rows_put_number(rows, number->standard_error);
            rows_put_number(rows, calibration_number_spread(c, number));
            rows_put_number(rows, number->is_best_value_at_bound);
        } else {
            rows_skip_column(rows);
            rows_skip_column(rows);
            rows_skip_column(rows);
        }
        rows_put_text(rows, origins[number->origin]);
        rows_put_text(rows, number->source_text);
    }
}

static void put_families(struct rows *rows, const struct calibration *c)
{
    rows_begin(rows, "families", NULL, &points_tables[POINTS_TABLE_FAMILIES]);
    for (size_t i = 0; i < c->family_count; i++) {
        const struct calibrate_family *family = &c->family[i];
        struct rows inner;
        rows_put_text(rows, family->name);
        rows_put_number(rows, (double)family->point_count);
        rows_put_number(rows, (double)family->parameter_count);
        rows_put_number(rows, family->rms_error);
        if (family->points_left_out_one_by_one > 0)
            rows_put_number(rows, family->leave_one_out_error);
        else
            rows_skip_column(rows);
        rows_put_number(rows, family->worst_error);
        rows_put_text(rows, family->worst_point_text);
        rows_begin_nested_rows(&inner, rows, &points_tables[POINTS_TABLE_NUMBERS]);
        put_numbers_of_fitted_family(&inner, c, (int)i);
        rows_end(&inner);
    }
    rows_end(rows);
    rows_begin(rows, "not_fitted", NULL, &points_tables[POINTS_TABLE_NUMBERS]);
    put_numbers_of_fitted_family(rows, c, -1);
    rows_end(rows);
}

static void put_links(struct rows *rows, const struct link_calibration *calibration)
{
    rows_begin(rows, "links", NULL, &points_tables[POINTS_TABLE_LINKS]);
    for (int i = 0; i < CALIBRATE_LINK_COUNT; i++) {
        const struct calibrated_link *link = &calibration->link_by_class[i];
        if (link->point_count == 0)
            continue;
        rows_put_text(rows, calibrate_link_name((enum calibrate_link_class)i));
        rows_put_number(rows, (double)link->point_count);
        rows_put_number(rows, link->latency_s);
        rows_put_number(rows, link->latency_error_s);
        rows_put_number(rows, link->bytes_per_s);
        rows_put_number(rows, link->bytes_per_s_error);
        rows_put_number(rows, link->rms_error);
        rows_put_number(rows, link->leave_one_out_error);
        rows_put_number(rows, link->worst_error);
        rows_put_text(rows, link->worst_point_text);
    }
    rows_end(rows);
}

static void put_fallbacks(struct rows *rows, const struct calibrate_fallback *fallback,
                          size_t count)
{
    for (size_t i = 0; i < count; i++) {
        rows_put_text(rows, fallback[i].name);
        rows_put_text(rows, fallback[i].has_kept_base_numbers ? "base" : "fastest");
        rows_put_number(rows, fallback[i].is_due_to_disturbed_points);
    }
}

void calibration_print_json(const struct calibration *device, const struct link_calibration *link,
                            const char *refused, const char *recorded, struct text *out)
{
    struct json_out json = {.out = out};
    command_begin_json(&json, "calibrate");
    struct rows rows = {.json = &json};
    put_families(&rows, device);
    put_links(&rows, link);
    json_put_number(&json, "spread", device->median_p90_over_p10_of_points);
    rows_begin(&rows, "fallen", NULL, &points_tables[POINTS_TABLE_FALLBACKS]);
    put_fallbacks(&rows, device->fallback, device->fallback_count);
    put_fallbacks(&rows, link->fallback, link->fallback_count);
    rows_end(&rows);
    json_begin_array(&json, "unmeasured");
    for (size_t i = 0; i < device->unmeasured_family_count; i++)
        json_put_text(&json, NULL, device->unmeasured_families[i]);
    json_end_array(&json);
    json_put_text(&json, "notes", device->notes.size > 0 ? device->notes.data : "");
    json_put_text(&json, "refused", refused);
    json_put_text(&json, "recorded", recorded);
    json_end_object(&json);
    text_putc(out, '\n');
}

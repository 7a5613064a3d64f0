#include "cli/measure/points_json.h"

#include "base/json_write.h"
#include "cli/common/output.h"

/* ---- points ---- */

static void put_params(struct json_out *json, const struct work *work)
{
    const struct work_kind_info *info = work_kind_info((enum work_kind)work->kind);
    json_begin_object(json, "params");
    for (size_t i = 0; i < info->param_count; i++) {
        const struct work_param *param = &info->param[i];
        if (param->optional && work->p[i] == 0)
            continue;
        if (param->values != NULL)
            json_put_text(json, param->name, param->values[work->p[i]]);
        else
            json_put_number(json, param->name, (double)work->p[i]);
    }
    json_end_object(json);
}

static void put_point(struct json_out *json, const struct point *point)
{
    const struct work *work = &point->work;
    const struct work_kind_info *info = work_kind_info((enum work_kind)work->kind);
    json_begin_object(json, NULL);
    json_put_text(json, "measured", point_role_name((enum point_role)point->role));
    json_put_text(json, "kind", info->name);
    put_params(json, work);
    if (info->reads_max + info->writes_max > 0) {
        json_put_text(json, "in", dtype_name((enum dtype)work->in));
        json_put_text(json, "out", dtype_name((enum dtype)work->out));
    }
    json_put_count(json, "reads", work->reads > 0 ? work->reads : info->reads_min);
    json_put_count(json, "writes", work->writes > 0 ? work->writes : info->writes_min);
    if (point->impl < POINT_NO_IMPL)
        json_put_text(json, "impl", attention_impl_name((enum attention_impl)point->impl));
    json_put_number(json, "median_s", point->median_s);
    json_put_number(json, "p10_s", point->p10_s);
    json_put_number(json, "p90_s", point->p90_s);
    json_put_count(json, "repeats", (uint64_t)point->repeats);
    json_end_object(json);
}

void points_print_json(const struct points *points, struct text *out)
{
    struct json_out json = {.out = out};
    command_begin_json(&json, "bench");
    json_begin_object(&json, "header");
    for (size_t i = 0; i < points->header_count; i++)
        json_put_text(&json, points->header[i].key, points->header[i].value);
    json_end_object(&json);
    json_begin_array(&json, "points");
    for (size_t i = 0; i < points->count; i++)
        put_point(&json, &points->row[i]);
    json_end_array(&json);
    json_end_object(&json);
    text_putc(out, '\n');
}

/* ---- the numbers fitted to the points ---- */

/* Appends the fitted numbers of a family, which is counted from 0. family -1: appends the numbers that belong to no
 * family. */
static void put_numbers(struct json_out *json, const char *key, const struct calibration *c,
                        int family)
{
    static const char *const origins[] = {
        [CALIBRATE_FITTED] = "fitted",
        [CALIBRATE_STATED] = "stated",
        [CALIBRATE_DERIVED] = "derived",
    };
    json_begin_array(json, key);
    for (size_t i = 0; i < c->numbers; i++) {
        const struct calibrate_number *number = &c->number[i];
        if (number->family >= 0 ? number->family != family : family >= 0)
            continue;
        json_begin_object(json, NULL);
        json_put_text(json, "name", number->name);
        json_put_number(json, "value", number->value);
        if (number->origin == CALIBRATE_FITTED) {
            json_put_number(json, "standard_error", number->error);
            json_put_number(json, "spread", calibration_spread(c, number));
            json_put_bool(json, "at_bound", number->at_bound);
        }
        json_put_text(json, "origin", origins[number->origin]);
        json_put_text(json, "source", number->how);
        json_end_object(json);
    }
    json_end_array(json);
}

static void put_families(struct json_out *json, const struct calibration *c)
{
    json_begin_array(json, "families");
    for (size_t i = 0; i < c->families; i++) {
        const struct calibrate_family *family = &c->family[i];
        json_begin_object(json, NULL);
        json_put_text(json, "name", family->name);
        json_put_count(json, "points", family->points);
        json_put_count(json, "parameters", family->parameters);
        json_put_number(json, "rms", family->rms);
        if (family->left_out > 0)
            json_put_number(json, "leave_one_out", family->leave_one_out);
        json_put_number(json, "worst", family->worst);
        json_put_text(json, "worst_point", family->worst_what);
        put_numbers(json, "numbers", c, (int)i);
        json_end_object(json);
    }
    json_end_array(json);
    put_numbers(json, "not_fitted", c, -1);
}

static void put_links(struct json_out *json, const struct link_calibration *links)
{
    json_begin_array(json, "links");
    for (int i = 0; i < CALIBRATE_LINK_COUNT; i++) {
        const struct calibrated_link *link = &links->link[i];
        if (link->points == 0)
            continue;
        json_begin_object(json, NULL);
        json_put_text(json, "name", calibrate_link_name((enum calibrate_link)i));
        json_put_count(json, "points", link->points);
        json_put_number(json, "latency_s", link->latency_s);
        json_put_number(json, "latency_error_s", link->latency_error_s);
        json_put_number(json, "bytes_per_s", link->bytes_per_s);
        json_put_number(json, "bytes_per_s_error", link->bytes_per_s_error);
        json_put_number(json, "rms", link->rms);
        json_put_number(json, "leave_one_out", link->leave_one_out);
        json_put_number(json, "worst", link->worst);
        json_put_text(json, "worst_point", link->worst_what);
        json_end_object(json);
    }
    json_end_array(json);
}

static void put_fallbacks(struct json_out *json, const struct calibrate_fallback *fallback,
                          size_t count)
{
    for (size_t i = 0; i < count; i++) {
        json_begin_object(json, NULL);
        json_put_text(json, "name", fallback[i].name);
        json_put_text(json, "to", fallback[i].to_base ? "base" : "fastest");
        json_put_bool(json, "disturbed", fallback[i].disturbed);
        json_end_object(json);
    }
}

void calibration_print_json(const struct calibration *device, const struct link_calibration *links,
                            const char *refused, const char *recorded, struct text *out)
{
    struct json_out json = {.out = out};
    command_begin_json(&json, "calibrate");
    put_families(&json, device);
    put_links(&json, links);
    json_put_number(&json, "spread", device->spread);
    json_begin_array(&json, "fallen");
    put_fallbacks(&json, device->fallback, device->fallbacks);
    put_fallbacks(&json, links->fallback, links->fallbacks);
    json_end_array(&json);
    json_begin_array(&json, "unmeasured");
    for (size_t i = 0; i < device->unmeasureds; i++)
        json_put_text(&json, NULL, device->unmeasured[i]);
    json_end_array(&json);
    json_put_text(&json, "notes", device->notes.size > 0 ? device->notes.data : "");
    json_put_text(&json, "refused", refused);
    json_put_text(&json, "recorded", recorded);
    json_end_object(&json);
    text_putc(out, '\n');
}

#include "models/calibrate_links.h"

#include "models/calibrate_parts.h"
#include "models/noise.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* the root mean square error up to which a fit is accepted, if the caller sets no calibrate_options.rms_error_limit */
static const double DEFAULT_ERROR_LIMIT = 0.25;
static const double SCALE_S = 1e-7; /* fit_param.scale of the latency, which may be 0 */

static const struct {
    const char *name, *what;
} classes[CALIBRATE_LINK_COUNT] = {
#define LINK_CLASS_ROW(symbol, name, what) {name, what},
    CALIBRATE_FOR_EACH_LINK_CLASS(LINK_CLASS_ROW)
#undef LINK_CLASS_ROW
};

const char *calibrate_link_name(enum calibrate_link_class link)
{
    return classes[link].name;
}

void link_calibration_release(struct link_calibration *links)
{
    arena_release(&links->arena);
    *links = (struct link_calibration){0};
}

/* ---- the traffic of a point over its link ---- */

/* The number of steps of a communication, and the bytes that cross its busiest link; for ranks that share a GPU, the
 * bytes that all its copies move. */
struct link_steps_and_bytes {
    double steps, busiest_link_bytes;
};

/* Returns the traffic of a copy, or of a communication of ranks with GPUs of their own.
 * reduce_scatter_as_all_reduce: as in struct calibrate_options. */
static struct link_steps_and_bytes link_steps_and_bytes_of(const struct work *work,
                                                           bool reduce_scatter_as_all_reduce)
{
    double bytes = (double)work_payload_bytes(work);
    double n = work_comm_group(work) > 0 ? (double)work_comm_group(work) : 1;
    switch ((enum work_kind)work->kind) {
    case WORK_ALL_GATHER:
        return (struct link_steps_and_bytes){n - 1, (n - 1) * bytes};
    case WORK_REDUCE_SCATTER: {
        double times = reduce_scatter_as_all_reduce ? 2 : 1;
        return (struct link_steps_and_bytes){times * (n - 1), times * (n - 1) / n * bytes};
    }
    case WORK_ALL_REDUCE:
        return (struct link_steps_and_bytes){2 * (n - 1), 2 * (n - 1) / n * bytes};
    case WORK_REDUCE:
    case WORK_BROADCAST:
        return (struct link_steps_and_bytes){n - 1, bytes};
    case WORK_ALL_TO_ALL:
    case WORK_SCATTER: /* over the root's link */
        return (struct link_steps_and_bytes){1, (n - 1) / n * bytes};
    default: /* a shift, a copy */
        return (struct link_steps_and_bytes){1, bytes};
    }
}

/* Returns the traffic of n ranks that share a GPU. `steps` is the number of copies and kernels that the busiest member
 * starts; the bytes are those that the copies of all members move. A kernel that sums counts as half of the bytes that
 * it reads and writes, since a copied byte is read and written, too (sim/platform/loopback.c). */
static struct link_steps_and_bytes loopback_steps_and_bytes_of(const struct work *work)
{
    double bytes = (double)work_payload_bytes(work), n = (double)work_comm_group(work);
    switch ((enum work_kind)work->kind) {
    case WORK_ALL_GATHER:
        return (struct link_steps_and_bytes){n, n * n * bytes};
    case WORK_REDUCE_SCATTER:
        return (struct link_steps_and_bytes){1, (n + 1) / 2 * bytes};
    case WORK_ALL_REDUCE:
        return (struct link_steps_and_bytes){n, ((n + 1) / 2 + n - 1) * bytes};
    case WORK_REDUCE: /* only the root sums */
        return (struct link_steps_and_bytes){1, (n + 1) / 2 * bytes};
    case WORK_BROADCAST:
        return (struct link_steps_and_bytes){1, (n - 1) * bytes};
    case WORK_ALL_TO_ALL:
        return (struct link_steps_and_bytes){n, n * bytes};
    case WORK_SCATTER:
        return (struct link_steps_and_bytes){1, bytes};
    default:
        assert(work->kind == WORK_SHIFT);
        return (struct link_steps_and_bytes){1, n * bytes};
    }
}

bool calibrate_find_link_class_of_point(const struct point *point, enum calibrate_link_class *link)
{
    bool network = point->nodes > 1, out = point->work.kind == WORK_D2H;
    if (point->role == POINT_BOTH_WAYS || point->role == POINT_PAGEABLE) {
        *link = point->role == POINT_BOTH_WAYS ? CALIBRATE_BOTH_WAYS
                : out                          ? CALIBRATE_TO_PAGEABLE
                                               : CALIBRATE_FROM_PAGEABLE;
        return true;
    }
    if (point->role != POINT_WORK)
        return false;
    switch ((enum work_kind)point->work.kind) {
    case WORK_H2D:
        *link = CALIBRATE_H2D;
        return true;
    case WORK_D2H:
        *link = CALIBRATE_D2H;
        return true;
    case WORK_ALL_GATHER:
    case WORK_REDUCE_SCATTER:
    case WORK_ALL_REDUCE:
    case WORK_REDUCE:
    case WORK_BROADCAST:
        *link = network ? CALIBRATE_NETWORK_RING : CALIBRATE_RING;
        break;
    case WORK_ALL_TO_ALL:
    case WORK_SCATTER:
        *link = network ? CALIBRATE_NETWORK_EXCHANGE : CALIBRATE_EXCHANGE;
        break;
    case WORK_SHIFT:
        *link = network ? CALIBRATE_NETWORK_PEER : CALIBRATE_PEER;
        break;
    default:
        return false;
    }
    if (point->loopback)
        *link = CALIBRATE_LOOPBACK;
    return work_comm_group(&point->work) > 1;
}

/* ---- the fit ---- */

struct link_points {
    const struct point **point;
    size_t count;
    bool reduce_scatter_as_all_reduce; /* as in struct calibrate_options */
};

static double predict_point(void *context, const double *value, size_t i)
{
    const struct link_points *points = context;
    const struct point *point = points->point[i];
    /* for POINT_BOTH_WAYS, as many bytes move in the other direction at the same time */
    double directions = point->role == POINT_BOTH_WAYS ? 2 : 1;
    bool shared = point->loopback && work_comm_group(&point->work) > 0;
    struct link_steps_and_bytes traffic =
        shared ? loopback_steps_and_bytes_of(&point->work)
               : link_steps_and_bytes_of(&point->work, points->reduce_scatter_as_all_reduce);
    return fmax(traffic.steps * value[0] + directions * traffic.busiest_link_bytes / value[1],
                1e-12);
}

static const char *describe_point(struct arena *arena, const struct point *point)
{
    struct text out = {0};
    text_printf(&out, "%s ", work_kind_info((enum work_kind)point->work.kind)->name);
    points_print_params(&point->work, &out);
    const char *kept = arena_text(arena, out.data, out.size);
    text_release(&out);
    return kept;
}

static void store_fit_of_link_class(struct link_calibration *links, enum calibrate_link_class class,
                                    const struct link_points *points, const struct fit *fit)
{
    struct calibrated_link *link = &links->link_by_class[class];
    const char *name = points->point[0]->at.name ? points->point[0]->at.name : "points";
    const char *slash = strrchr(name, '/');
    *link = (struct calibrated_link){
        .point_count = points->count,
        .latency_s = fit->value[0],
        .latency_error_s = fit->standard_error[0],
        .bytes_per_s = fit->value[1],
        .bytes_per_s_error = fit->standard_error[1],
        .rms_error = fit->rms_error,
        .worst_error = fit->worst_error,
        .leave_one_out_error = fit->leave_one_out_error,
        .smallest_bytes = INFINITY,
        .worst_point_text = describe_point(&links->arena, points->point[fit->worst_point]),
    };
    for (size_t i = 0; i < points->count; i++) {
        double bytes = (double)work_payload_bytes(&points->point[i]->work);
        link->smallest_bytes = fmin(link->smallest_bytes, bytes);
        link->largest_bytes = fmax(link->largest_bytes, bytes);
    }
    link->source = arena_printf(
        &links->arena,
        "fitted to %zu points of %s, %.3g to %.3g bytes: root mean square %.1f %%, worst %+.1f %%, "
        "leave-one-out %.1f %%",
        link->point_count, slash ? slash + 1 : name, link->smallest_bytes, link->largest_bytes,
        100 * link->rms_error, 100 * link->worst_error, 100 * link->leave_one_out_error);
}

static bool has_several_sizes(const struct link_points *points)
{
    for (size_t i = 1; i < points->count; i++)
        if (work_payload_bytes(&points->point[i]->work) !=
            work_payload_bytes(&points->point[0]->work))
            return true;
    return false;
}

static enum status fit_link_class(struct link_calibration *links, enum calibrate_link_class class,
                                  const struct link_points *points, bool disturbed,
                                  const struct calibrate_options *options,
                                  bool *was_refused_as_scattered, struct diag *diag)
{
    static const struct fit_param params[] = {
        {"latency", 1e-6, 0, 1, SCALE_S, false},
        {"bandwidth", 1e10, 1, 1e15, 0, false},
    };
    struct loc at = {.name = points->point[0]->at.name};
    *was_refused_as_scattered = false;
    if (points->count < ARRAY_LEN(params) || !has_several_sizes(points))
        return diag_error(diag, at, STATUS_NO,
                          "%s: all points move the same number of bytes; latency and bandwidth "
                          "need small messages (64 KB) and large ones (16 MB)",
                          classes[class].name);
    double *measured_s = heap_alloc(points->count, sizeof *measured_s);
    for (size_t i = 0; i < points->count; i++)
        measured_s[i] = calibrate_measured_time_s(options, points->point[i]);
    const struct fit_problem problem = {
        .name = classes[class].name,
        .help = "messages below the size at which the library changes its protocol do not "
                "belong to the same line; leave them out (--min-bytes)",
        .scatter_refusal_advice = disturbed ? calibrate_disturbed : NULL,
        .param = params,
        .param_count = ARRAY_LEN(params),
        .point_count = points->count,
        .measured_s = measured_s,
        .model = predict_point,
        .context = (void *)points,
        .rms_error_limit =
            options->rms_error_limit > 0 ? options->rms_error_limit : DEFAULT_ERROR_LIMIT,
    };
    struct fit fit;
    enum status status = fit_run(&fit, &problem, at, diag);
    *was_refused_as_scattered = fit.is_refused_as_scattered;
    if (status == STATUS_OK)
        store_fit_of_link_class(links, class, points, &fit);
    free(measured_s);
    return status;
}

/* Fits a class of links, and reports a refusal. With options.falls_back_if_disturbed, a class is fitted to its fastest
 * times instead if its points were disturbed and lie too far from the fit; if that fit is refused, too, the class keeps
 * the base's numbers. In both cases nothing is reported, and the result is STATUS_OK. links->fallback lists every class
 * whose first fit was refused. */
static enum status fit_class_or_keep_base(struct link_calibration *links,
                                          enum calibrate_link_class class,
                                          const struct link_points *points, bool disturbed,
                                          const struct calibrate_options *options,
                                          struct diag *diag)
{
    bool was_refused_as_scattered;
    struct calibrate_options fastest = *options;
    struct diag quiet = {0};
    fastest.fits_p10_times = true;
    bool falls_back = disturbed && options->falls_back_if_disturbed;
    enum status status =
        fit_link_class(links, class, points, disturbed, options, &was_refused_as_scattered, &quiet);
    struct calibrate_fallback *fallback = &links->fallback[links->fallback_count];
    if (status == STATUS_NO && was_refused_as_scattered && falls_back) {
        status = fit_link_class(links, class, points, disturbed, &fastest,
                                &was_refused_as_scattered, &quiet);
        *fallback = (struct calibrate_fallback){classes[class].name, status == STATUS_NO, true};
        links->fallback_count++;
        status = STATUS_OK;
    } else if (status != STATUS_OK) {
        *fallback = (struct calibrate_fallback){classes[class].name, true, false};
        links->fallback_count++;
        status = fit_link_class(links, class, points, disturbed, options, &was_refused_as_scattered,
                                diag);
    }
    diag_release(&quiet);
    return status;
}

enum status calibrate_links(struct link_calibration *links, const struct points *points,
                            const struct calibrate_options *options, struct diag *diag)
{
    enum status status = STATUS_OK;
    double spread = noise_median_p90_over_p10_of_all(points);
    struct link_points chosen = {
        .point = heap_alloc(points->count + 1, sizeof(const struct point *)),
        .reduce_scatter_as_all_reduce = options->reduce_scatter_as_all_reduce,
    };
    for (int class = 0; class < CALIBRATE_LINK_COUNT; class ++) {
        chosen.count = 0;
        for (size_t i = 0; i < points->count; i++) {
            enum calibrate_link_class found;
            if (calibrate_find_link_class_of_point(&points->row[i], &found) &&
                found == (enum calibrate_link_class) class)
                chosen.point[chosen.count++] = &points->row[i];
        }
        if (chosen.count == 0)
            continue;
        bool disturbed =
            noise_shows_disturbance(spread, noise_median_p90_over_p10(chosen.point, chosen.count));
        enum status one = fit_class_or_keep_base(links, (enum calibrate_link_class) class, &chosen,
                                                 disturbed, options, diag);
        status = status == STATUS_OK ? one : status;
    }
    free((void *)chosen.point);
    return status;
}

/* ---- the report ---- */

void link_calibration_print_report(const struct link_calibration *links, struct text *out)
{
    for (int i = 0; i < CALIBRATE_LINK_COUNT; i++) {
        const struct calibrated_link *link = &links->link_by_class[i];
        if (link->point_count == 0)
            continue;
        text_printf(out,
                    "%s (%s): %zu points, 2 parameters; root mean square %.1f %%, leave-one-out "
                    "%.1f %%, worst %+.0f %% (%s)\n  latency    ",
                    classes[i].name, classes[i].what, link->point_count, 100 * link->rms_error,
                    100 * link->leave_one_out_error, 100 * link->worst_error,
                    link->worst_point_text);
        calibrate_append_quantity_to_text(out, UNIT_SECONDS, link->latency_s);
        text_puts(out, " +- ");
        calibrate_append_quantity_to_text(out, UNIT_SECONDS, link->latency_error_s);
        text_puts(out, "\n  bandwidth  ");
        calibrate_append_quantity_to_text(out, UNIT_BYTES_PER_S, link->bytes_per_s);
        text_printf(out, " +- %.1f %%\n", 100 * link->bytes_per_s_error / link->bytes_per_s);
    }
    calibrate_append_line_of_fallbacks(
        links->fallback, links->fallback_count, false, true,
        "fastest    links, fitted to the p10 of disturbed points: ", out);
    calibrate_append_line_of_fallbacks(
        links->fallback, links->fallback_count, true, true,
        "refused    links of disturbed points, left as the cluster has them: ", out);
    calibrate_append_line_of_fallbacks(links->fallback, links->fallback_count, true, false,
                                       "refused    links, left as the cluster has them: ", out);
}

/* ---- a cluster file ---- */

struct link_field {
    const char *section, *name;
    enum unit_kind unit;
    double value;
    const char *source;
    double spread; /* relative; 0: the number was not measured */
};

enum { FIELDS_MAX = 24 };

struct link_field_list {
    size_t count;
    struct link_field row[FIELDS_MAX];
};

static void add_field_to_link_list(struct link_field_list *fields, const char *section,
                                   const char *name, enum unit_kind unit, double value,
                                   const char *source)
{
    assert(fields->count < FIELDS_MAX);
    fields->row[fields->count++] = (struct link_field){section, name, unit, value, source, 0};
}

/* Adds a number that the points of a class determine, with its spread: the largest of the fit's root mean square
 * error, its leave-one-out error and the number's relative standard error, but at least CALIBRATE_WRITTEN_SPREAD_MIN
 * and at most CALIBRATE_WRITTEN_SPREAD_MAX. */
static void add_fitted_field_to_link_list(struct link_field_list *fields, const char *section,
                                          const char *name, enum unit_kind unit, double value,
                                          const struct calibrated_link *link)
{
    double own = unit == UNIT_SECONDS ? link->latency_error_s / fmax(link->latency_s, SCALE_S)
                                      : link->bytes_per_s_error / link->bytes_per_s;
    add_field_to_link_list(fields, section, name, unit, value, link->source);
    double spread = fmax(fmax(link->rms_error, link->leave_one_out_error), own);
    fields->row[fields->count - 1].spread =
        fmin(fmax(spread, CALIBRATE_WRITTEN_SPREAD_MIN), CALIBRATE_WRITTEN_SPREAD_MAX);
}

static const char raised[] = "raised to what was measured, which is above the base's; put the data "
                             "sheet's number here";

static void add_copy_fields(struct link_field_list *fields, const struct link_calibration *links,
                            const struct cluster *cluster)
{
    const struct calibrated_link *to = &links->link_by_class[CALIBRATE_H2D];
    const struct calibrated_link *from = &links->link_by_class[CALIBRATE_D2H];
    double most = fmax(to->bytes_per_s, from->bytes_per_s); /* a class without points has 0 */
    if (to->point_count > 0)
        add_fitted_field_to_link_list(fields, "pcie", "h2d", UNIT_BYTES_PER_S, to->bytes_per_s, to);
    if (from->point_count > 0)
        add_fitted_field_to_link_list(fields, "pcie", "d2h", UNIT_BYTES_PER_S, from->bytes_per_s,
                                      from);
    const struct calibrated_link *slow =
        from->point_count == 0 || to->latency_s > from->latency_s ? to : from;
    if (slow->point_count > 0)
        add_fitted_field_to_link_list(fields, "pcie", "latency", UNIT_SECONDS, slow->latency_s,
                                      slow);
    const struct calibrated_link *both = &links->link_by_class[CALIBRATE_BOTH_WAYS];
    if (both->point_count > 0)
        add_fitted_field_to_link_list(fields, "pcie", "both_ways", UNIT_BYTES_PER_S,
                                      both->bytes_per_s, both);
    if (most > cluster->pcie.nominal_bytes_per_s)
        add_field_to_link_list(fields, "pcie", "bandwidth", UNIT_BYTES_PER_S, most, raised);
    if (most > cluster->pcie.pcie_switch_uplink_bytes_per_s)
        add_field_to_link_list(fields, "pcie", "uplink", UNIT_BYTES_PER_S, most, raised);
}

static void add_loopback_fields(struct link_field_list *fields,
                                const struct link_calibration *links)
{
    const struct calibrated_link *link = &links->link_by_class[CALIBRATE_LOOPBACK];
    if (link->point_count == 0)
        return;
    add_fitted_field_to_link_list(fields, "loopback", "bandwidth", UNIT_BYTES_PER_S,
                                  link->bytes_per_s, link);
    add_fitted_field_to_link_list(fields, "loopback", "latency", UNIT_SECONDS, link->latency_s,
                                  link);
}

static void add_pageable_fields(struct link_field_list *fields,
                                const struct link_calibration *links)
{
    const struct calibrated_link *to = &links->link_by_class[CALIBRATE_TO_PAGEABLE];
    const struct calibrated_link *from = &links->link_by_class[CALIBRATE_FROM_PAGEABLE];
    if (to->point_count > 0)
        add_fitted_field_to_link_list(fields, "host", "to_pageable", UNIT_BYTES_PER_S,
                                      to->bytes_per_s, to);
    if (from->point_count > 0)
        add_fitted_field_to_link_list(fields, "host", "from_pageable", UNIT_BYTES_PER_S,
                                      from->bytes_per_s, from);
}

static void add_fabric_fields(struct link_field_list *fields, const struct link_calibration *links,
                              const struct cluster *cluster)
{
    const struct calibrated_link *ring = &links->link_by_class[CALIBRATE_RING];
    const struct calibrated_link *exchange = &links->link_by_class[CALIBRATE_EXCHANGE];
    const struct calibrated_link *peer = &links->link_by_class[CALIBRATE_PEER];
    if (cluster->fabric.kind != FABRIC_SWITCH)
        return;
    double port = cluster->fabric.bytes_per_s;
    double most = fmax(ring->bytes_per_s, fmax(exchange->bytes_per_s, peer->bytes_per_s));
    if (most > port) {
        add_field_to_link_list(fields, "fabric", "bandwidth", UNIT_BYTES_PER_S, most, raised);
        port = most;
    }
    if (ring->point_count > 0)
        add_fitted_field_to_link_list(fields, "fabric", "efficiency", UNIT_NONE,
                                      ring->bytes_per_s / port, ring);
    if (exchange->point_count > 0) {
        add_fitted_field_to_link_list(fields, "fabric", "all_to_all_efficiency", UNIT_NONE,
                                      exchange->bytes_per_s / port, exchange);
        add_fitted_field_to_link_list(fields, "fabric", "all_to_all_peer_bandwidth",
                                      UNIT_BYTES_PER_S, exchange->bytes_per_s, exchange);
    }
    if (peer->point_count > 0)
        add_fitted_field_to_link_list(fields, "fabric", "peer_bandwidth", UNIT_BYTES_PER_S,
                                      peer->bytes_per_s, peer);
    const struct calibrated_link *latency = ring->point_count > 0 ? ring : peer;
    if (latency->point_count > 0)
        add_fitted_field_to_link_list(fields, "fabric", "latency", UNIT_SECONDS, latency->latency_s,
                                      latency);
}

static void add_network_fields(struct link_field_list *fields, const struct link_calibration *links,
                               const struct cluster *cluster)
{
    const struct calibrated_link *ring = &links->link_by_class[CALIBRATE_NETWORK_RING];
    const struct calibrated_link *peer = &links->link_by_class[CALIBRATE_NETWORK_PEER];
    double all = (double)cluster->nic.count * cluster->nic.bytes_per_s;
    if (cluster->nic.count == 0)
        return;
    if (ring->point_count > 0)
        add_fitted_field_to_link_list(fields, "nic", "efficiency", UNIT_NONE,
                                      fmin(ring->bytes_per_s / all, 1), ring);
    if (peer->point_count > 0)
        add_fitted_field_to_link_list(fields, "nic", "peer_bandwidth", UNIT_BYTES_PER_S,
                                      fmin(peer->bytes_per_s, cluster->nic.bytes_per_s), peer);
    const struct calibrated_link *latency = peer->point_count > 0 ? peer : ring;
    if (latency->point_count > 0)
        add_fitted_field_to_link_list(fields, "nic", "message_latency", UNIT_SECONDS,
                                      fmax(latency->latency_s - cluster->nic.latency_s, 0),
                                      latency);
}

static void write_link_fields_as_json(const struct link_field_list *fields, struct json_out *json)
{
    for (size_t i = 0; i < fields->count; i++) {
        const struct link_field *field = &fields->row[i];
        const bool first = i == 0 || strcmp(field[-1].section, field->section) != 0;
        if (first && i > 0)
            json_end_object(json);
        if (first)
            json_begin_object(json, field->section);
        calibrate_write_number_as_json(json, field->name, field->unit, field->value, field->source,
                                       field->spread);
    }
    if (fields->count > 0)
        json_end_object(json);
}

enum status link_calibration_print_cluster(const struct link_calibration *links, const char *name,
                                           const char *device, const char *base,
                                           const struct cluster *cluster, struct text *out,
                                           struct diag *diag)
{
    struct link_field_list fields = {0};
    add_copy_fields(&fields, links, cluster);
    add_loopback_fields(&fields, links);
    add_fabric_fields(&fields, links, cluster);
    add_network_fields(&fields, links, cluster);
    add_pageable_fields(&fields, links);
    if (fields.count == 0 && !device)
        return diag_error(
            diag, (struct loc){.name = cluster->name}, STATUS_NO,
            "no point measures copies, messages of ranks on one GPU, or messages over "
            "a switch or a network that this cluster has");
    struct json_out json = {.out = out};
    json_begin_object(&json, NULL);
    json_put_text(&json, "name", name);
    json_put_text(&json, "summary",
                  arena_printf(&((struct link_calibration *)links)->arena, "%s with measured links",
                               cluster->name));
    json_put_text(&json, "base", base);
    if (device) {
        json_begin_inline_object(&json, "device");
        json_put_text(&json, "name", name);
        json_put_text(&json, "cost", device);
        json_end_inline_object(&json);
    }
    write_link_fields_as_json(&fields, &json);
    json_end_object(&json);
    text_putc(out, '\n');
    return STATUS_OK;
}

#include "models/spread.h"

#include "models/cluster_fields.h"
#include "models/cost_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const names[SPREAD_PART_COUNT] = {
    [SPREAD_PRODUCTS] = "products",
    [SPREAD_ATTENTION] = "attention",
    [SPREAD_MEMORY] = "memory-bound work",
    [SPREAD_KERNEL_STARTS] = "starts of kernels and the issuing thread",
    [SPREAD_HOST_WORK] = "work of the host's processors",
    [SPREAD_HOST_COPIES] = "copies between host and device",
    [SPREAD_NODE_LINKS] = "links within a node",
    [SPREAD_NETWORK_LINKS] = "links between nodes",
};

const char *spread_part_name(enum spread_machine_part part)
{
    return names[part];
}

/* Sets *part to the part to which a number of models/cost_params.def belongs. Returns false if it belongs to none:
 * sizes of tiles, and all numbers of the family `device` but the start of a kernel. */
static bool find_part_of_param(const struct cost_param *param, enum spread_machine_part *part)
{
    static const char *const left_out[] = {"tile", "small_tile"};
    for (size_t i = 0; i < ARRAY_LEN(left_out); i++)
        if (strcmp(param->field, left_out[i]) == 0)
            return false;
    switch (param->cost_family_of_param) {
    case COST_MATMUL:
        *part = SPREAD_PRODUCTS;
        return true;
    case COST_MEMORY:
        *part = SPREAD_MEMORY;
        return true;
    case COST_HOST:
        *part = SPREAD_KERNEL_STARTS;
        return true;
    case COST_CPU:
        *part = SPREAD_HOST_WORK;
        return true;
    default: /* a kernel's start is the only number of COST_DEVICE that belongs to a part */
        *part = SPREAD_KERNEL_STARTS;
        return strcmp(param->field, "kernel_start_s") == 0;
    }
}

/* The fields of a cluster file that belong to a part: they say how fast its links and its host are in use. */
static const struct {
    const char *path;
    enum spread_machine_part part;
} fields[] = {
    {"fabric.efficiency", SPREAD_NODE_LINKS},
    {"fabric.all_to_all_efficiency", SPREAD_NODE_LINKS},
    {"fabric.peer_bandwidth", SPREAD_NODE_LINKS},
    {"fabric.all_to_all_peer_bandwidth", SPREAD_NODE_LINKS},
    {"fabric.latency", SPREAD_NODE_LINKS},
    {"fabric.collective_latency", SPREAD_NODE_LINKS},
    {"fabric.peer_latency", SPREAD_NODE_LINKS},
    {"loopback.bandwidth", SPREAD_NODE_LINKS},
    {"loopback.latency", SPREAD_NODE_LINKS},
    {"pcie.h2d", SPREAD_HOST_COPIES},
    {"pcie.d2h", SPREAD_HOST_COPIES},
    {"pcie.both_ways", SPREAD_HOST_COPIES},
    {"pcie.latency", SPREAD_HOST_COPIES},
    {"host.to_pageable", SPREAD_HOST_COPIES},
    {"host.from_pageable", SPREAD_HOST_COPIES},
    {"host.adam", SPREAD_HOST_WORK},
    {"nic.efficiency", SPREAD_NETWORK_LINKS},
    {"nic.peer_bandwidth", SPREAD_NETWORK_LINKS},
    {"nic.message_latency", SPREAD_NETWORK_LINKS},
    {"nic.peer_latency", SPREAD_NETWORK_LINKS},
};

/* A number of the machine that belongs to a part. */
struct machine_number_with_spread {
    double *value; /* in struct device_cost or struct cluster */
    enum spread_machine_part part;
    bool is_slower_if_smaller; /* a smaller value is slower */
    double spread;             /* 0: not measured */
};
typedef void visitor(void *context, struct machine_number_with_spread number);

static double spread_of_cost_fact(const struct device_cost *cost, const char *name)
{
    for (size_t i = 0; i < cost->facts.count; i++)
        if (strcmp(cost->facts.row[i].name, name) == 0)
            return cost->facts.row[i].spread;
    return 0;
}

static void visit_attention(struct device_cost *cost, visitor *visit, void *context)
{
    char name[96];
    for (int k = 0; k < ATTENTION_IMPL_COUNT * ATTENTION_PASS_COUNT; k++) {
        int impl = k / ATTENTION_PASS_COUNT, pass = k % ATTENTION_PASS_COUNT;
        struct cost_attention *attention = &cost->attention[impl][pass];
        const char *of = attention_impl_name((enum attention_impl)impl);
        if (!attention->is_family_present)
            continue;
        snprintf(name, sizeof name, "attention.%s.%s.ramp_s", of, cost_pass_names[pass]);
        visit(context, (struct machine_number_with_spread){&attention->ramp_s, SPREAD_ATTENTION,
                                                           false, spread_of_cost_fact(cost, name)});
        for (size_t d = 0; d < attention->dim_count; d++) {
            snprintf(name, sizeof name, "attention.%s.%s.rates.%lld", of, cost_pass_names[pass],
                     (long long)attention->head_dim[d]);
            visit(context,
                  (struct machine_number_with_spread){&attention->flop_per_s[d], SPREAD_ATTENTION,
                                                      true, spread_of_cost_fact(cost, name)});
        }
    }
}

static void visit_all_numbers(struct device_cost *cost, struct cluster *cluster, visitor *visit,
                              void *context)
{
    char name[96];
    for (size_t i = 0; i < cost_param_count; i++) {
        const struct cost_param *param = &cost_params[i];
        struct machine_number_with_spread number = {.value =
                                                        (double *)((char *)cost + param->offset)};
        if (!find_part_of_param(param, &number.part))
            continue;
        snprintf(name, sizeof name, "%s.%s", param->family, param->field);
        number.is_slower_if_smaller = param->unit != UNIT_SECONDS && param->unit != UNIT_BYTES;
        number.spread = spread_of_cost_fact(cost, name);
        visit(context, number);
    }
    for (int kind = 0; kind < WORK_KIND_COUNT; kind++) {
        if (cost->kind_bandwidth_share[kind] == 0)
            continue;
        snprintf(name, sizeof name, "memory.kinds.%s", work_kind_info((enum work_kind)kind)->name);
        visit(context,
              (struct machine_number_with_spread){&cost->kind_bandwidth_share[kind], SPREAD_MEMORY,
                                                  true, spread_of_cost_fact(cost, name)});
    }
    visit_attention(cost, visit, context);
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        const struct cluster_field *field = cluster_field_find(fields[i].path);
        const struct cluster_fact *fact = cluster_find_fact(cluster, fields[i].path);
        visit(context, (struct machine_number_with_spread){
                           (double *)((char *)cluster + field->offset), fields[i].part,
                           field->type != FIELD_SECONDS, fact != NULL ? fact->spread : 0});
    }
}

/* The smallest and the largest spread of a part; 0, 0: none was measured. */
struct spread_range {
    enum spread_machine_part part;
    double smallest, largest;
};

static void include_number_in_spread_range(void *context, struct machine_number_with_spread number)
{
    struct spread_range *range = context;
    if (number.part != range->part || number.spread == 0)
        return;
    range->smallest = range->largest > 0 ? fmin(range->smallest, number.spread) : number.spread;
    range->largest = fmax(range->largest, number.spread);
}

static struct spread_range range_of_part(const struct device_cost *cost,
                                         const struct cluster *cluster,
                                         enum spread_machine_part part)
{
    struct spread_range range = {.part =
                                     part}; /* include_number_in_spread_range() changes no number */
    visit_all_numbers((struct device_cost *)cost, (struct cluster *)cluster,
                      include_number_in_spread_range, &range);
    return range;
}

double spread_largest_of_part(const struct device_cost *cost, const struct cluster *cluster,
                              enum spread_machine_part part)
{
    return range_of_part(cost, cluster, part).largest;
}

static double error_of_estimate(const struct cost_calibrated_range *calibration)
{
    return calibration->is_calibrated ? 0 : calibration->rms_relative_error;
}

double spread_error_of_estimates(const struct device_cost *cost, enum spread_machine_part part)
{
    static const enum cost_family family[SPREAD_PART_COUNT] = {[SPREAD_PRODUCTS] = COST_MATMUL,
                                                               [SPREAD_MEMORY] = COST_MEMORY,
                                                               [SPREAD_KERNEL_STARTS] = COST_HOST,
                                                               [SPREAD_HOST_WORK] = COST_CPU};
    double most = 0;
    if (part == SPREAD_ATTENTION) {
        for (int k = 0; k < ATTENTION_IMPL_COUNT * ATTENTION_PASS_COUNT; k++)
            most =
                fmax(most, error_of_estimate(
                               &cost->attention[k / ATTENTION_PASS_COUNT][k % ATTENTION_PASS_COUNT]
                                    .calibration));
        return most;
    }
    return part <= SPREAD_HOST_WORK ? error_of_estimate(&cost->calibration[family[part]]) : 0;
}

bool spread_has_measured_number(const struct device_cost *cost, const struct cluster *cluster)
{
    for (int part = 0; part < SPREAD_PART_COUNT; part++)
        if (spread_largest_of_part(cost, cluster, (enum spread_machine_part)part) > 0)
            return true;
    return false;
}

/* Which numbers of a part slow_down_number_of_part() makes slower, and by how much. */
struct slowdown {
    enum spread_machine_part part;
    /* 0: numbers with a spread become slower, each by the factor exp(its spread); else numbers without a spread become
     * slower by this factor */
    double unmeasured_slowdown_factor;
};

static void slow_down_number_of_part(void *context, struct machine_number_with_spread number)
{
    const struct slowdown *move = context;
    bool measured = number.spread > 0;
    if (number.part != move->part || measured != (move->unmeasured_slowdown_factor == 0))
        return;
    double factor = measured ? exp(number.spread) : move->unmeasured_slowdown_factor;
    *number.value = number.is_slower_if_smaller ? *number.value / factor : *number.value * factor;
}

/* Multiplies the measured times of products (SPREAD_PRODUCTS) or of attention (SPREAD_ATTENTION) by the factor; other
 * parts have no measured times. points->row then is a copy in the arena. */
static void slow_measured_points_of_part(struct cost_points *points, struct arena *arena,
                                         enum spread_machine_part part, double factor)
{
    if (points->count == 0 || (part != SPREAD_PRODUCTS && part != SPREAD_ATTENTION))
        return;
    struct cost_point *row = arena_array(arena, points->count, sizeof *row);
    memcpy(row, points->row, points->count * sizeof *row);
    for (size_t i = 0; i < points->count; i++)
        if ((row[i].work.kind == WORK_MATMUL) == (part == SPREAD_PRODUCTS))
            row[i].seconds *= factor;
    points->row = row;
}

void spread_slow_down_measured_numbers(struct device_cost *cost, struct cluster *cluster,
                                       struct arena *arena, enum spread_machine_part part)
{
    struct slowdown move = {.part = part};
    slow_measured_points_of_part(&cost->points, arena, part,
                                 exp(range_of_part(cost, cluster, part).smallest));
    visit_all_numbers(cost, cluster, slow_down_number_of_part, &move);
}

void spread_slow_down_unmeasured_numbers(struct device_cost *cost, struct cluster *cluster,
                                         struct arena *arena, enum spread_machine_part part,
                                         double factor)
{
    struct slowdown move = {.part = part, .unmeasured_slowdown_factor = factor};
    if (spread_largest_of_part(cost, cluster, part) == 0)
        slow_measured_points_of_part(&cost->points, arena, part, factor);
    visit_all_numbers(cost, cluster, slow_down_number_of_part, &move);
}

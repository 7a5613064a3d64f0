#include "models/cluster_fields.h"

#include "base/units.h"

#include <assert.h>
#include <math.h>
#include <string.h>

const char *const fabric_kind_names[FABRIC_KIND_COUNT] = {[FABRIC_SWITCH] = "switch",
                                                          [FABRIC_MESH] = "mesh",
                                                          [FABRIC_PCIE] = "pcie",
                                                          [FABRIC_LOOPBACK] = "loopback"};

/* TOP() makes the row of a field at the top of a cluster file, SUB() that of a field in a section. The last argument is
 * the range of the value: LIMITS_POSITIVE, LIMITS_FROM_ZERO, LIMITS_FRACTION_ABOVE_ZERO (above 0, at most 1) or
 * LIMITS_FROM_TO(low, high). */
#define TOP(key, type, need, member, ...)                                                          \
    {                                                                                              \
        NULL, key, key, FIELD_##type, NEED_##need, offsetof(struct cluster, member), __VA_ARGS__   \
    }
#define SUB(section, key, type, need, member, ...)                                                 \
    {                                                                                              \
        section, key, section "." key, FIELD_##type, NEED_##need,                                  \
            offsetof(struct cluster, member), __VA_ARGS__                                          \
    }
#define LIMITS_POSITIVE 0, INFINITY, true
#define LIMITS_FROM_ZERO 0, INFINITY, false
#define LIMITS_FRACTION_ABOVE_ZERO 0, 1, true
#define LIMITS_FROM_TO(low, high) low, high, false

/* One row for each field, in the order of docs/clusters.md and of `longhaul list clusters NAME`. */
/* clang-format off */
const struct cluster_field cluster_fields[CLUSTER_FIELD_COUNT] = {
    TOP("nodes",         WHOLE_NUMBER, ALWAYS, nodes,         LIMITS_FROM_TO(1, CLUSTER_MAX_NODES)),
    TOP("gpus_per_node", WHOLE_NUMBER, ALWAYS, gpus_per_node, LIMITS_FROM_TO(1, CLUSTER_MAX_GPUS_PER_NODE)),
    TOP("domain_nodes",  WHOLE_NUMBER, NEVER,  domain_nodes,  LIMITS_FROM_TO(1, CLUSTER_MAX_NODES)),

    SUB("device", "peak_bf16",          FLOP_PER_S,   ALWAYS, device.peak_bf16_flop_per_s,    LIMITS_POSITIVE),
    SUB("device", "memory",             BYTES,        ALWAYS, device.memory_bytes,       LIMITS_POSITIVE),
    SUB("device", "driver",             BYTES,        ALWAYS, device.driver_bytes,       LIMITS_FROM_ZERO),
    SUB("device", "context",            BYTES,        ALWAYS, device.cuda_context_bytes, LIMITS_FROM_ZERO),
    SUB("device", "memory_bandwidth",   BYTES_PER_S,  ALWAYS, device.memory_bytes_per_s, LIMITS_POSITIVE),
    SUB("device", "compute_capability", NUMBER,       NEVER,  device.compute_capability, LIMITS_FROM_ZERO),
    SUB("device", "sms",                WHOLE_NUMBER, ALWAYS, device.sm_count,           LIMITS_FROM_TO(1, 100000)),
    SUB("device", "message_sms",        NUMBER,       NEVER,  device.message_sms,        LIMITS_FROM_ZERO),
    SUB("device", "collective_sms",     NUMBER,       NEVER,  device.collective_sms,     LIMITS_FROM_ZERO),

    SUB("fabric", "kind",                      FABRIC,       ALWAYS, fabric.kind,                            LIMITS_FROM_ZERO),
    SUB("fabric", "bandwidth",                 BYTES_PER_S,  LINKS,  fabric.bytes_per_s,                     LIMITS_POSITIVE),
    SUB("fabric", "efficiency",                NUMBER,       ALWAYS, fabric.ring_efficiency,                      LIMITS_FRACTION_ABOVE_ZERO),
    SUB("fabric", "all_to_all_efficiency",     NUMBER,       ALWAYS, fabric.all_to_all_efficiency,           LIMITS_FRACTION_ABOVE_ZERO),
    SUB("fabric", "peer_bandwidth",            BYTES_PER_S,  ALWAYS, fabric.peer_bytes_per_s,                LIMITS_POSITIVE),
    SUB("fabric", "peer_ranks",                WHOLE_NUMBER, NEVER,  fabric.ranks_from_which_peer_rate_holds,    LIMITS_FROM_TO(0, 100000)),
    SUB("fabric", "all_to_all_peer_bandwidth", BYTES_PER_S,  ALWAYS, fabric.all_to_all_peer_bytes_per_s,     LIMITS_POSITIVE),
    SUB("fabric", "all_to_all_channels",       BYTES_PER_S,  NEVER,  fabric.all_to_all_channels_bytes_per_s, LIMITS_FROM_ZERO),
    SUB("fabric", "latency",                   SECONDS,      ALWAYS, fabric.latency_s,                       LIMITS_FROM_ZERO),
    SUB("fabric", "collective_latency",        SECONDS,      NEVER,  fabric.collective_latency_s,            LIMITS_FROM_ZERO),
    SUB("fabric", "peer_latency",              SECONDS,      NEVER,  fabric.peer_latency_s,                  LIMITS_FROM_ZERO),
    SUB("fabric", "sums_whole",                BOOL,         NEVER,  fabric.reduce_scatter_as_all_reduce,    LIMITS_FROM_ZERO),

    SUB("loopback", "bandwidth", BYTES_PER_S, NEVER, loopback.bytes_per_s, LIMITS_FROM_ZERO),
    SUB("loopback", "latency",   SECONDS,     NEVER, loopback.latency_s,   LIMITS_FROM_ZERO),

    SUB("pcie", "bandwidth",        BYTES_PER_S,  ALWAYS, pcie.nominal_bytes_per_s,         LIMITS_POSITIVE),
    SUB("pcie", "h2d",              BYTES_PER_S,  ALWAYS, pcie.h2d_bytes_per_s,             LIMITS_POSITIVE),
    SUB("pcie", "d2h",              BYTES_PER_S,  ALWAYS, pcie.d2h_bytes_per_s,             LIMITS_POSITIVE),
    SUB("pcie", "both_ways",        BYTES_PER_S,  NEVER,  pcie.both_ways_total_bytes_per_s, LIMITS_FROM_ZERO),
    SUB("pcie", "uplink",           BYTES_PER_S,  ALWAYS, pcie.pcie_switch_uplink_bytes_per_s,          LIMITS_POSITIVE),
    SUB("pcie", "latency",          SECONDS,      ALWAYS, pcie.latency_s,                   LIMITS_FROM_ZERO),
    SUB("pcie", "switches",         WHOLE_NUMBER, ALWAYS, pcie.pcie_switches_per_node,                LIMITS_FROM_TO(1, CLUSTER_MAX_GPUS_PER_NODE)),
    SUB("pcie", "switch_of_gpu",    TABLE,        ALWAYS, switch_of_gpu,                    LIMITS_FROM_ZERO),
    SUB("pcie", "socket_of_switch", TABLE,        ALWAYS, socket_of_switch,                 LIMITS_FROM_ZERO),

    SUB("nic", "count",            WHOLE_NUMBER, ALWAYS, nic.count,                   LIMITS_FROM_TO(0, CLUSTER_MAX_GPUS_PER_NODE)),
    SUB("nic", "bandwidth",        BYTES_PER_S,  NICS,   nic.bytes_per_s,             LIMITS_POSITIVE),
    SUB("nic", "efficiency",       NUMBER,       NICS,   nic.efficiency,              LIMITS_FRACTION_ABOVE_ZERO),
    SUB("nic", "peer_bandwidth",   BYTES_PER_S,  NICS,   nic.peer_bytes_per_s,        LIMITS_POSITIVE),
    SUB("nic", "latency",          SECONDS,      NICS,   nic.latency_s,               LIMITS_FROM_ZERO),
    SUB("nic", "message_latency",  SECONDS,      NICS,   nic.message_latency_s,       LIMITS_FROM_ZERO),
    SUB("nic", "peer_latency",     SECONDS,      NEVER,  nic.peer_latency_s,          LIMITS_FROM_ZERO),
    SUB("nic", "rings",            WHOLE_NUMBER, NEVER,  nic.max_rings_between_domains,              LIMITS_FROM_TO(0, CLUSTER_MAX_GPUS_PER_NODE)),
    SUB("nic", "gpudirect",        BOOL,         NICS,   nic.gpudirect,               LIMITS_FROM_ZERO),
    SUB("nic", "staged_bandwidth", BYTES_PER_S,  NEVER,  nic.host_staged_bytes_per_s, LIMITS_FROM_ZERO),
    SUB("nic", "of_gpu",           TABLE,        NICS,   nic_of_gpu,                  LIMITS_FROM_ZERO),
    SUB("nic", "switch_of_nic",    TABLE,        NICS,   switch_of_nic,               LIMITS_FROM_ZERO),

    SUB("network", "rails",            BOOL,         NEVER, network.has_rails,             LIMITS_FROM_ZERO),
    SUB("network", "leaf_nodes",       WHOLE_NUMBER, NEVER, network.nodes_per_leaf_switch, LIMITS_FROM_TO(0, CLUSTER_MAX_NODES)),
    SUB("network", "oversubscription", NUMBER,       NEVER, network.oversubscription,      LIMITS_FROM_ZERO),

    SUB("host", "memory",           BYTES,        ALWAYS,  host.memory_bytes,              LIMITS_POSITIVE),
    SUB("host", "reserved",         BYTES,        ALWAYS,  host.os_reserved_bytes,            LIMITS_FROM_ZERO),
    SUB("host", "sockets",          WHOLE_NUMBER, ALWAYS,  host.sockets,                   LIMITS_FROM_TO(1, 64)),
    SUB("host", "memory_bandwidth", BYTES_PER_S,  ALWAYS,  host.memory_bytes_per_s,        LIMITS_POSITIVE),
    SUB("host", "socket_link",      BYTES_PER_S,  SOCKETS, host.socket_link_bytes_per_s,   LIMITS_POSITIVE),
    SUB("host", "to_pageable",      BYTES_PER_S,  ALWAYS,  host.d2h_to_pageable_bytes_per_s,   LIMITS_POSITIVE),
    SUB("host", "from_pageable",    BYTES_PER_S,  ALWAYS,  host.h2d_from_pageable_bytes_per_s, LIMITS_POSITIVE),
    SUB("host", "adam",             BYTES_PER_S,  NEVER,   host.adam_bytes_per_s,          LIMITS_FROM_ZERO),
};
/* clang-format on */

static const enum unit_kind unit_of[FIELD_TYPE_COUNT] = {
    [FIELD_BYTES] = UNIT_BYTES,     [FIELD_BYTES_PER_S] = UNIT_BYTES_PER_S,
    [FIELD_SECONDS] = UNIT_SECONDS, [FIELD_FLOP_PER_S] = UNIT_FLOP_PER_S,
    [FIELD_NUMBER] = UNIT_NONE,     [FIELD_WHOLE_NUMBER] = UNIT_NONE,
    [FIELD_BOOL] = UNIT_NONE,       [FIELD_FABRIC] = UNIT_NONE,
    [FIELD_TABLE] = UNIT_NONE,
};

const struct cluster_field *cluster_field_find(const char *path)
{
    for (size_t i = 0; i < CLUSTER_FIELD_COUNT; i++)
        if (strcmp(cluster_fields[i].path, path) == 0)
            return &cluster_fields[i];
    return NULL;
}

bool cluster_field_is_required(const struct cluster *cluster, const struct cluster_field *field)
{
    switch (field->need) {
    case NEED_ALWAYS:
        return true;
    case NEED_NICS:
        return cluster->nic.count != 0;
    case NEED_LINKS:
        return cluster->fabric.kind != FABRIC_PCIE;
    case NEED_SOCKETS:
        return cluster->host.sockets > 1;
    case NEED_NEVER:
    case FIELD_NEED_COUNT:
        break;
    }
    return false;
}

static void *member_address(struct cluster *cluster, const struct cluster_field *field)
{
    return (char *)cluster + field->offset;
}

double cluster_field_value_as_double(const struct cluster *cluster,
                                     const struct cluster_field *field)
{
    const void *from = (const char *)cluster + field->offset;
    switch (field->type) {
    case FIELD_WHOLE_NUMBER:
        return (double)*(const int64_t *)from;
    case FIELD_BOOL:
        return *(const bool *)from;
    case FIELD_FABRIC:
        return *(const enum fabric_kind *)from;
    default:
        assert(field->type != FIELD_TABLE);
        return *(const double *)from;
    }
}

void cluster_field_append_to_text(struct text *out, const struct cluster *cluster,
                                  const struct cluster_field *field)
{
    double value = cluster_field_value_as_double(cluster, field);
    if (isinf(value))
        text_puts(out, "infinite");
    else if (unit_of[field->type] == UNIT_NONE)
        text_put_double(out, value);
    else
        units_put(out, unit_of[field->type], value);
}

enum status cluster_field_check(const struct cluster *cluster, const struct cluster_field *field,
                                struct loc at, struct diag *diag)
{
    if (field->type == FIELD_TABLE || field->type == FIELD_FABRIC)
        return STATUS_OK;
    double value = cluster_field_value_as_double(cluster, field);
    bool fits = field->is_low_limit_excluded ? value > field->low : value >= field->low;
    if (fits && value <= field->high && (isfinite(value) || cluster->is_ideal))
        return STATUS_OK;
    struct text given = {0};
    cluster_field_append_to_text(&given, cluster, field);
    const char *relation = field->is_low_limit_excluded ? "above" : "at least";
    enum status status =
        isinf(field->high)
            ? diag_error(diag, at, STATUS_BAD_INPUT, "%s: %s; it must be finite and %s %g",
                         field->path, given.data, relation, field->low)
            : diag_error(diag, at, STATUS_BAD_INPUT, "%s: %s; it must be %s %g and at most %.10g",
                         field->path, given.data, relation, field->low, field->high);
    text_release(&given);
    return status;
}

/* Records the fact of a field. Facts are kept in the order of the table of fields; an earlier fact of the field is
 * replaced. */
static void record_fact(struct cluster *cluster, struct arena *arena,
                        const struct cluster_field *field, struct cluster_fact fact)
{
    struct cluster_facts *facts = &cluster->facts;
    if (!facts->row) {
        facts->capacity = CLUSTER_FIELD_COUNT;
        facts->row = arena_array(arena, facts->capacity, sizeof *facts->row);
    }
    size_t i = 0;
    while (i < facts->count && cluster_field_find(facts->row[i].path) < field)
        i++;
    if (i == facts->count || strcmp(facts->row[i].path, field->path) != 0) {
        assert(facts->count < facts->capacity);
        memmove(&facts->row[i + 1], &facts->row[i], (facts->count - i) * sizeof *facts->row);
        facts->count++;
    }
    facts->row[i] = fact;
}

static struct loc copy_loc_into_arena(struct arena *arena, struct loc at)
{
    if (at.name)
        at.name = arena_text(arena, at.name, strlen(at.name));
    return at;
}

static enum status set_fabric(enum fabric_kind *kind, const char *text, struct loc at,
                              struct diag *diag)
{
    /* FABRIC_LOOPBACK is not among the choices: only cluster_share_gpu() sets it */
    for (int i = 0; i < FABRIC_LOOPBACK; i++) {
        if (strcmp(fabric_kind_names[i], text) == 0) {
            *kind = (enum fabric_kind)i;
            return STATUS_OK;
        }
    }
    return diag_error(diag, at, STATUS_BAD_INPUT,
                      "fabric.kind: no fabric '%s'; there are switch, mesh and pcie", text);
}

enum status cluster_field_set_text(struct cluster *cluster, struct arena *arena,
                                   const struct cluster_field *field, const char *text, size_t size,
                                   const char *source, struct loc at, struct diag *diag)
{
    void *to = member_address(cluster, field);
    char *value = arena_text(arena, text, size);
    enum status status = STATUS_OK;
    switch (field->type) {
    case FIELD_WHOLE_NUMBER:
        if (!parse_i64(text, size, to))
            status = diag_error(diag, at, STATUS_BAD_INPUT, "%s: '%s' is not a whole number",
                                field->path, value);
        break;
    case FIELD_BOOL:
        *(bool *)to = strcmp(value, "true") == 0;
        if (!*(bool *)to && strcmp(value, "false") != 0)
            status = diag_error(diag, at, STATUS_BAD_INPUT, "%s: '%s' is neither true nor false",
                                field->path, value);
        break;
    case FIELD_FABRIC:
        status = set_fabric(to, value, at, diag);
        break;
    case FIELD_TABLE:
        status = diag_error(diag, at, STATUS_BAD_INPUT, "%s is a table; only a file can give one",
                            field->path);
        break;
    default:
        if (cluster->is_ideal && strcmp(value, "infinite") == 0)
            *(double *)to = INFINITY;
        else
            status = units_parse(text, size, unit_of[field->type], to, at, diag);
    }
    if (status == STATUS_OK)
        status = cluster_field_check(cluster, field, at, diag);
    if (status != STATUS_OK)
        return status;
    record_fact(cluster, arena, field,
                (struct cluster_fact){.path = field->path,
                                      .value_as_written = value,
                                      .source = arena_text(arena, source, strlen(source)),
                                      .at = copy_loc_into_arena(arena, at)});
    return STATUS_OK;
}

void cluster_field_set_table(struct cluster *cluster, struct arena *arena,
                             const struct cluster_field *field, const int64_t *entries,
                             size_t count, const char *source, struct loc at)
{
    assert(field->type == FIELD_TABLE);
    *(const int64_t **)member_address(cluster, field) = entries;
    struct text value = {0};
    text_putc(&value, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            text_puts(&value, ", ");
        text_put_i64(&value, entries[i]);
    }
    text_putc(&value, ']');
    record_fact(cluster, arena, field,
                (struct cluster_fact){.path = field->path,
                                      .value_as_written = arena_text(arena, value.data, value.size),
                                      .source = arena_text(arena, source, strlen(source)),
                                      .entries_of_table_value = count,
                                      .at = copy_loc_into_arena(arena, at)});
    text_release(&value);
}

void cluster_field_set_rate(struct cluster *cluster, struct arena *arena,
                            const struct cluster_field *field, double bytes_per_s,
                            const char *source, struct loc at)
{
    assert(field->type == FIELD_BYTES_PER_S);
    *(double *)member_address(cluster, field) = bytes_per_s;
    record_fact(cluster, arena, field,
                (struct cluster_fact){.path = field->path,
                                      .value_as_written =
                                          isinf(bytes_per_s)
                                              ? "infinite"
                                              : arena_printf(arena, "%.6g GB/s", bytes_per_s / 1e9),
                                      .source = arena_text(arena, source, strlen(source)),
                                      .at = copy_loc_into_arena(arena, at)});
}

void cluster_field_set_origin(struct cluster *cluster, const struct cluster_field *field,
                              enum number_origin how, double spread)
{
    for (size_t i = 0; i < cluster->facts.count; i++)
        if (strcmp(cluster->facts.row[i].path, field->path) == 0) {
            cluster->facts.row[i].origin = how;
            cluster->facts.row[i].spread = spread;
        }
}

struct loc cluster_field_loc(const struct cluster *cluster, const struct cluster_field *field)
{
    const struct cluster_fact *fact = cluster_find_fact(cluster, field->path);
    return fact ? fact->at : (struct loc){.name = cluster->name};
}

void cluster_field_append_origin_to_text(struct text *out, const struct cluster *cluster,
                                         const struct cluster_field *field, struct loc at)
{
    struct loc origin = cluster_field_loc(cluster, field);
    if (origin.name && origin.line > 0 && (!at.name || strcmp(origin.name, at.name) != 0))
        text_printf(out, " (%s:%u)", origin.name, (unsigned)origin.line);
}

void cluster_set_derived_members(struct cluster *cluster)
{
    struct device *device = &cluster->device;
    device->usable_bytes = device->memory_bytes - device->driver_bytes - device->cuda_context_bytes;
    cluster->gpus = cluster->nodes * cluster->gpus_per_node;
    if (cluster->nic.count == 0)
        cluster->nic_of_gpu = cluster->switch_of_nic = NULL;
}

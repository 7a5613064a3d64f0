/* Refuses impossible clusters: limits of single fields, then rules between fields. */
#include "models/cluster.h"

#include "base/c_locale.h"
#include "models/cluster_fields.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct checker {
    const struct cluster *cluster;
    struct diag *diag;
    bool has_fault;
};

/* Reports "FILE:LINE: error: PATH: ...", with the place that the field was read from. */
static void report_wrong_cluster_field(struct checker *checker, const char *path,
                                       const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void report_wrong_cluster_field(struct checker *checker, const char *path,
                                       const char *format, ...)
{
    char what[256];
    va_list args;
    va_start(args, format);
    c_vsnprintf(what, sizeof what, format, args);
    va_end(args);
    struct loc at = cluster_field_loc(checker->cluster, cluster_field_find(path));
    diag_error(checker->diag, at, STATUS_BAD_INPUT, "%s: %s", path, what);
    checker->has_fault = true;
}

static void check_fields(struct checker *checker)
{
    const struct cluster *cluster = checker->cluster;
    for (size_t i = 0; i < CLUSTER_FIELD_COUNT; i++) {
        const struct cluster_field *field = &cluster_fields[i];
        bool given = cluster_find_fact(cluster, field->path) != NULL;
        if (!given && !cluster_field_is_required(cluster, field))
            continue;
        /* the node of an ideal cluster may hold any number of GPUs */
        if (cluster->is_ideal && strcmp(field->path, "gpus_per_node") == 0)
            continue;
        if (cluster_field_check(cluster, field, cluster_field_loc(cluster, field), checker->diag))
            checker->has_fault = true;
    }
}

/* Reports an error if `low` is above `high`. */
static void check_field_not_above(struct checker *checker, const char *low, const char *high)
{
    const struct cluster *cluster = checker->cluster;
    const struct cluster_field *low_field = cluster_field_find(low);
    const struct cluster_field *high_field = cluster_field_find(high);
    if (cluster_field_value_as_double(cluster, low_field) <=
        cluster_field_value_as_double(cluster, high_field))
        return;
    struct text text = {0};
    cluster_field_append_to_text(&text, cluster, low_field);
    text_printf(&text, " is more than %s, ", high);
    cluster_field_append_to_text(&text, cluster, high_field);
    cluster_field_append_origin_to_text(&text, cluster, high_field,
                                        cluster_field_loc(cluster, low_field));
    report_wrong_cluster_field(checker, low, "%s", text.data);
    text_release(&text);
}

static void check_indices(struct checker *checker, const char *path, const int64_t *entries,
                          int64_t count, int64_t limit, const char *what)
{
    for (int64_t i = 0; i < count; i++) {
        if (entries[i] < 0 || entries[i] >= limit)
            report_wrong_cluster_field(checker, path,
                                       "entry %lld is %lld, but the %s are 0 to %lld", (long long)i,
                                       (long long)entries[i], what, (long long)limit - 1);
    }
}

static void check_gpu_and_node_counts(struct checker *checker)
{
    const struct cluster *c = checker->cluster;
    if (c->nodes > CLUSTER_MAX_GPUS / c->gpus_per_node)
        report_wrong_cluster_field(
            checker, "nodes", "%lld nodes of %lld GPUs are more than the %d GPUs there can be",
            (long long)c->nodes, (long long)c->gpus_per_node, CLUSTER_MAX_GPUS);
    if (c->nic.count == 0 && c->nodes > c->domain_nodes)
        report_wrong_cluster_field(checker, "nic.count", "%lld nodes need NICs to reach each other",
                                   (long long)c->nodes);
    if (c->gpus < 1 || c->gpus > c->nodes * c->gpus_per_node)
        report_wrong_cluster_field(checker, "gpus_per_node", "%lld GPUs in use, but there are %lld",
                                   (long long)c->gpus, (long long)(c->nodes * c->gpus_per_node));
}

static void check_device(struct checker *checker)
{
    const struct device *device = &checker->cluster->device;
    if (device->driver_bytes + device->cuda_context_bytes >= device->memory_bytes)
        report_wrong_cluster_field(checker, "device.context",
                                   "driver and context leave none of the device's memory");
}

static void check_fabric(struct checker *checker)
{
    const struct cluster *c = checker->cluster;
    if (c->fabric.kind != FABRIC_SWITCH && c->domain_nodes > 1)
        report_wrong_cluster_field(checker, "domain_nodes",
                                   "only a switch can join the GPUs of several nodes; "
                                   "fabric.kind is %s",
                                   fabric_kind_names[c->fabric.kind]);
    if (c->fabric.kind == FABRIC_PCIE) {
        if (c->fabric.bytes_per_s != 0)
            report_wrong_cluster_field(checker, "fabric.bandwidth",
                                       "a pcie fabric has none of its own; leave it out");
        check_field_not_above(checker, "fabric.peer_bandwidth", "pcie.bandwidth");
        return;
    }
    check_field_not_above(checker, "fabric.peer_bandwidth", "fabric.bandwidth");
    check_field_not_above(checker, "fabric.all_to_all_peer_bandwidth", "fabric.bandwidth");
}

static void check_link_rates_and_host_memory(struct checker *checker)
{
    const struct cluster *c = checker->cluster;
    check_field_not_above(checker, "pcie.h2d", "pcie.bandwidth");
    check_field_not_above(checker, "pcie.d2h", "pcie.bandwidth");
    if (c->nic.count > 0)
        check_field_not_above(checker, "nic.peer_bandwidth", "nic.bandwidth");
    if (c->network.oversubscription != 0 && !(c->network.oversubscription >= 1))
        report_wrong_cluster_field(
            checker, "network.oversubscription",
            "%g; bandwidth below a leaf over bandwidth above it is at least 1",
            c->network.oversubscription);
    if (c->host.os_reserved_bytes >= c->host.memory_bytes)
        report_wrong_cluster_field(checker, "host.reserved", "leaves none of the host's memory");
}

static void check_tables(struct checker *checker)
{
    const struct cluster *c = checker->cluster;
    check_indices(checker, "pcie.switch_of_gpu", c->switch_of_gpu, c->gpus_per_node,
                  c->pcie.pcie_switches_per_node, "switches");
    check_indices(checker, "pcie.socket_of_switch", c->socket_of_switch,
                  c->pcie.pcie_switches_per_node, c->host.sockets, "sockets");
    if (c->nic.count > 0) {
        check_indices(checker, "nic.of_gpu", c->nic_of_gpu, c->gpus_per_node, c->nic.count, "NICs");
        check_indices(checker, "nic.switch_of_nic", c->switch_of_nic, c->nic.count,
                      c->pcie.pcie_switches_per_node, "switches");
    }
}

enum status cluster_check(const struct cluster *cluster, struct diag *diag)
{
    struct checker checker = {.cluster = cluster, .diag = diag};
    check_fields(&checker);
    if (checker.has_fault) /* the rules below rely on numbers within their limits */
        return STATUS_BAD_INPUT;
    check_gpu_and_node_counts(&checker);
    check_device(&checker);
    check_fabric(&checker);
    check_link_rates_and_host_memory(&checker);
    check_tables(&checker);
    return checker.has_fault ? STATUS_BAD_INPUT : STATUS_OK;
}

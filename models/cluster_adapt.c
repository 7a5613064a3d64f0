/* Adapts the numbers that a cluster has from its base. Rates that software reaches change by the same factor as the
 * nominal rates, and NICs are assigned to GPUs again if their number changes. */
#include "models/cluster_fields.h"

#include <math.h>
#include <string.h>

/* fields of a cluster file: a rate that software reaches, and the nominal rate to which it is proportional */
static const struct {
    const char *reached, *nominal;
} rates[] = {
    {"fabric.peer_bandwidth", "fabric.bandwidth"},
    {"fabric.all_to_all_peer_bandwidth", "fabric.bandwidth"},
    {"fabric.all_to_all_channels", "fabric.bandwidth"},
    {"pcie.h2d", "pcie.bandwidth"},
    {"pcie.d2h", "pcie.bandwidth"},
    {"pcie.both_ways", "pcie.bandwidth"},
    {"pcie.uplink", "pcie.bandwidth"},
    {"nic.peer_bandwidth", "nic.bandwidth"},
    {"nic.staged_bandwidth", "pcie.bandwidth"},
};

static bool is_given(const bool *given, const char *path)
{
    return given[cluster_field_find(path) - cluster_fields];
}

/* Returns the field of the nominal rate for a row of rates[]. If the fabric is pcie, a rate of the fabric is
 * proportional to pcie.bandwidth, since peers use their lanes. Returns NULL if the base has another kind of fabric: its
 * rates then say nothing about this fabric. */
static const struct cluster_field *nominal_rate_field_of(size_t row, const struct cluster *cluster,
                                                         const struct cluster *base)
{
    const struct cluster_field *nominal = cluster_field_find(rates[row].nominal);
    if (strcmp(nominal->section, "fabric") != 0)
        return nominal;
    if (cluster->fabric.kind != base->fabric.kind)
        return NULL;
    return cluster->fabric.kind == FABRIC_PCIE ? cluster_field_find("pcie.bandwidth") : nominal;
}

static void scale_rates_with_nominal_rates(struct cluster *cluster, struct arena *arena,
                                           const struct cluster *base, const bool *given)
{
    for (size_t i = 0; i < ARRAY_LEN(rates); i++) {
        const struct cluster_field *nominal = nominal_rate_field_of(i, cluster, base);
        if (nominal == NULL || is_given(given, rates[i].reached))
            continue;
        const struct cluster_field *reached = cluster_field_find(rates[i].reached);
        double before = cluster_field_value_as_double(base, nominal);
        double now = cluster_field_value_as_double(cluster, nominal);
        double rate = cluster_field_value_as_double(base, reached);
        if (before == now || before == 0 || rate == 0 || (isinf(before) && !isinf(rate)))
            continue;
        /* the division comes first, so that rounding cannot lift a rate above the new nominal one */
        double share = isinf(before) ? 1 : rate / before;
        cluster_field_set_rate(cluster, arena, reached, share * now,
                               arena_printf(arena, "scaled with %s", nominal->path),
                               cluster_field_loc(cluster, nominal));
    }
}

static bool has_entry_per_gpu(const struct cluster *cluster, const char *path)
{
    const struct cluster_fact *fact = cluster_find_fact(cluster, path);
    return fact != NULL && (int64_t)fact->entries_of_table_value == cluster->gpus_per_node;
}

/* Sets the tables nic.of_gpu and nic.switch_of_nic, except those that are given: each NIC serves neighbouring GPUs and
 * is attached to the PCIe switch of the first of them. Nothing is set if there are no NICs, or more NICs than GPUs, or
 * if a table that this needs has a wrong length; check_lengths() refuses that table later. */
static void spread_nics_evenly(struct cluster *cluster, struct arena *arena, const bool *given)
{
    static const char source[] = "spread evenly with nic.count";
    int64_t count = cluster->nic.count, gpus = cluster->gpus_per_node;
    if (count < 1 || count > gpus || !has_entry_per_gpu(cluster, "pcie.switch_of_gpu"))
        return;
    struct loc at = cluster_field_loc(cluster, cluster_field_find("nic.count"));
    if (!is_given(given, "nic.of_gpu")) {
        int64_t *of_gpu = arena_array(arena, (size_t)gpus, sizeof *of_gpu);
        for (int64_t g = 0; g < gpus; g++)
            of_gpu[g] = g * count / gpus;
        cluster_field_set_table(cluster, arena, cluster_field_find("nic.of_gpu"), of_gpu,
                                (size_t)gpus, source, at);
    }
    if (is_given(given, "nic.switch_of_nic") || !has_entry_per_gpu(cluster, "nic.of_gpu"))
        return;
    int64_t *switch_of = arena_array(arena, (size_t)count, sizeof *switch_of);
    /* A NIC that serves no GPU, since nic.of_gpu is given, keeps the switch that an even assignment gives it. */
    for (int64_t n = 0; n < count; n++)
        switch_of[n] = cluster->switch_of_gpu[n * gpus / count];
    for (int64_t g = gpus - 1; g >= 0; g--)
        if (cluster->nic_of_gpu[g] < count)
            switch_of[cluster->nic_of_gpu[g]] = cluster->switch_of_gpu[g];
    cluster_field_set_table(cluster, arena, cluster_field_find("nic.switch_of_nic"), switch_of,
                            (size_t)count, source, at);
}

void cluster_adapt_base_numbers(struct cluster *cluster, struct arena *arena,
                                const struct cluster *base, const bool given[CLUSTER_FIELD_COUNT])
{
    scale_rates_with_nominal_rates(cluster, arena, base, given);
    if (cluster->nic.count != base->nic.count)
        spread_nics_evenly(cluster, arena, given);
}

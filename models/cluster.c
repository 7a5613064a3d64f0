#include "models/cluster.h"

#include "base/c_locale.h"
#include "base/units.h"
#include "models/presets.h"

#include <assert.h>
#include <math.h>
#include <string.h>

bool cluster_name_ends_in_json(const char *text)
{
    size_t size = strlen(text);
    return size >= 5 && strcmp(text + size - 5, ".json") == 0;
}

/* Returns the ':' before the first option of "NAME:OPTION=VALUE,OPTION=VALUE"; NULL: `what` has no options. */
static const char *find_options_in_line(const char *what)
{
    const char *equals = strchr(what, '=');
    while (equals != NULL && equals > what && *equals != ':')
        equals--;
    return equals != NULL && equals > what ? equals : NULL;
}

bool cluster_is_in_line_form(const char *what)
{
    return !cluster_name_ends_in_json(what) &&
           (c_is_digit(what[0]) || find_options_in_line(what) != NULL);
}

bool cluster_is_file(const char *what)
{
    /* a '/' in an option is part of a unit ("nic.bandwidth=400 Gb/s"), not of a path */
    return cluster_name_ends_in_json(what) ||
           (!cluster_is_in_line_form(what) && strchr(what, '/') != NULL);
}

enum status cluster_presets(const char *const **names, size_t *count, struct arena *arena,
                            struct diag *diag)
{
    return presets_list_names("clusters", names, count, arena, diag);
}

const struct cluster_fact *cluster_find_fact(const struct cluster *cluster, const char *path)
{
    for (size_t i = 0; i < cluster->facts.count; i++)
        if (strcmp(cluster->facts.row[i].path, path) == 0)
            return &cluster->facts.row[i];
    return NULL;
}

/* ---- the number of nodes and GPUs in use ---- */

/* Puts all GPUs into one node: nothing in an ideal cluster depends on where a GPU is. */
static void put_all_gpus_into_one_node(struct cluster *cluster, struct arena *arena, int64_t gpus)
{
    int64_t *zeros = arena_array(arena, (size_t)gpus, sizeof *zeros);
    cluster->nodes = 1;
    cluster->gpus = cluster->gpus_per_node = gpus;
    cluster->switch_of_gpu = zeros;
    cluster->nic_of_gpu = cluster->nic.count > 0 ? zeros : NULL;
}

static enum status set_used_gpu_count(struct cluster *cluster, int64_t nodes, int64_t gpus,
                                      struct diag *diag)
{
    int64_t per_node = cluster->gpus_per_node;
    int64_t below = gpus / per_node * per_node;
    if (gpus > per_node && gpus != below)
        return diag_error(diag, (struct loc){0}, STATUS_BAD_INPUT,
                          "%lld GPUs do not fill nodes of %lld; the nearest that do are %lld and "
                          "%lld",
                          (long long)gpus, (long long)per_node, (long long)below,
                          (long long)(below + per_node));
    int64_t filled = gpus < per_node ? 1 : gpus / per_node;
    if (nodes > 0 && nodes != filled)
        return diag_error(diag, (struct loc){0}, STATUS_BAD_INPUT,
                          "%lld GPUs are not %lld nodes of %lld GPUs (%lld)", (long long)gpus,
                          (long long)nodes, (long long)per_node, (long long)(nodes * per_node));
    cluster->nodes = filled;
    cluster->gpus = gpus;
    return STATUS_OK;
}

/* Returns how many nodes of each domain a job of `nodes` nodes uses (cluster_resize()). whole_domain_nodes: the
 * number of nodes of a whole domain. */
static int64_t used_nodes_per_domain(int64_t nodes, int64_t whole_domain_nodes)
{
    for (int64_t part = whole_domain_nodes;
         nodes > whole_domain_nodes && 2 * part > whole_domain_nodes; part--)
        if (nodes % part == 0)
            return part;
    return whole_domain_nodes;
}

enum status cluster_resize(struct cluster *cluster, struct arena *arena, int64_t nodes,
                           int64_t gpus, struct diag *diag)
{
    struct loc nowhere = {0};
    if (nodes == 0 && gpus == 0)
        return STATUS_OK;
    if (nodes < 0 || nodes > CLUSTER_MAX_NODES)
        return diag_error(diag, nowhere, STATUS_BAD_INPUT,
                          "%lld nodes: the number must be from 1 to %d", (long long)nodes,
                          CLUSTER_MAX_NODES);
    if (gpus < 0 || gpus > CLUSTER_MAX_GPUS)
        return diag_error(diag, nowhere, STATUS_BAD_INPUT,
                          "%lld GPUs: the number must be from 1 to %d", (long long)gpus,
                          CLUSTER_MAX_GPUS);
    if (cluster->is_ideal && nodes == 0) {
        put_all_gpus_into_one_node(cluster, arena, gpus);
        return STATUS_OK;
    }
    if (gpus == 0)
        gpus = nodes * cluster->gpus_per_node;
    if (gpus > CLUSTER_MAX_GPUS)
        return diag_error(diag, nowhere, STATUS_BAD_INPUT,
                          "%lld nodes of %lld GPUs are more than the %d GPUs there can be",
                          (long long)nodes, (long long)cluster->gpus_per_node, CLUSTER_MAX_GPUS);
    struct cluster resized = *cluster;
    enum status status = set_used_gpu_count(&resized, nodes, gpus, diag);
    if (status != STATUS_OK)
        return status;
    if (resized.domain_nodes_in_file == 0)
        resized.domain_nodes_in_file = resized.domain_nodes;
    if (resized.nic.count == 0 && resized.nodes > resized.domain_nodes_in_file)
        return diag_error(diag, nowhere, STATUS_BAD_INPUT,
                          "%s has no NICs, so it cannot have more than %lld nodes; nodes is %lld",
                          cluster->name, (long long)resized.domain_nodes_in_file,
                          (long long)resized.nodes);
    resized.domain_nodes = used_nodes_per_domain(resized.nodes, resized.domain_nodes_in_file);
    *cluster = resized;
    return STATUS_OK;
}

/* ---- a GPU that several ranks share ---- */

enum status cluster_share_gpu(struct cluster *cluster, struct arena *arena, int64_t ranks,
                              struct loopback copies, struct diag *diag)
{
    if (ranks < 1 || ranks > CLUSTER_MAX_GPUS_PER_NODE)
        return diag_error(diag, (struct loc){.name = "--loopback"}, STATUS_BAD_INPUT,
                          "%lld ranks on one GPU: the number must be from 1 to %d",
                          (long long)ranks, CLUSTER_MAX_GPUS_PER_NODE);
    if (cluster->is_ideal)
        return diag_error(
            diag, (struct loc){.name = "--loopback"}, STATUS_BAD_INPUT,
            "an ideal GPU has no memory bandwidth to share; another cluster would do");
    int64_t *switches = arena_array(arena, (size_t)ranks, sizeof *switches);
    int64_t *nics = arena_array(arena, (size_t)ranks, sizeof *nics);
    for (int64_t r = 0; r < ranks; r++) {
        switches[r] = cluster->switch_of_gpu[0];
        nics[r] = cluster->nic.count > 0 ? cluster->nic_of_gpu[0] : 0;
    }
    struct device *device = &cluster->device;
    cluster->nodes = cluster->domain_nodes = 1;
    cluster->gpus = cluster->gpus_per_node = ranks;
    cluster->switch_of_gpu = switches;
    cluster->nic_of_gpu = cluster->nic.count > 0 ? nics : NULL;
    cluster->fabric.kind = FABRIC_LOOPBACK;
    device->memory_bytes /= (double)ranks;
    device->driver_bytes /= (double)ranks;
    /* all ranks run in one process with one context; each rank is charged its part */
    device->cuda_context_bytes /= (double)ranks;
    device->usable_bytes /= (double)ranks;
    /* messages are copies, for which no kernel of NCCL runs */
    device->message_sms = device->collective_sms = 0;
    if (cluster->loopback.bytes_per_s == 0)
        cluster->loopback.bytes_per_s = copies.bytes_per_s;
    if (cluster->loopback.latency_s == 0)
        cluster->loopback.latency_s = copies.latency_s;
    return STATUS_OK;
}

int64_t cluster_inter_domain_channel_count(const struct cluster *cluster, int64_t rings)
{
    int64_t channels = 2 * rings;
    return cluster->device.compute_capability >= 9 && channels < 16 ? 2 * channels : channels;
}

bool cluster_fact_is_measured(const struct cluster_fact *fact)
{
    return fact != NULL && (fact->origin == NUMBER_MEASURED || fact->spread > 0);
}

/* ---- ranks ---- */

struct cluster_place cluster_place_of_rank(const struct cluster *cluster, int64_t rank)
{
    assert(rank >= 0 && rank < cluster->gpus);
    int64_t node = rank / cluster->gpus_per_node;
    return (struct cluster_place){
        .node = node, .gpu = rank % cluster->gpus_per_node, .domain = node / cluster->domain_nodes};
}

int64_t cluster_socket_of_gpu(const struct cluster *cluster, int64_t gpu)
{
    assert(gpu >= 0 && gpu < cluster->gpus_per_node);
    return cluster->socket_of_switch[cluster->switch_of_gpu[gpu]];
}

/* ---- printing ---- */

void cluster_print_numbers_and_sources(struct text *out, const struct cluster *cluster)
{
    text_printf(out, "%s: %s\n", cluster->name, cluster->summary);
    text_printf(out, "%lld nodes, %lld GPUs in use (%s), usable memory of each ",
                (long long)cluster->nodes, (long long)cluster->gpus, cluster->device.name);
    if (isinf(cluster->device.usable_bytes))
        text_puts(out, "infinite");
    else
        units_put_gib(out, cluster->device.usable_bytes);
    text_puts(out, "\n");
    for (size_t i = 0; i < cluster->facts.count; i++) {
        const struct cluster_fact *fact = &cluster->facts.row[i];
        text_printf(out, "%-33s %-16s %s", fact->path, fact->value_as_written, fact->source);
        if (fact->spread > 0)
            text_printf(out, "; spread %.2g %%", 100 * fact->spread);
        const char *slash = fact->at.name ? strrchr(fact->at.name, '/') : NULL;
        if (slash && fact->at.line > 0 && cluster_name_ends_in_json(slash))
            text_printf(out, " (%s:%u)", slash + 1, (unsigned)fact->at.line);
        text_puts(out, "\n");
    }
}

#include "predict/link_classes.h"

#include "base/arena.h"

#include <stdlib.h>

/* The ends of links: host and device, ranks that share a GPU, GPUs of one domain of the fabric (a node, or several), or
 * GPUs of different domains. */
enum link_domain_reach { REACH_HOST, REACH_DEVICE, REACH_NODE, REACH_NODES };
enum link_work_kind {
    LINK_WORK_H2D,
    LINK_WORK_D2H,
    LINK_WORK_RING,
    LINK_WORK_EXCHANGE,
    LINK_WORK_PEER,
    LINK_WORK_KIND_COUNT
};

static const struct {
    /* name: what the link carries; path: the key in a cluster file of the number that sets its rate */
    const char *name, *path;
    enum link_domain_reach domain_reach;
    unsigned link_work_kind_mask; /* the sorts of work, a bit for each enum link_work_kind */
} rows[] = {
    {"copies to a device", "pcie.h2d", REACH_HOST, 1u << LINK_WORK_H2D},
    {"copies from a device", "pcie.d2h", REACH_HOST, 1u << LINK_WORK_D2H},
    {"copies within a GPU", "loopback.bandwidth", REACH_DEVICE,
     1u << LINK_WORK_RING | 1u << LINK_WORK_EXCHANGE | 1u << LINK_WORK_PEER},
    {"rings within a node", "fabric.efficiency", REACH_NODE, 1u << LINK_WORK_RING},
    {"all-to-alls within a node", "fabric.all_to_all_peer_bandwidth", REACH_NODE,
     1u << LINK_WORK_EXCHANGE},
    {"pairs within a node", "fabric.peer_bandwidth", REACH_NODE, 1u << LINK_WORK_PEER},
    {"rings and all-to-alls over nodes", "nic.efficiency", REACH_NODES,
     1u << LINK_WORK_RING | 1u << LINK_WORK_EXCHANGE},
    {"pairs over nodes", "nic.peer_bandwidth", REACH_NODES, 1u << LINK_WORK_PEER},
};
_Static_assert(sizeof rows / sizeof rows[0] <= LINK_CLASSES_MAX, "they fit");

static enum link_work_kind link_work_kind_of(enum work_kind kind)
{
    switch (kind) {
    case WORK_H2D:
        return LINK_WORK_H2D;
    case WORK_D2H:
        return LINK_WORK_D2H;
    case WORK_ALL_TO_ALL:
    case WORK_EXCHANGE:
    case WORK_SCATTER:
        return LINK_WORK_EXCHANGE;
    case WORK_SHIFT:
    case WORK_SEND:
    case WORK_RECV:
        return LINK_WORK_PEER;
    case WORK_ALL_GATHER:
    case WORK_REDUCE_SCATTER:
    case WORK_ALL_REDUCE:
    case WORK_REDUCE:
    case WORK_BROADCAST:
        return LINK_WORK_RING;
    default:
        return LINK_WORK_KIND_COUNT;
    }
}

/* Sets *within if some two neighbours in an instance of the group are in the same domain of the fabric (one or several
 * nodes), and *between if some two are in different domains. Otherwise leaves them unchanged. */
static void find_reach_of_group(const struct ir *ir, const struct cluster *cluster, uint32_t group,
                                bool *within, bool *between)
{
    const struct group *g = &ir->group[group];
    uint32_t size = group_rank_count(&ir->mesh, g), instances = group_instance_count(&ir->mesh, g);
    int64_t per_domain = cluster->gpus_per_node * cluster->domain_nodes;
    for (uint32_t k = 0; k < instances && !(*within && *between); k++)
        for (uint32_t i = 0; i + 1 < size; i++) {
            uint32_t one = group_global_rank_of_member(&ir->mesh, g, k, i);
            uint32_t next = group_global_rank_of_member(&ir->mesh, g, k, i + 1);
            *within |= one / per_domain == next / per_domain;
            *between |= one / per_domain != next / per_domain;
        }
}

/* Returns, on the heap, the sorts of work of each group as bits of enum link_work_kind. The last element, after
 * those of the groups, is for copies between host and device. */
static unsigned *find_link_work_kinds_of_groups(const struct ir *ir)
{
    unsigned *work_kind_mask_of_each_group =
        heap_zalloc(ir->group_count + 1u, sizeof *work_kind_mask_of_each_group);
    for (uint32_t s = 0; s < ir->shape_count; s++) {
        const struct work *work = &ir->shape[s];
        enum link_work_kind sort = link_work_kind_of((enum work_kind)work->kind);
        int64_t group = work_comm_group(work) < 0 ? ir->group_count : work_comm_group(work);
        work_kind_mask_of_each_group[group] |= sort == LINK_WORK_KIND_COUNT ? 0 : 1u << sort;
    }
    return work_kind_mask_of_each_group;
}

/* Sets used[reach] to the sorts of work whose data travel that far, as bits of enum link_work_kind. */
static void find_link_work_kinds_by_reach(unsigned used[REACH_NODES + 1], const struct ir *ir,
                                          const struct cluster *cluster)
{
    bool shared = cluster->fabric.kind == FABRIC_LOOPBACK;
    unsigned *sorts = find_link_work_kinds_of_groups(ir);
    used[REACH_HOST] = sorts[ir->group_count];
    for (uint32_t g = 0; g < ir->group_count; g++) {
        bool within = false, between = false;
        if (sorts[g] != 0)
            find_reach_of_group(ir, cluster, g, &within, &between);
        used[shared ? REACH_DEVICE : REACH_NODE] |= within ? sorts[g] : 0;
        used[REACH_NODES] |= between ? sorts[g] : 0;
    }
    free(sorts);
}

size_t link_classes_list(struct link_class class[LINK_CLASSES_MAX], const struct ir *ir,
                         const struct cluster *cluster)
{
    unsigned used[REACH_NODES + 1] = {0};
    size_t count = 0;
    if (cluster->is_ideal)
        return 0;
    find_link_work_kinds_by_reach(used, ir, cluster);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if ((used[rows[i].domain_reach] & rows[i].link_work_kind_mask) == 0)
            continue;
        const struct cluster_fact *fact = cluster_find_fact(cluster, rows[i].path);
        class[count++] = (struct link_class){rows[i].name, cluster_fact_is_measured(fact),
                                             fact ? fact->source : "the device's costs"};
    }
    return count;
}

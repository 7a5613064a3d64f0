#include "sim/fold_flows.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

/* ---- rows by key ---- */

/* For each key in [0, keys), the rows that have it: row[begin[key]..begin[key + 1]), ascending. */
struct index {
    uint32_t *begin, *row;
};

static void index_init(struct index *index, const uint32_t *key, uint32_t rows, uint32_t keys)
{
    index->begin = heap_zalloc(keys + 2u, sizeof *index->begin);
    index->row = heap_alloc(rows + 1u, sizeof *index->row);
    for (uint32_t i = 0; i < rows; i++)
        index->begin[key[i] + 2]++;
    for (uint32_t k = 0; k < keys; k++)
        index->begin[k + 2] += index->begin[k + 1];
    for (uint32_t i = 0; i < rows; i++)
        index->row[index->begin[key[i] + 1]++] = i;
}

static void index_release(struct index *index)
{
    free(index->begin);
    free(index->row);
}

/* ---- components ---- */

static uint32_t root_of(uint32_t *parent, uint32_t link)
{
    while (parent[link] != link)
        link = parent[link] = parent[parent[link]];
    return link;
}

/* The component of each link: the lowest link it can reach through flows. */
static uint32_t *link_components(const struct plan *plan, const struct pruned *pruned)
{
    uint32_t links = plan->platform.link_count;
    uint32_t *parent = heap_alloc(links + 1u, sizeof *parent);
    for (uint32_t l = 0; l < links; l++)
        parent[l] = l;
    for (uint32_t f = 0; f < plan->flows.count; f++)
        for (uint32_t i = pruned->link_begin[f] + 1; i < pruned->link_begin[f + 1]; i++) {
            uint32_t a = root_of(parent, pruned->link[i - 1]), b = root_of(parent, pruned->link[i]);
            parent[a > b ? a : b] = a > b ? b : a;
        }
    for (uint32_t l = 0; l < links; l++)
        parent[l] = root_of(parent, l);
    return parent;
}

struct folder {
    const struct plan *plan;
    const struct pruned *pruned;
    const struct fold_network *network;
    uint32_t *component_of_link, *component_of_flow;
    struct index flows; /* by component */
    bool *chosen;       /* components */
    bool *keep;         /* flows */
    uint32_t *stand_in; /* the link that a link's flows cross in the network */
};

/* Marks components until every class of flows has a member in one. */
static void choose_components(struct folder *f, const struct fold *fold)
{
    const struct plan *plan = f->plan;
    bool *covered = heap_zalloc(f->network->flow_classes + 1u, sizeof *covered);
    f->chosen = heap_zalloc(plan->platform.link_count + 1u, sizeof *f->chosen);
    for (uint32_t k = 0; k < fold->channel_class_count; k++) {
        const struct channel *channel = &plan->channel[fold->channel_of_class[k]];
        for (uint32_t v = 0; v < plan->line[channel->line].variants; v++) {
            const struct transfer *t = &plan->transfer[channel->transfer_begin + v];
            for (uint32_t i = t->flow_begin; i < t->flow_begin + t->flow_count; i++) {
                uint32_t component = f->component_of_flow[i];
                if (covered[f->network->class_of_flow[i]])
                    continue;
                f->chosen[component] = true;
                for (uint32_t j = f->flows.begin[component]; j < f->flows.begin[component + 1]; j++)
                    covered[f->network->class_of_flow[f->flows.row[j]]] = true;
            }
        }
    }
    free(covered);
}

/* ---- quotients ---- */

/* n(L) of each link, or 0 where the classes on it differ in number. */
static uint32_t *count_per_class(const struct folder *f)
{
    uint32_t links = f->plan->platform.link_count;
    uint32_t entries = f->pruned->link_begin[f->plan->flows.count];
    uint32_t *flow_of_entry = heap_alloc(entries + 1u, sizeof *flow_of_entry);
    for (uint32_t i = 0; i < f->plan->flows.count; i++)
        for (uint32_t e = f->pruned->link_begin[i]; e < f->pruned->link_begin[i + 1]; e++)
            flow_of_entry[e] = i;
    struct index users;
    index_init(&users, f->pruned->link, entries, links);
    uint32_t *times = heap_zalloc(f->network->flow_classes + 1u, sizeof *times);
    uint32_t *count = heap_zalloc(links + 1u, sizeof *count);
    for (uint32_t l = 0; l < links; l++) {
        if (!f->chosen[f->component_of_link[l]])
            continue;
        uint32_t begin = users.begin[l], end = users.begin[l + 1];
        for (uint32_t u = begin; u < end; u++)
            times[f->network->class_of_flow[flow_of_entry[users.row[u]]]]++;
        bool same = true;
        for (uint32_t u = begin; u < end; u++) {
            uint32_t n = times[f->network->class_of_flow[flow_of_entry[users.row[u]]]];
            if (u == begin)
                count[l] = n;
            same = same && n == count[l];
        }
        for (uint32_t u = begin; u < end; u++)
            times[f->network->class_of_flow[flow_of_entry[users.row[u]]]] = 0;
        if (!same)
            count[l] = 0;
    }
    free(times);
    index_release(&users);
    free(flow_of_entry);
    return count;
}

/* Keeps one flow per class, on one link per class whose width is divided. */
static void fold_component(struct folder *f, struct fold *fold, const struct index *links,
                           uint32_t component, const uint32_t *count, bool *class_seen,
                           uint32_t *first_link)
{
    for (uint32_t i = links->begin[component]; i < links->begin[component + 1]; i++) {
        uint32_t l = links->row[i], *first = &first_link[f->network->class_of_link[l]];
        if (*first == IR_NONE) {
            *first = l;
            fold->bytes_per_s[l] /= count[l];
        }
        f->stand_in[l] = *first;
    }
    for (uint32_t i = f->flows.begin[component]; i < f->flows.begin[component + 1]; i++) {
        bool *seen = &class_seen[f->network->class_of_flow[f->flows.row[i]]];
        f->keep[f->flows.row[i]] = !*seen;
        *seen = true;
    }
    for (uint32_t i = links->begin[component]; i < links->begin[component + 1]; i++)
        first_link[f->network->class_of_link[links->row[i]]] = IR_NONE;
    for (uint32_t i = f->flows.begin[component]; i < f->flows.begin[component + 1]; i++)
        class_seen[f->network->class_of_flow[f->flows.row[i]]] = false;
}

static void choose_flows(struct folder *f, struct fold *fold)
{
    uint32_t links = f->plan->platform.link_count;
    struct index by_component;
    index_init(&by_component, f->component_of_link, links, links);
    uint32_t *count = count_per_class(f);
    bool *class_seen = heap_zalloc(f->network->flow_classes + 1u, sizeof *class_seen);
    uint32_t *first_link = heap_alloc(f->network->link_classes + 1u, sizeof *first_link);
    memset(first_link, 0xff, (f->network->link_classes + 1u) * sizeof *first_link);
    for (uint32_t c = 0; c < links; c++) {
        if (!f->chosen[c])
            continue;
        bool uniform = true;
        for (uint32_t i = by_component.begin[c]; i < by_component.begin[c + 1]; i++)
            uniform = uniform && (count[by_component.row[i]] > 0);
        if (uniform)
            fold_component(f, fold, &by_component, c, count, class_seen, first_link);
        else
            for (uint32_t i = f->flows.begin[c]; i < f->flows.begin[c + 1]; i++)
                f->keep[f->flows.row[i]] = true;
    }
    free(first_link);
    free(class_seen);
    free(count);
    index_release(&by_component);
}

/* ---- what the scheduler reads ---- */

/* Paths of the flows that are kept, each link once. */
static void list_links(struct folder *f, struct fold *fold)
{
    uint32_t flows = f->plan->flows.count, filled = 0;
    uint32_t *last_flow = heap_zalloc(f->plan->platform.link_count + 1u, sizeof *last_flow);
    fold->link_begin = heap_alloc(flows + 1u, sizeof *fold->link_begin);
    fold->link = heap_alloc(f->pruned->link_begin[flows] + 1u, sizeof *fold->link);
    for (uint32_t i = 0; i < flows; i++) {
        fold->link_begin[i] = filled;
        for (uint32_t e = f->pruned->link_begin[i]; f->keep[i] && e < f->pruned->link_begin[i + 1];
             e++) {
            uint32_t link = f->stand_in[f->pruned->link[e]];
            if (last_flow[link] != i + 1)
                fold->link[filled++] = link;
            last_flow[link] = i + 1;
        }
    }
    fold->link_begin[flows] = filled;
    free(last_flow);
}

/* Lists kept flows by the transfer of their channel class's lowest channel. */
static void list_flows(struct fold *fold, const struct plan *plan, const bool *keep)
{
    uint32_t *key = heap_alloc(plan->flows.count + 1u, sizeof *key);
    for (uint32_t i = 0; i < plan->flows.count; i++)
        key[i] = plan->transfer_count; /* nobody's */
    for (uint32_t k = 0; k < plan->channel_count; k++) {
        const struct channel *own = &plan->channel[k];
        const struct channel *lowest =
            &plan->channel[fold->channel_of_class[fold->class_of_channel[k]]];
        for (uint32_t v = 0; v < plan->line[own->line].variants; v++) {
            const struct transfer *t = &plan->transfer[own->transfer_begin + v];
            for (uint32_t i = t->flow_begin; i < t->flow_begin + t->flow_count; i++)
                if (keep[i])
                    key[i] = lowest->transfer_begin + v;
        }
    }
    struct index index;
    index_init(&index, key, plan->flows.count, plan->transfer_count + 1u);
    fold->flow_begin = index.begin;
    fold->flow = index.row;
    free(key);
}

void fold_no_flows(struct fold *fold, const struct plan *plan, const struct pruned *pruned)
{
    uint32_t flows = plan->flows.count, links = plan->platform.link_count;
    bool *keep = heap_alloc(flows + 1u, sizeof *keep);
    memset(keep, true, (flows + 1u) * sizeof *keep);
    list_flows(fold, plan, keep);
    free(keep);
    fold->bytes_per_s = heap_alloc(links + 1u, sizeof *fold->bytes_per_s);
    fold->link_begin = heap_alloc(flows + 1u, sizeof *fold->link_begin);
    fold->link = heap_alloc(pruned->link_begin[flows] + 1u, sizeof *fold->link);
    if (links > 0)
        memcpy(fold->bytes_per_s, plan->platform.bytes_per_s, links * sizeof *fold->bytes_per_s);
    memcpy(fold->link_begin, pruned->link_begin, (flows + 1u) * sizeof *fold->link_begin);
    memcpy(fold->link, pruned->link, pruned->link_begin[flows] * sizeof *fold->link);
}

void fold_flows(struct fold *fold, const struct plan *plan, const struct pruned *pruned,
                const struct fold_network *network)
{
    uint32_t flows = plan->flows.count, links = plan->platform.link_count;
    struct folder f = {.plan = plan, .pruned = pruned, .network = network};
    f.component_of_link = link_components(plan, pruned);
    f.component_of_flow = heap_alloc(flows + 1u, sizeof *f.component_of_flow);
    for (uint32_t i = 0; i < flows; i++)
        f.component_of_flow[i] = f.component_of_link[pruned->link[pruned->link_begin[i]]];
    index_init(&f.flows, f.component_of_flow, flows, links);
    f.keep = heap_zalloc(flows + 1u, sizeof *f.keep);
    f.stand_in = heap_alloc(links + 1u, sizeof *f.stand_in);
    fold->bytes_per_s = heap_alloc(links + 1u, sizeof *fold->bytes_per_s);
    for (uint32_t l = 0; l < links; l++) {
        f.stand_in[l] = l;
        fold->bytes_per_s[l] = plan->platform.bytes_per_s[l];
    }
    choose_components(&f, fold);
    choose_flows(&f, fold);
    list_links(&f, fold);
    list_flows(fold, plan, f.keep);
    index_release(&f.flows);
    free(f.component_of_link);
    free(f.component_of_flow);
    free(f.chosen);
    free(f.keep);
    free(f.stand_in);
}

#include "sim/traffic/fold_flows.h"
#include "sim/traffic/index.h"

#include "schedule/ir/disjoint_sets.h"

#include <stdlib.h>

/* ---- components ---- */

/* Returns the component of each link, named by the lowest link that it reaches through flows. */
static uint32_t *find_component_of_each_link(const struct traffic *traffic,
                                             const struct pruned *pruned)
{
    uint32_t links = traffic->platform.link_count;
    uint32_t *parent = roots_make(links);
    for (uint32_t f = 0; f < traffic->flows.flow_count; f++)
        for (uint32_t i = pruned->link_begin[f] + 1; i < pruned->link_begin[f + 1]; i++)
            join_sets_of_two(parent, pruned->link[i - 1], pruned->link[i]);
    for (uint32_t l = 0; l < links; l++)
        parent[l] = root_of(parent, l);
    return parent;
}

struct flow_fold_maker {
    const struct traffic *traffic;
    const struct pruned *pruned;
    const struct flow_and_link_classes *network;
    uint32_t *component_of_link, *component_of_flow;
    struct index flows_of_component; /* the flows of each component */
    struct index flows_of_link;      /* the flows that cross each link */
    bool *is_chosen;                 /* [components] the component is simulated */
    /* [flow count] number of copies of each flow that are simulated */
    uint32_t *simulated_copies_by_flow;
    /* [link count] the link that takes the place of each link in the simulated network */
    uint32_t *replacement_by_link;
};

/* Marks the components to simulate: enough that every class of flows has a flow in a marked component. */
static void choose_simulated_components(struct flow_fold_maker *f, const struct fold *fold)
{
    const struct traffic *traffic = f->traffic;
    bool *covered = heap_zalloc(f->network->flow_classes + 1u, sizeof *covered);
    f->is_chosen = heap_zalloc(traffic->platform.link_count + 1u, sizeof *f->is_chosen);
    for (uint32_t t = 0; t < traffic->transfer_count; t++) {
        const struct transfer *of = &traffic->transfer[t];
        if (fold_representative_transfer(fold, traffic, t) != t)
            continue;
        for (uint32_t i = of->flow_begin; i < of->flow_begin + of->flow_count; i++) {
            uint32_t component = f->component_of_flow[i];
            if (covered[f->network->class_of_flow[i]])
                continue;
            f->is_chosen[component] = true;
            for (uint32_t j = f->flows_of_component.begin[component];
                 j < f->flows_of_component.begin[component + 1]; j++)
                covered[f->network->class_of_flow[f->flows_of_component.value[j]]] = true;
        }
    }
    free(covered);
}

/* ---- quotients ---- */

/* A positive fraction in lowest terms; 0/0: not known yet. */
struct fraction {
    uint64_t numerator, denominator;
};

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Returns number / r. */
static struct fraction divide_by_fraction(uint64_t number, struct fraction r)
{
    uint64_t over = number * r.denominator, common = greatest_common_divisor(over, r.numerator);
    return (struct fraction){over / common, r.numerator / common};
}

/* n(L, F): how many flows of class F = `flow` cross each link of class L = `link`. */
struct flow_count_of_class_on_link {
    uint32_t link, flow, count;
};

/* The numbers from which the network that replaces one component is made (fold_flows.h, "Quotient"), and scratch arrays
 * that are indexed by class. */
struct class_network {
    /* [count] an entry for each class of links and each class of flows on these links */
    struct flow_count_of_class_on_link *entry;
    size_t count, capacity;
    struct fraction *link_factor, *flow_factor; /* s(L) [link_classes], k(F) [flow_classes] */
    uint32_t *first_link_by_class;              /* [link_classes] the first link of each class */
    /* [flow_classes] flows_of_class: number of flows of each class in the component; flows_on_link: how many of them
     * cross one link */
    uint32_t *flows_of_class, *flows_on_link;
    /* the factor that makes all k(F) whole numbers */
    uint64_t common_denominator_of_copies;
};

static void class_network_init(struct class_network *q, const struct flow_and_link_classes *network)
{
    *q = (struct class_network){0};
    q->link_factor = heap_zalloc(network->link_classes + 1u, sizeof *q->link_factor);
    q->flow_factor = heap_zalloc(network->flow_classes + 1u, sizeof *q->flow_factor);
    q->first_link_by_class = ir_new_empty_ids(network->link_classes + 1u);
    q->flows_of_class = heap_zalloc(network->flow_classes + 1u, sizeof *q->flows_of_class);
    q->flows_on_link = heap_zalloc(network->flow_classes + 1u, sizeof *q->flows_on_link);
}

/* Appends to q->entry, for each class of flows that cross the link, how many of them do. */
static void add_flow_class_counts_of_link(struct flow_fold_maker *f, struct class_network *q,
                                          uint32_t link)
{
    uint32_t begin = f->flows_of_link.begin[link], end = f->flows_of_link.begin[link + 1];
    for (uint32_t u = begin; u < end; u++)
        q->flows_on_link[f->network->class_of_flow[f->flows_of_link.value[u]]]++;
    for (uint32_t u = begin; u < end; u++) {
        uint32_t flow = f->network->class_of_flow[f->flows_of_link.value[u]];
        if (q->flows_on_link[flow] == 0)
            continue;
        q->entry = heap_grow(q->entry, &q->capacity, q->count + 1, sizeof *q->entry);
        q->entry[q->count++] = (struct flow_count_of_class_on_link){f->network->class_of_link[link],
                                                                    flow, q->flows_on_link[flow]};
        q->flows_on_link[flow] = 0;
    }
}

/* True if products with the ratio cannot overflow. Ratios of symmetric clusters are far smaller than RATIO_MAX. */
static bool is_small(struct fraction r)
{
    enum { RATIO_MAX = 1 << 20 };
    return r.numerator <= RATIO_MAX && r.denominator <= RATIO_MAX;
}

/* Finds factors s(L) and k(F) with n(L, F) = s(L) k(F) for all entries: it sets one k to 1 and follows entries that
 * share a class. Returns false if there are no such factors, or if a ratio is too large for exact products. */
static bool factor_flow_counts(struct class_network *q)
{
    q->flow_factor[q->entry[0].flow] = (struct fraction){1, 1};
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < q->count; i++) {
            struct flow_count_of_class_on_link e = q->entry[i];
            if (!is_small(q->link_factor[e.link]) || !is_small(q->flow_factor[e.flow]))
                return false;
            struct fraction *s = &q->link_factor[e.link], *k = &q->flow_factor[e.flow];
            if (k->denominator && !s->denominator) {
                *s = divide_by_fraction(e.count, *k);
                more = true;
            } else if (s->denominator && !k->denominator) {
                *k = divide_by_fraction(e.count, *s);
                more = true;
            }
        }
    }
    for (size_t i = 0; i < q->count; i++) {
        struct fraction s = q->link_factor[q->entry[i].link], k = q->flow_factor[q->entry[i].flow];
        if (s.numerator * k.numerator != q->entry[i].count * s.denominator * k.denominator)
            return false;
    }
    return true;
}

/* Sets common_denominator_of_copies so that all k(F) become whole. Returns false if it would exceed COPIES_MAX, or if a
 * class would run more copies than it has flows. */
static bool scale_copies_to_whole_numbers(struct class_network *q)
{
    enum { COPIES_MAX = 4096 };
    uint64_t scale = 1;
    for (size_t i = 0; i < q->count; i++) {
        struct fraction k = q->flow_factor[q->entry[i].flow];
        scale = scale / greatest_common_divisor(scale, k.denominator) * k.denominator;
        if (scale > COPIES_MAX)
            return false;
    }
    for (size_t i = 0; i < q->count; i++) {
        struct fraction k = q->flow_factor[q->entry[i].flow];
        if (k.numerator * (scale / k.denominator) > q->flows_of_class[q->entry[i].flow])
            return false;
    }
    q->common_denominator_of_copies = scale;
    return true;
}

/* Keeps one flow of each class F, of which common_denominator_of_copies * k(F) copies run, on one link of each class L,
 * whose bandwidth is multiplied by common_denominator_of_copies / s(L). If factor_flow_counts() or
 * scale_copies_to_whole_numbers() fails, it keeps all flows of the component. */
static void fold_component(struct flow_fold_maker *f, struct fold *fold, struct class_network *q,
                           const struct index *links_of_component, uint32_t component)
{
    const struct flow_and_link_classes *network = f->network;
    q->count = 0;
    for (uint32_t i = links_of_component->begin[component];
         i < links_of_component->begin[component + 1]; i++) {
        uint32_t link = links_of_component->value[i],
                 *first = &q->first_link_by_class[network->class_of_link[link]];
        if (*first == IR_NONE) {
            *first = link;
            add_flow_class_counts_of_link(f, q, link);
        }
    }
    for (uint32_t i = f->flows_of_component.begin[component];
         i < f->flows_of_component.begin[component + 1]; i++)
        q->flows_of_class[network->class_of_flow[f->flows_of_component.value[i]]]++;
    bool factors = factor_flow_counts(q) && scale_copies_to_whole_numbers(q);
    for (uint32_t i = links_of_component->begin[component];
         factors && i < links_of_component->begin[component + 1]; i++) {
        uint32_t link = links_of_component->value[i], class = network->class_of_link[link];
        struct fraction s = q->link_factor[class];
        f->replacement_by_link[link] = q->first_link_by_class[class];
        if (link == q->first_link_by_class
                        [class]) /* common_denominator_of_copies * k(F) copies run, not k(F) */
            fold->bytes_per_s[link] *=
                (double)(s.denominator * q->common_denominator_of_copies) / (double)s.numerator;
    }
    for (uint32_t i = f->flows_of_component.begin[component];
         i < f->flows_of_component.begin[component + 1]; i++) {
        uint32_t flow = f->flows_of_component.value[i], class = network->class_of_flow[flow];
        struct fraction k = q->flow_factor[class];
        bool first = q->flows_of_class[class] > 0;
        f->simulated_copies_by_flow[flow] =
            !factors ? 1
            : first  ? (uint32_t)(k.numerator * (q->common_denominator_of_copies / k.denominator))
                     : 0;
        q->flows_of_class[class] = 0;
    }
    for (size_t i = 0; i < q->count; i++) {
        q->flow_factor[q->entry[i].flow] = (struct fraction){0, 0};
        q->link_factor[q->entry[i].link] = (struct fraction){0, 0};
        q->first_link_by_class[q->entry[i].link] = IR_NONE;
    }
}

/* Sets simulated_copies_by_flow[], replacement_by_link[] and the bandwidths of links in *fold. */
static void choose_kept_flows(struct flow_fold_maker *f, struct fold *fold)
{
    const uint32_t *link_begin = f->pruned->link_begin;
    uint32_t flows = f->traffic->flows.flow_count, links = f->traffic->platform.link_count;
    struct index links_of_component;
    struct class_network class_network_of_component;
    f->component_of_link = find_component_of_each_link(f->traffic, f->pruned);
    f->component_of_flow = heap_alloc(flows + 1u, sizeof *f->component_of_flow);
    for (uint32_t i = 0; i < flows; i++)
        f->component_of_flow[i] = f->component_of_link[f->pruned->link[link_begin[i]]];
    index_init(&f->flows_of_component, f->component_of_flow, NULL, flows, links);
    index_init(&links_of_component, f->component_of_link, NULL, links, links);
    index_flows_by_link(&f->flows_of_link, link_begin, f->pruned->link, flows, links);
    class_network_init(&class_network_of_component, f->network);
    choose_simulated_components(f, fold);
    for (uint32_t c = 0; c < links; c++)
        if (f->is_chosen[c])
            fold_component(f, fold, &class_network_of_component, &links_of_component, c);
    free(class_network_of_component.entry);
    free(class_network_of_component.link_factor);
    free(class_network_of_component.flow_factor);
    free(class_network_of_component.first_link_by_class);
    free(class_network_of_component.flows_of_class);
    free(class_network_of_component.flows_on_link);
    index_release(&links_of_component);
    index_release(&f->flows_of_link);
    index_release(&f->flows_of_component);
    free(f->component_of_link);
    free(f->component_of_flow);
    free(f->is_chosen);
}

/* ---- the lists that the scheduler reads ---- */

/* Lists the links that each kept flow crosses, each link once. */
static void list_links_of_kept_flows(struct flow_fold_maker *f, struct fold *fold)
{
    uint32_t flows = f->traffic->flows.flow_count, filled = 0;
    uint32_t *last_flow = heap_zalloc(f->traffic->platform.link_count + 1u, sizeof *last_flow);
    fold->link_begin = heap_alloc(flows + 1u, sizeof *fold->link_begin);
    fold->link = heap_alloc(f->pruned->link_begin[flows] + 1u, sizeof *fold->link);
    for (uint32_t i = 0; i < flows; i++) {
        fold->link_begin[i] = filled;
        for (uint32_t e = f->pruned->link_begin[i];
             f->simulated_copies_by_flow[i] > 0 && e < f->pruned->link_begin[i + 1]; e++) {
            uint32_t link = f->replacement_by_link[f->pruned->link[e]];
            if (last_flow[link] != i + 1)
                fold->link[filled++] = link;
            last_flow[link] = i + 1;
        }
    }
    fold->link_begin[flows] = filled;
    free(last_flow);
}

/* Lists the kept flows of each transfer, each flow as often as copies of it run. All go under the transfer at the
 * lowest channel of the channel class. */
static void list_kept_flows(struct fold *fold, const struct traffic *traffic,
                            const uint32_t *simulated_copies_by_flow)
{
    uint32_t total = 0, filled = 0;
    for (uint32_t i = 0; i < traffic->flows.flow_count; i++)
        total += simulated_copies_by_flow[i];
    uint32_t *key = heap_alloc(total + 1u, sizeof *key), *id = heap_alloc(total + 1u, sizeof *id);
    for (uint32_t t = 0; t < traffic->transfer_count; t++) {
        const struct transfer *of = &traffic->transfer[t];
        for (uint32_t i = of->flow_begin; i < of->flow_begin + of->flow_count; i++)
            for (uint32_t copy = 0; copy < simulated_copies_by_flow[i]; copy++) {
                key[filled] = fold_representative_transfer(fold, traffic, t);
                id[filled++] = i;
            }
    }
    struct index index;
    index_init(&index, key, id, filled, traffic->transfer_count);
    fold->flow_begin_by_transfer = index.begin;
    fold->flow = index.value;
    free(key);
    free(id);
}

void fold_flows(struct fold *fold, const struct traffic *traffic, const struct pruned *pruned,
                const struct flow_and_link_classes *network)
{
    uint32_t flows = traffic->flows.flow_count, links = traffic->platform.link_count;
    struct flow_fold_maker f = {.traffic = traffic, .pruned = pruned, .network = network};
    f.simulated_copies_by_flow = heap_alloc(flows + 1u, sizeof *f.simulated_copies_by_flow);
    f.replacement_by_link = heap_alloc(links + 1u, sizeof *f.replacement_by_link);
    fold->bytes_per_s = heap_alloc(links + 1u, sizeof *fold->bytes_per_s);
    for (uint32_t i = 0; i < flows; i++)
        f.simulated_copies_by_flow[i] = network == NULL;
    for (uint32_t l = 0; l < links; l++) {
        f.replacement_by_link[l] = l;
        fold->bytes_per_s[l] = traffic->platform.bytes_per_s[l];
    }
    if (network != NULL)
        choose_kept_flows(&f, fold);
    list_links_of_kept_flows(&f, fold);
    list_kept_flows(fold, traffic, f.simulated_copies_by_flow);
    free(f.simulated_copies_by_flow);
    free(f.replacement_by_link);
}

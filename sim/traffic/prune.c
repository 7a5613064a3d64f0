#include "sim/traffic/prune.h"

#include "base/arena.h"
#include "sim/traffic/index.h"

#include <assert.h>
#include <stdlib.h>

void prune_release(struct pruned *pruned)
{
    free(pruned->link_begin);
    free(pruned->link);
    *pruned = (struct pruned){0};
}

/* True if every flow that crosses link a crosses link b, too. Both lists of flows ascend. */
static bool is_always_crossed_with(const struct index *flows_by_link, uint32_t a, uint32_t b)
{
    uint32_t in_b = flows_by_link->begin[b], end_b = flows_by_link->begin[b + 1];
    for (uint32_t in_a = flows_by_link->begin[a]; in_a < flows_by_link->begin[a + 1];
         in_a++, in_b++) {
        while (in_b < end_b && flows_by_link->value[in_b] < flows_by_link->value[in_a])
            in_b++;
        if (in_b == end_b || flows_by_link->value[in_b] != flows_by_link->value[in_a])
            return false;
    }
    return true;
}

/* True if link a can be omitted, because all its flows also cross another link with at most its bandwidth. Such a link
 * is on the path of a's first flow, so only that path is searched. Of links with the same flows and the same bandwidth,
 * only the first is kept. */
static bool link_can_be_omitted(const struct platform *platform, const struct flow_table *flows,
                                const struct index *flows_by_link, uint32_t a)
{
    uint32_t count = flows_by_link->begin[a + 1] - flows_by_link->begin[a];
    double width = platform->bytes_per_s[a];
    if (count == 0)
        return false;
    uint32_t first = flows_by_link->value[flows_by_link->begin[a]];
    for (uint32_t i = flows->link_begin[first]; i < flows->link_begin[first + 1]; i++) {
        uint32_t b = flows->link[i], more = flows_by_link->begin[b + 1] - flows_by_link->begin[b];
        if (b == a || more < count || platform->bytes_per_s[b] > width)
            continue;
        if ((platform->bytes_per_s[b] < width || more > count || b < a) &&
            is_always_crossed_with(flows_by_link, a, b))
            return true;
    }
    return false;
}

void prune_make(struct pruned *pruned, const struct platform *platform,
                const struct flow_table *flows)
{
    struct index flows_by_link;
    index_flows_by_link(&flows_by_link, flows->link_begin, flows->link, flows->flow_count,
                        platform->link_count);
    bool *drop = heap_zalloc(platform->link_count + 1u, sizeof *drop);
    for (uint32_t l = 0; l < platform->link_count; l++)
        drop[l] = link_can_be_omitted(platform, flows, &flows_by_link, l);
    pruned->link_begin = heap_alloc(flows->flow_count + 1u, sizeof *pruned->link_begin);
    pruned->link = heap_alloc(flows->link_count + 1u, sizeof *pruned->link);
    uint32_t count = 0;
    for (uint32_t f = 0; f < flows->flow_count; f++) {
        pruned->link_begin[f] = count;
        for (uint32_t i = flows->link_begin[f]; i < flows->link_begin[f + 1]; i++)
            if (!drop[flows->link[i]])
                pruned->link[count++] = flows->link[i];
        assert(count > pruned->link_begin[f]);
    }
    pruned->link_begin[flows->flow_count] = count;
    index_release(&flows_by_link);
    free(drop);
}

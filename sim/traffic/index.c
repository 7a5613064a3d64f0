#include "sim/traffic/index.h"

#include "base/arena.h"

#include <stdlib.h>

void index_init(struct index *index, const uint32_t *key, const uint32_t *value, uint32_t pairs,
                uint32_t keys)
{
    index->begin = heap_zalloc(keys + 2u, sizeof *index->begin);
    index->value = heap_alloc(pairs + 1u, sizeof *index->value);
    for (uint32_t i = 0; i < pairs; i++)
        index->begin[key[i] + 2]++;
    for (uint32_t k = 0; k < keys; k++)
        index->begin[k + 2] += index->begin[k + 1];
    for (uint32_t i = 0; i < pairs; i++)
        index->value[index->begin[key[i] + 1]++] = value != NULL ? value[i] : i;
}

void index_flows_by_link(struct index *index, const uint32_t *link_begin, const uint32_t *link,
                         uint32_t flows, uint32_t links)
{
    uint32_t crossings = flows > 0 ? link_begin[flows] : 0;
    uint32_t *flow = heap_alloc(crossings + 1u, sizeof *flow);
    for (uint32_t f = 0; f < flows; f++)
        for (uint32_t i = link_begin[f]; i < link_begin[f + 1]; i++)
            flow[i] = f;
    index_init(index, link, flow, crossings, links);
    free(flow);
}

void index_release(struct index *index)
{
    free(index->begin);
    free(index->value);
}

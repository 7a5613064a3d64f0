/* sim/plan/index.h: rows of a table by key. */
#ifndef SIM_INDEX_H
#define SIM_INDEX_H

#include <stdint.h>

/* For each key in [0, keys), the rows that have it: row[begin[key]..begin[key + 1]), ascending. */
struct index {
    uint32_t *begin, *row;
};

/* key: [rows]. Release in any case. */
void index_init(struct index *index, const uint32_t *key, uint32_t rows, uint32_t keys);

/* The flows that cross each link: of flow f, link[link_begin[f]..link_begin[f + 1]), no link twice. */
void index_flows(struct index *index, const uint32_t *link_begin, const uint32_t *link,
                 uint32_t flows, uint32_t links);
void index_release(struct index *index);

#endif

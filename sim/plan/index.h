/* sim/plan/index.h: an index of a table: for each key, the rows that have it. */
#ifndef SIM_INDEX_H
#define SIM_INDEX_H

#include <stdint.h>

/* For each key in [0, keys), the rows that have it: row[begin[key]..begin[key + 1]), ascending. */
struct index {
    uint32_t *begin, *row;
};

/* Makes the index of a table whose row r has the key key[r], r < rows. Release it in any case. */
void index_init(struct index *index, const uint32_t *key, uint32_t rows, uint32_t keys);

/* Makes the index of the flows that cross each link. Flow f crosses link[link_begin[f]..link_begin[f + 1]), no link
 * twice. */
void index_flows(struct index *index, const uint32_t *link_begin, const uint32_t *link,
                 uint32_t flows, uint32_t links);
void index_release(struct index *index);

#endif

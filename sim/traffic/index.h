/* sim/traffic/index.h: an index of pairs of a key and a value: for each key, the values that it is paired with. */
#ifndef SIM_INDEX_H
#define SIM_INDEX_H

#include <stdint.h>

/* Pairs of a key and a value, by key: those of key k are value[begin[k]..begin[k + 1]), in the order in which they were
 * given. */
struct index {
    uint32_t *begin, *value;
};

/* Makes the index of the pairs (key[i], value[i]), i < pairs. value NULL: value i is i. Release it in any case. */
void index_init(struct index *index, const uint32_t *key, const uint32_t *value, uint32_t pairs,
                uint32_t keys);

/* Makes the index of flows by link. Flow f crosses link[link_begin[f]..link_begin[f + 1]), and no link twice. */
void index_flows_by_link(struct index *index, const uint32_t *link_begin, const uint32_t *link,
                         uint32_t flows, uint32_t links);
void index_release(struct index *index);

#endif

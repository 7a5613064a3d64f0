/* schedule/ir/id_map.h: a hash table that maps keys stored in a table to their rows.
 *
 * It uses open addressing. A slot keeps a row and 32 bits of the hash of its key, so the map grows without reading
 * keys. The caller compares keys: each row that id_map_next_row_with_hash() gives has a key with this hash, which may
 * be another key.
 *
 *     for (struct id_probe p = id_map_begin_probe(&map, hash); id_map_next_row_with_hash(&map, &p);)
 *         if (table[p.row].key == key)
 *             return p.row;
 *     id_map_add(&map, hash, new_row);
 *
 * All-zero is an empty map. */
#ifndef SCHEDULE_ID_MAP_H
#define SCHEDULE_ID_MAP_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct id_slot {
    uint32_t row; /* UINT32_MAX: free */
    uint32_t hash;
};

struct id_map {
    struct id_slot *slot;
    uint32_t count, capacity; /* capacity: 0 or a power of two */
};

struct id_probe {
    uint32_t row;
    uint32_t hash, slot;
};

/* Returns the hash of a sequence of words. hash: the hash of all words but the last; word: the last one. Both halves of
 * the result depend on all words. */
static inline uint64_t hash_word(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static inline uint64_t hash_text(const char *text, size_t size)
{
    uint64_t hash = size, word;
    for (; size >= 8; text += 8, size -= 8) {
        memcpy(&word, text, 8);
        hash = hash_word(hash, word);
    }
    word = 0;
    for (size_t i = 0; i < size; i++)
        word = word << 8 | (unsigned char)text[i];
    return hash_word(hash, word);
}

static inline uint32_t hash_fold_to_32_bits(uint64_t hash)
{
    return (uint32_t)(hash >> 32);
}

static inline struct id_probe id_map_begin_probe(const struct id_map *map, uint64_t hash)
{
    uint32_t folded = hash_fold_to_32_bits(hash);
    return (struct id_probe){.hash = folded,
                             .slot = map->capacity ? folded & (map->capacity - 1) : 0};
}

/* Sets probe->row to the next row whose key has this hash; returns false if there is none. */
static inline bool id_map_next_row_with_hash(const struct id_map *map, struct id_probe *probe)
{
    if (map->capacity == 0)
        return false;
    for (;;) {
        struct id_slot slot = map->slot[probe->slot];
        if (slot.row == UINT32_MAX)
            return false;
        probe->slot = (probe->slot + 1) & (map->capacity - 1);
        if (slot.hash == probe->hash) {
            probe->row = slot.row;
            return true;
        }
    }
}

static inline void id_map_insert(struct id_map *map, struct id_slot new)
{
    uint32_t at = new.hash &(map->capacity - 1);
    while (map->slot[at].row != UINT32_MAX)
        at = (at + 1) & (map->capacity - 1);
    map->slot[at] = new;
}

static inline void id_map_add(struct id_map *map, uint64_t hash, uint32_t row)
{
    if (map->count >= map->capacity / 2) {
        struct id_map old = *map;
        map->capacity = old.capacity ? 2 * old.capacity : 64;
        map->slot = heap_alloc(map->capacity, sizeof *map->slot);
        memset(map->slot, 0xff, (size_t)map->capacity * sizeof *map->slot);
        for (uint32_t i = 0; i < old.capacity; i++)
            if (old.slot[i].row != UINT32_MAX)
                id_map_insert(map, old.slot[i]);
        free(old.slot);
    }
    id_map_insert(map, (struct id_slot){.row = row, .hash = hash_fold_to_32_bits(hash)});
    map->count++;
}

static inline void id_map_release(struct id_map *map)
{
    free(map->slot);
    *map = (struct id_map){0};
}

#endif

#include "sim/prune.h"

#include "base/arena.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void prune_release(struct pruned *pruned)
{
    free(pruned->link_begin);
    free(pruned->link);
    *pruned = (struct pruned){0};
}

/* The flows that cross each link: user[begin[link]..begin[link + 1]). */
struct users {
    uint32_t *begin, *user;
};

static void users_init(struct users *users, const struct platform *platform,
                       const struct flow_table *flows)
{
    users->begin = heap_zalloc(platform->link_count + 2u, sizeof *users->begin);
    users->user = heap_alloc(flows->link_count + 1u, sizeof *users->user);
    uint32_t *begin = users->begin + 1; /* shifted by one row until the rows are filled */
    for (uint32_t i = 0; i < flows->link_count; i++)
        begin[flows->link[i] + 1]++;
    for (uint32_t l = 0; l < platform->link_count; l++)
        begin[l + 1] += begin[l];
    memmove(users->begin, begin, (platform->link_count + 1u) * sizeof *begin);
    uint32_t *next = heap_alloc(platform->link_count + 1u, sizeof *next);
    memcpy(next, users->begin, (platform->link_count + 1u) * sizeof *next);
    for (uint32_t f = 0; f < flows->count; f++)
        for (uint32_t i = flows->link_begin[f]; i < flows->link_begin[f + 1]; i++)
            users->user[next[flows->link[i]]++] = f;
    free(next);
}

/* Does some link take A's place? Counts, for every link, how many of A's flows cross it too: those
 * that all do are candidates. Of links with the same flows and width, the first stays. */
static bool is_dominated(const struct platform *platform, const struct flow_table *flows,
                         const struct users *users, uint32_t a, uint32_t *seen)
{
    uint32_t begin = users->begin[a], end = users->begin[a + 1], wanted = end - begin;
    double width = platform->bytes_per_s[a];
    bool dominated = false;
    for (uint32_t u = begin; u < end; u++) {
        uint32_t f = users->user[u];
        for (uint32_t i = flows->link_begin[f]; i < flows->link_begin[f + 1]; i++)
            seen[flows->link[i]]++;
    }
    for (uint32_t u = begin; u < end; u++) {
        uint32_t f = users->user[u];
        for (uint32_t i = flows->link_begin[f]; i < flows->link_begin[f + 1]; i++) {
            uint32_t b = flows->link[i];
            uint32_t more = users->begin[b + 1] - users->begin[b];
            if (b != a && seen[b] == wanted &&
                (platform->bytes_per_s[b] < width ||
                 (platform->bytes_per_s[b] == width && (more > wanted || b < a))))
                dominated = true;
            seen[b] = 0;
        }
    }
    return dominated;
}

void prune_make(struct pruned *pruned, const struct platform *platform,
                const struct flow_table *flows)
{
    struct users users;
    users_init(&users, platform, flows);
    uint32_t *seen = heap_zalloc(platform->link_count + 1u, sizeof *seen);
    bool *drop = heap_zalloc(platform->link_count + 1u, sizeof *drop);
    for (uint32_t l = 0; l < platform->link_count; l++)
        drop[l] = is_dominated(platform, flows, &users, l, seen);
    pruned->link_begin = heap_alloc(flows->count + 1u, sizeof *pruned->link_begin);
    pruned->link = heap_alloc(flows->link_count + 1u, sizeof *pruned->link);
    uint32_t count = 0;
    for (uint32_t f = 0; f < flows->count; f++) {
        pruned->link_begin[f] = count;
        for (uint32_t i = flows->link_begin[f]; i < flows->link_begin[f + 1]; i++)
            if (!drop[flows->link[i]])
                pruned->link[count++] = flows->link[i];
        assert(count > pruned->link_begin[f]);
    }
    pruned->link_begin[flows->count] = count;
    free(users.begin);
    free(users.user);
    free(seen);
    free(drop);
}

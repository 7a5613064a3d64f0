#include "schedule/ir/routing.h"

#include "base/ascending.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void routing_init(struct routing *r, struct arena *arena, uint32_t experts, uint32_t copies,
                  uint32_t layers)
{
    assert(experts > 0 && copies > 0 && copies <= experts);
    *r = (struct routing){.experts = experts, .copies = copies, .layers = layers};
    r->share = arena_array(arena, layers + 1u, sizeof *r->share);
    r->list_of = arena_array(arena, layers + 1u, sizeof *r->list_of);
    for (uint32_t l = 0; l < layers; l++)
        r->list_of[l] = ROUTING_NONE;
}

void routing_init_even(struct routing *r, struct arena *arena, uint32_t experts, uint32_t copies,
                       uint32_t layers)
{
    int64_t *share = heap_alloc(experts, sizeof *share);
    for (uint32_t e = 0; e < experts; e++)
        share[e] = 1;
    routing_init(r, arena, experts, copies, layers);
    for (uint32_t l = 0; l < layers; l++)
        routing_set(r, arena, l, share);
    free(share);
}

void routing_set(struct routing *r, struct arena *arena, uint32_t layer, const int64_t *share)
{
    const size_t bytes = r->experts * sizeof *share;
    uint32_t list = 0;
    assert(layer < r->layers);
    while (list < r->list_count && memcmp(r->share[list], share, bytes) != 0)
        list++;
    if (list == r->list_count) {
        int64_t *copy = arena_array(arena, r->experts, sizeof *copy);
        memcpy(copy, share, bytes);
        r->share[r->list_count++] = copy;
    }
    r->list_of[layer] = list;
}

void routing_copy(struct routing *to, struct arena *arena, const struct routing *from)
{
    if (from->experts == 0) {
        *to = (struct routing){0};
        return;
    }
    routing_init(to, arena, from->experts, from->copies, from->layers);
    for (uint32_t l = 0; l < from->layers; l++)
        if (from->list_of[l] != ROUTING_NONE)
            routing_set(to, arena, l, from->share[from->list_of[l]]);
}

/* Returns the sum of the shares of experts that are not full; 0: all of these have share 0. */
static int64_t sum_of_shares(const int64_t *share, const int64_t *count, int64_t full, uint32_t n)
{
    int64_t sum = 0;
    for (uint32_t e = 0; e < n; e++)
        sum += count[e] == full ? 0 : share[e];
    return sum;
}

void routing_counts(const struct routing *r, uint32_t list, int64_t rows, int64_t *count)
{
    const int64_t *share = r->share[list];
    int64_t left = rows * r->copies, sum, *rest = heap_zalloc(r->experts, sizeof *rest);
    bool again = true;
    memset(count, 0, r->experts * sizeof *count);
    /* an expert whose part is more than all tokens takes them all, and the others share what is left */
    while (again) {
        again = false;
        sum = sum_of_shares(share, count, rows, r->experts);
        for (uint32_t e = 0; e < r->experts && sum > 0; e++)
            if (count[e] < rows &&
                share[e] * (left / sum) + share[e] * (left % sum) / sum >= rows) {
                count[e] = rows;
                again = true;
            }
        left = rows * r->copies;
        for (uint32_t e = 0; e < r->experts; e++)
            left -= count[e];
    }
    const int64_t all = left;
    for (uint32_t e = 0; e < r->experts && sum > 0; e++)
        if (count[e] < rows) {
            const int64_t part = share[e] * (all % sum);
            count[e] = share[e] * (all / sum) + part / sum;
            rest[e] = part % sum;
            left -= count[e];
        }
    if (sum == 0 &&
        left > 0) { /* experts of share 0 take in equal parts what the others have no room for */
        int64_t open = 0;
        for (uint32_t e = 0; e < r->experts; e++)
            open += count[e] < rows;
        const int64_t each = left / open;
        for (uint32_t e = 0; e < r->experts; e++)
            if (count[e] < rows) {
                count[e] = each;
                left -= each;
            }
    }
    /* largest remainders first */
    while (left > 0) {
        uint32_t most = r->experts;
        for (uint32_t e = 0; e < r->experts; e++)
            if (count[e] < rows && (most == r->experts || rest[e] > rest[most]))
                most = e;
        count[most]++;
        rest[most] = -1 - count[most];
        left--;
    }
    free(rest);
}

struct routing_fullest routing_find_fullest(const struct routing *r, uint32_t list, int64_t rows,
                                            uint32_t ranks)
{
    const uint32_t own = r->experts / ranks;
    int64_t *count = heap_zalloc(r->experts, sizeof *count);
    int64_t *of_rank = heap_zalloc(ranks, sizeof *of_rank);
    struct routing_fullest fullest = {0};
    routing_counts(r, list, rows, count);
    for (uint32_t e = 0; e < own * ranks; e++)
        of_rank[e / own] += count[e];
    for (uint32_t k = 0; k < ranks; k++)
        fullest.rank = of_rank[k] > of_rank[fullest.rank] ? k : fullest.rank;
    fullest.copies = of_rank[fullest.rank];
    qsort(of_rank, ranks, sizeof *of_rank, ascending_i64);
    fullest.median = of_rank[ranks / 2];
    free(of_rank);
    free(count);
    return fullest;
}

/* Returns the rows for which the work has room, of those that depend on the rank; 0: it has none. */
static int64_t room_of(const struct work *work)
{
    switch ((enum work_kind)work->kind) {
    case WORK_MATMUL:
        return work->matmul.form == MATMUL_TN ? work->matmul.k : work->matmul.m;
    case WORK_COLUMN_SUM:
        return work->column_sum.rows;
    case WORK_QUANTISE:
        return work->quantise.rows;
    case WORK_SWIGLU:
    case WORK_SWIGLU_BACKWARD:
        return work->activation.rows;
    case WORK_PACK:
    case WORK_UNPACK:
        return work->pack.rows;
    default:
        return 0;
    }
}

const char *routing_unfit(const struct routing *r, const struct work *work, uint32_t group,
                          uint32_t ranks)
{
    const int64_t list = work_route(work), dealt = work_dealt(work);
    if (list < 0)
        return NULL;
    if (list >= r->list_count)
        return "its route is no list of a routing line";
    if (dealt < 1 || dealt % r->copies != 0 || dealt / r->copies > INT32_MAX)
        return "its dealt copies are no multiple of those of a token";
    if (r->experts % ranks != 0)
        return "the experts do not divide over the ranks of group ep";
    if (work->kind == WORK_ROUTE || work->kind == WORK_ROUTE_BACKWARD)
        return work->route.experts != r->experts || work->route.copies != r->copies
                   ? "its experts or copies are not those of the routing line"
                   : NULL;
    if ((work->kind == WORK_MATMUL || work->kind == WORK_COLUMN_SUM ||
         work->kind == WORK_QUANTISE) &&
        work_groups(work) != r->experts / ranks)
        return "its groups are not the experts of a rank";
    if ((work->kind == WORK_PACK || work->kind == WORK_UNPACK) &&
        (work->pack.parts != 1 || work->pack.w[1] != 0 || work->pack.w[2] != 0))
        return "it moves rows of experts in more than one part";
    if (work->kind == WORK_ALL_TO_ALL && (uint32_t)work->all_to_all.group != group)
        return "its group is not ep";
    if (work->kind == WORK_ALL_TO_ALL &&
        (work->all_to_all.ahead > 0) == (work->all_to_all.back > 0))
        return "it goes neither ahead nor back, or both";
    const struct routing_fullest fullest =
        routing_find_fullest(r, (uint32_t)list, dealt / r->copies, ranks);
    if (work->kind != WORK_ALL_TO_ALL && room_of(work) < fullest.copies * ranks)
        return "it has no room for the rows of the fullest rank";
    return NULL;
}

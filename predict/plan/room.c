#include "predict/plan/room.h"

#include "predict/bounds.h"
#include "predict/prediction.h"

#include <math.h>

bool room_fits_asked_probability(const struct setup *setup, const struct verdict *verdict)
{
    return verdict->fits && verdict->fits_probability >= setup->fits_probability;
}

/* Returns the probability that the memory `limit`, if it were larger by `share`, suffices for the bytes of a verdict,
 * without the allocator's cache. */
static double fits_probability_of_memory(enum limiting_memory_kind limit, const struct setup *setup,
                                         const struct choices *choices,
                                         const struct verdict *verdict, double share)
{
    double cache = limit == LIMIT_DEVICE ? (double)verdict->cache_bytes : 0;
    if (verdict->available_bytes[limit] == UINT64_MAX)
        return 1;
    return prediction_fits_probability(setup, choices, (double)verdict->needed_bytes[limit] - cache,
                                       (1 + share) * (double)verdict->available_bytes[limit]);
}

double room_fits_probability(const struct setup *setup, const struct choices *choices,
                             const struct verdict *verdict)
{
    return fmin(fits_probability_of_memory(LIMIT_DEVICE, setup, choices, verdict, 0),
                fits_probability_of_memory(LIMIT_HOST, setup, choices, verdict, 0));
}

bool room_lacks_memory(enum limiting_memory_kind limit, const struct setup *setup,
                       const struct choices *choices, const struct verdict *verdict, double share,
                       double odds)
{
    double needed = (double)verdict->needed_bytes[limit];
    double available = (1 + share) * (double)verdict->available_bytes[limit];
    if (verdict->available_bytes[limit] == UINT64_MAX)
        return false;
    if (needed > available || odds <= 0.5)
        return needed > available;
    return fits_probability_of_memory(limit, setup, choices, verdict, share) < odds;
}

bool room_surely_lacks_memory(const struct setup *setup, const struct choices *choices,
                              const struct verdict *verdict, double share, double odds)
{
    for (int limit = 0; limit < LIMIT_COUNT; limit++)
        if (room_lacks_memory((enum limiting_memory_kind)limit, setup, choices, verdict, share,
                              odds))
            return true;
    return false;
}

/* Returns bytes as a whole number, rounded down; 0 if they are negative, UINT64_MAX if they are not finite. */
static uint64_t round_down_to_bytes(double bytes)
{
    return isfinite(bytes) ? (bytes > 0 ? (uint64_t)bytes : 0) : UINT64_MAX;
}

static void fill_verdict_from_lower_bounds(struct verdict *v, const struct setup *setup,
                                           const struct choices *c)
{
    const struct cluster *cluster = &setup->cluster;
    double ranks_on_node = fmin((double)c->ranks, (double)cluster->gpus_per_node);
    double device =
        bound_state_bytes(setup, c) + bound_optimizer_bytes(c) + bound_saved_device_bytes(c);
    v->needed_bytes[LIMIT_DEVICE] = round_down_to_bytes(device);
    v->needed_bytes[LIMIT_HOST] = round_down_to_bytes(ranks_on_node * bound_saved_host_bytes(c));
    v->available_bytes[LIMIT_DEVICE] =
        round_down_to_bytes(cluster->device.memory_bytes - cluster->device.driver_bytes);
    v->available_bytes[LIMIT_HOST] =
        round_down_to_bytes(cluster->host.memory_bytes - cluster->host.os_reserved_bytes);
    v->limiting_memory = verdict_needed_share(v, LIMIT_HOST) > verdict_needed_share(v, LIMIT_DEVICE)
                             ? LIMIT_HOST
                             : LIMIT_DEVICE;
    v->fits = !room_surely_lacks_memory(setup, c, v, 0, 0.5);
}

bool room_bound_lacks_memory(struct verdict *verdict, const struct setup *setup,
                             const struct request *request, double odds)
{
    struct resolved resolved;
    bool made = resolved_make(&resolved, setup, request, NULL, NULL) == STATUS_OK;
    *verdict = (struct verdict){0};
    if (made)
        fill_verdict_from_lower_bounds(verdict, setup, &resolved.choices);
    bool lacks = made && room_surely_lacks_memory(setup, &resolved.choices, verdict, 0, odds);
    if (lacks)
        verdict->fits_probability = room_fits_probability(setup, &resolved.choices, verdict);
    resolved_release(&resolved);
    return lacks;
}

#include "sim/link_loads.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

enum { LINK_NAME_SIZE = 96 };

/* Returns on the heap the bytes that crossed each link. A channel that was not simulated carried as many bytes as the
 * simulated channel of its class. */
static double *sum_link_bytes(const struct child_run *run)
{
    const struct traffic *traffic = &run->traffic;
    const struct flow_table *flows = &traffic->flows;
    double *bytes = heap_zalloc(traffic->platform.link_count + 1u, sizeof *bytes);
    for (uint32_t t = 0; t < traffic->transfer_count; t++) {
        const struct transfer *of = &traffic->transfer[t];
        double done =
            (double)run->shared_memory->times
                .times_each_transfer_ended[fold_representative_transfer(&run->fold, traffic, t)];
        for (uint32_t f = of->flow_begin; f < of->flow_begin + of->flow_count; f++)
            for (uint32_t i = flows->link_begin[f]; i < flows->link_begin[f + 1]; i++)
                bytes[flows->link[i]] += done * flows->bytes[f];
    }
    return bytes;
}

/* Orders links that are equally busy: true if link a comes before link b, by owner, then by part, then by name. */
static bool is_named_before(const struct platform *platform, uint32_t a, uint32_t b)
{
    const struct platform_link *x = &platform->link[a], *y = &platform->link[b];
    char left[LINK_NAME_SIZE], right[LINK_NAME_SIZE];
    if (x->owner != y->owner || x->part != y->part)
        return x->owner != y->owner ? x->owner < y->owner : x->part < y->part;
    platform_link_name(platform, a, left, sizeof left);
    platform_link_name(platform, b, right, sizeof right);
    return strcmp(left, right) < 0;
}

void link_loads_fill(struct sim_result *result, const struct child_run *run)
{
    const struct platform *platform = &run->traffic.platform;
    double *bytes = sum_link_bytes(run), most = 0;
    uint32_t busiest = UINT32_MAX;
    result->loads_by_link =
        arena_array(&result->arena, platform->link_count, sizeof *result->loads_by_link);
    for (uint32_t l = 0; l < platform->link_count; l++) {
        uint8_t kind = platform->link[l].kind;
        if (bytes[l] == 0 || kind == LINK_RATE_CAP_OF_FLOW || kind == LINK_GPU_PROCESSORS ||
            kind == LINK_DEVICE_MEMORY)
            continue; /* processors, device memory and caps of flows are no parts of the machine that carry bytes */
        double busy = bytes[l] / (platform->bytes_per_s[l] * result->step_s);
        if (busy > most ||
            (busy == most && busiest != UINT32_MAX && is_named_before(platform, l, busiest))) {
            most = busy;
            busiest = l;
            result->busiest_load_row = result->link_load_count;
        }
        result->loads_by_link[result->link_load_count++] =
            (struct sim_link_load){kind, platform->bytes_per_s[l], bytes[l], busy};
    }
    if (busiest != UINT32_MAX) {
        char text[LINK_NAME_SIZE];
        size_t length = platform_link_name(platform, busiest, text, sizeof text);
        result->busiest_link_name = arena_text(&result->arena, text, length);
    }
    free(bytes);
}

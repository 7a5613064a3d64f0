/* Communication of ranks that share a GPU, as in exec/cuda/loopback.c.
 *
 * Each member's stream waits for all others, then fetches its own part from their buffers, by copies within device
 * memory or by one kernel that sums them, and continues when the others have fetched their parts. A copy reads and
 * writes each byte, so its time is that of the payload at loopback.bytes_per_s. The copies of members run at the same
 * time and share the memory bandwidth, also with kernels that memory limits. An op that reads r and writes w bytes
 * counts as (r + w) / 2 bytes of payload. A member's copies and its kernel start one after another, and each start
 * takes loopback.latency_s; the member with the most starts decides the latency. docs/simulation.md, "Ranks that share
 * a GPU". */
#include "sim/platform/collective.h"

#include <assert.h>

/* One second of uncontended use counts as this many bytes, so many that rounding to parts of a byte does not matter. */
const double device_time_per_s = 1e12;

/* The work of one member in a collective: the number of its copies, their bytes, and the bytes of its summing
 * kernel. */
struct loopback_member_work {
    double copy_count, copied_bytes, summed_bytes;
};

static struct loopback_member_work member_work_of_collective(const struct work *work,
                                                             uint32_t members, bool root)
{
    double n = members, bytes = (double)work_payload_bytes(work);
    switch ((enum work_kind)work->kind) {
    case WORK_ALL_TO_ALL:
        return (struct loopback_member_work){n, bytes, 0};
    case WORK_ALL_GATHER:
        return (struct loopback_member_work){n, n * bytes, 0};
    case WORK_REDUCE_SCATTER: /* n slices are read, one is written */
        return (struct loopback_member_work){0, 0, (bytes + bytes / n) / 2};
    case WORK_ALL_REDUCE: /* the reduce-scatter, after which every rank fetches the other slices */
        return (struct loopback_member_work){n - 1, (n - 1) / n * bytes, (bytes + bytes / n) / 2};
    case WORK_SCATTER: /* every rank, the root too, fetches its own part of the root's buffer */
        return (struct loopback_member_work){1, bytes / n, 0};
    case WORK_REDUCE: /* n buffers are read, one is written */
        return root ? (struct loopback_member_work){0, 0, (n * bytes + bytes) / 2}
                    : (struct loopback_member_work){0};
    case WORK_BROADCAST:
        return root ? (struct loopback_member_work){0} : (struct loopback_member_work){1, bytes, 0};
    default:
        assert(work->kind == WORK_SHIFT);
        return (struct loopback_member_work){1, bytes, 0};
    }
}

/* Returns the work of member i of an exchange: it copies its rows from each member that has some for it. */
static struct loopback_member_work member_work_of_exchange(const struct exchange_bytes *exchange,
                                                           uint32_t count, uint32_t i)
{
    struct loopback_member_work fetch = {0};
    for (uint32_t from = 0; from < count; from++) {
        double bytes = exchange->bytes_by_member_pair[(size_t)from * count + i];
        fetch.copied_bytes += bytes;
        fetch.copy_count += bytes > 0;
    }
    return fetch;
}

static void add_device_memory_flow(struct platform *platform, struct flow_table *flows,
                                   uint32_t rank, double bytes, bool kernel)
{
    uint32_t device = platform_lowest_rank_on_gpu(platform, rank);
    flow_open(flows, bytes / platform->cluster->loopback.bytes_per_s * device_time_per_s);
    if (kernel)
        route_add_link(platform, flows, LINK_GPU_PROCESSORS, device, 0, device_time_per_s);
    route_add_link(platform, flows, LINK_DEVICE_MEMORY, device, 0, device_time_per_s);
    flow_close(flows);
}

double loopback_add_collective_flows(struct platform *platform, struct flow_table *flows,
                                     const struct work *work, const uint32_t *member,
                                     uint32_t count, const struct exchange_bytes *exchange)
{
    double most = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool rooted = work->kind == WORK_BROADCAST || work->kind == WORK_REDUCE;
        bool root = rooted && i == (uint32_t)work->broadcast.root;
        struct loopback_member_work fetch = work->kind == WORK_EXCHANGE
                                                ? member_work_of_exchange(exchange, count, i)
                                                : member_work_of_collective(work, count, root);
        double starts = fetch.copy_count + (fetch.summed_bytes > 0);
        most = starts > most ? starts : most;
        add_device_memory_flow(platform, flows, member[i], fetch.copied_bytes, false);
        add_device_memory_flow(platform, flows, member[i], fetch.summed_bytes, true);
    }
    return most * platform->cluster->loopback.latency_s;
}

double loopback_add_message_flows(struct platform *platform, struct flow_table *flows, uint32_t to,
                                  double bytes)
{
    add_device_memory_flow(platform, flows, to, bytes, false);
    return platform->cluster->loopback.latency_s;
}

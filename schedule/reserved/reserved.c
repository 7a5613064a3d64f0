#include "schedule/reserved/reserved.h"

#include "base/arena.h"
#include "schedule/analysis/liveness.h"
#include "schedule/reserved/caching_allocator.h"
#include "schedule/reserved/replay.h"
#include "schedule/step/build.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

/* ---- constants ---- */

/* Bytes of the buffers of one connection on one channel, in each direction, as NCCL allocates them since version 2.19:
 * in pages of 2 MiB. */
#define NCCL_RECEIVE_BYTES_PER_CHANNEL (10 * MIB)
#define NCCL_SEND_BYTES_PER_CHANNEL (2 * MIB)
enum {
    NCCL_CHANNELS_IN_FABRIC = 24, /* for a communicator inside one fabric */
    /* connections per channel for all-gather, reduce-scatter and broadcast */
    NCCL_RING_CONNS_PER_CHANNEL = 1,
    /* connections per channel if there are all-reduces: one of the ring, and two of the tree, up and down */
    NCCL_ALLREDUCE_CONNS_PER_CHANNEL = 3,
    /* channels per peer for send and receive, in a communicator inside one fabric */
    NCCL_PEER_CHANNELS_IN_FABRIC = 8,
    /* channels per peer for send and receive with the peers in the rank's own fabric, in a communicator that has peers
     * outside the fabric, too */
    NCCL_PEER_CHANNELS_WITH_NETWORK = 2,
};
/* bytes of one set of NCCL's send and receive buffers, which serves all peers that the network reaches */
#define NCCL_NETWORK_BUFFER_SET_BYTES (64 * MIB)
#define CUBLAS_WORKSPACE_BYTES (8 * MIB + 128 * 1024)
#define CUBLAS_WORKSPACE_BYTES_SM_90 (32 * MIB)
#define CUBLAS_LT_WORKSPACE_BYTES MIB

/* clang-format off */
static const struct reserved_constant constants[] = {
    {"CUDA context", "device.context_bytes of the cluster",
     "`longhaul list clusters NAME`"},
    {"NCCL connection, receive", "10 MiB a channel",
     "0.5 MiB LL + 4.7 MiB LL128 + 4 MiB Simple (NCCL's default buffer sizes) in pages of 2 "
     "MiB; allocations of 10485760 bytes in NVIDIA/nccl issue 1685"},
    {"NCCL connection, send", "2 MiB a channel",
     "allocations of 2097152 bytes in NVIDIA/nccl issue 1685"},
    {"NCCL channels in a fabric", "24",
     "A100 with NVSwitch: 12 links, two channels each; estimate for others"},
    {"NCCL channels across nodes", "2 per NIC, on sm 90 4 while fewer than 16",
     "NCCL, src/graph/connect.cc, ncclTopoPostset(): two channels for each ring; one ring for each NIC"},
    {"NCCL tree connections", "2 a channel, of groups that all-reduce",
     "NCCL: one up, one down; estimate"},
    {"NCCL send/receive channels per peer", "8 in a fabric, 2 across nodes",
     "estimate; up to 32 on eight H100 (NVIDIA/nccl issue 1685)"},
    {"NCCL buffers for peers beyond the fabric", "64 MiB",
     "shared by all send/receive peers (NVIDIA/nccl issue 1450: one shared buffer); size is an "
     "estimate"},
    {"NCCL communicator of all ranks", "ring and tree",
     "assumed: every framework reduces a loss and a norm over all ranks"},
    {"gradient bucket", "reduce_bucket_size elements of the compute dtype",
     "DeepSpeed ZeRO-3 with contiguous_gradients (deepspeed/runtime/zero/stage3.py) allocates "
     "it once and keeps it"},
    {"rotary tables", "head_dim x tokens of the whole sequence: angles in fp32, cosine and sine in the "
                      "compute dtype; FPDT the last two",
     "Megatron-DeepSpeed, megatron/model/rotary_pos_embedding.py: every rank makes them for the whole "
     "sequence, and cos_cached and sin_cached stay; fpdt_layer.py takes a cosine and a sine"},
    {"cuBLAS workspace", "8.1 MiB, on sm 90 32 MiB",
     "PyTorch's default for CUBLAS_WORKSPACE_CONFIG"},
    {"cuBLASLt workspace", "1 MiB",
     "PyTorch's default for CUBLASLT_WORKSPACE_SIZE"},
    {"pinned blocks", "powers of two, kept",
     "PyTorch, aten/src/ATen/core/CachingHostAllocator.h: sizes are rounded up to powers of two and "
     "blocks are kept for reuse"},
    {"allocator", "512 B, 2 MiB, 20 MiB, multiples of 2 MiB",
     "PyTorch, c10/cuda/CUDACachingAllocator.cpp; schedule/reserved/caching_allocator.h"},
    {"moments of AdamW", "allocated in the first step's update",
     "torch.optim, apex and TransformerEngine: step() makes the states that are missing; DeepSpeed makes them before "
     "(initialize_optimizer_states())"},
    {"allocator of profile torchtitan", "segments that grow by 2 MiB and 20 MiB",
     "torchtitan, run_llama_train.sh and run_train.sh: PYTORCH_CUDA_ALLOC_CONF=\"expandable_segments:True\""},
};
/* clang-format on */

const struct reserved_constant *reserved_constants(size_t *count)
{
    *count = ARRAY_LEN(constants);
    return constants;
}

/* ---- parts of the reserved memory ---- */

uint64_t reserved_allocator_bytes(const struct reserved *r)
{
    return r->total_bytes - r->bytes[RESERVED_CONTEXT] - r->bytes[RESERVED_NCCL];
}

static const struct {
    const char *name, *label;
} parts[RESERVED_PART_COUNT] = {
    [RESERVED_CONTEXT] = {"context", "CUDA context"},
    [RESERVED_NCCL] = {"nccl", "NCCL buffers"},
    [RESERVED_WORKSPACES] = {"workspaces", "cuBLAS workspaces"},
    [RESERVED_BUCKETS] = {"buckets", "gradient buckets"},
    [RESERVED_POSITION_TABLES] = {"tables", "position tables"},
    [RESERVED_TENSORS] = {"tensors", "tensors"},
    [RESERVED_CACHE] = {"cache", "unused cache of the allocator"},
};

const char *reserved_part_name(enum reserved_part part)
{
    return parts[part].name;
}

const char *reserved_part_label(enum reserved_part part)
{
    return parts[part].label;
}

/* ---- NCCL ---- */

/* The connections of NCCL that an op needs in its group, as bits: those of a ring, of a tree, and to each peer. */
enum nccl_connection_bits { USE_RING = 1, USE_TREE = 2, USE_PEERS = 4 };

static const uint8_t connections_of_kind[WORK_KIND_COUNT] = {
    [WORK_ALL_GATHER] = USE_RING,
    [WORK_REDUCE_SCATTER] = USE_RING,
    [WORK_REDUCE] = USE_RING,
    [WORK_BROADCAST] = USE_RING,
    [WORK_ALL_TO_ALL] = USE_PEERS,
    [WORK_SCATTER] = USE_PEERS,
    [WORK_EXCHANGE] = USE_PEERS,
    [WORK_SHIFT] = USE_PEERS,
    [WORK_SEND] = USE_PEERS,
    [WORK_RECV] = USE_PEERS,
    [WORK_ALL_REDUCE] = USE_RING | USE_TREE,
};

static uint64_t nccl_ring_connection_bytes(const struct cluster *cluster, bool spans, bool tree)
{
    int64_t channels = NCCL_CHANNELS_IN_FABRIC;
    if (spans && cluster_inter_domain_channel_count(cluster, cluster->nic.count) < channels)
        channels = cluster_inter_domain_channel_count(cluster, cluster->nic.count);
    uint64_t connections = tree ? NCCL_ALLREDUCE_CONNS_PER_CHANNEL : NCCL_RING_CONNS_PER_CHANNEL;
    return (uint64_t)channels * connections *
           (NCCL_RECEIVE_BYTES_PER_CHANNEL + NCCL_SEND_BYTES_PER_CHANNEL);
}

static uint64_t nccl_peer_connection_bytes(bool spans, uint64_t peers_in_fabric)
{
    uint64_t channels = spans ? NCCL_PEER_CHANNELS_WITH_NETWORK : NCCL_PEER_CHANNELS_IN_FABRIC;
    return peers_in_fabric * channels *
               (NCCL_RECEIVE_BYTES_PER_CHANNEL + NCCL_SEND_BYTES_PER_CHANNEL) +
           (spans ? NCCL_NETWORK_BUFFER_SET_BYTES : 0);
}

/* Sets *peers_in_fabric to the number of peers in the rank's group that are in its fabric (NVLink). Sets *spans if the
 * group has other peers, too. */
static void count_peers_in_fabric(const struct ir *ir, const struct cluster *cluster,
                                  const struct group *group, uint32_t rank,
                                  uint64_t *peers_in_fabric, bool *spans)
{
    uint32_t instance, index, size = group_rank_count(&ir->mesh, group);
    *peers_in_fabric = 0;
    *spans = false;
    if (!group_find_member(&ir->mesh, group, rank, &instance, &index))
        return;
    int64_t domain = cluster_place_of_rank(cluster, rank).domain;
    for (uint32_t k = 0; k < size; k++) {
        uint32_t peer = group_global_rank_of_member(&ir->mesh, group, instance, k);
        if (peer == rank)
            continue;
        if (cluster_place_of_rank(cluster, peer).domain == domain)
            ++*peers_in_fabric;
        else
            *spans = true;
    }
}

static uint64_t nccl_bytes(const struct ir *ir, const struct cluster *cluster,
                           const struct role *role, uint32_t *communicators)
{
    uint32_t ranks = mesh_rank_count(&ir->mesh), rank = 0;
    *communicators = 0;
    if (cluster->is_ideal || ranks == 1)
        return 0;
    while (!role_has_rank(&ir->mesh, role, rank))
        rank++;
    uint8_t *use = heap_zalloc((size_t)ir->group_count + 1, 1);
    for (uint32_t op = role->op_begin; op < role->op_begin + role->op_count; op++) {
        uint8_t what = connections_of_kind[ir->op.kind[op]];
        bool norm = ir->op.kind[op] == WORK_ALL_REDUCE && ir->op.region[op] == REGION_OPTIMIZER;
        if (what != 0 && !norm) /* the norm's group uses the communicator of all ranks */
            use[work_comm_group(ir_work(ir, op))] |= what;
    }
    /* the communicator of all ranks, for the loss and the norm of the gradients */
    uint64_t bytes = nccl_ring_connection_bytes(
        cluster, ranks > (uint64_t)cluster->gpus_per_node * (uint64_t)cluster->domain_nodes, true);
    *communicators = 1;
    for (uint32_t g = 0; g < ir->group_count; g++) {
        uint64_t peers_in_fabric;
        bool spans;
        if (use[g] == 0 || group_rank_count(&ir->mesh, &ir->group[g]) < 2)
            continue;
        ++*communicators;
        count_peers_in_fabric(ir, cluster, &ir->group[g], rank, &peers_in_fabric, &spans);
        if (use[g] & USE_RING)
            bytes += nccl_ring_connection_bytes(cluster, spans, (use[g] & USE_TREE) != 0);
        if (use[g] & USE_PEERS)
            bytes += nccl_peer_connection_bytes(spans, peers_in_fabric);
    }
    free(use);
    return bytes;
}

/* ---- the allocator ---- */

/* Replays the device memory of a role: allocates workspaces, buckets and tables, then the persistent buffers, and then
 * allocates and frees the tensors of its ops in list order. */
static void replay_device_memory(struct caching_allocator *a,
                                 const struct replayed_buffer_lifetimes *replay,
                                 uint64_t workspaces, struct reserved_options held)
{
    if (workspaces > 0) {
        caching_alloc(a, workspaces - CUBLAS_LT_WORKSPACE_BYTES);
        caching_alloc(a, CUBLAS_LT_WORKSPACE_BYTES);
    }
    if (held.bucket_bytes > 0)
        caching_alloc(a, held.bucket_bytes);
    for (int i = 0; i < STEP_ROTARY_TABLES; i++)
        if (held.table_bytes[i] > 0)
            caching_alloc(a, held.table_bytes[i]);
    replay_steps_in_allocator(replay, MEMORY_HBM, held.allocates_gathers_in_own_pool, a);
}

/* Sets used[b] for each bundle to which a buffer of the replay is bound. */
static void mark_bundles_used_by_role(const struct ir *ir,
                                      const struct replayed_buffer_lifetimes *replay, bool *used)
{
    for (uint32_t i = 0; i < replay->row_count; i++) {
        const uint16_t binding = ir->buffer.binding[replay->row[i].buffer];
        if (binding != IR_NONE16 && ir->binding[binding].bundle != IR_NONE16)
            used[ir->binding[binding].bundle] = true;
    }
}

/* Allocates a tensor that has the fraction `share` of a bundle's elements, each of `each` bytes. */
static void allocate_tensor(struct caching_allocator *a, const struct bundle *bundle, double share,
                            uint32_t each)
{
    const uint64_t bytes = (uint64_t)(share * (double)bundle->elements) * each;
    if (bytes > 0)
        caching_alloc(a, bytes);
}

/* Allocates all parameters of a role whole, as module.to(device) in deepspeed/runtime/engine.py does, and does not free
 * them. In DeepSpeed a rank's parts are then copied one after the other into memory that whole parameters have left,
 * and defragment() (deepspeed/runtime/zero/utils.py) moves them through the host and empties the cache, so that nothing
 * of this is left when the first step begins. */
static void replay_parameter_loading(struct caching_allocator *a, const struct ir *ir,
                                     const struct replayed_buffer_lifetimes *replay, uint32_t each)
{
    bool *used = heap_zalloc((size_t)ir->bundle_count + 1, sizeof *used);
    mark_bundles_used_by_role(ir, replay, used);
    for (uint32_t b = 0; b < ir->bundle_count; b++) {
        const struct bundle *bundle = &ir->bundle[b];
        const struct tensor *tensor = &ir->tensor[bundle->tensor_begin];
        double all = 0;
        for (uint32_t t = 0; used[b] && t < bundle->tensor_count; t++)
            all += (double)tensor[t].rows * (double)tensor[t].cols;
        for (uint32_t t = 0; used[b] && t < bundle->tensor_count; t++)
            allocate_tensor(a, bundle, (double)tensor[t].rows * (double)tensor[t].cols / all, each);
    }
    free(used);
}

/* ---- pinned memory ---- */

/* Returns log2 of the bytes that a pinned block takes. PyTorch's CachingHostAllocator (c10) rounds a size up to a
 * power of two and never returns a block to the system, so it has as many blocks of each power as were ever in use
 * at once. */
static uint8_t log2_of_pinned_block_bytes(uint64_t bytes)
{
    return bytes < 2 ? 0 : (uint8_t)(64 - __builtin_clzll(bytes - 1));
}

static int compare_last_ops(const void *a, const void *b)
{
    const struct replay_stay *x = a, *y = b;
    return (x->last_op > y->last_op) - (x->last_op < y->last_op);
}

/* Returns the bytes of pinned memory. A freed block is counted as free only when the next block is allocated; that is
 * early enough, since the count of used blocks cannot rise before. */
static uint64_t pinned_bytes(const struct ir *ir, const struct replayed_buffer_lifetimes *replay)
{
    uint32_t count = 0;
    struct replay_stay *row = heap_alloc((size_t)replay->row_count + 1, sizeof *row);
    struct replay_stay *leaving = heap_alloc((size_t)replay->row_count + 1, sizeof *leaving);
    const struct replay_stay *next = leaving; /* the first of `leaving` that is still in use */
    int64_t used[64] = {0}, most[64] = {0};
    uint64_t total = 0;
    for (uint32_t i = 0; i < replay->row_count; i++)
        if (ir->buffer.memory[replay->row[i].buffer] == MEMORY_PINNED)
            row[count++] = replay->row[i];
    memcpy(leaving, row, count * sizeof *row);
    qsort(leaving, count, sizeof *leaving, compare_last_ops);
    for (uint32_t i = 0; i < count; i++) {
        for (; next->last_op < row[i].first_op; next++)
            used[log2_of_pinned_block_bytes(next->bytes)]--;
        uint8_t power = log2_of_pinned_block_bytes(row[i].bytes);
        used[power]++;
        most[power] = used[power] > most[power] ? used[power] : most[power];
    }
    for (uint32_t p = 0; p < ARRAY_LEN(most); p++)
        total += (uint64_t)most[p] << p;
    free(row);
    free(leaving);
    return total;
}

/* ---- all reserved memory ---- */

/* Returns the bytes of the device that are left for the allocator. At least 1, since 0 would stand for no limit. */
static uint64_t allocator_limit(uint64_t available, uint64_t outside)
{
    return available > outside ? available - outside : 1;
}

static void compute_reserved_of_role(struct reserved *out, const struct ir *ir,
                                     const struct cluster *cluster, const struct role *role, int sm,
                                     struct reserved_options held)
{
    *out = (struct reserved){0};
    bool bounded = isfinite(cluster->device.usable_bytes);
    uint64_t context = (uint64_t)cluster->device.cuda_context_bytes;
    uint64_t nccl = nccl_bytes(ir, cluster, role, &out->communicator_count);
    uint64_t outside = context + nccl, workspaces = 0, tables = 0;
    out->available_bytes = bounded ? (uint64_t)cluster->device.usable_bytes + context : UINT64_MAX;
    if (!cluster->is_ideal)
        workspaces = (sm / 10 == 9 ? CUBLAS_WORKSPACE_BYTES_SM_90 : CUBLAS_WORKSPACE_BYTES) +
                     CUBLAS_LT_WORKSPACE_BYTES;
    for (int i = 0; i < STEP_ROTARY_TABLES; i++)
        tables += held.table_bytes[i];

    struct caching_allocator a = {.limit_bytes =
                                      bounded ? allocator_limit(out->available_bytes, outside) : 0,
                                  .is_expandable = held.has_expandable_segments};
    struct replayed_buffer_lifetimes replay;
    replay_list_buffers_of_role(&replay, ir, role, held.replay);
    replay_device_memory(&a, &replay, workspaces, held);
    out->pinned_bytes = pinned_bytes(ir, &replay);
    out->bytes[RESERVED_CONTEXT] = context;
    out->bytes[RESERVED_NCCL] = nccl;
    out->bytes[RESERVED_WORKSPACES] = workspaces;
    out->bytes[RESERVED_BUCKETS] = held.bucket_bytes;
    out->bytes[RESERVED_POSITION_TABLES] = tables;
    out->bytes[RESERVED_TENSORS] = a.used_peak_bytes - workspaces - held.bucket_bytes - tables;
    out->bytes[RESERVED_CACHE] = a.reserved_peak_bytes - a.used_peak_bytes;
    out->total_bytes = outside + a.reserved_peak_bytes;
    out->fits = !a.has_exceeded_limit;
    if (held.bytes_per_whole_parameter > 0) {
        struct caching_allocator whole = {.limit_bytes = a.limit_bytes};
        replay_parameter_loading(&whole, ir, &replay, held.bytes_per_whole_parameter);
        out->fits = out->fits && !whole.has_exceeded_limit;
        if (whole.reserved_peak_bytes > a.reserved_peak_bytes) {
            out->bytes[RESERVED_TENSORS] += whole.reserved_peak_bytes - a.reserved_peak_bytes;
            out->total_bytes = outside + whole.reserved_peak_bytes;
        }
        caching_release(&whole);
    }

    /* The total says little about the memory that is needed, since the cache grows into all memory that there is. A
     * second run with a smaller limit finds whether less would do. */
    uint64_t less =
        bounded ? (uint64_t)((1 - RESERVED_VERDICT_MARGIN_SHARE) * (double)out->available_bytes)
                : 0;
    if (bounded && out->fits && out->total_bytes > less) {
        struct caching_allocator b = {.limit_bytes = allocator_limit(less, outside),
                                      .is_expandable = held.has_expandable_segments};
        if (a.used_peak_bytes <= b.limit_bytes)
            replay_device_memory(&b, &replay, workspaces, held);
        out->is_tight = a.used_peak_bytes > b.limit_bytes || b.has_exceeded_limit;
        caching_release(&b);
    }
    caching_release(&a);
    replay_release(&replay);
}

void reserved_compute(struct reserved *reserved, const struct ir *ir, const struct cluster *cluster,
                      int sm, struct reserved_options held)
{
    *reserved = (struct reserved){.fits = true};
    for (uint32_t i = 0; i < ir->role_count; i++) {
        struct reserved one;
        compute_reserved_of_role(&one, ir, cluster, &ir->role[i], sm, held);
        bool fits = reserved->fits && one.fits, tight = reserved->is_tight || one.is_tight;
        uint64_t pinned =
            one.pinned_bytes > reserved->pinned_bytes ? one.pinned_bytes : reserved->pinned_bytes;
        if (i == 0 || one.total_bytes > reserved->total_bytes)
            *reserved = one;
        reserved->fits = fits;
        reserved->is_tight = fits && tight;
        reserved->pinned_bytes = pinned;
    }
}

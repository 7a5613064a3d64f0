/* sim/traffic/traffic.h: a schedule bound to a cluster: which ranks take part in which op, and the bytes that move.
 *
 * Ops that need other ranks, or links, are laid out on four levels:
 *   comm class  ops of one sort in the schedule: collectives of a group, its barriers, shifts of a group by
 *               a distance, sends (receives) of a group to (from) a distance, copies of a kind,
 *               host work that moves bytes, kernels that share the processors
 *   channel     a comm class on certain ranks: those of an instance of the group, a message's sender
 *               and receiver, or one rank; has participants (those of its ranks that are planned)
 *   variant     one of the distinct shapes (of sends and receives: sizes) on a comm class
 *   transfer    a channel and a variant: a latency and flows
 * In an event, the n-th op of a comm class on one participant meets the n-th op on each other participant. Sends and
 * receives are counted for each channel, that is for each source, destination and channel number, and only those that
 * the guards let the rank run.
 *
 * Everything here is static; the scheduler adds time.
 *
 * The folder sim/traffic/ binds a schedule to a cluster: ranks, messages and links, folded where ranks or layers repeat
 * each other. */
#ifndef SIM_TRAFFIC_H
#define SIM_TRAFFIC_H

#include "base/diag.h"
#include "schedule/ir/ir.h"
#include "sim/platform/collective.h"
#include "sim/traffic/sim_costs.h"

enum comm_kind {
    COMM_COLLECTIVE, /* all members of an instance */
    COMM_SHIFT,      /* one channel per message: the sender is participant 0, the receiver 1 */
    /* one channel for each (source, destination, channel number); participant 0 sends, participant 1 receives */
    COMM_P2P,
    COMM_COPY,              /* one rank */
    COMM_HOST_WORK,         /* one rank: host ops whose memory traffic is known */
    COMM_CONCURRENT_KERNEL, /* one rank: kernels of several compute streams, which share the processors */
    COMM_KIND_COUNT
};

/* The way in which the duration of an op is found once it may start. */
enum op_duration_rule {
    OP_HOST_SYNC,         /* syncs of the host */
    OP_OF_FIXED_DURATION, /* takes traffic_kernel_duration_s() */
    OP_SLOWED_BY_MESSAGES, /* takes traffic_kernel_duration_s(), and longer while messages run on the rank */
    OP_HOST_WORK,          /* takes the time in traffic.host_duration_s[shape] */
    OP_EVENT               /* waits for other ranks, or uses links */
};

struct comm_class {
    uint8_t kind;           /* enum comm_kind */
    uint8_t work_kind;      /* enum work_kind of SEND, RECV, H2D, D2H, BARRIER; else 0 */
    uint8_t is_pageable;    /* for copies: the host's memory is pageable */
    uint16_t group;         /* IR_NONE16: none */
    int64_t distance;       /* distance in the group, for shifts, sends and receives */
    int64_t channel_number; /* channel number, for sends and receives */
    uint32_t distinct_shape_count;
    /* [variants] the shape of each variant. All P2P comm classes share one list, in which one shape represents all
     * shapes with as many bytes. */
    uint32_t *distinct_shapes;
    size_t distinct_shape_capacity;
    uint32_t *op_count; /* [role_count] the number of ops of the comm class in each role */
    /* [role_count] where the ids of a role's ops of the comm class begin in traffic.ops_by_comm_class[]; they are
     * ascending */
    uint32_t *op_begin_by_role;
};

/* The shares of a rank's multiprocessors and of its memory bandwidth that kernels lack while a transfer runs.
 * holds_sms_from_start: the transfer occupies the multiprocessors from its start on, before its first bytes move. */
struct interference_share {
    double sms_share, memory_bandwidth_share;
    bool holds_sms_from_start;
};

/* A transfer takes its latency, and then the time of flows [flow_begin, flow_begin + flow_count) of
 * the flow table; there may be none. */
struct transfer {
    double latency_s;
    uint32_t channel;
    uint32_t flow_begin, flow_count;
};

struct channel {
    /* the channel's comm class; for a P2P channel, the first comm class that uses it */
    uint32_t comm_class;
    uint32_t participant_begin, participant_count;
    uint32_t first_transfer_of_channel; /* one per variant of the comm class */
    struct interference_share taken_resources;
};

struct traffic {
    const struct ir *ir;
    const struct cluster *cluster;
    const struct sim_costs *costs;
    struct mesh mesh;    /* the schedule's, or one replica of it (sim/traffic/replicas.h) */
    uint32_t rank_count; /* ranks of that mesh; below, a rank is a row of it */
    /* [rank_count] the schedule's rank that each is, ascending */
    uint32_t *schedule_rank_by_planned_rank;
    uint32_t *role_of_rank;        /* [rank_count]; IR_NONE: no role, no ops */
    uint8_t *guard_passes_by_rank; /* [rank_count][guard_count] */
    /* [rank_count] the place of each rank (schedule/ir/visible.h); NULL if no duration depends on the place */
    uint32_t *place_of_rank;
    /* all context ranks are taken as the fullest (sim/uniform/uniform.h) */
    bool context_ranks_count_as_fullest;

    struct platform platform;
    struct flow_table flows;

    uint32_t comm_class_count;
    struct comm_class *comm;
    /* the variants that all comm classes of kind COMM_P2P share, one for each number of bytes. It is no comm class:
     * only distinct_shape_count, distinct_shapes and distinct_shape_capacity are used. */
    struct comm_class shared_variants_of_p2p_classes;
    uint32_t *ops_by_comm_class;

    uint32_t channel_count, participant_count, transfer_count;
    struct channel *channel;
    uint32_t *participant;
    struct transfer *transfer;

    /* [rank_count][comm_class_count] the rank's channel in each comm class; for shifts, the channel on which it sends;
     * IR_NONE: none */
    uint32_t *channel_by_rank_and_comm;
    /* [rank_count][comm_class_count] for shifts: the channel on which the rank receives; IR_NONE: none */
    uint32_t *receive_channel_by_rank_and_comm;

    /* The next four arrays have an element for each op of the schedule. */
    uint8_t *op_duration_rule;    /* enum op_duration_rule */
    uint16_t *comm_class_by_op;   /* IR_NONE16: the op is no event */
    uint16_t *comm_variant_by_op; /* row in the comm class's variants */
    /* the op's number among its role's ops of the comm class, from 0 on in list order */
    uint32_t *number_in_comm_class_by_op;

    const double *duration_s, *host_duration_s; /* [shape_count] from sim_costs */
    /* the kernels of rank slow_rank take slow_factor times as long; copied from sim_options */
    double slow_factor;
    uint32_t slow_rank;

    /* holds all arrays except those that grow (comm classes and their variants, channels, participants), which are on
     * the heap */
    struct arena arena;
    size_t comm_capacity, channel_capacity, participant_capacity;
};

/* Binds a schedule to a cluster and fills *traffic. Fails with one message if there are more ranks
 * than GPUs, if an op waits for a later one or for too many ops, or if communication cannot happen:
 * members of a group issue different collectives, or a send or receive names a rank that does not
 * exist. name: the schedule's name in messages. uniform_rank_plus_1_by_guard: that of uniform_mark_guards()
 * (sim/uniform/uniform.h), which stays the caller's. Unless options->exact is set, only one replica
 * of the ranks is planned (sim/traffic/replicas.h). Release *traffic in either case. */
enum status traffic_make(struct traffic *traffic, const struct ir *ir,
                         const struct cluster *cluster, const struct sim_costs *costs,
                         const uint32_t *uniform_rank_plus_1_by_guard,
                         const struct sim_options *options, const char *name, struct diag *diag);
void traffic_release(struct traffic *traffic);

/* True if the op makes the host wait, and does no work on its stream. */
static inline bool traffic_is_sync(const struct ir *ir, uint32_t op)
{
    return ir->op.kind[op] == WORK_HOST_SYNC || ir->op.kind[op] == WORK_BARRIER;
}

/* True if the op is a kernel: it works on a compute stream. */
static inline bool traffic_is_kernel(const struct ir *ir, uint32_t op)
{
    return !traffic_is_sync(ir, op) && ir->stream[ir->op.stream[op]].stream_class == STREAM_COMPUTE;
}

/* True if multiprocessors, and not memory, limit the work. */
bool traffic_is_compute_bound(const struct work *work);

/* Returns the seconds of a kernel of a shape on a rank's device. */
static inline double traffic_kernel_duration_s(const struct traffic *traffic, uint32_t rank,
                                               uint32_t shape)
{
    double seconds = traffic->duration_s[shape];
    if (traffic->place_of_rank != NULL && traffic->costs->work_s_by_place[shape] != NULL)
        seconds = traffic->costs->work_s_by_place[shape][traffic->place_of_rank[rank]];
    return traffic->slow_factor > 0 && rank == traffic->slow_rank ? seconds * traffic->slow_factor
                                                                  : seconds;
}

/* True if the guard of the op, if it has one, lets the rank run it. */
static inline bool traffic_rank_runs_op(const struct traffic *traffic, uint32_t rank, uint32_t op)
{
    uint16_t guard = traffic->ir->op.guard[op];
    return guard == IR_NONE16 ||
           traffic->guard_passes_by_rank[(size_t)rank * traffic->ir->guard_count + guard];
}

#endif

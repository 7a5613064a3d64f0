/* sim/scheduler/scheduler_state.h: the state of a simulation, which scheduler_run.c changes and deadlock.c explains. */
#ifndef SIM_SCHEDULER_STATE_H
#define SIM_SCHEDULER_STATE_H

#include "sim/scheduler/engine.h"
#include "sim/scheduler/scheduler.h"
#include "sim/traffic/index.h"

/* The ops of one role, and for each op the ops that depend on it. */
struct role_program {
    uint32_t op_begin, op_count;
    /* [op_count] dependencies of an op: issue, stream and waits */
    uint16_t *dependency_count_by_op;
    /* by op, the ops that wait for it; both are numbered from op_begin on */
    struct index successors;
};

/* The state of one class of ranks: of the host, the channels and the compute stream of the one rank that is
 * simulated. */
struct rank_state {
    uint32_t rank, role;
    /* index of the class's first op in the arrays that have an element per op and class */
    size_t first_row;
    uint32_t issued_op_count; /* ops [0, issued_op_count) have been issued */
    uint32_t blocking_op;     /* the op that blocks the host; IR_NONE: none */
    double host_busy_until_s; /* date until which the host has worked */
    uint32_t ended_op_count;  /* ops that have ended */
    /* [comm_class_count] class of the rank's channel; for a shift, of the channel on which the rank sends; IR_NONE: the
     * rank has none */
    uint32_t *send_channel_by_comm;
    /* [comm_class_count] for a shift: class of the channel on which the rank receives; IR_NONE: it has none, or the
     * comm class is no shift */
    uint32_t *receive_channel_by_comm;
    struct kernel_overlap {
        /* the op that has begun or is about to begin on the compute stream; IR_NONE: there is none */
        uint32_t op;
        bool is_memory_bound;    /* memory bandwidth limits the op; false: the multiprocessors do */
        double remaining_work_s; /* seconds left of the op if no message runs */
        /* the date for which remaining_work_s holds; if the op has not begun, the date when it begins */
        double remaining_work_date_s;
        double end_s; /* the date at which the op ends if no message starts or ends before */
        /* the shares of the rank's resources that the running messages take */
        struct interference_share taken_resources;
        uint32_t heap_index; /* the index of the rank in scheduler.rank_heap_by_kernel_end */
    } kernel_overlap;
    /* [op_count] of a send or receive: its number among those of its channel that the rank runs. NULL: the rank runs no
     * sends and no receives. */
    uint32_t *p2p_number_in_channel_by_op;
};

/* One side of a channel class: the rank and its ops on the channel, in order. Op n of one side meets op n of each other
 * side. */
struct channel_side {
    uint32_t rank_index;
    uint32_t op_count;
    uint32_t *ops; /* ids of the schedule */
};

/* One communication of a channel class. Event n of the class is op n of every side: it begins when all sides have
 * arrived. */
struct event {
    /* the last arrival so far; if `is_uncontended` is set: when the flows started */
    double last_arrival_or_start_s;
    /* until all sides have arrived: the number of sides that have not; then: the number of the event's flows that still
     * move in the engine */
    uint32_t sides_or_flows_left;
    bool has_started_flows; /* flows have started */
    bool is_uncontended;    /* the flows run outside the engine (sim/scheduler/uncontended.h) */
    uint32_t transfer;      /* IR_NONE: no side has arrived */
};

/* An event with the date at which its flows start, or at which it ends. */
struct queued_event {
    double date_s;
    size_t event_index;
    bool is_start_of_flows;
};

/* Sorted by date, the earliest last. */
struct event_queue {
    size_t count, capacity;
    struct queued_event *row;
};

struct channel_state {
    size_t first_event_of_class; /* the class's events are event[first_event_of_class + n] */
    struct interference_share taken_resources; /* the resources that one event takes on each side */
    uint32_t side_begin, channel_side_count;
};

/* Values of scheduler.unended_dependencies_by_op[]. Before an op starts: the number of its dependencies that have not
 * ended, of which its issue by the host is one; 0 while its kernel runs. For a communication op that has started:
 * OP_ARRIVED + the number of its events that have not ended. OP_ENDED: the end of the op is known. */
enum { OP_ARRIVED = 0x8000, OP_ENDED = 0xffff };

struct scheduler {
    const struct traffic *traffic;
    const struct fold *fold;
    struct schedule_times *times;

    struct arena arena;                   /* the tables that are made once */
    struct role_program *program_by_role; /* [role_count + 1] the last one is empty */
    uint32_t rank_state_count;
    struct rank_state *rank_state;
    /* the ranks on which a kernel that messages slow down (OP_SLOWED_BY_MESSAGES) runs or is about to begin: a heap,
     * the earliest end first */
    uint32_t *rank_heap_by_kernel_end;
    uint32_t rank_count_in_kernel_end_heap; /* ranks in that heap */

    struct channel_state *channel; /* [channel_class_count] */
    struct channel_side *side;
    uint32_t channel_side_count;
    size_t event_count;
    /* [event_count] by channel class, and then by number n of the rendezvous; made when the run begins */
    struct event *event;
    uint16_t *unended_dependencies_by_op; /* [rows] */
    bool has_engine_flows; /* false: no flow needs the engine, which is not started */
    struct event_queue event_queue;

    /* [links] the event whose uncontended flows use the link, which no other event uses; IR_NONE: there is none. Unused
     * with fold->is_exact */
    uint32_t *event_by_held_link;
    /* [links] the number of flows over the link that the engine moves */
    uint32_t *engine_flows_on_link;
    /* [transfers] the seconds of the transfer's flows if no other transfer moves; negative: not known */
    double *uncontended_s_by_transfer;
    double *uncontended_bytes_per_s_by_flow; /* [flows] its bytes/s if no other transfer moves */

    double now_s;
    bool is_ahead_of_engine_clock; /* now_s is ahead of the engine's clock: no flow may start */

    struct ready {
        uint32_t rank_index, op;
    } * ready_ops; /* a stack of ops that may start */
    size_t ready_count, ready_capacity;

    struct text *reason; /* the first error that occurred while events ran */
};

/* Returns the number of an op among those of its channel on one side, from 0 on: ops of all sides that have the same
 * number meet. */
static inline uint32_t scheduler_op_number_in_channel(const struct scheduler *s,
                                                      const struct rank_state *r, uint32_t op)
{
    uint32_t id = s->program_by_role[r->role].op_begin + op;
    return s->traffic->comm[s->traffic->comm_class_by_op[id]].kind == COMM_P2P
               ? r->p2p_number_in_channel_by_op[op]
               : s->traffic->number_in_comm_class_by_op[id];
}

/* Makes events and unended_dependencies_by_op[] for a run; scheduler_build.c. */
void scheduler_reset(struct scheduler *s);

/* Starts a flow of event e in the engine, with `bytes` of it left. */
static inline void scheduler_start_flow(const struct scheduler *s, size_t e, uint32_t flow,
                                        double bytes)
{
    const uint32_t *begin = &s->fold->link_begin[flow];
    engine_start_flow(s->fold->link + begin[0], begin[1] - begin[0], bytes, (int64_t)(2 * e + 1));
}

/* Writes into *why which send and receive of a channel class do not match. */
void mismatch_explain_send_and_receive(const struct scheduler *s, uint32_t channel, uint32_t place,
                                       struct text *why);

/* Writes into *why, for a simulation that cannot go on, which rank waits in which op and for which other op. */
void deadlock_explain(const struct scheduler *s, struct text *why);

#endif

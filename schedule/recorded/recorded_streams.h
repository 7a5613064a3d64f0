/* schedule/recorded/recorded_streams.h: the streams of a recorded program, and how ops are added to streams of the
 * schedule. */
#ifndef SCHEDULE_RECORDED_STREAMS_H
#define SCHEDULE_RECORDED_STREAMS_H

#include "schedule/recorded/recorded_parts.h"

enum { RECORDED_STREAM_CLASSES = STREAM_D2H + 1 };

/* The ops that have ended at a point of the program: for each stream of the schedule, 1 + the last such op; 0: none. An
 * op that waits for a clock waits for these ops. */
struct recorded_clock {
    uint32_t op[IR_STREAMS_MAX];
};

/* A stream of the program, or a queue of collectives or of messages. */
struct program_stream {
    /* for a stream, the program's number of it; for a queue of collectives, 0; for a queue of messages, rank * QUEUES +
     * enum recorded_queue_kind, where `rank` is the other rank, or 0 for QUEUE_OF_BATCHES */
    int64_t handle;
    uint32_t group_of_queue; /* for a queue, its group; UINT32_MAX: it is a stream */
    /* for a stream, its number in the order of first use: how many other streams the program used earlier */
    uint32_t earlier_used_stream_count;
    int16_t stream[RECORDED_STREAM_CLASSES]; /* its streams of the schedule; -1: none yet */
    struct recorded_clock clock;
    /* 1 + the number of the batch with the queue's last message; 0: that message was in no batch */
    int64_t batch;
    /* the clock before that batch, or that message */
    struct recorded_clock clock_before_last_batch;
};

/* The kinds of queues of messages. Messages of a queue run one after another. */
enum recorded_queue_kind {
    QUEUE_SENDS = 1,  /* messages that are sent to one rank */
    QUEUE_RECEIVES,   /* messages that are received from one rank */
    QUEUE_UNBATCHED,  /* messages to and from one rank that are in no batch */
    QUEUE_OF_BATCHES, /* messages that are in batches, of all ranks of a group */
    QUEUES
};

/* The state of a stream when an event was recorded on it. */
struct recorded_stream_state_at_event {
    int64_t event;
    struct recorded_clock clock;
};

struct recorded_streams {
    struct program_stream *row;
    uint32_t count;
    size_t capacity;
    struct recorded_stream_state_at_event *stream_state;
    uint32_t stream_state_count;
    size_t stream_state_capacity;
    /* for each stream of the schedule, the ops for which its ops have waited so far */
    struct recorded_clock waited_clock_by_stream[IR_STREAMS_MAX];
    /* [storages] 1 + the op of the last queued collective that writes the storage; its stream does not wait for it; 0:
     * none */
    uint32_t *pending_collective_op_plus_1;
    uint32_t *collective_op_of_event_plus_1; /* [events] 1 + the collective of the event; 0: none */
    /* 1 + the last of the ops that fill the buffers which collectives or copies read (add_transfer_buffers()); 0: none
     * */
    uint32_t last_source_fill_op_plus_1;
    int16_t host_wait_stream; /* the stream on which the host waits for events; -1: none yet */
};

struct recorded_operands {
    const struct view *read, *write;
    uint8_t read_count, write_count;
};

/* Returns the stream of the program with this handle, which is made if there is none yet. queue_of: the group of which
 * it is a queue of collectives or messages; UINT32_MAX: it is a stream of the program. The pointer is valid until the
 * next call. */
struct program_stream *recorded_find_or_add_program_stream(struct recorded_schedule_builder *m,
                                                           int64_t handle, uint32_t queue_of);

/* Returns the schedule's stream for one class of work of a stream of the program, and makes it if needed; -1: there are
 * too many. For a stream of the program other than 0, its name has the number in the order of first use, not the
 * handle, which may be an address. */
int16_t recorded_find_or_add_schedule_stream(struct recorded_schedule_builder *m,
                                             struct program_stream *row, enum stream_class class);

/* Adds an op that waits for the ops of a clock, and returns its id. Waits are left out for ops that earlier ops of the
 * same stream have waited for. */
uint32_t recorded_add_op(struct recorded_schedule_builder *m, uint8_t stream,
                         const struct work *work, struct recorded_operands operands,
                         struct op_tags tags, const struct recorded_clock *clock);

#endif

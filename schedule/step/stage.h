/* schedule/step/stage.h: the state of one stage while its step is emitted, and what stages pass to each other.
 *
 * A passage is the way of one unit through one chunk in which the stage has a part, in both passes, forward and
 * backward. Its input in a pass is the result of the passage before it in that pass. That one was computed on this
 * stage, on another stage or, where stages share subsequences, in pieces on several stages.
 *
 * With several tensor ranks there is a seam between two chunks if stages share the unit in at least one of them: a row
 * may then belong to another tensor rank in the next chunk (schedule/step/stage.c). */
#ifndef SCHEDULE_STEP_STAGE_H
#define SCHEDULE_STEP_STAGE_H

#include "schedule/emit/emit.h"
#include "schedule/pipeline/multiplex.h"

enum pass { PASS_FORWARD, PASS_BACKWARD, PASS_COUNT };

struct chunk_passage_of_unit {
    buffer_id input[PASS_COUNT], output[PASS_COUNT]; /* IR_NONE: nothing yet */
    /* the output, gathered from all tensor ranks, if a seam follows */
    struct view gathered_outputs_by_pass[PASS_COUNT];
    struct deferred_gradient_list deferred_gradient_list;
};

/* A message to this stage. If stages share subsequences, messages are received in the order in which other stages send
 * them. */
struct inbound_message {
    uint8_t pass;
    bool is_receive_posted;
    uint32_t chunk, unit, from_stage; /* the passage that needs it, and the stage that sends it */
    /* at a seam before the passage, the buffer that receives the message; IR_NONE: there is no seam, and rows of the
     * passage's input receive it */
    buffer_id own_receive_buffer;
};

struct stage {
    struct emit *e;
    const struct choices *choices;
    const struct pipeline *pipeline;
    uint32_t unit_count, chunk_count; /* chunk_count: of the chunks in which the stage has a part */
    struct chunk_passage_of_unit *passage_by_chunk_and_unit; /* row chunk * unit_count + unit */
    /* [units] the data that the unit's layers keep for the backward */
    struct layer_saved **layer_saved_by_unit;
    struct layer_saved **unused_layer_saved_rows; /* a stack of the rows of units that are done */
    uint32_t unused_layer_saved_count;
    /* [micro-batches] an array with an element for each layer and sequence; NULL: there are no subsequences */
    struct prefix **prefix;
    uint32_t *actions_left_by_unit; /* [units] number of actions until its saved rows are free */
    /* streams, by pass and lane. Lane 1: messages between chunks on the way back up the stages of a folded pipeline;
     * lane 0: all other messages. */
    uint8_t send_stream[PASS_COUNT][2], recv_stream[PASS_COUNT][2];
    /* if stages share subsequences: the streams by which keys and values are sent to, and received from, other
     * stages */
    uint8_t kv_to_stage_stream, kv_from_stage_stream;
    uint8_t kv_grads_stream; /* reductions that sum the gradients of keys and values */
    /* the streams with messages for which the host has still to wait */
    uint8_t pending_streams[2 * PASS_COUNT];
    uint32_t pending_stream_count;
    op_id last_message; /* the last message of the last action; IR_NONE: it sent none */
    struct inbound_message *inbound_messages;
    uint32_t inbound_count;
    size_t inbound_capacity;
};

static inline struct chunk_passage_of_unit *stage_passage(struct stage *s, uint32_t chunk,
                                                          uint32_t unit)
{
    return &s->passage_by_chunk_and_unit[chunk * s->unit_count + unit];
}

/* Makes the streams of messages. Where stages share subsequences, also lists the messages to this stage in order. */
void stage_make_streams(struct stage *s);
/* Begins a unit in a chunk (`chunk` is its number among those of all stages): sets e->unit to this stage's part of the
 * unit, and the labels of ops that are emitted from now on. */
void stage_set_unit(struct stage *s, uint32_t chunk, uint32_t unit, enum phase phase);
/* Posts the receives of the messages that an action needs. They start after all compute ops that were emitted so
 * far. */
void stage_post_receives_of_action(struct stage *s, const struct action *action);
/* Returns the input of an action. stage_set_unit() must have been called for its unit. The input of the last chunk's
 * backward is the result of its forward. The forward of chunk 0 has no input: IR_NONE. */
buffer_id stage_input(struct stage *s, const struct action *action);
/* Keeps x, the result of an action in a pass, and sends it to the other stages that compute the unit in the chunk which
 * comes next in that pass. */
void stage_send_result(struct stage *s, enum pass pass, const struct action *action, buffer_id x);

/* Makes the host wait for all messages for which it has still to wait (pipeline_awaits_messages()), as Megatron-LM does
 * by torch.cuda.synchronize() after a batch of messages. */
void stage_await_messages(struct stage *s);

/* ---- ACTION_SEND_KV and ACTION_RETURN_KV (schedule/step/kv_exchange.c) ---- */
void stage_send_kv(struct stage *s, const struct action *action);
void stage_return_kv(struct stage *s, const struct action *action);

#endif

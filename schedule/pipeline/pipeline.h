/* schedule/pipeline/pipeline.h: which stage does what in which order.
 *
 * The layers are cut into chunks, each placed on a stage (a coordinate of axis pp); with V virtual stages a stage has
 * V chunks. A step's work is units: unit m k + s is subsequence s of k of micro-batch m. A stage's program is a list
 * of actions, each of which takes one unit through one chunk: forward, backward, or, if a pipeline splits the
 * backward, first the gradients of inputs and later those of weights. A pipeline is the order of these actions;
 * messages, what is saved and what is freed follow from it (schedule/step/step.c).
 *
 * An order must work whatever the ops cost: the two sides of a message have their actions in the same order, and no
 * cycle of stages waits for itself. Tests check that, and the verifier checks it in every schedule.
 *
 * The folder schedule/pipeline/ says which stage runs which part of the model, on which micro-batch or subsequence,
 * in which order. */
#ifndef SCHEDULE_PIPELINE_PIPELINE_H
#define SCHEDULE_PIPELINE_PIPELINE_H

#include "schedule/choices/choices.h"

/* The most units, subsequences times micro-batches, of a step: their numbers in ops have 16 bits. */
enum { PIPELINE_UNITS_MAX = 65000 };

enum action_kind {
    ACTION_FORWARD,
    /* computes the gradients of inputs and, unless the pipeline splits the backward, of weights */
    ACTION_BACKWARD,
    ACTION_WEIGHT_GRADIENTS, /* the gradients of weights, if the pipeline splits the backward */
    ACTION_SEND_KV, /* sends a unit's keys and values to the stages that will share later units */
    /* sums gradients of the keys and values of units before this one (schedule/step/kv_exchange.c), over the stages
     * that share later units, at the stage that owns the chunk */
    ACTION_RETURN_KV,
    ACTION_KIND_COUNT
};

struct action {
    uint8_t kind;  /* enum action_kind */
    uint8_t chunk; /* number among the stage's chunks: v of pipeline_chunk_of_stage() */
    uint16_t unit;
    /* The next action, a backward of another unit, is emitted beside this forward (--expert-overlap). */
    bool is_beside_next_action;
};

struct actions {
    struct action *action; /* heap */
    uint32_t count;
    size_t capacity;
};
void actions_release(struct actions *actions);
void actions_add(struct actions *actions, enum action_kind kind, uint32_t chunk, uint32_t unit);

/* Adds the actions of a stage to *actions, in the order of the pipeline of the choices. */
void pipeline_add_actions_in_order(struct actions *actions, const struct choices *choices,
                                   uint32_t stage);

/* The properties of a pipeline (schedule/pipeline/pipelines.def). */
struct pipeline {
    const char *name, *summary;
    /* It can cut micro-batches into subsequences. If false, there is another pipeline with the same order over
     * subsequences. */
    bool has_subsequences;
    bool splits_backward; /* gradients of weights are actions of their own */
    /* the number of chunks of layers on a stage, 1 or 2; 0: the request decides */
    uint8_t chunks_per_stage;
    bool is_multiplexed; /* stages share subsequences */
    /* if a stage has two chunks: chunk c < pp is on stage c, and chunk c >= pp on stage 2 pp - 1 - c, so chunks go down
     * the stages and back up */
    bool is_folded;
};
const struct pipeline *pipeline_of_choices(const struct choices *choices);
const struct pipeline *pipeline_of_choice(enum pipeline_choice choice);

/* Both are false unless stages share subsequences. pipeline_has_remote_weights(): every stage owns only the weights of
 * its own layers, and sends them to the stages that share its subsequences. pipeline_replicates_weights(): all stages
 * own all weights. */
bool pipeline_has_remote_weights(const struct choices *choices);
bool pipeline_replicates_weights(const struct choices *choices);
/* True if the stages that receive remote weights each keep an equal part of them (MSP_WEIGHTS_SHARD). */
bool pipeline_shards_weights(const struct choices *choices);

uint32_t pipeline_unit_count(const struct choices *choices);
uint32_t pipeline_chunk_count(const struct choices *choices); /* number of chunks of all stages */
/* Returns the number of chunks of which a stage computes a part: all chunks if stages share subsequences, else those
 * that are placed on the stage. */
uint32_t pipeline_count_chunks_of_stage(const struct choices *choices);
/* pipeline_chunk_of_stage() returns the number, over all stages, of the v-th chunk of a stage.
 * pipeline_stage_of_chunk() returns the stage on which a chunk is placed. */
uint32_t pipeline_chunk_of_stage(const struct choices *choices, uint32_t stage, uint32_t v);
uint32_t pipeline_stage_of_chunk(const struct choices *choices, uint32_t chunk);

/* True if embedding and head are tied, and are on different stages, which both hold the table. */
bool pipeline_ends_share_embedding(const struct choices *choices);

/* True if there are several stages, every unit passes each of them once, and a stage does the whole forward or backward
 * of a unit at a time. In such a pipeline a stage waits at the start, while the first unit's forward passes the stages
 * before it; and those stages wait for that unit's backward. */
bool pipeline_is_plain(const struct choices *choices);

/* True if the host waits for each message (profile switch pipeline_messages_sync). It does so in plain pipelines only:
 * Megatron-LM overlaps the messages of interleaved pipelines, and has no zero-bubble pipelines. */
bool pipeline_awaits_messages(const struct choices *choices);

/* Fills ack_action[] for the actions of a stage; stages must not share subsequences. ack_action[i] is the stage's first
 * later action whose input proves that the message of action i has arrived: another stage made that input after it had
 * received the message. PIPELINE_NO_ACTION: there is no such action, or action i sends nothing. */
#define PIPELINE_NO_ACTION UINT32_MAX
void pipeline_find_implicit_acks(const struct choices *choices, uint32_t stage,
                                 const struct actions *actions, uint32_t *ack_action);

/* Return 1 if the embedding (pipeline_embedding_layers()) or the head (pipeline_head_layers()) counts as a layer when
 * layers are divided among chunks, else 0. --stage-layers decides (Megatron-LM, get_num_layers_to_build()); with one
 * chunk neither counts. */
uint32_t pipeline_embedding_layers(const struct choices *choices);
uint32_t pipeline_head_layers(const struct choices *choices);

/* The layers first .. end - 1 of a chunk. */
struct layer_range {
    uint32_t first, end;
};
struct layer_range pipeline_layers_of_chunk(const struct choices *choices, uint32_t chunk);

/* Returns the number of tokens before subsequence s of a sequence. For s = subsequences it is the number of all
 * tokens. */
int64_t pipeline_tokens_before_subsequence(const struct choices *choices, uint32_t s);

#endif

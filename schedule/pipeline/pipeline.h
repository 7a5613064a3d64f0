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
    /* the gradients of inputs and, unless the pipeline splits the backward, of weights */
    ACTION_BACKWARD,
    ACTION_WEIGHTS, /* the gradients of weights, if the pipeline splits the backward */
    ACTION_SEND_KV, /* sends a unit's keys and values to the stages that will share later units */
    /* receives the gradients of these keys and values, which the sharing stages have summed */
    ACTION_RETURN_KV,
    ACTION_KIND_COUNT
};

struct action {
    uint8_t kind;  /* enum action_kind */
    uint8_t chunk; /* number of the chunk on its stage, 0 .. V - 1 */
    uint16_t unit;
    /* the next action, a backward, is emitted beside this forward, whose unit is another one (--expert-overlap) */
    bool is_with_next;
};

struct actions {
    struct action *action; /* heap */
    uint32_t count;
    size_t capacity;
};
void actions_release(struct actions *actions);
void actions_add(struct actions *actions, enum action_kind kind, uint32_t chunk, uint32_t unit);

/* Adds the actions of a stage to *actions, in the order of the pipeline of the choices. */
void pipeline_order(struct actions *actions, const struct choices *choices, uint32_t stage);

struct pipeline {
    const char *name, *summary;
    /* can cut micro-batches into subsequences; false: another pipeline has the same order with subsequences */
    bool has_subsequences;
    bool splits_backward; /* gradients of weights are actions of their own */
    /* number of chunks of layers on a stage: 1 or 2; 0: as many as the request says */
    uint8_t chunks_per_stage;
    bool is_multiplexed; /* stages share subsequences */
    /* with two chunks on a stage: chunks go down the stages and back up, so chunk c < pp is on stage c, and a later one
     * on stage 2 pp - 1 - c */
    bool is_folded;
};
const struct pipeline *pipeline_of_choices(const struct choices *choices);
const struct pipeline *pipeline_of_choice(enum pipeline_choice choice);

/* pipeline_has_remote_weights(): every stage owns only the weights of its own layers, and sends them to the stages that
 * share its subsequences. pipeline_replicates_weights(): all stages own all weights. */
bool pipeline_has_remote_weights(const struct choices *choices);
bool pipeline_replicates_weights(const struct choices *choices);
/* True if the stages that receive remote weights each hold an equal part of them. */
bool pipeline_shards_weights(const struct choices *choices);

uint32_t pipeline_unit_count(const struct choices *choices);
uint32_t pipeline_chunk_count(const struct choices *choices); /* number of chunks of all stages */
/* Returns the number of chunks in which a stage has a part: all, if stages share subsequences; else those that are
 * placed on it. */
uint32_t pipeline_chunk_count_of_stage(const struct choices *choices);
/* Return the v-th chunk of a stage, and the stage of a chunk. */
uint32_t pipeline_chunk_of_stage(const struct choices *choices, uint32_t stage, uint32_t v);
uint32_t pipeline_stage_of_chunk(const struct choices *choices, uint32_t chunk);

/* True if embedding and head are tied, and the first and the last stage both hold them. */
bool pipeline_ends_share_embedding(const struct choices *choices);

/* True if there are several stages, every unit passes each of them once, and a stage does a unit's whole forward or
 * backward at a time. Then a stage waits at the start, while the first unit's forward passes the stages before it; and
 * those stages wait for the unit's backward. */
bool pipeline_is_plain(const struct choices *choices);

/* True if the host waits for each message (profile switch pipeline_messages_sync). This holds only in plain pipelines,
 * since Megatron-LM overlaps the messages of interleaved ones, and has no zero-bubble schedules. */
bool pipeline_awaits_messages(const struct choices *choices);

/* Fills returns[] for the actions of a stage; stages must not share subsequences. returns[i] is the stage's first later
 * action with an input that another stage made after it had received the message of action i: the input proves that
 * this message has arrived. PIPELINE_NEVER: there is no such action, or action i sends nothing. */
#define PIPELINE_NEVER UINT32_MAX
void pipeline_implicit_acks(const struct choices *choices, uint32_t stage,
                            const struct actions *actions, uint32_t *returns);

/* Return how many layers are counted before the first layer, and after the last one, when layers are divided among
 * chunks: the embedding and the head, as --stage-layers says (Megatron-LM, get_num_layers_to_build()). */
uint32_t pipeline_layers_before(const struct choices *choices);
uint32_t pipeline_layers_after(const struct choices *choices);

/* The layers first .. end - 1 of a chunk. */
struct layer_range {
    uint32_t first, end;
};
struct layer_range pipeline_layers_of_chunk(const struct choices *choices, uint32_t chunk);

/* Returns the tokens of a sequence before its subsequence s; s = subsequences: all tokens. */
int64_t pipeline_tokens_before(const struct choices *choices, uint32_t s);

#endif

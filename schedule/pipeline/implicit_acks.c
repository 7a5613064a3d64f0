/* Finds the messages that acknowledge others. If stage B makes a message to stage A after it has received one from A,
 * the message from B proves that the one from A has arrived. */
#include "schedule/pipeline/pipeline.h"

#include "base/arena.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The places of a stage's forwards and backwards in the stage's order of actions. position_of: [FORWARD or
 * BACKWARD][chunks][units]. */
struct action_positions {
    const struct choices *c;
    uint32_t stage, chunks, units;
    uint32_t *position_of;
};

static struct action_positions index_actions_of_stage(const struct choices *c, uint32_t stage,
                                                      const struct actions *of)
{
    struct action_positions p = {c, stage, pipeline_count_chunks_of_stage(c),
                                 pipeline_unit_count(c), NULL};
    p.position_of = heap_alloc((size_t)2 * p.chunks * p.units, sizeof *p.position_of);
    for (uint32_t i = 0; i < of->count; i++) {
        const struct action *a = &of->action[i];
        if (a->kind <= ACTION_BACKWARD)
            p.position_of[((size_t)a->kind * p.chunks + a->chunk) * p.units + a->unit] = i;
    }
    return p;
}

/* Returns the index of the action of stage to->stage that reads the result of action `made` of stage `stage`;
 * PIPELINE_NO_ACTION: that stage has no such action. */
static uint32_t find_receiving_action(const struct action_positions *to, uint32_t stage,
                                      const struct action *made)
{
    if (made->kind > ACTION_BACKWARD)
        return PIPELINE_NO_ACTION;
    uint32_t chunk = pipeline_chunk_of_stage(to->c, stage, made->chunk);
    /* before chunk 0 there is none: 0 - 1 is larger than the number of any chunk */
    chunk = made->kind == ACTION_FORWARD ? chunk + 1 : chunk - 1;
    if (chunk >= pipeline_chunk_count(to->c) || pipeline_stage_of_chunk(to->c, chunk) != to->stage)
        return PIPELINE_NO_ACTION;
    uint32_t v = 0;
    while (pipeline_chunk_of_stage(to->c, to->stage, v) != chunk)
        v++;
    return to->position_of[((size_t)made->kind * to->chunks + v) * to->units + made->unit];
}

static void find_acks_of_peer(const struct action_positions *own, const struct actions *actions,
                              uint32_t peer, uint32_t *ack_action)
{
    struct actions theirs = {0};
    pipeline_add_actions_in_order(&theirs, own->c, peer);
    struct action_positions places = index_actions_of_stage(own->c, peer, &theirs);
    uint32_t *answer = heap_alloc((size_t)theirs.count + 1, sizeof *answer);
    answer[theirs.count] = PIPELINE_NO_ACTION;
    /* answer[i]: the action of this stage that reads the peer's next message to it, made by the peer's action i or a
     * later one; PIPELINE_NO_ACTION: the peer sends this stage no more messages */
    for (uint32_t i = theirs.count; i-- > 0;) {
        uint32_t ours = find_receiving_action(own, peer, &theirs.action[i]);
        answer[i] = ours != PIPELINE_NO_ACTION ? ours : answer[i + 1];
    }
    for (uint32_t i = 0; i < actions->count; i++) {
        uint32_t at = find_receiving_action(&places, own->stage, &actions->action[i]);
        if (at == PIPELINE_NO_ACTION)
            continue;
        ack_action[i] = answer[at];
        assert(ack_action[i] > i);
    }
    free(places.position_of);
    free(answer);
    actions_release(&theirs);
}

void pipeline_find_implicit_acks(const struct choices *c, uint32_t stage,
                                 const struct actions *actions, uint32_t *ack_action)
{
    struct action_positions own = index_actions_of_stage(c, stage, actions);
    memset(ack_action, 0xff, actions->count * sizeof *ack_action);
    for (uint32_t peer = 0; peer < c->pp; peer++)
        if (peer != stage)
            find_acks_of_peer(&own, actions, peer, ack_action);
    free(own.position_of);
}

/* The training step of one stage: its actions in the order of its pipeline. Without a pipeline there
 * is one stage, and no message. */
#include "schedule/step/step.h"
#include "schedule/attention/fpdt.h"
#include "schedule/step/combined.h"
#include "schedule/step/embedding_head.h"
#include "schedule/step/layer.h"
#include "schedule/step/stage.h"
#include "schedule/weights/bundles.h"
#include "schedule/weights/remote_weights.h"

#include <stdlib.h>

struct layer_saved *layer_saved_new(struct emit *e)
{
    const struct choices *c = e->choices;
    size_t layers = (size_t)c->model->layers;
    struct layer_saved *row = arena_array(&e->arena, layers, sizeof *row);
    for (size_t l = 0; l < layers; l++) {
        row[l].attention = arena_array(&e->arena, (size_t)c->micro_batch, sizeof *row->attention);
        for (int64_t i = 0; i < c->micro_batch && c->attention == CHOICE_ATTENTION_FPDT; i++)
            row[l].attention[i].chunk =
                arena_array(&e->arena, c->chunk_count, sizeof *row->attention->chunk);
        row[l].up = arena_array(&e->arena, c->ffn_chunks, sizeof *row->up);
        if (c->model->experts > 0)
            row[l].experts = arena_array(&e->arena, c->ffn_chunks, sizeof *row->experts);
        row[l].act = arena_array(&e->arena, c->ffn_chunks, sizeof *row->act);
        row[l].up_adapters = arena_array(&e->arena, c->ffn_chunks, sizeof *row->up_adapters);
        row[l].down_adapters = arena_array(&e->arena, c->ffn_chunks, sizeof *row->down_adapters);
        row[l].norm2_all = arena_array(&e->arena, c->ffn_chunks, sizeof *row->norm2_all);
    }
    return row;
}

/* ---- the ops of each kind of action ---- */

static struct layer_saved *find_or_make_layer_saved_of_unit(struct stage *s, uint32_t unit)
{
    if (s->layer_saved_by_unit[unit] == NULL)
        s->layer_saved_by_unit[unit] =
            s->unused_layer_saved_count > 0
                ? s->unused_layer_saved_rows[--s->unused_layer_saved_count]
                : layer_saved_new(s->e);
    return s->layer_saved_by_unit[unit];
}

/* Returns a new tensor of zeros, which replaces the result of the embedding, or the gradient from the head, in a scope
 * without these. */
static buffer_id new_zero_activation(struct emit *e, const char *stem)
{
    e->op_tags.region = REGION_NONE;
    return emit_zeros(e, emit_compute_tensor(e, stem, CATEGORY_ACTIVATION, e->unit.own_rows,
                                             e->choices->model->hidden))
        .buffer;
}

static void emit_forward(struct stage *s, const struct action *action)
{
    struct emit *e = s->e;
    uint32_t chunk = pipeline_chunk_of_stage(s->choices, e->stage, action->chunk);
    struct layer_range layers = pipeline_layers_of_chunk(s->choices, chunk);
    stage_set_unit(s, chunk, action->unit, PHASE_FORWARD);
    e->layer_saved = find_or_make_layer_saved_of_unit(s, action->unit);
    buffer_id x;
    if (chunk > 0)
        x = stage_input(s, action);
    else
        x = s->choices->scope == SCOPE_WHOLE_STEP ? embedding_forward(e)
                                                  : new_zero_activation(e, "x");
    for (uint32_t l = layers.first; l < layers.end; l++) {
        e->op_tags.layer = (uint16_t)l;
        e->combined_fwd_bwd.layer_index_in_emission_order = l - layers.first;
        x = layer_forward(e, l, x);
    }
    e->op_tags.layer = IR_NONE16;
    stage_send_result(s, PASS_FORWARD, action, x);
}

static bool delays_weight_gradients(const struct choices *c)
{
    return c->expert_overlap == EXPERT_OVERLAP_DELAYED_WGRAD;
}

static void emit_backward(struct stage *s, const struct action *action)
{
    struct emit *e = s->e;
    uint32_t chunk = pipeline_chunk_of_stage(s->choices, e->stage, action->chunk);
    bool last = chunk + 1 == pipeline_chunk_count(s->choices);
    struct layer_range layers = pipeline_layers_of_chunk(s->choices, chunk);
    stage_set_unit(s, chunk, action->unit, last ? PHASE_FORWARD : PHASE_BACKWARD);
    e->layer_saved = find_or_make_layer_saved_of_unit(s, action->unit);
    if (pipeline_has_remote_weights(s->choices))
        weights_choose_gradients_of_unit(e);
    else
        weights_choose_grads_of_micro_batch(e, action->unit / s->choices->subsequences);
    struct deferred_gradient_list *deferred_gradient_list =
        &stage_passage(s, action->chunk, action->unit)->deferred_gradient_list;
    if (s->pipeline->splits_backward)
        e->weights.deferred = deferred_gradient_list;
    buffer_id dx = stage_input(s, action);
    if (last)
        dx = s->choices->scope == SCOPE_WHOLE_STEP ? head_and_loss(e, dx)
                                                   : new_zero_activation(e, "dx");
    e->op_tags.phase = PHASE_BACKWARD;
    const bool delays = delays_weight_gradients(s->choices);
    if (delays)
        e->weights.deferred = deferred_gradient_list;
    for (uint32_t l = layers.end; l-- > layers.first;) {
        e->op_tags.layer = (uint16_t)l;
        e->combined_fwd_bwd.layer_index_in_emission_order = layers.end - 1 - l;
        dx = layer_backward(e, l, dx);
        if (delays && l > layers.first)
            emit_gradients_delayed_for_overlap(e);
    }
    e->op_tags.layer = IR_NONE16;
    stage_send_result(s, PASS_BACKWARD, action, dx);
    if (delays) { /* those of the first layer are computed while the result is sent */
        emit_gradients_delayed_for_overlap(e);
        e->weights.deferred = NULL;
    }
    emit_add_late_products_to_grads(e); /* a tied embedding adds to the head's gradient */
    if (chunk == 0 && s->choices->scope == SCOPE_WHOLE_STEP)
        embedding_backward(e, dx);
    e->weights.deferred = NULL;
    if (--s->actions_left_by_unit[action->unit] == 0)
        s->unused_layer_saved_rows[s->unused_layer_saved_count++] =
            s->layer_saved_by_unit[action->unit];
}

static void emit_weight_gradients(struct stage *s, const struct action *action)
{
    stage_set_unit(s, pipeline_chunk_of_stage(s->choices, s->e->stage, action->chunk), action->unit,
                   PHASE_BACKWARD);
    weights_choose_grads_of_micro_batch(s->e, action->unit / s->choices->subsequences);
    emit_deferred_gradients(s->e,
                            &stage_passage(s, action->chunk, action->unit)->deferred_gradient_list);
    emit_add_late_products_to_grads(s->e);
}

/* ---- messages between actions ---- */

/* Returns the index of the first action from i on that is neither ACTION_SEND_KV nor ACTION_RETURN_KV; actions->count
 * if there is none. */
static uint32_t next_compute_action(const struct actions *actions, uint32_t i)
{
    while (i < actions->count && actions->action[i].kind >= ACTION_SEND_KV)
        i++;
    return i;
}

/* Emits the messages between the actions `done` and `next` as Megatron-LM's schedules.py does. Between a forward and a
 * backward, sending and receiving are one call (send_forward_recv_backward(), send_backward_recv_forward()), so the
 * host waits once. Between two forwards or two backwards it waits for the send before it posts the receive. next NULL:
 * `done` is the last action. */
static void emit_messages_between_actions(struct stage *s, const struct action *done,
                                          const struct action *next)
{
    if (next == NULL || next->kind == done->kind)
        stage_await_messages(s);
    if (next != NULL)
        stage_post_receives_of_action(s, next);
    stage_await_messages(s);
}

/* ---- messages whose arrival later data proves ---- */

/* An action's message, and the list of earlier actions whose messages are known to have arrived once this action has
 * its input. */
struct message_arrival {
    op_id send_op; /* the send of this action's message */
    /* 1 + the next action in the list that has this action: the same input proves the arrival of both messages; 0: this
     * is the last one */
    uint32_t next_action_proven_by_same;
    /* 1 + the first action whose message this action's input proves to have arrived; 0: there is none */
    uint32_t first_action_proven_by_this;
};

/* The messages whose arrival later data from the receiver proves. The bytes of a sent message may be reused only if a
 * compute op waits for the send; an op that starts after the proof loses no time by that wait. */
struct message_arrivals {
    /* [actions] the action whose input proves that this action's message has arrived (pipeline_find_implicit_acks());
     * NULL: nothing is recorded */
    uint32_t *ack_action;
    struct message_arrival *action; /* [actions] */
};

static struct message_arrivals new_message_arrivals(const struct stage *s,
                                                    const struct actions *actions)
{
    struct message_arrivals a = {0};
    size_t count = (size_t)actions->count + 1;
    if (s->choices->pp == 1 || s->pipeline->is_multiplexed ||
        s->choices->scope == SCOPE_ALL_LAYERS_FORWARD)
        return a;
    a.ack_action = arena_array(&s->e->arena, count, sizeof *a.ack_action);
    a.action = arena_array(&s->e->arena, count, sizeof *a.action);
    pipeline_find_implicit_acks(s->choices, s->e->stage, actions, a.ack_action);
    return a;
}

/* Records action i, which has been emitted from op `begin` on. If its input proves that messages have arrived, its
 * first compute op waits for their sends, which costs no time. If its own message will be proven to have arrived, adds
 * it to the list of the action that proves it. */
static void record_proven_message_arrivals(struct stage *s, struct message_arrivals *a, uint32_t i,
                                           uint32_t begin)
{
    const struct ir *ir = s->e->ir;
    if (a->ack_action == NULL)
        return;
    while (begin < ir->op.count && ir->op.stream[begin] != s->e->stream.compute)
        begin++;
    for (uint32_t k = a->action[i].first_action_proven_by_this; begin < ir->op.count && k > 0;
         k = a->action[k - 1].next_action_proven_by_same)
        emit_add_dependency(s->e, (op_id){begin}, a->action[k - 1].send_op);
    if (s->last_message.i == IR_NONE || a->ack_action[i] == PIPELINE_NO_ACTION)
        return;
    uint32_t *first = &a->action[a->ack_action[i]].first_action_proven_by_this;
    a->action[i].send_op = s->last_message;
    a->action[i].next_action_proven_by_same = *first;
    *first = i + 1;
}

/* ---- all actions ---- */

static void perform_actions(struct stage *s, const struct actions *actions)
{
    static void (*const what[ACTION_KIND_COUNT])(struct stage *, const struct action *) = {
        [ACTION_FORWARD] = emit_forward,
        [ACTION_BACKWARD] = emit_backward,
        [ACTION_WEIGHT_GRADIENTS] = emit_weight_gradients,
        [ACTION_SEND_KV] = stage_send_kv,
        [ACTION_RETURN_KV] = stage_return_kv,
    };
    uint32_t next = next_compute_action(actions, 0);
    bool awaits = pipeline_awaits_messages(s->choices);
    struct message_arrivals arrivals = new_message_arrivals(s, actions);
    if (next < actions->count)
        stage_post_receives_of_action(s, &actions->action[next]);
    stage_await_messages(s);
    for (uint32_t i = 0; i < actions->count; i++) {
        if (i == next && !awaits) {
            next = next_compute_action(actions, i + 1);
            if (next < actions->count)
                stage_post_receives_of_action(s, &actions->action[next]);
        }
        const bool ends_two = i > 0 && actions->action[i - 1].is_beside_next_action;
        if (actions->action[i].is_beside_next_action)
            combined_begin_forward(s->e);
        if (ends_two)
            combined_begin_backward(s->e);
        uint32_t begin = s->e->ir->op.count;
        s->last_message.i = IR_NONE;
        what[actions->action[i].kind](s, &actions->action[i]);
        if (ends_two)
            combined_end(s->e);
        record_proven_message_arrivals(s, &arrivals, i, begin);
        if (awaits)
            emit_messages_between_actions(s, &actions->action[i],
                                          i + 1 < actions->count ? &actions->action[i + 1] : NULL);
    }
}

static void remove_backward_actions(struct actions *actions)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < actions->count; i++)
        if (actions->action[i].kind == ACTION_FORWARD || actions->action[i].kind == ACTION_SEND_KV)
            actions->action[count++] = actions->action[i];
    actions->count = count;
}

void emit_step(struct emit *e)
{
    const struct choices *c = e->choices;
    struct stage s = {.e = e,
                      .choices = c,
                      .pipeline = pipeline_of_choices(c),
                      .unit_count = pipeline_unit_count(c),
                      .chunk_count = pipeline_count_chunks_of_stage(c)};
    struct actions actions = {0};
    size_t passages = (size_t)s.chunk_count * s.unit_count;
    s.passage_by_chunk_and_unit =
        arena_array(&e->arena, passages, sizeof *s.passage_by_chunk_and_unit);
    s.layer_saved_by_unit = arena_array(&e->arena, s.unit_count, sizeof(struct layer_saved *));
    s.unused_layer_saved_rows = arena_array(&e->arena, s.unit_count, sizeof(struct layer_saved *));
    if (c->subsequences > 1)
        s.prefix = arena_array(&e->arena, c->accumulation, sizeof(struct prefix *));
    s.actions_left_by_unit = arena_array(&e->arena, s.unit_count, sizeof *s.actions_left_by_unit);
    for (size_t i = 0; i < passages; i++)
        for (int pass = 0; pass < PASS_COUNT; pass++)
            s.passage_by_chunk_and_unit[i].input[pass].i =
                s.passage_by_chunk_and_unit[i].output[pass].i = IR_NONE;
    stage_make_streams(&s);
    pipeline_add_actions_in_order(&actions, c, e->stage);
    if (c->scope == SCOPE_ALL_LAYERS_FORWARD)
        remove_backward_actions(&actions);
    for (uint32_t i = 0; i < actions.count; i++)
        s.actions_left_by_unit[actions.action[i].unit] += actions.action[i].kind == ACTION_BACKWARD;
    perform_actions(&s, &actions);
    actions_release(&actions);
    free(s.inbound_messages);
}

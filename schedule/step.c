/* The training step of one stage: its actions in the order of its pipeline, and the messages that
 * they need. Without a pipeline there is one stage, and no message.
 *
 * What an action needs from a neighbour is received from the start of the action before on, on a
 * stream of its own: one message ahead, and no more memory than that. What it makes is sent as soon
 * as it is there. Messages of one direction of travel of the same pass stand in one order on both
 * sides, so a stream each for sends and receives of it cannot block; a pipeline that is folded has
 * both passes in both directions, hence lanes. */
#include "schedule/attention/fpdt.h"
#include "schedule/layers.h"
#include "schedule/pipeline/pipeline.h"

#include <stdlib.h>
#include <string.h>

enum { FORWARD, BACKWARD, PASSES };

struct layer_saved *saved_new(struct emit *e)
{
    const struct choices *c = e->choices;
    size_t layers = (size_t)c->model->layers;
    struct layer_saved *row = arena_array(&e->arena, layers, sizeof *row);
    for (size_t l = 0; l < layers; l++) {
        row[l].attention = arena_array(&e->arena, (size_t)c->micro_batch, sizeof *row->attention);
        for (int64_t i = 0; i < c->micro_batch && c->attention == CHOICE_ATTENTION_FPDT; i++)
            row[l].attention[i].chunk =
                arena_array(&e->arena, c->chunks, sizeof *row->attention->chunk);
        row[l].up = arena_array(&e->arena, c->ffn_chunks, sizeof *row->up);
        row[l].act = arena_array(&e->arena, c->ffn_chunks, sizeof *row->act);
    }
    return row;
}

/* One unit on its way through one chunk of the stage. */
struct passage {
    buffer_id at[PASSES]; /* what the pass starts from here; IR_NONE: nothing yet */
    struct deferrals deferrals;
};

struct stage {
    struct emit *e;
    const struct choices *c;
    const struct pipeline *pipeline;
    uint32_t units, chunks;     /* chunks: of the stage */
    struct passage *passage;    /* chunk * units + unit */
    struct layer_saved **saved; /* per unit */
    struct layer_saved **spare; /* a stack: of units that are done */
    uint32_t spare_count;
    struct prefix **prefix; /* per micro-batch, one per layer; NULL: no subsequences */
    uint32_t *left;         /* per unit: actions until its saved rows are free */
    uint8_t send[PASSES][2], recv[PASSES][2]; /* streams, by pass and lane */
};

static struct passage *passage(struct stage *s, uint32_t chunk, uint32_t unit)
{
    return &s->passage[chunk * s->units + unit];
}

/* ---- messages ---- */

static uint8_t lane_of(const struct stage *s, uint32_t chunk)
{
    return s->pipeline->folded && chunk >= s->c->pp;
}

static void make_streams(struct stage *s)
{
    static const char *const names[PASSES][2][2] = {
        {{"comm.send", "comm.recv"}, {"comm.send_up", "comm.recv_up"}},
        {{"comm.send_back", "comm.recv_back"}, {"comm.send_back_up", "comm.recv_back_up"}},
    };
    for (int pass = 0; s->c->pp > 1 && pass < PASSES; pass++)
        for (int lane = 0; lane <= s->pipeline->folded; lane++) {
            s->send[pass][lane] = ir_add_stream(s->e->ir, names[pass][lane][0], STREAM_COMM);
            s->recv[pass][lane] = ir_add_stream(s->e->ir, names[pass][lane][1], STREAM_COMM);
        }
}

/* A message of the pass between chunk `from` and chunk `to`, this stage's side of it. */
static op_id message(struct stage *s, enum work_kind kind, int pass, uint32_t from, uint32_t to,
                     buffer_id x)
{
    struct emit *e = s->e;
    bool sends = kind == WORK_SEND;
    uint32_t peer = pipeline_stage(s->c, sends ? to : from);
    uint8_t lane = lane_of(s, from < to ? from : to);
    struct view view = view_all(e, x);
    struct work work = {.kind = (uint8_t)kind,
                        .p2p = {e->pp_group, (int64_t)peer - e->stage,
                                (int64_t)ir_buffer_bytes(e->ir, x), pass + PASSES * lane, 0}};
    return emit_op(e, sends ? s->send[pass][lane] : s->recv[pass][lane], &work, &view, sends, &view,
                   !sends);
}

static struct prefix *prefix_of(struct stage *s, uint32_t micro)
{
    if (s->prefix[micro] == NULL)
        s->prefix[micro] =
            arena_array(&s->e->arena, (size_t)s->c->model->layers, sizeof(struct prefix));
    return s->prefix[micro];
}

static void set_unit(struct stage *s, uint32_t unit, enum phase phase)
{
    struct emit *e = s->e;
    const struct choices *c = s->c;
    uint32_t k = c->subsequences, part = unit % k;
    int64_t ranks = (int64_t)c->cp * c->hp, begin = pipeline_prefix(c, part) / ranks;
    int64_t n = c->seq / ranks, end = pipeline_prefix(c, part + 1) / ranks;
    e->subsequence = part;
    e->prefix = s->prefix ? prefix_of(s, unit / k) : NULL;
    e->n = end - begin;
    e->rows = e->n * c->micro_batch;
    e->own_n = e->n / c->tp;
    e->own_rows = e->own_n * c->micro_batch;
    e->first_token = begin;
    e->first_row = (int64_t)(unit / k) * n * c->micro_batch + begin;
    e->tags = (struct op_tags){(uint8_t)phase, REGION_NONE, IR_NONE16,
                               IR_NONE16,      IR_NONE16,   (uint16_t)unit};
}

/* Posts the receive of what an action needs, if it comes from another stage: behind all compute
 * that was emitted so far. */
static void receive(struct stage *s, const struct action *action)
{
    struct emit *e = s->e;
    uint32_t chunk = pipeline_chunk(s->c, e->stage, action->chunk),
             last = pipeline_chunks(s->c) - 1;
    int pass = action->kind == ACTION_FORWARD ? FORWARD : BACKWARD;
    if (action->kind == ACTION_WEIGHTS || chunk == (pass == FORWARD ? 0 : last))
        return;
    uint32_t from = pass == FORWARD ? chunk - 1 : chunk + 1;
    if (pipeline_stage(s->c, from) == e->stage)
        return;
    set_unit(s, action->unit, pass == FORWARD ? PHASE_FORWARD : PHASE_BACKWARD);
    buffer_id x =
        emit_activation(e, pass == FORWARD ? "x" : "dx", e->own_rows, s->c->model->hidden);
    op_id op = message(s, WORK_RECV, pass, from, chunk, x);
    if (e->last_compute.i != IR_NONE)
        emit_hold_back(e, op, e->last_compute);
    passage(s, action->chunk, action->unit)->at[pass] = x;
}

/* What a pass made in a chunk goes on to the next one. */
static void pass_on(struct stage *s, int pass, uint32_t chunk, uint32_t to, uint32_t unit,
                    buffer_id x)
{
    struct emit *e = s->e;
    for (uint32_t v = 0; v < s->chunks; v++)
        if (pipeline_chunk(s->c, e->stage, v) == to) {
            passage(s, v, unit)->at[pass] = x;
            return;
        }
    e->tags.region = REGION_NONE;
    message(s, WORK_SEND, pass, chunk, to, x);
}

/* ---- actions ---- */

static struct layer_saved *saved_of(struct stage *s, uint32_t unit)
{
    if (s->saved[unit] == NULL) {
        s->saved[unit] = s->spare_count > 0 ? s->spare[--s->spare_count] : saved_new(s->e);
        s->left[unit] = s->chunks;
    }
    return s->saved[unit];
}

/* Something to start from where the embedding or the head are left out. */
static buffer_id stand_in(struct emit *e, const char *stem)
{
    e->tags.region = REGION_NONE;
    buffer_id x = emit_activation(e, stem, e->own_rows, e->choices->model->hidden);
    struct work work = {.kind = WORK_FILL,
                        .elements = {e->own_rows * e->choices->model->hidden, 0}};
    emit_op(e, e->compute, &work, NULL, 0, (struct view[]){view_all(e, x)}, 1);
    return x;
}

static void forward(struct stage *s, const struct action *action)
{
    struct emit *e = s->e;
    uint32_t chunk = pipeline_chunk(s->c, e->stage, action->chunk);
    struct layer_range layers = pipeline_layers(s->c, chunk);
    buffer_id x = passage(s, action->chunk, action->unit)->at[FORWARD];
    set_unit(s, action->unit, PHASE_FORWARD);
    e->saved = saved_of(s, action->unit);
    if (chunk == 0)
        x = s->c->scope == SCOPE_STEP ? embedding_forward(e) : stand_in(e, "x");
    for (uint32_t l = layers.first; l < layers.end; l++) {
        e->tags.layer = (uint16_t)l;
        x = layer_forward(e, l, x);
    }
    e->tags.layer = IR_NONE16;
    if (chunk + 1 < pipeline_chunks(s->c))
        pass_on(s, FORWARD, chunk, chunk + 1, action->unit, x);
    else
        passage(s, action->chunk, action->unit)->at[BACKWARD] = x;
}

static void backward(struct stage *s, const struct action *action)
{
    struct emit *e = s->e;
    uint32_t chunk = pipeline_chunk(s->c, e->stage, action->chunk);
    struct layer_range layers = pipeline_layers(s->c, chunk);
    struct passage *here = passage(s, action->chunk, action->unit);
    buffer_id dx = here->at[BACKWARD];
    set_unit(s, action->unit, PHASE_FORWARD);
    e->saved = saved_of(s, action->unit);
    weights_of_micro_batch(e, action->unit / s->c->subsequences);
    e->defers = s->pipeline->splits ? &here->deferrals : NULL;
    if (chunk + 1 == pipeline_chunks(s->c))
        dx = s->c->scope == SCOPE_STEP ? head(e, dx) : stand_in(e, "dx");
    e->tags.phase = PHASE_BACKWARD;
    for (uint32_t l = layers.end; l-- > layers.first;) {
        e->tags.layer = (uint16_t)l;
        dx = layer_backward(e, l, dx);
    }
    e->tags.layer = IR_NONE16;
    if (chunk > 0)
        pass_on(s, BACKWARD, chunk, chunk - 1, action->unit, dx);
    else if (s->c->scope == SCOPE_STEP)
        embedding_backward(e, dx);
    e->defers = NULL;
    if (--s->left[action->unit] == 0)
        s->spare[s->spare_count++] = s->saved[action->unit];
}

static void weight_gradients(struct stage *s, const struct action *action)
{
    set_unit(s, action->unit, PHASE_BACKWARD);
    weights_of_micro_batch(s->e, action->unit / s->c->subsequences);
    emit_deferred(s->e, &passage(s, action->chunk, action->unit)->deferrals);
}

static void perform(struct stage *s, const struct actions *actions)
{
    static void (*const what[ACTION_KIND_COUNT])(struct stage *, const struct action *) = {
        [ACTION_FORWARD] = forward,
        [ACTION_BACKWARD] = backward,
        [ACTION_WEIGHTS] = weight_gradients,
    };
    for (uint32_t i = 0; i < actions->count; i++) {
        if (i == 0)
            receive(s, &actions->action[0]);
        if (i + 1 < actions->count)
            receive(s, &actions->action[i + 1]);
        what[actions->action[i].kind](s, &actions->action[i]);
    }
}

static void leave_forward(struct actions *actions)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < actions->count; i++)
        if (actions->action[i].kind == ACTION_FORWARD)
            actions->action[count++] = actions->action[i];
    actions->count = count;
}

void emit_step(struct emit *e)
{
    const struct choices *c = e->choices;
    struct stage s = {.e = e,
                      .c = c,
                      .pipeline = pipeline_of(c),
                      .units = pipeline_units(c),
                      .chunks = c->virtual_stages};
    struct actions actions = {0};
    size_t passages = (size_t)s.chunks * s.units;
    s.passage = heap_zalloc(passages, sizeof *s.passage);
    s.saved = heap_zalloc(s.units, sizeof(struct layer_saved *));
    s.spare = heap_zalloc(s.units, sizeof(struct layer_saved *));
    if (c->subsequences > 1)
        s.prefix = heap_zalloc(c->accumulation, sizeof(struct prefix *));
    s.left = heap_zalloc(s.units, sizeof *s.left);
    for (size_t i = 0; i < passages; i++)
        s.passage[i].at[FORWARD].i = s.passage[i].at[BACKWARD].i = IR_NONE;
    make_streams(&s);
    s.pipeline->order(&actions, c, e->stage);
    if (c->scope == SCOPE_LAYERS_FORWARD)
        leave_forward(&actions);
    perform(&s, &actions);
    actions_release(&actions);
    free(s.passage);
    free(s.saved);
    free(s.spare);
    free(s.left);
    free(s.prefix);
}

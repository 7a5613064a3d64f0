/* tests/schedule/test_orders.c: the order of actions of each pipeline but the multiplexed one (msp), for all small
 * sizes: it is complete, follows the order that the parts of a sequence need, has no cycle of stages that wait for each
 * other, and has as many units in flight as the formulae say. */
#include "models/transformer.h"
#include "schedule/pipeline/pipeline.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>

enum { STAGES_MAX = 6, CHUNKS_MAX = 4, UNITS_MAX = 24 };

/* The choices of a pipeline, the actions of each stage in their order, and a label for messages. */
struct pipeline_action_lists {
    struct choices choices;
    struct actions list[STAGES_MAX];
    char label[96];
};

/* Makes the lists of actions of a pipeline. Returns false, and makes none, if the pipeline is multiplexed, does not
 * support these sizes, or would overlap exchanges of subsequences, or if there are more than UNITS_MAX units. */
static bool make_action_lists(struct pipeline_action_lists *s, int pipeline, uint32_t pp,
                              uint32_t chunks, uint32_t pieces, uint32_t batches,
                              enum expert_overlap overlap)
{
    static const struct transformer model = {.layers = STAGES_MAX * CHUNKS_MAX};
    uint32_t units = pieces * batches;
    const struct pipeline *row = pipeline_of_choice((enum pipeline_choice)pipeline);
    *s = (struct pipeline_action_lists){.choices = {.model = &model,
                                                    .pipeline = (uint8_t)pipeline,
                                                    .pp = pp,
                                                    .virtual_stages = chunks,
                                                    .subsequences = pieces,
                                                    .accumulation = batches,
                                                    .expert_overlap = (uint8_t)overlap}};
    if (units > UNITS_MAX || (row->chunks_per_stage > 0 && row->chunks_per_stage != chunks) ||
        (row->chunks_per_stage == 0 && units % pp != 0) || (!row->has_subsequences && pieces > 1) ||
        row->is_multiplexed || (overlap != EXPERT_OVERLAP_NONE && pieces > 1))
        return false;
    for (uint32_t stage = 0; stage < pp; stage++)
        pipeline_add_actions_in_order(&s->list[stage], &s->choices, stage);
    snprintf(s->label, sizeof s->label, "%s pp %u x %u, %u x %u units", row->name, pp, chunks,
             batches, pieces);
    return true;
}

static void pipeline_action_lists_release(struct pipeline_action_lists *s)
{
    for (uint32_t stage = 0; stage < s->choices.pp; stage++)
        actions_release(&s->list[stage]);
}

typedef void size_function(const struct pipeline_action_lists *s);

static void for_all_pipeline_sizes(int pipeline, enum expert_overlap overlap, size_function *check)
{
    const bool alone = pipeline == CHOICE_PIPELINE_NONE;
    for (uint32_t pp = alone ? 1 : 2; pp <= (alone ? 1 : (uint32_t)STAGES_MAX); pp++)
        for (uint32_t chunks = 1; chunks <= CHUNKS_MAX; chunks++)
            for (uint32_t pieces = 1; pieces <= 8; pieces++)
                for (uint32_t batches = 1; batches * pieces <= UNITS_MAX; batches++) {
                    struct pipeline_action_lists s;
                    if (!make_action_lists(&s, pipeline, pp, chunks, pieces, batches, overlap))
                        continue;
                    check(&s);
                    pipeline_action_lists_release(&s);
                }
}

/* The actions that are done: of[chunk of all stages][unit], a bit per kind of action. */
struct done_actions {
    uint8_t of[STAGES_MAX * CHUNKS_MAX][UNITS_MAX];
};

static bool done(const struct done_actions *p, uint32_t chunk, uint32_t unit, enum action_kind kind)
{
    return p->of[chunk][unit] >> kind & 1;
}

/* True if all that an action needs has been done, on any stage. */
static bool inputs_are_done(const struct pipeline_action_lists *s, const struct done_actions *p,
                            uint32_t chunk, uint32_t unit, enum action_kind kind)
{
    uint32_t k = s->choices.subsequences, last = pipeline_chunk_count(&s->choices) - 1;
    switch (kind) {
    case ACTION_FORWARD:
        return (chunk == 0 || done(p, chunk - 1, unit, kind)) &&
               (unit % k == 0 || done(p, chunk, unit - 1, kind));
    case ACTION_BACKWARD:
        return done(p, chunk, unit, ACTION_FORWARD) &&
               (chunk == last || done(p, chunk + 1, unit, kind)) &&
               (unit % k == k - 1 || done(p, chunk, unit + 1, kind));
    default:
        return done(p, chunk, unit, ACTION_BACKWARD);
    }
}

/* Does the next action of a stage, or, if the one after it runs beside it, both, if all that they need has been done.
 * Returns their number, or 0. */
static uint32_t run_next_actions(const struct pipeline_action_lists *s,
                                 struct done_actions *done_actions, uint32_t stage, uint32_t next)
{
    const struct action *action = &s->list[stage].action[next];
    const uint32_t count = action->is_beside_next_action ? 2 : 1;
    CHECK(s->label, next + count <= s->list[stage].count);
    for (uint32_t i = 0; i < count; i++)
        if (!inputs_are_done(s, done_actions,
                             pipeline_chunk_of_stage(&s->choices, stage, action[i].chunk),
                             action[i].unit, (enum action_kind)action[i].kind))
            return 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t chunk = pipeline_chunk_of_stage(&s->choices, stage, action[i].chunk);
        CHECK(s->label,
              !done(done_actions, chunk, action[i].unit, (enum action_kind)action[i].kind));
        done_actions->of[chunk][action[i].unit] |= (uint8_t)(1u << action[i].kind);
    }
    return count;
}

/* Checks that stages which run their actions as soon as their inputs exist all reach the ends of their lists, and
 * that each action is listed once. */
static void check_all_stages_end(const struct pipeline_action_lists *s)
{
    struct done_actions done_actions = {0};
    uint32_t next[STAGES_MAX] = {0}, left = 0;
    bool moves = true;
    for (uint32_t stage = 0; stage < s->choices.pp; stage++)
        left += s->list[stage].count;
    uint32_t kinds = pipeline_of_choices(&s->choices)->splits_backward ? 3 : 2;
    CHECK_INT(s->label, left,
              pipeline_chunk_count(&s->choices) * pipeline_unit_count(&s->choices) * kinds);
    while (moves) {
        moves = false;
        for (uint32_t stage = 0; stage < s->choices.pp; stage++)
            while (next[stage] < s->list[stage].count) {
                const uint32_t count = run_next_actions(s, &done_actions, stage, next[stage]);
                if (count == 0)
                    break;
                next[stage] += count;
                left -= count;
                moves = true;
            }
    }
    CHECK_INT(s->label, left, 0);
}

/* Checks which actions run beside the next one. With more micro-batches than stages these are the
 * last forward before the first backward and all later forwards, each beside the backward that
 * follows it. Otherwise there are none. */
static void check_actions_beside(const struct pipeline_action_lists *s)
{
    const bool has_pairs = s->choices.accumulation > s->choices.pp;
    for (uint32_t stage = 0; stage < s->choices.pp; stage++) {
        const struct actions *list = &s->list[stage];
        uint32_t first_backward = 0;
        while (first_backward < list->count && list->action[first_backward].kind == ACTION_FORWARD)
            first_backward++;
        for (uint32_t i = 0; i < list->count; i++) {
            const bool runs_beside =
                has_pairs && i + 1 >= first_backward && list->action[i].kind == ACTION_FORWARD;
            CHECK_INT(s->label, list->action[i].is_beside_next_action, runs_beside);
            if (runs_beside)
                CHECK(s->label, i + 1 < list->count && list->action[i + 1].kind == ACTION_BACKWARD);
        }
    }
}

static void forwards_run_beside_backwards(void)
{
    for_all_pipeline_sizes(CHOICE_PIPELINE_NONE, EXPERT_OVERLAP_MICRO_BATCH, check_actions_beside);
    for_all_pipeline_sizes(CHOICE_PIPELINE_INTERLEAVED, EXPERT_OVERLAP_MICRO_BATCH,
                           check_actions_beside);
}

static void all_stages_finish_their_actions(void)
{
    for (int p = CHOICE_PIPELINE_GPIPE; p < CHOICE_PIPELINE_COUNT; p++)
        for_all_pipeline_sizes(p, EXPERT_OVERLAP_NONE, check_all_stages_end);
    for_all_pipeline_sizes(CHOICE_PIPELINE_NONE, EXPERT_OVERLAP_MICRO_BATCH, check_all_stages_end);
    for_all_pipeline_sizes(CHOICE_PIPELINE_INTERLEAVED, EXPERT_OVERLAP_MICRO_BATCH,
                           check_all_stages_end);
}

/* Returns the highest number of unit-chunk pairs whose saved activations a stage has at one time. */
static uint32_t in_flight(const struct pipeline_action_lists *s, uint32_t stage)
{
    enum action_kind last = pipeline_of_choices(&s->choices)->splits_backward
                                ? ACTION_WEIGHT_GRADIENTS
                                : ACTION_BACKWARD;
    uint32_t now = 0, most = 0;
    for (uint32_t i = 0; i < s->list[stage].count; i++) {
        now += s->list[stage].action[i].kind == ACTION_FORWARD;
        most = now > most ? now : most;
        now -= s->list[stage].action[i].kind == last;
    }
    return most;
}

/* Checks the number of unit-chunk pairs in flight on stage p of P, with V chunks on a stage and k
 * subsequences in a micro-batch. It is at most V N (N units). It is 2 (P - 1 - p) + (V - 1) P + k
 * if k divides P. If P divides k, (V - 1) P counts k / P times: as many groups of P units pass the
 * other chunks before the last unit of a micro-batch is in the last chunk. Other sizes are not
 * checked, nor P micro-batches of one unit. */
static void check_interleaved_units_in_flight(const struct pipeline_action_lists *s)
{
    const struct choices *c = &s->choices;
    uint32_t p = c->pp, k = c->subsequences, v = c->virtual_stages,
             all = pipeline_unit_count(c) * v;
    uint32_t groups = k % p == 0 ? k / p : 1;
    if ((p % k != 0 && k % p != 0) || (k == 1 && c->accumulation == p))
        return;
    for (uint32_t stage = 0; stage < p; stage++) {
        uint32_t want = 2 * (p - 1 - stage) + groups * (v - 1) * p + k;
        want += c->expert_overlap != EXPERT_OVERLAP_NONE; /* a forward beside the backward */
        CHECK_INT(s->label, in_flight(s, stage), want < all ? want : all);
    }
}

/* Checks that P + k - 1 units are in flight in each of both chunks, on every stage, if there are 2
 * P - 2 + k units or more. */
static void check_zb_v_units_in_flight(const struct pipeline_action_lists *s)
{
    const struct choices *c = &s->choices;
    uint32_t p = c->pp, k = c->subsequences;
    for (uint32_t stage = 0; stage < p && pipeline_unit_count(c) >= 2 * p - 2 + k; stage++)
        CHECK_INT(s->label, in_flight(s, stage), 2 * (p + k - 1));
}

/* Checks that P - 1 - p + k units are in flight on stage p, or all units if they are fewer. */
static void check_seq1f1b_units_in_flight(const struct pipeline_action_lists *s)
{
    const struct choices *c = &s->choices;
    for (uint32_t stage = 0; stage < c->pp; stage++) {
        uint32_t want = c->pp - 1 - stage + c->subsequences, all = pipeline_unit_count(c);
        CHECK_INT(s->label, in_flight(s, stage), want < all ? want : all);
    }
}

static void units_in_flight_are_those_of_the_formulae(void)
{
    for_all_pipeline_sizes(CHOICE_PIPELINE_SEQ1F1B, EXPERT_OVERLAP_NONE,
                           check_seq1f1b_units_in_flight);
    for_all_pipeline_sizes(CHOICE_PIPELINE_INTERLEAVED, EXPERT_OVERLAP_NONE,
                           check_interleaved_units_in_flight);
    for_all_pipeline_sizes(CHOICE_PIPELINE_INTERLEAVED, EXPERT_OVERLAP_MICRO_BATCH,
                           check_interleaved_units_in_flight);
    for_all_pipeline_sizes(CHOICE_PIPELINE_ZB_V, EXPERT_OVERLAP_NONE, check_zb_v_units_in_flight);
}

/* The second row is Llama 3.1 405B in Megatron-Bridge: 126 layers in 32 chunks, 4 each, of which the embedding and the
 * head take one. */
static void layers_of_chunks_are_those_asked_for(void)
{
    static const struct {
        int64_t layers;
        uint32_t pp, virtual_stages;
        enum stage_layers counted;
        uint32_t first, second, last; /* the layers of these chunks */
    } rows[] = {
        /* layers, pp, virtual_stages, counted, first, second, last */
        {126, 8, 4, STAGE_LAYERS_EVEN, 3, 4, 4},
        {126, 8, 4, STAGE_LAYERS_AND_BOTH_ENDS, 3, 4, 3},
        {7, 2, 1, STAGE_LAYERS_AND_HEAD, 4, 3, 3},
        {7, 2, 1, STAGE_LAYERS_AND_EMBEDDING, 3, 4, 4},
        {32, 4, 1, STAGE_LAYERS_AND_HEAD, 8, 8, 8},
        {30, 4, 1, STAGE_LAYERS_AND_BOTH_ENDS, 7, 8, 7},
        {30, 1, 1, STAGE_LAYERS_AND_BOTH_ENDS, 30, 30, 30},
        /* a layer costs 160, the head 400, so 2.5 layers: shares of 26.5 / 2, of 26.5 / 4 and of 26.5 / 8 layers */
        {24, 2, 1, STAGE_LAYERS_BY_COST, 14, 10, 10},
        {24, 4, 1, STAGE_LAYERS_BY_COST, 7, 7, 4},
        {24, 8, 1, STAGE_LAYERS_BY_COST, 4, 3, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct transformer model = {
            .layers = rows[i].layers, .heads = 5, .head_dim = 2, .ffn = 40, .vocab = 400};
        const struct choices c = {.model = &model,
                                  .pp = rows[i].pp,
                                  .virtual_stages = rows[i].virtual_stages,
                                  .stage_layers = (uint8_t)rows[i].counted};
        const uint32_t chunks = pipeline_chunk_count(&c);
        const uint32_t asked[] = {0, chunks > 1 ? 1 : 0, chunks - 1};
        const uint32_t want[] = {rows[i].first, rows[i].second, rows[i].last};
        uint32_t next = 0;
        for (uint32_t chunk = 0; chunk < chunks; chunk++) {
            const struct layer_range layers = pipeline_layers_of_chunk(&c, chunk);
            CHECK_INT("layers follow each other", layers.first, next);
            next = layers.end;
        }
        CHECK_INT("all layers", next, rows[i].layers);
        for (size_t k = 0; k < ARRAY_LEN(asked); k++) {
            const struct layer_range layers = pipeline_layers_of_chunk(&c, asked[k]);
            CHECK_INT("layers of a chunk", layers.end - layers.first, want[k]);
        }
    }
}

static const struct check_case cases[] = {
    {"layers of chunks are those asked for", layers_of_chunks_are_those_asked_for},
    {"stages come to their ends", all_stages_finish_their_actions},
    {"forwards run beside backwards", forwards_run_beside_backwards},
    {"units in flight are those of the formulae", units_in_flight_are_those_of_the_formulae},
};
CHECK_MAIN("orders", cases)

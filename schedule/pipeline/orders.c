/* The order of actions of each pipeline. In comments, k is the number of subsequences of a micro-batch, and a unit is
 * one of them. */
#include "schedule/pipeline/orders.h"

/* Returns the unit of backward number j of a stage. Micro-batches are in order; the subsequences of each go from the
 * last to the first, because the gradients of early keys and values need all later queries. */
static uint32_t unit_of_nth_backward(const struct choices *c, uint32_t j)
{
    uint32_t k = c->subsequences;
    return j / k * k + (k - 1 - j % k);
}

/* Adds a forward, beside which the next action, a backward, is emitted. */
static void add_forward_with_next(struct actions *a, uint32_t chunk, uint32_t unit)
{
    actions_add(a, ACTION_FORWARD, chunk, unit);
    a->action[a->count - 1].is_beside_next_action = true;
}

/* Adds the actions of a stage with all forwards before all backwards. With micro-batches as units that is GPipe (Huang
 * et al., arXiv 1811.06965, figure 2c), with subsequences TeraPipe (Li et al., arXiv 2102.07988). Without a pipeline
 * the backwards of a micro-batch follow its own forwards, and micro-batches come one after another. With
 * --expert-overlap the forward of a micro-batch runs beside the backward of the one before it (Megatron-Core,
 * pipeline_parallel/combined_1f1b.py). */
void order_all_forward(struct actions *a, const struct choices *c, uint32_t stage)
{
    (void)stage;
    uint32_t units = pipeline_unit_count(c);
    uint32_t k = c->pipeline == CHOICE_PIPELINE_NONE ? c->subsequences : units;
    if (c->expert_overlap != EXPERT_OVERLAP_NONE) {
        actions_add(a, ACTION_FORWARD, 0, 0);
        for (uint32_t u = 0; u < units; u++) {
            if (u + 1 < units)
                add_forward_with_next(a, 0, u + 1);
            actions_add(a, ACTION_BACKWARD, 0, u);
        }
        return;
    }
    for (uint32_t first = 0; first < units; first += k) {
        for (uint32_t s = 0; s < k; s++)
            actions_add(a, ACTION_FORWARD, 0, first + s);
        for (uint32_t s = k; s-- > 0;)
            actions_add(a, ACTION_BACKWARD, 0, first + s);
    }
}

/* Adds the actions of a stage in the order of 1F1B (PipeDream-Flush, Narayanan et al., arXiv 2104.04473, figure 4 top).
 * With k subsequences it is the order of Seq1F1B (Sun et al., arXiv 2406.03488, section 3.2), which begins with the
 * forwards of pp - stage + k - 2 units. If the pipeline splits the backward, it is ZB-H1 (Qi et al., arXiv 2401.10241,
 * section 2.2 and figure 3): the gradients of weights come `stage` units after those of inputs and fill the time in
 * which the pipeline drains, so that every stage holds as many activations as the first stage of 1F1B. Seq1F1B is
 * changed in the same way. */
void order_one_f_one_b(struct actions *a, const struct choices *c, uint32_t stage)
{
    uint32_t units = pipeline_unit_count(c), weights = 0;
    uint32_t warm = at_most(c->pp - stage + c->subsequences - 2, units);
    bool splits = pipeline_of_choices(c)->splits_backward;
    for (uint32_t u = 0; u < warm; u++)
        actions_add(a, ACTION_FORWARD, 0, u);
    for (uint32_t j = 0; j < units; j++) {
        if (warm + j < units)
            actions_add(a, ACTION_FORWARD, 0, warm + j);
        actions_add(a, ACTION_BACKWARD, 0, unit_of_nth_backward(c, j));
        if (splits && j >= stage)
            actions_add(a, ACTION_WEIGHT_GRADIENTS, 0, unit_of_nth_backward(c, weights++));
    }
    while (splits && weights < units)
        actions_add(a, ACTION_WEIGHT_GRADIENTS, 0, unit_of_nth_backward(c, weights++));
}

/* Adds forward or backward number i of interleaved 1F1B (Narayanan et al., section 2.2): pp units go through the
 * stage's first chunk, the same units through its second, and so on; the number of units is a multiple of pp. In the
 * backward the chunks come in reverse order, and the units of each chunk in the order of unit_of_nth_backward().
 * with_next: the next action is emitted beside this forward. */
static void add_interleaved(struct actions *a, const struct choices *c, enum action_kind kind,
                            uint32_t i, bool with_next)
{
    uint32_t p = c->pp, v = c->virtual_stages;
    uint32_t chunk = i % (p * v) / p, unit = i / (p * v) * p + i % p;
    if (kind == ACTION_FORWARD && with_next)
        add_forward_with_next(a, chunk, unit);
    else if (kind == ACTION_FORWARD)
        actions_add(a, kind, chunk, unit);
    else
        actions_add(a, kind, v - 1 - chunk, unit_of_nth_backward(c, unit));
}

/* Returns how many more forwards interleaved 1F1B needs at its start if micro-batches are cut into k subsequences. The
 * first backward of a micro-batch is that of its last subsequence. In the stage's last chunk, the forward of that
 * subsequence comes k - 1 forwards after the forward of the first one, and pp (virtual_stages - 1) more for each
 * boundary between groups of pp units that lies between the two. The result is the largest such number of any
 * micro-batch. Seq1F1B (arXiv 2406.03488; thunlp/Seq1F1B, get_pp_rank_microbatches()) uses k - 1, which is right if k
 * divides pp, and too small otherwise. */
static uint32_t warm_up_units_for_last_subsequence(const struct choices *c)
{
    uint32_t p = c->pp, k = c->subsequences, most = 0;
    for (uint32_t first = 0; first < pipeline_unit_count(c); first += k) {
        uint32_t groups = (first + k - 1) / p - first / p;
        uint32_t late = k - 1 + groups * p * (c->virtual_stages - 1);
        most = late > most ? late : most;
    }
    return most;
}

/* Adds the actions of a stage in the order of interleaved 1F1B. With --expert-overlap each stage begins with one more
 * forward, so that no forward needs the result of the backward that runs beside it (Megatron-Core,
 * pipeline_parallel/schedules.py, get_pp_rank_microbatches()). */
void order_interleaved(struct actions *a, const struct choices *c, uint32_t stage)
{
    const bool combines = c->expert_overlap != EXPERT_OVERLAP_NONE;
    uint32_t all = pipeline_unit_count(c) * c->virtual_stages;
    uint32_t warm = (c->pp - stage - 1) * 2 + (c->virtual_stages - 1) * c->pp;
    warm = at_most(warm + warm_up_units_for_last_subsequence(c) + (combines ? 1 : 0), all);
    if (c->subsequences == 1 &&
        c->accumulation == c->pp) /* all forwards first, as in Megatron-LM core 0.7 */
        warm = all;
    for (uint32_t i = 0; i < warm; i++)
        add_interleaved(a, c, ACTION_FORWARD, i, false);
    for (uint32_t i = 0; i < all; i++) {
        if (warm + i < all)
            add_interleaved(a, c, ACTION_FORWARD, warm + i, combines);
        add_interleaved(a, c, ACTION_BACKWARD, i, false);
    }
}

/* ZB-V (Qi et al., section 6 and appendix): a stage has two chunks, 0 on the way down the stages and 1 on the way back
 * up. order_zb_v() writes the pattern for at least 2 pp - 1 micro-batches and leaves out the actions of units that do
 * not exist. With k subsequences the first backward is that of the last subsequence of a micro-batch; so k - 1 more
 * units go through both chunks before it, and k - 1 more backwards follow the last forward. */
struct zb_v {
    struct actions *actions;
    const struct choices *choices;
    uint32_t units, done_actions[ACTION_KIND_COUNT][2];
};

/* Adds the next action of this kind in the stage's chunk 0 or 1, unless its unit does not exist. */
static void zb_v_add_next_action(struct zb_v *z, enum action_kind kind, uint32_t chunk)
{
    uint32_t i = z->done_actions[kind][chunk]++;
    if (i < z->units)
        actions_add(z->actions, kind, chunk,
                    kind == ACTION_FORWARD ? i : unit_of_nth_backward(z->choices, i));
}

static void zb_v_add_backward(struct zb_v *z, uint32_t chunk)
{
    zb_v_add_next_action(z, ACTION_BACKWARD, chunk);
    zb_v_add_next_action(z, ACTION_WEIGHT_GRADIENTS, chunk);
}

void order_zb_v(struct actions *a, const struct choices *c, uint32_t stage)
{
    struct zb_v z = {.actions = a, .choices = c, .units = pipeline_unit_count(c)};
    uint32_t below = c->pp - stage, more = c->subsequences - 1, pattern = 2 * c->pp - 1 + more;
    const uint32_t *forward = z.done_actions[ACTION_FORWARD],
                   *backward = z.done_actions[ACTION_BACKWARD];
    const uint32_t *weights = z.done_actions[ACTION_WEIGHT_GRADIENTS];
    if (pattern < z.units)
        pattern = z.units;
    /* The first unit goes down from this stage and back up to it; meanwhile the stage does forwards of chunk 0. */
    for (uint32_t i = 0; i < 2 * below - 1; i++)
        zb_v_add_next_action(&z, ACTION_FORWARD, 0);
    for (uint32_t i = 0; i < stage + more; i++) {
        zb_v_add_next_action(&z, ACTION_FORWARD, 1);
        zb_v_add_next_action(&z, ACTION_FORWARD, 0);
    }
    for (uint32_t i = 0; i < below; i++) {
        zb_v_add_next_action(&z, ACTION_FORWARD, 1);
        zb_v_add_backward(&z, 1);
    }
    while (forward[1] < forward[0] || forward[0] < pattern) {
        if (forward[0] < pattern)
            zb_v_add_next_action(&z, ACTION_FORWARD, 0);
        zb_v_add_backward(&z, 0);
        zb_v_add_next_action(&z, ACTION_FORWARD, 1);
        zb_v_add_backward(&z, 1);
    }
    for (uint32_t i = 0; i < more; i++) {
        zb_v_add_backward(&z, 0);
        zb_v_add_backward(&z, 1);
    }
    for (uint32_t i = 0; i < stage; i++) { /* first the backwards, for which other stages wait */
        zb_v_add_next_action(&z, ACTION_BACKWARD, 0);
        zb_v_add_next_action(&z, ACTION_BACKWARD, 1);
    }
    for (uint32_t i = 0; i < below; i++)
        zb_v_add_backward(&z, 0);
    while (weights[1] < backward[1])
        zb_v_add_next_action(&z, ACTION_WEIGHT_GRADIENTS, 1);
    while (weights[0] < backward[0])
        zb_v_add_next_action(&z, ACTION_WEIGHT_GRADIENTS, 0);
}

void pipeline_add_actions_in_order(struct actions *actions, const struct choices *choices,
                                   uint32_t stage)
{
    static order_function *const order_of[CHOICE_PIPELINE_COUNT] = {
#define PIPELINE(choice, order, ...) [CHOICE_PIPELINE_##choice] = order,
#include "schedule/pipeline/pipelines.def"
#undef PIPELINE
    };
    order_of[choices->pipeline](actions, choices, stage);
}

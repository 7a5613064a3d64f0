#include "schedule/config/sppo.h"

#include "schedule/choices/strategies.h"
#include "schedule/config/resolve_degrees.h"
#include "schedule/pipeline/pipeline.h"

static int64_t at_least_1(int64_t value)
{
    return value > 0 ? value : 1;
}

/* Returns the largest number of tensor ranks that fits into a node and divides the ranks of a stage which the other
 * given degrees leave, and that the model and the sequence allow. Returns 1 if the ranks of a node are not known, or if
 * the given stages do not divide the ranks. */
static int64_t max_tensor_ranks(const struct request *r)
{
    struct request stage = *r;
    stage.ranks = r->ranks / at_least_1(r->pp);
    bool known = r->ranks % at_least_1(r->pp) == 0 && r->gpus_per_node > 0;
    return known ? resolve_largest_tp(&stage, true) : 1;
}

/* Returns the number of subsequences that gives them SPPO_TOKENS tokens on average. It is larger if it would be below
 * the given number of stages, but then they have at least SPPO_TOKENS_MIN tokens. It is smaller if a step would have
 * too many units, or if equal lengths must divide the sequence. It is 1 for a pipeline without subsequences. */
static int64_t sppo_subsequence_count(const struct request *r, int64_t tp)
{
    int64_t count = r->seq / SPPO_TOKENS, unit = tp * at_least_1(r->hp);
    if (count < r->pp && r->seq / SPPO_TOKENS_MIN >= r->pp)
        count = r->pp;
    int64_t batches =
        at_least_1(r->global_batch) / (at_least_1(r->dp) * at_least_1(r->micro_batch));
    if (count * at_least_1(batches) > PIPELINE_UNITS_MAX)
        count = PIPELINE_UNITS_MAX / at_least_1(batches);
    while (r->length_rule == 0 && count > 1 && r->seq % (count * unit) != 0)
        count--;
    return count > 1 && pipeline_of_choice((enum pipeline_choice)r->pipeline)->has_subsequences
               ? count
               : 1;
}

/* Returns the largest number of stages that divides the ranks which the other degrees leave, and that is at most the
 * number of layers and of subsequences; 1 if there is none. */
static int64_t max_stages(const struct request *r, int64_t tp, int64_t count)
{
    int64_t others = at_least_1(r->dp) * at_least_1(r->cp) * at_least_1(r->hp) * tp;
    int64_t rest = r->ranks % others == 0 ? r->ranks / others : 1;
    int64_t most = r->model->layers < count ? r->model->layers : count;
    for (int64_t pp = rest < most ? rest : most; pp > 1; pp--)
        if (rest % pp == 0)
            return pp;
    return 1;
}

void sppo_fill_degrees(struct request *r)
{
    int64_t tp = r->tp > 0 ? r->tp : max_tensor_ranks(r);
    int64_t count = r->subsequences > 0 ? r->subsequences : sppo_subsequence_count(r, tp);
    if (r->ranks < 1 || r->seq < 1 || count < 2)
        return;
    r->tp = tp;
    r->subsequences = count;
    if (r->pp <= 0)
        r->pp = max_stages(r, tp, count);
}

void sppo_add_notes_on_filled(const struct choices *c, const struct request *asked,
                              struct diag *note)
{
    size_t count;
    const struct strategy *strategy = &strategies_list(&count)[c->strategy];
    bool open = asked->tp <= 0 || asked->pp <= 0 || asked->subsequences <= 0;
    if (strategy->fills_subsequences && open && c->subsequences > 1)
        diag_note(note, (struct loc){0},
                  "strategy %s chose tp %u, pp %u and %u subsequences of %lld tokens on average; "
                  "`longhaul plan --strategy %s` compares others",
                  strategy->name, c->tp, c->pp, c->subsequences,
                  (long long)(c->seq / c->subsequences), strategy->name);
    if (c->activations == CHOICE_ACTIVATIONS_RATIO && pipeline_unit_count(c) == 1 &&
        (c->scope == SCOPE_WHOLE_STEP || c->scope >= SCOPE_ALL_LAYERS))
        diag_note(note, (struct loc){0},
                  "no activations are offloaded to the host: a step has only one unit (micro-batch "
                  "or subsequence), whose backward follows its forward at once; choose "
                  "--subsequences 2 or more");
}

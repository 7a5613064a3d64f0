#include "predict/plan/safe.h"

#include "base/interrupt.h"

/* Begins a search anew with another probability. Messages of a search that finds nothing are not kept. */
static enum status search_again(struct best *best, enum plan_goal goal, struct setup *setup,
                                struct space_open open, double probability)
{
    const struct search_limits limits = best->limits;
    struct diag unread = {0};
    best_release(best);
    *best = (struct best){.limits = limits};
    setup->fits_probability = probability;
    enum status status = best_find(best, goal, setup, open, &unread);
    diag_release(&unread);
    return status;
}

/* Nothing fits with the probability that was asked: finds the safest that fits in half of the cases. */
static enum status find_safest(struct safe_choice *safe, struct best *best, enum plan_goal goal,
                               struct setup *setup, struct space_open open)
{
    static const double less[] = {0.8, 0.7, 0.6};
    enum status status = search_again(best, goal, setup, open, 0.5);
    safe->taken_probability = 0.5;
    for (size_t i = 0; i < ARRAY_LEN(less) && status == STATUS_OK && interrupt_signal() == 0; i++) {
        struct best other = {.limits = best->limits};
        if (less[i] >= safe->asked_probability)
            continue;
        if (search_again(&other, goal, setup, open, less[i]) == STATUS_OK) {
            best_release(best);
            *best = other;
            safe->taken_probability = less[i];
            break;
        }
        best_release(&other);
    }
    setup->fits_probability = safe->taken_probability;
    return status;
}

/* Finds what is longer than the winner, and fits in half of the cases. */
static void find_longer(struct safe_choice *safe, const struct best *best, struct setup *setup,
                        struct space_open open)
{
    const struct outcome winner = best->row[0];
    struct best other = {.limits = best->limits};
    other.limits.to_beat = &winner;
    if (search_again(&other, GOAL_LONGEST, setup, open, 0.5) == STATUS_OK &&
        other.row[0].verdict.fits_probability < safe->asked_probability)
        safe->risky_outcome = other.row[0];
    best_release(&other);
    setup->fits_probability = safe->asked_probability;
}

/* Takes the gamble that the search met, if it is better than the winner. */
static void take_gamble(struct safe_choice *safe, const struct best *best)
{
    bool better = best->goal == GOAL_GPUS
                      ? best->risky_gpus > 0 && best->risky_gpus < best->gpus
                      : best_is_better(best->goal, &best->risky_best, &best->row[0]);
    if (better) {
        safe->risky_outcome = best->risky_best;
        safe->risky_gpus = best->risky_gpus;
    }
}

enum status safe_find(struct safe_choice *safe, struct best *best, enum plan_goal goal,
                      struct setup *setup, struct space_open open, double probability,
                      struct diag *diag)
{
    *safe =
        (struct safe_choice){.asked_probability = probability, .taken_probability = probability};
    const struct request given = setup->request;
    setup->fits_probability = probability;
    enum status status = best_find(best, goal, setup, open, diag);
    if (probability <= 0.5 || best_ended_by(best) != NULL || open.packed_sets != NULL)
        return status;
    setup->request = given;
    if (status == STATUS_NO)
        status = find_safest(safe, best, goal, setup, open);
    else if (status == STATUS_OK && goal == GOAL_LONGEST)
        find_longer(safe, best, setup, open);
    else if (status == STATUS_OK)
        take_gamble(safe, best);
    return status;
}

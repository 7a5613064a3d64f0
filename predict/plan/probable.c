#include "predict/plan/probable.h"

#include "base/interrupt.h"

/* Releases *best and fills it by a search with another probability, which stays in setup->fits_probability. Its
 * messages are dropped. */
static enum status search_with_probability(struct best *best, enum plan_goal goal,
                                           struct setup *setup, struct space_open open,
                                           double probability)
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

/* Finds the best configuration with the highest of the probabilities 0.8, 0.7, 0.6 and 0.5 with which any fits; those
 * that are not below the one that was asked for are left out. It is called if none fits with the probability that was
 * asked for. */
static enum status find_most_probable(struct fits_probabilities_of_winner *chosen,
                                      struct best *best, enum plan_goal goal, struct setup *setup,
                                      struct space_open open)
{
    static const double less[] = {0.8, 0.7, 0.6};
    enum status status = search_with_probability(best, goal, setup, open, 0.5);
    chosen->search_probability = 0.5;
    for (size_t i = 0;
         i < ARRAY_LEN(less) && status == STATUS_OK && interrupt_caught_signal_number() == 0; i++) {
        struct best other = {.limits = best->limits};
        if (less[i] >= chosen->asked_probability)
            continue;
        if (search_with_probability(&other, goal, setup, open, less[i]) == STATUS_OK) {
            best_release(best);
            *best = other;
            chosen->search_probability = less[i];
            break;
        }
        best_release(&other);
    }
    setup->fits_probability = chosen->search_probability;
    return status;
}

/* Finds the configuration with the longest sequence that fits with a probability of at least one half, and takes it as
 * the less probable one if its sequence is longer than the winner's. */
static void find_less_probable_longer(struct fits_probabilities_of_winner *chosen,
                                      const struct best *best, struct setup *setup,
                                      struct space_open open)
{
    const struct outcome winner = best->row[0];
    struct best other = {.limits = best->limits};
    other.limits.outcome_to_beat = &winner;
    if (search_with_probability(&other, GOAL_LONGEST, setup, open, 0.5) == STATUS_OK &&
        other.row[0].verdict.fits_probability < chosen->asked_probability)
        chosen->less_probable_outcome = other.row[0];
    best_release(&other);
    setup->fits_probability = chosen->asked_probability;
}

/* Takes the less probable configuration that the search found on its way (best->less_probable_best), if it is better
 * than the winner. */
static void choose_less_probable(struct fits_probabilities_of_winner *chosen,
                                 const struct best *best)
{
    bool better =
        best->goal == GOAL_GPUS
            ? best->less_probable_gpu_count > 0 && best->less_probable_gpu_count < best->gpu_count
            : best_is_better(best->goal, &best->less_probable_best, &best->row[0]);
    if (better) {
        chosen->less_probable_outcome = best->less_probable_best;
        chosen->less_probable_gpu_count = best->less_probable_gpu_count;
    }
}

enum status probable_find(struct fits_probabilities_of_winner *chosen, struct best *best,
                          enum plan_goal goal, struct setup *setup, struct space_open open,
                          double probability, struct diag *diag)
{
    *chosen = (struct fits_probabilities_of_winner){.asked_probability = probability,
                                                    .search_probability = probability};
    const struct request given = setup->request;
    setup->fits_probability = probability;
    enum status status = best_find(best, goal, setup, open, diag);
    if (probability <= 0.5 || best_end_reason(best) != NULL || open.packed_sets != NULL)
        return status;
    setup->request = given;
    if (status == STATUS_NO)
        status = find_most_probable(chosen, best, goal, setup, open);
    else if (status == STATUS_OK && goal == GOAL_LONGEST)
        find_less_probable_longer(chosen, best, setup, open);
    else if (status == STATUS_OK)
        choose_less_probable(chosen, best);
    return status;
}

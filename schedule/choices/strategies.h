/* schedule/choices/strategies.h: the strategies and profiles that users name, the text names of choices, and the
 * properties of dispatchers.
 *
 * A strategy is a named combination of choices with defaults. */
#ifndef SCHEDULE_CHOICES_STRATEGIES_H
#define SCHEDULE_CHOICES_STRATEGIES_H

#include "base/diag.h"
#include "schedule/choices/choices.h"
#include "schedule/choices/profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A strategy: its name, what it chooses, and its defaults. */
struct strategy {
    const char *name, *summary;
    uint8_t attention, weights, pipeline, activations;
    const char *profile;     /* the profile that `published` selects */
    bool fills_tp;           /* an open tp becomes as many ranks of a node as fit */
    bool fills_subsequences; /* open pp and subsequences are filled by schedule/config/sppo.h */
    /* the largest number of ranks on which a step of the strategy was compared with a measured one
     * (traces/published/measurements.csv); 0: none was compared */
    int64_t max_compared_ranks;
};
/* Return all strategies, or all profiles, and set *count to their number. */
const struct strategy *strategies_list(size_t *count);
const struct profile *profiles_list(size_t *count);
/* Checks that a strategy and a profile of these names exist. A name that is NULL is not checked. */
enum status strategies_check_both_names_exist(const char *strategy, const char *profile,
                                              struct diag *diag);
/* The properties of a dispatcher.
 *
 * sends_once            a token is sent once to each node and rank that has some of its experts; false: once for each
 *                       expert
 * bounds_rows           the rows that a rank receives may be given a bound, with which the host need not know their
 *                       number (Megatron-Core, transformer_config.py: moe_expert_rank_capacity_factor)
 * exchange_sms          the multiprocessors that an exchange occupies (Megatron-LM, transformer_config.py:
 *                       moe_deepep_num_sms, moe_hybridep_num_sms); 0: as many as the library's collectives */
struct dispatcher_facts {
    bool sends_once, bounds_rows;
    int64_t exchange_sms;
};
extern const struct dispatcher_facts dispatcher_facts[DISPATCHER_COUNT];
/* Returns whether the host must know the numbers of rows of experts before it launches their exchange: unless rows are
 * padded to a capacity, or a graph of the whole step needs a bound, which the dispatcher can be given. Whether the host
 * waits for them is the profile's host_waits_for_expert_counts. */
bool dispatcher_needs_counts(const struct choices *c);
/* The text names of the values of the choices in attention_choices.def and names.def, in the order of their enums. */
extern const char *const attention_names[];
#define NAMES(choice, count, ...) extern const char *const choice##_names[];
#include "schedule/choices/names.def"
#undef NAMES

#endif

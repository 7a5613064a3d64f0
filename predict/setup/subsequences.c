#include "predict/setup/subsequences.h"

#include "predict/setup/partition_option.h"
#include "schedule/choices/strategies.h"

#include <string.h>

static bool does_strategy_cut_sequences(const char *strategy)
{
    size_t count;
    const struct strategy *table = strategies_list(&count);
    for (size_t i = 0; strategy != NULL && i < count; i++)
        if (strcmp(table[i].name, strategy) == 0)
            return table[i].fills_subsequences;
    return false;
}

void subsequences_set_open_choices(struct request *r, const struct setup *setup)
{
    if (!does_strategy_cut_sequences(r->strategy))
        return;
    if (!setup->is_partition_given)
        r->length_rule = SUBSEQUENCES_OF_EQUAL_FULL_FLOPS;
    if (!setup->offload_given && r->activations < 0)
        r->must_compute_offload_hidden_bytes = true;
}

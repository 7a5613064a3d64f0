/* cli/setup/options.h: the options of a prediction's model, cluster and configuration, as tables that commands
 * share. */
#ifndef CLI_SETUP_OPTIONS_H
#define CLI_SETUP_OPTIONS_H

#include "cli/common/options.h"
#include "predict/setup/choice_rows.h"

/* The options of a model, of a cluster and how much of it is used, and of the strategy and the other choices of a
 * step. */
extern const struct option_set setup_model_options, setup_cluster_options, setup_choice_options;

/* Rows of the options of commands that simulate: whether each rank is simulated (sim/uniform/uniform.h). */
#define SETUP_EXACT_OPTION_INITIALIZERS                                                            \
    {.name = "exact",                                                                              \
     .kind = OPTION_FLAG,                                                                          \
     .help = "simulate every rank; by default equal ranks are simulated once, and all ranks of a " \
             "long ring are treated as equal"},                                                    \
    {                                                                                              \
        .name = "even-above", .kind = OPTION_INTEGER, .value_name = "RANKS", .default_text = "64", \
        .low = EVEN_ABOVE_RANKS_MIN, .high = EVEN_ABOVE_RANKS_NEVER,                               \
        .help = "in rings of more than this many ranks, treat all ranks as equally fast: "         \
                "quicker, and within 2 % of the exact step"                                        \
    }

/* Appends the options that were given, except three kinds: the options of the set `own`; those in drop[], which ends
 * in NULL; and the options of choices for whose rows keeps() returns false. */
void setup_put_given_options(struct text *out, const struct options *options,
                             const struct option_set *own,
                             bool (*keeps)(const struct choice_row *row), const char *const *drop);

#endif

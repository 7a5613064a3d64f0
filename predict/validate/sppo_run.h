/* predict/validate/sppo_run.h: the runs that SPPO's paper (arXiv 2503.10377) compares, as requests.
 *
 * Its Table 4 gives tensor ranks, stages and subsequences for each model and length; subsequences are
 * balanced by flops with full attention, as its Figure 5 shows. DeepSpeed is Ulysses with ZeRO-3, and with
 * FPDT's offload or only with checkpoints on the host: the paper does not state which. */
#ifndef PREDICT_VALIDATE_SPPO_RUN_H
#define PREDICT_VALIDATE_SPPO_RUN_H

#include "base/diag.h"
#include "predict/prediction.h"

#include <stdbool.h>

enum { SPPO_LENGTHS = 5 };

enum sppo_system {
    SPPO_NONE, /* nothing to the host */
    SPPO_FULL,
    SPPO_ADAPTIVE,
    SPPO_MULTIPLEXED, /* adaptive, and stages share the subsequences that are predicted to pay */
    SPPO_SYSTEM_COUNT
};
extern const char *const sppo_system_names[SPPO_SYSTEM_COUNT];

/* A row of Table 4. */
struct sppo_layout {
    const char *model;
    int64_t tp, pp;
    int64_t tuned_tp, tuned_pp; /* "tuned" Megatron */
    bool
        unexplained; /* its speed-up over Megatron follows from no reading of the baseline: in no mean */
    int64_t ulysses; /* DeepSpeed's ranks per sequence; 0: its heads do not divide over enough */
    int64_t k_tokens[SPPO_LENGTHS], pieces[SPPO_LENGTHS]; /* K tokens and subsequences, rising */
};
extern const struct sppo_layout sppo_layouts[];
extern const size_t sppo_layout_count;

/* Returns the row of a model; NULL: Table 4 does not have it. */
const struct sppo_layout *sppo_layout_find(const char *model);

/* One configuration: of Table 4, or with the numbers of a row of measurements. */
struct sppo_cell {
    const struct sppo_layout *layout;
    int64_t tokens, pieces, tp, pp;
};
/* Returns the configuration of a layout at its length number `length`. */
struct sppo_cell sppo_cell_make(const struct sppo_layout *layout, int length);
/* Returns the number of a layout's length that has these tokens; -1: none has. */
int sppo_length_find(const struct sppo_layout *layout, int64_t tokens);

struct sppo_run {
    const char *strategy, *profile; /* profile NULL: the strategy's own */
    int weights, activations;
    enum sppo_system system; /* of strategy sppo */
    int64_t tp, pp, hp, pieces, tokens;
};
struct sppo_run sppo_run_make(const struct sppo_cell *cell, enum sppo_system system);
/* Returns the run of Megatron: full recomputation on the same subsequences. tuned: on the tuned ranks and stages,
 * where a sequence is not cut if there is one stage. */
struct sppo_run sppo_run_megatron(const struct sppo_cell *cell, bool tuned);
/* Returns the run of DeepSpeed. chunks: with FPDT's chunks of default size on the host; else whole sequences, with
 * checkpoints on the host. */
struct sppo_run sppo_run_deepspeed(const struct sppo_cell *cell, bool chunks);

/* Opens the setup's request and fills it. Model and cluster are loaded. */
enum status sppo_run_open(struct setup *setup, const struct sppo_run *run, struct diag *diag);

#endif

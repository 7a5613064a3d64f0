/* cli/measure/run_options.h: the options of `longhaul run`. */
#ifndef CLI_MEASURE_RUN_OPTIONS_H
#define CLI_MEASURE_RUN_OPTIONS_H

#include "base/diag.h"
#include "cli/common/options.h"
#include "exec/exec.h"

#include <stdbool.h>
#include <stdint.h>

/* The options that only `run` has. It takes those of a configuration, too. */
extern const struct option_set run_options;

struct run_options {
    bool wants_check;    /* the step is compared with the reference (--check) */
    bool runs_steps;     /* steps are executed and timed; false: only the check is made */
    bool trains_on_data; /* the steps read tokens of --data, and their losses are printed */
    uint64_t seed;
    /* the weights begin near 0, with which a GPU draws less power than with those of a model */
    bool draws_weights_near_zero;
    /* the measured steps and those of warm-up, without further ones until a GPU's clock is steady; 0: only the check is
     * made */
    uint32_t step_count;
    struct exec_options exec;
};

/* Fills *wanted from the options of the command. It borrows their texts. */
enum status run_options_read(struct run_options *wanted, const struct options *options,
                             struct diag *diag);

#endif

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
    /* the weights are near 0, to compare the power that a device needs */
    bool draws_weights_near_zero;
    uint32_t step_count; /* the executed steps, with those of warm-up; 0: only the check is made */
    struct exec_options exec;
};

/* Fills *wanted from the options of the command. It borrows their texts. */
enum status run_options_read(struct run_options *wanted, const struct options *options,
                             struct diag *diag);

#endif

/* cli/measure/run_options.h: the options of `longhaul run`. */
#ifndef CLI_MEASURE_RUN_OPTIONS_H
#define CLI_MEASURE_RUN_OPTIONS_H

#include "base/diag.h"
#include "cli/common/options.h"
#include "exec/exec.h"

#include <stdbool.h>
#include <stdint.h>

/* The options of `run` itself, beside those of a configuration. */
extern const struct option_set run_options;

struct run_options {
    bool check, run, train;
    uint64_t seed;
    bool flat;      /* weights near 0, for a comparison of power */
    uint32_t steps; /* warm-up included; 0: only a check */
    struct exec_options exec;
};

/* Fills *wanted from the options of the command, whose texts it borrows. */
enum status run_options_read(struct run_options *wanted, const struct options *options,
                             struct diag *diag);

#endif

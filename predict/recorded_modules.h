/* predict/recorded_modules.h: which modules of a recorded program take the time of the recorded ranks' kernels. */
#ifndef PREDICT_RECORDED_MODULES_H
#define PREDICT_RECORDED_MODULES_H

#include "predict/prediction.h"

/* The kernels of all modules whose names differ only in numbers: "model.layers.*.mlp.up_proj". Seconds are those of
 * each kernel, so kernels that ran at the same time count in full. */
struct recorded_module {
    const char *name; /* the name, in the arena; "": kernels that belong to no module */
    double forward_s, recompute_s, backward_s, optimizer_s;
    double total_s; /* seconds of all phases */
};

struct recorded_modules {
    struct arena arena;
    struct recorded_module *row; /* the longest first */
    uint32_t count;
    double kernel_s; /* seconds of all kernels */
    /* seconds of kernels with neither known flops nor a measured time */
    double kernels_of_unknown_flops_s;
    /* the operator of the longest of these kernels; NULL: there is none */
    const char *operator_of_longest_unknown_kernel;
    double collectives_s; /* seconds of collectives, those included that other kernels hide */
    /* the flops of a recorded rank as PyTorch counts them (the mean over ranks): all of them, and those that are
     * recomputed. Causal attention counts in full */
    double model_flops, repeated_flops;
    /* seconds of kernels whose time was measured (recorded_operators.h) */
    double measured_kernel_s;
    /* the operator of the longest kernel whose time was not measured; NULL: there is none */
    const char *longest_unmeasured_operator;
};

/* Sums the kernels of a simulated prediction of a recorded step, over the recorded ranks. Release *modules. */
void recorded_modules_make(struct recorded_modules *modules, const struct prediction *prediction);
void recorded_modules_release(struct recorded_modules *modules);
/* Returns the model flops utilisation of a recorded step by the convention longhaul, as the mean over all ranks. Only
 * visible pairs count; recomputed flops and kernels of unknown flops do not. 0: no flops are known. */
double recorded_modules_mfu(const struct prediction *prediction);

#endif

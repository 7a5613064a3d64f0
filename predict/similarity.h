/* predict/similarity.h: the features of a configuration by which measured runs are compared with it. */
#ifndef PREDICT_SIMILARITY_H
#define PREDICT_SIMILARITY_H

#include "predict/setup/setup.h"
#include "traces/residuals.h"

#include <stdbool.h>
#include <stdint.h>

enum { SIMILARITY_NAME = 80 };

/* The features of struct residual (traces/residuals.h), in its units. The struct holds no pointers, so it can be passed
 * between processes. */
struct similarity {
    /* the kind of the device: "a100" of "a100-80g"; "": no run is similar, as on ideal hardware or for a part of a
     * model */
    char device[SIMILARITY_NAME];
    /* name of the profile; "none": a schedule from a file without a profile; "a recorded program": a recorded step */
    char framework[SIMILARITY_NAME];
    char real_framework[SIMILARITY_NAME]; /* as in struct residual; "": none */
    bool is_on_several_nodes;             /* the ranks are on several nodes */
    /* The members below are empty for a schedule from a file, whose choices are not known. Of a recorded step only
     * `attention` and `context` are set. */
    char attention[SIMILARITY_NAME], context[SIMILARITY_NAME], activations[SIMILARITY_NAME];
    bool has_host_optimizer;
    int64_t tp, pp, gpus, seq_len, sequences, parameters;
    double layer_s;
};

/* Returns the features of a configuration. choices NULL: a schedule from a file; profile NULL: it has none. */
struct similarity similarity_of(const struct setup *setup, const struct choices *choices,
                                const struct profile *profile);

/* Returns the features of a recorded step, of which no run was measured. attention: the name of its kernels. */
struct similarity similarity_of_recorded(const struct setup *setup, const char *attention);

/* Returns a residual with these features and no values. It borrows their texts. The caller sets the members that name
 * the run. */
struct residual similarity_make_residual(const struct similarity *similarity);

#endif

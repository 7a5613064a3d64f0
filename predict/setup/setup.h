/* predict/setup/setup.h: the inputs of a prediction: a model, a cluster with its costs, and a request, which is the
 * plain struct of choices that the caller fills (schedule/choices/choices.h).
 *
 * The folder predict/setup/ loads a model, a cluster and choices, and fills the choices that only costs can decide. */
#ifndef PREDICT_SETUP_SETUP_H
#define PREDICT_SETUP_SETUP_H

#include "base/arena.h"
#include "base/diag.h"
#include "models/cluster.h"
#include "models/cost.h"
#include "models/interval.h"
#include "models/transformer.h"
#include "schedule/choices/choices.h"

#include <stdbool.h>

struct packed_sets_request;

/* Holds pointers into itself: not to be copied. */
struct setup {
    struct arena arena;
    struct transformer model; /* name NULL: none, for schedules read from a file */
    struct cluster cluster;
    struct device_cost cost;
    /* the framework that really runs, if the request's profile only stands for it; NULL: none. Borrowed. */
    const char *stands_for;
    double fits_probability; /* least P(fits) of what a search takes; 0: one half */
    struct evidence
        evidence; /* measured runs, which say how sure a prediction is; with the cluster */
    struct request request;
    struct shared_units shared; /* request.shared, where it was given */
    double *hidden;             /* heap: request.offload_hidden_of, where setup_fill() made it */
    /* The user has chosen how sequences are cut, and what is offloaded. */
    bool partition_given, offload_given;
    uint32_t even_above; /* of struct sim_options */
    int64_t
        padding; /* tokens of a step that are none of its documents: tokens per second leave them out */
    /* The packed steps on which a configuration of a reproduced figure is predicted (predict/documents/packed_sets.h);
     * NULL: those of the request. */
    const struct packed_sets_request *sampled;
    bool as_dense; /* set before the model is loaded: models/hf_proxy.h */
};

void setup_release(struct setup *setup);

/* Fills the fields of the request that follow from costs (predict/setup/resolved.h). Call it before building a
 * schedule of the request. */
enum status setup_fill(struct setup *setup, struct diag *diag);

/* Loads costs in place of those that the cluster names; NULL: keeps these. */
enum status setup_load_costs(struct setup *setup, const char *name, struct diag *diag);

/* Load the parts of a setup. setup_load_model(): a model by name, with the keys to ignore and the fields to set.
 * setup_load_cluster(): a cluster of that many nodes and GPUs (0: as its file says), with its costs.
 * setup_open_request(): a request with all choices open. */
enum status setup_load_model(struct setup *setup, const char *name, const char *ignore,
                             const char *fields, struct diag *diag);
enum status setup_load_cluster(struct setup *setup, const char *name, int64_t nodes, int64_t gpus,
                               struct diag *diag);
void setup_open_request(struct setup *setup);

/* Makes that many ranks share one GPU. If the cluster has no measured time of a copy between them, the device's costs
 * give it. */
enum status setup_share_gpu(struct setup *setup, int64_t ranks, struct diag *diag);

/* A change of the numbers of a loaded machine, as sensitivities make it. NULL stands for no change. */
struct setup_change {
    void (*apply)(struct setup *setup, const void *context);
    const void *context;
};
void setup_apply(struct setup *setup, const struct setup_change *change);

/* Makes attention block-sparse: that share of each chunk's keys is seen only by the queries of the same chunk. */
void setup_sparsity(struct setup *setup, int64_t chunk, double share);

#endif

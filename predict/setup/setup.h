/* predict/setup/setup.h: the inputs of a prediction: a model, a cluster with its costs, and a request, which is the
 * plain struct of choices that the caller fills (schedule/choices/choices.h).
 *
 * The folder predict/setup/ loads a model, a cluster and choices, and fills the choices that the model or costs
 * decide. */
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

/* The struct holds pointers into itself, so it must not be copied. */
struct setup {
    struct arena arena;
    struct transformer model; /* its name is NULL for a schedule from a file, which has no model */
    struct cluster cluster;
    struct device_cost cost;
    /* the framework that really runs, if the profile of the request only approximates it; NULL: the profile is that
     * framework's */
    const char *real_framework;
    /* why the run does less than is predicted: a mask of 1 << enum reason_run_does_less; 0: it does not */
    uint32_t mask_of_reasons_run_does_less;
    /* the probability with which a configuration must fit to be taken by a search; 0: one half */
    double fits_probability;
    /* measured runs, which say how sure a prediction is; they are loaded with the cluster */
    struct evidence evidence;
    struct request request;
    /* request.shared_units points here if the user gave it, or if setup_fill_open_fields() chose it */
    struct shared_units shared_units;
    struct routing routing; /* request.routing points here if the user gave it */
    /* on the heap: request.offload_hidden_bytes_by_subsequence, if setup_fill_open_fields() made it; else NULL */
    double *offload_hidden_bytes;
    /* is_partition_given: the user chose how sequences are cut; offload_given: the user chose what is offloaded */
    bool is_partition_given, offload_given;
    uint32_t uniform_above_ranks; /* uniform_above_ranks of struct sim_options */
    /* tokens of a step that are none of its documents: tokens per second leave them out */
    int64_t padding_tokens;
    /* The packed steps with which a configuration of a reproduced figure is predicted
     * (predict/documents/packed_sets.h). NULL: the request's own documents are used. */
    const struct packed_sets_request *sampled_packing;
    /* true: setup_load_model() loads the nearest dense model in place of the named one (models/hf_proxy.h) */
    bool takes_experts_as_dense;
};

void setup_release(struct setup *setup);

/* Fills the fields of the request that the model or costs decide (predict/setup/resolved.h). A prediction does this by
 * itself; other code calls this function before it builds a schedule of the request. */
enum status setup_fill_open_fields(struct setup *setup, struct diag *diag);

/* Loads the costs of device `name` in place of those that the cluster file names; NULL keeps these. */
enum status setup_load_costs(struct setup *setup, const char *name, struct diag *diag);

/* These functions load the parts of a setup. setup_load_model(): a model by its name; ignore: keys of its file to leave
 * unread; fields: fields to set; NULL: none. setup_load_cluster(): a cluster with its costs; nodes, gpus: how many of
 * them are in use; 0: that number follows from the other, or from the file if both are 0. setup_leave_request_open(): a
 * request with all choices open. */
enum status setup_load_model(struct setup *setup, const char *name, const char *ignore,
                             const char *fields, struct diag *diag);
enum status setup_load_cluster(struct setup *setup, const char *name, int64_t nodes, int64_t gpus,
                               struct diag *diag);
void setup_leave_request_open(struct setup *setup);

/* Makes `ranks` ranks share one GPU. If the cluster file has no measured time of a copy between ranks, it follows from
 * the device's costs. */
enum status setup_place_ranks_on_one_gpu(struct setup *setup, int64_t ranks, struct diag *diag);

/* A change of the numbers of a loaded machine, for example to find how much the step depends on them.
 * setup_apply_machine_change() makes it; change NULL: it does nothing. */
struct setup_machine_change {
    void (*apply)(struct setup *setup, const void *context);
    const void *context;
};
void setup_apply_machine_change(struct setup *setup, const struct setup_machine_change *change);

/* Makes attention block-sparse: of each chunk's keys, the share `share` is seen only by queries of the same chunk. */
void setup_set_sparsity(struct setup *setup, int64_t chunk, double share);

#endif

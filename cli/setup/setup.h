/* cli/setup/setup.h: what is asked about: a model, a cluster with its costs, and a request.
 *
 * The commands that take a configuration share its options, which are read here. */
#ifndef CLI_SETUP_SETUP_H
#define CLI_SETUP_SETUP_H

#include "base/arena.h"
#include "base/diag.h"
#include "cli/options.h"
#include "models/cluster.h"
#include "models/cost.h"
#include "models/transformer.h"
#include "schedule/compose.h"

#include <stdbool.h>

/* --model, --cluster and how much of it; --strategy and the five choices. */
extern const struct option_set setup_model_options, setup_cluster_options, setup_choice_options;

/* Holds pointers into itself: not to be copied. */
struct setup {
    struct arena arena;
    struct transformer model; /* name NULL: none, for schedules read from a file */
    struct cluster cluster;
    struct device_cost cost;
    struct request request;
    struct shared_units shared; /* request.shared, where it was given */
    double *hidden;             /* heap: request.offload_hidden_of, where setup_fill() made it */
    /* how sequences are cut, what of them leaves, what stages share of them */
    bool partition_given, offload_given;
};

void setup_release(struct setup *setup);

/* Loads what the options name. An absent --model or --seq is an error, unless the schedule comes
 * from a file; there, options that describe a configuration are. */
enum status setup_load(struct setup *setup, const struct options *options, bool from_file,
                       struct diag *diag);

/* The same of a configuration whose length is looked for, or given. */
enum status setup_load_open(struct setup *setup, const struct options *options, struct diag *diag);

/* Refuses what describes a configuration or a machine: a file that is looked at alone has its own,
 * and asks for none. */
enum status setup_of_file(const struct options *options, struct diag *diag);

/* Reads the choices of other options about the model and the cluster that are loaded. */
enum status setup_choose(struct setup *setup, const struct options *options, struct diag *diag);

/* Makes what the request leaves to costs (cli/setup/subsequences.h), for those that build of it alone. */
enum status setup_fill(struct setup *setup, struct diag *diag);

/* The same as setup_load() for a run on this machine. Without --cluster there are as many ranks as
 * --gpus says, or one, on one node. A file may come with the --model that it was made for. */
enum status setup_load_run(struct setup *setup, const struct options *options, bool from_file,
                           struct diag *diag);

/* Costs in place of those that the cluster names; NULL: these stay. */
enum status setup_load_costs(struct setup *setup, const char *name, struct diag *diag);

/* The parts, for rows of measurements: a model by name and what to ignore or set; a cluster of as
 * many GPUs with its costs; an open request about both. */
enum status setup_load_model(struct setup *setup, const char *name, const char *ignore,
                             const char *fields, struct diag *diag);
enum status setup_load_cluster(struct setup *setup, const char *name, int64_t nodes, int64_t gpus,
                               struct diag *diag);
void setup_open_request(struct setup *setup);

/* Changes the numbers of a machine that is loaded: what sensitivities ask about. NULL stands for none. */
struct setup_change {
    void (*apply)(struct setup *setup, const void *context);
    const void *context;
};
void setup_apply(struct setup *setup, const struct setup_change *change);

/* Makes attention block-sparse: a share of each chunk's keys is seen by its own queries alone. */
void setup_sparsity(struct setup *setup, int64_t chunk, double share);

#endif

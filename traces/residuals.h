/* traces/residuals.h: residuals of measured steps against their predictions, one run per row of a CSV file.
 *
 * `longhaul validate --residuals FILE` writes the rows and traces/published/residuals.csv ships them. A residual is
 * log(measured / predicted), of the seconds of a step and of the bytes of device memory: positive where the
 * program predicts too little. models/interval.h makes intervals of them. */
#ifndef TRACES_RESIDUALS_H
#define TRACES_RESIDUALS_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum residual_quantity { RESIDUAL_TIME, RESIDUAL_MEMORY, RESIDUAL_COUNT };

/* The member `context` of a residual ends in this if rows of tokens travel between nodes to their experts. */
#define CONTEXT_SUFFIX_EXPERTS_ACROSS_NODES " between nodes"

/* One run, with the features by which runs are compared; predict/similarity.h finds those of a
 * prediction. Texts are never NULL, except real_framework and, in a run to be predicted, source and
 * run. */
struct residual {
    const char *source;     /* the source that measured: "FPDT" */
    const char *laboratory; /* name that all sources of one author or one code share */
    const char *run;        /* name that distinguishes the run from others of its source */
    /* "", or the collection of rows to which the run belongs (traces/external.h). The means of errors
     * are printed for each set; intervals (models/interval.h) do not distinguish sets. */
    const char *set;
    const char *device;    /* the kind of device: "a100" */
    const char *framework; /* the profile with which the run is predicted: "deepspeed" */
    /* for a run to be predicted: the framework that really runs it, if `framework` is only the nearest profile;
     * NULL: framework is right */
    const char *real_framework;
    const char *attention; /* the kernel: "fa2" */
    /* how ranks share a sequence ("none", "ulysses", "ring", "2d", "fpdt", "upipe"), and properties
     * that interact with it, such as experts, adapters and products in 8 bits: "ring with experts
     * between nodes" */
    const char *context;
    const char *activations;  /* what is recomputed or sent to the host: "full", "offload" */
    bool host_optimizer;      /* the optimizer's step runs on the host */
    bool spans_several_nodes; /* the run is on several nodes */
    int64_t tp, pp, gpus;
    int64_t seq_len, sequences; /* tokens of a sequence; sequences of a step */
    int64_t parameters;         /* number of parameters of the whole model */
    /* seconds of a layer's forward products on a rank at the device's peak, one micro-batch: 2 x
     * parameters that a token uses / layers x tokens / (ranks that share a sequence x tp) / peak */
    double layer_s;
    double log_ratio[RESIDUAL_COUNT]; /* log(measured / predicted); NAN: not measured */
    /* log(measured / predicted) of the time at first sight: predicted by the program as it was before anyone had
     * seen the source. It is never computed again, and exists even for rows that count in no mean. NAN: unknown. */
    double log_ratio_at_first_prediction;
};

/* All-zero is empty. */
struct residuals {
    struct arena arena;
    struct residual *rows;
    size_t row_count, capacity;
};

void residuals_release(struct residuals *residuals);

/* Adds a row; its texts are copied. */
void residuals_add(struct residuals *residuals, const struct residual *row);

/* Adds the rows of data[0..size); name stands for the text in messages. */
enum status residuals_parse(struct residuals *residuals, const char *name, const char *data,
                            size_t size, struct diag *diag);

/* Adds the rows that ship with the program; adds none if the data folder lacks the file. */
enum status residuals_load_shipped(struct residuals *residuals, struct diag *diag);

/* Reads data[0..size), a table like traces/published/first.csv, and sets log_ratio_at_first_prediction of the rows with
 * its sources and runs; others are not changed. name stands for the text in messages. */
enum status residuals_parse_first_predictions(struct residuals *residuals, const char *name,
                                              const char *data, size_t size, struct diag *diag);

/* Does residuals_parse_first_predictions() with the file that ships; does nothing if the data folder lacks it. */
enum status residuals_load_first_predictions(struct residuals *residuals, struct diag *diag);

/* residual_put_json() writes the features of a run as members of the open object, named as the columns.
 * residual_read_json() reads them; texts then live as long as the JSON does. */
void residual_put_json(struct json_out *json, const struct residual *row);
enum status residual_read_json(struct residual *row, struct json_node object, struct diag *diag);

/* Appends all rows as CSV, residuals with four decimals. */
void residuals_print(const struct residuals *residuals, struct text *out);
enum status residuals_save(const struct residuals *residuals, const char *path, struct diag *diag);

#endif

/* predict/intervals.h: the 90 % intervals of a prediction, from measured runs like it (models/interval.h). */
#ifndef PREDICT_INTERVALS_H
#define PREDICT_INTERVALS_H

#include "base/text.h"
#include "models/interval.h"
#include "predict/prediction.h"

#include <stdbool.h>

enum { SIMILARITY_NAME = 32 };

/* The features by which runs are compared: those of struct residual (traces/residuals.h), which has their units. It
 * holds no pointers, because it crosses processes. */
struct similarity {
    char device
        [SIMILARITY_NAME]; /* the kind: "a100" of "a100-80g"; "": nothing to compare, as on ideal hardware */
    char framework[SIMILARITY_NAME]; /* the profile; "none": a schedule from a file without one */
    bool several;                    /* nodes */
    /* The members below are empty for a schedule from a file, whose choices are not known. */
    char attention[SIMILARITY_NAME], context[SIMILARITY_NAME], activations[SIMILARITY_NAME];
    bool host_optimizer;
    int64_t tp, pp, gpus, seq_len, sequences, parameters;
    double layer_s;
};
/* similarity_of() returns the properties of a prediction by which similar measured runs are found; similarity_run()
 * returns them in the form that models/interval.h takes. */
struct similarity similarity_of(const struct prediction *prediction);
struct interval_run similarity_run(const struct similarity *similarity);

/* Returns a residual with the features of a run that has choices, which borrows their texts, and with no values; the
 * caller sets what names the run. */
struct residual similarity_residual(const struct similarity *similarity);

/* The 90 % intervals of a whole step, for times and for device memory, from the residuals that ship with the program.
 * There are none for a part of a model, none for ideal hardware or profile ideal (no measured run is similar), and
 * none if no residuals are found. Times have none before spreads_find() on a machine with measured numbers, and on a
 * device with estimated numbers of which there is no measured run. Plain bytes: the struct can be copied between
 * processes. */
struct intervals {
    struct similarity like;
    struct interval of[RESIDUAL_COUNT];
    struct spreads
        spreads; /* of the machine, where some of its numbers were measured: in the interval of times */
};
struct intervals intervals_of(const struct prediction *prediction);

/* True if there is an interval for this figure. */
bool intervals_known(const struct intervals *intervals, enum residual_of of);

/* Appends "54.3 to 80.6": the ends of a value's interval, divided by `unit`, with three digits each. */
void intervals_put(struct text *out, const struct interval *interval, double value, double unit);

/* If there is an interval, appends `before`, the text of intervals_put() and a bracket: " (90 %: 54.3 to 80.6)". */
void intervals_put_beside(struct text *out, const char *before, const struct interval *interval,
                          double value, double unit);

/* Appends an interval with these ends, as intervals_put() does. */
void intervals_put_ends(struct text *out, double low, double high);

/* Appends "time -18 to +22 %, 24 runs of 2 sources on a100, deepspeed, several nodes; memory ...". */
void intervals_put_from(struct text *out, const struct intervals *intervals);

/* Appends what an interval rests on: measured runs, "24 runs of 2 sources on a100". For times, if numbers of the
 * machine were measured, these come first: "65 % of the step goes with figures that were measured on this machine,
 * whose spreads move it by this much: products 16 %; not measured are links within a node (35 % of it), which are
 * judged by 24 runs ...". */
void intervals_put_evidence(struct text *out, const struct intervals *intervals,
                            enum residual_of of);

/* Appends the line "interval   90 %: time ...", where there is an interval. */
void intervals_put_line(struct text *out, const struct intervals *intervals);

#endif

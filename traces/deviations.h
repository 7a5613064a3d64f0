/* traces/deviations.h: how far predictions deviate where a feature of the run was never measured: the table
 * traces/published/intervals.csv, from which models/interval.h makes intervals.
 *
 * A deviation is a standard deviation of log(measured / predicted). Each row says how many measured rows it rests on,
 * and why it has its value. */
#ifndef TRACES_DEVIATIONS_H
#define TRACES_DEVIATIONS_H

#include "base/diag.h"
#include "traces/residuals.h"

/* FEATURE_ROW(symbol, name): the features by which a predicted run may differ from all measured ones. Each but BASE
 * widens the interval of the prediction (models/interval.h). The comment of a feature says what no measured run has. */
#define INTERVAL_FEATURES(FEATURE_ROW)                                                             \
    FEATURE_ROW(BASE, "base")           /* nothing: all features of the run were measured */       \
    FEATURE_ROW(PROFILE, "profile")     /* the profile */                                          \
    FEATURE_ROW(NEUTRAL, "neutral")     /* the profile models no real framework */                 \
    FEATURE_ROW(MECHANISM, "mechanism") /* a mechanism with the profile: enum mechanism */         \
    FEATURE_ROW(ELSEWHERE, "elsewhere") /* the mechanism on the device */                          \
    FEATURE_ROW(EXCHANGE, "exchange")   /* experts whose rows travel between nodes */              \
    FEATURE_ROW(TOGETHER, "together")   /* these mechanisms together */                            \
    FEATURE_ROW(KERNEL, "kernel")       /* the device, or the attention kernel on it */            \
    FEATURE_ROW(FAR, "far")             /* a run of about this size */                             \
    FEATURE_ROW(SMALL, "small")         /* layers as short as these */

enum interval_feature {
#define FEATURE_ROW(symbol, name) FEATURE_##symbol,
    INTERVAL_FEATURES(FEATURE_ROW)
#undef FEATURE_ROW
        FEATURE_COUNT
};
extern const char *const interval_feature_names[FEATURE_COUNT];

struct deviations {
    double log_deviation[RESIDUAL_COUNT][FEATURE_COUNT]; /* 0: the figure has no such feature */
};

/* Reads data[0..size); name stands for the text in messages. Every figure needs the feature "base". */
enum status deviations_parse(struct deviations *deviations, const char *name, const char *data,
                             size_t size, struct diag *diag);

/* Reads the table that ships with the program. If the data folder lacks it, all deviations are 0. */
enum status deviations_load_shipped(struct deviations *deviations, struct diag *diag);

#endif

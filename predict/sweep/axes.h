/* predict/sweep/axes.h: a grid: every combination of the values of its axes.
 *
 * The values of an axis are a list "a,b,c" (separated by ';' if the text has one, for values that contain commas),
 * or, for numbers, "A..B:xF" (each F times the one before) or "A..B:+S" (each S more than the one before; whole
 * numbers may leave out ":+1"); B is included if a step meets it. The first axis changes slowest.
 *
 * The folder predict/sweep/ predicts every point of a grid of options. */
#ifndef PREDICT_SWEEP_AXES_H
#define PREDICT_SWEEP_AXES_H

#include "base/arena.h"
#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>

enum { GRID_POINTS_MAX = 10000000 };

/* The type of an axis' values; it decides whether a range is allowed. */
enum axis_value_type {
    AXIS_TYPE_TEXTS,             /* no range */
    AXIS_TYPE_TEXTS_WITH_COMMAS, /* texts that contain commas: only ';' separates them */
    AXIS_TYPE_WHOLE_NUMBERS,     /* whole numbers: the step of a range may be left out */
    AXIS_TYPE_TOKEN_COUNTS,      /* base/units.h: "512K" */
    AXIS_TYPE_NUMBERS,           /* any numbers */
    AXIS_TYPE_CLUSTER_NUMBERS, /* a number of the cluster: values without a unit take the last one's, "100,200Gb/s" */
};

struct grid_axis {
    const char *key;
    const char *values_text;         /* the text of the values, as "8K..256K:x2" */
    bool is_axis_of_cluster_numbers; /* the values are of type AXIS_TYPE_CLUSTER_NUMBERS */
    const char **value;
    size_t value_count, capacity;
};

/* All-zero is empty, and has one point. */
struct grid_axes {
    struct arena arena; /* holds all texts */
    struct grid_axis *axis;
    size_t axis_count;
};

void grid_axes_release(struct grid_axes *axes);

/* Adds an axis; key and given are copied. Messages begin with "--vary". */
enum status grid_axes_add_option(struct grid_axes *axes, const char *key, const char *given,
                                 enum axis_value_type of, struct diag *diag);

size_t grid_point_count(const struct grid_axes *axes);

/* Returns the text of an axis' value at a point. */
const char *grid_value_text(const struct grid_axes *axes, size_t point, size_t axis);

#endif

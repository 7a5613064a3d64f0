/* models/spread.h: how far the numbers of a machine may be wrong, and the machine with some of its numbers made slower
 * by that much.
 *
 * A number that `calibrate` fitted on the machine has a spread in its file: the relative standard deviation of the
 * times that are predicted with it (docs/accuracy/intervals.md). Such a number counts as measured here. Numbers without
 * a spread come from a preset.
 *
 * Numbers that the same points determine form a part. The errors of all numbers of a part are taken as equal, and those
 * of different parts as independent. Numbers of data sheets, power, jitter and the sizes of tiles belong to no
 * part. */
#ifndef MODELS_SPREAD_H
#define MODELS_SPREAD_H

#include "base/arena.h"
#include "models/cluster.h"
#include "models/cost.h"

#include <stdbool.h>

enum spread_machine_part {
    SPREAD_PRODUCTS,
    SPREAD_ATTENTION,
    SPREAD_MEMORY,
    SPREAD_KERNEL_STARTS,
    SPREAD_HOST_WORK,
    SPREAD_HOST_COPIES,
    SPREAD_NODE_LINKS,
    SPREAD_NETWORK_LINKS,
    SPREAD_PART_COUNT
};

/* Returns the name of a part: "products", "links within a node". */
const char *spread_part_name(enum spread_machine_part part);

/* Returns the largest spread of the numbers of a part; 0: no number of the part has a spread. */
double spread_largest_of_part(const struct device_cost *cost, const struct cluster *cluster,
                              enum spread_machine_part part);

/* True if any number of a part has a spread, and so was measured on the machine. */
bool spread_has_measured_number(const struct device_cost *cost, const struct cluster *cluster);

/* Returns the relative error that the device's file states for the estimated numbers of a part; 0 if the part has no
 * estimated numbers, or belongs to the cluster. */
double spread_error_of_estimates(const struct device_cost *cost, enum spread_machine_part part);

/* Make the numbers of a part slower. spread_slow_down_measured_numbers() slows those that have a spread, each by the
 * factor exp(spread); spread_slow_down_unmeasured_numbers() slows the others, by `factor`. Numbers change in place.
 *
 * The measured times of products and attention (struct cost_points) belong to a part, too.
 * spread_slow_down_measured_numbers() slows them by exp of the smallest spread of the part;
 * spread_slow_down_unmeasured_numbers() slows them by `factor` if no number of the part has a spread. cost->points.row
 * then is a copy in the arena. */
void spread_slow_down_measured_numbers(struct device_cost *cost, struct cluster *cluster,
                                       struct arena *arena, enum spread_machine_part part);
void spread_slow_down_unmeasured_numbers(struct device_cost *cost, struct cluster *cluster,
                                         struct arena *arena, enum spread_machine_part part,
                                         double factor);

#endif

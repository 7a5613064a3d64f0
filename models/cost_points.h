/* models/cost_points.h: measured times of single kernels that a device file names; private to models/cost*.c.
 *
 * A device file may say {"points": {"file": "b200-points.csv", "source": "..."}}: a file of models/points.h, whose
 * path is relative to the folder of the device file, with matrix products and attention of that device.
 *
 * A shape has three sides (m, n, k, or queries, keys, heads) and attributes (the form of a product, the mask, the head
 * dim, ...). The time of a shape is that of the formula times a ratio, measured time over formula:
 *   - If measured shapes have the same sides, it is the ratio of those with the fewest other attributes. For a shape
 *     that was measured itself, the time is the measured one.
 *   - Else, if at least four measured shapes are near, it is a weighted geometric mean over the nearest eight.
 *   - Else it is 1 (docs/costs.md, "Measured points"). */
#ifndef MODELS_COST_POINTS_H
#define MODELS_COST_POINTS_H

#include "models/cost_reader.h"

/* Reads the member "points" of a device file. They replace the points of the file's base. */
enum status cost_points_read(struct cost_reader reader, struct json_node node);

/* Drops the points of attention or, if `attention` is false, those of products. */
void cost_points_drop_family(struct cost_points *points, bool attention);

/* Returns the seconds of the work: those of the formula, corrected by measured points if there are near ones. */
double cost_points_s(const struct device_cost *cost, enum attention_impl impl,
                     const struct work *work, enum cost_clock_kind clock, cost_function *formula);

#endif

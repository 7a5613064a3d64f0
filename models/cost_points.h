/* models/cost_points.h: measured times of single kernels that a device file names; private to models/cost*.c and
 * models/calibrate*.c.
 *
 * A device file may say {"points": {"file": "b200-points.csv", "source": "..."}}: a file of models/points.h, whose
 * path is relative to the folder of the device file, with matrix products and attention of that device. For a
 * measured shape, the measured time replaces the formula. A shape with the sides of a measured one takes the measured
 * time, times what the formula charges for the attributes in which they differ. For a shape near at least four measured
 * ones, the formula is multiplied by the weighted geometric mean of the ratio of measured time to formula of the
 * nearest ones, at most eight (docs/costs.md, "Measured points"). */
#ifndef MODELS_COST_POINTS_H
#define MODELS_COST_POINTS_H

#include "models/cost_reader.h"

/* Reads the member "points" of a device file. Its points replace those that the file's base has set. */
enum status cost_points_read(struct cost_reader reader, struct json_node node);

/* Drops the points of attention or, if `attention` is false, those of products. */
void cost_points_drop_family(struct cost_points *points, bool attention);

/* Returns the seconds of the work from measured points; if no measured shape is near, those of the formula `law`. */
double cost_points_s(const struct device_cost *cost, enum attention_impl impl,
                     const struct work *work, enum cost_clock clock, cost_function *law);

#endif

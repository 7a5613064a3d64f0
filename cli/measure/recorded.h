/* cli/measure/recorded.h: recorded steps from which calibrate takes points: the recordings, and the prediction of the
 * configuration that was recorded. */
#ifndef CLI_MEASURE_RECORDED_H
#define CLI_MEASURE_RECORDED_H

#include "cli/common/options.h"
#include "models/points.h"
#include "predict/observe.h"
#include "predict/prediction.h"

/* All-zero is empty. */
struct recorded_steps {
    size_t path_count;
    const char **path;
    struct setup setup;
    struct prediction prediction;
    struct observed observed;
    struct text notes; /* about recorded work of which no point can be made */
};

void recorded_release(struct recorded_steps *recorded);

/* Adds the path of a recording. The text of the path is borrowed. */
void recorded_add_path(struct recorded_steps *recorded, const char *path);

/* Predicts the configuration that the options describe, and adds the points of all recordings. */
enum status recorded_add_points(struct recorded_steps *recorded, const struct options *options,
                                struct points *points, struct diag *diag);

/* Appends the line "recorded", on the recordings, the line "strays", on recorded work that the schedule does not have,
 * and the notes. */
void recorded_put_report(const struct recorded_steps *recorded, struct text *out);

/* Returns the name of the device preset from which the numbers come that were not measured. */
const char *recorded_device_preset(const struct recorded_steps *recorded);

#endif

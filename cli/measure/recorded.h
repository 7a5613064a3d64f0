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
    struct observation_set observed;
    struct text notes_on_work_without_point; /* about recorded work of which no point can be made */
};

void recorded_release(struct recorded_steps *recorded);

/* Adds the path of a recording. The text of the path is borrowed. */
void recorded_add_path(struct recorded_steps *recorded, const char *path);

/* Predicts the configuration that the options describe, and adds the points of all recordings. */
enum status recorded_add_to_points(struct recorded_steps *recorded, const struct options *options,
                                   struct points *points, struct diag *diag);

/* Appends a line "recorded" about the recordings, a line "strays" about recorded work that the schedule does not
 * have, if there is any, and the notes. Appends nothing if no recording was read. */
void recorded_put_report(const struct recorded_steps *recorded, struct text *out);

/* Returns the name of the device preset that gives the numbers that were not measured: cpu-torch for recordings of a
 * processor, otherwise the costs of the prediction. */
const char *recorded_device_preset(const struct recorded_steps *recorded);

#endif

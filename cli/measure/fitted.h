/* cli/measure/fitted.h: fits measured points to a device and to links and writes the resulting files. calibrate does
 * so with files of points, bench with the points it measured if a cluster file is wanted. */
#ifndef CLI_MEASURE_FITTED_H
#define CLI_MEASURE_FITTED_H

#include "base/text.h"
#include "models/calibrate.h"
#include "models/calibrate_links.h"

/* All-zero is empty. The caller fills `points` and `options`. */
struct fitted {
    struct arena arena;
    struct points points;
    struct calibrate_options options;

    struct device_cost base_costs;
    const char *base_name;
    struct calibration device_fit;
    struct link_calibration link_fit;
    bool has_device, has_links; /* there are points of the device, and points of links */
    struct text refusals;       /* messages about refused fits of links that were not requested */
    /* the source of the points, which a device file states together with the name of a file of points (docs/costs.md,
     * "Measured points"); NULL: the device file names no file of points */
    const char *points_source;
};

void fitted_release(struct fitted *fitted);

/* Finds whether there are points of the device and of links. Drops messages and copies of fewer than min_bytes. */
void fitted_classify_points(struct fitted *fitted, int64_t min_bytes);

/* Fits everything for which there are points. base: the device preset that gives the numbers that were not measured;
 * NULL: that of the processor, if its backend measured the points, else an error. A refused fit of links is only
 * reported; but if `links` is set, or if there is nothing else to fit, STATUS_NO is returned. name: the points' name in
 * messages. */
enum status fitted_fit_points(struct fitted *fitted, const char *base, bool links, const char *name,
                              struct diag *diag);
void fitted_put_report(const struct fitted *fitted, struct text *out);

/* The files that are written. NULL: that file is not written. */
struct fitted_files {
    const char *device_path; /* the device file */
    /* the name of the device; NULL: its file's name without ".json" */
    const char *device_name;
    /* a cluster file: the preset `base_preset` with the measured links and the device of `device_path` */
    const char *cluster_path;
    const char *base_preset;
};
/* Writes the files and, if the device file names one, its file of points; if one cannot be written, none is. A file for
 * which no fit succeeded is left out: a note says so, and STATUS_NO is returned. It is written nevertheless, with the
 * numbers of the preset that it builds on, if other programs disturbed the measurement of a fit. Other numbers whose
 * fit was refused are those of that preset, too, with a note. Call it after fitted_fit_points() returned STATUS_OK or
 * STATUS_NO, with a device_path only if fitted->has_device. */
enum status fitted_save(struct fitted *fitted, const struct fitted_files *files, struct diag *diag);

#endif

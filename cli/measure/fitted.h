/* cli/measure/fitted.h: fits measured points to a device and to links and writes the resulting files. calibrate does so
 * with files of points and recorded steps, bench with the points it measured if a cluster file is wanted. */
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
    /* messages about refused fits of links that were not requested */
    struct text unrequested_link_refusal_messages;
    /* the source of the points, which the device file states if it names a file of points (docs/costs.md, "Measured
     * points"); NULL: it names none */
    const char *points_source;
};

void fitted_release(struct fitted *fitted);

/* Drops the points of links (messages and copies) whose payload is below min_bytes. Then sets has_device and has_links
 * by the points that are left. */
void fitted_drop_small_link_points(struct fitted *fitted, int64_t min_bytes);

/* Fits everything for which there are points. base: the name of the device preset that gives the numbers that were not
 * measured; NULL: cpu-generic if the cpu backend measured the points, else an error. name: the name of the points in
 * messages.
 *
 * Returns STATUS_NO, with messages, if there are no points or if a fit of the device is refused. A refused fit of links
 * has the same effect if `links` is set or if there are no points of the device. Otherwise its message is only added to
 * `unrequested_link_refusal_messages`. */
enum status fitted_fit_points(struct fitted *fitted, const char *base, bool links, const char *name,
                              struct diag *diag);
void fitted_put_report(const struct fitted *fitted, struct text *out);

/* The files that are written. NULL: that file is not written. */
struct fitted_files {
    const char *device_path; /* the device file */
    /* the name of the device; NULL: its file's name without ".json" */
    const char *device_name;
    /* the cluster file: the cluster `base_preset`, a preset or a file, with the measured links and,
     * unless device_path is NULL, the device of that file */
    const char *cluster_path;
    const char *base_preset;
};
/* Writes the files and, if the device file names one, its file of points. If one of them cannot be written, none is.
 * Call it after fitted_fit_points() returned STATUS_OK or STATUS_NO, with a device_path only if has_device.
 *
 * A file is left out if none of its fits was accepted: a note says so, and STATUS_NO is returned. But it is written
 * if other programs disturbed the points of a refused fit, which only --despite-noise allows. In a file that is
 * written, the numbers of refused fits are those of the preset on which it builds. */
enum status fitted_save(struct fitted *fitted, const struct fitted_files *files, struct diag *diag);

#endif

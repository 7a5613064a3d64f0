/* cli/measure/fitted.h: fits measured points to a device and to links and writes the resulting files. calibrate does
 * so with files of points, bench with the points it measured if a cluster file is wanted. */
#ifndef CLI_MEASURE_FITTED_H
#define CLI_MEASURE_FITTED_H

#include "base/text.h"
#include "models/calibrate.h"
#include "models/calibrate_links.h"

/* All-zero is empty. points and options are filled by the caller. */
struct fitted {
    struct arena arena;
    struct points points;
    struct calibrate_options options;

    struct device_cost base;
    const char *base_name;
    struct calibration device;
    struct link_calibration links;
    bool has_device, has_links; /* there are points of the device, of links */
    struct text refused;        /* messages about refused fits of links that were not requested */
    /* The source of the points, as a device file that names a file of points states it (docs/costs.md, "Measured
     * points"); NULL: the device file names none. */
    const char *points_source;
};

void fitted_release(struct fitted *fitted);

/* Finds whether there are points of the device and of links; drops messages and copies of fewer than min_bytes. */
void fitted_sort(struct fitted *fitted, int64_t min_bytes);

/* Fits everything that has points. base: the device preset whose numbers are kept where nothing was measured; NULL:
 * the preset of the backend that measured them. A refused fit of links is STATUS_NO if `links` is set or there is
 * nothing else to fit; else it is only reported. `name` stands for the points in messages. */
enum status fitted_make(struct fitted *fitted, const char *base, bool links, const char *name,
                        struct diag *diag);
void fitted_report(const struct fitted *fitted, struct text *out);

/* The files that take the results; NULL: that file is not written. */
struct fitted_files {
    const char *device; /* the device file */
    const char *name;   /* the device's name; NULL: its file's name without ".json" */
    /* a cluster over the preset `base`, with the measured links and with the device of `device` */
    const char *cluster;
    const char *base;
};
/* Writes the files, all or none, with the device's file of points. A file for which there is no fit is left out, with
 * a note and STATUS_NO. Numbers whose fit was refused keep the base's values, with a note. To be called after
 * fitted_make() returned STATUS_OK or STATUS_NO; a device file needs points of a device. */
enum status fitted_save(struct fitted *fitted, const struct fitted_files *files, struct diag *diag);

#endif

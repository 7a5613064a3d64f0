/* cli/measure/fitted.h: points fitted to a device and to links, and the files that are made of them; what
 * calibrate does with files of points, and bench with its own when it is asked for a cluster. */
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
    bool has_device, has_links; /* points of them */
    struct text refused;        /* of links that nobody asked for */
    /* Where the points come from, as written into a device file that names a file of points (docs/costs.md, "Measured
     * points"); NULL: the device file names none. */
    const char *points_source;
};

void fitted_release(struct fitted *fitted);

/* Sorts out what the points are of; messages and copies of fewer bytes go. */
void fitted_sort(struct fitted *fitted, int64_t min_bytes);

/* Fits everything that has points. base: a device preset; NULL: that of the backend that measured them. A refused fit of
 * links is STATUS_NO if links are wanted or there is nothing else to fit; else it is only reported. `name` stands for the
 * points in messages. */
enum status fitted_make(struct fitted *fitted, const char *base, bool links, const char *name,
                        struct diag *diag);
void fitted_report(const struct fitted *fitted, struct text *out);

/* Where the results go; NULL: that file is not written. */
struct fitted_files {
    const char *device;  /* the device file */
    const char *name;    /* of the device; NULL: that of its file without ".json" */
    const char *cluster; /* a cluster over the preset `base` with the measured links, and with the
                            device of `device` */
    const char *base;
};
/* Writes both, or neither; a file of which nothing was fitted is left out, with a note and STATUS_NO, and what was
 * refused stays as the base has it, with a note. To be called when fitted_make() has ended in STATUS_OK or
 * STATUS_NO. */
enum status fitted_save(struct fitted *fitted, const struct fitted_files *files, struct diag *diag);

#endif

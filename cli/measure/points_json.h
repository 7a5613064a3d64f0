/* cli/measure/points_json.h: measured points, and what was fitted to them, as JSON in SI units. */
#ifndef CLI_MEASURE_POINTS_JSON_H
#define CLI_MEASURE_POINTS_JSON_H

#include "cli/common/rows.h"
#include "models/calibrate_links.h"

/* Rows of `bench --json` and `calibrate --json`. Without --json bench writes a file of points, and calibrate prints
 * sentences. */
enum {
    POINTS_TABLE_POINTS,
    POINTS_TABLE_FAMILIES,
    POINTS_TABLE_NUMBERS,
    POINTS_TABLE_LINKS,
    POINTS_TABLE_FALLBACKS,
    POINTS_TABLE_COUNT
};
extern const struct row_table points_tables[POINTS_TABLE_COUNT];

/* Appends an object with the header and the points, which have the columns of models/points.h. */
void points_print_json(const struct points *points, struct text *out);

/* Appends an object with the families, their residuals and numbers, the numbers that were not fitted, and the links.
 * refused: messages about refused fits, "" if there are none. recorded: the lines about recorded steps, "" if there are
 * none. */
void calibration_print_json(const struct calibration *device, const struct link_calibration *links,
                            const char *refused, const char *recorded, struct text *out);

#endif

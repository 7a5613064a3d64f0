/* models/cost_reader.h: reading one device cost file; private to models/cost_*.c.
 *
 * docs/costs.md, "Device files", has the schema. */
#ifndef MODELS_COST_READER_H
#define MODELS_COST_READER_H

#include "base/json.h"
#include "models/cost_parts.h"

/* The state of reading one device file. */
struct cost_reader {
    struct device_cost *cost;
    struct arena *arena;
    struct diag *diag;
    /* which file is read. 0: the file that was asked for; 1: its base; 2: the base of its base; and so on */
    int file_depth_in_base_chain;
};

/* Returns a copy of text that lives as long as the costs. */
const char *cost_copy_text(struct cost_reader reader, const char *text);

/* Reads {"value": ..., "source": "..."} in the unit and range of param, and records it as the fact `name`. Optional
 * members: "how": how the number was obtained (models/number_origin.h); "interval": [lowest, highest], if machines
 * differ; "spread": the relative spread, if the number was measured on this machine. */
enum status cost_read_number(struct cost_reader reader, struct json_node node, const char *name,
                             const struct cost_param *param, double *value);

/* Reads the member "calibrated" of a family, {"residual": r, "source": s, "sizes": {...}}, or "estimated", which has no
 * sizes. If the object has neither, *calibration does not change; both are an error. */
enum status cost_read_calibrated_range(struct cost_reader reader, struct json_node object,
                                       struct cost_calibrated_range *calibration);

enum status cost_read_attention(struct cost_reader reader, struct json_node object);

#endif

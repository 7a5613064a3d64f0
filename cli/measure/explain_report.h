/* cli/measure/explain_report.h: prints why a measured step takes longer than predicted, on one screen or as JSON. */
#ifndef CLI_MEASURE_EXPLAIN_REPORT_H
#define CLI_MEASURE_EXPLAIN_REPORT_H

#include "base/json_write.h"
#include "base/text.h"
#include "traces/explain.h"

/* Causes whose share of all differences is smaller than this are added up as the rest. */
#define EXPLAIN_REST 0.02

/* Appends the causes, and a table of what each rank spends. Text is wrapped at `width` columns; 0: it is not
 * wrapped. */
void explain_report_print(struct text *out, const struct explanation *explanation, size_t width);
void explain_report_print_json(struct json_out *json, const struct explanation *explanation);

/* Returns how many causes are shown one by one. Sets *rest_s to the sum of the others. */
size_t explain_report_shown(const struct explanation *explanation, double *rest_s);

#endif

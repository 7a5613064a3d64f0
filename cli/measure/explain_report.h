/* cli/measure/explain_report.h: prints why a measured step takes longer or shorter than predicted,
 * on one screen or as JSON. */
#ifndef CLI_MEASURE_EXPLAIN_REPORT_H
#define CLI_MEASURE_EXPLAIN_REPORT_H

#include "cli/common/rows.h"
#include "traces/explain.h"

/* Causes whose share of the sum of all absolute differences is smaller than this, and causes after the ten largest, are
 * added up as the rest. */
#define EXPLAIN_CAUSE_SHARE_MIN 0.02

enum explain_table_id { EXPLAIN_TABLE_CAUSES, EXPLAIN_TABLE_RANKS, EXPLAIN_TABLE_COUNT };
extern const struct row_table explain_tables[EXPLAIN_TABLE_COUNT];

/* Appends the causes, and a table of what ranks spend beyond the prediction, at most eight of them. Text is wrapped at
 * `width` columns; 0: it is not wrapped. */
void explain_report_print(struct text *out, const struct explanation *explanation, size_t width);
void explain_report_print_json(struct json_out *json, const struct explanation *explanation);

/* Appends the causes, the largest first. JSON has all of them; in text and on a page the small ones are one row
 * "rest". */
void explain_report_put_causes(struct rows *rows, const struct explanation *explanation);

#endif

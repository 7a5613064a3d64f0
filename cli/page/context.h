/* cli/page/context.h: what a prediction's page sets beside it: measured steps, and the other configurations of a
 * search.
 *
 * The folder cli/page/ writes the HTML pages of `report`, `plan -o` and `reproduce`. */
#ifndef CLI_PAGE_CONTEXT_H
#define CLI_PAGE_CONTEXT_H

#include "base/diag.h"
#include "base/json.h"
#include "cli/common/page.h"

/* Appends a table of the measured steps most similar to the run of prediction.json (root is its root), with the errors
 * of their predictions; nothing if there are none. Steps of a named set (traces/external.h) are left out. */
void page_put_similar_runs(struct page *page, struct json_node root);

/* Appends the ranking of the search that chose this configuration, and why other strategies lost, from the folder's
 * plan.json; nothing if that file does not exist or is of another command. */
enum status page_put_ranking(struct page *page, const char *folder, struct json_node root,
                             struct diag *diag);

#endif

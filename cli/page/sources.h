/* cli/page/sources.h: the inputs of a page's predictions, with their sources: model, profile, cluster and costs,
 * conventions and constants. */
#ifndef CLI_PAGE_SOURCES_H
#define CLI_PAGE_SOURCES_H

#include "cli/common/page.h"

/* Appends the sources of the inputs whose names are not NULL, and the conventions and constants. Costs are shown only
 * with a cluster: those of `costs` or, if it is NULL, the cluster's own. If an input cannot be loaded (its file is
 * gone), the page says so; that is no error. */
void page_put_sources(struct page *page, const char *model, const char *cluster, const char *costs,
                      const char *profile);

#endif

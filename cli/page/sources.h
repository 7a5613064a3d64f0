/* cli/page/sources.h: what a figure on a page rests on: models, clusters and costs with the source of
 * every number, conventions and constants. */
#ifndef CLI_PAGE_SOURCES_H
#define CLI_PAGE_SOURCES_H

#include "cli/page/page.h"

/* Names may be NULL. What cannot be loaded (a file that is no longer there) is said, not a fault. */
void page_put_sources(struct page *page, const char *model, const char *cluster, const char *costs,
                      const char *profile);

#endif

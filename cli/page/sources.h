/* cli/page/sources.h: the inputs of a page's predictions: models, clusters and costs with the source of
 * every number, conventions and constants. */
#ifndef CLI_PAGE_SOURCES_H
#define CLI_PAGE_SOURCES_H

#include "cli/common/page.h"

/* Appends the sources. Names may be NULL. An input that cannot be loaded (its file is gone) is named, not an
 * error. */
void page_put_sources(struct page *page, const char *model, const char *cluster, const char *costs,
                      const char *profile);

#endif

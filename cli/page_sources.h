/* cli/page_sources.h: what a figure on a page rests on: models, clusters and costs with the source of
 * every number, conventions and constants. */
#ifndef CLI_PAGE_SOURCES_H
#define CLI_PAGE_SOURCES_H

#include "cli/page.h"

/* Names may be NULL. What cannot be loaded (a file that is no longer there) is said, not a fault. */
void page_put_sources(struct page *page, const char *model, const char *cluster, const char *costs,
                      const char *profile);

/* The value of an option in a command line such as a file's head has; false where there is none. */
bool page_find_option(const char *command, const char *name, struct text *value);

#endif

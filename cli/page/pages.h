/* cli/page/pages.h: the pages of `report`, one for each kind of result. Each function appends a whole page to an
 * all-zero *page; if `title` is NULL, the title names the kind of result. */
#ifndef CLI_PAGE_PAGES_H
#define CLI_PAGE_PAGES_H

#include "cli/common/table.h"
#include "cli/page/draw.h"

enum status page_of_prediction(struct page *page, const char *path, const char *title,
                               struct diag *diag);
enum status page_of_sweep(struct page *page, const struct table *sweep, const char *title,
                          struct diag *diag);
enum status page_of_validation(struct page *page, const struct table *validated, const char *title,
                               struct diag *diag);
enum status page_of_comparison(struct page *page, const char *predicted, const char *measured,
                               const char *title, struct diag *diag);

#endif

/* cli/page/draw.h: figures in a page (cli/common/page.h). */
#ifndef CLI_PAGE_DRAW_H
#define CLI_PAGE_DRAW_H

#include "cli/common/page.h"
#include "cli/figure/figure.h"

/* Draws a figure into the page and releases it. If `status` says that the figure could not be made, the page fails
 * with that status. */
enum status page_draw(struct page *page, struct figure *figure, enum status status,
                      const char *caption, struct diag *diag);

#endif

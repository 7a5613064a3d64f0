/* cli/page/draw.h: figures in a page (cli/common/page.h). */
#ifndef CLI_PAGE_DRAW_H
#define CLI_PAGE_DRAW_H

#include "cli/common/page.h"
#include "cli/figure/figure.h"

/* Draws a figure into the page and releases the figure. status: what the function that made the
 * figure returned. If it is an error, page_draw() draws nothing and returns it. */
enum status page_draw(struct page *page, struct figure *figure, enum status status,
                      const char *caption, struct diag *diag);

#endif

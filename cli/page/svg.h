/* cli/page/svg.h: a drawing of gnuplot's as a part of a page: small, and in the page's colours. */
#ifndef CLI_PAGE_SVG_H
#define CLI_PAGE_SVG_H

#include "base/text.h"

#include <stddef.h>

/* Appends the svg element of a themed drawing (figure_look.themed): marks for colours become variables of the page's
 * style sheet, points that a pixel cannot show are left out, and boxes of one colour that follow each other are one
 * path. number: of the drawing in its page, for its ids. */
void svg_put(struct text *out, const char *svg, size_t number);

#endif

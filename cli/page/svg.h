/* cli/page/svg.h: a drawing of gnuplot's as a part of a page: small, and in the page's colours. */
#ifndef CLI_PAGE_SVG_H
#define CLI_PAGE_SVG_H

#include "base/text.h"

#include <stddef.h>

/* Appends the svg element of a drawing that follows the theme (figure_look.follows_theme). Marks
 * for colours become variables of the page's style sheet; points that look the same when rounded to
 * a tenth of a unit, and points within a horizontal or vertical line, are omitted; and neighbouring
 * boxes of one colour become one path. number: the index of the drawing in its page, which makes
 * its ids unique. Appends nothing if `svg` has no svg element. */
void svg_put_shortened(struct text *out, const char *svg, size_t number);

#endif

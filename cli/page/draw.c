#include "cli/page/draw.h"

#include "cli/page/svg.h"

/* Appends one of two drawings of the figure, a wide one or a narrow one; the style sheet shows one of them by the width
 * of the window. */
static enum status put_drawing(struct page *page, const struct figure *figure, bool narrow,
                               struct diag *diag)
{
    const int wide = narrow ? FIGURE_NARROW : figure->width;
    struct text svg = {0};
    enum status status = figure_draw(
        figure, (struct figure_look){.follows_theme = true, .is_narrow = narrow}, &svg, diag);
    if (status == STATUS_OK) {
        /* with less than 0.8 of its width the letters would be unreadable, so the drawing then scrolls */
        text_printf(&page->html,
                    "<div class=\"%s scroll\"><div style=\"max-width:%dpx;min-width:%dpx\">",
                    narrow ? "narrow" : "wide", wide, wide * 8 / 10);
        svg_put_shortened(&page->html, svg.data, ++page->svg_count);
        text_puts(&page->html, "</div></div>");
    }
    text_release(&svg);
    return status;
}

enum status page_draw(struct page *page, struct figure *figure, enum status status,
                      const char *caption, struct diag *diag)
{
    const size_t before = page->html.size;
    text_puts(&page->html, "<figure>");
    for (int narrow = 0; narrow < 2 && status == STATUS_OK; narrow++)
        status = put_drawing(page, figure, narrow != 0, diag);
    text_puts(&page->html, "<figcaption>");
    page_put_escaped(page, caption);
    text_puts(&page->html, "</figcaption></figure>\n");
    if (status != STATUS_OK)
        page->html.size = before;
    figure_release(figure);
    return status;
}

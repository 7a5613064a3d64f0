#include "cli/page/draw.h"

#include <string.h>

/* Appends the svg element, without what makes a file of it. */
static void put_svg(struct page *page, const char *class, int wide, const struct text *svg)
{
    const char *at = strstr(svg->data, "<svg");
    page->svgs++;
    text_printf(&page->html, "<div class=\"%s\" style=\"max-width:%dpx\">", class, wide);
    for (at = at == NULL ? svg->data : at; *at != '\0'; at++) {
        /* gnuplot's marks have the same ids in every figure */
        bool mark = strncmp(at, "gp", 2) == 0 && (at[-1] == '#' || at[-1] == '\'');
        if (mark)
            text_printf(&page->html, "s%zu-", page->svgs);
        text_putc(&page->html, *at);
    }
    text_puts(&page->html, "</div>");
}

enum status page_draw(struct page *page, struct figure *figure, enum status status,
                      const char *caption, struct diag *diag)
{
    struct text light = {0}, dark = {0};
    if (status == STATUS_OK)
        status = figure_draw(figure, FIGURE_SVG, false, &light, diag);
    if (status == STATUS_OK)
        status = figure_draw(figure, FIGURE_SVG, true, &dark, diag);
    if (status == STATUS_OK) {
        text_puts(&page->html, "<figure>");
        put_svg(page, "light", figure->wide, &light);
        put_svg(page, "dark", figure->wide, &dark);
        text_puts(&page->html, "<figcaption>");
        page_put(page, caption);
        text_puts(&page->html, "</figcaption></figure>\n");
    }
    text_release(&light);
    text_release(&dark);
    figure_release(figure);
    return status;
}

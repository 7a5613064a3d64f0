#include "cli/common/page.h"

#include "base/arena.h"
#include "base/c_locale.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char style[] =
    ":root{--ink:#222;--paper:#fff;--soft:#f4f4f2;--line:#d9d9d9;--grey:#666;--idle:#d4d4d4;--"
    "yellow:#c8b900;--good:#00694e;"
    "--bad:#a63c00;--close:#7a5c00;color-scheme:light dark}"
    "@media screen and "
    "(prefers-color-scheme:dark){:root{--ink:#e6e6e6;--paper:#16181c;--soft:#1f2228;"
    "--line:#3a3f47;--grey:#9aa0a8;--idle:#4a505a;--yellow:#f0e442;--good:#3fd0a5;--bad:#ff9a5c;--"
    "close:#f0e442}"
    "}"
    "@media(max-width:799px){.wide{display:none}}@media(min-width:800px){.narrow{display:none}}"
    "@media print{.narrow{display:none}.wide{display:block!important}details>*{display:block}}"
    "body{font:15px/1.5 system-ui,'DejaVu Sans',sans-serif;color:var(--ink);"
    "background:var(--paper);max-width:66rem;margin:2rem auto;padding:0 1rem}"
    "h1{font-size:1.5rem;margin:0}h2{font-size:1.15rem;margin:2.2rem 0 .6rem;"
    "border-bottom:1px solid var(--line);padding-bottom:.2rem}.sub{color:var(--grey);margin:.2rem "
    "0 1.2rem}p{overflow-wrap:anywhere}.verdict{font-size:1.15rem;font-weight:600;padding:.8rem "
    "1rem;background:var(--soft);"
    "border-left:.4rem solid}.good{border-color:var(--good)}.bad{border-color:var(--bad)}"
    ".close{border-color:var(--close)}.warning{background:var(--soft);border-left:.25rem solid "
    "var(--close);padding:.5rem .8rem;margin:.5rem "
    "0}.figures{display:grid;gap:.6rem;"
    "grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));margin:1rem 0}"
    ".figures div{background:var(--soft);padding:.6rem .9rem}"
    ".figures b{display:block;font-size:1.25rem}.figures span{color:var(--grey);font-size:.85rem}"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.88rem;margin:.6rem 0;"
    "font-variant-numeric:tabular-nums}th,td{padding:.22rem .7rem;border-bottom:1px solid "
    "var(--line);text-align:left;vertical-align:top}th{color:var(--grey);font-weight:600}"
    ".n{text-align:right;white-space:nowrap}.l{min-width:15rem}figure{margin:1rem 0}"
    /* attributes that all groups of a drawing share; cli/page/svg.c leaves them out of the groups */
    "figure svg{width:100%;height:auto;display:block;fill:none;stroke:currentColor;"
    "font-family:'DejaVu Sans',Verdana,sans-serif}"
    "figcaption{color:var(--grey);font-size:.85rem}pre{background:var(--soft);padding:.7rem .9rem;"
    "overflow-x:auto;font-size:.82rem;white-space:pre-wrap;overflow-wrap:anywhere}"
    "summary{cursor:pointer;margin:.4rem 0}";

static const char *html_entity_of(char c)
{
    static const struct {
        char c;
        const char *entity;
    } entities[] = {{'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}};
    for (size_t i = 0; i < ARRAY_LEN(entities); i++)
        if (entities[i].c == c)
            return entities[i].entity;
    return NULL;
}

void page_put_escaped(struct page *page, const char *text)
{
    struct text whole = {0};
    utf8_append_repaired(&whole, text);
    for (size_t i = 0; i < whole.size; i++) {
        const char *entity = html_entity_of(whole.data[i]);
        if (entity != NULL)
            text_puts(&page->html, entity);
        else
            text_putc(&page->html, whole.data[i]);
    }
    text_release(&whole);
}

/* Appends a text between an opening and a closing tag. */
static void put_in_tags(struct page *page, const char *open, const char *text, const char *close)
{
    text_puts(&page->html, open);
    page_put_escaped(page, text);
    text_puts(&page->html, close);
}

void page_begin(struct page *page, const char *title, const char *subtitle)
{
    text_puts(&page->html, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                           "<meta name=\"viewport\" content=\"width=device-width\">\n");
    put_in_tags(page, "<title>", title, "</title>\n");
    text_printf(&page->html, "<style>%s</style></head>\n<body>\n", style);
    put_in_tags(page, "<h1>", title, "</h1>\n");
    put_in_tags(page, "<p class=\"sub\">", subtitle, "</p>\n");
}

void page_end(struct page *page)
{
    text_puts(&page->html, "</body></html>\n");
}

void page_put_verdict(struct page *page, enum page_tone tone, const char *text)
{
    static const char *const classes[] = {"good", "bad", "close"};
    text_printf(&page->html, "<p class=\"verdict %s\">", classes[tone]);
    page_put_escaped(page, text);
    text_puts(&page->html, "</p>\n");
}

void page_put_heading(struct page *page, const char *text)
{
    put_in_tags(page, "<h2>", text, "</h2>\n");
}

void page_put_text(struct page *page, const char *text)
{
    put_in_tags(page, "<p>", text, "</p>\n");
}

void page_put_warning(struct page *page, const char *text)
{
    put_in_tags(page, "<p class=\"warning\">", text, "</p>\n");
}

void page_put_folded_text(struct page *page, const char *summary, const char *text)
{
    put_in_tags(page, "<details><summary>", summary, "</summary>\n");
    put_in_tags(page, "<pre>", text, "</pre></details>\n");
}

void page_put_code_block(struct page *page, const char *text)
{
    put_in_tags(page, "<pre>", text, "</pre>\n");
}

void page_begin_number_boxes(struct page *page)
{
    text_puts(&page->html, "<div class=\"figures\">\n");
}

void page_put_number_box(struct page *page, const char *value, const char *what)
{
    put_in_tags(page, "<div><b>", value, "</b>");
    put_in_tags(page, "<span>", what, "</span></div>\n");
}

void page_end_number_boxes(struct page *page)
{
    text_puts(&page->html, "</div>\n");
}

void page_begin_table(struct page *page, const char *details, const char *const *heads)
{
    if (details != NULL)
        put_in_tags(page, "<details><summary>", details, "</summary>\n");
    else
        text_puts(&page->html, "<div>");
    text_puts(&page->html, "<div class=\"scroll\"><table><thead><tr>");
    for (size_t i = 0; heads[i] != NULL; i++)
        put_in_tags(page, "<th>", heads[i], "</th>");
    text_puts(&page->html, "</tr></thead>\n<tr>");
    page->table_is_folded = details != NULL;
}

/* A cell of words with more bytes than this gets a least width. Otherwise a browser would squeeze it into a column
 * of single words. On a narrow screen the table is then scrolled. */
enum { LONG_CELL = 40 };

void page_put_text_cell(struct page *page, const char *text)
{
    put_in_tags(page, strlen(text) > LONG_CELL ? "<td class=\"l\">" : "<td>", text, "</td>");
}

void page_put_cell(struct page *page, const char *text)
{
    size_t digits = strspn(text, "0123456789.,+-% ");
    if (text[0] != '\0' && text[digits] == '\0')
        put_in_tags(page, "<td class=\"n\">", text, "</td>");
    else
        page_put_text_cell(page, text);
}

void page_put_formatted_cell(struct page *page, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    c_vsnprintf(text, sizeof text, format, args);
    va_end(args);
    page_put_cell(page, text);
}

void page_end_row(struct page *page)
{
    text_puts(&page->html, "</tr>\n<tr>");
}

void page_end_table(struct page *page)
{
    text_puts(&page->html, "</tr></table></div>");
    text_puts(&page->html, page->table_is_folded ? "</details>\n" : "</div>\n");
}

/* cli/common/page.h: one self-contained HTML page: style, figures and data inside, no scripts, no
 * network. It is light or dark as the reader's system is, and prints on paper.
 *
 * Texts are escaped here. Calls append in the order in which the page shows things. cli/page/draw.h draws figures into
 * it. */
#ifndef CLI_COMMON_PAGE_H
#define CLI_COMMON_PAGE_H

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>

enum page_tone { PAGE_GOOD, PAGE_BAD, PAGE_BORDERLINE };

struct page {
    struct text html;
    bool table_is_folded; /* the table that is being written is folded away */
    size_t svg_count;     /* the drawings that the page has */
};

void page_begin(struct page *page, const char *title, const char *subtitle);
void page_end(struct page *page);

/* Appends the answer in one sentence, as a box with a border in the colour of the tone. */
void page_put_verdict(struct page *page, enum page_tone tone, const char *text);
void page_put_heading(struct page *page, const char *text);
void page_put_text(struct page *page, const char *text);
void page_put_warning(struct page *page, const char *text);
/* Appends preformatted text, which is folded away under a summary until the reader clicks on that. */
void page_put_folded_text(struct page *page, const char *summary, const char *text);
void page_put_code_block(struct page *page, const char *text);

/* Append numbers, each with its name. Those between begin and end are side by side. */
void page_begin_number_boxes(struct page *page);
void page_put_number_box(struct page *page, const char *value, const char *what);
void page_end_number_boxes(struct page *page);

/* Begins a table with these column heads, which end in NULL. Cells that are numbers are right-aligned. details: the
 * line on which a reader must click to see the table; NULL: the table is always shown. */
void page_begin_table(struct page *page, const char *details, const char *const *heads);
void page_put_cell(struct page *page, const char *text);
/* Appends a cell of words, which is left-aligned even if it is a number. */
void page_put_text_cell(struct page *page, const char *text);
void page_put_formatted_cell(struct page *page, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void page_end_row(struct page *page);
void page_end_table(struct page *page);

/* Appends a text: characters that have a meaning in HTML are escaped, and bytes that are not UTF-8 become U+FFFD. */
void page_put_escaped(struct page *page, const char *text);

#endif

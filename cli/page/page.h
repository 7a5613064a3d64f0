/* cli/page/page.h: one HTML page that needs nothing else: style, figures and data inside, no scripts, no
 * network. It is light or dark as the reader's system is, and prints on paper.
 *
 * Texts are escaped here. Calls append in the order in which the page shows things. */
#ifndef CLI_PAGE_PAGE_H
#define CLI_PAGE_PAGE_H

#include "base/diag.h"
#include "base/text.h"
#include "cli/figure/figure.h"

#include <stdbool.h>
#include <stddef.h>

enum page_mood { PAGE_GOOD, PAGE_BAD, PAGE_CLOSE };

struct page {
    struct text html;
    bool folded; /* the table that is open */
    size_t svgs;
};

void page_begin(struct page *page, const char *title, const char *subtitle);
void page_end(struct page *page);

/* The answer, in one sentence, above everything else. */
void page_verdict(struct page *page, enum page_mood mood, const char *text);
void page_heading(struct page *page, const char *text);
void page_text(struct page *page, const char *text);
void page_warning(struct page *page, const char *text);
/* Text as it is, with a summary to click on. */
void page_details(struct page *page, const char *summary, const char *text);
void page_code(struct page *page, const char *text);

/* A number with what it is: a few stand side by side between begin and end. */
void page_begin_numbers(struct page *page);
void page_number(struct page *page, const char *value, const char *what);
void page_end_numbers(struct page *page);

/* heads end in NULL. Cells that are numbers stand to the right. details: folded away under that
 * summary; NULL: open. */
void page_begin_table(struct page *page, const char *details, const char *const *heads);
void page_cell(struct page *page, const char *text);
void page_cellf(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
void page_end_row(struct page *page);
void page_end_table(struct page *page);

/* Draws and shows a figure, and releases it. A figure that cannot be made (status) is a fault of the
 * whole page. */
enum status page_draw(struct page *page, struct figure *figure, enum status status,
                      const char *caption, struct diag *diag);

#endif

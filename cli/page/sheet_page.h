/* cli/page/sheet_page.h: the sheet of an answer (cli/common/sheet.h), read from its JSON and put into a page. */
#ifndef CLI_PAGE_SHEET_PAGE_H
#define CLI_PAGE_SHEET_PAGE_H

#include "base/json.h"
#include "cli/common/page.h"
#include "cli/common/sheet.h"

/* Returns the number of sections of the member "sheet" of an answer; 0: it has none. */
size_t sheet_page_section_count(struct json_node answer);

/* Returns the kind of section number `number`, from 0, of the answer. An unknown name counts as
 * SHEET_SECTION_ANSWER. */
enum sheet_section sheet_page_section_kind(struct json_node answer, size_t number);

/* Returns the text of the line `label` in the first section of the answer; "": there is no such line. */
const char *sheet_page_text_of_line(struct json_node answer, const char *label);

/* Appends the heading of a section, if it has one. */
void sheet_page_put_heading(struct page *page, struct json_node answer, size_t number);

/* Appends the blocks of a section of the answer: verdicts and texts in their order, labelled values side by side, lines
 * and bars as tables. bars: the line on which a reader clicks to see the table of bars; NULL: it is always shown.
 * without: the label of a line that is left out, because the page has it elsewhere. */
void sheet_page_put_blocks(struct page *page, struct json_node answer, size_t number,
                           const char *bars, const char *without);

#endif

#include "cli/page/sheet_page.h"

#include "base/arena.h"
#include "cli/page/values.h"

#include <string.h>

static struct json_node json_node_of_section(struct json_node answer, size_t number)
{
    return json_element_at(json_find_member(answer, "sheet"), number);
}

size_t sheet_page_section_count(struct json_node answer)
{
    return json_element_count(json_find_member(answer, "sheet"));
}

enum sheet_section sheet_page_section_kind(struct json_node answer, size_t number)
{
    const char *name = page_get_text_or_empty(json_node_of_section(answer, number), "section");
    for (int i = 0; i < SHEET_SECTION_COUNT; i++)
        if (strcmp(name, sheet_section_names[i]) == 0)
            return (enum sheet_section)i;
    return SHEET_SECTION_ANSWER;
}

const char *sheet_page_text_of_line(struct json_node answer, const char *label)
{
    struct json_node blocks = json_find_member(json_node_of_section(answer, 0), "blocks");
    for (size_t i = 0; i < json_element_count(blocks); i++)
        if (strcmp(page_get_text_or_empty(json_element_at(blocks, i), "label"), label) == 0)
            return page_get_text_or_empty(json_element_at(blocks, i), "text");
    return "";
}

void sheet_page_put_heading(struct page *page, struct json_node answer, size_t number)
{
    const char *heading = page_get_text_or_empty(json_node_of_section(answer, number), "heading");
    if (heading[0] != '\0')
        page_put_heading(page, heading);
}

static enum sheet_block_kind kind_of_block(struct json_node block)
{
    const char *name = page_get_text_or_empty(block, "kind");
    for (int i = 0; i < SHEET_KIND_COUNT; i++)
        if (strcmp(name, sheet_kind_names[i]) == 0)
            return (enum sheet_block_kind)i;
    return SHEET_TEXT;
}

static void put_verdict(struct page *page, struct json_node block)
{
    static const enum page_tone tones[] = {
        [SCREEN_GOOD] = PAGE_GOOD, [SCREEN_BAD] = PAGE_BAD, [SCREEN_BORDERLINE] = PAGE_BORDERLINE};
    const char *tone = page_get_text_or_empty(block, "tone");
    struct text text = {0};
    size_t at = 0;
    while (at + 1 < ARRAY_LEN(tones) && strcmp(tone, sheet_tone_names[at]) != 0)
        at++;
    text_printf(&text, "%s%s", page_get_text_or_empty(block, "label"),
                page_get_text_or_empty(block, "text"));
    page_put_verdict(page, tones[at], text.data);
    text_release(&text);
}

static void put_number_box(struct page *page, struct json_node block)
{
    struct text what = {0};
    text_printf(&what, "%s%s", page_get_text_or_empty(block, "label"),
                page_get_text_or_empty(block, "text"));
    page_put_number_box(page, page_get_text_or_empty(block, "value"), what.data);
    text_release(&what);
}

static void put_row(struct page *page, struct json_node block, enum sheet_block_kind kind)
{
    page_put_cell(page, page_get_text_or_empty(block, "label"));
    if (kind == SHEET_BAR) {
        page_put_cell(page, page_get_text_or_empty(block, "value"));
        page_put_formatted_cell(page, "%.1f %%", 100 * page_get_number_or_0(block, "share"));
    } else {
        page_put_text_cell(page, page_get_text_or_empty(block, "text"));
    }
    page_end_row(page);
}

/* Appends a block that is a verdict, a warning, a command or a text. Blocks of other kinds are appended by
 * put_blocks_of_kind(). */
static void put_block(struct page *page, struct json_node block, enum sheet_block_kind kind)
{
    if (kind == SHEET_VERDICT)
        put_verdict(page, block);
    else if (kind == SHEET_WARNING)
        page_put_warning(page, page_get_text_or_empty(block, "text"));
    else if (kind == SHEET_COMMAND)
        page_put_code_block(page, page_get_text_or_empty(block, "text"));
    else
        page_put_text(page, page_get_text_or_empty(block, "text"));
}

/* Appends all blocks of one kind, as boxes side by side or as a table; nothing if there are none. */
static void put_blocks_of_kind(struct page *page, struct json_node blocks,
                               enum sheet_block_kind kind, const char *bars, const char *without)
{
    static const char *const line_heads[] = {"", "", NULL}, *const bar_heads[] = {"", "", "share",
                                                                                  NULL};
    bool begun = false;
    for (size_t i = 0; i < json_element_count(blocks); i++) {
        struct json_node block = json_element_at(blocks, i);
        if (kind_of_block(block) != kind ||
            strcmp(page_get_text_or_empty(block, "label"), without) == 0)
            continue;
        if (!begun && kind == SHEET_LABELLED_VALUE)
            page_begin_number_boxes(page);
        else if (!begun)
            page_begin_table(page, kind == SHEET_BAR ? bars : NULL,
                             kind == SHEET_BAR ? bar_heads : line_heads);
        begun = true;
        if (kind == SHEET_LABELLED_VALUE)
            put_number_box(page, block);
        else
            put_row(page, block, kind);
    }
    if (begun && kind == SHEET_LABELLED_VALUE)
        page_end_number_boxes(page);
    else if (begun)
        page_end_table(page);
}

void sheet_page_put_blocks(struct page *page, struct json_node answer, size_t number,
                           const char *bars, const char *without)
{
    struct json_node blocks = json_find_member(json_node_of_section(answer, number), "blocks");
    for (size_t i = 0; i < json_element_count(blocks); i++) {
        struct json_node block = json_element_at(blocks, i);
        const enum sheet_block_kind kind = kind_of_block(block);
        if (kind != SHEET_LABELLED_VALUE && kind != SHEET_LINE && kind != SHEET_BAR)
            put_block(page, block, kind);
    }
    put_blocks_of_kind(page, blocks, SHEET_LABELLED_VALUE, NULL, without);
    put_blocks_of_kind(page, blocks, SHEET_LINE, NULL, without);
    put_blocks_of_kind(page, blocks, SHEET_BAR, bars, without);
}

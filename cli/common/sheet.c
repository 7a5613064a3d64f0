#include "cli/common/sheet.h"

const char *const sheet_section_names[SHEET_SECTION_COUNT] = {
    [SHEET_SECTION_ANSWER] = "answer",   [SHEET_SECTION_CAUSES] = "causes",
    [SHEET_SECTION_MODULES] = "modules", [SHEET_SECTION_MEMORY] = "memory",
    [SHEET_SECTION_CONFIDENCE] = "sure", [SHEET_SECTION_DETAILS] = "details",
    [SHEET_SECTION_SUGGESTIONS] = "next"};

const char *const sheet_kind_names[SHEET_KIND_COUNT] = {
    [SHEET_VERDICT] = "verdict", [SHEET_LABELLED_VALUE] = "figure", [SHEET_LINE] = "line",
    [SHEET_TEXT] = "text",       [SHEET_WARNING] = "warning",       [SHEET_COMMAND] = "command",
    [SHEET_BAR] = "bar"};

const char *const sheet_tone_names[] = {
    [SCREEN_GOOD] = "good", [SCREEN_BAD] = "bad", [SCREEN_BORDERLINE] = "doubt"};

/* ---- sections ---- */

static void begin_section_json(struct sheet *sheet, enum sheet_section section, const char *heading)
{
    json_begin_object(sheet->json, NULL);
    json_put_text(sheet->json, "section", sheet_section_names[section]);
    json_put_text(sheet->json, "heading", heading);
    json_begin_array(sheet->json, "blocks");
}

static void end_section_json(struct sheet *sheet)
{
    json_end_array(sheet->json);
    json_end_object(sheet->json);
}

void sheet_begin(struct sheet *sheet)
{
    if (sheet->json == NULL)
        return;
    json_begin_array(sheet->json, "sheet");
    begin_section_json(sheet, SHEET_SECTION_ANSWER, "");
}

void sheet_end(struct sheet *sheet)
{
    if (sheet->json == NULL)
        return;
    end_section_json(sheet);
    json_end_array(sheet->json);
}

void sheet_begin_section(struct sheet *sheet, enum sheet_section section, const char *heading)
{
    if (sheet->json == NULL) {
        screen_put_heading(sheet->screen, heading);
        return;
    }
    end_section_json(sheet);
    begin_section_json(sheet, section, heading);
}

/* ---- blocks ---- */

/* Writes a block as JSON. Members that are NULL are left out. */
static void put_json_block(struct sheet *sheet, enum sheet_block_kind kind, const char *label,
                           const char *value, const char *text)
{
    json_begin_inline_object(sheet->json, NULL);
    json_put_text(sheet->json, "kind", sheet_kind_names[kind]);
    if (label != NULL)
        json_put_text(sheet->json, "label", label);
    if (value != NULL)
        json_put_text(sheet->json, "value", value);
    if (text != NULL)
        json_put_text(sheet->json, "text", text);
    json_end_inline_object(sheet->json);
}

void sheet_put_verdict(struct sheet *sheet, enum screen_tone tone, const char *verdict,
                       const char *rest)
{
    if (sheet->json == NULL) {
        screen_put_verdict(sheet->screen, tone, verdict, rest);
        text_putc(sheet->screen->out, '\n');
        return;
    }
    json_begin_inline_object(sheet->json, NULL);
    json_put_text(sheet->json, "kind", sheet_kind_names[SHEET_VERDICT]);
    json_put_text(sheet->json, "tone", sheet_tone_names[tone]);
    json_put_text(sheet->json, "label", verdict);
    json_put_text(sheet->json, "text", rest);
    json_end_inline_object(sheet->json);
}

void sheet_put_line(struct sheet *sheet, const char *label, const char *text)
{
    if (sheet->json == NULL)
        screen_put_labelled_line(sheet->screen, label, text);
    else
        put_json_block(sheet, SHEET_LINE, label, NULL, text);
}

void sheet_put_labelled_value(struct sheet *sheet, const char *label, const char *value,
                              const char *beside)
{
    struct text line = {0};
    if (sheet->json == NULL) {
        text_printf(&line, "%s%s", value, beside);
        screen_put_labelled_line(sheet->screen, label, line.data);
    } else {
        put_json_block(sheet, SHEET_LABELLED_VALUE, label, value, beside);
    }
    text_release(&line);
}

void sheet_put_text(struct sheet *sheet, const char *text)
{
    if (sheet->json == NULL)
        screen_put_wrapped_text(sheet->screen, text);
    else
        put_json_block(sheet, SHEET_TEXT, NULL, NULL, text);
}

void sheet_put_warning(struct sheet *sheet, const char *text)
{
    if (sheet->json == NULL)
        screen_put_wrapped_text(sheet->screen, text);
    else
        put_json_block(sheet, SHEET_WARNING, NULL, NULL, text);
}

void sheet_put_command(struct sheet *sheet, const char *command)
{
    if (sheet->json == NULL)
        screen_put_command(sheet->screen, command);
    else
        put_json_block(sheet, SHEET_COMMAND, NULL, NULL, command);
}

void sheet_put_bars(struct sheet *sheet, struct screen_bar *bar, size_t count, double whole,
                    screen_put_value_fn *put, bool all)
{
    if (sheet->json == NULL) {
        screen_put_bars(sheet->screen, bar, count, whole, put, all);
        return;
    }
    screen_sort_bars(bar, count);
    for (size_t i = 0; i < count && bar[i].value > 0; i++) {
        struct text value = {0};
        put(&value, bar[i].value, whole);
        json_begin_inline_object(sheet->json, NULL);
        json_put_text(sheet->json, "kind", sheet_kind_names[SHEET_BAR]);
        json_put_text(sheet->json, "label", bar[i].label);
        json_put_text(sheet->json, "value", value.data);
        json_put_number(sheet->json, "share", bar[i].value / whole);
        json_end_inline_object(sheet->json);
        text_release(&value);
    }
}

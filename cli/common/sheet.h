/* cli/common/sheet.h: an answer in sections, which is written by the same calls to a screen or as
 * JSON. A page is made from the JSON, so it says what the screen says.
 *
 *     struct sheet sheet = {.screen = &screen};   // or {.json = &json}
 *     sheet_begin(&sheet);
 *     sheet_put_verdict(...), sheet_put_line(...), ...    // the answer
 *     sheet_section(&sheet, SHEET_SECTION_CAUSES, "Where the step goes");
 *     ...
 *     sheet_end(&sheet);
 *
 * In JSON a sheet is the array "sheet" of the open object. It has an object for each section: its name, its heading,
 * and its blocks, which are rows with a `kind` (docs/schema/predict.json). cli/page/sheet_page.h puts it into a
 * page. */
#ifndef CLI_COMMON_SHEET_H
#define CLI_COMMON_SHEET_H

#include "base/json_write.h"
#include "cli/common/screen.h"

/* The sections of a sheet. A page adds figures to some of them. */
enum sheet_section {
    SHEET_SECTION_ANSWER, /* begins with the sheet, and has no heading */
    SHEET_SECTION_CAUSES,
    SHEET_SECTION_MODULES, /* the modules of a recorded step */
    SHEET_SECTION_MEMORY,
    SHEET_SECTION_CONFIDENCE,
    SHEET_SECTION_DETAILS,
    SHEET_SECTION_SUGGESTIONS,
    SHEET_SECTION_COUNT
};
extern const char *const sheet_section_names[SHEET_SECTION_COUNT];

/* The kinds of blocks, each with the members that it has in JSON beside `kind`. */
enum sheet_block_kind {
    SHEET_VERDICT,        /* tone, label, text */
    SHEET_LABELLED_VALUE, /* label, value, text: the text is empty, or is what is said beside the value */
    SHEET_LINE,           /* label, text */
    SHEET_TEXT,           /* text */
    SHEET_WARNING,        /* text */
    SHEET_COMMAND,        /* text */
    SHEET_BAR,            /* label, value, share: of the whole */
    SHEET_KIND_COUNT
};
extern const char *const sheet_kind_names[SHEET_KIND_COUNT];
extern const char *const sheet_tone_names[]; /* indexed by enum screen_tone */

/* A sheet that is being written. Exactly one member is set. If it is `screen`, each call prints its text at once, and
 * sheet_begin() and sheet_end() do nothing. If it is `json`, the calls write the array "sheet". */
struct sheet {
    const struct screen *screen;
    struct json_out *json;
};

void sheet_begin(struct sheet *sheet);
void sheet_end(struct sheet *sheet);

/* Ends the section before, and begins the next. */
void sheet_begin_section(struct sheet *sheet, enum sheet_section section, const char *heading);

/* These append a block. The functions of cli/common/screen.h say how it looks. */
void sheet_put_verdict(struct sheet *sheet, enum screen_tone tone, const char *verdict,
                       const char *rest);
void sheet_put_line(struct sheet *sheet, const char *label, const char *text);
void sheet_put_labelled_value(struct sheet *sheet, const char *label, const char *value,
                              const char *beside);
void sheet_put_text(struct sheet *sheet, const char *text);
void sheet_put_warning(struct sheet *sheet, const char *text);
void sheet_put_command(struct sheet *sheet, const char *command);

/* Appends bars, as screen_put_bars() does. JSON has all bars above 0 one by one. */
void sheet_put_bars(struct sheet *sheet, struct screen_bar *bar, size_t count, double whole,
                    screen_put_value_fn *put, bool all);

#endif

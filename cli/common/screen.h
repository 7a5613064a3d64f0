/* cli/common/screen.h: lays out answers, help and messages for a terminal or for a pipe.
 *
 * On a terminal, text is wrapped at its width, and a command is continued with a backslash at the end of a line so that
 * it can still be pasted. Unless NO_COLOR is set or TERM says that the terminal can do neither, the verdict is in
 * colour and headings are bold. In a pipe or a file nothing but help is wrapped: a sentence or a command is one line,
 * and there is no colour. Bars are at most 80 columns wide. */
#ifndef CLI_COMMON_SCREEN_H
#define CLI_COMMON_SCREEN_H

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>

struct screen {
    struct text *out;
    size_t width; /* 0: lines are not wrapped */
    bool has_colour;
};

/* Returns the number of columns of the terminal of a file descriptor, at least 40 and at most 100; 0: the file is not a
 * terminal. */
size_t screen_width(int file);

/* Returns the width at which help is wrapped: the width of the terminal, or 80 columns in a pipe or file. */
size_t screen_help_width(void);

/* Returns a screen that appends to `out`. Its layout is that for standard output. */
struct screen screen_make(struct text *out);

enum screen_tone { SCREEN_GOOD, SCREEN_BAD, SCREEN_BORDERLINE };

/* Appends the answer: the verdict, such as "Fits", in the colour of its tone, and the rest of the sentence. */
void screen_put_verdict(const struct screen *screen, enum screen_tone tone, const char *verdict,
                        const char *rest);

/* Appends an empty line and a heading. */
void screen_put_heading(const struct screen *screen, const char *heading);

/* Appends a label and a text, as in "step          6.671 s"; wrapped lines of the text align with its first. */
void screen_put_labelled_line(const struct screen *screen, const char *label, const char *text);

/* Appends sentences, indented by two columns. */
void screen_put_wrapped_text(const struct screen *screen, const char *text);

/* Appends a command that can be pasted, indented by two columns. */
void screen_put_command(const struct screen *screen, const char *command);

struct screen_bar {
    const char *label;
    double value;
};

/* Sorts bars, the largest first. */
void screen_sort_bars(struct screen_bar *bar, size_t count);

/* Appends a value in the unit that suits `whole`. report_put_time() is one of these functions. */
typedef void screen_put_value_fn(struct text *out, double value, double whole);

/* Appends bars, the largest first, each with its value and its share of the whole. Values of 0 get no bar. Unless `all`
 * is set, bars below 2 %, and all after the fifth, are joined to one bar "other"; if only one bar would be joined, it
 * is shown itself. The function sorts bar[]. */
void screen_put_bars(const struct screen *screen, struct screen_bar *bar, size_t count,
                     double whole, screen_put_value_fn *put, bool all);

/* Appends text, broken at blanks before `width` (0: it is not broken), and ends the line. The first line begins in
 * column `column`; each line after it is indented by `indent`. A command between backquotes is not broken. */
void screen_wrap(struct text *out, const char *text, size_t indent, size_t column, size_t width);

/* Prints messages on standard error. If that is a terminal, lines are wrapped. */
void screen_print_messages(const char *messages);

/* Appends lines that each begin with a label in the first `label` columns. The text after the label is wrapped as by
 * screen_wrap(), and its continuation lines begin at the column where the text begins. Lines that are shorter than
 * `label` are appended unchanged. */
void screen_wrap_labelled(struct text *out, const char *lines, size_t label, size_t width);

#endif

#include "cli/common/screen.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    SCREEN_WIDTH_ASSUMED = 80, /* of terminals of unknown width, and of help and bars in a pipe */
    SCREEN_WIDTH_MIN = 40,
    SCREEN_WIDTH_MAX = 100, /* longer lines are hard to read */
    INDENT = 2,
    LABEL_WIDTH = 14,
    BARS_SHOWN_MAX = 5,
    BAR_LABEL_WIDTH = 31,
    BAR_VALUE_WIDTH = 10,
    BAR_LENGTH_MAX = 24,
};

/* Bars with a smaller share of the whole are joined. */
#define BAR_SHARE_MIN 0.02

size_t screen_width(int file)
{
    struct winsize size = {0};
    if (isatty(file) != 1)
        return 0;
    if (ioctl(file, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return SCREEN_WIDTH_ASSUMED;
    return size.ws_col < SCREEN_WIDTH_MIN   ? SCREEN_WIDTH_MIN
           : size.ws_col > SCREEN_WIDTH_MAX ? SCREEN_WIDTH_MAX
                                            : size.ws_col;
}

size_t screen_help_width(void)
{
    size_t width = screen_width(STDOUT_FILENO);
    return width > 0 ? width : SCREEN_WIDTH_ASSUMED;
}

struct screen screen_make(struct text *out)
{
    struct screen screen = {.out = out, .width = screen_width(STDOUT_FILENO)};
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    if (screen.width == 0)
        return screen;
    screen.has_colour = (no_color == NULL || no_color[0] == '\0') && term != NULL &&
                        term[0] != '\0' && strcmp(term, "dumb") != 0;
    return screen;
}

/* Returns the length of the word at `text`. A command between backquotes counts as one word, so that it is not broken
 * and can be pasted. */
static size_t unbreakable_length(const char *text)
{
    const char *open = text + strcspn(text, " `");
    const char *close = *open == '`' ? strchr(open + 1, '`') : NULL;
    return close == NULL ? strcspn(text, " ") : (size_t)(close - text) + strcspn(close, " ");
}

void screen_wrap(struct text *out, const char *text, size_t indent, size_t column, size_t width)
{
    bool first = true; /* the word is the first of its line */
    while (*text != '\0') {
        size_t size = unbreakable_length(text);
        if (!first && width > 0 && column + 1 + size > width) {
            text_printf(out, "\n%*s", (int)indent, "");
            column = indent;
            first = true;
        }
        if (!first) {
            text_putc(out, ' ');
            column++;
        }
        text_append(out, text, size);
        column += size;
        first = false;
        text += size;
        text += strspn(text, " ");
    }
    text_putc(out, '\n');
}

void screen_wrap_labelled(struct text *out, const char *lines, size_t label, size_t width)
{
    struct text line = {0};
    for (const char *at = lines; *at != '\0';) {
        size_t size = strcspn(at, "\n");
        line.size = 0;
        text_append(&line, at, size);
        text_putc(&line, '\0');
        text_append(out, at, size < label ? size : label);
        screen_wrap(out, size < label ? "" : line.data + label, label, label, width);
        at += size + (at[size] == '\n');
    }
    text_release(&line);
}

void screen_print_messages(const char *messages)
{
    enum { INDENT_MESSAGE = 4 };
    size_t width = screen_width(STDERR_FILENO);
    struct text out = {0}, line = {0};
    for (const char *at = messages; *at != '\0';) {
        size_t size = strcspn(at, "\n");
        line.size = 0;
        text_append(&line, at, size);
        text_putc(&line, '\0');
        if (size > width)
            screen_wrap(&out, line.data, INDENT_MESSAGE, 0, width);
        else
            text_printf(&out, "%s\n", line.data);
        at += size + (at[size] == '\n');
    }
    if (width == 0)
        fputs(messages, stderr);
    else if (out.size > 0)
        fwrite(out.data, 1, out.size, stderr);
    text_release(&line);
    text_release(&out);
}

/* Switches a colour on, or bold letters, by its number in ECMA-48 (SGR); 0 switches all off. */
static void put_colour(const struct screen *screen, int number)
{
    if (screen->has_colour)
        text_printf(screen->out, "\033[%dm", number);
}

void screen_put_verdict(const struct screen *screen, enum screen_tone tone, const char *verdict,
                        const char *rest)
{
    static const int colours[] = {
        [SCREEN_GOOD] = 32, [SCREEN_BAD] = 31, [SCREEN_BORDERLINE] = 33}; /* green, red, yellow */
    put_colour(screen, 1);
    put_colour(screen, colours[tone]);
    text_puts(screen->out, verdict);
    put_colour(screen, 0);
    screen_wrap(screen->out, rest, 0, strlen(verdict), screen->width);
}

void screen_put_heading(const struct screen *screen, const char *heading)
{
    text_putc(screen->out, '\n');
    put_colour(screen, 1);
    text_puts(screen->out, heading);
    put_colour(screen, 0);
    text_putc(screen->out, '\n');
}

void screen_put_labelled_line(const struct screen *screen, const char *label, const char *text)
{
    text_printf(screen->out, "%-*s", LABEL_WIDTH - 1, label);
    text_putc(screen->out, ' ');
    screen_wrap(screen->out, text, LABEL_WIDTH, LABEL_WIDTH, screen->width);
}

void screen_put_wrapped_text(const struct screen *screen, const char *text)
{
    text_printf(screen->out, "%*s", INDENT, "");
    screen_wrap(screen->out, text, INDENT, INDENT, screen->width);
}

/* Returns the length of the word at text. Blanks between single quotes belong to the word. */
static size_t length_of_command_word(const char *text)
{
    bool quoted = false;
    size_t size = 0;
    for (; text[size] != '\0' && (quoted || text[size] != ' '); size++)
        quoted = quoted != (text[size] == '\'');
    return size;
}

void screen_put_command(const struct screen *screen, const char *command)
{
    size_t column = INDENT;
    bool first = true; /* the word is the first of its line */
    text_printf(screen->out, "%*s", INDENT, "");
    while (*command != '\0') {
        size_t size = length_of_command_word(command);
        /* an option and its value are on one line */
        if (command[0] == '-' && command[size] == ' ' && command[size + 1] != '-')
            size += 1 + length_of_command_word(command + size + 1);
        if (!first && screen->width > 0 && column + 1 + size + 2 > screen->width) {
            text_printf(screen->out, " \\\n%*s", 2 * INDENT, "");
            column = 2 * INDENT;
            first = true;
        }
        if (!first) {
            text_putc(screen->out, ' ');
            column++;
        }
        text_append(screen->out, command, size);
        column += size;
        first = false;
        command += size;
        command += strspn(command, " ");
    }
    text_putc(screen->out, '\n');
}

/* ---- bars ---- */

static int larger_bar_first(const void *a, const void *b)
{
    const struct screen_bar *one = a, *other = b;
    return one->value > other->value ? -1 : one->value < other->value;
}

void screen_sort_bars(struct screen_bar *bar, size_t count)
{
    qsort(bar, count, sizeof *bar, larger_bar_first);
}

static void put_bar(const struct screen *screen, const struct screen_bar *bar, double longest,
                    double whole, screen_put_value_fn *put)
{
    size_t width = screen->width > 0 ? screen->width : SCREEN_WIDTH_ASSUMED;
    /* the width of the other columns and of "  37 %  " */
    size_t taken = INDENT + BAR_LABEL_WIDTH + BAR_VALUE_WIDTH + 9;
    size_t room = width <= taken ? 0 : width - taken;
    struct text value = {0};
    if (room > BAR_LENGTH_MAX)
        room = BAR_LENGTH_MAX;
    put(&value, bar->value, whole);
    text_printf(screen->out, "%*s%-*s %*s %4.0f %%", INDENT, "", BAR_LABEL_WIDTH - 1, bar->label,
                BAR_VALUE_WIDTH, value.data, 100 * bar->value / whole);
    long marks = lround((double)room * bar->value / longest);
    for (long i = 0; i < marks; i++)
        text_puts(screen->out, i == 0 ? "  #" : "#");
    text_putc(screen->out, '\n');
    text_release(&value);
}

void screen_put_bars(const struct screen *screen, struct screen_bar *bar, size_t count,
                     double whole, screen_put_value_fn *put, bool all)
{
    size_t some = 0, shown = 0;
    struct screen_bar other = {.label = "other"};
    screen_sort_bars(bar, count);
    while (some < count && bar[some].value > 0)
        some++;
    while (shown < some &&
           (all || (shown < BARS_SHOWN_MAX && bar[shown].value >= BAR_SHARE_MIN * whole)))
        shown++;
    /* a bar "other" would take a line as well, so this bar is shown itself */
    if (some - shown == 1)
        shown++;
    for (size_t i = shown; i < some; i++)
        other.value += bar[i].value;
    for (size_t i = 0; i < shown; i++)
        put_bar(screen, &bar[i], fmax(bar[0].value, other.value), whole, put);
    if (other.value > 0)
        put_bar(screen, &other, fmax(bar[0].value, other.value), whole, put);
}

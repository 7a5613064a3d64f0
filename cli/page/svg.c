#include "cli/page/svg.h"

#include "base/arena.h"
#include "base/c_locale.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The variables of a page's style sheet (cli/common/page.c) that replace the marks of plots/common.gp: the first
 * replaces #010101, the next #020202, and so on. */
static const char *const colours[] = {"var(--ink)",  "var(--paper)", "var(--line)",
                                      "var(--grey)", "var(--idle)",  "var(--yellow)"};

struct svg_writer {
    struct text *out;
    size_t drawing_number;
    char fill[32];    /* the colour of the open path */
    struct text path; /* the commands of the open path; empty: no path is open */
};

static bool starts_with(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* ---- points ---- */

struct svg_point {
    double x, y;
};

static bool read_point(const char **at, struct svg_point *point)
{
    char *end;
    *at += strspn(*at, " \t\n");
    point->x = c_strtod(*at, &end);
    if (end == *at || *end != ',')
        return false;
    const char *next = end + 1;
    point->y = c_strtod(next, &end);
    if (end == next)
        return false;
    *at = end;
    return true;
}

static void put_number(struct text *out, double value)
{
    char text[32];
    c_snprintf(text, sizeof text, "%.1f", value);
    size_t size = strlen(text);
    if (size > 2 && strcmp(text + size - 2, ".0") == 0)
        text[size - 2] = '\0';
    text_puts(out, strcmp(text, "-0") == 0 ? "0" : text);
}

static double rounded_to_one_decimal(double value)
{
    return round(value * 10) / 10;
}

/* A line of points that is being written: a point between two others on a horizontal or vertical line is left out. */
struct svg_polyline {
    struct text *out;
    struct svg_point last_point,
        point_before; /* the last point, which is not written yet, and the one before it */
    size_t point_count;
};

static void put_point(struct svg_polyline *line)
{
    if (line->point_count < 2)
        return;
    if (line->last_point.y == line->point_before.y) {
        text_putc(line->out, 'H');
        put_number(line->out, line->last_point.x);
    } else if (line->last_point.x == line->point_before.x) {
        text_putc(line->out, 'V');
        put_number(line->out, line->last_point.y);
    } else {
        text_putc(line->out, 'L');
        put_number(line->out, line->last_point.x);
        text_putc(line->out, ' ');
        put_number(line->out, line->last_point.y);
    }
}

static bool is_between(double a, double b, double c)
{
    return (a <= b && b <= c) || (a >= b && b >= c);
}

static void add_point(struct svg_polyline *line, struct svg_point point)
{
    point = (struct svg_point){rounded_to_one_decimal(point.x), rounded_to_one_decimal(point.y)};
    if (line->point_count == 0) {
        text_putc(line->out, 'M');
        put_number(line->out, point.x);
        text_putc(line->out, ' ');
        put_number(line->out, point.y);
    } else if (point.x == line->last_point.x && point.y == line->last_point.y) {
        return;
    } else if (line->point_count > 1 &&
               ((point.x == line->last_point.x && line->last_point.x == line->point_before.x &&
                 is_between(line->point_before.y, line->last_point.y, point.y)) ||
                (point.y == line->last_point.y && line->last_point.y == line->point_before.y &&
                 is_between(line->point_before.x, line->last_point.x, point.x)))) {
        line->last_point = point;
        return;
    } else {
        put_point(line);
    }
    line->point_before = line->last_point;
    line->last_point = point;
    line->point_count++;
}

/* Appends the commands of "x,y x,y ..." as a closed path. */
static void put_polygon_points(struct text *out, const char *at)
{
    struct svg_polyline line = {.out = out};
    struct svg_point point;
    while (read_point(&at, &point))
        add_point(&line, point);
    put_point(&line);
    text_putc(out, 'z');
}

/* Appends path data of gnuplot, "M x,y L x,y ...", in a shorter form. From the first command on that is neither M nor
 * L, the data are appended unchanged. */
static void put_path_data(struct text *out, const char *at, const char *end)
{
    struct svg_polyline line = {.out = out};
    while (at < end) {
        struct svg_point point;
        at += strspn(at, " \t\n");
        if (at >= end)
            break;
        const char command = *at;
        if (command == 'M') {
            put_point(&line);
            line = (struct svg_polyline){.out = out};
        }
        if (command == 'M' || command == 'L')
            at++;
        if (!read_point(&at, &point)) { /* "z", or what gnuplot does not write today */
            put_point(&line);
            text_append(out, at, (size_t)(end - at));
            return;
        }
        add_point(&line, point);
    }
    put_point(&line);
}

/* ---- elements ---- */

/* Appends "rgb( 1, 1, 1)" at *at as a colour of the page, or as #rrggbb, and moves *at after it.
 * Returns false if no such colour is there. */
static bool put_colour(struct text *out, const char **at)
{
    long red_green_blue[3];
    const char *next = *at + strlen("rgb(");
    for (int i = 0; i < 3; i++) {
        char *end;
        red_green_blue[i] = strtol(next, &end, 10);
        if (end == next || *end != (i < 2 ? ',' : ')') || red_green_blue[i] < 0 ||
            red_green_blue[i] > 255)
            return false;
        next = end + 1;
    }
    if (red_green_blue[0] == red_green_blue[1] && red_green_blue[1] == red_green_blue[2] &&
        0 < red_green_blue[0] && red_green_blue[0] <= (long)ARRAY_LEN(colours))
        text_puts(out, colours[red_green_blue[0] - 1]);
    else
        text_printf(out, "#%02lx%02lx%02lx", (unsigned long)red_green_blue[0],
                    (unsigned long)red_green_blue[1], (unsigned long)red_green_blue[2]);
    *at = next;
    return true;
}

static void write_and_end_svg_path(struct svg_writer *w)
{
    if (w->path.size > 0)
        text_printf(w->out, "<path stroke=\"none\" fill=\"%s\" d=\"%s\"/>", w->fill, w->path.data);
    w->path.size = 0;
}

/* Adds a polygon to the open path. If the path has another colour than the polygon, it is ended first, and the
 * polygon begins another path. */
static void put_polygon(struct svg_writer *w, const char *tag)
{
    struct text fill = {0};
    const char *colour = strstr(tag, "rgb("), *points = strstr(tag, "points = '");
    if (colour == NULL || !put_colour(&fill, &colour))
        text_puts(&fill, "currentColor");
    if (w->path.size > 0 && strcmp(fill.data, w->fill) != 0)
        write_and_end_svg_path(w);
    snprintf(w->fill, sizeof w->fill, "%s", fill.data);
    if (points != NULL)
        put_polygon_points(&w->path, points + strlen("points = '"));
    text_release(&fill);
}

/* Attributes of groups that are omitted, since the style sheet (cli/common/page.c) states them once
 * for all drawings or, as for the class, does not use them. */
static const char *const defaults[] = {" fill=\"none\"",
                                       " color=\"black\"",
                                       " stroke=\"currentColor\"",
                                       " stroke-width=\"1.00\"",
                                       " stroke-linecap=\"butt\"",
                                       " stroke-linejoin=\"miter\"",
                                       " font-family=\"DejaVu Sans\"",
                                       " class=\"gridline\""};

/* Appends the tag at[0..end) in a shorter form: without the attributes that all groups have, with shorter colours and
 * path data, and with ids that are unique in the page. */
static void put_shortened_tag(struct svg_writer *w, const char *at, const char *end)
{
    while (at < end) {
        size_t d = 0;
        while (d < ARRAY_LEN(defaults) && !starts_with(at, defaults[d]))
            d++;
        if (d < ARRAY_LEN(defaults)) {
            at += strlen(defaults[d]);
        } else if (starts_with(at, "rgb(") && put_colour(w->out, &at)) {
            continue;
        } else if (starts_with(at, " d='M")) {
            const char *close = at + 4 + strcspn(at + 4, "'");
            text_puts(w->out, " d='");
            put_path_data(w->out, at + 4, close);
            at = close;
        } else if (starts_with(at, "#gp") ||
                   starts_with(at, "'gp")) { /* marks have the same ids in every drawing */
            text_printf(w->out, "%cs%zu-", *at, w->drawing_number);
            at++;
        } else {
            text_putc(w->out, *at++);
        }
    }
}

/* Returns where the tag at `at` ends. */
static const char *tag_end(const char *at)
{
    const char *end = strchr(at, '>');
    return end == NULL ? at + strlen(at) : end + 1;
}

static const char *skip_blank(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* The groups that are open, outermost first. If more than GROUPS_MAX are open, the tags of the inner ones are left
 * out, and only their elements are written. */
enum { GROUPS_MAX = 64 };
struct svg_open_groups {
    size_t depth;
    bool is_written[GROUPS_MAX]; /* whether both tags of the group are written (begin_group()) */
};

/* Begins the group whose tag is at [at, end). The tag is written only if it says how the group's elements look.
 * Notes in *groups whether the tag was written, so that end_group() does the same. */
static void begin_group(struct svg_writer *w, struct svg_open_groups *groups, const char *at,
                        const char *end)
{
    struct text tag = {0};
    struct svg_writer probe = {.out = &tag, .drawing_number = w->drawing_number};
    put_shortened_tag(&probe, at, end);
    const bool written = groups->depth < GROUPS_MAX && strcmp(tag.data, "<g>") != 0 &&
                         strstr(tag.data, "id=\"gnuplot_plot") == NULL &&
                         !starts_with(tag.data, "<g stroke='none'");
    if (groups->depth < GROUPS_MAX)
        groups->is_written[groups->depth] = written;
    groups->depth++;
    if (written) {
        write_and_end_svg_path(w);
        text_append(w->out, tag.data, tag.size);
    }
    text_release(&tag);
}

static void end_group(struct svg_writer *w, struct svg_open_groups *groups)
{
    if (groups->depth == 0)
        return;
    groups->depth--;
    if (groups->depth < GROUPS_MAX && groups->is_written[groups->depth]) {
        write_and_end_svg_path(w);
        text_puts(w->out, "</g>");
    }
}

/* Writes the element, or the tag of a group, that begins at `at`, and returns the place after it. Leaves out empty
 * groups, and the title, the description and the background of the drawing, since the page has a caption and a
 * background of its own. */
static const char *put_element(struct svg_writer *w, struct svg_open_groups *groups, const char *at)
{
    const char *end = tag_end(at), *next = skip_blank(end);
    if (starts_with(at, "<title>") || starts_with(at, "<desc>")) {
        const char *close = strstr(at, "</");
        return close != NULL ? tag_end(close) : end;
    }
    if (starts_with(at, "<rect x=\"0\" y=\"0\""))
        return end;
    if (starts_with(at, "<g ") || starts_with(at, "<g>")) {
        if (starts_with(next, "</g>")) /* the group is empty */
            return next + strlen("</g>");
        begin_group(w, groups, at, end);
    } else if (starts_with(at, "</g>")) {
        end_group(w, groups);
    } else if (starts_with(at, "<polygon")) {
        put_polygon(w, at);
    } else {
        write_and_end_svg_path(w);
        put_shortened_tag(w, at, end);
    }
    return end;
}

void svg_put_shortened(struct text *out, const char *svg, size_t number)
{
    struct svg_writer w = {.out = out, .drawing_number = number};
    struct svg_open_groups groups = {0};
    const char *at = strstr(svg, "<svg");
    const char *marks_end = at != NULL ? strstr(at, "</defs>") : NULL;
    const bool has_marks = marks_end != NULL && strstr(marks_end, "'#gp") != NULL;
    if (at == NULL)
        return;
    for (at = skip_blank(at); *at != '\0'; at = skip_blank(at)) {
        if (*at != '<') { /* the words of a text */
            const char *words = at;
            at += strcspn(at, "<");
            text_append(out, words, (size_t)(at - words));
        } else if (starts_with(at, "<defs>") && !has_marks) {
            at = marks_end != NULL ? marks_end + strlen("</defs>") : tag_end(at);
        } else {
            at = put_element(&w, &groups, at);
        }
    }
    text_release(&w.path);
}

#include "cli/reproduce/picture.h"

#include "cli/folder/stored.h"
#include "cli/reproduce/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PANELS_MAX = 12 };
/* Sizes in points, as plots/reproduce.gp draws them. */
enum {
    PANEL_WIDTH = 330,
    PANEL_HEIGHT = 260,
    PANEL_SLANTED_LABELS_HEIGHT = 70, /* the height that slanted labels add to a panel */
    KEY_WIDTH_WITHOUT_LETTERS = 70,   /* the width of the key without the letters */
    KEY_LETTER_WIDTH = 7,
    KEY_LINE = 20 /* the height of a line of the key */
};
/* If the labels of a panel have more letters than this in sum, they are drawn aslant. A figure of one panel has room
 * for twice as many. */
enum { LABELS_TURN = 30 };

/* The distinct texts that the points of an entry have in one coordinate: panel, series or x. */
struct axis_texts {
    const char **text;
    double *value; /* the number that each text is; NAN: it is none */
    size_t count;
};

static size_t axis_texts_add(struct axis_texts *p, const char *text, double value)
{
    size_t i = 0;
    while (i < p->count && strcmp(p->text[i], text) != 0)
        i++;
    if (i == p->count) {
        p->text[p->count] = text;
        p->value[p->count++] = value;
    }
    return i;
}

/* Returns whether all texts are numbers. Only then may a line join the points. */
static bool are_all_axis_texts_numbers(const struct axis_texts *p)
{
    for (size_t i = 0; i < p->count; i++)
        if (isnan(p->value[i]))
            return false;
    return true;
}

/* Sorts the texts of an axis by value if all are numbers. Otherwise they keep the order of the points. */
static void sort_axis_by_value(struct axis_texts *p)
{
    if (!are_all_axis_texts_numbers(p))
        return;
    for (size_t i = 1; i < p->count; i++)
        for (size_t k = i; k > 0 && p->value[k - 1] > p->value[k]; k--) {
            double value = p->value[k];
            const char *text = p->text[k];
            p->value[k] = p->value[k - 1];
            p->text[k] = p->text[k - 1];
            p->value[k - 1] = value;
            p->text[k - 1] = text;
        }
}

/* The panels and series of a figure, and the texts on the x axis of each panel. */
struct figure_layout {
    struct axis_texts panel, series, x[PANELS_MAX];
};

static void axis_texts_init(struct axis_texts *p, size_t most)
{
    p->text = heap_alloc(most + 1, sizeof *p->text);
    p->value = heap_alloc(most + 1, sizeof *p->value);
    p->count = 0;
}

static void axis_texts_release(struct axis_texts *p)
{
    free((void *)p->text);
    free(p->value);
}

static bool has_point_something_to_draw(const struct reproduction_point *point)
{
    return !isnan(point->published) || !isnan(point->predicted) || point->predicted_text != NULL;
}

bool picture_has_points(const struct reproduction *r, size_t entry)
{
    for (size_t i = 0; i < r->point_count; i++)
        if (r->point[i].entry == entry && has_point_something_to_draw(&r->point[i]))
            return true;
    return false;
}

static void put_number(struct text *out, double value)
{
    text_putc(out, ',');
    if (isfinite(value))
        text_printf(out, "%.9g", value);
}

static bool is_text_of_unfit_point(const char *text)
{
    return text != NULL && strcmp(text, "fits") != 0;
}

static void put_point_row(struct text *out, const struct reproduction_point *point, size_t panel,
                          size_t series, size_t x)
{
    text_printf(out, "%zu,%zu,%zu", panel + 1, series + 1, x + 1);
    put_number(out, point->published);
    put_number(out, point->predicted);
    text_printf(out, ",%d,%d\n", is_text_of_unfit_point(point->published_text),
                is_text_of_unfit_point(point->predicted_text));
}

/* Appends the points of a series in a panel from left to right, since a line joins them. */
static void put_series_points(struct text *out, const struct reproduction *r, size_t entry,
                              const struct figure_layout *l, size_t panel, size_t series)
{
    for (size_t x = 0; x < l->x[panel].count; x++)
        for (size_t i = 0; i < r->point_count; i++) {
            const struct reproduction_point *point = &r->point[i];
            if (point->entry == entry && has_point_something_to_draw(point) &&
                strcmp(point->panel, l->panel.text[panel]) == 0 &&
                strcmp(point->series, l->series.text[series]) == 0 &&
                strcmp(point->x, l->x[panel].text[x]) == 0)
                put_point_row(out, point, panel, series, x);
        }
    text_putc(out, '\n'); /* the empty line keeps the lines of different series apart */
}

static void put_point_rows(struct text *out, const struct reproduction *r, size_t entry,
                           const struct figure_layout *l)
{
    for (size_t p = 0; p < l->panel.count; p++)
        for (size_t s = 0; s < l->series.count; s++)
            put_series_points(out, r, entry, l, p, s);
}

/* Makes the name of a variable of a panel: "panel2" of the second one. */
static void make_panel_variable(char name[32], const char *what, size_t panel)
{
    snprintf(name, 32, "%s%zu", what, panel + 1);
}

static void set_panel_text(struct figure *figure, const char *what, size_t panel, const char *text)
{
    char name[32];
    make_panel_variable(name, what, panel);
    figure_set_text(figure, name, text);
}

static void set_panel_number(struct figure *figure, const char *what, size_t panel, double value)
{
    char name[32];
    make_panel_variable(name, what, panel);
    figure_set_number(figure, name, value);
}

/* Returns whether the labels on the x axis of a panel are drawn aslant, since they do not fit beside each other. */
static bool has_slanted_labels(const struct figure_layout *l, size_t panel)
{
    size_t letters = 0;
    for (size_t i = 0; i < l->x[panel].count; i++)
        letters += strlen(l->x[panel].text[i]) + 1;
    return letters > (l->panel.count > 1 ? LABELS_TURN : 2 * LABELS_TURN);
}

static void set_panel_variables(struct figure *figure, const struct figure_layout *l, size_t panel)
{
    struct text ticks = {0};
    const struct axis_texts *x = &l->x[panel];
    text_putc(&ticks, '(');
    for (size_t i = 0; i < x->count; i++) {
        text_puts(&ticks, i > 0 ? ", \"" : "\"");
        for (const char *c = x->text[i]; *c != '\0'; c++)
            if (*c != '"' && *c != '\\')
                text_putc(&ticks, *c);
        text_printf(&ticks, "\" %zu", i + 1);
    }
    text_putc(&ticks, ')');
    set_panel_text(figure, "panel", panel, l->panel.text[panel]);
    set_panel_text(figure, "x_ticks", panel, ticks.data);
    set_panel_number(figure, "x_turned", panel, has_slanted_labels(l, panel));
    set_panel_number(figure, "places", panel, (double)x->count);
    set_panel_number(figure, "lined", panel, are_all_axis_texts_numbers(x));
    text_release(&ticks);
}

static void set_size(struct figure *figure, const struct figure_layout *l)
{
    size_t panels = l->panel.count, longest = strlen("does not fit");
    int columns = panels <= 1 ? 1 : panels <= 4 ? 2 : 3;
    int rows = (int)((panels + (size_t)columns - 1) / (size_t)columns);
    for (size_t i = 0; i < l->series.count; i++)
        longest = strlen(l->series.text[i]) > longest ? strlen(l->series.text[i]) : longest;
    int key = KEY_WIDTH_WITHOUT_LETTERS + KEY_LETTER_WIDTH * (int)longest;
    int panel_wide = columns == 1 ? 2 * PANEL_WIDTH : PANEL_WIDTH;
    int panel_high = rows == 1 ? PANEL_HEIGHT + 120 : PANEL_HEIGHT;
    for (size_t p = 0; p < panels; p++)
        if (has_slanted_labels(l, p)) {
            panel_high += PANEL_SLANTED_LABELS_HEIGHT;
            break;
        }
    figure->width = columns * panel_wide + key;
    figure->height = rows * panel_high + 40;
    figure->narrow_height = (int)panels * panel_high + 10;
    figure_set_number(figure, "key_wide", key);
}

/* Finds the panels, the series and the texts on the x axes of an entry. At most PANELS_MAX panels and FIGURE_SERIES_MAX
 * series are kept. */
static void figure_layout_init(struct figure_layout *l, const struct reproduction *r, size_t e)
{
    axis_texts_init(&l->panel, r->point_count);
    axis_texts_init(&l->series, r->point_count);
    for (size_t p = 0; p < PANELS_MAX; p++)
        axis_texts_init(&l->x[p], r->point_count);
    for (size_t i = 0; i < r->point_count; i++) {
        const struct reproduction_point *point = &r->point[i];
        if (point->entry != e || !has_point_something_to_draw(point))
            continue;
        size_t panel = axis_texts_add(&l->panel, point->panel, NAN);
        axis_texts_add(&l->series, point->series, NAN);
        if (panel < PANELS_MAX)
            axis_texts_add(&l->x[panel], point->x, point->x_value);
    }
    for (size_t p = 0; p < PANELS_MAX; p++)
        sort_axis_by_value(&l->x[p]);
    l->panel.count = l->panel.count > PANELS_MAX ? PANELS_MAX : l->panel.count;
    if (l->series.count > FIGURE_SERIES_MAX)
        l->series.count = FIGURE_SERIES_MAX;
}

static void figure_layout_release(struct figure_layout *l)
{
    axis_texts_release(&l->panel);
    axis_texts_release(&l->series);
    for (size_t p = 0; p < PANELS_MAX; p++)
        axis_texts_release(&l->x[p]);
}

/* Tells the script whether the figure has published points, and points that do not fit in memory. Makes room for the
 * key, which has a line for each of these kinds and for each series. */
static void tell_script_which_point_kinds_exist(struct figure *figure, const struct reproduction *r,
                                                size_t e, size_t series)
{
    bool published = false, unfit = false;
    for (size_t i = 0; i < r->point_count; i++) {
        const struct reproduction_point *point = &r->point[i];
        if (point->entry != e)
            continue;
        published |= !isnan(point->published);
        unfit |= is_text_of_unfit_point(point->published_text) ||
                 is_text_of_unfit_point(point->predicted_text);
    }
    const int key_high = KEY_LINE * ((int)series + published + unfit + 2);
    figure_set_number(figure, "key_high", key_high);
    figure->narrow_height += key_high;
    figure_set_number(figure, "has_published", published);
    figure_set_number(figure, "has_unfit", unfit);
}

void picture_make_points_figure(struct figure *figure, const struct reproduction *r, size_t e)
{
    const struct catalogue_entry *entry = &r->catalogue.entry[e];
    struct figure_layout l;
    struct text title = {0};
    figure_layout_init(&l, r, e);
    figure->script_name = "reproduce";
    set_size(figure, &l);
    int wide = figure->width, high = figure->height;
    put_point_rows(&figure->csv, r, e, &l);
    figure_set_series_names(figure, l.series.text, l.series.count);
    figure->width = wide; /* set_size() has already counted the width of the key */
    figure->height = high > figure->height ? high : figure->height;
    figure_set_number(figure, "panels", (double)l.panel.count);
    for (size_t p = 0; p < l.panel.count; p++)
        set_panel_variables(figure, &l, p);
    text_printf(&title, "%s: %s", entry->name[0], entry->subject);
    figure_set_text(figure, "title", title.data);
    figure_set_text(figure, "x_name", entry->x_label != NULL ? entry->x_label : "");
    figure_set_text(figure, "y_name", entry->y_label != NULL ? entry->y_label : "");
    figure_set_number(figure, "y_scale", entry->y_scale);
    figure_set_number(figure, "y_log", entry->is_y_log);
    tell_script_which_point_kinds_exist(figure, r, e, l.series.count > 0 ? l.series.count : 1);
    text_release(&title);
    figure_layout_release(&l);
}

enum status picture_make_timeline_figure(struct figure *figure, const struct reproduction *r,
                                         size_t job, const char *folder, struct diag *diag)
{
    const struct catalogue_timeline *timeline =
        &r->catalogue.entry[r->job[job].entry].timeline[r->job[job].index_among_jobs_of_kind];
    struct text path = {0};
    struct trace trace = {0};
    const struct figure_options wanted = {.title = timeline->title,
                                          .op_window_text = timeline->op_window_text};
    reproduce_put_trace_folder(&path, r, job, folder);
    enum status status = stored_load_trace(&trace, path.data, timeline->shows_memory, diag);
    /* a window of ops needs the table of ops, too */
    if (status == STATUS_OK && timeline->shows_memory && timeline->op_window_text != NULL)
        status = stored_load_trace(&trace, path.data, false, diag);
    if (status == STATUS_OK)
        status = timeline->shows_memory ? figure_memory(figure, &trace, &wanted, diag)
                                        : figure_timeline(figure, &trace, &wanted, diag);
    trace_release(&trace);
    text_release(&path);
    return status;
}

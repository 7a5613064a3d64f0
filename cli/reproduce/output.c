#include "cli/reproduce/output.h"

#include "base/file_set.h"
#include "cli/common/rows.h"
#include "cli/page/draw.h"
#include "cli/reproduce/picture.h"
#include "cli/reproduce/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- rows ---- */

/* A column has: key, label, label in a page, kind, width in text, description (cli/common/rows.h). */
static const struct column points[] = {
    {"panel", NULL, NULL, COLUMN_PLAIN_TEXT, 0, NULL},
    {"series", NULL, NULL, COLUMN_PLAIN_TEXT, 0, NULL},
    {"x", NULL, NULL, COLUMN_PLAIN_TEXT, 0, NULL},
    {"published", NULL, NULL, COLUMN_NUMBER_OR_TEXT, 0, NULL},
    {"predicted", NULL, NULL, COLUMN_NUMBER_OR_TEXT, 0, NULL},
    {"error", NULL, NULL, COLUMN_SIGNED_PERCENT, 0, NULL},
    {"status", NULL, NULL, COLUMN_PLAIN_TEXT, 0, NULL},
    {"why", NULL, NULL, COLUMN_PLAIN_TEXT, 0, NULL},
    {"configuration", NULL, NULL, COLUMN_PLAIN_TEXT, 0, NULL}, /* options of predict */
};
static const struct row_table table_of_points = {"reproduce_point", points, ARRAY_LEN(points)};

static void put_number_or_text(struct rows *rows, double value, const char *text)
{
    if (isnan(value) && text != NULL)
        rows_put_text(rows, text);
    else
        rows_put_number(rows, value);
}

static void put_csv(struct text *out, const struct reproduction *r, size_t entry)
{
    struct rows rows = {.csv = out};
    rows_begin(&rows, NULL, NULL, &table_of_points);
    for (size_t i = 0; i < r->point_count; i++) {
        const struct reproduction_point *point = &r->point[i];
        if (point->entry != entry)
            continue;
        rows_put_text(&rows, point->panel);
        rows_put_text(&rows, point->series);
        rows_put_text(&rows, point->x);
        put_number_or_text(&rows, point->published, point->published_text);
        put_number_or_text(&rows, point->predicted, point->predicted_text);
        rows_put_number(&rows, point->error);
        rows_put_text(&rows,
                      !point->is_done ? "not run" : measurement_outcome_name(point->outcome));
        rows_put_text(&rows, point->reason != NULL ? point->reason : "");
        rows_put_text(
            &rows, point->grid_of_combined_series != NULL ? "the other series, one after the other"
                   : point->row != SIZE_MAX ? r->rows.rows[point->row].cells[EXTERNAL_ARGS]
                                            : r->job[point->job].args);
    }
    rows_end(&rows);
}

/* ---- files ---- */

static enum status add_file(struct file_set *files, const char *name, const char *ending,
                            const struct text *text, struct diag *diag)
{
    struct text path = {0};
    reproduce_put_name_as_file_name(&path, name);
    text_puts(&path, ending);
    enum status status = file_set_add(files, path.data, text->data, text->size, diag);
    text_release(&path);
    return status;
}

/* Adds the picture of a figure in its light and in its dark version. */
static enum status add_light_and_dark_picture(struct file_set *files, const struct figure *figure,
                                              const char *name, const char *ending,
                                              struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int dark = 0; status == STATUS_OK && dark < 2; dark++) {
        struct text picture = {0}, rest = {0};
        text_printf(&rest, "%s%s.svg", ending, dark ? "-dark" : "");
        status = figure_draw(figure, (struct figure_look){.is_dark = dark}, &picture, diag);
        if (status == STATUS_OK)
            status = add_file(files, name, rest.data, &picture, diag);
        text_release(&picture);
        text_release(&rest);
    }
    return status;
}

static enum status add_timelines(struct file_set *files, const struct reproduction *r, size_t entry,
                                 const char *folder, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < r->job_count; i++) {
        if (r->job[i].kind != JOB_TRACE || r->job[i].entry != entry)
            continue;
        struct figure figure = {0};
        char ending[32];
        snprintf(ending, sizeof ending, "-timeline-%zu", r->job[i].index_among_jobs_of_kind + 1);
        status = picture_make_timeline_figure(&figure, r, i, folder, diag);
        if (status == STATUS_OK)
            status = add_light_and_dark_picture(files, &figure, r->catalogue.entry[entry].name[0],
                                                ending, diag);
        figure_release(&figure);
    }
    return status;
}

enum status output_write_entry(const struct reproduction *r, size_t e, const char *folder,
                               struct diag *diag)
{
    const struct catalogue_entry *entry = &r->catalogue.entry[e];
    struct file_set files = {.folder = folder};
    struct text csv = {0}, words = {0};
    enum status status = file_set_begin(&files, diag);
    put_csv(&csv, r, e);
    text_printf(&words, "%s: %s\n\n", entry->name[0], entry->subject);
    outcome_put_paragraph(&words, r, e);
    if (status == STATUS_OK && entry->row_selection_count + entry->grid_count > 0)
        status = add_file(&files, entry->name[0], ".csv", &csv, diag);
    if (status == STATUS_OK)
        status = add_file(&files, entry->name[0], ".txt", &words, diag);
    if (status == STATUS_OK && picture_has_points(r, e)) {
        struct figure figure = {0};
        picture_make_points_figure(&figure, r, e);
        status = add_light_and_dark_picture(&files, &figure, entry->name[0], "", diag);
        figure_release(&figure);
    }
    if (status == STATUS_OK)
        status = add_timelines(&files, r, e, folder, diag);
    if (status == STATUS_OK)
        status = file_set_end(&files, diag);
    file_set_release(&files);
    text_release(&csv);
    text_release(&words);
    return status;
}

/* ---- the page ---- */

/* The columns of the states of entries, in states.csv and on the page. */
static const struct column states[] = {
    {"name", "figure or table", NULL, COLUMN_PLAIN_TEXT, 0, NULL},
    {NULL, "shows", NULL, COLUMN_WRAPPED_TEXT, 0, NULL},
    {"state", "state", NULL, COLUMN_PLAIN_TEXT, 0, NULL},
    {"what", "what", NULL, COLUMN_WRAPPED_TEXT, 0, NULL},
};
static const struct row_table table_of_states = {"reproduce_state", states, ARRAY_LEN(states)};

static void put_entry_state_rows(struct rows *rows, const struct reproduction *r,
                                 const bool *wanted)
{
    rows_begin(rows, NULL, NULL, &table_of_states);
    for (size_t e = 0; e < r->catalogue.entry_count; e++) {
        if (!wanted[e])
            continue;
        struct entry_outcome o = outcome_of_entry(r, e);
        struct text what = {0};
        outcome_put_sentence(&what, &o);
        rows_put_text(rows, r->catalogue.entry[e].name[0]);
        rows_put_text(rows, r->catalogue.entry[e].subject);
        rows_put_text(rows, outcome_state_names[o.state]);
        rows_put_text(rows, what.size > 0 ? what.data : "");
        text_release(&what);
    }
    rows_end(rows);
}

/* Appends each line of a text as a paragraph, and overwrites its line ends. */
static void put_lines_as_paragraphs(struct page *page, struct text *words)
{
    for (char *line = words->data; line != NULL && *line != '\0';) {
        char *end = strchr(line, '\n');
        if (end != NULL)
            *end = '\0';
        page_put_text(page, line);
        line = end == NULL ? NULL : end + 1;
    }
}

static enum status put_entry(struct page *page, const struct reproduction *r, size_t e,
                             const char *folder, struct diag *diag)
{
    const struct catalogue_entry *entry = &r->catalogue.entry[e];
    struct text words = {0};
    enum status status = STATUS_OK;
    text_printf(&words, "%s: %s", entry->name[0], entry->subject);
    page_put_heading(page, words.data);
    words.size = 0;
    outcome_put_paragraph(&words, r, e);
    put_lines_as_paragraphs(page, &words);
    if (picture_has_points(r, e)) {
        struct figure figure = {0};
        picture_make_points_figure(&figure, r, e);
        status = page_draw(page, &figure, STATUS_OK, entry->subject, diag);
    }
    for (size_t i = 0; status == STATUS_OK && i < r->job_count; i++)
        if (r->job[i].kind == JOB_TRACE && r->job[i].entry == e) {
            struct figure figure = {0};
            status = picture_make_timeline_figure(&figure, r, i, folder, diag);
            status = page_draw(page, &figure, status,
                               entry->timeline[r->job[i].index_among_jobs_of_kind].title, diag);
        }
    text_release(&words);
    return status;
}

static void put_page_verdict(struct page *page, const struct reproduction *r, const bool *wanted)
{
    size_t count[STATE_COUNT] = {0}, claims[CLAIM_VERDICT_COUNT] = {0};
    struct text text = {0};
    for (size_t e = 0; e < r->catalogue.entry_count; e++) {
        if (!wanted[e])
            continue;
        struct entry_outcome o = outcome_of_entry(r, e);
        count[o.state]++;
        for (int i = 0; i < CLAIM_VERDICT_COUNT; i++)
            claims[i] += o.claim_count_by_verdict[i];
    }
    text_printf(&text,
                "Of %zu figures and tables with published numbers %zu match. Of %zu claims %zu "
                "hold, %zu hold by less, %zu do not.",
                count[STATE_MATCHED] + count[STATE_NOT_MATCHED], count[STATE_MATCHED],
                claims[CLAIM_HOLDS] + claims[CLAIM_HOLDS_BY_LESS] + claims[CLAIM_DOES_NOT_HOLD],
                claims[CLAIM_HOLDS], claims[CLAIM_HOLDS_BY_LESS], claims[CLAIM_DOES_NOT_HOLD]);
    page_put_verdict(page, count[STATE_NOT_MATCHED] == 0 ? PAGE_GOOD : PAGE_BORDERLINE, text.data);
    text_release(&text);
}

enum status output_write_page(const struct reproduction *r, const bool *wanted, const char *folder,
                              struct diag *diag)
{
    struct page page = {0};
    struct text csv = {0};
    struct file_set files = {.folder = folder};
    enum status status = STATUS_OK;
    page_begin(&page, "Figures and tables, reproduced",
               "FPDT, SPPO, LoongTrain and torchtitan's context parallelism: published values and "
               "predictions");
    put_page_verdict(&page, r, wanted);
    put_entry_state_rows(&(struct rows){.csv = &csv, .page = &page}, r, wanted);
    for (size_t e = 0; status == STATUS_OK && e < r->catalogue.entry_count; e++)
        if (wanted[e])
            status = put_entry(&page, r, e, folder, diag);
    page_put_heading(&page, "Made by");
    page_put_text(&page, "longhaul " LONGHAUL_VERSION ", longhaul reproduce");
    page_end(&page);
    if (status == STATUS_OK)
        status = file_set_begin(&files, diag);
    if (status == STATUS_OK)
        status = file_set_add(&files, "states.csv", csv.data, csv.size, diag);
    if (status == STATUS_OK)
        status = file_set_add(&files, "index.html", page.html.data, page.html.size, diag);
    if (status == STATUS_OK)
        status = file_set_end(&files, diag);
    file_set_release(&files);
    text_release(&csv);
    text_release(&page.html);
    return status;
}

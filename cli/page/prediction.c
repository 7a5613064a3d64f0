/* The page of a prediction: of a folder of predict -o or plan -o. */
#include "cli/page/pages.h"

#include "cli/folder/stored.h"
#include "cli/page/context.h"
#include "cli/page/sheet_page.h"
#include "cli/page/sources.h"
#include "cli/page/values.h"

#include <math.h>

static const char *text_or_null(struct json_node object, const char *key)
{
    const char *value = page_get_text_or_empty(object, key);
    return value[0] == '\0' ? NULL : value;
}

static enum status put_waterfall(struct page *page, const char *path,
                                 const struct waterfall *waterfall, struct diag *diag)
{
    struct figure figure = {0};
    const struct figure_options wanted = {.title = ""};
    return page_draw(page, &figure, figure_waterfall(&figure, path, "", waterfall, &wanted, diag),
                     "Every instant of rank 0 has one cause. Green: flops that the model needs; "
                     "orange: other work; blue: waiting for data; grey: the host.",
                     diag);
}

/* Appends the figures over time: of the pipeline, if the step has one; of the streams of rank 0;
 * and of the memory of `rank`, the rank that needs the most. */
static enum status put_trace_figures(struct page *page, const char *path, double rank,
                                     struct diag *diag)
{
    struct trace ops = {0}, memory = {0};
    struct figure figure = {0};
    struct text caption = {0};
    struct figure_options wanted = {.title = ""};
    enum status status = stored_load_trace(&ops, path, false, diag);
    if (status == STATUS_OK && trace_get_key(&ops, "stages") != NULL)
        status = page_draw(page, &figure, figure_pipeline(&figure, &ops, &wanted, diag),
                           "What each pipeline stage does. A number is that of a micro-batch or "
                           "subsequence, from 0; recomputation is part of the backward.",
                           diag);
    if (status == STATUS_OK)
        status = page_draw(page, &figure, figure_timeline(&figure, &ops, &wanted, diag),
                           "What each stream of rank 0 does. Where more alternates than can be "
                           "shown, colours share the height as they share the time.",
                           diag);
    if (status == STATUS_OK)
        status = stored_load_trace(&memory, path, true, diag);
    if (status == STATUS_OK) {
        wanted.rank = (long)rank;
        wanted.shows_needed_bytes = true;
        text_printf(&caption,
                    "The memory of rank %ld, which needs most. Reserved, not live: what the "
                    "allocator's cache, NCCL and the CUDA context hold.",
                    wanted.rank);
        status = page_draw(page, &figure, figure_memory(&figure, &memory, &wanted, diag),
                           caption.data, diag);
    }
    figure_release(&figure);
    text_release(&caption);
    trace_release(&ops);
    trace_release(&memory);
    return status;
}

/* Appends a table of an object's members: names and values. */
static void put_object_table(struct page *page, struct json_node object, const char *what)
{
    const char *const heads[] = {what, "", NULL};
    page_begin_table(page, NULL, heads);
    for (size_t i = 0; i < json_member_count(object); i++) {
        const char *key, *text = "";
        struct json_node node = json_member_at(object, i, &key);
        page_put_cell(page, key);
        if (json_is_string(node)) {
            json_as_string(node, &text, NULL);
            page_put_cell(page, text);
        } else if (json_is_number(node)) {
            double is = page_get_number_or_0(object, key);
            page_put_formatted_cell(page, is == floor(is) && fabs(is) < 1e15 ? "%.0f" : "%.6g", is);
        } else {
            page_put_cell(page, "-");
        }
        page_end_row(page);
    }
    page_end_table(page);
}

/* The label of the line of the report that becomes the page's subtitle, and is left out of the sections. */
static const char subtitle_line[] = "model";

/* Appends a section as the screen has it, and what only the page has: the figure of the causes, and before the
 * suggestions the measured steps that are most similar. */
static enum status put_section(struct page *page, const char *path, struct json_node root,
                               size_t number, const struct waterfall *waterfall, struct diag *diag)
{
    const enum sheet_section section = sheet_page_section_kind(root, number);
    enum status status = STATUS_OK;
    if (section == SHEET_SECTION_SUGGESTIONS)
        page_put_similar_runs(page, root);
    sheet_page_put_heading(page, root, number);
    if (section == SHEET_SECTION_CAUSES)
        status = put_waterfall(page, path, waterfall, diag);
    sheet_page_put_blocks(page, root, number,
                          section == SHEET_SECTION_CAUSES ? "The causes as numbers" : NULL,
                          subtitle_line);
    return status;
}

/* Appends the section of details if `details`, else all other sections. */
static enum status put_sections(struct page *page, const char *path, struct json_node root,
                                bool details, const struct waterfall *waterfall, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sheet_page_section_count(root) && status == STATUS_OK; i++)
        if ((sheet_page_section_kind(root, i) == SHEET_SECTION_DETAILS) == details)
            status = put_section(page, path, root, i, waterfall, diag);
    return status;
}

/* Loads what the page is made of. Refuses a prediction of a part of a model, which has no waterfall, and one of an
 * older version, which has no sheet. */
static enum status load_prediction(struct stored_prediction *stored, struct waterfall *waterfall,
                                   const char *path, struct diag *diag)
{
    enum status status = stored_prediction_load(stored, path, diag);
    if (status == STATUS_OK)
        status = stored_read_waterfall(stored, waterfall, diag);
    if (status != STATUS_OK || sheet_page_section_count(json_root(&stored->json)) > 0)
        return status;
    struct text name = {0};
    text_printf(&name, "%s/prediction.json", path);
    status = diag_error(diag, (struct loc){.name = name.data}, STATUS_BAD_INPUT,
                        "has no 'sheet': it is of an older version; predict it again with -o");
    text_release(&name);
    return status;
}

enum status page_of_prediction(struct page *page, const char *path, const char *title,
                               struct diag *diag)
{
    struct stored_prediction stored = {0};
    struct waterfall waterfall;
    enum status status = load_prediction(&stored, &waterfall, path, diag);
    if (status != STATUS_OK) {
        stored_prediction_release(&stored);
        return status;
    }
    struct json_node root = json_root(&stored.json), what = json_find_member(root, "configuration");
    struct json_node made_by = json_find_member(root, "made_by"),
                     memory = json_find_member(root, "memory");
    page_begin(page, title != NULL ? title : "One training step, predicted",
               sheet_page_text_of_line(root, subtitle_line));
    status = put_sections(page, path, root, false, &waterfall, diag);
    if (status == STATUS_OK)
        status = page_put_ranking(page, path, root, diag);
    if (status == STATUS_OK) {
        page_put_heading(page, "Over time");
        status = put_trace_figures(page, path, page_get_number_or_0(memory, "peak_rank"), diag);
    }
    if (status == STATUS_OK)
        status = put_sections(page, path, root, true, &waterfall, diag);
    if (status == STATUS_OK) {
        page_put_heading(page, "What was predicted");
        put_object_table(page, what, "choice");
        page_put_sources(page, text_or_null(made_by, "model"), text_or_null(made_by, "cluster"),
                         text_or_null(made_by, "costs"), text_or_null(what, "profile"));
        page_put_heading(page, "Made by");
        page_put_code_block(page, page_get_text_or_empty(made_by, "command"));
        page_put_text(page, page_get_text_or_empty(made_by, "versions"));
        page_end(page);
    }
    stored_prediction_release(&stored);
    return status;
}

#include "predict/reproduce/catalogue.h"

#include "base/data_path.h"
#include "predict/reproduce/catalogue_claims.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const entry_kind_names[ENTRY_KIND_COUNT] = {"points", "chart", "drawing", "nothing"};

void catalogue_release(struct catalogue *c)
{
    for (size_t e = 0; e < c->entry_count; e++)
        for (size_t g = 0; g < c->entry[e].grid_count; g++)
            grid_axes_release(&c->entry[e].grid[g].axes);
    json_release(&c->json);
    text_release(&c->text);
    arena_release(&c->arena);
    *c = (struct catalogue){0};
}

static enum status read_pattern_of_place_in_figure(struct pattern_of_place_in_figure *at,
                                                   struct json_node node, struct diag *diag)
{
    enum status status = catalogue_read_text(node, "panel", &at->panel, diag);
    if (status == STATUS_OK)
        status = catalogue_read_text(node, "series", &at->series, diag);
    if (status == STATUS_OK)
        status = catalogue_read_text(node, "x", &at->x, diag);
    return status;
}

static enum status read_row_selector(struct catalogue *c, struct catalogue_row_selector *rows,
                                     struct json_node node, struct diag *diag)
{
    static const char *const known[] = {"source", "table",  "metric", "system",
                                        "panel",  "series", "x"};
    (void)c;
    enum status status = json_reject_unknown_keys(node, known, ARRAY_LEN(known), diag);
    if (status == STATUS_OK)
        status = json_get_string(node, "source", &rows->source, diag);
    if (status == STATUS_OK)
        status = json_get_string(node, "table", &rows->paper_table, diag);
    if (status == STATUS_OK)
        status = catalogue_read_text(node, "system", &rows->framework, diag);
    if (status == STATUS_OK)
        status = catalogue_read_texts(node, "metric", rows->metric, &rows->metric_count, diag);
    return status == STATUS_OK ? read_pattern_of_place_in_figure(&rows->placement, node, diag)
                               : status;
}

/* Reads the axes of a grid: "vary": {"seq": "128K,256K"}. */
static enum status read_axes(struct catalogue_grid *grid, struct json_node node, struct diag *diag)
{
    struct json_node vary = json_find_member(node, "vary");
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < json_member_count(vary); i++) {
        const char *key, *values;
        struct json_node member = json_member_at(vary, i, &key);
        status = json_as_string(member, &values, diag);
        if (status == STATUS_OK)
            status = grid_axes_add_option(&grid->axes, key, values, AXIS_TYPE_TEXTS, diag);
    }
    return status;
}

static enum status read_cases(struct catalogue_grid *grid, struct json_node node, struct diag *diag)
{
    struct json_node cases = json_find_member(node, "cases");
    if (json_member_count(cases) > CATALOGUE_LIST_MAX)
        return json_error(cases, diag, "has more than %d cases", CATALOGUE_LIST_MAX);
    for (size_t i = 0; i < json_member_count(cases); i++) {
        struct json_node member = json_member_at(cases, i, &grid->name[i]);
        enum status status = json_as_string(member, &grid->name_args[i], diag);
        if (status != STATUS_OK)
            return status;
        grid->case_count++;
    }
    return STATUS_OK;
}

static enum status read_measure(struct catalogue_grid *grid, struct json_node node,
                                struct diag *diag)
{
    const char *name;
    struct text names = {0};
    enum status status = json_get_string(node, "measure", &name, diag);
    if (status == STATUS_OK && !measure_find(name, &grid->measure)) {
        measure_put_names(&names);
        status = json_error(json_find_member(node, "measure"), diag,
                            "'%s' is no measure; there are %s", name, names.data);
    }
    text_release(&names);
    return status;
}

/* Reads "published": a number for each combination of cases and axes, in their order. */
static enum status read_published(struct catalogue *c, struct catalogue_grid *grid,
                                  struct json_node node, struct diag *diag)
{
    struct json_node list = json_find_member(node, "published");
    size_t points = (grid->case_count > 0 ? grid->case_count : 1) * grid_point_count(&grid->axes);
    enum status status = STATUS_OK;
    if (json_element_count(list) == 0)
        return STATUS_OK;
    if (json_element_count(list) != points)
        return json_error(list, diag, "has %zu values, and the grid has %zu points",
                          json_element_count(list), points);
    grid->published_value_of_each_point =
        arena_array(&c->arena, points, sizeof *grid->published_value_of_each_point);
    for (size_t i = 0; status == STATUS_OK && i < points; i++)
        status = json_as_double(json_element_at(list, i), 0, DBL_MAX,
                                &grid->published_value_of_each_point[i], diag);
    return status;
}

/* Reads "together", the name of the combined series, and "shares", the share of the tokens that each case has. */
static enum status read_combined_series_shares(struct catalogue *c, struct catalogue_grid *grid,
                                               struct json_node node, struct diag *diag)
{
    struct json_node list = json_find_member(node, "shares");
    double sum = 0;
    enum status status = catalogue_read_text(node, "together", &grid->combined_series, diag);
    if (status != STATUS_OK || (grid->combined_series == NULL && json_element_count(list) == 0))
        return status;
    if (grid->combined_series == NULL || grid->case_count == 0 ||
        json_element_count(list) != grid->case_count || grid->measure != MEASURE_TOKENS)
        return json_error(node, diag,
                          "\"together\", the name of a series, goes with \"shares\", one for each "
                          "case, and with the measure tokens_per_s_gpu");
    grid->token_share = arena_array(&c->arena, grid->case_count, sizeof *grid->token_share);
    for (size_t i = 0; status == STATUS_OK && i < grid->case_count; i++) {
        status = json_as_double(json_element_at(list, i), 0, 1, &grid->token_share[i], diag);
        sum += grid->token_share[i];
    }
    if (status == STATUS_OK && fabs(sum - 1) > 1e-9)
        return json_error(list, diag, "adds up to %g, and shares of all tokens to 1", sum);
    return status;
}

static enum status read_grid(struct catalogue *c, struct catalogue_grid *grid,
                             struct json_node node, struct diag *diag)
{
    static const char *const known[] = {"args",      "cases",    "vary",   "measure",
                                        "unfit",     "panel",    "series", "x",
                                        "published", "together", "shares"};
    enum status status = json_reject_unknown_keys(node, known, ARRAY_LEN(known), diag);
    if (status == STATUS_OK)
        status = json_get_string(node, "args", &grid->args, diag);
    if (status == STATUS_OK)
        status = read_measure(grid, node, diag);
    if (status == STATUS_OK)
        status = read_cases(grid, node, diag);
    if (status == STATUS_OK)
        status = read_axes(grid, node, diag);
    if (status == STATUS_OK)
        status = catalogue_read_flag(node, "unfit", &grid->simulates_unfit, diag);
    if (status == STATUS_OK)
        status = read_published(c, grid, node, diag);
    if (status == STATUS_OK)
        status = read_combined_series_shares(c, grid, node, diag);
    return status == STATUS_OK ? read_pattern_of_place_in_figure(&grid->placement, node, diag)
                               : status;
}

static enum status read_timeline(struct catalogue *c, struct catalogue_timeline *timeline,
                                 struct json_node node, struct diag *diag)
{
    static const char *const known[] = {"title", "args", "window", "memory"};
    (void)c;
    enum status status = json_reject_unknown_keys(node, known, ARRAY_LEN(known), diag);
    if (status == STATUS_OK)
        status = json_get_string(node, "title", &timeline->title, diag);
    if (status == STATUS_OK)
        status = json_get_string(node, "args", &timeline->args, diag);
    if (status == STATUS_OK)
        status = catalogue_read_text(node, "window", &timeline->op_window_text, diag);
    return status == STATUS_OK ? catalogue_read_flag(node, "memory", &timeline->shows_memory, diag)
                               : status;
}

/* ---- entries ---- */

/* Reads each element of the array under `key`, which may be absent, with `read` into an array of the entry, and sets
 * the entry's `number` to how many there are. */
#define READ_ARRAY(c, entry, node, key, member, number, read, status, diag)                        \
    do {                                                                                           \
        struct json_node all_ = json_find_member(node, key);                                       \
        (entry)->member =                                                                          \
            arena_array(&(c)->arena, json_element_count(all_) + 1, sizeof *(entry)->member);       \
        for (size_t i_ = 0; (status) == STATUS_OK && i_ < json_element_count(all_); i_++) {        \
            (entry)->number = i_ + 1;                                                              \
            status = read(c, &(entry)->member[i_], json_element_at(all_, i_), diag);               \
        }                                                                                          \
    } while (0)

static enum status read_kind(struct catalogue_entry *entry, struct json_node node,
                             struct diag *diag)
{
    const char *kind;
    enum status status = json_get_string(node, "kind", &kind, diag);
    if (status != STATUS_OK)
        return status;
    for (int i = 0; i < ENTRY_KIND_COUNT; i++)
        if (strcmp(entry_kind_names[i], kind) == 0) {
            entry->kind = (enum entry_kind)i;
            return STATUS_OK;
        }
    return json_error(json_find_member(node, "kind"), diag,
                      "'%s' is none of points, chart, drawing and nothing", kind);
}

static enum status read_texts(struct catalogue_entry *entry, struct json_node node,
                              struct diag *diag)
{
    enum status status = catalogue_read_texts(node, "names", entry->name, &entry->name_count, diag);
    if (status == STATUS_OK && entry->name_count == 0)
        status = json_error(node, diag, "an entry has names");
    if (status == STATUS_OK)
        status = json_get_string(node, "shows", &entry->subject, diag);
    if (status == STATUS_OK)
        status = read_kind(entry, node, diag);
    const struct {
        const char *key, **text;
    } texts[] = {{"why", &entry->reason},
                 {"note", &entry->note},
                 {"x", &entry->x_label},
                 {"y", &entry->y_label}};
    for (size_t i = 0; status == STATUS_OK && i < ARRAY_LEN(texts); i++)
        status = catalogue_read_text(node, texts[i].key, texts[i].text, diag);
    entry->y_scale = 1;
    if (status == STATUS_OK && json_is_number(json_find_member(node, "y_scale")))
        status = json_get_double(node, "y_scale", 0, DBL_MAX, &entry->y_scale, diag);
    return status == STATUS_OK ? catalogue_read_flag(node, "y_log", &entry->is_y_log, diag)
                               : status;
}

static enum status read_entry(struct catalogue *c, struct catalogue_entry *entry,
                              struct json_node node, struct diag *diag)
{
    static const char *const known[] = {"names", "shows",  "kind",     "why",   "note",
                                        "x",     "y",      "y_scale",  "y_log", "rows",
                                        "grids", "claims", "timelines"};
    enum status status = json_reject_unknown_keys(node, known, ARRAY_LEN(known), diag);
    if (status == STATUS_OK)
        status = read_texts(entry, node, diag);
    READ_ARRAY(c, entry, node, "rows", rows, row_selection_count, read_row_selector, status, diag);
    READ_ARRAY(c, entry, node, "grids", grid, grid_count, read_grid, status, diag);
    READ_ARRAY(c, entry, node, "claims", claim, claim_count, catalogue_read_claim, status, diag);
    READ_ARRAY(c, entry, node, "timelines", timeline, timeline_count, read_timeline, status, diag);
    if (status == STATUS_OK && entry->kind == ENTRY_NOT_SIMULABLE && entry->reason == NULL)
        status = json_error(node, diag, "says why nothing can be simulated");
    return status;
}

enum status catalogue_load(struct catalogue *c, const char *path, struct diag *diag)
{
    struct text found = {0};
    struct json_node all = {0};
    enum status status = STATUS_OK;
    if (path == NULL) {
        status = data_path(&found, "traces/published/reproduce.json", diag);
        path = status == STATUS_OK ? arena_text(&c->arena, found.data, found.size) : NULL;
    }
    if (status == STATUS_OK)
        status = text_read_with_byte_limit(&c->text, path, TEXT_CONFIGURATION_BYTES_MAX, diag);
    if (status == STATUS_OK)
        status = json_parse(&c->json, path, c->text.data, c->text.size, diag);
    if (status == STATUS_OK)
        status = json_get_array(json_root(&c->json), "entries", &all, diag);
    c->entry = arena_array(&c->arena, json_element_count(all) + 1, sizeof *c->entry);
    for (size_t i = 0; status == STATUS_OK && i < json_element_count(all); i++) {
        c->entry_count++;
        status = read_entry(c, &c->entry[i], json_element_at(all, i), diag);
    }
    text_release(&found);
    return status;
}

enum status catalogue_find(const struct catalogue *c, const char *name, size_t *entry,
                           struct diag *diag)
{
    size_t names = 0;
    for (size_t e = 0; e < c->entry_count; e++)
        for (size_t i = 0; i < c->entry[e].name_count; i++, names++)
            if (strcmp(c->entry[e].name[i], name) == 0) {
                *entry = e;
                return STATUS_OK;
            }
    const char **all = heap_alloc(names + 1, sizeof *all);
    names = 0;
    for (size_t e = 0; e < c->entry_count; e++)
        for (size_t i = 0; i < c->entry[e].name_count; i++)
            all[names++] = c->entry[e].name[i];
    const char *nearest = diag_nearest(name, all, names);
    free((void *)all);
    return diag_error(diag, (struct loc){.name = "reproduce"}, STATUS_BAD_INPUT,
                      "there is no figure or table '%s'%s%s%s; `longhaul reproduce --list` has all",
                      name, nearest != NULL ? ": did you mean '" : "",
                      nearest != NULL ? nearest : "", nearest != NULL ? "'" : "");
}

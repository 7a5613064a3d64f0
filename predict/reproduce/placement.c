#include "predict/reproduce/placement.h"

#include "base/units.h"

#include <string.h>

/* Returns the text that replaces a key of a pattern; NULL: there is no such key. */
typedef const char *lookup_fn(const void *context, const char *key);

struct row_context {
    const struct external_run *row;
    struct arena *arena;
};

/* Returns the value of an option in a text of options separated by blanks; NULL: the option is not in it. */
static const char *option_value_in(const char *words, const char *option, struct arena *arena)
{
    size_t size = strlen(option);
    for (const char *at = words; (at = strstr(at, "--")) != NULL; at += 2)
        if (strncmp(at + 2, option, size) == 0 && at[2 + size] == ' ') {
            const char *value = at + 3 + size;
            return arena_text(arena, value, strcspn(value, " "));
        }
    return NULL;
}

static const char *value_of_key_for_row(const void *context, const char *key)
{
    static const char against[] = "against:";
    const struct row_context *c = context;
    const size_t size = sizeof against - 1;
    for (int i = 0; i < EXTERNAL_COLUMN_COUNT; i++)
        if (strcmp(external_column_name((enum external_column)i), key) == 0 &&
            c->row->cells[i] != NULL && c->row->cells[i][0] != '\0')
            return c->row->cells[i];
    if (strncmp(key, against, size) == 0)
        return option_value_in(c->row->cells[EXTERNAL_AGAINST], key + size, c->arena);
    return option_value_in(c->row->cells[EXTERNAL_ARGS], key, c->arena);
}

struct cell_context {
    const struct catalogue_grid *grid;
    size_t case_index, cell_index;
};

static const char *value_of_key_for_cell(const void *context, const char *key)
{
    const struct cell_context *c = context;
    if (strcmp(key, "case") == 0)
        return c->grid->case_count > 0 ? c->grid->name[c->case_index] : NULL;
    for (size_t a = 0; a < c->grid->axes.axis_count; a++)
        if (strcmp(c->grid->axes.axis[a].key, key) == 0)
            return grid_value_text(&c->grid->axes, c->cell_index, a);
    return NULL;
}

/* Appends the value of a key. Lengths of sequences and chunks are written in the units of tokens ("512K"). */
static void put_value(struct text *out, const char *key, const char *value)
{
    int64_t tokens;
    bool is_tokens = strcmp(key, "seq_len") == 0 || strcmp(key, "chunk") == 0;
    if (is_tokens && parse_i64(value, strlen(value), &tokens))
        units_put_tokens(out, tokens);
    else
        text_puts(out, value);
}

static const char *expand_pattern(const char *pattern, lookup_fn *look, const void *context,
                                  struct arena *arena)
{
    struct text out = {0};
    for (const char *at = pattern == NULL ? "" : pattern; *at != '\0';) {
        const char *end = *at == '{' ? strchr(at, '}') : NULL;
        if (end == NULL) {
            if (*at != ' ' || (out.size > 0 && out.data[out.size - 1] != ' '))
                text_putc(&out, *at); /* an empty value leaves one blank, not two */
            at++;
            continue;
        }
        const size_t size = (size_t)(end - at) - 1;
        const char *otherwise = memchr(at + 1, '=', size);
        const char *key =
            arena_text(arena, at + 1, otherwise != NULL ? (size_t)(otherwise - at) - 1 : size);
        const char *value = look(context, key);
        if (value != NULL)
            put_value(&out, key, value);
        else if (otherwise != NULL)
            text_append(&out, otherwise + 1, (size_t)(end - otherwise) - 1);
        at = end + 1;
    }
    const char *kept = arena_text(arena, out.size > 0 ? out.data : "", out.size);
    text_release(&out);
    return kept;
}

static void set_place_in_figure(struct place_in_figure *at,
                                const struct pattern_of_place_in_figure *pattern, lookup_fn *look,
                                const void *context, struct arena *arena)
{
    at->panel = expand_pattern(pattern->panel, look, context, arena);
    at->series = expand_pattern(pattern->series, look, context, arena);
    at->x = expand_pattern(pattern->x, look, context, arena);
}

void placement_in_figure_of_row(struct place_in_figure *at,
                                const struct pattern_of_place_in_figure *pattern,
                                const struct external_run *row, struct arena *arena)
{
    const struct row_context context = {row, arena};
    set_place_in_figure(at, pattern, value_of_key_for_row, &context, arena);
}

void placement_in_figure_of_cell(struct place_in_figure *at, const struct catalogue_grid *grid,
                                 size_t which, size_t cell, struct arena *arena)
{
    const struct cell_context context = {grid, which, cell};
    set_place_in_figure(at, &grid->placement, value_of_key_for_cell, &context, arena);
}

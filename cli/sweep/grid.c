#include "cli/sweep/grid.h"

#include "base/units.h"
#include "models/cluster.h"
#include "models/cluster_fields.h"
#include "models/cost.h"
#include "models/transformer.h"
#include "schedule/compose.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct loc vary_loc = {.name = "--vary"};

void sweep_grid_release(struct sweep_grid *grid)
{
    for (size_t i = 0; i < grid->axis_count; i++)
        free((void *)grid->axis[i].value);
    arena_release(&grid->arena);
    *grid = (struct sweep_grid){0};
}

static enum status add_value(struct sweep_axis *axis, const char *value, struct diag *diag)
{
    if (axis->count == SWEEP_POINTS_MAX)
        return diag_error(diag, vary_loc, STATUS_BAD_INPUT, "%s has more than %d values", axis->key,
                          SWEEP_POINTS_MAX);
    if (axis->count == axis->capacity) {
        axis->capacity = heap_next_capacity(axis->capacity, axis->count + 1);
        axis->value = heap_realloc((void *)axis->value, axis->capacity, sizeof *axis->value);
    }
    axis->value[axis->count++] = value;
    return STATUS_OK;
}

static enum status parse_list(struct arena *arena, struct sweep_axis *axis, struct diag *diag)
{
    const char *at = axis->given, *separator = strchr(at, ';') != NULL ? ";" : ",";
    for (;;) {
        size_t size = strcspn(at, separator);
        if (size == 0)
            return diag_error(diag, vary_loc, STATUS_BAD_INPUT, "%s has an empty value in '%s'",
                              axis->key, axis->given);
        char *value = arena_text(arena, at, size);
        for (size_t i = 0; i < axis->count; i++)
            if (strcmp(axis->value[i], value) == 0)
                return diag_error(diag, vary_loc, STATUS_BAD_INPUT, "%s has the value '%s' twice",
                                  axis->key, value);
        enum status status = add_value(axis, value, diag);
        if (status != STATUS_OK || at[size] == '\0')
            return status;
        at += size + 1;
    }
}

/* ---- ranges ---- */

struct range {
    double from, to, step;
    bool factor;
};

/* A number in the form that the option has. */
static bool parse_number(const struct option *option, const char *text, size_t size, double *value)
{
    int64_t whole;
    if (option->kind != OPTION_TOKENS)
        return parse_double(text, size, value);
    if (units_parse_tokens(text, size, &whole, vary_loc, NULL) != STATUS_OK)
        return false;
    *value = (double)whole;
    return true;
}

static char *print_number(struct arena *arena, const struct option *option, double value)
{
    struct text text = {0};
    if (option->kind == OPTION_TOKENS)
        units_put_tokens(&text, (int64_t)value);
    else
        text_put_double(&text, value);
    char *kept = arena_text(arena, text.data, text.size);
    text_release(&text);
    return kept;
}

static bool range_parse(struct range *range, const struct option *option, const char *given)
{
    const char *dots = strstr(given, ".."), *colon = strchr(given, ':');
    const char *end = colon != NULL ? colon : given + strlen(given);
    if (!parse_number(option, given, (size_t)(dots - given), &range->from) ||
        !parse_number(option, dots + 2, (size_t)(end - dots - 2), &range->to))
        return false;
    range->step = 1;
    if (colon == NULL)
        return option->kind == OPTION_COUNT;
    range->factor = colon[1] == 'x';
    const char *step = colon + 2;
    if (colon[1] == '\0' || (!range->factor && colon[1] != '+'))
        return false;
    return range->factor ? parse_double(step, strlen(step), &range->step)
                         : parse_number(option, step, strlen(step), &range->step);
}

/* The range of text, which messages call by what the axis was given. */
static enum status parse_range(struct arena *arena, struct sweep_axis *axis,
                               const struct option *option, const char *text, struct diag *diag)
{
    struct range range = {0};
    if (!range_parse(&range, option, text))
        return diag_error(diag, vary_loc, STATUS_BAD_INPUT,
                          "%s: '%s' is no range: write A..B:xF (times F) or A..B:+S (plus S)",
                          axis->key, axis->given);
    if (!(range.from <= range.to) || !(range.step > (range.factor ? 1 : 0)) ||
        !(range.from > 0 || !range.factor) || !isfinite(range.to))
        return diag_error(diag, vary_loc, STATUS_BAD_INPUT,
                          "%s: the range '%s' does not grow from its start to its end", axis->key,
                          axis->given);
    bool whole = option->kind != OPTION_NUMBER;
    double last = range.to * (1 + 1e-12); /* 0.1..0.3:+0.1 ends at 0.3 */
    for (size_t i = 0;; i++) {
        double value = range.factor ? range.from * pow(range.step, (double)i)
                                    : range.from + range.step * (double)i;
        if (value > last)
            return STATUS_OK;
        if (whole && value != floor(value))
            return diag_error(diag, vary_loc, STATUS_BAD_INPUT,
                              "%s: a step of the range '%s' is %g, which is not whole", axis->key,
                              axis->given, value);
        enum status status = add_value(axis, print_number(arena, option, value), diag);
        if (status != STATUS_OK)
            return status;
    }
}

/* ---- axes ---- */

static bool takes_range(const struct option *option)
{
    return option->kind == OPTION_COUNT || option->kind == OPTION_TOKENS ||
           option->kind == OPTION_NUMBER;
}

/* The text after the number that a value begins with: "Gb/s". */
static const char *unit_of(const char *value)
{
    return value + strspn(value, "0123456789.");
}

/* Values of a number of the cluster: a range or a list, at whose end the unit of all may stand. */
static enum status parse_cluster_values(struct arena *arena, struct sweep_axis *axis,
                                        struct diag *diag)
{
    static const struct option number = {.kind = OPTION_NUMBER}, count = {.kind = OPTION_COUNT};
    const char *given = axis->given, *dots = strstr(given, ".."), *unit = "";
    enum status status;
    if (dots != NULL) { /* "100..400Gb/s:x2" */
        const char *begin = unit_of(dots + 2);
        size_t size = strcspn(begin, ":");
        unit = arena_text(arena, begin, size);
        const char *range =
            arena_printf(arena, "%.*s%s", (int)(begin - given), given, begin + size);
        status = parse_range(arena, axis, unit[0] == '\0' ? &count : &number, range, diag);
    } else {
        status = parse_list(arena, axis, diag);
        if (status == STATUS_OK)
            unit = unit_of(axis->value[axis->count - 1]);
    }
    for (size_t i = 0; i < axis->count; i++)
        if (axis->value[i][0] != '\0' && unit_of(axis->value[i])[0] == '\0')
            axis->value[i] = arena_printf(arena, "%s%s", axis->value[i], unit);
    return status;
}

static enum status add_axis(struct sweep_grid *grid, const struct options *options,
                            const char *text, struct diag *diag)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == '\0')
        return diag_error(diag, vary_loc, STATUS_BAD_INPUT,
                          "'%s' is not KEY=VALUES, such as seq=64K..1M:x2 or zero=1,2,3", text);
    struct sweep_axis *axis = &grid->axis[grid->axis_count];
    char *key = arena_text(&grid->arena, text, (size_t)(equals - text));
    *axis = (struct sweep_axis){.key = key,
                                .given = arena_text(&grid->arena, equals + 1, strlen(equals + 1))};
    const struct option *option = options_find(grid->sets, key);
    axis->of_cluster = option == NULL && cluster_line_has(key);
    if (!axis->of_cluster && (option == NULL || option->kind == OPTION_LIST))
        return diag_error(
            diag, vary_loc, STATUS_BAD_INPUT,
            "'%s' is no option that predict has; `longhaul help sweep` lists them; nor "
            "is it a number of a cluster, such as nic.bandwidth",
            key);
    for (size_t i = 0; i < grid->axis_count; i++)
        if (strcmp(grid->axis[i].key, key) == 0)
            return diag_error(diag, vary_loc, STATUS_BAD_INPUT, "%s is varied twice", key);
    if (!axis->of_cluster && options_given(options, key))
        return diag_error(diag, vary_loc, STATUS_BAD_INPUT,
                          "%s is varied, and given as an option too", key);
    if (!axis->of_cluster && option->kind == OPTION_FLAG)
        return diag_error(diag, vary_loc, STATUS_BAD_INPUT, "%s has no values to vary over", key);
    grid->axis_count++;
    enum status status;
    if (axis->of_cluster)
        status = parse_cluster_values(&grid->arena, axis, diag);
    else if (takes_range(option) && strstr(axis->given, "..") != NULL)
        status = parse_range(&grid->arena, axis, option, axis->given, diag);
    else
        status = parse_list(&grid->arena, axis, diag);
    if (status == STATUS_OK && axis->count > SWEEP_POINTS_MAX / grid->points)
        return diag_error(diag, vary_loc, STATUS_BAD_INPUT, "the grid has more than %d points",
                          SWEEP_POINTS_MAX);
    grid->points *= axis->count > 0 ? axis->count : 1;
    return status;
}

/* ---- names ---- */

static enum status check_strategy(const char *value, struct arena *arena, struct diag *diag)
{
    (void)arena;
    return compose_check_names(value, NULL, diag);
}

static enum status check_profile(const char *value, struct arena *arena, struct diag *diag)
{
    (void)arena;
    return compose_check_names(NULL, value, diag);
}

static enum status check_model(const char *value, struct arena *arena, struct diag *diag)
{
    struct transformer model;
    if (access(value, R_OK) == 0) /* what is wrong in it may be what --ignore leaves unread */
        return STATUS_OK;
    return transformer_load(&model, arena, value, NULL, diag);
}

static enum status check_cluster(const char *value, struct arena *arena, struct diag *diag)
{
    struct cluster cluster;
    return cluster_load(&cluster, arena, value, diag);
}

static enum status check_costs(const char *value, struct arena *arena, struct diag *diag)
{
    struct device_cost cost;
    return cost_load(&cost, arena, value, diag);
}

/* Names that tables and files have are text to their options; here they are looked up. A name that
 * none has is wrong in every point. */
static enum status check_name(const char *key, const char *value, struct diag *diag)
{
    static const struct {
        const char *key, *option;
        enum status (*check)(const char *value, struct arena *arena, struct diag *diag);
    } names[] = {
        {"strategy", "--strategy", check_strategy}, {"profile", "--profile", check_profile},
        {"model", "--model", check_model},          {"cluster", "--cluster", check_cluster},
        {"costs", "--costs", check_costs},
    };
    struct arena arena = {0};
    enum status status = STATUS_OK;
    size_t before = diag->size;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i].key, key) == 0) {
            status = names[i].check(value, &arena, diag);
            diag_place(diag, before, names[i].option);
        }
    arena_release(&arena);
    return status;
}

/* Each value of a number of the cluster must be one that the number can have; whether the rest of a cluster
 * agrees with it is its point's to say. */
static enum status check_cluster_values(const struct sweep_axis *axis, struct diag *diag)
{
    const struct cluster_field *field = cluster_field_find(axis->key);
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && field != NULL && i < axis->count; i++) {
        struct cluster cluster = {.ideal = true}; /* takes all that some cluster takes */
        struct arena arena = {0};
        status = cluster_field_set(&cluster, &arena, field, axis->value[i], strlen(axis->value[i]),
                                   "", vary_loc, diag);
        arena_release(&arena);
    }
    return status;
}

/* Each value of each axis, alone, must be one that its option takes. */
static enum status check_values(const struct sweep_grid *grid, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (size_t a = 0; status == STATUS_OK && a < grid->axis_count; a++)
        for (size_t i = 0;
             status == STATUS_OK && !grid->axis[a].of_cluster && i < grid->axis[a].count; i++) {
            struct options options = {0};
            struct arena arena = {0};
            char *word = arena_printf(&arena, "--%s=%s", grid->axis[a].key, grid->axis[a].value[i]);
            status = options_parse(&options, grid->sets, 1, &word, diag);
            if (status == STATUS_OK)
                status = check_name(grid->axis[a].key, grid->axis[a].value[i], diag);
            options_release(&options);
            arena_release(&arena);
        }
    for (size_t a = 0; status == STATUS_OK && a < grid->axis_count; a++)
        if (grid->axis[a].of_cluster)
            status = check_cluster_values(&grid->axis[a], diag);
    return status;
}

/* Options that are text to the table take a list in silence, and no name holds a comma. */
static enum status check_no_list(const struct options *options, struct diag *diag)
{
    static const char *const names[] = {"strategy", "profile", "model", "cluster", "costs"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *text = options_text(options, names[i]);
        if (text != NULL && strchr(text, ',') != NULL && strchr(text, ':') == NULL &&
            access(text, R_OK) != 0)
            return options_refuse_list(names[i], text, diag);
    }
    return STATUS_OK;
}

enum status sweep_grid_make(struct sweep_grid *grid, const struct option_set *const *sets,
                            const struct options *options, const char *const *vary, size_t count,
                            struct diag *diag)
{
    size_t most = 0, row = 0;
    for (size_t s = 0; sets[s] != NULL; s++)
        most += sets[s]->count;
    grid->sets = sets;
    grid->points = 1;
    grid->base = arena_array(&grid->arena, most, sizeof *grid->base);
    for (size_t s = 0; sets[s] != NULL; s++)
        for (size_t i = 0; i < sets[s]->count; i++, row++) {
            const struct option *option = &sets[s]->option[i];
            if (options_given(options, option->name))
                grid->base[grid->base_count++] =
                    option->kind == OPTION_FLAG
                        ? arena_printf(&grid->arena, "--%s", option->name)
                        : arena_printf(&grid->arena, "--%s=%s", option->name,
                                       options_text(options, option->name));
        }
    enum status status = check_no_list(options, diag);
    if (status != STATUS_OK)
        return status;
    if (count == 0)
        return diag_error(diag, vary_loc, STATUS_BAD_INPUT,
                          "is missing: which option to vary, such as seq=64K..1M:x2");
    grid->axis = arena_array(&grid->arena, count, sizeof *grid->axis);
    for (size_t i = 0; i < count; i++) {
        status = add_axis(grid, options, vary[i], diag);
        if (status != STATUS_OK)
            return status;
    }
    return check_values(grid, diag);
}

const char *sweep_grid_value(const struct sweep_grid *grid, size_t point, size_t axis)
{
    for (size_t a = grid->axis_count - 1; a > axis; a--)
        point /= grid->axis[a].count;
    return grid->axis[axis].value[point % grid->axis[axis].count];
}

/* Puts a number after the name of the cluster that words[0..count) give. */
static enum status add_to_cluster(char **words, size_t count, const char *key, const char *value,
                                  struct arena *arena, struct diag *diag)
{
    static const char option[] = "--cluster=";
    for (size_t i = 0; i < count; i++)
        if (strncmp(words[i], option, strlen(option)) == 0) {
            words[i] = arena_printf(arena, "%s%c%s=%s", words[i],
                                    strchr(words[i], ':') != NULL ? ',' : ':', key, value);
            return STATUS_OK;
        }
    return diag_error(diag, vary_loc, STATUS_BAD_INPUT,
                      "%s is a number of the cluster: give a --cluster that has it", key);
}

enum status sweep_grid_options(const struct sweep_grid *grid, size_t point, struct arena *arena,
                               struct options *options, struct diag *diag)
{
    size_t count = grid->base_count;
    char **words = arena_array(arena, count + grid->axis_count + 1, sizeof *words);
    for (size_t i = 0; i < count; i++)
        words[i] = grid->base[i];
    for (size_t a = 0; a < grid->axis_count; a++)
        if (!grid->axis[a].of_cluster)
            words[count++] =
                arena_printf(arena, "--%s=%s", grid->axis[a].key, sweep_grid_value(grid, point, a));
    for (size_t a = 0; a < grid->axis_count; a++)
        if (grid->axis[a].of_cluster) {
            enum status status = add_to_cluster(words, count, grid->axis[a].key,
                                                sweep_grid_value(grid, point, a), arena, diag);
            if (status != STATUS_OK)
                return status;
        }
    return options_parse(options, grid->sets, (int)count, words, diag);
}

/* ---- what a grid is called ---- */

void sweep_grid_print(struct text *out, const struct sweep_grid *grid)
{
    struct text word = {0};
    text_puts(out, "longhaul sweep");
    for (size_t i = 0; i < grid->base_count; i++)
        options_put_word(out, grid->base[i]);
    for (size_t a = 0; a < grid->axis_count; a++) {
        word.size = 0;
        text_printf(&word, "%s=%s", grid->axis[a].key, grid->axis[a].given);
        text_puts(out, " --vary");
        options_put_word(out, word.data);
    }
    text_release(&word);
}

/* FNV-1a, with the end of the bytes as one more. */
static void hash(uint64_t *sum, const char *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        *sum = (*sum ^ (unsigned char)data[i]) * 1099511628211u;
    *sum = (*sum ^ 0xff) * 1099511628211u;
}

/* The file that an option names, a cluster's without the numbers that follow its name. */
static void hash_file(uint64_t *sum, const char *option)
{
    struct text text = {0};
    struct stat info;
    char path[4096];
    snprintf(path, sizeof path, "%s", option);
    if (stat(path, &info) != 0)
        path[strcspn(path, ":")] = '\0';
    if (stat(path, &info) == 0 && S_ISREG(info.st_mode) &&
        text_read(&text, path, NULL) == STATUS_OK)
        hash(sum, text.data == NULL ? "" : text.data, text.size);
    text_release(&text);
}

uint64_t sweep_grid_identity(const struct sweep_grid *grid)
{
    uint64_t sum = 14695981039346656037u;
    hash(&sum, LONGHAUL_VERSION, strlen(LONGHAUL_VERSION));
    for (size_t i = 0; i < grid->base_count; i++) {
        const char *equals = strchr(grid->base[i], '=');
        hash(&sum, grid->base[i], strlen(grid->base[i]));
        if (equals != NULL)
            hash_file(&sum, equals + 1);
    }
    for (size_t a = 0; a < grid->axis_count; a++) {
        hash(&sum, grid->axis[a].key, strlen(grid->axis[a].key));
        for (size_t i = 0; i < grid->axis[a].count; i++) {
            hash(&sum, grid->axis[a].value[i], strlen(grid->axis[a].value[i]));
            hash_file(&sum, grid->axis[a].value[i]);
        }
    }
    return sum;
}

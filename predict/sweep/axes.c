#include "predict/sweep/axes.h"

#include "base/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct loc vary_loc = {.name = "--vary"};

void grid_axes_release(struct grid_axes *axes)
{
    for (size_t i = 0; i < axes->axis_count; i++)
        free((void *)axes->axis[i].value);
    free(axes->axis);
    arena_release(&axes->arena);
    *axes = (struct grid_axes){0};
}

static enum status add_value_to_axis(struct grid_axis *axis, const char *value, struct diag *diag)
{
    if (axis->value_count == GRID_POINTS_MAX)
        return diag_error(diag, vary_loc, STATUS_BAD_INPUT, "%s has more than %d values", axis->key,
                          GRID_POINTS_MAX);
    if (axis->value_count == axis->capacity) {
        axis->capacity = heap_next_capacity(axis->capacity, axis->value_count + 1);
        axis->value = heap_realloc((void *)axis->value, axis->capacity, sizeof *axis->value);
    }
    axis->value[axis->value_count++] = value;
    return STATUS_OK;
}

static enum status parse_axis_value_list(struct arena *arena, struct grid_axis *axis, bool lines,
                                         struct diag *diag)
{
    const char *at = axis->values_text, *separator = lines || strchr(at, ';') != NULL ? ";" : ",";
    for (;;) {
        size_t size = strcspn(at, separator);
        if (size == 0)
            return diag_error(diag, vary_loc, STATUS_BAD_INPUT, "%s has an empty value in '%s'",
                              axis->key, axis->values_text);
        char *value = arena_text(arena, at, size);
        for (size_t i = 0; i < axis->value_count; i++)
            if (strcmp(axis->value[i], value) == 0)
                return diag_error(diag, vary_loc, STATUS_BAD_INPUT, "%s has the value '%s' twice",
                                  axis->key, value);
        enum status status = add_value_to_axis(axis, value, diag);
        if (status != STATUS_OK || at[size] == '\0')
            return status;
        at += size + 1;
    }
}

/* ---- ranges ---- */

struct axis_range {
    double first, to, step;
    bool is_step_a_factor;
};

static bool parse_number(enum axis_value_type of, const char *text, size_t size, double *value)
{
    int64_t whole;
    if (of != AXIS_TYPE_TOKEN_COUNTS)
        return parse_double(text, size, value);
    if (units_parse_tokens(text, size, &whole, vary_loc, NULL) != STATUS_OK)
        return false;
    *value = (double)whole;
    return true;
}

static char *print_number(struct arena *arena, enum axis_value_type of, double value)
{
    struct text text = {0};
    if (of == AXIS_TYPE_TOKEN_COUNTS)
        units_put_tokens(&text, (int64_t)value);
    else
        text_put_double(&text, value);
    char *kept = arena_text(arena, text.data, text.size);
    text_release(&text);
    return kept;
}

static bool range_parse(struct axis_range *range, enum axis_value_type of, const char *given)
{
    const char *range_dots = strstr(given, ".."), *colon = strchr(given, ':');
    const char *end = colon != NULL ? colon : given + strlen(given);
    if (!parse_number(of, given, (size_t)(range_dots - given), &range->first) ||
        !parse_number(of, range_dots + 2, (size_t)(end - range_dots - 2), &range->to))
        return false;
    range->step = 1;
    if (colon == NULL)
        return of == AXIS_TYPE_WHOLE_NUMBERS;
    range->is_step_a_factor = colon[1] == 'x';
    const char *step = colon + 2;
    if (colon[1] == '\0' || (!range->is_step_a_factor && colon[1] != '+'))
        return false;
    return range->is_step_a_factor ? parse_double(step, strlen(step), &range->step)
                                   : parse_number(of, step, strlen(step), &range->step);
}

/* Parses a range "A..B:xF" or "A..B:+S". Messages quote axis->values_text, of which `text` may be a part. */
static enum status parse_range(struct arena *arena, struct grid_axis *axis, enum axis_value_type of,
                               const char *text, struct diag *diag)
{
    struct axis_range range = {0};
    if (!range_parse(&range, of, text))
        return diag_error(diag, vary_loc, STATUS_BAD_INPUT,
                          "%s: '%s' is no range: write A..B:xF (times F) or A..B:+S (plus S)%s",
                          axis->key, axis->values_text,
                          of == AXIS_TYPE_WHOLE_NUMBERS ? ", or A..B for every whole number" : "");
    if (!(range.first <= range.to) || !(range.step > (range.is_step_a_factor ? 1 : 0)) ||
        !(range.first > 0 || !range.is_step_a_factor) || !isfinite(range.to))
        return diag_error(diag, vary_loc, STATUS_BAD_INPUT,
                          "%s: the range '%s' does not grow: A..B needs A <= B and A > 0 with a "
                          "factor above 1, or A <= B with a summand above 0",
                          axis->key, axis->values_text);
    bool whole = of != AXIS_TYPE_NUMBERS;
    /* despite rounding errors, 0.1..0.3:+0.1 ends at 0.3 */
    double last = range.to * (1 + 1e-12);
    for (size_t i = 0;; i++) {
        double value = range.is_step_a_factor ? range.first * pow(range.step, (double)i)
                                              : range.first + range.step * (double)i;
        if (value > last)
            return STATUS_OK;
        if (whole && value != floor(value))
            return diag_error(diag, vary_loc, STATUS_BAD_INPUT,
                              "%s: a value of the range '%s' is %g, which is not whole", axis->key,
                              axis->values_text, value);
        enum status status = add_value_to_axis(axis, print_number(arena, of, value), diag);
        if (status != STATUS_OK)
            return status;
    }
}

/* ---- axes ---- */

/* Returns the unit of a value, the text after its number: "Gb/s" of "100Gb/s". */
static const char *unit_suffix(const char *value)
{
    return value + strspn(value, "0123456789.");
}

/* Parses the values of an axis over a number of the cluster file: a range or a list. The unit after the last value
 * holds for all values that have none. */
static enum status parse_cluster_values(struct arena *arena, struct grid_axis *axis,
                                        struct diag *diag)
{
    const char *given = axis->values_text, *range_dots = strstr(given, ".."), *unit = "";
    enum status status;
    if (range_dots != NULL) { /* a range, as "100..400Gb/s:x2" */
        const char *begin = unit_suffix(range_dots + 2);
        size_t size = strcspn(begin, ":");
        unit = arena_text(arena, begin, size);
        const char *range =
            arena_printf(arena, "%.*s%s", (int)(begin - given), given, begin + size);
        status =
            parse_range(arena, axis, unit[0] == '\0' ? AXIS_TYPE_WHOLE_NUMBERS : AXIS_TYPE_NUMBERS,
                        range, diag);
    } else {
        status = parse_axis_value_list(arena, axis, false, diag);
        if (status == STATUS_OK)
            unit = unit_suffix(axis->value[axis->value_count - 1]);
    }
    for (size_t i = 0; i < axis->value_count; i++)
        if (axis->value[i][0] != '\0' && unit_suffix(axis->value[i])[0] == '\0')
            axis->value[i] = arena_printf(arena, "%s%s", axis->value[i], unit);
    return status;
}

size_t grid_point_count(const struct grid_axes *axes)
{
    size_t points = 1;
    for (size_t i = 0; i < axes->axis_count; i++)
        points *= axes->axis[i].value_count > 0 ? axes->axis[i].value_count : 1;
    return points;
}

const char *grid_value_text(const struct grid_axes *axes, size_t point, size_t axis)
{
    for (size_t a = axes->axis_count - 1; a > axis; a--)
        point /= axes->axis[a].value_count;
    return axes->axis[axis].value[point % axes->axis[axis].value_count];
}

enum status grid_axes_add_option(struct grid_axes *axes, const char *key, const char *given,
                                 enum axis_value_type of, struct diag *diag)
{
    struct arena *arena = &axes->arena;
    axes->axis = heap_realloc(axes->axis, axes->axis_count + 1, sizeof *axes->axis);
    size_t points = grid_point_count(axes);
    struct grid_axis *axis = &axes->axis[axes->axis_count++];
    *axis = (struct grid_axis){.key = arena_text(arena, key, strlen(key)),
                               .values_text = arena_text(arena, given, strlen(given)),
                               .is_axis_of_cluster_numbers = of == AXIS_TYPE_CLUSTER_NUMBERS};
    enum status status;
    if (of == AXIS_TYPE_CLUSTER_NUMBERS)
        status = parse_cluster_values(arena, axis, diag);
    else if (of != AXIS_TYPE_TEXTS && of != AXIS_TYPE_TEXTS_WITH_COMMAS &&
             strstr(given, "..") != NULL)
        status = parse_range(arena, axis, of, axis->values_text, diag);
    else
        status = parse_axis_value_list(arena, axis, of == AXIS_TYPE_TEXTS_WITH_COMMAS, diag);
    if (status == STATUS_OK && axis->value_count > GRID_POINTS_MAX / points)
        return diag_error(diag, vary_loc, STATUS_BAD_INPUT, "the grid has more than %d points",
                          GRID_POINTS_MAX);
    return status;
}

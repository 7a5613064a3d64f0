/* Reads the parts of a device cost file that have one form in all families: numbers with their sources, and the
 * calibration of a family. */
#include "models/cost_reader.h"

#include <string.h>

const char *cost_copy_text(struct cost_reader reader, const char *text)
{
    return arena_text(reader.arena, text, strlen(text));
}

/* Returns the place of a node with a copy of the file's name, because a fact outlives the JSON. */
static struct loc copy_loc_into_arena(struct cost_reader reader, struct json_node node)
{
    struct loc at = json_loc(node);
    at.name = cost_copy_text(reader, at.name);
    return at;
}

static const char *example_of_unit(enum unit_kind unit)
{
    static const char *const example[UNIT_KIND_COUNT] = {
        [UNIT_BYTES] = "8 MB",   [UNIT_BYTES_PER_S] = "2039 GB/s",
        [UNIT_SECONDS] = "4 us", [UNIT_FLOP_PER_S] = "312 TFLOP/s",
        [UNIT_WATTS] = "700 W",  [UNIT_NONE] = "a plain number",
    };
    return example[unit];
}

/* Reads a number in the unit and range of param. It is a JSON number if the unit is NONE, else a text with its unit. */
static enum status read_quantity(struct json_node node, const struct cost_param *param,
                                 double *value, struct diag *diag)
{
    const char *text;
    if (param->unit == UNIT_NONE)
        return json_as_double(node, param->low, param->high, value, diag);
    if (json_is_number(node))
        return json_error(node, diag, "a bare number has no unit; write text such as \"%s\"",
                          example_of_unit(param->unit));
    enum status status = json_as_string(node, &text, diag);
    if (status == STATUS_OK)
        status = units_parse(text, strlen(text), param->unit, value, json_loc(node), diag);
    if (status == STATUS_OK && !(*value >= param->low && *value <= param->high))
        status = json_error(node, diag, "%s is outside %g..%g (in SI units)", text, param->low,
                            param->high);
    return status;
}

/* Reads "interval": [lowest, highest], which must enclose the value. */
static enum status read_lowest_and_highest_value(struct json_node node,
                                                 const struct cost_param *param,
                                                 struct cost_fact *fact, struct diag *diag)
{
    if (!json_is_array(node) || json_element_count(node) != 2)
        return json_error(node, diag, "expected [lowest, highest]");
    enum status status = read_quantity(json_element_at(node, 0), param, &fact->low, diag);
    if (status == STATUS_OK)
        status = read_quantity(json_element_at(node, 1), param, &fact->high, diag);
    if (status == STATUS_OK && !(fact->low <= fact->value && fact->value <= fact->high))
        status = json_error(node, diag,
                            "does not hold the value: expected lowest <= value <= "
                            "highest");
    return status;
}

enum status cost_read_number(struct cost_reader reader, struct json_node node, const char *name,
                             const struct cost_param *param, double *value)
{
    static const char *const known[] = {"value", "source", "how", "interval", "spread"};
    struct diag *diag = reader.diag;
    if (!json_is_object(node))
        return json_error(node, diag,
                          "expected {\"value\": ..., \"source\": \"...\"}: every number says where "
                          "it comes from");
    enum status status = json_reject_unknown_keys(node, known, ARRAY_LEN(known), diag);
    if (status != STATUS_OK)
        return status;
    const char *source;
    status = json_get_string(node, "source", &source, diag);
    if (status != STATUS_OK)
        return status;
    if (!source[0])
        return json_error(json_find_member(node, "source"), diag, "must not be empty");
    struct json_node quantity = json_find_member(node, "value"),
                     interval = json_find_member(node, "interval");
    if (!quantity.value)
        return json_error(node, diag, "has no \"value\"");
    status = read_quantity(quantity, param, value, diag);
    struct cost_fact fact = {.value = *value, .unit = param->unit, .meaning = param->meaning};
    if (status == STATUS_OK && interval.value)
        status = read_lowest_and_highest_value(interval, param, &fact, diag);
    if (status == STATUS_OK && json_find_member(node, "spread").value)
        status = json_get_double(node, "spread", 0, 10, &fact.spread, diag);
    if (status == STATUS_OK)
        status = number_origin_read_json(node, &fact.origin, diag);
    if (status != STATUS_OK)
        return status;
    fact.name = cost_copy_text(reader, name);
    fact.source = cost_copy_text(reader, source);
    fact.at = copy_loc_into_arena(reader, node);
    cost_record_fact(reader.cost, reader.arena, &fact);
    return STATUS_OK;
}

static enum status read_sizes(struct cost_reader reader, struct json_node sizes,
                              struct cost_calibrated_range *calibration)
{
    enum status status =
        json_reject_unknown_keys(sizes, cost_size_names, COST_SIZE_COUNT, reader.diag);
    for (int i = 0; status == STATUS_OK && i < COST_SIZE_COUNT; i++) {
        struct json_node range = json_find_member(sizes, cost_size_names[i]);
        if (!range.value)
            continue;
        if (!json_is_array(range) || json_element_count(range) != 2)
            return json_error(range, reader.diag, "expected [lowest, highest]");
        status = json_as_double(json_element_at(range, 0), 0, 1e18, &calibration->smallest_size[i],
                                reader.diag);
        if (status == STATUS_OK)
            status = json_as_double(json_element_at(range, 1), calibration->smallest_size[i], 1e18,
                                    &calibration->largest_size[i], reader.diag);
    }
    return status;
}

enum status cost_read_calibrated_range(struct cost_reader reader, struct json_node object,
                                       struct cost_calibrated_range *calibration)
{
    static const char *const known[] = {"residual", "source", "sizes"};
    struct diag *diag = reader.diag;
    struct json_node calibrated = json_find_member(object, "calibrated");
    struct json_node estimated = json_find_member(object, "estimated");
    if (!calibrated.value && !estimated.value)
        return STATUS_OK;
    if (calibrated.value && estimated.value)
        return json_error(estimated, diag, "stands beside \"calibrated\"; give one of them");

    struct json_node node = calibrated.value ? calibrated : estimated;
    if (!json_is_object(node))
        return json_error(node, diag, "expected an object");
    *calibration = (struct cost_calibrated_range){.is_calibrated = calibrated.value != NULL};
    const char *source;
    enum status status = json_reject_unknown_keys(
        node, known, calibration->is_calibrated ? ARRAY_LEN(known) : 2, diag);
    if (status == STATUS_OK)
        status = json_get_double(node, "residual", 0, 10, &calibration->rms_relative_error, diag);
    if (status == STATUS_OK)
        status = json_get_string(node, "source", &source, diag);
    if (status != STATUS_OK)
        return status;
    calibration->source = cost_copy_text(reader, source);
    if (!calibration->is_calibrated)
        return STATUS_OK;
    struct json_node sizes;
    status = json_get_object(node, "sizes", &sizes, diag);
    return status == STATUS_OK ? read_sizes(reader, sizes, calibration) : status;
}

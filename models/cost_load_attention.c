/* Reads the attention of a device cost file. */
#include "models/cost_reader.h"

#include <string.h>

/* Reads "rates": {"128": {...}, ...}, the flop/s by head dim. A rate replaces the one that a base has for the same head
 * dim; else it is inserted. */
static enum status read_attention_rates(struct cost_reader reader, struct json_node rates,
                                        const char *prefix, struct cost_attention *attention)
{
    static const struct cost_param rate = {
        .unit = UNIT_FLOP_PER_S,
        .low = 1,
        .high = 1e18,
        .meaning = "rate of long tiles at the highest clock, padded head dim"};
    for (size_t i = 0; i < json_member_count(rates); i++) {
        const char *key;
        struct json_node node = json_member_at(rates, i, &key);
        int64_t dim;
        double value;
        if (!parse_i64(key, strlen(key), &dim) || dim < 1 || dim > 1024)
            return json_error(node, reader.diag, "'%s' is no head dim in 1..1024", key);
        const char *name = arena_printf(reader.arena, "%s.rates.%s", prefix, key);
        enum status status = cost_read_number(reader, node, name, &rate, &value);
        if (status != STATUS_OK)
            return status;
        size_t at = 0;
        while (at < attention->dim_count && attention->head_dim[at] < dim)
            at++;
        if (at == attention->dim_count || attention->head_dim[at] != dim) {
            if (attention->dim_count == COST_MAX_DIMS)
                return json_error(node, reader.diag, "more than %d head dims", COST_MAX_DIMS);
            size_t behind = attention->dim_count++ - at;
            memmove(&attention->head_dim[at + 1], &attention->head_dim[at],
                    behind * sizeof(int64_t));
            memmove(&attention->flop_per_s[at + 1], &attention->flop_per_s[at],
                    behind * sizeof(double));
        }
        attention->head_dim[at] = dim;
        attention->flop_per_s[at] = value;
    }
    return STATUS_OK;
}

const struct cost_param cost_pass_params[COST_PASS_PARAMS] = {
    {.field = "tile",
     .unit = UNIT_NONE,
     .low = 1,
     .high = 4096,
     .meaning = "rows of one thread block",
     .offset = offsetof(struct cost_attention, tile_rows)},
    {.field = "step",
     .unit = UNIT_NONE,
     .low = 1,
     .high = 4096,
     .meaning = "columns of one step of its loop",
     .offset = offsetof(struct cost_attention, step_columns)},
    {.field = "ramp_s",
     .unit = UNIT_SECONDS,
     .low = 0,
     .high = 1e-3,
     .meaning = "prologue and epilogue of one block",
     .offset = offsetof(struct cost_attention, ramp_s)},
    {.field = "unequal_share",
     .unit = UNIT_NONE,
     .low = 0.1,
     .high = 2,
     .meaning = "share of the rate with heads of V of another width than Q and K",
     .offset = offsetof(struct cost_attention, unequal_dims_rate_share)},
};

static enum status read_attention_pass(struct cost_reader reader, struct json_node object,
                                       const char *prefix, struct cost_attention *attention)
{
    static const char *const known[] = {"tile",  "step",       "ramp_s",   "unequal_share",
                                        "rates", "calibrated", "estimated"};
    enum status status = json_reject_unknown_keys(object, known, ARRAY_LEN(known), reader.diag);
    for (size_t i = 0; status == STATUS_OK && i < COST_PASS_PARAMS; i++) {
        struct json_node node = json_find_member(object, cost_pass_params[i].field);
        if (!node.value)
            continue;
        const char *name = arena_printf(reader.arena, "%s.%s", prefix, cost_pass_params[i].field);
        double *value = (double *)((char *)attention + cost_pass_params[i].offset);
        status = cost_read_number(reader, node, name, &cost_pass_params[i], value);
    }
    struct json_node rates;
    if (status == STATUS_OK && json_find_member(object, "rates").value) {
        status = json_get_object(object, "rates", &rates, reader.diag);
        if (status == STATUS_OK)
            status = read_attention_rates(reader, rates, prefix, attention);
    }
    if (status == STATUS_OK)
        status = cost_read_calibrated_range(reader, object, &attention->calibration);
    attention->is_family_present = true;
    return status;
}

static enum status read_impl(struct cost_reader reader, struct json_node object,
                             enum attention_impl impl)
{
    static const char *const known[] = {"merge_bytes", "power", "forward", "backward"};
    static const struct cost_param merge = {
        .unit = UNIT_NONE,
        .low = 1,
        .high = 1000,
        .meaning = "bytes moved per element by merging a tile's output"};
    static const struct cost_param power = {
        .unit = UNIT_WATTS,
        .low = 0,
        .high = 1e5,
        .meaning = "power that the kernels would draw at the highest clock"};
    const char *impl_name = attention_impl_name(impl);
    if (!json_is_object(object))
        return json_error(object, reader.diag, "expected an object");
    enum status status = json_reject_unknown_keys(object, known, ARRAY_LEN(known), reader.diag);
    struct json_node node = json_find_member(object, "merge_bytes");
    if (status == STATUS_OK && node.value)
        status = cost_read_number(reader, node,
                                  arena_printf(reader.arena, "attention.%s.merge_bytes", impl_name),
                                  &merge, &reader.cost->merge_bytes_per_element[impl]);
    node = json_find_member(object, "power");
    if (status == STATUS_OK && node.value)
        status = cost_read_number(reader, node,
                                  arena_printf(reader.arena, "attention.%s.power", impl_name),
                                  &power, &reader.cost->watts_by_attention_impl[impl]);
    for (int pass = 0; status == STATUS_OK && pass < ATTENTION_PASS_COUNT; pass++) {
        if (!json_find_member(object, cost_pass_names[pass]).value)
            continue;
        status = json_get_object(object, cost_pass_names[pass], &node, reader.diag);
        if (status == STATUS_OK)
            status = read_attention_pass(
                reader, node,
                arena_printf(reader.arena, "attention.%s.%s", impl_name, cost_pass_names[pass]),
                &reader.cost->attention[impl][pass]);
    }
    return status;
}

enum status cost_read_attention(struct cost_reader reader, struct json_node object)
{
    const char *names[ATTENTION_IMPL_COUNT];
    for (int i = 0; i < ATTENTION_IMPL_COUNT; i++)
        names[i] = attention_impl_name((enum attention_impl)i);
    enum status status = json_reject_unknown_keys(object, names, ATTENTION_IMPL_COUNT, reader.diag);
    for (int i = 0; status == STATUS_OK && i < ATTENTION_IMPL_COUNT; i++) {
        struct json_node node = json_find_member(object, names[i]);
        if (node.value)
            status = read_impl(reader, node, (enum attention_impl)i);
    }
    return status;
}

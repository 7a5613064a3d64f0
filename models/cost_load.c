/* Reading device cost files. docs/costs.md, "Device files", has the schema. */
#include "base/json.h"
#include "models/cost_parts.h"
#include "models/presets.h"

#include <string.h>

enum { BASE_DEPTH_MAX = 4, SCHEMA = 1, KEYS_MAX = 32 };

/* What every step of reading one file needs. */
struct reader {
    struct device_cost *cost;
    struct arena *arena;
    struct diag *diag;
    int depth;
};

static enum status read_document(struct reader reader, const char *name, const char *text,
                                 size_t size);

static const char *keep(struct reader reader, const char *text)
{
    return arena_text(reader.arena, text, strlen(text));
}

/* Does the place keep a file's name when the file's text is gone? json_loc() borrows it. */
static struct loc keep_loc(struct reader reader, struct json_node node)
{
    struct loc at = json_loc(node);
    at.name = keep(reader, at.name);
    return at;
}

static const char *unit_example(enum unit_kind unit)
{
    static const char *const example[UNIT_KIND_COUNT] = {
        [UNIT_BYTES] = "8 MB",          [UNIT_BYTES_PER_S] = "2039 GB/s",
        [UNIT_SECONDS] = "4 us",        [UNIT_FLOP_PER_S] = "312 TFLOP/s",
        [UNIT_NONE] = "a plain number",
    };
    return example[unit];
}

/* {"value": ..., "source": "..."} in [low, high], and the fact of that name. */
static enum status read_number(struct reader reader, struct json_node node, const char *name,
                               const struct cost_param *param, double *value)
{
    static const char *const known[] = {"value", "source"};
    struct diag *diag = reader.diag;
    if (!json_is_object(node))
        return json_error(node, diag,
                          "expected {\"value\": ..., \"source\": \"...\"}: every number says where "
                          "it comes from");
    enum status status = json_only(node, known, ARRAY_LEN(known), diag);
    if (status != STATUS_OK)
        return status;
    const char *source;
    status = json_get_string(node, "source", &source, diag);
    if (status != STATUS_OK)
        return status;
    if (!source[0])
        return json_error(json_find(node, "source"), diag, "must not be empty");

    if (param->unit == UNIT_NONE) {
        status = json_get_double(node, "value", param->low, param->high, value, diag);
    } else {
        struct json_node text = json_find(node, "value");
        const char *string;
        if (json_is_number(text))
            return json_error(text, diag, "a bare number has no unit; write text such as \"%s\"",
                              unit_example(param->unit));
        status = json_get_string(node, "value", &string, diag);
        if (status == STATUS_OK)
            status = units_parse(string, strlen(string), param->unit, value, json_loc(text), diag);
        if (status == STATUS_OK && !(*value >= param->low && *value <= param->high))
            status = json_error(text, diag, "%s is outside %g..%g (in SI units)", string,
                                param->low, param->high);
    }
    if (status != STATUS_OK)
        return status;
    struct cost_fact fact = {.name = keep(reader, name),
                             .value = *value,
                             .unit = param->unit,
                             .meaning = param->meaning,
                             .source = keep(reader, source),
                             .at = keep_loc(reader, node)};
    cost_fact_set(reader.cost, reader.arena, &fact);
    return STATUS_OK;
}

static enum status read_sizes(struct reader reader, struct json_node sizes,
                              struct cost_calibration *calibration)
{
    enum status status = json_only(sizes, cost_size_names, COST_SIZE_COUNT, reader.diag);
    for (int i = 0; status == STATUS_OK && i < COST_SIZE_COUNT; i++) {
        struct json_node range = json_find(sizes, cost_size_names[i]);
        if (!range.value)
            continue;
        if (!json_is_array(range) || json_count(range) != 2)
            return json_error(range, reader.diag, "expected [lowest, highest]");
        status = json_as_double(json_at(range, 0), 0, 1e18, &calibration->low[i], reader.diag);
        if (status == STATUS_OK)
            status = json_as_double(json_at(range, 1), calibration->low[i], 1e18,
                                    &calibration->high[i], reader.diag);
    }
    return status;
}

/* "calibrated": {"residual": r, "source": s, "sizes": {...}}, or "estimated" without sizes. */
static enum status read_calibration(struct reader reader, struct json_node object,
                                    struct cost_calibration *calibration)
{
    static const char *const known[] = {"residual", "source", "sizes"};
    struct diag *diag = reader.diag;
    struct json_node calibrated = json_find(object, "calibrated");
    struct json_node estimated = json_find(object, "estimated");
    if (!calibrated.value && !estimated.value)
        return STATUS_OK;
    if (calibrated.value && estimated.value)
        return json_error(estimated, diag, "stands beside \"calibrated\"; give one of them");

    struct json_node node = calibrated.value ? calibrated : estimated;
    if (!json_is_object(node))
        return json_error(node, diag, "expected an object");
    *calibration = (struct cost_calibration){.known = calibrated.value != NULL};
    const char *source;
    enum status status = json_only(node, known, calibration->known ? ARRAY_LEN(known) : 2, diag);
    if (status == STATUS_OK)
        status = json_get_double(node, "residual", 0, 10, &calibration->residual, diag);
    if (status == STATUS_OK)
        status = json_get_string(node, "source", &source, diag);
    if (status != STATUS_OK)
        return status;
    calibration->source = keep(reader, source);
    if (!calibration->known)
        return STATUS_OK;
    struct json_node sizes;
    status = json_get_object(node, "sizes", &sizes, diag);
    return status == STATUS_OK ? read_sizes(reader, sizes, calibration) : status;
}

static enum status read_family(struct reader reader, struct json_node object,
                               enum cost_family family)
{
    const char *known[KEYS_MAX] = {"calibrated", "estimated"};
    size_t count = 2;
    for (size_t i = 0; i < cost_param_count; i++) {
        if (cost_params[i].number == family)
            known[count++] = cost_params[i].field;
    }
    enum status status = json_only(object, known, count, reader.diag);
    for (size_t i = 0; status == STATUS_OK && i < cost_param_count; i++) {
        const struct cost_param *param = &cost_params[i];
        struct json_node node = {0};
        if (param->number == family)
            node = json_find(object, param->field);
        if (!node.value)
            continue;
        const char *name = arena_printf(reader.arena, "%s.%s", param->family, param->field);
        double *value = (double *)((char *)reader.cost + param->offset);
        status = read_number(reader, node, name, param, value);
    }
    if (status == STATUS_OK)
        status = read_calibration(reader, object, &reader.cost->calibration[family]);
    return status;
}

/* "rates": {"128": {...}, ...}: replaces the row of a head dim or puts it in its place. */
static enum status read_rates(struct reader reader, struct json_node rates, const char *prefix,
                              struct cost_attention *attention)
{
    static const struct cost_param rate = {.unit = UNIT_FLOP_PER_S,
                                           .low = 1,
                                           .high = 1e18,
                                           .meaning =
                                               "sustained rate of long tiles, padded head dim"};
    for (size_t i = 0; i < json_members(rates); i++) {
        const char *key;
        struct json_node node = json_member(rates, i, &key);
        int64_t dim;
        double value;
        if (!parse_i64(key, strlen(key), &dim) || dim < 1 || dim > 1024)
            return json_error(node, reader.diag, "'%s' is no head dim in 1..1024", key);
        const char *name = arena_printf(reader.arena, "%s.rates.%s", prefix, key);
        enum status status = read_number(reader, node, name, &rate, &value);
        if (status != STATUS_OK)
            return status;
        size_t at = 0;
        while (at < attention->dims && attention->dim[at] < dim)
            at++;
        if (at == attention->dims || attention->dim[at] != dim) {
            if (attention->dims == COST_MAX_DIMS)
                return json_error(node, reader.diag, "more than %d head dims", COST_MAX_DIMS);
            size_t behind = attention->dims++ - at;
            memmove(&attention->dim[at + 1], &attention->dim[at], behind * sizeof(int64_t));
            memmove(&attention->flop_per_s[at + 1], &attention->flop_per_s[at],
                    behind * sizeof(double));
        }
        attention->dim[at] = dim;
        attention->flop_per_s[at] = value;
    }
    return STATUS_OK;
}

static const struct cost_param pass_params[] = {
    {.field = "tile",
     .unit = UNIT_NONE,
     .low = 1,
     .high = 4096,
     .meaning = "rows of one thread block",
     .offset = offsetof(struct cost_attention, tile)  },
    {.field = "step",
     .unit = UNIT_NONE,
     .low = 1,
     .high = 4096,
     .meaning = "columns of one step of its loop",
     .offset = offsetof(struct cost_attention, step)  },
    {.field = "ramp_s",
     .unit = UNIT_SECONDS,
     .low = 0,
     .high = 1e-3,
     .meaning = "prologue and epilogue of one block",
     .offset = offsetof(struct cost_attention, ramp_s)},
};

static enum status read_pass(struct reader reader, struct json_node object, const char *prefix,
                             struct cost_attention *attention)
{
    static const char *const known[] = {"tile",  "step",       "ramp_s",
                                        "rates", "calibrated", "estimated"};
    enum status status = json_only(object, known, ARRAY_LEN(known), reader.diag);
    for (size_t i = 0; status == STATUS_OK && i < ARRAY_LEN(pass_params); i++) {
        struct json_node node = json_find(object, pass_params[i].field);
        if (!node.value)
            continue;
        const char *name = arena_printf(reader.arena, "%s.%s", prefix, pass_params[i].field);
        double *value = (double *)((char *)attention + pass_params[i].offset);
        status = read_number(reader, node, name, &pass_params[i], value);
    }
    struct json_node rates;
    if (status == STATUS_OK && json_find(object, "rates").value) {
        status = json_get_object(object, "rates", &rates, reader.diag);
        if (status == STATUS_OK)
            status = read_rates(reader, rates, prefix, attention);
    }
    if (status == STATUS_OK)
        status = read_calibration(reader, object, &attention->calibration);
    attention->present = true;
    return status;
}

static enum status read_impl(struct reader reader, struct json_node object,
                             enum attention_impl impl)
{
    static const char *const known[] = {"merge_bytes", "forward", "backward"};
    static const struct cost_param merge = {
        .unit = UNIT_NONE,
        .low = 1,
        .high = 1000,
        .meaning = "bytes moved per element by merging a tile's output"};
    const char *impl_name = attention_impl_name(impl);
    if (!json_is_object(object))
        return json_error(object, reader.diag, "expected an object");
    enum status status = json_only(object, known, ARRAY_LEN(known), reader.diag);
    struct json_node node = json_find(object, "merge_bytes");
    if (status == STATUS_OK && node.value)
        status = read_number(reader, node,
                             arena_printf(reader.arena, "attention.%s.merge_bytes", impl_name),
                             &merge, &reader.cost->merge_bytes[impl]);
    for (int pass = 0; status == STATUS_OK && pass < ATTENTION_PASS_COUNT; pass++) {
        if (!json_find(object, cost_pass_names[pass]).value)
            continue;
        status = json_get_object(object, cost_pass_names[pass], &node, reader.diag);
        if (status == STATUS_OK)
            status = read_pass(
                reader, node,
                arena_printf(reader.arena, "attention.%s.%s", impl_name, cost_pass_names[pass]),
                &reader.cost->attention[impl][pass]);
    }
    return status;
}

static enum status read_attention(struct reader reader, struct json_node object)
{
    const char *names[ATTENTION_IMPL_COUNT];
    for (int i = 0; i < ATTENTION_IMPL_COUNT; i++)
        names[i] = attention_impl_name((enum attention_impl)i);
    enum status status = json_only(object, names, ATTENTION_IMPL_COUNT, reader.diag);
    for (int i = 0; status == STATUS_OK && i < ATTENTION_IMPL_COUNT; i++) {
        struct json_node node = json_find(object, names[i]);
        if (node.value)
            status = read_impl(reader, node, (enum attention_impl)i);
    }
    return status;
}

static enum status read_base(struct reader reader, struct json_node root)
{
    struct json_node node = json_find(root, "base");
    const char *base, *path;
    enum status status = json_as_string(node, &base, reader.diag);
    if (status != STATUS_OK)
        return status;
    if (reader.depth >= BASE_DEPTH_MAX)
        return json_error(node, reader.diag,
                          "bases nest more than %d deep; does '%s' build on itself?",
                          BASE_DEPTH_MAX, base);
    status =
        presets_find("devices", "device", base, json_loc(node), &path, reader.arena, reader.diag);
    if (status != STATUS_OK)
        return status;
    struct text text = {0};
    status = text_read(&text, path, reader.diag);
    reader.depth++;
    if (status == STATUS_OK)
        status = read_document(reader, path, text.data ? text.data : "", text.size);
    text_release(&text);
    return status;
}

/* Every number must be there once the file and its bases are read. */
static enum status check_complete(struct reader reader, struct json_node root)
{
    const struct device_cost *cost = reader.cost;
    for (size_t i = 0; i < cost_param_count; i++) {
        const struct cost_param *param = &cost_params[i];
        bool found =
            cost->ideal && param->offset != offsetof(struct device_cost, device_peak_flop_per_s);
        const char *name = arena_printf(reader.arena, "%s.%s", param->family, param->field);
        for (size_t k = 0; !found && k < cost->facts.count; k++)
            found = strcmp(cost->facts.row[k].name, name) == 0;
        if (!found)
            return json_error(root, reader.diag, "has no %s (%s)", name, param->meaning);
    }
    if (cost->ideal)
        return STATUS_OK;
    for (int i = COST_MATMUL; i < COST_FAMILY_COUNT; i++) {
        if (!cost->calibration[i].source)
            return json_error(root, reader.diag, "%s has neither \"calibrated\" nor \"estimated\"",
                              cost_family_names[i]);
    }
    for (int impl = 0; impl < ATTENTION_IMPL_COUNT; impl++) {
        for (int pass = 0; pass < ATTENTION_PASS_COUNT; pass++) {
            const struct cost_attention *attention = &cost->attention[impl][pass];
            const struct cost_attention *other = &cost->attention[impl][!pass];
            const char *missing = NULL;
            if (attention->present != other->present)
                missing = attention->present ? cost_pass_names[!pass] : cost_pass_names[pass];
            else if (!attention->present)
                continue;
            else if (attention->tile == 0)
                missing = "tile";
            else if (attention->step == 0)
                missing = "step";
            else if (attention->dims == 0)
                missing = "rates";
            else if (!attention->calibration.source)
                missing = "calibrated (or estimated)";
            else if (cost->merge_bytes[impl] == 0)
                missing = "merge_bytes";
            if (missing)
                return json_error(root, reader.diag, "attention.%s has no %s",
                                  attention_impl_name((enum attention_impl)impl), missing);
        }
    }
    return STATUS_OK;
}

static enum status read_root(struct reader reader, struct json_node root)
{
    static const char *const known[] = {"longhaul_device_cost",
                                        "name",
                                        "note",
                                        "base",
                                        "ideal",
                                        "device",
                                        "matmul",
                                        "memory",
                                        "host",
                                        "cpu",
                                        "attention"};
    struct device_cost *cost = reader.cost;
    if (!json_is_object(root))
        return json_error(root, reader.diag, "expected an object");
    enum status status = json_only(root, known, ARRAY_LEN(known), reader.diag);
    int64_t schema;
    if (status == STATUS_OK)
        status = json_get_i64(root, "longhaul_device_cost", SCHEMA, SCHEMA, &schema, reader.diag);
    if (status == STATUS_OK && json_find(root, "base").value)
        status = read_base(reader, root);
    const char *text;
    if (status == STATUS_OK)
        status = json_get_string(root, "name", &text, reader.diag);
    if (status == STATUS_OK)
        cost->name = keep(reader, text);
    if (status == STATUS_OK && json_find(root, "note").value) {
        status = json_get_string(root, "note", &text, reader.diag);
        if (status == STATUS_OK)
            cost->note = keep(reader, text);
    }
    if (status == STATUS_OK && json_find(root, "ideal").value)
        status = json_get_bool(root, "ideal", &cost->ideal, reader.diag);
    struct json_node node;
    for (int i = 0; status == STATUS_OK && i < COST_FAMILY_COUNT; i++) {
        if (!json_find(root, cost_family_names[i]).value)
            continue;
        status = json_get_object(root, cost_family_names[i], &node, reader.diag);
        if (status == STATUS_OK)
            status = read_family(reader, node, (enum cost_family)i);
    }
    if (status == STATUS_OK && json_find(root, "attention").value) {
        status = json_get_object(root, "attention", &node, reader.diag);
        if (status == STATUS_OK)
            status = read_attention(reader, node);
    }
    if (status == STATUS_OK && reader.depth == 0)
        status = check_complete(reader, root);
    return status;
}

static enum status read_document(struct reader reader, const char *name, const char *text,
                                 size_t size)
{
    struct json json = {0};
    enum status status = json_parse(&json, name, text, size, reader.diag);
    if (status == STATUS_OK)
        status = read_root(reader, json_root(&json));
    json_release(&json);
    return status;
}

enum status cost_parse(struct device_cost *cost, struct arena *arena, const char *name,
                       const char *text, size_t size, struct diag *diag)
{
    *cost = (struct device_cost){0};
    struct reader reader = {.cost = cost, .arena = arena, .diag = diag};
    return read_document(reader, name, text, size);
}

enum status cost_load(struct device_cost *cost, struct arena *arena, const char *what,
                      struct diag *diag)
{
    *cost = (struct device_cost){0};
    size_t size = strlen(what);
    const char *path = what;
    enum status status = STATUS_OK;
    if (size < 5 || strcmp(what + size - 5, ".json") != 0)
        status = presets_find("devices", "device", what, (struct loc){0}, &path, arena, diag);
    if (status != STATUS_OK)
        return status;
    struct text text = {0};
    status = text_read(&text, path, diag);
    if (status == STATUS_OK)
        status = cost_parse(cost, arena, path, text.data ? text.data : "", text.size, diag);
    text_release(&text);
    return status;
}

enum status cost_presets(const char *const **names, size_t *count, struct arena *arena,
                         struct diag *diag)
{
    return presets_list("devices", names, count, arena, diag);
}

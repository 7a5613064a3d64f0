/* Reads device cost files. docs/costs.md, "Device files", has the schema. */
#include "models/cost_points.h"
#include "models/cost_reader.h"
#include "models/presets.h"

#include <assert.h>
#include <string.h>

enum { BASE_DEPTH_MAX = 4, SCHEMA = 1, KEYS_MAX = 32 };

/* Reads memory.kinds: {"gelu": {...}, ...}, the bandwidth shares of single kinds of work. */
static enum status read_kind_bandwidth_shares(struct cost_reader reader, struct json_node kinds)
{
    static const struct cost_param share = {
        .unit = UNIT_NONE,
        .low = 1e-4,
        .high = 1,
        .meaning = "share of the memory bandwidth that this kind reaches"};
    for (size_t i = 0; i < json_member_count(kinds); i++) {
        const char *key;
        struct json_node node = json_member_at(kinds, i, &key);
        enum work_kind kind;
        if (!work_kind_find(key, strlen(key), &kind) || cost_memory_class_name(kind) == NULL)
            return json_error(node, reader.diag, "'%s' is no kind of work that memory limits", key);
        const char *name = arena_printf(reader.arena, "memory.kinds.%s", key);
        enum status status =
            cost_read_number(reader, node, name, &share, &reader.cost->kind_bandwidth_share[kind]);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status read_document(struct cost_reader reader, const char *name, const char *text,
                                 size_t size);

static enum status read_family(struct cost_reader reader, struct json_node object,
                               enum cost_family family)
{
    const char *known[KEYS_MAX] = {"calibrated", "estimated"};
    size_t count = 2;
    struct json_node kinds;
    if (family == COST_MEMORY)
        known[count++] = "kinds";
    for (size_t i = 0; i < cost_param_count; i++) {
        if (cost_params[i].cost_family_of_param != family)
            continue;
        assert(count < KEYS_MAX);
        known[count++] = cost_params[i].field;
    }
    enum status status = json_reject_unknown_keys(object, known, count, reader.diag);
    for (size_t i = 0; status == STATUS_OK && i < cost_param_count; i++) {
        const struct cost_param *param = &cost_params[i];
        struct json_node node = {0};
        if (param->cost_family_of_param == family)
            node = json_find_member(object, param->field);
        if (!node.value)
            continue;
        const char *name = arena_printf(reader.arena, "%s.%s", param->family, param->field);
        double *value = (double *)((char *)reader.cost + param->offset);
        status = cost_read_number(reader, node, name, param, value);
    }
    if (status == STATUS_OK && family == COST_MEMORY && json_find_member(object, "kinds").value) {
        status = json_get_object(object, "kinds", &kinds, reader.diag);
        if (status == STATUS_OK)
            status = read_kind_bandwidth_shares(reader, kinds);
    }
    if (status == STATUS_OK)
        status = cost_read_calibrated_range(reader, object, &reader.cost->calibration[family]);
    return status;
}

static enum status read_base(struct cost_reader reader, struct json_node root)
{
    struct json_node node = json_find_member(root, "base");
    const char *base, *path;
    enum status status = json_as_string(node, &base, reader.diag);
    if (status != STATUS_OK)
        return status;
    if (reader.file_depth_in_base_chain >= BASE_DEPTH_MAX)
        return json_error(node, reader.diag,
                          "bases nest more than %d deep; does '%s' build on itself?",
                          BASE_DEPTH_MAX, base);
    status = presets_find_path("devices", "device", base, json_loc(node), &path, reader.arena,
                               reader.diag);
    if (status != STATUS_OK)
        return status;
    struct text text = {0};
    status = text_read_with_byte_limit(&text, path, TEXT_CONFIGURATION_BYTES_MAX, reader.diag);
    reader.file_depth_in_base_chain++;
    if (status == STATUS_OK)
        status = read_document(reader, path, text.data ? text.data : "", text.size);
    text_release(&text);
    return status;
}

/* Fails unless the file and its bases together have every number. An ideal device needs only its peak flop/s; products
 * of 8 and 4 bits, host.product_s, and implementations of attention may be missing. */
static enum status check_complete(struct cost_reader reader, struct json_node root)
{
    const struct device_cost *cost = reader.cost;
    for (size_t i = 0; i < cost_param_count; i++) {
        const struct cost_param *param = &cost_params[i];
        bool found =
            cost->is_ideal && param->offset != offsetof(struct device_cost, device_peak_flop_per_s);
        if (param->unit == UNIT_FLOP_PER_S && param->low <= 0)
            found = true; /* these products may be missing: not every device has them */
        if (param->offset == offsetof(struct device_cost, host_product_s))
            found = true; /* if it is missing, it is part of host.op_s */
        const char *name = arena_printf(reader.arena, "%s.%s", param->family, param->field);
        for (size_t k = 0; !found && k < cost->facts.count; k++)
            found = strcmp(cost->facts.row[k].name, name) == 0;
        if (!found)
            return json_error(root, reader.diag, "has no %s (%s)", name, param->meaning);
    }
    if (cost->is_ideal)
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
            if (attention->is_family_present != other->is_family_present)
                missing =
                    attention->is_family_present ? cost_pass_names[!pass] : cost_pass_names[pass];
            else if (!attention->is_family_present)
                continue;
            else if (attention->tile_rows == 0)
                missing = "tile";
            else if (attention->step_columns == 0)
                missing = "step";
            else if (attention->dim_count == 0)
                missing = "rates";
            else if (!attention->calibration.source)
                missing = "calibrated (or estimated)";
            else if (cost->merge_bytes_per_element[impl] == 0)
                missing = "merge_bytes";
            if (missing)
                return json_error(root, reader.diag, "attention.%s has no %s",
                                  attention_impl_name((enum attention_impl)impl), missing);
        }
    }
    return STATUS_OK;
}

static enum status read_root(struct cost_reader reader, struct json_node root)
{
    static const char *const known[] = {"longhaul_device_cost",
                                        "name",
                                        "note",
                                        "base",
                                        "ideal",
                                        "points",
                                        "device",
                                        "matmul",
                                        "memory",
                                        "host",
                                        "cpu",
                                        "attention"};
    struct device_cost *cost = reader.cost;
    if (!json_is_object(root))
        return json_error(root, reader.diag, "expected an object");
    enum status status = json_reject_unknown_keys(root, known, ARRAY_LEN(known), reader.diag);
    int64_t schema;
    if (status == STATUS_OK)
        status = json_get_i64(root, "longhaul_device_cost", SCHEMA, SCHEMA, &schema, reader.diag);
    if (status == STATUS_OK && json_find_member(root, "base").value)
        status = read_base(reader, root);
    const char *text;
    if (status == STATUS_OK)
        status = json_get_string(root, "name", &text, reader.diag);
    if (status == STATUS_OK)
        cost->name = cost_copy_text(reader, text);
    if (status == STATUS_OK && json_find_member(root, "note").value) {
        status = json_get_string(root, "note", &text, reader.diag);
        if (status == STATUS_OK)
            cost->note = cost_copy_text(reader, text);
    }
    if (status == STATUS_OK && json_find_member(root, "ideal").value)
        status = json_get_bool(root, "ideal", &cost->is_ideal, reader.diag);
    struct json_node node;
    /* measured points of the base correct the base's formula: they do not fit numbers that replace the base's */
    if (json_find_member(root, "matmul").value)
        cost_points_drop_family(&cost->points, false);
    if (json_find_member(root, "attention").value)
        cost_points_drop_family(&cost->points, true);
    if (status == STATUS_OK && json_find_member(root, "points").value)
        status = cost_points_read(reader, json_find_member(root, "points"));
    for (int i = 0; status == STATUS_OK && i < COST_FAMILY_COUNT; i++) {
        if (!json_find_member(root, cost_family_names[i]).value)
            continue;
        status = json_get_object(root, cost_family_names[i], &node, reader.diag);
        if (status == STATUS_OK)
            status = read_family(reader, node, (enum cost_family)i);
    }
    if (status == STATUS_OK && json_find_member(root, "attention").value) {
        status = json_get_object(root, "attention", &node, reader.diag);
        if (status == STATUS_OK)
            status = cost_read_attention(reader, node);
    }
    if (status == STATUS_OK && reader.file_depth_in_base_chain == 0)
        status = check_complete(reader, root);
    return status;
}

static enum status read_document(struct cost_reader reader, const char *name, const char *text,
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
    struct cost_reader reader = {.cost = cost, .arena = arena, .diag = diag};
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
        status = presets_find_path("devices", "device", what, (struct loc){0}, &path, arena, diag);
    if (status != STATUS_OK)
        return status;
    struct text text = {0};
    status = text_read_with_byte_limit(&text, path, TEXT_CONFIGURATION_BYTES_MAX, diag);
    if (status == STATUS_OK)
        status = cost_parse(cost, arena, path, text.data ? text.data : "", text.size, diag);
    text_release(&text);
    return status;
}

enum status cost_presets(const char *const **names, size_t *count, struct arena *arena,
                         struct diag *diag)
{
    return presets_list_names("devices", names, count, arena, diag);
}

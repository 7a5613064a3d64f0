/* Reads cluster files. The numbers of a file's base are read first; those of its board replace them (read_board()), and
 * the file's own numbers replace both. cluster_adapt_base_numbers() then adapts what is still the base's. */
#include "models/cluster_json.h"

#include "base/c_locale.h"
#include "base/json.h"
#include "models/cluster_fields.h"
#include "models/presets.h"

#include <string.h>

enum { BASE_DEPTH_MAX = 8, TABLE_MAX = CLUSTER_MAX_GPUS_PER_NODE };

static const char *const sections[] = {"device", "fabric",  "loopback", "pcie",
                                       "nic",    "network", "host"};

/* Keys whose values are plain, without a source: they are names and choices, not measurements. */
static const char *const plain_keys[] = {"name", "summary", "base", "board", "ideal"};
static const char *const device_keys[] = {"name", "cost"};

static enum status read_document(struct cluster *cluster, struct arena *arena, const char *name,
                                 const char *text, size_t size, int depth,
                                 cluster_line_reader *read_line, struct diag *diag);

static bool is_in_section(const struct cluster_field *field, const char *section)
{
    if (!field->section || !section)
        return field->section == section;
    return strcmp(field->section, section) == 0;
}

/* Numbers that cluster files once had. They are refused with a message of their own. */
static const struct {
    const char *section, *key;
} unused[] = {{"host", "cores"}, {"host", "peak_fp32"}};

/* Refuses keys of an object other than the fields of the section and the keys more[0..more_count). section NULL: the
 * object is the whole file, which may also have all sections. */
static enum status check_keys(struct json_node object, const char *section, const char *const *more,
                              size_t more_count, struct diag *diag)
{
    const char *known[CLUSTER_FIELD_COUNT + ARRAY_LEN(plain_keys) + ARRAY_LEN(sections)];
    size_t count = 0;
    for (size_t i = 0; i < more_count; i++)
        known[count++] = more[i];
    for (size_t i = 0; i < CLUSTER_FIELD_COUNT; i++) {
        if (is_in_section(&cluster_fields[i], section))
            known[count++] = cluster_fields[i].key;
    }
    for (size_t i = 0; !section && i < ARRAY_LEN(sections); i++)
        known[count++] = sections[i];
    for (size_t i = 0; section && i < ARRAY_LEN(unused); i++) {
        struct json_node node = json_find_member(object, unused[i].key);
        if (strcmp(section, unused[i].section) == 0 && node.value != NULL)
            return json_error(node, diag, "%s.%s changes no prediction: leave it out", section,
                              unused[i].key);
    }
    return json_reject_unknown_keys(object, known, count, diag);
}

static enum status read_text(const char **out, struct arena *arena, struct json_node object,
                             const char *key, struct diag *diag)
{
    const char *text;
    enum status status = json_get_string(object, key, &text, diag);
    if (status != STATUS_OK)
        return status;
    if (!text[0])
        return json_error(json_find_member(object, key), diag, "must not be empty");
    *out = arena_text(arena, text, strlen(text));
    return STATUS_OK;
}

static enum status read_table(struct cluster *cluster, struct arena *arena,
                              const struct cluster_field *field, struct json_node value,
                              const char *source, struct diag *diag)
{
    if (!json_is_array(value))
        return json_error(value, diag, "expected a list of whole numbers");
    size_t count = json_element_count(value);
    if (count > TABLE_MAX)
        return json_error(value, diag, "%zu entries; at most %d can be used", count, TABLE_MAX);
    int64_t *entries = arena_array(arena, count, sizeof *entries);
    for (size_t i = 0; i < count; i++) {
        enum status status =
            json_as_i64(json_element_at(value, i), 0, CLUSTER_MAX_GPUS_PER_NODE, &entries[i], diag);
        if (status != STATUS_OK)
            return status;
    }
    cluster_field_set_table(cluster, arena, field, entries, count, source, json_loc(value));
    return STATUS_OK;
}

/* Appends a value as the text that cluster_field_set_text() takes; fails unless it has the type of the field. */
static enum status append_value_text(struct text *out, const struct cluster_field *field,
                                     struct json_node value, struct diag *diag)
{
    static const char *const example[FIELD_TYPE_COUNT] = {
        [FIELD_BYTES] = "80 GiB",  [FIELD_BYTES_PER_S] = "300 GB/s",
        [FIELD_SECONDS] = "5 us",  [FIELD_FLOP_PER_S] = "312 TFLOP/s",
        [FIELD_FABRIC] = "switch",
    };
    enum status status;
    if (field->type == FIELD_WHOLE_NUMBER) {
        int64_t integer;
        status = json_as_i64(value, -CLUSTER_MAX_GPUS, CLUSTER_MAX_GPUS, &integer, diag);
        if (status == STATUS_OK)
            text_put_i64(out, integer);
    } else if (field->type == FIELD_NUMBER) {
        double number;
        status = json_as_double(value, -1e300, 1e300, &number, diag);
        if (status == STATUS_OK)
            text_put_double(out, number);
    } else if (field->type == FIELD_BOOL) {
        bool yes;
        status = json_as_bool(value, &yes, diag);
        if (status == STATUS_OK)
            text_puts(out, yes ? "true" : "false");
    } else if (json_is_number(value)) {
        status = json_error(value, diag, "a bare number has no unit; write text such as \"%s\"",
                            example[field->type]);
    } else {
        const char *string;
        status = json_as_string(value, &string, diag);
        if (status == STATUS_OK)
            text_puts(out, string);
    }
    return status;
}

/* Reads "path": {"value": ..., "source": "..."}, which may also have "how" and "spread", or only the value. A field
 * without a source has the source "given". */
static enum status read_field(struct cluster *cluster, struct arena *arena,
                              const struct cluster_field *field, struct json_node node,
                              struct diag *diag)
{
    static const char *const known[] = {"value", "source", "how", "spread"};
    const char *source = "given";
    double spread = 0;
    enum number_origin how = NUMBER_STATED;
    struct json_node value = node;
    enum status status = STATUS_OK;
    if (json_is_object(node)) {
        value = json_find_member(node, "value");
        status = json_reject_unknown_keys(node, known, ARRAY_LEN(known), diag);
        if (status == STATUS_OK && json_find_member(node, "source").value)
            status = read_text(&source, arena, node, "source", diag);
        if (status == STATUS_OK && json_find_member(node, "spread").value)
            status = json_get_double(node, "spread", 0, 10, &spread, diag);
        if (status == STATUS_OK)
            status = number_origin_read_json(node, &how, diag);
    }
    if (status != STATUS_OK)
        return status;
    if (!value.value)
        return json_error(node, diag, "has no \"value\"");
    struct text text = {0};
    const bool is_table = field->type == FIELD_TABLE;
    status = is_table ? read_table(cluster, arena, field, value, source, diag)
                      : append_value_text(&text, field, value, diag);
    if (status == STATUS_OK && !is_table)
        status = cluster_field_set_text(cluster, arena, field, text.data ? text.data : "",
                                        text.size, source, json_loc(value), diag);
    if (status == STATUS_OK)
        cluster_field_set_origin(cluster, field, how, spread);
    text_release(&text);
    return status;
}

/* Returns the path of a file that the cluster file names as `other`. A relative path is relative to
 * the folder of the cluster file, which `node` gives. */
static const char *path_in_same_folder(struct arena *arena, struct json_node node,
                                       const char *other)
{
    const char *path = json_loc(node).name, *slash = strrchr(path, '/');
    if (slash == NULL || other[0] == '/')
        return arena_text(arena, other, strlen(other));
    return arena_printf(arena, "%.*s/%s", (int)(slash - path), path, other);
}

/* Reads one section of a file (NULL: the fields at its top). Sets given[i] to true for each field i that it has; other
 * elements do not change. */
static enum status read_section(struct cluster *cluster, struct arena *arena,
                                struct json_node object, const char *section, bool *given,
                                struct diag *diag)
{
    bool device = section && strcmp(section, "device") == 0;
    enum status status;
    if (section)
        status =
            check_keys(object, section, device_keys, device ? ARRAY_LEN(device_keys) : 0, diag);
    else
        status = check_keys(object, NULL, plain_keys, ARRAY_LEN(plain_keys), diag);
    for (size_t i = 0; status == STATUS_OK && i < CLUSTER_FIELD_COUNT; i++) {
        const struct cluster_field *field = &cluster_fields[i];
        if (!is_in_section(field, section))
            continue;
        struct json_node node = json_find_member(object, field->key);
        if (node.value == NULL)
            continue;
        given[i] = true;
        status = read_field(cluster, arena, field, node, diag);
    }
    if (status == STATUS_OK && device && json_find_member(object, "name").value)
        status = read_text(&cluster->device.name, arena, object, "name", diag);
    if (status == STATUS_OK && device && json_find_member(object, "cost").value)
        status = read_text(&cluster->device.cost_name, arena, object, "cost", diag);
    if (status == STATUS_OK && device && json_find_member(object, "cost").value &&
        cluster_name_ends_in_json(cluster->device.cost_name))
        cluster->device.cost_name = path_in_same_folder(arena, object, cluster->device.cost_name);
    return status;
}

/* Reads the member "base" of a file: loads the cluster that it names into *cluster. depth: how many files have named
 * this file as their base, one after the other. read_line: reads a base in the one-line form. */
static enum status read_base(struct cluster *cluster, struct arena *arena, struct json_node root,
                             int depth, cluster_line_reader *read_line, struct diag *diag)
{
    struct json_node node = json_find_member(root, "base");
    const char *base, *path = NULL;
    enum status status = json_as_string(node, &base, diag);
    if (status != STATUS_OK)
        return status;
    if (depth >= BASE_DEPTH_MAX)
        return json_error(node, diag, "bases nest more than %d deep; does '%s' build on itself?",
                          BASE_DEPTH_MAX, base);
    const char *colon = strchr(base, ':');
    if (cluster_is_file(base))
        path = path_in_same_folder(arena, node, base);
    /* The base is a preset, unless it begins with a digit, as one line does (2x4xh100). */
    else if (!c_is_digit(base[0]))
        status = presets_find_path(
            "clusters", "cluster",
            arena_text(arena, base, colon != NULL ? (size_t)(colon - base) : strlen(base)),
            json_loc(node), &path, arena, diag);
    if (status == STATUS_OK && cluster_is_in_line_form(base))
        return read_line(cluster, arena, base, strlen(base), diag);
    if (status != STATUS_OK)
        return status;
    struct text text = {0};
    status = text_read_with_byte_limit(&text, path, TEXT_CONFIGURATION_BYTES_MAX, diag);
    if (status == STATUS_OK)
        status = read_document(cluster, arena, path, text.data ? text.data : "", text.size,
                               depth + 1, read_line, diag);
    text_release(&text);
    return status;
}

/* Reads the numbers of a file, at its top and in its sections. given[]: as in read_section(). */
static enum status read_numbers(struct cluster *cluster, struct arena *arena, struct json_node root,
                                bool given[CLUSTER_FIELD_COUNT], struct diag *diag)
{
    enum status status = read_section(cluster, arena, root, NULL, given, diag);
    for (size_t i = 0; status == STATUS_OK && i < ARRAY_LEN(sections); i++) {
        struct json_node object = json_find_member(root, sections[i]);
        if (!object.value)
            continue;
        status = json_get_object(root, sections[i], &object, diag);
        if (status == STATUS_OK)
            status = read_section(cluster, arena, object, sections[i], given, diag);
    }
    return status;
}

/* Reads the board that a file names: models/presets/boards/NAME.json, with numbers that several clusters share.
 * given[]: as in read_section(). */
static enum status read_board(struct cluster *cluster, struct arena *arena, struct json_node root,
                              bool given[CLUSTER_FIELD_COUNT], struct diag *diag)
{
    struct json_node node = json_find_member(root, "board");
    struct json json = {0};
    struct text text = {0};
    const char *name, *path = NULL;
    enum status status = json_as_string(node, &name, diag);
    if (status == STATUS_OK)
        status = presets_find_path("boards", "board", name, json_loc(node), &path, arena, diag);
    if (status == STATUS_OK)
        status = text_read_with_byte_limit(&text, path, TEXT_CONFIGURATION_BYTES_MAX, diag);
    if (status == STATUS_OK)
        status = json_parse(&json, path, text.data ? text.data : "", text.size, diag);
    if (status == STATUS_OK)
        status = read_numbers(cluster, arena, json_root(&json), given, diag);
    json_release(&json);
    text_release(&text);
    return status;
}

static enum status read_root(struct cluster *cluster, struct arena *arena, struct json_node root,
                             int depth, cluster_line_reader *read_line, struct diag *diag)
{
    if (!json_is_object(root))
        return json_error(root, diag, "expected an object that describes a cluster");
    enum status status = STATUS_OK;
    bool has_base = json_find_member(root, "base").value != NULL, given[CLUSTER_FIELD_COUNT] = {0};
    if (has_base)
        status = read_base(cluster, arena, root, depth, read_line, diag);
    const struct cluster base = *cluster;
    if (status == STATUS_OK && json_find_member(root, "ideal").value) {
        bool base_ideal = cluster->is_ideal;
        status = json_get_bool(root, "ideal", &cluster->is_ideal, diag);
        if (status == STATUS_OK && base_ideal && !cluster->is_ideal)
            status = json_error(json_find_member(root, "ideal"), diag,
                                "the base is ideal: its infinite numbers cannot be taken back");
    }
    if (status == STATUS_OK)
        status = read_text(&cluster->name, arena, root, "name", diag);
    if (status == STATUS_OK && has_base && !json_find_member(root, "summary").value)
        cluster->summary = arena_printf(arena, "%s with other numbers", base.name);
    else if (status == STATUS_OK)
        status = read_text(&cluster->summary, arena, root, "summary", diag);
    if (status == STATUS_OK && json_find_member(root, "board").value)
        status = read_board(cluster, arena, root, given, diag);
    if (status == STATUS_OK)
        status = read_numbers(cluster, arena, root, given, diag);
    if (status == STATUS_OK && has_base)
        cluster_adapt_base_numbers(cluster, arena, &base, given);
    return status;
}

static enum status read_document(struct cluster *cluster, struct arena *arena, const char *name,
                                 const char *text, size_t size, int depth,
                                 cluster_line_reader *read_line, struct diag *diag)
{
    struct json json = {0};
    enum status status = json_parse(&json, name, text, size, diag);
    if (status == STATUS_OK)
        status = read_root(cluster, arena, json_root(&json), depth, read_line, diag);
    json_release(&json);
    return status;
}

/* Fails unless the file or its bases give all required fields of a cluster. */
static enum status check_complete(const struct cluster *cluster, const char *name,
                                  struct diag *diag)
{
    struct loc at = {.name = name};
    if (!cluster->device.name || !cluster->device.cost_name)
        return diag_error(diag, at, STATUS_BAD_INPUT, "device.%s is missing",
                          cluster->device.name ? "cost" : "name");
    for (size_t i = 0; i < CLUSTER_FIELD_COUNT; i++) {
        const struct cluster_field *field = &cluster_fields[i];
        if (cluster_field_is_required(cluster, field) && !cluster_find_fact(cluster, field->path))
            return diag_error(diag, at, STATUS_BAD_INPUT, "%s is missing", field->path);
    }
    return STATUS_OK;
}

/* Fails unless each table has as many entries as a node has GPUs, NICs or PCIe switches; later code relies on it. */
static enum status check_lengths(const struct cluster *cluster, struct diag *diag)
{
    const struct {
        const char *path, *of;
        int64_t length;
    } tables[] = {
        {"pcie.switch_of_gpu", "gpus_per_node", cluster->gpus_per_node},
        {"pcie.socket_of_switch", "pcie.switches", cluster->pcie.pcie_switches_per_node},
        {"nic.of_gpu", "gpus_per_node", cluster->gpus_per_node},
        {"nic.switch_of_nic", "nic.count", cluster->nic.count},
    };
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        const struct cluster_field *field = cluster_field_find(tables[i].path);
        const struct cluster_fact *fact = cluster_find_fact(cluster, tables[i].path);
        if (!fact || !cluster_field_is_required(cluster, field))
            continue;
        if ((int64_t)fact->entries_of_table_value == tables[i].length)
            continue;
        struct text origin = {0};
        cluster_field_append_origin_to_text(&origin, cluster, cluster_field_find(tables[i].of),
                                            fact->at);
        diag_error(diag, fact->at, STATUS_BAD_INPUT, "%s has %zu entries, but %s is %lld%s",
                   tables[i].path, fact->entries_of_table_value, tables[i].of,
                   (long long)tables[i].length, origin.data ? origin.data : "");
        text_release(&origin);
        return STATUS_BAD_INPUT;
    }
    return STATUS_OK;
}

enum status cluster_read_json(struct cluster *cluster, struct arena *arena, const char *name,
                              const char *text, size_t size, cluster_line_reader *read_line,
                              struct diag *diag)
{
    *cluster = (struct cluster){.domain_nodes = 1};
    enum status status = read_document(cluster, arena, name, text, size, 0, read_line, diag);
    if (status == STATUS_OK)
        status = check_complete(cluster, name, diag);
    if (status == STATUS_OK)
        status = check_lengths(cluster, diag);
    if (status != STATUS_OK)
        return status;
    cluster_set_derived_members(cluster);
    return cluster_check(cluster, diag);
}

enum status cluster_read_json_file(struct cluster *cluster, struct arena *arena, const char *path,
                                   cluster_line_reader *read_line, struct diag *diag)
{
    struct text text = {0};
    enum status status = text_read_with_byte_limit(&text, path, TEXT_CONFIGURATION_BYTES_MAX, diag);
    if (status == STATUS_OK)
        status = cluster_read_json(cluster, arena, arena_text(arena, path, strlen(path)),
                                   text.data ? text.data : "", text.size, read_line, diag);
    text_release(&text);
    return status;
}

/* The one-line form: NODESxGPUSxDEVICE[:option,option...], "2x4xh100:nics=2,host.memory=1 TB", and options
 * after the name of any other cluster: "dgx-h100:nics=4". */
#include "models/cluster.h"

#include "models/cluster_fields.h"
#include "models/cluster_json.h"
#include "models/presets.h"

#include <assert.h>
#include <string.h>

/* The devices of one-line clusters. A line may also have the name of any preset in place of a device. */
static const struct {
    const char *device;
    const char *preset; /* the preset from which the cluster takes its nodes */
    /* with board=mesh: the preset of a board without a switch; NULL: none is known */
    const char *mesh_board_preset;
} bases[] = {
    {"a100-40g", "dgx-a100-40g", NULL},
    {"a100-80g", "dgx-a100", "hgx4-a100"},
    {"h100", "dgx-h100", "hgx4-h100"},
    {"h200", "h200", "hgx4-h200"},
    {"b200", "b200", NULL},
    {"b300", "b300", NULL},
    {"gh200", "gh200", NULL},
    {"gb200", "gb200", NULL},
    {"gb300", "gb300", NULL},
};

const char *cluster_line_preset_of_device(const char *device)
{
    for (size_t i = 0; i < ARRAY_LEN(bases); i++)
        if (strcmp(bases[i].device, device) == 0)
            return bases[i].preset;
    return NULL;
}

enum { MESH_BOARD_GPUS = 4 }; /* GPUs of a board without a switch */

static const char form[] = "expected NODESxGPUSxDEVICE, such as 2x4xh100";
static const char from_line[] = "the one-line form";

struct cluster_line {
    struct cluster *cluster;
    struct arena *arena;
    struct cursor cursor; /* all of it is one line */
    bool field_is_set[CLUSTER_FIELD_COUNT], nics_set, board_set;
    bool begins_with_shape; /* the line begins with NODESxGPUSxDEVICE, and not with a name */
    /* boards of this device without a switch have room for the node's GPUs */
    bool fits_on_mesh_board;
    struct diag *diag;
};

/* Moves the cursor to the next of the characters in `stops`, or to the end of the line. Returns the text that it
 * passed, and sets *size to its size. */
static const char *read_word(struct cluster_line *line, const char *stops, size_t *size)
{
    const char *from = line->cursor.at;
    while (line->cursor.at < line->cursor.end && !strchr(stops, *line->cursor.at))
        line->cursor.at++;
    *size = (size_t)(line->cursor.at - from);
    return from;
}

static bool skip_char_if_next(struct cluster_line *line, char c)
{
    if (line->cursor.at == line->cursor.end || *line->cursor.at != c)
        return false;
    line->cursor.at++;
    return true;
}

static enum status read_count(struct cluster_line *line, const char *what, int64_t limit,
                              int64_t *count)
{
    struct loc at = cursor_loc(&line->cursor);
    size_t size;
    const char *word = read_word(line, "x:", &size);
    if (!parse_i64(word, size, count) || !skip_char_if_next(line, 'x'))
        return diag_error(line->diag, at, STATUS_BAD_INPUT, "%s", form);
    if (*count < 1 || *count > limit)
        return diag_error(line->diag, at, STATUS_BAD_INPUT,
                          "%lld %s: the number must be from 1 to %lld", (long long)*count, what,
                          (long long)limit);
    return STATUS_OK;
}

/* Reports an unknown device. The message names the devices that begin with this name ("a100"). If none does, it names
 * the nearest device or preset; if none is near, all devices. */
static enum status report_unknown_device(struct cluster_line *line, const char *name,
                                         const char *const *presets, size_t preset_count,
                                         struct loc at)
{
    const char *device_names[ARRAY_LEN(bases)];
    struct text begin = {0}, all = {0};
    for (size_t i = 0; i < ARRAY_LEN(bases); i++) {
        device_names[i] = bases[i].device;
        text_printf(&all, "%s%s", i > 0 ? ", " : "", device_names[i]);
        if (name[0] && strncmp(device_names[i], name, strlen(name)) == 0)
            text_printf(&begin, "%s%s", begin.size > 0 ? ", " : "", device_names[i]);
    }
    const char *near = diag_nearest(name, device_names, ARRAY_LEN(device_names));
    if (!near)
        near = diag_nearest(name, presets, preset_count);
    enum status status;
    if (near && begin.size == 0)
        status = diag_error(line->diag, at, STATUS_BAD_INPUT,
                            "no device or cluster '%s'; did you mean '%s'?", name, near);
    else
        status = diag_error(line->diag, at, STATUS_BAD_INPUT,
                            "no device or cluster '%s'; the devices are %s", name,
                            begin.size > 0 ? begin.data : all.data);
    text_release(&begin);
    text_release(&all);
    return status;
}

static const char *mesh_preset_of_device(const char *device)
{
    for (size_t i = 0; i < ARRAY_LEN(bases); i++)
        if (strcmp(bases[i].device, device) == 0)
            return bases[i].mesh_board_preset;
    return NULL;
}

/* True if the option board=mesh is on the line. Which preset is the base depends on it, so it is looked for before the
 * options are read. */
static bool asks_for_mesh_board(const struct cluster_line *line)
{
    static const char option[] = "board=mesh";
    for (const char *at = strstr(line->cursor.at, option); at; at = strstr(at + 1, option))
        if ((at[-1] == ':' || at[-1] == ',') && strchr(",", at[sizeof option - 1]))
            return true;
    return false;
}

enum status cluster_load_named(struct cluster *cluster, struct arena *arena, const char *name,
                               struct diag *diag)
{
    *cluster = (struct cluster){0};
    if (cluster_is_file(name))
        return cluster_read_json_file(cluster, arena, name, cluster_parse_line, diag);
    const char *path, *preset = cluster_line_preset_of_device(name);
    if (preset != NULL && strcmp(preset, name) != 0)
        return diag_error(diag, (struct loc){0}, STATUS_BAD_INPUT,
                          "'%s' is a device, no cluster; did you mean '%s', or NODESxGPUSxDEVICE "
                          "such as 1x8x%s?",
                          name, preset, name);
    enum status status =
        presets_find_path("clusters", "cluster", name, (struct loc){0}, &path, arena, diag);
    return status == STATUS_OK
               ? cluster_read_json_file(cluster, arena, path, cluster_parse_line, diag)
               : status;
}

static enum status read_base(struct cluster_line *line)
{
    struct loc at = cursor_loc(&line->cursor);
    size_t size;
    const char *word = read_word(line, ":", &size);
    const char *name = arena_text(line->arena, word, size);
    const char *preset = cluster_line_preset_of_device(name);
    if (asks_for_mesh_board(line)) {
        preset = mesh_preset_of_device(name);
        if (preset == NULL)
            return diag_error(
                line->diag, at, STATUS_BAD_INPUT,
                "board=mesh: no board of four '%s' is known whose pairs are wired directly; those "
                "of a100-80g, h100 and h200 are; or give fabric.kind=mesh with fabric.bandwidth",
                name);
    }
    if (preset != NULL)
        return cluster_load_named(line->cluster, line->arena, preset, line->diag);
    const char *const *presets;
    size_t count;
    enum status status = cluster_presets(&presets, &count, line->arena, line->diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < count; i++)
        if (strcmp(presets[i], name) == 0)
            return cluster_load_named(line->cluster, line->arena, name, line->diag);
    return report_unknown_device(line, name, presets, count, at);
}

static void set_whole_number(struct cluster_line *line, const char *path, int64_t value)
{
    char *text = arena_printf(line->arena, "%lld", (long long)value);
    enum status status =
        cluster_field_set_text(line->cluster, line->arena, cluster_field_find(path), text,
                               strlen(text), from_line, cursor_loc(&line->cursor), line->diag);
    assert(status == STATUS_OK);
    (void)status;
}

static void set_table(struct cluster_line *line, const char *path, const int64_t *entries,
                      int64_t count)
{
    cluster_field_set_table(line->cluster, line->arena, cluster_field_find(path), entries,
                            (size_t)count, from_line, cursor_loc(&line->cursor));
}

/* Removes from the node all GPUs but the first `gpus`, and the NICs that serve none of these. The
 * host keeps its size. */
static void keep_first_gpus(struct cluster_line *line, int64_t gpus)
{
    struct cluster *c = line->cluster;
    struct arena *arena = line->arena;
    if (gpus == c->gpus_per_node)
        return;
    set_table(line, "pcie.switch_of_gpu", c->switch_of_gpu, gpus);
    if (c->nic.count > 0) {
        size_t count = (size_t)c->nic.count;
        int64_t *renumbered = arena_array(arena, count, sizeof *renumbered);
        int64_t *of_gpu = arena_array(arena, (size_t)gpus, sizeof *of_gpu);
        int64_t *switch_of = arena_array(arena, count, sizeof *switch_of);
        for (size_t i = 0; i < count; i++)
            renumbered[i] = -1;
        int64_t kept = 0;
        for (int64_t g = 0; g < gpus; g++) {
            int64_t *to = &renumbered[c->nic_of_gpu[g]];
            if (*to < 0) {
                switch_of[kept] = c->switch_of_nic[c->nic_of_gpu[g]];
                *to = kept++;
            }
            of_gpu[g] = *to;
        }
        set_whole_number(line, "nic.count", kept);
        set_table(line, "nic.of_gpu", of_gpu, gpus);
        set_table(line, "nic.switch_of_nic", switch_of, kept);
    }
    set_whole_number(line, "gpus_per_node", gpus);
}

/* Sets the number of NICs of a node from "nics=N"; cluster_adapt_base_numbers() later spreads them over the GPUs. */
static enum status set_nic_count(struct cluster_line *line, const char *word, size_t size,
                                 struct loc at)
{
    const struct cluster *c = line->cluster;
    int64_t count, gpus = c->gpus_per_node;
    if (c->nic.count == 0)
        return diag_error(line->diag, at, STATUS_BAD_INPUT,
                          "nics: %s has no NICs, so the bandwidth of a NIC is unknown",
                          c->device.name);
    if (!parse_i64(word, size, &count) || count < 1 || count > gpus)
        return diag_error(
            line->diag, at, STATUS_BAD_INPUT,
            "nics: '%.*s': the number must be from 1 to %lld, at most one for each GPU", (int)size,
            word, (long long)gpus);
    set_whole_number(line, "nic.count", count);
    return STATUS_OK;
}

/* Checks the value of the option `board`. It sets nothing: asks_for_mesh_board() has found board=mesh already, and
 * board=switch is the default. */
static enum status check_board_value(struct cluster_line *line, const char *word, size_t size,
                                     struct loc at)
{
    if (!line->begins_with_shape)
        return diag_error(line->diag, at, STATUS_BAD_INPUT,
                          "board: a named cluster has its own wiring; give "
                          "NODESxGPUSxDEVICE:board=mesh, or a cluster file");
    if ((size == 4 && memcmp(word, "mesh", 4) == 0) ||
        (size == 6 && memcmp(word, "switch", 6) == 0))
        return STATUS_OK;
    return diag_error(line->diag, at, STATUS_BAD_INPUT,
                      "board: no wiring '%.*s'; there are switch (GPUs of a node of eight, behind "
                      "its NVSwitch) and mesh (a board of four whose pairs are wired directly)",
                      (int)size, word);
}

/* True if an option of a line may set the field. It may not be a table, a number of table entries, or the number of
 * nodes, with which the line begins. */
static bool is_field_settable_in_line(const struct cluster_field *field)
{
    static const char *const fixed[] = {"nodes", "gpus_per_node", "pcie.switches", "nic.count"};
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
        if (strcmp(field->path, fixed[i]) == 0)
            return false;
    return field->type != FIELD_TABLE;
}

bool cluster_line_may_set(const char *path)
{
    const struct cluster_field *field = cluster_field_find(path);
    return strcmp(path, "nics") == 0 || strcmp(path, "board") == 0 ||
           (field != NULL && is_field_settable_in_line(field));
}

static enum status report_unknown_option(struct cluster_line *line, const char *name, struct loc at)
{
    const char *known[CLUSTER_FIELD_COUNT + 2] = {"nics", "board"};
    size_t count = 2;
    for (size_t i = 0; i < CLUSTER_FIELD_COUNT; i++)
        if (is_field_settable_in_line(&cluster_fields[i]))
            known[count++] = cluster_fields[i].path;
    const char *near = diag_nearest(name, known, count);
    if (near)
        return diag_error(line->diag, at, STATUS_BAD_INPUT, "no option '%s'; did you mean '%s'?",
                          name, near);
    return diag_error(line->diag, at, STATUS_BAD_INPUT,
                      "no option '%s'; give nics=N, or a number of a cluster file, such as "
                      "nic.bandwidth=200 Gb/s (not nodes, gpus_per_node, nic.count, "
                      "pcie.switches or a list)",
                      name);
}

/* Refuses to set device.peak_bf16 or device.memory_bandwidth. No time would change, since kernel
 * times come from the device's cost file. The ideal device is an exception: its numbers may be
 * set. */
static enum status refuse_rates_that_change_no_time(struct cluster_line *line, const char *name,
                                                    struct loc at)
{
    if ((strcmp(name, "device.peak_bf16") != 0 && strcmp(name, "device.memory_bandwidth") != 0) ||
        strcmp(line->cluster->device.name, "ideal") == 0)
        return STATUS_OK;
    return diag_error(
        line->diag, at, STATUS_BAD_INPUT,
        "%s is a figure of the data sheet, and changing it would change no time: kernel times "
        "come from the costs of the device; --costs with a file that calibrate wrote would do, or "
        "a cluster file of a device with this number",
        name);
}

static enum status read_option(struct cluster_line *line)
{
    struct loc at = cursor_loc(&line->cursor);
    size_t size;
    const char *word = read_word(line, "=,", &size);
    const char *name = arena_text(line->arena, word, size);
    const struct cluster_field *field = cluster_field_find(name);
    bool nics = strcmp(name, "nics") == 0, board = strcmp(name, "board") == 0;
    if (!cluster_line_may_set(name))
        return report_unknown_option(line, name, at);
    if (refuse_rates_that_change_no_time(line, name, at) != STATUS_OK)
        return STATUS_BAD_INPUT;
    if (!skip_char_if_next(line, '='))
        return diag_error(line->diag, cursor_loc(&line->cursor), STATUS_BAD_INPUT,
                          "expected %s=VALUE", name);
    bool *set = nics    ? &line->nics_set
                : board ? &line->board_set
                        : &line->field_is_set[field - cluster_fields];
    if (*set)
        return diag_error(line->diag, at, STATUS_BAD_INPUT, "%s is given twice", name);
    *set = true;
    at = cursor_loc(&line->cursor);
    word = read_word(line, ",", &size);
    if (board)
        return check_board_value(line, word, size, at);
    return nics ? set_nic_count(line, word, size, at)
                : cluster_field_set_text(line->cluster, line->arena, field, word, size, from_line,
                                         at, line->diag);
}

static bool starts_with_digit(const char *text)
{
    return text[0] >= '0' && text[0] <= '9';
}

/* Reads NODESxGPUSxDEVICE. */
static enum status read_shape(struct cluster_line *line)
{
    int64_t nodes, gpus;
    enum status status = read_count(line, "nodes", CLUSTER_MAX_NODES, &nodes);
    struct loc at = cursor_loc(&line->cursor);
    if (status == STATUS_OK)
        status = read_count(line, "GPUs in a node", CLUSTER_MAX_GPUS_PER_NODE, &gpus);
    if (status == STATUS_OK)
        status = read_base(line);
    if (status != STATUS_OK)
        return status;
    if (gpus > line->cluster->gpus_per_node)
        return diag_error(line->diag, at, STATUS_BAD_INPUT,
                          "a node of %s cannot have %lld GPUs; it has %lld at most",
                          line->cluster->name, (long long)gpus,
                          (long long)line->cluster->gpus_per_node);
    line->fits_on_mesh_board =
        gpus > 1 && gpus <= MESH_BOARD_GPUS && mesh_preset_of_device(line->cluster->device.name);
    keep_first_gpus(line, gpus);
    set_whole_number(line, "nodes", nodes);
    return STATUS_OK;
}

static enum status read_name(struct cluster_line *line)
{
    size_t size;
    const char *word = read_word(line, ":", &size);
    return cluster_load_named(line->cluster, line->arena, arena_text(line->arena, word, size),
                              line->diag);
}

static enum status read_cluster_line(struct cluster_line *line)
{
    bool named = !starts_with_digit(line->cursor.at) && strchr(line->cursor.at, ':') != NULL;
    line->begins_with_shape = !named;
    enum status status = named ? read_name(line) : read_shape(line);
    if (status != STATUS_OK)
        return status;
    struct cluster base = *line->cluster;
    while (status == STATUS_OK && line->cursor.at < line->cursor.end) {
        line->cursor.at++; /* the ':' before the first option, and the ',' before each other one */
        status = read_option(line);
    }
    if (status == STATUS_OK)
        cluster_adapt_base_numbers(line->cluster, line->arena, &base, line->field_is_set);
    return status;
}

enum status cluster_parse_line(struct cluster *cluster, struct arena *arena, const char *text,
                               size_t size, struct diag *diag)
{
    *cluster = (struct cluster){0};
    const char *name = arena_text(arena, text, size);
    struct cluster_line line = {.cluster = cluster,
                                .arena = arena,
                                .cursor = cursor_make(name, name, strlen(name)),
                                .diag = diag};
    if (strlen(name) != size || strpbrk(name, "\r\n"))
        return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT, "%s", form);
    enum status status = read_cluster_line(&line);
    if (status != STATUS_OK)
        return status;
    bool cut = starts_with_digit(name);
    cluster->summary = arena_printf(arena, "%s, %s %s", name, cut ? "cut from" : "which is",
                                    cut ? cluster->name : cluster->summary);
    cluster->name = name;
    if (line.fits_on_mesh_board && !line.board_set)
        cluster->line_with_mesh_board =
            arena_printf(arena, "%s%sboard=mesh", name, strchr(name, ':') ? "," : ":");
    cluster_set_derived_members(cluster);
    return cluster_check(cluster, diag);
}

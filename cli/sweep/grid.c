#include "cli/sweep/grid.h"

#include "base/digest.h"
#include "base/path.h"
#include "cli/sweep/record_command.h"
#include "models/cluster.h"
#include "models/cluster_fields.h"
#include "models/cost.h"
#include "models/transformer.h"
#include "predict/sweep/point.h"
#include "schedule/choices/choices.h"
#include "schedule/choices/strategies.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct loc vary_loc = {.name = "--vary"};

void sweep_grid_release(struct sweep_grid *grid)
{
    grid_axes_release(&grid->axes);
    arena_release(&grid->arena);
    *grid = (struct sweep_grid){0};
}

/* Returns the type of the values of an axis over this option. option NULL: the axis is a number of the cluster. A model
 * on a line has at least two fields, so a list with a comma between its values holds no such model. */
static enum axis_value_type axis_type_of_option(const struct option *option, const char *values)
{
    if (option == NULL)
        return AXIS_TYPE_CLUSTER_NUMBERS;
    if (strcmp(option->name, "model") == 0 && transformer_is_line(values))
        return AXIS_TYPE_TEXTS_WITH_COMMAS;
    switch (option->kind) {
    case OPTION_INTEGER:
        return AXIS_TYPE_WHOLE_NUMBERS;
    case OPTION_TOKENS:
        return AXIS_TYPE_TOKEN_COUNTS;
    case OPTION_POSITIVE_NUMBER:
        return AXIS_TYPE_NUMBERS;
    default:
        return AXIS_TYPE_TEXTS;
    }
}

static enum status add_axis(struct sweep_grid *grid, const struct options *options,
                            const char *text, struct diag *diag)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == '\0')
        return diag_error(diag, vary_loc, STATUS_BAD_INPUT,
                          "'%s' is not KEY=VALUES, such as seq=64K..1M:x2 or zero=1,2,3", text);
    char *key = arena_text(&grid->arena, text, (size_t)(equals - text));
    const struct option *option = options_find(grid->option_sets, key);
    bool is_number_of_cluster = option == NULL && cluster_line_may_set(key);
    if (!is_number_of_cluster && (option == NULL || option->kind == OPTION_REPEATABLE))
        return diag_error(
            diag, vary_loc, STATUS_BAD_INPUT,
            "'%s' is no option that predict has; `longhaul help sweep` lists them; nor "
            "is it a number of a cluster, such as nic.bandwidth",
            key);
    for (size_t i = 0; i < grid->axes.axis_count; i++)
        if (strcmp(grid->axes.axis[i].key, key) == 0)
            return diag_error(diag, vary_loc, STATUS_BAD_INPUT, "%s is varied twice", key);
    if (!is_number_of_cluster && is_option_given(options, key))
        return diag_error(diag, vary_loc, STATUS_BAD_INPUT,
                          "%s is varied, and given as an option too", key);
    if (!is_number_of_cluster && option->kind == OPTION_FLAG)
        return diag_error(diag, vary_loc, STATUS_BAD_INPUT, "%s has no values to vary over", key);
    return grid_axes_add_option(&grid->axes, key, equals + 1,
                                axis_type_of_option(option, equals + 1), diag);
}

/* ---- values that are names ---- */

static enum status check_strategy(const char *value, struct arena *arena, struct diag *diag)
{
    (void)arena;
    return strategies_check_both_names_exist(value, NULL, diag);
}

static enum status check_profile(const char *value, struct arena *arena, struct diag *diag)
{
    (void)arena;
    return strategies_check_both_names_exist(NULL, value, diag);
}

static enum status check_model(const char *value, struct arena *arena, struct diag *diag)
{
    struct transformer model;
    /* a file is not checked here, since with --ignore a fault may be in a key that is ignored */
    if (access(value, R_OK) == 0)
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

/* True if numbers follow the name of a cluster, as in "dgx-h100:nics=4,board=1", where commas separate numbers. */
static bool has_numbers_after_cluster_name(const char *value)
{
    return strchr(value, ':') != NULL;
}

/* The options whose values are names: of a strategy, profile, model, cluster or cost file.
 * options_parse() takes any text for them, so check() looks whether the name exists. is_line() says whether a text is
 * one value on a line, whose commas separate fields; NULL: the option has no such values. */
static const struct {
    const char *option;
    enum status (*check)(const char *value, struct arena *arena, struct diag *diag);
    bool (*is_line)(const char *value);
} named[] = {{"strategy", check_strategy, NULL},
             {"profile", check_profile, NULL},
             {"model", check_model, transformer_is_line},
             {"cluster", check_cluster, has_numbers_after_cluster_name},
             {"costs", check_costs, NULL}};

/* Checks a value of an option whose values are names. An unknown name would otherwise fail at every point of the
 * sweep. */
static enum status check_name_exists(const char *key, const char *value, struct diag *diag)
{
    struct arena arena = {0};
    enum status status = STATUS_OK;
    size_t before = diag->size;
    for (size_t i = 0; i < ARRAY_LEN(named); i++)
        if (strcmp(named[i].option, key) == 0) {
            status = named[i].check(value, &arena, diag);
            diag_add_place_to_errors(diag, before, options_name_with_dashes(key).text);
        }
    arena_release(&arena);
    return status;
}

/* ---- the grid ---- */

/* Checks each value of an axis that is a number of the cluster, by itself. Whether it agrees with the rest of the
 * cluster is checked at each point. */
static enum status check_cluster_values(const struct grid_axis *axis, struct diag *diag)
{
    const struct cluster_field *field = cluster_field_find(axis->key);
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && field != NULL && i < axis->value_count; i++) {
        /* this ideal cluster accepts every value that some cluster accepts */
        struct cluster cluster = {.is_ideal = true};
        struct arena arena = {0};
        status = cluster_field_set_text(&cluster, &arena, field, axis->value[i],
                                        strlen(axis->value[i]), "", vary_loc, diag);
        arena_release(&arena);
    }
    return status;
}

/* Checks that the option of each axis accepts the axis' values, and that the numbers of the cluster
 * do. */
static enum status check_axis_values(const struct sweep_grid *grid, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (size_t a = 0; status == STATUS_OK && a < grid->axes.axis_count; a++)
        for (size_t i = 0; status == STATUS_OK && !grid->axes.axis[a].is_axis_of_cluster_numbers &&
                           i < grid->axes.axis[a].value_count;
             i++) {
            struct options options = {0};
            struct arena arena = {0};
            char *word = arena_printf(&arena, "--%s=%s", grid->axes.axis[a].key,
                                      grid->axes.axis[a].value[i]);
            status = options_parse(&options, grid->option_sets, 1, &word, diag);
            if (status == STATUS_OK)
                status =
                    check_name_exists(grid->axes.axis[a].key, grid->axes.axis[a].value[i], diag);
            options_release(&options);
            arena_release(&arena);
        }
    for (size_t a = 0; status == STATUS_OK && a < grid->axes.axis_count; a++)
        if (grid->axes.axis[a].is_axis_of_cluster_numbers)
            status = check_cluster_values(&grid->axes.axis[a], diag);
    return status;
}

/* Refuses lists for options whose values are names. A text with a comma is a list, unless it is one value on a line,
 * such as layers=2,hidden=64, or the path of a file. */
static enum status refuse_lists_of_names(const struct options *options, struct diag *diag)
{
    for (size_t i = 0; i < ARRAY_LEN(named); i++) {
        const char *text = options_text(options, named[i].option);
        const bool line = text != NULL && named[i].is_line != NULL && named[i].is_line(text);
        if (text != NULL && strchr(text, ',') != NULL && !line && access(text, R_OK) != 0)
            return options_refuse_list(named[i].option, text, diag);
    }
    return STATUS_OK;
}

enum status sweep_grid_make(struct sweep_grid *grid, const struct option_set *const *sets,
                            const struct options *options, const char *const *vary, size_t count,
                            struct diag *diag)
{
    size_t most = 0, row = 0;
    for (size_t s = 0; sets[s] != NULL; s++)
        most += sets[s]->option_count;
    grid->option_sets = sets;
    grid->shared_options = arena_array(&grid->arena, most, sizeof *grid->shared_options);
    for (size_t s = 0; sets[s] != NULL; s++)
        for (size_t i = 0; i < sets[s]->option_count; i++, row++) {
            const struct option *option = &sets[s]->option[i];
            if (is_option_given(options, option->name))
                grid->shared_options[grid->shared_option_count++] =
                    option->kind == OPTION_FLAG
                        ? arena_printf(&grid->arena, "--%s", option->name)
                        : arena_printf(&grid->arena, "--%s=%s", option->name,
                                       options_text(options, option->name));
        }
    enum status status = refuse_lists_of_names(options, diag);
    if (status != STATUS_OK)
        return status;
    if (count == 0)
        return diag_error(diag, vary_loc, STATUS_BAD_INPUT,
                          "is missing: give an option and its values, such as seq=64K..1M:x2");
    for (size_t i = 0; i < count; i++) {
        status = add_axis(grid, options, vary[i], diag);
        if (status != STATUS_OK)
            return status;
    }
    grid->point_count = grid_point_count(&grid->axes);
    return check_axis_values(grid, diag);
}

/* Appends "KEY=VALUE" to the word --cluster=... of words[0..count), after a ":", or after a "," if the word has numbers
 * already. It fails if no word is --cluster. */
static enum status add_number_to_cluster_word(char **words, size_t count, const char *key,
                                              const char *value, struct arena *arena,
                                              struct diag *diag)
{
    static const char option[] = "--cluster=";
    for (size_t i = 0; i < count; i++)
        if (strncmp(words[i], option, strlen(option)) == 0) {
            words[i] = arena_printf(arena, "%s%c%s=%s", words[i],
                                    strchr(words[i], ':') != NULL ? ',' : ':', key, value);
            return STATUS_OK;
        }
    return diag_error(diag, vary_loc, STATUS_BAD_INPUT,
                      "%s is a number of the cluster's description: give --cluster too", key);
}

enum status sweep_grid_fill_options(const struct sweep_grid *grid, size_t point,
                                    struct arena *arena, struct options *options, struct diag *diag)
{
    size_t count = grid->shared_option_count;
    char **words = arena_array(arena, count + grid->axes.axis_count + 1, sizeof *words);
    for (size_t i = 0; i < count; i++)
        words[i] = grid->shared_options[i];
    for (size_t a = 0; a < grid->axes.axis_count; a++)
        if (!grid->axes.axis[a].is_axis_of_cluster_numbers)
            words[count++] = arena_printf(arena, "--%s=%s", grid->axes.axis[a].key,
                                          grid_value_text(&grid->axes, point, a));
    for (size_t a = 0; a < grid->axes.axis_count; a++)
        if (grid->axes.axis[a].is_axis_of_cluster_numbers) {
            enum status status =
                add_number_to_cluster_word(words, count, grid->axes.axis[a].key,
                                           grid_value_text(&grid->axes, point, a), arena, diag);
            if (status != STATUS_OK)
                return status;
        }
    return options_parse(options, grid->option_sets, (int)count, words, diag);
}

/* ---- the identity of a grid ---- */

void sweep_grid_put_sweep_command(struct text *out, const struct sweep_grid *grid)
{
    struct text word = {0};
    text_puts(out, "longhaul sweep");
    for (size_t i = 0; i < grid->shared_option_count; i++)
        options_put_quoted_word(out, grid->shared_options[i]);
    for (size_t a = 0; a < grid->axes.axis_count; a++) {
        word.size = 0;
        text_printf(&word, "%s=%s", grid->axes.axis[a].key, grid->axes.axis[a].values_text);
        text_puts(out, " --vary");
        options_put_quoted_word(out, word.data);
    }
    text_release(&word);
}

/* Continues the digest *sum with the bytes of a text, and with a byte 0xff, which marks the end of the text. */
static void add_text_to_digest(uint64_t *sum, const char *data, size_t size)
{
    *sum = digest_add(digest_add(*sum, data, size), "\xff", 1);
}

/* Returns the sum of the digests of the recordings in a folder. A sum does not depend on the order in which the
 * system lists them. */
static uint64_t digest_of_recordings(const char *folder)
{
    uint64_t sum = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        struct text path = {0}, text = {0};
        text_printf(&path, "%s/%s", folder, entry->d_name);
        if (strstr(entry->d_name, ".json") != NULL &&
            text_read(&text, path.data, NULL) == STATUS_OK && text.size > 0)
            sum += digest_add(digest_add(DIGEST_OF_NO_BYTES, entry->d_name, strlen(entry->d_name)),
                              text.data, text.size);
        text_release(&path);
        text_release(&text);
    }
    if (dir != NULL)
        closedir(dir);
    return sum;
}

/* Continues the digest *sum with the bytes of the file that a value of an option names. The value is FILE, FILE:NUMBERS
 * or NAME:FILE; only the bytes of the file count. If it is a folder, adds digest_of_recordings() to *sum. Does nothing
 * if there is no such file or folder. */
static void add_file_to_digest(uint64_t *sum, const char *option)
{
    struct text text = {0};
    char path[4096];
    const char *colon = strchr(option, ':');
    snprintf(path, sizeof path, "%s", option);
    if (!path_exists(path) && colon != NULL)
        snprintf(path, sizeof path, "%s", colon + 1);
    if (!path_exists(path))
        snprintf(path, sizeof path, "%.*s", (int)strcspn(option, ":"), option);
    if (path_is_folder(path))
        *sum += digest_of_recordings(path);
    if (path_is_file(path) && text_read(&text, path, NULL) == STATUS_OK)
        add_text_to_digest(sum, text.data == NULL ? "" : text.data, text.size);
    text_release(&text);
}

static void add_command_to_digest(uint64_t *sum, const char *command)
{
    const uint64_t digest = record_command_digest(command);
    add_text_to_digest(sum, (const char *)&digest, sizeof digest);
}

uint64_t sweep_grid_identity(const struct sweep_grid *grid)
{
    static const char record_command[] = "--record-cmd=";
    static const char record_dir[] = "--record-dir="; /* the sweep itself fills this folder */
    uint64_t sum = DIGEST_OF_NO_BYTES;
    struct text columns = {0};
    add_text_to_digest(&sum, LONGHAUL_VERSION, strlen(LONGHAUL_VERSION));
    sweep_put_columns(&columns, &grid->axes); /* rows with other columns cannot be continued */
    add_text_to_digest(&sum, columns.data, columns.size);
    text_release(&columns);
    for (size_t i = 0; i < grid->shared_option_count; i++) {
        const char *equals = strchr(grid->shared_options[i], '=');
        add_text_to_digest(&sum, grid->shared_options[i], strlen(grid->shared_options[i]));
        if (strncmp(grid->shared_options[i], record_command, sizeof record_command - 1) == 0)
            add_command_to_digest(&sum, equals + 1);
        else if (equals != NULL &&
                 strncmp(grid->shared_options[i], record_dir, sizeof record_dir - 1) != 0)
            add_file_to_digest(&sum, equals + 1);
    }
    for (size_t a = 0; a < grid->axes.axis_count; a++) {
        add_text_to_digest(&sum, grid->axes.axis[a].key, strlen(grid->axes.axis[a].key));
        for (size_t i = 0; i < grid->axes.axis[a].value_count; i++) {
            if (strcmp(grid->axes.axis[a].key, "record-cmd") == 0)
                add_command_to_digest(&sum, grid->axes.axis[a].value[i]);
            add_text_to_digest(&sum, grid->axes.axis[a].value[i],
                               strlen(grid->axes.axis[a].value[i]));
            add_file_to_digest(&sum, grid->axes.axis[a].value[i]);
        }
    }
    return sum;
}

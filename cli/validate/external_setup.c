#include "cli/validate/external_setup.h"

#include "base/data_path.h"
#include "cli/setup/documents_options.h"
#include "cli/setup/options.h"
#include "cli/setup/read_setup.h"
#include "predict/documents/packed_sets.h"

#include <string.h>

/* A path that begins with this is that of a file that ships with the program. It is relative to the folder of the
 * program's data. */
static const char shipped[] = "traces/";

/* Returns the path of the file `name`: for a shipped file, that in the folder of the data; for the relative path of
 * another .json file, that below the folder of the CSV. Returns any other name unchanged, such as that of a preset. */
static const char *path_of_file_named_in_csv(struct arena *arena, const char *csv, const char *name)
{
    const char *slash = strrchr(csv, '/');
    size_t size = strlen(name);
    struct text path = {0};
    if (strncmp(name, shipped, strlen(shipped)) == 0) {
        if (data_path(&path, name, NULL) == STATUS_OK)
            name = arena_text(arena, path.data, path.size);
        text_release(&path);
        return name;
    }
    if (name[0] == '/' || slash == NULL || size < 5 || strcmp(name + size - 5, ".json") != 0)
        return name;
    return arena_printf(arena, "%.*s/%s", (int)(slash - csv), csv, name);
}

/* Replaces the names of files in options by their paths, as path_of_file_named_in_csv() finds them. */
static void resolve_paths_in_file_options(struct options *options, struct arena *arena,
                                          const char *csv)
{
    static const char *const files[] = {"model", "cluster", "costs"};
    for (size_t f = 0; f < ARRAY_LEN(files); f++)
        if (is_option_given(options, files[f]))
            options_replace_text(
                options, files[f],
                path_of_file_named_in_csv(arena, csv, options_text(options, files[f])));
}

/* Chooses the strategy's own profile if the args name none, since measurements were made with a framework. */
static void use_strategy_profile(struct options *options)
{
    if (!is_option_given(options, "profile"))
        options_replace_text(options, "profile", "published");
}

/* Options that the args of a row may have besides those that describe a configuration: the number of batches of
 * documents (documents_read_set_request() reads it), and the convention by which the row's MFU was computed. */
static const struct option other_rows[] = {
    {.name = "batches", .kind = OPTION_INTEGER, .low = 1, .high = 4096, .default_text = "1"},
    {.name = "mfu", .kind = OPTION_TEXT, .default_text = "longhaul"},
};
static const struct option_set other_options = {"prediction", other_rows, ARRAY_LEN(other_rows)};

/* Appends the text of --documents, "FILE" or "histogram:FILE". The path of a shipped file is completed by the folder of
 * the data. */
static enum status put_documents_option_text(struct text *out, const char *text, struct diag *diag)
{
    static const char histogram[] = "histogram:";
    if (strncmp(text, histogram, strlen(histogram)) == 0) {
        text_puts(out, histogram);
        text += strlen(histogram);
    }
    struct text path = {0};
    enum status status = STATUS_OK;
    if (strncmp(text, shipped, strlen(shipped)) == 0)
        status = data_path(&path, text, diag);
    else
        text_puts(&path, text);
    if (status == STATUS_OK)
        text_puts(out, path.data);
    text_release(&path);
    return status;
}

/* Sets setup->sampled_packing from the options about documents. What it points to lives in the setup's arena, since
 * the setup outlives the options. */
static enum status read_sampled_documents(struct setup *setup, const struct options *options,
                                          struct diag *diag)
{
    if (!is_option_given(options, "documents"))
        return documents_check_options(options, diag);
    struct packed_sets_request *sampled = arena_alloc(&setup->arena, sizeof *sampled);
    struct text lengths = {0};
    *sampled = documents_read_set_request(options);
    enum status status =
        put_documents_option_text(&lengths, options_text(options, "documents"), diag);
    if (status == STATUS_OK)
        sampled->lengths_text = arena_printf(&setup->arena, "%s", lengths.data);
    setup->sampled_packing = sampled;
    text_release(&lengths);
    return status;
}

enum status external_setup_read_args(struct setup *setup, enum mfu_convention *mfu,
                                     const char *args, const char *csv, struct diag *diag)
{
    static const struct option_set *const sets[] = {&setup_model_options,  &setup_cluster_options,
                                                    &setup_choice_options, &setup_documents_options,
                                                    &other_options,        NULL};
    struct options options = {0};
    char **word;
    int count;
    enum status status =
        options_split_words(&word, &count, &setup->arena, args, (struct loc){0}, diag);
    if (status == STATUS_OK)
        status = options_parse(&options, sets, count, word, diag);
    if (status == STATUS_OK && options.argument_count > 0)
        status = diag_error(diag, (struct loc){0}, STATUS_BAD_INPUT,
                            "column args must hold options and their values: '%s' is neither",
                            options.positional_arguments[0]);
    if (status == STATUS_OK) {
        resolve_paths_in_file_options(&options, &setup->arena, csv);
        use_strategy_profile(&options);
        status = setup_load(setup, &options, false, diag);
    }
    if (status == STATUS_OK && !mfu_find(options_text(&options, "mfu"), mfu))
        status = diag_error(diag, (struct loc){.name = "--mfu"}, STATUS_BAD_INPUT,
                            "there is no convention '%s'", options_text(&options, "mfu"));
    if (status == STATUS_OK)
        status = read_sampled_documents(setup, &options, diag);
    options_release(&options);
    return status;
}

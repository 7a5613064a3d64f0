#include "cli/validate/external_setup.h"

#include "cli/setup/options.h"
#include "cli/setup/read_setup.h"

#include <string.h>

/* Returns name; the relative path of a .json file is put below the CSV's folder. */
static const char *beside(struct arena *arena, const char *csv, const char *name)
{
    const char *slash = strrchr(csv, '/');
    size_t size = strlen(name);
    if (name[0] == '/' || slash == NULL || size < 5 || strcmp(name + size - 5, ".json") != 0)
        return name;
    return arena_printf(arena, "%.*s/%s", (int)(slash - csv), csv, name);
}

static void place_files(struct options *options, struct arena *arena, const char *csv)
{
    static const char *const files[] = {"model", "cluster", "costs"};
    size_t row = 0;
    for (size_t s = 0; options->sets[s] != NULL; s++)
        for (size_t i = 0; i < options->sets[s]->count; i++, row++)
            for (size_t f = 0; f < ARRAY_LEN(files); f++)
                if (options->value[row].given &&
                    strcmp(options->sets[s]->option[i].name, files[f]) == 0)
                    options->value[row].text = beside(arena, csv, options->value[row].text);
}

/* A framework ran what was measured: where args name no profile, it is the strategy's own. */
static void take_published(struct options *options)
{
    size_t row = 0;
    for (size_t s = 0; options->sets[s] != NULL; s++)
        for (size_t i = 0; i < options->sets[s]->count; i++, row++)
            if (!options->value[row].given &&
                strcmp(options->sets[s]->option[i].name, "profile") == 0)
                options->value[row].text = "published";
}

enum status external_setup(struct setup *setup, const struct external_run *row, struct diag *diag)
{
    static const struct option_set *const sets[] = {&setup_model_options, &setup_cluster_options,
                                                    &setup_choice_options, NULL};
    struct options options = {0};
    char **word;
    int count;
    enum status status = options_split_words(&word, &count, &setup->arena, row->text[EXTERNAL_ARGS],
                                             (struct loc){0}, diag);
    if (status == STATUS_OK)
        status = options_parse(&options, sets, count, word, diag);
    if (status == STATUS_OK && options.argument_count > 0)
        status =
            diag_error(diag, (struct loc){0}, STATUS_BAD_INPUT,
                       "args must hold only options: '%s' belongs to none", options.argument[0]);
    if (status == STATUS_OK) {
        place_files(&options, &setup->arena, row->at.name);
        take_published(&options);
        status = setup_load(setup, &options, false, diag);
    }
    options_release(&options);
    return status;
}

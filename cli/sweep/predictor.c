#include "cli/sweep/predictor.h"

#include "cli/common/idle_options.h"
#include "cli/setup/documents_options.h"
#include "cli/setup/read_setup.h"
#include "schedule/choices/strategies.h"
#include "schedule/config/resolve_config.h"
#include "sim/uniform/uniform.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const struct option rows[] = {
    {.name = "exact",
     .kind = OPTION_FLAG,
     .help = "simulate every rank; by default equal ranks are simulated once, and all ranks of a "
             "long ring are treated as equal"},
    {.name = "even-above",
     .kind = OPTION_COUNT,
     .value = "RANKS",
     .fallback = "64",
     .low = EVEN_ABOVE_MIN,
     .high = UNIFORM_NEVER,
     .help = "in rings of more than this many ranks, treat all ranks as equally fast: quicker, and "
             "within 2 % of the exact step"},
    {.name = "recording",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help =
         "predict the recorded step of a PyTorch program in FILE, or in a folder of one recording "
         "for each stage of a pipeline, in place of a model: vary the cluster, its numbers, "
         "--costs, --attention or this option"},
    {.name = "unfit-too",
     .kind = OPTION_FLAG,
     .help = "also simulate points that do not fit in memory, as if they did"},
};
const struct option_set sweep_point_options = {"points", rows, ARRAY_LEN(rows)};

void sweep_predictor_release(struct sweep_predictor *predictor)
{
    setup_release(&predictor->setup);
    text_release(&predictor->loaded);
    *predictor = (struct sweep_predictor){0};
}

/* The options that load the model and the cluster. The other options are choices. */
static const char *const loaded_options[] = {"model", "ignore",   "set",   "cluster",  "nodes",
                                             "gpus",  "loopback", "costs", "recording"};

/* Loads the cluster for a recorded step, which setup_load() takes as the argument of the command. */
static enum status load_recorded(struct setup *setup, const struct options *options,
                                 struct diag *diag)
{
    struct options with_file = *options; /* borrows all that it has */
    const char *file = options_text(options, "recording");
    with_file.argument = &file;
    with_file.argument_count = 1;
    return setup_load(setup, &with_file, true, diag);
}

static enum status load(struct sweep_predictor *predictor, const struct options *options,
                        struct diag *diag)
{
    struct text wanted = {0};
    if (options_given(options, "recording")) {
        setup_release(&predictor->setup);
        predictor->loaded.size = 0;
        return load_recorded(&predictor->setup, options, diag);
    }
    for (size_t i = 0; i < ARRAY_LEN(loaded_options); i++) {
        const char *text = options_text(options, loaded_options[i]);
        text_printf(&wanted, "%s\n", text == NULL ? "" : text);
    }
    bool same = predictor->loaded.size == wanted.size &&
                memcmp(predictor->loaded.data, wanted.data, wanted.size) == 0;
    if (same && options_given(options, "seq")) {
        text_release(&wanted);
        return setup_choose(&predictor->setup, options, diag);
    }
    setup_release(&predictor->setup);
    predictor->loaded.size = 0;
    enum status status = setup_load(&predictor->setup, options, false, diag);
    if (status == STATUS_OK)
        text_append(&predictor->loaded, wanted.data, wanted.size);
    text_release(&wanted);
    return status;
}

enum sweep_status sweep_predict(struct sweep_predictor *predictor, size_t point, struct text *row)
{
    const struct grid_axes *axes = &predictor->grid->axes;
    struct arena arena = {0};
    struct options options = {0};
    struct diag diag = {0};
    struct packed_documents packed = {0};
    enum sweep_status outcome;
    enum status status = sweep_grid_options(predictor->grid, point, &arena, &options, &diag);
    if (status == STATUS_OK)
        status = load(predictor, &options, &diag);
    if (status == STATUS_OK)
        status = documents_load(&packed, &predictor->setup, &options,
                                options_given(&options, "recording"), 1, &diag);
    if (status == STATUS_OK) {
        predictor->setup.even_above = (uint32_t)options_count(&options, "even-above");
        struct point_options point_options = {.exact = options_given(&options, "exact"),
                                              .unfit_too = options_given(&options, "unfit-too"),
                                              .recording = options_text(&options, "recording")};
        outcome = sweep_point_predict(row, axes, point, &predictor->setup, point_options);
    } else {
        outcome = sweep_status_of(status);
        sweep_put_refused(row, axes, point, outcome, &diag);
    }
    predictor->setup.request.documents = NULL;
    packed_documents_release(&packed);
    diag_release(&diag);
    options_release(&options);
    arena_release(&arena);
    return outcome;
}

/* Adds the options of a point and its choices. Returns whether further points could still change the notes. */
static bool add_idle(struct idle_options *idle, struct sweep_predictor *predictor, size_t point)
{
    struct arena arena = {0};
    struct options options = {0};
    struct choices choices;
    struct diag unread = {0};
    bool given = false;
    if (sweep_grid_options(predictor->grid, point, &arena, &options, &unread) == STATUS_OK) {
        given = idle_options_given(&options) && !options_given(&options, "recording");
        if (given && load(predictor, &options, &unread) == STATUS_OK &&
            resolve_choices(&choices, &predictor->setup.request, NULL, &unread) == STATUS_OK)
            idle_options_add(idle, &options, &predictor->setup.request, &choices);
    }
    diag_release(&unread);
    options_release(&options);
    arena_release(&arena);
    return given && (idle->given == 0 || !idle_options_none(idle));
}

void sweep_note_idle(const struct sweep_grid *grid, struct diag *note)
{
    struct idle_options idle = {0};
    struct sweep_predictor predictor = {.grid = grid};
    for (size_t point = 0; point < grid->points; point++)
        if (!add_idle(&idle, &predictor, point))
            break;
    idle_options_note(&idle, note);
    sweep_predictor_release(&predictor);
}

/* Refuses a file that can be read only once, where each point reads it. */
static enum status check_regular(const struct options *options, const char *option,
                                 struct diag *diag)
{
    const char *path = options_text(options, option);
    struct stat info;
    char name[32];
    snprintf(name, sizeof name, "--%s", option);
    if (path == NULL ||
        (strcmp(path, "-") != 0 && (stat(path, &info) != 0 || S_ISREG(info.st_mode))))
        return STATUS_OK;
    return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                      "each point of a sweep reads '%s': give a regular file", path);
}

enum status sweep_check_setup(const struct sweep_grid *grid, struct diag *diag)
{
    bool varies = false;
    for (size_t a = 0; a < grid->axes.count; a++)
        for (size_t i = 0; i < ARRAY_LEN(loaded_options); i++)
            varies |= grid->axes.axis[a].of_cluster ||
                      strcmp(grid->axes.axis[a].key, loaded_options[i]) == 0;
    struct arena arena = {0};
    struct options options = {0};
    struct setup setup = {0};
    enum status status = sweep_grid_options(grid, 0, &arena, &options, diag);
    if (status == STATUS_OK)
        status = strategies_check_names(options_text(&options, "strategy"),
                                        options_text(&options, "profile"), diag);
    const bool recorded = status == STATUS_OK && options_given(&options, "recording");
    if (status == STATUS_OK)
        status = check_regular(&options, "recording", diag);
    if (status == STATUS_OK)
        status = check_regular(&options, "routing", diag);
    if (status == STATUS_OK && (!varies || recorded))
        status = recorded ? load_recorded(&setup, &options, diag)
                          : setup_load(&setup, &options, false, diag);
    if (status == STATUS_OK)
        status = documents_check(&options, diag);
    setup_release(&setup);
    options_release(&options);
    arena_release(&arena);
    return status;
}

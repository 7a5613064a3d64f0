#include "cli/sweep/predictor.h"

#include "base/path.h"
#include "cli/common/idle_options.h"
#include "cli/setup/documents_options.h"
#include "cli/setup/options.h"
#include "cli/setup/read_setup.h"
#include "cli/sweep/record_command.h"
#include "schedule/choices/strategies.h"
#include "schedule/config/resolve_config.h"
#include "sim/uniform/uniform.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct option rows[] = {
    SETUP_EXACT_OPTION_INITIALIZERS,
    {.name = "recording",
     .kind = OPTION_TEXT,
     .value_name = "FILE",
     .help =
         "predict the recorded step of a PyTorch program in FILE, or in a folder of one recording "
         "for each stage of a pipeline, in place of a model: vary the cluster, its numbers, "
         "--costs, --attention or this option"},
    {.name = "record-cmd",
     .kind = OPTION_TEXT,
     .value_name = "COMMAND",
     .help = "make the recorded step of each point by a command of sh, in place of --recording: it "
             "finds the file to write, the world size (--gpus, --nodes), length (--seq) and batch "
             "(--batch) in LONGHAUL_RECORD_OUTPUT, _WORLD_SIZE, _LENGTH and _BATCH"},
    {.name = "record-dir",
     .kind = OPTION_TEXT,
     .value_name = "DIR",
     .unset_text = "recordings",
     .help = "with --record-cmd: the folder that keeps its recordings, which later points and "
             "sweeps use again"},
    {.name = "record-stages",
     .kind = OPTION_INTEGER,
     .value_name = "N",
     .unset_text = "one recording stands for all ranks",
     .low = 1,
     .high = INT32_MAX,
     .help = "with --record-cmd: the stages of the program's pipeline; the command runs once for "
             "the first rank of each, which it finds in LONGHAUL_RECORD_RANK, and finds N in "
             "LONGHAUL_RECORD_STAGES; the ranks of a stage follow each other"},
    {.name = "unfit-too",
     .kind = OPTION_FLAG,
     .help = "also simulate points that do not fit in memory, as if they did"},
};
const struct option_set sweep_point_options = {"points", rows, ARRAY_LEN(rows)};

void sweep_predictor_release(struct sweep_predictor *predictor)
{
    setup_release(&predictor->setup);
    text_release(&predictor->options_of_loaded_setup);
    text_release(&predictor->command);
    *predictor = (struct sweep_predictor){0};
}

/* The options from which the model and the cluster are loaded. If they are those of the point
 * before, only the choices are read again. */
static const struct option_set *const loaded_sets[] = {&setup_model_options, &setup_cluster_options,
                                                       NULL};

/* Appends the values of all options from which the model and the cluster are loaded, each with a byte 0 after it. */
static void put_model_and_cluster_option_values(struct text *out, const struct options *options)
{
    for (size_t s = 0; loaded_sets[s] != NULL; s++)
        for (size_t i = 0; i < loaded_sets[s]->option_count; i++) {
            const struct option *option = &loaded_sets[s]->option[i];
            const char *value = "";
            if (is_option_given(options, option->name))
                value = option->kind == OPTION_FLAG ? "given" : options_text(options, option->name);
            text_append(out, value, strlen(value) + 1);
        }
}

/* Loads the cluster for the recorded step in `file`. setup_load() finds that file as the argument of the command, so
 * it gets a copy of the options with this argument. */
static enum status load_setup_of_recorded_step(struct setup *setup, const struct options *options,
                                               const char *file, struct diag *diag)
{
    struct options with_file = *options; /* borrows all that it has */
    with_file.positional_arguments = &file;
    with_file.argument_count = 1;
    return setup_load(setup, &with_file, true, diag);
}

/* Returns the digest of a command and of the files that it names. The files are read again only if the command
 * differs from that of the call before. */
static uint64_t command_digest_of(struct sweep_predictor *predictor, const char *command)
{
    if (predictor->command.size == 0 || strcmp(predictor->command.data, command) != 0) {
        predictor->command.size = 0;
        text_puts(&predictor->command, command);
        predictor->command_digest = record_command_digest(command);
    }
    return predictor->command_digest;
}

/* Appends the path of the recording of a point. If the recording does not exist, the command of --record-cmd makes
 * it. --seq and --batch are only for the command, so they are withdrawn from the options of the point. */
static enum status put_recording_path_of_point(struct sweep_predictor *predictor,
                                               struct options *options, struct text *path,
                                               struct diag *diag)
{
    struct setup setup = {0};
    struct record_command run = {
        .command = options_text(options, "record-cmd"),
        .digest = command_digest_of(predictor, options_text(options, "record-cmd")),
        .folder = is_option_given(options, "record-dir") ? options_text(options, "record-dir")
                                                         : "recordings",
        .stage_count = is_option_given(options, "record-stages")
                           ? options_whole_number(options, "record-stages")
                           : 0,
        .sequence_tokens =
            is_option_given(options, "seq") ? options_whole_number(options, "seq") : 0,
        .batch_sequences =
            is_option_given(options, "batch") ? options_whole_number(options, "batch") : 0,
    };
    options_unset(options, "seq");
    options_unset(options, "batch");
    enum status status = load_setup_of_recorded_step(&setup, options, "-", diag);
    run.world_size = setup.cluster.gpus;
    run.device = setup.cluster.device.name;
    if (status == STATUS_OK)
        status = record_command_make_recordings(&run, path, diag);
    setup_release(&setup);
    return status;
}

/* Loads the setup of a point. If the options of its model and cluster are those of the point before, and --seq is
 * given, only the choices are read. recording: the file of the recorded step; NULL: a model is predicted. */
static enum status load_point_setup(struct sweep_predictor *predictor,
                                    const struct options *options, const char *recording,
                                    struct diag *diag)
{
    struct text wanted = {0};
    if (recording != NULL) {
        setup_release(&predictor->setup);
        predictor->options_of_loaded_setup.size = 0;
        return load_setup_of_recorded_step(&predictor->setup, options, recording, diag);
    }
    put_model_and_cluster_option_values(&wanted, options);
    bool same = predictor->options_of_loaded_setup.size == wanted.size &&
                memcmp(predictor->options_of_loaded_setup.data, wanted.data, wanted.size) == 0;
    if (same && is_option_given(options, "seq")) {
        text_release(&wanted);
        return setup_read_choices(&predictor->setup, options, diag);
    }
    setup_release(&predictor->setup);
    predictor->options_of_loaded_setup.size = 0;
    enum status status = setup_load(&predictor->setup, options, false, diag);
    if (status == STATUS_OK)
        text_append(&predictor->options_of_loaded_setup, wanted.data, wanted.size);
    text_release(&wanted);
    return status;
}

enum sweep_status sweep_predict_point(struct sweep_predictor *predictor, size_t point,
                                      struct text *row)
{
    const struct grid_axes *axes = &predictor->grid->axes;
    struct arena arena = {0};
    struct options options = {0};
    struct diag diag = {0};
    struct batches_of_packed_documents packed = {0};
    enum sweep_status outcome;
    enum status status = sweep_grid_fill_options(predictor->grid, point, &arena, &options, &diag);
    struct text made = {0};
    if (status == STATUS_OK && is_option_given(&options, "record-cmd"))
        status = put_recording_path_of_point(predictor, &options, &made, &diag);
    const char *recording = made.size > 0 ? made.data : options_text(&options, "recording");
    if (status == STATUS_OK)
        status = load_point_setup(predictor, &options, recording, &diag);
    if (status == STATUS_OK)
        status = documents_pack_batches(&packed, &predictor->setup, &options, recording != NULL, 1,
                                        &diag);
    if (status == STATUS_OK) {
        predictor->setup.uniform_above_ranks =
            (uint32_t)options_whole_number(&options, "even-above");
        struct point_options point_options = {.is_exact = is_option_given(&options, "exact"),
                                              .simulates_unfit =
                                                  is_option_given(&options, "unfit-too"),
                                              .recording = recording};
        outcome = sweep_point_predict(row, axes, point, &predictor->setup, point_options);
    } else {
        outcome = sweep_status_of_failure(status);
        sweep_put_refused_row(row, axes, point, outcome, &diag);
    }
    text_release(&made);
    predictor->setup.request.documents = NULL;
    batches_of_packed_documents_release(&packed);
    diag_release(&diag);
    options_release(&options);
    arena_release(&arena);
    return outcome;
}

/* Adds the options of a point and its choices. Returns false if no further point can change the notes: the steps are
 * recorded, no option that has notes is given, or all of them are used. */
static bool note_used_options_of_point(struct idle_options *idle, struct sweep_predictor *predictor,
                                       size_t point)
{
    struct arena arena = {0};
    struct options options = {0};
    struct choices choices;
    struct diag unread = {0};
    bool given = false;
    if (sweep_grid_fill_options(predictor->grid, point, &arena, &options, &unread) == STATUS_OK) {
        given = is_possibly_idle_option_given(&options) &&
                !is_option_given(&options, "recording") && !is_option_given(&options, "record-cmd");
        if (given && load_point_setup(predictor, &options, NULL, &unread) == STATUS_OK &&
            resolve_choices(&choices, &predictor->setup.request, NULL, &unread) == STATUS_OK)
            idle_options_add_configuration(idle, &options, &predictor->setup.request, &choices);
    }
    diag_release(&unread);
    options_release(&options);
    arena_release(&arena);
    return given && (idle->given_bits == 0 || !idle_options_are_all_used(idle));
}

void sweep_note_idle_options(const struct sweep_grid *grid, struct diag *note)
{
    struct idle_options idle = {0};
    struct sweep_predictor predictor = {.grid = grid};
    for (size_t point = 0; point < grid->point_count; point++)
        if (!note_used_options_of_point(&idle, &predictor, point))
            break;
    idle_options_add_notes(&idle, note);
    sweep_predictor_release(&predictor);
}

/* Refuses an option whose file can be read only once (a pipe), since each point reads it. folder: the option may also
 * name a folder. */
static enum status check_option_file_is_rereadable(const struct options *options,
                                                   const char *option, bool folder,
                                                   struct diag *diag)
{
    const char *path = options_text(options, option);
    if (path == NULL)
        return STATUS_OK;
    if (strcmp(path, "-") != 0 &&
        (!path_exists(path) || path_is_file(path) || (folder && path_is_folder(path))))
        return STATUS_OK; /* setup_load() reports what does not exist */
    return diag_error(diag, (struct loc){.name = options_name_with_dashes(option).text},
                      STATUS_BAD_INPUT, "each point of a sweep reads '%s': give a regular file",
                      path);
}

/* Checks the options of recorded steps. With --record-cmd, withdraws --seq and --batch, which are only for its
 * command. */
static enum status check_options_of_recorded_steps(struct options *options, struct diag *diag)
{
    const bool is_recorded_by_command = is_option_given(options, "record-cmd");
    if (is_option_given(options, "record-dir") && !is_recorded_by_command)
        return diag_error(diag, (struct loc){.name = "--record-dir"}, STATUS_BAD_INPUT,
                          "keeps the recordings of --record-cmd, which is not given");
    if (is_option_given(options, "record-stages") && !is_recorded_by_command)
        return diag_error(diag, (struct loc){.name = "--record-stages"}, STATUS_BAD_INPUT,
                          "is what --record-cmd records, which is not given; the recordings of a "
                          "pipeline's stages that are there are a folder: --recording FOLDER");
    if (is_recorded_by_command) {
        options_unset(options, "seq");
        options_unset(options, "batch");
    }
    return options_refuse_both(options, "recording", "record-cmd", diag);
}

/* Returns whether points differ in options that load the model or the cluster. */
static bool do_load_options_vary(const struct grid_axes *axes)
{
    for (size_t a = 0; a < axes->axis_count; a++)
        if (axes->axis[a].is_axis_of_cluster_numbers ||
            options_find(loaded_sets, axes->axis[a].key) != NULL)
            return true;
    return false;
}

/* Loads a setup and releases it again, so that its faults are reported before the first point: for recorded steps, that
 * of the first point; otherwise that which all points share, if no axis changes the model or the cluster. */
static enum status check_shared_setup_loads(const struct sweep_grid *grid,
                                            const struct options *options, struct diag *diag)
{
    struct setup setup = {0};
    enum status status = STATUS_OK;
    const char *recording =
        is_option_given(options, "record-cmd") ? "-" : options_text(options, "recording");
    if (recording != NULL)
        status = load_setup_of_recorded_step(&setup, options, recording, diag);
    else if (!do_load_options_vary(&grid->axes))
        status = setup_load(&setup, options, false, diag);
    setup_release(&setup);
    return status;
}

enum status sweep_check_setup(const struct sweep_grid *grid, struct diag *diag)
{
    struct arena arena = {0};
    struct options options = {0};
    enum status status = sweep_grid_fill_options(grid, 0, &arena, &options, diag);
    if (status == STATUS_OK)
        status = strategies_check_both_names_exist(options_text(&options, "strategy"),
                                                   options_text(&options, "profile"), diag);
    if (status == STATUS_OK)
        status = check_options_of_recorded_steps(&options, diag);
    if (status == STATUS_OK)
        status = check_option_file_is_rereadable(&options, "recording", true, diag);
    if (status == STATUS_OK)
        status = check_option_file_is_rereadable(&options, "routing", false, diag);
    if (status == STATUS_OK)
        status = check_shared_setup_loads(grid, &options, diag);
    if (status == STATUS_OK)
        status = documents_check_options(&options, diag);
    options_release(&options);
    arena_release(&arena);
    return status;
}

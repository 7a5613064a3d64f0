#include "cli/setup/read_setup.h"

#include "base/text.h"
#include "cli/setup/options.h"
#include "predict/own_runs.h"
#include "predict/setup/at_most.h"
#include "predict/setup/choice_rows.h"
#include "predict/setup/partition_option.h"
#include "predict/setup/subsequences.h"
#include "predict/similarity.h"
#include "schedule/choices/strategies.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static enum status read_gpu_sharing(struct setup *setup, const struct options *options,
                                    struct diag *diag)
{
    if (!is_option_given(options, "loopback"))
        return STATUS_OK;
    enum status status = options_refuse_both(options, "loopback", "gpus", diag);
    if (status == STATUS_OK)
        status = options_refuse_both(options, "loopback", "nodes", diag);
    return status == STATUS_OK ? setup_place_ranks_on_one_gpu(
                                     setup, options_whole_number(options, "loopback"), diag)
                               : status;
}

/* Refuses the options of a set, which make no sense for a schedule from a file, except those in except[]. */
static enum status refuse_options_of_set_except(const struct options *options,
                                                const struct option_set *set,
                                                const char *const *except, size_t excepted,
                                                struct diag *diag)
{
    for (size_t i = 0; i < set->option_count; i++) {
        const char *name = set->option[i].name;
        bool taken = false;
        for (size_t k = 0; k < excepted; k++)
            taken |= strcmp(name, except[k]) == 0;
        if (is_option_given(options, name) && !taken) {
            const struct option_name_with_dashes dashed_name = options_name_with_dashes(name);
            if (strcmp(options->positional_arguments[0], "-") == 0)
                return diag_error(diag, (struct loc){.name = dashed_name.text}, STATUS_BAD_INPUT,
                                  "applies to schedules that longhaul builds; the choices of one "
                                  "that is read, or of a recorded step, are already made");
            return diag_error(diag, (struct loc){.name = dashed_name.text}, STATUS_BAD_INPUT,
                              "applies to schedules that longhaul builds; the choices of the "
                              "schedule file '%s' are already made",
                              options->positional_arguments[0]);
        }
    }
    return STATUS_OK;
}

static enum status require_option(const struct options *options, const char *name, const char *what,
                                  struct diag *diag)
{
    if (is_option_given(options, name))
        return STATUS_OK;
    return diag_error(diag, (struct loc){.name = options_name_with_dashes(name).text},
                      STATUS_BAD_INPUT, "is missing: %s", what);
}

/* Returns the row of the option for which an alias is another name: both store their value in the same member of the
 * request. */
static const struct choice_row *row_that_alias_stands_for(const struct choice_row *alias)
{
    const struct choice_row *row = choice_rows;
    while (row->request.size == 0 || row->request.offset != alias->request.offset)
        row++;
    return row;
}

/* Stores the value of a choice's option in the request, if it was given or has a fallback. */
static void read_choice(struct request *r, const struct choice_row *row,
                        const struct options *options)
{
    const char *name = row->option->name;
    int64_t value = 0;
    switch (row->option->kind) {
    case OPTION_FLAG:
        value = is_option_given(options, name);
        break;
    case OPTION_TEXT:
        break;
    case OPTION_CHOICE:
        value = options_index_of_choice(options, name);
        break;
    default:
        value = options_whole_number(options, name);
    }
    if (is_option_given(options, name) || row->option->default_text != NULL)
        choice_row_store(row, r, value,
                         row->option->kind == OPTION_TEXT ? options_text(options, name) : NULL);
}

static enum status read_choices(struct setup *setup, const struct options *options,
                                struct diag *diag)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < CHOICE_NAME_COUNT; i++) {
        const struct choice_row *row = &choice_rows[i];
        if (row->is_alias)
            status = options_refuse_both(options, row->option->name,
                                         row_that_alias_stands_for(row)->option->name, diag);
    }
    for (size_t i = 0; status == STATUS_OK && i < CHOICE_NAME_COUNT; i++) {
        const struct choice_row *row = &choice_rows[i];
        if (row->read != NULL)
            status = row->read(setup, options_text(options, row->option->name), diag);
        else if (row->option != NULL)
            read_choice(&setup->request, row, options);
    }
    return status;
}

enum status setup_refuse_for_schedule_file(const struct options *options, struct diag *diag)
{
    enum status status = refuse_options_of_set_except(options, &setup_model_options, NULL, 0, diag);
    if (status == STATUS_OK)
        status = refuse_options_of_set_except(options, &setup_choice_options, NULL, 0, diag);
    return status == STATUS_OK
               ? refuse_options_of_set_except(options, &setup_cluster_options, NULL, 0, diag)
               : status;
}

/* Loads the choices that the options make; the strategy makes those that are left open. */
static enum status load_choices(struct setup *setup, const struct options *options,
                                struct diag *diag)
{
    struct request *r = &setup->request;
    /* Both options say which tokens a rank holds. This is checked here because later a given layout cannot be told from
     * the default. */
    enum status status = options_refuse_both(options, "core-plan", "layout", diag);
    if (status == STATUS_OK)
        status = read_choices(setup, options, diag);
    setup->is_partition_given = is_option_given(options, "partition");
    subsequences_set_open_choices(r, setup);
    return status;
}

enum status setup_read_choices(struct setup *setup, const struct options *options,
                               struct diag *diag)
{
    setup_leave_request_open(setup);
    return load_choices(setup, options, diag);
}

/* Reports a file that does not exist or cannot be read. It is called before the options are checked, so that its
 * message is not preceded by one about options. "-" is standard input. */
static enum status check_file_exists(const char *path, struct diag *diag)
{
    if (strcmp(path, "-") == 0 || access(path, R_OK) == 0)
        return STATUS_OK;
    return diag_error(diag, (struct loc){.name = path}, STATUS_SYSTEM, "cannot open: %s",
                      strerror(errno));
}

/* Loads the model that --model names, and applies the options that ignore or set parts of it. */
static enum status load_model(struct setup *setup, const struct options *options, struct diag *diag)
{
    setup->takes_experts_as_dense = is_option_given(options, "as-dense");
    return setup_load_model(setup, options_text(options, "model"), options_text(options, "ignore"),
                            options_text(options, "set"), diag);
}

/* Stores the name of a framework that has no profile. The name of one that has a profile is an error. */
static enum status set_framework_that_has_no_profile(struct setup *setup, const char *name,
                                                     struct diag *diag)
{
    size_t count;
    const struct profile *profiles = profiles_list(&count);
    const struct loc at = {.name = "--framework"};
    if (name[0] == '\0' || strlen(name) >= SIMILARITY_NAME)
        return diag_error(diag, at, STATUS_BAD_INPUT, "'%s': expected a name of 1 to %d bytes",
                          name, SIMILARITY_NAME - 1);
    for (size_t i = 0; i < count; i++)
        if (strcmp(profiles[i].name, name) == 0)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "%s has a profile of its own; give --profile %s in its place", name,
                              name);
    setup->real_framework = arena_text(&setup->arena, name, strlen(name));
    return STATUS_OK;
}

static enum status load_cluster_and_costs(struct setup *setup, const struct options *options,
                                          struct diag *diag)
{
    enum status status = setup_load_cluster(setup, options_text(options, "cluster"),
                                            options_whole_number(options, "nodes"),
                                            options_whole_number(options, "gpus"), diag);
    if (status == STATUS_OK)
        status = setup_load_costs(setup, options_text(options, "costs"), diag);
    if (status == STATUS_OK && is_option_given(options, "framework"))
        status = set_framework_that_has_no_profile(setup, options_text(options, "framework"), diag);
    if (status == STATUS_OK && is_option_given(options, "at-most"))
        status = at_most_read_reasons(&setup->mask_of_reasons_run_does_less,
                                      options_text(options, "at-most"), diag);
    if (status == STATUS_OK && is_option_given(options, "measured"))
        status = own_runs_load(&setup->evidence.own_runs, options_text(options, "measured"), diag);
    return status;
}

static const char needed_model[] = "a preset or file; `longhaul list models`";
static const char needed_cluster[] = "a preset, file or line; `longhaul list clusters`";

enum status setup_load_without_length(struct setup *setup, const struct options *options,
                                      struct diag *diag)
{
    enum status status = require_option(options, "model", needed_model, diag);
    if (status == STATUS_OK)
        status = require_option(options, "cluster", needed_cluster, diag);
    if (status == STATUS_OK)
        status = load_model(setup, options, diag);
    if (status == STATUS_OK)
        status = load_cluster_and_costs(setup, options, diag);
    return status == STATUS_OK ? setup_read_choices(setup, options, diag) : status;
}

enum status setup_load(struct setup *setup, const struct options *options, bool from_file,
                       struct diag *diag)
{
    /* accepted with a schedule file, too, since times depend on them */
    static const char *const of_files[] = {"attention", "profile"};
    enum status status;
    if (from_file) {
        status = check_file_exists(options->positional_arguments[0], diag);
        if (status == STATUS_OK)
            status = refuse_options_of_set_except(options, &setup_model_options, NULL, 0, diag);
        if (status == STATUS_OK)
            status = refuse_options_of_set_except(options, &setup_choice_options, of_files,
                                                  ARRAY_LEN(of_files), diag);
    } else {
        status = require_option(options, "model", needed_model, diag);
        if (status == STATUS_OK)
            status = require_option(options, "seq", "tokens of one sequence, such as 128K", diag);
    }
    if (status == STATUS_OK)
        status = require_option(options, "cluster", needed_cluster, diag);
    if (status == STATUS_OK && !from_file)
        status = load_model(setup, options, diag);
    if (status == STATUS_OK)
        status = load_cluster_and_costs(setup, options, diag);
    if (status == STATUS_OK)
        status = read_gpu_sharing(setup, options, diag);
    if (status != STATUS_OK)
        return status;
    setup_leave_request_open(setup);
    if (!from_file)
        return load_choices(setup, options, diag);
    setup->request.attention_impl = options_index_of_choice(options, "attention");
    if (is_option_given(options, "profile"))
        setup->request.profile = options_text(options, "profile");
    return STATUS_OK;
}

/* Sets the cluster of a run to the one of --cluster or, without it, to one node with the GPUs that --loopback or --gpus
 * gives, else one GPU. Without --cluster, refuses --nodes, and --loopback together with --gpus. */
static enum status set_gpu_count_of_run(struct setup *setup, const struct options *options,
                                        struct diag *diag)
{
    if (is_option_given(options, "cluster")) {
        enum status status = setup_load_cluster(setup, options_text(options, "cluster"),
                                                options_whole_number(options, "nodes"),
                                                options_whole_number(options, "gpus"), diag);
        return status == STATUS_OK ? read_gpu_sharing(setup, options, diag) : status;
    }
    if (is_option_given(options, "nodes"))
        return diag_error(diag, (struct loc){.name = "--nodes"}, STATUS_BAD_INPUT,
                          "needs --cluster, which gives the number of GPUs in a node");
    enum status status = options_refuse_both(options, "loopback", "gpus", diag);
    if (status != STATUS_OK)
        return status;
    setup->cluster.gpus = is_option_given(options, "loopback")
                              ? options_whole_number(options, "loopback")
                          : is_option_given(options, "gpus") ? options_whole_number(options, "gpus")
                                                             : 1;
    setup->cluster.gpus_per_node = setup->cluster.gpus;
    return STATUS_OK;
}

enum status setup_load_run(struct setup *setup, const struct options *options, bool from_file,
                           struct diag *diag)
{
    enum status status = STATUS_OK;
    if (from_file) {
        status = refuse_options_of_set_except(options, &setup_choice_options, NULL, 0, diag);
        if (status == STATUS_OK)
            status = refuse_options_of_set_except(options, &setup_cluster_options, NULL, 0, diag);
    } else {
        status = require_option(options, "model", needed_model, diag);
        if (status == STATUS_OK)
            status = require_option(options, "seq", "tokens of one sequence, such as 4K", diag);
    }
    if (status == STATUS_OK && is_option_given(options, "model"))
        status = load_model(setup, options, diag);
    if (status != STATUS_OK || from_file)
        return status;
    status = set_gpu_count_of_run(setup, options, diag);
    setup_leave_request_open(setup);
    if (status == STATUS_OK)
        status = load_choices(setup, options, diag);
    struct request *r = &setup->request;
    if (status == STATUS_OK && r->must_compute_offload_hidden_bytes && setup->offload_given)
        return diag_error(
            diag, (struct loc){.name = "--offload-ratio"}, STATUS_BAD_INPUT,
            "'adaptive' needs the costs of a cluster, and a run has none; 0.5 would do");
    /* A run has no costs, from which an adaptive ratio is computed. So a strategy whose default is adaptive offloads
     * everything. */
    r->must_compute_offload_hidden_bytes = false;
    r->must_compute_shared_units = false; /* likewise, no units are shared by default */
    if (status == STATUS_OK && r->length_rule == SUBSEQUENCES_OF_EQUAL_TIME)
        return diag_error(diag, (struct loc){.name = "--partition"}, STATUS_BAD_INPUT,
                          "'time' needs the costs of a cluster, and a run has none; flops "
                          "would do");
    return status == STATUS_OK ? setup_fill_open_fields(setup, diag) : status;
}

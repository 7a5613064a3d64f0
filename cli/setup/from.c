#include "cli/setup/from.h"

#include "base/units.h"
#include "cli/setup/options.h"
#include "models/cluster.h"
#include "predict/launch/launch.h"
#include "predict/launch/table_file.h"
#include "predict/setup/choice_rows.h"
#include "schedule/choices/strategies.h"
#include "traces/step_recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 80, INDENT = 2 };

/* ---- printing ---- */

/* Appends words in lines of at most WIDTH columns. column: the columns that the first line already has; indent: the
 * blanks before each further line; end: the text at the end of each line that is continued. */
static void put_wrapped(struct text *out, const char *words, size_t indent, size_t column,
                        const char *end)
{
    size_t room = WIDTH - strlen(end);
    bool first = true;
    for (words += strspn(words, " "); *words != '\0'; words += strspn(words, " ")) {
        size_t size = 0;
        bool quoted = false;
        for (; words[size] != '\0' && (quoted || words[size] != ' '); size++)
            quoted = words[size] == '\'' ? !quoted && size == 0 : quoted;
        if (!first && column + 1 + size > room) {
            text_printf(out, "%s\n%*s", end, (int)indent, "");
            column = indent;
            first = true;
        }
        text_printf(out, "%s%.*s", first ? "" : " ", (int)size, words);
        column += size + !first;
        first = false;
        words += size;
    }
    text_putc(out, '\n');
}

static bool is_named_before(const struct launch *launch, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (launch->remark[k].kind == launch->remark[i].kind &&
            strcmp(launch->remark[k].name, launch->remark[i].name) == 0)
            return true;
    return false;
}

/* Appends the name of a remark and, if it is known, the line at which its setting stands:
 * "--fp8-format hybrid (line 86)". */
static void put_remark_place(struct text *out, const struct launch_remark *remark)
{
    text_puts(out, remark->name);
    if (remark->place.line > 0)
        text_printf(out, " (line %u)", remark->place.line);
}

static bool has_remark_same_text(const struct launch_remark *remark, const char *text)
{
    return remark->text != NULL && strcmp(remark->text, text) == 0;
}

/* Prints remark i together with those after it that have the same kind and text: "not modelled --a
 * (line 1), --b (line 2): ...". */
static void put_remarks_of_same_text(struct text *out, const char *title,
                                     const struct launch *launch, size_t i)
{
    struct text line = {0};
    const struct launch_remark *first = &launch->remark[i];
    put_remark_place(&line, first);
    for (size_t k = i + 1; first->text != NULL && k < launch->remark_count; k++)
        if (launch->remark[k].kind == first->kind &&
            has_remark_same_text(&launch->remark[k], first->text) && !is_named_before(launch, k)) {
            text_puts(&line, ", ");
            put_remark_place(&line, &launch->remark[k]);
        }
    if (first->text != NULL && first->text[0] != '\0')
        text_printf(&line, ": %s", first->text);
    text_printf(out, "%*s%-13s ", INDENT, "", title);
    put_wrapped(out, line.data, INDENT + 14, INDENT + 14, "");
    text_release(&line);
}

static bool is_text_printed_before(const struct launch *launch, size_t i)
{
    for (size_t k = 0; k < i && launch->remark[i].text != NULL; k++)
        if (launch->remark[k].kind == launch->remark[i].kind &&
            has_remark_same_text(&launch->remark[k], launch->remark[i].text))
            return true;
    return is_named_before(launch, i);
}

static void put_remark_names(struct text *out, const char *title, const struct launch *launch,
                             enum launch_remark_kind kind)
{
    struct text names = {0};
    size_t count = 0;
    for (size_t i = 0; i < launch->remark_count; i++)
        if (launch->remark[i].kind == kind && !is_named_before(launch, i))
            text_printf(&names, "%s%s", count++ > 0 ? ", " : "", launch->remark[i].name);
    if (count > 0) {
        text_printf(out, "%*s%-13s ", INDENT, "", title);
        put_wrapped(out, names.data, INDENT + 14, INDENT + 14, "");
    }
    text_release(&names);
}

static void put_remarks(struct text *out, const struct launch *launch)
{
    static const struct {
        enum launch_remark_kind kind;
        const char *title;
    } rows[] = {{REMARK_KNOWN_IN_RUN_ONLY, "missing"},
                {REMARK_ASSUMED, "assumed"},
                {REMARK_UNMODELLED, "not modelled"}};
    for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
        const char *title = rows[r].title;
        for (size_t i = 0; i < launch->remark_count; i++)
            if (launch->remark[i].kind == rows[r].kind && !is_text_printed_before(launch, i)) {
                put_remarks_of_same_text(out, title, launch, i);
                title = "";
            }
    }
    put_remark_names(out, "unknown", launch, REMARK_UNKNOWN);
    put_remark_names(out, "ignored", launch, REMARK_IGNORED);
}

/* ---- the options of launch files ---- */

/* Pairs of options that set the same choice. Launch files give the second of them. */
static const char *const same[][2] = {
    {"ulysses", "hp"},      {"zero", "weights"}, {"checkpoint", "activations"},
    {"compile", "kernels"}, {"nodes", "gpus"},   {"loopback", "gpus"}};
/* The options that a search takes from launch files. For the others it tries values itself. */
static const char *const workload[] = {"model", "gpus",   "seq",       "batch",
                                       "dtype", "states", "framework", "at-most"};

static bool is_given(const struct options *options, const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(same); i++)
        if (strcmp(same[i][1], name) == 0 && is_option_given(options, same[i][0]))
            return true;
    return is_option_given(options, name);
}

/* Returns whether a sweep varies the option. */
static bool is_option_varied_by_sweep(const struct options *options, const char *name)
{
    size_t count, size = strlen(name);
    if (options_find(options->sets, "vary") == NULL)
        return false;
    const char *const *vary = options_list(options, "vary", &count);
    for (size_t i = 0; i < count; i++) {
        if (strncmp(vary[i], name, size) == 0 && vary[i][size] == '=')
            return true;
        for (size_t k = 0; k < ARRAY_LEN(same); k++)
            if (strcmp(same[k][1], name) == 0 &&
                strncmp(vary[i], same[k][0], strlen(same[k][0])) == 0 &&
                vary[i][strlen(same[k][0])] == '=')
                return true;
    }
    return false;
}

static bool is_workload_option(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(workload); i++)
        if (strcmp(workload[i], name) == 0)
            return true;
    return false;
}

/* Returns whether the command is `plan` and searches for the longest sequence. */
static bool is_plan_for_longest_length(const struct options *options)
{
    if (options_find(options->sets, "longest") == NULL)
        return false;
    const char *goal = options_text(options, "goal");
    return is_option_given(options, "longest") || (goal != NULL && strcmp(goal, "longest") == 0);
}

/* Fails if the text is not one that the option of a choice accepts. */
static enum status check_choice_text(const struct option *option, const char *value,
                                     struct diag *diag)
{
    struct setup scratch = {0};
    enum status status = STATUS_OK;
    if (strcmp(option->name, "strategy") == 0)
        return strategies_check_both_names_exist(value, NULL, diag);
    if (strcmp(option->name, "profile") == 0)
        return strategies_check_both_names_exist(NULL, value, diag);
    setup_leave_request_open(&scratch);
    for (int i = 0; i < CHOICE_NAME_COUNT; i++)
        if (choice_rows[i].option == option && choice_rows[i].read != NULL)
            status = choice_rows[i].read(&scratch, value, diag);
    setup_release(&scratch);
    return status;
}

/* Fails, with a message for the place `at`, if the option does not accept the value. column: a text that begins the
 * message. */
static enum status check_value(const struct option *option, const char *value, struct loc at,
                               const char *column, struct diag *diag)
{
    struct diag found = {0};
    enum status status = options_check_value(option, value, &found);
    size_t size;
    if (status == STATUS_OK && option->kind == OPTION_TEXT)
        status = check_choice_text(option, value, &found);
    const char *message = status == STATUS_OK ? NULL : diag_first_message(&found, &size);
    if (message != NULL)
        status =
            diag_error(diag, at, status, "%s--%s: %.*s", column, option->name, (int)size, message);
    diag_release(&found);
    return status;
}

/* Checks the words of a row, which have the form "pattern=result". A result is a value of the option, or one of "-" and
 * "?", which are not checked. */
static enum status check_words_of_translation_row(const struct option *option, const char *words,
                                                  struct loc at, struct diag *diag)
{
    enum status status = STATUS_OK;
    struct text result = {0};
    for (words += strspn(words, " "); *words != '\0' && status == STATUS_OK;
         words += strspn(words, " ")) {
        size_t size = strcspn(words, " "), equals = strcspn(words, "=");
        if (equals >= size) {
            status = diag_error(diag, at, STATUS_BAD_INPUT,
                                "column 'words': '%.*s' is no pattern=result", (int)size, words);
            break;
        }
        result.size = 0;
        text_append(&result, words + equals + 1, size - equals - 1);
        text_puts(&result, "");
        if (strcmp(result.data, "-") != 0 && strcmp(result.data, "?") != 0)
            status = check_value(option, result.data, at, "column 'words': ", diag);
        words += size;
    }
    text_release(&result);
    return status;
}

/* Checks the values of the field `profile`, which are those of --profile. */
static enum status check_profile_of_table_row(const struct table_row *row, struct loc at,
                                              struct diag *diag)
{
    const struct option *option = &choice_options[CHOICE_OPTION_profile];
    return row->use == TABLE_USE_UNSET
               ? check_value(option, row->words, at, "column 'words': ", diag)
               : check_words_of_translation_row(option, row->words, at, diag);
}

/* Checks the option that a row of a table file names, and the values that the row gives it. */
static enum status check_table_file_row(const struct table_row *row, struct loc at,
                                        struct diag *diag)
{
    static const struct option_set *const sets[] = {&setup_choice_options, NULL};
    for (size_t i = 0; i < ARRAY_LEN(same); i++)
        if (strcmp(row->option, same[i][0]) == 0)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "column 'to': '--%s' is another name: give '--%s' and its values",
                              same[i][0], same[i][1]);
    const struct option *option = options_find(sets, row->option);
    /* a row that only writes settings: its words are values of the framework's setting, not of the option */
    if (option != NULL && row->use == TABLE_USE_WRITTEN)
        return STATUS_OK;
    if (option != NULL)
        return check_words_of_translation_row(option, row->words, at, diag);
    const char **names = heap_alloc(setup_choice_options.option_count, sizeof *names);
    for (size_t i = 0; i < setup_choice_options.option_count; i++)
        names[i] = setup_choice_options.option[i].name;
    const char *near = diag_nearest(row->option, names, setup_choice_options.option_count);
    free((void *)names);
    if (near != NULL)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "column 'to': '--%.60s' is not among the choices of a step; did you mean "
                          "'--%s'?",
                          row->option, near);
    return diag_error(diag, at, STATUS_BAD_INPUT,
                      "column 'to': '--%.60s' is not among the choices of a step, which `longhaul "
                      "help predict` lists",
                      row->option);
}

static enum status check_launch_tables(const struct launch_tables *tables, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < tables->file_count; i++) {
        const struct launch_table_file *file = tables->file[i];
        for (size_t k = 0; k < file->row_count && status == STATUS_OK; k++) {
            const struct table_row *row = &file->row[k];
            struct loc at = {.name = file->path, .line = row->line};
            if (row->option != NULL)
                status = check_table_file_row(row, at, diag);
            else if (row->field == LAUNCH_PROFILE)
                status = check_profile_of_table_row(row, at, diag);
        }
    }
    return status;
}

/* Appends an option and its value: "--name value". */
static void put_option(struct text *out, const struct launch_option *option)
{
    text_printf(out, " --%s", option->name);
    if (option->value != NULL)
        options_put_quoted_word(out, option->value);
}

struct launch_files_read {
    struct launch_tables launch_table_files;
    struct launch launch;
    /* options with their values. applied_options: those of the files that are used; replaced_options: those of the
     * files that the command line or an axis of a sweep gives instead; searched_options: those of the files for
     * which a search tries values */
    struct text applied_options, replaced_options, searched_options;
};

static enum status apply_launch_options(struct launch_files_read *from, struct options *options,
                                        bool search, const struct refused_option *refused,
                                        struct diag *diag)
{
    enum status status = STATUS_OK;
    bool length = is_plan_for_longest_length(options);
    for (size_t i = 0; i < from->launch.option_count && status == STATUS_OK; i++) {
        const struct launch_option *option = &from->launch.option[i];
        bool searched = search && !is_workload_option(option->name);
        if (options_is_refused(refused, option->name))
            continue;
        if ((length && strcmp(option->name, "seq") == 0) || searched) {
            put_option(&from->searched_options, option);
        } else if (is_given(options, option->name) ||
                   is_option_varied_by_sweep(options, option->name)) {
            put_option(&from->replaced_options, option);
        } else {
            put_option(&from->applied_options, option);
            if (option->value != NULL && option->place.line > 0)
                status = check_value(options_find(options->sets, option->name), option->value,
                                     option->place, "", diag);
            if (status == STATUS_OK)
                status = options_set_as_if_given(options, option->name, option->value, diag);
        }
    }
    return status;
}

/* Finds the number of GPUs: that of --gpus or --loopback, or that of --nodes nodes of --cluster; else that of the
 * launch files; else that of --cluster; 0: none of these states it. If --cluster is given, sets *gpu_bytes to the
 * memory of a GPU that a process may use. */
static enum status find_stated_gpus(const struct options *options, const struct launch *launch,
                                    int64_t *gpus, double *gpu_bytes, struct diag *diag)
{
    struct arena arena = {0};
    struct cluster cluster;
    enum status status = STATUS_OK;
    const char *name = options_text(options, "cluster");
    int64_t nodes = options_whole_number(options, "nodes");
    *gpus = options_whole_number(options, "gpus");
    if (*gpus == 0 && is_option_given(options, "loopback"))
        *gpus = options_whole_number(options, "loopback");
    if (*gpus == 0 && nodes == 0)
        *gpus = launch_gpu_count(launch);
    if (name != NULL) {
        size_t before = diag->size;
        status = cluster_load(&cluster, &arena, name, diag);
        diag_add_place_to_errors(diag, before, "--cluster");
        if (status == STATUS_OK && *gpus == 0)
            *gpus = nodes > 0 ? nodes * cluster.gpus_per_node : cluster.gpus;
        if (status == STATUS_OK)
            *gpu_bytes = cluster.device.memory_bytes - cluster.device.driver_bytes;
    }
    arena_release(&arena);
    return status;
}

/* Returns whether a file is a table that describes a framework of the user's own. */
static bool is_path_of_launch_table(const char *path)
{
    size_t size = strlen(path);
    return size > 4 && strcmp(path + size - 4, ".csv") == 0;
}

static enum status read_launch_files(struct launch *launch, struct launch_tables *tables,
                                     struct options *options, struct diag *diag)
{
    size_t count;
    const char *const *files = options_list(options, "from", &count);
    enum status status = launch_tables_load(tables, diag);
    launch->tables = tables;
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        if (is_path_of_launch_table(files[i]))
            status = launch_tables_add_file(tables, files[i], diag);
    if (status == STATUS_OK)
        status = check_launch_tables(tables, diag);
    for (size_t i = 0; i < options->argument_count && status == STATUS_OK; i++)
        status = launch_read(launch, options->positional_arguments[i], diag);
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        if (!is_path_of_launch_table(files[i]))
            status = launch_read(launch, files[i], diag);
    return status;
}

/* Appends what was read from the files: a line such as "from Megatron-LM, as options:", the options, and the
 * remarks. */
static void put_launch_report(struct launch_files_read *from, struct text *out)
{
    const char *between = "";
    text_puts(out, "from ");
    for (int i = 0; i < LAUNCH_FRAMEWORK_COUNT; i++)
        if (from->launch.has_read_framework_file[i] && i != LAUNCH_LAUNCHER_PROGRAM) {
            text_printf(out, "%s%s", between,
                        launch_framework_name(&from->launch, (enum launch_framework)i));
            between = " and ";
        }
    text_puts(out, *between == '\0' ? "a model's file, as options:\n" : ", as options:\n");
    text_printf(out, "%*s", INDENT, "");
    put_wrapped(out, from->applied_options.size > 0 ? from->applied_options.data : " none",
                2 * INDENT, INDENT, " \\");
    if (from->replaced_options.size > 0) {
        text_printf(out, "%*s%-13s ", INDENT, "", "given instead");
        put_wrapped(out, from->replaced_options.data, INDENT + 14, INDENT + 14, "");
    }
    if (from->searched_options.size > 0) {
        text_printf(out, "%*s%-13s ", INDENT, "", "looked for");
        put_wrapped(out, from->searched_options.data, INDENT + 14, INDENT + 14, "");
    }
    put_remarks(out, &from->launch);
}

/* Refuses recipes in Python (NeMo, torchtune). They are programs, whose settings are known only when they run. */
static enum status refuse_python_recipes(const struct options *options, struct diag *diag)
{
    size_t files, arguments = options->argument_count;
    const char *const *file = options_list(options, "from", &files);
    for (size_t i = 0; i < arguments + files; i++) {
        const char *path = i < arguments ? options->positional_arguments[i] : file[i - arguments];
        size_t size = strlen(path);
        if (size > 3 && strcmp(path + size - 3, ".py") == 0)
            return diag_error(diag, (struct loc){.name = path}, STATUS_BAD_INPUT,
                              "is a Python program, which would have to run before its settings "
                              "are known: give them as options (--model, --cluster, --seq, ...), "
                              "or give the script or settings file that starts it "
                              "(docs/launching.md)");
    }
    return STATUS_OK;
}

enum status apply_options_from_launch_files(struct options *options, bool search,
                                            const struct refused_option *refused, struct diag *diag)
{
    struct launch_files_read from = {0};
    struct text out = {0};
    enum status python = refuse_python_recipes(options, diag);
    if (python != STATUS_OK)
        return python;
    bool arguments = options->argument_count > 0;
    for (size_t i = 0; i < options->argument_count; i++)
        arguments = arguments && launch_is_path(options->positional_arguments[i]) &&
                    !step_recording_is_file_at(options->positional_arguments[i]);
    if (!arguments && !is_option_given(options, "from"))
        return STATUS_OK;
    if (!arguments && options->argument_count > 0)
        return diag_error(
            diag, (struct loc){.name = "--from"}, STATUS_BAD_INPUT,
            "gives a configuration, and so does the schedule file '%s'; leave one of them out",
            options->positional_arguments[0]);
    const char *set = options_text(options, "set");
    struct launch_known_facts given = {
        .takes_experts_as_dense = is_option_given(options, "as-dense"),
        .is_model_known =
            is_option_given(options, "model") || is_option_varied_by_sweep(options, "model"),
        .model_name = options_text(options, "model"),
        .is_sequence_length_known = is_option_given(options, "seq") ||
                                    is_option_varied_by_sweep(options, "seq") ||
                                    is_plan_for_longest_length(options),
        .is_vocabulary_known = set != NULL && strstr(set, "vocab=") != NULL};
    enum status status = read_launch_files(&from.launch, &from.launch_table_files, options, diag);
    if (status == STATUS_OK)
        status = find_stated_gpus(options, &from.launch, &given.gpu_count, &given.gpu_bytes, diag);
    if (status == STATUS_OK)
        status = launch_make_options(&from.launch, given, diag);
    if (status == STATUS_OK)
        status = apply_launch_options(&from, options, search, refused, diag);
    if (status == STATUS_OK) {
        put_launch_report(&from, &out);
        fputs(out.data, stderr);
        options_unset(options, "from");
        options->argument_count = 0;
    }
    text_release(&out);
    text_release(&from.applied_options);
    text_release(&from.replaced_options);
    text_release(&from.searched_options);
    launch_release(&from.launch);
    launch_tables_release(&from.launch_table_files);
    return status;
}

/* Recognises the kind of a launch file, and reads its settings by the tables of that kind. */
#include "predict/launch/formats.h"
#include "predict/launch/launch_reader.h"
#include "predict/launch/launch_tables.h"
#include "predict/launch/table_file.h"

#include "base/c_locale.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void launch_release(struct launch *launch)
{
    free(launch->remark);
    launch_tables_release(launch->loaded_tables);
    text_release(&launch->comments_to_print);
    arena_release(&launch->arena);
    *launch = (struct launch){0};
}

static bool ends_with(const char *path, const char *end)
{
    size_t size = strlen(path), end_size = strlen(end);
    return size > end_size && strcmp(path + size - end_size, end) == 0;
}

/* True if a text is a line of arguments or a command, and no file: it has a blank, or begins with dashes. */
static bool is_argument_line(const char *path)
{
    bool line = strchr(path, ' ') != NULL || (path[0] == '-' && path[1] == '-');
    return line && access(path, F_OK) != 0;
}

bool launch_is_path(const char *path)
{
    static const char *const ends[] = {".toml", ".sh", ".json", ".yaml", ".yml"};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (ends_with(path, ends[i]))
            return true;
    return is_argument_line(path);
}

/* Sets fields from the settings of a file, by the table of the format that its keys show. */
static enum status set_fields_of_file(struct launch *launch, const char *name,
                                      const struct settings *settings, struct diag *diag)
{
    const struct launch_format *format = launch_format_of_settings(launch, settings);
    if (format == NULL || format->framework == LAUNCH_FRAMEWORK_COUNT)
        return launch_format_error_unread(format, (struct loc){.name = name}, diag);
    enum status status =
        launch_use_table_file_of_format(launch, format, (struct loc){.name = name}, diag);
    if (status != STATUS_OK)
        return status;
    return launch_set_fields(launch, format->framework, settings, diag);
}

/* ---- JSON ---- */

static bool has_json_key(struct json_node root, const char *key)
{
    return json_find_member(root, key).value != NULL;
}

/* Reads a JSON file. A model's config.json, or a model file of ours, becomes the option "model". */
static enum status read_json(struct launch *launch, const char *name, const char *text, size_t size,
                             struct diag *diag)
{
    struct json json = {0};
    struct settings settings = {0};
    enum status status = json_parse(&json, name, text, size, diag);
    bool model = false;
    if (status == STATUS_OK) {
        struct json_node root = json_root(&json);
        model = has_json_key(root, "model_type") || has_json_key(root, "longhaul_transformer");
    }
    json_release(&json);
    if (status == STATUS_OK && model) {
        if (launch_has_option(launch, "model"))
            return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                              "this is a second description of the model; leave one of them out");
        launch_add_option(launch, LAUNCH_FIELD_COUNT, "model", name);
        return STATUS_OK;
    }
    if (status == STATUS_OK)
        status = settings_read_json(&settings, name, text, size, diag);
    if (status == STATUS_OK)
        status = set_fields_of_file(launch, name, &settings, diag);
    settings_release(&settings);
    return status;
}

/* ---- YAML and TOML ---- */

typedef enum status settings_reader_fn(struct settings *settings, const char *name,
                                       const char *text, size_t size, struct diag *diag);

static enum status read_settings_file(struct launch *launch, const char *name, const char *text,
                                      size_t size, settings_reader_fn *read, struct diag *diag)
{
    struct settings settings = {0};
    enum status status = read(&settings, name, text, size, diag);
    if (status == STATUS_OK)
        status = set_fields_of_file(launch, name, &settings, diag);
    settings_release(&settings);
    return status;
}

/* ---- arguments and scripts ---- */

static bool is_option(const char *word)
{
    return word[0] == '-' && (c_is_alpha(word[1]) || (word[1] == '-' && word[2] != '\0'));
}

/* Returns the length of the name, with Hydra's prefix, in an argument "name=value", such as "data.max_length=8192"; 0
 * for other arguments. */
static size_t length_of_hydra_name(const char *word)
{
    size_t size =
        strspn(word, "+~"); /* Hydra's prefixes, by which an argument adds or deletes a setting */
    if (!c_is_alpha(word[size]))
        return 0;
    while (c_is_alnum(word[size]) || (word[size] != '\0' && strchr("_.-", word[size])))
        size++;
    return word[size] == '=' ? size : 0;
}

/* Adds the arguments in the words from `first` to before `end` of a command as settings. Notes the settings files among
 * them, to be read later. Words that only a run knows become remarks, and so do words of the program that are no
 * arguments. */
static void add_arguments_as_settings(struct launch *launch, struct settings *settings,
                                      const char *name, const struct shell_command *command,
                                      size_t first, size_t end, enum setting_kind kind)
{
    struct text value = {0}, option = {0};
    for (size_t i = first; i < end;) {
        const struct shell_word *word = &command->word[i++];
        struct loc at = {.name = name, .line = word->line};
        const char *open = settings_find_open_part(word->text, &launch->arena);
        const char *equals = strchr(word->text, '=');
        size_t size = equals != NULL ? (size_t)(equals - word->text) : strlen(word->text);
        bool any = equals != NULL;
        size_t assigned = kind == SETTING_PROGRAM ? length_of_hydra_name(word->text) : 0;
        option.size = value.size = 0;
        if (assigned > 0) {
            size_t sign = strspn(word->text, "+~");
            text_append(&option, word->text + sign, assigned - sign);
            settings_add(settings, option.data, equals + 1, at)->kind = kind;
            continue;
        }
        if (open != NULL)
            launch_add_remark_printf(launch, REMARK_KNOWN_IN_RUN_ONLY, "further arguments", at,
                                     "%.200s", open);
        if (open == NULL && (launch_queue_named_file(launch, word->text, at) ||
                             (kind == SETTING_PROGRAM && !is_option(word->text) &&
                              launch_remark_missing_file(launch, word->text, at))))
            continue;
        if (open == NULL && !is_option(word->text) && kind == SETTING_PROGRAM)
            launch_add_remark_printf(launch, REMARK_UNKNOWN, word->text, at, "%s", "");
        if (!is_option(word->text) || memchr(word->text, SETTING_OPEN_PART_BEGIN, size) != NULL)
            continue;
        text_append(&option, word->text, size);
        text_puts(&value, any ? equals + 1 : "");
        while (i < end && !any && !is_option(command->word[i].text) &&
               length_of_hydra_name(command->word[i].text) == 0 &&
               (value.size == 0 || command->word[i].text[0] != SETTING_OPEN_PART_BEGIN))
            text_printf(&value, "%s%s", value.size > 0 ? " " : "", command->word[i++].text);
        any = any || value.size > 0;
        if (kind == SETTING_LAUNCHER) /* launchers take both '-' and '_' */
            for (char *c = option.data + strspn(option.data, "-"); *c != '\0'; c++)
                *c = *c == '-' ? '_' : *c;
        settings_add(settings, option.data, any ? value.data : NULL, at)->kind = kind;
    }
    text_release(&value);
    text_release(&option);
}

/* True for torchtitan's run_train.sh, which takes some settings from variables (add_run_train_sh_settings()). */
static bool is_torchtitan_run_train_sh(const char *word)
{
    return strcmp(word, "run_train.sh") == 0 || ends_with(word, "/run_train.sh");
}

/* Adds, as settings, the arguments that torchtitan's run_train.sh makes of variables: of NGPU (8 if it is not set),
 * CONFIG_FILE, MODULE and CONFIG. */
static void add_run_train_sh_settings(struct settings *settings, const char *name,
                                      const struct shell_command *command)
{
    const struct {
        const char *name, *value;
        enum setting_kind kind;
    } rows[] = {
        {"--nproc_per_node", command->gpu_count != NULL ? command->gpu_count : "8",
         SETTING_LAUNCHER},
        {"--job.config_file", command->config_file, SETTING_PROGRAM},
        {"--module", command->module, SETTING_PROGRAM},
        {"--config", command->recipe, SETTING_PROGRAM},
    };
    struct loc at = {.name = name, .line = command->line};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].value != NULL)
            settings_add(settings, rows[i].name, rows[i].value, at)->kind = rows[i].kind;
}

/* Adds the setting "--subcommand" if the command is `trl` or `nemo` with another subcommand than the usual one. first:
 * the index of the word after the subcommand. */
static void add_unusual_subcommand_setting(struct settings *settings, const char *name,
                                           const struct shell_command *command, size_t first)
{
    /* each program, with the subcommand that is usual for it */
    static const char *const rows[][2] = {{"trl", "sft"}, {"nemo", "pretrain"}};
    for (size_t k = 0; k < ARRAY_LEN(rows) && first > 1; k++)
        if (strcmp(command->word[0].text, rows[k][0]) == 0 &&
            strcmp(command->word[first - 1].text, rows[k][1]) != 0)
            settings_add(settings, "--subcommand", command->word[first - 1].text,
                         (struct loc){.name = name, .line = command->line})
                ->kind = SETTING_PROGRAM;
}

/* Adds the scripts that a script's commands start (`bash train.sh`) to the files that are read after it. Returns one
 * that cannot be read, for a message; NULL if there is none. It is called for a script that itself starts no
 * training. */
static const char *queue_started_scripts(struct launch *launch, const char *name,
                                         const struct shell_script *script)
{
    const char *missing = NULL;
    static const char *const shells[] = {"bash", "sh", "sbatch"};
    for (size_t i = 0; i < script->command_count; i++) {
        const struct shell_command *command = &script->command[i];
        size_t word = 0;
        for (size_t k = 0; k < ARRAY_LEN(shells) && word == 0 && command->word_count > 1; k++)
            word = strcmp(command->word[0].text, shells[k]) == 0;
        while (word > 0 && word < command->word_count && command->word[word].text[0] == '-')
            word++; /* bash -x, sbatch --nodes=2 */
        if (word < command->word_count && ends_with(command->word[word].text, ".sh") &&
            !launch_queue_named_script(launch, command->word[word].text,
                                       (struct loc){.name = name, .line = command->line}))
            missing = command->word[word].text;
    }
    return missing;
}

/* Returns the index of the word at which the arguments of the program begin that a command starts; 0 if it starts none.
 * They begin after the first of these words: a Python file or run_train.sh; a module after -m, unless it is a launcher;
 * the subcommand of `trl` and of the other `programs`. Commands that begin with one of `others`, such as `echo`, start
 * no program. */
static size_t find_program_arguments(const struct shell_command *command)
{
    static const char *const launchers[] = {"torch.distributed.launch", "torch.distributed.run",
                                            "accelerate.commands.launch",
                                            "deepspeed.launcher.runner"};
    static const char *const others[] = {"[",  "[[", "test", "echo", "printf",
                                         "cp", "ls", "cd",   "rm"};
    static const struct {
        const char *name;
        size_t words; /* the number of words before the arguments of the subcommand */
    } programs[] = {
        {"trl", 1}, {"swift", 1}, {"megatron", 1}, {"axolotl", 1}, {"llamafactory-cli", 1},
        {"nemo", 2}};
    for (size_t k = 0; k < ARRAY_LEN(others); k++)
        if (command->word_count == 0 || strcmp(command->word[0].text, others[k]) == 0)
            return 0;
    for (size_t i = 0; i < command->word_count; i++) {
        const char *word = command->word[i].text;
        if (ends_with(word, ".py") || is_torchtitan_run_train_sh(word))
            return i + 1;
        for (size_t k = 0; k < ARRAY_LEN(programs); k++)
            if (i == 0 && strcmp(word, programs[k].name) == 0 &&
                i + programs[k].words < command->word_count)
                return i + programs[k].words + 1;
        const char *before = i > 0 ? command->word[i - 1].text : "";
        bool module = strcmp(before, "-m") == 0 || strcmp(before, "--module") == 0;
        for (size_t k = 0; k < ARRAY_LEN(launchers); k++)
            module = module && strcmp(word, launchers[k]) != 0;
        if (module)
            return i + 1;
    }
    return 0;
}

/* Gives the program's arguments the names that its files use: "--training.seq_len" becomes "training.seq_len", and
 * "--per-device-train-batch-size" becomes "per_device_train_batch_size". */
static void rename_arguments_as_in_files(struct settings *settings)
{
    for (size_t i = 0; i < settings->setting_count; i++) {
        struct setting *setting = &settings->row[i];
        if (setting->kind == SETTING_LAUNCHER)
            continue;
        size_t dashes = strspn(setting->name, "-");
        char *name =
            arena_text(&settings->arena, setting->name + dashes, strlen(setting->name) - dashes);
        for (char *c = name; *c != '\0'; c++)
            if (*c == '-')
                *c = '_';
        setting->name = name;
    }
}

/* Returns the framework whose table has the arguments of a format. Renames the arguments to the names that the table
 * has. */
static enum launch_framework framework_of_arguments(const struct launch_format *format,
                                                    struct settings *settings)
{
    bool deepspeed = settings_find(settings, "--deepspeed") != NULL ||
                     settings_find(settings, "--deepspeed_config") != NULL;
    for (size_t i = 0; i < settings->setting_count; i++)
        deepspeed = deepspeed || strncmp(settings->row[i].name, "--ds-sequence", 13) == 0;
    if (format->framework == LAUNCH_MEGATRON)
        return deepspeed ? LAUNCH_MEGATRON_DEEPSPEED : LAUNCH_MEGATRON;
    if (format->framework != LAUNCH_LAUNCHER_PROGRAM)
        rename_arguments_as_in_files(settings);
    return format->framework;
}

/* Adds, as settings of the launcher, what variables say of the number of ranks. If CUDA_VISIBLE_DEVICES is set, adds
 * that variable if it names one GPU, or if the launcher starts a rank on each GPU that it sees. Launchers of this kind
 * are deepspeed, accelerate, axolotl and llamafactory-cli, and torchrun if --nproc_per_node is "gpu" or "auto". For the
 * commands swift, megatron and llamafactory-cli, adds NPROC_PER_NODE if it is set, and with it NNODES if that is set,
 * too. */
static void add_rank_variables(struct settings *settings, const char *name,
                               const struct shell_command *command, size_t first)
{
    static const char *const launchers[] = {"deepspeed", "accelerate", "llamafactory-cli",
                                            "axolotl"};
    static const char *const starters[] = {"swift", "megatron", "llamafactory-cli"};
    bool starts_rank_per_gpu = false;
    const struct setting *count = settings_find(settings, "--nproc_per_node");
    if (count != NULL && count->value != NULL)
        starts_rank_per_gpu = strcmp(count->value, "gpu") == 0 || strcmp(count->value, "auto") == 0;
    for (size_t i = 0; i < first; i++)
        for (size_t k = 0; k < ARRAY_LEN(launchers); k++)
            starts_rank_per_gpu =
                starts_rank_per_gpu || strcmp(command->word[i].text, launchers[k]) == 0;
    struct loc at = {.name = name, .line = command->line};
    bool starts = false; /* the command starts as many ranks as NPROC_PER_NODE says */
    for (size_t k = 0; k < ARRAY_LEN(starters); k++)
        starts = starts || strcmp(command->word[0].text, starters[k]) == 0;
    if (starts && command->processes_per_node != NULL)
        settings_add(settings, "--nproc_per_node", command->processes_per_node, at)->kind =
            SETTING_LAUNCHER;
    if (starts && command->processes_per_node != NULL && command->node_count != NULL)
        settings_add(settings, "--nnodes", command->node_count, at)->kind = SETTING_LAUNCHER;
    if (command->visible_devices != NULL &&
        (starts_rank_per_gpu || strchr(command->visible_devices, ',') == NULL))
        settings_add(settings, "CUDA_VISIBLE_DEVICES", command->visible_devices, at)->kind =
            SETTING_LAUNCHER;
}

/* True if a command surely runs and begins with an argument in place of a program, as the lines that plan --emit writes
 * do. */
static bool is_command_without_program(const struct shell_command *command)
{
    return command->word_count > 0 && is_option(command->word[0].text) &&
           !command->runs_conditionally;
}

static size_t count_options(const struct shell_command *command)
{
    size_t count = 0;
    for (size_t i = 0; i < command->word_count; i++)
        count +=
            is_option(command->word[i].text) || length_of_hydra_name(command->word[i].text) > 0;
    return count;
}

/* If the command is one of a training framework that does not train (it serves, evaluates or converts a model, for
 * example), returns the framework's command that trains; else returns NULL. Sources: the tables of commands in
 * swift/cli/main.py, swift/cli/_megatron/main.py, llamafactory/launcher.py, axolotl/cli/main.py and trl/cli.py. */
static const char *training_command_instead_of(const struct shell_command *command)
{
    static const struct {
        const char *name, *trains;
    } programs[] = {{"swift", "swift sft"},
                    {"megatron", "megatron sft"},
                    {"llamafactory-cli", "llamafactory-cli train"},
                    {"axolotl", "axolotl train"},
                    {"trl", "trl sft"}};
    static const char *const others[] = {
        "infer",  "inference", "deploy",     "vllm-serve", "rollout",    "app",     "chat",
        "api",    "webchat",   "web-ui",     "webui",      "eval",       "lm-eval", "evaluate",
        "sample", "export",    "merge-lora", "quantize",   "preprocess", "fetch",   "env"};
    const char *trains = NULL;
    for (size_t i = 0; i < ARRAY_LEN(programs) && command->word_count > 1; i++)
        if (strcmp(command->word[0].text, programs[i].name) == 0)
            trains = programs[i].trains;
    for (size_t i = 0; i < ARRAY_LEN(others) && trains != NULL; i++)
        if (strcmp(command->word[1].text, others[i]) == 0)
            return trains;
    return NULL;
}

/* Fails if the script has a command of a training framework that trains nothing. */
static enum status refuse_commands_that_do_not_train(const struct shell_script *script,
                                                     const char *name, struct diag *diag)
{
    for (size_t i = 0; i < script->command_count; i++) {
        const struct shell_command *command = &script->command[i];
        const char *instead = training_command_instead_of(command);
        if (instead != NULL)
            return diag_error(diag, (struct loc){.name = name, .line = command->line},
                              STATUS_BAD_INPUT,
                              "'%s %s' trains nothing; expected a command that trains, such as "
                              "'%s'",
                              command->word[0].text, command->word[1].text, instead);
    }
    return STATUS_OK;
}

/* True if a command may start a training: it starts any program with arguments, or one of the programs that formats
 * list, with or without arguments. A command that does other work (training_command_instead_of()) starts none. */
static bool is_launch_command(const struct launch *launch, const struct shell_command *command)
{
    if (training_command_instead_of(command) != NULL)
        return false;
    size_t first = find_program_arguments(command);
    if (first > 0 && count_options(command) > 0)
        return true;
    return command->word_count > 0 && launch_format_of_command(launch, command, first) != NULL;
}

/* Returns the command that starts the training: of those that may (is_launch_command()), the one with the most
 * arguments, and of several with as many the first. Returns NULL if there is none. */
static const struct shell_command *find_launch_command(const struct launch *launch,
                                                       const struct shell_script *script)
{
    const struct shell_command *best = NULL;
    for (size_t i = 0; i < script->command_count; i++) {
        const struct shell_command *command = &script->command[i];
        if (is_launch_command(launch, command) &&
            (best == NULL || count_options(command) > count_options(best)))
            best = command;
    }
    return best;
}

static void remark_other_commands(struct launch *launch, const char *name,
                                  const struct shell_script *script,
                                  const struct shell_command *launched)
{
    for (size_t i = 0; i < script->command_count; i++) {
        const struct shell_command *command = &script->command[i];
        if (command == launched || !is_launch_command(launch, command))
            continue;
        launch_add_remark_printf(launch, REMARK_IGNORED, "another command",
                                 (struct loc){.name = name, .line = command->line}, "%s", "");
    }
}

/* Adds the arguments of the command that starts the training as settings, with what variables and the subcommand add to
 * them, and remarks on other commands that could start one. Returns the format of the program that it starts; NULL: no
 * format lists the program. */
static const struct launch_format *add_launch_command(struct launch *launch,
                                                      struct settings *settings, const char *name,
                                                      const struct shell_script *script,
                                                      const struct shell_command *launched)
{
    size_t first = find_program_arguments(launched);
    if (first > 0)
        add_arguments_as_settings(launch, settings, name, launched, 1, first - 1, SETTING_LAUNCHER);
    add_rank_variables(settings, name, launched, first);
    if (first > 0 && is_torchtitan_run_train_sh(launched->word[first - 1].text))
        add_run_train_sh_settings(settings, name, launched);
    add_unusual_subcommand_setting(settings, name, launched, first);
    add_arguments_as_settings(launch, settings, name, launched, first, launched->word_count,
                              SETTING_PROGRAM);
    remark_other_commands(launch, name, script, launched);
    return launch_format_of_command(launch, launched, first);
}

/* For a script without a command that starts a training: notes the scripts that it starts, to be read after it. Fails
 * if it starts none that can be read; the error names one that it starts and that is not here, if there is one. */
static enum status find_started_scripts(struct launch *launch, const char *name,
                                        const struct shell_script *script, struct diag *diag)
{
    const char *missing = queue_started_scripts(launch, name, script);
    if (launch->named_file_count > 0)
        return STATUS_OK;
    return diag_error(
        diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
        "no command that starts a training run is found: expected a program (x.py, or -m "
        "module) with arguments, or only arguments%s%s%s",
        missing != NULL ? "; the script that it starts, " : "", missing != NULL ? missing : "",
        missing != NULL ? ", is not here" : "");
}

static bool is_format_read(const struct launch_format *format)
{
    return format != NULL && format->framework != LAUNCH_FRAMEWORK_COUNT;
}

/* Sets fields from the settings of a script. format: that of the program that the script starts; NULL: no format lists
 * the program, and the names of the settings tell the format. If that finds no format that is read, it is the format of
 * a settings file that the script names. If the script names files, but none with the format of a program, only the
 * launchers' table is used; if it names none, the function fails. */
static enum status set_fields_of_script(struct launch *launch, const char *name,
                                        struct settings *settings,
                                        const struct shell_script *script,
                                        const struct shell_command *launched,
                                        const struct launch_format *format, struct diag *diag)
{
    format = format == NULL ? launch_format_of_settings(launch, settings)
                            : launch_format_of_matching_engine(launch, format, settings);
    if (!is_format_read(format)) {
        const struct launch_format *named = launch_format_of_named_files(launch);
        format = named != NULL ? named : format;
    }
    if (!is_format_read(format) && launch->named_file_count > 0)
        return launch_set_fields(launch, LAUNCH_LAUNCHER_PROGRAM, settings, diag);
    if (!is_format_read(format))
        return launch_format_error_unread(
            format, (struct loc){.name = name, .line = launched == NULL ? 0 : launched->line},
            diag);
    enum status status =
        launch_use_table_file_of_format(launch, format, (struct loc){.name = name}, diag);
    if (status == STATUS_OK)
        status =
            launch_set_fields(launch, framework_of_arguments(format, settings), settings, diag);
    return status == STATUS_OK ? launch_read_here_documents(launch, name, script, diag) : status;
}

/* Reads a shell script, or a line of arguments: the command that starts a training or, if there is none, the commands
 * that are only arguments. */
static enum status read_script(struct launch *launch, const char *name, const char *text,
                               size_t size, struct diag *diag)
{
    struct shell_script script = {0};
    struct settings settings = {0};
    const struct launch_format *format = NULL;
    const struct shell_command *launched = NULL;
    enum status status = shell_script_read(&script, name, text, size, diag);
    if (status == STATUS_OK) {
        launched = find_launch_command(launch, &script);
        if (launched == NULL)
            status = refuse_commands_that_do_not_train(&script, name, diag);
        else
            format = add_launch_command(launch, &settings, name, &script, launched);
    }
    for (size_t i = 0; status == STATUS_OK && launched == NULL && i < script.command_count; i++)
        if (is_command_without_program(&script.command[i]))
            add_arguments_as_settings(launch, &settings, name, &script.command[i], 0,
                                      script.command[i].word_count, SETTING_PROGRAM);
    launch_queue_files_of_arguments(launch, &settings);
    if (status == STATUS_OK && settings.setting_count == 0 && format == NULL)
        status = find_started_scripts(launch, name, &script, diag);
    if (status == STATUS_OK)
        status = set_fields_of_script(launch, name, &settings, &script, launched, format, diag);
    settings_release(&settings);
    shell_script_release(&script);
    return status;
}

/* ---- a file of any format ---- */

/* Reads a JSON object, and the arguments of a program if there are any after it, as plan --emit deepspeed writes them.
 * The object begins at `object`, and ends at the first '}' at the beginning of a line. */
static enum status read_json_then_arguments(struct launch *launch, const char *name,
                                            const char *text, size_t size, const char *object,
                                            struct diag *diag)
{
    const char *end = strstr(object, "\n}");
    struct text rest = {0};
    if (end == NULL)
        return read_json(launch, name, text, size, diag);
    end += 2;
    struct text json = {0};
    /* comments before the object become empty lines, so that line numbers stay right */
    for (const char *c = text; c < object; c++)
        if (*c == '\n')
            text_putc(&json, '\n');
    text_append(&json, object, (size_t)(end - object));
    enum status status = read_json(launch, name, json.data, json.size, diag);
    for (const char *c = text; c < end; c++)
        if (*c == '\n')
            text_putc(&rest, '\n');
    text_puts(&rest, end);
    if (status == STATUS_OK && strstr(end, "--") != NULL)
        status = read_script(launch, name, rest.data, rest.size, diag);
    text_release(&json);
    text_release(&rest);
    return status;
}

/* Returns the text from its first character that is neither blank nor in a comment ('#' to the end of a line). */
static const char *first_significant_char(const char *text)
{
    for (;;) {
        text += strspn(text, " \t\r\n");
        if (*text != '#')
            return text;
        text += strcspn(text, "\n");
    }
}

/* True if a text begins with a key of YAML, such as "base_model: x". A command is not taken for YAML, since its first
 * word does not end in a colon. */
static bool begins_with_yaml_key(const char *mark)
{
    size_t size = 0;
    while (c_is_alnum(mark[size]) || mark[size] == '_' || mark[size] == '.' || mark[size] == '-')
        size++;
    return c_is_alpha(mark[0]) && mark[size] == ':' && strchr(" \t\r\n", mark[size + 1]) != NULL;
}

enum status launch_read_text(struct launch *launch, const char *name, const char *text, size_t size,
                             struct diag *diag)
{
    name = arena_text(&launch->arena, name, strlen(name));
    enum status status = STATUS_OK;
    if (launch->tables == NULL) {
        launch->loaded_tables = arena_array(&launch->arena, 1, sizeof *launch->loaded_tables);
        launch->tables = launch->loaded_tables;
        status = launch_tables_load(launch->loaded_tables, diag);
    }
    if (status != STATUS_OK)
        return status;
    if (size > TEXT_CONFIGURATION_BYTES_MAX)
        return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                          "a launch file has at most 16 MiB");
    text = arena_text(&launch->arena, text, size); /* The copy ends in NUL. */
    const char *mark = first_significant_char(text);
    if (ends_with(name, ".yaml") || ends_with(name, ".yml") || begins_with_yaml_key(mark))
        return read_settings_file(launch, name, text, size, settings_read_yaml, diag);
    if (*mark == '{')
        return read_json_then_arguments(launch, name, text, size, mark, diag);
    if (ends_with(name, ".json"))
        return read_json(launch, name, text, size, diag);
    if (!ends_with(name, ".toml") && *mark != '[')
        return read_script(launch, name, text, size, diag);
    return read_settings_file(launch, name, text, size, settings_read_toml, diag);
}

/* Reads one file. Files that it names are noted in *launch, but not read. */
static enum status read_one_file(struct launch *launch, const char *path, struct diag *diag)
{
    struct text text = {0};
    const char *slash = strrchr(path, '/');
    launch->script_folder =
        slash == NULL ? "." : arena_text(&launch->arena, path, (size_t)(slash - path));
    enum status status = text_read_with_byte_limit(&text, path, TEXT_CONFIGURATION_BYTES_MAX, diag);
    if (status == STATUS_OK && text.size > 0)
        status = launch_read_text(launch, path, text.data, text.size, diag);
    else if (status == STATUS_OK)
        status =
            diag_error(diag, (struct loc){.name = path}, STATUS_BAD_INPUT, "the file is empty");
    text_release(&text);
    return status;
}

enum status launch_read(struct launch *launch, const char *path, struct diag *diag)
{
    bool line = is_argument_line(path);
    size_t before = launch->named_file_count;
    launch->script_folder = ".";
    enum status status = line ? launch_read_text(launch, "the line", path, strlen(path), diag)
                              : read_one_file(launch, path, diag);
    const struct launch_field_value *config = &launch->field_value[LAUNCH_DEEPSPEED_CONFIG];
    if (status == STATUS_OK && config->is_given &&
        !launch->has_read_framework_file[LAUNCH_DEEPSPEED_JSON])
        launch_queue_named_file(launch, config->text, config->place);
    launch->is_reading_named_file = true;
    for (size_t i = before; i < launch->named_file_count && status == STATUS_OK; i++) {
        status = read_one_file(launch, launch->files_named_by_script[i], diag);
        if (status == STATUS_OK && config->is_given &&
            !launch->has_read_framework_file[LAUNCH_DEEPSPEED_JSON])
            launch_queue_named_file(launch, config->text, config->place);
    }
    launch->is_reading_named_file = false;
    launch->script_folder = NULL;
    return status;
}

/* Names the frameworks of the files that were read, and refuses frameworks that do not go together. */
#include "predict/launch/launch_parts.h"
#include "predict/launch/table_file.h"

static const char *const program_names[LAUNCH_FRAMEWORK_COUNT] = {
    "a torchtitan configuration",
    "arguments of Megatron-LM",
    "a DeepSpeed configuration",
    "arguments of Megatron-DeepSpeed",
    "an Accelerate configuration",
    "arguments of TRL or Hugging Face's Trainer",
    "an llm-foundry configuration",
    "a configuration of a table file",
    "arguments of a program under DeepSpeed"};

const char *launch_framework_name(struct launch *launch, enum launch_framework framework)
{
    if (framework == LAUNCH_FRAMEWORK_OF_TABLE_FILE && launch->table_file != NULL)
        return arena_printf(&launch->arena, "settings of %s", launch->table_file->format.name);
    return program_names[framework];
}

bool launch_is_of_family(const struct launch *launch, enum launch_framework framework)
{
    return launch->has_read_framework_file[framework] ||
           (launch->has_read_framework_file[LAUNCH_FRAMEWORK_OF_TABLE_FILE] &&
            launch->table_file->family == framework);
}

enum status launch_use_table_file_of_format(struct launch *launch,
                                            const struct launch_format *format, struct loc at,
                                            struct diag *diag)
{
    if (format->framework != LAUNCH_FRAMEWORK_OF_TABLE_FILE)
        return STATUS_OK;
    const struct launch_table_file *table = (const struct launch_table_file *)(const void *)format;
    if (launch->table_file != NULL && launch->table_file != table)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "this is of %s, and another file is of %s; leave one of them out",
                          format->name, launch->table_file->format.name);
    launch->table_file = table;
    return STATUS_OK;
}

enum status launch_refuse_mixed_frameworks(struct launch *launch, struct diag *diag)
{
    static const enum launch_framework exclusive[] = {LAUNCH_TORCHTITAN, LAUNCH_MEGATRON,
                                                      LAUNCH_MEGATRON_DEEPSPEED, LAUNCH_FOUNDRY,
                                                      LAUNCH_FRAMEWORK_OF_TABLE_FILE};
    for (size_t i = 0; i < ARRAY_LEN(exclusive); i++)
        for (int other = 0; other < LAUNCH_FRAMEWORK_COUNT; other++) {
            bool pair = exclusive[i] == LAUNCH_MEGATRON_DEEPSPEED && other == LAUNCH_DEEPSPEED_JSON;
            pair = pair || (exclusive[i] == LAUNCH_FRAMEWORK_OF_TABLE_FILE &&
                            launch->has_read_framework_file[exclusive[i]] &&
                            launch->table_file->family == LAUNCH_TRAINER &&
                            (other == LAUNCH_DEEPSPEED_JSON || other == LAUNCH_ACCELERATE));
            if (launch->has_read_framework_file[exclusive[i]] &&
                launch->has_read_framework_file[other] && other != (int)exclusive[i] && !pair)
                return diag_error(diag, (struct loc){.name = "--from"}, STATUS_BAD_INPUT,
                                  "%s and %s cannot be combined, as they start "
                                  "different programs; leave one of them out",
                                  launch_framework_name(launch, exclusive[i]),
                                  launch_framework_name(launch, (enum launch_framework)other));
        }
    return STATUS_OK;
}

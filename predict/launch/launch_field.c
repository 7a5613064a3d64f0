/* Fills fields from settings. */
#include "predict/launch/launch_parts.h"

#include <string.h>

static const char *const kind_names[] = {"a whole number", "true or false", "any value", "a number",
                                         "a text"};

/* True if a value below 1 of the field is an error. In other fields such a value may mean "all" or "none". */
static bool must_field_be_positive(enum launch_field field)
{
    static const enum launch_field amounts[] = {
        LAUNCH_LAYERS,   LAUNCH_HIDDEN,      LAUNCH_FFN,          LAUNCH_HEADS,
        LAUNCH_KV_HEADS, LAUNCH_HEAD_DIM,    LAUNCH_VOCAB,        LAUNCH_SEQ,
        LAUNCH_PROMPT,   LAUNCH_ANSWER,      LAUNCH_MICRO_BATCH,  LAUNCH_ACCUMULATION,
        LAUNCH_ANSWERS,  LAUNCH_LOCAL_BATCH, LAUNCH_GLOBAL_BATCH, LAUNCH_POSITIONS_MAX,
        LAUNCH_CHUNK,    LAUNCH_ROPE_THETA,  LAUNCH_PROCESSES,    LAUNCH_GPUS_A_NODE,
        LAUNCH_NODES,    LAUNCH_TASKS,       LAUNCH_DP_REPLICATE, LAUNCH_DP_SHARD,
        LAUNCH_EP};
    for (size_t i = 0; i < ARRAY_LEN(amounts); i++)
        if (amounts[i] == field)
            return true;
    return false;
}

enum status launch_set_field(struct launch *launch, const struct launch_row *row,
                             const struct setting *setting, struct diag *diag)
{
    struct launch_field_value *value = &launch->field_value[row->field], before = *value;
    struct launch_field_value read = {.is_given = true, .place = setting->place};
    /* torchrun starts as many ranks on a node as it has GPUs if the number of ranks is "gpu" */
    bool is_one_rank_per_gpu = setting->value != NULL && row->field == LAUNCH_GPUS_A_NODE &&
                               strcmp(setting->value, "gpu") == 0;
    if (is_one_rank_per_gpu || (setting->value != NULL && strcmp(setting->value, "auto") == 0)) {
        launch_add_remark(launch,
                          (struct launch_remark){
                              REMARK_IGNORED,
                              arena_printf(&launch->arena, "%s %s", setting->name, setting->value),
                              NULL, setting->place});
        return STATUS_OK;
    }
    if (setting->value == NULL && row->kind != LAUNCH_SWITCH && row->kind != LAUNCH_ON_IF_GIVEN)
        return diag_error(diag, setting->place, STATUS_BAD_INPUT, "%s: its value, %s, is missing",
                          setting->name, kind_names[row->kind]);
    if (setting->is_list && row->kind != LAUNCH_TEXT && row->kind != LAUNCH_ON_IF_GIVEN)
        return diag_error(diag, setting->place, STATUS_BAD_INPUT,
                          "%s: [%.80s] is a list, and %s is expected", setting->name,
                          setting->value, kind_names[row->kind]);
    if (!launch_parse_value(row->kind, setting->value, &read))
        return diag_error(diag, setting->place, STATUS_BAD_INPUT, "%s: '%.80s' is not %s",
                          setting->name, setting->value == NULL ? "" : setting->value,
                          kind_names[row->kind]);
    bool is_derived_from_rest =
        (row->field == LAUNCH_GLOBAL_BATCH || row->field == LAUNCH_DP_SHARD) &&
        read.whole_number == -1; /* in torchtitan it follows from the rest */
    if (row->kind == LAUNCH_WHOLE_NUMBER && must_field_be_positive(row->field) &&
        read.whole_number < 1 && !is_derived_from_rest)
        return diag_error(diag, setting->place, STATUS_BAD_INPUT, "%s: %lld is below 1",
                          setting->name, (long long)read.whole_number);
    const bool may_be_negative =
        row->field == LAUNCH_CAPACITY; /* A negative capacity means none. */
    if (row->kind == LAUNCH_REAL_NUMBER && read.real_number < 0 && !may_be_negative)
        return diag_error(diag, setting->place, STATUS_BAD_INPUT, "%s: %g is below 0",
                          setting->name, read.real_number);
    read.text = setting->value == NULL
                    ? ""
                    : arena_text(&launch->arena, setting->value, strlen(setting->value));
    read.setting_name = arena_text(&launch->arena, setting->name, strlen(setting->name));
    /* If one file gives a setting twice, the last value counts; launch_set_fields() adds a remark. */
    bool again = before.is_given && strcmp(before.place.name, read.place.name) == 0 &&
                 strcmp(before.setting_name, read.setting_name) == 0;
    if (launch->is_reading_named_file && before.is_given && !before.is_implied && !again)
        return STATUS_OK;
    if (before.is_given && !before.is_implied && !again &&
        (before.whole_number != read.whole_number || before.real_number != read.real_number ||
         (row->kind == LAUNCH_TEXT && strcmp(before.text, read.text) != 0)))
        return diag_error(diag, setting->place, STATUS_BAD_INPUT,
                          "%s is '%.60s', and %s:%u says '%.60s'; leave one of them out",
                          setting->name, read.text, before.place.name, before.place.line,
                          before.text);
    *value = read;
    return STATUS_OK;
}

/* tests/predict/test_launch_keys.c: the settings that the tables of predict/launch/ ignore have no effect on a step, by
 * the verdicts on all keys of the frameworks in tests/data/launch_keys/. Formats of launch files are recognised or
 * refused by their own keys. */
#include "predict/launch/formats.h"
#include "predict/launch/launch_parts.h"
#include "predict/launch/table_file.h"

#include "base/text.h"
#include "tests/check.h"

#include <stdio.h>
#include <string.h>

static const char *const lists[LAUNCH_FRAMEWORK_COUNT] = {
    [LAUNCH_TORCHTITAN] = "torchtitan",    [LAUNCH_MEGATRON] = "megatron",
    [LAUNCH_DEEPSPEED_JSON] = "deepspeed", [LAUNCH_MEGATRON_DEEPSPEED] = "megatron-deepspeed",
    [LAUNCH_ACCELERATE] = "accelerate",    [LAUNCH_TRAINER] = "trainer",
    [LAUNCH_FOUNDRY] = "llm-foundry",      [LAUNCH_LAUNCHER_PROGRAM] = "launchers",
};

/* The rows of the tables that belong to a key of a list. */
struct met {
    const struct launch_row *row[2048];
    size_t count;
};

static bool row_was_met(const struct met *met, const struct launch_row *row)
{
    for (size_t i = 0; i < met->count; i++)
        if (met->row[i] == row)
            return true;
    return false;
}

static void check_launch_key_verdict(enum launch_framework framework, const char *verdict,
                                     const char *key, struct met *met)
{
    char label[160];
    const struct launch_row *row = launch_row_find_by_setting(framework, key);
    bool ignored = row != NULL && row->meaning == LAUNCH_IGNORED;
    snprintf(label, sizeof label, "%s: %s is ignored", lists[framework], key);
    CHECK_INT(label, ignored, strcmp(verdict, "none") == 0);
    if (row != NULL && met->count < ARRAY_LEN(met->row))
        met->row[met->count++] = row;
}

/* Checks each key of a framework's list: it is ignored exactly if it has no effect. */
static void check_effect_of_all_keys(enum launch_framework framework, struct met *met)
{
    struct text text = {0};
    struct diag diag = {0};
    char path[64], verdict[8], key[120];
    int size = 0, keys = 0;
    snprintf(path, sizeof path, "data/launch_keys/%s", lists[framework]);
    CHECK_INT(path, text_read(&text, check_path(path), &diag), STATUS_OK);
    const char *at = text.data == NULL ? "" : text.data;
    for (at += strcspn(at, "\n"); sscanf(at, " %7s %119s%n", verdict, key, &size) == 2;
         at += size) {
        check_launch_key_verdict(framework, verdict, key, met);
        keys++;
    }
    CHECK(path, keys > 50);
    text_release(&text);
    diag_release(&diag);
}

/* Checks that each row that ignores a setting belongs to a key of a list, so that it was judged. */
static void check_rows(const char *label, const struct launch_table *table, const struct met *met)
{
    for (size_t i = 0; i < table->row_count; i++)
        if (table->row[i].meaning == LAUNCH_IGNORED && !row_was_met(met, &table->row[i]))
            CHECK_TEXT(label, table->row[i].setting_pattern, "a key of the list");
}

static void what_is_ignored_has_no_effect(void)
{
    static struct met met; /* of all frameworks, since some share rows */
    met.count = 0;
    for (int framework = 0; framework < LAUNCH_FRAMEWORK_COUNT; framework++)
        if (lists[framework] != NULL)
            check_effect_of_all_keys((enum launch_framework)framework, &met);
    for (int framework = 0; framework < LAUNCH_FRAMEWORK_COUNT; framework++)
        for (const struct launch_table *table = launch_table((enum launch_framework)framework);
             table != NULL; table = table->table_of_shared_rows)
            check_rows(lists[framework], table, &met);
}

/* Exactly the rows of what is not modelled have a note, which says what the setting does. */
static void what_is_not_modelled_has_a_reason(void)
{
    for (int framework = 0; framework < LAUNCH_FRAMEWORK_COUNT; framework++) {
        for (const struct launch_table *table = launch_table((enum launch_framework)framework);
             table != NULL; table = table->table_of_shared_rows)
            for (size_t i = 0; i < table->row_count; i++)
                CHECK(table->row[i].setting_pattern,
                      (table->row[i].meaning == LAUNCH_UNMODELLED) == (table->row[i].note != NULL));
    }
}

/* ---- formats ---- */

/* Copies the next entry of a list separated by blanks into word, "x*" as "xa" and "x." as "x.a".
 * Returns false if there is none. */
static bool next_word(const char **list, char *word, size_t size)
{
    if (*list == NULL || **list == '\0')
        return false;
    size_t length = strcspn(*list, " ");
    snprintf(word, size, "%.*s", (int)length, *list);
    if (word[length - 1] == '*')
        word[length - 1] = 'a';
    else if (word[length - 1] == '.')
        snprintf(word + length, size - length, "a");
    *list += length + ((*list)[length] == ' ');
    return true;
}

/* Reads a text as a file of that name. The caller releases *diag. */
static enum status parse_launch_text_named(const char *name, const char *text, struct diag *diag)
{
    static struct launch_tables tables; /* read once */
    if (tables.file_count == 0)
        CHECK_INT("the tables are read", launch_tables_load(&tables, NULL), STATUS_OK);
    struct launch launch = {.tables = &tables};
    enum status status = launch_read_text(&launch, name, text, strlen(text), diag);
    launch_release(&launch);
    return status;
}

/* Checks that a text is refused, by a message that names the format. */
static void check_refused(const char *file, const char *text, const char *format)
{
    struct diag diag = {0};
    CHECK_INT(text, parse_launch_text_named(file, text, &diag), STATUS_BAD_INPUT);
    CHECK(text, diag.text != NULL && strstr(diag.text, format) != NULL);
    CHECK_INT(text, (long long)diag.error_count, 1);
    diag_release(&diag);
}

/* A key, argument or program of a format that is not read refuses the file, whatever else the file
 * has. */
static void unread_launch_formats_are_refused(void)
{
    size_t count;
    const struct launch_format *format = launch_formats(&count);
    char word[80], text[400], name[80];
    size_t refused = 0;
    for (size_t i = 0; i < count; i++) {
        const struct launch_format *f = &format[i];
        const char *keys = f->keys, *arguments = f->arguments, *programs = f->programs;
        if (f->framework != LAUNCH_FRAMEWORK_COUNT)
            continue;
        CHECK(f->name, f->advice_instead != NULL);
        refused++;
        snprintf(name, sizeof name, "of %s, which is not read; %.20s", f->name, f->advice_instead);
        while (next_word(&keys, word, sizeof word)) {
            snprintf(text, sizeof text,
                     "model_name_or_path: x\nlearning_rate: 1\ntrain_batch_size: 8\n%s: 1\n", word);
            check_refused("a.yaml", text, name);
            snprintf(text, sizeof text, "{\"train_batch_size\": 8, \"%s\": 1}", word);
            check_refused("a.json", text, name);
            snprintf(text, sizeof text, "torchrun --nproc_per_node 8 x.py %s=1 --seed 1\n", word);
            check_refused("a.sh", text, name);
        }
        while (next_word(&arguments, word, sizeof word)) {
            snprintf(text, sizeof text,
                     "torchrun --nproc_per_node 8 x.py --model_name_or_path x %s 1\n", word);
            check_refused("a.sh", text, name);
        }
        while (next_word(&programs, word, sizeof word)) {
            snprintf(text, sizeof text, "%s train --model_name_or_path x --learning_rate 1\n",
                     word);
            check_refused("a.sh", text, name);
            if (strchr(word, '.') != NULL)
                continue; /* a file, no module */
            snprintf(text, sizeof text, "accelerate launch -m %s.cli --num_train_epochs 1\n", word);
            check_refused("a.sh", text, name);
        }
    }
    CHECK("formats that are refused", refused >= 12);
}

/* One key of a format that is read is enough to recognise the format. */
static void formats_are_read_by_their_own_keys(void)
{
    size_t count;
    const struct launch_format *format = launch_formats(&count);
    char word[80];
    const struct launch none = {0};
    for (size_t i = 0; i < count; i++) {
        const char *keys = format[i].keys;
        while (format[i].framework != LAUNCH_FRAMEWORK_COUNT &&
               next_word(&keys, word, sizeof word)) {
            struct settings settings = {0};
            settings_add(&settings, "unknown_to_all", "1", (struct loc){0});
            settings_add(&settings, word, "1", (struct loc){0});
            const struct launch_format *found = launch_format_of_settings(&none, &settings);
            CHECK_TEXT(word, found == NULL ? "none" : found->name, format[i].name);
            settings_release(&settings);
        }
    }
}

/* A file without a framework's own keys is refused, however many keys it shares with those that are
 * read: learning_rate, seed ... */
static void keys_that_many_have_are_no_format(void)
{
    static const char *const texts[][2] = {
        {"a.yaml", "learning_rate: 1e-4\nseed: 1\nmax_length: 8192\nbf16: true\n"},
        {"a.yaml", "learning_rate: 1e-4\ngradient_accumulation_steps: 2\noptim: adamw_torch\n"},
        {"a.json", "{\"gradient_accumulation_steps\": 2, \"seed\": 1}"},
        {"a.toml", "[model]\nname = \"x\"\n[optimizer]\nlr = 1e-4\n"},
        {"a.toml", "[project]\nname = \"x\"\n"},
        {"a.sh", "torchrun --nproc_per_node 8 train.py --lr 1e-4 --batch 8\n"},
        {"a.sh", "python train.py config.yaml lr=1e-4\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        check_refused(texts[i][0], texts[i][1], "of no program that is read");
}

static const struct check_case cases[] = {
    {"what is ignored has no effect", what_is_ignored_has_no_effect},
    {"what is not modelled has a reason", what_is_not_modelled_has_a_reason},
    {"other formats are refused by name", unread_launch_formats_are_refused},
    {"formats are read by their own keys", formats_are_read_by_their_own_keys},
    {"keys that many have are no format", keys_that_many_have_are_no_format},
};
CHECK_MAIN("launch_keys", cases)

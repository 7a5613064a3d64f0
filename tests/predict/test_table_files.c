/* tests/predict/test_table_files.c: the table files of training frameworks (launch/NAME.csv): what they may hold, what
 * their rows read and write, and that the shipped ones agree with tests/data/launch_keys/. */
#include "predict/launch/launch_parts.h"
#include "predict/launch/table_file.h"

#include "base/file_set.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes a table into this program's folder and returns its path. */
static const char *write_table(const char *text)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/table.csv", check_temp_dir());
    struct file_set files = {0};
    struct diag diag = {0};
    CHECK_INT(path, file_set_begin(&files, &diag), STATUS_OK);
    CHECK_INT(path, file_set_add(&files, path, text, strlen(text), &diag), STATUS_OK);
    CHECK_INT(path, file_set_end(&files, &diag), STATUS_OK);
    file_set_release(&files);
    diag_release(&diag);
    return path;
}

#define COLUMNS "setting,use,to,words,note,since,until\n"
#define NAMED COLUMNS "name,is,,mine,,,\nfamily,is,,trainer,,,\nkeys,is,,my_length,,,\n"

/* ---- what a table file may not hold ---- */

static const struct {
    const char *text, *message;
} bad[] = {
    {"setting,use\n", "the column 'to' is missing"},
    {COLUMNS, "needs rows of use `is`"},
    {COLUMNS "name,is,,mine,,,\nkeys,is,,a,,,\n", "needs rows of use `is`"},
    {COLUMNS "family,is,,pytorch,,,\n", "a family is trainer or megatron"},
    {COLUMNS "inherits,is,,trainer,,,\n", "inherits from its family"},
    {COLUMNS "implementation,is,,mine,,,\n", "an implementation is own or family, not 'mine'"},
    {COLUMNS "colour,is,,red,,,\n", "not 'colour'"},
    {COLUMNS "name,is,,,,,\n", "name needs a value"},
    {NAMED "a,sets,sequence,,,,\n", "'sequence' is neither a field nor an option"},
    {NAMED "a,sets,sep,,,,\n", "did you mean 'seq'?"},
    {NAMED "a,makes,seq,,,,\n", "'makes' is no use"},
    {NAMED "a,ignored,seq,,,,\n", "sets nothing"},
    {NAMED "a_{b|c,ignored,,,,,\n", "a list of names is written lora_{r|alpha}"},
    {NAMED "a_{b}c,ignored,,,,,\n", "a list of names is written lora_{r|alpha}"},
    {NAMED "a_{b|*},ignored,,,,,\n", "a list of names is written lora_{r|alpha}"},
    {NAMED "a,written,,,,,\n", "'' is neither a field nor an option"},
    {NAMED "a,unmodelled,,,,,\n", "a note that says what it does"},
    {NAMED ",sets,seq,,,,\n", "name a setting"},
    {NAMED "a,unset,seq,1,,,\n", "name a setting"},
    {NAMED "a,sets,seq\n", "a row has 7 fields"},
};

static void bad_tables_have_one_message(void)
{
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct launch_tables tables = {0};
        struct diag diag = {0};
        CHECK_INT(bad[i].text, launch_tables_add_file(&tables, write_table(bad[i].text), &diag),
                  STATUS_BAD_INPUT);
        CHECK_INT(bad[i].text, (long long)diag.error_count, 1);
        if (diag.text == NULL || strstr(diag.text, bad[i].message) == NULL)
            CHECK_TEXT(bad[i].text, diag.text == NULL ? "" : diag.text, bad[i].message);
        launch_tables_release(&tables);
        diag_release(&diag);
    }
}

/* ---- what rows do ---- */

static const char mine[] =
    NAMED "my_length,sets,seq,,,,\n"
          "my_model,sets,model,,,,\n"
          "batch,sets,micro-batch,tiny=1 huge=64,,,\n"
          "shards,sets,fsdp,,,2.0,\n"
          "zero_like,sets,fsdp,,,,1.9\n"
          "loader,implies,zero,*stage3*=3 *stage2*=2,by its name,,\n"
          "pieces,sets,--ffn-chunks,yes=8 no=-,,,\n"
          "also_pieces,implies,--ffn-chunks,yes=4,,,\n"
          "count_of_pieces,sets,--ffn-chunks,,,,\n"
          "kind,sets,attention,flash*=flash_attention_2 odd=?,an odd kernel,,\n"
          "noise,unmodelled,,0.0 0,noise on the embeddings,,\n"
          "engine,unmodelled,,,its share{share} and weights{2P} {of a GPU}{,,\n"
          "adapter_{r|alpha|targets},unmodelled,,,a detail of adapters,,\n"
          "noted_{by|at},ignored,,,,,\n"
          "log*,ignored,,,,,\n"
          "log_twice,unmodelled,,,a pass over the parameters,,\n"
          ",unset,checkpoints,true,layers are recomputed,,\n";

/* Texts that the reading of a file of that framework must print, or, if `absent` is set, must not: an option
 * "--name value", or a remark "kind: text". */
static const struct {
    const char *settings, *said;
    bool absent;
} rows[] = {
    {"my_length: 8192", "--seq 8192", false},
    {"my_length: 8k", "error: my_length: '8k' is not a whole number", false},
    {"my_length: [1]", "error: my_length: [1] is a list", false},
    {"my_length: 1\nbatch: huge", "--micro-batch 64", false},
    {"my_length: 1\nbatch: 3", "--micro-batch 3", false},
    {"my_length: 1\nbatch: some", "error: batch: 'some' is not a whole number", false},
    {"my_length: 1\nloader: x/stage3.json", "--weights zero3", false},
    {"my_length: 1\nloader: x/stage3.json", "assumed: by its name", false},
    {"my_length: 1\nloader: x.json", "--weights replicated", false},
    {"my_length: 1\npieces: yes", "error", true},
    {"my_length: 1\npieces: \"yes\"", "--ffn-chunks 8", false},
    {"my_length: 1\npieces: \"no\"", "--ffn-chunks", true},
    {"my_length: 1\npieces: 7", "error: pieces: '7' is none of: yes=8 no=-", false},
    {"my_length: 1\nalso_pieces: \"yes\"", "--ffn-chunks 4", false},
    {"my_length: 1\ncount_of_pieces: 16", "--ffn-chunks 16", false},
    {"my_length: 1\npieces: \"yes\"\nalso_pieces: \"yes\"", "--ffn-chunks 8", false},
    {"my_length: 1\nalso_pieces: \"yes\"\npieces: \"yes\"", "--ffn-chunks 8", false},
    {"my_length: 1\nkind: flash-x", "--attention fa2", false},
    {"my_length: 1\nkind: odd", "not modelled: an odd kernel", false},
    {"my_length: 1\nnoise: 0.0", "ignored: noise", false},
    {"my_length: 1\nnoise: 5", "not modelled: noise on the embeddings", false},
    {"my_length: 1\nlog_every: 5", "ignored: log*", false},
    {"my_length: 1\nadapter_r: 8", "not modelled: a detail of adapters", false},
    {"my_length: 1\nadapter_alpah: 8", "unknown: adapter_alpah", false},
    {"my_length: 1\nadapter_: 8", "unknown: adapter_", false},
    {"my_length: 1\nadapter_rank: 8", "unknown: adapter_rank", false},
    {"my_length: 1\nadapter_targets:\n  x: 1", "not modelled: a detail of adapters", false},
    {"my_length: 1\nnoted_at: 5", "ignored: noted_at", false},
    {"my_length: 1\nengine: 0.5", "its share (40.0 GiB of 80.0 GiB) and weights {of a GPU}{",
     false},
    {"my_length: 1\nengine: 5", "its share and weights {of a GPU}{", false},
    {"my_length: 1\nengine: some", "its share and weights {of a GPU}{", false},
    {"my_length: 1\nengine: 0.25\nmy_model: Qwen/Qwen3-8B",
     "its share (20.0 GiB of 80.0 GiB) and weights (15.3 GiB) {of a GPU}{", false},
    {"my_length: 1\nlog_twice: 5", "not modelled: a pass over the parameters", false},
    {"my_length: 1\nmy_lenght: 5", "unknown: my_lenght", false},
    {"my_length: 1\nmax_length: 5", "unknown: max_length", false},
    {"my_length: 1", "--activations full", false},
    {"my_length: 1", "assumed: layers are recomputed", false},
    {"my_length: 1\nshards: true\nzero_like: true", "no version has both", false},
    {"my_length: 1\nshards: true", "no version has both", true},
    {"my_length: 1\nshards: true\nzero_like: false", "error: zero_like is 'false', and", false},
};

/* Reads settings by the table and appends all that is said of them, one thing a line. */
static void append_remarks_on_settings(struct text *out, const struct launch_tables *tables,
                                       const char *settings)
{
    static const char *const kinds[REMARK_KIND_COUNT] = {"assumed", "not modelled", "unknown",
                                                         "missing", "ignored"};
    struct launch launch = {.tables = tables};
    struct diag diag = {0};
    enum status status = launch_read_text(&launch, "mine.yaml", settings, strlen(settings), &diag);
    if (status == STATUS_OK)
        status = launch_make_options(
            &launch, (struct launch_known_facts){.gpu_count = 8, .gpu_bytes = 80 * 0x1p30}, &diag);
    for (size_t i = 0; i < launch.option_count; i++)
        text_printf(out, "--%s %s\n", launch.option[i].name,
                    launch.option[i].value == NULL ? "" : launch.option[i].value);
    for (size_t i = 0; i < launch.remark_count; i++) {
        const struct launch_remark *remark = &launch.remark[i];
        bool named = remark->text == NULL || remark->text[0] == '\0';
        text_printf(out, "%s: %s\n", kinds[remark->kind], named ? remark->name : remark->text);
    }
    text_puts(out, diag.text == NULL ? "" : diag.text);
    launch_release(&launch);
    diag_release(&diag);
}

static void launch_rows_give_their_remarks(void)
{
    struct launch_tables tables = {0};
    struct diag diag = {0};
    CHECK_INT("mine", launch_tables_add_file(&tables, write_table(mine), &diag), STATUS_OK);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct text said = {0};
        append_remarks_on_settings(&said, &tables, rows[i].settings);
        if ((strstr(said.data, rows[i].said) != NULL) == rows[i].absent)
            CHECK_TEXT(rows[i].settings, said.data, rows[i].said);
        text_release(&said);
    }
    launch_tables_release(&tables);
    diag_release(&diag);
}

/* ---- what rows write ---- */

/* For each row of a table: the value that is written so that the row reads it as `means`. NULL:
 * there is no such value. */
static const struct {
    const char *row, *means, *value;
} written[] = {
    {"a,sets,seq,,,,\n", "8192", "8192"},
    {"a,sets,optimizer,adam8=adamw_8bit paged*=adamw_8bit,,,\n", "adamw_8bit", "adam8"},
    {"a,sets,optimizer,one=adamw two=adamw,,,\n", "adamw", "one"},
    {"a,sets,checkpoints,on=false off=true,,,\n", "true", "off"},
    {"a,sets,attention,true=flash false=-,,,\n", "sdpa", "sdpa"},
    {"a,sets,attention,sdpa=flash,,,\n", "sdpa", NULL},
    {"a,sets,--loss,true=fused false=-,,,\n", "fused", "true"},
    {"a,sets,--loss,true=fused false=-,,,\n", "eager", NULL},
    {"a,sets,--loss,*=fused,,,\n", "fused", NULL},
    {"a,sets,--loss-chunks,,,,\n", "12", "12"},
    {"a,written,fsdp,true=WRAP,,,\n", "true", "WRAP"},
    {"a,written,fsdp,true=WRAP,,,\n", "false", NULL},
};

static void launch_rows_write_what_they_read(void)
{
    for (size_t i = 0; i < ARRAY_LEN(written); i++) {
        struct launch_tables tables = {0};
        struct diag diag = {0};
        struct arena arena = {0};
        char text[512];
        snprintf(text, sizeof text, "%s%s", NAMED, written[i].row);
        CHECK_INT(text, launch_tables_add_file(&tables, write_table(text), &diag), STATUS_OK);
        const struct launch_table_file *file = launch_tables_find(&tables, "mine");
        const char *value = launch_table_value_to_write(&file->row[0], written[i].means, &arena);
        CHECK_TEXT(written[i].row, value == NULL ? "none" : value,
                   written[i].value == NULL ? "none" : written[i].value);
        CHECK(written[i].row, launch_tables_find(&tables, "yours") == NULL);
        launch_tables_release(&tables);
        arena_release(&arena);
        diag_release(&diag);
    }
}

/* ---- the shipped tables ---- */

/* True if there are rows that name a setting, and all of them ignore it. */
static bool all_rows_ignore_setting(const struct launch_table_file *file, const char *key)
{
    const struct table_row *row = launch_table_find_row(file, key, NULL);
    bool ignored = row != NULL;
    for (; row != NULL; row = launch_table_find_row(file, key, row))
        ignored = ignored && row->use == TABLE_USE_IGNORED;
    return ignored;
}

/* A table ignores the keys that have no effect by the verdicts in tests/data/launch_keys/, and no others. */
static void shipped_tables_ignore_what_has_no_effect(void)
{
    struct launch_tables tables = {0};
    struct diag diag = {0};
    CHECK_INT("the tables are read", launch_tables_load(&tables, &diag), STATUS_OK);
    for (size_t i = 0; i < tables.file_count; i++) {
        const struct launch_table_file *file = tables.file[i];
        const char *name = strrchr(file->path, '/') + 1;
        struct text text = {0};
        char path[80], verdict[8], key[120];
        int size = 0, keys = 0, ignored = 0;
        snprintf(path, sizeof path, "data/launch_keys/%.*s", (int)strcspn(name, "."), name);
        CHECK_INT(path, text_read(&text, check_path(path), &diag), STATUS_OK);
        const char *at = text.data == NULL ? "" : text.data;
        for (at += strcspn(at, "\n"); sscanf(at, " %7s %119s%n", verdict, key, &size) == 2;
             at += size) {
            CHECK_INT(key, all_rows_ignore_setting(file, key), strcmp(verdict, "none") == 0);
            ignored += strcmp(verdict, "none") == 0;
            keys++;
        }
        CHECK(path, keys > 40);
        for (size_t r = 0; r < file->row_count; r++)
            ignored -= file->row[r].use == TABLE_USE_IGNORED &&
                       all_rows_ignore_setting(file, file->row[r].setting);
        CHECK(path, ignored >= 0); /* every ignored row was judged */
        text_release(&text);
    }
    launch_tables_release(&tables);
    diag_release(&diag);
}

/* Each key by which a shipped framework is recognised recognises this framework and no other. */
static void shipped_frameworks_are_told_apart(void)
{
    struct launch_tables tables = {0};
    struct diag diag = {0};
    CHECK_INT("the tables are read", launch_tables_load(&tables, &diag), STATUS_OK);
    CHECK("shipped tables", tables.file_count >= 9);
    const struct launch launch = {.tables = &tables};
    for (size_t i = 0; i < tables.file_count; i++) {
        const struct launch_format *format = &tables.file[i]->format;
        const char *keys = format->keys;
        for (size_t size; keys != NULL && *keys != '\0'; keys += size + (keys[size] == ' ')) {
            char key[80];
            size = strcspn(keys, " ");
            snprintf(key, sizeof key, "%.*s%s", (int)size, keys, keys[size - 1] == '.' ? "a" : "");
            struct settings settings = {0};
            settings_add(&settings, "model_name_or_path", "x", (struct loc){0});
            settings_add(&settings, "per_device_train_batch_size", "1", (struct loc){0});
            char *value = strchr(key, '='); /* "name=*value*" needs the value */
            if (value != NULL) {
                *value++ = '\0';
                value += *value == '*';
                value[strcspn(value, "*")] = '\0';
            }
            settings_add(&settings, key, value != NULL ? value : "1", (struct loc){0});
            CHECK_TEXT(key, launch_format_of_settings(&launch, &settings)->name, format->name);
            settings_release(&settings);
        }
        CHECK(format->name, tables.file[i]->row_count > 20);
    }
    launch_tables_release(&tables);
    diag_release(&diag);
}

static const struct check_case cases[] = {
    {"bad tables have one message", bad_tables_have_one_message},
    {"rows do what they say", launch_rows_give_their_remarks},
    {"rows write what they read", launch_rows_write_what_they_read},
    {"shipped tables ignore what has no effect", shipped_tables_ignore_what_has_no_effect},
    {"shipped frameworks are told apart", shipped_frameworks_are_told_apart},
};
CHECK_MAIN("table_files", cases)

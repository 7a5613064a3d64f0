/* tests/property/test_launch_mutants.c: launch files of public repositories with one setting changed: its name, the
 * type of its value, its nesting, or a second line of it. What the change means is understood, reported or refused;
 * never is a step silently another one. */
#include "predict/launch/launch.h"
#include "predict/launch/table_file.h"

#include "base/text.h"
#include "tests/check.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each day checks its sample of the mutants; one of DAYS days has the same. */
enum { FILES_MAX = 64, MUTANTS = 2000, DAYS = 4 };

struct file {
    char name[256];
    struct text text;
};

/* ---- what a reading says ---- */

struct recording_reader {
    enum status status;
    struct text options; /* one a line */
    struct text said;    /* remarks but those on what is ignored: "name: text", one a line */
    struct text ignored;
};

static void reading_release(struct recording_reader *r)
{
    text_release(&r->options);
    text_release(&r->said);
    text_release(&r->ignored);
}

static struct recording_reader read_text(const char *name, const char *text, size_t size,
                                         const struct launch_tables *tables)
{
    struct recording_reader r = {0};
    struct launch launch = {.tables = tables};
    struct diag diag = {0};
    r.status = launch_read_text(&launch, name, text, size, &diag);
    if (r.status == STATUS_OK)
        r.status = launch_make_options(&launch, (struct launch_given){.gpu_count = 128}, &diag);
    CHECK_INT(name, diag.error_count, r.status != STATUS_OK);
    text_puts(&r.options, "");
    text_puts(&r.said, "");
    text_puts(&r.ignored, "");
    for (size_t i = 0; i < launch.option_count; i++)
        text_printf(&r.options, "--%s %s\n", launch.option[i].name,
                    launch.option[i].value == NULL ? "" : launch.option[i].value);
    for (size_t i = 0; i < launch.remark_count; i++) {
        const struct launch_remark *remark = &launch.remark[i];
        text_printf(remark->kind == REMARK_IGNORED ? &r.ignored : &r.said, "%s: %s\n", remark->name,
                    remark->text == NULL ? "" : remark->text);
    }
    launch_release(&launch);
    diag_release(&diag);
    return r;
}

static bool is_same(const struct recording_reader *a, const struct recording_reader *b)
{
    return a->status == b->status && strcmp(a->options.data, b->options.data) == 0 &&
           strcmp(a->said.data, b->said.data) == 0;
}

/* ---- a setting of a file ---- */

/* A line that holds one setting: text[begin, name) is what stands before its name, then the name, what is between, the
 * value, and what stands after it. */
struct line {
    size_t begin, name, name_end, value, value_end, end;
};

/* Finds the setting of a line; false: it holds none. script: only arguments are settings, "--name value" or
 * "part.name=value", and no variables or commands. */
static bool find_setting(const char *text, struct line *line, bool script)
{
    const char *at = text + line->begin, *end = text + line->end;
    while (at < end && strchr(" \t\"-+", *at) != NULL)
        at++;
    line->name = (size_t)(at - text);
    while (at < end && (strchr("_.-", *at) != NULL || (*at >= '0' && *at <= '9') ||
                        ((*at | 0x20) >= 'a' && (*at | 0x20) <= 'z')))
        at++;
    line->name_end = (size_t)(at - text);
    while (at < end && strchr(" \t\":=", *at) != NULL)
        at++;
    line->value = (size_t)(at - text);
    const char *last = end;
    while (last > at && strchr(" \t\\,\"", last[-1]) != NULL)
        last--;
    line->value_end = (size_t)(last - text);
    bool argument = (line->name > line->begin + 1 && text[line->name - 1] == '-') ||
                    (memchr(text + line->name, '.', line->name_end - line->name) != NULL &&
                     text[line->name_end] == '=');
    return (!script || argument) && line->name_end > line->name + 1 &&
           line->value > line->name_end && line->value_end > line->value &&
           strchr("#[{(<$'", text[line->value]) == NULL;
}

/* Picks a line with a setting at random; false: none was met. */
static bool pick_setting(const struct text *text, struct check_random *random, bool script,
                         struct line *line)
{
    for (int tries = 0; tries < 50; tries++) {
        size_t at = (size_t)check_random_i64(random, 0, (int64_t)text->size - 1);
        while (at > 0 && text->data[at - 1] != '\n')
            at--;
        line->begin = at;
        while (at < text->size && text->data[at] != '\n')
            at++;
        line->end = at;
        if (find_setting(text->data, line, script))
            return true;
    }
    return false;
}

/* ---- changes ---- */

enum change { RENAME, RETYPE, NEST, REPEAT, CHANGES };
static const char *const change_names[CHANGES] = {"renamed", "of another type", "nested",
                                                  "repeated"};

static const char *const other_values[] = {"abc", "[1, 2]", "-3", "{a: 1}", "yes please"};

static void put(struct text *out, const struct text *text, size_t begin, size_t end)
{
    text_append(out, text->data + begin, end - begin);
}

/* Appends the file with one setting changed. */
static void change_line(struct text *out, const struct text *text, const struct line *line,
                        enum change change, struct check_random *random)
{
    const char *other =
        other_values[check_random_i64(random, 0, (int64_t)ARRAY_LEN(other_values) - 1)];
    size_t middle =
        (size_t)check_random_i64(random, (int64_t)line->name + 1, (int64_t)line->name_end);
    put(out, text, 0, change == RENAME ? middle : change == NEST ? line->name_end : line->value);
    if (change == RENAME) {
        text_puts(out, "q");
        put(out, text, middle, text->size);
    } else if (change == NEST) {
        text_puts(out, ".inner");
        put(out, text, line->name_end, text->size);
    } else if (change == RETYPE) {
        text_puts(out, other);
        put(out, text, line->value_end, text->size);
    } else {
        put(out, text, line->value, line->value_end);
        text_puts(out, (line->name > 0 && text->data[line->name - 1] == '-') ||
                               text->data[line->name_end] == '='
                           ? " "
                           : "\n");
        put(out, text, line->begin, line->value);
        text_puts(out, "7");
        put(out, text, line->value_end, text->size);
    }
}

/* Appends the name of a setting as the changed file has it. */
static void put_name(struct text *out, const struct text *changed, size_t name)
{
    size_t end = name;
    while (strchr(" \t\":=\n", changed->data[end]) == NULL)
        end++;
    put(out, changed, name, end);
}

/* True if a reading says something of a name. */
static bool names(const struct text *said, const char *name)
{
    const char *last = strrchr(name, '.');
    return strstr(said->data, name) != NULL ||
           (last != NULL && last[1] != '\0' && strstr(said->data, last + 1) != NULL);
}

/* Changes one setting of a file. A change of a setting that decides is refused or said; any other one leaves the step
 * as it is, or is said. */
static void check_mutant(const struct file *file, const struct launch_tables *tables,
                         struct check_random *random, size_t i, int *tried, int *decided)
{
    struct line line = {0};
    if (!pick_setting(&file->text, random, strstr(file->name, ".sh") != NULL, &line))
        return;
    enum change change = (enum change)check_random_i64(random, 0, CHANGES - 1);
    struct text changed = {0}, without = {0}, name = {0}, label = {0};
    change_line(&changed, &file->text, &line, change, random);
    if (!check_today(i, MUTANTS, DAYS)) {
        text_release(&changed);
        return;
    }
    size_t name_begin = line.name;
    while (name_begin > line.begin && strchr("-+\"", file->text.data[name_begin - 1]) != NULL)
        name_begin--;
    put(&without, &file->text, 0, name_begin);
    put(&without, &file->text, line.value_end, file->text.size);
    put_name(&name, &changed, line.name);
    struct recording_reader before =
        read_text(file->name, file->text.data, file->text.size, tables);
    struct recording_reader lacks = read_text(file->name, without.data, without.size, tables);
    struct recording_reader after = read_text(file->name, changed.data, changed.size, tables);
    bool decides = lacks.status == STATUS_OK && !is_same(&before, &lacks);
    bool said = after.status != STATUS_OK || names(&after.said, name.data);
    bool same = strcmp(before.options.data, after.options.data) == 0;
    text_printf(&label, "%s: %s is %s\n%s%s", file->name, name.data, change_names[change],
                after.options.data, after.said.data);
    if (decides || !same)
        CHECK(label.data, said);
    *tried += 1;
    *decided += decides;
    reading_release(&before);
    reading_release(&lacks);
    reading_release(&after);
    text_release(&changed);
    text_release(&without);
    text_release(&name);
    text_release(&label);
}

static void a_changed_setting_is_understood_said_or_refused(void)
{
    static struct file files[FILES_MAX];
    struct check_random random = check_random_make();
    struct launch_tables tables = {0};
    struct diag diag = {0};
    CHECK_INT("the tables are read", launch_tables_load(&tables, &diag), STATUS_OK);
    size_t count = 0;
    DIR *folder = opendir(check_path("data/launch"));
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char path[300];
        if (strstr(entry->d_name, ".yaml") == NULL && strstr(entry->d_name, ".toml") == NULL &&
            strstr(entry->d_name, ".sh") == NULL)
            continue;
        struct file *file = &files[count++];
        snprintf(file->name, sizeof file->name, "%s", entry->d_name);
        snprintf(path, sizeof path, "data/launch/%s", entry->d_name);
        CHECK_INT(path, text_read(&file->text, check_path(path), &diag), STATUS_OK);
        if (count == FILES_MAX)
            break;
    }
    if (folder != NULL)
        closedir(folder);
    CHECK("files", count > 25);
    int tried = 0, decided = 0;
    for (size_t i = 0; i < MUTANTS && count > 0; i++)
        check_mutant(&files[check_random_i64(&random, 0, (int64_t)count - 1)], &tables, &random, i,
                     &tried, &decided);
    CHECK("changed settings that decide", decided > tried / 8 && tried > 0);
    for (size_t i = 0; i < count; i++)
        text_release(&files[i].text);
    launch_tables_release(&tables);
    diag_release(&diag);
}

static const struct check_case cases[] = {
    {"a changed setting is understood, said or refused",
     a_changed_setting_is_understood_said_or_refused},
};
CHECK_MAIN("launch_mutants", cases)

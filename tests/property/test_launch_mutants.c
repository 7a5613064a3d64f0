/* tests/property/test_launch_mutants.c: launch files of public repositories with one setting
 * changed: its name, the type of its value, its nesting, or a second line of it. The change is
 * understood, reported or refused; the step never becomes another one silently. A setting decides
 * if the file without it gives another step. */
#include "predict/launch/launch.h"
#include "predict/launch/table_file.h"

#include "base/text.h"
#include "tests/check.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* check_is_sampled_today() chooses one of DAYS mutants for a day. */
enum { FILES_MAX = 64, MUTANTS = 2000, DAYS = 4 };

struct file {
    char name[256];
    struct text text;
};

/* ---- what a reading says ---- */

/* The result of reading a launch file. */
struct launch_reading {
    enum status status;
    struct text options; /* one a line */
    struct text remarks; /* remarks but those on what is ignored: "name: text", one a line */
    struct text ignored_settings;
};

static void reading_release(struct launch_reading *r)
{
    text_release(&r->options);
    text_release(&r->remarks);
    text_release(&r->ignored_settings);
}

static struct launch_reading read_text(const char *name, const char *text, size_t size,
                                       const struct launch_tables *tables)
{
    struct launch_reading r = {0};
    struct launch launch = {.tables = tables};
    struct diag diag = {0};
    r.status = launch_read_text(&launch, name, text, size, &diag);
    if (r.status == STATUS_OK)
        r.status =
            launch_make_options(&launch, (struct launch_known_facts){.gpu_count = 128}, &diag);
    CHECK_INT(name, diag.error_count, r.status != STATUS_OK);
    text_puts(&r.options, "");
    text_puts(&r.remarks, "");
    text_puts(&r.ignored_settings, "");
    for (size_t i = 0; i < launch.option_count; i++)
        text_printf(&r.options, "--%s %s\n", launch.option[i].name,
                    launch.option[i].value == NULL ? "" : launch.option[i].value);
    for (size_t i = 0; i < launch.remark_count; i++) {
        const struct launch_remark *remark = &launch.remark[i];
        text_printf(remark->kind == REMARK_IGNORED ? &r.ignored_settings : &r.remarks, "%s: %s\n",
                    remark->name, remark->text == NULL ? "" : remark->text);
    }
    launch_release(&launch);
    diag_release(&diag);
    return r;
}

static bool readings_are_equal(const struct launch_reading *a, const struct launch_reading *b)
{
    return a->status == b->status && strcmp(a->options.data, b->options.data) == 0 &&
           strcmp(a->remarks.data, b->remarks.data) == 0;
}

/* ---- a setting of a file ---- */

/* A line that holds one setting: text[begin, name) is what stands before its name, then the name, what is between, the
 * value, and what stands after it. */
struct line {
    size_t begin, name, name_end, value, value_end, end;
};

/* Returns the first place from `at` on, or `end`, whose character is not in `characters`. */
static size_t skip_characters_among(const char *text, size_t at, size_t end, const char *characters)
{
    while (at < end && strchr(characters, text[at]) != NULL)
        at++;
    return at;
}

static size_t skip_setting_name(const char *text, size_t at, size_t end)
{
    while (at < end && (strchr("_.-", text[at]) != NULL || (text[at] >= '0' && text[at] <= '9') ||
                        ((text[at] | 0x20) >= 'a' && (text[at] | 0x20) <= 'z')))
        at++;
    return at;
}

/* True if the line's setting is an argument of a command: "--name value" or "part.name=value". */
static bool is_command_argument(const char *text, const struct line *line)
{
    bool has_dashes = line->name > line->begin + 1 && text[line->name - 1] == '-';
    bool has_part = memchr(text + line->name, '.', line->name_end - line->name) != NULL;
    return has_dashes || (has_part && text[line->name_end] == '=');
}

/* Finds the setting of a line. Returns false if it holds none; lists and values of variables do not
 * count. script: only arguments are settings, not variables or commands. */
static bool find_setting_of_line(const char *text, struct line *line, bool script)
{
    line->name = skip_characters_among(text, line->begin, line->end, " \t\"-+");
    line->name_end = skip_setting_name(text, line->name, line->end);
    line->value = skip_characters_among(text, line->name_end, line->end, " \t\":=");
    line->value_end = line->end;
    while (line->value_end > line->value && strchr(" \t\\,\"", text[line->value_end - 1]) != NULL)
        line->value_end--;
    bool has_name = line->name_end > line->name + 1;
    bool has_value = line->value > line->name_end && line->value_end > line->value;
    return has_name && has_value && (!script || is_command_argument(text, line)) &&
           strchr("#[{(<$'", text[line->value]) == NULL;
}

/* Picks a line with a setting at random. Returns false if 50 tries met none. */
static bool pick_random_setting_line(const struct text *text, struct check_random *random,
                                     bool script, struct line *line)
{
    for (int tries = 0; tries < 50; tries++) {
        size_t at = (size_t)check_random_i64(random, 0, (int64_t)text->size - 1);
        while (at > 0 && text->data[at - 1] != '\n')
            at--;
        line->begin = at;
        while (at < text->size && text->data[at] != '\n')
            at++;
        line->end = at;
        if (find_setting_of_line(text->data, line, script))
            return true;
    }
    return false;
}

/* ---- changes ---- */

enum setting_change { RENAME, RETYPE, NEST, REPEAT, CHANGES };
static const char *const change_names[CHANGES] = {"renamed", "of another type", "nested",
                                                  "repeated"};

static const char *const other_values[] = {"abc", "[1, 2]", "-3", "{a: 1}", "yes please"};

static void append_substring(struct text *out, const struct text *text, size_t begin, size_t end)
{
    text_append(out, text->data + begin, end - begin);
}

/* Appends the file with one setting changed. */
static void append_text_with_changed_setting(struct text *out, const struct text *text,
                                             const struct line *line,
                                             enum setting_change setting_change,
                                             struct check_random *random)
{
    /* All kinds of change draw both numbers, so that later draws do not depend on the kind. */
    const char *other =
        other_values[check_random_i64(random, 0, (int64_t)ARRAY_LEN(other_values) - 1)];
    size_t middle =
        (size_t)check_random_i64(random, (int64_t)line->name + 1, (int64_t)line->name_end);
    bool is_on_command_line =
        (line->name > 0 && text->data[line->name - 1] == '-') || text->data[line->name_end] == '=';
    switch (setting_change) {
    case RENAME: /* a letter more in the name */
        append_substring(out, text, 0, middle);
        text_puts(out, "q");
        append_substring(out, text, middle, text->size);
        break;
    case NEST: /* a part more after the name */
        append_substring(out, text, 0, line->name_end);
        text_puts(out, ".inner");
        append_substring(out, text, line->name_end, text->size);
        break;
    case RETYPE: /* another value */
        append_substring(out, text, 0, line->value);
        text_puts(out, other);
        append_substring(out, text, line->value_end, text->size);
        break;
    default: /* REPEAT: the setting again, with the value 7 */
        append_substring(out, text, 0, line->value_end);
        text_puts(out, is_on_command_line ? " " : "\n");
        append_substring(out, text, line->begin, line->value);
        text_puts(out, "7");
        append_substring(out, text, line->value_end, text->size);
    }
}

/* Appends the file without a setting: without its name, the dashes and quote before the name, and its value. */
static void append_text_without_setting(struct text *out, const struct text *text,
                                        const struct line *line)
{
    size_t begin = line->name;
    while (begin > line->begin && strchr("-+\"", text->data[begin - 1]) != NULL)
        begin--;
    append_substring(out, text, 0, begin);
    append_substring(out, text, line->value_end, text->size);
}

/* Appends the name of a setting as the changed file has it. */
static void append_setting_name(struct text *out, const struct text *changed, size_t name)
{
    size_t end = name;
    while (strchr(" \t\":=\n", changed->data[end]) == NULL)
        end++;
    append_substring(out, changed, name, end);
}

/* True if remarks name a setting, in full or by the last part of its name. */
static bool remarks_name_setting(const struct text *remarks, const char *name)
{
    const char *last = strrchr(name, '.');
    return strstr(remarks->data, name) != NULL ||
           (last != NULL && last[1] != '\0' && strstr(remarks->data, last + 1) != NULL);
}

/* Changes one setting of a file. If the setting decides, the change is refused or a remark names it; any other change
 * leaves the step as it is, or is refused or named. *tried and *decided count mutants, and those of settings that
 * decide. Mutants of other days, and a file in which no setting is met, are skipped. */
static void check_changed_setting(const struct file *file, const struct launch_tables *tables,
                                  struct check_random *random, size_t i, int *tried, int *decided)
{
    struct line line = {0};
    if (!pick_random_setting_line(&file->text, random, strstr(file->name, ".sh") != NULL, &line))
        return;
    enum setting_change setting_change =
        (enum setting_change)check_random_i64(random, 0, CHANGES - 1);
    struct text changed = {0}, without = {0}, name = {0}, label = {0};
    /* Mutants that are not of this day draw their numbers, too, so that each one is the same on all days. */
    append_text_with_changed_setting(&changed, &file->text, &line, setting_change, random);
    if (!check_is_sampled_today(i, MUTANTS, DAYS)) {
        text_release(&changed);
        return;
    }
    append_text_without_setting(&without, &file->text, &line);
    append_setting_name(&name, &changed, line.name);
    struct launch_reading before = read_text(file->name, file->text.data, file->text.size, tables);
    struct launch_reading lacks = read_text(file->name, without.data, without.size, tables);
    struct launch_reading after = read_text(file->name, changed.data, changed.size, tables);
    bool decides = lacks.status == STATUS_OK && !readings_are_equal(&before, &lacks);
    bool remarks = after.status != STATUS_OK || remarks_name_setting(&after.remarks, name.data);
    bool same = strcmp(before.options.data, after.options.data) == 0;
    text_printf(&label, "%s: %s is %s\n%s%s", file->name, name.data, change_names[setting_change],
                after.options.data, after.remarks.data);
    if (decides || !same)
        CHECK(label.data, remarks);
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
        check_changed_setting(&files[check_random_i64(&random, 0, (int64_t)count - 1)], &tables,
                              &random, i, &tried, &decided);
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

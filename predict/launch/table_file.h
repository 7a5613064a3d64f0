/* predict/launch/table_file.h: a training framework described by a table file, launch/NAME.csv.
 *
 * A table file has the columns setting, use, to, words, note, since, until. A row of use
 *
 *     is          describes the framework: `setting` is one of name, of, family, implementation, inherits, keys,
 *                 arguments, programs, `words` its value. The family (trainer or megatron) says which functions make options of
 *                 fields; `implementation` is own if the framework's code is not the family's, for which its profile
 *                 stands, so that intervals count it as never measured (--framework), or family; `inherits` with the
 *                 same value adds the family's settings that the file does not name; `of` names the framework of which
 *                 this is another engine, recognised by `keys`: that framework's settings count where this file names none
 *     sets        fills the field `to`, or with `to` "--NAME" is the option of that name
 *     implies     the same, unless a file says the field itself
 *     unset       is the value `words` of the field `to` if no file says it; `note` is then said as assumed
 *     written     is added by `plan --emit` where the field or the option `to` has a value of `words`, with the value
 *                 that words make of it; it is read by other rows
 *     ignored     has no effect on a step
 *     unmodelled  says by `note` what it does; `words` lists the values that are what is predicted, none: those that
 *                 switch it off
 *
 * `setting` is a name as the framework's file has it (an argument without its dashes); '*' at its end stands for
 * anything, and lora_{r|alpha} for lora_r and lora_alpha. In a note {2P} stands for the bytes of two times the model's
 * parameters (with any other number too), and {share} for the bytes of the share of a GPU's memory that the setting's
 * value is. `words` translates values, "adamw_8bit=8bit paged_*=8bit *=-": the first pattern that matches decides; a
 * result '-' says nothing, '?' says `note` as not modelled. A value that no pattern matches stays as it is. Several
 * rows may name one setting; all of them apply. `since` and `until` are the framework's versions that know the setting.
 *
 * All files of the folder launch/ of the shipped data are read once, before a launch file; a user's own are named with
 * --from. */
#ifndef PREDICT_LAUNCH_TABLE_FILE_H
#define PREDICT_LAUNCH_TABLE_FILE_H

#include "predict/launch/formats.h"
#include "predict/launch/launch.h"

enum table_use {
    TABLE_IS,
    TABLE_SETS,
    TABLE_IMPLIES,
    TABLE_UNSET,
    TABLE_WRITTEN,
    TABLE_IGNORED,
    TABLE_UNMODELLED,
    TABLE_USE_COUNT
};

struct table_row {
    const char *setting;
    enum table_use use;
    enum launch_field field;                                  /* LAUNCH_FIELD_COUNT: none */
    const char *option;                                       /* without its dashes; NULL: none */
    const char *words, *note, *since_version, *until_version; /* "": none */
    uint32_t line;
};

struct launch_table_file {
    struct launch_format format; /* the first member, by which a format finds its file */
    const char *path;
    /* the name of the framework of which this is another engine; NULL: of none */
    const char *engine_of;
    enum launch_framework family;
    /* the framework has code of its own, which the profile of its family only approximates */
    bool has_own_code;
    bool inherits_rows;    /* the family's rows in C name the settings that the file does not */
    struct table_row *row; /* heap */
    size_t row_count, capacity;
};

/* All table files that were read. All-zero is empty. Texts live in the arena. */
struct launch_tables {
    struct arena arena;
    struct launch_table_file **file; /* heap, each in the arena; the last one is tried first */
    size_t file_count, capacity;
};

/* Reads the table files of the shipped data. */
enum status launch_tables_load(struct launch_tables *tables, struct diag *diag);
/* Reads one more table file, which is tried before all others. */
enum status launch_tables_add(struct launch_tables *tables, const char *path, struct diag *diag);
void launch_tables_release(struct launch_tables *tables);

/* Returns whether a text is what a pattern of size bytes stands for: '*' at either end stands for anything, and small
 * and capital letters are the same. */
bool launch_is_pattern_of(const char *pattern, size_t size, const char *text);

/* launch_field_name() returns the name of a field in table files, launch_field_kind() the kind of its value. */
const char *launch_field_name(enum launch_field field);
enum launch_kind launch_field_kind(enum launch_field field);

/* Returns the table file of a framework by its name ("Axolotl"); NULL: there is none. */
const struct launch_table_file *launch_tables_find(const struct launch_tables *tables,
                                                   const char *name);
/* Returns, copied into the arena, the value of a setting that a row takes to mean `means`; for a row that is only
 * written, the value that it adds if its field or option is `means`. NULL: there is none. */
const char *launch_table_setting_value(const struct table_row *row, const char *means,
                                       struct arena *arena);

/* Returns the first row that names a setting, or else the first whose name covers many settings. after: a row, to get
 * the next one of the same name; NULL: the first. Returns NULL if there is none. */
const struct table_row *launch_table_find_row(const struct launch_table_file *file,
                                              const char *setting, const struct table_row *after);

/* Applies a setting of the framework launch->table_file by the rows that name it: sets fields and options, and adds
 * remarks. *known is set to whether a row names it. */
enum status launch_table_apply_setting(struct launch *launch, const struct setting *setting,
                                       bool *known, struct diag *diag);
/* Sets the fields for which there are rows of use `unset` and which no file gives. It is called after all files were
 * read. */
enum status launch_table_apply_unset(struct launch *launch, struct diag *diag);

#endif

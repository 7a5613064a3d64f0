/* predict/launch/table_file.h: a training framework described by a table file, launch/NAME.csv.
 *
 * A table file says of each setting of a framework what it means here. It is CSV, with the columns of this example:
 *
 *     setting,use,to,words,note,since,until
 *     name,is,,Our Trainer,,,
 *     family,is,,trainer,,,
 *     keys,is,,tokens_a_row,,,
 *     tokens_a_row,sets,seq,,,,
 *     optimizer,sets,optimizer,adam8=adamw_8bit,,,
 *     fused_loss,sets,--loss-chunks,true=8 false=-,,,
 *
 * `setting` is the name of a setting in the framework's files, or of an argument without its dashes. A name that ends
 * in '*' stands for all names that begin so, and lora_{r|alpha} for lora_r and lora_alpha. Several rows may have one
 * name; all of them apply to the setting. `use` says what the row does:
 *
 *     sets        A setting sets the field `to` (predict/launch/launch_fields.def) or, if `to` is "--NAME", the option
 *                 of that name.
 *     implies     Does what `sets` does, unless a setting sets the field or option itself.
 *     unset       The field `to` has the value `words` if no file gives it; `note` is the remark on that. `setting` is
 *                 empty.
 *     written     `plan --emit` adds the setting if the field or option `to` has one of the values in `words`; the
 *                 setting's value is the one that `words` gives for that. Such a row reads nothing: other rows do.
 *     ignored     The setting has no effect on a step.
 *     unmodelled  The setting does what `note` says, which is not predicted. `words` lists the values for which the
 *                 prediction is right all the same; an empty list: the values that switch the setting off.
 *     is          The row describes the framework, not a setting; `words` is the value of what `setting` names (below).
 *
 * `words` of the uses sets, implies and written translates values by pairs pattern=result, separated by blanks, such as
 * "adamw_8bit=8bit paged_*=8bit *=-". The first pattern that matches a value decides. The result '-' does nothing; '?'
 * adds `note` as a remark that the setting is not modelled. A value that no pattern matches stays as it is for a field,
 * and is an error for an option, if `words` is not empty. But a row of use `written`, and one of use `implies` that has
 * `words`, then does nothing. In a `note`, {2P}, or another number before the P, stands for the bytes of all parameters
 * if each takes that number of bytes, and {share} for the bytes of the share of a GPU's memory that the setting's value
 * is. `since` and `until` are the framework's first and last versions that know the setting.
 *
 * Rows of use `is` give the framework's name, and:
 *
 *     keys, arguments, programs  by which a launch file is recognised as the framework's (predict/launch/formats.h)
 *     family                     trainer or megatron: whose functions make options of fields, and whose profile is used
 *     implementation             own: the framework's code is not the family's, so intervals count the framework as
 *                                never measured (--framework); family: it is the family's
 *     inherits                   the same value as family: the family's rows in C apply to settings without a row here
 *     of                         the name of a framework: the file describes a further engine of it, which `keys`
 *                                recognise. The framework's main table file applies to settings without a row here.
 *
 * All files of the folder launch/ of the shipped data are read once, before a launch file. A user names further ones
 * with --from. */
#ifndef PREDICT_LAUNCH_TABLE_FILE_H
#define PREDICT_LAUNCH_TABLE_FILE_H

#include "predict/launch/formats.h"
#include "predict/launch/launch.h"

enum table_row_use {
    TABLE_USE_DESCRIBES_FRAMEWORK,
    TABLE_USE_SETS,
    TABLE_USE_IMPLIES,
    TABLE_USE_UNSET,
    TABLE_USE_WRITTEN,
    TABLE_USE_IGNORED,
    TABLE_USE_UNMODELLED,
    TABLE_USE_COUNT
};

struct table_row {
    const char *setting;
    enum table_row_use use;
    enum launch_field field;                                  /* LAUNCH_FIELD_COUNT: none */
    const char *option;                                       /* without its dashes; NULL: none */
    const char *words, *note, *since_version, *until_version; /* "": none */
    uint32_t line;
};

struct launch_table_file {
    struct launch_format format; /* the first member, so that a pointer to it is one to the file */
    const char *path;
    /* the name of the framework of which this file describes a further engine; NULL: it describes a whole framework */
    const char *framework_of_engine_file;
    enum launch_framework family;
    /* the framework has code of its own, which the profile of its family only approximates */
    bool has_own_code;
    /* the family's rows in C name the settings that the file does not */
    bool inherits_rows_of_family;
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
enum status launch_tables_add_file(struct launch_tables *tables, const char *path,
                                   struct diag *diag);
void launch_tables_release(struct launch_tables *tables);

/* True if a text matches pattern[0..size), in which a '*' at either end stands for anything. Upper and lower case count
 * as equal. */
bool launch_pattern_matches(const char *pattern, size_t size, const char *text);

/* launch_field_name() returns the name of a field in table files, launch_field_kind() the kind of its value. */
const char *launch_field_name(enum launch_field field);
enum launch_kind launch_field_kind(enum launch_field field);

/* Returns the table file of a framework by its name ("Axolotl"); NULL: there is none. */
const struct launch_table_file *launch_tables_find(const struct launch_tables *tables,
                                                   const char *name);
/* Returns the value to write for the row's setting so that its field or option has the value `means`. For a row of use
 * `written`, returns the value that the setting gets where the field or option is `means`. Returns NULL if there is
 * none. The value is a copy in the arena, or `means` itself. */
const char *launch_table_value_to_write(const struct table_row *row, const char *means,
                                        struct arena *arena);

/* Returns the first row for a setting; NULL: there is none. A row with that name comes before one that lists it
 * ("lora_{r|alpha}"), and that before one that ends in '*'. Rows of use `unset` and `written` are left out. after: the
 * row that the last call returned, to get the next row with the same name; NULL: the first. */
const struct table_row *launch_table_find_row(const struct launch_table_file *file,
                                              const char *setting, const struct table_row *after);

/* Applies a setting by the rows for it in launch->table_file or, if that is of a further engine and has none, in the
 * main table file of its framework: sets fields and options, and adds remarks. Sets *known to whether there is such a
 * row; if there is none, does nothing else. */
enum status launch_table_apply_setting(struct launch *launch, const struct setting *setting,
                                       bool *known, struct diag *diag);
/* Sets the fields that no file gives and for which launch->table_file has a row of use `unset`. Call it after all files
 * were read. Also adds a remark if no version of the framework knows all settings that were read. */
enum status launch_table_apply_unset_rows(struct launch *launch, struct diag *diag);

#endif

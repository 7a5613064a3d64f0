/* predict/launch/formats.h: recognises which program a launch file is for, by what only the files of that program have.
 * A format that is read has a table of settings: in C (launch_table()) or in a table file
 * (predict/launch/table_file.h). Others are known only by name: their files share keys with formats that are read, and
 * would be read as one of these without the rows here.
 *
 * A framework may train by several engines, each with a format and settings of its own, such as verl by FSDP and by
 * Megatron. */
#ifndef PREDICT_LAUNCH_FORMATS_H
#define PREDICT_LAUNCH_FORMATS_H

#include "predict/launch/launch.h"
#include "predict/launch/shell.h"

struct launch_format {
    const char *name; /* "Axolotl" */
    /* the framework whose table has the format's settings. LAUNCH_FRAMEWORK_OF_TABLE_FILE: a table file has them, and
     * this struct is the first member of its struct launch_table_file. LAUNCH_FRAMEWORK_COUNT: the format is not read
     * */
    enum launch_framework framework;
    /* The next three are lists of names, separated by blanks; NULL: an empty list. An entry that ends in '.' or '*'
     * stands for all names that begin with it (without the '*'). An entry "name=value" of `keys` or `arguments` matches
     * a setting of that name only if it has that value, in which a '*' at either end stands for anything. */
    const char *keys;           /* keys of files, and of arguments "key=value" */
    const char *arguments;      /* arguments of commands, with their dashes */
    const char *programs;       /* commands, files of programs, and first parts of modules' names */
    const char *advice_instead; /* what to give instead of a file that is not read */
};

/* Returns the formats that are rows in C, in the order in which they are tried, and sets *count to their number. The
 * formats of table files are tried before them. */
const struct launch_format *launch_formats(size_t *count);

/* Returns the first format that lists a key or an argument of the settings, or its engine
 * (launch_format_of_matching_engine()). Returns NULL if no format does. */
const struct launch_format *launch_format_of_settings(const struct launch *launch,
                                                      const struct settings *settings);

/* Returns the format of another engine of the format's framework if that engine's format lists a key or an argument of
 * the settings; else returns `format`. */
const struct launch_format *launch_format_of_matching_engine(const struct launch *launch,
                                                             const struct launch_format *format,
                                                             const struct settings *settings);

/* Returns the format of the program that a command starts; NULL: no format lists the program. The program may be the
 * command's first word, a module after -m or --module, or the word before the program's arguments. first_argument: the
 * index of the first of these arguments; 0: there are none, and only the first word is looked at. */
const struct launch_format *launch_format_of_command(const struct launch *launch,
                                                     const struct shell_command *command,
                                                     size_t first_argument);

/* Reports that a file's format is not read. format NULL: the file has no known format. */
enum status launch_format_error_unread(const struct launch_format *format, struct loc at,
                                       struct diag *diag);

#endif

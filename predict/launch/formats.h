/* predict/launch/formats.h: recognises which program a launch file is for, by what only the files of that program have.
 * A format that is read has a table of settings (launch_table()). Others are known only by name: their files share keys
 * with formats that are read, and would be read as one of these without the rows here. */
#ifndef PREDICT_LAUNCH_FORMATS_H
#define PREDICT_LAUNCH_FORMATS_H

#include "predict/launch/launch.h"
#include "predict/launch/shell.h"

struct launch_format {
    const char *name; /* "Axolotl" */
    /* the framework whose table reads the format; LAUNCH_TABLE_FILE: the format is the first member of a struct
     * launch_table_file; LAUNCH_FRAMEWORK_COUNT: it is not read */
    enum launch_framework framework;
    /* The next three are lists, separated by blanks; NULL: none. A '.' or '*' at the end of an entry matches anything
     * that follows. An entry "name=value" of `keys` or `arguments` needs that value, in which a '*' at either end
     * matches anything. */
    const char *keys;        /* keys of files, and of arguments "key=value" */
    const char *arguments;   /* arguments of commands, with their dashes */
    const char *programs;    /* commands, files of programs, and first parts of modules' names */
    const char *use_instead; /* what to give instead of a file that is not read */
};

/* Returns all rows in C in the order in which they are tried, which is after the table files, and sets *count to their
 * number. */
const struct launch_format *launch_formats(size_t *count);

/* Returns the format of which the settings have a key or an argument; NULL: of none that is known. */
const struct launch_format *launch_format_of(const struct launch *launch,
                                             const struct settings *settings);

/* If the settings have a key of another engine of the format's framework, returns that engine's format; else returns
 * `format`. */
const struct launch_format *launch_format_engine(const struct launch *launch,
                                                 const struct launch_format *format,
                                                 const struct settings *settings);

/* Returns the format of the program that a command starts. Its name is the command's first word, the module after -m or
 * --module, or the last of the command's first `words` words. Returns NULL if no format is known for it. */
const struct launch_format *launch_format_of_command(const struct launch *launch,
                                                     const struct shell_command *command,
                                                     size_t words);

/* Reports that a file's format is not read. format NULL: the format is not known. */
enum status launch_format_refuse(const struct launch_format *format, struct loc at,
                                 struct diag *diag);

#endif

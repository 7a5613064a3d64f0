/* predict/launch/launch.h: translates launch files of training frameworks into options of ours, and back.
 *
 * A framework's settings are a table: each row names a setting and the field that it sets, or says that it has
 * no effect on a step, or that it is not modelled and how much that may matter. The tables are used in both
 * directions: launch_read() fills fields from files, and launch_print() writes fields. In the C source of a
 * framework, one function translates fields into options; for the frameworks that launch_print() writes
 * (torchtitan, Megatron-LM, DeepSpeed, Axolotl, LLaMA-Factory, TRL) another one translates choices into fields.
 *
 * No setting is dropped in silence: a setting that no row names is listed as unknown. docs/launching.md lists the
 * settings and the versions of the frameworks.
 *
 * The folder predict/launch/ translates between launch files of training frameworks and options of ours. */
#ifndef PREDICT_LAUNCH_LAUNCH_H
#define PREDICT_LAUNCH_LAUNCH_H

#include "predict/launch/settings.h"
#include "predict/plan/expressible.h"
#include "schedule/choices/choices.h"

#include <stdbool.h>
#include <stdint.h>

/* The fields. A field has one value: a count, a switch (0 or 1), a number or a text. */
enum launch_field {
#define LAUNCH_FIELD(id, name, kind) LAUNCH_##id,
#include "predict/launch/launch_fields.def"
#undef LAUNCH_FIELD
    LAUNCH_FIELD_COUNT
};

struct launch_field_value {
    /* the field has a value: a setting gives or implies it, or it follows from others */
    bool is_given;
    /* the value is that of a table file's row of use `implies` or `unset`; a setting that gives the field replaces
     * it */
    bool is_implied;
    int64_t whole_number;     /* also switches: 0 or 1 */
    double real_number;       /* also counts */
    const char *text;         /* the value as the file has it */
    const char *setting_name; /* the name of the setting that gives the field; NULL: none does */
    struct loc place;         /* the place of that setting */
};

enum launch_framework {
    LAUNCH_TORCHTITAN,
    LAUNCH_MEGATRON,
    LAUNCH_DEEPSPEED_JSON,
    LAUNCH_MEGATRON_DEEPSPEED, /* the arguments of Megatron-DeepSpeed */
    LAUNCH_ACCELERATE,
    LAUNCH_TRAINER, /* TRL's scripts, and others of Hugging Face's Trainer */
    LAUNCH_FOUNDRY,
    LAUNCH_FRAMEWORK_OF_TABLE_FILE, /* a framework of a table file (launch/NAME.csv) */
    LAUNCH_LAUNCHER_PROGRAM, /* torchrun, deepspeed, accelerate launch, srun; DeepSpeed's arguments of any program */
    LAUNCH_FRAMEWORK_COUNT
};

enum launch_kind {
    LAUNCH_WHOLE_NUMBER,
    LAUNCH_SWITCH,      /* a flag, or true and false */
    LAUNCH_ON_IF_GIVEN, /* a switch that is on if the setting is given, whatever its value */
    LAUNCH_REAL_NUMBER,
    LAUNCH_TEXT
};

enum launch_setting_use {
    LAUNCH_SETS_FIELD, /* the setting fills its field; launch_print() writes the setting */
    /* the setting fills its field, but launch_print() never writes it: it is another name of a setting, or the
     * framework is not written */
    LAUNCH_ALIAS_OF_FIELD,
    LAUNCH_IGNORED,    /* no effect on a step */
    LAUNCH_UNMODELLED, /* `note` says what it does, and how much it may matter */
};

struct launch_row {
    const char *setting_pattern; /* a '*' at its end stands for anything */
    enum launch_setting_use meaning;
    enum launch_kind kind;
    enum launch_field field;
    const char *note;
    /* for a LAUNCH_UNMODELLED row: the values for which the prediction is right all the same, separated by blanks;
     * NULL: the values that switch the setting off */
    const char *values_without_remark;
};

struct launch_table {
    const struct launch_row *row;
    size_t row_count;
    /* the table of the rows that the framework shares with another one; NULL: it shares none */
    const struct launch_table *table_of_shared_rows;
};
const struct launch_table *launch_table(enum launch_framework framework);

/* The sorts of remarks, most of them on a setting that became no option, or an option with another value. */
enum launch_remark_kind {
    REMARK_ASSUMED,           /* something is taken that no file says */
    REMARK_UNMODELLED,        /* the run does something else than is predicted */
    REMARK_UNKNOWN,           /* no row names the setting */
    REMARK_KNOWN_IN_RUN_ONLY, /* only the running script, or a file that is not here, has it */
    REMARK_IGNORED,           /* the setting has no effect on a step */
    REMARK_KIND_COUNT
};

struct launch_remark {
    enum launch_remark_kind kind;
    const char *name;
    const char *text; /* NULL: none */
    struct loc place;
};

struct launch_option {
    const char *name, *value; /* an option of the command: "seq" and "8192"; value NULL: a flag */
    struct loc place;         /* the place of the setting that it comes from */
    /* another setting implies the option (a row of use `implies`), so a setting that gives it directly replaces it */
    bool is_implied;
};

enum { LAUNCH_OPTIONS_MAX = 64 };

struct launch_tables; /* table files (predict/launch/table_file.h) */
struct launch_table_file;
struct table_row;

/* The contents of launch files that were read, or of one that is written. All-zero is empty. Texts live in the
 * arena. */
struct launch {
    struct arena arena;
    /* the table files: the caller's, or, if the caller sets none, those of the shipped data */
    const struct launch_tables *tables;
    /* tables that were loaded from the shipped data; NULL: the caller set `tables` */
    struct launch_tables *loaded_tables;
    /* the table file of the framework whose file was read; NULL: it has none */
    const struct launch_table_file *table_file;
    struct launch_field_value field_value[LAUNCH_FIELD_COUNT];
    bool has_read_framework_file[LAUNCH_FRAMEWORK_COUNT]; /* the kinds of files that were read */
    struct launch_remark *remark;                         /* heap */
    size_t remark_count, remark_capacity;
    struct launch_option option[LAUNCH_OPTIONS_MAX];
    size_t option_count;
    /* Of those rows of the table file that settings matched, newest_row has the latest version in `since`, and
     * oldest_row the earliest one in `until`. NULL: none of them has such a version. */
    const struct table_row *newest_row, *oldest_row;
    /* options that have no field: settings give them by rows of the table file, or launch_print() writes them by such
     * rows */
    struct launch_option table_option[LAUNCH_OPTIONS_MAX];
    size_t table_option_count;
    struct text comments_to_print; /* lines that launch_print() writes before the settings */
    /* the folder of the file that launch_read() is reading; NULL: it reads none */
    const char *script_folder;
    const char *files_named_by_script[8]; /* files that the script names, which are read after it */
    size_t named_file_count;
    /* a file of files_named_by_script is being read: fields that settings gave already are kept */
    bool is_reading_named_file;
};

void launch_release(struct launch *launch);

/* Returns "a torchtitan configuration", or for a file that a table describes "settings of Axolotl". */
const char *launch_framework_name(struct launch *launch, enum launch_framework framework);

/* ---- reading ---- */

/* launch_read() reads a file, or a line of arguments, into *launch. Then it reads the files that a command in it names,
 * if they exist; a field that the command sets keeps its value. launch_read_text() reads a text, and no files that it
 * names. Further calls of either add to *launch. It is an error if the files of two calls set one field differently. A
 * config.json, or a model file of ours, becomes the option "model". */
enum status launch_read(struct launch *launch, const char *path, struct diag *diag);
enum status launch_read_text(struct launch *launch, const char *name, const char *text, size_t size,
                             struct diag *diag);

/* True if a path looks like a file that launch_read() reads (.toml, .sh, .json, .yaml, .yml), or is a command. */
bool launch_is_path(const char *path);

/* Returns the number of GPUs on which the launcher starts ranks; 0: it does not say. */
int64_t launch_gpu_count(const struct launch *launch);

/* Facts that the caller knows, whether or not the files say them. */
struct launch_known_facts {
    int64_t gpu_count; /* 0: not known */
    /* take a mixture of experts as a dense model of its active parameters */
    bool takes_experts_as_dense;
    bool is_model_known;           /* the caller knows the model: files need not name one */
    bool is_vocabulary_known;      /* the caller knows the size of the model's vocabulary */
    bool is_sequence_length_known; /* the caller knows the tokens of a sequence */
    /* the model that the caller knows; NULL: it knows none, or a sweep has several */
    const char *model_name;
    double gpu_bytes; /* memory of a GPU, as CUDA reports it; 0: not known */
};

/* Fills launch->option with the options that mean the same as the settings that were read, and adds remarks on what
 * they do not express. */
enum status launch_make_options(struct launch *launch, struct launch_known_facts given,
                                struct diag *diag);

/* ---- writing ---- */

/* Fails if the framework has no name for the model: torchtitan knows its models by flavors, and Axolotl, LLaMA-Factory
 * and TRL by names on the Hugging Face hub. */
enum status launch_check_model(enum framework framework, const struct transformer *model,
                               struct diag *diag);

/* Appends the settings by which a framework runs the choices, as its file or command line has them, after comments that
 * begin with '#'. launch_check_model() must have accepted the model of the choices. Fails only if a table file of the
 * shipped data cannot be read, or if the one of the framework is not among them. */
enum status launch_print(struct text *out, enum framework framework, const struct choices *choices,
                         struct diag *diag);

#endif

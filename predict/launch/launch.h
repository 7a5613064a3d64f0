/* predict/launch/launch.h: translates launch files of training frameworks into options of ours, and back.
 *
 * A framework's settings are a table: each row names a setting and the field that it sets, or says that it has
 * no effect on a step, or that it is not modelled and how much that may matter. The tables are used in both
 * directions: launch_read() fills fields from files, and launch_print() writes fields. In a framework's file,
 * one function translates fields into options; for the frameworks that launch_print() writes (torchtitan,
 * Megatron-LM, DeepSpeed, Axolotl, LLaMA-Factory, TRL) another one translates choices into fields.
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
    LAUNCH_FIELDS
};

struct launch_value {
    bool is_given;    /* a file gives the field */
    bool is_implied;  /* only another setting implies it, or the framework's default */
    int64_t count;    /* also switches: 0 or 1 */
    double number;    /* also counts */
    const char *text; /* as it was written */
    const char *name; /* of the setting */
    struct loc at;
};

enum launch_framework {
    LAUNCH_TORCHTITAN,
    LAUNCH_MEGATRON,
    LAUNCH_DEEPSPEED_JSON,
    LAUNCH_MEGATRON_DEEPSPEED, /* the arguments */
    LAUNCH_ACCELERATE,
    LAUNCH_TRAINER, /* TRL's scripts, and others of Hugging Face's Trainer */
    LAUNCH_FOUNDRY,
    LAUNCH_TABLE, /* a framework of a table file (launch/NAME.csv) */
    LAUNCH_LAUNCHER, /* torchrun, deepspeed, accelerate launch, srun; DeepSpeed's arguments of any program */
    LAUNCH_FRAMEWORKS
};

enum launch_kind {
    LAUNCH_COUNT,
    LAUNCH_SWITCH,   /* a flag, or true and false */
    LAUNCH_PRESENCE, /* a switch that is on if the setting is given, whatever its value */
    LAUNCH_NUMBER,
    LAUNCH_TEXT
};

enum launch_use {
    LAUNCH_SETS,       /* the field; launch_print() writes it */
    LAUNCH_ALSO_SETS,  /* the field: another name of it, which is only read */
    LAUNCH_IGNORED,    /* no effect on a step */
    LAUNCH_UNMODELLED, /* `note` says what it does, and how much it may matter */
};

struct launch_row {
    const char *name; /* a '*' at its end stands for anything */
    enum launch_use use;
    enum launch_kind kind;
    enum launch_field field;
    const char *note;
    /* UNMODELLED: values that are what is predicted, separated by blanks; NULL: those that switch it off */
    const char *default_value;
};

struct launch_table {
    const struct launch_row *row;
    size_t count;
    const struct launch_table *shared_rows; /* rows that another framework has too; NULL: none */
};
const struct launch_table *launch_table(enum launch_framework framework);

/* The kinds of remarks on settings that became no option, or another value of one. */
enum launch_remark_kind {
    REMARK_ASSUMED,
    REMARK_UNMODELLED,
    REMARK_UNKNOWN,
    REMARK_OPEN, /* its value is known only when the script runs */
    REMARK_IGNORED,
    REMARK_KINDS
};

struct launch_remark {
    enum launch_remark_kind kind;
    const char *name;
    const char *text; /* NULL: none */
    struct loc at;
};

struct launch_option {
    const char *name, *value; /* of the command: "seq", "8192"; a flag: NULL */
    struct loc at;            /* where it is from */
    bool is_implied;          /* a setting that says it itself counts more */
};

enum { LAUNCH_OPTIONS_MAX = 64 };

struct launch_tables; /* table files (predict/launch/table_file.h) */
struct launch_table_file;
struct table_row;

/* All-zero is empty. Texts live in the arena. */
struct launch {
    struct arena arena;
    /* table files; the caller's, or those of the shipped data if it sets none */
    const struct launch_tables *tables;
    struct launch_tables *own_tables; /* NULL: the caller set them */
    /* of the framework of a file that was read; NULL: none */
    const struct launch_table_file *table;
    struct launch_value value[LAUNCH_FIELDS];
    bool has_framework[LAUNCH_FRAMEWORKS]; /* which kinds of files were read */
    struct launch_remark *remark;          /* heap */
    size_t remarks, remark_capacity;
    struct launch_option option[LAUNCH_OPTIONS_MAX];
    size_t options;
    const struct table_row *newest_row,
        *oldest_row; /* rows of settings that the framework has since the latest, and until the
                                              * earliest of its versions; NULL: no row says one */
    struct launch_option direct[LAUNCH_OPTIONS_MAX]; /* that rows of a table file name themselves */
    size_t directs;
    struct text comments; /* of launch_print(): lines before the settings */
    const char *folder;   /* of the file that launch_read() reads; NULL: it reads none */
    const char *file[8];  /* settings files that it names, which are read after it */
    size_t files;
    bool reading_named_file; /* such a file is read: what is said already counts more */
};

void launch_release(struct launch *launch);

/* Returns "a torchtitan configuration", or for a file that a table describes "settings of Axolotl". */
const char *launch_framework_name(struct launch *launch, enum launch_framework framework);

/* ---- reading ---- */

/* Reads a file, or a line of arguments, into *launch, and the settings files that a command in it names, if they are
 * there; what the command says counts more than they. Further calls add to *launch. Two files that set one field
 * differently are an error. A config.json or a model file of ours becomes the option "model". */
enum status launch_read(struct launch *launch, const char *path, struct diag *diag);
enum status launch_read_text(struct launch *launch, const char *name, const char *text, size_t size,
                             struct diag *diag);

/* True if a path looks like a file that launch_read() reads (.toml, .sh, .json, .yaml, .yml), or is a command. */
bool launch_is_path(const char *path);

/* Returns the number of GPUs on which the launcher starts ranks; 0: it does not say. */
int64_t launch_gpus(const struct launch *launch);

/* Facts that the caller knows beside the files. */
struct launch_given {
    int64_t gpus;  /* 0: not known */
    bool as_dense; /* take a mixture of experts as a dense model of its active parameters */
    bool model;    /* the caller has a model: files need not name one */
    bool vocab;    /* the caller has the model's vocabulary */
    bool length;   /* the caller has the tokens of a sequence */
    const char *model_name; /* the caller's model; NULL: it has none */
    double gpu_bytes;       /* memory of a GPU, as CUDA reports it; 0: not known */
};

/* Fills launch->option with the options that mean the same as the settings that were read. */
enum status launch_options(struct launch *launch, struct launch_given given, struct diag *diag);

/* ---- writing ---- */

/* Fails if the framework has no name for the model: torchtitan knows its models by flavors, and Axolotl, LLaMA-Factory
 * and TRL by names on the Hugging Face hub. */
enum status launch_check_model(enum framework framework, const struct transformer *model,
                               struct diag *diag);

/* Appends the settings of choices, whose model launch_check_model() accepts, as the framework reads them, after lines
 * that begin with '#'. Fails if a table file of the shipped data, by which they are written, cannot be read. */
enum status launch_print(struct text *out, enum framework framework, const struct choices *choices,
                         struct diag *diag);

#endif

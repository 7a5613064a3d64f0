/* predict/launch/launch.h: translates launch files of training frameworks into options of ours, and back.
 *
 * A framework's settings are a table: each row names a setting and the field that it sets, or says that it has
 * no effect on a step, or that it is not modelled and how much that may matter. The tables are used in both
 * directions: launch_read() fills fields from files, and launch_print() writes fields. In a framework's file,
 * one function translates fields into options; for the frameworks that launch_print() writes (torchtitan,
 * Megatron-LM, DeepSpeed) another one translates choices into fields.
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
    /* the model */
    LAUNCH_LAYERS,
    LAUNCH_HIDDEN,
    LAUNCH_FFN,
    LAUNCH_HEADS,
    LAUNCH_GROUPED, /* a switch: LAUNCH_KV_HEADS counts */
    LAUNCH_KV_HEADS,
    LAUNCH_HEAD_DIM,
    LAUNCH_VOCAB,
    LAUNCH_POSITIONS_MAX,
    LAUNCH_SWIGLU,
    LAUNCH_NO_BIAS,
    LAUNCH_QKV_BIAS,
    LAUNCH_UNTIED,
    LAUNCH_QK_NORM,
    LAUNCH_NORM,
    LAUNCH_NORM_EPS,
    LAUNCH_POSITIONS,
    LAUNCH_ROPE, /* a switch */
    LAUNCH_ROPE_THETA,
    LAUNCH_WINDOW,
    LAUNCH_WINDOW_SKIP,
    LAUNCH_ALIBI,
    LAUNCH_TOKENIZER,
    LAUNCH_MERGES, /* the file of a byte-pair tokenizer */
    LAUNCH_MODEL,  /* a name or a path */
    LAUNCH_FLAVOR,
    LAUNCH_EXPERTS,
    LAUNCH_EXPERTS_A_TOKEN,
    LAUNCH_EXPERT_FFN,
    LAUNCH_SHARED_FFN,
    /* the batch */
    LAUNCH_SEQ,
    LAUNCH_MICRO_BATCH,
    LAUNCH_LOCAL_BATCH, /* of a data rank, all its micro-batches */
    LAUNCH_GLOBAL_BATCH,
    LAUNCH_ACCUMULATION,
    LAUNCH_STAGE_BATCH, /* micro-batch of a pipeline, of the local batch */
    LAUNCH_PACKING,
    /* the ranks */
    LAUNCH_TP,
    LAUNCH_TOKENS_SPLIT, /* tensor ranks share tokens too: a switch */
    LAUNCH_PP,
    LAUNCH_VIRTUAL,
    LAUNCH_VIRTUAL_LAYERS, /* layers of a virtual stage */
    LAUNCH_SCHEDULE,
    LAUNCH_PARTS, /* layers of each stage, as torchtitan lists them */
    LAUNCH_CP,
    LAUNCH_CP_COMM,
    LAUNCH_CP_SIZES,
    LAUNCH_ROTATE,
    LAUNCH_SP, /* head ranks */
    LAUNCH_STAGES_INNER,
    LAUNCH_DP_REPLICATE,
    LAUNCH_DP_SHARD,
    LAUNCH_NODES,
    LAUNCH_GPUS_A_NODE,
    LAUNCH_PROCESSES,
    LAUNCH_TASKS,   /* of srun or mpirun: ranks, unless each starts a launcher */
    LAUNCH_DEVICES, /* "host:0,1@host" of deepspeed --include */
    LAUNCH_VISIBLE, /* "0,1" of CUDA_VISIBLE_DEVICES */
    /* weights */
    LAUNCH_FSDP,
    LAUNCH_SHARDING,
    LAUNCH_FSDP_VERSION,
    LAUNCH_RESHARD,
    LAUNCH_INSTANCES,
    LAUNCH_OUTER_SHARDING,
    LAUNCH_SHARDED_OPTIMIZER,
    LAUNCH_ZERO,
    LAUNCH_SHARD_RANKS,
    LAUNCH_OPTIMIZER_OFFLOAD,
    LAUNCH_OPTIMIZER_DEVICE,
    LAUNCH_PINNED,
    LAUNCH_OPTIMIZER,
    LAUNCH_LOADED_DTYPE, /* of the parameters, as they are read from a checkpoint */
    LAUNCH_NO_PIPELINE,
    LAUNCH_OVERLAP_GRADS,
    LAUNCH_OVERLAP_PARAMS,
    LAUNCH_NO_FUSION,
    LAUNCH_CHECKPOINT_FORMAT,
    LAUNCH_PRECISION_AWARE,
    /* activations */
    LAUNCH_GRANULARITY,
    LAUNCH_METHOD,
    LAUNCH_RECOMPUTED_LAYERS,
    LAUNCH_MODULES,
    LAUNCH_CHECKPOINTS,      /* a switch: whole layers */
    LAUNCH_CHECKPOINTS_HOST, /* and their inputs on the host */
    LAUNCH_DEEPSPEED_CHECKPOINTS,
    LAUNCH_SELECTIVE,
    LAUNCH_CHUNKED, /* FPDT */
    LAUNCH_CHUNK,
    LAUNCH_CHUNKS_HOST,
    /* numbers and kernels */
    LAUNCH_BF16,
    LAUNCH_FP16,
    LAUNCH_DTYPE,
    LAUNCH_PARAM_DTYPE,
    LAUNCH_NO_MASK, /* a switch: the loader makes no mask of seq x seq */
    LAUNCH_ATTENTION,
    LAUNCH_FLASH,
    LAUNCH_DROPOUT,
    LAUNCH_HIDDEN_DROPOUT,
    LAUNCH_COMPILE,
    LAUNCH_COMPILED, /* parts of the program that are compiled */
    LAUNCH_TF32,
    LAUNCH_DEEPSPEED,        /* a switch */
    LAUNCH_DEEPSPEED_CONFIG, /* a path */
    LAUNCH_DISTRIBUTED,      /* Accelerate's distributed_type */
    LAUNCH_FIELDS
};

struct launch_value {
    bool said;        /* a file gives the field */
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
    LAUNCH_LAUNCHER, /* torchrun, deepspeed, accelerate launch, srun; DeepSpeed's arguments of any program */
    LAUNCH_FRAMEWORKS
};
extern const char *const launch_framework_names[LAUNCH_FRAMEWORKS];

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
    const char *
        usual; /* UNMODELLED: values that are what is predicted, separated by blanks; NULL: those that switch it off */
};

struct launch_table {
    const struct launch_row *row;
    size_t count;
    const struct launch_table *shared; /* rows that another framework has too; NULL: none */
};
const struct launch_table *launch_table(enum launch_framework framework);

/* The kinds of remarks on settings that did not become an option as they stand. */
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
};

enum { LAUNCH_OPTIONS_MAX = 64 };

/* All-zero is empty. Texts live in the arena. */
struct launch {
    struct arena arena;
    struct launch_value value[LAUNCH_FIELDS];
    bool has[LAUNCH_FRAMEWORKS];  /* which kinds of files were read */
    struct launch_remark *remark; /* heap */
    size_t remarks, remark_capacity;
    struct launch_option option[LAUNCH_OPTIONS_MAX];
    size_t options;
    struct text comments; /* of launch_print(): lines before the settings */
};

void launch_release(struct launch *launch);

/* ---- reading ---- */

/* Reads a file, or a line of arguments, into *launch; further calls add to it. Two files that set one field
 * differently are an error. A config.json or a model file of ours becomes the option "model". */
enum status launch_read(struct launch *launch, const char *path, struct diag *diag);
enum status launch_read_text(struct launch *launch, const char *name, const char *text, size_t size,
                             struct diag *diag);

/* True if a path looks like a file that launch_read() reads: .toml, .sh, .json, .yaml, .yml. */
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
};

/* Fills launch->option with the options that mean the same as the settings that were read. */
enum status launch_options(struct launch *launch, struct launch_given given, struct diag *diag);

/* ---- writing ---- */

/* Fails if the framework has no name for the model: torchtitan knows its models by flavors. */
enum status launch_check_model(enum framework framework, const struct transformer *model,
                               struct diag *diag);

/* Appends the settings of choices, whose model launch_check_model() accepts, as the framework reads them, after lines that begin with '#'. */
void launch_print(struct text *out, enum framework framework, const struct choices *choices);

#endif

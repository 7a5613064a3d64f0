/* predict/launch/launch_parts.h: functions that the sources of predict/launch share: fields (launch_said.c), remarks and
 * options (launch_remarks.c), settings into fields (launch_take.c), frameworks (launch_frameworks.c). */
#ifndef PREDICT_LAUNCH_LAUNCH_PARTS_H
#define PREDICT_LAUNCH_LAUNCH_PARTS_H

#include "predict/launch/launch.h"

/* ---- fields ---- */

/* True if a file gives the field. */
bool launch_said(const struct launch *launch, enum launch_field field);
/* Returns the field's count; `otherwise` if no file gives the field. launch_number() does the same for a number. */
int64_t launch_count(const struct launch *launch, enum launch_field field, int64_t otherwise);
double launch_number(const struct launch *launch, enum launch_field field, double otherwise);
bool launch_on(const struct launch *launch, enum launch_field field);
const char *launch_text(const struct launch *launch, enum launch_field field);
bool launch_is(const struct launch *launch, enum launch_field field, const char *text);

void launch_say_count(struct launch *launch, enum launch_field field, int64_t count);
void launch_say_number(struct launch *launch, enum launch_field field, double number);
void launch_say_text(struct launch *launch, enum launch_field field, const char *text);
/* The same, unless the field is said already. */
void launch_imply_count(struct launch *launch, enum launch_field field, int64_t count);
void launch_imply_text(struct launch *launch, enum launch_field field, const char *text);

/* ---- remarks and options ---- */

/* Adds a remark whose texts live as long as the launch. launch_remark() copies its texts. */
void launch_add_remark(struct launch *launch, struct launch_remark remark);
void launch_remark(struct launch *launch, enum launch_remark_kind kind, const char *name,
                   struct loc at, const char *format, ...) __attribute__((format(printf, 5, 6)));
/* A remark on a field that was said. */
void launch_remark_on(struct launch *launch, enum launch_remark_kind kind, enum launch_field field,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Reports an error of the setting that gave a field, with its place, or of the file if none gave it. */
enum status launch_bad(const struct launch *launch, enum launch_field field, struct diag *diag,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Fails if a field is said and its text is none of the words, separated by blanks. */
enum status launch_one_of(const struct launch *launch, enum launch_field field, const char *words,
                          struct diag *diag);

/* Adds an option that comes from a field (LAUNCH_FIELDS: from none). */
void launch_option(struct launch *launch, enum launch_field field, const char *name,
                   const char *value);
void launch_option_count(struct launch *launch, enum launch_field field, const char *name,
                         int64_t value);
bool launch_has_option(const struct launch *launch, const char *name);

/* ---- settings into fields ---- */

/* Fails if files were read that do not go together. */
enum status launch_check_kinds(struct launch *launch, struct diag *diag);
/* Fails if files of two frameworks with table files are read together. */
struct launch_format;
enum status launch_use_table(struct launch *launch, const struct launch_format *format,
                             struct loc at, struct diag *diag);
/* Sets the fields that settings name, by a framework's table, and adds remarks on the other settings. */
enum status launch_take(struct launch *launch, enum launch_framework framework,
                        const struct settings *settings, struct diag *diag);
/* Sets the field of a row from a setting. Two settings that say different things of one field are an error. */
enum status launch_set_field(struct launch *launch, const struct launch_row *row,
                             const struct setting *setting, struct diag *diag);
/* True if the prediction holds for a value: one of those in `usual`, separated by blanks; NULL: one that switches
 * off. */
bool launch_is_usual(const char *usual, const char *value);
const struct launch_row *launch_row_find(enum launch_framework framework, const char *name);

/* True if files of a framework were read, or of one of its family. */
bool launch_of_family(const struct launch *launch, enum launch_framework framework);

/* ---- the model ---- */

/* Adds the option "model" for a transformer: a preset where one is the same, else a line. */
enum status launch_model_option(struct launch *launch, struct transformer *model, bool has_vocab,
                                struct diag *diag);
/* Adds the option "model" for field LAUNCH_MODEL, the name of a model on the Hugging Face hub or a path. */
enum status launch_model_named(struct launch *launch, struct launch_given given);

/* Returns where the Hugging Face hub has a model of these sizes ("Qwen/Qwen3-8B"); NULL: none is known here. */
const char *launch_hub_path(const struct transformer *model);

/* ---- frameworks ---- */

/* The degrees of parallelism that a framework's fields mean. */
struct launch_degrees {
    int64_t tp, pp, cp, hp;
    bool fpdt;
};
void launch_degree_options(struct launch *launch, struct launch_degrees degrees);
/* Adds a remark on a configuration of DeepSpeed that the arguments name, if it was not read. */
void launch_remark_config(struct launch *launch);

/* Each adds the options that the fields of its framework mean. */
enum status launch_torchtitan_options(struct launch *launch, struct launch_given given,
                                      struct diag *diag);
enum status launch_megatron_options(struct launch *launch, struct launch_given given,
                                    struct diag *diag);
enum status launch_deepspeed_options(struct launch *launch, struct launch_given given,
                                     struct diag *diag);
enum status launch_trainer_options(struct launch *launch, struct launch_given given,
                                   struct diag *diag);
enum status launch_foundry_options(struct launch *launch, struct launch_given given,
                                   struct diag *diag);

/* Fails if torchtitan has no flavor of a model. */
enum status launch_torchtitan_check_model(const struct transformer *model, struct diag *diag);

/* Each sets the fields by which its framework expresses the choices. */
void launch_torchtitan_fields(struct launch *launch, const struct choices *choices);
void launch_megatron_fields(struct launch *launch, const struct choices *choices);
void launch_deepspeed_fields(struct launch *launch, const struct choices *choices);
/* The same of Axolotl, LLaMA-Factory and TRL, and the options that rows of table files name themselves. */
void launch_axolotl_fields(struct launch *launch, const struct choices *choices);
void launch_factory_fields(struct launch *launch, const struct choices *choices);
void launch_trl_fields(struct launch *launch, const struct choices *choices);

#endif

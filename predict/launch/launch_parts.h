/* predict/launch/launch_parts.h: functions that the sources of predict/launch share. They read and set fields
 * (launch_said.c), add remarks and options (launch_remarks.c), turn settings into fields (launch_take.c,
 * launch_field.c, launch_values.c), add the options of adapters and of the model (adapters.c, launch_model.c), and
 * translate for each framework (a source each). */
#ifndef PREDICT_LAUNCH_LAUNCH_PARTS_H
#define PREDICT_LAUNCH_LAUNCH_PARTS_H

#include "predict/launch/launch.h"

/* ---- fields ---- */

/* True if the field has a value (is_given of struct launch_field_value). */
bool launch_has_field(const struct launch *launch, enum launch_field field);
/* Returns the field's count; `otherwise` if the field is not set. launch_number_or() does the same for a number. */
int64_t launch_count_or(const struct launch *launch, enum launch_field field, int64_t otherwise);
double launch_number_or(const struct launch *launch, enum launch_field field, double otherwise);
bool launch_is_on(const struct launch *launch, enum launch_field field);
const char *launch_field_text(const struct launch *launch, enum launch_field field);
bool launch_field_text_is(const struct launch *launch, enum launch_field field, const char *text);

/* Each of these sets a field to a value, whether it was set before or not. */
void launch_set_count(struct launch *launch, enum launch_field field, int64_t count);
void launch_set_number(struct launch *launch, enum launch_field field, double number);
void launch_set_text(struct launch *launch, enum launch_field field, const char *text);
/* These two do what launch_set_count() and launch_set_text() do, unless the field is set already. */
void launch_set_count_unless_given(struct launch *launch, enum launch_field field, int64_t count);
void launch_set_text_unless_given(struct launch *launch, enum launch_field field, const char *text);

/* ---- remarks and options ---- */

/* Adds a remark, whose texts are not copied and must live as long as the launch. launch_add_remark_printf() copies
 * them. */
void launch_add_remark(struct launch *launch, struct launch_remark remark);
void launch_add_remark_printf(struct launch *launch, enum launch_remark_kind kind, const char *name,
                              struct loc at, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Adds a remark on the setting that gives a field; its name is "SETTING VALUE". */
void launch_remark_on_field(struct launch *launch, enum launch_remark_kind kind,
                            enum launch_field field, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Reports an error in a field, at the setting that gave the field, or, if no setting did, at --from. */
enum status launch_field_error(const struct launch *launch, enum launch_field field,
                               struct diag *diag, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Fails if a file gives the field and its text is none of the words, which blanks separate. */
enum status launch_check_text_is_one_of(const struct launch *launch, enum launch_field field,
                                        const char *words, struct diag *diag);

/* These two add an option, which must not be there yet. field: the field from which it comes, whose place it gets;
 * LAUNCH_FIELD_COUNT: it comes from none. */
void launch_add_option(struct launch *launch, enum launch_field field, const char *name,
                       const char *value);
void launch_add_count_option(struct launch *launch, enum launch_field field, const char *name,
                             int64_t value);
bool launch_has_option(const struct launch *launch, const char *name);

/* ---- settings into fields ---- */

/* Fails if files of two frameworks were read that cannot run together. */
enum status launch_refuse_mixed_frameworks(struct launch *launch, struct diag *diag);
struct launch_format;
/* If a table file describes the format, sets launch->table_file to it. Fails if files of another framework with a table
 * file were read before. */
enum status launch_use_table_file_of_format(struct launch *launch,
                                            const struct launch_format *format, struct loc at,
                                            struct diag *diag);
/* Notes that a file of the framework was read, sets the fields that its settings name by the framework's table, and
 * adds remarks on the other settings. */
enum status launch_set_fields(struct launch *launch, enum launch_framework framework,
                              const struct settings *settings, struct diag *diag);
/* Sets the field of a row from a setting. It is an error if the value is of the wrong kind or too small, or if two
 * settings give the field different values. But the last value counts if a file gives one setting twice; a value that
 * is only implied is replaced; and a file that the script names (is_reading_named_file) changes no field that is given.
 * A value "auto", or the number of ranks "gpu", sets nothing and becomes a remark. */
enum status launch_set_field(struct launch *launch, const struct launch_row *row,
                             const struct setting *setting, struct diag *diag);
/* True if the prediction is right for this value of a setting: if it is one of the words in `usual`, which blanks
 * separate, or if `usual` is NULL and the value switches the setting off ("false", "none", "0"). */
bool launch_is_predicted_value(const char *usual, const char *value);
/* Fills *value from the text of a setting of a kind. text NULL: the setting has no value, as a flag. Returns false if
 * the text is of another kind, if it is a whole number whose absolute value exceeds INT32_MAX, or if it is NULL and the
 * kind needs one. */
bool launch_parse_value(enum launch_kind kind, const char *text, struct launch_field_value *value);
const struct launch_row *launch_row_find_by_setting(enum launch_framework framework,
                                                    const char *name);

/* ---- families of frameworks, and adapters ---- */

/* True if files of the framework were read, or of a table file whose family is this framework. */
bool launch_is_of_family(const struct launch *launch, enum launch_framework framework);

/* If the fields say that adapters or only some weights are trained, sets *field to the field that says so; otherwise to
 * LAUNCH_FIELD_COUNT. Adds the option "adapter" and, if frozen weights are in 8 or 4 bits, "frozen-weights", or a
 * remark on what is not modelled. model NULL: it is not known. If more is predicted than the run does, returns the word
 * for it in --at-most; else returns NULL. */
const char *launch_add_adapter_options(struct launch *launch, const struct transformer *model,
                                       enum launch_field *field);

/* ---- the model ---- */

/* Adds the option "model" for a transformer: the name of a preset with the same fields; a line of fields if there is
 * none, or if the transformer is a dense proxy. Without has_vocab the vocabulary is not known, and the option is a line
 * without it. Fails if the launch has the option already. */
enum status launch_add_model_option(struct launch *launch, struct transformer *model,
                                    bool has_vocab, struct diag *diag);
/* Adds the option "model" for field LAUNCH_MODEL, a path or the name of a model on the Hugging Face hub. Adds a remark
 * if the model's sizes are not known here and the user names no model either. Does nothing if the field is not set, or
 * if the launch has the option. */
enum status launch_add_named_model(struct launch *launch, struct launch_known_facts given);

/* Returns where the Hugging Face hub has a model of these sizes ("Qwen/Qwen3-8B"); NULL: none is known here, or the
 * model is a dense proxy. */
const char *launch_hub_path(const struct transformer *model);

/* ---- frameworks ---- */

/* The degrees of parallelism that follow from the fields of a framework. */
struct launch_degrees {
    int64_t tp, pp, cp, hp;
    bool has_fpdt; /* sequences are computed in chunks (FPDT) */
};
/* Adds the options of the degrees that are above 1 (with FPDT also a head-parallel degree of 1), and the strategy that
 * has them. */
void launch_add_degree_options(struct launch *launch, struct launch_degrees degrees);
/* Adds a remark if the files name a configuration of DeepSpeed, and none was read. A known name, which implies the ZeRO
 * stage, gets none. */
void launch_remark_unread_config(struct launch *launch);

/* Each of these functions adds the options that the fields of its framework mean. */
enum status launch_add_torchtitan_options(struct launch *launch, struct launch_known_facts given,
                                          struct diag *diag);
enum status launch_add_megatron_options(struct launch *launch, struct launch_known_facts given,
                                        struct diag *diag);
enum status launch_add_deepspeed_options(struct launch *launch, struct launch_known_facts given,
                                         struct diag *diag);
enum status launch_add_trainer_options(struct launch *launch, struct launch_known_facts given,
                                       struct diag *diag);
enum status launch_add_foundry_options(struct launch *launch, struct launch_known_facts given,
                                       struct diag *diag);

/* Fails if torchtitan has no flavor of a model. */
enum status launch_check_torchtitan_has_flavor(const struct transformer *model, struct diag *diag);

/* Each of these functions sets the fields by which its framework expresses the choices. */
void launch_set_torchtitan_fields(struct launch *launch, const struct choices *choices);
void launch_set_megatron_fields(struct launch *launch, const struct choices *choices);
void launch_set_deepspeed_fields(struct launch *launch, const struct choices *choices);
/* These three do the same for Axolotl, LLaMA-Factory and TRL. For choices without a field they set an option of
 * launch->table_option, which a row of the framework's table file writes. */
void launch_set_axolotl_fields(struct launch *launch, const struct choices *choices);
void launch_set_llama_factory_fields(struct launch *launch, const struct choices *choices);
void launch_set_trl_fields(struct launch *launch, const struct choices *choices);

#endif

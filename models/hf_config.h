/* models/hf_config.h: a Hugging Face config.json as a struct transformer.
 *
 * The families (model_type) that can be read are the rows of hf_families (models/hf_keys.h): Llama, Mistral, Qwen 2 and
 * 3, GPT-2, Phi 3 and 4, Gemma 1 to 3, OLMo 2 and 3, Nemotron, StarCoder 2, mixtures of experts and others. A row also
 * has the values of keys that a file may lack: the defaults of the configuration class in the Transformers library.
 *   - A model may have parts for pictures or sound around its text model (text_config). The text model of a mixture of
 *     experts is read, with a note; other such models are refused, unless they are read as dense (models/hf_proxy.h).
 *   - A feature that changes the work and is not modelled is refused by name: experts in a family without experts,
 *     layers with windows in an order without a period, scores that are capped, activations other than those of enum
 *     activation, quantised weights. An unknown key is refused, too.
 *   - A feature that changes numbers but no work gets a note in diag, and runs compute without it: RoPE scaling of
 *     types llama3, yarn, linear, longrope and su, rotary positions of a part of each head, multipliers.
 *   - Dropout other than that of attention, and numbers that only serve initialisation or generation, are not read.
 *
 * ignore is a list of keys, separated by commas, that the caller wants left unread. It may have keys that this module
 * does not know, and known ones with may_be_ignored (models/hf_keys.h), among them:
 *   rope_scaling    the angles are those without scaling; the work is the same
 *   sliding_window  all layers have full causal attention, which is more work
 *   layer_types     the other keys say which layers have windows */
#ifndef MODELS_HF_CONFIG_H
#define MODELS_HF_CONFIG_H

#include "base/json.h"
#include "models/transformer.h"

/* Reads a config.json from a text in memory. name: the file's path, for messages; it also becomes
 * t->name, unless the file is named config.json: then t->name is the name that the text has
 * (_name_or_path), or that of the folder, or else made from the family. Strings are copied to
 * `arena`. ignore: see above; NULL: none. The result has passed transformer_check(). */
enum status hf_config_parse(struct transformer *t, struct arena *arena, const char *name,
                            const char *data, size_t size, const char *ignore, struct diag *diag);

/* Reads a configuration that has been parsed; the caller calls transformer_check(). dense: a model
 * that is not modelled is read as the nearest dense transformer (models/hf_proxy.h); false: it is
 * refused. A mixture of experts of a known family is read as it is in both cases; t->unmodelled_parts_text
 * then describes its parts that are not modelled. */
enum status hf_config_read(struct transformer *t, struct arena *arena, const char *name,
                           struct json_node root, const char *ignore, bool dense,
                           struct diag *diag);

#endif

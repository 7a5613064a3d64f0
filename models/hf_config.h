/* models/hf_config.h: a Hugging Face config.json as a struct transformer.
 *
 * Families (model_type): those of hf_families (models/hf_keys.h), which has the defaults of absent keys after the
 * configuration classes of the Transformers library: Llama, Mistral, Qwen 2 and 3, GPT-2, Phi 3 and 4, Gemma 1 to 3,
 * OLMo 2 and 3, Nemotron, StarCoder 2 and others. Of a model with pictures or sound around its text model (text_config)
 * the text model is read. A feature that changes the work and is not modelled is rejected by name: experts in a family
 * that has none (families of mixtures are read), orders of windowed layers without a period, caps of scores,
 * activations other than those of enum activation, quantised weights. So is an unknown key. What changes numbers and no
 * work (RoPE scaling of types llama3, yarn, linear and longrope, rotary positions of a part of each head, multipliers)
 * gets a note in diag; runs compute without it.
 *
 * Dropout and numbers that only serve initialisation or generation are known and left unread.
 *
 * ignore is a list of keys, separated by commas, that the caller wants left unread:
 *   rope_scaling    the angles are those without scaling; the work is the same
 *   sliding_window  all layers have full causal attention, which is more work
 *   layer_types     the other keys say which layers have windows
 *   and any key this module does not know. Keys it needs cannot be ignored. */
#ifndef MODELS_HF_CONFIG_H
#define MODELS_HF_CONFIG_H

#include "base/json.h"
#include "models/transformer.h"

/* Reads a whole config.json from memory. name: the file's name in messages, which becomes t->name; if it is a file
 * config.json, t->name is the name that the config has (_name_or_path), or that of its folder. Strings are copied to
 * `arena`. ignore: as for transformer_load(); may be NULL. The result has passed transformer_check(). */
enum status hf_config_parse(struct transformer *t, struct arena *arena, const char *name,
                            const char *data, size_t size, const char *ignore, struct diag *diag);

/* Reads a configuration that has been parsed; the caller calls transformer_check(). dense: a model of a family that is
 * not modelled is read as the nearest dense transformer (models/hf_proxy.h); false: it is refused. */
enum status hf_config_read(struct transformer *t, struct arena *arena, const char *name,
                           struct json_node root, const char *ignore, bool dense,
                           struct diag *diag);

#endif

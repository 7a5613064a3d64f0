/* models/hf_config.h: a Hugging Face config.json as a struct transformer.
 *
 * Families (model_type): llama, mistral, qwen2, qwen3, gpt2. The default of an absent key differs
 * from family to family; models/hf_keys.h has it, after the configuration classes of the
 * Transformers library. A feature that changes the work and is not modelled is rejected by name: mixtures of experts,
 * orders of windowed layers without a period, activations other than silu (gated) and gelu's
 * tanh form, quantised weights. So is an unknown key. RoPE scaling of types llama3, yarn and
 * linear (its angles) changes no work: diag gets a note, and runs compute without it.
 *
 * Dropout and numbers that only serve initialisation or generation are known and left unread.
 *
 * ignore is a list of keys, separated by commas, that the caller wants left unread:
 *   rope_scaling    the step as without it: other angles, the same work
 *   sliding_window  full causal attention in its stead, which is more work
 *   layer_types     windows in the layers that the other keys say
 *   and any key this module does not know. Keys it needs cannot be ignored. */
#ifndef MODELS_HF_CONFIG_H
#define MODELS_HF_CONFIG_H

#include "base/json.h"
#include "models/transformer.h"

/* Reads a whole config.json in memory; name stands for it in messages and becomes t->name. Strings
 * are copied into arena. The result has passed transformer_check(). ignore may be NULL. */
enum status hf_config_parse(struct transformer *t, struct arena *arena, const char *name,
                            const char *data, size_t size, const char *ignore, struct diag *diag);

/* Reads a configuration that is parsed already, without transformer_check(). dense: of a family that is not
 * modelled, the nearest dense transformer (models/hf_proxy.h). */
enum status hf_config_read(struct transformer *t, struct arena *arena, const char *name,
                           struct json_node root, const char *ignore, bool dense,
                           struct diag *diag);

#endif

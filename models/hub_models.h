/* models/hub_models.h: models on the Hugging Face hub whose sizes are known here, by name. */
#ifndef MODELS_HUB_MODELS_H
#define MODELS_HUB_MODELS_H

#include <stddef.h>

/* Returns the preset, or the line of fields (transformer_is_line()), that has the sizes of a model on the hub. The name
 * may have an owner before it, "Qwen/Qwen3-8B", and "-Instruct", "-Base", "-chat", "-hf", "-it" or "-pt" after it.
 * NULL: it is not known. */
const char *hub_model_find_preset(const char *name);

/* A known model: its path on the hub ("Qwen/Qwen3-8B"), and the preset or line of fields that has its sizes. */
struct hub_model_with_preset {
    const char *path, *preset_or_fields;
};
/* Returns known model i, from 0. Of models with the same sizes only one is listed. If i is too large, the path in the
 * result is NULL. */
struct hub_model_with_preset hub_model_at(size_t i);

#endif

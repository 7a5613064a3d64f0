/* models/hub_models.h: models on the Hugging Face hub whose sizes are known here, by name. */
#ifndef MODELS_HUB_MODELS_H
#define MODELS_HUB_MODELS_H

/* Returns the preset, or the line of fields (transformer_is_line()), that has the sizes of a model on the hub. The name
 * may have an owner before it, "Qwen/Qwen3-8B", and "-Instruct", "-Base", "-chat", "-hf", "-it" or "-pt" after it. NULL: it
 * is not known. */
const char *hub_model_find(const char *name);

#endif

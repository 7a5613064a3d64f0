#include "models/hub_models.h"

#include "base/arena.h"
#include "base/c_locale.h"

#include <stdbool.h>
#include <string.h>

/* Names without the owner; most are presets (models/presets/transformers/). */
/* clang-format off */
static const struct hub_model {
    const char *name, *model;
} models[] = {
    {"Meta-Llama-3-8B", "llama3-8b"},
    {"Meta-Llama-3.1-8B", "llama3-8b"},
    {"Llama-3.1-8B", "llama3-8b"},
    {"Llama-3-8B", "llama3-8b"},
    {"Meta-Llama-3-70B", "llama3-70b"},
    {"Meta-Llama-3.1-70B", "llama3-70b"},
    {"Llama-3.1-70B", "llama3-70b"},
    {"Llama-3.3-70B", "llama3-70b"},
    {"Llama-3.1-405B", "llama3.1-405b"},
    {"Meta-Llama-3.1-405B", "llama3.1-405b"},
    {"Llama-3.2-1B", "llama3.2-1b"},
    {"Llama-3.2-3B", "llama3.2-3b"},
    {"Llama-2-7b", "llama2-7b"},
    {"Llama-2-70b", "llama2-70b"},
    {"Mistral-7B-v0.3", "mistral-7b"},
    {"Mistral-7B-Instruct-v0.3", "mistral-7b"},
    {"Mistral-7B-v0.1", "layers=32,hidden=4096,heads=32,kv_heads=8,ffn=14336,vocab=32000,attention_window=4096"},
    {"Mistral-Nemo", "mistral-nemo-12b"},
    {"Mistral-Small-24B", "mistral-small-24b"},
    {"Mistral-Large", "mistral-large-123b"},
    {"Qwen2-7B", "qwen2-7b"},
    {"Qwen2.5-7B", "qwen2-7b"},
    {"Qwen2.5-0.5B", "qwen2.5-0.5b"},
    {"Qwen2.5-1.5B", "qwen2.5-1.5b"},
    {"Qwen2.5-3B", "qwen2.5-3b"},
    {"Qwen2.5-14B", "qwen2.5-14b"},
    {"Qwen2.5-32B", "qwen2.5-32b"},
    {"Qwen2.5-72B", "qwen2.5-72b"},
    {"Qwen2-0.5B", "qwen2.5-0.5b"},
    {"Qwen2-1.5B", "qwen2.5-1.5b"},
    {"Qwen2-72B", "qwen2.5-72b"},
    {"Qwen3-0.6B", "qwen3-0.6b"},
    {"Qwen3-1.7B", "qwen3-1.7b"},
    {"Qwen3-4B", "qwen3-4b"},
    {"Qwen3-8B", "qwen3-8b"},
    {"Qwen3-14B", "qwen3-14b"},
    {"Qwen3-32B", "qwen3-32b"},
    {"Qwen3-30B-A3B", "qwen3-30b-a3b"},
    {"Qwen3-235B-A22B", "qwen3-235b-a22b"},
    {"Mixtral-8x7B-v0.1", "mixtral-8x7b"},
    {"gpt-oss-20b", "gpt-oss-20b"},
    {"gpt-oss-120b", "gpt-oss-120b"},
    {"OLMo-2-0425-1B", "olmo2-1b"},
    {"OLMo-2-1124-7B", "olmo2-7b"},
    {"OLMo-2-1124-13B", "olmo2-13b"},
    {"OLMo-2-0325-32B", "olmo2-32b"},
    {"Olmo-3-1025-7B", "olmo3-7b"},
    {"gemma-3-1b", "gemma3-1b"},
    {"gemma-3-4b", "gemma3-4b"},
    {"gemma-3-12b", "gemma3-12b"},
    {"gemma-3-27b", "gemma3-27b"},
    {"gemma-2-9b", "gemma2-9b"},
    {"SmolLM2-1.7B", "smollm2-1.7b"},
    {"gpt2",              "gpt2"},
};
/* clang-format on */

/* True if the rest of a name is empty or only says how the model was trained or stored: "-Instruct", "-chat-hf". */
static bool is_variant(const char *rest)
{
    static const char *const variants[] = {"-hf", "-Instruct", "-Base", "-chat", "-it", "-pt"};
    if (*rest == '\0')
        return true;
    for (size_t i = 0; i < ARRAY_LEN(variants); i++) {
        size_t size = strlen(variants[i]);
        if (c_same_letters_n(rest, variants[i], size) && (rest[size] == '\0' || rest[size] == '-'))
            return true;
    }
    return false;
}

const char *hub_model_find(const char *name)
{
    const char *slash = strrchr(name, '/');
    name = slash == NULL ? name : slash + 1;
    for (size_t i = 0; i < ARRAY_LEN(models); i++) {
        size_t size = strlen(models[i].name);
        if (c_same_letters_n(name, models[i].name, size) && is_variant(name + size))
            return models[i].model;
    }
    return NULL;
}

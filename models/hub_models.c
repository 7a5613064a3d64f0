#include "models/hub_models.h"

#include "base/arena.h"
#include "base/c_locale.h"

#include <stdbool.h>
#include <string.h>

/* clang-format off */
/* Models on the Hugging Face hub. */
static const struct hub_model {
    const char *name;  /* without the owner */
    const char *model; /* the preset, or the line of fields (transformer_is_line()), that has the same sizes */
    /* the model's path on the hub; NULL: another row has the same sizes and a path */
    const char *path;
} models[] = {
    {"Meta-Llama-3-8B", "llama3-8b", "meta-llama/Meta-Llama-3-8B"},
    {"Meta-Llama-3.1-8B", "llama3-8b", NULL},
    {"Llama-3.1-8B", "llama3-8b", NULL},
    {"Llama-3-8B", "llama3-8b", NULL},
    {"Meta-Llama-3-70B", "llama3-70b", "meta-llama/Meta-Llama-3-70B"},
    {"Meta-Llama-3.1-70B", "llama3-70b", NULL},
    {"Llama-3.1-70B", "llama3-70b", NULL},
    {"Llama-3.3-70B", "llama3-70b", NULL},
    {"Llama-3.1-405B", "llama3.1-405b", "meta-llama/Llama-3.1-405B"},
    {"Meta-Llama-3.1-405B", "llama3.1-405b", NULL},
    {"Llama-3.2-1B", "llama3.2-1b", "meta-llama/Llama-3.2-1B"},
    {"Llama-3.2-3B", "llama3.2-3b", "meta-llama/Llama-3.2-3B"},
    {"Llama-2-7b", "llama2-7b", "meta-llama/Llama-2-7b-hf"},
    {"Llama-2-70b", "llama2-70b", "meta-llama/Llama-2-70b-hf"},
    {"Mistral-7B-v0.3", "mistral-7b", "mistralai/Mistral-7B-v0.3"},
    {"Mistral-7B-Instruct-v0.3", "mistral-7b", NULL},
    {"Mistral-7B-v0.1", "layers=32,hidden=4096,heads=32,kv_heads=8,ffn=14336,vocab=32000,attention_window=4096", "mistralai/Mistral-7B-v0.1"},
    {"Mistral-Nemo", "mistral-nemo-12b", "mistralai/Mistral-Nemo-Base-2407"},
    {"Mistral-Small-24B", "mistral-small-24b", "mistralai/Mistral-Small-24B-Base-2501"},
    {"Mistral-Large", "mistral-large-123b", "mistralai/Mistral-Large-Instruct-2407"},
    {"Qwen2-7B", "qwen2-7b", "Qwen/Qwen2-7B"},
    {"Qwen2.5-7B", "qwen2-7b", NULL},
    {"Qwen2.5-0.5B", "qwen2.5-0.5b", "Qwen/Qwen2.5-0.5B"},
    {"Qwen2.5-1.5B", "qwen2.5-1.5b", "Qwen/Qwen2.5-1.5B"},
    {"Qwen2.5-3B", "qwen2.5-3b", "Qwen/Qwen2.5-3B"},
    {"Qwen2.5-14B", "qwen2.5-14b", "Qwen/Qwen2.5-14B"},
    {"Qwen2.5-32B", "qwen2.5-32b", "Qwen/Qwen2.5-32B"},
    {"Qwen2.5-72B", "qwen2.5-72b", "Qwen/Qwen2.5-72B"},
    {"Qwen2-0.5B", "qwen2.5-0.5b", NULL},
    {"Qwen2-1.5B", "qwen2.5-1.5b", NULL},
    {"Qwen2-72B", "qwen2.5-72b", NULL},
    {"Qwen3-0.6B", "qwen3-0.6b", "Qwen/Qwen3-0.6B"},
    {"Qwen3-1.7B", "qwen3-1.7b", "Qwen/Qwen3-1.7B"},
    {"Qwen3-4B", "qwen3-4b", "Qwen/Qwen3-4B"},
    {"Qwen3-8B", "qwen3-8b", "Qwen/Qwen3-8B"},
    {"Qwen3-14B", "qwen3-14b", "Qwen/Qwen3-14B"},
    {"Qwen3-32B", "qwen3-32b", "Qwen/Qwen3-32B"},
    {"Qwen3-30B-A3B", "qwen3-30b-a3b", "Qwen/Qwen3-30B-A3B"},
    {"Qwen3-235B-A22B", "qwen3-235b-a22b", "Qwen/Qwen3-235B-A22B"},
    {"Mixtral-8x7B-v0.1", "mixtral-8x7b", "mistralai/Mixtral-8x7B-v0.1"},
    {"DeepSeek-V3", "deepseek-v3", "deepseek-ai/DeepSeek-V3"},
    {"DeepSeek-R1", "deepseek-v3", NULL},
    {"DeepSeek-V2", "deepseek-v2", "deepseek-ai/DeepSeek-V2"},
    {"DeepSeek-V2-Lite", "deepseek-v2-lite", "deepseek-ai/DeepSeek-V2-Lite"},
    {"Kimi-K2", "kimi-k2", "moonshotai/Kimi-K2-Base"},
    {"GLM-4.5", "glm-4.5", "zai-org/GLM-4.5"},
    {"GLM-4.5-Air", "glm-4.5-air", "zai-org/GLM-4.5-Air"},
    {"MiniMax-M2", "minimax-m2", "MiniMaxAI/MiniMax-M2"},
    {"gpt-oss-20b", "gpt-oss-20b", "openai/gpt-oss-20b"},
    {"gpt-oss-120b", "gpt-oss-120b", "openai/gpt-oss-120b"},
    {"OLMo-2-0425-1B", "olmo2-1b", "allenai/OLMo-2-0425-1B"},
    {"OLMo-2-1124-7B", "olmo2-7b", "allenai/OLMo-2-1124-7B"},
    {"OLMo-2-1124-13B", "olmo2-13b", "allenai/OLMo-2-1124-13B"},
    {"OLMo-2-0325-32B", "olmo2-32b", "allenai/OLMo-2-0325-32B"},
    {"Olmo-3-1025-7B", "olmo3-7b", "allenai/Olmo-3-1025-7B"},
    {"gemma-3-1b", "gemma3-1b", "google/gemma-3-1b-pt"},
    {"gemma-3-4b", "gemma3-4b", "google/gemma-3-4b-pt"},
    {"gemma-3-12b", "gemma3-12b", "google/gemma-3-12b-pt"},
    {"gemma-3-27b", "gemma3-27b", "google/gemma-3-27b-pt"},
    {"gemma-2-9b", "gemma2-9b", "google/gemma-2-9b"},
    {"SmolLM2-1.7B", "smollm2-1.7b", "HuggingFaceTB/SmolLM2-1.7B"},
    {"SmolLM3-3B", "smollm3-3b", "HuggingFaceTB/SmolLM3-3B"},
    {"SmolLM3-3B-checkpoints", "smollm3-3b", NULL},
    {"gpt2", "gpt2", "openai-community/gpt2"},
};
/* clang-format on */

/* True if the rest of a name is empty, or begins with a word that only says how the model was trained or stored:
 * "-Instruct", "-chat-hf". */
static bool is_model_variant_suffix(const char *rest)
{
    static const char *const variants[] = {"-hf", "-Instruct", "-Base", "-chat", "-it", "-pt"};
    if (*rest == '\0')
        return true;
    for (size_t i = 0; i < ARRAY_LEN(variants); i++) {
        size_t size = strlen(variants[i]);
        if (c_equal_ignoring_case_n(rest, variants[i], size) &&
            (rest[size] == '\0' || rest[size] == '-'))
            return true;
    }
    return false;
}

const char *hub_model_find_preset(const char *name)
{
    const char *slash = strrchr(name, '/');
    name = slash == NULL ? name : slash + 1;
    for (size_t i = 0; i < ARRAY_LEN(models); i++) {
        size_t size = strlen(models[i].name);
        if (c_equal_ignoring_case_n(name, models[i].name, size) &&
            is_model_variant_suffix(name + size))
            return models[i].model;
    }
    return NULL;
}

struct hub_model_with_preset hub_model_at(size_t i)
{
    for (size_t k = 0; k < ARRAY_LEN(models); k++)
        if (models[k].path != NULL && i-- == 0)
            return (struct hub_model_with_preset){models[k].path, models[k].model};
    return (struct hub_model_with_preset){0};
}

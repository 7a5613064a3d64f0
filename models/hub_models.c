#include "models/hub_models.h"

#include "base/arena.h"
#include "base/c_locale.h"

#include <stdbool.h>
#include <string.h>

#define QWEN3 "kv_heads=8,head_dim=128,vocab=151936,qk_norm=true,rope_theta=1000000,norm_eps=1e-06"
#define LLAMA32 "kv_heads=8,vocab=128256,tied_head=true,rope_theta=500000"

/* Names without the owner. Sizes of Qwen3 and Llama 3.2 are from torchtitan/models/qwen3/__init__.py and
 * llama3/__init__.py. */
/* clang-format off */
static const struct hub_model {
    const char *name, *model;
} models[] = {
    {"Meta-Llama-3-8B",   "llama3-8b"},
    {"Meta-Llama-3.1-8B", "llama3-8b"},
    {"Llama-3.1-8B",      "llama3-8b"},
    {"Llama-3-8B",        "llama3-8b"},
    {"Meta-Llama-3-70B",  "llama3-70b"},
    {"Meta-Llama-3.1-70B", "llama3-70b"},
    {"Llama-3.1-70B",     "llama3-70b"},
    {"Llama-3.3-70B",     "llama3-70b"},
    {"Llama-3.2-1B",      "layers=16,hidden=2048,heads=32,ffn=8192," LLAMA32},
    {"Llama-3.2-3B",      "layers=28,hidden=3072,heads=24,ffn=8192," LLAMA32},
    {"Llama-2-7b",        "llama2-7b"},
    {"Llama-2-70b",       "llama2-70b"},
    {"Mistral-7B-v0.3",   "mistral-7b"},
    {"Mistral-7B-Instruct-v0.3", "mistral-7b"},
    {"Mistral-7B-v0.1",   "layers=32,hidden=4096,heads=32,kv_heads=8,ffn=14336,vocab=32000,attention_window=4096"},
    {"Qwen2-7B",          "qwen2-7b"},
    {"Qwen2.5-7B",        "qwen2-7b"},
    {"Qwen3-0.6B",        "layers=28,hidden=1024,heads=16,ffn=3072,tied_head=true," QWEN3},
    {"Qwen3-1.7B",        "layers=28,hidden=2048,heads=16,ffn=6144,tied_head=true," QWEN3},
    {"Qwen3-4B",          "layers=36,hidden=2560,heads=32,ffn=9728,tied_head=true," QWEN3},
    {"Qwen3-8B",          "layers=36,hidden=4096,heads=32,ffn=12288," QWEN3},
    {"Qwen3-14B",         "layers=40,hidden=5120,heads=40,ffn=17408," QWEN3},
    {"Qwen3-32B",         "layers=64,hidden=5120,heads=64,ffn=25600," QWEN3},
    {"gpt2",              "gpt2"},
};
/* clang-format on */

/* True if the rest of a name is empty or only says how the model was trained or stored: "-Instruct", "-chat-hf". */
static bool is_variant(const char *rest)
{
    static const char *const variants[] = {"-hf", "-Instruct", "-Base", "-chat", "-it"};
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

/* models/hf_keys.h: the families and keys of Hugging Face config files, as tables.
 *
 * Facts about the configuration classes of the Transformers library (4.40 to 5), one row each;
 * models/hf_config.c reads files by them. */
#ifndef MODELS_HF_KEYS_H
#define MODELS_HF_KEYS_H

#include <stdbool.h>
#include <stddef.h>

enum hf_family_bit {
    HF_LLAMA = 1 << 0,
    HF_MISTRAL = 1 << 1,
    HF_QWEN2 = 1 << 2,
    HF_QWEN3 = 1 << 3,
    HF_GPT2 = 1 << 4,
    HF_GATED = HF_LLAMA | HF_MISTRAL | HF_QWEN2 | HF_QWEN3, /* RMSNorm, RoPE, SwiGLU */
    HF_ALL = HF_GATED | HF_GPT2
};

/* The defaults of keys that a file may leave out, from Transformers' configuration classes. Where a default is a
 * number that no file of the family relies on (8 K/V heads of Mistral), we ask for the key. */
struct hf_family {
    const char *model_type;
    enum hf_family_bit bit;
    bool kv_heads_optional;   /* absent: as many as heads */
    bool head_dim_optional;   /* absent: hidden / heads */
    bool has_windows;         /* the class knows sliding_window; absent: 4096 tokens */
    bool window_needs_switch; /* sliding_window counts only with use_sliding_window */
    bool tied_by_default;
    bool bias_qkv; /* whatever attention_bias says */
    bool qk_norm;
};

#define HF_FAMILIES 5

extern const struct hf_family hf_families[HF_FAMILIES];

enum hf_key_use {
    HF_KEY_READ,    /* below */
    HF_KEY_SKIPPED, /* says nothing about the work of a training step */
    HF_KEY_EXPERTS, /* only a mixture of experts has it */
    HF_KEY_REFUSED  /* not modelled, unless ignored by the caller */
};

struct hf_key {
    const char *name;
    int families;
    enum hf_key_use use;
    bool ignorable;
};

/* The row of the key name[0..size) in a family, or NULL. */
const struct hf_key *hf_key_find(const char *name, size_t size, enum hf_family_bit family);

/* Returns the key, among those that are read in a family, that is most similar to name, or NULL. */
const char *hf_key_nearest(const char *name, enum hf_family_bit family);

#endif

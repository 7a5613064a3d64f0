/* models/hf_keys.h: the families and keys of Hugging Face config files, as tables.
 *
 * Facts about the configuration classes of the Transformers library (4.40 to 5.24), one row each;
 * models/hf_config.c reads files by them. */
#ifndef MODELS_HF_KEYS_H
#define MODELS_HF_KEYS_H

#include "models/transformer.h"

#include <stdbool.h>
#include <stddef.h>

enum hf_family_bit {
    HF_LLAMA = 1 << 0,
    HF_MISTRAL = 1 << 1,
    HF_QWEN2 = 1 << 2,
    HF_QWEN3 = 1 << 3,
    HF_GPT2 = 1 << 4,
    HF_PHI3 = 1 << 5,
    HF_GEMMA = 1 << 6, /* 1, 2 and 3 */
    HF_OLMO = 1 << 7,  /* 2 and 3 */
    HF_NEMOTRON = 1 << 8,
    HF_STARCODER2 = 1 << 9,
    HF_SEED_OSS = 1 << 10,
    HF_GRANITE = 1 << 11,
    HF_GLM4 = 1 << 12,
    HF_ARCEE = 1 << 13,
    HF_COHERE2 = 1 << 14,
    HF_EXAONE4 = 1 << 15,
    HF_SMOLLM3 = 1 << 16,
    HF_PROXY = 1 << 17,   /* the families of models/hf_proxy.c */
    HF_EXPERTS = 1 << 18, /* mixtures of experts (models/hf_experts.c) */
    HF_ALL = (1 << 19) - 1,
    HF_ROPE = HF_ALL & ~HF_GPT2, /* all but GPT-2 name their sizes in one way and rotate */
};

/* Parts of a model that schedules cannot express; models/hf_proxy.h names them to the user. */
enum hf_part {
    PART_EXPERTS = 1 << 0,
    PART_LATENT = 1 << 1,
    PART_LINEAR = 1 << 2,
    PART_ALIBI = 1 << 3,
    PART_PARALLEL = 1 << 4,
    PART_SOFTCAP = 1 << 5,
    PART_NOPE = 1 << 6,
    PART_VISION = 1 << 7,
    PART_CHUNKS = 1 << 8,
    PART_SINKS = 1 << 9,
};

/* What the layers of a family have, and the defaults of keys that a file may leave out, from Transformers'
 * configuration and model classes. Where no file of the family relies on a class's default (8 K/V heads of Mistral),
 * the key is required. */
struct hf_family {
    const char *model_type;
    enum hf_family_bit bit;
    unsigned parts; /* enum hf_part: not modelled */
    enum activation activation;
    enum norm norm;
    enum norm_place norm_place;
    bool qk_norm, qk_norm_wide;
    bool bias_qkv;            /* whatever attention_bias says */
    bool bias_qkv_only;       /* attention_bias says nothing of the output's projection */
    bool kv_heads_optional;   /* absent: as many as heads */
    bool head_dim_required;   /* else absent: head_dim, or where that is 0 hidden / heads */
    bool has_windows;         /* the class knows sliding_window */
    bool window_needs_switch; /* sliding_window counts only with use_sliding_window */
    bool tied_by_default, attention_bias;
    int64_t heads, kv_heads, head_dim, vocab; /* 0: the file must give it (head_dim: see above) */
    int64_t window;                           /* sliding_window when absent; 0: none */
    int64_t full_every; /* sliding_window_pattern when absent; 0: all layers have a window */
    /* 0: 10000, 1e-6, all columns of a head */
    double rope_theta, norm_eps, rotary_share;
    const char *act_key, *eps_key, *window_key; /* NULL: hidden_act, rms_norm_eps, sliding_window */
};

#define HF_FAMILIES 30

extern const struct hf_family hf_families[HF_FAMILIES];

enum hf_key_use {
    HF_KEY_READ,    /* below */
    HF_KEY_SKIPPED, /* says nothing about the work of a training step */
    HF_KEY_SCALES,  /* scales or turns numbers, which changes no work: a note says so */
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

/* models/hf_keys.h: the families and keys of Hugging Face config files, as tables.
 *
 * hf_families[] has a row for each model_type that models/hf_config.c reads; hf_key_find() finds the row of a key. The
 * rows are facts about the configuration classes of the Transformers library, versions 4.40 to 5.24. */
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
    HF_GEMMA = 1 << 6, /* Gemma 1, 2 and 3 */
    HF_OLMO = 1 << 7,  /* OLMo 2 and 3 */
    HF_NEMOTRON = 1 << 8,
    HF_STARCODER2 = 1 << 9,
    HF_SEED_OSS = 1 << 10,
    HF_GRANITE = 1 << 11,
    HF_GLM4 = 1 << 12,
    HF_ARCEE = 1 << 13,
    HF_COHERE2 = 1 << 14,
    HF_EXAONE4 = 1 << 15,
    HF_SMOLLM3 = 1 << 16,
    HF_READ_AS_DENSE_PROXY = 1 << 17, /* the families of models/hf_proxy.c */
    HF_EXPERTS = 1 << 18,             /* mixtures of experts (models/hf_experts.c) */
    HF_ALL = (1 << 19) - 1,
    /* all families but GPT-2, whose keys have names of their own and whose positions are learned */
    HF_ALL_BUT_GPT2 = HF_ALL & ~HF_GPT2,
};

/* Parts of a model that are not read for some families; only a dense proxy can represent such a model
 * (models/hf_proxy.h). */
enum hf_unmodelled_part {
    HF_PART_EXPERTS = 1 << 0,
    HF_PART_LATENT_ATTENTION = 1 << 1, /* keys and values that are made of a narrow common vector */
    HF_PART_LINEAR_ATTENTION = 1 << 2, /* layers of linear attention */
    HF_PART_ALIBI = 1 << 3,            /* a bias on attention scores */
    HF_PART_PARALLEL_BRANCHES = 1 << 4, /* attention and feed-forward part side by side */
    HF_PART_SOFT_CAPS = 1 << 5,         /* a tanh of attention scores, and one of logits */
    HF_PART_UNROTATED_LAYERS = 1 << 6,  /* layers without rotary positions */
    HF_PART_OTHER_ENCODERS = 1 << 7,    /* encoders of pictures or sound before the text model */
    HF_PART_CHUNKED_ATTENTION = 1 << 8, /* layers in which a token sees its own chunk only */
    HF_PART_ATTENTION_SINKS = 1 << 9,   /* a learned score of each head in the sum of a softmax */
};

/* The properties of a family's layers, and the defaults of keys that a file may lack, from Transformers' configuration
 * and model classes. Some defaults of a class are left out here, such as Mistral's 8 K/V heads: no published file
 * relies on them, so the file must have the key. */
struct hf_family {
    const char *model_type;
    enum hf_family_bit bit;
    unsigned parts; /* enum hf_unmodelled_part: parts of the family; Llama 4's are modelled */
    enum activation activation;
    enum norm norm;
    enum norm_place norm_place;
    bool qk_norm, qk_norm_wide; /* as in struct transformer */
    /* the projections of q, k and v have biases, whatever attention_bias says */
    bool bias_qkv;
    /* attention_bias concerns q, k and v only, not the output's projection */
    bool attention_bias_is_qkv_only;
    bool kv_heads_optional; /* without num_key_value_heads there are as many K/V heads as heads */
    /* the file must give head_dim; false: an absent head_dim is the default below, or hidden / heads if that is 0 */
    bool head_dim_required;
    bool has_windows;                  /* the class knows sliding_window */
    bool is_window_off_without_switch; /* sliding_window counts only with use_sliding_window */
    bool tied_by_default, attention_bias;
    /* defaults of num_attention_heads, num_key_value_heads, head_dim and vocab_size; 0: the file must have the key
     * (head_dim: as head_dim_required says) */
    int64_t heads, kv_heads, head_dim, vocab;
    int64_t window; /* the default of sliding_window; 0: none */
    /* the default of sliding_window_pattern; 0: all layers have a window */
    int64_t full_attention_every;
    /* defaults of the base of RoPE, of the eps of norms, and of partial_rotary_factor; 0: 10000, 1e-6 and 1 */
    double rope_theta, norm_eps, rotary_share;
    /* the family's names for the keys hidden_act, rms_norm_eps and sliding_window; NULL: these */
    const char *activation_key, *eps_key, *window_key;
};

#define HF_FAMILY_COUNT 30

extern const struct hf_family hf_families[HF_FAMILY_COUNT];

enum hf_key_use {
    HF_KEY_READ, /* the reader uses it */
    /* says nothing about the work of a training step, or only about a part that a dense proxy lacks */
    HF_KEY_SKIPPED,
    HF_KEY_CHANGES_NO_WORK, /* scales or rotates numbers, which changes no work: a note says so */
    HF_KEY_OF_EXPERTS,      /* only a mixture of experts has it */
    HF_KEY_REFUSED          /* not modelled, unless ignored by the caller */
};

struct hf_key {
    const char *name;
    int families; /* bits: the families that have the key */
    enum hf_key_use use;
    bool may_be_ignored;
};

/* Returns the row of the key name[0..size) in a family; NULL: there is none. */
const struct hf_key *hf_key_find(const char *name, size_t size, enum hf_family_bit family);

/* Returns the key with HF_KEY_READ of a family whose name is most like this one, for messages; NULL: none is like
 * it. */
const char *hf_key_nearest(const char *name, enum hf_family_bit family);

#endif

#include "models/hf_keys.h"

#include "base/arena.h"
#include "base/diag.h"

#include <string.h>

const struct hf_family hf_families[HF_FAMILIES] = {
    {"llama", HF_LLAMA, true, true, false, false, false, false, false},
    {"mistral", HF_MISTRAL, false, true, true, false, false, false, false},
    {"qwen2", HF_QWEN2, false, true, true, true, false, true, false},
    {"qwen3", HF_QWEN3, false, false, true, true, false, false, true},
    {"gpt2", HF_GPT2, true, true, false, false, true, true, false},
};

static const struct hf_key keys[] = {
    {"model_type", HF_ALL, HF_KEY_READ, false},
    {"vocab_size", HF_ALL, HF_KEY_READ, false},
    {"tie_word_embeddings", HF_ALL, HF_KEY_READ, false},
    {"hidden_size", HF_GATED, HF_KEY_READ, false},
    {"intermediate_size", HF_GATED, HF_KEY_READ, false},
    {"num_hidden_layers", HF_GATED, HF_KEY_READ, false},
    {"num_attention_heads", HF_GATED, HF_KEY_READ, false},
    {"num_key_value_heads", HF_GATED, HF_KEY_READ, false},
    {"head_dim", HF_GATED, HF_KEY_READ, false},
    {"hidden_act", HF_GATED, HF_KEY_READ, false},
    {"rms_norm_eps", HF_GATED, HF_KEY_READ, false},
    {"rope_theta", HF_GATED, HF_KEY_READ, false},
    {"max_position_embeddings", HF_GATED, HF_KEY_READ, false},
    {"attention_bias", HF_LLAMA | HF_QWEN3, HF_KEY_READ, false},
    {"mlp_bias", HF_LLAMA, HF_KEY_READ, false},
    {"rope_scaling", HF_GATED, HF_KEY_READ, true},
    {"rope_parameters", HF_GATED, HF_KEY_READ, true}, /* its rope_theta is still read */
    {"sliding_window", HF_GATED, HF_KEY_READ, true},
    {"use_sliding_window", HF_GATED, HF_KEY_READ, true},
    {"layer_types", HF_GATED, HF_KEY_READ, true},
    {"max_window_layers", HF_QWEN2 | HF_QWEN3, HF_KEY_READ,
     true}, /* layers before the first with a window */
    {"n_embd", HF_GPT2, HF_KEY_READ, false},
    {"n_layer", HF_GPT2, HF_KEY_READ, false},
    {"n_head", HF_GPT2, HF_KEY_READ, false},
    {"n_inner", HF_GPT2, HF_KEY_READ, false},
    {"n_positions", HF_GPT2, HF_KEY_READ, false},
    {"activation_function", HF_GPT2, HF_KEY_READ, false},
    {"layer_norm_epsilon", HF_GPT2, HF_KEY_READ, false},
    {"scale_attn_weights", HF_GPT2, HF_KEY_READ, true},
    {"scale_attn_by_inverse_layer_idx", HF_GPT2, HF_KEY_READ, true},
    {"add_cross_attention", HF_ALL, HF_KEY_READ, false},
    {"is_encoder_decoder", HF_ALL, HF_KEY_READ, false},
    {"quantization_config", HF_ALL, HF_KEY_REFUSED, true},
    {"partial_rotary_factor", HF_ALL, HF_KEY_REFUSED, true},

    {"num_experts", HF_ALL, HF_KEY_EXPERTS, false},
    {"num_local_experts", HF_ALL, HF_KEY_EXPERTS, false},
    {"num_experts_per_tok", HF_ALL, HF_KEY_EXPERTS, false},
    {"n_routed_experts", HF_ALL, HF_KEY_EXPERTS, false},
    {"n_shared_experts", HF_ALL, HF_KEY_EXPERTS, false},
    {"moe_intermediate_size", HF_ALL, HF_KEY_EXPERTS, false},
    {"shared_expert_intermediate_size", HF_ALL, HF_KEY_EXPERTS, false},
    {"decoder_sparse_step", HF_ALL, HF_KEY_EXPERTS, false},
    {"mlp_only_layers", HF_ALL, HF_KEY_EXPERTS, false},
    {"norm_topk_prob", HF_ALL, HF_KEY_EXPERTS, false},
    {"router_aux_loss_coef", HF_ALL, HF_KEY_EXPERTS, false},
    {"output_router_logits", HF_ALL, HF_KEY_EXPERTS, false},

    {"architectures", HF_ALL, HF_KEY_SKIPPED, true},
    {"torch_dtype", HF_ALL, HF_KEY_SKIPPED, true}, /* a step's type is an option */
    {"dtype", HF_ALL, HF_KEY_SKIPPED, true},
    {"transformers_version", HF_ALL, HF_KEY_SKIPPED, true},
    {"_name_or_path", HF_ALL, HF_KEY_SKIPPED, true},
    {"_commit_hash", HF_ALL, HF_KEY_SKIPPED, true},
    {"_attn_implementation", HF_ALL, HF_KEY_SKIPPED, true},
    {"_attn_implementation_autoset", HF_ALL, HF_KEY_SKIPPED, true},
    {"attn_implementation", HF_ALL, HF_KEY_SKIPPED, true},
    {"unsloth_version", HF_ALL, HF_KEY_SKIPPED, true},
    {"unsloth_fixed", HF_ALL, HF_KEY_SKIPPED, true},
    {"bos_token_id", HF_ALL, HF_KEY_SKIPPED, true},
    {"eos_token_id", HF_ALL, HF_KEY_SKIPPED, true},
    {"pad_token_id", HF_ALL, HF_KEY_SKIPPED, true},
    {"use_cache", HF_ALL, HF_KEY_SKIPPED, true},              /* generation */
    {"gradient_checkpointing", HF_ALL, HF_KEY_SKIPPED, true}, /* an option of the step */
    {"initializer_range", HF_ALL, HF_KEY_SKIPPED, true},
    {"pretraining_tp", HF_LLAMA, HF_KEY_SKIPPED, true},
    {"attention_dropout", HF_GATED, HF_KEY_SKIPPED, true}, /* dropout is left out */
    {"hidden_dropout", HF_GATED, HF_KEY_SKIPPED, true},
    {"attn_pdrop", HF_GPT2, HF_KEY_SKIPPED, true},
    {"embd_pdrop", HF_GPT2, HF_KEY_SKIPPED, true},
    {"resid_pdrop", HF_GPT2, HF_KEY_SKIPPED, true},
    {"n_ctx", HF_GPT2, HF_KEY_SKIPPED, true}, /* old name of n_positions */
    {"reorder_and_upcast_attn", HF_GPT2, HF_KEY_SKIPPED, true},
    {"summary_activation", HF_GPT2, HF_KEY_SKIPPED, true},
    {"summary_first_dropout", HF_GPT2, HF_KEY_SKIPPED, true},
    {"summary_proj_to_labels", HF_GPT2, HF_KEY_SKIPPED, true},
    {"summary_type", HF_GPT2, HF_KEY_SKIPPED, true},
    {"summary_use_proj", HF_GPT2, HF_KEY_SKIPPED, true},
    {"task_specific_params", HF_ALL, HF_KEY_SKIPPED, true},
    {"id2label", HF_ALL, HF_KEY_SKIPPED, true},
    {"label2id", HF_ALL, HF_KEY_SKIPPED, true},
    {"output_attentions", HF_ALL, HF_KEY_SKIPPED, true},
    {"output_hidden_states", HF_ALL, HF_KEY_SKIPPED, true},
    {"return_dict", HF_ALL, HF_KEY_SKIPPED, true},
    {"use_return_dict", HF_ALL, HF_KEY_SKIPPED, true},
    {"is_decoder", HF_ALL, HF_KEY_SKIPPED, true},
    {"chunk_size_feed_forward", HF_ALL, HF_KEY_SKIPPED, true}, /* the same numbers in pieces */
};

const struct hf_key *hf_key_find(const char *name, size_t size, enum hf_family_bit family)
{
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if ((keys[i].families & (int)family) != 0 && strlen(keys[i].name) == size &&
            memcmp(keys[i].name, name, size) == 0)
            return &keys[i];
    return NULL;
}

const char *hf_key_nearest(const char *name, enum hf_family_bit family)
{
    const char *names[ARRAY_LEN(keys)];
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if ((keys[i].families & (int)family) != 0 && keys[i].use == HF_KEY_READ)
            names[count++] = keys[i].name;
    return diag_nearest(name, names, count);
}

#include "models/hf_keys.h"

#include "base/arena.h"
#include "base/diag.h"

#include <string.h>

/* clang-format off */
const struct hf_family hf_families[HF_FAMILIES] = {
    {"llama", HF_LLAMA, .kv_heads_optional = true},
    {"mistral", HF_MISTRAL, .has_windows = true, .window = 4096},
    {"ministral", HF_MISTRAL, .has_windows = true, .window = 4096},
    {"qwen2", HF_QWEN2, .has_windows = true, .window = 4096, .window_needs_switch = true, .bias_qkv = true},
    {"qwen3", HF_QWEN3, .has_windows = true, .window = 4096, .window_needs_switch = true, .qk_norm = true,
     .head_dim_required = true},
    {"gpt2", HF_GPT2, .kv_heads_optional = true, .tied_by_default = true, .bias_qkv = true},
    {"phi3", HF_PHI3, .kv_heads_optional = true, .has_windows = true, .norm_eps = 1e-5},
    {"gemma", HF_GEMMA, .activation = ACTIVATION_GEGLU, .tied_by_default = true, .head_dim = 256,
     .act_key = "hidden_activation"},
    {"gemma2", HF_GEMMA, .activation = ACTIVATION_GEGLU, .norm_place = NORM_BOTH, .has_windows = true, .window = 4096,
     .full_every = 2, .tied_by_default = true, .head_dim = 256, .act_key = "hidden_activation",
     .parts = PART_SOFTCAP},
    {"gemma3_text", HF_GEMMA, .activation = ACTIVATION_GEGLU, .norm_place = NORM_BOTH, .qk_norm = true,
     .has_windows = true, .window = 4096, .full_every = 6, .tied_by_default = true, .heads = 8, .kv_heads = 4,
     .head_dim = 256, .vocab = 262208, .rope_theta = 1e6, .act_key = "hidden_activation"},
    {"olmo2", HF_OLMO, .norm_place = NORM_AFTER, .qk_norm = true, .qk_norm_wide = true, .kv_heads_optional = true,
     .norm_eps = 1e-5},
    {"olmo3", HF_OLMO, .norm_place = NORM_AFTER, .qk_norm = true, .qk_norm_wide = true, .kv_heads_optional = true,
     .norm_eps = 1e-5, .rope_theta = 5e5, .has_windows = true, .window = 4096, .full_every = 4},
    {"nemotron", HF_NEMOTRON, .activation = ACTIVATION_RELU2, .norm = NORM_LAYERNORM, .kv_heads_optional = true,
     .rotary_share = 0.5, .norm_eps = 1e-5, .eps_key = "norm_eps"},
    {"starcoder2", HF_STARCODER2, .activation = ACTIVATION_GELU, .norm = NORM_LAYERNORM, .has_windows = true,
     .tied_by_default = true, .norm_eps = 1e-5, .eps_key = "norm_epsilon"},
    {"seed_oss", HF_SEED_OSS, .attention_bias = true, .bias_qkv_only = true, .head_dim = 128},
    {"granite", HF_GRANITE, .kv_heads_optional = true},
    {"glm4", HF_GLM4, .norm_place = NORM_BOTH, .attention_bias = true, .bias_qkv_only = true, .head_dim = 128,
     .rotary_share = 0.5, .norm_eps = 1.5625e-7},
    {"arcee", HF_ARCEE, .activation = ACTIVATION_RELU2, .kv_heads_optional = true, .norm_eps = 1e-5},
    {"cohere2", HF_COHERE2, PART_PARALLEL | PART_NOPE, .norm = NORM_RMSNORM, .has_windows = true, .window = 4096,
     .full_every = 4, .tied_by_default = true, .kv_heads_optional = true, .norm_eps = 1e-5, .eps_key = "layer_norm_eps"},
    {"exaone4", HF_EXAONE4, PART_NOPE, .norm_place = NORM_AFTER, .qk_norm = true, .has_windows = true, .window = 4096,
     .full_every = 4, .kv_heads_optional = true, .norm_eps = 1e-5},
    {"smollm3", HF_SMOLLM3, PART_NOPE, .has_windows = true, .window_needs_switch = true, .tied_by_default = true,
     .kv_heads = 4, .rope_theta = 2e6},
};
/* clang-format on */

static const struct hf_key keys[] = {
    {"model_type", HF_ALL, HF_KEY_READ, false},
    {"vocab_size", HF_ALL, HF_KEY_READ, false},
    {"tie_word_embeddings", HF_ALL, HF_KEY_READ, false},
    {"hidden_size", HF_ROPE, HF_KEY_READ, false},
    {"intermediate_size", HF_ROPE, HF_KEY_READ, false},
    {"num_hidden_layers", HF_ROPE, HF_KEY_READ, false},
    {"num_attention_heads", HF_ROPE, HF_KEY_READ, false},
    {"num_key_value_heads", HF_ROPE, HF_KEY_READ, false},
    {"head_dim", HF_ROPE, HF_KEY_READ, false},
    {"hidden_act", HF_ROPE & ~HF_GEMMA, HF_KEY_READ, false},
    {"hidden_act", HF_GEMMA, HF_KEY_SKIPPED, true}, /* Transformers reads hidden_activation */
    {"hidden_activation", HF_GEMMA, HF_KEY_READ, false},
    {"rms_norm_eps", HF_ROPE & ~(HF_NEMOTRON | HF_STARCODER2 | HF_COHERE2), HF_KEY_READ, false},
    {"norm_eps", HF_NEMOTRON, HF_KEY_READ, false},
    {"norm_epsilon", HF_STARCODER2, HF_KEY_READ, false},
    {"layer_norm_eps", HF_COHERE2, HF_KEY_READ, false},
    {"kv_channels", HF_NEMOTRON, HF_KEY_READ, false}, /* older name of head_dim */
    {"rope_theta", HF_ROPE, HF_KEY_READ, false},
    {"max_position_embeddings", HF_ROPE, HF_KEY_READ, false},
    {"attention_bias", HF_ROPE & ~(HF_MISTRAL | HF_QWEN2 | HF_STARCODER2), HF_KEY_READ, false},
    {"attention_out_bias", HF_SEED_OSS, HF_KEY_READ, false},
    {"mlp_bias", HF_LLAMA | HF_NEMOTRON | HF_SEED_OSS | HF_GRANITE | HF_ARCEE | HF_SMOLLM3,
     HF_KEY_READ, false},
    {"use_bias", HF_STARCODER2, HF_KEY_READ, false},
    {"attn_logit_softcapping", HF_GEMMA, HF_KEY_READ, true},
    {"final_logit_softcapping", HF_GEMMA, HF_KEY_READ, true},
    {"sliding_window_pattern", HF_GEMMA | HF_COHERE2 | HF_EXAONE4, HF_KEY_READ, true},
    {"_sliding_window_pattern", HF_GEMMA | HF_COHERE2, HF_KEY_READ, true},
    {"no_rope_layers", HF_SMOLLM3, HF_KEY_READ, true},
    {"no_rope_layer_interval", HF_SMOLLM3, HF_KEY_READ, true},
    {"rope_scaling", HF_ROPE, HF_KEY_READ, true},
    {"rope_parameters", HF_ROPE, HF_KEY_READ, true}, /* its rope_theta is still read */
    {"sliding_window", HF_ROPE, HF_KEY_READ, true},
    {"use_sliding_window", HF_ROPE, HF_KEY_READ, true},
    {"layer_types", HF_ROPE, HF_KEY_READ, true},
    {"max_window_layers", HF_QWEN2 | HF_QWEN3 | HF_SMOLLM3, HF_KEY_READ,
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
    /* numbers that scale or turn, of which a note says that they change no work */
    {"query_pre_attn_scalar", HF_GEMMA, HF_KEY_SCALES, true},
    {"rope_local_base_freq", HF_GEMMA, HF_KEY_SCALES, true},
    {"embedding_multiplier", HF_GRANITE, HF_KEY_SCALES, true},
    {"attention_multiplier", HF_GRANITE, HF_KEY_SCALES, true},
    {"residual_multiplier", HF_GRANITE, HF_KEY_SCALES, true},
    {"logits_scaling", HF_GRANITE, HF_KEY_SCALES, true},
    {"logit_scale", HF_COHERE2, HF_KEY_SCALES, true},
    {"add_cross_attention", HF_ALL, HF_KEY_READ, false},
    {"is_encoder_decoder", HF_ALL, HF_KEY_READ, false},
    {"quantization_config", HF_ALL, HF_KEY_REFUSED, true},
    {"partial_rotary_factor", HF_ALL, HF_KEY_READ, true},
    {"use_bidirectional_attention", HF_GEMMA, HF_KEY_READ, false},

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
    {"pretraining_tp", HF_ALL, HF_KEY_SKIPPED, true},
    {"auto_map", HF_ALL, HF_KEY_SKIPPED,
     true}, /* code of the publisher, in the place of Transformers' */
    {"cache_implementation", HF_ALL, HF_KEY_SKIPPED, true}, /* generation */
    {"problem_type", HF_ALL, HF_KEY_SKIPPED, true},
    {"sliding_window_size", HF_GEMMA, HF_KEY_SKIPPED, true}, /* a copy of sliding_window */
    {"original_max_position_embeddings", HF_PHI3, HF_KEY_SKIPPED, true}, /* of scaled angles */
    {"resid_pdrop", HF_PHI3, HF_KEY_SKIPPED, true},
    {"embd_pdrop", HF_PHI3, HF_KEY_SKIPPED, true},
    {"interpolate_factor", HF_PHI3, HF_KEY_SKIPPED, true}, /* Phi-4-mini; of no class */
    {"lm_head_bias", HF_PHI3, HF_KEY_SKIPPED, true},
    {"mlp_bias", HF_PHI3, HF_KEY_SKIPPED, true},
    {"full_attn_mod", HF_PHI3, HF_KEY_SKIPPED, true},
    {"residual_dropout", HF_STARCODER2 | HF_SEED_OSS, HF_KEY_SKIPPED, true},
    {"embedding_dropout", HF_STARCODER2, HF_KEY_SKIPPED, true},
    {"activation_function", HF_STARCODER2, HF_KEY_SKIPPED, true}, /* hidden_act is read */
    {"mlp_type", HF_STARCODER2, HF_KEY_SKIPPED, true},
    {"norm_type", HF_STARCODER2, HF_KEY_SKIPPED, true},
    {"order_of_interleaved_layers", HF_COHERE2, HF_KEY_SKIPPED,
     true}, /* its classes read none of these */
    {"position_embedding_type", HF_COHERE2, HF_KEY_SKIPPED, true},
    {"rotary_pct", HF_COHERE2, HF_KEY_SKIPPED, true},
    {"layer_switch", HF_COHERE2, HF_KEY_SKIPPED, true},
    {"use_embedding_sharing", HF_COHERE2, HF_KEY_SKIPPED, true},
    {"use_gated_activation", HF_COHERE2, HF_KEY_SKIPPED, true},
    {"use_parallel_block", HF_COHERE2, HF_KEY_SKIPPED, true},
    {"use_parallel_embedding", HF_COHERE2, HF_KEY_SKIPPED, true},
    {"attention_dropout", HF_ROPE, HF_KEY_SKIPPED, true}, /* dropout is left out */
    {"hidden_dropout", HF_ROPE, HF_KEY_SKIPPED, true},
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

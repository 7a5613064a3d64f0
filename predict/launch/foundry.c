/* Reads llm-foundry's YAML (scripts/train/yamls): MPT and Hugging Face models under Composer's FSDP. */
#include "predict/launch/launch_parts.h"
#include "predict/launch/launch_tables.h"

#include <string.h>

/* clang-format off */
static const struct launch_row rows[] = {
    {"max_seq_len",                  SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_SEQ, NULL, NULL},
    {"variables.max_seq_len",        SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_SEQ, NULL, NULL},
    {"model.name",                   SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_FLAVOR, NULL, NULL},
    {"model.pretrained_model_name_or_path", SETS_AS_ALIAS, LAUNCH_TEXT, LAUNCH_MODEL, NULL, NULL},
    {"model.d_model",                SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_HIDDEN, NULL, NULL},
    {"model.n_heads",                SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_HEADS, NULL, NULL},
    {"model.n_layers",               SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_LAYERS, NULL, NULL},
    {"model.expansion_ratio",        SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_FFN, NULL, NULL},
    {"model.vocab_size",             SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_VOCAB, NULL, NULL},
    {"model.no_bias",                SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_NO_BIAS, NULL, NULL},
    {"model.attn_config.attn_impl",  SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_ATTENTION, NULL, NULL},
    {"model.attn_config.kv_n_heads", SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_KV_HEADS, NULL, NULL},
    {"model.attn_config.rope",       SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_ROPE, NULL, NULL},
    {"model.attn_config.alibi",      SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_ALIBI, NULL, NULL},
    {"model.attn_config.qk_ln",      SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_QK_NORM, NULL, NULL},
    {"global_train_batch_size",      SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_GLOBAL_BATCH, NULL, NULL},
    {"device_train_microbatch_size", SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_MICRO_BATCH, NULL, NULL},
    {"precision",                    SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_DTYPE, NULL, NULL},
    {"fsdp_config.sharding_strategy", SETS_AS_ALIAS, LAUNCH_TEXT,  LAUNCH_SHARDING, NULL, NULL},
    {"fsdp_config.activation_checkpointing", SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_CHECKPOINTS, NULL, NULL},
    {"fsdp_config.activation_cpu_offload", SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_CHECKPOINTS_HOST, NULL, NULL},

    {"model.loss_fn",                UNMODELLED, "the fused cross entropy is predicted", "fused_crossentropy"},
    {"model.attn_config.*",          UNMODELLED, "a detail of attention", NULL},
    {"model.ffn_config.*",           UNMODELLED, "another feed-forward part than the usual one: not alike", NULL},
    {"model.peft_config.peft_type",  SETS, LAUNCH_TEXT, LAUNCH_ADAPTER, NULL, NULL},
    {"model.peft_config*",           UNMODELLED, "a detail of adapters: all weights are trained here", NULL},
    {"fsdp_config.mixed_precision",  UNMODELLED, "mixed precision DEFAULT is predicted: gradients are reduced in fp32", "DEFAULT"},
    {"fsdp_config.device_mesh",      UNMODELLED, "shards within part of the ranks: --shard says them", NULL},
    {"fsdp_config.cpu_offload",      UNMODELLED, "parameters on the host: they stay on the device here; --parameters host --optimizer host keeps them there", NULL},
    {"model.attn_pdrop",             UNMODELLED, "no dropout is predicted", "0 0.0"},
    {"model.resid_pdrop",            UNMODELLED, "no dropout is predicted", "0 0.0"},
    {"model.emb_pdrop",              UNMODELLED, "no dropout is predicted", "0 0.0"},
    {"model.norm_type",              UNMODELLED, "LayerNorm in 16 bits is predicted", "low_precision_layernorm layernorm"},
    {"model.learned_pos_emb",        UNMODELLED, "positions are rotary with attn_config.rope, else learned here", "true"},
    {"model.tie_word_embeddings",    UNMODELLED, "one matrix for embedding and head is predicted", "true"},
    {"model.fc_type*",               UNMODELLED, "PyTorch's linear layers are predicted", "torch"},
    {"model.config_overrides.*",     UNMODELLED, "another model than its name says: give it with --model", NULL},
    {"model.use_flash_attention_2",  UNMODELLED, "fused kernels are predicted: without them scores go to memory", "true"},
    {"optimizer.name",               UNMODELLED, "AdamW is predicted: another optimizer has other states, up to 8 bytes a parameter", "decoupled_adamw adamw adam"},
    {"algorithms.gradient_clipping.*", IGNORED},
    {"algorithms.*",                 UNMODELLED, "an algorithm of Composer that changes the step", NULL},
    {"callbacks.scheduled_gc.*",     UNMODELLED, "Python collects garbage between steps", NULL},
    {"fsdp_config.limit_all_gathers", UNMODELLED, "one gather ahead is predicted: more of them need more memory", "true"},
    {"model.init_*", IGNORED}, {"model.norm_eps", IGNORED}, {"model.max_seq_len", IGNORED}, {"model.verbose", IGNORED}, {"model.pretrained", IGNORED},
    {"model.use_auth_token", IGNORED}, {"model.use_cache", IGNORED}, {"model.trust_remote_code", IGNORED},
    {"variables.*", IGNORED}, {"data_local", IGNORED}, {"data_remote", IGNORED}, {"global_seed", IGNORED}, {"run_name", IGNORED}, {"tokenizer*", IGNORED},
    {"train_loader.*", IGNORED}, {"eval_*", IGNORED}, {"scheduler.*", IGNORED}, {"optimizer.lr", IGNORED}, {"optimizer.betas", IGNORED},
    {"optimizer.eps", IGNORED}, {"optimizer.weight_decay", IGNORED}, {"max_duration", IGNORED}, {"seed", IGNORED}, {"device_eval_batch_size", IGNORED},
    {"fsdp_config.state_dict_type", IGNORED}, {"fsdp_config.verbose", IGNORED}, {"fsdp_config.sync_module_states", IGNORED},
    {"fsdp_config.activation_checkpointing_reentrant", IGNORED}, {"progress_bar", IGNORED}, {"log_to_console", IGNORED}, {"console_log_interval", IGNORED},
    {"callbacks.*", IGNORED}, {"loggers.*", IGNORED}, {"save_*", IGNORED}, {"load_*", IGNORED}, {"autoresume", IGNORED}, {"dist_timeout", IGNORED},
    {"icl_*", IGNORED}, {"python_log_level", IGNORED},
};
/* clang-format on */
const struct launch_table launch_foundry_table = {.row = rows, .row_count = ARRAY_LEN(rows)};

/* Adds the option "model": that of the named Hugging Face model if the file gives no sizes; else an MPT model, which
 * has LayerNorm, GELU and a tied head, and whose positions are rotary, learned or ALiBi. Does nothing if the launch has
 * the option already. */
static enum status add_model_options(struct launch *l, struct launch_known_facts given,
                                     struct diag *diag)
{
    if (launch_has_option(l, "model") || !launch_has_field(l, LAUNCH_HIDDEN))
        return launch_add_named_model(l, given);
    struct transformer m = {.layers = launch_count_or(l, LAUNCH_LAYERS, 0),
                            .hidden = launch_count_or(l, LAUNCH_HIDDEN, 0),
                            .heads = launch_count_or(l, LAUNCH_HEADS, 0),
                            .vocab = launch_count_or(l, LAUNCH_VOCAB, 50368)};
    if (m.layers < 1 || m.hidden < 1 || m.heads < 1 || m.hidden > 1 << 20)
        return launch_field_error(l, LAUNCH_HIDDEN, diag,
                                  "a model needs d_model, n_heads and n_layers of at least 1");
    bool biases = !launch_is_on(l, LAUNCH_NO_BIAS), alibi = launch_is_on(l, LAUNCH_ALIBI);
    m.kv_heads = launch_count_or(l, LAUNCH_KV_HEADS, m.heads);
    m.head_dim = m.hidden / m.heads;
    m.ffn = m.hidden * launch_count_or(l, LAUNCH_FFN, 4);
    m.activation = ACTIVATION_GELU;
    m.norm = NORM_LAYERNORM;
    m.norm_eps = 1e-5;
    m.bias_qkv = m.bias_o = m.bias_ffn = biases;
    m.tied_head = true;
    m.positions = launch_is_on(l, LAUNCH_ROPE) ? POSITIONS_ROPE
                  : alibi                      ? POSITIONS_NONE
                                               : POSITIONS_LEARNED;
    m.rope_theta = 10000;
    m.max_positions = launch_count_or(l, LAUNCH_SEQ, 2048);
    if (alibi)
        launch_remark_on_field(
            l, REMARK_UNMODELLED, LAUNCH_ALIBI,
            "ALiBi adds a bias to scores: attention without it is predicted, which takes "
            "a few percent of attention less");
    return launch_add_model_option(l, &m, true, diag);
}

enum status launch_add_foundry_options(struct launch *l, struct launch_known_facts given,
                                       struct diag *diag)
{
    enum status status = add_model_options(l, given, diag);
    if (status == STATUS_OK)
        status = launch_check_text_is_one_of(
            l, LAUNCH_SHARDING,
            "FULL_SHARD SHARD_GRAD_OP NO_SHARD HYBRID_SHARD _HYBRID_SHARD_ZERO2", diag);
    if (status != STATUS_OK)
        return status;
    bool zero2 = launch_field_text_is(l, LAUNCH_SHARDING, "_HYBRID_SHARD_ZERO2");
    launch_add_degree_options(l, (struct launch_degrees){.tp = 1, .pp = 1, .cp = 1, .hp = 1});
    launch_add_option(l, LAUNCH_FIELD_COUNT, "profile", "fsdp1");
    launch_add_option(l, LAUNCH_SHARDING, "weights",
                      launch_field_text_is(l, LAUNCH_SHARDING, "NO_SHARD") ? "replicated"
                      : zero2 || launch_field_text_is(l, LAUNCH_SHARDING, "HYBRID_SHARD")
                          ? "hsdp"
                          : "zero3");
    /* parameters stay gathered for the backward */
    if (zero2 || launch_field_text_is(l, LAUNCH_SHARDING, "SHARD_GRAD_OP"))
        launch_add_option(l, LAUNCH_SHARDING, "reshard", "never");
    if (launch_has_field(l, LAUNCH_SEQ))
        launch_add_count_option(l, LAUNCH_SEQ, "seq", launch_count_or(l, LAUNCH_SEQ, 0));
    if (launch_has_field(l, LAUNCH_GLOBAL_BATCH))
        launch_add_count_option(l, LAUNCH_GLOBAL_BATCH, "batch",
                                launch_count_or(l, LAUNCH_GLOBAL_BATCH, 0));
    if (launch_count_or(l, LAUNCH_MICRO_BATCH, 1) > 1)
        launch_add_count_option(l, LAUNCH_MICRO_BATCH, "micro-batch",
                                launch_count_or(l, LAUNCH_MICRO_BATCH, 1));
    launch_add_option(l, LAUNCH_CHECKPOINTS, "activations",
                      !launch_is_on(l, LAUNCH_CHECKPOINTS)       ? "keep"
                      : launch_is_on(l, LAUNCH_CHECKPOINTS_HOST) ? "offload"
                                                                 : "full");
    launch_add_option(l, LAUNCH_DTYPE, "dtype",
                      launch_field_text_is(l, LAUNCH_DTYPE, "fp32")       ? "f32"
                      : launch_field_text_is(l, LAUNCH_DTYPE, "amp_fp16") ? "f16"
                                                                          : "bf16");
    if (launch_field_text_is(l, LAUNCH_ATTENTION, "triton"))
        launch_add_option(l, LAUNCH_ATTENTION, "attention", "triton");
    else if (launch_field_text_is(l, LAUNCH_ATTENTION, "flash"))
        launch_add_option(l, LAUNCH_ATTENTION, "attention", "fa2");
    else if (launch_has_field(l, LAUNCH_ATTENTION))
        launch_remark_on_field(l, REMARK_UNMODELLED, LAUNCH_ATTENTION,
                               "fused kernels are predicted: without them scores go to memory");
    return STATUS_OK;
}

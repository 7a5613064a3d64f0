/* Reads settings of Hugging Face: Accelerate's configuration (accelerate/commands/config), and the settings of TRL and
 * of Trainer (transformers/training_args.py, trl/trainer/sft_config.py), in YAML or as arguments. */
#include "base/c_locale.h"
#include "predict/launch/launch_tables.h"
#include "predict/launch/megatron_model.h"

#include <stdio.h>
#include <string.h>

static const char reference[] =
    "a reference model's forward, about a third of a step, and its weights, 2 bytes a "
    "parameter{2P} "
    "over the ranks that share them: not predicted; a sample of DPO is two sequences";
static const char rollout_share[] = "this share of each GPU's memory{share} is the rollout "
                                    "engine's while it generates; its weights, "
                                    "2 bytes a parameter{2P} over its tensor ranks, and its caches "
                                    "stay beside the update if it does "
                                    "not free them: not predicted";
static const char on_host[] =
    "parameters on the host: they stay on the device here, which needs more memory; "
    "--parameters host --optimizer host keeps them there";
static const char wrapping[] =
    "FSDP gathers a layer at a time here: larger units need more memory for gathered weights";
static const char backward_prefetch[] =
    "the next layer's weights are gathered ahead here, as FSDP2 always does";
static const char forward_prefetch[] = "gathers are issued in the order of the layers here";

/* clang-format off */
static const struct launch_row accelerate_rows[] = {
    {"distributed_type",                        SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_DISTRIBUTED, NULL, NULL},
    {"num_processes",                           SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_PROCESSES, NULL, NULL},
    {"num_machines",                            SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_NODES, NULL, NULL},
    {"mixed_precision",                         SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_DTYPE, NULL, NULL},
    {"fsdp_config.fsdp_version",                SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_FSDP_VERSION, NULL, NULL},
    {"fsdp_config.fsdp_sharding_strategy",      SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_SHARDING, NULL, NULL},
    {"fsdp_config.fsdp_reshard_after_forward",  SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_RESHARD, NULL, NULL},
    {"fsdp_config.fsdp_activation_checkpointing", SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_DEEPSPEED_CHECKPOINTS, NULL, NULL},
    {"parallelism_config.parallelism_config_dp_replicate_size", SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_DP_REPLICATE, NULL, NULL},
    {"parallelism_config.parallelism_config_dp_shard_size",     SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_DP_SHARD, NULL, NULL},
    {"parallelism_config.parallelism_config_tp_size",           SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_TP, NULL, NULL},
    {"parallelism_config.parallelism_config_cp_size",           SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_CP, NULL, NULL},
    {"parallelism_config.parallelism_config_sp_size",           SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_SP, NULL, NULL},
    {"parallelism_config.parallelism_config_cp_comm_strategy",  SETS_AS_ALIAS, LAUNCH_TEXT,  LAUNCH_ROTATE, NULL, NULL},
    {"parallelism_config.parallelism_config_cp_rotate_method",  SETS_AS_ALIAS, LAUNCH_TEXT,  LAUNCH_ROTATE, NULL, NULL},
    {"deepspeed_config.zero_stage",             SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_ZERO, NULL, NULL},
    {"deepspeed_config.offload_optimizer_device", SETS_AS_ALIAS, LAUNCH_TEXT, LAUNCH_OPTIMIZER_DEVICE, NULL, NULL},
    {"deepspeed_config.gradient_accumulation_steps", SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_ACCUMULATION, NULL, NULL},
    {"gradient_accumulation_steps",             SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_ACCUMULATION, NULL, NULL},
    {"deepspeed_config.deepspeed_config_file",  SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_DEEPSPEED_CONFIG, NULL, NULL},

    {"fsdp_config.fsdp_offload_params",         UNMODELLED, on_host, NULL},
    {"deepspeed_config.offload_param_device",   UNMODELLED, on_host, NULL},
    {"deepspeed_config.deepspeed_moe_layer_cls_names", UNMODELLED, "a detail of experts: every rank has all of them here, with even loads", NULL},
    {"dynamo_config.dynamo_backend",            SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_COMPILER, NULL, NULL},
    {"dynamo_backend",                          SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_COMPILER, NULL, NULL},
    {"dynamo_config.*",                         IGNORED},
    {"megatron_lm_config.*",                    UNMODELLED, "Megatron-LM within Accelerate: give its arguments instead", NULL},
    {"fp8_config.*",                            UNMODELLED, "a detail of products in 8 bits, of which those of torchao are predicted", NULL},
    {"parallelism_config.parallelism_config_sp_attn_implementation", SETS_AS_ALIAS, LAUNCH_TEXT, LAUNCH_ATTENTION, NULL, NULL},
    {"fsdp_config.fsdp_auto_wrap_policy",       UNMODELLED, wrapping, "TRANSFORMER_BASED_WRAP"},
    {"fsdp_config.fsdp_min_num_params",         UNMODELLED, wrapping, NULL},
    {"fsdp_config.fsdp_backward_prefetch*",     UNMODELLED, backward_prefetch, "BACKWARD_PRE"},
    {"fsdp_config.fsdp_forward_prefetch",       UNMODELLED, forward_prefetch, NULL},
    {"deepspeed_config.deepspeed_hostfile",     UNMODELLED, "the nodes are in this file: give the GPUs with --gpus", NULL},
    {"deepspeed_config.deepspeed_inclusion_filter", UNMODELLED, "some of the GPUs: num_processes says how many are predicted", NULL},
    {"deepspeed_config.deepspeed_exclusion_filter", UNMODELLED, "some of the GPUs: num_processes says how many are predicted", NULL},
    {"deepspeed_config.zero3_init_flag",        IGNORED}, {"deepspeed_config.zero3_save_16bit_model", IGNORED},
    {"deepspeed_config.gradient_clipping",      IGNORED}, {"deepspeed_config.offload_optimizer_nvme_path", IGNORED},
    {"deepspeed_config.offload_param_nvme_path", IGNORED}, {"deepspeed_config.deepspeed_multinode_launcher", IGNORED},
    {"use_cpu",                                 UNMODELLED, "training on the CPU: GPUs are predicted", NULL},
    {"tpu_use_cluster",                         UNMODELLED, "training on TPUs: GPUs are predicted", NULL},
    {"fsdp_config.fsdp_cpu_ram_efficient_loading", IGNORED}, {"fsdp_config.fsdp_state_dict_type", IGNORED}, {"fsdp_config.fsdp_sync_module_states", IGNORED},
    {"fsdp_config.fsdp_transformer_layer_cls_to_wrap", IGNORED}, {"fsdp_config.fsdp_use_orig_params", IGNORED}, {"compute_environment", IGNORED},
    {"parallelism_config.parallelism_config_cp_backend", IGNORED}, {"parallelism_config.parallelism_config_sp_backend", IGNORED},
    {"parallelism_config.parallelism_config_sp_seq_length*", IGNORED},
    {"debug", IGNORED}, {"downcast_bf16", IGNORED}, {"machine_rank", IGNORED}, {"main_*", IGNORED}, {"rdzv_*", IGNORED}, {"same_network", IGNORED},
    {"tpu_use_sudo", IGNORED}, {"tpu_name", IGNORED}, {"tpu_zone", IGNORED}, {"tpu_vm", IGNORED}, {"tpu_env", IGNORED},
    {"gpu_ids", IGNORED}, {"enable_cpu_affinity", IGNORED}, {"mpirun_config.*", IGNORED}, {"commands", IGNORED}, {"command_file", IGNORED},
};

static const struct launch_row trainer_rows[] = {
    {"model_name_or_path",           SETS, LAUNCH_TEXT,   LAUNCH_MODEL, NULL, NULL},
    {"max_length",                   SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_SEQ, NULL, NULL},
    {"max_seq_length",               SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_SEQ, NULL, NULL},
    {"model_max_length",             SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_SEQ, NULL, NULL},
    {"block_size",                   SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_SEQ, NULL, NULL},
    {"per_device_train_batch_size",  SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_MICRO_BATCH, NULL, NULL},
    {"gradient_accumulation_steps",  SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_ACCUMULATION, NULL, NULL},
    {"gradient_checkpointing",       SETS, LAUNCH_SWITCH, LAUNCH_CHECKPOINTS, NULL, NULL},
    {"packing",                      SETS, LAUNCH_SWITCH, LAUNCH_PACKING, NULL, NULL},
    {"bf16",                         SETS, LAUNCH_SWITCH, LAUNCH_BF16, NULL, NULL},
    {"fp16",                         SETS, LAUNCH_SWITCH, LAUNCH_FP16, NULL, NULL},
    {"attn_implementation",          SETS, LAUNCH_TEXT,   LAUNCH_ATTENTION, NULL, NULL},
    {"torch_compile",                SETS, LAUNCH_SWITCH, LAUNCH_COMPILE, NULL, NULL},
    {"deepspeed",                    SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_DEEPSPEED_CONFIG, NULL, NULL},
    {"fsdp",                         SETS, LAUNCH_TEXT,   LAUNCH_SHARDING, NULL, NULL},
    {"optim",                        SETS, LAUNCH_TEXT,   LAUNCH_OPTIMIZER, NULL, NULL},
    {"torch_dtype",                  SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_LOADED_DTYPE, NULL, NULL},
    {"dtype",                        SETS, LAUNCH_TEXT,   LAUNCH_LOADED_DTYPE, NULL, NULL},

    {"subcommand",                   SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_SUBCOMMAND, NULL, NULL},
    {"accelerate_config",            SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_ACCELERATE_CONFIG, NULL, NULL},
    {"use_liger_kernel",             SETS, LAUNCH_SWITCH, LAUNCH_LIGER, NULL, NULL},
    {"use_liger",                    SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_LIGER, NULL, NULL},
    {"use_peft",                     SETS, LAUNCH_SWITCH, LAUNCH_ADAPTER_ON, NULL, NULL},
    {"lora_r",                       SETS, LAUNCH_WHOLE_NUMBER, LAUNCH_ADAPTER_RANK, NULL, NULL},
    {"lora_target_modules",          SETS, LAUNCH_TEXT,   LAUNCH_ADAPTER_TARGETS, NULL, NULL},
    {"lora_dropout",                 UNMODELLED, "dropout of what adapters read: each keeps a mask of a byte an element for the backward, which is a sixth of what a layer keeps without checkpoints, and takes a pass more: not predicted", "0 0.0"},
    {"lora_modules_to_save",         UNMODELLED, "modules that are trained whole beside the adapters: up to 18 bytes for each of their parameters (vocabulary times hidden size for the embedding or the head) come on top: not predicted", NULL},
    {"lora_*",                       UNMODELLED, "a detail of adapters, or of training part of the weights: not predicted", NULL},
    {"load_in_4bit",                 SETS, LAUNCH_SWITCH, LAUNCH_FROZEN_4BIT, NULL, NULL},
    {"load_in_8bit",                 SETS, LAUNCH_SWITCH, LAUNCH_FROZEN_8BIT, NULL, NULL},
    {"use_bnb_nested_quant",         SETS, LAUNCH_SWITCH, LAUNCH_FROZEN_DOUBLE, NULL, NULL},
    {"bnb_4bit_quant_type",          IGNORED},
    {"bnb_4bit_quant_storage",       IGNORED},
    {"padding_free",                 UNMODELLED, "sequences of one batch in a row: each has the whole length here", NULL},
    {"activation_offloading",        SETS, LAUNCH_SWITCH, LAUNCH_CHECKPOINTS_HOST, NULL, NULL},
    {"group_by_length",              UNMODELLED, "batches of short sequences: each has the whole length here", NULL},
    {"neftune_noise_alpha",          UNMODELLED, "noise on the embeddings: under 1 % of a step", NULL},
    {"config",                       UNMODELLED, "this file is not read by itself: give it with --from", NULL},
    {"per_gpu_train_batch_size",     SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_MICRO_BATCH, NULL, NULL},
    {"tf32",                         SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_TF32, NULL, NULL},
    {"fsdp_config.activation_checkpointing",      SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_DEEPSPEED_CHECKPOINTS, NULL, NULL},
    {"fsdp_config.fsdp_activation_checkpointing", SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_DEEPSPEED_CHECKPOINTS, NULL, NULL},
    {"fsdp_config.reshard_after_forward",         SETS, LAUNCH_TEXT,   LAUNCH_RESHARD, NULL, NULL},
    {"fsdp_config.fsdp_reshard_after_forward",    SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_RESHARD, NULL, NULL},
    {"fsdp_config.version",          SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_FSDP_VERSION, NULL, NULL},
    {"fsdp_config.fsdp_version",     SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_FSDP_VERSION, NULL, NULL},
    {"fsdp_config.offload_params",   UNMODELLED, on_host, NULL}, {"fsdp_config.fsdp_offload_params", UNMODELLED, on_host, NULL},
    {"fsdp_config.backward_prefetch*", UNMODELLED, backward_prefetch, "BACKWARD_PRE"}, {"fsdp_config.fsdp_backward_prefetch*", UNMODELLED, backward_prefetch, "BACKWARD_PRE"},
    {"fsdp_config.forward_prefetch", UNMODELLED, forward_prefetch, NULL}, {"fsdp_config.fsdp_forward_prefetch", UNMODELLED, forward_prefetch, NULL},
    {"fsdp_config.min_num_params",   UNMODELLED, wrapping, NULL}, {"fsdp_config.fsdp_min_num_params", UNMODELLED, wrapping, NULL}, {"fsdp_min_num_params", UNMODELLED, wrapping, NULL},
    {"fsdp_config.auto_wrap_policy", UNMODELLED, wrapping, "TRANSFORMER_BASED_WRAP"}, {"fsdp_config.fsdp_auto_wrap_policy", UNMODELLED, wrapping, "TRANSFORMER_BASED_WRAP"},
    {"fsdp_config.limit_all_gathers", UNMODELLED, "one gather ahead is predicted: more of them need more memory", "true"},
    {"fsdp_config.xla*",             UNMODELLED, "FSDP of XLA: that of PyTorch is predicted", NULL},
    {"fsdp_config.transformer_layer_cls_to_wrap", IGNORED}, {"fsdp_config.fsdp_transformer_layer_cls_to_wrap", IGNORED}, {"fsdp_transformer_layer_cls_to_wrap", IGNORED},
    {"fsdp_config.use_orig_params",  IGNORED}, {"fsdp_config.fsdp_use_orig_params", IGNORED}, {"fsdp_config.sync_module_states", IGNORED},
    {"fsdp_config.fsdp_sync_module_states", IGNORED}, {"fsdp_config.cpu_ram_efficient_loading", IGNORED}, {"fsdp_config.fsdp_cpu_ram_efficient_loading", IGNORED},
    {"fsdp_config.state_dict_type",  IGNORED}, {"fsdp_config.fsdp_state_dict_type", IGNORED},
    {"fsdp_config",                  UNMODELLED, "this file is not read: give its settings under fsdp_config, or Accelerate's file with --from", NULL},
    {"packing_strategy",             UNMODELLED, "documents do not see each other: full causal attention is predicted, which is more work", "wrapped"},
    {"ddp_backend",                  UNMODELLED, "another library of collectives than NCCL", "nccl"},
    {"ddp_bucket_cap_mb",            UNMODELLED, "sizes of the buckets of gradients: PyTorch's 25 MB are predicted", "25"},
    {"ddp_find_unused_parameters",   UNMODELLED, "DDP walks over the graph after each forward", NULL},
    {"max_prompt_length",            SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_PROMPT, NULL, NULL},
    {"max_completion_length",        SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_ANSWER, NULL, NULL},
    {"vllm_gpu_memory_utilization",  UNMODELLED, rollout_share, "0"},
    {"vllm_*",                       UNMODELLED, "a detail of the rollout engine: only the policy's update is predicted", NULL},
    {"num_generations",              UNMODELLED, "answers of one prompt: the batch counts answers", NULL},
    {"num_iterations",               UNMODELLED, "updates by the same answers: one is predicted", "1"},
    {"generation_batch_size",        UNMODELLED, "answers of one generation: only the policy's update is predicted", NULL},
    {"steps_per_generation",         UNMODELLED, "answers of one generation: only the policy's update is predicted", NULL},
    {"reward_model_*",               UNMODELLED, "a reward model's forward and its weights, 2 bytes a parameter of it{2P} if it is the policy's size: not predicted", NULL},
    {"precompute_ref_log_probs",     UNMODELLED, "a pass of the reference model over the data before the first step", NULL},
    {"top_entropy_quantile",         UNMODELLED, "the entropy of the logits beside the loss: up to 4 bytes a logit more", "1 1.0"},
    {"entropy_coef*",                UNMODELLED, "the entropy of the logits beside the loss: up to 4 bytes a logit more", NULL},
    {"disable_dropout",              UNMODELLED, "dropout as the model's config.json has it is predicted", "true false"},
    {"sync_ref_model",               UNMODELLED, "the policy's weights are copied into the reference model every few steps", NULL},
    {"torch_empty_cache_steps",      UNMODELLED, "the allocator's cache is emptied every few steps: less memory stays reserved, and steps are slower", NULL},
    {"full_determinism",             UNMODELLED, "deterministic kernels, of which some are slower", NULL},
    {"label_smoothing_factor",       UNMODELLED, "the loss reads the logits once more", NULL},
    {"auto_find_batch_size",         UNMODELLED, "the micro-batch is halved until it fits: the file's is predicted", NULL},
    {"use_cpu",                      UNMODELLED, "training on the CPU: GPUs are predicted", NULL}, {"no_cuda", UNMODELLED, "training on the CPU: GPUs are predicted", NULL},
    {"use_vllm",                     UNMODELLED, "generation of answers and the memory of the rollout engine: only the policy's update is predicted", NULL},
    {"ref_model*",                   UNMODELLED, reference, NULL},
    {"beta",                         UNMODELLED, reference, NULL},
    {"loss_type",                    SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_LOSS_TYPE, NULL, NULL},
    {"router_aux_loss_coef",         UNMODELLED, "a detail of experts: every rank has all of them here, with even loads", NULL},
    {"dataset*", IGNORED}, {"data_seed", IGNORED}, {"data_dir", IGNORED}, {"data_files", IGNORED}, {"dataloader_*", IGNORED},
    {"chat_template*", IGNORED}, {"model_revision", IGNORED}, {"trust_remote_code", IGNORED}, {"tokenizer_*", IGNORED}, {"eos_token", IGNORED},
    {"pad_token", IGNORED}, {"learning_rate", IGNORED}, {"lr_*", IGNORED}, {"warmup_*", IGNORED}, {"weight_decay", IGNORED}, {"adam_*", IGNORED},
    {"max_grad_norm", IGNORED}, {"num_train_epochs", IGNORED}, {"max_steps", IGNORED}, {"seed", IGNORED}, {"do_*", IGNORED}, {"eval_*", IGNORED},
    {"evaluation_strategy", IGNORED}, {"per_device_eval_batch_size", IGNORED}, {"log_*", IGNORED}, {"logging_*", IGNORED}, {"report_to", IGNORED},
    {"save_*", IGNORED}, {"output_dir", IGNORED}, {"overwrite_output_dir", IGNORED}, {"push_to_hub*", IGNORED}, {"hub_*", IGNORED},
    {"run_name", IGNORED}, {"remove_unused_columns", IGNORED}, {"gradient_checkpointing_kwargs*", IGNORED}, {"ddp_timeout", IGNORED},
    {"ddp_broadcast_buffers", IGNORED}, {"disable_tqdm", IGNORED}, {"preprocessing_num_workers", IGNORED}, {"average_tokens_across_devices", IGNORED},
    {"assistant_only_loss", IGNORED}, {"completion_only_loss", IGNORED}, {"use_cache", IGNORED}, {"resume_from_checkpoint", IGNORED},
    {"include_*", IGNORED}, {"load_best_model_at_end", IGNORED}, {"metric_for_best_model", IGNORED}, {"greater_is_better", IGNORED},
    {"system_prompt", IGNORED}, {"benchmarks", IGNORED}, {"callbacks", IGNORED}, {"wandb_*", IGNORED}, {"local_rank", IGNORED},
    {"truncation_mode", IGNORED},
    /* settings of GRPO that have no effect: how answers are drawn, and rewards and losses weighted */
    {"temperature", IGNORED}, {"top_p", IGNORED}, {"top_k", IGNORED}, {"min_p", IGNORED}, {"generation_kwargs", IGNORED},
    {"repetition_penalty", IGNORED}, {"cache_implementation", IGNORED}, {"epsilon", IGNORED},
    {"epsilon_high", IGNORED}, {"delta", IGNORED}, {"importance_sampling_level", IGNORED}, {"reward_weights", IGNORED},
    {"multi_objective_aggregation", IGNORED}, {"scale_rewards", IGNORED}, {"mask_truncated_completions", IGNORED},
    {"num_completions_to_print", IGNORED},
    {"num_generations_eval", IGNORED}, {"reward_funcs", IGNORED}, {"sapo_temperature_neg", IGNORED}, {"sapo_temperature_pos", IGNORED},
    {"vespo_k_pos", IGNORED}, {"vespo_k_neg", IGNORED}, {"vespo_lambda_pos", IGNORED}, {"vespo_lambda_neg", IGNORED},
    {"off_policy_mask_threshold", IGNORED},
};
/* clang-format on */
const struct launch_table launch_accelerate_table = {.row = accelerate_rows,
                                                     .row_count = ARRAY_LEN(accelerate_rows)};
const struct launch_table launch_trainer_table = {.row = trainer_rows,
                                                  .row_count = ARRAY_LEN(trainer_rows)};

/* True if a file asks for DeepSpeed, which shares weights by ZeRO. */
static bool is_zero_requested(const struct launch *l)
{
    return launch_has_field(l, LAUNCH_ZERO) ||
           launch_field_text_is(l, LAUNCH_DISTRIBUTED, "DEEPSPEED") ||
           launch_is_on(l, LAUNCH_DEEPSPEED) || l->has_read_framework_file[LAUNCH_DEEPSPEED_JSON];
}

/* True if LAUNCH_SHARDING, a list of words, has the word. Older files of Accelerate have a number there. */
static bool has_sharding_word(const struct launch *l, const char *word)
{
    size_t size = strlen(word);
    const char *text =
        launch_has_field(l, LAUNCH_SHARDING) ? launch_field_text(l, LAUNCH_SHARDING) : "";
    for (text += strspn(text, " ,"); *text != '\0'; text += strspn(text, " ,")) {
        if (strcspn(text, " ,") == size && c_equal_ignoring_case_n(text, word, size))
            return true;
        text += strcspn(text, " ,");
    }
    return false;
}

/* True if a file asks for the kind of sharding `name`, by the name or, in older files of Accelerate, by its number: in
 * LAUNCH_SHARDING or in LAUNCH_RESHARD. */
static bool is_sharding_kind(const struct launch *l, const char *name, const char *number)
{
    return has_sharding_word(l, name) || has_sharding_word(l, number) ||
           launch_field_text_is(l, LAUNCH_RESHARD, name) ||
           launch_field_text_is(l, LAUNCH_RESHARD, number);
}

/* True if a file asks for FSDP. */
static bool has_fsdp(const struct launch *l)
{
    static const char *const offs[] = {"", "false", "no", "none"};
    bool is_sharding_given = launch_has_field(l, LAUNCH_SHARDING);
    for (size_t i = 0; i < ARRAY_LEN(offs); i++)
        is_sharding_given = is_sharding_given && !launch_field_text_is(l, LAUNCH_SHARDING, offs[i]);
    return is_sharding_given || launch_field_text_is(l, LAUNCH_DISTRIBUTED, "FSDP") ||
           launch_is_on(l, LAUNCH_FSDP);
}

/* Fails if a word for sharding is not known. */
static enum status check_sharding_words(const struct launch *l, struct diag *diag)
{
    static const char words[] = "full_shard shard_grad_op no_shard hybrid_shard hybrid_shard_zero2 "
                                "offload auto_wrap true false no none 1 2 3 4 5";
    const char *text =
        launch_has_field(l, LAUNCH_SHARDING) ? launch_field_text(l, LAUNCH_SHARDING) : "";
    for (text += strspn(text, " ,"); *text != '\0'; text += strspn(text, " ,")) {
        char word[64];
        const size_t size = strcspn(text, " ,");
        snprintf(word, sizeof word, "%.*s", (int)(size < sizeof word ? size : sizeof word), text);
        if (!launch_is_predicted_value(words, word))
            return launch_field_error(l, LAUNCH_SHARDING, diag,
                                      "'%s' is no kind of FSDP: full_shard, shard_grad_op, "
                                      "no_shard, hybrid_shard and hybrid_shard_zero2 are",
                                      word);
        text += size;
    }
    return STATUS_OK;
}

/* Fails if a file names a kind of training, a word for sharding or one for gathering that is not known. */
static enum status check_sharding(const struct launch *l, struct diag *diag)
{
    static const char *const kinds[] = {"NO", "MULTI_GPU", "FSDP", "DEEPSPEED"};
    bool known = !launch_has_field(l, LAUNCH_DISTRIBUTED);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        known = known || launch_field_text_is(l, LAUNCH_DISTRIBUTED, kinds[i]);
    if (!known)
        return launch_field_error(l, LAUNCH_DISTRIBUTED, diag,
                                  "'%s' is not read: NO, MULTI_GPU, FSDP and DEEPSPEED are; for "
                                  "MEGATRON_LM give Megatron's arguments",
                                  launch_field_text(l, LAUNCH_DISTRIBUTED));
    static const char reshard_words[] = "true false yes no on off 0 1 2 3 4 5 full_shard "
                                        "shard_grad_op no_shard hybrid_shard hybrid_shard_zero2";
    if (launch_has_field(l, LAUNCH_RESHARD) &&
        !launch_is_predicted_value(reshard_words, launch_field_text(l, LAUNCH_RESHARD)))
        return launch_field_error(l, LAUNCH_RESHARD, diag,
                                  "'%s' is not read: true, false, or a kind of FSDP such as "
                                  "full_shard or shard_grad_op would do",
                                  launch_field_text(l, LAUNCH_RESHARD));
    return check_sharding_words(l, diag);
}

/* Returns how ranks share weights, a value of enum weights_choice; -1 if the ZeRO stage is none of 0 to 3. Sets *copies
 * to the number of groups of ranks that each hold all shards. */
static int weights_choice_of(const struct launch *l, int64_t *copies)
{
    bool fsdp = has_fsdp(l) || launch_count_or(l, LAUNCH_DP_SHARD, 1) > 1;
    *copies = launch_count_or(l, LAUNCH_DP_REPLICATE, 1);
    if (is_zero_requested(l)) {
        int64_t stage = launch_count_or(l, LAUNCH_ZERO, 2);
        return stage < 0 || stage > 3 ? -1 : CHOICE_WEIGHTS_REPLICATED + (int)stage;
    }
    if (!fsdp || is_sharding_kind(l, "NO_SHARD", "3"))
        return CHOICE_WEIGHTS_REPLICATED;
    if (is_sharding_kind(l, "HYBRID_SHARD", "4") || is_sharding_kind(l, "HYBRID_SHARD_ZERO2", "5"))
        return CHOICE_WEIGHTS_HSDP;
    if (*copies > 1)
        return CHOICE_WEIGHTS_HSDP;
    return CHOICE_WEIGHTS_ZERO3;
}

/* True if FSDP keeps parameters gathered from the forward to the backward. */
static bool does_fsdp_keep_gathered(const struct launch *l)
{
    const char *reshard =
        launch_has_field(l, LAUNCH_RESHARD) ? launch_field_text(l, LAUNCH_RESHARD) : NULL;
    return !is_zero_requested(l) && (is_sharding_kind(l, "SHARD_GRAD_OP", "2") ||
                                     is_sharding_kind(l, "HYBRID_SHARD_ZERO2", "5") ||
                                     launch_is_predicted_value("false no off 0", reshard));
}

/* True if the run is plain data parallelism in mixed precision: every GPU has all weights, and there is no FSDP, no
 * DeepSpeed, and no context, head or tensor rank beside it. */
static bool is_plain_ddp(const struct launch *l, const struct launch_degrees *d)
{
    int64_t copies;
    bool full = launch_field_text_is(l, LAUNCH_DTYPE, "no") ||
                launch_field_text_is(l, LAUNCH_DTYPE, "fp32") ||
                (launch_field_text_is(l, LAUNCH_BF16, "false") && !launch_is_on(l, LAUNCH_FP16));
    return weights_choice_of(l, &copies) == CHOICE_WEIGHTS_REPLICATED && !is_zero_requested(l) &&
           !has_fsdp(l) && !full && d->cp * d->hp * d->tp == 1;
}

/* True if parameters stay in the 16 bits in which they are loaded, as under DDP, where autocast then casts nothing.
 * FSDP and DeepSpeed make them fp32. "auto" means the dtype of the checkpoint, which is bf16 for most models. */
static bool keeps_16_bit_parameters(const struct launch *l, const struct launch_degrees *d)
{
    return is_plain_ddp(l, d) && (launch_field_text_is(l, LAUNCH_LOADED_DTYPE, "bfloat16") ||
                                  launch_field_text_is(l, LAUNCH_LOADED_DTYPE, "auto"));
}

/* Adds the profile: the one that a table file gives; else hf-ddp if DDP trains fp32 parameters under autocast, else
 * hf. */
static void add_profile_option(struct launch *l, const struct launch_degrees *d)
{
    bool autocast = is_plain_ddp(l, d) && !keeps_16_bit_parameters(l, d);
    launch_add_option(l, LAUNCH_FIELD_COUNT, "profile",
                      launch_has_field(l, LAUNCH_PROFILE) ? launch_field_text(l, LAUNCH_PROFILE)
                      : autocast                          ? "hf-ddp"
                                                          : "hf");
}

static enum status add_weight_options(struct launch *l, struct launch_known_facts given,
                                      const struct launch_degrees *d, struct diag *diag)
{
    int64_t copies, sharing = given.gpu_count / d->tp;
    int weights = weights_choice_of(l, &copies);
    if (weights < 0)
        return launch_field_error(l, LAUNCH_ZERO, diag, "a stage of ZeRO is 0 to 3");
    bool copied = weights == CHOICE_WEIGHTS_HSDP && copies > 1;
    if (copied && (sharing < copies || sharing % copies != 0))
        return launch_field_error(l, LAUNCH_DP_REPLICATE, diag,
                                  "%lld copies do not divide %lld ranks that hold the same weights",
                                  (long long)copies, (long long)sharing);
    launch_add_option(l, launch_has_field(l, LAUNCH_ZERO) ? LAUNCH_ZERO : LAUNCH_SHARDING,
                      "weights", weights_names[weights]);
    if (copied)
        launch_add_count_option(l, LAUNCH_DP_REPLICATE, "shard", sharing / copies);
    if (weights >= CHOICE_WEIGHTS_ZERO3 && does_fsdp_keep_gathered(l))
        launch_add_option(l, launch_has_field(l, LAUNCH_RESHARD) ? LAUNCH_RESHARD : LAUNCH_SHARDING,
                          "reshard", "never");
    if (is_zero_requested(l) &&
        weights >= CHOICE_WEIGHTS_ZERO2) /* trainer.py calls no_sync() only without DeepSpeed */
        launch_add_option(l, LAUNCH_ZERO, "grad-sync", "each");
    if (is_zero_requested(l) && (launch_field_text_is(l, LAUNCH_OPTIMIZER_DEVICE, "cpu") ||
                                 launch_field_text_is(l, LAUNCH_OPTIMIZER_DEVICE, "nvme")))
        launch_add_option(l, LAUNCH_OPTIMIZER_DEVICE, "optimizer", "host");
    return STATUS_OK;
}

/* Adds the option for the states of Trainer's optimizer if they are not fp32. Adds a remark if the optimizer is not one
 * of the kinds of AdamW with states in fp32 or 8 bits (transformers, training_args.py, OptimizerNames; axolotl has
 * ao_). */
static void add_state_options(struct launch *l, const struct launch_degrees *d)
{
    static const char kinds_32bit[] =
        "adamw adamw_hf adamw_torch adamw_torch_fused adamw_torch_xla adamw_torch_npu_fused "
        "adamw_apex_fused paged_adamw paged_adamw_32bit";
    static const char kinds_8bit[] =
        "adamw_8bit adamw_bnb_8bit adamw_torch_8bit ao_adamw_8bit paged_adamw_8bit";
    const char *name = launch_has_field(l, LAUNCH_OPTIMIZER)
                           ? launch_field_text(l, LAUNCH_OPTIMIZER)
                           : "adamw_torch";
    const bool has_8_bit_states = launch_is_predicted_value(kinds_8bit, name);
    if (has_8_bit_states)
        launch_add_option(l, LAUNCH_OPTIMIZER, "states",
                          keeps_16_bit_parameters(l, d) ? "8bit-bf16" : "8bit");
    else if (keeps_16_bit_parameters(l, d))
        launch_add_option(l, LAUNCH_LOADED_DTYPE, "states", "bf16");
    if (!has_8_bit_states && !launch_is_predicted_value(kinds_32bit, name))
        launch_remark_on_field(
            l, REMARK_UNMODELLED, LAUNCH_OPTIMIZER,
            "AdamW is predicted: another optimizer has other states, up to 8 bytes a "
            "parameter");
}

static void add_batch_options(struct launch *l, struct launch_known_facts given,
                              const struct launch_degrees *d)
{
    int64_t ranks = d->tp * d->cp * d->hp;
    int64_t micro = launch_count_or(l, LAUNCH_MICRO_BATCH, 8);
    int64_t accumulation = launch_count_or(l, LAUNCH_ACCUMULATION, 1);
    bool is_in_range = micro > 0 && micro < 1 << 20 && accumulation > 0 && accumulation < 1 << 20;
    if (launch_has_field(l, LAUNCH_SEQ))
        launch_add_count_option(l, LAUNCH_SEQ, "seq", launch_count_or(l, LAUNCH_SEQ, 0));
    if (!launch_is_of_family(l, LAUNCH_TRAINER) && !launch_has_field(l, LAUNCH_MICRO_BATCH))
        return; /* Accelerate's file has no batch */
    if (!launch_has_field(l, LAUNCH_MICRO_BATCH))
        launch_add_remark_printf(l, REMARK_ASSUMED, "--micro-batch 8", (struct loc){0},
                                 "per_device_train_batch_size is not given, and 8 by default");
    if (launch_is_on(l, LAUNCH_PAIRS) && is_in_range)
        micro *= 2;
    if (launch_has_field(l, LAUNCH_GLOBAL_BATCH))
        launch_add_count_option(l, LAUNCH_GLOBAL_BATCH, "batch",
                                launch_count_or(l, LAUNCH_GLOBAL_BATCH, 1) *
                                    launch_count_or(l, LAUNCH_ANSWERS, 1) *
                                    (launch_is_on(l, LAUNCH_PAIRS) ? 2 : 1));
    else if (given.gpu_count >= ranks && is_in_range)
        launch_add_count_option(l, LAUNCH_ACCUMULATION, "batch",
                                micro * accumulation * (given.gpu_count / ranks));
    if (micro > 1)
        launch_add_count_option(l, LAUNCH_MICRO_BATCH, "micro-batch", micro);
    if (!launch_is_on(l, LAUNCH_PACKING) && !launch_is_on(l, LAUNCH_PADDED))
        launch_add_remark_printf(
            l, REMARK_UNMODELLED, "no packing", (struct loc){0},
            "samples shorter than the longest: every sequence has its whole length here, "
            "which is a step of more tokens");
}

static void add_dtype_and_kernel_options(struct launch *l)
{
    bool f16 = launch_is_on(l, LAUNCH_FP16) || launch_field_text_is(l, LAUNCH_DTYPE, "fp16");
    bool bf16 = launch_is_on(l, LAUNCH_BF16) || launch_field_text_is(l, LAUNCH_DTYPE, "bf16") ||
                launch_field_text_is(l, LAUNCH_DTYPE, "fp8");
    if (launch_field_text_is(l, LAUNCH_DTYPE, "fp8") && !launch_has_field(l, LAUNCH_FP8)) {
        launch_remark_on_field(l, REMARK_ASSUMED, LAUNCH_DTYPE,
                               "products in 8 bits by torchao, with a scale for a tensor");
        launch_set_text(l, LAUNCH_FP8, "true");
        launch_set_text(l, LAUNCH_FP8_RECIPE, "tensorwise");
    }
    bool said = launch_has_field(l, LAUNCH_BF16) || launch_has_field(l, LAUNCH_FP16) ||
                launch_has_field(l, LAUNCH_DTYPE);
    if (said)
        launch_add_option(l, launch_has_field(l, LAUNCH_BF16) ? LAUNCH_BF16 : LAUNCH_DTYPE, "dtype",
                          f16    ? "f16"
                          : bf16 ? "bf16"
                                 : "f32");
    if (launch_is_on(l, LAUNCH_TF32) && said && !f16 && !bf16)
        launch_remark_on_field(
            l, REMARK_UNMODELLED, LAUNCH_TF32,
            "products of fp32 are predicted without TF32, which takes up to eight times as long");
    if (launch_field_text_is(l, LAUNCH_ATTENTION, "flash_attention_2") ||
        launch_field_text_is(l, LAUNCH_ATTENTION, "kernels-community/flash-attn"))
        launch_add_option(l, LAUNCH_ATTENTION, "attention", "fa2");
    else if (launch_field_text_is(l, LAUNCH_ATTENTION, "flash_attention_3") ||
             launch_field_text_is(l, LAUNCH_ATTENTION, "kernels-community/vllm-flash-attn3"))
        launch_add_option(l, LAUNCH_ATTENTION, "attention", "fa3");
    else if (launch_has_field(l, LAUNCH_ATTENTION) &&
             !launch_field_text_is(l, LAUNCH_ATTENTION, "sdpa"))
        launch_remark_on_field(
            l, REMARK_UNMODELLED, LAUNCH_ATTENTION,
            strstr(launch_field_text(l, LAUNCH_ATTENTION), "eager") != NULL
                ? "sdpa's fused kernels are predicted: without them scores go to memory"
                : "another kernel than sdpa's and flash-attention's: sdpa's is predicted");
    bool compiled =
        launch_is_on(l, LAUNCH_COMPILE) || launch_field_text_is(l, LAUNCH_COMPILER, "inductor");
    if (!compiled && launch_has_field(l, LAUNCH_COMPILER) &&
        !launch_field_text_is(l, LAUNCH_COMPILER, "no") &&
        !launch_field_text_is(l, LAUNCH_COMPILER, "eager"))
        launch_remark_on_field(l, REMARK_UNMODELLED, LAUNCH_COMPILER,
                               "another compiler than inductor");
    if (compiled && !launch_is_on(l, LAUNCH_LIGER))
        launch_add_option(l, LAUNCH_COMPILE, "kernels", "compiled");
    if (launch_is_on(l, LAUNCH_LIGER)) {
        launch_add_option(l, LAUNCH_LIGER, "kernels", "liger");
        launch_add_option(l, LAUNCH_LIGER, "loss", "fused");
    } else if (compiled) {
        launch_add_option(l, LAUNCH_COMPILE, "loss", "compiled");
    }
}

/* If TRL's loss is chunked_nll, adds the number of its pieces, if there are several, and a remark on what they
 * recompute. A piece has CHUNK_TOKENS tokens of a rank (_CHUNKED_LM_HEAD_CHUNK_SIZE of trl/trainer/sft_trainer.py).
 * Adds a remark on another loss than cross entropy. */
static void add_loss_option(struct launch *l, const struct launch_degrees *d)
{
    enum { CHUNK_TOKENS = 256, PIECES_MAX = 65535 };
    int64_t rows = launch_count_or(l, LAUNCH_SEQ, 0) / (d->cp * d->hp);
    int64_t micro = launch_count_or(l, LAUNCH_MICRO_BATCH, 8);
    if (!launch_has_field(l, LAUNCH_LOSS_TYPE) || launch_field_text_is(l, LAUNCH_LOSS_TYPE, "nll"))
        return;
    if (!launch_field_text_is(l, LAUNCH_LOSS_TYPE, "chunked_nll")) {
        launch_remark_on_field(
            l, REMARK_UNMODELLED, LAUNCH_LOSS_TYPE,
            "another loss than cross entropy; of preference training a sample is two "
            "sequences");
        return;
    }
    int64_t pieces = micro < 1 << 20 ? (rows * micro + CHUNK_TOKENS - 1) / CHUNK_TOKENS : 0;
    if (pieces > 1)
        launch_add_count_option(l, LAUNCH_LOSS_TYPE, "loss-chunks",
                                pieces < PIECES_MAX ? pieces : PIECES_MAX);
    launch_remark_on_field(
        l, REMARK_UNMODELLED, LAUNCH_LOSS_TYPE,
        "logits of each piece are computed again in its backward: here they are not "
        "(one product of hidden size x vocabulary less)");
}

static void add_recompute_options(struct launch *l)
{
    bool said = launch_has_field(l, LAUNCH_CHECKPOINTS) ||
                launch_has_field(l, LAUNCH_DEEPSPEED_CHECKPOINTS);
    bool full =
        launch_is_on(l, LAUNCH_CHECKPOINTS) || launch_is_on(l, LAUNCH_DEEPSPEED_CHECKPOINTS);
    if (launch_is_of_family(l, LAUNCH_TRAINER) && !launch_has_field(l, LAUNCH_CHECKPOINTS) &&
        !full) {
        full = true;
        launch_add_remark_printf(
            l, REMARK_ASSUMED, "--activations full", (struct loc){0},
            "gradient_checkpointing is not given: on in TRL, off in Trainer, where "
            "--activations keep says so");
    }
    if (said || launch_is_of_family(l, LAUNCH_TRAINER))
        launch_add_option(l, LAUNCH_CHECKPOINTS, "activations",
                          full && launch_is_on(l, LAUNCH_CHECKPOINTS_HOST) ? "offload"
                          : full                                           ? "full"
                                                                           : "keep");
    if (!full && launch_is_on(l, LAUNCH_CHECKPOINTS_HOST))
        launch_remark_on_field(
            l, REMARK_UNMODELLED, LAUNCH_CHECKPOINTS_HOST,
            "activations of layers that are not recomputed go to the host: they stay "
            "on the device here, which needs more memory");
}

/* Sets how ranks share weights if LAUNCH_ACCELERATE_CONFIG names one of TRL's own configuration files ("zero2",
 * "fsdp2"; trl/accelerate_configs), and no file gives that. Another name becomes a remark, unless it is multi_gpu or
 * single_gpu, which share no weights. */
static void set_fields_of_accelerate_config(struct launch *l)
{
    if (!launch_has_field(l, LAUNCH_ACCELERATE_CONFIG))
        return;
    const char *name = launch_field_text(l, LAUNCH_ACCELERATE_CONFIG);
    bool zero =
        strncmp(name, "zero", 4) == 0 && name[4] >= '1' && name[4] <= '3' && name[5] == '\0';
    bool fsdp = strcmp(name, "fsdp1") == 0 || strcmp(name, "fsdp2") == 0;
    if (zero && !launch_has_field(l, LAUNCH_ZERO))
        launch_set_count(l, LAUNCH_ZERO, name[4] - '0');
    else if (fsdp && !launch_has_field(l, LAUNCH_FSDP))
        launch_set_count(l, LAUNCH_FSDP, 1);
    else if (!zero && !fsdp && strcmp(name, "multi_gpu") != 0 && strcmp(name, "single_gpu") != 0)
        launch_remark_on_field(l, REMARK_KNOWN_IN_RUN_ONLY, LAUNCH_ACCELERATE_CONFIG,
                               "this file is not here: give it with --from");
}

/* For the subcommands of trl that train on pairs of answers (dpo and others), sets LAUNCH_PAIRS and adds a remark. For
 * those that generate answers (grpo, rloo), adds a remark. */
static void set_fields_of_subcommand(struct launch *l)
{
    static const char *const pairs[] = {"dpo", "orpo", "cpo", "reward"};
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
        if (launch_field_text_is(l, LAUNCH_SUBCOMMAND, pairs[i])) {
            launch_set_count(l, LAUNCH_PAIRS, 1);
            launch_remark_on_field(
                l, REMARK_UNMODELLED, LAUNCH_SUBCOMMAND,
                "a sample is two sequences, which is predicted; a reference model's "
                "forward, about a third of a step, and its weights, 2 bytes a "
                "parameter{2P} over the ranks that share them, are not");
        }
    if (launch_field_text_is(l, LAUNCH_SUBCOMMAND, "grpo") ||
        launch_field_text_is(l, LAUNCH_SUBCOMMAND, "rloo"))
        launch_remark_on_field(
            l, REMARK_UNMODELLED, LAUNCH_SUBCOMMAND,
            "answers are generated before each update: only the policy's update is "
            "predicted");
}

enum status launch_add_trainer_options(struct launch *l, struct launch_known_facts given,
                                       struct diag *diag)
{
    struct launch_degrees d = {.tp = launch_count_or(l, LAUNCH_TP, 1),
                               .pp = 1,
                               .cp = launch_count_or(l, LAUNCH_CP, 1),
                               .hp = launch_count_or(l, LAUNCH_SP, 1)};
    set_fields_of_accelerate_config(l);
    set_fields_of_subcommand(l);
    enum status status = launch_add_named_model(l, given);
    if (status == STATUS_OK)
        status = check_sharding(l, diag);
    if (status == STATUS_OK)
        status = launch_check_text_is_one_of(l, LAUNCH_OPTIMIZER_DEVICE, "none cpu nvme", diag);
    if (status == STATUS_OK)
        status = launch_check_text_is_one_of(
            l, LAUNCH_LOADED_DTYPE, "auto bfloat16 float16 float32 bf16 fp16 fp32 half float",
            diag);
    if (status == STATUS_OK)
        status = launch_check_text_is_one_of(l, LAUNCH_ROTATE, "allgather alltoall all-to-all p2p",
                                             diag);
    if (status == STATUS_OK)
        status = launch_check_text_is_one_of(l, LAUNCH_DTYPE, "no fp32 fp16 bf16 fp8", diag);
    if (status == STATUS_OK)
        status = megatron_check_degrees(l, given, &d, diag);
    if (status != STATUS_OK)
        return status;
    launch_add_degree_options(l, d);
    add_profile_option(l, &d);
    if (is_zero_requested(l))
        launch_add_remark_printf(
            l, REMARK_UNMODELLED, "DeepSpeed under Trainer", (struct loc){0},
            "profile hf is Accelerate with FSDP2: its layers with DeepSpeed's sharing of "
            "weights, but not DeepSpeed's buckets and waits: a few percent of a step, and more "
            "with the optimizer on the host");
    if (launch_has_field(l, LAUNCH_FSDP_VERSION) && launch_count_or(l, LAUNCH_FSDP_VERSION, 2) == 1)
        launch_remark_on_field(l, REMARK_UNMODELLED, LAUNCH_FSDP_VERSION,
                               "FSDP2 is predicted: FSDP1 copies gradients in two passes more");
    if (d.cp > 1)
        launch_add_option(l, LAUNCH_ROTATE, "rotate",
                          launch_field_text_is(l, LAUNCH_ROTATE, "alltoall") ||
                                  launch_field_text_is(l, LAUNCH_ROTATE, "all-to-all")
                              ? "all-to-all"
                          : launch_field_text_is(l, LAUNCH_ROTATE, "p2p") ? "p2p"
                                                                          : "all-gather");
    /* the tensor plans of Transformers (base_model_tp_plan) cut products by columns and rows, and the head as
     * colwise_rep; every tensor rank has all tokens */
    if (d.tp > 1)
        launch_add_option(l, LAUNCH_TP, "tensor-plan", "replicated");
    if (has_sharding_word(l, "offload"))
        launch_remark_on_field(l, REMARK_UNMODELLED, LAUNCH_SHARDING, "%s", on_host);
    if (has_fsdp(l) && launch_has_field(l, LAUNCH_SHARDING) && !has_sharding_word(l, "auto_wrap") &&
        strcmp(l->field_value[LAUNCH_SHARDING].setting_name, "fsdp") == 0)
        launch_remark_on_field(l, REMARK_UNMODELLED, LAUNCH_SHARDING, "without auto_wrap, %s",
                               wrapping);
    if (!l->has_read_framework_file[LAUNCH_ACCELERATE] && !is_zero_requested(l) && !has_fsdp(l))
        launch_add_remark_printf(
            l, REMARK_ASSUMED, "--weights replicated", (struct loc){0},
            "no file says how weights are shared: give Accelerate's, or DeepSpeed's, with "
            "--from");
    status = add_weight_options(l, given, &d, diag);
    if (status != STATUS_OK)
        return status;
    add_state_options(l, &d);
    add_batch_options(l, given, &d);
    add_recompute_options(l);
    add_dtype_and_kernel_options(l);
    add_loss_option(l, &d);
    launch_remark_unread_config(l);
    return STATUS_OK;
}

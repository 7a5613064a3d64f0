/* Reads settings of Hugging Face: Accelerate's configuration (accelerate/commands/config), and the settings of TRL and
 * of Trainer (transformers/training_args.py, trl/trainer/sft_config.py), in YAML or as arguments. */
#include "base/c_locale.h"
#include "predict/launch/launch_tables.h"
#include "predict/launch/megatron_model.h"

#include <string.h>

#define SETS LAUNCH_SETS
#define ALSO LAUNCH_ALSO_SETS
#define IGNORED LAUNCH_IGNORED, LAUNCH_TEXT, LAUNCH_FIELDS, NULL, NULL
#define UNMODELLED LAUNCH_UNMODELLED, LAUNCH_TEXT, LAUNCH_FIELDS

static const char adapters[] = "adapters: all weights are trained here, with gradients and states "
                               "of all (16 bytes a parameter); "
                               "not alike";
static const char on_host[] =
    "parameters on the host: they stay on the device here, which needs more "
    "memory; gathers from the host take PCIe's time";

/* clang-format off */
static const struct launch_row accelerate_rows[] = {
    {"distributed_type",                        ALSO, LAUNCH_TEXT,   LAUNCH_DISTRIBUTED, NULL, NULL},
    {"num_processes",                           ALSO, LAUNCH_COUNT,  LAUNCH_PROCESSES, NULL, NULL},
    {"num_machines",                            ALSO, LAUNCH_COUNT,  LAUNCH_NODES, NULL, NULL},
    {"mixed_precision",                         ALSO, LAUNCH_TEXT,   LAUNCH_DTYPE, NULL, NULL},
    {"fsdp_config.fsdp_version",                ALSO, LAUNCH_COUNT,  LAUNCH_FSDP_VERSION, NULL, NULL},
    {"fsdp_config.fsdp_sharding_strategy",      ALSO, LAUNCH_TEXT,   LAUNCH_SHARDING, NULL, NULL},
    {"fsdp_config.fsdp_reshard_after_forward",  ALSO, LAUNCH_TEXT,   LAUNCH_RESHARD, NULL, NULL},
    {"fsdp_config.fsdp_activation_checkpointing", ALSO, LAUNCH_SWITCH, LAUNCH_DEEPSPEED_CHECKPOINTS, NULL, NULL},
    {"parallelism_config.parallelism_config_dp_replicate_size", ALSO, LAUNCH_COUNT, LAUNCH_DP_REPLICATE, NULL, NULL},
    {"parallelism_config.parallelism_config_dp_shard_size",     ALSO, LAUNCH_COUNT, LAUNCH_DP_SHARD, NULL, NULL},
    {"parallelism_config.parallelism_config_tp_size",           ALSO, LAUNCH_COUNT, LAUNCH_TP, NULL, NULL},
    {"parallelism_config.parallelism_config_cp_size",           ALSO, LAUNCH_COUNT, LAUNCH_CP, NULL, NULL},
    {"parallelism_config.parallelism_config_sp_size",           ALSO, LAUNCH_COUNT, LAUNCH_SP, NULL, NULL},
    {"parallelism_config.parallelism_config_cp_comm_strategy",  ALSO, LAUNCH_TEXT,  LAUNCH_ROTATE, NULL, NULL},
    {"parallelism_config.parallelism_config_cp_rotate_method",  ALSO, LAUNCH_TEXT,  LAUNCH_ROTATE, NULL, NULL},
    {"deepspeed_config.zero_stage",             ALSO, LAUNCH_COUNT,  LAUNCH_ZERO, NULL, NULL},
    {"deepspeed_config.offload_optimizer_device", ALSO, LAUNCH_TEXT, LAUNCH_OPTIMIZER_DEVICE, NULL, NULL},
    {"deepspeed_config.gradient_accumulation_steps", ALSO, LAUNCH_COUNT, LAUNCH_ACCUMULATION, NULL, NULL},
    {"gradient_accumulation_steps",             ALSO, LAUNCH_COUNT,  LAUNCH_ACCUMULATION, NULL, NULL},
    {"deepspeed_config.deepspeed_config_file",  ALSO, LAUNCH_TEXT,   LAUNCH_DEEPSPEED_CONFIG, NULL, NULL},

    {"fsdp_config.fsdp_offload_params",         UNMODELLED, on_host, NULL},
    {"deepspeed_config.offload_param_device",   UNMODELLED, on_host, NULL},
    {"deepspeed_config.deepspeed_moe_layer_cls_names", UNMODELLED, "experts: a dense model is predicted", NULL},
    {"dynamo_*",                                UNMODELLED, "torch.compile: --compile says that chains of kernels are one", NULL},
    {"megatron_lm_config.*",                    UNMODELLED, "Megatron-LM within Accelerate: give its arguments instead", NULL},
    {"fp8_config.*",                            UNMODELLED, "matrix products in 8 bits: bf16 is predicted, whose products take up to twice as long", NULL},
    {"parallelism_config.parallelism_config_*", IGNORED}, {"fsdp_config.fsdp_auto_wrap_policy", IGNORED},
    {"fsdp_config.*", IGNORED}, {"deepspeed_config.*", IGNORED}, {"compute_environment", IGNORED}, {"debug", IGNORED},
    {"downcast_bf16", IGNORED}, {"machine_rank", IGNORED}, {"main_*", IGNORED}, {"rdzv_*", IGNORED}, {"same_network", IGNORED},
    {"tpu_*", IGNORED}, {"use_cpu", IGNORED}, {"gpu_ids", IGNORED}, {"enable_cpu_affinity", IGNORED}, {"mpirun_config.*", IGNORED},
    {"commands", IGNORED}, {"command_file", IGNORED}, {"ipex_config.*", IGNORED}, {"deepspeed_hostfile", IGNORED},
};

static const struct launch_row trainer_rows[] = {
    {"model_name_or_path",           ALSO, LAUNCH_TEXT,   LAUNCH_MODEL, NULL, NULL},
    {"max_length",                   ALSO, LAUNCH_COUNT,  LAUNCH_SEQ, NULL, NULL},
    {"max_seq_length",               ALSO, LAUNCH_COUNT,  LAUNCH_SEQ, NULL, NULL},
    {"model_max_length",             ALSO, LAUNCH_COUNT,  LAUNCH_SEQ, NULL, NULL},
    {"block_size",                   ALSO, LAUNCH_COUNT,  LAUNCH_SEQ, NULL, NULL},
    {"per_device_train_batch_size",  ALSO, LAUNCH_COUNT,  LAUNCH_MICRO_BATCH, NULL, NULL},
    {"gradient_accumulation_steps",  ALSO, LAUNCH_COUNT,  LAUNCH_ACCUMULATION, NULL, NULL},
    {"gradient_checkpointing",       ALSO, LAUNCH_SWITCH, LAUNCH_CHECKPOINTS, NULL, NULL},
    {"packing",                      ALSO, LAUNCH_SWITCH, LAUNCH_PACKING, NULL, NULL},
    {"bf16",                         ALSO, LAUNCH_SWITCH, LAUNCH_BF16, NULL, NULL},
    {"fp16",                         ALSO, LAUNCH_SWITCH, LAUNCH_FP16, NULL, NULL},
    {"attn_implementation",          ALSO, LAUNCH_TEXT,   LAUNCH_ATTENTION, NULL, NULL},
    {"torch_compile",                ALSO, LAUNCH_SWITCH, LAUNCH_COMPILE, NULL, NULL},
    {"deepspeed",                    ALSO, LAUNCH_TEXT,   LAUNCH_DEEPSPEED_CONFIG, NULL, NULL},
    {"fsdp",                         ALSO, LAUNCH_TEXT,   LAUNCH_SHARDING, NULL, NULL},
    {"optim",                        ALSO, LAUNCH_TEXT,   LAUNCH_OPTIMIZER, NULL, NULL},
    {"torch_dtype",                  ALSO, LAUNCH_TEXT,   LAUNCH_LOADED_DTYPE, NULL, NULL},
    {"dtype",                        ALSO, LAUNCH_TEXT,   LAUNCH_LOADED_DTYPE, NULL, NULL},

    {"use_liger_kernel",             UNMODELLED, "fused norms, rotations and loss: chains of kernels are predicted, and fp32 logits (14 bytes a logit more)", NULL},
    {"use_liger",                    UNMODELLED, "fused norms, rotations and loss: chains of kernels are predicted, and fp32 logits (14 bytes a logit more)", NULL},
    {"use_peft",                     UNMODELLED, adapters, NULL}, {"lora_r", UNMODELLED, adapters, NULL}, {"lora_*", UNMODELLED, adapters, NULL},
    {"load_in_4bit",                 UNMODELLED, "weights in 4 bits: bf16 is predicted", NULL},
    {"load_in_8bit",                 UNMODELLED, "weights in 8 bits: bf16 is predicted", NULL},
    {"padding_free",                 UNMODELLED, "sequences of one batch in a row: each has the whole length here", NULL},
    {"activation_offloading",        UNMODELLED, "activations on the host: they stay on the device here, which needs more memory", NULL},
    {"group_by_length",              UNMODELLED, "batches of short sequences: each has the whole length here", NULL},
    {"neftune_noise_alpha",          IGNORED},
    {"use_vllm",                     UNMODELLED, "generation between steps: only the training step is predicted", NULL},
    {"ref_model*",                   UNMODELLED, "a reference model's forward: it is not predicted, about a third of a step more", NULL},
    {"beta",                         UNMODELLED, "preference training: two sequences a sample, and for DPO a reference model's forward", NULL},
    {"loss_type",                    UNMODELLED, "preference training: two sequences a sample, and for DPO a reference model's forward", NULL},
    {"router_aux_loss_coef",         UNMODELLED, "experts: a dense model is predicted", NULL},
    {"dataset*", IGNORED}, {"data_*", IGNORED}, {"dataloader_*", IGNORED}, {"chat_template*", IGNORED}, {"model_revision", IGNORED},
    {"trust_remote_code", IGNORED}, {"tokenizer_*", IGNORED}, {"eos_token", IGNORED}, {"pad_token", IGNORED},
    {"learning_rate", IGNORED}, {"lr_*", IGNORED}, {"warmup_*", IGNORED}, {"weight_decay", IGNORED}, {"adam_*", IGNORED}, {"max_grad_norm", IGNORED},
    {"num_train_epochs", IGNORED}, {"max_steps", IGNORED}, {"seed", IGNORED}, {"data_seed", IGNORED}, {"do_*", IGNORED}, {"eval_*", IGNORED},
    {"evaluation_strategy", IGNORED}, {"per_device_eval_batch_size", IGNORED}, {"log_*", IGNORED}, {"logging_*", IGNORED}, {"report_to", IGNORED},
    {"save_*", IGNORED}, {"output_dir", IGNORED}, {"overwrite_output_dir", IGNORED}, {"push_to_hub*", IGNORED}, {"hub_*", IGNORED}, {"run_name", IGNORED},
    {"remove_unused_columns", IGNORED}, {"gradient_checkpointing_kwargs*", IGNORED}, {"ddp_*", IGNORED}, {"disable_tqdm", IGNORED}, {"preprocessing_*", IGNORED},
    {"average_tokens_across_devices", IGNORED}, {"assistant_only_loss", IGNORED}, {"completion_only_loss", IGNORED}, {"packing_strategy", IGNORED}, {"use_cache", IGNORED},
    {"resume_from_checkpoint", IGNORED}, {"include_*", IGNORED}, {"load_best_model_at_end", IGNORED}, {"metric_for_best_model", IGNORED}, {"tf32", IGNORED},
    {"system_prompt", IGNORED}, {"benchmarks", IGNORED}, {"callbacks", IGNORED}, {"wandb_*", IGNORED}, {"max_prompt_length", IGNORED}, {"fsdp_config*", IGNORED},
    {"local_rank", IGNORED}, {"config", IGNORED}, {"deepspeed_*", IGNORED}, {"truncation_mode", IGNORED}, {"max_completion_length", IGNORED},
};
/* clang-format on */
const struct launch_table launch_accelerate_table = {accelerate_rows, ARRAY_LEN(accelerate_rows)};
const struct launch_table launch_trainer_table = {trainer_rows, ARRAY_LEN(trainer_rows)};

static bool says_zero(const struct launch *l)
{
    return launch_said(l, LAUNCH_ZERO) || launch_is(l, LAUNCH_DISTRIBUTED, "DEEPSPEED") ||
           l->has[LAUNCH_DEEPSPEED_JSON];
}

/* True if a file gives this sharding by its name in Accelerate, or by the number that older files have. */
static bool shards_as(const struct launch *l, const char *name, const char *number)
{
    return launch_is(l, LAUNCH_SHARDING, name) || launch_is(l, LAUNCH_SHARDING, number) ||
           launch_is(l, LAUNCH_RESHARD, name) ||
           (launch_said(l, LAUNCH_SHARDING) &&
            c_same_letters_n(launch_text(l, LAUNCH_SHARDING), name, strlen(name)));
}

/* Returns how ranks share weights; *copies: how many groups of ranks each hold all shards. -1: not known. */
static int weights_of(const struct launch *l, int64_t *copies)
{
    bool fsdp = launch_is(l, LAUNCH_DISTRIBUTED, "FSDP") || launch_said(l, LAUNCH_SHARDING) ||
                launch_count(l, LAUNCH_DP_SHARD, 1) > 1;
    *copies = launch_count(l, LAUNCH_DP_REPLICATE, 1);
    if (says_zero(l)) {
        int64_t stage = launch_count(l, LAUNCH_ZERO, 2);
        return stage < 0 || stage > 3 ? -1 : CHOICE_WEIGHTS_REPLICATED + (int)stage;
    }
    if (!fsdp || shards_as(l, "NO_SHARD", "3"))
        return CHOICE_WEIGHTS_REPLICATED;
    if (shards_as(l, "HYBRID_SHARD", "4"))
        return CHOICE_WEIGHTS_HSDP;
    if (*copies > 1)
        return CHOICE_WEIGHTS_HSDP;
    if (shards_as(l, "SHARD_GRAD_OP", "2") || launch_is(l, LAUNCH_RESHARD, "false"))
        return CHOICE_WEIGHTS_ZERO2;
    return CHOICE_WEIGHTS_ZERO3;
}

/* True if every GPU has all weights, without FSDP or DeepSpeed, and trains in mixed precision. */
static bool is_ddp(const struct launch *l, const struct launch_degrees *d)
{
    int64_t copies;
    bool fsdp = launch_is(l, LAUNCH_DISTRIBUTED, "FSDP") || launch_said(l, LAUNCH_SHARDING);
    bool full = launch_is(l, LAUNCH_DTYPE, "no") || launch_is(l, LAUNCH_DTYPE, "fp32") ||
                (launch_is(l, LAUNCH_BF16, "false") && !launch_on(l, LAUNCH_FP16));
    return weights_of(l, &copies) == CHOICE_WEIGHTS_REPLICATED && !says_zero(l) && !fsdp && !full &&
           d->cp * d->hp * d->tp == 1;
}

/* True if parameters stay in the 16 bits in which they are read: FSDP and DeepSpeed make them fp32, DDP does not, and
 * autocast then casts nothing. "auto" is the type of the checkpoint, which for most models is bf16. */
static bool stays_narrow(const struct launch *l, const struct launch_degrees *d)
{
    return is_ddp(l, d) && (launch_is(l, LAUNCH_LOADED_DTYPE, "bfloat16") ||
                            launch_is(l, LAUNCH_LOADED_DTYPE, "auto"));
}

/* Adds the profile: autocast over fp32 parameters, or what computes in 16 bits throughout. */
static void profile_option(struct launch *l, const struct launch_degrees *d)
{
    bool autocast = is_ddp(l, d) && !stays_narrow(l, d);
    launch_option(l, LAUNCH_FIELDS, "profile", autocast ? "hf-ddp" : "hf");
}

static enum status weight_options(struct launch *l, struct launch_given given,
                                  const struct launch_degrees *d, struct diag *diag)
{
    int64_t copies, sharing = given.gpus / d->tp;
    int weights = weights_of(l, &copies);
    if (weights < 0)
        return launch_bad(l, LAUNCH_ZERO, diag, "a stage of ZeRO is 0 to 3");
    bool copied = weights == CHOICE_WEIGHTS_HSDP && copies > 1;
    if (copied && (sharing < copies || sharing % copies != 0))
        return launch_bad(l, LAUNCH_DP_REPLICATE, diag,
                          "%lld copies do not divide %lld ranks that hold the same weights",
                          (long long)copies, (long long)sharing);
    launch_option(l, launch_said(l, LAUNCH_ZERO) ? LAUNCH_ZERO : LAUNCH_SHARDING, "weights",
                  weights_names[weights]);
    if (copied)
        launch_option_count(l, LAUNCH_DP_REPLICATE, "shard", sharing / copies);
    if (says_zero(l) && (launch_is(l, LAUNCH_OPTIMIZER_DEVICE, "cpu") ||
                         launch_is(l, LAUNCH_OPTIMIZER_DEVICE, "nvme")))
        launch_option(l, LAUNCH_OPTIMIZER_DEVICE, "optimizer", "host");
    return STATUS_OK;
}

/* Adds the option for the states of Trainer's optimizer, or a remark on another optimizer than AdamW. */
static void state_options(struct launch *l, const struct launch_degrees *d)
{
    const char *name =
        launch_said(l, LAUNCH_OPTIMIZER) ? launch_text(l, LAUNCH_OPTIMIZER) : "adamw_torch";
    if (strstr(name, "8bit") != NULL)
        launch_option(l, LAUNCH_OPTIMIZER, "states", "8bit");
    else if (stays_narrow(l, d))
        launch_option(l, LAUNCH_LOADED_DTYPE, "states", "bf16");
    else if (strncmp(name, "adamw", 5) != 0)
        launch_remark_on(l, REMARK_UNMODELLED, LAUNCH_OPTIMIZER,
                         "AdamW is predicted: another optimizer has other states, up to 8 bytes a "
                         "parameter");
}

static void batch_options(struct launch *l, struct launch_given given,
                          const struct launch_degrees *d)
{
    int64_t ranks = d->tp * d->cp * d->hp;
    int64_t micro = launch_count(l, LAUNCH_MICRO_BATCH, 8);
    int64_t accumulation = launch_count(l, LAUNCH_ACCUMULATION, 1);
    bool sane = micro > 0 && micro < 1 << 20 && accumulation > 0 && accumulation < 1 << 20;
    if (launch_said(l, LAUNCH_SEQ))
        launch_option_count(l, LAUNCH_SEQ, "seq", launch_count(l, LAUNCH_SEQ, 0));
    if (!l->has[LAUNCH_TRAINER] && !launch_said(l, LAUNCH_MICRO_BATCH))
        return; /* Accelerate's file has no batch */
    if (!launch_said(l, LAUNCH_MICRO_BATCH))
        launch_remark(l, REMARK_ASSUMED, "--micro-batch 8", (struct loc){0},
                      "per_device_train_batch_size is not given, and 8 by default");
    if (given.gpus >= ranks && sane)
        launch_option_count(l, LAUNCH_ACCUMULATION, "batch",
                            micro * accumulation * (given.gpus / ranks));
    if (micro > 1)
        launch_option_count(l, LAUNCH_MICRO_BATCH, "micro-batch", micro);
    if (!launch_on(l, LAUNCH_PACKING))
        launch_remark(l, REMARK_UNMODELLED, "no packing", (struct loc){0},
                      "samples shorter than the longest: every sequence has its whole length here, "
                      "which is a step of more tokens");
}

static void number_options(struct launch *l)
{
    bool f16 = launch_on(l, LAUNCH_FP16) || launch_is(l, LAUNCH_DTYPE, "fp16");
    bool bf16 = launch_on(l, LAUNCH_BF16) || launch_is(l, LAUNCH_DTYPE, "bf16") ||
                launch_is(l, LAUNCH_DTYPE, "fp8");
    bool said =
        launch_said(l, LAUNCH_BF16) || launch_said(l, LAUNCH_FP16) || launch_said(l, LAUNCH_DTYPE);
    if (said)
        launch_option(l, launch_said(l, LAUNCH_BF16) ? LAUNCH_BF16 : LAUNCH_DTYPE, "dtype",
                      f16    ? "f16"
                      : bf16 ? "bf16"
                             : "f32");
    if (launch_is(l, LAUNCH_ATTENTION, "flash_attention_2") ||
        launch_is(l, LAUNCH_ATTENTION, "kernels-community/flash-attn"))
        launch_option(l, LAUNCH_ATTENTION, "attention", "fa2");
    else if (launch_is(l, LAUNCH_ATTENTION, "flash_attention_3") ||
             launch_is(l, LAUNCH_ATTENTION, "kernels-community/vllm-flash-attn3"))
        launch_option(l, LAUNCH_ATTENTION, "attention", "fa3");
    else if (launch_said(l, LAUNCH_ATTENTION) && !launch_is(l, LAUNCH_ATTENTION, "sdpa"))
        launch_remark_on(l, REMARK_UNMODELLED, LAUNCH_ATTENTION,
                         "sdpa's fused kernels are predicted: without them scores go to memory");
    if (launch_on(l, LAUNCH_COMPILE))
        launch_option(l, LAUNCH_COMPILE, "compile", NULL);
}

static void recompute_options(struct launch *l)
{
    bool said = launch_said(l, LAUNCH_CHECKPOINTS) || launch_said(l, LAUNCH_DEEPSPEED_CHECKPOINTS);
    bool full = launch_on(l, LAUNCH_CHECKPOINTS) || launch_on(l, LAUNCH_DEEPSPEED_CHECKPOINTS);
    if (l->has[LAUNCH_TRAINER] && !launch_said(l, LAUNCH_CHECKPOINTS) && !full) {
        full = true;
        launch_remark(l, REMARK_ASSUMED, "--activations full", (struct loc){0},
                      "gradient_checkpointing is not given: on in TRL, off in Trainer, where "
                      "--activations keep says so");
    }
    if (said || l->has[LAUNCH_TRAINER])
        launch_option(l, LAUNCH_CHECKPOINTS, "activations", full ? "full" : "keep");
}

/* Adds a remark on a file that another file names. */
static void remark_config(struct launch *l)
{
    const char *path =
        launch_said(l, LAUNCH_DEEPSPEED_CONFIG) ? launch_text(l, LAUNCH_DEEPSPEED_CONFIG) : "";
    if (path[0] != '\0' && !l->has[LAUNCH_DEEPSPEED_JSON])
        launch_remark_on(l, REMARK_OPEN, LAUNCH_DEEPSPEED_CONFIG,
                         "this file is not read by itself: give it with --from");
}

enum status launch_trainer_options(struct launch *l, struct launch_given given, struct diag *diag)
{
    struct launch_degrees d = {.tp = launch_count(l, LAUNCH_TP, 1),
                               .pp = 1,
                               .cp = launch_count(l, LAUNCH_CP, 1),
                               .hp = launch_count(l, LAUNCH_SP, 1)};
    enum status status = launch_model_named(l, given);
    if (status == STATUS_OK)
        status = megatron_check_degrees(l, given, &d, diag);
    if (status != STATUS_OK)
        return status;
    launch_degree_options(l, d);
    profile_option(l, &d);
    if (says_zero(l))
        launch_remark(l, REMARK_UNMODELLED, "DeepSpeed under Trainer", (struct loc){0},
                      "profile hf is Accelerate with FSDP2: its layers with DeepSpeed's sharing of "
                      "weights, but not DeepSpeed's buckets and waits: a few percent of a step");
    if (launch_said(l, LAUNCH_FSDP_VERSION) && launch_count(l, LAUNCH_FSDP_VERSION, 2) == 1)
        launch_remark_on(l, REMARK_UNMODELLED, LAUNCH_FSDP_VERSION,
                         "FSDP2 is predicted: FSDP1 copies gradients in two passes more");
    if (d.cp > 1)
        launch_option(l, LAUNCH_ROTATE, "rotate",
                      launch_is(l, LAUNCH_ROTATE, "alltoall") ? "all-to-all" : "all-gather");
    if (!l->has[LAUNCH_ACCELERATE] && !says_zero(l) && !launch_said(l, LAUNCH_SHARDING))
        launch_remark(
            l, REMARK_ASSUMED, "--weights replicated", (struct loc){0},
            "no file says how weights are shared: give Accelerate's, or DeepSpeed's, with "
            "--from");
    status = weight_options(l, given, &d, diag);
    if (status != STATUS_OK)
        return status;
    state_options(l, &d);
    batch_options(l, given, &d);
    recompute_options(l);
    number_options(l);
    remark_config(l);
    return STATUS_OK;
}

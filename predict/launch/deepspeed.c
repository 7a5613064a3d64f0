/* Translates DeepSpeed's JSON configuration (deepspeed/runtime/config.py, deepspeed/runtime/zero/config.py) and the
 * arguments of Megatron-DeepSpeed (megatron/arguments.py). */
#include "predict/launch/launch_tables.h"
#include "predict/launch/megatron_model.h"

#include <string.h>

/* The settings of the JSON configuration. */
/* clang-format off */
static const struct launch_row json_rows[] = {
    {"train_batch_size",                   SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_GLOBAL_BATCH, NULL, NULL},
    {"train_micro_batch_size_per_gpu",     SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_MICRO_BATCH, NULL, NULL},
    {"gradient_accumulation_steps",        SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_ACCUMULATION, NULL, NULL},
    {"bf16.enabled",                       SETS, LAUNCH_SWITCH, LAUNCH_BF16, NULL, NULL},
    {"bfloat16.enabled",                   SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_BF16, NULL, NULL},
    {"fp16.enabled",                       SETS, LAUNCH_SWITCH, LAUNCH_FP16, NULL, NULL},
    {"zero_optimization.stage",            SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_ZERO, NULL, NULL},
    {"zero_optimization.mics_shard_size",  SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_SHARD_RANKS, NULL, NULL},
    {"zero_optimization.offload_optimizer.device",     SETS, LAUNCH_TEXT,   LAUNCH_OPTIMIZER_DEVICE, NULL, NULL},
    {"zero_optimization.offload_optimizer.pin_memory", SETS, LAUNCH_SWITCH, LAUNCH_PINNED, NULL, NULL},
    {"zero_optimization.cpu_offload",      SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_OPTIMIZER_OFFLOAD, NULL, NULL},
    {"activation_checkpointing.cpu_checkpointing", SETS, LAUNCH_SWITCH, LAUNCH_CHECKPOINTS_HOST, NULL, NULL},
    {"sequence_parallel_size",             SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_SP, NULL, NULL},
    {"tensor_parallel.autotp_size",        SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_TP, NULL, NULL},

    {"zero_optimization.offload_param.device", UNMODELLED, "parameters on the host: they stay on the device here, which needs more memory; --parameters host --optimizer host keeps them there", NULL},
    {"zero_optimization.offload_optimizer.ratio", UNMODELLED, "all optimizer states go to the host here", NULL},
    {"zero_optimization.zero_hpz_partition_size", UNMODELLED, "a second copy of parameters in each node (ZeRO++): gathers cross nodes here", NULL},
    {"zero_optimization.zero_quantized_*", UNMODELLED, "collectives in 8 or 4 bits (ZeRO++): 16 bits here, two to four times the bytes", NULL},
    {"zero_optimization.mics_hierarchical_params_gather", UNMODELLED, "the order of gathers: one level here", NULL},
    {"zero_optimization.overlap_comm",     UNMODELLED, "gradients are reduced beside the backward here: without overlap, a step takes as much longer as the reductions take", "true"},
    {"zero_optimization.contiguous_gradients", UNMODELLED, "gradients lie in one buffer here: the allocator keeps more memory without it", "true"},
    {"zero_optimization.reduce_scatter",   UNMODELLED, "reduce-scatters are predicted: all-reduces move twice the bytes", "true"},
    {"zero_optimization.allgather_partitions", UNMODELLED, "all-gathers are predicted: broadcasts take longer", "true"},
    {"zero_optimization.use_multi_rank_bucket_allreduce", UNMODELLED, "how ZeRO-2 reduces a bucket: at once for all ranks here", "true"},
    {"zero_optimization.round_robin_gradients", UNMODELLED, "the order in which gradients go to the host", "false"},
    {"zero_optimization.sub_group_size",   UNMODELLED, "pieces of the optimizer's step: DeepSpeed's default, 10^9, is predicted", "1000000000 1e9 1e+09"},
    {"zero_optimization.memory_efficient_linear", UNMODELLED, "linear layers that keep no gathered weights: predicted so", "true"},
    {"zero_optimization.offload_optimizer.super_offload", UNMODELLED, "states on the host with another order of copies (SuperOffload)", "false"},
    {"zero_optimization.elastic_checkpoint", IGNORED}, {"zero_optimization.load_from_fp32_weights", IGNORED},
    {"zero_optimization.ignore_unused_parameters", IGNORED}, {"zero_optimization.log_trace_cache_warnings", IGNORED},
    {"zero_optimization.stage3_gather_16bit_weights_on_model_save", IGNORED}, {"zero_optimization.stage3_gather_fp16_weights_on_model_save", IGNORED},
    {"zero_optimization.gather_16bit_weights_on_model_save", IGNORED}, {"zero_optimization.pipeline_loading_checkpoint", IGNORED},
    {"zero_optimization.offload_optimizer.nvme_path", IGNORED}, {"zero_optimization.offload_optimizer.buffer_*", IGNORED},
    {"zero_optimization.offload_optimizer.pipeline_*", IGNORED}, {"zero_optimization.offload_optimizer.fast_init", IGNORED},
    {"zero_optimization.offload_param.nvme_path", IGNORED}, {"zero_optimization.offload_param.buffer_*", IGNORED},
    {"zero_optimization.offload_param.max_in_cpu", IGNORED}, {"zero_optimization.offload_param.pin_memory", IGNORED},
    {"zero_optimization.*",                UNMODELLED, "sizes of buckets, of what is prefetched and of what stays gathered: DeepSpeed's defaults are predicted", "500000000 5e8 5e+08 50000000 5e7 5e+07 100000 1e5 1000000000 1e9 1e+09 false 0"},
    {"activation_checkpointing.partition_activations", UNMODELLED, "checkpoints over tensor ranks: they are, here, where ranks share tokens", NULL},
    {"activation_checkpointing.contiguous_memory_optimization", UNMODELLED, "checkpoints lie in one buffer: the allocator keeps less memory", NULL},
    {"activation_checkpointing.synchronize_checkpoint_boundary", UNMODELLED, "the host waits for the device at each checkpoint", NULL},
    {"activation_checkpointing.profile",   UNMODELLED, "timers that wait for the device", NULL},
    {"activation_checkpointing.number_checkpoints", IGNORED},
    {"communication_data_type",            UNMODELLED, "the type of reductions: fp32 where ranks share a sequence, else 16 bits", NULL},
    {"seq_parallel_communication_data_type", UNMODELLED, "the type of reductions: fp32 where ranks share a sequence, else 16 bits", NULL},
    {"prescale_gradients",                 IGNORED}, {"gradient_predivide_factor", IGNORED}, {"gradient_clipping", IGNORED},
    {"optimizer.params.torch_adam",        UNMODELLED, "PyTorch's AdamW: DeepSpeed's fused kernel is predicted", NULL},
    {"optimizer.legacy_fusion",            UNMODELLED, "another kernel of the optimizer", NULL},
    {"optimizer.type",                     UNMODELLED, "AdamW is predicted: another optimizer has other states, up to 8 bytes a parameter", "AdamW Adam"},
    {"optimizer.params.*",                 IGNORED}, {"scheduler.*", IGNORED}, {"zero_allow_untested_optimizer", IGNORED},
    {"fp16.loss_scale*",                   IGNORED}, {"fp16.initial_scale_power", IGNORED}, {"fp16.hysteresis", IGNORED},
    {"fp16.consecutive_hysteresis",        IGNORED}, {"fp16.min_loss_scale", IGNORED}, {"bf16.check_grad_overflow", IGNORED},
    {"bf16.loss_scale*",                   IGNORED}, {"bf16.initial_scale_power", IGNORED}, {"bf16.hysteresis", IGNORED}, {"bf16.min_loss_scale", IGNORED},
    {"fp16.auto_cast",                     UNMODELLED, "inputs are cast to fp16: a copy of them", NULL},
    {"fp16.fp16_master_weights_and_grads", UNMODELLED, "parameters and gradients of the optimizer are fp32 here", NULL},
    {"bf16.bf16_*",                        UNMODELLED, "parameters and states of the optimizer are fp32 here: --states bf16 says others", NULL},
    {"bf16.immediate_grad_update",         UNMODELLED, "gradients are added to the fp32 sum at once: a copy less", NULL},
    {"zero_force_ds_cpu_optimizer",        UNMODELLED, "an optimizer on the host is DeepSpeed's here: PyTorch's takes longer", "true"},
    {"data_types.grad_accum_dtype",        UNMODELLED, "gradients are summed in bf16 here", "bf16"},
    {"amp.*",                              UNMODELLED, "apex' mixed precision: bf16 is predicted", NULL},
    {"compression_training.*",             UNMODELLED, "compression of weights", NULL},
    {"quantize_training.*",                UNMODELLED, "compression of weights", NULL},
    {"sparse_attention.*",                 UNMODELLED, "sparse attention: full causal attention is predicted, which is more work", NULL},
    {"curriculum_learning.*",              UNMODELLED, "lengths that grow: the step of the whole length is predicted", NULL},
    {"data_efficiency.*",                  UNMODELLED, "lengths and layers that vary: the whole step is predicted", NULL},
    {"progressive_layer_drop.*",           UNMODELLED, "layers that are left out: all are predicted", NULL},
    {"compile.deepcompile",                SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_COMPILE, NULL, NULL},
    {"compile.*",                          UNMODELLED, "a detail of DeepCompile, whose order of gathers and reductions is not predicted", NULL},
    {"moe.*",                              UNMODELLED, "experts: a dense model is predicted", NULL},
    {"hybrid_engine.*",                    UNMODELLED, "generation between steps: only the training step is predicted", NULL},
    {"zenflow.*",                          UNMODELLED, "another optimizer's schedule", NULL},
    {"wall_clock_breakdown",               UNMODELLED, "timers that wait for the device: steps are slower by what then no longer overlaps", NULL},
    {"comms_logger.enabled",               UNMODELLED, "collectives are timed one by one: steps are slower by what then no longer overlaps", NULL},
    {"elasticity.enabled",                 UNMODELLED, "the batch follows from the number of GPUs: give it as --batch", NULL},
    {"autotuning.enabled",                 UNMODELLED, "DeepSpeed searches for the settings: those of the file are predicted", NULL},
    {"disable_allgather",                  UNMODELLED, "all-gathers are predicted: broadcasts take longer", NULL},
    {"steps_per_print", IGNORED}, {"dump_state", IGNORED}, {"flops_profiler.*", IGNORED},
    {"tensorboard.*", IGNORED}, {"wandb.*", IGNORED}, {"csv_monitor.*", IGNORED}, {"comet.*", IGNORED}, {"comms_logger.*", IGNORED},
    {"elasticity.*", IGNORED}, {"checkpoint.*", IGNORED}, {"aio.*", IGNORED}, {"nebula.*", IGNORED}, {"autotuning.*", IGNORED},
    {"memory_breakdown", IGNORED}, {"train_steps", IGNORED}, {"seed", IGNORED}, {"_*", IGNORED},
};

/* The arguments of Megatron-DeepSpeed, apart from those of launch_megatron_shared_table; the columns are the same as
 * above. */
static const struct launch_row argument_rows[] = {
    {"--num-layers",                      SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_LAYERS, NULL, NULL},
    {"--hidden-size",                     SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_HIDDEN, NULL, NULL},
    {"--num-attention-heads",             SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_HEADS, NULL, NULL},
    {"--kv-channels",                     SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_HEAD_DIM, NULL, NULL},
    {"--ffn-hidden-size",                 SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_FFN, NULL, NULL},
    {"--swiglu",                          SETS, LAUNCH_SWITCH, LAUNCH_SWIGLU, NULL, NULL},
    {"--disable-bias-linear",             SETS, LAUNCH_SWITCH, LAUNCH_NO_BIAS, NULL, NULL},
    {"--untie-embeddings-and-output-weights", SETS, LAUNCH_SWITCH, LAUNCH_UNTIED, NULL, NULL},
    {"--num-key-value-heads",             SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_KV_HEADS, NULL, NULL},
    {"--normalization",                   SETS, LAUNCH_TEXT,   LAUNCH_NORM, NULL, NULL},
    {"--layernorm-epsilon",               SETS, LAUNCH_REAL_NUMBER, LAUNCH_NORM_EPS, NULL, NULL},
    {"--use-rotary-position-embeddings",  SETS, LAUNCH_SWITCH, LAUNCH_ROPE, NULL, NULL},
    {"--rotary-position-embeddings-theta", SETS, LAUNCH_WHOLE_NUMBER, LAUNCH_ROPE_THETA, NULL, NULL},
    {"--vocab-size",                      SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_VOCAB, NULL, NULL},
    {"--tokenizer-type",                  SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_TOKENIZER, NULL, NULL},
    {"--merge-file",                      SETS_AS_ALIAS, LAUNCH_ON_IF_GIVEN,  LAUNCH_MERGES, NULL, NULL},
    {"--seq-length",                      SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_SEQ, NULL, NULL},
    {"--max-position-embeddings",         SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_POSITIONS_MAX, NULL, NULL},
    {"--deepspeed",                       SETS, LAUNCH_SWITCH, LAUNCH_DEEPSPEED, NULL, NULL},
    {"--deepspeed_config",                SETS, LAUNCH_TEXT,   LAUNCH_DEEPSPEED_CONFIG, NULL, NULL},
    {"--zero-stage",                      SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_ZERO, NULL, NULL},
    {"--no-pipeline-parallel",            SETS, LAUNCH_SWITCH, LAUNCH_NO_PIPELINE, NULL, NULL},
    {"--micro-batch-size",                SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_MICRO_BATCH, NULL, NULL},
    {"--global-batch-size",               SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_GLOBAL_BATCH, NULL, NULL},
    {"--ds-sequence-parallel-fpdt",       SETS, LAUNCH_SWITCH, LAUNCH_CHUNKED, NULL, NULL},
    {"--ds-sequence-parallel-fpdt-chunk-size", SETS, LAUNCH_WHOLE_NUMBER, LAUNCH_CHUNK, NULL, NULL},
    {"--ds-sequence-parallel-fpdt-offloading", SETS, LAUNCH_SWITCH, LAUNCH_CHUNKS_HOST, NULL, NULL},
    {"--ds-sequence-parallel-size",       SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_SP, NULL, NULL},
    {"--tensor-model-parallel-size",      SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_TP, NULL, NULL},
    {"--sequence-parallel",               SETS, LAUNCH_SWITCH, LAUNCH_TOKENS_SPLIT, NULL, NULL},
    {"--pipeline-model-parallel-size",    SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_PP, NULL, NULL},
    {"--attention-dropout",               SETS, LAUNCH_REAL_NUMBER, LAUNCH_DROPOUT, NULL, NULL},
    {"--hidden-dropout",                  SETS, LAUNCH_REAL_NUMBER, LAUNCH_HIDDEN_DROPOUT, NULL, NULL},
    {"--deepspeed-activation-checkpointing", SETS, LAUNCH_SWITCH, LAUNCH_DEEPSPEED_CHECKPOINTS, NULL, NULL},
    {"--checkpoint-activations",          SETS, LAUNCH_SWITCH, LAUNCH_CHECKPOINTS, NULL, NULL},
    {"--checkpoint-in-cpu",               SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_CHECKPOINTS_HOST, NULL, NULL},
    {"--recompute-granularity",           SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_GRANULARITY, NULL, NULL},
    {"--recompute-method",                SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_METHOD, NULL, NULL},
    {"--recompute-num-layers",            SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_RECOMPUTED_LAYERS, NULL, NULL},
    {"--recompute-activations",           SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_SELECTIVE, NULL, NULL},
    {"--use-flash-attn-v2",               SETS, LAUNCH_SWITCH, LAUNCH_FLASH, NULL, NULL},
    {"--use-flash-attn*",                 SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_FLASH, NULL, NULL},
    {"--bf16",                            SETS, LAUNCH_SWITCH, LAUNCH_BF16, NULL, NULL},
    {"--fp16",                            SETS, LAUNCH_SWITCH, LAUNCH_FP16, NULL, NULL},
    {"--num-experts",                     SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_EXPERTS, NULL, NULL},
    {"--topk",                            SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_EXPERTS_A_TOKEN, NULL, NULL},

    {"--cpu-optimizer",                   SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_OPTIMIZER_OFFLOAD, NULL, NULL},
    {"--rotary-percent",                  UNMODELLED, "all of a head is rotated here: under 1 % of a step", "1.0 1"},
    {"--rampup-batch-size",               UNMODELLED, "the batch grows at the beginning: the step of the whole batch is predicted", NULL},
    {"--curriculum-learning*",            UNMODELLED, "lengths that grow: the step of the whole length is predicted", NULL},
    {"--random-ltd",                      UNMODELLED, "tokens that layers leave out: all are predicted", NULL},
    {"--optimizer",                       UNMODELLED, "AdamW is predicted: another optimizer has other states, up to 8 bytes a parameter", "adam"},
    {"--moe-*",                           UNMODELLED, "of a mixture of experts: a dense model is predicted", NULL},
    {"--expert-*",                        UNMODELLED, "of a mixture of experts: a dense model is predicted", NULL},
    {"--data-efficiency-curriculum-learning", UNMODELLED, "lengths that grow: the step of the whole length is predicted", NULL},
    {"--contigious-checkpointing",        UNMODELLED, "checkpoints lie in one buffer: the allocator keeps less memory", NULL},
    {"--synchronize-each-layer",          UNMODELLED, "the host waits for the device after each layer", NULL},
    {"--no-gradient-accumulation-fusion", UNMODELLED, "gradients of weights are added by the product here: without it by a kernel more", NULL},
    {"--no-scatter-gather-tensors-in-pipeline", UNMODELLED, "stages exchange a part a tensor rank here: without it the whole, tp times the bytes", NULL},
    {"--load-teacher",                    UNMODELLED, "a teacher's forward: it is not predicted", NULL},
    {"--inference",                       UNMODELLED, "no training: a training step is predicted", NULL},
    {"--partition-activations",           UNMODELLED, "checkpoints over tensor ranks: they are, here, where ranks share tokens", NULL},
    {"--load-tag", IGNORED}, {"--profile-backward", IGNORED}, {"--local_rank", IGNORED}, {"--universal-checkpoint", IGNORED}, {"--use-dataset-only", IGNORED},
};
/* clang-format on */
const struct launch_table launch_deepspeed_json_table = {.row = json_rows,
                                                         .row_count = ARRAY_LEN(json_rows)};
const struct launch_table launch_megatron_deepspeed_table = {.row = argument_rows,
                                                             .row_count = ARRAY_LEN(argument_rows),
                                                             .table_of_shared_rows =
                                                                 &launch_megatron_shared_table};

/* ---- fields of choices ---- */

static bool has_host_optimizer(const struct choices *c)
{
    return c->optimizer == CHOICE_OPTIMIZER_HOST;
}

/* Returns the ZeRO stage; an optimizer on the host needs at least stage 1, even over one rank. */
static int zero_stage(const struct choices *c)
{
    static const int stages[CHOICE_WEIGHTS_COUNT] = {0, 1, 2, 3, 3};
    return has_host_optimizer(c) && stages[c->weights] == 0 ? 1 : stages[c->weights];
}

static void set_config_fields(struct launch *l, const struct choices *c)
{
    bool copies =
        c->weights == CHOICE_WEIGHTS_HSDP && expressible_weight_sharing_ranks(c) > c->shard;
    bool host = c->activations == CHOICE_ACTIVATIONS_OFFLOAD ||
                c->activations == CHOICE_ACTIVATIONS_SELECTIVE_OFFLOAD;
    launch_set_count(l, LAUNCH_ACCUMULATION, c->accumulation);
    launch_set_count(l, LAUNCH_ZERO, zero_stage(c));
    if (copies)
        launch_set_count(l, LAUNCH_SHARD_RANKS, c->shard);
    if (has_host_optimizer(c)) {
        launch_set_text(l, LAUNCH_OPTIMIZER_DEVICE, "cpu");
        launch_set_count(l, LAUNCH_PINNED, 1);
    }
    launch_set_count(l, LAUNCH_CHECKPOINTS_HOST, host);
}

void launch_set_deepspeed_fields(struct launch *l, const struct choices *c)
{
    const struct transformer *m = c->model;
    megatron_set_model_fields(l, m);
    if (m->kv_heads != m->heads)
        launch_set_count(l, LAUNCH_KV_HEADS, m->kv_heads);
    if (m->norm == NORM_RMSNORM)
        launch_set_text(l, LAUNCH_NORM, "rmsnorm");
    if (m->positions == POSITIONS_ROPE)
        launch_set_count(l, LAUNCH_ROPE, 1);
    text_printf(&l->comments_to_print,
                "# the vocabulary is the tokenizer's: %lld tokens are predicted\n",
                (long long)m->vocab);
    megatron_set_size_fields(l, c);
    set_config_fields(l, c);
    launch_set_count(l, LAUNCH_DEEPSPEED, 1);
    launch_set_text(l, LAUNCH_DEEPSPEED_CONFIG, "ds_config.json");
    if (c->pp == 1 && zero_stage(c) > 1)
        launch_set_count(l, LAUNCH_NO_PIPELINE, 1);
    if (c->attention == CHOICE_ATTENTION_FPDT) {
        launch_set_count(l, LAUNCH_CHUNKED, 1);
        launch_set_count(l, LAUNCH_CHUNK, c->chunk_tokens);
        if (c->kv_offload == KV_OFFLOAD_ON)
            launch_set_count(l, LAUNCH_CHUNKS_HOST, 1);
    }
    launch_set_count(l, LAUNCH_SP, c->cp * c->hp);
    launch_set_number(l, LAUNCH_DROPOUT, c->attention_dropout ? 0.1 : 0);
    launch_set_number(l, LAUNCH_HIDDEN_DROPOUT, 0);
    if (expressible_choices_recompute(c)) {
        launch_set_count(l, LAUNCH_DEEPSPEED_CHECKPOINTS, 1);
        launch_set_count(l, LAUNCH_CHECKPOINTS, 1);
    }
    if (c->dtype == DTYPE_F32)
        return;
    launch_set_count(l, LAUNCH_FLASH, 1);
    launch_set_count(l, c->dtype == DTYPE_F16 ? LAUNCH_FP16 : LAUNCH_BF16, 1);
}

/* ---- options of fields ---- */

static enum status add_weight_options(struct launch *l, struct diag *diag)
{
    int64_t stage = launch_count_or(l, LAUNCH_ZERO, 0),
            shard = launch_count_or(l, LAUNCH_SHARD_RANKS, 0);
    if (stage < 0 || stage > 3)
        return launch_field_error(l, LAUNCH_ZERO, diag, "a stage of ZeRO is 0 to 3");
    bool parts = stage == 3 && shard > 0;
    launch_add_option(
        l, LAUNCH_ZERO, "weights",
        weights_names[parts ? CHOICE_WEIGHTS_HSDP : CHOICE_WEIGHTS_REPLICATED + stage]);
    if (parts)
        launch_add_count_option(l, LAUNCH_SHARD_RANKS, "shard", shard);
    bool host = launch_field_text_is(l, LAUNCH_OPTIMIZER_DEVICE, "cpu") ||
                launch_field_text_is(l, LAUNCH_OPTIMIZER_DEVICE, "nvme") ||
                launch_is_on(l, LAUNCH_OPTIMIZER_OFFLOAD);
    if (host)
        launch_add_option(l, LAUNCH_OPTIMIZER_DEVICE, "optimizer", "host");
    if (launch_field_text_is(l, LAUNCH_OPTIMIZER_DEVICE, "nvme"))
        launch_remark_on_field(
            l, REMARK_UNMODELLED, LAUNCH_OPTIMIZER_DEVICE,
            "states are in the host's memory here, and no disk's time is predicted");
    return STATUS_OK;
}

static void add_recompute_options(struct launch *l)
{
    bool full = launch_is_on(l, LAUNCH_CHECKPOINTS) ||
                launch_is_on(l, LAUNCH_DEEPSPEED_CHECKPOINTS) ||
                launch_field_text_is(l, LAUNCH_GRANULARITY, "full");
    bool selective = launch_field_text_is(l, LAUNCH_GRANULARITY, "selective") ||
                     launch_is_on(l, LAUNCH_SELECTIVE);
    bool host = launch_is_on(l, LAUNCH_CHECKPOINTS_HOST);
    if (!full && !selective && !l->has_read_framework_file[LAUNCH_MEGATRON_DEEPSPEED]) {
        launch_add_remark_printf(
            l, REMARK_ASSUMED, "full recomputation", (struct loc){0},
            "the configuration does not say whether the program recomputes layers: "
            "--activations keep says it does not");
        full = true;
    }
    launch_add_option(l, LAUNCH_CHECKPOINTS, "activations",
                      full && host ? "offload"
                      : full       ? "full"
                      : selective  ? "selective-core"
                                   : "keep");
}

/* Adds the options of the batch. If the files do not give the global batch but the number of micro-batches, and the
 * number of GPUs is known, the global batch is micro-batch x micro-batches x data-parallel ranks. */
static void add_batch_options(struct launch *l, struct launch_known_facts given,
                              const struct launch_degrees *d)
{
    int64_t ranks = d->tp * d->pp * d->hp, micro = launch_count_or(l, LAUNCH_MICRO_BATCH, 1);
    int64_t accumulation = launch_count_or(l, LAUNCH_ACCUMULATION, 0);
    if (!launch_has_field(l, LAUNCH_GLOBAL_BATCH) && accumulation > 0 && given.gpu_count >= ranks &&
        micro > 0 && micro < 1 << 20 && accumulation < 1 << 20)
        launch_add_count_option(l, LAUNCH_ACCUMULATION, "batch",
                                micro * accumulation * (given.gpu_count / ranks));
    megatron_add_batch_options(l);
}

enum status launch_add_deepspeed_options(struct launch *l, struct launch_known_facts given,
                                         struct diag *diag)
{
    bool arguments = l->has_read_framework_file[LAUNCH_MEGATRON_DEEPSPEED];
    struct launch_degrees d = {.tp = launch_count_or(l, LAUNCH_TP, 1),
                               .pp = launch_count_or(l, LAUNCH_PP, 1),
                               .cp = 1,
                               .hp = launch_count_or(l, LAUNCH_SP, 1),
                               .has_fpdt = launch_is_on(l, LAUNCH_CHUNKED)};
    enum status status = megatron_add_model_options(l, given, diag);
    if (status == STATUS_OK)
        status = megatron_check_degrees(l, given, &d, diag);
    if (status != STATUS_OK)
        return status;
    launch_remark_unread_config(l);
    launch_add_degree_options(l, d);
    launch_add_option(l, LAUNCH_FIELD_COUNT, "profile", "deepspeed");
    if (!arguments &&
        d.tp > 1) /* AutoTP: LinearLayer and LinearAllreduce over the model's own layers */
        launch_add_option(l, LAUNCH_TP, "tensor-plan", "replicated");
    status = add_weight_options(l, diag);
    if (status != STATUS_OK)
        return status;
    add_batch_options(l, given, &d);
    add_recompute_options(l);
    if (d.has_fpdt && launch_has_field(l, LAUNCH_CHUNK))
        launch_add_count_option(l, LAUNCH_CHUNK, "chunk", launch_count_or(l, LAUNCH_CHUNK, 0));
    if (d.has_fpdt)
        launch_add_option(l, LAUNCH_CHUNKS_HOST, "kv-offload",
                          launch_is_on(l, LAUNCH_CHUNKS_HOST) ? "on" : "off");
    bool f16 = launch_is_on(l, LAUNCH_FP16), bf16 = launch_is_on(l, LAUNCH_BF16);
    launch_add_option(l, f16 ? LAUNCH_FP16 : LAUNCH_BF16, "dtype",
                      f16    ? "f16"
                      : bf16 ? "bf16"
                             : "f32");
    if (launch_is_on(l, LAUNCH_COMPILE)) {
        launch_add_option(l, LAUNCH_COMPILE, "kernels", "compiled");
        launch_remark_on_field(
            l, REMARK_UNMODELLED, LAUNCH_COMPILE,
            "DeepSpeed's compiler orders gathers and reductions: their usual order is "
            "predicted");
    }
    if (!arguments)
        return STATUS_OK;
    if (launch_is_on(l, LAUNCH_FLASH) || d.has_fpdt)
        launch_add_option(l, LAUNCH_FLASH, "attention", "fa2");
    else
        launch_add_remark_printf(
            l, REMARK_UNMODELLED, "no --use-flash-attn", (struct loc){0},
            "FlashAttention-2 is predicted: without it scores go to memory, which takes "
            "longer and grows with the square of the length");
    double dropout = launch_number_or(l, LAUNCH_DROPOUT, 0.1);
    if (!d.has_fpdt)
        launch_add_option(l, LAUNCH_DROPOUT, "dropout", dropout > 0 ? "on" : "off");
    return STATUS_OK;
}

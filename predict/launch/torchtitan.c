/* Translates torchtitan's settings. Their names are those of 0.2 (torchtitan/config/job_config.py), of 0.1 and earlier,
 * and of the arguments of 2026 (torchtitan/config/configs.py), where --module and --config name a recipe. */
#include "models/cluster.h"
#include "predict/launch/launch_parts.h"
#include "predict/launch/launch_tables.h"
#include "predict/launch/torchtitan_model.h"
#include "schedule/choices/strategies.h"

#include "schedule/pipeline/pipeline.h"

#include <string.h>

static const char eight_bits[] =
    "matrix products in 8 bits: bf16 is predicted, whose products take up to twice as long";

/* clang-format off */
static const struct launch_row rows[] = {
    {"model.name",                      SETS, LAUNCH_TEXT,   LAUNCH_MODEL, NULL, NULL},
    {"model.flavor",                    SETS, LAUNCH_TEXT,   LAUNCH_FLAVOR, NULL, NULL},
    {"module",                          SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_MODEL, NULL, NULL},
    {"config",                          SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_RECIPE, NULL, NULL},
    {"training.max_context_length",     SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_SEQ, NULL, NULL},
    {"training.num_tokens_per_microbatch_per_dp_rank", SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_MICRO_TOKENS, NULL, NULL},
    {"training.num_tokens_per_train_step", SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_STEP_TOKENS, NULL, NULL},
    {"training.seq_len",                SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_SEQ, NULL, NULL},
    {"training.local_batch_size",       SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_LOCAL_BATCH, NULL, NULL},
    {"training.batch_size",             SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_LOCAL_BATCH, NULL, NULL},
    {"training.global_batch_size",      SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_GLOBAL_BATCH, NULL, NULL},
    {"training.enable_cpu_offload",     SETS, LAUNCH_SWITCH, LAUNCH_OPTIMIZER_OFFLOAD, NULL, NULL},
    {"training.dtype",                  SETS, LAUNCH_TEXT,   LAUNCH_DTYPE, NULL, NULL},
    {"training.mixed_precision_param",  SETS, LAUNCH_TEXT,   LAUNCH_PARAM_DTYPE, NULL, NULL},
    {"training.compile",                SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_COMPILE, NULL, NULL},
    {"parallelism.data_parallel_replicate_degree", SETS, LAUNCH_WHOLE_NUMBER, LAUNCH_DP_REPLICATE, NULL, NULL},
    {"training.data_parallel_replicate_degree",    SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_DP_REPLICATE, NULL, NULL},
    {"parallelism.data_parallel_shard_degree",     SETS, LAUNCH_WHOLE_NUMBER, LAUNCH_DP_SHARD, NULL, NULL},
    {"training.data_parallel_shard_degree",        SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_DP_SHARD, NULL, NULL},
    {"training.data_parallel_degree",              SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_DP_SHARD, NULL, NULL},
    {"parallelism.context_parallel_degree",        SETS, LAUNCH_WHOLE_NUMBER, LAUNCH_CP, NULL, NULL},
    {"experimental.context_parallel_degree",       SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_CP, NULL, NULL},
    {"parallelism.tensor_parallel_degree",         SETS, LAUNCH_WHOLE_NUMBER, LAUNCH_TP, NULL, NULL},
    {"training.tensor_parallel_degree",            SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_TP, NULL, NULL},
    {"parallelism.pipeline_parallel_degree",       SETS, LAUNCH_WHOLE_NUMBER, LAUNCH_PP, NULL, NULL},
    {"experimental.pipeline_parallel_degree",      SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_PP, NULL, NULL},
    {"training.pipeline_parallel_degree",          SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_PP, NULL, NULL},
    {"parallelism.expert_parallel_degree",         SETS, LAUNCH_WHOLE_NUMBER, LAUNCH_EP, NULL, NULL},
    {"parallelism.expert_parallel_comm_backend",   SETS, LAUNCH_TEXT,  LAUNCH_DISPATCHER, NULL, NULL},
    {"parallelism.pipeline_parallel_schedule",     SETS, LAUNCH_TEXT,  LAUNCH_SCHEDULE, NULL, NULL},
    {"experimental.pipeline_parallel_schedule",    SETS_AS_ALIAS, LAUNCH_TEXT,  LAUNCH_SCHEDULE, NULL, NULL},
    {"parallelism.module_fqns_per_model_part",     SETS, LAUNCH_TEXT,  LAUNCH_PARTS, NULL, NULL},
    {"parallelism.pipeline_parallel_layers_per_stage", SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_VIRTUAL_LAYERS, NULL, NULL},
    {"parallelism.pipeline_parallel_microbatch_size", SETS, LAUNCH_WHOLE_NUMBER, LAUNCH_STAGE_BATCH, NULL, NULL},
    {"experimental.pipeline_parallel_microbatches", SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_STAGE_BATCHES, NULL, NULL},
    {"parallelism.pipeline_parallel_microbatches", SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_STAGE_BATCHES, NULL, NULL},
    {"parallelism.context_parallel_rotate_method", SETS, LAUNCH_TEXT,  LAUNCH_ROTATE, NULL, NULL},
    {"experimental.context_parallel_rotate_method", SETS_AS_ALIAS, LAUNCH_TEXT, LAUNCH_ROTATE, NULL, NULL},
    {"parallelism.fsdp_reshard_after_forward",     SETS, LAUNCH_TEXT,  LAUNCH_RESHARD, NULL, NULL},
    {"training.fsdp_reshard_after_forward",        SETS_AS_ALIAS, LAUNCH_TEXT,  LAUNCH_RESHARD, NULL, NULL},
    {"compile.enable",                  SETS, LAUNCH_SWITCH, LAUNCH_COMPILE, NULL, NULL},
    {"compile.components",              SETS, LAUNCH_TEXT,   LAUNCH_COMPILED, NULL, NULL},
    {"activation_checkpoint.mode",      SETS, LAUNCH_TEXT,   LAUNCH_GRANULARITY, NULL, NULL},
    {"activation_checkpoint.selective_ac_option", SETS, LAUNCH_TEXT, LAUNCH_MODULES, NULL, NULL},
    {"activation_checkpoint.selective_ac_type",   SETS_AS_ALIAS, LAUNCH_TEXT, LAUNCH_MODULES, NULL, NULL},

    {"model.converters",                SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_CONVERTERS, NULL, NULL},
    {"float8.enable_float8_linear",     SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_FP8, NULL, NULL},
    {"training.fp8_linear",             SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_FP8, NULL, NULL},
    {"float8.recipe_name",              SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_FP8_RECIPE, NULL, NULL},
    {"mx.recipe_name",                  SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_FP8_RECIPE, NULL, NULL},
    {"float8.enable_fsdp_float8_all_gather", SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_QUANTISED_WEIGHTS, NULL, NULL},
    {"quantize.linear.float8.enable_fsdp_float8_all_gather", SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_QUANTISED_WEIGHTS, NULL, NULL},
    {"float8.precompute_float8_dynamic_scale_for_fsdp", SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_SCALES_ONCE, NULL, NULL},
    {"quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp", SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_SCALES_ONCE, NULL, NULL},
    {"parallelism.enable_async_tensor_parallel",   SETS, LAUNCH_SWITCH, LAUNCH_ASYNC_TENSOR, NULL, NULL},
    {"experimental.enable_async_tensor_parallel",  SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_ASYNC_TENSOR, NULL, NULL},
    {"compile.enable_async_tensor_parallel",       SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_ASYNC_TENSOR, NULL, NULL},
    {"parallelism.pipeline_parallel_first_stage_less_layers", SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_FIRST_LESS, NULL, NULL},
    {"parallelism.pipeline_parallel_last_stage_less_layers",  SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_LAST_LESS, NULL, NULL},
    {"parallelism.disable_loss_parallel",          UNMODELLED, "the loss over whole logits: they are shared over tensor ranks here", NULL},
    {"training.disable_loss_parallel",             UNMODELLED, "the loss over whole logits: they are shared over tensor ranks here", NULL},
    {"parallelism.enable_compiled_autograd",       UNMODELLED, "launches of the backward: a few percent at most", NULL},
    {"parallelism.pipeline_parallel_split_points", UNMODELLED, "stages here have equal layers: the fullest decides", NULL},
    {"experimental.pipeline_parallel_split_points", UNMODELLED, "stages here have equal layers: the fullest decides", NULL},
    {"parallelism.pipeline_parallel_*",            UNMODELLED, "stages here have equal layers: the fullest decides", NULL},
    {"parallelism.expert_*",            UNMODELLED, "experts over tensor ranks: they are not divided here", "1"},
    {"training.mixed_precision_reduce", UNMODELLED, "gradients are reduced in fp32 here: twice the bytes of bf16", "float32"},
    {"optimizer.name",                  UNMODELLED, "AdamW is predicted: another optimizer has other states, up to 8 bytes a parameter", "AdamW Adam"},
    {"optimizer.early_step_in_backward", UNMODELLED, "gradients of all layers are kept until the step here: more memory", NULL},
    {"compile.backend",                 UNMODELLED, "another compiler than inductor", "inductor"},
    {"compile.*",                       UNMODELLED, "a detail of torch.compile", NULL},
    {"quantize.*",                      UNMODELLED, eight_bits, NULL},
    {"peft.enable_peft",                SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_ADAPTER_ON, NULL, NULL},
    {"lora.rank",                       SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_ADAPTER, NULL, NULL},
    {"peft.*",                          UNMODELLED, "a detail of adapters: not predicted", NULL},
    {"lora.*",                          UNMODELLED, "a detail of adapters: not predicted", NULL},
    {"activation_checkpoint.*",         UNMODELLED, "a detail of what is kept", NULL},

    {"job.config_file",                 UNMODELLED, "this file is not read by itself: give it with --from", NULL},
    {"optimizer.implementation",        UNMODELLED, "one kernel for all parameters is predicted: others take longer", "fused"},
    {"comm.mode",                       UNMODELLED, "no collectives: they are predicted", "default"},
    {"fault_tolerance.enable",          UNMODELLED, "replicas that may fail, and synchronise every few steps: a step of all ranks is predicted", NULL},
    {"memory_estimation.enabled",       UNMODELLED, "no training: a training step is predicted", NULL},
    {"debug.deterministic",             UNMODELLED, "deterministic kernels, of which some are slower", NULL},
    {"training.deterministic",          UNMODELLED, "deterministic kernels, of which some are slower", NULL},
    {"debug.moe_force_load_balance",    UNMODELLED, "loads of experts that are even: they are, here", "true false"},
    {"training.gc_debug",               UNMODELLED, "Python collects garbage in each step: the host may fall behind", NULL},
    {"training.data_parallel_type",     UNMODELLED, "FSDP is predicted", "fsdp"},
    {"float8.filter_fqns", IGNORED}, {"mx.filter_fqns", IGNORED}, {"dataset.*", IGNORED},
    {"float8.*",                        UNMODELLED, "a detail of products in 8 bits", NULL},
    {"mx.*",                            UNMODELLED, "a detail of products in 8 bits: parameters are gathered in 16 bits here", NULL},
    {"model.norm_type",                 UNMODELLED, "RMSNorm is predicted, which has no biases", "rmsnorm fused_rmsnorm"},
    {"experimental.enable_compiled_autograd", UNMODELLED, "launches of the backward: a few percent at most", NULL},
    {"model.use_flex_attn",             UNMODELLED, "other kernels of attention: FlashAttention-2 is predicted", NULL},
    {"model.attn_mask_type",            UNMODELLED, "full causal attention is predicted, which is more work than masked documents", "causal"},
    {"job.*", IGNORED}, {"profiling.*", IGNORED}, {"metrics.*", IGNORED}, {"lr_scheduler.*", IGNORED}, {"checkpoint.*", IGNORED},
    {"optimizer.lr", IGNORED}, {"optimizer.beta1", IGNORED}, {"optimizer.beta2", IGNORED}, {"optimizer.eps", IGNORED}, {"optimizer.weight_decay", IGNORED},
    {"validation.*", IGNORED}, {"fault_tolerance.*", IGNORED}, {"memory_estimation.*", IGNORED},
    {"comm.init_timeout_seconds", IGNORED}, {"comm.train_timeout_seconds", IGNORED}, {"comm.trace_buf_size", IGNORED}, {"comm.save_traces_*", IGNORED},
    {"debug.seed", IGNORED}, {"debug.deterministic_warn_only", IGNORED}, {"experimental.custom_*", IGNORED},
    {"model.tokenizer_path", IGNORED}, {"model.hf_assets_path", IGNORED}, {"model.tokenizer_type", IGNORED}, {"model.print_after_conversion", IGNORED},
    {"training.steps", IGNORED}, {"training.max_norm", IGNORED}, {"training.dataset*", IGNORED}, {"training.warmup_steps", IGNORED},
    {"training.seed", IGNORED}, {"training.gc_freq", IGNORED},
};
/* clang-format on */
const struct launch_table launch_torchtitan_table = {.row = rows, .row_count = ARRAY_LEN(rows)};

/* ---- fields of choices ---- */

static const char *const schedules[CHOICE_PIPELINE_COUNT] = {
    [CHOICE_PIPELINE_GPIPE] = "GPipe",
    [CHOICE_PIPELINE_1F1B] = "1F1B",
    [CHOICE_PIPELINE_INTERLEAVED] = "Interleaved1F1B",
    [CHOICE_PIPELINE_ZB_1P] = "InterleavedZeroBubble",
    [CHOICE_PIPELINE_ZB_V] = "ZBVZeroBubble",
};

/* Sets the list of the layers in each part, as torchtitan calls a chunk of layers. Without the list torchtitan divides
 * the layers itself, and counts the embedding and the head as layers. */
static void set_layers_of_each_part(struct launch *l, const struct choices *c)
{
    uint32_t parts = pipeline_chunk_count(c);
    struct text list = {0};
    text_puts(&list, "[\n");
    for (uint32_t part = 0; part < parts; part++) {
        struct layer_range layers = pipeline_layers_of_chunk(c, part);
        text_puts(&list, part == 0 ? "    [\"tok_embeddings\", " : "    [");
        for (uint32_t layer = layers.first; layer < layers.end; layer++)
            text_printf(&list, "%s\"layers.%u\"", layer > layers.first ? ", " : "", layer);
        text_puts(&list, part + 1 == parts ? ", \"norm\", \"output\"],\n" : "],\n");
    }
    text_puts(&list, "]");
    launch_set_text(l, LAUNCH_PARTS, list.data);
    text_release(&list);
}

/* Sets the degrees of data, context, tensor and pipeline ranks, whose product is the number of ranks, and how ranks of
 * experts, stages and rings work. FSDP shards over data and context ranks together. If ranks share weights, also sets
 * whether weights are gathered again for the backward: always with ZeRO-3 and HSDP, unless --reshard is never; else
 * never. */
static void set_rank_fields(struct launch *l, const struct choices *c)
{
    bool hsdp = c->weights == CHOICE_WEIGHTS_HSDP && !expressible_hsdp_cuts_sequence_ranks(c);
    uint32_t copies = hsdp ? expressible_weight_sharing_ranks(c) / c->shard : 1;
    bool sharded = c->weights == CHOICE_WEIGHTS_ZERO3 || c->weights == CHOICE_WEIGHTS_HSDP;
    const char *schedule = schedules[c->pipeline];
    launch_set_count(l, LAUNCH_DP_REPLICATE, copies);
    launch_set_count(l, LAUNCH_DP_SHARD, c->dp / copies);
    launch_set_count(l, LAUNCH_CP, c->cp * c->hp);
    launch_set_count(l, LAUNCH_TP, c->tp);
    if (c->tp > 1 && c->tensor_plan == TENSOR_PLAN_ASYNC)
        launch_set_count(l, LAUNCH_ASYNC_TENSOR, 1);
    launch_set_count(l, LAUNCH_PP, c->pp);
    if (c->ep > 1)
        launch_set_count(l, LAUNCH_EP, c->ep);
    if (dispatcher_facts[c->dispatcher].sends_once)
        launch_set_text(l, LAUNCH_DISPATCHER, dispatcher_names[c->dispatcher]);
    if (c->pp > 1) {
        launch_set_text(l, LAUNCH_SCHEDULE, schedule != NULL ? schedule : "1F1B");
        set_layers_of_each_part(l, c);
        launch_set_count(l, LAUNCH_STAGE_BATCH, c->micro_batch);
    }
    if (c->cp > 1)
        launch_set_text(l, LAUNCH_ROTATE,
                        c->rotation == ROTATE_ALL_GATHER ? "allgather" : "alltoall");
    if (expressible_weight_sharing_ranks(c) > 1)
        launch_set_text(l, LAUNCH_RESHARD,
                        sharded && c->reshard != RESHARD_NEVER ? "always" : "never");
}

void launch_set_torchtitan_fields(struct launch *l, const struct choices *c)
{
    bool layers = c->activations == CHOICE_ACTIVATIONS_SELECTIVE_LAYER;
    bool selective = c->activations == CHOICE_ACTIVATIONS_SELECTIVE ||
                     c->activations == CHOICE_ACTIVATIONS_SELECTIVE_OP || layers;
    torchtitan_set_model_fields(l, c->model);
    launch_set_count(l, LAUNCH_SEQ, c->seq);
    /* with a pipeline, the local batch is all micro-batches of a rank in a step, else one micro-batch */
    launch_set_count(l, LAUNCH_LOCAL_BATCH, c->micro_batch * (c->pp > 1 ? c->accumulation : 1));
    launch_set_count(l, LAUNCH_GLOBAL_BATCH, c->global_batch);
    launch_set_count(l, LAUNCH_OPTIMIZER_OFFLOAD, c->optimizer == CHOICE_OPTIMIZER_HOST);
    if (states_are_bf16((enum states)c->states))
        launch_set_text(l, LAUNCH_DTYPE, "bfloat16");
    launch_set_text(l, LAUNCH_PARAM_DTYPE, c->dtype == DTYPE_F32 ? "float32" : "bfloat16");
    set_rank_fields(l, c);
    bool layers_compiled = c->kernels == KERNELS_COMPILED, loss = c->loss == LOSS_COMPILED;
    if (layers_compiled || loss)
        launch_set_count(l, LAUNCH_COMPILE, 1);
    if (layers_compiled != loss)
        launch_set_text(l, LAUNCH_COMPILED, loss ? "[\"loss\"]" : "[\"model\"]");
    launch_set_text(l, LAUNCH_GRANULARITY,
                    selective                          ? "selective"
                    : expressible_choices_recompute(c) ? "full"
                                                       : "none");
    if (selective)
        launch_set_text(l, LAUNCH_MODULES, layers ? "2" : "op");
}

/* ---- options of fields ---- */

/* Sets the fields of 8-bit products that converters of linear layers imply, unless a file gives them: with float8 there
 * is a scale for each tensor, with mx for each 32 numbers. Adds a remark on a converter that is neither. */
static void set_fields_of_converters(struct launch *l)
{
    const char *list =
        launch_has_field(l, LAUNCH_CONVERTERS) ? launch_field_text(l, LAUNCH_CONVERTERS) : "";
    bool mx = strstr(list, "mx") != NULL;
    if (list[0] != '\0' && !mx && strstr(list, "float8") == NULL)
        launch_remark_on_field(
            l, REMARK_UNMODELLED, LAUNCH_CONVERTERS,
            "layers that another converter changes: those of the model are predicted");
    if (!mx && strstr(list, "float8") == NULL && !launch_has_field(l, LAUNCH_FP8))
        return;
    launch_set_text_unless_given(l, LAUNCH_FP8, "true");
    launch_set_text_unless_given(l, LAUNCH_FP8_RECIPE, mx ? "mxfp8" : "tensorwise");
}

/* Turns batches that are given in tokens, as the settings of 2026 give them, into batches of sequences. Fails if a
 * batch is no whole number of sequences. */
static enum status set_batches_of_token_counts(struct launch *l, struct diag *diag)
{
    static const enum launch_field pairs[][2] = {{LAUNCH_MICRO_TOKENS, LAUNCH_LOCAL_BATCH},
                                                 {LAUNCH_STEP_TOKENS, LAUNCH_GLOBAL_BATCH}};
    int64_t seq = launch_count_or(l, LAUNCH_SEQ, 2048);
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        int64_t tokens = launch_count_or(l, pairs[i][0], -1);
        if (!launch_has_field(l, pairs[i][0]) || tokens == -1)
            continue;
        if (seq < 1 || tokens < seq || tokens % seq != 0)
            return launch_field_error(l, pairs[i][0], diag,
                                      "%lld tokens are no whole number of sequences of %lld tokens",
                                      (long long)tokens, (long long)seq);
        struct launch_field_value from = l->field_value[pairs[i][0]];
        launch_set_count(l, pairs[i][1], tokens / seq);
        l->field_value[pairs[i][1]].place = from.place;
        l->field_value[pairs[i][1]].setting_name = from.setting_name;
    }
    return STATUS_OK;
}

/* Returns the number of parts in the text of a list: each begins with a bracket, and the list itself with none. */
static int64_t count_listed_parts(const char *list)
{
    int64_t parts = 0;
    for (; *list != '\0'; list++)
        parts += *list == '[';
    return parts;
}

/* True if the numbers of layers of the listed parts differ by more than one: stages of such parts are not modelled. */
static bool has_uneven_parts(const char *list)
{
    int64_t fewest = INT64_MAX, most = 0, layers = 0;
    for (; *list != '\0'; list++) {
        layers += strncmp(list, "layers.", 7) == 0;
        if (*list != ']')
            continue;
        fewest = layers < fewest ? layers : fewest;
        most = layers > most ? layers : most;
        layers = 0;
    }
    return most > fewest + 1;
}

/* Adds the option that says which of embedding and head count as a layer when torchtitan divides layers over stages
 * (_generate_llm_fqn_per_model_part()). By default both do; if neither does, there is no option. */
static void add_stage_layers_option(struct launch *l)
{
    static const enum launch_field less[] = {LAUNCH_FIRST_LESS, LAUNCH_LAST_LESS};
    static const int ends[2][2] = {{STAGE_LAYERS_EVEN, STAGE_LAYERS_AND_HEAD},
                                   {STAGE_LAYERS_AND_EMBEDDING, STAGE_LAYERS_AND_BOTH_ENDS}};
    bool counts[2];
    for (size_t i = 0; i < ARRAY_LEN(less); i++) {
        counts[i] = launch_count_or(l, less[i], 1) > 0;
        if (launch_count_or(l, less[i], 1) > 1)
            launch_remark_on_field(l, REMARK_UNMODELLED, less[i],
                                   "an end of the model counts as one layer here");
    }
    if (counts[0] || counts[1])
        launch_add_option(
            l, launch_has_field(l, LAUNCH_FIRST_LESS) ? LAUNCH_FIRST_LESS : LAUNCH_LAST_LESS,
            "stage-layers", stage_layers_names[ends[counts[0]][counts[1]]]);
}

static void add_stage_options(struct launch *l, int64_t pp)
{
    int chosen = CHOICE_PIPELINE_1F1B;
    int64_t parts = launch_has_field(l, LAUNCH_PARTS)
                        ? count_listed_parts(launch_field_text(l, LAUNCH_PARTS))
                        : 0;
    for (int i = 0; i < CHOICE_PIPELINE_COUNT; i++)
        if (schedules[i] != NULL && launch_field_text_is(l, LAUNCH_SCHEDULE, schedules[i]))
            chosen = i;
    bool known = !launch_has_field(l, LAUNCH_SCHEDULE) ||
                 launch_field_text_is(l, LAUNCH_SCHEDULE, schedules[chosen]);
    if (!known)
        launch_remark_on_field(l, REMARK_UNMODELLED, LAUNCH_SCHEDULE,
                               "1F1B is predicted, which idles as long or longer");
    launch_add_option(l, LAUNCH_SCHEDULE, "pipeline", pipeline_names[chosen]);
    if (chosen == CHOICE_PIPELINE_INTERLEAVED)
        launch_add_count_option(l,
                                launch_has_field(l, LAUNCH_PARTS) ? LAUNCH_PARTS : LAUNCH_SCHEDULE,
                                "virtual-stages", parts > pp ? parts / pp : 2);
    if (launch_has_field(l, LAUNCH_PARTS) && has_uneven_parts(launch_field_text(l, LAUNCH_PARTS)))
        launch_remark_on_field(l, REMARK_UNMODELLED, LAUNCH_PARTS,
                               "stages here have equal layers: the fullest decides");
    if (!launch_has_field(l, LAUNCH_PARTS))
        add_stage_layers_option(l);
}

/* Adds the options that say how ranks share weights. Sets *dp to the number of all data-parallel ranks, or to 0 if it
 * is not known. */
static enum status add_weight_options(struct launch *l, struct launch_known_facts given,
                                      const struct launch_degrees *d, int64_t *dp,
                                      struct diag *diag)
{
    int64_t copies = launch_count_or(l, LAUNCH_DP_REPLICATE, 1);
    int64_t shard = launch_count_or(l, LAUNCH_DP_SHARD, -1), rest = d->tp * d->pp * d->cp;
    *dp = 0;
    if (copies < 1 || copies > 1 << 20)
        return launch_field_error(l, LAUNCH_DP_REPLICATE, diag, "a degree is from 1 to %d",
                                  1 << 20);
    if (shard == 0 || shard < -1 || shard > 1 << 20)
        return launch_field_error(l, LAUNCH_DP_SHARD, diag,
                                  "a degree is from 1 to %d, or -1 for the ranks that are left",
                                  1 << 20);
    if (shard > 0 && given.gpu_count > 0 && given.gpu_count != copies * shard * rest)
        return diag_error(diag, (struct loc){.name = "--gpus"}, STATUS_BAD_INPUT,
                          "%lld GPUs, and the degrees of the file make %lld: --gpus %lld would do",
                          (long long)given.gpu_count, (long long)(copies * shard * rest),
                          (long long)(copies * shard * rest));
    if (shard < 0 && given.gpu_count > 0 && given.gpu_count % (copies * rest) != 0)
        return diag_error(diag, (struct loc){.name = "--gpus"}, STATUS_BAD_INPUT,
                          "%lld GPUs are no multiple of the %lld ranks that the degrees of the "
                          "file make; --gpus %lld would do, or a multiple of it",
                          (long long)given.gpu_count, (long long)(copies * rest),
                          (long long)(copies * rest));
    if (shard < 0 && given.gpu_count > 0)
        shard = given.gpu_count / (copies * rest);
    if (shard < 0 && copies > 1)
        return launch_field_error(
            l, LAUNCH_DP_REPLICATE, diag,
            "the number of GPUs says over how many ranks a copy is shared: give "
            "--cluster, and --gpus");
    if (shard > 0)
        *dp = copies * shard;
    enum launch_field field = copies > 1 ? LAUNCH_DP_REPLICATE : LAUNCH_DP_SHARD;
    launch_add_option(l, field, "weights", copies > 1 ? "hsdp" : "zero3");
    if (copies > 1)
        launch_add_count_option(l, LAUNCH_DP_REPLICATE, "shard", shard * d->cp);
    if (launch_has_field(l, LAUNCH_RESHARD) &&
        !launch_is_predicted_value("default always never", launch_field_text(l, LAUNCH_RESHARD)))
        return launch_field_error(l, LAUNCH_RESHARD, diag,
                                  "'%s' is not read: default, always and never are",
                                  launch_field_text(l, LAUNCH_RESHARD));
    /* by the profile's default, weights are gathered again for the backward without stages, and not again with
     * stages */
    if (launch_field_text_is(l, LAUNCH_RESHARD, d->pp > 1 ? "always" : "never"))
        launch_add_option(l, LAUNCH_RESHARD, "reshard", launch_field_text(l, LAUNCH_RESHARD));
    return STATUS_OK;
}

/* Returns the number of sequences in a micro-batch of a pipeline, which is 1 by default. Until April 2025 it was the
 * local batch (`local`) divided by pipeline_parallel_microbatches, which was the number of stages by default
 * (torchtitan e846b6946, parallelisms/pipelining_utils.py, build_pipeline_schedule()). A file is of that time if it
 * gives that setting, or if it gives the degree of the pipeline outside of [parallelism]. */
static int64_t pipeline_micro_batch_sequences(struct launch *l, int64_t local, int64_t pp)
{
    const char *degree =
        launch_has_field(l, LAUNCH_PP) ? l->field_value[LAUNCH_PP].setting_name : NULL;
    const bool old = degree != NULL && strncmp(degree, "parallelism.", 12) != 0;
    const int64_t parts = launch_count_or(l, LAUNCH_STAGE_BATCHES, old ? pp : 0);
    if (launch_has_field(l, LAUNCH_STAGE_BATCH) || parts < 1)
        return launch_count_or(l, LAUNCH_STAGE_BATCH, 1);
    return local / parts > 1 ? local / parts : 1;
}

static void add_batch_options(struct launch *l, const struct launch_degrees *d, int64_t dp)
{
    int64_t local = launch_count_or(l, LAUNCH_LOCAL_BATCH, 8); /* training.local_batch_size */
    int64_t micro = d->pp > 1 ? pipeline_micro_batch_sequences(l, local, d->pp) : local;
    int64_t global = launch_count_or(l, LAUNCH_GLOBAL_BATCH, -1);
    if (!launch_has_field(l, LAUNCH_LOCAL_BATCH))
        launch_add_remark_printf(l, REMARK_ASSUMED, "local batch 8", (struct loc){0},
                                 "training.local_batch_size is not given, and 8 by default");
    launch_add_count_option(l, LAUNCH_SEQ, "seq", launch_count_or(l, LAUNCH_SEQ, 2048));
    if (!launch_has_field(l, LAUNCH_SEQ))
        launch_add_remark_printf(l, REMARK_ASSUMED, "--seq 2048", (struct loc){0},
                                 "training.seq_len is not given, and 2048 by default");
    if (global > 0)
        launch_add_count_option(l, LAUNCH_GLOBAL_BATCH, "batch", global);
    else if (dp > 0)
        launch_add_count_option(l, LAUNCH_LOCAL_BATCH, "batch", local * dp);
    if (micro > 1)
        launch_add_count_option(l,
                                d->pp > 1 && launch_has_field(l, LAUNCH_STAGE_BATCH)
                                    ? LAUNCH_STAGE_BATCH
                                : d->pp > 1 ? LAUNCH_PP
                                            : LAUNCH_LOCAL_BATCH,
                                "micro-batch", micro);
}

static void add_activation_options(struct launch *l)
{
    const char *mode = launch_has_field(l, LAUNCH_GRANULARITY)
                           ? launch_field_text(l, LAUNCH_GRANULARITY)
                           : "selective";
    bool selective = strcmp(mode, "selective") == 0;
    bool op = launch_field_text_is(l, LAUNCH_MODULES, "op");
    launch_add_option(l, LAUNCH_GRANULARITY, "activations",
                      selective && op             ? "selective-op"
                      : selective                 ? "selective-layer"
                      : strcmp(mode, "none") == 0 ? "keep"
                                                  : "full");
    if (selective && !op && launch_has_field(l, LAUNCH_MODULES) &&
        !launch_field_text_is(l, LAUNCH_MODULES, "2"))
        launch_remark_on_field(l, REMARK_UNMODELLED, LAUNCH_MODULES,
                               "every second layer is recomputed here");
    else if (!selective && strcmp(mode, "none") != 0 && strcmp(mode, "full") != 0)
        launch_remark_on_field(l, REMARK_UNMODELLED, LAUNCH_GRANULARITY,
                               "full recomputation is predicted");
}

enum status launch_add_torchtitan_options(struct launch *l, struct launch_known_facts given,
                                          struct diag *diag)
{
    enum status status = torchtitan_set_recipe_fields(l, diag);
    if (status == STATUS_OK)
        status = set_batches_of_token_counts(l, diag);
    if (status == STATUS_OK)
        set_fields_of_converters(l);
    struct launch_degrees d = {.tp = launch_count_or(l, LAUNCH_TP, 1),
                               .pp = launch_count_or(l, LAUNCH_PP, 1),
                               .cp = launch_count_or(l, LAUNCH_CP, 1),
                               .hp = 1};
    int64_t dp = 0;
    if (status == STATUS_OK)
        torchtitan_add_model_options(l, given);
    static const enum launch_field degrees[] = {LAUNCH_TP, LAUNCH_PP, LAUNCH_CP};
    for (size_t i = 0; i < ARRAY_LEN(degrees) && status == STATUS_OK; i++)
        if (launch_count_or(l, degrees[i], 1) < 1 || launch_count_or(l, degrees[i], 1) > 1 << 16)
            status = launch_field_error(l, degrees[i], diag, "a degree is from 1 to %d", 1 << 16);
    if (status == STATUS_OK && (double)d.tp * (double)d.pp * (double)d.cp > 1 << 20)
        status = launch_field_error(l, LAUNCH_TP, diag, "the degrees make more than %d ranks",
                                    CLUSTER_MAX_GPUS);
    if (status != STATUS_OK)
        return status;
    launch_add_degree_options(l, d);
    launch_add_option(l, LAUNCH_FIELD_COUNT, "profile", "torchtitan");
    if (d.cp > 1)
        launch_add_option(l, LAUNCH_ROTATE, "rotate",
                          launch_field_text_is(l, LAUNCH_ROTATE, "alltoall") ? "all-to-all"
                                                                             : "all-gather");
    if (d.pp > 1)
        add_stage_options(l, d.pp);
    status = add_weight_options(l, given, &d, &dp, diag);
    if (status != STATUS_OK)
        return status;
    add_batch_options(l, &d, dp);
    add_activation_options(l);
    if (launch_is_on(l, LAUNCH_OPTIMIZER_OFFLOAD)) {
        launch_add_option(l, LAUNCH_OPTIMIZER_OFFLOAD, "optimizer", "host");
        launch_remark_on_field(
            l, REMARK_UNMODELLED, LAUNCH_OPTIMIZER_OFFLOAD,
            "optimizer states are on the host here, parameters and gradients are not: "
            "up to 8 bytes of a rank's parameters less memory, and more copies");
    }
    if (launch_field_text_is(l, LAUNCH_DTYPE, "bfloat16"))
        launch_add_option(l, LAUNCH_DTYPE, "states", "bf16");
    launch_add_option(l, LAUNCH_PARAM_DTYPE, "dtype",
                      launch_field_text_is(l, LAUNCH_PARAM_DTYPE, "float32") ? "f32" : "bf16");
    /* Without a list of the compiled parts, model and loss are both compiled. Files of early 2025 have no such list. */
    const char *parts =
        launch_has_field(l, LAUNCH_COMPILED) ? launch_field_text(l, LAUNCH_COMPILED) : "model loss";
    bool compiled = launch_is_on(l, LAUNCH_COMPILE) && strstr(parts, "model") != NULL;
    if (compiled)
        launch_add_option(l, LAUNCH_COMPILE, "kernels", "compiled");
    if (launch_is_on(l, LAUNCH_ASYNC_TENSOR) && d.tp > 1 && compiled)
        launch_add_option(l, LAUNCH_ASYNC_TENSOR, "tensor-plan", "async");
    else if (launch_is_on(l, LAUNCH_ASYNC_TENSOR) && d.tp > 1)
        launch_remark_on_field(l, REMARK_UNMODELLED, LAUNCH_ASYNC_TENSOR,
                               "async TP needs compiled layers: it is predicted without");
    if (launch_has_field(l, LAUNCH_RECIPE)) /* recipes have ChunkedLossWrapper */
        launch_add_option(l, LAUNCH_RECIPE, "loss", "chunked");
    else if (launch_is_on(l, LAUNCH_COMPILE) && strstr(parts, "loss") != NULL)
        launch_add_option(l, LAUNCH_COMPILE, "loss", "compiled");
    return STATUS_OK;
}

#include "cli/plan/settings.h"

#include "schedule/pipeline/pipeline.h"

#include <stdbool.h>

static bool is_sharded(const struct choices *c)
{
    return c->weights == CHOICE_WEIGHTS_ZERO3 || c->weights == CHOICE_WEIGHTS_HSDP;
}

static bool has_host_optimizer(const struct choices *c)
{
    return c->optimizer == CHOICE_OPTIMIZER_HOST;
}

/* Ranks of a stage and its tensor ranks over which data parallelism goes: copies of the shards. */
static uint32_t shard_copies(const struct choices *c)
{
    return c->weights == CHOICE_WEIGHTS_HSDP ? expressible_sharing(c) / c->shard : 1;
}

/* ---- torchtitan: torchtitan/config/job_config.py ---- */

/* The layers of each part: what the framework would choose itself weighs embedding and head as layers. */
static void put_parts(struct text *out, const struct choices *c)
{
    uint32_t parts = pipeline_chunks(c);
    text_puts(out, "module_fqns_per_model_part = [\n");
    for (uint32_t part = 0; part < parts; part++) {
        struct layer_range layers = pipeline_layers(c, part);
        text_puts(out, part == 0 ? "    [\"tok_embeddings\", " : "    [");
        for (uint32_t layer = layers.first; layer < layers.end; layer++)
            text_printf(out, "%s\"layers.%u\"", layer > layers.first ? ", " : "", layer);
        text_puts(out, part + 1 == parts ? ", \"norm\", \"output\"],\n" : "],\n");
    }
    text_puts(out, "]\n");
}

static void put_stages(struct text *out, const struct choices *c)
{
    static const char *const schedules[CHOICE_PIPELINE_COUNT] = {
        [CHOICE_PIPELINE_GPIPE] = "GPipe",
        [CHOICE_PIPELINE_INTERLEAVED] = "Interleaved1F1B",
        [CHOICE_PIPELINE_ZB_1P] = "InterleavedZeroBubble",
        [CHOICE_PIPELINE_ZB_V] = "ZBVZeroBubble",
    }; /* else 1F1B */
    const char *schedule = schedules[c->pipeline];
    text_printf(out, "pipeline_parallel_schedule = \"%s\"\n", schedule != NULL ? schedule : "1F1B");
    put_parts(out, c);
    text_printf(out, "pipeline_parallel_microbatch_size = %lld\n", (long long)c->micro_batch);
}

/* The degrees of data, context, tensor and pipeline multiply to the ranks; FSDP shards over those of data
 * and context. Left to itself it keeps what it gathered where there are stages, and the head always. */
static void put_parallelism(struct text *out, const struct choices *c)
{
    uint32_t copies = expressible_has_small_shards(c) ? 1 : shard_copies(c);
    text_puts(out, "\n[parallelism]\n");
    text_printf(out, "data_parallel_replicate_degree = %u\n", copies);
    text_printf(out, "data_parallel_shard_degree = %u\n", c->dp / copies);
    text_printf(out, "context_parallel_degree = %u\n", c->cp * c->hp);
    text_printf(out, "tensor_parallel_degree = %u\n", c->tp);
    text_printf(out, "pipeline_parallel_degree = %u\n", c->pp);
    if (c->pp > 1)
        put_stages(out, c);
    if (c->cp > 1)
        text_printf(out, "context_parallel_rotate_method = \"%s\"\n",
                    c->rotation == ROTATE_ALL_GATHER ? "allgather" : "alltoall");
    if (expressible_sharing(c) > 1)
        text_printf(out, "fsdp_reshard_after_forward = \"%s\"\n",
                    is_sharded(c) ? "always" : "never");
}

static void put_torchtitan(struct text *out, const struct choices *c)
{
    bool layers = c->activations == CHOICE_ACTIVATIONS_SELECTIVE_LAYER;
    bool selective = c->activations == CHOICE_ACTIVATIONS_SELECTIVE ||
                     c->activations == CHOICE_ACTIVATIONS_SELECTIVE_OP || layers;
    /* a pipeline cuts the local batch into its micro-batches */
    long long local = (long long)c->micro_batch * (c->pp > 1 ? c->accumulation : 1);
    settings_put_torchtitan_model(out, c);
    text_puts(out, "\n[training]\n");
    text_printf(out, "seq_len = %lld\n", (long long)c->seq);
    text_printf(out, "local_batch_size = %lld\n", local);
    text_printf(out, "global_batch_size = %lld\n", (long long)c->global_batch);
    text_printf(out, "enable_cpu_offload = %s\n", has_host_optimizer(c) ? "true" : "false");
    if (c->states == STATES_BF16)
        text_puts(out, "dtype = \"bfloat16\"\n");
    text_printf(out, "mixed_precision_param = \"%s\"\n",
                c->dtype == DTYPE_F32 ? "float32" : "bfloat16");
    put_parallelism(out, c);
    if (c->compile)
        text_puts(out, "\n[compile]\nenable = true\n");
    text_printf(out, "\n[activation_checkpoint]\nmode = \"%s\"\n",
                selective                   ? "selective"
                : expressible_recomputes(c) ? "full"
                                            : "none");
    if (selective)
        text_printf(out, "selective_ac_option = \"%s\"\n", layers ? "2" : "op");
}

/* ---- Megatron-LM: megatron/training/arguments.py ---- */

/* Both programs refuse a length that positions do not reach. */
static void put_length(struct text *out, const struct choices *c)
{
    text_printf(out, "--seq-length %lld\n--max-position-embeddings %lld\n", (long long)c->seq,
                (long long)c->seq);
}

static void put_batch(struct text *out, const struct choices *c)
{
    text_printf(out, "--micro-batch-size %lld\n--global-batch-size %lld\n",
                (long long)c->micro_batch, (long long)c->global_batch);
}

/* Tensor ranks have parts of the tokens between their products. */
static void put_tensor(struct text *out, const struct choices *c)
{
    text_printf(out, "--tensor-model-parallel-size %u\n", c->tp);
    if (c->tp > 1)
        text_puts(out, "--sequence-parallel\n");
    text_printf(out, "--pipeline-model-parallel-size %u\n", c->pp);
}

static void put_context(struct text *out, const struct choices *c)
{
    text_printf(out, "--context-parallel-size %u\n", c->cp * c->hp);
    if (c->cp > 1 && c->hp > 1)
        text_printf(out, "--cp-comm-type a2a+p2p\n--hierarchical-context-parallel-sizes %u %u\n",
                    c->hp, c->cp);
    else if (c->hp > 1)
        text_puts(out, "--cp-comm-type a2a\n");
    else if (c->cp > 1)
        text_printf(out, "--cp-comm-type %s\n",
                    c->rotation == ROTATE_ALL_GATHER ? "all_gather" : "p2p");
}

/* Gradients are reduced while others are made, as predicted, and so are sharded parameters gathered. */
static void put_weights(struct text *out, const struct choices *c)
{
    bool zero2 = c->weights == CHOICE_WEIGHTS_ZERO2, fsdp = is_sharded(c) || zero2;
    if (fsdp)
        text_printf(out,
                    "--use-megatron-fsdp\n--data-parallel-sharding-strategy %s\n"
                    "--no-gradient-accumulation-fusion\n--ckpt-format fsdp_dtensor\n",
                    zero2 ? "optim_grads" : "optim_grads_params");
    if (shard_copies(c) > 1)
        text_printf(out,
                    "--num-distributed-optimizer-instances %u\n"
                    "--outer-dp-sharding-strategy no_shard\n",
                    shard_copies(c));
    if (c->weights != CHOICE_WEIGHTS_REPLICATED || has_host_optimizer(c))
        text_puts(out, "--use-distributed-optimizer\n");
    if (expressible_sharing(c) > 1)
        text_puts(out, "--overlap-grad-reduce\n");
    if (is_sharded(c))
        text_puts(out, "--overlap-param-gather\n");
    if (has_host_optimizer(c))
        text_puts(out, "--optimizer-cpu-offload\n--use-precision-aware-optimizer\n");
}

static void put_megatron(struct text *out, const struct choices *c)
{
    settings_put_megatron_model(out, c);
    put_length(out, c);
    put_batch(out, c);
    put_tensor(out, c);
    if (c->pipeline == CHOICE_PIPELINE_INTERLEAVED)
        text_printf(out, "--num-virtual-stages-per-pipeline-rank %u\n", c->virtual_stages);
    if (c->pp > 1 && c->dp > 1 && c->stage_placement == STAGES_INNER)
        text_puts(out, "--use-tp-pp-dp-mapping\n");
    put_context(out, c);
    put_weights(out, c);
    if (c->activations == CHOICE_ACTIVATIONS_SELECTIVE_CORE)
        text_puts(out, "--recompute-granularity selective\n");
    else if (expressible_recomputes(c))
        text_puts(out, "--recompute-granularity full\n--recompute-method uniform\n"
                       "--recompute-num-layers 1\n");
    if (c->dtype != DTYPE_F32)
        text_printf(out, "--attention-backend %s\n%s\n",
                    c->attention_impl == ATTENTION_CUDNN ? "fused" : "flash",
                    c->dtype == DTYPE_F16 ? "--fp16" : "--bf16");
}

/* ---- DeepSpeed: deepspeed/runtime/config.py, Megatron-DeepSpeed/megatron/arguments.py ---- */

/* What goes to the host is sharded, if over one rank. */
static int zero_stage(const struct choices *c)
{
    static const int stages[CHOICE_WEIGHTS_COUNT] = {0, 1, 2, 3, 3};
    return has_host_optimizer(c) && stages[c->weights] == 0 ? 1 : stages[c->weights];
}

static bool has_checkpoints_on_host(const struct choices *c)
{
    return c->activations == CHOICE_ACTIVATIONS_OFFLOAD ||
           c->activations == CHOICE_ACTIVATIONS_SELECTIVE_OFFLOAD;
}

static void put_config(struct text *out, const struct choices *c)
{
    text_puts(out, "# ds_config.json, which says nothing of the model\n{\n");
    text_printf(out, "  \"train_batch_size\": %lld,\n", (long long)c->global_batch);
    text_printf(out, "  \"train_micro_batch_size_per_gpu\": %lld,\n", (long long)c->micro_batch);
    text_printf(out, "  \"gradient_accumulation_steps\": %u,\n", c->accumulation);
    if (c->dtype != DTYPE_F32)
        text_printf(out, "  \"%s\": {\"enabled\": true},\n",
                    c->dtype == DTYPE_F16 ? "fp16" : "bf16");
    text_printf(out, "  \"zero_optimization\": {\n    \"stage\": %d", zero_stage(c));
    if (shard_copies(c) > 1)
        text_printf(out, ",\n    \"mics_shard_size\": %u", c->shard);
    if (has_host_optimizer(c))
        text_puts(out, ",\n    \"offload_optimizer\": {\"device\": \"cpu\", \"pin_memory\": true}");
    text_puts(out, "\n  },\n  \"activation_checkpointing\": {");
    text_printf(out, "\"cpu_checkpointing\": %s}\n}\n",
                has_checkpoints_on_host(c) ? "true" : "false");
}

static void put_deepspeed(struct text *out, const struct choices *c)
{
    put_config(out, c);
    text_puts(out, "# arguments\n");
    settings_put_deepspeed_model(out, c);
    put_length(out, c);
    text_printf(out, "--deepspeed\n--deepspeed_config ds_config.json\n--zero-stage %d\n",
                zero_stage(c));
    if (c->pp == 1 && zero_stage(c) > 1)
        text_puts(out, "--no-pipeline-parallel\n");
    put_batch(out, c);
    if (c->attention == CHOICE_ATTENTION_FPDT)
        text_printf(
            out, "--ds-sequence-parallel-fpdt\n--ds-sequence-parallel-fpdt-chunk-size %lld\n%s",
            (long long)c->chunk,
            c->kv_offload == KV_OFFLOAD_ON ? "--ds-sequence-parallel-fpdt-offloading\n" : "");
    text_printf(out, "--ds-sequence-parallel-size %u\n", c->cp * c->hp);
    put_tensor(out, c);
    if (expressible_recomputes(c))
        text_puts(out, "--deepspeed-activation-checkpointing --checkpoint-activations\n");
    if (c->dtype != DTYPE_F32)
        text_printf(out, "--use-flash-attn-v2\n%s\n", c->dtype == DTYPE_F16 ? "--fp16" : "--bf16");
}

void settings_print(struct text *out, enum framework framework, const struct choices *c)
{
    static void (*const put[FRAMEWORK_COUNT])(struct text *, const struct choices *) = {
        put_torchtitan, put_megatron, put_deepspeed};
    expressible_put_gaps(out, framework, c);
    put[framework](out, c);
}

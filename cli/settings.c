#include "cli/settings.h"

#include <stdbool.h>

const char *const framework_names[FRAMEWORK_COUNT] = {"torchtitan", "megatron", "deepspeed"};

static bool has_ring(const struct choices *c)
{
    return c->cp > 1;
}

static bool has_messages(const struct choices *c)
{
    return c->cp > 1 && c->rotation == ROTATE_P2P;
}

static bool has_heads(const struct choices *c)
{
    return c->hp > 1;
}

static bool has_both(const struct choices *c)
{
    return c->cp > 1 && c->hp > 1;
}

static bool has_windows(const struct choices *c)
{
    return c->cp > 1 && c->window > 1;
}

static bool has_tensor(const struct choices *c)
{
    return c->tp > 1;
}

static bool has_pipeline(const struct choices *c)
{
    return c->pp > 1;
}

static bool has_gpipe(const struct choices *c)
{
    return c->pp > 1 && c->pipeline == CHOICE_PIPELINE_GPIPE;
}

static bool has_interleaved(const struct choices *c)
{
    return c->pp > 1 && c->pipeline == CHOICE_PIPELINE_INTERLEAVED;
}

/* ZeRO-2 and above: deepspeed/runtime/pipe/engine.py */
static bool has_sharded_pipeline(const struct choices *c)
{
    return c->pp > 1 && c->weights >= CHOICE_WEIGHTS_ZERO2;
}

static bool has_zero_bubble(const struct choices *c)
{
    return c->pipeline == CHOICE_PIPELINE_ZB_1P || c->pipeline == CHOICE_PIPELINE_ZB_V;
}

static bool has_subsequences(const struct choices *c)
{
    return c->subsequences > 1;
}

static bool has_ratio(const struct choices *c)
{
    return c->activations == CHOICE_ACTIVATIONS_RATIO && c->subsequences * c->accumulation > 1;
}

static bool has_hsdp(const struct choices *c)
{
    return c->weights == CHOICE_WEIGHTS_HSDP;
}

/* torchtitan shards over all ranks that share a sequence, at the least. */
static bool has_small_shards(const struct choices *c)
{
    return has_hsdp(c) && c->shard % (c->cp * c->hp) != 0;
}

static bool has_f16(const struct choices *c)
{
    return c->dtype == DTYPE_F16;
}

/* Of a ring that Megatron has for messages alone, or with heads. */
static bool has_other_rotation(const struct choices *c)
{
    return has_ring(c) &&
           (c->rotation == ROTATE_ALL_TO_ALL || (c->rotation == ROTATE_ALL_GATHER && has_heads(c)));
}

static bool has_replicated_states(const struct choices *c)
{
    return c->weights == CHOICE_WEIGHTS_REPLICATED || c->weights == CHOICE_WEIGHTS_ZERO1;
}

static bool has_zero2(const struct choices *c)
{
    return c->weights == CHOICE_WEIGHTS_ZERO2;
}

static bool has_sharded_weights(const struct choices *c)
{
    return c->weights == CHOICE_WEIGHTS_ZERO3 || c->weights == CHOICE_WEIGHTS_HSDP;
}

static bool has_selective(const struct choices *c)
{
    return c->activations == CHOICE_ACTIVATIONS_SELECTIVE ||
           c->activations == CHOICE_ACTIVATIONS_SELECTIVE_OFFLOAD;
}

static bool has_offload(const struct choices *c)
{
    return c->activations == CHOICE_ACTIVATIONS_OFFLOAD ||
           c->activations == CHOICE_ACTIVATIONS_SELECTIVE_OFFLOAD;
}

static bool has_host_optimizer(const struct choices *c)
{
    return c->optimizer == CHOICE_OPTIMIZER_HOST;
}

static bool has_chunks(const struct choices *c)
{
    return c->chunks > 1;
}

static bool has_loss_chunks(const struct choices *c)
{
    return c->loss_chunks > 1;
}

static bool has_ffn_chunks(const struct choices *c)
{
    return c->ffn_chunks > 1;
}

static bool has_context_first(const struct choices *c)
{
    return has_both(c) && c->placement == PLACEMENT_CONTEXT_FIRST;
}

/* What a framework has no setting for, or only one that means something else. */
static const struct gap {
    enum framework framework;
    bool (*is_chosen)(const struct choices *c);
    const char *what;
} gaps[] = {
    {FRAMEWORK_TORCHTITAN, has_heads, "head ranks (Ulysses): context parallelism is a ring"},
    {FRAMEWORK_TORCHTITAN, has_messages,
     "keys and values as messages round the ring: an all-gather, or all-to-alls, which are set"},
    {FRAMEWORK_TORCHTITAN, has_windows, "windows of a double ring"},
    {FRAMEWORK_TORCHTITAN, has_replicated_states,
     "optimizer states sharded alone: FSDP shards all, DDP nothing; FSDP is set"},
    {FRAMEWORK_TORCHTITAN, has_zero2,
     "gradients sharded and parameters kept: reshard_after_forward = \"never\" comes near"},
    {FRAMEWORK_TORCHTITAN, has_small_shards,
     "shards within fewer ranks than share a sequence: FSDP shards over all of these; shards over "
     "all ranks are set"},
    {FRAMEWORK_TORCHTITAN, has_f16, "fp16: parameters are bfloat16 or float32; bfloat16 is set"},
    {FRAMEWORK_TORCHTITAN, has_host_optimizer,
     "optimizer states alone on the host: offload takes parameters and gradients along"},
    {FRAMEWORK_TORCHTITAN, has_selective,
     "selective checkpoints that keep attention's output: mode = \"selective\" with option \"op\" "
     "keeps products too"},
    {FRAMEWORK_TORCHTITAN, has_offload, "layer inputs on the host"},
    {FRAMEWORK_TORCHTITAN, has_chunks, "chunks of the sequence (FPDT)"},
    {FRAMEWORK_TORCHTITAN, has_loss_chunks, "the loss in pieces"},
    {FRAMEWORK_TORCHTITAN, has_ffn_chunks, "the feed-forward part in pieces"},
    {FRAMEWORK_MEGATRON, has_other_rotation,
     "keys and values by all-to-alls, or gathered beside head ranks: messages are set"},
    {FRAMEWORK_MEGATRON, has_gpipe, "all forwards before all backwards (GPipe); 1F1B is set"},
    {FRAMEWORK_MEGATRON, has_windows, "windows of a double ring"},
    {FRAMEWORK_MEGATRON, has_context_first, "context-first placement: head ranks are neighbours"},
    {FRAMEWORK_MEGATRON, has_zero_bubble, "zero-bubble pipelines; 1F1B is set"},
    {FRAMEWORK_MEGATRON, has_selective,
     "selective checkpoints that keep attention's output: selective recomputation of core_attn "
     "does "
     "the opposite; full is set"},
    {FRAMEWORK_MEGATRON, has_offload, "layer inputs on the host"},
    {FRAMEWORK_MEGATRON, has_chunks, "chunks of the sequence (FPDT)"},
    {FRAMEWORK_MEGATRON, has_loss_chunks, "the loss in pieces"},
    {FRAMEWORK_MEGATRON, has_ffn_chunks, "the feed-forward part in pieces"},
    {FRAMEWORK_DEEPSPEED, has_ring,
     "rings: sequences are cut by heads alone (Ulysses), and set so"},
    {FRAMEWORK_DEEPSPEED, has_sharded_pipeline,
     "ZeRO-2 and ZeRO-3 in a pipeline: they are set, and DeepSpeed refuses them"},
    {FRAMEWORK_DEEPSPEED, has_gpipe, "all forwards before all backwards (GPipe); 1F1B is set"},
    {FRAMEWORK_DEEPSPEED, has_interleaved, "several parts of the layers a stage; one is set"},
    {FRAMEWORK_DEEPSPEED, has_selective, "checkpoints that keep attention's output"},
    {FRAMEWORK_DEEPSPEED, has_zero_bubble, "zero-bubble pipelines; 1F1B is set"},
    {FRAMEWORK_DEEPSPEED, has_ffn_chunks, "the feed-forward part in pieces"},
    {FRAMEWORK_DEEPSPEED, has_loss_chunks, "the loss in pieces"},
    {FRAMEWORK_TORCHTITAN, has_subsequences,
     "subsequences of a pipeline (SPPO, Seq1F1B): sequences are whole"},
    {FRAMEWORK_TORCHTITAN, has_ratio,
     "part of the activations on the host (SPPO): all of them stay"},
    {FRAMEWORK_MEGATRON, has_subsequences,
     "subsequences of a pipeline (SPPO, Seq1F1B): sequences are whole"},
    {FRAMEWORK_MEGATRON, has_ratio, "part of the activations on the host (SPPO): all of them stay"},
    {FRAMEWORK_DEEPSPEED, has_subsequences,
     "subsequences of a pipeline (SPPO, Seq1F1B): sequences are whole"},
    {FRAMEWORK_DEEPSPEED, has_ratio,
     "part of the activations on the host (SPPO): all of them stay"},
};

static void put_gaps(struct text *out, enum framework framework, const struct choices *c)
{
    bool any = false;
    for (size_t i = 0; i < ARRAY_LEN(gaps); i++) {
        if (gaps[i].framework != framework || !gaps[i].is_chosen(c))
            continue;
        text_printf(out, "%s#   %s\n",
                    any ? "" : "# not expressed, so that the prediction is of something else:\n",
                    gaps[i].what);
        any = true;
    }
}

/* ---- torchtitan: torchtitan/config/job_config.py ---- */

static void put_torchtitan(struct text *out, const struct choices *c)
{
    static const char *const modes[CHOICE_ACTIVATIONS_COUNT] = {
        [CHOICE_ACTIVATIONS_KEEP] = "none",
        [CHOICE_ACTIVATIONS_SELECTIVE] = "selective",
    }; /* else full */
    static const char *const schedules[CHOICE_PIPELINE_COUNT] = {
        [CHOICE_PIPELINE_GPIPE] = "GPipe",
        [CHOICE_PIPELINE_INTERLEAVED] = "Interleaved1F1B",
        [CHOICE_PIPELINE_ZB_1P] = "InterleavedZeroBubble",
        [CHOICE_PIPELINE_ZB_V] = "ZBVZeroBubble",
    }; /* else 1F1B */
    const char *mode = modes[c->activations], *schedule = schedules[c->pipeline];
    /* a pipeline cuts the local batch into its micro-batches */
    long long local = (long long)c->micro_batch * (has_pipeline(c) ? c->accumulation : 1);
    /* the degrees of data, context, tensor and pipeline multiply to the ranks; FSDP shards over those of
     * data and context */
    uint32_t shard = c->ranks / c->tp / c->pp / c->cp / c->hp, replicate = 1;
    if (has_hsdp(c) && !has_small_shards(c)) {
        replicate = c->ranks / c->tp / c->pp / c->shard;
        shard = c->shard / (c->cp * c->hp);
    }
    text_puts(out, "[training]\n");
    text_printf(out, "seq_len = %lld\n", (long long)c->seq);
    text_printf(out, "local_batch_size = %lld\n", local);
    text_printf(out, "global_batch_size = %lld\n", (long long)c->global_batch);
    text_printf(out, "enable_cpu_offload = %s\n", has_host_optimizer(c) ? "true" : "false");
    text_printf(out, "mixed_precision_param = \"%s\"\n",
                c->dtype == DTYPE_F32 ? "float32" : "bfloat16");
    text_puts(out, "\n[parallelism]\n");
    text_printf(out, "data_parallel_replicate_degree = %u\n", replicate);
    text_printf(out, "data_parallel_shard_degree = %u\n", shard);
    text_printf(out, "context_parallel_degree = %u\n", c->cp * c->hp);
    text_printf(out, "tensor_parallel_degree = %u\n", c->tp);
    text_printf(out, "pipeline_parallel_degree = %u\n", c->pp);
    if (has_pipeline(c))
        text_printf(out,
                    "pipeline_parallel_schedule = \"%s\"\n"
                    "pipeline_parallel_microbatch_size = %lld\n",
                    schedule != NULL ? schedule : "1F1B", (long long)c->micro_batch);
    if (has_ring(c))
        text_printf(out, "context_parallel_rotate_method = \"%s\"\n",
                    c->rotation == ROTATE_ALL_GATHER ? "allgather" : "alltoall");
    if (has_zero2(c))
        text_puts(out, "fsdp_reshard_after_forward = \"never\"\n");
    text_printf(out, "\n[activation_checkpoint]\nmode = \"%s\"\n", mode != NULL ? mode : "full");
    if (c->activations == CHOICE_ACTIVATIONS_SELECTIVE)
        text_puts(out, "selective_ac_option = \"op\"\n");
}

/* Both programs refuse a length that positions do not reach. */
static void put_length(struct text *out, const struct choices *c)
{
    text_printf(out, "--seq-length %lld\n--max-position-embeddings %lld\n", (long long)c->seq,
                (long long)c->seq);
}

/* ---- Megatron-LM: megatron/training/arguments.py ---- */

static void put_megatron(struct text *out, const struct choices *c)
{
    put_length(out, c);
    text_printf(out, "--micro-batch-size %lld\n", (long long)c->micro_batch);
    text_printf(out, "--global-batch-size %lld\n", (long long)c->global_batch);
    text_printf(out, "--tensor-model-parallel-size %u\n", c->tp);
    if (has_tensor(c))
        text_puts(out, "--sequence-parallel\n");
    text_printf(out, "--pipeline-model-parallel-size %u\n", c->pp);
    if (c->pipeline == CHOICE_PIPELINE_INTERLEAVED)
        text_printf(out, "--num-virtual-stages-per-pipeline-rank %u\n", c->virtual_stages);
    text_printf(out, "--context-parallel-size %u\n", c->cp * c->hp);
    if (has_both(c))
        text_printf(out, "--cp-comm-type a2a+p2p\n--hierarchical-context-parallel-sizes %u %u\n",
                    c->hp, c->cp);
    else if (has_heads(c))
        text_puts(out, "--cp-comm-type a2a\n");
    else if (has_ring(c))
        text_printf(out, "--cp-comm-type %s\n",
                    c->rotation == ROTATE_ALL_GATHER ? "all_gather" : "p2p");
    if (has_sharded_weights(c) || has_zero2(c))
        text_printf(out,
                    "--use-megatron-fsdp\n--data-parallel-sharding-strategy %s\n"
                    "--use-distributed-optimizer\n--no-gradient-accumulation-fusion\n"
                    "--ckpt-format fsdp_dtensor\n",
                    has_zero2(c) ? "optim_grads" : "optim_grads_params");
    if (has_hsdp(c) && c->shard < c->ranks / c->tp / c->pp)
        text_printf(out,
                    "--num-distributed-optimizer-instances %u\n"
                    "--outer-dp-sharding-strategy no_shard\n",
                    c->ranks / c->tp / c->pp / c->shard);
    if (c->weights == CHOICE_WEIGHTS_ZERO1)
        text_puts(out, "--use-distributed-optimizer\n");
    if (c->activations != CHOICE_ACTIVATIONS_KEEP)
        text_puts(out, "--recompute-granularity full\n--recompute-method uniform\n"
                       "--recompute-num-layers 1\n");
    if (has_host_optimizer(c))
        text_puts(out, "--optimizer-cpu-offload\n--use-precision-aware-optimizer\n");
    if (c->dtype != DTYPE_F32)
        text_puts(out, c->dtype == DTYPE_F16 ? "--fp16\n" : "--bf16\n");
}

/* ---- DeepSpeed: deepspeed/runtime/config.py, Megatron-DeepSpeed/megatron/arguments.py ---- */

static void put_deepspeed(struct text *out, const struct choices *c)
{
    static const int stages[CHOICE_WEIGHTS_COUNT] = {0, 1, 2, 3, 3};
    text_puts(out, "# ds_config.json\n{\n");
    text_printf(out, "  \"train_batch_size\": %lld,\n", (long long)c->global_batch);
    text_printf(out, "  \"train_micro_batch_size_per_gpu\": %lld,\n", (long long)c->micro_batch);
    text_printf(out, "  \"gradient_accumulation_steps\": %u,\n", c->accumulation);
    if (c->dtype != DTYPE_F32)
        text_printf(out, "  \"%s\": {\"enabled\": true},\n",
                    c->dtype == DTYPE_F16 ? "fp16" : "bf16");
    text_printf(out, "  \"zero_optimization\": {\n    \"stage\": %d", stages[c->weights]);
    if (has_hsdp(c))
        text_printf(out, ",\n    \"mics_shard_size\": %u", c->shard);
    if (has_host_optimizer(c))
        text_puts(out, ",\n    \"offload_optimizer\": {\"device\": \"cpu\", \"pin_memory\": true}");
    text_puts(out, "\n  },\n  \"activation_checkpointing\": {");
    text_printf(out, "\"cpu_checkpointing\": %s}\n}\n", has_offload(c) ? "true" : "false");
    text_puts(out, "# arguments\n");
    text_printf(out, "--deepspeed\n--deepspeed_config ds_config.json\n--zero-stage %d\n",
                stages[c->weights]);
    if (c->pp == 1 && stages[c->weights] > 1)
        text_puts(out, "--no-pipeline-parallel\n");
    text_printf(out, "--micro-batch-size %lld\n--global-batch-size %lld\n",
                (long long)c->micro_batch, (long long)c->global_batch);
    put_length(out, c);
    if (has_chunks(c))
        text_printf(
            out, "--ds-sequence-parallel-fpdt\n--ds-sequence-parallel-fpdt-chunk-size %lld\n%s",
            (long long)c->chunk,
            c->kv_offload == KV_OFFLOAD_ON ? "--ds-sequence-parallel-fpdt-offloading\n" : "");
    text_printf(out, "--ds-sequence-parallel-size %u\n", c->cp * c->hp);
    text_printf(out, "--tensor-model-parallel-size %u\n", c->tp);
    text_printf(out, "--pipeline-model-parallel-size %u\n", c->pp);
    if (c->activations != CHOICE_ACTIVATIONS_KEEP)
        text_puts(out, "--deepspeed-activation-checkpointing --checkpoint-activations\n");
}

void settings_print(struct text *out, enum framework framework, const struct choices *c)
{
    static void (*const put[FRAMEWORK_COUNT])(struct text *, const struct choices *) = {
        put_torchtitan, put_megatron, put_deepspeed};
    text_printf(out, "# %u GPU%s; written by longhaul plan\n", c->ranks, c->ranks == 1 ? "" : "s");
    put_gaps(out, framework, c);
    put[framework](out, c);
}

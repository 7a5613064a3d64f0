/* Translates Megatron-LM's arguments (megatron/training/arguments.py) by the names of core 0.7 to 0.14, and of earlier
 * versions. */
#include "predict/launch/launch_tables.h"
#include "predict/launch/megatron_model.h"

#include "base/name_set.h"
#include "base/units.h"
#include "schedule/pipeline/pipeline.h"

#include <string.h>

/* clang-format off */
static const struct launch_row rows[] = {
    {"--num-layers",                      SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_LAYERS, NULL, NULL},
    {"--hidden-size",                     SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_HIDDEN, NULL, NULL},
    {"--num-attention-heads",             SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_HEADS, NULL, NULL},
    {"--kv-channels",                     SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_HEAD_DIM, NULL, NULL},
    {"--ffn-hidden-size",                 SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_FFN, NULL, NULL},
    {"--swiglu",                          SETS, LAUNCH_SWITCH, LAUNCH_SWIGLU, NULL, NULL},
    {"--disable-bias-linear",             SETS, LAUNCH_SWITCH, LAUNCH_NO_BIAS, NULL, NULL},
    {"--untie-embeddings-and-output-weights", SETS, LAUNCH_SWITCH, LAUNCH_UNTIED, NULL, NULL},
    {"--group-query-attention",           SETS, LAUNCH_SWITCH, LAUNCH_GROUPED, NULL, NULL},
    {"--num-query-groups",                SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_KV_HEADS, NULL, NULL},
    {"--add-qkv-bias",                    SETS, LAUNCH_SWITCH, LAUNCH_QKV_BIAS, NULL, NULL},
    {"--qk-layernorm",                    SETS, LAUNCH_SWITCH, LAUNCH_QK_NORM, NULL, NULL},
    {"--normalization",                   SETS, LAUNCH_TEXT,   LAUNCH_NORM, NULL, NULL},
    {"--norm-epsilon",                    SETS, LAUNCH_REAL_NUMBER, LAUNCH_NORM_EPS, NULL, NULL},
    {"--layernorm-epsilon",               SETS_AS_ALIAS, LAUNCH_REAL_NUMBER, LAUNCH_NORM_EPS, NULL, NULL},
    {"--position-embedding-type",         SETS, LAUNCH_TEXT,   LAUNCH_POSITIONS, NULL, NULL},
    {"--use-rotary-position-embeddings",  SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_ROPE, NULL, NULL},
    {"--rotary-base",                     SETS, LAUNCH_REAL_NUMBER, LAUNCH_ROPE_THETA, NULL, NULL},
    {"--window-size",                     SETS, LAUNCH_TEXT,   LAUNCH_WINDOW, NULL, NULL},
    {"--window-attn-skip-freq",           SETS, LAUNCH_TEXT,   LAUNCH_WINDOW_SKIP, NULL, NULL},
    {"--vocab-size",                      SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_VOCAB, NULL, NULL},
    {"--tokenizer-type",                  SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_TOKENIZER, NULL, NULL},
    {"--merge-file",                      SETS_AS_ALIAS, LAUNCH_ON_IF_GIVEN,  LAUNCH_MERGES, NULL, NULL},
    {"--seq-length",                      SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_SEQ, NULL, NULL},
    {"--encoder-seq-length",              SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_SEQ, NULL, NULL},
    {"--max-position-embeddings",         SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_POSITIONS_MAX, NULL, NULL},
    {"--micro-batch-size",                SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_MICRO_BATCH, NULL, NULL},
    {"--batch-size",                      SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_MICRO_BATCH, NULL, NULL},
    {"--global-batch-size",               SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_GLOBAL_BATCH, NULL, NULL},
    {"--tensor-model-parallel-size",      SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_TP, NULL, NULL},
    {"--model-parallel-size",             SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_TP, NULL, NULL},
    {"--sequence-parallel",               SETS, LAUNCH_SWITCH, LAUNCH_TOKENS_SPLIT, NULL, NULL},
    {"--pipeline-model-parallel-size",    SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_PP, NULL, NULL},
    {"--num-virtual-stages-per-pipeline-rank", SETS, LAUNCH_WHOLE_NUMBER, LAUNCH_VIRTUAL, NULL, NULL},
    {"--num-layers-per-virtual-pipeline-stage", SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_VIRTUAL_LAYERS, NULL, NULL},
    {"--account-for-embedding-in-pipeline-split", SETS, LAUNCH_SWITCH, LAUNCH_COUNTS_EMBEDDING, NULL, NULL},
    {"--account-for-loss-in-pipeline-split", SETS, LAUNCH_SWITCH, LAUNCH_COUNTS_HEAD, NULL, NULL},
    {"--use-tp-pp-dp-mapping",            SETS, LAUNCH_SWITCH, LAUNCH_STAGES_INNER, NULL, NULL},
    {"--context-parallel-size",           SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_CP, NULL, NULL},
    {"--cp-comm-type",                    SETS, LAUNCH_TEXT,   LAUNCH_CP_COMM, NULL, NULL},
    {"--hierarchical-context-parallel-sizes", SETS, LAUNCH_TEXT, LAUNCH_CP_SIZES, NULL, NULL},
    {"--use-megatron-fsdp",               SETS, LAUNCH_SWITCH, LAUNCH_FSDP, NULL, NULL},
    {"--use-custom-fsdp",                 SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_FSDP, NULL, NULL},
    {"--use-torch-fsdp2",                 SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_FSDP, NULL, NULL},
    {"--data-parallel-sharding-strategy", SETS, LAUNCH_TEXT,   LAUNCH_SHARDING, NULL, NULL},
    {"--no-gradient-accumulation-fusion", SETS, LAUNCH_SWITCH, LAUNCH_NO_FUSION, NULL, NULL},
    {"--ckpt-format",                     SETS, LAUNCH_TEXT,   LAUNCH_CHECKPOINT_FORMAT, NULL, NULL},
    {"--num-distributed-optimizer-instances", SETS, LAUNCH_WHOLE_NUMBER, LAUNCH_INSTANCES, NULL, NULL},
    {"--outer-dp-sharding-strategy",      SETS, LAUNCH_TEXT,   LAUNCH_OUTER_SHARDING, NULL, NULL},
    {"--use-distributed-optimizer",       SETS, LAUNCH_SWITCH, LAUNCH_SHARDED_OPTIMIZER, NULL, NULL},
    {"--overlap-grad-reduce",             SETS, LAUNCH_SWITCH, LAUNCH_OVERLAP_GRADS, NULL, NULL},
    {"--overlap-param-gather",            SETS, LAUNCH_SWITCH, LAUNCH_OVERLAP_PARAMS, NULL, NULL},
    {"--grad-reduce-in-bf16",             SETS, LAUNCH_SWITCH, LAUNCH_GRADS_16BIT, NULL, NULL},
    {"--optimizer-cpu-offload",           SETS, LAUNCH_SWITCH, LAUNCH_OPTIMIZER_OFFLOAD, NULL, NULL},
    {"--use-precision-aware-optimizer",   SETS, LAUNCH_SWITCH, LAUNCH_PRECISION_AWARE, NULL, NULL},
    {"--no-create-attention-mask-in-dataloader", SETS, LAUNCH_SWITCH, LAUNCH_NO_MASK, NULL, NULL},
    {"--attention-dropout",               SETS, LAUNCH_REAL_NUMBER, LAUNCH_DROPOUT, NULL, NULL},
    {"--hidden-dropout",                  SETS, LAUNCH_REAL_NUMBER, LAUNCH_HIDDEN_DROPOUT, NULL, NULL},
    {"--recompute-granularity",           SETS, LAUNCH_TEXT,   LAUNCH_GRANULARITY, NULL, NULL},
    {"--recompute-method",                SETS, LAUNCH_TEXT,   LAUNCH_METHOD, NULL, NULL},
    {"--recompute-num-layers",            SETS, LAUNCH_WHOLE_NUMBER,  LAUNCH_RECOMPUTED_LAYERS, NULL, NULL},
    {"--recompute-modules",               SETS, LAUNCH_TEXT,   LAUNCH_MODULES, NULL, NULL},
    {"--recompute-activations",           SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_SELECTIVE, NULL, NULL},
    {"--checkpoint-activations",          SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_CHECKPOINTS, NULL, NULL},
    {"--attention-backend",               SETS, LAUNCH_TEXT,   LAUNCH_ATTENTION, NULL, NULL},
    {"--fp8-format",                      SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_FP8, NULL, NULL},
    {"--fp8-recipe",                      SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_FP8_RECIPE, NULL, NULL},
    {"--fp8-param-gather",                SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_QUANTISED_WEIGHTS, NULL, NULL},
    {"--fp4-param-gather",                SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_QUANTISED_WEIGHTS, NULL, NULL},
    {"--first-last-layers-bf16",          SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_BF16_ENDS, NULL, NULL},
    {"--num-layers-at-start-in-bf16",     SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_BF16_FIRST, NULL, NULL},
    {"--num-layers-at-end-in-bf16",       SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_BF16_LAST, NULL, NULL},
    {"--cpu-offloading-num-layers",       SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_HOST_LAYERS, NULL, NULL},
    {"--cross-entropy-loss-fusion",       SETS, LAUNCH_SWITCH, LAUNCH_LOSS_FUSION, NULL, NULL},
    {"--cross-entropy-fusion-impl",       SETS, LAUNCH_TEXT,   LAUNCH_LOSS_KERNEL, NULL, NULL},
    {"--use-flash-attn",                  SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_FLASH, NULL, NULL},
    {"--bf16",                            SETS, LAUNCH_SWITCH, LAUNCH_BF16, NULL, NULL},
    {"--fp16",                            SETS, LAUNCH_SWITCH, LAUNCH_FP16, NULL, NULL},
    {"--num-experts",                     SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_EXPERTS, NULL, NULL},
    {"--expert-model-parallel-size",      SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_EP, NULL, NULL},
    {"--moe-router-topk",                 SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_EXPERTS_A_TOKEN, NULL, NULL},
    {"--moe-ffn-hidden-size",             SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_EXPERT_FFN, NULL, NULL},
    {"--moe-shared-expert-intermediate-size", SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_SHARED_FFN, NULL, NULL},
    {"--moe-layer-freq",                  SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_EXPERT_LAYERS, NULL, NULL},
    {"--moe-router-score-function",       SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_ROUTER_SCORE, NULL, NULL},
    {"--moe-router-pre-softmax",          SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_ROUTER_BEFORE, NULL, NULL},
    {"--moe-router-topk-scaling-factor",  SETS_AS_ALIAS, LAUNCH_REAL_NUMBER, LAUNCH_ROUTER_SCALE, NULL, NULL},

    {"--fp8-dot-product-attention",       SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_FP8_ATTENTION, NULL, NULL},
    {"--fp8-multi-head-attention",        SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_FP8_ATTENTION_ENDS, NULL, NULL},
    {"--fp8-*",                  UNMODELLED, "a detail of products in 8 bits: their scales and casts are predicted", NULL},
    {"--fp4-format",                      SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_FP4, NULL, NULL},
    {"--fp4-recipe",             UNMODELLED, "matrix products in 4 bits by another recipe: NVFP4 is predicted", "nvfp4"},
    {"--fp4-*",                  UNMODELLED, "a detail of products in 4 bits: their scales and casts are predicted", NULL},
    {"--rampup-batch-size",      UNMODELLED, "the batch grows at the beginning: the step of the whole batch is predicted", NULL},
    {"--tp-comm-overlap*",       UNMODELLED, "tensor ranks' collectives are predicted after products: up to their whole time too slow", NULL},
    {"--defer-embedding-wgrad-compute", UNMODELLED, "the order of the last stage's gradients: under 1 % of a step", NULL},
    {"--overlap-p2p-communication-warmup-flush", UNMODELLED, "messages between stages wait here: about 1 % of a step", NULL},
    {"--decoder-first-pipeline-num-layers", UNMODELLED, "stages here have equal layers: the fullest decides", NULL},
    {"--decoder-last-pipeline-num-layers",  UNMODELLED, "stages here have equal layers: the fullest decides", NULL},
    {"--pipeline-model-parallel-layout",    UNMODELLED, "stages here have equal layers: the fullest decides", NULL},
    {"--pipeline-model-parallel-split-rank", UNMODELLED, "encoders and decoders: only decoders are predicted", NULL},
    {"--cpu-offloading*",        UNMODELLED, "a detail of activations on the host: pinned memory is allocated once, and weights stay on the device", NULL},
    {"--distribute-saved-activations", UNMODELLED, "inputs of layers over tensor ranks: whole ones are kept without --sequence-parallel", NULL},
    {"--enable-cuda-graph",      UNMODELLED, "operators are predicted as launched one by one: --cuda-graphs router, layer or step says what one graph launches", NULL},
    {"--external-cuda-graph",    UNMODELLED, "operators are predicted as launched one by one: --cuda-graphs router, layer or step says what one graph launches", NULL},
    {"--cuda-graph-*",           UNMODELLED, "operators are predicted as launched one by one: --cuda-graphs router, layer or step says what one graph launches", NULL},
    {"--main-grads-dtype",       UNMODELLED, "gradients are fp32 here", "fp32"},
    {"--main-params-dtype",      UNMODELLED, "parameters of the optimizer are fp32 here: --states says others", "fp32"},
    {"--exp-avg*",               UNMODELLED, "moments are fp32 here: --states 8bit says others", "fp32"},
    {"--optimizer",              UNMODELLED, "AdamW is predicted: another optimizer has other states, up to 8 bytes a parameter", "adam"},
    {"--multi-latent-attention",          SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_LATENT, NULL, NULL},
    {"--q-lora-rank",                     SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_Q_LATENT, NULL, NULL},
    {"--kv-lora-rank",                    SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_KV_LATENT, NULL, NULL},
    {"--qk-head-dim",                     SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_PLAIN_DIM, NULL, NULL},
    {"--qk-pos-emb-head-dim",             SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_ROPE_DIM, NULL, NULL},
    {"--v-head-dim",                      SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER,  LAUNCH_V_DIM, NULL, NULL},
    {"--mtp-num-layers",         UNMODELLED, "layers that predict further tokens: about a layer and a head each", NULL},
    {"--expert-tensor-parallel-size", UNMODELLED, "experts over tensor ranks: they are not divided here", "1"},
    {"--moe-token-dispatcher-type",       SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_DISPATCHER, NULL, NULL},
    {"--moe-enable-deepep",               SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_DEEPEP, NULL, NULL},
    {"--moe-flex-dispatcher-backend",     SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_FLEX_BACKEND, NULL, NULL},
    {"--moe-expert-capacity-factor",      SETS_AS_ALIAS, LAUNCH_REAL_NUMBER, LAUNCH_CAPACITY, NULL, NULL},
    {"--moe-pad-expert-input-to-capacity", SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_CAPACITY_PAD, NULL, NULL},
    {"--moe-token-drop-policy",           SETS_AS_ALIAS, LAUNCH_TEXT,   LAUNCH_DROP_POLICY, NULL, NULL},
    {"--moe-shared-expert-overlap",       SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_SHARED_OVERLAP, NULL, NULL},
    {"--moe-layer-recompute",             SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_MOE_RECOMPUTE, NULL, NULL},
    {"--overlap-moe-expert-parallel-comm", SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_EXPERT_OVERLAP, NULL, NULL},
    {"--delay-wgrad-compute",             SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_DELAYED_WGRAD, NULL, NULL},
    {"--moe-*",                  UNMODELLED, "a detail of experts: loads are even here, and products grouped", NULL},
    {"--cp-*",                   UNMODELLED, "a detail of context parallelism", NULL},
    {"--squared-relu",           UNMODELLED, "GELU is predicted, which has the same products", NULL},
    {"--rotary-percent",         UNMODELLED, "all of a head is rotated here: under 1 % of a step", "1.0 1"},
    {"--mscale*",                UNMODELLED, "angles or the scale of scores: they take no time, and `run` computes without", NULL},
    {"--yarn-*",                 UNMODELLED, "angles or the scale of scores: they take no time, and `run` computes without", NULL},
    {"--no-yarn-*",              UNMODELLED, "angles or the scale of scores: they take no time, and `run` computes without", NULL},
    {"--softmax-scale",          UNMODELLED, "angles or the scale of scores: they take no time, and `run` computes without", NULL},
    {"--transformer-impl",       UNMODELLED, "TransformerEngine's layers are predicted", "transformer_engine"},
    {"--spec",                   UNMODELLED, "another layer than the usual one: not alike", NULL},
    {"--hybrid-context-parallel", UNMODELLED, "context ranks by the length of documents: all sequences have the same cp here", NULL},
    {"--dynamic-context-parallel", UNMODELLED, "context ranks by the length of documents: all sequences have the same cp here", NULL},
    {"--hybrid-*",               UNMODELLED, "layers other than attention: not alike", NULL},
    {"--reset-attention-mask",   UNMODELLED, "documents do not see each other: full causal attention is predicted, which is more work", NULL},
    {"--context-parallel-ulysses-degree", UNMODELLED, "of a fork", NULL},
    {"--empty-unused-memory-level", UNMODELLED, "the allocator's cache is emptied in each step: less memory stays reserved, and steps are slower", "0"},
    {"--ddp-bucket-size",        UNMODELLED, "sizes of the buckets of gradients: the framework's own are predicted", NULL},
    {"--ddp-num-buckets",        UNMODELLED, "sizes of the buckets of gradients: the framework's own are predicted", NULL},
    {"--ddp-pad-buckets-for-high-nccl-busbw", UNMODELLED, "sizes of the buckets of gradients: the framework's own are predicted", NULL},
    {"--ddp-reduce-scatter-with-fp32-accumulation", UNMODELLED, "gradients are exchanged in bf16 and summed in fp32: a reduce-scatter is predicted", NULL},
    {"--high-priority-stream-groups", UNMODELLED, "priorities of collectives: none has any here", NULL},
    {"--nccl-communicator-config-path", UNMODELLED, "settings of NCCL: its own choice is predicted", NULL},
    {"--use-checkpoint-args",    UNMODELLED, "the checkpoint has the model's sizes: those of the arguments are predicted", NULL},
    {"--is-hybrid-model",        UNMODELLED, "layers other than attention: not alike", NULL},
    {"--no-rope-fusion",         UNMODELLED, "fused kernels are predicted: without them there are more memory-bound ones", NULL},
    {"--yaml-cfg",               UNMODELLED, "this file is not read: give its settings as arguments", NULL},

    {"--data-args-path", IGNORED}, {"--num-dataset-*", IGNORED}, {"--load-main-params-from-ckpt", IGNORED}, {"--load-model-opt-format", IGNORED},
    {"--no-mmap-*", IGNORED}, {"--async-save", IGNORED}, {"--apply-query-key-*", IGNORED},
    {"--apply-layernorm-1p", IGNORED}, {"--use-mcore-models", IGNORED}, {"--calculate-per-token-loss", IGNORED},
    {"--manual-gc*", IGNORED}, {"--attention-softmax-in-fp32", IGNORED}, {"--rotary-interleaved", IGNORED},
    {"--rotary-scaling-factor", IGNORED}, {"--rotary-seq-len-interpolation-factor", IGNORED},
    {"--use-rope-scaling", IGNORED}, {"--rope-scaling-factor", IGNORED}, {"--te-rng-tracker", IGNORED},
    {"--dist-ckpt-*", IGNORED}, {"--use-dist-ckpt", IGNORED}, {"--auto-detect-ckpt-format", IGNORED},
    {"--ddp-average-in-collective", IGNORED}, {"--ddp-param-name-patterns-for-fp32-local-accumulation", IGNORED},
    {"--mock-data", IGNORED}, {"--tiktoken-*", IGNORED}, {"--use-cpu-initialization", IGNORED},
    {"--profile*", IGNORED}, {"--use-pytorch-profiler", IGNORED}, {"--enable-ft-package", IGNORED},
    {"--check-weight-hash-across-dp-replicas-interval", IGNORED}, {"--decoupled-*", IGNORED},
    {"--straggler-*", IGNORED}, {"--no-check-for-nan-in-loss-and-grad", IGNORED}, {"--local-rank", IGNORED},
    {"--lazy-mpu-init", IGNORED},
};
/* clang-format on */
const struct launch_table launch_megatron_table = {.row = rows,
                                                   .row_count = ARRAY_LEN(rows),
                                                   .table_of_shared_rows =
                                                       &launch_megatron_shared_table};

/* ---- fields of choices ---- */

static bool shards_weights(const struct choices *c)
{
    return c->weights == CHOICE_WEIGHTS_ZERO3 || c->weights == CHOICE_WEIGHTS_HSDP;
}

/* Returns how many copies of the weights there are, each sharded over a group of ranks; only HSDP has several. */
static uint32_t sharded_weight_copy_count(const struct choices *c)
{
    return c->weights == CHOICE_WEIGHTS_HSDP ? expressible_weight_sharing_ranks(c) / c->shard : 1;
}

static void set_context_fields(struct launch *l, const struct choices *c)
{
    launch_set_count(l, LAUNCH_CP, c->cp * c->hp);
    if (c->cp > 1 && c->hp > 1) {
        launch_set_text(l, LAUNCH_CP_COMM, "a2a+p2p");
        launch_set_text(l, LAUNCH_CP_SIZES, arena_printf(&l->arena, "%u %u", c->hp, c->cp));
    } else if (c->hp > 1) {
        launch_set_text(l, LAUNCH_CP_COMM, "a2a");
    } else if (c->cp > 1) {
        launch_set_text(l, LAUNCH_CP_COMM, c->rotation == ROTATE_ALL_GATHER ? "all_gather" : "p2p");
    }
}

/* Sets the fields that say how weights are shared, what overlaps computation, and where the optimizer runs. Some
 * require others: Megatron-FSDP requires its own checkpoint format and no fusion of gradient accumulation; an optimizer
 * on the host requires the precision-aware optimizer, which requires the distributed one. */
static void set_weight_fields(struct launch *l, const struct choices *c)
{
    bool is_zero2 = c->weights == CHOICE_WEIGHTS_ZERO2;
    bool host = c->optimizer == CHOICE_OPTIMIZER_HOST;
    if (shards_weights(c) || is_zero2) {
        launch_set_count(l, LAUNCH_FSDP, 1);
        launch_set_text(l, LAUNCH_SHARDING, is_zero2 ? "optim_grads" : "optim_grads_params");
        launch_set_count(l, LAUNCH_NO_FUSION, 1);
        launch_set_text(l, LAUNCH_CHECKPOINT_FORMAT, "fsdp_dtensor");
    }
    if (sharded_weight_copy_count(c) > 1) {
        launch_set_count(l, LAUNCH_INSTANCES, sharded_weight_copy_count(c));
        launch_set_text(l, LAUNCH_OUTER_SHARDING, "no_shard");
    }
    if (c->weights != CHOICE_WEIGHTS_REPLICATED || host)
        launch_set_count(l, LAUNCH_SHARDED_OPTIMIZER, 1);
    if (expressible_weight_sharing_ranks(c) > 1 && !c->profile->reduces_after_backward)
        launch_set_count(l, LAUNCH_OVERLAP_GRADS, 1);
    if (shards_weights(c) || c->param_gather == PARAM_GATHER_OVERLAP)
        launch_set_count(l, LAUNCH_OVERLAP_PARAMS, 1);
    if (c->gradients == GRADIENTS_16BIT && c->dtype == DTYPE_BF16)
        launch_set_count(l, LAUNCH_GRADS_16BIT, 1);
    if (host) {
        launch_set_count(l, LAUNCH_OPTIMIZER_OFFLOAD, 1);
        launch_set_count(l, LAUNCH_PRECISION_AWARE, 1);
    }
}

static void set_activation_fields(struct launch *l, const struct choices *c)
{
    const uint32_t core = 1u << RECOMPUTE_CORE_ATTN, others = c->recompute_modules & ~core;
    const uint32_t modules =
        others | (c->activations == CHOICE_ACTIVATIONS_SELECTIVE_CORE ? core : 0);
    if (modules != 0)
        launch_set_text(l, LAUNCH_GRANULARITY, "selective");
    if (others != 0) {
        struct text names = {0};
        name_set_append_to_text(&names, modules, recompute_module_names, RECOMPUTE_MODULE_COUNT,
                                " ");
        launch_set_text(l, LAUNCH_MODULES, names.data);
        text_release(&names);
    }
    if (modules == 0 && expressible_choices_recompute(c)) {
        launch_set_text(l, LAUNCH_GRANULARITY, "full");
        launch_set_text(l, LAUNCH_METHOD, "uniform");
        launch_set_count(l, LAUNCH_RECOMPUTED_LAYERS, 1);
    }
}

void launch_set_megatron_fields(struct launch *l, const struct choices *c)
{
    const struct transformer *m = c->model;
    static const char *const positions[POSITIONS_COUNT] = {"rope", "learned_absolute", "none"};
    megatron_set_model_fields(l, m);
    if (m->kv_heads != m->heads) {
        launch_set_count(l, LAUNCH_GROUPED, 1);
        launch_set_count(l, LAUNCH_KV_HEADS, m->kv_heads);
    }
    if (m->bias_qkv && !m->bias_o && !m->bias_ffn)
        launch_set_count(l, LAUNCH_QKV_BIAS, 1);
    if (m->qk_norm)
        launch_set_count(l, LAUNCH_QK_NORM, 1);
    launch_set_text(l, LAUNCH_NORM, m->norm == NORM_RMSNORM ? "RMSNorm" : "LayerNorm");
    launch_set_text(l, LAUNCH_POSITIONS, positions[m->positions]);
    if (m->attention_window > 0) /* keys before the query's own, keys after it */
        launch_set_text(l, LAUNCH_WINDOW,
                        arena_printf(&l->arena, "%lld,0", (long long)m->attention_window - 1));
    if (m->attention_window > 0 && m->full_attention_every > 0)
        launch_set_text(l, LAUNCH_WINDOW_SKIP,
                        arena_printf(&l->arena, "%lld", (long long)m->full_attention_every));
    launch_set_count(l, LAUNCH_VOCAB, m->vocab);
    launch_set_count(l, LAUNCH_NO_MASK,
                     1); /* else each micro-batch has a mask of seq x seq bytes */
    megatron_set_size_fields(l, c);
    if (c->pipeline == CHOICE_PIPELINE_INTERLEAVED)
        launch_set_count(l, LAUNCH_VIRTUAL, c->virtual_stages);
    if (c->pp > 1 && c->dp > 1 && c->stage_placement == STAGES_INNER)
        launch_set_count(l, LAUNCH_STAGES_INNER, 1);
    if (pipeline_embedding_layers(c) > 0)
        launch_set_count(l, LAUNCH_COUNTS_EMBEDDING, 1);
    if (pipeline_head_layers(c) > 0)
        launch_set_count(l, LAUNCH_COUNTS_HEAD, 1);
    set_context_fields(l, c);
    set_weight_fields(l, c);
    launch_set_number(l, LAUNCH_DROPOUT, c->attention_dropout ? 0.1 : 0);
    launch_set_number(l, LAUNCH_HIDDEN_DROPOUT, 0);
    set_activation_fields(l, c);
    if (c->loss == LOSS_TE) {
        launch_set_count(l, LAUNCH_LOSS_FUSION, 1);
        launch_set_text(l, LAUNCH_LOSS_KERNEL, "te");
    }
    if (c->dtype == DTYPE_F32)
        return;
    launch_set_text(l, LAUNCH_ATTENTION, c->attention_impl == ATTENTION_CUDNN ? "fused" : "flash");
    launch_set_count(l, c->dtype == DTYPE_F16 ? LAUNCH_FP16 : LAUNCH_BF16, 1);
}

/* ---- options of fields ---- */

/* Reads the text "A B" of --hierarchical-context-parallel-sizes: A head ranks, stored in *heads, and rings of B ranks.
 * Returns false if it is not two sizes with the product cp. */
static bool parse_hierarchy_sizes(const char *text, int64_t cp, int64_t *heads)
{
    int64_t ring = 0;
    const char *blank = strchr(text, ' ');
    return blank != NULL && parse_i64(text, (size_t)(blank - text), heads) &&
           parse_i64(blank + 1, strlen(blank + 1), &ring) && *heads > 0 && *heads * ring == cp;
}

static enum status add_context_options(struct launch *l, struct launch_degrees *d,
                                       struct diag *diag)
{
    int64_t cp = launch_count_or(l, LAUNCH_CP, 1);
    d->cp = cp;
    d->hp = 1;
    if (cp <= 1)
        return STATUS_OK;
    if (launch_field_text_is(l, LAUNCH_CP_COMM, "a2a")) {
        d->cp = 1;
        d->hp = cp;
    } else if (launch_field_text_is(l, LAUNCH_CP_COMM, "a2a+p2p")) {
        if (!launch_has_field(l, LAUNCH_CP_SIZES) ||
            !parse_hierarchy_sizes(launch_field_text(l, LAUNCH_CP_SIZES), cp, &d->hp))
            return launch_field_error(
                l, LAUNCH_CP_COMM, diag,
                "needs --hierarchical-context-parallel-sizes A B, head ranks and "
                "ring, that make %lld",
                (long long)cp);
        d->cp = cp / d->hp;
    } else if (launch_has_field(l, LAUNCH_CP_COMM) &&
               !launch_field_text_is(l, LAUNCH_CP_COMM, "p2p") &&
               !launch_field_text_is(l, LAUNCH_CP_COMM, "all_gather")) {
        launch_remark_on_field(l, REMARK_UNMODELLED, LAUNCH_CP_COMM,
                               "one kind for all layers is predicted: p2p");
    }
    return STATUS_OK;
}

static enum status add_weight_options(struct launch *l, struct launch_known_facts given,
                                      const struct launch_degrees *d, struct diag *diag)
{
    static const char *const names[] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
    int64_t instances = launch_count_or(l, LAUNCH_INSTANCES, 1);
    int64_t sharing = given.gpu_count / (d->tp * d->pp);
    int weights = launch_is_on(l, LAUNCH_SHARDED_OPTIMIZER) ? CHOICE_WEIGHTS_ZERO1
                                                            : CHOICE_WEIGHTS_REPLICATED;
    if (launch_is_on(l, LAUNCH_FSDP)) {
        weights = CHOICE_WEIGHTS_ZERO3; /* what --use-torch-fsdp2 does */
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
            if (launch_field_text_is(l, LAUNCH_SHARDING, names[i]))
                weights = CHOICE_WEIGHTS_REPLICATED + (int)i;
    }
    bool parts =
        instances > 1 && (weights == CHOICE_WEIGHTS_ZERO3 || weights == CHOICE_WEIGHTS_ZERO1);
    if (parts && sharing == 0)
        return launch_field_error(
            l, LAUNCH_INSTANCES, diag,
            "the number of GPUs says over how many ranks a copy is shared: give "
            "--cluster, and --gpus");
    if (parts && sharing % instances != 0)
        return launch_field_error(l, LAUNCH_INSTANCES, diag,
                                  "%lld copies do not divide %lld ranks that hold the same weights",
                                  (long long)instances, (long long)sharing);
    if (parts && weights == CHOICE_WEIGHTS_ZERO3)
        weights = CHOICE_WEIGHTS_HSDP;
    launch_add_option(l, launch_is_on(l, LAUNCH_FSDP) ? LAUNCH_FSDP : LAUNCH_SHARDED_OPTIMIZER,
                      "weights", weights_names[weights]);
    if (parts)
        launch_add_count_option(l, LAUNCH_INSTANCES, "shard", sharing / instances);
    if (launch_is_on(l, LAUNCH_OPTIMIZER_OFFLOAD))
        launch_add_option(l, LAUNCH_OPTIMIZER_OFFLOAD, "optimizer", "host");
    if (launch_is_on(l, LAUNCH_OVERLAP_PARAMS) && weights == CHOICE_WEIGHTS_ZERO1 && sharing > 1 &&
        !launch_is_on(l, LAUNCH_FSDP) && !launch_is_on(l, LAUNCH_OPTIMIZER_OFFLOAD))
        launch_add_option(l, LAUNCH_OVERLAP_PARAMS, "param-gather", "overlap");
    if (launch_is_on(l, LAUNCH_GRADS_16BIT))
        launch_add_option(l, LAUNCH_GRADS_16BIT, "gradients", "16bit");
    if (launch_is_on(l, LAUNCH_OVERLAP_GRADS) && d->cp * d->hp == 1)
        launch_remark_on_field(
            l, REMARK_UNMODELLED, LAUNCH_OVERLAP_GRADS,
            "profile megatron reduces gradients after the backward: too slow by what "
            "a reduction takes (--profile megatron-te hides it)");
    return STATUS_OK;
}

/* Returns the modules that field LAUNCH_MODULES names, as bits of enum recompute_module. Blanks, commas, quotes and
 * brackets separate the names. Sets *unknown to the first name that is no module here; NULL: all are. */
static unsigned read_modules(struct launch *l, const char **unknown)
{
    static const char apart[] = " ,\t'\"[]";
    unsigned modules = 0;
    *unknown = NULL;
    for (const char *at = launch_field_text(l, LAUNCH_MODULES); *at != '\0';) {
        at += strspn(at, apart);
        const size_t size = strcspn(at, apart);
        const int found = name_set_find(recompute_module_names, RECOMPUTE_MODULE_COUNT, at, size);
        if (found >= 0)
            modules |= 1u << found;
        else if (size > 0 && *unknown == NULL)
            *unknown = arena_text(&l->arena, at, size);
        at += size;
    }
    return modules;
}

/* Adds the option of the modules that are recomputed besides attention's core, if there are any. modules: bits of enum
 * recompute_module. */
static void add_modules_option(struct launch *l, unsigned modules)
{
    struct text names = {0};
    modules &= ~(1u << RECOMPUTE_CORE_ATTN);
    name_set_append_to_text(&names, modules, recompute_module_names, RECOMPUTE_MODULE_COUNT, ",");
    if (modules != 0)
        launch_add_option(
            l, launch_has_field(l, LAUNCH_MODULES) ? LAUNCH_MODULES : LAUNCH_MOE_RECOMPUTE,
            "recompute-modules", names.data);
    text_release(&names);
}

/* Adds the options of recomputation, and the number of layers whose activations are kept on the host. Modules that are
 * recomputed selectively are those that are named; if none is, core_attn. --moe-layer-recompute switches selective
 * recomputation on and adds the module moe (megatron/core/transformer/transformer_config.py, __post_init__()). */
static void add_recompute_options(struct launch *l)
{
    const bool moe = launch_is_on(l, LAUNCH_MOE_RECOMPUTE);
    bool chosen = moe || launch_field_text_is(l, LAUNCH_GRANULARITY, "selective") ||
                  launch_is_on(l, LAUNCH_SELECTIVE);
    const char *unknown = NULL;
    const unsigned modules = (launch_has_field(l, LAUNCH_MODULES) ? read_modules(l, &unknown)
                                                                  : 1u << RECOMPUTE_CORE_ATTN) |
                             (moe ? 1u << RECOMPUTE_MOE : 0);
    bool selective = chosen && (modules >> RECOMPUTE_CORE_ATTN & 1) != 0;
    bool full =
        launch_field_text_is(l, LAUNCH_GRANULARITY, "full") || launch_is_on(l, LAUNCH_CHECKPOINTS);
    const enum launch_field field =
        moe && !launch_has_field(l, LAUNCH_GRANULARITY) ? LAUNCH_MOE_RECOMPUTE : LAUNCH_GRANULARITY;
    launch_add_option(l, full || selective ? field : LAUNCH_FIELD_COUNT, "activations",
                      full        ? "full"
                      : selective ? "selective-core"
                                  : "keep");
    if (launch_count_or(l, LAUNCH_HOST_LAYERS, 0) > 0 &&
        (launch_is_on(l, LAUNCH_HOST_SWITCH) || l->table_file == NULL))
        launch_add_count_option(l, LAUNCH_HOST_LAYERS, "host-layers",
                                launch_count_or(l, LAUNCH_HOST_LAYERS, 0));
    if (full && launch_field_text_is(l, LAUNCH_METHOD, "block"))
        launch_remark_on_field(
            l, REMARK_UNMODELLED, LAUNCH_METHOD,
            "%lld layers of each stage are recomputed: all are, here, which is slower "
            "and needs less memory",
            (long long)launch_count_or(l, LAUNCH_RECOMPUTED_LAYERS, 1));
    else if (full && launch_count_or(l, LAUNCH_RECOMPUTED_LAYERS, 1) > 1)
        launch_remark_on_field(
            l, REMARK_UNMODELLED, LAUNCH_RECOMPUTED_LAYERS,
            "the input of each layer is kept here: memory of inputs is that many times "
            "less");
    if (moe && full)
        launch_remark_on_field(
            l, REMARK_UNMODELLED, LAUNCH_MOE_RECOMPUTE,
            "Megatron-LM refuses it where whole layers are recomputed: they are");
    if (chosen && !full)
        add_modules_option(l, modules);
    if (chosen && !full && unknown != NULL)
        launch_remark_on_field(l, REMARK_UNMODELLED, LAUNCH_MODULES,
                               "module %s is not known here: what it would drop is kept", unknown);
}

/* Masks of fewer bytes than this are not worth a remark: this is a third of a percent of 80 GiB. */
static const double MASK_LEAST = 1 << 28;

/* Adds a remark on the attention mask that the data loader makes for each micro-batch unless LAUNCH_NO_MASK is on, if
 * it has at least MASK_LEAST bytes. It has one byte for each pair of tokens of a sequence, on the GPUs of the first and
 * the last stage (megatron/core/datasets/gpt_dataset.py, megatron/core/utils.py). */
static void remark_attention_mask_bytes(struct launch *l)
{
    double seq = launch_number_or(l, LAUNCH_SEQ, 0);
    double bytes = launch_number_or(l, LAUNCH_MICRO_BATCH, 1) * seq * seq;
    if (launch_is_on(l, LAUNCH_NO_MASK) || bytes < MASK_LEAST)
        return;
    struct text text = {0};
    units_put_gib(&text, bytes);
    launch_remark_on_field(
        l, REMARK_UNMODELLED, LAUNCH_SEQ,
        "the loader makes a mask of seq x seq bytes a sequence: %s more on the GPUs of "
        "the first and the last stage than is predicted; "
        "--no-create-attention-mask-in-dataloader leaves it out",
        text.data);
    text_release(&text);
}

static enum status add_stage_and_batch_options(struct launch *l, struct diag *diag)
{
    int64_t virtual = launch_count_or(l, LAUNCH_VIRTUAL, 0), pp = launch_count_or(l, LAUNCH_PP, 1);
    int64_t per_part = launch_count_or(l, LAUNCH_VIRTUAL_LAYERS, 0);
    int64_t layers = launch_count_or(l, LAUNCH_LAYERS, 0);
    if (per_part > 0 && (pp < 1 || layers % (pp * per_part) != 0))
        return launch_field_error(
            l, LAUNCH_VIRTUAL_LAYERS, diag,
            "%lld layers do not divide over %lld stages in parts of that many", (long long)layers,
            (long long)pp);
    if (per_part > 0)
        virtual = layers / (pp * per_part);
    if (virtual > 1 && pp > 1) {
        launch_add_option(l, LAUNCH_VIRTUAL, "pipeline", "interleaved");
        launch_add_count_option(l, LAUNCH_VIRTUAL, "virtual-stages", virtual);
    }
    if (launch_is_on(l, LAUNCH_STAGES_INNER) && pp > 1)
        launch_add_option(l, LAUNCH_STAGES_INNER, "stage-placement", "inner");
    bool embedding = launch_is_on(l, LAUNCH_COUNTS_EMBEDDING),
         head = launch_is_on(l, LAUNCH_COUNTS_HEAD);
    if (pp > 1 && (embedding || head))
        launch_add_option(l, embedding ? LAUNCH_COUNTS_EMBEDDING : LAUNCH_COUNTS_HEAD,
                          "stage-layers",
                          stage_layers_names[embedding && head ? STAGE_LAYERS_AND_BOTH_ENDS
                                             : embedding       ? STAGE_LAYERS_AND_EMBEDDING
                                                               : STAGE_LAYERS_AND_HEAD]);
    megatron_add_batch_options(l);
    return STATUS_OK;
}

static void add_dtype_and_attention_options(struct launch *l)
{
    bool f16 = launch_is_on(l, LAUNCH_FP16), bf16 = launch_is_on(l, LAUNCH_BF16);
    launch_add_option(l,
                      f16    ? LAUNCH_FP16
                      : bf16 ? LAUNCH_BF16
                             : LAUNCH_FIELD_COUNT,
                      "dtype",
                      f16    ? "f16"
                      : bf16 ? "bf16"
                             : "f32");
    if (launch_field_text_is(l, LAUNCH_ATTENTION, "fused"))
        launch_add_option(l, LAUNCH_ATTENTION, "attention", "cudnn");
    else if (launch_field_text_is(l, LAUNCH_ATTENTION, "flash") || launch_is_on(l, LAUNCH_FLASH))
        launch_add_option(l, LAUNCH_ATTENTION, "attention", "fa2");
    else if (launch_has_field(l, LAUNCH_ATTENTION) &&
             !launch_field_text_is(l, LAUNCH_ATTENTION, "auto"))
        launch_remark_on_field(l, REMARK_UNMODELLED, LAUNCH_ATTENTION,
                               "fused kernels are predicted: without them scores go to memory");
    double dropout = launch_number_or(l, LAUNCH_DROPOUT, 0.1); /* the default of both Megatrons */
    launch_add_option(l, LAUNCH_DROPOUT, "dropout", dropout > 0 ? "on" : "off");
    if (!launch_has_field(l, LAUNCH_DROPOUT))
        launch_add_remark_printf(l, REMARK_ASSUMED, "--dropout on", (struct loc){0},
                                 "--attention-dropout is not given, and 0.1 by default");
}

/* Adds the option of the loss if it is not the profile's, which is `te` with context or head ranks and else `megatron`.
 * The option is `te`, TransformerEngine's loss, which overwrites the logits, or `megatron`, Megatron-LM's loss over
 * fp32 logits. Megatron-LM's fused loss kernel reads fp32 logits, too, so it counts as `megatron`
 * (megatron/core/models/common/language_module). */
static void add_loss_option(struct launch *l, const struct launch_degrees *d)
{
    bool linear = launch_field_text_is(l, LAUNCH_LOSS_KERNEL, "linear"),
         fused = launch_is_on(l, LAUNCH_LOSS_FUSION);
    bool te = linear || launch_field_text_is(l, LAUNCH_LOSS_KERNEL, "te");
    bool profile_te = d->cp * d->hp > 1;
    if (te && !fused)
        launch_remark_on_field(l, REMARK_ASSUMED, LAUNCH_LOSS_KERNEL,
                               "without cross_entropy_loss_fusion it has no effect");
    if (linear && fused)
        launch_remark_on_field(
            l, REMARK_UNMODELLED, LAUNCH_LOSS_KERNEL,
            "logits that are never in memory: TransformerEngine's loss is predicted, "
            "with 2 bytes a logit");
    if ((te && fused) != profile_te)
        launch_add_option(l, te && fused ? LAUNCH_LOSS_KERNEL : LAUNCH_LOSS_FUSION, "loss",
                          te && fused ? "te" : "megatron");
}

enum status launch_add_megatron_options(struct launch *l, struct launch_known_facts given,
                                        struct diag *diag)
{
    struct launch_degrees d = {.tp = launch_count_or(l, LAUNCH_TP, 1),
                               .pp = launch_count_or(l, LAUNCH_PP, 1)};
    enum status status = STATUS_OK;
    if (l->has_read_framework_file[LAUNCH_FRAMEWORK_OF_TABLE_FILE] &&
        !launch_has_field(l, LAUNCH_LAYERS))
        status = launch_add_named_model(l, given);
    if (status == STATUS_OK)
        status = megatron_add_model_options(l, given, diag);
    if (status == STATUS_OK)
        status = launch_check_text_is_one_of(l, LAUNCH_GRANULARITY, "full selective", diag);
    if (status == STATUS_OK)
        status = launch_check_text_is_one_of(l, LAUNCH_SHARDING,
                                             "no_shard optim optim_grads optim_grads_params", diag);
    if (status == STATUS_OK)
        status = launch_check_text_is_one_of(l, LAUNCH_LOSS_KERNEL, "native te linear", diag);
    if (status == STATUS_OK)
        status = add_context_options(l, &d, diag);
    if (status == STATUS_OK)
        status = megatron_check_degrees(l, given, &d, diag);
    if (status != STATUS_OK)
        return status;
    launch_add_degree_options(l, d);
    launch_add_option(l, LAUNCH_FIELD_COUNT, "profile",
                      d.cp * d.hp > 1 ? "megatron-te" : "megatron");
    if (d.cp > 1 && launch_field_text_is(l, LAUNCH_CP_COMM, "all_gather"))
        launch_add_option(l, LAUNCH_CP_COMM, "rotate", "all-gather");
    if (d.tp > 1 && !launch_is_on(l, LAUNCH_TOKENS_SPLIT))
        launch_remark_on_field(
            l, REMARK_UNMODELLED, LAUNCH_TP,
            "without --sequence-parallel norms and inputs are whole on every tensor "
            "rank: here they are shared, which needs less memory");
    status = add_weight_options(l, given, &d, diag);
    if (status == STATUS_OK)
        status = add_stage_and_batch_options(l, diag);
    if (status != STATUS_OK)
        return status;
    remark_attention_mask_bytes(l);
    add_recompute_options(l);
    add_dtype_and_attention_options(l);
    add_loss_option(l, &d);
    return STATUS_OK;
}

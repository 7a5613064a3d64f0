#include "predict/launch/megatron_model.h"

#include "models/cluster.h"
#include "predict/launch/launch_tables.h"

#include <string.h>

/* Arguments that Megatron-LM and Megatron-DeepSpeed share and that set no field. Some are not modelled. The others are
 * ignored: data, learning rates, checkpoints on disk, evaluation and logs have no effect on a step, and clipping costs
 * the same in every configuration. */
/* clang-format off */
static const struct launch_row shared_rows[] = {
    {"--log-params-norm",       UNMODELLED, "a pass over the parameters in each step: under 1 % of it", NULL},
    {"--log-num-zeros-in-grad", UNMODELLED, "a pass over the gradients in each step: under 1 % of it", NULL},
    {"--log-straggler",         UNMODELLED, "timers of each part of a step", NULL},
    {"--train-sync-interval",   UNMODELLED, "the host waits for the device every few steps", "0"},
    {"--timing-log-level",      UNMODELLED, "timers wait for the device and for other ranks: steps are slower by what then no longer overlaps", "0"},
    {"--distributed-backend",   UNMODELLED, "another library of collectives than NCCL", "nccl"},
    {"--make-vocab-size-divisible-by", UNMODELLED, "the rows of the vocabulary are a multiple of this number: up to that many more, under 1 % of a step", "128"},
    {"--extra-vocab-size",      UNMODELLED, "tokens beside those of the tokenizer: as many more rows of the embedding and the head", NULL},
    {"--sft",                   UNMODELLED, "packed documents do not see each other: full causal attention is predicted, which is more work", NULL},
    {"--no-masked-softmax-fusion", UNMODELLED, "fused kernels are predicted: without them there are more memory-bound ones", NULL},
    {"--no-bias-*",             UNMODELLED, "fused kernels are predicted: without them there are more memory-bound ones", NULL},
    {"--no-async-tensor-model-parallel-allreduce", UNMODELLED, "a collective of tensor ranks no longer overlaps a product of the backward", NULL},
    {"--train-*", IGNORED}, {"--lr*", IGNORED}, {"--min-lr", IGNORED}, {"--override-*", IGNORED},
    {"--weight-decay*", IGNORED}, {"--adam-*", IGNORED}, {"--clip-grad", IGNORED}, {"--init-method-*", IGNORED},
    {"--seed", IGNORED}, {"--data-path", IGNORED}, {"--data-impl", IGNORED}, {"--data-cache-path", IGNORED},
    {"--data-per-class-fraction", IGNORED}, {"--data-parallel-random-init", IGNORED}, {"--vocab-file", IGNORED},
    {"--tokenizer-*", IGNORED}, {"--split", IGNORED}, {"--num-workers", IGNORED}, {"--log-*", IGNORED},
    {"--tensorboard-*", IGNORED}, {"--wandb-*", IGNORED}, {"--timing-log-option", IGNORED}, {"--save*", IGNORED},
    {"--load", IGNORED}, {"--eval-*", IGNORED}, {"--exit-*", IGNORED}, {"--distributed-timeout-minutes", IGNORED},
    {"--initial-loss-scale", IGNORED}, {"--loss-scale*", IGNORED}, {"--min-loss-scale", IGNORED},
    {"--hysteresis", IGNORED}, {"--no-query-key-layer-scaling", IGNORED}, {"--accumulate-*", IGNORED},
    {"--mmap-*", IGNORED}, {"--no-load-*", IGNORED}, {"--no-save-*", IGNORED}, {"--finetune", IGNORED},
    {"--dataloader-type", IGNORED}, {"--eod-mask-loss", IGNORED}, {"--reset-position-ids", IGNORED},
};
/* clang-format on */
const struct launch_table launch_megatron_shared_table = {.row = shared_rows,
                                                          .row_count = ARRAY_LEN(shared_rows)};

/* ---- fields of choices ---- */

void megatron_set_model_fields(struct launch *l, const struct transformer *m)
{
    launch_set_count(l, LAUNCH_LAYERS, m->layers);
    launch_set_count(l, LAUNCH_HIDDEN, m->hidden);
    launch_set_count(l, LAUNCH_HEADS, m->heads);
    if (m->heads * m->head_dim != m->hidden)
        launch_set_count(l, LAUNCH_HEAD_DIM, m->head_dim);
    launch_set_count(l, LAUNCH_FFN, m->ffn);
    if (m->activation == ACTIVATION_SWIGLU)
        launch_set_count(l, LAUNCH_SWIGLU, 1);
    if (!m->bias_o && !m->bias_ffn)
        launch_set_count(l, LAUNCH_NO_BIAS, 1);
    if (!m->tied_head)
        launch_set_count(l, LAUNCH_UNTIED, 1);
    launch_set_number(l, LAUNCH_NORM_EPS, m->norm_eps);
    if (m->positions == POSITIONS_ROPE)
        launch_set_count(l, LAUNCH_ROPE_THETA, (int64_t)m->rope_theta);
}

/* Sets the fields of lengths, batches, tensor ranks and stages. Megatron refuses a sequence that is longer than
 * --max-position-embeddings, which is also the number of rows of a table of learned positions. */
void megatron_set_size_fields(struct launch *l, const struct choices *c)
{
    bool table = c->model->positions == POSITIONS_LEARNED;
    launch_set_count(l, LAUNCH_SEQ, c->seq);
    launch_set_count(l, LAUNCH_POSITIONS_MAX,
                     table && c->model->max_positions > c->seq ? c->model->max_positions : c->seq);
    launch_set_count(l, LAUNCH_MICRO_BATCH, c->micro_batch);
    launch_set_count(l, LAUNCH_GLOBAL_BATCH, c->global_batch);
    launch_set_count(l, LAUNCH_TP, c->tp);
    if (c->tp > 1)
        launch_set_count(l, LAUNCH_TOKENS_SPLIT, 1); /* ranks have parts of the tokens */
    launch_set_count(l, LAUNCH_PP, c->pp);
}

/* ---- the model of fields ---- */

static enum status require_field(const struct launch *l, enum launch_field field, const char *name,
                                 struct diag *diag)
{
    if (launch_has_field(l, field))
        return STATUS_OK;
    return diag_error(diag, (struct loc){.name = "--from"}, STATUS_BAD_INPUT,
                      "the arguments give no %s; give it, or the model with --model", name);
}

/* Reads a list of layers as in Megatron's recipes: "([0]*3+[1]*58)" means 3 layers without experts, then 58 with them.
 * Returns false if the text is not of that form. */
static bool parse_layer_list(const char *text, int64_t *dense, int64_t *sparse)
{
    static const char first[] = "([0]*", second[] = "+[1]*";
    const char *plus = strstr(text, second), *end = strrchr(text, ')');
    const char *one = text + strlen(first);
    if (strncmp(text, first, strlen(first)) != 0 || plus == NULL || end == NULL || end[1] != '\0')
        return false;
    const char *other = plus + strlen(second);
    return parse_i64(one, (size_t)(plus - one), dense) && end > other &&
           parse_i64(other, (size_t)(end - other), sparse);
}

/* Sets the number of first layers that have no experts (m->dense_layers). Only 1, for experts in all layers, and a list
 * of the form of parse_layer_list() are read. */
static enum status read_expert_layers(struct launch *l, struct transformer *m, struct diag *diag)
{
    int64_t dense, sparse;
    if (!launch_has_field(l, LAUNCH_EXPERT_LAYERS) ||
        launch_field_text_is(l, LAUNCH_EXPERT_LAYERS, "1"))
        return STATUS_OK;
    if (!parse_layer_list(launch_field_text(l, LAUNCH_EXPERT_LAYERS), &dense, &sparse) ||
        dense < 0 || dense >= m->layers || dense + sparse != m->layers)
        return launch_field_error(
            l, LAUNCH_EXPERT_LAYERS, diag,
            "which layers have experts is read from 1, for all of them, or from a "
            "list such as ([0]*1+[1]*%lld), of %lld layers",
            (long long)m->layers - 1, (long long)m->layers);
    m->dense_layers = dense;
    return STATUS_OK;
}

/* Reads how the router scores experts (Megatron-LM, moe/moe_utils.py, topk_routing_with_score_function()). By default
 * Megatron-LM takes a softmax over the chosen experts. Here that is a softmax over all experts with router_norm, which
 * divides the scores of the chosen ones by their sum: the result is the same. */
static enum status read_router(struct launch *l, struct transformer *m, struct diag *diag)
{
    bool sigmoid = launch_field_text_is(l, LAUNCH_ROUTER_SCORE, "sigmoid");
    if (launch_has_field(l, LAUNCH_ROUTER_SCORE) && !sigmoid &&
        !launch_field_text_is(l, LAUNCH_ROUTER_SCORE, "softmax"))
        return launch_field_error(l, LAUNCH_ROUTER_SCORE, diag,
                                  "a router's scores are read as softmax or sigmoid");
    m->router = sigmoid ? ROUTER_SIGMOID : ROUTER_SOFTMAX;
    m->router_norm = sigmoid ? m->experts_per_token > 1 : !launch_is_on(l, LAUNCH_ROUTER_BEFORE);
    m->router_scale = launch_number_or(l, LAUNCH_ROUTER_SCALE, 0);
    return STATUS_OK;
}

/* Reads the experts of the model. With --as-dense the model gets a dense feed-forward part instead, as wide as the
 * experts that a token passes are together. */
static enum status read_experts(struct launch *l, struct launch_known_facts given,
                                struct transformer *m, struct diag *diag)
{
    int64_t experts = launch_count_or(l, LAUNCH_EXPERTS, 1);
    int64_t width = launch_count_or(l, LAUNCH_EXPERT_FFN, m->ffn);
    int64_t routed = launch_count_or(l, LAUNCH_EXPERTS_A_TOKEN, 2);
    if (experts <= 1)
        return STATUS_OK;
    if (width > 1 << 24 || routed > 1 << 14 || routed < 1 || routed > experts)
        return launch_field_error(l, LAUNCH_EXPERTS, diag,
                                  "experts of this width or number are not read");
    if (given.takes_experts_as_dense) {
        m->ffn = routed * width + launch_count_or(l, LAUNCH_SHARED_FFN, 0);
        m->proxy_lacks = "experts";
        return STATUS_OK;
    }
    if (m->activation != ACTIVATION_SWIGLU)
        return launch_field_error(l, LAUNCH_EXPERTS, diag,
                                  "experts without a gate are not modelled: --swiglu is missing");
    m->experts = experts;
    m->experts_per_token = routed;
    m->expert_ffn = width;
    m->shared_ffn = launch_count_or(l, LAUNCH_SHARED_FFN, 0);
    if (read_expert_layers(l, m, diag) != STATUS_OK)
        return STATUS_BAD_INPUT;
    return read_router(l, m, diag);
}

/* Reads latent attention. A size that no file gives is that of MLATransformerConfig
 * (megatron/core/transformer/transformer_config.py). m->qk_norm is switched off: Megatron's setting then means the
 * norms of the narrow vectors, which latent attention always has here. */
static enum status read_latent(struct launch *l, struct transformer *m, struct diag *diag)
{
    if (!launch_is_on(l, LAUNCH_LATENT))
        return STATUS_OK;
    if (m->positions != POSITIONS_ROPE)
        return launch_field_error(l, LAUNCH_LATENT, diag,
                                  "latent attention needs --position-embedding-type rope");
    m->q_latent = launch_count_or(l, LAUNCH_Q_LATENT, 0);
    m->kv_latent = launch_count_or(l, LAUNCH_KV_LATENT, 512);
    m->rope_dim = launch_count_or(l, LAUNCH_ROPE_DIM, 64);
    m->head_dim = launch_count_or(l, LAUNCH_PLAIN_DIM, 128) + m->rope_dim;
    m->v_dim = launch_count_or(l, LAUNCH_V_DIM, 128);
    m->kv_heads = m->heads;
    m->qk_norm = m->bias_qkv = false;
    if (m->kv_latent < 1 || m->rope_dim < 2 || m->rope_dim % 2 != 0 || m->v_dim < 1 ||
        m->head_dim <= m->rope_dim || m->head_dim > 1 << 12 || m->kv_latent > 1 << 16)
        return launch_field_error(l, LAUNCH_LATENT, diag,
                                  "latent attention of these sizes is not read: --kv-lora-rank and "
                                  "--v-head-dim are at least 1, and --qk-pos-emb-head-dim is even");
    return STATUS_OK;
}

static void read_positions(struct launch *l, struct transformer *m)
{
    m->rope_scaled = launch_field_text_is(l, LAUNCH_POSITIONS, "yarn");
    bool rope = m->rope_scaled || launch_is_on(l, LAUNCH_ROPE) ||
                launch_field_text_is(l, LAUNCH_POSITIONS, "rope");
    bool none = launch_field_text_is(l, LAUNCH_POSITIONS, "none");
    m->positions = rope ? POSITIONS_ROPE : none ? POSITIONS_NONE : POSITIONS_LEARNED;
    if (rope)
        m->rope_theta = launch_number_or(l, LAUNCH_ROPE_THETA, 10000);
    if (m->positions == POSITIONS_LEARNED)
        m->max_positions =
            launch_count_or(l, LAUNCH_POSITIONS_MAX, launch_count_or(l, LAUNCH_SEQ, 0));
    if (!rope && !none && launch_has_field(l, LAUNCH_POSITIONS) &&
        !launch_field_text_is(l, LAUNCH_POSITIONS, "learned_absolute"))
        launch_remark_on_field(l, REMARK_UNMODELLED, LAUNCH_POSITIONS,
                               "learned positions are predicted: one table more");
}

/* Reads the window, "(4095,0)" or "4095,0": the numbers of keys before and after the query's own. Also reads the number
 * N of LAUNCH_WINDOW_SKIP: every N-th layer sees all keys. */
static enum status read_window(struct launch *l, struct transformer *m, struct diag *diag)
{
    if (!launch_has_field(l, LAUNCH_WINDOW))
        return STATUS_OK;
    const char *text = launch_field_text(l, LAUNCH_WINDOW);
    text += *text == '(';
    int64_t keys;
    if (!parse_i64(text, strcspn(text, ", "), &keys) || keys < 0)
        return launch_field_error(l, LAUNCH_WINDOW, diag, "'%s' is not KEYS,0", text);
    m->attention_window = keys + 1;
    if (launch_has_field(l, LAUNCH_WINDOW_SKIP) &&
        !parse_i64(launch_field_text(l, LAUNCH_WINDOW_SKIP),
                   strlen(launch_field_text(l, LAUNCH_WINDOW_SKIP)), &m->full_attention_every))
        return launch_field_error(
            l, LAUNCH_WINDOW_SKIP, diag,
            "lists of layers are not modelled: a number N is, of which every N-th "
            "layer sees all keys");
    return STATUS_OK;
}

static void read_vocabulary(struct launch *l, struct launch_known_facts given,
                            struct transformer *m)
{
    static const struct {
        const char *tokenizer;
        int64_t vocab;
    } known[] = {{"GPT2BPETokenizer", 50257}, {"Llama2Tokenizer", 32000}};
    m->vocab = launch_count_or(l, LAUNCH_VOCAB, 0);
    for (size_t i = 0; i < ARRAY_LEN(known) && m->vocab == 0 && !given.is_vocabulary_known; i++) {
        bool merges =
            i == 0 && launch_has_field(l, LAUNCH_MERGES) && !launch_has_field(l, LAUNCH_TOKENIZER);
        if (!merges && !launch_field_text_is(l, LAUNCH_TOKENIZER, known[i].tokenizer))
            continue;
        m->vocab = known[i].vocab;
        launch_remark_on_field(l, REMARK_ASSUMED, merges ? LAUNCH_MERGES : LAUNCH_TOKENIZER,
                               "a vocabulary of %lld tokens", (long long)m->vocab);
    }
    if (m->vocab == 0 && !given.is_vocabulary_known && !given.is_model_known)
        launch_add_remark_printf(l, REMARK_KNOWN_IN_RUN_ONLY, "vocabulary", (struct loc){0},
                                 "the tokenizer's: give its tokens, as in --set vocab=128256");
}

static void read_biases(const struct launch *l, struct transformer *m)
{
    bool all = !launch_is_on(l, LAUNCH_NO_BIAS);
    m->bias_o = m->bias_ffn = all;
    m->bias_qkv = all || launch_is_on(l, LAUNCH_QKV_BIAS);
}

/* Returns Megatron's default width of the feed-forward part, which is also Megatron-DeepSpeed's: 4 times the hidden
 * size; for SwiGLU two thirds of that, rounded down to a multiple of 64. */
static int64_t default_ffn_width(const struct launch *l, int64_t hidden)
{
    if (!launch_is_on(l, LAUNCH_SWIGLU))
        return 4 * hidden;
    return (int64_t)((double)(4 * hidden * 2) / 3) / 64 * 64;
}

enum status megatron_add_model_options(struct launch *l, struct launch_known_facts given,
                                       struct diag *diag)
{
    struct transformer m = {0};
    if (launch_has_option(l, "model") && !launch_has_field(l, LAUNCH_LAYERS))
        return STATUS_OK;
    if (!launch_has_field(l, LAUNCH_LAYERS) && !launch_has_field(l, LAUNCH_HIDDEN))
        return STATUS_OK; /* the model is given by an option */
    enum status status = require_field(l, LAUNCH_LAYERS, "--num-layers", diag);
    if (status == STATUS_OK)
        status = require_field(l, LAUNCH_HIDDEN, "--hidden-size", diag);
    if (status == STATUS_OK)
        status = require_field(l, LAUNCH_HEADS, "--num-attention-heads", diag);
    if (status != STATUS_OK)
        return status;
    status = launch_check_text_is_one_of(l, LAUNCH_NORM, "rmsnorm layernorm layernorm1p", diag);
    if (status != STATUS_OK)
        return status;
    m.layers = launch_count_or(l, LAUNCH_LAYERS, 0);
    m.hidden = launch_count_or(l, LAUNCH_HIDDEN, 0);
    m.heads = launch_count_or(l, LAUNCH_HEADS, 0);
    m.kv_heads = m.heads;
    bool grouped =
        launch_is_on(l, LAUNCH_GROUPED) || l->has_read_framework_file[LAUNCH_MEGATRON_DEEPSPEED];
    if (grouped)
        m.kv_heads =
            launch_count_or(l, LAUNCH_KV_HEADS,
                            l->has_read_framework_file[LAUNCH_MEGATRON_DEEPSPEED] ? m.heads : 1);
    if (m.heads < 1 || m.hidden < 1 || m.layers < 1)
        return launch_field_error(l, LAUNCH_HEADS, diag, "sizes of a model are at least 1");
    m.head_dim = launch_count_or(l, LAUNCH_HEAD_DIM, m.hidden / m.heads);
    m.ffn = launch_count_or(l, LAUNCH_FFN, default_ffn_width(l, m.hidden));
    m.activation = launch_is_on(l, LAUNCH_SWIGLU) ? ACTIVATION_SWIGLU : ACTIVATION_GELU;
    m.norm = launch_field_text_is(l, LAUNCH_NORM, "rmsnorm") ? NORM_RMSNORM : NORM_LAYERNORM;
    m.norm_eps = launch_number_or(l, LAUNCH_NORM_EPS, 1e-5);
    m.qk_norm = launch_is_on(l, LAUNCH_QK_NORM);
    m.tied_head = !launch_is_on(l, LAUNCH_UNTIED);
    read_biases(l, &m);
    read_positions(l, &m);
    read_vocabulary(l, given, &m);
    status = read_window(l, &m, diag);
    if (status == STATUS_OK)
        status = read_latent(l, &m, diag);
    if (status == STATUS_OK)
        status = read_experts(l, given, &m, diag);
    return status == STATUS_OK ? launch_add_model_option(l, &m, m.vocab > 0, diag) : status;
}

/* ---- the batch and the degrees ---- */

void megatron_add_batch_options(struct launch *l)
{
    if (launch_has_field(l, LAUNCH_SEQ))
        launch_add_count_option(l, LAUNCH_SEQ, "seq", launch_count_or(l, LAUNCH_SEQ, 0));
    if (launch_has_field(l, LAUNCH_GLOBAL_BATCH))
        launch_add_count_option(l, LAUNCH_GLOBAL_BATCH, "batch",
                                launch_count_or(l, LAUNCH_GLOBAL_BATCH, 0) *
                                    launch_count_or(l, LAUNCH_ANSWERS, 1));
    if (launch_count_or(l, LAUNCH_MICRO_BATCH, 1) > 1)
        launch_add_count_option(l, LAUNCH_MICRO_BATCH, "micro-batch",
                                launch_count_or(l, LAUNCH_MICRO_BATCH, 1));
}

enum status megatron_check_degrees(const struct launch *l, struct launch_known_facts given,
                                   const struct launch_degrees *d, struct diag *diag)
{
    static const struct {
        enum launch_field field;
        const char *what;
    } degrees[] = {{LAUNCH_TP, "tensor"},
                   {LAUNCH_PP, "pipeline"},
                   {LAUNCH_CP, "context"},
                   {LAUNCH_SP, "sequence"}};
    for (size_t i = 0; i < ARRAY_LEN(degrees); i++)
        if (launch_has_field(l, degrees[i].field) &&
            (launch_count_or(l, degrees[i].field, 1) < 1 ||
             launch_count_or(l, degrees[i].field, 1) > 1 << 20))
            return launch_field_error(l, degrees[i].field, diag, "a %s degree is from 1 to %d",
                                      degrees[i].what, 1 << 20);
    int64_t ranks = d->tp * d->pp;
    if (ranks > 1 << 20 || (ranks *= d->cp * d->hp) > 1 << 20)
        return launch_field_error(l, LAUNCH_TP, diag, "the degrees make more than %d ranks",
                                  CLUSTER_MAX_GPUS);
    if (given.gpu_count > 0 && given.gpu_count % ranks != 0)
        return diag_error(
            diag, (struct loc){.name = "--gpus"}, STATUS_BAD_INPUT,
            "%lld GPUs%s are no multiple of tp %lld x pp %lld x cp %lld = %lld, which the file "
            "asks for; --gpus %lld would do, or a multiple of it",
            (long long)given.gpu_count,
            given.gpu_count == launch_gpu_count(l) ? ", as the file starts them," : "",
            (long long)d->tp, (long long)d->pp, (long long)(d->cp * d->hp), (long long)ranks,
            (long long)ranks);
    return STATUS_OK;
}

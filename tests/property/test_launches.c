/* tests/property/test_launches.c: settings that plan --emit writes are read back by --from as the
 * same choices, for random requests that the framework can express. */
#include "cli/common/options.h"
#include "cli/setup/options.h"
#include "cli/setup/read_setup.h"
#include "predict/launch/launch.h"
#include "predict/launch/table_file.h"
#include "predict/plan/expressible.h"
#include "schedule/config/derived.h"
#include "schedule/config/resolve_config.h"
#include "tests/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each day draws requests of its own (check_is_sampled_today()), until A_DAY that the framework can express have been
 * read back; at night (CHECK_ALL) requests of all days, until A_NIGHT. */
enum { TRIES = 100000, DAYS = 8, A_DAY = 12, A_NIGHT = 100 };

/* Models that the settings of each framework can describe. */
static const char *const models[FRAMEWORK_COUNT][6] = {
    [FRAMEWORK_TORCHTITAN] =
        {"llama3-8b", "llama3-70b", "qwen3-30b-a3b", "llama3.2-1b",
         "layers=28,hidden=1024,heads=16,kv_heads=8,head_dim=128,ffn=3072,vocab=151936,"
         "qk_norm=true,tied_head=true,rope_theta=1000000,norm_eps=1e-6",
         "layers=36,hidden=4096,heads=32,kv_heads=8,ffn=12288,vocab=151936,qk_norm=true,"
         "rope_theta=1000000,norm_eps=1e-6"},
    [FRAMEWORK_MEGATRON] = {"llama3-8b", "gpt2", "qwen2-7b", "mistral-7b", "gpt-6.7b", "llama2-7b"},
    [FRAMEWORK_DEEPSPEED] = {"llama2-7b", "llama3-8b", "gpt-6.7b", "mistral-7b"},
    [FRAMEWORK_AXOLOTL] = {"llama3-8b", "qwen3-8b", "mistral-7b", "gemma3-12b", "smollm2-1.7b"},
    [FRAMEWORK_LLAMA_FACTORY] = {"llama3-8b", "qwen2.5-14b", "llama2-7b", "olmo2-7b"},
    [FRAMEWORK_TRL] = {"llama3-8b", "qwen3-4b", "llama3.2-1b", "gemma2-9b"},
};

static int64_t any(struct check_random *random, int64_t low, int64_t high)
{
    return check_random_i64(random, low, high);
}

/* Returns 1, 2 or 4, mostly 1. */
static int64_t random_degree(struct check_random *random)
{
    return any(random, 0, 1) ? 1 : (int64_t)1 << any(random, 0, 2);
}

static const char *random_model_name(struct check_random *random, enum framework framework)
{
    int64_t count = 0;
    while (count < 6 && models[framework][count] != NULL)
        count++;
    return models[framework][any(random, 0, count - 1)];
}

/* Fills a random request, which the framework may or may not express. */
static void fill_random_request(struct request *r, struct check_random *random,
                                enum framework framework)
{
    static const char *const strategies[] = {"local", "ulysses",     "ring",
                                             "2d",    "megatron-sp", "fpdt"};
    size_t count;
    const struct strategy *strategy = strategies_list(&count);
    r->strategy = strategies[any(random, 0, 5)];
    for (size_t i = 0; i < count; i++)
        if (strcmp(strategy[i].name, r->strategy) == 0)
            r->profile = expressible_default_profile(framework, &strategy[i]);
    bool cp = strcmp(r->strategy, "ring") == 0 || strcmp(r->strategy, "2d") == 0;
    bool hp = strcmp(r->strategy, "ulysses") == 0 || strcmp(r->strategy, "2d") == 0 ||
              strcmp(r->strategy, "fpdt") == 0;
    r->cp = cp ? random_degree(random) : 1;
    r->hp = hp ? random_degree(random) : 1;
    r->tp = random_degree(random);
    r->pp = random_degree(random);
    if (strcmp(r->profile, "megatron-te") == 0 && r->cp * r->hp == 1)
        r->profile = "megatron";
    r->dp = r->ranks / (r->cp * r->hp * r->tp * r->pp);
    r->micro_batch = any(random, 1, 2);
    r->global_batch = r->dp * r->micro_batch * any(random, 1, 4) * (r->pp > 1 ? r->pp : 1);
    r->seq = (int64_t)1024 << any(random, 0, 3);
    r->weights = (int)any(random, -1, CHOICE_WEIGHTS_COUNT - 1);
    if (r->weights == CHOICE_WEIGHTS_HSDP)
        r->shard = (int64_t)1 << any(random, 0, 3);
    r->activations = (int)any(random, -1, CHOICE_ACTIVATIONS_SELECTIVE_CORE);
    if (framework == FRAMEWORK_MEGATRON && (r->activations == CHOICE_ACTIVATIONS_KEEP ||
                                            r->activations == CHOICE_ACTIVATIONS_SELECTIVE_CORE))
        r->recompute_modules = (int)any(random, 0, (1 << RECOMPUTE_MODULE_COUNT) - 1);
    r->optimizer = any(random, 0, 3) == 0 ? CHOICE_OPTIMIZER_HOST : -1;
    r->dtype = (int)any(random, DTYPE_BF16, DTYPE_F32);
    r->states = any(random, 0, 4) == 0 ? STATES_BF16 : STATES_FP32;
    r->attention_impl = any(random, 0, 1) ? ATTENTION_CUDNN : ATTENTION_FA2;
    r->dropout = (int)any(random, 0, DROPOUT_COUNT - 1);
    r->rotation = (int)any(random, 0, ROTATION_COUNT - 1);
    r->stage_placement = (int)any(random, 0, STAGE_PLACEMENT_COUNT - 1);
    r->kernels = any(random, 0, 1) ? KERNELS_COMPILED : KERNELS_PROFILE;
    r->gradients = any(random, 0, 3) == 0 ? (int)any(random, 0, GRADIENTS_COUNT - 1) : 0;
    r->grad_sync = any(random, 0, 3) == 0 ? (int)any(random, 0, GRAD_SYNC_COUNT - 1) : 0;
    r->reshard = any(random, 0, 2) == 0 ? (int)any(random, 0, RESHARD_COUNT - 1) : 0;
    if (framework == FRAMEWORK_MEGATRON && any(random, 0, 1))
        r->loss = any(random, 0, 1) ? LOSS_TE : LOSS_MEGATRON;
    if (framework == FRAMEWORK_MEGATRON)
        r->stage_layers = (int)any(random, 0, STAGE_LAYERS_COUNT - 1);
    if (framework == FRAMEWORK_MEGATRON && r->weights == CHOICE_WEIGHTS_ZERO1 && r->optimizer < 0 &&
        r->dtype != DTYPE_F32 && r->states == STATES_FP32)
        r->param_gather = (int)any(random, 0, PARAM_GATHER_COUNT - 1);
    if (r->pp > 1 && any(random, 0, 1))
        r->pipeline = (int)any(random, CHOICE_PIPELINE_GPIPE, CHOICE_PIPELINE_ZB_V);
    if (r->pipeline == CHOICE_PIPELINE_INTERLEAVED)
        r->virtual_stages = any(random, 2, 4);
    if (r->model->experts > 0 && any(random, 0, 1))
        r->ep = (int64_t)1 << any(random, 0, 3);
    if (strcmp(r->strategy, "fpdt") == 0) {
        r->chunk_tokens = r->seq / ((int64_t)1 << any(random, 0, 2));
        r->kv_offload = (int)any(random, 0, KV_OFFLOAD_COUNT - 1);
    }
}

/* Draws anew, for a framework of Trainer's family, the choices for which these frameworks have
 * other settings than the rest. */
static void redraw_trainer_choices(struct request *r, struct check_random *random)
{
    static const int losses[] = {LOSS_PROFILE,  LOSS_PROFILE, LOSS_FUSED,
                                 LOSS_COMPILED, LOSS_CHUNKED, LOSS_EAGER};
    static const int impls[] = {-1, ATTENTION_FA2, ATTENTION_FA3, ATTENTION_CUDNN};
    r->pp = any(random, 0, 7) == 0 ? 2 : 1;
    r->pipeline = 0;
    r->virtual_stages = 0;
    r->dp = r->ranks / (r->cp * r->hp * r->tp * r->pp);
    r->global_batch = r->dp * r->micro_batch * any(random, 1, 4) * r->pp;
    r->stage_placement = STAGES_OUTER;
    r->profile = any(random, 0, 2) > 0 ? "hf" : "hf-ddp";
    if (strcmp(r->profile, "hf-ddp") == 0)
        r->weights = CHOICE_WEIGHTS_REPLICATED;
    if (r->weights == CHOICE_WEIGHTS_HSDP)
        r->shard = r->cp * r->hp * any(random, 1, 4);
    r->activations = (int)any(random, -1, CHOICE_ACTIVATIONS_OFFLOAD);
    r->states = (int)any(random, 0, STATES_COUNT - 1);
    r->attention_impl = impls[any(random, 0, 3)];
    r->dropout = DROPOUT_MODEL;
    r->ring_layout = (int)any(random, 0, RING_CONTIGUOUS);
    r->vocabulary = any(random, 0, 3) > 0 ? VOCABULARY_GATHERED : VOCABULARY_CUT;
    r->tensor_plan = any(random, 0, 3) > 0 ? TENSOR_PLAN_REPLICATED : TENSOR_PLAN_PROFILE;
    r->kernels = (int)any(random, 0, KERNELS_COUNT - 1);
    r->loss = losses[any(random, 0, 5)];
    r->loss = r->kernels == KERNELS_COMPILED ? LOSS_COMPILED : r->loss;
    r->loss_chunks = any(random, 0, 5) == 0 ? any(random, 2, 12) : 0;
    r->ffn_chunks = any(random, 0, 3) == 0 ? any(random, 2, 6) : 0;
}

/* Makes choices from the options that were read, as if they were on the command line with the cluster. */
static enum status choices_from_read_options(struct choices *choices, struct setup *setup,
                                             struct launch *launch, int64_t gpus, const char *vocab,
                                             struct diag *diag)
{
    static const struct option_set *const sets[] = {&setup_model_options, &setup_cluster_options,
                                                    &setup_choice_options, NULL};
    struct options options = {0};
    char *argv[1] = {0};
    char count[24];
    snprintf(count, sizeof count, "%lld", (long long)gpus);
    enum status status = options_parse(&options, sets, 0, argv, diag);
    for (size_t i = 0; i < launch->option_count && status == STATUS_OK; i++)
        status = options_set_as_if_given(&options, launch->option[i].name, launch->option[i].value,
                                         diag);
    if (status == STATUS_OK)
        status = options_set_as_if_given(&options, "cluster", "dgx-h100", diag);
    bool counted = false; /* by the settings */
    for (size_t i = 0; i < launch->option_count; i++)
        counted = counted || strcmp(launch->option[i].name, "gpus") == 0;
    if (status == STATUS_OK && !counted)
        status = options_set_as_if_given(&options, "gpus", count, diag);
    if (status == STATUS_OK && vocab != NULL)
        status = options_set_as_if_given(&options, "set", vocab, diag);
    if (status == STATUS_OK)
        status = setup_load(setup, &options, false, diag);
    if (status == STATUS_OK)
        status = resolve_choices(choices, &setup->request, NULL, diag);
    options_release(&options);
    return status;
}

static bool is_same_model(const struct transformer *a, const struct transformer *b)
{
    return a->layers == b->layers && a->hidden == b->hidden && a->heads == b->heads &&
           a->kv_heads == b->kv_heads && a->head_dim == b->head_dim && a->ffn == b->ffn &&
           a->vocab == b->vocab && a->activation == b->activation && a->norm == b->norm &&
           a->positions == b->positions && a->bias_qkv == b->bias_qkv && a->bias_o == b->bias_o &&
           a->bias_ffn == b->bias_ffn && a->qk_norm == b->qk_norm && a->tied_head == b->tied_head &&
           a->experts == b->experts && fabs(a->rope_theta - b->rope_theta) < 1e-9 &&
           fabs(a->norm_eps - b->norm_eps) < 1e-12;
}

/* Returns the weights choice; it is ZeRO-3 for HSDP whose shards span all ranks that share weights. */
static int weights_choice_hsdp_as_zero3(const struct choices *c)
{
    bool whole =
        c->weights == CHOICE_WEIGHTS_HSDP && c->shard == expressible_weight_sharing_ranks(c);
    return whole ? CHOICE_WEIGHTS_ZERO3 : c->weights;
}

/* Appends the name of each choice in which a and b differ, unless the difference has no effect. */
static void append_names_of_unequal_choices(struct text *out, const struct choices *a,
                                            const struct choices *b)
{
    bool shared = expressible_weight_sharing_ranks(a) > 1, ring = a->cp > 1;
    const struct {
        const char *name;
        bool differs;
    } rows[] = {
        {"model", !is_same_model(a->model, b->model)},
        {"profile", a->profile != b->profile},
        {"attention", a->attention != b->attention},
        {"weights", shared && weights_choice_hsdp_as_zero3(a) != weights_choice_hsdp_as_zero3(b)},
        {"shard", shared && a->shard != b->shard},
        {"pipeline", a->pipeline != b->pipeline},
        {"virtual stages", a->virtual_stages != b->virtual_stages},
        {"stage placement", a->pp > 1 && a->dp > 1 && a->ranks > a->gpus_per_node &&
                                a->stage_placement != b->stage_placement},
        {"activations", a->activations != b->activations},
        {"modules",
         ((a->recompute_modules ^ b->recompute_modules) & ~(1u << RECOMPUTE_CORE_ATTN)) != 0},
        {"optimizer", a->optimizer != b->optimizer},
        {"states", a->states != b->states},
        {"dropout", a->attention_dropout != b->attention_dropout},
        {"attention's kernels", a->dtype != DTYPE_F32 && a->attention_impl != b->attention_impl},
        {"dtype", a->dtype != b->dtype},
        {"degrees", a->dp != b->dp || a->pp != b->pp || a->cp != b->cp || a->hp != b->hp ||
                        a->tp != b->tp || a->ranks != b->ranks},
        {"rotation", ring && a->rotation != b->rotation},
        {"layout", ring && a->ring_layout != b->ring_layout},
        {"window", ring && a->ring_window != b->ring_window},
        {"seq", a->seq != b->seq},
        {"batch", a->global_batch != b->global_batch || a->micro_batch != b->micro_batch ||
                      a->accumulation != b->accumulation},
        {"pieces", a->loss_chunks != b->loss_chunks || a->ffn_chunks != b->ffn_chunks},
        {"chunks", a->chunk_tokens != b->chunk_tokens ||
                       (a->chunk_count > 1 && a->kv_offload != b->kv_offload)},
        {"compile", (ring || a->profile->chains != CHAINS_FUSED) && a->kernels != b->kernels},
        {"loss", a->loss != b->loss},
        {"vocabulary", a->tp > 1 && a->vocabulary != b->vocabulary},
        {"reductions", shared && a->accumulation > 1 && a->weights >= CHOICE_WEIGHTS_ZERO2 &&
                           a->grad_sync != b->grad_sync},
        {"layers of stages", a->pp > 1 && a->stage_layers != b->stage_layers},
        {"gradients", weights_grad_dtype(a) != weights_grad_dtype(b)},
        {"gathers", shared && a->weights >= CHOICE_WEIGHTS_ZERO3 && a->reshard != b->reshard},
        {"expert ranks", a->ep != b->ep},
        {"tensor plan", a->tp > 1 && a->tensor_plan != b->tensor_plan},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].differs)
            text_printf(out, "%s%s", out->size > 0 ? ", " : "", rows[i].name);
}

/* Writes the settings of one random request, reads them back and compares. Returns false if the framework
 * cannot express the request. */
static bool round_trip(struct check_random *random, enum framework framework, struct setup *setup,
                       const struct launch_tables *tables)
{
    struct diag diag = {0};
    struct choices written, read;
    struct text text = {0}, differences = {0};
    struct launch launch = {.tables = tables};
    struct setup again = {0};
    char vocab[32];
    struct request *r = &setup->request;
    setup_leave_request_open(setup);
    fill_random_request(r, random, framework);
    if (framework >= FRAMEWORK_AXOLOTL)
        redraw_trainer_choices(r, random);
    bool is_expressible = resolve_choices(&written, r, NULL, NULL) == STATUS_OK &&
                          expressible_by_framework(framework, &written);
    if (is_expressible) {
        CHECK_INT("it is written", launch_print(&text, framework, &written, &diag), STATUS_OK);
        snprintf(vocab, sizeof vocab, "vocab=%lld", (long long)setup->model.vocab);
        enum status status = launch_read_text(&launch, "emitted", text.data, text.size, &diag);
        if (status == STATUS_OK)
            status = launch_make_options(&launch,
                                         (struct launch_known_facts){.gpu_count = r->ranks}, &diag);
        if (status == STATUS_OK)
            status =
                choices_from_read_options(&read, &again, &launch, r->ranks,
                                          framework == FRAMEWORK_DEEPSPEED ? vocab : NULL, &diag);
        CHECK_TEXT(text.data, diag.text != NULL ? diag.text : "", "");
        if (status == STATUS_OK) {
            text_puts(&differences, "");
            append_names_of_unequal_choices(&differences, &written, &read);
            CHECK_TEXT(text.data, differences.data, "");
        }
        for (size_t i = 0; i < launch.remark_count; i++)
            if (launch.remark[i].kind == REMARK_UNKNOWN)
                CHECK_TEXT("a setting that is written is known", launch.remark[i].name, "");
    }
    text_release(&text);
    text_release(&differences);
    launch_release(&launch);
    setup_release(&again);
    diag_release(&diag);
    return is_expressible;
}

static void emitted_launches_are_read_back(void)
{
    struct check_random all = check_random_make();
    const int most = getenv("CHECK_ALL") != NULL ? A_NIGHT : A_DAY;
    struct launch_tables tables = {0};
    CHECK_INT("the tables are read", launch_tables_load(&tables, NULL), STATUS_OK);
    for (int framework = 0; framework < FRAMEWORK_COUNT; framework++) {
        int expressed = 0;
        for (size_t i = 0; i < TRIES && expressed < most; i++) {
            struct check_random random = {check_random_u64(&all)};
            if (!check_is_sampled_today(i, TRIES, DAYS))
                continue;
            struct setup setup = {0};
            struct diag diag = {0};
            int64_t gpus = (int64_t)1 << any(&random, 0, 5);
            const char *model = random_model_name(&random, (enum framework)framework);
            if (setup_load_model(&setup, model, NULL, NULL, &diag) == STATUS_OK &&
                setup_load_cluster(&setup, "dgx-h100", 0, gpus, &diag) == STATUS_OK)
                expressed += round_trip(&random, (enum framework)framework, &setup, &tables);
            CHECK_TEXT(model, diag.text != NULL ? diag.text : "", "");
            setup_release(&setup);
            diag_release(&diag);
        }
        CHECK_INT(framework_names[framework], expressed, most);
    }
    launch_tables_release(&tables);
}

static const struct check_case cases[] = {
    {"what is emitted is read back as the same choices", emitted_launches_are_read_back},
};
CHECK_MAIN("launches", cases)

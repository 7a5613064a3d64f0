#include "schedule/config/resolve_degrees.h"
#include "schedule/config/resolve_experts.h"
#include "schedule/config/sppo.h"
#include "schedule/pipeline/pipeline.h"

#include "base/text.h"
#include "schedule/choices/products.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/strategies.h"
#include "schedule/choices/tensor_share.h"
#include "schedule/config/derived.h"
#include "schedule/config/mesh_parts.h"
#include "schedule/config/resolve_config.h"
#include "schedule/core_plan/tile_rules.h"

#include <string.h>

/* ---- strategies and profiles by name ---- */

/* Returns the index of the option's value in a list of names. If it is not there, reports that and returns -1. list:
 * the word after `longhaul list` that prints all names, for the message. */
static int find_index_of_option_value(const char *option, const char *value,
                                      const char *const *names, size_t count, const char *list,
                                      struct diag *diag)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], value) == 0)
            return (int)i;
    const char *near = diag_nearest(value, names, count);
    if (near == NULL)
        near = diag_option_suggested_for_word(value);
    resolve_refuse(diag, option, "unknown %s '%s'%s%s%s (`longhaul list %s` names all)", option + 2,
                   value, near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "", list);
    return -1;
}

static int find_strategy(const char *name, struct diag *diag)
{
    size_t count;
    const struct strategy *table = strategies_list(&count);
    const char *names[16];
    for (size_t i = 0; i < count; i++)
        names[i] = table[i].name;
    return find_index_of_option_value("--strategy", name, names, count, "strategies", diag);
}

/* Returns the index of a profile; -1 with a message if there is none of this name. With `published`, the name
 * "published" is known, too; its index is one above that of the last profile. */
static int find_profile(const char *name, bool published, struct diag *diag)
{
    size_t count;
    const struct profile *table = profiles_list(&count);
    const char *names[17];
    for (size_t i = 0; i < count; i++)
        names[i] = table[i].name;
    names[count] = "published";
    return find_index_of_option_value("--profile", name, names, count + published, "profiles",
                                      diag);
}

enum status strategies_check_both_names_exist(const char *strategy, const char *profile,
                                              struct diag *diag)
{
    bool known = (strategy == NULL || find_strategy(strategy, diag) >= 0) &&
                 (profile == NULL || find_profile(profile, true, diag) >= 0);
    return known ? STATUS_OK : STATUS_BAD_INPUT;
}

/* ---- batch, documents, core plan, shard of weights, pieces, stages ---- */

static enum status check_range(int64_t value, int64_t most, const char *option, const char *what,
                               struct diag *diag)
{
    if (value >= 1 && value <= most)
        return STATUS_OK;
    return resolve_refuse(diag, option, "%s is %lld; 1 to %lld would do", what, (long long)value,
                          (long long)most);
}

static enum status resolve_batch(struct choices *c, const struct request *r, struct diag *diag)
{
    struct text would = {0};
    c->micro_batch = r->micro_batch > 0 ? r->micro_batch : 1;
    int64_t unit = (int64_t)c->dp * c->micro_batch;
    c->global_batch = r->global_batch > 0 ? r->global_batch : unit;
    if (c->global_batch % unit != 0) {
        resolve_append_multiples(&would, c->global_batch, unit);
        return resolve_refuse_value_with_hint(
            diag, "--batch", &would,
            "a batch of %lld sequences does not divide over dp %u x micro-batch %lld",
            (long long)c->global_batch, c->dp, (long long)c->micro_batch);
    }
    int64_t accumulation = c->global_batch / unit;
    if (check_range(accumulation, 4096, "--batch", "the number of micro-batches per step", diag) !=
        STATUS_OK)
        return STATUS_BAD_INPUT;
    c->accumulation = (uint32_t)accumulation;
    return STATUS_OK;
}

/* Checks that the documents fill every sequence, and takes them. Takes none if each sequence is one document and none
 * is dealt. */
static enum status resolve_documents(struct choices *c, const struct request *r, struct diag *diag)
{
    const struct documents *d = r->documents;
    if (d == NULL || d->sequence_count == 0)
        return STATUS_OK;
    const char *option = documents_have_token_deal(d) ? "--core-plan" : "--documents";
    if (d->sequence_count != (uint64_t)c->global_batch)
        return resolve_refuse(
            diag, option,
            "the documents are those of %lld sequences, but a step has %lld sequences",
            (long long)d->sequence_count, (long long)c->global_batch);
    for (uint32_t i = 0; i < d->sequence_count; i++) {
        const struct document_list *list = documents_of_sequence(d, i);
        int64_t end = list != NULL ? list->document_end[list->document_count - 1] : 0;
        if (end != c->seq)
            return resolve_refuse(diag, option,
                                  "the documents of sequence %lld have %lld tokens in all, but a "
                                  "sequence has %lld tokens",
                                  (long long)i, (long long)end, (long long)c->seq);
    }
    if (!documents_are_single(d) || documents_have_token_deal(d))
        c->documents = d;
    return STATUS_OK;
}

/* Checks the layout that cuts each document over the context ranks. With one context rank or single documents, it
 * becomes plain zigzag. */
static enum status resolve_per_document_layout(struct choices *c, struct diag *diag)
{
    const struct documents *d = c->documents;
    int64_t slices = 2 * (int64_t)c->cp;
    if (c->ring_layout != RING_ZIGZAG_DOCUMENTS)
        return STATUS_OK;
    if (d == NULL || c->cp == 1) {
        c->ring_layout = RING_ZIGZAG;
        return STATUS_OK;
    }
    for (uint32_t l = 0; l < d->list_count; l++)
        for (uint32_t i = 0; i < d->list[l].document_count; i++) {
            int64_t length = d->list[l].document_end[i] - document_begin(&d->list[l], i);
            if (length % slices != 0)
                return resolve_refuse(
                    diag, "--layout",
                    "zigzag-documents cuts each document into %lld slices, and one has %lld "
                    "tokens; pad documents to multiples of %lld, or choose --layout zigzag",
                    (long long)slices, (long long)length, (long long)slices);
        }
    return STATUS_OK;
}

/* Chooses ROTATE_BY_CORE_PLAN. Refuses --rotate, since the tiles of the core plan say which rows are sent. */
static enum status choose_rotation_by_core_plan(struct choices *c, const struct request *r,
                                                struct diag *diag)
{
    if (r->rotation != ROTATE_PROFILE)
        return resolve_refuse(
            diag, "--rotate",
            "the core plan has tiles, which say what travels; leave out --rotate, "
            "or give a plan without tiles");
    c->rotation = ROTATE_BY_CORE_PLAN;
    return STATUS_OK;
}

/* Does what choose_rotation_by_core_plan() does, for tiles that a named rule will make. Refuses rules that would make
 * too many tiles. */
static enum status choose_rotation_by_deal_rule(struct choices *c, const struct request *r,
                                                const struct deal_choice *rule, struct diag *diag)
{
    const double tiles = tile_rules_estimate_tiles(rule, c->cp, c->seq);
    if (tiles > TILE_RULE_TILES_MAX)
        return resolve_refuse(diag, "--core-plan",
                              "'%s' cuts the attention of %lld tokens on %u ranks into about %.0f "
                              "million tiles, and at most 4 million are made; take %s",
                              r->core_plan, (long long)c->seq, c->cp, tiles / 1e6,
                              rule->rule == DEAL_CHUNKS_THEN_MOVE_QUERIES ? "longer blocks"
                                                                          : "fewer context ranks");
    return choose_rotation_by_core_plan(c, r, diag);
}

/* Takes the tiles of a core plan, if it has any. Refuses them if a layer of the model sees further than their
 * window. */
static enum status resolve_core_plan_tiles(struct choices *c, const struct request *r,
                                           struct diag *diag)
{
    const struct documents *d = r->documents;
    for (uint32_t l = 0; l < d->list_count; l++)
        for (int64_t layer = 0; layer < c->model->layers; layer++) {
            const struct tile_plan *tiles = d->list[l].tiles;
            int64_t window = transformer_layer_window(c->model, layer);
            if (tiles != NULL && tiles->window > 0 && (window == 0 || window > tiles->window))
                return resolve_refuse(diag, "--core-plan",
                                      "the plan's tiles are those of window=%lld, and layer %lld "
                                      "of the model sees further",
                                      (long long)tiles->window, (long long)layer);
        }
    return documents_have_tile_plan(d) ? choose_rotation_by_core_plan(c, r, diag) : STATUS_OK;
}

/* Checks what --core-plan names. The ranks of a plan must be those of a ring, and its tiles must fit the model. The
 * name of a rule must be valid even if there is one context rank, where the rule has no effect; else the rule must fit
 * the ranks and the sequence. */
static enum status resolve_core_plan(struct choices *c, const struct request *r, struct diag *diag)
{
    struct deal_choice rule;
    struct text would = {0};
    if (r->core_plan == NULL)
        return STATUS_OK;
    if (r->ring_layout != RING_ZIGZAG)
        return resolve_refuse(diag, "--core-plan",
                              "says which tokens each rank holds, and so does --layout %s; leave "
                              "out one of them",
                              ring_layout_names[r->ring_layout]);
    if (r->documents != NULL && documents_have_token_deal(r->documents)) {
        uint32_t ranks = r->documents->list[0].deal->rank_count;
        return ranks == c->cp ? resolve_core_plan_tiles(c, r, diag)
                              : resolve_refuse(diag, "--core-plan",
                                               "the plan is one of %u ranks, and a sequence is on "
                                               "--cp %u ranks of a ring",
                                               ranks, c->cp);
    }
    if (deal_choice_parse(&rule, r->core_plan, diag) != STATUS_OK)
        return STATUS_BAD_INPUT;
    if (c->core_plan == NULL)
        return STATUS_OK;
    if (rule.rule == DEAL_DOUBLE_RING && c->cp % rule.parameter != 0)
        return resolve_refuse(diag, "--core-plan",
                              "inner rings of %lld ranks do not divide the %u ranks of a ring",
                              (long long)rule.parameter, c->cp);
    if (c->seq % deal_choice_token_unit(&rule, c->cp) == 0)
        return deal_choice_has_tiles(&rule) ? choose_rotation_by_deal_rule(c, r, &rule, diag)
                                            : STATUS_OK;
    if (rule.rule != DEAL_CHUNKS_TO_LEAST_LOADED) {
        resolve_append_multiples(&would, c->seq, deal_choice_token_unit(&rule, c->cp));
        return resolve_refuse_value_with_hint(
            diag, "--seq", &would,
            "core plan %s cuts a sequence into %lld equal slices, and it has "
            "%lld tokens",
            r->core_plan, (long long)deal_choice_token_unit(&rule, c->cp), (long long)c->seq);
    }
    text_puts(&would, "chunks of ");
    resolve_append_divisors(&would, c->seq / c->cp, 0);
    return resolve_refuse_value_with_hint(
        diag, "--core-plan", &would,
        "chunks of %lld tokens do not divide the %lld tokens of a rank", (long long)rule.parameter,
        (long long)(c->seq / c->cp));
}

static enum status resolve_shard_rank_count(struct choices *c, const struct request *r,
                                            struct diag *diag)
{
    struct text would = {0};
    bool in_part =
        c->weights == CHOICE_WEIGHTS_HSDP || (c->weights == CHOICE_WEIGHTS_ZERO1 && r->shard > 0);
    if (!in_part) {
        if (r->shard > 0)
            return resolve_refuse(diag, "--shard",
                                  "is for --weights hsdp and zero1; weights are '%s'",
                                  weights_names[c->weights]);
        c->shard = (uint32_t)r->ranks * (pipeline_replicates_weights(c) ? c->pp : 1);
        return STATUS_OK;
    }
    int64_t shard = r->shard > 0                  ? r->shard
                    : r->gpus_per_node < r->ranks ? r->gpus_per_node
                                                  : r->ranks;
    if (shard < 1 || !mesh_parts_are_cut_evenly_by_run(c, shard)) {
        int64_t fits[16];
        int count = 0;
        for (int64_t d = 1; d <= r->ranks && count < (int)ARRAY_LEN(fits); d++)
            if (mesh_parts_are_cut_evenly_by_run(c, d))
                fits[count++] = d;
        text_puts(&would, "--shard ");
        resolve_append_numbers(&would, fits, count);
        return resolve_refuse_value_with_hint(
            diag, "--shard", &would,
            "weights cannot be sharded over runs of %lld of %lld ranks with hp %u",
            (long long)shard, (long long)r->ranks, c->hp);
    }
    c->shard = (uint32_t)shard;
    return STATUS_OK;
}

/* Sets *chunks to the number of pieces into which `rows` rows are cut: at most the number `asked`, since no piece may
 * be empty; 1 if `asked` is 0 or less. Refuses more pieces than rows, or than 65535. */
static enum status resolve_piece_count(uint32_t *chunks, int64_t asked, int64_t rows,
                                       const char *option, struct diag *diag)
{
    *chunks = 1;
    if (asked <= 0)
        return STATUS_OK;
    if (check_range(asked, rows < 65535 ? rows : 65535, option, "the number of pieces", diag) !=
        STATUS_OK)
        return STATUS_BAD_INPUT;
    /* all pieces but the last have the same size, and none may be empty */
    int64_t size = (rows + asked - 1) / asked;
    *chunks = (uint32_t)((rows + size - 1) / size);
    return STATUS_OK;
}

static uint8_t asked_or_default(int asked, uint8_t otherwise)
{
    return asked >= 0 ? (uint8_t)asked : otherwise;
}

/* Resolves the number of stages. *stage, the request, becomes the request of the ranks of one stage. */
static enum status resolve_stages(struct choices *c, struct request *stage, struct diag *diag)
{
    int64_t pp = stage->pp > 0 ? stage->pp : 1;
    if (stage->ranks % pp != 0) {
        struct text would = {0};
        text_puts(&would, "pp ");
        resolve_append_divisors(&would, stage->ranks, 0);
        return resolve_refuse_value_with_hint(diag, "--pp", &would,
                                              "%lld ranks do not divide over pp %lld",
                                              (long long)stage->ranks, (long long)pp);
    }
    c->pp = (uint32_t)pp;
    c->virtual_stages = c->subsequences = 1;
    stage->ranks /= pp;
    return STATUS_OK;
}

/* ---- combinations of choices ---- */

static bool has_too_many_axes(const struct choices *c)
{
    struct mesh_part part[MESH_PARTS_MAX];
    int64_t copies = tensor_kv_copies(c->model, c->tp);
    uint32_t tensor = (c->tp > copies) + (copies > 1);
    bool in_part = c->weights == CHOICE_WEIGHTS_HSDP ||
                   (c->weights == CHOICE_WEIGHTS_ZERO1 && c->shard < c->ranks / c->pp / c->tp);
    bool experts = c->ep > 1 && c->ep < c->ranks / c->pp / c->tp;
    return mesh_parts_of_choices(c, part) + in_part + tensor + experts > MESH_AXES_MAX;
}

/* True if a chunk of a pipeline would have no layers. If layers are divided by cost, only the last chunk may have none,
 * since it has the head. If embedding or head count as layers, the first and the last chunk must still have a layer. */
static bool has_pipeline_chunk_without_layers(const struct choices *c)
{
    if (c->stage_layers == STAGE_LAYERS_BY_COST &&
        c->model->layers >= pipeline_chunk_count(c) - 1) {
        const struct layer_range before = pipeline_layers_of_chunk(
            c, pipeline_chunk_count(c) > 1 ? pipeline_chunk_count(c) - 2 : 0);
        return before.first >= before.end;
    }
    const uint32_t ends = pipeline_embedding_layers(c) + pipeline_head_layers(c),
                   chunks = pipeline_chunk_count(c);
    if (ends == 0)
        return false;
    if (c->model->layers + ends < chunks)
        return true;
    const struct layer_range first = pipeline_layers_of_chunk(c, 0),
                             last = pipeline_layers_of_chunk(c, chunks - 1);
    return first.first >= first.end || last.first >= last.end;
}

/* Refuses combinations of choices that are not modelled. check_attention_combinations() refuses further ones. */
static enum status check_combinations(const struct choices *c, struct diag *diag)
{
    const struct transformer *m = c->model;
    const bool overlaps = c->expert_overlap != EXPERT_OVERLAP_NONE;
    const bool narrow_core = c->attention_products == ATTENTION_PRODUCTS_FP8;
    const bool core_recipe = c->products == PRODUCTS_FP8_TENSOR ||
                             c->products == PRODUCTS_FP8_DELAYED || c->products == PRODUCTS_MXFP8;
    /* clang-format off */
    const struct rule rules[] = {
        {c->optimizer == CHOICE_OPTIMIZER_HOST && c->weights == CHOICE_WEIGHTS_REPLICATED && c->dp * c->cp * c->hp > 1, "--weights",
         "the optimizer on the host with replicated weights would update every parameter on every rank's share of one "
         "processor; choose --weights zero1, zero2, zero3 or hsdp"},
        {c->states == STATES_BF16 && c->dtype != DTYPE_BF16, "--states",
         "bf16 keeps parameters, gradients and moments in bf16 and no wider copy, but the step computes in another dtype; "
         "choose --dtype bf16, or --states fp32"},
        {c->states == STATES_8BIT_BF16 && c->dtype != DTYPE_BF16, "--states",
         "8bit-bf16 keeps parameters and gradients in bf16 and no wider copy, but the step computes in another dtype; choose "
         "--dtype bf16, or --states 8bit"},
        {c->gradients == GRADIENTS_16BIT && c->dtype == DTYPE_F32, "--gradients",
         "16bit is the dtype in which the step computes, which has 32 bits; choose --dtype bf16, or --gradients fp32"},
        {c->gradients == GRADIENTS_FP32 && states_are_bf16((enum states)c->states), "--gradients",
         "with --states bf16 or 8bit-bf16 AdamW reads gradients in bf16; choose --gradients profile, or --states fp32 or "
         "8bit"},
        {has_pipeline_chunk_without_layers(c), "--stage-layers",
         "a part of the pipeline would have no layer, but at most the embedding or the head; choose --stage-layers even, or fewer "
         "stages"},
        {has_too_many_axes(c), "--windows",
         "a pipeline, interleaved windows, weights sharded within part of the ranks, experts spread over ranks, and tensor "
         "ranks that hold copies of key and value heads take more axes than a mesh has; choose --windows contiguous"},
        {c->subsequences > 1 && c->tp > 1 && c->hp > 1, "--subsequences",
         "head ranks that take a sequence in pieces hold them in an order of their own, which tensor ranks do not gather; "
         "choose --hp 1 or --tp 1"},
        {c->tensor_plan == TENSOR_PLAN_REPLICATED && c->tp > 1 && c->subsequences > 1, "--tensor-plan",
         "subsequences of a pipeline are cut over tensor ranks, which under plan replicated have all tokens; choose "
         "--tensor-plan megatron, or --subsequences 1"},
        {c->parameters == PARAMETERS_HOST && (!weights_shard_params(c) || c->shard < 2 || c->optimizer != CHOICE_OPTIMIZER_HOST), "--parameters",
         "shards of parameters wait on the host, where AdamW updates them, so several ranks must share the weights and the "
         "optimizer be there; choose --zero 3 --optimizer host, or --parameters device"},
        {c->vocabulary != VOCABULARY_CUT && c->tp > 1 && c->subsequences > 1, "--vocabulary",
         "subsequences of a pipeline are looked up in parts of the embedding, of which each tensor rank has one; choose "
         "--vocabulary cut, or --subsequences 1"},
        {c->vocabulary == VOCABULARY_GATHERED && c->tp > 1 && m->tied_head, "--vocabulary",
         "'gathered' is a whole embedding and a divided head, which a model with a tied head cannot have; choose cut or whole"},
        {c->vocabulary == VOCABULARY_GATHERED && c->tp > 1 && m->vocab % (int64_t)c->tp != 0, "--vocabulary",
         "'gathered' needs equal parts of the vocabulary, which does not divide over the tensor ranks; choose cut, or another --tp"},
        {c->vocabulary == VOCABULARY_WHOLE && c->tp > 1 && c->sequence_parallel_ranks > 1, "--vocabulary",
         "'whole' computes the logits of all tokens on every tensor rank, but the tensor plan divides the tokens; choose "
         "--tensor-plan replicated, or --vocabulary gathered"},
        {c->bf16_layers > 0 && c->products == PRODUCTS_BF16, "--bf16-layers",
         "all layers multiply in bf16; choose --products, or leave it out"},
        {2 * (int64_t)c->bf16_layers >= m->layers && c->bf16_layers > 0, "--bf16-layers",
         "no layer between the first and the last ones is left; choose less than half of the model's layers"},
        {c->param_gather == PARAM_GATHER_OVERLAP && (weights_shard_params(c) || c->weights == CHOICE_WEIGHTS_REPLICATED), "--param-gather",
         "overlap gathers parameters of which each rank updates a part and keeps all; choose --weights zero1 or zero2, or end"},
        {c->param_gather == PARAM_GATHER_OVERLAP && (c->optimizer == CHOICE_OPTIMIZER_HOST || pipeline_has_remote_weights(c) || states_master_dtype((enum states)c->states) == (enum dtype)c->dtype), "--param-gather",
         "overlap is of AdamW on the device, with fp32 masters beside the parameters, and of stages that hold the weights of their "
         "own layers; choose end"},
        {c->primary_weights == PRIMARY_WEIGHTS_QUANTISED && c->products == PRODUCTS_BF16, "--primary-weights",
         "all layers multiply in bf16; choose --products, or 16bit"},
        {c->primary_weights == PRIMARY_WEIGHTS_QUANTISED && (c->products == PRODUCTS_FP8_ROW || c->products == PRODUCTS_FP8_BLOCK), "--primary-weights",
         "quantised weights are modelled with --products fp8-tensor, fp8-delayed, mxfp8 and nvfp4; choose one of them, or 16bit"},
        {c->primary_weights == PRIMARY_WEIGHTS_QUANTISED && weights_shard_params(c) && c->products != PRODUCTS_FP8_TENSOR && c->products != PRODUCTS_FP8_DELAYED, "--primary-weights",
         "sharded parameters are gathered in 8 bits with --products fp8-tensor and fp8-delayed; choose one of them, --weights zero1 "
         "or zero2, or 16bit"},
        {c->primary_weights == PRIMARY_WEIGHTS_QUANTISED && !weights_shard_params(c) && c->profile->backward_quantises_again, "--primary-weights",
         "torchao keeps the parameters that ranks hold whole, and quantises them in each forward; choose --weights zero3 or hsdp, "
         "whose shards it gathers in 8 bits, a profile of Megatron, or 16bit"},
        {c->primary_weights == PRIMARY_WEIGHTS_QUANTISED && (c->optimizer == CHOICE_OPTIMIZER_HOST || pipeline_has_remote_weights(c) || states_master_dtype((enum states)c->states) == (enum dtype)c->dtype), "--primary-weights",
         "AdamW on the device keeps masters, of which quantised weights are made, and stages hold the weights of their own layers; "
         "choose 16bit"},
        {narrow_core && c->products == PRODUCTS_BF16, "--attention-products",
         "all layers multiply in bf16; choose --products, or bf16"},
        {narrow_core && !core_recipe, "--attention-products",
         "TransformerEngine's attention in 8 bits has the scales of --products fp8-tensor, fp8-delayed and mxfp8; choose one of "
         "them, or bf16"},
        {narrow_core && c->products != PRODUCTS_FP8_DELAYED && c->sm >= 89 && c->sm < 100, "--attention-products",
         "before Blackwell, attention in 8 bits has scales that follow from earlier steps only (TransformerEngine, "
         "dot_product_attention/utils.py); choose --products fp8-delayed, or bf16"},
        {narrow_core && c->attention_impl != ATTENTION_CUDNN, "--attention-products",
         "only cuDNN's kernels train attention in 8 bits; choose --attention cudnn, or bf16"},
        {narrow_core && c->cp * c->hp > 1, "--attention-products",
         "what ranks that share a sequence send of attention in 8 bits is not modelled; choose --cp 1 and --hp 1, or bf16"},
        {narrow_core && (c->attention == CHOICE_ATTENTION_FPDT || c->attention == CHOICE_ATTENTION_UPIPE || c->subsequences > 1), "--attention-products",
         "attention in 8 bits is modelled for whole sequences with all of a rank's heads; choose a strategy such as local or "
         "megatron-sp, without --subsequences, or bf16"},
        {narrow_core && (c->documents != NULL || m->window_chunks), "--attention-products",
         "cuDNN has no kernels in 8 bits for packed documents and for chunks of a sequence; choose bf16"},
        {narrow_core && c->products == PRODUCTS_MXFP8 && (m->head_dim % 32 != 0 || transformer_v_head_dim(m) % 32 != 0 || c->seq % 128 != 0), "--attention-products",
         "with mxfp8, heads must have a multiple of 32 columns, and sequences a multiple of 128 tokens; choose bf16"},
        {c->host_layers > 0 && (c->activations != CHOICE_ACTIVATIONS_KEEP || c->recompute_modules != 0), "--host-layers",
         "the layers save for the backward what it reads, and recompute nothing; choose --activations keep and "
         "--up-projection keep, without --recompute-modules, or leave it out"},
        {c->recompute_modules != 0 && c->activations != CHOICE_ACTIVATIONS_KEEP && c->activations != CHOICE_ACTIVATIONS_SELECTIVE_CORE, "--recompute-modules",
         "says what is made again where the rest is kept; choose --activations keep, or selective-core, or leave it out"},
        {c->host_layers > 0 && (c->pp > 1 || c->subsequences > 1), "--host-layers",
         "a rank's layers are those of the whole model and of a whole sequence; choose --pp 1 and no subsequences, or leave it out"},
        {(int64_t)c->host_layers >= m->layers && c->host_layers > 0, "--host-layers",
         "no layer is left to compute while others are copied; choose less than the model's layers"},
        {m->adapter_rank > 0 && c->tp > 1, "--tp",
         "adapters are not modelled with tensor ranks; choose --tp 1"},
        {m->adapter_rank > 0 && c->ep > 1, "--ep",
         "adapters are not modelled with experts over ranks; choose --ep 1"},
        {m->adapter_rank > 0 && pipeline_of_choices(c)->is_multiplexed, "--pipeline",
         "stages that hold parts of each other's weights are not modelled with adapters; choose another pipeline"},
        {m->adapter_rank > 0 && c->products != PRODUCTS_BF16, "--products",
         "adapters are not modelled with products in 8 bits; choose --products bf16"},
        {c->frozen_weights != FROZEN_STORAGE_16BIT && m->hidden % 2 != 0, "--frozen-weights",
         "two weights share a byte, and the model's hidden size is odd; choose 16bit"},
        {c->frozen_weights != FROZEN_STORAGE_16BIT && m->experts > 0, "--frozen-weights",
         "how the weights of experts are stored in 8 or 4 bits is not modelled; choose 16bit"},
        {c->frozen_weights != FROZEN_STORAGE_16BIT && (c->optimizer == CHOICE_OPTIMIZER_HOST && c->parameters == PARAMETERS_HOST), "--frozen-weights",
         "weights stored in 8 or 4 bits are on the device; choose --parameters device, or 16bit"},
        {m->adapter_rank > 0 && c->activations == CHOICE_ACTIVATIONS_SELECTIVE_OP, "--activations",
         "which products selective checkpointing keeps is not known of adapters; choose --activations keep or full"},
        {m->experts > 0 && pipeline_of_choices(c)->is_multiplexed, "--pipeline",
         "stages that hold parts of each other's weights are not modelled with experts; choose another pipeline"},
        {m->positions == POSITIONS_LEARNED && c->seq > m->max_positions, "--seq",
         "the sequence is longer than the model's table of learned positions; choose a shorter --seq, or raise "
         "max_positions with --set"},
        {c->scope == SCOPE_WHOLE_STEP && c->seq < 2, "--seq",
         "a sequence of 1 token has no token to predict, and so no loss; choose --seq 2 or more, or a --scope without the loss"},
        {overlaps && c->pp > 1 && (c->pipeline != CHOICE_PIPELINE_INTERLEAVED || c->virtual_stages < 2), "--expert-overlap",
         "a stage's forward runs beside a backward that does not need it, which only interleaved stages of several chunks have; choose "
         "--pipeline interleaved and --virtual-stages 2 or more, --pp 1, or none"},
        {overlaps && c->subsequences > 1, "--expert-overlap",
         "the forward of a whole micro-batch runs beside the backward of another; choose --subsequences 1, or none"},
        {overlaps && c->ffn_chunks > 1, "--expert-overlap",
         "a layer has one exchange of tokens and one of results, and with pieces it has several; choose --ffn-chunks 1, or none"},
        {overlaps && c->dispatcher == DISPATCHER_ALLGATHER, "--expert-overlap",
         "exchanges that run beside another micro-batch are all-to-alls; choose --dispatcher alltoall, deepep or hybridep, or none"},
        {overlaps && c->shared_experts != SHARED_EXPERTS_BEFORE_ROUTED, "--expert-overlap",
         "another micro-batch runs beside the exchanges, and shared experts before them; choose --shared-experts before, or none"},
        {overlaps && (c->activations != CHOICE_ACTIVATIONS_KEEP && c->activations != CHOICE_ACTIVATIONS_SELECTIVE_CORE), "--expert-overlap",
         "a backward that computes layers again, or fetches what they keep, is not modelled beside a forward; choose --activations "
         "keep or selective-core, perhaps with --recompute-modules, or none"},
        {overlaps && ((c->recompute_modules >> RECOMPUTE_MOE & 1) != 0 || c->host_layers > 0), "--expert-overlap",
         "a backward that exchanges tokens again, or layers that the host keeps, are not modelled beside a forward; leave moe out of "
         "--recompute-modules, and --host-layers out, or choose none"},
        {overlaps && (weights_shard_params(c) || weights_reduce_each_micro_batch(c)), "--expert-overlap",
         "parameters that are gathered for each pass, and gradients that are reduced after each, are not modelled for two passes at "
         "once; choose --weights replicated or zero1, or none"},
        {overlaps && (c->attention == CHOICE_ATTENTION_FPDT || c->attention == CHOICE_ATTENTION_UPIPE), "--expert-overlap",
         "strategies fpdt and upipe take a layer in pieces; choose another --strategy, or none"},
        /* the thread would wait for a collective and not issue the message for which another stage waits */
        {c->pp > 1 && c->profile->weight_collectives_block_issue, "--pp",
         "under profile fsdp-gloo collectives hold the thread that computes, which pipelines are not modelled with; choose --pp "
         "1, or another profile"},
        {c->ring_window > 1 && (c->rotation != ROTATE_P2P || c->profile->ring_keeps_blocks), "--window",
         "windows are rings of messages within a ring of messages, which neither the other rotations nor profile "
         "megatron-te have; choose --window 1, or --rotate p2p and another profile"},
        {(c->rotation == ROTATE_BY_CORE_PLAN || c->rotation == ROTATE_NEEDED_ROWS) && m->window_chunks, "--rotate",
         "the model attends within chunks, and rows that ranks need of each other, and the tiles of a core plan, are found for "
         "windows only; choose --rotate p2p or all-gather, and a core plan without tiles, or none"},
        {c->rotation == ROTATE_BY_CORE_PLAN && transformer_v_head_dim(m) != m->head_dim, "--core-plan",
         "the model's keys and values have heads of different widths (latent attention), whose rows the tiles of a plan do not "
         "move; choose a plan without tiles"},
        {c->rotation == ROTATE_BY_CORE_PLAN && c->scope != SCOPE_WHOLE_STEP && c->scope < SCOPE_ALL_LAYERS, "--scope",
         "the tiles of a core plan are those of the sequences of a step, which this scope does not have; choose --scope model"},
        {c->rotation == ROTATE_NEEDED_ROWS && c->cp > 1 && transformer_v_head_dim(m) != m->head_dim, "--rotate",
         "the model's keys and values have heads of different widths (latent attention), whose rows 'needed' does not move; choose "
         "p2p, all-to-all or all-gather"},
        {c->rotation == ROTATE_NEEDED_ROWS && c->cp > 1 && c->scope != SCOPE_WHOLE_STEP && c->scope < SCOPE_ALL_LAYERS, "--scope",
         "which rows ranks need follows from the sequences of a step (--rotate needed), which this scope does not have; "
         "choose --scope model"},
        {c->documents != NULL && c->scope != SCOPE_WHOLE_STEP && c->scope < SCOPE_ALL_LAYERS, "--scope",
         "the documents of a step's sequences are those of all its micro-batches, of which this scope has one; choose --scope "
         "model"},
    };
    /* clang-format on */
    return resolve_refuse_first_broken_rule(rules, ARRAY_LEN(rules), diag);
}

/* Refuses combinations with FPDT, which takes a sequence in chunks, and with UPipe, which takes heads in stages, and
 * with the exchange of latents. */
static enum status check_attention_combinations(const struct choices *c, struct diag *diag)
{
    bool chunks = c->attention == CHOICE_ATTENTION_FPDT,
         stages = c->attention == CHOICE_ATTENTION_UPIPE;
    bool only_operator =
        c->scope == SCOPE_ATTENTION_OPERATOR || c->scope == SCOPE_ATTENTION_OPERATOR_FORWARD ||
        c->scope == SCOPE_ATTENTION_OPERATOR_BACKWARD || c->scope == SCOPE_ATTENTION_EXCHANGES;
    bool latents = derived_sends_latents(c);
    /* clang-format off */
    const struct rule rules[] = {
        {chunks && c->attention_dropout, "--dropout",
         "the kernels of chunks of a sequence (--strategy fpdt) are called without dropout; choose --dropout off"},
        {chunks && c->tp > 1, "--tp",
         "chunks of a sequence (--strategy fpdt) are projected one by one with whole weights, from rows that no tensor "
         "rank has gathered; choose --tp 1, with head ranks (--hp), which cut attention's heads as well"},
        {chunks && c->subsequences > 1, "--subsequences",
         "a sequence is cut either into chunks (--strategy fpdt) or into subsequences of a pipeline; leave out one of them"},
        {stages && c->tp > 1, "--tp",
         "the stages of --strategy upipe project their heads with whole weights, from rows that no tensor rank has gathered; "
         "choose --tp 1, with head ranks (--hp), which cut attention's heads as well"},
        {stages && c->model->adapter_rank > 0, "--strategy",
         "the stages of --strategy upipe project some heads at a time, which is not modelled with adapters; choose --strategy "
         "ulysses"},
        {stages && c->model->qk_norm_wide, "--strategy",
         "the stages of --strategy upipe project some heads at a time, and the model's norms of q and k go over all heads; "
         "choose --strategy ulysses"},
        {stages && c->model->kv_latent > 0, "--strategy",
         "the stages of --strategy upipe project some heads at a time from the layer's input, and latent attention projects "
         "them from a narrow vector; choose --strategy ulysses"},
        {stages && c->model->attention_sinks, "--strategy",
         "the stages of --strategy upipe attend with some heads at a time, and the model has sinks of attention, whose heads "
         "they would have to name; choose --strategy ulysses"},
        {latents && only_operator, "--scope",
         "with --mla-exchange latent attention contains the up-projection of keys and values, which the scopes of attention "
         "leave out; choose --scope layer"},
        {latents && c->scope == SCOPE_CHUNK_FETCHES_FROM_HOST, "--scope",
         "with --mla-exchange latent a chunk's keys and values are made anew from what is fetched, which --scope fetch "
         "leaves out; choose --scope layer"},
        {latents && c->products != PRODUCTS_BF16, "--mla-exchange",
         "the up-projection of the latents that ranks exchange is not modelled in 8 bits; choose --products bf16, or "
         "--mla-exchange expanded"},
        {stages && c->subsequences > 1, "--subsequences",
         "the stages of --strategy upipe attend to whole sequences; leave out --subsequences, or choose --strategy ulysses"},
        {stages && c->model->kv_heads % (int64_t)c->hp != 0, "--hp",
         "a stage of --strategy upipe sends every head rank one key and value head, so the model's key and value heads must "
         "divide evenly over the head ranks; choose a smaller --hp, or --strategy ulysses"},
        {stages && only_operator, "--scope",
         "the stages of --strategy upipe contain the projection, which the scopes of attention leave out; choose --scope layer"},
    };
    /* clang-format on */
    return resolve_refuse_first_broken_rule(rules, ARRAY_LEN(rules), diag);
}

/* ---- choices that the request makes or leaves open ---- */

/* Returns those of the modules `asked` that drop something in this model. Both are masks of bits 1 << enum
 * recompute_module. */
static uint8_t modules_with_effect(const struct transformer *m, const struct profile *profile,
                                   unsigned asked)
{
    const int64_t with_experts = m->experts > 0 ? transformer_count_expert_layers(m) : 0;
    const bool has[RECOMPUTE_MODULE_COUNT] = {
        [RECOMPUTE_LAYERNORM] =
            m->norm_place != NORM_AFTER &&
            (!profile->fuses_norms_into_products || m->kv_latent > 0 || with_experts > 0),
        [RECOMPUTE_MOE_ACT] = with_experts > 0,
        [RECOMPUTE_MLP] = with_experts<m->layers, [RECOMPUTE_MOE] = with_experts> 0,
        [RECOMPUTE_SHARED_EXPERTS] = with_experts > 0 && m->shared_ffn > 0,
        [RECOMPUTE_MLA_UP_PROJ] = m->kv_latent > 0,
        [RECOMPUTE_CORE_ATTN] = true,
    };
    unsigned modules = 0;
    for (unsigned i = 0; i < RECOMPUTE_MODULE_COUNT; i++)
        modules |= has[i] ? asked & 1u << i : 0;
    return (uint8_t)modules;
}

/* Sets which activations are kept for the backward, and which modules are recomputed. If --recompute-modules names
 * modules and no choice of activations is given, all other activations are kept. of_strategy: the strategy's
 * activations. */
static void fill_activations(struct choices *c, const struct request *r, uint8_t of_strategy)
{
    const unsigned asked =
        (unsigned)r->recompute_modules |
        (r->up_projection == UP_PROJECTION_RECOMPUTE ? 1u << RECOMPUTE_MLA_UP_PROJ : 0);
    const bool core = (asked & 1u << RECOMPUTE_CORE_ATTN) != 0;
    c->activations = asked_or_default(
        r->activations, r->recompute_modules != 0 ? CHOICE_ACTIVATIONS_KEEP : of_strategy);
    if (core && c->activations == CHOICE_ACTIVATIONS_KEEP)
        c->activations = CHOICE_ACTIVATIONS_SELECTIVE_CORE;
    c->recompute_modules = modules_with_effect(r->model, c->profile, asked);
    /* --up-projection may ask for a module without --recompute-modules. Then it has an effect only if activations are
     * kept, and is no error otherwise. */
    if (r->recompute_modules == 0 && c->activations != CHOICE_ACTIVATIONS_KEEP)
        c->recompute_modules = 0;
    if ((c->recompute_modules >> RECOMPUTE_MLA_UP_PROJ & 1) != 0)
        c->up_projection = UP_PROJECTION_RECOMPUTE;
}

/* Sets the choices that do not depend on the ranks: those that the request makes, and those that it leaves to the
 * strategy and the profile. */
static void fill_choices(struct choices *c, const struct request *r,
                         const struct strategy *strategy)
{
#define COPIED(member) c->member = (uint8_t)r->member;
    COPIED_CHOICES(COPIED)
#undef COPIED
    c->attention = strategy->attention;
    c->pipeline = strategy->pipeline;
    c->weights = asked_or_default(r->weights, strategy->weights);
    fill_activations(c, r, strategy->activations);
    c->shared_experts =
        (uint8_t)(r->shared_experts != SHARED_EXPERTS_PROFILE ? r->shared_experts
                                                              : c->profile->shared_experts);
    if (c->shared_experts == SHARED_EXPERTS_PROFILE)
        c->shared_experts = SHARED_EXPERTS_DURING_COMBINE;
    c->offload_ratio = r->offload_ratio > 0 ? r->offload_ratio : 1;
    c->offload_hidden_bytes = r->offload_hidden_bytes;
    c->offload_hidden_bytes_by_subsequence = r->offload_hidden_bytes_by_subsequence;
    c->optimizer = asked_or_default(r->optimizer, CHOICE_OPTIMIZER_DEVICE);
    /* FPDT calls its kernel without dropout (DeepSpeed, sequence/fpdt_layer.py) */
    c->attention_dropout = r->dropout == DROPOUT_ON ||
                           (r->dropout == DROPOUT_MODEL && r->model->attention_dropout > 0 &&
                            c->attention != CHOICE_ATTENTION_FPDT);
    c->dtype = asked_or_default(r->dtype, DTYPE_BF16);
    c->bf16_layers = r->bf16_layers > 0 ? (uint32_t)r->bf16_layers : 0;
    c->frozen_weights =
        r->model->adapter_rank > 0 ? (uint8_t)r->frozen_weights : (uint8_t)FROZEN_STORAGE_16BIT;
    c->host_layers = r->host_layers > 0 ? (uint32_t)r->host_layers : 0;
    c->sm = r->sm;
    c->gpus_per_node = r->gpus_per_node;
    c->attention_impl = (uint8_t)choices_attention_impl_of_request(
        r, r->sm >= 90 ? c->profile->attention_impl_since_hopper : c->profile->attention_impl);
}

/* Sets when sharded parameters are freed and when gradients are reduced: as the request says, or else as the profile's
 * code does, which may depend on whether there are stages. With one micro-batch nothing accumulates, so gradients are
 * reduced in it (GRAD_SYNC_EACH). */
static void set_reshard_and_gradient_sync(struct choices *c, const struct request *r)
{
    const struct profile *p = c->profile;
    bool own =
        p->accumulates_unsharded_gradients || (c->pp > 1 && p->stages_reduce_gradients_at_step_end);
    bool last = r->grad_sync == GRAD_SYNC_LAST || (r->grad_sync == GRAD_SYNC_PROFILE && own);
    bool never = c->pp > 1 && p->stages_keep_gathered_parameters;
    c->grad_sync = last && c->accumulation > 1 ? GRAD_SYNC_LAST : GRAD_SYNC_EACH;
    c->reshard = (uint8_t)(r->reshard != RESHARD_PROFILE      ? r->reshard
                           : never                            ? RESHARD_NEVER
                           : p->frees_root_unit_after_forward ? RESHARD_ROOT
                                                              : RESHARD_ALWAYS);
}

/* True if SDPA runs attention and the profile's compiled code passes it a mask. SDPA runs if the request names no
 * kernel, or cuDNN's, which transformers reaches only through SDPA; with a mask SDPA cannot choose flash-attention. No
 * mask is passed if ranks share a sequence, since accelerate removes it (context_parallel), nor for packed documents,
 * which have kernels of their own. */
static bool attention_gets_mask_tensor(const struct choices *c, const struct request *r)
{
    bool sdpa = r->attention_impl < 0 || r->attention_impl == ATTENTION_CUDNN;
    return c->profile->compiled_layers_give_sdpa_a_mask && c->kernels == KERNELS_COMPILED && sdpa &&
           c->cp * c->hp == 1 && c->documents == NULL;
}

enum status resolve_choices(struct choices *c, const struct request *asked, struct diag *note,
                            struct diag *diag)
{
    struct request filled = *asked, *r = &filled;
    *c = (struct choices){.model = r->model};
    size_t count;
    int row = find_strategy(r->strategy ? r->strategy : "ulysses", diag);
    if (row < 0)
        return STATUS_BAD_INPUT;
    const struct strategy *strategy = &strategies_list(&count)[row];
    c->strategy = (uint8_t)row;
    if (strategy->fills_subsequences)
        sppo_fill_degrees(r);
    /* "published" means the implementation that the request names, or else the strategy's own */
    bool published = r->profile == NULL || strcmp(r->profile, "published") == 0;
    const char *implementation = r->impl ? r->impl : strategy->profile;
    row = find_profile(published ? implementation : r->profile, !published, diag);
    if (row < 0)
        return STATUS_BAD_INPUT;
    c->profile = &profiles_list(&count)[row];
    fill_choices(c, r, strategy);
    if (check_range(r->ranks, 1 << 20, "--gpus", "the number of ranks", diag) != STATUS_OK ||
        check_range(r->seq, (int64_t)1 << 40, "--seq", "the sequence length", diag) != STATUS_OK ||
        check_range(r->global_batch > 0 ? r->global_batch : 1, 1 << 20, "--batch", "the batch",
                    diag) != STATUS_OK ||
        check_range(r->micro_batch > 0 ? r->micro_batch : 1, 1024, "--micro-batch",
                    "the micro-batch", diag) != STATUS_OK)
        return STATUS_BAD_INPUT;
    c->ranks = (uint32_t)r->ranks;
    c->seq = r->seq;
    struct transformer share;
    struct request stage = *r, inside;
    if (resolve_stages(c, &stage, diag) != STATUS_OK ||
        resolve_tensor_ranks(c, &stage, strategy, &inside, &share, diag) != STATUS_OK ||
        resolve_degrees(c, &inside, strategy, note, diag) != STATUS_OK ||
        resolve_batch(c, r, diag) != STATUS_OK || resolve_documents(c, r, diag) != STATUS_OK ||
        resolve_per_document_layout(c, diag) != STATUS_OK ||
        resolve_core_plan(c, r, diag) != STATUS_OK || pipeline_resolve(c, r, diag) != STATUS_OK ||
        resolve_shard_rank_count(c, &inside, diag) != STATUS_OK ||
        resolve_experts(c, r, diag) != STATUS_OK)
        return STATUS_BAD_INPUT;
    set_reshard_and_gradient_sync(c, r);
    c->core_gets_causal_mask_tensor = attention_gets_mask_tensor(c, r);
    int64_t rows = c->seq / c->hp / c->cp / c->subsequences * c->micro_batch;
    struct resolve_piece_counts pieces;
    if (resolve_sequence_chunks(c, r, &pieces, diag) != STATUS_OK ||
        resolve_loss(c, r, rows, &pieces, diag) != STATUS_OK ||
        resolve_piece_count(&c->loss_chunks, pieces.loss_pieces, rows, "--loss-chunks", diag) !=
            STATUS_OK ||
        resolve_piece_count(&c->ffn_chunks, pieces.ffn_pieces, rows / c->tp, "--ffn-chunks",
                            diag) != STATUS_OK ||
        check_combinations(c, diag) != STATUS_OK ||
        check_attention_combinations(c, diag) != STATUS_OK)
        return STATUS_BAD_INPUT;
    resolve_listing_of_expert_copies(c);
    if (note)
        sppo_add_notes_on_filled(c, asked, note);
    return STATUS_OK;
}

#include "predict/setup/choice_rows.h"
#include "predict/setup/routing_load.h"

#include "base/name_set.h"
#include "base/units.h"
#include "models/cluster.h"
#include "predict/setup/core_plan_option.h"
#include "predict/setup/partition_option.h"
#include "schedule/choices/products.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/strategies.h"
#include "schedule/config/derived.h"

#include <stdio.h>
#include <string.h>

/* The choices of --dtype and --attention are the first values of their enums. Kernels in 8 bits are left out, since
 * --attention-products chooses them. */
enum { DTYPE_CHOICES = DTYPE_F32 + 1, ATTENTION_CHOICES = ATTENTION_CUDNN_FP8 };
static const char *const checkpoint_choices[] = {
    "none",         "selective++",     "full",          "offload", "selective++offload",
    "selective-op", "selective-layer", "selective-core"};

_Static_assert(CHOICE_ACTIVATIONS_KEEP == 0 && CHOICE_ACTIVATIONS_OFFLOAD == 3,
               "checkpoint_choices");
_Static_assert(CHOICE_WEIGHTS_REPLICATED == 0 && CHOICE_WEIGHTS_ZERO3 == 3, "--zero counts on it");

/* ---- conditions under which choices matter, and notes for those that do not ---- */

static bool has_tensor_ranks(const struct choices *c)
{
    return c->tp > 1;
}

static bool has_experts(const struct choices *c)
{
    return c->model->experts > 0;
}

static bool has_spread_experts(const struct choices *c)
{
    return has_experts(c) && c->ep > 1;
}

static bool has_shared_experts(const struct choices *c)
{
    return has_experts(c) && c->model->shared_ffn > 0;
}

static bool has_host_layers(const struct choices *c)
{
    return c->host_layers > 0;
}

static bool drops_modules(const struct choices *c)
{
    return c->recompute_modules != 0;
}

static bool saves_expanded_keys(const struct choices *c)
{
    return c->model->kv_latent > 0 && c->activations == CHOICE_ACTIVATIONS_KEEP;
}

static bool head_ranks_exchange_latents(const struct choices *c)
{
    return c->model->kv_latent > 0 && (c->hp > 1 || fpdt_offloads(c));
}

static bool shards_parameters(const struct choices *c)
{
    return weights_shard_params(c);
}

static bool gathers_updates(const struct choices *c)
{
    return c->weights != CHOICE_WEIGHTS_REPLICATED && c->ranks > c->tp * c->pp;
}

static bool accumulates_sharded(const struct choices *c)
{
    return c->accumulation > 1 && c->weights >= CHOICE_WEIGHTS_ZERO2 && c->ranks > c->tp * c->pp;
}

static bool has_ring(const struct choices *c)
{
    return c->cp > 1;
}

static bool has_core_plan(const struct choices *c)
{
    return c->core_plan != NULL;
}

static bool has_merges_or_chains(const struct choices *c)
{
    return has_ring(c) || c->profile->chains != CHAINS_FUSED;
}

/* Returns whether the order of context and head ranks matters. With cp 1 or hp 1 all orders are the same. */
static bool has_rank_placement(const struct choices *c)
{
    return c->cp > 1 && c->hp > 1;
}

static bool has_stages(const struct choices *c)
{
    return c->pp > 1;
}

static bool has_stage_placement(const struct choices *c)
{
    return c->pp > 1 && c->dp > 1;
}

static bool has_windows(const struct choices *c)
{
    return c->ring_window > 1;
}

static bool multiplies_narrow(const struct choices *c)
{
    return c->products != PRODUCTS_BF16;
}

static bool has_frozen_weights(const struct choices *c)
{
    return c->model->adapter_rank > 0;
}

static bool has_chunks(const struct choices *c)
{
    return c->chunk_count > 1;
}

static bool has_subsequences(const struct choices *c)
{
    return c->subsequences > 1;
}

static bool shares_units(const struct choices *c)
{
    return c->pipeline == CHOICE_PIPELINE_MSP;
}

static bool offloads_by_ratio(const struct choices *c)
{
    return c->activations == CHOICE_ACTIVATIONS_RATIO;
}

static bool is_sparse(const struct choices *c)
{
    return c->model != NULL && c->model->attention_chunk > 0;
}

/* Returns whether the pipeline is msp, or was requested as msp and became seq1f1b because it shares no subsequence. */
static bool wants_shared_units(const struct request *r, const struct choices *c)
{
    return shares_units(c) || r->pipeline == CHOICE_PIPELINE_MSP;
}

static bool is_asked_count_at_most_shared(uint32_t asked, uint32_t shared)
{
    return asked == SHARED_UNITS_UP_TO_IDLE_STAGES || asked <= shared;
}

static bool shares_as_asked(const struct request *r, const struct choices *c)
{
    return !shares_units(c) || r->shared_units == NULL ||
           (is_asked_count_at_most_shared(r->shared_units->first, c->shared_units.first) &&
            is_asked_count_at_most_shared(r->shared_units->last, c->shared_units.last));
}

/* False only if the layout that cuts each document was requested and there is a ring, but the layout is not used.
 * Without a ring another note says why the layout is not used. */
static bool cuts_documents(const struct request *r, const struct choices *c)
{
    return r->ring_layout != RING_ZIGZAG_DOCUMENTS || c->cp == 1 ||
           c->ring_layout == RING_ZIGZAG_DOCUMENTS;
}

/* False if --expert-overlap micro-batch changes nothing. With only as many micro-batches as stages, every stage begins
 * with all forwards, so that none runs beside a backward; but the option still moves shared experts before the
 * exchanges if the profile has them elsewhere. */
static bool expert_overlap_has_effect(const struct request *r, const struct choices *c)
{
    const bool moves_shared = c->model->shared_ffn > 0 &&
                              r->shared_experts == SHARED_EXPERTS_PROFILE &&
                              c->profile->shared_experts != SHARED_EXPERTS_BEFORE_ROUTED;
    return c->expert_overlap != EXPERT_OVERLAP_MICRO_BATCH || c->accumulation > c->pp ||
           moves_shared;
}

#define CHANGES_NOTHING_PREFIX "changes nothing: "
static const char no_tensor_ranks[] =
    CHANGES_NOTHING_PREFIX "it is about tensor ranks, and tp is 1";
static const char no_sharded_parameters[] =
    CHANGES_NOTHING_PREFIX "it is about parameters that ranks share (--zero 3, --weights hsdp)";
static const char no_modules[] = CHANGES_NOTHING_PREFIX
    "it is about modules that the model has and that drop something: experts, shared "
    "experts, latent "
    "attention, a dense feed-forward part, or norms that are operators of their own (with "
    "profile megatron-te only those before experts and before latent attention)";
static const char no_expanded[] = CHANGES_NOTHING_PREFIX
    "it is about latent attention whose expanded queries, keys and values are kept "
    "(--activations keep)";
static const char no_latents_sent[] = CHANGES_NOTHING_PREFIX
    "it is about latent attention whose heads are divided among ranks (--hp above 1), or "
    "whose keys and values are on the host (--strategy fpdt)";
static const char no_experts[] = CHANGES_NOTHING_PREFIX "it is about mixtures of experts";
static const char no_spread_experts[] =
    CHANGES_NOTHING_PREFIX "it is about experts that are spread over ranks (--ep above 1)";
static const char no_passes_beside[] = CHANGES_NOTHING_PREFIX
    "a step has no more micro-batches than pipeline stages, so no forward runs beside a "
    "backward; a larger --batch or a smaller --micro-batch gives it more";
static const char no_shared_experts[] =
    CHANGES_NOTHING_PREFIX "it is about shared experts beside routed ones, which the model has not";
static const char no_ring[] = CHANGES_NOTHING_PREFIX "it is about rings, and cp is 1",
                  not_frozen[] = CHANGES_NOTHING_PREFIX "without --adapter no weights are frozen",
                  no_chunks[] =
                      CHANGES_NOTHING_PREFIX "it is about chunks of a sequence, and there is one",
                  no_shared[] = CHANGES_NOTHING_PREFIX "--pipeline msp alone shares subsequences",
                  no_subsequences[] = CHANGES_NOTHING_PREFIX "there are no --subsequences",
                  no_windows[] =
                      CHANGES_NOTHING_PREFIX "it is about windows of a ring, and --window is 1",
                  no_places[] =
                      CHANGES_NOTHING_PREFIX "it is about the ranks of 2d, with cp and hp above 1";
static const char no_stages[] =
    CHANGES_NOTHING_PREFIX "it is about stages of a pipeline, and pp is 1";
static const char no_stage_places[] =
    CHANGES_NOTHING_PREFIX "it is about stages beside other sequences, with pp and dp above 1";
static const char no_merges[] =
    CHANGES_NOTHING_PREFIX "cp is 1, and all work of the profile is fused already";
static const char no_documents[] = CHANGES_NOTHING_PREFIX
    "each sequence is one document, which zigzag cuts in the same way; --documents packs "
    "several into a sequence";
static const char too_many_shared[] =
    "is more than there is to share: while a pipeline fills and while it drains, one less than "
    "its stages";

/* ---- choices that are read, printed or named by functions of their own ---- */

static size_t fill_one_named_value(struct choice_value *value, const char *name)
{
    value->form = CHOICE_NAMED;
    value->name = name;
    return 1;
}

static bool append_strategy_value(struct text *out, const struct request *r)
{
    text_puts(out, r->strategy);
    return true;
}

static size_t strategy_values(struct choice_value *value, const struct choices *c)
{
    size_t count;
    return fill_one_named_value(value,
                                c == NULL ? NULL : strategies_list(&count)[c->strategy].name);
}

static bool append_profile_value(struct text *out, const struct request *r)
{
    const char *profile = r->profile != NULL ? r->profile : "published";
    text_puts(out, profile);
    return strcmp(profile, "neutral") != 0;
}

static size_t profile_values(struct choice_value *value, const struct choices *c)
{
    return fill_one_named_value(value, c == NULL ? NULL : c->profile->name);
}

static bool append_core_plan_value(struct text *out, const struct request *r)
{
    text_puts(out, r->core_plan != NULL ? r->core_plan : "");
    return r->core_plan != NULL;
}

static size_t core_plan_values(struct choice_value *value, const struct choices *c)
{
    return fill_one_named_value(value, c == NULL ? NULL : c->core_plan);
}

static bool append_msp_weights_value(struct text *out, const struct request *r)
{
    text_puts(out, helper_names[r->helpers]);
    return r->pipeline == CHOICE_PIPELINE_MSP && r->helpers > 0;
}

static enum status read_shared(struct setup *setup, const char *text, struct diag *diag)
{
    struct request *r = &setup->request;
    struct shared_units *shared = &setup->shared_units;
    const char *comma = text != NULL ? strchr(text, ',') : NULL;
    uint64_t first = 0, last = 0;
    r->must_compute_shared_units = text == NULL || strcmp(text, "auto") == 0;
    if (r->must_compute_shared_units)
        return STATUS_OK;
    size_t size = comma != NULL ? (size_t)(comma - text) : strlen(text);
    r->shared_units = shared;
    if (strcmp(text, "both") == 0)
        *shared =
            (struct shared_units){SHARED_UNITS_UP_TO_IDLE_STAGES, SHARED_UNITS_UP_TO_IDLE_STAGES};
    else if (strcmp(text, "first") == 0)
        *shared = (struct shared_units){SHARED_UNITS_UP_TO_IDLE_STAGES, 0};
    else if (parse_u64(text, size, &first) && first <= UINT16_MAX &&
             (comma == NULL ||
              (parse_u64(comma + 1, strlen(comma + 1), &last) && last <= UINT16_MAX)))
        *shared = (struct shared_units){(uint32_t)first, (uint32_t)last};
    else
        return diag_error(diag, (struct loc){.name = "--share-units"}, STATUS_BAD_INPUT,
                          "'%s' is not auto, both, first, a number of first subsequences, or that "
                          "and one of last ones, such as 3,1",
                          text);
    return STATUS_OK;
}

static enum status read_routing(struct setup *setup, const char *text, struct diag *diag)
{
    setup->request.routing = NULL;
    if (text == NULL || strcmp(text, "even") == 0)
        return STATUS_OK;
    enum status status = routing_load(&setup->routing, &setup->arena, &setup->model, text, diag);
    if (status == STATUS_OK)
        setup->request.routing = &setup->routing;
    return status;
}

static bool append_routing_value(struct text *out, const struct request *r)
{
    text_puts(out, r->routing != NULL ? r->routing->name : "even");
    return r->routing != NULL;
}

static size_t routing_values(struct choice_value *value, const struct choices *c)
{
    return fill_one_named_value(value, c != NULL && c->routing != NULL ? c->routing->name : "even");
}

static void put_capacity(struct text *out, struct expert_capacity capacity)
{
    if (capacity.capacity_factor_millionths == 0) {
        text_puts(out, "none");
        return;
    }
    text_printf(out, "%.10g%s%s", (double)capacity.capacity_factor_millionths / CAPACITY_UNIT,
                capacity.pads ? ",pad" : "",
                capacity.drop_policy == TOKEN_DROP_POSITION ? ",position" : "");
}

static enum status read_capacity(struct setup *setup, const char *text, struct diag *diag)
{
    struct expert_capacity *to = &setup->request.expert_capacity;
    *to = (struct expert_capacity){0};
    if (text == NULL || strcmp(text, "none") == 0)
        return STATUS_OK;
    const size_t size = strcspn(text, ",");
    double factor = 0;
    bool read = parse_double(text, size, &factor) && factor >= 1e-6 &&
                factor <= (double)CAPACITY_MAX / CAPACITY_UNIT;
    for (const char *word = text + size; read && *word == ',';) {
        const size_t length = strcspn(++word, ",");
        const bool pad = length == 3 && memcmp(word, "pad", 3) == 0;
        int64_t *part = pad ? &to->pads : &to->drop_policy;
        read = *part == 0 && (pad || (length == 8 && memcmp(word, "position", 8) == 0));
        *part = pad ? 1 : TOKEN_DROP_POSITION;
        word += length;
    }
    if (!read)
        return diag_error(diag, (struct loc){.name = "--expert-capacity"}, STATUS_BAD_INPUT,
                          "'%s' is not none, or a FACTOR from 0.000001 to 1000, with ,pad or "
                          ",position after it, each at most once, such as 1.25,pad",
                          text);
    to->capacity_factor_millionths = (int64_t)(factor * CAPACITY_UNIT + 0.5);
    return STATUS_OK;
}

static bool append_expert_capacity_value(struct text *out, const struct request *r)
{
    put_capacity(out, r->expert_capacity);
    return r->expert_capacity.capacity_factor_millionths > 0;
}

static size_t capacity_values(struct choice_value *value, const struct choices *c)
{
    struct text text = {0};
    put_capacity(&text, c != NULL ? c->expert_capacity : (struct expert_capacity){0});
    snprintf(value->text, sizeof value->text, "%s", text.data);
    text_release(&text);
    return fill_one_named_value(value, NULL);
}

static void put_modules(struct text *out, uint32_t modules)
{
    name_set_append_to_text(out, modules, recompute_module_names, RECOMPUTE_MODULE_COUNT, ",");
    if (modules == 0)
        text_puts(out, "none");
}

static enum status read_modules(struct setup *setup, const char *text, struct diag *diag)
{
    uint32_t modules = 0;
    size_t size;
    const char *wrong = NULL;
    if (text != NULL && strcmp(text, "none") != 0)
        wrong =
            name_set_read(&modules, text, recompute_module_names, RECOMPUTE_MODULE_COUNT, &size);
    setup->request.recompute_modules = (int)modules;
    if (wrong == NULL)
        return STATUS_OK;
    struct text all = {0};
    put_modules(&all, (1U << RECOMPUTE_MODULE_COUNT) - 1);
    enum status status =
        diag_error(diag, (struct loc){.name = "--recompute-modules"}, STATUS_BAD_INPUT,
                   "'%.*s' is no module; expected none, or some of %s",
                   (int)(size < 64 ? size : 64), wrong, all.data);
    text_release(&all);
    return status;
}

static bool append_recompute_modules_value(struct text *out, const struct request *r)
{
    put_modules(out, (unsigned)r->recompute_modules);
    return r->recompute_modules != 0;
}

static size_t modules_values(struct choice_value *value, const struct choices *c)
{
    struct text text = {0};
    put_modules(&text, c != NULL ? c->recompute_modules : 0);
    snprintf(value->text, sizeof value->text, "%s", text.data);
    text_release(&text);
    return fill_one_named_value(value, NULL);
}

static bool append_shared_units_value(struct text *out, const struct request *r)
{
    if (r->pipeline != CHOICE_PIPELINE_MSP || r->shared_units == NULL)
        return false;
    if (r->shared_units->first != SHARED_UNITS_UP_TO_IDLE_STAGES)
        text_printf(out, "%u,%u", r->shared_units->first, r->shared_units->last);
    else
        text_puts(out, r->shared_units->last == SHARED_UNITS_UP_TO_IDLE_STAGES ? "both" : "first");
    return true;
}

static size_t shared_values(struct choice_value *value, const struct choices *c)
{
    value[0].key = "shared_first";
    value[0].description = "number of first subsequences that stages share, while a pipeline fills";
    value[1].key = "shared_last";
    value[1].description = "number of last subsequences that stages share, while a pipeline drains";
    if (c != NULL) {
        value[0].whole_number = c->shared_units.first;
        value[1].whole_number = c->shared_units.last;
    }
    return 2;
}

static size_t compile_values(struct choice_value *value, const struct choices *c)
{
    value->form = CHOICE_TRUTH;
    value->whole_number = c != NULL && c->kernels == KERNELS_COMPILED;
    return 1;
}

static bool append_sequence_partition_value(struct text *out, const struct request *r)
{
    text_puts(out, partition_option_names[r->length_rule]);
    return r->subsequences > 1;
}

static size_t windows_values(struct choice_value *value, const struct choices *c)
{
    const bool interleaved = c != NULL && c->ring_ranks_per_node > 0;
    return fill_one_named_value(
        value, windows_names[interleaved ? WINDOWS_INTERLEAVED : WINDOWS_CONTIGUOUS]);
}

/* Returns whether activations are offloaded by ratio, on request or by the strategy's default. */
static bool asks_for_offload_ratio(const struct request *r)
{
    return r->must_compute_offload_hidden_bytes || r->activations == CHOICE_ACTIVATIONS_RATIO;
}

static bool append_activations_value(struct text *out, const struct request *r)
{
    if (r->activations < 0 || asks_for_offload_ratio(r))
        return false;
    text_puts(out, activations_names[r->activations]);
    return true;
}

static enum status read_offload_ratio(struct setup *setup, const char *text, struct diag *diag)
{
    struct request *r = &setup->request;
    struct loc at = {.name = "--offload-ratio"};
    double ratio = 0;
    if (text == NULL)
        return STATUS_OK;
    if (r->activations >= 0 && r->activations != CHOICE_ACTIVATIONS_RATIO)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "is for --activations ratio, and activations are '%s'",
                          activations_names[r->activations]);
    r->activations = CHOICE_ACTIVATIONS_RATIO;
    setup->offload_given = true;
    if (strcmp(text, "none") == 0)
        r->activations = CHOICE_ACTIVATIONS_KEEP;
    else if (strcmp(text, "adaptive") == 0)
        r->must_compute_offload_hidden_bytes = true;
    else if (strcmp(text, "full") == 0)
        r->offload_ratio = 1;
    else if (parse_double(text, strlen(text), &ratio) && ratio > 0 && ratio <= 1)
        r->offload_ratio = ratio;
    else
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "'%s' is not none, full, adaptive or a share above 0, at most 1", text);
    return STATUS_OK;
}

void choices_put_offload_ratio(struct text *out, bool adaptive, double ratio)
{
    if (adaptive)
        text_puts(out, "adaptive");
    else if (ratio > 0 && ratio < 1)
        text_put_double(out, ratio);
    else
        text_puts(out, "full");
}

static bool append_offload_ratio_value(struct text *out, const struct request *r)
{
    choices_put_offload_ratio(out, r->must_compute_offload_hidden_bytes, r->offload_ratio);
    return asks_for_offload_ratio(r);
}

static size_t offload_values(struct choice_value *value, const struct choices *c)
{
    struct text text = {0};
    if (c != NULL)
        choices_put_offload_ratio(&text, c->offload_hidden_bytes > 0, c->offload_ratio);
    snprintf(value->text, sizeof value->text, "%s", text.size > 0 ? text.data : "");
    text_release(&text);
    return fill_one_named_value(value, NULL);
}

static enum status read_sparsity(struct setup *setup, const char *text, struct diag *diag)
{
    struct loc at = {.name = "--sparsity"};
    double share = 0;
    if (text == NULL)
        return STATUS_OK;
    parse_double(text, strlen(text), &share);
    if (setup->request.chunk_tokens == 0)
        return diag_error(diag, at, STATUS_BAD_INPUT, "needs --chunk: it is a share of each chunk");
    if (share >= 1)
        return diag_error(diag, at, STATUS_BAD_INPUT, "is a share below 1");
    setup_set_sparsity(setup, setup->request.chunk_tokens, share);
    return STATUS_OK;
}

/* Returns the sparsity: the share of a chunk's keys that queries of other chunks do not see. setup_set_sparsity() does
 * the reverse. */
static double sparsity(const struct transformer *m)
{
    return (double)(m->attention_chunk - m->attention_kept) / (double)m->attention_chunk;
}

static bool append_sparsity_value(struct text *out, const struct request *r)
{
    if (r->model == NULL || r->model->attention_chunk <= 0)
        return false;
    text_put_double(out, sparsity(r->model));
    return true;
}

static size_t sparsity_values(struct choice_value *value, const struct choices *c)
{
    value->form = CHOICE_NUMBER;
    value->real_number = c != NULL && is_sparse(c) ? sparsity(c->model) : 0;
    return 1;
}

/* Sets the bits of the targets in a list of names; returns false if one is no target's. */
static bool read_adapter_targets(int64_t *targets, const char *list)
{
    for (const char *word = list;; word++) {
        const size_t size = strcspn(word, ",");
        const int target = name_set_find(adapter_target_names, ADAPTER_TARGET_COUNT, word, size);
        if (target >= 0)
            *targets |= 1 << target;
        else if (size == strlen("attention") && strncmp(word, "attention", size) == 0)
            *targets |= ADAPTER_TARGETS_OF_ATTENTION;
        else
            return false;
        word += size;
        if (*word == '\0')
            return true;
    }
}

static enum status read_adapter(struct setup *setup, const char *text, struct diag *diag)
{
    const struct loc at = {.name = "--adapter"};
    struct transformer *model = &setup->model;
    int64_t rank = 0, targets = 0;
    if (text == NULL)
        return STATUS_OK;
    const size_t digits = strcspn(text, ":");
    if (strcmp(text, "none") != 0 &&
        (!parse_i64(text, digits, &rank) || rank < 1 || rank > ADAPTER_RANK_MAX))
        return diag_error(
            diag, at, STATUS_BAD_INPUT,
            "'%.60s': expected none, or a rank from 1 to %d, which a colon and names of "
            "linear layers may follow: 16:q,v",
            text, ADAPTER_RANK_MAX);
    if (rank > 0 && text[digits] == ':' && !read_adapter_targets(&targets, text + digits + 1))
        return diag_error(
            diag, at, STATUS_BAD_INPUT,
            "'%.60s': after the colon stand names out of q, k, v, o, gate, up, down and "
            "attention",
            text);
    model->adapter_rank = rank;
    model->adapter_targets = targets;
    return transformer_check_adapters(model, at, diag);
}

static void put_adapter(struct text *out, const struct transformer *m)
{
    if (m->adapter_rank == 0) {
        text_puts(out, "none");
        return;
    }
    text_put_i64(out, m->adapter_rank);
    if (m->adapter_targets != 0)
        text_puts(out, ":");
    name_set_append_to_text(out, (uint32_t)m->adapter_targets, adapter_target_names,
                            ADAPTER_TARGET_COUNT, ",");
}

static bool append_adapter_value(struct text *out, const struct request *r)
{
    if (r->model == NULL || r->model->adapter_rank == 0)
        return false;
    put_adapter(out, r->model);
    return true;
}

static size_t adapter_values(struct choice_value *value, const struct choices *c)
{
    struct text text = {0};
    if (c != NULL)
        put_adapter(&text, c->model);
    snprintf(value->text, sizeof value->text, "%s", text.size > 0 ? text.data : "");
    text_release(&text);
    return fill_one_named_value(value, NULL);
}

/* ---- the table ---- */

#define NOT_PRINTED INT64_MAX
#define SEQUENCES_MAX (1 << 20)

/* The place and the size of a member in its struct. A member may be a pointer, whose own size is meant (hence
 * NOLINT). */
/* clang-format off */
#define STRUCT_MEMBER_PLACE(type, of)                                                                           \
    {                                                                                              \
        offsetof(struct type, of), sizeof(((struct type *)0)->of) /* NOLINT(bugprone-sizeof-expression) */ \
    }
/* clang-format on */
#define INTO(of, above)                                                                            \
    .request = STRUCT_MEMBER_PLACE(request, of), .printed_if_value_above = (above)
#define INTO_SHOWN(of, function) .request = STRUCT_MEMBER_PLACE(request, of), .show = (function)
#define BY_OWN(of, reads, shows)                                                                   \
    .request = STRUCT_MEMBER_PLACE(request, of), .read = (reads), .show = (shows)
#define ALIAS(of)                                                                                  \
    .request = STRUCT_MEMBER_PLACE(request, of), .printed_if_value_above = NOT_PRINTED,            \
    .is_alias = true
#define NAMED(of, all)                                                                             \
    .chosen_member = STRUCT_MEMBER_PLACE(choices, of), .value_names = (all),                       \
    .value_form = CHOICE_NAMED
#define COUNTED(of) .chosen_member = STRUCT_MEMBER_PLACE(choices, of), .value_form = CHOICE_COUNTED
#define TRUTH(of) .chosen_member = STRUCT_MEMBER_PLACE(choices, of), .value_form = CHOICE_TRUTH
#define VALUES(function) .values = (function)
#define LABEL(function) .values = (function), .only_names_other_choices = true
#define NOWHERE .chosen_member = {0}
#define ALWAYS .matters = NULL
#define IF(function, words) .matters = (function), .note = {{NULL, (words)}}
#define SHOWN_IF(function, words) IF(function, words), .is_always_in_json_and_sweeps = true
#define NOTES(function, first, words, second, others)                                              \
    .matters = (function), .note = {{(first), (words)}, {(second), (others)}}
#define ON_TOKENS(...) .subject = CHOICE_TOKENS, __VA_ARGS__
#define ON_BATCH(...) .subject = CHOICE_BATCH, __VA_ARGS__
#define ON_NUMBERS(...) .subject = CHOICE_NUMBERS, __VA_ARGS__
#define ON_CODE(...) .subject = CHOICE_CODE, __VA_ARGS__
#define ONE_OF(all, count) .kind = OPTION_CHOICE, .names = (all), .name_count = (count)
#define NUMBER_TO(most) .kind = OPTION_INTEGER, .value_name = "N", .low = 1, .high = (most)

const struct option choice_options[CHOICE_OPTION_COUNT] = {
#define CHOICE(name, request, chosen, use, ...) {__VA_ARGS__},
#define FOLLOWS(name, chosen, about)
#include "predict/setup/choices.def"
#undef CHOICE
#undef FOLLOWS
};

const struct choice_row choice_rows[CHOICE_NAME_COUNT] = {
#define CHOICE(name, request, chosen, use, ...)                                                    \
    {.key = #name, .option = &choice_options[CHOICE_OPTION_##name], request, chosen, use},
#define FOLLOWS(name, chosen, words) {.key = #name, .description = (words), chosen},
#include "predict/setup/choices.def"
#undef CHOICE
#undef FOLLOWS
};

const struct choice_row *choice_row_find(const char *option)
{
    for (int i = 0; i < CHOICE_NAME_COUNT; i++)
        if (choice_rows[i].option != NULL && strcmp(choice_rows[i].option->name, option) == 0)
            return &choice_rows[i];
    return NULL;
}

bool choice_row_is_printed(const struct choice_row *row)
{
    return row->printed_if_value_above != NOT_PRINTED;
}

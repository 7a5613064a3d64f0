/* Makes options from the settings that were read, by the framework to which they belong. */
#include "predict/launch/launch_parts.h"
#include "predict/launch/table_file.h"

#include "base/units.h"
#include "models/transformer.h"
#include "schedule/choices/products.h"
#include "schedule/choices/strategies.h"

#include <string.h>

/* Adds remarks if neither a file nor an option gives the model, or the tokens of a sequence. A launch of torchtitan
 * gets none about the model. */
static void remark_missing_model_or_length(struct launch *launch, struct launch_known_facts given)
{
    if (!given.is_model_known && !launch_has_option(launch, "model") &&
        !launch_has_field(launch, LAUNCH_MODEL) && !launch_has_field(launch, LAUNCH_FLAVOR) &&
        !launch->has_read_framework_file[LAUNCH_TORCHTITAN])
        launch_add_remark_printf(launch, REMARK_KNOWN_IN_RUN_ONLY, "the model", (struct loc){0},
                                 "no file says it: give its config.json with --from, or --model");
    if (!given.is_sequence_length_known && !launch_has_option(launch, "seq"))
        launch_add_remark_printf(launch, REMARK_KNOWN_IN_RUN_ONLY, "the length", (struct loc){0},
                                 "no file says it: give the tokens of a sequence with --seq");
}

/* If no file gives the length of a sequence, but files give those of a prompt and of an answer, as for reinforcement
 * learning, sets it to the sum of the two. */
static void set_length_of_prompt_plus_answer(struct launch *launch)
{
    int64_t prompt = launch_count_or(launch, LAUNCH_PROMPT, 0);
    int64_t answer = launch_count_or(launch, LAUNCH_ANSWER, 0);
    const struct launch_field_value *last = &launch->field_value[LAUNCH_ANSWER];
    if (launch_has_field(launch, LAUNCH_SEQ) || prompt <= 0 || answer <= 0)
        return;
    struct loc at = last->place;
    const char *name = last->setting_name;
    launch_set_count(launch, LAUNCH_SEQ, prompt + answer);
    launch->field_value[LAUNCH_SEQ].place = at;
    launch->field_value[LAUNCH_SEQ].setting_name = name;
}

/* For a table file's framework of Megatron's family whose files give the accumulation in place of the global batch:
 * sets the global batch to micro-batch x accumulation x data-parallel ranks, if the number of GPUs is known. */
static void set_global_batch_of_accumulation(struct launch *launch, int64_t gpus)
{
    static const enum launch_field shared[] = {LAUNCH_TP, LAUNCH_PP, LAUNCH_CP};
    const int64_t micro = launch_count_or(launch, LAUNCH_MICRO_BATCH, 1);
    const int64_t accumulation = launch_count_or(launch, LAUNCH_ACCUMULATION, 1);
    int64_t ranks = 1;
    if (!launch->has_read_framework_file[LAUNCH_FRAMEWORK_OF_TABLE_FILE] ||
        launch->table_file->family != LAUNCH_MEGATRON ||
        !launch_has_field(launch, LAUNCH_ACCUMULATION) ||
        launch_has_field(launch, LAUNCH_GLOBAL_BATCH) || micro < 1 || micro > 1 << 20 ||
        accumulation < 1 || accumulation > 1 << 20)
        return;
    for (size_t i = 0; i < ARRAY_LEN(shared); i++) {
        const int64_t degree = launch_count_or(launch, shared[i], 1);
        if (degree < 1 || degree > 1 << 10)
            return; /* it is refused later */
        ranks *= degree;
    }
    if (gpus < ranks)
        return;
    const struct launch_field_value from = launch->field_value[LAUNCH_ACCUMULATION];
    launch_set_count(launch, LAUNCH_GLOBAL_BATCH, micro * accumulation * (gpus / ranks));
    launch->field_value[LAUNCH_GLOBAL_BATCH].place = from.place;
    launch->field_value[LAUNCH_GLOBAL_BATCH].setting_name = from.setting_name;
}

/* Sets the micro-batch of a run that fills micro-batches up to a number of tokens of each rank (LAUNCH_TOKEN_BATCHES),
 * and adds a remark. It is the largest number of sequences of the longest length that fit and that divides the
 * sequences of a data-parallel rank in a step, if these are known; at least 1. Does nothing if no file gives the length
 * or the number of tokens. */
static void set_micro_batch_of_tokens(struct launch *launch, int64_t gpus)
{
    static const enum launch_field shared[] = {LAUNCH_TP, LAUNCH_PP, LAUNCH_CP, LAUNCH_SP};
    const int64_t seq = launch_count_or(launch, LAUNCH_SEQ, 0);
    int64_t tokens = launch_count_or(launch, LAUNCH_MICRO_TOKENS, 0), ranks = 1;
    if (!launch_is_on(launch, LAUNCH_TOKEN_BATCHES) || seq <= 0 || tokens <= 0)
        return;
    for (size_t i = 0; i < ARRAY_LEN(shared); i++) {
        const int64_t degree = launch_count_or(launch, shared[i], 1);
        if (degree < 1 || degree > 1 << 10)
            return; /* it is refused later */
        ranks *= degree;
        if (shared[i] == LAUNCH_CP || shared[i] == LAUNCH_SP)
            tokens *= degree;
    }
    const int64_t data = gpus >= ranks ? gpus / ranks : 1;
    const int64_t own = launch_count_or(launch, LAUNCH_GLOBAL_BATCH, 0) *
                        launch_count_or(launch, LAUNCH_ANSWERS, 1) / data;
    int64_t micro = tokens < seq ? 1 : tokens / seq;
    while (micro > 1 && own > 0 && own % micro != 0)
        micro--;
    const struct launch_field_value from = launch->field_value[LAUNCH_MICRO_TOKENS];
    launch_set_count(launch, LAUNCH_MICRO_BATCH, micro);
    launch->field_value[LAUNCH_MICRO_BATCH].place = from.place;
    launch->field_value[LAUNCH_MICRO_BATCH].setting_name = from.setting_name;
    launch_remark_on_field(launch, REMARK_ASSUMED, LAUNCH_MICRO_TOKENS,
                           "micro-batches of %lld sequences as long as the longest",
                           (long long)micro);
}

/* Returns whether a file sets this field, the format of 8- or 4-bit products, to a format and not to a word such as
 * "none" that switches them off. */
static bool sets_low_precision_format(const struct launch *launch, enum launch_field field)
{
    return launch_has_field(launch, field) &&
           !launch_is_predicted_value(NULL, launch_field_text(launch, field));
}

/* Adds a remark if linear layers multiply in 8 bits, but experts in 16: torchao's converter of linear layers leaves out
 * experts, and the launch lacks the converter of grouped products (torchtitan: quantize.grouped_mm). model: NULL if it
 * is not known. */
static void remark_experts_not_converted(struct launch *launch, const struct transformer *model)
{
    const enum launch_field from =
        launch_has_field(launch, LAUNCH_CONVERTERS) ? LAUNCH_CONVERTERS : LAUNCH_FP8;
    const char *list = launch_has_field(launch, from) ? launch_field_text(launch, from) : "";
    if (model != NULL && model->experts > 0 && launch_has_option(launch, "products") &&
        !launch_is_of_family(launch, LAUNCH_MEGATRON) && strstr(list, "grouped") == NULL)
        launch_remark_on_field(
            launch, REMARK_UNMODELLED, from,
            "no converter of grouped products: experts multiply in 16 bits, and in 8 "
            "here");
}

/* If products are in 8 or 4 bits except at the ends of the model: adds the option that says how many layers at each end
 * multiply in 16 bits (Megatron-LM, get_fp8_context(): first_last_layers_bf16). If the ends differ, the smaller number
 * counts, and a remark says so; if that number is 0, there is no option. */
static void add_bf16_layers_option(struct launch *launch)
{
    const int64_t first = launch_count_or(launch, LAUNCH_BF16_FIRST, 1),
                  last = launch_count_or(launch, LAUNCH_BF16_LAST, 1);
    const int64_t common_end = first < last ? first : last;
    if (!launch_is_on(launch, LAUNCH_BF16_ENDS) || !launch_has_option(launch, "products"))
        return;
    if (common_end > 0)
        launch_add_count_option(launch, LAUNCH_BF16_ENDS, "bf16-layers", common_end);
    if (first != last)
        launch_remark_on_field(
            launch, REMARK_UNMODELLED, LAUNCH_BF16_ENDS,
            "%lld first and %lld last layers multiply in 16 bits: the smaller number "
            "is predicted at both ends",
            (long long)first, (long long)last);
}

/* Adds --products if matrix products are in 4 or 8 bits. For 8 bits, the recipe says how scales are found; a recipe
 * that is not modelled becomes a remark. A file that names none means `delayed`, the default of Megatron and
 * TransformerEngine. */
static void add_products_option(struct launch *launch)
{
    static const char *const recipes[][2] = {
        {"delayed", "fp8-delayed"}, {"tensorwise", "fp8-tensor"}, {"rowwise", "fp8-row"},
        {"blockwise", "fp8-block"}, {"mxfp8", "mxfp8"},           {"rowwise_with_gw_hp", "fp8-row"},
        {"mxfp8_cublas", "mxfp8"}};
    bool on = sets_low_precision_format(launch, LAUNCH_FP8);
    bool is_recipe_given = launch_has_field(launch, LAUNCH_FP8_RECIPE);
    if (sets_low_precision_format(launch, LAUNCH_FP4))
        launch_add_option(launch, LAUNCH_FP4, "products", "nvfp4");
    if (!on)
        return;
    for (size_t i = 0; i < ARRAY_LEN(recipes); i++)
        if (strcmp(is_recipe_given ? launch_field_text(launch, LAUNCH_FP8_RECIPE) : "delayed",
                   recipes[i][0]) == 0) {
            launch_add_option(launch, LAUNCH_FP8, "products", recipes[i][1]);
            return;
        }
    launch_remark_on_field(
        launch, REMARK_UNMODELLED, LAUNCH_FP8_RECIPE,
        "products in 8 bits by another recipe: bf16 is predicted, whose products take "
        "up to twice as long");
}

/* Returns the value of an option that the launch has; NULL: it does not have the option. */
static const char *option_value(const struct launch *launch, const char *name)
{
    for (size_t i = 0; i < launch->option_count; i++)
        if (strcmp(launch->option[i].name, name) == 0)
            return launch->option[i].value;
    return NULL;
}

/* Adds --primary-weights if parameters are kept in the 8 or 4 bits in which products read them. If that is not
 * modelled, adds a remark instead. */
static void add_primary_weights_option(struct launch *launch)
{
    const char *products = option_value(launch, "products"),
               *weights = option_value(launch, "weights");
    if (!launch_is_on(launch, LAUNCH_QUANTISED_WEIGHTS) || products == NULL)
        return;
    const bool sharded =
        weights != NULL && (strcmp(weights, weights_names[CHOICE_WEIGHTS_ZERO3]) == 0 ||
                            strcmp(weights, weights_names[CHOICE_WEIGHTS_HSDP]) == 0);
    const bool host = launch_is_on(launch, LAUNCH_OPTIMIZER_OFFLOAD);
    const bool tensor = strcmp(products, products_names[PRODUCTS_FP8_TENSOR]) == 0 ||
                        strcmp(products, products_names[PRODUCTS_FP8_DELAYED]) == 0;
    if (host || (sharded && !tensor) || strcmp(products, products_names[PRODUCTS_FP8_BLOCK]) == 0 ||
        strcmp(products, products_names[PRODUCTS_FP8_ROW]) == 0)
        launch_remark_on_field(
            launch, REMARK_UNMODELLED, LAUNCH_QUANTISED_WEIGHTS,
            "parameters are gathered in 16 bits here, which takes more time and memory");
    else
        launch_add_option(launch, LAUNCH_QUANTISED_WEIGHTS, "primary-weights",
                          primary_weights_names[PRIMARY_WEIGHTS_QUANTISED]);
}

/* If the run has products in 8 or 4 bits, and attention's core is in 8 bits (TransformerEngine's fp8_dpa): adds
 * --attention-products, or a remark where that is not modelled. With fp8_mha what the core reads and writes is in 8
 * bits, too; this is not modelled and gets a remark. */
static void add_attention_products_option(struct launch *launch)
{
    static const char *const recipes[] = {"fp8-tensor", "fp8-delayed", "mxfp8"};
    const bool ends = launch_is_on(launch, LAUNCH_FP8_ATTENTION_ENDS);
    const enum launch_field field = ends ? LAUNCH_FP8_ATTENTION_ENDS : LAUNCH_FP8_ATTENTION;
    const char *products = option_value(launch, "products"), *cp = option_value(launch, "cp"),
               *hp = option_value(launch, "hp");
    if (!launch_is_on(launch, field) || products == NULL)
        return;
    bool known = false;
    for (size_t i = 0; i < ARRAY_LEN(recipes); i++)
        known = known || strcmp(products, recipes[i]) == 0;
    if (!known || (cp != NULL && strcmp(cp, "1") != 0) || (hp != NULL && strcmp(hp, "1") != 0)) {
        launch_remark_on_field(
            launch, REMARK_UNMODELLED, field,
            "attention's core in 8 bits: it is predicted in 16 bits, without casts of q, k and v");
        return;
    }
    launch_add_option(launch, field, "attention-products",
                      attention_products_names[ATTENTION_PRODUCTS_FP8]);
    if (ends)
        launch_remark_on_field(
            launch, REMARK_UNMODELLED, field,
            "what attention's core reads and writes is in 8 bits: it is predicted in 16 bits, with "
            "casts before the core, which take longer");
}

/* Adds a remark if torchtitan's ranks agree on the scale of each weight before they gather it in 8 bits: here they
 * agree on all scales once a step. Torchtitan's ranks do the latter only if the file says so (LAUNCH_SCALES_ONCE). */
static void remark_fp8_scales_of_gathers(struct launch *launch)
{
    static const char text[] =
        "the scale of each weight is agreed on before each gather: here once a step";
    if (!launch_is_of_family(launch, LAUNCH_TORCHTITAN) ||
        !launch_has_option(launch, "primary-weights") || launch_is_on(launch, LAUNCH_SCALES_ONCE))
        return;
    if (launch_has_field(launch, LAUNCH_SCALES_ONCE))
        launch_remark_on_field(launch, REMARK_UNMODELLED, LAUNCH_SCALES_ONCE, text);
    else
        launch_add_remark_printf(launch, REMARK_UNMODELLED,
                                 "no float8.precompute_float8_dynamic_scale_for_fsdp",
                                 launch->field_value[LAUNCH_QUANTISED_WEIGHTS].place, text);
}

/* Adds the options that rows of a table file set directly, without a field. Each replaces the option of the same name
 * that the functions of the framework's family have added. */
static void add_table_options(struct launch *launch)
{
    for (size_t i = 0; i < launch->table_option_count; i++) {
        size_t at = 0;
        while (at < launch->option_count &&
               strcmp(launch->option[at].name, launch->table_option[i].name) != 0)
            at++;
        if (at == launch->option_count && launch->option_count < LAUNCH_OPTIONS_MAX)
            launch->option_count++;
        if (at < launch->option_count)
            launch->option[at] = launch->table_option[i];
    }
}

/* Loads the model that the caller (`given`) or else an option of the launch names. Returns false if neither does, or if
 * it cannot be loaded. */
static bool load_model(struct transformer *model, const struct launch *launch,
                       struct launch_known_facts given, struct arena *arena)
{
    const char *name = given.model_name;
    for (size_t i = 0; i < launch->option_count && name == NULL; i++)
        if (strcmp(launch->option[i].name, "model") == 0)
            name = launch->option[i].value;
    return name != NULL && transformer_load(model, arena, name, NULL, NULL) == STATUS_OK;
}

/* For tensor ranks of Trainer's family, adds the option --vocabulary gathered: each rank computes part of the logits
 * and gathers the others. That is modelled if the head has weights of its own and the vocabulary divides evenly over
 * the ranks; otherwise a remark says that ranks keep their parts in the prediction. model NULL: it is not known, and
 * nothing is added. */
static void add_vocabulary_option(struct launch *launch, const struct transformer *model)
{
    int64_t tp = launch_count_or(launch, LAUNCH_TP, 1);
    if (tp <= 1 || model == NULL || !launch_is_of_family(launch, LAUNCH_TRAINER))
        return;
    if (!model->tied_head && model->vocab % tp == 0)
        launch_add_option(launch, LAUNCH_TP, "vocabulary", "gathered");
    else
        launch_remark_on_field(
            launch, REMARK_UNMODELLED, LAUNCH_TP,
            "tensor ranks gather whole logits: here each keeps its part of them");
}

/* If there are tensor ranks, removes the option of a fused loss (Liger's, or cut cross entropy) and adds a remark: such
 * a loss reads whole rows of logits, of which each tensor rank has only a part here. Without the option the profile's
 * loss is predicted. */
static void drop_fused_loss(struct launch *launch)
{
    struct launch_option *loss = NULL;
    bool shared = false;
    for (size_t i = 0; i < launch->option_count; i++) {
        struct launch_option *option = &launch->option[i];
        if (strcmp(option->name, "loss") == 0 &&
            (strcmp(option->value, "fused") == 0 || strcmp(option->value, "cut") == 0))
            loss = option;
        shared = shared || (strcmp(option->name, "tp") == 0 && strcmp(option->value, "1") != 0);
    }
    if (loss == NULL || !shared)
        return;
    launch_add_remark_printf(
        launch, REMARK_UNMODELLED, "--loss fused", loss->place,
        "a fused loss reads whole rows of logits, and tensor ranks share the vocabulary "
        "here: the loss of the profile is predicted, with its logits in memory");
    *loss = launch->option[--launch->option_count];
}

/* For a table file's framework of Megatron's family whose settings give the number of data-parallel ranks
 * (LAUNCH_DP_SHARD): sets the number of GPUs and the global batch that follow from it, each unless a file gives it. */
static void set_gpus_and_batch_of_data_ranks(struct launch *launch)
{
    static const enum launch_field degrees[] = {LAUNCH_DP_SHARD, LAUNCH_TP, LAUNCH_PP, LAUNCH_CP};
    int64_t ranks = 1, dp = launch_count_or(launch, LAUNCH_DP_SHARD, 0);
    if (!launch->has_read_framework_file[LAUNCH_FRAMEWORK_OF_TABLE_FILE] ||
        launch->table_file->family != LAUNCH_MEGATRON || dp < 1)
        return;
    for (size_t i = 0; i < ARRAY_LEN(degrees); i++) {
        int64_t degree = launch_count_or(launch, degrees[i], 1);
        ranks *= degree < 1 ? 1 : degree;
        if (ranks > 1 << 20)
            return; /* more than any cluster: the degrees are refused later */
    }
    int64_t micro = launch_count_or(launch, LAUNCH_MICRO_BATCH, 1);
    int64_t accumulation = launch_count_or(launch, LAUNCH_ACCUMULATION, 1);
    struct launch_field_value from = launch->field_value[LAUNCH_DP_SHARD];
    if (!launch_has_field(launch, LAUNCH_PROCESSES)) {
        launch_set_count(launch, LAUNCH_PROCESSES, ranks);
        launch->field_value[LAUNCH_PROCESSES].place = from.place;
    }
    if (!launch_has_field(launch, LAUNCH_GLOBAL_BATCH) && micro > 0 && micro < 1 << 20 &&
        accumulation > 0 && accumulation < 1 << 20) {
        launch_set_count(launch, LAUNCH_GLOBAL_BATCH, micro * accumulation * dp);
        launch->field_value[LAUNCH_GLOBAL_BATCH].place = from.place;
        launch->field_value[LAUNCH_GLOBAL_BATCH].setting_name = from.setting_name;
    }
}

/* Appends the text for the mark at the beginning of the string `mark` in a remark. {2P}, or another number before the
 * P, becomes the bytes of all parameters if each takes that number of bytes, " (15.0 GiB)". {share} becomes the share
 * of a GPU's memory that the setting's value is, " (47.5 GiB of 79.1 GiB)". Appends nothing if the bytes are not known.
 * Returns the text after the mark; NULL if there is no such mark. */
static const char *put_text_for_mark_in_remark(struct text *out, const char *mark,
                                               const struct launch_remark *remark,
                                               double parameters, double gpu_bytes)
{
    static const char share[] = "{share}";
    const char *end = strchr(mark, '}'), *value = strrchr(remark->name, ' ');
    double part = 0;
    if (strncmp(mark, share, sizeof share - 1) == 0) {
        if (value != NULL && parse_double(value + 1, strlen(value + 1), &part) && part > 0 &&
            part <= 1 && gpu_bytes > 0) {
            text_puts(out, " (");
            units_put_gib(out, part * gpu_bytes);
            text_puts(out, " of ");
            units_put_gib(out, gpu_bytes);
            text_putc(out, ')');
        }
        return end + 1;
    }
    if (mark[0] != '{' || end == NULL || end - mark < 3 || end[-1] != 'P' ||
        !parse_double(mark + 1, (size_t)(end - mark) - 2, &part))
        return NULL;
    if (parameters > 0) {
        text_puts(out, " (");
        units_put_gib(out, part * parameters);
        text_putc(out, ')');
    }
    return end + 1;
}

/* Replaces the marks {2P} and {share} in the texts of REMARK_UNMODELLED remarks as put_text_for_mark_in_remark() says.
 * parameters: how many the model has; gpu_bytes: the memory of a GPU; 0: not known. */
static void replace_byte_marks_in_remarks(struct launch *launch, double parameters,
                                          double gpu_bytes)
{
    for (size_t i = 0; i < launch->remark_count; i++) {
        struct launch_remark *remark = &launch->remark[i];
        struct text out = {0};
        if (remark->kind != REMARK_UNMODELLED || remark->text == NULL)
            continue;
        for (const char *c = remark->text, *after; *c != '\0'; c = after) {
            after = put_text_for_mark_in_remark(&out, c, remark, parameters, gpu_bytes);
            if (after == NULL) {
                text_putc(&out, *c);
                after = c + 1;
            }
        }
        if (strchr(remark->text, '{') != NULL)
            remark->text = arena_text(&launch->arena, out.data, out.size);
        text_release(&out);
    }
}

/* True if sequences of the run may be shorter than the predicted length: if they are not padded, and either answers are
 * generated, or the length is given and samples are not packed. Frameworks of other families than Trainer's have full
 * sequences unless a file says that they do not pack. */
static bool may_sequences_be_shorter(const struct launch *launch)
{
    if (launch_is_on(launch, LAUNCH_PADDED))
        return false;
    if (launch_has_field(launch, LAUNCH_ANSWER))
        return true;
    return launch_has_option(launch, "seq") && !launch_is_on(launch, LAUNCH_PACKING) &&
           (launch_is_of_family(launch, LAUNCH_TRAINER) ||
            launch_has_field(launch, LAUNCH_PACKING));
}

/* Adds the option --at-most with the reasons for which a run does less than is predicted, if there are any. field: the
 * field from which the option comes; adapter: the reason that launch_add_adapter_options() returned, or NULL. */
static void add_at_most_option(struct launch *launch, enum launch_field field, const char *adapter)
{
    const bool lengths = may_sequences_be_shorter(launch);
    struct text words = {0};
    text_printf(&words, "%s%s%s", adapter != NULL ? adapter : "",
                adapter != NULL && lengths ? "," : "", lengths ? "lengths" : "");
    if (words.size > 0)
        launch_add_option(launch, field, "at-most", words.data);
    text_release(&words);
}

/* Adds the option that says how tokens travel to experts on other ranks. Without a setting Megatron-LM uses allgather
 * (TransformerConfig, moe_token_dispatcher_type). */
static enum status add_dispatcher_option(struct launch *l, struct diag *diag)
{
    const char *words = launch_is_of_family(l, LAUNCH_MEGATRON)
                            ? "alltoall alltoall_seq allgather flex"
                            : "standard deepep hybridep";
    const bool flex = launch_field_text_is(l, LAUNCH_DISPATCHER, "flex");
    if (launch_count_or(l, LAUNCH_EP, 1) < 2)
        return STATUS_OK;
    if (launch_check_text_is_one_of(l, LAUNCH_DISPATCHER, words, diag) != STATUS_OK ||
        launch_check_text_is_one_of(l, LAUNCH_FLEX_BACKEND, "deepep hybridep ncclep", diag) !=
            STATUS_OK)
        return STATUS_BAD_INPUT;
    if (launch_is_on(l, LAUNCH_DEEPEP) && !flex)
        launch_remark_on_field(l, REMARK_UNMODELLED, LAUNCH_DEEPEP,
                               "only the dispatcher flex uses DeepEP, and no file sets that");
    if (flex && launch_field_text_is(l, LAUNCH_FLEX_BACKEND, "ncclep"))
        launch_remark_on_field(
            l, REMARK_UNMODELLED, LAUNCH_FLEX_BACKEND,
            "NCCL's kernels that send a token to a rank once: DeepEP's are predicted");
    if (flex)
        launch_add_option(l, LAUNCH_DISPATCHER, "dispatcher",
                          launch_field_text_is(l, LAUNCH_FLEX_BACKEND, "hybridep") ? "hybridep"
                                                                                   : "deepep");
    else if (launch_field_text_is(l, LAUNCH_DISPATCHER, "deepep") ||
             launch_field_text_is(l, LAUNCH_DISPATCHER, "hybridep") ||
             launch_field_text_is(l, LAUNCH_DISPATCHER, "allgather"))
        launch_add_option(l, LAUNCH_DISPATCHER, "dispatcher",
                          launch_field_text(l, LAUNCH_DISPATCHER));
    else if (!launch_has_field(l, LAUNCH_DISPATCHER) &&
             l->has_read_framework_file[LAUNCH_MEGATRON] && l->table_file == NULL)
        launch_add_option(l, LAUNCH_EP, "dispatcher", "allgather");
    return STATUS_OK;
}

/* Adds the options of layers with experts, apart from their sizes: the dispatcher, the capacity, and what runs while
 * tokens are exchanged (shared experts, or another micro-batch). */
static enum status add_experts_options(struct launch *l, struct diag *diag)
{
    const double capacity = launch_number_or(l, LAUNCH_CAPACITY, -1); /* negative: there is none */
    struct text text = {0};
    if (add_dispatcher_option(l, diag) != STATUS_OK ||
        launch_check_text_is_one_of(l, LAUNCH_DROP_POLICY, "probs position", diag) != STATUS_OK)
        return STATUS_BAD_INPUT;
    if (capacity < 0 && launch_is_on(l, LAUNCH_CAPACITY_PAD))
        launch_remark_on_field(l, REMARK_UNMODELLED, LAUNCH_CAPACITY_PAD,
                               "rows are added up to a capacity, and no file sets one");
    if (capacity >= 0) {
        text_printf(&text, "%.10g%s%s", capacity,
                    launch_is_on(l, LAUNCH_CAPACITY_PAD) ? ",pad" : "",
                    launch_field_text_is(l, LAUNCH_DROP_POLICY, "position") ? ",position" : "");
        launch_add_option(l, LAUNCH_CAPACITY, "expert-capacity", text.data);
        text_release(&text);
    }
    if (launch_is_on(l, LAUNCH_SHARED_OVERLAP))
        launch_add_option(l, LAUNCH_SHARED_OVERLAP, "shared-experts", "both");
    const bool overlaps = launch_is_on(l, LAUNCH_EXPERT_OVERLAP),
               delays = launch_is_on(l, LAUNCH_DELAYED_WGRAD);
    if (delays && !overlaps)
        launch_remark_on_field(l, REMARK_UNMODELLED, LAUNCH_DELAYED_WGRAD,
                               "Megatron-LM delays gradients of weights only where exchanges of "
                               "experts run beside another micro-batch, and no file sets that");
    if (overlaps && launch_count_or(l, LAUNCH_EP, 1) > 1)
        launch_add_option(l, LAUNCH_EXPERT_OVERLAP, "expert-overlap",
                          expert_overlap_names[delays ? EXPERT_OVERLAP_DELAYED_WGRAD
                                                      : EXPERT_OVERLAP_MICRO_BATCH]);
    return STATUS_OK;
}

/* Adds the options that the fields of the framework mean, as its own function translates them. */
static enum status add_framework_options(struct launch *launch, struct launch_known_facts given,
                                         struct diag *diag)
{
    if (launch->has_read_framework_file[LAUNCH_TORCHTITAN])
        return launch_add_torchtitan_options(launch, given, diag);
    if (launch->has_read_framework_file[LAUNCH_MEGATRON])
        return launch_add_megatron_options(launch, given, diag);
    if (launch->has_read_framework_file[LAUNCH_FOUNDRY])
        return launch_add_foundry_options(launch, given, diag);
    if (launch_is_of_family(launch, LAUNCH_MEGATRON))
        return launch_add_megatron_options(launch, given, diag);
    if (launch_is_of_family(launch, LAUNCH_TRAINER) ||
        launch->has_read_framework_file[LAUNCH_ACCELERATE])
        return launch_add_trainer_options(launch, given, diag);
    if (launch->has_read_framework_file[LAUNCH_MEGATRON_DEEPSPEED] ||
        launch->has_read_framework_file[LAUNCH_DEEPSPEED_JSON] ||
        launch->has_read_framework_file[LAUNCH_LAUNCHER_PROGRAM])
        return launch_add_deepspeed_options(launch, given, diag);
    return STATUS_OK;
}

/* Adds the degree of expert parallelism, or a remark on it if a dense model is predicted. */
static void add_expert_ranks_option(struct launch *launch, struct launch_known_facts given)
{
    if (launch_count_or(launch, LAUNCH_EP, 1) <= 1)
        return;
    if (given.takes_experts_as_dense)
        launch_remark_on_field(launch, REMARK_UNMODELLED, LAUNCH_EP,
                               "experts over ranks: a dense model is predicted");
    else
        launch_add_count_option(launch, LAUNCH_EP, "ep", launch_count_or(launch, LAUNCH_EP, 1));
}

/* Adds the options, and the remarks, that depend on the model, and those that all frameworks share. */
static void add_shared_options(struct launch *launch, struct launch_known_facts given)
{
    struct arena arena = {0};
    struct transformer model;
    const bool known = load_model(&model, launch, given, &arena);
    add_vocabulary_option(launch, known ? &model : NULL);
    add_products_option(launch);
    add_table_options(launch);
    add_bf16_layers_option(launch);
    add_primary_weights_option(launch);
    add_attention_products_option(launch);
    remark_fp8_scales_of_gathers(launch);
    remark_experts_not_converted(launch, known ? &model : NULL);
    if (launch->table_file != NULL && launch->table_file->has_own_code)
        launch_add_option(launch, LAUNCH_FIELD_COUNT, "framework",
                          launch->table_file->framework_of_engine_file != NULL
                              ? launch->table_file->framework_of_engine_file
                              : launch->table_file->format.name);
    drop_fused_loss(launch);
    enum launch_field adapter_field;
    const char *adapter_reason =
        launch_add_adapter_options(launch, known ? &model : NULL, &adapter_field);
    add_at_most_option(launch, adapter_field, adapter_reason);
    replace_byte_marks_in_remarks(launch, known ? (double)transformer_parameters(&model) : 0,
                                  given.gpu_bytes);
    arena_release(&arena);
    if (launch_has_field(launch, LAUNCH_PINNED) && !launch_is_on(launch, LAUNCH_PINNED) &&
        launch_has_option(launch, "optimizer"))
        launch_remark_on_field(
            launch, REMARK_UNMODELLED, LAUNCH_PINNED,
            "copies to and from pinned memory of the host are predicted: those of "
            "pageable memory take longer and hold up the host");
}

/* Adds the number of GPUs as an option that comes from the field that gives it (launch_gpu_count()). gpus 0: it is not
 * known; a list of devices that does not say it becomes a remark. */
static void add_gpus_option(struct launch *launch, int64_t gpus)
{
    static const enum launch_field counts[] = {LAUNCH_PROCESSES, LAUNCH_DEVICES, LAUNCH_GPUS_A_NODE,
                                               LAUNCH_TASKS, LAUNCH_VISIBLE};
    size_t from = 0;
    if (gpus == 0 && launch_has_field(launch, LAUNCH_DEVICES))
        launch_remark_on_field(launch, REMARK_KNOWN_IN_RUN_ONLY, LAUNCH_DEVICES,
                               "how many GPUs these are depends on the machine: give --gpus");
    while (from + 1 < ARRAY_LEN(counts) && !launch_has_field(launch, counts[from]))
        from++;
    if (gpus > 0)
        launch_add_count_option(launch, counts[from], "gpus", gpus);
}

enum status launch_make_options(struct launch *launch, struct launch_known_facts given,
                                struct diag *diag)
{
    enum status status = launch_table_apply_unset_rows(launch, diag);
    if (status != STATUS_OK)
        return status;
    set_gpus_and_batch_of_data_ranks(launch);
    int64_t gpus = launch_gpu_count(launch);
    set_length_of_prompt_plus_answer(launch);
    if (given.gpu_count <= 0)
        given.gpu_count = gpus;
    set_micro_batch_of_tokens(launch, given.gpu_count);
    set_global_batch_of_accumulation(launch, given.gpu_count);
    status = add_framework_options(launch, given, diag);
    if (status == STATUS_OK)
        add_expert_ranks_option(launch, given);
    if (status == STATUS_OK && !given.takes_experts_as_dense)
        status = add_experts_options(launch, diag);
    if (status != STATUS_OK)
        return status;
    add_shared_options(launch, given);
    remark_missing_model_or_length(launch, given);
    add_gpus_option(launch, gpus);
    return STATUS_OK;
}

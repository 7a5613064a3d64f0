/* Low-rank adapters of launch files: which linear layers have one, of which rank, and how the frozen weights beside
 * them are kept. */
#include "base/name_set.h"
#include "models/frozen_storage.h"
#include "models/transformer.h"
#include "predict/launch/launch_parts.h"

#include <string.h>

enum {
    PEFT_DEFAULT_RANK = 8, /* LoraConfig.r of PEFT */
    TRL_DEFAULT_RANK = 16, /* ModelConfig.lora_r of TRL */
    TARGETS_OF_OTHER_MODULES =
        -1, /* some targets are not among the linear layers of a transformer's layers */
};

/* Returns the field that says that an adapter is trained, LAUNCH_ADAPTER_ON or LAUNCH_ADAPTER. Returns
 * LAUNCH_FIELD_COUNT if none is trained. */
static enum launch_field field_that_turns_adapter_on(const struct launch *launch)
{
    if (launch_has_field(launch, LAUNCH_ADAPTER_ON))
        return launch_is_on(launch, LAUNCH_ADAPTER_ON) ? LAUNCH_ADAPTER_ON : LAUNCH_FIELD_COUNT;
    bool named = launch_has_field(launch, LAUNCH_ADAPTER) &&
                 !launch_is_predicted_value(NULL, launch_field_text(launch, LAUNCH_ADAPTER)) &&
                 !launch_field_text_is(launch, LAUNCH_ADAPTER, "full");
    return named ? LAUNCH_ADAPTER : LAUNCH_FIELD_COUNT;
}

/* Returns the linear layers that a module's name stands for, as bits of enum adapter_target: 0 for all linear layers,
 * TARGETS_OF_OTHER_MODULES for any other module. */
static int64_t adapter_targets_of_module(const char *name, size_t size)
{
    static const struct {
        const char *name;
        int64_t targets;
    } modules[] = {
        {"q_proj", 1 << ADAPTER_Q},
        {"k_proj", 1 << ADAPTER_K},
        {"v_proj", 1 << ADAPTER_V},
        {"o_proj", 1 << ADAPTER_O},
        {"gate_proj", 1 << ADAPTER_GATE},
        {"up_proj", 1 << ADAPTER_UP},
        {"down_proj", 1 << ADAPTER_DOWN},
        {"all", 0},
        {"all-linear", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(modules); i++)
        if (strlen(modules[i].name) == size && strncmp(modules[i].name, name, size) == 0)
            return modules[i].targets;
    return TARGETS_OF_OTHER_MODULES;
}

/* Returns the linear layers that have an adapter, as adapter_targets_of_module() does, for all modules that the files
 * name; 0 as well if LAUNCH_ADAPTER_LINEAR is on. If the files name none, these are q and v, PEFT's default for Llama,
 * Qwen and Mistral (peft/utils/constants.py, TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING). */
static int64_t adapter_targets_of(const struct launch *launch)
{
    static const char between[] = " ,[]'\"";
    if (launch_is_on(launch, LAUNCH_ADAPTER_LINEAR))
        return 0;
    if (!launch_has_field(launch, LAUNCH_ADAPTER_TARGETS))
        return 1 << ADAPTER_Q | 1 << ADAPTER_V;
    int64_t targets = 0;
    bool all = false;
    for (const char *name = launch_field_text(launch, LAUNCH_ADAPTER_TARGETS);;) {
        name += strspn(name, between);
        const size_t size = strcspn(name, between);
        if (size == 0)
            return all ? 0 : targets;
        const int64_t more = adapter_targets_of_module(name, size);
        if (more == TARGETS_OF_OTHER_MODULES)
            return TARGETS_OF_OTHER_MODULES;
        all = all || more == 0;
        targets |= more;
        name += size;
    }
}

/* Returns why the adapters are not modelled, for a remark; NULL: they are modelled. */
static const char *why_adapters_unmodelled(const struct launch *launch,
                                           const struct transformer *model, int64_t targets)
{
    const bool is_lora = launch_has_field(launch, LAUNCH_ADAPTER_ON) ||
                         launch_field_text_is(launch, LAUNCH_ADAPTER, "lora") ||
                         launch_field_text_is(launch, LAUNCH_ADAPTER, "qlora") ||
                         launch_field_text_is(launch, LAUNCH_ADAPTER, "lora-8bit");
    if (!is_lora)
        return "another kind than LoRA";
    if (!launch_is_of_family(launch, LAUNCH_TRAINER))
        return "the framework's adapters are not modelled";
    if (targets == TARGETS_OF_OTHER_MODULES)
        return "some are of other modules than a layer's linear ones";
    if (model == NULL)
        return "the model is not known";
    struct transformer with = *model;
    with.adapter_rank = 1;
    with.adapter_targets = targets;
    if (transformer_check_adapters(&with, (struct loc){0}, NULL) != STATUS_OK)
        return "adapters of experts, or of latent attention, are not modelled";
    if (launch_has_option(launch, "tp") || launch_has_option(launch, "ep") ||
        launch_has_option(launch, "products"))
        return "they are not modelled with tensor ranks, experts over ranks or 8-bit products";
    return NULL;
}

static void add_adapter_option(struct launch *launch, enum launch_field field, int64_t targets)
{
    struct text text = {0};
    const int64_t default_rank = launch_has_field(launch, LAUNCH_ADAPTER_ON)
                                     ? (int64_t)TRL_DEFAULT_RANK
                                     : (int64_t)PEFT_DEFAULT_RANK;
    text_put_i64(&text, launch_count_or(launch, LAUNCH_ADAPTER_RANK, default_rank));
    if (targets != 0)
        text_puts(&text, ":");
    name_set_append_to_text(&text, (uint32_t)targets, adapter_target_names, ADAPTER_TARGET_COUNT,
                            ",");
    launch_add_option(launch, field, "adapter", text.data);
    text_release(&text);
}

/* True if the model's name says that its files have quantised weights. */
static bool is_quantised_model(const struct launch *launch)
{
    static const char *const marks[] = {"AWQ",   "GPTQ",  "AQLM",  "HQQ",      "-awq",
                                        "-gptq", "-Int4", "-Int8", "bnb-4bit", "bnb-8bit"};
    bool has_quantised_mark = false;
    for (size_t i = 0; i < ARRAY_LEN(marks) && launch_has_field(launch, LAUNCH_MODEL); i++)
        has_quantised_mark =
            has_quantised_mark || strstr(launch_field_text(launch, LAUNCH_MODEL), marks[i]) != NULL;
    return has_quantised_mark;
}

/* If frozen weights are kept in 8 or 4 bits, adds the option frozen-weights. If they are, but that is not modelled,
 * adds a remark and returns "bits", the reason to name in --at-most. Otherwise returns NULL. */
static const char *add_frozen_weights(struct launch *launch, const struct transformer *model,
                                      enum launch_field field)
{
    const bool qlora = launch_field_text_is(launch, LAUNCH_ADAPTER, "qlora");
    const bool is_8_bit = launch_field_text_is(launch, LAUNCH_ADAPTER, "lora-8bit") ||
                          launch_is_on(launch, LAUNCH_FROZEN_8BIT);
    const bool is_doubly_quantised = launch_has_field(launch, LAUNCH_FROZEN_DOUBLE)
                                         ? launch_is_on(launch, LAUNCH_FROZEN_DOUBLE)
                                         : qlora;
    const enum frozen_storage storage = is_8_bit              ? FROZEN_STORAGE_INT8
                                        : is_doubly_quantised ? FROZEN_STORAGE_NF4_DOUBLE
                                                              : FROZEN_STORAGE_NF4;
    if (!is_8_bit && !qlora && !launch_is_on(launch, LAUNCH_FROZEN_4BIT)) {
        if (!is_quantised_model(launch))
            return NULL;
        launch_remark_on_field(
            launch, REMARK_UNMODELLED, LAUNCH_MODEL,
            "weights that the model's files have in 8 or fewer bits: they have 2 "
            "bytes a parameter here{2P} over the ranks that share them");
        return "bits";
    }
    if (model->experts == 0 && model->hidden % 2 == 0) {
        launch_add_option(launch, field, "frozen-weights", frozen_storage_names[storage]);
        return NULL;
    }
    launch_remark_on_field(
        launch, REMARK_UNMODELLED, field,
        "frozen weights in 4 or 8 bits beside experts: they have 2 bytes a parameter here{2P} over "
        "the ranks that share them, and no pass that makes 16 bits of them for each "
        "product");
    return "bits";
}

const char *launch_add_adapter_options(struct launch *launch, const struct transformer *model,
                                       enum launch_field *field)
{
    *field = field_that_turns_adapter_on(launch);
    if (*field == LAUNCH_FIELD_COUNT)
        return NULL;
    const int64_t targets = adapter_targets_of(launch);
    const char *why = why_adapters_unmodelled(launch, model, targets);
    if (why != NULL) {
        launch_remark_on_field(
            launch, REMARK_UNMODELLED, *field,
            "adapters (%s): all weights are trained here, which takes 16 bytes a "
            "parameter for weights, gradients and states{16P} over the ranks that "
            "share them; an adapter keeps gradients and states of its own weights "
            "only, and of each frozen parameter 2 bytes in bf16{2P} or half a byte in "
            "4 bits{0.5P}: not alike",
            why);
        return "adapter";
    }
    add_adapter_option(launch, *field, targets);
    return add_frozen_weights(launch, model, *field);
}

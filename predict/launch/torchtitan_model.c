/* torchtitan's names of models: flavors, and the recipes of 2026, which have settings besides a model. */
#include "predict/launch/torchtitan_model.h"

#include "models/transformer_fields.h"

#include <assert.h>
#include <string.h>

/* The flavors of torchtitan/models/NAME/__init__.py of 0.2 and of 2026 (b5bcd76); those of llama2 are of 0.0.2. */

/* clang-format off */
static const struct flavor {
    const char *model, *name;
    const char *sizes; /* as --model takes them: a preset, or fields on one line */
    bool lacks_vocab;  /* the vocabulary is the tokenizer's */
} flavors[] = {
    {"llama3",      "debugmodel", "layers=6,hidden=256,heads=16,ffn=768,rope_theta=500000", true},
    {"llama3",      "1B",         "llama3.2-1b", false},
    {"llama3",      "3B",         "llama3.2-3b", false},
    {"llama3",      "8B",         "llama3-8b", false},
    {"llama3",      "70B",        "llama3-70b", false},
    {"llama3",      "405B",       "llama3.1-405b", false},
    {"qwen3",       "debugmodel", "layers=8,hidden=256,heads=16,kv_heads=8,head_dim=128,ffn=3072,"
                                  "vocab=2048,qk_norm=true,tied_head=true,rope_theta=1000000,norm_eps=1e-06", false},
    {"qwen3",       "0.6B",       "qwen3-0.6b", false},
    {"qwen3",       "1.7B",       "qwen3-1.7b", false},
    {"qwen3",       "4B",         "qwen3-4b", false},
    {"qwen3",       "8B",         "qwen3-8b", false},
    {"qwen3",       "14B",        "qwen3-14b", false},
    {"qwen3",       "32B",        "qwen3-32b", false},
    {"qwen3",       "30B-A3B",    "qwen3-30b-a3b", false},
    {"qwen3",       "235B-A22B",  "qwen3-235b-a22b", false},
    {"gpt_oss",     "20b",        "gpt-oss-20b", false},
    {"gpt_oss",     "120b",       "gpt-oss-120b", false},
    {"deepseek_v3", "671B",       "deepseek-v3", false},
    {"deepseek_v3", "236B",       "deepseek-v2", false},
    {"deepseek_v3", "16B",        "deepseek-v2-lite", false},
    {"llama4",      "17bx16e",    "llama4-scout", false},
    {"llama4",      "17bx128e",   "llama4-maverick", false},
    {"llama2",      "7B",         "llama2-7b", false},
    {"llama2",      "13B",        "layers=40,hidden=5120,heads=40,ffn=13824,vocab=32000", false},
    {"llama2",      "70B",        "llama2-70b", false},
};

/* The recipes of 2026 (torchtitan/models/NAME/config_registry.py), which --config names. All compute the loss in
 * pieces. */
static const struct recipe {
    const char *name, *model, *flavor;
    int64_t seq, micro_batch_sequences, tp; /* micro_batch_sequences: of a data-parallel rank */
    const char *recomputation;              /* the mode of recomputation */
    bool is_compiled; /* the model is compiled, with async TP and products in 8 bits */
} recipes[] = {
    {"llama3_8b",     "llama3",  "8B",      8192, 1, 1, "selective", false},
    {"llama3_70b",    "llama3",  "70B",     8192, 8, 8, "full",      false},
    {"llama3_405b",   "llama3",  "405B",    8192, 2, 8, "full",      true},
    {"qwen3_0_6b",    "qwen3",   "0.6B",    4096, 4, 1, "selective", false},
    {"qwen3_1_7b",    "qwen3",   "1.7B",    4096, 4, 1, "selective", false},
    {"qwen3_14b",     "qwen3",   "14B",     4096, 4, 1, "full",      false},
    {"qwen3_32b",     "qwen3",   "32B",     4096, 2, 1, "full",      false},
    {"qwen3_30b_a3b", "qwen3",   "30B-A3B", 4096, 2, 1, "full",      false},
    {"gpt_oss_20b",   "gpt_oss", "20b",     8192, 1, 1, "full",      false},
    {"gpt_oss_120b",  "gpt_oss", "120b",    8192, 1, 1, "full",      false},
};
/* clang-format on */

/* Appends the fields in which a flavor differs from the model m, the flavor's value first, as "layers=32 and not 4",
 * and returns their number. `max_positions` is not compared, nor is `vocab` if the flavor takes it from the tokenizer.
 * Returns INT32_MAX, and appends nothing, if the preset of the flavor cannot be read. */
static int put_differing_fields(struct text *out, const struct flavor *f,
                                const struct transformer *m)
{
    struct arena arena = {0};
    struct transformer flavor, model = *m;
    int count = 0;
    const char *sizes = f->lacks_vocab ? arena_printf(&arena, "%s,vocab=1", f->sizes) : f->sizes;
    if (transformer_load(&flavor, &arena, sizes, NULL, NULL) != STATUS_OK) {
        arena_release(&arena);
        return INT32_MAX;
    }
    for (size_t i = 0; i < TRANSFORMER_FIELD_COUNT; i++) {
        const struct transformer_field *field = &transformer_fields[i];
        struct text here = {0}, there = {0};
        bool any = strcmp(field->name, "max_positions") == 0 ||
                   (f->lacks_vocab && strcmp(field->name, "vocab") == 0);
        transformer_field_append_to_text(&there, &flavor, field);
        transformer_field_append_to_text(&here, &model, field);
        if (!any && strcmp(here.data, there.data) != 0)
            text_printf(out, "%s%s=%s and not %s", count++ > 0 ? ", " : "", field->name, there.data,
                        here.data);
        text_release(&here);
        text_release(&there);
    }
    arena_release(&arena);
    return count;
}

/* Returns the flavor that differs from the model m in the fewest fields, and sets *differences to these fields. Flavors
 * of llama2, which only torchtitan 0.0.2 has, do not count. */
static const struct flavor *find_nearest_flavor(const struct transformer *m,
                                                struct text *differences)
{
    const struct flavor *nearest = NULL;
    int least = 0;
    for (size_t i = 0; i < ARRAY_LEN(flavors); i++) {
        struct text text = {0};
        text_puts(&text, "");
        int count = put_differing_fields(&text, &flavors[i], m);
        if (strcmp(flavors[i].model, "llama2") != 0 && (nearest == NULL || count < least)) {
            nearest = &flavors[i];
            least = count;
            differences->size = 0;
            text_puts(differences, text.data);
        }
        text_release(&text);
    }
    return nearest;
}

enum status launch_check_torchtitan_has_flavor(const struct transformer *m, struct diag *diag)
{
    struct text differences = {0};
    enum status status = STATUS_OK;
    const struct flavor *flavor = find_nearest_flavor(m, &differences);
    if (differences.size > 0)
        status = diag_error(diag, (struct loc){.name = "--emit"}, STATUS_BAD_INPUT,
                            "torchtitan has no flavor of this model; the nearest, %s of %s, has %s",
                            flavor->name, flavor->model, differences.data);
    text_release(&differences);
    return status;
}

void torchtitan_set_model_fields(struct launch *l, const struct transformer *m)
{
    struct text differences = {0};
    const struct flavor *flavor = find_nearest_flavor(m, &differences);
    assert(differences.size == 0);
    launch_set_text(l, LAUNCH_MODEL, flavor->model);
    launch_set_text(l, LAUNCH_FLAVOR, flavor->name);
    if (strcmp(flavor->model, "llama3") == 0)
        text_printf(&l->comments_to_print,
                    "# the vocabulary is the tokenizer's: %lld tokens are predicted\n",
                    (long long)m->vocab);
    text_release(&differences);
}

enum status torchtitan_set_recipe_fields(struct launch *l, struct diag *diag)
{
    const struct recipe *recipe = NULL;
    if (!launch_has_field(l, LAUNCH_RECIPE))
        return STATUS_OK;
    for (size_t i = 0; i < ARRAY_LEN(recipes); i++)
        if (launch_field_text_is(l, LAUNCH_RECIPE, recipes[i].name))
            recipe = &recipes[i];
    if (recipe == NULL) {
        struct text names = {0};
        for (size_t i = 0; i < ARRAY_LEN(recipes); i++)
            text_printf(&names, "%s%s", i > 0 ? ", " : "", recipes[i].name);
        enum status status = launch_field_error(
            l, LAUNCH_RECIPE, diag,
            "the settings of '%.60s', which is Python, are not known here: %s are; give "
            "them as --model, --seq, --micro-batch, --activations, with --profile "
            "torchtitan",
            launch_field_text(l, LAUNCH_RECIPE), names.data);
        text_release(&names);
        return status;
    }
    launch_remark_on_field(l, REMARK_ASSUMED, LAUNCH_RECIPE,
                           "the recipe's settings of August 2026 are taken");
    if (recipe->is_compiled) {
        launch_set_count_unless_given(l, LAUNCH_ASYNC_TENSOR, 1);
        launch_set_text_unless_given(l, LAUNCH_CONVERTERS, "float8");
    }
    launch_set_text_unless_given(l, LAUNCH_MODEL, recipe->model);
    struct launch_field_value from = l->field_value[LAUNCH_RECIPE];
    if (!launch_has_field(l, LAUNCH_FLAVOR)) {
        launch_set_text(l, LAUNCH_FLAVOR, recipe->flavor);
        l->field_value[LAUNCH_FLAVOR].place = from.place;
        l->field_value[LAUNCH_FLAVOR].setting_name = from.setting_name;
    }
    launch_set_count_unless_given(l, LAUNCH_SEQ, recipe->seq);
    if (!launch_has_field(l, LAUNCH_MICRO_TOKENS))
        launch_set_count_unless_given(l, LAUNCH_LOCAL_BATCH, recipe->micro_batch_sequences);
    launch_set_count_unless_given(l, LAUNCH_TP, recipe->tp);
    launch_set_text_unless_given(l, LAUNCH_GRANULARITY, recipe->recomputation);
    launch_set_text_unless_given(l, LAUNCH_MODULES, "op");
    launch_set_count_unless_given(l, LAUNCH_COMPILE, recipe->is_compiled);
    return STATUS_OK;
}

void torchtitan_add_model_options(struct launch *l, struct launch_known_facts given)
{
    const char *name =
        launch_has_field(l, LAUNCH_MODEL) ? launch_field_text(l, LAUNCH_MODEL) : "llama3";
    if (launch_has_option(l, "model") || given.is_model_known)
        return; /* another file gives it, or the caller knows it */
    if (!launch_has_field(l, LAUNCH_FLAVOR)) {
        launch_add_remark_printf(l, REMARK_KNOWN_IN_RUN_ONLY, "model", (struct loc){0},
                                 "no model.flavor is given: give the model with --model");
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(flavors); i++) {
        const struct flavor *f = &flavors[i];
        if (strcmp(f->model, name) != 0 || !launch_field_text_is(l, LAUNCH_FLAVOR, f->name))
            continue;
        launch_add_option(l, LAUNCH_FLAVOR, "model", f->sizes);
        if (f->lacks_vocab && !given.is_vocabulary_known)
            launch_remark_on_field(
                l, REMARK_KNOWN_IN_RUN_ONLY, LAUNCH_FLAVOR,
                "its vocabulary is the tokenizer's: give it, as in --set vocab=2048");
        return;
    }
    launch_remark_on_field(l, REMARK_KNOWN_IN_RUN_ONLY, LAUNCH_FLAVOR,
                           "the sizes of this flavor of model.name %s are not known here: give its "
                           "config.json with --from or --model",
                           name);
}

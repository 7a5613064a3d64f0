/* Makes the option --model from the model of a launch file. */
#include "models/hub_models.h"
#include "models/transformer_fields.h"
#include "predict/launch/launch_parts.h"

#include "base/c_locale.h"

#include <string.h>
#include <unistd.h>

/* Fields of a model that no launch file gives: details of the router. */
static const char *const not_in_launch_files[] = {
    "router_bias", "router_correction", "router_on_input", "router_groups", "router_groups_kept"};

/* Returns a copy of the model in which fields of the router and of the layers with experts have one form where several
 * forms mean the same. */
static struct transformer model_in_canonical_form(const struct transformer *t)
{
    struct transformer same = *t;
    if (same.experts_every == 1)
        same.experts_every = 0;
    if (same.router_scale == 1)
        same.router_scale = 0;
    /* a softmax over the chosen experts is one over all, divided by the sum of the chosen ones */
    if (same.router == ROUTER_SOFTMAX_OF_CHOSEN) {
        same.router = ROUTER_SOFTMAX;
        same.router_norm = true;
    }
    return same;
}

/* True if two models have the same value in a field, as it is printed. */
static bool is_model_field_equal(const struct transformer *a, const struct transformer *b,
                                 const struct transformer_field *field)
{
    struct text of_a = {0}, of_b = {0};
    transformer_field_append_to_text(&of_a, a, field);
    transformer_field_append_to_text(&of_b, b, field);
    const bool same = strcmp(of_a.data, of_b.data) == 0;
    text_release(&of_a);
    text_release(&of_b);
    return same;
}

/* True if two models are equal in all fields that a model file can give, apart from `attention_dropout`, which
 * --dropout replaces; `rope_theta` and `max_positions` are compared only if positions are rotary and learned,
 * respectively. of_launch_file: `a` is from a launch file, so fields that no launch file gives are not compared. */
static bool are_equal_models(const struct transformer *a, const struct transformer *b,
                             bool of_launch_file)
{
    const struct transformer one = model_in_canonical_form(a), other = model_in_canonical_form(b);
    bool same = true;
    for (size_t i = 0; same && i < TRANSFORMER_FIELD_COUNT; i++) {
        const char *name = transformer_fields[i].name;
        bool compared = strcmp(name, "attention_dropout") != 0 &&
                        (strcmp(name, "rope_theta") != 0 || a->positions == POSITIONS_ROPE) &&
                        (strcmp(name, "max_positions") != 0 || a->positions == POSITIONS_LEARNED);
        for (size_t k = 0; of_launch_file && k < ARRAY_LEN(not_in_launch_files); k++)
            compared = compared && strcmp(name, not_in_launch_files[k]) != 0;
        same = !compared || is_model_field_equal(&one, &other, &transformer_fields[i]);
    }
    return same;
}

static enum status find_preset_equal_to_model(struct launch *launch,
                                              const struct transformer *model, const char **found,
                                              struct diag *diag)
{
    const char *const *names;
    size_t count;
    *found = NULL;
    enum status status = transformer_presets(&names, &count, &launch->arena, diag);
    for (size_t i = 0; i < count && status == STATUS_OK && *found == NULL; i++) {
        struct transformer preset;
        status = transformer_load(&preset, &launch->arena, names[i], NULL, diag);
        if (status == STATUS_OK && are_equal_models(model, &preset, true))
            *found = names[i];
    }
    return status;
}

enum status launch_add_model_option(struct launch *launch, struct transformer *model,
                                    bool has_vocab, struct diag *diag)
{
    const char *preset = NULL;
    enum status status = STATUS_OK;
    if (launch_has_option(launch, "model"))
        return diag_error(diag, launch->field_value[LAUNCH_LAYERS].place, STATUS_BAD_INPUT,
                          "the sizes of a model are given here and by a second file, %s; leave one "
                          "of them out",
                          launch->option[0].value);
    if (has_vocab && model->proxy_lacks == NULL)
        status = find_preset_equal_to_model(launch, model, &preset, diag);
    if (preset != NULL)
        launch_add_option(launch, LAUNCH_LAYERS, "model", preset);
    if (status != STATUS_OK || preset != NULL)
        return status;
    struct text line = {0};
    transformer_put_line(&line, model, has_vocab);
    launch_add_option(launch, LAUNCH_LAYERS, "model", line.data);
    text_release(&line);
    return STATUS_OK;
}

const char *launch_hub_path(const struct transformer *model)
{
    struct arena arena = {0};
    const char *found = NULL;
    for (int named = 1; named >= 0;
         named--) { /* presets of the model's name are read before all others */
        struct hub_model_with_preset hub;
        for (size_t i = 0; found == NULL && (hub = hub_model_at(i)).path != NULL; i++) {
            struct transformer known;
            bool same = model->name != NULL && strcmp(hub.preset_or_fields, model->name) == 0;
            if (same == named &&
                transformer_load(&known, &arena, hub.preset_or_fields, NULL, NULL) == STATUS_OK &&
                are_equal_models(model, &known, false))
                found = hub.path;
        }
    }
    arena_release(&arena);
    return model->proxy_lacks == NULL ? found : NULL;
}

enum status launch_add_named_model(struct launch *launch, struct launch_known_facts given)
{
    const char *path = launch_field_text(launch, LAUNCH_MODEL);
    if (!launch_has_field(launch, LAUNCH_MODEL) || launch_has_option(launch, "model"))
        return STATUS_OK;
    const char *config = arena_printf(&launch->arena, "%s/config.json", path);
    if (access(config, R_OK) == 0) {
        launch_add_option(launch, LAUNCH_MODEL, "model", config);
        return STATUS_OK;
    }
    const char *known = hub_model_find_preset(path);
    if (known != NULL) {
        launch_add_option(launch, LAUNCH_MODEL, "model", known);
        return STATUS_OK;
    }
    if (given.is_model_known)
        return STATUS_OK;
    launch_remark_on_field(launch, REMARK_KNOWN_IN_RUN_ONLY, LAUNCH_MODEL,
                           "its sizes are in its config.json: give that with --from or --model");
    return STATUS_OK;
}

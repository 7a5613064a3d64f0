/* Makes the option --model from the model of a launch file. */
#include "models/hub_models.h"
#include "predict/launch/launch_parts.h"

#include "base/c_locale.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/* True if two models are equal in all fields that a model file can give, apart from these: `experts_every`, the fields
 * of the router, `rope_scaled`, `attention_dropout` and `adapter_targets` are not compared, and `rope_theta` and
 * `max_positions` only if positions are rotary and learned, respectively. */
static bool is_same_model(const struct transformer *a, const struct transformer *b)
{
    return a->layers == b->layers && a->hidden == b->hidden && a->heads == b->heads &&
           a->kv_heads == b->kv_heads && a->head_dim == b->head_dim && a->ffn == b->ffn &&
           a->vocab == b->vocab && a->activation == b->activation && a->norm == b->norm &&
           a->norm_place == b->norm_place && a->qk_norm_wide == b->qk_norm_wide &&
           a->positions == b->positions && a->bias_qkv == b->bias_qkv && a->bias_o == b->bias_o &&
           a->bias_ffn == b->bias_ffn && a->qk_norm == b->qk_norm &&
           a->qk_norm_bare == b->qk_norm_bare && a->fused_products == b->fused_products &&
           a->window_chunks == b->window_chunks && a->unrotated_every == b->unrotated_every &&
           a->tied_head == b->tied_head && fabs(a->norm_eps - b->norm_eps) < 1e-12 &&
           (a->positions != POSITIONS_ROPE || fabs(a->rope_theta - b->rope_theta) < 1e-6) &&
           (a->positions != POSITIONS_LEARNED || a->max_positions == b->max_positions) &&
           a->attention_window == b->attention_window &&
           a->window_from_layer == b->window_from_layer &&
           a->full_attention_every == b->full_attention_every && a->experts == b->experts &&
           a->experts_per_token == b->experts_per_token && a->expert_ffn == b->expert_ffn &&
           a->shared_ffn == b->shared_ffn && a->dense_layers == b->dense_layers &&
           a->kv_latent == b->kv_latent && a->q_latent == b->q_latent &&
           a->rope_dim == b->rope_dim && a->v_dim == b->v_dim &&
           a->attention_sinks == b->attention_sinks && a->adapter_rank == b->adapter_rank;
}

static enum status find_preset(struct launch *launch, const struct transformer *model,
                               const char **found, struct diag *diag)
{
    const char *const *names;
    size_t count;
    *found = NULL;
    enum status status = transformer_presets(&names, &count, &launch->arena, diag);
    for (size_t i = 0; i < count && status == STATUS_OK && *found == NULL; i++) {
        struct transformer preset;
        status = transformer_load(&preset, &launch->arena, names[i], NULL, diag);
        if (status == STATUS_OK && is_same_model(model, &preset))
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
        status = find_preset(launch, model, &preset, diag);
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
        struct hub_model_path hub;
        for (size_t i = 0; found == NULL && (hub = hub_model_path_at(i)).path != NULL; i++) {
            struct transformer known;
            bool same = model->name != NULL && strcmp(hub.preset_or_fields, model->name) == 0;
            if (same == named &&
                transformer_load(&known, &arena, hub.preset_or_fields, NULL, NULL) == STATUS_OK &&
                is_same_model(model, &known))
                found = hub.path;
        }
    }
    arena_release(&arena);
    return model->proxy_lacks == NULL ? found : NULL;
}

enum status launch_add_named_model(struct launch *launch, struct launch_given given)
{
    const char *path = launch_field_text(launch, LAUNCH_MODEL);
    if (!launch_has_field(launch, LAUNCH_MODEL) || launch_has_option(launch, "model"))
        return STATUS_OK;
    const char *config = arena_printf(&launch->arena, "%s/config.json", path);
    if (access(config, R_OK) == 0) {
        launch_add_option(launch, LAUNCH_MODEL, "model", config);
        return STATUS_OK;
    }
    const char *known = hub_model_find(path);
    if (known != NULL) {
        launch_add_option(launch, LAUNCH_MODEL, "model", known);
        return STATUS_OK;
    }
    if (given.has_model)
        return STATUS_OK;
    launch_remark_on_field(launch, REMARK_KNOWN_IN_RUN_ONLY, LAUNCH_MODEL,
                           "its sizes are in its config.json: give that with --from or --model");
    return STATUS_OK;
}

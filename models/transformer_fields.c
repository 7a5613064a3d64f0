#include "models/transformer_fields.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

const char *const activation_names[ACTIVATION_COUNT] = {"swiglu", "gelu", "geglu", "relu2",
                                                        "swiglu-clamped"};
const char *const norm_names[NORM_COUNT] = {"rmsnorm", "layernorm"};
const char *const norm_place_names[NORM_PLACE_COUNT] = {"before", "after", "both"};
const char *const positions_names[POSITIONS_COUNT] = {"rope", "learned", "none"};
const char *const adapter_target_names[ADAPTER_TARGET_COUNT] = {"q",    "k",  "v",   "o",
                                                                "gate", "up", "down"};
const char *const router_names[ROUTER_COUNT] = {"softmax", "chosen", "sigmoid"};

#define AT(member) offsetof(struct transformer, member)

/* The columns are: name, kind, offset, lowest and highest value, names of a choice and their number.
 *
 * The highest values are far above those of any published model, and low enough that counts of parameters do not
 * overflow an int64_t: layers (4 heads head_dim hidden + 3 ffn hidden + 3 shared_ffn hidden) < 2^62.5, to which a table
 * of positions adds at most 2^60, and all the rest less. transformer_check() limits experts * expert_ffn, which stands
 * in the place of ffn, to the highest value of ffn. */
const struct transformer_field transformer_fields[TRANSFORMER_FIELD_COUNT] = {
    {"layers", FIELD_INTEGER, AT(layers), 1, 1 << 14, NULL, 0},
    {"hidden", FIELD_INTEGER, AT(hidden), 1, 1 << 20, NULL, 0},
    {"heads", FIELD_INTEGER, AT(heads), 1, 1 << 14, NULL, 0},
    {"kv_heads", FIELD_INTEGER, AT(kv_heads), 1, 1 << 14, NULL, 0},
    {"head_dim", FIELD_INTEGER, AT(head_dim), 1, 1 << 12, NULL, 0},
    {"ffn", FIELD_INTEGER, AT(ffn), 1, 1 << 24, NULL, 0},
    {"vocab", FIELD_INTEGER, AT(vocab), 1, 1 << 26, NULL, 0},
    {"max_positions", FIELD_INTEGER, AT(max_positions), 0, (double)((int64_t)1 << 40), NULL, 0},
    {"attention_window", FIELD_INTEGER, AT(attention_window), 0, (double)((int64_t)1 << 40), NULL,
     0},
    {"window_from_layer", FIELD_INTEGER, AT(window_from_layer), 0, 1 << 14, NULL, 0},
    {"full_attention_every", FIELD_INTEGER, AT(full_attention_every), 0, 1 << 14, NULL, 0},
    {"window_chunks", FIELD_SWITCH, AT(window_chunks), 0, 0, NULL, 0},
    {"unrotated_every", FIELD_INTEGER, AT(unrotated_every), 0, 1 << 14, NULL, 0},
    {"activation", FIELD_CHOICE, AT(activation), 0, 0, activation_names, ACTIVATION_COUNT},
    {"norm", FIELD_CHOICE, AT(norm), 0, 0, norm_names, NORM_COUNT},
    {"norm_place", FIELD_CHOICE, AT(norm_place), 0, 0, norm_place_names, NORM_PLACE_COUNT},
    {"positions", FIELD_CHOICE, AT(positions), 0, 0, positions_names, POSITIONS_COUNT},
    {"bias_qkv", FIELD_SWITCH, AT(bias_qkv), 0, 0, NULL, 0},
    {"bias_o", FIELD_SWITCH, AT(bias_o), 0, 0, NULL, 0},
    {"bias_ffn", FIELD_SWITCH, AT(bias_ffn), 0, 0, NULL, 0},
    {"qk_norm", FIELD_SWITCH, AT(qk_norm), 0, 0, NULL, 0},
    {"qk_norm_wide", FIELD_SWITCH, AT(qk_norm_wide), 0, 0, NULL, 0},
    {"qk_norm_bare", FIELD_SWITCH, AT(qk_norm_bare), 0, 0, NULL, 0},
    {"fused_products", FIELD_SWITCH, AT(fused_products), 0, 0, NULL, 0},
    {"tied_head", FIELD_SWITCH, AT(tied_head), 0, 0, NULL, 0},
    {"rope_theta", FIELD_REAL, AT(rope_theta), 0, 1e15, NULL, 0},
    {"norm_eps", FIELD_REAL, AT(norm_eps), 0, 1, NULL, 0},
    {"attention_dropout", FIELD_REAL, AT(attention_dropout), 0, 1, NULL, 0},
    {"experts", FIELD_INTEGER, AT(experts), 0, 1 << 12, NULL, 0},
    {"experts_per_token", FIELD_INTEGER, AT(experts_per_token), 0, 1 << 12, NULL, 0},
    {"expert_ffn", FIELD_INTEGER, AT(expert_ffn), 0, 1 << 24, NULL, 0},
    {"shared_ffn", FIELD_INTEGER, AT(shared_ffn), 0, 1 << 24, NULL, 0},
    {"dense_layers", FIELD_INTEGER, AT(dense_layers), 0, 1 << 14, NULL, 0},
    {"experts_every", FIELD_INTEGER, AT(experts_every), 0, 1 << 14, NULL, 0},
    {"router", FIELD_CHOICE, AT(router), 0, 0, router_names, ROUTER_COUNT},
    {"router_norm", FIELD_SWITCH, AT(router_norm), 0, 0, NULL, 0},
    {"router_scale", FIELD_REAL, AT(router_scale), 0, 1e6, NULL, 0},
    {"router_bias", FIELD_SWITCH, AT(router_bias), 0, 0, NULL, 0},
    {"router_correction", FIELD_SWITCH, AT(router_correction), 0, 0, NULL, 0},
    {"router_on_input", FIELD_SWITCH, AT(router_on_input), 0, 0, NULL, 0},
    {"router_groups", FIELD_INTEGER, AT(router_groups), 0, 1 << 12, NULL, 0},
    {"router_groups_kept", FIELD_INTEGER, AT(router_groups_kept), 0, 1 << 12, NULL, 0},
    {"q_latent", FIELD_INTEGER, AT(q_latent), 0, 1 << 16, NULL, 0},
    {"kv_latent", FIELD_INTEGER, AT(kv_latent), 0, 1 << 16, NULL, 0},
    {"rope_dim", FIELD_INTEGER, AT(rope_dim), 0, 1 << 12, NULL, 0},
    {"v_dim", FIELD_INTEGER, AT(v_dim), 0, 1 << 12, NULL, 0},
    {"rope_scaled", FIELD_SWITCH, AT(rope_scaled), 0, 0, NULL, 0},
    {"attention_sinks", FIELD_SWITCH, AT(attention_sinks), 0, 0, NULL, 0},
    {"adapter_rank", FIELD_INTEGER, AT(adapter_rank), 0, ADAPTER_RANK_MAX, NULL, 0},
    {"adapter_targets", FIELD_INTEGER, AT(adapter_targets), 0, (1 << ADAPTER_TARGET_COUNT) - 1,
     NULL, 0},
};

const struct transformer_field *transformer_field_find(const char *name)
{
    for (size_t i = 0; i < TRANSFORMER_FIELD_COUNT; i++)
        if (strcmp(transformer_fields[i].name, name) == 0)
            return &transformer_fields[i];
    return NULL;
}

void transformer_field_names(const char *names[TRANSFORMER_FIELD_COUNT])
{
    for (size_t i = 0; i < TRANSFORMER_FIELD_COUNT; i++)
        names[i] = transformer_fields[i].name;
}

int64_t *transformer_field_integer_pointer(struct transformer *t,
                                           const struct transformer_field *field)
{
    assert(field->kind == FIELD_INTEGER);
    return (int64_t *)(void *)((char *)t + field->offset);
}

double *transformer_field_real_pointer(struct transformer *t, const struct transformer_field *field)
{
    assert(field->kind == FIELD_REAL);
    return (double *)(void *)((char *)t + field->offset);
}

bool *transformer_field_switch_pointer(struct transformer *t, const struct transformer_field *field)
{
    assert(field->kind == FIELD_SWITCH);
    return (bool *)(void *)((char *)t + field->offset);
}

bool transformer_field_set_choice(struct transformer *t, const struct transformer_field *field,
                                  const char *name)
{
    assert(field->kind == FIELD_CHOICE);
    for (int i = 0; i < field->name_count; i++) {
        if (strcmp(field->names[i], name) != 0)
            continue;
        if (field->names == activation_names)
            t->activation = (enum activation)i;
        else if (field->names == norm_names)
            t->norm = (enum norm)i;
        else if (field->names == norm_place_names)
            t->norm_place = (enum norm_place)i;
        else if (field->names == router_names)
            t->router = (enum router)i;
        else
            t->positions = (enum positions)i;
        return true;
    }
    return false;
}

int transformer_field_choice_index(const struct transformer *t,
                                   const struct transformer_field *field)
{
    assert(field->kind == FIELD_CHOICE);
    if (field->names == activation_names)
        return (int)t->activation;
    if (field->names == norm_place_names)
        return (int)t->norm_place;
    if (field->names == router_names)
        return (int)t->router;
    return field->names == norm_names ? (int)t->norm : (int)t->positions;
}

void transformer_field_append_to_text(struct text *out, const struct transformer *t,
                                      const struct transformer_field *field)
{
    struct transformer copy = *t;
    switch (field->kind) {
    case FIELD_INTEGER:
        text_put_i64(out, *transformer_field_integer_pointer(&copy, field));
        break;
    case FIELD_REAL:
        text_put_double(out, *transformer_field_real_pointer(&copy, field));
        break;
    case FIELD_CHOICE:
        text_puts(out, field->names[transformer_field_choice_index(&copy, field)]);
        break;
    case FIELD_SWITCH:
        text_puts(out, *transformer_field_switch_pointer(&copy, field) ? "true" : "false");
        break;
    case FIELD_KIND_COUNT:
        break;
    }
}

const char *transformer_field_choice_list(const struct transformer_field *field, char *out,
                                          size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < field->name_count && used < size; i++)
        used +=
            (size_t)snprintf(out + used, size - used, "%s%s", i > 0 ? ", " : "", field->names[i]);
    return out;
}

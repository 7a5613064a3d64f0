/* Sets single fields of a model from text, and checks that all fields of a model fit together. */
#include "base/text.h"
#include "models/transformer.h"
#include "models/transformer_fields.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PARAMETER_COUNT_MAX INT64_C(1000000000000000) /* 16 bytes each still fit an int64_t */

enum status transformer_set_field(struct transformer *t, const char *name, const char *value,
                                  struct diag *diag)
{
    const struct loc at = {t->name, 0, 0};
    const struct transformer_field *field = transformer_field_find(name);
    if (field == NULL) {
        const char *names[TRANSFORMER_FIELD_COUNT];
        transformer_field_names(names);
        const char *nearest = diag_nearest(name, names, TRANSFORMER_FIELD_COUNT);
        if (nearest != NULL)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "a model has no field '%s': did you mean '%s'?", name, nearest);
        struct text fields = {0};
        for (size_t i = 0; i < TRANSFORMER_FIELD_COUNT; i++)
            text_printf(&fields, "%s%s", i > 0 ? ", " : "", names[i]);
        enum status status =
            diag_error(diag, at, STATUS_BAD_INPUT, "a model has no field '%s'; its fields are %s",
                       name, fields.data);
        text_release(&fields);
        return status;
    }
    char choices[64];
    int64_t size;
    double real;
    switch (field->kind) {
    case FIELD_INTEGER:
        if (!parse_i64(value, strlen(value), &size) || (double)size < field->low ||
            (double)size > field->high)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "%s cannot be '%s': it is a whole number from %.0f to %.0f", name,
                              value, field->low, field->high);
        *transformer_field_integer_pointer(t, field) = size;
        return STATUS_OK;
    case FIELD_REAL:
        if (!parse_double(value, strlen(value), &real) || !(real >= field->low) ||
            real > field->high)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "%s cannot be '%s': it is a number from %g to %g", name, value,
                              field->low, field->high);
        *transformer_field_real_pointer(t, field) = real;
        return STATUS_OK;
    case FIELD_CHOICE:
        if (!transformer_field_set_choice(t, field, value))
            return diag_error(diag, at, STATUS_BAD_INPUT, "%s cannot be '%s': it is one of %s",
                              name, value,
                              transformer_field_choice_list(field, choices, sizeof choices));
        return STATUS_OK;
    case FIELD_SWITCH:
        if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
            return diag_error(diag, at, STATUS_BAD_INPUT, "%s cannot be '%s': it is true or false",
                              name, value);
        *transformer_field_switch_pointer(t, field) = strcmp(value, "true") == 0;
        return STATUS_OK;
    case FIELD_KIND_COUNT:
        break;
    }
    assert(false && "a field of a kind that is not in the table");
    return STATUS_BAD_INPUT;
}

/* divisor_below() returns the largest divisor of n that is at most x. divisor_above() returns the smallest that is at
 * least x; n if x is larger than n. */
static int64_t divisor_below(int64_t n, int64_t x)
{
    int64_t d = x < n ? x : n;
    while (n % d != 0)
        d--;
    return d;
}

static int64_t divisor_above(int64_t n, int64_t x)
{
    int64_t d = x;
    while (d < n && n % d != 0)
        d++;
    return d < n ? d : n;
}

static enum status check_heads(const struct transformer *t, struct loc at, struct diag *diag)
{
    if (t->heads % t->kv_heads != 0) {
        int64_t below = divisor_below(t->heads, t->kv_heads);
        int64_t above = divisor_above(t->heads, t->kv_heads);
        if (below == above)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "kv_heads %" PRId64 " does not divide heads %" PRId64
                              ": the most it can be is %" PRId64,
                              t->kv_heads, t->heads, below);
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "kv_heads %" PRId64 " does not divide heads %" PRId64
                          ": the nearest that do are %" PRId64 " and %" PRId64,
                          t->kv_heads, t->heads, below, above);
    }
    if (t->positions == POSITIONS_ROPE && t->head_dim % 2 != 0)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "head_dim %" PRId64 " is odd, but RoPE rotates pairs of columns: %" PRId64
                          " would do",
                          t->head_dim, t->head_dim + 1);
    return STATUS_OK;
}

/* Checks switches that are allowed only together with others. */
static enum status check_dependent_switches(const struct transformer *t, struct loc at,
                                            struct diag *diag)
{
    if (t->qk_norm_wide && !t->qk_norm)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "qk_norm_wide is true and qk_norm is false: it says over what the norms "
                          "of q and k go, so qk_norm=true is needed");
    if (t->qk_norm_bare && (!t->qk_norm || t->qk_norm_wide))
        return diag_error(
            diag, at, STATUS_BAD_INPUT,
            "qk_norm_bare is true: it says that the norms of the heads of q and k have "
            "no weights, so qk_norm=true and qk_norm_wide=false are needed");
    if (t->window_chunks && t->attention_window == 0)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "window_chunks is true and attention_window is 0: chunks need a size, "
                          "attention_window=8192 for instance");
    if (t->unrotated_every > 0 && (t->positions != POSITIONS_ROPE || t->kv_latent > 0))
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "unrotated_every is above 0: it says which layers do not rotate, so "
                          "positions=rope and no latent attention are needed");
    if (t->norm_place != NORM_BEFORE && (t->bias_o || t->bias_ffn))
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "norm_place is %s and %s is true: a bias before the norm that ends a "
                          "branch is not modelled; false would do",
                          norm_place_names[t->norm_place], t->bias_o ? "bias_o" : "bias_ffn");
    return STATUS_OK;
}

/* Fails if a model without experts has a size of experts, or if a mixture of experts has sizes or switches that do not
 * fit together. */
static enum status check_experts(const struct transformer *t, struct loc at, struct diag *diag)
{
    const int64_t limit = 1 << 24; /* the limit of ffn */
    if (t->experts == 0) {
        if (t->experts_per_token > 0 || t->expert_ffn > 0 || t->shared_ffn > 0)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "%s is above 0 and experts is 0: a mixture of experts needs their "
                              "number, 128 for instance",
                              t->experts_per_token > 0 ? "experts_per_token"
                              : t->expert_ffn > 0      ? "expert_ffn"
                                                       : "shared_ffn");
        return STATUS_OK;
    }
    if (t->experts_per_token < 1 || t->experts_per_token > t->experts)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "experts_per_token is %" PRId64
                          ": it must be from 1 to experts, %" PRId64,
                          t->experts_per_token, t->experts);
    if (t->expert_ffn < 1 || t->expert_ffn * t->experts > limit || t->shared_ffn > limit)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "expert_ffn is %" PRId64 ": experts times expert_ffn must be from 1 to "
                          "%" PRId64,
                          t->expert_ffn, limit);
    if (t->router_on_input && t->experts_per_token != 1)
        return diag_error(
            diag, at, STATUS_BAD_INPUT,
            "experts_per_token is %" PRId64
            ": with router_on_input, weights of what experts read, only 1 is modelled",
            t->experts_per_token);
    if (!transformer_has_gate(t))
        return diag_error(
            diag, at, STATUS_BAD_INPUT,
            "activation is %s: experts have a gate, so swiglu, swiglu-clamped or geglu is "
            "needed",
            activation_names[t->activation]);
    if (t->router_groups > 0 && (t->experts % t->router_groups != 0 || t->router_groups_kept < 1 ||
                                 t->router_groups_kept > t->router_groups))
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "router_groups is %" PRId64 " and router_groups_kept %" PRId64
                          ": the first must divide experts, %" PRId64 ", and the second be from 1 "
                          "to the first",
                          t->router_groups, t->router_groups_kept, t->experts);
    if (transformer_count_expert_layers(t) == 0)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "no layer has experts: dense_layers is %" PRId64 " and experts_every is "
                          "%" PRId64 ", of %" PRId64 " layers",
                          t->dense_layers, t->experts_every, t->layers);
    return STATUS_OK;
}

static enum status check_latent(const struct transformer *t, struct loc at, struct diag *diag)
{
    if (t->kv_latent == 0) {
        if (t->q_latent > 0 || t->rope_dim > 0 || t->v_dim > 0)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "%s is above 0 and kv_latent is 0: latent attention needs kv_latent, "
                              "512 for instance",
                              t->q_latent > 0   ? "q_latent"
                              : t->rope_dim > 0 ? "rope_dim"
                                                : "v_dim");
        return STATUS_OK;
    }
    if (t->positions != POSITIONS_ROPE)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "positions is %s: with kv_latent it must be rope, which turns the last "
                          "rope_dim columns of each head",
                          positions_names[t->positions]);
    if (t->kv_heads != t->heads || t->qk_norm || t->bias_qkv)
        return diag_error(
            diag, at, STATUS_BAD_INPUT,
            "with kv_latent, kv_heads must equal heads, and qk_norm and bias_qkv must "
            "be false");
    if (t->rope_dim < 1 || t->rope_dim >= t->head_dim || t->rope_dim % 2 != 0 || t->v_dim < 1)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "rope_dim is %" PRId64 " and v_dim is %" PRId64
                          ": with kv_latent the first must be even and from 2 to head_dim - 1, and "
                          "the second at least 1",
                          t->rope_dim, t->v_dim);
    return STATUS_OK;
}

enum status transformer_check_adapters(const struct transformer *t, struct loc at,
                                       struct diag *diag)
{
    if (t->adapter_rank == 0) {
        if (t->adapter_targets > 0)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "adapter_targets is %" PRId64 " and adapter_rank is 0: adapters need "
                              "a rank, 16 for instance",
                              t->adapter_targets);
        return STATUS_OK;
    }
    if (t->kv_latent > 0)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "adapter_rank is %" PRId64 ": adapters of latent attention's projections "
                          "are not modelled; leave adapters out",
                          t->adapter_rank);
    if (t->experts > 0 &&
        (t->adapter_targets == 0 || (t->adapter_targets & ~ADAPTER_TARGETS_OF_ATTENTION) != 0))
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "adapters of experts are not modelled: choose those of attention, "
                          "--adapter %" PRId64 ":attention",
                          t->adapter_rank);
    if (!transformer_has_gate(t) && t->adapter_targets == 1 << ADAPTER_GATE)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "the only adapter is that of a gate, which activation %s has not",
                          activation_names[t->activation]);
    return STATUS_OK;
}

enum status transformer_check(const struct transformer *t, struct loc at, struct diag *diag)
{
    struct transformer copy = *t; /* a copy, since the table's accessors return writable pointers */
    for (size_t i = 0; i < TRANSFORMER_FIELD_COUNT; i++) {
        const struct transformer_field *field = &transformer_fields[i];
        if (field->kind == FIELD_INTEGER) {
            int64_t value = *transformer_field_integer_pointer(&copy, field);
            if ((double)value < field->low || (double)value > field->high)
                return diag_error(diag, at, STATUS_BAD_INPUT,
                                  "%s is %" PRId64 ": it must be from %.0f to %.0f", field->name,
                                  value, field->low, field->high);
        } else if (field->kind == FIELD_REAL) {
            double value = *transformer_field_real_pointer(&copy, field);
            if (!(value >= field->low && value <= field->high))
                return diag_error(diag, at, STATUS_BAD_INPUT, "%s is %g: it must be from %g to %g",
                                  field->name, value, field->low, field->high);
        }
    }
    if (check_heads(t, at, diag) != STATUS_OK)
        return STATUS_BAD_INPUT;
    if (t->positions == POSITIONS_ROPE && !(t->rope_theta > 0))
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "rope_theta is %g: RoPE needs a base above 0, 10000 for instance",
                          t->rope_theta);
    if (t->positions == POSITIONS_LEARNED && t->max_positions < 1)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "max_positions is 0: learned positions need the number of their rows, "
                          "1 or more");
    if (t->attention_window == 0 && (t->window_from_layer > 0 || t->full_attention_every > 0))
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "%s says which layers have no window, but attention_window is 0; set a "
                          "window, 4096 for instance",
                          t->window_from_layer > 0 ? "window_from_layer" : "full_attention_every");
    if (check_dependent_switches(t, at, diag) != STATUS_OK ||
        check_experts(t, at, diag) != STATUS_OK || check_latent(t, at, diag) != STATUS_OK ||
        transformer_check_adapters(t, at, diag) != STATUS_OK)
        return STATUS_BAD_INPUT;
    int64_t parameters = transformer_parameters(t);
    if (parameters > PARAMETER_COUNT_MAX)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "the model has %.3g parameters: at most 10^15 are supported, so fewer "
                          "layers or smaller sizes are needed",
                          (double)parameters);
    return STATUS_OK;
}

/* Reads from a Hugging Face config.json which layers rotate queries and keys: for SmolLM3, EXAONE 4 and Cohere 2. For
 * Llama 4 it only checks the list no_rope_layers; models/hf_experts.c reads the rest.
 *
 * Transformers 5.24: modeling_smollm3.py reads no_rope_layers; in modeling_exaone4.py and modeling_cohere2.py a layer
 * rotates if it has a window. EXAONE 4 whose sliding_window is null rotates in all layers. */
#include "models/hf_reader.h"

#include <inttypes.h>

enum status hf_check_rotating_layers(const struct hf_reader *r, const char *modelled)
{
    struct json_node list = {0};
    enum status status = STATUS_OK;
    if (hf_has_value_to_read(r, "no_rope_layers"))
        status = json_get_array(r->root, "no_rope_layers", &list, r->diag);
    for (size_t l = 0; l < json_element_count(list) && status == STATUS_OK; l++) {
        int64_t rotates = 0;
        status = json_as_i64(json_element_at(list, l), 0, 1, &rotates, r->diag);
        if (status == STATUS_OK && rotates != transformer_layer_rotates(r->t, (int64_t)l))
            return json_error(json_element_at(list, l), r->diag, "layer %zu %s: %s", l,
                              rotates ? "rotates" : "does not rotate", modelled);
    }
    return status;
}

/* Sets unrotated_every to 1 + the index of the first layer that does not rotate, by the list no_rope_layers; to 0 if
 * all rotate. */
static enum status set_unrotated_every_from_list(const struct hf_reader *r)
{
    struct json_node list;
    enum status status = json_get_array(r->root, "no_rope_layers", &list, r->diag);
    if (status == STATUS_OK && json_element_count(list) != (size_t)r->t->layers)
        return json_error(list, r->diag, "it lists %zu layers, and the model has %" PRId64,
                          json_element_count(list), r->t->layers);
    r->t->unrotated_every = 0;
    for (size_t l = 0; l < json_element_count(list) && status == STATUS_OK; l++) {
        int64_t rotates = 0;
        status = json_as_i64(json_element_at(list, l), 0, 1, &rotates, r->diag);
        if (status == STATUS_OK && rotates == 0) {
            r->t->unrotated_every = (int64_t)l + 1;
            break;
        }
    }
    return status;
}

static enum status read_rotating_layers_of_smollm3(const struct hf_reader *r)
{
    struct transformer *t = r->t;
    enum status status = STATUS_OK;
    if (t->attention_window > 0 && !hf_has_value_to_read(r, "layer_types"))
        return json_error(json_find_member(r->root, "sliding_window"), r->diag,
                          "windows in the layers that do not rotate, as without layer_types, are "
                          "not modelled: give layer_types, or --ignore sliding_window for full "
                          "attention");
    t->unrotated_every = 4; /* SmolLM3Config's no_rope_layer_interval */
    if (hf_has_value_to_read(r, "no_rope_layers"))
        status = set_unrotated_every_from_list(r);
    else if (hf_has_value_to_read(r, "no_rope_layer_interval"))
        status = hf_read_size(r, "no_rope_layer_interval", "unrotated_every");
    if (status != STATUS_OK)
        return status;
    return hf_check_rotating_layers(
        r, "modelled is every N-th layer that does not, counted from the first layer of the model; "
           "--ignore no_rope_layers takes no_rope_layer_interval");
}

/* False if the file has sliding_window as null, or the caller ignores it; true if it has a number, or lacks the key, so
 * that the default applies. It does not matter whether any layer has the window. */
static bool has_window_size(const struct hf_reader *r)
{
    return !hf_is_ignored(r, "sliding_window") &&
           (hf_has_value(r, "sliding_window") || !hf_is_present_or_null(r, "sliding_window"));
}

/* Sets unrotated_every so that layers with a window rotate and the others do not. If no layer has a window, no layer
 * rotates, except in EXAONE 4 with sliding_window null or ignored: there all do. */
static enum status read_rotating_layers_by_windows(const struct hf_reader *r)
{
    struct transformer *t = r->t;
    if (t->attention_window == 0) {
        t->unrotated_every = has_window_size(r) || r->family->bit == HF_COHERE2 ? 1 : 0;
        return STATUS_OK;
    }
    t->unrotated_every = t->full_attention_every;
    for (int64_t l = 0; l < t->layers; l++)
        if (transformer_layer_rotates(t, l) != (transformer_layer_window(t, l) > 0))
            return json_error(json_find_member(r->root, "layer_types"), r->diag,
                              "layer %" PRId64 " sees all keys and does not rotate: modelled is "
                              "every N-th layer that does so, counted from the first layer of the "
                              "model",
                              l);
    return STATUS_OK;
}

enum status hf_read_rotating_layers(const struct hf_reader *r)
{
    switch (r->family->bit) {
    case HF_SMOLLM3:
        return read_rotating_layers_of_smollm3(r);
    case HF_EXAONE4:
    case HF_COHERE2:
        return read_rotating_layers_by_windows(r);
    default:
        return STATUS_OK;
    }
}

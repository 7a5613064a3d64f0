/* Reads from a Hugging Face config.json which layers have a window. Three sorts of keys are read in this order, and
 * later ones change what earlier ones say: the window itself, with a number of first layers without it; a period of
 * layers without it; and a list of all layers' types. A chunk (Llama 4) is read as a window. */
#include "models/hf_reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MAX_WINDOW_LAYERS 28 /* max_window_layers of Qwen2Config and Qwen3Config */

/* Sets *on to whether layers may have windows: use_sliding_window says so; without it, the family does. */
static enum status read_window_switch(const struct hf_reader *r, bool *on)
{
    *on = !r->family->is_window_off_without_switch;
    if (!hf_has_value_to_read(r, "use_sliding_window"))
        return STATUS_OK;
    return json_get_bool(r->root, "use_sliding_window", on, r->diag);
}

/* Reads the window into attention_window and, for families with use_sliding_window, max_window_layers into
 * window_from_layer: the number of first layers without the window. */
static enum status read_window(const struct hf_reader *r)
{
    bool on;
    const char *key = r->family->window_key != NULL ? r->family->window_key : "sliding_window";
    enum status status = read_window_switch(r, &on);
    if (status != STATUS_OK || !on || hf_is_ignored(r, key))
        return status;
    if (hf_has_value(r, key)) {
        if (!r->family->has_windows)
            return json_error(
                json_find_member(r->root, key), r->diag,
                "Transformers' %s has no windows: remove it (or --ignore sliding_window) to model "
                "full attention, or write \"model_type\": \"mistral\" for windows in all layers",
                r->family->bit == HF_LLAMA ? "Llama" : r->family->model_type);
        status = hf_read_size(r, key, "attention_window");
    } else if (!hf_is_present_or_null(r, key) && r->family->has_windows) {
        r->t->attention_window = r->family->window;
    }
    if (status != STATUS_OK || !r->family->is_window_off_without_switch)
        return status;
    r->t->window_from_layer = DEFAULT_MAX_WINDOW_LAYERS;
    if (hf_has_value_to_read(r, "max_window_layers"))
        return json_get_i64(r->root, "max_window_layers", 0, INT32_MAX, &r->t->window_from_layer,
                            r->diag);
    return STATUS_OK;
}

/* Reads full_attention_every: the last layer of each such period attends to all keys. EXAONE 4 may write a period as a
 * word, "LLLG": L is a layer with a window, G one without. */
static enum status read_window_pattern(const struct hf_reader *r)
{
    static const char *const keys[] = {"sliding_window_pattern", "_sliding_window_pattern",
                                       "no_rope_layer_interval" /* chunks */};
    struct transformer *t = r->t;
    t->full_attention_every = t->attention_window > 0 ? r->family->full_attention_every : 0;
    for (size_t i = 0; i < ARRAY_LEN(keys) && t->attention_window > 0; i++) {
        const char *word;
        const bool chunks = strcmp(keys[i], "no_rope_layer_interval") == 0;
        if (!hf_has_value_to_read(r, keys[i]) ||
            chunks != ((r->family->parts & HF_PART_CHUNKED_ATTENTION) != 0) ||
            hf_key_find(keys[i], strlen(keys[i]), r->family->bit) == NULL)
            continue;
        if (r->family->bit != HF_EXAONE4 ||
            json_get_string(r->root, keys[i], &word, NULL) != STATUS_OK)
            return json_get_i64(r->root, keys[i], 1, 1 << 14, &t->full_attention_every, r->diag);
        const size_t size = strlen(word);
        if (size < 1 || strspn(word, "L") != size - 1 || word[size - 1] != 'G')
            return json_error(json_find_member(r->root, keys[i]), r->diag,
                              "'%s' is not modelled: some letters L and a last G are", word);
        t->full_attention_every = (int64_t)size;
    }
    return STATUS_OK;
}

/* Reads a list with the type of each layer. Sets slides[layer] to true for "sliding_attention" and, in a family with
 * chunks, for "chunked_attention"; to false for "full_attention" and, in a family with linear attention, for
 * "linear_attention". In a family with chunks an element may also be a number, 1 for a layer with chunks (Llama 4's
 * no_rope_layers). */
static enum status read_which_layers_slide(const struct hf_reader *r, struct json_node types,
                                           bool *slides)
{
    const bool chunks = (r->family->parts & HF_PART_CHUNKED_ATTENTION) != 0;
    const bool linear = (r->family->parts & HF_PART_LINEAR_ATTENTION) != 0;
    for (size_t i = 0; i < json_element_count(types); i++) {
        const char *type;
        int64_t rotates;
        if (chunks && json_as_i64(json_element_at(types, i), 0, 1, &rotates, NULL) == STATUS_OK) {
            slides[i] = rotates == 1;
            continue;
        }
        enum status status = json_as_string(json_element_at(types, i), &type, r->diag);
        if (status != STATUS_OK)
            return status;
        slides[i] = strcmp(type, "sliding_attention") == 0 ||
                    (chunks && strcmp(type, "chunked_attention") == 0);
        if (!slides[i] && strcmp(type, "full_attention") != 0 &&
            !(linear && strcmp(type, "linear_attention") == 0))
            return json_error(json_element_at(types, i), r->diag,
                              "layers of '%s' are not modelled: full_attention and "
                              "sliding_attention are; --ignore "
                              "layer_types models the layers as without this key",
                              type);
    }
    return STATUS_OK;
}

static bool windows_are_of_these_layers(const struct transformer *t, const bool *slides)
{
    for (int64_t l = 0; l < t->layers; l++)
        if ((transformer_layer_window(t, l) > 0) != slides[l])
            return false;
    return true;
}

/* Finds values of window_from_layer and full_attention_every with which exactly the layers with slides[layer] have a
 * window, and sets them. Returns false if there are none. At least one layer must have a window. */
static bool find_window_period(struct transformer *t, const bool *slides)
{
    int64_t first = 0, full;
    while (first < t->layers && !slides[first])
        first++;
    for (full = first; full < t->layers && slides[full];)
        full++;
    for (int64_t every = full < t->layers ? full + 1 : 0; every != 1;
         every = every == 0 ? 1 : every - 1) {
        t->full_attention_every = every;
        for (int from_first = 0; from_first < 2; from_first++) {
            t->window_from_layer = from_first ? first : 0;
            if ((every == 0 || (full + 1) % every == 0) && windows_are_of_these_layers(t, slides))
                return true;
        }
    }
    return false;
}

static enum status set_windows_by_layer_types(const struct hf_reader *r, struct json_node types,
                                              const bool *slides)
{
    struct transformer *t = r->t;
    bool any = false;
    for (int64_t l = 0; l < t->layers; l++)
        any = any || slides[l];
    if (!any) {
        t->attention_window = t->window_from_layer = t->full_attention_every = 0;
        return STATUS_OK;
    }
    if (t->attention_window == 0)
        return json_error(
            types, r->diag,
            "has layers of 'sliding_attention', and no window is set: give "
            "sliding_window%s, or --ignore "
            "layer_types for full attention",
            r->family->is_window_off_without_switch ? " and \"use_sliding_window\": true" : "");
    if (!find_window_period(t, slides))
        return json_error(types, r->diag,
                          "this order of layers is not modelled: from some layer on all must have "
                          "a window, or all but "
                          "every N-th; --ignore layer_types models the layers as without this key");
    return STATUS_OK;
}

static enum status read_layer_types(const struct hf_reader *r)
{
    struct json_node types;
    const char *key = "layer_types";
    if (!hf_has_value_to_read(r, key) && (r->family->parts & HF_PART_CHUNKED_ATTENTION) != 0)
        key = "no_rope_layers"; /* an empty list leaves it to no_rope_layer_interval */
    if (!hf_has_value_to_read(r, key))
        return STATUS_OK;
    enum status status = json_get_array(r->root, key, &types, r->diag);
    if (status != STATUS_OK || (json_element_count(types) == 0 && strcmp(key, "layer_types") != 0))
        return status;
    if (json_element_count(types) != (size_t)r->t->layers)
        return json_error(types, r->diag, "it lists %zu layers, and the model has %" PRId64,
                          json_element_count(types), r->t->layers);
    bool *slides = heap_zalloc((size_t)r->t->layers, sizeof *slides);
    status = read_which_layers_slide(r, types, slides);
    if (status == STATUS_OK)
        status = set_windows_by_layer_types(r, types, slides);
    free(slides);
    return status;
}

enum status hf_read_windows(const struct hf_reader *r)
{
    struct transformer *t = r->t;
    enum status status = read_window(r);
    if (status == STATUS_OK)
        status = read_window_pattern(r);
    if (status == STATUS_OK)
        status = read_layer_types(r);
    if (status == STATUS_OK && transformer_count_windowed_layers(t) == 0)
        t->attention_window = t->window_from_layer = t->full_attention_every = 0;
    return status;
}

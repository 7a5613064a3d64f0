/* models/hf_reader.h: the state of reading a Hugging Face config.json, and the functions that the files which read it
 * share. */
#ifndef MODELS_HF_READER_H
#define MODELS_HF_READER_H

#include "base/json.h"
#include "models/hf_keys.h"
#include "models/transformer.h"

#include <stdbool.h>
#include <stddef.h>

struct hf_reader {
    struct transformer *t;
    /* the root of the file; its text_config, if the model has other parts besides its text model */
    struct json_node root;
    const struct hf_family *family;
    /* names of keys that the caller leaves unread, separated by commas; NULL: none */
    const char *ignored_keys;
    struct diag *diag;
};

/* Returns the next word of a list separated by commas, without blanks around it; NULL: the list has ended. Sets *size
 * to the word's size, and moves *list past the word. */
const char *hf_next_ignored_key(const char **list, size_t *size);

/* True if the caller leaves the key unread. */
bool hf_is_ignored(const struct hf_reader *r, const char *key);

/* True if a key is present, even as null. json_find_member() treats null as absent, but a few keys mean different
 * things when they are null and when they are absent. */
bool hf_is_present_or_null(const struct hf_reader *r, const char *key);

/* True if a key is present and not null. */
bool hf_has_value(const struct hf_reader *r, const char *key);

/* True if a key is present, not null, and not ignored by the caller. */
bool hf_has_value_to_read(const struct hf_reader *r, const char *key);

/* Reads the whole number at `key`, which must be at least 1, into the transformer's field `name`, whose upper limit it
 * must not exceed. Fails if the key is absent. */
enum status hf_read_size(const struct hf_reader *r, const char *key, const char *name);

/* Returns the rotary parameters of the layers without a window, from the object rope_parameters: files of Transformers
 * 5 may have others for layers with a window. */
struct json_node hf_rope_parameters_of_full_layers(struct json_node parameters);

/* Sets *holder to the object in which rope_theta is looked up: the root of the file if it has the key or has no
 * rope_parameters, else the rotary parameters of the layers without a window. The object may lack the key. */
enum status hf_find_rope_theta_holder(const struct hf_reader *r, struct json_node *holder);

/* Reads the base of rotary positions into t->rope_theta; it is the family's default if the key is absent. */
enum status hf_read_rope_theta(const struct hf_reader *r);

/* Reads the window, and which layers have it (models/hf_windows.c). If no layer has it, the model has no window. */
enum status hf_read_windows(const struct hf_reader *r);

/* Reads which layers rotate queries and keys (models/hf_rotating_layers.c): all, none, or all but
 * every N-th layer. Any other choice is refused, and the message names a layer. Does nothing for
 * families in which all layers rotate, and for Llama 4 (hf_read_experts()). Call it after windows
 * and the kind of positions are read. */
enum status hf_read_rotating_layers(const struct hf_reader *r);

/* Fails if the list no_rope_layers, with a 1 for each layer that rotates and a 0 for each other, disagrees with
 * transformer_layer_rotates(). The message names the first layer where they disagree; modelled: what would be right, in
 * words. A file without the list passes. */
enum status hf_check_rotating_layers(const struct hf_reader *r, const char *modelled);

/* Reads what only mixtures of experts have, latent attention included (models/hf_experts.c). Call it after all other
 * sizes are read. */
enum status hf_read_experts(const struct hf_reader *r);

#endif

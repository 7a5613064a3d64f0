/* models/hf_proxy.h: families of Hugging Face's config.json that are not modelled, and the nearest dense transformer.
 *
 * The table in models/hf_proxy.c has the families with parts that are not modelled: linear attention, ALiBi, experts of
 * another kind, and others. It also has mixtures of experts that are modelled (models/hf_keys.h), for callers who want
 * a dense model in their place. A dense proxy has as many layers as the real model, and its feed-forward part is as
 * wide as the experts that a token passes, shared ones included (the mean over the layers). It does not represent the
 * missing parts: all-to-alls between experts, unequal loads, the parameters of experts that a token does not pass. */
#ifndef MODELS_HF_PROXY_H
#define MODELS_HF_PROXY_H

#include "base/json.h"
#include "models/transformer.h"

#include <stdbool.h>

/* True if the table has this model_type. */
bool hf_proxy_has_family(const char *model_type);

/* Sets *t to the nearest dense transformer; t->proxy_lacks names the missing parts. Fails if no
 * dense transformer is near. A note names those keys of the file that models/hf_keys.c does not
 * have or refuses, except the keys in `ignore` (models/hf_config.h; NULL: none). */
enum status hf_proxy_read(struct transformer *t, struct arena *arena, const char *name,
                          struct json_node root, const char *model_type, const char *ignore,
                          struct diag *diag);

/* Marks *t, which was read without the parts `missing` (bits of enum hf_unmodelled_part), as a dense proxy: sets
 * t->name, t->source and t->proxy_lacks. name: the name of the real model. */
void hf_proxy_mark_as_dense_proxy(struct transformer *t, struct arena *arena, const char *name,
                                  unsigned missing);

/* Returns a description of the parts `missing` (bits of enum hf_unmodelled_part), in the arena: "ALiBi (a bias on
 * attention scores) and ..."; NULL: there are none. */
const char *hf_proxy_describe_missing_parts(struct arena *arena, unsigned missing);

/* Turns a model with experts, latent attention or attention sinks, which are modelled, into the nearest dense one, with
 * the sizes that hf_proxy_read() would give it. In the result all layers rotate, and chunks are windows of their
 * length. */
void hf_proxy_make_dense(struct transformer *t, struct arena *arena);

/* Reports that a model has parts that are not modelled, and proposes *t, the nearest dense model, which
 * hf_proxy_mark_as_dense_proxy() has marked. at: the node of the file's model_type. */
enum status hf_proxy_refuse_unmodelled_parts(struct json_node at, unsigned missing,
                                             const struct transformer *t, struct diag *diag);

/* Reports that a family of the table has parts that are not modelled, and proposes the nearest dense model. ignore:
 * keys that are left unread for that model; NULL: none. */
enum status hf_proxy_refuse_family(struct json_node root, const char *model_type,
                                   const char *ignore, struct diag *diag);

#endif

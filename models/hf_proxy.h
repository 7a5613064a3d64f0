/* models/hf_proxy.h: families of Hugging Face's config.json that are not modelled, and the nearest dense transformer.
 *
 * A family of this table has parts that are not read for it: linear attention, ALiBi, experts of another kind, and
 * others. If the caller asks for a proxy, such a model is represented by a dense transformer with the same layers and
 * the parameters that a token passes (of experts, those that it is routed to and the shared ones). The proxy says
 * nothing of the missing parts: all-to-alls between experts, unequal loads, parameters that other tokens use. */
#ifndef MODELS_HF_PROXY_H
#define MODELS_HF_PROXY_H

#include "base/json.h"
#include "models/transformer.h"

#include <stdbool.h>

/* True if model_type is in the table. */
bool hf_proxy_has_family(const char *model_type);

/* Sets *t to the nearest dense transformer; t->proxy_lacks names the missing parts. A note names those keys of the file
 * that are neither read nor known to have no effect on the work, except the keys in `ignore` (models/hf_config.h; NULL:
 * none). */
enum status hf_proxy_read(struct transformer *t, struct arena *arena, const char *name,
                          struct json_node root, const char *model_type, const char *ignore,
                          struct diag *diag);

/* Turns *t, which was read without the `missing` parts (enum hf_part), into a dense proxy: sets its name, its source
 * and the list of missing parts. */
void hf_proxy_label(struct transformer *t, struct arena *arena, const char *name, unsigned missing);

/* Describes the parts (bits of enum hf_part) that are not modelled, in the arena: "experts (which rank has ...) and
 * ..."; NULL if there are none. */
const char *hf_proxy_describe(struct arena *arena, unsigned missing);

/* Replaces a model that has experts, latent attention or attention sinks by the nearest dense one, as hf_proxy_read()
 * does. */
void hf_proxy_make_dense(struct transformer *t, struct arena *arena);

/* Reports, at the file's model_type, that its model has parts that are not modelled; *t is the nearest dense model,
 * which hf_proxy_label() names. */
enum status hf_proxy_refuse_parts(struct json_node at, unsigned missing,
                                  const struct transformer *t, struct diag *diag);

/* Reports the error of a family of the table: the part that is not modelled, and the nearest dense model, read without
 * the keys of ignore. */
enum status hf_proxy_refuse(struct json_node root, const char *model_type, const char *ignore,
                            struct diag *diag);

#endif

/* predict/reproduce/catalogue_claims.h: reads the claims of a catalogue, and JSON members that may be absent. */
#ifndef PREDICT_REPRODUCE_CATALOGUE_CLAIMS_H
#define PREDICT_REPRODUCE_CATALOGUE_CLAIMS_H

#include "predict/reproduce/catalogue.h"

/* These two read a text or a flag into *out; if the object has no such member, *out stays as it is. */
enum status catalogue_read_text(struct json_node object, const char *key, const char **out,
                                struct diag *diag);
enum status catalogue_read_flag(struct json_node object, const char *key, bool *out,
                                struct diag *diag);
/* Reads a text, or an array of at most CATALOGUE_LIST_MAX texts, into list[]. *count is 0 if the object has no such
 * member. */
enum status catalogue_read_texts(struct json_node object, const char *key, const char **list,
                                 size_t *count, struct diag *diag);

enum status catalogue_read_claim(struct catalogue *catalogue, struct catalogue_claim *claim,
                                 struct json_node node, struct diag *diag);

#endif

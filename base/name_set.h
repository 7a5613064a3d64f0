/* base/name_set.h: sets of names out of a table, such as "moe,mlp". Bit i of a set stands for names[i]. */
#ifndef BASE_NAME_SET_H
#define BASE_NAME_SET_H

#include "base/text.h"

#include <stddef.h>
#include <stdint.h>

/* Returns the index of the name that equals word[0..size); -1: none does. */
int name_set_find(const char *const *names, int count, const char *word, size_t size);

/* Appends the names of a set, in the order of the table, with `between` between them. */
void name_set_append_to_text(struct text *out, uint32_t set, const char *const *names, int count,
                             const char *between);

/* Sets *set to the names in a list that is separated by commas. Returns NULL if all words of the list are names of the
 * table. Otherwise returns the first word that is not, sets *size to its length, and leaves in *set the names before
 * it. An empty list counts as one word of length 0. */
const char *name_set_read(uint32_t *set, const char *list, const char *const *names, int count,
                          size_t *size);

#endif

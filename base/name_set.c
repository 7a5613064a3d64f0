#include "base/name_set.h"

#include <string.h>

int name_set_find(const char *const *names, int count, const char *word, size_t size)
{
    for (int i = 0; i < count; i++)
        if (strlen(names[i]) == size && memcmp(names[i], word, size) == 0)
            return i;
    return -1;
}

void name_set_append_to_text(struct text *out, uint32_t set, const char *const *names, int count,
                             const char *between)
{
    const char *before = "";
    for (int i = 0; i < count; i++) {
        if ((set >> i & 1) == 0)
            continue;
        text_printf(out, "%s%s", before, names[i]);
        before = between;
    }
}

const char *name_set_read(uint32_t *set, const char *list, const char *const *names, int count,
                          size_t *size)
{
    *set = 0;
    for (const char *word = list;; word += *size + 1) {
        *size = strcspn(word, ",");
        const int found = name_set_find(names, count, word, *size);
        if (found < 0)
            return word;
        *set |= UINT32_C(1) << found;
        if (word[*size] == '\0')
            return NULL;
    }
}

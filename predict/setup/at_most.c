#include "predict/setup/at_most.h"

#include <string.h>

const char *const at_most_words[AT_MOST_REASONS] = {"adapter", "bits", "lengths"};

static const char *const sentences[AT_MOST_REASONS] = {
    "all weights are trained here, and the run trains an adapter or part of the weights, which has "
    "gradients and states of its own only",
    "frozen weights have 16 bits here, and 8 or 4 in the run, which makes 16 bits of them for each "
    "product",
    "every sequence is as long as the longest here, and those of the run are shorter"};

enum status at_most_read(uint32_t *reasons, const char *words, struct diag *diag)
{
    *reasons = 0;
    for (const char *word = words;;) {
        const size_t size = strcspn(word, ",");
        int reason = 0;
        while (reason < AT_MOST_REASONS && (strlen(at_most_words[reason]) != size ||
                                            strncmp(at_most_words[reason], word, size) != 0))
            reason++;
        if (reason == AT_MOST_REASONS)
            return diag_error(diag, (struct loc){.name = "--at-most"}, STATUS_BAD_INPUT,
                              "'%.60s': expected some of adapter, bits and lengths, with commas",
                              words);
        *reasons |= 1U << reason;
        if (word[size] == '\0')
            return STATUS_OK;
        word += size + 1;
    }
}

void at_most_put(struct text *out, uint32_t reasons)
{
    const char *between = "";
    for (int reason = 0; reason < AT_MOST_REASONS; reason++) {
        if ((reasons & 1U << reason) == 0)
            continue;
        text_printf(out, "%s%s", between, sentences[reason]);
        between = "; ";
    }
}

#include "predict/setup/at_most.h"

#include "base/name_set.h"

const char *const at_most_words[RUN_DOES_LESS_REASON_COUNT] = {"adapter", "bits", "lengths"};

static const char *const sentences[RUN_DOES_LESS_REASON_COUNT] = {
    "all weights are trained here, and the run trains an adapter or part of the weights, which has "
    "gradients and states of its own only",
    "frozen weights have 16 bits here, and 8 or 4 in the run, which makes 16 bits of them for each "
    "product",
    "every sequence is as long as the longest here, and those of the run are shorter"};

enum status at_most_read_reasons(uint32_t *reasons, const char *words, struct diag *diag)
{
    size_t size;
    struct text text = {0};
    if (name_set_read(reasons, words, at_most_words, RUN_DOES_LESS_REASON_COUNT, &size) == NULL)
        return STATUS_OK;
    name_set_append_to_text(&text, (1U << RUN_DOES_LESS_REASON_COUNT) - 1, at_most_words,
                            RUN_DOES_LESS_REASON_COUNT, ", ");
    enum status status =
        diag_error(diag, (struct loc){.name = "--at-most"}, STATUS_BAD_INPUT,
                   "'%.60s': expected some of %s, with commas between them", words, text.data);
    text_release(&text);
    return status;
}

void at_most_put_reasons(struct text *out, uint32_t reasons)
{
    name_set_append_to_text(out, reasons, sentences, RUN_DOES_LESS_REASON_COUNT, "; ");
}

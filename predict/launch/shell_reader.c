/* Functions that the readers of shell scripts share: faults, and the comparison of words. */
#include "predict/launch/shell_reader.h"

#include <string.h>

enum status shell_report_fault(const struct shell_reader *s, const char *what)
{
    return diag_error(s->shell->diag, (struct loc){.name = s->shell->name, .line = s->line},
                      STATUS_BAD_INPUT, "%s", what);
}

bool shell_text_equals_word(const char *text, size_t size, const char *word)
{
    return strlen(word) == size && memcmp(text, word, size) == 0;
}

/* tests/traces/wrong_text.h: checks that a reader refuses wrong texts, each with its message. */
#ifndef TESTS_TRACES_WRONG_TEXT_H
#define TESTS_TRACES_WRONG_TEXT_H

#include "base/diag.h"
#include "tests/check.h"

struct wrong_text {
    const char *label, *text, *message;
};

/* Checks that each text is refused as bad input with its message. parse() reads a text, discards the result and
 * returns the status. */
static inline void check_wrong_texts(const struct wrong_text *wrong, size_t count,
                                     enum status (*parse)(const char *text, struct diag *diag))
{
    for (size_t i = 0; i < count; i++) {
        struct diag diag = {0};
        CHECK_INT(wrong[i].label, parse(wrong[i].text, &diag), STATUS_BAD_INPUT);
        CHECK_TEXT(wrong[i].label, diag.text, wrong[i].message);
        diag_release(&diag);
    }
}

#endif

/* base/utf8.h: texts of any bytes where a file format wants UTF-8. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>

/* The bytes of the UTF-8 character that a text, which ends in NUL, begins with; 0: it is none. */
size_t utf8_size(const char *text);

/* Whether a text is UTF-8 throughout. */
bool utf8_is_valid(const char *text);

/* Appends a text; each byte that is no UTF-8 becomes U+FFFD. */
void utf8_put(struct text *out, const char *text);

#endif

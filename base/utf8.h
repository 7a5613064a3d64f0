/* base/utf8.h: texts of any bytes where a file format wants UTF-8. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes of the UTF-8 character that text[0..left) begins with; 0: it is none. Of a text that ends in NUL
 * nothing after the NUL is read, so that left may be SIZE_MAX. */
size_t utf8_size(const char *text, size_t left);

/* Whether a text is UTF-8 throughout. */
bool utf8_is_valid(const char *text);

/* Writes a character and returns its bytes; what is no Unicode character becomes U+FFFD. */
size_t utf8_encode(uint32_t code, char out[4]);

/* Appends a text; each byte that is no UTF-8 becomes U+FFFD. */
void utf8_put(struct text *out, const char *text);

#endif

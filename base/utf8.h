/* base/utf8.h: checks and repairs texts of any bytes for file formats that require UTF-8. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the number of bytes of the UTF-8 character with which text[0..left) begins; 0 if it does not begin with one.
 * Nothing after a NUL is read, so `left` may be SIZE_MAX for a text that ends in NUL. */
size_t utf8_char_size(const char *text, size_t left);

/* True if all of a text is UTF-8. */
bool utf8_is_valid(const char *text);

/* Writes a character as UTF-8 and returns its number of bytes. A code that is not a Unicode character becomes
 * U+FFFD. */
size_t utf8_encode(uint32_t code, char out[4]);

/* Appends a text; each byte that is not part of a UTF-8 character becomes U+FFFD. */
void utf8_append_repaired(struct text *out, const char *text);

#endif

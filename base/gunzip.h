/* base/gunzip.h: unpacks text that gzip has packed, as the PyTorch profiler's recordings often are. */
#ifndef BASE_GUNZIP_H
#define BASE_GUNZIP_H

#include "base/diag.h"
#include "base/text.h"

#include <stdbool.h>

/* Returns whether a text begins as gzip's files do (RFC 1952). */
bool gunzip_is_packed(const struct text *text);

/* Replaces a packed text by its contents: those of all gzip members, one after another. If the text is damaged or cut
 * short, or if its contents exceed `limit` bytes, adds an error at `at`, returns STATUS_BAD_INPUT and leaves the text
 * unchanged. */
enum status gunzip(struct text *text, size_t limit, struct loc at, struct diag *diag);

#endif

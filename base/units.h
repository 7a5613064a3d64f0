/* base/units.h: converts quantities with units to and from plain SI doubles.
 *
 * Text such as "900 GB/s", "141 GiB", "1.5 us" or "312 TFLOP/s" becomes bytes per
 * second, bytes, seconds or flop per second. A missing or wrong unit is an error:
 * nothing is guessed. GB = 10^9 bytes, GiB = 2^30 bytes, "Gb/s" = 10^9 bits per second.
 * Token counts take K = 1024, M = 1024^2 and G = 1024^3 ("512K" is 524288) and must be whole.
 *
 * Lower case is accepted where it has only one meaning: "512k" tokens, "80gb" and "80gib" of memory. Rates, where
 * Gb/s are bits and GB/s are bytes, and times, where m is milli, keep their case. */
#ifndef BASE_UNITS_H
#define BASE_UNITS_H

#include "base/diag.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum unit_kind {
    UNIT_BYTES,       /* B KB MB GB TB, KiB MiB GiB TiB */
    UNIT_BYTES_PER_S, /* the units of UNIT_BYTES followed by /s, and Gb/s (bits) */
    UNIT_SECONDS,     /* s ms us ns */
    UNIT_FLOP_PER_S,  /* FLOP/s GFLOP/s TFLOP/s PFLOP/s */
    UNIT_WATTS,       /* W kW */
    UNIT_NONE,        /* a plain number */
    UNIT_KIND_COUNT
};

/* Parses all of text[0..size) and sets *value in SI units (bytes, bytes/s, s, FLOP/s, W). The message of a failure
 * names the units that would be right. */
enum status units_parse(const char *text, size_t size, enum unit_kind kind, double *value,
                        struct loc at, struct diag *diag);

/* Parses a count of tokens: "131072", "128K", "128k", "1M", "1.5M", "1G". It must be whole, at
 * least 1, and less than 2^53. */
enum status units_parse_tokens(const char *text, size_t size, int64_t *value, struct loc at,
                               struct diag *diag);

/* units_put() appends a value with a fitting unit and three significant digits, or all digits
 * before the point if these are more: "1.02 TB", "12.3 ms". It uses powers of 1000 for bytes;
 * units_put_gib() uses powers of 1024, up to GiB. units_put_tokens() appends multiples of 1024 as
 * "512K" or "1M", other counts as digits. */
void units_put(struct text *out, enum unit_kind kind, double value);
void units_put_gib(struct text *out, double bytes);
void units_put_tokens(struct text *out, int64_t tokens);

#endif

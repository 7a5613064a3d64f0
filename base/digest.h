/* base/digest.h: 64-bit digests of bytes (FNV-1a), by which equal data are recognised. They detect accidental
 * differences and damage, but no forgery. */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

/* The digest of no bytes. */
#define DIGEST_OF_NO_BYTES UINT64_C(14695981039346656037)

/* Continues a digest with more bytes, and returns the new digest. */
static inline uint64_t digest_add(uint64_t digest, const void *data, size_t size)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < size; i++)
        digest = (digest ^ at[i]) * UINT64_C(1099511628211);
    return digest;
}

#endif

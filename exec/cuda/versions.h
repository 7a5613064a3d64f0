/* exec/cuda/versions.h: which versions of NVIDIA's libraries are known to be wrong.
 *
 * A table of rules says what is wrong with a range of versions, which version works, and from which source this is
 * known. A library's version is checked when it is opened (library.c), and the library is refused if a rule says so. A
 * rule that forbids only a part of a library is checked where that part would be used. Each library's versions are
 * numbers in its own encoding. */
#ifndef EXEC_CUDA_VERSIONS_H
#define EXEC_CUDA_VERSIONS_H

#include "base/diag.h"

#include <stddef.h>
#include <stdint.h>

enum nvidia_library {
    /* its version is the newest version of CUDA that it supports (cudaDriverGetVersion()) */
    NVIDIA_DRIVER,
    NVIDIA_CUBLASLT,
    NVIDIA_CUDNN,
    NVIDIA_NCCL,
    NVIDIA_CUPTI, /* its version is that of its API */
    NVIDIA_LIBRARY_COUNT
};

/* The uses of a library that a rule forbids. */
enum version_rule_effect {
    VERSION_REFUSED, /* the library is not used */
    /* cuDNN: no backward runs whose number of keys is not a multiple of VERSION_TILE */
    VERSION_BACKWARD_NEEDS_WHOLE_TILES,
    /* cuBLASLt: no product is split along k whose k is not a multiple of VERSION_SPLIT */
    VERSION_SPLIT_K_NEEDS_WHOLE_PARTS
};

enum { VERSION_TILE = 128, VERSION_SPLIT = 64 };

struct version_rule {
    uint8_t library, effect;
    int first_version, last_version; /* versions, both included */
    const char *fault, *remedy, *source;
};
extern const struct version_rule version_rules[];
extern const size_t version_rule_count;

/* Returns a library's name, such as "cuDNN". */
const char *version_library_name(enum nvidia_library library);
/* Writes a version into text, such as "9.19.0". */
void version_to_text(enum nvidia_library library, int version, char *text, size_t size);

/* Returns the rule that has this effect on a version; NULL: there is none. */
const struct version_rule *version_find_rule(enum nvidia_library library,
                                             enum version_rule_effect effect, int version);
/* Returns STATUS_SYSTEM after a message if a version is refused: "cuDNN: error: version 9.5.1 cannot be used: it ...;
 * use 9.10.2 or later". */
enum status version_check(enum nvidia_library library, int version, struct diag *diag);

#endif

/* exec/cuda/versions.h: which versions of NVIDIA's libraries are known to be wrong.
 *
 * One table of rules says what is wrong with a range of versions, what would do instead, and who says so. A library is
 * asked for its version when it is opened (library.c), and refused when a rule refuses it; rules that forbid a part of
 * a library are asked for where that part would be used. Versions are numbers as each library counts them. */
#ifndef EXEC_CUDA_VERSIONS_H
#define EXEC_CUDA_VERSIONS_H

#include "base/diag.h"

#include <stddef.h>
#include <stdint.h>

enum nvidia_library {
    NVIDIA_DRIVER, /* counted by the CUDA version that it takes: cudaDriverGetVersion() */
    NVIDIA_CUBLASLT,
    NVIDIA_CUDNN,
    NVIDIA_NCCL,
    NVIDIA_CUPTI, /* counted by its API */
    NVIDIA_LIBRARY_COUNT
};

enum version_effect {
    VERSION_REFUSED,          /* the library is not used */
    VERSION_WHOLE_TILES_BACK, /* cuDNN: no backward of keys that are no multiple of VERSION_TILE */
    VERSION_WHOLE_SPLITS /* cuBLASLt: no product is split along a k that is no multiple of VERSION_SPLIT */
};

enum { VERSION_TILE = 128, VERSION_SPLIT = 64 };

struct version_rule {
    uint8_t library, effect;
    int first, last; /* versions, both included */
    const char *wrong, *instead, *source;
};
extern const struct version_rule version_rules[];
extern const size_t version_rule_count;

/* "cuDNN" */
const char *version_library(enum nvidia_library library);
/* "9.19.0" */
void version_print(enum nvidia_library library, int version, char *text, size_t size);

/* The rule with that effect on a version; NULL: none. */
const struct version_rule *version_rule(enum nvidia_library library, enum version_effect effect,
                                        int version);
/* STATUS_SYSTEM when a version is refused: "cuDNN: error: version 9.5.1 ...; 9.10.2 or later would do". */
enum status version_check(enum nvidia_library library, int version, struct diag *diag);

#endif

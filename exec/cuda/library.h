/* exec/cuda/library.h: NVIDIA's libraries, which the program opens when the CUDA backend needs them.
 *
 * The program does not link them, so it starts fast, and also where they are missing. If a library is missing, the
 * backend reports the loader's message; if its version is known to be wrong (versions.h), it refuses the library. A
 * library is looked for in this order:
 * 1. by its name, in LD_LIBRARY_PATH and the system's folders;
 * 2. in the folder that it was in when the program was built;
 * 3. in the folders of the toolkit: $CUDA_HOME, $CUDA_PATH, /usr/local/cuda;
 * 4. among the wheels of the python3 in PATH (wheels.h).
 * Functions are called through a table that has members of the same names: cublaslt->cublasLtMatmul(...). */
#ifndef EXEC_CUDA_LIBRARY_H
#define EXEC_CUDA_LIBRARY_H

#include "base/diag.h"

#include <cublasLt.h>
#include <stdbool.h>
#ifdef HAVE_CUDNN
#include <cudnn.h>
#endif
#ifdef HAVE_NCCL
#include <nccl.h>
#endif
#ifdef HAVE_CUPTI
#include <cupti.h>
#endif

/* Values of cuBLAS 12.9 for scales of blocks of 128, as numbers, since older headers lack their names: the version that
 * first has them, two attributes of a product, and two values of these attributes. */
enum {
    CUBLASLT_BLOCK_SCALES_SINCE = 120900,
    CUBLASLT_SCALE_MODE_A = 31,
    CUBLASLT_SCALE_MODE_B = 32,
    CUBLASLT_SCALES_VECTOR = 4,
    CUBLASLT_SCALES_BLOCK = 5
};

#define CUBLASLT_FUNCTIONS(F)                                                                      \
    F(cublasLtCreate)                                                                              \
    F(cublasLtDestroy)                                                                             \
    F(cublasLtGetVersion)                                                                          \
    F(cublasLtGetStatusString)                                                                     \
    F(cublasLtMatmul)                                                                              \
    F(cublasLtMatmulAlgoGetHeuristic)                                                              \
    F(cublasLtMatmulDescCreate)                                                                    \
    F(cublasLtMatmulDescDestroy)                                                                   \
    F(cublasLtMatmulDescSetAttribute)                                                              \
    F(cublasLtMatmulPreferenceCreate)                                                              \
    F(cublasLtMatmulPreferenceDestroy)                                                             \
    F(cublasLtMatmulPreferenceSetAttribute)                                                        \
    F(cublasLtMatrixLayoutCreate)                                                                  \
    F(cublasLtMatrixLayoutDestroy)

#define CUDNN_FUNCTIONS(F)                                                                         \
    F(cudnnCreate)                                                                                 \
    F(cudnnDestroy)                                                                                \
    F(cudnnSetStream)                                                                              \
    F(cudnnGetVersion)                                                                             \
    F(cudnnGetCudartVersion)                                                                       \
    F(cudnnGetErrorString)                                                                         \
    F(cudnnGetLastErrorString)                                                                     \
    F(cudnnBackendCreateDescriptor)                                                                \
    F(cudnnBackendDestroyDescriptor)                                                               \
    F(cudnnBackendSetAttribute)                                                                    \
    F(cudnnBackendGetAttribute)                                                                    \
    F(cudnnBackendFinalize)                                                                        \
    F(cudnnBackendExecute)

#define NCCL_FUNCTIONS(F)                                                                          \
    F(ncclGetVersion)                                                                              \
    F(ncclGetUniqueId)                                                                             \
    F(ncclGetErrorString)                                                                          \
    F(ncclGetLastError)                                                                            \
    F(ncclCommInitRankConfig)                                                                      \
    F(ncclCommSplit)                                                                               \
    F(ncclCommDestroy)                                                                             \
    F(ncclCommAbort)                                                                               \
    F(ncclCommGetAsyncError)                                                                       \
    F(ncclGroupStart)                                                                              \
    F(ncclGroupEnd)                                                                                \
    F(ncclAllGather)                                                                               \
    F(ncclAllReduce)                                                                               \
    F(ncclBroadcast)                                                                               \
    F(ncclReduce)                                                                                  \
    F(ncclReduceScatter)                                                                           \
    F(ncclSend)                                                                                    \
    F(ncclRecv)

/* Functions for registered memory, which NCCL has since version 2.19. */
#define NCCL_REGISTRATION_FUNCTIONS(F)                                                             \
    F(ncclMemAlloc)                                                                                \
    F(ncclMemFree)                                                                                 \
    F(ncclCommRegister)                                                                            \
    F(ncclCommDeregister)

#define CUPTI_FUNCTIONS(F)                                                                         \
    F(cuptiActivityRegisterCallbacks)                                                              \
    F(cuptiActivityRegisterTimestampCallback)                                                      \
    F(cuptiActivityEnable)                                                                         \
    F(cuptiActivityFlushAll)                                                                       \
    F(cuptiActivityGetNextRecord)                                                                  \
    F(cuptiActivityGetNumDroppedRecords)                                                           \
    F(cuptiActivityPushExternalCorrelationId)                                                      \
    F(cuptiActivityPopExternalCorrelationId)                                                       \
    F(cuptiGetVersion)                                                                             \
    F(cuptiGetResultString)

#define LIBRARY_FUNCTION_POINTER(name) __typeof__(&(name)) name;

struct cublaslt {
    CUBLASLT_FUNCTIONS(LIBRARY_FUNCTION_POINTER)
};
#ifdef HAVE_CUDNN
struct cudnn {
    CUDNN_FUNCTIONS(LIBRARY_FUNCTION_POINTER)
};
#endif
#ifdef HAVE_NCCL
struct nccl {
    NCCL_FUNCTIONS(LIBRARY_FUNCTION_POINTER)
};
#if NCCL_VERSION_CODE >= 21900
#define HAVE_NCCL_REGISTRATION
struct nccl_registration {
    NCCL_REGISTRATION_FUNCTIONS(LIBRARY_FUNCTION_POINTER)
};
#endif
#endif
#ifdef HAVE_CUPTI
struct cupti {
    CUPTI_FUNCTIONS(LIBRARY_FUNCTION_POINTER)
};
#endif

/* cublaslt_open(), cudnn_open(), nccl_open(), nccl_registration_open() and cupti_open_library() return a library's
 * table of functions. The first call makes the table, which stays until the program ends. They return NULL after a
 * message (STATUS_SYSTEM) if the library cannot be opened, lacks a function, or has a version that is refused. Any
 * thread may call them. */
const struct cublaslt *cublaslt_open(struct diag *diag);
/* Makes cublaslt_open() return this table from now on, for tests that emulate a device. The other functions
 * *_use_table() do the same for their libraries. */
void cublaslt_use_table(const struct cublaslt *table);
#ifdef HAVE_CUDNN
const struct cudnn *cudnn_open(struct diag *diag);
void cudnn_use_table(const struct cudnn *table);
/* Returns why NVRTC, with which cuDNN compiles its kernels, cannot be opened; NULL: it is open. Must be called after
 * cudnn_open(). */
const char *cudnn_why_no_compiler(void);
#endif
#ifdef HAVE_NCCL
const struct nccl *nccl_open(struct diag *diag);
void nccl_use_table(const struct nccl *table);
#ifdef HAVE_NCCL_REGISTRATION
const struct nccl_registration *nccl_registration_open(struct diag *diag);
void nccl_registration_use_table(const struct nccl_registration *table);
#endif
#endif
#ifdef HAVE_CUPTI
const struct cupti *cupti_open_library(struct diag *diag);
void cupti_use_table(const struct cupti *table);
#endif

/* Opens a library by the first of its possible names that works ("libx.so.13", ...). folder: the one that the library
 * was in when the program was built. Returns NULL on failure, after a message with the loader's text. */
void *library_open(const char *const *names, size_t count, const char *folder, struct diag *diag);
/* Opens a library that was installed together with another one, to which the function `near` belongs. It looks in that
 * library's folder, and in the folders beside it that pip's wheels use. Returns NULL if the library is not there. */
void *library_open_near(const char *name, const void *near);
/* Returns a function of an opened library. Returns NULL after a message if the library has none of that name. */
void *library_function(void *library, const char *library_name, const char *function,
                       struct diag *diag);

#endif

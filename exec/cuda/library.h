/* exec/cuda/library.h: NVIDIA's libraries, opened when the backend is opened.
 *
 * The program does not link them, so it starts fast and also without them. A missing library becomes a message with
 * the loader's text, and one whose version is known to be wrong (versions.h) is refused. A library is looked for by
 * its name (LD_LIBRARY_PATH, the system's folders), then where it was when the program was built, then in the
 * toolkit's folders: those of $CUDA_HOME, $CUDA_PATH and /usr/local/cuda, then among the wheels of the python3 in PATH
 * (wheels.h). Functions are called through a table of their own names: cublaslt->cublasLtMatmul(...). */
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

/* Names of cuBLAS 12.9 for scales of blocks of 128, by their numbers, since older headers lack them: two attributes of
 * a product, and the values of these. */
enum {
    CUBLASLT_BLOCKS_SINCE = 120900,
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

/* Functions for registered memory, which NCCL has since 2.19. */
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

#define LIBRARY_MEMBER(name) __typeof__(&(name)) name;

struct cublaslt {
    CUBLASLT_FUNCTIONS(LIBRARY_MEMBER)
};
#ifdef HAVE_CUDNN
struct cudnn {
    CUDNN_FUNCTIONS(LIBRARY_MEMBER)
};
#endif
#ifdef HAVE_NCCL
struct nccl {
    NCCL_FUNCTIONS(LIBRARY_MEMBER)
};
#if NCCL_VERSION_CODE >= 21900
#define HAVE_NCCL_REGISTRATION
struct nccl_registration {
    NCCL_REGISTRATION_FUNCTIONS(LIBRARY_MEMBER)
};
#endif
#endif
#ifdef HAVE_CUPTI
struct cupti {
    CUPTI_FUNCTIONS(LIBRARY_MEMBER)
};
#endif

/* Each function NAME_open(), and cupti_library(), returns a library's table of functions, which the first call makes
 * and which stays until the program ends. It returns NULL after a message (STATUS_SYSTEM) if the library cannot be
 * opened, lacks a function, or has a version that is refused. Any thread may call it. */
const struct cublaslt *cublaslt_open(struct diag *diag);
/* Makes cublaslt_open() return this table from now on; for tests that emulate a device. */
void cublaslt_use_table(const struct cublaslt *table);
#ifdef HAVE_CUDNN
const struct cudnn *cudnn_open(struct diag *diag);
void cudnn_use_table(const struct cudnn *table); /* as cublaslt_use_table() */
/* Returns why NVRTC, with which cuDNN compiles its kernels, cannot be opened; NULL: it can. Call after
 * cudnn_open(). */
const char *cudnn_why_no_compiler(void);
#endif
#ifdef HAVE_NCCL
const struct nccl *nccl_open(struct diag *diag);
void nccl_use_table(const struct nccl *table); /* as cublaslt_use_table() */
#ifdef HAVE_NCCL_REGISTRATION
const struct nccl_registration *nccl_registration_open(struct diag *diag);
void nccl_registration_use_table(const struct nccl_registration *table);
#endif
#endif
#ifdef HAVE_CUPTI
const struct cupti *cupti_library(struct diag *diag);
void cupti_use_table(const struct cupti *table); /* as cublaslt_use_table() */
#endif

/* Opens any other library by the first of its possible names that works ("libx.so.13", ...). On failure returns NULL,
 * with the loader's text in *diag. folder: where the library was when the program was built. */
void *library_open(const char *const *names, size_t count, const char *folder, struct diag *diag);
/* Opens a library that was installed together with another one, to which the function `near` belongs: it looks in that
 * library's folder, and in the neighbouring folders that pip's wheels use. Returns NULL if it is not there. */
void *library_open_near(const char *name, const void *near);
/* Returns a function of an opened library, or NULL and a message. */
void *library_function(void *library, const char *library_name, const char *function,
                       struct diag *diag);

#endif

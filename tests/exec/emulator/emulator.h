/* tests/exec/emulator/emulator.h: a device for tests of the CUDA backend on machines without one. */
#ifndef TESTS_EXEC_EMULATOR_EMULATOR_H
#define TESTS_EXEC_EMULATOR_EMULATOR_H

/* before what follows, since they have templates for C++ */
#include <cublasLt.h>
#ifdef HAVE_CUDNN
#include <cudnn.h>
#endif
#ifdef HAVE_NCCL
#include <nccl.h>
#endif

#ifdef HAVE_CUPTI
#include <cupti.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#include "exec/cuda/library.h"

/* The backend's products and fused attention are the emulator's from now on. */
void emulator_use(void);
void emulator_use_fused(void); /* emulator_use() calls it */
void emulator_use_nccl(void);  /* the same */
void emulator_use_cupti(void); /* the same */

/* What happens to CUPTI's records; all 0: they come. */
struct emulator_cupti {
    int flush_fails; /* cuptiActivityFlushAll() is refused */
    int drops;       /* so many records find no room, and are counted */
    int loses;       /* so many go astray */
    int timeless;    /* so many come without times */
    int tears;       /* the last record of a buffer is incomplete */
};
extern struct emulator_cupti emulator_cupti;

/* What the libraries say of themselves, at first the versions of the headers. */
struct emulator_versions {
    int driver, cublaslt, cudnn, nccl, cupti;
};
extern struct emulator_versions emulator_versions;

extern int emulator_devices; /* how many GPUs there seem to be; -1: the driver is too old */
int emulator_arenas(
    void); /* blocks of host memory that are registered: each rank has one from open() to close() */
extern const char *emulator_connections; /* CUDA_DEVICE_MAX_CONNECTIONS, as CUDA has found it */
int emulator_devices_touched(void);      /* how many have a context of this process */
extern const char *emulator_fails;       /* a function of the runtime that is refused; NULL: none */
extern int emulator_fails_after;         /* so many of its calls are taken first */
extern size_t emulator_memory;           /* of each, in bytes, for one allocation */

#ifdef __cplusplus
}
#endif
#endif

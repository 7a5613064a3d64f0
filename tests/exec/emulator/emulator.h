/* tests/exec/emulator/emulator.h: an emulated device, which lets the CUDA backend be tested on machines without
 * a GPU. */
#ifndef TESTS_EXEC_EMULATOR_EMULATOR_H
#define TESTS_EXEC_EMULATOR_EMULATOR_H

/* included before extern "C", since these headers have C++ templates */
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

/* From this call on the backend uses the emulator's matrix products and fused attention, NCCL and CUPTI. */
void emulator_use(void);
void emulator_use_cudnn(void); /* called by emulator_use() */
void emulator_use_nccl(void);  /* called by emulator_use() */
void emulator_use_cupti(void); /* called by emulator_use() */
/* From this call on clocks and power are those of tests/exec/emulator/nvml.cpp; before, they are unknown. */
void emulator_use_nvml(void);
extern int emulator_clock_asked; /* how often the SM clock was read; the clock falls each time */

/* Faults of CUPTI's records that a test asks for; all 0: every record is delivered. */
struct emulated_cupti_faults {
    int does_flush_fail; /* cuptiActivityFlushAll() fails */
    int dropped_records; /* number of records that are dropped for lack of room and counted as dropped */
    int uncounted_lost_records; /* number of records that are lost without being counted */
    int untimed_records;        /* number of records that are delivered with start and end 0 */
    int tears_last_record;      /* the last record of a flush is incomplete */
};
extern struct emulated_cupti_faults emulated_cupti_faults;

/* The versions that the emulated libraries report; they start as those of the headers. */
struct emulator_versions {
    int driver, cublaslt, cudnn, nccl, cupti;
};
extern struct emulator_versions emulator_versions;

extern int emulator_epilogues; /* 0: cuBLASLt has none but the bias; it starts as 1 */
extern int
    emulator_capability;     /* the major number of the GPUs' compute capability; it starts as 9 */
extern int emulator_devices; /* GPUs that the runtime reports; -1: old driver */
int emulator_open_arena_count(void); /* registered blocks of host memory: each open rank has one */
extern const char *emulator_connections; /* CUDA_DEVICE_MAX_CONNECTIONS as CUDA sees it */
int emulator_devices_touched(void);      /* number of GPUs on which this process has a context */
extern const char *emulator_fails; /* name of a runtime function whose calls fail; NULL: none */
extern int emulator_fails_after;   /* number of its calls that succeed before the first failure */
extern size_t emulator_memory;     /* memory of each GPU in bytes; a larger allocation fails */

#ifdef __cplusplus
}
#endif
#endif

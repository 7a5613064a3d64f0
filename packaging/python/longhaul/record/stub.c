/* stub.c: the part of CUDA's runtime and driver that PyTorch calls, so that it sees one GPU on a machine that has none.
 *
 * longhaul.record loads this library before PyTorch, with its symbols global, so that they take precedence over those
 * of libcudart. Its SONAME is libcuda.so.1, so a later dlopen of the driver finds it too. Kernels do nothing, streams
 * and events are numbers, and device memory is host address space, whose pages only copies and fills touch. Records and
 * waits of streams, waits of the host, and launches (fake tensors launch none, so a launch is one that the recorder has
 * missed) go to a log, which stub_take_log() empties.
 *
 * It serves PyTorch of CUDA 12 and 13: where they differ, so do the names of the functions. The library includes no
 * header of CUDA, so a machine without CUDA can build it; the numbers below are those of driver_types.h of CUDA 12.8
 * and 13.2. A function that only has to succeed ignores its arguments, which the calling convention of x86-64 and
 * AArch64 allows. */
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

enum { SUCCESS = 0, ERROR_MEMORY = 2, ERROR_NOT_SUPPORTED = 801 };
enum { LOG_RECORD = 1, LOG_WAIT, LOG_HOST_WAIT, LOG_LAUNCH, LOG_DEVICE_WAIT };
enum { ATTRIBUTE_MULTIPROCESSORS = 16, ATTRIBUTE_MAJOR = 75, ATTRIBUTE_MINOR = 76 };

struct stub_log_entry {
    int kind; /* LOG_... */
    unsigned stream;
    unsigned event;
};

enum { LOG_SIZE = 1 << 16 };
static struct stub_log_entry entries[LOG_SIZE];
static int logged, lost;

static struct {
    char name[256];
    int version; /* 13020 is CUDA 13.2 */
    int major, minor, multiprocessors;
    size_t memory_bytes;
} device = {"GPU of longhaul.record", 13000, 9, 0, 132, (size_t)80 << 30};

/* The size of cudaDeviceProp and the offsets of the members that are set. */
struct properties_layout {
    size_t size;
    size_t multiprocessors, threads_per_multiprocessor, shared_optin, shared_per_multiprocessor;
    size_t registers_per_multiprocessor, l2, blocks_per_multiprocessor, unified;
};
static const struct properties_layout cuda12 = {1032, 388, 624, 696, 640, 648, 616, 712, 604};
static const struct properties_layout cuda13 = {1008, 384, 604, 672, 624, 632, 596, 688, 588};

void stub_set_device(const char *name, int version, int major, int minor, int multiprocessors,
                     size_t memory_bytes)
{
    memset(device.name, 0, sizeof device.name);
    strncpy(device.name, name, sizeof device.name - 1);
    device.version = version;
    device.major = major;
    device.minor = minor;
    device.multiprocessors = multiprocessors;
    device.memory_bytes = memory_bytes;
}

/* Moves all entries of the log to `out`, which has room for `most`, and returns their number. Returns -1, and moves
 * none, if there are more or if entries have been lost. */
int stub_take_log(struct stub_log_entry *out, int most)
{
    if (lost || logged > most)
        return -1;
    memcpy(out, entries, (size_t)logged * sizeof *out);
    int taken_entry_count = logged;
    logged = 0;
    return taken_entry_count;
}

static void append_log_entry(int kind, const void *stream, const void *event)
{
    if (logged == LOG_SIZE)
        lost = 1;
    else
        entries[logged++] =
            (struct stub_log_entry){kind, (unsigned)(size_t)stream, (unsigned)(size_t)event};
}

static void set_int_member(char *properties, size_t offset, int value)
{
    memcpy(properties + offset, &value, sizeof value);
}

static void set_size_member(char *properties, size_t offset, size_t value)
{
    memcpy(properties + offset, &value, sizeof value);
}

static int fill_properties(char *p, const struct properties_layout *at)
{
    memset(p, 0, at->size);
    memcpy(p, device.name, sizeof device.name);
    set_size_member(p, 288, device.memory_bytes);
    set_size_member(p, 296, (size_t)48 << 10); /* shared memory of a block */
    set_int_member(p, 304, 65536);             /* registers of a block */
    set_int_member(p, 308, 32);                /* threads of a warp */
    set_int_member(p, 320, 1024);              /* threads of a block, and by dimension */
    set_int_member(p, 324, 1024);
    set_int_member(p, 328, 1024);
    set_int_member(p, 332, 64);
    set_int_member(p, 336, 0x7fffffff); /* blocks of a grid by dimension */
    set_int_member(p, 340, 65535);
    set_int_member(p, 344, 65535);
    set_int_member(p, 360, device.major);
    set_int_member(p, 364, device.minor);
    set_int_member(p, at->multiprocessors, device.multiprocessors);
    set_int_member(p, at->threads_per_multiprocessor, 2048);
    set_size_member(p, at->shared_optin, (size_t)227 << 10);
    set_size_member(p, at->shared_per_multiprocessor, (size_t)228 << 10);
    set_int_member(p, at->registers_per_multiprocessor, 65536);
    set_int_member(p, at->l2, 50 << 20);
    set_int_member(p, at->blocks_per_multiprocessor, 32);
    set_int_member(p, at->unified, 1);
    return SUCCESS;
}

int cudaGetDeviceProperties(char *properties, int d)
{
    (void)d;
    return fill_properties(properties, &cuda13);
}

int cudaGetDeviceProperties_v2(char *properties, int d)
{
    (void)d;
    return fill_properties(properties, &cuda12);
}

int cudaDeviceGetAttribute(int *value, int attribute, int d)
{
    (void)d;
    *value = attribute == ATTRIBUTE_MAJOR             ? device.major
             : attribute == ATTRIBUTE_MINOR           ? device.minor
             : attribute == ATTRIBUTE_MULTIPROCESSORS ? device.multiprocessors
                                                      : 0;
    return SUCCESS;
}

#define DEFINE_CALL_THAT_SUCCEEDS(function)                                                        \
    int function(void)                                                                             \
    {                                                                                              \
        return SUCCESS;                                                                            \
    }

#define DEFINE_UNSUPPORTED_CALL(function)                                                                      \
    int function(void)                                                                             \
    {                                                                                              \
        return ERROR_NOT_SUPPORTED;                                                                \
    }

/* A function that stores one int through its only used argument. */
#define DEFINE_CALL_THAT_STORES_INT(function, value)                                                                    \
    int function(int *stored)                                                                      \
    {                                                                                              \
        *stored = (value);                                                                         \
        return SUCCESS;                                                                            \
    }

DEFINE_CALL_THAT_STORES_INT(cudaGetDeviceCount, 1)
DEFINE_CALL_THAT_STORES_INT(cudaGetDevice, 0)
DEFINE_CALL_THAT_STORES_INT(cudaDriverGetVersion, device.version)
DEFINE_CALL_THAT_STORES_INT(cudaRuntimeGetVersion, device.version)
DEFINE_CALL_THAT_STORES_INT(cudaDeviceCanAccessPeer, 0)
DEFINE_CALL_THAT_SUCCEEDS(cudaSetDevice)
DEFINE_CALL_THAT_SUCCEEDS(cudaGetLastError)
DEFINE_CALL_THAT_SUCCEEDS(cudaPeekAtLastError)
DEFINE_CALL_THAT_SUCCEEDS(cudaThreadExchangeStreamCaptureMode)
DEFINE_CALL_THAT_SUCCEEDS(cudaProfilerStart)
DEFINE_CALL_THAT_SUCCEEDS(cudaProfilerStop)

int cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return SUCCESS;
}

/* Stores the handle of a new stream or event. A handle is a number, the next of one sequence, and points to nothing. */
static int new_handle(void **handle)
{
    static size_t last = 0x100;
    last += 16;
    *handle = (void *)last;
    return SUCCESS;
}

#define DEFINE_CALL_THAT_RETURNS_HANDLE(function)                                                                          \
    int function(void **handle)                                                                    \
    {                                                                                              \
        return new_handle(handle);                                                                 \
    }

DEFINE_CALL_THAT_RETURNS_HANDLE(cudaStreamCreate)
DEFINE_CALL_THAT_RETURNS_HANDLE(cudaStreamCreateWithFlags)
DEFINE_CALL_THAT_RETURNS_HANDLE(cudaStreamCreateWithPriority)
DEFINE_CALL_THAT_RETURNS_HANDLE(cudaEventCreate)
DEFINE_CALL_THAT_RETURNS_HANDLE(cudaEventCreateWithFlags)
DEFINE_CALL_THAT_SUCCEEDS(cudaStreamDestroy)
DEFINE_CALL_THAT_SUCCEEDS(cudaEventDestroy)
DEFINE_CALL_THAT_SUCCEEDS(cudaStreamQuery)
DEFINE_CALL_THAT_SUCCEEDS(cudaEventQuery)

static int store_zero_through_second(const void *first, int *stored)
{
    (void)first;
    *stored = 0;
    return SUCCESS;
}

/* Defines a function that stores a result through its second argument, here always 0. Arguments after the second are
 * ignored: the further results of cudaStreamGetCaptureInfo() are valid only while a stream is captured, and here none
 * is. */
#define DEFINE_CALL_THAT_ZEROES_SECOND(function)                                                                    \
    int function(const void *first, int *stored)                                                   \
    {                                                                                              \
        return store_zero_through_second(first, stored);                                                        \
    }

DEFINE_CALL_THAT_ZEROES_SECOND(cudaStreamGetPriority)
DEFINE_CALL_THAT_ZEROES_SECOND(cudaStreamIsCapturing)
DEFINE_CALL_THAT_ZEROES_SECOND(cudaStreamGetCaptureInfo)
DEFINE_CALL_THAT_ZEROES_SECOND(cudaStreamGetCaptureInfo_v2)

int cudaStreamSynchronize(const void *stream)
{
    append_log_entry(LOG_HOST_WAIT, stream, NULL);
    return SUCCESS;
}

int cudaDeviceSynchronize(void)
{
    append_log_entry(LOG_DEVICE_WAIT, NULL, NULL);
    return SUCCESS;
}

int cudaEventSynchronize(const void *event)
{
    append_log_entry(LOG_HOST_WAIT, NULL, event);
    return SUCCESS;
}

int cudaStreamWaitEvent(const void *stream, const void *event)
{
    append_log_entry(LOG_WAIT, stream, event);
    return SUCCESS;
}

int cudaEventRecord(const void *event, const void *stream)
{
    append_log_entry(LOG_RECORD, stream, event);
    return SUCCESS;
}

int cudaEventRecordWithFlags(const void *event, const void *stream)
{
    return cudaEventRecord(event, stream);
}

int cudaEventElapsedTime(float *ms)
{
    *ms = 1;
    return SUCCESS;
}

int cudaEventElapsedTime_v2(float *ms)
{
    return cudaEventElapsedTime(ms);
}

int cudaMalloc(void **memory, size_t size)
{
    *memory = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return *memory == MAP_FAILED ? ERROR_MEMORY : SUCCESS;
}

int cudaHostAlloc(void **memory, size_t size)
{
    return cudaMalloc(memory, size);
}

int cudaMallocHost(void **memory, size_t size)
{
    return cudaMalloc(memory, size);
}

DEFINE_CALL_THAT_SUCCEEDS(cudaFree)
DEFINE_CALL_THAT_SUCCEEDS(cudaFreeHost)

int cudaMemGetInfo(size_t *free_bytes, size_t *bytes)
{
    *free_bytes = *bytes = device.memory_bytes;
    return SUCCESS;
}

int cudaMemcpy(void *to, const void *from, size_t size)
{
    memcpy(to, from, size);
    return SUCCESS;
}

int cudaMemcpyAsync(void *to, const void *from, size_t size)
{
    return cudaMemcpy(to, from, size);
}

int cudaMemsetAsync(void *to, int value, size_t size)
{
    memset(to, value, size);
    return SUCCESS;
}

#define DEFINE_CALL_THAT_LOGS_LAUNCH(function)                                                                         \
    int function(void)                                                                             \
    {                                                                                              \
        append_log_entry(LOG_LAUNCH, NULL, NULL);                                                  \
        return SUCCESS;                                                                            \
    }

DEFINE_CALL_THAT_LOGS_LAUNCH(cudaLaunchKernel)
DEFINE_CALL_THAT_LOGS_LAUNCH(cudaLaunchKernelExC)
DEFINE_CALL_THAT_LOGS_LAUNCH(cuLaunchKernel)
DEFINE_CALL_THAT_LOGS_LAUNCH(cuLaunchKernelEx)
DEFINE_CALL_THAT_LOGS_LAUNCH(cuLaunchCooperativeKernel)

/* The driver, as PyTorch's libcaffe2_nvrtc asks for it. */
int cuDevicePrimaryCtxGetState(int d, unsigned *flags, int *active)
{
    (void)d;
    *flags = 0;
    *active = 1;
    return SUCCESS;
}

int cuDeviceGet(int *d, int ordinal)
{
    *d = ordinal;
    return SUCCESS;
}

static int new_context(void **made)
{
    static char only;
    *made = &only;
    return SUCCESS;
}

int cuCtxGetCurrent(void **made)
{
    return new_context(made);
}

int cuDevicePrimaryCtxRetain(void **made)
{
    return new_context(made);
}

DEFINE_CALL_THAT_SUCCEEDS(cuInit)
DEFINE_CALL_THAT_SUCCEEDS(cuCtxSetCurrent)

int cuGetErrorString(int error, const char **text)
{
    (void)error;
    *text = "this GPU is a stub of longhaul.record";
    return SUCCESS;
}

DEFINE_UNSUPPORTED_CALL(cuDeviceGetAttribute)
DEFINE_UNSUPPORTED_CALL(cuFuncGetAttribute)
DEFINE_UNSUPPORTED_CALL(cuFuncSetAttribute)
DEFINE_UNSUPPORTED_CALL(cuFuncSetCacheConfig)
DEFINE_UNSUPPORTED_CALL(cuLinkAddData_v2)
DEFINE_UNSUPPORTED_CALL(cuLinkComplete)
DEFINE_UNSUPPORTED_CALL(cuLinkCreate_v2)
DEFINE_UNSUPPORTED_CALL(cuModuleGetFunction)
DEFINE_UNSUPPORTED_CALL(cuModuleLoad)
DEFINE_UNSUPPORTED_CALL(cuModuleLoadData)
DEFINE_UNSUPPORTED_CALL(cuModuleLoadDataEx)
DEFINE_UNSUPPORTED_CALL(cuModuleUnload)
DEFINE_UNSUPPORTED_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor)
DEFINE_UNSUPPORTED_CALL(cuPointerGetAttribute)
DEFINE_UNSUPPORTED_CALL(cuTensorMapEncodeTiled)

/* Implements the functions of CUDA's runtime that the backend calls, on the streams of stream.hpp. Device memory is
 * host memory; asynchronous calls run on a stream's thread. */
#include "tests/exec/emulator/emulator.h"
#include "tests/exec/emulator/stream.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime_api.h>

extern "C" {

int emulator_capability = 9;
struct emulator_versions emulator_versions = {CUDART_VERSION, CUBLAS_VERSION,
#ifdef HAVE_CUDNN
                                              CUDNN_VERSION,
#else
                                              0,
#endif
#ifdef HAVE_NCCL
                                              NCCL_VERSION_CODE,
#else
                                              0,
#endif
#ifdef HAVE_CUPTI
                                              CUPTI_API_VERSION};
#else
                                              0};
#endif

static std::atomic<int> registered; /* blocks of host memory */

int emulator_devices = 1; /* tests may take them away */
const char *emulator_fails;
int emulator_fails_after;

/* Returns the error with which a call ends before it does anything, if a test asked for one (emulator_fails). */
static cudaError_t refused(const char *call)
{
    if (emulator_fails == nullptr || strcmp(emulator_fails, call) != 0)
        return cudaSuccess;
    return __atomic_fetch_sub(&emulator_fails_after, 1, __ATOMIC_RELAXED) > 0 ? cudaSuccess
                                                                              : cudaErrorUnknown;
}

const char *emulator_connections;

cudaError_t cudaGetDeviceCount(int *count)
{
    emulator_connections = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    *count = emulator_devices > 0 ? emulator_devices : 0;
    return emulator_devices > 0    ? cudaSuccess
           : emulator_devices == 0 ? cudaErrorNoDevice
                                   : cudaErrorInsufficientDriver;
}

cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= emulator_devices)
        return cudaErrorInvalidDevice;
    emulator::set_current_device(device);
    emulator::touch();
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = emulator::current_device();
    return cudaSuccess;
}

int emulator_open_arena_count(void)
{
    return registered;
}

int emulator_devices_touched(void)
{
    return emulator::devices_touched();
}

cudaError_t cudaDeviceSynchronize(void)
{
    if (refused("cudaDeviceSynchronize") != cudaSuccess)
        return cudaErrorUnknown;
    emulator::device_synchronize();
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "out of memory"
           : error == cudaErrorInsufficientDriver
               ? "CUDA driver version is insufficient for CUDA runtime version"
           : error == cudaErrorNoDevice             ? "no CUDA-capable device is detected"
           : error == cudaErrorInvalidValue         ? "invalid argument"
           : error == cudaErrorInvalidConfiguration ? "invalid configuration argument"
           : error == cudaErrorLaunchOutOfResources ? "too many resources requested for launch"
           : error == cudaErrorInvalidResourceHandle
               ? "a stream, event or memory of another device than the current one"
               : "an error of the emulated device";
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = emulator_versions.driver;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int)
{
    *value = attribute == cudaDevAttrComputeCapabilityMajor ? emulator_capability
             : attribute == cudaDevAttrMultiProcessorCount  ? 1
                                                            : 0;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    memset(properties, 0, sizeof *properties);
    snprintf(properties->name, sizeof properties->name, "emulated device %d", device);
    properties->multiProcessorCount = 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *bus, int size, int device)
{
    snprintf(bus, static_cast<size_t>(size), "ffff:%02x:00.0", static_cast<unsigned>(device));
    return cudaSuccess;
}

size_t emulator_memory = (size_t)8 << 30;

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *all_bytes)
{
    *free_bytes = *all_bytes = emulator_memory;
    return cudaSuccess;
}

static cudaError_t allocate(void **memory, size_t bytes, emulator::Memory kind)
{
    if (posix_memalign(memory, 512, bytes) != 0)
        return cudaErrorMemoryAllocation;
    emulator::touch();
    emulator::own(*memory, bytes, kind);
    return cudaSuccess;
}

/* Frees memory of the device or of the host. First it waits for the device, as cudaFree() and cudaFreeHost() do. */
static cudaError_t free_after_device_wait(void *memory)
{
    emulator::device_synchronize();
    emulator::forget_allocation(memory);
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    return bytes > emulator_memory ? cudaErrorMemoryAllocation
                                   : allocate(memory, bytes, emulator::Memory::Device);
}

cudaError_t cudaFree(void *memory)
{
    return free_after_device_wait(memory);
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned)
{
    if (refused("cudaHostAlloc") != cudaSuccess)
        return cudaErrorUnknown;
    return allocate(memory, bytes, emulator::Memory::Pinned);
}

cudaError_t cudaFreeHost(void *memory)
{
    return free_after_device_wait(memory);
}

cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned)
{
    if (refused("cudaHostRegister") != cudaSuccess)
        return cudaErrorUnknown;
    emulator::own(memory, bytes, emulator::Memory::Pinned);
    registered++;
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *memory)
{
    emulator::forget_allocation(memory);
    registered--;
    return cudaSuccess;
}

cudaError_t cudaMemset(void *memory, int value, size_t bytes)
{
    if (refused("cudaMemset") != cudaSuccess)
        return cudaErrorUnknown;
    if (!emulator::can_device_access(emulator::current_device(), memory))
        return cudaErrorInvalidResourceHandle;
    emulator::submit_unrecorded(nullptr, [=] { memset(memory, value, bytes); });
    return cudaSuccess;
}

/* Copies on the legacy stream. A copy from pageable memory to the device, or within the device, may still be under
 * way when the call returns. */
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind)
{
    if (refused("cudaMemcpy") != cudaSuccess)
        return cudaErrorUnknown;
    const bool later = emulator::memory_kind_at(to) == emulator::Memory::Device &&
                       emulator::memory_kind_at(from) != emulator::Memory::Pinned;
    emulator::copy(to, from, bytes, nullptr);
    if (!later)
        emulator::stream_synchronize(nullptr);
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument)
{
    if (refused("cudaLaunchHostFunc") != cudaSuccess)
        return cudaErrorUnknown;
    emulator::submit_unrecorded(stream, [=] { function(argument); });
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    if (refused("cudaStreamCreateWithFlags") != cudaSuccess)
        return cudaErrorUnknown;
    if (flags != cudaStreamNonBlocking)
        return cudaErrorNotSupported; /* no stream here waits for the legacy one */
    *stream = emulator::stream_new();
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

/* The emulated device ignores priorities: the threads of its streams are equal. */
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    return priority < -5 || priority > 0 ? cudaErrorInvalidValue
                                         : cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    emulator::stream_free(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    return emulator::stream_done(stream) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    if (refused("cudaStreamSynchronize") != cudaSuccess)
        return cudaErrorUnknown;
    emulator::stream_synchronize(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    if (refused("cudaStreamWaitEvent") != cudaSuccess)
        return cudaErrorUnknown;
    emulator::stream_wait_event(stream, event);
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    if (refused("cudaEventCreateWithFlags") != cudaSuccess)
        return cudaErrorUnknown;
    *event = emulator::event_new();
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    emulator::event_free(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    if (refused("cudaEventRecord") != cudaSuccess)
        return cudaErrorUnknown;
    if (emulator::device_of(event) != emulator::device_of(stream))
        return cudaErrorInvalidResourceHandle;
    emulator::event_record(event, stream);
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    if (refused("cudaEventQuery") != cudaSuccess)
        return cudaErrorUnknown;
    return emulator::event_done(event) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    if (refused("cudaEventSynchronize") != cudaSuccess)
        return cudaErrorUnknown;
    emulator::event_synchronize(event);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    if (refused("cudaEventElapsedTime") != cudaSuccess)
        return cudaErrorUnknown;
    if (emulator::device_of(from) != emulator::device_of(to))
        return cudaErrorInvalidResourceHandle;
    *ms = (float)(1e3 * (emulator::event_time_s(to) - emulator::event_time_s(from)));
    return cudaSuccess;
}
}

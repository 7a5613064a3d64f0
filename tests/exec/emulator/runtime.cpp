/* The functions of CUDA's runtime that the backend calls, over the streams of stream.hpp: device
 * memory is the processor's, asynchronous is what runs on a stream's thread. */
#include "tests/exec/emulator/stream.hpp"

#include <cstdlib>
#include <cstring>
#include <cuda_runtime_api.h>

extern "C" {

int emulator_devices = 1; /* tests may take them away */

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = emulator_devices > 0 ? emulator_devices : 0;
    return emulator_devices > 0    ? cudaSuccess
           : emulator_devices == 0 ? cudaErrorNoDevice
                                   : cudaErrorInsufficientDriver;
}

cudaError_t cudaSetDevice(int)
{
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "out of memory"
           : error == cudaErrorInsufficientDriver
               ? "CUDA driver version is insufficient for CUDA runtime version"
           : error == cudaErrorNoDevice ? "no CUDA-capable device is detected"
                                        : "an error of the emulated device";
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int)
{
    *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9
             : attribute == cudaDevAttrMultiProcessorCount  ? 1
                                                            : 0;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int)
{
    memset(properties, 0, sizeof *properties);
    strcpy(properties->name, "an emulated device");
    properties->multiProcessorCount = 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *, int, int)
{
    return cudaErrorInvalidDevice;
}

size_t emulator_memory = (size_t)8 << 30;

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *all_bytes)
{
    *free_bytes = *all_bytes = emulator_memory;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    if (bytes > emulator_memory || posix_memalign(memory, 512, bytes) != 0)
        return cudaErrorMemoryAllocation;
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned)
{
    return cudaMalloc(memory, bytes);
}

cudaError_t cudaFreeHost(void *memory)
{
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaHostRegister(void *, size_t, unsigned)
{
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *)
{
    return cudaSuccess;
}

cudaError_t cudaMemset(void *memory, int value, size_t bytes)
{
    memset(memory, value, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind)
{
    memcpy(to, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument)
{
    emulator::submit(stream, [=] { function(argument); });
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
    *stream = emulator::stream_new();
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    emulator::stream_free(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    emulator::stream_wait(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    emulator::event_hold(stream, event);
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
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
    emulator::event_record(event, stream);
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return emulator::event_done(event) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    emulator::event_wait(event);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    *ms = (float)(1e3 * (emulator::event_time_s(to) - emulator::event_time_s(from)));
    return cudaSuccess;
}
}

/* Describes the device and the libraries by what they report. Clocks are read by NVML; no setting is changed. */
#include "exec/cuda/cupti.h"
#include "exec/cuda/nccl.h"
#include "exec/cuda/versions.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NVML_CLOCK_SM_ = 1, NVML_CLOCK_MEM_ = 2 }; /* of nvml.h, which toolkits may lack */

static struct {
    int (*init)(void);
    int (*by_bus)(const char *bus, void **device);
    int (*clock)(void *device, int kind, unsigned *mhz);
    int (*max_clock)(void *device, int kind, unsigned *mhz);
    int (*driver)(char *text, unsigned size);
    bool tried, there;
} nvml;

static void find(void *library, const char *name, void *function)
{
    struct diag diag = {0};
    void *found = library_find(library, "libnvidia-ml.so.1", name, &diag);
    memcpy(function, &found, sizeof found);
    diag_release(&diag);
}

static bool nvml_open(void)
{
    static const char *const names[] = {"libnvidia-ml.so.1"};
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct diag diag = {0};
    pthread_mutex_lock(&lock);
    void *library = nvml.tried ? NULL : library_open(names, 1, "/usr/lib/x86_64-linux-gnu", &diag);
    nvml.tried = true;
    if (library != NULL) {
        find(library, "nvmlInit_v2", (void *)&nvml.init);
        find(library, "nvmlDeviceGetHandleByPciBusId_v2", (void *)&nvml.by_bus);
        find(library, "nvmlDeviceGetClockInfo", (void *)&nvml.clock);
        find(library, "nvmlDeviceGetMaxClockInfo", (void *)&nvml.max_clock);
        find(library, "nvmlSystemGetDriverVersion", (void *)&nvml.driver);
        nvml.there = nvml.init != NULL && nvml.by_bus != NULL && nvml.clock != NULL &&
                     nvml.max_clock != NULL && nvml.driver != NULL && nvml.init() == 0;
    }
    bool there = nvml.there;
    pthread_mutex_unlock(&lock);
    diag_release(&diag);
    return there;
}

static void *nvml_device(int device)
{
    char bus[32] = "";
    void *handle = NULL;
    if (!nvml_open() || cudaDeviceGetPCIBusId(bus, sizeof bus, device) != cudaSuccess ||
        nvml.by_bus(bus, &handle) != 0)
        return NULL;
    return handle;
}

unsigned cuda_clock_mhz(int device)
{
    unsigned mhz = 0;
    void *handle = nvml_device(device);
    return handle != NULL && nvml.clock(handle, NVML_CLOCK_SM_, &mhz) == 0 ? mhz : 0;
}

static void say_number(backend_say *say, void *user, const char *key, long long value)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", value);
    say(user, key, text);
}

static void say_cuda(backend_say *say, void *user, const char *key, int version)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d", version / 1000, version % 1000 / 10);
    say(user, key, text);
}

static void say_version(backend_say *say, void *user, const char *key, enum nvidia_library library,
                        int version)
{
    char text[32];
    version_print(library, version, text, sizeof text);
    if (version > 0)
        say(user, key, text);
}

static void say_clocks(backend_say *say, void *user, int device)
{
    void *handle = nvml_device(device);
    unsigned mhz = 0;
    char text[80];
    if (handle == NULL)
        return;
    if (nvml.driver(text, sizeof text) == 0)
        say(user, "driver", text);
    if (nvml.max_clock(handle, NVML_CLOCK_SM_, &mhz) == 0)
        say_number(say, user, "sm_clock_max_mhz", mhz);
    if (nvml.clock(handle, NVML_CLOCK_MEM_, &mhz) == 0)
        say_number(say, user, "memory_clock_mhz", mhz);
}

/* Returns the newest version of CUDA that the driver supports; 0: there is no driver. If the runtime is too new for
 * the driver, the runtime may not report it. */
static int driver_version(void)
{
    static const char name[] = "libcuda.so.1";
    int version = 0;
    if (cudaDriverGetVersion(&version) == cudaSuccess && version > 0)
        return version;
    struct diag diag = {0};
    int (*get)(int *) = NULL;
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    void *found = library != NULL ? library_find(library, name, "cuDriverGetVersion", &diag) : NULL;
    memcpy((void *)&get, &found, sizeof found);
    diag_release(&diag);
    return get != NULL && get(&version) == 0 ? version : 0;
}

/* Gives CUDA as many connections as streams may need. Streams share one hardware queue per connection; with too few,
 * a stream waits for an op of another stream that happens to be before it in the queue, and that op may be waiting
 * for this stream. NCCL_LAUNCH_ORDER_IMPLICIT stays off: with it an operation waits for the start of everything that
 * the host launched before, on other streams, which schedules do not ask for. */
void cuda_environment(void)
{
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    setenv("NCCL_COMM_BLOCKING", "1",
           1); /* all that is written of links holds for blocking communicators only */
}

/* A driver that is too old is refused by its version; without a driver there is none. */
enum status cuda_count_devices(int *count, struct diag *diag)
{
    *count = 0;
    cudaError_t error = cudaGetDeviceCount(count);
    if (error == cudaErrorInsufficientDriver &&
        version_check(NVIDIA_DRIVER, driver_version(), diag) != STATUS_OK)
        return STATUS_SYSTEM;
    if (error == cudaSuccess && *count == 0)
        error = cudaErrorNoDevice;
    return error == cudaSuccess ? STATUS_OK
                                : diag_error(diag, (struct loc){.name = "cuda"}, STATUS_SYSTEM,
                                             "no GPU can be used: cudaGetDeviceCount: %s",
                                             cudaGetErrorString(error));
}

enum status cuda_describe(backend_say *say, void *user, struct diag *diag)
{
    int count = 0, major = 0, minor = 0, sms = 0, driver = 0, runtime = 0;
    struct cudaDeviceProp properties;
    cuda_environment();
    enum status status = cuda_count_devices(&count, diag);
    if (status != STATUS_OK)
        return status;
    cudaError_t error = cudaGetDeviceProperties(&properties, 0);
    if (error != cudaSuccess)
        return cuda_refused(diag, "cudaGetDeviceProperties", error);
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0);
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    say(user, "device", properties.name);
    say_number(say, user, "devices", count);
    say_number(say, user, "device.sm_count", sms);
    say_number(say, user, "compute_capability", 10LL * major + minor);
    say_number(say, user, "numa_node", cuda_numa_node(0));
    say_cuda(say, user, "driver_cuda", driver);
    say_cuda(say, user, "cuda_runtime", runtime);
    say_clocks(say, user, 0);
    return STATUS_OK;
}

/* Describes the versions of the opened libraries, how ranks communicate, and the clock under load. */
void cuda_describe_run(struct exec_run *run, backend_say *say, void *user)
{
    const struct cuda *cuda = cuda_of(run);
    char text[640];
    say_version(say, user, "cublaslt", NVIDIA_CUBLASLT, (int)cuda->cublaslt->cublasLtGetVersion());
    say_version(say, user, "cudnn", NVIDIA_CUDNN, attentions_cudnn(cuda->attentions));
    say_version(say, user, "nccl", NVIDIA_NCCL, nccl_version(cuda));
    if (run->options->profile)
        say_version(say, user, "cupti", NVIDIA_CUPTI, cupti_version());
    attentions_describe(cuda->attentions, text, sizeof text);
    say(user, "attention", text);
    if (cuda->ranks > 1)
        say(user, "communication",
            cuda->shared ? "loopback: copies on one GPU, not the links of several" : "nccl");
    if (run->options->trace)
        say(user, "times_by", run->options->profile ? "cupti" : "events");
    if (run->options->trace && run->options->profile) {
        snprintf(text, sizeof text, "%zu of %zu", cuda->recorded_ops, cuda->launched_ops);
        say(user, "cupti_ops", text);
    }
    if (cuda->clock_mhz > 0)
        say_number(say, user, "sm_clock_mhz", cuda->clock_mhz);
}

/* Describes the device, the libraries and a run, by what they report. Clocks are read by NVML; no setting of the device
 * is changed. Also sets the environment variables that CUDA and NCCL read, and counts the GPUs. */
#include "base/text.h"
#include "exec/cuda/cupti.h"
#include "exec/cuda/nccl.h"
#include "exec/cuda/nvml.h"
#include "exec/cuda/versions.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void report_number(backend_header_function *say, void *user, const char *key,
                          long long value)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", value);
    say(user, key, text);
}

static void report_cuda_version(backend_header_function *say, void *user, const char *key,
                                int version)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d", version / 1000, version % 1000 / 10);
    say(user, key, text);
}

static void report_version(backend_header_function *say, void *user, const char *key,
                           enum nvidia_library library, int version)
{
    char text[32];
    version_to_text(library, version, text, sizeof text);
    if (version > 0)
        say(user, key, text);
}

static void report_clocks(backend_header_function *say, void *user, int device)
{
    char text[80];
    if (nvml_driver_version_to_text(text, sizeof text))
        say(user, "driver", text);
    if (nvml_sm_max_mhz(device) > 0)
        report_number(say, user, "sm_clock_max_mhz", nvml_sm_max_mhz(device));
    if (nvml_memory_mhz(device) > 0)
        report_number(say, user, "memory_clock_mhz", nvml_memory_mhz(device));
    if (nvml_power_limit_w(device) > 0)
        report_number(say, user, "power_limit_w", (long long)(nvml_power_limit_w(device) + 0.5));
}

/* Returns the newest version of CUDA that the driver supports; 0: there is no driver. If the runtime does not answer,
 * because it is too new for the driver, the driver itself is asked. */
static int driver_cuda_version(void)
{
    static const char name[] = "libcuda.so.1";
    int version = 0;
    if (cudaDriverGetVersion(&version) == cudaSuccess && version > 0)
        return version;
    struct diag diag = {0};
    int (*get)(int *) = NULL;
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    void *found =
        library != NULL ? library_function(library, name, "cuDriverGetVersion", &diag) : NULL;
    memcpy((void *)&get, &found, sizeof found);
    diag_release(&diag);
    return get != NULL && get(&version) == 0 ? version : 0;
}

/* Gives CUDA as many connections as it takes, unless the user has set their number. Streams that share a connection
 * share a hardware queue. With too few connections a stream waits for an op of another stream that comes before its own
 * in the queue, although that op may be waiting for this stream. NCCL_LAUNCH_ORDER_IMPLICIT is not set: with it an
 * operation would also wait until everything that the host launched before it, on other streams, has started, which
 * schedules do not ask for. */
void cuda_set_environment(void)
{
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    /* the communicators of exec/cuda/nccl_links.h must be blocking */
    setenv("NCCL_COMM_BLOCKING", "1", 1);
}

/* Counts the GPUs. A driver that is too old is refused with its version (version_check()). */
enum status cuda_count_devices(int *count, struct diag *diag)
{
    *count = 0;
    cudaError_t error = cudaGetDeviceCount(count);
    if (error == cudaErrorInsufficientDriver &&
        version_check(NVIDIA_DRIVER, driver_cuda_version(), diag) != STATUS_OK)
        return STATUS_SYSTEM;
    if (error == cudaSuccess && *count == 0)
        error = cudaErrorNoDevice;
    return error == cudaSuccess ? STATUS_OK
                                : diag_error(diag, (struct loc){.name = "cuda"}, STATUS_SYSTEM,
                                             "no GPU can be used: cudaGetDeviceCount: %s",
                                             cudaGetErrorString(error));
}

enum status cuda_describe(backend_header_function *say, void *user, struct diag *diag)
{
    int count = 0, major = 0, minor = 0, sms = 0, driver = 0, runtime = 0, device = 0;
    struct cudaDeviceProp properties;
    cuda_set_environment();
    enum status status = cuda_count_devices(&count, diag);
    if (status != STATUS_OK)
        return status;
    cudaGetDevice(&device); /* a run has made its rank's device the current one of this thread */
    cudaError_t error = cudaGetDeviceProperties(&properties, device);
    if (error != cudaSuccess)
        return cuda_report_error(diag, "cudaGetDeviceProperties", error);
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    say(user, "device", properties.name);
    report_number(say, user, "devices", count);
    report_number(say, user, "device.sm_count", sms);
    report_number(say, user, "compute_capability", 10LL * major + minor);
    report_number(say, user, "numa_node", cuda_numa_node(device));
    report_cuda_version(say, user, "driver_cuda", driver);
    report_cuda_version(say, user, "cuda_runtime", runtime);
    report_clocks(say, user, device);
    return STATUS_OK;
}

/* Reports how many ops the call of the op before them computes. A trace shows such an op with no duration, at the end
 * of the op before it. Of rotations it reports how many share a kernel with a pack or unpack. */
static void report_epilogues(const struct cuda *cuda, backend_header_function *say, void *user)
{
    char text[160];
    snprintf(text, sizeof text,
             "gelu %" PRIu32 " of %" PRIu32 ", column_sum %" PRIu32 " of %" PRIu32
             ", norms %" PRIu32 " of %" PRIu32 ", rotations %" PRIu32 " of %" PRIu32,
             cuda->joined_count[PRODUCT_GELU], cuda->epilogue_op_count[PRODUCT_GELU],
             cuda->joined_count[PRODUCT_COLUMN_SUM], cuda->epilogue_op_count[PRODUCT_COLUMN_SUM],
             cuda->joined_norm_count, cuda->norm_count, cuda->joined_rope_count, cuda->rope_count);
    say(user, "joined_ops", text);
}

/* Describes the versions of the opened libraries, which kernels compute attention, which ops are computed together, how
 * ranks communicate, and what times the ops. */
void cuda_describe_run(struct exec_run *run, backend_header_function *say, void *user)
{
    const struct cuda *cuda = cuda_of_run(run);
    char text[640];
    report_version(say, user, "cublaslt", NVIDIA_CUBLASLT,
                   (int)cuda->cublaslt->cublasLtGetVersion());
    report_version(say, user, "cudnn", NVIDIA_CUDNN, attentions_cudnn_version(cuda->attentions));
    report_version(say, user, "nccl", NVIDIA_NCCL, nccl_version(cuda));
    if (run->options->times_by_cupti)
        report_version(say, user, "cupti", NVIDIA_CUPTI, cupti_version());
    attentions_describe(cuda->attentions, text, sizeof text);
    say(user, "attention", text);
    if (run->options->uses_epilogues)
        report_epilogues(cuda, say, user);
    if (cuda->rank_count > 1)
        say(user, "communication",
            cuda->shares_one_gpu ? "loopback: copies on one GPU, not the links of several"
                                 : "nccl");
    if (run->options->registers_nccl_memory)
        say(user, "nccl_buffers", "registered");
    if (run->options->records_trace)
        say(user, "times_by", run->options->times_by_cupti ? "cupti" : "events");
    if (run->options->records_trace && run->options->times_by_cupti) {
        snprintf(text, sizeof text, "%zu of %zu", cuda->recorded_ops, cuda->launched_ops);
        say(user, "cupti_ops", text);
    }
}

double cuda_mean_clock_mhz(struct exec_run *run, double begin_s, double end_s)
{
    struct nvml_sample *sample = NULL;
    if (cuda_of_run(run)->sampler == NULL)
        return 0;
    size_t count = sampler_copy_samples(cuda_of_run(run)->sampler, begin_s, end_s, &sample);
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += sample[i].sm_mhz;
    free(sample);
    return count > 0 ? sum / (double)count : 0;
}

/* Reports all samples of a step, each as seconds from its start : MHz : watts : degrees Celsius. */
static void report_samples(backend_header_function *say, void *user,
                           const struct nvml_sample *sample, size_t count, double begin_s)
{
    struct text text = {0};
    for (size_t i = 0; i < count; i++)
        text_printf(&text, "%s%.3f:%u:%.0f:%u", i > 0 ? " " : "", sample[i].time_s - begin_s,
                    sample[i].sm_mhz, sample[i].power_w, sample[i].celsius);
    say(user, "samples_s_mhz_w_c", text.data);
    text_release(&text);
}

void cuda_describe_step(struct exec_run *run, double begin_s, double end_s,
                        backend_header_function *say, void *user)
{
    struct nvml_sample *sample = NULL;
    size_t count = cuda_of_run(run)->sampler != NULL
                       ? sampler_copy_samples(cuda_of_run(run)->sampler, begin_s, end_s, &sample)
                       : 0;
    double power_w = 0;
    unsigned low = 0, high = 0, celsius = 0;
    uint64_t reasons = 0;
    char text[160];
    for (size_t i = 0; i < count; i++) {
        low = i == 0 || sample[i].sm_mhz < low ? sample[i].sm_mhz : low;
        high = sample[i].sm_mhz > high ? sample[i].sm_mhz : high;
        celsius = sample[i].celsius > celsius ? sample[i].celsius : celsius;
        power_w += sample[i].power_w / (double)count;
        reasons |= sample[i].clock_limits;
    }
    if (count > 0) {
        report_number(say, user, "sm_clock_mhz",
                      (long long)(cuda_mean_clock_mhz(run, begin_s, end_s) + 0.5));
        snprintf(text, sizeof text, "%u to %u", low, high);
        say(user, "sm_clock_mhz_range", text);
        report_number(say, user, "power_w", (long long)(power_w + 0.5));
        report_number(say, user, "temperature_c", celsius);
        nvml_clock_limits_to_text(reasons, text, sizeof text);
        say(user, "clock_limited_by", text[0] != '\0' ? text : "nothing");
        report_samples(say, user, sample, count, begin_s);
    }
    free(sample);
}

#include "exec/cuda/nvml.h"

#include "base/arena.h"
#include "exec/cuda/library.h"
#include "exec/run.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, PERIOD_NS = 20000000 };

static struct nvml opened;
static const struct nvml *given_table; /* the table of a test; NULL: NVML's own */
static bool tried, is_usable;

static void load_function(void *library, const char *name, void *function)
{
    struct diag diag = {0};
    void *found = library_function(library, "libnvidia-ml.so.1", name, &diag);
    memcpy(function, &found, sizeof found);
    diag_release(&diag);
}

void nvml_use_table(const struct nvml *table)
{
    given_table = table;
}

static const struct nvml *nvml_open(void)
{
    static const char *const names[] = {"libnvidia-ml.so.1"};
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct diag diag = {0};
    if (given_table != NULL)
        return given_table;
    pthread_mutex_lock(&lock);
    void *library = tried ? NULL : library_open(names, 1, "/usr/lib/x86_64-linux-gnu", &diag);
    tried = true;
    if (library != NULL) {
        load_function(library, "nvmlInit_v2", (void *)&opened.init);
        load_function(library, "nvmlDeviceGetHandleByPciBusId_v2", (void *)&opened.by_bus);
        load_function(library, "nvmlDeviceGetClockInfo", (void *)&opened.clock);
        load_function(library, "nvmlDeviceGetMaxClockInfo", (void *)&opened.max_clock);
        load_function(library, "nvmlSystemGetDriverVersion", (void *)&opened.driver);
        load_function(library, "nvmlDeviceGetPowerUsage", (void *)&opened.power);
        load_function(library, "nvmlDeviceGetEnforcedPowerLimit", (void *)&opened.power_limit);
        load_function(library, "nvmlDeviceGetTemperature", (void *)&opened.temperature);
        load_function(library, "nvmlDeviceGetCurrentClocksThrottleReasons",
                      (void *)&opened.reasons);
        is_usable = opened.init != NULL && opened.by_bus != NULL && opened.clock != NULL &&
                    opened.max_clock != NULL && opened.driver != NULL && opened.power != NULL &&
                    opened.power_limit != NULL && opened.temperature != NULL &&
                    opened.reasons != NULL && opened.init() == 0;
    }
    pthread_mutex_unlock(&lock);
    diag_release(&diag);
    return is_usable ? &opened : NULL;
}

static void *device_handle(const struct nvml *nvml, int device)
{
    char bus[32] = "";
    void *handle = NULL;
    if (nvml == NULL || cudaDeviceGetPCIBusId(bus, sizeof bus, device) != cudaSuccess ||
        nvml->by_bus(bus, &handle) != 0)
        return NULL;
    return handle;
}

unsigned nvml_sm_mhz(int device)
{
    unsigned mhz = 0;
    const struct nvml *nvml = nvml_open();
    void *handle = device_handle(nvml, device);
    return handle != NULL && nvml->clock(handle, CLOCK_SM, &mhz) == 0 ? mhz : 0;
}

unsigned nvml_sm_max_mhz(int device)
{
    unsigned mhz = 0;
    const struct nvml *nvml = nvml_open();
    void *handle = device_handle(nvml, device);
    return handle != NULL && nvml->max_clock(handle, CLOCK_SM, &mhz) == 0 ? mhz : 0;
}

unsigned nvml_memory_mhz(int device)
{
    unsigned mhz = 0;
    const struct nvml *nvml = nvml_open();
    void *handle = device_handle(nvml, device);
    return handle != NULL && nvml->clock(handle, CLOCK_MEMORY, &mhz) == 0 ? mhz : 0;
}

double nvml_power_limit_w(int device)
{
    unsigned milliwatts = 0;
    const struct nvml *nvml = nvml_open();
    void *handle = device_handle(nvml, device);
    return handle != NULL && nvml->power_limit(handle, &milliwatts) == 0 ? 1e-3 * milliwatts : 0;
}

bool nvml_driver_version_to_text(char *text, unsigned size)
{
    const struct nvml *nvml = nvml_open();
    return nvml != NULL && nvml->driver(text, size) == 0;
}

/* ---- samples of a device's state ---- */

struct sampler {
    const struct nvml *nvml;
    void *handle;
    pthread_t thread;
    atomic_bool must_quit;
    pthread_mutex_t lock; /* guards the fields below */
    struct nvml_sample *samples;
    size_t sample_count, capacity;
};

static void add_sample(struct sampler *s)
{
    struct nvml_sample now = {.time_s = run_now_s()};
    unsigned milliwatts = 0;
    unsigned long long reasons = 0;
    if (s->nvml->clock(s->handle, CLOCK_SM, &now.sm_mhz) != 0 ||
        s->nvml->power(s->handle, &milliwatts) != 0)
        return;
    (void)s->nvml->temperature(s->handle, 0, &now.celsius);
    (void)s->nvml->reasons(s->handle, &reasons);
    now.power_w = 1e-3 * milliwatts;
    now.clock_limits = reasons;
    pthread_mutex_lock(&s->lock);
    if (s->sample_count == s->capacity) {
        s->capacity = heap_next_capacity(s->capacity, s->sample_count + 1);
        s->samples = heap_realloc(s->samples, s->capacity, sizeof *s->samples);
    }
    s->samples[s->sample_count++] = now;
    pthread_mutex_unlock(&s->lock);
}

static void *sample_until_quit(void *argument)
{
    static const struct timespec nap = {0, PERIOD_NS};
    struct sampler *s = argument;
    while (!atomic_load(&s->must_quit)) {
        add_sample(s);
        nanosleep(&nap, NULL);
    }
    return NULL;
}

struct sampler *sampler_new(int device)
{
    const struct nvml *nvml = nvml_open();
    void *handle = device_handle(nvml, device);
    if (handle == NULL)
        return NULL;
    struct sampler *s = heap_zalloc(1, sizeof *s);
    s->nvml = nvml;
    s->handle = handle;
    pthread_mutex_init(&s->lock, NULL);
    add_sample(s); /* so that each span has one, also before the thread first runs */
    if (pthread_create(&s->thread, NULL, sample_until_quit, s) == 0)
        return s;
    pthread_mutex_destroy(&s->lock);
    free(s->samples);
    free(s);
    return NULL;
}

void sampler_free(struct sampler *s)
{
    if (s == NULL)
        return;
    atomic_store(&s->must_quit, true);
    pthread_join(s->thread, NULL);
    pthread_mutex_destroy(&s->lock);
    free(s->samples);
    free(s);
}

size_t sampler_copy_samples(struct sampler *s, double begin_s, double end_s,
                            struct nvml_sample **sample)
{
    pthread_mutex_lock(&s->lock);
    size_t first = 0, last = 0;
    while (first < s->sample_count && s->samples[first].time_s < begin_s)
        first++;
    for (last = first; last < s->sample_count && s->samples[last].time_s <= end_s;)
        last++;
    if (first == last && first > 0)
        first--;
    *sample = heap_alloc(last - first + 1, sizeof **sample);
    if (last > first)
        memcpy(*sample, s->samples + first, (last - first) * sizeof **sample);
    pthread_mutex_unlock(&s->lock);
    return last - first;
}

/* The bits of nvmlClocksThrottleReasons that stand for a limit of a busy device's clock, and their names. */
static const struct {
    uint64_t bit;
    const char *name;
} reason_names[] = {
    {0x2, "application_clocks"}, {0x4, "sw_power_cap"}, {0x8, "hw_slowdown"},
    {0x10, "sync_boost"},        {0x20, "sw_thermal"},  {0x40, "hw_thermal"},
    {0x80, "hw_power_brake"},
};

void nvml_clock_limits_to_text(uint64_t reasons, char *text, size_t size)
{
    size_t used_size = 0;
    text[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(reason_names); i++)
        if ((reasons & reason_names[i].bit) != 0 && used_size < size)
            used_size += (size_t)snprintf(text + used_size, size - used_size, "%s%s",
                                          used_size > 0 ? ", " : "", reason_names[i].name);
}

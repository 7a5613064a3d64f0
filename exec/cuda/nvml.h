/* exec/cuda/nvml.h: clocks, power and temperature of a GPU, read with NVML, which is opened by name. Nothing here
 * changes a setting of the GPU. */
#ifndef EXEC_CUDA_NVML_H
#define EXEC_CUDA_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NVML's functions, with the parameters that NVIDIA's header nvml.h declares. This program does not include that
 * header, since some toolkits lack it. `kind` is 1 for the SM clock and 2 for the clock of memory. */
struct nvml {
    int (*init)(void);
    int (*by_bus)(const char *bus, void **device);
    int (*clock)(void *device, int kind, unsigned *mhz);
    int (*max_clock)(void *device, int kind, unsigned *mhz);
    int (*driver)(char *text, unsigned size);
    int (*power)(void *device, unsigned *milliwatts);
    int (*power_limit)(void *device, unsigned *milliwatts);
    int (*temperature)(void *device, int sensor, unsigned *celsius);
    int (*reasons)(void *device, unsigned long long *mask);
};

/* Makes this table replace NVML's functions from now on, for tests that emulate a device. */
void nvml_use_table(const struct nvml *table);

/* Each of these functions returns a number of a CUDA device; 0: it is unknown. nvml_sm_mhz() returns the present MHz of
 * the SM clock, nvml_sm_max_mhz() the highest MHz of that clock, nvml_memory_mhz() the present MHz of the memory's
 * clock, and nvml_power_limit_w() the watts of the power limit. */
unsigned nvml_sm_mhz(int device);
unsigned nvml_sm_max_mhz(int device);
unsigned nvml_memory_mhz(int device);
double nvml_power_limit_w(int device);
/* Writes the driver's version. Returns false if it is unknown. */
bool nvml_driver_version_to_text(char *text, unsigned size);

/* The state of a GPU at one time. */
struct nvml_sample {
    double time_s; /* the time of run_now_s() */
    unsigned sm_mhz, celsius;
    double power_w;
    uint64_t clock_limits; /* NVML's mask of what limits the clock */
};

/* A thread that samples a GPU every 20 ms. */
struct sampler;
/* Starts to sample a device. Returns NULL if NVML does not know the device or the thread cannot be started. */
struct sampler *sampler_new(int device);
/* Ends the thread and frees the sampler; does nothing if sampler is NULL. */
void sampler_free(struct sampler *sampler);
/* Copies the samples between two times to *sample, an array that the caller frees, and returns their number. If there
 * is no sample between the times, it copies the last one before them, if any. */
size_t sampler_copy_samples(struct sampler *sampler, double begin_s, double end_s,
                            struct nvml_sample **sample);

/* Writes the names of the limits of the clock that a mask of NVML contains: "sw_power_cap, hw_thermal". Writes "" if it
 * contains none, or only that the device is idle. */
void nvml_clock_limits_to_text(uint64_t reasons, char *text, size_t size);

#endif

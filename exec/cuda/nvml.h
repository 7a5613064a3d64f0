/* exec/cuda/nvml.h: clocks, power and temperature of a GPU, by NVML, which is opened by name. Nothing is set. */
#ifndef EXEC_CUDA_NVML_H
#define EXEC_CUDA_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NVML's functions as nvml.h declares them; some toolkits lack that header. Kinds of clocks: 1 is the SM clock, 2 that
 * of memory. */
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

/* Makes this table replace NVML's functions from now on; for tests that emulate a device. */
void nvml_use_table(const struct nvml *table);

/* Return a number of a CUDA device: the MHz of its SM clock now, the highest MHz of that clock, the MHz of its memory,
 * the watts of its power limit; 0 if it is unknown. */
unsigned nvml_sm_mhz(int device);
unsigned nvml_sm_max_mhz(int device);
unsigned nvml_memory_mhz(int device);
double nvml_power_limit_w(int device);
/* Writes the driver's version; false: unknown. */
bool nvml_driver_version(char *text, unsigned size);

/* The state of a GPU at one time. */
struct nvml_sample {
    double time_s; /* of run_now_s() */
    unsigned sm_mhz, celsius;
    double power_w;
    uint64_t clock_limits; /* NVML's mask of what limits the clock */
};

/* A thread that samples a GPU every 20 ms. */
struct sampler;
/* Starts the thread. Returns NULL if NVML does not know the device or the thread cannot be started; nothing is sampled
 * then. */
struct sampler *sampler_new(int device);
void sampler_free(struct sampler *sampler); /* NULL: nothing to do */
/* Copies the samples between two times to *sample, an array from malloc(), and returns their number. If there are none,
 * it copies the last sample before. */
size_t sampler_copy_samples(struct sampler *sampler, double begin_s, double end_s,
                            struct nvml_sample **sample);

/* Writes the names of the limits in a mask: "sw_power_cap, hw_thermal"; "" if nothing but an idle device limits the
 * clock. */
void nvml_print_clock_limits(uint64_t reasons, char *text, size_t size);

#endif

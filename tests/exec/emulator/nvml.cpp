/* NVML's functions for the emulated devices: a clock that falls from 1980 MHz, as that of a GPU does under load, by 5 %
 * of what is left to 1500 MHz each time that it is asked, and the power limit that causes it. */
#include "tests/exec/emulator/emulator.h"

extern "C" {
#include "exec/cuda/nvml.h"
}

#include <atomic>
#include <cstdio>

int emulator_clock_asked;

namespace
{

int device; /* stands for every one */

int init()
{
    return 0;
}

int get_handle_by_pci_bus_id(const char *, void **handle)
{
    *handle = &device;
    return 0;
}

int current_clock_mhz(void *, int kind, unsigned *mhz)
{
    if (kind != 1) {
        *mhz = 2619;
        return 0;
    }
    double above = 480;
    int asked = __atomic_fetch_add(&emulator_clock_asked, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < asked && above > 0.1; i++)
        above *= 0.95;
    *mhz = 1500 + static_cast<unsigned>(above);
    return 0;
}

int max_clock_mhz(void *, int, unsigned *mhz)
{
    *mhz = 1980;
    return 0;
}

int driver_version_text(char *text, unsigned size)
{
    snprintf(text, size, "580.00");
    return 0;
}

int power(void *, unsigned *milliwatts)
{
    *milliwatts = 690000;
    return 0;
}

int power_limit(void *, unsigned *milliwatts)
{
    *milliwatts = 700000;
    return 0;
}

int temperature(void *, int, unsigned *celsius)
{
    *celsius = 55;
    return 0;
}

int clock_throttle_reasons(void *, unsigned long long *mask)
{
    *mask = 0x4; /* the power limit */
    return 0;
}

} // namespace

extern "C" void emulator_use_nvml(void)
{
    static const struct nvml table = {init,
                                      get_handle_by_pci_bus_id,
                                      current_clock_mhz,
                                      max_clock_mhz,
                                      driver_version_text,
                                      power,
                                      power_limit,
                                      temperature,
                                      clock_throttle_reasons};
    nvml_use_table(&table);
}

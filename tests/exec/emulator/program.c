/* The program on emulated devices, EMULATED_DEVICES of them (1), with version EMULATED_CUDNN of cuDNN: `longhaul_emulated run --backend cuda` and the
 * like, with which ./dev gpu is tried out where there is no GPU. What it times means nothing. A process that has
 * made a context on more than one device fails: on a GPU that is some 500 MiB of another process's memory. */
#include "tests/exec/emulator/emulator.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FAILED = 70 };

static void check_devices(void)
{
    int devices = emulator_devices_touched();
    if (devices <= 1)
        return;
    fprintf(stderr, "emulator: this process has made contexts on %d devices\n", devices);
    fflush(NULL);
    _exit(FAILED);
}

static void read_number(const char *name, int *number)
{
    const char *text = getenv(name);
    if (text != NULL)
        *number = (int)strtol(text, NULL, 10);
}

__attribute__((constructor)) static void use_emulator(void)
{
    emulator_use();
    read_number("EMULATED_DEVICES", &emulator_devices);
    read_number("EMULATED_CUDNN", &emulator_versions.cudnn);
    atexit(check_devices);
}

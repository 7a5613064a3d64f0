/* The program on emulated devices, EMULATED_DEVICES of them (1): `longhaul_emulated run --backend cuda` and the
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

__attribute__((constructor)) static void use_emulator(void)
{
    const char *devices = getenv("EMULATED_DEVICES");
    emulator_use();
    if (devices != NULL)
        emulator_devices = (int)strtol(devices, NULL, 10);
    atexit(check_devices);
}

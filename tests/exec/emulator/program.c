/* tests/exec/emulator/program.c: the program on EMULATED_DEVICES emulated devices (default 1), with version
 * EMULATED_CUDNN of cuDNN. It lets `longhaul_emulated run --backend cuda`, and with it ./dev gpu, be tried
 * where there is no GPU; the times that it measures mean nothing. A process that makes a context on more than
 * one device fails, since on a GPU a context takes some 500 MiB of another process's memory. */
#include "tests/exec/emulator/emulator.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FAILED = 70 };

static void fail_if_several_devices_used(void)
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
    atexit(fail_if_several_devices_used);
}

/* The program on the emulated device: `longhaul_emulated run --backend cuda` and the like, with
 * which ./dev gpu is tried out where there is no GPU. What it times means nothing. */
#include "tests/exec/emulator/emulator.h"

__attribute__((constructor)) static void use_emulator(void)
{
    emulator_use();
}

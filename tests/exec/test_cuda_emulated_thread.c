/* tests/exec/test_cuda_emulated_thread.c: ranks that share the emulated device, for the thread sanitizer: how
 * their runs end, and how they communicate. */
#include "tests/exec/comm_cases.h"
#include "tests/exec/emulator/emulator.h"
#include "tests/exec/executor_cases.h"

#include <string.h>

int main(int argc, char **argv)
{
    struct check_case cases[ARRAY_LEN(executor_cases) + ARRAY_LEN(comm_cases)];
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LEN(executor_cases); i++)
        if (strcmp(executor_cases[i].name, "slow work is no stall") != 0) /* needs emulated links */
            cases[count++] = executor_cases[i];
    for (size_t i = 0; i < ARRAY_LEN(comm_cases); i++)
        cases[count++] = comm_cases[i];
    emulator_use();
    hand_backend = "cuda";
    return check_run("cuda emulated ranks", cases, count, argc, argv);
}

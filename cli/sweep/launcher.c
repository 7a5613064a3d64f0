#define _GNU_SOURCE /* for RTLD_DEEPBIND */

#include "cli/sweep/launcher.h"

#include "base/arena.h"
#include "base/data_path.h"
#include "base/text.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct loc nowhere = {.name = "longhaul"};

/* Programs that start several processes, each with the environment variables in which it gives the number of processes
 * and the process' own number. */
static const struct {
    const char *size, *rank, *name;
} launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "Open MPI"},
    {"PMI_SIZE", "PMI_RANK", "MPICH or Intel MPI"},
    {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", "MVAPICH2"},
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun"},
};

static int environment_number(const char *variable)
{
    const char *text = getenv(variable);
    int64_t value;
    return text != NULL && parse_i64(text, strlen(text), &value) && value >= 0 && value < 1 << 20
               ? (int)value
               : -1;
}

/* Loads the module from the program's folder, where it is in a build, or from where it is
 * installed; NULL: it is in neither place or cannot be loaded. */
static void *load_mpi_module(void)
{
    static const char *const places[] = {"longhaul_mpi.so", "../lib/longhaul/longhaul_mpi.so"};
    struct text path = {0};
    void *module = NULL;
    for (size_t i = 0; i < ARRAY_LEN(places) && module == NULL; i++) {
        path.size = 0;
        if (!program_folder(&path))
            break;
        text_puts(&path, places[i]);
        /* RTLD_DEEPBIND makes MPI find its own symbols before those of SimGrid, which has an MPI with the same names
         * (SMPI). RTLD_GLOBAL lets the parts that MPI loads find its symbols. */
        /* The test comes first, since sanitizers refuse RTLD_DEEPBIND even if the file does not exist. */
        if (access(path.data, R_OK) == 0)
            module = dlopen(path.data, RTLD_NOW | RTLD_GLOBAL | RTLD_DEEPBIND);
    }
    text_release(&path);
    return module;
}

enum status launcher_load_if_started_by_mpirun(struct launcher *launcher, struct diag *diag)
{
    *launcher = (struct launcher){.process_count = 1};
    for (size_t i = 0; i < ARRAY_LEN(launchers); i++) {
        int size = environment_number(launchers[i].size),
            rank = environment_number(launchers[i].rank);
        if (size <= 1 || rank < 0)
            continue;
        void *module = load_mpi_module();
        launcher->calls = module == NULL ? NULL : dlsym(module, "longhaul_mpi");
        if (launcher->calls == NULL)
            return diag_error(diag, nowhere, STATUS_SYSTEM,
                              "%s started %d processes of longhaul, but this build has no MPI: "
                              "build it where CMake "
                              "finds MPI (libopenmpi-dev), or start each process by itself, this "
                              "one with --part %d/%d",
                              launchers[i].name, size, rank + 1, size);
        launcher->process_count = size;
        launcher->rank = rank;
        return STATUS_OK;
    }
    return STATUS_OK;
}

enum status launcher_start_mpi(struct launcher *launcher, struct diag *diag)
{
    int rank = 0, size = 0;
    if (launcher->process_count == 1)
        return STATUS_OK;
    if (!launcher->calls->start(&rank, &size))
        return diag_error(diag, nowhere, STATUS_SYSTEM, "MPI does not start");
    if (rank != launcher->rank || size != launcher->process_count)
        return diag_error(diag, nowhere, STATUS_SYSTEM,
                          "the launcher says process %d of %d, and MPI says %d of %d: was longhaul "
                          "built with another MPI than the launcher's?",
                          launcher->rank, launcher->process_count, rank, size);
    return STATUS_OK;
}

/* cli/sweep/launcher.h: the other processes of the same command, if a launcher such as mpirun started several. The
 * program itself does not link MPI. The calls that it needs are in a module, longhaul_mpi.so, which is built where
 * CMake finds MPI, and is loaded only when the environment says that a launcher started several processes. */
#ifndef CLI_SWEEP_LAUNCHER_H
#define CLI_SWEEP_LAUNCHER_H

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>

/* The functions of the module, in its symbol longhaul_mpi. Messages are bytes. If a call of MPI
 * fails, MPI ends the program, unless it is configured to return errors: then the function returns
 * false. */
struct launcher_mpi_functions {
    bool (*start)(int *rank, int *size);
    bool (*send)(int to, int tag, const void *data, size_t size);
    /* Returns whether a message has arrived, and if so, its sender, tag and size. */
    bool (*probe)(int *from, int *tag, size_t *size);
    bool (*receive)(int from, int tag, void *data, size_t size);
    void (*finish)(void);
    void (*abort)(int code);
};

struct launcher {
    int rank, process_count; /* rank 0 of 1 process: this is the only process */
    const struct launcher_mpi_functions *calls;
};

/* Reads the environment, and loads the module if there are several processes. It does not start MPI. */
enum status launcher_load_if_started_by_mpirun(struct launcher *launcher, struct diag *diag);

/* Starts MPI, and connects to the other processes, if there are any. Workers must be forked before, since not every MPI
 * survives a fork. */
enum status launcher_start_mpi(struct launcher *launcher, struct diag *diag);

#endif

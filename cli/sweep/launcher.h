/* cli/sweep/launcher.h: the other processes of the same command, if mpirun or the like started several.
 *
 * The program itself does not link MPI. The calls that it needs are in a module, longhaul_mpi.so, built
 * where CMake finds MPI and loaded only when a launcher's environment says that there are several
 * processes. */
#ifndef CLI_SWEEP_LAUNCHER_H
#define CLI_SWEEP_LAUNCHER_H

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>

/* The functions of the module, as the symbol longhaul_mpi. Data are bytes. A function that fails returns false; MPI
 * itself then ends the program. */
struct launcher_calls {
    bool (*start)(int *rank, int *size);
    bool (*send)(int to, int tag, const void *data, size_t size);
    /* True if a message has come; then its sender, tag and size. */
    bool (*probe)(int *from, int *tag, size_t *size);
    bool (*receive)(int from, int tag, void *data, size_t size);
    void (*finish)(void);
    void (*abort)(int code);
};

struct launcher {
    int rank, size; /* 0 and 1: this is the only process */
    const struct launcher_calls *calls;
};

/* Reads the environment, and loads the module if there are several processes. Does not start MPI. */
enum status launcher_find(struct launcher *launcher, struct diag *diag);

/* Starts MPI and joins the other processes. Workers must be forked before: not every MPI survives a fork. */
enum status launcher_start(struct launcher *launcher, struct diag *diag);

#endif

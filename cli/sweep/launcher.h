/* cli/sweep/launcher.h: other processes of the same command, where mpirun or the like started several.
 *
 * The program itself does not link MPI. What it needs of it is in a module, longhaul_mpi.so, built
 * where CMake finds MPI and loaded only when a launcher's environment says that there are several
 * of us. */
#ifndef CLI_SWEEP_LAUNCHER_H
#define CLI_SWEEP_LAUNCHER_H

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>

/* What the module offers, as the symbol longhaul_mpi. Data are bytes; false is a failure, which MPI
 * itself ends the program for. */
struct launcher_calls {
    bool (*start)(int *rank, int *size);
    bool (*send)(int to, int tag, const void *data, size_t size);
    /* Whether a message has come: from whom, and how long it is. */
    bool (*probe)(int *from, int *tag, size_t *size);
    bool (*receive)(int from, int tag, void *data, size_t size);
    void (*finish)(void);
    void (*abort)(int code);
};

struct launcher {
    int rank, size; /* 0 of 1: we are alone */
    const struct launcher_calls *calls;
};

/* Looks into the environment, and loads the module when there are several of us. Starts nothing. */
enum status launcher_find(struct launcher *launcher, struct diag *diag);

/* Joins the others. Workers are to be forked before: not every MPI survives a fork. */
enum status launcher_start(struct launcher *launcher, struct diag *diag);

#endif
